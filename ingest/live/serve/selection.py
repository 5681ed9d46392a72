"""What a browser asks for: the query of an address, taken only where every word of it is known and good.

?run=nightly-42&run=nightly-43&from=now-15m&to=...&step=10s      all may be left out; `run` may come several times
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from ingest.core.errors import InputError, UsageError
from ingest.core.nearest import choices
from ingest.core.timing import parse_duration, parse_instant
from ingest.query.question import ALL, AUTO, Question
from ingest.store.records import COMPLETE, RunRecord
from ingest.view.vega import printable

MOST_RUNS = 8
MOST_WORDS = 16
LONGEST_QUERY = 8192
LONGEST_TIME = 64
NAMES = ("run", "from", "to", "step")


@dataclass(frozen=True, slots=True)
class Selection:
    """Names of runs, a range of time and a step, as the address has them; empty where it says nothing."""

    runs: tuple[str, ...] = ()
    begin: str = ""
    end: str = ""
    step: str = AUTO

    @property
    def slides(self) -> bool:
        """Return whether the selection moves on with the clock."""
        return self.begin.startswith("now") or self.end.startswith("now")


def parse_selection(query: str) -> Selection:
    """Return what the query of an address selects; UsageError says which word of it is wrong."""
    if not query:
        return Selection()
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, strict_parsing=True, encoding="utf-8", errors="strict", max_num_fields=MOST_WORDS
        )
    except ValueError:
        raise UsageError(f"the query of the address is not NAME=VALUE&..., at most {MOST_WORDS} of them, in UTF-8") from None
    words: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in NAMES:
            raise UsageError(f"no parameter {name[:LONGEST_TIME]!r} in an address: there are {', '.join(NAMES)}")
        if not value.isprintable() or not value:
            raise UsageError(f"{name}= has no value that can be used")
        words.setdefault(name, []).append(value)
    for name in NAMES[1:]:
        if len(words.get(name, ())) > 1 or len(words.get(name, [""])[0]) > LONGEST_TIME:
            raise UsageError(f"{name}= is taken once, and short")
    runs = tuple(sorted(set(words.get("run", ()))))
    if len(runs) > MOST_RUNS:
        raise UsageError(f"{len(runs)} runs are more than one page shows: at most {MOST_RUNS}")
    begin, end = (words.get(name, [""])[0] for name in ("from", "to"))
    selection = Selection(runs, begin, end, words.get("step", [AUTO])[0])
    asked_of(selection, Question())
    return selection


def asked_of(selection: Selection, question: Question) -> Question:
    """Return the question with the range and the step that are selected; UsageError where these are none."""
    step: int | str = selection.step if selection.step in (AUTO, ALL) else parse_duration(selection.step)
    begin, end = (parse_instant(text) if text else None for text in (selection.begin, selection.end))
    return replace(question, step=question.step if step == AUTO else step, begin=begin or question.begin, end=end or question.end)


def choices_of(selection: Selection, question: Question, offered: Sequence[RunRecord]) -> list[tuple[str, ...]]:
    """Return which runs to show; where there are several answers, they are tried in their order.

    Those that were chosen, else those that the server was started for, where they are few, else the newest. InputError where a
    run is chosen that is not offered, or none is offered.
    """
    known = {printable(record.run): record.run for record in offered}
    missing = [name for name in selection.runs if name not in known]
    if missing:
        raise InputError(f"no run {missing[0]!r} here: {choices(missing[0], known)}")
    if not offered:
        raise InputError("no run here yet: this page shows the first that is loaded")
    if selection.runs:
        return [tuple(known[name] for name in selection.runs)]
    if question.merge_runs or (question.runs and len(offered) <= MOST_RUNS):
        return [tuple(record.run for record in offered)]
    newest = sorted(offered, key=lambda record: (record.start_ns, record.run), reverse=True)
    tries = newest[:1] if newest[0].state == COMPLETE else newest[:2]  # a run that has just begun may hold nothing yet
    return [(record.run,) for record in tries]


def clock_of(selection: Selection, every_ns: int) -> int:
    """Return a number that changes when the selection has moved on, at most once in `every_ns`."""
    return time.time_ns() // every_ns if selection.slides else 0
