"""What a tool says itself of a whole run, by job, where it logged no histogram: kept in the account, and shown as it is.

Percentiles of single jobs cannot be merged into one of a host or a cluster; counts, sums, minima and maxima can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingest.core.csr import MOST_SAMPLES
from ingest.core.dataclass import dataclass
from ingest.core.intervals import Exact
from ingest.core.ranks import COMMON
from ingest.core.series import Series
from ingest.core.writing import fine_latency

LABELS = ("host", "volume", "job", "process", "op", "kind")
NUMBERS = ("count", "min_ns", "max_ns", "mean_ns", "window_ns", "has_bins")
ROW_NUMBERS = ("count", "min_ns", "max_ns", "sum_ns")


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A job, op and kind over the whole run, as its tool printed it; `percentiles` are (text, ns).

    `window_ns` is the time that each logged mean is over, 0 where nothing was logged over time. `has_bins` says that the tool
    wrote its histogram, too: then there is more than means. `bytes` are those that its I/Os moved, None where it does not say.
    """

    series: Series
    count: int
    min_ns: int
    max_ns: int
    mean_ns: float
    percentiles: tuple[tuple[str, int], ...] = ()
    window_ns: int = 0
    has_bins: bool = False
    bytes: int | None = None

    def told(self) -> dict[str, Any]:
        """Return plain values that `of` takes."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        labels = {name: value for name in LABELS if (value := getattr(self.series, name))}
        moved = {} if self.bytes is None else {"bytes": self.bytes}
        return {**labels, **numbers, **moved, "percentiles": [list(pair) for pair in self.percentiles]}

    @staticmethod
    def of(run: str, stored: Mapping[str, Any]) -> WholeRun:
        """Return what `told` gave, of a run."""
        labels = {name: str(stored.get(name, "")) for name in LABELS}
        percentiles = tuple((str(text), int(value)) for text, value in stored["percentiles"])
        numbers = {name: stored[name] for name in NUMBERS}
        return WholeRun(Series(run=run).replaced(**labels), percentiles=percentiles, bytes=stored.get("bytes"), **numbers)

    @property
    def name(self) -> str:
        """Return the words that distinguish it from others of its run."""
        own = self.series
        words = (("", own.host), ("volume ", own.volume), ("job ", own.job), ("", own.process), ("", own.op), ("", own.kind))
        return " ".join(f"{word}{value}" for word, value in words if value)

    def __str__(self) -> str:
        """Return a line for people: count, mean, the common percentiles, maximum."""
        printed = {f"{float(text):g}": value for text, value in self.percentiles}
        named = [(f"p{text}", printed[text]) for text in (percentile.text for percentile in COMMON) if text in printed]
        values = (("mean", self.mean_ns), *named, ("max", self.max_ns))
        return f"{self.name}: N {self.count:,}, " + ", ".join(f"{name} {fine_latency(value)}" for name, value in values)


@dataclass(frozen=True, slots=True)
class WholeRow:
    """A row over a whole run with its exact values, which its parts by window do not have."""

    series: Series
    count: int
    min_ns: int
    max_ns: int
    sum_ns: int

    def told(self) -> dict[str, Any]:
        """Return plain values that `of` takes."""
        numbers = {name: getattr(self, name) for name in ROW_NUMBERS}
        return {**{name: value for name in LABELS if (value := getattr(self.series, name))}, **numbers}

    @staticmethod
    def of(run: str, stored: Mapping[str, Any]) -> WholeRow:
        """Return what `told` gave, of a run."""
        labels = {name: str(stored.get(name, "")) for name in LABELS}
        return WholeRow(Series(run=run).replaced(**labels), *(int(stored[name]) for name in ROW_NUMBERS))


def whole_rows(run: str, accounts: Iterable[Mapping[str, Any]]) -> list[WholeRow]:
    """Return what the accounts of a run's sources (as plain values) hold of whole rows."""
    return [WholeRow.of(run, row) for account in accounts for row in account.get("whole_rows", {}).values()]


def whole_runs(run: str, accounts: Iterable[Mapping[str, Any]]) -> list[WholeRun]:
    """Return what the accounts of a run's sources (as plain values) hold of whole runs, ordered by labels."""
    runs = [WholeRun.of(run, whole_run) for account in accounts for whole_run in account.get("whole_runs", {}).values()]
    return sorted(runs, key=lambda whole_run: whole_run.series)


def means_alone(accounts: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether all sources of a run that hold samples, by their accounts, hold means without a histogram."""
    held = [account.get("whole_runs", {}).values() for account in accounts if account.get("samples")]
    return bool(held) and all(rows and not any(row["has_bins"] for row in rows) for rows in held)


def sum_of(parts: Sequence[WholeRun]) -> tuple[int, int, int, int]:
    """Return count, sum, minimum and maximum of several together, in ns; fio prints means to 10^-6 ns."""
    total = sum(round(part.mean_ns * part.count) for part in parts)
    return sum(part.count for part in parts), total, min(part.min_ns for part in parts), max(part.max_ns for part in parts)


def bytes_of(parts: Iterable[WholeRun]) -> int | None:
    """Return the bytes of several together, None where those of one are unknown."""
    total = 0
    for part in parts:
        if part.bytes is None:
            return None
        total += part.bytes
    return total if total <= MOST_SAMPLES else None


def replaced_rows(exact: Exact, rows: Mapping[int, tuple[int, int, int]], moved: Mapping[int, int] | None = None) -> Exact:
    """Return exact values with (sum, minimum, maximum) of some rows, and bytes of some, in place of the given ones."""
    low, high, total = (column.copy() for column in (exact.min_ns, exact.max_ns, exact.sum_ns))
    known, carried = exact.known.copy(), exact.bytes
    for at, (sums, least, most) in rows.items():
        low[at], high[at], total[at], known[at] = least, most, sums, True
    if moved:
        carried = exact.moved.copy()
        carried[list(moved)] = list(moved.values())
    return Exact(low, high, total, known, carried)
