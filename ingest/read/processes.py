"""How many processes read some files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from ingest.read.text import COMPRESSED

WORTH_WORKERS = 256 << 10  # bytes of logs: fewer are read here before workers would have started and ended
EXPANDED = 20  # times as large are logs once they are decompressed, about


def processes(asked: int | None, paths: Iterable[Path]) -> int:
    """Return how many processes are to read files: as asked, else one for each core, and this one alone where they are small."""
    if asked:
        return asked
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):  # who reads it says so
            total += path.stat().st_size * (EXPANDED if path.suffix in COMPRESSED else 1)
        if total >= WORTH_WORKERS:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1
