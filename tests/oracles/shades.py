"""How dark a cell is by rank, counted by loops: the share of the different counts up to its own."""

from __future__ import annotations

from collections.abc import Iterable


def by_rank(counts: Iterable[float]) -> dict[float, float]:
    """Return the shade of each count: in proportion where at least half of the cells hold the same one."""
    every = [count for count in counts if count > 0]
    each = set(every)
    if any(2 * every.count(count) >= len(every) for count in each):
        return {count: count / max(every) for count in each}
    return {count: sum(other <= count for other in each) / len(each) for count in each}
