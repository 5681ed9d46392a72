"""One run laid out for detectors: members by windows, with the excess latency of each window against what is typical.

Members are hosts with their operations; where the run has one host its volumes, and where it has one volume its jobs. Windows are
those that files and every store make of the same question, so that the same run gives the same findings wherever it is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ingest.core.caveats import sentences
from ingest.core.csr import distinct
from ingest.core.grid import MS, coarsened
from ingest.core.intervals import Bool, Int, Intervals, concatenate, merged
from ingest.core.layout import common_layout
from ingest.core.missing import Missing
from ingest.core.ranks import Ranked, extremes, parse_percentiles, percentile_values
from ingest.core.series import LAG, OFFSET, Group
from ingest.query.areas import excess_of
from ingest.query.findings.model import Float, Ground, Labels
from ingest.query.means import with_bins
from ingest.query.missing import caveats_of
from ingest.query.origin import Answering
from ingest.query.question import Answer, Question
from ingest.query.regrouped import regrouped
from ingest.query.spans import pieces, together

MOST_WINDOWS = 720
LEAST_STEP_NS = 100 * MS
HOST, OP, JOB = "host", "op", "job"
MEMBERS = (HOST, "volume", JOB)
P50, P99, P100 = parse_percentiles("50,99,100")


class NoGroundError(ValueError):
    """A run of which nothing can be said: the sentence says why."""


def grounds(origin: Answering, question: Question) -> tuple[Ground, Answer]:
    """Return the ground of the one run (or several added up) that a question selects, and the answer that it was made of.

    Raises what `origin.answer` raises; NoGroundError where windows hold no latencies that findings speak of.
    """
    asked = replace(question, windows=MOST_WINDOWS)
    extra = tuple(name for name in question.by if name not in ("run", "kind", OP, HOST))
    answer = with_bins(origin.answer(replace(asked, by=(HOST, OP, *extra))))
    for label in MEMBERS[1:]:
        if label in extra or len(members_of(answer)) > 1:
            break
        if label in answer.alike and label != JOB and JOB not in extra:
            continue  # a volume: there is one, so its jobs are asked for at once
        answer = with_bins(origin.answer(replace(asked, by=(HOST, label, OP, *extra))))
    return ground_of(answer), answer


def members_of(answer: Answer) -> set[Group]:
    """Return the labels without the operation of all that an answer holds."""
    places = [place for place, name in enumerate(answer.by) if name not in (OP, "kind")]
    return {
        tuple(part.table[code][place] for place in places) for part in answer.parts for code in distinct(part.series).tolist()
    }


def ground_of(answer: Answer) -> Ground:
    """Return the ground of an answer about one run, by its labels without the kind; latencies are exact for its bins.

    NoGroundError for sampled events and offsets, for an answer without bins, and for one window over the whole range.
    """
    kinds = {kind for kind in answer.kind.split(", ") if kind}
    if kinds & {LAG, OFFSET}:
        raise NoGroundError("lags of sampled events and offsets are not judged: findings are about latencies of I/O")
    parts = [part for part in answer.parts if len(part) and part.layout.has_bins]
    if not parts or not answer.step_ns:
        raise NoGroundError("no windows of latencies with a histogram")
    answer = regrouped(replace(answer, parts=tuple(parts)), [name for name in answer.by if name != "kind"])
    layout = common_layout(part.layout for part in answer.parts)
    rows = concatenate([part.in_layout(layout) for part in answer.parts])
    step = answer.step_ns
    if step < LEAST_STEP_NS:
        step *= -(-LEAST_STEP_NS // step)
        rows = coarsened(rows, step)
    rows = merged([rows])
    low, high = int(rows.start_ns.min()), int(rows.end_ns.max())
    start = np.arange(low, high, step)
    keys = sorted({rows.table[code] for code in distinct(rows.series).tolist()})
    code_of = {key: code for code, key in enumerate(keys)}
    group = np.array([code_of.get(key, -1) for key in rows.table], np.int64)[rows.series]
    window = (rows.start_ns - low) // step
    samples, p50, p99, top, mean = _figures(rows)
    first, last = _covered(answer, low, high)
    whole = (start >= first) & (start + step <= last)
    if not whole.any():
        whole = np.ones(len(start), np.bool_)
    shape = len(keys), len(start)
    reference = reference_of(rows, group, p99, whole[window], len(keys))
    return Ground(
        run=", ".join(answer.runs),
        groups=tuple(tuple(zip(answer.by, key, strict=True)) for key in keys),
        start_ns=start,
        step_ns=step,
        zero_ns=answer.start_of,
        relative=answer.relative,
        samples=_spread(shape, group, window, samples, 0.0).astype(np.int64),
        p50_ns=_spread(shape, group, window, p50),
        p99_ns=_spread(shape, group, window, p99),
        top_ns=_spread(shape, group, window, top),
        mean_ns=_spread(shape, group, window, mean),
        excess_ns=_spread(shape, group, window, excess_of(rows, group, reference), 0.0),
        whole=whole,
        rows=rows,
        group_of=group,
        window_of=window,
        occupied=_occupied(rows),
        reference=reference,
        warnings=answer.warnings,
        lacks=sentences(caveats_of(answer.missing)),
        missing=tuple(lack.entry for lack in answer.missing),
        partly=any(lack.entry.span[0] < high - step for lack in answer.missing),
        covered_ns=(first, last),
    )


def _figures(rows: Intervals[Group]) -> tuple[Float, Float, Float, Float, Float]:
    """Return of each row how many samples it has, and its p50, p99, maximum and mean in ns."""
    samples, p50, p99, top, mean = np.empty((5, len(rows)))
    for place, piece in pieces(rows):
        ranked, every = Ranked(piece), np.arange(len(piece))
        samples[place] = ranked.samples if piece.completions is None else piece.completions
        p50[place], p99[place] = (ranked.values(every, percentile.ranks(ranked.samples)) for percentile in (P50, P99))
        top[place] = percentile_values(piece, P100, ranked=ranked)
        mean[place] = extremes(piece, ranked)[2]
    return samples, p50, p99, top, mean


def _occupied(rows: Intervals[Group]) -> Int:
    """Return the bins that hold samples of any row."""
    held = np.zeros(rows.layout.bins, np.bool_)
    held[rows.bins] = True
    return np.flatnonzero(held)


def reference_of(rows: Intervals[Group], group: Int, p99_ns: Float, usable: Bool, groups: int) -> Intervals[Group]:
    """Return a row for each group, in their order: its windows whose p99 is at or below the median of its p99s, merged."""
    parts = []
    for code in range(groups):
        mine = np.flatnonzero((group == code) & usable)
        if not len(mine):
            mine = np.flatnonzero(group == code)
        parts.append(merged([together(rows.take(mine[p99_ns[mine] <= np.median(p99_ns[mine])]))]))
    return concatenate(parts)


def excess_against(ground: Ground, group: int, others: Sequence[int]) -> Float:
    """Return the excess in ns (T) of the windows of a group against the merged references of other groups: its peers."""
    chosen = np.flatnonzero(ground.group_of == group)
    peers = ground.reference.take(np.array(list(others), np.int64))
    alike = merged([peers.keyed((("",),), np.zeros(len(peers), np.int64))])
    out = np.zeros(len(ground.start_ns))
    rows = ground.rows.take(chosen)
    out[ground.window_of[chosen]] = excess_of(rows, np.zeros(len(rows), np.int64), alike)
    return out


def peers_of(ground: Ground, group: int) -> list[int]:
    """Return the groups that do the same as a group on another host (or volume, or job): its peers."""
    mine = dict(ground.groups[group])
    alike = {name: value for name, value in mine.items() if name not in MEMBERS}
    return [
        code
        for code, labels in enumerate(ground.groups)
        if code != group and {name: value for name, value in labels if name not in MEMBERS} == alike
    ]


def most_times(ground: Ground, codes: Collection[int]) -> float:
    """Return how many times as many completions some groups may have had as are known, with what is missing of them; 1 or more.

    What is missing in unknown number counts as what they do in so much time: infinite where that is all of the run.
    """
    mine = _missing_of(ground, codes)
    if not mine:
        return 1.0
    known = float(ground.samples[list(codes)].sum())
    low, high = int(ground.start_ns[0]), int(ground.start_ns[-1]) + ground.step_ns
    dark = _union_ns((max(begin, low), min(end, high)) for begin, end in (entry.span for entry in mine if entry.count is None))
    counted = sum(entry.count or 0 for entry in mine)
    return (known + counted) / known * (high - low) / (high - low - dark) if known and dark < high - low else math.inf


def is_lost(ground: Ground, codes: Collection[int], start_ns: int, end_ns: int, share: float = 0.5) -> bool:
    """Return whether samples of groups are missing in that share of a stretch: nobody knows what they did there.

    What is missing of most of the run says nothing of a stretch of it.
    """
    local = (int(ground.start_ns[-1]) + ground.step_ns - int(ground.start_ns[0])) // 2
    spans = (entry.span for entry in _missing_of(ground, codes))
    inside = ((max(begin, start_ns), min(end, end_ns)) for begin, end in spans if end - begin <= local)
    return _union_ns(inside) >= share * (end_ns - start_ns)


def _union_ns(spans: Iterable[tuple[int, int]]) -> int:
    total, last = 0, -(1 << 62)
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, last))
        last = max(last, end)
    return total


def _missing_of(ground: Ground, codes: Collection[int]) -> list[Missing]:
    return [entry for entry in ground.missing if any(_may_be_of(entry, ground.groups[code]) for code in codes)]


def _may_be_of(entry: Missing, labels: Labels) -> bool:
    return all(entry.labels.get(name, value) == value for name, value in labels)


def apart(ground: Ground, first_ns: float, second_ns: float) -> bool:
    """Return whether two latencies are known to differ: a whole bin lies between theirs (in neighbours they may be alike)."""
    if math.isnan(first_ns + second_ns):
        return False
    first, second = ground.rows.layout.index(np.array([first_ns, second_ns], np.int64)).tolist()
    return bool(abs(first - second) > 1)


def covered_groups(ground: Ground, who: Labels) -> frozenset[int]:
    """Return the groups that labels describe."""
    return frozenset(code for code, labels in enumerate(ground.groups) if set(who) <= set(labels))


def member(labels: Labels) -> Labels:
    """Return the labels of a group without its operation: the host, volume or job that does it."""
    return tuple((name, value) for name, value in labels if name != OP)


def _covered(answer: Answer, low: int, high: int) -> tuple[int, int]:
    """Return from when to when there is data; the whole windows where that is not known."""
    spans = [span for run, span in answer.covered.items() if run in answer.runs]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else (low, high)


def _spread(shape: tuple[int, int], group: Int, window: Int, values: Float, empty: float = np.nan) -> Float:
    out = np.full(shape, empty)
    out[group, window] = values
    return out
