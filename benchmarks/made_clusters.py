"""A simulated cluster: clients above OSDs above disks, one of which is slow for a time; or something else is, or nothing.

    client latency = service latency + network + (the cause `network`)        fio's bins, 1.6 % wide
    service latency = device latency + work of the OSD + (the cause `osd`)    Ceph's bins, an octave wide from 100 us on
    device latency = lognormal, times (the causes `disk`, `within`, `all`)    bpftrace's bins, an octave of us

Each operation of a client goes to one OSD at random, and in four of five cases to its disk (else the OSD has it cached). With
`replicas` a write waits for the slowest of so many OSDs. The level of each disk and of the network wanders from second to second.
The cause `client` is a client whose operations take 4 ms more throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.grid import SECOND
from ingest.core.intervals import Intervals
from ingest.core.labels import Group, Series, in_layer
from ingest.core.layout import Edges, Layout, fio_layout
from ingest.query.aggregate import Aggregation
from ingest.query.episodes import Episode
from ingest.query.files import LogRun
from ingest.query.origin import Capabilities
from ingest.query.plan import Merged, Sums, answer_of
from ingest.query.question import ALL, AUTO, Answer, Question, range_in
from ingest.query.windows import auto_span, auto_step, of_runs, widened

Float = NDArray[np.float64]
Int = NDArray[np.int64]

RUN = "synthetic"
LENGTH, START = 300, 1_795_000_000  # s
HOSTS, OSDS_A_HOST, CLIENTS = 4, 2, 3
RATE = 400  # operations a second and client
CACHED = 0.2
CLIENT_LAYOUT = fio_layout(29, 1)
CEPH = Edges((0, *(100_000 << step for step in range(31))), open_ended=True)
BPF = Edges((0, *(1_000 << step for step in range(26))), open_ended=True)
CAUSES = ("disk", "osd", "network", "within", "all", "no service data", "no device data", "quiet", "client")
SLOW = {"disk": (3.0, 8.0), "osd": (3.0, 8.0), "within": (1.9, 1.9), "all": (3.0, 6.0)}


@dataclass(frozen=True)
class Cluster:
    """A run of three layers that can be asked as files and stores are.

    `culprit` is the number of its slow OSD, `from_s` and `to_s` when it was slow, `names` host, OSD and disk of each OSD.
    """

    name: str
    rows: Intervals[Series]  # of the clients
    lower: tuple[Intervals[Series], ...]  # what is below them
    culprit: int
    from_s: int
    to_s: int
    names: tuple[tuple[str, str, str], ...]
    start_ns: int = START * SECOND
    indexed: bool = False

    @property
    def offers(self) -> Capabilities:
        """Return that it can do no more than every origin."""
        return Capabilities()

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
        sums = self._added(question, step)
        run = LogRun(RUN, {}, self.start_ns, relative=False, step_ns=1 if step % SECOND else SECOND)
        if question.step == AUTO:
            bounds = {RUN: range_in(question, RUN, self.start_ns, SECOND)}
            step = auto_step(*auto_span(of_runs(sums.reach), bounds, SECOND), SECOND, question.windows)
            sums.parts = widened(sums.parts, step)
        return answer_of(Merged(sums=sums, step_ns=step, runs=[run], labels={}, named=[RUN], selected=(), notes=[]), question)

    def _added(self, question: Question, step: int) -> Sums:
        adding = Aggregation(question, question.key({}), step, 0 if step % SECOND else SECOND, self.start_ns, RUN)
        for part in (self.rows, *self.lower):
            adding.add(part, SECOND)
        return adding.summed()


def cluster(
    cause: str, seed: int, *, replicas: int = 1, osds_a_host: int = OSDS_A_HOST, factor: float = 0.0, poll: int = 1
) -> Cluster:
    """Return a cluster with a cause, at a random OSD and time; `factor` is how much slower, 0 a random one of the cause's.

    Services and devices are polled every `poll` seconds.
    """
    random = np.random.default_rng([seed, CAUSES.index(cause)])
    hosts = 1 if cause == "within" else HOSTS
    osds = hosts * osds_a_host
    culprit, length = int(random.integers(osds)), int(random.integers(10, 41))
    from_s = int(random.integers(40, LENGTH - 40 - length))
    slow = np.zeros(LENGTH, np.bool_)
    slow[from_s : from_s + length] = True
    times = factor or random.uniform(*SLOW.get(cause, SLOW["disk"]))
    disk = np.exp(0.05 * _wander(random, osds))
    if cause in ("disk", "within", "no service data", "no device data"):
        disk[culprit, slow] *= times
    elif cause == "all":
        disk[:, slow] *= times
    network = 0.15e6 * np.exp(0.1 * _wander(random, 1)[0])
    network[slow] += 8e6 if cause == "network" else 0.0

    rate = random.poisson(RATE * np.exp(0.03 * random.standard_normal((CLIENTS, LENGTH))))
    client = np.repeat(np.arange(CLIENTS * LENGTH), rate.ravel())
    second, number = client % LENGTH, len(client)
    placed = (
        np.argsort(random.random((number, osds)), axis=1)[:, :replicas]
        if replicas > 1
        else random.integers(osds, size=(number, 1))
    )
    to_disk = random.random(number) >= CACHED if replicas == 1 else np.ones(number, np.bool_)
    at_disk = 0.8e6 * np.exp(0.4 * random.standard_normal(placed.shape)) * disk[placed, second[:, None]]
    work = 0.2e6 * np.exp(0.3 * random.standard_normal(number))
    if cause == "osd":
        work[(placed[:, 0] == culprit) & slow[second]] += (times - 1) * 1e6
    service = np.where(to_disk, at_disk.max(axis=1), 0.0) + work
    latency = service + network[second] * np.exp(0.3 * random.standard_normal(number))
    if cause == "client":
        latency[client // LENGTH == 0] += 4e6

    names = tuple((f"ceph{osd // osds_a_host}", f"osd.{osd}", f"sd{'bcdefgh'[osd % osds_a_host]}") for osd in range(osds))
    of_disk = to_disk[:, None].repeat(replicas, axis=1).ravel()
    seconds = second[:, None].repeat(replicas, axis=1).ravel()
    kept = ~slow if cause == "no service data" else np.ones(LENGTH, np.bool_)
    device = ~slow if cause == "no device data" else np.ones(LENGTH, np.bool_)
    top = [Series(RUN, host=f"client{at}", op="write", kind="completion") for at in range(CLIENTS)]
    ceph = [Series(RUN, host=host, volume=osd, op="write", kind=in_layer("service", "service")) for host, osd, _ in names]
    disks = [Series(RUN, host=host, volume=name, op="write", kind=in_layer("completion", "device")) for host, _, name in names]
    first, timed = placed[:, 0], of_disk & device[seconds]
    lower = (
        _rows(ceph, (first * LENGTH + second)[kept[second]], service[kept[second]], CEPH, poll),
        _rows(disks, (placed.ravel() * LENGTH + seconds)[timed], at_disk.ravel()[timed], BPF, poll),
    )
    rows = _rows(top, client, latency, CLIENT_LAYOUT)
    return Cluster(f"{cause}/{seed}", rows, lower, culprit, from_s, from_s + length, names)


def local_disks(cause: str, seed: int, *, poll: int = 1) -> Cluster:
    """Return hosts that use a disk of their own each: the `disk` of one is slow throughout, or its `client`, or nothing is."""
    random = np.random.default_rng([seed, CAUSES.index(cause), 99])
    culprit, times = int(random.integers(HOSTS)), random.uniform(*SLOW["disk"])
    disk, above = np.exp(0.05 * _wander(random, HOSTS)), 0.15e6 * np.exp(0.1 * _wander(random, HOSTS))
    if cause == "disk":
        disk[culprit] *= times
    elif cause == "client":
        above[culprit] += 4e6
    rate = random.poisson(RATE * np.exp(0.03 * random.standard_normal((HOSTS, LENGTH))))
    cell = np.repeat(np.arange(HOSTS * LENGTH), rate.ravel())
    host, second = cell // LENGTH, cell % LENGTH
    at_disk = 0.8e6 * np.exp(0.4 * random.standard_normal(len(cell))) * disk[host, second]
    latency = at_disk + above[host, second] * np.exp(0.3 * random.standard_normal(len(cell)))
    names = tuple((f"node{at}", "", "sdb") for at in range(HOSTS))
    top = [Series(RUN, host=name, op="write", kind="completion") for name, _, _ in names]
    disks = [Series(RUN, host=name, volume=own, op="write", kind=in_layer("completion", "device")) for name, _, own in names]
    rows = _rows(top, cell, latency, CLIENT_LAYOUT)
    return Cluster(f"{cause}/{seed}", rows, (_rows(disks, cell, at_disk, BPF, poll),), culprit, 0, LENGTH, names)


def _wander(random: np.random.Generator, count: int) -> Float:
    """Return levels (count, LENGTH) that follow AR(1) with coefficient 0.8, of deviation 1."""
    noise = 0.6 * random.standard_normal((count, LENGTH))
    for at in range(1, LENGTH):
        noise[:, at] += 0.8 * noise[:, at - 1]
    return noise


def _rows(table: list[Series], cell: Int, values_ns: Float, layout: Layout, width: int = 1) -> Intervals[Series]:
    """Return samples as rows of `width` seconds; sample i is of series `cell[i] // LENGTH` in second `cell[i] % LENGTH`."""
    cell = cell // width * width
    used, counts = np.unique(cell * layout.bins + layout.index(values_ns.astype(np.int64)), return_counts=True)
    rows, row_of = np.unique(used // layout.bins, return_inverse=True)
    start = (START + rows % LENGTH) * SECOND
    return Intervals(
        layout=layout,
        table=tuple(table),
        series=rows // LENGTH,
        start_ns=start,
        end_ns=start + width * SECOND,
        indptr=np.searchsorted(row_of, np.arange(len(rows) + 1)),
        bins=used % layout.bins,
        counts=counts.astype(np.int64),
    )
