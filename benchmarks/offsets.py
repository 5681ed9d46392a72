"""Offset maps at cloud scale: 200 hosts with 2,000 processes each, 10 minutes at 99 Hz, to one map; memory and a brute force.

    python benchmarks/offsets.py [--hosts N] [--processes N] [--seconds N] [--cpus N] [--jobs N] [--bound MB]

A profiler that samples at 99 Hz takes 99 samples a second of each CPU, whatever the number of processes: with 16 CPUs a host
(--cpus) these are 190 million samples of 400,000 processes. With --cpus as large as --processes every process is on a CPU at
all times: 2.4e10 samples, for which --hosts takes a share; memory does not depend on it, so a share shows it.

Samples are made from a seed in place of being parsed, chunk by chunk, in the reader's own processes; everything after that is
the product: the sources of 200 files, one map of all, one of a single process on all hosts. A plain loop over the same
samples counts the cells of that process again. Memory is that of all processes together.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
from measure import MB, Bench, peak

from ingest.core.events import Events
from ingest.query.files import Files
from ingest.query.offsets import OffsetMap, WantedOffsets, from_files
from ingest.query.question import Question
from ingest.read import formats
from ingest.read.context import Context
from ingest.read.described import operations
from ingest.read.described.description import description_of
from ingest.read.format_names import DESCRIBED
from ingest.read.formats import Reader
from ingest.read.sources import ReadOptions

HOSTS, PROCESSES, SECONDS, CPUS, HERTZ = 200, 2_000, 600, 16, 99
ZERO, SECOND, ROWS = 1_789_999_200_000_000_000, 1_000_000_000, 50
CHUNK = 1 << 18
BOUND = 300
CHOSEN = "p0042"
COLUMNS = "time: t_ns\nlatency: took_ns\nlabels: {process: process}\n"


def samples(host: int, words: argparse.Namespace) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (process number, time in ns) of the samples of a host, in order of time."""
    random = np.random.default_rng(host)
    ticks = words.seconds * HERTZ
    skew = int(random.integers(0, SECOND // HERTZ))
    step = max(1, CHUNK // words.cpus)
    for first in range(0, ticks, step):
        tick = np.arange(first, min(first + step, ticks))
        times = np.repeat(ZERO + skew + tick * SECOND // HERTZ, words.cpus)
        if words.cpus >= words.processes:
            yield np.tile(np.arange(words.cpus) % words.processes, len(tick)), times
        else:
            yield random.integers(0, words.processes, len(times)), times


def generated(words: argparse.Namespace) -> Callable[[Path, Context], Iterator[Events]]:
    """Return a reader that makes the samples of the host that a file is named after."""

    def read(path: Path, context: Context) -> Iterator[Events]:
        base = context.series.replaced(kind="service", host=path.stem)
        table = tuple(base.replaced(process=f"p{number:04d}") for number in range(words.processes))
        for codes, times in samples(int(path.stem[1:]), words):
            context.account.accept(len(times))
            yield Events(table, codes, times, np.zeros(len(times), np.int64))

    return read


def stand_in(words: argparse.Namespace) -> None:
    """Have described files read by a module that makes samples."""
    module = ModuleType("ingest.read.generated_samples")
    module.READER = Reader(operations.locate, events=generated(words))  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    place = f"{module.__name__}:READER"
    formats.CORE[:] = [line._replace(module=place) if line.name == DESCRIBED else line for line in formats.CORE]


def mapped(folder: Path, words: argparse.Namespace, **asked: object) -> OffsetMap:
    """Return a map of all files in the folder."""
    stand_in(words)
    options = ReadOptions(run="cloud", description=description_of(str(folder / "columns.yml")))
    files = Files(sorted(folder.glob("h*.csv")), options, jobs=words.jobs)
    return from_files(files, WantedOffsets(**asked))  # type: ignore[arg-type]


def write_files(folder: Path, hosts: int) -> None:
    """Write a file with one sample for each host, which stands for all of them."""
    (folder / "columns.yml").write_text(COLUMNS)
    for number in range(hosts):
        (folder / f"h{number:03d}.csv").write_text(f"t_ns,took_ns,process\n{ZERO},0,p0000\n")


def counted_again(words: argparse.Namespace) -> Counter[tuple[int, int]]:
    """Return the cells of the chosen process on all hosts, counted one sample after another."""
    found: Counter[tuple[int, int]] = Counter()
    number = int(CHOSEN[1:])
    for host in range(words.hosts):
        for codes, times in samples(host, words):
            for at in times[codes == number].tolist():
                found[at // SECOND, at % SECOND * ROWS // SECOND] += 1
    return found


def child(words: argparse.Namespace, folder: Path) -> None:
    """Make one map and print what it holds; the one of a process cell by cell."""
    if words.child == "all":
        answer = mapped(folder, words)
    else:
        answer = mapped(folder, words, isolate={"process": (CHOSEN,)}, question=Question(by=("process",)))
    cells = answer.cells
    print(answer.samples, len(cells.bins), answer.missing_ns.size)
    if words.child == "one":
        for row, start, count in zip(cells.bins, cells.start_ns[cells.row], cells.counts, strict=True):
            print(start // SECOND, row, count)


def main() -> None:
    """Measure both maps, and hold the one of a process against the plain count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("hosts", HOSTS), ("processes", PROCESSES), ("seconds", SECONDS), ("cpus", CPUS), ("bound", BOUND)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--child", choices=["all", "one"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.child:
        child(words, words.folder)
        return
    told = words.hosts * words.cpus * words.seconds * HERTZ
    print(f"{words.hosts} hosts x {words.cpus} CPUs x {words.seconds} s x {HERTZ} Hz = {told:,} samples of", end=" ")
    print(f"{words.hosts * words.processes:,} processes; load {os.getloadavg()[0]:.1f} at the start")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, words.hosts)
        bench = Bench(folder, folder, "", folder, 1)
        numbers = [f"--{one}={getattr(words, one)}" for one in ("hosts", "processes", "seconds", "cpus", "jobs")]
        for kind in ("all", "one"):
            done = peak(bench, kind, [sys.executable, __file__, *numbers, f"--child={kind}", f"--folder={folder}"])
            lines = (folder / "stdout").read_text().splitlines()
            held, cells, _ = map(int, lines[0].split())
            verdict = "met" if done.pss <= words.bound * MB else "NOT met"
            print(
                f"map of {'everything' if kind == 'all' else CHOSEN + ' on all hosts'}: {held:,} samples in {cells:,} cells, "
                f"{done.seconds:.1f} s with {words.jobs} processes; peak of all processes {done.pss / MB:.0f} MB "
                f"({done.anonymous / MB:.0f} MB of them not backed by files), at most {words.bound}: {verdict}"
            )
            if kind == "all" and held != told:
                raise SystemExit(f"{told - held:,} samples are missing")
        began = time.perf_counter()
        again = counted_again(words)
        ours = {(int(second), int(row)): int(count) for second, row, count in (line.split() for line in lines[1:])}
        same = "equal" if ours == again else "NOT equal"
        print(f"counted again, sample by sample ({time.perf_counter() - began:.0f} s): {len(again):,} cells, {same}")
        if ours != again:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
