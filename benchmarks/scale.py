"""What a document and a question cost at 1, 10 and 100 times the data; `docs/guides/scale.md` says what follows from it.

    python benchmarks/scale.py [--hosts 10,100,1000] [--rounds 3] [--data FOLDER]

SQLite: stores are made through the store's own code (packing, rollups, run records), then measured, asked and coarsened.
Elasticsearch: the bulk lines that would be sent are made and counted; no server is asked. The distribution is the one of
`generate.py`: two ops a host, a window a second, 60 bins a window, 600 windows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from generate import START_NS  # beside this file
from measure import print_table

from ingest.core.documents import pack
from ingest.core.grid import SECOND, coarsened
from ingest.core.intervals import Intervals, merged
from ingest.core.labels import Series
from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.elastic.documents import interval_chunks
from ingest.store.elastic.templates import Names
from ingest.store.records import RunRecord, SourceRecord
from ingest.view.text import csv_lines

WINDOWS, BINS, OPS = 600, 60, ("read", "write")
MINUTE = 60 * SECOND
STEPS = (SECOND, 10 * SECOND, MINUTE)
RUN = RunRecord("scale", "scale", SECOND, start_ns=START_NS // MINUTE * MINUTE, zero="made")
WANTED = Wanted(parse_percentiles("50,99,99.9"))
QUESTIONS = {
    "cluster by op, every 10 s": Question(by=("op",), step=10 * SECOND),
    "cluster by op, whole run": Question(by=("op",), step="all"),
    "one host, every second": Question(where={"host": "host00007"}, by=("op",), step=SECOND),
    "all hosts, every minute": Question(by=("host",), step=MINUTE),
    "all hosts, whole run": Question(by=("host", "op"), step="all"),
    "all documents by job, every minute": Question(by=("job",), step=MINUTE),
}


def windows_of(host: int) -> Intervals[Series]:
    """Return the windows of one host: about 60 occupied bins each, around a centre that wanders."""
    random = np.random.default_rng(host)
    rows = WINDOWS * len(OPS)
    bins = random.integers(700, 800, (rows, 1)) + np.cumsum(random.integers(1, 7, (rows, BINS)), axis=1)
    start = np.tile(RUN.start_ns + np.arange(WINDOWS) * SECOND, len(OPS))
    return Intervals(
        layout=fio_layout(29, 1),
        table=tuple(Series(run=RUN.run, host=f"host{host:05d}", job="1", op=op, kind="completion") for op in OPS),
        series=np.repeat(np.arange(len(OPS)), WINDOWS),
        start_ns=start,
        end_ns=start + SECOND,
        indptr=np.arange(rows + 1) * BINS,
        bins=bins.reshape(-1),
        counts=np.maximum(1, random.lognormal(1.5, 1.2, bins.size).astype(np.int64)),
    )


def made(path: Path, hosts: int) -> tuple[float, float]:
    """Fill a store; return the seconds for documents and for rollups."""
    sources = [SourceRecord(RUN.run, f"fio-hist|host{host:05d}", f"{host}", 0, f"{host}") for host in range(hosts)]
    with open_store(f"sqlite:{path}", write=True) as store:
        began = time.perf_counter()
        store.begin(RUN, sources)
        for host, source in enumerate(sources):
            windows = windows_of(host)
            store.write(RUN, source, pack(windows))
            store.finish_source(source, {key: (first, last) for key, first, last in windows.reach()})
        between = time.perf_counter()
        store.finish_run(RUN)
        return between - began, time.perf_counter() - between


@dataclass(frozen=True, slots=True)
class Held:
    """What a store holds: documents, rollups, bytes of packed bins, bytes of the file."""

    documents: int
    rollups: int
    bins: int
    file: int


def held(path: Path) -> Held:
    """Return what a store holds, once it is packed as tightly as SQLite can."""
    import sqlite3

    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        documents, bins = db.execute("SELECT count(*), sum(length(bins)) FROM intervals").fetchone()
        rollups = db.execute("SELECT count(*) FROM rollups").fetchone()[0]
    return Held(documents, rollups, bins, path.stat().st_size)


def best(rounds: int, work: Callable[[], object]) -> float:
    """Return the least seconds of some rounds."""
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def asked(path: Path, question: Question) -> int:
    """Return how many rows the answer to a question has, from opening the store to the last line of csv."""
    with open_store(f"sqlite:{path}") as store:
        return sum(1 for _ in csv_lines(percentiles(store.answer(question), WANTED)))


def stored(path: Path, hosts: int, rounds: int) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield a row of sizes and the rows of questions for a store at each step, which it is coarsened to."""
    documents_s, rollups_s = made(path, hosts)
    for step in STEPS:
        seconds = f"{documents_s:.1f} + {rollups_s:.1f}"
        if step > SECOND:
            with open_store(f"sqlite:{path}", write=True) as store:
                seconds = f"{best(1, partial(store.coarsen, RUN.run, step)):.1f}"
        found = held(path)
        sizes = [
            str(hosts),
            f"{step // SECOND} s",
            f"{found.documents:,}",
            f"{found.rollups:,}",
            f"{found.bins / found.documents:.0f}",
            f"{found.file / found.documents:.0f}",
            f"{found.file / 1e6:,.1f}",
            seconds,
        ]
        rows = []
        for name, question in QUESTIONS.items():
            if isinstance(question.step, int) and question.step % step:
                continue
            lines = asked(path, question)
            shown = f"{1000 * best(rounds, partial(asked, path, question)):,.0f}"
            rows.append([str(hosts), f"{step // SECOND} s", name, f"{lines - 1:,}", shown])
        yield sizes, rows


def sent() -> list[list[str]]:
    """Return rows of what a document is in a bulk request, by step: bins, bytes of both lines."""
    windows, source = windows_of(0), SourceRecord(RUN.run, "fio-hist|host00000", "0", 0, "0")
    rows = []
    for step in STEPS:
        wide = windows if step == SECOND else merged([coarsened(windows, step)])
        chunks = interval_chunks(wide, replace(RUN, step_ns=step), source, Names("tailboard"))
        size = sum(len(chunk.body) for chunk in chunks)
        rows.append(
            [
                f"{step // SECOND} s",
                f"{len(wide.bins) / len(wide):.0f}",
                f"{size / len(wide):,.0f}",
                f"{size / len(wide.bins):.1f}",
            ]
        )
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="10,100,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, help="Where the stores are made [default: a folder that is deleted again].")
    words = parser.parse_args()
    folder = words.data or Path(tempfile.mkdtemp(prefix="scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    sizes: list[list[str]] = []
    questions: list[list[str]] = []
    try:
        for hosts in map(int, words.hosts.split(",")):
            path = folder / f"scale-{hosts}.db"
            for stale in folder.glob(f"{path.name}*"):
                stale.unlink()
            for row, rows in stored(path, hosts, words.rounds):
                print(f"\r{hosts} hosts at {row[1]}", end="", file=sys.stderr, flush=True)
                sizes.append(row)
                questions += rows
    finally:
        if not words.data:
            shutil.rmtree(folder)
    print(file=sys.stderr)
    print(f"load average {os.getloadavg()[0]:.1f}")
    headings = (
        "hosts",
        "step",
        "documents",
        "rollups",
        "bins B/doc",
        "file B/doc",
        "file MB",
        "documents + rollups, or coarsened, s",
    )
    print_table("SQLite: what a store holds", headings, sizes)
    print_table(
        "SQLite: what a question costs, from opening the store to csv", ("hosts", "step", "question", "rows", "ms"), questions
    )
    print_table(
        "Elasticsearch: what is sent for a document (counted, no server)", ("step", "bins", "bytes", "bytes a bin"), sent()
    )


if __name__ == "__main__":
    main()
