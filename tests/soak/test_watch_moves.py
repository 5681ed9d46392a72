"""A watch of logs that are rotated, copied and emptied, written by rsync and deleted: alive, exact, in flat memory.

A few rounds in `make test-all`, 2,400 (each of 3 seconds of the logs: two hours) in `make soak`.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ingest.store import open_store
from ingest.store.records import stored_samples
from tests.effort import figure
from tests.live.feeding import HEAD, Clock, begun
from tests.live.test_long import SPARE, resident
from tests.oracles import hdr

LOGS, SECONDS, KEPT = 4, 3, 2


class Site:
    """Logs that a benchmark writes and others handle; `written` are the samples of all lines that were written."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.written = self.second = self.moves = 0
        folder.mkdir()

    def log(self, number: int) -> Path:
        return self.folder / f"x{number}.hlog"

    def write(self) -> None:
        """Append some seconds to each log; a new one begins with its head."""
        for number in range(LOGS):
            path = self.log(number)
            counts = [{100 + number: 3, 300: self.rng.randint(1, 9), 500: 1} for _ in range(SECONDS)]  # no two logs are alike
            lines = [hdr.line(f"{self.second + at}.000", "1.000", some, tag="read", digits=2) for at, some in enumerate(counts)]
            head = "" if path.exists() and path.stat().st_size else HEAD
            with path.open("a") as out:
                out.write(head + "".join(lines))
            self.written += sum(sum(some.values()) for some in counts)
        self.second += SECONDS

    def handle(self) -> None:
        """Rotate a log, copy and empty it, have rsync write one anew or lose its copy; delete what was rotated long ago."""
        path, kind = self.log(self.rng.randrange(LOGS)), self.rng.randrange(4)
        self.moves += 1
        aside = path.with_name(f"{path.name}.{self.moves}")
        if kind == 0:
            path.rename(aside)
        elif kind == 1:
            shutil.copyfile(path, aside)
            path.write_bytes(b"")
        elif kind == 2:
            copy = path.with_name(f".{path.name}.aB3x{self.moves % 90 + 10}")
            shutil.copyfile(path, copy)
            copy.rename(path)
        else:
            path.with_name(f".{path.name}.lost{self.moves % 90 + 10}").write_text("half a")
        for lost in self.folder.glob(".*.lost*"):
            if self.rng.random() < 0.5:
                lost.unlink()
        old = sorted(self.folder.glob("x*.hlog.*"), key=lambda file: int(file.suffix[1:]))
        for file in old[: -KEPT * LOGS]:
            file.unlink()


@pytest.mark.slow
def test_r4_r5_a_watch_of_logs_that_are_handled_all_the_time_is_alive_exact_and_flat(tmp_path: Path) -> None:
    site, clock, sizes, said = Site(tmp_path / "logs", 7), Clock(), [], []
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        watch = begun(site.folder, store, clock, reading={"host": "h"})
        for turn in range(figure(40, 60, 2400)):
            site.write()
            clock.seconds += SECONDS
            done = watch.cycle()
            if turn % 3 == 0:
                site.handle()
                done = watch.cycle()
            while done.behind:
                done = watch.cycle()
            said += done.said
            sizes.append(resident())
        watch.cycle(last=True)
        watch.settle()
        held = sum(stored_samples(record) for run in store.runs() for record in store.sources(run.run))
        print(
            f"{len(sizes)} rounds, {site.moves} moves, {held} of {site.written} samples, {sizes[len(sizes) // 3]} to {max(sizes)} bytes"
        )
        assert held == site.written, said[-20:]
    assert max(sizes[len(sizes) // 3 :]) - sizes[len(sizes) // 3] < SPARE + 2048 * len(sizes)
