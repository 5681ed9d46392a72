"""distribution: how latencies are distributed over the whole range."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import PICTURES, answered, asked, warn, write, write_picture
from ingest.cli.shared.help import Choice, Command, file_names
from ingest.cli.shared.values import curve_files

TABLE_ROWS = 30


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking, shared.Showing):
    """What a call of distribution says."""

    ticks: int
    curves: bool
    hgrm: tuple[str, ...]
    sla: tuple[str, ...]


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@shared.selecting_options
@shared.reading_options
@shared.hgrm_options
@shared.curve_options
@click.option(
    "--format",
    type=Choice(["table", "csv", "ndjson", "hgrm", "png", "svg"]),
    default="table",
    show_default=True,
    help="hgrm: the text that HdrHistogram prints; png, svg: picture.",
)
@shared.all_option
@shared.typed(Options)
def distribution(sources: tuple[str, ...], options: Options) -> None:
    """Show how latencies are distributed over the whole time range.

    \b
    Examples:
      tailboard distribution ./cbt-archive --by host --format csv
      tailboard distribution --run nightly-42 --where op=write --unit us
      tailboard distribution stress.hdr --by op,kind --curves --sla sla.txt:ms --format csv

    A table has 20 to 30 ranges of latency, near 1, 2, 5, 10, ..., of whole bins, so that counts are exact (--all: every bin).
    csv and ndjson have one row per group and occupied bin: the --by labels, lower,upper (in --unit), count, cumulative. With
    --curves they have one row per percentile level: curve, percentile, x = 1/(1-q), value (in --unit), count.
    """
    from ingest.query.heatmap import distribution as rows_of

    others = curve_files(options.hgrm, options.sla)
    answer = answered(sources, options, asked(options, "all"))
    if options.format in PICTURES:
        from ingest.view.pictures import distribution_picture

        write_picture(distribution_picture(answer), answer, options)
        return
    if options.format == "hgrm":
        from ingest.query.lags import whole_counts
        from ingest.view.hgrm import texts
        from ingest.view.text import UNITS

        warn(answer)
        sys.stdout.writelines(texts(replace(answer, parts=whole_counts(answer)), UNITS[options.unit], options.ticks))
        return
    if options.curves or others:
        from ingest.query.curves import curves

        write(curves(answer, others, options.ticks), answer, options, "percentile curves")
        return
    if options.format == "table" and not options.every:
        from ingest.query.heatmap import ranges

        write(ranges(answer, TABLE_ROWS), answer, options, "distribution")
        return
    write(rows_of(answer), answer, options, "distribution")
