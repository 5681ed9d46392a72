"""When did the problem start and end: windows held against an objective, episodes, a verdict for each group.

When did the problem start and end: windows held against an objective, violated ones joined to episodes.

    windows of 10 s   ok  ok  BAD BAD ok  BAD none none ok  ok        hold 10s, no_data: violate
    episodes                  |---------------------|                 from the first violated window to the last

Windows lie in rows ordered by group, then time. A stretch without completions is one row, however long: a clock that jumps costs
nothing. Stretches that an objective does not speak of are cut out (`ingest.core.marks`): nothing goes on across them. Everything
works on whole columns; see `ingest.objectives.check` for who asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ingest.core.coverage import OPEN as OPEN_END
from ingest.core.coverage import UNKNOWN
from ingest.core.errors import InputError, counted
from ingest.core.grid import SECOND
from ingest.core.intervals import IN_MEMORY, Bool, Int, Intervals, row_sums
from ingest.core.labels import Group
from ingest.core.layout import LAST_NS
from ingest.core.marks import FOREVER, NotedMark, Stretches
from ingest.core.objective import HOLD, VIOLATE, Latency, Objective, Rate, per_second, promise_from
from ingest.core.quantiles import Ranked, censored, or_failed, percentile_values, reported
from ingest.core.units import latency
from ingest.query.burn_rate import BurnAlert, burning
from ingest.query.coverage import Lack, Rows, cut, cut_at
from ingest.query.means import check_bins
from ingest.query.question import Answer
from ingest.query.windows import regrouped

# Whether an objective was met: a verdict for each group of a run, and the episodes in which it was violated.


OPEN, ENDED, PROVISIONAL = "open", "ended", "provisional"
MET, VIOLATED, CANNOT_TELL = "met", "violated", "cannot tell"
NOTHING = "nothing completed"
ID_BYTES = 15

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Episode:
    """A stretch in which an objective was violated, from the start of its first violated window to the end of its last.

    `percentile` (as it was written), `threshold_ns` and `window_ns` are what was promised, or `least_rate`; `kind` is what was
    timed. `peak_ns` is the highest percentile, None where nothing completed in any violated window, and of a rate, which has a
    `lowest_rate` instead; both are lower bounds if `peak_open`. `samples` completed between start and end. `windows` were
    violated: `silent` of them without completions, `thin` with too few to carry the percentile. `worst_host` made most samples
    above the threshold, or of a rate fell most below what it does in all of the run. `state` is open, ended or provisional.
    `phase` is the part of the run that was judged, in words; stores do not keep it.
    """

    objective: str
    run: str
    labels: Labels
    kind: str
    percentile: str
    threshold_ns: int
    window_ns: int
    start_ns: int
    end_ns: int
    peak_ns: int | None
    peak_open: bool
    samples: int
    windows: int
    silent: int
    thin: int
    worst_host: str
    state: str
    least_rate: float | None = None
    lowest_rate: float | None = None
    phase: str = field(default="", compare=False)

    @property
    def group(self) -> str:
        """Return the labels in words: host ceph-b, op read; `all` where there are none."""
        return ", ".join(f"{name} {value or '-'}" for name, value in self.labels) or "all"

    @property
    def promise(self) -> Latency | Rate:
        """Return what was promised."""
        return promise_from(self.percentile, self.threshold_ns, self.least_rate)

    @property
    def worst(self) -> str:
        """Return the highest percentile, or the lowest rate, for people: 4.00s, >= 1.20s, 4,200/s, nothing completed."""
        least = ">= " if self.peak_open else ""
        if self.lowest_rate is not None:
            return least + per_second(self.lowest_rate)
        return NOTHING if self.peak_ns is None else least + latency(self.peak_ns)

    @property
    def id(self) -> str:
        """Return the identity of this episode: a digest of objective, run, labels and start, as 30 hex digits."""
        return digest(self.objective, self.run, self.labels, self.start_ns)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of an objective with a threshold in all groups of a run, from the first to the last window that was judged.

    `state` is met, violated or cannot tell. Stores keep it beside the episodes, so that an objective is drawn that was kept.
    """

    objective: str
    run: str
    kind: str
    percentile: str
    threshold_ns: int
    window_ns: int
    start_ns: int
    end_ns: int
    state: str

    @property
    def id(self) -> str:
        """Return its identity: a digest of objective and run."""
        return digest(self.objective, self.run)


def digest(*words: object) -> str:
    """Return the identity of what is told of a run by these words, as 30 hex digits."""
    return hashlib.blake2b(json.dumps(words).encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one group of a run met an objective: how many final windows there were, how many were violated, the episodes.

    `silent` windows are without completions, `thin` ones too small to carry the percentile, `provisional` ones not final yet.
    `unknown` ones lack samples, or have bins that are too wide (`blurred`: that alone), so that it cannot be determined whether
    they are violated; `possible` says that there is an episode if they are. The episodes are those that are certain whatever is
    missing. `not_judged` final windows do not lie wholly in the phases of the objective. Of the `requests` of final windows
    `over` to `over_most` took longer than the threshold; `missing` ones lack, None where their number is not known. The budget
    was used up too fast during `alerts`, and gone at `gone_ns`, for certain; its period is the run where it has no other.
    Windows from `start_ns` to `end_ns` were judged.
    """

    objective: Objective
    run: str
    labels: Labels
    kind: str
    windows: int
    silent: int
    thin: int
    violated: int
    provisional: int
    episodes: tuple[Episode, ...]
    zero_ns: int = 0
    relative: bool = False
    unknown: int = 0
    blurred: int = 0
    possible: bool = False
    not_judged: int = 0
    requests: int = 0
    over: int = 0
    over_most: int = 0
    missing: int | None = 0
    alerts: tuple[BurnAlert, ...] = ()
    gone_ns: int | None = None
    start_ns: int = 0
    end_ns: int = 0

    @property
    def used(self) -> tuple[Fraction, Fraction]:
        """Return between which shares of the windows, or of the requests, as the budget counts, the promise was missed."""
        budget = self.objective.budget
        if budget is None or not budget.of_requests:
            return Fraction(self.violated, self.windows or 1), Fraction(self.violated + self.unknown, self.windows or 1)
        if self.missing is None:
            return Fraction(0), Fraction(1)
        every = self.requests + self.missing or 1
        return Fraction(self.over, every), Fraction(self.over_most + self.missing, every)

    @property
    def outcome(self) -> str:
        """Return met, violated, or "cannot tell" where missing samples decide, or where in wide bins samples lie.

        The promise is kept if what was missed is within the budget, or without a budget if no episode is certain.
        """
        budget, (least, most) = self.objective.budget, self.used
        if budget is not None:
            return VIOLATED if least > budget.share else CANNOT_TELL if most > budget.share else MET
        if any(episode.state != PROVISIONAL for episode in self.episodes):
            return VIOLATED
        return CANNOT_TELL if self.possible else MET

    @property
    def met(self) -> bool:
        """Return whether it is certain that the promise was kept."""
        return self.outcome == MET


def undetermined(several: Sequence[Verdict]) -> str:
    """Return why windows cannot be judged, in words: samples are missing in 2 windows and bins are too wide in 1 window."""
    unknown, blurred = (sum(getattr(each, name) for each in several) for name in ("unknown", "blurred"))
    reasons = (("samples are missing", unknown - blurred), ("bins are too wide", blurred))
    return " and ".join(f"{reason} in {counted(windows, 'window')}" for reason, windows in reasons if windows)


HOST = "host"
NOT_BETWEEN = "no window of this run lies between --from and --to"


@dataclass(frozen=True, slots=True)
class Windows:
    """Rows of windows: group code, (start, end] in ns, samples, what was promised; a row without samples holds `count` windows.

    `value` is the percentile in ns, or for a rate the completions as a negative number: what is larger is worse. It is NaN where
    nothing completed. It can be `least` to `most`, because samples are missing (it is then the least for a percentile), because
    the rows hold bins of several layouts, or because it lies in a bin without an upper edge. `lacking` says that some are
    missing, in rows without samples that a known number is. `thin` says that samples cannot carry the percentile (the rank is
    used all the same), `open` that the value is a lower bound. `stretch` numbers stretches of windows that follow one another.
    `over` to `over_most` samples lie above the threshold.
    """

    group: Int
    start_ns: Int
    end_ns: Int
    samples: Int
    value: NDArray[np.float64]
    thin: Bool
    open: Bool
    count: Int
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    lacking: Bool
    stretch: Int
    over: Int
    over_most: Int

    def __len__(self) -> int:
        return len(self.group)

    def take(self, rows: Int) -> Windows:
        """Return the given rows in the given order."""
        return Windows(*(getattr(self, name)[rows] for name in Windows.__slots__))

    def until(self, end_ns: int, step_ns: int) -> Windows:
        """Return the windows that end by a time, which is an edge of windows."""
        kept = self.take(np.flatnonzero(self.start_ns < end_ns))
        ends = np.minimum(kept.end_ns, end_ns)
        return replace(kept, end_ns=ends, count=(ends - kept.start_ns) // step_ns)

    def inside(self, chosen: Stretches, step_ns: int) -> Windows:
        """Return the windows that lie in stretches, whose ends are edges of windows, numbered by them; rows are cut there."""
        low, high = np.array(chosen.spans, np.int64).T
        first, last = np.searchsorted(high, self.start_ns, "right"), np.searchsorted(low, self.end_ns, "left")
        times = np.maximum(last - first, 0)
        kept = self.take(np.repeat(np.arange(len(self)), times))
        number = np.arange(len(kept)) - np.repeat(np.cumsum(times) - times - first, times)
        starts, ends = np.maximum(kept.start_ns, low[number]), np.minimum(kept.end_ns, high[number])
        return replace(kept, start_ns=starts, end_ns=ends, count=(ends - starts) // step_ns, stretch=number)


@dataclass(frozen=True, slots=True)
class Life:
    """A run from its first to its last window: edges in ns, the end of its last final window, when it began, has it a clock.

    Windows that do not lie wholly between `from_ns` and `to_ns` are not judged, nor those that are not in `judged`, where that is
    given. `marks` are those of the run, where they are asked for.
    """

    run: str
    start_ns: int
    end_ns: int
    final_ns: int
    zero_ns: int = 0
    relative: bool = False
    from_ns: int = -FOREVER
    to_ns: int = FOREVER
    judged: Stretches | None = None
    marks: tuple[NotedMark, ...] = ()

    def within(self, step_ns: int) -> Life:
        """Return the part that is judged in windows of a step; InputError where that is none."""
        low, high = max(self.start_ns, -(-self.from_ns // step_ns) * step_ns), min(self.end_ns, self.to_ns // step_ns * step_ns)
        if low >= high:
            raise InputError(NOT_BETWEEN)
        chosen = None if self.judged is None else self.judged.within(low, high, step_ns)
        return replace(self, start_ns=low, end_ns=high, judged=chosen)


def judged(objective: Objective, answer: Answer, life: Life) -> list[Verdict]:
    """Return a verdict for each group of an answer, ordered by labels; the answer is by the objective's labels.

    Where it is by host beside these, episodes have their worst host, else see `with_worst_hosts`.

    Latencies in ns, off by at most the error of their layout; windows, samples and times are exact.
    """
    check_bins(answer, "objectives of percentiles")
    labels = tuple(name for name in answer.by if name != HOST or HOST in objective.by)
    narrow = answer if labels == answer.by else regrouped(answer, labels)
    parts = [part for part in narrow.parts if len(part)]
    groups = sorted({part.table[code] for part in parts for code in np.unique(part.series).tolist()})
    pieces = (piece for part in parts for _, piece in part.pieces(IN_MEMORY))
    rows = _concatenated([_rows(piece, narrow, objective.promise, groups) for piece in pieces])
    low, high = int(min(rows.start_ns.min(), life.start_ns)), int(max(rows.end_ns.max(), life.end_ns))
    part = replace(life, start_ns=low, end_ns=high).within(objective.window_ns)
    rows = rows.take(np.flatnonzero((rows.start_ns >= part.start_ns) & (rows.end_ns <= part.end_ns)))
    named = [tuple(zip(labels, key, strict=True)) for key in groups]
    found = verdicts(objective, rows, named, part, answer.kind, narrow.missing)
    return with_worst_hosts(found, [answer] if HOST in answer.by else [], labels, objective, high - low)


def verdicts(
    objective: Objective, rows: Windows, groups: Sequence[Labels], life: Life, kind: str, missing: Sequence[Lack] = ()
) -> list[Verdict]:
    """Return a verdict for each group of windows; the windows of `life` that are in no row are without completions.

    `missing` is what the answer lacks that the rows were made of.
    """
    step = objective.window_ns
    every = with_silence(rows, len(groups), step, life)
    if missing:
        every = lacking_silence(every, groups, objective, missing)
    final_end = min(life.final_ns // step * step, life.end_ns)
    whole = _by_group(every.until(final_end, step), None, len(groups))
    if life.judged is not None:
        every = every.inside(life.judged, step)
    final = every.until(final_end, step)
    bad, perhaps = violated(final, objective), violated(final, objective, possibly=True)
    context = (objective, groups, kind)
    certain = joined(final, bad, replace(life, end_ns=final_end), *context)
    known = {(episode.labels, episode.start_ns) for episode in certain}
    later = [] if final_end == life.end_ns else joined(every, violated(every, objective), life, *context)
    open_yet = [replace(episode, state=PROVISIONAL) for episode in later if (episode.labels, episode.start_ns) not in known]
    possible = joined(final, perhaps, replace(life, end_ns=final_end), *context) if (perhaps & ~bad).any() else certain
    maybe = {episode.labels for episode in possible}
    episodes: dict[Labels, list[Episode]] = {}
    for ordered in sorted([*certain, *open_yet], key=lambda episode: episode.start_ns):
        episodes.setdefault(ordered.labels, []).append(ordered)
    masks = {"windows": None, "silent": final.samples == 0, "thin": final.thin, "violated": bad, "unknown": perhaps & ~bad}
    masks["blurred"] = masks["unknown"] & ~final.lacking & (final.samples > 0)
    counts = {name: _by_group(final, mask, len(groups)).tolist() for name, mask in masks.items()}
    all_windows = _by_group(every, None, len(groups)).tolist()
    sums = np.zeros((3, len(groups)), np.int64)
    for number, column in enumerate((final.samples, final.over, final.over_most)):
        np.add.at(sums[number], final.group, column)
    alerts = [_burning(final, bad, code, objective) for code in range(len(groups))]
    lacking = missing_of(groups, missing, life)
    requests = [dict(zip(("requests", "over", "over_most"), column, strict=True)) for column in sums.T.tolist()]
    return [
        Verdict(
            objective=objective,
            run=life.run,
            labels=labels,
            kind=kind,
            **{name: count[code] for name, count in counts.items()},
            **requests[code],
            missing=lacking[code],
            alerts=tuple(replace(alert, objective=objective.name, run=life.run, labels=labels) for alert in alerts[code][0]),
            gone_ns=alerts[code][1],
            provisional=all_windows[code] - counts["windows"][code],
            possible=labels in maybe,
            not_judged=int(whole[code]) - counts["windows"][code],
            episodes=tuple(episodes.get(labels, ())),
            zero_ns=life.zero_ns,
            relative=life.relative,
            start_ns=life.start_ns,
            end_ns=life.end_ns,
        )
        for code, labels in enumerate(groups)
    ]


def judgement(several: Sequence[Verdict]) -> Judgement | None:
    """Return what came of an objective in a run by the verdicts of its groups; None where it has no threshold."""
    first, outcomes = several[0], {each.outcome for each in several}
    objective = first.objective
    if not isinstance(objective.promise, Latency) or objective.promise.most_failed:
        return None
    state = next((outcome for outcome in (VIOLATED, CANNOT_TELL) if outcome in outcomes), MET)
    begin, end = min(each.start_ns for each in several), max(each.end_ns for each in several)
    promise = objective.promise.to_dict()
    given = (promise["percentile"], promise["threshold_ns"], objective.window_ns)
    return Judgement(objective.name, first.run, first.kind, *given, begin, end, state)


def _burning(rows: Windows, bad: Bool, code: int, objective: Objective) -> tuple[list[BurnAlert], int | None]:
    """Return the alerts about the budget of a group, and when it was gone."""
    budget, step = objective.budget, objective.window_ns
    if budget is None:
        return [], None
    own = np.flatnonzero(rows.group == code)
    period = budget.period_ns or int(rows.count[own].sum()) * step
    times = np.minimum(rows.count[own], period // step + 1)  # a longer stretch of one kind says no more
    last = np.cumsum(times)
    number = np.arange(int(times.sum())) - np.repeat(last - times, times)
    ends = np.repeat(rows.start_ns[own], times) + (number + 1) * step
    ends[last - 1] = rows.end_ns[own]
    over, every = (rows.over, rows.samples) if budget.of_requests else (bad.astype(np.int64), np.ones(len(rows), np.int64))
    bad_ones, all_ones = (np.repeat(each[own], times) for each in (over, every))
    return burning(ends, bad_ones, all_ones, budget.share, step, period)


def missing_of(groups: Sequence[Labels], missing: Sequence[Lack], life: Life) -> list[int | None]:
    """Return how many samples of each group a run lacks at most while it is judged, None where their number is not known.

    Entries are added up by those labels of theirs that groups have, of which some may be anything: of thousands of hosts each
    has its own.
    """
    names = [name for name, _ in groups[0]] if groups else []
    lacked: dict[tuple[str | None, ...], int | None] = {}
    for entry in (lack.entry for lack in missing):
        if entry.span[0] < life.end_ns and entry.span[1] > life.start_ns:
            key = tuple(map(entry.labels.get, names))
            before = lacked.get(key, 0)
            lacked[key] = None if before is None or entry.count is None else before + entry.count
    known = {tuple(label is not None for label in key) for key in lacked}
    out: list[int | None] = []
    for labels in groups:
        keys = (tuple(value if told else None for (_, value), told in zip(labels, which, strict=True)) for which in known)
        counts = [lacked[key] for key in keys if key in lacked]
        out.append(None if None in counts else sum(count for count in counts if count))
    return out


def no_windows() -> Windows:
    """Return no row."""
    none, never = np.empty(0, np.int64), np.empty(0, np.bool_)
    return Windows(none, none, none, none, np.empty(0), never, never, none, np.empty(0), np.empty(0), never, none, none, none)


def with_silence(rows: Windows, groups: int, step_ns: int, life: Life) -> Windows:
    """Return the rows of all groups in order, and between them the stretches of the run's life in which nothing completed."""
    ordered = rows.take(np.lexsort((rows.start_ns, rows.group)))
    codes = np.arange(groups)
    group = np.concatenate([ordered.group, codes])
    begins = np.concatenate([ordered.end_ns, np.full(groups, life.start_ns)])
    ends = np.concatenate([ordered.start_ns, np.full(groups, life.end_ns)])
    # What ends and what begins a stretch, each in order of time: the life begins first, and ends last.
    begins = begins[np.lexsort((begins, group))]
    order = np.lexsort((ends, group))
    group, ends = group[order], ends[order]
    gaps = np.flatnonzero(ends > begins)
    zeros, never = np.zeros(len(gaps), np.int64), np.zeros(len(gaps), np.bool_)
    count = (ends[gaps] - begins[gaps]) // step_ns
    nothing = np.full(len(gaps), np.nan)
    when = (group[gaps], begins[gaps], ends[gaps])
    silence = Windows(*when, zeros, nothing, never, never, count, nothing, nothing, never, zeros, zeros, zeros)
    both = _concatenated([ordered, silence])
    return both.take(np.lexsort((both.start_ns, both.group)))


def lacking_silence(rows: Windows, groups: Sequence[Labels], objective: Objective, missing: Sequence[Lack]) -> Windows:
    """Return the rows, stretches without completions cut where something may have completed that is missing, and marked there.

    What is missing in unknown number may keep a rate, but does not excuse a stall.
    """
    step_ns, of_rate = objective.window_ns, isinstance(objective.promise, Rate)
    by = tuple(name for name, _ in groups[0]) if groups else ()
    table = [tuple(value for _, value in labels) for labels in groups]
    edges: dict[int, None] = {}  # each once: of thousands of hosts most are missing at the same times
    for low, high in (lack.entry.span for lack in missing):
        edges[max(low, -FOREVER) // step_ns * step_ns] = edges[-(-min(high, FOREVER) // step_ns) * step_ns] = None
    for edge in edges:
        cut = (rows.samples == 0) & (rows.start_ns < edge) & (edge < rows.end_ns)
        if cut.any():
            rows = _cut(rows, np.flatnonzero(cut), edge, step_ns)
    silent = np.flatnonzero(rows.samples == 0)
    lacking = cut_at(rows.group[silent], table, rows.start_ns[silent], rows.end_ns[silent], by, missing)
    if not len(lacking):
        return rows
    least, most, marked, places = rows.least.copy(), rows.most.copy(), rows.lacking.copy(), silent[lacking.row]
    marked[places[of_rate | (lacking.most != UNKNOWN)]] = True
    if of_rate:  # where something completed it is one at least, and all that is missing at most
        least[places], most[places] = 0, -1
        np.subtract.at(least, places, np.where(lacking.most == UNKNOWN, np.inf, lacking.most))
    else:
        most[places] = -np.inf
        np.maximum.at(most, places, np.where(lacking.high_ns == OPEN_END, np.inf, lacking.high_ns.astype(np.float64)))
    return replace(rows, least=least, most=most, lacking=marked)


def _cut(rows: Windows, places: Int, edge: int, step_ns: int) -> Windows:
    """Return the rows with some stretches cut in two at an edge of windows."""
    order = np.sort(np.concatenate([np.arange(len(rows)), places]))
    twice = rows.take(order)
    second = np.zeros(len(order), np.bool_)
    second[1:] = order[1:] == order[:-1]
    head = np.append(second[1:], False)
    starts, ends = np.where(second, edge, twice.start_ns), np.where(head, edge, twice.end_ns)
    count = np.where(head | second, (ends - starts) // step_ns, twice.count)
    return replace(twice, start_ns=starts, end_ns=ends, count=count)


def violated(rows: Windows, objective: Objective, *, possibly: bool = False) -> Bool:
    """Return which rows are violated: above the threshold, or without completions as `no_data` says.

    Whatever is missing; or `possibly`, those that missing samples may have violated, too.
    """
    empty = rows.samples == 0
    with np.errstate(invalid="ignore"):
        above: Bool = (rows.most if possibly else rows.least) > limit(objective)
    if objective.no_data == VIOLATE:
        above |= empty if possibly else empty & ~rows.lacking
        return above
    # Of what is missing something may have completed where nothing is there: then it is not certain what that window is.
    own = ~empty | (above if possibly else rows.lacking & ~above)
    above = above if possibly else above & ~empty
    if objective.no_data == HOLD and len(rows):  # a stretch goes on as what is before it
        own[0] = True
        own[1:] |= (rows.group[1:] != rows.group[:-1]) | (rows.stretch[1:] != rows.stretch[:-1])
        above = above[np.maximum.accumulate(np.where(own, np.arange(len(rows)), 0))]
    return above


def limit(objective: Objective) -> int:
    """Return the largest value of a window that keeps the promise, as `Windows.value` has it."""
    promise = objective.promise
    return promise.threshold_ns if isinstance(promise, Latency) else -promise.needed(objective.window_ns)


def joined(rows: Windows, bad: Bool, life: Life, objective: Objective, groups: Sequence[Labels], kind: str) -> list[Episode]:
    """Return the episodes of violated rows at most `hold` apart, those that last for `for` at least, without worst hosts."""
    chosen = np.flatnonzero(bad)
    if not len(chosen):
        return []
    own = rows.take(chosen)
    fresh = np.ones(len(own), np.bool_)
    fresh[1:] = (own.group[1:] != own.group[:-1]) | (own.stretch[1:] != own.stretch[:-1])
    fresh[1:] |= own.start_ns[1:] - own.end_ns[:-1] > objective.hold_ns
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(own)) - 1
    of_rate = isinstance(objective.promise, Rate)
    values = np.where(np.isnan(own.value), 0.0 if of_rate else -1.0, own.value)
    peak = np.maximum.reduceat(values, first)
    at_peak = own.open & (values == np.repeat(peak, last - first + 1))
    total = np.append(0, np.cumsum(rows.samples))
    starts, ends = own.start_ns[first], own.end_ns[last]
    # What is violated in a stretch that is judged up to the end of the life may go on.
    judged_until = np.array([end for _, end in life.judged.spans] if life.judged else [FOREVER], np.int64)
    columns = (
        own.group[first],
        peak,
        (ends + objective.hold_ns >= life.end_ns) & (judged_until[own.stretch[first]] >= life.end_ns),
        starts,
        ends,
        np.logical_or.reduceat(at_peak, first),
        total[chosen[last] + 1] - total[chosen[first]],
        np.add.reduceat(own.count, first),
        np.add.reduceat(np.where(own.samples == 0, own.count, 0), first),
        np.add.reduceat(own.thin.astype(np.int64), first),
    )
    lasting = np.flatnonzero(ends - starts >= objective.for_ns)
    names = ("start_ns", "end_ns", "peak_open", "samples", "windows", "silent", "thin")
    seconds = objective.window_ns / SECOND
    return [
        Episode(
            objective.name,
            life.run,
            groups[group],
            dict(groups[group]).get("kind", kind),
            **objective.promise.to_dict(),
            window_ns=objective.window_ns,
            peak_ns=None if of_rate or highest < 0 else int(min(highest, LAST_NS)),
            lowest_rate=abs(highest) / seconds if of_rate else None,
            worst_host="",
            state=OPEN if goes_on else ENDED,
            **dict(zip(names, figures, strict=True)),
            phase=life.judged.words if life.judged else "",
        )
        for group, highest, goes_on, *figures in zip(*(column[lasting].tolist() for column in columns), strict=True)
    ]


def _by_group(rows: Windows, chosen: Bool | None, groups: int) -> Int:
    """Return how many windows of each group there are, or how many are chosen."""
    counts = np.zeros(groups, np.int64)
    np.add.at(counts, rows.group, rows.count if chosen is None else np.where(chosen, rows.count, 0))
    return counts


def _rows(part: Intervals[Group], answer: Answer, promise: Latency | Rate, groups: Sequence[Group]) -> Windows:
    """Return the windows of a part that hold samples, with the percentile by rank whether they carry it or not, or their rate."""
    rows = part.take(np.flatnonzero(part.samples > 0))
    places = {key: place for place, key in enumerate(groups)}
    codes = np.array([places.get(key, -1) for key in rows.table], np.int64)
    count = rows.samples if rows.completions is None else rows.completions
    window, ones, zeros = (
        (codes[rows.series], rows.start_ns, rows.end_ns),
        np.ones(len(rows), np.int64),
        np.zeros(len(rows), np.int64),
    )
    if isinstance(promise, Rate):
        lacks = cut(rows, answer)
        fewest, many = np.zeros((2, len(rows)))
        np.add.at(fewest, lacks.row, lacks.least)
        np.add.at(many, lacks.row, np.where(lacks.most == UNKNOWN, np.inf, lacks.most))
        some, least, most = ~lacks.complete(len(rows)), -count - many, -count - fewest
        return Windows(*window, count, most, zeros > 0, some, ones, least, most, some, zeros, zeros, zeros)
    ranked, percentile = Ranked(rows), promise.percentile
    carried = percentile_values(rows, percentile, ranked=ranked)
    by_rank = or_failed(rows, ranked.values(np.arange(len(rows)), percentile.ranks(ranked.samples)).astype(np.float64))
    (lower_bound,) = censored(rows, [percentile])
    thin = ~percentile.carried(count)
    values = np.where(np.isnan(carried), by_rank, carried)
    with_lacks = Rows(rows, answer, ranked=ranked)
    least, most = with_lacks.limits(percentile, values)
    # What is missing in unknown number does not excuse what is there.
    least = np.where(with_lacks.uncounted, with_lacks.measured(percentile, values)[0], least)
    if rows.exact is None:
        most = np.where(lower_bound, np.inf, most)
    else:
        most = np.where(lower_bound, np.where(rows.exact.known_max, np.maximum(most, rows.exact.max_ns), np.inf), most)
    lacking = ~with_lacks.complete
    shown = np.where(lacking & ~ranked.mixed, least, values)
    opened = lower_bound | (lacking & (most > least))
    layout, limit_ns = rows.layout, promise.threshold_ns
    above = [reported(rows) > limit_ns] * 2
    if ranked.mixed.any():
        unlike, ends = ranked.mixed[rows.row], (layout.lowest_of(rows.bins), layout.highest_of(rows.bins))
        above = [np.where(unlike, end > limit_ns, over) for end, over in zip(ends, above, strict=True)]
    over, over_most = (row_sums(rows.indptr, np.where(each, rows.counts, 0)) for each in above)
    return Windows(*window, count, shown, thin, opened, ones, least, most, lacking, zeros, over, over_most)


def _concatenated(parts: Sequence[Windows]) -> Windows:
    return Windows(*(np.concatenate([getattr(part, name) for part in parts]) for name in Windows.__slots__))


def with_worst_hosts(
    group_verdicts: list[Verdict], answers: Iterable[Answer], labels: Sequence[str], objective: Objective, life_ns: int
) -> list[Verdict]:
    """Return the verdicts with the worst host of each episode, the first of equals, by answers that are by host, too.

    It is the host with most samples above the threshold; of a rate the one that does most less than in all of its life, so that
    one answer must be of all of it.
    """
    counted_by_host = {} if HOST in labels else _counted_by_host(answers, labels, objective.promise)
    with_hosts = []
    for group_verdict in group_verdicts:
        episodes = group_verdict.episodes
        most = [dict(group_verdict.labels).get(HOST, "")] * len(episodes)
        hosts = sorted(counted_by_host.get(tuple(value for _, value in group_verdict.labels), {}).items())
        if hosts and episodes:
            begins, ends = np.array([(each.start_ns, each.end_ns) for each in episodes], np.int64).T
            sums = np.zeros((len(hosts), len(begins)), np.int64)
            for number, (_, parts) in enumerate(hosts):
                for starts, totals in parts:
                    sums[number] += totals[np.searchsorted(starts, ends)] - totals[np.searchsorted(starts, begins)]
            if isinstance(objective.promise, Rate):
                usual = np.array([sum(int(totals[-1]) for _, totals in parts) for _, parts in hosts]) / life_ns
                sums = usual[:, None] * (ends - begins) - sums
            most = [hosts[place][0] if sums[place, at] > 0 else "" for at, place in enumerate(sums.argmax(axis=0).tolist())]
        named = tuple(replace(each, worst_host=host) for each, host in zip(episodes, most, strict=True))
        with_hosts.append(replace(group_verdict, episodes=named))
    return with_hosts


def _counted_by_host(
    answers: Iterable[Answer], labels: Sequence[str], promise: Latency | Rate
) -> dict[Group, dict[str, list[tuple[Int, Int]]]]:
    """Return, for each group and host, starts of windows with samples that count, and how many there were before each.

    Of a rate all samples count, else those above the threshold. Windows of answers follow those of answers before them.
    """
    found: dict[Group, dict[str, list[tuple[Int, Int]]]] = {}
    for answer in answers:
        places, host = [answer.by.index(name) for name in labels], answer.by.index(HOST)
        for part in answer.parts:
            each = np.empty(len(part), np.int64)
            for place, piece in part.pieces():
                counting = isinstance(promise, Rate) or reported(piece) > promise.threshold_ns
                each[place] = row_sums(piece.indptr, np.where(counting, piece.counts, 0))
            rows = np.flatnonzero(each > 0)
            rows = rows[np.lexsort((part.start_ns[rows], part.series[rows]))]
            cuts = np.searchsorted(part.series[rows], np.arange(len(part.table) + 1))
            for code, key in enumerate(part.table):
                own = rows[cuts[code] : cuts[code + 1]]
                if len(own):
                    hosts = found.setdefault(tuple(key[place] for place in places), {})
                    hosts.setdefault(key[host], []).append((part.start_ns[own], np.append(0, np.cumsum(each[own]))))
    return found
