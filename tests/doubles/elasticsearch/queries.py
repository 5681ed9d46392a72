"""Queries: which documents match, as an array of booleans over a view; and their scores where those are constants."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.doubles.elasticsearch import leaves
from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.dates import check_format
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, refuse
from tests.doubles.elasticsearch.tokens import place_of

Json = Any
Mask = Callable[[View], np.ndarray]
PARSED = ("match_all", "constant_score", "ids", "bool", "term", "match_phrase", "terms", "range", "exists", "prefix", "wildcard")
REAL_QUERIES = frozenset(
    "boosting combined_fields dis_max distance_feature function_score fuzzy geo_bounding_box geo_distance geo_grid geo_polygon "
    "geo_shape has_child has_parent intervals knn kql match match_bool_prefix match_none match_phrase_prefix "
    "more_like_this multi_match nested parent_id percolate pinned query_string rank_feature regexp rule script script_score "
    "semantic shape simple_query_string span_containing span_field_masking span_first span_multi span_near span_not span_or "
    "span_term span_within sparse_vector term_set terms_set text_expansion weighted_tokens wrapper".split()
)


class Query:
    """A parsed query: `mask(view)` tells what matches, `score` what each match is worth (None: it would vary)."""

    def __init__(self, mask: Mask, score: float | None, ranges: dict[str, tuple[float, float]] | None = None) -> None:
        self.mask = mask
        self.score = score
        self.ranges = ranges or {}  # field to bounds that every match obeys: what shards are skipped by


def parse(given: Json, text: str, now: int) -> Query:
    """Return the query of a JSON object; `text` is the whole request, for positions."""
    return _Parser(text, now).query(given)


class _Parser:
    def __init__(self, text: str, now: int) -> None:
        self.text = text
        self.now = now

    def query(self, given: Json) -> Query:
        if not isinstance(given, dict):
            raise refuse(400, "parsing_exception", "[_na] query malformed, must start with start_object", line=1, col=1)
        if not given:
            raise refuse(400, "illegal_argument_exception", "query malformed, empty clause found")
        if len(given) > 1:
            reason = f"[{next(iter(given))}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]"
            raise refuse(400, "parsing_exception", reason, line=1, col=1)
        ((name, body),) = given.items()
        if name not in PARSED:
            raise self._unknown(name)
        reader: Callable[[Json], Query] = getattr(self, f"_{name}")
        return reader(body)

    def _unknown(self, name: str) -> Exception:
        if name in REAL_QUERIES:
            return CannotDo(f"query [{name}]")
        line, column = place_of(self.text, name)
        cause = {"type": "named_object_not_found_exception", "reason": f"[{line}:{column}] unknown field [{name}]"}
        refusal: Refusal = refuse(400, "parsing_exception", f"unknown query [{name}]", cause, line=line, col=column)
        return refusal

    def _match_all(self, body: Json) -> Query:
        _only("match_all", body, "boost")
        return Query(leaves.everything, float(body.get("boost", 1.0)))

    def _constant_score(self, body: Json) -> Query:
        _only("constant_score", body, "filter", "boost")
        inner = self.query(body["filter"])
        return Query(inner.mask, float(body.get("boost", 1.0)), inner.ranges)

    def _ids(self, body: Json) -> Query:
        _only("ids", body, "values")
        wanted = {str(value) for value in body["values"]}
        return Query(lambda view: leaves.words(view, "_id", lambda word: word in wanted), 1.0)

    def _bool(self, body: Json) -> Query:
        _only("bool", body, "must", "filter", "should", "must_not", "minimum_should_match")
        names = ("must", "filter", "should", "must_not")
        clauses = {name: [self.query(one) for one in _listed(body.get(name, []))] for name in names}
        default = 1 if not clauses["must"] and not clauses["filter"] else 0
        least = _minimum(body.get("minimum_should_match", default), len(clauses["should"])) if clauses["should"] else 0

        def mask(view: View) -> np.ndarray:
            found = leaves.everything(view)
            for one in (*clauses["must"], *clauses["filter"]):
                found &= one.mask(view)
            for one in clauses["must_not"]:
                found &= ~one.mask(view)
            if least > 0:
                number = np.zeros(len(view), dtype=np.int64)
                for one in clauses["should"]:
                    number += one.mask(view)
                found &= number >= least
            return found

        ranges: dict[str, tuple[float, float]] = {}
        for one in (*clauses["must"], *clauses["filter"]):
            for path, bounds in one.ranges.items():
                low, high = ranges.get(path, (-np.inf, np.inf))
                ranges[path] = (max(low, bounds[0]), min(high, bounds[1]))
        return Query(mask, _score(clauses), ranges)

    def _term(self, body: Json) -> Query:
        path, value = _one_field("term", body, "value")
        score = 1.0 if path in ("_id", "_index") else None
        return Query(lambda view: leaves.equal(view, path, [value], self.now), score)

    def _match_phrase(self, body: Json) -> Query:
        """A phrase on a keyword is the whole of it: what Kibana's filters send."""
        path, value = _one_field("match_phrase", body, "query")
        return Query(lambda view: leaves.phrase(view, path, value, self.now), None)

    def _terms(self, body: Json) -> Query:
        if len(body) != 1:
            raise CannotDo("query [terms] with other than one field")
        ((path, values),) = body.items()
        if not isinstance(values, list):
            raise CannotDo("query [terms] with a lookup")
        if len(values) > 65536:
            raise CannotDo("query [terms] with more than 65536 values (index.max_terms_count)")
        return Query(lambda view: leaves.equal(view, path, values, self.now), 1.0)

    def _range(self, body: Json) -> Query:
        if len(body) != 1:
            raise CannotDo("query [range] with other than one field")
        ((path, limits),) = body.items()
        _only("range", limits, "gte", "gt", "lte", "lt", "format")
        pattern = check_format(limits["format"]) if "format" in limits else None
        bounds = {name: limits[name] for name in ("gte", "gt", "lte", "lt") if limits.get(name) is not None}
        known = _known_range(bounds, pattern)
        return Query(lambda view: leaves.in_range(view, path, bounds, pattern, self.now), 1.0, {path: known} if known else {})

    def _exists(self, body: Json) -> Query:
        _only("exists", body, "field")
        return Query(lambda view: leaves.existing(view, body["field"]), 1.0)

    def _prefix(self, body: Json) -> Query:
        path, value = _one_field("prefix", body, "value")
        return Query(lambda view: leaves.matching(view, path, lambda word: word.startswith(str(value))), 1.0)

    def _wildcard(self, body: Json) -> Query:
        path, value = _one_field("wildcard", body, "value", "wildcard")
        pattern = leaves.wildcard(str(value))
        return Query(lambda view: leaves.matching(view, path, lambda word: pattern.fullmatch(word) is not None), 1.0)


def _score(clauses: dict[str, list[Query]]) -> float | None:
    if clauses["should"]:
        return None
    if not any(clauses.values()):
        return 1.0
    total = 0.0
    for one in clauses["must"]:
        if one.score is None:
            return None
        total += one.score
    return total


def _known_range(bounds: Json, pattern: str | None) -> tuple[float, float] | None:
    """Return the bounds as numbers if they are whole numbers (dates in milliseconds too): closed ends."""
    if pattern not in (None, "epoch_millis") or any(type(value) is not int for value in bounds.values()):
        return None
    low = max(bounds.get("gte", -np.inf), bounds.get("gt", -np.inf) + 1)
    high = min(bounds.get("lte", np.inf), bounds.get("lt", np.inf) - 1)
    return low, high


def _only(name: str, body: Json, *known: str) -> None:
    for key in body:
        if key not in known:
            raise CannotDo(f"[{key}] in query [{name}]")


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _minimum(value: Any, clauses: int) -> int:
    text = str(value)
    match = re.fullmatch(r"(-?)(\d+)(%?)", text)
    if match is None:
        raise CannotDo(f"minimum_should_match [{value}]")
    number = int(match.group(2)) * clauses // 100 if match.group(3) else int(match.group(2))
    return clauses - number if match.group(1) else number


def _one_field(name: str, body: Json, *keys: str) -> tuple[str, Any]:
    if not isinstance(body, dict) or len(body) != 1:
        raise CannotDo(f"query [{name}] with other than one field")
    ((path, value),) = body.items()
    if isinstance(value, dict):
        for key, option in value.items():
            if key not in keys and not (key == "case_insensitive" and option is False):
                raise CannotDo(f"[{key}] in query [{name}]")
        value = next(value[key] for key in keys if key in value)
    if value is None:
        raise refuse(400, "illegal_argument_exception", "value cannot be null")
    return path, value
