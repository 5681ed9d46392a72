"""Connections of the live page: who is slow, or holds many, does not keep others out.

- A request comes whole within REQUEST_SECONDS of its first byte (the first one: of the connection), however it drips.
- An answer is taken at SLOWEST_RATE bytes a second, after a start of PATIENCE_SECONDS.
- At most MOST_CONNECTIONS are open, at most MOST_OF_A_PEER from one address. For one more, that one is closed which has waited
  longest for the rest of a request or for a next one, of the address with the most; those that are being answered never are.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

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
