"""Episodes: start and end to the window, none missed and none invented, against a loop over every window."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.coverage import Caveat, Missing
from ingest.objectives.check import Checked, check
from ingest.objectives.objectives import read_objectives
from ingest.query.coverage import Lack
from ingest.query.episodes import OPEN, PROVISIONAL, Episode, Life, missing_of
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from oracles import episodes as oracle
from oracles import logs
from tests.query.incidents import MS, SECOND, ZERO, as_yaml, drawn, written


def files_of(folder: Path, events: list[oracle.Event]) -> Files:
    path = written(folder, events)
    return Files([path], ReadOptions(description=description_of(str(folder / "events.yml"))), jobs=1)


def checked(folder: Path, events: list[oracle.Event], text: str, **words) -> Checked:
    files = files_of(folder, events)
    (folder / "SLA.yml").write_text(text)
    runs = {run: {} for run in files.run_names}
    return check(files.answer, runs, read_objectives(folder / "SLA.yml"), Question(), folder / "SLA.yml", **words)


def found(told: Checked) -> list[oracle.Found]:
    rows = [
        (
            tuple(value for _, value in one.labels),
            one.start_ns,
            one.end_ns,
            one.peak_ns if one.lowest_rate is None else round(one.lowest_rate * one.window_ns / SECOND),
            one.samples,
            one.windows,
            one.silent,
            one.thin,
            one.worst_host,
            one.state,
        )
        for verdict in told.verdicts
        for one in verdict.episodes
    ]
    return sorted(rows, key=lambda one: (one[1], one[0]))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_final_windows_alone_decide_and_the_rest_is_provisional(tmp_path: Path, first: int) -> None:
    provisional = 0
    for seed in range(first, first + 20):
        events, promise = drawn(seed)
        if not oracle.windows_of(events, promise):
            continue
        final = (ZERO + (seed % 17 + 5) * SECOND) // promise.window * promise.window
        told = checked(tmp_path / str(seed), events, as_yaml(promise), finals={str(seed): final})
        last = max(oracle.window_of(one[2], promise.window) for one in events) + promise.window
        whole = {one[:2]: one for one in oracle.episodes_of(events, promise)}
        certain = oracle.episodes_of(events, promise, until=min(final, last))
        rows = found(told)
        assert [one for one in rows if one[-1] != PROVISIONAL] == certain, seed
        later = [one[:-1] for one in rows if one[-1] == PROVISIONAL]
        assert later == [
            one[:-1]
            for place, one in sorted(whole.items(), key=lambda pair: (pair[0][1], pair[0][0]))
            if place not in {one[:2] for one in certain}
        ], seed
        provisional += len(later)
        for one in told.verdicts:
            assert one.windows + one.provisional == len(
                oracle.windows_of(events, promise)[tuple(value for _, value in one.labels)]
            )
            assert one.met == all(each.state == PROVISIONAL for each in one.episodes)
    assert provisional


# ---- single cases, as docs/guides/check.md tells them -----------------------------------------------------------------------


def at(*seconds: float, host: str = "h1", ms: float = 1, op: str = "read") -> list[oracle.Event]:
    """Operations that complete half a second into these seconds."""
    return [(host, op, ZERO + int((second + 0.5) * SECOND), int(ms * MS)) for second in seconds]


def told_of(folder: Path, events: list[oracle.Event], words: str) -> list[Episode]:
    text = f"objectives:\n  - {{name: a, percentile: 99, threshold: 5ms, window: 1s, {words}}}\n"
    return [one for verdict in checked(folder, events, text).verdicts for one in verdict.episodes]


def spans(episodes: list[Episode]) -> list[tuple[int, int]]:
    return [((one.start_ns - ZERO) // SECOND, (one.end_ns - ZERO) // SECOND) for one in episodes]


FLAPPING = at(*range(12)) + at(2, 4, 5, 9, ms=50)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hold: 0", [(2, 3), (4, 6), (9, 10)]),
        ("hold: 1s", [(2, 6), (9, 10)]),
        ("hold: 2s", [(2, 6), (9, 10)]),
        ("hold: 3s", [(2, 10)]),
        ("hold: 0, for: 2s", [(4, 6)]),
        ("hold: 1s, for: 3s", [(2, 6)]),
        ("hold: 1s, for: 5s", []),
    ],
)
def test_hold_joins_and_for_leaves_out_what_is_short(tmp_path: Path, words: str, expected: list[tuple[int, int]]) -> None:
    assert spans(told_of(tmp_path, FLAPPING, words)) == expected


STALLED = at(0, 1, 2, 8, 9) + at(2, ms=50)


@pytest.mark.parametrize(
    ("words", "expected"),
    [("no_data: violate", [(2, 8)]), ("no_data: hold", [(2, 8)]), ("no_data: ok", [(2, 3)]), ("no_data: ok, hold: 5s", [(2, 3)])],
)
def test_a_stall_in_which_nothing_completes_follows_no_data(tmp_path: Path, words: str, expected: list[tuple[int, int]]) -> None:
    found = told_of(tmp_path, STALLED, words)
    assert spans(found) == expected
    assert [one.silent for one in found] == [end - start - 1 for start, end in expected]


def test_a_total_stall_alone_is_an_episode_without_a_peak(tmp_path: Path) -> None:
    (one,) = told_of(tmp_path, at(0, 1, 7, 8), "no_data: violate")
    assert (spans([one]), one.peak_ns, one.samples, one.silent, one.worst_host) == ([(2, 7)], None, 0, 5, "")


def test_a_host_that_dies_is_violated_until_the_run_ends(tmp_path: Path) -> None:
    events = at(*range(20)) + at(*range(6), host="h2")
    (one,) = told_of(tmp_path, events, "no_data: violate, by: [host]")
    assert (one.labels, spans([one]), one.worst_host, one.state) == ((("host", "h2"),), [(6, 20)], "h2", OPEN)


def test_the_rank_is_used_where_few_samples_cannot_carry_it_and_that_is_said(tmp_path: Path) -> None:
    events = at(0, 1, 2) + at(1, ms=50) + [one for second in range(3, 5) for one in at(*[second] * 200)]
    (one,) = told_of(tmp_path, events, "hold: 0")
    assert (spans([one]), one.thin, one.samples) == ([(1, 2)], 1, 2)


def test_the_worst_host_is_who_made_most_samples_above_the_threshold(tmp_path: Path) -> None:
    events = at(*range(6)) + at(2, 3, 3, host="h2", ms=50) + at(2, 3, host="h3", ms=900)
    (one,) = told_of(tmp_path, events, "")
    assert one.worst_host == "h2"


@pytest.mark.parametrize(("budget", "met"), [("40%", True), ("33.333333333%", False), ("33%", False), ("0%", False)])
def test_a_budget_is_the_share_of_windows_that_may_be_violated(tmp_path: Path, budget: str, met: bool) -> None:
    text = f"objectives:\n  - {{name: a, percentile: 99, threshold: 5ms, window: 1s, for: 10s, budget: {budget}}}\n"
    told = checked(tmp_path, FLAPPING, text)
    (one,) = told.verdicts
    assert (one.violated, one.windows, one.episodes, told.met) == (4, 12, (), met)


@pytest.mark.parametrize(
    ("promise", "outcome"),
    [
        ("rate: '>= 99/s'", "met"),  # every window has at least 99, and one of them lacks one
        ("rate: '>= 100/s'", "cannot tell"),
        ("rate: '>= 101/s'", "violated"),  # nine windows of ten, wherever the missing one belongs
        ("percentile: 50, threshold: 1ms, budget: 0.1% of requests", "violated"),  # 2 of 1,000
        ("percentile: 50, threshold: 1ms, budget: 0.2% of requests", "cannot tell"),  # 2 or 3
        ("percentile: 50, threshold: 1ms, budget: 0.3% of requests", "met"),
    ],
)
def test_what_is_missing_makes_rates_and_shares_an_interval(tmp_path: Path, promise: str, outcome: str) -> None:
    lines = [
        f"{(ZERO + second * SECOND + part * 10 * MS + MS) // 1000},{3 * MS if (second, part) in ((2, 5), (3, 7)) else MS // 10},read,h1"
        for second in range(10)
        for part in range(100)
    ]
    lines[517] = lines[517].replace(",100000,", ",1oo,")
    files = files_of(tmp_path, [("h1", "read", ZERO, MS)])
    (tmp_path / "run.csv").write_text("\n".join(["done_us,took_ns,type,node", *lines, ""]))
    (tmp_path / "SLA.yml").write_text(f"objectives:\n  - {{name: a, window: 1s, {promise}}}\n")
    runs = {run: {} for run in files.run_names}
    told = check(files.answer, runs, read_objectives(tmp_path / "SLA.yml"), Question())
    assert [one.outcome for one in told.verdicts] == [outcome]


def test_a_peak_in_the_open_last_bin_is_a_lower_bound(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x_clat_hist.1.log"
    path.write_text(logs.text([(1000, 0, {10: 5}), (2000, 0, {1855: 1}), (3000, 0, {10: 5})], 1856))
    (tmp_path / "SLA.yml").write_text("objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 1s}\n")
    assert command(["check", str(tmp_path / "SLA.yml"), str(path)]) == 1
    assert re.search(r"a +1 s +2 s +1s +>= 17\.0s +1 ", capsys.readouterr().out)


def test_a_clock_that_jumps_by_years_costs_nothing(tmp_path: Path) -> None:
    events = at(0, 1) + at(300_000_000)
    (one,) = told_of(tmp_path, events, "no_data: violate")
    assert spans([one]) == [(2, 300_000_000)]
    assert one.silent == 300_000_000 - 2


def test_what_groups_lack_is_added_up_once_for_all_of_them() -> None:
    """Of 10,000 hosts, each with entries of its own, to look at all entries for each took 80 s of a check."""
    caveat = Caveat("short-log", "a.log", "it is short")
    told = [
        ({"host": "h1", "op": "read"}, 0, 10, 5),
        ({"host": "h1"}, 5, 20, 7),
        ({"op": "write"}, None, None, None),
        ({"host": "h2", "op": "read"}, 50, 60, 9),
        ({}, 0, 1, 2),
    ]
    missing = [
        Lack(Missing({"run": "r", **labels}, low, high, count, 0, None, caveat), True) for labels, low, high, count in told
    ]
    groups = [(("host", host), ("op", op)) for host in ("h1", "h2") for op in ("read", "write")]
    assert missing_of(groups, missing, Life("r", 0, 30, 30)) == [14, None, 2, None]
    assert missing_of([()], missing[:2], Life("r", 0, 30, 30)) == [12] and missing_of([], missing, Life("r", 0, 30, 30)) == []
