"""What a start of the command costs, beside the least that Python, NumPy and click take: `percentiles` of a small log, and more.

    python benchmarks/start.py FOLDER [--rounds 21] [--tailboard COMMAND ...]

FOLDER holds the small log of `many.py`; it is made if it is not there. All are measured by turns, because CPU time of one and the
same start differs by half from minute to minute on a virtual machine: compare what stands in one table, the least with the least.
Where valgrind is there the instructions of user mode are counted, too. These differ by less than 0.1 %, whatever else runs.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from many import small_logs

ALIKE = "import gc, os; gc.set_threshold(100_000, 50, 50); "  # as the command does: few looks for garbage, no taking apart
LEAST = {
    "Python alone": "pass",
    "click": f"{ALIKE}import click; os._exit(0)",
    "NumPy": f"{ALIKE}import numpy; os._exit(0)",
    "click and NumPy": f"{ALIKE}import click, numpy; os._exit(0)",
}
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"OPENBLAS_NUM_THREADS": "1"}


def cost(command: list[str]) -> tuple[float, float]:
    """Return the CPU ms of a command and those by the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=ENVIRONMENT)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), 1e3 * (ended - began)


def instructions(command: list[str]) -> str:
    """Return how many million instructions a command takes in user mode, - without valgrind."""
    if shutil.which("valgrind") is None:
        return "-"
    counting = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    fixed = ENVIRONMENT | {"PYTHONHASHSEED": "0"}
    done = subprocess.run([*counting, *command], capture_output=True, text=True, check=True, env=fixed)
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    return f"{int(counted[1].replace(',', '')) / 1e6:.0f}" if counted else "-"


def main() -> None:
    """Print CPU ms, ms by the clock and instructions of each: the least and the median of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--tailboard", nargs="+", default=[str(Path(sys.executable).with_name("tailboard"))])
    words = parser.parse_args()
    log = small_logs(words.folder / "small-1", 1)
    commands = {name: [sys.executable, "-c", code] for name, code in LEAST.items()}
    for number, tailboard in enumerate(words.tailboard):
        which = f" ({number + 1})" if len(words.tailboard) > 1 else ""
        commands[f"`--help`{which}"] = [tailboard, "--help"]
        commands[f"`percentiles`{which}"] = [tailboard, "percentiles", str(log), "--format", "csv"]
        commands[f"`report`{which}"] = [tailboard, "report", str(log), "-o", str(words.folder / "report.html")]
    for command in commands.values():  # compiled, and in the cache of files
        cost(command)
    rounds = [{name: cost(command) for name, command in commands.items()} for _ in range(words.rounds)]
    print(f"load {os.getloadavg()[0]:.1f}; {words.rounds} rounds, least (median)")
    print("| | CPU ms | ms by the clock | million instructions |\n|---|---|---|---|")
    for name, command in commands.items():
        cells = [[costs[name][place] for costs in rounds] for place in range(2)]
        shown = [f"{min(cell):.0f} ({statistics.median(cell):.0f})" for cell in cells]
        print(f"| {name} | {' | '.join(shown)} | {instructions(command)} |", flush=True)


if __name__ == "__main__":
    main()
