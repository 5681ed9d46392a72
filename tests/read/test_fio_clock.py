"""Stamps of another clock than fio's own and real time (log_alternate_epoch): placed by the run, and said."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.grid import SECOND
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.context import Context
from ingest.read.fio import clock, json_output
from ingest.read.sources import ReadOptions
from oracles import logs, per_io

MS = 1_000_000
PLACED = "they are counted from the first, which is taken for the beginning of the job"


def bounds(read: Any) -> tuple[int, int]:
    return min(row.start_ns for row in read.rows) // MS, max(row.end_ns for row in read.rows) // MS


def test_a8_a_run_of_4_s_is_placed_where_its_json_says(fio: Path, taken: Any) -> None:
    folder = fio / "cases" / "altclock-333"
    end = per_io.json_of(folder / "out.json")["timestamp_ms"]
    read = taken(folder)
    begin, last = bounds(read)
    assert end - 4004 - 1000 <= begin and last <= end
    assert [note.split(": ", 1)[1] for note in read.account.notes] == [
        f"stamps are of another clock (log_alternate_epoch_clock_id=1): {PLACED}"
    ]


@pytest.mark.parametrize("option", [True, False])
@pytest.mark.parametrize("log", ["a_clat_hist.1.log", "a_clat.1.log"])
def test_a8_both_kinds_of_logs_are_placed(fio: Path, tmp_path: Path, taken: Any, option: bool, log: str) -> None:
    """By the option, or by stamps that lie beyond the whole run."""
    document = per_io.json_of(fio / "other-clock" / "a.json")
    if not option:
        for name in ("log_alternate_epoch", "log_alternate_epoch_clock_id"):
            del document["jobs"][0]["job options"][name]
    (tmp_path / "a.json").write_text(json.dumps(document, indent=2))
    (tmp_path / log).write_bytes((fio / "other-clock" / log).read_bytes())
    read = taken(tmp_path)
    begin, last = bounds(read)
    zero = per_io.zero_ms(document)
    assert zero - 1000 <= begin <= zero + 100 and zero + 2000 <= last <= zero + 2400
    clat = per_io.samples(fio / "other-clock" / "a_clat.1.log")
    for op, rows in clat.items():
        assert sum(read.total(op).values()) == len(rows)
    [note] = read.account.notes
    assert note.endswith(PLACED) and ("clock_id=1" in note) == option


@pytest.mark.parametrize("log", ["a_clat_hist.1.log", "a_clat.1.log"])
def test_a8_alone_it_counts_elapsed_time_from_its_first_stamp(fio: Path, tmp_path: Path, taken: Any, log: str) -> None:
    path = tmp_path / log
    path.write_bytes((fio / "other-clock" / log).read_bytes())
    read = taken(path, options=ReadOptions(recorded_unit_ns=1))
    begin, last = bounds(read)
    assert begin == 0 and last <= 2400
    assert any("times as late as the log is long: another clock (log_alternate_epoch)" in note for note in read.account.notes)


@pytest.mark.parametrize("log", ["a_clat_hist.1.log", "a_clat.1.log"])
def test_a8_the_time_of_the_file_is_that_of_its_last_stamp(fio: Path, tmp_path: Path, taken: Any, log: str) -> None:
    for name in (log, "a.json"):
        (tmp_path / name).write_bytes((fio / "other-clock" / name).read_bytes())
    os.utime(tmp_path / log, ns=(0, 1_700_000_000 * 10**9))
    read = taken(tmp_path / log, options=ReadOptions(recorded_unit_ns=1, t0="mtime"))
    last = bounds(read)[1] - 1_700_000_000_000
    assert last == 0 or (log.startswith("a_clat_hist") and 0 < last < 500), "json+ has what came after the last row"


def test_a8_the_end_of_a_long_log_keeps_its_elapsed_times(log: Any, taken: Any) -> None:
    path = log(logs.text([(1000 * n, 0, {10: 5}) for n in range(3000, 3600)], 29))
    assert bounds(taken(path))[1] == 3599 * 1000


def test_a8_job_start_of_another_clock_is_no_time_zero(fio: Path, tmp_path: Path) -> None:
    text = (fio / "fio-3.42" / "plain" / "out.json").read_text()
    document = json.loads(text[text.index("{") :])
    truth = document["jobs"][0]["job_start"]
    document["jobs"][0]["job_start"] = 2_076_031
    document["jobs"][0]["job options"]["job_start_clock_id"] = "1"
    (tmp_path / "a.json").write_text(json.dumps(document, indent=2))
    *_, read = json_output.documents(tmp_path / "a.json")
    found = read.zero_ms(read.jobs[0])
    assert found is not None and found[1] == "fio JSON timestamp - runtime" and abs(found[0] - truth) < 300


@pytest.mark.parametrize(
    ("options", "first", "another", "real"),
    [
        ({}, 500, False, False),
        ({}, 1_795_336_219_723, False, True),
        ({"log_unix_epoch": "1"}, 500, False, True),
        ({"log_alternate_epoch": "1"}, 500, False, True),
        ({"log_alternate_epoch": "1", "log_alternate_epoch_clock_id": "5"}, 500, False, True),
        ({"log_alternate_epoch": "1", "log_alternate_epoch_clock_id": "7"}, 500, True, False),
        ({"log_alternate_epoch": "1", "log_alternate_epoch_clock_id": "11"}, 1_795_336_219_723, True, False),
        ({"log_alternate_epoch": "0", "log_alternate_epoch_clock_id": "1"}, 500, False, False),
        ({"log_unix_epoch": "1", "log_alternate_epoch_clock_id": "1"}, 2_076_031, True, False),
        ({"log_unix_epoch": "1", "log_alternate_epoch_clock_id": "1"}, 1_795_336_219_723, True, True),
    ],
)
def test_which_clock(options: dict[str, str], first: int, another: bool, real: bool) -> None:
    assert clock.another_clock(options) == another and clock.real_time(options, first) == real


@given(st.integers(100_000, 10**11), st.sampled_from(["randrw", "stall", "per-job-logs-0"]))
def test_a8_a_shifted_log_reads_as_the_log_itself(tmp_path_factory: Any, fio: Path, taken: Any, shift: int, name: str) -> None:
    """All but where the first row begins: up to one usual width before its stamp."""
    folder = tmp_path_factory.mktemp("shifted")
    [log] = (fio / name).glob("*_clat_hist*")
    (folder / "a.json").write_bytes((fio / name / "a.json").read_bytes())
    rows = [line.split(", ", 1) for line in log.read_text().splitlines()]
    (folder / log.name).write_text("".join(f"{int(stamp) + shift}, {rest}\n" for stamp, rest in rows))
    ours, theirs = taken(folder), taken(log, fio / name / "a.json")
    moved = {mine.end_ns - row.end_ns for mine, row in zip(ours.rows, theirs.rows, strict=True) if mine.start_ns != row.start_ns}
    assert [mine.counts for mine in ours.rows] == [row.counts for row in theirs.rows]
    assert all(-1000 * MS <= step <= 0 for step in moved)


def test_a8_a_run_that_is_not_known_keeps_stamps_near_the_start() -> None:
    assert clock.base_of(59_000, Context(), lambda: 59_000) == clock.OWN
    assert clock.base_of(61_000, Context(), lambda: 62_000).ms == 61_000


@given(st.integers(0, 200_000), st.integers(0, 300_000), st.sampled_from([0, 30_000, 100_000]), st.sampled_from(["", "0", "1"]))
def test_the_quick_look_at_the_clock_never_says_more_than_the_whole_one(
    stamp: int, more: int, runtime_ms: int, alternate: str
) -> None:
    told = {"log_alternate_epoch": alternate, "log_alternate_epoch_clock_id": "1"} if alternate else {}
    context = Context(runtime_ns=runtime_ms * clock.MS, options=told)
    if clock.surely_own(stamp, context):
        assert clock.base_of(stamp, context, lambda: stamp + more) == clock.OWN


@given(st.lists(st.one_of(st.integers(-5, 3000), st.integers(0, 2 * clock.DAY_MS)), max_size=40))
def test_the_width_of_rows_is_that_which_covers_half_of_the_time_or_the_mean(steps: list[int]) -> None:
    array = np.sort(np.array([step for step in steps if 0 <= step < clock.DAY_MS], np.int64))
    covered = np.cumsum(array)
    wanted = 0
    if len(array) and covered[-1]:
        wanted = min(int(array[np.searchsorted(covered, covered[-1] / 2)]), max(1, round(float(array.mean()))))
    assert clock.typical_width_ms(steps, {}) == wanted


def test_n5b_a_start_that_fios_json_gives_too_late_is_that_of_epoch_stamps(fio: Path, tmp_path: Path) -> None:
    """The end of the run is written late, as between jobs one after another on a busy machine: no interval is missing for it."""
    shutil.copytree(fio / "unix-epoch", tmp_path / "x")
    path = tmp_path / "x" / "a.json"
    question, wanted = Question(step=SECOND, where={"kind": "completion"}), Wanted(parse_percentiles("50"))
    before = Files([tmp_path / "x"], ReadOptions(run="r"), jobs=1).answer(question)
    document = json.loads(path.read_text())
    document["timestamp_ms"] += 3_000
    path.write_text(json.dumps(document))
    after = Files([tmp_path / "x"], ReadOptions(run="r"), jobs=1).answer(question)
    assert not after.caveats and not before.caveats
    one, other = (percentiles(answer, wanted).columns for answer in (before, after))
    assert [one[name].tolist() for name in ("start_ns", "count", "max")] == [
        other[name].tolist() for name in ("start_ns", "count", "max")
    ]


def test_n5b_rows_that_follow_a_late_first_one_at_once_show_that_it_began_early() -> None:
    """fio's clock for rows goes on by a row's time with each: the second at the stamp of the first, so that was two rows' time."""
    assert clock.first_row(np.array([311, 311, 459]), np.array([55]), 100, 0) == (0, False)
    assert clock.first_row(np.array([311, 411, 511]), np.array([55]), 100, 0) == (211, True)
