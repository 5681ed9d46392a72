"""Running commands and saying how long they took: wall time by turns, peak memory of a whole process tree, tables."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_SECONDS = 0.05
FRESH = "{fresh}"
MB = 1_000_000


class BenchmarkError(Exception):
    """Something that is needed is missing, or a command failed; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where things are and how often to measure. `folder` holds the data that stays, `scratch` what goes at the end."""

    folder: Path
    scratch: Path
    tailboard: str
    fio: Path
    rounds: int

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of all commands: byte code is kept as after an installation, and nowhere near the sources."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, "PYTHONPYCACHEPREFIX": str(self.folder / "pycache")}


@dataclass(slots=True)
class Times:
    """The wall seconds of one command, in the order in which it was run."""

    command: str
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the median."""
        return statistics.median(self.seconds)

    def shown(self) -> str:
        """Return median and range as a table has them."""
        return f"{self.median:.3f} ({min(self.seconds):.3f}-{max(self.seconds):.3f})"

    def over(self, other: Times) -> list[float]:
        """Return the ratio to another command, pair by pair of the same round."""
        return [mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=False)]


@contextmanager
def started(bench: Bench, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command whose output goes to a file and wait for its end; BenchmarkError if it fails or says nothing.

    `{fresh}` in its words becomes the path of something that is not there; what is made at it is deleted at the end.
    """
    out, err, fresh = bench.scratch / "stdout", bench.scratch / "stderr", bench.scratch / "fresh"
    words = [word.replace(FRESH, str(fresh)) for word in command]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(words, stdout=stdout, stderr=stderr, env=bench.env)
        yield process
        status = process.wait()
    for made in bench.scratch.glob("fresh*"):
        made.unlink()
    if status or not out.stat().st_size:
        said = err.read_text(errors="replace").strip().splitlines()[-3:]
        raise BenchmarkError(f"{' '.join(command[:4])} ... ended with {status}: {' / '.join(said) or 'no output'}")


def wall(bench: Bench, command: Sequence[str]) -> float:
    """Return the seconds from the start of a command to its end."""
    began = time.perf_counter()
    with started(bench, command) as process:
        process.wait()
        ended = time.perf_counter()
    return ended - began


def by_turns(bench: Bench, commands: Mapping[str, Sequence[str]], rounds: Mapping[str, int] | None = None) -> dict[str, Times]:
    """Return the times of commands that were run by turns, so that what else the machine does meets them all.

    The last one is run once before, for the byte code and the page cache. `rounds` says of some that fewer are enough.
    """
    wall(bench, list(commands.values())[-1])
    times = {name: Times(name) for name in commands}
    for number in range(bench.rounds):
        for name, command in commands.items():
            if number < (rounds or {}).get(name, bench.rounds):
                print(f"\r{name}: round {number + 1}".ljust(70), end="", file=sys.stderr, flush=True)
                times[name].seconds.append(wall(bench, command))
    print("\r".ljust(70), end="\r", file=sys.stderr, flush=True)
    return times


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory that a command and its children held at one time: bytes of PSS, and of those not backed by files."""

    command: str
    seconds: float
    pss: int
    anonymous: int


def peak(bench: Bench, name: str, command: Sequence[str]) -> Peak:
    """Return the peak memory of a command, summed over its process tree every 50 ms (shared pages are split among sharers)."""
    began = time.perf_counter()
    highest = [0, 0]
    with started(bench, command) as process:
        while process.poll() is None:
            sums = [_memory(number) for number in _tree(process.pid)]
            highest = [max(most, sum(one[place] for one in sums)) for place, most in enumerate(highest)]
            time.sleep(SAMPLE_SECONDS)
    return Peak(name, time.perf_counter() - began, *highest)


def _tree(root: int) -> list[int]:
    """Return the process numbers of a process and all below it."""
    found = [root]
    for number in found:
        try:
            found += [int(child) for child in Path(f"/proc/{number}/task/{number}/children").read_text().split()]
        except OSError:
            continue
    return found


def tree_memory(root: int) -> int:
    """Return the bytes of PSS that a process and all below it hold now."""
    return sum(_memory(number)[0] for number in _tree(root))


def _memory(number: int) -> tuple[int, int]:
    try:
        text = Path(f"/proc/{number}/smaps_rollup").read_text()
    except OSError:
        return 0, 0
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    return kilobytes["Pss"] * 1024, kilobytes.get("Pss_Anon", 0) * 1024


def met(value: float, floor: float | None, *, at_least: bool = True) -> str:
    """Return the verdict on a figure, empty where there is no floor."""
    if floor is None:
        return ""
    return "met" if (value >= floor if at_least else value <= floor) else "NOT MET"


def ratio_rows(times: Mapping[str, Times], ours: str, floors: Mapping[str, float | None]) -> list[list[str]]:
    """Return table rows of all commands, each with how many times as long as `ours` it took."""
    rows = []
    for name, one in times.items():
        if name == ours:
            rows.append([name, one.shown(), str(len(one.seconds)), "1", "", ""])
            continue
        ratios = one.over(times[ours])
        middle, floor = statistics.median(ratios), floors.get(name)
        shown = f"{middle:.1f} ({min(ratios):.1f}-{max(ratios):.1f})"
        rows.append([name, one.shown(), str(len(one.seconds)), shown, f"{floor:g}" if floor else "", met(middle, floor)])
    return rows


RATIO_HEADINGS = ("command", "wall s", "n", "times ours", "floor", "verdict")


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table under a title."""
    widths = [max(len(row[place]) for row in [headings, *rows]) for place in range(len(headings))]
    print(f"\n### {title}\n")
    for number, row in enumerate([headings, *rows]):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if not number:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    sys.stdout.flush()
