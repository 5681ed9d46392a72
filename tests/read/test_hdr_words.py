"""Words of V2 payloads: what rows of any words hold, beside one loop over their bytes."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core import kernel
from ingest.read.hdr import payload
from tests.effort import figure

SMALL = (1, 2, 3, 31, 32, 63, 64)
LARGE = (65, 127, 128, 129, 8_191, 8_192, 20_000, 1 << 40, (1 << 54) - 1)


def word(value: int, padding: int = 0) -> bytes:
    """Return a word of a value that is ZigZag already, with so many more bytes than it needs."""
    out = bytearray()
    while value >= 128 or padding:
        padding -= value < 128
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def in_a_loop(text: bytes) -> tuple[list[tuple[int, int]], bool]:
    """Return bins and counts of words, and whether one of them has more than eight bytes."""
    counts, bin_, value, size = [], 0, 0, 0
    for byte in text:
        value |= (byte & 127) << 7 * size
        size += 1
        if byte >= 128:
            continue
        if size > payload.LONGEST_WORD:
            return [], True
        if value % 2:
            bin_ += min((value + 1) // 2, payload.FAR)
        else:
            if value:
                counts.append((bin_, value // 2))
            bin_ += 1
        value = size = 0
    return counts, False


sizes = st.one_of(st.sampled_from(SMALL), st.sampled_from(LARGE))
counted = st.builds(lambda size, padding: word(2 * size, padding), sizes, st.sampled_from((0, 0, 0, 1)))
empty = st.builds(lambda size, padding: word(2 * size - 1, padding), sizes, st.sampled_from((0, 0, 0, 1)))
lone = st.sampled_from([b"\0", b"\x80\x00", b"\x01"])
usual = st.lists(st.tuples(st.one_of(st.just(b""), empty, lone), counted).map(b"".join), max_size=12).map(b"".join)
hostile = st.lists(st.one_of(counted, empty, lone, st.just(b"\x80" * 8 + b"\x02")), max_size=12).map(b"".join)


@pytest.mark.slow
@settings(max_examples=figure(150, 300, 5_000))
@given(texts=st.lists(st.one_of(usual, usual, hostile), max_size=6))
@example(texts=[b"\x02", b"", b"\x01\x02\x03", b"\x04"])
@example(texts=[b"\x01", b"\x02"])
@example(texts=[b"\x80\x01\x02", b"\x81\x01\x80\x01"])
def test_rows_of_any_words_hold_what_a_loop_over_their_bytes_finds(texts: list[bytes]) -> None:
    for compiled in {kernel.hdr_rows, None}:
        with patch.object(kernel, "hdr_rows", compiled):
            indptr, bins, counts, too_long = payload.rows_of(texts)
        for row, text in enumerate(texts):
            entries = slice(indptr[row], indptr[row + 1])
            expected, long = in_a_loop(text)
            assert long == (row in too_long)
            if not long:
                assert list(zip(bins[entries].tolist(), counts[entries].tolist(), strict=True)) == expected
