"""card: one picture of a run for a chat or a paper."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import asked, clock_of, warn
from ingest.cli.shared.help import Command, file_names
from ingest.cli.shared.output import write_whole
from ingest.cli.shared.say import say


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking, shared.Showing):
    """What a call of card says."""

    output: str
    format: str = "png"


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@click.option(
    "-o",
    "--output",
    default="card.png",
    show_default=True,
    metavar="FILE",
    shell_complete=file_names,
    help="File to write, .png or .svg; - for a png on stdout.",
)
@shared.selecting_options
@shared.time_option
@shared.reading_options
@shared.typed(Options)
def card(sources: tuple[str, ...], options: Options) -> None:
    """Draw one picture of a run, 1200 x 630: what happened in sentences, the heat map, and the p99 of its hosts.

    \b
    Examples:
      tailboard card ./cbt-archive -o card.png
      tailboard card --run nightly-42 --where op=read -o nightly-42.svg

    The sentences are those of tailboard explain, the three that account for most. Strips show the hosts with the highest p99, at
    most six; where a window has too few samples for a p99, its maximum. Times are those of the sentences, seconds since the
    start of the run (--time changes the axis).
    """
    from ingest.cli.shared.answers import in_range, one_axis
    from ingest.cli.shared.sources import opened
    from ingest.query.findings.story import story
    from ingest.query.lags import answered
    from ingest.view.card import card_picture
    from ingest.view.pictures import drawn

    question = asked(options, "auto")
    by_host = replace(question, by=("host",))
    with opened(sources, options) as origin:
        windows = in_range(answered(origin, replace(question, by=())), question)
        hosts, whole = answered(origin, by_host), answered(origin, replace(by_host, step="all"))
        told = story(origin, question)
    one_axis(windows)
    clock = clock_of(windows, replace(options, time_base=options.time_base or "elapsed"))  # as the sentences have it
    warn(windows)
    picture = drawn(card_picture(told, whole, windows, hosts, clock), _form(options.output), scale=1)
    if options.output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(picture)
        return
    write_whole(options.output, picture)
    say(f"wrote {options.output} ({len(picture) / 1000:,.0f} kB)")


def _form(output: str) -> str:
    return "svg" if output.endswith(".svg") else "png"
