"""A watch that goes on and on: its memory stays flat, its cycles stay short, and a hook is called for what has changed."""

from __future__ import annotations

import gc
import random
from pathlib import Path

import pytest

from ingest.live import heeding
from ingest.store import open_store
from tests.live.feeding import HEAD, Clock, answers, batch, begun, log_lines

PAGE = 4096
SPARE = 8 << 20


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def feed(folder: Path, logs: int, begin: int, end: int, payloads: list[str]) -> None:
    for number in range(logs):
        with (folder / f"x{number}.hlog").open("a") as out:
            if not begin:
                out.write(HEAD)
            for second in range(begin, end):
                out.write(f"Tag=read-st,{second}.000,1.000,0.0,{payloads[(second + number) % len(payloads)]}\n")


def watched(folder: Path, store_path: Path, logs: int, seconds: int, a_cycle: int) -> list[int]:
    """Watch logs through so many seconds, `a_cycle` of them at once; return the memory after each cycle."""
    lines = [line for line in log_lines(random.Random(3), 40, tags=("read-st",)) if line.startswith("Tag")]
    payloads = [line.rsplit(",", 1)[1].strip() for line in lines]
    folder.mkdir()
    sizes, clock = [], Clock()
    with open_store(f"sqlite:{store_path}", write=True) as store:
        watch = begun(folder, store, clock)
        for begin in range(0, seconds, a_cycle):
            feed(folder, logs, begin, begin + a_cycle, payloads)
            clock.seconds += a_cycle
            done = watch.cycle()
            while done.behind:
                done = watch.cycle()
            sizes.append(resident())
        assert sum(tail.account.rows for tail in watch.watching.tails.values()) == logs * seconds
        watch.cycle(last=True)
        watch.settle()
        assert not [text for text in watch.watching.said if "read live" in text]
    return sizes


@pytest.mark.soak
def test_a_quarter_of_an_hour_in_flat_memory(tmp_path: Path) -> None:
    sizes = watched(tmp_path / "logs", tmp_path / "s.db", logs=2, seconds=900, a_cycle=30)
    assert max(sizes[len(sizes) // 3 :]) - sizes[len(sizes) // 3] < SPARE
    assert answers(f"sqlite:{tmp_path / 's.db'}") == answers(batch(tmp_path / "logs", tmp_path / "batch.db"))


@pytest.mark.soak
def test_a_day_in_flat_memory(tmp_path: Path) -> None:
    sizes = watched(tmp_path / "logs", tmp_path / "s.db", logs=4, seconds=86_400, a_cycle=300)
    assert max(sizes[len(sizes) // 5 :]) - sizes[len(sizes) // 5] < SPARE
    assert answers(f"sqlite:{tmp_path / 's.db'}") == answers(batch(tmp_path / "logs", tmp_path / "batch.db"))


def test_a_hook_is_called_once_rollups_are_there(tmp_path: Path) -> None:
    from ingest.query.question import Question
    from tests.live.feeding import SECOND

    seen: list[tuple[str, int]] = []

    def after(store, run: str) -> None:
        seen.append((run, store.answer(Question(runs=(run,), step=SECOND)).samples))

    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    lines = log_lines(random.Random(4), 12, tags=("read-st",))
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        watch = begun(folder, store, clock, after=after)
        (folder / "x.hlog").write_text(HEAD + "".join(lines[:6]))
        watch.cycle()
        watch.cycle()  # nothing has come: it is not called
        with (folder / "x.hlog").open("a") as out:
            out.write("".join(lines[6:]))
        watch.cycle()
        total = sum(tail.account.samples for tail in watch.watching.tails.values())
        assert [run for run, _ in seen] == ["r", "r"] and 0 < seen[0][1] < seen[1][1] == total
        watch.settle()


def test_r5_what_runs_for_long_collects_garbage_though_commands_do_not() -> None:
    """Each look at the files leaves circles behind; with the thresholds of a short command none of them ever went: 6 kB a move."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 50)
    try:
        with heeding(lambda *_: None):
            assert gc.get_threshold() == (700, 10, 10)
        assert gc.get_threshold() == (100_000, 50, 50)
    finally:
        gc.set_threshold(*before)
