"""How fast a load writes the logs into SQLite."""

from __future__ import annotations

import generate
import upstream
from generate import LogSet
from measure import FRESH, RATIO_HEADINGS, Bench, by_turns, print_table, ratio_rows

FLOOR = 12
OURS = "tailboard load"


def load(bench: Bench) -> None:
    """Print the ratio of fio-histo-log-pctiles.py to a load of the same logs into a new SQLite store."""
    folder = generate.logs(bench.folder, LogSet())
    commands = {
        upstream.PCTILES: upstream.pctiles(bench, sorted(folder.glob("*.log"))),
        OURS: command(bench, str(folder)),
    }
    times = by_turns(bench, commands)
    print_table("load into SQLite", RATIO_HEADINGS, ratio_rows(times, OURS, {upstream.PCTILES: FLOOR}))


def command(bench: Bench, folder: str) -> list[str]:
    """Return the command of a load into a store that is not there yet."""
    return [bench.tailboard, "load", folder, "--run", "bench", "--store", f"sqlite:{FRESH}.db", "--json"]
