"""The report: one HTML file with all its data, scripts and styles, which opens offline and asks the network for nothing.

The page is report.html; its `{{names}}` are filled in one pass, so that nothing which was put in is looked at again. All
text from labels is escaped, the data are packed (JSON, deflated, base64), and the page's policy lets only the scripts run
whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np
import orjson

from ingest import __version__
from ingest.errors import UsageError
from ingest.percentiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import MULTIPLES, Answer, widened
from ingest.query.table import Table
from ingest.timing import format_duration
from ingest.view import vega
from ingest.view.terminal import latency

MOST_WINDOWS = 720
PERCENTILE = 99
WHOLE = 1 << 62
RUNS_NAMED = 4
SECOND = 1_000_000_000
SUMMARY = "50,90,95,99,99.9,99.99"
NEVER_MERGED = ("run", "kind")
SPECS = ("percentiles", "heatmap")


def report(answer: Answer, facts: Sequence[tuple[str, str]] = (), marks: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the whole page: percentiles over time, heat map, and the facts of the answer followed by `facts`.

    `marks` (run, at_ns, text) are drawn as notes on the time axis. An answer of more than 720 windows is widened, and the
    page says so. UsageError where vl-convert-python is not installed.
    """
    shown = fitted(answer)
    script, runtime = _part("report.js"), _runtime()
    return _page(
        {
            "policy": _policy(runtime, script),
            "version": __version__,
            "runs": escape(_runs(shown)),
            "lead": escape(_lead(shown)),
            "facts": "\n".join(_fact(name, value) for name, value in (*facts_of(shown), *facts)),
            "notes": _notes(shown.warnings),
            "summary": _summary(shown),
            "percentile": str(PERCENTILE),
            "whole": _whole(shown),
            "clock": "" if shown.relative else CLOCK,
            "series": _series(shown),
            "data": packed(shown, marks),
            "runtime": runtime,
            "script": script,
        }
    )


CLOCK = """<fieldset><legend>Time</legend>
<label><input type="radio" autocomplete="off" name="clock" value="utc" checked> UTC</label>
<label><input type="radio" autocomplete="off" name="clock" value="elapsed"> elapsed</label>
</fieldset>"""


def fitted(answer: Answer) -> Answer:
    """Return the answer in at most 720 windows, with a warning where its windows had to be widened."""
    low, high = _range(answer)
    if not answer.step_ns or high - low <= MOST_WINDOWS * answer.step_ns:
        return answer
    multiples = (*MULTIPLES, -(-high // (MOST_WINDOWS // 2 * answer.step_ns)))
    fits = (m * answer.step_ns for m in multiples if _windows(low, high, m * answer.step_ns) <= MOST_WINDOWS)
    step = next(fits)
    text = f"windows widened from {format_duration(answer.step_ns)} to {format_duration(step)}: the page holds at most {MOST_WINDOWS}"
    return replace(answer, parts=tuple(widened(answer.parts, step)), step_ns=step, warnings=(*answer.warnings, text))


def _windows(low: int, high: int, step: int) -> int:
    return -(-high // step) - low // step


def _range(answer: Answer) -> tuple[int, int]:
    filled = [part for part in answer.parts if len(part)]
    return min(int(part.start_ns.min()) for part in filled), max(int(part.end_ns.max()) for part in filled)


def facts_of(answer: Answer) -> list[tuple[str, str]]:
    """Return (name, value) pairs that the answer itself tells."""
    low, high = _range(answer)
    start = answer.start_of
    elapsed = f"{(low - start) / SECOND:,.3~f} s".replace("~", "") if False else ""
    del elapsed
    clock = "elapsed time alone: no time zero is known" if answer.relative else f"{_stamp(low)} to {_stamp(high)} UTC"
    errors = [part.layout.error for part in answer.parts]
    counts = ", ".join(f"{name} {count:,}" for name, count in _samples(answer).items())
    return [
        ("Runs", _runs(answer)),
        ("Latency", f"{answer.kind}, merged from {answer.series:,} series"),
        ("Samples", f"{answer.samples:,}" + (f" ({counts})" if "," in counts else "")),
        ("Time", clock),
        ("Duration", f"{(high - low) / SECOND:,g} s"),
        ("Step", format_duration(answer.step_ns) if answer.step_ns else "the whole range"),
        ("Error bound", f"± {100 * float(max(errors)):.2g} %, counts exact"),
        ("Answered from", answer.answered_from),
    ]


