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

from ingest.core.coverage import Caveat, Missing, labels_of
from ingest.core.errors import InputError
from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Int, Intervals, Sum
from ingest.core.labels import Series
from ingest.core.layout import hdr_layout
from ingest.core.units import MOST_NS
from ingest.read.account import Account
from ingest.read.context import Context, TimeZero
from ingest.read.described.table import usual_width
from ingest.read.format_names import PGBENCH
from ingest.read.formats import AGAIN, ROW_LABELS, Reader
from ingest.read.integers import PlainIntegers
from ingest.read.missing import RejectedLines
from ingest.read.operation_log import binned
from ingest.read.operations import DAY_NS, REPEATED, Repeats, bounded
from ingest.read.sources import Around, Source
from ingest.read.text import CUT_OFF, head, name_without, whole_blocks

US, SECOND = 1000, 1_000_000_000
MOST_WAITING = 1 << 18  # transactions that are held one by one
LONGEST_CELL = 15
EARLIEST = 10**8  # seconds have nine digits
DIGITS = 3
COLUMNS = (6, 7, 8)
LAG, RETRIES = 6, 7
END, TIME = 1, 2  # of what is taken: script, end, time and lag
TRIED_LEAST = 5
WORDS = ("skipped", "failed", "serialization", "deadlock")
N = rb"\d{1,18}"
ROW = re.compile(rb"^%b %b (?:%b|skipped|failed|serialization|deadlock) %b \d{9,10} \d{1,6}(?: %b){0,2}\s*$" % (N, N, N, N, N))
LEADING_ZERO = re.compile(rb" 0\d")
NOT_A_ROW = "not a transaction as pgbench writes them"
SEVENTH_LAG = "its seventh column is taken as the lag of -R, since it is more than a number of tries"
SEVENTH_TRIES = "its seventh column is taken as the number of tries of --max-tries, since it is small, and not as the lag of -R"
LOG_ALL = "percentiles are those of the sample; log all of them where counts, rates or high percentiles matter"
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
        account.caveats.append(Caveat("seventh-column", str(path), SEVENTH_LAG if lagged else SEVENTH_TRIES, LOG_BOTH))
    taking = _Taking(account, wide, lagged=lagged)
    held: dict[str, Sum[Series]] = {kind: Sum() for kind in ("service", *(("response", "wait") if lagged else ()))}
    layout, waiting, rest = hdr_layout(DIGITS, 0, 1), 0, b""
    parts: list[Int] = []
    begin_ns, end_ns = INT64_MAX, -INT64_MAX
    lost, repeats = RejectedLines(account, labels_of(context.series, unknown=ROW_LABELS)), Repeats(account)

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
            begin_ns = min(begin_ns, int((parts[-1][:, END] - parts[-1][:, TIME]).min(initial=INT64_MAX)))
            end_ns = max(end_ns, int(parts[-1][:, END].max(initial=-INT64_MAX)))
            lost.passed(parts[-1][:, END] + context.offset_ns)
            repeats.add(parts[-1][:, END], parts[-1][:, TIME], parts[-1][:, 0], range(len(taking.scripts)))
            waiting += len(parts[-1])
        if waiting >= MOST_WAITING:
            fold()
            waiting = 0
    if rest.strip():
        account.reject(CUT_OFF, [taking.lines + 1])
    lost.finish()
    repeats.finish()
    if (unlogged := taking.unlogged - account.rows_rejected) > 0:
        sentence = f"its numbers of transactions leave out at least {unlogged:,}: a sample (--sampling-rate), or a part of a log"
        caveat = Caveat("sampled-log", str(path), sentence, LOG_ALL)
        account.lack(Missing(labels_of(context.series, unknown=ROW_LABELS), None, None, None, 0, None, caveat))
    if taking.repeated:
        account.note(REPEATED)
    for word, many in taking.left_out.items():
        account.skip(f"transactions without a time: {word}", many)
    if waiting:
        fold()
    several = len(taking.scripts) > 1
    for kind, sums in held.items():
        for rows in sums.parts():
            account.samples += int(rows.counts.sum()) if kind == "service" else 0
            codes = np.array([taking.scripts[int(series.op)] for series in rows.table], np.int64)[rows.series]
            ordered = bounded(
                rows.take(np.lexsort((rows.start_ns, codes))), begin_ns + context.offset_ns, end_ns + context.offset_ns
            )
            yield ordered.relabelled(lambda series: series.replaced(op=f"script {series.op}" if several else "transaction"))


class _Taking:
    """Takes the lines of one log of `width` columns: whole blocks at once, lines of another shape one by one.

    `scripts` are numbered as they come, `lines` is how many lines were taken.
    """

    def __init__(self, account: Account, width: int, *, lagged: bool) -> None:
        self.scripts: dict[int, int] = {}
        self.left_out = dict.fromkeys(WORDS, 0)
        self.lines = 0
        self._newest, self._went_back = 0, False
        self._numbers: dict[int, tuple[int, int]] = {}  # by client: how many lines, and the largest number
        self._account = account
        self._lagged = lagged
        self._integers = PlainIntegers(width)
        self._plain = re.compile(rb"(?:\d{1,18} ){4}\d{9,10} \d{1,6}(?: \d{1,18}){%d}" % (width - min(COLUMNS)))

    def transactions(self, text: bytes) -> Int:
        """Return script, end, time and lag of each transaction of whole lines, in ns, in their order."""
        lines = text.split(b"\n")[:-1]
        numbers: Int = np.arange(len(lines))
        cells = None if LEADING_ZERO.search(text) else self._columns(text)
        if cells is None:  # some line is not of whole numbers alone
            plain = [number for number, line in enumerate(lines) if self._plain.fullmatch(line)]
            numbers = np.array(plain, np.int64)
            cells = self._columns(b"".join([lines[number] + b"\n" for number in plain])) or [numbers] * self._integers.width
        script, seconds, us, took = cells[3], cells[4], cells[5], cells[2]
        lag = cells[LAG] if self._lagged else np.zeros_like(took)
        sound = (script < 10**LONGEST_CELL) & (took <= DAY_NS // US) & (lag <= took) & (us < 10**6)
        sound &= (seconds >= EARLIEST) & (seconds < MOST_NS // SECOND)
        self._count(cells[0][sound], cells[1][sound])
        numbers, columns = numbers[sound], np.column_stack([script, seconds * SECOND + us * US, took * US, lag * US])[sound]
        odd = np.setdiff1d(np.arange(len(lines)), numbers).tolist()
        singles = [(number, row) for number in odd if (row := self._single(lines[number], number)) is not None]
        self.lines += len(lines)
        if singles:
            numbers = np.concatenate([numbers, np.array([number for number, _ in singles], np.int64)])
            columns = np.concatenate([columns, np.array([row for _, row in singles], np.int64)])
        columns = np.asarray(columns[np.argsort(numbers)], np.int64)
        if len(columns):
            ends = columns[:, END]
            self._went_back |= bool(ends[0] < self._newest or (np.diff(ends) < 0).any())
            self._newest = max(self._newest, int(ends.max()))
            # Scripts are numbered by first appearance.
            known, first, where = np.unique(columns[:, 0], return_index=True, return_inverse=True)
            for place in np.argsort(first).tolist():
                self.scripts.setdefault(int(known[place]), len(self.scripts))
            columns[:, 0] = np.array([self.scripts[script] for script in known.tolist()], np.int64)[where.reshape(-1)]
        return columns

    @property
    def unlogged(self) -> int:
        """Return how many transactions are not in the log by their numbers, which count on for each client from 0 or 1."""
        return sum(max(largest - lines, 0) for lines, largest in self._numbers.values())

    @property
    def repeated(self) -> bool:
        """Return whether a client has more lines than its numbers allow, and time goes back: no second run behind the first."""
        return self._went_back and any(lines > largest + 1 for lines, largest in self._numbers.values())

    def _count(self, clients: Int, numbers: Int) -> None:
        """Take the numbers of lines."""
        known, place, own_lines = np.unique(clients, return_inverse=True, return_counts=True)
        most = np.zeros(len(known), np.int64)
        np.maximum.at(most, place.reshape(-1), numbers)
        for client, more, newest in zip(known.tolist(), own_lines.tolist(), most.tolist(), strict=True):
            lines, largest = self._numbers.get(client, (0, 0))
            self._numbers[client] = lines + more, max(largest, newest)

    def _columns(self, text: bytes) -> list[Int] | None:
        """Return the columns of lines of whole numbers alone; None where one is no such line, and of no line."""
        return self._integers.columns(np.frombuffer(text.replace(b" ", b", "), np.uint8))

    def _single(self, line: bytes, number: int) -> tuple[int, int, int, int] | None:
        """Return one transaction, None of a line that is none; `number` is its place among the lines of its block."""
        place = self.lines + number + 1
        if not line.strip():
            return None
        cells = line.split()
        if not ROW.match(line) or len(cells) not in COLUMNS:
            self._account.reject(NOT_A_ROW, [place])
            return None
        self._count(np.array([int(cells[0])]), np.array([int(cells[1])]))
        word = cells[2].decode()
        if word in self.left_out:
            self.left_out[word] += 1
            return None
        took, lag = int(cells[2]) * US, int(cells[LAG]) * US if self._lagged and len(cells) > LAG else 0
        end = int(cells[4]) * SECOND + int(cells[5]) * US
        if took > DAY_NS or end >= MOST_NS or len(cells[3]) > LONGEST_CELL:
            self._account.reject(NOT_A_ROW, [place])
        elif lag > took:
            self._account.reject("a lag that is longer than its transaction took", [place])
        else:
            return int(cells[3]), end, took, lag
        return None


def _lagged(path: Path, context: Context) -> tuple[int, bool]:
    """Return the number of columns, and whether the seventh is a lag: of eight it is; of seven if more than a number of tries."""
    lines = [line.split() for line in head(path, upto=context.upto).split(b"\n")[:200] if ROW.match(line)]
    wide = usual_width(map(len, lines))
    if wide != RETRIES:
        return wide, wide > RETRIES
    return wide, max(int(cells[LAG]) for cells in lines if len(cells) > LAG) > TRIED_LEAST


def locate(path: Path, around: Around) -> Source:
    """Return the source of a log; InputError where no transaction can be read."""
    context = around.context(path, process=name_without(path, ()))
    ends = [line.split() for line in head(path, upto=context.upto).split(b"\n") if ROW.match(line)]
    if not ends:
        aggregates = AGGREGATE.match(head(path, upto=context.upto).split(b"\n", 1)[0])
        raise InputError(AGGREGATES if aggregates else "holds no transaction that can be read", path)
    first = min(int(cells[4]) * SECOND + int(cells[5]) * US for cells in ends)
    zero = around.zero(path, TimeZero(first, "epoch stamps in the log"), lambda: 0, absolute=True)
    return Source(path, PGBENCH, replace(context, zero=zero), SECOND, str(hdr_layout(DIGITS, 0, 1)))


READER = Reader(locate, rows=read, accepts=looks_like_pgbench, grows=AGAIN, by_second=True)
