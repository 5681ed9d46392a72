"""Some series beside all: one host, one operation, one process against the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from ingest.core.errors import InputError, UsageError
from ingest.core.nearest import choices
from ingest.query.question import Answer, Question
from ingest.query.regrouped import regrouped


def with_labels(question: Question, highlighted: Mapping[str, str]) -> Question:
    """Return the question whose answer keeps the highlighted labels apart; UsageError for a kind, as kinds are never added up."""
    if "kind" in highlighted:
        raise UsageError("--highlight kind: kinds are never added up; choose one with --where kind=KIND")
    return replace(question, by=tuple(dict.fromkeys((*question.by, *highlighted))))


def split(answer: Answer, question: Question, highlighted: Mapping[str, str]) -> tuple[Answer, Answer]:
    """Return what `question` asks, and the part of it whose labels match, both by the labels of `question` alone.

    `answer` is that of `with_labels`. InputError where nothing matches, UsageError where runs would be added up unasked.
    """
    by = tuple(name for name in answer.by if name in question.by or name not in highlighted)
    if "run" not in by and len(answer.runs) > 1 and not question.merge_runs:
        raise UsageError(f"--highlight run: these are {len(answer.runs)} runs; --merge-runs adds them up")
    places = {answer.by.index(name): glob for name, glob in highlighted.items()}
    parts = [part.where(lambda key: all(fnmatchcase(key[at], glob) for at, glob in places.items())) for part in answer.parts]
    if not any(len(part) for part in parts):
        asked = " ".join(f"--highlight {name}={glob}" for name, glob in highlighted.items())
        names = {", ".join(key[at] or "-" for at in places) for part in answer.parts for key in part.table}
        raise InputError(f"nothing matches {asked}: {choices(', '.join(highlighted.values()), sorted(names))}")
    return regrouped(answer, by), regrouped(replace(answer, parts=tuple(parts)), by)
