"""card: one picture of a run for a chat or a paper."""

from __future__ import annotations

from dataclasses import replace

from ingest.api.output import write_whole
from ingest.api.words import in_range, one_axis
from ingest.cli.answers import asked, clock_of, warn
from ingest.cli.options import TIME_BASE, Asking, Showing, command, option
from ingest.cli.output import print_bytes, say
from ingest.cli.sources import opened


class Options(Asking, Showing):
    """What a call of card says."""

    output: str = option(
        "-o", "--output", default="card.png", metavar="FILE", help="File to write, .png or .svg; - for a png on stdout."
    )
    format: str = "png"
    time_base: str | None = TIME_BASE


@command(Options)
def card(options: Options) -> None:
    """Draw one picture of a run, 1200 x 630: what happened in sentences, the heat map, and the p99 of its hosts.

    \b
    Examples:
      tailboard report --card ./cbt-archive -o card.png
      tailboard report --card --run nightly-42 --where op=read -o nightly-42.svg

    The sentences are those of tailboard explain, the three that account for most. Strips show the hosts with the highest p99, at
    most six; where a window has too few samples for a p99, its maximum. The axis is in UTC, as the times of the
    sentences are (--time changes the axis).
    """
    from ingest.query.lags import answered
    from ingest.query.plan import settled
    from ingest.query.story.story import story
    from ingest.view.card import card_picture
    from ingest.view.pictures import drawn

    question = asked(options, "auto")
    with opened(options) as origin:
        question = settled(origin, question)
        by_host = replace(question, by=("host",))
        windows = in_range(answered(origin, replace(question, by=())), question)
        hosts, whole = answered(origin, by_host), answered(origin, replace(by_host, step="all"))
        told = story(origin, question)
    one_axis(windows)
    clock = clock_of(windows, options)
    warn(windows)
    form = "svg" if options.output.endswith(".svg") else "png"
    picture = drawn(card_picture(told, whole, windows, hosts, clock), form, scale=1)
    if options.output == "-":
        print_bytes(picture)
        return
    write_whole(options.output, picture)
    say(f"wrote {options.output} ({len(picture) / 1000:,.0f} kB)")
