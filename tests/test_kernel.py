"""The compiled loops beside NumPy, the judge: the same numbers, and the same rows refused with the same reasons and lines.

Every other test runs with whichever of the two is in use; `.ci/run` runs those of readers and questions with both.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ingest.core import grid, intervals, kernel
from ingest.core.documents import packed_bins, unpack
from ingest.core.events import Events
from ingest.core.intervals import Intervals, Narrow
from ingest.core.labels import Series
from ingest.core.layout import fio_layout
from ingest.core.quantiles import Ranked, counts_above, weighed
from ingest.query.excess import excess_of
from ingest.query.story import segments
from ingest.query.story.ground import by_bin
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio import histogram_log
from ingest.read.fio.histogram_log import Scanner
from ingest.read.hdr.payload import CUT, PAST, Geometry, Payload, counts_of
from ingest.read.integers import Parser, PlainIntegers
from ingest.read.operations import Repeats, _completed, events_layout
from ingest.store.sqlite.file import DamagedError, check_bins
from tests.conftest import HERE
from tests.effort import figure
from tests.mutations import CHANGES, Mutation, mutated

ROOT = HERE.parent
LOGS = sorted((HERE / "data" / "fio").rglob("*_clat_hist*.log"))
compiled = pytest.mark.skipif(kernel.fio_rows is None, reason=kernel.in_words())

# Cells that are none, numbers at the limits, and bytes that a fast loop might take for others.
ODD = (
    *(
        b"",
        b" ",
        b",",
        b", ",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"-1",
        b"+1",
        b"1.5",
        b"00",
        b"007",
        b"1e3",
        b"x",
        b"/",
        b":",
        b"\0",
        b"\xb0",
    ),
    *(b"18446744073709551615", b"18446744073709551616", b"18446744073709551620", b"99999999999999999999", b"1" * 21, b"9" * 19),
    *(b", 0", b", 0, 0, 0, 0, 0, 0, 0, 0", b"0, ", b",0", b" 0", b",  0", b"0\n", b", 0\n"),
)


def row_of(rng: random.Random, columns: int, leading: int) -> bytes:
    cells = [str(rng.choice((0, rng.randrange(2), rng.randrange(10**6)))) for _ in range(leading)]
    share = rng.choice((0.0, 0.02, 0.3, 1.0))
    lengths = rng.choice(((1, 2, 3), range(1, 21)))
    counts = (rng.randrange(10 ** rng.choice(lengths)) if rng.random() < share else 0 for _ in range(columns - leading))
    cells += [str(min(count, 2**64 - 1)) for count in counts]
    return ", ".join(cells).encode() + b"\n"


def steps_of(rng: random.Random, most: int) -> list[Mutation]:
    """Return a few changes: bytes put in, written over, taken out, turned, cut off; lines and cells changed for others."""
    return [
        (rng.choice(sorted(CHANGES)), rng.randrange(1 << 24), rng.randrange(40), rng.choice(ODD))
        for _ in range(rng.randrange(most))
    ]


def scanned(text: bytes, columns: int, leading: int) -> Any:
    """Return all that is taken of a text: rows and their lines, what was rejected and why."""
    scanner = Scanner(columns, leading, Context(account=Account(path="a")))
    found = [
        (rows.lead.tolist(), rows.indptr.tolist(), rows.bins.tolist(), rows.counts.tolist(), lines.tolist())
        for rows, lines in scanner.rows(memoryview(text))
    ]
    return found, scanner.line, vars_of(scanner.account)


def vars_of(account: Account) -> dict[str, Any]:
    return {name: getattr(account, name) for name in account.__dataclass_fields__}


def numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "fio_rows", None)


def held_against_numpy(rows: int, seed: int) -> int:
    """Compare until so many mutated rows were read by both; return how many were, AssertionError where they differ."""
    rng, done, loop = random.Random(seed), 0, kernel.fio_rows
    while done < rows:
        leading = rng.choice((3, 3, 3, 1))
        columns = leading + rng.choice((1, 8, 19, 29, 38, 58, rng.randrange(1, 120)))
        text = mutated(b"".join(row_of(rng, columns, leading) for _ in range(rng.randrange(1, 12))), steps_of(rng, 4)) or b"\n"
        try:
            kernel.fio_rows = loop
            fast = scanned(text, columns, leading)
            kernel.fio_rows = None
            assert fast == scanned(text, columns, leading), (seed, done, columns, leading, text)
        finally:
            kernel.fio_rows = loop
        done += text.count(b"\n") + 1
    return done


@compiled
@pytest.mark.parametrize("seed", range(figure(2, 2, 20)))
def test_mutated_rows_are_taken_and_refused_as_numpy_does(seed: int) -> None:
    wanted = figure(3_000, 10_000, 50_000)
    assert held_against_numpy(wanted, seed) >= wanted


@compiled
@pytest.mark.parametrize("columns", [2, 9, 10, 11, 12, 28, 35, 1859])
def test_every_cell_of_a_row_of_zeros_is_looked_at(columns: int) -> None:
    """Zeros are compared eight at once: one cell that is none, a separator that is none, a cell too many, one too few."""
    row = b", ".join([b"0"] * columns) + b"\n"
    places = range(len(row)) if columns < 100 else range(0, len(row), 17)
    for place in places:
        for new in (b"1", b"0", b",", b" ", b"\n", b"x"):
            text = row + row[:place] + new + row[place + 1 :] + row
            assert scanned(text, columns, 1) == judged(text, columns), (place, new)
    for text in (row * 3, row[3:], b"0, " + row, row[:-1], row[:-2] + b"10\n"):
        assert scanned(text, columns, 1) == judged(text, columns), text


def judged(text: bytes, columns: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        numpy_alone(patch)
        return scanned(text, columns, 1)


@compiled
@pytest.mark.parametrize("number", [0, 1, 9, 10, 2**63, 2**64 - 1, 2**64, 2**64 + 5, 10**20 - 1, 10**20, 10**30])
def test_numbers_at_the_limit(number: int, monkeypatch) -> None:
    text = np.frombuffer(f"1, 0, 4096, {number}, {number}\n".encode(), np.uint8)
    found = Parser(5, 3).parse(text)
    assert (found is None) == (number >= 2**64)
    assert found is None or found.counts.tolist() == [number] * 2 * (number > 0)
    numpy_alone(monkeypatch)
    assert (Parser(5, 3).parse(text) is None) == (number >= 2**64)


@compiled
@pytest.mark.parametrize("cell", ["", " ", "-1", "+1", "1.5", "00", "007", "1e3", "x", "0 ", " 0", "0,", "٣"])
@pytest.mark.parametrize("column", [0, 3, 4, 20, 39])
def test_no_other_cell_is_taken(cell: str, column: int, monkeypatch) -> None:
    cells = ["0"] * 40
    cells[column] = cell
    text = np.frombuffer((", ".join(["0"] * 40) + "\n" + ", ".join(cells) + "\n").encode(), np.uint8)
    assert Parser(40, 3).parse(text) is None
    numpy_alone(monkeypatch)
    assert Parser(40, 3).parse(text) is None


@compiled
def test_many_cells_too_many_are_written_nowhere() -> None:
    """Zeros are skipped eight at once, past the last bin: nothing is counted there."""
    for zeros in range(40):
        text = np.frombuffer(b"1, 0, 4096" + b", 0" * zeros + b", 7" * 60 + b"\n", np.uint8).copy()
        assert Parser(24, 3).parse(text) is None


def whole(path: Path, context: Context) -> Any:
    context = replace(context, account=Account(path="a"))
    try:
        parts = [
            (part.table, part.series.tolist(), part.start_ns.tolist(), part.end_ns.tolist(), part.indptr.tolist())
            + (part.bins.tolist(), part.counts.tolist())
            for part in histogram_log.read(path, context)
        ]
    except histogram_log.InputError as error:
        return str(error)
    totals = {op: (held.bins.tolist(), held.counts.tolist()) for op, held in context.account.totals.items()}
    return parts, totals, {name: each for name, each in vars_of(context.account).items() if name != "totals"}


@compiled
@pytest.mark.parametrize("seed", range(figure(30, 120, 1_000)))
def test_whole_logs_with_damage_are_read_as_numpy_does(seed: int, tmp_path: Path, monkeypatch) -> None:
    """Recorded logs of all kinds, whole and damaged: intervals, sums, notes, reasons and their lines."""
    rng = random.Random(seed)
    source = rng.choice(LOGS)
    path = tmp_path / source.name
    path.write_bytes(mutated(source.read_bytes(), steps_of(rng, 5)))
    fast = whole(path, Context())
    numpy_alone(monkeypatch)
    assert fast == whole(path, Context())


@compiled
def test_what_does_not_fit_is_an_error_and_nothing_is_written_behind_it() -> None:
    text = np.frombuffer(b"1, 0, 4096, 7, 8\n" * 4, np.uint8)
    room = [np.zeros((4, 3), np.uint64), np.zeros(5, np.int64), np.zeros(8, np.int64), np.zeros(8, np.uint64)]
    assert kernel.fio_rows(text, 5, 3, 0, *room) == 4
    for number in range(4):
        short = [column.copy() for column in room]
        short[number] = short[number][:-1].copy()
        with pytest.raises(ValueError, match="no room"):
            kernel.fio_rows(text, 5, 3, 0, *short)
    for columns, leading in ((5, 4), (5, -1), (3, 3), (-5, 3), (0, 0), (-1, -2)):
        with pytest.raises(ValueError, match="no room"):
            kernel.fio_rows(text, columns, leading, 0, *room)
    room[2] = np.zeros(8 * 8 + 1, np.uint8)[1:].view(np.int64)
    for other in (room[2], np.zeros(8, np.int32), np.zeros(16, np.int64)[::2]):
        with pytest.raises((TypeError, ValueError), match="words of 64 bits|contiguous"):
            kernel.fio_rows(text, 5, 3, 0, *room[:2], other, room[3])
    with pytest.raises((BufferError, ValueError), match="read-only"):
        kernel.fio_rows(text, 5, 3, 0, *room[:2], np.frombuffer(b"0" * 64, np.int64), room[3])


# ---- plain integers, sums of rows, shares of rows


@compiled
@pytest.mark.parametrize("seed", range(figure(2, 2, 20)))
def test_plain_integers_are_those_of_numpy_and_of_the_same_texts(seed: int, monkeypatch) -> None:
    rng = random.Random(seed)
    texts = []
    for _ in range(figure(300, 1_000, 3_000)):
        width = rng.randrange(1, 8)
        text = "".join(", ".join(integer(rng) for _ in range(width)) + "\n" for _ in range(rng.randrange(9)))
        texts.append((width, mutated(text.encode(), steps_of(rng, 3))))
    fast = [columns_in(*each) for each in texts]
    monkeypatch.setattr(kernel, "integer_rows", None)
    assert fast == [columns_in(*each) for each in texts]
    assert len(fast) // 5 < sum(one is not None for one in fast) < len(fast)


def integer(rng: random.Random) -> str:
    """Return an integer, seldom one with zeros before it or of 19 digits."""
    number = str(rng.choice((0, 7, 10**17, 10**18 - 1, rng.randrange(10 ** rng.randrange(1, 19)))))
    return rng.choice(("0" + number, "0" * 12 + number, str(10**18))) if rng.random() < 0.02 else number


def columns_in(width: int, text: bytes) -> list[list[int]] | None:
    columns = PlainIntegers(width).columns(np.frombuffer(text, np.uint8))
    return None if columns is None else [column.tolist() for column in columns]


def csr(rng: np.random.Generator, rows: int, bins: int, most: int) -> tuple[Any, Any, Any]:
    held = [np.flatnonzero(rng.random(bins) < rng.random()) for _ in range(rows - 1)] + [np.arange(1)]
    indptr = np.append(0, np.cumsum([len(each) for each in held])).astype(np.int64)
    return indptr, np.concatenate([*held, np.empty(0, np.int64)]).astype(np.int64), rng.integers(1, most, indptr[-1])


@compiled
@pytest.mark.parametrize("seed", range(figure(20, 60, 2_000)))
def test_rows_are_added_up_as_numpy_does(seed: int, monkeypatch) -> None:
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, 6))
    parts = []
    for _ in range(rng.integers(1, 5)):
        indptr, bins, counts = csr(rng, int(rng.integers(1, 9)), int(rng.integers(1, 60)), int(rng.choice((2, 1000, 2**50))))
        group, bins = np.sort(rng.integers(0, groups, len(indptr) - 1)), bins + rng.integers(0, 50)
        if rng.random() < 0.5:  # not one behind the other, of fewer bits
            group, bins, counts = np.broadcast_to(group[0], len(group)), np.repeat(bins.astype(np.int32), 2)[::2], counts[::-1]
        parts.append((group, indptr + rng.integers(0, 9), bins, counts))
    span = intervals.span_of(parts)
    fast = intervals.sum_dense(parts, groups, span)
    monkeypatch.setattr(kernel, "add_rows", None)
    assert [each.tolist() for each in fast] == [each.tolist() for each in intervals.sum_dense(parts, groups, span)]


@compiled
@pytest.mark.parametrize("seed", range(figure(20, 60, 2_000)))
def test_rows_are_cut_by_time_as_numpy_does(seed: int, monkeypatch) -> None:
    """Shares are rounded, halves to even, also where products pass 2^64."""
    rng = np.random.default_rng(seed)
    indptr, bins, counts = csr(rng, int(rng.integers(1, 30)), 60, int(rng.choice((3, 1000, 2**40, 2**55))))
    start = rng.integers(0, 2**40, len(indptr) - 1)
    width = rng.integers(2, rng.choice((4, 2_000, 2**32, 2**61)), len(start))
    rows = Intervals(fio_layout(29, 1), (Series(),), np.zeros(len(start), np.int64), start, start + width, indptr, bins, counts)
    part = np.maximum(rng.integers(0, width), 1)
    fast = grid._share(rows, part, width)
    monkeypatch.setattr(kernel, "share", None)
    assert fast.tolist() == grid._share(rows, part, width).tolist()


@compiled
@pytest.mark.parametrize("seed", range(figure(20, 60, 2_000)))
def test_rows_are_added_up_by_window_as_numpy_does(seed: int, monkeypatch) -> None:
    """Rows within windows, over edges and on them, empty ones, of several series, in any order of time."""
    rng = np.random.default_rng(seed)
    step, stored = ((1000, 0), (1000, 100), (1000, 1000), (7, 7))[int(rng.integers(4))]
    indptr, bins, counts = csr(rng, int(rng.integers(1, 60)), 60, int(rng.choice((3, 1000, 2**40))))
    rows, known = len(indptr) - 1, int(rng.integers(1, 4))
    end = np.cumsum(rng.integers(0, rng.choice((3, 30, 300, 3_000)), rows)) - rng.choice((0, 2_000))
    start = end - rng.integers(0, rng.choice((1, 2 * step, 2 * step)), rows)
    end = np.where(rng.random(rows) < 0.2, end // step * step, end)
    start = np.where(rng.random(rows) < 0.2, start // step * step, start)
    order = np.arange(rows) if rng.random() < 0.5 else rng.permutation(rows)
    table = tuple(Series(job=str(number)) for number in range(known))
    series = rng.integers(0, known, rows)
    held = Intervals(fio_layout(29, 1), table, series, np.minimum(start, end)[order], end[order], indptr, bins, counts)
    monkeypatch.setattr(grid, "DENSE_CELLS", int(rng.choice((200, 1 << 18))))
    fast, slow = (intervals.merged(cut(held, step, stored)) for cut in (grid.window_sums, grid.window_parts))
    names = ("series", "start_ns", "end_ns", "indptr", "bins", "counts")
    assert [getattr(fast, name).tolist() for name in names] == [getattr(slow, name).tolist() for name in names]


@compiled
def test_rows_that_do_not_fit_windows_are_an_error() -> None:
    zero, two = np.zeros(1, np.int64), np.array([0, 2])
    given = [zero, zero + 4, zero + 14, two, np.array([3, 4]), np.array([5, 6]), 10, 10, 1, 3, 2]
    room = [np.zeros(4, np.int64), np.zeros(4, np.int64), zero + 2, zero - 1, *np.zeros((2, 2), np.int64), np.zeros(3, np.int64)]
    room += [*np.zeros((2, 5), np.int64)]
    assert kernel.window_rows(*given, *(each.copy() for each in room)) == 2
    out = [each.copy() for each in room]
    kernel.window_rows(*given, *out)
    assert [each.tolist() for each in out[4:7]] == [[0, 0], [0, 10], [0, 2, 4]]
    assert [each.tolist()[:4] for each in out[7:]] == [[3, 4, 3, 4], [3, 4, 2, 2]]
    assert not out[1].any() and (out[2].tolist(), out[3].tolist()) == ([2], [-1])
    far, all_of = np.iinfo(np.int64).max, [*given, *room]
    for place, wrong in (
        *((0, zero + 1), (0, zero - 1), (0, zero[:0].copy()), (1, zero - far), (2, zero + far), (3, two + 1), (3, -two)),
        *((4, np.array([2, 4])), (4, np.array([3, 5])), (4, zero), (6, 0), (7, 0), (6, far), (8, 0), (8, 2), (9, 4), (10, 1)),
        *((11, np.zeros(3, np.int64)), (12, zero), (13, zero[:0].copy()), (14, two), (15, zero), (16, zero), (17, two)),
        *((18, two + 0), (19, two + 0)),
    ):
        with pytest.raises(ValueError, match="outside of the windows"):
            kernel.window_rows(*(wrong if at == place else copied(each) for at, each in enumerate(all_of)))


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@compiled
@pytest.mark.parametrize("seed", range(figure(10, 30, 500)))
def test_levels_are_cut_as_numpy_does(seed: int, monkeypatch) -> None:
    """Of few and of many samples, of counts that are there in few blocks alone; with what was due, which may be nothing."""
    rng = np.random.default_rng(seed)
    sets, blocks, size = int(rng.integers(1, 5)), int(rng.integers(20, 80)), float(rng.choice((0.1, 3, 300, 3e5, 1e9)))
    levels = np.exp(np.cumsum(rng.normal(0, 1, (sets, blocks)) * (rng.random((sets, blocks)) < 0.05), axis=1))
    counts = rng.poisson(size * levels, (int(rng.integers(1, 8)), sets, blocks)).astype(np.float64)
    weights = rng.choice((-2.0, -0.3, 0.0, 1.5), (len(counts), sets))
    due = rng.choice((0.0, size, 2 * size), (sets, blocks)) if rng.random() < 0.5 else None
    asked = (counts, weights, None) if due is None else (counts[:1], weights[:1], due)
    fast = segments._partition(*asked, times=1.0)
    monkeypatch.setattr(kernel, "cut_levels", None)
    assert fast == segments._partition(*asked, times=1.0)


@compiled
@pytest.mark.parametrize("seed", range(figure(20, 60, 2_000)))
def test_excess_is_what_numpy_says(seed: int, monkeypatch) -> None:
    """To the last bit, against references that have few bins, or none that a row has."""
    rng, layout = np.random.default_rng(seed), fio_layout(29, 1)
    rows, others = (
        Intervals(layout, (Series(),) * number, np.arange(number), *np.zeros((2, number), np.int64), *csr(rng, number, 60, 1000))
        for number in (int(rng.integers(1, 30)), int(rng.integers(1, 4)))
    )
    rows, others = (each.take(np.flatnonzero(np.diff(each.indptr))) for each in (rows, others))
    group = rng.integers(0, len(others), len(rows))
    fast = excess_of(rows, group, others)
    monkeypatch.setattr(kernel, "excess_rows", None)
    assert fast.tolist() == excess_of(rows, group, others).tolist()


@compiled
def test_what_does_not_fit_findings_is_an_error() -> None:
    below, back, best = np.array([0, 3, 5]), np.zeros(3, np.int64), np.zeros(3)
    good = (below, np.array([-2.0]), np.empty(0), segments.log_of(), 1.0, best, back)
    kernel.cut_levels(*good)
    assert back.tolist() == [0, 0, 0]
    for place, wrong in ((0, below[:2].copy()), (1, np.empty(0)), (2, np.zeros(2)), (3, np.zeros(4)), (5, np.empty(0)), (6, back[:2].copy())):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            kernel.cut_levels(*good[:place], wrong, *good[place + 1 :])
    bins, two, one = np.array([0, 1]), np.array([0.0, 1.0]), np.array([1.0])
    rows = [np.array([0, 2]), np.array([0]), bins, np.array([1, 1]), two, two, two, one, np.zeros(1), one, np.empty(1)]
    kernel.excess_rows(*rows)
    for place, wrong in ((0, np.array([0, 3])), (0, np.array([1, 1])), (0, np.array([0, -1])), (1, bins[1:].copy()), (2, bins + 1), (2, bins - 1), (5, one), (7, np.empty(0)), (10, two)):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit|no such rows"):
            kernel.excess_rows(*rows[:place], wrong, *rows[place + 1 :])


@compiled
@pytest.mark.parametrize("seed", range(figure(20, 60, 2_000)))
def test_rows_are_read_and_looked_at_as_numpy_does(seed: int, monkeypatch) -> None:
    """Packed in every coding, added up in any order, held wide or in few bytes; ranks, and counts above bins."""
    rng, layout = np.random.default_rng(seed), fio_layout(29, 1)
    number = int(rng.integers(1, 30))
    indptr, bins, counts = csr(rng, number, int(rng.choice((60, 900))), 300)
    counts = np.where(rng.random(len(counts)) < rng.random() / 4, rng.choice((2**10, 2**20, 2**40), len(counts)), counts)
    zero = np.zeros(number, np.int64)
    rows = Intervals(layout, (Series(),), zero, np.arange(number), np.arange(number) + 1, indptr, bins, counts)
    rows = rows.take(np.flatnonzero(np.diff(indptr)))
    rows = Narrow.of([rows]) if rng.random() < 0.5 else rows
    group, groups = rng.integers(0, 4, len(rows)), 4
    picked = rng.integers(0, len(rows), len(rows))
    ranks = rng.integers(1, rows.samples[picked] + 1)
    cuts = rng.integers(-1, 61, (len(rows), 3))

    def looked() -> list[Any]:
        codes, blobs = packed_bins(rows)
        unpacked = unpack(codes, blobs.each())
        summed = intervals.sum_rows(rows.indptr, rows.bins, rows.counts, group, groups)
        occupied = np.arange(layout.bins) if seed % 2 else np.unique(rows.bins)
        placed = by_bin(rows, occupied, np.where(group, group, -1), groups)
        found = Ranked(rows).entries(picked, ranks), counts_above(rows, cuts), placed, weighed(rows, layout.weights), rows.samples
        return [each.tolist() for each in (*unpacked, *summed, *found)]

    fast = looked()
    for loop in ("unpack_rows", "sum_rows", "rank_rows", "above_rows", "weigh_rows", "place_rows", "add_rows"):
        monkeypatch.setattr(kernel, loop, None)
    assert fast == looked()


@pytest.mark.parametrize("loop", [kernel.check_rows, None])
def test_bins_that_cannot_be_are_found(loop: Any, monkeypatch) -> None:
    monkeypatch.setattr(kernel, "check_rows", loop)
    layout, indptr, bins, counts = fio_layout(29, 1), np.array([0, 2, 2, 3]), np.array([3, 7, 5]), np.array([1, 2, 3])
    check_bins(layout, indptr, bins, counts, [3, 0, 3])
    check_bins(layout, indptr, bins, counts, None)
    for wrong, totals in ((np.array([7, 7, 5]), [3, 0, 3]), (np.array([3, 7, layout.bins]), [3, 0, 3]), (bins, [3, 1, 3])):
        with pytest.raises(DamagedError):
            check_bins(layout, indptr, wrong, counts, totals)


@compiled
def test_what_does_not_fit_rows_is_an_error() -> None:
    one, indptr, bins, counts = (np.array(each, np.int64) for each in ([0], [0, 2], [3, 4], [5, 6]))
    rows, place, dense = (indptr, one, bins.astype(np.uint8), counts.astype(np.uint16)), np.arange(5), np.zeros(5, np.int64)
    kernel.place_rows(*rows, one, place, 5, dense)
    assert dense.tolist() == [0, 0, 0, 5, 6]
    kernel.rank_rows(*rows, np.array([11]), one)
    assert one.tolist() == [1]
    one[:] = 0
    laid = np.zeros(4, np.uint8)
    kernel.lay_rows(indptr, one + 1, rows[2], laid)
    assert laid.tolist() == [0, 3, 4, 0]
    wrong = [
        (kernel.lay_rows, (indptr, one + 3, rows[2], laid)),
        (kernel.lay_rows, (indptr, one - 1, rows[2], laid)),
        (kernel.lay_rows, (indptr + 1, one, rows[2], laid)),
        (kernel.lay_rows, (indptr[::-1].copy(), one, rows[2], laid)),
        (kernel.lay_rows, (indptr, indptr, rows[2], laid)),
        (kernel.lay_rows, (indptr, one, rows[3], laid)),
        (kernel.place_rows, (*rows, one + 1, place, 5, dense)),
        (kernel.place_rows, (*rows, one, place[:4].copy(), 5, dense)),
        (kernel.place_rows, (*rows, one, place, 4, dense)),
        (kernel.place_rows, (*rows, one, place, 0, dense)),
        (kernel.place_rows, (*rows, indptr, place, 5, dense)),
        (kernel.place_rows, (indptr + 1, *rows[1:], one, place, 5, dense)),
        (kernel.place_rows, (indptr, one + 1, *rows[2:], one, place, 5, dense)),
        (kernel.rank_rows, (*rows, np.array([12]), np.empty(1, np.int64))),
        (kernel.rank_rows, (*rows, np.array([1]), np.empty(2, np.int64))),
        (kernel.above_rows, (*rows[:3], counts[:1].copy(), one, one)),
        (kernel.weigh_rows, (*rows, np.zeros(4), np.empty(1))),
        (kernel.weigh_rows, (*rows, np.zeros(5), np.empty(2))),
        (kernel.unpack_rows, (b"abc", np.array([1]), np.array([0, 2]), bins.copy(), counts.copy())),
        (kernel.unpack_rows, (b"abcd", np.array([1]), np.array([0, 1]), one.copy(), one.copy())),
        (kernel.unpack_rows, (b"abc", np.array([5]), np.array([0, 1]), one.copy(), one.copy())),
        (kernel.check_rows, (indptr + 1, bins, counts, 9, one.copy())),
        (kernel.sum_rows, (one, one, indptr, bins, counts, 4, dense, indptr.copy(), place.copy(), place.copy())),
        (kernel.sum_rows, (one, one, indptr, bins, counts, 0, dense[:4].copy(), indptr.copy(), place.copy(), place.copy())),
        (kernel.sum_rows, (one, one, indptr, bins, counts, 3, dense[:2].copy(), indptr.copy(), one.copy(), one.copy())),
        (kernel.sum_rows, (one + 1, one, indptr, bins, counts, 0, dense, indptr.copy(), place.copy(), place.copy())),
    ]
    for loop, given in wrong:
        with pytest.raises(ValueError, match=r"."):
            loop(*given)
    for given in ((np.zeros(2, np.float32)[::2], counts), (bins, np.zeros((2, 2), np.uint8)[:, 0])):
        with pytest.raises((TypeError, ValueError, BufferError)):
            kernel.place_rows(indptr, one, *given, one, place, 5, dense)


@compiled
def test_what_lies_outside_is_an_error() -> None:
    group, indptr, bins, counts = (np.array(each, np.int64) for each in ([0, 1], [0, 1, 2], [3, 4], [5, 6]))
    dense = np.zeros(4, np.int64)
    kernel.add_rows(group, indptr, bins, counts, 3, 2, dense)
    assert dense.tolist() == [5, 0, 0, 6]
    for wrong in (
        (group + 1, indptr, bins, counts, 3, 2),
        (group - 1, indptr, bins, counts, 3, 2),
        (group, indptr, bins + 1, counts, 3, 2),
        (group, indptr, bins - 1, counts, 3, 2),
        (group, indptr, bins, counts, 3, 0),
        (group, indptr, bins, counts, 3, -2),
        (group, indptr[:2].copy(), bins, counts, 3, 2),
        (group, np.array([0, 2, 1]), bins, counts, 3, 2),
        (group, np.array([0, 1, 3]), bins, counts, 3, 2),
        (group, np.array([0, 1, -(2**63)]), bins, counts, 3, 2),
        (group, indptr, bins, counts[:1].copy(), 3, 2),
    ):
        with pytest.raises(ValueError, match="outside"):
            kernel.add_rows(*wrong, dense)
    part, whole, before = np.array([1, 1]), np.array([2, 1]), np.zeros(2, np.int64)
    kernel.share(counts, indptr, part, whole, before)
    assert before.tolist() == [2, 6]
    for pointers, one, other in ((indptr + 1, part, whole), (indptr[::-1].copy(), part, whole), (indptr, part, whole - 1), (indptr, -part, whole), (indptr, part + 1, whole), (indptr[1:].copy(), part, whole)):  # fmt: skip
        with pytest.raises(ValueError, match="cannot be cut"):
            kernel.share(counts, pointers, one, other, before)
    for text, rows in ((b"1\n", 1), (b"1\nx\n", -1), (b"", -1), (b"1", -1)):
        assert kernel.integer_rows(text, 1, before.copy()) == rows
    for text, width in ((b"1\n", 2), (b"1\n2\n", 1)):
        with pytest.raises(ValueError, match="one length"):
            kernel.integer_rows(text, width, before[:1].copy())


# ---- single operations: stretches that come again, sums by window


class Labelled(NamedTuple):
    op: str
    kind: str = "completion"


def chunks_of(seed: int) -> list[tuple[Any, Any, Any]]:
    """Return ends, latencies and series of operations chunk by chunk, some of which hold parts of the first again."""
    rng = np.random.default_rng(seed)
    most, step, slowest = rng.choice([3, 40, 1_000, 40_000]), rng.choice([1, 3, 1_000]), rng.choice([2, 20, 100_000])
    chunks: list[tuple[Any, Any, Any]] = []
    for _ in range(rng.integers(1, 5)):
        rows, last = rng.integers(1, most), chunks[-1][0][-1] if chunks else 0
        ends = last + np.cumsum(rng.integers(0, step + 1, rows))
        chunks.append((ends, rng.integers(0, slowest, rows), rng.integers(0, 3, rows)))
    if seed % 3 == 0 and len(chunks[0][0]) > 5:
        chunks.append((chunks[0][0][5:], chunks[0][1][5:], chunks[0][2][5:]))
    return chunks


def repeated(chunks: list[tuple[Any, Any, Any]]) -> Any:
    repeats = Repeats(Account(path="a"))
    for chunk in chunks:
        repeats.add(*chunk, [Labelled("read"), Labelled("write"), Labelled("")])
    repeats.finish()
    return repeats.found, repeats._met.tolist(), repeats._every, vars_of(repeats._account)


def by_window(chunk: tuple[Any, Any, Any], step: int) -> Any:
    table = tuple(Series(op=op) for op in ("read", "write", "trim"))
    rows = _completed(Events(table, chunk[2].astype(np.uint8), *chunk[:2]), step, events_layout(2))
    columns = rows.series, rows.start_ns, rows.end_ns, rows.indptr, rows.bins, rows.counts
    assert rows.exact is not None
    return [column.tolist() for column in (*columns, *rows.exact.take(np.arange(len(rows))).told[0])], rows.exact.min_ns.tolist()


@compiled
@pytest.mark.parametrize("part", range(2))
def test_single_operations_are_added_up_and_met_again_as_numpy_does(part: int, monkeypatch) -> None:
    every = [chunks_of(seed) for seed in range(part, figure(8, 40, 400), 2)]
    steps = [1, 7, 1_000, 0, 10**9]

    def told(chunks: list[tuple[Any, Any, Any]]) -> Any:
        unordered = [(np.roll(ends, len(ends) // 2), latencies, series) for ends, latencies, series in chunks]
        return repeated(chunks), [by_window(chunk, step) for step in steps for chunk in (*chunks, *unordered)]

    fast = [told(chunks) for chunks in every]
    for name in ("stretches", "event_rows"):
        monkeypatch.setattr(kernel, name, None)
    assert fast == [told(chunks) for chunks in every]
    assert any(found for (found, *_), _ in fast)


@compiled
def test_operations_outside_are_an_error() -> None:
    one, labels, state = np.array([5]), np.zeros(1, np.uint64), np.zeros(39, np.uint64)
    for series, kept in ((one, state), (one - 6, state), (one - 5, state[1:].copy())):
        with pytest.raises(ValueError, match="do not fit"):
            kernel.stretches(one, one, series, labels, 1, kept, one.copy(), one.copy())
    for series, ended, latency, first in ((2, 5, 3, 0), (-1, 5, 3, 0), (0, 5, 99, 0), (0, 5, 1, 0), (0, 5, -1, 0), (0, 5, 3, 1), (0, 99, 3, 0)):  # fmt: skip
        columns = np.array([series]), np.array([ended]), np.array([latency])
        sums = (
            np.zeros(8, np.int64),
            np.full(2, 9),
            *np.zeros((2, 2), np.int64),
            *(np.zeros(size, np.int64) for size in (3, 1, 1)),
        )
        with pytest.raises(ValueError, match="outside"):
            kernel.event_rows(*columns, 10, first, 2, 64, 2, 4, *sums)


# ---- words of HdrHistogram payloads


WORDS = (*range(1, 9), 62, 63, 127, 128, 255, 16_383, 16_384, 2**41 - 1, 2**41 + 1, 2**55, 2**56 - 1)


def words_of(rng: random.Random) -> bytes:
    """Return words as writers make them, seldom one that is longer than it need be."""
    out = bytearray()
    for _ in range(rng.randrange(30)):
        value = rng.choice(WORDS)
        while value >= 128 or rng.random() < 0.01:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def counted(payloads: list[Payload]) -> Any:
    found = counts_of(payloads)
    return found.indptr.tolist(), found.bins.tolist(), found.counts.tolist(), found.faults


@compiled
@pytest.mark.parametrize("seed", range(figure(1, 2, 20)))
def test_mutated_words_are_counted_and_refused_as_numpy_does(seed: int, monkeypatch) -> None:
    rng, batches = random.Random(seed), []
    for _ in range(figure(200, 1_000, 10_000)):
        slots = rng.choice((5, 70, 40_000, 2**62))
        texts = [mutated(words_of(rng), steps_of(rng, 2)) for _ in range(rng.randrange(1, 9))]
        batches.append([Payload(Geometry(3, 0), slots, 0, text) for text in texts])
    fast = [counted(batch) for batch in batches]
    monkeypatch.setattr(kernel, "hdr_rows", None)
    assert fast == [counted(batch) for batch in batches]
    assert {reason for *_, faults in fast for reason in faults.values()} > {CUT, PAST, "a count or gap of 2^55 or more"}
    assert sum(map(len, batches)) // 4 < sum(len(indptr) - 1 - len(faults) for indptr, *_, faults in fast)


@compiled
def test_words_outside_of_their_text_are_an_error() -> None:
    starts, indptr, bins, counts = np.array([0, 2, 3]), np.zeros(3, np.int64), *np.zeros((2, 3), np.int64)
    assert kernel.hdr_rows(b"\x03\x04\x06", starts, indptr, bins, counts) == 2
    assert (indptr.tolist(), bins.tolist()[:2], counts.tolist()[:2]) == ([0, 1, 2], [2, 0], [2, 3])
    for text in (b"\x03\x84\x06", b"\x03\x04\x86"):
        assert kernel.hdr_rows(text, starts, indptr, bins, counts) == -1
    for wrong in (
        (starts + 1, indptr, bins, counts),
        (starts - 1, indptr, bins, counts),
        (np.array([0, 3, 0]), indptr, bins, counts),
        (starts[:2].copy(), indptr, bins, counts),
        (starts[:0].copy(), indptr[:0].copy(), bins, counts),
        (starts, indptr, bins[:2].copy(), counts),
        (starts, indptr, bins, counts[:2].copy()),
    ):
        with pytest.raises(ValueError, match="no room"):
            kernel.hdr_rows(b"\x04\x04\x06", *wrong)


SANITIZED = """
import importlib.util, pytest, sys
spec = importlib.util.spec_from_file_location("ingest.core._kernel", sys.argv[1])
sys.modules["ingest.core._kernel"] = importlib.util.module_from_spec(spec)
from ingest.core import kernel
assert kernel._compiled.__file__ == sys.argv[1]
sys.exit(pytest.main(["-p", "no:cacheprovider", "-m", "not soak", "-k", "not in_use", "tests/test_kernel.py"]))
"""


@pytest.mark.soak
@pytest.mark.parametrize("option", ["", "-DPORTABLE"])
def test_no_byte_outside_of_a_buffer_is_read_or_written(option: str, tmp_path: Path) -> None:
    """The tests above with loops that were built with the sanitizers of addresses and of undefined behaviour."""
    import hatch_build

    module = tmp_path / "_kernel.abi3.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFLAGS", f"-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all {option}")
        if why := hatch_build.compiled(ROOT / hatch_build.SOURCE, module):
            pytest.skip(f"no sanitizers here: {why}")
    library = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {name: value for name, value in os.environ.items() if name not in {"TAILBOARD_SOAK", "PYTEST_ADDOPTS"}}
    environment |= {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", SANITIZED, str(module)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and " passed" in done.stdout, (done.stdout + done.stderr)[-3000:]


SLOWER = "NumPy reads logs, slower and with the same results: "
BUILT = importlib.util.find_spec("ingest.core._kernel") is not None


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("1", SLOWER + "TAILBOARD_NUMPY is set"),
        ("", "compiled loops read logs" if BUILT else SLOWER + "no C compiler was there when tailboard was installed"),
    ],
    ids=["not wanted", "as installed"],
)
def test_which_of_the_two_is_in_use_is_said(without: str, said: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ingest", "store", "doctor", f"sqlite:{tmp_path / 'none.db'}"]
    done = subprocess.run(words, env=os.environ | {kernel.WITHOUT: without}, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[0] == f"ok        readers: {said}"
