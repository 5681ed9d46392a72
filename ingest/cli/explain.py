"""explain: what happened, and who made it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.api.words import in_range
from ingest.cli.answers import NO_CLOCK, asked, drawn_marks, print_rows, stamp_of, warn
from ingest.cli.options import FORCE, MARKS, STEP, TIME_BASE, Asking, Showing, command, formats, option
from ingest.cli.output import say
from ingest.cli.sources import as_typed, marks_of, opened
from ingest.core.errors import UsageError
from ingest.core.marks import of_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ingest.core.marks import Mark
    from ingest.query.box import Explained
    from ingest.query.origin import Origin
    from ingest.query.story.ground import Story


class Options(Asking, Showing):
    """What a call of explain says; without `box` it tells the story of each run."""

    box: str | None = option(
        "--box",
        metavar="FROM..TO,LOW..HIGH",
        help="Rank who is over-represented in this range of time and latency, such as +26s..+36s,1s.. (open ends stay empty).",
    )
    against: str | None = option(
        "--against",
        choices=["rest", "before", "after", "time"],
        help="What a box is held against: all other samples (rest), those before or after it, or the others of its time.",
    )
    step: str = STEP
    force: bool = FORCE
    marks: tuple[Path, ...] = MARKS
    time_base: str | None = TIME_BASE
    format: str = formats(
        *("table", "json", "ndjson", "csv", "markdown"),
        help="table: for people; json: all of it; ndjson: one line per finding, or per label and value of a box; "
        "csv: a box alone.",
    )


@command(Options)
def explain(options: Options) -> None:
    """Say what happened in a run: which host, when, how bad; or who is over-represented in a box of its heat map.

    \b
    Examples:
      tailboard explain ./cbt-archive
      tailboard explain --run 'nightly-42*' --json
      tailboard explain ./cbt-archive --from +10s --where op=write
      tailboard explain ./cbt-archive --box +26s..+36s,1s..
      tailboard explain ./cbt-archive --box +26s..+36s,1s.. --against before
      tailboard explain --run nightly-42 --box ..,20ms..50ms --where op=read

    Findings are ranked by the share of all excess latency that they account for: time that operations took longer than typical
    ones. Each says when (in UTC; of a run without a clock since its start), what it is consistent with, what speaks against it,
    and which command shows its numbers. Where nothing stands out, that is said. The exit status is 0 in both cases.

    --box takes a range of time and a range of latency; an end that is left out is open. Every value of host, op, volume, job,
    tag, process and run is counted inside and outside: among all other samples, or among those that --against names. csv and
    ndjson have one row for each, the most over-represented first:
    label,value,inside,outside,share_inside,share_outside,lift,lo,hi,score,verdict,exact,complete.
    """
    if options.box:
        if options.step != "auto":
            raise UsageError("--box counts in stored windows: leave out --step")
        _explain_box(options)
        return
    if options.against:
        raise UsageError("--against is for --box: it says what a box is held against")
    if options.format == "csv":
        raise UsageError("--format csv is for --box: sentences come as table, json or ndjson")
    _tell(options)


def _tell(options: Options) -> None:
    """Print the story of each run that a call selects; UsageError where times of the clock are asked for of runs without one."""
    from ingest.query.question import ABSOLUTE, is_absolute
    from ingest.query.story.story import stories

    question = asked(options, options.step, force=options.force)
    with opened(options) as origin:
        told = stories(origin, question, as_typed(options))
        marks = marks_of(options.marks)
        by_clock = any(mark.at.of_day for mark in marks)  # of which there may be several times in a run
        ends = {story.run: _end(origin, story.run) if by_clock else 1 << 62 for story in told} if marks else {}
    if all(story.relative for story in told):
        if is_absolute(question):
            raise UsageError(ABSOLUTE)
        if options.time_base in ("utc", "local"):
            raise UsageError(NO_CLOCK)
    if options.format == "json":
        import json

        sys.stdout.write(json.dumps([story.as_dict() for story in told], indent=2, allow_nan=False) + "\n")
    elif options.format == "ndjson":
        import orjson

        lines = [orjson.dumps(finding.as_dict(story.zero_ns)) for story in told for finding in story.findings]
        sys.stdout.writelines(f"{line.decode()}\n" for line in lines)
    else:
        _print(told, options, marks, ends)


def _end(origin: Origin, run: str) -> int:
    """Return when the last row of a run ends, in epoch ns."""
    from ingest.query.overview import span_of
    from ingest.query.question import Question

    return span_of(origin.answer(Question(step="all").about([run])).parts)[1]


def _print(told: list[Story], options: Options, marks: list[Mark], ends: Mapping[str, int]) -> None:
    from ingest.core.units import elapsed, local, utc
    from ingest.query.story.words import moment
    from ingest.view.terminal.story import print_story

    for number, story in enumerate(told):
        if number:
            sys.stdout.write("\n")
        stamps = {"utc": utc, "local": local, "elapsed": elapsed(story.zero_ns)}
        every = of_run(marks, story.run, story.zero_ns, ends[story.run], relative=story.relative) if marks else []
        notes = [
            f"mark at {moment(mark['at_ns'], story)}, during finding {place}: {mark['text']}"
            for place, finding in enumerate(story.findings, 1)
            for mark in every
            if mark["at_ns"] < finding.end_ns and int(mark.get("end_ns") or mark["at_ns"]) >= finding.start_ns
        ]
        print_story(story, None if story.relative else stamps.get(options.time_base or ""), notes)


def _explain_box(options: Options) -> None:
    """Print who is over-represented in a box."""
    from ingest.query.box import ELSEWHERE, box_offsets, explained, parse_box
    from ingest.query.plan import settled
    from ingest.query.question import ABSOLUTE

    box = parse_box(options.box or "")
    if options.by:
        raise UsageError("--box looks at every label: leave out --by, and choose data with --where")
    with opened(options) as origin:
        question = settled(origin, asked(options, "all"))
        answer = explained(origin, question, box, options.against or ELSEWHERE)
        in_range(answer.answer, question)
        if answer.answer.relative and any(edge is not None and not edge.relative for edge in (box.begin, box.end)):
            raise UsageError(ABSOLUTE)
        notes = _marks_in_box(origin, answer, options)
        offsets = box_offsets(origin, question, answer.spans) if options.format in ("table", "json") else None
    if options.format == "table":
        from ingest.view.terminal.story import print_box

        print_box(answer, stamp_of(answer.answer, options), notes, offsets)
        return
    warn(answer.answer)
    for line in (*answer.notes, *notes):
        say(line)
    if options.format == "json":
        import json

        from ingest.view.boxes import plain

        sys.stdout.write(json.dumps(plain(answer, offsets), indent=2, allow_nan=False) + "\n")
        return
    print_rows(answer.table, options.format)


def _marks_in_box(origin: Origin, answer: Explained, options: Options) -> list[str]:
    """Return a sentence on each mark that overlaps the box: those of a store, and those of --marks."""
    from ingest.core.coverage import ANY_TIME
    from ingest.query.coverage import MISSING_HERE

    said = []
    stored = origin.marks(answer.answer)
    for mark in drawn_marks(answer.answer, stored, marks_of(options.marks)):
        run, at = str(mark["run"]), int(str(mark["at_ns"]))
        end = int(str(mark.get("end_ns") or at))
        low, high = (open_end if edge is None else edge for edge, open_end in zip(answer.spans[run], ANY_TIME, strict=True))
        if at < high and end >= low and mark["text"] != MISSING_HERE:
            since = (at - answer.answer.run_start_ns[run]) / 1e9
            said.append(f"mark in the box at {since:+.9g} s: {mark['text']}")
    return said
