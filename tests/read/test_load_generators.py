"""Files of load generators are known by their beginning; counts, extremes and failures are those that the tool itself printed."""

from __future__ import annotations

import csv
import hashlib
import json
import lzma
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.cli import run as tailboard
from ingest.core.errors import InputError
from ingest.read.described.description import description_of, presets
from ingest.read.formats import described
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

DATA = Path("tests/data").resolve()
VEGETA = [DATA / "generators" / f"vegeta-r{number}.csv" for number in (1, 2)]


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, str]]:
    """Return the rows of percentiles of some files, without any word on their format."""
    assert tailboard(["percentiles", *map(str, words), "--step", "all", "--format", "csv"]) == 0
    return list(csv.DictReader(capsys.readouterr().out.splitlines()))


def of_json(name: str) -> Any:
    return json.loads((DATA / "generators" / name).read_text())


def inspected(capsys: pytest.CaptureFixture[str], path: Path) -> dict[str, Any]:
    assert tailboard(["inspect", str(path), "--format", "ndjson"]) == 0
    [first, *_] = capsys.readouterr().out.splitlines()
    return dict(json.loads(first))


KNOWN = {
    "failures/jmeter.csv": ("jmeter", 240),
    "failures/vegeta.csv": ("vegeta", 240),
    "failures/hey.csv": ("hey", 240),
    "failures/locust.csv": ("locust", 190),
    "generators/vegeta-r1.csv": ("vegeta", 180),
    "generators/vegeta-r2.json": ("vegeta-json", 180),
    "generators/ioping.json": ("ioping", 39),
    "generators/gatling.log": ("gatling", 320),
    "generators/ghz.json": ("ghz", 200),
    "generators/ghz-pretty.json": ("ghz", 200),
    "generators/aiperf.jsonl.xz": ("aiperf", 200),
    "generators/k6-r1.csv.xz": ("k6-csv", 325),
    "generators/k6-r1.json.xz": ("k6-json", 325),
    "generators/fortio.access.json": ("fortio", 300),
    "generators/vllm.json.xz": ("vllm", 200),
    "generators/oha-r1.csv": ("oha", 200),
    "generators/elbencho-r1.json": ("elbencho", 512),
    "generators/cyclictest.json": ("cyclictest", 2000),
    "generators/cyclictest-ns.json": ("cyclictest", 500),
    "histograms/redis70_latency_histogram.ndjson": ("redis-latency", 35_775),
    "histograms/sysbench1020_histogram.txt": ("sysbench", 6057),
}


@pytest.mark.parametrize("file", KNOWN)
@pytest.mark.parametrize("renamed", [False, True], ids=["its name", "another name"])
def test_d2_inspect_names_the_tool_without_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, renamed: bool
) -> None:
    path = DATA / file
    if renamed:
        path = tmp_path / ("what.dat.xz" if file.endswith(".xz") else "what.dat")
        path.write_bytes((DATA / file).read_bytes())
    row = inspected(capsys, path)
    assert (row["format"], row["samples"], row["rejected"]) == (*KNOWN[file], {})


def test_d2_each_description_that_files_are_recognised_for_has_a_recording_here() -> None:
    assert {entry.name for entry in described()} == {name for name, _ in KNOWN.values()}


def test_d2_vegeta_counts_what_its_report_does(capsys: pytest.CaptureFixture[str]) -> None:
    for file, total in ((VEGETA[0], "r1"), (VEGETA[1], "r2"), (DATA / "generators" / "vegeta-r2.json", "r2")):
        said = of_json(f"vegeta-{total}.total.json")
        [row] = answer(capsys, file, "--failures", "ignore")
        assert int(row["count"]) == said["status_codes"]["200"]
        [row] = answer(capsys, file)
        assert (int(row["count"]), int(row["failed"])) == (said["requests"], said["status_codes"]["503"])
        rows = answer(capsys, file, "--failures", "apart")
        assert max(int(row["max"]) for row in rows) == said["latencies"]["max"]
        assert min(int(row["min"]) for row in rows) == said["latencies"]["min"]
        assert abs(sum(float(row["mean"]) * int(row["count"]) for row in rows) - said["latencies"]["total"]) < 1


def test_d2_gatling_counts_what_its_report_does(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "generators" / "gatling.log"
    for said in of_json("gatling.total.json"):
        asked = () if said["name"] == "All Requests" else ("--where", f"op={said['name']}")
        [row] = answer(capsys, path, *asked)
        assert (int(row["count"]), int(row["failed"])) == (said["numberOfRequests"]["total"], said["numberOfRequests"]["ko"])
        rows = answer(capsys, path, *asked, "--failures", "apart")
        for row, of in zip(sorted(rows, key=lambda row: row["outcome"], reverse=True), ("ok", "ko"), strict=True):
            assert int(row["count"]) == said["numberOfRequests"][of]
            low, high = (int(row[name]) // 10**6 for name in ("min", "max"))
            assert (low, high) == (said["minResponseTime"][of], said["maxResponseTime"][of])
            assert abs(float(row["mean"]) / 10**6 - said["meanResponseTime"][of]) <= 0.5


@pytest.mark.parametrize("change", ["nested groups", "all users begin at once", "a message with quotes"])
def test_d2_lines_of_gatling_that_are_no_requests_decide_nothing(
    change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns are counted in the lines that `where` takes, wherever the first of them is; nothing is quoted."""
    first, *lines = (DATA / "generators" / "gatling.log").read_text().splitlines(keepends=True)
    if change == "nested groups":
        lines = [again for line in lines for again in [line] * (1 + 4 * line.startswith("GROUP"))]
    elif change == "all users begin at once":
        lines = [line for line in lines if line.startswith("USER")] * 60 + [line for line in lines if not line.startswith("USER")]
    else:
        lines = [line.replace("but actually found", 'j.l.E: "but found') for line in lines]
    path = tmp_path / "simulation.log"
    path.write_text("".join([first, *lines]))
    [row] = answer(capsys, path)
    assert (row["count"], row["failed"], row["complete"]) == ("320", "21", "true")


def test_d2_loadgen_counts_what_its_summary_does(capsys: pytest.CaptureFixture[str]) -> None:
    """MLPerf LoadGen's trace is a Chrome trace: a sample is from when it was due to its completion."""
    said = dict(
        re.findall(
            r"^(M\w+) latency \(ns\) *: (\d+)$", (DATA / "generators/mlperf_log_summary.total.txt").read_text(), re.MULTILINE
        )
    )
    [row] = answer(capsys, DATA / "generators" / "mlperf_log_trace.json.xz", "--where", "op=sample")
    assert (row["count"], row["min"], row["max"]) == ("190", said["Min"], said["Max"])
    assert int(float(row["mean"])) == int(said["Mean"])


@pytest.mark.parametrize("compressed", [False, True])
def test_d2_runners_are_merged_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str], compressed: bool) -> None:
    """The p95 of two runners is that of all their requests, not a mean of two percentiles."""
    import gzip

    files = VEGETA
    if compressed:
        files = [tmp_path / f"{file.name}.gz" for file in VEGETA]
        for file, packed in zip(VEGETA, files, strict=True):
            packed.write_bytes(gzip.compress(file.read_bytes()))
    each = [
        np.sort([int(line.split(",")[2]) for line in file.read_text().splitlines() if line.split(",")[1] == "200"])
        for file in VEGETA
    ]
    both = np.sort(np.concatenate(each))
    rows = answer(capsys, *files, "--failures", "ignore", "-p", "50,90,95")
    assert [int(row["count"]) for row in rows] == [len(both)]
    for text in ("50", "90", "95"):
        exact = both[-(-len(both) * int(text) // 100) - 1]
        assert abs(float(rows[0][f"p{text}"]) / exact - 1) <= 1 / 128
    said = of_json("vegeta-both.total.json")
    [row] = answer(capsys, *files)
    assert (int(row["count"]), int(row["failed"])) == (said["requests"], said["requests"] - said["status_codes"]["200"])


def test_d2_ioping_counts_what_it_says_itself(capsys: pytest.CaptureFixture[str]) -> None:
    said = of_json("ioping.json")[-1]["stat"]
    [row] = answer(capsys, DATA / "generators" / "ioping.json")
    assert (int(row["count"]), int(row["min"]), int(row["max"])) == (said["count"], said["min"], said["max"])
    assert int(float(row["mean"])) == pytest.approx(said["avg"], abs=1)


@pytest.mark.parametrize("name", ["ghz.json", "ghz-pretty.json"])
def test_d2_ghz_counts_what_it_says_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    said, file = of_json(name), DATA / "generators" / name
    [row] = answer(capsys, file, "--by", "op", "-p", "50")
    assert (int(row["count"]), row["op"]) == (said["count"], said["options"]["call"].lower())
    rows = {row["outcome"]: row for row in answer(capsys, file, "--failures", "apart", "-p", "50,90")}
    assert int(rows["ok"]["count"]) == said["statusCodeDistribution"]["OK"]
    assert (int(rows["ok"]["min"]), int(rows["ok"]["max"])) == (said["fastest"], said["slowest"])
    mean = sum(float(row["mean"]) * int(row["count"]) for row in rows.values()) / said["count"]
    assert mean == pytest.approx(said["average"], abs=1)
    of_ghz = {entry["percentage"]: entry["latency"] for entry in said["latencyDistribution"]}
    assert float(rows["ok"]["p50"]) == pytest.approx(of_ghz[50], rel=1 / 128)


def test_d2_a_document_that_breaks_off_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "ghz.json").write_bytes((DATA / "generators" / "ghz-pretty.json").read_bytes()[:20_000])
    with pytest.raises(InputError, match="holds no operation that can be read: no JSON object"):
        discover([tmp_path / "ghz.json"], ReadOptions())


def test_d2_requests_to_a_model_and_their_first_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    """AIPerf's latency is by another clock than its two stamps: 55 us apart here, on average."""
    said, file = of_json("aiperf.total.json"), DATA / "generators" / "aiperf.jsonl.xz"
    rows = {row["outcome"]: row for row in answer(capsys, file, "--failures", "apart")}
    assert (
        int(rows["ok"]["count"]) == said["request_count"]["avg"]
        and int(rows["failed"]["count"]) == said["error_request_count"]["avg"]
    )
    for name, word in (("min", "min"), ("max", "max"), ("mean", "avg")):
        assert float(rows["ok"][name]) == pytest.approx(said["request_latency"][word] * 10**6, abs=10**5)
    [row] = answer(capsys, file, "--input-format", "aiperf-first-token", "--by", "kind")
    first = said["time_to_first_token"]
    assert (row["kind"], int(row["count"])) == ("first-token", first["count"])
    assert (int(row["min"]), int(row["max"])) == (round(first["min"] * 10**6), round(first["max"] * 10**6))
    assert float(row["mean"]) == pytest.approx(first["avg"] * 10**6, abs=1)


def test_d2_requests_of_guidellm_count_what_its_report_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report itself is refused, with the program that makes csv of it."""
    report = tmp_path / "benchmarks.json"
    report.write_bytes(lzma.decompress((DATA / "generators" / "guidellm.json.xz").read_bytes()))
    with pytest.raises(InputError, match=r"a report of GuideLLM.*examples/guidellm\.py writes them as csv"):
        discover([report], ReadOptions())
    program = DATA.parents[1] / "examples" / "guidellm.py"
    requests = subprocess.run([sys.executable, program, report], capture_output=True, check=True).stdout
    (tmp_path / "requests.csv").write_bytes(requests)
    rows = {row["outcome"]: row for row in answer(capsys, tmp_path / "requests.csv", "--failures", "apart")}
    [benchmark] = json.loads(report.read_text())["benchmarks"]
    said = benchmark["metrics"]["request_totals"]
    assert (int(rows["ok"]["count"]), int(rows["failed"]["count"])) == (said["successful"], said["errored"]) == (190, 10)
    own = benchmark["metrics"]["request_latency"]["successful"]
    for name in ("min", "max", "mean"):
        assert float(rows["ok"][name]) == pytest.approx(own[name] * 10**9, abs=1000)


@pytest.mark.parametrize("name", ["cyclictest.json", "cyclictest-ns.json"])
def test_d2_cyclictest_counts_what_it_says_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    document = of_json(name)
    unit = 1 if document["resolution_in_ns"] else 1000
    rows = answer(capsys, DATA / "generators" / name, "--by", "process", "-p", "50,90")
    assert {row["process"]: int(row["count"]) for row in rows} == {
        key: thread["cycles"] for key, thread in document["thread"].items()
    }
    for row in rows:
        thread = document["thread"][row["process"]]
        values = np.repeat([int(key) for key in thread["histogram"]], list(thread["histogram"].values()))
        assert int(row["max"]) == (thread["max"] + 1) * unit - 1
        assert int(row["p50"]) == (np.sort(values)[-(-len(values) // 2) - 1] + 1) * unit - 1


def test_d2_a_cyclictest_whose_histogram_overflowed_lacks_samples_and_is_refused() -> None:
    with pytest.raises(InputError, match="do not add up to the number of samples beside them"):
        discover([DATA / "generators" / "cyclictest-overflow.json"], ReadOptions())


K6_SUBMETRICS = {
    "": (),
    "{expected_response:true}": ("--where", "outcome=ok"),
    "{expected_response:false}": ("--where", "outcome=failed"),
    "{name:item}": ("--where", "op=item"),
    "{scenario:browse}": ("--where", "job=browse"),
    "{scenario:buy}": ("--where", "job=buy"),
}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_d2_k6_counts_what_its_summary_does(capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Of all requests, those that failed, and those of a name or a scenario; some failed without a connection, at 0 ns."""
    said = of_json("k6-r1.total.json")["metrics"]
    for of, asked in K6_SUBMETRICS.items():
        own = said[f"http_req_duration{of}"]
        rows = answer(capsys, DATA / "generators" / f"k6-r1.{form}.xz", "--failures", "apart", *asked)
        assert sum(int(row["count"]) for row in rows) == own["count"]
        assert min(int(row["min"]) for row in rows) == round(own["min"] * 10**6)
        assert max(int(row["max"]) for row in rows) == round(own["max"] * 10**6)
        mean = sum(float(row["mean"]) * int(row["count"]) for row in rows) / own["count"]
        assert mean == pytest.approx(own["avg"] * 10**6, abs=1)
    assert said["http_req_failed"]["passes"] == said["http_req_duration{expected_response:false}"]["count"] == 26


def k6_durations(name: str) -> tuple[list[str], dict[str, str]]:
    """Return k6's rows of durations, and one of them by its columns."""
    first, *lines = lzma.decompress((DATA / "generators" / name).read_bytes()).decode().splitlines()
    rows = [line for line in lines if line.startswith("http_req_duration,")]
    return [first, *rows], dict(zip(first.split(","), next(csv.reader(rows)), strict=True))


def test_d2_the_p95_of_k6_runners_is_that_of_all_their_requests(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"k6-r{number}.csv.xz" for number in (1, 2)]
    rows = [row for name in names for row in csv.DictReader(k6_durations(name)[0])]
    good = np.sort([float(row["metric_value"]) * 10**6 for row in rows if row["expected_response"] == "true"])
    paths = [DATA / "generators" / name for name in names]
    [row] = answer(capsys, *paths, "--failures", "ignore", "-p", "50,90,95,99")
    assert int(row["count"]) == len(good)
    for of in (50, 90, 95, 99):
        assert float(row[f"p{of}"]) == pytest.approx(good[-(-len(good) * of // 100) - 1], rel=1 / 128)
    [row] = answer(capsys, *paths)
    own = [of_json(f"k6-r{number}.total.json")["metrics"]["http_req_failed"] for number in (1, 2)]
    assert int(row["failed"]) == sum(each["passes"] for each in own)
    assert int(row["count"]) == sum(each["passes"] + each["fails"] for each in own)


@pytest.mark.parametrize(
    "stamp",
    ["1796015435", "1796015435123", "1796015435123456", "1796015435123456789", "2026-11-30T05:10:35Z", "2026-11-30T05:10:35.12Z"],
)
def test_d2_k6_by_each_time_format(tmp_path: Path, capsys: pytest.CaptureFixture[str], stamp: str) -> None:
    """K6_CSV_TIME_FORMAT is unix, unix_milli, unix_micro, unix_nano, rfc3339, rfc3339_nano; before 0.43 there was no `metadata`."""
    [first, *rows], columns = k6_durations("k6-r1.csv.xz")
    rows = [re.sub(r",[^,]*", f",{stamp}", row, count=1) for row in rows]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(line.rpartition(",")[0] for line in [first, *rows]) + "\n")
    [row] = answer(capsys, path)
    assert (int(row["count"]), int(row["failed"]), list(columns)[-1]) == (325, 26, "metadata")
    assert row["end"].startswith("2026-11-30T05:10:35")


def test_d2_fortio_counts_what_it_says_itself(capsys: pytest.CaptureFixture[str]) -> None:
    said = of_json("fortio.total.json")
    own, codes = said["DurationHistogram"], said["RetCodes"]
    rows = {row["outcome"]: row for row in answer(capsys, DATA / "generators" / "fortio.access.json", "--failures", "apart")}
    assert {int(row["count"]) for row in rows.values()} == set(codes.values())
    assert int(rows["ok"]["count"]) == codes["200"]
    for name, word, choose in (("min", "Min", min), ("max", "Max", max)):
        assert choose(float(row[name]) for row in rows.values()) == pytest.approx(own[word] * 10**9, abs=501)
    assert sum(float(row["mean"]) * int(row["count"]) for row in rows.values()) == pytest.approx(own["Sum"] * 10**9, abs=150_000)


def test_d2_oha_counts_what_its_database_does(capsys: pytest.CaptureFixture[str]) -> None:
    said = of_json("oha-r1.total.json")
    rows = {row["outcome"]: row for row in answer(capsys, DATA / "generators" / "oha-r1.csv", "--failures", "apart")}
    for outcome, status in (("ok", "200"), ("failed", "503")):
        row, own = rows[outcome], said[status]
        assert int(row["count"]) == own["count"]
        assert (int(row["min"]), int(row["max"])) == (round(own["fastest"] * 10**9), round(own["slowest"] * 10**9))
        assert float(row["mean"]) * own["count"] == pytest.approx(own["total"] * 10**9, abs=own["count"])
    [row] = answer(capsys, *(DATA / "generators" / f"oha-r{number}.csv" for number in (1, 2)))
    assert (int(row["count"]), int(row["failed"])) == (400, 25)


@pytest.mark.parametrize("name", ["r1", "r2", "mix"])
def test_d2_elbencho_counts_what_it_says_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Its text has the bins and percentiles of I/Os, those of reads after those of writes."""
    text = (DATA / "generators" / f"elbencho-{name}.total.txt").read_text()
    bins, own = (re.findall(rf"IO (?:wr |rd )?lat {of} +: \[ (.*) \]", text) for of in ("hist", "% us"))
    rows = answer(capsys, DATA / "generators" / f"elbencho-{name}.json", "--by", "op,tag", "-p", "1,50,75,99")
    assert [(row["op"], row["tag"]) for row in rows] == (
        [("RWMIX30", ""), ("RWMIX30", "rwmix_read")] if name == "mix" else [("READ", ""), ("WRITE", "")]
    )
    for row, counts, percentiles in zip(rows if name == "mix" else rows[::-1], bins, own, strict=True):
        assert int(row["count"]) == sum(int(entry.split(": ")[1]) for entry in counts.split(", "))
        for of, bound in (entry.split("%<=") for entry in percentiles.split()):
            if f"p{of}" in row:
                assert float(row[f"p{of}"]) / 1000 == pytest.approx(float(bound), abs=0.5 if "." not in bound else 0.05)


def test_d2_elbencho_of_two_clients_is_merged_and_damage_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [DATA / "generators" / f"elbencho-r{number}.json" for number in (1, 2)]
    rows = answer(capsys, *files, "--by", "op")
    assert [(row["op"], row["count"], row["complete"]) for row in rows] == [("READ", "512", "true"), ("WRITE", "512", "true")]
    (tmp_path / "a.json").write_text(files[0].read_text().replace('"elapsed_time_ms":"386"', '"elapsed_time_ms":"soon"'))
    assert inspected(capsys, tmp_path / "a.json")["rejected"] == {"'soon' is no number": 1}
    assert [(row["count"], row["complete"]) for row in answer(capsys, tmp_path / "a.json")] == [("256", "false")]


@pytest.mark.parametrize(("preset", "metric"), [("vllm", "e2el"), ("vllm-first-token", "ttft")])
def test_d2_vllm_counts_what_it_says_itself(capsys: pytest.CaptureFixture[str], preset: str, metric: str) -> None:
    file = DATA / "generators" / "vllm.json.xz"
    said = json.loads(lzma.decompress(file.read_bytes()))
    asked = ("--failures", "apart", "--input-format", preset, "-p", "50,90,95")
    rows = {row["outcome"]: row for row in answer(capsys, file, *asked)}
    assert (int(rows["ok"]["count"]), int(rows["failed"]["count"])) == (said["completed"], said["failed"]) == (189, 11)
    assert float(rows["ok"]["mean"]) == pytest.approx(said[f"mean_{metric}_ms"] * 10**6, abs=1)
    assert float(rows["ok"]["p50"]) == pytest.approx(said[f"median_{metric}_ms"] * 10**6, rel=1 / 128)  # of an odd number


def test_d2_vllm_without_start_times_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    """As vLLM 0.11 wrote it."""
    said = json.loads(lzma.decompress((DATA / "generators" / "vllm.json.xz").read_bytes()))
    (tmp_path / "a.json").write_text(json.dumps({name: value for name, value in said.items() if name != "start_times"}))
    with pytest.raises(InputError, match=r"no array start_times\.\*"):
        discover([tmp_path / "a.json"], ReadOptions())


@pytest.mark.parametrize(
    "file", ["failures/jmeter.csv", "generators/vegeta-r1.csv", "generators/vegeta-r2.json", "generators/fortio.access.json"]
)
def test_d2_lines_that_are_damaged_are_counted_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    lines = (DATA / file).read_bytes().splitlines(keepends=True)
    bad = [lines[20][:17] + b"\n", b"\0" * 30 + b"\n", b"garbage\n"]
    path = tmp_path / "damaged.dat"
    path.write_bytes(b"".join([*lines[:50], *bad, *lines[50:100], lines[100][:9]]))
    [source] = discover([path], ReadOptions()).sources
    from ingest.read import events_of

    samples = sum(len(chunk) for chunk in events_of(source))
    account = source.context.account
    assert (samples, account.rows_rejected) == (100 - file.endswith("jmeter.csv"), 4)
    assert sorted(finding.line for finding in account.findings) == [51, 52, 53, 104]
    [row] = answer(capsys, path)
    assert row["complete"] == "false"


@pytest.mark.slow
@pytest.mark.parametrize("file", ["generators/vegeta-r1.csv", "generators/ghz.json"])
def test_d2_stores_and_standard_input_take_them_too(tmp_path: Path, file: str) -> None:
    store, folder = f"sqlite:{tmp_path / 's.db'}", tmp_path / "logs"
    folder.mkdir()
    (folder / Path(file).name).write_bytes((DATA / file).read_bytes())

    def rows(*words: str, given: bytes | None = None) -> list[str]:
        words = ("percentiles", *words, "--step", "all", "--by", "op", "--format", "csv")
        done = subprocess.run([sys.executable, "-m", "ingest", *words], input=given, capture_output=True, timeout=120, check=True)
        return done.stdout.decode().splitlines()

    said = rows(str(folder))
    assert rows("-", given=(DATA / file).read_bytes()) == said and len(said) == 2
    assert tailboard(["load", str(folder), "--run", "a", "--store", store]) == 0
    assert tailboard(["watch", str(folder), "--run", "b", "--store", store, "--until-idle", "50ms", "--interval", "10ms"]) == 0
    assert rows(store, "--run", "a") == rows(store, "--run", "b") == said


def test_d2_vegeta_in_its_own_binary_form_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match="vegeta encode"):
        discover([DATA / "generators" / "vegeta.bin"], ReadOptions())


def test_d2_gatling_in_the_binary_form_of_later_versions_is_refused() -> None:
    with pytest.raises(InputError, match="a binary log of Gatling"):
        discover([DATA / "generators" / "gatling-3.13.bin"], ReadOptions())


def test_stores_know_the_descriptions_that_they_were_loaded_with() -> None:
    """The texts of commit 27f8b0ef: with another one every log that was loaded would be read again."""
    texts = {name: description_of(name).text.encode() for name in presets()}
    assert {name: hashlib.blake2b(text, digest_size=8).hexdigest() for name, text in texts.items()}.items() >= {
        "biolatency": "38eaeab5f7f4e3e9",
        "mysql-statements": "6676c4fbcafc5e94",
        "redis-latency": "2e79a3ae9df33828",
        "sysbench": "a580b8354468bc59",
    }.items()
