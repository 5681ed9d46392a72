"""HdrHistogram logs: every bin of every interval as Java decodes it, clocks, tags, units, and what is wrong with a line."""

from __future__ import annotations

import base64
import gzip
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.core.intervals import Intervals
from ingest.core.layout import hdr_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import read
from ingest.read.hdr.payload import PayloadError, counts_of, payload_of, payload_of_bytes
from ingest.read.placement import discover
from ingest.read.schedule import corrected
from ingest.read.sources import ReadOptions
from oracles import hdr

HDR = Path(__file__).parent.parent / "data" / "hdr"
SHARED = Path(__file__).parents[3] / "shared" / "samples" / "hdr"
MS, SECOND = 1_000_000, 1_000_000_000
LOGS = sorted(path.name.removesuffix(".hlog") for path in HDR.glob("*.hlog"))
WHOLE = [name for name in LOGS if name != "double"]
BLOBS = sorted(path.name.removesuffix(".hlog.gz") for path in HDR.glob("*-blobs.hlog.gz"))
NS = ReadOptions(recorded_unit_ns=1)
START = 1_700_000_000 * SECOND


def java(name: str, what: str = "bins") -> list[list[str]]:
    """Return what Java says of a log, a list of words an interval."""
    return [line.split() for line in gzip.open(HDR / f"{name}.{what}.gz", "rt").read().splitlines()]


def edges_of(words: list[str]) -> list[tuple[float, float, int]]:
    found = []
    for word in words:
        edges, count = word.split(":")
        low, upper = edges.split("_")
        found.append((float(low), float(upper), int(count)))
    return found


def text_of(name: str) -> bytes:
    path = HDR / f"{name}.hlog"
    return path.read_bytes() if path.exists() else gzip.decompress((HDR / f"{name}.hlog.gz").read_bytes())


def decoded(name: str) -> list[tuple[float, list[tuple[float, float, int]]]]:
    """Return ratio and (low, next, count) of each line, in units of the log, all lines unpacked at once."""
    payloads = [
        payload_of(line.rsplit(b",", 1)[1]) for line in text_of(name).splitlines() if line and line[:1] not in (b"#", b'"')
    ]
    found = counts_of(payloads)
    assert found.faults == {}
    out = []
    for row, payload in enumerate(payloads):
        geometry = payload.geometry
        edges = hdr_layout(geometry.digits, geometry.unit_magnitude, 1).edges
        entries = slice(found.indptr[row], found.indptr[row + 1])
        bins, counts = found.bins[entries], found.counts[entries].tolist()
        low = [float(edge) * geometry.ratio for edge in edges[bins]]
        upper = [float(edge) * geometry.ratio for edge in edges[bins + 1]]
        out.append((geometry.ratio, list(zip(low, upper, counts, strict=True))))
    return out


# Against Java ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOGS + BLOBS)
def test_every_bin_of_every_interval_is_what_java_decodes(name: str) -> None:
    expected = [(words[4], edges_of(words[5:])) for words in java(name)]
    found = decoded(name)
    assert len(found) == len(expected) and len(found) >= 12
    for (ratio, bins), (told, wanted) in zip(found, expected, strict=True):
        assert bins == wanted
        assert told == "double" or float(told) == ratio
    assert sum(count for _, bins in found for _, _, count in bins) > 1000


def test_all_encodings_and_word_sizes_were_met() -> None:
    met = set()
    for name in LOGS + BLOBS:
        for line in text_of(name).splitlines():
            if line and line[:1] not in (b"#", b'"'):
                data = base64.b64decode(line.rsplit(b",", 1)[1])
                met.add((data[:4].hex(), payload_of_bytes(data).word_size))
    integer = {(f"1c8493{size}{kind}", int(size) // 1) for size in "248" for kind in "1289"}
    assert {(cookie, int(size)) for cookie, size in integer} <= met
    assert {("1c849313", 0), ("1c849314", 0)} <= met
    assert {cookie for cookie, _ in met if cookie.startswith("0c72")} == {"0c72124c", "0c72124d", "0c72124e", "0c72124f"}


@pytest.mark.parametrize("name", WHOLE)
def test_the_reader_yields_javas_intervals_in_ns(taken: Any, name: str) -> None:
    read_ = taken(HDR / f"{name}.hlog", options=NS)
    expected = [(int(words[1]) * MS, int(words[1]) * MS + int(words[2]) * MS, edges_of(words[5:])) for words in java(name)]
    found = []
    for row in read_.rows:
        edges = row.layout.edges
        bins = [(float(edges[index]), float(edges[index + 1]), count) for index, count in row.counts.items()]
        found.append((row.start_ns, row.end_ns, bins))
    assert sorted(found, key=lambda row: row[0]) == found
    assert sorted(found) == sorted(expected)
    assert read_.account.rows == read_.account.accepted == len(expected) and read_.account.rejected == {}
    assert read_.account.samples == sum(count for _, _, bins in expected for _, _, count in bins)


@pytest.mark.parametrize("name", ["tagged", "2.1.12-2-digits-lowest-20000"])
def test_percentiles_are_javas_values_at_percentile(name: str) -> None:
    levels = ["0", "1", "25", "50", "75", "90", "99", "99.9", "100"]
    question = Question(step=SECOND, by=("op", "kind", "tag"), where={"kind": "*"})
    answer = Files([HDR / f"{name}.hlog"], NS, jobs=1).answer(question)
    table = percentiles(answer, Wanted(parse_percentiles(",".join(levels)))).columns
    ours: dict[tuple[str, int], list[float]] = {}
    for row in range(len(table["count"])):
        endings = {"service": "-st", "response": "-rt", "wait": "-wt", "": ""}
        tag = table["tag"][row] or f"{table['op'][row]}{endings[table['kind'][row]]}" or "-"
        ours[tag, int(table["start_ns"][row]) // MS] = [float(table[f"p{level}"][row]) for level in levels]
    compared = 0
    for words in java(name, "percentiles"):
        values = ours.get((words[0].lower(), int(words[1])))
        if values is None:
            assert words[2] == "0"
            continue
        for level, value, told in zip(levels, values, words[3:], strict=True):
            if value == value:  # not where too few samples carry it
                # Java's value at 0 is the low edge of the first bin, ours the value of the first sample
                assert level == "0" or value == float(told)
                compared += 1
    assert compared > 150


@pytest.mark.parametrize("name", ["tagged", "2.2.2-2-digits-lowest-20000", "2.2.2-3-digits"])
def test_correction_for_a_known_interval_equals_javas(name: str) -> None:
    [source] = discover([HDR / f"{name}.hlog"], NS).sources
    found = []
    for chunk in read(source):
        rows, dropped = corrected(chunk, 1_000_000)
        assert dropped == 0
        edges = rows.layout.edges
        for row in range(len(rows)):
            entries = slice(rows.indptr[row], rows.indptr[row + 1])
            bins = rows.bins[entries]
            found.append(list(zip(edges[bins].tolist(), edges[bins + 1].tolist(), rows.counts[entries].tolist(), strict=True)))
    assert found == [edges_of(words[5:]) for words in java(name, "corrected")]


@pytest.mark.skipif(not SHARED.exists(), reason="the HdrHistogram project's own logs are not beside this checkout")
def test_the_projects_own_logs_give_the_known_figures() -> None:
    path = SHARED / "jHiccup-2.0.7S.logV2.hlog"
    table = percentiles(Files([path]).answer(Question(step="all")), Wanted(parse_percentiles("50,90,99,99.9,100"))).columns
    assert [int(table[name][0]) for name in ("count", "p50", "p90", "p99", "p99.9", "p100")] == [
        48761, 344063, 425983, 1434451967, 1753219071, 1803550719,
    ]  # fmt: skip
    table = percentiles(Files([SHARED / "tagged-Log.logV2.hlog"]).answer(Question(step="all", by=("tag",))), Wanted(())).columns
    assert table["tag"].tolist() == ["", "A"] and table["count"].tolist() == [16145, 16145]


# The codec alone ----------------------------------------------------------------------------------------------


@given(
    counts=st.dictionaries(st.integers(0, 5_000), st.integers(1, 2**50), max_size=40),
    digits=st.integers(2, 4),
    magnitude=st.integers(0, 12),
    lone=st.sampled_from([0, -1]),
)
def test_any_counts_come_back(counts: dict[int, int], digits: int, magnitude: int, lone: int) -> None:
    body = hdr.v2(counts, digits, (1 << magnitude) + (1 << magnitude) // 2, 1 << 60, lone_zero=lone)
    payloads = [payload_of_bytes(body), payload_of_bytes(hdr.compressed(body)), payload_of_bytes(hdr.compressed(hdr.v2({7: 3})))]
    found = counts_of(payloads)
    total = sum(counts.values())
    if total > 2**53:
        assert set(found.faults) == {0, 1}
        return
    assert found.faults == {}
    for row in (0, 1):
        entries = slice(found.indptr[row], found.indptr[row + 1])
        assert dict(zip(found.bins[entries].tolist(), found.counts[entries].tolist(), strict=True)) == counts
    assert found.bins[found.indptr[2] :].tolist() == [7] and found.counts[-1] == 3


def test_layouts_are_the_definition(taken: Any) -> None:
    for digits, magnitude in ((0, 0), (1, 3), (2, 0), (2, 14), (3, 9), (4, 0)):
        layout = hdr_layout(digits, magnitude, 1)
        picked = [*range(min(3000, layout.bins)), layout.bins - 1]
        assert [int(layout.edges[index]) for index in picked] == [hdr.lower_edge(index, digits, magnitude) for index in picked]
        assert all(
            int(layout.values[i]) == hdr.lower_edge(i + 1, digits, magnitude) - 1 for i in picked[:: max(1, len(picked) // 50)]
        )
        assert int(layout.edges[-1]) <= 2**63 - 1


@given(values=st.lists(st.integers(0, 10**9), min_size=1, max_size=30), interval=st.integers(10**6, 10**9))
def test_correction_is_what_was_due(values: list[int], interval: int) -> None:
    layout = hdr_layout(2, 0, 1)
    highest = [hdr.lower_edge(hdr.index_of(value, 2) + 1, 2) - 1 for value in values]
    wanted: dict[int, int] = {}
    for value in hdr.omitted(highest, interval):
        wanted[hdr.index_of(value, 2)] = wanted.get(hdr.index_of(value, 2), 0) + 1
    bins, counts = np.unique(layout.index(np.array(values)), return_counts=True)
    rows = Intervals(layout, ((),), *(np.array([at]) for at in (0, 0, 1)), np.array([0, len(bins)]), bins, counts)
    found, _ = corrected(rows, interval)
    assert dict(zip(found.bins.tolist(), found.counts.tolist(), strict=True)) == wanted


DOUBLE_V2 = struct.pack(">IIQ", 0x0C72124E, 3, 2)
HOSTILE = {
    "impossible header: the significant digits": struct.pack(">IIIIqqd", 0x1C849313, 0, 0, 9, 1, 100, 1.0),
    "impossible header: the lowest value": struct.pack(">IIIIqqd", 0x1C849313, 0, 0, 3, 0, 100, 1.0),
    "impossible header: the lowest value ": struct.pack(">IIIIqqd", 0x1C849313, 0, 0, 3, 100, 150, 1.0),
    "impossible header: the lowest value leaves no room": struct.pack(">IIIIqqd", 0x1C849313, 0, 0, 3, 2**60, 2**62, 1.0),
    "impossible header: the ratio": DOUBLE_V2 + struct.pack(">IIIIqqd", 0x1C849313, 0, 0, 3, 1, 100, float("nan")),
    "the histogram's header is cut off": struct.pack(">IIIIq", 0x1C849313, 0, 0, 3, 1),
    "counts of a size that is not 2, 4 or 8": struct.pack(">IIIIqqd", 0x1C849361, 0, 0, 3, 1, 100, 1.0),
    "no histogram: unknown cookie": b"\x01\x02\x03\x04" * 12,
    "no histogram: too short": b"\x1c\x84",
    "a double histogram that is cut off": struct.pack(">IIQ", 0x0C72124F, 3, 1),
    "counts lie past the highest trackable value": struct.pack(">IIIIqqd", 0x1C849313, 9999, 0, 0, 1, 2, 1.0) + b"\x02" * 999,
}


@pytest.mark.parametrize("reason", HOSTILE)
def test_impossible_payloads_are_refused_with_the_reason(reason: str) -> None:
    with pytest.raises(PayloadError, match=re.escape(reason.strip())):
        payload_of_bytes(HOSTILE[reason])
    with pytest.raises(PayloadError):
        payload_of_bytes(hdr.compressed(HOSTILE[reason]))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (hdr.zigzag(-(2**40)) + hdr.zigzag(1), "past the highest trackable value"),
        (hdr.zigzag(-(2**62)) + hdr.zigzag(1), "2^55"),
        (b"\x80" * 30 + b"\x01", "2^55"),
        (b"\x02\x80", "cut off"),
        (hdr.zigzag(2**54) + hdr.zigzag(1), "2^53"),
    ],
)
def test_impossible_counts_cost_only_their_own_line(words: bytes, reason: str) -> None:
    header = struct.pack(">IIIIqqd", 0x1C849313, len(words), 0, 3, 1, 3_600_000_000_000, 1.0)
    good = payload_of_bytes(hdr.v2({5: 4, 900: 2}))
    found = counts_of([good, payload_of_bytes(header + words), good])
    assert reason in found.faults[1] and len(found.faults) == 1
    assert found.indptr.tolist() == [0, 2, 2, 4] and found.bins.tolist() == [5, 900] * 2 and found.counts.tolist() == [4, 2] * 2


@pytest.mark.slow
def test_a_hostile_line_cannot_allocate_much(tmp_path: Path) -> None:
    """A line of 1 kB that inflates a thousandfold, and one of 1 MiB: refused, and the process stays small."""
    import resource

    header = struct.pack(">IIIIqqd", 0x1C849313, 0x7FFFFFFF, 0, 5, 1, 2**62, 1.0)
    lines = [hdr.line("0.000", "1.000", {3: 2})]
    for size in (1 << 20, 700 << 20):
        squeezer = zlib.compressobj(9)
        data = (
            squeezer.compress(header)
            + b"".join(squeezer.compress(b"\x01" * (1 << 20)) for _ in range(size >> 20))
            + squeezer.flush()
        )
        text = base64.b64encode(struct.pack(">II", 0x1C849314, len(data)) + data).decode()
        lines.append(f"1.000,1.000,0.000,{text}\n")
    path = tmp_path / "x.hlog"
    path.write_text(hdr.log(lines))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = discover([path], ReadOptions())
    rows = sum(len(chunk) for chunk in read(found.sources[0]))
    account = found.sources[0].context.account
    assert rows == account.accepted == 2 and account.rows == 3  # a million single gaps are a histogram; 700 MiB are none
    assert list(account.rejected) == ["inflates past the size of its own histogram"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


@given(ratio=st.binary(min_size=8, max_size=8), counts=st.dictionaries(st.integers(0, 9_000), st.integers(1, 9), min_size=1))
def test_a12_the_ratio_of_an_integer_histogram_is_not_read(ratio: bytes, counts: dict[int, int]) -> None:
    body = hdr.v2(counts)
    other = body[:32] + ratio + body[40:]
    for data in (other, hdr.compressed(other)):
        payload = payload_of_bytes(data)
        assert payload.geometry == payload_of_bytes(body).geometry and payload.geometry.ratio == 1.0
        found = counts_of([payload])
        assert dict(zip(found.bins.tolist(), found.counts.tolist(), strict=True)) == counts


@given(ratio=st.floats(1e-6, 1e6))
def test_a12_the_ratio_of_a_double_histogram_is_read(ratio: float) -> None:
    body = hdr.v2({5: 1})
    body = body[:32] + struct.pack(">d", ratio) + body[40:]
    for data in (body, hdr.compressed(body)):
        assert payload_of_bytes(DOUBLE_V2 + data).geometry.ratio == ratio


@pytest.mark.parametrize(("name", "median_us"), [("c", 0.6), ("go_base", 0.4), ("js", 6.0), ("py", 0.4), ("rust_base", 0.4)])
def test_a12_logs_of_every_library_are_latencies(name: str, median_us: float) -> None:
    """What each library wrote is known bin by bin from Java (`test_every_bin_...`); here: that an answer is as large."""
    answer = Files([HDR / f"{name}.hlog"], ReadOptions(recorded_unit_ns=1)).answer(Question(step="all"))
    columns = percentiles(answer, Wanted(parse_percentiles("50"))).columns
    assert all(0.5 * median_us <= found / 1000 <= 2 * median_us for found in columns["p50"].tolist())
    assert not [text for text in answer.warnings if "double histogram" in text]


# Text and time ------------------------------------------------------------------------------------------------

ONE = {300: 1}
HEAD = "#[Logged with jHiccup]\n"


def starts(taken: Any, log: Any, text: str, **options: Any) -> list[float]:
    return [row.start_ns / SECOND for row in taken(log(text, "x.hlog"), options=ReadOptions(**options)).rows]


@pytest.mark.parametrize(
    ("head", "stamps", "expected"),
    [
        ("#[StartTime: 1700000000.250 (seconds since epoch), Tue]\n", ["0.127", "1.127"], [1700000000.377, 1700000001.377]),
        ("#[BaseTime: 1700000000.000 (seconds since epoch)]\n", ["0.5"], [1700000000.5]),
        (
            "#[Basetime: 1700000000 (seconds since epoch)]\n#[StartTime: 1700000063 (seconds since epoch), Z]\n",
            ["0.5"],
            [1700000000.5],
        ),
        (
            "#[BaseTime: 1700000000.000 (seconds since epoch)]\n#[StartTime: 1700000063.000 (seconds since epoch)]\n",
            ["0.5"],
            [1700000000.5],
        ),
        ("#[StartTime: 1700000000.0 (seconds since epoch)]\n", ["1699999999.9", "1700000001"], [1699999999.9, 1700000001]),
        ("#[StartTime: 1700000000.0 (seconds since epoch)]\n", ["1670000000.0"], [1670000000.0]),
        ("#[StartTime: 1700000000.0 (seconds since epoch)]\n", ["1600000000.0"], [3300000000.0]),
        ("", ["1700000000.125"], [1700000000.125]),
        ("", ["12.5"], [12.5]),
        ("#[StartTime: nonsense]\n#[StartTime:]\n", ["12.5"], [12.5]),
    ],
)
def test_stamps_follow_javas_rules(taken: Any, log: Any, head: str, stamps: list[str], expected: list[float]) -> None:
    text = HEAD + head + "".join(hdr.line(stamp, "1.000", ONE) for stamp in stamps)
    assert starts(taken, log, text) == expected


def test_an_interval_before_start_time_is_kept(taken: Any, log: Any) -> None:
    text = HEAD + "#[StartTime: 1700000000.500 (seconds since epoch)]\n"
    text += "".join(hdr.line(stamp, "1.000", ONE) for stamp in ("1700000000.000", "1700000001.000"))
    assert starts(taken, log, text) == [1700000000.0, 1700000001.0]


def test_appended_logs_each_have_their_own_start(taken: Any, log: Any) -> None:
    parts = [
        f"#[StartTime: {start}.000 (seconds since epoch)]\n" + "".join(hdr.line(f"{n}.000", "1.000", ONE) for n in range(2))
        for start in (1700000000, 1700000100, 1700000050)
    ]
    read_ = taken(log(HEAD + "".join(parts), "x.hlog"))
    assert [row.start_ns // SECOND - 1700000000 for row in read_.rows] == [0, 1, 100, 101, 50, 51]
    assert [row.series.segment for row in read_.rows] == [0, 0, 0, 0, 1, 1]  # what runs back is a segment of its own


def test_time_zero_comes_from_the_log_or_is_said(taken: Any, log: Any) -> None:
    relative = HEAD + hdr.line("5.000", "1.000", ONE)
    path = log(relative, "x.hlog")
    [source] = discover([path], ReadOptions()).sources
    assert source.context.zero.epoch_ns is None and source.width_ns == SECOND
    assert starts(taken, log, relative, t0=START) == [1700000005.0]
    dated = HEAD + "#[StartTime: 1600000000.000 (seconds since epoch)]\n" + hdr.line("5.000", "1.000", ONE)
    [source] = discover([log(dated, "x.hlog")], ReadOptions()).sources
    assert (source.context.zero.epoch_ns, source.context.zero.origin) == (1600000000 * SECOND, "StartTime in the log")
    assert starts(taken, log, dated, t0=START) == [1700000005.0]
    os.utime(log(relative, "x.hlog"), ns=(START, START))
    assert [row.end_ns for row in taken(path, options=ReadOptions(t0="mtime")).rows] == [START]


def test_host_offsets_are_added(taken: Any, log: Any) -> None:
    text = hdr.log([hdr.line("0.000", "1.000", ONE)])
    assert starts(taken, log, text, host="h1", host_offset_ns={"h1": 250 * MS}) == [1700000000.25]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0.5,1.000,0.0,{}\r\n", 0.5),
        ("0.5 1.000 0.0 {}\n", 0.5),
        ("Tag=A,0.5,1.000,0.0,{}\n", 0.5),
        ("Tag=A 0.5, 1.000, 0.0, {}\n", 0.5),
        ("5e-1,1.000,0.0,{}\n", 0.5),
        ("-0.5,1.000,0.0,{}\n", -0.5),
        ("0.1234567894,1.000,0.0,{}\n", 0.123456789),
        ("7,1,,{}\n", 7),
        ("0.5,1.000,0.0,{}", 0.5),
    ],
)
def test_lines_as_java_takes_them(taken: Any, log: Any, line: str, expected: float) -> None:
    blob = hdr.line("0", "0", ONE).rsplit(",", 1)[1].strip()
    text = HEAD + "#[StartTime: 1700000000.000 (seconds since epoch)]\n" + line.format(blob)
    [row] = taken(log(text, "x.hlog")).rows
    assert row.start_ns == 1700000000 * SECOND + round(expected * SECOND) and sum(row.counts.values()) == 1


BLOB = hdr.line("0", "0", ONE).rsplit(",", 1)[1].strip()
BAD = [
    ("1.000,1.000", "no interval: not"),
    ("nonsense", "no interval: not"),
    (f"x,1.000,0.0,{BLOB}", "the time stamp is no number"),
    (f"nan,1.000,0.0,{BLOB}", "the time stamp is no number"),
    (f"99999999999999,1.000,0.0,{BLOB}", "the time stamp is out of range"),
    (f"1e400,1.000,0.0,{BLOB}", "the time stamp is out of range"),
    (f"1.000,-1.000,0.0,{BLOB}", "the interval's length is negative"),
    ("1.000,1.000,0.0,", "no interval: no histogram at its end"),
    ("1.000,1.000,0.0,HIST!", "no base64"),
    (f"1.000,1.000,0.0,{BLOB[:-4]}", "damaged compressed data"),
    (f"1.000,1.000,0.0,{BLOB[:20]}AAAA{BLOB[24:]}", "damaged compressed data"),
    ("1.000,1.000,0.0,AAAA", "no histogram: too short"),
    ("1.000,1.000,0.0,AAAAAAAAAAAAAAAA", "no histogram: unknown cookie"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_line_is_counted_with_its_reason_and_the_rest_kept(taken: Any, log: Any, line: str, reason: str) -> None:
    good = [hdr.line("0.000", "1.000", ONE), hdr.line("2.000", "1.000", {9: 4})]
    read_ = taken(log(hdr.log([good[0], line + "\n", good[1]]), "x.hlog"))
    assert [sum(row.counts.values()) for row in read_.rows] == [1, 4]
    [(number, found)] = read_.findings("rejected")
    assert number == 5 and found.startswith(reason) and (read_.account.rows, read_.account.accepted) == (3, 2)


def test_a_growing_files_last_line_is_cut_off_and_later_whole(taken: Any, log: Any) -> None:
    text = hdr.log([hdr.line(f"{n}.000", "1.000", {n: 5}) for n in range(4)])
    for cut in range(1, 60, 7):
        read_ = taken(log(text[:-cut], "x.hlog"))
        if cut == 1:
            assert len(read_.rows) == 4  # only the newline is missing
            continue
        assert len(read_.rows) == 3 and [reason for _, reason in read_.findings("rejected")][0].startswith(
            "the last line is cut off"
        )
    assert len(taken(log(text, "x.hlog")).rows) == 4


def test_gz_is_read_and_a_broken_one_up_to_its_end(taken: Any, tmp_path: Path) -> None:
    import random

    noise = random.Random(3)
    text = hdr.log([hdr.line(f"{n}.000", "1.000", {noise.randrange(9000): 5 for _ in range(200)}) for n in range(200)]).encode()
    path = tmp_path / "x.hlog.gz"
    path.write_bytes(gzip.compress(text))
    assert len(taken(path).rows) == 200
    path.write_bytes(gzip.compress(text)[:-5000])
    [source] = discover([path], ReadOptions()).sources
    chunks = list(read(source))
    assert "damaged or cut off" in source.context.account.cut_short
    assert sum(map(len, chunks)) == source.context.account.accepted > 100


def test_overlaps_by_rounding_are_taken_off_and_true_overlaps_get_segments(taken: Any, log: Any) -> None:
    lines = [
        ("0.000", "1.001"),
        ("1.000", "1.000"),
        ("2.000", "1.000"),
        ("2.000", "1.000"),
        ("2.500", "0.100"),
        ("3.000", "1.000"),
    ]
    read_ = taken(log(hdr.log([hdr.line(*line, ONE) for line in lines]), "x.hlog"))
    found = [((row.start_ns - START) // MS, (row.end_ns - START) // MS, row.series.segment) for row in read_.rows]
    assert found == [(0, 1001, 0), (1001, 2000, 0), (2000, 3000, 0), (2000, 3000, 1), (2500, 2600, 2), (3000, 4000, 0)]
    assert any("1 line begins before the previous line ends" in note for note in read_.account.notes)


def test_a_log_that_runs_back_all_the_time_is_bounded(taken: Any, log: Any) -> None:
    read_ = taken(log(hdr.log([hdr.line(f"{200 - n}.000", "1.000", ONE) for n in range(100)]), "x.hlog"))
    assert len(read_.rows) == 64 and read_.account.rejected.total() == 36


# Tags, units, names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "labels"),
    [
        ("insert-st", ("insert", "service", "")),
        ("READ-rt", ("read", "response", "")),
        ("Simple1-WT", ("simple1", "wait", "")),
        ("my-op-st", ("my-op", "service", "")),
        ("gen1::insert-rt", ("insert", "response", "gen1")),
        ("other", ("", "", "other")),
        ("-st", ("", "", "-st")),
        ("a::b", ("", "", "a::b")),
        ("", ("", "", "")),
    ],
)
def test_tags_become_op_and_kind(taken: Any, log: Any, tag: str, labels: tuple[str, str, str]) -> None:
    text = hdr.log([hdr.line("0.000", "1.000", ONE, tag)], "#Logging op latencies for Cassandra Stress\n")
    [row] = taken(log(text, "x.hlog")).rows
    assert (row.series.op, row.series.kind, row.series.tag) == labels


@pytest.mark.parametrize(
    ("comment", "unit", "op", "kind"),
    [
        ("#[Logged with jHiccup version 2.0.7-SNAPSHOT]", 1, "", "lag"),
        ("#Logging op latencies for Cassandra Stress", 1, "", ""),
        ("#[Logging for: READ]", 1000, "read", "service"),
        ("#[Logging for: Intended-READ]", 1000, "read", "response"),
        ("#[Logged by wrk2]", 1000, "", ""),
        ("#[Written by tailboard 0.1; recorded unit ms]", 1_000_000, "", ""),
    ],
)
def test_the_first_comment_tells_the_unit(taken: Any, log: Any, comment: str, unit: int, op: str, kind: str) -> None:
    [row] = taken(log(hdr.log([hdr.line("0.000", "1.000", ONE)], comment + "\n"), "x.hlog")).rows
    assert row.layout.edges[300] == 300 * unit and row.layout.values[300] == 300 * unit
    assert (row.series.op, row.series.kind) == (op, kind)


def test_an_unknown_unit_is_asked_for(taken: Any, log: Any) -> None:
    path = log(hdr.log([hdr.line("0.000", "1.000", {hdr.index_of(2_000_000, 3): 1})], "#[Some tool]\n"), "x.hlog")
    with pytest.raises(
        InputError, match=r"--recorded-unit ns, 100ns, us or ms .*0.002 s in ns, 0.2 s in 100ns, 2 s in us, 2,001 s in ms"
    ):
        taken(path)
    [row] = taken(path, options=ReadOptions(recorded_unit_ns=1000)).rows
    assert int(row.layout.edges[next(iter(row.counts))]) == 2_000_000_000 // 1024_000 * 1024_000
    assert discover([log(hdr.log([hdr.line("0.000", "1.000", ONE)]), "x.hlog")], ReadOptions(recorded_unit_ns=1000)).sources


def test_the_users_unit_wins_and_is_noted(taken: Any, log: Any) -> None:
    read_ = taken(log(hdr.log([hdr.line("0.000", "1.000", ONE)]), "x.hlog"), options=ReadOptions(recorded_unit_ns=1000))
    assert read_.rows[0].layout.unit_ns == 1000
    assert [note.partition(": ")[2] for note in read_.account.notes] == [
        "jHiccup records in another unit than --recorded-unit says: --recorded-unit was used"
    ]


def test_double_histograms_go_to_whole_ns(taken: Any) -> None:
    """Bins of double histograms that are whole ns stay; each other goes to the ns bin that holds its highest value."""
    for unit in (1, 1000, 1_000_000):
        read_ = taken(HDR / "double.hlog", options=ReadOptions(recorded_unit_ns=unit))
        expected = java("double")
        assert read_.account.accepted == len(expected)
        for row in read_.rows:
            number = (row.start_ns - START) // SECOND
            wanted = edges_of(expected[number][5:])
            assert sum(row.counts.values()) == sum(count for _, _, count in wanted)
            edges = row.layout.edges
            found: dict[int, int] = {}
            for _, upper, count in wanted:
                highest = -int(-(upper * unit) // 1) - 1
                at = int(np.searchsorted(edges, highest, side="right")) - 1
                found[at] = found.get(at, 0) + count
            assert row.counts == found


def test_folders_of_generators_are_hosts(taken: Any, tmp_path: Path) -> None:
    for host in ("gen1", "gen2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / "stress.hdr").write_text(hdr.log([hdr.line("0.000", "1.000", ONE, "read-st")]))
    rows = taken(tmp_path).rows
    assert [(row.series.host, row.series.process, row.series.op) for row in rows] == [
        ("gen1", "stress", "read"),
        ("gen2", "stress", "read"),
    ]


def test_one_run_may_hold_logs_of_fio_and_hdr(taken: Any, tmp_path: Path, fio: Path) -> None:
    (tmp_path / "a_clat_hist.1.log").write_bytes((fio / "randrw" / "a_clat_hist.1.log").read_bytes())
    (tmp_path / "b.hlog").write_text(hdr.log([hdr.line("0.000", "1.000", ONE)]))
    assert {source.format for source in discover([tmp_path], ReadOptions()).sources} == {"fio-hist", "hdr-log"}
