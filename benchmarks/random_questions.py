"""What `same_answers.py` asks: inputs (files of the project's own tests, some made from a seed), and questions drawn at random.

Inputs are written once into one folder that both checkouts read; their times of modification are fixed. A scene is a list of
command lines, and of changes of files between them, in a folder of its own. To ask something new, add a method to `Drawing`
and a line to `SCENES` (or to `COMMANDS`, for a command that takes a SOURCE).
"""

from __future__ import annotations

import base64
import csv
import lzma
import math
import os
import re
import shutil
import struct
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

FIXED = 1_790_000_000  # when all files were changed last, epoch seconds
RECORDED = (
    *("fio", "cbt", "estimates", "hdr", "histograms", "precision", "raw"),
    *("snabb", "store", "tables", "traces", "verdicts", "gc"),
)
NO_LOGS = (
    *(".md", ".sh", ".c", ".go", ".java", ".sql", "CMD"),
    *(".bins.gz", ".corrected.gz", ".values.gz", ".percentiles.gz", ".hgrm.gz"),
)
NOT_LATENCIES = re.compile(
    r"_(bw|iops|slat)(\.\d+)?\.log|\.prc|benchmark_config|cbt_config|truth\.json|locust|wrk41|aggregate|redis70_bench|prom_|/collectl/"
)
HALF = 1024  # bins of a half of an HdrHistogram of 3 digits
V2, V2_PACKED = 0x1C849313, 0x1C849314
ABOVE = "../../../inputs/"  # where inputs are, from the folder of a scene
WORDS = {
    "biosnoop.yml": """
time: TIME(s)
latency: LAT(ms)
labels: {op: T, volume: DISK, process: COMM}
delimiter: whitespace
blanks: COMM
""",
    "ext4slower.yml": """
time: 1
latency: 8
unit: {time: s, latency: ms}
labels: {op: 5, process: 3}
delimiter: whitespace
header: false
""",
    "events.yml": """
time: done_ms
latency: took
unit: {time: ms, latency: us}
labels: {op: type, host: node}
weight: count
""",
    "wrong.yml": "time: done_ms\nlatency: nowhere\nunits: ms\n",
    "empty.yml": "",
    "sla0.yml": """
objectives:
  - {name: all fast, percentile: 99, threshold: 2s, window: 10s}
""",
    "sla1.yml": """
objectives:
  - {name: p90, percentile: 90, threshold: 100us, window: 5s, for: 10s, hold: 10s, no_data: violate, by: [host]}
  - {name: most, percentile: 100, threshold: 1s, window: 1s, by: [op], budget: 5%}
""",
    "sla2.yml": """
objectives:
  - {name: during, percentile: 99, threshold: 1ms, window: 1s, during: 'work*'}
  - {name: outside, percentile: 99, threshold: 1ms, window: 1s, outside: 'work*', no_data: ok}
""",
    "sla3.yml": """
objectives:
  - {name: reads, percentile: 99.9, threshold: 200ms, window: 10s, where: {op: read, kind: completion}, by: [host]}
""",
    "sla4.yml": """
objectives:
  - {name: twice, percentile: 50, threshold: 1ms, window: 1m}
  - {name: twice, percentile: 5O, treshold: 1ms}
""",
    "marks0.txt": "time,end,text\n+5s,+9s,work on a disk\n+12s,,osd.3 down\n",
    "marks1.txt": "+3s,cache on\n+7s,work ends\n",
    "marks2.txt": "time,text\n2026-11-20T21:00:34Z,restart\nnonsense,no time\n1700000010,work\n",
    "marks3.txt": "",
    "steps0.txt": "2 1 half\n10 5\n100 20 most\n1000 50\n",
}


@dataclass(frozen=True, slots=True)
class Source:
    """What is asked about: paths below the folder of inputs, and what has to be said so that they can be read, tried in turn."""

    paths: tuple[str, ...]
    hints: tuple[tuple[str, ...], ...] = ((),)


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that can be asked about, by what it is good for."""

    folder: Path
    any: Sequence[Sequence[Source]]  # by where they come from, so that each kind of log has its turn
    single: Sequence[Sequence[Source]]  # one file each, small enough for standard input
    folders: Sequence[Sequence[Source]]  # several files each, to be loaded in parts
    timelines: Sequence[str]
    series: Sequence[tuple[str, ...]]  # runs of a kind, for trend, compare and capacity
    stores: Sequence[str]  # SQLite files of older versions


def made(folder: Path, checkout: Path, seed: int) -> Inputs:
    """Write all inputs below `folder`, recorded ones from the tests of `checkout`, and return what they are."""
    data = folder / "data"
    for name in RECORDED:
        shutil.copytree(checkout / "tests" / "data" / name, data / name)
    shutil.copytree(checkout / "examples" / "cbt-archive", folder / "cbt-archive")
    for name in ("A", "B", "C", "workloads"):
        with tarfile.open(data / "cbt" / f"{name}.tar.xz") as packed:
            packed.extractall(data / "cbt" / name, filter="data")
        (data / "cbt" / f"{name}.tar.xz").unlink()
    words = folder / "words"
    words.mkdir()
    for name, text in WORDS.items():
        (words / name).write_text(text.lstrip(), encoding="utf-8")
    random = np.random.default_rng(seed)
    series = _written(folder / "made", random)
    for path in sorted(folder.rglob("*")):
        os.utime(path, (FIXED, FIXED))
    return _found(folder, series)


def _found(folder: Path, series: Sequence[tuple[str, ...]]) -> Inputs:
    """Return the inputs of a folder: each log by itself, and each folder that holds some."""
    singles, folders = [], []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(("words", "data/gc", "data/store")) or name.endswith(NO_LOGS):
            continue
        if path.is_dir():
            logs = [one for one in path.iterdir() if one.is_file() and not one.name.endswith(NO_LOGS)]
            if len(logs) > 1 or (path.parent == folder / "data" / "cbt"):
                folders.append(Source((name,), hints_of(name)))
        elif path.stat().st_size and (not NOT_LATENCIES.search(name) or len(name) % 19 == 0):  # a few of those that hold none
            singles.append(Source((name,), hints_of(name)))
    archive = Source(("cbt-archive",))
    timelines = ("data/snabb/real.timeline.xz", "data/snabb/cut/real.timeline.xz")
    stores = tuple(
        sorted(
            path.relative_to(folder).as_posix()
            for path in (folder / "data" / "store").iterdir()
            if path.name.endswith((".sql", ".db.gz"))
        )
    )
    small = [source for source in singles if (folder / source.paths[0]).stat().st_size < 200_000]
    every, alone, whole = (_by_origin(sources) for sources in ((*singles, *folders, archive), small, (*folders, archive)))
    return Inputs(folder, every, alone, whole, timelines, series, stores)


def _by_origin(sources: Sequence[Source]) -> list[list[Source]]:
    """Return sources that come from one folder together, that folder the more often the more they are."""
    origins: dict[str, list[Source]] = {}
    for source in sources:
        origins.setdefault("/".join(source.paths[0].split("/")[:2]), []).append(source)
    return [those for those in origins.values() for _ in range(math.isqrt(len(those)) + 1)]


def hints_of(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the options that may be needed to read a file, the plainest first."""
    if "/tables/" in name:
        return (("--input-format", f"words/{Path(name).stem}.yml"),)
    if "redis70_latency" in name:
        return (("--input-format", "redis-latency"),)
    if "sysbench" in name:
        return (("--input-format", "sysbench"),)
    if name.endswith("described.csv"):
        return (("--input-format", "words/events.yml"),)
    if "hdr" in name or name.endswith("hlog.xz"):
        return ((), ("--recorded-unit", "ns"))
    return ((), ("--t0", str(FIXED)), ("--recorded-unit", "us"), ("--fio-version", "3.33"))


def _written(folder: Path, random: np.random.Generator) -> list[tuple[str, ...]]:
    """Write the made logs and return the series of runs among them."""
    for number in range(4):
        hosts, jobs, rows = int(random.integers(1, 5)), int(random.integers(1, 4)), int(random.integers(20, 120))
        coarse = int(random.integers(0, 4)) if number else 0
        for host in range(hosts):
            for job in range(jobs):
                name = f"job_clat_hist.{job + 1}.log" + (f".node{host}" if number % 2 == 0 else "")
                place = folder / f"fio{number}" / ("" if number % 2 == 0 else f"node{host}")
                fio_log(place / name, random, rows, 800 + 40 * number, coarse, epoch=number == 3)
    for number, seconds in enumerate((40, 400, 2_000)):
        hdr_log(folder / "hdr" / f"made{number}.hlog", random, seconds, ("", "read", "write")[: number + 1])
    hdr_log(folder / "large.hlog", random, 15_000, ("",))
    for number in range(3):
        operations(folder / "operations" / f"log{number}.csv", random, 800 * (number + 1), epoch=number != 1)
    described(folder / "described.csv", random)
    series = []
    for name, runs in (("nights", 9), ("rates", 6)):
        members = []
        for run in range(runs):
            members.append(f"made/{name}/{name[0]}{run:02d}")
            place = folder / name / f"{name[0]}{run:02d}"
            for side in "ab":
                centre = 820 + (40 if run >= 6 else 0) + (run * 15 if name == "rates" else 0)
                start = 1_780_000_000 + 86_400 * run
                fio_log(place / f"job_clat_hist.1.log.{side}", random, 45, centre, 0, start=start, most=20 * (run + 1))
        series.append(tuple(members))
    return series


def fio_log(
    path: Path,
    random: np.random.Generator,
    rows: int,
    centre: int,
    coarse: int,
    *,
    epoch: bool = False,
    start: int = 0,
    most: int = 50,
) -> None:
    """Write a histogram log of fio: a row a second of reads, and one of writes in most seconds; here and there a stall."""
    path.parent.mkdir(parents=True, exist_ok=True)
    zero = 1000 * (start or (1_780_000_000 if epoch else 0))
    lines = []
    for second in range(1, rows + 1):
        stalled = random.random() < 0.04
        for direction in (0, 1) if random.random() < 0.8 else (0,):
            cells = np.zeros(1856, np.int64)
            middle = centre + 200 if stalled else centre + 20 * direction
            filled = np.clip(random.normal(middle, 30, 3 if stalled else 20).astype(int), 0, 1855)
            cells[filled] = random.integers(1, most, len(filled))
            cells = cells.reshape(-1, 1 << coarse).sum(axis=1)
            stamp = zero + 1000 * second + int(random.integers(0, 20))
            lines.append(f"{stamp}, {direction}, 4096, {', '.join(map(str, cells.tolist()))}\n")
    path.write_text("".join(lines), encoding="ascii")


def hdr_log(path: Path, random: np.random.Generator, rows: int, tags: Sequence[str]) -> None:
    """Write an HdrHistogram log of a second a line and tag, 3 digits, in ns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    start = 1_780_000_000
    lines = [f"#[Histogram log format version 1.3]\n#[StartTime: {start}.000 (seconds since epoch), made]\n"]
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n')
    for second in range(rows):
        for tag in tags:
            centre = 11 * HALF + (1500 if random.random() < 0.02 else 0)
            bins = np.unique(np.abs(random.normal(centre, 300, int(random.integers(3, 60)))).astype(int))
            counts = random.integers(1, 30, len(bins))
            text = base64.b64encode(_packed(bins.tolist(), counts.tolist())).decode()
            head = f"Tag={tag}," if tag else ""
            lines.append(f"{head}{second}.000,1.000,{_value_of(int(bins[-1])) / 1e6:.3f},{text}\n")
    path.write_text("".join(lines), encoding="ascii")


def _value_of(index: int) -> int:
    """Return the highest value that falls into a bin of 3 digits."""
    octave = max(index // HALF - 1, 0)
    return ((index - HALF * octave + 1) << octave) - 1


def _packed(bins: Sequence[int], counts: Sequence[int]) -> bytes:
    """Return a histogram in HdrHistogram's compressed form, version 2."""
    body, before = bytearray(), -1
    for index, count in zip(bins, counts, strict=True):
        if (gap := index - before - 1) > 0:
            _number(body, 2 * gap - 1)
        _number(body, 2 * count)
        before = index
    plain = struct.pack(">iiiiqqd", V2, len(body), 0, 3, 1, 3_600_000_000_000, 1.0) + bytes(body)
    packed = zlib.compress(plain, 1)
    return struct.pack(">ii", V2_PACKED, len(packed)) + packed


def _number(body: bytearray, value: int) -> None:
    while value >= 128:
        body.append(value & 127 | 128)
        value >>= 7
    body.append(value)


def operations(path: Path, random: np.random.Generator, rows: int, *, epoch: bool) -> None:
    """Write a log of operations with a column of when each was due."""
    path.parent.mkdir(parents=True, exist_ok=True)
    zero = 1_780_000_000_000_000 if epoch else 0
    due = zero + np.cumsum(random.integers(5_000, 60_000, rows))
    start = due + (random.random(rows) < 0.1) * random.integers(0, 400_000, rows)
    end = start + random.lognormal(7, 1, rows).astype(np.int64)
    ops = random.choice(["read", "write", "scan"], rows)
    lines = [f"{a},{b},{op},{c}\n" for a, b, op, c in zip(start.tolist(), end.tolist(), ops.tolist(), due.tolist(), strict=True)]
    path.write_text("start_us,end_us,op,due_us\n" + "".join(lines), encoding="ascii")


def described(path: Path, random: np.random.Generator) -> None:
    """Write a table that only a description can read."""
    lines = ["done_ms,took,type,node,count\n"]
    stamp = 1_780_000_000_000
    for _ in range(600):
        stamp += int(random.integers(1, 100))
        took, (op, node, count) = int(random.lognormal(6, 1)), random.integers(1, 4, 3).tolist()
        lines.append(f"{stamp},{took},{'rwx'[op - 1]},n{node},{count}\n")
    path.write_text("".join(lines), encoding="ascii")


def broken(content: bytes, random: np.random.Generator) -> bytes:
    """Return a file with one thing wrong with it: cut, a byte changed, a line lost, doubled or moved, or rubbish in it."""
    content = lzma.decompress(content) if content[:6] == b"\xfd7zXZ\x00" else content
    lines = content.splitlines(keepends=True)
    place = int(random.integers(0, max(len(content), 1)))
    line = int(random.integers(0, max(len(lines), 1)))
    match int(random.integers(0, 7)):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + bytes([int(random.integers(0, 256))]) + content[place + 1 :]
        case 2:
            return b"".join(lines[:line] + lines[line + 1 :])
        case 3:
            return b"".join(lines[:line] + lines[max(line - 1, 0) :])
        case 4:
            return b"".join(lines[line:] + lines[:line])
        case 5:
            return content[:place] + b", -1, x\n" + content[place:]
        case _:
            return content.replace(b"\n", b"\r\n")


# ---- questions


@dataclass(frozen=True, slots=True)
class Facts:
    """What the earlier checkout says of a source: so most questions are about what is there."""

    options: tuple[str, ...]
    labels: dict[str, list[str]]
    start: float | None  # epoch seconds, None where it is unknown
    seconds: float
    step: float
    low_ns: int
    high_ns: int
    moments: bool  # single events, for maps of offsets
    means: bool  # latencies that were recorded as means alone
    answered: bool


T = TypeVar("T")
Asked = Callable[[Sequence[str]], tuple[int, str]]
UNKNOWN = Facts((), {}, None, 60, 1, 1000, 10**8, moments=False, means=False, answered=False)
STORED = (0.1, 1, 5, 10, 30, 60)  # the narrowest windows that a store can have, s
LABELS = ("host", "op", "job", "kind", "volume", "tag", "process", "layer", "run")
ESTIMATES = ("cbt", "mean-of-means", "mean-of-percentiles", "histogram", "cbt,histogram")
LEVELS = ("50", "75", "90", "95", "99", "99.9", "99.99", "0", "100", "12.5", "66.6", "99.999")


@dataclass
class Guide:
    """Asks the earlier checkout what a source holds, once a source."""

    ask: Asked
    known: dict[Source, Facts] = field(default_factory=dict)

    def facts(self, source: Source) -> Facts:
        """Return what is known of a source."""
        if source not in self.known:
            self.known[source] = self._asked(source)
        return self.known[source]

    def _asked(self, source: Source) -> Facts:
        paths = [f"{ABOVE}{path}" for path in source.paths]
        by = ["--by", ",".join(LABELS), "-p", "50", "--format", "csv"]
        for hint in source.hints:
            words = tuple(f"{ABOVE}{word}" if word.startswith("words/") else word for word in hint)
            status, text = self.ask(["percentiles", *paths, *words, "--step", "all", *by])
            rows = list(csv.DictReader(text.splitlines()))
            if status or not rows:
                continue
            _, finer = self.ask(["percentiles", *paths, *words, *by])
            missing, _ = self.ask(["offsets", *paths, *words, "--format", "csv"])
            return _facts(words, rows, list(csv.DictReader(finer.splitlines())), moments=not missing)
        return UNKNOWN


def _facts(words: tuple[str, ...], rows: list[dict[str, str]], finer: list[dict[str, str]], *, moments: bool) -> Facts:
    labels = {name: sorted({row[name] for row in rows if row.get(name)}) for name in LABELS}
    begins, ends = zip(*(map(_seconds, (row["start"], row["end"])) for row in rows), strict=True)
    steps = [_seconds(row["end"]) - _seconds(row["start"]) for row in finer]
    latencies = [int(row[name]) for row in rows for name in ("min", "max") if row.get(name, "").isdigit()] or [1000, 10**8]
    start = min(begins)
    return Facts(
        words, {name: values for name, values in labels.items() if values}, start if start > 10**8 else None,
        max(max(ends) - start, 1), min(steps, default=1) or 1, max(min(latencies), 1), max(*latencies, 10),
        moments=moments, means=any("mean" in kind for kind in labels["kind"]), answered=True,
    )  # fmt: skip


def _seconds(text: str) -> float:
    if "T" in text:
        return datetime.fromisoformat(text).timestamp()
    return float(text.rstrip("s") or 0)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens in a scene: a question (`words`), or a change of files before the next one.

    `does` is ask, copy (of an input into the scene's folder), write (`content`), folder, restore (a store of an older version),
    tree (a copy of the checkout that may be built in) or built (what was built, as files of the scene).
    """

    does: str
    words: tuple[str, ...] = ()
    stdin: tuple[str, ...] = ()
    piped: bool = False
    cold: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    source: str = ""
    target: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Scene:
    """Questions that are asked one after another in a folder of their own: a store that one fills is asked by the next."""

    number: int
    steps: tuple[Step, ...]

    @property
    def asked(self) -> list[Step]:
        """Return the questions."""
        return [step for step in self.steps if step.does == "ask"]


class Drawing:
    """Draws one scene."""

    def __init__(self, inputs: Inputs, guide: Guide, seed: int, number: int) -> None:
        self.inputs, self.guide, self.number = inputs, guide, number
        self.random = np.random.default_rng([seed, number])
        self.steps: list[Step] = []
        self.pages = 0

    def chance(self, share: float) -> bool:
        """Return True for this share of the calls."""
        return bool(self.random.random() < share)

    def one(self, things: Sequence[T]) -> T:
        """Return one of several things."""
        return things[int(self.random.integers(len(things)))]

    def some(self, things: Sequence[T], most: int = 3) -> list[T]:
        """Return one to `most` different things, in any order."""
        count = min(int(self.random.integers(1, most + 1)), len(things))
        return [things[int(place)] for place in self.random.permutation(len(things))[:count]]

    def number_in(self, low: float, high: float) -> float:
        """Return a number, evenly drawn."""
        return float(self.random.uniform(low, high))

    def options(self, *offers: tuple[float, Callable[[], Sequence[str]]]) -> list[str]:
        """Return the words of those options that come, each with its chance."""
        return [word for share, words in offers if self.chance(share) for word in words()]

    def ask(self, *words: str, **more: Any) -> None:
        """Add a question, with what surrounds it in a user's shell."""
        surroundings = []
        if self.chance(0.15):
            surroundings.append(("COLUMNS", self.one(("60", "80", "132", "200"))))
        if self.chance(0.1):
            surroundings.append(("TZ", self.one(("Europe/Berlin", "America/St_Johns", "Asia/Kolkata"))))
        if self.chance(0.03):
            surroundings.append(("FORCE_COLOR", "1"))
        environment = (*surroundings, *more.pop("environment", ()))
        if more.get("stdin"):  # it has no time of modification: that is now
            words = tuple(str(FIXED) if word == "mtime" else word for word in words)
        self.steps.append(Step("ask", words, environment=environment, cold=more.pop("cold", self.chance(0.015)), **more))

    def page(self, ending: str) -> str:
        """Return a new name for a file that a command is to write."""
        self.pages += 1
        return f"page{self.pages}.{ending}"

    # what words are drawn from

    def latency(self, facts: Facts) -> str:
        """Return a latency between the lowest and the highest, as a user writes it."""
        value = math.exp(self.number_in(math.log(facts.low_ns), math.log(facts.high_ns + 1)))
        for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
            if value >= size:
                return f"{value / size:.3g}{unit}" if value / size < 1000 else f"{int(value / size)}{unit}"
        return f"{max(int(value), 1)}ns"

    def time(self, facts: Facts, share: float) -> str:
        """Return a time at about this share of the run."""
        at = share * facts.seconds
        if facts.start is None or self.chance(0.5):
            return f"+{at:.3g}s" if at < 1000 else f"+{int(at)}s"
        moment = facts.start + at
        if self.chance(0.02):
            return self.one(("now-15m", "+1h", "yesterday", "2026-13-01", str(int(moment * 1000)), f"{moment:.0f}"))
        return self.one(
            (datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds"), f"{moment:.0f}", str(int(moment * 1000)))
        )

    def clock(self, facts: Facts) -> str:
        """Return a way to show times; runs of an unknown start have elapsed ones alone."""
        return "elapsed" if facts.start is None and self.chance(0.95) else self.one(("utc", "local", "elapsed"))

    def range(self, facts: Facts, share: float = 0.25) -> list[str]:
        """Return --from and --to, or one, or none."""
        early, late = self.number_in(0, 0.6), self.number_in(0.3, 1.1)
        return self.options(
            (share, lambda: ("--from", self.time(facts, early))),
            (share, lambda: ("--to", self.time(facts, max(late, early + 0.1)))),
        )

    def by(self, facts: Facts) -> str:
        """Return labels to group by, mostly such as are there."""
        if self.chance(0.02):
            return self.one(("hots", "op,op", "", "iodepth", "all"))
        there = [name for name in LABELS if name in facts.labels] or ["op"]
        return ",".join(self.some(there if self.chance(0.93) else LABELS))

    def where(self, facts: Facts) -> str:
        """Return a condition, mostly one that something meets."""
        if not facts.labels or self.chance(0.015):
            return self.one(("op=reed", "host", "nothing=x", "op=write", "kind=lag"))
        name = self.one(sorted(facts.labels))
        value = self.one(facts.labels[name])
        if self.chance(0.3):
            value = self.one((f"{value[:2]}*", "*", f"*{value[-1:]}", f"?{value[1:]}"))
        return f"{name}={value}"

    def selection(self, facts: Facts, *, stored: bool, by: float = 0.5) -> list[str]:
        """Return what all questions can be asked with."""
        return self.options(
            (by, lambda: ("--by", self.by(facts))),
            (0.25, lambda: ("--where", self.where(facts))),
            (0.05, lambda: ("--where", self.where(facts))),
            (
                0.3 if stored else 0.02,
                lambda: ("--run", self.one(("r*", "*", "r*", "r*", "*/*") if stored else ("*", "*", "r*"))),
            ),
            (0.08, lambda: ("--merge-runs",)),
        )

    def step(self, facts: Facts, *, stored: bool = False) -> str:
        """Return a width of windows, mostly a multiple of the widths that are there; `stored`: of those that a store can have."""
        if self.chance(0.02):
            return self.one(("100ms", "1s", "7s", "90s", "0s", "1", "10m", "every"))
        if self.chance(0.35):
            return self.one(("all", "auto"))
        base = next((width for width in STORED if width >= facts.step), 60) if stored else facts.step
        width = base * self.one((1, 2, 3, 5, 10, 20))
        return f"{width:.0f}s" if width >= 1 and width == int(width) else f"{int(width * 1000)}ms"

    def reading(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return options of reading logs; a store has none of them."""
        if stored:
            return []
        hosts = facts.labels.get("host") or ["h1"]
        words = self.options(
            (0.03, lambda: ("--attribution", "in-flight")),
            (0.03, lambda: ("--prefer", "raw")),
            (0.03, lambda: ("--digits", self.one(("1", "2", "3", "4")))),
            (0.03, lambda: ("--host", "elsewhere")),
            (0.03, lambda: ("--host-alias", f"{self.one(hosts)}=renamed")),
            (0.03, lambda: ("--host-offset", f"{self.one(hosts)}={self.one(('250', '-1000', '0.5'))}")),
            (0.02, lambda: ("--label", f"layer={self.one(('client', 'service', 'device'))}")),
            (0.01, lambda: ("--keep-idle",)),
            (0.01, lambda: ("--expected-interval", "10ms")),
            (0.01, lambda: ("--rate", "100")),
            (0.01, lambda: ("--tsc-hz", "2.6e9")),
            (0.01, lambda: ("--fio-version", self.one(("3.16", "2.2", "abc")))),
            (
                0.007,
                lambda: (
                    "--input-format",
                    self.one(("fio-hist", "hdr-log", "operations", "csv", f"{ABOVE}words/wrong.yml")),
                ),
            ),
        )
        hints = list(facts.options)
        if not any(word in facts.options for word in ("--t0", "--recorded-unit")):
            hints += self.options(
                (0.03, lambda: ("--t0", self.one((str(FIXED), "2026-01-02T03:04:05Z", "mtime")))),
                (0.02, lambda: ("--recorded-unit", self.one(("ns", "us", "ms", "100ns")))),
            )
        return [*hints, *words]

    def levels(self) -> str:
        """Return a list of percentiles."""
        return "50,101" if self.chance(0.01) else ",".join(self.some(LEVELS, 5))

    def marks(self) -> str:
        """Return a file of marks, or a log of a garbage collector."""
        if self.chance(0.3):
            return f"{ABOVE}data/gc/{self.one(('g1.log', 'z.log', 'serial.log', 'uptime.log', 'none.log'))}"
        return f"{ABOVE}words/marks{self.one((0, 0, 1, 2, 3))}.txt"

    def sla(self) -> str:
        """Return a file of objectives."""
        number = self.one((0, 0, 1, 3, 2, 4) if self.chance(0.2) else (0, 0, 0, 1, 3))
        return f"{ABOVE}words/sla{number}.yml"

    def form(self, *often: str, pictures: bool = False) -> list[str]:
        """Return --format; pictures are slow, so they are rare."""
        if pictures and self.chance(0.02):
            return ["--format", self.one(("svg", "svg", "png"))]
        return ["--format", self.one(often)]

    def unit(self) -> list[str]:
        """Return --unit, or nothing."""
        return self.options((0.2, lambda: ("--unit", self.one(("ns", "us", "ms", "s")))))

    # questions, by command: each returns the words after SOURCE

    def percentiles(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return a question about percentiles."""
        form = self.form("csv", "csv", "table", "table", "ndjson", "fiologparser", pictures=True)
        return [
            *self.options((0.6, lambda: ("-p", self.levels())), (0.7, lambda: ("--step", self.step(facts, stored=stored)))),
            *self.selection(facts, stored=stored),
            *self.range(facts),
            *self.options(
                (0.15, lambda: self.one((("--bounds",), ("--bounds",), ("--accuracy", "10%"), ("--accuracy", "50%")))),
                (0.12, lambda: ("--below", f"{self.latency(facts)},{self.latency(facts)}")),
                (0.06, lambda: ("--interpolate",)),
                (0.01 if form[1] == "fiologparser" else 0.07, lambda: ("--estimate", self.one(ESTIMATES))),
                (0.1, lambda: ("--all",)),
                (0.15, lambda: ("--time", self.clock(facts))),
                (0.04, lambda: ("--force",)),
                (0.5 if form[1] in ("svg", "png") else 0.005, lambda: ("--marks", self.marks())),
            ),
            *self.unit(),
            *form,
            *(("-p", f"50,{self.levels()}") if form[1] == "fiologparser" and self.chance(0.9) else ()),  # it needs the median
        ]

    def heatmap(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return a question about a heat map."""
        low, high = (
            self.latency(replace(facts, high_ns=facts.low_ns * 3)),
            self.latency(replace(facts, low_ns=facts.high_ns // 2 + 1)),
        )
        return [
            *self.options((0.6, lambda: ("--step", self.step(facts, stored=stored)))),
            *self.selection(facts, stored=stored, by=0.3),
            *self.range(facts),
            *self.options(
                (0.2, lambda: ("--rows", self.one(("40", "60", "100", "100", "10")))),
                (0.2, lambda: ("--axis", self.one(("log", "linear")))),
                (0.15, lambda: ("--columns", self.one(("2", "5", "30")))),
                (
                    0.25,
                    lambda: self.one(
                        (("--drop", "0.1%"), ("--drop", "20%"), ("--latency", f"{low}..{high}"), ("--latency", f"..{high}"))
                    ),
                ),
                (0.15, lambda: ("--highlight", self.where(facts))),
                (0.15, lambda: ("--shading", self.one(("rank", "linear", "exponent")))),
                (0.1, lambda: ("--time", self.clock(facts))),
            ),
            *self.unit(),
            *self.form("csv", "table", "ndjson", "csv", pictures=True),
        ]

    def distribution(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return a question about the whole distribution."""
        return [
            *self.selection(facts, stored=stored),
            *self.range(facts),
            *self.options(
                (0.25, lambda: ("--curves",)),
                (0.1, lambda: ("--curves", "--sla", f"{ABOVE}words/steps0.txt:ms")),
                (0.05, lambda: ("--curves", "--hgrm", f"{ABOVE}data/hdr/tagged.hgrm.gz:{self.one(('ms', 'us', 'h'))}")),
                (0.1, lambda: ("--ticks", self.one(("1", "5", "12")))),
                (0.15, lambda: ("--all",)),
            ),
            *self.unit(),
            *self.form("csv", "table", "table", "ndjson", "hgrm", pictures=True),
        ]

    def offsets(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return a question about times within each second."""
        return [
            *self.selection(facts, stored=stored),
            *self.range(facts, 0.1),
            *self.options(
                (0.4, lambda: ("--period", self.one(("100ms", "1s", "1m", "1h", "1d", "3s")))),
                (0.3, lambda: ("--rows", self.one(("10", "50", "60", "1000")))),
                (0.2, lambda: ("--highlight", self.where(facts))),
                (0.2, lambda: ("--scale", self.one(("rank", "linear")))),
                (0.1, lambda: ("--where", self.where(facts).replace("=", "!=", 1))),
                (0.1, lambda: ("--time", self.clock(facts))),
            ),
            *self.form("csv", "table", "ndjson", pictures=True),
        ]

    def explain(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return a question about what happened, or who is in a box."""
        late, early = f"+{self.number_in(0.4, 1) * facts.seconds:.1f}s", f"+{self.number_in(0, 0.4) * facts.seconds:.1f}s"
        boxes = (
            f"{early}..{late},{self.latency(facts)}..",
            f"..,..{self.latency(facts)}",
            f"{early}..,{self.latency(facts)}..1s",
        )
        boxed = self.options((0.4, lambda: ("--box", self.one(boxes))))
        form = self.form("table", "json", "ndjson", "csv") if boxed else self.form("table", "table", "json", "ndjson")
        return [
            *boxed,
            *self.selection(facts, stored=stored, by=0.05),
            *self.range(facts, 0.08),
            *self.options((0 if boxed else 0.15, lambda: ("--step", self.step(facts, stored=stored)))),
            *self.options((0.1, lambda: ("--marks", self.marks()))),
            *(["--json"] if self.chance(0.2) else form),
        ]

    def check(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return options of a check (its SLA.yml stands before SOURCE)."""
        return [
            *self.options(
                (0.2, lambda: ("--where", self.where(facts))),
                (0.3, lambda: ("--marks", self.marks())),
                (0.3 if stored else 0.02, lambda: ("--record",)),
                (0.3, lambda: ("--allow-unknown",)),
                (0.2, lambda: ("--time", self.clock(facts))),
            ),
            *self.range(facts, 0.1),
            *self.unit(),
            *self.form("table", "csv", "ndjson", "junit"),
        ]

    def report(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return what a page is to hold."""
        return [
            *self.selection(facts, stored=stored, by=0.3),
            *self.range(facts, 0.1),
            *self.options(
                (0.3, lambda: ("--step", self.step(facts, stored=stored))),
                (0.2, lambda: ("--sla", self.one(("5ms", "p99<5ms", "p99.9<1s", "fast")))),
                (0.2, lambda: ("--objectives", self.sla())),
                (0.2, lambda: ("--marks", self.marks())),
                (0.2, lambda: ("--full",)),
            ),
            "-o",
            "-" if self.chance(0.2) else self.page("html"),
        ]

    def card(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return what a picture of a run is to hold."""
        return [
            *self.selection(facts, stored=stored, by=0.2),
            *self.range(facts, 0.1),
            "-o",
            self.page(self.one(("svg", "svg", "png"))),
        ]

    def export(self, facts: Facts, *, stored: bool) -> list[str]:
        """Return a question for all data."""
        form = (
            "csv"
            if facts.means
            else self.one(
                ("csv", "csv", "hlog", "hgrm", "otlp", "documents") if stored else ("csv", "csv", "hlog", "hgrm", "otlp")
            )
        )
        more = self.options((0.3, lambda: ("--step", self.step(facts, stored=stored)))) if form in ("hlog", "otlp") else []
        more += [*self.unit(), *self.options((0.2, lambda: ("--ticks", "3")))] if form == "hgrm" else []
        more += self.range(facts) if form != "documents" else []
        selected = self.selection(facts, stored=stored, by=0.5 if form in ("hlog", "hgrm", "otlp") else 0.02)
        return [*more, *(selected if form != "documents" or self.chance(0.1) else []), "--format", form]

    def question(self, facts: Facts, place: Sequence[str], *, stored: bool, **more: Any) -> None:
        """Add a question of any command that takes a SOURCE; `place` is that SOURCE."""
        if stored:  # its runs have the names of their loads
            facts = replace(facts, labels={name: values for name, values in facts.labels.items() if name != "run"})
        command = self.one(COMMANDS)
        command = "card" if self.chance(0.003) else command  # a picture takes a second
        if command == "offsets" and not facts.moments and self.chance(0.95):
            command = "percentiles"
        if facts.means and command not in ("percentiles", "report", "export") and self.chance(0.95):
            command = "percentiles"
        words = getattr(self, command)(facts, stored=stored)
        if command == "check":
            place = [self.sla(), *place]
        options = self.reading(facts, stored=stored)
        if command != "report":  # the order of rows in its data is that in which readers end
            options += [] if stored else self.options((0.05, lambda: ("--jobs", self.one(("1", "2", "3")))))
        self.ask(command, *place, *options, *words, **more)

    # scenes

    def files(self) -> None:
        """Ask about files as they are."""
        source = self.one(self.one(self.inputs.any))
        facts = self.guide.facts(source)
        if not facts.answered and self.chance(0.9):
            return
        place = [f"{ABOVE}{path}" for path in source.paths]
        for _ in range(int(self.random.integers(1, 4))):
            if self.chance(0.1):
                why = self.options((0.3, lambda: ("--why", place[0])))
                self.ask("inspect", *place, *self.reading(facts, stored=False), *why, *self.form("table", "ndjson"))
            else:
                self.question(facts, place, stored=False)

    def standard_input(self) -> None:
        """Ask about what comes through a pipe, or from a file that is standard input."""
        source = self.one(self.one(self.inputs.single))
        facts = self.guide.facts(source)
        if not facts.answered:
            return
        paths = [f"{ABOVE}{path}" for path in source.paths]
        twice = paths * 2 if self.chance(0.15) else paths
        facts = replace(facts, labels={name: facts.labels[name] for name in ("op", "kind") if name in facts.labels})
        self.question(facts, ["-"], stored=False, stdin=tuple(twice), piped=len(twice) > 1 or self.chance(0.7))

    def timelines(self) -> None:
        """Ask for the events of a Snabb timeline."""
        name = self.one(self.inputs.timelines)
        facts = self.guide.facts(Source((name,)))
        words = self.options(
            (0.3, lambda: ("--level", self.one(("0", "0-3", "2-5", "9-1")))),
            (0.3, lambda: ("--name", self.one(("app*", "*", "engine.*", "nothing")))),
            (0.5, lambda: ("--limit", self.one(("1", "20", "500", "90")))),
            (0.3, lambda: (self.one(("--breaths", "--callbacks")),)),
            (0.2, lambda: ("--time", self.clock(facts))),
            (0.1, lambda: ("--tsc-hz", "2.6e9")),
        )
        self.ask(
            "events",
            f"{ABOVE}{name}",
            *words,
            *self.range(facts, 0.2),
            *(self.form("table", "csv", "ndjson") if {"--breaths", "--callbacks"} & {*words} else self.form("table", "ndjson")),
        )

    def damaged(self) -> None:
        """Ask about a file with something wrong in it."""
        source = self.one(self.one(self.inputs.single))
        facts = self.guide.facts(source)
        if not facts.answered and self.chance(0.9):
            return
        name = Path(source.paths[0]).name
        content = broken((self.inputs.folder / source.paths[0]).read_bytes(), self.random)
        name = name.removesuffix(".xz")
        self.steps.append(Step("write", target=f"logs/{name}", content=content))
        self.ask("inspect", "logs", *facts.options, *self.form("table", "ndjson"))
        self.question(facts, [self.one(("logs", f"logs/{name}"))], stored=False)
        if self.chance(0.3):
            strict = self.options((0.4, lambda: ("--strict",)))
            self.ask("load", "logs", "--run", "r", *facts.options, "--store", "sqlite:s.db", *strict)
            self.ask("runs", "show", "r", "--store", "sqlite:s.db")

    def store(self) -> None:
        """Load sources, the parts of one or several whole ones, and ask the store."""
        self.stored("sqlite:s.db")

    def server(self) -> None:
        """Do the same with a server."""
        prefixed = "/perf" if self.chance(0.2) else ""
        url = "{elasticsearch}" + prefixed
        setup = self.options(
            (0.3, lambda: ("--period", self.one(("month", "week", "day")))),
            (0.2, lambda: ("--shards", "2")),
            (0.01, lambda: ("--compact",)),
            (0.2, lambda: ("--kibana", "{kibana}")),
            (0.1, lambda: ("--kibana", "{kibana}", "--rules", self.sla())),
        )
        if self.chance(0.2):
            self.ask("setup", "--elasticsearch", url, *setup, "--dry-run")
        if self.chance(0.95):
            self.ask("setup", "--elasticsearch", url, *setup)
        if self.chance(0.15):
            self.ask("setup", "--elasticsearch", url, "--overwrite", "--shards", "3")
        self.stored(url)

    def stored(self, url: str) -> None:
        """Fill a store in several ways, and ask it."""
        store = ("--store", url)
        fill = self.one((self.whole, self.whole, self.parts, self.marked_runs))
        facts = fill(store)
        if facts is None:
            return
        asked = int(self.random.integers(4, 12))
        for turn in range(asked):
            if turn == asked // 2:
                self.change(store)
            if self.chance(0.15):
                self.about_runs(store)
            else:
                self.question(facts, [url], stored=True)
        self.ask("runs", "check", *store, *self.options((0.3, lambda: ("--json",)), (0.2, lambda: ("--mend",))))

    def loading(self, facts: Facts) -> list[str]:
        """Return options of a load."""
        return self.options(
            (0.07, lambda: ("--step", self.one(("1s", "5s", "10s", "7s")))),
            (0.3, lambda: ("--json",)),
            (0.3, lambda: ("--label", f"kernel={self.one(('6.9', '5.15'))}")),
            (0.1, lambda: ("--no-offsets",)),
            (0.1, lambda: ("--add-up", self.one(("job", "job,volume", "process", "tag,job", "host")))),
            (0.1, lambda: ("--strict",)),
            (0.1, lambda: ("--marks", self.marks())),
            (0.07, lambda: ("--attribution", "in-flight")),
        )

    def whole(self, store: Sequence[str]) -> Facts | None:
        """Load one to three sources, each as a run or all into one."""
        found = [(source, self.guide.facts(source)) for source in map(self.one, self.some(self.inputs.any))]
        found = [(source, facts) for source, facts in found if facts.answered]
        apart = self.chance(0.6)
        for number, (source, facts) in enumerate(found):
            place = [f"{ABOVE}{path}" for path in source.paths]
            options = self.loading(facts)
            self.ask("load", *place, "--run", f"r{number}" if apart else "r", *store, *facts.options, *options)
            if self.chance(0.2):
                same = options if self.chance(0.9) else []
                self.ask("load", *place, "--run", "r" if not apart else f"r{number}", *store, *facts.options, *same)
            if self.chance(0.15):
                again = self.options((0.5, lambda: ("--step", self.one(("10s", "30s", "1m")))))
                self.ask("load", *place, "--run", "r" if not apart else f"r{number}", *store, *facts.options, "--replace", *again)
        return self.one(found)[1] if found else None

    def parts(self, store: Sequence[str]) -> Facts | None:
        """Load the files of a folder in parts, one after another, at times all of them again."""
        source = self.one(self.one(self.inputs.folders))
        facts = self.guide.facts(source)
        if not facts.answered:
            return None
        folder = self.inputs.folder / source.paths[0]
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        if len(files) > 60:
            return None
        count = int(self.random.integers(2, 4))
        for place, name in enumerate(files):
            part = place % count if self.chance(0.7) else int(self.random.integers(count))
            self.steps.append(Step("copy", source=f"{source.paths[0]}/{name}", target=f"part{part}/{name}"))
        options = self.loading(facts)
        for part in self.random.permutation(count).tolist():
            self.steps.append(Step("folder", target=f"part{part}"))
            self.ask("load", f"part{part}", "--run", "r", *store, *facts.options, *options)
        self.question(facts, [store[1]], stored=True)
        if self.chance(0.5):
            self.ask("load", *(f"part{part}" for part in range(count)), "--run", "r", *store, *facts.options, *options)
        if self.chance(0.3):
            self.ask("load", f"{ABOVE}{source.paths[0]}", "--run", "r", *store, *facts.options, "--replace")
        return facts

    def marked_runs(self, store: Sequence[str]) -> Facts | None:
        """Load a series of runs, and ask what holds several beside one another."""
        members = self.one(self.inputs.series)
        facts = self.guide.facts(Source((members[0],)))
        chosen = members[: int(self.random.integers(3, len(members) + 1))]
        names = [f"r{number}" for number in range(3)]
        if self.chance(0.3):
            self.ask("load", *(f"{ABOVE}{one}" for one in chosen), "--run", "r", "--each", *store)
            names = [f"r/{Path(one).name}" for one in chosen[:3]]
        else:
            for number, one in enumerate(chosen):
                label = ("--label", f"target_rate={100 * (number + 1)}")
                self.ask("load", f"{ABOVE}{one}", "--run", f"r{number}", *store, *label, "--json")
        for _ in range(4):
            self.several([store[1]], names, facts, stored=True)
        return facts

    def several(self, place: Sequence[str], names: Sequence[str], facts: Facts, *, stored: bool) -> None:
        """Ask a question about several runs."""
        facts = replace(facts, labels={name: values for name, values in facts.labels.items() if name != "run"})
        label = self.options((0.4, lambda: ("--by", self.by(facts))), (0.1, lambda: ("--where", self.where(facts))))
        page = self.options((0.15, lambda: ("-o", self.page("html"))))
        form = self.options((0.7, lambda: self.form("csv", "ndjson", "table", pictures=not page)))
        levels = self.options((0.5, lambda: ("-p", self.levels())))
        match self.one(("trend", "trend", "compare", "compare", "capacity")):
            case "trend":
                verdict = self.options(
                    (0.2, lambda: ("--throughput",)),
                    (0.2, lambda: ("--above", self.latency(facts))),
                    (0.3, lambda: ("--fail-above", self.one(("1.2", "3", "30")))),
                    (0.15, lambda: ("--last", "3")),
                    (0.1, lambda: ("--least-change", "30%")),
                    (0.1 if stored else 0.02, lambda: ("--accept", names[1])),
                )
                self.ask("trend", *place, *levels, *label, *verdict, *self.unit(), *form, *page)
            case "compare":
                one, other = (self.one(names), self.one(names)) if self.chance(0.1) else (names[0], self.one(names[1:3]))
                verdict = self.options(
                    (0.3, lambda: ("--same-within", "10%")),
                    (0.3, lambda: ("--fail-above", "1.2")),
                    (0.2, lambda: ("--shifts",)),
                    (0.1, lambda: ("--merge-runs",)),
                )
                levels = [] if "--shifts" in verdict else levels
                self.ask(
                    "compare", *place, "--baseline", one, "--run", other, *levels, *label, *verdict, *self.unit(), *form, *page
                )
            case _:
                limit = self.one(
                    (
                        f"p99<{self.latency(facts)}",
                        f"p50<{self.number_in(250, 500):.0f}us",
                        f"p50<{self.number_in(250, 500):.0f}us",
                        "p99.9<5ms",
                    )
                )
                more = self.options(
                    (0.3, lambda: ("--points",)),
                    (0.4, lambda: ("--load", self.one(("achieved", "achieved", "target_rate" if stored else "iodepth")))),
                    (0.2, lambda: ("--sla", "p90<1s")),
                )
                form = self.options((0.7, lambda: self.form("csv", "ndjson", "table")))
                self.ask("capacity", *place, "--sla", limit, *more, *label, *self.unit(), *form)

    def runs_of_files(self) -> None:
        """Ask about several runs that are files."""
        members = self.one(self.inputs.series)
        facts = self.guide.facts(Source((members[0],)))
        chosen = [f"{ABOVE}{one}" for one in members[: int(self.random.integers(2, len(members) + 1))]]
        names = [Path(one).name for one in chosen]
        for _ in range(2):
            self.several(chosen, (names * 2)[:3], facts, stored=False)

    def marks_of_one(self) -> None:
        """Compare a run with itself at a mark."""
        source = self.one(self.one(self.inputs.folders))
        facts = self.guide.facts(source)
        if facts.answered:
            marks = ("--marks", f"{ABOVE}words/marks{int(self.random.integers(2))}.txt")
            words = [
                *marks,
                "--at",
                self.one(("work*", "work*", "cache on", "none")),
                *self.options((0.3, lambda: ("--by", self.by(facts)))),
            ]
            self.ask(
                "compare",
                *(f"{ABOVE}{path}" for path in source.paths),
                *facts.options,
                *words,
                *self.form("csv", "table"),
            )

    def about_runs(self, store: Sequence[str]) -> None:
        """Ask about the runs of a store, without changing them."""
        self.ask(*self.one((
            ("runs", "list", *store),
            ("runs", "list", *store, "--format", "ndjson"),
            ("runs", "show", self.one(("r", "r0")), *store),
            ("runs", "list", *store),
            ("runs", "check", *store),
            ("runs", "delete", "r*", "--dry-run", *store),
            ("doctor", store[1]),
            ("doctor", store[1], "--json"),
        )))  # fmt: skip

    def change(self, store: Sequence[str]) -> None:
        """Change the runs of a store."""
        self.ask(*self.one((
            ("runs", "delete", self.one(("r1", "r*", "r0*")), "--yes", *store),
            ("runs", "coarsen", "r*", "--step", self.one(("5s", "10s", "1m")), *store),
            ("runs", "coarsen", "r*", "--step", "10s", self.one(("--coarseness", "--digits")), "2", *store),
            ("mark", "--run", "r*", "--at", "+2s", "work begins", *store),
            ("mark", "--run", "r*", "--at", "+2s", "--end", "+8s", "work", *store),
            ("mark", "--run", "r*", "--marks", self.marks(), *store),
            ("mark", "--run", self.one(("r0", "r")), "--accept", "it is so now", *store),
            ("runs", "delete", "--older-than", "30d", "--yes", *store),
        )))  # fmt: skip

    def older(self) -> None:
        """Ask a store of an older version: one with data, or an empty one."""
        source = self.one([*self.inputs.stores, *[name for name in self.inputs.stores if name.endswith(".gz")] * 8])
        self.steps.append(Step("restore", source=source, target="old.db"))
        facts = UNKNOWN
        for _ in range(3):
            if self.chance(0.6):
                self.question(facts, ["sqlite:old.db"], stored=True)
                continue
            self.ask(*self.one((
                ("runs", "list", "--store", "sqlite:old.db"),
                ("doctor", "sqlite:old.db"),
                ("runs", "check", "--store", "sqlite:old.db"),
                ("load", f"{ABOVE}made/nights/n00", "--run", "r", "--store", "sqlite:old.db"),
            )))  # fmt: skip

    def default_store(self) -> None:
        """Use the store that is meant when none is named."""
        member = self.one(self.inputs.series)[0]
        facts = self.guide.facts(Source((member,)))
        named = (("TAILBOARD_STORE", "sqlite:mine.db"),) if self.chance(0.5) else ()
        self.ask("load", f"{ABOVE}{member}", "--run", "r", environment=named)
        self.question(facts, [], stored=True, environment=named)
        self.ask("runs", "list", environment=named)

    def watching(self) -> None:
        """Watch files that lie still, then more of them."""
        source = self.one(self.one(self.inputs.single))
        facts = self.guide.facts(source)
        if not facts.answered:
            return
        self.steps.append(Step("copy", source=source.paths[0], target=f"logs/{Path(source.paths[0]).name}"))
        words = ("watch", "logs", "--run", "r", "--store", "sqlite:w.db", "--interval", "100ms", "--until-idle", "250ms")
        self.ask(*words, *facts.options, *self.options((0.3, lambda: ("--objectives", self.sla()))))
        self.question(facts, ["sqlite:w.db"], stored=True)

    def serving(self) -> None:
        """Look at the live page of a store, or of files."""
        source = self.one(self.one(self.inputs.single))
        facts = self.guide.facts(source)
        if not facts.answered:
            return
        place = f"{ABOVE}{source.paths[0]}"
        words = self.options((0.3, lambda: ("--by", self.by(facts))), (0.3, lambda: ("--step", self.step(facts, stored=True))))
        if self.chance(0.8):
            self.ask("load", place, "--run", "r", "--store", "sqlite:s.db", *facts.options)
            self.ask("serve", "sqlite:s.db", "--port", "0", *words, cold=False)
        else:
            self.ask("serve", place, "--port", "0", *facts.options, *words, cold=False)

    def help(self) -> None:
        """Ask for help, or with words that are not there."""
        if self.chance(0.5):
            self.ask(*self.one(HELPED).split(), self.one(("--help", "-h")))
        else:
            self.ask(*self.one(WRONG).split())

    def others(self) -> None:
        """Ask the commands that stand by themselves."""
        polled = (
            f"{ABOVE}data/histograms/{self.one(('redis70_latency_histogram.ndjson', 'prom_openmetrics.txt', 'otlp_delta.jsonl'))}"
        )
        words: tuple[str, ...] = self.one((
            ("wrap-fio", "--fio", "/usr/bin/fio"),
            ("wrap-fio", "--fio", "/opt/fio", "--log-hist-msec", "500"),
            ("--version",),
            ("--completion", self.one(("bash", "zsh", "fish"))),
            ("demo", "-o", self.page("html")),
            ("setup", "--elasticsearch", "{elasticsearch}", "--dry-run"),
            ("setup", "--kibana", "{kibana}"),
            ("setup", "--kibana", "{kibana}", "--rules", self.sla(), "--space", self.one(("default", "none"))),
            ("setup", "--kibana", "{kibana}", "--dry-run"),
            ("doctor", "{elasticsearch}"),
            ("replay", f"{ABOVE}words/marks0.txt", "--store", "{elasticsearch}"),
            ("sample", "--every", "10s", "--for", "50ms", "--host", "h", "-o", "s.ndjson", "--", "cat", polled),
        ))  # fmt: skip
        self.ask(*words)

    def generated(self) -> None:
        """Build the generated files anew: SQL, templates, the saved objects of Kibana, the references."""
        self.steps.append(Step("tree"))
        self.ask("build", "--check", cold=True, environment=(("PYTHONPATH", "{tree}"),))
        self.ask("build", cold=True, environment=(("PYTHONPATH", "{tree}"),))
        self.steps.append(Step("built", target="built"))


COMMANDS = (
    *("percentiles",) * 8, *("heatmap",) * 4, *("distribution",) * 4, *("explain",) * 3, *("offsets",) * 2, *("check",) * 2,
    *("export",) * 4, "report",
)  # fmt: skip
HELPED = (
    *(
        "",
        "inspect",
        "percentiles",
        "heatmap",
        "distribution",
        "offsets",
        "events",
        "explain",
        "check",
        "compare",
        "trend",
        "capacity",
    ),
    *(
        "report",
        "card",
        "serve",
        "export",
        "sample",
        "load",
        "watch",
        "runs",
        "mark",
        "setup",
        "doctor",
        "replay",
        "demo",
        "wrap-fio",
    ),
    *("build", "runs list", "runs show", "runs check", "runs delete", "runs coarsen"),
)
WRONG = (
    """
percentile x
percentiles
percentiles nowhere
percentiles {archive} --bye op
percentiles -p
heatmap {archive} --format gif
load
load {archive}
runs
runs lst
runs show nothing
compare {archive}
trend sqlite:none.db
percentiles http://127.0.0.1:1/9
doctor http://user:secret@127.0.0.1:1
percentiles sqlite:{above}words/sla0.yml
check
check {above}words/empty.yml {archive}
events x
capacity {archive} --sla slow
offsets {archive}
setup
replay none.ndjson
mark --run x
export --format documents {archive}
--versoin
sample
sample -- nosuchcommand
distribution - --format hgrm
explain {archive} --box here
report {above}words
inspect {above}data/tables
""".strip()
    .format(archive=f"{ABOVE}cbt-archive", above=ABOVE)
    .split("\n")
)
SCENES: Sequence[tuple[float, Callable[[Drawing], None]]] = (
    (46, Drawing.files), (8, Drawing.standard_input), (2, Drawing.timelines), (8, Drawing.damaged), (9, Drawing.store),
    (2.5, Drawing.server), (5, Drawing.runs_of_files), (2, Drawing.marks_of_one), (1, Drawing.older), (1, Drawing.default_store),
    (0.7, Drawing.watching),
    (0.5, Drawing.serving), (4, Drawing.help), (4, Drawing.others), (0.05, Drawing.generated),
)  # fmt: skip


def scene(inputs: Inputs, guide: Guide, seed: int, number: int) -> Scene:
    """Return a scene, the same for the same seed and number; the first one builds the generated files."""
    drawing = Drawing(inputs, guide, seed, number)
    weights = np.array([weight for weight, _ in SCENES])
    chosen = int(drawing.random.choice(len(SCENES), p=weights / weights.sum()))
    (Drawing.generated if number == 0 else SCENES[chosen][1])(drawing)
    return Scene(number, tuple(drawing.steps))
