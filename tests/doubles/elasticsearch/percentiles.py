"""Percentiles and percentile ranks with hdr, for each bucket."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, ShardFailure, illegal, refuse, shard_illegal
from tests.doubles.elasticsearch.hdr import OutOfRange, Range, Sketch, cover, java_double, reported, sketch
from tests.doubles.elasticsearch.metrics import Metric, values_of
from tests.doubles.elasticsearch.tokens import place_of

Json = Any
DEFAULT_PERCENTS = [1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0]
MISSING = "Can't apply missing values on a class org.elasticsearch.xpack.analytics.aggregations.support.HistogramValuesSource$Histogram$Fielddata"


class _Hdr(Metric):
    on_dates = False
    list_name = ""

    def check(self) -> None:
        hdr = self.body.get("hdr")
        if hdr is not None:
            for key in hdr:
                if key != "number_of_significant_value_digits":
                    raise CannotDo(f"[{key}] in hdr")
        digits = (hdr or {}).get("number_of_significant_value_digits", 3)
        if not isinstance(digits, int) or not 0 <= digits <= 5:
            raise self._bad_digits()
        if hdr is not None and "tdigest" in self.body:
            raise self._not_built("Only one percentiles method should be declared.")
        self._check_list()
        if hdr is None:
            raise CannotDo(f"aggregation [{self.kind}] without hdr: t-digest is not emulated")
        if digits == 0:
            raise CannotDo("hdr with 0 digits: the server's answers are meaningless")

    def _check_list(self) -> None:
        """Refuse a bad list of percents or values."""

    def _not_built(self, reason: str) -> Refusal:
        cause = {"type": "illegal_argument_exception", "reason": reason}
        return refuse(400, "x_content_parse_exception", f"Failed to build [{self.kind}] after last required field arrived", cause)

    def _bad_digits(self) -> Refusal:
        line, column = place_of(self.context.text, "number_of_significant_value_digits")
        inner = {
            "type": "x_content_parse_exception",
            "reason": f"[{line}:{column}] [hdr] failed to parse field [number_of_significant_value_digits]",
        }
        last = {"type": "illegal_argument_exception", "reason": "[numberOfSignificantValueDigits] must be between 0 and 5"}
        error = {
            "root_cause": [inner],
            "type": "x_content_parse_exception",
            "reason": f"[{line}:{column}] [{self.kind}] failed to parse field [hdr]",
            "caused_by": {**inner, "caused_by": last},
        }
        return Refusal(400, {"error": error, "status": 400})

    def prepare(self, view: View) -> None:
        super().prepare(view)
        if "missing" in self.body:
            if "histogram" in self.kinds(view):
                raise shard_illegal(MISSING)
            raise CannotDo(f"[missing] in aggregation [{self.kind}]")

    @property
    def digits(self) -> int:
        """Return the significant digits."""
        return int(self.body["hdr"].get("number_of_significant_value_digits", 3))

    def sketches(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> Iterator[Sketch]:
        """Yield the histogram of each bucket."""
        who, values, counts, origin = values_of(view, self.field, documents, owner)
        order = (
            np.lexsort((origin, who))
            if len(view.readers) > 1 or len(view.numbers(self.field).values)
            else np.argsort(who, kind="stable")
        )
        who, values, counts, origin = who[order], values[order], counts[order], origin[order]
        edges = np.searchsorted(who, np.arange(buckets + 1)).tolist()
        for begin, end in zip(edges[:-1], edges[1:]):
            part = slice(begin, end)
            yield sketch(values[part], counts[part], self._covered(view, values[part], counts[part], origin[part]))

    def _covered(self, view: View, values: np.ndarray, counts: np.ndarray, origin: np.ndarray) -> Range:
        covered = Range(self.digits)
        positive = values[values != 0]
        if not len(positive):
            return covered
        least, most = float(positive.min()), float(positive.max())
        if least > 0 and most < 2.0**800 and math.frexp(most)[1] - math.frexp(least)[1] <= 30:
            covered.lowest = 2.0 ** (math.frexp(least)[1] - 1)  # few octaves: any order of recording ends here
            return covered
        try:
            return self._merged(view, values, counts, origin)
        except OutOfRange as error:
            failure = {"type": "array_index_out_of_bounds_exception", "reason": str(error)}
            raise ShardFailure(500, failure, repeated=True) from error

    def _merged(self, view: View, values: np.ndarray, counts: np.ndarray, origin: np.ndarray) -> Range:
        """Return the range after each shard has recorded its own values and the larger took in the smaller."""
        whole: Range | None = None
        total = 0
        edges = np.searchsorted(origin, view.base).tolist()
        for begin, end in zip(edges[:-1], edges[1:]):
            if begin == end:
                continue
            own = Range(self.digits)
            cover(own, values[begin:end])
            number = int(counts[begin:end].sum())
            if whole is None:
                whole, total, upto = own, number, begin
                continue
            more, less, part = (whole, own, slice(begin, end)) if total > number else (own, whole, slice(upto, begin))
            lower = sketch(values[part], counts[part], less)
            try:
                cover(more, np.array([reported(key, less, lowest=True) for key in lower.keys.tolist()]))
            except OutOfRange as error:
                raise CannotDo(f"shards whose histograms cannot be merged: {error}") from error
            whole, total = more, total + number
        assert whole is not None
        return whole

    def _shown(self, found: list[tuple[float, float | None]]) -> Json:
        if self.body.get("keyed", True):
            return {"values": {java_double(key): value for key, value in found}}
        return {"values": [{"key": key, "value": value} for key, value in found]}


class Percentiles(_Hdr):
    """`percentiles` with hdr."""

    kind = "percentiles"
    known = ("field", "percents", "keyed", "hdr", "tdigest", "missing")

    def _check_list(self) -> None:
        percents = [float(one) for one in self.body.get("percents", DEFAULT_PERCENTS)]
        if not percents:
            raise self._not_built(f"[percents] must not be empty: [{self.name}]")
        for number, percent in enumerate(percents):
            if not 0 <= percent <= 100:
                raise self._not_built(f"percent must be in [0,100], got [{java_double(percent)}]: [{self.name}]")
            if percent in percents[:number]:
                raise self._not_built(f"percent [{java_double(percent)}] has been specified twice: [{self.name}]")
        self.percents = sorted(percents)

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        return [
            self._shown([(percent, one.percentile(percent)) for percent in self.percents])
            for one in self.sketches(view, documents, owner, buckets)
        ]


class PercentileRanks(_Hdr):
    """`percentile_ranks` with hdr."""

    kind = "percentile_ranks"
    known = ("field", "values", "keyed", "hdr", "tdigest", "missing")

    def _check_list(self) -> None:
        self.values = sorted(float(one) for one in self.body.get("values", []))
        if not self.values:
            raise illegal(f"[values] must not be an empty array: [{self.name}]")
        if self.values[0] < 0:
            raise CannotDo("percentile ranks of negative values")

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        return [
            self._shown([(value, one.rank(value)) for value in self.values])
            for one in self.sketches(view, documents, owner, buckets)
        ]
