"""Raw fio logs: 30 million samples in 128 files to percentiles at 1 s, beside pyarrow reading the columns and fiologparser.py.

    python benchmarks/raw.py [--data FOLDER] [--rounds N] [--files N] [--samples N]

The logs are generated (seeded; 10 minutes, reads and writes, log-normal latencies with a slow tail, as fio 3.18 and later
write them; 780 MB). Whole processes are timed in turn. pyarrow reads all columns of the same files with all its threads and
does nothing else. fio's script reads logs of four columns only and would take a quarter of an hour for all files, so it gets
a share of four, with the last column cut off, and so do we. Needs pyarrow, and fio's Debian package for the script.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import MB, Bench, BenchmarkError, by_turns, peak
from upstream import script

HERE = Path(__file__).parent
FILES, SAMPLES, SECONDS, SHARE = 128, 30_000_000, 600, 4
TWICE, THIRTY_TIMES, MOST_BYTES = 2.0, 30.0, 500 * MB
COLUMNS = """
import sys
import pyarrow.csv
names = ["time", "value", "direction", "size", "priority"]
rows = 0
for path in sys.argv[1:]:
    rows += len(pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(column_names=names)))
print(rows)
"""


def logs(folder: Path, files: int, samples: int) -> Path:
    """Return the folder of the logs, written unless they are there whole."""
    target = folder / f"raw-{files}x{samples // files}"
    if (target / "complete").exists():
        return target / "logs"
    (target / "logs").mkdir(parents=True, exist_ok=True)
    count = samples // files
    for number in range(files):
        random = np.random.default_rng(number)
        stamps = np.sort(random.integers(0, SECONDS * 1000, count))
        latency = np.exp(random.normal(13.5, 0.6, count)).astype(np.int64)
        latency[random.random(count) < 0.01] *= 20
        writes = (random.random(count) < 0.3).astype(np.int64)
        rows = map("%d, %d, %d, 4096, 0\n".__mod__, zip(stamps.tolist(), latency.tolist(), writes.tolist(), strict=True))
        (target / "logs" / f"output.{number % 4}_clat.1.log.h{number // 4:02d}").write_text("".join(rows), encoding="ascii")
    (target / "complete").touch()
    return target / "logs"


def four_columns(path: Path, target: Path) -> Path:
    """Return a log without its last column, as fio up to 3.17 wrote it: the only kind that fio's script reads."""
    target.write_bytes(path.read_bytes().replace(b", 0\n", b"\n"))
    return target


def verdict(value: float, bound: float, *, most: bool) -> str:
    """Return whether a figure keeps its bound."""
    return "met" if (value <= bound if most else value >= bound) else "NOT met"


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--fio", type=Path, default=Path("/usr/share/doc/fio"))
    parser.add_argument("--tailboard", default=str(Path(sys.executable).with_name("tailboard")))
    words = parser.parse_args()
    folder = logs(words.data, words.files, words.samples)
    paths = sorted(folder.iterdir())
    size = sum(path.stat().st_size for path in paths) / MB
    print(f"{words.samples:,} samples, {len(paths)} files, {size:.0f} MB; load {os.getloadavg()[0]:.1f} at the start")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(words.data, Path(scratch), words.tailboard, words.fio, words.rounds)
        asked = ["--step", "1s", "-p", "50,95,99,99.9", "--format", "csv"]
        ours = [words.tailboard, "percentiles", str(folder), "--fio-version", "3.33", *asked]
        theirs = [sys.executable, "-c", COLUMNS, *map(str, paths)]
        times = by_turns(bench, {"pyarrow": theirs, "percentiles": ours})
        ratios = times["percentiles"].over(times["pyarrow"])
        middle = statistics.median(ratios)
        print(f"pyarrow, all columns: {times['pyarrow'].shown()} s; percentiles at 1 s: {times['percentiles'].shown()} s")
        spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{middle:.2f} times as long {spread}, at most {TWICE:g}: {verdict(middle, TWICE, most=True)}")
        found = peak(bench, "percentiles", ours)
        told = f"peak of all processes {found.pss / MB:.0f} MB ({found.anonymous / MB:.0f} MB of them not backed by files)"
        print(f"{told}, at most {MOST_BYTES / MB:.0f}: {verdict(found.pss, MOST_BYTES, most=True)}")
        try:
            share = [four_columns(path, Path(scratch) / f"x_clat.{number}.log") for number, path in enumerate(paths[:SHARE])]
            parser_of_fio = [sys.executable, script(bench, "fiologparser.py"), "-a", "-i", "1000", *map(str, share)]
            of_share = [words.tailboard, "percentiles", *map(str, share), "--fio-version", "3.17", *asked]
            once = Bench(words.data, Path(scratch), words.tailboard, words.fio, 1)
            part = by_turns(once, {"fiologparser.py": parser_of_fio, "percentiles": of_share})
        except BenchmarkError as error:
            raise SystemExit(str(error)) from None
        slow, quick = part["fiologparser.py"].median, part["percentiles"].median
        print(f"{SHARE} files: fiologparser.py -a (means only) {slow:.1f} s, percentiles {quick:.2f} s: {slow / quick:.0f} times")
        whole = slow * len(paths) / SHARE / times["percentiles"].median
        floor = f"floor {THIRTY_TIMES:g}: {verdict(slow / quick, THIRTY_TIMES, most=False)}"
        print(f"{floor}; all files, at its speed for {SHARE}: {whole:,.0f} times")
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
