"""Transactions of pgbench: `pgbench -l`, with `-R` also when each was due.

    0 1 2991 0 1795329757 42528 89 0      client, number, time in us, script, end in s and us, lag in us (-R), retries
    0 135 skipped 0 1795329758 461283 0 0

With a rate, the time of a transaction counts from when it was due: it is the response time, the lag is how long it waited before
it began, and what is left is the service time. Skipped and failed transactions have no time and are counted as such.

Source: pgbench's documentation, per-transaction logging; checked against its own summary of recorded runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.core.caveats import Caveat
from ingest.core.errors import InputError
from ingest.core.intervals import Int, Intervals, Sum
from ingest.core.layout import hdr_layout
from ingest.core.series import Series
from ingest.core.timing import MOST_NS
from ingest.read.account import Account
from ingest.read.context import Context, TimeZero
from ingest.read.delimited.operations import binned
from ingest.read.events import DAY_NS
from ingest.read.format_names import PGBENCH
from ingest.read.formats import AGAIN, Reader
from ingest.read.sources import Around, Source
from ingest.read.text import CUT_OFF, head, name_without, whole_blocks

Bytes = NDArray[np.uint8]
US, SECOND = 1000, 1_000_000_000
MOST_WAITING = 1 << 18  # transactions that are held one by one
BLANK, NEWLINE, ZERO, NINE = b" \n09"
SECONDS_DIGITS, US_DIGITS, LONGEST_CELL = 9, 6, 15
DIGITS = 3
COLUMNS = (6, 7, 8)
LAG, RETRIES = 6, 7
TRIED_LEAST = 5
WORDS = ("skipped", "failed", "serialization", "deadlock")
ROW = re.compile(rb"^\d+ \d+ (?:\d+|skipped|failed|serialization|deadlock) \d+ \d{9,10} \d{1,6}(?: \d+){0,2}\s*$")
NOT_A_ROW = "not a transaction as pgbench writes them"
LAG_TOO_LONG = "a lag that is longer than its transaction took"
NONE = "holds no transaction that can be read"
WITHOUT_TIME = "transactions without a time: {}"
SEVENTH = "seventh-column"
SEVENTH_LAG = "its seventh column is taken as the lag of -R, since it is more than a number of tries"
SEVENTH_TRIES = "its seventh column is taken as the number of tries of --max-tries, since it is small, and not as the lag of -R"
LOG_BOTH = "log with -R and --max-tries (eight columns) where it is not so"
AGGREGATES = "sums of pgbench --aggregate-interval hold no latencies, so no percentiles: run pgbench -l without it"
AGGREGATE = re.compile(rb"^\d{9,10}( \d+){5,14}\s*$")


def looks_like_pgbench(_: Path, start: bytes) -> bool:
    """Return whether the first lines are transactions of pgbench."""
    whole = [line for line in start.split(b"\n")[:20] if line.strip()][:19]
    return bool(whole) and all(ROW.match(line) for line in whole)


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield the times of transactions in rows of a second: service, with a rate also response and wait.

    Error bound 1/1024, exact minimum, maximum and sum. Lines that are none are counted with their reason.
    """
    account = context.account
    wide, lagged = _lagged(path, context)
    if wide == RETRIES:
        account.caveats.append(Caveat(SEVENTH, str(path), SEVENTH_LAG if lagged else SEVENTH_TRIES, LOG_BOTH))
    taking = _Taking(account, lagged=lagged)
    held: dict[str, Sum[Series]] = {kind: Sum() for kind in ("service", *(("response", "wait") if lagged else ()))}
    layout, waiting, rest = hdr_layout(DIGITS, 0, 1), 0, b""
    parts: list[Int] = []

    def fold() -> None:
        """Bin the transactions that wait; of each kind only the sums are kept."""
        codes, ends, times, lags = (np.ascontiguousarray(column) for column in np.concatenate(parts).T)
        values = {"service": times - lags, "response": times, "wait": lags}
        for kind, rows in held.items():
            table = tuple(context.series.replaced(op=str(script), kind=kind) for script in taking.scripts)
            rows.add(binned(table, codes, ends + context.offset_ns, values[kind], layout))
        parts.clear()

    for block in whole_blocks(path, account, context.upto):
        text = rest + bytes(block)
        cut = text.rfind(b"\n") + 1
        rest = text[cut:]
        if cut:
            parts.append(taking.transactions(text[:cut]))
            account.accept(len(parts[-1]))
            waiting += len(parts[-1])
        if waiting >= MOST_WAITING:
            fold()
            waiting = 0
    if rest.strip():
        account.reject(CUT_OFF, [taking.lines + 1])
    for word, many in taking.left_out.items():
        if many:
            account.skip(WITHOUT_TIME.format(word), many)
    if waiting:
        fold()
    several = len(taking.scripts) > 1
    for kind, sums in held.items():
        for rows in sums.parts():
            account.samples += int(rows.counts.sum()) if kind == "service" else 0
            codes = np.array([taking.scripts[int(series.op)] for series in rows.table], np.int64)[rows.series]
            ordered = rows.take(np.lexsort((rows.start_ns, codes)))
            yield ordered.relabelled(lambda series: series.replaced(op=f"script {series.op}" if several else "transaction"))


class _Taking:
    """Takes the lines of one log: whole blocks at once, lines of another shape one by one.

    `scripts` are numbered as they come, `lines` is how many lines were taken.
    """

    def __init__(self, account: Account, *, lagged: bool) -> None:
        self.scripts: dict[int, int] = {}
        self.left_out = dict.fromkeys(WORDS, 0)
        self.lines = 0
        self._account = account
        self._lagged = lagged

    def transactions(self, text: bytes) -> Int:
        """Return script, end, time and lag of each transaction of whole lines, in ns, in their order."""
        numbers, columns, odd = _plain(np.frombuffer(text, np.uint8), lagged=self._lagged)
        singles = [(number, row) for number, begin, end in odd if (row := self._single(text[begin:end], number)) is not None]
        self.lines += text.count(b"\n")
        if singles:
            numbers = np.concatenate([numbers, np.array([number for number, _ in singles], np.int64)])
            columns = np.concatenate([columns, np.array([row for _, row in singles], np.int64)])
            order = np.argsort(numbers)
            columns = columns[order]
        if len(columns):
            columns[:, 0] = self._codes(columns[:, 0])
        return columns

    def _codes(self, scripts: Int) -> Int:
        """Return the number of each script, by first appearance."""
        known, first, where = np.unique(scripts, return_index=True, return_inverse=True)
        for place in np.argsort(first).tolist():
            self.scripts.setdefault(int(known[place]), len(self.scripts))
        codes: Int = np.array([self.scripts[script] for script in known.tolist()], np.int64)[where.reshape(-1)]
        return codes

    def _single(self, line: bytes, number: int) -> tuple[int, int, int, int] | None:
        """Return one transaction, None of a line that is none; `number` is its place among the lines of its block."""
        place = self.lines + number + 1
        if not line.strip():
            return None
        cells = line.split()
        if not ROW.match(line) or len(cells) not in COLUMNS:
            self._account.reject(NOT_A_ROW, [place])
            return None
        word = cells[2].decode()
        if word in self.left_out:
            self.left_out[word] += 1
            return None
        took, lag = int(cells[2]) * US, int(cells[LAG]) * US if self._lagged and len(cells) > LAG else 0
        end = int(cells[4]) * SECOND + int(cells[5]) * US
        if took > DAY_NS or end >= MOST_NS or len(cells[3]) > LONGEST_CELL:
            self._account.reject(NOT_A_ROW, [place])
        elif lag > took:
            self._account.reject(LAG_TOO_LONG, [place])
        else:
            return int(cells[3]), end, took, lag
        return None


def _plain(data: Bytes, *, lagged: bool) -> tuple[Int, Int, list[tuple[int, int, int]]]:
    """Return the numbers and columns (script, end, time, lag) of the lines that are nothing but whole numbers, and all others.

    Others are given as number, begin and end. Lines of digits and single blanks alone are parsed column by column for the whole
    block; what is not certain there is left to be looked at line by line.
    """
    separators = np.flatnonzero(data <= BLANK)
    is_end = data[separators] == NEWLINE
    ends = separators[is_end]
    begins = np.append(0, ends[:-1] + 1)
    last = np.flatnonzero(is_end)
    cells = np.diff(last, prepend=-1)
    strange = np.add.reduceat(((data > NINE) | (data < ZERO)).astype(np.int32), begins) != cells  # any byte but these
    blank = np.add.reduceat((data == BLANK).astype(np.int32), begins) != cells - 1  # tabs and the like
    good = ~strange & ~blank & (cells >= min(COLUMNS)) & (cells <= max(COLUMNS))
    numbers = np.flatnonzero(good)
    columns = np.empty((len(numbers), 4), np.int64)
    sure = np.ones(len(numbers), np.bool_)
    for width in COLUMNS:
        chosen = np.flatnonzero(cells[numbers] == width)
        lines = numbers[chosen]
        edges = np.column_stack([begins[lines] - 1, *(separators[last[lines] - width + 1 + place] for place in range(width))])
        lengths = np.diff(edges) - 1
        fits = (lengths > 0).all(axis=1) & (lengths <= LONGEST_CELL).all(axis=1)
        fits &= (lengths[:, 4] >= SECONDS_DIGITS) & (lengths[:, 4] <= SECONDS_DIGITS + 1) & (lengths[:, 5] <= US_DIGITS)
        wanted = [2, 3, 4, 5, *([LAG] if lagged and width > LAG else [])]
        values = {place: _numbers(data, edges[:, place] + 1, np.where(fits, lengths[:, place], 0)) for place in wanted}
        took, lag = values[2] * US, values.get(LAG, np.zeros(len(lines), np.int64)) * US
        columns[chosen] = np.column_stack([values[3], values[4] * SECOND + values[5] * US, took, lag])
        sure[chosen] = fits & (took <= DAY_NS) & (lag <= took) & (values[4] < MOST_NS // SECOND)
    rest = np.ones(len(ends), np.bool_)
    rest[numbers[sure]] = False
    others = np.flatnonzero(rest)
    places = zip(others.tolist(), begins[others].tolist(), ends[others].tolist(), strict=True)
    return numbers[sure], columns[sure], list(places)


def _numbers(data: Bytes, begins: Int, lengths: Int) -> Int:
    """Return the whole numbers of so many digits that begin at places of a text, at most 15 digits."""
    values = np.zeros(len(begins), np.int64)
    for place in range(int(lengths.max(initial=0))):
        there = np.flatnonzero(lengths > place)
        values[there] = values[there] * 10 + (data[begins[there] + place] - ZERO)
    return values


def _lagged(path: Path, context: Context) -> tuple[int, bool]:
    """Return the number of columns, and whether the seventh is a lag: of eight it is; of seven if more than a number of tries."""
    lines = [line.split() for line in head(path, upto=context.upto).split(b"\n")[:200] if ROW.match(line)]
    wide = max((len(cells) for cells in lines), default=0)
    if wide != RETRIES:
        return wide, wide > RETRIES
    return wide, max(int(cells[LAG]) for cells in lines if len(cells) > LAG) > TRIED_LEAST


def _first_ns(path: Path, context: Context) -> int:
    ends = [line.split() for line in head(path, upto=context.upto).split(b"\n") if ROW.match(line)]
    if not ends:
        aggregates = AGGREGATE.match(head(path, upto=context.upto).split(b"\n", 1)[0])
        raise InputError(AGGREGATES if aggregates else NONE, path)
    return min(int(cells[4]) * SECOND + int(cells[5]) * US for cells in ends)


def locate(path: Path, around: Around) -> Source:
    """Return the source of a log; InputError where no transaction can be read."""
    context = around.context(path, process=name_without(path, ()))
    zero = around.zero(path, TimeZero(_first_ns(path, context), "epoch stamps in the log"), lambda: 0, absolute=True)
    return Source(path, PGBENCH, replace(context, zero=zero), SECOND, str(hdr_layout(DIGITS, 0, 1)))


READER = Reader(locate, rows=read, accepts=looks_like_pgbench, grows=AGAIN)
