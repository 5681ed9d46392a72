"""A live page's server for tests: in this process or as the command, asked by raw requests; and a store that grows by windows."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from unittest.mock import patch

import orjson

from ingest.live.serve import app
from ingest.live.serve import cache as desk
from ingest.live.serve.app import application
from ingest.live.serve.page import Subject
from ingest.live.serve.server import listening
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.records import RunRecord, SourceRecord
from tests.doubles.origin import SECOND, ZERO, Made, Row, series

REFRESH = SECOND
LONG = 300.0  # seconds after which something hangs


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def get(port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None) -> Answer:
    """Return what the server answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
    try:
        connection.request(method, path, body, headers or {})
        found = connection.getresponse()
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
    finally:
        connection.close()


def raw(port: int, request: bytes) -> bytes:
    """Return all that the server says to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=LONG) as wire:
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        found = b""
        while part := wire.recv(65536):
            found += part
    return found


@contextmanager
def serving(url: str, question: Question | None = None, refresh_ns: int = REFRESH, **words) -> Iterator[int]:
    """Give the port of a server in this process, which waits for what is new however busy the computer is."""
    with patch.object(app, "PATIENCE_SECONDS", LONG), patch.object(desk, "FIRST_SECONDS", LONG):
        yield from _serving(listening(application(Subject(url, question or Question(), refresh_ns), **words), "127.0.0.1", 0))


def _serving(server) -> Iterator[int]:
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield int(server.effective_port)
    finally:
        open_ones = list(server._map.values())
        server._map.clear()  # which ends its loop
        server.pull_trigger()
        thread.join(10)
        for one in open_ones:
            one.close()


class Command:
    """`tailboard report --live` as a process of its own."""

    def __init__(self, *words: str, port: int = 0) -> None:
        line = [sys.executable, "-m", "ingest", "serve", *words, "--port", str(port)]
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        self.said = self.process.stderr.readline()
        found = re.search(r"http://[^/]*:(\d+)/", self.said)
        self.port = int(found[1]) if found else 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def resident(self) -> int:
        """Return how many bytes of memory it holds."""
        return self._told("VmRSS")

    @property
    def peak(self) -> int:
        """Return how many bytes of memory it has held at most."""
        return self._told("VmHWM")

    def _told(self, name: str) -> int:
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", told)[1]) * 1024

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Return the exit status, and what it said since the first line."""
        self.process.send_signal(number)
        return self.process.wait(15), self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self.process.stderr.close()


def put(url: str, rows: Sequence[Row], run: str = "r", *, done: bool = True, generation: int = 1, zero: int = ZERO) -> None:
    """Write rows of (series, window of a second, {bin: count}) into a run, as a load does; `done` ends it."""
    windows = Made([(replace(one, run=run), at, bins) for one, at, bins in rows], zero=zero)._parts(False)[0]
    record = RunRecord(run, run, SECOND, start_ns=zero, zero="given")
    source = SourceRecord(run, "s", "s.log", 1, "d", generation=generation)
    spans = {key: (zero, zero + (1 + max(at for *_, at, _ in rows)) * SECOND) for key in windows.table}
    with open_store(url, write=True) as store:
        store.begin(record, [source])
        store.write(record, source, store.packed(record, source, windows))
        if done:
            store.finish_source(source, spans)
            store.finish_run(record)


def plain(windows: range, op: str = "read", host: str = "h1", base: int = 900, count: int = 100) -> list[Row]:
    """Return rows of one series: some latencies around a bin in each window."""
    return [(series(op, host), at, {base + at % 7: count, base + 300: 2}) for at in windows]


def update(port: int, query: str = "") -> dict:
    """Return what an open page is told of a selection."""
    answer = get(port, f"/data{query}")
    assert answer.status == 200, answer.text
    return orjson.loads(answer.body)


class Relay:
    """Passes connections on to a server, until it is cut."""

    def __init__(self, url: str) -> None:
        self._to = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self._wires: list[socket.socket] = []
        self._door = self._opened(0)
        self.port = self._door.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def _opened(self, port: int) -> socket.socket:
        door = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(door,), daemon=True).start()
        return door

    def _accept(self, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                wire, _ = door.accept()
                there = socket.create_connection(self._to)
                self._wires += [wire, there]
                for one, other in ((wire, there), (there, wire)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while part := one.recv(65536):
                other.sendall(part)
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Close all connections and take no more."""
        for one in (self._door, *self._wires):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._wires.clear()

    def mend(self) -> None:
        """Take connections again."""
        self._door = self._opened(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.cut()
