"""Burn-rate alerts: as the definition says, window by window; before the budget is gone in incidents; hardly ever in quiet hours."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks.burn_rate import RUNS, results
from ingest.cli import run as command
from ingest.objectives.check import alerting, check, labels_of
from ingest.objectives.objectives import read_objectives
from ingest.objectives.webhook import payload
from ingest.query.burn_rate import BurnAlert, burning
from ingest.query.question import Question
from ingest.store import open_store
from oracles import burn_rate as oracle
from oracles import hdr
from tests.live.feeding import HEAD, Clock, begun
from tests.query.incidents import MS, SECOND, ZERO, written

QUICK = [run for run in RUNS if (run.hours, run.window, run.share) == (24, 10, 0.01)]


@pytest.mark.parametrize(
    ("runs", "incidents", "hours"), [(QUICK, 20, 240), pytest.param(RUNS, 100, 1000, marks=pytest.mark.soak)]
)
def test_alerts_come_before_the_budget_is_gone_and_not_in_quiet_hours(runs, incidents: int, hours: int) -> None:
    """The measured rates are in docs/explanation/verdicts.md."""
    found = list(results(7, incidents, hours, runs))
    assert sum(one.before for one in found) >= 0.95 * sum(one.incidents for one in found) > 0
    assert sum(one.false for one in found) <= sum(one.hours for one in found) / 100


def series(seed: int) -> tuple[list[int], list[int], Fraction, int]:
    """Return the bad and all of some windows, the share that may be bad, and how many windows the period has."""
    noise = random.Random(seed)
    windows, share = noise.randint(1, 700), Fraction(noise.choice((1, 5, 20, 80)), 1000)
    of_requests, bad, every = noise.random() < 0.5, [], []
    level, until = 0.0, 0
    for place in range(windows):
        if place >= until:
            until = place + noise.randint(5, 200)
            level = min(1.0, float(share) * noise.choice((0, 0.3, 1, 2, 5, 20, 500)))
        every.append(noise.choice((0, 3, 40, 40)) if of_requests else 1)
        bad.append(sum(noise.random() < level for _ in range(every[-1])))
    return bad, every, share, noise.choice((windows, 2 * windows, max(windows // 2, 1), 1440))


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 500), marks=pytest.mark.soak)])
def test_alerts_are_those_of_a_loop_over_every_window(seeds) -> None:
    count = 0
    for seed in seeds:
        bad, every, share, period = series(seed)
        ends = (np.arange(len(bad)) + 1) * SECOND
        alerts, gone = burning(ends, np.array(bad), np.array(every), share, SECOND, period * SECOND)
        told, end = oracle.alerts(bad, every, share, period)
        assert [(one.start_ns // SECOND - 1, one.end_ns // SECOND - 1, one.open) for one in alerts] == told, seed
        assert (None if gone is None else gone // SECOND - 1) == end, seed
        count += len(told)
    assert count


def operations(seconds: int, slow: range) -> list[tuple[str, str, int, int]]:
    return [("h1", "read", ZERO + second * SECOND + SECOND // 2, (50 if second in slow else 1) * MS) for second in range(seconds)]


SLA = "objectives:\n  - {name: quick, percentile: 99, threshold: 5ms, window: 1s, budget: 5%%}\n"


@pytest.mark.parametrize(
    ("budget", "slow", "said"),
    [
        ("5% in 20m", range(100, 200), "warned at 2026-11-20T21:02:12.000Z, at a burn rate of "),
        ("5%", range(100, 200), "gone at"),
        ("5%", range(100, 105), ""),
        ("5% in 1h", range(100, 105), ""),
        ("0%", range(100, 105), ""),
    ],
)
def test_a_check_says_when_it_would_have_warned(tmp_path: Path, budget: str, slow: range, said: str, capsys) -> None:
    path = written(tmp_path / "r", operations(600, slow))
    (tmp_path / "SLA.yml").write_text(SLA.replace("5%%", budget))
    for form in ("table", "junit"):
        command(
            [
                "check",
                str(tmp_path / "SLA.yml"),
                str(path),
                "--input-format",
                str(tmp_path / "r" / "events.yml"),
                "--format",
                form,
            ]
        )
        told = " ".join(capsys.readouterr().out.split())
        assert said in told and ("warned at" in told or "gone at" in told) == bool(said), told


@pytest.mark.parametrize("text", ["1% in", "1% in soon", "1% in 0s", "in 24h"])
def test_what_is_no_period_is_refused(tmp_path: Path, text: str, capsys) -> None:
    (tmp_path / "SLA.yml").write_text(SLA.replace("5%%", text))
    path = written(tmp_path / "r", operations(3, range(0)))
    assert command(["check", str(tmp_path / "SLA.yml"), str(path), "--input-format", str(tmp_path / "r" / "events.yml")]) == 3
    assert "SLA.yml:2: " in capsys.readouterr().err


@pytest.mark.slow
def test_a_watch_warns_once_and_before_the_budget_is_gone(tmp_path: Path) -> None:
    """The watch is begun anew twice: while the alert lasts, when it is told again under its id, and after it."""
    (tmp_path / "SLA.yml").write_text(SLA.replace("5%%", "5% in 20m"))
    objectives, told, clock = read_objectives(tmp_path / "SLA.yml"), [], Clock()
    log = tmp_path / "logs" / "x.hlog"
    log.parent.mkdir()
    log.write_text(HEAD)
    with open_store(f"sqlite:{tmp_path / 'x.db'}", write=True) as store:
        for second in range(0, 400, 10):
            if second in (0, 140, 360):
                judge = alerting(
                    objectives, lambda one: told.append((clock.seconds, one)) if isinstance(one, BurnAlert) else None
                )
                watch = begun(log.parent, store, clock, judge)
            with log.open("a") as out:
                for at in range(second, second + 10):
                    value = 80_000_000 if 100 <= at < 170 else 1_000_000
                    out.write(hdr.line(f"{at}.000", "1.000", {hdr.index_of(value, 2): 50}, digits=2))
            clock.seconds += 10
            watch.cycle()
        watch.cycle(last=True)
        watch.settle()
        judge(store, "r")
        records = store.runs()
        (verdict,) = check(store.answer, labels_of(records), objectives, Question()).verdicts
    (alert,) = verdict.alerts
    assert [payload(one)["id"] for _, one in told] == [payload(alert)["id"]] * 2
    (first, one), (again, _) = told
    assert verdict.gone_ns is not None and one.start_ns < verdict.gone_ns
    assert first - 1000 < 160 <= again - 1000 + 10  # 60 bad windows end the budget, at 160 s
    assert payload(one)["state"] == "burning" and payload(one)["text"].startswith(
        "the budget of quick of r burns too fast since "
    )
