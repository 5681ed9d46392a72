"""The live page's server under slow, half-open and many connections: good requests are answered, the others are closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from ingest.live.serve import server
from ingest.live.serve.server import listening
from tests.live.serving import LONG, _serving, get

HALF = b"GET /data HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
LARGE = b"x" * 30_000_000


def application(environ, start):
    body = LARGE if environ["PATH_INFO"] == "/large" else b"good"
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    monkeypatch.setattr("ingest.live.serve.server.LOOK_SECONDS", 0.05)
    yield from _serving(listening(application, "127.0.0.1", 0))


@pytest.fixture
def opened() -> Iterator[Callable[..., socket.socket]]:
    """Give what opens a connection and sends something; all are closed in the end."""
    with ExitStack() as stack:

        def connection(port: int, sent: bytes, peer: str = "127.0.0.1") -> socket.socket:
            wire = socket.create_connection(("127.0.0.1", port), timeout=LONG, source_address=(peer, 0))
            stack.enter_context(wire)
            wire.sendall(sent)
            return wire

        yield connection


@contextmanager
def dripping(wires: list[socket.socket]) -> Iterator[threading.Event]:
    """Send a byte on each of the connections again and again, as long as it is open."""
    end = threading.Event()

    def drip() -> None:
        while not end.wait(0.02):
            for wire in wires:
                with suppress(OSError):
                    wire.send(b"x", socket.MSG_DONTWAIT)

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield end
    finally:
        end.set()
        thread.join()


def ended(wire: socket.socket) -> bool:
    """Wait until the server has closed a connection; whether it did so without an answer."""
    try:
        return not wire.recv(1)
    except ConnectionResetError:
        return True


def answered(wire: socket.socket) -> None:
    """Read an answer to its end."""
    found = b""
    while not found.endswith(b"\r\n\r\ngood"):
        assert (part := wire.recv(65536)), found
        found += part


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.2"])
def test_g3_good_requests_are_answered_while_others_drip(port: int, opened, peer: str) -> None:
    """300 half-open requests, from the same address or another, none of which the deadline has closed yet."""
    wires = [opened(port, HALF, peer) for _ in range(300)]
    with dripping(wires):
        for _ in range(5):
            assert get(port, "/").body == b"good"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        HALF,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["nothing", "a byte", "headers", "a body", "chunks"],
)
def test_g3_a_request_that_does_not_come_whole_is_closed_however_it_drips(port: int, opened, monkeypatch, sent: bytes) -> None:
    wires = [opened(port, sent) for _ in range(3)]
    with dripping(wires if sent else []):
        assert get(port, "/").body == b"good"
        monkeypatch.setattr(server, "REQUEST_SECONDS", 0.1)
        for wire in wires:
            while not ended(wire):  # a refusal may come before the end
                pass
        monkeypatch.setattr(server, "REQUEST_SECONDS", LONG)
        assert get(port, "/").body == b"good"


def test_g3_a_second_request_has_a_deadline_of_its_own(port: int, opened, monkeypatch) -> None:
    """A connection that is kept open is not closed for what it asked before, but for a next request that drips."""
    wire = opened(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answered(wire)
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    wire.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answered(wire)
    wire.sendall(HALF)
    with dripping([wire]):
        assert ended(wire)


@pytest.mark.slow
def test_g3_who_does_not_take_an_answer_is_closed(port: int, opened, monkeypatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(server, "SLOWEST_RATE", 1e12)
    wires = [opened(port, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(3)]
    assert get(port, "/").body == b"good"
    for wire in wires:
        held = 0
        with suppress(ConnectionResetError):
            while part := wire.recv(1024):
                held += len(part)
                if held < 200_000:
                    get(port, "/")  # slowly
        assert held < len(LARGE)


def test_g3_those_that_are_being_answered_are_never_closed_for_others(opened, monkeypatch) -> None:
    monkeypatch.setattr(server, "MOST_OF_A_PEER", 4)
    go, begun = threading.Event(), threading.Semaphore(0)

    def working(environ, start):
        if environ["PATH_INFO"] == "/work":
            begun.release()
            go.wait(LONG)
        return application(environ, start)

    for port in _serving(listening(working, "127.0.0.1", 0)):
        wires = [opened(port, b"GET /work HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") for _ in range(4)]
        assert all(begun.acquire(timeout=LONG) for _ in wires)
        assert sum(ended(opened(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")) for _ in range(3)) == 3, "no room"
        elsewhere = opened(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "127.0.0.3")
        answered(elsewhere)  # another address has room
        go.set()
        for wire in wires:
            found = b""
            while part := wire.recv(65536):
                found += part
            assert found.endswith(b"good")
