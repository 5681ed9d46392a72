"""The server of the live page: waitress on one address, its connections, and the process that keeps a store up with logs.

Connections of the live page: who is slow, or holds many, does not keep others out.

- A request comes whole within REQUEST_SECONDS of its first byte (the first one: of the connection), however it drips.
- An answer is taken at SLOWEST_RATE bytes a second, after a start of PATIENCE_SECONDS.
- At most MOST_CONNECTIONS are open, at most MOST_OF_A_PEER from one address. For one more, that one is closed which has waited
  longest for the rest of a request or for a next one, of the address with the most; those that are being answered never are.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import shutil
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

from ingest.core.errors import StoreError, TailboardError, UsageError
from ingest.live import heeding
from ingest.live.serve.app import App
from ingest.live.watch.cycle import WatchCycle
from ingest.live.watch.files import hold_many_files, scanned
from ingest.live.watch.state import Watching
from ingest.load.plan import LoadOptions
from ingest.store import Store, open_store

MOST_CONNECTIONS, MOST_OF_A_PEER = 100, 50
REQUEST_SECONDS = 10.0
PATIENCE_SECONDS, SLOWEST_RATE = 30.0, 10_000


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that knows since when it has been waiting, and for what."""

    def __init__(self, *words: Any, **more: Any) -> None:
        self.asking: object = None
        self.asking_since: float | None = time.monotonic()
        self.idle_since = time.monotonic()
        self.taking_until: float | None = None
        super().__init__(*words, **more)

    def received(self, data: bytes) -> bool:
        """Take a part of a request; the clock of a request starts with its first part."""
        taken: bool = super().received(data)
        if self.request is None:
            self.asking_since, self.idle_since = None, time.monotonic()
        elif self.request is not self.asking and (self.asking is not None or self.asking_since is None):
            self.asking_since = time.monotonic()
        self.asking = self.request
        return taken

    @property
    def is_waiting(self) -> bool:
        """Return whether nothing is being done for it: it is the other side's turn."""
        return not (self.requests or self.total_outbufs_len or self.will_close)

    @property
    def waiting_since(self) -> float:
        """Return since when a connection that is waiting has been."""
        return self.idle_since if self.asking_since is None else self.asking_since

    def is_overdue(self, now: float) -> bool:
        """Return whether its request, or its taking of an answer, has lasted too long."""
        if not self.total_outbufs_len:
            self.taking_until = None
        elif self.taking_until is None:
            self.taking_until = now + PATIENCE_SECONDS + self.total_outbufs_len / SLOWEST_RATE
        if self.taking_until is not None and not self.requests:
            return now > self.taking_until
        return self.is_waiting and self.asking_since is not None and now > self.asking_since + REQUEST_SECONDS

    def cut(self) -> None:
        """End it, whether or not the other side listens; the server's loop then closes it."""
        self.will_close = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Server(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """A server that looks after its connections at each turn, and makes room for new ones."""

    channel_class = Channel

    def maintenance(self, now: float) -> None:
        """Close connections that are idle or overdue."""
        super().maintenance(now)
        for channel in self.active_channels.values():
            if channel.is_overdue(time.monotonic()):
                channel.cut()

    def handle_accept(self) -> None:
        """Take a connection, in place of another where there are too many."""
        super().handle_accept()
        channels = [channel for channel in self.active_channels.values() if not channel.will_close]
        peers = Counter(channel.addr[0] for channel in channels)
        most, number = max(peers.items(), key=lambda item: item[1], default=("", 0))
        if len(channels) <= MOST_CONNECTIONS and number <= MOST_OF_A_PEER:
            return
        own = [channel for channel in channels if channel.addr[0] == most]
        newest = max(own, key=lambda channel: channel.creation_time)
        waiting = [channel for channel in own if channel.is_waiting and channel is not newest]
        min(waiting, key=lambda channel: channel.waiting_since, default=newest).cut()


# The server of the live page: waitress on one address, by default of this computer alone.


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
    return UsageError(f"--listen {host} is no address of this computer ({error.strerror or error})")


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

    def stop(number: int, _frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    try:
        with heeding(stop), suppress(KeyboardInterrupt):
            server.run()  # ends by itself when interrupted
    finally:
        server.close()
    return signal.SIGINT in seen


# Logs behind a live page: a process of its own keeps a store up with them, which goes when the page does.


PACE_SECONDS = 0.5
QUIET_SECONDS = 3.0
LOGS_PATIENCE_SECONDS = 5.0

Say = Callable[[str], None]


@contextmanager
def as_store(paths: Sequence[Path], options: LoadOptions, say: Say) -> Iterator[str]:
    """Give the URL of a store that is kept up with logs; afterwards it is deleted. `say` gets sentences for people."""
    folder = Path(tempfile.mkdtemp(prefix="tailboard-"))
    url = f"sqlite:{folder / 'logs.db'}"
    try:
        with open_store(url, write=True):
            pass
        process = get_context("spawn").Process(target=keep_up, args=(paths, url, options, os.getpid(), say))
        process.start()
        try:
            yield url
        finally:
            process.terminate()
            process.join(LOGS_PATIENCE_SECONDS)
            process.kill()
            process.join()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_up(paths: Sequence[Path], url: str, options: LoadOptions, parent: int, say: Say) -> None:
    """Watch logs into a store, settle them when they are quiet, begin again when they change; end when `parent` has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who serves, and ends this one
    hold_many_files()
    with open_store(url, write=True) as store:
        settled = None
        while os.getppid() == parent:
            if scanned(paths) == settled:
                time.sleep(PACE_SECONDS)
                continue
            try:
                settled = _until_quiet(paths, store, options, parent, say)
            except TailboardError as error:
                say(str(error))
                time.sleep(LOGS_PATIENCE_SECONDS)
    shutil.rmtree(Path(url.removeprefix("sqlite:")).parent, ignore_errors=True)  # nobody is left who would


def _until_quiet(paths: Sequence[Path], store: Store, options: LoadOptions, parent: int, say: Say) -> object:
    """Watch until nothing has come for a while, then settle; return the files as they were just before."""
    watch, heard = WatchCycle(Watching.begun(paths, store, options)), time.monotonic()
    while time.monotonic() - heard < QUIET_SECONDS and os.getppid() == parent:
        done = watch.cycle()
        for text in done.said:
            say(text)
        if done.news:
            heard = time.monotonic()
        if not done.behind:
            time.sleep(PACE_SECONDS)
    files = scanned(paths)
    watch.cycle(last=True)
    watch.settle()
    for text in watch.watching.said:
        say(text)
    return files
