"""What a host of a fleet costs, with and without `load --add-up job`: documents, bytes, CPU (see docs/guides/scale.md).

    python benchmarks/fleet.py [--hosts 8] [--rounds 3] [--step 10s]

Each host has 4 jobs of fio with a log each: 10 minutes, a row a second of each of two ops, 60 to 150 occupied bins a row, made
from seeds. All hosts are loaded at once, into the double of Elasticsearch in this process and a SQLite file, in turns. CPU is
that of the load alone, user and system time of its whole process tree, start included.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
import orjson
from generate import LogSet, _rows
from measure import print_table

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.doubles.elasticsearch import ElasticsearchDouble

JOBS, MINUTES = 4, 10
ZERO = "2026-11-01T00:00:00Z"
WAYS = {"as they are": [], "--add-up job": ["--add-up", "job"]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--step", default="10s")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        hosts = made(Path(folder) / "logs", options.hosts)
        cpu: dict[tuple[str, str], list[float]] = {}
        sent: dict[str, dict[str, tuple[int, int]]] = {}
        held: dict[str, tuple[int, int]] = {}
        for turn in range(options.rounds):
            for name, words in WAYS.items():
                with ElasticsearchDouble() as double:
                    tailboard("setup", "--elasticsearch", double.url)
                    cpu.setdefault((name, "server"), []).append(load(hosts, double.url, [*words, "--step", options.step]))
                    sent[name] = counted(double)
                store = Path(folder) / f"{turn} {name}.db"
                cpu.setdefault((name, "sqlite"), []).append(load(hosts, f"sqlite:{store}", [*words, "--step", options.step]))
                documents = sqlite3.connect(store).execute("SELECT count(*) FROM intervals").fetchone()[0]
                held[name] = documents, store.stat().st_size
                store.unlink()
        hours = options.hosts * MINUTES / 60
        for name in WAYS:
            (documents, size), (rollups, _), (_, bulk) = (sent[name][kind] for kind in ("intervals", "rollups", "bulk"))
            per_hour = [f"{np.median(cpu[name, kind]) / hours:.2f}" for kind in ("server", "sqlite")]
            rows.append(
                [
                    name,
                    f"{documents / hours:,.0f}",
                    f"{rollups / hours:,.0f}",
                    f"{size / documents:,.0f}",
                    f"{bulk / hours / 1e6:,.1f}",
                    f"{held[name][1] / hours / 1e6:,.1f}",
                    *per_hour,
                ]
            )
        ratios = [
            np.median(np.array(cpu["--add-up job", kind]) / np.array(cpu["as they are", kind])) for kind in ("server", "sqlite")
        ]
    headings = ["logs", "documents", "rollups", "bytes a document", "MB sent", "MB of SQLite", "CPU s, server", "CPU s, SQLite"]
    print_table(f"an hour of a host, {options.hosts} hosts at {options.step}", headings, rows)
    print(f"CPU with --add-up job, median of pairs: {ratios[0]:.2f} times (server), {ratios[1]:.2f} times (SQLite)")


def made(folder: Path, hosts: int) -> Path:
    """Return the folder of hosts, each with its logs: rows of reads and writes by turns, of a second each."""
    wanted = LogSet(rows=MINUTES * 60)
    for host in range(hosts):
        place = folder / f"h{host + 1}"
        place.mkdir(parents=True)
        for job in range(JOBS):
            with (place / f"bench_clat_hist.{job + 1}.log").open("w") as out:
                ops = [_rows(wanted, np.random.default_rng(100 * host + 10 * job + op)) for op in (0, 1)]
                for rows in zip(*ops, strict=True):
                    for op, row in enumerate(rows):
                        stamp, _, rest = row.split(",", 2)
                        out.write(f"{stamp}, {op},{rest}")
    return folder


def tailboard(*words: str) -> float:
    """Return the CPU seconds of a command; an error ends the benchmark."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "ingest", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def load(hosts: Path, store: str, words: list[str]) -> float:
    """Return the CPU seconds of a load."""
    return tailboard("load", str(hosts), "--run", "fleet", "--store", store, "--t0", ZERO, *words)


def counted(double: ElasticsearchDouble) -> dict[str, tuple[int, int]]:
    """Return, by kind of index, how many documents there are, and their bytes; of `bulk` requests and their bytes."""
    found: dict[str, tuple[int, int]] = {}
    for kind in ("intervals", "rollups"):
        held = double.documents(f"tailboard-{kind}-*")
        found[kind] = len(held), sum(len(orjson.dumps(document)) for document in held.values())
    bulk = [seen.length for seen in double.requests if "_bulk" in seen.path]
    return {**found, "bulk": (len(bulk), sum(bulk))}


if __name__ == "__main__":
    main()
