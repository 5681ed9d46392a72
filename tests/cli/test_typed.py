"""What people type, word for word: the right answer, or one sentence with the command that works.

The lines were written down by people who tried the program for the first time. `tailboard LINE` runs in a folder that holds the
example as `examples/cbt-archive`, `my/archive` and `other/archive`, HdrHistogram logs as `hdr`, and nothing else.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ingest.cli import run as command
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
    ("runs list foo.db", 0, "run "),
    ("runs list foo.db y", 3, "no run matches y: there is x/00000000/id-9b5d006f"),
    ("runs list sqlite:foo.db --store other.db", 2, "one store at a time: here are sqlite:other.db and sqlite:foo.db"),
    ("runs list --json --store foo.db", 0, "["),
    ("runs check --store foo.db", 0, "no fault in 1 run"),
    ("runs check sqlite:foo.db --mend", 0, "no fault in 1 run"),
    ("runs show sqlite:foo.db", 2, "runs show takes a run: there is x/00000000/id-9b5d006f"),
    ("runs show foo.db x", 0, "{"),
    ("runs delete sqlite:foo.db --yes", 2, "give a run, a glob, or --older-than"),
    ("runs delete foo.db x x/0* --dry-run", 0, "would delete x/00000000/id-9b5d006f"),
    ("percentiles foo.db x", 2, "x: no such file or folder; runs of a store are named by --run x"),
    ("explain x --store foo.db", 2, "x: no such file or folder; runs of a store are named by --run x"),
    ("inspect foo.db", 2, "foo.db is a store, and inspect takes files and folders; tailboard runs list foo.db shows what it holds"),
    ("runs foo.db", 2, "there is no command 'foo.db': do you mean tailboard runs list foo.db?"),
    ("runs mark --run x --at 21:00:10 foo.db up", 2, "tailboard runs mark takes no more words, here is up; quotes make one word"),
    ("runs mark --run x --at 21:00:10 up foo.db", 2, "tailboard runs mark takes no more words, here is foo.db; a store is named by"),
    ("store foo.db", 2, "there is no command 'foo.db': do you mean tailboard store doctor foo.db?"),
    ("store setup foo.db", 2, "foo.db needs no setup: tailboard load PATH --run NAME --store foo.db makes it"),
    ("store replay foo.db", 2, "replay takes a file of refused documents and the server: tailboard store replay"),
    ("load A foo.db --run z", 2, "foo.db is a store, and load takes files and folders; --store foo.db has load write to it"),
    ("percentiles --run x", 4, "there is no store at sqlite:tailboard.db"),
    ("card A", 0, "wrote card.png"),
    ("heatmap A -o h.png", 0, "wrote h.png"),
    ("capacity my/archive --sla 5ms", 2, "'5ms' is no objective: give a percentile and a latency"),
    ("mark deploy", 2, "mark needs --run GLOB, as in "),
    ("doctor", 1, "ok        readers: "),
    ("inspect hdr --json", 0, "["),
    ("load A --run z -o foo.db", 2, "there is no option -o: do you mean --store?"),
    ("load A --run z --db z.db", 2, "there is no option --db: do you mean --store?"),
    ("store setup --store http://es:9200", 2, "there is no option --store: do you mean --elasticsearch?"),
    ("load A --name z", 2, "there is no option --name: do you mean --run?"),
    ("load A -r z", 2, "there is no option -r: do you mean --run?"),
    ("percentiles A --percentile 99", 2, "there is no option --percentile: do you mean -p?"),
    ("percentiles A --p 99", 2, "there is no option --p: do you mean -p?"),
    ("percentiles A -p 50,max", 2, "'max' is not a percentile: give numbers from 0 to 100, as in 50,99,99.9; the median is 50, the max"),
    ("percentiles A --group-by host", 2, "there is no option --group-by: do you mean --by?"),
    ("percentiles A --interval 1s", 2, "there is no option --interval: do you mean --step?"),
    ("percentiles A --window 1s", 2, "there is no option --window: do you mean --step?"),
    ("percentiles A --filter op=read", 2, "there is no option --filter: do you mean --where?"),
    ("percentiles A --since +10s", 2, "there is no option --since: do you mean --from?"),
    ("percentiles A --until +10s", 2, "there is no option --until: do you mean --to?"),
    ("percentiles A --units ms", 2, "there is no option --units: do you mean --unit?"),
    ("percentiles A --hots ceph-a", 2, "there is no option --hots: do you mean --host?"),
    ("percentiles A --sort p99", 2, "there is no option --sort: rows are in the order of time"),
    ("percentiles A --tz Europe/Berlin", 2, "there is no option --tz: times are in UTC; --time local"),
    ("percentiles A --verbose", 2, "there is no option --verbose: tailboard inspect --why FILE says what an answer rests on"),
    ("percentiles A -v", 2, "there is no option -v: tailboard inspect --why FILE"),
    ("percentiles A --quiet", 2, "there is no option --quiet: notes go to stderr"),
    ("percentiles A --threshold 5ms", 2, "there is no option --threshold: tailboard check --sla 'p99<5ms' judges"),
    ("percentiles A --xyzzy", 2, "there is no option --xyzzy: --help all shows all"),
    ("percentiles A --from +10s..+20s", 2, "'+10s..+20s' is a range, where one time is taken: --from +10s --to +20s"),
    ("percentiles A --input-format csv", 2, "no input format 'csv': tables of tools are known by their beginning (leave it out)"),
    ("percentiles A --input-format jtl", 2, "no input format 'jtl': do you mean jmeter?"),
    ("percentiles A --output json", 2, "-o names a file: --format json prints it, -o out.json writes one"),
    ("percentiles A --where 'op!=write' --step all", 0, f"{TABLE}, whole range, 41,607 samples"),
    ("percentiles A --where 'host!=ceph-*'", 3, "no host matches anything but ceph-*: "),
    ("explain A --html", 2, "there is no option --html: tailboard report writes a page"),
    ("compare my/archive other/archive --html", 2, "there is no option --html: tailboard report writes a page, compare and trend write one"),
    ("report A --open", 2, "there is no option --open: the page that is written opens in any browser"),
    ("report A -o r.pdf", 2, "-o r.pdf: a report is one HTML page, such as report.html; a browser prints it"),
    ("report A -o r.png", 2, "-o r.png: a report is one HTML page, such as report.html; tailboard report --card writes a picture"),
    ("report A -o .", 3, ".: cannot be written: Is a directory"),
    ("check A --slo 'p99<5ms'", 2, "there is no option --slo: do you mean --sla?"),
    ("check A --sla 'errors<1%'", 2, "'errors<1%' is no objective: do you mean 'failures<1%'?"),
    ("check A --sla 'avg<5ms'", 2, "'avg<5ms' is no objective: give a percentile and a latency"),
    ("compare --before A --after my/archive", 2, "there is no option --before: do you mean --baseline?"),
    ("compare A my/archive --step 1s", 2, "there is no option --step: --help all shows all"),
    ("compare A vs my/archive", 2, "compare takes two runs, as in compare"),
    ("show A", 2, "there is no command 'A': do you mean tailboard show heatmap A?"),
    ("show percentiles A", 2, "there is no command 'percentiles': do you mean tailboard percentiles A?"),
    ("show histogram A", 2, "there is no command 'histogram': do you mean tailboard show distribution A?"),
    ("plot A", 2, "there is no command 'plot': do you mean tailboard report A?"),
    ("record sample --every 10s -o x.ndjson", 2, "sample needs -- COMMAND..., as in tailboard record sample --every 10s -o x.ndjson -- COMMAND"),
    ("inspect", 2, "inspect needs PATH..., as in tailboard inspect PATH"),
    ("help all", 0, "Usage: tailboard [OPTIONS]"),
    ("help nothing", 2, "there is no command 'nothing': tailboard --help lists all"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    below = tmp_path_factory.mktemp("typed")
    for path in (ARCHIVE, "my/archive", "other/archive"):
        shutil.copytree(ROOT / ARCHIVE, below / path)
    (below / "hdr").symlink_to(ROOT / "tests/data/hdr")
    return below


@pytest.mark.parametrize("answered", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_people_type_is_answered_or_refused_with_the_command_that_works(
    answered: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for line, status, begins in LINES:
        if answered == (status == 2 and STORE not in line):
            continue
        words = [ARCHIVE if word == "A" else word for word in shlex.split(line)]
        if answered:
            done = tailboard(*words, cwd=folder)
        else:  # in this process, as nothing is read
            monkeypatch.chdir(folder)
            code = command(words)
            done = subprocess.CompletedProcess(words, code, *capsys.readouterr())
        first = (done.stdout or done.stderr.removeprefix("tailboard: ")).lstrip("\n ").split("\n")[0]
        begins = begins.replace(" A", f" {ARCHIVE}").replace("A is", f"{ARCHIVE} is").replace("'A'", repr(ARCHIVE))
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
