"""How near the readers come to compiled programs: CPU seconds of whole processes, by turns.

    python benchmarks/kernels.py [fio host load gigabyte hdr raw gz insert] [--rounds N] [--data FOLDER] [--anchors PYTHON]

fio       104 MB of fio histogram logs (32 files) at 10 s, beside `compiled/fio_checked.c`, which checks all, built by gcc
host      466 MB of one host (144 files) with `--jobs 1`, beside the same
load      `load` of the logs of `host` into SQLite at 10 s, findings included, with `--jobs 1`, beside the same
gigabyte  the logs of `fio` ten times over, as ten hosts
hdr       20,000 HdrHistogram intervals, beside the crate `hdrhistogram` (`compiled/hdr`, built by cargo) and beside base64 and
          zlib of the standard library alone; the log is written by Java (see `hdr.py`)
raw       30 million raw samples, beside pyarrow, polars and duckdb reading the columns
gz        the logs of `fio`, and the example archive, as .gz beside the same logs plain
insert    `load` of the logs of `fio` into SQLite, beside a process that inserts the same rows (bare bulk: `elastic.py cpu`)

CPU seconds are user and system time of a process and its children, so they hold on a busy machine nearly as on a quiet one;
seconds by the clock are shown beside them. Ratios are medians of pairs. A compiler or library that is not there is said, and left
out; polars and duckdb may be those of another Python (`--anchors`).
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import generate
import hdr
import raw

HERE = Path(__file__).parent
COMPILED, EXAMPLE = HERE / "compiled", HERE.parent / "examples" / "cbt-archive"
RAW_SAMPLES, RAW_FILES = raw.SAMPLES, raw.FILES
JAR = "/usr/share/java/hdrhistogram.jar"
COPIES, HOST_FILES = 10, 144
ALONE = """
import base64, sys, zlib
for line in open(sys.argv[1], "rb"):
    if line[:1] not in b'#"':
        zlib.decompress(base64.b64decode(line.rsplit(b",", 1)[1])[8:])
"""
COLUMNS = {
    "pyarrow": raw.COLUMNS,
    "polars": """
import sys, polars
print(sum(len(polars.read_csv(path, has_header=False)) for path in sys.argv[1:]))
""",
    "duckdb": """
import sys, duckdb
told = "header=false, columns={" + ", ".join(f"'{name}': 'BIGINT'" for name in "tvdsp") + "}"
sums = ", ".join(f"sum({name})" for name in "tvdsp")
for path in sys.argv[1:]:
    duckdb.sql(f"SELECT count(*), {sums} FROM read_csv('{path}', {told})").fetchall()
""",
}
INSERTS = """
import sqlite3, sys
made, bare = (sqlite3.connect(path, isolation_level=None) for path in sys.argv[1:])
bare.execute("PRAGMA journal_mode = WAL"), bare.execute("PRAGMA synchronous = NORMAL")
for name, statement in made.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
    bare.execute(statement), bare.execute("BEGIN")
    rows = made.execute(f"SELECT * FROM {name}")
    bare.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows.description))})", rows), bare.execute("COMMIT")
"""

FRESH = 'rm -f "$0" "$0"-*; exec "$@"'

Usage = tuple[float, float]  # CPU seconds, seconds by the clock


def spent(command: Sequence[str]) -> Usage:
    """Return what a command took; SystemExit where it fails."""
    env = {name: value for name, value in os.environ.items() if name not in hdr.UNLIKE_USERS}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command[:4])}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - began


def beside(title: str, ours: Sequence[str], theirs: Sequence[str], rounds: int, most: float | None = None) -> None:
    """Print how many times as much CPU, and time by the clock, one command takes as another; both run by turns."""
    spent(ours), spent(theirs)
    pairs = [(spent(ours), spent(theirs)) for _ in range(rounds)]
    middle = [[statistics.median(pair[side][what] for pair in pairs) for what in (0, 1)] for side in (0, 1)]
    ratios = [statistics.median(mine[what] / their[what] for mine, their in pairs) for what in (0, 1)]
    bound = "" if most is None else f" | {most:g} | {'met' if ratios[0] <= most else 'NOT met'}"
    shown = " | ".join(f"{cpu:.2f} ({clock:.2f})" for cpu, clock in middle)
    print(f"| {title} | {shown} | {ratios[0]:.2f} ({ratios[1]:.2f}){bound or ' | |'} |", flush=True)


def c_program(data: Path) -> list[str] | None:
    """Return the command of the C program, compiled anew for this processor; None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("no C compiler is here: the compiled program is left out", file=sys.stderr)
        return None
    target = data / "fio_checked"
    subprocess.run([compiler, "-O3", "-march=native", "-o", str(target), str(COMPILED / "fio_checked.c")], check=True)
    return [str(target)]


def rust_crate(data: Path) -> list[str] | None:
    """Return the command of the Rust program, built where it is not yet; None where it cannot be."""
    target = data / "cargo"
    if shutil.which("cargo") is None:
        print("no cargo is here: the Rust crate is left out", file=sys.stderr)
        return None
    shutil.copytree(COMPILED / "hdr", target / "source", dirs_exist_ok=True)
    words = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(target / "source" / "Cargo.toml")]
    if subprocess.run([*words, "--target-dir", str(target / "built")], check=False).returncode:
        print("cargo cannot build it (no registry?): the Rust crate is left out", file=sys.stderr)
        return None
    return [str(target / "built" / "release" / "hdr-intervals")]


def hdr_log(data: Path) -> Path:
    """Return the log of 20,000 intervals; SystemExit where it has to be written and there is no Java."""
    path = data / "hdr-0.hlog"
    if not path.exists() and not (shutil.which("javac") and Path(JAR).exists()):
        raise SystemExit("needs a JDK and HdrHistogram: apt-get install default-jdk-headless libhdrhistogram-java")
    return path if path.exists() else hdr.logs(data, JAR)[0]


def raw_logs(data: Path) -> Path:
    """Return the folder of the raw logs."""
    return raw.logs(data, RAW_FILES, RAW_SAMPLES)


def _beside_c(title: str, folder: Path, words: argparse.Namespace, most: float | None, *more: str) -> None:
    asked = ["percentiles", str(folder), "--step", "10s", "-p", "50,90,99", "--by", "op", "--format", "csv", *more]
    _command_beside_c(title, folder, words, most, [words.tailboard, *asked])


def _command_beside_c(title: str, folder: Path, words: argparse.Namespace, most: float | None, command: Sequence[str]) -> None:
    if program := c_program(words.data):
        files = map(str, sorted(path for path in folder.iterdir() if not path.name.startswith(".")))
        beside(f"{title}, beside the C program", command, [*program, *files], words.rounds, most)


def fio(words: argparse.Namespace) -> None:
    """Compare on 104 MB of fio logs."""
    _beside_c("104 MB of fio logs", generate.logs(words.data, generate.LogSet()), words, None)


def host(words: argparse.Namespace) -> None:
    """Compare on 466 MB of fio logs of one host, in one process."""
    _beside_c("466 MB of one host", generate.logs(words.data, generate.LogSet(files=HOST_FILES)), words, 2, "--jobs", "1")


def loaded(words: argparse.Namespace) -> None:
    """Compare a load of these logs."""
    folder, made = generate.logs(words.data, generate.LogSet(files=HOST_FILES)), words.data / "host.db"
    _command_beside_c("load of 466 MB of one host", folder, words, 5, _loading(words, folder, made))


def gigabyte(words: argparse.Namespace) -> None:
    """Compare on 1 GB of fio logs."""
    folder = generate.repeated(generate.logs(words.data, generate.LogSet()), words.data / "gigabyte", COPIES)
    _beside_c("1 GB of fio logs", folder, words, None)


def intervals(words: argparse.Namespace) -> None:
    """Compare on 20,000 HdrHistogram intervals, in one process as the others are."""
    log = str(hdr_log(words.data))
    asked = ["--step", "1s", "-p", "50,90,99", "--recorded-unit", "ns", "--format", "csv"]
    ours = [words.tailboard, "percentiles", log, *asked]
    if crate := rust_crate(words.data):
        beside("20,000 HdrHistogram intervals, beside the Rust crate", [*ours, "--jobs", "1"], [*crate, log], words.rounds, 1.2)
        beside("the same with two processes", [*ours, "--jobs", "2"], [*crate, log], words.rounds)
    alone = [sys.executable, "-S", "-c", ALONE, log]
    beside("the same, beside a process of base64 and zlib alone", [*ours, "--jobs", "1"], alone, words.rounds, 3)


def samples(words: argparse.Namespace) -> None:
    """Compare on 30 million raw samples."""
    folder = raw_logs(words.data)
    asked = ["--fio-version", "3.33", "--step", "1s", "-p", "50,95,99,99.9", "--format", "csv"]
    files = list(map(str, sorted(path for path in folder.iterdir() if not path.name.startswith("."))))
    for library, program in COLUMNS.items():
        python = sys.executable if library == "pyarrow" else words.anchors
        if subprocess.run([python, "-c", f"import {library}"], stderr=subprocess.DEVNULL, check=False).returncode:
            print(f"{library} is not installed: it is left out", file=sys.stderr)
            continue
        ours, most = [words.tailboard, "percentiles", str(folder), *asked], 1.5 if library == "pyarrow" else None
        beside(f"30 M raw samples, beside {library}", ours, [python, "-c", program, *files], words.rounds, most)


def inserted(words: argparse.Namespace) -> None:
    """Compare a load with inserting the rows that it makes."""
    folder, made, bare = generate.logs(words.data, generate.LogSet()), words.data / "made.db", words.data / "bare.db"
    theirs = [sys.executable, "-S", "-c", INSERTS, str(made), str(bare)]
    title = "load of 104 MB of fio logs at 10 s, findings included, beside inserting its rows"
    beside(title, _loading(words, folder, made), ["sh", "-c", FRESH, str(bare), *theirs], words.rounds)


def _loading(words: argparse.Namespace, folder: Path, made: Path) -> list[str]:
    """Return the command of a load into a new store."""
    load = [words.tailboard, "load", str(folder), "--run", "r", "--step", "10s", "--jobs", "1", "--store", f"sqlite:{made}"]
    return ["sh", "-c", FRESH, str(made), *load]


def compressed(words: argparse.Namespace) -> None:
    """Compare .gz with plain logs."""
    plain = generate.logs(words.data, generate.LogSet())
    unpacked = words.data / "example"
    for path in sorted(EXAMPLE.rglob("*")):
        if path.is_file():
            target = unpacked / path.relative_to(EXAMPLE)
            target.parent.mkdir(parents=True, exist_ok=True)
            packed = path.suffix == ".gz"
            (target.with_suffix("") if packed else target).write_bytes(
                gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
            )
    for title, folder, limit in (("104 MB of fio logs", plain, None), ("the example archive", unpacked, 1.5)):
        packed_logs = words.data / f"{folder.parent.name}-{folder.name}-gz"
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            log = "_clat_hist" in path.name or "_lat" in path.name or path.suffix == ".log"
            target = packed_logs / path.relative_to(folder).with_name(path.name + (".gz" if log else ""))
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(gzip.compress(path.read_bytes(), mtime=0) if log else path.read_bytes())
        asked = ["--step", "1s", "--format", "csv", "--jobs", "1"]
        of_packed, of_plain = ([words.tailboard, "percentiles", str(each), *asked] for each in (packed_logs, folder))
        beside(f"{title} in .gz, beside plain", of_packed, of_plain, words.rounds, limit)


ROWS: dict[str, Callable[[argparse.Namespace], None]] = {
    "fio": fio,
    "host": host,
    "load": loaded,
    "gigabyte": gigabyte,
    "hdr": intervals,
    "raw": samples,
    "gz": compressed,
    "insert": inserted,
}


def main() -> None:
    """Print the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)} [default: all]")
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--anchors", default=sys.executable, metavar="PYTHON", help="A Python that has polars and duckdb.")
    parser.add_argument("--tailboard", default=str(Path(sys.executable).with_name("tailboard")))
    words = parser.parse_args()
    unknown = [row for row in words.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}: there are {', '.join(ROWS)}")
    words.data = words.data.resolve()
    words.data.mkdir(parents=True, exist_ok=True)
    print(f"load {os.getloadavg()[0]:.1f} at the start; CPU seconds (seconds by the clock)\n")
    print("| work | ours | theirs | ratio | at most | |\n|---|---|---|---|---|---|")
    for row in words.rows or ROWS:
        ROWS[row](words)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
