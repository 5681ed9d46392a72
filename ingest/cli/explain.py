"""explain: what happened, and who made it."""

from __future__ import annotations

import click

from ingest.cli.explain_box import Options, box_option, explain_box
from ingest.cli.shared import options as shared


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@box_option
@shared.selecting_options
@shared.marks_option
@shared.time_option
@click.option(
    "--format",
    type=click.Choice(["table", "json", "ndjson", "csv"]),
    default="table",
    show_default=True,
    help="table: for people; json: all of it; ndjson, csv: one row per label and value.",
)
@shared.reading_options
@shared.typed(Options)
def explain(sources: tuple[str, ...], options: Options) -> None:
    """Explain a box of the heat map: which host, operation or job is over-represented in it.

    \b
    Examples:
      tailboard explain ./cbt-archive --box +26s..+36s,1s..
      tailboard explain --run nightly-42 --box ..,20ms..50ms --where op=read
      tailboard explain ./cbt-archive --box 2026-11-20T21:00:30Z..,1s.. --format csv

    A box is a range of time and a range of latency; an end that is left out is open. Every value of host, op, volume, job, tag,
    process and run is counted inside and outside. csv and ndjson have one row for each, the most over-represented first:
    label,value,inside,outside,share_inside,share_outside,lift,lo,hi,score,verdict,exact,complete.
    """
    if not options.box:
        raise click.UsageError("name a box: --box +26s..+36s,1s..")
    explain_box(sources, options)
