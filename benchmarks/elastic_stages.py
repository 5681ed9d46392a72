"""Where the time of a load into Elasticsearch goes: CPU by stages, and requests by what they are for, carry and take.

    python benchmarks/elastic_stages.py FOLDER STORE RUN          prints JSON

The load runs in this process alone, so that its CPU can be told apart. Senders wait for answers at the same time as the load
reads, so the seconds of bodies of documents do not add up to those of the load.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ingest import http
from ingest.core.pool import keep_freed_memory
from ingest.core.units import parse_instant
from ingest.load import load as loading
from ingest.load.plan import LoadOptions
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.rollups import HostTotals
from ingest.store.elastic.store import ElasticStore
from ingest.store.findings import EarlyStory

ZERO = "2026-11-01T00:00:00Z"
RECORDS = "-runs"
FINDINGS = "findings, with what is read for them"
STAGES = (
    (ElasticStore, "packed", "making documents"),
    (HostTotals, "add", "adding up windows for rollups"),
    (HostTotals, "sums", "adding up windows for rollups"),
    (ElasticStore, "write", "handing documents to the senders"),
    (Sender, "_deliver", "sending, and judging answers"),
    (ElasticStore, "finish_run", "rollups, and records of sources"),
    (EarlyStory, "_work", FINDINGS),  # while documents and rollups are sent
    (loading, "write_findings", FINDINGS),
)


class Stages:
    """Counts the requests of all clients of this process, their bytes and their seconds, by name."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self._lock = threading.Lock()
        self._real = http.Client.exchange

    def exchange(
        self, client: http.Client, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> http.Answer:
        """Return the answer to a request, which is counted."""
        began = time.perf_counter()
        answer = self._real(client, method, target, body, headers)
        took = time.perf_counter() - began
        with self._lock:
            row = self.rows.setdefault(named(target, body), [0, 0, 0, 0.0])
            for place, more in enumerate((1, len(body or b""), len(answer.body), took)):
                row[place] += more
        return answer


def named(target: str, body: bytes | None) -> str:
    """Return what a request is for."""
    path = urlsplit(target).path
    index = path.split("/")[1] if path.count("/") > 1 else ""
    if path.endswith("_bulk"):
        head = (body or b"")[:200].split(b'"_index":"')[-1].split(b'"')[0].decode()
        return "records" if head.endswith(RECORDS) else f"bodies of {'rollups' if '-rollups-' in head else 'documents'}"
    if path.endswith("_refresh"):
        return "refreshes"
    if path.endswith(("_search", "_pit", "_msearch")):
        kinds = {"intervals": "documents read", "rollups": "rollups read", "findings": "findings"}
        return next(
            (name for kind, name in kinds.items() if f"-{kind}" in index), "records" if RECORDS in index else "pages read"
        )
    return "records" if RECORDS in index else "contact and templates"


class Cpu:
    """CPU seconds of functions, each without those of others that it calls, by the name of their stage; threads apart."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = threading.local()

    def count(self, owner: Any, name: str, stage: str) -> None:
        """Count a function of a module or class from now on."""
        real = getattr(owner, name)
        self.seconds.setdefault(stage, 0.0)

        def counted(*words: Any, **named: Any) -> Any:
            outer = getattr(self._inner, "seconds", 0.0)
            self._inner.seconds = 0.0
            began = time.thread_time()
            try:
                return real(*words, **named)
            finally:
                took = time.thread_time() - began
                self.seconds[stage] += took - self._inner.seconds
                self._inner.seconds = outer + took

        setattr(owner, name, counted)


def main() -> None:
    """Load, and print what it took."""
    folder, url, run = sys.argv[1:]
    keep_freed_memory()
    stages = Stages()

    def exchange(client: http.Client, *words: Any) -> http.Answer:
        return stages.exchange(client, *words)

    http.Client.exchange = exchange  # type: ignore[assignment, method-assign]  # as every client of this process is to be counted
    cpu = Cpu()
    for owner, name, stage in STAGES:
        cpu.count(owner, name, stage)
    before = time.process_time()
    began = time.perf_counter()
    with open_store(url, write=True) as store:
        reading = ReadOptions(run=run, t0=parse_instant(ZERO).epoch_ns(0))
        account = loading.load([Path(folder)], store, LoadOptions(read=reading, jobs=1))
    took = time.perf_counter() - began
    whole = time.process_time()
    stages_cpu = {
        "starting": before,
        "reading, checking and cutting logs": whole - before - sum(cpu.seconds.values()),
        **cpu.seconds,
    }
    found = {"seconds": took, "cpu": whole, "documents": account.documents, "stages": stages.rows, "stages_cpu": stages_cpu}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
