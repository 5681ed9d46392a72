"""Snabb timelines: every event as an independent decoder reads it, from the recorded file and from rings that a test writes."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.read.plugins.snabb.breaths import breaths
from ingest.read.plugins.snabb.ring import OUTSIDE, SEAM, WRITING, looks_like_timeline, process_of
from ingest.read.plugins.snabb.timeline import COUNTED, Readings, Timeline, clock_of, message_of, nanoseconds, timeline
from oracles import snabb as oracle
from tests.effort import figure

SAMPLE = Path(__file__).parents[1] / "data" / "snabb" / "real.timeline.xz"
CUT = SAMPLE.parent / "cut" / SAMPLE.name
CLOCK = "2,3|engine.got_monotonic_time: unixnanos"
START = "1,5|engine.breath_start: breath totalpackets totalbytes totaletherbits"
END = "1,5|engine.breath_end: breath totalpackets totalbytes totaletherbits"
TEXTS = (
    START,
    CLOCK,
    "0,9|engine.configure: config\nThe engine begins to apply a new configuration.\n\n'config': not an argument list",
    END,
    "1,4|engine.polled_timers:",
    "1,5|engine.commited_counters:",
    "1,4|engine.wakeup_from_sleep:",
    "3,3|app.pull app=0000:01:00.0:",
    "3,3|app.pushed app=sink link=a.output: in out drops",
    "9,1|packet.packet_freed: length",
    "5,8|ipfix.evict:a b c d e f",
    *(f"{level},{rate}|app.level{level} app=r{rate}:" for level in range(10) for rate in (0, level)),
)
OLD_TEXTS = (
    "5|engine.breath_start: breath",
    "5|engine.breath_end: breath",
    "9|engine.configure: config",
    "3|app.pull app=a:",
    "1|packet.freed: length",
)
GHZ = 2_000_000_000


@pytest.fixture(scope="module")
def sample() -> tuple[list[dict[str, Any]], Timeline]:
    return oracle.decode(lzma.open(CUT).read()), timeline(CUT)


def written(folder: Path, data: bytes, name: str = "x.timeline") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def check_same(found: Timeline, events: list[dict[str, Any]]) -> None:
    """Assert that the events are those of the oracle: place, stamp, core, arguments, what their message says, anchor and lag."""
    assert found.place.tolist() == [event["place"] for event in events]
    assert found.tsc.tolist() == [event["tsc"] for event in events]
    assert found.core.tolist() == [event["core"] for event in events]
    np.testing.assert_array_equal(found.arguments(np.arange(len(found))), [event["arguments"] for event in events])
    lags = found.lags()
    for index, event in enumerate(events):
        message = found.messages[found.codes[index]]
        assert (message.name, message.level, message.rate, message.depth) == tuple(
            event[name] for name in ("name", "level", "rate", "depth")
        )
        assert dict(message.attributes) == event["attributes"] and list(message.arguments) == event["names"]
        assert lags.anchor[index] == (-1 if event["anchor"] is None else event["anchor"])
        assert lags.cycles[index] == (event["lag"] or 0)
        assert (lags.fault[index] == COUNTED) == oracle.counted(events, event)


# The recorded file ------------------------------------------------------------------------------------------


def test_what_was_cut_off_the_recorded_timeline_is_room_alone() -> None:
    whole, cut = timeline(SAMPLE), timeline(CUT)
    assert len(whole) == len(cut) == 6829 and not whole.ring.rejected
    assert (len(whole.ring.entries), len(cut.ring.entries)) == (1_000_000, 7000)
    assert whole.ring.entries[:7000].tobytes() == cut.ring.entries.tobytes()
    assert whole.messages == cut.messages and whole.clock == cut.clock


@pytest.mark.slow
def test_the_recorded_timeline_is_what_a_plain_loop_over_every_entry_reads() -> None:
    events, found = oracle.decode(lzma.open(SAMPLE).read()), timeline(SAMPLE)
    assert len(events) == 6829 and not found.ring.rejected
    check_same(found, events)
    assert {event["name"] for event in events} >= {"engine.breath_start", "app.pushed", "packet.packet_freed"}


def test_its_clock_is_the_least_squares_line_of_its_readings(sample: tuple[list[dict[str, Any]], Timeline]) -> None:
    events, found = sample
    assert found.clock.hz == oracle.hz_of(events) == 2_596_133_918
    shown = oracle.stamps(events, found.clock.hz)
    assert found.stamp_ns.tolist() == [stamp - shown[0] for stamp in shown]
    assert not found.clock.real, "its readings count from the start of the machine"


def test_its_breaths_are_those_of_a_join_by_hand(sample: tuple[list[dict[str, Any]], Timeline]) -> None:
    events, decoded = sample
    found, wanted = breaths(decoded), oracle.breaths(events)
    assert len(found) == len(wanted) == 1553
    for name in ("number", "cycles", "packets", "bytes", "bits"):
        assert getattr(found, name).tolist() == [one[name] for one in wanted]
    assert (found.lasted_ns == nanoseconds(found.cycles, 2_596_133_918)).all()
    assert set(found.rate.tolist()) == {5} and set(found.core.tolist()) == {1}
    assert (np.diff(found.start_ns) > 0).all()


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_plain_and_compressed_files_are_the_same(tmp_path: Path, ending: str) -> None:
    ring = oracle.Writer(50)
    for number in range(70):
        ring.event(TEXTS[number % 3], 1000 + 7 * number, 3, 5.0 * number)
    packed = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[ending](ring.data())
    check_same(timeline(written(tmp_path, packed, f"x.timeline{ending}"), GHZ), oracle.decode(ring.data()))


# Rings ------------------------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.integers(0, len(TEXTS) - 1), st.integers(1, 50_000), st.integers(0, 2), st.integers(0, 2**40)), max_size=70
)


def filled(
    ring: oracle.Writer, events: list[tuple[int, int, int, int]], offsets: tuple[int, int, int], texts: tuple[str, ...] = TEXTS
) -> None:
    """Let a program store events that wander between three cores, whose counters lie apart."""
    now = 10**12
    for text, passed, core, argument in events:
        now += passed
        ring.event(texts[text % len(texts)], now + offsets[core], 0x1000 * core + core, argument, argument // 2)


def decided(ring: oracle.Writer, apart: int) -> bool:
    """Return whether the stamps tell where the writer stands: in one place alone, or counters agree and the largest tells."""
    whole = len(ring.stored) >= ring.size
    return not whole or not apart or len(oracle.turns(oracle.entries(ring.data()))) == 1


@pytest.mark.slow
@settings(max_examples=figure(100, 300))
@given(size=st.integers(2, 40), major=st.sampled_from([2, 3]), events=steps, apart=st.sampled_from([0, 10**6, 10**11]))
def test_any_ring_is_read_in_the_order_of_writing(
    tmp_path_factory: Any, size: int, major: int, events: list[Any], apart: int
) -> None:
    """Wrapped, not wrapped, exactly full and empty; three cores whose counters lie apart; all levels and rates."""
    ring = oracle.Writer(size, major)
    filled(ring, events, (0, apart, -apart))
    path = written(tmp_path_factory.mktemp("ring"), ring.data())
    if not events:
        with pytest.raises(InputError, match="holds no event"):
            timeline(path, GHZ)
        return
    assume(decided(ring, apart))
    found = timeline(path, GHZ)
    assert found.place.tolist() == [event["place"] for event in ring.kept()]
    assert found.tsc.tolist() == [event["tsc"] for event in ring.kept()]
    rejected = {reason: len(places) for reason, places in found.ring.rejected.items()}
    assert rejected == ({SEAM: 1} if len(events) >= size else {})
    check_same(found, oracle.decode(ring.data()))


@pytest.mark.slow
@settings(max_examples=100)
@given(size=st.integers(2, 30), events=steps)
def test_the_single_digit_of_older_files_counts_the_other_way_round(tmp_path_factory: Any, size: int, events: list[Any]) -> None:
    ring = oracle.Writer(size, 2)
    filled(ring, events, (0, 0, 0), OLD_TEXTS)
    assume(events)
    found = timeline(written(tmp_path_factory.mktemp("old"), ring.data()), GHZ)
    check_same(found, oracle.decode(ring.data()))


def test_older_anchors_have_an_equal_or_higher_digit(tmp_path: Path) -> None:
    ring = oracle.Writer(20, 2)
    for text, tsc in zip((2, 0, 3, 4, 3, 1), range(100, 160, 10), strict=True):
        ring.event(OLD_TEXTS[text], tsc)
    found = timeline(written(tmp_path, ring.data()), GHZ)
    assert found.lags().anchor.tolist() == [-1, 0, 1, 2, 2, 1]
    assert found.lags().cycles.tolist() == [0, 10, 10, 10, 20, 40]


@pytest.mark.parametrize("size", [5, 8, 13])
@pytest.mark.parametrize("count", [5, 8, 12, 13, 14, 40])
def test_a_torn_entry_at_the_seam_never_comes_out(tmp_path: Path, size: int, count: int) -> None:
    """The next event is half written: its message and arguments are there, the stamp is that of the entry before it."""
    ring = oracle.Writer(size)
    for number in range(count):
        ring.event(TEXTS[3], 1000 + number, 0, number)
    ring.torn("9,9|never.seen: x", 77.0)
    found = timeline(written(tmp_path, ring.data()), GHZ)
    assert [message.name for message in found.messages] == ["engine.breath_end"]
    assert found.tsc.tolist() == [event["tsc"] for event in ring.kept()]
    assert {reason: places.tolist() for reason, places in found.ring.rejected.items()} == {
        (SEAM if count >= size else WRITING): [count % size]
    }


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("laps", [0.5, 1, 2.3])
@pytest.mark.parametrize("new", [10**9, 1, 10**17])
@settings(max_examples=60)
@given(place=st.integers(0, 39))
def test_one_damaged_stamp_costs_its_own_entry_alone(
    tmp_path_factory: Any, cores: int, laps: float, new: int, place: int
) -> None:
    ring = oracle.Writer(40)
    for number in range(int(40 * laps)):
        ring.event(TEXTS[number % 9], 10**12 + 100 * number, number % cores)
    at = len(ring.stored) % 40
    near = {(at + offset) % 40 for offset in range(-cores, cores + 1)}
    assume(place < len(ring.stored) and place not in near)
    if laps < 1:
        assume(cores <= place < len(ring.stored) - cores)
    data = bytearray(ring.data())
    data[64 + 64 * place : 72 + 64 * place] = ring.packed(new, 0, 0, ())[:8]
    found = timeline(written(tmp_path_factory.mktemp("damage"), bytes(data)), GHZ)
    assert found.ring.rejected[OUTSIDE].tolist() == [place]
    assert found.place.tolist() == [event["place"] for event in ring.kept() if event["place"] != place]


def test_lags_across_a_lost_entry_do_not_count(tmp_path: Path) -> None:
    """The entry that was lost may have been the anchor of those behind it."""
    ring = oracle.Writer(20)
    for number, text in enumerate((START, "3,3|app.push app=a:", "3,3|app.pushed app=a:", "3,3|app.push app=b:", END)):
        ring.event(text, 1000 + 10 * number)
    data = bytearray(ring.data())
    data[64 + 64 * 2 : 72 + 64 * 2] = ring.packed(10**15, 0, 0, ())[:8]
    lags = timeline(written(tmp_path, bytes(data)), GHZ).lags()
    assert lags.anchor.tolist() == [-1, 0, 1, 0] and (lags.fault == COUNTED).tolist() == [False, True, False, False]


def test_events_without_a_text_are_counted_and_shown_but_have_no_lag(tmp_path: Path) -> None:
    """The table of strings was full: 0xFFFF; and a number that points into the middle of a text."""
    ring = oracle.Writer(20, strings_bytes=160)
    ring.event(START, 100)
    ring.event(END, 110)
    ring.event("3,3|app.push app=late:", 120)
    middle = ring.packed(130, 1, 0, ())
    data = bytearray(ring.data())
    data[64 + 64 * 3 : 64 + 64 * 4] = middle
    found = timeline(written(tmp_path, bytes(data)), GHZ)
    assert [found.messages[code].known for code in found.codes] == [True, True, False, False]
    assert found.lags().anchor.tolist() == [-1, 0, -1, -1]


def test_a_core_that_was_met_only_just_now_is_the_newest(tmp_path: Path) -> None:
    """The process moved to another core for its last event, which has no seam of its own."""
    ring = oracle.Writer(10)
    for number in range(25):
        ring.event(START, 1000 + 10 * number, 1 if number == 24 else 0)
    found = timeline(written(tmp_path, ring.data()), GHZ)
    assert found.tsc.tolist() == [1000 + 10 * number for number in range(16, 25)]


# Messages, names, clocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "attributes", "arguments"),
    [
        ("1,5|engine.breath_start: breath packets", "engine.breath_start", (), ("breath", "packets")),
        ("3,3|app.pull app=0000:01:00.0:", "app.pull", (("app", "0000:01:00.0"),), ()),
        ("3,3|app.pull app=0000:01:00.0: in out", "app.pull", (("app", "0000:01:00.0"),), ("in", "out")),
        ("3,3|app.pull app=0000:01:00.0", "app.pull", (("app", "0000:01:00.0"),), ()),
        ("3,3|app.pull app=a link=b.c:", "app.pull", (("app", "a"), ("link", "b.c")), ()),
        ("3|app.pull:a b c d e f g", "app.pull", (), ("a", "b", "c", "d", "e", "f")),
        ("0,9|x:\nprose: with a colon", "x", (), ()),
    ],
)
def test_texts_of_messages(text: str, name: str, attributes: tuple[Any, ...], arguments: tuple[str, ...]) -> None:
    found = message_of(text)
    assert (found.name, found.attributes, found.arguments) == (name, attributes, arguments)
    assert found.app == " ".join(value if key == "app" else f"{key}={value}" for key, value in attributes)


@pytest.mark.parametrize("text", ["", "x", "12|a:", "a,5|b:", "1,5|", "1,5|:", "1,5", "\x00", "1,5,6|a.b:", "|a.b:"])
def test_texts_that_announce_nothing(text: str) -> None:
    assert not message_of(text).known


@pytest.mark.parametrize(
    ("path", "process"),
    [
        ("/var/run/snabb/1234/events.timeline", "1234"),
        ("/var/run/snabb/1234/engine/timeline", "1234"),
        ("/data/good.timeline.xz", "good"),
        ("/data/1234/events.timeline.gz", "1234"),
    ],
)
def test_the_process_is_the_folder_that_snabb_made_or_the_name_of_the_file(path: str, process: str) -> None:
    assert process_of(Path(path)) == process
    assert looks_like_timeline(Path(path), b"")


def test_cores_share_a_frequency_and_have_offsets_of_their_own() -> None:
    """Three readings a core, which lie an hour apart; a core without readings is taken to agree with the others."""
    seconds = np.array([0, 7, 30, 5, 11, 25])
    tsc = (seconds * 2.5e9).astype(np.int64) + np.repeat([10**13, 10**13 + 9 * 10**12], 3)
    ns = 1_700_000_000 * 10**9 + seconds * 10**9
    clock = clock_of(Readings(tsc, np.repeat([3, 0x1004], 3), ns), 10**13)
    assert clock.hz == 2_500_000_000 and clock.real
    assert clock.stamps(tsc, np.repeat([3, 0x1004], 3)).tolist() == ns.tolist()
    assert any("lie 3600000 ms apart" in note for note in clock.notes)


def test_a_reading_that_is_far_off_is_left_out_and_told() -> None:
    ticks = np.arange(30)
    ns = 10**9 * ticks + 5
    ns[17] = 2**61
    clock = clock_of(Readings(2 * 10**9 * ticks, np.zeros(30, np.int64), ns), 0)
    assert clock.hz == 2_000_000_000 and clock.other_ns == 5
    assert clock.notes == ("1 of 30 clock readings lie off the line of the others and were left out",)


@pytest.mark.parametrize(
    ("readings", "sentence"),
    [
        ([], "give --tsc-hz"),
        ([(10, 10)], "give --tsc-hz"),
        ([(10, 10), (10**9, 10)], "stands still or runs back"),
        ([(10, 10), (11, 10**9)], "1 cycles a second, which is impossible"),
    ],
)
def test_a_frequency_that_nothing_tells_is_asked_for(tmp_path: Path, readings: list[tuple[int, int]], sentence: str) -> None:
    ring = oracle.Writer(10)
    ring.event(START, 5)
    for tsc, ns in readings:
        ring.event(CLOCK, tsc, 0, ns)
    path = written(tmp_path, ring.data())
    with pytest.raises(InputError, match=sentence):
        timeline(path)
    assert timeline(path, GHZ).clock.hz == GHZ


# Breaths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["own", "totals", "untold"])
def test_what_a_breath_moved_is_decided_by_the_names_of_its_arguments(tmp_path: Path, shape: str) -> None:
    end = {"own": "1,5|engine.breath_end: breath npackets bpp", "totals": END, "untold": "1,5|engine.breath_end: breath"}[shape]
    ring = oracle.Writer(50)
    for number in range(6):
        begun = 1000 * number + 10
        ring.event(START, begun, 0, number, 10 * number, 640 * number, 7000 * number)
        ring.event("3,3|app.push app=a:", begun + 5)
        told = {
            "own": (7 + number, 64.5),
            "totals": (10 * number + 7 + number, 640 * number + 5, 7000 * number + 9),
            "untold": (),
        }
        ring.event(end, begun + 100 + number, 0, number, *told[shape])
    ring.event(START, 10_000, 0, 99)  # its end was not stored
    found = breaths(timeline(written(tmp_path, ring.data()), GHZ))
    wanted = oracle.breaths(oracle.decode(ring.data()))
    assert found.number.tolist() == [0, 1, 2, 3, 4, 5] and found.cycles.tolist() == [one["cycles"] for one in wanted]
    for name in ("packets", "bytes", "bits"):
        np.testing.assert_array_equal(getattr(found, name), np.array([one[name] for one in wanted], float))
    assert np.isnan(found.packets).all() == (shape == "untold")
    assert found.start_ns.tolist() == [500 * number for number in range(6)] and found.lasted_ns.tolist() == [
        50,
        50,
        51,
        51,
        52,
        52,
    ]


@settings(max_examples=figure(60, 150))
@given(events=st.lists(st.tuples(st.sampled_from([0, 0, 3, 3, 7]), st.integers(0, 3), st.integers(0, 1)), max_size=40))
def test_partners_that_are_missing_never_make_a_breath(tmp_path_factory: Any, events: list[tuple[int, int, int]]) -> None:
    assume(events)
    ring = oracle.Writer(60)
    for number, (text, breath, core) in enumerate(events):
        ring.event(TEXTS[text], 1000 + 10 * number, core, breath, 100 * number, 7 * number, number)
    found = breaths(timeline(written(tmp_path_factory.mktemp("breaths"), ring.data()), GHZ))
    wanted = oracle.breaths(oracle.decode(ring.data()))
    assert found.number.tolist() == [one["number"] for one in wanted]
    assert found.cycles.tolist() == [one["cycles"] for one in wanted]
    assert found.packets.tolist() == [one["packets"] for one in wanted]
