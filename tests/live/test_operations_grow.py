"""Logs of single operations that grow: read anew from their beginning, and at any moment what a load makes of their whole lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.live.watch import tail as again
from ingest.read import operation_log
from ingest.read.described.description import description_of
from ingest.store import open_store
from tests.live.feeding import EPOCH, HLOG, OBJECTS, OPERATIONS, YCSB, Clock, Kind, Writer, answers, batch, begun
from tests.live.test_watch import schedule
from tests.store.grounds import grounds
from tests.store.test_sqlite import everything

TOLD = "time: done_ms\nlatency: took\nunit: {time: ms, latency: us}\nlabels: {op: type}\n"
IN_FLIGHT, SCHEDULED = {"attribution": "in-flight"}, {"reading": {"rate": "7.5"}}
CASES = {
    "operations": (OPERATIONS, "sqlite", 0, {}),
    "operations in Elasticsearch": (OPERATIONS, "double", 1, {}),
    "operations by schedule": (OPERATIONS, "sqlite", 2, SCHEDULED),
    "operations in flight": (OPERATIONS, "double", 3, IN_FLIGHT),
    "described objects": (OBJECTS, "sqlite", 4, {}),
    "YCSB": (YCSB, "double", 5, {}),
    "YCSB in flight": (YCSB, "sqlite", 6, IN_FLIGHT),
    "HdrHistogram in flight": (HLOG, "sqlite", 7, IN_FLIGHT),
}
QUICK = ("operations", "operations in flight", "described objects", "YCSB in flight")


@pytest.fixture
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "REST", 0)


@pytest.fixture
def writing(tmp_path: Path):
    """Return what makes a log in the folder that is watched."""
    made = []

    def make(name: str, seed: int, rows: int, log: Kind = OPERATIONS) -> Writer:
        made.append(Writer(tmp_path / "logs" / name, random.Random(seed), rows, kind=log))
        return made[-1]

    yield make
    for writer in made:
        writer.stream.close()


def scheduled(log: Kind, kind: str, seed: int, words: dict[str, object], folder: Path, cycles: int = 30) -> None:
    """Let logs of a kind grow at random; those of events without their offsets, which are stored at the end."""
    if log in (OBJECTS, YCSB):
        pytest.importorskip("pyarrow")
    if log is OBJECTS:
        told = folder / "events.yml"
        told.write_text(TOLD)
        words = {**words, "reading": {"description": description_of(str(told))}}
    with grounds(kind, folder) as ground:
        schedule(seed, folder / "logs", ground.url, folder, cycles, cycles // 8, log, offsets=False, **words)


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.usefixtures("without_rest")
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for name in CASES])
def test_whatever_happens_to_the_logs_the_store_answers_as_a_load_of_them(name: str, tmp_path: Path) -> None:
    scheduled(*CASES[name], tmp_path)


@pytest.mark.soak
@pytest.mark.usefixtures("without_rest")
@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in CASES for seed in range(100, 110)])
def test_whatever_happens_ten_times(name: str, seed: int, tmp_path: Path) -> None:
    log, kind, _, words = CASES[name]
    scheduled(log, kind, seed, words, tmp_path, cycles=60)


@pytest.mark.usefixtures("without_rest")
def test_offsets_come_at_the_end(tmp_path: Path, writing) -> None:
    pytest.importorskip("pyarrow")
    writer = writing("x.raw", 1, 20, YCSB)
    with open_store(f"sqlite:{tmp_path}/a.db", write=True) as store:
        watch = begun(tmp_path / "logs", store, Clock())
        for _ in range(6):
            writer.write(1000)
            watch.cycle()
        writer.rest()
        watch.cycle(last=True)
        assert watch.settle().offset_documents > 10
    batch(tmp_path / "logs", tmp_path / "b.db")
    assert everything(tmp_path / "a.db") == everything(tmp_path / "b.db")


@pytest.mark.usefixtures("without_rest")
def test_half_a_number_is_not_a_number(tmp_path: Path) -> None:
    path, clock = tmp_path / "logs" / "x.csv", Clock()
    path.parent.mkdir()
    path.write_text(f"start_us,op,latency_us\n{EPOCH}000000,read,500\n{EPOCH}100000,read,77")
    with open_store(f"sqlite:{tmp_path}/a.db", write=True) as store:
        watch = begun(path.parent, store, clock)
        assert watch.cycle().samples == 1
        with path.open("a") as stream:
            stream.write("000\n")
        assert watch.cycle().samples == 1
        assert float(answers(f"sqlite:{tmp_path}/a.db")[3][1].split(",")[8]) == 77_000_000


@pytest.mark.usefixtures("without_rest")
def test_what_came_before_a_log_was_deleted_is_read(tmp_path: Path, writing) -> None:
    clock, url = Clock(), f"sqlite:{tmp_path}/a.db"
    writer = writing("x.csv", 2, 20)
    writing("y.csv", 3, 20).rest()
    with open_store(url, write=True) as store:
        watch = begun(tmp_path / "logs", store, clock)
        writer.write(4000)
        watch.cycle()
        writer.rest()
        expected = answers(batch(tmp_path / "logs", tmp_path / "b.db"))
        writer.path.unlink()
        for _ in range(3):
            clock.seconds += 1
            watch.cycle()
        assert answers(url) == expected
        watch.cycle(last=True)
        watch.settle()
    assert answers(url) == expected


@pytest.mark.usefixtures("without_rest")
def test_a_log_that_cannot_be_read_any_more_holds_no_other_up(tmp_path: Path, writing, monkeypatch) -> None:
    monkeypatch.setattr(operation_log, "MOST_OPERATIONS", 100)
    writers = [writing("x.csv", 4, 20), writing("y.csv", 4, 9)]
    with open_store(f"sqlite:{tmp_path}/a.db", write=True) as store:
        watch = begun(tmp_path / "logs", store, Clock())
        for writer in writers:
            writer.write(2000)
        watch.cycle()
        for writer in writers:
            writer.rest()
        watch.cycle()
        watch.cycle(last=True)
        account = watch.settle()
    assert account.rows.samples == 9 * 8
    assert any("more than 100 operations in one log" in entry.caveat.sentence for entry in account.rows.missing)


@pytest.mark.slow
def test_reading_takes_a_tenth_of_the_time(tmp_path: Path, writing, monkeypatch) -> None:
    now = [0.0]

    def slowly(*words, real=again.whole_windows, **more):
        now[0] += 2
        return real(*words, **more)

    monkeypatch.setattr(again.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(again, "whole_windows", slowly)
    writers = [writing("x.csv", 5, 500), writing("y.csv", 6, 500)]
    clock, times = Clock(), []
    with open_store(f"sqlite:{tmp_path}/a.db", write=True) as store:
        watch = begun(tmp_path / "logs", store, clock)
        for _ in range(200):
            for writer in writers:
                writer.write(300)
            done = watch.cycle()
            assert not done.behind
            now[0] += 1
            clock.seconds += 1
            if done.rows:
                times.append(now[0])
        assert all(clock() - tail.heard < 2 for tail in watch.watching.tails.values())
        assert 8 <= len(times) <= 13
        for writer in writers:
            writer.rest()
        watch.cycle(last=True)
        watch.settle()
        assert not [text for text in watch.watching.said if "read live" in text]
