"""What `-o` of compare and trend writes: a page with all that it shows, asked for once and regrouped."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ingest.cli.shared.help import file_names
from ingest.cli.shared.output import write_whole
from ingest.cli.shared.say import say
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.core.ranks import Percentile
    from ingest.query.compare import Pair, Sides
    from ingest.query.question import Answer
    from ingest.view.page.finished.compare import Compared

page_option = click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=file_names,
    help="Write an HTML page that opens offline, in place of the table; - for stdout.",
)


def written(html: str, output: str) -> None:
    """Write a page to a file, or to stdout; InputError where it cannot be written."""
    if output == "-":
        sys.stdout.write(html)
        return
    write_whole(output, html)
    say(f"wrote {output} ({len(html.encode()) / 1e6:.1f} MB, opens offline)")


def compared(
    pair: Pair, answers: tuple[Answer, Answer], windows: Sides, percentiles: Sequence[Percentile], *, unlike: bool
) -> Compared:
    """Return what the page of a comparison is made of: `pair` was asked for, `answers` and `windows` are by all of its labels."""
    from ingest.query.groupings import APART, grouped, groupings, is_lag
    from ingest.view.page.finished.compare import Compared

    baseline, run = answers

    def by(labels: Sequence[str]) -> Pair:
        return grouped(baseline, run, labels, windows, unlike=unlike, same_within=pair.same_within)

    whole = None if is_lag(baseline, run) else by([name for name in pair.by if name in APART])
    movers = [by(labels) for labels in groupings(baseline, run, pair.by)]
    return Compared(whole, movers, over_time(pair), percentiles)


def over_time(pair: Pair) -> Pair | None:
    """Return both runs over time in windows of one width; None for several runs or kinds a side, as no map is common to them."""
    from ingest.query.compare import Pair, kinds_of
    from ingest.query.regrouped import regrouped
    from ingest.query.steps import widened

    if any(len(side) != 1 for side in pair.windows) or any(len(kinds_of(side)) > 1 for side in (pair.baseline, pair.run)):
        return None
    answers = [regrouped(side[0], ()) for side in pair.windows]
    step = math.lcm(*(answer.step_ns for answer in answers))
    first, second = (replace(answer, parts=tuple(widened(answer.parts, step)), step_ns=step) for answer in answers)
    return Pair(first, second)


def beside_page(form: str | None, output: str | None) -> str | None:
    """Return what goes to stdout: the format that was asked for, else a table where no page is; UsageError for two on stdout."""
    if form and output == "-":
        raise UsageError("-o - writes the page to stdout: leave out --format")
    return form or (None if output else "table")
