"""heatmap: samples by window and latency, as bins, as rows of a map, and drawn."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from ingest.api.words import globs, in_columns, one_axis
from ingest.cli import options as shared
from ingest.cli.answers import PICTURES, answered, asked, clock_of, stamp_of, write, write_picture
from ingest.cli.output import say
from ingest.core.errors import UsageError
from ingest.core.units import parse_duration, split_range

if TYPE_CHECKING:
    from ingest.query.heatmap import Rows
    from ingest.query.question import Answer
    from ingest.view.terminal.heatmap import Asked

SHARE = re.compile(r"^\d{1,3}(\.\d{1,9})?%?$")
MOST_ROWS, MOST_COLUMNS = 100_000, 1_000_000
TALLEST = 200
FINE_WINDOWS = 8


class Options(shared.Asking, shared.Showing):
    """What a call of heatmap says."""

    step: str = shared.STEP
    force: bool = shared.FORCE
    latency: str | None = shared.option(
        "--latency", metavar="A..B", help="Only this range of latencies, in rows as fine as the bins: 1ms..20ms, ..5ms, 1s.."
    )
    most_rows: int | None = shared.option(
        "--rows", type=click.IntRange(1, MOST_ROWS), help="Highest number of rows; with a linear axis the exact number."
    )
    axis: str = shared.option(
        "--axis",
        choices=["log", "linear"],
        help="log: rows made of whole bins; linear: rows of equal height, counts spread by overlap.",
    )
    drop: str | None = shared.option(
        "--drop", metavar="0.1%", help="Show this share of the highest samples in one row above the map."
    )
    columns: int | None = shared.option(
        "--columns", type=click.IntRange(1, MOST_COLUMNS), help="Number of columns of equal width; counts are spread by overlap."
    )
    highlight: tuple[str, ...] = shared.option(
        "--highlight", metavar="K=GLOB", help="Mark data whose label K matches in a colour of its own."
    )
    shading: str = shared.option(
        "--shading",
        choices=["rank", "linear", "exponent"],
        help="Darkness of a cell: by rank among the different counts, in proportion to its count, or to its square root.",
    )
    time_base: str | None = shared.TIME_BASE
    format: str = shared.MAP_FORMAT
    unit: str = shared.UNIT


@shared.command(Options)
def heatmap(options: Options) -> None:
    """Show a latency heat map, or the counts by time window and latency that it is drawn from.

    \b
    Examples:
      tailboard show heatmap ./cbt-archive --step 1s --where op=read --format csv
      tailboard show heatmap --run nightly-42 --by host --format ndjson
      tailboard show heatmap ./cbt-archive --drop 0.1% --axis linear
      tailboard show heatmap ./cbt-archive --latency 1ms..20ms --rows 60
      tailboard show heatmap ./cbt-archive --highlight host=ceph-b --format png > ceph-b.png

    csv and ndjson have one row per window, group and occupied bin: start,end, the --by labels, lower,upper (in --unit), count.
    With --rows, --latency, --axis linear, --columns, --drop or --highlight they have one row per cell of the map, with the
    columns highlighted (part of count) and over (1: the samples that --drop left out). The table is a map in colours, as wide
    as the terminal, or in letters where the terminal has no colours.
    """
    rows = _rows(options)
    answer, lit = _answers(options)
    form = options.format
    if form in PICTURES:
        from ingest.view.pictures import heatmap_picture

        one_axis(answer)
        write_picture(heatmap_picture(answer, clock_of(answer, options), _asked(rows, lit, options)), answer, options)
        return
    if form == "table":
        from ingest.query.precision import precision_from
        from ingest.view.terminal.heatmap import print_heatmap
        from ingest.view.terminal.tables import heading

        one_axis(answer)
        lines = heading(answer, "heat map", precision_from(answer.parts))
        print_heatmap(answer, lines, stamp_of(answer, options), _asked(rows, lit, options))
        return
    from ingest.query.heatmap import cells
    from ingest.query.heatmap import heatmap as bins_of
    from ingest.view.terminal.heatmap import notes_of

    if rows is None and lit is None and not options.columns:
        write(bins_of(answer), answer, options, "heat map")
        return
    heat_map = cells(answer, rows, lit, options.columns or 0)
    write(heat_map.table(dropped=bool(options.drop)), answer, options, "heat map")
    for line in notes_of(heat_map):
        say(line)


def _answers(options: Options) -> tuple[Answer, Answer | None]:
    """Return the answer, and the part of it that is highlighted."""
    from ingest.query.heatmap import split, with_labels

    question = in_columns(asked(options, options.step, force=options.force), options.format)
    if options.columns:
        if question.step == "all":
            raise UsageError("--columns: with --step all there is one window, of the whole range")
        question = replace(question, windows=max(question.windows, FINE_WINDOWS * options.columns))
    chosen = globs(options.highlight, "--highlight")
    if not chosen:
        return answered(options, question), None
    return split(answered(options, with_labels(question, chosen)), question, chosen)


def _rows(options: Options) -> Rows | None:
    """Return the rows that are asked for; None where nothing is said of them."""
    from ingest.query.heatmap import Rows

    low, high = _range(options.latency)
    drop = _share(options.drop)
    if drop and high:
        raise UsageError("--drop and the end of --latency both say where the map ends: give one of them")
    rows = Rows(options.axis, low, high, options.most_rows or 0, drop=drop)
    return None if rows == Rows() else rows


def _asked(rows: Rows | None, lit: Answer | None, options: Options) -> Asked:
    """Return the options of the map: eight rows an octave by default."""
    from ingest.query.heatmap import Rows
    from ingest.view.terminal.heatmap import EIGHTHS, Asked

    rows, room = rows or Rows(), EIGHTHS.most if options.format == "table" else TALLEST
    if rows.axis == "linear":
        drawn = replace(rows, most=rows.most or (room if options.format == "table" else 0))
    elif rows.most or rows.low_ns or rows.high_ns:
        drawn = replace(rows, most=rows.most or room)
    else:
        drawn = replace(rows, octave=EIGHTHS.octave, most=room)
    return Asked(drawn, options.columns or 0, options.shading, lit, ", ".join(options.highlight))


def _range(text: str | None) -> tuple[int, int]:
    """Return the range in ns, 0 where an end is open; UsageError unless it is A..B."""
    if not text:
        return 0, 0
    ends = split_range(text)
    if ends in (None, ("", "")):
        raise UsageError(f"--latency takes a range such as 1ms..20ms, ..5ms or 1s.., not {text!r}")
    low, high = (parse_duration(part, zero=True) if part else 0 for part in ends or ())
    if high and low >= high:
        raise UsageError(f"--latency {text}: it ends before it begins")
    return low, high


def _share(text: str | None) -> Fraction:
    """Return the share that is dropped; UsageError unless it is above 0 and below 100 %."""
    if not text:
        return Fraction(0)
    share = Fraction(text.removesuffix("%")) / (100 if text.endswith("%") else 1) if SHARE.match(text) else Fraction(0)
    if not 0 < share < 1:
        raise UsageError(f"--drop takes a share such as 0.1%, not {text!r}")
    return share
