"""How much memory a query and a load of large sets of logs need."""

from __future__ import annotations

import shutil

import generate
import upstream
from generate import LogSet
from measure import MB, Bench, met, peak, print_table

from questions import loading

FLOOR_MB = 300
COPIES = {"1 GB": 10, "3 GB": 29}


def memory(bench: Bench) -> None:
    """Print the peak memory of a query and of a load of 1 GB and of 3 GB; the logs are deleted again."""
    base = generate.logs(bench.folder, LogSet())
    rows = []
    folder = bench.scratch / "large"
    try:
        for size, copies in COPIES.items():
            generate.repeated(base, folder, copies)
            commands = {"percentiles": upstream.ours(bench, folder), "load": loading.command(bench, str(folder))}
            for name, command in commands.items():
                found = peak(bench, f"{name}, {size}", command)
                most = found.pss / MB
                rows.append(
                    [
                        found.command,
                        f"{found.seconds:.1f}",
                        f"{most:.0f}",
                        f"{found.anonymous / MB:.0f}",
                        str(FLOOR_MB),
                        met(most, FLOOR_MB, at_least=False),
                    ]
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    headings = ("command", "s", "peak MB", "without file pages", "at most", "verdict")
    print_table("memory: PSS of all processes, sampled every 50 ms", headings, rows)
