"""Verdicts for people and programs: a table of episodes, and in words what was looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from ingest.core.errors import listed
from ingest.core.timing import format_duration
from ingest.core.writing import Stamp, latency
from ingest.objectives.check import Checked
from ingest.objectives.words import ELAPSED, budgets, counted, looked_at, promise, stamp_of
from ingest.query.table import Table
from ingest.query.verdicts import MET, UNKNOWN, VIOLATED, Episode, Verdict
from ingest.view.marked import escape
from ingest.view.terminal.tables import clock, count, people
from ingest.view.text import UNITS, shown_columns

WORDS = {MET: "met", VIOLATED: "VIOLATED", UNKNOWN: "CANNOT TELL"}
LAST = ("samples", "worst_host", "state")
DISPENSABLE = ("samples", "lasted", "worst_host")  # where a terminal is narrow


def episode_rows(found: Sequence[Verdict], base: str, unit: str = "ns") -> Table:
    """Return one row an episode: objective, labels, start_ns, end_ns, peak, samples, worst_host, state; ordered by start.

    `base` is utc, local or elapsed: with elapsed, and of runs without a clock, times are ns since the start of each run.
    Peaks are in `unit`, NaN where nothing completed. The run is a label of its own where there are several. A label that an
    objective does not have is empty.
    """
    labels = label_names(found)
    rows = [(each, one) for one in found for each in one.episodes]
    places = {objective: place for place, objective in enumerate(dict.fromkeys(one.objective.name for one in found))}
    rows.sort(key=lambda row: (row[0].start_ns, places[row[0].objective], row[0].run, row[0].labels))
    zeros = [one.zero_ns if base == ELAPSED or one.relative else 0 for _, one in rows]
    episodes = [each for each, _ in rows]
    cells = [{"run": one.run, **dict(one.labels)} for one in episodes]
    peaks = np.array([np.nan if one.peak_ns is None else one.peak_ns for one in episodes], np.float64)
    columns = {
        "objective": [one.objective for one in episodes],
        **{name: [row.get(name, "") for row in cells] for name in labels},
        "start_ns": np.array([one.start_ns - zero for one, zero in zip(episodes, zeros, strict=True)], np.int64),
        "end_ns": np.array([one.end_ns - zero for one, zero in zip(episodes, zeros, strict=True)], np.int64),
        "peak": peaks / UNITS[unit] if UNITS[unit] > 1 else peaks,
        "peak_censored": np.array([one.peak_open for one in episodes], np.bool_),
        "samples": np.array([one.samples for one in episodes], np.int64),
        "worst_host": [one.worst_host for one in episodes],
        "state": [one.state for one in episodes],
    }
    return Table(columns, ("objective", *labels, "worst_host", "state"))


def label_names(found: Sequence[Verdict]) -> tuple[str, ...]:
    """Return the labels of all episodes in their order, the run first where there are several and none of them says it."""
    named = dict.fromkeys(name for one in found for name, _ in one.labels)
    several = len({one.run for one in found}) > 1 and "run" not in named
    return (*(("run",) if several else ()), *named)


def notes(checked: Checked) -> list[str]:
    """Return the sentences that a reader of the verdicts must see, whatever the format."""
    left: dict[tuple[str, str], list[str]] = {}
    for one in checked.unjudged:
        left.setdefault((one.objective.name, one.reason), []).extend([one.run] if one.run else [])
    told = [f"{name}: not judged{f' in {listed(runs)}' if runs else ''}: {reason}" for (name, reason), runs in left.items()]
    thin: dict[str, list[Episode]] = {}
    for each in (each for one in checked.verdicts for each in one.episodes if each.thin):
        thin.setdefault(each.objective, []).append(each)
    for name, found in thin.items():
        few, windows = sum(each.thin for each in found), sum(each.windows for each in found)
        told.append(
            f"{name}: {few} of {counted(windows, 'violated window')} in {counted(len(found), 'episode')} hold too few samples to "
            f"carry p{found[0].percentile}: the largest sample stands for it"
        )
    return [*checked.warnings, *told, *_open(checked)]


def _open(checked: Checked) -> list[str]:
    """Return a sentence on each objective of which missing samples leave the verdict open."""
    found: dict[str, list[Verdict]] = {}
    for one in checked.verdicts:
        if one.outcome == UNKNOWN:
            found.setdefault(one.objective.name, []).append(one)
    return [
        f"{name}: cannot tell: samples are missing in {counted(sum(one.unknown for one in some), 'window')} and could change the "
        "verdict; --allow-unknown takes that for no error"
        for name, some in found.items()
    ]


def print_checked(checked: Checked, base: str, *, console: Console | None = None) -> None:
    """Print what was looked at, objective by objective, then a table of the episodes."""
    out = console or people()

    def say(line: str, style: str | None = None) -> None:
        out.print(escape(line), style=style, highlight=False, soft_wrap=True)

    several = len({one.run for one in checked.verdicts}) > 1
    parts: dict[tuple[str, str], list[Verdict]] = {}
    for one in checked.verdicts:
        parts.setdefault((one.objective.name, one.run), []).append(one)
    for (name, run), found in parts.items():
        outcomes = {one.outcome for one in found}
        word = next((one for one in (VIOLATED, UNKNOWN) if one in outcomes), MET)
        head = f"{name}{f', {run}' if several else ''}"
        say(f"{WORDS[word]}  {head}: {promise(found[0].objective)}", None if word == MET else "bold")
        for line in (looked_at(found), budgets(found)):
            if line:
                say(f"    {line}")
    for note in notes(checked):
        say(f"note: {note}", "dim")
    table = episode_rows(checked.verdicts, base)
    if len(table):
        _print_episodes(table, stamp_of(base, checked.verdicts), out)
    else:
        say("no episode")


def _print_episodes(table: Table, stamp: Stamp, out: Console) -> None:
    """Print the rows of a table; a peak that is a lower bound is marked."""
    short, day = clock([*table.columns["start_ns"].tolist(), *table.columns["end_ns"].tolist()], stamp)
    out.print(day, style="dim", highlight=False)
    names = [name for name in shown_columns(table) if name not in ("start_ns", "end_ns")]
    labels = [name for name in table.labels if name not in ("objective", "worst_host", "state")]
    cells: dict[str, list[str]] = {name: [] for name in ("objective", *labels, "start", "end", "lasted", "peak", *LAST)}
    for row in range(len(table)):
        start, end = (int(table.columns[name][row]) for name in ("start_ns", "end_ns"))
        peak = float(table.columns["peak"][row])
        told = {name: escape(str(table.columns[name][row])) or "-" for name in names}
        told |= {"start": short(start), "end": short(end), "lasted": format_duration(end - start)}
        told["peak"] = (">= " if table.columns["peak_censored"][row] else "") + (latency(peak) or "nothing completed")
        told["samples"] = count(float(table.columns["samples"][row]))
        for name, column in cells.items():
            column.append(told[name])
    widths = {name: max([len(name), *map(len, column)]) + 2 for name, column in cells.items()}
    for name in DISPENSABLE:
        if sum(widths.values()) > out.width:
            del widths[name]
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in widths:
        folds = name == "objective" or name in labels
        right = name in ("lasted", "peak", "samples")
        shown.add_column(escape(name), justify="right" if right else "left", overflow="fold", no_wrap=not folds)
    for row in range(len(table)):
        shown.add_row(*(cells[name][row] for name in widths))
    out.print(shown)
