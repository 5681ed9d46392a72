"""Any question about any data has one answer: files, SQLite, Elasticsearch and brute force, byte for byte.

A seed that fails is tried again by itself with

    .venv/bin/python -m tests.any.test_any SEED [QUESTION]
"""

from __future__ import annotations

import functools
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ingest import Files, Question, open_store
from ingest.core.errors import TailboardError
from ingest.core.ranks import parse_percentiles
from ingest.core.series import LABELS
from ingest.core.timing import Instant
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.percentiles import Wanted, percentiles
from ingest.read import ReadOptions
from ingest.read.delimited.description import parse_description
from ingest.view.text import csv_lines
from tests.any import model
from tests.any.making import DESCRIPTION, Data, asked, made, write
from tests.effort import figure
from tests.store.grounds import grounds

refusals: list[str] = []
WANTED = Wanted(parse_percentiles(",".join(model.PERCENTS)))
QUESTIONS = 5


@dataclass(frozen=True)
class Fault:
    """A question that was not answered alike."""

    seed: int
    number: int
    asked: model.Asked | str
    answers: dict[str, list[str] | None]

    def __str__(self) -> str:
        wanted = self.answers["brute force"]
        lines = [f"seed {self.seed}, question {self.number}: {self.asked}"]
        lines += [f"  try it: .venv/bin/python -m tests.any.test_any {self.seed} {self.number}"]
        for name, told in self.answers.items():
            lines.append(
                f"  {name}: {len(told or ()) - 1} rows{'' if told is None or wanted is None else difference(told, wanted)}"
            )
        return "\n".join(lines)


def difference(told: Sequence[str], wanted: Sequence[str]) -> str:
    """Return the first row that is not as wanted."""
    for row in range(1, min(len(told), len(wanted))):
        if not model.alike([told[0], told[row]], [wanted[0], wanted[row]]):
            return f"\n    has   {told[row]}\n    wants {wanted[row]}"
    return "" if told[0] == wanted[0] else f"\n    has   {told[0]}\n    wants {wanted[0]}"


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, str]]:
    """Give the URLs of a SQLite store and of the double, both empty."""
    with grounds("sqlite", folder) as sqlite, grounds("double", folder) as double:
        yield {"sqlite": sqlite.url, "elasticsearch": double.url}


def reading(data: Data, folder: Path) -> ReadOptions:
    told = ReadOptions(run=data.run, t0=data.zero, recorded_unit_ns=1)
    if not data.described:
        return told
    (folder / "events.yml").write_text(DESCRIPTION)
    return replace(told, recorded_unit_ns=None, description=parse_description(folder / "events.yml"))


def live(data: Data, url: str, folder: Path) -> None:
    """Lead a run through its life in a store."""
    for number, one in enumerate(data.loads):
        with open_store(url, write=True) as store:
            if one.delete:
                store.delete_run(data.run)
            elif one.coarsen:
                store.coarsen(data.run, one.coarsen)
            else:
                there = folder / f"{number}"
                if not there.exists():
                    write(there, one.files)
                options = LoadOptions(
                    read=reading(data, folder),
                    step_ns=data.step,
                    force=True,
                    attribution="in-flight" if data.weighed else "completion",
                    replace=one.replace,
                    jobs=1,
                    offsets=False,
                )
                load([there], store, options)


def lacks_of(data: Data) -> list[model.Lack]:
    return [lack for one in data.files for lack in one.lacks]


def held(data: Data) -> model.Held:
    """Return what a store must hold of a run at the end of its life."""
    written = [row for one in data.files for row in one.written]
    found = model.held(data.run, written, data.step, data.start, lacks_of(data))
    return model.coarsened(found, data.coarse) if data.coarse else found


def question_of(data: Data, one: model.Asked) -> Question:
    begin, end = (None if at is None else Instant(*at) for at in (one.begin, one.end))
    attribution = "in-flight" if data.weighed else "completion"
    words = {"by": one.by, "where": one.where, "step": one.step, "begin": begin, "end": end}
    return Question(runs=(data.run,), attribution=attribution, **words)


def answered(origin: Any, question: Question) -> list[str] | None:
    try:
        return list(csv_lines(percentiles(origin.answer(question), WANTED)))
    except TailboardError as error:
        refusals.append(str(error))
        return None
    except Exception as error:  # an internal error is an answer that nothing else gives
        return [f"{type(error).__name__}: {error}"]


def exported(origin: Any, data: Data) -> list[tuple[Any, ...]]:
    """Return all that is held in the order in which it is exported: labels, layout, start, bins, counts."""
    return [
        (windows.table[code], str(windows.layout), start, windows.bins[low:high].tolist(), windows.counts[low:high].tolist())
        for windows in origin.windows(Question(runs=(data.run,), by=LABELS, step="auto"))
        for code, start, low, high in zip(
            windows.series.tolist(),
            windows.start_ns.tolist(),
            windows.indptr[:-1].tolist(),
            windows.indptr[1:].tolist(),
            strict=True,
        )
    ]


def export_faults(seed: int, origins: dict[str, Any], data: Data) -> Iterator[Fault]:
    """Yield where exports differ: files hold what a store does that was loaded at their own step."""
    found = {}
    for name, opened in origins.items():
        with opened() as origin:
            found[name] = [repr(row) for row in exported(origin, data)]
    if data.step != data.natural or data.coarse:
        del found["files"]
    if any(rows != found["sqlite"] for rows in found.values()):
        yield Fault(seed, QUESTIONS, "export", {"brute force": None, **found})


def faults(seed: int, urls: dict[str, str], folder: Path, numbers: Sequence[int]) -> Iterator[Fault | None]:
    """Yield, for each question about a data set, where its answers differ, or None."""
    data = made(seed)
    for url in urls.values():
        live(data, url, folder / "loads")
    files = Files([write(folder / "files", data.files)], reading(data, folder), jobs=1)
    assert files.stored == {data.run: data.natural}, (seed, files.stored, data.natural)
    ways = {name: functools.partial(open_store, url) for name, url in urls.items()}
    yield from export_faults(seed, {**ways, "files": functools.partial(nullcontext, files)}, data)
    mine = held(data)
    written = [row for one in data.files for row in one.written]
    as_read = model.held(data.run, written, data.natural, min(one.zero for one in data.files), lacks_of(data))
    rng = random.Random(f"{seed} questions")
    for number, one in enumerate(asked(rng, data) for _ in range(max(numbers) + 1)):
        if number not in numbers:
            continue
        question = question_of(data, one)
        if data.weighed:
            yield weighed_fault(seed, number, one, question, ways, None if data.coarse or data.step != data.natural else files)
            continue
        answers = {"brute force": brute(mine, one)}
        for name, url in urls.items():
            with open_store(url) as store:
                answers[name] = answered(store, question)
        wanted = answers["brute force"]
        if not all(same(told, wanted) for told in answers.values()) or answers["sqlite"] != answers["elasticsearch"]:
            yield Fault(seed, number, one, answers)
        straight = isinstance(one.step, int) and one.step % data.natural
        if straight and (one.begin or one.end):
            continue  # only of files, which are then cut at the very edges
        cut = model.held(data.run, written, one.step, as_read.start, lacks_of(data)) if straight else as_read
        if not same(told := answered(files, question), wanted := brute(cut, one)):
            yield Fault(seed, number, one, {"brute force": wanted, "files": told})
        yield None


def weighed_fault(
    seed: int, number: int, one: model.Asked, question: Question, ways: dict[str, Any], files: Files | None
) -> Fault | None:
    """Return where shares in flight differ between stores and files."""
    answers: dict[str, list[str] | None] = {}
    for name, opened in ways.items():
        with opened() as store:
            answers[name] = answered(store, question)
    if files is not None and not (isinstance(one.step, int) and one.step % files.stored[question.runs[0]]):
        answers["files"] = answered(files, question)
    if all(told == answers["sqlite"] for told in answers.values()):
        return None
    return Fault(seed, number, one, {"brute force": answers["sqlite"], **answers})


def brute(one: model.Held, question: model.Asked) -> list[str] | None:
    return model.answer([one], question)


def same(told: list[str] | None, wanted: list[str] | None) -> bool:
    return told == wanted if told is None or wanted is None else told == wanted or model.alike(told, wanted)


def ended(data: Data, urls: dict[str, str], folder: Path) -> None:
    """Let go of a run."""
    shutil.rmtree(folder, ignore_errors=True)
    for url in urls.values():
        with open_store(url, write=True) as store:
            store.delete_run(data.run)


def test_any_question_has_one_answer(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    found = []
    with stores(tmp_path) as urls:
        for seed in range(figure(60, 60, 4000)):
            told = list(faults(seed, urls, tmp_path / "set", range(QUESTIONS)))
            found += [str(fault) for fault in told if fault is not None]
            ended(made(seed), urls, tmp_path / "set")
    assert not found, "\n".join(found)


def main(words: Sequence[str]) -> None:
    """Ask the questions of some seeds, or one of them, and print what is not answered alike."""
    first, _, last = words[0].partition("-")
    numbers = [int(words[1])] if len(words) > 1 else range(QUESTIONS)
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as urls:
        for seed in range(int(first), int(last or first) + 1):
            there = Path(folder) / "set"
            try:
                for fault in faults(seed, urls, there, numbers):
                    if fault is not None:
                        print(fault, flush=True)
            except Exception as error:
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
            ended(made(seed), urls, there)


if __name__ == "__main__":
    main(sys.argv[1:])
