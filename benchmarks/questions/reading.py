"""How fast percentiles of log files are, from the start of the process to the csv."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import generate
import stages
import upstream
from generate import LogSet
from measure import RATIO_HEADINGS, Bench, BenchmarkError, by_turns, print_table, ratio_rows, wall

ROOT = Path(__file__).parents[2]
REAL_TIMES = 10
OURS = "tailboard percentiles"
SLOW_ROUNDS = {upstream.HIST: 3}


def percentiles(bench: Bench) -> None:
    """Print the ratio to both scripts of fio on 32 files x 600 rows with 60 to 150 bins that are not zero."""
    folder = generate.logs(bench.folder, LogSet())
    compare(bench, "percentiles", folder, {upstream.HIST: 65, upstream.PCTILES: 20})
    where_the_time_goes(bench, "percentiles", folder)


def dense(bench: Bench) -> None:
    """Print the same with 400 bins that are not zero."""
    folder = generate.logs(bench.folder, LogSet(nonzero=(380, 420)))
    compare(bench, "dense: 400 bins a row", folder, {upstream.PCTILES: 10, upstream.HIST: None})
    where_the_time_goes(bench, "dense", folder)


def coarse(bench: Bench) -> None:
    """Print the same for coarse logs, which fio-histo-log-pctiles.py cannot read, and our bytes a second."""
    sets = (LogSet(), LogSet(rows=2400, nonzero=(20, 50), coarseness=3), LogSet(rows=9600, nonzero=(4, 12), coarseness=6))
    speeds = []
    for wanted in sets:
        folder = generate.logs(bench.folder, wanted)
        if wanted.coarseness:
            seconds = compare(bench, f"coarse: log_hist_coarseness={wanted.coarseness}", folder, {upstream.HIST: None})
            where_the_time_goes(bench, f"coarse {wanted.coarseness}", folder)
        else:
            seconds = by_turns(bench, {OURS: upstream.ours(bench, folder)})[OURS].median
        size, cells = _size(folder), wanted.files * wanted.rows * wanted.bins
        figures = (f"{size / 1e6:.0f}", f"{seconds:.3f}", f"{size / seconds / 1e6:.0f}", f"{cells / seconds / 1e6:.0f}")
        speeds.append([f"c={wanted.coarseness}", *figures])
    print_table("coarse: bytes and cells a second", ("logs", "MB", "wall s", "MB/s", "million cells/s"), speeds)


def real(bench: Bench) -> None:
    """Print the same for the recorded logs of examples/cbt-archive, their rows ten times over."""
    folder = bench.folder / "real"
    folder.mkdir(exist_ok=True)
    packed = sorted((ROOT / "examples" / "cbt-archive").rglob("*_clat_hist.*.gz"))
    if not packed:
        raise BenchmarkError("examples/cbt-archive holds no histogram logs")
    for path in packed:
        target = folder / path.name.removesuffix(".gz")
        if not target.exists():
            generate.lengthened(target, gzip.decompress(path.read_bytes()), REAL_TIMES)
    title = f"real: logs of examples/cbt-archive, {REAL_TIMES} times over"
    compare(bench, title, folder, {upstream.HIST: None})
    where_the_time_goes(bench, "real", folder)
    readable = bench.scratch / "readable"
    readable.mkdir()
    for path in sorted(folder.iterdir()):
        command = upstream.pctiles(bench, [path])
        with suppress(BenchmarkError):  # it fails on logs whose reads and writes do not alternate
            wall(bench, command)
            os.link(path, readable / path.name)
    compare(bench, f"real: those that {upstream.PCTILES} can read", readable, {upstream.PCTILES: None})


def compare(bench: Bench, title: str, folder: Path, floors: Mapping[str, float | None]) -> float:
    """Print a table of fio's scripts and ours on the logs of a folder; return our median seconds."""
    files = sorted(path for path in folder.iterdir() if "_clat_hist." in path.name)
    makers = {upstream.PCTILES: upstream.pctiles, upstream.HIST: upstream.hist}
    commands = {name: makers[name](bench, files) for name in floors}
    commands[OURS] = upstream.ours(bench, folder)
    times = by_turns(bench, commands, SLOW_ROUNDS)
    print_table(f"{title}: {len(files)} files, {_size(folder) / 1e6:.0f} MB", RATIO_HEADINGS, ratio_rows(times, OURS, floors))
    return times[OURS].median


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def where_the_time_goes(bench: Bench, title: str, folder: Path) -> None:
    """Print the median CPU seconds of each step of our command in one process."""
    try:
        medians = stages.seconds_of(stages.FIO, [*upstream.ours(bench, folder)[1:], "--jobs", "1"], bench.rounds, bench.env)
    except RuntimeError as error:
        raise BenchmarkError(str(error)) from None
    total = sum(medians.values())
    rows = [[step, f"{1000 * seconds:.0f}", f"{100 * seconds / total:.0f} %"] for step, seconds in medians.items()]
    rows.append(["total, one process", f"{1000 * total:.0f}", ""])
    print_table(f"{title}: where the time goes (one process; more share all from read to merge)", ("step", "ms", "share"), rows)
