"""Means without a histogram: what an answer about them reports, and what it refuses.

fio's averaged logs (`log_avg_msec`) hold means over windows, and its plain JSON one mean of the whole run. Counts are exact in
total, means over several windows are weighted by counts that come from another log. Over the whole run the tool's own numbers
are at hand and are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ingest.core.coverage import BY_KIND, MEANS_ALONE, NOT_IN_NUMBERS, WholeRow, WholeRun, bytes_of, replaced_rows, sum_of
from ingest.core.errors import InputError, listed
from ingest.core.intervals import Intervals, no_exact
from ingest.core.labels import MEAN, Group, Series, is_mean, mean_kind
from ingest.core.units import format_duration
from ingest.query.question import ALL, Answer, AnswerKey, Question

if TYPE_CHECKING:
    from ingest.read.sources import Source


REMEDY = "to have percentiles next time, log histograms (tailboard record fio)"
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

Told = TypeVar("Told", WholeRun, WholeRow)
Known = dict[Group, tuple[int, int, int, int, int | None]]  # count, sum, minimum, maximum, bytes


def holds_means_alone(source: Source) -> bool:
    """Return whether a source holds means of jobs that have no histogram."""
    if not is_mean(source.context.series.kind):
        return False
    return all(summary.bins is None for job in source.context.jobs for summary in job.values())


def whole_runs_of(sources: Iterable[Source]) -> list[WholeRun]:
    """Return what the tools themselves report of whole runs that have no histogram, by labels; known once sources are read."""
    accounts = ((source.context.series.run, source.context.account) for source in sources)
    tool_runs = [WholeRun.from_dict(run, told) for run, account in accounts for told in account.whole_runs]
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
    parts: Sequence[Intervals[Group]],
    question: Question,
    key: AnswerKey,
    tool_runs: Sequence[WholeRun],
    exact_rows: Sequence[WholeRow],
) -> list[Intervals[Group]]:
    """Return parts of an answer about whole runs with sums, extremes and bytes that are known of the same samples.

    Of means they are the tool's own. Of others those of the rows that the parts were made of: fio's json+ is one row of a whole
    run, which loses its exact minimum, maximum and sum where it crosses an edge of the stored grid; the account of each source
    keeps them. Rows are keyed as `key` keys series. They are the same samples where both count the same.
    """
    if question.step != ALL or question.in_part:
        return list(parts)
    means = _by_group(tool_runs, lambda series: key(series.replaced(kind=mean_kind(series.kind))))
    of_means: Known = {group: (*sum_of(members), bytes_of(members)) for group, members in means.items()}
    of_rows: Known = {}
    for group, members in _by_group(exact_rows, key).items():
        count, total = sum(row.count for row in members), sum(row.sum_ns for row in members)
        of_rows[group] = count, total, min(row.min_ns for row in members), max(row.max_ns for row in members), None
    return [
        part
        if part.layout.has_bins and part.completions is not None
        else _replaced(part, of_rows if part.layout.has_bins else of_means)
        for part in parts
    ]


def _by_group(told: Iterable[Told], key: AnswerKey) -> dict[Group, list[Told]]:
    """Return what is told of whole runs by the groups that `key` gives to its series."""
    groups: dict[Group, list[Told]] = {}
    for one in told:
        if (group := key(one.series)) is not None:
            groups.setdefault(group, []).append(one)
    return groups


def _replaced(part: Intervals[Group], known: Known) -> Intervals[Group]:
    rows, moved = {}, {}
    for row, (code, count) in enumerate(zip(part.series.tolist(), part.samples.tolist(), strict=True)):
        told = known.get(part.table[code])
        if told is not None and told[0] == count:
            rows[row] = told[1:4]
            if told[4] is not None:
                moved[row] = told[4]
    return replace(part, exact=replaced_rows(part.exact or no_exact(len(part)), rows, moved)) if rows else part


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
