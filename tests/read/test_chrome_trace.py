"""Chrome trace events, held against `json` and a plain loop over the events."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import events_of
from ingest.read.placement import discover
from ingest.read.plugins import chrome
from ingest.read.sources import ReadOptions, Source
from oracles.events import nearest_rank
from oracles.traces import Operation, chrome_operations
from tests.effort import figure
from tests.mutations import mutated, mutations

TRACES = Path(__file__).parent.parent / "data" / "traces"
Found = list[Operation]
Event = dict[str, Any]


def text_of(name: str) -> str:
    return lzma.open(TRACES / f"{name}.json.xz").read().decode()


def taken(path: Path, **words: Any) -> tuple[Found, Source]:
    """Return the operations of a trace, sorted, and its source."""
    [source] = discover([path], ReadOptions(**words)).sources
    assert source.format == "chrome-trace"
    found = []
    for chunk in events_of(source):
        for code, end, latency in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
            series = chunk.table[code]
            assert series.kind == "service"
            found.append((series.op, series.process, series.tag, end, latency))
    return sorted(found), source


def complete(number: int, **more: Any) -> Event:
    """Return a complete event."""
    return {
        "name": f"Op{number % 3}",
        "cat": "c",
        "ph": "X",
        "pid": 7,
        "tid": number % 2,
        "ts": number * 10,
        "dur": number,
        **more,
    }


def mark(phase: str, at: float, name: str = "Work", **more: Any) -> Event:
    """Return a beginning, an end, or another event without a duration."""
    return {"name": name, "cat": "c", "ph": phase, "pid": 7, "tid": 1, "ts": at, **more}


def document(listed: list[Event], **layout: Any) -> str:
    return json.dumps({"traceEvents": listed, "displayTimeUnit": "ms"}, **layout)


@pytest.mark.parametrize("name", ["node", "chrome"])
def test_recorded_traces_are_those_of_a_loop(name: str) -> None:
    truth, left = chrome_operations(text_of(name))
    found, source = taken(TRACES / f"{name}.json.xz")
    assert found == truth and len(truth) > 20
    account = source.context.account
    reasons = {
        "an end whose beginning is not in the trace": left["no beginning"],
        "a beginning whose end is not in the trace": left["no end"],
    }
    assert account.rejected == {reason: count for reason, count in reasons.items() if count}
    assert account.rows_skipped == left["others"] and left["others"] > 10
    everything = json.loads(text_of(name))["traceEvents"]
    assert account.rows == len(everything) == account.accepted + account.rows_rejected + account.rows_skipped
    assert any(process.isalpha() or " " in process for _, process, *_ in found)
    assert any(tag for _, _, tag, *_ in found)
    assert source.context.zero.epoch_ns is None


def test_percentiles_of_a_trace() -> None:
    answer = Files([TRACES / "node.json.xz"], jobs=1).answer(Question(step="all", by=("op",)))
    table = percentiles(answer, Wanted(parse_percentiles("100"))).columns
    truth, _ = chrome_operations(text_of("node"))
    for op, count, low, high in zip(table["op"], table["count"], table["min"], table["max"], strict=True):
        values = [latency for name, *_, latency in truth if name == op]
        assert (count, low, high) == (len(values), min(values), nearest_rank(values, "100"))


NESTED = [
    {"name": "process_name", "ph": "M", "pid": 7, "tid": 0, "args": {"name": "Ren},{derer"}},
    *(complete(number, args={"list": [{"a": [{"b": 1}]}, {"c": '"},{"'}], "text": "a\\"}) for number in range(1, 40)),
    {"name": "thread_name", "ph": "M", "pid": 7, "tid": 1, "args": {"name": "Ünï ], thread"}},
]
LAYOUTS = {
    "one line": document(NESTED),
    "plain text": document(NESTED, ensure_ascii=False),
    "spread out": document(NESTED, indent=2),
    "tight": document(NESTED, separators=(",", ":")),
    "array": json.dumps(NESTED),
    "array left open": json.dumps(NESTED).rstrip("]"),
    "array with a comma too many": json.dumps(NESTED).rstrip("]") + ",\n",
    "a line each": "[\n" + ",\n".join(map(json.dumps, NESTED)) + "\n]\n",
    "other keys before and behind": json.dumps(
        {"otherData": {"v": [{"x": 1}, {"y": 2}]}, "traceEvents": NESTED, "stackFrames": [{"a": 1}, {"b": 2}, {"ph": "X"}]}
    ),
    "carriage returns": document(NESTED, indent=1).replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + document(NESTED),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same(tmp_path: Path, layout: str) -> None:
    truth, left = chrome_operations(json.dumps(NESTED))
    path = tmp_path / "t.json"
    path.write_bytes(LAYOUTS[layout].encode())
    found, source = taken(path)
    assert found == truth
    account = source.context.account
    assert (account.rows, account.rows_skipped, account.rows_rejected) == (len(NESTED), left["others"], 0)
    assert not account.notes


@pytest.mark.slow
@pytest.mark.parametrize("indent", [None, 1])
def test_objects_lie_across_blocks(tmp_path: Path, indent: int | None) -> None:
    generator = random.Random(6)
    listed: list[Event] = []
    for number in range(12_000):
        listed.append(complete(number, ts=number + generator.randrange(1000) / 1000, args={"l": [{"n": i} for i in range(5)]}))
        if number % 5 == 0:
            listed.append(mark(generator.choice("BBE"), number, f"op{number % 4}"))
        if number % 7 == 0:
            listed.append(mark(generator.choice("be"), number, f"op{number % 4}", id=f"0x{number % 8}"))
    path = tmp_path / "t.json"
    path.write_text(document(listed, indent=indent))
    assert path.stat().st_size > 2_000_000
    truth, left = chrome_operations(path.read_text())
    found, source = taken(path)
    assert found == truth
    account = source.context.account
    assert account.rejected["a beginning whose end is not in the trace"] == left["no end"] > 0
    assert account.rejected["an end whose beginning is not in the trace"] == left["no beginning"] > 0
    assert account.rows == len(listed)


@pytest.mark.parametrize("size", [64, 301, 4096])
@pytest.mark.parametrize("name", ["node", "chrome"])
def test_the_size_of_blocks_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> None:
    text = text_of(name)
    path = tmp_path / "t.json"
    path.write_text(text if name == "node" else "\n".join(text.split("\n")[:400]))
    whole, source = taken(path)
    monkeypatch.setattr("ingest.read.text.BLOCK", size)
    found, again = taken(path)
    assert found == whole
    assert source.context.account.as_dict() == again.context.account.as_dict()


@pytest.mark.slow
def test_a_trace_that_breaks_off_is_read_to_its_last_whole_event(tmp_path: Path) -> None:
    listed = [complete(number, args={"l": [{"a": 1}]}) for number in range(1, 6)]
    whole = "[\n" + ",\n".join(map(json.dumps, listed)) + "\n]\n"
    path = tmp_path / "t.json"
    ends, at = [], 2
    for event in listed:
        ends.append(at + len(json.dumps(event)))
        at = ends[-1] + 2
    for cut in range(60, len(whole)):
        path.write_text(whole[:cut])
        kept = [event for event, end in zip(listed, ends, strict=True) if end <= cut]
        found, source = taken(path, input_format="chrome-trace")
        assert found == chrome_operations(json.dumps(kept))[0], cut
        account = source.context.account
        assert account.rows_rejected == 0, cut
        broken = whole[:cut].rstrip(", \n]") != whole[: ends[len(kept) - 1]] if kept else True
        assert (account.cut_short == chrome.CUT_SHORT) == broken, cut


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    stamps = ["1700000000123456.789", "1700000000123457", "999999999999.001", "4398046511104.003", '"12.5"', "1e3", "0.0005"]
    text = ",".join(f'{{"name":"a","ph":"X","pid":1,"tid":1,"ts":{stamp},"dur":0.25}}' for stamp in stamps)
    path.write_text(f"[{text}]")
    found, source = taken(path)
    starts = sorted(end - latency for *_, end, latency in found)
    assert starts == [0, 12_500, 1_000_000, 999_999_999_999_001, 4_398_046_511_104_003, *(
        1_700_000_000_123_456_789,
        1_700_000_000_123_457_000,
    )]  # fmt: skip
    assert {latency for *_, latency in found} == {250}
    assert (source.context.zero.epoch_ns, source.context.zero.origin) == (0, "epoch stamps in the log")


def test_time_zero(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(document([complete(1), complete(2)]))
    found, source = taken(path, t0=17 * 10**17, host="h", host_offset_ns={"h": 3})
    assert [end for *_, end, _ in found] == [17 * 10**17 + 3 + 22_000, 17 * 10**17 + 3 + 11_000][::-1]
    assert (source.context.series.host, source.context.series.job) == ("h", "t")
    found, source = taken(path, t0="mtime")
    assert max(end for *_, end, _ in found) == path.stat().st_mtime_ns
    assert source.context.zero.origin == "file time (--t0 mtime)"


def test_beginnings_and_ends(tmp_path: Path) -> None:
    """Threads nest, whatever ends are called; asynchronous ones have category, id and name in common."""
    listed = [
        mark("B", 10, "outer"),
        mark("B", 11, "inner"),
        mark("B", 12, "other thread", tid=2),
        mark("E", 15, "whatever it says"),
        mark("E", 20),
        mark("b", 30, "load", id="0x1"),
        mark("b", 31, "parse", id="0x1"),
        mark("e", 32, "load", id="0x1"),
        mark("e", 33, "parse", id="0x1", cat="d"),
        mark("b", 40, "s", id2={"local": "5"}),
        mark("e", 41, "s", id2={"local": "5"}, pid=8),
        mark("e", 42, "s", id2={"local": "5"}),
        mark("b", 50, "s", id2={"global": 5}),
        mark("e", 51, "s", id2={"global": 5}, pid=8),
        mark("S", 60, "old", id=1),
        mark("F", 61, "old", id=1),
    ]
    path = tmp_path / "t.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, listed)) + "\n]")
    found, source = taken(path)
    assert sorted((op, end, latency) for op, _, _, end, latency in found) == [
        ("inner", 15_000, 4000),
        ("load", 32_000, 2000),
        ("old", 61_000, 1000),
        ("outer", 20_000, 10_000),
        ("s", 42_000, 2000),
        ("s", 51_000, 1000),
    ]
    account = source.context.account
    assert sorted((finding.line, finding.reason) for finding in account.findings) == [
        (4, "a beginning whose end is not in the trace"),
        (8, "a beginning whose end is not in the trace"),
        (10, "an end whose beginning is not in the trace"),
        (12, "an end whose beginning is not in the trace"),
    ]
    assert (account.rows, account.accepted) == (16, 12)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[Event], list[Event]]:
    """Return beginnings and ends, each at a time of its own, in their order and in another."""
    listed = [
        mark(phase, at + 0.5, name, **({"tid": number} if phase in "BE" else {"id": f"0x{number}"}))
        for at, (phase, name, number) in enumerate(
            draw(st.lists(st.tuples(st.sampled_from("BEbeSF"), st.sampled_from(["a", "b"]), st.integers(1, 2)), max_size=40))
        )
    ]
    return listed, draw(st.permutations(listed))


@settings(max_examples=figure(60, 300, 3000))
@given(shuffled(), st.sampled_from([1 << 20, 14]), st.booleans())
def test_any_order_of_the_events_is_their_order_by_time(
    tmp_path_factory: pytest.TempPathFactory, events: tuple[list[Event], list[Event]], most: int, mixed: bool
) -> None:
    """Of a trace in order, how many of them are kept at once changes nothing, if no more are open than may be kept."""
    assume(mixed or 2 * sum(event["ph"] in "BbS" for event in events[0]) <= most)
    if not hasattr(shuffled, "folder"):
        shuffled.folder = tmp_path_factory.mktemp("orders")
    path = shuffled.folder / "t.json"
    listed = [complete(1), *(events[1] if mixed else events[0])]
    path.write_text(document(listed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingest.read.plugins.chrome.MOST_HELD", 1 << 20 if mixed else most)
        found, source = taken(path)
    truth, left = chrome_operations(document([complete(1), *events[0]]))
    assert found == truth
    account = source.context.account
    reasons = {chrome.NO_BEGINNING: left["no beginning"], chrome.NO_END: left["no end"]}
    assert account.rejected == {reason: count for reason, count in reasons.items() if count}
    assert account.rows == len(listed) == account.accepted + account.rows_rejected
    lines = path.read_text().count("\n") + 1
    assert lines == 1 and not account.notes


def test_an_end_that_stands_before_its_beginning(tmp_path: Path) -> None:
    """As in buffers of threads that follow one another; also where both are of one time, and where one id is used again."""
    listed = [
        mark("F", 30, "input", id=1, tid=9, pid=8),
        mark("F", 60, "input", id=1, tid=9, pid=8),
        mark("e", 70, "at once", id=2),
        mark("E", 80, tid=2),
        mark("S", 20, "input", id=1),
        mark("S", 40, "input", id=1),
        mark("b", 70, "at once", id=2),
        mark("B", 80, tid=2),
        mark("E", 85, tid=2),
    ]
    path = tmp_path / "t.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, listed)) + "\n]")
    found, source = taken(path)
    assert [(op, process, end, latency) for op, process, _, end, latency in found] == [
        ("at once", "7", 70_000, 0),
        ("input", "8", 30_000, 10_000),
        ("input", "8", 60_000, 20_000),
        ("work", "7", 85_000, 5000),
    ]
    assert [(finding.line, finding.reason) for finding in source.context.account.findings] == [(5, chrome.NO_BEGINNING)]


def test_more_marks_out_of_order_than_can_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays alone waits for what comes later, half of what can wait at most; the account says so."""
    monkeypatch.setattr("ingest.read.text.BLOCK", 256)
    monkeypatch.setattr("ingest.read.plugins.chrome.MOST_HELD", 20)
    path = tmp_path / "t.json"
    ends, begins = ([mark(phase, at + number, id=number) for number in range(9)] for phase, at in (("F", 100), ("S", 50)))
    others = [mark("BE"[number % 2], 200 + number) for number in range(60)]
    path.write_text(document([*ends, *others, *begins]))
    found, source = taken(path)
    assert len(found) == 9 + 30 and sum(latency == 50_000 for *_, latency in found) == 9
    assert source.context.account.rows_rejected == 0 and source.context.account.notes == [chrome.FAR_APART]
    path.write_text(document([*others, *begins, *others[::2], *begins, *others[::2]]))
    _, source = taken(path)
    account = source.context.account
    assert account.rejected.keys() <= {chrome.NO_END, chrome.NO_BEGINNING} and account.rows == 60 + 18 + 60


FAULTS = [
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":5}', "ts or dur is missing, or no time"),
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":true,"dur":1}', "ts or dur is missing, or no time"),
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":1e30,"dur":1}', "ts or dur is missing, or no time"),
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":"soon","dur":1}', "ts or dur is missing, or no time"),
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":5,"dur":-1}', "it ended before it began"),
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":5,"dur":86400000001}', "a duration of more than a day"),
    ('{"name":"a","pid":1,"tid":1,"ts":5,"dur":1}', "no trace event: it has no phase (ph)"),
    ("17", "no JSON object"),
    ('{"name":"a","ph":"X","pid":1,"tid":1,"ts":NaN,"dur":1}', "no JSON object"),
    ('{"name":"a","ph":"X" "pid":1,"args":{"l":[{"a":1},{"b":2}]}}', "no JSON object"),
    ('{"name":"a\x00","ph":"X","pid":1}', "no JSON object"),
    ("garbage", "no JSON object"),
]


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
def test_what_cannot_be_taken_is_named_and_the_rest_kept(tmp_path: Path, fault: str, reason: str) -> None:
    lines = [json.dumps(complete(number)) for number in range(1, 9)]
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents":[\n' + ",\n".join([*lines[:4], fault, *lines[4:]]) + "\n]}\n")
    found, source = taken(path)
    account = source.context.account
    assert found == chrome_operations("[" + ",".join(lines) + "]")[0]
    assert account.rejected == {reason: 1}
    assert (account.findings[0].line, account.rows) == (6, 9)


@pytest.mark.parametrize("content", ["{}", '{"a":[{"ph":"X"}]}', "hello", '"ph"', "null"])
def test_what_is_no_trace_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(InputError, match="no array of trace events"):
        discover([path], ReadOptions(input_format="chrome-trace"))


def test_names_that_tell_single_operations_apart_are_too_many(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(document([complete(1, name=f"request {number}") for number in range(10_050)]))
    found, source = taken(path)
    assert len(found) == 10_000 and source.context.account.rows_rejected == 50


LINES = [
    {"name": "process_name", "ph": "M", "pid": 7, "tid": 0, "args": {"name": "Renderer"}},
    *(complete(number, ts=number * 10.25) for number in range(6)),
    mark("B", 70),
    mark("E", 80),
    mark("b", 90, id=1),
    mark("e", 95, id=1),
    mark("i", 96),
]
CONTENTS = {
    "lines": '{"traceEvents":[\n' + ",\n".join(map(json.dumps, LINES)) + '\n],"metadata":{}}',
    "one": json.dumps(LINES),
    "spread": document(LINES, indent=1),
}


@pytest.mark.slow
@settings(max_examples=figure(150, 250, 1000))
@given(
    st.sampled_from(sorted(CONTENTS)),
    mutations("flip delete insert truncate nul".split(), 3000, 150, st.binary(max_size=6)),
)
def test_mutated_traces_never_crash_and_every_event_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, layout: str, steps: list[tuple[str, int, int, bytes]]
) -> None:
    if not hasattr(taken, "folder"):
        taken.folder = tmp_path_factory.mktemp("chrome")
    content = mutated(CONTENTS[layout].encode(), steps)
    path = taken.folder / "t.json"
    path.write_bytes(content)
    try:
        [source] = discover([path], ReadOptions(input_format="chrome-trace")).sources
        total = sum(len(chunk) for chunk in events_of(source))
    except TailboardError:
        return
    account = source.context.account
    assert account.rows == account.accepted + account.rows_rejected + account.rows_skipped
    assert account.accepted <= 2 * total and account.rows_rejected == sum(account.rejected.values())
    try:
        whole = json.loads(content)
        listed = whole["traceEvents"] if isinstance(whole, dict) else whole
    except (ValueError, KeyError, RecursionError):
        return
    if isinstance(listed, list) and not steps:
        assert account.rows == len(listed)
