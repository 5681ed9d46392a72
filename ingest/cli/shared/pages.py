"""What `-o` of compare and trend writes: a page with all that it shows, asked for once and regrouped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ingest.cli.shared.output import write_whole
from ingest.cli.shared.say import say
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.core.ranks import Percentile
    from ingest.query.compare import Pair
    from ingest.query.question import Answer, Question
    from ingest.view.page.finished.compare import Compared

    Ask = Callable[[Question], Answer]

page_option = click.option(
    "-o", "--output", metavar="FILE", help="Write an HTML page that opens offline, in place of the table; - for stdout."
)


def written(html: str, output: str) -> None:
    """Write a page to a file, or to stdout; InputError where it cannot be written."""
    if output == "-":
        sys.stdout.write(html)
        return
    write_whole(output, html)
    say(f"wrote {output} ({len(html.encode()) / 1e6:.1f} MB, opens offline)")


def compared(
    baseline: Answer, run: Answer, by: Sequence[str], percentiles: Sequence[Percentile], windows: Pair | None, *, unlike: bool
) -> Compared:
    """Return what the page of a comparison is made of, from answers by all of its labels."""
    from ingest.query.groupings import APART, grouped, groupings, is_lag
    from ingest.view.page.finished.compare import Compared

    whole = None if is_lag(baseline, run) else grouped(baseline, run, [name for name in by if name in APART], unlike=unlike)
    movers = [grouped(baseline, run, labels, unlike=unlike) for labels in groupings(baseline, run, by)]
    return Compared(whole, movers, windows, percentiles)


def over_time(asks: Sequence[Ask], question: Question, pair: Pair) -> Pair | None:
    """Return both runs over time in windows of one width; None for several runs or kinds a side, which have no one heat map.

    Each of `asks` answers about one run.
    """
    from ingest.query.compare import Pair, kinds_of
    from ingest.query.lags import asked_weighed
    from ingest.query.question import AUTO
    from ingest.query.steps import widened

    if len(asks) != 2 or any(len(kinds_of(side)) > 1 for side in (pair.baseline, pair.run)):
        return None
    asked = replace(question, step=AUTO, by=())
    found = [asked_weighed(ask, asked) for ask in asks]
    step = math.lcm(*(answer.step_ns for answer in found))
    first, second = (replace(answer, parts=tuple(widened(answer.parts, step)), step_ns=step) for answer in found)
    return Pair(first, second)


def beside_page(form: str | None, output: str | None) -> str | None:
    """Return what goes to stdout: the format that was asked for, else a table where no page is; UsageError for two on stdout."""
    if form and output == "-":
        raise UsageError("-o - writes the page to stdout: leave out --format")
    return form or (None if output else "table")
