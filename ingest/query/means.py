"""Means without a histogram: what an answer about them reports, and what it refuses.

fio's averaged logs (`log_avg_msec`) hold means over windows, and its plain JSON one mean of the whole run. Counts are exact in
total, means over several windows are weighted by counts that come from another log. Over the whole run the tool's own numbers
are at hand and are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.core.coverage import BY_KIND, MEANS_ALONE, NOT_IN_NUMBERS
from ingest.core.errors import InputError, listed
from ingest.core.intervals import Intervals, no_exact
from ingest.core.labels import MEAN, Group, Series, is_mean, mean_kind
from ingest.core.units import format_duration
from ingest.query.question import ALL, Answer, AnswerKey, Question

if TYPE_CHECKING:
    from ingest.core.coverage import WholeRun
    from ingest.read.sources import Source


REMEDY = "to have percentiles next time, log histograms (tailboard wrap-fio)"
SHOWN_BY = "tailboard report and percentiles show them"
OWN = "fio's own, whole run, by job (not to be merged into percentiles of a host or cluster)"
WITHOUT = ", without a histogram: no percentiles can be made of them"
MOST_SHOWN = 16
OWN_COUNTS = "Counts are fio's own in total; by window, and means over several windows, {}"
SOME_OWN = (
    "Counts are fio's own in total where its JSON was found, others come from its rates; by window, and means over several, {}"
)
NO_OWN = "Counts come from fio's rates, not from its own count; so do the weights of means over several windows: {}"
FROM_RATES = "counts come only from fio's log of IOPS"  # in what readers note and keep as missing
MEANS_NOTE = "means: "  # begins what readers of means note


def holds_means_alone(source: Source) -> bool:
    """Return whether a source holds means of jobs that have no histogram."""
    if not is_mean(source.context.series.kind):
        return False
    return all(summary.bins is None for job in source.context.jobs for summary in job.values())


def whole_runs_of(sources: Iterable[Source]) -> list[WholeRun]:
    """Return what the tools themselves report of whole runs that have no histogram, by labels; known once sources are read."""
    reported = [source for source in sources if source.context.account.whole_runs]
    if not reported:
        return []
    from ingest.core.coverage import whole_runs

    tool_runs = [
        whole_run
        for source in reported
        for whole_run in whole_runs(source.context.series.run, [source.context.account.as_dict()])
    ]
    return sorted(tool_runs, key=lambda whole_run: whole_run.series)


def lacks_bins(answer: Answer) -> bool:
    """Return whether some of an answer was recorded without a histogram."""
    return any(not part.layout.has_bins for part in answer.parts)


def check_bins(answer: Answer, what: str) -> None:
    """Raise InputError where `what` (in the plural) cannot be made because some of the answer has no histogram."""
    if not lacks_bins(answer):
        return
    kinds = [kind for kind in answer.kind.split(", ") if kind]
    others = [kind for kind in kinds if not is_mean(kind)]
    if others:
        raise InputError(f"{what} cannot be made of means: choose another kind, as in --where kind={others[0]}")
    runs = listed(answer.runs)
    raise InputError(
        f"{runs}: {', '.join(kinds)} latency was recorded as means alone, and {what} cannot be made of means; {REMEDY}"
    )


class MeansAloneError(InputError):
    """A selection holds means without a histogram and nothing else."""


def with_bins(answer: Answer) -> Answer:
    """Return what of an answer by kind has histograms, with a note on the kinds that were left out.

    MeansAloneError where nothing has.
    """
    if not lacks_bins(answer):
        return answer
    parts = tuple(part for part in answer.parts if part.layout.has_bins)
    kinds = sorted(kind for kind in answer.kind.split(", ") if is_mean(kind))
    if not any(len(part) for part in parts):
        sentence = f"{listed(answer.runs)}: {', '.join(kinds)} latency was recorded as means alone, without a histogram"
        raise MeansAloneError(f"{sentence}: {SHOWN_BY}; {REMEDY}")
    note = f"{', '.join(kinds)}: means without a histogram are not shown here; percentiles --by kind has them"
    rest = (text for text in answer.warnings if WITHOUT not in text and MEANS_NOTE not in text)
    kept = ", ".join(kind for kind in answer.kind.split(", ") if kind not in kinds)
    return replace(answer, parts=parts, kind=kept, warnings=(note, *rest))


def with_whole_runs(
    parts: Sequence[Intervals[Group]], question: Question, key: AnswerKey, tool_runs: Sequence[WholeRun]
) -> list[Intervals[Group]]:
    """Return parts of an answer about whole runs with the tool's own sums, extremes and bytes where they are of the same samples.

    Rows are keyed as `key` keys series. They are the same samples where both count the same.
    """
    if question.step != ALL or question.begin is not None or question.end is not None or not tool_runs:
        return list(parts)
    from ingest.core.coverage import bytes_of, sum_of

    groups: dict[Group, list[WholeRun]] = {}
    for whole_run in tool_runs:
        group = key(whole_run.series.replaced(kind=mean_kind(whole_run.series.kind)))
        if group is not None:
            groups.setdefault(group, []).append(whole_run)
    sums = {group: (*sum_of(members), bytes_of(members)) for group, members in groups.items()}
    return [part if part.layout.has_bins else _replaced(part, sums) for part in parts]


def _replaced(part: Intervals[Group], sums: dict[Group, tuple[int, int, int, int, int | None]]) -> Intervals[Group]:
    from ingest.core.coverage import replaced_rows

    rows, moved = {}, {}
    for row, (code, count) in enumerate(zip(part.series.tolist(), part.samples.tolist(), strict=True)):
        tool_sums = sums.get(part.table[code])
        if tool_sums is not None and tool_sums[0] == count:
            rows[row] = tool_sums[1:4]
            if tool_sums[4] is not None:
                moved[row] = tool_sums[4]
    return replace(part, exact=replaced_rows(part.exact or no_exact(len(part)), rows, moved))


def described(answer: Answer, tool_runs: Sequence[WholeRun]) -> Answer:
    """Return an answer with a sentence about what its means are, in front of its other warnings.

    Of an answer without means, notes about means are left out.
    """
    if not lacks_bins(answer):
        return replace(answer, warnings=tuple(text for text in answer.warnings if MEANS_NOTE not in text))
    mine = [whole_run for whole_run in tool_runs if whole_run.series.run in answer.runs]
    widths = sorted({whole_run.window_ns for whole_run in mine if whole_run.window_ns})
    over = f"means over {', '.join(map(format_duration, widths))}" if widths else "means"
    if any(not whole_run.window_ns for whole_run in mine):
        over = f"{over}, and of whole runs" if widths else "means of whole runs"
    said = (*answer.warnings, *(lack.caveat.sentence for lack in answer.missing))
    guessed = any(FROM_RATES in text for text in said)
    counts = (OWN_COUNTS if not guessed else SOME_OWN if mine else NO_OWN).format("they are approximate")
    text = f"{over}{WITHOUT}. {counts}. {REMEDY[0].upper()}{REMEDY[1:]}"
    return replace(answer, warnings=(text, *answer.warnings))


def with_left_out(answer: Answer, alone: Iterable[Series], key: AnswerKey) -> Answer:
    """Return an answer about histograms with a sentence on what of its selection was recorded as means alone.

    `alone` are series of means of jobs that have no histogram.
    """
    if any(is_mean(kind) for kind in answer.kind.split(", ")):
        return answer
    left = sorted(
        {
            series.called or "-"
            for series in alone
            if series.run in answer.runs and any(map(key, (series, series.replaced(kind=series.kind.removesuffix(MEAN)))))
        }
    )
    if not left or any(lack.entry.caveat.code == MEANS_ALONE for lack in answer.missing):
        return answer
    text = f"{listed(left)}: {NOT_IN_NUMBERS}; {BY_KIND}"
    return replace(answer, warnings=(text, *answer.warnings))


def own_facts(tool_runs: Sequence[WholeRun]) -> list[tuple[str, str]]:
    """Return (name, value) pairs of what the tool itself reports of whole runs that have no histogram, by job."""
    tool_runs = [whole_run for whole_run in tool_runs if not whole_run.has_bins]
    facts = [(OWN, str(whole_run)) for whole_run in tool_runs[:MOST_SHOWN]]
    more = len(tool_runs) - MOST_SHOWN
    return facts + ([(OWN, f"and {more} more: tailboard runs show, inspect")] if more > 0 else [])
