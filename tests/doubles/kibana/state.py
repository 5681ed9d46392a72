"""What the double remembers: its configuration, saved objects by space, rules, and the requests it has seen."""

from __future__ import annotations

import base64
import threading
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.doubles.kibana.errors import Boom

Json = Any
# The newest version of each type that the oldest Kibana knows which tailboard wants to serve, as the facts sheet tells them.
KNOWN = {
    "dashboard": "10.2.0",
    "lens": "8.9.0",
    "visualization": "8.5.0",
    "index-pattern": "8.0.0",
    "search": "8.0.0",
    "map": "8.4.0",
    "links": "10.1.0",
    "tag": "8.0.0",
}


class Seen(NamedTuple):
    """One request that was answered: `path` with its query."""

    method: str
    path: str
    status: int
    length: int


@dataclass(slots=True)
class Stored:
    """A saved object: in which space it is, and from which id it stems if that is not its own."""

    line: Json
    space: str
    origin: str | None = None


@dataclass(slots=True)
class Request:
    """One request, its path without base path and space."""

    method: str
    path: str
    space: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class State:
    """All that the double knows."""

    version: str
    spaces: Collection[str]
    api_key: str | None = None
    basic: tuple[str, str] | None = None
    denied: Collection[str] = ()
    known: Mapping[str, str] = field(default_factory=lambda: KNOWN)
    max_import_bytes: int = 26_214_400
    max_import_objects: int = 10_000
    base_path: str = ""
    starting: int = 0
    levels: list[str] = field(default_factory=lambda: ["available"])
    faults: deque[str] = field(default_factory=deque)
    slow_seconds: float = 5.0
    objects: dict[tuple[str, str], Stored] = field(default_factory=dict)
    aliases: dict[tuple[str, str, str], str] = field(default_factory=dict)
    rules: dict[str, tuple[str, Json]] = field(default_factory=dict)
    seen: deque[Seen] = field(default_factory=lambda: deque(maxlen=10_000))
    refusals: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def numbers(self) -> tuple[int, int]:
        """Return major and minor version."""
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)

    @property
    def guarded(self) -> bool:
        """Return whether credentials are asked for."""
        return self.api_key is not None or self.basic is not None

    def authenticated(self, authorization: str | None) -> bool:
        """Return whether a request bears credentials; 401 where they are wrong."""
        if not self.guarded or not authorization:
            return not self.guarded
        wanted = [f"ApiKey {self.api_key}"] if self.api_key else []
        if self.basic:
            wanted.append(f"Basic {base64.b64encode(':'.join(self.basic).encode()).decode()}")
        if authorization not in wanted:
            raise Boom(
                401,
                "[security_exception\n\tRoot causes:\n\t\tsecurity_exception: unable to authenticate user]: unable to authenticate",
            )
        return True
