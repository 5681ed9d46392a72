"""HdrHistogram logs of the tools that write them: unit, op and kind of tags, what stands for start and length, equal tags."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import hdr
from tests.live.feeding import Clock, batch, begun

SCYLLA = Path(__file__).parent.parent / "data" / "hdr" / "scylla"
MS, SECOND = 1_000_000, 1_000_000_000
START = 1_700_000_000 * SECOND
TIMES = "#[StartTime: 1700000000.000 (seconds since epoch)]\n#[BaseTime: 1700000000.000 (seconds since epoch)]\n"
TWICE = "hold equal numbers of samples in every interval"
WANTED = Wanted(parse_percentiles("50,99"))


def notes(account: Any) -> list[str]:
    """Return the sentences of an account without the path before each."""
    return [note.partition(".hlog: ")[2] or note for note in account.notes]


def of_tags(seed: int, tags: Sequence[Sequence[str]], rows: int = 30) -> list[str]:
    """Return lines of tags; those of one group hold equal numbers of samples, at other latencies."""
    noise = random.Random(seed)
    lines = []
    for second in range(rows):
        for group in tags:
            counts = [noise.randrange(1, 90) for _ in range(noise.randrange(2, 6))]
            for tag in group:
                lines.append(
                    hdr.line(
                        f"{second}.000", "1.000", dict(zip(noise.sample(range(9000), len(counts)), counts, strict=True)), tag
                    )
                )
    return lines


# scylla-bench and cql-stress -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "unit"), [("as-0.3.1", 1), ("as-0.3.1-ms", MS)])
def test_a11_raw_is_service_and_co_fixed_response(taken: Any, name: str, unit: int) -> None:
    """The same operations are counted once a kind, in the unit that the lowest value of their histograms shows."""
    read_ = taken(SCYLLA / f"{name}.hlog")
    for kind in ("service", "response"):
        rows = [row for row in read_.rows if row.series.kind == kind]
        assert [row.start_ns for row in rows] == [START + second * SECOND for second in range(30)]
        assert all(row.end_ns - row.start_ns == SECOND for row in rows)
        assert {(row.series.op, row.series.tag, row.series.segment) for row in rows} == {("", "", 0)}
        assert {row.layout.unit_ns for row in rows} == {(1 << 15 if unit == 1 else 1) * unit}
    assert len({sum(row.counts.values()) for row in read_.rows}) > 10
    assert len(read_.rows) == 60
    answer = Files([SCYLLA / f"{name}.hlog"]).answer(Question(step="all", by=("kind",)))
    columns = percentiles(answer, WANTED).columns
    assert columns["count"].tolist() == [read_.account.samples // 2] * 2
    if unit == 1:
        assert all(400_000 < value < 800_000 for value in columns["p50"].tolist())
    assert not [note for note in notes(read_.account) if TWICE in note]
    assert [note for note in notes(read_.account) if "in place of its length" in note]


def test_a11_totals_of_a_mixed_load_are_left_out(taken: Any) -> None:
    read_ = taken(SCYLLA / "as-0.3.6-us-mixed.hlog")
    assert {(row.series.op, row.series.kind) for row in read_.rows} == {
        ("read", "service"), ("read", "response"), ("write", "service"), ("write", "response"),
    }  # fmt: skip
    assert read_.rows[0].start_ns == START + 12 * MS and {row.layout.unit_ns for row in read_.rows} == {1000 << 5}
    assert sum(read_.account.skipped.values()) == 60 and read_.account.rows == 180
    plain = taken(SCYLLA / "as-0.3.1.hlog").account
    assert read_.account.samples == plain.samples
    assert [note for note in notes(read_.account) if note.startswith("the tags raw and co-fixed are left out")]
    assert not [note for note in notes(read_.account) if "in place of its length" in note]


@pytest.mark.parametrize(
    ("tag", "labels"),
    [
        ("raw", ("", "service", "")),
        ("Co-Fixed", ("", "response", "")),
        ("RAW-read", ("read", "service", "")),
        ("co-fixed-write", ("write", "response", "")),
        ("node1.log::co-fixed-write", ("write", "response", "node1.log")),
        ("raw-scan", ("", "", "raw-scan")),
        ("raw-st", ("raw", "service", "")),
    ],
)
def test_a11_tags_of_scylla_bench(taken: Any, log: Any, tag: str, labels: tuple[str, str, str]) -> None:
    head = "#[Histogram log format version 1.3]\n#Logging op latencies for scylla-bench\n" + TIMES
    [row] = taken(log(hdr.log([hdr.line("0", "1.0", {300: 1}, tag)], head), "x.hlog")).rows
    assert (row.series.op, row.series.kind, row.series.tag) == labels


def test_a11_raw_of_another_tool_stays_a_tag_and_co_fixed_does_not(taken: Any, log: Any) -> None:
    lines = [hdr.line("0", "1.0", {300: 1}, tag) for tag in ("raw", "co-fixed")]
    read_ = taken(log(hdr.log(lines, "#[Some tool]\n"), "x.hlog"), options=ReadOptions(recorded_unit_ns=1))
    assert [(row.series.kind, row.series.tag) for row in read_.rows] == [("", "raw"), ("response", "")]


def test_a13_cql_stress_writes_the_end_of_an_interval_for_its_length(taken: Any, log: Any) -> None:
    """The frontend of scylla-bench: seconds as Rust prints floats, start and end; the unit is its default."""
    head = "#[Histogram log format version 1.3]\n#Logging op latencies for scylla-bench\n#[Basetime: 1700000000 (seconds since epoch)]\n"
    head += "#[StartTime: 1700000000 (seconds since epoch), 2023-11-14T22:13:20+00:00]\n"
    ends = ["0", "1.000123456", "2.000654321", "3.1"]
    lines = [hdr.line(a, b, {300: 2}, tag) for a, b in zip(ends, ends[1:], strict=False) for tag in ("co-fixed", "raw")]
    path = log(hdr.log(lines, head), "x.hlog")
    read_ = taken(path)
    spans = [(row.start_ns - START, row.end_ns - START) for row in read_.rows if row.series.kind == "service"]
    assert spans == [(0, 1_000_123_456), (1_000_123_456, 2_000_654_321), (2_000_654_321, 3_100_000_000)]
    assert read_.rows[0].layout.unit_ns == 1 and any("-hdr-latency-units" in note for note in notes(read_.account))
    told = taken(path, options=ReadOptions(recorded_unit_ns=1000))
    assert told.rows[0].layout.unit_ns == 1000 and not any("-hdr-latency-units" in note for note in notes(told.account))


def test_a13_cql_stress_stamps_intervals_by_their_ends(taken: Any, log: Any) -> None:
    """The frontend of cassandra-stress writes the time since the start at the moment of writing, which is the end."""
    head = "#[Logged with Cql-stress 0.2.2]\n" + TIMES + "#[MaxValueDivisor: 1000000.000]\n"
    lines = [
        hdr.line(stamp, length, {300: 5}, tag)
        for stamp, length in (("1.001", "1.001"), ("2.003", "1.001"), ("3.002", "1.000"))
        for tag in ("READ-rt", "READ-st")
    ]
    read_ = taken(log(hdr.log(lines, head), "x.hlog"))
    rows = [row for row in read_.rows if row.series.kind == "service"]
    assert [(row.start_ns - START) // MS for row in rows] == [0, 1002, 2003]  # the third begins 1 ms before the second ended
    assert [(row.end_ns - START) // MS for row in rows] == [1001, 2003, 3002]
    assert {row.series.op for row in rows} == {"read"} and {row.layout.unit_ns for row in rows} == {1}
    assert any("at their ends" in note for note in notes(read_.account))


NOSQLBENCH = "#UNITS: StartTimestamp = seconds since StartTime; Interval_Length = seconds, Interval_Max = milliseconds, values in the histogram"


@pytest.mark.parametrize(
    ("comment", "unit"),
    [
        ("#[Logged with Latte 0.28.2]", 1),
        ("#[Logged with Cql-stress 0.2.2]", 1),
        ("#[Logged with Gatling DSE Plugin v1.3.0]", 1),
        ("#[Latency histograms for atomiclong.get]", 1),
        ('"StartTimestamp","Interval_Length"\n#Units: microseconds', 1000),
        (f"#logging histograms for session x\n{NOSQLBENCH} = nanoseconds", 1),
        (f"#logging histograms for session x\n{NOSQLBENCH} = microseconds", 1000),
        ("#written by js\n\n#[Logged with Latte 0.28.2]", 1),
    ],
)
def test_a13_tools_whose_unit_is_known_from_their_source(taken: Any, log: Any, comment: str, unit: int) -> None:
    [row] = taken(log(hdr.log([hdr.line("2.000", "1.000", {300: 1}, "a")], comment + "\n" + TIMES), "x.hlog")).rows
    assert row.layout.unit_ns == unit and row.end_ns - row.start_ns == SECOND


# Equal tags ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ([["a", "b"]], ["the tags 'a', 'b'"]),
        ([["a", "b", "c"], ["d"], ["e", "f"]], ["the tags 'a', 'b' and 'c'", "the tags 'e' and 'f'"]),
        ([["", "A"]], ["the tags none and 'A'"]),
        ([["get-st", "put-st"]], ["the ops 'get' and 'put'"]),
        ([["get-st", "get-rt", "get-wt"]], []),
        ([["a"], ["b"]], []),
    ],
)
def test_a11_tags_of_equal_counts_are_told(taken: Any, log: Any, tags: list[list[str]], told: list[str]) -> None:
    account = taken(log(hdr.log(of_tags(1, tags)), "x.hlog")).account
    found = [note.partition(" hold")[0] for note in notes(account) if TWICE in note]
    assert found == [text.replace("'a', 'b'", "'a' and 'b'") if len(tags[0]) == 2 else text for text in told]


def test_a11_few_or_empty_intervals_say_nothing(taken: Any, log: Any) -> None:
    for lines in (of_tags(1, [["a", "b"]], rows=9), [hdr.line(f"{at}.0", "1.0", {}, tag) for at in range(20) for tag in "ab"]):
        assert not [note for note in notes(taken(log(hdr.log(lines), "x.hlog")).account) if TWICE in note]
    lines = of_tags(1, [["a", "b"]])
    lines[40] = hdr.line("20.000", "1.000", {5: 100_000}, "a")
    assert not [note for note in notes(taken(log(hdr.log(lines), "x.hlog")).account) if TWICE in note]


def test_a11_untagged_lines_that_overlap_are_told(taken: Any, log: Any) -> None:
    """The Go library from 1.3 on loses tags with Reset: the second line of each interval is a further segment."""
    account = taken(log(hdr.log(of_tags(1, [["", ""]])), "x.hlog")).account
    assert [note.partition(":")[0] for note in notes(account) if TWICE in note] == [f"lines of no tag overlap and {TWICE}"]


def test_a13_cycles_and_requests_of_latte_are_told(taken: Any, log: Any) -> None:
    text = hdr.log(of_tags(1, [["x.cycles"], ["x.requests"]]), "#[Logged with Latte 0.28.2]\n" + TIMES)
    assert [note for note in notes(taken(log(text, "x.hlog")).account) if "cycles and requests" in note]


@pytest.mark.parametrize("name", ["equal", "scylla"])
def test_a11_a_watch_says_what_a_load_says(tmp_path: Path, name: str) -> None:
    text = (SCYLLA / "as-0.3.6-us-mixed.hlog").read_text() if name == "scylla" else hdr.log(of_tags(3, [["a", "b"]]))
    folder, lines, clock = tmp_path / "logs", text.splitlines(keepends=True), Clock()
    folder.mkdir()
    url = f"sqlite:{tmp_path / 'watched.db'}"
    store = open_store(url, write=True)
    watch = begun(folder, store, clock)
    for at in range(0, len(lines), 8):
        with (folder / "x.hlog").open("a") as stream:
            stream.writelines(lines[at : at + 8])
        clock.seconds += 1
        watch.cycle()
        if at in (0, 80):  # as if killed
            for tail in watch.watching.tails.values():
                tail.close()
            store.__exit__(None, None, None)
            store = open_store(url, write=True)
            watch = begun(folder, store, clock)
    clock.seconds += 1
    watch.cycle()
    [tail] = watch.watching.tails.values()
    live = {note for note in tail.account.notes if "schedule" not in note}
    store.__exit__(None, None, None)
    loaded = batch(folder, tmp_path / "batch.db")
    with open_store(f"sqlite:{tmp_path / 'batch.db'}") as other:
        [record] = other.sources("r")
    assert loaded is not None and live == {note for note in record.account["notes"] if "schedule" not in note}
    assert len(live) == 1
    assert tail.account.skipped == record.account["skipped"]
