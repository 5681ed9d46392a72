"""Importing saved objects: where a Kibana is, one request with all objects, and what it says of each.

    kibana/tailboard.ndjson       the lines that Kibana imports, a line an object with a fixed id; `tools/kibana` makes them

    POST /s/perf/api/saved_objects/_import?overwrite=true&compatibilityMode=true        multipart, field `file`, tailboard.ndjson
    POST /s/perf/api/saved_objects/_bulk_delete                                         panels of earlier versions, by their ids

Ids are fixed and objects that are there are overwritten, so importing again changes nothing and copies nothing. An id exists once
in all spaces of a Kibana: in a second space it gives objects ids of its own, keeps ours as their origin and finds them by it the
next time; `compatibilityMode` lets links to our ids lead there. Where a reference is missing or a conflict cannot be resolved
Kibana writes nothing at all, although it lists the others as successes: here nothing is then called imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from ingest.core.errors import StoreError, UsageError
from ingest.core.schema import assets
from ingest.core.units import number, utc
from ingest.environment import Server
from ingest.http import JSON, PASSING, Answer, Client, TransientError, with_query

# Where a Kibana is: its variables of the environment, and addresses and spaces that can be.


KIBANA = Server(
    "KIBANA", "docs/guides/kibana.md", 5601, fallback="ES", if_refused="is Kibana running there? (docker compose up -d)"
)
DEFAULT_SPACE = "default"
SPACE = re.compile(r"[a-z0-9_-]{1,200}")
INSIDE = re.compile(r"/(s/(?P<space>[^/]+)|app)(/|$)")


def checked_url(url: str) -> str:
    """Return a Kibana URL without a slash at its end; UsageError for secrets in it, or for what is no server's address."""
    parts = KIBANA.parts(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--kibana takes http://HOST:5601, not {url!r}")
    if parts.query or parts.fragment:
        raise UsageError(f"{url!r}: give only Kibana's address, up to ? or #")
    if inside := INSIDE.search(parts.path):
        space = f" and --space {inside['space']}" if inside["space"] else ""
        raise UsageError(f"{url!r} leads into Kibana: give {parts.scheme}://{parts.netloc}{parts.path[: inside.start()]}{space}")
    return url.rstrip("/")


def checked_space(space: str) -> str:
    """Return a space's id; UsageError if no space can have it."""
    if not SPACE.fullmatch(space):
        raise UsageError(f"{space!r} is not the id of a space: lower-case letters, digits, - _, as after /s/ in Kibana's URLs")
    return space


def dashboard_link(kibana: str, prefix: str, run: str = "", span_ms: tuple[int, int] | None = None) -> str:
    """Return the address of the dashboard Cluster latency, which shows a run in its range of ms since 1970.

    `kibana` is the server's address, with /s/SPACE where it is not the first space. Without a range it shows what comes in now,
    and asks again every 10 s; a range is over, and nothing is asked again.
    """
    ends = ["now-15m", "now"] if span_ms is None else [utc(ms * 1_000_000) for ms in span_ms]
    times = ",".join(f"{name}:{_rison(end)}" for name, end in zip(("from", "to"), ends, strict=True))
    state = f"_g=(refreshInterval:(pause:{'!f' if span_ms is None else '!t'},value:10000),time:({times}))"
    if run:
        phrase = f"key:run.id,negate:!f,params:(query:{_rison(run)}),type:phrase"
        query = f"match_phrase:(run.id:{_rison(run)})"
        state += f"&_a=(filters:!((meta:(alias:!n,disabled:!f,index:{_rison(f'{prefix}-rollups')},{phrase}),query:({query}))))"
    board = f"{kibana.rstrip('/')}/app/dashboards#/view/{prefix}-cluster-latency"
    return f"{board}?{state}"


def _rison(text: str) -> str:
    """Return a text as Kibana's addresses hold it."""
    quoted = re.sub("(['!])", r"!\1", text)
    return quote(f"'{quoted}'", safe="")


# One connection to a Kibana server: what is repeated, and what its errors mean in a sentence.
#
# Every request of ours may be sent twice: objects and rules have fixed ids.


AVAILABLE, DEGRADED = "available", "degraded"
LONGEST_TOLD = 300
OURS = {"kbn-xsrf": "true", "accept": JSON}


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

    def __init__(self, url: str, space: str = DEFAULT_SPACE, tell: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(url, KIBANA)
        self.space, self.tell, self.version = space, tell, ""

        self._inside = "" if space == DEFAULT_SPACE else f"/s/{space}"

    @property
    def place(self) -> str:
        """Return the address of the space, as Kibana's own pages show it."""
        return f"{self.url}{self._inside}"

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
            missing = "has no /api/status: give Kibana's address with its base path (server.basePath)"
            what = missing if error.status == 404 else f"does not report its state ({error})"
            raise StoreError(f"{self.url} {what}") from None

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
        overall = _inner(_inner(decoded, "status"), "overall")
        if not overall.get("level"):
            raise self._judged(answer)
        self.version = str(_inner(decoded, "version").get("number") or "")
        if overall["level"] != AVAILABLE:
            raise NotReadyError(str(overall["level"]), str(overall.get("summary") or ""))

    def _space_there(self) -> None:
        """Raise StoreError where Kibana has no such space: it would import into a space that nobody can enter."""
        try:
            self.once("GET", f"/api/spaces/space/{self.space}")
        except Refusal as error:
            advice = "create it there (Stack Management > Spaces), or leave --space out"
            refused = f"refuses to show the space {self.space} ({error})"
            what = refused if error.status != 404 else f"has no space {self.space}: {advice}"
            raise StoreError(f"{self.url} {what}") from None

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


def _inner(content: object, name: str) -> Mapping[str, Any]:
    """Return the mapping in another one; an empty one where either is none."""
    inner = content.get(name) if isinstance(content, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


PATH = "/api/saved_objects/_import"
FILE_NAME = "tailboard.ndjson"
PREFIX = re.compile(r'(?<=["\[,])tailboard(?=[-\] ])')  # of ids, indices and titles; not the command in a description
DELETE = "/api/saved_objects/_bulk_delete"
GONE = (  # type and id, after the prefix, of what earlier versions imported
    *(("lens", f"cluster-latency-{panel}") for panel in ("coverage", "episodes", "findings", "marks", "p50", "worst-windows")),
    ("lens", "compare-runs-marks"),
    ("visualization", "compare-runs-all-runs"),
)
ALL_OR_NOTHING = ("conflict", "ambiguous_conflict", "missing_references")


class SavedObject(NamedTuple):
    """A saved object as it is imported: `text` is its line, `title` what people see."""

    type: str
    id: str
    title: str
    text: str


def saved_object(text: str) -> SavedObject:
    """Return the object of a line."""
    line = json.loads(text)
    return SavedObject(line["type"], line["id"], line["attributes"].get("name") or line["attributes"]["title"], text)


@dataclass(frozen=True, slots=True)
class Imported:
    """An object that is in Kibana now, `destination` its id there where that is not ours; or the `reason` why it is not there."""

    type: str
    id: str
    title: str
    overwritten: bool = False
    destination: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """What became of each object; `warnings` are Kibana's own words."""

    imported: tuple[Imported, ...]
    failed: tuple[Imported, ...]
    warnings: tuple[str, ...]


def shipped(prefix: str) -> tuple[SavedObject, ...]:
    """Return the objects of kibana/tailboard.ndjson, for the indices of a prefix; `python -m tools.build` makes that file."""
    text = PREFIX.sub(prefix, (assets("kibana") / FILE_NAME).read_text(encoding="utf-8"))
    return tuple(saved_object(line) for line in text.rstrip("\n").split("\n"))


def import_words(space: str) -> dict[str, bool]:
    """Return the words of the request's query for a space."""
    return {"overwrite": True} if space == DEFAULT_SPACE else {"overwrite": True, "compatibilityMode": True}


def import_body(objects: Sequence[SavedObject]) -> tuple[bytes, str]:
    """Return the body of the request and its media type."""
    from urllib3 import encode_multipart_formdata

    lines = "".join(f"{saved.text}\n" for saved in objects).encode()
    return encode_multipart_formdata({"file": (FILE_NAME, lines, "application/ndjson")})


def import_objects(connection: Connection, objects: Sequence[SavedObject]) -> Account:
    """Return what became of each object; StoreError where Kibana refuses the request, or does not report an object."""
    body, kind = import_body(objects)
    try:
        answer = connection.call("POST", PATH, body, kind, **import_words(connection.space))
    except Refusal as error:
        raise StoreError(f"{connection.url} refuses the import ({error}){_advice(error, len(body))}") from None
    if not isinstance(answer, Mapping) or "success" not in answer:
        raise StoreError(f"{connection.url} answers the import with something else: check host, port and path")
    titles = {(saved.type, saved.id): saved.title for saved in objects}
    errors = answer.get("errors") or ()
    written = not any(str((failure.get("error") or {}).get("type", "")) in ALL_OR_NOTHING for failure in errors)
    outcomes: list[Imported] = []
    for told in (*errors, *((answer.get("successResults") or ()) if written else ())):
        key = str(told["type"]), str(told["id"])
        reason = _reason(told.get("error") or {}) if len(outcomes) < len(errors) else ""
        overwritten, destination = bool(told.get("overwrite")), str(told.get("destinationId") or "")
        outcomes.append(Imported(*key, titles.get(key, ""), overwritten, destination, reason))
    failed, imported = tuple(outcomes[: len(errors)]), tuple(outcomes[len(errors) :])
    reported = {(outcome.type, outcome.id) for outcome in outcomes}
    silent = [f"{type_} {id_}" for type_, id_ in titles if written and (type_, id_) not in reported]
    if silent:
        raise StoreError(f"{connection.url} does not report the result for {', '.join(silent)}")
    warnings = tuple(str(warning.get("message", warning)) for warning in answer.get("warnings") or ())
    return Account(imported, failed, warnings)


def gone(prefix: str) -> list[dict[str, str]]:
    """Return what is to be deleted: panels of earlier versions that this one does not have."""
    return [{"type": kind, "id": f"{prefix}-{name}"} for kind, name in GONE]


def delete_gone(connection: Connection, prefix: str) -> list[str]:
    """Delete panels of earlier versions; return what became of each that was there, in words."""
    try:
        answer = connection.call("POST", DELETE, gone(prefix))
    except Refusal as error:
        return [f"panels of earlier versions stay: Kibana refuses to delete them ({error})"]
    told = []
    for one in answer["statuses"]:
        named, why = f"{one['type']} {one['id']} of an earlier version", one.get("error")
        if not why:
            told.append(f"{named} is deleted")
        elif why.get("statusCode") != 404:
            told.append(f"{named} stays: {_reason(why)}")
    return told


def _reason(error: Mapping[str, Any]) -> str:
    """Return why an object was refused, in words."""
    kind = str(error.get("type", "unknown"))
    if kind == "missing_references":
        missing = ", ".join(f"{reference.get('type')} {reference.get('id')}" for reference in error.get("references") or ())
        return f"it refers to {missing}, which Kibana does not have"
    if kind == "ambiguous_conflict":
        there = ", ".join(str(destination.get("id")) for destination in error.get("destinations") or ())
        return f"several objects there stem from it ({there}): delete all but one"
    if kind == "conflict":
        return "it conflicts with an object that is there"
    if kind == "unsupported_type":
        return "this Kibana cannot import objects of its type"
    status = f" ({error['statusCode']})" if "statusCode" in error else ""
    return f"{error.get('message') or error.get('error') or kind}{status}"


def _advice(error: Refusal, size: int) -> str:
    """Return what to do about a request that was refused as a whole."""
    if error.status == 413:
        return f": the file is {size:,} bytes; allow that in savedObjects.maxImportPayloadBytes, or in a proxy before Kibana"
    if error.status == 422:
        return ": this Kibana is older than the objects; docs/reference/compatibility.md says which versions are known"
    return ""
