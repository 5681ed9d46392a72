"""explain --box: who is over-represented in a rectangle of time and latency."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import asked, in_range, stamp_of, warn
from ingest.cli.shared.say import say
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.query.box import Explained
    from ingest.query.origin import Origin

box_option = click.option(
    "--box",
    metavar="FROM..TO,LOW..HIGH",
    help="Rank who is over-represented in this range of time and latency, such as +26s..+36s,1s.. (open ends stay empty).",
)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking, shared.Showing):
    """What a call of explain says of a box; `format` is table, json, ndjson or csv."""

    box: str | None
    marks: tuple[Path, ...] = ()


def explain_box(sources: tuple[str, ...], options: Options) -> None:
    """Print who is over-represented in a box."""
    from ingest.cli.shared.sources import opened
    from ingest.query.box import explained, parse_box
    from ingest.query.box_offsets import box_offsets
    from ingest.query.clocks import ABSOLUTE

    box = parse_box(options.box or "")
    if options.by:
        raise UsageError("--box looks at every label: leave out --by, and choose data with --where")
    with opened(sources, options) as origin:
        answer = explained(origin, asked(options, "all"), box)
        in_range(answer.answer, asked(options, "all"))
        if answer.answer.relative and any(edge is not None and not edge.relative for edge in (box.begin, box.end)):
            raise UsageError(ABSOLUTE)
        notes = _marks(origin, answer, options)
        offsets = box_offsets(origin, asked(options, "all"), answer.spans) if options.format in ("table", "json") else None
    if options.format == "table":
        from ingest.view.terminal.box import print_box

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
    from ingest.view import text

    lines = {"csv": text.csv_lines, "ndjson": text.ndjson_lines}[options.format]
    sys.stdout.writelines(line + "\n" for line in lines(answer.table))


def _marks(origin: Origin, answer: Explained, options: Options) -> list[str]:
    """Return a sentence on each mark that overlaps the box: those of a store, and those of --marks."""
    from ingest.cli.shared.marks import drawn, read_all
    from ingest.core.missing import ANY_TIME
    from ingest.query.missing import MISSING_HERE

    said = []
    stored = origin.marks(answer.answer)
    for mark in drawn(answer.answer, stored, read_all(options.marks)):
        run, at = str(mark["run"]), int(str(mark["at_ns"]))
        end = int(str(mark.get("end_ns") or at))
        low, high = (open_end if edge is None else edge for edge, open_end in zip(answer.spans[run], ANY_TIME, strict=True))
        if at < high and end >= low and mark["text"] != MISSING_HERE:
            since = (at - answer.answer.run_start_ns[run]) / 1e9
            said.append(f"mark in the box at {since:+.9g} s: {mark['text']}")
    return said
