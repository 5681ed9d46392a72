"""offsets: when within each second, minute, hour or day things happened."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.help import Command, file_names
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.query.offsets.counts import Wanted
    from ingest.query.offsets.map import OffsetMap

PICTURES = ("png", "svg")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking, shared.Showing):
    """What a call of offsets says."""

    period: str
    rows: int
    highlight: tuple[str, ...]
    scale: str


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@click.option("--period", default="1s", show_default=True, metavar="P", help="Time that a column spans: 100ms, 1s, 1m, 1h, 1d.")
@click.option(
    "--rows",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    help="Number of rows that a period is divided into.",
)
@shared.selecting_options
@shared.map_options(
    "--scale",
    "Draw data whose label K matches in a colour of its own.",
    shades=("rank", "linear"),
    hues="Darkness of a cell: by rank among the different counts, or in proportion to its count.",
)
@shared.reading_options
@shared.typed(Options)
def offsets(sources: tuple[str, ...], options: Options) -> None:
    """Show when within each second (minute, hour, day) operations happened.

    \b
    Examples:
      tailboard offsets ./fio-logs
      tailboard offsets out.perf --where process=java --where process=riak* --format png > map.png
      tailboard offsets out.perf --highlight process=backup --format svg > map.svg
      tailboard offsets --run nightly-42 --where 'host!=ceph-b' --period 1m --rows 60 --format csv

    csv and ndjson have one row per period, group and occupied row of the map: start, the --by labels,
    offset_lower,offset_upper (ns), count; with --highlight also highlighted (part of count). Of several --where (or
    --highlight) of one label one must match; with != none may match. A store keeps offsets in steps of 1 ms; files are exact.
    """
    from ingest.cli.shared.answers import stamp_of, warn

    answer = _answered(sources, options, _wanted(options))
    any_answer = cast("Any", answer)  # it has what times and warnings need, as every answer
    if options.format == "table":
        from ingest.view.terminal.offsets import heading, print_offsets

        print_offsets(answer, heading(answer), stamp_of(any_answer, options), options.scale)
        return
    if options.format in PICTURES:
        from ingest.cli.shared.answers import clock_of, write_picture
        from ingest.view.offset_tables import picture

        write_picture(
            picture(answer, options.scale, clock_of(any_answer, options), ", ".join(options.highlight)), any_answer, options
        )
        return
    from ingest.query.offsets.map import offsets as rows_of
    from ingest.view import text

    warn(any_answer)
    lines = text.csv_lines if options.format == "csv" else text.ndjson_lines
    sys.stdout.writelines(line + "\n" for line in lines(rows_of(answer), stamp_of(any_answer, options)))


def _wanted(options: Options) -> Wanted:
    """Return what a call asks for; UsageError for what cannot be."""
    from ingest.cli.shared.answers import asked
    from ingest.core.offsets import Periods
    from ingest.core.timing import parse_duration
    from ingest.query.offsets.counts import Wanted

    if options.attribution != "completion":
        raise UsageError("offsets need single events: leave out --attribution")
    isolate, exclude = _globs(options.where, "--where")
    lit, none = _globs(options.highlight, "--highlight")
    if none:
        raise UsageError("--highlight takes NAME=GLOB: leave out with --where NAME!=GLOB")
    periods = Periods(parse_duration(options.period), options.rows)
    return Wanted(asked(replace(options, where=()), "all"), periods, isolate, exclude, lit)


def _globs(texts: tuple[str, ...], option: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the globs of NAME=GLOB and those of NAME!=GLOB by name; UsageError for another text."""
    globs: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for text in texts:
        name, mark, glob = text.partition("=")
        if not mark or not name.rstrip("!"):
            raise UsageError(f"{option} takes NAME=GLOB or NAME!=GLOB, not {text!r}")
        globs[name.endswith("!")].setdefault(name.rstrip("!"), []).append(glob)
    return globs


def _answered(sources: tuple[str, ...], options: Options, wanted: Wanted) -> OffsetMap:
    """Return what files or a store answer. Of a histogram log and a raw log of the same I/Os the raw one is read.

    Where something is highlighted it is asked a second time.
    """
    from ingest.cli.shared.sources import opened
    from ingest.query.offsets.map import highlighted
    from ingest.query.origin import OFFSETS, needed

    with opened(sources, replace(options, prefer="raw")) as origin:
        ask = needed(origin, OFFSETS)
        answer = ask(replace(wanted, lit={}))
        return highlighted(answer, ask(wanted)) if wanted.lit else answer
