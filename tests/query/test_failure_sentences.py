"""Sentences about failures: none of a stretch or member where a share is the same everywhere, and who it was where some fail more."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ingest.query.story.ground import Claim, ClaimedCells, Ground, Labels, Outcomes
from ingest.query.story.shapes import failures
from tests.effort import figure

SECOND = 1_000_000_000
Counts = np.ndarray[Any, np.dtype[np.int64]]


def claims_of(groups: tuple[Labels, ...], failed: Counts, every: Counts) -> list[Claim]:
    """Return what is claimed of counts (groups x windows of 1 s)."""
    none = ClaimedCells.of(np.zeros(failed.shape, np.bool_))
    ground = SimpleNamespace(
        outcomes=Outcomes(groups, failed, every),
        span=lambda first, last: (first * SECOND, (last + 1) * SECOND),
        claimed=lambda _groups, _windows: none,
    )
    return failures(cast(Ground, ground))


def wandering(noise: np.random.Generator, rows: int, windows: int, memory: float) -> np.ndarray:
    """Return rows of a stationary AR(1) series of variance 1."""
    steps = noise.standard_normal((rows, windows))
    for at in range(1, windows):
        steps[:, at] = memory * steps[:, at - 1] + math.sqrt(1 - memory**2) * steps[:, at]
    return steps


def quiet(noise: np.random.Generator, share: float, memory: float, spread: float, burst: int) -> tuple[Any, Counts, Counts]:
    """Return a run of 1 to 30 hosts whose share of failures is the same everywhere, wanders with all of them, or comes in bursts."""
    hosts, windows, rate = (int(noise.choice(among)) for among in ((1, 3, 10, 30), (60, 120, 240), (50, 200, 1000)))
    ops = ("read", "write") if noise.random() < 0.5 else ("get",)
    groups = tuple((("host", f"h{host}"), ("op", op)) for host in range(hosts) for op in ops)
    every = noise.poisson(rate, (len(groups), windows))
    shares = np.minimum(share * np.exp(spread * wandering(noise, 1, windows, memory) - spread**2 / 2), 0.9)
    if burst == 1:
        return groups, noise.binomial(every, np.broadcast_to(shares, every.shape)), every
    return groups, np.minimum(noise.poisson(every * shares / burst) * burst, every), every


@pytest.mark.parametrize(
    ("memory", "spread", "burst", "allowed"),
    [
        pytest.param(0.0, 0.0, 1, 0.01, marks=pytest.mark.slow),
        pytest.param(0.5, 0.3, 1, 0.01, marks=pytest.mark.slow),
        pytest.param(0.9, 0.3, 1, 0.01, marks=pytest.mark.slow),
        pytest.param(0.95, 0.5, 1, 0.04, marks=pytest.mark.slow),
        pytest.param(0.0, 0.0, 5, 0.01, marks=pytest.mark.slow),
        pytest.param(0.0, 0.0, 20, 0.01, marks=pytest.mark.slow),
    ],
)
def test_a_share_that_is_the_same_everywhere_is_told_once_of_the_whole_run(
    memory: float, spread: float, burst: int, allowed: float
) -> None:
    noise, runs, false = np.random.default_rng(7), figure(20, 300), 0
    for _ in range(runs):
        share = math.exp(noise.uniform(math.log(1e-4), math.log(0.05)))
        groups, failed, every = quiet(noise, share, memory, spread, burst)
        claims = claims_of(groups, failed, every)
        assert len(claims) <= 3
        once = np.count_nonzero(failed) == 1  # where and when that was is all that there is to say
        false += not once and any(claim.who or not claim.details["whole"] for claim in claims)
    print(f"{false} of {runs} runs")
    assert false <= max(allowed * runs, 1)


@pytest.mark.parametrize(
    "members",
    [
        2,
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(5, marks=pytest.mark.slow),
        pytest.param(10, marks=pytest.mark.slow),
    ],
)
def test_hosts_that_fail_together_are_named(members: int) -> None:
    noise, runs, found, named = np.random.default_rng(members), figure(10, 200), 0, 0
    for _ in range(runs):
        groups, failed, every = quiet(noise, 0.001, 0.0, 0.0, 1)
        hosts = sorted({labels[0][1] for labels in groups})
        if len(hosts) < 10:
            groups = tuple((("host", f"h{host}"), ("op", "get")) for host in range(10))
            every = noise.poisson(200, (10, 120))
            failed, hosts = noise.binomial(every, 0.001), sorted(labels[0][1] for labels in groups)
        bad = set(noise.choice(hosts, members, replace=False).tolist())
        first = int(noise.integers(5, failed.shape[1] - 25))
        own = [code for code, labels in enumerate(groups) if labels[0][1] in bad]
        failed[own, first : first + 20] = noise.binomial(every[own, first : first + 20], 0.05)
        hits = [
            claim
            for claim in claims_of(groups, failed, every)
            if min(claim.end_ns, (first + 20) * SECOND) - max(claim.start_ns, first * SECOND) > 15 * SECOND
        ]
        found += bool(hits)
        whose = [
            {one["host"] for one in claim.details["members"]}
            or {value for name, value in claim.who if name == "host"}
            or set(hosts)
            for claim in hits
        ]
        named += bad in whose
    print(f"found {found}, named {named} of {runs}")
    assert found >= 0.95 * runs and named >= 0.9 * runs


def test_of_hosts_that_fail_unlike_much_each_is_told_by_itself() -> None:
    noise, groups = np.random.default_rng(1), tuple((("host", f"h{host}"),) for host in range(6))
    every = np.full((6, 120), 200)
    failed = noise.binomial(every, 0.0005)
    failed[1, 40:70], failed[4, 50:60] = noise.binomial(200, 0.5, 30), noise.binomial(200, 0.2, 10)
    told = {(claim.who, claim.start_ns // SECOND, claim.end_ns // SECOND) for claim in claims_of(groups, failed, every)}
    assert told == {((("host", "h1"),), 40, 70), ((("host", "h4"),), 50, 60)}
