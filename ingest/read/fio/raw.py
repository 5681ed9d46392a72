"""Raw fio latency logs: `write_lat_log` without `log_avg_msec`, one row for each I/O.

    1005, 241908, 0, 4096, 0         time ms, latency, direction (0 read, 1 write, 2 trim), block size, priority
    1010, 98, 1, 4096, 0

`_clat` logs hold the kind completion, `_lat` total, `_slat` submission. A row is stamped when its I/O completed, in whole ms
since the start of fio's run (or 1970); an I/O of the first millisecond counts 1 ns after that, so that it lies in the first
window. Where fio logs the issue time (3.38), issue + latency is the completion to the ns. Traps, each refused or counted with
its line:

* four to eight columns, us or ns by version (`raw_shape`); averaged logs hold means and are refused;
* `per_job_logs=0` appends to what was there: rows of older runs are known by fio's own count of I/Os;
* `latency_target` resets set the clock back to 0 in mid-log;
* values are printed signed: a latency below zero is a fault of the clock;
* a value of another unit than it is taken for shows as I/Os that began before the run did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Bool, Int
from ingest.core.series import MIXED, OPS
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.delimited.arrow_lines import Form, IntegerLines, arrow, reject
from ingest.read.events import DAY_NS
from ingest.read.fio import clock
from ingest.read.fio.chains import DIRECTION, LAST_STAMP_MS, NOT_A_ROW, STAMP
from ingest.read.fio.hist import last_stamp_ms
from ingest.read.fio.raw_shape import DIRECTIONS, Shape, is_epoch, shape_of
from ingest.read.text import whole_blocks

MS = 1_000_000
DAY_MS = 86_400_000
LATEST_MS = 1000
TOO_LONG = "a latency of more than a day: damage, or another unit than it was taken for (--recorded-unit)"
NEGATIVE = "a latency below zero"
NO_SIZE = "block size 0: a mean over a window (log_avg_msec), no I/O"
JUMP = "clock jump: its stamp lies more than a day from the rows before and behind it"
OLDER = "row of an older run that was appended to"
OFFSETS = (
    "the fifth column is 0 in the first rows and an offset here (log_offset): fio up to 2.21 wrote us, 2.99 to 3.17 ns; say "
    "--fio-version or --recorded-unit"
)
INTEGER = r"-?\d{1,18}"
PRIORITY = r"(?:0x[0-9a-fA-F]{1,8}|\d{1,18})"


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the I/Os of a log in bounded chunks, ops as series of their own; latencies in ns, exact as fio measured them.

    Completions become epoch ns (relative ns where the context knows no start). Rejected rows are counted in the account
    with their lines. Raises InputError where the file is no raw log, or holds other lines and pyarrow is missing.
    """
    shape = shape_of(path, context)
    base = clock.OWN
    if not is_epoch(shape, context):
        base = clock.base_of(shape.lowest_ms, context, lambda: last_stamp_ms(path))
    for note in (base.note, shape.assumed):
        if note:
            context.account.note(note)
    rows = _Rows(shape, context, _older(path, shape, context), base.ms)
    for columns, lines in _rows_of(path, shape, context.account):
        if shape.assumed:
            priority = columns["priority"]
            other = np.flatnonzero((priority < 0) | (priority > 1))
            if len(other):
                raise InputError(OFFSETS, path, int(lines[other[0]]))
        yield rows.events(columns, lines)
    rows.note_doubts()


def _rows_of(path: Path, shape: Shape, account: Account) -> Iterator[tuple[Mapping[str, Int], Int]]:
    """Yield the columns of all rows of a log with their lines; damage at its end is noted, the rest kept."""
    lines = IntegerLines(shape.columns, lambda: _form(shape), account)
    for block in whole_blocks(path, account):
        yield from lines.columns(block)


def _form(shape: Shape) -> Form:
    """Return the form of a row, for Arrow."""
    pa = arrow()
    hexadecimal = {"priority"} if shape.hexadecimal else set()
    cells = (PRIORITY if name in hexadecimal else INTEGER for name in shape.columns)
    types = {name: pa.binary() if name in hexadecimal else pa.int64() for name in shape.columns}
    return Form(
        names=shape.columns,
        types=types,
        tiers=[(r"^[ \t]*" + r"[ \t]*,[ \t]*".join(cells) + r"[ \t]*\n$", types)],
        not_a_row=NOT_A_ROW,
        texts={name: rf"^[ \t]*{PRIORITY}[ \t]*$" for name in hexadecimal if name in types},
        hexadecimal=shape.hexadecimal,
    )


def _older(path: Path, shape: Shape, context: Context) -> dict[int, int]:
    """Return how many first rows of each direction belong to older runs that a shared log was appended to.

    fio's JSON knows how many I/Os the last run logged. Where time begins anew just before the last so many rows of the
    direction, what comes before is older; else all is taken.
    """
    if context.series.job or not context.jobs:
        return {}
    parts: list[tuple[Int, Int]] = []
    for columns, _ in _rows_of(path, shape, Account()):
        parts.append((columns["time"], columns["direction"]))
    if not parts:
        return {}
    time, direction = (np.concatenate(column) for column in zip(*parts, strict=True))
    older: dict[int, int] = {}
    for op, codes in ((MIXED, tuple(range(DIRECTIONS))), *((op, (code,)) for code, op in enumerate(OPS))):
        known = sum(job[key].count for job in context.jobs for key in job if key == (op, context.series.kind))
        rows = np.flatnonzero(np.isin(direction, codes))
        first = len(rows) - known
        if not known or first <= 0:
            continue
        if time[rows[first]] < time[rows[first - 1]]:
            older |= {code: int((direction[rows[:first]] == code).sum()) for code in codes}
        else:
            context.account.note(
                f"{op}: the log holds {len(rows)} rows, fio's JSON counts {known}: not of one run, or appended to one"
            )
    return older


@dataclass(slots=True)
class _Rows:
    """Makes events of the rows of one log, chunk by chunk, and remembers what is to be noted at its end."""

    shape: Shape
    context: Context
    older: dict[int, int]
    base_ms: int
    unix: bool = field(init=False)
    zero_ns: int = field(init=False)
    last_ms: int | None = None
    stamp_ms: int = 0
    restarted: bool = False
    early: int = 0
    early_line: int = 0

    def __post_init__(self) -> None:
        self.unix = is_epoch(self.shape, self.context)
        self.zero_ns = clock.zero_ns(self.context, self.base_ms)

    def events(self, columns: Mapping[str, Int], lines: Int) -> Events:
        """Return the events of a chunk of rows; what cannot be taken is rejected with its lines."""
        time, value, direction = (columns[name] for name in ("time", "value", "direction"))
        if self.base_ms:
            time = np.where(time < 0, time, np.maximum(time - self.base_ms, 0))
        issued = columns.get("issued")
        faults = self._faults(time, value, direction, columns["size"], lines)
        if faults is not None:
            good = np.flatnonzero(~faults)
            time, value, direction, lines = time[good], value[good], direction[good], lines[good]
            issued = None if issued is None else issued[good]
        latency = value * self.shape.unit_ns if self.shape.unit_ns > 1 else value
        end = self._ends(time, latency, issued)
        self._sanity(end, latency, lines)
        self.context.account.accept(len(end))
        base = (0 if self.unix else self.zero_ns) + self.context.offset_ns
        series = self.context.series
        return Events(tuple(series.replaced(op=op) for op in OPS), direction, end + base if base else end, latency)

    def _faults(self, time: Int, value: Int, direction: Int, size: Int, lines: Int) -> Bool | None:
        """Return which rows are left out, counted by reason; None if all are taken."""
        if not len(time):
            return None
        longest = DAY_NS // self.shape.unit_ns
        plain = (
            int(direction.view(np.uint64).max()) < DIRECTIONS
            and int(value.view(np.uint64).max()) <= longest
            and int(time.view(np.uint64).max()) < LAST_STAMP_MS
            and int(size.min()) > 0
        )
        jumps = self._jumps(time)
        if plain and jumps is None and not self.older:
            return None
        left = np.ones(len(time), np.bool_)
        for reason, bad in (
            (STAMP, (time < 0) | (time >= LAST_STAMP_MS)),
            (DIRECTION, (direction < 0) | (direction >= DIRECTIONS)),
            (NO_SIZE, size <= 0),
            (NEGATIVE, value < 0),
            (TOO_LONG, value > longest),
            (JUMP, np.zeros(len(time), np.bool_) if jumps is None else jumps),
            (OLDER, self._of_older(direction)),
        ):
            reject(self.context.account, reason, lines[left & bad])
            left &= ~bad
        return ~left

    def _jumps(self, time: Int) -> Bool | None:
        """Return the rows whose stamp alone lies a day or more from both neighbours; None if there are none."""
        lowest, highest = int(time.min()), int(time.max())
        last = highest if self.last_ms is None else self.last_ms
        if max(highest, last) - min(lowest, last) <= DAY_MS:
            self.last_ms = int(time[-1])
            return None
        # The first row has no row before it: it must not stand alone against the next two.
        step = np.diff(time, prepend=int(np.median(time[:3])) if self.last_ms is None else self.last_ms)
        self.last_ms = int(time[-1])
        if int(step.max()) <= DAY_MS and int(step.min()) >= -DAY_MS:
            return None
        back = np.append(-step[1:], 0)
        jumps: Bool = ((step > DAY_MS) & (back > DAY_MS)) | ((step < -DAY_MS) & (back < -DAY_MS))
        return jumps

    def _of_older(self, direction: Int) -> Bool:
        """Return which rows belong to older runs, and count them off."""
        older = np.zeros(len(direction), np.bool_)
        for code, left in self.older.items():
            rows = np.flatnonzero(direction == code)[:left]
            older[rows] = True
            self.older[code] = left - len(rows)
        return older

    def _ends(self, time: Int, latency: Int, issued: Int | None) -> Int:
        """Return when each completed, in ns of the log's clock."""
        end = time * MS
        if issued is not None and not self.unix:
            exact = issued + latency
            late = end + MS - exact
            end = np.where((issued > 0) & (late >= 0) & (late <= LATEST_MS * MS), exact, end)
        if self.unix:
            return end
        if len(end) and not int(end.min()):
            np.maximum(end, 1, out=end)
        return end + self._restart_ns(time) if self.context.restart_ns else end

    def _restart_ns(self, time: Int) -> Int:
        """Return what is added to stamps: nothing up to where the clock first runs back, a latency_target reset."""
        added = np.zeros(len(time), np.int64)
        back = np.flatnonzero(time < np.append(self.stamp_ms, time[:-1]))
        if self.restarted or len(back):
            added[0 if self.restarted else back[0] :] = self.context.restart_ns
            self.restarted = True
        self.stamp_ms = int(time[-1]) if len(time) else self.stamp_ms
        return added

    def _sanity(self, end: Int, latency: Int, lines: Int) -> None:
        """Count I/Os that would have begun before the log did: in the right unit there are none, but for a ramp's."""
        if self.unix or not len(end) or int(latency.max()) <= int(end.min()):
            return
        early = np.flatnonzero(latency > end + MS)
        if len(early):
            self.early_line = self.early_line or int(lines[early[0]])
            self.early += len(early)

    def note_doubts(self) -> None:
        """Note at the end what makes the unit doubtful, and why the start of the run is unknown."""
        if self.context.zero.origin in clock.UNKNOWN:
            self.context.account.note(f"the start of the run is unknown ({self.context.zero.origin}): {clock.REMEDY}")
        if self.early * 100 > self.context.account.accepted:
            self.context.account.note(
                f"{self.early} of {self.context.account.accepted} I/Os would start before the log does (the first in line "
                f"{self.early_line}): is the unit right? It was taken from {self.shape.told_by}; set another with --recorded-unit"
            )
