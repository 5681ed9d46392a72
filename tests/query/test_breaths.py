"""Breaths: cells, sums, lines and samples as loops over the events of rings find them; the real timeline among them."""

from __future__ import annotations

import lzma
import math
import random
import statistics
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from breath_rings import BAD, GOOD, HZ, Work, ring, rings
from ingest.core.breaths import BEHIND, BREATH, CYCLES, KEPT, LONGEST, PACKETS, BreathWindows, only, taken
from ingest.core.errors import InputError
from ingest.core.units import parse_instant
from ingest.query.breaths import breath_rows, costs, density, fits, from_files, names_of
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from oracles import breaths as oracle
from oracles import snabb

SAMPLE = Path(__file__).parents[1] / "data" / "snabb" / "cut" / "real.timeline.xz"
KINDS = {
    "totals": (GOOD, 3),
    "own packets": (Work(own=True), 3),
    "whole numbers of version 2": (Work(breaths=400), 2),
    "stalls": (BAD, 3),
    "link statistics": (Work(counters=True, breaths=800), 3),
    "large bursts": (Work(burst=5000, slope=1, breaths=300), 3),
}


def kept_of(*paths: Path, question: Question | None = None, **reading):
    return from_files(Files(paths, ReadOptions(run="r", **reading)), question or Question())


def decoded(data: bytes) -> tuple[list[dict], list[int]]:
    events = snabb.decode(data)
    return events, snabb.stamps(events, snabb.hz_of(events))


def cells_of(windows: BreathWindows) -> Counter:
    """Return the stored breaths in each cell by its edges; None where there is no upper one."""
    found = density(windows, lambda _: "all")
    top = PACKETS.edges[-2], CYCLES.edges[-2]
    rows = zip(
        found.packets.tolist(), found.packets_to.tolist(), found.cycles.tolist(), found.cycles_to.tolist(), found.n.tolist()
    )
    return Counter({(x, None if x == top[0] else x2, y, None if y == top[1] else y2): n for x, x2, y, y2, n in rows})


@pytest.fixture(params=KINDS)
def timeline(request, tmp_path) -> Path:
    path = tmp_path / "one.timeline"
    path.write_bytes(ring(KINDS[request.param][0], 7, KINDS[request.param][1]))
    return path


def test_cells_sums_and_windows_are_those_of_the_events(timeline) -> None:
    events, stamps = decoded(timeline.read_bytes())
    found = snabb.breaths(events)
    windows = breath_rows(kept_of(timeline).windows)
    assert cells_of(windows) == oracle.density(found)
    assert windows.known.sum() == windows.count.sum() == len(found)
    assert windows.idle.sum() == sum(one["packets"] == 0 for one in found)
    ends = {event["tsc"]: stamp for event, stamp in zip(events, stamps)}
    by_window: dict[int, list[dict]] = {}
    starts = {event["tsc"]: event for event in events if event["name"] == "engine.breath_start"}
    begun = {start["arguments"][0]: tsc for tsc, start in starts.items()}
    for one in found:
        by_window.setdefault(oracle.window(ends[begun[one["number"]] + one["cycles"]]), []).append(one)
    assert windows.start_ns.tolist() == sorted(by_window)
    for row, start in enumerate(windows.start_ns.tolist()):
        mine = by_window[start]
        packets, cycles = [int(one["packets"]) for one in mine], [one["cycles"] for one in mine]
        sums = [
            sum(packets),
            sum(cycles),
            sum(p * p for p in packets),
            sum(p * c for p, c in zip(packets, cycles)),
            sum(c * c for c in cycles),
        ]
        assert windows.sums[row, :5].tolist() == sums
        assert (windows.longest[row], windows.count[row]) == (max(cycles), len(mine))


def test_the_line_is_that_of_exact_fractions(timeline) -> None:
    found = snabb.breaths(decoded(timeline.read_bytes())[0])
    windows = breath_rows(kept_of(timeline).windows)
    fit, exact = fits(windows, lambda _: "all")["all"], oracle.line(found)
    assert fit.n == len(found)
    if fit.why:
        assert exact["slope"] ** 2 < 4 * exact["error2"]
        return
    for name in ("base", "slope", "explained"):
        assert getattr(fit, name) == pytest.approx(float(exact[name]), rel=1e-12, abs=1e-12)
    assert fit.residual == pytest.approx(math.sqrt(exact["residual2"]), rel=1e-9)
    assert fit.error == pytest.approx(math.sqrt(exact["error2"]), rel=1e-9)
    assert exact["slope"] ** 2 >= 4 * exact["error2"]


def test_callbacks_are_those_with_link_statistics(timeline) -> None:
    found = [one for one in oracle.callbacks(decoded(timeline.read_bytes())[0]) if one["packets"] is not None]
    windows = only(kept_of(timeline).windows, lambda series: series.op != BREATH)
    by_app = Counter((one["app"], one["op"]) for one in found)
    assert {(one.job, one.op) for one in windows.table} == by_app.keys()
    for cost in costs(windows, lambda series: f"{series.job} {series.op}"):
        mine = [one for one in found if f"{one['app']} {one['op']}" == cost.name]
        assert (cost.n, cost.packets, cost.cycles) == (
            len(mine),
            sum(one["packets"] for one in mine),
            sum(one["cycles"] for one in mine),
        )
    assert cells_of(windows) == oracle.density(found)


def test_the_sample_is_the_first_in_a_fixed_order(tmp_path) -> None:
    path = tmp_path / "many.timeline"
    path.write_bytes(ring(Work(breaths=KEPT + 600), 3))
    found = snabb.breaths(decoded(path.read_bytes())[0])
    places = sorted(
        (oracle.order("", "many", BREATH, "", int(one["number"]), one["cycles"]), one["packets"], one["cycles"]) for one in found
    )
    sample = kept_of(path).sample
    first = taken(sample, np.flatnonzero(sample.order < BEHIND))
    assert len(first) == KEPT
    assert list(zip(first.order.tolist(), first.packets.tolist(), first.cycles.tolist())) == places[:KEPT]
    sample = first
    # A random sample: of the first and second half about as many, and the mean within four standard errors.
    late = np.count_nonzero(sample.at_ns > np.median([one for one in sample.at_ns]))
    assert abs(late - KEPT / 2) < 2
    mean, all_cycles = sample.cycles.mean(), np.array([one["cycles"] for one in found])
    assert abs(mean - all_cycles.mean()) < 4 * all_cycles.std() / math.sqrt(KEPT)


def test_c6_the_longest_of_each_second_and_of_all_are_kept_beside_the_random_sample(tmp_path) -> None:
    path = tmp_path / "many.timeline"
    path.write_bytes(ring(Work(breaths=KEPT + 3000, longest=(17, 2400, 2401, 4900)), 3))
    events, stamps = decoded(path.read_bytes())
    found = snabb.breaths(events)
    kept = kept_of(path)
    sample = kept.sample
    held = Counter(zip(sample.at_ns.tolist(), sample.cycles.tolist()))
    assert max(held.values()) == 1
    behind = sample.order >= BEHIND
    assert (behind[KEPT:]).all() and not behind[:KEPT].any()
    cycles = sorted((one["cycles"] for one in found), reverse=True)
    assert sorted(sample.cycles.tolist(), reverse=True)[:LONGEST] == cycles[:LONGEST]
    assert cycles[3] > 500_000 > cycles[4]
    ends = (sample.at_ns - 1) // snabb.SECOND * snabb.SECOND
    for start, longest in zip(kept.windows.start_ns.tolist(), kept.windows.longest.tolist(), strict=True):
        assert int(sample.cycles[ends == start].max()) == longest
    assert len(sample) <= KEPT + LONGEST + len(kept.windows)
    orders = (sample.order[behind] - BEHIND).tolist()
    known = {oracle.order("", "many", BREATH, "", int(one["number"]), one["cycles"]) for one in found}
    assert set(orders) <= known


@pytest.mark.slow
def test_the_real_timeline(tmp_path) -> None:
    kept = kept_of(SAMPLE)
    found = snabb.breaths(snabb.decode(lzma.open(SAMPLE).read()))
    assert cells_of(kept.windows) == oracle.density(found)
    assert len(kept.sample) == len(found) == 1553
    assert not len(only(kept.windows, lambda series: series.op != BREATH))
    name = names_of(kept.windows)
    line = fits(kept.windows, name)["real"]
    assert line.why == "no line: every breath moved 204 packets"
    assert line.residual == pytest.approx(statistics.stdev(one["cycles"] for one in found), rel=1e-9)
    [cost] = costs(kept.windows, name)
    assert (cost.n, cost.all_breaths) == (1553, 1553 * 625)
    assert cost.cycles_a_packet == pytest.approx(sum(one["cycles"] for one in found) / (204 * 1553))


def test_a_stall_shows_beside_the_good_run(tmp_path) -> None:
    """One breath in a hundred that stalls: the residual and the density tell, the slope stays."""
    kept = kept_of(rings(tmp_path, good=GOOD, bad=BAD))
    name = names_of(kept.windows)
    lines, cells = fits(kept.windows, name), density(kept.windows, name)
    assert lines["good"].slope == pytest.approx(30, abs=0.3) and lines["good"].base == pytest.approx(2500, abs=30)
    assert lines["good"].explained > 0.98 and lines["bad"].explained < 0.2
    assert lines["bad"].residual > 30 * lines["good"].residual
    high = {group: 0 for group in cells.groups}
    for group, packets, cycles, n in zip(cells.group, cells.packets, cells.cycles, cells.n, strict=True):
        high[cells.groups[group]] += int(n) if cycles * packets > 30_000 else 0
    assert high["good"] == 0 and 5 <= high["bad"] <= 30
    assert [cost.name for cost in costs(kept.windows, name)] == ["bad", "good"]


def test_breaths_of_unlike_rates_count_by_their_weight(tmp_path) -> None:
    works = {"often": Work(rate=6, breaths=300), "seldom": Work(rate=5, slope=90, breaths=300)}
    folder = rings(tmp_path, **works)
    windows = kept_of(folder).windows
    found = [
        {**one, "weight": 5 ** (9 - works[process].rate)}
        for process in works
        for one in snabb.breaths(snabb.decode((folder / f"{process}.timeline").read_bytes()))
    ]
    fit, exact = fits(windows, lambda _: "all")["all"], oracle.line(found)
    assert fit.slope == pytest.approx(float(exact["slope"]), rel=1e-12)
    assert fit.error == pytest.approx(math.sqrt(exact["error2"]), rel=1e-9)
    cells = density(windows, lambda _: "all")
    weighed: Counter = Counter()
    for one in found:
        if one["packets"]:
            weighed[oracle.cell(int(one["packets"]), one["cycles"])] += one["weight"]
    assert sorted(cells.count.tolist()) == sorted(weighed.values())
    assert cells.n.sum() == sum(bool(one["packets"]) for one in found)
    apart = density(windows, names_of(windows))
    assert (apart.n == apart.count).all()
    [cost] = costs(windows, lambda _: "all")
    assert cost.mixed and cost.all_breaths == 300 * 125 + 300 * 625


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (Work(breaths=29), "29 breaths are too few for a line: at least 30"),
        (Work(burst=0, breaths=100), "no line: every breath moved 0 packets"),
        (Work(slope=0, breaths=400), "are not certain"),
    ],
)
def test_no_line_where_none_can_be_carried(tmp_path, work, why) -> None:
    path = tmp_path / "p.timeline"
    path.write_bytes(ring(work, 11))
    windows = kept_of(path).windows
    fit = fits(windows, names_of(windows))["p"]
    assert why in fit.why and math.isnan(fit.slope)


def test_a_range_takes_whole_seconds_and_a_process_is_chosen(tmp_path) -> None:
    folder = rings(tmp_path, a=Work(), b=Work(breaths=700))
    everything = kept_of(folder)
    part = kept_of(folder, question=Question(begin=parse_instant("+1.5s"), end=parse_instant("+2.2s")))
    starts = np.unique(everything.windows.start_ns)
    inside = [start for start in starts.tolist() if start in set(part.windows.start_ns.tolist())]
    assert 1 <= len(inside) <= 3 and len(inside) < len(starts)
    mine = np.isin(everything.windows.start_ns, inside)
    assert part.windows.count.sum() == everything.windows.count[mine].sum()
    at = (everything.sample.at_ns - 1) // 10**9 * 10**9
    assert len(part.sample) == np.isin(at, inside).sum()
    alone = kept_of(folder, question=Question(where={"process": "b", "op": "app.*", "kind": "lag"}))
    assert [one.process for one in alone.windows.table] == ["b"]
    assert alone.windows.count.sum() == 700


def test_few_breaths_of_great_weight_carry_no_line(tmp_path) -> None:
    folder = rings(tmp_path, often=Work(rate=9, breaths=60), seldom=Work(rate=4, breaths=2))
    fit = fits(kept_of(folder, tsc_hz=HZ).windows, lambda _: "all")["all"]
    assert fit.why == "no line: a few breaths stand for nearly all of 62"


@pytest.mark.slow
def test_damaged_timelines_are_refused_or_read(tmp_path) -> None:
    """Random bytes and numbers in entries and texts: never a warning, and nothing but InputError."""
    dice, path = random.Random(5), tmp_path / "x.timeline"
    whole = [ring(Work(breaths=60, counters=True), 1), ring(Work(breaths=60, own=True), 2), ring(Work(breaths=40), 3, 2)]
    read = 0
    for _ in range(150):
        data = bytearray(dice.choice(whole))
        for _ in range(dice.choice([1, 3, 20])):
            at = 64 + 64 * dice.randrange((len(data) - 4096) // 64) + 8 * dice.randrange(6)
            data[at : at + 8] = dice.randbytes(8)
            data[dice.randrange(24, len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            found = kept_of(path)
        except InputError:
            continue
        name = names_of(found.windows)
        assert (density(found.windows, name).n > 0).all() and len(costs(found.windows, name)) == len(fits(found.windows, name))
        read += 1
    assert read > 100


def test_sums_past_the_reach_of_doubles_keep_fifteen_digits() -> None:
    """A breath of 2^40 cycles beside small ones: its square is past 2^53."""
    from ingest.core.breaths import Work as Rows
    from ingest.core.breaths import windows_of
    from ingest.core.labels import Series

    cycles = np.array([2**40 + 1, *range(1000, 1100)], np.int64)
    packets = np.arange(len(cycles), dtype=np.float64)
    none = np.zeros(len(cycles), np.int64)
    rows = windows_of(Rows((Series(),), none, none + 5, none + 1, none, cycles, packets, packets, packets))
    exact = oracle.line([{"packets": int(p), "cycles": int(c)} for p, c in zip(packets, cycles)])
    fit = fits(rows, lambda _: "x")["x"]
    assert fit.why or fit.slope == pytest.approx(float(exact["slope"]), rel=1e-9)
    assert Fraction(int(rows.sums[0, 1])) == int(cycles.sum())
