"""The forked processes of `parallel.fork_map`, and the pipes through which they hand on what they found."""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ingest.core.errors import TailboardError

INDEX, LENGTH = struct.Struct("<I"), struct.Struct("<Q")
PIPE_BYTES = 1 << 20
KILLED = "a worker process was killed in mid-work: is the machine out of memory?"


def shared(
    work: Callable[[Any], Iterator[Any]], items: Sequence[Any], jobs: int, last: Callable[[], Any] | None, *, joining: bool
) -> Iterator[tuple[int, Any]]:
    """Yield what `fork_map` does, of as many items as a pipe holds the numbers of: a process that is free takes the next.

    `joining`: this process is one of the jobs, and reads what the others send after each of its own items.
    """
    take, give = os.pipe()
    os.write(give, b"".join(INDEX.pack(number) for number in range(len(items))))
    os.close(give)
    sys.stdout.flush()
    sys.stderr.flush()
    workers: dict[int, int] = {}
    try:
        for _ in range(min(jobs, len(items)) - joining):
            results, answer = os.pipe()
            _widen(answer)
            child = os.fork()
            if not child:
                os.close(results)
                _serve(work, items, take, answer, last)
            os.close(answer)
            workers[results] = child
        with selectors.DefaultSelector() as ready:
            for results in workers:
                ready.register(results, selectors.EVENT_READ)
            for number, made in _jobs(work, items, take, last) if joining else ():
                for result in made():
                    yield number, result
                yield from _received(workers, ready, wait=False)
            yield from _received(workers, ready, wait=True)
    finally:
        os.close(take)
        for results, child in workers.items():
            os.close(results)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _jobs(
    work: Callable[[Any], Iterator[Any]], items: Sequence[Any], take: int, last: Callable[[], Any] | None
) -> Iterator[tuple[int, Callable[[], Iterable[Any]]]]:
    """Yield the number of each item that this process takes, with what makes its results; at the end what `last` gathered."""
    while raw := os.read(take, INDEX.size):
        number = INDEX.unpack(raw)[0]
        yield number, partial(work, items[number])
    if last is not None:
        yield len(items), lambda: [last()]


def _widen(pipe: int) -> None:
    """Give a pipe room for a body of documents, so that it is filled and emptied at once; where it may not be wider, it stays."""
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _serve(
    work: Callable[[Any], Iterator[Any]], items: Sequence[Any], take: int, answer: int, last: Callable[[], Any] | None
) -> None:
    """Work through items until none is left, then leave the process without any clean-up of the parent's."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number, made in _jobs(work, items, take, last):
            try:
                for result in made():
                    _send(answer, (number, result, None))
            except TailboardError as error:
                _send(answer, (number, None, error))
        status = 0
    except BrokenPipeError:
        pass
    except BaseException:  # noqa: BLE001  # the parent reports it; nothing may escape into its code
        import traceback

        _send(answer, (-1, None, traceback.format_exc()))
    finally:
        os._exit(status)


def _send(answer: int, message: object) -> None:
    """Write a message: its pickle, and how long that is in front of it."""
    data = pickle.dumps(message, protocol=5)
    left = [memoryview(LENGTH.pack(len(data))), memoryview(data)]  # not joined: a body of documents is not copied once more
    while left:
        written = os.writev(answer, left)
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]


def _received(workers: dict[int, int], ready: selectors.BaseSelector, *, wait: bool) -> Iterator[tuple[int, Any]]:
    """Yield what has been sent: until all workers have ended, or, without `wait`, until nothing more is there now.

    A worker that has ended well is taken out of `workers`.
    """
    while workers and (found := ready.select(None if wait else 0)):
        for results in [key.fd for key, _ in found]:
            head = _read(results, LENGTH.size)
            if not head:
                ready.unregister(results)
                os.close(results)
                _, status = os.waitpid(workers.pop(results), 0)
                if status:
                    raise TailboardError(KILLED)
                continue
            number, result, error = pickle.loads(_read(results, *LENGTH.unpack(head), begun=True))  # from our own fork
            if isinstance(error, TailboardError):
                raise error
            if error is not None:
                raise RuntimeError(f"a worker failed:\n{error}")
            yield (number, result)


def _read(results: int, size: int, *, begun: bool = False) -> bytearray:
    """Return so many bytes of a message, once they are there; none at its end, unless it has `begun`: then TailboardError."""
    data = bytearray(size)
    left = memoryview(data)
    while left:
        got = os.readv(results, [left])
        if not got and (begun or len(left) < size):
            raise TailboardError(KILLED)
        if not got:
            return bytearray()
        left = left[got:]
    return data
