"""Importing saved objects: where a Kibana is, one request with all objects, and what it says of each.

Saved objects: what Kibana stores and imports, with fixed ids.

    kibana/saved_objects/dashboard/tailboard-cluster-latency.json      decoded: texts that hold JSON stand there as JSON
    kibana/tailboard.ndjson                                            the lines that Kibana imports, a line an object

Versions are the oldest that every Kibana from 8.19 on takes: an object without a version would run through all migrations, one
with a newer version than the server's is refused.

Importing saved objects: one request with all of them, and what Kibana says of each.

    POST /s/perf/api/saved_objects/_import?overwrite=true&compatibilityMode=true        multipart, field `file`, tailboard.ndjson

Ids are fixed and objects that are there are overwritten, so importing again changes nothing and copies nothing. An id exists once
in all spaces of a Kibana: in a second space it gives objects ids of its own, keeps ours as their origin and finds them by it the
next time; `compatibilityMode` lets links to our ids lead there. Where a reference is missing or a conflict cannot be resolved
Kibana writes nothing at all, although it lists the others as successes: here nothing is then called imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from ingest.core.errors import StoreError, UsageError
from ingest.core.schema import assets
from ingest.core.units import number
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


CORE_VERSION = "8.8.0"
SPEC = "spec"
TYPE_VERSIONS = {"dashboard": "10.2.0", "lens": "8.9.0", "visualization": "8.5.0", "index-pattern": "8.0.0", "links": "10.1.0"}
TEXTS_OF_JSON = {
    *("panelsJSON", "optionsJSON", "searchSourceJSON", "ignoreParentSettingsJSON"),
    *("visState", "uiStateJSON", "spec", "fieldFormatMap", "fieldAttrs"),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A saved object that another one names."""

    type: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SavedObject:
    """A saved object; attributes are decoded: what Kibana keeps as a text of JSON is JSON here."""

    type: str
    id: str
    attributes: Mapping[str, Any]
    references: tuple[Reference, ...] = field(default=())

    @property
    def title(self) -> str:
        """Return what people see."""
        return str(self.attributes.get("name") or self.attributes["title"])

    @property
    def path(self) -> str:
        """Return its file under kibana/saved_objects/."""
        return f"{self.type}/{self.id}.json"


def file_text(saved: SavedObject) -> str:
    """Return the reviewable file of an object: decoded, keys sorted."""
    return json.dumps({**line(saved), "attributes": saved.attributes}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def line(saved: SavedObject) -> dict[str, Any]:
    """Return an object as Kibana imports it: texts of JSON encoded."""
    return {
        "id": saved.id,
        "type": saved.type,
        "attributes": _encoded(saved.attributes),
        "references": [asdict(reference) for reference in saved.references],
        "coreMigrationVersion": CORE_VERSION,
        "typeMigrationVersion": TYPE_VERSIONS[saved.type],
    }


def ndjson(objects: Iterable[SavedObject]) -> bytes:
    """Return the file that Kibana imports, a line an object; none holds a line break."""
    return "".join(_text(line(saved)) + "\n" for saved in objects).encode()


def object_of(content: Mapping[str, Any]) -> SavedObject:
    """Return the object of a parsed line or file; texts of JSON are decoded where they are not yet."""
    references = tuple(Reference(reference["type"], reference["id"], reference["name"]) for reference in content["references"])
    return SavedObject(content["type"], content["id"], _decoded(content["attributes"]), references)


def _encoded(value: Any) -> Any:
    """Return attributes with every text of JSON as text, the inner ones first."""
    if isinstance(value, Mapping):
        return {
            key: readable(inner) if key == SPEC else _text(_encoded(inner)) if key in TEXTS_OF_JSON else _encoded(inner)
            for key, inner in value.items()
        }
    return [_encoded(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _decoded(value: Any) -> Any:
    """Return attributes with every text of JSON as what it says, the outer ones first: the inverse of `_encoded`."""
    if isinstance(value, Mapping):
        texts = {key: json.loads(inner) for key, inner in value.items() if key in TEXTS_OF_JSON and isinstance(inner, str)}
        return {key: inner if key == SPEC else _decoded(inner) for key, inner in {**value, **texts}.items()}
    return [_decoded(inner) for inner in value] if isinstance(value, list) else value


def readable(value: Any, before: str = "", most: int = 110) -> str:
    """Return JSON as people read it in Kibana's editor: lines of at most `most` characters where that can be, indented."""
    line = json.dumps(value, ensure_ascii=False)
    if len(before) + len(line) <= most or not isinstance(value, (Mapping, list, tuple)) or not value:
        return line
    deeper = f"{before} "
    if isinstance(value, Mapping):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {readable(inner, deeper, most)}" for key, inner in value.items()]
    else:
        rows = [readable(inner, deeper, most) for inner in value]
    first, last = "{}" if isinstance(value, Mapping) else "[]"
    return f"{first}\n" + ",\n".join(deeper + row for row in rows) + f"\n{before}{last}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


PATH = "/api/saved_objects/_import"
FILE_NAME = "tailboard.ndjson"
PREFIX = re.compile(r'(?<=["\[])tailboard(?=[-\] ])')  # of ids, indices and titles; not the command in a description
ALL_OR_NOTHING = ("conflict", "ambiguous_conflict", "missing_references")


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
    return tuple(object_of(json.loads(line)) for line in text.rstrip("\n").split("\n"))


def import_words(space: str) -> dict[str, bool]:
    """Return the words of the request's query for a space."""
    return {"overwrite": True} if space == DEFAULT_SPACE else {"overwrite": True, "compatibilityMode": True}


def import_body(objects: Sequence[SavedObject]) -> tuple[bytes, str]:
    """Return the body of the request and its media type."""
    from urllib3 import encode_multipart_formdata

    return encode_multipart_formdata({"file": (FILE_NAME, ndjson(objects), "application/ndjson")})


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
