"""Findings as stores keep them: the story of a run as documents, the story itself first, then each finding by its rank.

Numbers are kept as they are, not rounded as in JSON output: a story that is read is the one that was computed. A command is kept
without the sources that it names: these are put in when it is read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ingest.query.question import Question, Steady
from ingest.query.story.ground import Below, Finding, Story

STORY = "story"
WHOLE = Question()


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A document of findings: `rank` 0 is the story of the run, from 1 on its findings, those that account for most first.

    `stamp` says of which state of the run it is. `content` holds all of a finding, or all of the story but its findings.
    """

    run: str
    rank: int
    stamp: str
    kind: str
    labels: Mapping[str, str]
    start_ns: int
    end_ns: int
    text: str
    share: float
    missing_share: float
    content: Mapping[str, Any]

    @property
    def who(self) -> str:
        """Return the labels as text: host ceph-b, op write; empty for all."""
        return ", ".join(f"{name} {value}" for name, value in self.labels.items())


def is_whole(question: Question) -> bool:
    """Return whether a question is about whole runs, whichever they are."""
    where = {name: glob for name, glob in question.where.items() if name != "run"}
    return replace(question, runs=(), where=where) == WHOLE


def documents_of(run: str, story: Story, stamp: str) -> list[StoredFinding]:
    """Return the documents of a story whose commands name no source."""
    span = [edge for finding in story.findings for edge in (finding.start_ns, finding.end_ns)] or [story.zero_ns]
    told = {field.name: getattr(story, field.name) for field in fields(story) if field.name != "findings"}
    told["steady"] = story.steady and [*story.steady]
    told["count"] = len(story.findings)  # so that it is seen where some are missing
    first = StoredFinding(run, 0, stamp, STORY, {}, min(span), max(span), story.nothing, story.unexplained, 0.0, told)
    return [first, *(_document(run, rank, stamp, finding) for rank, finding in enumerate(story.findings, 1))]


def story_from(documents: Iterable[StoredFinding], stamp: str, source: str = "") -> Story | None:
    """Return the story of the documents of a run in this state; None where they are of another one, or not all there."""
    mine = sorted((document for document in documents if document.stamp == stamp), key=lambda document: document.rank)
    if not mine or [document.rank for document in mine] != list(range(len(mine))):
        return None
    told = dict(mine[0].content)
    if told.pop("count", None) != len(mine) - 1:
        return None
    told["caveats"], told["lacks"] = tuple(told["caveats"]), tuple(told.get("lacks", ()))
    told["steady"] = Steady(*told["steady"]) if told.get("steady") else None
    return Story(**told, findings=tuple(_finding(document.content, source) for document in mine[1:]))


def _document(run: str, rank: int, stamp: str, finding: Finding) -> StoredFinding:
    content = {field.name: getattr(finding, field.name) for field in fields(finding) if field.name != "below"}
    content |= {"below": [each.as_dict() for each in finding.below]} if finding.below else {}
    told = {name: getattr(finding, name) for name in ("kind", "start_ns", "end_ns", "text", "share", "missing_share")}
    return StoredFinding(run=run, rank=rank, stamp=stamp, labels=dict(finding.who), content=content, **told)


def _finding(content: Mapping[str, Any], source: str) -> Finding:
    told = dict(content)
    told["who"] = tuple((name, value) for name, value in told["who"])
    told["members"] = tuple(tuple((name, value) for name, value in each) for each in told.get("members", ()))
    told["latency_ns"] = None if told["latency_ns"] is None else tuple(told["latency_ns"])
    told["below"] = tuple(map(Below.from_dict, told.get("below", ())))
    words = shlex.split(told["command"])
    told["command"] = shlex.join([*words[:2], *shlex.split(source), *words[2:]])
    return Finding(**told)
