"""Lags of Snabb timelines as histograms: every bin, minimum, maximum and sum is what single events by hand come to."""

from __future__ import annotations

import lzma
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.lags import weighed
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import events_of, read
from ingest.read.placement import discover
from ingest.read.plugins.snabb.timeline import REASONS
from ingest.read.sources import ReadOptions
from oracles import events as single
from oracles import snabb as oracle
from tests.effort import figure

SAMPLE = Path(__file__).parents[1] / "data" / "snabb" / "cut" / "real.timeline.xz"
SECOND = 10**9
START = "1,5|engine.breath_start: breath"
CLOCK = "2,3|engine.got_monotonic_time: unixnanos"
PULL, PULLED = "3,3|app.pull app=nic:", "3,3|app.pulled app=nic:"
END = "1,5|engine.breath_end: breath npackets bpp"
HZ = 2_000_000_000
BEGAN = 1_700_000_000 * SECOND


def pairs_of(data: bytes, hz: int, zero: int = 0) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """Return (time in ns, lag in ns) of all lags that count, by op, job and tag."""
    decoded = oracle.decode(data)
    stamps = oracle.stamps(decoded, hz)
    real = any(stamp > 10**18 for stamp in stamps)
    found: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for event, stamp in zip(decoded, stamps, strict=True):
        lag = event["lag"] and event["lag"] * SECOND // hz
        if oracle.counted(decoded, event) and lag <= oracle.DAY:
            anchor = decoded[event["anchor"]]
            after = " ".join([anchor["name"], *(f"{key}={value}" for key, value in anchor["attributes"].items())])
            job = " ".join(value if key == "app" else f"{key}={value}" for key, value in event["attributes"].items())
            key = (event["name"].lower(), job, f"{event['level']},{event['rate']} after {after}")
            found.setdefault(key, []).append((stamp - (0 if real else stamps[0] - zero), lag))
    return found


def rows_of(path: Path, options: ReadOptions | None = None) -> tuple[dict[tuple[str, str, str, int], tuple[Any, ...]], Any]:
    """Return the rows of a timeline by op, job, tag and window: bins with counts, exact values; and its source."""
    [source] = discover([path], options or ReadOptions()).sources
    found = {}
    for part in read(source):
        for row in range(len(part)):
            series = part.table[part.series[row]]
            entries = slice(part.indptr[row], part.indptr[row + 1])
            counts = dict(zip(part.bins[entries].tolist(), part.counts[entries].tolist(), strict=True))
            exact = tuple(int(getattr(part.exact, name)[row]) for name in ("min_ns", "max_ns", "sum_ns"))
            window = (int(part.end_ns[row]) - 1) // SECOND
            assert (series.op, series.job, series.tag, window) not in found
            assert (series.kind, series.run, series.process) == ("lag", source.context.series.run, source.context.series.process)
            found[series.op, series.job, series.tag, window] = (counts, exact)
    return found, source


def by_hand(pairs: dict[tuple[str, str, str], list[tuple[int, int]]]) -> dict[tuple[str, str, str, int], tuple[Any, ...]]:
    found = {}
    for key, lags in pairs.items():
        for window in {(stamp - 1) // SECOND for stamp, _ in lags}:
            values = [lag for stamp, lag in lags if (stamp - 1) // SECOND == window]
            found[(*key, window)] = (Counter(map(single.index_of, values)), (min(values), max(values), sum(values)))
    return found


@pytest.fixture(scope="module")
def pairs() -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """Return the lags of the recorded timeline that count."""
    return pairs_of(lzma.open(SAMPLE).read(), 2_596_133_918)


@pytest.mark.slow
def test_the_recorded_timeline_bin_by_bin(pairs: Any) -> None:
    found, source = rows_of(SAMPLE)
    assert found == by_hand(pairs)
    assert len(pairs) == 31 and sum(map(len, pairs.values())) == 5275
    account = source.context.account
    assert (account.rows, account.accepted, account.samples) == (6829, 6829, 5275)
    assert account.notes == [f"1,554 of 6,829 events have no lag that counts: {REASONS[1]} (1); {REASONS[2]} (1,553)"]
    assert (source.context.zero.epoch_ns, source.context.zero.origin) == (None, "unknown")
    assert source.context.series.process == "real"


def test_percentiles_of_breaths_by_nearest_rank(pairs: Any) -> None:
    lags = sorted(lag for _, lag in pairs["engine.breath_end", "", "1,5 after engine.breath_start"])
    answer = Files([SAMPLE]).answer(Question(step="all", where={"op": "engine.breath_end"}))
    table = percentiles(answer, Wanted(parse_percentiles("50,99,100")))
    for name in ("50", "99"):
        exact = single.nearest_rank(lags, name)
        assert table.columns[f"p{name}"].tolist() == [single.midpoint(single.index_of(exact))]
    assert table.columns["p100"].tolist() == [lags[-1]] and table.columns["count"].tolist() == [1553]


def written(folder: Path, ring: oracle.Writer, name: str = "x.timeline") -> Path:
    path = folder / name
    path.write_bytes(ring.data())
    return path


def program(size: int, breaths: int, began: int, seed: int = 0) -> oracle.Writer:
    """Return the ring of a program: breaths of random length, now and then one that tells the time, one app."""
    ring, dice = oracle.Writer(size), random.Random(seed)
    now = 5 * 10**12
    start = now
    for number in range(breaths):
        ring.event(START, now, 2, number)
        if number % 3 == 0:
            now += 40
            ring.event(CLOCK, now, 2, began + (now - start) // 2)
        now += dice.randrange(100, 5000)
        ring.event(PULL, now, 2)
        now += dice.randrange(100, 900_000)
        ring.event(PULLED, now, 2)
        now += 7
        ring.event(END, now, 2, number, 3, 64)
        now += dice.randrange(10**6, 10**9)
    return ring


@pytest.mark.parametrize("breaths", [20, 300])
def test_a_clock_of_the_day_gives_epoch_times(tmp_path: Path, breaths: int) -> None:
    ring = program(1000, breaths, BEGAN)
    path = written(tmp_path, ring)
    found, source = rows_of(path)
    decoded = oracle.decode(ring.data())
    hz = oracle.hz_of(decoded)
    assert abs(hz - HZ) < 100 and found == by_hand(pairs_of(ring.data(), hz))
    assert source.context.zero.origin == "clock readings in the timeline"
    assert source.context.zero.epoch_ns == oracle.stamps(decoded, hz)[0]
    assert abs(source.context.zero.epoch_ns - BEGAN - (decoded[0]["tsc"] - 5 * 10**12) // 2) < 1000, (
        "doubles hold times of this century to 256 ns"
    )
    shifted, _ = rows_of(path, ReadOptions(host="h", host_offset_ns={"h": 10 * SECOND}, t0=5))
    assert {(*key[:3], key[3] - 10): value for key, value in shifted.items()} == found, "--t0 leaves real time alone"


def test_relative_times_and_a_time_zero_that_was_told(tmp_path: Path) -> None:
    ring = program(100, 15, 77 * SECOND)
    path = written(tmp_path, ring)
    hz = oracle.hz_of(oracle.decode(ring.data()))
    found, source = rows_of(path)
    assert found == by_hand(pairs_of(ring.data(), hz)) and source.context.zero.epoch_ns is None
    zero = 1_600_000_000 * SECOND
    told, source = rows_of(path, ReadOptions(t0=zero))
    assert told == by_hand(pairs_of(ring.data(), hz, zero)) and source.context.zero.epoch_ns == zero
    last = max(stamp for lags in pairs_of(ring.data(), hz).values() for stamp, _ in lags)
    _, source = rows_of(path, ReadOptions(t0="mtime"))
    assert source.context.zero.epoch_ns == path.stat().st_mtime_ns - last


def test_a_frequency_that_was_told_is_taken(tmp_path: Path) -> None:
    ring = oracle.Writer(10)
    for number in range(6):
        ring.event(START if number % 2 == 0 else END, 1000 + 3000 * number, 0, number // 2)
    path = written(tmp_path, ring)
    with pytest.raises(InputError, match="give --tsc-hz"):
        discover([path], ReadOptions())
    found, _ = rows_of(path, ReadOptions(tsc_hz=3_000_000))
    assert found == by_hand(pairs_of(ring.data(), 3_000_000))
    assert {exact for _, exact in found.values()} == {(10**6, 10**6, 3 * 10**6)}


@settings(max_examples=figure(40, 80))
@given(seed=st.integers(0, 10**6), size=st.integers(20, 400), digits=st.sampled_from([0, 3]))
def test_any_program_bin_by_bin(tmp_path_factory: Any, seed: int, size: int, digits: int) -> None:
    ring = program(size, 60, BEGAN, seed)
    path = written(tmp_path_factory.mktemp("program"), ring)
    found, source = rows_of(path, ReadOptions(digits=digits, tsc_hz=HZ))
    wanted = by_hand(pairs_of(ring.data(), HZ))
    if not digits:
        assert found == wanted
    assert {key: (sum(counts.values()), exact) for key, (counts, exact) in found.items()} == {
        key: (sum(counts.values()), exact) for key, (counts, exact) in wanted.items()
    }
    assert source.context.account.rows == min(size, len(ring.stored))
    samples = sum(sum(counts.values()) for counts, _ in found.values())
    assert source.context.account.samples == samples
    assert sum(len(chunk) for chunk in events_of(source)) == samples


def test_processes_and_apps_are_told_apart(tmp_path: Path) -> None:
    for name in ("101", "102"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, program(100, 10, BEGAN, int(name)), "events.timeline")
    files = Files([tmp_path])
    answer = files.answer(Question(step="all", by=("process", "op", "job"), where={"op": "app.*"}))
    groups = {key for part in answer.parts for key in part.table}
    assert groups == {(process, op, "nic") for process in ("101", "102") for op in ("app.pull", "app.pulled")}
    assert len({source.identity for source in files.found.sources}) == 2
    assert {source.context.series.host for source in files.found.sources} == {""}


# Sampling ---------------------------------------------------------------------------------------------------


def sampled(breaths: int, seed: int) -> tuple[oracle.Writer, dict[str, list[int]]]:
    """Return what a program stored of its breaths at random, and the true length of everything that happened, in cycles.

    After each breath a threshold is drawn: P(threshold <= r) = 5^(r - 9) (to the rounding of its formula), and events of at
    least its rate are stored. The times of an app are 1,000 to 3,000 cycles, of a breath the sum of its parts.
    """
    dice = random.Random(seed)
    ring, truth = oracle.Writer(2**16), {"app.pulled": [], "engine.breath_end": []}
    now = 10**12
    for number in range(breaths):
        share = dice.random()
        threshold = next((rate for rate in range(1, 9) if share <= 5.0 ** (rate - 9)), 9)
        begun = now
        parts = [dice.randrange(1000, 3001) for _ in range(2)]
        for text, passed, arguments in (
            (START, 0, (number,)),
            (PULL, 50, ()),
            (PULLED, parts[0], ()),
            (END, parts[1], (number, 1, 64)),
        ):
            now += passed
            if int(text[2]) >= threshold:
                ring.event(text, now, 0, *arguments)
        truth["app.pulled"].append(parts[0])
        truth["engine.breath_end"].append(now - begun)
        now += 10
    return ring, truth


@pytest.mark.slow
def test_estimates_of_sampled_events_agree_with_everything_that_happened(tmp_path: Path) -> None:
    """Within one event raw counts stay and percentiles are unbiased; rates a second stand for all events."""
    ring, truth = sampled(800_000, 4)
    path = written(tmp_path, ring)
    files = Files([path], ReadOptions(tsc_hz=HZ))
    answer = weighed(files.answer, Question(step="all", by=("op",), where={"op": "*_end"}))
    table = percentiles(answer, Wanted(parse_percentiles("50,90")))
    stored = sum(event["number"] == ring.texts[END] for event in ring.stored)
    [count], [rate] = table.columns["count"].tolist(), table.columns["rate"].tolist()
    assert count == stored and 1_000 < stored < 1_600
    seconds = (int(answer.parts[0].end_ns[0]) - int(answer.parts[0].start_ns[0])) / SECOND
    assert rate * seconds == pytest.approx(625 * stored)
    assert abs(rate * seconds - 800_000) < 4 * 625 * stored**0.5
    lengths = sorted(truth["engine.breath_end"])
    for share in (50, 90):
        [value] = table.columns[f"p{share}"].tolist()
        low, high = (lengths[int(len(lengths) * (share / 100 + off))] / 2 for off in (-0.04, 0.04))
        assert low * 0.99 <= value <= high * 1.01


@pytest.mark.slow
def test_raw_counts_within_a_rate_and_weights_where_rates_are_mixed(tmp_path: Path) -> None:
    ring, _ = sampled(300_000, 5)
    path = written(tmp_path, ring)
    files = Files([path], ReadOptions(tsc_hz=HZ))
    by_op = weighed(files.answer, Question(step="all", by=("op",)))
    assert by_op.weights == {("engine.breath_end",): 5**4, ("app.pull",): 5**6, ("app.pulled",): 5**6}
    assert all(part.completions is None for part in by_op.parts)
    plain = Counter(event["number"] for event in ring.stored)
    together = weighed(files.answer, Question(step="all"))
    [part] = together.parts
    stored = plain[ring.texts[PULL]] + plain[ring.texts[PULLED]]
    assert part.completions.tolist() == [stored + plain[ring.texts[END]]] == [together.samples]
    assert (part.samples >> 16).tolist() == [stored * 5**6 + plain[ring.texts[END]] * 5**4]
    assert any("unlike rates" in text for text in together.warnings)
