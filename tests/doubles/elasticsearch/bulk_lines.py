"""The body of _bulk: action lines and source lines, and what makes the server refuse the whole of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from tests.doubles.elasticsearch.errors import CannotDo, illegal, refuse
from tests.doubles.elasticsearch.tokens import Broken, Tokens, build

Json = Any
ACTIONS = ("create", "delete", "index", "update")
TARGET = {"_index", "_id", "version", "version_type", "if_seq_no", "if_primary_term", "require_alias"}
VERSION_TYPES = ("internal", "external", "external_gte")


@dataclass(slots=True)
class Write:
    """One item: what to do to which document. `failure` is set where it is already refused."""

    action: str
    index: str
    identifier: str | None
    version: int | None = None
    version_type: str = "internal"
    if_seq_no: int | None = None
    if_primary_term: int | None = None
    require_alias: bool = False
    source: bytes = b""


def read_lines(body: bytes, default_index: str | None, *, lenient: bool, require_alias: bool = False) -> list[Write]:
    """Return the items of a bulk body; refuse the whole of it where an action line is broken, as the server does."""
    if not body:
        raise refuse(400, "parse_exception", "request body is required")
    if not body.endswith(b"\n"):
        raise illegal("The bulk request must be terminated by a newline [\\n]")
    lines = body.split(b"\n")
    lines.pop()
    found: list[Write] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if not line.strip():
            continue
        write = _action(line, place, default_index, lenient=lenient)
        write.require_alias = write.require_alias or require_alias
        if write.action != "delete":
            if place >= len(lines):
                raise illegal("The bulk request must be terminated by a newline [\\n]")
            write.source = lines[place].rstrip(b"\r")
            place += 1
        found.append(write)
    if not found:
        raise refuse(400, "action_request_validation_exception", "Validation Failed: 1: no requests added;")
    return found


def _parsed(line: bytes, number: int, *, lenient: bool) -> Json:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        text = line.decode("utf-8", "replace")
        try:
            return _strict(text, number)
        except Broken as error:
            if lenient and error.error["type"] == "x_content_e_o_f_exception":
                try:  # recorded: 8.19.21 takes a line that lacks its last bracket only
                    return orjson.loads(line + b"}")
                except orjson.JSONDecodeError:
                    pass
            raise refuse(400, error.error["type"], error.reason, error.error["caused_by"]) from error


def _strict(text: str, number: int) -> Json:
    tokens = iter(Tokens(text))
    first = next(tokens)
    if first.kind != "START_OBJECT":
        raise illegal(f"Malformed action/metadata line [{number}], expected START_OBJECT but found [{first.kind}]")
    return build(first, tokens)


def _action(line: bytes, number: int, default_index: str | None, *, lenient: bool) -> Write:
    given = _parsed(line, number, lenient=lenient)
    if not isinstance(given, dict):
        kind = "VALUE_STRING" if isinstance(given, str) else "START_ARRAY" if isinstance(given, list) else "VALUE_NUMBER"
        raise illegal(f"Malformed action/metadata line [{number}], expected START_OBJECT but found [{kind}]")
    if len(given) != 1:
        found = "END_OBJECT" if not given else "FIELD_NAME"
        raise illegal(
            f"Malformed action/metadata line [{number}], expected {'FIELD_NAME' if not given else 'END_OBJECT'} but found [{found}]"
        )
    ((action, target),) = given.items()
    if action not in ACTIONS:
        raise illegal(
            f"Malformed action/metadata line [{number}], expected field [create], [delete], [index] or [update] but found [{action}]"
        )
    if action == "update":
        raise CannotDo("update in _bulk")
    if not isinstance(target, dict):
        raise illegal(f"Malformed action/metadata line [{number}], expected START_OBJECT or END_OBJECT but found [VALUE_STRING]")
    for key in target:
        if key not in TARGET:
            if key in (
                "routing",
                "pipeline",
                "dynamic_templates",
                "require_data_stream",
                "list_executed_pipelines",
                "retry_on_conflict",
            ):
                raise CannotDo(f"[{key}] in an action of _bulk")
            raise illegal(f"Action/metadata line [{number}] contains an unknown parameter [{key}]")
    return _checked(_write(action, target, default_index), number)


def _write(action: str, target: Json, default_index: str | None) -> Write:
    index = target.get("_index") or default_index
    if not index:
        raise refuse(400, "action_request_validation_exception", "Validation Failed: 1: index is missing;")
    identifier = target.get("_id")
    return Write(
        action, index, None if identifier is None else str(identifier), target.get("version"), target.get("version_type", "internal"),
        target.get("if_seq_no"), target.get("if_primary_term"), target.get("require_alias") in (True, "true"),
    )  # fmt: skip


def _checked(write: Write, number: int) -> Write:
    if write.action == "delete" and write.identifier is None:
        raise refuse(400, "action_request_validation_exception", "Validation Failed: 1: id is missing;")
    if write.version_type not in VERSION_TYPES:
        raise illegal(f"No version type match [{write.version_type}]")
    if write.version_type == "internal" and write.version is not None:
        raise CannotDo("a version without version_type external or external_gte")
    if write.version_type != "internal" and (write.version is None or write.action == "create" or write.identifier is None):
        raise CannotDo(f"version_type [{write.version_type}] without a version or an _id, or with create")
    if (write.if_seq_no is None) != (write.if_primary_term is None):
        raise CannotDo("if_seq_no without if_primary_term, or the other way round")
    return write
