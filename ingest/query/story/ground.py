"""One run laid out for detectors: members by windows, with the excess latency of each, and the nouns of findings.

The nouns of findings: `Ground` is what detectors look at, `Claim` what one of them says, `Finding` and `Story` what is shown.

    answer by host, op --> Ground --> detectors: Ground -> list[Claim] --> each window's excess to one claim --> Story

Definitions, thresholds and measured error rates: docs/explanation/findings.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ingest.core import kernel
from ingest.core.coverage import Missing, sentences
from ingest.core.grid import MS, SECOND, coarsened
from ingest.core.intervals import LARGE, Bool, Int, Intervals, Narrow, Sum, distinct, median, merged
from ingest.core.labels import LAG, OFFSET, Group
from ingest.core.layout import Float, Mixed, common_layout
from ingest.core.pool import give_back_freed_memory
from ingest.core.quantiles import Ranked, extremes, parse_percentiles, percentile_values
from ingest.query.coverage import caveats_of
from ingest.query.excess import excess_of
from ingest.query.means import with_bins
from ingest.query.origin import Answering
from ingest.query.question import Answer, Question, Steady
from ingest.query.windows import regrouped, with_one_span

Labels = tuple[tuple[str, str], ...]
Made = TypeVar("Made")
Key = TypeVar("Key")

STALL, SLOW_MEMBER, THROTTLED, EPISODE, STEP, DRIFT = "stall", "slow member", "throttled", "episode", "step", "drift"
RHYTHM, MODES, IMBALANCE, OMISSION, EDGE = "rhythm", "modes", "imbalance", "omission", "edge"
FAILURES = "failures"
KINDS = (STALL, SLOW_MEMBER, THROTTLED, EPISODE, STEP, DRIFT, RHYTHM, MODES, IMBALANCE, OMISSION, EDGE, FAILURES)
MEMBER = ("host", "volume", "job", "process")  # what tells the members of a layer apart


class Outcomes(NamedTuple):
    """How many operations failed, of how many, by group and window (both G x T); groups may be there that only failed."""

    groups: tuple[Labels, ...]
    failed: Int
    every: Int


@dataclass(frozen=True, slots=True)
class Ground:
    """One run in windows of equal width: G groups (members: host, op and what else was asked) by T windows, dense.

    `groups` are labels of each group; `start_ns` (T) the starts of windows, `step_ns` their width. Of each group and window:
    `samples`, `p50_ns`, `p99_ns`, `top_ns` (the largest value) and `mean_ns`, NaN where nothing completed; `excess_ns`, the
    one-sided area between its quantile function and the reference's times its samples, in ns summed over samples. `whole` are
    windows that lie wholly within the data of the run (the first and the last are parts). `reference` has a row for each group:
    its windows at or below their median p99, merged. `rows` are the windows themselves, `group_of` and `window_of` say where
    each row of it belongs, `row_at` (G, T) which row is there, -1 for none. `warnings` are those of the answer it was made of,
    `missing` are the samples that it lacks, `lacks` says so; `partly` that this is more than what came after the last row of a
    log. `covered_ns` is from when to when it has data. `outcomes` are there where operations failed: all else is about those that
    did not. `finer` is the same run in the same windows by volume, job and tag,
    too, where these vary.
    """

    run: str
    groups: tuple[Labels, ...]
    start_ns: Int
    step_ns: int
    zero_ns: int
    relative: bool
    samples: Int
    p50_ns: Float
    p99_ns: Float
    top_ns: Float
    mean_ns: Float
    excess_ns: Float
    whole: Bool
    rows: Intervals[Group]
    group_of: Int
    window_of: Int
    row_at: Int
    occupied: Int
    reference: Intervals[Group]
    warnings: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    partly: bool = False
    covered_ns: tuple[int, int] = (-(1 << 62), 1 << 62)
    finer: Ground | None = None
    outcomes: Outcomes | None = None
    _made: dict[Callable[[Ground], Any], Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many groups and windows there are."""
        return len(self.groups), len(self.start_ns)

    def once(self, of: Callable[[Ground], Made]) -> Made:
        """Return what a function makes of this ground, made when it is first asked for."""
        if of not in self._made:
            self._made[of] = of(self)
        made: Made = self._made[of]
        return made

    def cells(self, groups: Int | Sequence[int], windows: Int | Bool | slice) -> Bool:
        """Return which cells (G, T) are those of some groups in some windows."""
        chosen = np.zeros(self.shape, np.bool_)
        for group in groups:
            chosen[group, windows] = True
        return chosen

    def claimed(self, groups: Int | Sequence[int], windows: Int | Bool | slice) -> ClaimedCells:
        """Return the cells of some groups in some windows as a claim has them."""
        codes = np.array(sorted(groups), np.int64)
        own = np.zeros((len(codes), self.shape[1]), np.bool_)
        own[:, windows] = True
        return ClaimedCells(self.shape, codes, own)

    def near(self, start_ns: int, end_ns: int) -> Bool:
        """Return the windows (T) of a time and those beside it: rows of logs at its ends lie in them, too."""
        near: Bool = (self.start_ns + 2 * self.step_ns > start_ns) & (self.start_ns - self.step_ns < end_ns)
        return near

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return from when to when windows are, the last of them included, in ns."""
        return int(self.start_ns[first]), int(self.start_ns[last]) + self.step_ns

    def by_member(self) -> dict[Labels, list[int]]:
        """Return the groups of each member, in order: it does all of its operations."""
        members: dict[Labels, list[int]] = {who: [] for who in sorted(map(member, self.groups))}
        for code, labels in enumerate(self.groups):
            members[member(labels)].append(code)
        return members

    def rows_of(self, groups: Int | Sequence[int], windows: Int | Bool | slice) -> Int:
        """Return which rows are those of some groups in some windows (of each its own, if these are (groups, T)), rising."""
        own = self.row_at[groups]
        found: Int = np.sort(own[windows] if isinstance(windows, np.ndarray) and windows.ndim > 1 else own[:, windows], axis=None)
        return found[np.searchsorted(found, 0) :]

    def counts(self, groups: Int, windows: Int | Bool) -> Int:
        """Return the counts by bin (all bins of the layout) of some groups in some windows together."""
        of_row = np.full(len(self.rows), -1)
        of_row[self.rows_of(groups, windows)] = 0
        total: Int = by_bin(self.rows, np.arange(self.rows.layout.bins), of_row, 1)[0]
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedCells:
    """Some of the cells (G, T) of a ground, held as the rows `own` (n, T) of the `groups` (n) that have any.

    Where members are thousands, so may be claims, most of which are about one of them.
    """

    shape: tuple[int, int]
    groups: Int
    own: Bool

    @staticmethod
    def of(dense: Bool) -> ClaimedCells:
        """Return those that are true of a matrix (G, T)."""
        groups = np.flatnonzero(dense.any(axis=1))
        return ClaimedCells((dense.shape[0], dense.shape[1]), groups, dense[groups])

    @property
    def dense(self) -> Bool:
        """Return which cells these are, (G, T)."""
        dense = np.zeros(self.shape, np.bool_)
        dense[self.groups] = self.own
        return dense


@dataclass(frozen=True, slots=True)
class Claim:
    """What a detector says: a kind, who, when, how bad; `cells` are those whose excess it explains.

    `value_ns` is what was reached, `times` that against what is typical. `certainty` orders claims of one kind: excess of a
    window goes to the first claim in the order of `PRECEDENCE`, then of certainty. `latency_ns` is where in the heat map it
    lies. `details` holds what the sentence of its kind names further (see words.py).
    """

    kind: str
    who: Labels
    start_ns: int
    end_ns: int
    cells: ClaimedCells
    value_ns: float | None = None
    times: float | None = None
    samples: int = 0
    missing: float = 0.0
    certainty: float = 0.0
    latency_ns: tuple[int, int] | None = None
    against: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Below:
    """What is seen of a finding in a layer below the client: a verdict (seen, not seen, cannot tell), in words in `text`.

    `members` (host, volume, job, process) are those named. `least` and `most` are bounds, by the layer's bins, of the share of
    the clients' excess that these (or where none is named, all) took longer in the same windows; both at most 1.
    """

    layer: str
    verdict: str
    members: tuple[Group, ...]
    least: float
    most: float
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        who = [{name: label for name, label in zip(MEMBER, member, strict=True) if label} for member in self.members]
        shares = {"least": round(self.least, 6), "most": round(self.most, 6)}
        return {"layer": self.layer, "verdict": self.verdict, "who": who, **shares, "text": self.text}

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Below:
        """Return what `as_dict` gave."""
        members = tuple(tuple(str(labels.get(name, "")) for name in MEMBER) for labels in stored["who"])
        return Below(stored["layer"], stored["verdict"], members, stored["least"], stored["most"], stored["text"])


@dataclass(frozen=True, slots=True)
class Finding:
    """What happened: a claim with its share of all excess latency, and its words.

    `missing` are completions that did not happen, an estimate (rate of the reference times the gap, less a burst right after it),
    `missing_share` that against those of the whole run. `consistent` says what it is consistent with, `against` what speaks
    against it, `command` shows its numbers. `below` says of each layer below the client whether it is seen there. `tail` is the
    end of `text`, about its share. `members` are those that it is about where `who` describes more.
    """

    kind: str
    run: str
    who: Labels
    start_ns: int
    end_ns: int
    text: str
    value: str
    times: float | None
    samples: int
    excess_ns: float
    share: float
    missing: float
    missing_share: float
    latency_ns: tuple[int, int] | None
    consistent: str
    against: str
    command: str
    below: tuple[Below, ...] = ()
    tail: str = ""
    members: tuple[Labels, ...] = ()

    def as_dict(self, zero_ns: int) -> dict[str, Any]:
        """Return it as JSON has it; times are seconds from `zero_ns`, the start of the run."""
        return {
            "kind": self.kind,
            "run": self.run,
            "text": self.text,
            "tail": self.tail,
            "who": dict(self.who),
            "from_s": round((self.start_ns - zero_ns) / SECOND, 6),
            "to_s": round((self.end_ns - zero_ns) / SECOND, 6),
            "latency_ns": None if self.latency_ns is None else list(self.latency_ns),
            "value": self.value,
            "times": self.times,
            "samples": self.samples,
            "excess_ns": round(self.excess_ns),
            "share": round(self.share, 6),
            "missing": round(self.missing),
            "missing_share": round(self.missing_share, 6),
            "consistent": self.consistent,
            "against": self.against,
            "command": self.command,
            **({"members": [dict(each) for each in self.members]} if self.members else {}),
            **({"below": [each.as_dict() for each in self.below]} if self.below else {}),
        }


@dataclass(frozen=True, slots=True)
class Story:
    """What happened in a run: findings, those that account for most first; `unexplained` is the share of excess of none of them.

    Shares of findings and `unexplained` add up to 1 where there is any excess. `nothing` is the sentence where nothing was
    found, `reference` says what is taken for typical, `lacks` what of the run is not known: no finding can be about that.
    `steady` is from when on the run is steady; None where it is of a part of it alone.
    """

    run: str
    findings: Sequence[Finding]
    excess_ns: float
    unexplained: float
    nothing: str
    reference: str
    zero_ns: int
    step_ns: int
    relative: bool
    caveats: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    steady: Steady | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "run": self.run,
            "findings": [finding.as_dict(self.zero_ns) for finding in self.findings],
            "excess_ns": round(self.excess_ns),
            "unexplained": round(self.unexplained, 6),
            "nothing": self.nothing,
            "reference": self.reference,
            "window_s": self.step_ns / SECOND,
            "caveats": list(self.caveats),
            "lacks": list(self.lacks),
            "steady": self.steady and self._steady(self.steady),
        }

    def _steady(self, steady: Steady) -> dict[str, Any]:
        since = 0.0 if steady.start_ns is None else round((steady.start_ns - self.zero_ns) / SECOND, 6)
        return {"from_s": since, "text": steady.tail or steady.why}


# One run laid out for detectors: members by windows, with the excess latency of each window against what is typical.
#
# Members are hosts with their operations; where the run has one host its volumes, and where it has one volume its jobs. Windows
# are those that files and every store make of the same question, so that the same run gives the same findings wherever it is
# kept.


MOST_WINDOWS = 720
MOST_CELLS = 1 << 18  # windows of all groups together: about 250 MB
LEAST_STEP_NS = 100 * MS
ENOUGH = 5.0  # samples that a group does usually: that it does none then is no chance
LOCAL = 0.9  # of a run: what is missing of more of it says nothing of a stretch
HOST, OP, JOB = "host", "op", "job"
GROUPS, THOSE = "groups", "those"  # of the details of a claim
MEMBERS = (HOST, "volume", JOB)
FINER = ("volume", JOB, "tag")  # labels that tell parts of members apart
MOST_SERIES = 400  # of which it is asked whether they have such parts
MOST_ENTRIES = 1 << 24  # bins of all windows of such parts together: 256 MB
P50, P99, P100 = parse_percentiles("50,99,100")


class NoGroundError(ValueError):
    """A run of which nothing can be said: the sentence says why."""


def grounds(origin: Answering, question: Question) -> tuple[Ground, Sequence[str]]:
    """Return the ground of the one run (or several added up) that a question selects, and the layers that it has.

    Raises what `origin.answer` raises; NoGroundError where windows hold no latencies that findings speak of.
    """
    asked = for_findings(question)
    extra = tuple(name for name in question.by if name not in ("run", "kind", OP, HOST))
    answer = in_one_part(with_bins(origin.answer(replace(asked, by=(HOST, OP, *extra)))))
    for label in MEMBERS[1:]:
        if label in extra or len(members_of(answer)) > 1:
            break
        if label in answer.alike and label != JOB and JOB not in extra:
            continue  # a volume: there is one, so its jobs are asked for at once
        answer = in_one_part(with_bins(origin.answer(replace(asked, by=(HOST, label, OP, *extra)))))
    return with_finer(origin, question, answer), answer.layers


def for_findings(question: Question) -> Question:
    """Return a question in the windows that findings are made of."""
    return replace(question, windows=MOST_WINDOWS, cells=MOST_CELLS, narrow=True)


def with_finer(origin: Answering, question: Question, answer: Answer) -> Ground:
    """Return the ground of an answer, with that by the labels of FINER that vary and it has not, unless that would be large."""
    ground = ground_of(answer)
    names = [name for name in FINER if name not in answer.by and name not in answer.alike]
    entries = int(ground.rows.indptr[-1]) * answer.series // len(ground.groups)  # a part has at most the bins of its member
    if not names or answer.series > MOST_SERIES or entries > MOST_ENTRIES:
        return ground
    labels = tuple(name for name in answer.by if name not in ("kind", OP))
    # In the same windows.
    asked = replace(question, step=ground.step_ns, force=True, by=(*labels, *names, OP), narrow=True)
    finer = ground_of(in_one_part(with_bins(origin.answer(asked))))
    more = len(finer.groups) > len(ground.groups) and np.array_equal(finer.start_ns, ground.start_ns)
    return replace(ground, finer=finer) if more else ground


def in_one_part(answer: Answer) -> Answer:
    """Return an answer without the kind, the rows of each layout in one part: while a ground is made of it there is no other."""
    answer = regrouped(answer, [name for name in answer.by if name != "kind"])
    layouts = dict.fromkeys(part.layout for part in answer.parts)
    parts = [[part for part in answer.parts if part.layout == layout] for layout in layouts]
    answer = replace(answer, parts=())
    return replace(answer, parts=tuple(Narrow.of(own) for own in parts))


def members_of(answer: Answer) -> set[Group]:
    """Return the labels without the operation of all that an answer holds."""
    places = [place for place, name in enumerate(answer.by) if name not in (OP, "kind")]
    return {
        tuple(part.table[code][place] for place in places) for part in answer.parts for code in distinct(part.series).tolist()
    }


def ground_of(answer: Answer) -> Ground:
    """Return the ground of an answer about one run, by its labels without the kind; latencies are exact for its bins.

    NoGroundError for sampled events, offsets and weights, for an answer without bins, and for one window over the whole range.
    """
    kinds = {kind for kind in answer.kind.split(", ") if kind}
    if kinds & {LAG, OFFSET}:
        raise NoGroundError("lags of sampled events and offsets are not judged: findings are about latencies of I/O")
    answer = replace(answer, parts=tuple(part for part in answer.parts if len(part) and part.layout.has_bins))
    if any(part.completions is not None for part in answer.parts):
        raise NoGroundError("its counts are weights, shares of operations: findings are about operations that completed")
    if not answer.parts or not answer.step_ns:
        raise NoGroundError("no windows of latencies with a histogram")
    answer = regrouped(answer, [name for name in answer.by if name != "kind"]) if "kind" in answer.by else answer
    step = answer.step_ns * max(1, -(-LEAST_STEP_NS // answer.step_ns))
    layout = common_layout(part.layout for part in answer.parts)
    parts = answer.parts
    if step > answer.step_ns or any(part.layout != layout for part in parts):
        together: Sum[Group] = Sum()
        for part in parts:
            together.add(coarsened(part.in_layout(layout), step))
        parts = tuple(together.parts())
        del together
    rows: Intervals[Group] = Narrow.of([*parts])
    del parts
    answer = replace(answer, parts=())
    if rows.indptr[-1] >= LARGE:
        give_back_freed_memory()  # while they were read they took several times as much
    low, high = int(rows.start_ns.min()), int(rows.end_ns.max())
    start = np.arange(low, high, step)
    outcomes, rows = _outcomes_of(rows, answer.by, start, step), rows.succeeded()
    if not len(rows):
        raise NoGroundError("all operations failed")
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
    occupied = np.flatnonzero(sum(np.bincount(part.bins, minlength=rows.layout.bins) for _, part in rows.pieces()))
    excess, references = np.zeros(len(rows)), list[Intervals[Group]]()
    for own, reference in references_of(rows, group, p99, whole[window], occupied):
        excess += excess_of(rows, own, reference)
        references.append(Narrow.of([reference]))
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
        excess_ns=_spread(shape, group, window, excess, 0.0),
        whole=whole,
        rows=rows,
        group_of=group,
        window_of=window,
        row_at=_spread(shape, group, window, np.arange(len(rows), dtype=np.float64), -1).astype(np.int64),
        occupied=occupied,
        reference=Narrow.of(references),
        warnings=answer.warnings,
        lacks=sentences(caveats_of(answer.missing)),
        missing=tuple(lack.entry for lack in answer.missing),
        partly=any(lack.entry.span[0] < high - step for lack in answer.missing),
        covered_ns=(first, last),
        outcomes=outcomes,
    )


def _outcomes_of(rows: Intervals[Group], by: Sequence[str], start_ns: Int, step_ns: int) -> Outcomes | None:
    """Return how many operations failed by group and window, None where none did."""
    if not rows.failures.any():
        return None
    keys = sorted(set(rows.table))  # an answer has them as they were read
    code_of = {key: code for code, key in enumerate(keys)}
    group = np.array([code_of[key] for key in rows.table], np.int64)[rows.series]
    cells = group, (rows.start_ns - start_ns[0]) // step_ns
    failed, every = np.zeros((2, len(keys), len(start_ns)), np.int64)
    np.add.at(failed, cells, rows.failures)
    np.add.at(every, cells, rows.samples)
    return Outcomes(tuple(tuple(zip(by, key, strict=True)) for key in keys), failed, every)


def _figures(rows: Intervals[Group]) -> tuple[Float, Float, Float, Float, Float]:
    """Return of each row how many samples it has, and its p50, p99, maximum and mean in ns."""
    samples, p50, p99, top, mean = np.empty((5, len(rows)))
    held = kernel.rank_rows is not None and not isinstance(rows.layout.timed, Mixed)  # where they lie, in few bytes
    for place, piece in [(slice(None), rows)] if held else rows.pieces():
        ranked, every = Ranked(piece), np.arange(len(piece))
        samples[place] = ranked.samples
        p50[place], p99[place] = (ranked.values(every, percentile.ranks(ranked.samples)) for percentile in (P50, P99))
        top[place] = percentile_values(piece, P100, ranked=ranked)
        mean[place] = extremes(piece, ranked)[2]
    return samples, p50, p99, top, mean


def references_of(
    rows: Intervals[Group], group: Int, p99_ns: Float, usable: Bool, occupied: Int
) -> Iterator[tuple[Int, Intervals[Group]]]:
    """Yield a row for each group, in their order: its windows whose p99 is at or below the median of its p99s, merged.

    They come for some groups after others, with which of them each row is of: below 0, or beyond them, of none.
    """
    of_row, groups = np.full(len(rows), -1), int(group.max()) + 1
    order = np.argsort(group, kind="stable")
    for own in np.split(order, np.searchsorted(group[order], np.arange(1, groups))):
        mine = own[usable[own]] if usable[own].any() else own
        kept = mine[p99_ns[mine] <= median(p99_ns[mine])]
        of_row[kept] = group[kept]
    held = max(1, MOST_COUNTS // len(occupied))
    for first in range(0, groups, held):
        some = min(held, groups - first)
        counts = by_bin(rows, occupied, np.where(of_row < first + some, of_row - first, -1), some)
        (code, place), zero = np.nonzero(counts), np.zeros(some, np.int64)
        indptr = np.searchsorted(code, np.arange(some + 1))
        yield group - first, Intervals(rows.layout, (("",),), zero, zero, zero, indptr, occupied[place], counts[code, place])


def by_bin(rows: Intervals[Group], occupied: Int, of_row: Int, codes: int) -> Int:
    """Return the counts by occupied bin of so many codes, (codes, bins): `of_row` has that of each row, -1 for none.

    Quickest where the rows of a group, in time order, have codes that are near each other. Exact below 2^53.
    """
    width = len(occupied)
    place = np.zeros(rows.layout.bins, np.int64)
    place[occupied] = np.arange(width)
    total = np.zeros(codes * width, np.int64)
    if kernel.place_rows is not None:
        kept = np.flatnonzero(of_row >= 0)
        chosen = *kernel.words(rows.indptr, kept), *kernel.narrow(*rows.held)
        kernel.place_rows(*chosen, *kernel.words(of_row[kept], place), width, total)
        return total.reshape(codes, width)
    for piece, every in rows.pieces():
        kept = np.flatnonzero(of_row[piece] >= 0)
        part = every.take(kept)
        if not len(part.bins):
            continue
        cell = np.repeat(of_row[piece][kept] * width, np.diff(part.indptr))
        cell += place[part.bins]
        low = int(cell.min())
        sums = np.bincount(cell - low, part.counts).astype(np.int64)
        total[low : low + len(sums)] += sums
    return total.reshape(codes, width)


def excess_against(ground: Ground, group: int, others: Sequence[int]) -> Float:
    """Return the excess in ns (T) of the windows of a group against the merged references of other groups: its peers."""
    chosen = ground.rows_of([group], slice(None))
    alike = as_one(ground.reference.take(np.array(list(others), np.int64)))
    out = np.zeros(len(ground.start_ns))
    out[ground.window_of[chosen]] = excess_of(ground.rows.take(chosen), np.zeros(len(chosen), np.int64), alike)
    return out


def as_one(rows: Intervals[Group]) -> Intervals[Group]:
    """Return all rows added up, whatever group and window they are of."""
    return merged([with_one_span(rows.keyed((("",),), np.zeros(len(rows), np.int64)))])


def peers_of(ground: Ground, group: int) -> list[int]:
    """Return the groups that do the same as a group on another host (or volume, or job): its peers."""
    return [code for code in doing_the_same(ground)[group].tolist() if code != group]


def doing_the_same(ground: Ground) -> list[Int]:
    """Return of each group the groups that do the same, itself among them: one array for all of these."""
    return ground.once(_doing_the_same)


def _doing_the_same(ground: Ground) -> list[Int]:
    alike: dict[Labels, list[int]] = {}
    work = [tuple((name, value) for name, value in labels if name not in MEMBERS) for labels in ground.groups]
    for code, does in enumerate(work):
        alike.setdefault(does, []).append(code)
    codes = {does: np.array(some) for does, some in alike.items()}
    return [codes[does] for does in work]


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
    spans = (entry.span for entry in _missing_of(ground, codes) if _says_when(ground, entry))
    inside = ((max(begin, start_ns), min(end, end_ns)) for begin, end in spans)
    return _union_ns(inside) >= share * (end_ns - start_ns)


def without_data(ground: Ground, codes: Collection[int], start_ns: int, end_ns: int) -> frozenset[int]:
    """Return of some groups those of which there is no data for half of a stretch, in which they would have done something.

    Before their first and after their last window, or where samples are missing: they are not slow then, nor idle. An operation
    that completes later says of the time in which it was under way.
    """
    groups, (dark, rate) = np.array(sorted(codes), np.int64), ground.once(_dark)
    low, high = int(start_ns - ground.start_ns[0]) // ground.step_ns, -(int(ground.start_ns[0] - end_ns) // ground.step_ns)
    inside = dark[groups, max(low, 0) : max(high, low + 1, 1)]
    lacks = (2 * inside.sum(axis=1) >= inside.shape[1]) & (rate[groups] * inside.sum(axis=1) >= ENOUGH)
    return frozenset(groups[lacks].tolist())


def _dark(ground: Ground) -> tuple[Bool, Float]:
    """Return in which windows (G, T) it is not known what groups did, and how much they do in a window (G)."""
    filled, at = ground.samples > 0, np.arange(ground.shape[1])
    first, last = filled.argmax(axis=1)[:, None], ground.shape[1] - 1 - filled[:, ::-1].argmax(axis=1)[:, None]
    began = np.where(filled, at - np.nan_to_num(ground.top_ns) // ground.step_ns, np.inf)
    under_way = np.minimum.accumulate(began[:, ::-1], axis=1)[:, ::-1] <= at
    dark: Bool = ((at < first) | (at > last) | (lost_windows(ground) & ~filled)) & ~under_way
    return dark, ground.samples.sum(axis=1) / np.maximum((~dark).sum(axis=1), 1)


def lost_windows(ground: Ground) -> Bool:
    """Return in which windows (G, T) samples of groups are missing; what is missing of most of the run says nothing of those."""
    lost = np.zeros(ground.shape, np.bool_)
    for entry in ground.missing:
        begin, end = entry.span
        if _says_when(ground, entry):
            at = (ground.start_ns < end) & (ground.start_ns + ground.step_ns > begin)
            lost[np.ix_(np.array(sorted(_may_be_of(ground, entry)), np.int64), np.flatnonzero(at))] = True
    return lost


def _says_when(ground: Ground, entry: Missing) -> bool:
    """Return whether an entry says when samples are missing: not if it is of nearly all of the run."""
    begin, end = entry.span
    return end - begin <= LOCAL * (int(ground.start_ns[-1]) + ground.step_ns - int(ground.start_ns[0]))


def _union_ns(spans: Iterable[tuple[int, int]]) -> int:
    total, last = 0, -(1 << 62)
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, last))
        last = max(last, end)
    return total


def _missing_of(ground: Ground, codes: Collection[int]) -> list[Missing]:
    """Return the entries that may be of some groups."""
    of_group = ground.once(_missing_by_group)
    return [ground.missing[number] for number in sorted({number for code in codes for number in of_group.get(code, ())})]


def _missing_by_group(ground: Ground) -> dict[int, list[int]]:
    """Return the numbers of the entries that may be of each group."""
    return numbers_by(_may_be_of(ground, entry) for entry in ground.missing)


def _may_be_of(ground: Ground, entry: Missing) -> frozenset[int]:
    """Return the groups that what is missing may be of: it has no other label of theirs."""
    return covered_groups(ground, tuple(entry.labels.items()))


def apart(ground: Ground, first_ns: float, second_ns: float) -> bool:
    """Return whether two latencies are known to differ: a whole bin lies between theirs (in neighbours they may be alike)."""
    if math.isnan(first_ns + second_ns):
        return False
    values = np.array([first_ns, second_ns], np.int64)
    return all(abs(int(np.diff(layout.index(values))[0])) > 1 for layout in ground.rows.layout.members)


def covered_groups(ground: Ground, who: Labels) -> frozenset[int]:
    """Return the groups that labels describe, of a part of a member that member."""
    having, every = ground.once(_having)
    known = {name for name, _ in ground.groups[0]}
    sets = [having.get(label, frozenset()) for label in who if label[0] in known]
    return frozenset.intersection(*sorted(sets, key=len)) if sets else every


def own_groups(ground: Ground, claim: Claim) -> frozenset[int]:
    """Return the groups that a claim is about: those that its labels describe, but for those that did not."""
    every, names = covered_groups(ground, claim.who), {name for name, _ in ground.groups[0]}
    if GROUPS not in claim.details:
        return every
    held = {frozenset(label for label in labels if label[0] in names) for labels in claim.details[GROUPS]}
    return frozenset(code for code in every if frozenset(ground.groups[code]) in held)


def as_detail(ground: Ground, who: Labels, codes: Collection[int]) -> dict[str, Any]:
    """Return what `own_groups` reads: the groups that a claim is about, by their labels, where `who` describes more."""
    return {GROUPS: tuple(ground.groups[code] for code in codes)} if len(covered_groups(ground, who)) > len(codes) else {}


def _having(ground: Ground) -> tuple[Mapping[tuple[str, str], frozenset[int]], frozenset[int]]:
    """Return the groups that have each label, and all groups: claims are many where members are, and asked about each other."""
    having = {label: frozenset(codes) for label, codes in numbers_by(ground.groups).items()}
    return having, frozenset(range(len(ground.groups)))


def numbers_by(sets: Iterable[Iterable[Key]]) -> dict[Key, list[int]]:
    """Return the numbers of the sets that hold each key."""
    numbers: dict[Key, list[int]] = {}
    for number, keys in enumerate(sets):
        for key in keys:
            numbers.setdefault(key, []).append(number)
    return numbers


def shared_ns(one: Claim, other: Claim) -> int:
    """Return how long both of two claims last, below 0 where they are apart."""
    return min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns)


def at_one_time(one: Claim, other: Claim) -> bool:
    """Return whether two claims are about one time: both last for at least half of the time of either."""
    shared = shared_ns(one, other)
    return 2 * shared >= one.end_ns - one.start_ns + other.end_ns - other.start_ns - shared


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


# Sums of what is known: NaN where nothing is, and no warning then, as NumPy's functions of the same kind give.


def known_median(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the median of the values that are not NaN, by sorting: NumPy's goes row by row."""
    rows = np.moveaxis(values, axis, -1) if axis is not None else values.reshape(-1)
    ordered = np.sort(rows, axis=-1)  # NaN comes last
    count = (~np.isnan(rows)).sum(axis=-1, keepdims=True)
    if not rows.shape[-1]:
        ordered = np.full((*rows.shape[:-1], 1), np.nan)
    low, high = (np.take_along_axis(ordered, np.maximum(place, 0), axis=-1) for place in ((count - 1) // 2, count // 2))
    # The upper of the two lies beyond what is known where nothing is: it is NaN then, too.
    middle: Float = np.where(count > 0, (low + np.where(count % 2 == 0, high, low)) / 2, np.nan)
    if axis is None:
        return middle.reshape((1,) * values.ndim if keepdims else ())
    return np.moveaxis(middle, -1, axis) if keepdims else middle[..., 0]


def known_mean(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the mean of the values that are not NaN."""
    return _of(np.nanmean, values, axis, keepdims=keepdims)


def known_most(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the largest of the values that are not NaN."""
    return _of(np.nanmax, values, axis, keepdims=keepdims)


def _of(function: Callable[..., Any], values: Float, axis: int | None, *, keepdims: bool) -> Float:
    none = np.isnan(values).all(axis=axis, keepdims=True)
    if not values.size:
        return np.full(none.shape if keepdims else np.squeeze(none, axis=axis).shape, np.nan)
    out = function(np.where(none, 0.0, values), axis=axis, keepdims=True)
    found: Float = np.where(none, np.nan, out)
    return found if keepdims else np.squeeze(found, axis=axis)


# Windows of a ground taken together: where so few samples lie in each that chance would speak, and where a level lasts.


TOGETHER = 20  # blocks that a run is cut into where something must hold throughout
THROUGHOUT = 0.8
MOST_COUNTS = 1 << 21  # counts of groups in parts of the run that are held at once: 16 MB


@dataclass(frozen=True, slots=True)
class Stretches:
    """The TOGETHER stretches of a run (one more where windows are left over): `stretch` is that of each window."""

    ground: Ground
    stretch: Int

    @property
    def samples(self) -> Float:
        """Return how many samples each group has in each stretch, (G, stretches)."""
        return np.add.reduceat(self.ground.samples, _starts(self.stretch), axis=1).astype(np.float64)

    def quantiles(self, wanted: Sequence[tuple[float, float, float]]) -> list[tuple[Float, Float]]:
        """Return quantiles in ns of each group in each stretch, (G, stretches), and over the whole run, (G).

        Those `wanted` are a share of the samples within bounds (by the middles of their bins), NaN where there are none.
        """
        layout, used = self.ground.rows.layout, self.ground.occupied
        values, middles, starts = layout.rising[used], layout.middles_of(used), _starts(self.stretch[part_starts(self.ground)])
        out = [(np.empty((len(self.ground.groups), len(starts))), np.empty(len(self.ground.groups))) for _ in wanted]
        for codes, counts in binned(self.ground):
            total = np.add.reduceat(counts, starts, axis=1, dtype=counts.dtype)
            below = np.cumsum(total, axis=2, out=total)
            for (share, low, high), (by_stretch, whole) in zip(wanted, out, strict=True):
                bounds = np.searchsorted(middles, [low, high], side="right").tolist()
                by_stretch[codes] = _quantile(below, values, share, *bounds)
                whole[codes] = _quantile(below.sum(axis=1), values, share, *bounds)
        return out

    def mostly(self, cells: Bool) -> Bool:
        """Return which stretches of groups lie for the most part within windows (G, T)."""
        starts = _starts(self.stretch)
        inside = np.add.reduceat(cells.astype(np.int64), starts, axis=1)
        return inside > np.diff(np.append(starts, cells.shape[1])) / 2


def _quantile(below: Int, values: Int, share: float, first: int, last: int) -> Float:
    """Return a quantile of counts, added up along the last axis, between two bins; NaN where there are none."""
    before = below[..., first - 1] if first else np.zeros(below.shape[:-1], np.int64)
    held = (below[..., last - 1] if last else before) - before
    rank = before + np.maximum(np.ceil(share * held), 1).astype(np.int64)
    place = np.minimum((below < rank[..., None]).sum(axis=-1), len(values) - 1)
    return np.where(held > 0, values[place].astype(np.float64), np.nan)


def stretches_of(ground: Ground) -> Stretches:
    """Return the stretches of a ground."""
    return Stretches(ground, _stretch_of(np.arange(ground.shape[1])))


def part_starts(ground: Ground) -> Int:
    """Return the first window of each part that counts are of: stretches and halves of the run are whole parts."""
    windows = np.arange(ground.shape[1])
    return np.flatnonzero(np.diff(_stretch_of(windows), prepend=-1) + np.diff(2 * windows >= len(windows), prepend=False))


def binned(ground: Ground) -> Iterator[tuple[slice, Int]]:
    """Yield the counts by occupied bin of groups in parts of the run, (groups, parts, bins), of at most MOST_COUNTS at once.

    They are counted once where that is all of them, else whenever they are asked for.
    """
    groups = len(ground.groups)
    held = max(1, MOST_COUNTS // max(1, len(part_starts(ground)) * len(ground.occupied)))
    if groups <= held:
        yield slice(None), ground.once(_counted)
        return
    for first in range(0, groups, held):
        codes = slice(first, min(first + held, groups))
        yield codes, _counted(ground, codes)


def _counted(ground: Ground, codes: slice = slice(None)) -> Int:
    """Return the counts by occupied bin of some groups in parts of the run."""
    first, last, _ = codes.indices(len(ground.groups))
    starts = part_starts(ground)
    part = np.searchsorted(starts, np.arange(ground.shape[1]), side="right") - 1
    of_row = (ground.group_of - first) * len(starts) + part[ground.window_of]
    of_row[(ground.group_of < first) | (ground.group_of >= last)] = -1
    counts = by_bin(ground.rows, ground.occupied, of_row, (last - first) * len(starts))
    counts = counts.astype(np.int32) if ground.samples.sum() < 1 << 31 else counts
    return counts.reshape(last - first, len(starts), -1)


def _stretch_of(windows: Int) -> Int:
    return windows // max(1, len(windows) // TOGETHER)


def _starts(numbers: Int) -> Int:
    """Return where each number of a rising column begins."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def beyond_peers(values: Float, peers: Sequence[int], group: int, times: float) -> float:
    """Return the share of blocks in which a value of a group is at least `times` as high as that of each of its peers.

    Of the blocks in which the group and a peer have values; 0 without peers.
    """
    if not peers:
        return 0.0
    mine, theirs = values[group], values[list(peers)]
    known: Bool = ~np.isnan(mine) & ~np.isnan(theirs).all(axis=0)
    if not known.any():
        return 0.0
    highest = known_most(theirs[:, known], axis=0)
    return float(np.mean(mine[known] >= times * highest))


class Usual:
    """The members that are not beyond the others themselves: `levels` has one number a group.

    Of those that do the same, sorted by level, the first gap of at least `times` above half of them parts them; without one all
    are usual. They are sorted once, not once a group.
    """

    def __init__(self, levels: Float, ground: Ground, times: float) -> None:
        self._levels = levels
        self._same = doing_the_same(ground)
        self._usual: dict[int, Int] = {}
        self._times = times

    def peers(self, group: int) -> list[int]:
        """Return the usual peers of a group; none where they do not agree with each other better than with the group."""
        levels = self._levels
        if not levels[group] > 0:
            return []
        alike = self._same[group]
        if (usual := self._usual.get(int(alike[0]))) is None:
            above = alike[levels[alike] > 0]
            order = above[np.argsort(levels[above], kind="stable")]
            half = -(-len(order) // 2)
            gaps = np.flatnonzero(levels[order[half:]] >= self._times * levels[order[half - 1 : -1]])
            usual = self._usual[int(alike[0])] = order[: half + gaps[0] if len(gaps) else None]
        at = int(np.searchsorted(levels[usual], levels[group]))  # the nearest are about here
        outer = np.concatenate([usual[:2], usual[-2:]])
        ends, near = ([code for code in some.tolist() if code != group] for some in (outer, usual[max(at - 1, 0) : at + 2]))
        if not ends:
            return []
        nearest = float(np.exp(np.abs(np.log(levels[near] / levels[group])).min()))
        if float(levels[ends].max() / levels[ends].min()) >= nearest:
            return []
        return [code for code in usual.tolist() if code != group]
