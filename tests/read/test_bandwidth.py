"""Bytes of averaged fio logs: held against plain loops over the log of bandwidth, and against what fio itself counted."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import read
from ingest.read.fio.averaged_log import BANDWIDTH, Beside, ticks
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from tests.read.test_averaged import CBT, FIO, MS, OPS, fio_json, lines_of, rows_of, sources_of, table_of

KIB, MIB = 1024, 1 << 20
FOLDERS = {
    "means-100": 100,
    "means-500": 500,
    "means-sizes": 500,
    "means-pause": 100,
    "means-sparse": 100,
    "means-epoch": 500,
    "means-shared": 500,
}


def bytes_of(source: Any) -> dict[str, list[tuple[int, int]]]:
    """Return (end ns, bytes) of all rows by op."""
    found: dict[str, list[tuple[int, int]]] = {}
    for part in read(source):
        for row in range(len(part)):
            op = part.table[part.series[row]].op
            found.setdefault(op, []).append((int(part.end_ns[row]), int(part.exact.moved[row])))
    return found


def of_log(folder: Path, log: str, window: int, begin: int) -> dict[str, tuple[float, float]]:
    """Return (bytes, how far these may be from fio's own) of a log of bandwidth by op, as docs/reference/formats.md states it.

    A row is KiB/s, rounded down, of the ms since the tick before it: the row before, or one window where that lies further back.
    """
    found = {}
    for code, op in enumerate(OPS):
        last, total, bound, span = begin, 0.0, 0.0, 0
        for stamp, rate, direction, *_ in lines_of(folder / log):
            if direction != code:
                continue
            last = begin if stamp < last else last
            spent = stamp - last if stamp - last < 2 * (window - 2) else window
            total += rate * KIB * spent / 1000
            bound += (rate * KIB * 2 + KIB * spent) / 1000
            last, span = stamp, span + spent
        if total:
            found[op] = total, bound + total / span * window
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a18_bytes_of_all_rows_are_fios_own(folder: str) -> None:
    jobs = fio_json(FIO / folder / "a.json")["jobs"]
    for name, source in sources_of(FIO / folder).items():
        if not name.startswith(("a_clat.", "a_lat.")):
            continue
        mine = [jobs[int(name.split(".")[1]) - 1]] if folder != "means-shared" else jobs
        found = bytes_of(source)
        for op in ("read", "write"):
            assert sum(moved for _, moved in found[op]) == sum(job[op]["io_bytes"] for job in mine), (folder, name, op)


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in ("means-shared", "means-epoch")])
def test_a18_log_of_bandwidth_alone_is_within_the_stated_bound(folder: str, tmp_path: Path) -> None:
    for name in ("a_clat.1.log", "a_iops.1.log", "a_bw.1.log"):
        shutil.copy(FIO / folder / name, tmp_path)
    source = sources_of(tmp_path, fio_version=(3, 33))["a_clat.1.log"]
    found, job = bytes_of(source), fio_json(FIO / folder / "a.json")["jobs"][0]
    logged = of_log(tmp_path, "a_bw.1.log", FOLDERS[folder], 0)
    for op, (_, bound) in logged.items():
        moved = sum(one for _, one in found[op])
        assert abs(moved - job[op]["io_bytes"]) <= bound, (op, moved, job[op]["io_bytes"], bound)
        assert bound < (0.2 if FOLDERS[folder] == 100 else 0.4) * job[op]["io_bytes"] or folder in ("means-sparse", "means-pause")
    notes = source.context.account.notes
    assert any("bytes come only from fio's log of bandwidth, which rounds" in note for note in notes)


def test_a18_bytes_of_a_window_are_those_of_its_row() -> None:
    """Both logs have their rows every 500 ms here: each row of means has the bytes of the row of bandwidth at its stamp."""
    found = bytes_of(sources_of(FIO / "means-sizes" / "a_clat.1.log")["a_clat.1.log"])
    job = fio_json(FIO / "means-sizes" / "a.json")["jobs"][0]
    for code, op in enumerate(("read", "write")):
        rates = [rate for _, rate, direction, *_ in lines_of(FIO / "means-sizes" / "a_bw.1.log") if direction == code]
        moved = [one for _, one in found[op]]
        assert moved[: len(rates)] == pytest.approx([rate * KIB / 2 for rate in rates], rel=0.06)
        # I/Os of 4 and 64 KiB, so that counts do not tell bytes
        sizes = job[op]["io_bytes"] / job[op]["total_ios"]
        assert sizes not in (4096, 65536)
        assert sum(moved) == job[op]["io_bytes"]


def test_a18_ticks_without_an_io_are_not_in_the_rate_of_the_next_row(tmp_path: Path) -> None:
    """300 reads and 300 writes with pauses of 1.5 s: a row after a pause is of one window, not of the pause."""
    for name in ("a_clat.1.log", "a_iops.1.log", "a_bw.1.log"):
        shutil.copy(FIO / "means-pause" / name, tmp_path)
    source = sources_of(tmp_path, fio_version=(3, 33))["a_clat.1.log"]
    counted = rows_of(source)
    for op in ("read", "write"):
        assert sum(count for _, count, *_ in counted[op]) == pytest.approx(300, rel=0.06)
    assert not any("ends" in note for note in source.context.account.notes)
    moved = bytes_of(sources_of(tmp_path, fio_version=(3, 33))["a_clat.1.log"])
    for op in ("read", "write"):
        assert sum(one for _, one in moved[op]) == pytest.approx(300 * 4096, rel=0.06)


def test_a18_a_tick_that_came_late_is_of_all_its_time() -> None:
    times, busy, idle = np.array([100, 200, 700]), np.arange(100, 701, 100), np.array([100, 200, 700])
    assert ticks(times, idle, 0, 100).tolist() == [100, 100, 100]
    assert ticks(times, busy, 0, 100).tolist() == [100, 100, 500]
    assert ticks(times, np.array([100, 205, 700]), 0, 100).tolist() == [100, 100, 100], "written when another direction ended one"
    assert ticks(np.array([147, 247]), busy, 0, 100).tolist() == [147, 100]
    assert ticks(np.array([1, 2, 9]), np.array([1, 2, 9]), 0, 1).tolist() == [1, 1, 1]


def test_a18_bytes_of_grouped_jobs_are_those_of_their_sum() -> None:
    [job] = fio_json(FIO / "means-grouped" / "a.json")["jobs"]
    sources = sources_of(FIO / "means-grouped")
    found = [bytes_of(sources[f"a_clat.{number}.log"]) for number in (1, 2, 3)]
    for op in ("read", "write"):
        sums = [sum(moved for _, moved in one[op]) for one in found]
        assert sum(sums) == job[op]["io_bytes"]
        assert sums == pytest.approx([job[op]["io_bytes"] / 3] * 3, rel=0.05)


def without(folder: str, tmp_path: Path, *names: str) -> Path:
    shutil.copytree(FIO / folder, tmp_path / "logs", ignore=lambda *_: ["h_clat_hist.1.log", *names])
    return tmp_path / "logs"


def test_a18_without_a_log_of_bandwidth_only_the_whole_run_has_bytes(tmp_path: Path) -> None:
    """They are never guessed from a count and a block size."""
    folder = without("means-sizes", tmp_path, "a_bw.1.log")
    windows = table_of(Question(step=500 * MS, by=("op",)), folder)
    assert len(windows["mib_s"]) and np.isnan(windows["mib_s"]).all()
    whole = table_of(Question(step="all", by=("op",)), folder)
    job = fio_json(FIO / "means-sizes" / "a.json")["jobs"][0]
    seconds = [(end - start) / 1e9 for start, end in zip(whole["start_ns"], whole["end_ns"], strict=True)]
    expected = [job[op]["io_bytes"] / MIB / one for op, one in zip(("read", "write"), seconds, strict=True)]
    assert whole["mib_s"] == pytest.approx(expected, rel=1e-12)


def test_a18_rates_are_of_the_same_time_as_those_of_ios() -> None:
    table = table_of(Question(step=500 * MS, by=("op",)), FIO / "means-sizes")
    job = fio_json(FIO / "means-sizes" / "a.json")["jobs"][0]
    for op in ("read", "write"):
        mine = [row for row, one in enumerate(table["op"]) if one == op]
        moved = sum(table["mib_s"][row] * MIB * table["count"][row] / table["rate"][row] for row in mine)
        assert moved == pytest.approx(job[op]["io_bytes"], rel=1e-9)


def test_a18_one_job_without_a_log_of_bandwidth_leaves_the_sum_open(tmp_path: Path) -> None:
    folder = without("means-100", tmp_path, "a_bw.2.log")
    table = table_of(Question(step=100 * MS, by=("job",)), folder)
    known = {
        job: [not np.isnan(one) for one, mine in zip(table["mib_s"], table["job"], strict=True) if mine == job] for job in "12"
    }
    assert all(known["1"]) and not any(known["2"])
    together = table_of(Question(step=100 * MS), folder)
    assert np.isnan(together["mib_s"]).all()
    jobs = fio_json(FIO / "means-100" / "a.json")["jobs"]
    [rate] = table_of(Question(step="all", where={"op": "read"}), folder)["mib_s"]
    whole = table_of(Question(step="all", where={"op": "read"}), folder)
    seconds = (whole["end_ns"][0] - whole["start_ns"][0]) / 1e9
    assert rate == pytest.approx(sum(job["read"]["io_bytes"] for job in jobs) / MIB / seconds, rel=1e-12)


def test_a18_json_alone_tells_the_bytes_of_the_run() -> None:
    jobs = fio_json(FIO / "plain-json" / "a.json")["jobs"]
    [source] = discover([FIO / "plain-json"], ReadOptions()).sources
    found = [
        (int(part.table[0].job), part.table[0].op, int(part.exact.moved[0]))
        for part in read(source)
        if part.table[0].kind == "completion.mean"
    ]
    assert found == [(number + 1, op, job[op]["io_bytes"]) for number, job in enumerate(jobs) for op in ("read", "write")]


def test_a18_old_json_counts_io_bytes_in_kib_and_is_not_taken(tmp_path: Path) -> None:
    """fio before 2.21 has no io_kbytes, and its io_bytes are KiB."""
    folder = without("means-sizes", tmp_path)
    told = fio_json(folder / "a.json")
    for op in ("read", "write"):
        told["jobs"][0][op]["io_bytes"] = told["jobs"][0][op].pop("io_kbytes")
    (folder / "a.json").write_text(json.dumps(told, indent=2))
    source = sources_of(folder)["a_clat.1.log"]
    found = bytes_of(source)
    logged = of_log(folder, "a_bw.1.log", 500, 0)
    for op, (moved, bound) in logged.items():
        assert abs(sum(one for _, one in found[op]) - moved) <= bound
    assert any("only from fio's log of bandwidth" in note for note in source.context.account.notes)


def test_a18_a_log_of_bandwidth_that_counts_otherwise_is_told(tmp_path: Path) -> None:
    folder = without("means-sizes", tmp_path)
    lines = [[cells[0], 2 * cells[1], *cells[2:]] for cells in lines_of(folder / "a_bw.1.log")]
    (folder / "a_bw.1.log").write_text("".join(", ".join(map(str, cells)) + "\n" for cells in lines[:-4]))
    source = sources_of(folder)["a_clat.1.log"]
    found = bytes_of(source)
    job = fio_json(folder / "a.json")["jobs"][0]
    assert sum(one for _, one in found["read"]) == job["read"]["io_bytes"]
    notes = source.context.account.notes
    assert any("read: fio's log of bandwidth holds" in note and "MiB: windows were scaled" in note for note in notes)
    assert any("the log of bandwidth ends 1,300 ms before that of latencies" in note for note in notes), notes


def test_a18_histograms_have_no_column_of_bandwidth() -> None:
    answer = Files([FIO / "coarse-3"]).answer(Question(step="all"))
    assert "mib_s" not in percentiles(answer, Wanted(parse_percentiles("50"))).columns


def test_a18_cbt_archive_without_logs_of_bandwidth_has_that_of_its_runs() -> None:
    [summary] = CBT.glob("16k7030.client1.lab.test/**/json_output.0")
    where = {"kind": "completion.mean", "op": "read"}
    whole = table_of(Question(step="all", where=where), summary.parent, host="client1.lab.test")
    seconds = (whole["end_ns"][0] - whole["start_ns"][0]) / 1e9
    told = fio_json(summary)["jobs"][0]["read"]["io_bytes"]
    assert whole["mib_s"] == pytest.approx([told / MIB / seconds], rel=1e-12)


def simulated(events: list[tuple[int, int, int]], window: int) -> tuple[list[tuple[int, int]], dict[int, list[tuple[int, int]]]]:
    """Return what fio logs of I/Os (ms, direction, bytes) in time order: (stamp, direction) of means, rows of bandwidth by direction.

    As stat.c does it: the helper ticks once a window and writes a row of each direction that moved something; a mean is written
    when an I/O ends a window or more after the last one of its direction, and then those of all directions with it.
    """
    means, rates = [], {0: [], 1: []}
    waiting, last = {0: 0, 1: 0}, {0: 0, 1: 0}
    for stamp, direction, _ in events:
        waiting[direction] += 1
        if stamp - last[direction] >= window:
            means += [(stamp, one) for one in (0, 1) if waiting[one]]
            waiting = {0: 0, 1: 0}
            last[direction] = stamp - stamp % window
    end = events[-1][0]
    means += [(end, one) for one in (0, 1) if waiting[one]]
    for tick in range(window, end + 1, window):
        for direction in (0, 1):
            moved = sum(size for stamp, one, size in events if one == direction and tick - window < stamp <= tick)
            if moved:
                rates[direction].append((tick, moved * 1000 // window // KIB))
    return means, rates


@settings(max_examples=100)
@given(
    gaps=st.lists(
        st.tuples(st.sampled_from([1, 7, 30, 90, 140, 900, 2500]), st.integers(0, 1), st.sampled_from([512, 4096, 1 << 20])),
        min_size=2,
        max_size=60,
    ),
    window=st.sampled_from([100, 500]),
)
def test_a18_bytes_at_each_stamp_lie_between_those_of_the_ticks_around_it(gaps: list[tuple[int, int, int]], window: int) -> None:
    at, events = 0, []
    for gap, direction, size in gaps:
        at += gap
        events.append((at, direction, size))
    means, rates = simulated(events, window)
    for direction, rows in rates.items():
        stamps = np.array([stamp for stamp, one in means if one == direction], np.int64)
        if not rows or not len(stamps):
            continue
        log = Beside(BANDWIDTH, {direction: (np.array([tick for tick, _ in rows]), np.array([rate for _, rate in rows]))}, window)
        found = log.estimates(direction, stamps, 0)
        if found is None:
            continue
        mine = [(stamp, size) for stamp, one, size in events if one == direction]
        rounding = KIB * window / 1000 * (len(rows) + 1)
        for stamp, sofar in zip(stamps[:-1].tolist(), np.cumsum(found)[:-1].tolist(), strict=True):
            if stamp > rows[-1][0]:
                break
            before = sum(size for when, size in mine if when <= stamp // window * window)
            after = sum(size for when, size in mine if when <= -(-stamp // window) * window)
            assert before - rounding <= sofar <= after + 1, (stamp, before, sofar, after)
        logged = sum(size for when, size in mine if when <= rows[-1][0])
        tail = found.sum() - logged
        left = max(int(stamps[-1]) - rows[-1][0], 0)
        assert -rounding <= tail <= logged / rows[-1][0] * (left if left < 2 * window else window) + 1


def test_a18_bytes_of_a_cbt_archive_are_fios_own_by_host_volume_and_op(tmp_path: Path) -> None:
    """CBT's own fio_cmd with logs of bandwidth: each log against the JSON of its volume, and against its rows alone."""
    with tarfile.open(CBT.parents[3] / "A.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    checked = 0
    for source in discover([tmp_path], ReadOptions()).sources:
        if not source.path.name.endswith("_clat.1.log") and "_clat.1.log." not in source.path.name:
            continue
        volume = source.path.name.split("_")[0].rpartition(".")[2]
        [summary] = source.path.parent.glob(f"json_output.{volume}*")
        job = fio_json(summary)["jobs"][0]
        logged = of_log(source.path.parent, source.path.name.replace("_clat", "_bw"), 100, 0)
        for op, rows in bytes_of(source).items():
            moved, bound = logged[op]
            assert sum(one for _, one in rows) == job[op]["io_bytes"]
            assert abs(moved - job[op]["io_bytes"]) <= bound < 0.06 * job[op]["io_bytes"], (source.path, op, moved, bound)
            checked += 1
    assert checked == 24
