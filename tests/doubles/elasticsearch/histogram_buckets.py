"""Buckets of equal width: histogram and date_histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.doubles.elasticsearch.aggregations import Aggregation, count_buckets, gather, pairs
from tests.doubles.elasticsearch.buckets import ranked, too_many
from tests.doubles.elasticsearch.columns import NUMERIC, View
from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT, NotADate, check_format, interval_millis, millis_of, text_of
from tests.doubles.elasticsearch.errors import CannotDo, illegal, refuse, shard_illegal
from tests.doubles.elasticsearch.hdr import java_double

Json = Any


class Histogram(Aggregation):
    """`histogram` on numbers, and on histograms, whose bins count where their value lies."""

    kind = "histogram"
    known: tuple[str, ...] = ("field", "interval", "offset", "min_doc_count", "keyed", "extended_bounds", "hard_bounds")

    def check(self) -> None:
        self.step: Any = float(self.body.get("interval", 0))
        self.offset: Any = float(self.body.get("offset", 0))
        if not self.step > 0:
            raise illegal("[interval] must be >0 for histogram aggregation")
        self._check_common()

    def _check_common(self) -> None:
        self.least = int(self.body.get("min_doc_count", 0))
        self.keyed = bool(self.body.get("keyed", False))
        self.extended = self._bounds("extended_bounds")
        self.hard = self._bounds("hard_bounds")
        for side, sign in ((0, 1), (1, -1)):
            if (
                self.extended[side] is not None
                and self.hard[side] is not None
                and (self.extended[side] - self.hard[side]) * sign < 0
            ):
                raise illegal(
                    f"Extended bounds have to be inside hard bounds, hard bounds: [{self.hard[0]}--{self.hard[1]}], extended bounds: [{self.extended[0]}--{self.extended[1]}]"
                )

    def _bounds(self, kind: str) -> tuple[Any, Any]:
        given = self.body.get(kind) or {}
        if set(given) - {"min", "max"}:
            raise CannotDo(f"{kind} {given}")
        limits = [None if given.get(name) is None else self._limit(given[name]) for name in ("min", "max")]
        keys = [None if limit is None else self.key_of(limit) for limit in limits]
        if kind == "hard_bounds" and keys != limits:
            raise CannotDo("hard_bounds that are not multiples of the interval")
        return keys[0], keys[1]

    def _limit(self, value: Any) -> Any:
        return float(value)

    def key_of(self, values: Any) -> Any:
        """Return the key of the bucket that values lie in."""
        return np.floor((values - self.offset) / self.step) * self.step + self.offset

    def prepare(self, view: View) -> None:
        kinds = self.kinds(view)
        if "histogram" in kinds and self.subs.items:
            raise shard_illegal("Histogram aggregation on histogram fields does not support sub-aggregations")
        wrong = kinds - {*NUMERIC, "histogram"}
        if wrong:
            raise shard_illegal(f"Field [{self.field}] of type [{wrong.pop()}] is not supported for aggregation [histogram]")
        if "date" in kinds or "boolean" in kinds or ("histogram" in kinds and len(kinds) > 1):
            raise CannotDo("aggregation [histogram] on a date, a boolean, or fields of several types")
        self.on_bins = "histogram" in kinds

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        if self.on_bins:
            bins = view.bins(self.field)
            place, which = gather(bins.start, documents)
            values, weights = bins.values[place], bins.counts[place]
        else:
            numbers = view.numbers(self.field)
            place, which = pairs(numbers.documents, documents, len(view))
            values, weights = numbers.values[place], view.weights[documents[which]]
        keys = self.key_of(values)
        inside = self._inside(keys)
        keys, which, weights = keys[inside], which[inside], weights[inside]
        return self._answers(view, documents[which], owner[which], keys, weights, buckets)

    def _inside(self, keys: np.ndarray) -> np.ndarray:
        found = np.ones(len(keys), dtype=bool)
        low, high = self.hard
        if low is not None:
            found &= keys >= low
        if high is not None:
            found &= keys < high  # recorded: the bucket at the upper bound stays empty
        return found

    def _answers(
        self, view: View, documents: np.ndarray, owner: np.ndarray, keys: np.ndarray, weights: np.ndarray, buckets: int
    ) -> list[Json]:
        owners, distinct, which = ranked(owner, keys)
        # a document with several values in one bucket counts once there
        counts = np.zeros(len(distinct), dtype=np.int64)
        if not getattr(self, "on_bins", False) and len(which):
            both = np.unique(np.stack([which, documents]), axis=1)
            which, documents = both[0], both[1]
            weights = view.weights[documents]
        np.add.at(counts, which, weights)
        subs = self.subs.collect(view, documents, which, len(distinct))
        edges = np.searchsorted(owners, np.arange(buckets + 1)).tolist()
        listed, total = distinct.tolist(), counts.tolist()
        return [self._filled(view, listed[a:b], total[a:b], subs[a:b]) for a, b in zip(edges[:-1], edges[1:])]

    def _filled(self, view: View, keys: list[Any], counts: list[int], subs: list[Json]) -> Json:
        found = dict(zip(keys, zip(counts, subs)))
        if self.least == 0:
            nothing = (0, self.subs.empty(view))
            keys = self._with_gaps(keys, 1 + count_buckets(nothing[1]))
            if len(keys) > len(found):
                found = {key: found.get(key, nothing) for key in keys}
        made = [self._bucket(key, *found[key]) for key in keys if found[key][0] >= self.least]
        if self.keyed:
            return {
                "buckets": {
                    one.get("key_as_string", java_double(one["key"]) if isinstance(one["key"], float) else str(one["key"])): one
                    for one in made
                }
            }
        return {"buckets": made}

    def _with_gaps(self, keys: list[Any], each: int) -> list[Any]:
        """Return all keys from the first to the last, refusing too many before they are made; an empty one holds `each` buckets."""
        ends = [key for key in self.extended if key is not None] + ([keys[0], keys[-1]] if keys else [])
        if not ends or (not keys and None in self.extended):
            return keys
        first, last = min(ends), max(ends)
        number = round((last - first) / self.step) + 1
        limit = self.context.max_buckets
        if (number - len(keys)) * each + len(keys) > limit:
            raise too_many(limit)
        return [self._step(first, place) for place in range(number)]

    def _step(self, first: Any, place: int) -> Any:
        return float((round((first - self.offset) / self.step) + place) * self.step + self.offset)

    def _bucket(self, key: Any, count: int, sub: Json) -> Json:
        return {"key": key, "doc_count": count, **sub}


DAY_MS = 86_400_000
CALENDAR = {"1m": (60_000, 0), "1h": (3_600_000, 0), "1d": (DAY_MS, 0), "1w": (7 * DAY_MS, 4 * DAY_MS)}  # the epoch is a Thursday


class DateHistogram(Histogram):
    """`date_histogram` with a fixed interval or a calendar one of equal steps in UTC: up to a week, which begins on Monday."""

    kind = "date_histogram"
    known = (
        "field",
        "fixed_interval",
        "calendar_interval",
        "offset",
        "min_doc_count",
        "keyed",
        "extended_bounds",
        "hard_bounds",
        "format",
        "time_zone",
    )

    def check(self) -> None:
        if "fixed_interval" not in self.body and "calendar_interval" not in self.body:
            raise refuse(
                400, "illegal_argument_exception", f"Invalid interval specified, must be non-null and non-empty. [{self.name}]"
            )
        if str(self.body.get("time_zone", "UTC")) not in ("UTC", "Z", "+00:00"):
            raise CannotDo(f"time zone [{self.body['time_zone']}]")
        self.pattern = check_format(self.body["format"]) if "format" in self.body else None
        self.step, monday = self._widths()
        self.offset = (interval_millis(self.body.get("offset", 0)) + monday) % self.step
        self._check_common()

    def _widths(self) -> tuple[int, int]:
        """Return the step in ms, and how long after the epoch the first one begins."""
        if "fixed_interval" in self.body:
            return interval_millis(self.body["fixed_interval"]), 0
        if self.body["calendar_interval"] not in CALENDAR:
            raise CannotDo(f"calendar interval [{self.body['calendar_interval']}]")
        return CALENDAR[self.body["calendar_interval"]]

    def _limit(self, value: Any) -> Any:
        try:
            return millis_of(value, self.pattern or DEFAULT_FORMAT)
        except NotADate as error:
            raise refuse(400, "parse_exception", f"failed to parse date field [{value}]") from error

    def key_of(self, values: Any) -> Any:
        return (values - self.offset) // self.step * self.step + self.offset

    def prepare(self, view: View) -> None:
        kinds = self.refuse_histograms(view)
        if kinds - {"date"}:
            raise CannotDo(f"aggregation [date_histogram] on {sorted(kinds)}")
        self.on_bins = False

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        return super().collect(view, documents, owner, buckets)

    def _step(self, first: Any, place: int) -> Any:
        return first + place * self.step

    def _bucket(self, key: Any, count: int, sub: Json) -> Json:
        return {"key_as_string": text_of(int(key), self.pattern), "key": int(key), "doc_count": count, **sub}
