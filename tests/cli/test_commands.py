"""The command contract: columns, exit status, sentences. Each command is run as its user would."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from oracles.per_io import histogram_files
from tests.commands import tailboard

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
FIO = ROOT / "tests" / "data" / "fio"


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


# ---- the contract ----------------------------------------------------------------------------------------------------


def test_percentiles_csv_has_the_columns_of_the_contract() -> None:
    done = tailboard(
        "percentiles", EXAMPLE, "-p", "50,95,99,99.9", "--step", "10s", "--by", "host,op", "--format", "csv", "--below", "1ms,5ms"
    )
    header = done.stdout.splitlines()[0]
    assert header == "start,end,host,op,count,rate,min,mean,max,exact,complete,failed,p50,p95,p99,p99.9,below_1ms,below_5ms"
    found = rows(done)
    assert sum(int(row["count"]) for row in found) == 59015
    assert [(row["start"], row["host"], row["op"]) for row in found] == sorted(
        (row["start"], row["host"], row["op"]) for row in found
    )
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["start"]) for row in found)
    assert all(row["p99.9"] == "" for row in found if int(row["count"]) < 1000)
    assert all(row["p99.9"] for row in found if int(row["count"]) >= 1000)
    assert all(0 <= float(row["below_1ms"]) <= float(row["below_5ms"]) <= 1 for row in found)


def test_step_all_is_one_row_and_elapsed_counts_from_the_start() -> None:
    done = tailboard("percentiles", EXAMPLE, "--step", "all", "--format", "csv", "--time", "elapsed", "--unit", "ms")
    (row,) = rows(done)
    assert (row["count"], row["start"], row["exact"]) == ("59015", "0", "false")
    assert 74 < float(row["end"]) < 77
    assert 0.2 < float(row["p50"]) < 0.3


def test_ndjson_has_the_same_values_as_csv() -> None:
    words = ("percentiles", EXAMPLE, "--step", "30s", "--by", "host")
    lines = [json.loads(line) for line in tailboard(*words, "--format", "ndjson").stdout.splitlines()]
    expected = rows(tailboard(*words, "--format", "csv"))
    assert len(lines) == len(expected)
    for line, row in zip(lines, expected, strict=True):
        assert list(line) == list(row)
        assert line["host"] == row["host"]
        assert line["p99"] == float(row["p99"])
        assert line["exact"] is False


def test_accuracy_widens_and_adds_bounds() -> None:
    narrow = rows(tailboard("percentiles", EXAMPLE, "--step", "1s", "--format", "csv", "-p", "90", "--where", "host=ceph-a"))
    wide = rows(
        tailboard(
            "percentiles", EXAMPLE, "--step", "1s", "--format", "csv", "-p", "90", "--where", "host=ceph-a", "--accuracy", "10%"
        )
    )
    assert len(wide) < len(narrow)
    assert list(wide[0])[-3:] == ["p90", "p90_lo", "p90_hi"]
    assert all(float(row["p90_lo"]) <= float(row["p90"]) <= float(row["p90_hi"]) for row in wide)


@pytest.mark.parametrize("step", ["1s", "all"])
def test_n17_accuracy_that_is_not_reached_is_said(step: str) -> None:
    asked = ("percentiles", EXAMPLE, "--step", step, "--format", "csv", "-p", "99.9", "--where", "host=ceph-a")
    done = tailboard(*asked, "--accuracy", "0.01%")
    assert done.returncode == 0
    assert "--accuracy is not reached: p99.9 is known to 0.01 % in 0 of 1 row; there are too few samples" in done.stderr
    assert "--accuracy" not in tailboard(*asked, "--accuracy", "99%").stderr


def test_n17_host_names_no_second_host(tmp_path: Path) -> None:
    """As a filter it made all hosts of the cluster one: p99 63.7 ms where ceph-a has 1.29 ms."""
    for command, status in (("percentiles", 2), ("inspect", 2)):
        done = tailboard(command, EXAMPLE, "--host", "ceph-a")
        assert done.returncode == status, done
        assert "--host ceph-a would call 3 hosts alike (ceph-a, ceph-b, ceph-c)" in done.stderr
        assert "--where host=ceph-a selects one of them, --host-alias ceph-a=NAME renames one" in done.stderr
    one = sorted(EXAMPLE.rglob("output.*_clat_hist.*.ceph-b.gz"))
    done = tailboard("percentiles", *map(str, one), "--host", "web1", "--by", "host", "--step", "all", "--format", "csv")
    assert [row["host"] for row in rows(done)] == ["web1"]


@pytest.mark.slow
def test_from_and_to_cut_the_range() -> None:
    """At edges of stored windows the parts add up; between them a range is that of all windows it touches, and says so."""
    asked = ("percentiles", EXAMPLE, "--step", "all", "--format", "csv")
    first, last = "2026-11-20T21:00:34Z", "2026-11-20T21:01:04Z"
    part = rows(tailboard(*asked, "--from", first, "--to", last))
    before, after = rows(tailboard(*asked, "--to", first)), rows(tailboard(*asked, "--from", last))
    between = tailboard(*asked, "--from", "+29.6s", "--to", "+59.1s")
    assert rows(between) == part and "moved to whole windows of 1s: --from to +29.542s, --to to +59.542s" in between.stderr
    assert int(part[0]["count"]) + int(before[0]["count"]) + int(after[0]["count"]) == 59015


@pytest.mark.slow
def test_heatmap_and_distribution_add_up() -> None:
    cells = rows(tailboard("heatmap", EXAMPLE, "--step", "10s", "--by", "host", "--format", "csv"))
    assert list(cells[0]) == ["start", "end", "host", "lower", "upper", "count"]
    assert sum(int(cell["count"]) for cell in cells) == 59015
    bins = rows(tailboard("distribution", EXAMPLE, "--by", "host", "--format", "csv"))
    assert list(bins[0]) == ["host", "lower", "upper", "count", "cumulative"]
    last = {row["host"]: int(row["cumulative"]) for row in bins}
    assert sum(last.values()) == 59015
    for host in last:
        own = [row for row in bins if row["host"] == host]
        assert [int(row["lower"]) for row in own] == sorted({int(row["lower"]) for row in own})
        assert int(own[-1]["cumulative"]) == sum(int(row["count"]) for row in own)


@pytest.mark.parametrize("wanted", ["99", "99,50", "50.0,95"])
def test_fiologparser_format_has_its_median_whatever_is_asked(wanted: str) -> None:
    asked = ("percentiles", FIO / "randrw", "--step", "1s", "--time", "elapsed")
    done = tailboard(*asked, "--format", "fiologparser", "-p", wanted)
    assert done.returncode == 0, done.stderr
    head, *lines = (line.split(", ") for line in done.stdout.splitlines())
    assert head[4] == "median" and head.count("median") == 1
    medians = [float(row["p50"]) for row in rows(tailboard(*asked, "--format", "csv", "-p", "50"))]
    assert [float(line[4]) for line in lines] == medians


def test_fiologparser_format_has_its_columns() -> None:
    done = tailboard(
        "percentiles", FIO / "randrw", "--step", "1s", "--format", "fiologparser", "-p", "50,90,99", "--time", "elapsed"
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "end-time, samples, min, avg, median, 90%, 99%, max"
    assert all(len(line.split(", ")) == 8 for line in lines)
    assert sum(int(line.split(", ")[1]) for line in lines[1:]) == 1350


def test_table_is_for_people() -> None:
    done = tailboard("percentiles", EXAMPLE, "--step", "10s", "--by", "host")
    assert "completion latency" in done.stdout
    assert "error bound ± 0.78 %" in done.stdout
    assert "59,015 samples" in done.stdout
    assert re.search(r"ceph-b\s", done.stdout)
    assert "4.03s" in done.stdout


@pytest.mark.slow
def test_several_runs_are_named_unless_merged(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    for run, source in (("one", "randrw"), ("two", "coarse-1")):
        assert tailboard("load", FIO / source, "--run", run, "--store", store).returncode == 0
    named = rows(tailboard("percentiles", store, "--step", "all", "--format", "csv"))
    assert [(row["run"], row["count"]) for row in named] == [("one", "1350"), ("two", "690")]
    merged = rows(tailboard("percentiles", store, "--step", "all", "--format", "csv", "--merge-runs"))
    assert [row["count"] for row in merged] == ["2040"]
    assert "run" not in merged[0]
    only = rows(tailboard("percentiles", store, "--step", "all", "--format", "csv", "--run", "t*"))
    assert [row["count"] for row in only] == ["690"]
    assert tailboard("percentiles", store, "--run", "three").returncode == 3


def test_standard_input_is_a_source() -> None:
    log = FIO / "randrw" / "a_clat_hist.1.log"
    with log.open() as piped:
        done = tailboard("percentiles", "-", "--step", "all", "--format", "csv", stdin=piped)
    assert rows(done)[0]["count"] == "1204"


@pytest.mark.parametrize(("lines", "status"), [(None, 0), ("nonsense\n", 3), ("", 3)])
def test_a14_messages_about_standard_input_name_no_temporary_file(lines: str | None, status: int, tmp_path: Path) -> None:
    piped = tmp_path / "piped"
    piped.write_text((FIO / "randrw" / "a_clat_hist.1.log").read_text() if lines is None else lines)
    for words in ([], ["--format", "csv"]):
        with piped.open() as stdin:
            done = tailboard("percentiles", "-", *words, stdin=stdin)
        told = done.stdout + done.stderr
        assert done.returncode == status
        assert "standard input" in told and "tailboard-" not in told


def test_inspect_names_every_file() -> None:
    done = tailboard("inspect", EXAMPLE, "--format", "ndjson")
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    files = [path for path in EXAMPLE.rglob("*") if path.is_file()]
    assert sorted(entry["path"] for entry in entries) == sorted(map(str, files))
    logs = [entry for entry in entries if entry["format"] == "fio-hist"]
    assert {(entry["host"], entry["volume"], entry["job"]) for entry in logs} == {
        (f"ceph-{host}", volume, job) for host in "abc" for volume in "01" for job in "12"
    }
    assert all(entry["ops"] == ["read", "write"] and entry["rows"] == entry["accepted"] for entry in logs)
    shown = tailboard("inspect", EXAMPLE)
    assert "fio says N = 41607" in shown.stdout
    assert "tailboard 41607" in shown.stdout
    assert "within 132 ms" in shown.stdout


@pytest.mark.slow
def test_export_holds_every_sample(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    tailboard("load", EXAMPLE, "--run", EXAMPLE.name, "--store", store)
    stored = rows(tailboard("export", store))
    read = rows(tailboard("export", EXAMPLE))
    assert sum(int(row["count"]) for row in stored) == 59015
    key = lambda row: tuple(row.values())  # noqa: E731
    assert sorted(stored, key=key) == sorted(read, key=key)


def test_runs_list_show_delete_and_mark(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    tailboard("load", *histogram_files(FIO / "randrw"), "--run", "nightly-1", "--store", store, "--label", "kernel=6.9")
    (listed,) = [
        json.loads(line) for line in tailboard("runs", "list", "--store", store, "--format", "ndjson").stdout.splitlines()
    ]
    assert (listed["run"], listed["state"], listed["step"], listed["samples"]) == ("nightly-1", "complete", "1s", 1350)
    assert tailboard("mark", "--store", store, "--run", "nightly-1", "--at", "+2s", "osd.3 down").returncode == 0
    shown = json.loads(tailboard("runs", "show", "nightly-1", "--store", store).stdout)
    assert shown["labels"] == {"kernel": "6.9"}
    assert [mark["text"] for mark in shown["marks"]] == ["osd.3 down"]
    assert shown["marks"][0]["at_ns"] == shown["start_ns"] + 2_000_000_000
    grouped = rows(tailboard("percentiles", store, "--by", "kernel", "--step", "all", "--format", "csv"))
    assert grouped[0]["kernel"] == "6.9"
    assert tailboard("runs", "delete", "nightly-1", "--store", store, stdin=subprocess.DEVNULL).returncode == 2
    assert tailboard("runs", "delete", "nightly-1", "--store", store, "--yes").returncode == 0
    assert tailboard("runs", "list", "--store", store, "--format", "ndjson").stdout == ""


def test_default_store_is_named_by_the_environment(tmp_path: Path) -> None:
    env = {"TAILBOARD_STORE": f"sqlite:{tmp_path / 'env.db'}"}
    assert tailboard("load", FIO / "randrw", "--run", "r", env=env).returncode == 0
    assert rows(tailboard("percentiles", "--step", "all", "--format", "csv", env=env))[0]["count"] == "1350"
    assert tailboard("load", FIO / "randrw", "--run", "r", cwd=tmp_path).returncode == 0
    assert (tmp_path / "tailboard.db").is_file()


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def refused(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("percentiles", "nowhere"), 3, "nowhere: no such file or folder"),
        (("load", "nowhere", "--run", "r"), 3, "no such file or folder"),
        (("percentiles", "sqlite:none.db"), 4, "there is no store at sqlite:none.db: name files, or load some first"),
        (("percentiles",), 4, "there is no store at sqlite:tailboard.db"),
        (("percentiles", "http://127.0.0.1:1"), 4, "connection refused: is Elasticsearch running there?"),
        (("percentiles", "sqlite:"), 2, "needs the path of a file"),
        (("percentiles", EXAMPLE, "--by", "colour"), 2, "no label 'colour' here: there are"),
        (("percentiles", EXAMPLE, "--where", "host"), 2, "LABEL=VALUE"),
        (("percentiles", EXAMPLE, "--where", "host=osd9"), 3, "no host matches osd9: there are ceph-a, ceph-b, ceph-c"),
        (("percentiles", EXAMPLE, "--where", "op=trim"), 3, "no op matches trim: there are read, write"),
        (("percentiles", EXAMPLE, "--run", "other"), 3, "there is cbt-archive/00000000/id-9b5d006f"),
        (("percentiles", EXAMPLE, "-p", "101"), 2, "not a percentile"),
        (("percentiles", EXAMPLE, "-p", "fifty"), 2, "'fifty' is not a percentile"),
        (("percentiles", EXAMPLE, "--step", "10"), 2, "is not a duration"),
        (("percentiles", EXAMPLE, "--step", "100ms"), 2, "finer than the rows (1s)"),
        (("percentiles", EXAMPLE, "--from", "yesterday"), 2, "is not a time"),
        (("percentiles", EXAMPLE, "--accuracy", "much"), 2, "--accuracy takes a percentage"),
        (("percentiles", EXAMPLE, "--input-format", "xml"), 2, "no input format 'xml'"),
        (("percentiles", EXAMPLE, "--host-offset", "h1=soon"), 2, "--host-offset takes HOST=MS"),
        (("percentiles", EXAMPLE, "sqlite:x.db"), 2, "not both"),
        (("distribution", EXAMPLE, "--hgrm", "none.hgrm:us"), 3, "none.hgrm: there is no such file"),
        (("distribution", EXAMPLE, "--sla", "none.txt:ms"), 3, "none.txt: there is no such file"),
        (("percentiles", EXAMPLE, "--input-format", "none.yml"), 3, "none.yml: there is no such file"),
        (("report", EXAMPLE, "--marks", "none.csv"), 3, "none.csv: there is no such file"),
        (("check", "none.yml", EXAMPLE), 3, "none.yml: there is no such file"),
        (("replay", "none.ndjson"), 2, "replay takes a file of refused documents and the server"),
        (("load", EXAMPLE, "--run", "a*"), 2, "plain name"),
        (("load", EXAMPLE), 2, "--run"),
        (("fly",), 2, "fly"),
        (("percentiles", EXAMPLE, "--nonsense"), 2, "--nonsense"),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, tuple) else None,
)
def test_each_mistake_gives_a_sentence_and_its_status(words: tuple[object, ...], status: int, told: str, tmp_path: Path) -> None:
    refused(tailboard(*words, cwd=tmp_path), status, told)


def test_empty_folder_text_file_and_garbage(tmp_path: Path) -> None:
    refused(tailboard("percentiles", tmp_path), 3, "there is no file to read")
    (tmp_path / "notes.txt").write_text("buy milk\n")
    refused(tailboard("percentiles", tmp_path / "notes.txt"), 3, "no latency log of a known format")
    (tmp_path / "notes_clat_hist.1.log").write_text("buy milk\nand bread\n")
    refused(tailboard("percentiles", tmp_path), 3, "notes_clat_hist.1.log:1:", "not a fio histogram")
    (tmp_path / "empty_clat_hist.1.log").write_text("")
    assert tailboard("percentiles", tmp_path / "empty_clat_hist.1.log").returncode == 3


def test_one_bad_file_does_not_cost_the_others(tmp_path: Path) -> None:
    shutil.copytree(FIO / "randrw", tmp_path / "logs")
    (tmp_path / "logs" / "a_clat_hist.2.log").write_text("505, 94508288599200, 0, 4096, 0\n")
    done = tailboard("percentiles", tmp_path / "logs", "--step", "all", "--format", "csv")
    assert rows(done)[0]["count"] == "1350"
    assert "log_compression destroys them" in done.stderr
    store = f"sqlite:{tmp_path / 's.db'}"
    assert tailboard("load", tmp_path / "logs", "--run", "r", "--store", store).returncode == 0
    assert tailboard("load", tmp_path / "logs", "--run", "s", "--store", store, "--strict").returncode == 3


def as_nobody(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without root's power over modes; modules are imported before, from wherever they are."""
    script = (
        "import os, sys, ingest.cli, ingest.cli.load, ingest.cli.percentiles, ingest.cli.export, ingest.cli.inspect\n"
        "import ingest.load.load, ingest.store.sqlite.store, ingest.query.files, ingest.query.percentiles, ingest.view.text, orjson, yaml, rich.table\n"
        "import ingest.read.totals, ingest.core.units, heapq, csv, ingest.query.streaming\n"
        "if os.geteuid() == 0:\n    os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(ingest.cli.run(sys.argv[1:]))\n"
    )
    return subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=600)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can enter, with everything above it: pytest closes its own to others whenever it is started."""
    with TemporaryDirectory(prefix="tailboard-open-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.slow
def test_no_permission_is_said(open_folder: Path) -> None:
    shutil.copytree(FIO / "randrw", open_folder / "logs")
    (open_folder / "logs" / "a_clat_hist.1.log").chmod(0)
    done = as_nobody("percentiles", open_folder / "logs" / "a_clat_hist.1.log", cwd=open_folder)
    refused(done, 3, "no permission to read it")
    (open_folder / "logs").chmod(0)
    done = as_nobody("percentiles", open_folder / "logs", cwd=open_folder)
    (open_folder / "logs").chmod(0o755)
    refused(done, 3, "no permission")


@pytest.mark.slow
def test_what_lies_in_a_closed_folder_is_refused_and_said(open_folder: Path) -> None:
    shutil.copytree(FIO / "randrw", open_folder / "logs" / "h1")
    shutil.copytree(FIO / "randrw", open_folder / "logs" / "h2")
    (open_folder / "logs" / "h2").chmod(0)
    done = as_nobody("percentiles", open_folder / "logs", "--step", "all", "--format", "csv", cwd=open_folder)
    inside = as_nobody("percentiles", open_folder / "logs" / "h2" / "a_clat_hist.1.log", cwd=open_folder)
    store = as_nobody("percentiles", f"sqlite:{open_folder / 'logs' / 'h2' / 's.db'}", cwd=open_folder)
    (open_folder / "logs" / "h2").chmod(0o755)
    assert done.returncode == 0 and "h2: no permission to list this folder: its files are missing" in done.stderr
    refused(inside, 3, "no permission to look at it")
    refused(store, 4, "no store")


@pytest.mark.slow
def test_unwritable_and_read_only_stores(open_folder: Path) -> None:
    folder = open_folder / "kept"
    folder.mkdir()
    assert tailboard("load", FIO / "randrw", "--run", "r", "--store", f"sqlite:{folder / 's.db'}").returncode == 0
    logs = open_folder / "logs"
    shutil.copytree(FIO / "randrw", logs)
    folder.chmod(0o555)
    for file in folder.iterdir():
        file.chmod(0o444)
    done = as_nobody("percentiles", f"sqlite:{folder / 's.db'}", "--step", "all", "--format", "csv", cwd=folder)
    assert rows(done)[0]["count"] == "1350"
    refused(as_nobody("load", logs, "--run", "r2", "--store", f"sqlite:{folder / 's.db'}", cwd=folder), 4, "s.db")
    refused(as_nobody("load", logs, "--run", "r", "--store", f"sqlite:{folder / 'new.db'}", cwd=folder), 4, "unable to open")


@pytest.mark.slow
def test_closed_pipe_ends_quietly() -> None:
    command = f"{sys.executable} -m ingest heatmap {EXAMPLE} --step 1s --format csv | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2


def test_relative_times_are_elapsed_and_never_a_false_clock(tmp_path: Path) -> None:
    log = tmp_path / "a_clat_hist.1.log"
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", log)
    found = rows(tailboard("percentiles", log, "--step", "1s", "--format", "csv"))
    assert [row["start"] for row in found] == ["0", "1", "2", "3", "4"]
    refused(tailboard("percentiles", log, "--format", "csv", "--time", "utc"), 2, "start of this run is not known", "--t0")
    told = rows(tailboard("percentiles", log, "--step", "1s", "--format", "csv", "--t0", "2026-11-20T12:00:00Z"))
    assert told[0]["start"] == "2026-11-20T12:00:00.000Z"
    os.utime(log, (1_800_000_000, 1_800_000_000))
    guessed = rows(tailboard("percentiles", log, "--step", "1s", "--format", "csv", "--t0", "mtime"))
    assert guessed[-1]["end"] == "2027-01-15T08:00:00.000Z"


def test_aliases_and_offsets_of_hosts() -> None:
    words = ("percentiles", FIO / "host-folders", "--step", "all", "--by", "host", "--format", "csv")
    plain = rows(tailboard(*words))
    assert [row["host"] for row in plain] == ["h1", "h2"]
    named = rows(tailboard(*words, "--host-alias", "h1=osd-1"))
    assert [row["host"] for row in named] == ["h2", "osd-1"]
    joined = rows(tailboard(*words, "--host-alias", "h2=h1"))
    assert [(row["host"], row["count"]) for row in joined] == [("h1", "1380")]
    moved = rows(tailboard(*words, "--host-offset", "h1=-250", "--where", "host=h1"))
    still = rows(tailboard(*words, "--where", "host=h1"))
    assert float(moved[0]["start"][-7:-1]) == pytest.approx((float(still[0]["start"][-7:-1]) - 0.25) % 60)


def test_the_heading_counts_what_the_rows_are_from(tmp_path: Path) -> None:
    """A log of another kind than that of the answer was counted as one of those that it is from."""
    store = f"sqlite:{tmp_path / 'a.db'}"
    assert tailboard("load", FIO / "coarse-3", "--run", "r", "--store", store).returncode == 0
    for source, where, told in (
        (FIO / "coarse-3", [], "total latency, whole range, 690 samples from 1 file,"),
        (FIO / "coarse-3", ["--where", "kind=completion"], "completion latency, whole range, 690 samples from 1 file,"),
        (
            FIO / "coarse-3",
            ["--by", "kind"],
            "completion, total latency, whole range, completion 690, total 690 samples from 2 files,",
        ),
        (store, [], "total latency, whole range, 690 samples from 2 series (rollups),"),
        (
            store,
            ["--by", "kind"],
            "completion, total latency, whole range, completion 690, total 690 samples from 4 series (rollups),",
        ),
        (
            ROOT / "tests" / "data" / "hdr" / "1.2.1-3-digits.hlog",
            ["--recorded-unit", "us"],
            "of hdr: latency, whole range, 10,000,214,430 samples from 1 file,",
        ),
    ):
        assert told in tailboard("percentiles", source, "--step", "all", *where).stdout
