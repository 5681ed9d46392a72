"""Logs added up before they are stored: any question that does not ask for the labels that were added up has the same answer, byte for byte."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.store import open_store
from ingest.store.coverage import LABELS
from tests.any.making import MS, SECOND, Data, File, Load, Purse, asked, hist, life, made_run
from tests.any.test_any import answered, difference, live, question_of, stores
from tests.effort import figure

QUESTIONS = 6


def with_jobs(rng: random.Random, data: Data) -> Data:
    """Return a run in which hosts have further jobs, that are loaded at once or one after another, and never watched."""
    files: list[File] = list(data.files)
    folders = sorted({str(Path(file.name).parent) for file in files})
    if data.natural <= 5 * SECOND and not data.described:
        for folder in folders:
            for job in range(2, rng.randint(2, 5)):
                log = hist(rng, data.run, folder, data.zero, data.natural // MS, Purse(9))
                files.append(replace(log, name=str(Path(folder) / f"a_clat_hist.{job}.log")))
    loads, start = life(rng, tuple(files), data.step, watched=False)
    if rng.random() < 0.4:  # the jobs come one after another
        names = sorted({Path(file.name).name for file in files})
        turns = [tuple(file for file in files if Path(file.name).name in names[: many + 1]) for many in range(len(names))]
        loads, start = (*(Load(turn) for turn in turns), *(load for load in loads if load.coarsen)), min(f.zero for f in files)
    return replace(data, files=tuple(files), loads=loads, start=start)


def unlike(seed: int, urls: Sequence[tuple[str, str]], folder: Path) -> list[str]:
    """Return the questions about a random run that stores answer otherwise where its logs were added up."""
    rng = random.Random(f"{seed} added up")
    data = with_jobs(rng, made_run(rng, f"d{seed}", small=rng.random() < 0.8))
    if data.samples > 1 << 53:
        return []
    labels = tuple(label for label in LABELS if rng.random() < 0.6) or ("job",)
    for number, (plain, added) in enumerate(urls):
        live(data, "plain", plain, folder / str(number))
        live(data, "added", added, folder / str(number), labels)
    found = []
    for number in range(QUESTIONS):
        asking = asked(rng, (data,))
        asking = replace(asking, by=tuple(label for label in asking.by if label not in labels))
        if {*asking.where} & {*labels}:
            continue
        question = question_of([data], asking)
        answers = []
        for pair in urls:
            for url in pair:
                with open_store(url) as store:
                    answers.append(answered(store, question))
        if any(answer != answers[0] for answer in answers):
            seen = [f"{len(answer or ())} rows{difference(answer or [''], answers[0] or [''])}" for answer in answers]
            found.append("\n".join([f"seed {seed}, question {number}, {labels}: {asking}", *seen]))
    return found


def test_any_question_without_added_labels_has_the_same_answer(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    found: list[str] = []
    for seed in range(figure(1, 2, 1500)):
        with stores(tmp_path) as plain, stores(tmp_path) as added:
            urls = [(mine.url, other.url) for mine, other in zip(plain, added, strict=True)]
            found += unlike(seed, urls, tmp_path / "set")
        shutil.rmtree(tmp_path / "set", ignore_errors=True)
    assert not found, "\n".join(found)
