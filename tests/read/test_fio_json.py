"""fio's json+: whole runs, documents of a running fio, and what is told of files that hold neither."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import figure
from ingest.core.errors import InputError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.fio import json_output
from ingest.read.fio import json_output as fio_json
from oracles import brute, per_io

MS = 1_000_000
KINDS = {"clat_ns": "completion", "lat_ns": "total", "slat_ns": "submission"}


def alone(folder: Path, content: str, name: str = "b.json") -> Path:
    """Return a JSON file in a folder without logs, so that it is read for its own bins."""
    path = folder / name
    path.write_text(content)
    return path


def recorded(fio: Path, name: str) -> str:
    return (fio / name / "a.json").read_text()


def documents(text: str) -> list[dict]:
    """Return the documents in a text, whatever stands around them."""
    decoder, found, at = json.JSONDecoder(), [], text.find("{")
    while at >= 0:
        document, end = decoder.raw_decode(text, at)
        found.append(document)
        at = text.find("{", end)
    return found


@pytest.mark.parametrize(
    "name", ["randrw", "trim", "stall", "latency-target", "group-reporting", "two-sections", "lat-percentiles"]
)
def test_a_finished_run_is_one_interval_per_job_op_and_kind(fio: Path, tmp_path: Path, taken: Any, name: str) -> None:
    text = recorded(fio, name)
    read = taken(alone(tmp_path, text))
    [document] = documents(text)
    expected = {}
    for number, job in enumerate(document["jobs"]):
        for op in brute.OPS:
            for key, kind in KINDS.items():
                if job[op].get(key, {}).get("bins"):
                    expected[str(number + 1), op, kind] = (job[op], key, number)
    assert sorted((row.series.job, row.series.op, row.series.kind) for row in read.rows) == sorted(expected)
    for row in read.rows:
        direction, key, number = expected[row.series.job, row.series.op, row.series.kind]
        assert row.counts == dict(per_io.json_bins(direction, 1856, 0, key))
        assert sum(row.counts.values()) == direction[key]["N"]
        low, high, total = row.exact
        assert (low, high) == (direction[key]["min"], direction[key]["max"])
        assert abs(total - direction[key]["mean"] * direction[key]["N"]) < 1
        zero = per_io.zero_ms(document, number)
        assert row.start_ns == zero * MS
        assert row.end_ns == (zero + max(document["jobs"][number][op]["runtime"] for op in brute.OPS)) * MS
    assert (read.account.rows, read.account.accepted, read.account.samples) == (
        1,
        1,
        sum(d[k]["N"] for d, k, _ in expected.values()),
    )


@pytest.mark.parametrize(
    ("kind", "file"), [("completion", "a_clat.1.log"), ("total", "a_lat.1.log"), ("submission", "a_slat.1.log")]
)
def test_kinds_are_those_of_fio_s_single_io_logs(fio: Path, tmp_path: Path, taken: Any, kind: str, file: str) -> None:
    read = taken(alone(tmp_path, recorded(fio, "lat-percentiles")))
    raw = per_io.samples(fio / "lat-percentiles" / file)
    for op, samples in raw.items():
        values = [value for _, value in samples]
        [row] = [row for row in read.rows if (row.series.op, row.series.kind) == (op, kind)]
        assert row.counts == dict(per_io.binned(values, 1856, 0))
        assert row.exact == (min(values), max(values), sum(values))


def test_without_a_kind_the_total_latency_is_taken(fio: Path, tmp_path: Path) -> None:
    path = alone(tmp_path, recorded(fio, "lat-percentiles"))
    assert Files([path], jobs=1).answer(Question(step="all")).kind == "total"
    assert Files([path], jobs=1).answer(Question(step="all", where={"kind": "completion"})).kind == "completion"


def test_documents_of_a_running_fio_are_differenced(fio: Path, taken: Any) -> None:
    every = documents(recorded(fio, "status-interval"))
    assert len(every) == 5
    read = taken(fio / "status-interval")
    for number, job in enumerate(every[-1]["jobs"]):
        for op in ("read", "write"):
            rows = read.of(op, job=str(number + 1))
            total: Counter[int] = Counter()
            for row, document in zip(rows, every, strict=True):
                before = Counter(total)
                total.update(row.counts)
                now = per_io.json_bins(document["jobs"][number][op], 1856, 0)
                assert total == now and row.counts == {
                    slot: n - before[slot] for slot, n in sorted(now.items()) if n > before[slot]
                }
            assert sum(total.values()) == job[op]["total_ios"]
            assert [row.exact is not None for row in rows] == [True, False, False, False, False]
            for earlier, later in zip(rows, rows[1:], strict=False):
                assert 0 <= later.end_ns - earlier.end_ns <= 1_100 * MS and later.start_ns <= later.end_ns
    assert (read.account.rows, read.account.accepted) == (5, 5)


@pytest.mark.parametrize("keep", [0.5, 0.97, 0.999])
def test_a_document_that_breaks_off_is_counted(fio: Path, tmp_path: Path, taken: Any, keep: float) -> None:
    text = recorded(fio, "status-interval")
    starts = [at for at in range(len(text)) if text.startswith('{\n  "fio version"', at)]
    cut = starts[-1] + int((len(text) - starts[-1]) * keep)
    read = taken(alone(tmp_path, text[:cut].rstrip("}\n")))
    reason = "last document breaks off: fio was still writing, or the copy is partial"
    assert read.account.rejected == {reason: 1}
    assert read.findings("rejected") == [(text[: starts[-1]].count("\n") + 1, reason)]
    assert (read.account.rows, read.account.accepted) == (5, 4)
    fourth = documents(text)[3]
    for op in ("read", "write"):
        assert sum(read.total(op).values()) == sum(job[op]["total_ios"] for job in fourth["jobs"])


def test_a_document_broken_off_in_the_middle_is_counted(fio: Path, tmp_path: Path, taken: Any) -> None:
    text = recorded(fio, "status-interval")
    starts = [at for at in range(len(text)) if text.startswith('{\n  "fio version"', at)]
    read = taken(alone(tmp_path, text[: starts[2] + 3000].rsplit("\n", 1)[0] + "\n" + text[starts[3] :]))
    assert read.account.rejected == {"document breaks off before the next begins": 1}
    assert read.findings("rejected")[0][0] == text[: starts[2]].count("\n") + 1
    assert read.account.rows == 5
    last = documents(text)[-1]
    assert sum(read.total("read").values()) == sum(job["read"]["total_ios"] for job in last["jobs"])


def test_a_second_run_in_the_same_file_begins_anew(fio: Path, tmp_path: Path, taken: Any) -> None:
    text = recorded(fio, "status-interval")
    read = taken(alone(tmp_path, text + recorded(fio, "randrw")))
    runs = [documents(text)[-1], per_io.json_of(fio / "randrw" / "a.json")]
    for op in ("read", "write"):
        assert sum(read.total(op).values()) == sum(job[op]["total_ios"] for run in runs for job in run["jobs"])
    assert [note.split(": ", 1)[1].split(": ", 1)[1] for note in read.account.notes] == [
        "another run begins (other jobs or options)"
    ]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("text before", "fio: this platform does not support process shared mutexes\n\n", ""),
        ("text after", "", "\nRun status group 0 (all jobs):\n   READ: bw=800KiB/s\n"),
        ("both", "note: both iodepth >= 1 and synchronous I/O engine are selected\n", "\nbye\n"),
        ("CRLF", "", "CRLF"),
    ],
)
def test_text_around_the_document_does_not_matter(
    fio: Path, tmp_path: Path, taken: Any, name: str, before: str, after: str
) -> None:
    text = recorded(fio, "randrw")
    content = text.replace("\n", "\r\n") if after == "CRLF" else before + text + after
    read = taken(alone(tmp_path, content))
    [document] = documents(text)
    assert read.total("read") == per_io.json_bins(document["jobs"][0]["read"], 1856, 0)
    assert (read.account.rows, read.account.accepted) == (1, 1)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("without jobs", '{"fio version": "fio-3.33", "jobs": []}\n', "fio JSON without a job"),
        ("other JSON", '{"answer": 42}\n', "looks like JSON of another tool; tailboard reads fio histogram log"),
        ("JSON that mentions fio", '{"answer": 42, "x": "fio version"}\n', "JSON, but not of fio"),
        ("broken JSON", '{\n"fio version": "fio-3.33", "jobs": [}\n}\n', "not JSON"),
        ("unlike fio", '{"fio version": "fio-3.33", "jobs": {"a": 1}}\n', "unlike fio's JSON"),
        ("breaks off", '{\n"fio version": "fio-3.33",\n"jobs": [', "last document breaks off"),
        (
            "negative bins",
            '{"fio version": "fio-3.33", "jobs": [{"jobname": "x", "read": {"total_ios": 1, "clat_ns": {"N": 1, "bins": {"5": -1}}}}]}\n',
            r"unlike fio's JSON \(-1 is no number that fio counts\)",
        ),
        (
            "no bins",
            '{"fio version": "fio-3.33", "jobs": [{"jobname": "x", "read": {"total_ios": 1, "clat_ns": {"N": 1, "bins": 7}}}]}\n',
            "unlike fio's JSON; ",
        ),
        (
            "a bin twice",
            '{"fio version": "fio-3.33", "jobs": [{"jobname": "x", "read": {"total_ios": 2, "clat_ns": {"N": 2, "bins": {"128": 1, "129": 1}}}}]}\n',
            "unlike fio's JSON",
        ),
    ],
)
def test_what_holds_no_histogram_is_refused_with_the_reason(
    tmp_path: Path, taken: Any, name: str, content: str, reason: str
) -> None:
    path = alone(tmp_path, content)
    with pytest.raises(InputError, match=f"^{path}(:[0-9]+)?: {reason}"):
        taken(path)


def test_client_output_names_hosts_and_leaves_out_their_sum(fio: Path, tmp_path: Path, taken: Any) -> None:
    text = recorded(fio, "client-server-rw")
    [document] = documents(text)
    [entry] = document["client_stats"]
    two = {**document, "client_stats": [entry, {**entry, "hostname": "osd2"}, {**entry, "jobname": "All clients"}]}
    read = taken(alone(tmp_path, json.dumps(two)))
    assert sorted({row.series.host for row in read.rows}) == ["127.0.0.1", "osd2"]
    for op in ("read", "write"):
        assert sum(read.total(op).values()) == 2 * entry[op]["total_ios"]
    assert {row.start_ns for row in read.rows} == {document["timestamp"] * 1000 * MS}


@pytest.mark.parametrize(
    ("bins", "unit_key", "expected"),
    [
        ({"63": 2, "129": 5, "16711680": 1}, "clat_ns", {63: 2, 128: 5, 1215: 1}),
        ({"63": 2, "129": 5, "16711680": 1}, "clat", {63: 2, 128: 5, 1215: 1}),
        (
            {"0": 0, "1": 0, "130": 4, "1215": 2, "FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_VAL": 64, "FIO_IO_U_PLAT_NR": 1216},
            "clat",
            {130: 4, 1215: 2},
        ),
    ],
    ids=["ns since 2.99", "us of 2.20", "bin numbers of 2.2.12"],
)
def test_keys_of_bins_in_all_versions(
    tmp_path: Path, taken: Any, bins: dict[str, int], unit_key: str, expected: dict[int, int]
) -> None:
    count = sum(expected.values())
    direction = {"total_ios": count, "runtime": 1000, unit_key: {"min": 1, "max": 9, "mean": 3.0, "bins": bins}}
    document = {"fio version": "fio-2.20", "timestamp": 1_700_000_000, "jobs": [{"jobname": "x", "write": direction}]}
    [row] = taken(alone(tmp_path, json.dumps(document))).rows
    assert row.counts == expected
    unit = 1 if unit_key == "clat_ns" else 1000
    assert (row.layout.unit_ns, row.exact) == (unit, (unit, 9 * unit, 3 * count * unit))


def test_job_start_is_the_best_time_zero(fio: Path, tmp_path: Path, taken: Any) -> None:
    document = per_io.json_of(fio / "randrw" / "a.json")
    document["jobs"][0]["job_start"] = 1_700_000_000_123
    rows = taken(alone(tmp_path, json.dumps(document))).rows
    assert {row.start_ns for row in rows} == {1_700_000_000_123 * MS}
    *_, document = fio_json.documents(tmp_path / "b.json")
    [job] = document.jobs
    assert job.start_ms == 1_700_000_000_123


def test_the_exact_maximum_is_p100(fio: Path, tmp_path: Path) -> None:
    from ingest.core.quantiles import parse_percentiles
    from ingest.query.percentiles import Wanted, percentiles

    path = alone(tmp_path, recorded(fio, "randrw"))
    raw = per_io.samples(fio / "randrw" / "a_clat.1.log")
    answer = Files([path], jobs=1).answer(Question(step="all", by=("op",), where={"kind": "completion"}))
    table = percentiles(answer, Wanted(parse_percentiles("50,100"))).columns
    for row, op in enumerate(table["op"]):
        values = [value for _, value in raw[op]]
        assert (table["p100"][row], table["max"][row], table["min"][row]) == (max(values), max(values), min(values))
        assert table["mean"][row] == pytest.approx(sum(values) / len(values), rel=1e-12)
        assert bool(table["exact"][row])


ODD = st.sampled_from(["5", "x", None, 2.7, -1, -0.5, 2**43 - 1, 2**43, 2**63, 2**70, 1e300, True, [], {}])
ODD_KEYS = st.sampled_from(["-3", "1_000", " 12", "1.5", str(2**43), str(2**65), "", "xFIO_"])
NUMBERS = st.integers(0, 20_000)


def cells_by(read: Any, bins: dict[str, Any]) -> Any:
    try:
        keys, counts = read(bins)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error), str(error)
    return keys.tolist(), counts.tolist()


@settings(max_examples=figure(100, 1000))
@given(st.dictionaries(NUMBERS.map(str), NUMBERS), st.dictionaries(NUMBERS.map(str) | ODD_KEYS, NUMBERS | ODD, max_size=2))
def test_bins_are_read_at_once_as_they_are_one_by_one(plain: dict[str, Any], odd: dict[str, Any]) -> None:
    bins = {**plain, **odd} or {"0": 0}
    assert cells_by(fio_json._cells, bins) == cells_by(fio_json._slow_cells, bins)


@settings(max_examples=figure(100, 1000))
@given(st.lists(st.sampled_from([b"{", b"}", b"  1,", b"\t}", b"", b" ", b"text", b"\x0c", b"{ ", b"\r"])).map(b"\n".join))
def test_indented_lines_that_come_as_one_are_the_lines_of_the_block(block: bytes) -> None:
    stretches = list(json_output._stretches(block))
    assert [line for stretch in stretches for line in (stretch.splitlines() or [b""])] == block.splitlines()
    assert all(line[:1] in json_output.INDENT for stretch in stretches if b"\n" in stretch for line in stretch.splitlines())
