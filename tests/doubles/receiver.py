"""A receiver of webhooks: notes what is posted, and answers as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What came: bodies that were taken, all requests. `answers` are statuses for the next requests, then 204."""

    url: str = ""
    taken: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False


@contextmanager
def receiver(*answers: int) -> Iterator[Receiver]:
    """Give a receiver on a free port."""
    told = Receiver(answers=list(answers))
    done = threading.Event()

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if told.silent:
                done.wait(30)
                return
            status = told.answers.pop(0) if told.answers else 204
            if status < 300:
                told.taken.append(json.loads(body))
            self.send_response(status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_port}/hooks/a-secret-path"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        done.set()
        server.shutdown()
        server.server_close()
