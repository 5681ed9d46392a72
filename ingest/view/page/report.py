"""The report: one HTML file with all its data, scripts and styles, which opens offline and asks the network for nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.errors import InputError, UsageError
from ingest.core.grid import MS, SECOND
from ingest.core.labels import CLIENT, LAYERS, OFFSET, THREAD, Group, bare_kind, default_kind, layer_of
from ingest.core.layout import Layout
from ingest.core.marks import Mark
from ingest.core.objective import ANY_LATENCY
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import format_duration, parse_duration, spaced
from ingest.query.breaths import kept_from
from ingest.query.compare import kinds_of
from ingest.query.coverage import bands
from ingest.query.episodes import Episode
from ingest.query.means import OWN, MeansAloneError
from ingest.query.offsets import OffsetOverview, offset_overviews, shown_names
from ingest.query.origin import WHOLE_RUNS, Origin
from ingest.query.overview import CLUSTER_WINDOWS, Overview, overviews
from ingest.query.plan import settled
from ingest.query.precision import precision_from
from ingest.query.question import UNLIKE_BINS, Answer, Question, samples_by_kind, selected_runs
from ingest.query.slowest import slowest_operations
from ingest.query.story.story import nothing_told
from ingest.query.story.story import story as story_in
from ingest.query.sweeps import Sweep, swept
from ingest.query.windows import regrouped
from ingest.view import vega
from ingest.view.page.means import MeansRun, means_page
from ingest.view.page.packing import packed
from ingest.view.page.panels import box, layers, omission, story
from ingest.view.page.panels import breaths as breath_section
from ingest.view.page.panels import episodes as episode_section
from ingest.view.page.panels import estimates as estimate_section
from ingest.view.page.panels import marks as mark_section
from ingest.view.page.panels import metrics as metric_section
from ingest.view.page.panels import offsets as offset_section
from ingest.view.page.panels import others as other_section
from ingest.view.page.panels import slowest as slowest_section
from ingest.view.page.tables import few, summary, worst
from ingest.view.page.template import (
    Parts,
    Section,
    assembled,
    between,
    bundled,
    duration,
    fact_list,
    note_list,
    page_file,
    page_of,
    step_text,
    text,
    time_text,
)
from ingest.view.specs import changed, derived, unversioned
from ingest.view.terminal.tables import bound_text, count, first_of, samples_text
from ingest.view.vega import note_of, printable, short_names

if TYPE_CHECKING:
    from ingest.query.capacity import Sla
    from ingest.query.story.ground import Story


# The report: what fills report.html, from the answers of some runs. Text from labels is escaped, data are packed.


RUNS_NAMED = 4
EMPTY: Mapping[str, Any] = {}
TROUBLE = re.compile(r"[\d,]+ rows? (repaired|rejected): ")
MOST_LINES = 8
PERCENTILE = "99"
UNLIKE_BINS_SHOWN = (
    "histograms of unlike bins are added up here: each sample stands at the highest latency of its bin, so a percentile of "
    "several hosts, and what lies above it, is the highest that it can be, and a host with wide bins looks slow; tailboard "
    "percentiles --bounds has both ends"
)
(MEDIAN,) = parse_percentiles("50")
SPECS = ("percentiles", "tails", "heatmap", "rate", "surface", "distribution")
LINES = ("percentiles", "rate", "distribution")  # whose legend is the page's own: see script/legends.js
RUN_SPECS = ("runs", "maps", "load")
GROUPINGS = ("op", "host", "thread")
CONTROLS = (
    *("run", "beside", "kind", "op", "host", "by", "p", "also", "tail", "colour", "from", "to", "clock", "axis", "shading"),
    *("palette", "drop", "least", "most", "highlight", "box", "off", "sla", "open"),
)
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
    ghost: Overview | None = None,
) -> Parts:
    """Return the parts of the page of some runs: their own facts, followed by `facts`, the panels, and all data that these need.

    `marks` (run, at_ns, text, end_ns where there is one) are drawn as notes on the time axis, `by` is the label of lines at first
    (host where there are a few), `sla_ns` is drawn as a line, `sections` are shown beside those that the runs have by
    themselves. The load curve is over the depths of a `sweep`, `capacities` are marked in it (see `panels/capacity.py`). A
    `ghost` is one more run, whose percentile is a line beside those of others. The page notes what was coarsened for its size.
    """
    state = first_state(runs, by, sla_ns)
    if ghost is not None:
        runs, state = [*runs, ghost], {**state, "beside": vega.printable(ghost.run)}
    schedules = [omission.content_of(kinds_of(run.cluster), run.cluster.warnings) for run in runs]
    told = story.sections([run.story for run in (opening(runs), *runs)])
    schedules_shown = [omission.section(schedules)] if any(schedule["kinds"] for schedule in schedules) else []
    shown = [*told, *schedules_shown, *box.sections(runs), *layers.sections(runs), *sections]
    opened = ",".join(section.name for section in shown if section.name.startswith(("omission", "metric")))
    content = {
        "specs": _specs(shown, several=len(runs) > 1),
        "sections": {section.name: section.content for section in shown},
        "marks": [vega.note_of(mark) for mark in marks],
        "sweep": _sweep(sweep),
        "capacities": list(capacities),
        "state": {**state, "open": opened, **{name: value for section in shown for name, value in section.state.items()}},
    }
    data, coarsened = packed(content, runs)
    labels = by or ("op",)
    warnings = dict.fromkeys(warning for run in runs for warning in (*run.notes, *run.cluster.warnings))
    if any(part.mixed.any() for run in runs for part in regrouped(run.cluster, ("kind",)).parts):
        warnings = {UNLIKE_BINS_SHOWN: None, **warnings}
        warnings.pop(UNLIKE_BINS, None)
    notes = [*warnings, *coarsened, *few(runs, labels), *(note for section in shown for note in section.notes)]
    filling = {
        "title": f"Latency of {text(_title(runs))}",
        "runs": text(_title(runs)),
        "lead": text(_lead(runs)),
        "facts": fact_list([*facts_of(runs), *facts]),
        "notes": note_list(notes),
        "summary": summary(runs, labels),
        "rows": worst(runs, PERCENTILE),
        "several": page_file("html/runs.html") if len(runs) > 1 else "",
        "grouping": _grouping(runs),
        "clock": "" if all(run.cluster.relative for run in runs) else page_file("html/clock.html"),
        "percentile": PERCENTILE,
        "data": data,
    }
    return assembled("html/report.html", shown, filling, FIRST, LAST)


def first_state(runs: Sequence[Overview], by: Sequence[str], sla_ns: int) -> dict[str, str]:
    """Return what the page's controls are set to at first, by their names; see script/state.js."""
    extra, first = any(name not in (*GROUPINGS, "run", "kind") for name in by), opening(runs)
    hosts = {key[0] for part in first.hosts.parts for key in part.table}
    usual = "host" if 1 < len(hosts) <= MOST_LINES else "op"
    grouping = "extra" if extra else next((name for name in ("host", "op") if name in by), usual)
    return {
        **dict.fromkeys(CONTROLS, ""),
        "run": vega.printable(first.run),
        "kind": vega.printable(default_kind(kinds_of(first.cluster))),
        "by": grouping,
        "p": PERCENTILE,
        "tail": "99",
        "colour": "typical",
        "clock": "elapsed" if all(run.cluster.relative for run in runs) else "utc",
        "axis": "log",
        "shading": "rank",
        "palette": "single",
        "drop": "auto",
        "sla": f"{sla_ns / vega.MS:g}" if sla_ns else "",
    }


def opening(runs: Sequence[Overview]) -> Overview:
    """Return the run that the page opens on: that of the finding with the largest excess, the first one where none has any."""

    def worst_of(run: Overview) -> float:
        return max((finding.get("excess_ns", 0.0) for finding in (run.story or {}).get("findings", ())), default=-1)

    return max(runs, key=worst_of)


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
    for section in sections:
        specs |= section.specs
    lines = derived("lines")
    specs |= {name: changed(specs[name], lines) for name in LINES}
    specs["percentiles"] = changed(specs["percentiles"], derived("percentiles-page"))  # what is as usual lies flat
    return {name: unversioned(spec) for name, spec in specs.items()}


def facts_of(runs: Sequence[Overview]) -> list[tuple[str, str]]:
    """Return (name, value) pairs that the answers hold."""
    answers = [run.cluster for run in runs]
    dated = [run for run in runs if not run.cluster.relative]
    low, high = min(run.span[0] for run in dated or runs), max(run.span[1] for run in dated or runs)
    bound = precision_from([part for answer in answers for part in answer.parts], MEDIAN)
    layouts = sorted({_bins(part.layout) for answer in answers for part in answer.parts})
    warnings = dict.fromkeys(text for answer in answers for text in answer.warnings)
    repairs = (text for text in warnings if TROUBLE.match(text))
    elapsed = f"; elapsed only in {_names(apart)}" if (apart := [run for run in runs if run.cluster.relative]) else ""
    return [
        ("Runs", _names(runs)),
        ("Latency", ", ".join(sorted({kind for answer in answers for kind in kinds_of(answer)}))),
        ("Samples", samples_text(answers)),
        ("Time", between(low, high) + elapsed if dated else "elapsed only: the start of the run is not known"),
        ("Duration", duration(high - low)),
        ("Step", ", ".join(sorted({step_text(answer) for answer in answers}))),
        ("Error bound", f"{spaced(bound_text(bound))} of percentiles from the median on; counts are exact"),
        ("Bins", ", ".join(layouts)),
        ("Merged from", replace(answers[0], series=sum(answer.series for answer in answers)).made_of),
        *(("Coverage", _coverage(run, named=len(runs) > 1)) for run in runs),
        ("Repairs and rejects", "; ".join(repairs) or "none"),
    ]


def _bins(layout: Layout) -> str:
    octave = f"{layout.octave} an octave" if layout.even else "as the tool lists them"
    return f"{octave}, {layout.bins:,} in all, each reports its {layout.reports.replace('highest', 'highest value')}"


def _coverage(run: Overview, *, named: bool) -> str:
    """Return how many of its threads reported in each window: in how many windows all did, and where the fewest."""
    threads: dict[Group, int] = {}
    pairs = []
    for part in run.threads.parts:
        numbers = np.array([threads.setdefault(key[: len(THREAD)], len(threads)) for key in part.table], np.int64)
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
    if silent := windows - len(starts):
        return f"{sentence}; {silent} have none"
    fewest = int(np.argmin(reporting))
    at = (int(starts[fewest]) - run.cluster.start_of) / SECOND
    return f"{sentence}; the fewest are {reporting[fewest]}, {at:.1f} s after the start"


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
    named = f"{kinds} latency{layer}, ".lstrip() if kinds or layer else ""  # the title says latency
    return f"{named}{count(numbers[0])} samples{each} in {seconds}{several}{beside}"


def _grouping(runs: Sequence[Overview]) -> str:
    """Return the choices of labels that lines are distinguished by."""
    choices = [("", "nothing"), *((name, name) for name in GROUPINGS)]
    if runs[0].extra:
        choices.append(("extra", ", ".join(runs[0].extra)))
    if len(runs) > 1:
        choices.append(("run", "run (distribution only)"))
    return "".join(f'<option value="{name}">{text(shown)}</option>' for name, shown in choices)


# The report of runs that have offsets alone, such as recordings of samples: the panel of offsets, without those of latencies.


def offset_parts_of(
    overviews: Sequence[OffsetOverview],
    facts: Sequence[tuple[str, str]] = (),
    marks: Sequence[Mapping[str, Any]] = (),
    more: Sequence[Section] = (),
    notes: Sequence[str] = (),
) -> Parts:
    """Return what fills the page of runs that have offsets alone; of `more` what stands in its controls; `notes` at its head."""
    section = offset_section.section(overviews)
    content = {
        "specs": section.specs,
        "sections": {panel.name: panel.content for panel in (section, *more)},
        "marks": [note_of(mark) for mark in marks],
        "state": {**_state(overviews), **section.state},
    }
    names = [overview.ticks.run for overview in overviews]
    timed = [overview for overview in overviews if not overview.relative] or overviews
    low, high = min(overview.ticks.first_ms for overview in timed) * MS, max(overview.ticks.end_ms for overview in timed) * MS
    events = sum(overview.ticks.samples for overview in overviews)
    relative = all(overview.relative for overview in overviews)
    known = [
        ("Runs", first_of(names, RUNS_NAMED)),
        ("Events", f"{events:,}"),
        ("Time", time_text(low, high, relative=relative)),
        ("Duration", duration(high - low)),
        ("Latencies", "none: these runs have only times of events"),
    ]
    runs = [_run(overview, label) for overview, label in zip(overviews, short_names(names), strict=True)]
    filling = {
        "title": f"Subsecond offsets of {text(known[0][1])}",
        "runs": text(known[0][1]),
        "lead": text(f"{count(events)} events in {duration(high - low)}; they have no latencies"),
        "facts": fact_list([*known, *facts]),
        "notes": note_list(
            [*dict.fromkeys(text for overview in overviews for text in overview.warnings), *section.notes, *notes]
        ),
        "clock": "" if relative else page_file("html/clock.html"),
        "data": bundled(content | {"runs": runs, "layouts": []}),
    }
    return assembled("html/offsets_alone.html", (section, *more), filling, FIRST, LAST)


def _run(overview: OffsetOverview, label: str) -> dict[str, Any]:
    """Return what the page shows of a run without latencies."""
    ticks = overview.ticks
    return {
        "name": printable(ticks.run),
        "label": label,
        "start": overview.start_ns / MS,
        "relative": overview.relative,
        "begin": ticks.first_ms,
        "end": ticks.end_ms,
        "seconds": (ticks.end_ms - ticks.first_ms) / 1000,
        "extra": "",
        "levels": {},
        "tails": {},
    }


def _state(overviews: Sequence[OffsetOverview]) -> dict[str, str]:
    clock = "elapsed" if all(overview.relative for overview in overviews) else "utc"
    none = dict.fromkeys(("op", "host", "kind", "by", "from", "to", "least", "most", "highlight", "also", "sla"), "")
    return {**none, "run": printable(overviews[0].ticks.run), "clock": clock, "p": "99", "tail": "99"}


# What a report holds of where its data come from: for the file of `report`, and for the page that `serve` keeps up to date.


def run_names(source: Origin) -> list[str]:
    """Return the names of all runs of files or of a store."""
    return [record.run for record in source.runs()]


def parts_from(
    source: Origin,
    names: Sequence[str],
    question: Question,
    *,
    sla_ns: int = 0,
    objective: Sla | None = None,
    full: bool = False,
    offsets: bool = False,
    more: Sequence[Section] = (),
    episodes: Sequence[Episode] | None = None,
    marks: Sequence[Mapping[str, Any]] = (),
    estimates: bool = False,
    given: Sequence[Mark] = (),
    metrics: Mapping[str, metric_section.Values] = EMPTY,
    beside: Origin | None = None,
    named: str = "",
) -> Parts:
    """Return the parts of the report of a selection among the runs `names`; `more` are shown beside the sections of the data.

    `marks` are drawn beside those of the source, and of those `given` what overlaps a run; `episodes` too, by default those
    that a store has kept; so are the values of `metrics`, by their names. With `offsets` those of runs that have any are shown;
    where none has latencies, they alone. With `estimates` a panel shows what averaging would have said, with an `objective` the
    load curve the capacity by it. `named` is the source in the commands of the story. The one run of the source `beside` is
    drawn as a line beside the others. InputError where nothing is selected, UsageError where `beside` has several runs.
    """
    question = settled(source, question)
    everything = selected_runs(names, question)
    if not full and not question.merge_runs and len(everything) > other_section.MOST_RUNS:
        names = other_section.newest(source.runs(), everything, other_section.MOST_RUNS)
    left_out = [run for run in everything if run not in names]
    held = offset_overviews(source, shown_names(names, question), question, full=full) if offsets else []
    try:
        runs = overviews(source, names, question, full=full, without={overview.ticks.run for overview in held})
    except InputError:
        if not held or "kind" in question.where:
            raise
        of_runs = [(name, overview) for overview in held for name in overview.runs]
        spans = [mark_section.Shown(name, one.start_ns, one.ticks.end_ms * MS, one.relative) for name, one in of_runs]
        starts = {name: overview.start_ns for name, overview in of_runs}
        # An answer without rows: facts and marks are asked by it.
        answer = Answer((), (), 0, OFFSET, tuple(starts), starts, all(overview.relative for overview in held), 0)
        noted = mark_section.chosen(spans, source.marks(answer), given)
        return offset_parts_of(held, source.facts(answer), [*noted.marks, *marks], more, noted.notes)
    runs = [replace(run, story=_story(source, run, question, named).as_dict()) for run in runs]
    chosen = replace(runs[0].cluster, runs=tuple(name for run in runs for name in run.cluster.runs))
    shown = [run.run for run in runs]
    of_breaths = breath_section.sections_of(kept_from(source, question), shown)
    violated = source.episodes(chosen.runs) if episodes is None else episodes
    starts = {name: start for run in runs for name, start in run.cluster.run_start_ns.items()}
    relative = {name for run in runs if run.cluster.relative for name in run.cluster.runs}
    of_episodes = episode_section.sections(violated, starts, relative)
    averaged = estimate_section.sections(runs, source, question) if estimates else []
    clusters = [(name, run.span[1], run.cluster) for run in runs for name in run.cluster.runs]
    spans = [mark_section.Shown(name, starts.get(name, of.start_of), end, of.relative) for name, end, of in clusters]
    noted = mark_section.chosen(spans, source.marks(chosen), given)
    of_marks = mark_section.sections(noted, starts, relative=chosen.relative)
    ghost = None if beside is None else _ghost(beside, question, shown, full=full)
    each = [*runs, *([ghost] if ghost else [])]
    shown_spans = [mark_section.Shown(run.run, run.cluster.start_of, run.span[1], run.cluster.relative) for run in each]
    slow = slowest_operations(source, shown_names(names, question), question) if offsets else {}
    sections = [
        *metric_section.sections(shown_spans, metrics),
        *slowest_section.sections(shown_spans, slow),
        *of_episodes,
        *of_marks,
        *offset_section.sections(held, shown),
        *of_breaths,
        *averaged,
        *more,
    ]
    sections += other_section.sections(source, question, left_out, len(everything))
    said = [replace(runs[0], notes=(*runs[0].notes, *noted.notes)), *runs[1:]]
    known = {record.run: record.labels for record in source.runs()}
    sweep = swept({name: known.get(name, {}) for name in shown}) if len(shown) > 1 else None
    shown_marks = [*noted.marks, *marks, *(band for run in runs for band in bands(run.cluster))]
    capacities: list[dict[str, Any]] = []
    if objective is not None and len(shown) > 1:
        from ingest.view.page.panels.capacity import capacities_of

        capacities = capacities_of(runs, sweep, objective)
    return parts_of(said, source.facts(chosen), shown_marks, question.by, sla_ns, sections, sweep, capacities, ghost)


def _ghost(source: Origin, question: Question, taken: Sequence[str], *, full: bool) -> Overview:
    """Return the one run of a source, by a name that none of the others has taken."""
    names = run_names(source)
    if len(names) > 1:
        raise UsageError(f"--beside takes one run, and there are {len(names)}: {first_of(names, RUNS_NAMED)}")
    (run,) = overviews(source, names, replace(question, runs=(), begin=None, end=None), full=full)
    run = replace(run, story=_story(source, run, question).as_dict())
    return replace(run, run=f"{run.run} (beside)") if run.run in taken else run


def _story(source: Origin, run: Overview, question: Question, named: str = "") -> Story:
    """Return what happened in a run, as `explain` tells it: in windows of its own, which may be narrower than the page's."""
    asked = replace(question.about(run.cluster.runs), by=run.extra, merge_runs=len(run.cluster.runs) > 1)
    try:
        return story_in(source, asked, named)
    except InputError as reason:
        return nothing_told(run.run, str(reason))


def report_of(
    origin: Origin,
    question: Question,
    *,
    sla: str = "",
    full: bool = False,
    episodes: Sequence[Episode] | None = None,
    marks: Sequence[Mark] = (),
    metrics: Mapping[str, metric_section.Values] = EMPTY,
    beside: Origin | None = None,
    named: str = "",
) -> str:
    """Return the page of all that a question selects, of means alone where there is nothing else.

    `sla` is a latency to draw a line at, such as 5ms, or an objective such as p99<5ms, which also marks the capacity in the load
    curve; the others are those of `parts_from`.
    """
    objective = None
    if "<" in sla:
        from ingest.query.capacity import parse_sla

        objective = parse_sla(sla)
        if objective.limit_ns == ANY_LATENCY:
            raise UsageError(f"--sla {sla}: a line is drawn at a latency, as of 'p99<5ms'")
    sla_ns = objective.limit_ns if objective else parse_duration(sla) if sla else 0
    names = run_names(origin)
    try:
        parts = parts_from(
            origin,
            names,
            question,
            estimates=True,
            sla_ns=sla_ns,
            objective=objective,
            full=full,
            offsets=True,
            episodes=episodes,
            given=marks,
            metrics=metrics,
            beside=beside,
            named=named,
        )
        return page_of(parts)
    except MeansAloneError:
        return means_from(origin, names, question)


def means_from(source: Origin, names: Sequence[str], question: Question) -> str:
    """Return the page of the selected runs that were recorded as means alone; InputError where there is none."""
    means_runs, whole_runs = [], source.offers.get(WHOLE_RUNS)
    for run in selected_runs(names, question):
        asked = replace(question.about([run]), by=("host", "op", "kind"), merge_runs=False, windows=CLUSTER_WINDOWS)
        answer, whole = source.answer(asked), source.answer(replace(asked, step="all"))
        if all(not part.layout.has_bins for part in answer.parts):
            means_runs.append(MeansRun(run, answer, whole, whole_runs({run}) if whole_runs else [], source.marks(answer)))
    facts = source.facts(replace(means_runs[0].answer, runs=tuple(means_run.run for means_run in means_runs)))
    return means_page(means_runs, [pair for pair in facts if pair[0] != OWN])
