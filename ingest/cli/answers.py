"""Questions to files or a store, and their answers written as table, csv, ndjson or picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ingest.api import words
from ingest.api.words import in_range
from ingest.cli.options import Asking, Showing
from ingest.cli.output import print_bytes, say
from ingest.cli.sources import opened
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.core.marks import Mark
    from ingest.query.origin import Origin
    from ingest.query.question import Answer, Question
    from ingest.query.table import Table

PICTURES = ("png", "svg")
NO_CLOCK = "the start of this run is not known, so its times are elapsed; give --t0 for times of the clock"


def asked(options: Asking, step: str = "auto", *, force: bool = False) -> Question:
    """Return the question that the options of a call ask."""
    return words.asked(
        run=options.runs,
        where=options.where,
        by=options.by,
        step=step,
        from_=options.begin,
        to=options.end,
        failures=options.failures,
        merge_runs=options.merge_runs,
        force=force,
        attribution=options.attribution,
    )


def settled_in(origin: Origin, question: Question) -> Question:
    """Return the question with where the steady parts of its runs begin, which stderr says, for what makes no answer of them."""
    from ingest.query.plan import settled
    from ingest.query.question import Settled, steady_words

    question = settled(origin, question)
    runs = question.begin.runs if isinstance(question.begin, Settled) else ()
    for record in origin.runs():
        if record.run in runs:
            say(steady_words(question, record.run, record.start_ns))
    return question


def answered(asking: Asking, question: Question) -> Answer:
    """Return what files or a store answer; UsageError for a range by the clock where no run has one."""
    from ingest.query.lags import answered as answered_by

    with opened(asking) as origin:
        return in_range(answered_by(origin, question), question)


def write(table: Any, answer: Answer, showing: Showing, what: str) -> None:
    """Print a table in the format that was asked for."""
    stamp, form = stamp_of(answer, showing), showing.format
    if form == "table":
        from ingest.query.precision import precision_from
        from ingest.view.terminal.tables import heading, print_table

        bound = precision_from(answer.parts) if table.precision is None else table.precision
        print_table(table, heading(answer, what, bound), stamp, every=showing.every)
        return
    warn(answer)
    if form in ("csv", "ndjson"):
        print_rows(table, form, stamp, showing.unit)
        return
    from ingest.view.text import fiologparser_lines

    names = [name for name in table.columns if name[0] == "p" and name[1:2].isdigit() and "_" not in name]
    zero = answer.start_of if clock_of(answer, showing) == "elapsed" else 0
    sys.stdout.writelines(line + "\n" for line in fiologparser_lines(table, zero, names))


def print_rows(table: Table, form: str, *shown_as: Any) -> None:
    """Print a table as csv or ndjson; `shown_as` is the function that writes its times, and the unit of its latencies."""
    from ingest.view import text

    lines = {"csv": text.csv_lines, "ndjson": text.ndjson_lines}[form]
    sys.stdout.writelines(line + "\n" for line in lines(table, *shown_as))


def write_picture(spec: Any, answer: Answer, showing: Showing) -> None:
    """Write a filled spec as png or svg to stdout."""
    from ingest.view.pictures import drawn

    if showing.format == "png" and sys.stdout.isatty():
        raise UsageError("a png cannot be shown in a terminal: redirect it to a file, such as > picture.png")
    warn(answer)
    print_bytes(drawn(spec, showing.format))


def clock_of(answer: Answer, showing: Showing) -> str:
    """Return how times are shown: utc, local or elapsed; UsageError where a clock is asked that the run does not have."""
    base: str = showing.time_base or ("elapsed" if answer.relative else "utc")
    if base != "elapsed" and answer.relative:
        raise UsageError(NO_CLOCK)
    return base


def stamp_of(answer: Answer, showing: Showing) -> Any:
    """Return the function that writes a time as it was asked for; elapsed where only other runs of the answer have a clock."""
    from ingest.core.units import elapsed, local, utc
    from ingest.query.question import named, stamps_beside

    stamps = {"utc": utc, "local": local, "elapsed": elapsed(answer.start_of)}
    return named(stamps[clock_of(answer, showing)], stamps_beside(answer))


def warn(answer: Answer) -> None:
    """Print what a reader of the numbers must know to stderr."""
    for line in answer.warnings:
        say(line)


def drawn_marks(answer: Answer, stored: Sequence[object], marks: Sequence[Mark]) -> list[dict[str, object]]:
    """Return the marks of a picture of an answer: those of its store, those given that overlap it, where samples are missing."""
    from ingest.query.coverage import bands
    from ingest.view.page.panels.marks import Shown, chosen

    end = max(int(part.end_ns.max()) for part in answer.parts if len(part))
    runs = [Shown(run, start, end, answer.relative) for run, start in answer.run_start_ns.items() if run in answer.runs]
    drawable = chosen(runs, stored, marks)  # type: ignore[arg-type]
    for text in drawable.notes:
        say(text)
    return [dict(mark) for mark in (*drawable.marks, *bands(answer))]
