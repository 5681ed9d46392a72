"""What the benchmarks run on, made from seeds: the same bytes on every machine.

    python benchmarks/generate.py logs FOLDER --files 32 --rows 600 --nonzero 60-150 --coarseness 0
    python benchmarks/generate.py store FILE.db

A histogram log is written row by row and a large set is made file by file from a small one, so nothing here needs memory.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ingest.core.intervals import Intervals
    from ingest.core.labels import Series

Int = NDArray[np.int64]

FINE_BINS, OCTAVE = 1856, 64
SECOND = 1_000_000_000
CENTRE, SPREAD = 900, 30
BINS_A_WINDOW = 60
START_NS = 1_795_000_000 * SECOND


@dataclass(frozen=True, slots=True)
class LogSet:
    """A folder of fio histogram logs: how many, how long, how many bins of a row are not zero, and how coarse they are."""

    files: int = 32
    rows: int = 600
    nonzero: tuple[int, int] = (60, 150)
    coarseness: int = 0

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        low, high = self.nonzero
        return f"logs-{self.files}x{self.rows}-{low}to{high}-c{self.coarseness}"

    @property
    def bins(self) -> int:
        """Return the number of bins of a row."""
        return FINE_BINS >> self.coarseness


def logs(folder: Path, wanted: LogSet) -> Path:
    """Return the folder with a set of logs in it, made unless it is there whole."""
    target = folder / wanted.name
    if (target / "complete").exists():
        return target / "logs"
    (target / "logs").mkdir(parents=True, exist_ok=True)
    for number in range(1, wanted.files + 1):
        with (target / "logs" / f"bench_clat_hist.{number}.log").open("w", encoding="ascii") as out:
            out.writelines(_rows(wanted, np.random.default_rng(number)))
    (target / "complete").touch()
    return target / "logs"


def _rows(wanted: LogSet, random: np.random.Generator) -> Iterator[str]:
    """Yield the rows of one log: a second wide and a few ms late, bins around a centre that wanders."""
    stamp = 0
    for _ in range(wanted.rows):
        stamp += 1000 + int(random.integers(0, 6))
        width = int(random.integers(wanted.nonzero[0], wanted.nonzero[1] + 1))
        centre = int(random.normal(CENTRE, SPREAD)) >> wanted.coarseness
        spread = max(60 >> wanted.coarseness, width / 3)
        drawn = np.clip(random.normal(centre, spread, width * 4).astype(np.int64), 0, wanted.bins - 1)
        bins = random.permutation(np.unique(drawn))[:width]
        cells = np.zeros(wanted.bins, np.int64)
        cells[bins] = np.maximum(1, random.lognormal(1.5, 1.2, len(bins)).astype(np.int64))
        yield f"{stamp}, 0, 4096, {', '.join(map(str, cells.tolist()))}\n"


def repeated(source: Path, folder: Path, times: int) -> Path:
    """Return a folder with the logs of `source` `times` over, each copy a host of its own with stamps a little later.

    No two files are equal, because equal ones are taken for one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for copy in range(times):
        for path in sorted(source.glob("*.log")):
            target = folder / f"{path.name}.host{copy:02d}"
            if not target.exists():
                _shifted(path, target, copy)
    return folder


def _shifted(path: Path, target: Path, shift_ms: int) -> None:
    unfinished = target.with_name(f".{target.name}")
    with path.open("rb") as rows, unfinished.open("wb") as out:
        for row in rows:
            stamp, rest = row.split(b",", 1)
            out.write(b"%d,%b" % (int(stamp) + shift_ms, rest))
    unfinished.rename(target)


def lengthened(path: Path, text: bytes, times: int) -> None:
    """Write the rows of a log `times` over to `path`, every time later by the length of the whole."""
    rows = [row.split(b",", 1) for row in text.splitlines(keepends=True)]
    length = int(rows[-1][0]) // 1000 * 1000 + 1000
    with path.open("wb") as out:
        for time in range(times):
            out.writelines(b"%d,%b" % (int(stamp) + time * length, rest) for stamp, rest in rows)


@dataclass(frozen=True, slots=True)
class StoreSet:
    """Hosts with jobs, each of which reads and writes so many seconds, about 60 bins each.

    `story`: about 100 operations a second of one lognormal distribution, those of the first host 4 times as long for a sixth of
    the run; else bins of any place and size.
    """

    hosts: int = 16
    jobs: int = 8
    seconds: int = 3600
    story: bool = False


def store(path: Path, wanted: StoreSet | None = None) -> Path:
    """Return a SQLite store, made unless it is there, written as a load writes it, without findings: of 921,600 documents."""
    done = path.with_suffix(".complete")
    if done.exists():
        return path
    for stale in path.parent.glob(f"{path.name}*"):
        stale.unlink()
    _fill(path, wanted or StoreSet())
    done.touch()
    return path


def _fill(path: Path, wanted: StoreSet) -> None:
    from ingest.core.documents import pack
    from ingest.store.records import RunRecord, SourceRecord
    from ingest.store.sqlite.store import SqliteStore

    run = RunRecord("bench", "bench", SECOND, start_ns=START_NS, zero="made")
    sources = [
        SourceRecord("bench", f"fio-hist|{host}|{job}", f"{host}.{job}", 0, hashlib.blake2b(f"{host}.{job}".encode()).hexdigest())
        for host in range(wanted.hosts)
        for job in range(wanted.jobs)
    ]
    with SqliteStore(str(path), write=True) as target:
        target.begin(run, sources)
        for number, source in enumerate(sources):
            spans = {}
            for windows in _windows(number, wanted):
                target.write(run, source, pack(windows))
                spans[windows.table[0]] = (int(windows.start_ns[0]), int(windows.end_ns[-1]))
            target.finish_source(source, spans)
            print(f"\rstore: {number + 1}/{len(sources)} threads", end="", file=sys.stderr, flush=True)
        target.finish_run(run)
    print(file=sys.stderr)


def _windows(thread: int, wanted: StoreSet) -> Iterator[Intervals[Series]]:
    """Yield the windows of one thread's reads, then of its writes."""
    from ingest.core.intervals import Intervals
    from ingest.core.labels import Series
    from ingest.core.layout import fio_layout

    (host, job), seconds = divmod(thread, wanted.jobs), wanted.seconds
    for number, op in enumerate(("read", "write")):
        random = np.random.default_rng((thread, number))
        if wanted.story:
            indptr, bins, counts = _drawn(random, seconds, slow=not host)
        else:
            gaps = random.integers(1, 7, (seconds, BINS_A_WINDOW))
            bins = (random.integers(700, 800, (seconds, 1)) + np.cumsum(gaps, axis=1)).reshape(-1)
            indptr = np.arange(seconds + 1) * BINS_A_WINDOW
            counts = np.maximum(1, random.lognormal(1.5, 1.2, bins.size).astype(np.int64))
        start = START_NS + np.arange(seconds) * SECOND
        yield Intervals(
            layout=fio_layout(29, 1),
            table=(Series(run="bench", host=f"host{host:02d}", job=str(job + 1), op=op, kind="completion"),),
            series=np.zeros(seconds, np.int64),
            start_ns=start,
            end_ns=start + SECOND,
            indptr=indptr,
            bins=bins,
            counts=counts,
        )


def _drawn(random: np.random.Generator, seconds: int, *, slow: bool) -> tuple[Int, Int, Int]:
    """Return where rows of a second begin, their bins and counts, of operations that are drawn one by one."""
    row = np.repeat(np.arange(seconds), random.poisson(100, seconds))
    later = 2 * OCTAVE * (slow & (row // (seconds // 6) == 3))
    bins = np.rint(random.normal(CENTRE + later, OCTAVE * 0.6)).astype(np.int64)
    cells, counts = np.unique(row * FINE_BINS + bins, return_counts=True)
    return np.searchsorted(cells, np.arange(seconds + 1) * FINE_BINS), cells % FINE_BINS, counts


def main() -> None:
    """Make a set of logs or a store where the words say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("logs", "store"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--files", type=int, default=32)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--nonzero", default="60-150", metavar="LOW-HIGH")
    parser.add_argument("--coarseness", type=int, default=0, choices=range(7))
    words = parser.parse_args()
    if words.what == "store":
        print(store(words.path))
        return
    low, high = words.nonzero.split("-")
    print(logs(words.path, LogSet(words.files, words.rows, (int(low), int(high)), words.coarseness)))


if __name__ == "__main__":
    main()
