"""What capacity shows people: a sentence for each line of a sweep, and the tested loads that it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table as RichTable

from ingest.core.units import figure, latency
from ingest.query.capacity import ACHIEVED, BRACKETED, Capacity, binding, load_text
from ingest.view.terminal.tables import count, empty_table, escape, first_of, people, say, say_notes

ONE_RUN = (
    "one run at each load: the interval holds for these runs, and the variation from one run to the next is not in it; three "
    "runs or more at each load include it"
)


def print_capacities(results: Sequence[Sequence[Capacity]], by: Sequence[str], notes: Sequence[str]) -> None:
    """Print, for each line and group, what its capacity is and which objective binds, then its tested loads."""
    out = people()
    for capacity in results:
        say(out, sentences(capacity, by))
    say_notes(out, notes)
    for capacity in results:
        out.print(_points(capacity, by))


def sentences(capacity: Sequence[Capacity], by: Sequence[str]) -> list[str]:
    """Return what is said of one line and group: its capacity by all objectives, then by each where there are several."""
    bound = binding(capacity)
    front = _name(bound, by)
    told = [f"{front}{sentence(bound)}"]
    if bound.verdict == BRACKETED and len(capacity) > 1:
        told[0] += "; of all objectives this is reached first"
    told += [f"  {sentence(by_sla)}" for by_sla in capacity if by_sla is not bound]
    if not math.isnan(bound.knee):
        told.append(f"  knee: most throughput for its {bound.sla.text.partition('<')[0]} at {load_text(bound.knee)}")
    return told


def sentence(capacity: Capacity) -> str:
    """Return what is said of one objective."""
    if capacity.verdict != BRACKETED:
        word = "capacity below the tested loads" if capacity.verdict != "cannot tell" else "cannot tell"
        return f"{word}: {capacity.reason}"
    of = "requests a second" if capacity.axis == ACHIEVED else capacity.axis
    load, low, high, met, missed = map(load_text, (capacity.load, capacity.low, capacity.high, *capacity.between))
    tested = f"surely met at {met}, surely not at {missed}"
    return f"{capacity.sla.text} holds up to {load} {of} (95 %: {low} to {high}); {tested}"


def notes_of(results: Sequence[Sequence[Capacity]], warnings: Sequence[str]) -> list[str]:
    """Return the sentences that a reader must see."""
    points = [point for capacity in results for point in capacity[0].points]
    alone = [ONE_RUN] if any(len(point.tested.runs) < 3 for point in points) else []
    short = [point for capacity in results for by_sla in capacity for point in by_sla.points if not point.batches]
    few = sorted({run for point in short for run in point.tested.runs})
    rest = [f"too few windows to be sure of anything: {first_of(few, 3)}; run for longer"] if few else []
    return [*warnings, *alone, *rest]


def _name(capacity: Capacity, by: Sequence[str]) -> str:
    """Return what a line and group are called in front of a sentence, with a colon; nothing where there is only one."""
    words = [capacity.line] if capacity.line else []
    words += [f"{name} {label or '-'}" for name, label in zip(by, capacity.group, strict=True)]
    return f"{', '.join(words)}: " if words else ""


def _points(capacity: Sequence[Capacity], by: Sequence[str]) -> RichTable:
    title = _name(capacity[0], by).removesuffix(": ")
    axis = capacity[0].axis
    names = [axis, *(["achieved"] if axis != ACHIEVED else []), "n"]
    for by_sla in capacity:
        percentile, _, limit = by_sla.sla.text.partition("<")
        names += [percentile, f"above {limit}", "95 % bounds", by_sla.sla.text]
    shown = empty_table(names, [by_sla.sla.text for by_sla in capacity])
    shown.title, shown.title_justify = escape(title) or None, "left"
    for row, point in enumerate(capacity[0].points):
        load = [load_text(point.tested.load)] if axis != ACHIEVED else []
        cells = [*load, f"{count(point.tested.achieved)}/s", f"{point.tested.shares[0].samples:,.0f}"]
        for place, by_sla in enumerate(capacity):
            mine = by_sla.points[row]
            bounds = f"{_percent(mine.low)} to {_percent(mine.high)}"
            cells += [latency(mine.tested.values_ns[place]), _percent(mine.share), bounds, mine.verdict]
        shown.add_row(*map(escape, cells))
    return shown


def _percent(share: float) -> str:
    return f"{figure(100 * share)} %" if share >= 1e-6 else "0 %"
