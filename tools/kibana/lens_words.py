"""The words of a Lens panel in kibana/dashboards/*.yml, and what they say.

    lens: metric   value, secondary            one number, and a smaller one beside it
    lens: lines    values, by, size, every     over time; `area` stacks, `columns` are bars; every: 10s, or auto
    lens: table    rows, columns, sort, page   sort: the label of a column, largest first

    view: rollups            or intervals, runs, marks: the data view
    level: overview          of rollups (config.LEVELS); needed there
    scope: cluster           of rollups, cluster or host; needed there, of the panel or of each value
    kind: preferred          or each: kinds are never mixed. preferred: the one that is taken by default, of those that are chosen
    failed: true             of operations that failed, alone: their kinds are below all others
    about: ...               what the panel shows, for its tooltip
    unfiltered: ...          why the panel does not follow what is chosen above (runs and marks have no hosts, operations, kinds)

A value is a function of a field: `{max: latency.p99, label: p99}`. The functions are max, min, sum (of counts alone), unique (how
many different values; approximate above 3,000) and rate (counts a second). `scope` and `where: {field: value}` narrow one value.
A row is `{terms: host.name, size: 50, label: host, order: name}`; order: value (of the first column, largest first), name,
latest (largest name first), or began (of runs, by their stored start, else by their first window, last first: kinds are then
picked within them);
`hidden: true` keeps it from being shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.core.errors import UsageError
from ingest.core.labels import LAG
from ingest.core.schema import indices
from tools.kibana.config import LEVELS, Panel
from tools.kibana.data_views import view_fields
from tools.kibana.kql import Above, Below, Scalar
from tools.kibana.lens_fields import FUNCTIONS, checked_bucket, checked_value
from tools.kibana.requests import FAILED_BELOW

SCOPES = ("cluster", "host")
PICKS = ("preferred", "each", LAG)  # the last: that kind alone
ORDERS = ("value", "name", "latest", "began")
PAGES = (10, 20, 30, 50, 100)
AUTO = "auto"
EVERY = re.compile(r"\d+(?:ms|s|m|h)")
ROLLUPS, INTERVALS = "rollups", "intervals"
COMMON = frozenset({"view", "level", "scope", "kind", "failed", "about", "unfiltered"})
TIMED = {"latency.count": Above(0)}  # not those of offsets alone, which have no latency
FAILED = {"kind_preference": Below(FAILED_BELOW)}


@dataclass(frozen=True, slots=True)
class Value:
    """A function of a field, over documents of a scope that have some values; its label."""

    function: str
    field: str
    label: str
    where: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Terms:
    """Buckets by a field's values; `order` is one of ORDERS."""

    field: str
    size: int
    label: str
    order: str = "name"
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Windows:
    """Buckets over time, of a width as Kibana writes it, or auto."""

    every: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a panel reads: the view, which documents of it (all that some value needs), and how kinds are kept apart."""

    view: str
    where: Mapping[str, Scalar | Sequence[Scalar]]
    scope: str | None
    kind: str | None
    about: str
    unfiltered: str


def taken(panel: Panel, needed: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return a panel's words; UsageError if one is missing or unknown."""
    words = _words(panel.words, panel, {"view", *needed}, {*COMMON, *optional})
    _one_of(words["view"], indices(), panel, "view")
    return words


def reading(panel: Panel, values: Sequence[Value]) -> Reading:
    """Return what a panel reads; UsageError where rollups lack scope or level, or others have them."""
    words = panel.words
    view, level, kind = words["view"], words.get("level"), words.get("kind")
    if (level is None) != (view != ROLLUPS):
        raise _wrong(panel, f"`level` ({', '.join(LEVELS)}) is for rollups, and needed there")
    where: dict[str, Scalar | Sequence[Scalar]] = {**TIMED} if view == INTERVALS else {}
    if level is not None:
        _one_of(level, LEVELS, panel, "level")
        where = {**LEVELS[level], "rollup.scope": _scopes(panel, values), **(FAILED if words.get("failed") else {})}
    if view not in (ROLLUPS, INTERVALS) and kind is not None:
        raise _wrong(panel, f"there are no kinds in {view}")
    if kind is not None:
        _one_of(kind, PICKS, panel, "kind")
    if kind == LAG:
        where, kind = {**where, "kind": LAG}, None
    if view in (ROLLUPS, INTERVALS) and "unfiltered" in words:
        raise _wrong(panel, f"{view} have all that can be chosen: they are always filtered")
    picked = kind or ("preferred" if view in (ROLLUPS, INTERVALS) else None)
    return Reading(view, where, words.get("scope"), picked, str(words.get("about", "")), str(words.get("unfiltered", "")))


def _scopes(panel: Panel, values: Sequence[Value]) -> list[Scalar]:
    """Return the scopes that a panel's values need."""
    if "scope" in panel.words:
        _one_of(panel.words["scope"], SCOPES, panel, "scope")
        if any("rollup.scope" in value.where for value in values):
            raise _wrong(panel, "`scope` is of the panel or of each value, not of both")
        return [panel.words["scope"]]
    if not all("rollup.scope" in value.where for value in values):
        raise _wrong(panel, f"rollups need `scope` ({', '.join(SCOPES)}), of the panel or of each value")
    return sorted({value.where["rollup.scope"] for value in values}, key=str)


def value(content: Any, panel: Panel) -> Value:
    """Return the value that a mapping says."""
    functions = [name for name in FUNCTIONS if isinstance(content, Mapping) and name in content]
    if len(functions) != 1:
        raise _wrong(panel, f"a value is one of {', '.join(FUNCTIONS)}: {content}")
    words = _words(content, panel, {functions[0], "label"}, {"scope", "where"})
    where = dict(words.get("where", {}))
    if "scope" in words:
        _one_of(words["scope"], SCOPES, panel, "scope")
        where["rollup.scope"] = words["scope"]
    read = Value(functions[0], words[functions[0]], words["label"], where)
    checked_value(panel, read.function, [read.field, *where], read.field)
    return read


def values(content: Any, panel: Panel) -> tuple[Value, ...]:
    """Return the values of a list; UsageError if one stands there twice."""
    if not isinstance(content, list) or not content:
        raise _wrong(panel, f"expected a list of values, not {content!r}")
    columns = tuple(value(entry, panel) for entry in content)
    asked = [(column.function, column.field, tuple(sorted(column.where.items()))) for column in columns]
    if len(set(asked)) < len(asked):
        raise _wrong(panel, "a value is listed twice")
    return columns


def terms(content: Any, panel: Panel) -> Terms:
    """Return the buckets that a row says."""
    words = _words(content, panel, {"terms", "size", "label"}, {"order", "hidden"})
    _one_of(words.get("order", "value"), ORDERS, panel, "order")
    checked_bucket(panel, words["terms"], words["size"])
    return Terms(words["terms"], words["size"], words["label"], words.get("order", "value"), bool(words.get("hidden", False)))


def windows(panel: Panel) -> Windows:
    """Return the buckets over time of a panel; without `every` Kibana chooses their width."""
    every = str(panel.words.get("every", AUTO))
    if every != AUTO and not EVERY.fullmatch(every):
        raise _wrong(panel, f"`every` is a width such as 10s, or auto: {every}")
    if "@timestamp" not in view_fields(panel.words["view"]):
        raise _wrong(panel, f"{panel.words['view']} have no time")
    return Windows(every)


def page(panel: Panel) -> int:
    """Return the rows of a table's page."""
    size = panel.words.get("page", PAGES[0])
    if size not in PAGES:
        raise _wrong(panel, f"`page` is {', '.join(map(str, PAGES))}")
    return int(size)


def _words(content: Any, panel: Panel, needed: set[str], optional: set[str]) -> Mapping[str, Any]:
    """Return a mapping that has all needed words, and besides them only optional ones."""
    if not isinstance(content, Mapping):
        raise _wrong(panel, f"expected keys with values, not {content!r}")
    missing, unknown = sorted(needed - content.keys()), sorted(content.keys() - needed - optional)
    if missing or unknown:
        raise _wrong(panel, f"{missing[0]!r} is missing" if missing else f"unknown key {unknown[0]!r}")
    return content


def _one_of(word: Any, known: Any, panel: Panel, name: str) -> None:
    if word not in known:
        raise _wrong(panel, f"`{name}` is {', '.join(known)}, not {word}")


def _wrong(panel: Panel, reason: str) -> UsageError:
    return UsageError(f"panel {panel.id}: {reason}")
