"""offsets: when within each second, minute, hour or day things happened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from ingest.api.words import globs
from ingest.cli.answers import PICTURES, asked, clock_of, print_rows, settled_in, stamp_of, warn, write_picture
from ingest.cli.options import MAP_FORMAT, TIME_BASE, Asking, Showing, command, option
from ingest.cli.sources import opened
from ingest.core.errors import UsageError
from ingest.core.units import parse_duration
from ingest.query.origin import OFFSETS, require

if TYPE_CHECKING:
    from ingest.query.offsets import WantedOffsets


class Options(Asking, Showing):
    """What a call of offsets says."""

    period: str = option("--period", default="1s", metavar="P", help="Time that a column spans: 100ms, 1s, 1m, 1h, 1d.")
    rows: int = option("--rows", type=click.IntRange(1, 1000), default=50, help="Number of rows that a period is divided into.")
    highlight: tuple[str, ...] = option(
        "--highlight", metavar="K=GLOB", help="Draw data whose label K matches in a colour of its own."
    )
    scale: str = option(
        "--scale",
        choices=["rank", "linear"],
        help="Darkness of a cell: by rank among the different counts, or in proportion to its count.",
    )
    time_base: str | None = TIME_BASE
    format: str = MAP_FORMAT


@command(Options)
def offsets(options: Options) -> None:
    """Show when within each second (minute, hour, day) operations happened.

    \b
    Examples:
      tailboard show offsets ./fio-logs
      tailboard show offsets out.perf --where process=java --where process=riak* --format png > map.png
      tailboard show offsets out.perf --highlight process=backup --format svg > map.svg
      tailboard show offsets --run nightly-42 --where 'host!=ceph-b' --period 1m --rows 60 --format csv

    csv and ndjson have one row per period, group and occupied row of the map: start, the --by labels,
    offset_lower,offset_upper (ns), count; with --highlight also highlighted (part of count). Of several --where (or
    --highlight) of one label one must match; with != none may match. A store keeps offsets in steps of 1 ms; files are exact.
    """
    from ingest.query.offsets import highlighted
    from ingest.query.offsets import offsets as rows_of

    wanted = _wanted(options)
    with opened(options.but(prefer="raw")) as origin:  # of a histogram log and a raw log of the same I/Os the raw one is read
        ask = require(origin, OFFSETS)
        wanted = replace(wanted, question=settled_in(origin, wanted.question))
        answer = ask(replace(wanted, lit={}))
        if wanted.lit:
            answer = highlighted(answer, ask(wanted))
    any_answer = cast("Any", answer)  # it has what times and warnings need, as every answer
    if options.format == "table":
        from ingest.view.terminal.offsets import heading, print_offsets

        print_offsets(answer, heading(answer), stamp_of(any_answer, options), options.scale)
        return
    if options.format in PICTURES:
        from ingest.view.pictures import picture

        drawn = picture(answer, options.scale, clock_of(any_answer, options), ", ".join(options.highlight))
        write_picture(drawn, any_answer, options)
        return
    warn(any_answer)
    print_rows(rows_of(answer), options.format, stamp_of(any_answer, options))


def _wanted(options: Options) -> WantedOffsets:
    """Return what a call asks for; UsageError for what cannot be."""
    from ingest.core.offsets import Periods
    from ingest.query.offsets import WantedOffsets

    if options.attribution != "completion":
        raise UsageError("offsets need single events: leave out --attribution")
    if options.failures != "slowest":
        raise UsageError("--failures: single events are kept without their outcome, all in one map")
    isolate, lit = globs(options.where, "--where"), globs(options.highlight, "--highlight")
    periods = Periods(parse_duration(options.period), options.rows)
    return WantedOffsets(asked(options.but(where=()), "all"), periods, isolate, lit)
