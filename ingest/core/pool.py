"""A map over forked processes: both cores read logs, whatever the interpreter lock says.

Threads were measured first: the readers make many short NumPy calls, and two threads handing the interpreter lock to and
fro took longer than one. Forked workers start in a few milliseconds, because everything is imported already; the process
pools of the standard library cost more to import than a whole worker does to run.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

PIPE_ITEMS = 8192
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT, LARGEST_KEPT, LARGEST_GIVEN = 128 << 20, 32 << 20, 4 << 20
_freed = {"is kept": False}  # what glibc was told last: it cannot be asked


def fork_map(
    work: Callable[[Any], Iterator[Any]],
    items: Sequence[Any],
    jobs: int,
    last: Callable[[], Any] | None = None,
    *,
    joining: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Yield (item number, result) for all that `work(item)` yields, as it comes; results of one item keep their order.

    Each process ends with `last()`, what it gathered over all its items, as the result of item `len(items)`.
    `joining`: this process works, too, as one of the jobs. That spares a fork and what it copies, a tenth of a run of 100 MB;
    it is for results that are small or come at the end, as a worker waits while nobody takes what it has.
    With one job or one item, or where there is no fork, the work is done here. A TailboardError raised by the work is
    raised here; a worker that dies otherwise raises TailboardError, too. Workers end when the caller stops listening.
    """
    if jobs < 2 or len(items) < 2 or not hasattr(os, "fork"):  # two are needed to share
        for number, item in enumerate(items):
            for result in work(item):
                yield number, result
        if last is not None:
            yield len(items), last()
        return
    from ingest.core.workers import shared  # a call of one file needs none

    for first in range(0, len(items), PIPE_ITEMS):
        batch = items[first : first + PIPE_ITEMS]
        # What this process gathers goes on over batches, and into forks: it works only where there is one.
        for number, result in shared(work, batch, jobs, last, joining=joining and len(items) <= PIPE_ITEMS):
            yield first + number if number < len(batch) else len(items), result


def keep_freed_memory() -> None:
    """Have glibc keep what is freed for the next array: giving pages back and faulting them in again cost a tenth of a run."""
    _freed["is kept"] = _allocate(LARGEST_KEPT, KEPT)


@contextmanager
def freed_memory_given_back() -> Iterator[None]:
    """Have glibc give back what is free now, and what is freed meanwhile: for work that holds much at once, after other work."""
    if not _freed["is kept"]:
        yield
        return
    _allocate(LARGEST_GIVEN, LARGEST_GIVEN)
    give_back_freed_memory()
    try:
        yield
    finally:
        keep_freed_memory()


def give_back_freed_memory() -> None:
    """Have glibc give back what is free now: for a thread that holds much at once, and cannot use what others have freed.

    What the thread frees itself is kept: to give that back again and again took it as long as its work.
    """
    if _freed["is kept"]:
        ctypes.CDLL(None).malloc_trim(0)


def _allocate(largest_kept: int, kept: int) -> bool:
    """Have glibc keep blocks of at most so many bytes, and so many free bytes; return whether it can."""
    try:
        allocator = ctypes.CDLL(None)
        allocator.mallopt(M_MMAP_THRESHOLD, largest_kept)
        allocator.mallopt(M_TRIM_THRESHOLD, kept)
    except (OSError, AttributeError):  # another C library
        return False
    return True
