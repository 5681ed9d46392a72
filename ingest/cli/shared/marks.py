"""--marks: files of marks, read for a command, and put with the runs of a store that they overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.cli.shared.say import say

if TYPE_CHECKING:
    from ingest.core.marks import Mark
    from ingest.query.question import Answer
    from ingest.store import Store


def read_all(paths: Iterable[Path]) -> list[Mark]:
    """Return the marks of files; what was left out of them is told on stderr. InputError where one cannot be read."""
    if not (paths := list(paths)):
        return []
    from ingest.read.marks import read_marks

    found: list[Mark] = []
    for path in paths:
        told = read_marks(path)
        found += told.marks
        for text in told.said:
            say(text)
    return found


def keep(store: Store, runs: Sequence[str], marks: Sequence[Mark]) -> None:
    """Put marks with the runs that they overlap, and tell how many each got and how many are of none."""
    from ingest.store.marks import keep_marks

    if not marks:
        return
    for text in keep_marks(store, runs, marks):
        say(text)


def drawn(answer: Answer, stored: Sequence[object], marks: Sequence[Mark]) -> list[dict[str, object]]:
    """Return the marks of a picture of an answer: those of its store, those given that overlap it, where samples are missing."""
    from ingest.query.missing import bands
    from ingest.view.page.panels.marks import Shown, chosen

    end = max(int(part.end_ns.max()) for part in answer.parts if len(part))
    runs = [Shown(run, start, end, answer.relative) for run, start in answer.run_start_ns.items() if run in answer.runs]
    found = chosen(runs, stored, marks)  # type: ignore[arg-type]
    for text in found.notes:
        say(text)
    return [dict(mark) for mark in (*found.marks, *bands(answer))]
