"""Runs whose truth is known, written as log files: what happened in them, to whom, when, and how far beyond chance.

    scene_of(seed, number, quiet=False) -> Scene     what is drawn of a run before its operations are: cheap
    made(scene) -> Run                               its operations; `write(run, folder)` writes them as a user would have them

Written without the code of `explain`. A run lasts 60 to 600 s on 1 to 100 hosts, 8 to 400 operations a second each member (a
host with an operation; its volumes or jobs where there are some). Operations are drawn one by one, and every one carries what
it would have been without its cause: the excess of a cause is the difference under the same random numbers, and so are the
completions that are missing. At most one cause acts on an operation. None takes longer than the run is old.

A quarter of the runs are `weak`: their causes last at most 5 % of the run and are small (plateaus of 1.5 to 2.5 times, few of
at most 2 %, rates of 60 to 80 %), so that there are enough at the edge of what can be told. Quiet runs take hosts and noises
in turn.

Noise: `white` (lognormal latencies, Poisson or paced arrivals), `heavy` (1 % of operations take 20 times as long, or a Pareto
tail of 1.5 to 2.5), `ar .7` (the logarithm of the level of each second is AR(1) of .5, .7 or .9, with a standard deviation of
5 to 15 %, a third of its variance shared by all hosts). In a closed loop rates fall as latencies rise. In half of the runs
members differ for good, by 5 % in level and in rate.

The `z` of a cause is its strength for one who is told place and time: the signed root of the likelihood ratio of the count of
operations above the member's own median (binomial), above its p99 (binomial), or of completions too few (Poisson), the
largest of the three, each divided by what AR(1) adds to its standard deviation. A method that must look for both needs more
than that.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from ingest.core.grid import SECOND
from ingest.core.intervals import Intervals, concatenate, in_time_order
from ingest.core.labels import Group
from ingest.core.layout import fio_layout, hdr_layout
from ingest.query.interval_log import form_of
from ingest.view import hlog

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Who = Mapping[str, str]  # label to value: host, volume, job, op; empty: all

WINDOW = 1.0  # s: what the logs are written in, and what readers of single operations make
HOSTS, FORMATS = (3, 10, 30, 100), ("fio", "hdr", "csv")
NOISES: Mapping[str, tuple[str, float]] = {  # its name, and the coefficient of AR(1)
    "white": ("white", 0.0),
    "heavy": ("heavy", 0.0),
    "ar .5": ("ar", 0.5),
    "ar .7": ("ar", 0.7),
    "ar .9": ("ar", 0.9),
}
NOISE_WEIGHTS = (0.3, 0.25, 0.1, 0.25, 0.1)
SHAPES = ("plateau", "few", "rate", "outage", "throttle", "warm-up", "drift", "rhythm")
SHAPE_WEIGHTS = (0.3, 0.14, 0.12, 0.16, 0.08, 0.07, 0.06, 0.07)
PLACES, PLACE_WEIGHTS = ("host", "all", "volume", "job", "op", "host op"), (0.5, 0.2, 0.09, 0.07, 0.07, 0.07)
OPS: Mapping[str, tuple[float, float]] = {"read": (1.2, 1.0), "write": (0.8, 1.4)}  # times the rate, times the median
SHARED = 1 / 3  # of the variance of the level
OPERATIONS, CSV_OPERATIONS = 1_200_000, 250_000  # at most, of a run
APART = 0.1  # of the run between causes that share a member; and five windows
CORE = 0.9  # of the excess of a cause that comes or goes slowly
QUEUE = 8  # operations under way in a closed loop
DRAIN = 20  # times its rate at which an open loop catches up after an outage
YOUNG = 0.1  # s: beyond that no operation takes longer than the run is old
ZERO_S = 1_795_208_404


@dataclass
class Cause:
    """What was put in: to whom, from when to when (s of the run); excess (s), completions missing and z once it is drawn."""

    shape: str
    place: str
    who: dict[str, str]
    from_s: float
    to_s: float
    factor: float = 1.0
    share: float = 1.0
    rate: float = 1.0
    period_s: float = 0.0
    core: tuple[float, float] = (0.0, 0.0)
    excess_s: float = 0.0
    missing: int = 0
    z: float = 0.0

    def slower(self, time: Float) -> Float:
        """Return how many times as long operations take at times within the cause."""
        if self.shape == "drift":
            return 1 + (self.factor - 1) * (time - self.from_s) / (self.to_s - self.from_s)
        if self.shape == "warm-up":
            return 1 + (self.factor - 1) * np.exp(-3 * (time - self.from_s) / (self.to_s - self.from_s))
        return np.full(len(time), self.factor)

    def acts(self, time: Float) -> NDArray[np.bool_]:
        """Return at which times it acts: of a rhythm in the first fifth of each period."""
        inside = (time >= self.from_s) & (time < self.to_s)
        return inside & ((time - self.from_s) % self.period_s < self.period_s / 5) if self.period_s else inside


@dataclass
class Scene:
    """A run before its operations are drawn."""

    name: str
    seed: tuple[int, int, int]
    hosts: int
    volumes: int
    jobs: int
    ops: int
    length: float
    rate: float
    noise: str
    phi: float
    deviation: float
    closed: bool
    paced: bool
    uneven: bool
    weak: bool
    form: str
    causes: list[Cause] = field(default_factory=list)

    @property
    def words(self) -> set[str]:
        """Return what `--only` can ask for."""
        own = {self.noise, self.noise[:2], self.form, str(self.hosts)}
        own |= {"closed" if self.closed else "open", *(["weak"] if self.weak else [])}
        return own | {word for cause in self.causes for word in (cause.shape, cause.place)}

    @property
    def members(self) -> list[dict[str, str]]:
        """Return the labels of each member."""
        return [
            {"host": f"host-{host:03}", "volume": str(volume), "job": str(job), "op": op}
            for host in range(1, self.hosts + 1)
            for volume in range(self.volumes)
            for job in range(1, self.jobs + 1)
            for op in list(OPS)[: self.ops]
        ]

    def varied(self) -> set[str]:
        """Return the labels that have more than one value: only these tell one from another."""
        counts = {"host": self.hosts, "volume": self.volumes, "job": self.jobs, "op": self.ops}
        return {label for label, count in counts.items() if count > 1}


@dataclass
class Drawn:
    """The operations of a member: when they complete (s of the run) and how long they take (s)."""

    labels: dict[str, str]
    time: Float
    took: Float


@dataclass
class Run:
    """A run with its operations; `start_s` of each host is when its logs begin."""

    scene: Scene
    members: list[Drawn]
    zero_s: float


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(math.log(low), math.log(high))))


def scene_of(seed: int, number: int, *, quiet: bool = False) -> Scene:
    """Return what is drawn of a run before its operations are."""
    random = np.random.default_rng([seed, number, quiet])
    place = "host" if quiet else str(random.choice(PLACES, p=PLACE_WEIGHTS))
    hosts = HOSTS[number % len(HOSTS)] if quiet else int(random.choice(HOSTS, p=(0.4, 0.3, 0.2, 0.1)))
    volumes = jobs = 1
    form = str(random.choice(FORMATS))
    if place in ("volume", "job"):
        hosts, form = int(random.choice((1, 3, 10))), "fio"
        several = int(random.integers(3, 7) if hosts == 1 else random.integers(2, 5))
        volumes, jobs = (several, 1) if place == "volume" else (1, several)
    ops = 2 if "op" in place else int(random.integers(1, 3))
    rate, length = _log_uniform(random, 8, 400), _log_uniform(random, 60, 600)
    members = hosts * volumes * jobs * ops
    length = min(length, max(60.0, OPERATIONS / (members * rate)))
    rate = min(rate, OPERATIONS / (members * length))
    if form == "csv" and members * rate * length > CSV_OPERATIONS:
        form = "hdr"
    noise = list(NOISES)[number // len(HOSTS) % len(NOISES)] if quiet else str(random.choice(list(NOISES), p=NOISE_WEIGHTS))
    scene = Scene(
        name=f"{'quiet' if quiet else 'cause'}/{number}",
        seed=(seed, number, int(quiet)),
        hosts=hosts,
        volumes=volumes,
        jobs=jobs,
        ops=ops,
        length=length,
        rate=rate,
        noise=noise,
        phi=NOISES[noise][1],
        deviation=float(random.uniform(0.05, 0.15)) if NOISES[noise][1] else 0.0,
        closed=bool(random.random() < 0.5),
        paced=bool(random.random() < 0.3),
        uneven=bool(random.random() < 0.5),
        weak=bool(not quiet and random.random() < 0.25),
        form=form,
    )
    for nth in range(0 if quiet else int(random.choice((1, 2, 3), p=(0.6, 0.25, 0.15)))):
        cause = _cause(scene, place if not nth else str(random.choice(("host", "all", place))), random)
        if not any(_clash(scene, cause, other) for other in scene.causes):
            scene.causes.append(cause)
    return scene


def _cause(scene: Scene, place: str, random: np.random.Generator) -> Cause:
    """Return a cause at a place."""
    member = scene.members[int(random.integers(len(scene.members)))]
    labels = {"host": ("host",), "all": (), "volume": ("host", "volume"), "job": ("host", "job"), "op": ("op",)}
    who = {label: member[label] for label in labels.get(place, ("host", "op")) if label in scene.varied()}
    shape = str(random.choice(SHAPES, p=SHAPE_WEIGHTS))
    lasting = scene.length * _log_uniform(random, 0.01, 0.05 if scene.weak else 0.6)
    start = random.uniform(0, 1)
    start = 0.0 if start < 0.05 else 1.0 if start > 0.95 else random.uniform(0, 1)  # some begin with the run, some end with it
    cause = Cause(shape, place if who else "all", who, 0.0, 0.0)
    match shape:
        case "plateau":
            cause.factor = _log_uniform(random, 1.5, 2.5 if scene.weak else 50)
        case "few":
            cause.factor, cause.share = _log_uniform(random, 5, 50), _log_uniform(random, 0.005, 0.02 if scene.weak else 0.1)
        case "rate":
            cause.rate = float(random.uniform(0.6 if scene.weak else 0.1, 0.8))
        case "outage":
            lasting = min(_log_uniform(random, 0.3, 10), 0.3 * scene.length)
            start = float(np.clip(start, 0.02, 0.97))
        case "throttle":
            cause.rate = float(random.uniform(0.1, 0.8))
            cause.factor = 1 / cause.rate
        case "warm-up":
            cause.factor, start = _log_uniform(random, 1.5, 20), 0.0
        case "drift":
            cause.factor, lasting = _log_uniform(random, 1.5, 5), scene.length
        case "rhythm":
            cause.factor, lasting = _log_uniform(random, 2, 50), scene.length * random.uniform(0.5, 1)
            cause.period_s = max(3.0, lasting / random.uniform(8, 25))
    cause.from_s = start * (scene.length - lasting)
    cause.to_s = cause.from_s + lasting
    cause.core = _core(cause)
    return cause


def _core(cause: Cause) -> tuple[float, float]:
    """Return the time that holds most of the excess of a cause that comes or goes slowly: the later or the earlier part of it."""
    if cause.shape not in ("drift", "warm-up"):
        return cause.from_s, cause.to_s
    time = np.linspace(cause.from_s, cause.to_s, 1001)
    held = np.cumsum(cause.slower(time) - 1)
    if cause.shape == "drift":
        return float(time[np.searchsorted(held, (1 - CORE) * held[-1])]), cause.to_s
    return cause.from_s, float(time[np.searchsorted(held, CORE * held[-1])])


def _clash(scene: Scene, one: Cause, other: Cause) -> bool:
    """Return whether two causes share a member and are not well apart in time."""
    share = any(belongs(member, one.who) and belongs(member, other.who) for member in scene.members)
    apart = max(APART * scene.length, 5 * WINDOW)
    return share and one.from_s < other.to_s + apart and other.from_s < one.to_s + apart


def belongs(labels: Who, who: Who) -> bool:
    """Return whether a member is one of those that are named."""
    return all(labels[label] == value for label, value in who.items())


def _levels(random: np.random.Generator, scene: Scene) -> Float:
    """Return the noise of the level of each second, of variance 1."""
    drawn = random.normal(size=math.ceil(scene.length) + 1)
    scale = math.sqrt(1 - scene.phi**2)
    for at in range(1, len(drawn)):
        drawn[at] = scene.phi * drawn[at - 1] + scale * drawn[at]
    return drawn


@dataclass
class _Load:
    """What is alike for all members of a run: s, of the logarithm, share of its time that a closed loop waits for answers."""

    median: float
    sigma: float
    busy: float
    pareto: float


@dataclass
class _Usual:
    """Operations of a member without causes, and what decides what becomes of each: those that are kept are those that happen."""

    time: Float
    took: Float
    drawn: Float  # it is kept where this is below its chance
    chance: Float
    lot: Float
    normal: Float
    rate: float

    @property
    def keep(self) -> NDArray[np.bool_]:
        return self.drawn < self.chance


def made(scene: Scene) -> Run:
    """Return the run of a scene, and fill in what its causes did."""
    random = np.random.default_rng([*scene.seed, 1])
    shared = _levels(random, scene)
    load = _Load(
        median=_log_uniform(random, 1e-4, 5e-3),
        sigma=float(random.uniform(0.3, 1.0 if scene.noise == "white" else 0.6)),
        busy=float(random.uniform(0.3, 1)),
        pareto=float(random.uniform(1.5, 2.5)) if scene.noise == "heavy" and random.random() < 0.5 else 0.0,
    )
    seen: list[list[_Seen]] = [[] for _ in scene.causes]
    members, levels = [], {}
    for labels in scene.members:
        if labels["host"] not in levels:
            mixed = math.sqrt(SHARED) * shared + math.sqrt(1 - SHARED) * _levels(random, scene)
            levels[labels["host"]] = np.exp(scene.deviation * mixed)
        usual = _usual(scene, load, OPS[labels["op"]] if scene.ops > 1 else (1.0, 1.0), levels[labels["host"]], random)
        time, took, keep = usual.time.copy(), usual.took.copy(), usual.keep
        for cause, seen_of in zip(scene.causes, seen, strict=True):
            if belongs(labels, cause.who):
                hit = np.flatnonzero(cause.acts(usual.time))
                time[hit], took[hit], keep[hit] = _changed(cause, scene, load, usual, hit)
                took[hit] = np.minimum(took[hit], np.maximum(time[hit], YOUNG))
                cause.excess_s += float((took[hit] - usual.took[hit])[keep[hit]].sum())
                cause.missing += int(usual.keep[hit].sum() - keep[hit].sum())
                before = np.stack([usual.time, usual.took])[:, usual.keep]
                seen_of.append(_Seen.of(cause, labels, before, np.stack([time, took])[:, keep]))
        order = np.argsort(time[keep], kind="stable")
        members.append(Drawn(labels, time[keep][order], took[keep][order]))
    for cause, seen_of in zip(scene.causes, seen, strict=True):
        cause.z = strength(seen_of, scene.phi, scene.deviation, closed=scene.closed)
    return Run(scene, members, ZERO_S + round(float(random.uniform(0, 1)), 3))


def _usual(scene: Scene, load: _Load, times: tuple[float, float], level: Float, random: np.random.Generator) -> _Usual:
    """Return the operations of a member without causes; `times` are those of its operation."""
    uneven = np.exp(0.05 * random.normal(size=2)) if scene.uneven else np.ones(2)
    rates = 1 / (1 - load.busy + load.busy * level) if scene.closed else np.ones(len(level))  # of each second
    rate = scene.rate * times[0] * uneven[0] * rates.max()
    if scene.paced:
        time = np.arange(random.random(), rate * scene.length) / rate
    else:
        time = np.sort(random.uniform(0, scene.length, random.poisson(rate * scene.length)))
    drawn, place, lot = random.random((3, len(time)))
    normal, second = random.normal(size=len(time)), time.astype(np.int64)
    tail = np.ones(len(time))
    if load.pareto:
        tail = (1 - place) ** (-1 / load.pareto)
    elif scene.noise == "heavy":
        tail = np.where(place < 0.01, 20.0, 1.0)
    took = load.median * times[1] * uneven[1] * level[second] * np.exp(load.sigma * normal) * tail
    chance = rates[second] / rates.max()
    return _Usual(time, np.minimum(took, np.maximum(time, YOUNG)), drawn, chance, lot, normal, rate)


def _changed(cause: Cause, scene: Scene, load: _Load, usual: _Usual, hit: Int) -> tuple[Float, Float, NDArray[np.bool_]]:
    """Return of the operations of a member that a cause acts on when they complete, how long they take, and which happen."""
    time, took, keep = usual.time[hit], usual.took[hit], usual.keep[hit]
    if cause.shape != "outage":
        slower = cause.slower(time)
        rate = np.full(len(hit), cause.rate)
        if scene.closed and cause.shape != "throttle":
            rate /= 1 + load.busy * cause.share * (slower - 1)
        narrow = np.exp(-load.sigma / 2 * usual.normal[hit]) if cause.shape == "throttle" else 1.0
        slow = np.where(usual.lot[hit] < cause.share, took * slower * narrow, took)
        return time, slow, usual.drawn[hit] < rate * usual.chance[hit]
    if scene.closed:  # those under way answer at the end
        held = QUEUE // (scene.ops * scene.volumes * scene.jobs) or 1
        return cause.to_s + 0.01 * usual.lot[hit], took + cause.to_s - cause.from_s, keep & (np.cumsum(keep) <= held)
    ends = cause.to_s + np.arange(1, len(hit) + 1) / (DRAIN * usual.rate)
    return ends, took + ends - time, keep


@dataclass
class _Seen:
    """What one who is told place and time of a cause sees of a member."""

    host: str
    counts: Int  # of each second, of an outage with what completes just after it
    completed: int
    expected: float  # completions
    above: tuple[int, int]  # above the member's own median, p99
    density: tuple[float, float]  # of the logarithm of latencies there

    @classmethod
    def of(cls, cause: Cause, labels: Who, usual: Float, now: Float) -> _Seen:
        low, high = cause.core
        late = WINDOW / 10 if cause.shape == "outage" else 0.0
        within = cause.acts(now[0]) & (now[0] >= low) & (now[0] < high)
        there = within | (now[0] >= high) & (now[0] < high + late)
        before = cause.acts(usual[0]) & (usual[0] >= low) & (usual[0] < high)
        edges = np.quantile(usual[1], (0.5, 0.99)) if usual.size else np.ones(2)
        above = tuple(int((now[1, there] > edge).sum()) for edge in edges)
        near = tuple(float((np.abs(np.log(usual[1] / edge)) < 0.05).mean()) / 0.1 if usual.size else 0.0 for edge in edges)
        counts = np.bincount(now[0, there].astype(np.int64)) if there.any() else np.zeros(1, np.int64)
        return cls(labels["host"], counts, int(within.sum()), float(before.sum()), above, near)  # type: ignore[arg-type]  # pairs


def strength(seen: Sequence[_Seen], phi: float, deviation: float, *, closed: bool) -> float:
    """Return z: the largest of those above the median, above p99, and of completions too few."""
    count = int(sum(each.counts.sum() for each in seen))
    expected = sum(each.expected for each in seen)
    found = [0.0]
    for place, chance in enumerate((0.5, 0.01)):
        above = sum(each.above[place] for each in seen)
        if count and above > chance * count:
            root = math.sqrt(2 * count * _divergence(above / count, chance))
            drift = _wander([each.counts.astype(float) * each.density[place] for each in seen], [each.host for each in seen], phi)
            found.append(root / math.sqrt(1 + deviation**2 * drift / (count * chance * (1 - chance))))
    completed = sum(each.completed for each in seen)
    if completed < expected:
        root = math.sqrt(2 * ((completed * math.log(completed / expected) if completed else 0.0) - (completed - expected)))
        drift = _wander([each.counts.astype(float) for each in seen], [each.host for each in seen], phi) if closed else 0.0
        found.append(root / math.sqrt(1 + deviation**2 * drift / expected))
    return max(found)


def _divergence(share: float, chance: float) -> float:
    rest = (1 - share) * math.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return share * math.log(share / chance) + rest


def _wander(weights: Sequence[Float], hosts: Sequence[str], phi: float) -> float:
    """Return the variance of a weighted sum of levels of variance 1 that follow AR(1), a third of it shared by all hosts."""
    width = max(len(each) for each in weights)
    by_host: dict[str, Float] = {host: np.zeros(width) for host in hosts}
    for host, each in zip(hosts, weights, strict=True):
        by_host[host][: len(each)] += each
    lags = phi ** np.arange(width)

    def variance(sums: Float) -> float:
        reach = np.correlate(sums, sums, "full")[width - 1 :]
        return float(reach[0] + 2 * (reach[1:] * lags[1:]).sum())

    own = sum(variance(each) for each in by_host.values())
    return (1 - SHARED) * own + SHARED * variance(sum(by_host.values(), np.zeros(width)))


def write(run: Run, folder: Path) -> Path:
    """Write a run as logs of its format; return the folder that a user would give."""
    {"fio": _write_fio, "hdr": _write_hdr, "csv": _write_csv}[run.scene.form](run, folder)
    return folder


def _by_host(run: Run) -> Iterator[tuple[str, list[Drawn]]]:
    hosts: dict[str, list[Drawn]] = {}
    for member in run.members:
        hosts.setdefault(member.labels["host"], []).append(member)
    yield from hosts.items()


def _write_csv(run: Run, folder: Path) -> None:
    """Operation logs, one for each host in a folder of its name, as clients write them when an operation ends."""
    for host, members in _by_host(run):
        end = np.concatenate([member.time for member in members])
        took = np.concatenate([member.took for member in members])
        ops = np.repeat([member.labels["op"] for member in members], [len(member.time) for member in members])
        order = np.argsort(end, kind="stable")
        ends = np.rint((run.zero_s + end[order]) * 1e6).astype(np.int64)
        starts = ends - np.maximum(np.rint(took[order] * 1e6).astype(np.int64), 1)
        place = folder / host
        place.mkdir(parents=True)
        rows = zip(starts.tolist(), ends.tolist(), ops[order].tolist(), strict=True)
        lines = [f"{start},{end},{op}" for start, end, op in rows]
        (place / "operations.csv").write_text("\n".join(["start_us,end_us,op", *lines, ""]))


def _write_hdr(run: Run, folder: Path) -> None:
    """HdrHistogram logs, one for each host, an operation a tag; intervals of a second from the start, the last one is cut."""
    layout, start = hdr_layout(2, 0, 1), round(run.zero_s * SECOND)
    form = form_of(layout)
    for host, members in _by_host(run):
        parts: list[Intervals[Group]] = []
        for member in members:
            window, bins = member.time.astype(np.int64), layout.index((member.took * SECOND).astype(np.int64))
            width = int(bins.max(initial=0)) + 1
            places, counts = np.unique(window * width + bins, return_counts=True)
            rows, indptr = np.unique(places // width, return_index=True)
            starts = start + rows * SECOND
            ends = np.minimum(starts + SECOND, start + round(max(run.scene.length, member.time.max(initial=0)) * SECOND))
            parts.append(
                Intervals(
                    layout=layout,
                    table=((member.labels["op"],),),
                    series=np.zeros(len(rows), np.int64),
                    start_ns=starts,
                    end_ns=ends,
                    indptr=np.append(indptr, len(places)).astype(np.int64),
                    bins=places % width,
                    counts=counts.astype(np.int64),
                )
            )
        lines = hlog.lines(in_time_order(concatenate(parts)), ("op",), start, form.unit_ns)
        place = folder / host
        place.mkdir(parents=True)
        (place / "latency.hlog").write_text(hlog.head(form.unit_ns, start, "0") + "".join(lines))


def _write_fio(run: Run, folder: Path) -> None:
    """Histogram logs and JSON as CBT files them: output.VOLUME_clat_hist.JOB.log.HOST.

    fio writes a row at the first completion after each second of an operation (each completion ends one row at most), and
    what comes after the last row is in no log: its JSON counts it.
    """
    place = folder / "results" / "00000000" / "id-5707ec0d"
    place.mkdir(parents=True)
    coarse = 0 if len(run.members) <= 6 else 2 if len(run.members) <= 40 else 3
    layout = fio_layout(29, 1, coarse)
    logs: dict[tuple[str, str, str], list[tuple[int, int, str]]] = {}
    totals: dict[tuple[str, str, str], dict[str, int]] = {}
    for member in run.members:
        labels = member.labels
        key = labels["volume"], labels["host"], labels["job"]
        direction = list(OPS).index(labels["op"])
        totals.setdefault(key, {})[labels["op"]] = len(member.time)
        rows = logs.setdefault(key, [])
        bins = layout.index((member.took * SECOND).astype(np.int64))
        stamps = (member.time * 1000).astype(np.int64)
        begin, due = 0, int(stamps[0]) + 1000 if len(stamps) else 0
        while begin < len(stamps):
            last = max(int(np.searchsorted(stamps, due)), begin)
            if last >= len(stamps):
                break
            cells = ["0"] * (1856 >> coarse)
            for cell, count in zip(*np.unique(bins[begin : last + 1], return_counts=True), strict=True):
                cells[cell] = str(count)
            rows.append((int(stamps[last]), direction, f"{stamps[last]}, {direction}, 4096, {', '.join(cells)}\n"))
            begin, due = last + 1, due + 1000
    for (volume, host, job), rows in logs.items():
        (place / f"output.{volume}_clat_hist.{job}.log.{host}").write_text("".join(row[2] for row in sorted(rows)))
    runtime = math.ceil(1000 * run.scene.length)
    for volume, host in sorted({key[:2] for key in logs}):
        jobs = [
            {
                "jobname": f"cbt-librbdfio-{host}-file-0",
                "groupid": 0,
                "error": 0,
                "job_runtime": runtime,
                "job options": {"name": f"cbt-librbdfio-{host}-file-0"},
                **{op: {"total_ios": count, "runtime": runtime} for op, count in totals[key].items()},
            }
            for key in sorted(logs)
            if key[:2] == (volume, host)
        ]
        options = {"write_hist_log": f"output.{volume}", "log_hist_msec": "1000", "log_hist_coarseness": str(coarse)}
        text = {
            "fio version": "fio-3.33",
            "timestamp_ms": round(run.zero_s * 1000) + runtime,
            "global options": {**options, "numjobs": str(len(jobs)), "iodepth": str(QUEUE)},
            "jobs": jobs,
        }
        (place / f"json_output.{volume}.{host}").write_text(json.dumps(text))
