"""Long logs answered window by window, in memory that does not grow with their length or number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.errors import CapacityError, InputError
from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Intervals, Sum, concatenate, in_time_order, merged
from ingest.core.labels import FAILED, IN_FLIGHT, LAYER, Group, Series, outcome_of
from ingest.core.layout import Layout
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
from ingest.read.format_names import HDR
from ingest.read.hdr import log as hdr_log
from ingest.read.missing import own_step, unreadable
from ingest.read.sources import Source

if TYPE_CHECKING:
    from ingest.query.files import Files


# The windows of long logs as their rows come: in small chunks where many logs are open at once, so that memory stays flat.


OPEN_ENTRIES = 1 << 18  # bins of all logs together that are held in chunks
LEAST_ENTRIES = 1 << 14


def chunk_entries(logs: int) -> int:
    """Return how many bins a chunk of each of so many logs holds."""
    return min(hdr_log.CHUNK_ENTRIES, max(LEAST_ENTRIES, OPEN_ENTRIES // max(logs, 1)))


def entries_at_once(logs: Sequence[Source]) -> int:
    """Return how many bins a union of these logs may hold before it gives out what is whole."""
    return max(hdr_log.CHUNK_ENTRIES, chunk_entries(len(logs)) * len(logs))


def streams(
    files: Files, question: Question, step_ns: int, sources: Sequence[Source]
) -> tuple[list[Iterator[Intervals[Group]]], Mapping[str, Aggregation]]:
    """Return, for each log, its windows as its rows come, and what notes by run what is met; all is read when it is asked."""
    starts = files.starts_of(sources)
    asked = files.widths_asked(question)
    grains = {run: files.grain(run, step_ns, asked) for run in starts}
    adding = adding_up(question, files.found.labels, step_ns, grains, starts)

    in_chunks = partial(hdr_log.read, chunk_entries=chunk_entries(len(sources)))

    def rows(source: Source) -> Iterator[Intervals[Series]]:
        try:
            yield from read(source, rows_in=in_chunks if source.format == HDR else None)
        except InputError as error:
            source.context.account.lack(unreadable(source, error.reason))

    def windows(source: Source) -> Iterator[Intervals[Group]]:
        for chunk in rows(source):
            yield from adding[source.context.series.run].windowed(chunk, own_step(source))

    return [windows(source) for source in sources], adding


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

    def take(self, windows: Iterable[Intervals[Group]]) -> bool:
        """Answer windows and add them up; return whether they came one after another, all in one layout: else it stops."""
        for part in windows:
            after, self._last = int(part.start_ns[0]) > self._last, int(part.start_ns[-1])
            alike, self._layout = self._layout in (None, part.layout), part.layout
            if not (after and alike):
                return False
            self._answer(part)
            self._total.add(merged([with_one_span(part)]))
        return True

    @property
    def tables(self) -> list[Table]:
        """Return the tables of all windows that were answered, in any order."""
        self._answer_waiting()
        return self._tables

    @property
    def sums(self) -> list[Intervals[Group]]:
        """Return the sums of all windows, one a layout."""
        return self._total.parts()

    def _answer(self, part: Intervals[Group]) -> None:
        """Answer windows that are whole; a few wait for others."""
        if len(part.bins) >= SMALL_ENTRIES:
            self._tables.append(rows_of(part, self._empty, self._wanted))
            return
        self._waiting.append(replace(part, bins=part.bins.copy(), counts=part.counts.copy()))  # not all that it was cut from
        if sum(len(waiting.bins) for waiting in self._waiting) >= SMALL_ENTRIES:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        if self._waiting:
            rows = concatenate(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
            self._tables.append(rows_of(rows, self._empty, self._wanted))
            self._waiting = []


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
    met = Sums()
    try:
        logs, adding = streams(files, question, question.step, sources)
        in_order = gathered.take(union(logs, entries_at_once(sources), slack_ns=question.step))
        met = all_of(adding)
        sums = gathered.sums if in_order and len(set().union(*met.layouts.values())) <= 1 else None
    except CapacityError:  # of the whole range, perhaps, and not of any window
        sums = None
    if sums is None:
        for source, notes in zip(sources, before, strict=True):
            source.context.account.replace(Account(path=str(source.path), notes=notes))
        return None
    if not gathered.tables:
        return None
    met.parts = spanned(sums)
    answer = answer_of(files.merged_of(met, question, question.step, sources, apart), question)
    if LAYER in answer.by and LAYER not in question.by:
        return None  # several layers have a column, which windows that are let go do not bear
    if any(outcome_of(kind) == FAILED for _, kind in met.layouts):
        return None  # a percentile of some operations cannot become one of all
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
