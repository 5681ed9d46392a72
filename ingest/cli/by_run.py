"""Runs that are asked one at a time, for the commands that set them side by side: compare, trend and capacity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.api.sides import named, opened_each
from ingest.api.words import in_columns, share
from ingest.cli.answers import PICTURES, asked, print_rows
from ingest.cli.completion import label_names
from ingest.cli.options import BEGIN_OF_EACH, UNIT, Asking, formats, option, read_options
from ingest.cli.output import Progress
from ingest.cli.sources import split_sources
from ingest.core.errors import InputError, UsageError, choices
from ingest.core.labels import run_matches
from ingest.core.units import UNITS_NS

if TYPE_CHECKING:
    from ingest.query.origin import Origin
    from ingest.query.question import Answer, Question
    from ingest.query.table import Table

    Ask = Callable[[Question], Answer]

REGRESSED = 1


class EachRun(Asking):
    """The question about each run, and the use of its answer; `printed` is the format of the output, if given."""

    runs: tuple[str, ...] = ()
    by: str = option(
        "--by",
        metavar="LABELS",
        shell_complete=label_names,
        default="",
        help="One group for each value of these labels: host,op,job,kind,volume,... or a setting.",
    )
    begin: str | None = BEGIN_OF_EACH
    merge_runs: bool = False
    unit: str = UNIT
    printed: str | None = formats("table", "csv", "ndjson", "markdown", *PICTURES, show_default="table; with -o nothing")
    output: str | None = option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write an HTML page that opens offline, in place of the table (- for stdout); or .csv, .json ...",
    )


def chosen(asks: Mapping[str, Ask], globs: tuple[str, ...]) -> list[str]:
    """Return the runs that match one of the globs, all without any; InputError where there is none."""
    names = [name for name in asks if run_matches(name, globs)]
    if not names:
        raise InputError(f"no run matches {' '.join(globs)}: {choices(globs[0], sorted(asks))}")
    return names


@contextmanager
def opened_origins(options: EachRun) -> Iterator[Mapping[str, Origin]]:
    """Give the store or the files that hold each run.

    Several paths are a run each, named after the path; an archive of many is that many.
    """
    store, paths = split_sources(options.sources)
    if options.attribution != "completion":
        raise UsageError("bounds count whole I/Os, in-flight weights are shares of them: leave out --attribution")
    if store:
        with opened_each(store, (), read_options(options)) as origins:
            yield origins
        return
    with Progress("reading") as bar, opened_each("", named(paths), read_options(options), options.jobs, bar) as origins:
        yield origins


def question_of(options: EachRun, columns: Sequence[str]) -> Question:
    """Return the question about each run: kinds chosen by a pattern are distinguished.

    UsageError for labels that cannot be.
    """
    question = replace(asked(options, "all"), runs=(), merge_runs=False)
    for name in question.by:
        if name in columns:
            raise UsageError(f"--by {name}: {name} is a column of the answer already")
    if "run" in question.where:
        raise UsageError("runs are chosen with --run, not with --where run=...")
    return in_columns(question)


def ratio_limit(text: str | None) -> float:
    """Return the ratio of --fail-above, infinite without one; UsageError if it is no number above 0."""
    if text is None:
        return math.inf
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise UsageError(f"--fail-above takes a ratio such as 1.2, not {text!r}")
    return limit


def least_ratio(text: str, name_of_option: str) -> float:
    """Return the ratio that a share such as 10% makes; UsageError if the text is none."""
    if not 0 <= share(text) <= 100:
        raise UsageError(f"{name_of_option} takes a share such as 10%, not {text!r}")
    return 1 + share(text)


def beside_page(options: EachRun) -> str | None:
    """Return what goes to stdout: the format that was asked for, else a table where no page is; UsageError for two on stdout."""
    if options.printed and options.output == "-":
        raise UsageError("-o - writes the page to stdout: leave out --format")
    return options.printed or (None if options.output else "table")


def write_rows(table: Table, form: str, unit: str, latencies: Sequence[str], stamp: Callable[[int], str] = str) -> None:
    """Print a table as csv or ndjson, the named columns in a unit and all others as they are."""
    scale = UNITS_NS[unit]
    columns = {name: column / scale if name in latencies and scale > 1 else column for name, column in table.columns.items()}
    print_rows(replace(table, columns=columns), form, stamp)
