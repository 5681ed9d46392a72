"""Runs with a known cause, and quiet ones, as docs/explanation/findings.md describes them: made from a seed, asked like files.

    made("stall/3", seed) -> Made: the origin, and the causes that were put in
    made("drift+rhythm/0", seed), made("quiet/12", seed)

Samples are drawn one by one and counted in the bins of HdrHistogram with 2 digits, in windows of a second. The run begins within
a second, so that its first and its last window are parts.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest import Question
from ingest.core.grid import SECOND
from ingest.core.intervals import Intervals, concatenate, in_time_order
from ingest.core.layout import hdr_layout
from ingest.core.series import Group, Series
from ingest.query.files import LogRun
from ingest.query.interval_log import form_of
from ingest.query.origin import Offers
from ingest.query.question import ALL, AUTO, Answer, finish, range_in
from ingest.query.spans import of_runs, over_reach, reach_inside
from ingest.query.steps import auto_span, auto_step, widened
from ingest.query.summed import Adding, Summed, is_grained
from ingest.query.verdicts import Episode
from ingest.read.schedule import sentences
from ingest.read.schedule_seen import Seen
from ingest.view import hlog

Float = NDArray[np.float64]

RUN, ALL_HOSTS, QUIET = "synthetic", "", "quiet"
LENGTH, RATE, MEDIAN_NS, NOISE, SHARED, RATE_NOISE = 600, 200, 1e6, 0.05, 1 / 3, 0.03
OPS: Mapping[str, tuple[float, float]] = {"read": (0.6, 1.0), "write": (0.4, 1.4)}  # share of the rate, times the median
ZERO = 1_795_208_404 * SECOND
LAYOUT = hdr_layout(2, 0, 1)
HOSTS, MOST_HOSTS = 4, 20
APART, EDGE = 30.0, 15.0  # seconds between two causes that pass, and from the ends of the run
THROUGHOUT = (0.0, float(LENGTH))


@dataclass(frozen=True)
class Cause:
    """What was put in: its kind, on which host ("" for all), from when to when (s); `period_s` of a rhythm.

    Where `change` is set, it is a time at which something changes: `from_s` is that time.
    """

    kind: str
    host: str
    from_s: float
    to_s: float
    change: bool = False
    period_s: float = 0.0

    @property
    def passes(self) -> bool:
        """Return whether it has a time of its own within the run."""
        return (self.from_s, self.to_s) != THROUGHOUT


@dataclass
class Host:
    """What the causes do to one host: functions of the time of samples (s), and numbers."""

    slower: list[Callable[[Float], Float]] = field(default_factory=list)
    rate: float = 1.0
    rate_noise: float = RATE_NOISE
    spread: float = 1.0
    gaps: list[tuple[float, float]] = field(default_factory=list)
    second: Callable[[Float], Float] | None = None  # share of samples that take 8 times as long


@dataclass
class Scene:
    """A run before its samples are drawn."""

    hosts: dict[str, Host]
    ops: tuple[str, ...]
    sigma: float
    phi: float
    closed: bool
    response: bool = False

    def hit(self, name: str) -> list[Host]:
        """Return the hosts that a cause is on."""
        return list(self.hosts.values()) if name == ALL_HOSTS else [self.hosts[name]]


@dataclass(frozen=True)
class Made:
    """A run that can be asked as files and stores are, and the causes that were put in."""

    name: str
    causes: tuple[Cause, ...]
    rows: Intervals[Series]
    start_ns: int
    schedule: tuple[tuple[str, str], ...] = ()
    indexed: bool = False

    @property
    def hosts(self) -> list[str]:
        """Return the names of all hosts."""
        return sorted({series.host for series in self.rows.table})

    @property
    def offers(self) -> Offers:
        """Return that it can do no more than every origin."""
        return Offers()

    def runs(self) -> list[LogRun]:
        """Return the run."""
        return [LogRun(RUN, {}, self.start_ns, relative=False)]

    def marks(self, _answer: Answer) -> list[Mapping[str, Any]]:
        """Return no marks."""
        return []

    def episodes(self, _runs: Iterable[str]) -> list[Episode]:
        """Return no episodes."""
        return []

    def facts(self, _answer: Answer) -> list[tuple[str, str]]:
        """Return no facts."""
        return []

    def windows(self, question: Question) -> Iterator[Intervals[Group]]:
        """Yield the selected windows under (run, kind, then the question's labels)."""
        yield from self._added(replace(question, step=SECOND), SECOND).parts

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, as files do."""
        step = SECOND if question.step == AUTO else 0 if question.step == ALL else int(question.step)
        summed = self._added(question, step)
        parts, reach = summed.parts, of_runs(summed.reach)
        bounds = {RUN: range_in(question, self.start_ns, SECOND if is_grained(step, SECOND) else 1)}
        if question.step == AUTO:
            step = auto_step(*auto_span(reach, bounds, SECOND), SECOND, question.windows)
            parts = widened(parts, step)
        if question.step == ALL:
            bounded = question.begin is not None or question.end is not None
            windows = {run: (span, SECOND) for run, span in summed.windows.items()} if bounded else {}
            parts = over_reach(parts, reach, windows, question.adds_up_runs)
        facts = Answer(
            parts=(),
            by=question.by,
            step_ns=step,
            kind="",
            runs=(RUN,),
            run_start_ns={RUN: self.start_ns},
            relative=False,
            series=len(self.rows.table),
            warnings=tuple(sentences(self.schedule)),
            layouts=summed.layouts,
        )
        return finish(parts, question, facts, reach_inside(summed.reach, bounds))

    def _added(self, question: Question, step: int) -> Summed:
        adding = Adding(question, question.key({}), step, SECOND, self.start_ns, RUN)
        adding.add(self.rows)
        return adding.summed()

    def written(self, folder: Path) -> Path:
        """Write the run as HdrHistogram logs, one for each host in a folder of its name; return the folder."""
        form = form_of(LAYOUT)
        for host, part in self.rows.split(lambda series: series.host):
            place = folder / "clients" / host
            place.mkdir(parents=True)
            tagged = part.relabelled(lambda series: (series.op, "response" if series.kind == "response" else "service"))
            texts = hlog.lines(in_time_order(tagged), ("op", "kind"), self.start_ns, form.unit_ns)
            (place / "run.hlog").write_text(hlog.head(form.unit_ns, self.start_ns, "0") + "".join(texts))
        return folder


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
    scene.hosts[host].slower.append(lambda time: np.full(len(time), 1.5))
    return Cause("slow member", host, *THROUGHOUT)


def _put_throttle(scene: Scene, _random: np.random.Generator, host: str, _at: float) -> Cause:
    hit = scene.hosts[host]
    hit.rate, hit.rate_noise, hit.spread = 0.6 * hit.rate, 0.01, 0.5 * hit.spread
    hit.slower.append(lambda time: np.full(len(time), 1 / 0.6))
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
LONGEST = {"stall": 6.0, "episode": 60.0, "step": 0.0, "modes": 0.0}  # s; of causes that have a time


def names_of(kinds: Sequence[str], runs: int) -> dict[str, list[str]]:
    """Return the names of all runs: of each kind alone, of each kind with another one in turn, and the quiet ones."""
    others = list(CAUSES)
    names: dict[str, list[str]] = {}
    for kind in kinds:
        if kind == QUIET:
            names[QUIET] = [f"{QUIET}/{number}" for number in range(5 * runs)]
            continue
        names[kind] = [f"{kind}/{number}" for number in range(runs)]
        further = [other for other in others if other != kind]
        names[f"{kind}, two at a time"] = [f"{kind}+{further[number % len(further)]}/{number}" for number in range(runs)]
    return names


def made(name: str, seed: int, *, closed: bool = False) -> Made:
    """Return the run of a name: kinds joined by +, and a number.

    With `closed` the load is a closed loop: rates fall as latencies rise.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    kinds = [] if name.startswith(QUIET) else name.rpartition("/")[0].split("+")
    count = HOSTS if kinds else int(random.integers(1, MOST_HOSTS + 1))
    ops = tuple(OPS)[: int(random.integers(1, 3))]
    hosts = [f"host-{number:02}" for number in range(1, count + 1)]
    scene = Scene(
        {host: Host() for host in hosts}, ops, float(random.uniform(0.3, 1)), float(random.uniform(0.5, 0.9)), closed=closed
    )
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
            parts.append(_counted(time + offset, took, Series(run=RUN, host=name, op=op, kind=kind)))
            if scene.response:
                waited = np.concatenate([3 * took[: len(took) - len(late)], lasting])
                parts.append(_counted(time + offset, waited, Series(run=RUN, host=name, op=op, kind="response")))
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


def _counted(clock: Float, took: Float, series: Series) -> Intervals[Series]:
    """Return samples at times of the clock (s after `ZERO`) as windows of a second."""
    window, bins = np.floor(clock).astype(np.int64), LAYOUT.index(took.astype(np.int64))
    width = int(bins.max()) + 1
    counts = np.bincount(window * width + bins, minlength=(int(window.max()) + 1) * width)
    places = np.flatnonzero(counts)
    rows, indptr = np.unique(places // width, return_index=True)
    starts = ZERO + rows * SECOND
    return Intervals(
        layout=LAYOUT,
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
