"""trend: a percentile over many runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import PICTURES, write_picture
from ingest.cli.shared.by_run import (
    REGRESSED,
    EachRun,
    answered,
    bounded_options,
    format_option,
    opened_runs,
    question_of,
    ratio_limit,
    undated_beside,
    write_rows,
)
from ingest.cli.shared.pages import beside_page, page_option, written
from ingest.cli.shared.say import say
from ingest.cli.shared.streams import verdict_stands
from ingest.core.errors import InputError, UsageError, listed
from ingest.read.undated import undated_part_of

if TYPE_CHECKING:
    from ingest.query.question import Answer
    from ingest.query.table import Table
    from ingest.query.trend import Judgement, Night


@dataclass(frozen=True, kw_only=True)
class Options(EachRun):
    """What a call of trend says."""

    wanted: str
    least_change: str
    last: int


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--run", "runs", metavar="GLOB", multiple=True, help="Only runs whose name matches GLOB [default: all].")
@click.option("-p", "wanted", default="99", show_default=True, metavar="LIST", help="Percentiles, 0 to 100.")
@bounded_options
@click.option(
    "--least-change",
    default="10%",
    show_default=True,
    metavar="SHARE",
    help="Smallest change of level that is reported.",
)
@click.option(
    "--last",
    type=click.IntRange(1, 10_000),
    default=7,
    show_default=True,
    help="Number of runs before the newest that --fail-above takes the median of.",
)
@click.option("--fail-above", metavar="RATIO", help="Exit with status 1 if the newest run is above this ratio (95 % confidence).")
@shared.reading_options
@shared.unit_option
@format_option
@page_option
@shared.typed(Options)
def trend(sources: tuple[str, ...], options: Options) -> int:
    """Show a percentile of each run, in the order in which runs began, with bounds, change points and a verdict on the newest.

    \b
    Examples:
      tailboard trend --run 'nightly-*' -p 99 --by op
      tailboard trend --run 'nightly-*' -p 99 --where op=read --last 7 --fail-above 1.2
      tailboard trend ./nights/* -p 50,99 -o trend.html

    Of several paths each is a run, named after the path. Archives of CBT with many runs give one line for each kind of run, with
    a label `permutation`. csv and ndjson have the --by labels, then run,start,percentile,value,lo,hi,count,level,change: value
    in --unit (ns) with its 95 % bounds, level the median since the last change, change the ratio of levels where a new level
    begins. --fail-above compares the lower bound of the newest run with the median of the runs before it.
    """
    from ingest.core.ranks import parse_percentiles
    from ingest.core.series import run_matches
    from ingest.query.compare import labelled
    from ingest.query.sweeps import PERMUTATION, permutations
    from ingest.query.trend import COLUMNS, alike, by_archive, in_order, judged
    from ingest.query.trend import trend as rows_of

    limit, percentiles, least = (
        ratio_limit(options.fail_above),
        parse_percentiles(options.wanted),
        _least(options.least_change),
    )
    output, form = options.output, beside_page(options.printed, options.output)
    question, by = question_of(options, (*COLUMNS, "start"))
    with opened_runs(sources, options) as (asks, labels):
        names = [name for name in asks if run_matches(name, options.runs)]
        if not names:
            raise InputError(f"no run matches {' '.join(options.runs)}; there are {listed(sorted(asks))}")
        dated = [name for name in names if undated_part_of(name) not in names]
        found_in = permutations(dated, labels)
        if found_in:
            answers = [labelled(answered(asks[name], name, question), PERMUTATION, found_in[name][1]) for name in dated]
            nights, notes = in_order(alike(by_archive(answers, found_in), (PERMUTATION, *by)))
            notes = (*_permutations_told(found_in), *undated_beside(names, dated), *notes)
        else:
            nights, notes = in_order(alike([answered(asks[name], name, question) for name in names], by))
    table = rows_of(nights, percentiles, least)
    notes = (*notes, *_warnings([night.answer for night in nights]))
    found = judged(table, nights[-1].run, options.last)
    status, told = _verdict(found, nights[-1].run, limit)
    if output:
        from ingest.view.page.finished.trend import trend_page

        calm = [f"{nights[-1].run}: nothing is certain to be above {limit:g} times the usual."] if limit < math.inf else []
        written(trend_page(nights, table, found, told or calm, notes, bad=bool(status)), output)
    if form:
        with verdict_stands():
            _write(nights, table, notes, shared.Showing(format=form, unit=options.unit))
    for line in told:
        say(line)
    return status


def _permutations_told(found: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the sentence about archives that hold many runs."""
    many, archives = len({what for _, what in found.values()}), {archive for archive, _ in found.values()}
    if len(archives) == 1:
        which = f"{min(archives)} is one archive of {many} unlike runs"
        return [f"{which}, a series with one point each: a trend needs several archives"]
    return [f"{len(archives)} archives of {many} unlike runs: a series each, by what they are below their archives"]


def _write(nights: Sequence[Night], table: Table, notes: Sequence[str], showing: shared.Showing) -> None:
    from ingest.core.writing import utc
    from ingest.view.terminal import trend as view

    form = showing.format
    told = [*notes, *view.notes(nights, table)]
    if form == "table":
        view.print_trend(nights, table, told)
        return
    for line in told:
        say(line)
    if form in PICTURES:
        from dataclasses import replace

        write_picture(view.trend_picture(nights, table), replace(nights[-1].answer, warnings=()), showing)
        return
    write_rows(table, form, showing.unit, ("value", "lo", "hi", "level"), lambda stamp_ns: utc(stamp_ns) if stamp_ns else "")


def _warnings(answers: Sequence[Answer]) -> list[str]:
    """Return what a reader must know of each run."""
    return [f"{answer.runs[0]}: {text}" for answer in answers for text in answer.warnings]


def _least(text: str) -> float:
    """Return the ratio of --least-change; UsageError if it is no share such as 10%."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 100:
        raise UsageError(f"--least-change takes a share such as 10%, not {text!r}")
    return 1 + share


def _verdict(found: Sequence[Judgement], run: str, limit: float) -> tuple[int, list[str]]:
    """Return the exit status, 1 where the newest run's lower bound is above the limit, and what to say; up to five are named."""
    if limit == math.inf:
        return 0, []
    told = [] if found else [f"cannot tell: nothing of {run} has a run before it, so nothing was judged"]
    above, unknown = [], []
    for one in found:
        name = " ".join([*(label or "-" for label in one.labels), f"p{one.percentile:.15g}"])
        if math.isnan(one.least):
            unknown.append(f"{name} of {one.run}")
        elif one.least > limit:
            usual = f"the median of the {one.earlier} runs before" if one.earlier > 1 else "the run before"
            above.append(f"{one.run}: {name} is {one.ratio:.3g} times {usual}, at least {one.least:.3g}")
    if unknown:
        told.append(f"cannot tell: too few samples for a lower bound of {listed(unknown)}")
    if above:
        told.append(f"above {limit:g}: {listed(above)}")
    return REGRESSED if above else 0, told
