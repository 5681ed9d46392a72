"""Long logs cut into ranges of time, each read and answered by a process of its own; where they meet, windows are added up.

A range answers the windows that only its own rows can reach. Those near a cut are handed over as they are. If a row
reached into the windows of another range after all, or lines of a tag did not follow one another across the cut, None is
returned, and the logs are read in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import CapacityError, InputError
from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Intervals, in_time_order, merged
from ingest.core.parallel import fork_map
from ingest.core.series import Group, Series
from ingest.query.plan import Sums
from ingest.query.question import Question
from ingest.query.streaming.gathered import Gathered
from ingest.query.streaming.long_logs import chunk_entries, entries_at_once, streams
from ingest.query.streaming.union import union
from ingest.query.summed import all_of
from ingest.query.table import Table
from ingest.read import Source
from ingest.read.account import Account
from ingest.read.context import EXPECTED
from ingest.read.hdr.ranges import Part, alike, cut, read_part, settled
from ingest.read.hdr.tails import Tail

if TYPE_CHECKING:
    from ingest.query.files import Files

MARGIN = 4


@dataclass(frozen=True, slots=True)
class _Range:
    """The parts of all logs in one range of time, and the starts [low, high) of the windows that are its own."""

    parts: Sequence[Part]
    low_ns: int
    high_ns: int

    def own(self, part: Intervals[Group]) -> NDArray[np.bool_]:
        """Return which windows are its own."""
        return (part.start_ns >= self.low_ns) & (part.start_ns < self.high_ns)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a range gave: tables of its own windows, the windows near its edges, sums of all, tails and accounts by log.

    `met` is what was met of all that is selected, also outside of the range that the question asks for.
    """

    tables: Sequence[Table]
    edges: Sequence[Intervals[Group]]
    sums: Sequence[Intervals[Group]]
    met: Sums
    tails: Sequence[Tail]
    accounts: Sequence[Account]


def in_ranges(files: Files, question: Question, gathered: Gathered, sources: Sequence[Source], width_ns: float) -> Sums | None:
    """Return what was met where all windows of the logs were gathered, their accounts settled; None leaves all as it was."""
    step = question.step if isinstance(question.step, int) else 0
    if files.jobs < 2 or any(source.context.options.get(EXPECTED) for source in sources):
        return None
    made = cut([source.path for source in sources], [source.context for source in sources], files.jobs)
    if made is None:
        return None
    margin = int(MARGIN * max(step, width_ns))
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
    if not in_one_layout(met):
        return None
    gathered.add_answers([table for outcome in parts for table in outcome.tables])
    if edges:
        gathered.answer(in_time_order(merged(edges)))
    for range_outcome in parts:
        for part in range_outcome.sums:
            gathered.sum(part)
    for place, source in enumerate(sources):
        settled(
            source.path,
            source.context,
            [outcome.tails[place] for outcome in parts],
            [outcome.accounts[place] for outcome in parts],
        )
    return met


def in_one_layout(met: Sums) -> bool:
    """Return whether all that was met is in one layout."""
    return len({layout for layouts in met.layouts.values() for layout in layouts}) <= 1


def _apart(ranges: Sequence[_Range], parts: Sequence[_Outcome]) -> bool:
    """Return whether no range has rows in windows that are another's own."""
    return not any(
        ranges[other].own(part).any()
        for number, outcome in enumerate(parts)
        for part in outcome.edges
        for other in range(len(ranges))
        if other != number
    )


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
