"""Numbers in text -> integer nanoseconds: decimals exactly, never by way of a float where that can be avoided.

A column is read as integers, or as decimals with as many places as make whole ns; what has more places is rounded down.
Only numbers with an exponent, or with more places than that, are read as floats and rounded to the nearest ns.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Bool, Int
from ingest.core.timing import MOST_NS
from ingest.read.delimited.arrow_lines import flags

MORE_PLACES = 9
PRECISION = 38
DECIMAL = rf"-?\d{{1,19}}(?:\.\d{{0,{MORE_PLACES}}})?"
FLOAT = r"-?(?:\d{1,25}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,2})?"


def places(unit_ns: int) -> int:
    """Return how many decimal places of a unit (ns, us, ms, s) make whole ns."""
    return len(str(unit_ns)) - 1


def types(pa: ModuleType, unit_ns: int) -> list[Any]:
    """Return the Arrow types that numbers of a unit are tried as, in order."""
    whole = places(unit_ns)
    return [pa.int64(), pa.decimal128(PRECISION, whole), pa.decimal128(PRECISION, whole + MORE_PLACES), pa.float64()]


def nanoseconds(pa: ModuleType, column: Any, unit_ns: int) -> tuple[Int, Bool]:
    """Return a column of numbers as ns, and which of them there are: neither missing nor past 146 years."""
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    there = flags(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    if pa.types.is_decimal(values.type):
        ns, sure = _of_decimals(pa, values, unit_ns)
    elif pa.types.is_floating(values.type):
        with np.errstate(over="ignore"):
            real = _lying(values.fill_null(0), np.float64) * float(unit_ns)
        sure = np.abs(real) < MOST_NS
        ns = np.rint(np.where(sure, real, 0)).astype(np.int64)
    else:
        whole = _lying(values.fill_null(0) if values.null_count else values, np.int64)
        sure = (whole < MOST_NS // unit_ns) & (whole > -MOST_NS // unit_ns)
        ns = np.where(sure, whole, 0) * unit_ns if not sure.all() else whole * unit_ns
    return ns, there & sure


def _lying(values: Any, kind: Any) -> NDArray[Any]:
    """Return the numbers of an array where they lie."""
    return np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + len(values)]


def _of_decimals(pa: ModuleType, values: Any, unit_ns: int) -> tuple[Int, Bool]:
    """Return decimals as ns, rounded down; their bytes are 128-bit integers of ns once they have as many places."""
    whole = places(unit_ns)
    if values.type.scale != whole:
        values = pa.compute.round(values, ndigits=whole, round_mode="down").cast(pa.decimal128(PRECISION, whole))
    words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    low, high = words[:, 0], words[:, 1]
    sure = (high == low >> 63) & (low < MOST_NS) & (low > -MOST_NS)
    return np.where(sure, low, 0), sure
