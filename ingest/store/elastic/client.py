"""One connection to an Elasticsearch server: its address, repeats, and its errors as sentences.

Every request of ours may be sent twice: documents and rollups are written by id, records with optimistic concurrency.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

import orjson

from ingest.core.errors import StoreError, UsageError
from ingest.environment import Server
from ingest.http import JSON, OVERLOADED, PASSING, TOO_LARGE, Answer, Client, TransientError, with_query

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

CLOSED = "index_closed_exception"
ELASTICSEARCH = Server("ES", "docs/guides/security.md", 9200, if_refused="is Elasticsearch running there? (docker compose up -d)")
DEFAULT_PREFIX = "tailboard"
PREFIX_WORD = "index_prefix"
CLOUD = "cloud:"
FIRST_CONTACT_SECONDS = 2.0
CONNECTIONS = 4
NDJSON = "application/x-ndjson"
PRODUCT = "Elasticsearch"
UNAVAILABLE = 503
WITHOUT_SHARD = ("unavailable_shards_exception", "no_shard_available_action_exception", "search_phase_execution_exception")
NO_COPY = "a shard has no copy on any node that runs: start the node again that held it"
MAJORS = ("8", "9")
PRESSURE = re.compile(r"coordinating_operation_bytes=(\d+).*max_coordinating(?:_and_primary)?_bytes=(\d+)")

Decode = Callable[[Answer], Any]


class OverloadedError(TransientError):
    """The server refuses a whole request for lack of memory (429): `kind`, `reason`, and whether it says that it never fits.

    Its pressure counts the bytes of a request against a limit, its breakers say PERMANENT.
    """

    def __init__(self, text: str, after: float, kind: str, reason: str, durability: str) -> None:
        super().__init__(text, after)
        self.kind, self.reason = kind, reason
        pressure = PRESSURE.search(reason)
        self.never_fits = durability == "PERMANENT" or bool(pressure and int(pressure[1]) > int(pressure[2]))


class TooLargeError(Exception):
    """The server refuses a body for its size."""


class Refusal(Exception):  # noqa: N818  # an answer, not a failure: callers look at its status
    """The server understood a request and refused it: `status`, `kind` (its error type) and `reason`."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(f"{status} {kind}: {reason}")
        self.status, self.kind, self.reason = status, kind, reason


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and which indices are ours: the URL without its query, and the index prefix that the query names.

    The URL may name several nodes of a cluster: http://HOST1:9200,HOST2:9200.
    """

    url: str
    prefix: str = DEFAULT_PREFIX

    @property
    def nodes(self) -> list[str]:
        """Return the URL of each node."""
        parts = urlsplit(self.url)
        return [urlunsplit(parts._replace(netloc=host)) for host in parts.netloc.split(",")]

    @property
    def store(self) -> str:
        """Return the store URL that commands take."""
        return self.url if self.prefix == DEFAULT_PREFIX else f"{self.url}?{urlencode({PREFIX_WORD: self.prefix})}"


def parse_address(url: str) -> Address:
    """Return the address in a store URL; UsageError for secrets in it, or for an index prefix that cannot be.

    `url` is http(s)://HOST[:PORT][,HOST[:PORT]...][/PATH][?index_prefix=NAME], or cloud:ID with the Cloud ID of a deployment.
    """
    cloud, _, query = url.partition("?")
    if cloud.startswith(CLOUD):
        url = f"{_of_cloud(cloud.removeprefix(CLOUD))}?{query}"
    parts = urlsplit(url)
    hosts = []
    for host in parts.netloc.split(","):
        one = ELASTICSEARCH.parts(urlunsplit(parts._replace(netloc=host)))
        if not one.hostname or f",{parts.scheme}:" in parts.netloc:
            several = f", and several nodes as {parts.scheme}://HOST1:9200,HOST2:9200" if "," in parts.netloc else ""
            raise UsageError(f"{url!r} names no host: give {parts.scheme}://HOST:9200{several}")
        port = one.port or (443 if one.scheme == "https" else ELASTICSEARCH.port)
        hosts.append(f"[{one.hostname}]:{port}" if ":" in one.hostname else f"{one.hostname}:{port}")
    words = dict(parse_qsl(parts.query))
    prefix = words.pop(PREFIX_WORD, os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    if words:
        raise UsageError(f"{url!r}: {', '.join(words)} is not understood; after ? only {PREFIX_WORD}=NAME")
    check_prefix(prefix)
    return Address(urlunsplit(SplitResult(parts.scheme, ",".join(hosts), parts.path.rstrip("/"), "", "")), prefix)


def _of_cloud(cloud_id: str) -> str:
    """Return the URL of the server of an Elastic Cloud deployment."""
    from elastic_transport.client_utils import parse_cloud_id

    try:
        host, port = parse_cloud_id(cloud_id).es_address or ("", 0)
    except ValueError:
        host, port = "", 0
    if not host:
        raise UsageError(
            f"{CLOUD}{cloud_id} is not a Cloud ID with an Elasticsearch: copy it from the deployment's page, after {CLOUD}"
        )
    return f"https://{host}:{port}"


def check_prefix(prefix: str) -> None:
    """Raise UsageError unless index names may begin with `prefix`."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", prefix):
        raise UsageError(f"{prefix!r} is not an index prefix: lower-case letters, digits, - _ . and a letter or digit first")


def import_client() -> None:
    """Import the official client, but not pyarrow, which it takes for answers that are never asked for: 30 ms of each start."""
    known = "pyarrow" in sys.modules
    if not known:
        sys.modules["pyarrow"] = None  # type: ignore[assignment]  # what is not there to whoever imports it
    try:
        import elasticsearch  # noqa: F401
    finally:
        if not known:
            del sys.modules["pyarrow"]


class Connection(Client):
    """Requests to one server, or to the nodes of one cluster; from any thread."""

    def __init__(self, address: Address) -> None:
        super().__init__(address.url, ELASTICSEARCH, urls=address.nodes)
        self.address, self.version = address, ""
        self._client: Elasticsearch | None = None

    def close(self) -> None:
        """Close all sockets."""
        if self._client is not None:
            self._client.close()

    def sent(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of the answer of a node; HTTPError of urllib3 or OSError if none came."""
        if self._client is None:
            import_client()
        from elastic_transport import SerializationError, TransportError
        from elasticsearch import ApiError

        if self._client is None:
            from ingest.store.elastic.transport import client_of

            self._client = client_of(self.urls, partial(self.pool, connections=CONNECTIONS))
        answer: Any = None
        below: BaseException | None = None
        try:
            answer = self._client.perform_request(method, target, headers=headers, body=body)
        except ApiError as error:
            answer = error
        except SerializationError:  # of a kind that no Elasticsearch sends
            raise self._not_elasticsearch() from None
        except TransportError as error:
            below = error.__cause__
        if answer is None:  # raised here, as its own context says why
            raise below or OSError("the connection failed")
        return answer.meta.status, answer.meta.headers, answer.body

    def open(self) -> None:
        """Make first contact: StoreError if nobody answers, it is no Elasticsearch, or its major version is not ours."""
        patience, self.patience = self.patience, min(self.patience, FIRST_CONTACT_SECONDS)
        try:
            version = self.call("GET", "/")["version"]
            self.version = str(version["number"])
        except Refusal as error:
            raise StoreError(f"{self.url} refuses GET / ({error})") from None
        except (KeyError, TypeError):
            raise self._not_elasticsearch() from None
        finally:
            self.patience = patience
        if version.get("build_flavor") == "serverless":
            raise StoreError(
                f"{self.url} is a serverless project, which refuses settings of indices that tailboard needs: "
                "take a hosted deployment, a server of your own, or a store in a file (sqlite:FILE)"
            )
        if self.version.split(".")[0] not in MAJORS:
            raise StoreError(f"{self.url} is Elasticsearch {self.version}; tailboard supports 8.x and 9.x")

    def call(self, method: str, path: str, body: object = None, decode: Decode = Answer.decoded, **params: Any) -> Any:
        """Return the decoded answer of a request, sent again while it fails in a way that passes.

        `decode` may find an answer wanting, or cut off, and raise TransientError. Raises Refusal for what the server refuses,
        TooLargeError for a bulk body that is too large, StoreError when patience ends or the login has no permission.
        """
        try:
            return self.again(lambda: self.once(method, path, body, decode, **params))
        except TransientError as error:
            raise StoreError(f"{self.url}: {error}") from None
        except TooLargeError:
            if isinstance(body, bytes):
                raise
            raise StoreError(f"{self.url} refuses a request for its size (http.max_content_length)") from None

    def once(self, method: str, path: str, body: object = None, decode: Decode = Answer.decoded, **params: Any) -> Any:
        """Return the decoded answer of one request; TransientError, TooLargeError, Refusal or StoreError if there is none."""
        headers = {"accept": JSON}
        if isinstance(body, bytes):
            headers["content-type"] = NDJSON
        elif body is not None:
            headers["content-type"], body = JSON, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        answer = self.exchange(method, with_query(quote(path, safe="/*,.@_-"), params), body, headers)
        ours = answer.headers.get("x-elastic-product") == PRODUCT
        if ours and 200 <= answer.status < 300:
            return decode(answer)
        error = _judged(answer)
        raise error if ours or not isinstance(error, Refusal) else self._not_elasticsearch(answer)

    @property
    def waiting(self) -> str:
        """Return how long the server may wait for a shard before it says that there is none: less than we wait for it."""
        return f"{max(int(self.request_seconds * 500), 1)}ms"

    def refresh(self, *indices: str) -> None:
        """Let searches see all that anybody has written to indices; those that are not there are none."""
        self.call("POST", f"/{','.join(indices)}/_refresh", ignore_unavailable=True)

    def _not_elasticsearch(self, answer: Answer | None = None) -> StoreError:
        decoded = answer.decoded() if answer else None
        version = decoded.get("version") if isinstance(decoded, Mapping) else None
        if isinstance(version, Mapping) and version.get("distribution") == "opensearch":
            return StoreError(
                f"{self.url} is OpenSearch, which has no histogram fields: "
                "take Elasticsearch 8 or 9, or a store in a file (sqlite:FILE)"
            )
        return StoreError(f"{self.url} answers, but is not Elasticsearch: check host and port")


def passing_sentence(status: int, kind: str) -> str:
    """Return what an error that passes means, as of a server that waited in vain for a shard."""
    if status == UNAVAILABLE and kind in WITHOUT_SHARD:
        return NO_COPY
    return f"the server answers {status} {kind or 'unavailable'}: it is overloaded or starting"


def _judged(answer: Answer) -> Exception:
    """Return what an error answer means: to be sent again, too large, forbidden, or refused."""
    status, decoded = answer.status, answer.decoded()
    error = decoded.get("error", {}) if isinstance(decoded, Mapping) else {}
    kind, reason = (str(error.get("type", "")), _reason(error)) if isinstance(error, Mapping) else ("", str(error))
    if status == TOO_LARGE:
        return TooLargeError(reason)
    if kind == "cluster_block_exception" and is_disk_full(reason):
        return TransientError(block_sentence(reason))
    if status in PASSING:
        text = passing_sentence(status, kind)
        if status != OVERLOADED:
            return TransientError(text, answer.after)
        durability = str(error.get("durability", "")) if isinstance(error, Mapping) else ""
        return OverloadedError(text, answer.after, kind, reason, durability)
    if kind == CLOSED:
        return StoreError(closed_in(error))
    if status == 401:
        return StoreError(ELASTICSEARCH.login_failed(status))
    if status == 403 and kind != "cluster_block_exception":
        return StoreError(_forbidden(reason))
    return Refusal(status, kind, reason)


def _reason(error: Mapping[str, Any]) -> str:
    causes = error.get("root_cause") or []
    deepest = causes[0].get("reason") if causes and isinstance(causes[0], Mapping) else None
    return str(deepest or error.get("reason") or "")


def closed_in(error: Mapping[str, Any]) -> str:
    """Return the sentence about the closed index that an error names."""
    causes = error.get("root_cause") or [error]
    return closed_sentence(str(error.get("index") or causes[0].get("index") or "an index"))


def closed_sentence(name: str) -> str:
    """Return what to do about a closed index."""
    return f"{name} is closed, so what it holds cannot be read or changed: open it (POST /{name}/_open), then run this again"


def limit_sentence(reason: str) -> str:
    """Return what to do where the server makes no further index."""
    excerpt = reason[:200]
    if "maximum" in reason and "shards" in reason:
        return (
            "it makes no further index, as the cluster has as many shards as it may have: delete old indices, or raise "
            f"cluster.max_shards_per_node, then run the same load again ({excerpt})"
        )
    return f"it makes no index for these documents: {excerpt}"


def is_disk_full(reason: str) -> bool:
    """Return whether an index is blocked since the disk is full (flood stage): the server lifts that when there is room again."""
    return "/12/" in reason or "flood-stage" in reason


def block_sentence(reason: str) -> str:
    """Return what to do about an index that takes no documents."""
    excerpt = reason[:200]
    if "disk" in reason or "read-only" in reason or "read_only" in reason:
        return f"the server takes no documents, its disk is full: free some space there, then run the same load again ({excerpt})"
    return f"an index takes no documents, writing to it is blocked: unblock it, then run the same load again ({excerpt})"


def _forbidden(reason: str) -> str:
    action = re.search(r"action \[([^\]]+)\]", reason)
    granted = re.search(r"granted by the (index|cluster) privileges? \[([^\]]+)\]", reason)
    what = f"the action {action[1]}" if action else "this request"
    needed = f": give the user one of the {granted[1]} privileges {granted[2]}" if granted else ""
    return f"no permission for {what} (403){needed} (docs/guides/security.md)"
