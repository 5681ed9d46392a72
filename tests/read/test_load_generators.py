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

K6 = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags"


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
    """k6's are held against lines that others recorded, see docs/reference/compatibility.md."""
    assert {entry.name for entry in described()} == {name for name, _ in KNOWN.values()} | {"k6-csv", "k6-json"}


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


def k6_csv(times: list[int], digits: int, more: str = "") -> str:
    lines = [K6 + more]
    for number, time in enumerate(times):
        stamp = str(time)[:digits]
        tail = f",,,,true,,GET,http://x/,HTTP/1.1,default,,200,,,http://x/,{',' if more else ''}"
        lines += [
            f"{metric},{stamp},{value}{tail}"
            for metric, value in (("http_reqs", "1.000000"), ("http_req_duration", f"{number % 50 + 1}.250000"))
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("digits", [10, 13, 16, 19])
@pytest.mark.parametrize("more", ["", ",metadata"], ids=["before 0.43", "since"])
def test_d2_k6_by_each_time_format_and_runner(tmp_path: Path, capsys: pytest.CaptureFixture[str], digits: int, more: str) -> None:
    times = [1_795_200_000_000_000_000 + number * 10**8 for number in range(400)]
    for runner in range(2):
        (tmp_path / f"runner{runner}.csv").write_text(k6_csv(times[runner::2], digits, more))
    [row] = answer(capsys, tmp_path, "--by", "op")
    assert (row["op"], int(row["count"]), int(row["failed"])) == ("http://x/", 400, 0)
    assert (int(row["min"]), int(row["max"])) == (1_250_000, 50_250_000) and row["start"].startswith("2026-11-20T18:39:59")


def test_d2_k6_json_whatever_fails_is_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        '{"type":"Metric","data":{"name":"http_reqs","type":"counter","contains":"default","thresholds":[],"submetrics":null},"metric":"http_reqs"}'
    ]
    for number in range(100):
        tags = {
            "expected_response": str(number % 10 != 3).lower(),
            "method": "GET",
            "name": "http://x/",
            "status": "503" if number % 10 == 3 else "200",
        }
        stamp = f"2026-07-13T17:32:{number % 60:02d}.6058705{'' if number % 2 else '76'}+02:00"
        lines += [
            json.dumps(
                {"metric": name, "type": "Point", "data": {"time": stamp, "value": value, "tags": tags}}, separators=(",", ":")
            )
            for name, value in (("http_reqs", 1), ("http_req_duration", 13.342304))
        ]
    (tmp_path / "results.json").write_text("\n".join(lines) + "\n")
    [row] = answer(capsys, tmp_path / "results.json")
    assert (int(row["count"]), int(row["failed"]), int(row["min"])) == (100, 10, 13_342_304) and row["start"].startswith(
        "2026-07-13T15:32"
    )


@pytest.mark.parametrize("file", ["failures/jmeter.csv", "generators/vegeta-r1.csv", "generators/vegeta-r2.json"])
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
