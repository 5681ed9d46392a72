"""Which series a file of polls holds, and from when to when: what two files of Prometheus or OpenTelemetry are told apart by."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ingest.core.coverage import labels_of
from ingest.core.errors import as_text
from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.read.context import SHADOWING, SPANS, Context

OF_FILE = "~"


class Span(NamedTuple):
    """When a file holds a series, without offset, and whether as native histograms: classic ones alone have an open bin."""

    native: bool
    start_ns: int
    end_ns: int
    series: str

    @property
    def text(self) -> str:
        """Return it as a line."""
        return f"{self.native:d} {self.start_ns} {self.end_ns} {self.series}"


def parse_spans(text: str) -> list[Span]:
    """Return the spans of lines."""
    words = (line.split(" ", 3) for line in text.splitlines())
    return [Span(native == "1", int(start), int(end), series) for native, start, end, series in words]


def spans_of(parts: Iterable[Intervals[Series]], context: Context) -> str:
    """Return the spans of the series of a file, a line each."""
    spans = (
        Span(not part.layout.open_ended, start, end, name_of(series, context))
        for part in parts
        for series, start, end in part.reach()
    )
    return "\n".join(span.text for span in spans)


def name_of(series: Series, context: Context) -> str:
    """Return what a series is called in any file: its labels as JSON, but for the segment, and the process of its file's name.

    What is named by its file alone (OF_FILE) may be another in another file.
    """
    of_file = series.process == context.series.process
    labels = labels_of(series.replaced(process="") if of_file else series)
    return (OF_FILE if of_file else "") + json.dumps({name: value for name, value in labels.items() if name != "run"})


def told_to_others(path: Path, context: Context) -> dict[str, Any]:
    """Return what other files are held against: of each series of a file its labels, and from when to when it has polls of it.

    Without what is named by its file alone, and without what another file holds in the other form.
    """
    told: dict[str, dict[str, Any]] = {}
    elsewhere = {span.series for span in parse_spans(context.options.get(SHADOWING, ""))}
    for span in parse_spans(context.options[SPANS]):
        if not span.series.startswith(OF_FILE) and (span.native or span.series not in elsewhere):
            labels = json.loads(span.series)
            labels["host"] = context.host_alias.get(labels["host"], labels["host"])
            begin, end = span.start_ns + context.offset_ns, span.end_ns + context.offset_ns
            told[str(len(told) + 1)] = {"labels": labels, "from_ns": begin, "to_ns": end}
    return {"path": as_text(path), "series": told}
