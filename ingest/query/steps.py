"""At which step a question is answered: that of its windows, where it says `auto` one that makes about 150 of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ingest.core.errors import UsageError
from ingest.core.grid import coarsened
from ingest.core.intervals import Intervals, merged
from ingest.core.series import Group
from ingest.core.timing import format_duration
from ingest.query.spans import Bounds, Span, inside

AUTO_WINDOWS = 150
MULTIPLES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def auto_span(reach: Mapping[str, Span], bounds: Mapping[str, Bounds], stored_ns: int) -> Span:
    """Return the whole windows that runs reach within the bounds of each: what `auto` makes its windows of."""
    spans = [
        inside((low // stored_ns * stored_ns, -(-high // stored_ns) * stored_ns), bounds[run])
        for run, (low, high) in reach.items()
    ]
    known = [span for span in spans if span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else (0, 0)


def auto_step(first_ns: int, last_ns: int, stored_ns: int, windows: int = AUTO_WINDOWS) -> int:
    """Return the multiple of the stored step that makes about `windows` windows of the range, never more."""
    span = max(last_ns - first_ns, stored_ns)
    for multiple in MULTIPLES:
        if span <= windows * stored_ns * multiple:
            return stored_ns * multiple
    return stored_ns * MULTIPLES[-1] * -(-span // (windows * stored_ns * MULTIPLES[-1]))


def sure_step(first_ns: int, last_ns: int, stored_ns: int, windows: int = AUTO_WINDOWS) -> int:
    """Return the widest step that divides whatever `auto_step` makes of this range once it has grown."""
    least = auto_step(first_ns, last_ns, stored_ns, windows) // stored_ns
    return stored_ns * math.gcd(*(multiple for multiple in MULTIPLES if multiple >= least), MULTIPLES[-1])


def widened(parts: Sequence[Intervals[Group]], step_ns: int) -> list[Intervals[Group]]:
    """Return windows added up to a multiple of their step."""
    return [merged([coarsened(part, step_ns)]) for part in parts if len(part)]


def check_step(step_ns: int, width_ns: float, *, force: bool) -> str:
    """Return a warning if a step is finer than the rows it is made of and `force` is given; UsageError without it."""
    if step_ns >= 0.9 * width_ns:
        return ""
    rows, step = format_duration(round(width_ns / 1e6) * 1_000_000 or 1), format_duration(step_ns)
    if not force:
        raise UsageError(f"a step of {step} is finer than the rows ({rows}): it would invent detail; --force allows it")
    return f"step {step} is finer than the rows ({rows}): counts are spread evenly within a row"
