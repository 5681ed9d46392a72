"""Percentiles over time by brute force over documents: no code of the product, one document after another."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from tests.oracles.brute import percentile


def rows(
    documents: list[dict[str, Any]],
    by: tuple[str, ...],
    where: dict[str, str],
    step: int,
    reach: tuple[int | None, int | None],
    percents: tuple[str, ...],
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return (start, *by) -> count, exact mean where all sums are known, and percentiles, of the documents selected."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in documents:
        if any(not fnmatchcase(one[name], glob) for name, glob in where.items()):
            continue
        if reach[0] is not None and one["start"] < reach[0] // one["step"] * one["step"]:
            continue
        if reach[1] is not None and one["start"] >= reach[1]:
            continue
        start = one["start"] // step * step if step else 0
        cells.setdefault((start, *(one[name] for name in by)), []).append(one)
    found = {}
    for key, some in cells.items():
        bins: Counter[int] = Counter()
        for one in some:
            bins.update(one["bins"])
        known = all(one["sum"] is not None for one in some)
        cell: dict[str, Any] = {"count": sum(one["count"] for one in some)}
        if known:
            cell["mean"] = Fraction(sum(one["sum"] for one in some), cell["count"])
        else:
            cell["mean"] = Fraction(sum(value * count for value, count in bins.items()), sum(bins.values()))
        cell |= {f"p{percent}": percentile(bins, percent) for percent in percents}
        found[key] = cell
    return found
