"""compare: two runs side by side, and which parts of them moved."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.api.sides import SIDES, ChosenSides, asks_of, chosen_sides, labels_of, matching, named, side_by_side
from ingest.cli import by_run
from ingest.cli.answers import PICTURES, settled_in, write_picture
from ingest.cli.completion import run_names
from ingest.cli.options import WANTED, Showing, command, marks_for, option, read_options
from ingest.cli.output import say, verdict_stands, write_page
from ingest.cli.sources import marks_of, split_sources
from ingest.core.errors import InputError, UsageError, choices, listed
from ingest.core.units import figure, number
from ingest.query.origin import store_at

if TYPE_CHECKING:
    from ingest.api.sides import Ask
    from ingest.core.breaths import StoredBreaths
    from ingest.query.compare import Pair
    from ingest.query.question import Question
    from ingest.query.table import Table
    from ingest.view.page.finished import Panel


class Options(by_run.EachRun):
    """What a call of compare says."""

    baseline: str | None = option(
        "--baseline",
        metavar="GLOB",
        shell_complete=run_names,
        help="Run to compare with; of several runs those that match one of --run.",
    )
    run: str | None = option("--run", metavar="GLOB", shell_complete=run_names, help="Run to judge, in the same way.")
    at: str | None = option(
        "--at",
        metavar="MARK",
        help="Compare a run with itself: what lies after marks with this text (a glob) with what lies before; of marks with an "
        "end, what lies during them with the rest.",
    )
    marks: tuple[Path, ...] = marks_for("File of marks for --at, beside those of the store; may be repeated.")
    wanted: str = WANTED
    shifts: bool = option("--shifts", help="Use percentiles at every halving of 1-q: shows how the distributions differ.")
    same_within: str = option(
        "--same-within", default="5%", metavar="SHARE", help="Largest difference that still counts as the same."
    )
    merge_runs: bool = option("--merge-runs", help="Merge the runs of each side where its glob matches several.")
    unlike_kinds: bool = option("--unlike-kinds", help="Compare even where the two runs hold different kinds of latency.")
    fail_above: str | None = option(
        "--fail-above", metavar="RATIO", help="Exit with status 1 if a ratio is above this (95 % confidence), such as 1.2."
    )


@command(Options)
def compare(options: Options) -> int:
    """Compare two runs: percentiles side by side, their ratio with bounds, and which parts changed most.

    \b
    Examples:
      tailboard compare --baseline nightly-41 --run nightly-42 --by host,op
      tailboard compare ./good ./bad -p 99,99.9 --fail-above 1.2
      tailboard compare --baseline nightly-41 --run nightly-42 --by job -o compare.html
      tailboard compare --run nightly-42 --at 'cache on'

    Of several paths each is a run, named after the path. Where both globs match several runs (archives of CBT), runs with the
    same path below their archives are compared in pairs, with a label `permutation`. csv and ndjson have the --by labels, then
    percentile,baseline,run,ratio,lo,hi,count_baseline,count_run,verdict, largest effect first: baseline and run in --unit (ns),
    lo and hi the bounds of the ratio (95 % confidence for all rows together), verdict slower, faster, same or cannot tell; then
    failed_baseline,failed_run, the shares that failed, failed_lo,failed_hi, the bounds of the difference, and failed_verdict
    more, fewer, same, cannot tell, or empty where none failed.
    Bounds come from whole windows; of three runs a side or more from the spread between runs. A cell is empty where there is
    too little data.
    """
    from ingest.core.quantiles import parse_percentiles
    from ingest.query.compare import COLUMNS, halvings, is_lag
    from ingest.query.compare import compare as rows_of

    limit, percentiles = by_run.ratio_limit(options.fail_above), parse_percentiles(options.wanted)
    same_within = by_run.least_ratio(options.same_within, "--same-within")
    options = sides_named(options)
    output, form = options.output, by_run.beside_page(options)
    question = by_run.question_of(options, COLUMNS)
    opens = bool(output) or form == "table"  # with a verdict that names operation and host
    with opened_sides(options, question) as (asks, sides):
        both = side_by_side(asks, sides, question, unlike=options.unlike_kinds, same_within=same_within, opens=opens)
    pair, windows = both.pair, both.windows
    table = rows_of(pair, halvings(pair) if options.shifts else percentiles)
    status, sentences = _judged(table, limit)
    content = None
    if opens:
        from ingest.view.page.compare import compared

        content = compared(pair, both.answers, windows, percentiles, unlike=options.unlike_kinds)
    if output and content:
        from ingest.view.page.compare import compare_page

        more = _breath_panels(options, sides.names, question) if is_lag(*both.answers) and not options.at else []
        calm = [f"No ratio is certain to be above {number(limit)} times the baseline."] if limit < math.inf else []
        write_page(compare_page(content, pair, sentences or calm, bad=bool(status), more=more), output)
    if form:
        with verdict_stands():
            said = content.opening(pair) if content else []
            _write(pair, table, said, Showing(format=form, unit=options.unit))
    for line in sentences:
        say(line)
    return status


def sides_named(options: Options) -> Options:
    """Return the options of `compare A B`: A is the baseline and B the run, two paths, or two runs of a store."""
    stores = [word for word in options.sources if store_at(word)]
    words = [word for word in options.sources if word not in stores]
    if len(words) != 2 or "-" in words or options.at or options.baseline or options.run:
        return options
    if not any(map(os.path.lexists, words)):
        return options.but(sources=tuple(stores), baseline=words[0], run=words[1])
    from ingest.query.question import literal

    names = [literal(name) for _, name in named([Path(word) for word in words])]
    return options.but(baseline=names[0], run=names[1])


@contextmanager
def opened_sides(options: Options, question: Question) -> Iterator[tuple[Mapping[str, Ask], ChosenSides]]:
    """Give what answers about each run, and the runs that are compared; with --at about both sides of a run, the baseline first.

    UsageError where the words of the call do not go together, InputError where the run or the mark is not there.
    """
    if options.at is None:
        if options.baseline is None or options.run is None:
            raise UsageError("compare takes two runs, as in compare A B, or --baseline GLOB --run GLOB; or one run and --at MARK")
        if options.marks:
            raise UsageError("--marks are for --at MARK, which compares a run with itself")
        with by_run.opened_origins(options) as origins:
            asks, labels = asks_of(origins), labels_of(origins)
            first, second = (_matching(asks, f"--{side}", str(getattr(options, side))) for side in SIDES)
            called = f"--baseline {options.baseline}", f"--run {options.run}"
            yield asks, chosen_sides((first, second), labels, called, merge=options.merge_runs)
        return
    if options.baseline is not None or options.merge_runs:
        raise UsageError("--at compares a run with itself: leave out --baseline and --merge-runs")
    from ingest.query.compare import sides_of

    given = marks_of(options.marks)
    with by_run.opened_origins(options) as origins:
        glob = options.run or "*"
        names = _matching(origins, "--run", glob)
        if len(names) > 1:
            raise UsageError(f"--at takes one run, here are {len(names)} ({listed(sorted(names))}): name it with --run")
        origin = origins[names[0]]
        before, after = sides_of(origin, names[0], options.at, settled_in(origin, question.about(names)), given)
        yield {side.name: side.ask(origin.answer) for side in (before, after)}, ChosenSides(([before.name], [after.name]))


def _matching(names: Iterable[str], option: str, glob: str) -> list[str]:
    """Return the runs that an option names; InputError where there is none."""
    if found := matching(names, glob):
        return found
    raise InputError(f"{option} {glob} matches no run: {choices(glob, sorted(names))}")


def _write(pair: Pair, table: Table, said: Sequence[str], showing: Showing) -> None:
    from ingest.view.terminal import comparison

    form = showing.format
    if form == "table":
        comparison.print_comparison(pair, table, said)
        return
    if form in PICTURES:
        noted = replace(pair.run, warnings=tuple(comparison.notes(pair, table)))
        from ingest.view.page.compare import over_time

        write_picture(comparison.comparison_picture(pair, over_time(pair)), noted, showing)
        return
    for line in (*filter(None, [comparison.largest_excess(pair)]), *comparison.notes(pair, table)):
        say(line)
    by_run.write_rows(table, form, showing.unit, ("baseline", "run"))


def _judged(table: Table, limit: float) -> tuple[int, list[str]]:
    """Return the exit status, 1 where the lower bound of a ratio is above the limit, and what to say; up to five are named."""
    if limit == math.inf:
        return 0, []
    from ingest.view.terminal.comparison import row_name

    low, ratio = table.columns["lo"], table.columns["ratio"]
    above = [row for row in range(len(table)) if low[row] > limit]
    if above:
        said = (
            f"{row_name(table, row)} is {figure(ratio[row])} times the baseline, at least {figure(low[row])}" for row in above
        )
        return by_run.REGRESSED, [f"above {number(limit)}: {listed(said)}"]
    known = (low == low).any()  # noqa: PLR0124  # NaN is unlike itself
    return 0, [] if known else ["cannot tell: no ratio here has a lower bound, so nothing was judged"]


def _breath_panels(options: Options, sides: Sequence[Sequence[str]], question: Question) -> list[Panel]:
    """Return the panel of Snabb's breaths of two sides (names of runs), for the page; none unless both have timelines."""
    from ingest.query.breaths import from_files, together
    from ingest.query.files import Files
    from ingest.store import open_store
    from ingest.store.capabilities import breaths_from_store
    from ingest.view.page.compare import breath_panel

    store_url, paths = split_sources(options.sources)

    def kept(asked: Question) -> StoredBreaths:
        if store_url:
            with open_store(store_url) as store:
                return breaths_from_store(store, asked)
        reading = read_options(options)
        files = (Files([path], replace(reading, run=name), options.jobs) for path, name in named(paths))
        return together([from_files(each, asked) for each in files])

    panel = breath_panel(*(together([kept(question.about([name])) for name in names]) for names in sides))
    return [panel] if panel else []
