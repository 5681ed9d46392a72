"""Why a question matches nothing: which of its words no data has, and what there is instead."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase

from ingest.core.errors import InputError, TailboardError
from ingest.core.nearest import choices
from ingest.core.series import run_matches
from ingest.query.origin import Origin
from ingest.query.question import ALL, NothingMatchesError, Question


def explained(error: NothingMatchesError, origins: Iterable[Origin]) -> InputError:
    """Return an error that names the words of the question that match nothing, with the values that the data has, nearest first.

    The values of a label are known of the error, else the origins are asked again, without that word. Where what matches is
    known to be missing (a client that left nothing, a log that was refused), the error says that. It stays as it was where each
    word matches something.
    """
    question, asked = error.question, list(origins)
    runs = [record.run for origin in asked for record in origin.runs()]
    if not any(run_matches(run, question.runs) for run in runs):
        return InputError(f"no run matches {' '.join(question.runs)}: {choices(question.runs[0], runs)}")
    for name, glob in question.where.items():
        values = runs if name == "run" else error.known.get(name) or _values(asked, question, name)
        if values and not any(fnmatchcase(value, glob) for value in values):
            named = sorted(value for value in values if value)
            there = choices(glob, named) if named else f"nothing here has a {name}"
            lost = dict.fromkeys(str(lack.caveat) for lack in error.missing if name in lack.entry.labels)
            return InputError("; ".join((f"no {name} matches {glob}: {there}", *lost)))
    return error


def _values(origins: Sequence[Origin], question: Question, name: str) -> Collection[str]:
    """Return the values of a label in the runs that a question names."""
    values: set[str] = set()
    for origin in origins:
        with suppress(TailboardError):  # it is asked for the sentence of another error
            answer = origin.answer(replace(Question(runs=question.runs, by=(name,), step=ALL), attribution=question.attribution))
            place = answer.by.index(name)
            values |= {part.table[code][place] for part in answer.parts for code in set(part.series.tolist())}
    return values
