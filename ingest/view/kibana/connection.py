"""One connection to a Kibana server: what is repeated, and what its errors mean in a sentence.

Every request of ours may be sent twice: objects and rules have fixed ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.core.writing import number
from ingest.http import JSON, PASSING, Answer, Client, TransientError, with_query
from ingest.view.kibana.address import DEFAULT_SPACE, KIBANA

AVAILABLE, DEGRADED = "available", "degraded"
LONGEST_TOLD = 300
OURS = {"kbn-xsrf": "true", "accept": JSON}
Tell = Callable[[str], None]


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


class Connection(Client):
    """Requests to one space of one server. `tell` is called once with the reason why we wait."""

    def __init__(self, url: str, space: str = DEFAULT_SPACE, tell: Tell = lambda _: None) -> None:
        super().__init__(url, KIBANA)
        self.space, self.tell, self.version = space, tell, ""

    @property
    def place(self) -> str:
        """Return the address of the space, as Kibana's own pages show it."""
        return f"{self.url}{self._inside}"

    @property
    def _inside(self) -> str:
        return "" if self.space == DEFAULT_SPACE else f"/s/{self.space}"

    def open(self) -> None:
        """Wait until Kibana is ready, see that it knows us and has the space; StoreError for whatever keeps us out."""
        try:
            self.again(self._ready, lambda error: self.tell(f"waiting for {self.url}: {error}"))
            self.again(self._space_there)
        except NotReadyError as error:
            if error.level != DEGRADED:
                raise StoreError(f"{self.url} was not ready within {number(self.patience)} s: {error}") from None
            self.tell(f"{self.url}: {error}, and has been for {number(self.patience)} s; going on")
            self.again(self._space_there)
        except TransientError as error:
            raise StoreError(f"{self.url} was not ready within {number(self.patience)} s: {error}") from None
        except Refusal as error:
            if error.status == 404:
                advice = "give Kibana's address with its base path (server.basePath)"
                raise StoreError(f"{self.url} has no /api/status: {advice}") from None
            raise StoreError(f"{self.url} does not report its state ({error})") from None

    def call(self, method: str, path: str, body: object = None, kind: str = JSON, **words: object) -> Any:
        """Return the decoded answer of a request in the space, sent again while it fails in a way that passes.

        `body` is bytes of the media type `kind`, or becomes JSON. Raises Refusal for what Kibana refuses, StoreError when
        patience ends or we may not.
        """
        try:
            return self.again(lambda: self.once(method, self._inside + path, body, kind, **words))
        except TransientError as error:
            raise StoreError(f"{self.url}: {error}") from None

    def once(self, method: str, path: str, body: object = None, kind: str = JSON, **words: object) -> Any:
        """Return the decoded answer of one request; TransientError, Refusal or StoreError if there is none."""
        answer = self._asked(method, with_query(path, words), body, kind)
        decoded = answer.decoded()
        if 200 <= answer.status < 300 and isinstance(decoded, Mapping | list):
            return decoded
        raise self._judged(answer)

    def _asked(self, method: str, target: str, body: object = None, kind: str = JSON) -> Answer:
        sent = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        return self.exchange(method, target, sent, OURS if body is None else {**OURS, "content-type": kind})

    def _ready(self) -> None:
        """Note the version once Kibana says that it is available; TransientError while it does not."""
        answer = self._asked("GET", "/api/status")
        decoded = answer.decoded()
        status = decoded.get("status") if isinstance(decoded, Mapping) else None
        overall = status.get("overall") if isinstance(status, Mapping) else None
        if not isinstance(decoded, Mapping) or not isinstance(overall, Mapping) or not overall.get("level"):
            raise self._judged(answer)
        version = decoded.get("version")
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

    def _judged(self, answer: Answer) -> Exception:
        """Return what an error answer means: to be sent again, not Kibana, not allowed, or refused."""
        status, decoded = answer.status, answer.decoded()
        if answer.headers.get("x-elastic-product") == "Elasticsearch":
            return StoreError(f"{self.url} is Elasticsearch, not Kibana: give Kibana's own address (mostly port 5601)")
        message = decoded.get("message") or decoded.get("error") if isinstance(decoded, Mapping) else decoded
        reason = " ".join(str(message or "").split())[:LONGEST_TOLD]
        why = f": {reason}" if reason else ""
        if status in PASSING:
            return TransientError(f"it answers {status}{why}", answer.after)
        if 300 <= status < 400:
            return StoreError(
                f"{self.url} sends us on to {answer.headers.get('location', 'elsewhere')}: give Kibana's own address"
            )
        if status == 401:
            return StoreError(KIBANA.login_failed(status))
        if status == 403:
            needed = "docs/guides/kibana.md lists the privileges that are needed"
            return StoreError(f"Kibana refuses this request (403{why}): {needed}")
        kibanas = isinstance(decoded, Mapping) and "statusCode" in decoded
        if status < 300 or (status in (404, 405) and not kibanas):
            return StoreError(f"{self.url} answers, but is no Kibana: check host, port and path")
        return Refusal(status, reason or "without a reason")
