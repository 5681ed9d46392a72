"""What people type, word for word: the right answer, or one sentence with the command that works.

The lines were written down by people who tried the program for the first time. `tailboard LINE` runs in a folder that holds the
example as `examples/cbt-archive`, `my/archive` and `other/archive`, HdrHistogram logs as `hdr`, and nothing else.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, tailboard

ARCHIVE, STORE = "examples/cbt-archive", "foo.db"
TABLE = "percentiles of cbt-archive/00000000/id-9b5d006f: completion latency"
LINES = [  # what is typed, exit status, how the first line begins (of stdout where that has one)
    ("percentile A", 2, "there is no command 'percentile': do you mean tailboard percentiles A?"),
    ("percentils A", 2, "there is no command 'percentils': do you mean tailboard percentiles A?"),
    ("A", 2, "A is no command: tailboard inspect A shows what it holds, tailboard report A writes a page"),
    ("sqlite:x.db", 2, "sqlite:x.db is no command: tailboard percentiles sqlite:x.db shows what it holds"),
    ("quux", 2, "there is no command 'quux': tailboard --help lists all"),
    ("diff a b", 2, "there is no command 'diff': do you mean tailboard compare a b?"),
    ("hetmap A", 2, "there is no command 'hetmap': do you mean tailboard show heatmap A?"),
    ("show hetmap A", 2, "there is no command 'hetmap': do you mean tailboard show heatmap A?"),
    ("show heatmap A -o h.svg", 0, "wrote h.svg"),
    ("report --card A", 0, "wrote card.png"),
    ("check --capacity A --sla 5ms", 2, "'5ms' is no objective"),
    ("serve A --host 0.0.0.0", 2, "--host names the host of the logs; the address to listen on is --listen 0.0.0.0"),
    ("ls", 2, "there is no command 'ls': do you mean tailboard runs list?"),
    ("version", 0, "tailboard "),
    ("help percentiles", 0, "Usage: tailboard percentiles"),
    ("help", 0, "Usage: tailboard"),
    ("report", 4, "there is no store at sqlite:tailboard.db: name files, or load some first (tailboard load PATH --run NAME)"),
    ("percentiles A -p p99", 0, TABLE),
    ("percentiles A -p 99.9%", 0, TABLE),
    ("percentiles A -p 50 99", 2, "99: no such file or folder; a list is one word, as in -p 50,99"),
    ("percentiles A -p 0.99", 2, "'0.99' would be p0.99, the lowest 0.99 % of samples: did you mean 99?"),
    ("percentiles A --step 10", 2, "'10' is not a duration: give a number with ns, us, ms, s, m, h or d, 10s is 10 seconds"),
    ("percentiles A --step 10sec --by host", 0, f"{TABLE}, step 10s"),
    ("percentiles A --step 1min --by hosts", 2, "no label 'hosts' here: do you mean host?"),
    ("percentiles A --step all --by client", 2, "no label 'client' here: do you mean host?"),
    ("percentiles A --host ceph-a", 2, "--host ceph-a would call 3 hosts alike (ceph-a, ceph-b, ceph-c): --where host=ceph-a"),
    ("percentiles A --where 'host=ceph-*' --step all", 0, f"{TABLE}, whole range, 59,015 samples"),
    ("percentiles A --where ceph-a", 2, "--where takes LABEL=VALUE, as in --where host=ceph-a"),
    ("percentiles A --where op=randread", 3, "no op matches randread: do you mean read?"),
    ("percentiles A --from 21:00:30 --to 21:00:40", 0, f"{TABLE}, step 1s, 6,692 samples"),
    ("percentiles A --from 30 --to 40 --step 5s", 2, "'30' has no unit: +30s is 30 seconds after the start of the run"),
    ("percentiles A --from 30s --to 40s --step 5s", 0, f"{TABLE}, step 5s, 7,619 samples"),
    ("percentiles A --from 12:22:28", 3, "nothing matches --from/--to; runs here: cbt-archive/00000000/id-9b5d006f; there are data from +0s"),
    ("percentiles A --unit msec --step all", 0, TABLE),
    ("percentiles A --unit µs --step all", 0, TABLE),
    ("percentiles A --unit μs --step all", 0, TABLE),
    ("percentiles A --format excel", 2, "Invalid value for '--format': there is no 'excel': csv opens in a spreadsheet"),
    ("percentiles A -o out.csv", 0, "wrote out.csv"),
    ("percentiles A -o out.xlsx", 2, "-o out.xlsx: csv opens in a spreadsheet"),
    ("percentiles A -o no/out.csv", 3, "no/out.csv: cannot be written: No such file or directory"),
    ("percentiles A --csv", 0, "start,end,count,rate,"),
    ("percentiles A --json", 0, "["),
    ("percentiles /nonexistent", 3, "/nonexistent: no such file or folder"),
    ("percentiles '*.hlog'", 3, "*.hlog: no file or folder matches"),
    ("percentiles 'hdr/tag*.hlog' --step all", 0, "percentiles of hdr: response latency, whole range, 3,600 samples"),
    ("percentiles hdr/tagged.hlog --unit us --step all", 0, "percentiles of hdr: response latency, whole range, 3,600 samples"),
    ("explain A --box 26s..36s,1s", 2, "--box takes a range of time and one of latency, such as +26s..+36s,1s.. (either may be open, as in ..,1s..), not '1s': 1s.. is from there on, ..1s up to there"),
    ("explain A --box 26s..36s,1s..", 0, "box of cbt-archive/00000000/id-9b5d006f"),
    ("explain A --box 26-36,1s..", 2, "'26' has no unit: +26s is 26 seconds after the start of the run"),
    ("explain A --box 21:00:28..21:00:33", 0, "box of cbt-archive/00000000/id-9b5d006f"),
    ("explain A --box +26s..+36s,10ms-1s", 0, "box of cbt-archive/00000000/id-9b5d006f"),
    ("explain A --json", 0, "["),
    ("check A", 2, "check needs objectives: tailboard check --sla 'p99<5ms' A"),
    ("check --sla 'p99<5ms' A", 1, "VIOLATED  p99<5ms"),
    ("compare A my/archive", 0, "Cannot tell whether archive/00000000/id-9b5d006f is slower or faster than cbt-archive/00000000/id-9b5d006f"),
    ("compare my/archive other/archive", 0, "Cannot tell whether other/archive/00000000/id-9b5d006f"),
    ("compare a b", 4, "there is no store at sqlite:tailboard.db"),
    ("compare A", 2, "compare takes two runs, as in compare"),
    ("load A", 2, "load needs --run ID, as in tailboard load A --run NAME"),
    ("load A --run x --store foo.db", 0, "12 sources, 1777 rows"),
    ("percentiles foo.db", 0, "percentiles of x/00000000/id-9b5d006f: completion latency, step 5s, 59,015 samples"),
    ("compare x x --store foo.db", 2, "--baseline and --run both take x/00000000/id-9b5d006f"),
    ("runs list foo.db", 2, "tailboard runs list takes no more words, here is foo.db; a store is named by --store"),
    ("runs list --json --store foo.db", 0, "["),
    ("runs check --store foo.db", 0, "no fault in 1 run"),
    ("runs check sqlite:foo.db --mend", 2, "sqlite:foo.db is a store, not a run: tailboard runs check --store sqlite:foo.db"),
    ("runs show sqlite:foo.db", 2, "sqlite:foo.db is a store, not a run: tailboard runs show --store sqlite:foo.db"),
    ("runs delete sqlite:foo.db --yes", 2, "sqlite:foo.db is a store, not a run: tailboard runs delete --store sqlite:foo.db"),
    ("percentiles --run x", 4, "there is no store at sqlite:tailboard.db"),
    ("card A", 0, "wrote card.png"),
    ("heatmap A -o h.png", 0, "wrote h.png"),
    ("capacity my/archive --sla 5ms", 2, "'5ms' is no objective: give a percentile and a latency"),
    ("mark deploy", 2, "mark needs --run GLOB, as in "),
    ("doctor", 1, "ok        readers: "),
    ("inspect hdr --json", 0, "["),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    below = tmp_path_factory.mktemp("typed")
    for path in (ARCHIVE, "my/archive", "other/archive"):
        shutil.copytree(ROOT / ARCHIVE, below / path)
    (below / "hdr").symlink_to(ROOT / "tests/data/hdr")
    return below


@pytest.mark.parametrize("answered", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_people_type_is_answered_or_refused_with_the_command_that_works(answered: bool, folder: Path) -> None:
    wrong = []
    for line, status, begins in LINES:
        if answered == (status == 2 and STORE not in line):
            continue
        words = [ARCHIVE if word == "A" else word for word in shlex.split(line)]
        done = tailboard(*words, cwd=folder)
        first = (done.stdout or done.stderr.removeprefix("tailboard: ")).lstrip("\n").split("\n")[0]
        begins = begins.replace(" A", f" {ARCHIVE}").replace("A is", f"{ARCHIVE} is")
        if done.returncode != status or not first.startswith(begins) or "Traceback" in done.stderr:
            wrong.append(f"{line}\n  {done.returncode}, not {status}\n  {first}\n  {begins}")
        if status in (2, 3, 4) and done.stderr.count("\n") != 1:
            wrong.append(f"{line}: {done.stderr}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_the_demo_ends_with_what_happened_and_commands_that_run_as_they_are_printed(tmp_path: Path) -> None:
    done = tailboard("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, said, _, opens, one, other, third = done.stdout.splitlines()
    assert said.startswith("What happened: ceph-b stalled from 21:00:34.3 to 21:00:38.3")
    assert opens == "Open report.html in a browser. Then try" and (tmp_path / "report.html").stat().st_size > 1e5
    for line, status in ((one, 0), (other, 0), (third, 1)):
        program, *words = shlex.split(line)
        assert tailboard(*words, cwd=tmp_path).returncode == status, line
