"""What of a document an answer shows: `_source` filters, and `filter_path` on whole answers."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import orjson

from tests.doubles.elasticsearch.errors import CannotDo, Refusal, refuse
from tests.doubles.elasticsearch.shards import Document
from tests.doubles.elasticsearch.tokens import parse

Json = Any
Patterns = tuple[str, ...]


class SourceFilter:
    """Includes and excludes of `_source`; shows the text as it was written where nothing is left out."""

    def __init__(self, given: Json = True, includes: Any = None, excludes: Any = None) -> None:
        self.off = False
        self.includes = _list(includes)
        self.excludes = _list(excludes)
        if given in (False, "false"):
            self.off = True
        elif isinstance(given, dict):
            for key in given:
                if key not in ("includes", "excludes", "include", "exclude"):
                    raise CannotDo(f"[{key}] in _source")
            self.includes += _list(given.get("includes", given.get("include")))
            self.excludes += _list(given.get("excludes", given.get("exclude")))
        elif given not in (True, "true", None):
            self.includes += _list(given)

    def show(self, document: Document, mapping_source: Json = None) -> Json:
        """Return the `_source` of a document, None if it is not wanted."""
        if self.off:
            return None
        includes, excludes = self.includes, self.excludes
        for one in (mapping_source or {}, {"includes": includes, "excludes": excludes}):
            if not one.get("includes") and not one.get("excludes"):
                continue
            break
        else:
            return orjson.Fragment(document.source)
        tree = loads(document.source)
        for one in (mapping_source or {}, {"includes": includes, "excludes": excludes}):
            if one.get("includes") or one.get("excludes"):
                tree = _filtered(tree, "", tuple(one.get("includes") or ()), tuple(one.get("excludes") or ()))
        return tree


def loads(raw: bytes) -> Json:
    """Return the JSON of a stored source: also what the fast parser does not take."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return parse(raw.decode())


def _list(value: Any) -> list[str]:
    if value is None:
        return []
    return value.split(",") if isinstance(value, str) else list(value)


@lru_cache(100_000)  # documents have the same few paths
def _hit(path: str, patterns: Patterns) -> bool:
    return any(fnmatchcase(path, pattern) or fnmatchcase(path, pattern + ".*") for pattern in patterns)


@lru_cache(100_000)
def _may_hold(path: str, patterns: Patterns) -> bool:
    """Return whether something below an object can match: only the start of a pattern is looked at."""
    for pattern in patterns:
        parts, wanted = path.split("."), pattern.split(".")
        if any("*" in part for part in wanted[: len(parts)]) or wanted[: len(parts)] == parts:
            return True
    return False


def _filtered(tree: Json, path: str, includes: Patterns, excludes: Patterns) -> Json:
    found: Json = {}
    for name, value in tree.items():
        full = f"{path}.{name}" if path else name
        if _hit(full, excludes):
            continue
        included = not includes or _hit(full, includes)
        if included and not excludes:
            found[name] = value
        elif isinstance(value, dict):
            if not included and not _may_hold(full, includes):
                continue
            inner = _filtered(value, full, () if included else includes, excludes)
            if inner or (included and not value):
                found[name] = inner
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            if included or _may_hold(full, includes):
                raise CannotDo("a _source filter into a list of objects")
        elif included:
            found[name] = value
    return found


def filter_path(answer: Json, expression: str) -> Json:
    """Return the parts of an answer that `filter_path` names; `-name` takes away, * is one level, ** any number."""
    parts = expression.split(",")
    if any(part.startswith("-") for part in parts):
        if not all(part.startswith("-") for part in parts):
            raise CannotDo("filter_path with both parts to keep and parts to take away")
        kept = _without(answer, tuple(tuple(part[1:].split(".")) for part in parts))
    else:
        kept = _with(answer, tuple(tuple(part.split(".")) for part in parts))
    return {} if kept is None else kept


@lru_cache(100_000)
def _next(patterns: tuple[Patterns, ...], name: str) -> tuple[bool, tuple[Patterns, ...]]:
    """Return whether a pattern ends at a name, and what is left of the others."""
    whole, rest = False, []
    for pattern in patterns:
        if pattern[0] == "**":
            rest.append(pattern)
            if len(pattern) > 1 and fnmatchcase(name, pattern[1]):
                whole |= len(pattern) == 2
                rest.append(pattern[2:])
            whole |= len(pattern) == 1
        elif fnmatchcase(name, pattern[0]):
            whole |= len(pattern) == 1
            rest.append(pattern[1:])
    return whole, tuple(one for one in rest if one)


def _with(value: Json, patterns: tuple[Patterns, ...]) -> Json:
    if isinstance(value, list):
        items = [one for one in (_with(item, patterns) for item in value) if one is not None]
        return items or None
    if not isinstance(value, dict):
        return None
    found = {}
    for name, inner in value.items():
        whole, rest = _next(patterns, name)
        kept = inner if whole else _with(inner, rest) if rest else None
        if kept is not None or (whole and inner is None):
            found[name] = kept
    return found or None


def _without(value: Json, patterns: tuple[Patterns, ...]) -> Json:
    if isinstance(value, list):
        return [_without(item, patterns) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, inner in value.items():
        whole, rest = _next(patterns, name)
        if not whole:
            kept = _without(inner, rest) if rest else inner
            if not (isinstance(kept, (dict, list)) and not kept and inner):
                found[name] = kept
    return found


def body_error(text: str) -> Refusal:
    """Return the refusal of a request body that is no JSON."""
    from tests.doubles.elasticsearch.tokens import Broken

    try:
        parse(text)
    except Broken as error:
        return refuse(400, error.error["type"], error.reason, error.error["caused_by"])
    raise CannotDo("a request body that only one of two parsers takes")
