"""percentiles: latency percentiles over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import PICTURES, answered, asked, clock_of, in_range, one_axis, stamp_of, write, write_picture
from ingest.cli.shared.help import Choice, Command, file_names
from ingest.cli.shared.values import parse_step
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.core.ranks import Percentile
    from ingest.query.question import Question

MOST_BELOW = 50
TABLE_WINDOWS = 20


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking, shared.Showing):
    """What a call of percentiles says."""

    wanted: str
    step: str
    force: bool
    accuracy: str | None
    bounds: bool
    below: str
    interpolate: bool
    estimate: str | None
    marks: tuple[Path, ...]


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@shared.percentiles_option
@shared.step_options
@shared.selecting_options
@click.option(
    "--accuracy",
    metavar="10%",
    help="Widen the windows until the highest percentile is known to this share (95 % confidence).",
)
@click.option(
    "--bounds",
    is_flag=True,
    help="Add p99_lo,p99_hi: the lowest and highest value that missing samples leave possible (also of --below).",
)
@click.option("--below", default="", metavar="LIST", help="Add the share of samples below these latencies, such as 1ms,5ms.")
@click.option("--interpolate", is_flag=True, help="Interpolate within a bin, as if its samples were spread evenly.")
@click.option(
    "--estimate",
    metavar="LIST",
    help="Also show what averaging reports: cbt, mean-of-means, mean-of-percentiles, histogram.",
)
@shared.marks_option
@shared.reading_options
@shared.time_option
@shared.unit_option
@click.option(
    "--format",
    type=Choice(["table", "csv", "ndjson", "fiologparser", "png", "svg"]),
    default="table",
    show_default=True,
    help="fiologparser: the format of fio's fiologparser_hist.py; png, svg: picture.",
)
@shared.all_option
@shared.typed(Options)
def percentiles(sources: tuple[str, ...], options: Options) -> None:
    """Show latency percentiles over time, from exactly merged histograms.

    \b
    Examples:
      tailboard percentiles ./cbt-archive -p 50,95,99,99.9 --step 10s --by op
      tailboard percentiles ./cbt-archive --by host --where op=read --from +30s --to +60s
      tailboard percentiles --run 'nightly-*' --step all --format csv > nightly.csv

    A table has about 20 windows (--all: as many as csv), on a terminal at most 60 rows: those with the highest latencies.
    csv and ndjson are never shortened. They have start,end, the --by labels, count,rate,min,mean,max,exact,complete, then
    p50, p99.9, ... in --unit (ns). Means without a histogram also have mib_s (MiB per second) behind rate.
    A percentile is empty where there are too few samples for it: above p50 at least one sample must lie beyond it.
    --estimate adds what averaging would have reported (p99_cbt) and its error as a share (p99_cbt_error).
    """
    from ingest.cli.shared.sources import opened
    from ingest.core.ranks import parse_percentiles
    from ingest.core.timing import parse_duration
    from ingest.query.percentiles import Wanted, narrowed, table_of
    from ingest.query.percentiles import percentiles as rows_of

    chosen = parse_percentiles(options.wanted)
    if options.marks and options.format not in PICTURES:
        raise UsageError("--marks draws: choose --format png or svg, or write a report")
    below = [parse_duration(part) for part in options.below.split(",") if part.strip()]
    if len(below) > MOST_BELOW:
        raise UsageError(f"--below takes at most {MOST_BELOW} latencies")
    accuracy = _accuracy(options.accuracy)
    question = _question(options)
    if accuracy and options.bounds:
        raise UsageError("--accuracy and --bounds both give columns such as p99_lo,p99_hi: leave one out")
    columns = Wanted(chosen, below, options.interpolate, bounds=bool(accuracy), possible=options.bounds)
    if options.estimate:
        from ingest.cli.percentiles_estimates import asked_estimates
        from ingest.query.estimates.estimates import with_estimates
        from ingest.view.terminal.estimates import print_estimates

        table, estimates, answer = asked_estimates(sources, options, question, columns, accuracy)
        if options.format == "table":
            print_estimates(table, estimates, chosen, answer, stamp_of(answer, options))
        else:
            write(with_estimates(table, estimates), answer, options, "percentiles")
        return
    if options.format in PICTURES:
        _percentiles_picture(sources, options, question, chosen, accuracy)
        return
    if accuracy:
        answer = narrowed(answered(sources, options, question), max(chosen), accuracy)
        write(rows_of(answer, columns), answer, options, "percentiles")
        return
    with opened(sources, options) as origin:
        table, answer = table_of(origin, question, columns)
    write(table, in_range(answer, question), options, "percentiles")


def _question(options: Options) -> Question:
    """Return what is asked: a table has windows that fit on a screen, unless --all is given or --accuracy finds their width."""
    question = asked(options, parse_step(options.step), force=options.force)
    fits = options.format == "table" and not options.every and not options.accuracy
    return replace(question, windows=TABLE_WINDOWS) if fits else question


def _percentiles_picture(
    sources: tuple[str, ...], options: Options, question: Question, chosen: Sequence[Percentile], accuracy: float
) -> None:
    """Write percentiles over time as a picture, with the marks of a store and of files."""
    from ingest.cli.shared.marks import drawn, read_all
    from ingest.cli.shared.sources import opened
    from ingest.query.lags import answered as answered_by
    from ingest.query.percentiles import narrowed
    from ingest.view.pictures import percentiles_picture

    marks = read_all(options.marks)
    with opened(sources, options) as origin:
        answer = answered_by(origin, question)
        noted = drawn(answer, origin.marks(answer), marks)
    answer = narrowed(answer, max(chosen), accuracy) if accuracy else answer
    one_axis(answer)
    write_picture(percentiles_picture(answer, chosen, clock_of(answer, options), noted), answer, options)


def _accuracy(text: str | None) -> float:
    if not text:
        return 0.0
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"--accuracy takes a percentage such as 10%, not {text!r}")
    return share
