"""Buckets over time and over numbers: date_histogram, histogram, range, filter, filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.doubles.elasticsearch import queries
from tests.doubles.elasticsearch.aggregations import MAX_BUCKETS, Aggregation, Aggregations, Context, gather, pairs
from tests.doubles.elasticsearch.columns import NUMERIC, View
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, illegal, shard_illegal
from tests.doubles.elasticsearch.hdr import java_double

Json = Any
REASON = (
    "Trying to create too many buckets. Must be less than or equal to: [{0}] but this number of buckets was exceeded. "
    "This limit can be set by changing the [search.max_buckets] cluster level setting."
)


def too_many(limit: int = MAX_BUCKETS) -> Refusal:
    """Return the refusal of an answer with too many buckets."""
    cause = {"type": "too_many_buckets_exception", "reason": REASON.format(limit), "max_buckets": limit}
    error = {
        "root_cause": [],
        "type": "search_phase_execution_exception",
        "reason": "",
        "phase": "fetch",
        "grouped": True,
        "failed_shards": [],
        "caused_by": cause,
    }
    return Refusal(400, {"error": error, "status": 400})


def ranked(owner: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct (owner, key) in order, and for each value which of them it is."""
    if not len(keys):
        none = np.empty(0, dtype=np.int64)
        return none, keys, none
    order = np.lexsort((keys, owner))
    a, b = owner[order], keys[order]
    new = np.concatenate(([True], (a[1:] != a[:-1]) | (b[1:] != b[:-1])))
    which = np.empty(len(keys), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return a[new], b[new], which


class RangeBuckets(Aggregation):
    """`range`: from inclusive, to exclusive; on histograms a bin is counted where its value lies."""

    kind = "range"
    known = ("field", "ranges", "keyed")

    def check(self) -> None:
        self.ranges = sorted((self._one(given) for given in self.body.get("ranges", [])), key=lambda one: one[:2])
        if not self.ranges:
            raise illegal(f"No [ranges] specified for the [{self.name}] aggregation")

    @staticmethod
    def _one(given: Json) -> tuple[float, float, str | None]:
        if set(given) - {"from", "to", "key"}:
            raise CannotDo(f"[{min(set(given) - {'from', 'to', 'key'})}] in a range")
        low, high = given.get("from"), given.get("to")
        return -math.inf if low is None else float(low), math.inf if high is None else float(high), given.get("key")

    def prepare(self, view: View) -> None:
        kinds = self.kinds(view)
        if "histogram" in kinds and self.subs.items:
            raise shard_illegal("Range aggregation on histogram fields does not support sub-aggregations")
        wrong = kinds - {*NUMERIC, "histogram"}
        if wrong:
            raise shard_illegal(f"Field [{self.field}] of type [{wrong.pop()}] is not supported for aggregation [range]")
        if kinds & {"date", "boolean"} or ("histogram" in kinds and len(kinds) > 1):
            raise CannotDo("aggregation [range] on a date, a boolean, or fields of several types")
        self.on_bins = "histogram" in kinds

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        counts, subs = (
            self._of_bins(view, documents, owner, buckets) if self.on_bins else self._of_numbers(view, documents, owner, buckets)
        )
        fixed = [self._heading(*one) for one in self.ranges]
        answers: list[Json] = []
        for place, row in enumerate(counts.tolist()):
            made = [
                {**head, "doc_count": count, **subs[place * len(fixed) + number]}
                for number, (head, count) in enumerate(zip(fixed, row))
            ]
            answers.append({"buckets": {one.pop("key"): one for one in made} if self.body.get("keyed", False) else made})
        return answers

    @staticmethod
    def _heading(low: float, high: float, key: str | None) -> Json:
        head: Json = {
            "key": key or f"{'*' if low == -math.inf else java_double(low)}-{'*' if high == math.inf else java_double(high)}"
        }
        if low != -math.inf:
            head["from"] = low
        if high != math.inf:
            head["to"] = high
        return head

    def _of_bins(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> tuple[np.ndarray, list[Json]]:
        bins = view.bins(self.field)
        place, which = gather(bins.start, documents)
        edges = np.unique(np.array([end for low, high, _ in self.ranges for end in (low, high)]))
        slot = np.searchsorted(edges, bins.values[place], side="right")  # slot s: below edges[s], at or above edges[s - 1]
        cells = np.zeros(buckets * (len(edges) + 1), dtype=np.int64)
        with np.errstate(over="ignore"):
            np.add.at(cells, owner[which] * (len(edges) + 1) + slot, bins.counts[place])
            below = np.concatenate(
                (np.zeros((buckets, 1), dtype=np.int64), np.cumsum(cells.reshape(buckets, len(edges) + 1), axis=1)), axis=1
            )
        low = np.searchsorted(edges, [one[0] for one in self.ranges]) + 1
        high = np.searchsorted(edges, [one[1] for one in self.ranges]) + 1
        counts = np.maximum(below[:, high] - below[:, low], 0)
        return counts, [{}] * (buckets * len(self.ranges))

    def _of_numbers(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> tuple[np.ndarray, list[Json]]:
        numbers = view.numbers(self.field)
        place, which = pairs(numbers.documents, documents, len(view))
        values, size = numbers.values[place], len(self.ranges)
        who, cell = [], []
        for number, (low, high, _) in enumerate(self.ranges):
            inside = (values >= low) & (values < high)
            once = np.unique(which[inside])
            who.append(once)
            cell.append(owner[once] * size + number)
        found = documents[np.concatenate(who)] if who else documents[:0]
        cells = np.concatenate(cells) if (cells := cell) else owner[:0]
        counts = np.bincount(cells, weights=view.weights[found], minlength=buckets * size).astype(np.int64)
        return counts.reshape(buckets, size), self.subs.collect(view, found, cells, buckets * size)


class Filter(Aggregation):
    """`filter`: its body is a query."""

    kind = "filter"

    def __init__(self, name: str, body: Json, subs: Aggregations, context: Context) -> None:
        self.query = queries.parse(body, context.text, context.now)
        super().__init__(name, {}, subs, context)

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        inside = self.query.mask(view)[documents] if len(documents) else np.empty(0, dtype=bool)
        return counted(self, view, documents[inside], owner[inside], buckets)


def counted(one: Aggregation, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
    """Return doc_count and sub-aggregations for each bucket."""
    counts = np.bincount(owner, weights=view.weights[documents], minlength=buckets).astype(np.int64).tolist()
    return [{"doc_count": count, **sub} for count, sub in zip(counts, one.subs.collect(view, documents, owner, buckets))]


class Filters(Aggregation):
    """`filters`: named or in a list."""

    kind = "filters"
    known = ("filters", "keyed")

    def check(self) -> None:
        given = self.body["filters"]
        self.named = isinstance(given, dict)
        if "keyed" in self.body and self.body["keyed"] is not self.named:
            raise CannotDo("[keyed] in aggregation [filters]")
        pairs_of = given.items() if isinstance(given, dict) else enumerate(given)
        self.queries = {name: queries.parse(body, self.context.text, self.context.now) for name, body in pairs_of}

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        columns = {}
        for name, query in self.queries.items():
            inside = query.mask(view)[documents] if len(documents) else np.empty(0, dtype=bool)
            columns[name] = counted(self, view, documents[inside], owner[inside], buckets)
        rows = [{name: column[place] for name, column in columns.items()} for place in range(buckets)]
        return [{"buckets": row if self.named else list(row.values())} for row in rows]
