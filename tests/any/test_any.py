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

from ingest.core.errors import CapacityError, TailboardError
from ingest.core.labels import LABELS
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.live.watch.cycle import WatchCycle
from ingest.live.watch.state import Watching
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import Found, ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.any import model
from tests.any.making import DESCRIPTION, MOST_IN_A_SERVER, Data, File, asked, made, write
from tests.effort import figure
from tests.live.feeding import Clock
from tests.store.grounds import ElasticGround, SqliteGround, grounds

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
def stores(folder: Path) -> Iterator[tuple[SqliteGround, ElasticGround]]:
    """Give a SQLite store and the double, both empty."""
    with grounds("sqlite", folder) as sqlite, grounds("double", folder) as double:
        yield sqlite, double


def reading(data: Data, folder: Path) -> ReadOptions:
    told = ReadOptions(run=data.run, t0=data.zero, recorded_unit_ns=1)
    if not data.described:
        return told
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.yml").write_text(DESCRIPTION)
    return replace(told, recorded_unit_ns=None, description=description_of(str(folder / "events.yml")))


def live(data: Data, name: str, url: str, folder: Path, add_up: tuple[str, ...] = ()) -> None:
    """Lead a run through its life in a store; its loads `add_up` labels."""
    for number, one in enumerate(data.loads):
        with open_store(url, write=True) as store:
            if one.delete:
                store.delete_run(data.run)
            elif one.coarsen:
                store.coarsen(data.run, one.coarsen)
            else:
                there = folder / f"{name} {number}"
                options = LoadOptions(
                    read=reading(data, folder),
                    step_ns=data.step,
                    force=True,
                    attribution="in-flight" if data.weighed else "completion",
                    replace=one.replace,
                    jobs=1,
                    offsets=False,
                    add_up=add_up,
                )
                if one.watch:
                    watched(there, one.files, store, options)
                else:
                    load([write(there, one.files)], store, options)


def watched(folder: Path, files: Sequence[File], store: Any, options: LoadOptions) -> None:
    """Load files as they grow: logs of HdrHistogram line by line, others once they are there."""
    growing = [replace(one, text=one.text[: one.text.rindex("\n", 0, len(one.text) * 2 // 3) + 1]) for one in files]
    clock = Clock()
    watch = WatchCycle(
        Watching.begun(
            [write(folder, growing if files[0].name.endswith(".hlog") else files)], store, options, clock, clock.now_ns
        )
    )
    for _ in range(2):
        watch.cycle()
        write(folder, files)
        clock.seconds += 2
    watch.cycle(last=True)
    watch.settle()


def lacks_of(data: Data) -> list[model.Lack]:
    return [lack for one in data.files for lack in one.lacks]


def held(data: Data) -> model.Held:
    """Return what a store must hold of a run at the end of its life."""
    written = [row for one in data.files for row in one.written]
    found = model.held(data.run, written, data.step, data.start, lacks_of(data))
    return model.coarsened(found, data.coarse) if data.coarse else found


def question_of(runs: Sequence[Data], one: model.Asked) -> Question:
    begin, end = (None if at is None else Instant(*at) for at in (one.begin, one.end))
    attribution = "in-flight" if runs[0].weighed else "completion"
    words = {"by": one.by, "where": one.where, "step": one.step, "begin": begin, "end": end, "merge_runs": one.merge}
    return Question(runs=tuple(data.run for data in runs), attribution=attribution, **words)


def opened(runs: Sequence[Data], folder: Path) -> Files:
    """Return the files of runs, each in a folder of its own and with what is told of it."""
    return joined([Files([write(folder / data.run, data.files)], reading(data, folder), jobs=1) for data in runs])


def joined(each: Sequence[Files]) -> Files:
    """Return the files of several runs as if they were those of one archive."""
    found = Found(
        sources=tuple(source for one in each for source in one.found.sources),
        skipped=(),
        labels={run: labels for one in each for run, labels in one.found.labels.items()},
        caveats=tuple(caveat for one in each for caveat in one.found.caveats),
        missing=tuple(missing for one in each for missing in one.found.missing),
    )
    each[0].found, each[0].stored = found, {run: step for one in each for run, step in one.stored.items()}
    return each[0]


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
        for windows in origin.windows(replace(question_of([data], model.Asked(step="auto")), by=LABELS))
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
    for name, given in origins.items():
        with given() as origin:
            found[name] = [repr(row) for row in exported(origin, data)]
    if data.step != data.natural or data.coarse:
        found.pop("files", None)
    if any(rows != found["sqlite"] for rows in found.values()):
        yield Fault(seed, QUESTIONS, "export", {"brute force": None, **found})


def filled(runs: Sequence[Data], urls: dict[str, str], folder: Path) -> dict[str, Any]:
    """Return how each store is opened that holds the runs: a server takes no more samples of a run than its sums can hold."""
    ways = {}
    for name, url in urls.items():
        few = all(data.samples <= MOST_IN_A_SERVER for data in runs)
        for data in runs:
            if few or name == "sqlite":
                live(data, name, url, folder / data.run)
            elif data.samples > MOST_IN_A_SERVER:
                with pytest.raises(CapacityError):
                    live(data, name, url, folder / data.run)
        if few or name == "sqlite":
            ways[name] = functools.partial(open_store, url)
    return ways


def faults(seed: int, urls: dict[str, str], folder: Path, numbers: Sequence[int]) -> Iterator[Fault | None]:
    """Yield, for each question about a data set, where its answers differ, or None."""
    runs = made(seed)
    ways = filled(runs, urls, folder / "loads")
    files = opened(runs, folder)
    assert files.stored == {data.run: data.natural for data in runs}, (seed, files.stored)
    for data in runs:
        yield from export_faults(seed, {**ways, **({} if runs[1:] else {"files": functools.partial(nullcontext, files)})}, data)
    mine = [held(data) for data in runs]
    rng = random.Random(f"{seed} questions")
    for number, one in enumerate(asked(rng, runs) for _ in range(max(numbers) + 1)):
        if number not in numbers:
            continue
        question = question_of(runs, one)
        if runs[0].weighed:
            [data] = runs
            yield weighed_fault(seed, number, one, question, ways, None if data.coarse or data.step != data.natural else files)
            continue
        answers = {"brute force": model.answer(mine, one)}
        for name, way in ways.items():
            with way() as store:
                answers[name] = answered(store, question)
        wanted = answers["brute force"]
        if not all(same(told, wanted) for told in answers.values()) or len({str(answers[name]) for name in ways}) > 1:
            yield Fault(seed, number, one, answers)
        straight = isinstance(one.step, int) and any(one.step % data.natural for data in runs)
        if straight and (one.begin or one.end):
            continue  # only of files, which are then cut at the very edges
        if not same(told := answered(files, question), wanted := model.answer([as_read(data, one) for data in runs], one)):
            yield Fault(seed, number, one, {"brute force": wanted, "files": told})
        yield None


def as_read(data: Data, one: model.Asked) -> model.Held:
    """Return what files hold of a run: they are cut at the very step that is asked for where their own does not divide it."""
    step = one.step if isinstance(one.step, int) and one.step % data.natural else data.natural
    written = [row for each in data.files for row in each.written]
    return model.held(data.run, written, step, min(each.zero for each in data.files), lacks_of(data))


def weighed_fault(
    seed: int, number: int, one: model.Asked, question: Question, ways: dict[str, Any], files: Files | None
) -> Fault | None:
    """Return where shares in flight differ between stores and files."""
    answers: dict[str, list[str] | None] = {}
    for name, way in ways.items():
        with way() as store:
            answers[name] = answered(store, question)
    if files is not None and not (isinstance(one.step, int) and one.step % files.stored[question.runs[0]]):
        answers["files"] = answered(files, question)
    if all(told == answers["sqlite"] for told in answers.values()):
        return None
    return Fault(seed, number, one, {"brute force": answers["sqlite"], **answers})


def same(told: list[str] | None, wanted: list[str] | None) -> bool:
    return told == wanted if told is None or wanted is None else told == wanted or model.alike(told, wanted)


def asked_of(seed: int, grounds: tuple[SqliteGround, ElasticGround], folder: Path, numbers: Sequence[int]) -> Iterator[Fault]:
    """Yield the faults of a seed in stores that are empty before and after."""
    sqlite, double = grounds
    urls = {"sqlite": sqlite.url, "elasticsearch": double.url}
    try:
        for fault in faults(seed, urls, folder, numbers):
            if fault is not None:
                yield fault
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for ending in ("", "-wal", "-shm"):
            sqlite.path.with_name(f"{sqlite.path.name}{ending}").unlink(missing_ok=True)
        double.empty()


def test_any_question_has_one_answer(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    found = []
    with stores(tmp_path) as both:
        for seed in range(figure(8, 14, 4000)):
            found += [str(fault) for fault in asked_of(seed, both, tmp_path / "set", range(QUESTIONS))]
    assert not found, "\n".join(found)


def main(words: Sequence[str]) -> None:
    """Ask the questions of some seeds, or one of them, and print what is not answered alike."""
    first, _, last = words[0].partition("-")
    numbers = [int(words[1])] if len(words) > 1 else range(QUESTIONS)
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as both:
        for seed in range(int(first), int(last or first) + 1):
            try:
                for fault in asked_of(seed, both, Path(folder) / "set", numbers):
                    print(fault, flush=True)
            except Exception as error:
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
