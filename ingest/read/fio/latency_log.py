"""Raw fio latency logs (`write_lat_log` without `log_avg_msec`): columns, unit, one row for each I/O.

Which columns a raw fio latency log has and in which unit it counts: by its version, its options and its first lines.

    time, value, direction, block size                       up to 3.17
    ..., block size, offset                                  2.1.11 to 3.17 with log_offset
    ..., block size, priority                                3.18 and later: 0 or 1, with log_prio (3.28) 0x and four digits
    ..., block size, offset, priority                        3.18 and later with log_offset
    ..., block size, offset, priority, issue time            3.38 and later with log_offset and log_issue_time
    time, mean, maximum, direction, block size, ...          3.37 and later with log_window_value=both: averaged

Values are us up to 2.21 and ns since 2.99. A unit that is neither given nor visible is refused, with the option that sets it. A
fifth column of zeros alone is taken for a priority, with a note: the offsets of two I/Os are both 0 only where a file is one
block.

Raw fio latency logs: `write_lat_log` without `log_avg_msec`, one row for each I/O.

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

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Bool, Int
from ingest.core.labels import MIXED, OPS
from ingest.core.units import figure
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.described.table import Form, IntegerLines, arrow, reject
from ingest.read.fio import clock
from ingest.read.fio.clock import DAY_MS, MS
from ingest.read.fio.names import NANOSECONDS_SINCE
from ingest.read.operations import DAY_NS
from ingest.read.text import head, whole_blocks

ROW = re.compile(rb"^[ \t]*\d{1,19}(?:[ \t]*,[ \t]*(?:-?\d{1,20}|0x[0-9a-fA-F]{1,8})){3,7}[ \t]*\r?$")
HEAD, LOOKED_AT = 1 << 14, 100
FEWEST, MOST = 4, 8
DIRECTIONS = 3
PRIORITY_SINCE = (3, 18)
ZEROS = (
    "the fifth column is 0 throughout: taken for the priority that fio 3.18 and later write, values in ns; an offset of fio up "
    "to 3.17 (--fio-version) is 0 throughout only where each file is one block"
)
EMPTY = "holds no line: fio measured no latency of this kind"
NO_ROWS = "no raw latency log: its lines are not time, value, direction, block size as fio writes them"
SIZES = {"us": 1000, "ns": 1}


class Shape(NamedTuple):
    """Where things stand in a row: `columns` names them all in order; `unit_ns` is what values are counted in.

    `first_ms` is the stamp of the first row, `lowest_ms` the lowest of the first rows. `assumed` says what was taken for granted
    from so many first `rows`.
    """

    columns: tuple[str, ...]
    unit_ns: int
    first_ms: int
    lowest_ms: int
    hexadecimal: bool
    told_by: str
    assumed: str = ""
    rows: int = 0


def shape_of(path: Path, context: Context) -> Shape:
    """Return the shape of a raw log; InputError where it is averaged, no such log, or without known columns or unit."""
    rows, direction = _first_rows(path, context)
    if _is_averaged(rows, direction):
        window = context.options.get("log_avg_msec", "")
        width = f" of {window} ms" if window else ""
        raise InputError(
            f"averaged (log_avg_msec): each row is a mean over a window{width}, and percentiles cannot be made of means; run fio "
            "without log_avg_msec, or with write_hist_log",
            path,
            1,
        )
    return _shape(rows, direction, context, path)


def averaged_shape_of(path: Path, context: Context) -> Shape | None:
    """Return the shape of an averaged log, None of a log of single I/Os; InputError as `shape_of`."""
    rows, direction = _first_rows(path, context)
    return _shape(rows, direction, context, path) if _is_averaged(rows, direction) else None


def direction_of(path: Path, context: Context) -> int | None:
    """Return the place of the direction in the rows of a log (of IOPS and bandwidth, too); None where it has no row."""
    rows = rows_of_text(head(path, HEAD))
    return _direction(rows, context, path) if rows else None


def first_stamps(path: Path, context: Context) -> list[int]:
    """Return the stamps in ms of the first rows of the commonest direction of a log."""
    rows, place = _first_rows(path, context)
    commonest = Counter(row[place] for row in rows).most_common(1)[0][0]
    return [int(row[0]) for row in rows if row[place] == commonest]


def _first_rows(path: Path, context: Context) -> tuple[Sequence[Sequence[bytes]], int]:
    """Return the cells of the first rows of a log, and the place of the direction in them; InputError where there are none."""
    text = head(path, HEAD)
    rows = rows_of_text(text)
    if not rows:
        raise InputError(NO_ROWS if text.strip(b"\r\n \t") else EMPTY, path, 1 if text else None)
    return rows, _direction(rows, context, path)


def _is_averaged(rows: Sequence[Sequence[bytes]], direction: int) -> bool:
    """Return whether most block sizes are 0, as fio writes them where a row is no single I/O."""
    sizes = [int(row[direction + 1]) for row in rows if row[direction + 1].isdigit()]
    return sum(size == 0 for size in sizes) * 2 > len(sizes)


def _shape(rows: Sequence[Sequence[bytes]], direction: int, context: Context, path: Path) -> Shape:
    after = [row[direction + 2 :] for row in rows]
    extra = _extra(after, context, path)
    columns = ("time", "value", *(("maximum",) if direction > 2 else ()), "direction", "size", *extra)
    hexadecimal = any(cell[:2] == b"0x" for cells in after for cell in cells)
    unit, told_by = _unit(columns, rows, context, path)
    lowest = min(int(row[0]) for row in rows)
    known = context.version or context.since or context.recorded_unit_ns
    assumed = ZEROS if extra == ("priority",) and not known and all(cells[0] == b"0" for cells in after) else ""
    return Shape(columns, unit, int(rows[0][0]), lowest, hexadecimal, told_by, assumed, len(rows))


@lru_cache(maxsize=1)  # asked for in turn by all that is to be known of a log
def rows_of_text(text: bytes) -> Sequence[Sequence[bytes]]:
    """Return the cells of the first rows that have the commonest number of columns."""
    lines = text.split(b"\n")
    first = (lines[:-1] or lines)[: 2 * LOOKED_AT]
    sound = (line for line in first if ROW.match(line) and FEWEST <= line.count(b",") + 1 <= MOST)
    rows = [line.translate(None, b" \t\r").split(b",") for line in islice(sound, LOOKED_AT)]
    widths = Counter(len(cells) for cells in rows)
    if not widths:
        return []
    width = widths.most_common(1)[0][0]
    return [cells for cells in rows if len(cells) == width and cells[0].isdigit()]


def _direction(rows: Sequence[Sequence[bytes]], context: Context, path: Path) -> int:
    """Return the place of the direction: the third column, or the fourth where a maximum stands before it."""
    places = [
        place
        for place in (2, 3)
        if place + 1 < len(rows[0]) and 2 * sum(row[place].isdigit() and int(row[place]) < DIRECTIONS for row in rows) > len(rows)
    ]
    both = context.options.get("log_window_value") == "both" or context.options.get("log_max_value") == "both"
    if len(places) > 1:
        return 3 if both else 2
    if not places:
        bad = "no column of directions (0, 1 or 2) as third or, behind a maximum, as fourth"
        raise InputError(f"{NO_ROWS}: {bad}", path, 1)
    return places[0]


def _extra(after: Sequence[Sequence[bytes]], context: Context, path: Path) -> tuple[str, ...]:
    """Return the names of the columns behind the block size."""
    count = len(after[0])
    if count > 3:
        raise InputError(f"{NO_ROWS}: {count} columns behind the block size", path, 1)
    if count == 1 and _is_priority([cells[0] for cells in after], context, path):
        return ("priority",)
    return ("offset", "priority", "issued")[:count]


def _is_priority(cells: Sequence[bytes], context: Context, path: Path) -> bool:
    """Return whether a fifth column is the priority; InputError where it may as well be an offset."""
    if any(cell[:2] == b"0x" for cell in cells):
        return True
    large = any(int(cell) > 1 for cell in cells)
    if context.version is not None:
        if large and context.version[:2] >= PRIORITY_SINCE:
            version = ".".join(map(str, context.version))
            raise InputError(
                f"fio {version} writes a priority of 0 or 1 as the last of five columns, and this log has others there: "
                "another fio wrote it, give --fio-version",
                path,
                1,
            )
        return context.version[:2] >= PRIORITY_SINCE
    if large:
        return False
    if any(cell == b"1" for cell in cells):
        return True
    if context.recorded_unit_ns is not None or context.since is not None:
        return True  # all zeros: what it is changes nothing once the unit is known
    if len(cells) > 1:
        return True
    raise InputError(
        "the fifth column is 0 in the only row: the priority that fio 3.18 and later write (values in ns), or an offset of "
        "fio up to 3.17 with log_offset (us up to 2.21)? give --fio-version, or --recorded-unit",
        path,
        1,
    )


def _unit(columns: Sequence[str], rows: Sequence[Sequence[bytes]], context: Context, path: Path) -> tuple[int, str]:
    """Return the unit of values in ns and where it was taken from; InputError where it cannot be determined."""
    if context.recorded_unit_ns:
        return context.recorded_unit_ns, "--recorded-unit"
    if context.version:
        return (1 if context.version[:2] >= NANOSECONDS_SINCE else 1000), f"fio {'.'.join(map(str, context.version))}"
    if context.since is not None and context.since >= NANOSECONDS_SINCE:
        return 1, "a histogram log beside it, whose bins are of ns"
    width = len(columns)
    if "priority" in columns:
        return 1, f"{width} columns, as fio 3.18 and later write"
    largest = max(int(row[1]) for row in rows)
    sizes = ", ".join(f"{figure(largest * scale / 1e6, 4)} ms in {unit}" for unit, scale in SIZES.items())
    raise InputError(
        f"{width} columns: fio up to 2.21 wrote us, 2.99 to 3.17 ns; which of them cannot be determined (the largest value at "
        f"the beginning would be {sizes}); give --fio-version or --recorded-unit",
        path,
        1,
    )


def ops_of_head(path: Path, context: Context) -> set[str]:
    """Return the ops in the first lines of a raw log."""
    rows, place = _first_rows(path, context)
    return {OPS[int(row[place])] for row in rows if row[place] in (b"0", b"1", b"2")}


LATEST_MS = 1000
JUMP = "clock jump: its stamp lies more than a day from the rows before and behind it"
OFFSETS = (
    "the fifth column is 0 in the first rows and an offset here (log_offset): fio up to 2.21 wrote us, 2.99 to 3.17 ns; say "
    "--fio-version or --recorded-unit"
)
PRIORITY = r"(?:0x[0-9a-fA-F]{1,8}|\d{1,18})"


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the I/Os of a log in bounded chunks, ops as series of their own; latencies in ns, exact as fio measured them.

    Completions become epoch ns (relative ns where the context knows no start). Rejected rows are counted in the account
    with their lines. Raises InputError where the file is no raw log, or holds other lines and pyarrow is missing.
    """
    shape = shape_of(path, context)
    unix, base = clock.real_time(context.options, shape.first_ms), clock.OWN
    if not unix:
        base = clock.base_of(shape.lowest_ms, context, lambda: clock.last_stamp_ms(path))
    few = shape.rows < LOOKED_AT  # a hundred I/Os at offset 0, of a file of one block, are no benchmark
    for note in (base.note, shape.assumed if few else ""):
        if note:
            context.account.note(note)
    rows = _Rows(shape, context, _older(path, shape, context), base.ms, unix, clock.zero_ns(context, base.ms))
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
    cells = (PRIORITY if name in hexadecimal else r"-?\d{1,18}" for name in shape.columns)
    types = {name: pa.binary() if name in hexadecimal else pa.int64() for name in shape.columns}
    return Form(
        names=shape.columns,
        types=types,
        tiers=[(r"^[ \t]*" + r"[ \t]*,[ \t]*".join(cells) + r"[ \t]*\n$", types)],
        not_a_row=clock.NOT_A_ROW,
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
    parts = [(columns["time"], columns["direction"]) for columns, _ in _rows_of(path, shape, Account())]
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
    unix: bool
    zero_ns: int
    last_ms: int | None = None
    stamp_ms: int = 0
    restarted: bool = False
    early: int = 0
    early_line: int = 0

    def events(self, columns: Mapping[str, Int], lines: Int) -> Events:
        """Return the events of a chunk of rows; what cannot be taken is rejected with its lines."""
        time, value, direction = (columns[name] for name in ("time", "value", "direction"))
        if self.base_ms:
            time = np.where(time < 0, time, np.maximum(time - self.base_ms, 0))
        issued, offset, size = (columns.get(name) for name in ("issued", "offset", "size"))
        if (faults := self._faults(time, value, direction, columns["size"], lines)) is not None:
            good = np.flatnonzero(~faults)
            time, value, direction, lines = time[good], value[good], direction[good], lines[good]
            issued, offset, size = (None if column is None else column[good] for column in (issued, offset, size))
        latency = value * self.shape.unit_ns if self.shape.unit_ns > 1 else value
        end = self._ends(time, latency, issued)
        base = (0 if self.unix else self.zero_ns) + self.context.offset_ns
        table = tuple(self.context.series.replaced(op=op) for op in OPS)
        events = Events(table, direction, end + base if base else end, latency, offset=offset, size=size)
        if not self.unix and len(end) and events.reach.slowest > events.reach.first_end - base:
            # I/Os that would have begun before the log did: in the right unit there are none, but for a ramp's.
            early = np.flatnonzero(latency > end + MS)
            if len(early):
                self.early_line = self.early_line or int(lines[early[0]])
                self.early += len(early)
        self.context.account.accept(len(end))
        return events

    def _faults(self, time: Int, value: Int, direction: Int, size: Int, lines: Int) -> Bool | None:
        """Return which rows are left out, counted by reason; None if all are taken."""
        if not len(time):
            return None
        longest = DAY_NS // self.shape.unit_ns
        plain = (
            int(direction.view(np.uint64).max()) < DIRECTIONS
            and int(value.view(np.uint64).max()) <= longest
            and int(time.view(np.uint64).max()) < clock.LAST_STAMP_MS
            and int(size.min()) > 0
        )
        jumps = self._jumps(time)
        if plain and jumps is None and not self.older:
            return None
        left = np.ones(len(time), np.bool_)
        for reason, bad in (
            (clock.STAMP, (time < 0) | (time >= clock.LAST_STAMP_MS)),
            (clock.DIRECTION, (direction < 0) | (direction >= DIRECTIONS)),
            ("block size 0: a mean over a window (log_avg_msec), no I/O", size <= 0),
            ("a latency below zero", value < 0),
            ("a latency of more than a day: damage, or another unit than it was taken for (--recorded-unit)", value > longest),
            (JUMP, np.zeros(len(time), np.bool_) if jumps is None else jumps),
            ("row of an older run that was appended to", self._of_older(direction)),
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

    def note_doubts(self) -> None:
        """Note at the end what makes the unit doubtful, and why the start of the run is unknown."""
        if self.context.zero.origin in clock.UNKNOWN:
            self.context.account.note(f"the start of the run is unknown ({self.context.zero.origin}): {clock.REMEDY}")
        if self.early * 100 > self.context.account.accepted:
            self.context.account.note(
                f"{self.early} of {self.context.account.accepted} I/Os would start before the log does (the first in line "
                f"{self.early_line}): is the unit right? It was taken from {self.shape.told_by}; set another with --recorded-unit"
            )
