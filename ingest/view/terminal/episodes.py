"""Verdicts for people and programs: a table of episodes, and in words what was looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from ingest.core.errors import counted, listed
from ingest.core.layout import LAST_NS
from ingest.core.objective import Latency, Rate, per_second
from ingest.core.units import UNITS_NS, Stamp, format_duration, latency
from ingest.objectives.check import Checked
from ingest.objectives.objectives import ELAPSED, budgets, burnt, group_name, left_out, looked_at, promise, stamp_of
from ingest.query.episodes import CANNOT_TELL, MET, NOTHING, VIOLATED, Episode, Verdict, undetermined
from ingest.query.table import Table
from ingest.view.terminal.tables import clock, count, empty_table, escape, people, say, say_notes
from ingest.view.text import shown_columns

WORDS = {MET: "met", VIOLATED: "VIOLATED", CANNOT_TELL: "CANNOT TELL"}
LAST = ("samples", "worst_host", "state")
DISPENSABLE = ("samples", "lasted", "worst_host")  # where a terminal is narrow


def episode_rows(verdicts: Sequence[Verdict], base: str, unit: str = "ns") -> Table:
    """Return one row an episode: objective, labels, start_ns, end_ns, peak, samples, worst_host, state; ordered by start.

    `base` is utc, local or elapsed: with elapsed, and of runs without a clock, times are ns since the start of each run.
    Peaks are in `unit`, NaN where nothing completed and of a rate, whose `lowest_rate` (completions a second) is a column where
    an objective is about one. The run is a label of its own where there are several. A label that an objective does not have is
    empty.
    """
    labels, rates = label_names(verdicts), any(isinstance(verdict.objective.promise, Rate) for verdict in verdicts)
    rows = [(each, verdict) for verdict in verdicts for each in verdict.episodes]
    places = {objective: place for place, objective in enumerate(dict.fromkeys(verdict.objective.name for verdict in verdicts))}
    rows.sort(key=lambda row: (row[0].start_ns, places[row[0].objective], row[0].run, row[0].labels))
    zeros = np.array([verdict.zero_ns if base == ELAPSED or verdict.relative else 0 for _, verdict in rows], np.int64)
    episodes = [each for each, _ in rows]
    cells = [{"run": episode.run, **dict(episode.labels)} for episode in episodes]
    peaks = np.array([np.nan if episode.peak_ns is None else episode.peak_ns for episode in episodes], np.float64)
    peaks[peaks >= LAST_NS] = np.inf  # of operations that failed
    columns = {
        "objective": [episode.objective for episode in episodes],
        **{name: [row.get(name, "") for row in cells] for name in labels},
        "start_ns": np.array([episode.start_ns for episode in episodes], np.int64) - zeros,
        "end_ns": np.array([episode.end_ns for episode in episodes], np.int64) - zeros,
        "peak": peaks / UNITS_NS[unit] if UNITS_NS[unit] > 1 else peaks,
        **(
            {"lowest_rate": np.array([np.nan if each.lowest_rate is None else each.lowest_rate for each in episodes])}
            if rates
            else {}
        ),
        "peak_censored": np.array([episode.peak_open for episode in episodes], np.bool_),
        "samples": np.array([episode.samples for episode in episodes], np.int64),
        "worst_host": [episode.worst_host for episode in episodes],
        "state": [episode.state for episode in episodes],
    }
    return Table(columns, ("objective", *labels, "worst_host", "state"))


def label_names(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return the labels of all episodes in their order, the run first where there are several and none of them says it."""
    named = dict.fromkeys(name for verdict in verdicts for name, _ in verdict.labels)
    several = len({verdict.run for verdict in verdicts}) > 1 and "run" not in named
    return (*(("run",) if several else ()), *named)


def notes(checked: Checked) -> list[str]:
    """Return the sentences that a reader of the verdicts must see, whatever the format."""
    left: dict[tuple[str, str], list[str]] = {}
    for entry in checked.unjudged:
        left.setdefault((entry.objective.name, entry.reason), []).extend([entry.run] if entry.run else [])
    sentences = [f"{name}: not judged{f' in {listed(runs)}' if runs else ''}: {reason}" for (name, reason), runs in left.items()]
    thin: dict[str, list[Episode]] = {}
    for each in (each for verdict in checked.verdicts for each in verdict.episodes if each.thin):
        if isinstance(each.promise, Latency) and each.promise.most_failed:
            continue  # a share of few operations is a share
        thin.setdefault(each.objective, []).append(each)
    for name, episodes in thin.items():
        few, windows = sum(each.thin for each in episodes), sum(each.windows for each in episodes)
        sentences.append(
            f"{name}: {few} of {counted(windows, 'violated window')} in {counted(len(episodes), 'episode')} hold too few samples "
            f"to carry p{episodes[0].percentile}: the largest sample stands for it"
        )
    unknown: dict[str, list[Verdict]] = {}
    for verdict in checked.verdicts:
        if verdict.outcome == CANNOT_TELL:
            unknown.setdefault(verdict.objective.name, []).append(verdict)
    for name, some in unknown.items():
        where = f"{undetermined(some)} and could change the verdict"
        sentences.append(f"{name}: cannot tell: {where}; --allow-unknown takes that for no error")
    sentences += [
        f"{each.objective.name}: cannot tell: the bounds are too wide; --allow-unknown takes that for no error"
        for each in {each.objective.name: each for each in checked.compared if each.outcome == CANNOT_TELL}.values()
    ]
    return [*checked.warnings, *sentences]


def comparison_lines(checked: Checked) -> list[str]:
    """Return a sentence on each comparison with a baseline, which has no row in a table of episodes."""
    several = len({each.run for each in checked.compared}) > 1
    return [
        f"{WORDS[each.outcome]}  {each.objective.name}{f', {each.run}' if several else ''}"
        f"{f', {group_name(each.labels)}' if each.labels else ''}: {each.objective.promise}: {each}"
        for each in checked.compared
    ]


def unjudged_windows(checked: Checked) -> list[str]:
    """Return a sentence on each objective of which windows were not judged: tables say it beside what was."""
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in checked.verdicts:
        verdicts.setdefault(verdict.objective.name, []).append(verdict)
    return [f"{name}: {sentence}" for name, some in verdicts.items() for sentence in left_out(some, "of the windows {:,}")]


def print_checked(checked: Checked, base: str, belonging: Sequence[str] = ()) -> None:
    """Print what was looked at, objective by objective, then a table of the episodes, and what they belong to."""
    out = people()
    several = len({verdict.run for verdict in checked.verdicts}) > 1
    parts: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in checked.verdicts:
        parts.setdefault((verdict.objective.name, verdict.run), []).append(verdict)
    for (name, run), verdicts in parts.items():
        outcomes = {verdict.outcome for verdict in verdicts}
        word = next((outcome for outcome in (VIOLATED, CANNOT_TELL) if outcome in outcomes), MET)
        head = f"{name}{f', {run}' if several else ''}"
        say(out, [f"{WORDS[word]}  {head}: {promise(verdicts[0].objective)}"], None if word == MET else "bold")
        say(out, (f"    {line}" for line in (looked_at(verdicts), budgets(verdicts), *burnt(verdicts, base)) if line))
    for line in comparison_lines(checked):
        say(out, [line], None if line.startswith(WORDS[MET]) else "bold")
    say_notes(out, notes(checked))
    table = episode_rows(checked.verdicts, base)
    if len(table):
        _print_episodes(table, stamp_of(base, checked.verdicts), out)
        say(out, belonging)
    elif checked.verdicts:
        say(out, ["no episode"])


def _print_episodes(table: Table, stamp: Stamp, out: Console) -> None:
    """Print the rows of a table; a peak that is a lower bound is marked."""
    short, day = clock([*table.columns["start_ns"].tolist(), *table.columns["end_ns"].tolist()], stamp)
    out.print(day, style="dim", highlight=False)
    names = [name for name in shown_columns(table) if name not in ("start_ns", "end_ns", "lowest_rate")]
    labels = [name for name in table.labels if name not in ("objective", "worst_host", "state")]
    rows = []
    for row in range(len(table)):
        start, end = (int(table.columns[name][row]) for name in ("start_ns", "end_ns"))
        texts = {name: escape(str(table.columns[name][row])) or "-" for name in names}
        texts |= {"start": short(start), "end": short(end), "lasted": format_duration(end - start)}
        peak, rate = (float(table.columns[name][row]) if name in table.columns else math.nan for name in ("peak", "lowest_rate"))
        worst = per_second(rate) if rate == rate else latency(peak)  # noqa: PLR0124  # NaN
        texts["peak"] = f"{'>= ' if table.columns['peak_censored'][row] else ''}{worst}" if worst else NOTHING
        texts["samples"] = count(float(table.columns["samples"][row]))
        rows.append(texts)
    titles = ("objective", *labels, "start", "end", "lasted", "peak", *LAST)
    widths = {name: max([len(name), *(len(texts[name]) for texts in rows)]) + 2 for name in titles}
    for name in DISPENSABLE:
        if sum(widths.values()) > out.width:
            del widths[name]
    left = [name for name in widths if name not in ("lasted", "peak", "samples")]
    shown = empty_table(widths, left, ("objective", *labels), "fold")
    for texts in rows:
        shown.add_row(*(texts[name] for name in widths))
    out.print(shown)
