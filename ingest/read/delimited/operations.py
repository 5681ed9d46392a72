"""Operation logs: one line an operation, comma separated, the first line names the columns.

    start_us,end_us,op                           start_ms,latency_us,due_ms,op
    1700000000000000,1700000000001100,read       1700000000000,1100,1700000000000,read

A start and an end or a latency are needed; the unit is the ending of a column's name, else --recorded-unit. `op` and `tag`
are labels. Latency counts from the start that was: that is service time. Where the schedule is known (`--rate`, or
`--intended-start-column` with the time that each was due), response and wait time are worked out for each operation.

Operations are binned on the way in (3 digits: 0.1 %), each into the second in which it ended, exact minimum, maximum and
sum kept. Lines may come in any order: with --rate, the n-th to start is the n-th that was due.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError, counted
from ingest.core.grid import SECOND, window_start
from ingest.core.intervals import Exact, Int, Intervals
from ingest.core.layout import Layout, hdr_layout
from ingest.core.series import Series
from ingest.read.account import Account
from ingest.read.context import RATE, YEAR_NS, Context, TimeZero
from ingest.read.delimited.operation_lines import Taken, columns_of, read_lines, take
from ingest.read.format_names import OPERATIONS
from ingest.read.formats import AGAIN, Reader
from ingest.read.hdr.names import looks_like_operations
from ingest.read.schedule_seen import Seen
from ingest.read.sources import Around, Source
from ingest.read.text import head, name_without

LOOKED_AT = 101
DIGITS = 3
ENDINGS = (".hlog", ".hdr", ".histo", ".log", ".csv", ".txt")


def first_start_ns(path: Path, context: Context) -> int:
    """Return the start of the first operation, by the clock of most at the beginning; InputError if none can be read."""
    columns = columns_of(path, context)
    text = head(path, upto=context.upto).decode("utf-8", "replace").replace("\0", "")
    taken = Taken()
    for cells in csv.reader(text.splitlines()[1:]):
        if len(cells) == columns.width:
            take(cells, columns, taken)
        if len(taken.start) == LOOKED_AT:
            break
    if not taken.start:
        raise InputError("holds no operation that can be read", path)
    real = [start >= YEAR_NS for start in taken.start]
    return taken.start[real.index(2 * sum(real) >= len(real))]


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield service time, and with a schedule response and wait time, in rows of a second, exact minimum, maximum and sum.

    Error bound 1/1024. Raises InputError where a column is missing or there are more operations than can be held.
    """
    columns = columns_of(path, context)
    epoch = first_start_ns(path, context) >= YEAR_NS
    taken = read_lines(path, context, columns, epoch=epoch)
    count = len(taken.start)
    context.account.accept(count)
    if not count:
        return
    start, end, labels = (np.frombuffer(column, np.int64) for column in (taken.start, taken.end, taken.labels))
    rate = Fraction(context.options[RATE]) if RATE in context.options else None
    due: Int | None = None
    if columns.due is not None:
        due = np.frombuffer(taken.due, np.int64)
    elif rate is not None:
        due = np.empty(count, np.int64)
        due[np.argsort(start, kind="stable")] = due_at(int(start.min()), count, rate)
    kinds = {"service": end - start}
    if due is not None:
        early = int(np.count_nonzero(start < due))
        if early:
            context.account.note(f"{counted(early, 'operation')} began earlier than planned: response time counts from the start")
        due = np.minimum(due, start)
        kinds |= {"response": end - due, "wait": start - due}
    lag = None if due is None else int((start - due).max())
    seen = Seen(context.options.get(RATE, ""))
    shift = context.offset_ns + (0 if epoch else context.zero.epoch_ns or 0)
    for kind, values in kinds.items():
        table = tuple(context.series.replaced(op=op, tag=tag, kind=kind) for op, tag in taken.table)
        rows = binned(table, labels, end + shift, values, hdr_layout(DIGITS, 0, 1))
        context.account.samples += int(rows.counts.sum()) if kind == "service" else 0
        seen.add(rows)
        yield rows
    took = int(end.max() - start.min())
    context.account.schedule.append(seen.digest(context.series, span_ns=took, lag_ns=lag))


def due_at(start_ns: int, count: int, rate: Fraction) -> Int:
    """Return when each of `count` requests was due: start + n / rate, rounded down to ns, exact for any n."""
    numbers = np.arange(count, dtype=np.int64)
    interval = SECOND / rate
    whole, part = divmod(interval.numerator, interval.denominator)
    if part * count >= 2**63:
        exact = [start_ns + n * interval.numerator // interval.denominator for n in range(count)]
        return np.array(exact, np.int64)
    due: Int = start_ns + numbers * whole + numbers * part // interval.denominator
    return due


def binned(table: tuple[Series, ...], series: Int, ends: Int, values: Int, layout: Layout) -> Intervals[Series]:
    """Return single values as rows of a second, one a series and second, ordered by both."""
    window = window_start(ends, SECOND)
    order = np.lexsort((values, window, series))
    series, window, values = series[order], window[order], values[order]
    bins = layout.index(values)
    new_row = np.append(True, (np.diff(series) != 0) | (np.diff(window) != 0))
    new_bin = new_row | np.append(True, np.diff(bins) != 0)
    rows, entries = np.flatnonzero(new_row), np.flatnonzero(new_bin)
    last = np.append(rows[1:], len(values)) - 1
    return Intervals(
        layout=layout,
        table=table,
        series=series[rows],
        start_ns=window[rows],
        end_ns=window[rows] + SECOND,
        indptr=np.append(np.searchsorted(entries, rows), len(entries)),
        bins=bins[entries],
        counts=np.diff(np.append(entries, len(values))),
        exact=Exact(values[rows], values[last], np.add.reduceat(values, rows), np.ones(len(rows), np.bool_)),
    )


def last_end_ns(path: Path, context: Context) -> int:
    """Return when the last operation ended by the clock of the file, in ns; 0 if none can be read. Reads all of it."""
    quiet = replace(context, account=Account(path=str(path)), zero=TimeZero(0), offset_ns=0)
    return max((int(rows.end_ns.max()) for rows in read(path, quiet) if len(rows)), default=0)


def locate(path: Path, around: Around) -> Source:
    """Return the source of an operation log; InputError where a column is missing or no operation can be read."""
    context = around.context(path, process=name_without(path, ENDINGS))
    first = first_start_ns(path, context)
    dated = first >= YEAR_NS
    own = TimeZero(first, "epoch stamps in the log") if dated else TimeZero()
    zero = around.zero(path, own, lambda: last_end_ns(path, context), absolute=dated)
    return Source(path, OPERATIONS, replace(context, zero=zero), SECOND, str(hdr_layout(DIGITS, 0, 1)))


READER = Reader(locate, rows=read, accepts=lambda _, start: looks_like_operations(start), grows=AGAIN)
