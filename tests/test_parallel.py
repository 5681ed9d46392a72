"""Work of forked processes: what comes back is what was sent, in order, texts and arrays of any size."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ingest.core import pool, workers
from ingest.core.errors import TailboardError
from ingest.core.pool import fork_map
from ingest.store.elastic.documents import Chunk


def results(number: int) -> Iterator[tuple[list[Chunk], np.ndarray, str] | None]:
    sizes = (number * 40_001, 1, 0)
    yield [Chunk(bytes([number]) * size, number) for size in sizes], np.arange(number * 500), "x" * number
    yield None


@pytest.mark.parametrize("joining", [False, True])
@pytest.mark.parametrize("pipe", [4096, 1 << 20])
def test_bodies_and_arrays_come_back_as_they_were(pipe: int, joining: bool, monkeypatch) -> None:
    monkeypatch.setattr(workers, "PIPE_BYTES", pipe)
    found: dict[int, list] = {}
    for number, result in fork_map(results, range(12), 2, lambda: "last", joining=joining):
        found.setdefault(number, []).append(result)
    assert found.pop(12) == ["last", "last"]
    assert sorted(found) == list(range(12))
    for number, (first, second) in found.items():
        chunks, array, text = first
        expected = next(results(number))
        assert expected is not None
        assert chunks == expected[0] and all(isinstance(chunk.body, bytes) for chunk in chunks)
        assert np.array_equal(array, expected[1]) and text == expected[2] and second is None


@pytest.mark.slow
@pytest.mark.parametrize("joining", [False, True])
@pytest.mark.parametrize("batch", [7, 8192])
def test_what_each_process_gathers_counts_once(batch: int, joining: bool, monkeypatch, tmp_path: Path) -> None:
    """Also where there are more items than a pipe holds the numbers of, and forks follow on forks."""
    monkeypatch.setattr(pool, "PIPE_ITEMS", batch)
    gathered: list[int] = []
    begun = tmp_path / "begun"

    def work(number: int) -> Iterator[int]:
        if number:
            begun.touch()
        while not begun.exists():  # so that each process gets some, however late it starts
            time.sleep(0.001)
        gathered.append(number)
        yield os.getpid()

    found = list(fork_map(work, range(40), 2, lambda: list(gathered), joining=joining))
    assert sorted(number for number, _ in found if number < 40) == list(range(40))
    assert sorted(each for number, result in found if number == 40 for each in result) == list(range(40))
    processes = {pid for number, pid in found if number < 40}
    assert len(processes) > 1
    assert (os.getpid() in processes) is (joining and batch > 40)


@pytest.mark.parametrize("failing", range(2))
def test_an_error_ends_all_processes_wherever_it_is_met(failing: int, monkeypatch, tmp_path: Path) -> None:
    me, fork, children, begun = os.getpid(), os.fork, [], tmp_path / "begun"
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])

    def work(number: int) -> Iterator[int]:
        if (os.getpid() == me) is bool(failing):
            begun.touch()
            raise TailboardError(f"item {number}")
        while not begun.exists():  # the other process may be late: this one would do all by itself
            time.sleep(0.001)
        yield number

    with pytest.raises(TailboardError, match="item"):
        list(fork_map(work, range(8), 2, joining=True))
    (child,) = children
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


@pytest.mark.parametrize("written", [4, 8, 60])  # of the length in front, all of that, and some of what follows
def test_a_worker_that_dies_in_the_middle_of_a_message_is_told(written: int) -> None:
    def work(number: int) -> Iterator[Chunk]:
        real = os.writev

        def half(pipe: int, views: list[memoryview]) -> int:
            real(pipe, [b"".join(views)[:written]])
            os._exit(0)

        os.writev = half  # type: ignore[assignment]  # in the process of the worker
        yield Chunk(b"x" * 100, number)

    with pytest.raises(TailboardError, match="killed in mid-work"):
        list(fork_map(work, range(2), 2))


def test_a_worker_that_is_killed_while_this_process_works_is_told() -> None:
    me = os.getpid()

    def work(number: int) -> Iterator[int]:
        if os.getpid() != me:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        yield number

    with pytest.raises(TailboardError, match="killed in mid-work"):
        list(fork_map(work, range(3), 2, joining=True))


def test_freed_memory_is_given_back_for_a_while_where_it_was_kept_and_never_else(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(pool, "_allocate", lambda *sizes: told.append(sizes) or True)
    monkeypatch.setitem(pool._freed, "is kept", False)
    with pool.freed_memory_given_back():
        assert not told
    pool.keep_freed_memory()
    with pool.freed_memory_given_back():
        assert told == [(pool.LARGEST_KEPT, pool.KEPT), (pool.LARGEST_GIVEN, pool.LARGEST_GIVEN)]
    assert told[2:] == [(pool.LARGEST_KEPT, pool.KEPT)]
