"""Episodes in the report: bands behind the percentiles over time, and a table; episodes.js draws them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from ingest.core.units import elapsed, format_duration, utc
from ingest.query.episodes import Episode
from ingest.view.page.template import AFTER_PERCENTILES, Section
from ingest.view.specs import derived
from ingest.view.vega import MS, printable

CELLS = ("objective", "group", "promise", "when", "lasted", "peak", "samples", "worst", "state")
WORDS, LEFT = ("objective", "group", "promise", "when", "worst", "state"), ' class="left"'
MOST_ROWS = 500


def sections(episodes: Sequence[Episode], starts_ns: Mapping[str, int], relative: Collection[str]) -> list[Section]:
    """Return the section where there are episodes; `starts_ns` is when each run began, `relative` are those without a clock."""
    if not episodes:
        return []
    shown = sorted(episodes, key=lambda episode: (episode.start_ns, episode.objective, episode.labels))[:MOST_ROWS]
    left = len(episodes) - len(shown)
    notes = [f"{left} of {len(episodes)} episodes are left out: the page shows the first {MOST_ROWS}"] if left else []
    content = [_content(episode) for episode in shown]
    times = [_when(episode, starts_ns.get(episode.run, 0), relative=episode.run in relative) for episode in shown]
    rows = "".join(_row({**row, "when": when}) for row, when in zip(content, times, strict=True))
    specs, filling = {"percentiles": derived("percentiles-episodes")}, {"rows": rows}
    return [Section("episodes", AFTER_PERCENTILES, ("panels/episodes.js",), content, specs, notes=notes, html_filling=filling)]


def _content(episode: Episode) -> dict[str, Any]:
    """Return what the page shows of an episode; times in epoch ms, latencies in words."""
    labels = dict(episode.labels)
    thin = f" ({episode.thin} of {episode.windows} windows too small for it)" if episode.thin else ""
    phase = f", {printable(episode.phase)}" if episode.phase else ""
    return {
        **{name: printable(getattr(episode, name)) for name in ("run", "objective", "group")},
        "promise": f"{episode.promise} in {format_duration(episode.window_ns)}{phase}",
        **{name: printable(labels.get(name, "")) for name in ("host", "op")},
        "kind": printable(episode.kind),
        "t": episode.start_ns / MS,
        "t2": episode.end_ns / MS,
        "lasted": format_duration(episode.end_ns - episode.start_ns),
        "peak": episode.worst.replace(">=", "≥") + thin,
        "samples": f"{episode.samples:,}",
        "worst": printable(episode.worst_host) or "-",
        "state": episode.state,
    }


def _when(episode: Episode, start_ns: int, *, relative: bool) -> str:
    """Return from when to when for those who have no script; the page's own then follows its clock."""
    if relative:
        begin, end = (elapsed(start_ns)(stamp) for stamp in (episode.start_ns, episode.end_ns))
        return f"{begin} to {end} s elapsed"
    begin, end = (utc(stamp)[11:23].replace(".000", "") for stamp in (episode.start_ns, episode.end_ns))
    return f"{begin} to {end} UTC"


def _row(cells_of: Mapping[str, Any]) -> str:
    cells = (f"<td{LEFT if name in WORDS else ''}>{escape(str(cells_of[name]))}</td>" for name in CELLS)
    return f"<tr>{''.join(cells)}</tr>"
