"""The server of the live page: waitress on one address, by default of this computer alone."""

from __future__ import annotations

import errno
import ipaddress
import logging
import signal
import socket
from types import FrameType

from waitress.server import BaseWSGIServer, create_server

from ingest.errors import StoreError, UsageError
from ingest.live.serve.app import App

THREADS = 8
MOST_CONNECTIONS = 100
IDLE_SECONDS = 30
LONGEST_HEADER, LONGEST_BODY = 16_384, 1024


def listening(app: App, host: str, port: int) -> BaseWSGIServer:
    """Return a server that listens at an address, of any free port where it is 0; `run` serves until it is interrupted.

    StoreError where the port is taken, UsageError where there is no such address here.
    """
    logging.getLogger("waitress").setLevel(logging.CRITICAL)  # what it says is for who writes servers
    return create_server(
        app,
        sockets=[_bound(host, port)],
        threads=THREADS,
        connection_limit=MOST_CONNECTIONS,
        channel_timeout=IDLE_SECONDS,
        cleanup_interval=IDLE_SECONDS // 3,
        max_request_header_size=LONGEST_HEADER,
        max_request_body_size=LONGEST_BODY,
        ident=None,
        expose_tracebacks=False,
    )


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address, which nothing else listens at."""
    found: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        if found is not None:
            found.close()
        raise _told(error, host, port) from None
    return found


def _told(error: OSError, host: str, port: int) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return StoreError(f"port {port} of {host} is in use: give another with --port, or --port 0 for any")
    if error.errno == errno.EACCES:
        return StoreError(f"port {port} of {host} is not for you: give one above 1023 with --port")
    return UsageError(f"--host {host} is no address of this computer ({error.strerror or error})")


def is_local(host: str) -> bool:
    """Return whether an address can be reached from this computer alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str) -> tuple[str, ...]:
    """Return the names that a browser may know this computer by, where it can be reached from elsewhere."""
    return (host,) if is_local(host) else (host, socket.gethostname(), socket.getfqdn())


def served(server: BaseWSGIServer) -> bool:
    """Serve until SIGINT or SIGTERM; return whether it was the first."""
    seen: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run()  # ends by itself when interrupted
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        server.close()
    return signal.SIGINT in seen
