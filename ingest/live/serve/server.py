"""The server of the live page: waitress on one address, by default of this computer alone."""

from __future__ import annotations

import errno
import ipaddress
import logging
import signal
import socket
from types import FrameType

from waitress.adjustments import Adjustments

from ingest.core.errors import StoreError, UsageError
from ingest.live.serve.app import App
from ingest.live.serve.connections import MOST_CONNECTIONS, Server

THREADS = 8
IDLE_SECONDS, LOOK_SECONDS = 30, 1
LONGEST_HEADER, LONGEST_BODY = 16_384, 1024


def listening(app: App, host: str, port: int) -> Server:
    """Return a server that listens at an address, of any free port where it is 0; `run` serves until it is interrupted.

    StoreError where the port is taken, UsageError where there is no such address here.
    """
    logging.getLogger("waitress").setLevel(logging.CRITICAL)  # what it says is for who writes servers
    door = _bound(host, port)
    settings = Adjustments(
        sockets=[door],
        threads=THREADS,
        connection_limit=2 * MOST_CONNECTIONS,  # room is made before
        channel_timeout=IDLE_SECONDS,
        cleanup_interval=LOOK_SECONDS,
        asyncore_loop_timeout=LOOK_SECONDS,
        max_request_header_size=LONGEST_HEADER,
        max_request_body_size=LONGEST_BODY,
        ident=None,
        expose_tracebacks=False,
    )
    sockinfo = (door.family, door.type, door.proto, door.getsockname())
    return Server(app, _sock=door, adj=settings, bind_socket=False, sockinfo=sockinfo)


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address, which nothing else listens at."""
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise _as_sentence(error, host, port) from None
    return listener


def _as_sentence(error: OSError, host: str, port: int) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return StoreError(f"port {port} of {host} is in use: give another with --port, or --port 0 for any")
    if error.errno == errno.EACCES:
        return StoreError(f"no permission to use port {port} of {host}: choose one above 1023 with --port")
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


def served(server: Server) -> bool:
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
