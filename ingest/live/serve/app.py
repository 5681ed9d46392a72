"""The live page as a WSGI application: two addresses, read-only, for a browser on a host that is known here.

    /          the page of a selection (see selection.py), or one that waits until there is something to show
    /data      what an open page needs to show it anew, as JSON; 304 where `If-None-Match` names what it shows already

Every answer says how old it is (`Age`), forbids to be kept or framed, and names no other origin. Errors are sentences.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from http.client import responses
from typing import Any

from ingest.core.errors import InputError, StoreError, TailboardError, UsageError, shown
from ingest.live.serve.cache import BusyError, Cache, version_of
from ingest.live.serve.page import LONGEST_QUERY, Selection, Subject, View, parse_selection, view_of
from ingest.view.page.template import LIVE, filled, page_around, page_file, policy, text

HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(:\d{1,5})?", re.IGNORECASE)
LOCAL = ("127.0.0.1", "localhost", "[::1]")
RETRY_SECONDS = 2
PATIENCE_SECONDS = 3.0
NOTHING = "default-src 'none'"
ALWAYS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
PHRASES = {**responses, 414: "URI Too Long"}  # as Python has it from 3.13 on

Start = Callable[[str, list[tuple[str, str]]], Any]
App = Callable[[Mapping[str, Any], Start], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, body and type, the policy of what the body may do, and further headers."""

    status: int
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    allowed: str = NOTHING
    headers: tuple[tuple[str, str], ...] = ()


def application(subject: Subject, named: Collection[str] = (), *, anywhere: bool = False) -> App:
    """Return the application for a subject: under local and `named` names, with `anywhere` under all addresses."""
    version = version_of(subject.url)
    fresh = min(1.0, subject.refresh_ns / 4e9)
    make = lambda selection, before: view_of(subject, version, selection, before)
    cache: Cache[Selection, View] = Cache(make, fresh, PATIENCE_SECONDS)
    known = {name.lower() for name in (*LOCAL, *named)}

    def app(environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        reply = _refused(environ, known, anywhere=anywhere) or _answered(environ, cache)
        with_type = [("Content-Type", reply.kind)] if reply.body else []
        policies = [("Content-Security-Policy", f"{reply.allowed}; frame-ancestors 'none'")]
        length = [] if reply.status in (204, 304) else [("Content-Length", str(len(reply.body)))]
        start(f"{reply.status} {PHRASES[reply.status]}", [*with_type, *length, *policies, *ALWAYS, *reply.headers])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply.body]

    return app


def _refused(environ: Mapping[str, Any], known: Collection[str], *, anywhere: bool) -> Reply | None:
    """Return the answer to requests that are refused: another host's name (a page elsewhere may do so), writing, length."""
    if not _is_here(environ.get("HTTP_HOST", ""), known, anywhere=anywhere):
        return _sentence(403, "this server is not known by that name: open the address that it printed")
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return _sentence(405, "this server accepts only GET and HEAD", ("Allow", "GET, HEAD"))
    if len(environ.get("QUERY_STRING", "")) > LONGEST_QUERY:
        return _sentence(414, f"the query of the address is longer than {LONGEST_QUERY} characters")
    if environ["PATH_INFO"] == "/data" and environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("same-origin", "none"):
        return _sentence(403, "only this page may request its data")
    return None


def _is_here(host: str, known: Collection[str], *, anywhere: bool) -> bool:
    name = match[1].lower() if (match := HOST.fullmatch(host)) else ""
    if name in known or not anywhere:
        return name in known
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _answered(environ: Mapping[str, Any], cache: Cache[Selection, View]) -> Reply:
    path = environ["PATH_INFO"]
    if path == "/favicon.ico":
        return Reply(204)
    if path not in ("/", "/data"):
        return _sentence(404, "not found: / is the page, /data its data")
    try:
        kept = cache.ask(parse_selection(environ.get("QUERY_STRING", "")))
    except UsageError as error:
        return _sentence(400, str(error))
    except (InputError, StoreError, BusyError) as error:
        return _nothing_yet(path, error)
    except Exception as error:  # noqa: BLE001  # a page that is open goes on asking
        print(shown(f"tailboard: internal error ({type(error).__name__}: {error})"), file=sys.stderr)
        return _sentence(500, f"internal error ({type(error).__name__}): the terminal of tailboard report --live shows more")
    age = ("Age", str(int(kept.age)))
    if path == "/":
        page, allowed = kept.made.page()
        return Reply(200, page.encode(), "text/html; charset=utf-8", allowed, (age,))
    headers = (("ETag", f'"{kept.made.tag}"'), age)
    tags = environ.get("HTTP_IF_NONE_MATCH", "").split(",")
    if kept.made.tag in {tag.strip().removeprefix("W/").strip('"') for tag in tags}:
        return Reply(304, headers=headers)
    return Reply(200, kept.made.update(), "application/json", headers=headers)


def _nothing_yet(path: str, error: TailboardError) -> Reply:
    """Return why there is nothing to show: in a page that asks again by itself, or to a page that is open."""
    later = ("Retry-After", str(RETRY_SECONDS))
    if path == "/data":
        return _sentence(404, str(error)) if isinstance(error, InputError) else _sentence(503, str(error), later)
    filling = {"title": "Nothing to show yet", "attributes": "", "promise": LIVE, "data": ""}
    main = filled("live/waiting.html", {"reason": text(str(error))})
    script = page_file("live/waiting.js")
    page = page_around({**filling, "main": main}, script, connect=True).encode()
    allowed = policy("", script, connect=True)
    return Reply(200 if isinstance(error, InputError) else 503, page, "text/html; charset=utf-8", allowed, (later,))


def _sentence(status: int, sentence: str, *headers: tuple[str, str]) -> Reply:
    return Reply(status, f"{sentence}\n".encode("utf-8", "backslashreplace"), headers=headers)
