"""compare --at: one run against itself, before and after a mark, or outside and during it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ingest.cli.shared.by_run import opened_origins, opened_runs
from ingest.cli.shared.marks import read_all
from ingest.cli.shared.options import marks_for
from ingest.core.errors import InputError, UsageError, listed
from ingest.core.nearest import choices

if TYPE_CHECKING:
    from ingest.cli.compare import Options
    from ingest.cli.shared.by_run import Ask
    from ingest.core.series import RunLabels
    from ingest.query.question import Question

at_option = click.option(
    "--at",
    metavar="MARK",
    help="Compare a run with itself: what lies after marks with this text (a glob) with what lies before; of marks with an end, "
    "what lies during them with the rest.",
)
marks_option = marks_for("File of marks for --at, beside those of the store; may be repeated.")


@contextmanager
def opened_sides(sources: tuple[str, ...], options: Options, question: Question) -> Iterator[tuple[Mapping[str, Ask], RunLabels]]:
    """Give what answers about each run, and the runs' labels; with --at about both sides of a run, the baseline first.

    UsageError where the words of the call do not go together, InputError where the run or the mark is not there.
    """
    if options.at is None:
        if options.baseline is None or options.run is None:
            raise UsageError("compare takes two runs, --baseline GLOB and --run GLOB; or one run and a mark of it, --at MARK")
        if options.marks:
            raise UsageError("--marks are for --at MARK, which compares a run with itself")
        with opened_runs(sources, options) as runs:
            yield runs
        return
    if options.baseline is not None or options.merge_runs:
        raise UsageError("--at compares a run with itself: leave out --baseline and --merge-runs")
    from ingest.core.series import run_matches
    from ingest.query.phases import sides_of

    given = read_all(options.marks)
    with opened_origins(sources, options) as origins:
        glob = options.run or "*"
        names = [run for run in origins if run == glob] or [run for run in origins if run_matches(run, (glob,))]
        if not names:
            raise InputError(f"--run {glob} matches no run: {choices(glob, sorted(origins))}")
        if len(names) > 1:
            raise UsageError(f"--at takes one run, here are {len(names)} ({listed(sorted(names))}): name it with --run")
        origin = origins[names[0]]
        sides = sides_of(origin, names[0], options.at, question, given)
        yield {side.name: side.ask(origin.answer) for side in sides}, {side.name: {} for side in sides}
