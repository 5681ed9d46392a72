"""What a report holds of where its data come from: for the file of `report`, and for the page that `serve` keeps up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ingest.core.errors import InputError
from ingest.core.grid import MS
from ingest.core.marks import Mark
from ingest.core.series import RunLabels
from ingest.query.breath_sources import kept_from
from ingest.query.findings.story import story_of_overview
from ingest.query.means import OWN
from ingest.query.missing import bands
from ingest.query.offsets.overview import offset_overviews, shown_names
from ingest.query.origin import WHOLE_RUNS, Origin
from ingest.query.overview import CLUSTER_WINDOWS, Overview, chosen_runs, overviews
from ingest.query.question import Question
from ingest.query.sweeps import swept
from ingest.query.verdicts import Episode
from ingest.view.page.finished.means import MeansRun, means_page
from ingest.view.page.panels import breaths as breath_section
from ingest.view.page.panels import episodes as episode_section
from ingest.view.page.panels import estimates as estimate_section
from ingest.view.page.panels import marks as mark_section
from ingest.view.page.panels import offsets as offset_section
from ingest.view.page.panels import others as other_section
from ingest.view.page.report import offsets_alone as offset_page
from ingest.view.page.report.page import parts_of
from ingest.view.page.report.section import Section
from ingest.view.page.template import Parts

if TYPE_CHECKING:  # most pages are made without an objective
    from ingest.query.capacity import Sla


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
    named: str = "",
) -> Parts:
    """Return the parts of the report of a selection among the runs `names`; `more` are shown beside the sections of the data.

    `marks` are drawn beside those of the source, and of those `given` what overlaps a run; `episodes` too, by default those
    that a store has kept. With `offsets` those of runs that have any are shown; where none has latencies, they alone. With
    `estimates` a panel shows what averaging would have said, with an `objective` the load curve the capacity by it. `named`
    is the source in the commands of the story. InputError where nothing is selected.
    """
    everything = chosen_runs(names, question)
    if not full and not question.merge_runs and len(everything) > other_section.MOST_RUNS:
        names = other_section.newest(source.runs(), everything, other_section.MOST_RUNS)
    left_out = [run for run in everything if run not in names]
    held = offset_overviews(source, shown_names(names, question), question, full=full) if offsets else []
    try:
        runs = overviews(source, names, question, full=full, without={overview.ticks.run for overview in held})
    except InputError:
        if not held or "kind" in question.where:
            raise
        answer = offset_page.answer_of(held)
        spans = [
            mark_section.Shown(name, overview.start_ns, overview.ticks.end_ms * MS, overview.relative)
            for overview in held
            for name in overview.runs
        ]
        noted = mark_section.chosen(spans, source.marks(answer), given)
        return offset_page.parts_of(held, source.facts(answer), [*noted.marks, *marks], more, noted.notes)
    runs = [replace(run, story=story_of_overview(source, run, question, named).as_dict()) for run in runs]
    chosen = replace(runs[0].cluster, runs=tuple(name for run in runs for name in run.cluster.runs))
    shown = [run.run for run in runs]
    of_breaths = breath_section.sections_of(kept_from(source, question), shown)
    violated = source.episodes(chosen.runs) if episodes is None else episodes
    starts = {name: start for run in runs for name, start in run.cluster.run_start_ns.items()}
    relative = {name for run in runs if run.cluster.relative for name in run.cluster.runs}
    of_episodes = episode_section.sections(violated, starts, relative)
    averaged = estimate_section.sections(runs, source, question) if estimates else []
    noted = mark_section.chosen(_spans(runs), source.marks(chosen), given)
    of_marks = mark_section.sections(noted, starts, relative=chosen.relative)
    sections = [*of_episodes, *of_marks, *offset_section.sections(held, shown), *of_breaths, *averaged, *more]
    sections += other_section.sections(source, question, left_out, len(everything))
    said = [replace(runs[0], notes=(*runs[0].notes, *noted.notes)), *runs[1:]]
    known = labels_of(source)
    sweep = swept({name: known.get(name, {}) for name in shown}) if len(shown) > 1 else None
    shown_marks = [*noted.marks, *marks, *(band for run in runs for band in bands(run.cluster))]
    capacities: list[dict[str, Any]] = []
    if objective is not None and len(shown) > 1:
        from ingest.view.page.panels.capacity import capacities_of

        capacities = capacities_of(runs, sweep, objective)
    return parts_of(said, source.facts(chosen), shown_marks, question.by, sla_ns, sections, sweep, capacities)


def labels_of(source: Origin) -> RunLabels:
    """Return the labels of all runs of files or of a store."""
    return {record.run: record.labels for record in source.runs()}


def _spans(runs: Sequence[Overview]) -> list[mark_section.Shown]:
    """Return when each run that is shown began and when its last window ends."""
    return [
        mark_section.Shown(name, run.cluster.run_start_ns.get(name, run.cluster.start_of), run.span[1], run.cluster.relative)
        for run in runs
        for name in run.cluster.runs
    ]


def means_from(source: Origin, names: Sequence[str], question: Question) -> str:
    """Return the page of the selected runs that were recorded as means alone; InputError where there is none."""
    means_runs, whole_runs = [], source.offers.get(WHOLE_RUNS)
    for run in chosen_runs(names, question):
        asked = replace(question.about([run]), by=("host", "op", "kind"), merge_runs=False, windows=CLUSTER_WINDOWS)
        answer, whole = source.answer(asked), source.answer(replace(asked, step="all"))
        if all(not part.layout.has_bins for part in answer.parts):
            means_runs.append(MeansRun(run, answer, whole, whole_runs({run}) if whole_runs else [], source.marks(answer)))
    facts = source.facts(replace(means_runs[0].answer, runs=tuple(means_run.run for means_run in means_runs)))
    return means_page(means_runs, [pair for pair in facts if pair[0] != OWN])
