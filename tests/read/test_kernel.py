"""The compiled loops beside NumPy, the judge: the same numbers, and the same rows refused with the same reasons and lines.

Every other test runs with whichever of the two is in use; `.ci/run` runs those of readers and questions with both.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core import kernel
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio import histogram_log
from ingest.read.fio.histogram_log import Scanner
from ingest.read.integers import Parser
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
    cells += [str(rng.choice((1, 7, 42, 5_000, 2**64 - 1))) if rng.random() < share else "0" for _ in range(columns - leading)]
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
    assert kernel.fio_rows(text, 5, 3, *room) == 4
    for number in range(4):
        short = [column.copy() for column in room]
        short[number] = short[number][:-1].copy()
        with pytest.raises(ValueError, match="no room"):
            kernel.fio_rows(text, 5, 3, *short)
    for columns, leading in ((5, 4), (5, -1), (3, 3), (-5, 3), (0, 0), (-1, -2)):
        with pytest.raises(ValueError, match="no room"):
            kernel.fio_rows(text, columns, leading, *room)
    odd = np.zeros(8 * 8 + 1, np.uint8)[1:].view(np.uint8)
    with pytest.raises(ValueError, match="no room"):
        kernel.fio_rows(text, 5, 3, room[0], room[1], odd, room[3])
    with pytest.raises((TypeError, BufferError)):
        kernel.fio_rows(text, 5, 3, room[0], room[1], b"0" * 64, room[3])


SANITIZED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("ingest.core._kernel", sys.argv[1])
sys.modules["ingest.core._kernel"] = importlib.util.module_from_spec(spec)
from ingest.core import kernel
assert kernel._compiled.__file__ == sys.argv[1]
from tests.read import test_kernel
print(test_kernel.held_against_numpy(100_000, 7))
"""


@pytest.mark.soak
def test_no_byte_outside_of_a_buffer_is_read_or_written(tmp_path: Path) -> None:
    """The loops built with the sanitizers of addresses and of undefined behaviour, on 100,000 mutated rows."""
    import hatch_build

    module = tmp_path / "_kernel.abi3.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFLAGS", "-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all")
        if why := hatch_build.compiled(ROOT / hatch_build.SOURCE, module):
            pytest.skip(f"no sanitizers here: {why}")
    library = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, str(module)], env=environment, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= 100_000


@pytest.mark.parametrize(
    ("without", "said"),
    [("1", "NumPy reads logs, slower and with the same results: TAILBOARD_NUMPY is set"), ("", kernel.in_words())],
)
def test_which_of_the_two_is_in_use_is_said(without: str, said: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ingest", "store", "doctor", f"sqlite:{tmp_path / 'none.db'}"]
    done = subprocess.run(words, env=os.environ | {kernel.WITHOUT: without}, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[0] == f"ok        readers: {said}"
