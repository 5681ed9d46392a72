"""Runs with a known cause, and quiet ones, as docs/explanation/findings.md describes them: made from a seed, asked like files.

    made("stall/3", seed) -> Made: the origin, and the causes that were put in
    made("drift+rhythm/0", seed), made("quiet/12", seed)

Samples are drawn one by one and counted in the bins of HdrHistogram with 2 digits (or fio's), in windows of a second. The run
begins within a second, so that its first and its last window are parts.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from made_runs import ALL_HOSTS, LENGTH, RUN, THROUGHOUT, Cause, Made

from ingest.core.grid import SECOND
from ingest.core.intervals import Intervals, concatenate
from ingest.core.labels import Series
from ingest.core.layout import LogLinear, fio_layout, hdr_layout
from ingest.read.schedule import Seen

Float = NDArray[np.float64]

RATE, MEDIAN_NS, NOISE, SHARED, RATE_NOISE = 200, 1e6, 0.05, 1 / 3, 0.03
OPS: Mapping[str, tuple[float, float]] = {"read": (0.6, 1.0), "write": (0.4, 1.4)}  # share of the rate, times the median
ZERO = 1_795_208_404 * SECOND
FINE = hdr_layout(2, 0, 1)
HOSTS, MOST_HOSTS = 4, 20
APART, EDGE = 30.0, 15.0  # seconds between two causes that pass, and from the ends of the run


@dataclass
class Host:
    """What the causes do to one host: functions of the time of samples (s), and numbers."""

    slower: list[Callable[[Float], Float]] = field(default_factory=list)
    rate: float = 1.0
    rate_noise: float = RATE_NOISE
    spread: float = 1.0
    gaps: list[tuple[float, float]] = field(default_factory=list)
    second: Callable[[Float], Float] | None = None  # share of samples that take 8 times as long
    heavy: float = 0.0  # share of samples that take about 20 times as long, at any time


@dataclass
class Scene:
    """A run before its samples are drawn."""

    hosts: dict[str, Host]
    ops: tuple[str, ...]
    sigma: float
    phi: float
    closed: bool
    layout: LogLinear
    response: bool = False

    def hit(self, name: str) -> list[Host]:
        """Return the hosts that a cause is on."""
        return list(self.hosts.values()) if name == ALL_HOSTS else [self.hosts[name]]


def noise_of(random: np.random.Generator, phi: float) -> Float:
    """Return AR(1) of variance 1 over the windows of a run, in its stationary state from the start."""
    drawn = random.normal(size=LENGTH + 1)
    scale = math.sqrt(1 - phi * phi)
    levels = np.empty(LENGTH + 1)
    levels[0] = drawn[0]
    for at in range(1, LENGTH + 1):
        levels[at] = phi * levels[at - 1] + scale * drawn[at]
    return levels


Put = Callable[[Scene, np.random.Generator, str, float], Cause]


def _put_stall(scene: Scene, random: np.random.Generator, host: str, at: float) -> Cause:
    end = at + random.uniform(2, 6)
    scene.hosts[host].gaps.append((at, end))
    return Cause("stall", host, at, end)


def _put_slow(scene: Scene, _random: np.random.Generator, host: str, _at: float) -> Cause:
    scene.hosts[host].slower.append(_always(1.5))
    return Cause("slow member", host, *THROUGHOUT)


def _put_throttle(scene: Scene, _random: np.random.Generator, host: str, _at: float) -> Cause:
    hit = scene.hosts[host]
    hit.rate, hit.rate_noise, hit.spread = 0.6 * hit.rate, 0.01, 0.5 * hit.spread
    hit.slower.append(_always(1 / 0.6))
    return Cause("throttled", host, *THROUGHOUT)


def _put_episode(scene: Scene, random: np.random.Generator, host: str, at: float) -> Cause:
    end = at + random.uniform(10, 60)
    for hit in scene.hit(host):
        hit.slower.append(lambda time: np.where((time >= at) & (time < end), 3.0, 1.0))
    return Cause("episode", host, at, end)


def _put_step(scene: Scene, _random: np.random.Generator, host: str, at: float) -> Cause:
    for hit in scene.hit(host):
        hit.slower.append(lambda time: np.where(time >= at, 1.3, 1.0))
    return Cause("step", host, at, LENGTH, change=True)


def _put_drift(scene: Scene, _random: np.random.Generator, host: str, _at: float) -> Cause:
    for hit in scene.hit(host):
        hit.slower.append(lambda time: 1 + 0.4 * time / LENGTH)
    return Cause("drift", host, *THROUGHOUT)


def _put_rhythm(scene: Scene, random: np.random.Generator, host: str, _at: float) -> Cause:
    period = LENGTH / random.uniform(15, 40)
    phase = random.uniform(0, period)
    for hit in scene.hit(host):
        hit.slower.append(lambda time: np.where((time + phase) % period < period / 10, 3.0, 1.0))
    return Cause("rhythm", host, *THROUGHOUT, period_s=period)


def _put_modes(scene: Scene, random: np.random.Generator, host: str, at: float) -> Cause:
    scene.sigma = random.uniform(0.3, 0.7)  # beyond that there is no valley between the two places
    after = random.choice([0.1, 0.5])
    for hit in scene.hit(host):
        hit.second = lambda time: np.where(time >= at, after, 0.3)
    return Cause("modes", host, at, LENGTH, change=True)


def _put_imbalance(scene: Scene, _random: np.random.Generator, host: str, _at: float) -> Cause:
    scene.hosts[host].rate *= 2
    return Cause("imbalance", host, *THROUGHOUT)


def _put_omission(scene: Scene, _random: np.random.Generator, host: str, _at: float) -> Cause:
    scene.response = True
    return Cause("omission", host, *THROUGHOUT)


LONE, EITHER, EVERY = "one host", "one host, or all", "all hosts"
CAUSES: Mapping[str, tuple[Put, str]] = {
    "stall": (_put_stall, LONE),
    "slow member": (_put_slow, LONE),
    "throttled": (_put_throttle, LONE),
    "episode": (_put_episode, EITHER),
    "step": (_put_step, EITHER),
    "drift": (_put_drift, EITHER),
    "rhythm": (_put_rhythm, EITHER),
    "modes": (_put_modes, EVERY),
    "imbalance": (_put_imbalance, LONE),
    "omission": (_put_omission, EVERY),
}


def _heavy(scene: Scene, _random: np.random.Generator) -> None:
    for host in scene.hosts.values():
        host.heavy = 0.01


def _sparse(scene: Scene, _random: np.random.Generator) -> None:
    for host in scene.hosts.values():
        host.rate, host.rate_noise = 4 / RATE, 0.5


def _always(factor: float) -> Callable[[Float], Float]:
    return lambda time: np.full(len(time), factor)


def _uneven(scene: Scene, random: np.random.Generator) -> None:
    for host in scene.hosts.values():
        factor = float(np.exp(0.05 * random.normal()))
        host.slower.append(_always(factor))
        host.rate = float(np.exp(0.05 * random.normal()))


QUIETS: Mapping[str, Callable[[Scene, np.random.Generator], None]] = {
    "quiet": lambda _scene, _random: None,
    "quiet heavy tail": _heavy,  # 1 % of samples take about 20 times as long
    "quiet sparse": _sparse,  # about 4 completions a second and host
    "quiet uneven": _uneven,  # hosts differ for good, by a standard deviation of 5 % in level and in rate
}
LONGEST = {"stall": 6.0, "episode": 60.0, "step": 0.0, "modes": 0.0}  # s; of causes that have a time


def names_of(kinds: Sequence[str], runs: int) -> dict[str, list[str]]:
    """Return the names of all runs: of each kind alone, of each kind with another one in turn, and the quiet ones."""
    others = list(CAUSES)
    names: dict[str, list[str]] = {}
    for kind in kinds:
        if kind in QUIETS:
            names[kind] = [f"{kind}/{number}" for number in range(5 * runs if kind == "quiet" else runs)]
            continue
        names[kind] = [f"{kind}/{number}" for number in range(runs)]
        further = [other for other in others if other != kind]
        names[f"{kind}, two at a time"] = [f"{kind}+{further[number % len(further)]}/{number}" for number in range(runs)]
    return names


def made(name: str, seed: int, *, closed: bool = False, coarse: int | None = None) -> Made:
    """Return the run of a name: kinds joined by +, and a number.

    With `closed` the load is a closed loop: rates fall as latencies rise. With `coarse` bins are fio's of that coarseness.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    kinds = [kind for kind in name.rpartition("/")[0].split("+") if kind not in QUIETS]
    count = HOSTS if kinds else int(random.integers(1, MOST_HOSTS + 1))
    ops = tuple(OPS)[: int(random.integers(1, 3))]
    hosts = [f"host-{number:02}" for number in range(1, count + 1)]
    scene = Scene(
        {host: Host() for host in hosts},
        ops,
        sigma=float(random.uniform(0.3, 1)),
        phi=float(random.uniform(0.5, 0.9)),
        closed=closed,
        layout=FINE if coarse is None else fio_layout(29, 1, coarse),
    )
    QUIETS.get(name.rpartition("/")[0], QUIETS["quiet"])(scene, random)
    causes = _put_in(scene, kinds, random)
    rows, start = _drawn(scene, random)
    return Made(name, causes, rows, start, tuple(_schedules(rows)) if scene.response else ())


def _put_in(scene: Scene, kinds: Sequence[str], random: np.random.Generator) -> tuple[Cause, ...]:
    """Return the causes that were put in: those of one host on a host each, those that have a time apart from each other."""
    free = [str(host) for host in random.permutation(list(scene.hosts))]
    causes: list[Cause] = []
    for kind in kinds:
        put, whose = CAUSES[kind]
        alone = whose == LONE or (whose == EITHER and random.random() < 0.5)
        host = free.pop() if alone else ALL_HOSTS
        at = _time_of(kind, causes, random)
        causes.append(put(scene, random, host, at))
    return tuple(causes)


def _time_of(kind: str, others: Sequence[Cause], random: np.random.Generator) -> float:
    """Return a time for a cause of a kind that is apart from the times of others."""
    low, high = (0.3, 0.7) if kind in ("step", "modes") else (0.0, 1.0)
    longest = LONGEST.get(kind, 0.0)
    while True:
        at = float(random.uniform(max(EDGE, low * LENGTH), min(LENGTH - EDGE - longest, high * LENGTH)))
        edges = [
            edge for cause in others if cause.passes for edge in ((cause.from_s, cause.from_s if cause.change else cause.to_s))
        ]
        if kind not in LONGEST or all(edge + APART < at or edge - APART > at + longest for edge in edges):
            return at


def _drawn(scene: Scene, random: np.random.Generator) -> tuple[Intervals[Series], int]:
    """Return the windows of a run, and when it begins: somewhere within a second."""
    offset = float(random.uniform(0, 1))
    shared = noise_of(random, scene.phi)
    parts = []
    for name, host in scene.hosts.items():
        levels = np.exp(NOISE * (math.sqrt(SHARED) * shared + math.sqrt(1 - SHARED) * noise_of(random, scene.phi)))
        for op in scene.ops:
            share, times = OPS[op] if len(scene.ops) > 1 else (1.0, 1.0)
            rate = RATE * host.rate * share
            time, window = _times(rate, host, offset, random, scene.closed)
            took = _latencies(time, host, scene.sigma, random) * levels[window] * MEDIAN_NS * times
            late, lasting = _late(host, scene.ops.index(op), len(scene.ops), random)
            time, took = np.concatenate([time, late]), np.concatenate([took, lasting])
            kind = "service" if scene.response else "completion"
            parts.append(_counted(time + offset, took, Series(run=RUN, host=name, op=op, kind=kind), scene.layout))
            if scene.response:
                waited = np.concatenate([3 * took[: len(took) - len(late)], lasting])
                parts.append(_counted(time + offset, waited, Series(run=RUN, host=name, op=op, kind="response"), scene.layout))
    rows = concatenate(parts)
    start = ZERO + round(offset * 1000) * 1_000_000
    low = np.maximum(rows.start_ns, start)
    high = np.minimum(rows.end_ns, start + LENGTH * SECOND)
    return rows.at(low, high), start


def _times(
    rate: float,
    host: Host,
    offset: float,
    random: np.random.Generator,
    closed: bool,  # noqa: FBT001  # of the scene
) -> tuple[Float, NDArray[np.int64]]:
    """Return when samples complete, in s from the start of the run, and in which window of a second of the clock."""
    expected = np.full(LENGTH + 1, rate)
    if closed:
        middles = np.clip(np.arange(LENGTH + 1) + 0.5 - offset, 0, LENGTH)
        for slower in host.slower:
            expected /= slower(middles)
        if host.rate_noise != RATE_NOISE:
            expected = np.full(LENGTH + 1, rate)  # a ceiling, which does not follow latency
    counts = np.maximum(np.rint(expected * (1 + host.rate_noise * random.normal(size=LENGTH + 1))), 0).astype(np.int64)
    window = np.repeat(np.arange(LENGTH + 1), counts)
    time = window + random.random(len(window)) - offset
    inside = (time >= 0) & (time < LENGTH)
    for begin, end in host.gaps:
        inside &= (time < begin) | (time >= end)
    return time[inside], window[inside]


def _latencies(time: Float, host: Host, sigma: float, random: np.random.Generator) -> Float:
    """Return how long samples take, in medians, without the noise of their windows."""
    took = np.exp(sigma * host.spread * random.normal(size=len(time)))
    if host.second is not None:
        second = random.random(len(time)) < host.second(time)
        took = np.where(second, 8 * np.exp(0.3 * host.spread * random.normal(size=len(time))), took)
    if host.heavy:
        took *= np.where(random.random(len(time)) < host.heavy, 20 * np.exp(0.5 * random.normal(size=len(time))), 1)
    for slower in host.slower:
        took *= slower(time)
    return took


def _late(host: Host, place: int, ops: int, random: np.random.Generator) -> tuple[Float, Float]:
    """Return when what a stall held back completes, and its latencies (ns): a queue of 8 for all operations of the host."""
    time: list[float] = []
    took: list[float] = []
    for begin, end in host.gaps:
        held = 8 // ops + (place < 8 % ops)
        time += (end + 0.01 * random.random(held)).tolist()
        took += ((end - begin + 0.01 * random.random(held)) * SECOND).tolist()
    return np.array(time), np.array(took)


def _counted(clock: Float, took: Float, series: Series, layout: LogLinear) -> Intervals[Series]:
    """Return samples at times of the clock (s after `ZERO`) as windows of a second."""
    window, bins = np.floor(clock).astype(np.int64), layout.index(took.astype(np.int64))
    width = int(bins.max()) + 1
    counts = np.bincount(window * width + bins, minlength=(int(window.max()) + 1) * width)
    places = np.flatnonzero(counts)
    rows, indptr = np.unique(places // width, return_index=True)
    starts = ZERO + rows * SECOND
    return Intervals(
        layout=layout,
        table=(series,),
        series=np.zeros(len(rows), np.int64),
        start_ns=starts,
        end_ns=starts + SECOND,
        indptr=np.append(indptr, len(places)).astype(np.int64),
        bins=places % width,
        counts=counts[places].astype(np.int64),
    )


def _schedules(rows: Intervals[Series]) -> Iterator[tuple[str, str]]:
    """Yield the name of each host's log, and what it shows of its schedule as readers keep it."""
    for host, part in rows.split(lambda series: series.host):
        seen = Seen()
        seen.add(part)
        yield f"{host}/run.hlog", seen.digest(Series(run=RUN, host=host))
