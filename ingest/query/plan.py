"""From merged windows to an answer: the one way of files and stores, whatever holds the data.

    a store's rollups or documents  ┐
                                    ├─ Merged ── answer_of ── Answer
    rows of log files               ┘

An origin finds which runs a question is about, reads their windows and adds them up (`Sums`). All that follows is here: rows over
a whole range, what the tools themselves report, what is missing, default kinds, and the sentences that a reader must see.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ingest.core.errors import listed, plural
from ingest.core.intervals import Intervals
from ingest.core.labels import Group, RunLabels, Series, mean_kind
from ingest.core.layout import Layout
from ingest.query.coverage import missing_from
from ingest.query.means import described, with_left_out, with_whole_runs
from ingest.query.question import (
    Answer,
    AnswerKey,
    Question,
    Settled,
    beside,
    finish,
    moved_edges,
    range_in,
    shown_beside,
    steady_words,
)
from ingest.query.windows import Reach, RunLayer, Span, inside, of_layers, of_runs, over_time_range, widen

if TYPE_CHECKING:
    from ingest.core.coverage import Caveat, Missing, WholeRow, WholeRun
    from ingest.query.origin import Origin, Run


@dataclass(slots=True, eq=False)
class Sums:
    """Windows added up: `parts` are keyed (run, kind, then the question's labels).

    `reach` says from when to when rows are, before they were cut into windows, and `layouts` which bins they have, by run and
    kind; `series` what they are of, `left_out` what the same files hold beside it. Where a part of a run is asked for as one
    window, `windows` are from when to when those with samples are, by run and layer.
    """

    parts: list[Intervals[Group]] = field(default_factory=list)
    reach: Reach = field(default_factory=dict)
    layouts: dict[tuple[str, str], set[Layout]] = field(default_factory=dict)
    windows: dict[RunLayer, Span] = field(default_factory=dict)
    series: set[Series] = field(default_factory=set)
    left_out: set[Series] = field(default_factory=set)

    def widen(self, other: Sums) -> None:
        """Widen these by all of another's but its parts."""
        for key, span in other.reach.items():
            widen(self.reach, key, span)
        for key, layouts in other.layouts.items():
            self.layouts.setdefault(key, set()).update(layouts)
        for name, span in other.windows.items():
            widen(self.windows, name, span)
        self.series |= other.series
        self.left_out |= other.left_out


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Merged:
    """What an origin has read for a question: the sums, and what it knows of the runs that they are of.

    `runs` are those that the answer is about; a range of one is made of windows of its `step_ns`. `step_ns` is the width of the
    windows in `sums`, 0 for the whole range; `auto_ns` what "auto" would have made of it. `labels` are those of all runs that the
    origin holds, `named` the runs that an empty selection is told of.

    `selected` are the series, or files, that the windows are from, `jobs` all series that are selected, `left_out` those that are
    there beside them. The reach of runs in `loading` may be older than their windows. `means_alone` are series that have no
    histogram, `whole_runs` and `whole_rows` what tools report of whole runs. `lacking` is what these runs lack, `alike` those
    that all series of a host share. `notes` come after what is said of moved edges of a range; `apart` is said of runs that are
    left out.
    """

    sums: Sums
    step_ns: int
    runs: Sequence[Run]
    labels: RunLabels
    named: Sequence[str]
    selected: Collection[Series]
    jobs: Collection[Series] | None = None
    left_out: Collection[Series] = ()
    loading: Collection[str] = ()
    means_alone: Iterable[Series] = ()
    whole_runs: Sequence[WholeRun] = ()
    whole_rows: Sequence[WholeRow] = ()
    lacking: Sequence[Missing] = ()
    caveats: tuple[Caveat, ...] = ()
    apart: Sequence[str] = ()
    notes: Sequence[str] = ()
    answered_from: str = "files"
    auto_ns: int = 0
    alike: frozenset[str] = frozenset()


def settled(origin: Origin, question: Question) -> Question:
    """Return a question whose range begins in each of its runs where that is steady; itself where it asks for no such range."""
    if not question.unsettled:
        return question
    from ingest.query.story.steady import steady_runs  # the method of findings, which most questions do without

    return replace(question, begin=Settled(steady_runs(origin, question)))


def alike_in(series: Collection[Series]) -> frozenset[str]:
    """Return the labels of jobs (volume, job, tag) that all series of a host have in common: they tell no parts of it apart."""
    hosts = len({each.host for each in series})
    names = ("volume", "job", "tag")
    return frozenset(name for name in names if len({(each.host, getattr(each, name)) for each in series}) == hosts > 0)


def groups_in(series: Iterable[Series], key: AnswerKey) -> int:
    """Return how many groups series make, whatever their kinds."""
    return len({group[2:] for group in map(key, series) if group is not None})


def answer_of(merged: Merged, question: Question) -> Answer:
    """Return the answer to a question from what was read for it; InputError where nothing matches."""
    key, sums = question.key(merged.labels), merged.sums
    bounds = {run.run: range_in(question, run.run, run.start_ns, run.step_ns) for run in merged.runs}
    moved = {text for run in merged.runs if (text := moved_edges(question, run.run, run.start_ns, run.step_ns))}
    lacking = (entry for entry in merged.lacking if 0 < merged.step_ns < (entry.narrower_ns or 0) or entry.narrower_ns is None)
    selected = merged.selected if merged.jobs is None else merged.jobs
    unmatched = question.unmatched(selected, merged.left_out, merged.labels)
    undated = beside({run.run: run.relative for run in merged.runs})
    parts = sums.parts
    if not merged.step_ns:
        steps = {run.run: run.step_ns for run in merged.runs}
        windows = {name: (span, steps[name[0]]) for name, span in sums.windows.items()}
        parts = over_time_range(parts, of_layers(sums.reach), windows, question.adds_up_runs)
        parts = with_whole_runs(parts, question, key, merged.whole_runs, merged.whole_rows)
    facts = Answer(
        parts=(),
        by=question.by,
        step_ns=merged.step_ns,
        kind="",
        runs=tuple(merged.named),
        run_start_ns={run.run: run.start_ns for run in merged.runs},
        relative=all(run.relative for run in merged.runs),
        warnings=(*sorted(moved), *merged.apart, *shown_beside(undated), *unmatched, *merged.notes),
        answered_from=merged.answered_from,
        undated=undated,
        auto_ns=merged.auto_ns,
        missing=missing_from(lacking, question, merged.labels, bounds),
        caveats=merged.caveats,
        layouts=sums.layouts,
        alike=merged.alike,
    )
    settled = ((name, span) for name, span in sums.reach.items() if name[0] not in merged.loading)
    reach = {name: cut for name, span in settled if (cut := inside(span, bounds[name[0]])) is not None}
    ends = {run: end for run, (_, end) in of_runs(reach).items()}
    said = (steady_words(question, run.run, run.start_ns, ends[run.run]) for run in merged.runs if run.run in ends)
    facts = replace(facts, warnings=(*filter(None, said), *facts.warnings))
    answer = finish(parts, question, facts, reach, merged.selected, merged.jobs)
    without_bins = [told.series for told in merged.whole_runs if not told.has_bins]
    alone = (*merged.means_alone, *(series.replaced(kind=mean_kind(series.kind)) for series in without_bins))
    return with_left_out(described(answer, merged.whole_runs), alone, key)


def troubles(accounts: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how many rows of all sources were repaired or rejected, by reason, of rejected ones with first places."""
    counted: dict[tuple[str, str], int] = {}
    places: dict[str, list[str]] = {}
    for account in accounts:
        for action in ("repaired", "rejected"):
            for reason, count in account.get(action, {}).items():
                counted[action, reason] = counted.get((action, reason), 0) + count
                ending = f": rejected: {reason}"
                first = next((text for text in account.get("findings", ()) if text.endswith(ending)), "")
                if action == "rejected" and first:
                    places.setdefault(reason, []).append(first.removesuffix(ending))
    for (action, reason), count in sorted(counted.items()):
        where = f" ({listed(sorted(places[reason]))})" if action == "rejected" and reason in places else ""
        yield f"{count} {plural(count, 'row')} {action}: {reason}{where}"
