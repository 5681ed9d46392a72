"""A map over forked processes: both cores read logs, whatever the interpreter lock says.

Threads were measured first: the readers make many short NumPy calls, and two threads handing the interpreter lock to and
fro took longer than one. Forked workers start in a few milliseconds, because everything is imported already; the process
pools of the standard library cost more to import than a whole worker does to run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import selectors
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ingest.core.errors import TailboardError

INDEX = struct.Struct("<I")
LENGTH = struct.Struct("<Q")
PIPE_ITEMS = 8192
READ_AT_ONCE = 1 << 20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT, LARGEST_KEPT = 128 << 20, 32 << 20


def fork_map(
    work: Callable[[Any], Iterator[Any]], items: Sequence[Any], jobs: int, last: Callable[[], Any] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (item number, result) for all that `work(item)` yields, as it comes; results of one item keep their order.

    Each process ends with `last()`, what it gathered over all its items, as the result of item `len(items)`.
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
    for first in range(0, len(items), PIPE_ITEMS):
        batch = items[first : first + PIPE_ITEMS]
        for number, result in _shared(work, batch, jobs, last):
            yield first + number if number < len(batch) else len(items), result


def _shared(
    work: Callable[[Any], Iterator[Any]], items: Sequence[Any], jobs: int, last: Callable[[], Any] | None
) -> Iterator[tuple[int, Any]]:
    take, give = os.pipe()
    os.write(give, b"".join(INDEX.pack(number) for number in range(len(items))))
    os.close(give)
    sys.stdout.flush()
    sys.stderr.flush()
    workers: dict[int, int] = {}
    try:
        for _ in range(min(jobs, len(items))):
            results, answer = os.pipe()
            child = os.fork()
            if not child:
                os.close(results)
                _serve(work, items, take, answer, last)
            os.close(answer)
            workers[results] = child
        yield from _collected(workers)
    finally:
        os.close(take)
        for results, child in workers.items():
            os.close(results)
            _stop(child)


def keep_freed_memory() -> None:
    """Have glibc keep what is freed for the next array: giving pages back and faulting them in again cost a tenth of a run."""
    try:
        allocator = ctypes.CDLL(None)
        allocator.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
        allocator.mallopt(M_TRIM_THRESHOLD, KEPT)
    except (OSError, AttributeError):  # another C library
        return


def _stop(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _serve(
    work: Callable[[Any], Iterator[Any]], items: Sequence[Any], take: int, answer: int, last: Callable[[], Any] | None
) -> None:
    """Work through items until none is left, then leave the process without any clean-up of the parent's."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while raw := os.read(take, INDEX.size):
            number = INDEX.unpack(raw)[0]
            try:
                for result in work(items[number]):
                    _send(answer, (number, result, None))
            except TailboardError as error:
                _send(answer, (number, None, error))
        if last is not None:
            try:
                _send(answer, (len(items), last(), None))
            except TailboardError as error:
                _send(answer, (len(items), None, error))
        status = 0
    except BrokenPipeError:
        pass
    except BaseException:  # noqa: BLE001  # the parent reports it; nothing may escape into its code
        import traceback

        _send(answer, (-1, None, traceback.format_exc()))
    finally:
        os._exit(status)


def _send(answer: int, message: object) -> None:
    data = pickle.dumps(message, protocol=5)
    view = memoryview(LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(answer, view) :]


def _collected(workers: dict[int, int]) -> Iterator[tuple[int, Any]]:
    """Yield what the workers send; a worker that has ended well is taken out of `workers`."""
    buffers = {results: bytearray() for results in workers}
    with selectors.DefaultSelector() as ready:
        for results in workers:
            ready.register(results, selectors.EVENT_READ)
        while buffers:
            for results in [key.fd for key, _ in ready.select()]:
                data = os.read(results, READ_AT_ONCE)
                buffers[results] += data
                yield from _messages(buffers[results])
                if data:
                    continue
                whole = not buffers.pop(results)
                ready.unregister(results)
                os.close(results)
                _, status = os.waitpid(workers.pop(results), 0)
                if status or not whole:
                    raise TailboardError("a worker process was killed in mid-work: is the machine out of memory?")


def _messages(buffer: bytearray) -> Iterator[tuple[int, Any]]:
    """Yield the complete messages at the front of a buffer and take them off."""
    while len(buffer) >= LENGTH.size:
        end = LENGTH.size + LENGTH.unpack_from(buffer)[0]
        if len(buffer) < end:
            return
        number, result, error = pickle.loads(bytes(buffer[LENGTH.size : end]))  # from our own fork
        del buffer[:end]
        if isinstance(error, TailboardError):
            raise error
        if error is not None:
            raise RuntimeError(f"a worker failed:\n{error}")
        yield number, result
