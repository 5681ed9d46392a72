"""One answer for all who ask the same: kept while it holds, made once at a time, by few workers, and never waited for long.

Somebody who asks gets what is kept where it was looked at a moment ago; else it is looked at again (made anew where the source
has changed) and waited for. What takes longer than that is answered by what was kept before, with its age, or by BusyError.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from threading import Lock
from typing import Generic, Protocol, TypeVar

from ingest.core.dataclass import dataclass
from ingest.core.errors import TailboardError

WORKERS = 2
MOST_PENDING = 16
MOST_WAITING = 6
MOST_KEPT = 32
MOST_BYTES = 64_000_000
FIRST_SECONDS = 10.0


class BusyError(TailboardError):
    """There is no answer yet: ask again in a while."""

    exit_status = 4


class Sized(Protocol):
    """What is kept."""

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        ...


Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made", bound=Sized)


@dataclass(frozen=True, slots=True)
class Kept(Generic[Made]):
    """What was made, and when it was last known to hold (of the monotonic clock, in seconds)."""

    made: Made
    at: float

    @property
    def age(self) -> float:
        """Return for how many seconds nobody has looked whether it still holds."""
        return time.monotonic() - self.at


class Cache(Generic[Key, Made]):
    """Answers by key. `make(key, before)` returns `before` where it still holds, else what holds now."""

    def __init__(self, make: Callable[[Key, Made | None], Made], fresh_seconds: float, patience_seconds: float) -> None:
        self._make = make
        self._fresh = fresh_seconds
        self._patience = patience_seconds
        self._lock = Lock()
        self._kept: OrderedDict[Key, Kept[Made]] = OrderedDict()
        self._pending: dict[Key, Future[Kept[Made]]] = {}
        self._waiting = 0
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="cache")

    def ask(self, key: Key) -> Kept[Made]:
        """Return the answer, with its age; BusyError where there is none in time, and what `make` raises."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                if kept.age < self._fresh:
                    return kept
            future = self._pending.get(key) or self._begun(key)
            if future is None or self._waiting >= MOST_WAITING:
                return _old(kept, "too many questions at once: this one is asked again in a moment")
            self._waiting += 1
        try:
            return future.result(timeout=FIRST_SECONDS if kept is None else self._patience)
        except NotYetError:
            return _old(kept, "the answer takes long: it is being computed, and this page asks for it again in a moment")
        finally:
            with self._lock:
                self._waiting -= 1

    def _begun(self, key: Key) -> Future[Kept[Made]] | None:
        """Return the answer that is being made, None where too many are; the lock is held."""
        if len(self._pending) >= MOST_PENDING:
            return None
        self._pending[key] = future = self._workers.submit(self._looked, key)
        return future

    def _looked(self, key: Key) -> Kept[Made]:
        try:
            before = self._kept.get(key)
            begun = time.monotonic()
            kept = Kept(self._make(key, before.made if before else None), begun)
        except BaseException:
            with self._lock:
                del self._pending[key]
            raise
        with self._lock:
            del self._pending[key]
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and (len(self._kept) > MOST_KEPT or self.size > MOST_BYTES):
                self._kept.popitem(last=False)
        return kept

    @property
    def size(self) -> int:
        """Return how many bytes are kept."""
        return sum(kept.made.size for kept in self._kept.values())


def _old(kept: Kept[Made] | None, reason: str) -> Kept[Made]:
    if kept is None:
        raise BusyError(reason)
    return kept
