"""When the jobs of a fio run began: played again from its JSON, held against the real time of each job's I/Os."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.query.files import Files
from ingest.read.context import TimeZero
from ingest.read.fio import clock, json_output
from ingest.read.sources import ReadOptions
from oracles import per_io

STAGED = "fio JSON timestamp - runtimes of jobs one after another"
TOGETHER = "fio JSON timestamp - runtime"
WITHIN_MS = 110
WRITTEN_WITHIN_MS = 250
RUNS = {
    "stonewall": 3,
    "startdelay": 3,
    "wall-delay": 4,
    "new-group": 3,
    "ramp": 2,
    "wait-for": 3,
    "numjobs": 5,
    "group-reporting": 2,
    "loops": 2,
    "uneven": 4,
    "delay-ramp": 3,
}


def first_ms(folder: Path, log: int) -> int:
    """Return when the first I/O of a job completed: a rate-limited job begins with one."""
    return min(stamp for rows in per_io.samples(folder / f"a_clat.{log}.log").values() for stamp, _ in rows)


@pytest.mark.parametrize("name", RUNS)
def test_a6_jobs_begin_when_their_first_io_says(fio: Path, name: str) -> None:
    folder = fio / f"starts-{name}"
    *_, document = json_output.documents(folder / "a.json")
    assert len(document.jobs) == RUNS[name]
    for number, job in enumerate(document.jobs):
        log = (1, 4)[number] if name == "group-reporting" else number + 1
        found = document.zero_ms(job)
        assert found is not None
        assert abs(found[0] - first_ms(folder, log)) <= WITHIN_MS, (name, number, found)
        assert found[1] == (TOGETHER if name == "new-group" else STAGED)


def without_new_group(folder: Path, target: Path) -> Path:
    """Write the JSON of a recording as fio does of `new_group` without a value: it is not there."""
    raw = json.loads((folder / "a.json").read_text())
    for entry in raw["jobs"]:
        entry["job options"].pop("new_group", None)
    (target / "a.json").write_text(json.dumps(raw, indent=2))
    return target / "a.json"


def test_groups_that_had_no_time_to_run_one_after_another_ran_together(fio: Path, tmp_path: Path) -> None:
    folder = fio / "starts-new-group"
    *_, document = json_output.documents(without_new_group(folder, tmp_path))
    assert not document.is_staged(document.jobs)
    for number, job in enumerate(document.jobs, 1):
        found = document.zero_ms(job)
        assert found is not None and abs(found[0] - first_ms(folder, number)) <= WITHIN_MS
    *_, staged = json_output.documents(fio / "starts-stonewall" / "a.json")
    assert staged.is_staged(staged.jobs)


def test_a6_a_delay_that_fio_drew_cannot_be_determined(fio: Path, tmp_path: Path) -> None:
    *_, document = json_output.documents(fio / "starts-delay-range" / "a.json")
    assert [document.zero_ms(job) for job in document.jobs] == [None, None]


@pytest.mark.parametrize(("case", "between_ms"), [("stonewall-333", [3252, 3252, 0]), ("startdelay-333", [2000])])
def test_a6_jobs_one_after_another_are_not_drawn_over_each_other(fio: Path, case: str, between_ms: list[int]) -> None:
    found = Files([fio / "cases" / case]).found
    zeros = [(source.context.zero.epoch_ns or 0) // 10**6 for source in found.sources]
    assert [after - before for before, after in zip(zeros, zeros[1:], strict=False)] == between_ms
    assert {source.context.zero.origin for source in found.sources} == {STAGED}


@pytest.mark.parametrize(("case", "job"), [("stone", 0), ("stone", 1), ("sdelay", 0), ("sdelay", 1)])
def test_a6_agrees_with_job_start_of_later_versions(fio: Path, tmp_path: Path, case: str, job: int) -> None:
    raw = json.loads((fio / "fio-3.42" / case / "out.json").read_text())
    truth = [entry.pop("job_start") for entry in raw["jobs"]]
    (tmp_path / "a.json").write_text(json.dumps(raw, indent=2))
    *_, document = json_output.documents(tmp_path / "a.json")
    found = document.zero_ms(document.jobs[job])
    # Real I/O, three logs a job: the time stamp itself is late by what fio writes (docs/reference/formats.md, Time zero).
    assert found is not None and abs(found[0] - truth[job]) <= WRITTEN_WITHIN_MS


def test_a6_where_something_else_went_on_nothing_is_claimed(fio: Path, tmp_path: Path, taken: Any) -> None:
    """A job that is not in the JSON took 9 s: `elapsed` shows it."""
    raw = json.loads((fio / "cases" / "stonewall-333" / "out.json").read_text())
    for entry in raw["jobs"]:
        entry["elapsed"] += 9
    (tmp_path / "out.json").write_text(json.dumps(raw, indent=2))
    for log in (fio / "cases" / "stonewall-333").glob("*.log"):
        (tmp_path / log.name).write_bytes(log.read_bytes())
    found = Files([tmp_path]).found
    assert {source.context.zero.epoch_ns for source in found.sources} == {None}
    notes = [note for note in taken(tmp_path).account.notes if "the start of the run is unknown" in note]
    assert len(notes) == 4 and all(note.endswith(f"({clock.UNPLACED}): {clock.REMEDY}") for note in notes)
    given = Files([tmp_path], ReadOptions(t0=10**18)).found
    assert {source.context.zero.epoch_ns for source in given.sources} == {10**18}


def test_a6_a_log_that_such_jobs_share_has_no_time_zero(fio: Path, tmp_path: Path, taken: Any) -> None:
    """per_job_logs=0: the rows of three stonewalled jobs would lie over each other."""
    folder = fio / "cases" / "stonewall-333"
    (tmp_path / "out.json").write_bytes((folder / "out.json").read_bytes())
    logs = [log.read_bytes() for log in sorted(folder.glob("*.log"))]
    (tmp_path / "h_clat_hist.log").write_bytes(b"".join(logs))
    [source] = Files([tmp_path]).found.sources
    assert source.context.zero == TimeZero(None, clock.SHARED)
    assert any(clock.SHARED in note for note in taken(tmp_path).account.notes)


def test_a6_logs_of_summed_groups_begin_with_their_group(fio: Path, tmp_path: Path) -> None:
    """group_reporting: three logs of the first group, two of the second, two entries in the JSON."""
    folder = fio / "starts-group-reporting"
    raw = json.loads((folder / "a.json").read_text())
    for entry in (raw["global options"], *(entry["job options"] for entry in raw["jobs"])):
        entry.pop("log_unix_epoch", None)
    (tmp_path / "a.json").write_text(json.dumps(raw, indent=2))
    for number in range(1, 6):
        rows = [line.split(", ") for line in (folder / f"a_clat.{number}.log").read_text().splitlines()]
        first = int(rows[0][0])
        text = "".join(", ".join([str(int(row[0]) - first), *row[1:]]) + "\n" for row in rows)
        (tmp_path / f"a_clat.{number}.log").write_text(text)
    sources = Files([tmp_path]).found.sources
    for number, source in enumerate(sources, 1):
        assert abs((source.context.zero.epoch_ns or 0) // 10**6 - first_ms(folder, number)) <= WITHIN_MS


@pytest.mark.parametrize(
    ("text", "expected"), [("2", 2000), ("1500ms", 1500), ("2m", 120_000), ("1h", 3_600_000), ("1-3", None), ("x", None)]
)
def test_times_of_options(text: str, expected: int | None) -> None:
    assert json_output.milliseconds(text) == expected


entries = st.lists(
    st.builds(
        json_output.Entry,
        name=st.sampled_from("abc"),
        group=st.integers(0, 2),
        runtime_ms=st.integers(1, 5000),
        ramp_ms=st.sampled_from([0, 0, 1000]),
        delay_ms=st.sampled_from([0, 0, 700, 2000]),
        waits_for=st.sampled_from(["", "", "a"]),
        new_group=st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(entries)
def test_a6_a_played_run_keeps_what_fio_promises(jobs: list[json_output.Entry]) -> None:
    """No job counts before its ramp is over, the last end is the end, and a wall has nothing running behind it."""
    plan = json_output.plan_of(tuple(jobs), 0)
    if plan is None:
        assert any(job.waits_for for job in jobs)
        return
    begins = [zero - job.ramp_ms for zero, job in zip(plan.zeros_ms, jobs, strict=True)]
    ends = [zero + job.runtime_ms for zero, job in zip(plan.zeros_ms, jobs, strict=True)]
    assert min(begins) == 0 and max(ends) == plan.end_ms
    for number, job in enumerate(jobs):
        wall = number and job.group != jobs[number - 1].group and not job.new_group
        if wall:
            assert not any(begins[other] < begins[number] < ends[other] for other in range(len(jobs)))


def test_a6_a_run_of_one_group_is_placed_as_ever() -> None:
    one: dict[str, Any] = {"name": "a", "group": 0, "runtime_ms": 3000}
    assert not json_output.in_stages((json_output.Entry(**one), json_output.Entry(**one)))
    assert json_output.in_stages((json_output.Entry(**one), json_output.Entry(**one, delay_ms=1)))
