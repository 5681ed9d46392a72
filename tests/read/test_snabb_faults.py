"""Timelines that are no timelines, damaged, cut off, or written to all the while: a sentence, or events that are whole."""

from __future__ import annotations

import lzma
import mmap
import struct
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError
from ingest.query.files import Files
from ingest.query.lags import weighed
from ingest.query.question import Question
from ingest.read import read
from ingest.read.placement import discover
from ingest.read.plugins.snabb.breaths import breaths
from ingest.read.plugins.snabb.ring import HOLE, IMPOSSIBLE, MOST_STRINGS, _settled
from ingest.read.plugins.snabb.timeline import timeline
from ingest.read.sources import ReadOptions
from oracles import snabb as oracle
from tests.effort import figure
from tests.mutations import Mutation, mutated
from tests.mutations import mutations as drawn

HZ = 2_000_000_000
EXAMPLES = figure(60, 150, 500)
TEXTS = (
    "1,5|engine.breath_start: breath totalpackets",
    "2,3|engine.got_monotonic_time: unixnanos",
    "3,3|app.push app=0000:01:00.0:",
    "9,1|packet.packet_freed: length",
    "1,5|engine.breath_end: breath totalpackets",
)


def made(count: int, size: int = 60, major: int = 3, step: int = 1000) -> oracle.Writer:
    ring = oracle.Writer(size, major, strings_bytes=1024)
    for number in range(count):
        text = TEXTS[number % len(TEXTS)]
        told = 10**9 + number * step // 2 if "unixnanos" in text else number // 5
        ring.event(text, 10**12 + number * step, number % 7 == 6, told, 3 * number)
    return ring


def written(folder: Path, data: bytes, name: str = "x.timeline") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


GOOD = made(40).data()


def with_(place: int, new: bytes, data: bytes = GOOD) -> bytes:
    return data[:place] + new + data[place + len(new) :]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        pytest.param(b"", "it has 0 bytes", id="empty"),
        pytest.param(GOOD[:63], "it has 63 bytes, its header alone would have 64", id="half a header"),
        pytest.param(GOOD[:-1], r"is cut off: its header states 4,928 bytes, 4,927 are there", id="a byte short"),
        pytest.param(GOOD[:700], "is cut off", id="cut off"),
        pytest.param(with_(0, b"\x7fELF\0\0\0\0"), "it begins with 7f454c4600000000, not with 01001d442372ffa3", id="magic"),
        pytest.param(with_(4, bytes(4)), "its magic number is that of a draft", id="magic of the draft"),
        pytest.param(with_(8, struct.pack("<HH", 4, 1)), r"version 4\.1: versions 2 and 3 are known", id="version"),
        pytest.param(with_(8, struct.pack("<HH", 1, 0)), r"version 1\.0", id="version 1"),
        pytest.param(with_(12, struct.pack("<I", 0)), "0 bytes are no entries of 64 bytes", id="no entries"),
        pytest.param(with_(12, struct.pack("<I", 65)), "65 bytes are no entries of 64 bytes", id="half an entry"),
        pytest.param(
            with_(12, struct.pack("<I", 0xFFFFFFC0)), "is cut off: its header states 4,294,968,320 bytes", id="a huge ring"
        ),
        pytest.param(with_(16, struct.pack("<I", 0xFFFFFFFF)), "bytes of texts, where numbers reach 1,048,576", id="huge texts"),
        pytest.param(oracle.Writer(60).data(), "holds no event: its ring is empty", id="empty ring"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(InputError, match=sentence) as caught:
        timeline(path, HZ)
    assert str(path) in str(caught.value)
    with pytest.raises(InputError, match=sentence if data else "empty file"):
        discover([path], ReadOptions(tsc_hz=HZ))
    packed = written(tmp_path, lzma.compress(data), "x.timeline.xz")
    with pytest.raises(InputError, match="would hold 4,294,968,320" if "4,294" in sentence else sentence):
        timeline(packed, HZ)


def test_a_refused_timeline_does_not_stop_the_others(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "good.timeline")
    written(tmp_path, GOOD[:-1], "short.timeline")
    written(tmp_path, b"", "nothing.timeline")
    written(tmp_path, b"hello", "notes.txt")
    found = discover([tmp_path], ReadOptions(tsc_hz=HZ))
    assert [source.path.name for source in found.sources] == ["good.timeline"]
    assert [(entry.path.name, entry.action) for entry in found.skipped] == [
        ("notes.txt", "skipped"),
        ("nothing.timeline", "skipped"),
        ("short.timeline", "refused"),
    ]


def test_impossible_stamps_and_holes_cost_their_own_entries(tmp_path: Path) -> None:
    data = GOOD
    for place, stamp in ((5, float("nan")), (6, float("inf")), (7, -3.0), (8, 2.0**70), (9, 0.0), (10, 0.0)):
        data = with_(64 + 64 * place, struct.pack("<d", stamp), data)
    found = timeline(written(tmp_path, data), HZ)
    assert {reason: places.tolist() for reason, places in found.ring.rejected.items()} == {
        IMPOSSIBLE: [5, 6, 7, 8],
        HOLE: [9, 10],
    }
    [source] = discover([written(tmp_path, data)], ReadOptions(tsc_hz=HZ)).sources
    list(read(source))
    account = source.context.account
    assert (account.rows, account.accepted, account.rows_rejected) == (40, 34, 6)
    assert [finding.line for finding in account.findings] == [6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("count", [40, 200])
def test_two_seams_are_refused(tmp_path: Path, count: int) -> None:
    """Two copies of a ring, taken at different times, in one file: no writer leaves that."""
    data = made(count).data()
    later = made(count + 25, step=1001).data()
    mixed = data[: 64 + 64 * 20] + later[64 + 64 * 20 : 64 + 64 * 30] + data[64 + 64 * 30 :]
    mixed = with_(64 + 64 * 12, made(count + 90, step=3).data()[64 : 64 + 64 * 5], mixed)
    with pytest.raises(InputError, match=r"run back \d+ times, where a (full ring has one|ring that is not full has no) seam"):
        timeline(written(tmp_path, mixed), HZ)


def test_stamps_of_a_century_and_endless_texts(tmp_path: Path) -> None:
    ring = made(20)
    ring.event(TEXTS[0], 2**61, 0)
    with pytest.raises(InputError, match="reach over more than 70 years"):
        timeline(written(tmp_path, ring.data()), 10**6)
    data = made(40).data()
    data = data[:-1024] + b"1,5|" + b"a" * 1020
    assert not timeline(written(tmp_path, data), HZ).messages[0].attributes
    assert MOST_STRINGS == 16 * 65536


def test_bytes_behind_the_end_are_told(tmp_path: Path) -> None:
    found = timeline(written(tmp_path, GOOD + b"more"), HZ)
    assert found.ring.notes == ("4 bytes behind the end that its header states were not read",)


# Live -------------------------------------------------------------------------------------------------------

LIVE = """
import mmap, select, sys
import numpy as np
path, size = sys.argv[1], int(sys.argv[2])
with open(path, "r+b") as stream:
    ring = mmap.mmap(stream.fileno(), 0)
doubles, shorts = np.frombuffer(ring, "<f8"), np.frombuffer(ring, "<u2")
tsc, number = 10**12, 0
while number % 512 or not select.select([sys.stdin], [], [], 0)[0]:  # until nobody reads any more
    at = 1 + number % size
    tsc += 10
    shorts[32 * at + 4] = 4 * (number % 2)
    doubles[8 * at + 2] = number
    doubles[8 * at + 3] = tsc
    shorts[32 * at + 5] = 1
    doubles[8 * at] = tsc
    number += 1
print(number)
"""


@pytest.mark.slow
def test_a_ring_that_is_written_all_the_while_is_read_whole_every_time(tmp_path: Path) -> None:
    """Each reading holds events one after another, each with its own arguments: nothing torn, nothing lost in between."""
    size = 20_000
    ring = oracle.Writer(size)
    ring.number("1,5|engine.breath_start: breath stamp".ljust(63))
    ring.number("1,5|engine.breath_end: breath stamp")
    path = written(tmp_path, ring.data())
    line = [sys.executable, "-c", LIVE, str(path), str(size)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            readings, lengths = readings_of(path, size)
        finally:
            process.stdin.close()
        stored = int(process.stdout.read())
    assert stored > 2 * size and readings > 20 and size - 1 in lengths


def readings_of(path: Path, size: int) -> tuple[int, set[int]]:
    """Return how often a ring was read while a process wrote it round and round, and how many events there were; each reading is checked."""
    readings, last, lengths = 0, 0, set()
    end = time.monotonic() + 300  # so that a test which hangs ends
    while (readings <= 20 or last <= 2 * size or size - 1 not in lengths) and time.monotonic() < end:
        try:
            found = timeline(path, HZ)
        except InputError as error:
            said = str(error)
            assert "holds no event" in said or "written to faster" in said  # noqa: PT017  # most readings raise nothing
            time.sleep(0.01)
            continue
        told = found.arguments(np.arange(len(found)))
        assert (np.diff(found.tsc) == 10).all() and (told[:, 1] == found.tsc).all()
        assert (np.diff(told[:, 0]) == 1).all()
        names = [found.messages[code].name for code in found.codes[:2]]
        assert names == (
            ["engine.breath_start", "engine.breath_end"] if told[0, 0] % 2 == 0 else ["engine.breath_end", "engine.breath_start"]
        )
        assert not set(found.ring.rejected) & {HOLE, IMPOSSIBLE}
        readings, last = readings + 1, int(told[-1, 0])
        lengths.add(len(found))
    return readings, lengths


class Changing:
    """A file that is another one each time it is looked at."""

    def __init__(self, contents: list[bytes]) -> None:
        self.contents = contents

    def now(self) -> bytes:
        return self.contents.pop(0) if len(self.contents) > 1 else self.contents[0]

    def __bytes__(self) -> bytes:
        return self.now()

    def __getitem__(self, part: slice) -> bytes:
        return self.now()[part]


def test_a_copy_that_fits_nothing_is_taken_anew() -> None:
    data, later = made(100).data(), made(130, step=1001).data()
    half = (
        data[: 64 + 64 * 20]
        + later[64 + 64 * 20 : 64 + 64 * 30]
        + data[64 + 64 * 30 : 64 + 64 * 35]
        + made(220).data()[64 + 64 * 35 :]
    )
    half = with_(64 + 64 * 12, made(90, step=3).data()[64 : 64 + 64 * 5], half)
    ring = _settled(Changing([half, data, data]), Path("x"))  # type: ignore[arg-type]
    assert ring.order.tolist() == [event["place"] for event in made(100).kept()]
    with pytest.raises(InputError, match="run back"):
        _settled(Changing([half]), Path("x"))  # type: ignore[arg-type]
    newest = 64 + 64 * (99 % 60)
    torn = with_(newest + 16, b"torn", data)
    ring = _settled(Changing([torn, data, data]), Path("x"))  # type: ignore[arg-type]
    assert ring.entries.tobytes() == data[64 : 64 + 64 * 60], "the newest entry was not the same twice: read anew"
    with pytest.raises(InputError, match="written to faster than it can be read"):
        _settled(Changing([torn, data] * 10), Path("x"))  # type: ignore[arg-type]


# Random damage ----------------------------------------------------------------------------------------------

CONTENTS = {
    "whole": GOOD,
    "wrapped": made(150).data(),
    "full": made(60).data(),
    "v2": made(130, major=2).data(),
    "short": made(3, 8).data(),
}
NUMBERS = [
    struct.pack("<d", value) for value in (0.0, -1.0, float("nan"), float("inf"), 1e300, 2.0**62, 2.0**61, 5e-324, 1e12, 1.8e18)
] + [bytes(8), b"\xff" * 8, struct.pack("<Q", 2**63), struct.pack("<I", 64), struct.pack("<H", 0xFFFF), b"9,9|", b"\0" * 64]
KINDS = ["flip", "delete", "insert", "truncate", "swap", "duplicate", "nul", "number", "field", "header", "text"]
mutations = drawn(KINDS, 2**16, 200, st.one_of(st.sampled_from(NUMBERS), st.binary(max_size=8)), most=6)


def swap(content: bytes, place: int, size: int, new: bytes) -> bytes:
    one, other = 64 + 64 * (place % 60), 64 + 64 * (size % 60)
    first, second = content[one : one + 64], content[other : other + 64]
    return with_(one, second, with_(other, first, content))


OWN = {
    "swap": swap,
    "number": lambda content, place, size, new: with_(64 + 8 * (place % 480), new, content),
    "field": lambda content, place, size, new: with_(64 + 64 * (place % 60) + (0, 8, 10, 16)[size % 4], new, content),
    "header": lambda content, place, size, new: with_((0, 8, 10, 12, 16)[place % 5], new, content),
    "text": lambda content, place, size, new: with_(max(0, len(content) - 1024 + place % 200), new, content),
}


def folder(factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all examples; each overwrites the file of the one before."""
    if not hasattr(folder, "made"):
        folder.made = factory.mktemp("fuzz")
    return folder.made


@pytest.mark.slow
@settings(max_examples=EXAMPLES * 3)
@given(st.sampled_from(sorted(CONTENTS)), mutations, st.sampled_from([0, HZ, 10**6]))
@example("whole", [("number", 0, 0, struct.pack("<d", 2.0**61))], 10**6)
@example("wrapped", [("number", 8 * 59, 0, struct.pack("<d", 1e300))], 0)
def test_nothing_but_a_sentence_comes_out_and_every_entry_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: list[Mutation], hz: int
) -> None:
    data = mutated(CONTENTS[name], steps, OWN)
    path = written(folder(tmp_path_factory), data)
    try:
        files = Files([path], ReadOptions(input_format="snabb", tsc_hz=hz), jobs=1)
    except TailboardError:
        return
    [source] = files.found.sources
    account = source.context.account
    found = timeline(path, hz)
    breaths(found)
    lags = found.lags()
    assert (lags.anchor < np.arange(len(found))).all() and (lags.cycles[lags.fault == 0] >= 0).all()
    samples = 0
    for chunk in read(source):
        samples += int(chunk.counts.sum())
        assert (chunk.counts > 0).all() and (chunk.end_ns >= chunk.start_ns).all()
        assert (chunk.bins >= 0).all() and (chunk.bins < chunk.layout.bins).all()
    assert account.samples == samples
    assert account.rows == account.accepted + account.rows_rejected
    _, _, length, _ = struct.unpack_from("<HHII", data, 8)
    assert account.accepted == len(found) and account.rows <= length // 64
    if not steps:
        assert account.accepted > 0 and (samples or name == "short")
    try:
        answer = weighed(files.answer, Question(step="all"))
        assert answer.samples == samples
    except TailboardError:
        assert not samples


@settings(max_examples=40)
@given(st.sampled_from(sorted(CONTENTS)), mutations)
def test_memory_is_bounded_by_the_file(tmp_path_factory: pytest.TempPathFactory, name: str, steps: list[Mutation]) -> None:
    path = written(folder(tmp_path_factory), mutated(CONTENTS[name], steps, OWN))
    tracemalloc.start()
    try:
        timeline(path, HZ).lags()
    except TailboardError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 40 * path.stat().st_size + 4_000_000


def test_a_compressed_file_that_promises_too_much_is_refused_at_its_header(tmp_path: Path) -> None:
    head = with_(12, struct.pack("<I", 64 * 10**7))[:64]
    path = written(tmp_path, lzma.compress(head + bytes(10**6)), "x.timeline.xz")
    with pytest.raises(InputError, match="would hold 640,001,088 bytes: decompress"):
        timeline(path, HZ)
    path = written(tmp_path, lzma.compress(GOOD)[:200], "y.timeline.xz")
    with pytest.raises(InputError, match="damaged or cut off"):
        timeline(path, HZ)


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    path.unlink()
    with pytest.raises(InputError, match="has gone since files were listed"):
        timeline(path, HZ)
    assert mmap.PAGESIZE
