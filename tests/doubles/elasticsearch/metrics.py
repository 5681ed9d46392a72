"""Metrics: one number, or one list of percentiles, for each bucket; over numbers and over histograms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.doubles.elasticsearch.aggregations import Aggregation, gather, pairs
from tests.doubles.elasticsearch.columns import NUMERIC, View
from tests.doubles.elasticsearch.dates import text_of
from tests.doubles.elasticsearch.errors import CannotDo, shard_illegal

Json = Any
Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # owner, value, count, document of each value or bin


def values_of(view: View, path: str, documents: np.ndarray, owner: np.ndarray) -> Columns:
    """Return all values of a number or histogram field: an owner, a value and a count for each value or bin."""
    numbers = view.numbers(path)
    place, which = pairs(numbers.documents, documents, len(view))
    bins = view.bins(path)
    bin_place, bin_which = gather(bins.start, documents)
    return (
        np.concatenate([owner[which], owner[bin_which]]),
        np.concatenate([numbers.values[place].astype(np.float64), bins.values[bin_place]]),
        np.concatenate([np.ones(len(place), dtype=np.int64), bins.counts[bin_place]]),
        np.concatenate([documents[which], documents[bin_which]]),
    )


class Metric(Aggregation):
    """A metric over values."""

    makes_buckets = False
    on_dates = True

    def prepare(self, view: View) -> None:
        kinds = self.kinds(view)
        wrong = kinds - {*NUMERIC, "histogram"}
        if wrong:
            raise shard_illegal(f"Field [{self.field}] of type [{wrong.pop()}] is not supported for aggregation [{self.kind}]")
        if "boolean" in kinds and self.kind != "value_count":
            raise CannotDo(f"aggregation [{self.kind}] on a boolean")
        if "date" in kinds and (not self.on_dates or kinds != {"date"}):
            raise CannotDo(f"aggregation [{self.kind}] on a date")
        if len({item["format"] for item in view.fields(self.field) if item.kind == "date"}) > 1:
            raise CannotDo(f"aggregation [{self.kind}] on dates of several formats")


def _json(value: float) -> Any:
    return "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else "NaN" if value != value else value


class _Extreme(Metric):
    worst = math.inf
    extend: Any = np.minimum

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        who, values, _, _ = values_of(view, self.field, documents, owner)
        found = np.full(buckets, self.worst)
        self.extend.at(found, who, values)
        dates = [item["format"] for item in view.fields(self.field) if item.kind == "date"]
        answers: list[Json] = []
        for value in found.tolist():
            if math.isinf(value):  # recorded: a maximum of Infinity is null
                answers.append({"value": None})
            else:
                answers.append({"value": value, "value_as_string": text_of(int(value), dates[0])} if dates else {"value": value})
        return answers


class Min(_Extreme):
    """`min`."""

    kind = "min"


class Max(_Extreme):
    """`max`."""

    kind = "max"
    worst = -math.inf
    extend = np.maximum


def sums(owner: np.ndarray, products: np.ndarray, buckets: int) -> list[float]:
    """Return the exactly rounded sum of each bucket (the server adds with compensation)."""
    if not len(products):
        return [0.0] * buckets
    finite = bool(np.isfinite(products).all())
    if finite and bool((products == np.floor(products)).all()) and float(np.abs(products).sum()) < 2**53:
        whole: list[float] = np.bincount(owner, weights=products, minlength=buckets).tolist()
        return whole
    order = np.argsort(owner, kind="stable")
    edges = np.searchsorted(owner[order], np.arange(buckets + 1))
    ordered = products[order]
    return [
        math.fsum(ordered[a:b].tolist()) if finite else float(ordered[a:b].sum())
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist())
    ]


class Sum(Metric):
    """`sum`."""

    kind = "sum"
    on_dates = False

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        who, values, counts, _ = values_of(view, self.field, documents, owner)
        return [{"value": _json(value)} for value in sums(who, values * counts, buckets)]


def _counted(owner: np.ndarray, counts: np.ndarray, buckets: int) -> np.ndarray:
    found = np.zeros(buckets, dtype=np.int64)
    with np.errstate(over="ignore"):
        np.add.at(found, owner, counts)
    return found


class Avg(Metric):
    """`avg`."""

    kind = "avg"
    on_dates = False

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        who, values, counts, _ = values_of(view, self.field, documents, owner)
        numbers = _counted(who, counts, buckets).tolist()
        return [
            {"value": _json(total / number) if number else None}
            for total, number in zip(sums(who, values * counts, buckets), numbers)
        ]


class ValueCount(Metric):
    """`value_count`: values, or what histograms count."""

    kind = "value_count"

    def prepare(self, view: View) -> None:
        if not self.kinds(view) <= {"keyword", "flattened"}:
            super().prepare(view)

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        who, _, counts, _ = values_of(view, self.field, documents, owner)
        found = _counted(who, counts, buckets)
        _, which = pairs(view.words(self.field).documents, documents, len(view))
        found += np.bincount(owner[which], minlength=buckets)
        return [{"value": value} for value in found.tolist()]


class Cardinality(Metric):
    """`cardinality`, up to its precision threshold: beyond, the server's answer is an estimate and the double refuses."""

    kind = "cardinality"
    known = ("field", "precision_threshold")

    def prepare(self, view: View) -> None:
        if len(self.refuse_histograms(view)) > 1:
            raise CannotDo("aggregation [cardinality] on a field of several types")

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        words = view.words(self.field)
        place, which = pairs(words.documents, documents, len(view))
        codes = words.codes[place]
        if not len(words.documents):
            numbers = view.numbers(self.field)
            place, which = pairs(numbers.documents, documents, len(view))
            codes = np.unique(numbers.values[place], return_inverse=True)[1]
        both = np.unique(np.stack([owner[which], codes]), axis=1)[0] if len(which) else np.empty(0, dtype=np.int64)
        found = np.bincount(both, minlength=buckets).tolist()
        if max(found, default=0) > min(int(self.body.get("precision_threshold", 3000)), 40000):
            raise CannotDo("aggregation [cardinality] beyond its precision threshold: the server estimates")
        return [{"value": value} for value in found]
