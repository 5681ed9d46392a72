"""Samples of a server that span the runs of an archive: each run has what was sampled in its time, and nothing counts twice."""

from __future__ import annotations

import json
import os
import random
import tarfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.placement import discover
from ingest.read.sources import Found, ReadOptions
from ingest.store import Store, open_store
from tests.commands import tailboard

CBT = Path(__file__).parents[1] / "data" / "cbt"
START, POLLS, RATE = int(datetime(2026, 11, 22, 6, 52, 30, tzinfo=UTC).timestamp()), 80, 500
RUNS = [  # by the JSON of fio in the archive: the earliest start, and the latest start + runtime, in s since START
    f"B/00000000/id-2b63de81/{workload}/numjobs-001/total_iodepth-{depth}"
    for workload in ("4krandomwrite", "16k7030")
    for depth in (3, 8)
]
ENDS = [100_000 << power for power in range(31)]


def polled(path: Path, every: int = 1, polls: Sequence[int] = range(POLLS), host: str = "osd1") -> Path:
    """Write polls of an OSD whose counts grow by RATE a second; second s adds operations of one octave, s % 5 above the first."""
    rolled = random.Random(1)
    ranges = [
        {"max": -1}, {"min": 0, "max": ENDS[0] - 1}, *({"min": low, "max": 2 * low - 1} for low in ENDS[:-1]), {"min": ENDS[-1]}
    ]  # fmt: skip
    counts, lines = [0] * len(ranges), []
    for second in range(POLLS):
        if second:
            counts[3 + second % 5] += RATE
        if second in polls and second % every == 0:
            dump = {
                "osd": {
                    "op_w_latency_in_bytes_histogram": {
                        "axes": [{"name": "Latency (usec)", "ranges": ranges}],
                        "values": list(counts),
                    }
                }
            }
            lines.append(json.dumps({"sampled_at": START + second, "host": host, "daemon": "osd.0", "dump": dump}))
    rolled.shuffle(lines)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return CBT's archive of four runs, one after another."""
    folder = tmp_path_factory.mktemp("cbt")
    with tarfile.open(CBT / "B.tar.xz") as tar:
        wanted = [
            one
            for one in tar
            if one.isfile()
            and "collectl" not in one.name
            and ".log" not in one.name.replace("clat_hist", "")
            or "clat_hist" in one.name
        ]
        tar.extractall(folder, wanted, filter="data")
    return folder / "B"


def spans(found: Found) -> dict[str, tuple[float, float]]:
    """Return begin and end of each run of clients in seconds since START, from fio's JSON."""
    seen: dict[str, tuple[float, float]] = {}
    for source in found.sources:
        context = source.context
        if context.runtime_ns and context.zero.epoch_ns is not None:
            begin = context.zero.epoch_ns / 1e9 - START
            low, high = seen.get(context.series.run, (begin, begin))
            seen[context.series.run] = min(low, begin), max(high, begin + context.runtime_ns / 1e9)
    return seen


def samples_by_second(source: Files | Store, run: str, layer: str = "service") -> dict[int, int]:
    """Return the server's samples of a run by the second in which they were done, since START."""
    question = Question(runs=(run,), where={"layer": layer}, step=10**9)
    table = percentiles(source.answer(question), Wanted(parse_percentiles("50"))).columns
    starts = (
        [value // 10**9 - START for value in table["start_ns"].tolist()]
        if "start_ns" in table
        else [round(value) - START for value in table["start"].tolist()]
    )
    return {start: count for start, count in zip(starts, table["count"].tolist(), strict=True) if count}


def test_each_run_has_what_was_sampled_in_its_time(archive: Path, tmp_path: Path) -> None:
    files = Files([archive, polled(tmp_path / "osd.ndjson")], jobs=1)
    of_runs = spans(discover([archive], ReadOptions()))
    assert sorted(of_runs) == sorted(RUNS)
    assert {source.context.series.run for source in files.found.sources} == set(RUNS)
    for run, (begin, end) in of_runs.items():
        # Second s holds what was done in (s, s + 1]: an operation counts where most of its second lies.
        expected = {second: RATE for second in range(POLLS - 1) if second + 1 > begin and second < end}
        assert samples_by_second(files, run) == expected
    [said] = {caveat.sentence for caveat in files.found.caveats if caveat.code == "servers-of-runs"}
    assert said == (
        "sampled beside 4 runs: each has what was sampled in its time, and what was sampled between and around them is in none"
    )


def exposition(path: Path) -> None:
    """Write scrapes of a Prometheus target, one a second, whose counts grow by RATE."""
    text = ""
    for second in range(POLLS):
        text += "# TYPE op_seconds histogram\n"
        for edge, count in (("0.001", second * RATE // 5), ("0.01", second * RATE), ("+Inf", second * RATE)):
            text += f'op_seconds_bucket{{host="osd1",layer="service",le="{edge}"}} {count} {(START + second) * 1000}\n'
    path.write_text(text)


def telemetry(path: Path) -> None:
    """Write cumulative histograms of OpenTelemetry, one a second, whose counts grow by RATE."""

    def attributes(**words: str) -> list[dict[str, object]]:
        return [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in words.items()]

    def line(second: int) -> dict[str, object]:
        point = {
            "attributes": attributes(layer="service"),
            "startTimeUnixNano": str(START * 10**9),
            "timeUnixNano": str((START + second) * 10**9),
            "count": str(second * RATE),
            "bucketCounts": [str(second * RATE // 5), str(second * RATE - second * RATE // 5), "0"],
            "explicitBounds": [1, 10],
        }
        metric = {"name": "op.latency", "unit": "ms", "histogram": {"aggregationTemporality": 2, "dataPoints": [point]}}
        scopes = [{"scope": {"name": "m"}, "metrics": [metric]}]
        return {"resourceMetrics": [{"resource": {"attributes": attributes(host_name="osd1")}, "scopeMetrics": scopes}]}

    path.write_text("".join(json.dumps(line(second)) + "\n" for second in range(POLLS)))


def traced(path: Path) -> None:
    """Write what `biolatency -D -T 1` prints of a disk that does RATE operations a second; its file says the day."""
    text = "Tracing block device I/O... Hit Ctrl-C to end.\n"
    for second in range(1, POLLS):
        rows = f"{2:10d} -> {3:<10d} : {RATE // 5:<8d} |****|\n{4:10d} -> {7:<10d} : {RATE - RATE // 5:<8d} |****|\n"
        text += f"\n{datetime.fromtimestamp(START + second, tz=UTC):%H:%M:%S}\ndisk = 'sda'\n"
        text += f"     usecs               : count     distribution\n{0:10d} -> {1:<10d} : {0:<8d} |    |\n{rows}"
    path.write_text(text)
    os.utime(path, (START + POLLS - 1, START + POLLS - 1))


WRITERS = {exposition: "service", telemetry: "service", traced: "device"}


@pytest.mark.cases(3)
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_other_servers_are_cut_alike(archive: Path, tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(path := tmp_path / "server.txt")
    files = Files([archive, path], jobs=1)
    with open_store(f"sqlite:{tmp_path / 'x.db'}", write=True) as store:
        load([archive, path], store, LoadOptions(read=ReadOptions(), jobs=1))
        for run, (begin, end) in spans(discover([archive], ReadOptions())).items():
            expected = {second: RATE for second in range(POLLS - 1) if second + 1 > begin and second < end}
            assert samples_by_second(files, run, WRITERS[write]) == expected
            assert samples_by_second(store, run, WRITERS[write]) == expected


@pytest.mark.parametrize("every", [3, 7])
def test_a_poll_that_spans_two_runs_counts_once(archive: Path, tmp_path: Path, every: int) -> None:
    files = Files([archive, polled(tmp_path / "osd.ndjson", every)], jobs=1)
    seen: dict[int, int] = {}
    for run in RUNS:
        answer = files.answer(Question(runs=(run,), where={"layer": "service"}, by=("host",), step=every * 10**9))
        table = percentiles(answer, Wanted(parse_percentiles("50"))).columns
        assert set(table["host"].tolist()) == {"osd1"}
        seen[RUNS.index(run)] = int(sum(table["count"].tolist()))
    whole = RATE * (POLLS - 1) // every * every
    of_runs = spans(discover([archive], ReadOptions()))
    assert sum(seen.values()) <= whole
    for number, run in enumerate(RUNS):
        begin, end = of_runs[run]
        assert abs(seen[number] - RATE * (end - begin)) <= 2 * RATE * every


@pytest.mark.slow
def test_both_stores_and_files_say_the_same(archive: Path, tmp_path: Path) -> None:
    osd = polled(tmp_path / "osd.ndjson")
    files = Files([archive, osd], jobs=1)
    with open_store(f"sqlite:{tmp_path / 'x.db'}", write=True) as store:
        told = load([archive, osd], store, LoadOptions(read=ReadOptions(), jobs=1))
        again = load([archive, osd], store, LoadOptions(read=ReadOptions(), jobs=1))
        assert again.loaded == 0
        of_runs = {run: samples_by_second(files, run) for run in RUNS}
        assert {run: samples_by_second(store, run) for run in RUNS} == of_runs
        clients = sum(source.context.account.samples for source in told.sources if source.path != osd)
        assert told.rows.samples == clients + sum(sum(seconds.values()) for seconds in of_runs.values())
        assert {record.run for record in store.runs()} == set(RUNS)


def test_one_run_has_all_of_it(archive: Path, tmp_path: Path) -> None:
    [folder] = (archive / "results" / "00000000").glob("id-*")
    parts = sorted(folder.glob("4krandomwrite.*/numjobs-001/total_iodepth-3"))
    files = Files([*parts, polled(tmp_path / "osd.ndjson")], jobs=1)
    [run] = {source.context.series.run for source in files.found.sources}
    assert sum(samples_by_second(files, run).values()) == RATE * (POLLS - 1)


def test_explain_looks_below_the_runs_of_an_archive(archive: Path, tmp_path: Path) -> None:
    text = tailboard("explain", archive, polled(tmp_path / "osd.ndjson"), "--run", RUNS[1]).stdout
    assert "below it: service" in text


@pytest.mark.slow
def test_where_runs_cannot_be_told_apart_in_time_nothing_is_guessed(archive: Path, tmp_path: Path) -> None:
    bare = tmp_path / "B"
    for log in archive.rglob("*total_iodepth-8/**/*_clat_hist.1.log"):
        target = bare / log.relative_to(archive)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(log.read_bytes())
    osd = polled(tmp_path / "osd.ndjson")
    found = discover([bare, osd], ReadOptions())
    [own] = [source for source in found.sources if source.path == osd]
    assert own.context.part is None
    assert own.context.series.run not in {source.context.series.run for source in found.sources if source is not own}
    [said] = [caveat.sentence for caveat in found.caveats if caveat.code == "servers-of-runs"]
    assert said.endswith("when these runs began and ended is not known, so its samples are a run of their own")
    twice = tmp_path / "twice"  # the same archive again, an hour later by nobody's clock: the runs went on at the same time
    for name in ("one", "two"):
        for file in archive.rglob("*"):
            if file.is_file() and "id-" in str(file) and ("client1" in str(file) or file.suffix == ".yaml"):
                target = twice / name / file.relative_to(archive)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes().replace(b"client1", f"client{name}".encode()))
    found = discover([twice / "one", twice / "two", osd], ReadOptions())
    [said] = [caveat.sentence for caveat in found.caveats if caveat.code == "servers-of-runs"]
    assert said.endswith("some of these runs went on at the same time, so its samples are a run of their own")
