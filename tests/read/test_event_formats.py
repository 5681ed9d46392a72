"""smallfile, YCSB raw and described files, held against plain loops over their lines."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError, UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import events_of, read
from ingest.read.described.description import description_of
from ingest.read.operations import Windows
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import events as oracle
from tests.commands import tailboard
from tests.effort import figure
from tests.mutations import mutated, mutations

RAW = Path(__file__).parent.parent / "data" / "raw"
SECOND = 1_000_000_000
EPOCH = 1_700_000_000_000_000_000


def taken(*paths: Path, **words: Any) -> list[tuple[str, str, int, int]]:
    """Return (op, kind, completion, latency) of all operations, sorted."""
    found = []
    for source in discover(list(paths), ReadOptions(**words)).sources:
        for chunk in events_of(source):
            labels = [(series.op, series.kind) for series in chunk.table]
            for code, end, latency in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
                found.append((*labels[code], end, latency))
    return sorted(found)


# smallfile --------------------------------------------------------------------------------------------------


def smallfile_line(op: str, start: float, duration: float) -> str:
    """Return a line as smallfile prints it."""
    return f"{op:>8s}, {start:9.6f}, {duration:9.6f}"


def smallfile_folder(folder: Path) -> dict[str, list[oracle.Event]]:
    """Write four threads on two hosts; return the operations by host."""
    generator = random.Random(3)
    found: dict[str, list[oracle.Event]] = {}
    for thread in range(4):
        host = ("h1.example.com", "h2")[thread % 2]
        begin = Decimal(f"1700000000.{thread}23456")
        lines, at = [], 0.0
        for number in range(300):
            op, duration = ("create", "ls-l-stat")[number % 3 == 0], round(generator.lognormvariate(-6, 1), 6)
            lines.append(smallfile_line(op, at, duration))
            end = int((begin + Decimal(f"{at:.6f}") + Decimal(f"{duration:.6f}")) * SECOND)
            found.setdefault(host, []).append((op, end, int(Decimal(f"{duration:.6f}") * SECOND)))
            at = round(at + duration * 0.6, 6)
        (folder / f"rsptimes_{thread:02d}_{host}_create_{begin}.csv").write_text("\n".join(lines) + "\n")
    return found


def test_smallfile_threads_are_read_with_their_own_starts(tmp_path: Path) -> None:
    truth = smallfile_folder(tmp_path)
    assert taken(tmp_path) == sorted((op, "service", end, latency) for found in truth.values() for op, end, latency in found)
    sources = discover([tmp_path], ReadOptions()).sources
    assert {(one.format, one.context.series.host, one.context.series.job) for one in sources} == {
        ("smallfile", host, job) for host, job in (("h1.example.com", "00"), ("h2", "01"), ("h1.example.com", "02"), ("h2", "03"))
    }
    answer = Files([tmp_path], jobs=1).answer(Question(step=SECOND, by=("host", "op")))
    table = percentiles(answer, Wanted(parse_percentiles("50"))).columns
    windows = {
        (host, op, start): values
        for host, found in truth.items()
        for (op, start), values in oracle.by_window(found, SECOND).items()
    }
    assert len(table["count"]) == len(windows)
    for row, key in enumerate(zip(table["host"].tolist(), table["op"].tolist(), table["start_ns"].tolist(), strict=True)):
        values = windows[key]
        assert (table["count"][row], table["min"][row], table["max"][row]) == (len(values), min(values), max(values))
        assert table["p50"][row] == oracle.midpoint(oracle.index_of(oracle.nearest_rank(values, "50")))


def test_smallfile_faults(tmp_path: Path) -> None:
    path = tmp_path / "rsptimes_00_h_read_1700000000.5.csv"
    good = smallfile_line("read", 0.5, 0.001)
    bad = [
        "  read,  0.500000",
        "  read,  0.500000, -0.001000",
        "  read,  x, 0.001000",
        "  re ad,  0.5, 0.1",
        "  read,  0.5, 100000.000001",
    ]
    path.write_text("\n".join([good, *bad, "", good]) + "\n   read,  0.5000")
    [source] = discover([path], ReadOptions()).sources
    assert sum(int(part.counts.sum()) for part in read(source)) == 2
    account = source.context.account
    assert (account.accepted, account.rows_rejected) == (2, 6)
    assert sorted((finding.line, finding.reason) for finding in account.findings) == [
        (2, "fewer columns than the rows of this log (3)"),
        (3, "not op, start, duration as smallfile writes them"),
        (4, "not op, start, duration as smallfile writes them"),
        (5, "not op, start, duration as smallfile writes them"),
        (6, "a duration of more than a day"),
        (9, "last line breaks off without a newline"),
    ]


# YCSB -------------------------------------------------------------------------------------------------------


def ycsb_truth(text: str) -> list[tuple[str, str, int, int]]:
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"([A-Za-z-]+),(\d+),(\d+)", line):
            op = match[1].lower()
            kind = "response" if op.startswith("intended-") else "service"
            found.append((op.removeprefix("intended-"), kind, int(match[2]) * 1_000_000, int(match[3]) * 1000))
    return sorted(found)


@pytest.mark.parametrize(("name", "summary"), [("raw.csv", "summary.txt"), ("stdout.txt", "stdout.txt")])
def test_ycsb_raw_as_ycsb_itself_sums_it_up(name: str, summary: str) -> None:
    path = RAW / "ycsb" / name
    assert taken(path) == ycsb_truth(path.read_text())
    files = Files([path], jobs=1)
    table = percentiles(files.answer(Question(step="all", by=("op", "kind"))), Wanted(parse_percentiles("100"))).columns
    told = (RAW / "ycsb" / summary).read_text()
    for row, (op, kind) in enumerate(zip(table["op"].tolist(), table["kind"].tolist(), strict=True)):
        word = ("Intended-" if kind == "response" else "") + op.upper()
        values = {
            key: re.search(rf"\[{word}\], {key}, ([\d.]+)", told)[1] for key in ("Total Operations", "Min", "Max", "Average")
        }
        assert table["count"][row] == int(values["Total Operations"])
        assert (table["min"][row], table["max"][row]) == (int(values["Min"]) * 1000, int(values["Max"]) * 1000)
        assert table["mean"][row] == pytest.approx(float(values["Average"]) * 1000)
    assert not files.account.rejected and files.account.rows == len(ycsb_truth(path.read_text()))


def test_ycsb_lines_that_are_damaged_are_counted(tmp_path: Path) -> None:
    head = "READ latency raw data: op, timestamp(ms), latency(us)\n"
    path = tmp_path / "raw.txt"
    path.write_text(head + "READ,1700000000000,5\nREAD,17000000\nREAD,1700000000000,-5\nREAD,x,5\nREAD,1700000000001,6\n")
    [source] = discover([path], ReadOptions()).sources
    assert sum(int(part.counts.sum()) for part in read(source)) == 2
    assert source.context.account.rows_rejected == 3


# Described files --------------------------------------------------------------------------------------------


def described(folder: Path, lines: str, text: str | bytes, name: str = "log.csv") -> dict[str, Any]:
    """Write a file and its description; return the options that read it."""
    (folder / "events.yml").write_text(lines)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return {"description": description_of(str(folder / "events.yml"))}


def rows_of(count: int = 200) -> list[tuple[int, int, str, str]]:
    generator = random.Random(11)
    return [
        (
            EPOCH + generator.randrange(10 * SECOND),
            generator.randrange(1, 10**8),
            generator.choice(["get", "PUT"]),
            f"h{number % 2}",
        )
        for number in range(count)
    ]


def text_of_ns(value: int, unit: str) -> str:
    places = {"ns": 0, "us": 3, "ms": 6, "s": 9}[unit]
    return f"{Decimal(value).scaleb(-places):f}"


@pytest.mark.parametrize(("time", "latency"), [("ns", "ns"), ("ms", "us"), ("s", "s"), ("us", "ms")])
@pytest.mark.parametrize("ndjson", [False, True], ids=["csv", "ndjson"])
def test_units_are_exact_to_the_nanosecond(tmp_path: Path, time: str, latency: str, ndjson: bool) -> None:
    rows = [(text_of_ns(end, time), text_of_ns(took, latency), op) for end, took, op, _ in rows_of()]
    if ndjson:
        text = "".join(f'{{"done": {end}, "x": [1], "took": {took}, "type": "{op}"}}\n' for end, took, op in rows)
    else:
        text = "took,done,note,type\n" + "".join(f'{took},{end},"a, b",{op}\n' for end, took, op in rows)
    told = described(
        tmp_path, f"time: done\nlatency: took\nunit: {{time: {time}, latency: {latency}}}\nlabels: {{op: type}}\n", text
    )
    assert taken(tmp_path, **told) == sorted((op.lower(), "service", end, took) for end, took, op, _ in rows_of())


@pytest.mark.parametrize("ndjson", [False, True], ids=["csv", "ndjson"])
@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        ("time: end_ns\nlatency: took_ns\n", ("end_ns", "took_ns")),
        ("start: begin_ns\nlatency: took_ns\n", ("begin_ns", "took_ns")),
        ("start: begin_ns\nend: end_ns\n", ("begin_ns", "end_ns")),
    ],
)
def test_any_two_of_start_end_and_latency_will_do(tmp_path: Path, lines: str, columns: tuple[str, str], ndjson: bool) -> None:
    values = {"end_ns": lambda row: row[0], "took_ns": lambda row: row[1], "begin_ns": lambda row: row[0] - row[1]}
    rows = [tuple(values[name](row) for name in columns) for row in rows_of()]
    if ndjson:
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    else:
        text = ",".join(columns) + "\n" + "".join(f"{one},{other}\n" for one, other in rows)
    told = described(tmp_path, lines + "kind: response\n", text)
    assert taken(tmp_path, **told) == sorted(("", "response", end, took) for end, took, _, _ in rows_of())


@pytest.mark.parametrize("zone", ["Z", "+02:00", ""])
@pytest.mark.parametrize("ndjson", [False, True], ids=["csv", "ndjson"])
def test_iso_times(tmp_path: Path, zone: str, ndjson: bool) -> None:
    shift = 7200 if zone.startswith("+") else 0
    rows = []
    for end, took, _, _ in rows_of(50):
        moment = datetime.fromtimestamp(end // SECOND + shift, UTC)
        rows.append((f"{moment:%Y-%m-%dT%H:%M:%S}.{end % SECOND:09d}{zone}", took))
    if ndjson:
        text = "".join(json.dumps({"at": at, "took_ns": took}) + "\n" for at, took in rows)
    else:
        text = "at;took_ns\n" + "".join(f"{at};{took}\n" for at, took in rows)
    lines = "time: at\nlatency: took_ns\nunit: {time: iso}\n" + ("" if ndjson else 'delimiter: ";"\n')
    told = described(tmp_path, lines, text)
    assert taken(tmp_path, **told) == sorted(("", "service", end, took) for end, took, _, _ in rows_of(50))


def test_columns_by_number_without_a_header_and_fixed_labels(tmp_path: Path) -> None:
    text = "".join(f"{end}\t{took}\t{host}\n" for end, took, _, host in rows_of())
    lines = 'time: 1\nlatency: 2\nunit: ns\nlabels: {host: 3, op: "=scan", tag: "=t"}\nheader: false\ndelimiter: "\\t"\n'
    told = described(tmp_path, lines, text, "log.tsv")
    counts: Counter[tuple[str, str, str]] = Counter()
    for source in discover([tmp_path], ReadOptions(**told)).sources:
        for chunk in events_of(source):
            for code in chunk.series.tolist():
                series = chunk.table[code]
                counts[series.host, series.op, series.tag] += 1
    assert counts == {(f"h{number}", "scan", "t"): 100 for number in range(2)}


@pytest.mark.parametrize("ndjson", [False, True], ids=["csv", "ndjson"])
def test_weights_count_as_often_as_they_say(tmp_path: Path, ndjson: bool) -> None:
    rows = [(end, took, 1 + number % 5) for number, (end, took, _, _) in enumerate(rows_of())]
    text = "".join(
        json.dumps({"t_ns": end, "l_ns": took, "n": n}) + "\n" if ndjson else f"{end},{took},{n}\n" for end, took, n in rows
    )
    told = described(tmp_path, "time: t_ns\nlatency: l_ns\nweight: n\n", text if ndjson else "t_ns,l_ns,n\n" + text)
    truth = [("", end, took) for end, took, n in rows for _ in range(n)]
    [source] = discover([tmp_path], ReadOptions(**told)).sources
    found = {}
    for part in read(source, Windows(SECOND)):
        for row in range(len(part)):
            exact = (int(part.exact.min_ns[row]), int(part.exact.max_ns[row]), int(part.exact.sum_ns[row]))
            found["", oracle.window_of(int(part.end_ns[row]), SECOND)] = (int(part.samples[row]), *exact)
    assert found == {key: (len(v), min(v), max(v), sum(v)) for key, v in oracle.by_window(truth, SECOND).items()}
    weights, completed = oracle.in_flight(truth, SECOND)
    for part in read(source, Windows(SECOND, in_flight=True)):
        for row in range(len(part)):
            key = ("", int(part.start_ns[row]))
            entries = slice(part.indptr[row], part.indptr[row + 1])
            assert dict(zip(part.bins[entries].tolist(), part.counts[entries].tolist(), strict=True)) == weights[key]
            assert part.completions[row] == completed[key]


def test_floats_and_long_decimals_are_rounded_to_the_nanosecond(tmp_path: Path) -> None:
    latencies = ["1e-05", "0.0012345678901234567", "7e-5", ".5", "3.", "0.000000001", "2.5E-3"]
    text = "t_s,l_s\n" + "".join(f"1700000000.5,{latency}\n" for latency in latencies)
    told = described(tmp_path, "time: t_s\nlatency: l_s\n", text)
    found = [latency for *_, latency in taken(tmp_path, **told)]
    assert found == sorted([10_000, 1_234_568, 70_000, 500_000_000, 3 * SECOND, 1, 2_500_000])
    lines = "".join(f'{{"t_s": 1700000000.5, "l_s": {latency}}}\n' for latency in ("1e-05", "0.0012345678901234567", "0.5", "3"))
    told = described(tmp_path, "time: t_s\nlatency: l_s\n", lines)
    assert [latency for *_, latency in taken(tmp_path, **told)] == sorted([10_000, 1_234_568, 500_000_000, 3 * SECOND])


FAULTS = [
    ("x,5,get", "a time, latency or weight is no number, or is missing"),
    (",5,get", "a time, latency or weight is no number, or is missing"),
    (f"{EPOCH},nan,get", "a time, latency or weight is no number, or is missing"),
    (f"{EPOCH},-5,get", "it ended before it began"),
    (f"{EPOCH},1000000000000000000,get", "a latency of more than a day: damage, or another unit than was given"),
    (f"{EPOCH},5", "fewer columns than the rows of this log (3)"),
    (f"{EPOCH};5;get", "fewer columns than the rows of this log (3)"),
    ("99999999999999999999,5,get", "a time, latency or weight is no number, or is missing"),
    (f"{EPOCH // 10**6},5,get", "a time near 1970 in a log of real times: a line that was cut, or a clock that was not set"),
]


@pytest.mark.parametrize(("line", "reason"), FAULTS)
def test_faults_of_delimited_files(tmp_path: Path, line: str, reason: str) -> None:
    text = "t_ns,l_ns,op\n" + f"{EPOCH},5,get\n" * 10 + line + "\n" + f"{EPOCH},6,get\n" * 10
    told = described(tmp_path, "time: t_ns\nlatency: l_ns\nlabels: {op: op}\n", text)
    [source] = discover([tmp_path], ReadOptions(**told)).sources
    assert sum(int(part.counts.sum()) for part in read(source)) == 20
    assert source.context.account.rejected == {reason: 1}
    assert [finding.line for finding in source.context.account.findings] == [12]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"t_ns": 5}', "a time, latency or weight is no number, or is missing"),
        ('{"t_ns": null, "l_ns": 5}', "a time, latency or weight is no number, or is missing"),
        ('{"t_ns": "x", "l_ns": 5}', "a time, latency or weight is no number, or is missing"),
        ('{"t_ns": true, "l_ns": 5}', "a time, latency or weight is no number, or is missing"),
        ('{"t_ns": 5, "l_ns": 99999999999999999999999}', "a time, latency or weight is no number, or is missing"),
        ('{"t_ns": 5, "l_ns": -5}', "it ended before it began"),
        (
            '{"t_ns": 5, "l_ns": 5}',
            "a time near 1970 in a log of real times: a line that was cut, or a clock that was not set",
        ),
        ('{"t_ns": 5, "l_ns":', "no JSON object"),
        ("[5, 5]", "no JSON object"),
        ("garbage", "no JSON object"),
        ('{"t_ns": 5\0', "NUL bytes: a hole left by a crash or a partial copy"),
    ],
)
def test_faults_of_ndjson(tmp_path: Path, line: str, reason: str) -> None:
    good = f'{{"t_ns": {EPOCH}, "l_ns": 5, "op": "get"}}\n'
    told = described(tmp_path, "time: t_ns\nlatency: l_ns\nlabels: {op: op}\n", good * 10 + line + "\n" + good * 10)
    [source] = discover([tmp_path], ReadOptions(**told)).sources
    assert sum(int(part.counts.sum()) for part in read(source)) == 20
    assert source.context.account.rejected == {reason: 1}
    assert [finding.line for finding in source.context.account.findings] == [11]


def test_numbers_of_all_kinds_beside_a_fault_are_read_as_without_it(tmp_path: Path) -> None:
    """A block with a fault goes line by line in Python: the same numbers must come out."""
    numbers = ["5", "7.25", '"8"', "1e3", "0.12345678901234567", "1700000000000000.000123"]
    good = "".join(
        f'{{"t_us": {1_700_000_000_000_000 + place}, "l_us": {number}}}\n' for place, number in enumerate(numbers[:-1])
    )
    good += f'{{"t_us": {numbers[-1]}, "l_us": 1}}\n'
    told = described(tmp_path, "time: t_us\nlatency: l_us\n", good + "garbage\n" + good)
    faulty = taken(tmp_path, **told)
    told = described(tmp_path, "time: t_us\nlatency: l_us\n", good + good)
    assert faulty == taken(tmp_path, **told)
    assert [took for *_, took in faulty[::2]] == [1000, 5000, 7250, 8000, 1_000_000, 123]


def test_a_whole_last_object_without_newline_is_taken_half_a_one_rejected(tmp_path: Path) -> None:
    good = f'{{"t_ns": {EPOCH}, "l_ns": 5}}'
    for last, accepted in ((good, 3), (good[:-1], 2)):
        told = described(tmp_path, "time: t_ns\nlatency: l_ns\n", f"{good}\n{good}\n{last}")
        [source] = discover([tmp_path], ReadOptions(**told)).sources
        assert sum(int(part.counts.sum()) for part in read(source)) == accepted
        assert source.context.account.rows == 3


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("time: t\n", "give the columns of two of these"),
        ("latency: l\n", "give the columns of two of these"),
        ("time: t\nend: e\nlatency: l\n", "time and end are the same"),
        ("start: s\nend: e\nlatency: l\n", "start, end and latency: give two of them"),
        ("time: t\nlatency: l\nunit: min\n", "unit 'min': there are ns, us, ms, s"),
        ("time: t\nlatency: l\nunit: {latency: iso}\n", "unit 'iso'"),
        ("time: t\nlatency: l\nunit: {start: ms}\n", "unit of start: there is no such line"),
        ("time: t\nlatency: l\nlabels: {colour: c}\n", "no label 'colour': there are host"),
        ("time: t\nlatency: l\nlabel: {op: c}\n", "no line 'label': there are time"),
        ("time: t\nlatency: l\ndelimiter: ab\n", "delimiter is one character"),
        ("time: [1]\nlatency: l\n", "time takes the name or number of a column"),
        ("- 1\n", "expected lines such as"),
        ("time: [\n", "not YAML"),
        ("header: 3\ntime: t\nlatency: l\n", "header is true or false"),
    ],
)
def test_a_description_that_says_too_little_is_refused(tmp_path: Path, lines: str, reason: str) -> None:
    (tmp_path / "events.yml").write_text(lines)
    with pytest.raises(UsageError, match=f"events.yml: .*{re.escape(reason)}"):
        description_of(str(tmp_path / "events.yml"))


@pytest.mark.parametrize(
    ("lines", "text", "reason"),
    [
        ("time: t\nlatency: l_ns\n", "t,l_ns\n1,2\n", "the unit of column 't' is given neither in .*events.yml"),
        ("time: u_ns\nlatency: l_ns\n", "t_ns,l_ns\n1,2\n", "no column 'u_ns' for end: there are t_ns, l_ns"),
        ("time: t_ns\nlatency: 3\nunit: ns\n", "t_ns,l_ns\n1,2\n", "no column '3' for latency"),
        ("time: t_ns\nlatency: l_ns\n", "t_ns,t_ns,l_ns\n1,1,2\n", "two columns are called 't_ns'"),
        ("time: t_ns\nlatency: l_ns\n", "t_ns,l_ns\n", "holds no operation that can be read"),
        (
            "time: t_s\nlatency: l_ms\ndelimiter: ';'\n",
            "t_s;l_ms\n1,5;2,5\n",
            "be read: a time, .*; column 'l_ms' has decimal commas: write p",
        ),
        ("time: t_ns\nlatency: l_ns\nlabels: {op: t_ns}\n", "t_ns,l_ns\n1,2\n", "column 't_ns' is wanted twice"),
    ],
)
def test_files_that_lack_what_is_described_are_refused(tmp_path: Path, lines: str, text: str, reason: str) -> None:
    told = described(tmp_path, lines, text)
    with pytest.raises(InputError, match=reason):
        discover([tmp_path / "log.csv"], ReadOptions(**told))


def test_relative_times_and_hosts_of_folders(tmp_path: Path) -> None:
    for host in ("n1", "n2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / "log.csv").write_text("t_ms,l_us\n" + "".join(f"{number * 10},{number}\n" for number in range(1, 301)))
    (tmp_path / "events.yml").write_text("time: t_ms\nlatency: l_us\n")
    files = Files([tmp_path], ReadOptions(description=description_of(str(tmp_path / "events.yml"))), jobs=1)
    table = percentiles(files.answer(Question(step=SECOND, by=("host",))), Wanted([])).columns
    assert table["host"].tolist() == ["n1", "n2"] * 3 and table["count"].tolist() == [100] * 6
    assert all(source.context.zero.epoch_ns is None for source in files.found.sources)


def test_a_real_time_among_relative_ones_is_another_clock(tmp_path: Path) -> None:
    text = "t_ns,l_ns\n" + f"{EPOCH},5\n" + "".join(f"{number},5\n" for number in range(1, 20))
    told = described(tmp_path, "time: t_ns\nlatency: l_ns\n", text)
    [source] = discover([tmp_path], ReadOptions(**told)).sources
    assert source.context.zero.epoch_ns is None
    assert sum(int(part.counts.sum()) for part in read(source)) == 19
    assert source.context.account.rejected == {"a real time in a log of times since its start: another clock": 1}


def test_the_command_takes_a_description(tmp_path: Path) -> None:
    described(tmp_path, "time: t_ns\nlatency: l_ns\nlabels: {op: type}\n", "t_ns,l_ns,type\n" + f"{EPOCH},5000,get\n" * 200)
    words = ["percentiles", str(tmp_path), "--input-format", str(tmp_path / "events.yml"), "--step", "100ms", "--by", "op"]
    done = tailboard(*words, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith(  # a rate of the 5 us in which all of them ran
        "2023-11-14T22:13:19.900Z,2023-11-14T22:13:20.000Z,get,200,40000000,5000,5000,5000,true"
    )
    words[3] = str(tmp_path / "no.yml")
    done = tailboard(*words)
    assert done.returncode == 3 and "no.yml: there is no such file" in done.stderr


# Random damage ----------------------------------------------------------------------------------------------

CSV = (
    "t_ms,l_us,op\n" + "".join(f"{1_700_000_000_000 + n},{n + 0.25},{'get' if n % 2 else 'put'}\n" for n in range(30))
).encode()
JSON = "".join(json.dumps({"t_ms": 1_700_000_000_000 + n, "l_us": n + 0.25, "op": "get"}) + "\n" for n in range(30)).encode()
SMALL = "".join(smallfile_line("create", n / 10, 0.001 * n) + "\n" for n in range(30)).encode()
YCSB = b"READ latency raw data: op, timestamp(ms), latency(us)\n" + b"".join(
    b"READ,%d,%d\n" % (17 * 10**11 + n, n) for n in range(30)
)
CASES = {"csv": CSV, "ndjson": JSON, "smallfile": SMALL, "ycsb": YCSB}
changes = mutations(["flip", "delete", "insert", "truncate", "nul"], 4000, 60, st.binary(max_size=6))


@pytest.mark.slow
@example(case="csv", steps=[("insert", 0, 0, b"\r")])
@example(case="ndjson", steps=[("insert", 147, 0, b"\x80")])
@settings(max_examples=figure(150, 250, 1000))
@given(st.sampled_from(sorted(CASES)), changes)
def test_mutated_files_never_crash_and_every_line_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, case: str, steps: list[tuple[str, int, int, bytes]]
) -> None:
    if not hasattr(described, "folder"):
        described.folder = tmp_path_factory.mktemp("mutated")
    content = mutated(CASES[case], steps)
    told: dict[str, Any] = {"input_format": {"smallfile": "smallfile", "ycsb": "ycsb-raw"}.get(case, "")}
    path = described.folder / "log.txt"
    if case in ("csv", "ndjson"):
        (described.folder / "events.yml").write_text("time: t_ms\nlatency: l_us\nlabels: {op: op}\n")
        told = {"description": description_of(str(described.folder / "events.yml"))}
    path.write_bytes(content)
    try:
        files = Files([path], ReadOptions(**told), jobs=1)
        files.answer(Question(step="all"))
    except TailboardError:
        return
    account = files.account
    assert account.rows == account.accepted + account.rows_rejected == account.accepted + sum(account.rejected.values())
    filled = sum(bool(line.strip(b" \t\r")) for line in content.split(b"\n")) - (case == "csv")
    assert account.rows <= filled if case == "ycsb" else account.rows == filled


def test_midpoints_are_within_their_error() -> None:
    generator = random.Random(5)
    for half, bound in ((64, Fraction(1, 128)), (1024, Fraction(1, 2048))):
        for _ in range(2000):
            value = math.floor(math.exp(generator.uniform(0, math.log(86_400 * SECOND))))
            assert abs(oracle.midpoint(oracle.index_of(value, half), half) - value) <= bound * value
