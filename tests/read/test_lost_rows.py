"""Rows that a histogram log lacks: a log written as fio writes it shows none, and where rows were deleted they lie in a hole."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ingest.read.fio.histogram_log import Watch


def written(dice: random.Random, period: int) -> list[tuple[int, int]]:
    """Return (stamp, samples) of rows as fio's stat.c writes them of completions with bursts, stalls and quiet stretches."""
    now, last, samples, rows = dice.randrange(50), None, 0, []
    for _ in range(dice.randrange(20, 120)):
        quiet = dice.choice((1, 1, 1, period // 3, 3 * period))
        for _ in range(dice.randrange(1, 60)):
            now += dice.randrange(quiet + 1)
            samples += 1
            last = now if last is None else last
            if now - last >= period:
                rows.append((now, samples))
                last, samples = last + period, 0
    return rows


def holes_of(rows: list[tuple[int, int]], period: int, chunk: int) -> list[tuple[int, int]]:
    watch, holes = Watch(), []
    for first in range(0, len(rows), chunk):
        stamps, samples = np.array(rows[first : first + chunk], np.int64).T
        began = np.array([0] if not first else [], np.int64)
        holes += [(hole.after_ms, hole.before_ms) for hole in watch.holes(stamps, samples, began, period)]
    return holes


@pytest.mark.parametrize("seed", range(60))
def test_a5_deleted_rows_lie_in_a_hole_and_whole_logs_have_none(seed: int) -> None:
    dice, period = random.Random(seed), 100
    rows = written(dice, period)
    chunk = dice.choice((1, 7, 10_000))
    assert holes_of(rows, period, chunk) == []
    if len(rows) < 40:
        return
    gone = dice.randrange(10, len(rows) - 20)
    holes = holes_of([*rows[:gone], *rows[gone + 1 :]], period, chunk)
    assert all(low <= rows[gone][0] <= high for low, high in holes)


def test_a5_deleted_rows_of_a_steady_load_are_all_seen() -> None:
    dice, seen = random.Random(1), 0
    for _ in range(200):
        stamps = [n * 100 + dice.randrange(30) for n in range(1, 60)]
        for at in sorted(dice.sample(range(10, 50), 3), reverse=True):
            del stamps[at]
        seen += len(holes_of([(stamp, 40) for stamp in stamps], 100, 1000)) > 0
    assert seen == 200
