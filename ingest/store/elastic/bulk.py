"""Sending documents: parallel senders behind a short queue, each chunk again until it is in, each item judged on its own.

- A chunk fails as a whole on connection errors, timeouts, 429, 502, 503, 504 or a truncated answer: it is sent again. An
  answer that was lost may stand for documents that are in; sending them again writes the same ids.
- Items with status 429 are sent again, they alone. Items with status 400 go to the dead-letter file with the reason.
- 413 halves the chunk, and so does a 429 for the whole of it that is repeated: it may never fit into the server's memory. A
  single document that is too large goes to the dead-letter file, and one that meets 429 while others are taken.
- An index that takes no documents because the disk is full is waited for like an overloaded server, then named.
- A version conflict means that somebody has written a later version: nothing to do.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.http import FIRST_PAUSE, LONGEST_PAUSE, OVERLOADED, TransientError
from ingest.store.elastic.connection import Connection, OverloadedError, Refusal, TooLargeError, block_sentence, is_disk_full
from ingest.store.elastic.encoding import Chunk, documents_of, halves

SENDERS, WAITING = 2, 4
ANSWER = "errors,items.*.status,items.*.result,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"
CONFLICT = 409
REASON_LENGTH = 500
TRIES_WHOLE = 2
OVERLOADED_SENTENCE = "the server is overloaded (429)"
AGAIN = "run the same load again"
TOO_LARGE = Refusal(413, "", "too large for the server (http.max_content_length)")


@dataclass(frozen=True, slots=True)
class Part:
    """Documents that are sent at once: how often that has failed, and since when."""

    chunk: Chunk
    tries: int = 0
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Refused:
    """A document that the server refuses: the two lines that were sent, and why."""

    action: bytes
    document: bytes
    status: int
    reason: str

    def line(self) -> bytes:
        """Return it as a line of a dead-letter file."""
        told = {"status": self.status, "reason": self.reason, "action": orjson.Fragment(self.action)}
        try:
            return orjson.dumps({**told, "document": orjson.Fragment(self.document)}) + b"\n"
        except orjson.JSONEncodeError:
            return orjson.dumps({**told, "document": self.document.decode(errors="replace")}) + b"\n"


@dataclass(slots=True)
class Delivery:
    """What became of all documents that were handed over."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    first_reason: str = ""

    def as_dict(self) -> dict[str, int]:
        """Return the final account: sent = created + updated + deleted + superseded + rejected; retried counts repeats."""
        names = ("sent", "created", "updated", "deleted", "superseded", "rejected", "retried")
        return {name: self.counts[name] for name in names}


def owner_of(run: str, source: str) -> str:
    """Return the name under which the refused documents of a source are counted."""
    return f"{run} {source}"


class Sender:
    """Hands chunks to `senders` threads; at most `waiting` chunks wait, so that reading is held back by a slow server."""

    def __init__(
        self, connection: Connection, delivery: Delivery, dead_letters: Path, senders: int = SENDERS, waiting: int = WAITING
    ) -> None:
        self.delivery = delivery
        self._connection = connection
        self._dead_letters = dead_letters
        self._lock = threading.Lock()
        self._queue: queue.Queue[tuple[str, Chunk] | None] = queue.Queue(waiting)
        self._failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(senders)]
        for thread in self._threads:
            thread.start()

    def send(self, owner: str, chunk: Chunk) -> None:
        """Hand over a chunk whose refused documents are counted for `owner`; raises what a sender failed with."""
        while True:
            self._check()
            try:
                self._queue.put((owner, chunk), timeout=0.2)
            except queue.Full:
                continue
            return

    def flush(self) -> None:
        """Wait until all that was handed over is in or refused; raises what a sender failed with."""
        self._queue.join()
        self._check()

    def close(self) -> None:
        """Stop the senders; what is not sent yet is dropped, so flush first."""
        self._failure = self._failure or StoreError("the load was stopped")
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if self._failure is None:
                    owner, chunk = item
                    self._count("sent", chunk.documents)
                    self._deliver(owner, chunk)
            except BaseException as error:  # noqa: BLE001  # raised again where the documents come from
                self._failure = self._failure or error
            finally:
                self._queue.task_done()

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self.delivery.counts[name] += number

    def _deliver(self, owner: str, chunk: Chunk) -> None:
        """Send a chunk, in parts where it does not fit, until each of its documents is in or refused."""
        patience = self._connection.patience
        deadline = time.monotonic() + patience
        taken = 0.0  # when a document of the chunk was last taken, or refused for good
        left = deque([Part(chunk)])
        while left:
            part = left.popleft()
            found = self._tried(owner, part)
            if isinstance(found, TooLargeError):
                self._split(owner, part, left, TOO_LARGE)
                continue
            if isinstance(found, tuple):
                rest, why = found
                if rest.documents < part.chunk.documents:
                    taken = time.monotonic()
                    deadline = taken + patience
                    part = Part(rest)
                if not rest.documents:
                    continue
            else:
                why = str(found)
            part = Part(part.chunk, part.tries + 1, part.since)
            if isinstance(found, OverloadedError):
                over = part.since + patience < time.monotonic() and taken > part.since  # others are taken, it is not
                if found.never_fits or (over if part.chunk.documents == 1 else part.tries >= TRIES_WHOLE):
                    self._split(owner, part, left, Refusal(OVERLOADED, found.kind, found.reason))
                    continue
            if time.monotonic() > deadline:
                again = "" if AGAIN in why else f"; {AGAIN} later"
                raise StoreError(f"{self._connection.address.url}: {why}, for {patience:.0f} s now{again}")
            self._count("retried", part.chunk.documents)
            pause = FIRST_PAUSE * 2 ** (part.tries - 1) * random.uniform(0.5, 1)  # noqa: S311  # no secret
            wanted = found.after if isinstance(found, TransientError) else 0.0
            time.sleep(min(max(pause, wanted), LONGEST_PAUSE))
            left.append(part)

    def _tried(self, owner: str, part: Part) -> tuple[Chunk, str] | TransientError | TooLargeError:
        """Return what is left of a part after it was sent once, and why; or how it failed as a whole."""
        try:
            answer = self._connection.once("POST", "/_bulk", part.chunk.body, filter_path=ANSWER)
            return self._judged(owner, part.chunk, answer)
        except (TransientError, TooLargeError) as error:
            return error
        except Refusal as error:
            raise StoreError(f"{self._connection.address.url} refuses a whole request: {error}") from None

    def _split(self, owner: str, part: Part, left: deque[Part], why: Refusal) -> None:
        """Put the halves of a part back, or a single document into the dead-letter file."""
        if part.chunk.documents == 1:
            pair = next(documents_of(part.chunk))
            self._bury(owner, [Refused(*pair, why.status, str(why)[:REASON_LENGTH])])
            return
        self._count("retried", part.chunk.documents)
        left.extend(Part(half) for half in halves(part.chunk))

    def _judged(self, owner: str, chunk: Chunk, answer: Mapping[str, Any]) -> tuple[Chunk, str]:
        """Count what became of each document; return those that have to be sent again, and why."""
        items = [next(iter(item.values())) for item in answer.get("items", ())]
        if len(items) != chunk.documents:
            raise TransientError(f"the answer tells of {len(items)} of {chunk.documents} documents")
        if not answer.get("errors"):
            for result, number in Counter(item.get("result", "created") for item in items).items():
                self._count("superseded" if result in ("noop", "not_found") else result, number)
            return Chunk(b"", 0), ""
        why = OVERLOADED_SENTENCE
        again: list[bytes] = []
        refused: list[Refused] = []
        for item, (action, document) in zip(items, documents_of(chunk), strict=True):
            status = int(item.get("status", 0))
            if status < 300 or status == CONFLICT or item.get("result") == "not_found":
                self._count("superseded" if status >= 300 else str(item.get("result", "created")))
            elif self._passes(item):
                if "cluster_block" in str(item["error"].get("type")):
                    why = block_sentence(str(item["error"].get("reason")))
                again.append(action + b"\n" + (document + b"\n" if document else b""))
            else:
                refused.append(self._refused(item, action, document))
        self._bury(owner, refused)
        return Chunk(b"".join(again), len(again)), why

    @staticmethod
    def _passes(item: Mapping[str, Any]) -> bool:
        """Return whether what is against the document of an item may pass: overload, or a disk that somebody makes room on."""
        error = item.get("error") or {}
        if error.get("type") == "cluster_block_exception":
            return is_disk_full(str(error.get("reason")))
        return int(item.get("status", 0)) == OVERLOADED

    def _refused(self, item: Mapping[str, Any], action: bytes, document: bytes) -> Refused:
        """Return the refused document of an item; StoreError where not the document is at fault but the index."""
        told = item.get("error") or {}
        kind, status = str(told.get("type", "")), int(item.get("status", 0))
        reason = ": ".join(str(part) for part in (told.get("reason"), (told.get("caused_by") or {}).get("reason")) if part)
        if kind == "cluster_block_exception":
            raise StoreError(f"{self._connection.address.url}: {block_sentence(reason)}")
        if status != 400 or kind in ("index_closed_exception", "invalid_index_name_exception", "illegal_argument_exception"):
            raise StoreError(f"{self._connection.address.url} refuses documents: {status} {kind}: {reason[:REASON_LENGTH]}")
        return Refused(action, document, status, f"{kind}: {reason}"[:REASON_LENGTH])

    def _bury(self, owner: str, refused: Sequence[Refused]) -> None:
        if not refused:
            return
        with self._lock:
            try:
                with self._dead_letters.open("ab") as out:
                    out.writelines(one.line() for one in refused)
            except OSError as error:
                raise StoreError(f"{self._dead_letters}: refused documents cannot be kept: {error.strerror}") from None
            self.delivery.counts["rejected"] += len(refused)
            self.delivery.refused[owner] += len(refused)
            self.delivery.first_reason = self.delivery.first_reason or refused[0].reason
