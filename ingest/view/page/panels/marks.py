"""Marks in the report: which of them a page holds, drawn as lines and bands in every panel over time, and a table; marks.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ingest.core.errors import counted
from ingest.core.marks import MOST_OF_RUN, Mark, in_time_order, lasted, longest, of_run, overlaps
from ingest.core.units import elapsed, latency, utc
from ingest.view.page.template import AFTER_PERCENTILES, Section
from ingest.view.vega import printable

MOST_ON_PAGE = 2000
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class Shown:
    """A run that is shown: its name, when it begins, when its last window ends, and whether its start is not known."""

    run: str
    start_ns: int
    end_ns: int
    relative: bool = False


@dataclass(frozen=True, slots=True)
class ShownMarks:
    """The marks that a page holds in time order, how many more there are, and how many of those given are of no run."""

    marks: Sequence[Mapping[str, Any]]
    left: int = 0
    outside: int = 0
    given: int = 0
    relative: bool = False

    @property
    def notes(self) -> list[str]:
        """Return what must be said at the head of the page."""
        sentences = []
        if self.given and self.outside == self.given:
            unplaced = "the start of the run is not known, and they have clock times: give --t0"
            why = unplaced if self.relative else "they are of other times than the run"
            sentences.append(f"none of the {self.given:,} marks of --marks is shown: {why}")
        held = f"the page holds {len(self.marks):,} marks, those that lasted longest"
        return [*sentences, *([f"{held}; {self.left:,} more are left out"] if self.left else [])]


def chosen(runs: Sequence[Shown], stored: Sequence[Mapping[str, Any]], given: Sequence[Mark]) -> ShownMarks:
    """Return the marks that a page of runs holds: those of a store, and those of files that overlap a run."""
    marks_by_time: dict[tuple[str, int, str], dict[str, Any]] = {}
    placed: set[Mark] = set()
    left = 0
    for run in runs:
        own = [mark for mark in given if overlaps(mark, run.start_ns, run.end_ns, relative=run.relative)]
        placed.update(own)
        noted = of_run(own, run.run, run.start_ns, run.end_ns, relative=run.relative)
        kept = longest(noted, MOST_OF_RUN)
        left += len(noted) - len(kept)
        marks_by_time |= {(str(mark["run"]), *in_time_order(mark)): mark for mark in kept}
    marks_by_time |= {(str(mark.get("run", "")), *in_time_order(mark)): dict(mark) for mark in stored}
    everything = sorted(marks_by_time.values(), key=in_time_order)
    kept = longest(everything, MOST_ON_PAGE)
    outside = sum(mark not in placed for mark in given)
    relative = any(run.relative for run in runs)
    return ShownMarks(kept, left + len(everything) - len(kept), outside, len(given), relative)


def sections(chosen_marks: ShownMarks, starts_ns: Mapping[str, int], *, relative: bool) -> list[Section]:
    """Return the section of marks where there are any; `starts_ns` is when each run began, `relative`: they have no clock."""
    if not chosen_marks.marks:
        return []
    shown = longest([dict(mark) for mark in chosen_marks.marks], MOST_ROWS)
    rows = "".join(_row(mark, starts_ns.get(str(mark.get("run", "")), 0), relative=relative) for mark in shown)
    few = f"{len(shown)} of " if len(shown) < len(chosen_marks.marks) else ""
    outside = f"{chosen_marks.outside:,} of {chosen_marks.given:,} marks of --marks are of other times than the run."
    filling = {
        "rows": rows,
        "said": f"{few}{counted(len(chosen_marks.marks), 'mark')}.",
        "outside": outside if chosen_marks.outside else "",
    }
    return [Section("marks", AFTER_PERCENTILES, ("panels/marks.js",), {"most": MOST_ROWS}, html_filling=filling)]


def _row(mark: Mapping[str, Any], start_ns: int, *, relative: bool) -> str:
    """Return a row for those who have no script; the page's own then follows its clock."""
    begin, length = int(mark["at_ns"]), lasted(mark)
    when = f"{elapsed(start_ns)(begin)} s elapsed" if relative else f"{utc(begin)[11:23]} UTC"
    cells = (when, "" if length is None else latency(length), printable(str(mark["text"])))
    return "<tr>" + "".join(f'<td class="left">{escape(cell)}</td>' for cell in cells) + "</tr>"
