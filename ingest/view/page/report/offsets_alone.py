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
from ingest.view.page.report.page import RUNS_NAMED, Parts
from ingest.view.page.report.section import IN_CONTROLS, Section
from ingest.view.page.template import bundled, fact_list, filled, note_list, page_file
from ingest.view.page.wording import between, duration, text
from ingest.view.terminal.tables import count
from ingest.view.vega import note_of, printable, short_names

TEMPLATE = "html/offsets_alone.html"


def answer_of(found: Sequence[OffsetOverview]) -> Answer:
    """Return the answer without rows that facts and marks of these runs are asked by."""
    runs = tuple(run for one in found for run in one.runs)
    starts = {run: one.start_ns for one in found for run in one.runs}
    return Answer((), (), 0, OFFSET, runs, starts, all(one.relative for one in found), 0)


def parts_of(
    found: Sequence[OffsetOverview],
    facts: Sequence[tuple[str, str]] = (),
    marks: Sequence[Mapping[str, Any]] = (),
    more: Sequence[Section] = (),
    notes: Sequence[str] = (),
) -> Parts:
    """Return what fills the page of runs that have offsets alone; of `more` what stands in its controls; `notes` at its head."""
    section = offset_section.section(found)
    content = {
        "specs": section.specs,
        "sections": {one.name: one.content for one in (section, *more)},
        "marks": [note_of(mark) for mark in marks],
        "state": {**_state(found), **section.state},
    }
    names = [one.ticks.run for one in found]
    timed = [one for one in found if not one.relative] or found
    low, high = min(one.ticks.first_ms for one in timed) * MS, max(one.ticks.end_ms for one in timed) * MS
    events = sum(one.ticks.samples for one in found)
    relative = all(one.relative for one in found)
    known = [
        ("Runs", ", ".join(names[:RUNS_NAMED]) + (f" and {len(names) - RUNS_NAMED} more" if len(names) > RUNS_NAMED else "")),
        ("Events", f"{events:,}"),
        ("Time", "elapsed only: no time zero is known" if relative else between(low, high)),
        ("Duration", duration(high - low)),
        ("Latencies", "none: these runs hold moments alone"),
    ]
    runs = [_run(one, label) for one, label in zip(found, short_names(names), strict=True)]
    filling = {
        "version": __version__,
        "runs": text(known[0][1]),
        "lead": text(f"{count(events)} events in {duration(high - low)}; they have no latencies"),
        "facts": fact_list([*known, *facts, ("Made by", f"tailboard {__version__}")]),
        "notes": note_list([*dict.fromkeys(text for one in found for text in one.warnings), *section.notes, *notes]),
        "offsets": filled(section.html, section.html_filling),
        IN_CONTROLS: "\n".join(filled(one.html, one.html_filling) for one in more if one.place == IN_CONTROLS),
        "clock": "" if relative else page_file("html/clock.html"),
        "data": bundled(content | {"runs": runs, "layouts": []}),
    }
    return Parts(filling, (*section.scripts, *(name for one in more for name in one.scripts)), TEMPLATE)


def _run(found: OffsetOverview, label: str) -> dict[str, Any]:
    """Return what the page is told of a run without latencies."""
    ticks = found.ticks
    return {
        "name": printable(ticks.run),
        "label": label,
        "start": found.start_ns / MS,
        "relative": found.relative,
        "begin": ticks.first_ms,
        "end": ticks.end_ms,
        "seconds": (ticks.end_ms - ticks.first_ms) / 1000,
        "extra": "",
        "levels": {},
        "tails": {},
    }


def _state(found: Sequence[OffsetOverview]) -> dict[str, str]:
    clock = "elapsed" if all(one.relative for one in found) else "utc"
    none = dict.fromkeys(("op", "host", "kind", "by", "from", "to", "least", "most", "highlight", "also", "sla"), "")
    return {**none, "run": printable(found[0].ticks.run), "clock": clock, "p": "99", "tail": "99"}
