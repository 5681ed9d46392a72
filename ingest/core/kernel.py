"""The loops in C (`kernel.c`) where this installation has them, else None: whoever calls one has the same in NumPy beside it.

They are built with the package where there is a compiler (`hatch_build.py`). NumPy is the judge: equal numbers, and the same
inputs refused. `TAILBOARD_NUMPY=1` in the environment leaves the loops alone, for tests and for whoever doubts them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

WITHOUT = "TAILBOARD_NUMPY"

Loop = Callable[..., Any]


def _found() -> ModuleType | None:
    try:
        return None if os.environ.get(WITHOUT) else import_module("ingest.core._kernel")
    except ImportError:
        return None


def words(*columns: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """Yield columns as the loops take them: int64, one behind the other; those that are so already as they are."""
    return (np.ascontiguousarray(column, np.int64) for column in columns)


def narrow(*columns: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield columns as those loops take them that take fewer bytes, too: unsigned numbers as they are, all others as `words`."""
    return (np.ascontiguousarray(column, column.dtype if column.dtype.kind == "u" else np.int64) for column in columns)


_compiled = _found()
fio_rows: Loop | None = getattr(_compiled, "fio_rows", None)
hdr_rows: Loop | None = getattr(_compiled, "hdr_rows", None)
integer_rows: Loop | None = getattr(_compiled, "integer_rows", None)
add_rows: Loop | None = getattr(_compiled, "add_rows", None)
share: Loop | None = getattr(_compiled, "share", None)
window_rows: Loop | None = getattr(_compiled, "window_rows", None)
event_rows: Loop | None = getattr(_compiled, "event_rows", None)
stretches: Loop | None = getattr(_compiled, "stretches", None)
cut_levels: Loop | None = getattr(_compiled, "cut_levels", None)
excess_rows: Loop | None = getattr(_compiled, "excess_rows", None)
unpack_rows: Loop | None = getattr(_compiled, "unpack_rows", None)
check_rows: Loop | None = getattr(_compiled, "check_rows", None)
sum_rows: Loop | None = getattr(_compiled, "sum_rows", None)
lay_rows: Loop | None = getattr(_compiled, "lay_rows", None)
place_rows: Loop | None = getattr(_compiled, "place_rows", None)
rank_rows: Loop | None = getattr(_compiled, "rank_rows", None)
weigh_rows: Loop | None = getattr(_compiled, "weigh_rows", None)
above_rows: Loop | None = getattr(_compiled, "above_rows", None)


def in_words() -> str:
    """Return which of the two reads logs here, as a sentence for people."""
    if _compiled is not None:
        return "compiled loops read logs"
    why = f"{WITHOUT} is set" if os.environ.get(WITHOUT) else "no C compiler was there when tailboard was installed"
    return f"NumPy reads logs, slower and with the same results: {why}"
