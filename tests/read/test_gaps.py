"""Where a row of a fio histogram log is wider than its interval: nothing completed in the gap, and one I/O at the row's stamp.

PYTHONPATH=.:tests python -m tests.read.test_gaps 24        windows of 500 ms of so many runs of fio that are stopped, held against each I/O
"""

from __future__ import annotations

import json
import lzma
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles import brute, logs
from tests.effort import figure
from tests.read import random_fio as fio
from tests.read.test_real_tools import needs

MS = 1_000_000
BINS = 232
SLACK = 32  # a row that is late by less than this part of its width is not late
STEP_MS = 500
SEED = 20261128
ALIVE = "objectives:\n  - {name: alive, percentile: 100, threshold: 60s, window: 1s, no_data: violate}\n"
FIO = Path(__file__).parents[1] / "data" / "fio"


# ---- rows as fio's stat.c writes them ----


def completions(dice: random.Random, period: int) -> list[int]:
    """Return when I/Os complete (ms): bursts, stalls, quiet stretches, and stretches of less than one I/O a row."""
    now, found = dice.randrange(50), []
    for _ in range(dice.randrange(5, 40)):
        quiet = dice.choice((1, 1, 3, period // 10, period // 3, 2 * period))
        found += [now := now + dice.randrange(quiet + 1) for _ in range(dice.randrange(1, 60))]
        now += dice.choice((0, 0, 0, period // 2, dice.randrange(8 * period)))
    return found


def written(stamps: list[int], period: int) -> list[tuple[int, int]]:
    """Return the stamp and the samples of each row."""
    rows: list[tuple[int, int]] = []
    last, samples = None, 0
    for now in stamps:
        samples += 1
        last = last or now or None
        if last and now - last >= period:
            rows.append((now, samples))
            last, samples = last + period, 0
    return rows


@pytest.mark.cases(25)
@pytest.mark.parametrize("seed", range(60))
def test_each_io_lies_in_its_row_and_no_row_is_wider_than_its_interval(log: Any, taken: Any, seed: int) -> None:
    dice = random.Random(seed)
    period = dice.choice((40, 100, 500, 1000))
    stamps = completions(dice, period)
    rows = written(stamps, period)
    if len(rows) < 2:
        return
    slots, at, lines = [dice.randrange(BINS // 2) for _ in stamps], 0, []
    for stamp, samples in rows:
        lines.append((stamp, 0, dict(Counter(slots[at : at + samples]))))
        at += samples
    path = log(logs.text(lines, BINS))
    document = {"fio version": "fio-3.33", "jobs": [{"jobname": "x", "job options": {"log_hist_msec": str(period)}, "read": {}}]}
    (path.parent / "x.json").write_text(json.dumps(document))
    read = taken(path.parent)
    assert read.total("read") == Counter(slots[:at])
    assert (read.account.rows, read.account.samples) == (len(rows), at)
    due = min(stamp - number * period for number, (stamp, _) in enumerate(rows))  # the first row, as late as all others allow
    late_first = rows[0][0] > 3 * period  # a rule of its own: test_fio_verified.py
    seen = 0
    for number, row in enumerate(read.of("read")):
        start, end, samples = row.start_ns // MS, row.end_ns // MS, sum(row.counts.values())
        own = stamps[seen : seen + samples]
        assert (not number and late_first) or (start <= own[0] and own[-1] <= end), (number, start, end)
        assert end - start <= period + 2 * max(period // SLACK, 1) if number else end <= due + max(period // SLACK, 1)
        seen += samples
    assert seen == at
    expected = brute.settled(brute.rows_of(logs.text(lines, BINS))["read"], period, BINS, stated=True)
    given = [(row.start_ns, row.end_ns, row.counts) for row in read.of("read")]
    first = 1 + (expected[0][1] < rows[0][0] * MS)
    assert late_first or [row[1:] for row in given[:first]] == [row[1:] for row in expected[:first]]
    assert given[len(given) - len(expected) + first :] == expected[first:]


def test_after_rows_that_are_not_there_a_row_is_left_as_it_is(log: Any, taken: Any) -> None:
    """Two rows were deleted: what the next one holds completed in the last interval before its stamp, not in the first."""
    stamps = [*range(100, 1000, 100), *range(1200, 2000, 100)]
    read = taken(log(logs.text([(stamp + stamp // 100 % 3, 0, {5: 9}) for stamp in stamps], BINS)))
    assert [sum(row.counts.values()) for row in read.rows] == [9] * len(stamps)
    damaged = logs.text([(stamp, 0, {5: 9}) for stamp in range(100, 1000, 100)], BINS).splitlines(keepends=True)
    read = taken(log("".join([*damaged[:4], "garbage\n", *damaged[5:]]), "y_clat_hist.1.log"))
    assert [sum(row.counts.values()) for row in read.rows if row.series.op == "read"][-8:] == [9] * 8


def test_the_latency_that_reaches_back_over_the_gap_is_at_the_stamp(log: Any, taken: Any) -> None:
    top = next(slot for slot in range(1856) if brute.edges(1856)[slot + 1] > 3_900 * MS)
    fast = [(100 * n, 0, {500: 10}) for n in range(1, 20)]
    stalled = (6000, 0, {400: 2, 500: 7, top: 2})
    read = taken(log(logs.text([*fast, stalled, (6000, 0, {top: 1}), (6001, 0, {500: 1})], 1856)))
    ends = [(row.start_ns // MS, row.end_ns // MS, row.counts) for row in read.rows[19:]]
    assert ends == [
        (1900, 2000, {400: 2, 500: 7, top: 1}), (6000, 6000, {top: 1}), (6000, 6000, {top: 1}), (6001, 6001, {500: 1})
    ]  # fmt: skip


# ---- a recording: fio was stopped from 27.2 to 32.2 s ----


def test_n16_a_recorded_stall_is_where_each_io_says(tmp_path: Path) -> None:
    of_rows, of_ios = tmp_path / "rows", tmp_path / "ios"
    for folder, pattern in ((of_rows, "*_clat_hist.*"), (of_ios, "*_clat.*")):
        folder.mkdir()
        shutil.copy(FIO / "stopped" / "json_output.0.node2", folder)
        for path in (FIO / "stopped").glob(pattern):
            if path.suffix == ".xz":
                (folder / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
            else:
                shutil.copy(path, folder)
    found = {}
    for folder in (of_rows, of_ios):
        rows, _ = fio.ask([*fio.TAILBOARD, "percentiles", str(folder), "--step", "1s", "-p", "50", "--format", "ndjson"])
        found[folder] = {round(fio.seconds(row["start"])): row for row in rows}
        (tmp_path / "alive.yml").write_text(ALIVE)
        episodes, _ = fio.ask(
            [*fio.TAILBOARD, "check", str(tmp_path / "alive.yml"), str(folder), "--format", "ndjson"], fails=True
        )
        found[folder, "episodes"] = [(round(fio.seconds(each["start"])), round(fio.seconds(each["end"]))) for each in episodes]
    assert found[of_rows, "episodes"] == found[of_ios, "episodes"] != []
    rows, ios = found[of_rows], found[of_ios]
    assert set(rows) == set(ios)  # and no window in the gap
    stop = found[of_rows, "episodes"][0][1]
    assert (rows[stop]["max"], ios[stop]["max"]) == (pytest.approx(4.88e9, rel=0.01), pytest.approx(4.88e9, rel=0.01))
    assert all(abs(rows[at]["count"] - ios[at]["count"]) <= 0.05 * max(ios[at]["count"], 100) for at in ios if at > min(ios))


# ---- fio itself, stopped ----


def allowed(case: fio.Case, log: fio.Log, counts: dict[str, list[int]], op: str, at: float) -> tuple[int, int]:
    """Return how many completions an answer may have by a moment (ms): at least and at most.

    Within the first interval of a row what it holds may have completed at any time, but the one at its stamp. After that interval there
    is no choice until the stamp. A row that is late by two 32nds of its interval or less (one of its width, one of its lateness) is as
    wide as it is. Stamps are right to a millisecond.
    """
    rows, seen = log.rows.get(op, np.empty(0, np.int64)), np.cumsum([0, *counts.get(op, [])]).tolist()
    whole = len(log.stamps[op])
    least = most = 0
    for near in (-1, 0, 1):
        row = int(np.searchsorted(rows, at + near))  # (rows[row - 1], rows[row]]
        if row == len(rows):
            low, high = seen[-1], whole
        elif row and rows[row] - rows[row - 1] > case.every_ms + 2 * max(case.every_ms // SLACK, 1) + 1:
            low = seen[row + 1] - 1 if at + near >= rows[row - 1] + case.every_ms else seen[row]
            high = seen[row + 1] - 1 if at + near < rows[row] else seen[row + 1]
        else:
            low, high = seen[row], seen[row + 1]
        if near == -1:
            least, most = low, high
        least, most = min(least, low), max(most, high)
    return least, most


def windows(case: fio.Case, folder: Path) -> tuple[int, list[str]]:
    """Return how many windows of 500 ms an answer was held against each I/O in, and what is wrong in which of them."""
    truth = fio.oracle(case, folder)
    counts: list[dict[str, list[int]]] = []
    for path in sorted((folder / "run").glob("h_clat_hist.*.log")):
        held: dict[str, list[int]] = {}
        for line in path.read_text().splitlines():
            _, way, _, *cells = map(int, line.split(","))
            held.setdefault(fio.OPS[way], []).append(sum(cells))
        counts.append(held)
    said = [
        "--step",
        f"{STEP_MS}ms",
        "--by",
        "op",
        "--where",
        "kind=completion",
        "--force",
        "-p",
        "50",
        "--format",
        "ndjson",
        "--all",
    ]
    rows, notes = fio.ask([*fio.TAILBOARD, "percentiles", str(folder / "run"), *said])
    number, wrong = 0, list(notes) if not rows else []
    for op in sorted({op for log in truth.logs for op in log.stamps}):
        own = [(round(fio.seconds(row["start"]) * 1000) + STEP_MS, row["count"]) for row in rows if row["op"] == op]
        pairs = [(log, held) for log, held in zip(truth.logs, counts, strict=True) if op in log.stamps]
        first, last = min(int(log.stamps[op][0]) for log, _ in pairs), max(int(log.stamps[op][-1]) for log, _ in pairs)
        right = True
        for edge in range(first // STEP_MS * STEP_MS, last, STEP_MS):
            has = sum(count for end, count in own if end <= edge)
            least, most = (sum(each) for each in zip(*(allowed(case, log, held, op, edge) for log, held in pairs), strict=True))
            before, right = right, least <= has <= most
            number += 1
            if not (before and right):
                wrong.append(f"{op} by {edge}: {has} for {least} to {most}")
    return number, wrong


def verdicts(case: fio.Case, folder: Path) -> tuple[bool, bool]:
    """Return whether windows of 1 s without a completion violate an objective: by the rows, and by each I/O."""
    ios = folder / "ios"
    ios.mkdir(exist_ok=True)
    for path in sorted(folder.rglob("*_clat.*.log")):
        shutil.copy(path, ios)
    (folder / "alive.yml").write_text(ALIVE)
    found = []
    for data in (folder / "run", ios):
        episodes, _ = fio.ask([*fio.TAILBOARD, "check", str(folder / "alive.yml"), str(data), "--format", "ndjson"], fails=True)
        found.append(bool(episodes))
    return found[0], found[1]


def stopped(number: int, first: int, folder: Path) -> Iterator[tuple[fio.Case, Path]]:
    """Yield cases with stamps of real time that fio was stopped in, and their folders."""
    seeds = (seed for seed in range(first, first + 100 * number) if fio.gap_case(seed).epoch and not fio.gap_case(seed).raw)
    for each in fio.recordings([fio.gap_case(next(seeds)) for _ in range(number)], folder):
        yield each.case, each.folder


def held(number: int, folder: Path) -> None:
    """Fail where windows are wrong, or where rows and I/Os give unlike verdicts of a stall that is longer than any doubt."""
    judged = 0
    for case, each in stopped(number, SEED, folder):
        windows_of_run, wrong = windows(case, each)
        assert windows_of_run > 5 and not wrong, f"{each} {case.job}: {wrong}"
        if case.stop and case.stop[1] > 2.1 + case.every_ms / 1000:  # at least one window lies within the gap, by the rows too
            assert verdicts(case, each) == (True, True), each
            judged += 1
    assert judged


@pytest.mark.slow
@pytest.mark.tools
@needs("fio")
def test_windows_of_a_stopped_fio_are_those_of_each_io(tmp_path: Path) -> None:
    held(figure(3, 4), tmp_path)


@pytest.mark.soak
@pytest.mark.tools
@needs("fio")
def test_windows_of_many_stopped_fios_are_those_of_each_io(tmp_path: Path) -> None:
    held(figure(8, 8, 40), tmp_path)


if __name__ == "__main__":
    total, bad = 0, 0
    for one, where in stopped(int(sys.argv[1]), SEED + 1000, Path(tempfile.mkdtemp(prefix="gaps-"))):
        count, faults = windows(one, where)
        total, bad = total + count, bad + len(faults)
        print(where, one.every_ms, one.stop, count, faults[:3], verdicts(one, where), flush=True)
    print(f"{total} windows, {bad} wrong")
