"""HTTP/1.1 on a socket: keep-alive, compression, the limit of a body, and answers as bytes."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from tests.doubles.elasticsearch.errors import CannotDo, Refusal
from tests.doubles.elasticsearch.node import Node, Request, Seen
from tests.doubles.elasticsearch.routes import check_media, dispatch
from tests.doubles.elasticsearch.sources import filter_path
from tests.doubles.serving import Conversation, Listening

Json = Any
DRAINED = 8 << 20  # of a body that is too large: what is read before the connection is cut


class Server(Listening):
    """The listening socket and its connections, one thread each."""

    def __init__(self, node: Node, max_content_length: int) -> None:
        super().__init__(Connection)
        self.node = node
        self.max_content_length = max_content_length


class Connection(Conversation):
    """One connection."""

    server: Server

    def _body(self) -> bytes | None:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._decoded(self._chunks())
        length = int(self.headers.get("Content-Length") or 0)
        if length > self.server.max_content_length:
            self._too_large(length)
            return None
        body = self.rfile.read(length) if length else b""
        if len(body) < length:
            raise ConnectionResetError("the client went away in the middle of a body")
        return self._decoded(body)

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().split(b";")[0] or b"-1", 16):
            parts.append(self.rfile.read(max(size, 0)))
            if size < 0 or self.rfile.readline() != b"\r\n":
                raise ConnectionResetError("the client went away in the middle of a body")
        self.rfile.readline()
        return b"".join(parts)

    def _decoded(self, body: bytes) -> bytes | None:
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding == "gzip" and body:
            body = zlib.decompress(body, 31)
        elif encoding not in ("identity", "gzip", ""):
            raise CannotDo(f"content encoding [{encoding}]")
        if len(body) > self.server.max_content_length:
            self._too_large(0)
            return None
        return body

    def _too_large(self, length: int) -> None:
        """Answer 413 as recorded: no body, no product header, connection closed; a large upload meets a closed connection."""
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 413 Request Entity Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.server.node.seen.append(Seen(self.command, self.path, 413, length))
        if 0 < length <= DRAINED + self.server.max_content_length:
            with contextlib.suppress(OSError):
                self.connection.settimeout(5)
                self.rfile.read(length)

    def _answer(self) -> None:
        node = self.server.node
        request: Request | None = None
        media, extra = "application/json", {}
        length = 0
        try:
            body = self._body()
            if body is None:
                return
            length = len(body)
            split = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = dict(parse_qsl(split.query, keep_blank_values=True))
            request = Request(self.command, split.path, self.path, given, headers, body)
            node.guard.check(headers.get("authorization"), self.path)
            media = check_media(node, request)
            with node.lock:
                status, found = dispatch(node, request)
                if isinstance(found, tuple):  # an answer with headers of its own
                    found, extra = found
                payload = self._encoded(request, found)
        except Refusal as refusal:
            status, payload, extra = refusal.status, orjson.dumps(refusal.body), refusal.headers
        except CannotDo as error:
            status, payload = 501, orjson.dumps(error.body())
            node.refusals.append(f"{self.command} {self.path}: {error.what}")
        except OSError:  # the client went away: a request that is not whole is no request
            self.close_connection = True
            return
        except Exception as error:  # the double's own fault: loud, too
            status, payload = 501, orjson.dumps(CannotDo(f"the double broke: {error!r}").body())
            node.refusals.append(f"{self.command} {self.path}: the double broke: {error!r}")
        node.seen.append(Seen(self.command, self.path, status, length))
        self._send(status, payload, media, extra)

    @staticmethod
    def _encoded(request: Request, found: Json) -> bytes:
        if isinstance(found, bytes):
            return found
        if "filter_path" in request.parameters:
            found = filter_path(orjson.loads(orjson.dumps(found)), request.parameters["filter_path"])
        option = orjson.OPT_INDENT_2 if request.parameters.get("pretty", "false") != "false" else None
        return orjson.dumps(found, option=option)

    def _send(self, status: int, payload: bytes, media: str, extra: dict[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status} {self.responses.get(status, ('',))[0]}",
            "X-elastic-product: Elasticsearch",
            f"content-type: {extra.pop('content-type', media)}",
        ]
        lines += [f"{name}: {value}" for name, value in extra.items()]
        if "gzip" in self.headers.get("Accept-Encoding", "") and self.command != "HEAD" and len(payload) > 1024:
            payload = gzip.compress(payload, 1)
            lines.append("content-encoding: gzip")
        lines.append(f"content-length: {len(payload)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        self.wfile.write(head if self.command == "HEAD" else head + payload)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = _answer
