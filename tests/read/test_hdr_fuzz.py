"""Mutated HdrHistogram logs: nothing but a TailboardError ever comes out, no memory is claimed, every line is counted."""

from __future__ import annotations

import base64
import gzip
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import TailboardError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read import read
from ingest.read.hdr.payload import PayloadError, counts_of, payload_of, payload_of_bytes
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.mutations import Change, Mutation, mutated, mutations

DATA = Path(__file__).parent.parent / "data" / "hdr"
LOGS = ("tagged", "resized", "double", "1.2.1-2-digits", "2.0.3-3-digits", "2.1.12-2-digits-lowest-20000")
CONTENTS = {name: b"".join((DATA / f"{name}.hlog").read_bytes().splitlines(keepends=True)[:14]) for name in LOGS}
EXAMPLES = figure(40, 90, 500)
KINDS = ["flip", "delete", "insert", "truncate", "swap", "duplicate", "nul", "comma", "crlf", "payload", "header"]
TEXTS = [b"-1", b"1e9", b"nan", b"Tag=x,", b"HIST", b"=", b"#", b'"', b"99999999999"]
steps = mutations(KINDS, 2**16, 200, st.one_of(st.sampled_from(TEXTS), st.binary(max_size=6)))


def inside(line: bytes, place: int, new: bytes, *, header: bool) -> bytes:
    """Return a line whose histogram was inflated, changed in some bytes, and deflated again: a true checksum on false data."""
    front, _, text = line.rpartition(b",")
    try:
        data = base64.b64decode(text)
        outer, inner = (data[:16], data[16:]) if data[:3] == b"\x0c\x72\x12" else (b"", data)
        body = bytearray(zlib.decompress(inner[8:]))
    except (ValueError, zlib.error):
        return line
    at = place % (min(40, len(body)) if header else len(body)) if body else 0
    body[at : at + len(new)] = new
    packed = zlib.compress(bytes(body))
    return front + b"," + base64.b64encode(outer + inner[:4] + struct.pack(">I", len(packed)) + packed)


def of_line(change: Change) -> Change:
    """Return the change of the one line that a place names."""

    def changed(content: bytes, place: int, size: int, new: bytes) -> bytes:
        lines = content.split(b"\n")
        one = place % len(lines)
        lines[one] = change(lines[one], size, size % len(lines), new)
        return b"\n".join(lines)

    return changed


def comma(line: bytes, _: int, other: int, new: bytes) -> bytes:
    cells = line.split(b",")
    cells[other % len(cells)] = new
    return b",".join(cells)


def hole(content: bytes, place: int, size: int, new: bytes) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + b"\0" * size + content[at:]


OWN = {
    "nul": hole,
    "crlf": lambda content, *_: content.replace(b"\n", b"\r\n"),
    "comma": of_line(comma),
    "payload": of_line(lambda line, size, _, new: inside(line, size, new or b"\xff", header=False)),
    "header": of_line(lambda line, size, _, new: inside(line, size, new or b"\xff", header=True)),
}


def intervals_in(content: bytes) -> int:
    """Return how many lines are neither comment, legend nor blank."""
    return sum(bool(line.strip(b" \t\r\0")) and line[:1] not in (b"#", b'"') for line in content.split(b"\n"))


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=EXAMPLES)
@given(changes=steps)
@example(changes=[])
def test_nothing_but_a_sentence_comes_out_and_every_line_is_counted(tmp_path_factory, name: str, changes: list[Mutation]) -> None:
    content = mutated(CONTENTS[name], changes, OWN)
    path = tmp_path_factory.mktemp("fuzz") / "x.hlog"
    path.write_bytes(content)
    try:
        found = discover([path], ReadOptions(input_format="hdr-log", recorded_unit_ns=1))
    except TailboardError:
        return
    [source] = found.sources
    account = source.context.account
    rows, samples = 0, 0
    try:
        for chunk in read(source):
            rows += len(chunk)
            samples += int(chunk.counts.sum())
            assert (chunk.counts > 0).all() and (chunk.end_ns >= chunk.start_ns).all()
            assert (chunk.bins >= 0).all() and (chunk.bins < chunk.layout.bins).all()
    except TailboardError:
        pass
    assert account.rows == intervals_in(content)
    assert (account.accepted, account.samples) == (rows, samples)
    assert account.accepted + account.rows_rejected == account.rows
    if not changes:
        assert account.accepted == account.rows > 0
    try:
        answer = Files([path], ReadOptions(input_format="hdr-log", recorded_unit_ns=1), jobs=1).answer(
            Question(step="all", by=("op", "tag"))
        )
        assert answer.samples <= samples
    except TailboardError:
        pass


@settings(max_examples=EXAMPLES)
@given(data=st.binary(max_size=200), front=st.sampled_from(["1c849313", "1c849321", "1c849388", "1c849314", "0c72124f", ""]))
def test_any_bytes_are_a_histogram_or_a_sentence(data: bytes, front: str) -> None:
    try:
        payload = payload_of_bytes(bytes.fromhex(front) + data)
    except PayloadError as error:
        said = str(error)
        assert said, "a refusal gives its reason"  # noqa: PT017  # any bytes may also be fine
        return
    found = counts_of([payload])
    assert found.faults or (found.bins < payload.slots).all()


@settings(max_examples=EXAMPLES)
@given(text=st.binary(max_size=80))
def test_any_text_is_a_histogram_or_a_sentence(text: bytes) -> None:
    try:
        payload_of(text)
    except PayloadError as error:
        assert str(error), "a refusal gives its reason"  # noqa: PT017  # any text may also be fine


def test_a_broken_gz_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "x.hlog.gz"
    path.write_bytes(gzip.compress((DATA / "tagged.hlog").read_bytes())[:-9000])
    [source] = discover([path], ReadOptions()).sources
    assert list(read(source))
    assert "damaged or cut off" in source.context.account.cut_short
