"""What a page must hold so that a box can be explained without a server: the samples of every label by window and latency.

Of each value of each label, by op and kind, in at most 120 windows of the run and at most eight bins an octave: their edges are
edges of the windows and bins that they are made of, so a box of such edges is counted as exactly as by `box.explained`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Intervals, Sum, merged
from ingest.core.layout import common_layout
from ingest.core.series import Group
from ingest.query.latency_rows import row_layout
from ingest.query.question import Answer
from ingest.query.steps import widened

MOST_WINDOWS = 120
AN_OCTAVE = 8
NAMES = ("op", "host", "volume", "job", "process", "tag")
HELD = 200_000  # entries of a label that are held before they are added up


@dataclass(frozen=True, slots=True)
class BoxCells:
    """The cells of a run: of each label its windows of `step_ns` under (value, op, kind), all in one layout.

    `step_ns` is 0 for one window of the whole range.
    """

    step_ns: int
    labels: Mapping[str, Intervals[Group]]


class Gathering:
    """Adds up the answers by thread of a run, as they come, to its cells."""

    def __init__(self) -> None:
        self._sums: dict[str, Sum[Group]] = {name: Sum(HELD) for name in NAMES}
        self._step_ns = 0
        self._weighed = False

    def add(self, answer: Answer, step_ns: int) -> None:
        """Add an answer by labels, op and kind; its windows are widened to `step_ns`, a multiple of its step."""
        self._step_ns = step_ns
        self._weighed |= any(part.completions is not None for part in answer.parts)
        if self._weighed:
            return
        places = {name: answer.by.index(name) for name in (*NAMES, "kind")}
        for part in widened([part.in_layout(row_layout(part.layout, AN_OCTAVE)) for part in answer.parts], step_ns or 1 << 62):
            for name, total in self._sums.items():
                total.add(part.relabelled(_only(places[name], places["op"], places["kind"])))

    def cells(self) -> BoxCells | None:
        """Return the cells of what was added; None where I/Os count by shares, which no box has whole."""
        if self._weighed:
            return None
        parts = {name: total.parts() for name, total in self._sums.items()}
        layout = common_layout(part.layout for some in parts.values() for part in some)
        labels = {name: merged([part.in_layout(layout) for part in some]) for name, some in parts.items()}
        return BoxCells(self._step_ns, {name: rows for name, rows in labels.items() if name == "op" or _values(rows) > 1})


def coarser(cells: BoxCells) -> BoxCells:
    """Return the cells in windows of twice the width."""
    return BoxCells(2 * cells.step_ns, {name: widened([rows], 2 * cells.step_ns)[0] for name, rows in cells.labels.items()})


def _only(*places: int) -> Callable[[Group], Group]:
    """Return what makes a key of these places of another one."""
    return lambda key: tuple(key[place] for place in places)


def _values(rows: Intervals[Group]) -> int:
    return len({key[0] for key in rows.table})
