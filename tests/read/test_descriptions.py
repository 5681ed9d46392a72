"""What the lines of a description can say of load generators' files: the same words for csv and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import TailboardError, UsageError
from ingest.read import events_of
from ingest.read.described.description import description_of
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions, Source
from tests.effort import figure
from tests.mutations import mutated, mutations

EPOCH = 1_795_200_000_000_000_000
MS = 10**6


def source_of(folder: Path, lines: str, text: str | bytes, name: str = "log.txt") -> Source:
    """Write a file and what describes it; return the source that it is read as."""
    (folder / "events.yml").write_text(lines)
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    [source] = discover([folder / name], ReadOptions(description=description_of(str(folder / "events.yml")))).sources
    return source


def taken(source: Source) -> list[tuple[str, str, int, int]]:
    """Return (op, kind, start, latency) of each operation, sorted."""

    def each() -> Iterator[tuple[str, str, int, int]]:
        for chunk in events_of(source):
            for code, end, took in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
                yield chunk.table[code].op, chunk.table[code].kind, end - took, took

    return sorted(each())


def requests(count: int = 300, seed: int = 1) -> list[tuple[int, int, str, int]]:
    """Return (start in ns, latency in whole us as ns, op, status)."""
    dice = random.Random(seed)
    return [
        (
            EPOCH + 10 * MS * number,
            round(dice.lognormvariate(2, 0.6) * 1000) * 1000,
            dice.choice(["home", "cart"]),
            dice.choice([200, 200, 503]),
        )
        for number in range(count)
    ]


def truth(rows: list[tuple[int, int, str, int]]) -> list[tuple[str, str, int, int]]:
    return sorted((op, "service" if status < 500 else "service.failed", start, took) for start, took, op, status in rows)


def ms(ns: int) -> str:
    return f"{ns / MS:.3f}"


NESTED = """\
start: metadata.request_start_ns
latency: metrics.request_latency.value
unit: {start: ns, latency: ms}
labels: {op: metadata.endpoint}
failed: {metadata.status: "5*"}
"""


def nested(rows: list[tuple[int, int, str, int]], status: Any = int) -> list[dict[str, Any]]:
    return [
        {
            "metadata": {"request_start_ns": start, "endpoint": op, "status": status(code), "x": {"y": [1, {}]}},
            "metrics": {"ttft": {"value": 1.5, "unit": "ms"}, "request_latency": {"value": float(ms(took)), "unit": "ms"}},
        }
        for start, took, op, code in rows
    ]


@pytest.mark.parametrize("status", [int, str], ids=["number", "text"])
@pytest.mark.parametrize(
    "odd", ["", "garbage\n", '{"metadata": 5, "metrics": {}}\n', '{"metadata": {"request_start_ns": "x"}}\n']
)
def test_d2_nested_keys(tmp_path: Path, status: type, odd: str) -> None:
    lines = [json.dumps(entry) + "\n" for entry in nested(requests(), status)]
    source = source_of(tmp_path, NESTED, "".join([*lines[:100], odd, *lines[100:]]))
    assert taken(source) == truth(requests())
    assert source.context.account.rows_rejected == bool(odd)
    assert [finding.line for finding in source.context.account.findings] == ([101] if odd else [])


def test_d2_a_key_with_dots_of_its_own_is_one_key(tmp_path: Path) -> None:
    text = "".join(
        json.dumps({"time.start": start, "took.ms": float(ms(took)), "op": op}) + "\n" for start, took, op, _ in requests()
    )
    lines = "start: time.start\nlatency: took.ms\nunit: {start: ns, latency: ms}\nlabels: {op: op}\n"
    assert [row[2:] for row in taken(source_of(tmp_path, lines, text))] == [
        row[2:] for row in sorted((op, "", start, took) for start, took, op, _ in requests())
    ]


K6 = """\
time: data.time
latency: data.value
unit: {time: iso, latency: ms}
labels: {op: data.tags.name}
failed: {data.tags.status: "5*"}
where: {type: Point, metric: http_req_duration}
"""


def k6_json(rows: list[tuple[int, int, str, int]]) -> str:
    from datetime import UTC, datetime

    def lines() -> Iterator[dict[str, Any]]:
        yield {
            "type": "Metric",
            "data": {"name": "http_req_duration", "type": "trend", "thresholds": [], "submetrics": None},
            "metric": "http_req_duration",
        }
        for start, took, op, status in rows:
            end = start + took
            stamp = f"{datetime.fromtimestamp(end // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{end % 10**9:09d}Z"
            tags = {"name": op, "status": str(status)}
            yield {"metric": "http_reqs", "type": "Point", "data": {"time": stamp, "value": 1, "tags": tags}}
            yield {
                "metric": "http_req_duration",
                "type": "Point",
                "data": {"time": stamp, "value": float(ms(took)), "tags": tags},
            }
            yield {"metric": "vus", "type": "Point", "data": {"time": stamp, "value": 5, "tags": None}}

    return "".join(json.dumps(line) + "\n" for line in lines())


def test_d2_rows_of_one_metric_among_others(tmp_path: Path) -> None:
    source = source_of(tmp_path, K6, k6_json(requests()))
    assert taken(source) == truth(requests())
    account = source.context.account
    assert account.rows_rejected == 0 and sum(account.skipped.values()) == 601 and account.rows == 901


@pytest.mark.parametrize("form", ["ndjson", "csv"])
@pytest.mark.parametrize(
    ("where", "ops"),
    [
        ("{op: home}", {"home"}),
        ("{op: [home, cart]}", {"home", "cart"}),
        ('{op: "?*"}', {"home", "cart", "idle"}),
        ('{op: "!home"}', {"cart", "idle", ""}),
    ],
    ids=["equal", "in a list", "present", "another"],
)
def test_d2_which_rows_are_taken(tmp_path: Path, form: str, where: str, ops: set[str]) -> None:
    rows = [(EPOCH + number * MS, MS, op) for number, op in enumerate(["home", "cart", "idle", None] * 30)]
    if form == "csv":
        text = "s_ns,l_ns,op\n" + "".join(f"{start},{took},{op or ''}\n" for start, took, op in rows)
    else:
        text = "".join(json.dumps({"s_ns": start, "l_ns": took, **({"op": op} if op else {})}) + "\n" for start, took, op in rows)
    found = taken(source_of(tmp_path, f"start: s_ns\nlatency: l_ns\nlabels: {{op: op}}\nwhere: {where}\n", text))
    assert {op for op, *_ in found} == ops and len(found) == 30 * len(ops)


ENTRIES = 'start: details.*.timestamp\nlatency: details.*.latency\nunit: {start: iso, latency: ns}\nlabels: {op: details.*.call, host: host}\nfailed: {details.*.status: "5*"}\n'


def entries(rows: list[tuple[int, int, str, int]]) -> list[dict[str, Any]]:
    from datetime import UTC, datetime

    return [
        {
            "timestamp": f"{datetime.fromtimestamp(start // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{start % 10**9:09d}+00:00",
            "latency": took,
            "call": op,
            "status": status,
        }
        for start, took, op, status in rows
    ]


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
@pytest.mark.parametrize("count", [3, 300, 3000])
def test_d2_an_array_of_objects_in_one_document(tmp_path: Path, indent: int | None, count: int) -> None:
    rows = requests(count)
    text = json.dumps({"host": "h1", "count": count, "histogram": [{"mark": 1}], "details": entries(rows)}, indent=indent)
    assert taken(source_of(tmp_path, ENTRIES, text)) == truth(rows)


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
def test_d2_a_document_that_is_an_array(tmp_path: Path, indent: int | None) -> None:
    lines = "start: '*.timestamp'\nlatency: '*.latency'\nunit: {start: iso, latency: ns}\nlabels: {op: '*.call'}\nfailed: {'*.status': \"5*\"}\n"
    assert taken(source_of(tmp_path, lines, json.dumps(entries(requests(2000)), indent=indent))) == truth(requests(2000))


ARRAYS = "start: start_times.*\nlatency: latencies.*\nunit: s\nlabels: {op: model}\n"


def arrays(rows: list[tuple[int, int, str, int]], **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "start_times": [float(f"{start / 10**9:.2f}") for start, *_ in rows],
        "latencies": [float(f"{took / 10**9:.6f}") for _, took, *_ in rows],
        **more,
    }


@pytest.mark.parametrize("count", [1, 300, 30_000])
def test_d2_arrays_of_values_side_by_side(tmp_path: Path, count: int) -> None:
    rows = requests(count)
    found = taken(source_of(tmp_path, ARRAYS, json.dumps(arrays(rows, texts=["a" * 50] * count)) + "\n"))
    assert [row[2:] for row in found] == sorted((start, took) for start, took, *_ in rows)


def test_d2_arrays_of_values_in_each_line(tmp_path: Path) -> None:
    rows = requests(300)
    good = [json.dumps(arrays(rows[first : first + 3])) + "\n" for first in range(0, 300, 3)]
    bad = [
        json.dumps({**arrays(rows[:3]), "latencies": [0.5]}) + "\n",
        json.dumps({"model": "m", "start_times": [1795200000]}) + "\n",
    ]
    source = source_of(tmp_path, ARRAYS, "".join(good[:50] + bad + good[50:]))
    assert [row[2:] for row in taken(source)] == sorted((start, took) for start, took, *_ in rows)
    assert source.context.account.rejected == {"arrays of unlike lengths": 1, "no array latencies.*": 1}
    assert [finding.line for finding in source.context.account.findings] == [51, 52]


@pytest.mark.parametrize("form", ["ndjson", "csv"])
@pytest.mark.parametrize("odd", ["", "5", "1.5 parsecs", "ms"])
def test_d2_durations_with_their_unit(tmp_path: Path, form: str, odd: str) -> None:
    texts = {
        "1.5ms": 1_500_000,
        "850µs": 850_000,
        "850us": 850_000,
        "12ns": 12,
        "1m2.25s": 62_250_000_000,
        "1h": 3600 * 10**9,
        "0s": 0,
        "1.234567891s": 1_234_567_891,
    }
    words = list(texts)
    if odd:
        words.insert(2, odd)
    if form == "csv":
        text = "s_ns,took\n" + "".join(f"{EPOCH},{word}\n" for word in words)
    else:
        text = "".join(json.dumps({"s_ns": EPOCH, "took": word}) + "\n" for word in words)
    source = source_of(tmp_path, "start: s_ns\nlatency: took\nunit: {latency: text}\n", text)
    assert [took for *_, took in taken(source)] == sorted(texts.values())
    assert source.context.account.rows_rejected == bool(odd)


JTL = 'start: timeStamp\nlatency: elapsed\nunit: ms\nlabels: {op: label}\nfailed: {success: "false"}\n'
TRACE = 'java.io.IOException: "no route", to host\n\tat a.B(C.java:1)\n\n\tat a.D(E.java:2), 3\n'


def jtl(
    rows: list[tuple[int, int, str, int]], every: int, message: str = TRACE, end: str = "\n"
) -> tuple[str, list[tuple[str, str, int, int]]]:
    """Return a table of which each so manieth row has a cell of several lines, and what it holds."""
    out, held = io.StringIO(), []
    table = csv.writer(out, lineterminator=end)
    table.writerow(["timeStamp", "elapsed", "label", "failureMessage", "success", "bytes"])
    for number, (start, took, op, _) in enumerate(rows):
        bad = number % every == 1
        table.writerow([start // MS, took // MS, op, message if bad else "", str(not bad).lower(), 5])
        held.append((op, "service.failed" if bad else "service", start // MS * MS, took // MS * MS))
    return out.getvalue(), sorted(held)


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    "message",
    [TRACE, "two\nlines", "\nfirst", "last\n", '"\n"', "a" * 3000 + "\n" * 50],
    ids=["trace", "two", "first", "last", "quotes", "long"],
)
@pytest.mark.parametrize("count", [60, 30_000], ids=["small", "blocks"])
def test_d2_quoted_cells_of_several_lines(tmp_path: Path, message: str, end: str, count: int) -> None:
    text, held = jtl(requests(count), 7 if count < 100 else 400, message, end)
    source = source_of(tmp_path, JTL, text)
    assert taken(source) == held
    assert source.context.account.rejected == {} and source.context.account.rows == len(held)


def test_d2_the_line_of_a_fault_behind_cells_of_several_lines(tmp_path: Path) -> None:
    text, held = jtl(requests(60), 7)
    source = source_of(tmp_path, JTL, text + "x,5,home,,true,5\n")
    assert taken(source) == held
    assert [finding.line for finding in source.context.account.findings] == [text.count("\n") + 1]


@pytest.mark.parametrize(
    "lone", ['1795200000000,5,"home,,true,5\n', '1795200000000,5,home,"oops,true,5\n', '1795200000000,5,home,oops",true,5\n']
)
@pytest.mark.parametrize("count", [40, 20_000])
def test_d2_a_quote_that_is_not_closed_costs_its_line_alone(tmp_path: Path, lone: str, count: int) -> None:
    text, held = jtl(requests(count), 9)
    lines = text.splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if number > 20 and line.endswith(",true,5\n"))
    source = source_of(tmp_path, JTL, "".join([*lines[:place], lone, *lines[place:]]))
    assert len(set(held) - set(taken(source))) == 0
    assert source.context.account.rows_rejected <= 1


def test_d2_a_cell_that_breaks_off_with_the_file(tmp_path: Path) -> None:
    text, held = jtl(requests(60), 7)
    source = source_of(tmp_path, JTL, text + '1795200000000,5,home,"java.io: oops\n at a.B(C')
    assert taken(source) == held and source.context.account.rows_rejected == 2


GATLING = 'start: 4\nend: 5\nunit: ms\ndelimiter: "\\t"\nheader: false\nlabels: {op: 3}\nfailed: {6: KO}\nwhere: {1: REQUEST}\n'


@pytest.mark.parametrize("count", [100, 20_000])
def test_d2_lines_of_several_kinds_with_columns_of_their_own(tmp_path: Path, count: int) -> None:
    rows = requests(count)
    lines = ["RUN\tBasic\tbasic\t1795200000000\t \t3.4.0\n"]
    for number, (start, took, op, status) in enumerate(rows):
        first = start // MS
        lines += [f"USER\tscn\tSTART\t{first}\n"] if number % 10 == 0 else []
        lines += [f"REQUEST\t\t{op}\t{first}\t{first + took // MS}\t{'KO' if status > 500 else 'OK'}\t \n"]
    source = source_of(tmp_path, GATLING, "".join(lines), "simulation.log")
    assert taken(source) == sorted(
        (op, "service.failed" if status > 500 else "service", start // MS * MS, took // MS * MS)
        for start, took, op, status in rows
    )
    account = source.context.account
    assert account.rejected == {} and sum(account.skipped.values()) == count // 10 + 1


def test_d2_rows_that_are_not_taken_need_no_numbers(tmp_path: Path) -> None:
    text = "".join(f"http_req_duration,{EPOCH + number},5\nchecks,,yes\n" for number in range(100))
    source = source_of(tmp_path, "time: t\nlatency: l\nunit: ns\nlabels: {op: m}\nwhere: {m: http*}\n", "m,t,l\n" + text)
    assert len(taken(source)) == 100 and source.context.account.rejected == {}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("start: a.*.b.*\nlatency: c\nunit: ns\n", "a key with one \\*"),
        ("start: a\nlatency: c\nunit: {start: text}\n", "unit 'text'"),
        ("start: a\nlatency: c\nunit: {latency: h}\n", "text for 1.5ms"),
    ],
)
def test_d2_what_cannot_be_said_is_refused(tmp_path: Path, lines: str, reason: str) -> None:
    (tmp_path / "events.yml").write_text(lines)
    with pytest.raises(UsageError, match=reason):
        description_of(str(tmp_path / "events.yml"))


DAMAGED = {
    "nested": (NESTED, "".join(json.dumps(entry) + "\n" for entry in nested(requests(30))).encode()),
    "k6": (K6, k6_json(requests(15)).encode()),
    "document": (ENTRIES, json.dumps({"host": "h", "details": entries(requests(30))}, indent=1).encode()),
    "arrays": (ARRAYS, "".join(json.dumps(arrays(requests(5, seed))) + "\n" for seed in range(10)).encode()),
    "quoted": (JTL, jtl(requests(30), 5)[0].encode()),
    "durations": ("start: s\nlatency: took\nunit: {start: epoch, latency: text}\n", b"s,took\n" + b"".join(b"17952000000%02d,%dm1.5s\n" % (n, n) for n in range(30))),
    "kinds of lines": (GATLING, b"".join(b"USER\ts\tSTART\t1795200000000\nREQUEST\t\thome\t17952000000%02d\t17952000001%02d\tOK\t \n" % (n, n) for n in range(30))),
}  # fmt: skip


@pytest.mark.slow
@settings(max_examples=figure(150, 300, 1500))
@given(
    st.sampled_from(sorted(DAMAGED)), mutations(["flip", "delete", "insert", "truncate", "nul"], 6000, 60, st.binary(max_size=6))
)
def test_d2_damaged_files_never_crash_and_lines_are_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, case: str, steps: list[tuple[str, int, int, bytes]]
) -> None:
    lines, content = DAMAGED[case]
    content = mutated(content, steps)
    try:
        source = source_of(tmp_path_factory.getbasetemp(), lines, content)
        accepted = len(taken(source))
    except TailboardError:
        return
    account = source.context.account
    assert accepted == account.accepted
    assert account.rows == account.accepted + account.rows_rejected + sum(account.skipped.values())
    filled = sum(bool(line.strip(b" \t\r")) for line in content.split(b"\n"))
    if case in ("nested", "k6"):
        assert account.rows == filled
    elif case == "kinds of lines":
        assert account.rows <= filled  # damage may put a line end into quotes
    elif case == "durations":
        assert account.rows == filled - 1
    elif case == "quoted":
        assert account.rows <= filled - 1
