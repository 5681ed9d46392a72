"""fio jobs that read and verify what they have written: each direction in its own time, held against fio's log of each I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import read
from ingest.read.fio import histogram_log, json_output
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import per_io

MS = 1_000_000
PERIOD_MS = 200
LATE_MS = 30  # that a row, or fio's count of the time of a direction, may be late
HIST = "a_clat_hist.1.log"
T0 = ReadOptions(t0=0)
WANTED = Wanted(parse_percentiles("50"))


def alone(source: Path, target: Path, *names: str) -> Path:
    """Return a folder of some files of a recording."""
    target.mkdir(exist_ok=True)
    for name in names:
        (target / name).write_bytes((source / name).read_bytes())
    return target


def rows(folder: Path, options: ReadOptions = T0) -> Iterator[tuple[str, int, int, int]]:
    """Yield (op, start in ms, end in ms, samples) of each interval of a folder."""
    for intervals in (part for source in discover([folder], options).sources for part in read(source)):
        for row, samples in enumerate(intervals.samples.tolist()):
            series = intervals.table[intervals.series[row]]
            yield series.op, int(intervals.start_ns[row]) // MS, int(intervals.end_ns[row]) // MS, samples


def spans_of(folder: Path, log: str = "a_clat.1.log") -> dict[str, tuple[int, int]]:
    """Return when the first and the last I/O of each direction completed in ms."""
    return {op: (min(each)[0], max(each)[0]) for op, each in per_io.samples(folder / log).items()}


@pytest.mark.parametrize("name", ["verified", "verified-mixed", "verified-short", "verified-loops", "verified-backlog"])
def test_a_job_is_as_long_as_its_log_of_each_io(fio: Path, name: str) -> None:
    *_, document = json_output.documents(fio / name / "a.json")
    (job,) = document.jobs
    ended = max(last for _, last in spans_of(fio / name).values())
    assert 0 <= job.runtime_ms - ended <= LATE_MS


@pytest.mark.parametrize("name", ["verified", "verified-mixed", "verified-short"])
def test_each_io_is_counted_in_the_time_of_its_direction(fio: Path, name: str, tmp_path: Path) -> None:
    folder = alone(fio / name, tmp_path / "a", HIST, "a.json")
    found, truth = list(rows(folder)), spans_of(fio / name)
    for op, (first, last) in truth.items():
        mine = [row for row in found if row[0] == op]
        assert sum(samples for *_, samples in mine) == len(per_io.samples(fio / name / "a_clat.1.log")[op])
        begin, end = min(start for _, start, _, _ in mine), max(end for _, _, end, _ in mine)
        assert begin <= first + 1  # fio rounds up to whole ms
        assert first - begin <= LATE_MS
        assert -2 <= end - last <= LATE_MS
        assert max(end - start for _, start, end, _ in mine) <= PERIOD_MS + 2 * LATE_MS


@pytest.mark.parametrize("name", ["verified", "verified-mixed", "verified-loops", "verified-backlog"])
def test_rows_never_hold_less_than_completed_by_then(fio: Path, name: str, tmp_path: Path) -> None:
    """All rows that end by a moment hold what had completed by the last of them, and no more than by that moment."""
    folder = alone(fio / name, tmp_path / "a", HIST, "a.json")
    found = list(rows(folder))
    for op, each in per_io.samples(fio / name / "a_clat.1.log").items():
        mine = sorted((end, samples) for of, _, end, samples in found if of == op)
        held = np.cumsum([samples for _, samples in mine])
        for (end, _), by_then in zip(mine, held.tolist(), strict=True):
            assert sum(stamp < end for stamp, _ in each) <= by_then <= sum(stamp <= end for stamp, _ in each) + 1


def test_means_of_verified_ios_begin_when_they_do(fio: Path) -> None:
    found = list(rows(fio / "verified-means"))
    (job,) = json.loads((fio / "verified-means" / "a.json").read_text())["jobs"]
    reads = [row for row in found if row[0] == "read"]
    assert min(start for _, start, _, _ in reads) == job["write"]["runtime"]
    assert sum(samples for *_, samples in reads) == job["read"]["total_ios"]
    assert min(samples / (end - start) for _, start, end, samples in reads if end > start) > 0.5


def test_without_logs_each_direction_has_its_time(fio: Path, tmp_path: Path) -> None:
    (job,) = json.loads((fio / "verified" / "a.json").read_text())["jobs"]
    written, read = job["write"]["runtime"], job["read"]["runtime"]
    both = {"write": (0, written), "read": (written, written + read)}
    folder = alone(fio / "verified", tmp_path / "a", "a.json")
    assert {op: (start, end) for op, start, end, _ in rows(folder)} == both
    plain = alone(fio / "verified-means", tmp_path / "b", "a.json")
    (job,) = json.loads((plain / "a.json").read_text())["jobs"]
    written, read = job["write"]["runtime"], job["read"]["runtime"]
    assert {op: (start, end) for op, start, end, _ in rows(plain)} == {"write": (0, written), "read": (written, written + read)}


def test_a_run_begins_when_it_did(fio: Path, tmp_path: Path) -> None:
    """Without job_start (fio before 3.36) the start is the time stamp less how long the job ran."""
    folder = alone(fio / "verified", tmp_path / "a", HIST, "a.json")
    (job,) = json.loads((fio / "verified" / "a.json").read_text())["jobs"]
    stamp = json.loads((fio / "verified" / "a.json").read_text())["timestamp_ms"]
    assert min(start for _, start, _, _ in rows(folder, ReadOptions())) == stamp - job["job_runtime"]


def test_a_group_of_jobs_verifies_after_it_has_written(fio: Path, tmp_path: Path) -> None:
    folder = alone(fio / "verified-group", tmp_path / "a", HIST, "a_clat_hist.2.log", "a.json")
    firsts = [spans_of(fio / "verified-group", f"a_clat.{number}.log")["read"][0] for number in (1, 2)]
    reads = [row for row in rows(folder) if row[0] == "read"]
    assert min(start for _, start, _, _ in reads) >= min(firsts) - PERIOD_MS
    assert sum(samples for *_, samples in reads) == 1024


@pytest.mark.parametrize(
    ("options", "length", "spans"),
    [
        ({"rw": "randwrite", "verify": "crc32c"}, 300, {"write": (0, 200), "read": (200, 301)}),
        ({"rw": "randwrite", "verify": "crc32c", "numjobs": "2"}, 301, {"write": (0, 200), "read": (200, 301)}),
        ({"rw": "write:8", "verify": "md5", "verify_backlog": "8"}, 300, {"write": (0, 200)}),
        ({"rw": "write", "verify": "md5", "loops": "3"}, 300, {}),
        ({"rw": "randrw", "verify": "md5"}, 200, {"write": (0, 200)}),
        ({"rw": "randrw"}, 200, {}),
        ({"rw": "write", "verify": "0"}, 200, {}),
        ({"rw": "write", "verify": "md5", "do_verify": "0"}, 200, {}),
    ],
)
def test_what_a_job_did_by_its_options(options: dict[str, str], length: int, spans: dict[str, tuple[int, int]]) -> None:
    assert json_output._course({"read": 101, "write": 200, "trim": 0}, 300, options) == (length, spans)


@pytest.mark.parametrize("name", ["verified", "verified-loops"])
def test_without_json_a_late_first_row_begins_at_its_first_io(fio: Path, name: str, tmp_path: Path) -> None:
    """fio begins a row at the first I/O of a direction; spread from the beginning of the log it would show I/Os that were not."""
    folder = alone(fio / name, tmp_path / "a", HIST)
    first, _ = spans_of(fio / name)["read"]
    begin = min(start for op, start, _, _ in rows(folder) if op == "read")
    assert abs(begin - first) <= LATE_MS


@pytest.mark.parametrize("names", [(HIST,), (HIST, "a.json")])
@pytest.mark.parametrize("name", ["verified", "verified-backlog", "verified-loops"])
def test_a_late_first_row_is_said_where_it_is_not_known_why(fio: Path, name: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Until it began no window is complete, as rows may have been before it; of I/Os between writes that is so in the recording."""
    folder = alone(fio / name, tmp_path / "a", *names)
    first_row = int(next(line.split(",")[0] for line in (folder / HIST).read_text().splitlines() if line.split(", ")[1] == "0"))
    begin = min(start for op, start, _, _ in rows(folder) if op == "read")
    table = percentiles(Files([folder], T0, jobs=1).answer(Question(by=("op",), step=200 * MS)), WANTED).columns
    known = name == "verified" and len(names) == 2
    early = [
        complete
        for op, end, complete in zip(table["op"], table["end_ns"], table["complete"], strict=True)
        if op == "read" and end < begin * MS
    ]
    late = [
        complete
        for op, start, complete in zip(table["op"], table["start_ns"], table["complete"], strict=True)
        if op == "read" and first_row * MS < start < (first_row + 200) * MS
    ]
    assert all(early) if known else not any(early)
    assert all(late)
    assert len(late) > 0
    codes = {caveat.code for caveat in Files([folder], T0, jobs=1).answer(Question(by=("op",))).caveats}
    assert ("late-first-row" in codes) is not known


@pytest.mark.parametrize("with_json", [True, False])
@pytest.mark.parametrize(("rows_of", "late"), [
    ([(607, 4), (806, 1), (1007, 1), (1203, 1)], False),  # five a second: a row of 200 ms holds one
    ([(1107, 5), (1406, 1), (1807, 2), (2203, 1)], False),
    ([(1107, 40), (1406, 1), (1807, 2), (2203, 1)], True),  # far more than such rows hold
    ([(1107, 40), (1307, 40), (1507, 40), (1707, 40)], True),  # rows were lost before it
    ([(1107, 4), (1307, 40), (1507, 40), (1707, 40)], True),
])  # fmt: skip
def test_the_first_row_of_a_rare_op_is_as_late_as_its_next_rows_explain(
    rows_of: list[tuple[int, int]], late: bool, with_json: bool, tmp_path: Path
) -> None:
    dense = [(200 * n, 0, 20) for n in range(1, 14)]  # how wide rows are is seen of another op
    lines = sorted([*dense, *((stamp, 1, count) for stamp, count in rows_of)])
    (tmp_path / HIST).write_text("".join(f"{stamp}, {op}, 4096, {count}{', 0' * 28}\n" for stamp, op, count in lines))
    if with_json:
        options = {"rw": "randrw", "write_hist_log": "a", "log_hist_msec": "200", "log_hist_coarseness": "6"}
        counted = {"read": 260, "write": sum(count for _, count in rows_of)}
        ops = {
            op: {
                "total_ios": n,
                "runtime": 2700,
                "clat_ns": {"min": 10, "max": 10, "mean": 10.0, "stddev": 0.0, "N": n, "bins": {"10": n}},
            }
            for op, n in counted.items()
        }
        job = {"jobname": "a", "groupid": 0, "job options": options, "job_runtime": 2700, **ops}
        document = {"fio version": "fio-3.33", "timestamp": 1_795_000_000, "timestamp_ms": 1_795_000_000_000, "jobs": [job]}
        (tmp_path / "a.json").write_text(json.dumps(document))
    caveats = Files([tmp_path], T0, jobs=1).answer(Question(by=("op",))).caveats
    assert ("late-first-row" in {caveat.code for caveat in caveats}) is late


@pytest.mark.parametrize("name", ["latency-target"])
def test_rows_that_catch_up_make_no_first_row_late(fio: Path, name: str, tmp_path: Path) -> None:
    """After a stall rows of one sample each are far narrower than the first row, which is as wide as dense rows are."""
    caveats = Files([alone(fio / name, tmp_path / "a", HIST)], T0, jobs=1).answer(Question(by=("op",))).caveats
    assert "late-first-row" not in {caveat.code for caveat in caveats}


def test_a_late_first_row_of_three_may_have_begun_at_any_time(fio: Path, tmp_path: Path) -> None:
    """Of a rare op the first I/O may have completed long before the second, and if that was in its first ms, before the third."""
    folder = alone(fio / "verified", tmp_path / "a", HIST)
    lines = [line.split(", ") for line in (folder / HIST).read_text().splitlines()]
    place = next(place for place, line in enumerate(lines) if line[1] == "0")
    for held, late in ((3, False), (4, True)):
        lines[place][3:] = ["0"] * 9 + [str(held)] + ["0"] * (len(lines[place]) - 13)
        (folder / HIST).write_text("".join(", ".join(line).rstrip() + "\n" for line in lines))
        assert (min(start for op, start, _, _ in rows(folder) if op == "read") > 0) is late


def test_rows_that_were_deleted_at_the_beginning_are_said(fio: Path, tmp_path: Path) -> None:
    folder = alone(fio / "verified", tmp_path / "a", HIST, "a.json")
    lines = (folder / HIST).read_text().splitlines(keepends=True)
    (folder / HIST).write_text("".join(lines[4:]))
    answer = Files([folder], T0, jobs=1).answer(Question(by=("op",), step=200 * MS))
    assert "late-first-row" in {caveat.code for caveat in answer.caveats}
    table = percentiles(answer, WANTED).columns
    writes = [
        (int(start) // MS, complete)
        for start, op, complete in zip(*(table[name] for name in ("start_ns", "op", "complete")), strict=True)
        if op == "write"
    ]
    assert [start for start, complete in writes if complete] == [1000, 1200, 1400]
    assert sum(count for count, op in zip(table["count"], table["op"], strict=True) if op == "write") == 1024


@pytest.mark.parametrize("name", ["verified", "verified-loops"])
def test_small_logs_that_are_read_together_begin_as_each_alone(fio: Path, name: str, tmp_path: Path) -> None:
    folder = alone(fio / name, tmp_path / "a", HIST, "a.json")
    for number in range(2, 40):
        (folder / f"b_clat_hist.{number}.log").write_text((folder / HIST).read_text().replace(", 0, 0\n", f", 0, {number}\n"))
    found = discover([folder], T0)
    sources = [source for source in found.sources if source.path.name.endswith(".log")]
    assert len(sources) == 39
    one_by_one = [part for source in sources for part in histogram_log.read(source.path, source.context)]
    expected = sorted(start for part in one_by_one for start in part.start_ns.tolist())
    again = discover([folder], T0)
    left: list[int] = []
    logs = [(source.path, source.context) for source in again.sources if source.path.name.endswith(".log")]
    together = list(histogram_log.read_many(logs, left))
    others = [part for number in left for part in histogram_log.read(sources[number].path, again.sources[number].context)]
    assert sorted(start for part in (*together, *others) for start in part.start_ns.tolist()) == expected
