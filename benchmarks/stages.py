"""Where the time goes: CPU seconds of each step of a command in one process, and how those of a whole table of commands compare.

    python benchmarks/stages.py [help fio hdr raw small load] [--rounds N] [--data FOLDER]

Each command runs in a process of its own, with --jobs 1, its steps timed from outside; what a step calls that is a step itself
counts there alone. CPU seconds of the whole process are counted, so the figures hold on a busy machine nearly as on a quiet one
(medians; the first run is not counted). With `--of KIND` as the first words the process runs the command that follows, and
prints its steps as one JSON object to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

BOOT, DISCOVER, READ, PARSE, CHECKS = "start-up", "discover", "read the files", "parse", "checks and repairs"
GRID, MERGE, RANK, OUTPUT, OTHER = "grid", "merge", "rank", "output", "everything else"
ORDER = (BOOT, DISCOVER, READ, PARSE, CHECKS, GRID, MERGE, RANK, OUTPUT, OTHER)
HERE = Path(__file__).parent
HELP, FIO, HDR, RAW, SMALL, LOAD = KINDS = ("help", "fio", "hdr", "raw", "small", "load")
ITEMS = "()"  # behind the name of a generator: the time until each of its items counts

ANSWERS = (
    ("ingest.query.files:discover", DISCOVER),
    ("ingest.core.intervals:Sum.add", MERGE),
    ("ingest.core.intervals:Sum.parts", MERGE),
    ("ingest.query.files:finish", MERGE),
    ("ingest.query.percentiles:percentiles", RANK),
    ("ingest.cli.percentiles:write", OUTPUT),
)
FIO_ROWS = (("ingest.read.integers:Parser.parse", PARSE), ("ingest.read.fio.histogram_log:whole_blocks" + ITEMS, READ))
WINDOWS = (("ingest.query.aggregate:window_parts", GRID),)
STEPS: dict[str, Sequence[tuple[str, str]]] = {
    HELP: (),
    FIO: (*ANSWERS, *FIO_ROWS, *WINDOWS, ("ingest.query.files:read" + ITEMS, CHECKS)),
    SMALL: (
        *ANSWERS,
        *FIO_ROWS,
        *WINDOWS,
        ("ingest.query.files:read" + ITEMS, CHECKS),
        ("ingest.query.files:read_many", CHECKS),
        ("ingest.read.fio.histogram_log:_text", READ),
    ),
    HDR: (
        *ANSWERS,
        ("ingest.read.hdr.log:blocks" + ITEMS, READ),
        ("ingest.read.hdr.log:payload_of", PARSE),
        ("ingest.read.hdr.log:counts_of", PARSE),
        ("ingest.query.streaming:_rows" + ITEMS, CHECKS),
        ("ingest.query.streaming:window_parts", GRID),
        ("ingest.query.streaming:merged", MERGE),
        ("ingest.query.streaming:merged", MERGE),
        ("ingest.query.streaming:Gathered.sum", MERGE),
        ("ingest.query.streaming:Gathered.answer", RANK),
    ),
    RAW: (
        *ANSWERS,
        *WINDOWS,
        ("ingest.read.fio.latency_log:whole_blocks" + ITEMS, READ),
        ("ingest.read.described.table:IntegerLines.columns" + ITEMS, PARSE),
        ("ingest.query.files:read" + ITEMS, CHECKS),
    ),
    LOAD: (
        ("ingest.load.load:discover", DISCOVER),
        *FIO_ROWS,
        ("ingest.load.load:whole_windows" + ITEMS, GRID),
        ("ingest.load.load:_read" + ITEMS, CHECKS),
        ("ingest.core.intervals:Sum.add", MERGE),
        ("ingest.core.intervals:Sum.parts", MERGE),
        ("ingest.load.load:write_findings", RANK),
        ("ingest.store.sqlite.store:SqliteStore.packed", OUTPUT),
        ("ingest.store.sqlite.store:SqliteStore.write", OUTPUT),
        ("ingest.store.sqlite.store:SqliteStore.finish_run", OUTPUT),
    ),
}


class Clock:
    """CPU seconds by step; a step inside another stops the outer one's clock."""

    def __init__(self, boot: float) -> None:
        self.seconds = dict.fromkeys(ORDER, 0.0)
        self.seconds[BOOT] = boot
        self._steps = [OTHER]
        self._since = time.process_time()

    def turn(self, step: str | None) -> None:
        """Begin a step, or with None end the innermost."""
        now = time.process_time()
        self.seconds[self._steps[-1]] += now - self._since
        self._since = now
        if step is None:
            self._steps.pop()
        else:
            self._steps.append(step)

    def timed(self, step: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function like `work` whose time counts for `step`."""

        def call(*words: Any, **names: Any) -> Any:
            self.turn(step)
            try:
                return work(*words, **names)
            finally:
                self.turn(None)

        return call

    def timed_items(self, step: str, work: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Return a generator like `work`; the time until each item counts for `step`."""

        def items(*words: Any, **names: Any) -> Iterator[Any]:
            self.turn(step)
            try:
                produced = iter(work(*words, **names))
            finally:
                self.turn(None)
            while True:
                self.turn(step)
                try:
                    chunk = next(produced, self)
                finally:
                    self.turn(None)
                if chunk is self:
                    return
                yield chunk

        return items


def _owner(place: str) -> tuple[Any, str]:
    """Return what holds the function of a place such as `module:Class.method`, and its name there."""
    module, _, path = place.removesuffix(ITEMS).partition(":")
    owner: Any = import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def run(kind: str, words: list[str]) -> None:
    """Run a command in this process and print its seconds by step; a step that has another name by now fails loudly."""
    cli = import_module("ingest.cli")
    owners = [(*_owner(place), place.endswith(ITEMS), step) for place, step in STEPS[kind]]
    clock = Clock(time.process_time())
    for owner, name, generates, step in owners:
        setattr(owner, name, (clock.timed_items if generates else clock.timed)(step, getattr(owner, name)))
    status = cli.run(words)
    clock.turn(None)
    print(json.dumps(clock.seconds), file=sys.stderr)
    sys.exit(status)


def seconds_of(kind: str, words: Sequence[str], rounds: int, env: dict[str, str] | None = None) -> dict[str, float]:
    """Return the median CPU seconds of each step of a command; RuntimeError where it fails."""
    command = [sys.executable, __file__, "--of", kind, *words]
    runs: list[dict[str, float]] = []
    for _ in range(rounds + 1):
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, check=False)
        if ended.returncode:
            raise RuntimeError(f"stages.py failed: {ended.stderr.decode()[-300:]}")
        runs.append(json.loads(ended.stderr.splitlines()[-1]))
    return {step: statistics.median(each[step] for each in runs[1:]) for step in runs[0]}


def commands(data: Path, scratch: Path, kinds: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield kind, title and words of the command of each kind, its data made where it is not there yet."""
    import generate
    import kernels

    csv = ["--format", "csv", "--jobs", "1"]
    for kind in kinds:
        if kind == HELP:
            yield kind, "`--help`", ["--help"]
        elif kind == FIO:
            folder = generate.logs(data, generate.LogSet())
            yield kind, "fio, 104 MB", ["percentiles", str(folder), "--step", "10s", "--by", "op", *csv]
        elif kind == SMALL:
            folder = generate.logs(data, generate.LogSet(files=10_000, rows=3))
            yield kind, "10,000 fio logs of 3 rows", ["percentiles", str(folder), "--step", "10s", *csv]
        elif kind == HDR:
            words = ["--step", "1s", "-p", "50,90,99", "--recorded-unit", "ns", *csv]
            yield kind, "20,000 HdrHistogram intervals", ["percentiles", str(kernels.hdr_log(data)), *words]
        elif kind == RAW:
            words = ["--fio-version", "3.33", "--step", "1s", "-p", "50,95,99,99.9", *csv]
            yield kind, f"{kernels.RAW_SAMPLES / 1e6:g} M raw samples", ["percentiles", str(kernels.raw_logs(data)), *words]
        elif kind == LOAD:
            folder = generate.logs(data, generate.LogSet())
            store = f"sqlite:{scratch / 'stages.db'}"
            yield kind, "`load` of 104 MB", ["load", str(folder), "--run", "stages", "--replace", "--store", store, "--jobs", "1"]


def main() -> None:
    """Print the table of the kinds that are asked for."""
    if sys.argv[1:2] == ["--of"]:
        run(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)} [default: all]")
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--rounds", type=int, default=3)
    words = parser.parse_args()
    unknown = [kind for kind in words.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"no kind {unknown[0]!r}: there are {', '.join(KINDS)}")
    words.data.mkdir(parents=True, exist_ok=True)
    print(f"load {os.getloadavg()[0]:.1f} at the start; CPU ms, one process\n")
    print(f"| | {' | '.join(ORDER)} | all |")
    print("|---" * (len(ORDER) + 2) + "|")
    with tempfile.TemporaryDirectory() as scratch:
        for kind, title, command in commands(words.data.resolve(), Path(scratch), words.kinds or KINDS):
            seconds = seconds_of(kind, command, words.rounds)
            cells = [f"{1000 * seconds[step]:,.0f}" for step in ORDER]
            print(f"| {title} | {' | '.join(cells)} | {1000 * sum(seconds.values()):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
