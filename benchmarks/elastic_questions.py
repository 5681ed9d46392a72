"""What questions cost against Elasticsearch's double and against SQLite, of equal data: requests, bytes read, CPU of the client.

    python benchmarks/elastic_questions.py [--rounds 3] [--data FOLDER]

32 fio logs of 10 minutes, 236 occupied bins a row: 19,264 documents. The double runs in a process of its own, so that its CPU is
not counted. Each question is asked of both stores by turns, in this process; both give the same bytes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import generate
from elastic import LOGS, ZERO
from measure import MB, print_table
from servers import double

from ingest import http
from ingest.core.grid import SECOND
from ingest.core.pool import keep_freed_memory
from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view.text import csv_lines

WANTED = Wanted(parse_percentiles("50,99,99.9"))
MOST_REQUESTS, MOST_CPU = 8, 2
THREAD = ("host", "volume", "job", "op")
QUESTIONS = {
    "by job and op, every 10 s": Question(by=("job", "op"), step=10 * SECOND),
    "by thread, every 10 s": Question(by=THREAD, step=10 * SECOND),
    "by job, every second": Question(by=("job",), step=SECOND),
    "by job, every minute": Question(by=("job",), step=60 * SECOND),
    "by job, whole run": Question(by=("job",), step="all"),
    "cluster, every 10 s": Question(by=("op",), step=10 * SECOND),
    "cluster, every second": Question(by=("op",), step=SECOND),
}


class Counting:
    """Counts the requests of all clients of this process, and the bytes that they read."""

    def __init__(self) -> None:
        self.requests, self.read = 0, 0
        self._real = http.Client.exchange

    def exchange(
        self, client: http.Client, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> http.Answer:
        """Return the answer to a request, which is counted."""
        answer = self._real(client, method, target, body, headers)
        self.requests, self.read = self.requests + 1, self.read + len(answer.body)
        return answer


def tailboard(*words: str) -> None:
    """Run a command; an error ends the benchmark."""
    subprocess.run([sys.executable, "-m", "ingest", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def asked(url: str, question: Question) -> tuple[list[str], float]:
    """Return the rows of an answer, and the CPU seconds that it took to open the store and ask."""
    began = time.process_time()
    with open_store(url) as store:
        answer = store.answer(question)
    took = time.process_time() - began
    return list(csv_lines(percentiles(answer, WANTED))), took


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data")
    options = parser.parse_args()
    keep_freed_memory()
    logs = generate.logs(options.data, LOGS)
    counting = Counting()

    def exchange(client: http.Client, *words: Any) -> http.Answer:
        return counting.exchange(client, *words)

    rows = []
    with tempfile.TemporaryDirectory() as folder, double() as server:
        file = f"sqlite:{folder}/bench.db"
        tailboard("setup", "--elasticsearch", server)
        for store in (file, server):
            tailboard("load", str(logs), "--run", "bench", "--store", store, "--t0", ZERO)
        http.Client.exchange = exchange  # type: ignore[assignment, method-assign]  # as every client of this process is to be counted
        for url in (file, server):
            asked(url, QUESTIONS["cluster, every 10 s"])
        for name, question in QUESTIONS.items():
            ours, theirs = [], []
            for _ in range(options.rounds):
                expected, cpu = asked(file, question)
                theirs.append(cpu)
                counting.requests, counting.read = 0, 0
                found, cpu = asked(server, question)
                ours.append(cpu)
                assert found == expected, name
            ratio = statistics.median(own / other for own, other in zip(ours, theirs, strict=True))
            figures = [str(counting.requests), f"{counting.read / MB:.1f}"]
            rows.append([name, *figures, f"{statistics.median(ours):.3f}", f"{statistics.median(theirs):.3f}", f"{ratio:.2f}"])
    headings = ("question", "requests", "MB read", "CPU s", "CPU s, SQLite", "times")
    aims = f"aims by job or thread: {MOST_REQUESTS} requests, {MOST_CPU} times"
    print_table(f"19,264 documents of 236 bins; {aims}", headings, rows)


if __name__ == "__main__":
    main()
