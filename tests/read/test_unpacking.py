"""base64 and zlib with and without the packages of the extra `fast`: the same bytes, and the same reasons."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.read.hdr import payload as unpacking
from tests.effort import figure

EXAMPLES = figure(60, 300, 20_000)


def outcome(work: Callable[[bytes], bytes], data: bytes) -> bytes | str:
    try:
        return work(data)
    except (binascii.Error, zlib.error) as error:
        return f"{type(error).__name__}: {error}"


def changed(data: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    text = bytearray(data)
    for what, place, byte in edits:
        at = place % (len(text) + 1)
        text[at : at + (what != "put in")] = b"" if what == "take out" else byte
    return bytes(text)


EDITS = st.lists(
    st.tuples(st.sampled_from(("put in", "take out", "replace")), st.integers(0, 400), st.binary(min_size=1, max_size=1)),
    max_size=3,
)
SIGNS = st.lists(st.tuples(st.just("put in"), st.integers(0, 400), st.sampled_from([b"=", b"\n", b" ", b"-", b"A"])), max_size=3)


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=60), EDITS, SIGNS)
def test_base64_is_what_the_standard_library_reads(
    raw: bytes, edits: list[tuple[str, int, bytes]], signs: list[tuple[str, int, bytes]]
) -> None:
    text = changed(changed(base64.b64encode(raw), edits), signs)
    assert outcome(unpacking.from_base64, text) == outcome(lambda data: binascii.a2b_base64(data, strict_mode=True), text)


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=300), st.integers(0, 9), EDITS, st.binary(max_size=4))
def test_streams_are_what_zlib_reads(raw: bytes, level: int, edits: list[tuple[str, int, bytes]], behind: bytes) -> None:
    data = changed(zlib.compress(raw * 3, level), edits) + behind
    assert outcome(unpacking.inflated, data) == outcome(zlib.decompress, data)


def test_nothing_is_needed_beside_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "PYBASE64", None)
    monkeypatch.setattr(unpacking, "ISAL", None)
    assert unpacking.inflated(unpacking.from_base64(base64.b64encode(zlib.compress(b"abc")))) == b"abc"
    with pytest.raises(binascii.Error):
        unpacking.from_base64(b"a=bc")
    with pytest.raises(zlib.error):
        unpacking.inflated(b"abc")
