"""Operation logs with a schedule: service, response and wait time of each operation, the stall of the article, bad lines."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError, UsageError
from ingest.core.labels import Series
from ingest.core.quantiles import parse_percentiles
from ingest.query.compare import gap
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.story.story import story
from ingest.read import operation_log, read
from ingest.read import text as text_blocks
from ingest.read.context import Context
from ingest.read.operation_log import due_at
from ingest.read.operations import SeriesTable
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import hdr
from tests.commands import tailboard
from tests.effort import figure
from tests.store.grounds import loaded

SECOND, MS, US = 10**9, 10**6, 10**3
EXAMPLES = figure(40, 100, 500)
real_of = operation_log.Blocks.of
START = 1_700_000_000 * SECOND
SIMULATE = Path(__file__).parents[2] / "examples" / "coordinated-omission" / "simulate.py"


def written(path: Path, rows: list[tuple[int, int, str]], head: str = "start_us,end_us,op") -> Path:
    path.write_text(head + "\n" + "".join(f"{start // US},{end // US},{op}\n" for start, end, op in rows))
    return path


def brute(rows: list[tuple[int, int, str]], rate: Fraction | None) -> dict[tuple[str, str, int], Counter[int]]:
    """Return the bins by (op, kind, second) of operations: by the definitions alone."""
    found: dict[tuple[str, str, int], Counter[int]] = {}
    first = min(start for start, _, _ in rows)
    for number, (start, end, op) in enumerate(sorted(rows, key=lambda row: row[0])):
        second = -(-end // SECOND) - 1
        values = {"service": end - start}
        if rate:
            due = min(start, first + int(number * SECOND / rate))
            values |= {"response": end - due, "wait": start - due}
        for kind, value in values.items():
            found.setdefault((op, kind, second), Counter())[hdr.index_of(value, 3)] += 1
    return found


def of_reader(path: Path, **options: Any) -> dict[tuple[str, str, int], Counter[int]]:
    found: dict[tuple[str, str, int], Counter[int]] = {}
    [source] = discover([path], ReadOptions(**options)).sources
    for chunk in read(source):
        for row in range(len(chunk)):
            entries = slice(chunk.indptr[row], chunk.indptr[row + 1])
            series = chunk.table[chunk.series[row]]
            bins = Counter(dict(zip(chunk.bins[entries].tolist(), chunk.counts[entries].tolist(), strict=True)))
            found[series.op, series.kind, int(chunk.start_ns[row]) // SECOND] = bins
    return found


@pytest.mark.cases(4)
@pytest.mark.slow
@pytest.mark.parametrize("rate", ["", "1000", "333.3", "17000"])
def test_each_operation_is_timed_from_when_it_was_due(tmp_path: Path, rate: str) -> None:
    noise = random.Random(5)
    rows = []
    for number in range(3000):
        start = START + number * MS + noise.randrange(4 * MS)
        rows.append((start // US * US, (start + noise.randrange(40 * MS)) // US * US, noise.choice(["read", "write"])))
    noise.shuffle(rows)
    path = written(tmp_path / "x.csv", rows)
    assert of_reader(path, rate=rate) == brute(rows, Fraction(rate) if rate else None)


def test_a_column_with_the_schedule_is_taken(taken: Any, log: Any) -> None:
    text = "start_ms,latency_us,Due_ms,op\n1700000000500,1100,1700000000000,READ\n1700000001500,900,1700000001500,read\n"
    read_ = taken(log(text, "x.csv"), options=ReadOptions(intended_column="due_ms"))
    exact = {(row.series.kind, -(-row.end_ns // SECOND) - 1_700_000_000): row.exact for row in read_.rows}
    assert exact["service", 1] == (1_100_000, 1_100_000, 1_100_000) and exact["service", 2][1] == 900_000
    assert exact["response", 1][1] == 501_100_000 and exact["wait", 1][1] == 500 * MS and exact["wait", 2][1] == 0
    assert {row.series.op for row in read_.rows} == {"read"} and read_.account.accepted == read_.account.samples == 2


def test_minimum_maximum_and_sum_are_exact(tmp_path: Path, taken: Any) -> None:
    rows = [(START + n * 100 * MS, START + n * 100 * MS + (n + 1) * 1_234 * US, "x") for n in range(9)]
    [row] = [row for row in taken(written(tmp_path / "x.csv", rows)).rows if row.series.kind == "service"]
    assert row.exact == (1_234_000, 9 * 1_234_000, sum(range(1, 10)) * 1_234_000)


@given(
    start=st.integers(0, 2**62),
    count=st.integers(0, 200),
    rate=st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=10**9),
)
def test_the_schedule_is_exact(start: int, count: int, rate: Fraction) -> None:
    assert (
        due_at(start, count, rate).tolist() == [start + int(n * SECOND / rate) for n in range(count)]
        or start + count * SECOND / rate > 2**63
    )


# The stall: 1,000 a second, 10 s pause -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stall")
    subprocess.run([sys.executable, SIMULATE, folder], check=True)
    return folder


def asked(path: Path, step: Any, options: ReadOptions, kind: str, levels: str) -> dict[str, Any]:
    answer = Files([path], options, jobs=1).answer(Question(step=step, where={"kind": kind}))
    return dict(percentiles(answer, Wanted(parse_percentiles(levels))).columns)


def test_service_time_stays_flat_and_response_time_shows_the_ramp(stall: Path) -> None:
    options = ReadOptions(rate="1000")
    service = asked(stall / "fixed.csv", SECOND, options, "service", "50,99")
    response = asked(stall / "fixed.csv", SECOND, options, "response", "50,99")
    assert len(service["count"]) > 40
    flat = [value for value, count in zip(service["p99"], service["count"], strict=True) if count >= 100]
    assert len(flat) >= 40 and all(599_000 < value < 601_000 for value in flat)
    second = [int(start) // SECOND - 1_700_000_000 for start in response["start_ns"]]
    median = dict(zip(second, response["p50"], strict=True))
    # The pause ends at 30 s, then 1,667 requests a second are sent where 1,000 fall due: 25 s until the queue is empty at 55 s - 10 s.
    ramp = [median[at] for at in range(30, 45)]
    assert all(later < earlier for earlier, later in zip(ramp, ramp[1:], strict=False)) and ramp[0] > 9 * SECOND
    assert all(599_000 < median[at] < 601_000 for at in (*range(20), *range(46, 60)))
    overall = asked(stall / "fixed.csv", "all", options, "*", "50,99,99.9")
    p99 = dict(zip(overall["kind"], overall["p99"], strict=True))
    assert p99["service"] < MS and p99["response"] > 9.7 * SECOND and p99["wait"] > 9.7 * SECOND


def test_uncorrected_and_corrected_histograms_are_as_predicted(stall: Path) -> None:
    """Closed loop: one sample of 10 s among 50,000. Corrected with 1 ms: 9,999 - 1 more, evenly between 0 and 10 s."""
    table = asked(stall / "throughput.csv", "all", ReadOptions(expected_interval_ns=MS), "*", "50,99,99.9,100")
    row = {kind: {name: values[at] for name, values in table.items()} for at, kind in enumerate(table["kind"])}
    plain, fixed = row["service"], row["service.corrected"]
    assert plain["count"] == 50_001 and plain["p99.9"] < MS and plain["p100"] == 10 * SECOND
    layout_top = hdr.lower_edge(hdr.index_of(10 * SECOND, 3) + 1, 3) - 1
    assert fixed["count"] == 50_001 + layout_top // MS - 1
    share = 10_000 / 60_000  # of all requests that were due, a sixth fell into the pause
    wanted = 10 * SECOND * (1 - 0.01 / share)
    assert abs(fixed["p99"] - wanted) < 0.005 * wanted
    default = Files([stall / "throughput.csv"], ReadOptions(expected_interval_ns=MS), jobs=1).answer(Question(step="all"))
    assert default.kind == "service" and default.samples == 50_001  # corrected data only when asked for


def test_falling_behind_the_schedule_is_said_with_every_answer(stall: Path) -> None:
    answer = Files([stall / "throughput.csv"], ReadOptions(rate="1000"), jobs=1).answer(
        Question(step="all", where={"kind": "service"})
    )
    assert any("achieved 833.356/s (83.3 %)" in text for text in answer.warnings)
    assert any("response p99 of read is 10 s, service p99 600 us" in text for text in answer.warnings)
    answer = Files([stall / "fixed.csv"], ReadOptions(rate="1000"), jobs=1).answer(Question(step="all"))
    waited = "judged by the time that requests waited: response p99 of read is 9."
    assert answer.kind == "response" and any(f"coordinated omission: {waited}" in text for text in answer.warnings)
    assert any("target 1,000/s, achieved 1,000.01/s (100.0 %), largest lag 10.0s" in text for text in answer.warnings)
    answer = Files([stall / "fixed.csv"], jobs=1).answer(Question(step="all"))
    assert answer.kind == "service" and any("service time only" in text for text in answer.warnings)


def test_a_store_says_it_too(stall: Path, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    done = tailboard("load", stall / "throughput.csv", "--rate", "1000", "--run", "r", "--store", store)
    assert done.returncode == 0, done.stderr
    words = ["--step", "all", "--by", "target_rate", "--where", "kind=service", "--format", "csv"]
    done = tailboard("percentiles", store, *words)
    assert done.returncode == 0, done.stderr
    assert "coordinated omission: judged by the time that requests waited" in done.stderr and ",1000,50001," in done.stdout


def test_the_gap_between_service_and_response_is_what_waited(stall: Path) -> None:
    question = Question(step=SECOND, by=("kind", "op"))
    answer = Files([stall / "fixed.csv"], ReadOptions(rate="1000"), jobs=1).answer(question)
    table = gap(answer, parse_percentiles("50")[0]).columns
    second = [int(start) // SECOND - 1_700_000_000 for start in table["start_ns"]]
    found = dict(zip(second, zip(table["service"], table["response"], table["gap"], table["wait"], strict=True), strict=True))
    assert list(table) == ["start_ns", "end_ns", "op", "service", "response", "wait", "gap"] and set(table["op"]) == {"read"}
    assert found[10][2] == 0 and found[35][2] == found[35][1] - found[35][0] > 4 * SECOND
    assert abs(found[35][2] - found[35][3]) < 0.002 * found[35][3]
    with pytest.raises(InputError, match="no response time here"):
        gap(Files([stall / "fixed.csv"], jobs=1).answer(question), parse_percentiles("50")[0])


# Bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "options", "reason"),
    [
        ("start,end,op", {}, "the unit of column start is not in its name: give --recorded-unit"),
        ("start_us,op", {"input_format": "operations"}, "no operation log: its first line names no start, or no end or latency"),
        ("start_us,start_ms,end_us", {}, "two columns for one thing: start_us and start_ms"),
        ("start_us,end_us,op", {"intended_column": "due"}, "no column 'due': there are start_us, end_us, op"),
    ],
)
def test_unreadable_columns_are_refused(log: Any, taken: Any, head: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        taken(log(head + "\n1,2,3\n", "x.csv"), options=ReadOptions(**options))


def test_bad_lines_are_counted_with_their_reason(log: Any, taken: Any) -> None:
    text = "start_us,end_us,op\n1,2,a\n1,x,a\n5,2,a\n1,2\n\n99999999999999999999,1,a\n9999999999999999999,9999999999999999999,a\n3,4.5,b\n"
    read_ = taken(log(text, "x.csv"))
    assert (read_.account.rows, read_.account.accepted) == (7, 2)
    assert read_.account.rejected == {
        "a time is no number": 2,
        "it ended before it began": 1,
        "not 3 columns as the first line names": 1,
        "a time is out of range": 1,
    }


NOT_REAL = "a time near 1970 in a log of real times: a line that was cut, or a clock that was not set"
NOT_RELATIVE = "a real time in a log of times since its start: another clock"


@pytest.mark.parametrize("place", [0, 7, 19])
@pytest.mark.parametrize(("clock", "other", "reason"), [(START, 0, NOT_REAL), (0, START, NOT_RELATIVE)])
def test_a_line_of_another_clock_moves_no_other(tmp_path: Path, place: int, clock: int, other: int, reason: str) -> None:
    rows = [(clock + number * SECOND, clock + number * SECOND + 900 * US, "read") for number in range(20)]
    whole = of_reader(written(tmp_path / "whole.csv", [row for number, row in enumerate(rows) if number != place]))
    rows[place] = (other + 2 * US, other + 5 * US, "read")
    path = written(tmp_path / "x.csv", rows)
    assert of_reader(path) == whole
    [source] = discover([path], ReadOptions()).sources
    list(read(source))
    assert source.context.account.rejected == {reason: 1}
    assert str(source.context.account.findings[0]).startswith(f"{path}:{place + 2}: ")


def test_a_last_line_that_breaks_off_is_counted_and_not_taken(log: Any, taken: Any) -> None:
    read_ = taken(log("start_us,op,latency_us\n1000,a,77\n2000,a,7", "x.csv"))
    assert (read_.account.accepted, read_.account.rejected) == (1, {"last line breaks off without a newline": 1})


@settings(max_examples=figure(30, 60))
@given(st.data())
def test_mutated_logs_give_a_sentence_and_every_line_is_counted(tmp_path_factory: Any, data: Any) -> None:
    text = bytearray(
        b"start_us,end_us,op\n" + b"".join(b"%d,%d,read\n" % (1700000000000000 + n, 1700000000000900 + n) for n in range(12))
    )
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 5))] = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"-", b".5", b",", b'"', b"\n", b"9" * 30]))
        )
    path = tmp_path_factory.mktemp("ops") / "x.csv"
    path.write_bytes(bytes(text))
    try:
        [source] = discover([path], ReadOptions(input_format="operations", rate="1000")).sources
        rows = sum(int(chunk.counts.sum()) for chunk in read(source) if chunk.table[0].kind == "service")
    except TailboardError:
        return
    assert rows == source.context.account.accepted == source.context.account.samples
    assert source.context.account.rows == rows + source.context.account.rows_rejected


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.data())
def test_blocks_at_once_are_what_their_lines_are(tmp_path_factory: Any, data: Any) -> None:
    """The quick way and the other give the same rows, in the same order, and the same account."""
    pytest.importorskip("pyarrow")
    head = data.draw(
        st.sampled_from(["start_us,end_us,op", "op,tag,start_ms,latency_us", "start_ns,end_ns", "start_us,op,due_us,end_us"])
    )
    names = head.split(",")
    chance = random.Random(data.draw(st.integers(0, 1000)))
    points = data.draw(st.sampled_from([("",), ("", ".5", ".0625"), (".123456789", ".999999999999")]))
    lines = []
    for number in range(60):
        at = START + number * SECOND // 7 + chance.randrange(10**6)
        cells = {
            "op": chance.choice(["read", " Write ", "0y", ""]),
            "tag": chance.choice(["A", "b "]),
            "latency_us": str(chance.randrange(5000)) + chance.choice(points),
        }
        for name, unit in (("_us", US), ("_ms", MS), ("_ns", 1)):
            cells |= {
                f"start{name}": str(at // unit) + chance.choice(points),
                f"end{name}": str(at // unit + chance.randrange(9000)) + chance.choice(points),
                f"due{name}": str(at // unit - 3),
            }
        lines.append(",".join(cells[name] for name in names) + "\n")
    text = bytearray((head + "\n" + "".join(lines)).encode())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        odd = [b"-", b".5", b",", b'"', b"\n", b"\r\n", b"9" * 30, b"0x1", b" ", b"\0", b"\x0b", "é".encode(), b"+", b"7"]
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from(odd))
    path = tmp_path_factory.mktemp("ops") / "x.csv"
    path.write_bytes(bytes(text))
    options = ReadOptions(input_format="operations", recorded_unit_ns=1, intended_column="due_us" if "due_us" in names else "")

    def told() -> Any:
        try:
            [source] = discover([path], options).sources
            rows = [
                (part.table, *(column.tolist() for column in (part.series, part.start_ns, part.indptr, part.bins, part.counts)))
                for part in read(source)
            ]
        except TailboardError as error:
            return str(error)
        return rows, source.context.account.as_dict()

    with pytest.MonkeyPatch.context() as patched:
        for size in (1 << 20, 256):
            patched.setattr(text_blocks, "BLOCK", size)
            patched.setattr(operation_log.Blocks, "of", real_of)
            quick = told()
            patched.setattr(operation_log.Blocks, "of", lambda self, data: None)
            assert told() == quick


def test_a_log_without_a_fault_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(operation_log, "take", None)
    path = written(tmp_path / "x.csv", [(START + number, START + 2 * number, "read") for number in range(0, 9000, 1000)])
    monkeypatch.setattr(operation_log, "first_start_ns", lambda path, context: START)
    context = Context()
    assert sum(int(part.counts.sum()) for part in operation_log.read(path, context)) == 9 == context.account.accepted


def test_series_of_many_labels_of_many_values_are_told_apart() -> None:
    """Nine labels of 256 values: their combinations, numbered as one product, are more than 64 bits count."""
    values = [f"v{number}" for number in range(255)]
    rows = [[values[(3 * row + label) % 255] for label in range(9)] for row in range(300)]
    rows[1] = [*values[1:2], *rows[0][1:]]  # unlike the first in its first label alone
    places = np.array([[values.index(value) for value in row] for row in rows], np.int32)
    columns = {f"l{label}": pa.DictionaryArray.from_arrays(places[:, label], pa.array(values)) for label in range(9)}
    table = SeriesTable(lambda labels: Series(tag="|".join(labels.values())))
    codes = table.codes(columns, len(rows))
    assert [table.table[code].tag for code in codes.tolist()] == ["|".join(row) for row in rows]


UNITS = st.sampled_from([1, US, MS, SECOND])


@given(st.from_regex(r"-?[0-9]{1,19}(\.[0-9]{1,12})?", fullmatch=True), UNITS)
def test_a_decimal_time_is_rounded_down_exactly(text: str, unit_ns: int) -> None:
    assert operation_log._ns(text, unit_ns) == Fraction(text) * unit_ns // 1


@given(st.lists(st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", fullmatch=True), min_size=1), UNITS)
def test_a_column_of_decimals_is_rounded_down_exactly(texts: list[str], unit_ns: int) -> None:
    """Or left to be read line by line, where it has more places than are taken at once, or times out of range."""
    pa = pytest.importorskip("pyarrow")
    found = operation_log._all_ns(pa.chunked_array([pa.array(texts)]), unit_ns)
    wanted = [int(Fraction(text) * unit_ns // 1) for text in texts]
    if found is None:
        most = len(str(unit_ns)) - 1 + 9
        assert any(
            abs(time) >= operation_log.MOST_NS or len(text.partition(".")[2]) > most
            for time, text in zip(wanted, texts, strict=True)
        )
    else:
        assert found.tolist() == wanted


# ---- The first and the last second are covered in part.


def quiet(folder: Path, seed: int, first: Callable[[int, int], str], form: str, head: str = "") -> tuple[Path, int, int]:
    """Write two clients' operations of about 150 s that begin and end within a second; return when in ns the first began and the last ended."""
    noise = np.random.default_rng(seed)
    begin, lasts = 1_790_000_000 + noise.uniform(0, 1), noise.uniform(100, 160)
    starts = (np.sort(noise.uniform(begin, begin + lasts, int(lasts * 300))) * 1e6).astype(np.int64)
    took = (5000 * np.exp(0.5 * noise.standard_normal(len(starts)))).astype(np.int64)
    client = noise.integers(0, 2, len(starts))
    for own in (0, 1):
        path = folder / f"client{own}" / form
        path.parent.mkdir(parents=True)
        rows = zip(starts[client == own].tolist(), took[client == own].tolist(), strict=True)
        path.write_text("\n".join(([head] if head else []) + [first(*row) for row in rows]) + "\n")
    return folder, int(starts.min()) * 1000, int((starts + took).max()) * 1000


LOGGED = {
    "operations": (lambda start, took: f"{start},{start + took},read", "ops.csv", "start_us,end_us,op"),
    "pgbench": (lambda start, took: f"0 1 {took} 0 {(start + took) // 10**6} {(start + took) % 10**6}", "pgbench_log.1", ""),
}


@pytest.mark.parametrize("form", LOGGED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_run_of_operations_lasts_from_the_first_to_the_last(tmp_path: Path, form: str, seed: int) -> None:
    folder, begin, end = quiet(tmp_path / "r", seed, *LOGGED[form])
    files = Files([folder], jobs=1)
    answer = files.answer(Question(step=SECOND))
    assert list(answer.covered.values()) == [(begin, end)]
    rates = percentiles(answer, Wanted(parse_percentiles("50"))).columns["rate"]
    assert rates[0] > 0.5 * np.median(rates) and rates[-1] > 0.5 * np.median(rates)
    assert [finding.text for finding in story(files, Question()).findings] == []
    loaded(url := f"sqlite:{tmp_path / 'store.db'}", [folder], jobs=1)
    with open_store(url) as store:
        stored = store.answer(Question(step=SECOND))
        assert list(stored.covered.values()) == [(begin, end)]
    with pytest.raises(UsageError, match=r"finer than the rows \(1s\): tailboard adds such operations up by the second.*--force"):
        files.answer(Question(step=SECOND // 10))
