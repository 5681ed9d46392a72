"""How much random tests try: little in `make test`, all in `make test-all` (which is what CI runs), most in `make soak`."""

from __future__ import annotations

import os


def figure(quick: int, full: int, soak: int | None = None) -> int:
    """Return how many examples, seeds or seconds a test takes in this run; `soak` where it is not the same as `full`."""
    if os.environ.get("TAILBOARD_SOAK"):
        return full if soak is None else soak
    return full if os.environ.get("TAILBOARD_ALL") else quick
