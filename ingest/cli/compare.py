"""compare: two runs side by side, and who moved."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.cli.origins import READING
from ingest.cli.pages import beside_page, compared, over_time, page_option, written
from ingest.cli.queries import PICTURES, asked, write_picture
from ingest.cli.saying import say
from ingest.cli.streams import verdict_stands
from ingest.errors import InputError, StoreError, UsageError, listed
from ingest.read.undated import undated_part_of

if TYPE_CHECKING:
    from ingest.query.compare import Pair
    from ingest.query.question import Answer, Question
    from ingest.query.sweeps import Paired
    from ingest.query.table import Table
    from ingest.series import RunLabels

    Ask = Callable[[Question], Answer]

REGRESSED = 1
SIDES = ("baseline", "run")

bounded_options = options.stacked(
    click.option("--by", metavar="LABELS", default="", help="Group by host,op,job,kind,volume,... or a setting."),
    click.option("--where", metavar="K=GLOB", multiple=True, help="Only series whose label K matches."),
    click.option("--from", "begin", metavar="T", help="From: ISO 8601, epoch s or ms, +90s (from each run's start), now-15m."),
    click.option("--to", "end", metavar="T", help="Up to, likewise."),
)
format_option = click.option(
    "--format", type=click.Choice(["table", "csv", "ndjson", *PICTURES]), show_default="table; with -o nothing"
)


@contextmanager
def opened_runs(sources: tuple[str, ...], words: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Ask], RunLabels]]:
    """Give what answers questions about each run of a store or of files, and the runs' labels.

    Several paths are a run each, named after the path; an archive of many is that many.
    """
    stores, paths = options.split_sources(sources)
    if words["attribution"] != "completion":
        raise UsageError("bounds count whole I/Os, in-flight weights are shares of them: leave out --attribution")
    if stores:
        from ingest.store import open_store

        with open_store(stores[0]) as store:
            records = store.runs()
            if not records:
                raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
            yield {record.run: store.answer for record in records}, {record.run: record.labels for record in records}
        return
    from ingest.cli.progress import Progress
    from ingest.query.files import Files

    reading = options.read_options(**{name: words[name] for name in READING})
    with Progress("reading") as bar:
        known: dict[str, Ask] = {}
        labels: dict[str, Mapping[str, str]] = {}
        for path, name in _named(paths):
            files = Files([path], replace(reading, run=name), words["jobs"], bar)
            for run in files.run_names:
                if run in known:
                    raise UsageError(f"two sources hold a run {run}: load them with --run into a store to tell them apart")
                known[run] = files.answer
            labels |= files.found.labels
        yield known, labels


def _named(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each path with what its run is to be called: nothing for a path alone, whose files tell."""
    if len(paths) == 1:
        return [(paths[0], "")]
    short = [path.resolve().name if path.is_dir() else path.name.split(".", maxsplit=1)[0] for path in paths]
    times = Counter(short)
    return [(path, name if times[name] == 1 else str(path)) for path, name in zip(paths, short, strict=True)]


def chosen(names: Sequence[str], glob: str, option: str, *, merge: bool) -> list[str]:
    """Return the one run that a glob names, all of them with `merge`; an error that lists the runs for none or several."""
    from ingest.series import run_matches

    found = [name for name in names if name == glob] or [name for name in names if run_matches(name, (glob,))]
    if not found:
        raise InputError(f"{option} {glob} matches no run; there are {listed(sorted(names))}")
    if len(found) > 1 and not merge:
        raise UsageError(f"{option} {glob} matches {len(found)} runs ({listed(sorted(found))}): name one, or say --merge-runs")
    dated = [name for name in found if undated_part_of(name) not in found]  # what is undated of a run is not added to it
    return sorted(dated if merge else found)


def pairs_among(asks: Mapping[str, Ask], labels: RunLabels, words: Mapping[str, Any]) -> Paired | None:
    """Return the pairs of runs where a side names several and they can be paired; None where a side is to be one run."""
    from ingest.query.sweeps import paired_runs
    from ingest.series import run_matches

    names = list(asks)
    globs = [str(words[side]) for side in SIDES]
    found = [[one for one in names if one == glob] or [one for one in names if run_matches(one, (glob,))] for glob in globs]
    dated = [[name for name in side if undated_part_of(name) not in side] for side in found]
    if words["merge_runs"] or not all(dated) or all(len(side) == 1 for side in found):
        return None
    return paired_runs(sorted(dated[0]), sorted(dated[1]), labels)


def pair_notes(found: Paired) -> tuple[str, ...]:
    """Return the sentences about runs that are compared pair by pair, and about those that have none like them."""
    which = "pair" if len(found.pairs) == 1 else "pairs"
    notes = [f"{len(found.pairs)} {which} of runs that are alike, compared one by one; --merge-runs adds each side up"]
    for side, runs in zip(SIDES, found.alone, strict=True):
        if runs:
            notes.append(f"not compared, since the other side has no run like it: {listed(runs)} ({side})")
    return tuple(notes)


def undated_beside(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """Return the sentence about logs without a start time of the runs that are taken: they are runs of their own."""
    left = sorted(name for name in names if name not in taken and undated_part_of(name) in taken)
    return (f"not in it: {listed(left)}, logs without a start time beside dated ones",) if left else ()


def answered(ask: Ask, run: str, question: Question) -> Answer:
    """Return the answer about one run."""
    from ingest.query.overview import literal

    exact = literal(run)
    return ask(replace(question, runs=(exact,), where={**question.where, "run": exact}))


def question_of(words: dict[str, Any], columns: Sequence[str]) -> tuple[Question, tuple[str, ...]]:
    """Return the question about each run, and the labels that were asked for: kinds chosen by a glob are told apart as well.

    UsageError for labels that cannot be.
    """
    question = asked({**words, "runs": (), "merge_runs": False}, "all")
    for name in question.by:
        if name in columns:
            raise UsageError(f"--by {name}: {name} is a column of the answer already")
    if "run" in question.where:
        raise UsageError("runs are chosen with --run, not with --where run=...")
    several = "kind" in question.where and "kind" not in question.by
    return replace(question, by=("kind", *question.by)) if several else question, question.by


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


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--baseline", required=True, metavar="GLOB", help="The run to compare with; of several those like --run's.")
@click.option("--run", "run", required=True, metavar="GLOB", help="The run to judge, likewise.")
@options.percentiles_option
@click.option("--shifts", is_flag=True, help="Percentiles at every halving of 1-q instead: how the distributions differ.")
@bounded_options
@click.option("--merge-runs", is_flag=True, help="Add up the runs of a side where its glob matches several.")
@click.option("--unlike-kinds", is_flag=True, help="Compare also where the runs hold unlike kinds of latency.")
@click.option("--fail-above", metavar="RATIO", help="Exit with 1 where a ratio is certain (95 %) to be above this, as in 1.2.")
@options.reading_options
@options.unit_option
@format_option
@page_option
def compare(sources: tuple[str, ...], **words: Any) -> int:
    """Two runs side by side: percentiles, their ratio with bounds, and who moved most.

    \b
    Examples:
      tailboard compare --baseline nightly-41 --run nightly-42 --by host,op
      tailboard compare ./good ./bad --baseline good --run bad -p 99,99.9 --fail-above 1.2
      tailboard compare --baseline nightly-41 --run nightly-42 --by job -o compare.html

    Several paths are a run each, named after the path. Where both globs name several runs (archives of CBT), those that are the
    same below their archives are compared pair by pair, under a label `permutation`. csv and ndjson have the --by labels, then
    percentile,baseline,run,ratio,lo,hi,count_baseline,count_run, largest effect first: baseline and run in --unit (ns), lo and
    hi the 95 % bounds of the ratio by order statistics. A cell is empty where there are too few samples to carry it.
    """
    from ingest.query.compare import COLUMNS, halvings, labelled, together
    from ingest.query.compare import compare as rows_of
    from ingest.query.groupings import grouped, is_lag, labels_of
    from ingest.query.sweeps import PERMUTATION
    from ingest.ranks import parse_percentiles

    limit, percentiles = ratio_limit(words["fail_above"]), parse_percentiles(words["wanted"])
    output, form = words["output"], beside_page(words["format"], words["output"])
    question, by = question_of(words, COLUMNS)
    wanted = replace(question, by=labels_of(question.by)) if output else question
    with opened_runs(sources, words) as (asks, labels):
        pairs = pairs_among(asks, labels, words)
        if pairs:
            by = (PERMUTATION, *by)
            sides = [[pair[1 + place] for pair in pairs.pairs] for place in range(2)]
            answers = [
                [labelled(answered(asks[names[place]], names[place], wanted), PERMUTATION, what) for what, *names in pairs.pairs]
                for place in range(2)
            ]
            baseline, run = map(together, answers)
        else:
            sides = [chosen(list(asks), words[side], f"--{side}", merge=words["merge_runs"]) for side in SIDES]
            if set(sides[0]) & set(sides[1]):
                raise UsageError(f"--baseline and --run both take {listed(sorted(set(sides[0]) & set(sides[1])))}")
            baseline, run = (together([answered(asks[name], name, wanted) for name in names]) for names in sides)
        pair = grouped(baseline, run, by, unlike=words["unlike_kinds"])
        told_of_pairs = pair_notes(pairs) if pairs else ()
        pair = replace(pair, notes=(*pair.notes, *told_of_pairs, *undated_beside(list(asks), [*sides[0], *sides[1]])))
        each = [partial(answered, asks[name], name) for names in sides for name in names]
        windows = over_time(each, question, pair) if output or form in PICTURES else None
    table = rows_of(pair, halvings(pair) if words["shifts"] else percentiles)
    status, told = _judged(table, limit)
    if output:
        from ingest.cli.breath_pages import breath_panels
        from ingest.view.page.compare_page import compare_page

        paths = _named(options.split_sources(sources)[1])
        more = breath_panels(sources, paths, words, sides, question) if is_lag(baseline, run) else []
        content = compared(baseline, run, by, percentiles, windows, unlike=words["unlike_kinds"])
        calm = [f"No ratio is certain to be above {limit:g} times the baseline."] if limit < math.inf else []
        written(compare_page(content, pair, told or calm, bad=bool(status), more=more), output)
    if form:
        with verdict_stands():
            _write(pair, table, windows, {**words, "format": form})
    for line in told:
        say(line)
    return status


def _write(pair: Pair, table: Table, windows: Pair | None, words: dict[str, Any]) -> None:
    from ingest.view import comparison

    form = words["format"]
    if form == "table":
        comparison.print_comparison(pair, table)
        return
    if form in PICTURES:
        told = replace(pair.run, warnings=tuple(comparison.notes(pair, table)))
        write_picture(comparison.comparison_picture(pair, windows), told, words)
        return
    for line in comparison.notes(pair, table):
        say(line)
    write_rows(table, form, words["unit"], ("baseline", "run"))


def write_rows(table: Table, form: str, unit: str, latencies: Sequence[str], stamp: Callable[[int], str] = str) -> None:
    """Print a table as csv or ndjson, the named columns in a unit and all others as they are."""
    from ingest.view import text

    scale = text.UNITS[unit]
    columns = {name: column / scale if name in latencies and scale > 1 else column for name, column in table.columns.items()}
    lines = {"csv": text.csv_lines, "ndjson": text.ndjson_lines}[form]
    sys.stdout.writelines(line + "\n" for line in lines(replace(table, columns=columns), stamp))


def _judged(table: Table, limit: float) -> tuple[int, list[str]]:
    """Return the exit status, 1 where the lower bound of a ratio is above the limit, and what to say; up to five are named."""
    if limit == math.inf:
        return 0, []
    from ingest.view.comparison import row_name

    low = table.columns["lo"]
    above = [row for row in range(len(table)) if low[row] > limit]
    if not above and not (low == low).any():  # noqa: PLR0124  # NaN is unlike itself
        return 0, ["cannot tell: no ratio here has a lower bound, so nothing was judged"]
    told = [
        f"{row_name(table, row)} is {table.columns['ratio'][row]:.3g} times the baseline, at least {low[row]:.3g}"
        for row in above
    ]
    return (REGRESSED, [f"above {limit:g}: {listed(told)}"]) if told else (0, [])
