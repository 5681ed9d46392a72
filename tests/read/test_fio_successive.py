"""Several runs of fio in one JSON: each counted once and in its own time, whatever tells it from the run before."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.core.errors import InputError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.context import Context
from ingest.read.fio import json_intervals, json_output
from ingest.read.fio import runs as successive
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import per_io

MS = 1_000_000
ROUNDED_MS = 2
LOOPS = ("loop-names", "loop-stages", "loop-groups", "loop-verified", "loop-client")
COUNTS = ("total_ios", "io_bytes", "io_kbytes", "N")
TIMES = ("timestamp", "timestamp_ms", "elapsed", "runtime", "job_runtime", "job_start", "time")


def documents(path: Path) -> list[dict]:
    """Return the documents of a recording."""
    decoder, text, found = json.JSONDecoder(), path.read_text(), []
    at = text.find("{")
    while at >= 0:
        document, end = decoder.raw_decode(text, at)
        found.append(document)
        at = text.find("{", end)
    return found


def runs_of(fio: Path, name: str) -> list[dict]:
    """Return the last document of each run of a recording."""
    every = documents(fio / name / "a.json")
    return [every[2], every[5]] if name == "loop-status" else every


def entries(document: dict) -> list[dict]:
    return [entry for entry in document.get("client_stats", document.get("jobs")) if entry["jobname"] != "All clients"]


def written(folder: Path, *some: Any, name: str = "a.json") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(document, indent=2) + "\n" for document in some))
    return path


def counted(some: list[dict], op: str) -> Counter[int]:
    return sum((Counter(per_io.json_bins(job[op], 1856, 0)) for run in some for job in entries(run) if op in job), Counter())


def span_ms(document: dict) -> tuple[int, int]:
    """Return from when to when a run went on at most."""
    if "timestamp_ms" not in document:
        begin = document["timestamp"] * 1000
        return begin, begin + 1000
    return document["timestamp_ms"] - 1000 * max(job["elapsed"] for job in entries(document)), document["timestamp_ms"]


def like(times: Any, counts: Any, factor: int) -> Any:
    """Return a document that says of its times what one says, and counts `factor` times what another does: one run, but later."""
    if isinstance(times, dict) and isinstance(counts, dict):
        made = {}
        for key, value in counts.items():
            if key in TIMES and not isinstance(value, str) and key in times:
                made[key] = times[key]
            elif key in COUNTS or (isinstance(value, int) and key.isdigit()):
                made[key] = value * factor
            else:
                made[key] = like(times.get(key), value, factor)
        return made
    if isinstance(times, list) and isinstance(counts, list):
        return [like(one, other, factor) for one, other in zip(times, counts, strict=True)]
    return counts


def without(document: Any, *names: str) -> Any:
    """Return a document that does not say some things."""
    if isinstance(document, dict):
        return {key: without(value, *names) for key, value in document.items() if key not in names}
    return [without(value, *names) for value in document] if isinstance(document, list) else document


def with_starts(document: dict) -> dict:
    """Return a document as fio 3.36 and later write it: each job says when it began."""
    made = deepcopy(document)
    for job in entries(made):
        job["job_start"] = made["timestamp_ms"] - max(job[op]["runtime"] for op in ("read", "write"))
    return made


def why(folder: Path, *some: dict) -> list[str]:
    """Return what tells each document from the one before it."""
    read = list(json_output.documents(written(folder, *some)))
    return [successive.another_run(one, other) for one, other in zip(read, read[1:], strict=False)]


@pytest.mark.parametrize("name", [*LOOPS, "loop-status"])
def test_each_run_is_counted_once_and_in_its_own_time(fio: Path, tmp_path: Path, taken: Any, name: str) -> None:
    runs = runs_of(fio, name)
    read = taken(written(tmp_path, *documents(fio / name / "a.json")))
    for op in ("read", "write"):
        assert read.total(op) == counted(runs, op)
        before = 0
        for run in runs:
            first, last = span_ms(run)
            first, before = max(first, before), last
            mine = [row for row in read.of(op) if first * MS <= row.start_ns <= row.end_ns <= (last + ROUNDED_MS) * MS]
            assert sum((Counter(row.counts) for row in mine), Counter()) == counted([run], op)
    assert [caveat.code for caveat in read.account.caveats] == [successive.SEVERAL]
    assert len(read.account.notes) == len(runs) - 1
    assert read.account.rejected == {} and not read.account.missing


@pytest.mark.parametrize("name", [*LOOPS, "loop-status"])
@pytest.mark.parametrize("said", ["all", "seconds", "no elapsed", "seconds, no elapsed", "job_start"])
def test_a_run_that_counts_more_with_the_same_options_is_another(fio: Path, tmp_path: Path, name: str, said: str) -> None:
    first, second = runs_of(fio, name)[:2]
    second = like(second, first, 4)
    if said == "job_start" and name == "loop-client":
        pytest.skip("not of --client")
    made = {
        "all": lambda run: run,
        "seconds": lambda run: without(run, "timestamp_ms"),
        "no elapsed": lambda run: without(run, "elapsed"),
        "seconds, no elapsed": lambda run: without(run, "timestamp_ms", "elapsed"),
        "job_start": with_starts,
    }[said]
    found = why(tmp_path, made(first), made(second))
    if said.startswith("seconds") and name != "loop-client":
        assert found[0] in ("", successive.LATER, successive.NO_LONGER)  # they are within a second of each other
        second["timestamp"] += 2
        found = why(tmp_path, made(first), made(second))
    assert found == [successive.LATER]


@pytest.mark.parametrize("name", ["status-interval", "loop-status"])
@pytest.mark.parametrize("said", ["all", "seconds", "no elapsed", "no time", "job_start"])
def test_documents_of_a_running_fio_are_one_run(fio: Path, tmp_path: Path, name: str, said: str) -> None:
    made = {
        "all": lambda run: run,
        "seconds": lambda run: without(run, "timestamp_ms"),
        "no elapsed": lambda run: without(run, "elapsed"),
        "no time": lambda run: without(run, "timestamp", "timestamp_ms", "elapsed"),
        "job_start": with_starts,
    }[said]
    every = [made(document) for document in documents(fio / name / "a.json")[: 5 if name == "status-interval" else 3]]
    assert set(why(tmp_path, *every)) == {""}


def test_documents_of_a_ramp_are_of_the_run_and_take_no_time(fio: Path, tmp_path: Path, taken: Any) -> None:
    """With `ramp_time` fio appends documents that count nothing, and begins to count time anew when it is over."""
    [run, *_] = runs_of(fio, "loop-names")
    ramp = like(run, run, 0)
    ramp["timestamp_ms"] -= 400
    assert why(tmp_path, ramp, run) == [""]
    assert taken(written(tmp_path, ramp, run)).rows == taken(written(tmp_path, run)).rows
    ramp["timestamp_ms"] -= 3_600_000  # of a run that failed an hour before
    assert taken(written(tmp_path, ramp, run)).rows == taken(written(tmp_path, run)).rows


def test_without_a_time_another_run_is_told_by_its_runtime(fio: Path, tmp_path: Path) -> None:
    first = without(runs_of(fio, "loop-names")[0], "timestamp", "timestamp_ms", "elapsed")
    assert why(tmp_path, first, like(first, first, 4)) == [successive.NO_LONGER]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda job: job["read"]["clat_ns"].update(min=job["read"]["clat_ns"]["min"] + 1), successive.BACK),
        (lambda job: job["read"]["clat_ns"].update(max=job["read"]["clat_ns"]["max"] - 1), successive.BACK),
        (lambda job: job["read"]["clat_ns"].update(mean=job["read"]["clat_ns"]["mean"] * 3), successive.BACK),
        (lambda job: job["read"]["clat_ns"]["bins"].popitem(), successive.BACK),
        (lambda job: job["job options"].update(iodepth="2"), successive.OTHER_JOBS),
        (lambda job: job.update(jobname="k"), successive.OTHER_JOBS),
    ],
)
def test_what_one_run_cannot_say_is_of_another(fio: Path, tmp_path: Path, change: Any, expected: str) -> None:
    """Two processes at the same time append to one file: neither began after the other."""
    first = runs_of(fio, "loop-names")[2]
    other = deepcopy(first)
    other["timestamp_ms"] += 40
    change(entries(other)[0])
    assert why(tmp_path, first, other) == [expected]


def test_states_of_runs_that_stand_in_a_file_twice_are_runs_of_their_own(fio: Path, tmp_path: Path, taken: Any) -> None:
    """A watch that goes on knows the last documents of runs alone, and answers as a reader of the whole: both say so."""
    every = documents(fio / "loop-status" / "a.json")
    once, twice = taken(written(tmp_path, *every)), taken(written(tmp_path, *every, *every))
    assert twice.account.samples == 2 * once.account.samples
    assert [caveat.code for caveat in twice.account.caveats] == ["several-runs"]


@pytest.mark.parametrize("name", [*LOOPS, "loop-plain"])
def test_documents_that_stand_in_a_file_twice_count_once(fio: Path, tmp_path: Path, taken: Any, name: str) -> None:
    every = documents(fio / name / "a.json")
    once, twice = taken(written(tmp_path, *every)), taken(written(tmp_path, *every, *every))
    assert twice.rows == once.rows and twice.account.samples == once.account.samples
    assert twice.account.whole_runs == once.account.whole_runs
    if name != "loop-plain":
        assert twice.account.skipped == {json_intervals.AGAIN: len(every)}


@pytest.mark.parametrize("name", ["loop-names", "loop-plain"])
def test_runs_may_stand_in_any_order(fio: Path, tmp_path: Path, taken: Any, name: str) -> None:
    every = documents(fio / name / "a.json")
    forth, back = taken(written(tmp_path, *every)), taken(written(tmp_path, *every[::-1]))

    def told(read: Any) -> set[tuple[Any, ...]]:
        return {(row.start_ns, row.end_ns, tuple(sorted(row.counts.items())), row.exact) for row in read.rows}

    assert told(forth) == told(back)


def test_plain_json_keeps_the_means_of_each_run(fio: Path, tmp_path: Path, taken: Any) -> None:
    runs = runs_of(fio, "loop-plain")
    read = taken(written(tmp_path, *runs))
    rows = [row for row in read.of("read") if row.series.kind == "total.mean"]
    for row, run in zip(rows, runs, strict=True):
        [job] = run["jobs"]
        assert row.counts == {0: job["read"]["total_ios"]}
        assert row.exact == (
            job["read"]["lat_ns"]["min"],
            job["read"]["lat_ns"]["max"],
            round(job["read"]["lat_ns"]["mean"] * job["read"]["total_ios"]),
        )
        first, last = span_ms(run)
        assert first * MS <= row.start_ns < row.end_ns <= last * MS
    assert [entry["count"] for entry in read.account.whole_runs if entry["kind"] == "total"] == [
        run["jobs"][0]["read"]["total_ios"] for run in runs
    ]
    answer = Files([tmp_path], jobs=1).answer(Question(step="all"))
    assert any(successive.HOLDS_SEVERAL in text for text in answer.warnings)


def test_plain_status_documents_are_one_run(fio: Path, tmp_path: Path, taken: Any) -> None:
    every = [without(document, "bins") for document in documents(fio / "loop-status" / "a.json")]
    read = taken(written(tmp_path, *every))
    assert [row.counts for row in read.of("read") if row.series.kind == "completion.mean"] == [{0: 60}, {0: 60}]


def test_runs_without_bins_beside_others_are_missing(fio: Path, tmp_path: Path, taken: Any) -> None:
    first, second, third = runs_of(fio, "loop-names")
    read = taken(written(tmp_path, first, without(second, "bins"), third))
    assert read.total("read") == counted([first, third], "read")
    missing = [entry for entry in read.account.missing if entry.labels["kind"] == "completion"]
    assert [(entry.count, entry.caveat.code) for entry in missing] == [(120, json_intervals.WITHOUT_BINS)]
    begin, end = span_ms(second)
    assert begin * MS <= missing[0].from_ns < missing[0].to_ns <= end * MS


def test_a_start_that_the_user_gives_is_that_of_the_first_run(fio: Path, tmp_path: Path, taken: Any) -> None:
    for name in ("loop-names", "loop-plain"):
        path = written(tmp_path, *documents(fio / name / "a.json"))
        own, told = taken(path), taken(path, options=ReadOptions(t0=7_000_000_000_000))
        moved = own.rows[0].start_ns - 7_000_000_000_000
        assert [row.start_ns for row in told.rows] == [row.start_ns - moved for row in own.rows]


def test_the_state_of_a_file_that_grows_goes_on(fio: Path, tmp_path: Path, taken: Any) -> None:
    """As `watch` does between two cycles, of which each knows the last document alone."""
    path = written(tmp_path, *documents(fio / "loop-status" / "a.json"))
    [source] = discover([path], ReadOptions()).sources
    state, previous, rows = None, None, []
    context: Context = source.context
    for document in json_output.documents(path):
        differences = json_intervals.Differences(context, previous, json.loads(json.dumps(state)) if state else None)
        chunk = differences.take(document)
        rows += [] if chunk is None else [(int(chunk.start_ns[0]), int(chunk.end_ns[0]), int(chunk.counts.sum()))]
        state, previous = differences.state(), document
    expected = [(row.start_ns, row.end_ns, sum(row.counts.values())) for row in taken(path).rows]
    assert rows == expected and sum(count for *_, count in rows) == 120


def test_logs_are_joined_to_their_own_run(fio: Path, taken: Any) -> None:
    """The JSON holds runs with the logs h, none, g and g again, which is all that is left of g."""
    found = discover([fio / "loop-logs"], ReadOptions())
    [first, second, third, fourth] = runs_of(fio, "loop-logs")
    starts = {source.path.name: source.context.zero.epoch_ns for source in found.sources}
    for name, run in (("h_clat_hist.1.log", first), ("g_clat_hist.1.log", fourth), ("a.json", second)):
        begin, end = span_ms(run)
        assert begin * MS <= starts[name] <= end * MS
    read = taken(fio / "loop-logs")
    for process, some in {"h": [first], "g": [fourth], "a": [second, third]}.items():
        assert sum(read.total("read", process=process).values()) == sum(counted(some, "read").values())


def test_a_run_that_stands_in_two_files_counts_once(fio: Path, tmp_path: Path, taken: Any) -> None:
    every = documents(fio / "loop-names" / "a.json")
    written(tmp_path, every[1], name="a.json")
    read = taken(written(tmp_path, *every, name="b.json").parent)
    assert read.total("read") == counted(every, "read")


def test_a_file_of_many_runs_names_the_first(fio: Path, tmp_path: Path, taken: Any) -> None:
    one = without(runs_of(fio, "loop-names")[0], "elapsed")
    many = [{**one, "timestamp_ms": one["timestamp_ms"] + number * 1000} for number in range(20)]
    read = taken(written(tmp_path, *many))
    assert sum(read.total("read").values()) == 20 * 30
    assert len(read.account.notes) == successive.RUNS_NAMED - 1


def test_what_holds_no_document_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"fio version": "fio-3.33", "jobs": {}})
    with pytest.raises(InputError, match="fio JSON without a job"):
        discover([path], ReadOptions())


def test_a_version_is_of_the_run(fio: Path, tmp_path: Path) -> None:
    first = next(json_output.documents(written(tmp_path, runs_of(fio, "loop-names")[0])))
    later = replace(first, timestamp_ms=first.timestamp_ms + 10)
    assert successive.another_run(first, later) == ""
    assert successive.another_run(first, replace(later, version=(3, 36))) == successive.OTHER_JOBS
