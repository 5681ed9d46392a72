"""Sending documents: parallel senders behind a short queue, each chunk again until it is in, each item judged on its own.

- A chunk fails as a whole on connection errors, timeouts, 429, 502, 503, 504 or a truncated answer: it is sent again. An
  answer that was lost may stand for documents that are in; sending them again writes the same ids.
- Items with status 429 are sent again, they alone, and those of a shard that failed at a refresh: it starts again. Items with
  status 400 go to the dead-letter file with the reason.
- 413 halves the chunk, and so does a 429 for the whole of it that is repeated: it may never fit into the server's memory. A
  single document that is too large goes to the dead-letter file, and one that meets 429 while others are taken.
- An index that takes no documents because the disk is full is waited for like an overloaded server, then named.
- A version conflict means that somebody has written a later version: nothing to do.

Chunks are joined to bodies of the size that the server takes best, or smaller ones while a sender waits for work. After a body
that was too large, later ones are half as large; while all goes well they grow again, up to the largest that was taken, and
beyond it once many went well.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.http import FIRST_PAUSE, LONGEST_PAUSE, OVERLOADED, Answer, TransientError
from ingest.store.elastic.client import (
    CLOSED,
    UNAVAILABLE,
    Connection,
    OverloadedError,
    Refusal,
    TooLargeError,
    block_sentence,
    closed_sentence,
    is_disk_full,
    limit_sentence,
    passing_sentence,
)
from ingest.store.elastic.documents import Chunk, chunked, documents_of, halves

SENDERS, WAITING = 2, 2
BODY_BYTES, LEAST_BODY_BYTES = 8 << 20, 1 << 16
WORTH_SENDING = 2 << 20  # while a sender has nothing to do
GROWTH = 1.25  # of bodies, after each that was taken whole
FORGOTTEN = 64  # after so many bodies that were taken whole a server may take what was too large before
ANSWER = "errors,items.*.status,items.*.result,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"
CONFLICT = 409
REASON_LENGTH = 500
TRIES_WHOLE = 2
OVERLOADED_SENTENCE = "the server is overloaded (429)"
REFRESH_FAILED = "refresh_failed_engine_exception"
SHARD_FAILED_SENTENCE = "a shard of the server failed while it showed documents to searches (its log says why)"
AGAIN = "run the same load again"
UNREADABLE = "?"  # owner of refused documents that name none: they may be of any source
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
        head = {"status": self.status, "reason": self.reason, "action": orjson.Fragment(self.action)}
        try:
            return orjson.dumps({**head, "document": orjson.Fragment(self.document)}) + b"\n"
        except orjson.JSONEncodeError:
            return orjson.dumps({**head, "document": self.document.decode(errors="replace")}) + b"\n"


@dataclass(slots=True)
class Delivery:
    """Counts of all documents that were handed over, by outcome, and of refused ones by owner."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    first_reason: str = ""

    def refused_of(self, run: str, source: str) -> int:
        """Return how many documents of a source were refused, with all of which nobody knows the source."""
        return self.refused[owner_of(run, source)] + self.refused[UNREADABLE]

    def as_dict(self) -> dict[str, int]:
        """Return the final account: sent = created + updated + deleted + superseded + rejected; retried counts repeats."""
        names = ("sent", "created", "updated", "deleted", "superseded", "rejected", "retried")
        return {name: self.counts[name] for name in names}


def owner_of(run: str, source: str) -> str:
    """Return the name under which the refused documents of a source are counted."""
    return f"{run} {source}"


def owner_in(document: bytes) -> str:
    """Return the owner that a document names; empty text for a deletion, and for one that belongs to no source."""
    if not document:
        return ""
    try:
        fields = orjson.loads(document)
        return owner_of(fields["run"]["id"], fields["source"]["id"]) if "source" in fields else ""
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return UNREADABLE


def put_at_once(connection: Connection, chunk: Chunk, what: str) -> list[Mapping[str, Any]]:
    """Write a few documents, each of which is `what`, seen by every search at once; return the outcome of each.

    They are sent again while the server is overloaded, and in halves where they are too large together. StoreError for one
    that is too large alone.
    """
    try:
        answer = connection.call("POST", "/_bulk", chunk.body, _none_rejected, refresh=True, timeout=connection.waiting)
    except TooLargeError:
        parts = list(halves(chunk))
        if len(parts) < 2:
            raise StoreError(f"{connection.address.url}: {what} is too large for the server") from None
        return [outcome for part in parts for outcome in put_at_once(connection, part, what)]
    return [outcome for item in answer["items"] for outcome in item.values()]


def put_all_at_once(connection: Connection, lines: Iterable[bytes], what: str) -> None:
    """Write a few documents, each of which is `what`, as lines of a bulk request; StoreError where the server refuses one."""
    for chunk in chunked(lines):
        refused = [outcome["error"] for outcome in put_at_once(connection, chunk, what) if "error" in outcome]
        if refused:
            raise StoreError(f"{connection.address.url}: {what} is refused: {refused[0].get('reason')}")


def _none_rejected(answer: Answer) -> Any:
    decoded = answer.decoded()
    for item in decoded["items"]:
        for outcome in item.values():
            if why := _passing(outcome):
                raise TransientError(why)
    return decoded


def _passing(outcome: Mapping[str, Any]) -> str:
    """Return why the error of an item passes, empty text if it does not: overload, or a shard that is to come back."""
    status, kind = int(outcome.get("status", 0)), (outcome.get("error") or {}).get("type", "")
    if status == OVERLOADED:
        return OVERLOADED_SENTENCE
    if kind == REFRESH_FAILED:
        return SHARD_FAILED_SENTENCE
    return passing_sentence(status, kind) if status == UNAVAILABLE else ""


class Sender:
    """Hands bodies to `senders` threads; at most `waiting` of them wait, so that reading is held back by a slow server.

    Chunks are held until they make a body; `flush` sends what is held. `visible` is whether searches see all that was flushed.
    """

    def __init__(
        self, connection: Connection, delivery: Delivery, dead_letters: Path, senders: int = SENDERS, waiting: int = WAITING
    ) -> None:
        self.delivery = delivery
        self._connection = connection
        self._dead_letters = dead_letters
        self._lock = threading.Lock()
        self._queue: queue.Queue[tuple[Chunk, bool] | None] = queue.Queue(waiting)
        self._held: list[Chunk] = []
        self._held_bytes = 0
        self._body_bytes = self._most_bytes = float(BODY_BYTES)
        self._taken, self._largest = 0, 0  # bodies since one was too large; the bytes of the largest that was ever taken
        self._unseen = False
        self._failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(senders)]
        for thread in self._threads:
            thread.start()

    def send(self, chunk: Chunk) -> None:
        """Hand over a chunk; raises what a sender failed with."""
        if self._held and self._held_bytes + len(chunk.body) > self._body_bytes:
            self._send_held()
        self._held.append(chunk)
        self._held_bytes += len(chunk.body)
        if self._held_bytes >= WORTH_SENDING and self._queue.unfinished_tasks < len(self._threads):
            self._send_held()

    def put(self, lines: Iterable[bytes]) -> int:
        """Hand over documents and deletions, as lines of a bulk request; return how many."""
        documents = 0
        for chunk in chunked(lines):
            self.send(chunk)
            documents += chunk.documents
        return documents

    def flush(self) -> None:
        """Wait until all that was handed over is in or refused; raises what a sender failed with."""
        self._send_held()
        self._queue.join()
        self._check()

    def arrive(self) -> None:
        """Wait as `flush` does; searches see what fits one body: it is refreshed by the request that brings it."""
        if not self._unseen:
            self._queue.join()
            self._check()
            self._send_held(refresh=True)
        self.flush()

    def show(self, *indices: str) -> None:
        """Flush, and let searches see all that was flushed since the last time: it is in `indices`."""
        self.arrive()
        if self._unseen:
            self.refresh(*indices)

    def refresh(self, *indices: str) -> None:
        """Let searches see all that anybody has written to indices; those that are not there are none."""
        self._connection.refresh(*indices)
        self._unseen = False

    def _send_held(self, *, refresh: bool = False) -> None:
        self._check()
        if not self._held:
            return
        body = b"".join(chunk.body for chunk in self._held)  # bytes that are alone are not copied
        whole = Chunk(body, sum(chunk.documents for chunk in self._held))
        self._held, self._held_bytes = [], 0
        self._unseen = self._unseen or not refresh
        while True:
            self._check()
            try:
                self._queue.put((whole, refresh), timeout=0.2)
            except queue.Full:
                continue
            return

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
                    chunk, refresh = item
                    self._count("sent", chunk.documents)
                    self._deliver(chunk, refresh=refresh)
            except BaseException as error:  # noqa: BLE001  # raised again where the documents come from
                self._failure = self._failure or error
            finally:
                self._queue.task_done()

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self.delivery.counts[name] += number

    def _deliver(self, chunk: Chunk, *, refresh: bool = False) -> None:
        """Send a chunk, in parts where it does not fit, until each of its documents is in or refused."""
        patience = self._connection.patience
        deadline = time.monotonic() + patience
        taken = 0.0  # when a document of the chunk was last taken, or refused for good
        left = deque([Part(chunk)])
        while left:
            part = left.popleft()
            outcome = self._tried(part, refresh=refresh)
            if isinstance(outcome, TooLargeError):
                self._split(part, left, TOO_LARGE)
                continue
            if isinstance(outcome, tuple):
                rest, why = outcome
                size = len(part.chunk.body)
                if rest.documents < part.chunk.documents:
                    taken = time.monotonic()
                    deadline = taken + patience
                    part = Part(rest)
                if not rest.documents:
                    self._grow(size)
                    continue
            else:
                why = str(outcome)
            part = Part(part.chunk, part.tries + 1, part.since)
            if isinstance(outcome, OverloadedError):
                over = part.since + patience < time.monotonic() and taken > part.since  # others are taken, this part is not
                if outcome.never_fits or (over if part.chunk.documents == 1 else part.tries >= TRIES_WHOLE):
                    self._split(part, left, Refusal(OVERLOADED, outcome.kind, outcome.reason))
                    continue
            if time.monotonic() > deadline:
                again = "" if AGAIN in why else f"; {AGAIN} later"
                raise StoreError(f"{self._connection.address.url}: {why}, for {patience:.0f} s now{again}")
            self._count("retried", part.chunk.documents)
            pause = FIRST_PAUSE * 2 ** (part.tries - 1) * random.uniform(0.5, 1)  # noqa: S311  # no secret
            wanted = outcome.after if isinstance(outcome, TransientError) else 0.0
            time.sleep(min(max(pause, wanted), LONGEST_PAUSE))
            left.append(part)

    def _grow(self, taken: int) -> None:
        """Let the next body be larger: one of `taken` bytes was taken whole."""
        with self._lock:
            self._taken += 1
            self._largest = max(self._largest, taken)
            if self._taken >= FORGOTTEN:
                self._most_bytes = float(BODY_BYTES)
            self._body_bytes = min(self._body_bytes * GROWTH, self._most_bytes)

    def _tried(self, part: Part, *, refresh: bool) -> tuple[Chunk, str] | TransientError | TooLargeError:
        """Send a part once; return the documents to send again, and why; or how it failed as a whole."""
        try:
            words: dict[str, Any] = {"refresh": True} if refresh else {}
            answer = self._connection.once(
                "POST", "/_bulk", part.chunk.body, filter_path=ANSWER, timeout=self._connection.waiting, **words
            )
            return self._judged(part.chunk, answer)
        except (TransientError, TooLargeError) as error:
            return error
        except Refusal as error:
            raise StoreError(f"{self._connection.address.url} refuses a whole request: {error}") from None

    def _split(self, part: Part, left: deque[Part], why: Refusal) -> None:
        """Put the halves of a part back, or a single document into the dead-letter file."""
        if part.chunk.documents == 1:
            pair = next(documents_of(part.chunk))
            self._bury([Refused(*pair, why.status, str(why)[:REASON_LENGTH])])
            return
        self._count("retried", part.chunk.documents)
        with self._lock:
            self._body_bytes = max(min(self._body_bytes, len(part.chunk.body) / 2), LEAST_BODY_BYTES)
            self._most_bytes = max(self._body_bytes, min(self._largest, len(part.chunk.body)))
            self._taken = 0
        left.extend(Part(half) for half in halves(part.chunk))

    def _judged(self, chunk: Chunk, answer: Mapping[str, Any]) -> tuple[Chunk, str]:
        """Count each document by its outcome; return those to send again, and why."""
        items = [next(iter(item.values())) for item in answer.get("items", ())]
        if len(items) != chunk.documents:
            raise TransientError(f"the answer reports {len(items)} of {chunk.documents} documents")
        if not answer.get("errors"):
            for result, number in Counter(item.get("result", "created") for item in items).items():
                self._count("superseded" if result in ("noop", "not_found") else result, number)
            return Chunk(b"", 0), ""
        why = ""
        again: list[bytes] = []
        refused: list[Refused] = []
        for item, (action, document) in zip(items, documents_of(chunk), strict=True):
            status = int(item.get("status", 0))
            # What is to be deleted from an index that is not there is not there, either.
            nowhere = not document and (item.get("error") or {}).get("type") == "index_not_found_exception"
            if status < 300 or status == CONFLICT or item.get("result") == "not_found" or nowhere:
                self._count("superseded" if status >= 300 else str(item.get("result", "created")))
            elif passing := self._disk_full(item) or _passing(item):
                why = passing
                again.append(action + b"\n" + (document + b"\n" if document else b""))
            else:
                refused.append(self._refused(item, action, document))
        self._bury(refused)
        return Chunk(b"".join(again), len(again)), why

    @staticmethod
    def _disk_full(item: Mapping[str, Any]) -> str:
        """Return what to do where a document was refused for a full disk, on which somebody makes room; else empty text."""
        error = item.get("error") or {}
        reason = str(error.get("reason"))
        return block_sentence(reason) if error.get("type") == "cluster_block_exception" and is_disk_full(reason) else ""

    def _refused(self, item: Mapping[str, Any], action: bytes, document: bytes) -> Refused:
        """Return the refused document of an item; StoreError where not the document is at fault but the index."""
        error = item.get("error") or {}
        kind, status = str(error.get("type", "")), int(item.get("status", 0))
        reason = ": ".join(str(part) for part in (error.get("reason"), (error.get("caused_by") or {}).get("reason")) if part)
        if kind == "cluster_block_exception":
            raise StoreError(f"{self._connection.address.url}: {block_sentence(reason)}")
        if kind == CLOSED:
            name = next(iter(orjson.loads(action).values())).get("_index", "an index")
            raise StoreError(f"{self._connection.address.url}: {closed_sentence(name)}")
        if kind == "validation_exception":  # no index can be made
            raise StoreError(f"{self._connection.address.url}: {limit_sentence(reason)}")
        if status != 400 or kind in ("invalid_index_name_exception", "illegal_argument_exception"):
            raise StoreError(f"{self._connection.address.url} refuses documents: {status} {kind}: {reason[:REASON_LENGTH]}")
        return Refused(action, document, status, f"{kind}: {reason}"[:REASON_LENGTH])

    def _bury(self, refused: Sequence[Refused]) -> None:
        if not refused:
            return
        with self._lock:
            try:
                with self._dead_letters.open("ab") as out:
                    out.writelines(document.line() for document in refused)
            except OSError as error:
                raise StoreError(f"{self._dead_letters}: refused documents cannot be kept: {error.strerror}") from None
            self.delivery.counts["rejected"] += len(refused)
            self.delivery.refused.update(owner_in(document.document) for document in refused)
            self.delivery.first_reason = self.delivery.first_reason or refused[0].reason
