"""Log text for tests: written from plain numbers, or made from recorded logs by the faults fio is known for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

Line = tuple[int, int, dict[int, int]]


def line(stamp: int, direction: int, counts: dict[int, int], bins: int, *, leading: int = 3) -> str:
    """Return one row of a histogram log; with one leading cell only the stamp stands before the bins."""
    lead = [stamp, direction, 4096][:leading]
    return ", ".join(str(cell) for cell in [*lead, *(counts.get(slot, 0) for slot in range(bins))])


def text(lines: Iterable[Line], bins: int, *, leading: int = 3) -> str:
    """Return a whole log."""
    return "".join(line(*row, bins, leading=leading) + "\n" for row in lines)


def cells(log: str) -> list[list[int]]:
    """Return the numbers of a log, row by row."""
    return [[int(cell) for cell in row.split(",")] for row in log.splitlines()]


def joined(rows: Iterable[Iterable[int]]) -> str:
    """Return the log of rows of numbers."""
    return "".join(", ".join(str(cell) for cell in row) + "\n" for row in rows)


def cumulative(log: str) -> str:
    """Return a log as the development versions of 2016 wrote it: every row counts from the start, by direction."""
    rows = cells(log)
    for direction in {row[1] for row in rows}:
        chain = [row for row in rows if row[1] == direction]
        sums = accumulate((row[3:] for row in chain), lambda total, new: [a + b for a, b in zip(total, new, strict=True)])
        for row, total in zip(chain, list(sums), strict=True):
            row[3:] = total
    return joined(rows)


def undirected(log: str) -> str:
    """Return the rows of direction 0 as the first fork wrote them: one leading cell, the stamp."""
    return joined([row[0], *row[3:]] for row in cells(log) if row[1] == 0)


def compounded(log: str) -> str:
    """Return a log as fio --client writes it: D_n = d_n + D_(n-2), by direction."""
    rows = cells(log)
    for direction in {row[1] for row in rows}:
        chain = [row for row in rows if row[1] == direction]
        for now, earlier in zip(chain[2:], chain, strict=False):
            now[3:] = [a + b for a, b in zip(now[3:], earlier[3:], strict=True)]
    return joined(rows)
