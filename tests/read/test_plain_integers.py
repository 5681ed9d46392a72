"""Rows of plain integers by words of 64 bits: the same numbers as Python's, or nothing where any byte is another."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.read.account import Account
from ingest.read.described.table import Form, IntegerLines, arrow
from ingest.read.integers import PlainIntegers
from tests.effort import figure

WIDTH = 3
ROW = re.compile(rb"\d{1,18}(?:, \d{1,18}){2}\n")
NUMBERS = st.one_of(
    st.integers(0, 10), st.integers(0, 10**9), st.integers(0, 10**18 - 1), st.integers(0, 18).map(lambda n: 10**n - 1)
)
TEXTS = st.one_of(NUMBERS.map(str), st.tuples(st.integers(0, 5), NUMBERS).map(lambda pair: ("0" * pair[0] + str(pair[1]))[:20]))
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=40)
ODD = st.sampled_from(
    [b"", b" ", b",", b"\n", b"\r\n", b"-", b"+", b"x", b"/", b":", b"\0", b"\xb0", b"\xff", b"\t", b"0" * 19, b".5"]
)


def text_of(rows: list[tuple[str, ...]]) -> bytes:
    return b"".join(", ".join(row).encode() + b"\n" for row in rows)


def expected(text: bytes) -> list[list[int]] | None:
    lines = text.splitlines(keepends=True) if b"\r" not in text else []
    if not lines or not all(ROW.fullmatch(line) for line in lines):
        return None
    return [list(column) for column in zip(*([int(cell) for cell in line.split(b",")] for line in lines), strict=True)]


def found(text: bytes) -> list[list[int]] | None:
    columns = PlainIntegers(WIDTH).columns(np.frombuffer(text, np.uint8))
    return None if columns is None else [column.tolist() for column in columns]


@pytest.mark.slow
@settings(max_examples=figure(150, 3000))
@given(ROWS)
def test_numbers_are_those_of_python(rows: list[tuple[str, ...]]) -> None:
    text = text_of(rows)
    assert found(text) == expected(text)


@pytest.mark.slow
@settings(max_examples=figure(300, 6000))
@given(ROWS, st.lists(st.tuples(st.integers(0, 10_000), ODD, st.booleans()), min_size=1, max_size=3))
def test_one_other_byte_and_nothing_is_read(rows: list[tuple[str, ...]], faults: list[tuple[int, bytes, bool]]) -> None:
    """Bytes are put in or written over anywhere; only what still is a table of plain integers gives numbers, the right ones."""
    text = text_of(rows)
    for place, odd, over in faults:
        at = place % len(text)
        text = text[:at] + odd + text[at + over :]
    assert found(text) == expected(text)


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_a_block_is_read_up_to_its_last_line_end(rows: int) -> None:
    random = np.random.default_rng(rows)
    numbers = random.integers(0, 10 ** random.integers(1, 19, (rows, WIDTH)))
    text = text_of([tuple(map(str, row)) for row in numbers.tolist()])
    assert found(text) == numbers.T.tolist()
    assert found(text[:-1]) is None
    assert found(b"") is None


def test_memory_that_is_kept_holds_nothing_of_the_block_before() -> None:
    parser = PlainIntegers(WIDTH)
    for text in (b"99999999, 99999999, 99999999\n" * 9, b"1, 2, 3\n", b"7, 88, 999999999999\n4, 55, 6\n"):
        columns = parser.columns(np.frombuffer(text, np.uint8))
        assert columns is not None
        assert [column.tolist() for column in columns] == expected(text)


def test_a_block_that_is_not_plain_is_read_by_arrow_and_lines_are_counted_on() -> None:
    pa = arrow()
    account = Account()
    form = Form(
        ("a", "b", "c"), dict.fromkeys("abc", pa.int64()), [(r"^\d+, ?\d+, ?\d+\n$", dict.fromkeys("abc", pa.int64()))], "odd"
    )
    lines = IntegerLines("abc", lambda: form, account)
    blocks = [b"1, 2, 3\n4, 5, 6\n", b"7,8,9\n", b"x\n10, 11, 12\n", b"13, 14, 15\n"]
    parts = [part for block in blocks for part in lines.columns(memoryview(bytearray(block)))]
    assert np.concatenate([columns["b"] for columns, _ in parts]).tolist() == [2, 5, 8, 11, 14]
    assert np.concatenate([numbers for _, numbers in parts]).tolist() == [1, 2, 3, 5, 6]
    assert account.rows_rejected == 1
