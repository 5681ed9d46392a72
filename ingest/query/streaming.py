"""Long logs answered window by window, in memory that does not grow: streams of windows, and ranges for several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import CapacityError, InputError
from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Bool, Intervals, Sum, concatenate, in_time_order, merged
from ingest.core.labels import IN_FLIGHT, LAYER, Group, Series
from ingest.core.layout import Layout
from ingest.core.pool import fork_map
from ingest.query.aggregate import Aggregation, adding_up, all_of
from ingest.query.coverage import with_complete
from ingest.query.percentiles import Wanted, rows_of, seconds_covered, spans_of
from ingest.query.plan import Sums, answer_of
from ingest.query.precision import together
from ingest.query.question import Answer, Question, check_labels
from ingest.query.table import Table, concatenated
from ingest.query.windows import check_step, spanned, with_one_span
from ingest.read import read
from ingest.read.account import Account
from ingest.read.context import EXPECTED
from ingest.read.format_names import HDR
from ingest.read.hdr import log as hdr_log
from ingest.read.hdr.log import Part, Tail, alike, cut, read_part, settled
from ingest.read.missing import own_step
from ingest.read.sources import Source

if TYPE_CHECKING:
    from ingest.query.files import Files


# The windows of long logs as their rows come: in small chunks where many logs are open at once, so that memory stays flat.


OPEN_ENTRIES = 1 << 18  # bins of all logs together that are held in chunks
LEAST_ENTRIES = 1 << 14

Rows = Callable[[int], Iterator[Intervals[Series]]]


def chunk_entries(logs: int) -> int:
    """Return how many bins a chunk of each of so many logs holds."""
    return min(hdr_log.CHUNK_ENTRIES, max(LEAST_ENTRIES, OPEN_ENTRIES // max(logs, 1)))


def entries_at_once(logs: Sequence[Source]) -> int:
    """Return how many bins a union of these logs may hold before it gives out what is whole."""
    return max(hdr_log.CHUNK_ENTRIES, chunk_entries(len(logs)) * len(logs))


def streams(
    files: Files, question: Question, step_ns: int, sources: Sequence[Source], rows: Rows | None = None
) -> tuple[list[Iterator[Intervals[Group]]], Mapping[str, Aggregation]]:
    """Return, for each log, its windows as its rows come, and what notes by run what is met; nothing is read before it is asked.

    `rows` gives those of the log at a place, where it is not to be read whole.
    """
    starts = files.starts_of(sources)
    grains = {run: files.grain(run, step_ns) for run in starts}
    adding = adding_up(question, files.found.labels, step_ns, grains, starts)

    def whole(place: int) -> Iterator[Intervals[Series]]:
        source = sources[place]
        try:
            if source.format != HDR or source.context.options.get(EXPECTED):
                yield from read(source)
            else:
                yield from hdr_log.read(source.path, source.context, chunk_entries(len(sources)))
        except InputError as error:
            source.context.account.note(f"not read: {error.reason}")

    def windows(place: int, source: Source) -> Iterator[Intervals[Group]]:
        for chunk in (rows or whole)(place):
            yield from adding[source.context.series.run].windowed(chunk, own_step(source))

    return [windows(place, source) for place, source in enumerate(sources)], adding


# Many streams of windows -> one, in time order, in memory that does not grow with their length or number.
#
# Each stream gives the windows of a source as its rows come, about in the order of time. A window is given out once every
# stream has passed it: added up over all of them, exact, whatever the order of the streams. What a stream brings later than
# that (a log whose lines run back in time) is given out then, as a window of its own: counts are never lost.


MOST_ENTRIES = 500_000


def union(
    streams: Sequence[Iterator[Intervals[Group]]], most_entries: int = MOST_ENTRIES, slack_ns: int = 0
) -> Iterator[Intervals[Group]]:
    """Yield the windows of all streams added up, ordered by start, then group; one layout at a time.

    Each (group, start, end) comes once, unless a stream brings it later than `slack_ns` after what it had reached. Merging
    is exact as `intervals.merged` is.
    """
    live = dict(enumerate(streams))
    reached = dict.fromkeys(live, -INT64_MAX)
    pending: list[Intervals[Group]] = []
    entries, limit = 0, most_entries
    while live:
        number = min(live, key=lambda stream: (reached[stream], stream))
        part = next(live[number], None)
        if part is None:
            del live[number], reached[number]
            continue
        if not len(part):
            continue
        reached[number] = max(reached[number], int(part.start_ns.max()))
        pending.append(part)
        entries += len(part.bins)
        if entries > limit:
            done, pending = _passed(pending, min(reached.values()) - slack_ns)
            yield from done
            entries = sum(len(piece.bins) for piece in pending)
            limit = entries + most_entries
    yield from _passed(pending, INT64_MAX)[0]


def _passed(pending: list[Intervals[Group]], until_ns: int) -> tuple[list[Intervals[Group]], list[Intervals[Group]]]:
    """Return the sums of windows that begin before a time, and those of the others; per layout."""
    by_layout: dict[str, list[Intervals[Group]]] = {}
    for part in pending:
        by_layout.setdefault(str(part.layout), []).append(part)
    done, rest = [], []
    for _, parts in sorted(by_layout.items()):
        for rows in _summed(parts):
            early = rows.start_ns < until_ns
            if early.any():
                done.append(in_time_order(rows.take(np.flatnonzero(early))))
            if not early.all():
                rest.append(rows.take(np.flatnonzero(~early)))
    return done, rest


def _summed(parts: list[Intervals[Group]]) -> list[Intervals[Group]]:
    """Return the sums of parts of one layout, ordered by time one after another.

    Windows of the last part that begin after those of all others are added to nothing: where they lie together they are not
    copied, which takes longer than all the rest for a single log.
    """
    *others, last = parts
    if not others or not (last.start_ns[1:] >= last.start_ns[:-1]).all():
        return [merged(parts)]
    after = int(np.searchsorted(last.start_ns, max(int(part.start_ns.max()) for part in others), side="right"))
    rows = np.arange(len(last))
    if 2 * last.indptr[after] > last.indptr[-1] or not (later := last.take(rows[after:])).each_once:
        return [merged(parts)]
    return [merged([*others, last.take(rows[:after])] if after else others), later]


# What comes of windows that are let go as soon as they are whole: their rows of the table, and the sum of all of them.


SUM_ENTRIES = 1 << 18
SMALL_ENTRIES = 1 << 15  # a part of fewer waits for others: answering it alone would take longer than all its entries


class Gathered:
    """The rows of the table of windows that came so far, and the sum of all of them."""

    def __init__(self, by: tuple[str, ...], step_ns: int, wanted: Wanted) -> None:
        self._tables: list[Table] = []
        self._waiting: list[Intervals[Group]] = []
        self._total: Sum[Group] = Sum(SUM_ENTRIES)
        self._layout: Layout | None = None
        self._empty = Answer((), by, step_ns, "", (), {}, relative=False, series=1)
        self._wanted = wanted
        self._last = -INT64_MAX

    def anew(self) -> Gathered:
        """Return one of the same question that has gathered nothing."""
        return Gathered(self._empty.by, self._empty.step_ns, self._wanted)

    def take(
        self, windows: Iterable[Intervals[Group]], own: Callable[[Intervals[Group]], Bool] | None = None
    ) -> list[Intervals[Group]] | None:
        """Answer windows and add them up; return those that are not its `own`, which are not answered.

        None where they do not come one after another, all in one layout.
        """
        others = []
        for part in windows:
            after, self._last = int(part.start_ns[0]) > self._last, int(part.start_ns[-1])
            alike, self._layout = self._layout in (None, part.layout), part.layout
            if not (after and alike):
                return None
            mine = own(part) if own else np.ones(len(part), np.bool_)
            self.answer(part if mine.all() else part.take(np.flatnonzero(mine)))
            if not mine.all():
                others.append(part.take(np.flatnonzero(~mine)))
            self.sum(part)
        return others

    @property
    def tables(self) -> list[Table]:
        """Return the tables of all windows that were answered, in any order."""
        self._answer_waiting()
        return self._tables

    @property
    def sums(self) -> list[Intervals[Group]]:
        """Return the sums of all windows, one a layout."""
        return self._total.parts()

    def answer(self, part: Intervals[Group]) -> None:
        """Answer windows that are whole; a few wait for others."""
        if not len(part):
            return
        if len(part.bins) < SMALL_ENTRIES:
            part = replace(part, bins=part.bins.copy(), counts=part.counts.copy())  # not all that it was cut from
        self._waiting.append(part)
        if sum(len(waiting.bins) for waiting in self._waiting) >= SMALL_ENTRIES:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        if self._waiting:
            rows = concatenate(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
            self._tables.append(rows_of(rows, self._empty, self._wanted))
            self._waiting = []

    def add_answers(self, tables: Sequence[Table]) -> None:
        """Take the tables of windows that were answered elsewhere."""
        self._tables.extend(tables)

    def sum(self, part: Intervals[Group]) -> None:
        """Add windows to the sum of all."""
        self._total.add(merged([with_one_span(part)]))


# Long logs cut into ranges of time, each read and answered by a process of its own; where they meet, windows are added up.
#
# A range answers the windows that only its own rows can reach. Those near a cut are handed over as they are. If a row
# reached into the windows of another range after all, or lines of a tag did not follow one another across the cut, None is
# returned, and the logs are read in one piece.


MARGIN = 4


class _Range(NamedTuple):
    """The parts of all logs in one range of time, and the starts [low, high) of the windows that are its own."""

    parts: Sequence[Part]
    low_ns: int
    high_ns: int

    def own(self, part: Intervals[Group]) -> NDArray[np.bool_]:
        """Return which windows are its own."""
        return (part.start_ns >= self.low_ns) & (part.start_ns < self.high_ns)


class _Outcome(NamedTuple):
    """What a range gave: tables of its own windows, the windows near its edges, sums of all, tails and accounts by log.

    `met` is what was met of all that is selected, also outside of the range that the question asks for.
    """

    tables: Sequence[Table]
    edges: Sequence[Intervals[Group]]
    sums: Sequence[Intervals[Group]]
    met: Sums
    tails: Sequence[Tail]
    accounts: Sequence[Account]


def in_ranges(files: Files, question: Question, gathered: Gathered, sources: Sequence[Source]) -> Sums | None:
    """Return what was met where all windows of the logs were gathered, their accounts settled; None leaves all as it was."""
    step = question.step if isinstance(question.step, int) else 0
    if files.jobs < 2 or any(source.context.options.get(EXPECTED) for source in sources):
        return None
    made = cut([source.path for source in sources], [source.context for source in sources], files.jobs)
    if made is None:
        return None
    margin = MARGIN * max(step, *(source.width_ns for source in sources))
    lows, highs = [-INT64_MAX, *(time + margin for time in made[1])], [*(time - margin for time in made[1]), INT64_MAX]
    ranges = [_Range(*extent) for extent in zip(made[0], lows, highs, strict=True)]
    outcomes: dict[int, _Outcome | None] = {}
    for number, result in fork_map(
        lambda time_range: _answered(files, question, gathered.anew(), sources, time_range), ranges, files.jobs, joining=True
    ):
        outcomes[number] = result
        if result is None:
            return None
    parts = [outcome for _, outcome in sorted(outcomes.items()) if outcome is not None]
    edges = [part for outcome in parts for part in outcome.edges]
    if not all(alike(tails) for tails in zip(*(outcome.tails for outcome in parts), strict=True)) or not _apart(ranges, parts):
        return None
    met = Sums()
    for outcome in parts:
        met.widen(outcome.met)
    gathered.add_answers([table for outcome in parts for table in outcome.tables])
    if edges:
        gathered.answer(in_time_order(merged(edges)))
    for part in (part for outcome in parts for part in outcome.sums):
        gathered.sum(part)
    for place, source in enumerate(sources):
        tails, accounts = ([outcome.tails[place] for outcome in parts], [outcome.accounts[place] for outcome in parts])
        settled(source.path, source.context, tails, accounts)
    return met


def _apart(ranges: Sequence[_Range], parts: Sequence[_Outcome]) -> bool:
    """Return whether no range has rows in windows that are another's own."""
    edges = [(number, part) for number, outcome in enumerate(parts) for part in outcome.edges]
    return not any(other.own(part).any() for number, part in edges for at, other in enumerate(ranges) if at != number)


def _answered(
    files: Files, question: Question, gathered: Gathered, sources: Sequence[Source], time_range: _Range
) -> Iterator[_Outcome | None]:
    """Yield what one range gives, or None where it cannot be answered alone."""
    step = question.step if isinstance(question.step, int) else 0
    entries = chunk_entries(len(sources))
    tails: dict[int, Tail] = {}
    # Made for this range alone: what was noted before it is the caller's.
    alone = [replace(source, context=replace(source.context, account=Account(path=str(source.path)))) for source in sources]

    def rows(place: int) -> Iterator[Intervals[Series]]:
        for chunk in read_part(alone[place].path, alone[place].context, time_range.parts[place], entries):
            if isinstance(chunk, Tail):
                tails[place] = chunk
            else:
                yield chunk

    logs, adding = streams(files, question, step, alone, rows)
    try:
        edges = gathered.take(union(logs, entries_at_once(sources), slack_ns=step), time_range.own)
    except (InputError, CapacityError):  # the ordinary way names the line
        edges = None
    if edges is None:
        yield None
        return
    accounts = [source.context.account for source in alone]
    in_order = [tails[place] for place in range(len(alone))]
    yield _Outcome(gathered.tables, edges, gathered.sums, all_of(adding), in_order, accounts)


# Percentiles at a fixed step straight from long logs: each window is answered and let go as soon as it is whole.
#
# What is held does not grow with the length of the logs or their number, and the bins of a window are never copied twice.
# The numbers are those of `Files.answer` and `percentiles`, to the last digit. Where that is not possible (windows that come
# late, bins of unlike layouts, kinds or runs that have to be added up), None is returned and the ordinary way is open.


RUN, KIND = "\0run", "\0kind"


def streamed(files: Files, question: Question, wanted: Wanted) -> tuple[Table, Answer] | None:
    """Return the table of percentiles and the facts about it (parts: the whole range), or None where it has to be done at once.

    Raises what `Files.answer` raises.
    """
    if not isinstance(question.step, int) or question.attribution == IN_FLIGHT:
        return None
    if question.merge_runs or ("kind" in question.where and "kind" not in question.by):
        return None
    sources, apart = files.choice(question)
    before = [list(source.context.account.notes) for source in sources]
    check_labels(question, files.found.labels)
    check_step(question.step, files.widths_asked(question), force=question.force)
    gathered = Gathered((RUN, KIND, *question.by), question.step, wanted)
    try:
        met = in_ranges(files, question, gathered, sources)
        if met is None:
            logs, adding = streams(files, question, question.step, sources)
            in_order = gathered.take(union(logs, entries_at_once(sources), slack_ns=question.step)) is not None
            met = all_of(adding) if in_order else None
        if met is not None and len(set().union(*met.layouts.values())) > 1:
            met = None
        sums = gathered.sums if met else []
    except CapacityError:  # of the whole range, perhaps, and not of any window
        met = None
    if met is None:
        for source, notes in zip(sources, before, strict=True):
            source.context.account.replace(Account(path=str(source.path), notes=notes))
        return None
    if not gathered.tables:
        return None
    met.parts = spanned(sums)
    answer = answer_of(files.merged_of(met, question, question.step, sources, apart), question)
    if LAYER in answer.by and LAYER not in question.by:
        return None  # several layers have a column, which windows that are let go do not bear
    if any(lack.entry.count is not None for lack in answer.missing):
        return None  # percentiles of windows that are let go cannot become ranges any more
    return with_complete(_named(gathered.tables, answer), answer), answer


def _named(tables: Sequence[Table], answer: Answer) -> Table:
    """Return all rows of the kinds that an answer takes, with its labels.

    Rates are those of the time that there is data of, which is known only now.
    """
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    order = np.argsort(columns["start_ns"], kind="stable")
    if (order[1:] < order[:-1]).any():
        columns = {name: column[order] for name, column in columns.items()}
    pairs = list(zip(columns[RUN].tolist(), columns[KIND].tolist(), strict=True))
    places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    of_rows = np.array([places[pair] for pair in pairs])
    spans = spans_of((run if "run" in answer.by else None for run, _ in places), answer.covered)
    columns["rate"] = columns["count"] / seconds_covered(columns["start_ns"], columns["end_ns"], spans[of_rows])
    runs, _ = columns.pop(RUN), columns.pop(KIND)
    if "run" in answer.by and "run" not in columns:
        columns = {"start_ns": columns.pop("start_ns"), "end_ns": columns.pop("end_ns"), "run": runs, **columns}
    table = Table(columns, answer.by, together(table.precision for table in tables))
    keep = np.array([pair in answer.layouts for pair in places])[of_rows]
    table = table if keep.all() else table.take(np.flatnonzero(keep))
    return concatenated([table]) if answer.by else table
