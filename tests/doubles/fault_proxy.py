"""A proxy between an Elasticsearch client and its server that breaks a share of the calls on purpose, as networks and servers do.

    with FaultProxy(server_url, seed=7, share=0.3, only=lambda method, path: path.endswith("/_bulk")) as proxy:
        client = Elasticsearch(proxy.url, request_timeout=0.5)
        ...
        print(proxy.calls, proxy.injected)            # 120  Counter({'reset_after': 5, ...})

What happens to a call depends on the seed and on its number alone, so with one sender a run repeats itself exactly. With several
senders the same numbers are hit, but which request has which number is the threads' affair; `proxy.history` tells. Calls that
`only` spares are relayed and have no number. The proxy never retries and never writes anything twice.
"""

from __future__ import annotations

import http.client
import json
import random
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import BinaryIO, Self
from urllib.parse import urlsplit

from tests.doubles.faults import (
    ALL,
    CANNED,
    EARLY,
    FRAMING,
    REJECTED,
    Answer,
    Fault,
    Request,
    bulk_items,
    filtered,
    fits,
    may_meet,
    planned,
    read_body,
    read_head,
    without_filter,
)

__all__ = ["ALL", "Call", "Fault", "FaultProxy"]


@dataclass(frozen=True, slots=True)
class Call:
    """What became of a call; `number` is None where `only` spared it, `fault` where it was relayed."""

    number: int | None
    method: str
    target: str
    fault: Fault | None


class FaultProxy:
    """The proxy, running from `with` on in threads of its own, one a connection, at `url` on a free port.

    `hold`: how long a timeout lasts at most; it ends when the client hangs up, so it must only be longer than any client's
    patience. `away`: how long DOWN lasts. `calls` counts all requests, `injected` the faults by name, `history` has both in order.
    `unreachable` counts calls that failed because the target itself did not answer: these get a 502 of their own.
    """

    def __init__(
        self,
        target_url: str,
        seed: int = 7,
        share: float = 0.3,
        faults: Collection[Fault | str] = ALL,
        *,
        only: Callable[[str, str], bool] | None = None,
        hold: float = 60.0,
        away: float = 0.2,
    ) -> None:
        target = urlsplit(target_url)
        if target.scheme != "http" or not target.hostname:
            raise ValueError(f"the proxy speaks http alone, not {target_url!r}")
        self._target = (target.hostname, target.port or 80)
        self.seed, self.share, self.faults = seed, share, tuple(Fault(fault) for fault in faults)
        self._only, self.hold, self.away = only, hold, away
        self.history: list[Call] = []
        self.unreachable = 0
        self._numbered = 0
        self._lock = threading.Lock()
        self._stopping, self._absent = threading.Event(), threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = _bound(0)
        self._port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def calls(self) -> int:
        return len(self.history)

    @property
    def injected(self) -> Counter[str]:
        with self._lock:
            return Counter(str(call.fault) for call in self.history if call.fault)

    def __enter__(self) -> Self:
        self._listener.listen(128)
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with self._lock:
            for one in (self._listener, *self._open):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        self._listener.close()
        stuck = [thread.name for thread in self._threads if thread.is_alive()]
        if stuck:
            raise RuntimeError(f"the proxy's threads did not end: {stuck}")

    def _start(self, work: Callable[..., None], *words: object) -> None:
        thread = threading.Thread(target=work, args=words, daemon=True, name=f"fault-proxy-{self._port}-{len(self._threads)}")
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                self._come_back()
                continue
            with self._lock:
                self._open.add(client)
            if self._stopping.is_set():
                client.shutdown(socket.SHUT_RDWR)
            self._start(self._converse, client)

    def _come_back(self) -> None:
        """Hold the port without listening, so that connections are refused, and listen again after a while."""
        with self._lock:
            self._listener.close()
            self._listener = _bound(self._port)
        self._stopping.wait(self.away)
        with self._lock:
            self._listener.listen(128)
            self._absent.clear()
            if self._stopping.is_set():
                self._listener.shutdown(socket.SHUT_RDWR)

    def _go_away(self) -> None:
        with self._lock:
            if not self._absent.is_set():
                self._absent.set()
                self._listener.shutdown(socket.SHUT_RDWR)

    def _converse(self, client: socket.socket) -> None:
        """Answer the calls of one connection until either side ends it. The target has a connection of its own for it."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream = http.client.HTTPConnection(*self._target, timeout=self.hold)
        try:
            with suppress(OSError, ValueError), client.makefile("rb") as stream, closing(upstream):
                while self._exchange(client, stream, upstream) and not self._stopping.is_set():
                    pass
        finally:
            with self._lock:
                self._open.discard(client)
            client.close()

    def _exchange(self, client: socket.socket, stream: BinaryIO, upstream: http.client.HTTPConnection) -> bool:
        """Deal with one call; return whether the connection goes on."""
        head = read_head(stream)
        if head is None:
            return False
        number, plan = self._numbers(head)
        first = next((fault for fault in plan if may_meet(fault, head)), None)
        if first in EARLY:
            self._note(number, head, first)
            self._turn_away(client, first)
            return False
        if head.header("expect").lower() == "100-continue":
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = replace(head, body=read_body(head, stream))
        fault = next((one for one in plan if one not in EARLY and may_meet(one, head) and fits(one, request)), None)
        self._note(number, request, fault)
        answer = self._faulty(client, upstream, request, fault, number) if fault else self._relay(upstream, request)
        if answer is None:
            return False
        keep = request.keep and fault not in {Fault.TOO_LARGE, Fault.TRUNCATE}
        client.sendall(answer.text(keep))
        return keep

    def _numbers(self, head: Request) -> tuple[int | None, list[Fault]]:
        if self._only is not None and not self._only(head.method, head.path):
            return None, []
        with self._lock:
            number, self._numbered = self._numbered, self._numbered + 1
        return number, planned(self.seed, number, self.share, self.faults)

    def _note(self, number: int | None, request: Request, fault: Fault | None) -> None:
        with self._lock:
            self.history.append(Call(number, request.method, request.target, fault))

    def _turn_away(self, client: socket.socket, fault: Fault) -> None:
        if fault is Fault.RESET_BEFORE:
            _reset_on_close(client)
            return
        if fault is Fault.DOWN:
            self._go_away()
        client.shutdown(socket.SHUT_WR)
        client.settimeout(5)  # what the client still sends is thrown away: closing over unread bytes would be a reset
        while client.recv(1 << 16):
            pass

    def _faulty(
        self, client: socket.socket, upstream: http.client.HTTPConnection, request: Request, fault: Fault, number: int | None
    ) -> Answer | None:
        """Return the broken answer, None if there is none and the connection ends."""
        if fault is Fault.TIMEOUT_LATE:
            _wait_for_hangup(client, self.hold)
        answer = self._relay(upstream, request) if fault.written else None
        if fault in {Fault.TIMEOUT_BEFORE, Fault.TIMEOUT_AFTER}:
            _wait_for_hangup(client, self.hold)
        if fault is Fault.RESET_AFTER:
            _reset_on_close(client)
        if fault is Fault.TRUNCATE and answer is not None:
            return replace(answer, body=answer.body[: len(answer.body) // 2], length=max(len(answer.body), 1))
        if fault is Fault.REJECT_ITEMS:
            return self._partly(upstream, request, random.Random(f"{self.seed}/{number}/items"))
        return CANNED.get(fault)

    def _relay(self, upstream: http.client.HTTPConnection, request: Request) -> Answer:
        """Return the target's answer. A connection that the target has closed meanwhile is opened anew; nothing is sent twice."""
        if upstream.sock is not None and select.select([upstream.sock], [], [], 0)[0]:
            upstream.close()
        try:
            upstream.putrequest(request.method, request.target, skip_accept_encoding=True)
            for name, value in request.headers:
                if name.lower() not in FRAMING:
                    upstream.putheader(name, value)
            if request.body or request.header("content-length"):
                upstream.putheader("Content-Length", str(len(request.body)))
            upstream.endheaders(request.body or None)
            got = upstream.getresponse()
            body = got.read()
        except (OSError, http.client.HTTPException) as error:
            upstream.close()
            with self._lock:
                self.unreachable += 1
            return Answer(502, [("Content-Type", "text/plain")], f"the proxy's target failed: {error!r}\n".encode())
        head_length = int(got.headers.get("content-length", "0")) if request.method == "HEAD" else None
        return Answer(got.status, got.getheaders(), body, head_length)

    def _partly(self, upstream: http.client.HTTPConnection, request: Request, chance: random.Random) -> Answer:
        """Return the merged answer of a bulk of which only some items were forwarded, in the order in which they were asked."""
        items = bulk_items(request) or []
        rejected = {place for place in range(len(items)) if chance.random() < 0.5} or {chance.randrange(len(items))}
        target, patterns = without_filter(request.target)
        body = b"".join(lines for place, (_, _, lines) in enumerate(items) if place not in rejected)
        left_out = {"content-encoding", "accept-encoding"}
        headers = [(name, value) for name, value in request.headers if name.lower() not in left_out]
        got: dict[str, object] = {"errors": True, "took": 0, "items": []}
        reply = [("X-Elastic-Product", "Elasticsearch"), ("Content-Type", request.header("accept") or "application/json")]
        if body:
            answer = self._relay(upstream, replace(request, target=target, headers=headers, body=body))
            if answer.status != 200:
                return answer
            got, reply = json.loads(answer.body), answer.headers
        written: Iterator[object] = iter(got["items"])  # type: ignore[call-overload]
        index = next((part for part in request.path.split("/")[1:-1]), None)
        merged = [
            {
                op: {
                    "_index": words.get("_index", index),
                    "_id": words.get("_id", f"rejected-{place}"),
                    "status": 429,
                    "error": REJECTED,
                }
            }
            if place in rejected
            else next(written)
            for place, (op, words, _) in enumerate(items)
        ]
        whole: object = {**got, "errors": True, "items": merged}
        return Answer(200, reply, json.dumps(filtered(whole, patterns) if patterns else whole).encode())


def _bound(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    return one


def _reset_on_close(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _wait_for_hangup(client: socket.socket, seconds: float) -> None:
    """Wait until the client closes its side; a client that waits longer than `seconds` sees the connection closed."""
    poll = select.poll()
    poll.register(client, select.POLLIN | select.POLLRDHUP)
    poll.poll(seconds * 1000)
