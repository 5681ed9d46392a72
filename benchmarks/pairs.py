"""This code beside an older one: CPU seconds of the same commands by turns, for every row of README.md that a command answers.

    git worktree add /tmp/before 0d4513f
    python benchmarks/pairs.py --before /tmp/before [--data FOLDER] [--rounds 7] [ROW ...]

Nothing may take over 3 % more CPU than it did. Each version loads its own stores. Loads into Elasticsearch are compared by
`loads.py`, what needs a browser by `report_page.py`. A row whose rounds take long has a third of them, at least three.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import generate
import kernels
import many
import offsets
import snabb
from generate import LogSet
from loads import ROOT, RUN, ZERO, environment
from measure import FRESH

MOST = 1.03
RUNS, FILES, ARCHIVES, HOSTS = 500, 10_000, 500, 20
STORE = "{store}"
MAKE_RUNS = "import sys; from pathlib import Path; import many; many.store_of(Path(sys.argv[1]), int(sys.argv[2]))"


@dataclass(frozen=True, slots=True)
class Place:
    """Where data is, and where each version keeps what it has made itself (`own` / its name)."""

    data: Path
    own: Path


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured: the words after `tailboard`, made when the row's turn comes; {store} is what the version has loaded.

    `store` makes the words of the load of that store; `script` is a Python program of the version that takes the words instead.
    """

    title: str
    words: Callable[[Place], Sequence[str]]
    store: Callable[[Place], Sequence[str]] | None = None
    script: str = ""
    slow: bool = False


def _logs(place: Place, **shape: object) -> str:
    return str(generate.logs(place.data, LogSet(**shape)))  # type: ignore[arg-type]


def _gigabyte(place: Place) -> str:
    base = generate.logs(place.data, LogSet())
    return str(generate.repeated(base, place.data / "gigabyte", kernels.COPIES))


def _percentiles(folder: str, *more: str) -> list[str]:
    return ["percentiles", folder, "--step", "1s", "-p", "50,90,99", "--by", "op", "--format", "csv", *more]


def _packed(place: Place) -> str:
    plain, packed = generate.logs(place.data, LogSet()), place.data / "packed"
    if not packed.exists():
        shutil.copytree(plain, packed)
        subprocess.run(["gzip", "-6", *map(str, packed.glob("*.log"))], check=True)
    return str(packed)


def _timeline(place: Place) -> str:
    path = place.data / "snabb.timeline"
    if not path.exists():
        path.write_bytes(snabb.ring())
    return str(path)


def _hosts(place: Place) -> list[str]:
    folder = place.data / f"offsets-{HOSTS}"
    folder.mkdir(exist_ok=True)
    offsets.write_files(folder, HOSTS)
    return [f"--hosts={HOSTS}", "--jobs=1", "--child=all", f"--folder={folder}"]


def _load(folder: Callable[[Place], str]) -> Callable[[Place], list[str]]:
    return lambda place: ["load", folder(place), "--run", "bench", "--t0", ZERO, "--store", f"sqlite:{FRESH}", "--json"]


def _stored(*words: str) -> Callable[[Place], list[str]]:
    return lambda _: [words[0], f"sqlite:{STORE}", *words[1:]]


def _alone(place: Place) -> str:
    return str(many.small_logs(place.data / "small-1", 1))


HDR = ("--step", "1s", "-p", "50,90,99", "--recorded-unit", "ns", "--format", "csv", "--jobs", "1")
RAW = ("--fio-version", "3.33", "--step", "1s", "-p", "50,95,99,99.9", "--format", "csv")
TEN = ("--step", "10s", "--format", "csv")
ALL = ("--step", "all", "--format", "csv")
EXAMPLE = str(ROOT / "examples" / "cbt-archive")

ROWS = {
    "help": Row("`--help`", lambda _: ["--help"]),
    "small": Row("`percentiles` of one small log", lambda place: ["percentiles", _alone(place), "--format", "csv"]),
    "fio": Row("104 MB of fio logs", lambda place: _percentiles(_logs(place))),
    "dense": Row("400 filled bins a row", lambda place: _percentiles(_logs(place, nonzero=(380, 420)))),
    "coarse": Row("coarseness 3", lambda place: _percentiles(_logs(place, rows=2400, nonzero=(20, 50), coarseness=3))),
    "example": Row("the example archive", lambda _: _percentiles(EXAMPLE)),
    "gz": Row("104 MB of fio logs in .gz", lambda place: _percentiles(_packed(place))),
    "gigabyte": Row("1 GB of fio logs", lambda place: _percentiles(_gigabyte(place)), slow=True),
    "hdr": Row("20,000 HdrHistogram intervals", lambda place: ["percentiles", str(kernels.hdr_log(place.data)), *HDR]),
    "raw": Row("30 M raw samples", lambda place: ["percentiles", str(kernels.raw_logs(place.data)), *RAW], slow=True),
    "timeline": Row("a Snabb timeline", lambda place: ["percentiles", _timeline(place), "--by", "op", "--format", "csv"]),
    "timeline-load": Row("its `load`", _load(_timeline)),
    "offsets": Row(f"offsets of {HOSTS} hosts", _hosts, script="benchmarks/offsets.py", slow=True),
    "heatmap": Row("`heatmap` of 104 MB", lambda place: ["heatmap", _logs(place), "--format", "csv"]),
    "report": Row("`report` of the example archive", lambda _: ["report", EXAMPLE, "-o", FRESH]),
    "load": Row("`load` of 104 MB", _load(_logs)),
    "load-gigabyte": Row("`load` of 1 GB", _load(_gigabyte), slow=True),
    "by-job": Row("stored 1 GB by job at 10 s", _stored("percentiles", "--by", "host,job,op", *TEN), _load(_gigabyte)),
    "by-op": Row("the same by op, from rollups", _stored("percentiles", "--by", "op", *TEN), _load(_gigabyte)),
    "files": Row(
        f"{FILES:,} small logs",
        lambda place: ["percentiles", str(many.small_logs(place.data / f"small-{FILES}", FILES)), "--by", "host", *ALL],
        slow=True,
    ),
    "archives": Row(
        f"{ARCHIVES} archives",
        lambda place: ["percentiles", str(many.archives(place.data / f"archives-{ARCHIVES}", ARCHIVES)), "--by", "run", *ALL],
        slow=True,
    ),
    "trend": Row(f"`trend` over {RUNS} runs", _stored("trend", "-p", "99", "--format", "csv")),
    "runs": Row(f"`percentiles` by run over {RUNS} runs", _stored("percentiles", "--run", "*", "--by", "run,op", *ALL)),
    "list": Row(f"`runs list` of {RUNS} runs", lambda _: ["runs", "list", "--store", f"sqlite:{STORE}"]),
    "report-runs": Row(f"`report` of {RUNS} runs", _stored("report", "--run", "*", "-o", FRESH), slow=True),
}  # fmt: skip


def spent(version: Path, words: Sequence[str], script: str, scratch: Path) -> tuple[float, float]:
    """Return CPU seconds and seconds by the clock of one command of a version; SystemExit where it fails."""
    fresh = scratch / "fresh.out"
    start = [str(version / script)] if script else ["-c", RUN]
    command = [sys.executable, *start, *(word.replace(FRESH, str(fresh)) for word in words)]
    began = time.perf_counter()
    with (scratch / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=version, env=environment(version), stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(words[:3])} of {version} ended with {process.returncode}: {said.read()[-400:]}")
    for made in scratch.glob("fresh.out*"):
        made.unlink()
    return used.ru_utime + used.ru_stime, took


def store_of(row: Row, version: Path, own: Path, place: Place) -> Path:
    """Return the store that a version has loaded for a row; it is kept for the rows that ask the same."""
    if row.store is None:
        folder = own / "runs"
        if not folder.exists():
            folder.mkdir(parents=True)
            env = environment(version) | {"PYTHONPATH": f"{version}{os.pathsep}{ROOT / 'benchmarks'}"}
            made = [sys.executable, "-c", MAKE_RUNS, str(folder), str(RUNS)]
            subprocess.run(made, cwd=version, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return folder / f"runs-{RUNS}.db"
    path = own / "stored.db"
    if not path.exists():
        own.mkdir(parents=True, exist_ok=True)
        words = [word.replace(FRESH, str(path)) for word in row.store(place)]
        spent(version, words, "", own)
    return path


def measured(row: Row, versions: Sequence[Path], place: Place, rounds: int) -> str:
    """Return the line of the table for a row: CPU before and now, the median of the pairs' ratios, the same by the clock."""
    words = row.words(place)
    commands = []
    for name, version in zip(("before", "now"), versions, strict=True):
        asked = list(words)
        if any(STORE in word for word in asked):
            store = store_of(row, version, place.own / name, place)
            asked = [word.replace(STORE, str(store)) for word in asked]
        commands.append(asked)
    place.own.mkdir(parents=True, exist_ok=True)

    def once() -> list[tuple[float, float]]:
        return [spent(version, asked, row.script, place.own) for version, asked in zip(versions, commands, strict=True)]

    once()
    pairs = [once() for _ in range(max(3, rounds // 3) if row.slow else rounds)]
    middle = [[statistics.median(pair[side][what] for pair in pairs) for what in (0, 1)] for side in (0, 1)]
    cpu = sorted(now[0] / before[0] for before, now in pairs)
    clock = statistics.median(now[1] / before[1] for before, now in pairs)
    seconds = " -> ".join(f"{one[0]:.3g}" for one in middle)
    verdict = "" if statistics.median(cpu) <= MOST else "**slower**"
    spread = f"{statistics.median(cpu):.2f} ({cpu[0]:.2f} to {cpu[-1]:.2f})"
    return f"| {row.title} | {seconds} | {spread} | {clock:.2f} | {verdict} |"


def main() -> None:
    """Print the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)} [default: all]")
    parser.add_argument("--before", type=Path, required=True, help="folder with an older version")
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data", help="folder for what is generated")
    parser.add_argument("--rounds", type=int, default=7)
    words = parser.parse_args()
    unknown = [row for row in words.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}: there are {', '.join(ROWS)}")
    words.data.mkdir(parents=True, exist_ok=True)
    data = words.data.resolve()
    place = Place(data, data / "pairs")
    shutil.rmtree(place.own, ignore_errors=True)
    print(f"load {os.getloadavg()[0]:.1f} at the start; pairs: {words.rounds}, of what takes long a third")
    print("\n| work | CPU s before -> now | now / before (least to most) | by the clock | |\n|---|---|---|---|---|", flush=True)
    for name in words.rows or ROWS:
        print(measured(ROWS[name], (words.before.resolve(), ROOT), place, words.rounds), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
