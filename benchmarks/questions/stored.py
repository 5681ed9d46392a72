"""How fast answers from a store of 900,000 documents are."""

from __future__ import annotations

import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import generate
from measure import Bench, Times, met, print_table, wall

MOST_SECONDS, MOST_ROLLUP_SECONDS = 5.0, 0.2
STEP_NS = 10_000_000_000


def stored_query(bench: Bench) -> None:
    """Print how long a query by thread and one that rollups answer take, and the ratio to reading the same bytes."""
    path = generate.store(bench.folder / "stored.db")
    documents, size = _read(path)
    reading = _timed("read the same bytes: SELECT id, coding, bins", bench.rounds, lambda: _read(path))
    threads = _timed("query by host, job, op at 10 s", bench.rounds, lambda: _query(path, ("host", "job", "op")))
    rollups = _timed("query by op at 10 s (rollups)", bench.rounds, lambda: _query(path, ("op",)))
    commands = {name: Times(f"tailboard percentiles --by {name} --step 10s --format csv") for name in ("host,job,op", "op")}
    for name, one in commands.items():
        words = f"percentiles sqlite:{path} -p 50,95,99,99.9 --by {name} --step 10s --format csv".split()
        one.seconds = [wall(bench, [bench.tailboard, *words]) for _ in range(bench.rounds + 1)][1:]
    floors = [None, MOST_SECONDS, MOST_ROLLUP_SECONDS, MOST_SECONDS, None]
    rows = []
    for one, most in zip([reading, threads, rollups, *commands.values()], floors, strict=True):
        share = statistics.median(one.seconds) / reading.median
        verdict = met(one.median, most, at_least=False)
        rows.append([one.command, one.shown(), f"{share:.1f}", f"{most:g}" if most else "", verdict])
    title = f"stored query: {documents:,} documents, {size / 1e6:.0f} MB of packed bins"
    print_table(title, ("what", "wall s", "times reading", "at most s", "verdict"), rows)


def _timed(name: str, rounds: int, work: Callable[[], object]) -> Times:
    times = Times(name)
    for number in range(rounds + 1):
        print(f"\r{name}: round {number}".ljust(70), end="\r", file=sys.stderr, flush=True)
        began = time.perf_counter()
        work()
        times.seconds.append(time.perf_counter() - began)
    del times.seconds[0]
    return times


def _read(path: Path) -> tuple[int, int]:
    """Return how many documents there are and how many bytes their bins have, by fetching every one."""
    documents, size = 0, 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        cursor = db.execute("SELECT id, coding, bins FROM intervals")
        while rows := cursor.fetchmany(40_000):
            documents += len(rows)
            size += sum(len(row[2]) for row in rows)
    db.close()
    return documents, size


def _query(path: Path, by: tuple[str, ...]) -> None:
    """Open the store, answer, and compute the percentiles: all of a query but its start-up and its output."""
    from ingest.core.quantiles import parse_percentiles
    from ingest.query.percentiles import Wanted, percentiles
    from ingest.query.question import Question
    from ingest.store import open_store

    with open_store(f"sqlite:{path}") as store:
        answer = store.answer(Question(by=by, step=STEP_NS))
        percentiles(answer, Wanted(parse_percentiles("50,95,99,99.9")))
