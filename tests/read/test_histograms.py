"""Histograms of other tools: counts equal those that the tools write beside them, whatever comes twice, late, or after a reset."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as tailboard
from ingest.core.errors import TailboardError
from ingest.core.layout import Edges, Exponential
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of, presets
from ingest.read.formats import reader_of
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.mutations import CHANGES, mutated, mutations
from tests.oracles import hdr

DATA = Path(__file__).parents[1] / "data" / "histograms"
MS = 1_000_000
BY = ("host", "op", "tag")


def rows(path: Path, where: dict[str, str] | None = None, **reading) -> tuple[list[tuple], object]:
    """Rows of whole intervals as they were recorded: labels, start, end, samples, {highest ns of a bin: count}."""
    files = Files([path], ReadOptions(run="r", **reading), jobs=1)
    [source] = files.found.sources
    found = []
    for part in reader_of(source.format).rows(path, source.context):
        for at in range(len(part)):
            inside = slice(part.indptr[at], part.indptr[at + 1])
            bins = dict(zip(part.layout.values[part.bins[inside]].tolist(), part.counts[inside].tolist(), strict=True))
            series = part.table[part.series[at]]
            found.append((series, int(part.start_ns[at]), int(part.end_ns[at]), bins, part.layout))
    return found, source.context.account


def samples_of(path: Path) -> tuple[int, int]:
    """Return how many samples of a file the account counts, and how many its rows hold."""
    found, account = rows(path)
    return account.samples, sum(sum(bins.values()) for *_, bins, _ in found)


def points(path: Path, name: str) -> list[dict]:
    """All data points of a metric, with its unit."""
    found = []
    for line in path.read_text().splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    if metric["name"] == name:
                        body = metric.get("exponentialHistogram") or metric["histogram"]
                        found += body["dataPoints"]
    return found


@pytest.mark.parametrize("file", ["otlp_delta.jsonl", "otlp_delta_int_enum.jsonl"])
@pytest.mark.parametrize("name", ["exp.latency", "exx.latency"])
def test_otlp_deltas_hold_the_counts_of_the_sdk(file: str, name: str) -> None:
    found, account = rows(DATA / file)
    mine = sorted((start, end, sum(bins.values())) for series, start, end, bins, _ in found if series.tag == name)
    told = points(DATA / file, name)
    assert mine == sorted((int(at["startTimeUnixNano"]), int(at["timeUnixNano"]), int(at["count"])) for at in told)
    assert [count for *_, count in mine] == [200, 201, 200]
    assert not account.rejected and account.samples == 1202


def test_otlp_exponential_buckets_end_where_the_sdk_put_them() -> None:
    """Independent: base^(offset + place + 1) in floating point, rounded down; the zero bucket is below 1 ns."""
    found, _ = rows(DATA / "otlp_delta.jsonl")
    [point] = [at for at in points(DATA / "otlp_delta.jsonl", "exp.latency") if at["count"] == "200" and at["scale"] == 2][:1]
    wanted: Counter[int] = Counter()
    for place, count in enumerate(map(int, point["positive"]["bucketCounts"])):
        if count:
            wanted[int(2 ** ((point["positive"]["offset"] + place + 1) / 4) * MS)] += count
    [bins] = [bins for series, _, end, bins, _ in found if series.tag == "exp.latency" and end == int(point["timeUnixNano"])]
    assert len(bins) == len(wanted)
    for (mine, count), (end, many) in zip(sorted(bins.items()), sorted(wanted.items()), strict=True):
        assert abs(mine - end) <= 1 and count == many


def test_otlp_labels_come_from_resource_and_point() -> None:
    found, _ = rows(DATA / "otlp_delta.jsonl")
    series = {series for series, *_ in found}
    assert {(one.host, one.op, one.job, one.kind) for one in series if one.tag == "exp.latency"} == {
        ("h1", "read", "kv", "service")
    }


def test_otlp_totals_are_what_was_counted_between_two() -> None:
    found, account = rows(DATA / "otlp_cumulative.jsonl")
    for name in ("exp.latency", "exx.latency"):
        told = points(DATA / "otlp_cumulative.jsonl", name)
        last = int(told[-1]["count"])
        assert sum(sum(bins.values()) for series, _, _, bins, _ in found if series.tag == name) == last
        ends = [(int(a["timeUnixNano"]), int(b["count"]) - int(a["count"]), int(b["timeUnixNano"])) for a, b in pairwise(told)]
        mine = sorted((start, sum(bins.values()), end) for series, start, end, bins, _ in found if series.tag == name)
        assert mine[1:] == ends
    assert not account.rejected and not account.missing


def otlp(line: dict, *, temporality: int = 2, unit: str = "ms") -> str:
    """A line with one exponential point."""
    metric = {"name": "m", "unit": unit, "exponentialHistogram": {"aggregationTemporality": temporality, "dataPoints": [line]}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


def point(second: int, counts: list[int], *, start: int = 0, scale: int = 3, offset: int = 0, **more) -> dict:
    base = 1_700_000_000
    return {
        "startTimeUnixNano": str((base + start) * 10**9),
        "timeUnixNano": str((base + second) * 10**9),
        "count": str(sum(counts) + int(more.get("zeroCount", 0))),
        "scale": scale,
        "positive": {"offset": offset, "bucketCounts": [str(one) for one in counts]},
        **more,
    }


def test_lines_in_any_order_and_twice_are_the_same(tmp_path: Path) -> None:
    lines = [otlp(point(second, [second, 2 * second, second // 2])) for second in range(1, 9)]
    plain = tmp_path / "a.jsonl"
    plain.write_text("".join(lines))
    mixed = tmp_path / "b.jsonl"
    shuffled = [*lines, *lines[2:5]]
    random.Random(3).shuffle(shuffled)
    mixed.write_text("".join(shuffled))
    (first, _), (second, account) = rows(plain), rows(mixed)
    assert [entry[1:] for entry in first] == [entry[1:] for entry in second]
    assert account.rows_skipped == 3


def test_a_new_start_is_a_reset_and_what_was_lost_is_told(tmp_path: Path) -> None:
    """The counts after it are larger than before in every bin: only the start tells."""
    path = tmp_path / "a.jsonl"
    path.write_text(otlp(point(1, [5])) + otlp(point(2, [9])) + otlp(point(4, [20], start=3)) + otlp(point(5, [22], start=3)))
    found, account = rows(path)
    assert [(end - start) // 10**9 for _, start, end, *_ in found] == [1, 1, 1, 1]
    assert [sum(bins.values()) for *_, bins, _ in found] == [5, 4, 20, 2]
    [lost] = account.missing
    assert lost.count is None and lost.caveat.code == "counter-reset"


def test_a_fall_of_one_bin_is_a_reset(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = [point(1, [5, 5]), point(2, [9, 6]), point(3, [30, 2])]
    for entry in texts:
        del entry["startTimeUnixNano"]
    path.write_text("".join(map(otlp, texts)))
    found, account = rows(path)
    assert [sum(bins.values()) for *_, bins, _ in found] == [5, 32]  # the first is a baseline
    assert len(account.missing) == 1


def test_a_lower_scale_is_held_against_the_older_at_that_scale(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(otlp(point(1, [1, 2, 3, 4], scale=3)) + otlp(point(2, [4, 8, 1], scale=2)))
    found, account = rows(path)
    assert [layout for *_, layout in found] == [Exponential(3, MS), Exponential(2, MS)]
    assert sorted(found[1][3].values()) == [1, 1, 1] and not account.missing


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": "7"}, "not its count"),
        ({"negative": {"bucketCounts": ["3"]}}, "below zero"),
        ({"scale": -9}, "scale below"),
        ({"timeUnixNano": "x"}, "no number"),
        ({"positive": {"offset": 2**40, "bucketCounts": ["1"]}}, "out of range"),
        ({"flags": 1}, ""),
    ],
)
def test_a_damaged_point_is_left_out_with_its_reason(tmp_path: Path, change: dict, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(otlp(point(1, [5]), temporality=1) + otlp({**point(2, [5], start=1), **change}, temporality=1))
    found, account = rows(path)
    assert sum(sum(bins.values()) for *_, bins, _ in found) == 5
    assert said in " ".join([*account.rejected, *account.skipped])


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"count": "7"}, (1, 2, None)),
        ({"scale": -9}, (1, 2, 5)),
        ({"count": "x"}, (1, 2, None)),
        ({"startTimeUnixNano": "-"}, (1, 2, 5)),
        ({"timeUnixNano": "x"}, (None, None, 5)),
    ],
)
def test_a_rejected_interval_is_missing_from_the_answer(tmp_path: Path, change: dict, lost: tuple, capsys) -> None:
    """Its time and count so far as it says them; the answer is not complete."""
    path = tmp_path / "a.jsonl"
    points = [point(second, [5], start=second - 1) for second in (1, 2, 3)]
    path.write_text("".join(otlp(entry, temporality=1) for entry in (points[0], {**points[1], **change}, points[2])))
    _, account = rows(path)
    [entry] = account.missing
    at = [None if stamp is None else stamp // 10**9 - 1_700_000_000 for stamp in (entry.from_ns, entry.to_ns)]
    assert (*at, entry.count) == lost and entry.caveat.code == "rejected-rows" and entry.labels["tag"] == "m"
    assert tailboard(["percentiles", str(path), "--step", "1s", "--format", "csv"]) == 0
    windows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    complete = {int(window["start"][17:19]) - 20: window["complete"] for window in windows}
    assert {at: complete[at] for at in (0, 2)} == dict.fromkeys((0, 2), "true" if lost[0] else "false")
    assert complete.get(1, "false") == "false"


def test_a_rejected_total_is_in_the_next_and_missing_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = [point(second, [5 * second]) for second in range(1, 6)]
    for broken, missing in ((2, []), (4, [(4, 5)])):
        path.write_text("".join(otlp({**entry, "count": "1"} if at == broken else entry) for at, entry in enumerate(good)))
        found, account = rows(path)
        assert sum(sum(bins.values()) for *_, bins, _ in found) == (25 if broken == 2 else 20)
        reach = [(lost.from_ns // 10**9 - 1_700_000_000, lost.to_ns // 10**9 - 1_700_000_000) for lost in account.missing]
        assert reach == missing


def test_a_line_that_is_no_json_may_have_held_intervals(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for temporality, lost in ((1, 1), (2, 0)):
        lines = [
            otlp(point(second, [5 * second], start=second - 1 if temporality == 1 else 0), temporality=temporality)
            for second in (1, 2, 3)
        ]
        path.write_text(lines[0] + lines[1][:80] + "\n" + lines[2])
        _, account = rows(path)
        assert len(account.missing) == lost


def test_scales_beyond_ours_are_brought_down_exactly(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(otlp(point(1, [1] * 64, scale=12, offset=4096), temporality=1))
    [(_, _, _, bins, layout)], _ = rows(path)
    assert layout == Exponential(8, MS) and sorted(bins.values()) == [16] * 4


def test_gauges_alone_are_refused_with_what_to_export(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"cpu","unit":"1","gauge":{"dataPoints":[]}}]}]}]}\n'
    )
    with pytest.raises(TailboardError, match="export histograms"):
        Files([path], ReadOptions(run="r"), jobs=1).answer(Question())


# ---- Ceph's daemons, snapshots of HdrHistogram.


def test_ceph_latencies_are_added_up_over_sizes_and_differenced() -> None:
    """Oracle: the whole table of each poll; the axis says usec, the edges are ns."""
    path = DATA / "ceph_perf_histogram_synthetic.ndjson"
    tables = [json.loads(line)["dump"]["osd"]["op_w_latency_in_bytes_histogram"] for line in path.read_text().splitlines()]
    found, account = rows(path)
    counts = [[sum(row) for row in table["values"]] for table in tables]
    ends = [one.get("max") for one in tables[0]["axes"][0]["ranges"]]
    for (series, _, _, bins, _), (before, after) in zip(found, pairwise(counts), strict=True):
        assert bins == {end: b - a for end, a, b in zip(ends, before, after, strict=True) if b > a}
        assert (series.host, series.volume, series.op) == ("ceph1", "osd.3", "write")
    assert not account.rejected and not account.missing


@pytest.mark.parametrize("change", [{"values": [[1]]}, {"values": "x"}, {"axes": 3}, {"axes": []}])
def test_a_damaged_dump_is_left_out(tmp_path: Path, change: dict) -> None:
    lines = (DATA / "ceph_perf_histogram_synthetic.ndjson").read_text().splitlines()
    entry = json.loads(lines[1])
    entry["dump"]["osd"]["op_w_latency_in_bytes_histogram"].update(change)
    path = tmp_path / "c.ndjson"
    path.write_text("\n".join([lines[0], json.dumps(entry), lines[2]]) + "\n")
    whole, _ = rows(DATA / "ceph_perf_histogram_synthetic.ndjson")
    found, account = rows(path)
    assert len(found) == 1 and sum(found[0][3].values()) == sum(sum(bins.values()) for *_, bins, _ in whole)
    assert account.rows_rejected + account.rows_skipped == 2


def test_snapshots_hold_their_counts_in_the_bins_of_hdrhistogram() -> None:
    """Independent: the bins by the definition, one digit, 65,536 ns wide at first."""
    path = DATA / "hdr_snapshot_ticks.ndjson"
    told = [json.loads(line) for line in path.read_text().splitlines()]
    found, _ = rows(path)
    assert len(found) == len(told)
    by_place = {(series.op, end): bins for series, _, end, bins, _ in found}
    ends = sorted({end for _, end in by_place})
    for number, tick in enumerate(told):
        counts = {slot: count for slot, count in enumerate(tick["Hist"]["Counts"]) if count}
        bins = by_place[tick["Name"], ends[number // 2]]
        assert bins == {(hdr.lower_edge(slot + 1, 1) << 16) - 1: count for slot, count in counts.items()}


# ---- Described histograms.


def described(name: str) -> dict:
    return {"description": description_of(name)}


def test_redis_counts_are_its_calls() -> None:
    """Oracle: `calls` beside each histogram; after CONFIG RESETSTAT all of the new ones."""
    path = DATA / "redis70_latency_histogram.ndjson"
    found, account = rows(path, **described("redis-latency"))
    told = [json.loads(line)["r"] for line in path.read_text().splitlines()]
    for op in ("get", "set"):
        calls = [entry[op]["calls"] for entry in told if op in entry]
        steps = [b - a if b >= a else b for a, b in pairwise(calls)]
        assert [sum(bins.values()) for series, _, _, bins, _ in found if series.op == op] == [step for step in steps if step]
    assert {series.host for series, *_ in found} == {"h1"} and len(account.missing) == 2
    assert {value for *_, bins, _ in found for value in bins} <= {1032 * 2**k - 1 for k in range(21)}


@pytest.mark.parametrize("stated", [10**30, 2**63, 2**62])
def test_of_a_total_that_cannot_be_an_unknown_number_is_missing(
    tmp_path: Path, stated: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DATA / "sysbench1020_histogram.txt").read_text()
    told = re.sub(r"(total number of events:\s+)\d+", rf"\g<1>{stated}", text)
    assert told != text
    path = tmp_path / "sysbench.txt"
    path.write_text(told)
    for words in (
        ["percentiles", str(path), "--format", "csv"],
        ["check", str(path), "--sla", "p99<5ms"],
        ["explain", str(path)],
    ):
        assert tailboard(words) in (0, 1, 5), words
        assert f"the tool itself counts {stated:,} operations" in " ".join("".join(capsys.readouterr()).split())


def test_sysbench_events_are_all_there() -> None:
    found, account = rows(DATA / "sysbench1020_histogram.txt", **described("sysbench"))
    [(_, start, end, bins, layout)] = found
    assert sum(bins.values()) == 6057 == account.samples
    assert end - start == 3_005_700_000
    assert isinstance(layout, Edges) and layout.bins == 1025


def test_mysql_biolatency_and_bpftrace_are_read_as_the_sheet_shows(tmp_path: Path) -> None:
    mysql = tmp_path / "m.csv"
    head = "sampled_at,SCHEMA_NAME,DIGEST,BUCKET_NUMBER,BUCKET_TIMER_LOW,BUCKET_TIMER_HIGH,COUNT_BUCKET\n"
    mysql.write_text(
        head
        + "".join(
            f"2026-01-01T00:00:0{second}Z,db,q1,{number},{low},{high},{count * second}\n"
            for second in (1, 2, 3)
            for number, low, high, count in ((41, 63095734, 66069344, 5), (42, 66069344, 69183097, 1))
        )
    )
    found, _ = rows(mysql, **described("mysql-statements"))
    assert [bins for *_, bins, _ in found] == [{66069: 5, 69183: 1}] * 2
    bcc = tmp_path / "b.txt"
    bcc.write_text(
        "{'ts': '2020-12-30 14:40:00', 'val_type': 'usecs', 'data': [{'interval-start': 0, 'interval-end': 1, 'count': 4},"
        " {'interval-start': 2, 'interval-end': 3, 'count': 10}], 'Bucket ptr': b'sda'}\n"
    )
    [(series, start, end, bins, _)], _ = rows(bcc, **described("biolatency"))
    assert series.volume == "sda" and end - start == 10**9 and bins == {1999: 4, 3999: 10}
    trace = tmp_path / "t.ndjson"
    trace.write_text(
        "".join(
            f'{{"type": "printf", "data": "{1_795_330_001_000 + 1000 * second}\\n"}}\n{{"type": "hist", "data": {{"@usecs": '
            f'[{{"max": -1, "count": 3}}, {{"min": 0, "max": 0, "count": {second}}}, {{"min": 1, "max": 1, "count": {2 * second}}}]}}}}\n'
            for second in (1, 2, 3)
        )
    )
    found, account = rows(trace)
    assert [bins for *_, bins, _ in found] == [{999: 1, 1999: 2}] * 2
    assert [series.tag for series, *_ in found] == ["@usecs"] * 2
    assert any("below zero" in note for note in account.notes)


def test_every_preset_is_a_description() -> None:
    assert {"redis-latency", "sysbench", "mysql-statements", "biolatency"} <= set(presets())
    for name in presets():
        assert description_of(name).text


MADE_UP = """\
histogram: csv
delimiter: whitespace
lower: from
upper: to
edge: "[)"
count: hits
unit: us
over_time: interval
time: {at: [sec, usec], unit: [s, us]}
every: 1s
labels: {op: verb, host: box}
where: {state: ok}
"""


@settings(max_examples=figure(15, 40, 400), deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 12), st.integers(1, 10**9), min_size=1, max_size=6), min_size=1, max_size=5))
def test_a_made_up_table_reads_back(tmp_path_factory, windows: list[dict[int, int]]) -> None:
    """Brute force: bins [2^k, 2^(k + 1)) us, empty ones left out, two columns of time, a line that `where` leaves out."""
    folder = tmp_path_factory.mktemp("m")
    (folder / "made.yml").write_text(MADE_UP)
    lines = ["sec usec box verb state from to hits"]
    for number, window in enumerate(windows):
        lines += [f"{1_700_000_001 + number} 5 b1 get ok {2**k} {2 ** (k + 1)} {count}" for k, count in window.items()]
        lines.append(f"{1_700_000_001 + number} 5 b1 get bad 1 2 77")
    (folder / "made.txt").write_text("\n".join(lines) + "\n")
    found, account = rows(folder / "made.txt", description=description_of(str(folder / "made.yml")))
    assert [(start, bins) for _, start, _, bins, _ in sorted(found, key=lambda entry: entry[1])] == [
        ((1_700_000_000 + number) * 10**9 + 5000, {2 ** (k + 1) * 1000 - 1: count for k, count in sorted(window.items())})
        for number, window in enumerate(windows)
    ]
    assert account.rows_skipped == len(windows)
    assert len({layout for *_, layout in found}) == 1  # empty bins left out are no other layout


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("histogram: xml", "histogram is one of"),
        ("histogram: csv\nupper: a\nunit: us", "count is missing"),
        ("histogram: csv\nupper: a\ncount: b", "unit is missing"),
        ("histogram: csv\ncount: b\nunit: us", "edges of bins"),
        ("histogram: csv\nvalue: a\ncount: b\nunit: us", "value needs edges"),
        ("histogram: csv\nupper: a\ncount: b\nunit: furlong", "unit is one of"),
        ("histogram: csv\nupper: a\ncount: b\nunit: us\nedges: [3, 2]", "edges rise"),
        ("histogram: csv\nupper: a\ncount: b\nunit: us\nedges: {first: 1, times: 99, bins: 1400}", "past 2\\^62"),
        ("histogram: csv\nupper: a\ncount: b\nunit: us\nevery: soon", "every"),
        ("histogram: csv\nupper: a\ncount: b\nunit: us\ntime: {at: t, unit: moons}", "time unit"),
        ("histogram: csv\nupper: a\ncount: b\nunit: us\nflavour: x", "no line 'flavour'"),
        ("histogram: text\nbin: '('\nupper: a\ncount: b\nunit: us", "no regular expression"),
    ],
)
def test_a_description_that_cannot_be_is_refused_with_what_it_takes(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "x.yml").write_text(lines)
    with pytest.raises(TailboardError, match=said):
        description_of(str(tmp_path / "x.yml"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"t":1e400,"h":{"1":2}}', "out of range"),
        ('{"t":1.7e9,"h":{"x":2}}', "'x' is no number"),
        ('{"t":1.7e9,"h":{"1":-2}}', "count below zero"),
        ('{"t":1.7e9,"h":{"1":1e30}}', "'1E.30' is no whole number"),
        ('{"t":1.7e9,"h":{"1e21":5}}', "one histogram alone"),
        ('{"t":true,"h":{"1":1}}', "'true' is no number"),
        ("[1]", "no JSON object"),
    ],
)
def test_what_cannot_be_is_said_in_words(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "x.yml").write_text("histogram: ndjson\neach: h\nbins: map\nedge: le\nunit: us\ntime: {at: t, unit: s}\n")
    (tmp_path / "x.ndjson").write_text(line + "\n")
    with pytest.raises(TailboardError, match=said):
        rows(tmp_path / "x.ndjson", description=description_of(str(tmp_path / "x.yml")))


SAMPLES = {
    "otlp_cumulative.jsonl": "",
    "otlp_delta.jsonl": "",
    "prom242_native_range_vector.json": "",
    "prom242_tsdb_dump_classic.txt": "",
    "ceph_perf_histogram_synthetic.ndjson": "",
    "hdr_snapshot_ticks.ndjson": "",
    "pgbench15_rate.log": "",
    "redis70_latency_histogram.ndjson": "redis-latency",
    "sysbench1020_histogram.txt": "sysbench",
}
STEPS = mutations(sorted(CHANGES), 6000, 40, st.sampled_from([b"9", b"-1", b'"', b"{", b"]", b"\n", b"1e999", b"null", b"NaN"]))


@pytest.mark.parametrize("name", SAMPLES)
def test_mutated_files_never_end_in_a_traceback(tmp_path_factory, name: str) -> None:
    folder = tmp_path_factory.mktemp("f")
    content, reading = (DATA / name).read_bytes(), described(SAMPLES[name]) if SAMPLES[name] else {}

    @settings(max_examples=figure(5, 40, 1000), deadline=None)
    @given(STEPS)
    def held(steps) -> None:
        path = folder / name
        path.write_bytes(mutated(content, steps))
        try:
            found, account = rows(path, **reading)
            own = [bins for series, *_, bins, _ in found if series.kind not in ("response", "wait")]
            assert account.samples == sum(sum(bins.values()) for bins in own)
        except TailboardError:
            pass

    held()
