"""capacity: the highest load of a sweep that meets an objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.api.sides import asks_of, labels_of, undated_beside
from ingest.cli.by_run import EachRun, chosen, opened_origins, question_of, write_rows
from ingest.cli.completion import run_names
from ingest.cli.options import OUTPUT, command, formats, option
from ingest.cli.output import say, verdict_stands
from ingest.core.labels import Group

if TYPE_CHECKING:
    from ingest.query.capacity import Capacity, Load

NONE_MEETS_STATUS, CANNOT_TELL_STATUS = 1, 5
MOST_NOTES = 6


class Options(EachRun):
    """What a call of capacity says."""

    slas: tuple[str, ...] = option(
        "--sla", metavar="P<LATENCY", required=True, help="Objective, such as 'p99<5ms'; may be repeated: all must be met."
    )
    runs: tuple[str, ...] = option(
        "--run", metavar="GLOB", shell_complete=run_names, help="Only runs whose name matches GLOB [default: all]."
    )
    load: str = option(
        "--load",
        default="",
        metavar="LABEL",
        help="Label that is the load of a run, or achieved [default: an offered rate, else a depth, else what was achieved].",
    )
    points: bool = option("--points", help="csv, ndjson: the tested loads in place of the capacities.")
    printed: str | None = formats("table", "csv", "ndjson", "markdown", show_default="table", help="How it is printed.")
    output: str | None = OUTPUT


@command(Options)
def capacity(options: Options) -> int:
    """Find the highest load that meets an objective of latency, from runs at several loads, with an interval.

    \b
    Examples:
      tailboard check --capacity --run 'sweep-*' --sla 'p99<5ms'
      tailboard check --capacity ./rates/* --sla 'p99<5ms' --sla 'p99.9<20ms' --by op
      tailboard check --capacity ./cbt-archive --sla 'p99<10ms' --load total_iodepth --format csv

    Of several paths each is a run, named after the path. The load is a label such as target_rate, rate_iops, iodepth or clients,
    else what each run achieved a second. csv and ndjson have line, the --by labels, then
    sla,axis,verdict,binds,capacity,lo,hi,met,missed,knee; with --points sla,axis,runs,verdict,load,achieved,count,value,above,
    above_lo,above_hi,batches: value in --unit (ns), above the share of samples at the limit or over it. Exit status: 0 where
    tested loads lie on both sides, 1 where no tested load meets the objective, 5 where that cannot be told.
    """
    from ingest.query.capacity import BRACKETED, NONE_MEETS, axis_of, binding, capacities, parse_sla, tested_in

    slas = [parse_sla(text) for text in options.slas]
    question = question_of(options, ("line", "sla", "axis", "verdict", "load", "runs"))
    question = replace(question, step="auto")
    with opened_origins(options) as origins:
        asks, labels = asks_of(origins), labels_of(origins)
        names = chosen(asks, options.runs)
        axis, places = axis_of({name: labels.get(name, {}) for name in names}, options.load)
        tested: dict[tuple[str, Group], list[Load]] = {}
        warnings = list(undated_beside(list(asks), names))
        for name in names:
            load, line = places[name]
            answer = asks[name](question.about([name]))
            warnings += answer.warnings
            by = answer.by
            for group, point in tested_in(answer, name, load, slas).items():
                tested.setdefault((line, group), []).append(point)
    results = capacities(tested, axis, slas)
    with verdict_stands():
        _write(results, by, list(dict.fromkeys(warnings)), options)
    verdicts = {binding(by_sla).verdict for by_sla in results}
    if NONE_MEETS in verdicts:
        return NONE_MEETS_STATUS
    return 0 if verdicts == {BRACKETED} else CANNOT_TELL_STATUS


def _write(results: Sequence[Sequence[Capacity]], by: Sequence[str], warnings: Sequence[str], options: Options) -> None:
    from ingest.query.capacity import points_of, rows_of
    from ingest.view.terminal import capacity as view

    more = [f"{len(warnings) - MOST_NOTES} more notes"] if len(warnings) > MOST_NOTES else []
    notes = view.notes_of(results, [*warnings[:MOST_NOTES], *more])
    if options.printed in (None, "table"):
        view.print_capacities(results, by, notes)
        return
    table = points_of(results, by) if options.points else rows_of(results, by)
    for line in notes:
        say(line)
    write_rows(table, str(options.printed), options.unit, ("value",))
    for by_sla in results:
        for line in view.sentences(by_sla, by):
            say(line.strip())
