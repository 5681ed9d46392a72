"""Buckets by value: terms and composite."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.doubles.elasticsearch.aggregations import Aggregation, pairs
from tests.doubles.elasticsearch.buckets import ranked
from tests.doubles.elasticsearch.columns import NUMERIC, View
from tests.doubles.elasticsearch.dates import interval_millis, text_of
from tests.doubles.elasticsearch.errors import CannotDo, illegal, refuse, shard_illegal
from tests.doubles.elasticsearch.hdr import java_double

Json = Any


def coded(
    view: View, path: str, kinds: set[str], documents: np.ndarray, missing: Any = None
) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Return (place in `documents`, code) for each value, and the values that codes number, ascending."""
    if kinds & set(NUMERIC):
        column = view.numbers(path)
        place, which = pairs(column.documents, documents, len(view))
        values: list[Any] = np.unique(column.values).tolist()
        codes = np.searchsorted(np.array(values), column.values[place]) if values else place
        if len(which):  # a number that a document repeats counts once for its bucket
            which, codes = np.unique(np.stack([which, codes]), axis=1)
    else:
        words = view.words(path)
        place, which = pairs(words.documents, documents, len(view))
        values, codes = list(words.words), words.codes[place]
    if missing is None:
        return which, codes, values
    without = np.setdiff1d(np.arange(len(documents)), which)
    every = sorted({*values, missing})
    number = {value: code for code, value in enumerate(every)}
    codes = np.array([number[value] for value in values], dtype=np.int64)[codes] if values else codes
    return (
        np.concatenate([which, without]),
        np.concatenate([codes, np.full(len(without), number[missing], dtype=np.int64)]),
        every,
    )


class Terms(Aggregation):
    """`terms`: each shard answers with its own best `shard_size`, and the answer knows of no other counts."""

    kind = "terms"
    known = ("field", "size", "shard_size", "order", "missing", "min_doc_count", "collect_mode")

    def check(self) -> None:
        self.size = int(self.body.get("size", 10))
        if self.size <= 0:
            raise illegal(f"[size] must be greater than 0. Found [{self.size}] in [{self.name}]")
        self.shard_size = max(int(self.body.get("shard_size", self.size * 1.5 + 10)), self.size)
        mode = self.body.get("collect_mode", "depth_first")  # says in which order buckets are filled, not with what
        if mode not in ("depth_first", "breadth_first"):
            raise illegal(f"no [collect_mode] found for value [{mode}]")
        self.least = int(self.body.get("min_doc_count", 1))
        if self.least < 1:
            raise CannotDo("min_doc_count 0 in aggregation [terms]")
        given = self.body.get("order", {"_count": "desc"})
        order = [next(iter(one.items())) for one in (given if isinstance(given, list) else [given])]
        self.order = [(str(key), str(way).lower() == "asc") for key, way in order]
        if not any(key == "_key" for key, _ in self.order):
            self.order.append(("_key", True))

    def prepare(self, view: View) -> None:
        self.types = self.refuse_histograms(view) if self.field not in ("_index", "_id", "_ignored") else {"keyword"}
        if self.field == "_id":
            raise CannotDo("aggregation [terms] on _id")
        families = {
            "word"
            if kind in ("keyword", "flattened")
            else "date"
            if kind == "date"
            else "boolean"
            if kind == "boolean"
            else "real"
            if kind in ("double", "float")
            else "whole"
            for kind in self.types
        }
        if len(families) > 1:
            raise CannotDo(f"aggregation [terms] on fields of several types: {sorted(self.types)}")
        self.family = families.pop() if families else "word"

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        missing = self.body.get("missing")
        if missing is not None and self.family not in ("word", "whole", "real"):
            raise CannotDo("[missing] in aggregation [terms] on dates or booleans")
        which, codes, values = coded(view, self.field, self.types, documents, missing)
        owners, distinct, cell = ranked(owner[which], codes)
        inner = documents[which]
        return self._answers(view, inner, cell, [values[code] for code in distinct.tolist()], owners, buckets)

    def _answers(
        self, view: View, inner: np.ndarray, cell: np.ndarray, keys: list[Any], owners: np.ndarray, buckets: int
    ) -> list[Json]:
        """Return the answer for each bucket of the parent: `cell` is the place in `keys` of each document, in `owners` its bucket."""
        taken, errors, lost = self._of_shards(view, inner, cell, keys, owners, buckets)
        inner, cell = inner[taken], cell[taken]
        counts = np.bincount(cell, weights=view.weights[inner], minlength=len(keys)).astype(np.int64).tolist()
        subs = self.subs.collect(view, inner, cell, len(keys))
        edges = np.searchsorted(owners, np.arange(buckets + 1)).tolist()
        made = [[row for row in zip(keys[a:b], counts[a:b], subs[a:b]) if row[1]] for a, b in zip(edges[:-1], edges[1:])]
        return [self._answer(rows, error, others) for rows, error, others in zip(made, errors, lost)]

    def _of_shards(
        self, view: View, inner: np.ndarray, cell: np.ndarray, keys: list[Any], owners: np.ndarray, buckets: int
    ) -> tuple[np.ndarray, list[int], list[int]]:
        """Return which documents shards answer for; the error and the number of other documents of each bucket of the parent."""
        taken, errors, lost = np.ones(len(inner), bool), [0] * buckets, [0] * buckets
        shard = np.searchsorted(view.base, inner, side="right") - 1
        pairs_, pair = np.unique(cell * len(view.readers) + shard, return_inverse=True)
        groups: dict[tuple[int, int], list[int]] = {}
        for number, code in enumerate(pairs_.tolist()):
            groups.setdefault((int(owners[code // len(view.readers)]), code % len(view.readers)), []).append(number)
        full = {group: numbers for group, numbers in groups.items() if len(numbers) >= self.shard_size}
        if len(view.readers) < 2 or not full:
            return taken, errors, lost
        counts = np.bincount(pair, weights=view.weights[inner], minlength=len(pairs_)).astype(np.int64).tolist()
        subs = self.subs.collect(view, inner, pair, len(pairs_))
        kept = np.ones(len(pairs_), bool)
        for (owner, _), numbers in full.items():
            rows = self._sorted([(keys[pairs_[one] // len(view.readers)], counts[one], subs[one], one) for one in numbers])
            kept[[row[3] for row in rows[self.shard_size :]]] = False
            lost[owner] += sum(row[1] for row in rows[self.shard_size :])
            error = (
                0 if self.order[0][0] == "_key" else rows[self.shard_size - 1][1] if self.order[0] == ("_count", False) else -1
            )
            errors[owner] = -1 if -1 in (errors[owner], error) else errors[owner] + error
        return kept[pair], errors, lost

    def _sorted(self, rows: list[Any]) -> list[Any]:
        for key, ascending in reversed(self.order):
            rows.sort(key=lambda row: self._sort_value(key, row), reverse=not ascending)
        return rows

    def _answer(self, rows: list[Any], error: int, others: int) -> Json:
        enough = [row for row in self._sorted(rows) if row[1] >= self.least]
        others += sum(row[1] for row in enough[self.size :])
        kept = [self._bucket(*row) for row in enough[: self.size]]
        return {"doc_count_error_upper_bound": error, "sum_other_doc_count": others, "buckets": kept}

    def _bucket(self, key: Any, count: int, sub: Json) -> Json:
        if self.family == "date":
            return {"key": key, "key_as_string": text_of(key), "doc_count": count, **sub}
        if self.family == "boolean":
            return {"key": int(key), "key_as_string": "true" if key else "false", "doc_count": count, **sub}
        return {"key": key, "doc_count": count, **sub}

    def _sort_value(self, key: str, row: Any) -> Any:
        if key in ("_key", "_term"):
            return row[0]
        if key == "_count":
            return row[1]
        value = _metric(row[2], key, [item.name for item in self.subs.items])
        return -np.inf if value is None else value


def _metric(sub: Json, path: str, names: list[str]) -> Any:
    """Return the number that an order names: m, m.value, p.99, p[99.9]."""
    if ">" in path:
        raise CannotDo(f"order by [{path}]")
    name, _, rest = path.partition("[") if "[" in path else path.partition(".")
    rest = rest.rstrip("]")
    if name not in names:
        raise refuse(
            400,
            "aggregation_execution_exception",
            f"Invalid aggregation order path [{path}]. The provided aggregation [{name}] either does not exist, or is a pipeline aggregation and cannot be used to sort the buckets.",
        )
    answer = sub[name]
    if "values" not in answer:
        if rest not in ("", "value") or "value" not in answer:
            raise CannotDo(f"order by [{path}]")
        return answer["value"]
    wanted = java_double(float(rest)) if rest else ""
    values = answer["values"]
    listed = values if isinstance(values, dict) else {java_double(one["key"]): one["value"] for one in values}
    if wanted not in listed:
        raise CannotDo(f"order by [{path}]: no such percentile")
    return listed[wanted]


class Composite(Aggregation):
    """`composite` of terms, date_histogram and histogram sources, page by page."""

    kind = "composite"
    known = ("size", "sources", "after")

    def check(self) -> None:
        self.size = int(self.body.get("size", 10))
        self.sources = []
        for given in self.body.get("sources", []):
            ((name, definition),) = given.items()
            ((kind, body),) = definition.items()
            if kind not in ("terms", "date_histogram", "histogram"):
                raise CannotDo(f"composite source [{kind}]")
            for key in body:
                if key not in ("field", "order", "missing_bucket", "fixed_interval", "interval", "offset"):
                    raise CannotDo(f"[{key}] in a composite source")
            self.sources.append((name, kind, body))
        if not self.sources:
            raise illegal("Composite [sources] cannot be null or empty")
        names = [name for name, _, _ in self.sources]
        if len(set(names)) < len(names):
            raise illegal(f"Composite source names must be unique, found duplicates: {names}")
        self.after = self.body.get("after")
        if self.after is not None and set(self.after) != set(names):
            raise illegal(f"[after] has {len(self.after)} value(s) but [sources] has {len(names)}")

    def prepare(self, view: View) -> None:
        self.types = []
        for _, kind, body in self.sources:
            kinds = {item.kind for item in view.fields(body["field"])}
            if "histogram" in kinds:
                raise shard_illegal(f"Field [{body['field']}] of type [histogram] is not supported for aggregation [{kind}]")
            if "text" in kinds or len(kinds) > 1 or ("date" in kinds) != (kind == "date_histogram" and bool(kinds)):
                raise CannotDo(f"composite source [{kind}] on {sorted(kinds)}")
            self.types.append(kinds)

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        if buckets != 1 or owner.any():
            raise CannotDo("aggregation [composite] below another")
        rows = np.arange(len(documents))
        columns: list[np.ndarray] = []
        values: list[list[Any]] = []
        for (_, kind, body), kinds in zip(self.sources, self.types):
            which, codes, listed = self._codes(view, kind, body, kinds, documents[rows])
            order = np.argsort(which, kind="stable")
            which, codes = which[order], codes[order]
            columns = [column[which] for column in columns]
            rows = rows[which]
            if str(body.get("order", "asc")).lower() == "desc":
                codes, listed = len(listed) - 1 - codes, listed[::-1]
            columns.append(codes)
            values.append(listed)
        return [self._page(view, documents[rows], columns, values)]

    @staticmethod
    def _codes(
        view: View, kind: str, body: Json, kinds: set[str], documents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[Any]]:
        if kind == "terms":
            which, codes, values = coded(view, body["field"], kinds, documents)
        else:
            column = view.numbers(body["field"])
            place, which = pairs(column.documents, documents, len(view))
            if kind == "date_histogram":
                step, offset = interval_millis(body["fixed_interval"]), interval_millis(body.get("offset", 0))
                keys = (column.values[place] - offset) // step * step + offset
            else:
                keys = np.floor(column.values[place] / float(body["interval"])) * float(body["interval"])
            distinct, codes = np.unique(keys, return_inverse=True)
            values = distinct.tolist()
        if body.get("missing_bucket") not in (None, False):
            without = np.setdiff1d(np.arange(len(documents)), which)
            which = np.concatenate([which, without])
            codes = np.concatenate([codes + 1, np.zeros(len(without), dtype=np.int64)])
            values = [None, *values]
        return which, codes, values

    def _page(self, view: View, documents: np.ndarray, columns: list[np.ndarray], values: list[list[Any]]) -> Json:
        if not len(documents):
            return {"buckets": []}
        cells, cell = np.unique(np.stack(columns), axis=1, return_inverse=True)
        cell = cell.reshape(-1)
        keys = list(zip(*[[listed[code] for code in row] for listed, row in zip(values, cells.tolist())]))
        first = self._first(keys)
        wanted = range(first, min(first + self.size, len(keys)))
        inside = (cell >= wanted.start) & (cell < wanted.stop)
        inner, own = documents[inside], cell[inside] - first
        both = np.unique(np.stack([own, inner]), axis=1) if len(own) else np.empty((2, 0), dtype=np.int64)
        counts = np.bincount(both[0], weights=view.weights[both[1]], minlength=len(wanted)).astype(np.int64).tolist()
        subs = self.subs.collect(view, both[1], both[0], len(wanted))
        names = [name for name, _, _ in self.sources]
        made = [
            {"key": dict(zip(names, keys[place])), "doc_count": count, **sub} for place, count, sub in zip(wanted, counts, subs)
        ]
        return {"after_key": made[-1]["key"], "buckets": made} if made else {"buckets": []}

    def _first(self, keys: list[tuple[Any, ...]]) -> int:
        if self.after is None:
            return 0
        wanted = [self.after[name] for name, _, _ in self.sources]
        ways = [str(body.get("order", "asc")).lower() == "asc" for _, _, body in self.sources]
        return sum(not _later(key, wanted, ways) for key in keys)


def _later(key: tuple[Any, ...], wanted: list[Any], ways: list[bool]) -> bool:
    for have, want, ascending in zip(key, wanted, ways):
        if have != want:
            if have is None or want is None:
                return (want is None) == ascending
            return bool((have > want) == ascending)
    return False
