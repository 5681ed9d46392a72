"""How much random tests try: little in `make test`, twice as much in `make test-all` (as CI runs), all in `make soak`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest


def figure(quick: int, full: int, soak: int | None = None) -> int:
    """Return how many examples, seeds or seconds a test takes in this run; `soak` where it is not the same as `full`.

    `make test` takes half of `quick`, `make test-all` takes `quick`: with half as many more `.ci/run` took 27 minutes, and 25 are
    its limit.
    """
    if os.environ.get("TAILBOARD_SOAK"):
        return full if soak is None else soak
    return min(full, quick) if os.environ.get("TAILBOARD_ALL") else (quick + 1) // 2


def few(values: Iterable[Any], quick: int, full: int | None = None) -> list[Any]:
    """Return the values of a test's parameter: `make test` takes as many as `quick`, spread over them, `make test-all` as many
    more as `full` says, by default a quarter as many; the others are for `make soak`.
    """
    every = list(values)
    kept = {number * len(every) // quick for number in range(quick)}
    others = [number for number in range(len(every)) if number not in kept]
    more = min(quick // 4 if full is None else full, len(others))
    slow = {others[place * len(others) // more] for place in range(more)}
    marks = [() if number in kept else pytest.mark.slow if number in slow else pytest.mark.soak for number in range(len(every))]
    return [pytest.param(value, marks=mark) for value, mark in zip(every, marks, strict=True)]
