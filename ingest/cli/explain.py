"""explain: what happened, and who made it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from ingest.cli import explain_box as boxes
from ingest.cli.explain_box import box_option, explain_box
from ingest.cli.shared import options as shared
from ingest.cli.shared.help import Choice, Command, file_names
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.core.marks import Mark, Noted
    from ingest.query.findings.model import Finding, Story
    from ingest.query.question import Question


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(boxes.Options):
    """What a call of explain says; without `box` it tells the story of each run."""

    step: str
    force: bool
    as_json: bool


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@box_option
@shared.selecting_options
@shared.step_options
@shared.marks_option
@shared.time_option
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--format",
    type=Choice(["table", "json", "ndjson", "csv"]),
    default="table",
    show_default=True,
    help="table: for people; json: all of it; ndjson: one line per finding, or per label and value of a box; csv: a box alone.",
)
@shared.reading_options
@shared.typed(Options)
def explain(sources: tuple[str, ...], options: Options) -> None:
    """Say what happened in a run: which host, when, how bad; or who is over-represented in a box of its heat map.

    \b
    Examples:
      tailboard explain ./cbt-archive
      tailboard explain --run 'nightly-42*' --json
      tailboard explain ./cbt-archive --from +10s --where op=write
      tailboard explain ./cbt-archive --box +26s..+36s,1s..
      tailboard explain --run nightly-42 --box ..,20ms..50ms --where op=read

    Findings are ranked by the share of all excess latency that they account for: time that operations took longer than typical
    ones. Each says when (seconds since the start of the run), what it is consistent with, what speaks against it, and which
    command shows its numbers. Where nothing stands out, that is said. The exit status is 0 in both cases.

    --box takes a range of time and a range of latency; an end that is left out is open. Every value of host, op, volume, job,
    tag, process and run is counted inside and outside. csv and ndjson have one row for each, the most over-represented first:
    label,value,inside,outside,share_inside,share_outside,lift,lo,hi,score,verdict,exact,complete.
    """
    options = replace(options, format="json") if options.as_json else options
    if options.box:
        if options.step != "auto":
            raise UsageError("--box counts in stored windows: leave out --step")
        explain_box(sources, options)
        return
    if options.format == "csv":
        raise UsageError("--format csv is for --box: sentences come as table, json or ndjson")
    _tell(sources, options)


def _tell(sources: tuple[str, ...], options: Options) -> None:
    """Print the story of each run that a call selects."""
    from ingest.cli.shared.answers import asked
    from ingest.cli.shared.sources import as_typed, opened
    from ingest.cli.shared.values import parse_step
    from ingest.query.findings.story import stories

    step = parse_step(options.step)
    if step == "all":
        raise UsageError("findings need windows: leave out --step all")
    question = asked(options, step, force=options.force)
    with opened(sources, options) as origin:
        told = stories(origin, question, as_typed(sources, options, options.where))
    _check_clocks(told, question, options)
    if options.format == "json":
        import json

        sys.stdout.write(json.dumps([story.as_dict() for story in told], indent=2, allow_nan=False) + "\n")
    elif options.format == "ndjson":
        import orjson

        lines = [orjson.dumps(finding.as_dict(story.zero_ns)) for story in told for finding in story.findings]
        sys.stdout.writelines(f"{line.decode()}\n" for line in lines)
    else:
        _print(told, options)


def _check_clocks(told: list[Story], question: Question, options: Options) -> None:
    """Raise UsageError where times of the clock are asked for of runs that have none."""
    from ingest.query.clocks import ABSOLUTE, is_absolute

    if all(story.relative for story in told):
        if is_absolute(question):
            raise UsageError(ABSOLUTE)
        if options.time_base in ("utc", "local"):
            raise UsageError("the start of this run is not known, so its times are elapsed; give --t0 for times of the clock")


def _print(told: list[Story], options: Options) -> None:
    from ingest.cli.shared.marks import read_all
    from ingest.core.writing import local, utc
    from ingest.view.terminal.story import print_story

    stamps = {"utc": utc, "local": local}
    marks = read_all(options.marks)
    for number, story in enumerate(told):
        if number:
            sys.stdout.write("\n")
        notes = [
            f"mark at {(mark['at_ns'] - story.zero_ns) / 1e9:+.1f} s, during finding {place}: {mark['text']}"
            for place, finding in enumerate(story.findings, 1)
            for mark in _during(marks, story, finding)
        ]
        print_story(story, None if story.relative else stamps.get(options.time_base or "utc"), notes)


def _during(marks: list[Mark], story: Story, finding: Finding) -> list[Noted]:
    """Return the marks that overlap a finding, in time order."""
    from ingest.core.marks import of_run

    every = of_run(marks, story.run, story.zero_ns, 1 << 62, relative=story.relative)
    return [
        mark for mark in every if mark["at_ns"] < finding.end_ns and int(mark.get("end_ns") or mark["at_ns"]) >= finding.start_ns
    ]
