"""What many small things cost: 10,000 small fio logs, 500 archives, and questions and a page over 500 runs of a SQLite store.

    python benchmarks/many.py FOLDER [--files 10000] [--archives 500] [--runs 500] [--rounds 3] [--tailboard COMMAND ...]

Several commands (of the code before and after) are measured by turns. The data stays in FOLDER, about 1 GB.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

BINS = 1856
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "cbt-archive"


def log(path: Path, random: np.random.Generator, rows: int, centre: int) -> None:
    """Write a histogram log of a row a second, about 20 bins of each occupied."""
    with path.open("w", encoding="ascii") as out:
        for second in range(1, rows + 1):
            cells = np.zeros(BINS, np.int64)
            cells[random.integers(centre, centre + 90, 20)] = random.integers(1, 50, 20)
            out.write(f"{1000 * second}, 0, 4096, {', '.join(map(str, cells.tolist()))}\n")


def small_logs(folder: Path, files: int) -> Path:
    """Return a folder of logs of 5 rows, 100 of each host, made unless it is there."""
    if not folder.exists():
        folder.mkdir(parents=True)
        random = np.random.default_rng(1)
        for number in range(files):
            log(folder / f"job_clat_hist.{number % 100 + 1}.log.host{number // 100:03d}", random, 5, 850)
    return folder


def archives(folder: Path, number: int) -> Path:
    """Return a folder of archives, each the example with other time stamps, made unless it is there."""
    if not folder.exists():
        for copy in range(number):
            target = folder / f"night-{copy:03d}"
            shutil.copytree(EXAMPLE, target)
            for path in target.rglob("*_hist.*"):
                stamp, rest = gzip.decompress(path.read_bytes()).split(b",", 1)
                path.write_bytes(gzip.compress(b"%d,%b" % (int(stamp) + copy % 7, rest), 1, mtime=copy))
    return folder


def store_of(folder: Path, runs: int) -> Path:
    """Return a store of runs of 2 hosts and half a minute, each loaded by itself, made unless it is there."""
    store = folder / f"runs-{runs}.db"
    if not store.exists():
        from ingest.cli import run as tailboard

        random = np.random.default_rng(7)
        for number in range(runs):
            logs = folder / "runs" / f"nightly-{number:03d}"
            logs.mkdir(parents=True, exist_ok=True)
            for host in "ab":
                log(logs / f"job_clat_hist.1.log.host{host}", random, 30, 880 + number // 60 * 2)
            start = ["--t0", str(1_790_000_000 + 3600 * number), "--jobs", "1"]
            tailboard(["load", str(logs), "--run", logs.name, "--store", f"sqlite:{store}", *start])
    return store


def cpu(command: list[str]) -> float:
    """Return the CPU seconds of a command and of all that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the CPU seconds of each question by each command: the median of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--archives", type=int, default=500)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tailboard", nargs="+", default=[str(Path(sys.executable).with_name("tailboard"))])
    words = parser.parse_args()
    logs = small_logs(words.folder / f"small-{words.files}", words.files)
    first, store = min(logs.iterdir()), f"sqlite:{store_of(words.folder, words.runs)}"
    alone = small_logs(words.folder / "small-1", 1)  # a log is asked with what lies beside it
    nights = archives(words.folder / f"archives-{words.archives}", words.archives)
    questions = {
        "--help": ["--help"],
        "one small log": ["percentiles", str(alone), "--format", "csv"],
        f"one of {words.files:,} small logs": ["percentiles", str(first), "--format", "csv"],
        f"{words.files:,} small logs": ["percentiles", str(logs), "--step", "all", "--by", "host", "--format", "csv"],
        f"{words.archives} archives": ["percentiles", str(nights), "--step", "all", "--by", "run", "--format", "csv"],
        "trend": ["trend", store, "-p", "99", "--format", "csv"],
        "percentiles by run": ["percentiles", store, "--run", "*", "--by", "run,op", "--step", "all", "--format", "csv"],
        "runs list": ["runs", "list", "--store", store],
        "report": ["report", store, "--run", "*", "-o", str(words.folder / "report.html")],
    }
    print(f"load {os.getloadavg()[0]:.1f}; CPU seconds of {', '.join(words.tailboard)}")
    for name, question in questions.items():
        rounds = [[cpu([command, *question]) for command in words.tailboard] for _ in range(words.rounds)]
        medians = [f"{statistics.median(seconds):.2f}" for seconds in zip(*rounds, strict=True)]
        print(f"| {name} | {' | '.join(medians)} |", flush=True)


if __name__ == "__main__":
    main()
