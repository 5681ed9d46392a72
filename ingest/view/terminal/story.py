"""What happened in a run, for people: findings in sentences, the largest first, and what they do not explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from ingest.core.writing import Stamp
from ingest.query.findings.model import Finding, Story
from ingest.query.findings.words import shown
from ingest.view.terminal.tables import people, say, say_notes

PERCENT = 100


def print_story(story: Story, stamp: Stamp | None = None, marks: Sequence[str] = (), *, console: Console | None = None) -> None:
    """Print the story of a run; with `stamp` each finding's times are written by it, too."""
    out = console or people()
    say(out, [f"what happened in {story.run or 'the run'}"])
    say_notes(out, (*story.lacks, *story.caveats, *marks))
    out.print()
    for number, finding in enumerate(story.findings, 1):
        say(out, [f"{number}. {finding.text}"], "bold")
        say(out, (f"   below it: {each.text}" for each in finding.below))
        say(out, (f"   {name}: {text}" for name, text in _details(finding, stamp).items()))
    say(out, closing(story), "dim" if story.findings else None)


def _details(finding: Finding, stamp: Stamp | None) -> Mapping[str, str]:
    """Return what is said of a finding below its sentence."""
    times = f"{stamp(finding.start_ns)} to {stamp(finding.end_ns)}" if stamp else ""
    lines = {"times": times, "consistent with": finding.consistent, "against": finding.against, "see": finding.command}
    return {name: text for name, text in lines.items() if text}


def closing(story: Story) -> list[str]:
    """Return what no finding explains, and what is taken for typical."""
    lines = [story.nothing] if story.nothing else []
    if story.excess_ns and story.findings:
        lines.append(
            f"Not explained: {PERCENT * story.unexplained:.0f} % of all excess latency ({shown(story.excess_ns)} in all)."
        )
    return [*lines, *([story.reference] if story.reference else [])]
