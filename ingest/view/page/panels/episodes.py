"""Episodes in the report: bands behind the percentiles over time, and a table; episodes.js draws them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from ingest.core.timing import format_duration
from ingest.core.writing import elapsed, latency, utc
from ingest.query.verdicts import Episode
from ingest.view.page.report.section import AFTER_PERCENTILES, Section
from ingest.view.specs import derived
from ingest.view.vega import MS, printable

CELLS = ("objective", "group", "promise", "when", "lasted", "peak", "samples", "worst", "state")
WORDS, LEFT = ("objective", "group", "promise", "when", "worst", "state"), ' class="left"'
MOST_ROWS = 500


def sections(episodes: Sequence[Episode], starts_ns: Mapping[str, int], relative: Collection[str]) -> list[Section]:
    """Return the section where there are episodes; `starts_ns` is when each run began, `relative` are those without a clock."""
    if not episodes:
        return []
    shown = sorted(episodes, key=lambda one: (one.start_ns, one.objective, one.labels))[:MOST_ROWS]
    left = len(episodes) - len(shown)
    note = f"{left} of {len(episodes)} episodes are left out: the page shows the first {MOST_ROWS}"
    told = [_told(one) for one in shown]
    times = [_when(one, starts_ns.get(one.run, 0), relative=one.run in relative) for one in shown]
    rows = "".join(_row({**row, "when": when}) for row, when in zip(told, times, strict=True))
    return [
        Section(
            name="episodes",
            html="panels/episodes.html",
            scripts=("panels/episodes.js",),
            specs={"percentiles": derived("percentiles-episodes")},
            content=told,
            place=AFTER_PERCENTILES,
            notes=[note] if left else [],
            html_filling={"rows": rows},
        )
    ]


def _told(one: Episode) -> dict[str, Any]:
    """Return what the page is told of an episode; times in epoch ms, latencies in words."""
    labels = dict(one.labels)
    peak = "nothing completed" if one.peak_ns is None else ("≥ " if one.peak_open else "") + latency(one.peak_ns)
    thin = f" ({one.thin} of {one.windows} windows too small for it)" if one.thin else ""
    return {
        "run": printable(one.run),
        "objective": printable(one.objective),
        "group": printable(one.group),
        "promise": f"p{one.percentile} at most {latency(one.threshold_ns)} in {format_duration(one.window_ns)}",
        "host": printable(labels.get("host", "")),
        "op": printable(labels.get("op", "")),
        "kind": printable(one.kind),
        "t": one.start_ns / MS,
        "t2": one.end_ns / MS,
        "lasted": format_duration(one.end_ns - one.start_ns),
        "peak": peak + thin,
        "samples": f"{one.samples:,}",
        "worst": printable(one.worst_host) or "-",
        "state": one.state,
    }


def _when(one: Episode, start_ns: int, *, relative: bool) -> str:
    """Return from when to when for those who have no script; the page's own then follows its clock."""
    if relative:
        begin, end = (elapsed(start_ns)(stamp) for stamp in (one.start_ns, one.end_ns))
        return f"{begin} to {end} s elapsed"
    begin, end = (utc(stamp)[11:23].replace(".000", "") for stamp in (one.start_ns, one.end_ns))
    return f"{begin} to {end} UTC"


def _row(told: Mapping[str, Any]) -> str:
    cells = (f"<td{LEFT if name in WORDS else ''}>{escape(str(told[name]))}</td>" for name in CELLS)
    return f"<tr>{''.join(cells)}</tr>"
