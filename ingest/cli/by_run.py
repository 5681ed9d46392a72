"""Runs that are asked one at a time, for the commands that set them side by side: compare, trend and capacity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.cli.answers import PICTURES, asked, in_columns, print_rows
from ingest.cli.completion import label_names
from ingest.cli.options import BEGIN_OF_EACH, UNIT, Asking, formats, option, read_options, share
from ingest.cli.output import Progress
from ingest.cli.sources import knowing_runs, saying_why, split_sources
from ingest.core.errors import InputError, StoreError, UsageError, choices, listed
from ingest.core.labels import run_matches
from ingest.core.units import UNITS_NS
from ingest.read.placement import undated_part_of

if TYPE_CHECKING:
    from ingest.core.labels import RunLabels
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


def matching(names: Iterable[str], glob: str) -> list[str]:
    """Return the run that is called so, else those that a glob matches."""
    names = list(names)
    return [name for name in names if name == glob] or [name for name in names if run_matches(name, (glob,))]


def chosen(asks: Mapping[str, Ask], globs: tuple[str, ...]) -> list[str]:
    """Return the runs that match one of the globs, all without any; InputError where there is none."""
    names = [name for name in asks if run_matches(name, globs)]
    if not names:
        raise InputError(f"no run matches {' '.join(globs)}: {choices(globs[0], sorted(asks))}")
    return names


@contextmanager
def opened_runs(options: EachRun) -> Iterator[tuple[Mapping[str, Ask], RunLabels]]:
    """Give what answers questions about each run of a store or of files, and the runs' labels."""
    with opened_origins(options) as origins:
        yield asks_of(origins), labels_of(origins)


def asks_of(origins: Mapping[str, Origin]) -> dict[str, Ask]:
    """Return what answers questions about each run; where its warm-up is left out, that is looked for once."""
    known: dict[str, Question] = {}

    def ask(run: str, question: Question) -> Answer:
        if question.unsettled:
            from ingest.query.plan import settled

            known[run] = known.get(run) or settled(origins[run], question)
            question = replace(question, begin=known[run].begin)
        return origins[run].answer(question)

    return {run: partial(ask, run) for run in origins}


def labels_of(origins: Mapping[str, Origin]) -> RunLabels:
    """Return the labels of runs."""
    labels: dict[str, Mapping[str, str]] = {}
    for origin in dict.fromkeys(origins.values()):
        labels |= {record.run: record.labels for record in origin.runs()}
    return labels


@contextmanager
def opened_origins(options: EachRun) -> Iterator[Mapping[str, Origin]]:
    """Give the store or the files that hold each run.

    Several paths are a run each, named after the path; an archive of many is that many.
    """
    stores, paths = split_sources(options.sources)
    if options.attribution != "completion":
        raise UsageError("bounds count whole I/Os, in-flight weights are shares of them: leave out --attribution")
    if stores:
        from ingest.store import open_store

        with open_store(stores[0]) as store, knowing_runs(store), saying_why([store]):
            records = store.runs()
            if not records:
                raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
            yield {record.run: store for record in records}
        return
    from ingest.query.files import Files

    reading = read_options(options)
    with Progress("reading") as bar:
        known: dict[str, Origin] = {}
        for path, name in named(paths):
            files = Files([path], replace(reading, run=name), options.jobs, bar)
            for run in files.run_names:
                if run in known:
                    raise UsageError(f"two sources hold a run {run}: load them with --run into a store to tell them apart")
                known[run] = files
        with saying_why(dict.fromkeys(known.values())):
            yield known


def named(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each path with what its run is to be called: nothing for a path alone, whose files name it."""
    if len(paths) == 1:
        return [(paths[0], "")]
    short = [path.resolve().name if path.is_dir() else path.name.split(".", maxsplit=1)[0] for path in paths]
    times = Counter(short)
    return [(path, name if times[name] == 1 else str(path)) for path, name in zip(paths, short, strict=True)]


def undated_beside(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """Return the sentence about logs without a start time of the runs that are taken: they are runs of their own."""
    left = sorted(name for name in names if name not in taken and undated_part_of(name) in taken)
    return (f"not in it: {listed(left)}, logs without a start time beside dated ones",) if left else ()


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
