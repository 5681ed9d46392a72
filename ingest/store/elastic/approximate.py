"""Percentiles as the server estimates them: `percentiles` with hdr at 3 digits, for --approx.

Its value is at most 0.1 % above that of the bin, its rank floor(p * N / 100 + 0.5): with few samples one below nearest rank.
The t-digest that the server takes by default is never asked for: it was measured up to 30 times too high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ingest.core.errors import InputError, UsageError
from ingest.core.layout import MIDPOINT
from ingest.core.ranks import Percentile
from ingest.core.series import ASKABLE, IN_FLIGHT, LABELS, LAYER, Series, is_mean, layer_of
from ingest.query.missing import of_kinds, with_complete
from ingest.query.other_kinds import left_out, taken_of
from ingest.query.question import Answer, NothingMatchesError, Question, check_labels, shape_of, with_caveats
from ingest.query.spans import Span, narrowed, widen
from ingest.query.table import Table, concatenated
from ingest.store.answers import Catalogue, range_of, step_of
from ingest.store.chosen import chosen_records
from ingest.store.elastic.encoding import MS, PATHS
from ingest.store.elastic.filters import at_step, one_of, time_filters
from ingest.store.elastic.holdings import ElasticHoldings
from ingest.store.elastic.sums import label_source, paged, time_source
from ingest.store.lacking import lacks_in
from ingest.store.reach import check_latencies, reach_of, reach_of_layers
from ingest.store.records import UNKNOWN_ZERO, RunRecord, StoredSeries

DIGITS = 3
CELLS_A_PAGE = 400
FIELD = "latency.histogram"
ESTIMATED = f"estimated by the server ({DIGITS} digits, ranks rounded): leave out --approx for exact percentiles"
NO_MEAN = "the mean is left out if no exact sum is known: the server would use the values that bins report, not their middles"
NS = 1e9


def approximated(
    holdings: ElasticHoldings, records: Sequence[RunRecord], question: Question, wanted: Sequence[Percentile]
) -> tuple[Table, Answer]:
    """Return one row per window and group as `percentiles` does, and the facts about it; nothing is merged here.

    Raises UsageError for what the server cannot group by, InputError where the selection is empty.
    """
    labels = {record.run: dict(record.labels) for record in records}
    if records:
        check_labels(question, labels)
    other = [name for name in question.by if name not in ASKABLE]
    if other:
        raise UsageError(f"--approx groups by {', '.join(ASKABLE)}, not by {', '.join(other)}")
    if question.attribution == IN_FLIGHT:
        raise UsageError("--approx counts completions; leave it out to ask for in-flight weights")
    catalogue = holdings.catalogue(chosen_records(records, question.runs, question.where))
    check_latencies(catalogue.series, catalogue.records)
    key = question.key(labels)
    members = [stored for record in catalogue.records for stored in catalogue.of(record.run, key) if not stored.weighted]
    runs = [record.run for record in catalogue.records]
    lacking = lacks_in(catalogue.records, catalogue.accounts, question)
    if not members:
        raise NothingMatchesError(question, runs, missing=lacking)
    kinds: dict[str, set[str]] = {}
    for member in members:
        kinds.setdefault(member.series.run, set()).add(member.series.kind)
    shape = shape_of(question, kinds)
    every = {kind for taken in shape.taken.values() for kind in taken}
    if LAYER in shape.by and not {"run", "kind"} & {*shape.by} and len({layer_of(kind) for kind in every}) < len(every):
        raise UsageError("--approx cannot add up unlike kinds of a layer: choose one kind, as in --where kind=completion")
    if any(is_mean(kind) for taken in shape.taken.values() for kind in taken):
        raise InputError(f"the server has no histograms of {shape.kind} to estimate from: leave out --approx")
    selected, missing = [stored.series for stored in members], of_kinds(lacking, shape.taken)
    in_the_middle = all(stored.layout.reports == MIDPOINT for stored in members)
    step = step_of(catalogue, question, key)
    reach = _reach(members, step)
    answer = Answer(
        parts=(),
        by=shape.by,
        step_ns=step,
        kind=shape.kind,
        runs=shape.runs,
        run_start_ns={record.run: record.start_ns for record in catalogue.records},
        relative=all(record.zero == UNKNOWN_ZERO for record in catalogue.records),
        series=len(taken_of(selected, kinds, shape.taken)),
        warnings=(
            ESTIMATED,
            *(() if in_the_middle else (NO_MEAN,)),
            *left_out(selected, kinds, shape.taken, missing),
        ),
        answered_from="estimates",
        missing=missing,
    )
    answer = with_caveats(answer, answer.missing)
    query = _query(catalogue, question, shape.taken, selected)
    aggs: dict[str, Any] = {
        "p": {
            "percentiles": {
                "field": FIELD,
                "percents": sorted({float(percentile.text) for percentile in wanted}),
                "keyed": False,
                "hdr": {"number_of_significant_value_digits": DIGITS},
            }
        },
        "count": {"sum": {"field": "latency.count"}},
        "low": {"min": {"field": FIELD}},
        "high": {"max": {"field": FIELD}},
        "sum": {"sum": {"field": FIELD}},
        "exact": {"sum": {"field": "latency.sum"}},
        "known": {"value_count": {"field": "latency.sum"}},
    }
    cut = not step and (question.begin is not None or question.end is not None)
    if cut:  # a row spans the windows within the bounds that were asked for
        aggs |= {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    widest = max(record.step_ns for record in catalogue.records)
    first = reach[0] // widest * widest
    width, offset = (step, 0) if step else (reach[1] - first + widest, first)
    sources = [time_source(width, offset), *({label: label_source("kind" if label == LAYER else label)} for label in shape.by)]
    cells = {"size": CELLS_A_PAGE, "sources": sources}
    index = holdings.names.all("intervals")
    buckets = [bucket for page in paged(holdings.connection, index, query, cells, aggs) for bucket in page]
    if not buckets:
        raise NothingMatchesError(question, runs, missing=lacking)
    taken = [stored for stored in members if stored.series.kind in shape.taken.get(stored.series.run, ())]
    spans = _spans(buckets, shape.by, taken, widest if cut else 0)
    table = concatenated([_table(buckets, shape.by, wanted, step, spans, in_the_middle=in_the_middle)])
    return with_complete(table, answer), answer


def _reach(members: Sequence[StoredSeries], step: int) -> tuple[int, int]:
    reach = reach_of(members)
    if reach is None and not step:
        raise InputError("the load was cut off before its range of time was known: give --step")
    return reach or (0, 0)


def _spans(buckets: Sequence[Any], by: Sequence[str], members: Sequence[StoredSeries], cut_ns: int) -> list[Span]:
    """Return from when to when the layer of each bucket was there, of all layers where buckets are not told by theirs.

    With `cut_ns`, the longest step, it is the windows of the buckets, the first and the last no longer than their layer reaches.
    """
    label = next((name for name in (LAYER, "kind") if name in by), None)
    layers = ["" if label is None else layer_of(bucket["key"].get(label) or "") for bucket in buckets]
    reach: dict[str, Span] = {}
    for (_, layer), span in reach_of_layers([members]).items():
        widen(reach, "" if label is None else layer, span)
    spans = reach
    if cut_ns:
        windows: dict[str, Span] = {}
        for layer, bucket in zip(layers, buckets, strict=True):
            first, last = (int(bucket[name]["value"]) * MS for name in ("first", "last"))
            widen(windows, layer, (first, last + cut_ns))
        spans = {layer: narrowed(span, reach.get(layer), cut_ns) for layer, span in windows.items()}
    return [spans.get(layer, (0, 0)) for layer in layers]


def _query(
    catalogue: Catalogue, question: Question, taken: Mapping[str, Sequence[str]], members: Sequence[Series]
) -> dict[str, Any]:
    """Return the query for the documents of the members: every run with its kinds, times and labels."""
    runs = []
    for record in catalogue.records:
        own = [series for series in members if series.run == record.run]
        if own:
            asked = [name for name in question.where if name in LABELS]
            named = [one_of(PATHS[name], sorted({getattr(series, name) for series in own})) for name in asked]
            times = time_filters(*range_of(record, question), record.step_ns)
            kinds = one_of("kind", sorted(taken[record.run]))
            own_run = [{"term": {"run.id": record.run}}, at_step(record.step_ns)]
            runs.append({"bool": {"filter": [*own_run, kinds, *named, *times]}})
    return {"bool": {"should": runs, "minimum_should_match": 1}}


def _table(
    buckets: Sequence[Mapping[str, Any]],
    by: Sequence[str],
    wanted: Sequence[Percentile],
    step: int,
    spans: Sequence[Span],
    *,
    in_the_middle: bool,
) -> Table:
    """Return the rows of buckets; means of reported values only where these are the middles of bins."""
    count = np.array([int(bucket["count"]["value"]) for bucket in buckets], np.int64)
    start, end = np.array(spans, np.int64).T
    if step:
        start = np.array([bucket["key"]["time"] for bucket in buckets], np.int64) * MS
        end = start + step
    columns: dict[str, Any] = {"start_ns": start, "end_ns": end}
    for label in by:
        texts = [bucket["key"].get(label) or "" for bucket in buckets]  # of a layer its kind, of which a run has one for each
        columns[label] = np.array([layer_of(text) for text in texts] if label == LAYER else texts, object)
    names = ("sum", "low", "high", "exact", "known")
    total, low, high, exact, known = (np.array([bucket[name]["value"] or 0 for bucket in buckets], float) for name in names)
    all_known = known == np.array([bucket["doc_count"] for bucket in buckets])
    total = np.where(all_known, exact, total if in_the_middle else np.nan)
    columns |= {
        "count": count,
        "rate": count / (np.maximum(end - start, 1) / NS),
        "min": low.astype(np.int64),
        "mean": total / np.maximum(count, 1),
        "max": high.astype(np.int64),
        "exact": np.zeros(len(buckets), np.bool_),
    }
    for percentile in wanted:
        place = sorted({float(asked.text) for asked in wanted}).index(float(percentile.text))
        values = np.array([bucket["p"]["values"][place]["value"] for bucket in buckets], float)
        columns[percentile.name] = np.where(percentile.carried(count), values, np.nan)
    for percentile in wanted:
        columns[f"{percentile.name}_censored"] = np.zeros(len(buckets), np.bool_)
    return Table(columns, labels=tuple(by))
