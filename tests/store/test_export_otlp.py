"""export --format otlp: OpenTelemetry's histograms, held against the samples, protobuf's decoder, our reader, and each store."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as command
from ingest.core import intervals
from ingest.core.layout import Edges, Exponential, Layout, LogLinear, Mixed, common_layout, fio_layout, hdr_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.view.otlp import lines, written
from tests.doubles.origin import Made, random_rows
from tests.effort import figure
from tests.layered import RATE, SECONDS, START, layered
from tests.store.grounds import FIO, grounds, loaded
from tests.strategies import made

MS, SECOND = 1_000_000, 1_000_000_000
NAMES = ("run", "host", "volume", "job", "op", "kind", "tag", "process")
LAYOUTS = [
    *(fio_layout(29, 1, coarseness) for coarseness in (0, 3, 6)),
    fio_layout(19, 1000),
    *(hdr_layout(digits, magnitude, unit) for digits, magnitude, unit in ((1, 0, 1000), (2, 14, 1), (3, 0, 1))),
    *(Exponential(scale, unit) for scale, unit in ((3, MS), (8, SECOND), (-2, 1000), (2, 777))),
    Exponential(4, SECOND, 20_000, 300),
    Edges((0, *(100_000 << step for step in range(31))), open_ended=True),
    Edges((0, 1, 999, 10**6, 2**40)),
]
latencies = st.lists(st.one_of(st.integers(0, 3000), st.integers(0, 2**34)), min_size=1, max_size=30)


def exported(layout: Layout, values: list[int], target: Layout) -> str:
    """Return the line of one window of samples, put into one layout and moved to another."""
    counts = Counter(layout.index(np.array(values, np.int64)).tolist())
    rows = made(layout, [(0, SECOND, 2 * SECOND, dict(counts))]).in_layout(target)
    labelled = type(rows)(**{name: getattr(rows, name) for name in rows.__slots__} | {"table": (("r", "completion"),) * 4})
    [line] = lines(labelled, ("run", "kind"))
    return line.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("otlp")


@given(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=2), latencies)
@settings(max_examples=figure(40, 400, 4000), deadline=None)
def test_each_sample_lies_within_the_bound_that_is_stated(folder: Path, chosen: list[Layout], values: list[int]) -> None:
    """Brute force: the samples themselves, those of merged bins too; read again by our reader, bin by bin."""
    layout, target = chosen[0], common_layout(chosen)
    values = sorted(
        value for value in values if value < min(int(part.edges[-2]) for part in (layout, *target.members))
    )  # not in an open bin
    if not values:
        return
    path = folder / "metrics.jsonl"
    path.write_text(exported(layout, values, target))
    answer = Files([path], ReadOptions(), 1).answer(Question(step="all"))
    [again] = answer.parts
    assert answer.samples == len(values) and answer.kind == "completion"
    held = np.repeat(again.bins, again.counts)
    low, high = again.layout.lowest_of(held), again.layout.edges[held + 1]
    is_open = again.layout.open_ended & (held == again.layout.bins - 1)
    assert (low <= values).all(), (str(again.layout), low.tolist(), values)
    assert (is_open | (np.array(values) < high)).all()
    if isinstance(again.layout, Exponential) and not isinstance(target, Mixed):
        assert written(again.layout) == written(written(target).target), "what is exported again is the same"


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if isinstance(layout, LogLinear)], ids=str)
def test_buckets_are_neither_finer_nor_much_coarser_than_bins(layout: LogLinear) -> None:
    form = written(layout)
    base = Fraction(2 ** (2.0**-form.target.scale))
    assert base >= 1 + layout.width or form.target.scale == -6
    assert base <= (1 + layout.width) ** 2 or (form.target.scale == 8 and layout.width < Fraction(1, 300))
    assert form.error == form.target.error >= layout.error


@pytest.mark.slow
def test_protobufs_decoder_reads_each_point(tmp_path: Path) -> None:
    """Oracle: protobuf's decoder, and the samples counted between powers of the base in floating point."""
    pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason="the dev extras have it")
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    chance = random.Random(5)
    took = [0, 0, *(int(chance.lognormvariate(0, 1.5) * MS) for _ in range(1998))]
    log = tmp_path / "fio_clat.1.log"
    log.write_text("".join(f"{at + 1}, {value}, 0, 4096, 0, 0\n" for at, value in enumerate(took)))
    points = []
    for line in told(tmp_path, "export", log, "--format", "otlp", "--step", "1s", *reading()).splitlines():
        [resource] = json_format.Parse(line, ExportMetricsServiceRequest()).resource_metrics
        [metric] = resource.scope_metrics[0].metrics
        assert (metric.name, metric.unit) == ("tailboard.client.completion.duration", "s")
        assert metric.exponential_histogram.aggregation_temporality == 1
        said = {pair.key: pair.value for pair in metric.metadata}
        assert said["tailboard.error"].double_value == pytest.approx(2 ** (1 / 32) * (1 + 1 / 64) - 1, abs=2e-6)
        points += metric.exponential_histogram.data_points
    bins = fio_layout(29, 1)
    assert [(point.start_time_unix_nano, point.time_unix_nano) for point in points] == [
        ((START + at) * SECOND, (START + at + 1) * SECOND) for at in range(2)
    ]
    for point, own in zip(points, (took[:1000], took[1000:])):
        assert (point.scale, point.count, point.zero_count) == (5, 1000, own.count(0))
        assert (point.min, point.max) == (min(own) / SECOND, max(own) / SECOND)
        assert point.sum == pytest.approx(sum(own) / SECOND)
        ends = (bins.edges[bins.index(np.array([value for value in own if value], np.int64)) + 1] - 1) / SECOND
        held = Counter(math.ceil(math.log2(end) * 32 - 1e-9) - 1 for end in ends.tolist())
        buckets = enumerate(point.positive.bucket_counts, point.positive.offset)
        assert held == Counter({number: count for number, count in buckets if count})


def told(tmp_path: Path, *words: object) -> str:
    """Return what a command prints."""
    from tests.commands import tailboard

    done = tailboard(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def reading() -> tuple[str, ...]:
    return ("--t0", str(START), "--fio-version", "3.33")


def all_points(text: str) -> dict[tuple, dict]:
    """Return points by metric, labels and end, each once."""
    found = {}
    for line in text.splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            owner = json.dumps(resource["resource"])
            for metric in resource["scopeMetrics"][0]["metrics"]:
                body = metric.get("exponentialHistogram") or metric["histogram"]
                for point in body["dataPoints"]:
                    key = (owner, metric["name"], json.dumps(point["attributes"]), point["timeUnixNano"])
                    assert key not in found
                    found[key] = point
    return found


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_layers_are_metrics_of_their_own_from_files_and_stores(kind: str, tmp_path: Path, capsys) -> None:
    logs = layered(tmp_path)
    with grounds(kind, tmp_path) as ground:
        loaded(ground.url, [logs], run="run", reading={"t0": START * SECOND, "fio_version": (3, 33)})
        capsys.readouterr()
        assert command(["export", ground.url, "--format", "otlp"]) == 0
        stored = capsys.readouterr().out
        assert command(["export", ground.url]) == 0, "csv of unlike bins ended with an internal error"
        rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
        assert sum(int(row[-1]) for row in rows) == 2 * SECONDS * RATE
        assert command(["export", ground.url, "--format", "otlp", "--by", "op", "--step", "3s"]) == 0
        summed = capsys.readouterr().out
    assert command(["export", str(logs), "--format", "otlp", *reading()]) == 0
    points, of_files = all_points(stored), all_points(capsys.readouterr().out)
    assert sorted(map(json.dumps, of_files.values())) == sorted(map(json.dumps, points.values()))
    names = Counter(name for _, name, _, _ in points)
    assert names == {"tailboard.client.completion.duration": SECONDS, "tailboard.service.service.duration": SECONDS}
    wide = all_points(summed)
    counted = Counter({(name, int(end) // SECOND): int(point["count"]) for (_, name, _, end), point in wide.items()})
    assert all(end % 3 == 0 for _, end in counted) and set(counted.values()) == {RATE, 2 * RATE, 3 * RATE}
    assert sum(counted.values()) == 2 * SECONDS * RATE
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "metrics.jsonl").write_text(stored)
    again, first = (
        Files([tmp_path / "again"], ReadOptions(), 1),
        Files([logs], ReadOptions(t0=START * SECOND, fio_version=(3, 33)), 1),
    )
    for layer, bound in (("client", 0.0379), ("service", 0)):
        question = Question(where={"layer": layer}, by=("host", "volume", "op", "kind", "tag", "process"), step=SECOND)
        tables = [percentiles(origin.answer(question), Wanted(parse_percentiles("50,100"))).columns for origin in (again, first)]
        for name in (*question.by, "count"):
            assert list(tables[0][name]) == list(tables[1][name]), name
        for name in ("p50", "p100"):
            ratio = np.array(tables[0][name], float) / np.array(tables[1][name], float)
            assert (ratio >= 1 - 1e-9).all() and (ratio <= 1 + bound + 0.0079).all(), "fio's bins report their middles"


def test_what_cannot_be_written_is_said(tmp_path: Path, capsys) -> None:
    log = FIO / "coarse-3" / "a_clat_hist.1.log"
    assert command(["export", str(log), "--format", "otlp", "--attribution", "in-flight"]) == 2
    assert "in-flight weights cannot be written" in capsys.readouterr().err
    (tmp_path / "x_clat.1.log").write_text("".join(f"{at}, 1000, 0, 4096, 0, 0\n" for at in (10, 20, 30)))
    assert command(["export", str(tmp_path / "x_clat.1.log"), "--format", "otlp", "--fio-version", "3.33"]) == 3
    said = capsys.readouterr().err
    assert "no start time is known" in said and "nothing matches the question: no window to write" in said
    assert command(["export", str(tmp_path / "x_clat.1.log"), "--format", "otlp", "--t0", "1900-01-01T00:00:00Z"]) == 3
    assert "before 1970" in capsys.readouterr().err


def test_windows_with_nothing_are_no_points_and_missing_samples_are_named(tmp_path: Path, capsys) -> None:
    """A gap of three windows; of a row of fio's log the bins hold less than its JSON says."""
    (tmp_path / "a_clat.1.log").write_text("".join(f"{at}, 5000, 0, 4096, 0, 0\n" for at in (500, 4500)))
    assert command(["export", str(tmp_path / "a_clat.1.log"), "--format", "otlp", "--step", "1s", *reading()]) == 0
    ends = [int(key[-1]) // SECOND - START for key in all_points(capsys.readouterr().out)]
    assert ends == [1, 5]


def test_no_point_costs_a_look_at_all_others(monkeypatch) -> None:
    """200,000 windows of one host took 98 s of CPU: the samples of a batch were added up once a point."""
    (part,) = Made(random_rows(5)).answer(Question(by=("host", "op", "kind"), step=SECOND)).parts
    sums, row_sums = [], intervals.row_sums
    monkeypatch.setattr(intervals, "row_sums", lambda *asked: (sums.append(len(asked[1])), row_sums(*asked))[1])
    told = b"".join(lines(part, ("host", "op", "kind")))
    assert told.count(b"timeUnixNano") == len(part) > 100 and len(sums) <= 3


def test_a_last_bin_without_an_end_is_named(tmp_path: Path, capsys) -> None:
    rows = [[1000 * at, 1, 4096, *(0 for _ in range(15)), 5 * at, *(0 for _ in range(12)), 2 * at] for at in (1, 2)]
    (tmp_path / "a_clat_hist.1.log").write_text("".join(", ".join(map(str, row)) + "\n" for row in rows))
    assert command(["export", str(tmp_path / "a_clat_hist.1.log"), "--format", "otlp", *reading()]) == 0
    assert "6 samples lie in a last bin without an upper end" in capsys.readouterr().err
