"""Random data sets: logs of several formats as text, the rows that were written into them, and how they are loaded.

A data set is one run, or a few. What it may hold is behind the constants below; each says why where it is less than all there is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tests.any.model import LABELS, MS, SECOND, Asked, Labels, Lack, Layout, Points, Row, row_of, window_of
from tests.oracles import brute, hdr, logs

EPOCH = 1_700_000_000
MOST_IN_A_SERVER = 1 << 53  # of a run: sums of a server are doubles
MOST_ELSEWHERE = 1 << 62  # of a run, and of what is added up
MOST_COUNT = 1 << 44  # of a bin: about a thousand of them stay below what a server takes
RELOADED_AFTER_DELETE = True
LAYOUTS_CHANGE = True  # within a series (B1, F1)
KINDS_UNKNOWN = True  # also of runs that are replaced or coarsened (F2)
MOST_WEIGHED = 300  # weights in flight are 2^16 an I/O, and wrap from 2^47 I/Os on (B3)
MOST_IN_A_ROW = 1 << 50  # of a bin: a histogram of 2^53 samples or more is refused by its reader
MOST_IN_FIO = 1 << 37  # above 2^40 in one interval fio's reader takes for damage
HIST = {58: Layout(64, 1856, 1, 5), 232: Layout(64, 1856, 1, 3)}
HDR = {2: Layout(128, 7168, reports="highest", open=False), 3: Layout(1024, 54272, reports="highest", open=False)}
RAW = Layout(64, 2688, open=False)
JSON = Layout(64, 1856)
TAGS = {
    "read-st": ("read", "service", ""),
    "write-st": ("write", "service", ""),
    "read-rt": ("read", "response", ""),
    "odd": ("", "", "odd"),
    "": ("", "", ""),
}
OPS = ("read", "write", "trim")
STEPS = tuple(SECOND * tenths // 10 for tenths in (1, 10, 50, 100, 300, 600, 3000, 6000, 18000, 36000))


@dataclass(frozen=True)
class File:
    """A log: its name below the folder of the run, its text, what was written into it, and the start that it tells in ns."""

    name: str
    text: str
    written: tuple[Row | Points, ...]
    zero: int
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True)
class Load:
    """One step in the life of a run: load some files (`replace` what is there), `watch` them, delete the run, or coarsen it."""

    files: tuple[File, ...] = ()
    replace: bool = False
    watch: bool = False
    delete: bool = False
    coarsen: int = 0


@dataclass(frozen=True)
class Data:
    """A run: how it came into its stores, and what is there at the end.

    `natural` is the step that the rows suggest, `step` the one that it is loaded at. Of a `described` run a description tells the
    columns; a `weighed` one is asked for shares in flight, which files and stores alone are compared in.
    """

    run: str
    zero: int
    natural: int
    step: int
    loads: tuple[Load, ...]
    files: tuple[File, ...]
    start: int
    described: bool = False
    weighed: bool = False

    @property
    def samples(self) -> int:
        """Return how many samples were written into all files."""
        rows = [row for one in self.files for row in one.written]
        return sum(sum(row.counts.values()) if isinstance(row, Row) else len(row.events) for row in rows)

    @property
    def coarse(self) -> int:
        return next((one.coarsen for one in reversed(self.loads) if one.coarsen), 0)


def labels_of(run: str, host: str, **labels: str) -> Labels:
    told = {"run": run, "host": host, **labels}
    return tuple(told.get(name, "") for name in LABELS)


@dataclass
class Purse:
    """How large counts are: each at most `most`, those of a run together less than what it began with."""

    most: int
    left: int = MOST_IN_A_SERVER - (1 << 20)

    def counts(self, rng: random.Random, layout: Layout, most: int = MOST_IN_A_ROW) -> dict[int, int]:
        """Counts of latencies around 0.5 ms; the last bin of an open layout stays empty."""
        found: dict[int, int] = {}
        for _ in range(rng.randint(1, 5)):
            index = min(layout.index(int(rng.lognormvariate(13, 1.2))), layout.bins - 2)
            count = rng.randint(1, max(1, min(self.most, most, self.left // 8)))
            self.left -= count
            found[index] = count
        return found


def spans(rng: random.Random, width: int, rows: int, *, joined: bool) -> list[tuple[int, int]]:
    """From when to when rows are, in ms: about as wide as `width`, with stalls, and with gaps where they are not `joined`."""
    at, found, stalled = 0 if joined else rng.choice((0, rng.randint(0, 3 * width))), [], False
    for _ in range(rows):
        if not joined and rng.random() < 0.08:
            at += rng.randint(1, 6 * width)
        wide = (
            rng.randint(3, 5) if rows > 11 and not stalled and rng.random() < 0.08 else 1
        )  # most of the time is in rows of one width
        stalled |= wide > 1
        end = at + max(1, int(wide * width * rng.uniform(0.87, 1.05)))
        found.append((at, end))
        at = end
    return found


def hist(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """A histogram log of fio: the rows of an op begin where the one before it ended."""
    bins = rng.choice(list(HIST))
    layout, lines, written = HIST[bins], [], []
    for op in rng.sample(range(2), rng.randint(1, 2)):
        for start, end in spans(rng, width, rng.randint(4, 30), joined=True):
            counts = purse.counts(rng, layout, MOST_IN_FIO)
            lines.append((end, op, counts))
            labels = labels_of(run, host, process="a", job="1", op=OPS[op], kind="completion")
            written.append(Row(labels, layout, zero + start * MS, zero + end * MS, counts))
    text = logs.text(sorted(lines, key=lambda line: line[0]), bins)
    return File("a_clat_hist.1.log", text, tuple(with_gaps(written, bins)), zero, unwritten(written))


def with_gaps(written: Sequence[Row], bins: int) -> Iterator[Row]:
    """Yield the rows of a log, those that came late as what completed before they were due and what completed at their stamp."""
    chains: dict[Labels, list[Row]] = {}
    for row in written:
        chains.setdefault(row.labels, []).append(row)
    width = brute.width_of(
        {"".join(labels): [(row.start, row.end, row.counts) for row in rows] for labels, rows in chains.items()}
    )
    for rows in chains.values():
        for start, end, counts in brute.settled([(row.start, row.end, row.counts) for row in rows], width, bins, stated=False):
            yield replace(rows[0], start=start, end=end, counts=counts)


def unwritten(written: Sequence[Row]) -> tuple[Lack, ...]:
    """Return what a log of fio lacks: of each op what completed after its last row, for as long as a row is wide.

    That is the width that half of the time between rows is covered by, or the mean of them, whichever is smaller.
    """
    chains: dict[Labels, list[int]] = {}
    for row in written:
        chains.setdefault(row.labels, []).append(row.end)
    widths = sorted((after - before) // MS for ends in chains.values() for before, after in pairwise(ends))
    covered, half = 0, 0
    for width in widths:
        covered += width
        if 2 * covered >= sum(widths):
            half = width
            break
    wide = min(half, max(1, round(sum(widths) / len(widths)))) * MS
    return tuple(Lack(labels, max(ends), max(ends) + wide) for labels, ends in chains.items())


def hlog(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """An HdrHistogram log; the digits of its histograms may change from line to line."""
    known = rng.random() < 0.5 or not KINDS_UNKNOWN
    lines, written = [], []
    digits = rng.choice(((2,), (3,), (2, 3), (3, 2)))
    for tag in rng.sample(list(TAGS), rng.randint(1, 3)):
        op, kind, left = TAGS[tag]
        rows = spans(rng, width, rng.randint(4, 30), joined=False)
        change = rng.randint(1, len(rows) - 1) if LAYOUTS_CHANGE else len(rows)
        for number, (start, end) in enumerate(rows):
            fine = digits[-1] if number >= change and rng.random() < 0.9 else digits[0]
            counts = purse.counts(rng, HDR[fine]) if rng.random() > 0.05 else {}
            lines.append((start, hdr.line(f"{start / 1000:.3f}", f"{(end - start) / 1000:.3f}", counts, tag=tag, digits=fine)))
            labels = labels_of(run, host, process="x", op=op, kind=kind or ("lag" if known else ""), tag=left)
            written.append(Row(labels, HDR[fine], zero + start * MS, zero + end * MS, counts))
    head = f"#[StartTime: {EPOCH}.000 (seconds since epoch)]\n"
    text = "".join(line for _, line in sorted(lines, key=lambda line: line[0]))
    return File("x.hlog", ("#[Logged with jHiccup]\n" if known else "") + head + text, tuple(written), zero)


def moments(rng: random.Random, width: int) -> list[tuple[int, int, str]]:
    """Operations (completion in ms after the start, latency in us, op), with a pause."""
    pause, found, at = rng.randint(0, 20 * width), [], rng.randint(50, 2 * width)
    for _ in range(rng.randint(5, 80)):
        at += rng.randint(0, max(1, width // 3))
        at += 3 * width if at > pause and rng.random() < 0.05 else 0
        found.append((at, int(rng.lognormvariate(6, 1.5)), rng.choice(("read", "update", "read"))))
    return found


def points(written: dict[Labels, list[tuple[int, int]]], layout: Layout) -> tuple[Points, ...]:
    every = [event for some in written.values() for event in some]
    low, high = min(end - latency for end, latency in every), max(end for end, _ in every)
    return tuple(Points(labels, layout, some, low, high) for labels, some in written.items())


def operations(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """A log of operations, some of them late, some without an op; the reader makes rows of a second of it."""
    lines, found = ["start_us,end_us,op\n"], {}
    first = 0
    for ms, latency, op in moments(rng, width):
        end = zero + ms * MS
        start = end - latency * 1000
        first = first or start
        op = rng.choice((op, op, ""))
        lines.append(f"{start // 1000},{end // 1000},{op}\n")
        labels = labels_of(run, host, process="o", op=op, kind="service")
        found.setdefault((labels, window_of(end, SECOND)), []).append(latency * 1000)
    rows = [row_of(labels, HDR[3], at, at + SECOND, some) for (labels, at), some in found.items()]
    return File("o.csv", "".join(lines), tuple(rows), first)


def ycsb(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """Raw measurements of YCSB."""
    lines, found = ["READ latency raw data: op, timestamp(ms), latency(us)\n"], {}
    taken = moments(rng, width)
    for ms, latency, op in taken:
        end = zero + ms * MS
        op = f"intended-{op}" if rng.random() < 0.2 else op
        lines.append(f"{op.upper()},{end // MS},{latency}\n")
        kind = "response" if op.startswith("intended-") else "service"
        labels = labels_of(run, host, process="y", op=op.removeprefix("intended-"), kind=kind)
        found.setdefault(labels, []).append((end, latency * 1000))
    return File("y.raw", "".join(lines), points(found, RAW), zero + taken[0][0] * MS)


def raw(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """A raw latency log of fio."""
    lines, found = [], {}
    for ms, latency, _ in moments(rng, width):
        op = rng.randint(0, 2)
        lines.append(f"{ms}, {latency * 1000 + 7}, {op}, 4096, {4096 * len(lines)}\n")
        labels = labels_of(run, host, process="r", job="1", op=OPS[op], kind="total")
        found.setdefault(labels, []).append((zero + ms * MS, latency * 1000 + 7))
    return File("r_lat.1.log", "".join(lines), points(found, RAW), zero)


def described(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """A table of single operations that a description tells of: the host is one of its columns, and may be missing."""
    lines, found = ["done_ms,took_us,type,node\n"], {}
    for ms, latency, op in moments(rng, width):
        end, node = zero + ms * MS, rng.choice(("h1", "h2", ""))
        lines.append(f"{end // MS},{latency},{op},{node}\n")
        found.setdefault(labels_of(run, node, process="e.tab", op=op, kind="service"), []).append((end, latency * 1000))
    first = min(end for some in found.values() for end, _ in some)
    return File("e.tab", "".join(lines), points(found, RAW), first)


DESCRIPTION = "{time: done_ms, latency: took_us, labels: {op: type, host: node}}\n"


def dump(rng: random.Random, run: str, host: str, zero: int, width: int, purse: Purse) -> File:
    """fio's JSON of a finished run: one row a job and op over the whole run, with exact values."""
    jobs, written = [], []
    for number in range(rng.randint(1, 3)):
        runtime = width - rng.randint(0, width // 20)
        entry = {"jobname": f"j{number}", "groupid": 0, "job_runtime": runtime, "job options": {}}
        for op in rng.sample(OPS[:2], rng.randint(1, 2)):
            values = sorted(int(rng.lognormvariate(13, 1.2)) for _ in range(rng.randint(2, 40)))
            labels = labels_of(run, host, process="out", job=str(number + 1), op=op, kind="completion")
            row = row_of(labels, JSON, zero, zero + runtime * MS, values)
            bins = {str(JSON.value(index)): count for index, count in sorted(row.counts.items())}
            told = {
                "min": values[0],
                "max": values[-1],
                "mean": round(sum(values) / len(values), 6),
                "N": len(values),
                "bins": bins,
            }
            entry[op] = {"runtime": runtime, "total_ios": len(values), "clat_ns": told}
            written.append(replace(row, whole=True))
        jobs.append(entry)
    document = {"fio version": "fio-3.33", "timestamp_ms": zero // MS + width, "jobs": jobs}
    return File("out.json", json.dumps(document, indent=1) + "\n", tuple(written), zero)


Maker = Callable[[random.Random, str, str, int, int, Purse], File]
OVER_TIME: Sequence[Maker] = (hist, hlog, operations, ycsb, raw)


def made(seed: int) -> tuple[Data, ...]:
    """Return the runs of a seed."""
    first = made_run(random.Random(seed), f"d{seed}")
    rng = random.Random(f"{seed} others")
    others = 0 if first.weighed else rng.choice((0, 0, 0, 0, 0, 0, 0, 1, 1, 2))
    return first, *(made_run(rng, f"d{seed}-{number}", small=True) for number in range(others))


def made_run(rng: random.Random, run: str, *, small: bool = False) -> Data:
    """Return a run; a `small` one, which comes beside others, is not watched, nor asked for shares in flight."""
    zero = (EPOCH * 1000 + rng.choice((0, 0, rng.randint(0, 99_999)))) * MS
    most, weighed = rng.choice((9, 9, 300, MOST_COUNT, MOST_IN_A_SERVER, MOST_ELSEWHERE)), not small and rng.random() < 0.1
    most = min(most, MOST_WEIGHED) if weighed else most
    hosts = rng.choice(((), ("h1", "h2"), () if small else ("h1", "h2", "h3")))
    way = rng.random()
    if way < 0.15:
        makers, width = (dump,), rng.choice((*range(8, 34), *range(36, 60))) * 1000  # jobs are up to 5 % shorter
        natural = next(step for step in (10, 30, 60) if step * 1000 >= 0.9 * width) * SECOND
    elif way < 0.22:
        makers, width, natural, hosts = (described,), 1000, SECOND, ()
    else:
        width = rng.choice((1000, 1000, 1000, 100, 5000))
        kinds = rng.choice(((hlog,), (hist,), (hlog, hist), OVER_TIME))
        makers = tuple(rng.sample(kinds, 1 if small else min(len(kinds), rng.randint(1, 3))))
        if width != 1000:  # the rows of operation logs are a second wide; single events suggest a second
            makers = tuple(one for one in makers if one not in (operations, ycsb, raw)) or (hist,)
        natural = width * MS
    purse = Purse(most, (MOST_ELSEWHERE if most == MOST_ELSEWHERE else MOST_IN_A_SERVER) - (1 << 20))
    files = tuple(
        File(f"{host}/{one.name}" if host else one.name, one.text, one.written, one.zero, one.lacks)
        for host in hosts or ("",)
        for one in (maker(rng, run, host, zero, width, purse) for maker in makers)
    )
    step = natural if rng.random() < 0.8 else natural * rng.choice((2, 5)) if natural == SECOND else natural
    step = {2 * SECOND: 5 * SECOND}.get(step, step)
    weighed &= makers != (dump,)
    loads, start = life(rng, files, step, watched=not weighed and not small)
    return Data(run, zero, natural, step, loads, files, start, makers == (described,), weighed)


def life(rng: random.Random, files: tuple[File, ...], step: int, *, watched: bool) -> tuple[tuple[Load, ...], int]:
    """Return the steps in which files come into a store, and the earliest start that these tell."""
    some = part(rng, files)
    all_first = min(file.zero for file in files)
    turns: list[tuple[tuple[Load, ...], int]] = [
        ((Load(files),), all_first),
        ((Load(some), Load(files)), all_first),
        ((Load(some), Load(delete=True), Load(files)), all_first),
        ((Load(files), Load(delete=True), Load(some), Load(files)), all_first),
        ((Load(files), Load(files, replace=True)), all_first),
        ((Load(some), Load(files, replace=True)), all_first),
        ((Load(files, watch=True),), all_first),
        ((Load(some), Load(delete=True), Load(files, watch=True)), all_first),
        ((Load(some), Load(files, watch=True)), all_first),
    ]
    if not RELOADED_AFTER_DELETE:
        turns = [turn for turn in turns if not any(one.delete for one in turn[0])]
    if not watched:
        turns = [turn for turn in turns if not any(one.watch for one in turn[0])]
    loads, start = rng.choice(turns)
    if rng.random() < 0.25:
        loads = (*loads, Load(coarsen=rng.choice([wider for wider in STEPS if wider % step == 0 and wider > step][:3])))
    return loads, start


def part(rng: random.Random, files: tuple[File, ...]) -> tuple[File, ...]:
    """Return the files of some hosts (two at least: folders of one name alone are no hosts) in some formats."""
    hosts, names = (sorted({Path(one.name).parts[place] for one in files}) for place in (0, -1))
    if Path(files[0].name).parent != Path():
        hosts = rng.sample(hosts, rng.randint(2, len(hosts)))
        names = rng.sample(names, rng.randint(1, len(names)))
    else:
        hosts = names = rng.sample(names, rng.randint(1, len(names)))
    return tuple(one for one in files if Path(one.name).parts[0] in hosts and Path(one.name).name in names)


def asked(rng: random.Random, runs: Sequence[Data]) -> Asked:
    """Return a random question: ranges on and off the stored grid, absent labels, any step, any selection."""
    stored, zero = max(one.coarse or one.step for one in runs), min(one.zero for one in runs)
    written = [row for data in runs for one in data.files for row in one.written]
    length = max(max(row.end if isinstance(row, Row) else row.high for row in written) - zero, stored)

    def instant() -> tuple[int, bool]:
        at = rng.choice((rng.randrange(-stored, length + stored), rng.randrange(0, length), rng.randrange(0, length)))
        if rng.random() < 0.3:
            return max(at // MS * MS, 0), True
        at += zero
        if rng.random() < 0.4:
            at = at // stored * stored
        return (at // SECOND * SECOND if rng.random() < 0.2 else at // MS * MS), False

    step: int | str = rng.choice(["all", "all", "auto", *(stored * many for many in (1, 1, 2, 3, 10, 60))])
    if rng.random() < 0.03:
        step = stored * 3 // 2
    where = rng.choice(({}, {}, {}, {"host": "h1"}, {"host": "h[12]"}, {"op": "read"}, {"op": ""}, {"kind": "*"}, {"kind": ""},
                        {"kind": "service"}, {"process": "x"}, {"tag": "odd"}, {"op": "nope"}, {"job": "1"},
                        *([{"run": "*-0"}, {"run": "*-?"}] if len(runs) > 1 else [])))  # fmt: skip
    return Asked(
        by=tuple(rng.sample(LABELS, rng.randint(0, 3))),
        where=where,
        step=step,
        begin=instant() if rng.random() < 0.4 else None,
        end=instant() if rng.random() < 0.4 else None,
        merge=len(runs) > 1 and rng.random() < 0.5,
    )


def write(folder: Path, files: Sequence[File]) -> Path:
    """Write logs into a folder of their own, and return it."""
    for one in files:
        path = folder / one.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(one.text)
    return folder
