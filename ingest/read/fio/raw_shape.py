"""Which columns a raw fio latency log has and in which unit it counts: by its version, its options and its first lines.

    time, value, direction, block size                       up to 3.17
    ..., block size, offset                                  2.1.11 to 3.17 with log_offset
    ..., block size, priority                                3.18 and later: 0 or 1, with log_prio (3.28) 0x and four digits
    ..., block size, offset, priority                        3.18 and later with log_offset
    ..., block size, offset, priority, issue time            3.38 and later with log_offset and log_issue_time
    time, mean, maximum, direction, block size, ...          3.37 and later with log_window_value=both: averaged

Values are us up to 2.21 and ns since 2.99. A unit that is neither given nor visible is refused, with the option that sets it. A
fifth column of zeros alone is taken for a priority, with a note: the offsets of two I/Os are both 0 only where a file is one
block.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.series import OPS
from ingest.core.writing import figure
from ingest.read.context import Context
from ingest.read.fio import clock
from ingest.read.text import head

ROW = re.compile(rb"^[ \t]*\d{1,19}(?:[ \t]*,[ \t]*(?:-?\d{1,20}|0x[0-9a-fA-F]{1,8})){3,7}[ \t]*\r?$")
HEAD, LOOKED_AT = 1 << 14, 100
FEWEST, MOST = 4, 8
DIRECTIONS = 3
NANOSECONDS_SINCE, PRIORITY_SINCE = (2, 99), (3, 18)
ZEROS = (
    "the fifth column is 0 throughout: taken for the priority that fio 3.18 and later write, values in ns; an offset of fio up "
    "to 3.17 (--fio-version) is 0 throughout only where each file is one block"
)
EMPTY = "holds no line: fio measured no latency of this kind"
NO_ROWS = "no raw latency log: its lines are not time, value, direction, block size as fio writes them"
SIZES = {"us": 1000, "ns": 1}


@dataclass(frozen=True, slots=True)
class Shape:
    """Where things stand in a row: `columns` names them all in order; `unit_ns` is what values are counted in.

    `first_ms` is the stamp of the first row, `lowest_ms` the lowest of the first rows. `assumed` says what was taken for granted.
    """

    columns: tuple[str, ...]
    unit_ns: int
    first_ms: int
    lowest_ms: int
    hexadecimal: bool
    told_by: str
    assumed: str = ""


def shape_of(path: Path, context: Context) -> Shape:
    """Return the shape of a raw log; InputError where it is averaged, no such log, or without known columns or unit."""
    text = head(path, HEAD)
    if not text.strip(b"\r\n \t"):
        raise InputError(EMPTY, path)
    rows = rows_of_text(text)
    if not rows:
        raise InputError(NO_ROWS, path, 1)
    direction = _direction(rows, context, path)
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
    text = head(path, HEAD)
    rows = rows_of_text(text)
    if not rows:
        raise InputError(NO_ROWS if text.strip(b"\r\n \t") else EMPTY, path, 1 if text else None)
    direction = _direction(rows, context, path)
    return _shape(rows, direction, context, path) if _is_averaged(rows, direction) else None


def direction_of(path: Path, context: Context) -> int | None:
    """Return the place of the direction in the rows of a log (of IOPS and bandwidth, too); None where it has no row."""
    rows = rows_of_text(head(path, HEAD))
    return _direction(rows, context, path) if rows else None


def first_stamps(path: Path, context: Context) -> list[int]:
    """Return the stamps in ms of the first rows of the commonest direction of a log."""
    rows = rows_of_text(head(path, HEAD))
    if not rows:
        return []
    place = _direction(rows, context, path)
    commonest = Counter(row[place] for row in rows).most_common(1)[0][0]
    return [int(row[0]) for row in rows if row[place] == commonest]


def _is_averaged(rows: Sequence[Sequence[bytes]], direction: int) -> bool:
    """Return whether most block sizes are 0, as fio writes them where a row is no single I/O."""
    sizes = [int(row[direction + 1]) for row in rows if row[direction + 1].isdigit()]
    return sum(size == 0 for size in sizes) * 2 > len(sizes)


def _shape(rows: Sequence[Sequence[bytes]], direction: int, context: Context, path: Path) -> Shape:
    after = [row[direction + 2 :] for row in rows]
    width = len(rows[0])
    extra, priority = _extra([cells[0] for cells in after] if after[0] else [], len(after[0]), context, path)
    maximum = ("maximum",) if direction > 2 else ()
    columns = ("time", "value", *maximum, "direction", "size", *extra)
    hexadecimal = any(cell[:2] == b"0x" for cells in after for cell in cells)
    unit, told_by = _unit(columns, rows, context, path, width, priority=priority)
    lowest = min(int(row[0]) for row in rows)
    known = context.version or context.since or context.recorded_unit_ns
    assumed = ZEROS if extra == ("priority",) and not known and all(cells[0] == b"0" for cells in after) else ""
    return Shape(columns, unit, int(rows[0][0]), lowest, hexadecimal, told_by, assumed)


@lru_cache(maxsize=1)  # asked for in turn by all that is to be known of a log
def rows_of_text(text: bytes) -> Sequence[Sequence[bytes]]:
    """Return the cells of the first rows that have the commonest number of columns."""
    lines = text.split(b"\n")
    rows = [
        line.translate(None, b" \t\r").split(b",")
        for line in (lines[:-1] or lines)[: 2 * LOOKED_AT]
        if ROW.match(line) and FEWEST <= line.count(b",") + 1 <= MOST
    ][:LOOKED_AT]
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


def _extra(first: Sequence[bytes], count: int, context: Context, path: Path) -> tuple[tuple[str, ...], bool]:
    """Return the names of the columns behind the block size, and whether a priority is among them."""
    if count == 0:
        return (), False
    if count == 1:
        return (("priority",), True) if _is_priority(first, context, path) else (("offset",), False)
    if count == 2:
        return ("offset", "priority"), True
    if count == 3:
        return ("offset", "priority", "issued"), True
    raise InputError(f"{NO_ROWS}: {count} columns behind the block size", path, 1)


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


def _unit(
    columns: Sequence[str], rows: Sequence[Sequence[bytes]], context: Context, path: Path, width: int, *, priority: bool
) -> tuple[int, str]:
    """Return the unit of values in ns and where it was taken from; InputError where it cannot be determined."""
    if context.recorded_unit_ns:
        return context.recorded_unit_ns, "--recorded-unit"
    if context.version:
        return (1 if context.version[:2] >= NANOSECONDS_SINCE else 1000), f"fio {'.'.join(map(str, context.version))}"
    if context.since is not None and context.since >= NANOSECONDS_SINCE:
        return 1, "a histogram log beside it, whose bins are of ns"
    if priority or "issued" in columns:
        return 1, f"{width} columns, as fio 3.18 and later write"
    largest = max(int(row[1]) for row in rows)
    sizes = ", ".join(f"{figure(largest * scale / 1e6, 4)} ms in {unit}" for unit, scale in SIZES.items())
    raise InputError(
        f"{width} columns: fio up to 2.21 wrote us, 2.99 to 3.17 ns; which of them cannot be determined (the largest value at "
        f"the beginning would be {sizes}); give --fio-version or --recorded-unit",
        path,
        1,
    )


def is_epoch(shape: Shape, context: Context) -> bool:
    """Return whether stamps are real time since 1970."""
    return clock.real_time(context.options, shape.first_ms)


def ops_of_head(path: Path, context: Context) -> set[str]:
    """Return the ops in the first lines of a raw log."""
    rows = rows_of_text(head(path, HEAD))
    place = _direction(rows, context, path) if rows else 0
    return {OPS[int(row[place])] for row in rows if row[place] in (b"0", b"1", b"2")}
