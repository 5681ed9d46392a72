"""POST /api/saved_objects/_import: the steps of Kibana's importer, in their order; and _bulk_delete."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from tests.doubles.kibana.errors import Boom
from tests.doubles.kibana.multipart import parts_of
from tests.doubles.kibana.shapes import shape_problems
from tests.doubles.kibana.state import Request, State, Stored

Json = Any
Key = tuple[str, str]
FLAGS = ("overwrite", "createNewCopies", "compatibilityMode")
VALIDATED = ("index-pattern", "search")
RESOLVABLE = ("conflict", "ambiguous_conflict", "missing_references")


def imported(state: State, request: Request) -> Json:
    """Return what Kibana says of an import."""
    flags = _flags(request.query)
    lines = _lines(state, request)
    errors = [_error(line, {"type": "unsupported_type"}) for line in lines if line["type"] not in state.known]
    lines = [line for line in lines if line["type"] in state.known]
    errors += _missing(state, request.space, lines)
    ids: dict[Key, str] = {}
    overwritten: set[Key] = set()
    if flags["createNewCopies"]:
        ids = {_key(line): str(uuid.uuid4()) for line in lines}
    else:
        errors += _conflicts(state, request.space, lines, ids, overwritten, overwrite=flags["overwrite"])
    bad = {(one["type"], one["id"]) for one in errors}
    todo = [line for line in lines if _key(line) not in bad]
    done = todo
    if not any(one["error"]["type"] in RESOLVABLE for one in errors):
        done, refused = _created(state, request.space, todo, ids, flags)
        errors += refused
    successes = [
        {
            "type": line["type"],
            "id": line["id"],
            "meta": {"title": _title(line), "icon": "anything"},
            "managed": False,
            **({"overwrite": True} if _key(line) in overwritten else {}),
            **({"destinationId": ids[_key(line)]} if _key(line) in ids else {}),
        }
        for line in done
    ]
    lists = {name: found for name, found in (("successResults", successes), ("errors", errors)) if found}
    return {"successCount": len(done), "success": not errors, "warnings": [], **lists}


def deleted(state: State, request: Request) -> Json:
    """Return what Kibana says of a deletion of several objects: those of the space alone are known there."""
    for name in request.query:
        if name != "force":
            raise Boom(400, f"[request query.{name}]: definition for this key is missing")
    wanted = json.loads(request.body)
    if not isinstance(wanted, list):
        raise Boom(400, "[request body]: expected value of type [array]")
    statuses = []
    for one in wanted:
        for name in one.keys() - {"type", "id"}:
            raise Boom(400, f"[request body.0.{name}]: definition for this key is missing")
        if one["type"] not in state.known:
            raise Boom(400, f"Trying to delete object(s) with unsupported types: {one['type']}")
        key = (one["type"], one["id"])
        if key in state.objects and state.objects[key].space == request.space:
            del state.objects[key]
            statuses.append({**one, "success": True})
        else:
            text = f"Saved object [{one['type']}/{one['id']}] not found"
            error = {"statusCode": 404, "error": "Not Found", "message": text}
            statuses.append({**one, "success": False, "error": error})
    return {"statuses": statuses}


def _flags(query: dict[str, str]) -> dict[str, bool]:
    for name, value in query.items():
        if name not in FLAGS:
            raise Boom(400, f"[request query.{name}]: definition for this key is missing")
        if value not in ("true", "false"):
            raise Boom(400, f"[request query.{name}]: expected value of type [boolean] but got [string]")
    flags = {name: query.get(name) == "true" for name in FLAGS}
    for other in ("overwrite", "compatibilityMode"):
        if flags["createNewCopies"] and flags[other]:
            raise Boom(400, f"[request query]: cannot use [createNewCopies] with [{other}]")
    return flags


def _lines(state: State, request: Request) -> list[Json]:
    if len(request.body) > state.max_import_bytes:
        raise Boom(413, f"Payload content length greater than maximum allowed: {state.max_import_bytes}")
    parts = {part.name: part for part in parts_of(request.headers.get("content-type", ""), request.body)}
    if "file" not in parts:
        raise Boom(400, "[request body.file]: expected value of type [Stream] but got [undefined]")
    for name in parts:
        if name != "file":
            raise Boom(400, f"[request body.{name}]: definition for this key is missing")
    file = parts["file"]
    if file.filename is None:
        raise Boom(500, "An internal server error occurred. Check Kibana server logs for details.")
    suffix = PurePosixPath(file.filename).suffix.lower()
    if suffix != ".ndjson":
        raise Boom(400, f"Invalid file extension {suffix}")
    try:
        lines = [json.loads(line) for line in file.content.decode().split("\n") if line.strip()]
    except ValueError as error:
        raise Boom(400, f"Unexpected token: {error}") from None
    lines = [line for line in lines if "exportedCount" not in line]
    if len(lines) > state.max_import_objects:
        raise Boom(400, f"Can't import more than {state.max_import_objects} objects")
    if any("attributes" not in line for line in lines):
        raise Boom(500, "An internal server error occurred. Check Kibana server logs for details.")
    twice = [":".join(key) for key, count in Counter(map(_key, lines)).items() if count > 1]
    if twice:
        raise Boom(400, f"Non-unique import objects detected: [{','.join(twice)}]")
    return lines


def _missing(state: State, space: str, lines: list[Json]) -> list[Json]:
    here = set(map(_key, lines))
    errors = []
    for line in lines:
        wanted = dict.fromkeys(_key(one) for one in line.get("references", []) if one["type"] in VALIDATED)
        gone = [key for key in wanted if key not in here and _destination(state, space, key) is None]
        if gone:
            named = [{"type": kind, "id": name} for kind, name in gone]
            errors.append(_error(line, {"type": "missing_references", "references": named}))
    return errors


def _destination(state: State, space: str, key: Key) -> str | None:
    """Return the id that an object has in a space: its own, or that of an object that stems from it."""
    kind, name = key
    stored = state.objects.get(key)
    if stored is not None and stored.space == space:
        return name
    for (other, id_), one in state.objects.items():
        if other == kind and one.space == space and one.origin == name:
            return id_
    return None


def _conflicts(
    state: State, space: str, lines: list[Json], ids: dict[Key, str], overwritten: set[Key], *, overwrite: bool
) -> list[Json]:
    """Return the conflicts; note new ids (an id that another space has) and what is overwritten."""
    errors = []
    for line in lines:
        key = _key(line)
        there = _destination(state, space, key)
        elsewhere = key in state.objects and state.objects[key].space != space
        if there is None:
            if elsewhere:
                ids[key] = str(uuid.uuid4())
            continue
        if there != key[1]:
            ids[key] = there
        if overwrite:
            overwritten.add(key)
        else:
            errors.append(_error(line, {"type": "conflict", **({"destinationId": there} if there != key[1] else {})}))
    return errors


def _created(
    state: State, space: str, lines: list[Json], ids: dict[Key, str], flags: dict[str, bool]
) -> tuple[list[Json], list[Json]]:
    for line in lines:
        _check_version(state, line)
    done, errors = [], []
    for line in lines:
        problems = shape_problems(line)
        if problems:
            told = {"statusCode": 400, "error": "Bad Request", "message": f"{problems[0]}: Bad Request"}
            errors.append(_error(line, {**told, "type": "unknown"}))
            continue
        key = _key(line)
        name = ids.get(key, key[1])
        references = [{**one, "id": ids.get(_key(one), one["id"])} for one in line.get("references", [])]
        origin = key[1] if name != key[1] and not flags["createNewCopies"] else None
        state.objects[key[0], name] = Stored({**line, "id": name, "references": references}, space, origin)
        if flags["compatibilityMode"] and origin:
            state.aliases[space, key[0], origin] = name
        done.append(line)
    return done, errors


def _check_version(state: State, line: Json) -> None:
    ours, known = line.get("typeMigrationVersion", ""), state.known[line["type"]]
    if _numbers(ours) > _numbers(known):
        told = f'Document "{line["id"]}" belongs to a more recent version of Kibana [{ours}] when the last known version is [{known}].'
        raise Boom(422, told)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


def _error(line: Json, error: Json) -> Json:
    return {"id": line["id"], "type": line["type"], "meta": {"title": _title(line), "icon": "anything"}, "error": error}


def _title(line: Json) -> Json:
    return line["attributes"].get("name") or line["attributes"].get("title")


def _key(line: Json) -> Key:
    return line["type"], line["id"]
