"""Names of indices and documents, and the templates behind them: those wanted, those of the server, the difference."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ingest.core.errors import InputError, StoreError, UsageError
from ingest.core.intervals import Int
from ingest.core.labels import LABELS, Series
from ingest.core.schema import elasticsearch_mappings, indices, schema_version
from ingest.store.elastic.client import Connection, Refusal

# Names of indices and documents: an index ends in a period of the document's own time, an id identifies the document.
#
# An index: `tailboard-intervals-2026.11` with period month, `...-2026.w47` with week, `...-2026.11.20` with day. An id:
# `u1Zc3gJ0sV6m8Wm5b4Yq1db3b6e8`, a digest of run, labels, segment and step, then the window's number in hex.


PERIODIC = ("intervals", "rollups", "points")
PERIODS = ("month", "week", "day")
DAY_NS = 86_400_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGEST_BYTES = 15
LAST_DAY = 2_932_896  # 9999-12-31


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a site's indices: their prefix, and the period that each of them covers."""

    prefix: str
    period: str = "month"

    def all(self, index: str) -> str:
        """Return the pattern of all indices of a kind that ends in a period."""
        return f"{self.prefix}-{index}-*"

    def one(self, index: str) -> str:
        """Return the name of an index that is the only one of its kind, or of its template."""
        return f"{self.prefix}-{index}"

    def pattern(self, index: str) -> str:
        """Return the pattern of all indices of a kind, whether it ends in a period or not."""
        return self.all(index) if index in PERIODIC else self.one(index)

    def of(self, index: str, start_ns: Int) -> list[str]:
        """Return the index of each window start; InputError for a time outside the years 1 to 9999."""
        days, place = np.unique(start_ns // DAY_NS, return_inverse=True)
        names = [f"{self.prefix}-{index}-{self._period(int(day))}" for day in days.tolist()]
        return [names[at] for at in place.tolist()]

    def _period(self, day: int) -> str:
        if not -719_162 <= day <= LAST_DAY:
            raise InputError("a time stamp lies outside the years 1 to 9999: check the clock of the source, or give --t0")
        date = EPOCH + timedelta(days=day)
        if self.period == "week":
            year, week, _ = date.isocalendar()
            return f"{year:04d}.w{week:02d}"
        return date.strftime("%Y.%m.%d" if self.period == "day" else "%Y.%m")


def digest(words: Sequence[object]) -> str:
    """Return 20 characters that stand for the words."""
    text = "\x1f".join(str(word) for word in words)
    hashed = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=DIGEST_BYTES)
    return base64.urlsafe_b64encode(hashed.digest()).decode()


def series_digest(series: Series, step_ns: int) -> str:
    """Return the digest that identifies the documents of a series: of run, labels, segment ordinal, step."""
    return digest([*(getattr(series, label) for label in LABELS), series.segment, step_ns])


def window_ids(prefixes: Sequence[str], series: Int, start_ns: Int, step_ns: int) -> list[str]:
    """Return the id of each window of the series that `series` are codes of."""
    windows = (start_ns // step_ns).tolist() if step_ns else [0] * len(start_ns)
    return [f"{prefixes[code]}{window:x}" for code, window in zip(series.tolist(), windows, strict=True)]


# Component and index templates: those wanted, those of the server, and the difference in readable lines.
#
# Templates are made from mappings/fields.yml. An empty `@custom` component is left to the site: it is created once and never
# written again. `_meta` says version, period and shards; every loader obeys the period that it finds there.


PRIORITY = 300
MOST_SHARDS = 1024
SHARDED = ("intervals", "rollups")  # those that grow with hosts and time
COMPACT_FROM = (9, 0)
SAYS_COMPLETE, KEEPS_BYTES = 4, 5  # the versions of the templates that brought rollup.complete, and latency.bytes
WIDE_ROLLUPS = 7  # and latency.p99_low, run.start, rollup.default_kind
KEEPS_RATES = 8  # and objective.least_rate, episode.lowest_rate
COMPONENT, INDEX = "component", "index"
SETTINGS = {"auto_expand_replicas": "0-1", "refresh_interval": "5s", "codec": "best_compression"}


@dataclass(frozen=True, slots=True)
class Site:
    """How a site keeps its indices, the version of its templates, and of which indices it has some (`kept`)."""

    prefix: str
    period: str = "month"
    shards: int = 1
    compact: bool = False
    version: int = 0
    kept: frozenset[str] = frozenset()

    @property
    def says_complete(self) -> bool:
        """Return whether rollups have the field that says whether they are complete."""
        return self.version >= SAYS_COMPLETE

    @property
    def keeps_bytes(self) -> bool:
        """Return whether documents have the field for the bytes that I/Os moved."""
        return self.version >= KEEPS_BYTES

    @property
    def wide_rollups(self) -> bool:
        """Return whether rollups have the lower ends of percentiles, the start of their run and its default kind."""
        return self.version >= WIDE_ROLLUPS

    @property
    def names(self) -> Names:
        """Return the names of the site's indices."""
        return Names(self.prefix, self.period)

    def check(self) -> None:
        """Raise UsageError for a period or number of shards that cannot be."""
        if self.period not in PERIODS:
            raise UsageError(f"--period must be one of {', '.join(PERIODS)}, not {self.period}")
        if not 1 <= self.shards <= MOST_SHARDS:
            raise UsageError(f"--shards must be a number from 1 to {MOST_SHARDS}")


def templates(site: Site) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the body of each template by (component or index, name), in the order in which they are to be put."""
    version = schema_version()
    meta = {"managed_by": "tailboard", "version": version, "period": site.period, "shards": site.shards, "compact": site.compact}
    custom, settings = f"{site.prefix}@custom", f"{site.prefix}-settings"
    bodies: dict[tuple[str, str], dict[str, Any]] = {
        (COMPONENT, settings): _component({"settings": {"index": SETTINGS}}, version, meta),
        (COMPONENT, custom): {"template": {}},
    }
    for index in indices():
        mappings = _component({"mappings": elasticsearch_mappings(index)}, version, meta)
        bodies[COMPONENT, f"{site.prefix}-{index}-mappings"] = mappings
    for index in indices():
        body = {
            "index_patterns": [f"{site.prefix}-{index}-*" if index in PERIODIC else f"{site.prefix}-{index}"],
            "composed_of": [f"{site.prefix}-{index}-mappings", settings, custom],
            "priority": PRIORITY,
            "version": version,
            "_meta": meta,
        }
        shards = {"index": {"number_of_shards": site.shards if index in SHARDED else 1}}
        # The measured saving; rollups are few, and are written with versions of their own.
        small = {"index.mode": "logsdb", "index.mapping.source.mode": "stored"} if site.compact and index == "intervals" else {}
        bodies[INDEX, f"{site.prefix}-{index}"] = {**body, "template": {"settings": {**shards, **small}}}
    return bodies


def _component(template: Mapping[str, Any], version: int, meta: Mapping[str, Any]) -> dict[str, Any]:
    return {"template": dict(template), "version": version, "_meta": dict(meta)}


def path_of(kind: str, name: str) -> str:
    """Return the path of a template."""
    return f"/_{kind}_template/{name}"


def stored_template(connection: Connection, kind: str, name: str) -> dict[str, Any] | None:
    """Return the server's template of a name, or None."""
    found = _found(connection, kind, name, "the template")
    return dict(found[0][f"{kind}_template"]) if found else None


def stored_templates(connection: Connection, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the server's index templates whose names begin with a prefix, by name."""
    found = _found(connection, INDEX, f"{prefix}-*", "the templates")
    return {entry["name"]: dict(entry["index_template"]) for entry in found}


def _found(connection: Connection, kind: str, name: str, what: str) -> list[Mapping[str, Any]]:
    try:
        return list(connection.call("GET", path_of(kind, name))[f"{kind}_templates"])
    except Refusal as error:
        if error.status == 404:
            return []
        raise StoreError(f"{what} {name} cannot be read: {error}") from None


def site_of(connection: Connection, prefix: str) -> Site:
    """Return how the site keeps its indices, as its template says; StoreError if it was not set up, or by a newer version."""
    bodies = stored_templates(connection, prefix)
    body = bodies.get(f"{prefix}-intervals")
    url = connection.address.url
    if body is None:
        option = "" if prefix == "tailboard" else f" --index-prefix {prefix}"
        raise StoreError(f"{url} has no index template {prefix}-intervals: tailboard store setup --elasticsearch {url}{option}")
    meta = body.get("_meta") or {}
    check_not_newer(body, prefix)
    choices = (str(meta.get("period", "month")), int(meta.get("shards", 1)), bool(meta.get("compact", False)))
    kept = frozenset(name.removeprefix(f"{prefix}-") for name in bodies)
    return Site(prefix, *choices, version=int(body.get("version") or 0), kept=kept)


def check_not_newer(body: Mapping[str, Any], name: str) -> None:
    """Raise StoreError if a template was written by a newer version than this one."""
    ours = schema_version()
    if int(body.get("version") or 0) > ours:
        raise StoreError(f"the templates of {name} are of version {body['version']}, this tailboard supports {ours}: upgrade it")


def differences(wanted: Any, there: Any, where: str = "") -> Iterator[str]:
    """Yield a line for each value that differs: its path, the value there, the wanted one. The order of keys does not matter."""
    wanted, there = (_dotless(value) for value in (wanted, there))
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        for name in sorted({*wanted, *there}):
            yield from differences(wanted.get(name, ...), there.get(name, ...), f"{where}.{name}" if where else name)
    elif isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        for number, pair in enumerate(zip(wanted, there, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif _comparable(wanted) != _comparable(there):
        yield f"{where}: {_shown(there)} -> {_shown(wanted)}"


def _dotless(value: Any) -> Any:
    """Return settings with dotted names taken apart, as the server gives them back."""
    if not isinstance(value, Mapping):
        return value
    nested: dict[str, Any] = {}
    for name, inner in value.items():
        first, _, rest = str(name).partition(".")
        dotted = rest and not isinstance(inner, Mapping)
        nested = _joined(nested, {first: _dotless({rest: inner})} if dotted else {name: inner})
    return nested


def _joined(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(left)
    for name, value in right.items():
        old = both.get(name)
        both[name] = _joined(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def _comparable(value: Any) -> Any:
    """Return a value as it compares: the server gives numbers and truth in settings back as text, and leaves empty values out."""
    if isinstance(value, Mapping):
        named = ((name, _comparable(inner)) for name, inner in _dotless(value).items())
        return {name: inner for name, inner in named if inner is not ...} or ...
    if isinstance(value, list):
        return [_comparable(inner) for inner in value]
    if isinstance(value, bool):
        return str(value).lower()
    return ... if value in (..., None) else str(value)


def _shown(value: Any) -> str:
    return "nothing" if _comparable(value) is ... else json.dumps(value, default=str)
