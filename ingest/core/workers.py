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
from contextlib import closing
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from ingest.core.errors import TailboardError

INDEX = struct.Struct("<I")
LENGTH, HEAD = struct.Struct("<Q"), struct.Struct("<QQQ")  # of a text; of the lengths of texts, of the pickle, of all texts
PIPE_BYTES, MOST_VIEWS = 1 << 20, 1000
NOTHING = object()
NO_TEXT = memoryview(b"")
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
        with closing(_Inboxes(workers)) as inboxes:
            for number, made in _jobs(work, items, take, last) if joining else ():
                for result in made():
                    yield number, result
                yield from inboxes.read(wait=False)
            yield from inboxes.read(wait=True)
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
    """Write a message: the lengths of what follows, its pickle, and the texts that it holds behind that, which are not copied."""
    texts: list[pickle.PickleBuffer] = []

    def apart(buffer: pickle.PickleBuffer) -> bool:
        """Take a text out of the pickle; arrays stay in it: they are small, and may outlive what they came with."""
        is_text = isinstance(memoryview(buffer).obj, bytes)
        if is_text:
            texts.append(buffer)
        return not is_text

    data = pickle.dumps(message, protocol=5, buffer_callback=apart)
    views = [memoryview(text) for text in texts]
    sizes = b"".join(LENGTH.pack(len(view)) for view in views)
    left = [memoryview(HEAD.pack(len(sizes), len(data), sum(map(len, views))) + sizes), memoryview(data), *views]
    while left:
        written = os.writev(answer, left[:MOST_VIEWS])
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]


class _Inbox:
    """Takes the messages of one worker apart, as they come through its pipe."""

    def __init__(self, results: int) -> None:
        self._results = results
        self._head = bytearray(HEAD.size)
        self._left = [memoryview(self._head)]
        self._data, self._texts = bytearray(), NO_TEXT

    @property
    def between(self) -> bool:
        """Return whether no message has begun."""
        return not self._data and len(self._left[0]) == HEAD.size

    def read(self) -> Any:
        """Return the next message if it is whole now, NOTHING before; EOFError at the end."""
        got = os.readv(self._results, self._left)
        if not got:
            raise EOFError
        while self._left and got >= len(self._left[0]):
            got -= len(self._left.pop(0))
        if self._left:
            self._left[0] = self._left[0][got:]
            return NOTHING
        if not self._data:
            table, data, texts = HEAD.unpack(self._head)
            self._data, self._texts = bytearray(table + data), np.empty(texts, np.uint8).data  # the latter is not filled first
            self._left = [memoryview(part) for part in (self._data, self._texts) if part]
            return NOTHING
        sizes = [size for (size,) in LENGTH.iter_unpack(self._data[: HEAD.unpack(self._head)[0]])]
        parts = [self._texts[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]
        message = pickle.loads(memoryview(self._data)[LENGTH.size * len(sizes) :], buffers=parts)  # from our own fork
        self._data, self._texts = bytearray(), NO_TEXT
        self._left = [memoryview(self._head)]
        return message


class _Inboxes:
    """Takes what workers send; a worker that has ended well is taken out of `workers`."""

    def __init__(self, workers: dict[int, int]) -> None:
        self._workers = workers
        self._inboxes = {results: _Inbox(results) for results in workers}
        self._ready = selectors.DefaultSelector()
        for results in workers:
            self._ready.register(results, selectors.EVENT_READ)

    def close(self) -> None:
        """Look for nothing any more."""
        self._ready.close()

    def read(self, *, wait: bool) -> Iterator[tuple[int, Any]]:
        """Yield what has been sent: until all workers have ended, or, without `wait`, until nothing more is there now."""
        while self._inboxes and (ready := self._ready.select(None if wait else 0)):
            for results in [key.fd for key, _ in ready]:
                try:
                    message = self._inboxes[results].read()
                except EOFError:
                    whole = self._inboxes.pop(results).between
                    self._ready.unregister(results)
                    os.close(results)
                    _, status = os.waitpid(self._workers.pop(results), 0)
                    if status or not whole:
                        raise TailboardError(KILLED) from None
                    continue
                if message is not NOTHING:
                    number, result, error = message
                    if isinstance(error, TailboardError):
                        raise error
                    if error is not None:
                        raise RuntimeError(f"a worker failed:\n{error}")
                    yield (number, result)
