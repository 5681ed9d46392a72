"""Queues with known answers, by NumPy: what clients of a server measure at a load, and the load at which p99 reaches a limit.

Times are in units of the mean service time. The truth comes from elsewhere than the samples: of M/M/1 by its formula, of M/D/1 by
Erlang's series of the waiting time, of the closed loop by runs a hundred times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Intervals
from ingest.core.labels import Group
from ingest.core.layout import hdr_layout
from ingest.query.capacity import Capacity, Load, axis_of, capacities, parse_sla, tested_in
from ingest.query.question import Answer
from oracles import hdr

Float = NDArray[np.float64]

HEAD = "#[Logged with Latte 0.28.2]\n#[StartTime: 1700000000.000 (seconds since epoch)]\n"
UNIT = 1_000_000  # ns: a service takes 1 ms
WINDOWS = 150
LAYOUT = hdr_layout(3, 0, 1)


def open_queue(noise: np.random.Generator, load: float, requests: int, *, constant: bool = False) -> tuple[Float, Float]:
    """Return when requests end and how long they take, where they arrive at random: M/M/1, or M/D/1. Begun long before."""
    before = int(60 / (1 - load) ** 2) if load < 1 else 0
    count = before + requests
    arrivals = np.cumsum(noise.exponential(1 / load, count))
    service = np.ones(count) if constant else noise.exponential(1, count)
    total = np.cumsum(service)
    ends = np.maximum.accumulate(arrivals - (total - service)) + total
    return (ends - arrivals[before])[before:], (ends - arrivals)[before:]


def closed_loop(
    noise: np.random.Generator, clients: int, delay: float, requests: int, copies: int, before: int = 200
) -> tuple[Float, Float]:
    """Return ends and response times (copies x requests) of clients that send again as they are answered, `delay` away in all.

    A request waits for the one before it in the server and for the answer to the one that its client sent before.
    """
    rounds = before + -(-requests // clients)
    answered, last = np.zeros((copies, clients)), np.zeros(copies)
    ends, took = np.empty((rounds, copies, clients)), np.empty((rounds, copies, clients))
    for number in range(rounds):
        service = noise.exponential(1, (copies, clients))
        total = np.cumsum(service, axis=1)
        arrives = answered + delay
        ends[number] = np.maximum(np.maximum.accumulate(arrives - (total - service), axis=1), last[:, None]) + total
        took[number] = ends[number] - answered
        answered, last = ends[number], ends[number, :, -1]
    flat = [part[before:].transpose(1, 0, 2).reshape(copies, -1)[:, :requests] for part in (ends, took)]
    return flat[0] - ends[before - 1].max(axis=1)[:, None], flat[1]


def limit_of_mm1(load: float) -> float:
    """Return p99 of the response of M/M/1: it is exponential with rate 1 - load."""
    return math.log(100) / (1 - load)


@lru_cache
def limit_of_md1(load: float) -> float:
    """Return p99 of the response of M/D/1, by Erlang's series for the wait.

    P(wait <= t) = (1 - load) sum over k <= t of (load (k - t))^k / k! exp(load (t - k)). Its terms are up to exp(load t) and
    cancel one another, so they have 120 digits.
    """

    def waits_at_most(time: float) -> float:
        with localcontext() as context:
            context.prec = 120
            rate, until = Decimal(load), Decimal(time)
            total, factorial = Decimal(0), Decimal(1)
            for k in range(int(time) + 1):
                factorial *= k or 1
                left = rate * (k - until)
                total += (left**k if k else Decimal(1)) / factorial * (-left).exp()
            return float((1 - rate) * total)

    low, high = 0.0, 64.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if waits_at_most(middle) < 0.99 else (low, middle)
    return 1 + high


def answer_of(ends: Float, took: Float, run: str, windows: int = WINDOWS) -> Answer:
    """Return the answer about a run of these requests, in windows and bins as readers make them."""
    last = float(ends[-1])
    step = int(last * UNIT / windows)
    place = np.minimum((ends * UNIT / step).astype(np.int64), windows - 1)
    keys, counts = np.unique(place * LAYOUT.bins + LAYOUT.index((took * UNIT).astype(np.int64)), return_counts=True)
    filled, indptr = np.unique(keys // LAYOUT.bins, return_index=True)
    rows = Intervals(
        layout=LAYOUT,
        table=((),),
        series=np.zeros(len(filled), np.int64),
        start_ns=filled * step,
        end_ns=(filled + 1) * step,
        indptr=np.append(indptr, len(keys)),
        bins=keys % LAYOUT.bins,
        counts=counts.astype(np.int64),
    )
    span = {run: (0, int(last * UNIT))}
    return Answer((rows,), (), step, "response", (run,), {run: 0}, relative=True, series=1, covered=span)


def capacity_of(runs: Sequence[tuple[float, Float, Float]], limit: float, label: str = "target_rate", at: float = 99) -> Capacity:
    """Return what the product says of runs (load, ends, times) and a limit."""
    sla = parse_sla(f"p{at:g}<{round(limit * UNIT)}ns")
    names = [f"run-{number}" for number in range(len(runs))]
    axis, places = axis_of({name: {label: f"{load:.9g}"} for name, (load, _, _) in zip(names, runs, strict=True)})
    tested: dict[tuple[str, Group], list[Load]] = {}
    for name, (_, ends, took) in zip(names, runs, strict=True):
        load, line = places[name]
        for group, point in tested_in(answer_of(ends, took, name), name, load, [sla]).items():
            tested.setdefault((line, group), []).append(point)
    [[capacity]] = capacities(tested, axis, [sla])
    return capacity


def open_case(
    noise: np.random.Generator, *, constant: bool, requests: int = 150_000, gap: float = 0.08
) -> tuple[float, float, Capacity]:
    """Return the true capacity of a random case of an open queue, the gap between its loads, and what the product says."""
    truth = round(float(noise.uniform(0.35, 0.88)), 2 if constant else 6)
    limit = limit_of_md1(truth) if constant else limit_of_mm1(truth)
    first = float(noise.uniform(0.2, 0.3))
    loads = [load for load in first + gap * np.arange(10) if load < 0.99]
    return truth, gap, capacity_of([(load, *open_queue(noise, load, requests, constant=constant)) for load in loads], limit)


def closed_cases(
    noise: np.random.Generator, cases: int, delay: float, depths: Sequence[int], requests: int = 50_000
) -> list[tuple[float, float, Capacity]]:
    """Return the same of random cases of a closed loop: the truth is the highest number of clients that meets the limit."""
    p99 = limits_of_loops(delay, max(depths))
    runs = {clients: closed_loop(noise, clients, delay, requests, cases) for clients in depths}
    results = []
    for case in range(cases):
        truth = int(noise.integers(depths[1], depths[-2]))
        limit = p99[truth] + float(noise.uniform(0.2, 0.8)) * (p99[truth + 1] - p99[truth])
        capacity = capacity_of([(float(depth), runs[depth][0][case], runs[depth][1][case]) for depth in depths], limit, "clients")
        gap = min(depth for depth in depths if depth > truth) - max(depth for depth in depths if depth <= truth)
        results.append((float(truth), float(gap), capacity))
    return results


@lru_cache
def limits_of_loops(delay: float, most: int) -> dict[int, float]:
    """Return p99 of closed loops by their number of clients, of 1.6 million requests each."""
    noise = np.random.default_rng(99)
    return {
        clients: float(np.quantile(closed_loop(noise, clients, delay, 16_000, 100)[1], 0.99)) for clients in range(1, most + 1)
    }


def hlog_of(ends: Float, took: Float, service_ns: int = 100_000, wide_ns: int = 100_000_000) -> str:
    """Return the log of these requests as HdrHistogram's tools write it, whole intervals alone."""
    places, bins = (ends * service_ns / wide_ns).astype(np.int64), LAYOUT.index((took * service_ns).astype(np.int64))
    lines = []
    for place in range(int(places[-1])):
        held = dict(zip(*(column.tolist() for column in np.unique(bins[places == place], return_counts=True)), strict=True))
        lines.append(hdr.line(f"{place * wide_ns / 1e9:.3f}", f"{wide_ns / 1e9:.3f}", held))
    return hdr.log(lines, HEAD)
