"""How much random tests try: little in `make test`, all in `make test-all` (which is what CI runs), most in `make soak`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest


def figure(quick: int, full: int, soak: int | None = None) -> int:
    """Return how many examples, seeds or seconds a test takes in this run; `soak` where it is not the same as `full`."""
    if os.environ.get("TAILBOARD_SOAK"):
        return full if soak is None else soak
    return full if os.environ.get("TAILBOARD_ALL") else quick


def few(values: Iterable[Any], quick: int) -> list[Any]:
    """Return the values of a test's parameter, of which `make test` takes as many as `quick`, spread over them; others are slow."""
    every = list(values)
    kept = {number * len(every) // quick for number in range(quick)}
    return [value if number in kept else pytest.param(value, marks=pytest.mark.slow) for number, value in enumerate(every)]
