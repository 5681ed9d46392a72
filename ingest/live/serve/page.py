"""What a browser asks for, and what the live page holds of it: the report's own parts, and its controls."""

from __future__ import annotations

import hashlib
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl

import orjson

from ingest.core.errors import InputError, UsageError, choices
from ingest.core.labels import fits, run_matches
from ingest.core.marks import Mark
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import figure, format_duration, parse_duration, parse_instant
from ingest.live.serve.cache import Version, reading
from ingest.live.watch.accuracy import known
from ingest.query.question import ALL, AUTO, Question, start_of_range
from ingest.store import Store
from ingest.store.live import NOTHING_FINAL, NOTHING_LEFT
from ingest.store.records import COMPLETE, WATCHED, RunRecord
from ingest.view.page.report import parts_from
from ingest.view.page.template import IN_CONTROLS, Parts, Section, page_of, policy, runtime, script_of
from ingest.view.vega import MS, printable

# What a browser asks for: the query of an address, taken only where every word of it is known and good.
#
# ?run=nightly-42&run=nightly-43&from=now-15m&to=...&step=10s      all may be left out; `run` may come several times


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
    """Return the question with the range and the step that are selected; UsageError where these are none.

    Rows that are wider than the step are spread, and the page says so.
    """
    step: int | str = selection.step if selection.step in (AUTO, ALL) else parse_duration(selection.step)
    begin, end = start_of_range(selection.begin or None), parse_instant(selection.end) if selection.end else None
    step = question.step if step == AUTO else step
    return replace(question, step=step, force=True, begin=begin or question.begin, end=end or question.end)


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


# What the live page holds of a selection: the report's own parts, and the controls of a page that keeps up with its source.


SWAPPED = {"title": "runs", "lead": "lead", "facts": "facts", "notes": "notes", "summary": "summary"}
FIXED = ("version", "several", "grouping", "clock")
STEPS = ("1s", "5s", "10s", "30s", "1m", "5m", "10m", "30m", "1h")
MOST_OFFERED = 200
_MAKING = Lock()  # a large page takes some 400 MB while it is made: two at a time would take twice that, and no less time
KNOWN, MOST_KNOWN = parse_percentiles("50,95,99,99.9"), 6


@dataclass(frozen=True, slots=True)
class Subject:
    """What a server was started for: a store, the question whose runs, labels and filters hold for all pages, and the refresh.

    `given` are marks of files, drawn beside those of the store.
    """

    url: str
    question: Question
    refresh_ns: int
    sla_ns: int = 0
    given: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What a selection shows: the version of the store that it was made of, and the parts of its page.

    `tag` is a digest of all of it, `shape` of what cannot be changed in an open page.
    """

    version: str
    parts: Parts
    tag: str
    shape: str

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return sum(map(sys.getsizeof, (*self.parts.filling.values(), *self.parts.swapped.values())))

    def page(self) -> tuple[str, str]:
        """Return the page and its content security policy."""
        allowed = policy(runtime(), script_of(self.parts), connect=True)
        return page_of(self.parts, {"tag": self.tag, "shape": self.shape}), allowed

    def update(self) -> bytes:
        """Return what an open page needs to show this view, as JSON."""
        filling = self.parts.filling
        html = {place: filling[name] for place, name in SWAPPED.items() if name in filling}
        return orjson.dumps({"shape": self.shape, "html": {**html, **self.parts.swapped}, "data": filling["data"]})


def view_of(subject: Subject, version: Version, selection: Selection, before: View | None) -> View:
    """Return the view of a selection: the one before where it still holds.

    InputError where nothing is selected, UsageError for a step or range that cannot be, StoreError.
    """
    slides = any(edge.startswith("now") for edge in (selection.begin, selection.end))
    now = f"{version()} {time.time_ns() // subject.refresh_ns if slides else 0}"  # another one when it has moved on
    if before is not None and before.version == now:
        return before
    with _MAKING, reading(subject.url) as store:
        parts = _parts(subject, store, selection)
    shape = _digest([parts.template, *parts.sections, script_of(parts), *(parts.filling.get(name, "") for name in FIXED)])
    return View(now, parts, _digest([shape, *parts.filling.values()]), shape)


def _parts(subject: Subject, store: Store, selection: Selection) -> Parts:
    question = subject.question
    wanted = question.where.get("run", "*")
    offered = [record for record in store.runs() if run_matches(record.run, question.runs) and fits(record.run, wanted)]
    tries = choices_of(selection, question, offered)
    question = asked_of(selection, question)
    for number, runs in enumerate(tries):
        asked, marks = question.about(runs), _provisional(offered, runs)
        section = _section(subject, selection, offered, runs, _known(store, asked, runs))
        try:
            of_subject: dict[str, Any] = {"sla_ns": subject.sla_ns, "given": subject.given, "named": subject.url}
            return parts_from(store, runs, asked, offsets=True, more=[section], marks=marks, **of_subject)
        except InputError:
            if number + 1 == len(tries):
                raise
    raise InputError("no run here yet")


def _known(store: Store, question: Question, runs: Sequence[str]) -> list[str]:
    """Return how well percentiles are known now, in words: a line for each run and operation, the first MOST_KNOWN."""
    lines = []
    for run in runs:
        by_operation: dict[str, list[str]] = {}
        for (operation, name), (within, _) in known(store, question.about([run]), run, KNOWN).items():
            to = "not yet" if math.isnan(within) else f"to {figure(100 * within, 2)} %"
            by_operation.setdefault(operation, []).append(f"{name} {to}")
        for operation, said in by_operation.items():
            what = " ".join(printable(word) for word in (run if len(runs) > 1 else "", operation) if word)
            lines.append(f"{what}: {', '.join(said)}" if what else ", ".join(said))
    return [*lines[:MOST_KNOWN], *([f"and {len(lines) - MOST_KNOWN} more"] if len(lines) > MOST_KNOWN else [])]


def _section(
    subject: Subject, selection: Selection, offered: Sequence[RunRecord], chosen: Sequence[str], accuracy: Sequence[str]
) -> Section:
    newest = sorted(offered, key=lambda record: (record.start_ns, record.run), reverse=True)
    finest = max((record.step_ns for record in offered if record.run in chosen), default=1)
    content: Mapping[str, Any] = {
        "refresh": subject.refresh_ns / MS,
        "runs": [_run(record, chosen) for record in newest[:MOST_OFFERED]],
        "more": max(0, len(newest) - MOST_OFFERED),
        "known": accuracy,
        "own": bool(selection.runs),
        "steps": [step for step in STEPS if parse_duration(step) >= finest and parse_duration(step) % finest == 0],
        "stored": format_duration(finest),
    }
    return Section("live", IN_CONTROLS, ("live/live.js",), content, html="live/live.html")


def _provisional(offered: Sequence[RunRecord], chosen: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return marks where the windows begin that may still change, of runs that are being watched."""
    unfinished = [record for record in offered if record.run in chosen and _final(record) is not None]
    return [{"run": record.run, "at_ns": record.final_ns, "text": "provisional from here on"} for record in unfinished]


def _final(record: RunRecord) -> int | None:
    """Return up to when the windows of a run are final, None where it is not watched or all or none of them are."""
    known = record.final_ns is not None and NOTHING_FINAL < record.final_ns < NOTHING_LEFT
    return record.final_ns if known and record.state == WATCHED else None


def _run(record: RunRecord, chosen: Sequence[str]) -> dict[str, Any]:
    final = _final(record)
    entry = {"name": printable(record.run), "state": record.state, "start": record.start_ns / MS, "shown": record.run in chosen}
    return entry if final is None else {**entry, "final": final / MS}


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        body = text.encode()
        digest.update(len(body).to_bytes(8, "little") + body)
    return digest.hexdigest()[:32]
