"""What happened in a run, and who is over-represented in a box, for people at a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.table import Table as RichTable

from ingest.core.errors import counted
from ingest.core.intervals import Int
from ingest.core.units import Stamp, format_duration, latency, utc
from ingest.query.box import ELSEWHERE, PERCENTILES, BoxOffsets, Explained
from ingest.query.story.ground import Finding, Story
from ingest.query.story.words import shown
from ingest.view.boxes import WHERE, latencies, offsets_sentence, percent, sentences, times, times_of
from ingest.view.terminal.tables import empty_table, escape, people, say, say_notes

# What happened in a run, for people: findings in sentences, the largest first, and what they do not explain.


def print_story(story: Story, stamp: Stamp | None = None, marks: Sequence[str] = ()) -> None:
    """Print the story of a run; with `stamp` each finding's times are written by it, too."""
    out = people()
    clock = "" if story.relative else f" ({utc(story.zero_ns)[:10]}, UTC)"
    say(out, [f"what happened in {story.run or 'the run'}{clock}"])
    say_notes(out, (*story.lacks, *story.caveats, *marks))
    out.print()
    for number, finding in enumerate(story.findings, 1):
        say(out, [f"{number}. {finding.text}"], "bold")
        say(out, (f"   below it: {each.text}" for each in finding.below))
        say(out, (f"   {name}: {text}" for name, text in _details(finding, stamp).items()))
    say(out, closing(story), "dim" if story.findings else None)


def _details(finding: Finding, stamp: Stamp | None) -> Mapping[str, str]:
    """Return what is said of a finding below its sentence."""
    times = f"{stamp(finding.start_ns)} to {stamp(finding.end_ns)}" if stamp else ""
    lines = {"times": times, "consistent with": finding.consistent, "against": finding.against, "see": finding.command}
    return {name: text for name, text in lines.items() if text}


def closing(story: Story) -> list[str]:
    """Return what no finding explains, and what is taken for typical."""
    lines = [story.nothing] if story.nothing else []
    if story.excess_ns and story.findings:
        lines.append(f"Not explained: {100 * story.unexplained:.0f} % of all excess latency ({shown(story.excess_ns)} in all).")
    return [*lines, *([story.reference] if story.reference else [])]


# Who is over-represented in a box, for people: the verdict, then the table of values, then latencies inside and outside.


MOST_ROWS = 20
SHOWN_SIDES = ("in the box", "outside", "in its time", "at other times")  # as box.SIDES
BARS = " ▁▂▃▄▅▆▇█"
SNAPPED = "edges are those of stored windows and bins, counts are exact"


def print_box(explained: Explained, stamp: Stamp, notes: Sequence[str] = (), offsets: BoxOffsets | None = None) -> None:
    """Print what is in a box and who made it, as wide as the terminal; latencies and offsets beside those of the rest."""
    out = people()
    say(out, heading(explained, stamp))
    say_notes(out, (*explained.answer.warnings, *explained.notes, *notes))
    out.print()
    say(out, sentences(explained), "bold")
    if not explained.inside or not explained.outside:
        return
    if len(explained.table):
        out.print(_values(explained))
    more = len(explained.table) - MOST_ROWS
    if more > 0:
        out.print(f"{counted(more, 'more value')}: csv has them all", style="dim", highlight=False)
    out.print(_latencies(explained))
    if offsets and offsets_sentence(offsets):
        out.print(offsets_sentence(offsets), highlight=False, soft_wrap=True)
        for name, counts in (("in its time", offsets.inside), ("at other times", offsets.outside)):
            out.print(f" {name:<14}  0 {bars(counts)} 1 s", highlight=False, no_wrap=True)


def heading(explained: Explained, stamp: Stamp) -> list[str]:
    """Return which box was used and how many samples are in it."""
    every = explained.inside + explained.outside
    share = percent(explained.inside / every) if every else "0 %"
    what = f"box of {', '.join(explained.answer.runs[:3])}: {explained.answer.latency}"
    where = f"in {counted(explained.windows, 'window')} of {format_duration(explained.window_ns)}"
    held = f"{explained.inside:,} of {counted(every, 'sample')} ({share}), {where}"
    if explained.against != ELSEWHERE:
        held = f"{counted(explained.inside, 'sample')}, {where}; held against {explained.outside:,} {WHERE[explained.against][0]}"
    return [f"{what} {latencies(explained)}, {times_of(explained, stamp)}", f"{held}; {SNAPPED}"]


def _values(explained: Explained) -> RichTable:
    titles = ("label", "value", "in the box", "share", "outside", "share", "times", "bounds", "verdict")
    shown = empty_table(titles, ("label", "value", "verdict"), ("value",), "fold")
    columns = explained.table.columns
    for row in range(min(len(explained.table), MOST_ROWS)):
        low, high = float(columns["lo"][row]), float(columns["hi"][row])
        bounds = "-" if math.isnan(low) else f"{times(low)} - {times(high)}"
        flags = "" if columns["complete"][row] else ", samples missing"
        sides = [(f"{columns[side][row]:,}", percent(columns[f"share_{side}"][row])) for side in ("inside", "outside")]
        cells = (*sides[0], *sides[1], times(float(columns["lift"][row])), bounds, columns["verdict"][row] + flags)
        shown.add_row(*(escape(str(cell)) for cell in (columns["label"][row], columns["value"][row] or "-", *cells)))
    return shown


def _latencies(explained: Explained) -> RichTable:
    names = ("max" if percentile.name == "p100" else percentile.name for percentile in PERCENTILES)
    shown = empty_table(("latency", *names), ("latency",))
    timed = any(edge is not None for span in explained.spans.values() for edge in span)
    for place, name in enumerate(SHOWN_SIDES if timed else SHOWN_SIDES[:2]):
        shown.add_row(name, *(latency(sides[place]) or "-" for sides in explained.percentiles))
    return shown


def bars(counts: Int) -> str:
    """Return counts as bars of eight heights, the highest of them full; nothing where there are none."""
    most = max(int(counts.max()), 1)
    return "".join(BARS[-(-int(count) * (len(BARS) - 1) // most)] for count in counts)
