"""How the pages put things: escaped text, quantities, lengths and ranges of time for people."""

from __future__ import annotations

from datetime import timedelta
from html import escape

import numpy as np

from ingest.core.grid import MS, SECOND
from ingest.core.timing import format_duration
from ingest.core.writing import latency, number, spaced
from ingest.query.question import Answer
from ingest.view import vega

LONG_SECONDS = 120


def text(value: str) -> str:
    """Return text as HTML that shows it and does nothing else; what is no Unicode is shown by its number."""
    return escape(vega.printable(value))


def shown_latency(value_ns: float) -> str:
    """Return a latency for the page: 4.23 ms, empty if it is not a number."""
    return "" if np.isinf(value_ns) else spaced(latency(float(value_ns))).replace("us", "µs")


def step_text(answer: Answer) -> str:
    """Return how wide the windows of an answer are: 10 s, or the whole range."""
    return spaced(format_duration(answer.step_ns)) if answer.step_ns else "the whole range"


def time_text(low_ns: int, high_ns: int, *, relative: bool) -> str:
    """Return when a run took place (see `between`); of one without a clock, that this is not known."""
    return "elapsed only: the start of the run is not known" if relative else between(low_ns, high_ns)


def between(low_ns: int, high_ns: int) -> str:
    """Return a range of time for people: 2026-11-20 21:00:04 to 21:01:20 UTC."""
    begin, end = (str(np.datetime64(stamp // MS, "ms")).replace("T", " ").removesuffix(".000") for stamp in (low_ns, high_ns))
    day = begin.split(" ")[0] + " "
    return f"{begin} to {end.removeprefix(day)} UTC"


def duration(span_ns: int) -> str:
    """Return a length of time for people: 76 s, or 0:12:30 from two minutes on."""
    seconds = span_ns / SECOND
    return f"{seconds:.6g} s" if seconds < LONG_SECONDS else str(timedelta(seconds=round(seconds)))


def exact(value: float, shown: str) -> str:
    """Return a cell that shows a number for people and holds it as csv has it."""
    return f'<td><data value="{number(float(value))}">{shown}</data></td>' if shown else "<td></td>"
