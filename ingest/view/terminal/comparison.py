"""What compare shows people: a table with a verdict on every line, and two distributions on one pair of axes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest.core.errors import UsageError, counted, listed
from ingest.core.intervals import Intervals
from ingest.core.labels import Group
from ingest.core.quantiles import Percentile, parse_percentiles
from ingest.core.units import figure, latency, spaced
from ingest.query.batch_means import LEAST_RUNS
from ingest.query.compare import FASTER, FEWER, METHOD, MORE, SAME, SLOWER, UNKNOWN, Pair, alone, is_lag, method
from ingest.query.excess import OP, excess_sentence
from ingest.query.precision import precision_of
from ingest.query.question import Answer
from ingest.query.sweeps import PERMUTATION
from ingest.query.table import Table
from ingest.view import vega
from ingest.view.specs import derived
from ingest.view.terminal.tables import PageConsole, bound_text, empty_table, escape, first_of, people, say, say_notes

LARGE = 10
MOST_GROUPS = 9
BETWEEN = 110
NAMES_SHOWN = 3
CHART, MOST_DRAWN, MOST_LETTERS = 32, 8, 24
BESIDE = 0.05  # of the logarithm, to the left and right of what is drawn
SPEAKING = ("host", "op", "kind")
TOO_FEW = "too few independent windows, or too few samples beyond the percentile; longer runs have more"
TWO_EXECUTIONS = (
    "the bounds are about these two executions: how much executions of the same thing differ is not in them "
    f"({LEAST_RUNS} runs or more on a side: the spread between them)"
)
COUNTED = ("slower", "faster", "the same", "cannot tell", "too few samples", "only in the baseline", "only in the run")
FAILED_AS = {
    MORE: "More failures",
    FEWER: "Fewer failures",
    SAME: "As many failures",
    UNKNOWN: "Cannot tell whether more operations fail",
}
COUNTED_AS = {"cannot tell": "cannot be determined", "too few samples": "with too few samples"}


def print_comparison(pair: Pair, table: Table, said: Sequence[str]) -> None:
    """Print a comparison: the verdict (`said`), a picture of the largest changes, notes, and groups, the largest effect first."""
    out = people()
    say(out, said, "bold")
    for line in [] if isinstance(out, PageConsole) else picture(table):
        out.print(escape(line), highlight=False, no_wrap=True)
    out.print()
    say(out, _heading(pair, table))
    say_notes(out, notes(pair, table))
    titles = (*table.labels, "", "baseline", "run", "ratio", "95 % bounds", "n baseline", "n run", "verdict")
    shown = empty_table(titles, (*table.labels, "", "verdict"), ("verdict",))
    for row in in_groups(table):
        shown.add_row(*(escape(cell) for cell in _cells(table, row)))
    out.print(shown)


def opening(pair: Pair, table: Table, movers: Sequence[Table] = ()) -> list[str]:
    """Return the verdict, which page and terminal open with: slower or faster, by how much, and how many rows say so.

    `movers` are comparisons by other labels, such as operation and host: what changed most by each is named.
    """
    run, baseline = runs_text(pair.run), runs_text(pair.baseline)
    words = [str(word) for word in table.columns["verdict"]]
    certain = [row for row, word in enumerate(words) if word in (SLOWER, FASTER)]
    valued = [row for row, word in enumerate(words) if word in (SLOWER, FASTER, SAME, UNKNOWN)]
    said = [*filter(None, [largest_excess(pair)])]
    if not valued:
        return [
            *said,
            *failed_sentences(table),
            f"Cannot tell how {run} compares with {baseline}: no percentile has enough samples in both.",
        ]
    if certain:
        ways = [word for word in (SLOWER, FASTER) if word in words]
        way = f"{ways[0]} than {baseline}" + (f" in part, {ways[1]} in part" if len(ways) > 1 else "")
        said.append(f"{run} is {way}: {change_text(table, certain[0])}.")
    elif {words[row] for row in valued} == {SAME}:
        widest = max(max(float(table.columns["hi"][row]), 1 / float(table.columns["lo"][row])) for row in valued)
        said.append(f"{run} is as fast as {baseline}: no percentile differs by more than {figure(100 * (widest - 1), 2)} %.")
    else:
        largest, bounds = change_text(table, valued[0]), [float(table.columns[end][valued[0]]) for end in ("lo", "hi")]
        why = "there is too little data for bounds" if np.isnan(bounds).all() else "no change is within the bounds"
        said.append(f"Cannot tell whether {run} is slower or faster than {baseline}: {why}. The largest difference: {largest}.")
    moved = [change_text(mover, 0) for mover in movers if len(mover) and mover.columns["verdict"][0] in (SLOWER, FASTER)]
    said += [f"What changed most: {'; '.join(moved)}."] if moved else []
    said += failed_sentences(table)
    return [*said, counts_text(table, range(len(table)))] if len(table) > 1 else said


def failed_sentences(table: Table) -> list[str]:
    """Return what is said of failures: of the group whose share certainly changed most, else of the largest difference."""
    columns = table.columns
    rows = [row for row in range(len(table)) if columns["failed_verdict"][row]]
    if not rows:
        return []
    least = {row: max(float(columns["failed_lo"][row]), -float(columns["failed_hi"][row]), 0.0) for row in rows}
    row = max(rows, key=lambda row: (least[row], abs(columns["failed_run"][row] - columns["failed_baseline"][row])))
    group = " ".join(label_text(name, str(columns[name][row])) for name in table.labels)
    before, after = (f"{figure(100 * float(columns[f'failed_{side}'][row]))} %" for side in ("baseline", "run"))
    low, high = (f"{100 * float(columns[f'failed_{end}'][row]):+.3g}" for end in ("lo", "hi"))
    what = FAILED_AS[str(columns["failed_verdict"][row])]
    bounds = "" if math.isnan(columns["failed_lo"][row]) else f", 95 %: {low} to {high} percentage points"
    return [f"{what}: {f'of {group} ' if group else ''}{after} of operations, {before} in the baseline{bounds}."]


def change_text(table: Table, row: int) -> str:
    """Return the change of a row: p99 of h2 write went from 553 µs to 717 µs, 1.296 times (95 %: 1.167 to 1.477)."""
    columns = table.columns
    group = " ".join(label_text(name, str(columns[name][row])) for name in table.labels)
    what = f"p{columns['percentile'][row]:.15g}" + (f" of {group}" if group else "")
    sides = [
        ("at least " if columns[f"{side}_censored"][row] else "") + spaced(latency(float(columns[side][row])))
        for side in ("baseline", "run")
    ]
    if np.isinf([float(columns[side][row]) for side in ("baseline", "run")]).any():
        return f"{what} went from {sides[0]} to {sides[1]}"
    bounds = bounds_text(float(columns["lo"][row]), float(columns["hi"][row])) or "not known"
    return f"{what} went from {sides[0]} to {sides[1]}, {ratio_text(float(columns['ratio'][row])) or '?'} times (95 %: {bounds})"


def counts_text(table: Table, rows: Sequence[int]) -> str:
    """Return how many rows are slower, faster, alike, or cannot be judged."""
    kinds = Counter(verdict(table, row).split(" within")[0].split(":")[0] for row in rows)
    return f"Of {len(rows)}: {', '.join(f'{kinds[kind]} {COUNTED_AS.get(kind, kind)}' for kind in COUNTED if kinds[kind])}."


def label_text(label: str, value: str) -> str:
    """Return a value, with the name of its label where it does not speak for itself."""
    if label == PERMUTATION:  # beside a bar there is room for some 18 letters: what differs most comes first
        return " ".join(reversed(value.replace("total_iodepth-", "depth ").replace("numjobs-", "jobs ").split("/")))
    return value or "-" if label in SPEAKING else f"{label} {value or '-'}"


def picture(table: Table) -> list[str]:
    """Return a line for each group at the percentile that changed most, of all percentiles without groups; largest effect first.

    On one logarithmic scale: bounds as a line, the ratio as an o, | where nothing changed.
    """
    rows = [row for row in range(len(table)) if 0 < float(table.columns["ratio"][row]) < math.inf]
    if table.labels:
        rows = [row for row in rows if table.columns["percentile"][row] == table.columns["percentile"][rows[0]]]
    more, rows = len(rows) - MOST_DRAWN, rows[:MOST_DRAWN]
    if not rows:
        return []
    ends = [0.0, *(math.log(table.columns["ratio"][row]) for row in rows)]
    low, span = min(ends) - BESIDE, max(ends) - min(ends) + 2 * BESIDE
    names = [row_name(table, row) for row in rows]
    room = min(max(map(len, names)), MOST_LETTERS)
    lines = []
    for name, row in zip(names, rows, strict=True):
        logs = [math.log(table.columns[key][row]) for key in ("ratio", "lo", "hi")]
        short = name if len(name) <= room else f"{name[: room - 3]}..."
        end = f"{ratio_text(float(table.columns['ratio'][row]))} times, {verdict(table, row)}"
        lines.append(f" {short:<{room}}  {whisker(logs, low, span, nothing=0.0):<{CHART}}  {end}")
    return ["", *lines, *([f" {counted(more, 'more group')}: see the table"] if more > 0 else [])]


def whisker(logs: Sequence[float], low: float, span: float, *, nothing: float = math.nan) -> str:
    """Return a value and its bounds (NaN: none) as `--o---` in CHART letters from `low` on, with | at `nothing` if it is free."""

    def place(value: float) -> int:
        return round(min(max((value - low) / span, 0.0), 1.0) * (CHART - 1))

    value = place(logs[0])
    first, last = (value if math.isnan(bound) else place(bound) for bound in logs[1:])
    letters = ["-" if first <= at <= last else " " for at in range(CHART)]
    if not math.isnan(nothing):
        letters[place(nothing)] = "|"
    letters[value] = "o"
    return "".join(letters).rstrip()


def in_groups(table: Table) -> list[int]:
    """Return the rows by group, in the order of each group's largest effect, its percentiles in order."""
    keys = list(zip(*(table.columns[name] for name in table.labels), strict=True)) if table.labels else [()] * len(table)
    first = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return sorted(range(len(table)), key=lambda row: (first[keys[row]], table.columns["percentile"][row]))


def verdict(table: Table, row: int) -> str:
    """Return what may be said of a row: slower, faster, the same within some share, or that it cannot be determined."""
    row_values = {name: table.columns[name][row] for name in ("baseline", "run", "ratio", "lo", "hi")}
    for side, other in (("baseline", "run"), ("run", "baseline")):
        if not table.columns[f"count_{side}"][row]:
            return f"only in the {other}"
    if np.isnan(row_values["baseline"]) or np.isnan(row_values["run"]):
        return f"too few samples: {needed(float(table.columns['percentile'][row])):,} at least"
    word = str(table.columns["verdict"][row])
    return f"the same within {figure(100 * (max(row_values['hi'], 1 / row_values['lo']) - 1), 2)} %" if word == SAME else word


def bounds_text(low: float, high: float) -> str:
    """Return bounds of a ratio: 0.97 to 1.31; one that is not known is left open."""
    if np.isnan(low) and np.isnan(high):
        return ""
    if np.isnan(low):
        return f"up to {ratio_text(high)}"
    return f"{ratio_text(low)} to {ratio_text(high)}" if not np.isnan(high) else f"{ratio_text(low)} or more"


def ratio_text(ratio: float) -> str:
    """Return a ratio to three decimals, or to two from 10 on; empty if it is not known."""
    if np.isinf(ratio):
        return "any"  # a percentile of operations that failed against one of others
    return "" if np.isnan(ratio) else f"{ratio:.3f}" if ratio < LARGE else f"{ratio:,.2f}"


def row_name(table: Table, row: int) -> str:
    """Return what a row is about: ceph-b read p99; the run itself is left out."""
    labels = [str(table.columns[name][row]) or "-" for name in table.labels if name != "run"]
    return " ".join([*labels, f"p{table.columns['percentile'][row]:.15g}"])


def notes(pair: Pair, table: Table) -> list[str]:
    """Return the sentences that a reader must see: repairs of either run, unlike bins, too few samples, groups of one run."""
    sentences = [f"{runs_text(side)}: {text}" for side in (pair.baseline, pair.run) for text in side.warnings]
    sentences += pair.notes
    both = (table.columns["count_baseline"] > 0) & (table.columns["count_run"] > 0)
    for percentile in sorted(set(table.columns["percentile"].tolist())):
        mine = both & (table.columns["percentile"] == percentile)
        few = mine & (np.isnan(table.columns["baseline"]) | np.isnan(table.columns["run"]))
        if few.any():
            rows = f"{few.sum()} of {mine.sum()} rows have fewer"
            sentences.append(f"p{percentile:.15g} needs {needed(percentile):,} samples: {rows}")
    unbounded = np.isnan(table.columns["lo"]) & np.isnan(table.columns["hi"]) & (table.columns["verdict"] == UNKNOWN)
    if any(pair.windows) and unbounded.any():
        sentences.append(f"no bounds for {unbounded.sum()} of {both.sum()} rows: {TOO_FEW}")
    if method(pair) == METHOD and any(pair.windows):
        sentences.append(TWO_EXECUTIONS)
    for side, groups in zip((pair.baseline, pair.run), alone(table), strict=True):
        if groups:
            sentences.append(f"only in {runs_text(side)}: {listed(' '.join(label or '-' for label in key) for key in groups)}")
    return sentences


def largest_excess(pair: Pair) -> str:
    """Return which event took longer by the most in all; of lags alone, and where events are kept apart."""
    return excess_sentence(pair.baseline, pair.run) if OP in pair.by and is_lag(pair.baseline, pair.run) else ""


def comparison_picture(pair: Pair, windows: Pair | None = None) -> dict[str, Any]:
    """Return the filled spec of both distributions on 1 / (1 - q), a curve for each run and group.

    With `windows` (both runs over time, without groups, in windows of one width) their heat maps stand below, shaded on one
    scale. UsageError where there are more groups than a picture can show.
    """
    answer = both(pair)
    if len(vega.group_names(answer)) > 2 * MOST_GROUPS:
        raise UsageError(f"a picture shows at most {MOST_GROUPS} groups of two runs: choose with --where, or leave out --by")
    runs = vega.printable(f"{runs_text(pair.run)} (run) against {runs_text(pair.baseline)} (baseline)")
    samples = f"{kinds_text(pair)} latency, {pair.run.samples:,} against {pair.baseline.samples:,} samples"
    head = derived("picture", text=runs, subtitle=samples)
    curves = vega.with_values(vega.spec("distribution"), {"points": vega.curve(answer)})
    if windows is None:
        return {**curves, **head}
    return {**_above(curves, vega.with_values(vega.spec("maps"), {"cells": cells(windows)})), **head}


def cells(windows: Pair) -> vega.Columns:
    """Return the cells of both heat maps, the baseline's first, times from the start of each run; ranks are among all of them."""
    columns = vega.cells(both(Pair(elapsed(windows.baseline), elapsed(windows.run))))
    sides = columns.pop("group")
    of = {"baseline": windows.baseline, "run": windows.run}
    titles = {name: vega.printable(f"{name}: {runs_text(side)}") for name, side in of.items()}
    return {**columns, "run": sides, "name": [titles[side] for side in sides]}


def elapsed(answer: Answer) -> Answer:
    """Return an answer whose times count from the start of its run."""
    zero = answer.start_of
    parts = (replace(part, start_ns=part.start_ns - zero, end_ns=part.end_ns - zero) for part in answer.parts)
    return replace(answer, parts=tuple(parts))


def _above(upper: dict[str, Any], lower: dict[str, Any]) -> dict[str, Any]:
    """Return a spec that draws two, one above the other; each keeps its own signals, data and scales.

    The lower one's are those of the whole, because what lays out its pictures can only refer to these.
    """
    size = [{"name": name, "value": upper[name]} for name in ("width", "height")]
    values = {f"{place}_{key}": value for place, spec in (("upper", upper), ("lower", lower)) for key, value in spec.items()}
    values |= {"upper_signals": [*size, *upper["signals"]], "below": upper["height"] + BETWEEN}
    return {key: value for key, value in lower.items() if key not in ("layout", "legends")} | derived("one-above-other", **values)


def both(pair: Pair) -> Answer:
    """Return one answer with the groups of both runs, distinguished by a last label: baseline or run."""
    parts: list[Intervals[Group]] = []
    for name, side in (("baseline", pair.baseline), ("run", pair.run)):
        parts += [replace(part, table=tuple((*key, name) for key in part.table)) for part in side.parts]
    return replace(pair.run, parts=tuple(parts), by=(*pair.by, "side"))


def percentiles_in(table: Table) -> tuple[Percentile, ...]:
    """Return the percentiles in the column of that name."""
    return tuple(map(_quantile, sorted(set(table.columns["percentile"].tolist()))))


def _quantile(percentile: float) -> Percentile:
    """Return a percentile of such a column; one below 1 is meant as it stands."""
    return parse_percentiles(f"{percentile:.15g}{'%' if 0 < percentile < 1 else ''}")[0]


def errors_of(pair: Pair, table: Table) -> str:
    """Return how far the values of a table may be off, the baseline's first, once where both are the same."""
    wanted = percentiles_in(table)
    bounds = (precision_of(side.parts, wanted) for side in (pair.baseline, pair.run))
    return " and ".join(dict.fromkeys(bound_text(bound) for bound in bounds))


def _heading(pair: Pair, table: Table) -> list[str]:
    runs = f"{runs_text(pair.run)} against the baseline {runs_text(pair.baseline)}"
    samples = " and ".join(f"{side.samples:,}" for side in (pair.baseline, pair.run))
    return [
        f"{runs}: {kinds_text(pair)} latency, {samples} samples, error bound of the bins {errors_of(pair, table)}",
        f"ratio = run / baseline; bounds, 95 % for all rows together, by {method(pair)}",
    ]


def _cells(table: Table, row: int) -> list[str]:
    row_values = {name: column[row] for name, column in table.columns.items()}
    ratio = ratio_text(row_values["ratio"])
    return [
        *(str(row_values[name]) or "-" for name in table.labels),
        f"p{row_values['percentile']:.15g}",
        *((">= " if row_values[f"{side}_censored"] else "") + latency(float(row_values[side])) for side in ("baseline", "run")),
        (">= " if row_values["run_censored"] and ratio else "") + ratio,
        bounds_text(row_values["lo"], row_values["hi"]),
        f"{row_values['count_baseline']:,}",
        f"{row_values['count_run']:,}",
        verdict(table, row),
    ]


def needed(percentile: float) -> int:
    """Return how many samples carry a percentile."""
    quantile = _quantile(percentile)
    beyond = 100 * quantile.bottom - quantile.top
    return 1 if 2 * quantile.top <= 100 * quantile.bottom or not beyond else -(-100 * quantile.bottom // beyond)


def runs_text(answer: Answer) -> str:
    """Return the names of the runs of an answer, the first of many."""
    return first_of(answer.runs, NAMES_SHOWN)


def kinds_text(pair: Pair) -> str:
    """Return the kinds of latency that are compared."""
    return " and ".join(dict.fromkeys((pair.baseline.kind, pair.run.kind)))
