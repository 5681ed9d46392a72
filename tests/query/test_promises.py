"""Every kind of promise over random series, with phases, budgets and missing samples: verdicts and episodes as of a loop."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest

from ingest.core.errors import InputError
from ingest.core.marks import DURING, WORDS, Mark, noted
from ingest.core.units import Instant
from ingest.objectives.check import Checked, check
from ingest.objectives.objectives import read_objectives
from ingest.query.compare import noted_in
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import episodes as oracle
from oracles import promises
from tests.query.incidents import as_yaml, drawn, drawn_marks, written
from tests.query.test_episodes import found
from tests.store.grounds import grounds, loaded

SERIES, CHUNK = 500, 20


@dataclass(frozen=True)
class Case:
    """A random run with what is promised of it: how many of its operations cannot be read, a budget, and marks of a phase."""

    events: list[oracle.Event]
    promise: oracle.Promise
    missing: int
    budget: tuple[Fraction, bool] | None
    word: str
    spans: list[tuple[int, int | None]]
    text: str

    def judged(self, start: int, end: int) -> bool:
        return not self.word or oracle.in_phase(self.word, self.spans, start, end)

    @property
    def marks(self) -> list[Mark]:
        return [
            Mark(Instant(low), f"move {number}", None if high is None else Instant(high))
            for number, (low, high) in enumerate(self.spans)
        ]


def case_of(seed: int) -> Case:
    """Return the case of a seed: its latencies are not within a bin of the threshold, where values are rounded."""
    events, promise = drawn(seed)
    noise = random.Random(f"promise {seed}")
    near = lambda took: abs(took - promise.threshold) < promise.threshold // 50
    events = [(host, op, end, took * 21 // 20 if near(took) else took) for host, op, end, took in events]
    kind = noise.choice(("percentile", "good", "rate"))
    if kind == "rate":
        promise = replace(promise, rate=noise.choice((Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(20))))
    text = as_yaml(promise)
    if kind == "good" and promise.percentile != "100":
        text = text.replace(
            f"percentile: {promise.percentile}, threshold: {promise.threshold}ns",
            f"good: {promise.percentile}% within {promise.threshold}ns",
        )
    share, of_requests = noise.choice(("0", "1", "5", "30")), noise.random() < 0.5 and kind != "rate"
    budget = (Fraction(share) / 100, of_requests) if noise.random() < 0.5 else None
    if budget:
        text = text.replace("no_data:", f"budget: {share}% of {'requests' if of_requests else 'windows'}, no_data:")
    first = min(end for _, _, end, _ in events)
    word, spans = noise.choice(("", *WORDS)), [one for one in drawn_marks(seed) if one[0] >= first]  # others are of no run
    word = word if spans else ""
    if word:
        text = text.replace("no_data:", f"{word}: 'move*', no_data:")
    missing = noise.choice((0, 0, 1, 3)) if len(events) > 10 else 0
    return Case(events, promise, missing, budget, word, spans, text)


def checked(folder: Path, case: Case, ground) -> Checked:
    """Return what check says: of files with marks of files, or of a store that keeps them."""
    path = written(folder, case.events)
    lines = path.read_text().splitlines()
    for _ in range(case.missing):
        lines.insert(random.Random(len(lines)).randint(2, len(lines) - 1), f"{lines[1].split(',')[0]},1oo,read,h1")
    path.write_text("\n".join([*lines, ""]))
    (folder / "SLA.yml").write_text(case.text)
    reading, run = {"description": description_of(str(folder / "events.yml"))}, folder.name
    words = (read_objectives(folder / "SLA.yml"), Question(), folder / "SLA.yml", None)
    marks = case.marks if case.word else []
    if ground is None:
        files = Files([path], ReadOptions(run=run, **reading), jobs=1)
        return check(files.answer, {run: {}}, *words, noted_in(files, marks))
    loaded(ground.url, [path], run=run, reading=reading)
    with open_store(ground.url, write=True) as store:
        store.mark_all(run, [noted("", each.at.ns, each.text, each.end and each.end.ns) for each in marks])
        return check(store.answer, {run: {}}, *words, noted_in(store))


def compared(folder: Path, seeds: range, ground) -> Iterator[str]:
    """Yield the outcome of each group that is judged, after it was held against the loop."""
    for seed in seeds:
        case = case_of(seed)
        promise, every = case.promise, oracle.windows_of(case.events, case.promise)
        filled = {group: windows if promise.rate is None else windows[1:-1] for group, windows in every.items()}
        inside = [one for windows in filled.values() for one in windows if case.judged(one[0], one[0] + promise.window)]
        instants = case.word == DURING and all(high is None for _, high in case.spans)
        if not inside or instants:
            with pytest.raises(InputError, match=r"nothing matches|lies wholly|has no end|fills no window|no mark"):
                checked(folder / str(seed), case, ground)
            continue
        told = checked(folder / str(seed), case, ground)
        if not case.missing:
            assert found(told) == oracle.episodes_of(case.events, promise, judged=case.judged), (seed, case.text)
        verdicts = {tuple(value for _, value in one.labels): one for one in told.verdicts}
        assert verdicts.keys() == every.keys(), seed
        for group, windows in every.items():
            one, expected = verdicts[group], promises.told(windows, promise, case.missing, case.budget, case.judged)
            assert (
                promises.Told(
                    one.windows,
                    one.violated,
                    one.unknown,
                    [(each.start_ns, each.end_ns) for each in one.episodes],
                    one.outcome,
                    one.used,
                )
                == expected
            ), (seed, group, case.missing, case.text)
            yield one.outcome


@pytest.mark.cases(1)
@pytest.mark.parametrize("first", range(0, SERIES, CHUNK))
@pytest.mark.parametrize("kind", ["files", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sqlite", "double"))])
def test_every_promise_is_judged_as_by_a_loop(tmp_path: Path, kind: str, first: int) -> None:
    with ExitStack() as stack:
        ground = None if kind == "files" else stack.enter_context(grounds(kind, tmp_path))
        outcomes = Counter(compared(tmp_path, range(first, first + CHUNK), ground))
    assert outcomes["met"] and outcomes["violated"] and outcomes["cannot tell"], outcomes
