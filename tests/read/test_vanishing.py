"""A file that goes just before it is looked at for the n-th time, for every n: it is named, and the files beside it are read."""

from __future__ import annotations

import builtins
import gzip
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest.cli import run
from ingest.live.watch.cycle import WatchCycle
from ingest.live.watch.state import Watching
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions, Source
from ingest.store import open_store
from ingest.store.records import stored_samples
from tests.oracles import hdr

DATA = Path(__file__).parents[1] / "data"
KEPT, KEPT_NAME = "fio/coarse-6/a_clat_hist.1.log", "kept_clat_hist.9.log"
READING = ReadOptions(run="r", recorded_unit_ns=1000)
VICTIMS = {
    "histogram log": ("fio/coarse-5/a_clat_hist.1.log", "x_clat_hist.2.log"),
    "raw log": ("raw/unix-epoch/a_clat.1.log", "x_clat.3.log"),
    "log of means": ("fio/means-500/a_clat.1.log", "x_clat.4.log"),
    "its counts": ("fio/means-500/a_iops.1.log", "x_iops.4.log"),
    "json": ("fio/coarse-5/a.json", "x.json"),
    "plain json": ("fio/plain-json/a.json", "x.json"),
    "compressed log": ("fio/coarse-5/a_clat_hist.1.log", "x_clat_hist.2.log.gz"),
    "hdr": ("hdr/1.2.1-2-digits.hlog", "x.hlog"),
    "ycsb": ("raw/ycsb/raw.csv", "x.txt"),
    "pgbench": ("histograms/pgbench15_plain.log", "pgbench_log.1"),
    "otlp": ("histograms/otlp_delta.jsonl", "x.jsonl"),
    "sysbench": ("histograms/sysbench1020_histogram.txt", "x.txt"),
    "prometheus": ("histograms/prom_openmetrics.txt", "prom.txt"),
    "asbench": ("histograms/asbench_histogram.txt", "x.txt"),
    "snapshots": ("histograms/hdr_snapshot_ticks.ndjson", "x.ndjson"),
    "unknown": ("tables/biosnoop.txt", "x.txt"),
}


@contextmanager
def vanishing(path: Path, turn: int, away: Callable[[Path], None] = Path.unlink) -> Iterator[list[int]]:
    """Take a file away just before it is looked at or opened for the `turn`-th time; give how often it was, the only entry."""
    looks = [0]
    own = {(os, "stat"): os.stat, (os, "open"): os.open, (io, "open"): io.open, (builtins, "open"): builtins.open}

    def looking(function: Callable) -> Callable:
        def look(file: object, *rest: object, **words: object) -> object:
            if isinstance(file, str | os.PathLike) and os.fspath(file) == str(path):
                looks[0] += 1
                if looks[0] == turn:
                    away(path)
            return function(file, *rest, **words)

        return look

    for (module, name), function in own.items():
        setattr(module, name, looking(function))
    try:
        yield looks
    finally:
        for (module, name), function in own.items():
            setattr(module, name, function)


def folder_with(folder: Path, victim: str) -> Path:
    """Fill a folder with a log that stays and the victim, and return the victim."""
    source, name = VICTIMS[victim]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(DATA / KEPT, folder / KEPT_NAME)
    content = (DATA / source).read_bytes()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    (folder / name).write_bytes(content)
    if victim == "its counts":
        shutil.copy(DATA / VICTIMS["log of means"][0], folder / "x_clat.4.log")
    return folder / name


def turns(folder: Path, victim: str, asked: Callable[[Path], None], away: Callable[[Path], None] = Path.unlink) -> int:
    """Ask with the victim going at its first look, its second, and so on until it is not looked at so often; return how often."""
    for turn in range(1, 200):
        path = folder_with(folder, victim)
        with vanishing(path, turn, away) as looks:
            asked(folder)
        if looks[0] < turn:
            return turn
    raise AssertionError("looked at without end")


def kept_samples(sources: Iterable[Source]) -> int:
    return next(source for source in sources if source.path.name == KEPT_NAME).context.account.samples


def named(name: str, texts: Iterable[object]) -> bool:
    return any(name in str(text) for text in texts)


@pytest.mark.parametrize("victim", VICTIMS)
def test_r4_a_file_that_goes_at_any_moment_costs_an_answer_its_own_samples_and_is_named(tmp_path: Path, victim: str) -> None:
    def asked(folder: Path) -> None:
        files = Files([folder], READING, jobs=1)
        answer = files.answer(Question(step="all"))
        assert answer.parts
        assert kept_samples(files.found.sources) == 604
        name = VICTIMS[victim][1]
        if not (folder / name).exists():
            read = [source for source in files.found.sources if source.context.account.samples]
            assert named(name, (*files.found.skipped, *(entry.caveat for entry in files.account.missing), *read)), (
                "it went, and nobody says so"
            )

    assert turns(tmp_path / "f", victim, asked) > 1


@pytest.mark.cases(4)
@pytest.mark.parametrize("victim", VICTIMS)
def test_r4_a_file_that_goes_at_any_moment_costs_a_load_its_own_samples(tmp_path: Path, victim: str) -> None:
    def asked(folder: Path) -> None:
        url = f"sqlite:{tmp_path / 'db'}"
        with open_store(url, write=True) as store:
            account = load([folder], store, LoadOptions(READING, jobs=1))
        assert kept_samples(account.sources) == 604
        (tmp_path / "db").unlink()

    assert turns(tmp_path / "f", victim, asked) > 1


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
def test_r4_a_watch_goes_on_when_a_file_goes_at_any_moment(tmp_path: Path, victim: str) -> None:
    def asked(folder: Path) -> None:
        with open_store(f"sqlite:{tmp_path / 'db'}", write=True) as store:
            options = LoadOptions(READING, jobs=1)
            running = WatchCycle(Watching.begun([folder], store, options))
            for _ in range(3):
                running.cycle()
            account = running.settle()
            records = [record for run in store.runs() for record in store.sources(run.run)]
            assert sum(stored_samples(record) for record in records if record.path.endswith(KEPT_NAME)) == 604
            assert account.runs
        (tmp_path / "db").unlink()

    assert turns(tmp_path / "f", victim, asked) > 1


def test_r4_a_copy_that_gets_its_own_name_at_any_moment_of_a_watch_is_counted_once(tmp_path: Path) -> None:
    """As rsync writes: `.NAME.RANDOM`, then renamed."""
    content = (DATA / VICTIMS["histogram log"][0]).read_bytes()
    own = "x_clat_hist.2.log.h1"
    for turn in range(1, 200):
        folder = folder_with(tmp_path / "f", "unknown").parent
        copy = folder / f".{own}.aB3x9Z"
        copy.write_bytes(content)
        with (
            open_store(f"sqlite:{tmp_path / 'db'}", write=True) as store,
            vanishing(copy, turn, lambda path: path.rename(path.with_name(own))) as looks,
        ):
            running = WatchCycle(Watching.begun([folder], store, LoadOptions(READING, jobs=1)))
            for _ in range(4):
                running.cycle()
            if copy.exists():
                copy.rename(copy.with_name(own))
            running.settle()
            held = {Path(record.path).name: stored_samples(record) for record in store.sources("r")}
        assert held == {KEPT_NAME: 604, own: 605}
        (tmp_path / "db").unlink()
        if looks[0] < turn:
            assert turn > 1
            return
    raise AssertionError("looked at without end")


@pytest.mark.parametrize("victim", VICTIMS)
def test_r4_inspect_goes_on_when_a_file_goes_at_any_moment(tmp_path: Path, victim: str, capsys: pytest.CaptureFixture) -> None:
    def asked(folder: Path) -> None:
        assert run(["inspect", str(folder), "--jobs", "1", "--recorded-unit", "us"]) == 0
        assert VICTIMS[victim][1] in capsys.readouterr().out

    assert turns(tmp_path / "f", victim, asked) > 1


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("handled", ["renamed", "copied and emptied", "deleted", "emptied"])
def test_r4_a_log_that_is_rotated_at_any_moment_of_a_watch_is_counted_once(tmp_path: Path, handled: str) -> None:
    """One that was renamed after the files were listed was "replaced by the logs beside it", and its rows were deleted.

    So was one that was emptied then. What nobody has read of it is lost; all else is kept.
    """
    head = "#[StartTime: 1700000000.000 (seconds since epoch)]\n#[Logged with jHiccup]\n"
    lines = [hdr.line(f"{at}.000", "1.000", {100 + at: 3, 300: 1}, digits=2) for at in range(12)]

    def rotated(path: Path) -> None:
        if handled == "renamed":
            path.rename(path.with_name("x.hlog.1"))
        elif handled == "deleted":
            path.unlink()
        else:
            if handled != "emptied":
                shutil.copyfile(path, path.with_name("x.hlog.1"))
            path.write_bytes(b"")

    for turn in range(1, 200):
        folder = tmp_path / "f"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        log = folder / "x.hlog"
        (folder / "y.hlog").write_text(head + lines[0])
        log.write_text(head + "".join(lines[:4]))
        with open_store(f"sqlite:{tmp_path / 'db'}", write=True) as store:
            running = WatchCycle(Watching.begun([folder], store, LoadOptions(READING, step_ns=10**9, jobs=1)))
            running.cycle()
            with log.open("a") as out:
                out.write("".join(lines[4:8]))
            (folder / "z.hlog").write_text(head + lines[1])  # a new file, so that all are looked at
            with vanishing(log, turn, rotated) as looks:
                running.cycle()
            if looks[0] < turn:
                assert turn > 1
                return
            log.write_text(head + "".join(lines[8:]))
            for _ in range(3):
                running.cycle()
            running.settle()
            held = sum(stored_samples(record) for record in store.sources("r"))
        unread = 4 if handled == "emptied" else 0
        assert held in (4 * (12 + 2), 4 * (12 + 2 - unread)), (turn, running.watching.said)
        (tmp_path / "db").unlink()
    raise AssertionError("looked at without end")
