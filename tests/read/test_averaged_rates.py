"""Averaged logs without fio's JSON: counts and bytes from fio's rates, as old versions write them, and what an answer says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.fio.averaged_log import BANDWIDTH, IOPS, Beside, ticks
from ingest.read.sources import ReadOptions

SECONDS = 10
Rows = list[tuple[int, int, int]]


def written(folder: Path, name: str, rows: Rows, tail: str = "0") -> None:
    """Write rows of (stamp, value, direction) as fio does."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{stamp}, {value}, {code}, {tail}\n" for stamp, value, code in rows))


def steady(step: int, value: int, code: int = 0, end: int = SECONDS * 1000) -> Rows:
    return [(stamp, value, code) for stamp in range(step, end + 1, step)]


def answered(folder: Path, version: tuple[int, ...], **options: Any) -> tuple[dict[str, list[Any]], Any]:
    question = Question(step="all", by=("op",), where={"kind": "completion.mean"})
    answer = Files([folder], ReadOptions(fio_version=version, **options)).answer(question)
    table = percentiles(answer, Wanted(parse_percentiles("50")))
    return {name: column.tolist() for name, column in table.columns.items()}, answer


@pytest.mark.parametrize("window", [50, 100, 250, 500, 1000])
@pytest.mark.parametrize("tick", [500, 1000])
@pytest.mark.parametrize("version", [(2, 2, 10), (3, 33)])
def test_a18_a_tick_longer_than_the_window_is_of_all_its_time(
    window: int, tick: int, version: tuple[int, ...], tmp_path: Path
) -> None:
    """fio before 2.10 ticks every 500 ms, all versions every `bwavgtime`, however short log_avg_msec is."""
    written(tmp_path, "a_clat.log", steady(window, 900))
    written(tmp_path, "a_iops.log", steady(tick, 4000))
    written(tmp_path, "a_bw.log", steady(tick, 16000))
    table, _ = answered(tmp_path, version)
    assert table["count"] == pytest.approx([4000 * SECONDS], rel=0.002)
    assert table["mib_s"] == pytest.approx([16000 / 1024], rel=0.002)


def test_a18_bursts_once_a_second_do_not_make_a_tick_of_a_second() -> None:
    """Rows once a second, and two rows of latencies for each of them: ticks of 100 ms that mostly found nothing."""
    seconds = np.arange(1000, 10001, 1000)
    latencies = np.sort(np.concatenate([seconds, seconds + 20]))
    log = Beside(IOPS, {0: (seconds + 100, np.full(len(seconds), 20))}, 100)
    assert log.tick_ms(latencies) == 100
    found = log.estimates(0, latencies, 0)
    assert found is not None and found.sum() == pytest.approx(2 * len(seconds), abs=3)


def shared(tmp_path: Path, last: int) -> Path:
    """Write logs of three jobs that ran one after another, whose last row of IOPS has the stamp `last`."""
    folder, end = tmp_path / "shared", SECONDS * 1000
    for job in range(3):
        own = steady(250, 900) + [(end + 10 * job, 950, 0)]
        rates = steady(250, 200, end=end - 250) + [(last if job < 2 else end, 200, 0)]
        for name, rows in (
            ("a_clat.log", own),
            ("a_iops.log", rates),
            ("a_bw.log", [(at, 4 * rate, 0) for at, rate, _ in rates]),
        ):
            before = (folder / name).read_text() if job else ""
            written(folder, name, rows)
            (folder / name).write_text(before + (folder / name).read_text())
    return folder


def test_a18_no_row_is_of_time_in_which_there_are_no_latencies(tmp_path: Path) -> None:
    table, answer = answered(shared(tmp_path, last=364_022), (2, 16))
    assert table["count"] == pytest.approx([3 * 200 * SECONDS], rel=0.03)
    assert table["mib_s"] == pytest.approx([3 * 800 / 1024], rel=0.03)
    assert table["complete"] == [False]
    plain, _ = answered(shared(tmp_path, last=SECONDS * 1000), (2, 16))
    assert table["count"] == pytest.approx(plain["count"], rel=0.03)


def test_a18_a_late_tick_over_a_silence_is_of_one_tick() -> None:
    times, latencies = np.array([100, 200, 5000]), np.array([100, 200, 250, 310, 5000])
    assert ticks(times, latencies, 0, 100).tolist() == [100, 100, 100]
    assert ticks(times, np.arange(100, 5001, 100), 0, 100).tolist() == [100, 100, 4800]


def test_a18_rows_of_one_stamp_are_of_one_tick_each(tmp_path: Path) -> None:
    """fio 2 writes a row of its second direction with the next, under one stamp."""
    written(tmp_path, "a_clat.log", [(at, 900, code) for at in range(250, 10001, 250) for code in (0, 1)])
    both = [(at - at % 500 if code and at % 500 else at, 100, code) for at in range(250, 10001, 250) for code in (0, 1)]
    late = sorted(((at + 500 if code and at % 500 == 0 and at < 10000 else at, value, code) for at, value, code in both))
    written(tmp_path, "a_iops.log", [row for row in late if row[0]])
    table, _ = answered(tmp_path, (2, 16))
    assert table["count"][0] == pytest.approx(1000, rel=0.02)
    assert table["count"][1] == pytest.approx(1000, rel=0.06)


def test_a18_rates_of_fio_before_3_18_leave_counts_open(tmp_path: Path) -> None:
    """A tick that came late once makes all of its rates too low, and no log shows it."""
    written(tmp_path, "a_clat.log", steady(250, 900))
    written(tmp_path, "a_iops.log", steady(250, 400))
    for version, complete in (((2, 16), False), ((3, 17), False), ((3, 18), True), ((3, 33), True)):
        table, answer = answered(tmp_path, version)
        assert table["complete"] == [complete], version
        said = " ".join(answer.warnings)
        assert "Counts are fio's own in total" not in said
        assert "Counts come from fio's rates, not from its own count" in said
        assert ("by up to a half" in said) != complete
        assert ("which rounds" in said) == complete


@pytest.mark.parametrize("edit", ["end", "middle", "beginning"])
def test_a18_a_log_of_iops_that_lacks_rows_leaves_counts_open(edit: str, tmp_path: Path) -> None:
    cut = {"end": lambda at: at > 8000, "middle": lambda at: 3000 < at < 5000, "beginning": lambda at: at < 2000}[edit]
    written(tmp_path, "a_clat.log", steady(250, 900))
    written(tmp_path, "a_iops.log", [row for row in steady(250, 400) if not cut(row[0])])
    table, answer = answered(tmp_path, (3, 33))
    assert table["count"] == pytest.approx([400 * SECONDS], rel=0.03)
    assert table["complete"] == [False]
    assert [lack.caveat.code for lack in answer.missing] == ["counts-from-rates"]
    assert "it lacks rows for " in " ".join(answer.warnings)


def test_a18_logs_of_iops_and_bandwidth_that_disagree_leave_counts_open(tmp_path: Path) -> None:
    """Rows of IOPS that are lost where few rows of latencies are look like ticks that found nothing; bandwidth has them."""
    written(tmp_path, "a_clat.log", steady(500, 900))
    written(tmp_path, "a_iops.log", [row for row in steady(250, 400) if row[0] % 1000])
    written(tmp_path, "a_bw.log", steady(250, 1600))
    table, answer = answered(tmp_path, (3, 33))
    assert table["complete"] == [False]
    assert "those of the log of bandwidth beside it" in " ".join(answer.warnings)


def test_a18_bandwidth_alone_shows_no_tick_of_its_own() -> None:
    log = Beside(BANDWIDTH, {0: (np.array([300]), np.array([40]))}, 100)
    assert log.tick_ms(np.array([100, 200, 300])) == 100
