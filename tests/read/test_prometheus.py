"""Prometheus: what promtool dumps, the query API answers and a process exposes; counts by `_count`, edges by the text."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import TailboardError
from ingest.core.layout import Exponential
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.read.test_histograms import DATA, rows

NATIVE, DUMP = DATA / "prom242_native_range_vector.json", DATA / "prom242_tsdb_dump_classic.txt"
S = 1_000_000_000


def test_a_dump_holds_the_differences_of_its_neighbours() -> None:
    """Oracle: the +Inf bucket of each handler, differenced by stamp; a repeated line adds nothing."""
    told: dict[str, dict[int, int]] = defaultdict(dict)
    for line in DUMP.read_text().splitlines():
        match = re.search(r'handler="([^"]*)".*le="\+Inf"} (\d+) (\d+)$', line)
        if match:
            told[match[1]][int(match[3])] = int(match[2])
    wanted = Counter()
    for stamps in told.values():
        counts = [stamps[stamp] for stamp in sorted(stamps)]
        wanted.update(b - a for a, b in pairwise(counts) if b > a)
    found, account = rows(DUMP)
    assert Counter(sum(bins.values()) for *_, bins, _ in found if bins) == wanted
    assert not account.rejected and {series.host for series, *_ in found} == {"127.0.0.1"}


def test_native_histograms_of_the_api_hold_their_counts() -> None:
    """Counts 268 -> 60 are a reset. Oracle: `count` of each sample; edges within a ns of the right ones in the text."""
    [series] = json.loads(NATIVE.read_text())["data"]["result"]
    samples = series["histograms"]
    counts = [int(one["count"]) for _, one in samples]
    found, account = rows(NATIVE)
    assert [sum(bins.values()) for *_, bins, _ in found] == [b - a if b >= a else b for a, b in pairwise(counts)]
    assert len(account.missing) == 1 and {layout for *_, layout in found} == {Exponential(3, S)}
    after = next(place for place, (a, b) in enumerate(pairwise(counts)) if b < a)
    told = {int(float(right) * S): int(count) for _, _, right, count in samples[after + 1][1]["buckets"]}
    mine = found[after][3]
    assert sorted(mine.values()) == sorted(told.values())
    assert all(abs(a - b) <= 1 for a, b in zip(sorted(mine), sorted(told), strict=True))


CLASSIC = """\
# TYPE op_seconds histogram
op_seconds_bucket{{host="h1",op="re\\"ad",le="0.001"}} {0} {stamp}
op_seconds_bucket{{host="h1",op="re\\"ad",le="0.0025"}} {1} {stamp}
op_seconds_bucket{{host="h1",op="re\\"ad",le="+Inf"}} {2} {stamp}
op_seconds_sum{{host="h1",op="re\\"ad"}} 1.25 {stamp}
size_bytes_bucket{{le="+Inf"}} 7 {stamp}
"""


def test_scrapes_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "scrapes.prom"
    polls = [(3, 5, 9), (4, 8, 12), (1, 1, 2)]
    path.write_text("".join(CLASSIC.format(*poll, stamp=1_700_000_000_000 + 1000 * at) for at, poll in enumerate(polls)))
    found, account = rows(path)
    assert [(series.op, series.host, bins) for series, _, _, bins, _ in found] == [
        ('re"ad', "h1", {1_000_000: 1, 2_500_000: 2}),
        ('re"ad', "h1", {1_000_000: 1, 2_500_001: 1}),
    ]
    assert sum(account.skipped.values()) == 3 + 1  # bytes; the baseline


def test_one_scrape_that_says_when_it_began(tmp_path: Path) -> None:
    path = tmp_path / "m.prom"
    text = re.sub(" {stamp}", "", CLASSIC).format(3, 5, 9) + 'op_seconds_created{host="h1",op="re\\"ad"} 1.7e9\n# EOF\n'
    path.write_text(text)
    [(_, start, end, bins, _)], _ = rows(path)
    assert start == 1_700_000_000 * S and end == path.stat().st_mtime_ns and sum(bins.values()) == 9


@pytest.mark.parametrize("name", ["prom_classic.txt", "prom_openmetrics.txt"])
def test_one_scrape_without_a_time_is_refused_with_what_to_ask(name: str) -> None:
    with pytest.raises(TailboardError, match="dump the series with promtool, or query them"):
        Files([DATA / name], ReadOptions(run="r"), jobs=1).answer(Question())


def api(values: list[list], edges: tuple[str, ...] = ("0.1", "+Inf")) -> str:
    metric = {"__name__": "x_seconds_bucket", "instance": "h2:9100", "job": "kv"}
    result = [{"metric": {**metric, "le": edge}, "values": values[at]} for at, edge in enumerate(edges)]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_classic_buckets_of_the_api(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(api([[[1.7e9, "3"], [1.7e9 + 15.25, "5"]], [[1.7e9, "4"], [1.7e9 + 15.25, "9"]]]))
    [(series, start, end, bins, _)], _ = rows(path)
    assert (series.host, series.job, end - start) == ("h2", "kv", 15_250_000_000)
    assert bins == {100_000_000: 2, 100_000_001: 3}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[[1.7e9, "0.5"]], [[1.7e9, "4"]]], "no whole numbers, as of rate"),
        ([[[1.7e9, "9"]], [[1.7e9, "4"]]], "that fall"),
        ([[[1.7e9, "NaN"]], [[1.7e9, "4"]]], "no whole numbers"),
    ],
)
def test_what_is_no_histogram_is_refused_with_the_reason(tmp_path: Path, values: list, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(api(values))
    with pytest.raises(TailboardError, match=said):
        Files([path], ReadOptions(run="r"), jobs=1).answer(Question())


def test_sums_of_pgbench_are_refused_by_name() -> None:
    with pytest.raises(TailboardError, match="pgbench --aggregate-interval.*pgbench -l"):
        Files([DATA / "pgbench15_aggregate.log"], ReadOptions(run="r"), jobs=1).answer(Question())


def test_sysbench_with_a_histogram_is_not_refused_for_its_percentiles() -> None:
    found, _ = rows(DATA / "sysbench1020_histogram.txt", description=description_of("sysbench"))
    assert len(found) == 1


def test_native_histograms_of_a_dump_are_those_of_the_api(tmp_path: Path) -> None:
    """The recorded answer, written as newer versions of promtool dump it; neither the form of the text nor its order matter."""
    [series] = json.loads(NATIVE.read_text())["data"]["result"]
    labels = ", ".join(f'{name}="{value}"' for name, value in series["metric"].items())
    lines = []
    for stamp, histogram in series["histograms"]:
        ranges = [
            f"{'[' if rule in (1, 3) else '('}{left},{right}{']' if rule in (0, 3) else ')'}:{count}"
            for rule, left, right, count in histogram["buckets"]
        ]
        lines.append(
            f"{{{labels}}} {{count:{histogram['count']}, sum:{histogram['sum']}, {', '.join(ranges)}}} {round(stamp * 1000)}\n"
        )
    path = tmp_path / "dump.txt"
    path.write_text("".join(reversed(lines)))
    (asked, one), (dumped, two) = rows(NATIVE), rows(path)
    assert [row[1:] for row in dumped] == [row[1:] for row in asked] and dumped
    assert len(one.missing) == len(two.missing) == 1 and not two.rejected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{count:3, sum:1, (0.5,1]:2}", "not its count"),
        ("{count:1.5, sum:1, (0.5,1]:1.5}", "rate"),
        ("{count:2, sum:1, (x,1]:2}", "no edge"),
        ("{count:2, sum:-1, (-2,-1]:2}", "below zero"),
    ],
)
def test_a_damaged_native_histogram_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "dump.txt"
    path.write_text("".join(f'{{__name__="x_seconds", job="j"}} {text} {1_700_000_000_000 + 1000 * at}\n' for at in range(3)))
    with pytest.raises(TailboardError, match=said):
        Files([path], ReadOptions(run="r"), jobs=1).answer(Question())


DAMAGED = "the counts of its buckets are not its count: it was damaged"


@pytest.mark.parametrize("form", ["exposition", "openmetrics", "dump", "api"])
@pytest.mark.parametrize("lost", [0, 1])
def test_buckets_are_held_against_the_count_beside_them(form: str, lost: int, tmp_path: Path) -> None:
    """The second of three scrapes says 8 in its buckets: `_count` shows whether that is so. A summary has a `_count` alone."""
    path = tmp_path / ("a.json" if form == "api" else "a.prom")
    times, upto, counts = [1_700_000_000 + 15 * at for at in range(3)], [4, 8, 12], [4, 8 + lost, 12]
    if form == "api":
        entries = [("op_seconds_bucket", {"le": "0.1"}, upto), ("op_seconds_bucket", {"le": "+Inf"}, upto)]
        entries += [("op_seconds_count", {}, counts), ("rpc_seconds_count", {}, [1, 2, 3])]
        result = [
            {
                "metric": {"__name__": name, "op": "get", **le},
                "values": [[at, str(n)] for at, n in zip(times, values, strict=True)],
            }
            for name, le, values in entries
        ]
        path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    else:
        lines = []
        for at, held, all_of_it in zip(times, upto, counts, strict=True):
            stamp = at if form == "openmetrics" else at * 1000
            for name, le, number in (
                ("op_seconds_bucket", ',le="0.1"', held), ("op_seconds_bucket", ',le="+Inf"', held),
                ("op_seconds_count", "", all_of_it), ("rpc_seconds_count", "", 3),
            ):  # fmt: skip
                labels = f'op="get"{le}'
                front = f'{{__name__="{name}", {labels}}}' if form == "dump" else f"{name}{{{labels}}}"
                lines.append(f"{front} {number} {stamp}")
        path.write_text("\n".join([*lines, *(["# EOF"] if form == "openmetrics" else [])]) + "\n")
    found, account = rows(path)
    assert sum(sum(bins.values()) for *_, bins, _ in found) == 8
    assert dict(account.rejected) == ({DAMAGED: 1} if lost else {})


# ---- one series in two forms: classic and native histograms of one metric -------------------------------------------------


BOUNDS = (0.001, 0.002, 0.004, 0.008)


def classic(counts: list[list[int]], labels: dict[str, str], every: int = 60, first: int = 1_764_322_680) -> list[dict]:
    """Counts since the start in each bucket, a sample each minute."""
    result = []
    for place, edge in enumerate([*map(str, BOUNDS), "+Inf"]):
        values = [[first + every * number, str(sum(told[: place + 1]))] for number, told in enumerate(counts)]
        result.append({"metric": {"__name__": "op_seconds_bucket", **labels, "le": edge}, "values": values})
    return result


def native(counts: list[list[int]], labels: dict[str, str], every: int = 60, first: int = 1_764_322_680) -> list[dict]:
    """The same with edges of schema 0 that lie elsewhere: 2^-10, 2^-9, ... s."""
    histograms = []
    for number, told in enumerate(counts):
        buckets = [[0, str(2.0 ** (place - 11)), str(2.0 ** (place - 10)), str(told[place])] for place in range(4) if told[place]]
        histograms.append([first + every * number, {"count": str(sum(told)), "sum": "1", "buckets": buckets}])
    return [{"metric": {"__name__": "op_seconds", **labels}, "histograms": histograms}]


def answer_of(*results: list[dict]) -> str:
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [one for some in results for one in some]}}
    )


COUNTS = [[20 * n, 10 * n, 5 * n, n, 0] for n in (1, 3, 6, 8)]
SAMPLES = 36 * 7


@pytest.mark.parametrize("labels", [{"instance": "h1"}, {}, {"instance": "h1", "op": "read"}], ids=["host", "bare", "op"])
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_two_forms_of_one_metric_are_counted_once_in_files_and_stores(labels: dict, names: tuple, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    (folder / f"{names[0]}.json").write_text(answer_of(classic(COUNTS, labels)))
    (folder / f"{names[1]}.json").write_text(answer_of(native(COUNTS, labels)))
    with ElasticsearchDouble() as double:
        sqlite = f"sqlite:{tmp_path / 'x.db'}"
        assert command(["setup", "--elasticsearch", double.url]) == 0
        for store in (sqlite, double.url):
            assert command(["load", str(folder), "--run", "both", "--store", store]) == 0
        tables = []
        for source in (str(folder), sqlite, double.url):
            capsys.readouterr()
            command(["percentiles", source, "--step", "all", "--by", "host,op", "--format", "csv"])
            tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1] == tables[2] and f",{SAMPLES}," in tables[0]
    command(["inspect", str(folder)])
    assert "holds the same series and times in finer bins" in "".join(capsys.readouterr()).replace("\n", " ")


@pytest.mark.parametrize("form", [classic, native])
@pytest.mark.parametrize(("second", "twice"), [(1_764_322_680 + 180, False), (1_764_322_680 + 120, True)])
def test_a_series_that_goes_on_in_another_file_is_one_series_in_two_sources(
    form, second: int, twice: bool, tmp_path: Path, capsys
) -> None:
    folder, labels = tmp_path / "both", {"instance": "h1:9100"}
    folder.mkdir()
    (folder / "early.json").write_text(answer_of(form(COUNTS, labels)))
    (folder / "late.json").write_text(answer_of(form(COUNTS, labels, first=second)))
    with ElasticsearchDouble() as double:
        one, parts = (f"sqlite:{tmp_path / name}.db" for name in ("one", "parts"))
        assert command(["setup", "--elasticsearch", double.url]) == 0
        for store in (one, double.url):
            assert command(["load", str(folder), "--run", "both", "--store", store]) == 0
        for name in ("late", "early"):
            assert command(["load", str(folder / f"{name}.json"), "--run", "both", "--store", parts]) == 0
        tables, notes = [], []
        for source in (str(folder), one, double.url, parts):
            capsys.readouterr()
            command(["percentiles", source, "--step", "1m", "--by", "host,op", "--format", "csv"])
            told = capsys.readouterr()
            tables.append(told.out)
            notes.append("late.json: it holds 1 series of early.json at the same times" in told.err.replace("\n", " "))
    assert len(set(tables)) == 1
    rows = [line.split(",") for line in tables[0].splitlines()]
    whole = [row[rows[0].index("complete")] == "true" for row in rows[1:]]
    assert sum(int(row[4]) for row in rows[1:]) == 2 * SAMPLES and whole.count(False) == (1 if twice else 0)
    assert notes == [twice] * 4


def otlp(first: int, host: str) -> str:
    """Delta histograms of a minute each, as the Collector's file exporter writes them."""
    points = [
        {
            "startTimeUnixNano": str((first + 60 * n) * 10**9),
            "timeUnixNano": str((first + 60 * n + 60) * 10**9),
            "count": "3",
            "explicitBounds": [1, 2],
            "bucketCounts": ["1", "2", "0"],
        }
        for n in range(4)
    ]
    metric = {"name": "rpc.duration", "unit": "ms", "histogram": {"aggregationTemporality": 1, "dataPoints": points}}
    names = {"host.name": host, "service.instance.id": "1"}
    resource = {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in names.items()]}
    return json.dumps({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


@pytest.mark.parametrize("second", [120, 240])
@pytest.mark.parametrize("form", ["prometheus", "otlp", "classic, then native"])
def test_n6_what_two_files_of_polls_hold_is_complete_nowhere_and_the_same_in_parts(
    form: str, second: int, tmp_path: Path, capsys
) -> None:
    """The rows of the series that both hold, in the minutes of both, and no others; `check` cannot tell."""
    folder, start = tmp_path / "both", 1_764_322_680
    folder.mkdir()
    for name, first in (("early", start), ("late", start + second)):
        one = [otlp(first, host) for host in (("h1", "h2") if name == "early" else ("h1",))]
        more = [{"instance": host} for host in (("h1", "h2") if name == "early" else ("h1",))]
        polls = native if name == "late" and "native" in form else classic
        text = "".join(one) if form == "otlp" else answer_of(*(polls(COUNTS, labels, first=first) for labels in more))
        (folder / f"{name}.json").write_text(text)
    parts, whole = (f"sqlite:{tmp_path / name}.db" for name in ("parts", "whole"))
    for name in ("late", "early"):
        assert command(["load", str(folder / f"{name}.json"), "--run", "r", "--store", parts]) == 0
    assert command(["load", str(folder), "--run", "r", "--store", whole]) == 0
    shared, told = ((2 if form == "otlp" else 1) if second == 120 else 0), []
    for source in (str(folder), whole, parts)[2 if "native" in form else 0 :]:
        capsys.readouterr()
        command(["percentiles", source, "--step", "1m", "--by", "host", "--format", "csv"])
        told.append(capsys.readouterr().out)
        rows = [line.split(",") for line in told[-1].splitlines()]
        host, complete = rows[0].index("host"), rows[0].index("complete")
        assert [row[host] for row in rows[1:] if row[complete] == "false"] == ["h1"] * shared
        assert command(["check", source, "--sla", "p50<60s", "--window", "1m"]) == (5 if shared else 0)
    assert len(set(told)) == 1


def test_two_forms_in_one_answer_are_counted_once(tmp_path: Path) -> None:
    for results in ((classic, native), (native, classic)):
        path = tmp_path / "x.json"
        path.write_text(answer_of(*(form(COUNTS, {"instance": "h1"}) for form in results)))
        found, account = rows(path)
        assert sum(sum(bins.values()) for *_, bins, _ in found) == SAMPLES
        assert not account.rejected and not account.missing and account.skipped


def test_what_only_the_classic_form_holds_is_read(tmp_path: Path) -> None:
    """Native histograms were turned on two minutes later, and one host has none."""
    (tmp_path / "classic.json").write_text(answer_of(classic(COUNTS, {"instance": "h1"}), classic(COUNTS, {"instance": "h2"})))
    (tmp_path / "native.json").write_text(answer_of(native(COUNTS[2:], {"instance": "h1"}, first=1_764_322_680 + 120)))
    answer = Files([tmp_path], jobs=1).answer(Question(step="all", by=("host",)))
    table = percentiles(answer, Wanted(50))
    assert dict(zip(table.columns["host"].tolist(), table.columns["count"].tolist(), strict=True)) == {
        "h1": SAMPLES,
        "h2": SAMPLES,
    }
    assert any("finer bins" in text for text in answer.warnings)
