"""The rows of averaged fio logs (latency, IOPS, bandwidth) as columns of integers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ingest.core.intervals import Int
from ingest.read.account import Account
from ingest.read.events import DAY_NS
from ingest.read.fio.chains import DIRECTION, LAST_STAMP_MS, NOT_A_ROW, STAMP
from ingest.read.fio.raw_shape import DIRECTIONS, ROW
from ingest.read.text import CUT_OFF, whole_blocks

RANGE = "a value below zero or of more than a day: damage, or another unit than it was taken for (--recorded-unit)"


def averaged_rows(path: Path, columns: Sequence[str], account: Account, largest: int = DAY_NS) -> Int:
    """Return the first columns of a log, one row a line; other lines are counted in the account.

    `columns` names them: time first, then value, direction last.
    """
    rows: list[list[int]] = []
    bad: dict[str, list[int]] = {}
    number, width = 0, len(columns)
    for block in whole_blocks(path, account):
        text = bytes(block)
        lines = text.removesuffix(b"\n").split(b"\n")
        for place, line in enumerate(lines):
            number += 1
            if not line.strip():
                continue
            cut = not text.endswith(b"\n") and place == len(lines) - 1
            reason = CUT_OFF if cut else ("" if ROW.match(line) and line.count(b",") >= width else NOT_A_ROW)
            cells = [] if reason else [int(cell) for cell in line.split(b",", width)[:width]]
            reason = reason or _bad(cells, largest)
            if reason:
                bad.setdefault(reason, []).append(number)
            else:
                rows.append(cells)
    for reason, places in bad.items():
        account.reject(reason, places)
    account.accept(len(rows))
    return np.array(rows, np.int64).reshape(len(rows), width)


def _bad(cells: Sequence[int], largest: int) -> str:
    """Return why the values of a row cannot be; empty text where they can."""
    if not 0 <= cells[-1] < DIRECTIONS:
        return DIRECTION
    if cells[0] >= LAST_STAMP_MS:
        return STAMP
    return "" if all(0 <= cell <= largest for cell in cells[1:-1]) else RANGE
