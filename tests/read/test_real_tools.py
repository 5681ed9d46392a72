"""Real tools, where they are installed: what tailboard reads of them equals what they say themselves, or what they were given.

Debian: redis-server, prometheus, postgresql. PyPI: OpenTelemetry's SDK, protobuf, HdrHistogram.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from tests.read.test_histograms import rows

SEED, S, MS, US = 20261123, 10**9, 10**6, 10**3
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
MOST_SECONDS = 30


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark a test that needs programs: it is skipped, and says so, where one is not here."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not here: {', '.join(missing)} (.ci/run installs it)")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def until(happens: Callable[[], object]) -> None:
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        with suppress(OSError):
            if happens():
                return
        time.sleep(0.02)
    raise AssertionError("it did not come up")


@contextmanager
def server(words: list[str], ready: Callable[[], object]) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(ready)
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def sampled(path: Path, *words: str) -> Iterator[None]:
    """Sample while the body runs, from before its first line until after its last."""
    command = [sys.executable, "-m", "ingest", "sample", "--every", "100ms", "--timeout", "20s", "-o", str(path), "--", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def answers() -> int:
        return path.read_text().count('"said"') if path.exists() else 0

    try:
        until(answers)
        yield
        before = path.stat().st_size
        until(lambda: b'"said"' in path.read_bytes()[before:].partition(b"\n")[2])
        process.terminate()
        process.communicate(timeout=MOST_SECONDS)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


# ---- Redis.


@contextmanager
def redis(folder: Path, port: int) -> Iterator[subprocess.Popen]:
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with server(words, lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None) as process:
        yield process


def load(port: int, requests: int) -> None:
    subprocess.run(
        ["redis-benchmark", "-p", str(port), "-n", str(requests), "-t", "get,set", "-q"], check=True, stdout=subprocess.DEVNULL
    )


@pytest.mark.tools
@pytest.mark.slow
@needs("redis-server", "redis-cli", "redis-benchmark")
def test_redis_counts_are_those_of_its_own_statistics(tmp_path: Path) -> None:
    """Oracle: what redis-benchmark was asked to send; CONFIG RESETSTAT loses at most what the polls around it did not see."""
    port, path = free_port(), tmp_path / "redis.ndjson"
    with redis(tmp_path, port):
        with sampled(path, "redis-cli", "-p", str(port), "--json", "latency", "histogram"):
            load(port, 3000)
            load(port, 2000)
        found, account = rows(path)
        by_op: Counter[str] = Counter()
        for series, _, _, bins, _ in found:
            by_op[series.op] += sum(bins.values())
        assert (by_op["get"], by_op["set"]) == (5000, 5000) and not account.missing and not account.rejected
        last = [json.loads(line)["said"] for line in path.read_text().splitlines() if '"said"' in line][-1]
        assert last["get"]["calls"] == 5000


@pytest.mark.tools
@pytest.mark.slow
@needs("redis-server", "redis-cli", "redis-benchmark")
def test_redis_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Polls fail meanwhile; the counts of both lives are there, and the gap is told."""
    port, path = free_port(), tmp_path / "redis.ndjson"
    with ExitStack() as lives:
        first = lives.enter_context(redis(tmp_path, port))
        with sampled(path, "redis-cli", "-p", str(port), "--json", "latency", "histogram"):
            load(port, 1000)
            before = path.stat().st_size
            until(lambda: path.read_bytes()[before:].count(b'"said"') >= 2)
            first.kill()
            first.wait()
            until(lambda: b'"error"' in path.read_bytes())
            lives.enter_context(redis(tmp_path, port))
            load(port, 700)
        found, account = rows(path)
    assert sum(sum(bins.values()) for series, _, _, bins, _ in found if series.op == "get") == 1700
    assert {lost.caveat.code for lost in account.missing} >= {"counter-reset"}


# ---- Prometheus.


@contextmanager
def prometheus(folder: Path, port: int) -> Iterator[str]:
    (folder / "p.yml").write_text(
        f"global: {{scrape_interval: 300ms, scrape_timeout: 300ms}}\nscrape_configs: [{{job_name: p, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    base = f"http://127.0.0.1:{port}"
    words = [
        "prometheus",
        f"--config.file={folder / 'p.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with server(words, lambda: urllib.request.urlopen(f"{base}/-/ready", timeout=1).status == 200) as process:
        yield base
        process.terminate()
        process.wait(MOST_SECONDS)


def scraped(base: str, series: str) -> int:
    """How many requests its own database says it has served."""
    query = urllib.parse.quote(series.replace("}", ',le="+Inf"}'))
    result = json.loads(urllib.request.urlopen(f"{base}/api/v1/query?query={query}").read())["data"]["result"]
    return int(result[0]["value"][1]) if result else 0


@pytest.mark.tools
@pytest.mark.slow
@needs("prometheus", "promtool", "curl")
def test_prometheus_by_exposition_query_and_dump(tmp_path: Path) -> None:
    """Oracles: the number of requests that were made, what promtool asks of the database; its dump says the same."""
    path, name = tmp_path / "metrics.ndjson", "prometheus_http_request_duration_seconds"
    with prometheus(tmp_path, free_port()) as base:
        wanted = f'{name}_bucket{{handler="/-/healthy"}}'
        urllib.request.urlopen(f"{base}/-/healthy").read()
        until(lambda: scraped(base, wanted) == 1)
        with sampled(path, "curl", "-sf", f"{base}/metrics"):
            for _ in range(57):
                urllib.request.urlopen(f"{base}/-/healthy").read()
        until(lambda: scraped(base, wanted) == 58)
        told = subprocess.run(
            ["promtool", "query", "instant", "-o", "json", base, f"{wanted}[1m]"], check=True, capture_output=True, text=True
        ).stdout
        quoted = urllib.parse.quote(f"{wanted}[1m]")
        answer = urllib.request.urlopen(f"{base}/api/v1/query?query={quoted}").read()
    found, account = rows(path)
    healthy = [bins for series, _, _, bins, _ in found if "handler=/-/healthy" in series.tag and series.tag.startswith(name)]
    assert sum(sum(bins.values()) for bins in healthy) == 57 and not account.missing
    (tmp_path / "answer.json").write_bytes(answer)
    asked, _ = rows(tmp_path / "answer.json")
    top = next(series for series in json.loads(told) if series["metric"]["le"] == "+Inf")
    counts = [int(float(value)) for _, value in top["values"]]
    assert sum(sum(bins.values()) for *_, bins, _ in asked) == counts[-1] - counts[0] == 57
    dump = subprocess.run(
        ["promtool", "tsdb", "dump", str(tmp_path / "tsdb"), f"--match={wanted}"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "dump.txt").write_text(dump)
    dumped, _ = rows(tmp_path / "dump.txt")
    by_end = {end: bins for _, _, end, bins, _ in dumped}
    assert all(by_end[end] == bins for _, start, end, bins, _ in asked[1:])


# ---- pgbench.


@contextmanager
def postgres() -> Iterator[tuple[Path, Callable[..., str]]]:
    """A server of its own in a folder that its user may enter; it does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder.chmod(0o777)
    programs = POSTGRES[-1].parent

    def called(program: str, *words: str) -> str:
        done = subprocess.run([*as_user, str(programs / program), *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    data = str(folder / "data")
    try:
        called("initdb", "-D", data, "--no-sync", "-A", "trust", "-U", "postgres")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB"
        subprocess.run(
            [*as_user, str(programs / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield folder, called
    finally:
        with suppress(AssertionError):
            called("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.tools
@pytest.mark.slow
@pytest.mark.skipif(not POSTGRES, reason="not here: postgresql (.ci/run installs it)")
def test_pgbench_is_what_its_summary_says() -> None:
    """Counts exact; its averages within their last digit. The rate is so high that many transactions wait."""
    with postgres() as (folder, called):
        called("pgbench", "-h", str(folder), "-U", "postgres", "-i", "-s", "1", "-q")
        summary = called(
            "pgbench",
            "-h",
            str(folder),
            "-U",
            "postgres",
            "-l",
            "-R",
            "400",
            "-t",
            "150",
            "-c",
            "4",
            "-j",
            "2",
            "-n",
            f"--log-prefix={folder}/pgbench_log",
            "postgres",
        )
        logs = sorted(folder.glob("pgbench_log.*"))
        assert len(logs) == 2
        answer = Files(logs, ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("kind",), where={"kind": "*"}))
    found = {
        part.table[code][0]: (int(part.samples[at]), int(part.exact.sum_ns[at]), int(part.exact.max_ns[at]))
        for part in answer.parts
        for at, code in enumerate(part.series)
    }

    def told(pattern: str) -> float:
        match = re.search(pattern, summary)
        assert match, summary
        return float(match[1])

    assert {found[kind][0] for kind in ("response", "service", "wait")} == {600} == {int(told(r"processed: (\d+)"))}
    assert found["response"][1] / 600 / MS == pytest.approx(told(r"latency average = ([\d.]+) ms"), abs=0.0011)
    assert found["wait"][1] / 600 / MS == pytest.approx(told(r"schedule lag: avg ([\d.]+)"), abs=0.0011)
    assert found["wait"][2] / MS == pytest.approx(told(r"schedule lag: avg [\d.]+ \(max ([\d.]+)\)"), abs=0.0011)
    assert found["response"][1] - found["wait"][1] == found["service"][1]


# ---- OpenTelemetry.


@pytest.mark.tools
@pytest.mark.parametrize("temporality", ["DELTA", "CUMULATIVE"])
def test_opentelemetry_holds_what_was_recorded(tmp_path: Path, temporality: str) -> None:
    """Oracles: the values themselves, bin by bin, and protobuf's own reading of the file."""
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.common.metrics_encoder",
        reason="OpenTelemetry's SDK is not here: it is among the dev extras",
    )
    from google.protobuf import json_format
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.sdk.metrics import Histogram, MeterProvider
    from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
    from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View

    kept = {Histogram: getattr(AggregationTemporality, temporality)}
    reader = InMemoryMetricReader(preferred_temporality=kept)
    views = [View(instrument_name="exp.latency", aggregation=ExponentialBucketHistogramAggregation(max_size=40))]
    provider = MeterProvider(metric_readers=[reader], views=views)
    meter = provider.get_meter("m")
    exponential, explicit = meter.create_histogram("exp.latency", unit="ms"), meter.create_histogram("classic.latency", unit="ms")
    chance, lines, windows = random.Random(SEED), [], []
    for width in (1.0, 3.0, 0.2):  # the second window is wider: the scale falls
        values = [chance.lognormvariate(1, width) for _ in range(300)]
        for value in values:
            exponential.record(value, {"op": "read"})
            explicit.record(value, {"op": "read"})
        windows.append(values)
        lines.append(json_format.MessageToJson(encode_metrics(reader.get_metrics_data()), indent=None))
    provider.shutdown()
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    found, account = rows(path)
    for tag in ("exp.latency", "classic.latency"):
        mine = sorted(
            ((end, bins, layout) for series, _, end, bins, layout in found if series.tag == tag), key=lambda row: row[0]
        )
        assert len(mine) == 3
        for (_, bins, layout), values in zip(mine, windows):
            places = layout.index([int(value * MS) for value in values])
            wanted = Counter(int(layout.values[place]) for place in places)
            assert sum((wanted - Counter(bins)).values()) <= 2  # within half a ns of an edge
            assert sum(bins.values()) == 300
    points = [json_format.Parse(line, ExportMetricsServiceRequest()) for line in lines]
    counts = [
        point.count
        for request in points
        for metric in request.resource_metrics[0].scope_metrics[0].metrics
        for point in (*metric.histogram.data_points, *metric.exponential_histogram.data_points)
    ]
    assert sum(counts) == (1800 if temporality == "DELTA" else 2 * (300 + 600 + 900)) and account.samples == 1800
    assert not account.rejected and not account.missing


# ---- HdrHistogram inside JSON.


@pytest.mark.tools
def test_hdrhistogram_of_python_inside_json(tmp_path: Path) -> None:
    """Oracle: the library's own counts by value, for memtier's encoded text and for cockroach's plain counts."""
    library = pytest.importorskip("hdrh.histogram", reason="hdrhistogram is not here: it is among the dev extras")
    chance = random.Random(SEED)
    microseconds = library.HdrHistogram(1, 60_000_000, 3)
    nanoseconds = library.HdrHistogram(100_000, 100_000_000_000, 1)
    for _ in range(4000):
        microseconds.record_value(min(int(chance.lognormvariate(7, 2)), 59_000_000))
        nanoseconds.record_value(int(chance.lognormvariate(15, 2)) + 100_000)
    wanted = {
        (entry.value_iterated_to + 1) * US - 1: entry.count_added_in_this_iter_step
        for entry in microseconds.get_recorded_iterator()
    }
    text = microseconds.encode().decode()
    memtier = {
        "run information": {},
        "ALL STATS": {
            "Runtime": {"Start time": 1_700_000_000_000, "Finish time": 1_700_000_005_000},
            "Gets": {"Count": 4000, "Percentile Latencies": {"Histogram log format": {"Compressed Histogram": text}}},
        },
    }
    (tmp_path / "m.json").write_text(json.dumps(memtier))
    [(_, _, _, bins, layout)], _ = rows(tmp_path / "m.json")
    upper = {int(layout.edges[layout.index([value])[0] + 1]) - 1: count for value, count in bins.items()}
    assert upper == wanted
    answer = Files([tmp_path / "m.json"], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    assert int(answer.parts[0].samples.sum()) == microseconds.get_total_count()
    counts = [nanoseconds.get_count_at_index(index) for index in range(nanoseconds.counts_len)]
    snapshot = {
        "LowestTrackableValue": 100_000,
        "HighestTrackableValue": 100_000_000_000,
        "SignificantFigures": 1,
        "Counts": counts,
    }
    tick = {"Name": "read", "Hist": snapshot, "Elapsed": S, "Now": "2026-11-22T06:00:01Z"}
    (tmp_path / "c.ndjson").write_text(json.dumps(tick) + "\n")
    [(_, _, _, bins, layout)], _ = rows(tmp_path / "c.ndjson")
    wanted = {entry.value_iterated_to: entry.count_added_in_this_iter_step for entry in nanoseconds.get_recorded_iterator()}
    assert {int(layout.edges[layout.index([value])[0] + 1]) - 1: count for value, count in bins.items()} == wanted


@pytest.mark.tools
@pytest.mark.slow
@needs("redis-server", "redis-cli")
def test_a_sample_of_a_real_server_is_loaded_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port, path = free_port(), tmp_path / "redis.ndjson"
    with redis(tmp_path, port), sampled(path, "redis-cli", "-p", str(port), "--json", "latency", "histogram"):
        for _ in range(3):
            subprocess.run(["redis-cli", "-p", str(port), "ping"], check=True, stdout=subprocess.DEVNULL)
    store = f"sqlite:{tmp_path / 'x.db'}"
    assert tailboard(["load", str(path), "--run", "r", "--store", store]) == 0
    capsys.readouterr()
    assert tailboard(["percentiles", store, "--step", "all", "--by", "op", "--format", "csv"]) == 0
    assert re.search(r"(?m),ping,.*\b3\b", capsys.readouterr().out)
