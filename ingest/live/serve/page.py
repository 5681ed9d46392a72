"""What the live page holds of a selection: the report's own parts, and the controls of a page that keeps up with its source."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import orjson

from ingest.core.errors import InputError
from ingest.core.marks import Mark
from ingest.core.series import run_matches
from ingest.core.timing import format_duration, parse_duration
from ingest.live.serve.selection import Selection, asked_of, choices_of, clock_of
from ingest.live.serve.source import Version, reading
from ingest.query.question import Question
from ingest.store import RunRecord, Store
from ingest.store.live import NOTHING_FINAL, NOTHING_LEFT
from ingest.store.records import WATCHED
from ingest.view.page.report.contents import parts_from
from ingest.view.page.report.section import IN_CONTROLS, Section
from ingest.view.page.runtime import runtime
from ingest.view.page.template import Parts, page_of, policy, script_of
from ingest.view.vega import MS, printable

SWAPPED = {"title": "runs", "lead": "lead", "facts": "facts", "notes": "notes", "summary": "summary"}
FIXED = ("version", "several", "grouping", "clock")
STEPS = ("1s", "5s", "10s", "30s", "1m", "5m", "10m", "30m", "1h")
MOST_OFFERED = 200


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
        """Return how many bytes it takes, about."""
        return sum(map(len, self.parts.filling.values()))

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
    now = f"{version()} {clock_of(selection, subject.refresh_ns)}"
    if before is not None and before.version == now:
        return before
    with reading(subject.url) as store:
        parts = _parts(subject, store, selection)
    shape = _digest([parts.template, *parts.sections, script_of(parts), *(parts.filling.get(name, "") for name in FIXED)])
    return View(now, parts, _digest([shape, *parts.filling.values()]), shape)


def _parts(subject: Subject, store: Store, selection: Selection) -> Parts:
    question = subject.question
    wanted = question.where.get("run", "*")
    offered = [record for record in store.runs() if run_matches(record.run, question.runs) and fnmatchcase(record.run, wanted)]
    tries = choices_of(selection, question, offered)
    question = asked_of(selection, question)
    for number, runs in enumerate(tries):
        section = _section(subject, selection, offered, runs)
        try:
            asked, marks = question.about(runs), _provisional(offered, runs)
            settings: dict[str, Any] = {"sla_ns": subject.sla_ns, "offsets": True, "more": [section], "marks": marks}
            return parts_from(store, runs, asked, given=subject.given, named=subject.url, **settings)
        except InputError:
            if number + 1 == len(tries):
                raise
    raise InputError("no run here yet")


def _section(subject: Subject, selection: Selection, offered: Sequence[RunRecord], chosen: Sequence[str]) -> Section:
    newest = sorted(offered, key=lambda record: (record.start_ns, record.run), reverse=True)
    finest = max((record.step_ns for record in offered if record.run in chosen), default=1)
    content: Mapping[str, Any] = {
        "refresh": subject.refresh_ns / MS,
        "runs": [_run(record, chosen) for record in newest[:MOST_OFFERED]],
        "more": max(0, len(newest) - MOST_OFFERED),
        "own": bool(selection.runs),
        "steps": [step for step in STEPS if parse_duration(step) >= finest and parse_duration(step) % finest == 0],
        "stored": format_duration(finest),
    }
    return Section("live", "live/live.html", ("live/live.js",), {}, content, IN_CONTROLS)


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
