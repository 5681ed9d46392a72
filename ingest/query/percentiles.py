"""What the latency percentiles were, over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import UsageError, counted
from ingest.core.grid import INT64_MAX, WEIGHT_BITS
from ingest.core.intervals import NO_BYTES, Bool, Int, Intervals, no_exact
from ingest.core.labels import FAILED, Group
from ingest.core.quantiles import (
    Percentile,
    Ranked,
    bounds,
    censored,
    extremes,
    parse_percentiles,
    percentile_values,
    saturated,
    share_below,
)
from ingest.core.units import figure, format_duration
from ingest.core.values import Value, at_least, one_of, several, true_or_false
from ingest.query.coverage import LEAST, MOST, Cells, Rows
from ingest.query.lags import answered, events_of, mixed_rows
from ingest.query.means import check_bins, lacks_bins
from ingest.query.origin import PERCENTILES, Origin
from ingest.query.plan import settled
from ingest.query.precision import ONE_NUMBER, precision_in
from ingest.query.question import Answer, Question
from ingest.query.table import Table, concatenated, label_columns
from ingest.query.windows import Span, widened

NS, MIB = 1e9, 1 << 20
BANDWIDTH = "mib_s"
WIDENINGS = 20
CONFIDENT_SHARE = 0.5
ENTRIES = 1 << 19  # of rows that are looked at together: 100 MB


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wanted(Value):
    """The columns that are asked for beside the fixed ones: `bounds` of chance, or what is `possible`.

    That is between which values a percentile lies whatever samples are missing, and wherever in bins of several layouts they are.
    """

    percentiles: Sequence[Percentile]
    below_ns: Sequence[int] = ()
    interpolate: bool = False
    bounds: bool = False
    possible: bool = False

    def __post_init__(self) -> None:
        """Take numbers and texts for the percentiles that they are: Wanted((50, "99.9")); UsageError for what is none."""
        example = "percentiles such as 99, or (50, 99, '99.9')"
        given = several(self.percentiles, (Percentile, str, int, float, Decimal), "p", example)
        taken = [(one,) if isinstance(one, Percentile) else parse_percentiles(str(one)) for one in given]
        limits = several(self.below_ns, Integral, "below_ns", "a whole number of ns, or several")
        below = tuple(at_least(0, one, "below_ns") for one in limits)
        true_or_false(self, ("interpolate", "bounds", "possible"))
        object.__setattr__(self, "percentiles", tuple(chain.from_iterable(taken)))  # as a frozen dataclass sets its own
        object.__setattr__(self, "below_ns", below)


def percentiles(answer: Answer, wanted: Wanted) -> Table:
    """Return one row per window and group: times, labels, count, rate, min, mean, max, exact, complete, failed, p.., below_...

    Times are start_ns and end_ns. Latencies in ns, rate in samples a second of the window (of sampled events: in events, stored
    or not), `below_` as shares. A window that the data covers in part, the first or the last one, has the rate of that part.
    An answer with means without a histogram has `mib_s` behind `rate`: MiB that were moved in a second, NaN where a part of the
    row does not record them.
    A percentile of a row that holds bins of several layouts is the highest that it can be, and lies between `p.._lo` and it; a
    share is the least that it can be.
    Operations that failed count, and rank above all: a percentile or maximum that is one of them is inf, and the mean is that of
    the others. `failed` is their number; it is 0 where the question names `outcome`, and rows are of one.
    NaN where the data cannot carry a number. `complete` says that no sample is missing; where a known number is, a percentile, or
    a share, is the least that it can be, and `p.._lo`, `p.._hi` (where asked for) are the least and the largest: NaN where the
    number of missing samples is not known, inf without an upper bound. Counts, rates, means, extremes are of the samples that
    are there.
    Error bound: the table's `precision`, that of the bins that carry its percentiles (1/128 for fio's own from 128 ns on); counts
    are exact.
    """
    one_of(Answer, answer, "answer", "what origin.answer(question) gives")
    one_of(Wanted, wanted, "wanted", "Wanted((50, 99))")
    large = (part.pieces(ENTRIES) if part.indptr[-1] > ENTRIES else [(slice(None), part)] for part in answer.parts)
    return concatenated([rows_of(piece, answer, wanted) for pieces in large for _, piece in pieces])


def table_of(origin: Origin, question: Question, wanted: Wanted) -> tuple[Table, Answer]:
    """Return the table of `percentiles` that files or a store answer a question with, and the facts about it.

    Where it can be done the table is made window by window, in memory that does not grow with the data: `parts` of the facts
    then hold the whole range. Raises what `origin.answer` raises.
    """
    one_of(Wanted, wanted, "wanted", "Wanted((50, 99))")
    one_of(Question, question, "question", "Question(by=('op',))")
    question = settled(origin, question)
    direct = origin.offers.get(PERCENTILES)
    if direct is not None:
        return direct(question, wanted)
    answer = answered(origin, question)
    return percentiles(answer, wanted), answer


def rows_of(part: Intervals[Group], answer: Answer, wanted: Wanted) -> Table:
    """Return what `percentiles` does of one part of an answer, in the order that its rows have."""
    rows, ranked = part, Ranked(part)
    if not (ranked.samples > 0).all():
        rows = part.take(np.flatnonzero(ranked.samples > 0))
        ranked = Ranked(rows)
    count = ranked.samples if rows.completions is None else rows.completions
    low, high, mean, exact = extremes(rows, ranked)
    events, seconds = events_of(answer, rows, count), covered_seconds(answer, rows)
    columns: dict[str, object] = {"start_ns": rows.start_ns, "end_ns": rows.end_ns}
    columns |= label_columns(rows.table, answer.by, rows.series)
    columns |= {"count": count, "rate": events / seconds}
    if lacks_bins(answer):
        moved = (rows.exact or no_exact(len(rows))).moved
        columns[BANDWIDTH] = np.where(moved == NO_BYTES, np.nan, moved) / seconds / MIB
    columns |= {"min": low, "mean": mean, "max": high}
    mixed = mixed_rows(answer, rows)
    with_lacks = Rows(rows, answer, ranked=ranked, interpolate=wanted.interpolate)
    columns |= {"exact": exact & with_lacks.complete, "complete": with_lacks.complete, FAILED: failed_of(rows)}
    means = with_lacks.means(mean)
    columns |= _shown("mean", means, with_lacks.complete)
    for percentile in wanted.percentiles:
        values = percentile_values(rows, percentile, interpolate=wanted.interpolate, ranked=ranked, others=wanted.percentiles)
        if answer.weights is not None:
            values[mixed & ~percentile.carried(count)] = np.nan
        cells = with_lacks.cells(percentile, values)
        columns[percentile.name] = cells.value
        if wanted.possible:
            columns |= {f"{percentile.name}_lo": cells.least, f"{percentile.name}_hi": cells.most}
        columns |= _shown(percentile.name, cells, with_lacks.complete)
    columns[f"max{MOST}"] = np.where(with_lacks.complete & ~(ranked.mixed & ~exact & (saturated(rows) > 0)), high, np.inf)
    for percentile, flags in zip(wanted.percentiles, censored(rows, wanted.percentiles, ranked), strict=True):
        columns[f"{percentile.name}_censored"] = flags
    if wanted.bounds:
        highest = max(wanted.percentiles)
        columns[f"{highest.name}_lo"], columns[f"{highest.name}_hi"] = bounds(rows, highest)
    for threshold in wanted.below_ns:
        name, shares = f"below_{format_duration(threshold)}", with_lacks.shares(threshold, share_below(rows, threshold))
        columns[name] = shares.value
        if wanted.possible:
            columns |= {f"{name}_lo": shares.least, f"{name}_hi": shares.most}
        columns[f"{name}{MOST}"] = np.where(np.isnan(shares.least) & ~np.isnan(shares.most), -np.inf, shares.most)
    bound = precision_in(ranked, wanted.percentiles, interpolate=wanted.interpolate)
    return Table(columns, labels=answer.by, precision=bound)


def failed_of(rows: Intervals[Group]) -> Int:
    """Return how many operations of each row failed, where they rank above all others; of weights in flight rounded."""
    failures = rows.failures
    return failures if rows.completions is None else (failures + (1 << WEIGHT_BITS - 1)) >> WEIGHT_BITS


def _shown(name: str, cells: Cells, complete: Bool) -> dict[str, object]:
    """Return the columns that tables for people show of a value: a narrow range is one number where nothing is missing."""
    given = ~np.isnan(cells.least)
    least, most = (np.where(given, *ends) for ends in zip((cells.least, cells.most), cells.there, strict=True))
    with np.errstate(invalid="ignore"):
        narrow = (complete | ~given) & (most <= least * (1 + ONE_NUMBER))
    return {f"{name}{LEAST}": np.where(narrow, cells.value, least), f"{name}{MOST}": np.where(narrow, cells.value, most)}


def covered_seconds(answer: Answer, rows: Intervals[Group]) -> NDArray[np.float64]:
    """Return the seconds of each window within the time that its run, or all runs, have data of; all where that is not known."""
    if not answer.covered or not answer.step_ns:
        return seconds_covered(rows.start_ns, rows.end_ns, np.stack([rows.start_ns, rows.end_ns], axis=1))
    place = answer.by.index("run") if "run" in answer.by else None
    names = [None if place is None else key[place] for key in rows.table]
    return seconds_covered(rows.start_ns, rows.end_ns, spans_of(names, answer.covered)[rows.series])


def spans_of(runs: Iterable[str | None], covered: Mapping[str, Span]) -> Int:
    """Return from when to when there is data of each run, of all of them for None; any time where that is not known."""
    ever = -INT64_MAX, INT64_MAX
    every = (min(low for low, _ in covered.values()), max(high for _, high in covered.values())) if covered else ever
    known = [every if run is None else covered.get(run, ever) for run in runs]
    return np.array(known, np.int64).reshape(-1, 2)


def seconds_covered(start_ns: Int, end_ns: Int, spans: Int) -> NDArray[np.float64]:
    """Return how many seconds of each window lie in the span of its row (n x 2); all of them where none does.

    NaN for a point in time, as of a histogram that says no more than when it was printed: it has no rate.
    """
    first, last = spans.T
    low, high = np.maximum(first, start_ns), np.minimum(last, end_ns)
    widths = np.where(low < high, high - low, end_ns - start_ns)
    return np.where(widths > 1, widths, np.nan) / NS


def narrowed(answer: Answer, percentile: Percentile, accuracy: float) -> Answer:
    """Return the answer with windows widened until the percentile's order-statistic interval is narrow enough.

    Narrow enough: (hi - lo) / value is at most `accuracy` in at least half of the windows. Steps double; the widest tried
    is the whole range. A warning of the answer says where even that is not enough.
    """
    from dataclasses import replace

    if any(mixed_rows(answer, part).any() for part in answer.parts):
        raise UsageError("--accuracy needs samples of one rate: add --by op, or --where op=...")
    check_bins(answer, "--accuracy")
    step, parts = answer.step_ns, list(answer.parts)
    for _ in range(WIDENINGS if step else 0):
        narrow, rows = _narrow(parts, percentile, accuracy), sum(map(len, parts))
        if narrow >= CONFIDENT_SHARE * rows or rows <= len(parts):
            break
        step *= 2
        parts = widened(answer.parts, step)
    narrow, rows = _narrow(parts, percentile, accuracy), sum(map(len, parts))
    warnings = answer.warnings
    if narrow < CONFIDENT_SHARE * rows:
        known = f"{percentile.name} is known to {figure(100 * accuracy)} % in {narrow} of {counted(rows, 'row')}"
        warnings = (*warnings, f"--accuracy is not reached: {known}; there are too few samples")
    return replace(answer, parts=tuple(parts), step_ns=step, warnings=warnings)


def _narrow(parts: Sequence[Intervals[Group]], percentile: Percentile, accuracy: float) -> int:
    """Return how many rows are narrow enough."""
    narrow = 0
    for part in parts:
        low, high = bounds(part, percentile)
        with np.errstate(invalid="ignore"):
            narrow += int(np.count_nonzero((high - low) <= accuracy * percentile_values(part, percentile)))
    return narrow
