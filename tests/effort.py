"""How much random tests try: little in `make test`, twice as much in `make test-all` (as CI runs), all in `make soak`."""

from __future__ import annotations

import os


def figure(quick: int, full: int, soak: int | None = None) -> int:
    """Return how many examples, seeds or seconds a test takes in this run; `soak` where it is not the same as `full`.

    `make test` takes half of `quick`, `make test-all` takes `quick`: with half as many more `.ci/run` took 27 minutes, and 25 are
    its limit.
    """
    if os.environ.get("TAILBOARD_SOAK"):
        return full if soak is None else soak
    return min(full, quick) if os.environ.get("TAILBOARD_ALL") else (quick + 1) // 2
