"""compare: two runs side by side, and which parts of them moved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.cli.compare_at import at_option, marks_option, opened_sides
from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import PICTURES, write_picture
from ingest.cli.shared.by_run import (
    REGRESSED,
    EachRun,
    answered,
    bounded_options,
    format_option,
    least_ratio,
    named,
    question_of,
    ratio_limit,
    undated_beside,
    write_rows,
)
from ingest.cli.shared.help import Command, file_names
from ingest.cli.shared.pages import beside_page, compared, over_time, page_option, written
from ingest.cli.shared.say import say
from ingest.cli.shared.sources import split_sources
from ingest.cli.shared.streams import verdict_stands
from ingest.core.errors import InputError, UsageError, listed
from ingest.core.nearest import choices
from ingest.core.writing import figure, number
from ingest.read.undated import undated_part_of

if TYPE_CHECKING:
    from ingest.cli.shared.by_run import Ask
    from ingest.core.series import RunLabels
    from ingest.query.compare import Pair
    from ingest.query.question import Answer, Question
    from ingest.query.sweeps import Paired
    from ingest.query.table import Table

SIDES = ("baseline", "run")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(EachRun):
    """What a call of compare says."""

    baseline: str | None
    run: str | None
    at: str | None
    marks: tuple[Path, ...]
    wanted: str
    shifts: bool
    unlike_kinds: bool
    same_within: str


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@click.option(
    "--baseline",
    metavar="GLOB",
    help="Run to compare with; of several runs those that match one of --run.",
)
@click.option("--run", "run", metavar="GLOB", help="Run to judge, in the same way.")
@at_option
@marks_option
@shared.percentiles_option
@click.option("--shifts", is_flag=True, help="Use percentiles at every halving of 1-q: shows how the distributions differ.")
@bounded_options
@click.option(
    "--same-within",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="Largest difference that still counts as the same.",
)
@click.option("--merge-runs", is_flag=True, help="Merge the runs of each side where its glob matches several.")
@click.option("--unlike-kinds", is_flag=True, help="Compare even where the two runs hold different kinds of latency.")
@click.option("--fail-above", metavar="RATIO", help="Exit with status 1 if a ratio is above this (95 % confidence), such as 1.2.")
@shared.reading_options
@shared.unit_option
@format_option
@page_option
@shared.typed(Options)
def compare(sources: tuple[str, ...], options: Options) -> int:
    """Compare two runs: percentiles side by side, their ratio with bounds, and which parts changed most.

    \b
    Examples:
      tailboard compare --baseline nightly-41 --run nightly-42 --by host,op
      tailboard compare ./good ./bad --baseline good --run bad -p 99,99.9 --fail-above 1.2
      tailboard compare --baseline nightly-41 --run nightly-42 --by job -o compare.html
      tailboard compare --run nightly-42 --at 'cache on'

    Of several paths each is a run, named after the path. Where both globs match several runs (archives of CBT), runs with the
    same path below their archives are compared in pairs, with a label `permutation`. csv and ndjson have the --by labels, then
    percentile,baseline,run,ratio,lo,hi,count_baseline,count_run,verdict, largest effect first: baseline and run in --unit (ns),
    lo and hi the bounds of the ratio (95 % confidence for all rows together), verdict slower, faster, same or cannot tell.
    Bounds come from whole windows; of three runs a side or more from the spread between runs. A cell is empty where there is
    too little data.
    """
    from ingest.core.ranks import parse_percentiles
    from ingest.query.compare import COLUMNS, halvings, labelled, together
    from ingest.query.compare import compare as rows_of
    from ingest.query.groupings import grouped, is_lag, labels_of
    from ingest.query.question import AUTO
    from ingest.query.sweeps import PERMUTATION

    limit, percentiles = ratio_limit(options.fail_above), parse_percentiles(options.wanted)
    same_within = least_ratio(options.same_within, "--same-within")
    output, form = options.output, beside_page(options.printed, options.output)
    question, by = question_of(options, COLUMNS)
    opens = output or form == "table"  # with a verdict that names operation and host
    wanted = replace(question, by=labels_of(question.by)) if opens else question
    with opened_sides(sources, options, question) as (asks, labels):
        pairs = None if options.at else pairs_among(asks, labels, options)
        if pairs:
            by = (PERMUTATION, *by)
            sides = [[pair[1 + place] for pair in pairs.pairs] for place in range(2)]
            names_of_pairs = [what for what, *_ in pairs.pairs]
        else:
            known = {name: labels.get(name, {}) for name in asks}
            sides = (
                [[name] for name in asks]
                if options.at
                else [chosen(known, getattr(options, side), f"--{side}", merge=options.merge_runs) for side in SIDES]
            )
            names_of_pairs = []
            if set(sides[0]) & set(sides[1]):
                raise UsageError(f"--baseline and --run both take {listed(sorted(set(sides[0]) & set(sides[1])))}")

        def answers(names: Sequence[str], asked: Question) -> tuple[Answer, ...]:
            each = [answered(asks[name], name, asked) for name in names]
            if not names_of_pairs:
                return tuple(each)
            return tuple(labelled(answer, PERMUTATION, what) for answer, what in zip(each, names_of_pairs, strict=True))

        baseline, run = (together(answers(names, wanted)) for names in sides)
        windows = answers(sides[0], replace(wanted, step=AUTO)), answers(sides[1], replace(wanted, step=AUTO))
        pair = grouped(baseline, run, by, windows, unlike=options.unlike_kinds, same_within=same_within)
        notes_of_pairs = pair_notes(pairs) if pairs else ()
        pair = replace(pair, notes=(*pair.notes, *notes_of_pairs, *undated_beside(list(asks), [*sides[0], *sides[1]])))
    table = rows_of(pair, halvings(pair) if options.shifts else percentiles)
    status, sentences = _judged(table, limit)
    content = compared(pair, (baseline, run), windows, percentiles, unlike=options.unlike_kinds) if opens else None
    if output and content:
        from ingest.cli.compare_breaths import breath_panels
        from ingest.view.page.finished.compare import compare_page

        paths = named(split_sources(sources)[1])
        more = breath_panels(sources, paths, options, sides, question) if is_lag(baseline, run) and not options.at else []
        calm = [f"No ratio is certain to be above {number(limit)} times the baseline."] if limit < math.inf else []
        written(compare_page(content, pair, sentences or calm, bad=bool(status), more=more), output)
    if form:
        with verdict_stands():
            said = content.opening(pair) if content else []
            _write(pair, table, said, shared.Showing(format=form, unit=options.unit))
    for line in sentences:
        say(line)
    return status


def chosen(labels: RunLabels, glob: str, option: str, *, merge: bool) -> list[str]:
    """Return the run that a glob names, or three and more that are the same thing; all with `merge`, otherwise an error."""
    from ingest.core.series import run_matches
    from ingest.query.dependent import LEAST_RUNS
    from ingest.query.sweeps import permutations

    matching = [name for name in labels if name == glob] or [name for name in labels if run_matches(name, (glob,))]
    if not matching:
        raise InputError(f"{option} {glob} matches no run: {choices(glob, sorted(labels))}")
    dated = [name for name in matching if undated_part_of(name) not in matching]  # what is undated of a run is not added to it
    if len(matching) > 1 and not merge:
        many = f"{option} {glob} matches {len(matching)} runs ({listed(sorted(matching))})"
        if permutations(dated, labels):
            raise UsageError(f"{many} that are unlike: name one, or add --merge-runs")
        if len(dated) < LEAST_RUNS:
            raise UsageError(f"{many}: name one, {LEAST_RUNS} or more for the spread between them, or add --merge-runs")
    return sorted(dated if len(matching) > 1 else matching)


def pairs_among(asks: Mapping[str, Ask], labels: RunLabels, options: Options) -> Paired | None:
    """Return the pairs of runs where a side names several and they can be paired; None where a side is to be one run."""
    from ingest.core.series import run_matches
    from ingest.query.sweeps import paired_runs

    names = list(asks)
    globs = [str(getattr(options, side)) for side in SIDES]
    matching = [
        [name for name in names if name == glob] or [name for name in names if run_matches(name, (glob,))] for glob in globs
    ]
    dated = [[name for name in side if undated_part_of(name) not in side] for side in matching]
    if options.merge_runs or not all(dated) or all(len(side) == 1 for side in matching):
        return None
    return paired_runs(sorted(dated[0]), sorted(dated[1]), labels)


def pair_notes(paired: Paired) -> tuple[str, ...]:
    """Return the sentences about runs that are compared pair by pair, and about those that have none like them."""
    which = "pair" if len(paired.pairs) == 1 else "pairs"
    notes = [f"{len(paired.pairs)} {which} of runs that are alike, compared one by one; --merge-runs adds each side up"]
    for side, runs in zip(SIDES, paired.alone, strict=True):
        if runs:
            notes.append(f"not compared, since the other side has no run like it: {listed(runs)} ({side})")
    return tuple(notes)


def _write(pair: Pair, table: Table, said: Sequence[str], showing: shared.Showing) -> None:
    from ingest.view.terminal import comparison

    form = showing.format
    if form == "table":
        comparison.print_comparison(pair, table, said)
        return
    if form in PICTURES:
        noted = replace(pair.run, warnings=tuple(comparison.notes(pair, table)))
        write_picture(comparison.comparison_picture(pair, over_time(pair)), noted, showing)
        return
    for line in (*filter(None, [comparison.largest_excess(pair)]), *comparison.notes(pair, table)):
        say(line)
    write_rows(table, form, showing.unit, ("baseline", "run"))


def _judged(table: Table, limit: float) -> tuple[int, list[str]]:
    """Return the exit status, 1 where the lower bound of a ratio is above the limit, and what to say; up to five are named."""
    if limit == math.inf:
        return 0, []
    from ingest.view.terminal.comparison import row_name

    low = table.columns["lo"]
    above = [row for row in range(len(table)) if low[row] > limit]
    if not above and not (low == low).any():  # noqa: PLR0124  # NaN is unlike itself
        return 0, ["cannot tell: no ratio here has a lower bound, so nothing was judged"]
    sentences = [
        f"{row_name(table, row)} is {figure(table.columns['ratio'][row])} times the baseline, at least {figure(low[row])}"
        for row in above
    ]
    return (REGRESSED, [f"above {number(limit)}: {listed(sentences)}"]) if sentences else (0, [])
