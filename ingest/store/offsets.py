"""Offsets of single events as a store keeps them (1 ms bins in windows of 1 s): the map of a question, the ticks of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.coverage import Missing
from ingest.core.errors import InputError, listed
from ingest.core.grid import SECOND
from ingest.core.intervals import Int, Intervals, Sum, distinct
from ingest.core.labels import Group
from ingest.core.offsets import Periods, counted_offsets
from ingest.query.coverage import stored_entries
from ingest.query.offsets import (
    ALL,
    HELD_ENTRIES,
    Key,
    Met,
    OffsetMap,
    OffsetOverview,
    TickSums,
    WantedOffsets,
    all_ticks,
    cut_short,
    kept_of,
    map_of,
    name_of,
    of_windows,
    selection_in_words,
)
from ingest.query.plan import troubles
from ingest.query.question import AUTO, run_left_out
from ingest.store.records import COMPLETE, UNKNOWN_ZERO, on_one_clock, selected_records

if TYPE_CHECKING:
    from ingest.store import Store
    from ingest.store.records import RunRecord


def from_store(store: Store, wanted: WantedOffsets) -> OffsetMap:
    """Return the map of the offsets that a store keeps.

    Raises InputError where it keeps none of these runs or none is selected, UsageError for labels that there are not and for
    rows finer than 1 ms.
    """
    records = store.runs()
    labels = {record.run: dict(record.labels) for record in records}
    if records:
        wanted.check(labels)
    asked = selected_records(records, wanted.question.runs)
    mine = [record for record in asked if wanted.takes(record.run)]
    apart = on_one_clock(mine, replace(wanted.question, step=AUTO))[1]
    chosen = [record for record in asked if record not in apart]
    key = wanted.key(labels)
    total: Sum[Group] = Sum(HELD_ENTRIES)
    empty, accounts, missing = [], list[Mapping[str, Any]](), list[Missing]()
    for record in chosen:
        begin, end = wanted.question.edges(record.run, record.start_ns)
        any_counts = False
        for part in counts_of_store(store, record.run, wanted, key, begin, end):
            any_counts = True
            total.add(part)
        empty += [] if any_counts else [record.run]
        own = [source.account for source in store.sources(record.run)]
        accounts += own
        missing += stored_entries(record.run, own)
    parts = total.parts()
    if not parts:
        if wanted.question.begin or wanted.question.end:
            raise InputError(f"no event matches {selection_in_words(wanted)}")
        raise InputError(f"{listed(empty) or 'these runs'}: no offsets were stored; only single events have them")
    return map_of(
        parts,
        wanted,
        starts={record.run: record.start_ns for record in chosen},
        relative=all(record.zero == UNKNOWN_ZERO for record in chosen if wanted.takes(record.run)),
        warnings=(
            *(_apart(store, record) for record in apart),
            *_store_warnings(chosen, wanted.periods, empty),
            *troubles(accounts),
            *cut_short(missing),
        ),
        answered_from="documents",
    )


def _apart(store: Store, record: RunRecord) -> str:
    """Return the sentence about a run that has no clock, beside others that have."""
    return run_left_out(record.run, sum(int(source.account.get("samples", 0)) for source in store.sources(record.run)))


def _store_warnings(records: Iterable[RunRecord], periods: Periods, empty: Sequence[str]) -> list[str]:
    texts = [f"{listed(empty)}: no offsets are stored, or none in this time: left out of the map"] if empty else []
    texts += [
        f"the load of {record.run} was cut off: run it again to complete it" for record in records if record.state != COMPLETE
    ]
    if periods.resampled:
        texts.append(
            f"{periods.rows} rows are not whole milliseconds: bins of 1 ms were shared out by overlap; files give exact counts"
        )
    return texts


def counts_of_store(
    store: Store, run: str, wanted: WantedOffsets, key: Key, begin_ns: int | None, end_ns: int | None
) -> Iterator[Intervals[Group]]:
    """Yield the counts of a run's offsets in [begin, end), read in batches.

    Where labels choose, other series are read where periods or the range cut through seconds alone: else it is enough to know in
    which seconds the run has events at all.
    """
    periods = wanted.periods
    low = None if begin_ns is None else -(-begin_ns // SECOND) * SECOND
    high = None if end_ns is None else end_ns // SECOND * SECOND
    within_one = low is not None and high is not None and low > high
    if not wanted.selects or periods.period_ns % SECOND or within_one:
        for windows in store.offset_windows(run, begin_ns, end_ns):
            yield from of_windows(windows, periods, key)
        return
    for windows in store.offset_windows(run, begin_ns, end_ns, key):
        yield from of_windows(windows, periods, key)
    yield _occupied(store.offset_seconds(run, low, high), run, periods)
    for first, last in ((begin_ns, low), (high, end_ns)):
        if first != last:
            for windows in store.offset_windows(run, first, last):
                yield from of_windows(windows, periods, lambda _: None)


def _occupied(seconds: Int, run: str, periods: Periods) -> Intervals[Group]:
    """Return that a run has events in seconds, as counts: how many does not matter."""
    columns = distinct(periods.column(seconds))
    zeros = np.zeros(len(columns), np.int64)
    return counted_offsets([(ALL, run)], zeros, columns, zeros, None, periods.period_ns, periods.layout)


def overviews_from_store(store: Store, names: Mapping[str, str], wanted: WantedOffsets, *, full: bool) -> list[OffsetOverview]:
    """Return the offsets that a store keeps of runs."""
    records = {record.run: record for record in store.runs()}
    labels = {run: dict(record.labels) for run, record in records.items()}
    wanted.check(labels)
    name = name_of(wanted, labels, names)

    def read(total: Met | TickSums) -> None:
        for run in sorted(names):
            begin, end = wanted.question.edges(run, records[run].start_ns)
            for windows in store.offset_windows(run, begin, end):
                total.add(names[run], windows, name)

    met = Met()
    read(met)
    kept, there = kept_of(met, full=full)
    if not there:
        read(kept)
    overviews = []
    for ticks in all_ticks(met, kept):
        mine = tuple(run for run in sorted(names) if names[run] == ticks.run)
        relative = all(records[run].zero == UNKNOWN_ZERO for run in mine)
        accounts = {run: [source.account for source in store.sources(run)] for run in mine}
        cut = (f"the load of {run} was cut off: run it again to complete it" for run in mine if records[run].state != COMPLETE)
        start = min(records[run].start_ns for run in mine)
        lacks = cut_short(entry for run, own in accounts.items() for entry in stored_entries(run, own))
        said = troubles(account for own in accounts.values() for account in own)
        overviews.append(OffsetOverview(ticks, mine, start, relative, warnings=(*cut, *said, *lacks)))
    return overviews
