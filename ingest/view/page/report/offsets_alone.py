"""The report of runs that have offsets alone, such as recordings of samples: the panel of offsets, without those of latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest import __version__
from ingest.core.grid import MS
from ingest.core.series import OFFSET
from ingest.query.offsets.overview import OffsetOverview
from ingest.query.question import Answer
from ingest.view.page.panels import offsets as offset_section
from ingest.view.page.report.page import FIRST, LAST, RUNS_NAMED
from ingest.view.page.report.section import Section
from ingest.view.page.template import Parts, assembled, bundled, fact_list, note_list, page_file
from ingest.view.page.wording import duration, text, time_text
from ingest.view.terminal.tables import count, first_of
from ingest.view.vega import note_of, printable, short_names


def answer_of(overviews: Sequence[OffsetOverview]) -> Answer:
    """Return the answer without rows that facts and marks of these runs are asked by."""
    runs = tuple(run for overview in overviews for run in overview.runs)
    starts = {run: overview.start_ns for overview in overviews for run in overview.runs}
    return Answer((), (), 0, OFFSET, runs, starts, all(overview.relative for overview in overviews), 0)


def parts_of(
    overviews: Sequence[OffsetOverview],
    facts: Sequence[tuple[str, str]] = (),
    marks: Sequence[Mapping[str, Any]] = (),
    more: Sequence[Section] = (),
    notes: Sequence[str] = (),
) -> Parts:
    """Return what fills the page of runs that have offsets alone; of `more` what stands in its controls; `notes` at its head."""
    section = offset_section.section(overviews)
    content = {
        "specs": section.specs,
        "sections": {panel.name: panel.content for panel in (section, *more)},
        "marks": [note_of(mark) for mark in marks],
        "state": {**_state(overviews), **section.state},
    }
    names = [overview.ticks.run for overview in overviews]
    timed = [overview for overview in overviews if not overview.relative] or overviews
    low, high = min(overview.ticks.first_ms for overview in timed) * MS, max(overview.ticks.end_ms for overview in timed) * MS
    events = sum(overview.ticks.samples for overview in overviews)
    relative = all(overview.relative for overview in overviews)
    known = [
        ("Runs", first_of(names, RUNS_NAMED)),
        ("Events", f"{events:,}"),
        ("Time", time_text(low, high, relative=relative)),
        ("Duration", duration(high - low)),
        ("Latencies", "none: these runs have only times of events"),
    ]
    runs = [_run(overview, label) for overview, label in zip(overviews, short_names(names), strict=True)]
    filling = {
        "title": f"Subsecond offsets of {text(known[0][1])}",
        "runs": text(known[0][1]),
        "lead": text(f"{count(events)} events in {duration(high - low)}; they have no latencies"),
        "facts": fact_list([*known, *facts, ("Made by", f"tailboard {__version__}")]),
        "notes": note_list(
            [*dict.fromkeys(text for overview in overviews for text in overview.warnings), *section.notes, *notes]
        ),
        "clock": "" if relative else page_file("html/clock.html"),
        "data": bundled(content | {"runs": runs, "layouts": []}),
    }
    return assembled("html/offsets_alone.html", (section, *more), filling, FIRST, LAST)


def _run(overview: OffsetOverview, label: str) -> dict[str, Any]:
    """Return what the page shows of a run without latencies."""
    ticks = overview.ticks
    return {
        "name": printable(ticks.run),
        "label": label,
        "start": overview.start_ns / MS,
        "relative": overview.relative,
        "begin": ticks.first_ms,
        "end": ticks.end_ms,
        "seconds": (ticks.end_ms - ticks.first_ms) / 1000,
        "extra": "",
        "levels": {},
        "tails": {},
    }


def _state(overviews: Sequence[OffsetOverview]) -> dict[str, str]:
    clock = "elapsed" if all(overview.relative for overview in overviews) else "utc"
    none = dict.fromkeys(("op", "host", "kind", "by", "from", "to", "least", "most", "highlight", "also", "sla"), "")
    return {**none, "run": printable(overviews[0].ticks.run), "clock": clock, "p": "99", "tail": "99"}
