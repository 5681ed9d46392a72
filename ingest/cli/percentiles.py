"""percentiles: latency percentiles over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.api.words import in_columns, in_range, one_axis, share
from ingest.cli import options as shared
from ingest.cli.answers import PICTURES, answered, asked, clock_of, drawn_marks, stamp_of, write, write_picture
from ingest.cli.sources import marks_of, opened
from ingest.core.errors import UsageError
from ingest.core.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.core.quantiles import Percentile
    from ingest.query.estimates import Estimate
    from ingest.query.percentiles import Wanted
    from ingest.query.question import Answer, Question
    from ingest.query.table import Table

MOST_BELOW = 50
TABLE_WINDOWS = 20
ESTIMATE_FORMATS = ("table", "csv", "ndjson")


class Options(shared.Asking, shared.Showing):
    """What a call of percentiles says."""

    wanted: str = shared.WANTED
    step: str = shared.STEP
    force: bool = shared.FORCE
    accuracy: str | None = shared.option(
        "--accuracy",
        metavar="10%",
        help="Widen the windows until the highest percentile is known to this share (95 % confidence).",
    )
    bounds: bool = shared.option(
        "--bounds", help="Add p99_lo,p99_hi: the lowest and highest value that missing samples leave possible (also of --below)."
    )
    below: str = shared.option(
        "--below", default="", metavar="LIST", help="Add the share of samples below these latencies, such as 1ms,5ms."
    )
    interpolate: bool = shared.option("--interpolate", help="Interpolate within a bin, as if its samples were spread evenly.")
    estimate: str | None = shared.option(
        "--estimate",
        metavar="LIST",
        help="Also show what averaging reports: cbt, mean-of-means, mean-of-percentiles, weighted-mean, histogram.",
    )
    marks: tuple[Path, ...] = shared.MARKS
    time_base: str | None = shared.TIME_BASE
    unit: str = shared.UNIT
    format: str = shared.formats(
        *("table", "csv", "ndjson", "markdown", "fiologparser", "png", "svg"),
        help="fiologparser: the format of fio's fiologparser_hist.py; png, svg: picture.",
    )
    every: bool = shared.EVERY


@shared.command(Options)
def percentiles(options: Options) -> None:
    """Show latency percentiles over time, from exactly merged histograms.

    \b
    Examples:
      tailboard percentiles ./cbt-archive -p 50,95,99,99.9 --step 10s --by op
      tailboard percentiles ./cbt-archive --by host --where op=read --from +30s --to +60s
      tailboard percentiles --run 'nightly-*' --step all --format csv > nightly.csv

    A table has about 20 windows (--all: as many as csv), on a terminal at most 60 rows: those with the highest latencies.
    csv and ndjson are never shortened. They have start,end, the --by labels, count,rate,min,mean,max,exact,complete,
    failed, then p50, p99.9, ... in --unit (ns). Means without a histogram also have mib_s (MiB per second) behind rate.
    A percentile is empty where there are too few samples for it: above p50 at least one sample must lie beyond it.
    --estimate adds what averaging would have reported (p99_cbt) and its error as a share (p99_cbt_error).
    """
    from ingest.core.quantiles import parse_percentiles
    from ingest.query.percentiles import Wanted, narrowed, table_of
    from ingest.query.percentiles import percentiles as rows_of

    chosen = parse_percentiles(options.wanted)
    if options.format == "fiologparser" and all(percentile.name != "p50" for percentile in chosen):
        chosen = (*parse_percentiles("50"), *chosen)  # its column of the median is always there
    if options.marks and options.format not in PICTURES:
        raise UsageError("--marks draws: choose --format png or svg, or write a report")
    below = [parse_duration(part) for part in options.below.split(",") if part.strip()]
    if len(below) > MOST_BELOW:
        raise UsageError(f"--below takes at most {MOST_BELOW} latencies")
    accuracy = share(options.accuracy) if options.accuracy else 0.0
    if options.accuracy and not 0 < accuracy < 1:
        raise UsageError(f"--accuracy takes a percentage such as 10%, not {options.accuracy!r}")
    question = in_columns(asked(options, options.step, force=options.force), options.format)
    if options.format == "table" and not options.every and not accuracy:
        question = replace(question, windows=TABLE_WINDOWS)  # that fit on a screen
    if accuracy and options.bounds:
        raise UsageError("--accuracy and --bounds both give columns such as p99_lo,p99_hi: leave one out")
    columns = Wanted(chosen, below, options.interpolate, bounds=bool(accuracy), possible=options.bounds)
    if options.estimate:
        from ingest.query.estimates import with_estimates
        from ingest.view.terminal.estimates import print_estimates

        table, estimates, answer = _estimated(options, question, columns, accuracy)
        if options.format == "table":
            print_estimates(table, estimates, chosen, answer, stamp_of(answer, options))
        else:
            write(with_estimates(table, estimates), answer, options, "percentiles")
        return
    if options.format in PICTURES:
        _percentiles_picture(options, question, chosen, accuracy)
        return
    if accuracy:
        answer = narrowed(answered(options, question), max(chosen), accuracy)
        write(rows_of(answer, columns), answer, options, "percentiles")
        return
    with opened(options) as origin:
        table, answer = table_of(origin, question, columns)
    write(table, in_range(answer, question), options, "percentiles")


def _percentiles_picture(options: Options, question: Question, chosen: Sequence[Percentile], accuracy: float) -> None:
    """Write percentiles over time as a picture, with the marks of a store and of files."""
    from ingest.query.lags import answered as answered_by
    from ingest.query.percentiles import narrowed
    from ingest.view.pictures import percentiles_picture

    marks = marks_of(options.marks)
    with opened(options) as origin:
        answer = answered_by(origin, question)
        noted = drawn_marks(answer, origin.marks(answer), marks)
    answer = narrowed(answer, max(chosen), accuracy) if accuracy else answer
    one_axis(answer)
    write_picture(percentiles_picture(answer, chosen, clock_of(answer, options), noted), answer, options)


def _estimated(options: Options, question: Question, columns: Wanted, accuracy: float) -> tuple[Table, list[Estimate], Answer]:
    """Return the percentiles of a question, the estimates that --estimate names, and the answer with the notes of both.

    UsageError for what cannot be.
    """
    from ingest.query.estimates import estimated, parse_estimates
    from ingest.query.lags import answered as answered_by
    from ingest.query.percentiles import narrowed, percentiles
    from ingest.query.plan import settled

    names = parse_estimates(options.estimate or "")
    if options.format not in ESTIMATE_FORMATS:
        raise UsageError(f"--estimate goes with --format {', '.join(ESTIMATE_FORMATS)}, not {options.format}")
    with opened(options) as origin:
        question = settled(origin, question)
        answer = answered_by(origin, question)
        if accuracy:
            answer = narrowed(answer, max(columns.percentiles), accuracy)
        table = percentiles(answer, columns)
        estimates = estimated(origin, question, answer, table, columns.percentiles, names)
    notes = [note for estimate in estimates for note in estimate.notes]
    return table, estimates, replace(answer, warnings=(*answer.warnings, *notes))
