"""The report: what fills report.html, from the answers of some runs. Text from labels is escaped, data are packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest import __version__
from ingest.core.layout import Layout
from ingest.core.ranks import parse_percentiles
from ingest.core.series import CLIENT, LAYERS, THREAD, bare_kind, default_kind, layer_of
from ingest.core.timing import format_duration
from ingest.core.writing import spaced
from ingest.query.compare import kinds_of
from ingest.query.overview import Overview
from ingest.query.precision import precision_from
from ingest.query.question import samples_by_kind
from ingest.query.sweeps import Sweep
from ingest.view import vega
from ingest.view.page.panels import box, layers, omission, story
from ingest.view.page.report.packing import packed
from ingest.view.page.report.section import Section
from ingest.view.page.report.tables import few, summary, worst
from ingest.view.page.template import Parts, assembled, fact_list, note_list, page_file
from ingest.view.page.wording import between, duration, step_text, text
from ingest.view.specs import changed, derived, unversioned
from ingest.view.terminal.tables import bound_text, count, first_of, samples_text

RUNS_NAMED = 4
MOST_LINES = 8
SECOND = 1_000_000_000
PERCENTILE = "99"
(MEDIAN,) = parse_percentiles("50")
SPECS = ("percentiles", "tails", "heatmap", "rate", "surface", "distribution")
LINES = ("percentiles", "rate", "distribution")  # whose legend is the page's own: see script/legends.js
RUN_SPECS = ("runs", "maps", "load")
GROUPINGS = ("op", "host", "thread")
ACROSS = {"total_iodepth": "queue depth of all jobs", "numjobs": "jobs"}
# The page's own script, joined in this order; what sections add stands between.
FIRST = (
    *("script/theme.js", "script/charting.js", "script/words.js", "script/numbers.js", "script/excess.js", "script/heat.js"),
    *("script/shades.js", "script/raster.js", "script/state.js", "script/tables.js", "script/heat_panel.js"),
    "script/heat_hand.js",
)
LAST = (
    *("script/panels.js", "script/overlay.js", "script/legends.js", "script/draw.js", "script/menus.js", "script/controls.js"),
)


def parts_of(
    runs: Sequence[Overview],
    facts: Sequence[tuple[str, str]] = (),
    marks: Sequence[Mapping[str, Any]] = (),
    by: Sequence[str] = (),
    sla_ns: int = 0,
    sections: Sequence[Section] = (),
    sweep: Sweep | None = None,
    capacities: Sequence[Mapping[str, Any]] = (),
) -> Parts:
    """Return the parts of the page of some runs: their own facts, followed by `facts`, the panels, and all data that these need.

    `marks` (run, at_ns, text, end_ns where there is one) are drawn as notes on the time axis, `by` is the label of lines at first
    (host where there are a few), `sla_ns` is drawn as a line, `sections` are shown beside those that the runs have by
    themselves. The load curve is over the depths of a `sweep`, `capacities` are marked in it (see `panels/capacity.py`). The page
    notes what was coarsened for its size.
    """
    schedules = [omission.content_of(kinds_of(run.cluster), run.cluster.warnings) for run in runs]
    told = story.sections([run.story for run in runs])
    schedules_shown = [omission.section(schedules)] if any(schedule["kinds"] for schedule in schedules) else []
    shown = [*told, *schedules_shown, *box.sections(runs), *layers.sections(runs), *sections]
    content = {
        "specs": _specs(shown, several=len(runs) > 1),
        "sections": {section.name: section.content for section in shown},
        "marks": [vega.note_of(mark) for mark in marks],
        "sweep": _sweep(sweep),
        "capacities": list(capacities),
        "state": {**first_state(runs, by, sla_ns), **{name: value for section in shown for name, value in section.state.items()}},
    }
    data, coarsened = packed(content, runs)
    labels = by or ("op",)
    warnings = dict.fromkeys(warning for run in runs for warning in (*run.notes, *run.cluster.warnings))
    notes = [*warnings, *coarsened, *few(runs, labels), *(note for section in shown for note in section.notes)]
    filling = {
        "title": f"Latency of {text(_title(runs))}",
        "runs": text(_title(runs)),
        "lead": text(_lead(runs)),
        "facts": fact_list([*facts_of(runs), *facts]),
        "notes": note_list(notes),
        "summary": summary(runs, labels),
        "worst": worst(runs, PERCENTILE),
        "several": page_file("html/runs.html") if len(runs) > 1 else "",
        "grouping": _grouping(runs),
        "clock": "" if all(run.cluster.relative for run in runs) else page_file("html/clock.html"),
        "percentile": PERCENTILE,
        "data": data,
    }
    return assembled("html/report.html", shown, filling, FIRST, LAST)


def first_state(runs: Sequence[Overview], by: Sequence[str], sla_ns: int) -> dict[str, str]:
    """Return what the page's controls are set to at first, by their names; see script/state.js."""
    extra = any(name not in (*GROUPINGS, "run", "kind") for name in by)
    hosts = {key[0] for part in runs[0].hosts.parts for key in part.table}
    usual = "host" if 1 < len(hosts) <= MOST_LINES else "op"
    grouping = "extra" if extra else next((name for name in ("host", "op") if name in by), usual)
    return {
        "run": vega.printable(runs[0].run),
        "kind": vega.printable(default_kind(kinds_of(runs[0].cluster))),
        "op": "",
        "host": "",
        "by": grouping,
        "p": PERCENTILE,
        "also": "",
        "tail": "99",
        "from": "",
        "to": "",
        "clock": "elapsed" if all(run.cluster.relative for run in runs) else "utc",
        "axis": "log",
        "shading": "rank",
        "palette": "single",
        "drop": "auto",
        "least": "",
        "most": "",
        "highlight": "",
        "box": "",
        "off": "",
        "sla": f"{sla_ns / vega.MS:g}" if sla_ns else "",
    }


def _sweep(sweep: Sweep | None) -> dict[str, Any] | None:
    """Return what the page knows of a sweep: what its x axis is, and the depth and the line of each run."""
    if sweep is None:
        return None
    places = {vega.printable(run): {"x": x, "line": vega.printable(line)} for run, (x, line) in sweep.places.items()}
    return {"across": f"{ACROSS.get(sweep.label, 'queue depth')} ({sweep.label})", "places": places}


def _specs(sections: Sequence[Section], *, several: bool) -> dict[str, dict[str, Any]]:
    """Return the specs of the panels, without the version that vega-embed would warn of."""
    specs: dict[str, Mapping[str, Any]] = {name: vega.spec(name) for name in (*SPECS, *(RUN_SPECS if several else ()))}
    specs["heatmap"] = derived("heatmap-raster")
    specs |= {name: spec for section in sections for name, spec in section.specs.items()}
    lines = derived("lines")
    return {name: changed(unversioned(spec), lines) if name in LINES else unversioned(spec) for name, spec in specs.items()}


def facts_of(runs: Sequence[Overview]) -> list[tuple[str, str]]:
    """Return (name, value) pairs that the answers hold."""
    answers = [run.cluster for run in runs]
    dated = [run for run in runs if not run.cluster.relative]
    low, high = min(run.span[0] for run in dated or runs), max(run.span[1] for run in dated or runs)
    bound = precision_from([part for answer in answers for part in answer.parts], MEDIAN)
    layouts = sorted({_bins(part.layout) for answer in answers for part in answer.parts})
    elapsed = f"; elapsed only in {_names(apart)}" if (apart := [run for run in runs if run.cluster.relative]) else ""
    return [
        ("Runs", _names(runs)),
        ("Latency", ", ".join(sorted({kind for answer in answers for kind in kinds_of(answer)}))),
        ("Samples", samples_text(answers)),
        ("Time", between(low, high) + elapsed if dated else "elapsed only: the start of the run is not known"),
        ("Duration", duration(high - low)),
        ("Step", ", ".join(sorted({step_text(answer) for answer in answers}))),
        ("Error bound", f"{spaced(bound_text(bound, '± '))} of percentiles from the median on; counts are exact"),
        ("Bins", ", ".join(layouts)),
        ("Merged from", replace(answers[0], series=sum(answer.series for answer in answers)).made_of),
        *(("Coverage", _coverage(run, named=len(runs) > 1)) for run in runs),
        ("Repairs and rejects", _repairs(runs)),
        ("Made by", f"tailboard {__version__}"),
    ]


def _bins(layout: Layout) -> str:
    octave = f"{layout.octave} an octave" if layout.even else "as the tool lists them"
    return f"{octave}, {layout.bins:,} in all, each reports its {layout.reports.replace('highest', 'highest value')}"


def _repairs(runs: Sequence[Overview]) -> str:
    """Return the rows that were repaired or rejected, by reason."""
    warnings = dict.fromkeys(text for run in runs for text in run.cluster.warnings)
    return "; ".join(text for text in warnings if " rows repaired: " in text or " rows rejected: " in text) or "none"


def _coverage(run: Overview, *, named: bool) -> str:
    """Return how many of its threads reported in each window: in how many windows all did, and where the fewest."""
    threads = {key[: len(THREAD)] for part in run.threads.parts for key in part.table}
    known = {labels: number for number, labels in enumerate(sorted(threads))}
    pairs = []
    for part in run.threads.parts:
        numbers = np.array([known[key[: len(THREAD)]] for key in part.table], np.int64)
        pairs.append(np.stack([numbers[part.series], part.start_ns]))
    starts, reporting = np.unique(np.unique(np.concatenate(pairs, axis=1), axis=1)[1], return_counts=True)
    low, high = run.span
    step = run.threads.step_ns or high - low
    windows = -(-(high - int(starts[0])) // step)
    full = int((reporting == len(threads)).sum())
    start = f"{run.run}: " if named else ""
    sentence = f"{start}all {len(threads)} threads report in {full:,} of {windows:,} windows of {spaced(format_duration(step))}"
    if full == windows:
        return sentence
    silent = windows - len(starts)
    fewest = int(np.argmin(reporting))
    at = (int(starts[fewest]) - run.cluster.start_of) / SECOND
    return (
        f"{sentence}; {silent} have none"
        if silent
        else f"{sentence}; the fewest are {reporting[fewest]}, {at:.1f} s after the start"
    )


def _names(runs: Sequence[Overview]) -> str:
    return first_of([run.run for run in runs], RUNS_NAMED)


def _title(runs: Sequence[Overview]) -> str:
    """Return the names of the runs, folders that all have in common said once."""
    first, *_ = names = [run.run for run in runs]
    shown = vega.short_names(names)
    common = first.removesuffix(shown[0]) if first.endswith(shown[0]) else ""
    return f"{common.rstrip('/')}: {first_of(shown, RUNS_NAMED)}" if common.strip("/") else _names(runs)


def _lead(runs: Sequence[Overview]) -> str:
    by_kind = samples_by_kind([run.cluster for run in runs])
    top, *below = (layer for layer in LAYERS if layer in set(map(layer_of, by_kind)))
    of_top = {bare_kind(kind): number for kind, number in by_kind.items() if layer_of(kind) == top}
    numbers = [*of_top.values()]  # of kinds, in their order: they are the same operations
    alike = len({*numbers}) == 1
    seconds = duration(sum(run.span[1] - run.span[0] for run in runs))
    several = f", {len(runs)} runs" if len(runs) > 1 else ""
    beside = f"; {' and '.join(below)} below it" if below else ""
    layer = f" of the {top}" if below or top != CLIENT else ""
    if not alike:
        named = ", ".join(f"{kind} {count(number)}".lstrip() for kind, number in of_top.items())
        return f"latency{layer}: {named} samples in {seconds}{several}{beside}"
    kinds, each = ", ".join(filter(None, of_top)), " each" if len(numbers) > 1 else ""
    return f"{kinds} latency{layer}, {count(numbers[0])} samples{each} in {seconds}{several}{beside}".lstrip()


def _grouping(runs: Sequence[Overview]) -> str:
    """Return the choices of labels that lines are distinguished by."""
    choices = [("", "nothing"), *((name, name) for name in GROUPINGS)]
    if runs[0].extra:
        choices.append(("extra", ", ".join(runs[0].extra)))
    if len(runs) > 1:
        choices.append(("run", "run (distribution only)"))
    return "".join(f'<option value="{name}">{text(shown)}</option>' for name, shown in choices)
