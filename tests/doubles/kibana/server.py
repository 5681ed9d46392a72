"""The double as tests use it: HTTP in, JSON out."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.doubles.kibana.errors import Boom, CannotDo
from tests.doubles.kibana.routes import answered
from tests.doubles.kibana.state import KNOWN, Request, Seen, State
from tests.doubles.serving import Conversation, Listening, Serving

Json = Any
FAULTS = ("503", "502", "504", "429", "reset", "reset_after", "slow", "half")


class KibanaDouble(Serving):
    """A Kibana in this process, on 127.0.0.1 and a free port, from `with` to its end.

    `starting`: how many requests are answered "not ready yet" before it is up. `levels`: what /api/status says one call after
    the other, the last for good. `denied`: parts of paths that our user may not use.
    """

    def __init__(
        self,
        version: str = "9.5.3",
        spaces: Collection[str] = ("default",),
        *,
        api_key: str | None = None,
        basic: tuple[str, str] | None = None,
        denied: Collection[str] = (),
        known: Mapping[str, str] = KNOWN,
        max_import_bytes: int = 26_214_400,
        base_path: str = "",
        starting: int = 0,
        levels: Sequence[str] = ("available",),
        slow_seconds: float = 5.0,
    ) -> None:
        self.state = State(
            version, spaces, api_key, basic, denied, known, max_import_bytes,
            base_path=base_path, starting=starting, levels=list(levels), slow_seconds=slow_seconds,
        )  # fmt: skip
        super().__init__(_Server(self.state))

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"{self.origin}{self.state.base_path}"

    @property
    def requests(self) -> deque[Seen]:
        """Return the requests so far: method, path with query, status, bytes of the body."""
        return self.state.seen

    @property
    def refusals(self) -> list[str]:
        """Return what the double could not do: a test asserts that it is empty."""
        return self.state.refusals

    def objects(self, space: str = "default") -> dict[tuple[str, str], Json]:
        """Return the saved objects of a space by type and id."""
        with self.state.lock:
            return {key: stored.line for key, stored in self.state.objects.items() if stored.space == space}

    def aliases(self, space: str) -> dict[tuple[str, str], str]:
        """Return which ids of a space lead to objects of another id, by type and id."""
        with self.state.lock:
            return {(kind, old): new for (inside, kind, old), new in self.state.aliases.items() if inside == space}

    def rules(self, space: str = "default") -> dict[str, Json]:
        """Return the rules of a space by id."""
        with self.state.lock:
            return {name: rule for name, (inside, rule) in self.state.rules.items() if inside == space}

    def fail_next(self, *faults: str) -> None:
        """Let the next requests fail, one after the other: 503, 502, 504, 429, reset, reset_after (done, answer lost), slow, half."""
        if set(faults) - set(FAULTS):
            raise ValueError(f"faults are {FAULTS}")
        with self.state.lock:
            self.state.faults.extend(faults)


class _Server(Listening):
    def __init__(self, state: State) -> None:
        super().__init__(_Connection)
        self.state = state


class _Connection(Conversation):
    server: _Server

    def _answer(self) -> None:
        state = self.server.state
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with state.lock:
            fault = state.faults.popleft() if state.faults else ""
            starting, state.starting = state.starting > 0, max(0, state.starting - 1)
        if fault == "reset":
            self._reset()
            return
        if fault.isdigit():
            self._send(int(fault), b"<html><body><h1>a gateway's page</h1></body></html>", "text/html", len(body))
        elif starting:
            self._send(503, b"Kibana server is not ready yet", "text/plain; charset=utf-8", len(body))
        else:
            status, found = self._found(body)
            if fault == "reset_after":
                self._reset()
                return
            if fault == "slow":
                time.sleep(state.slow_seconds)
            raw = json.dumps(found).encode()
            self._send(status, raw, "application/json; charset=utf-8", len(body), broken=fault == "half")

    def _found(self, body: bytes) -> tuple[int, Json]:
        state = self.server.state
        split = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            self.command, split.path, "default", dict(parse_qsl(split.query, keep_blank_values=True)), headers, body
        )
        try:
            with state.lock:
                return answered(state, request)
        except Boom as error:
            return error.status, error.body
        except CannotDo as error:
            what = str(error)
        except Exception as error:  # the double's own fault: loud, too
            what = f"the double broke: {error!r}"
        state.refusals.append(f"{self.command} {self.path}: {what}")
        return 501, {"statusCode": 501, "error": "Not Implemented", "message": what}

    def _send(self, status: int, payload: bytes, kind: str, length: int, *, broken: bool = False) -> None:
        self.server.state.seen.append(Seen(self.command, self.path, status, length))
        shown = payload[: len(payload) // 2] if broken else payload
        self.send_response(status)
        self.send_header("kbn-name", "double")
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(shown)
        self.close_connection = broken

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = _answer
