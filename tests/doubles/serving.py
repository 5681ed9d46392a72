"""What the doubles of servers share: a port of 127.0.0.1, a thread a connection, and an end that cuts all of them."""

from __future__ import annotations

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class Listening(ThreadingHTTPServer):
    """The listening socket and its connections."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, conversation: type[Conversation]) -> None:
        super().__init__(("127.0.0.1", 0), conversation)
        self.open: set[socket.socket] = set()

    def close_all(self) -> None:
        """Cut all connections and stop listening."""
        for one in list(self.open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be silent about clients that go away; other errors are answered where they happen."""


class Conversation(BaseHTTPRequestHandler):
    """One connection, kept open from request to request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listening

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the base class's
        """Say nothing."""


class Serving:
    """A server in this process, from `with` to its end."""

    def __init__(self, server: Listening) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.close_all()
        self._thread.join(5)

    @property
    def origin(self) -> str:
        """Return where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"
