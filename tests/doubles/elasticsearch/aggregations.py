"""Aggregations: parsed once, then collected for all buckets of their parent at a time.

`collect(view, documents, owner, buckets)` takes document numbers and the parent's bucket of each, and returns one answer for each
bucket. So a nested tree costs a few array operations a level, not a loop over buckets times documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.errors import CannotDo, refuse, shard_illegal
from tests.doubles.elasticsearch.key_order import reduced_order
from tests.doubles.elasticsearch.tokens import place_of

Json = Any
MAX_BUCKETS = 65536
REAL = frozenset(
    "adjacency_matrix avg_bucket auto_date_histogram bucket_correlation bucket_count_ks_test bucket_script bucket_selector "
    "bucket_sort boxplot categorize_text change_point children cumulative_cardinality cumulative_sum date_range derivative "
    "diversified_sampler extended_stats extended_stats_bucket frequent_item_sets geo_bounds geo_centroid geo_distance geo_line "
    "geohash_grid geohex_grid geotile_grid global inference ip_prefix ip_range matrix_stats max_bucket median_absolute_deviation "
    "min_bucket missing moving_avg moving_fn moving_percentiles multi_terms nested normalize parent percentiles_bucket random_sampler "
    "rare_terms rate reverse_nested sampler scripted_metric serial_diff significant_terms significant_text stats stats_bucket "
    "string_stats sum_bucket t_test time_series top_metrics variable_width_histogram weighted_avg".split()
)
EXTRA = frozenset(
    "auto_date_histogram boxplot rate string_stats t_test top_metrics".split()
)  # modules that the recorded nodes lacked
NOT_ON_HISTOGRAMS = frozenset(
    "stats extended_stats cardinality median_absolute_deviation terms missing significant_terms variable_width_histogram date_histogram".split()
)
RESERVED = "[]>"


@dataclass(frozen=True, slots=True)
class Context:
    """What an aggregation knows of its request: the text, for positions, the time it came, how many buckets it may make."""

    text: str
    now: int
    max_buckets: int


class Aggregation:
    """One aggregation with its sub-aggregations."""

    kind = ""
    known: tuple[str, ...] = ("field",)
    makes_buckets = True

    def __init__(self, name: str, body: Json, subs: Aggregations, context: Context) -> None:
        self.name = name
        self.body = body
        self.subs = subs
        self.context = context
        for key in body:
            if key not in self.known:
                raise CannotDo(f"[{key}] in aggregation [{self.kind}]")
        if subs.items and not self.makes_buckets:
            raise refuse(
                400,
                "aggregation_initialization_exception",
                f"Aggregator [{name}] of type [{self.kind}] cannot accept sub-aggregations",
            )
        self.check()

    @property
    def field(self) -> str:
        """Return the field it works on."""
        if "field" not in self.body:
            raise refuse(
                400,
                "illegal_argument_exception",
                f"Required one of fields [field, script], but none were specified. [{self.name}]",
            )
        return str(self.body["field"])

    def check(self) -> None:
        """Refuse what the server refuses while it reads the request."""

    def prepare(self, view: View) -> None:
        """Refuse what a shard refuses once it knows the field's type."""

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        """Return the answer for each bucket of the parent."""
        raise NotImplementedError

    def kinds(self, view: View) -> set[str]:
        """Return the types that the field has in the indices searched."""
        found = {item.kind for item in view.fields(self.field)}
        if "text" in found or "flattened" in found:
            if "text" in found:
                raise CannotDo(f"aggregation [{self.kind}] on a text field")
        return found

    def refuse_histograms(self, view: View) -> set[str]:
        """Return the field's types; refuse a histogram."""
        kinds = self.kinds(view)
        if "histogram" in kinds:
            raise shard_illegal(f"Field [{self.field}] of type [histogram] is not supported for aggregation [{self.kind}]")
        return kinds


class Aggregations:
    """The aggregations of one level, in the order of the request."""

    def __init__(self, items: list[Aggregation]) -> None:
        self.items = items

    def prepare(self, view: View) -> None:
        """Let each look at the mappings, the inner ones too."""
        for item in self.items:
            item.prepare(view)
            item.subs.prepare(view)

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int, *, reduced: bool = True) -> list[Json]:
        """Return for each bucket the answers by name, in the order of the request, or as the reducing of answers leaves them."""
        names = [item.name for item in self.items]
        answers: list[Json] = [dict.fromkeys(reduced_order(names) if reduced else names) for _ in range(buckets)]
        for item in self.items:
            for place, answer in enumerate(item.collect(view, documents, owner, buckets)):
                answers[place][item.name] = answer
        return answers

    def empty(self, view: View) -> Json:
        """Return the answers of a bucket without documents."""
        none = np.empty(0, dtype=np.int64)
        return self.collect(view, none, none, 1)[0]


def parse(given: Json, context: Context, kinds: dict[str, type[Aggregation]]) -> Aggregations:
    """Return the aggregations of a JSON object."""
    items = []
    for name, definition in given.items():
        if any(char in name for char in RESERVED):
            raise refuse(
                400,
                "parsing_exception",
                f"Invalid aggregation name [{name}]. Aggregation names can contain any character except '[', ']', and '>'",
                line=1,
                col=1,
            )
        items.append(_one(name, definition, context, kinds))
    return Aggregations(items)


def _one(name: str, definition: Json, context: Context, kinds: dict[str, type[Aggregation]]) -> Aggregation:
    subs = Aggregations([])
    found: list[tuple[str, Json]] = []
    for key, value in definition.items():
        if key in ("aggs", "aggregations"):
            subs = parse(value, context, kinds)
        elif key == "meta":
            raise CannotDo("[meta] of an aggregation")
        else:
            found.append((key, value))
    if not found:
        raise refuse(400, "parsing_exception", f"Missing definition for aggregation [{name}]", line=1, col=1)
    if len(found) > 1:
        raise refuse(
            400,
            "parsing_exception",
            f"Found two aggregation type definitions in [{name}]: [{found[0][0]}] and [{found[1][0]}]",
            line=1,
            col=1,
        )
    ((kind, body),) = found
    if kind in kinds:
        return kinds[kind](name, body, subs, context)
    if kind in NOT_ON_HISTOGRAMS and set(body) == {"field"}:
        return _OnlyRefused(name, {**body, "kind": kind}, subs, context)
    if kind in REAL - EXTRA:
        raise CannotDo(f"aggregation [{kind}]")
    line, column = place_of(context.text, kind)
    cause = {"type": "named_object_not_found_exception", "reason": f"[{line}:{column}] unknown field [{kind}]"}
    raise refuse(400, "parsing_exception", f"Unknown aggregation type [{kind}]", cause, line=line, col=column)


class _OnlyRefused(Aggregation):
    """An aggregation of which the double knows one thing: that the server refuses it on histograms."""

    known = ("field", "kind")

    def prepare(self, view: View) -> None:
        self.kind = self.body["kind"]
        self.refuse_histograms(view)
        raise CannotDo(f"aggregation [{self.kind}]")


def gather(start: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of all bins of some documents, and for each the document's place in the list."""
    lengths = start[documents + 1] - start[documents]
    which = np.repeat(np.arange(len(documents)), lengths)
    first = np.repeat(start[documents] - np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(documents) else lengths, lengths)
    return np.arange(len(which)) + first, which


def pairs(column_documents: np.ndarray, documents: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (place in the column, place in `documents`) for every value of every document listed; documents may repeat."""
    begin = np.searchsorted(column_documents, documents, side="left")
    end = np.searchsorted(column_documents, documents, side="right")
    lengths = end - begin
    which = np.repeat(np.arange(len(documents)), lengths)
    first = np.repeat(begin - np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(documents) else lengths, lengths)
    del size
    return np.arange(len(which)) + first, which


def count_buckets(answer: Json) -> int:
    """Return how many buckets an answer has, on all levels: what `search.max_buckets` limits."""
    total = 0
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key == "buckets":
                inner = value.values() if isinstance(value, dict) else value
                total += len(value) + sum(count_buckets(one) for one in inner)
            elif isinstance(value, dict):
                total += count_buckets(value)
    return total
