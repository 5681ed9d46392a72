"""Rows of an HdrHistogram log that grows: the state that the lines to come need, as plain values and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.core.layout import parse_layout
from ingest.core.series import LABELS, Series
from ingest.read.context import Context
from ingest.read.hdr.again import Again
from ingest.read.hdr.clock import Clock
from ingest.read.hdr.codec import Geometry
from ingest.read.hdr.origin import Origin
from ingest.read.hdr.rows import Rows
from ingest.read.hdr.tallies import Tallies


class KeptRows(Rows):
    """Takes the lines of one log, and can go on after another process has taken some of them."""

    def __init__(self, context: Context, origin: Origin, unit_ns: int, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(context, origin, unit_ns)
        if state is None:
            return
        self._clock = Clock.knowing(*state["clock"])
        self._number = state["lines"]
        self._shift = state["shift"]
        self._table = {Series(*labels): code for code, labels in enumerate(state["series"])}
        for tag, layout, ends in state["ends"]:
            self._ends[tag.encode("latin-1"), parse_layout(layout)] = [(end, code) for end, code in ends]
        for geometry in state["geometries"]:
            self._layouts.of(Geometry(*geometry))
        self._trimmed = state["trimmed"]
        self._tallies = Tallies((tuple(key), tuple(tally)) for key, tally in state.get("tallies", ()))
        self._again = Again((tuple(op), lines) for op, lines in state.get("repeated", ()))
        self._gaps.last_ns = state.get("last_line_ns")

    def state(self) -> dict[str, Any]:
        """Return the state that the lines to come need, as values that JSON can hold. All lines taken are in `intervals`."""
        return {
            "clock": self._clock.known,
            "lines": self._number,
            "shift": self._shift,
            "series": [[*(getattr(series, label) for label in LABELS), series.segment] for series in self._table],
            "ends": [[tag.decode("latin-1"), str(layout), ends] for (tag, layout), ends in self._ends.items()],
            "geometries": [[geometry.digits, geometry.unit_magnitude, geometry.ratio] for geometry in self._layouts.geometries],
            "trimmed": self._trimmed,
            "last_line_ns": self._gaps.last_ns,
            "tallies": [[key, tally] for key, tally in self._tallies.told.items()],
            "repeated": [[op, lines] for op, lines in self._again.repeated.items()],
        }
