"""Importing saved objects: one request with all of them, and what Kibana says of each.

    POST /s/perf/api/saved_objects/_import?overwrite=true&compatibilityMode=true        multipart, field `file`, tailboard.ndjson

Ids are fixed and objects that are there are overwritten, so importing again changes nothing and copies nothing. An id exists once
in all spaces of a Kibana: in a second space it gives objects ids of its own, keeps ours as their origin and finds them by it the
next time; `compatibilityMode` lets links to our ids lead there. Where a reference is missing or a conflict cannot be resolved
Kibana writes nothing at all, although it lists the others as successes: here nothing is then called imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.core.errors import StoreError
from ingest.core.fields import assets
from ingest.view.kibana.address import DEFAULT_SPACE
from ingest.view.kibana.connection import Connection, Refusal
from ingest.view.kibana.saved_objects import SavedObject, ndjson, object_of

PATH = "/api/saved_objects/_import"
FILE_NAME = "tailboard.ndjson"
PREFIX = re.compile(r'(?<=["\[])tailboard(?=[-\] ])')  # of ids, indices and titles; not the command in a description
ALL_OR_NOTHING = ("conflict", "ambiguous_conflict", "missing_references")


@dataclass(frozen=True, slots=True)
class Imported:
    """An object that is in Kibana now. `destination` is its id there where that is not ours."""

    type: str
    id: str
    title: str
    overwritten: bool
    destination: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """An object that Kibana refuses, and why."""

    type: str
    id: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Account:
    """What became of each object; `warnings` are Kibana's own words."""

    imported: tuple[Imported, ...]
    failed: tuple[Failed, ...]
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
    failed = tuple(_failed(failure, titles) for failure in answer.get("errors") or ())
    written = not any(_kind(failure) in ALL_OR_NOTHING for failure in answer.get("errors") or ())
    imported = tuple(_imported(success, titles) for success in answer.get("successResults") or ()) if written else ()
    reported = {(outcome.type, outcome.id) for outcome in imported} | {(outcome.type, outcome.id) for outcome in failed}
    silent = [f"{type_} {id_}" for type_, id_ in titles if written and (type_, id_) not in reported]
    if silent:
        raise StoreError(f"{connection.url} does not report the result for {', '.join(silent)}")
    warnings = tuple(str(warning.get("message", warning)) for warning in answer.get("warnings") or ())
    return Account(imported, failed, warnings)


def _imported(success: Mapping[str, Any], titles: Mapping[tuple[str, str], str]) -> Imported:
    key = str(success["type"]), str(success["id"])
    return Imported(*key, titles.get(key, ""), bool(success.get("overwrite")), str(success.get("destinationId") or ""))


def _failed(failure: Mapping[str, Any], titles: Mapping[tuple[str, str], str]) -> Failed:
    key = str(failure["type"]), str(failure["id"])
    return Failed(*key, titles.get(key, ""), _reason(failure.get("error") or {}))


def _kind(failure: Mapping[str, Any]) -> str:
    return str((failure.get("error") or {}).get("type", ""))


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
