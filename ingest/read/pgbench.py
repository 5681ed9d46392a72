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

from ingest.core.caveats import Caveat
from ingest.core.errors import InputError
from ingest.core.intervals import Int, Intervals
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

US, SECOND = 1000, 1_000_000_000
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
    scripts: dict[str, int] = {}
    parts: list[Int] = []  # script, end, time and lag of each transaction, an array a block
    left_out = dict.fromkeys(WORDS, 0)
    wide, lagged = _lagged(path, context)
    if wide == RETRIES:
        account.caveats.append(Caveat(SEVENTH, str(path), SEVENTH_LAG if lagged else SEVENTH_TRIES, LOG_BOTH))
    number, rest = 0, b""
    for block in whole_blocks(path, account, context.upto):
        text = rest + bytes(block)
        lines = text.split(b"\n")
        rest = lines.pop()
        columns: list[tuple[int, int, int, int]] = []
        for line in lines:
            number += 1
            _take(line, number, account, (columns, scripts, left_out), lagged=lagged)
        parts.append(np.array(columns, np.int64).reshape(-1, 4))
    if rest.strip():
        account.reject(CUT_OFF, [number + 1])
    for word, many in left_out.items():
        if many:
            account.skip(WITHOUT_TIME.format(word), many)
    taken = np.concatenate(parts) if parts else np.empty((0, 4), np.int64)
    account.accept(len(taken))
    if not len(taken):
        return
    codes, ends, times, lags = (np.ascontiguousarray(column) for column in taken.T)
    kinds: dict[str, Int] = {"service": times - lags}
    if lagged:
        kinds |= {"response": times, "wait": lags}
    several = len(scripts) > 1
    for kind, values in kinds.items():
        table = tuple(
            context.series.replaced(op=f"script {script}" if several else "transaction", kind=kind) for script in scripts
        )
        rows = binned(table, codes, ends + context.offset_ns, values, hdr_layout(DIGITS, 0, 1))
        account.samples += int(rows.counts.sum()) if kind == "service" else 0
        yield rows


def _take(
    line: bytes,
    number: int,
    account: Account,
    held: tuple[list[tuple[int, int, int, int]], dict[str, int], dict[str, int]],
    *,
    lagged: bool,
) -> None:
    columns, scripts, left_out = held
    if not line.strip():
        return
    cells = line.split()
    if not ROW.match(line) or len(cells) not in COLUMNS:
        account.reject(NOT_A_ROW, [number])
        return
    word = cells[2].decode()
    if word in left_out:
        left_out[word] += 1
        return
    took, lag = int(cells[2]) * US, int(cells[LAG]) * US if lagged and len(cells) > LAG else 0
    end = int(cells[4]) * SECOND + int(cells[5]) * US
    if took > DAY_NS or end >= MOST_NS:
        account.reject(NOT_A_ROW, [number])
    elif lag > took:
        account.reject(LAG_TOO_LONG, [number])
    else:
        columns.append((scripts.setdefault(cells[3].decode(), len(scripts)), end, took, lag))


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
