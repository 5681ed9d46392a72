"""Disks without room, places that take no writes, clocks that go backwards: a sentence, the right status, nothing half."""

from __future__ import annotations

import gzip
import random
import resource
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.query.question import Question
from ingest.store import open_store
from tests.live.feeding import HEAD, Clock, begun, log_lines
from tests.store.grounds import FIO, grounds, loaded
from tests.store.test_contract import EXAMPLE, SECOND, ZERO, answered

WRITING = {
    "csv": ["percentiles", str(EXAMPLE), "--step", "1s", "--format", "csv"],
    "every bin": ["export", str(EXAMPLE)],
    "a picture": ["heatmap", str(EXAMPLE), "--format", "png"],
    "a page": ["report", str(EXAMPLE), "-o", "-"],
}


def tailboard(words: list[str], **more) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "ingest", *words], stderr=subprocess.PIPE, text=True, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITING)
def test_output_that_finds_no_room_is_told(name: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = tailboard(WRITING[name], stdout=full)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1] == "tailboard: the output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.soak
def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    words = ["report", str(EXAMPLE), "-o", str(page)]
    done = tailboard(words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
    assert done.returncode == 3 and "cannot be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []
    page.write_text("the page of yesterday")
    page.chmod(0o640)
    tailboard(words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
    assert page.read_text() == "the page of yesterday"
    link = tmp_path / "link.html"
    link.symlink_to(page)
    assert tailboard([*words[:-1], str(link)]).returncode == 0
    assert link.is_symlink() and page.stat().st_size > 100_000 and page.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "report.html"]
    assert tailboard([*words[:-1], str(tmp_path / "no" / "folder.html")]).returncode == 3


MOUNTED = """
set -e
mount -t tmpfs -o size=8m tmpfs "$1"
cp "$2" "$1/s.db"
mount -o remount,ro "$1"
shift 2
exec "$@"
"""


def mounted(place: Path, store: Path, words: list[str]) -> subprocess.CompletedProcess:
    """Run a command where a read-only file system holds a copy of a store; a mount needs a right that not everybody has."""
    call = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(place), str(store), sys.executable, "-m", "ingest", *words]
    return subprocess.run(call, capture_output=True, text=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    with grounds("sqlite", tmp_path_factory.mktemp("store")) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        return ground.path


@pytest.mark.slow
def test_a_read_only_file_system_is_read_and_not_written(store: Path, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here: a read-only file system was not tried")
    url, page = f"sqlite:{tmp_path / 's.db'}", tmp_path / "report.html"
    read = mounted(tmp_path, store, ["percentiles", url, "--step", "10s", "--by", "host", "--format", "csv"])
    assert read.returncode == 0 and len(read.stdout.splitlines()) > 20, read.stderr
    for words, status, told in (
        (["load", str(EXAMPLE), "--run", "again", "--store", url], 4, "check that the folder exists and can be written to"),
        (["mark", "--run", "*", "--at", "+1s", "x", "--store", url], 4, "check that the folder exists and can be written to"),
        (["runs", "coarsen", "*", "--step", "10s", "--store", url], 4, "check that the folder exists and can be written to"),
        (
            ["load", str(EXAMPLE), "--run", "r", "--store", f"sqlite:{tmp_path / 'new.db'}"],
            4,
            "check that the folder exists and can be written to",
        ),
        (["report", url, "-o", str(page)], 3, "cannot be written: Read-only file system"),
    ):
        done = mounted(tmp_path, store, words)
        assert done.returncode == status and told in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_the_loaders_clock_may_go_backwards(kind: str, tmp_path: Path, monkeypatch, capsys) -> None:
    """What was loaded when is told, and decides nothing."""
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "a_clat_hist.1.log"
    lines = (FIO / "randrw" / "a_clat_hist.1.log").read_bytes().splitlines(keepends=True)
    with grounds(kind, tmp_path) as ground, grounds(kind, tmp_path) as clean:
        for year, many in ((2030, 2), (2001, 4), (1971, len(lines))):
            log.write_bytes(b"".join(lines[:many]))
            monkeypatch.setattr("ingest.store.records.datetime", clock_of(year))
            loaded(ground.url, [logs], reading=ZERO)
        assert loaded(ground.url, [logs], reading=ZERO).duplicate == {"already loaded": 1}
        loaded(clean.url, [logs], reading=ZERO)
        assert (ground.documents(), ground.rollups()) == (clean.documents(), clean.rollups())
        with open_store(ground.url) as found:
            assert [record.loaded[:4] for record in found.runs()] == ["1971"]


def clock_of(year: int) -> type[datetime]:
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None) -> datetime:
            return datetime(year, 1, 1, tzinfo=tz)

    return Clock


@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_stamps_may_go_backwards(kind: str, tmp_path: Path) -> None:
    """A clock that is put back in the middle of a run: nothing is lost, nothing is there twice, and loads converge."""
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = (FIO / "randrw" / "a_clat_hist.1.log").read_text().splitlines(keepends=True)
    (logs / "a_clat_hist.1.log").write_text("".join([*lines, *lines]))
    with grounds(kind, tmp_path) as ground:
        first = loaded(ground.url, [logs], reading=ZERO)
        counted = sum(one["count"] for one in ground.documents())
        assert counted == first.rows.samples == 2 * 1204
        assert loaded(ground.url, [logs], reading=ZERO).documents == 0
        rows = answered(ground.url, Question(step=10 * SECOND))
        assert sum(int(row.split(",")[2]) for row in rows[1:]) == counted


def test_a_damaged_store_is_told(store: Path, tmp_path: Path, capsys) -> None:
    damaged = tmp_path / "s.db"
    shutil.copy(store, damaged)
    with damaged.open("r+b") as out:
        out.seek(4096)
        out.write(gzip.compress(bytes(40_000)).ljust(60_000, b"\x17"))
    assert command(["percentiles", f"sqlite:{damaged}", "--step", "all"]) == 4
    told = capsys.readouterr().err
    assert "the file is damaged: load into a new store" in told and told.count("\n") == 1


def test_a_stamp_that_no_window_can_be_numbered_for_is_told(tmp_path: Path, capsys) -> None:
    """Windows of 100 ms are numbered for 108 years; the logs beside that of a clock gone mad are kept."""
    pytest.importorskip("pyarrow")
    told, logs, url = tmp_path / "d.yml", tmp_path / "logs", f"sqlite:{tmp_path}/s.db"
    told.write_text("start: start_us\nend: end_us\n")
    logs.mkdir()
    for name, second in (("mad", 4_000_000_000), ("good", 1_700_000_000)):
        (logs / f"{name}.csv").write_text(f"start_us,end_us\n{second}000000,{second}001100\n{second}000000,{second}001200\n")
    words = ["--run", "r", "--store", url, "--input-format", str(told), "--step"]
    assert command(["load", str(logs), *words, "100ms"]) == 0
    sentence = "mad.csv: not read: a time stamp more than 108 years from 1970: a larger --step holds it"
    assert sentence in capsys.readouterr().err
    assert command(["percentiles", url, "--step", "all", "--by", "process", "--format", "csv"]) == 0
    assert [line.split(",")[2:4] for line in capsys.readouterr().out.splitlines()[1:]] == [["good", "2"]]
    assert command(["load", str(logs), *words, "1s", "--replace"]) == 0
    assert command(["percentiles", url, "--step", "all", "--by", "process", "--format", "csv"]) == 0
    assert {tuple(line.split(",")[2:4]) for line in capsys.readouterr().out.splitlines()[1:]} == {("good", "2"), ("mad", "2")}


def test_such_a_stamp_ends_no_watch(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    lines = log_lines(random.Random(1), 5)
    (folder / "mad.hlog").write_text(HEAD.replace("17000", "41000") + "".join(lines))
    (folder / "good.hlog").write_text(HEAD + "".join(lines))
    with open_store(f"sqlite:{tmp_path}/s.db", write=True) as store:
        watch = begun(folder, store, Clock(), step_ns=SECOND // 10, force=True)
        said = [text for _ in range(3) for text in watch.cycle().said]
        assert (
            len([text for text in said if "mad.hlog is not read any further: a time stamp more than 108 years from 1970" in text])
            == 1
        )
        watch.cycle(last=True)
        account = watch.settle()
        assert account.rows.rows == 30 and [one.source for one in store.sources("r")] == ["hdr-log||||good", "hdr-log||||mad"]
