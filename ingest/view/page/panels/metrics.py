"""Metrics in the report: what else was measured, such as the load of a disk, a picture each on the axis of time; metrics.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest.core.units import Instant
from ingest.view.page.panels.marks import Shown
from ingest.view.page.template import AFTER_PERCENTILES, Section, text
from ingest.view.specs import derived
from ingest.view.vega import MS, printable

MOST = 12  # that a page shows, as many as metrics.js knows
MOST_VALUES = 3600  # of each in a run; of more the highest of neighbours is kept

Values = Sequence[tuple[Instant, float]]


def sections(runs: Sequence[Shown], metrics: Mapping[str, Values]) -> list[Section]:
    """Return a section for each metric of which a run has values in its time: those of files, by their names in their order."""
    contents = {name: [_within(run, values) for run in runs] for name, values in metrics.items()}
    placed = {name: content for name, content in contents.items() if any(run["t"] for run in content)}
    notes = [f"--metrics: {printable(name)} has no value in the time of a run" for name in contents if name not in placed]
    if len(placed) > MOST:
        notes.append(f"--metrics: the page shows {MOST} of {len(placed)} metrics, the first of the file")
    spec = derived("metric")
    return [
        Section(
            f"metric{place}",
            AFTER_PERCENTILES,
            ("panels/metrics.js",),
            {"name": printable(name), "runs": content},
            {f"metric{place}": spec},
            notes=() if place else notes,
            html_filling={"at": str(place), "name": text(name)},
            html="panels/metrics.html",
        )
        for place, (name, content) in enumerate([*placed.items()][:MOST])
    ]


def _within(run: Shown, values: Values) -> dict[str, Any]:
    """Return the values in the time of a run in time order, times in epoch ms; `of` is of how many each is the highest.

    UsageError for one at a time of day that the run has several times.
    """
    for at, _ in values:
        at.checked_in(run.run, run.start_ns, run.end_ns)
    placed = sorted(
        (at.epoch_ns(run.start_ns), value)
        for at, value in values
        if (at.relative or not run.relative) and run.start_ns <= at.epoch_ns(run.start_ns) <= run.end_ns
    )
    of = -(-len(placed) // MOST_VALUES) or 1
    kept = [max(placed[first : first + of], key=lambda pair: pair[1])[1] for first in range(0, len(placed), of)]
    return {"t": [at / MS for at, _ in placed[::of]], "v": kept, "of": of}
