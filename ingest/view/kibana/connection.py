"""One connection to a Kibana server: what is tried again, and what its errors mean in a sentence.

Every request of ours may be sent twice: objects and rules have fixed ids. Sockets and TLS are those of the Elasticsearch client
(elastic_transport), so that a CA file or a fingerprint means the same for both servers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import orjson

from ingest.core.errors import StoreError
from ingest.environment import seconds
from ingest.view.kibana.credentials import DEFAULT_SPACE, SECRETS, login_header, trust_words

if TYPE_CHECKING:
    from elastic_transport import Urllib3HttpNode

PATIENCE_SECONDS, REQUEST_SECONDS = 120.0, 60.0
TRANSIENT = {429, 502, 503, 504}
AVAILABLE, DEGRADED = "available", "degraded"
JSON = "application/json"
LONGEST_TOLD = 300
Tell = Callable[[str], None]


class TransientError(Exception):
    """A request failed in a way that passes: it is sent again until patience ends; the text says how it failed."""


class NotReadyError(TransientError):
    """Kibana answers, and says that it is not ready: `level` is its own word for how it is."""

    def __init__(self, level: str, summary: str) -> None:
        super().__init__(f"Kibana says that it is {level}{f' ({summary})' if summary else ''}")
        self.level = level


class Refusal(Exception):  # noqa: N818  # an answer, not a failure: callers look at its status
    """Kibana understood a request and refused it: `status` and `reason`."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status, self.reason = status, reason


@dataclass(slots=True)
class Connection:
    """Requests to one space of one server. `retried` counts what had to be sent again, `tell` is told once why we wait."""

    url: str
    space: str = DEFAULT_SPACE
    patience: float = field(default_factory=lambda: seconds("TAILBOARD_KIBANA_PATIENCE", PATIENCE_SECONDS))
    request_seconds: float = field(default_factory=lambda: seconds("TAILBOARD_KIBANA_TIMEOUT", REQUEST_SECONDS))
    tell: Tell = lambda _: None
    retried: int = 0
    version: str = ""
    _headers: Mapping[str, str] = field(default_factory=dict)
    _node: Urllib3HttpNode | None = None

    @property
    def place(self) -> str:
        """Return the address of the space, as Kibana's own pages show it."""
        return f"{self.url}{self._inside}"

    @property
    def _inside(self) -> str:
        return "" if self.space == DEFAULT_SPACE else f"/s/{self.space}"

    def open(self) -> None:
        """Wait until Kibana is ready, see that it knows us and has the space; StoreError for whatever keeps us out."""
        self._node, self._headers = _node(self.url, self.request_seconds), _headers(self.url)
        try:
            self._again(self._ready, self.tell)
            self._again(self._space_there)
        except NotReadyError as error:
            if error.level != DEGRADED:
                raise StoreError(f"{self.url} was not ready within {self.patience:g} s: {error}") from None
            self.tell(f"{self.url}: {error}, and has been for {self.patience:g} s; going on")
            self._again(self._space_there)
        except TransientError as error:
            raise StoreError(f"{self.url} was not ready within {self.patience:g} s: {error}") from None
        except Refusal as error:
            if error.status == 404:
                advice = "give Kibana's address with its base path (server.basePath)"
                raise StoreError(f"{self.url} has no /api/status: {advice}") from None
            raise StoreError(f"{self.url} does not tell its state ({error})") from None

    def close(self) -> None:
        """Close all sockets."""
        if self._node is not None:
            self._node.close()

    def call(self, method: str, path: str, body: object = None, kind: str = JSON, **words: object) -> Any:
        """Return the decoded answer of a request in the space, sent again while it fails in a way that passes.

        `body` is bytes of the media type `kind`, or becomes JSON. Raises Refusal for what Kibana refuses, StoreError when
        patience ends or we may not.
        """
        try:
            return self._again(lambda: self.once(method, self._inside + path, body, kind, **words))
        except TransientError as error:
            raise StoreError(f"{self.url}: {error}") from None

    def once(self, method: str, path: str, body: object = None, kind: str = JSON, **words: object) -> Any:
        """Return the decoded answer of one request; TransientError, Refusal or StoreError if there is none."""
        status, headers, answer = self._exchanged(method, path, body, kind, words)
        if 200 <= status < 300 and isinstance(answer, Mapping | list):
            return answer
        raise self._judged(status, headers, answer)

    def _again(self, attempted: Callable[[], Any], tell: Tell | None = None) -> Any:
        from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        def count(state: RetryCallState) -> None:
            self.retried += 1
            if tell and state.attempt_number == 1 and state.outcome:
                tell(f"waiting for {self.url}: {state.outcome.exception()}")

        return Retrying(
            retry=retry_if_exception_type(TransientError),
            wait=wait_random_exponential(multiplier=0.1, max=10),
            stop=stop_after_delay(self.patience),
            before_sleep=count,
            reraise=True,
        )(attempted)

    def _exchanged(
        self, method: str, path: str, body: object, kind: str, words: Mapping[str, object]
    ) -> tuple[int, Mapping[str, str], Any]:
        """Return status, headers and decoded body of an answer, whatever it says; TransientError or StoreError if none came."""
        from elastic_transport import ConnectionError as Unreachable
        from elastic_transport import ConnectionTimeout, HttpHeaders, TlsError

        if self._node is None:
            raise AssertionError("open() comes first")
        query = urlencode({name: str(value).lower() if isinstance(value, bool) else value for name, value in words.items()})
        content = {} if body is None else {"content-type": kind}
        sent = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        headers = HttpHeaders({**self._headers, **content})
        try:
            answer = self._node.perform_request(method, f"{path}?{query}" if query else path, body=sent, headers=headers)
        except ConnectionTimeout:
            raise TransientError(f"no answer within {self.request_seconds:g} s") from None
        except TlsError as error:
            advice = "check TAILBOARD_KIBANA_CA_FILE or TAILBOARD_KIBANA_FINGERPRINT (docs/guides/kibana.md)"
            raise StoreError(f"{self.url}: the TLS connection fails ({str(error.message)[:200]}): {advice}") from None
        except Unreachable as error:
            raise self._unreachable(str(error.message)) from None
        return answer.meta.status, answer.meta.headers, _decoded(answer.meta.headers, answer.body)

    def _ready(self) -> None:
        """Note the version once Kibana says that it is available; TransientError while it does not."""
        status, headers, answer = self._exchanged("GET", "/api/status", None, "", {})
        told = answer.get("status") if isinstance(answer, Mapping) else None
        overall = told.get("overall") if isinstance(told, Mapping) else None
        if not isinstance(answer, Mapping) or not isinstance(overall, Mapping) or not overall.get("level"):
            raise self._judged(status, headers, answer)
        version = answer.get("version")
        self.version = str(version.get("number") or "") if isinstance(version, Mapping) else ""
        if overall["level"] != AVAILABLE:
            raise NotReadyError(str(overall["level"]), str(overall.get("summary") or ""))

    def _space_there(self) -> None:
        """Raise StoreError where Kibana has no such space: it would import into a space that nobody can enter."""
        try:
            self.once("GET", f"/api/spaces/space/{self.space}")
        except Refusal as error:
            if error.status != 404:
                raise StoreError(f"{self.url} refuses to show the space {self.space} ({error})") from None
            advice = "create it there (Stack Management > Spaces), or leave --space out"
            raise StoreError(f"{self.url} has no space {self.space}: {advice}") from None

    def _judged(self, status: int, headers: Mapping[str, str], answer: Any) -> Exception:
        """Return what an error answer means: to be sent again, not Kibana, not allowed, or refused."""
        if headers.get("x-elastic-product") == "Elasticsearch":
            return StoreError(f"{self.url} is Elasticsearch, not Kibana: give Kibana's own address (mostly port 5601)")
        told = answer.get("message") or answer.get("error") if isinstance(answer, Mapping) else answer
        reason = " ".join(str(told or "").split())[:LONGEST_TOLD]
        why = f": {reason}" if reason else ""
        if status in TRANSIENT:
            return TransientError(f"it answers {status}{why}")
        if 300 <= status < 400:
            return StoreError(f"{self.url} sends us on to {headers.get('location', 'elsewhere')}: give Kibana's own address")
        if status == 401:
            return StoreError(f"Kibana does not know us (401): set {SECRETS} (docs/guides/kibana.md)")
        if status == 403:
            return StoreError(f"Kibana does not let us do this (403{why}): docs/guides/kibana.md says what is needed")
        kibanas = isinstance(answer, Mapping) and "statusCode" in answer
        if status < 300 or (status in (404, 405) and not kibanas):
            return StoreError(f"{self.url} answers, but is no Kibana: check host, port and path")
        return Refusal(status, reason or "without a reason")

    def _unreachable(self, told: str) -> Exception:
        """Return what a connection that fails means; a name that nobody knows will not be known in a minute."""
        if "refused" in told:
            return TransientError("connection refused: is Kibana running there? (docker compose up -d)")
        if "Name or service not known" in told or "nodename nor servname" in told:
            return StoreError(f"{self.url}: the host is not known: check its name")
        return TransientError(f"the connection failed ({told[:200]})")


def _decoded(headers: Mapping[str, str], raw: bytes) -> Any:
    """Return the JSON of an answer; else its text where it is plain text; None where it is something else."""
    kind = headers.get("content-type", "")
    if "json" in kind:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise TransientError("an answer came in part") from None
    return raw.decode("utf-8", "replace") if kind.startswith("text/plain") else None


def _headers(url: str) -> dict[str, str]:
    from ingest import __version__

    ours = {"kbn-xsrf": "true", "accept": JSON, "user-agent": f"tailboard/{__version__}"}
    return {**ours, **login_header(urlsplit(url).hostname or "")}


def _node(url: str, request_seconds: float) -> Urllib3HttpNode:
    import logging

    from elastic_transport import NodeConfig, Urllib3HttpNode

    logging.getLogger("elastic_transport").addHandler(logging.NullHandler())  # what failed is told once, in a sentence
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    config = NodeConfig(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port or (443 if secure else 5601),
        path_prefix=parts.path.rstrip("/"),
        request_timeout=request_seconds,
        **(trust_words() if secure else {}),
    )
    return Urllib3HttpNode(config)
