"""HdrHistogram logs: percentiles over time beside Java's HistogramLogProcessor, and the union of eight logs in flat memory.

    python benchmarks/hdr.py [--data FOLDER] [--rounds N] [--jar HdrHistogram.jar] [--hdrh PYTHON]

Eight logs are written by Java (20,000 intervals of 1,000 samples, 3 digits, about 870 bins an interval, 20 MB each). Whole
processes are timed in turn, and the median of the pairs' ratios is told. Needs a JDK; the jar is Debian's
libhdrhistogram-java, or one of Maven Central. The `hdrhistogram` package is measured too where it is installed.
"""

from __future__ import annotations

import argparse
import base64
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

HERE = Path(__file__).parent
JAVA = HERE.parent / "tests" / "java"
INTERVALS, SAMPLES, LOGS = 20_000, 1_000, 8
# As users run it: modules compiled once (the first run, not timed), standard output in blocks.
UNLIKE_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
TWICE, TEN_TIMES, FOUR_TIMES = 2.0, 10.0, 4.0
PYTHON = """
import sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000000, 3))
while (histogram := reader.get_next_interval_histogram()) is not None:
    histogram.get_percentile_to_value_dict([50, 90, 99])
"""


def timed(command: list[str]) -> tuple[float, float]:
    """Return the seconds that a whole process took, and its peak memory in MB."""
    with tempfile.TemporaryFile() as out:
        env = {name: value for name, value in os.environ.items() if name not in UNLIKE_USERS}
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"failed: {' '.join(command)}")
        return time.perf_counter() - began, usage.ru_maxrss / 1024


def logs(folder: Path, jar: str) -> list[Path]:
    """Return the logs, written by Java where they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"hdr-{number}.hlog" for number in range(LOGS)]
    if all(path.exists() for path in paths):
        return paths
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-nowarn", "-cp", jar, "-d", classes, str(JAVA / "WriteLog.java")], check=True)
        for number, path in enumerate(paths):
            shape = ["3", "1", str(INTERVALS), str(SAMPLES), str(number), "3600000000000", "1700000000000", "1500000", "plain"]
            subprocess.run(["java", "-cp", f"{jar}:{classes}", "WriteLog", str(path), *shape], check=True)
    return paths


def base64_and_zlib(path: Path) -> float:
    """Return the seconds that base64 and zlib alone take for all lines."""
    lines = [line.rsplit(b",", 1)[1] for line in path.read_bytes().split(b"\n") if line and line[:1] not in b'#"']
    began = time.perf_counter()
    for line in lines:
        zlib.decompress(base64.b64decode(line)[8:])
    return time.perf_counter() - began


def beside(name: str, ours: list[str], theirs: list[str], rounds: int, floor: float) -> None:
    """Print how many times as fast ours is, both measured in turn."""
    timed(ours)
    pairs = [(timed(ours)[0], timed(theirs)[0]) for _ in range(rounds)]
    ratios = sorted(their / our for our, their in pairs)
    mine, other = statistics.median(our for our, _ in pairs), statistics.median(their for _, their in pairs)
    middle = statistics.median(ratios)
    met = "met" if middle >= floor else "NOT met"
    spread = f"({ratios[0]:.1f} to {ratios[-1]:.1f})"
    print(f"{name}: {mine:.2f} s against {other:.2f} s: {middle:.1f} times {spread}, floor {floor:g}: {met}")


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jar", default="/usr/share/java/hdrhistogram.jar")
    parser.add_argument("--tailboard", default=str(Path(sys.executable).with_name("tailboard")))
    parser.add_argument("--hdrh", default=sys.executable, help="a Python that has the hdrhistogram package")
    words = parser.parse_args()
    if not shutil.which("javac") or not Path(words.jar).exists():
        raise SystemExit("needs a JDK and HdrHistogram: apt-get install default-jdk-headless libhdrhistogram-java, or --jar")
    paths = logs(words.data, words.jar)
    size = paths[0].stat().st_size / 1e6
    print(f"{INTERVALS:,} intervals of {SAMPLES:,} samples, {size:.0f} MB; load {os.getloadavg()[0]:.1f} at the start")
    plain = ["--recorded-unit", "ns", "--format", "csv"]
    ours = [words.tailboard, "percentiles", str(paths[0]), "--step", "1s", "-p", "50,90,99", *plain]
    with tempfile.TemporaryDirectory() as scratch:
        java = ["java", "-cp", words.jar, "org.HdrHistogram.HistogramLogProcessor", "-i", str(paths[0]), "-csv"]
        java += ["-o", f"{scratch}/out"]
        beside("percentiles of each interval, against HistogramLogProcessor", ours, java, words.rounds, TWICE)
    if subprocess.run([words.hdrh, "-c", "import hdrh"], check=False, capture_output=True).returncode == 0:
        beside("the same, against the hdrhistogram package", ours, [words.hdrh, "-c", PYTHON, str(paths[0])], 1, TEN_TIMES)
    else:
        print("the hdrhistogram package is not installed here: not measured (reference: 1.05 ms an interval, 21 s)")
    for jobs in ("1", "2"):
        pairs = [(timed([*ours, "--jobs", jobs])[0], base64_and_zlib(paths[0])) for _ in range(words.rounds)]
        times = statistics.median(whole / alone for whole, alone in pairs)
        alone = statistics.median(alone for _, alone in pairs)
        met = "met" if times <= FOUR_TIMES else "NOT met"
        told = f"the whole process with --jobs {jobs} takes {times:.1f} times that"
        print(f"base64 and zlib alone: {alone:.2f} s; {told}, aim {FOUR_TIMES:g}: {met}")
    for name, command in (
        ("percentiles --step 1s", [words.tailboard, "percentiles", "--step", "1s"]),
        ("percentiles (auto)", [words.tailboard, "percentiles"]),
        ("percentiles --step all", [words.tailboard, "percentiles", "--step", "all"]),
        ("export --format hlog", [words.tailboard, "export"]),
    ):
        form = "hlog" if "export" in command else "csv"
        figures = []
        for count in (1, 2, LOGS):
            seconds, megabytes = timed([*command, *map(str, paths[:count]), "--recorded-unit", "ns", "--format", form])
            figures.append(f"{count} logs {seconds:.1f} s {megabytes:.0f} MB")
        print(f"union, {name}: {'; '.join(figures)}")
    print(f"peak of all: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
