"""Buckets by several values at once: `multi_terms`, as its documentation tells it (no recording holds one)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.errors import CannotDo, illegal
from tests.doubles.elasticsearch.terms import Terms, coded

Json = Any


class MultiTerms(Terms):
    """`multi_terms` of keywords; a document without a value and without `missing` is in no bucket."""

    kind = "multi_terms"
    known = ("terms", "size", "shard_size", "order", "min_doc_count", "collect_mode")

    def check(self) -> None:
        super().check()
        self.fields = [(str(one["field"]), one.get("missing")) for one in self.body.get("terms", [])]
        unknown = [key for one in self.body.get("terms", []) for key in one if key not in ("field", "missing")]
        if unknown:
            raise CannotDo(f"[{unknown[0]}] in aggregation [multi_terms]")
        if len(self.fields) < 2:
            raise illegal(
                "The [terms] parameter in the aggregation [multi_terms] must be present and have at least 2 fields or scripts."
            )

    def prepare(self, view: View) -> None:
        self.family = "words"
        kinds = {item.kind for field, _ in self.fields for item in view.fields(field)}
        if kinds - {"keyword"}:
            raise CannotDo(f"aggregation [multi_terms] on {sorted(kinds)}")

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        rows, columns, listed = np.arange(len(documents)), [], []
        for field, missing in self.fields:
            which, codes, values = coded(view, field, {"keyword"}, documents[rows], missing)
            order = np.argsort(which, kind="stable")
            columns = [column[which[order]] for column in columns]
            rows = rows[which[order]]
            columns.append(codes[order])
            listed.append(values)
        cells, cell = np.unique(np.stack([owner[rows], *columns]), axis=1, return_inverse=True)
        inner, cell = documents[rows], cell.reshape(-1)
        keys = [[values[code] for values, code in zip(listed, row)] for row in cells[1:].T.tolist()]
        return self._answers(view, inner, cell, keys, cells[0], buckets)

    def _bucket(self, key: Any, count: int, sub: Json) -> Json:
        return {"key": key, "key_as_string": "|".join(key), "doc_count": count, **sub}
