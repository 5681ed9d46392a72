"""Where the time of `tailboard percentiles` goes: the command in this process, its steps timed from outside.

    BENCH_STARTED_NS=... python benchmarks/stages.py percentiles FOLDER ... --jobs 1

Prints one JSON object of seconds by step to stderr. What a step calls that is a step itself counts there alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

BOOT, READ, PARSE, CHECKS = "start-up and imports", "read the files", "parse", "checks and repairs"
DISCOVER, GRID, MERGE, PERCENTILES, OUTPUT = "discover", "grid", "merge", "percentiles", "output"
OTHER = "everything else"
ORDER = (BOOT, DISCOVER, READ, PARSE, CHECKS, GRID, MERGE, PERCENTILES, OUTPUT, OTHER)


class Clock:
    """Seconds by step; a step inside another stops the outer one's clock."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(ORDER, 0.0)
        self._steps = [OTHER]
        self._since = time.perf_counter()

    def turn(self, step: str | None) -> None:
        """Begin a step, or with None end the innermost."""
        now = time.perf_counter()
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
            produced = work(*words, **names)
            while True:
                self.turn(step)
                try:
                    item = next(produced, self)
                finally:
                    self.turn(None)
                if item is self:
                    return
                yield item

        return items


def watch(clock: Clock) -> None:
    """Put the clock around the steps; a step that has another name by now is missing here and fails loudly."""
    import ingest.query.percentiles
    from ingest.cli import percentiles
    from ingest.core import intervals
    from ingest.query import files
    from ingest.read import integer_rows
    from ingest.read.fio import hist as fio_hist

    steps: list[tuple[Any, str, str]] = [
        (files, "discover", DISCOVER),
        (integer_rows.Parser, "parse", PARSE),
        (files, "window_parts", GRID),
        (intervals.Sum, "add", MERGE),
        (intervals.Sum, "parts", MERGE),
        (files, "finish", MERGE),
        (ingest.query.percentiles, "percentiles", PERCENTILES),
        (percentiles, "write", OUTPUT),
    ]
    for place, name, step in steps:
        setattr(place, name, clock.timed(step, getattr(place, name)))
    files.read = clock.timed_items(CHECKS, files.read)
    fio_hist.blocks = clock.timed_items(READ, fio_hist.blocks)


def main() -> None:
    """Run the command of the words and print its seconds by step."""
    import ingest.cli.percentiles
    import ingest.query.files
    import ingest.query.percentiles
    import ingest.view.text  # all that the command imports is start-up

    boot = (time.time_ns() - int(os.environ["BENCH_STARTED_NS"])) / 1e9
    clock = Clock()
    clock.seconds[BOOT] = boot
    watch(clock)
    status = ingest.cli.run(sys.argv[1:])
    clock.turn(None)
    print(json.dumps(clock.seconds), file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
