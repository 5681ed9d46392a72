"""What a report is made of: each run's cluster, hosts and threads, when it was worst, and the cells of its boxes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError, listed
from ingest.core.intervals import Int, Intervals, Narrow, Sum, distinct, merged
from ingest.core.labels import ALTERNATIVE, LAG, THREAD, Group
from ingest.core.layout import Mixed, common_layout, shared_edges
from ingest.core.quantiles import Percentile, Ranked, censored, extremes, parse_percentiles, percentile_values
from ingest.core.units import Instant, format_duration
from ingest.query.coverage import union
from ingest.query.heatmap import of_step
from ingest.query.lags import asked_weighed, in_events, mixed_rows
from ingest.query.means import MeansAloneError, with_bins
from ingest.query.origin import Origin
from ingest.query.question import (
    ABSOLUTE,
    SLOWEST,
    UNLIMITED,
    Answer,
    Question,
    failed_words,
    is_absolute,
    literal,
    of_succeeded,
    selected_runs,
)
from ingest.query.windows import MULTIPLES, of_places, regrouped, widened, widest

# When was it worst, and which series contributed most: the windows whose samples lie furthest above the usual of the range.


MEDIAN, MAX = parse_percentiles("50,100")
WHOLE_RANGE = 1 << 62


@dataclass(frozen=True, slots=True)
class Worst:
    """A window: its bounds, its samples, and by how many ns these lie above the percentile of the whole range, added up.

    `value_ns` is the window's own percentile, None where its samples cannot carry it, `open` says that it is a lower bound;
    `max_ns` is its p100. `makers` names each group with its part of the excess, largest first.
    """

    start_ns: int
    end_ns: int
    samples: int
    value_ns: int | None
    max_ns: int
    open: bool
    excess_ns: float
    makers: tuple[tuple[str, float], ...]


def worst_windows(answer: Answer, label: str, percentile: Percentile, most: int = 8) -> list[Worst]:
    """Return the windows of all groups together with the largest excess, largest first, then earliest; none without any.

    The excess of a window is the sum, over its samples, of what each lies above the percentile of the whole range (its median,
    where it cannot carry the percentile or nothing lies above that): 3 samples of 4 s weigh more than 10 of 80 ms. Samples
    count as what their bin reports, so it has the error bound of bins. `label` is one of the answer's labels: makers are told
    by it.
    """
    together = regrouped(answer, ())
    if not together.parts:
        return []
    (rows,) = together.parts
    (whole,) = widened(together.parts, WHOLE_RANGE)
    values, highest = percentile_values(rows, percentile), percentile_values(rows, MAX)
    count = rows.samples if rows.completions is None else rows.completions
    values[mixed_rows(together, rows) & ~percentile.carried(count)] = np.nan
    (opens,) = censored(rows, [percentile])
    tries = [float(percentile_values(whole, wanted)[0]) for wanted in (percentile, MEDIAN)]
    usual = next((value for value in tries if not np.isnan(value) and above_of(rows, value).any()), tries[-1])
    above = above_of(rows, usual)
    order = np.lexsort((rows.start_ns, -above))[:most]
    makers = regrouped(answer, (label,))
    unlike = mixed_rows(together, rows).any()
    parts = [part.in_layout(rows.layout) for part in (in_events(makers) if unlike else makers.parts)]
    return [
        Worst(
            int(rows.start_ns[row]),
            int(rows.end_ns[row]),
            int(count[row]),
            None if np.isnan(values[row]) else int(values[row]),
            int(highest[row]),
            bool(opens[row]),
            float(above[row]),
            _makers(parts, int(rows.start_ns[row]), usual),
        )
        for row in order.tolist()
        if above[row] > 0
    ]


def above_of(rows: Intervals[Group], usual_ns: float) -> NDArray[np.float64]:
    """Return of each row by how many ns its samples lie above a latency, added up; in their weights, where samples have any."""
    low, high, *_ = extremes(rows)
    reported = np.clip(rows.layout.rising[rows.bins], low[rows.row], high[rows.row])
    above = np.maximum(reported - usual_ns, 0) * rows.counts
    return np.bincount(rows.row, above, len(rows)).astype(np.float64)


def _makers(parts: list[Intervals[Group]], start_ns: int, usual_ns: float) -> tuple[tuple[str, float], ...]:
    makers: dict[str, float] = {}
    for part in parts:
        mine = np.flatnonzero(part.start_ns == start_ns)
        for row, above in zip(mine.tolist(), above_of(part.take(mine), usual_ns).tolist(), strict=True):
            name = part.table[part.series[row]][0]
            makers[name] = makers.get(name, 0.0) + above
    return tuple(sorted(((name, above) for name, above in makers.items() if above), key=lambda pair: (-pair[1], pair[0])))


# What a page must hold so that a box can be explained without a server: the samples of every label by window and latency.
#
# Of each value of each label, by op and kind, in at most 120 windows of the run and at most eight bins an octave: their edges
# are edges of the windows and bins that they are made of, so a box of such edges is counted as exactly as by `box.explained`.


MOST_CELL_WINDOWS = 120
AN_OCTAVE = 8
CELL_NAMES = ("op", "host", "volume", "job", "process", "tag")
HELD = 200_000  # entries of a label that are held before they are added up
MOST_CELLS = 1_700_000  # entries of a label that no page has room for: in a quarter of the windows, too, they are too many


@dataclass(frozen=True, slots=True)
class BoxCells:
    """The cells of a run: of each label its windows of `step_ns` under (value, op, kind), all in one layout.

    `step_ns` is 0 for one window of the whole range. `left` says of labels with too many cells for any page how many values each
    has.
    """

    step_ns: int
    labels: Mapping[str, Intervals[Group]]
    left: Mapping[str, int]


class Gathering:
    """Adds up the answers by thread of a run, as they come, to its cells."""

    def __init__(self) -> None:
        self._sums: dict[str, Sum[Group]] = {name: Sum(HELD) for name in CELL_NAMES}
        self._left: dict[str, set[str]] = {}
        self._step_ns = 0
        self._weighed = False

    def add(self, answer: Answer, step_ns: int) -> None:
        """Add an answer by labels, op and kind; its windows are widened to `step_ns`, a multiple of its step."""
        self._step_ns = step_ns
        self._weighed |= any(part.completions is not None for part in answer.parts)
        if self._weighed:
            return
        places = {name: answer.by.index(name) for name in (*CELL_NAMES, "kind")}
        for piece in (piece.in_key_order() for part in answer.parts for _, piece in part.pieces()):
            (rows,) = widened([piece.in_layout(piece.layout.coarser(AN_OCTAVE))], step_ns or WHOLE_RANGE)
            for name, total in self._sums.items():
                cells = of_places(rows, [places[name], places["op"], places["kind"]])
                if name in self._left:
                    self._left[name] |= _values_of([cells])
                    continue
                total.add(cells)
                if name != "op" and _entries(total.pending) > MOST_CELLS and _entries(total.parts()) > MOST_CELLS:
                    self._left[name] = _values_of(total.parts())
                    total.parts().clear()

    def cells(self) -> BoxCells | None:
        """Return the cells of what was added; None where I/Os count by shares, which no box has whole."""
        if self._weighed:
            return None
        parts = {name: total.parts() for name, total in self._sums.items() if name not in self._left}
        layout = common_layout(part.layout for some in parts.values() for part in some)
        if isinstance(layout, Mixed):
            bins = [part.in_layout(layout).bins for some in parts.values() for part in some]
            layout = shared_edges(layout, np.unique(np.concatenate(bins)))
        labels = {name: merged([part.in_layout(layout) for part in some]) for name, some in parts.items()}
        return BoxCells(
            self._step_ns,
            {name: rows for name, rows in labels.items() if name == "op" or len({key[0] for key in rows.table}) > 1},
            {name: len(values) for name, values in self._left.items() if len(values) > 1},
        )


def _entries(parts: Sequence[Intervals[Group]]) -> int:
    return sum(int(part.indptr[-1]) for part in parts)


def _values_of(parts: Sequence[Intervals[Group]]) -> set[str]:
    """Return the values of the first label of the keys that rows have."""
    return {part.table[code][0] for part in parts for code in distinct(part.series).tolist()}


def coarser(cells: BoxCells) -> BoxCells:
    """Return the cells in windows of twice the width."""
    labels = {name: widened([rows], 2 * cells.step_ns)[0] for name, rows in cells.labels.items()}
    return BoxCells(2 * cells.step_ns, labels, cells.left)


# What a report is made of: each run's cluster, hosts and threads, as fine as a page can hold them.
#
# A page holds bins of the cluster in at most 720 windows, bins of at most 16 hosts in at most 360, and of every thread count,
# p50, p99 and max in at most 180; of 16 threads or fewer their bins as well, in the windows of the hosts. `full` lifts all of
# it. Several runs share the windows of two.
#
# Memory: files are read once. A store is asked for hosts and for threads in slices of time where there are many series; of those
# that are too many for bins only the three bins that a page shows are kept. All of it is held narrow (`core.intervals.Narrow`),
# and looked at a piece at a time.


CLUSTER_WINDOWS, HOST_WINDOWS, THREAD_WINDOWS = 720, 360, 180
LEAST_WINDOWS = 60
MOST_HOSTS = MOST_THREADS = 16
FEW_SERIES = 64
SLICE_ROWS, SLICE_ENTRIES = 1 << 14, 1 << 22  # of hosts or threads: 10 to 20 MB as narrow
P50, P99 = parse_percentiles("50,99")


@dataclass(frozen=True, slots=True)
class Tails:
    """Answers by series in two steps, or one: each by its labels, and where any has several ops, with these together."""

    coarse: tuple[Answer, ...]
    fine: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """One run (or several added up): its answers at three scopes, each by the labels in its `by`, op and kind among them.

    `hosts` has bins of the hosts that a page can hold, made from `fine`; `tails` of all hosts where they are more, `threads`
    of every thread: with all bins where they are at most MOST_THREADS, else thinned (see `thinned`) and as `Tails` beside it.
    `notes` says what was left out or widened. `reach` is the exact range of the rows in ns, where runs are
    compared. `boxes` are the samples of every label, for boxes of time and latency; `story` is what happened in it, as JSON.
    All answers are about operations that did not fail, but `failed`: where others did, its rows are those of
    all hosts, by the labels and in the windows of `fine`, in which any failed.
    """

    run: str
    cluster: Answer
    fine: Answer
    hosts: Answer
    threads: Answer
    tails: Tails | None = None
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reach: tuple[int, int] | None = None
    thread_tails: Tails | None = None
    boxes: BoxCells | None = None
    story: Mapping[str, Any] | None = None
    failed: Answer | None = None

    @property
    def span(self) -> tuple[int, int]:
        """Return the start of the first and the end of the last window in ns."""
        return span_of([*self.cluster.parts, *(self.failed.parts if self.failed else ())])


def span_of(parts: Sequence[Intervals[Group]]) -> tuple[int, int]:
    """Return the start of the first and the end of the last row in ns."""
    return min(int(part.start_ns.min()) for part in parts), max(int(part.end_ns.max()) for part in parts)


def overviews(
    origin: Origin, runs: Sequence[str], question: Question, *, full: bool = False, without: Collection[str] = ()
) -> list[Overview]:
    """Return an overview of each selected run, in the order of their names; of all together with `merge_runs`.

    `runs` are the names that there are, `without` those that may be without latencies. InputError
    where nothing is selected.
    """
    chosen = selected_runs(runs, question)
    if question.merge_runs or len(chosen) == 1:
        only = _overview(origin, ", ".join(chosen), question, full=full, runs=len(chosen))
        if only.cluster.relative and is_absolute(question):
            raise InputError(ABSOLUTE)
        return [only]
    run_overviews: list[Overview] = []
    apart: list[str] = []
    means: list[MeansAloneError] = []
    for run in chosen:
        narrowed = question.about([run])
        try:
            overview = _overview(origin, run, narrowed, full=full, shared_by=len(chosen))
            if overview.cluster.relative and is_absolute(question):
                apart.append(run)
            else:
                run_overviews.append(overview)
        except MeansAloneError as error:
            means.append(error)
        except InputError:
            if not question.in_part and not question.where and run not in without:
                raise
    if means and not run_overviews:
        raise means[0]
    if means:
        run_overviews[0] = replace(run_overviews[0], notes=(*run_overviews[0].notes, *map(str, means)))
    if not run_overviews:
        raise InputError(ABSOLUTE if apart else "nothing matches the question in any of the runs")
    left_out = (f"{listed(apart)}: left out: --from and --to are clock times, and there is no start time",) if apart else ()
    return [replace(run_overviews[0], notes=(*left_out, *run_overviews[0].notes)), *run_overviews[1:]]


def _overview(origin: Origin, run: str, question: Question, *, full: bool, runs: int = 1, shared_by: int = 1) -> Overview:
    most = UNLIMITED if full else max(LEAST_WINDOWS, min(CLUSTER_WINDOWS, 2 * CLUSTER_WINDOWS // shared_by))
    extra = tuple(name for name in question.by if name not in ("run", "kind", "op", "host"))
    merged_runs = replace(question, merge_runs=runs > 1, windows=most, narrow=True, by=("host", "op", "kind", *extra))
    hosts = None if full or not origin.indexed else _hosts_in_slices(origin, merged_runs)
    hosts = hosts or _hosts_at_once(origin, merged_runs, full=full)
    fine, steps = hosts.fine, hosts.steps
    step = steps.wide
    if not full and fine.series > FEW_SERIES:
        step = _wider_step(steps.low, steps.high, step, max(LEAST_WINDOWS, most * THREAD_WINDOWS // CLUSTER_WINDOWS))
    boxes = Gathering()
    by_thread = replace(merged_runs, by=(*THREAD, "op", "kind"), step=step or "all", force=True)
    threads, thread_tails = _threads(origin, by_thread, fine, boxes)
    reach = span_of(origin.answer(replace(merged_runs, by=("op", "kind"), step="all")).parts) if shared_by > 1 else None
    return Overview(
        run=run,
        cluster=hosts.cluster,
        fine=fine,
        hosts=of_step(fine, steps.wide),
        threads=threads,
        tails=hosts.tails,
        extra=extra,
        notes=hosts.notes,
        reach=reach,
        thread_tails=thread_tails,
        boxes=boxes.cells(),
        failed=hosts.failed,
    )


class _Steps(NamedTuple):
    """From when to when windows of hosts are and how wide, and of their tails at first and in a whole view."""

    low: int
    high: int
    wide: int
    tails: int
    coarse: int

    @staticmethod
    def of(answer: Answer, most: int) -> _Steps:
        """Return those of an answer in at most `most` windows."""
        low, high = span_of(answer.parts)
        wide = _wider_step(low, high, answer.step_ns, most)
        if wide:
            low, high = _around(low, high, wide)
        tails = _wider_step(low, high, wide, THREAD_WINDOWS)
        return _Steps(low, high, wide, tails, _wider_step(*_around(low, high, tails), tails, LEAST_WINDOWS) if tails else 0)


def _around(low: int, high: int, step: int) -> tuple[int, int]:
    """Return a range from and to edges of windows."""
    return low // step * step, -(-high // step) * step


class _Hosts(NamedTuple):
    """What is read of hosts: all together, those whose bins are shown, and tails of all where they are more than these."""

    cluster: Answer
    fine: Answer
    steps: _Steps
    notes: tuple[str, ...]
    tails: Tails | None = None
    failed: Answer | None = None


def _hosts_at_once(origin: Origin, question: Question, *, full: bool) -> _Hosts:
    """Return what is read of hosts in one answer."""
    most = question.windows
    asked, notes = fitted(with_bins(asked_weighed(origin.answer, question)), most)
    notes = (*(text.replace(SLOWEST, "the others are what is shown here") for text in failed_words(asked.parts)), *notes)
    every, failing = of_succeeded(asked), [part.take(rows) for part in asked.parts if len(rows := np.flatnonzero(part.failures))]
    failed = replace(asked, parts=tuple(failing)) if failing else None
    cluster, fine = regrouped(every, [name for name in every.by if name != "host"]), every
    steps = _Steps.of(every, most if full else most * HOST_WINDOWS // CLUSTER_WINDOWS)
    names, tails = {key[0] for part in every.parts for key in part.table}, None
    if len(names) > MOST_HOSTS and not full:
        tails = _tails_of([_tails(of_step(every, steps.tails), steps.coarse)])
        worst = _worst_hosts(widened(every.parts, WHOLE_RANGE))
        parts = (part.where(lambda key: key[0] in worst) for part in every.parts)
        fine = replace(every, parts=tuple(part for part in parts if len(part)))
        notes += (_few_of(names),)
    return _Hosts(cluster, fine, steps, notes, tails, failed)


def _hosts_in_slices(origin: Origin, question: Question) -> _Hosts | None:
    """Return what is read of many hosts in slices of time: bins of all of them are never held together.

    None where they are few, and where layouts are several, operations failed or counts are weights: sums of slices are then not
    those of the whole.
    """
    most = question.windows
    asked = replace(question, by=tuple(name for name in question.by if name != "host"))
    cluster, notes = fitted(with_bins(asked_weighed(origin.answer, asked)), most)
    steps, (low, high) = _Steps.of(cluster, most * HOST_WINDOWS // CLUSTER_WINDOWS), span_of(cluster.parts)
    if cluster.series <= FEW_SERIES or not steps.coarse or cluster.series * (high - low) // cluster.step_ns <= SLICE_ROWS:
        return None
    asked = replace(question, step=cluster.step_ns, force=True)
    whole: Sum[Group] = Sum()
    names: set[str] = set()
    shares: list[tuple[Answer, ...]] = []
    for answer in _in_slices(origin, asked, cluster, steps.coarse):
        names |= {key[0] for part in answer.parts for key in part.table}
        if len(names) <= MOST_HOSTS or not all(_addable(part, cluster) for part in (*answer.parts, *cluster.parts)):
            return None
        shares.append(_tails(of_step(answer, steps.tails), steps.coarse))
        for part in widened(answer.parts, WHOLE_RANGE):
            whole.add(part)
    worst = ALTERNATIVE.join(map(literal, _worst_hosts(whole.parts())))
    shown = with_bins(origin.answer(replace(asked, where={**question.where, "host": worst})))
    parts = tuple(part.in_layout(cluster.parts[0].layout) for part in shown.parts)
    fine = replace(cluster, parts=parts, by=question.by, answered_from=shares[0][0].answered_from)
    return _Hosts(cluster, fine, steps, (*notes, _few_of(names)), _tails_of(shares))


def _addable(part: Intervals[Group], cluster: Answer) -> bool:
    """Return whether rows are of the one layout of the cluster, and none of them failed or has weights."""
    layout = cluster.parts[0].layout
    plain = not isinstance(layout, Mixed) and layout.timed is layout and cluster.weights is None
    return plain and part.layout == layout and part.completions is None


def _few_of(names: Collection[str]) -> str:
    return f"{len(names)} hosts: bins of the {MOST_HOSTS} with the highest p99; of the others p50, p99 and max"


def _joined(answers: Sequence[Answer]) -> Answer:
    """Return the rows of answers to one question about different windows or series."""
    kinds = {kind for answer in answers for kind in answer.kind.split(", ")}
    ways = {way for answer in answers for way in answer.answered_from.split(" and ")}
    return replace(
        answers[0],
        parts=tuple(part for answer in answers for part in answer.parts),
        kind=", ".join(sorted(kinds)),
        runs=tuple(sorted({run for answer in answers for run in answer.runs})),
        run_start_ns={run: start for answer in answers for run, start in answer.run_start_ns.items()},
        series=max(answer.series for answer in answers),
        answered_from=" and ".join(sorted(ways)),
        weights=_weights(answers),
        covered=widest(item for answer in answers for item in answer.covered.items()),
        missing=union(answer.missing for answer in answers),
    )


def _weights(answers: Sequence[Answer]) -> dict[Group, int] | None:
    """Return how many events stored ones stand for, of all groups that the answers have; None where none was sampled."""
    if all(answer.weights is None for answer in answers):
        return None
    weights: dict[Group, int] = {}
    for answer in answers:
        plain = {key: 1 for part in answer.parts for key in part.table}
        weights |= plain if answer.weights is None else answer.weights
    return weights


def _threads(origin: Origin, question: Question, hosts: Answer, boxes: Gathering) -> tuple[Answer, Tails | None]:
    """Return the answer by thread; where they are too many for bins, thinned, and the tails that the page shows.

    All of it is added to `boxes`.
    """
    low, high = span_of(hosts.parts)
    step = question.step if isinstance(question.step, int) else 0
    wider = _wider_step(low // step * step, -(-high // step) * step, step, LEAST_WINDOWS) if step else 0
    shares: list[tuple[Answer, ...]] = []
    whole: list[Answer] = []
    names: set[Group] = set()
    for answer in _in_slices(origin, question, hosts, wider):
        names |= {key[: len(THREAD)] for part in answer.parts for key in part.table}
        whole.append(answer)
        boxes.add(answer, _wider_step(low, high, step, MOST_CELL_WINDOWS))
        if len(names) > MOST_THREADS:
            shares += [_tails(kept, wider) for kept in whole]
            whole = []
    if not shares:
        return _joined(whole), None
    tails = _tails_of(shares)
    return (tails.fine or tails.coarse)[0], tails


def _in_slices(origin: Origin, question: Question, rows: Answer, wide_ns: int) -> Iterator[Answer]:
    """Yield the answer, without what failed; of many rows, and of an indexed origin, in slices of windows of `wide_ns`.

    `rows` say from when to when there are any, and of how many series. The first slice has about SLICE_ROWS, those after it
    about SLICE_ENTRIES. Weights of sampled events are those of the whole, so lags are never cut.
    """
    low, high = span_of(rows.parts)
    cut, width = high, high - low
    if origin.indexed and wide_ns and isinstance(question.step, int) and LAG not in rows.kind.split(", "):
        width = max(1, SLICE_ROWS // max(rows.series, 1) * question.step // wide_ns) * wide_ns
        cut = low // wide_ns * wide_ns + width
    first, last = question.begin, Instant(cut) if cut < high else question.end
    while True:
        whole = first is question.begin and last is question.end
        with suppress(*([] if whole else [InputError])):  # nothing in this slice
            answer = of_succeeded(with_bins(asked_weighed(origin.answer, replace(question, begin=first, end=last))))
            entries = sum(int(part.indptr[-1]) for part in answer.parts)
            width = max(1, min(8 * width, SLICE_ENTRIES * width // max(1, entries)) // wide_ns) * wide_ns if wide_ns else width
            yield answer
        if last is question.end:
            return
        cut += width
        first, last = last, Instant(cut) if cut < high else question.end


def _tails_of(shares: Sequence[tuple[Answer, ...]]) -> Tails:
    """Return the tails of all slices; with all ops together where any has several, and fine ones where the others are wider."""
    coarse, coarse_together, fine, together = (_joined(column) for column in zip(*shares, strict=True))
    alone, joined = ({key for part in tails.parts for key in part.table} for tails in (fine, together))
    several = 2 if len(alone) > len(joined) else 1
    return Tails((coarse, coarse_together)[:several], (fine, together)[:several] if fine.step_ns < coarse.step_ns else ())


def _tails(answer: Answer, wide_ns: int) -> tuple[Answer, ...]:
    """Return the answer at a step for a whole view and at its own, each by its labels and with all ops together; all thinned."""
    labels = [name for name in answer.by if name != "op"]
    place, keys = answer.by.index("op"), {key for part in answer.parts for key in part.table}
    several = len({key[:place] + key[place + 1 :] for key in keys}) < len(keys)
    tails: list[Answer] = []
    for view in (of_step(answer, wide_ns), answer):
        alone = replace(view, parts=tuple(map(thinned, view.parts)))
        together = regrouped(view if several else alone, labels)
        tails += [alone, replace(together, parts=tuple(map(thinned, together.parts))) if several else together]
    return tuple(tails)


def thinned(rows: Intervals[Group]) -> Intervals[Group]:
    """Return the rows with three bins at most: those of p50, p99 and p100, each with the counts since the one before it.

    Count, p50, p99 and max of a row are what they were; other percentiles are not, and sums of rows are not.
    """
    return Narrow.of([_thinned(piece) for _, piece in rows.pieces()] or [rows])


def _thinned(rows: Intervals[Group]) -> Intervals[Group]:
    rows = rows.take(np.flatnonzero(np.diff(rows.indptr) > 0))
    ranked, every = Ranked(rows), np.arange(len(rows))
    middle, high = (ranked.entries(every, percentile.ranks(ranked.samples)) for percentile in (P50, P99))
    last: Int = rows.indptr[1:] - 1
    kept = np.stack([middle < high, high < last, last >= 0], axis=1)
    entries = np.stack([middle, high, last], axis=1)[kept]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept.sum(axis=1))])
    counts = np.diff(ranked.total[entries + 1], prepend=0)
    return replace(rows, indptr=indptr, bins=rows.bins[entries], counts=counts)


def fitted(answer: Answer, most: int) -> tuple[Answer, tuple[str, ...]]:
    """Return the answer in at most `most` windows, and a sentence where its windows had to be widened."""
    shown = _in_windows(answer, most)
    if shown.step_ns == answer.step_ns:
        return answer, ()
    wide, narrow = format_duration(shown.step_ns), format_duration(answer.step_ns)
    return shown, (f"windows widened from {narrow} to {wide}: a report holds {most} at most (--full lifts that)",)


def _in_windows(answer: Answer, most: int) -> Answer:
    return of_step(answer, _wider_step(*span_of(answer.parts), answer.step_ns, most))


def _wider_step(low: int, high: int, step: int, most: int) -> int:
    """Return the least multiple of a step of which at most `most` windows hold a range; 0 of 0, the whole range."""
    if not step or high - low <= most * step:
        return step
    multiples = (*sorted({*MULTIPLES, 3, 4, 6, 8, 12}), -(-(high - low) // (max(1, most - 2) * step)))
    return next(n * step for n in multiples if -(-high // (n * step)) - low // (n * step) <= most)


def _worst_hosts(whole: Sequence[Intervals[Group]]) -> list[str]:
    """Return the hosts whose p99 over everything, which rows hold, is highest."""
    highest: dict[str, float] = {}
    for part in whole:
        values = percentile_values(part, P99)
        for code, value in zip(part.series.tolist(), values.tolist(), strict=True):
            host = part.table[code][0]
            highest[host] = max(highest.get(host, 0.0), value if value == value else 0.0)  # noqa: PLR0124  # NaN
    return sorted(highest, key=lambda host: (-highest[host], host))[:MOST_HOSTS]


def thread_name(labels: Group) -> str:
    """Return the text of a thread's labels (host, volume, job, process, tag): those that are known."""
    words = zip(("", "vol ", "job ", "process ", "tag "), labels, strict=True)
    return " ".join(f"{word}{label}" for word, label in words if label) or "-"
