"""fio's own scripts, unpacked from where Debian's fio package keeps them; nothing of them is kept here."""

from __future__ import annotations

import gzip
import sys
from importlib.util import find_spec
from pathlib import Path

from measure import Bench, BenchmarkError

PCTILES, HIST = "fio-histo-log-pctiles.py", "fiologparser_hist.py"


def script(bench: Bench, name: str) -> str:
    """Return the path of a script of fio; BenchmarkError says how to get it if it is not there."""
    target = bench.scratch / name
    if target.exists():
        return str(target)
    plain, packed = bench.fio / name, bench.fio / f"{name}.gz"
    if plain.exists():
        target.write_bytes(plain.read_bytes())
    elif packed.exists():
        target.write_bytes(gzip.decompress(packed.read_bytes()))
    else:
        raise BenchmarkError(f"{packed} is not there: install Debian's fio package, or name a folder with --fio")
    return str(target)


def pctiles(bench: Bench, files: list[Path]) -> list[str]:
    """Return the command of fio-histo-log-pctiles.py for some logs."""
    words = ["--time-quantum", "10", "--percentiles", "50", "95", "99", "99.9", "--output-unit", "usec"]
    return [sys.executable, script(bench, PCTILES), *words, *map(str, files)]


def hist(bench: Bench, files: list[Path]) -> list[str]:
    """Return the command of fiologparser_hist.py for some logs; BenchmarkError if pandas is missing."""
    if find_spec("pandas") is None:
        raise BenchmarkError(f"{HIST} needs pandas: {sys.executable} -m pip install pandas")
    return [sys.executable, script(bench, HIST), "--group_nr", "29", "-i", "10000", *map(str, files)]


def ours(bench: Bench, folder: Path) -> list[str]:
    """Return our command for the same question."""
    words = ["-p", "50,95,99,99.9", "--step", "10s", "--by", "op", "--format", "csv"]
    return [bench.tailboard, "percentiles", str(folder), *words]
