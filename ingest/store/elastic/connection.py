"""One connection to an Elasticsearch server: who we are, what is tried again, and what its errors mean in a sentence.

Secrets come from the environment (TAILBOARD_ES_API_KEY; TAILBOARD_ES_USER and TAILBOARD_ES_PASSWORD; TAILBOARD_ES_CA_FILE;
TAILBOARD_ES_FINGERPRINT) or from netrc, never from an argument. Every request of ours may be sent twice: documents and
rollups are written by id, records with optimistic concurrency.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ingest.core.errors import StoreError, UsageError
from ingest.environment import netrc_login, seconds

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

DEFAULT_PREFIX = "tailboard"
PREFIX_WORD = "index_prefix"
PATIENCE_SECONDS, FIRST_CONTACT_SECONDS = 120.0, 2.0
REQUEST_SECONDS = 60.0
TRANSIENT = {429, 502, 503, 504}
JSON = {"accept": "application/json", "content-type": "application/json"}
NDJSON = {"accept": "application/json", "content-type": "application/x-ndjson"}
MAJORS = ("8", "9")
PRESSURE = re.compile(r"coordinating_operation_bytes=(\d+).*max_coordinating(?:_and_primary)?_bytes=(\d+)")

Check = Callable[[Any], None]


class TransientError(Exception):
    """A request failed in a way that passes: it is sent again until patience ends; the text says how it failed."""


class OverloadedError(TransientError):
    """The server refuses a whole request for lack of memory (429): `kind`, `reason`, and whether it says that it never fits.

    Its pressure counts the bytes of a request against a limit, its breakers say PERMANENT.
    """

    def __init__(self, text: str, kind: str, reason: str, durability: str = "") -> None:
        super().__init__(text)
        self.kind, self.reason = kind, reason
        found = PRESSURE.search(reason)
        self.never_fits = durability == "PERMANENT" or bool(found and int(found[1]) > int(found[2]))


class TooLargeError(Exception):
    """The server refuses a body for its size."""


class Refusal(Exception):  # noqa: N818  # an answer, not a failure: callers look at its status
    """The server understood a request and refused it: `status`, `kind` (its error type) and `reason`."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(f"{status} {kind}: {reason}")
        self.status, self.kind, self.reason = status, kind, reason


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and which indices are ours: the URL without its query, and the index prefix that the query names."""

    url: str
    prefix: str = DEFAULT_PREFIX

    @property
    def store(self) -> str:
        """Return the store URL that commands take."""
        return self.url if self.prefix == DEFAULT_PREFIX else f"{self.url}?{urlencode({PREFIX_WORD: self.prefix})}"


def parse_address(url: str) -> Address:
    """Return the address in a store URL; UsageError for secrets in it, or for an index prefix that cannot be."""
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise UsageError("no user or password in a URL: set TAILBOARD_ES_USER and TAILBOARD_ES_PASSWORD, or TAILBOARD_ES_API_KEY")
    if not parts.hostname:
        raise UsageError(f"{url!r} names no host: give http://HOST:9200")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 9200)
    except ValueError:
        raise UsageError(f"{url!r}: the port is no number from 1 to 65535") from None
    words = dict(parse_qsl(parts.query))
    prefix = words.pop(PREFIX_WORD, os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    if words:
        raise UsageError(f"{url!r}: {', '.join(words)} is not understood; after ? only {PREFIX_WORD}=NAME")
    check_prefix(prefix)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Address(urlunsplit(SplitResult(parts.scheme, f"{host}:{port}", parts.path.rstrip("/"), "", "")), prefix)


def check_prefix(prefix: str) -> None:
    """Raise UsageError unless index names may begin with `prefix`."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", prefix):
        raise UsageError(f"{prefix!r} is no index prefix: lower-case letters, digits, - _ . and a letter or digit first")


@dataclass(slots=True)
class Connection:
    """Requests to one server. `retried` counts what had to be sent again."""

    address: Address
    patience: float = field(default_factory=lambda: seconds("TAILBOARD_ES_PATIENCE", PATIENCE_SECONDS))
    request_seconds: float = field(default_factory=lambda: seconds("TAILBOARD_ES_TIMEOUT", REQUEST_SECONDS))
    connections: int = 4
    retried: int = 0
    version: str = ""
    _client: Elasticsearch | None = None

    def open(self) -> None:
        """Make first contact: StoreError if nobody answers, it is no Elasticsearch, or its major version is not ours."""
        self._client = _client(self)
        patience, self.patience = self.patience, min(self.patience, FIRST_CONTACT_SECONDS)
        try:
            self.version = str(self.call("GET", "/")["version"]["number"])
        except Refusal as error:
            raise StoreError(f"{self.address.url}: {_first_contact(error)}") from None
        except (KeyError, TypeError):
            raise StoreError(f"{self.address.url} answers, but is no Elasticsearch: check host and port") from None
        finally:
            self.patience = patience
        if self.version.split(".")[0] not in MAJORS:
            raise StoreError(f"{self.address.url} is Elasticsearch {self.version}; tailboard knows 8.x and 9.x")

    def close(self) -> None:
        """Close all sockets."""
        if self._client is not None:
            self._client.close()

    def call(self, method: str, path: str, body: object = None, check: Check | None = None, **params: Any) -> Any:
        """Return the decoded answer of a request, sent again while it fails in a way that passes.

        `check` may find an answer wanting and raise TransientError. Raises Refusal for what the server refuses, TooLargeError
        for a bulk body that is too large, StoreError when patience ends or we may not.
        """
        from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        def count(_: RetryCallState) -> None:
            self.retried += 1

        try:
            for attempt in Retrying(
                retry=retry_if_exception_type(TransientError),
                wait=wait_random_exponential(multiplier=0.1, max=10),
                stop=stop_after_delay(self.patience),
                before_sleep=count,
                reraise=True,
            ):
                with attempt:
                    answer = self.once(method, path, body, **params)
                    if check:
                        check(answer)
                    return answer
        except TransientError as error:
            raise StoreError(f"{self.address.url}: {error}") from None
        except TooLargeError:
            if isinstance(body, bytes):
                raise
            raise StoreError(f"{self.address.url} refuses a request for its size (http.max_content_length)") from None
        raise AssertionError("unreachable")  # Retrying returns or raises

    def once(self, method: str, path: str, body: object = None, **params: Any) -> Any:
        """Return the decoded answer of one request; TransientError, TooLargeError, Refusal or StoreError if there is none."""
        from elasticsearch import ApiError, ConnectionTimeout, SerializationError, TransportError, UnsupportedProductError
        from elasticsearch import ConnectionError as Unreachable

        if self._client is None:
            raise AssertionError("open() comes first")
        query = urlencode({name: _word(value) for name, value in params.items()}, safe="*,.")
        target = f"{quote(path, safe='/*,.@_-')}?{query}" if query else path
        headers = NDJSON if isinstance(body, bytes) else JSON
        try:
            return self._client.perform_request(method, target, headers=headers, body=body).body
        except ConnectionTimeout:
            raise TransientError(f"no answer within {self.request_seconds:g} s") from None
        except Unreachable as error:
            told = str(error.message)
            if any(word in told.lower() for word in ("certificate", "fingerprint")):
                advice = "check TAILBOARD_ES_CA_FILE or TAILBOARD_ES_FINGERPRINT (docs/guides/security.md)"
                raise StoreError(f"{self.address.url}: the TLS connection fails ({told[:200]}): {advice}") from None
            raise TransientError(_unreachable(told)) from None
        except SerializationError:
            raise TransientError("an answer came in part") from None
        except UnsupportedProductError:
            raise StoreError(f"{self.address.url} answers, but is no Elasticsearch: check host and port") from None
        except ApiError as error:
            raise _judged(error) from None
        except TransportError as error:
            raise StoreError(f"{self.address.url}: {error}") from None


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _client(connection: Connection) -> Elasticsearch:
    import logging

    from elasticsearch import Elasticsearch
    from elasticsearch.serializer import OrjsonSerializer

    logging.getLogger("elastic_transport").addHandler(logging.NullHandler())  # what failed is told once, in a sentence
    wanted: dict[str, Any] = {}
    key, user = os.environ.get("TAILBOARD_ES_API_KEY"), os.environ.get("TAILBOARD_ES_USER")
    if key:
        wanted["api_key"] = key
    elif user:
        wanted["basic_auth"] = (user, os.environ.get("TAILBOARD_ES_PASSWORD", ""))
    elif found := netrc_login(urlsplit(connection.address.url).hostname or ""):
        wanted["basic_auth"] = found
    if authority := os.environ.get("TAILBOARD_ES_CA_FILE"):
        if not Path(authority).is_file():
            raise StoreError(f"TAILBOARD_ES_CA_FILE: there is no file {authority}")
        wanted["ca_certs"] = authority
    if fingerprint := os.environ.get("TAILBOARD_ES_FINGERPRINT"):
        wanted["ssl_assert_fingerprint"] = fingerprint
    if connection.address.url.startswith("http:"):
        wanted = {name: value for name, value in wanted.items() if name in ("api_key", "basic_auth")}
    return Elasticsearch(
        connection.address.url,
        serializer=OrjsonSerializer(),
        max_retries=0,
        retry_on_timeout=False,
        request_timeout=connection.request_seconds,
        connections_per_node=connection.connections,
        **wanted,
    )


def _unreachable(text: str) -> str:
    if "refused" in text:
        return "connection refused: is Elasticsearch running there? (docker compose up -d)"
    if any(word in text for word in ("resolve", "Name or service", "getaddrinfo")):
        return "the host is not known: check its name"
    return f"the connection failed ({text[:200]})"


def _judged(error: Any) -> Exception:
    """Return what an error answer means: to be sent again, too large, forbidden, or refused."""
    status = int(error.status_code)
    body = error.body if isinstance(error.body, Mapping) else {}
    told = body.get("error", {})
    kind, reason = (str(told.get("type", "")), _reason(told)) if isinstance(told, Mapping) else ("", str(told))
    if status == 413:
        return TooLargeError(reason)
    if kind == "cluster_block_exception" and is_disk_full(reason):
        return TransientError(block_sentence(reason))
    if status in TRANSIENT:
        text = f"the server answers {status} {kind or 'unavailable'}: it is overloaded or starting"
        durability = str(told.get("durability", "")) if isinstance(told, Mapping) else ""
        return OverloadedError(text, kind, reason, durability) if status == 429 else TransientError(text)
    if status == 401:
        variables = "TAILBOARD_ES_API_KEY, or TAILBOARD_ES_USER and TAILBOARD_ES_PASSWORD"
        return StoreError(f"the server does not know us (401): set {variables} (docs/guides/security.md)")
    if status == 403 and kind != "cluster_block_exception":
        return StoreError(_forbidden(reason))
    return Refusal(status, kind, reason)


def _reason(told: Mapping[str, Any]) -> str:
    causes = told.get("root_cause") or []
    deepest = causes[0].get("reason") if causes and isinstance(causes[0], Mapping) else None
    return str(deepest or told.get("reason") or "")


def is_disk_full(reason: str) -> bool:
    """Return whether an index is blocked since the disk is full (flood stage): the server lifts that when there is room again."""
    return "/12/" in reason or "flood-stage" in reason


def block_sentence(reason: str) -> str:
    """Return what to do about an index that takes no documents."""
    told = reason[:200]
    if "disk" in reason or "read-only" in reason or "read_only" in reason:
        return f"the server takes no documents, its disk is full: free some space there, then run the same load again ({told})"
    return f"an index takes no documents, writing to it is blocked: unblock it, then run the same load again ({told})"


def _forbidden(reason: str) -> str:
    action = re.search(r"action \[([^\]]+)\]", reason)
    granted = re.search(r"granted by the (index|cluster) privileges? \[([^\]]+)\]", reason)
    what = f"the action {action[1]}" if action else "this"
    needed = f": give it one of the {granted[1]} privileges {granted[2]}" if granted else ""
    return f"the server does not let us do {what} (403){needed} (docs/guides/security.md)"


def _first_contact(error: Refusal) -> str:
    if error.kind == "media_type_header_exception" or error.status == 406:
        from importlib.metadata import version

        ours = version("elasticsearch")
        wanted = "elasticsearch>=8.15,<9" if ours.startswith("9") else "elasticsearch>=9,<10"
        return f"its major version is not that of the Python client ({ours}): pip install '{wanted}'"
    return f"it refuses GET / ({error})"
