"""Logs that grow as a benchmark would let them, cut anywhere, rotated in every way; and what a load makes of them."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.labels import LABELS
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import parse_instant
from ingest.live.watch.cycle import WatchCycle
from ingest.live.watch.state import Watching
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.oracles import hdr

SECOND = 1_000_000_000
EPOCH = 1_700_000_000
HEAD = f"#[Logged with jHiccup]\n#[StartTime: {EPOCH}.000 (seconds since epoch)]\n"
ALL = Wanted(parse_percentiles("0,50,90,99,99.9,100"))
TAGS = ("read-st", "write-st", "read-rt")
QUESTIONS = (
    Question(by=LABELS, step=SECOND),
    Question(by=("host", "op", "kind"), step=10 * SECOND),
    Question(step=60 * SECOND),
    Question(by=("host", "op"), step="all"),
    Question(by=("op",), begin=parse_instant("2023-11-14T22:13:23Z"), end=parse_instant("2023-11-14T22:13:57Z"), step=SECOND),
    Question(where={"host": "h1"}, begin=parse_instant("2023-11-14T22:13:30Z"), step=10 * SECOND),
    Question(by=("process",), end=parse_instant("2023-11-14T22:13:40Z"), step="all"),
)


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def now_ns(self) -> int:
        return time.time_ns() + int((self.seconds - 1000) * SECOND)


def options(run: str = "r", **words) -> LoadOptions:
    return LoadOptions(read=ReadOptions(run=run, **words.pop("reading", {})), **{"step_ns": SECOND, "jobs": 1, **words})


def begun(folder: Path | list[Path], store, clock: Clock, after=None, **words) -> WatchCycle:
    paths = folder if isinstance(folder, list) else [folder]
    return WatchCycle(Watching.begun(paths, store, options(**words), clock, clock.now_ns), () if after is None else (after,))


def watched(path: Path, pieces: Sequence[str], url: str, *, seconds: int = 1, **words) -> None:
    """Append pieces to a log whose folder is watched, a cycle after each, then settle what was read."""
    clock = Clock()
    path.parent.mkdir(exist_ok=True)
    with open_store(url, write=True) as store:
        watch = begun(path.parent, store, clock, **words)
        for piece in pieces:
            with path.open("a") as log:
                log.write(piece)
            clock.seconds += seconds
            watch.cycle()
        watch.cycle(last=True)
        watch.settle()


def log_lines(rng: random.Random, rows: int, tags=TAGS, width: float = 1.003, from_s: float = 0.0) -> list[str]:
    """Lines of a log with odd widths, so that most rows cross an edge of the grid; some bad ones among them."""
    found = []
    for number in range(rows):
        for tag in tags:
            counts = {hdr.index_of(int(rng.lognormvariate(13, 0.8)), 2): rng.randint(1, 9) for _ in range(6)}
            found.append(hdr.line(f"{from_s + number * width:.3f}", f"{width:.3f}", counts, tag=tag, digits=2))
        if rng.random() < 0.05:
            found.append("no interval at all\n")
    return found


def operation_lines(rng: random.Random, rows: int, from_s: float = 0.0) -> list[str]:
    """Lines of an operation log, some later than their time, some of them bad."""
    found = []
    for number in range(rows * 8):
        end = EPOCH * 10**6 + int((from_s + number / 8 - rng.expovariate(2)) * 10**6)
        found.append(f"{end - int(rng.lognormvariate(7, 1.5))},{end},{rng.choice(('read', 'write', ''))}\n")
        if rng.random() < 0.02:
            found.append(rng.choice((f"{end},{end - 5},read\n", "1,2\n", "\n", "one,two,read\n")))
    return found


def object_lines(rng: random.Random, rows: int, from_s: float = 0.0) -> list[str]:
    """Objects of an NDJSON log, some later than their time, some of them none."""
    found = []
    for number in range(rows * 8):
        end = EPOCH * 10**3 + int((from_s + number / 8 - rng.expovariate(2)) * 10**3)
        found.append(f'{{"done_ms": {end}, "took": {rng.lognormvariate(7, 1.5):.3f}, "type": "{rng.choice(("get", "put"))}"}}\n')
        if rng.random() < 0.02:
            found.append(rng.choice(('{"done_ms": 17\n', "[]\n", '{"took": 1.0, "type": "get"}\n')))
    return found


def ycsb_lines(rng: random.Random, rows: int, from_s: float = 0.0) -> list[str]:
    """Lines of YCSB's raw measurements, of two operations after one another in time."""
    stamps = (EPOCH * 10**3 + int((from_s + number / 8) * 10**3) for number in range(rows * 8))
    return [f"{rng.choice(('READ', 'UPDATE'))},{at},{int(rng.lognormvariate(7, 1.5))}\n" for at in stamps]


@dataclass(frozen=True)
class Kind:
    """A kind of log: the name of its file, its first lines, and its other lines from a time on."""

    name: str
    head: str
    lines: Callable[..., list[str]]

    def text(self, rng: random.Random, rows: int, from_s: float = 0.0) -> bytes:
        return (self.head + "".join(self.lines(rng, rows, from_s=from_s))).encode()


HLOG = Kind("x.hlog", HEAD, log_lines)
OPERATIONS = Kind("x.csv", "start_us,end_us,op\n", operation_lines)
OBJECTS = Kind("x.ndjson", "", object_lines)
YCSB = Kind("x.raw", "READ latency raw data: op, timestamp(ms), latency(us)\n", ycsb_lines)


class Writer:
    """One log that is written in pieces cut anywhere."""

    def __init__(self, path: Path, rng: random.Random, rows: int, from_s: float = 0.0, kind: Kind = HLOG) -> None:
        self.path, self.rng, self.kind = path, rng, kind
        path.parent.mkdir(parents=True, exist_ok=True)
        self.text = kind.text(rng, rows, from_s)
        self.stream = path.open("ab", buffering=0)
        self.written = 0

    @property
    def done(self) -> bool:
        return self.written == len(self.text)

    def write(self, most: int = 3000) -> None:
        piece = self.text[self.written : self.written + self.rng.randint(0, most)]
        self.stream.write(piece)
        self.written += len(piece)

    def rest(self) -> None:
        self.stream.write(self.text[self.written :])
        self.written = len(self.text)

    def anew(self, text: bytes) -> None:
        """Go on with another log in a new file of the same name."""
        self.stream.close()
        self.stream = self.path.open("ab", buffering=0)
        self.text, self.written = text, 0

    def emptied(self, text: bytes) -> None:
        """Go on with another log in the same file, which was emptied."""
        os.truncate(self.path, 0)
        self.text, self.written = text, 0


def whole_lines(folder: Path, into: Path) -> Path:
    """Return a copy of a folder of which each log ends with its last whole line."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(folder, into)
    for path in into.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes(data[: data.rfind(b"\n") + 1])
    return into


def batch(folder: Path, store: Path, **words) -> str:
    """Return the URL of a store into which a folder was loaded as it is; nothing in it where nothing can be read."""
    store.unlink(missing_ok=True)
    url = f"sqlite:{store}"
    with open_store(url, write=True) as opened:
        try:
            load([folder], opened, options(**words))
        except InputError:
            return ""
    return url


def answers(url: str) -> list[list[str]]:
    """Return the tables of a store: all labels, hosts, the cluster, the whole run."""
    if not url:
        return []
    with open_store(url) as store:
        return [answer(store, question) for question in QUESTIONS]


def answer(store, question: Question) -> list[str]:
    """Return a table as lines; what is said where nothing is there."""
    try:
        return list(csv_lines(percentiles(store.answer(question), ALL)))
    except InputError as error:
        return [str(error)]
