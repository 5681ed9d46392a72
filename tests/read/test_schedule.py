"""Coordinated omission: runs that met their schedule by construction, runs that did not, and what is said of each.

A run is made of requests (due, started, ended) by NumPy, written as the logs that tools write, and read by the product.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.core.layout import hdr_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted
from ingest.query.question import Question
from ingest.query.streaming import streamed
from ingest.read.schedule import UNSCHEDULED, Seen
from ingest.read.sources import ReadOptions
from oracles import hdr
from tests.commands import tailboard
from tests.effort import figure

EACH = figure(2, 10, 100)  # seeds of each of the five ways to keep a schedule, and of the five ways not to
SECOND, MS, US = 10**9, 10**6, 10**3
THROTTLE = Path(__file__).parent.parent / "data" / "hdr" / "throttle.hdr"
START = "#[StartTime: 1700000000.000 (seconds since epoch)]\n"
CASSANDRA = "#Logging op latencies for Cassandra Stress\n" + START
Ints = NDArray[np.int64]
Run = tuple[list[Path], ReadOptions]


def one_connection(due: Ints, service: Ints) -> tuple[Ints, Ints]:
    """Return start and end of requests that are sent one after another, none before it is due."""
    total = np.cumsum(service)
    ends = np.maximum.accumulate(due - (total - service)) + total
    return ends - service, ends


def lines(ends: Ints, values: Ints, tag: str, last: int, wide: int = SECOND, unit: int = 1) -> list[str]:
    """Return the lines of a log up to `last`, each `wide` ns; values in `unit` ns."""
    bins = hdr_layout(3, 0, 1).index(values // unit)
    text = []
    for start in range(0, last, wide):
        inside = bins[(ends > start) & (ends <= start + wide)]
        places, counts = np.unique(inside, return_counts=True)
        held = dict(zip(places.tolist(), counts.tolist(), strict=True))
        text.append(hdr.line(f"{start / SECOND:.3f}", f"{wide / SECOND:.3f}", held, tag))
    return text


def written(path: Path, text: list[str], head: str = CASSANDRA) -> Path:
    path.write_text(hdr.log(text, head))
    return path


def operations(path: Path, due: Ints, start: Ints, end: Ints) -> Path:
    base = 1_700_000_000 * SECOND
    rows = zip(*((base + column).tolist() for column in (start, end, due)), strict=True)
    path.write_text("start_ns,end_ns,due_ns\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    return path


def quick(noise: np.random.Generator, count: int) -> Ints:
    """Return service times of about 0.3 ms."""
    return (noise.gamma(9, 30_000, count) + 20_000).astype(np.int64)


def every(rate: float, seconds: float) -> Ints:
    return (np.arange(int(rate * seconds)) * SECOND / rate).astype(np.int64)


def stalled(noise: np.random.Generator, seconds: float, count: int) -> Ints:
    """Return service times of which one is that of a stall."""
    service = quick(noise, count)
    service[noise.integers(count // 5, count // 2)] = int(seconds * SECOND)
    return service


# Schedules that were kept --------------------------------------------------------------------------------------


def ops_of_one_target(folder: Path, noise: np.random.Generator) -> Run:
    """A file of each op, as YCSB writes them; the target is that of all."""
    rate = int(noise.integers(300, 900))
    due = every(rate, 40)
    service = quick(noise, len(due))
    start, end = one_connection(due, service)
    op = noise.choice(3, len(due), p=[0.7, 0.25, 0.05])
    for code, name in enumerate(("READ", "UPDATE", "SCAN")):
        mine = op == code
        text = lines(end[mine], (end - start)[mine], "", 40 * SECOND, unit=US)
        written(folder / f"{name}.hdr", text, f"#[Logging for: {name}]\n{START}")
    return [folder], ReadOptions(rate=str(rate))


def idle_tail(folder: Path, noise: np.random.Generator) -> Run:
    """The load ends within the last interval, after which nothing happens, now and then for further intervals."""
    rate, wide = 500, int(noise.choice([1, 5, 10])) * SECOND
    due = every(rate, 40 + float(noise.uniform(0.05, 0.6)) * wide / SECOND)
    start, end = one_connection(due, quick(noise, len(due)))
    last = (int(end.max()) // wide + 1 + int(noise.integers(0, 4))) * wide
    return [written(folder / "x.hdr", lines(end, end - start, "get-st", last, wide))], ReadOptions(rate=str(rate))


def ramp(folder: Path, noise: np.random.Generator) -> Run:
    """The rate rises to its target within the first fifth."""
    rate, rise = 500.0, float(noise.uniform(2, 8))
    numbers = np.arange(int(rate * (40 - rise / 2)))
    seconds = np.where(numbers < rate * rise / 2, np.sqrt(2 * rise * numbers / rate), numbers / rate + rise / 2)
    start, end = one_connection((seconds * SECOND).astype(np.int64), quick(noise, len(numbers)))
    return [written(folder / "x.hdr", lines(end, end - start, "get-st", 40 * SECOND))], ReadOptions(rate="500")


def jitter(folder: Path, noise: np.random.Generator) -> Run:
    """Timers wake up a little late."""
    due = every(400, 20)
    start = due + noise.exponential(60_000, len(due)).astype(np.int64)
    return [operations(folder / "x.csv", due, start, start + quick(noise, len(due)))], ReadOptions(intended_column="due_ns")


def intended(folder: Path, noise: np.random.Generator) -> Run:
    """A sibling log holds the response times, which are hardly longer."""
    due = every(800, 30)
    start, end = one_connection(due, quick(noise, len(due)))
    for name, values in (("READ", end - start), ("Intended-READ", end - due)):
        written(folder / f"{name}.hdr", lines(end, values, "", 30 * SECOND, unit=US), f"#[Logging for: {name}]\n{START}")
    return [folder], ReadOptions(rate="800" if noise.integers(2) else None)


# Schedules that were not ---------------------------------------------------------------------------------------


def stall_with_due(folder: Path, noise: np.random.Generator) -> Run:
    """All requests were sent in the end: the rate was kept."""
    due = every(800, 30)
    start, end = one_connection(due, stalled(noise, float(noise.uniform(0.1, 3)), len(due)))
    return [operations(folder / "x.csv", due, start, end)], ReadOptions(intended_column="due_ns")


def stall_with_response(folder: Path, noise: np.random.Generator) -> Run:
    due = every(800, 30)
    start, end = one_connection(due, stalled(noise, float(noise.uniform(0.1, 3)), len(due)))
    kinds = {"get-st": end - start, "get-wt": start - due, "get-rt": end - due}
    del kinds[str(noise.choice(list(kinds)))]  # any two of them say it
    text = [line for tag, values in kinds.items() for line in lines(end, values, tag, 30 * SECOND)]
    return [written(folder / "x.hdr", text)], ReadOptions(rate="800")


def stall_by_rate(folder: Path, noise: np.random.Generator) -> Run:
    """Nothing but service time, of a generator that caught up."""
    due = every(800, 60)
    start, end = one_connection(due, stalled(noise, float(noise.uniform(2.5, 8)), len(due)))
    assert len(end[end < 60 * SECOND]) > 0.99 * len(due)
    return [written(folder / "x.hdr", lines(end, end - start, "get-st", 60 * SECOND))], ReadOptions(rate="800")


def saturated(folder: Path, noise: np.random.Generator) -> Run:
    service = (quick(noise, 30_000) * noise.uniform(8, 12)).astype(np.int64)
    start, end = one_connection(every(1000, 30), service)
    reached = end <= 30 * SECOND
    return [written(folder / "x.hdr", lines(end[reached], (end - start)[reached], "get-st", 30 * SECOND))], ReadOptions(
        rate="1000"
    )


def closed_loop(folder: Path, noise: np.random.Generator) -> Run:
    """One request after another, which was to be sent every 2 ms."""
    service = stalled(noise, float(noise.uniform(1, 6)), 10_000)
    end = np.cumsum(np.maximum(service, 2 * MS))
    text = lines(end, service, "get-st", int(end[-1]))
    return [written(folder / "x.hdr", text)], ReadOptions(expected_interval_ns=2 * MS)


KEPT = (ops_of_one_target, idle_tail, ramp, jitter, intended)
MISSED = (stall_with_due, stall_with_response, stall_by_rate, saturated, closed_loop)


def warned(paths: list[Path], options: ReadOptions) -> list[str]:
    answer = Files(paths, options, jobs=1).answer(Question(step="all"))
    return [text for text in answer.warnings if "coordinated omission: " in text]


@pytest.mark.parametrize("way", KEPT)
def test_c2_no_warning_where_the_schedule_was_kept(tmp_path: Path, way: Callable[..., Run]) -> None:
    for seed in range(EACH):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert warned(*way(folder, np.random.default_rng([seed, len(way.__name__)]))) == [], seed


@pytest.mark.parametrize("way", MISSED)
def test_c2_a_warning_where_it_was_not(tmp_path: Path, way: Callable[..., Run]) -> None:
    for seed in range(EACH):
        folder = tmp_path / str(seed)
        folder.mkdir()
        [sentence] = warned(*way(folder, np.random.default_rng([seed, len(way.__name__)])))
        assert " judged by the " in sentence and ": read " in sentence, seed


def test_c2_a_throttled_run_at_its_rate_is_judged_by_waiting() -> None:
    """Recorded: 99.7 % of the rate, service p99 8.4 ms, response p99 2,219 ms."""
    for options in (ReadOptions(), ReadOptions(rate="1000")):
        [sentence] = warned([THROTTLE], options)
        assert "judged by the time that requests waited: response p99 of simple1 is 2.2 s, service p99 8.3 ms" in sentence


def test_c2_one_process_or_many_say_the_same() -> None:
    texts = []
    for jobs in (1, 2):
        found = streamed(
            Files([THROTTLE], ReadOptions(rate="1000"), jobs=jobs), Question(step=SECOND), Wanted(parse_percentiles("50"))
        )
        assert found is not None
        texts.append([text for text in found[1].warnings if "schedule: " in text or "omission: " in text])
    assert texts[0] == texts[1] and len(texts[0]) == 2


def test_c3_a_sibling_log_says_when_requests_were_due(tmp_path: Path) -> None:
    intended(tmp_path, np.random.default_rng(1))
    for where in ({"kind": "service"}, {}):
        answer = Files([tmp_path], ReadOptions(), jobs=1).answer(Question(step="all", where=where))
        assert not [text for text in answer.warnings if UNSCHEDULED in text]
        assert [text for text in answer.warnings if "Intended-READ.hdr and 1 more: schedule: achieved 800/s" in text]
    (tmp_path / "Intended-READ.hdr").unlink()
    answer = Files([tmp_path], ReadOptions(), jobs=1).answer(Question(step="all"))
    assert [text for text in answer.warnings if UNSCHEDULED in text]


def test_c2_generators_beside_one_another_are_judged_each(tmp_path: Path) -> None:
    """A rate is that of each generator: one of two that is slow is named."""
    for name, rate in (("gen1", 500), ("gen2", 250)):
        due = every(rate, 20)
        start, end = one_connection(due, quick(np.random.default_rng(3), len(due)))
        written(tmp_path / f"{name}.hdr", lines(end, end - start, "get-st", 20 * SECOND))
    [sentence] = warned([tmp_path], ReadOptions(rate="500"))
    assert "gen2.hdr: coordinated omission: judged by the rate: only 50.0 %" in sentence


@pytest.mark.cases(6)
@pytest.mark.parametrize("way", [stall_with_due, closed_loop, stall_by_rate, stall_with_response, ops_of_one_target, ramp])
def test_c2_a_store_says_what_files_say(tmp_path: Path, way: Callable[..., Run]) -> None:
    folder, store = tmp_path / "logs", f"sqlite:{tmp_path / 's.db'}"
    folder.mkdir()
    paths, options = way(folder, np.random.default_rng(7))
    words = [
        *(["--rate", options.rate] if options.rate else []),
        *(["--intended-start-column", "due_ns"] if options.intended_column else []),
    ]
    words += ["--expected-interval", "2ms"] if options.expected_interval_ns else []
    loaded = tailboard("load", *paths, *words, "--run", "r", "--store", store)
    assert loaded.returncode == 0, loaded.stderr
    asked = tailboard("percentiles", store, "--step", "all", "--format", "csv")
    wanted = [text.rpartition("coordinated omission: ")[2] for text in warned(paths, options)]
    for said in (loaded.stderr, asked.stderr):
        assert [
            line.rpartition("coordinated omission: ")[2] for line in said.splitlines() if "coordinated omission" in line
        ] == wanted


def test_c3_inspect_says_it_of_siblings_once(tmp_path: Path) -> None:
    intended(tmp_path, np.random.default_rng(1))
    lines = tailboard("inspect", tmp_path).stdout.splitlines()
    assert len([line for line in lines if "schedule: achieved 800/s" in line]) == 1 and UNSCHEDULED not in "".join(lines)


def test_what_is_seen_does_not_depend_on_how_many_rows_come_at_once() -> None:
    random, layout = np.random.default_rng(7), hdr_layout(1, 0, 1)
    size, rows = 200, 60
    bins = np.concatenate([np.sort(random.choice(layout.bins, size, replace=False)) for _ in range(rows)])
    columns = np.arange(rows, dtype=np.int64)
    log = Intervals(
        layout,
        (Series(run="r", op="read", kind="service"), Series(run="r", op="write", kind="wait")),
        columns % 2,
        columns * SECOND,
        (columns + 1) * SECOND,
        np.arange(rows + 1) * size,
        bins,
        random.integers(1, 1 << 30, len(bins)),
    )
    digests = []
    for at_once in (rows, 1, 7):
        seen = Seen("5")
        for begin in range(0, rows, at_once):
            seen.add(log.take(np.arange(begin, min(begin + at_once, rows))))
        digests.append(json.loads(seen.digest(log.table[0])))
    assert digests[0]["series"] == digests[1]["series"] == digests[2]["series"]
    assert sum(series[3] for series in digests[0]["series"]) == int(log.counts.sum())
