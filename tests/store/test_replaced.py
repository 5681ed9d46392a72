"""R1: what is asked while a run is loaded anew is of the old reading or of the new one, and what it lacks it says.

A record never changes what documents mean that are still there: neither while a replacement is under way nor where it was
killed. Questions are asked between any two writes of the load, by a connection of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ingest.core.errors import StoreError
from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import NothingMatchesError, Question
from ingest.query.table import groups_in
from ingest.store import open_store
from ingest.store.elastic.client import Connection
from ingest.store.elastic.holdings import ElasticHoldings
from ingest.store.elastic.store import ElasticStore
from ingest.store.sqlite.store import SqliteStore
from tests.effort import figure
from tests.live.feeding import EPOCH, HEAD, Clock, begun, log_lines
from tests.oracles.logs import text
from tests.store.grounds import grounds, loaded
from tests.store.test_overtaken import once

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
WANTED = Wanted(parse_percentiles("50,100"))
QUESTIONS = (
    Question(step="all"),
    Question(by=("host",), step="all"),
    Question(by=("host", "op"), step=10 * SECOND),
    Question(by=("job",), step=30 * SECOND),
)
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


class KilledError(BaseException):
    """The load ends here, between two writes, as a SIGKILL would end it."""


@pytest.fixture(params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def ground(request: Any, tmp_path: Path) -> Iterator[Any]:
    with grounds(request.param, tmp_path) as found:
        yield found


def some_logs(folder: Path, *, hosts: int = 3, rows: int = 40, seed: int = 1, bins: int = 464) -> Path:
    """Logs of some hosts with rows of a second, two ops and two jobs; of another seed they hold other samples."""
    chance = random.Random(seed)
    folder.mkdir(exist_ok=True)
    for host in range(1, hosts + 1):
        for job in (1, 2):
            lines = [
                (1000 * second, op, {chance.randrange(100, 300) * bins // 464: chance.randrange(1, 9) for _ in range(6)})
                for second in range(1, rows + 1)
                for op in (0, 1)
            ]
            (folder / f"a_clat_hist.{job}.log.h{host}").write_text(text(lines, bins))
    return folder


def asked(url: str, question: Question) -> tuple[Rows, bool]:
    """Return the rows of an answer by window and group: count, whether it is whole, percentiles; and whether it says of a lack."""
    with open_store(url) as store:
        try:
            answer = store.answer(question)
        except NothingMatchesError as error:
            return {}, bool(error.missing)
    table = percentiles(answer, WANTED)
    keys = zip(table.columns["start_ns"].tolist(), table.columns["end_ns"].tolist(), groups_in(table), strict=True)
    numbers = zip(*(table.columns[name].tolist() for name in ("count", "complete", "p50", "p100")), strict=True)
    return dict(zip(keys, numbers, strict=True)), bool(answer.missing)


def fits(rows: Rows, lacks: bool, whole: Rows, *, spans: bool) -> bool:
    """Return whether rows are those of one reading, or say what they lack of it. Rows of a whole range may have other edges."""
    if rows == whole:
        return True
    known = {key[2] if spans else key: row for key, row in whole.items()}
    edges = min(key[0] for key in whole), max(key[1] for key in whole)
    for key, row in rows.items():
        mine = known.get(key[2] if spans else key)
        if mine is None or row[0] > mine[0] or key[0] < edges[0] or key[1] > edges[1]:
            return False
        if row[1] and row != mine:
            return False
    return lacks


def check(url: str, readings: Sequence[list[tuple[Rows, bool]]], what: str) -> None:
    """Hold every answer against the whole readings that there may be."""
    for place, question in enumerate(QUESTIONS):
        try:
            rows, lacks = asked(url, question)
        except Exception as error:
            raise AssertionError(f"{what}: {question.by} {question.step}: {error}") from error
        if not any(fits(rows, lacks, one[place][0], spans=question.step == "all") for one in readings):
            raise AssertionError(f"{what}: {question.by} {question.step}: lacks {lacks}, {rows}\n not of {readings[0][place]}")


@contextmanager
def between_writes(look: Callable[[int], None]) -> Iterator[None]:
    """Call `look` with its number after each transaction of SQLite, and whatever a server has taken."""
    turns, busy = [0], [False]

    def seen() -> None:
        if not busy[0]:
            busy[0] = True
            try:
                turns[0] += 1
                look(turns[0])
            finally:
                busy[0] = False

    real, call, write = SqliteStore.transaction, Connection.call, ElasticStore.write

    @contextmanager
    def transaction(self):
        with real(self) as db:
            yield db
        seen()

    def called(self, *words, **more):
        found = call(self, *words, **more)
        if words[0] != "GET" and "_search" not in words[1] and "_mget" not in words[1]:
            seen()
        return found

    def written(self, *words):
        found = write(self, *words)
        self.flush()
        self.connection.refresh(self.names.all("intervals"))
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SqliteStore, "transaction", transaction)
        patched.setattr(Connection, "call", called)
        patched.setattr(ElasticStore, "write", written)
        yield


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "wider step": ({"step_ns": SECOND}, {"step_ns": 5 * SECOND}),
    "finer step": ({"step_ns": 5 * SECOND}, {"step_ns": SECOND}),
    "start of the run": ({"reading": {"t0": T0}}, {"reading": {"t0": T0 + 3600 * SECOND}}),
    "start a little later": ({"reading": {"t0": T0}}, {"reading": {"t0": T0 + 3 * SECOND}}),
    "clock of a host": ({}, {"reading": {"t0": T0, "host_offset_ns": {"h2": 100 * SECOND}}}),
    "unit": ({}, {"reading": {"t0": T0, "recorded_unit_ns": 1000}}),
    "attribution": ({}, {"attribution": "in-flight"}),
    "nothing": ({}, {}),
    "added up": ({"add_up": ("job",), "step_ns": SECOND}, {"add_up": ("job",), "step_ns": 10 * SECOND}),
}


def readings_of(logs: Sequence[Path], ways: Sequence[dict[str, Any]], folder: Path) -> list[list[tuple[Rows, bool]]]:
    """Return what a store answers that nothing was in before, for each way to load."""
    readings = []
    for words in ways:
        with grounds("sqlite", folder) as clean:
            loaded(clean.url, logs, **words)
            readings.append([asked(clean.url, question) for question in QUESTIONS])
    return readings


def ways_of(change: str) -> list[dict[str, Any]]:
    return [{"reading": {"t0": T0}, "jobs": 1, **words} for words in CHANGES[change]]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_r1_answers_while_a_run_is_replaced_are_of_one_reading(ground, tmp_path: Path, change: str) -> None:
    logs = [some_logs(tmp_path / "logs", rows=20)]
    before, after = ways = ways_of(change)
    readings = readings_of(logs, ways, tmp_path)
    loaded(ground.url, logs, **before)
    with between_writes(lambda turn: check(ground.url, readings, f"after write {turn}")):
        loaded(ground.url, logs, replace=True, **after)
    check(ground.url, readings[1:], "at the end")


@pytest.mark.slow
def test_r1_answers_of_a_server_are_of_one_reading_where_the_start_moves(tmp_path: Path) -> None:
    """The documents of both readings are there under other ids, at one step."""
    with grounds("double", tmp_path) as ground:
        test_r1_answers_while_a_run_is_replaced_are_of_one_reading(ground, tmp_path, "start of the run")


@pytest.mark.cases(2)
@pytest.mark.parametrize("change", CHANGES)
def test_r1_a_replacement_that_was_killed_leaves_answers_of_one_reading(ground, tmp_path: Path, change: str) -> None:
    """Killed after any write; then loaded anew in the first way, the second, or completed."""
    logs, chance = [some_logs(tmp_path / "logs", hosts=2, rows=20)], random.Random(change)
    ways = ways_of(change)
    readings, now = readings_of(logs, ways, tmp_path), 0

    def killed(turn: int, at: int) -> None:
        if turn == at:
            raise KilledError

    loaded(ground.url, logs, **ways[now])
    for _ in range(figure(5, 10)):
        now, at = chance.randrange(2), chance.randrange(1, 10)
        with suppress(KilledError), between_writes(lambda turn, at=at: killed(turn, at)):
            loaded(ground.url, logs, replace=True, **ways[now])
        check(ground.url, readings, f"killed at {at}")
        if chance.random() < 0.4:
            loaded(ground.url, logs, **ways[now])
            check(ground.url, readings[now : now + 1], "completed")
    with open_store(ground.url) as store:
        assert not store.verify(lambda _run: True).findings
    loaded(ground.url, logs, replace=True, **ways[0])
    check(ground.url, readings[:1], "at the end")


@pytest.mark.cases(3)
@pytest.mark.parametrize("change", ["start of the run", "clock of a host", "finer step"])
def test_r1_two_loads_that_give_one_run_two_meanings_are_not_both_taken(ground, tmp_path: Path, change: str) -> None:
    """The second begins between plan and begin of the first, as another program would."""
    logs = [some_logs(tmp_path / "logs", hosts=2, rows=12)]
    more = [some_logs(tmp_path / "more", hosts=3, rows=12)]
    first, second = ways_of(change)
    cls = SqliteStore if ground.url.startswith("sqlite") else ElasticStore
    for replaces in ((True, True), (True, False), (False, True)):
        loaded(ground.url, logs, replace=True, **first)
        mine, other = (second, first) if replaces[0] else (first, second)
        with pytest.MonkeyPatch.context() as patched:
            once(cls, "begin", lambda other=other, anew=replaces[1]: loaded(ground.url, more, replace=anew, **other), patched)
            with pytest.raises(StoreError, match="being loaded"):
                loaded(ground.url, logs if replaces[0] else more, replace=replaces[0], **mine)
        with open_store(ground.url, write=True) as store:
            assert not store.verify(lambda _run: True).findings
            store.delete_run("r", force=True)


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize(("change", "begin"), [("start of the run", 1), ("wider step", 2), ("finer step", 3)])
def test_r1_a_load_after_one_that_was_killed_leaves_no_rollup_of_windows_without_documents(
    tmp_path: Path, change: str, begin: int
) -> None:
    """Killed after each third write of its own, another third a change: what it had deleted, the next load does not find, and
    rollups of it were there.
    """
    logs = [some_logs(tmp_path / "logs", hosts=2, rows=10)]
    first, second = ways_of(change)
    third = {**first, "reading": {"t0": T0 + 7200 * SECOND}}
    step = figure(3, 3, 1)
    readings, at, ended = readings_of(logs, [third], tmp_path), begin - step, False

    def killed(turn: int) -> None:
        if turn == at:
            raise KilledError

    with grounds("double", tmp_path) as ground:
        while not ended:
            at += step
            loaded(ground.url, logs, replace=True, **first)
            with suppress(KilledError), between_writes(killed):
                loaded(ground.url, logs, replace=True, **second)
                ended = True
            loaded(ground.url, logs, replace=True, **third)
            check(ground.url, readings, f"killed at {at}")
            with open_store(ground.url) as store:
                assert not store.verify(lambda _run: True).findings, f"killed at {at}"
        assert at > 8


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("change", ["start of the run", "wider step", "nothing"])
@pytest.mark.parametrize("name", ["rollup_windows", "document_windows"])
def test_r1_an_answer_that_a_replacement_has_overtaken_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, name: str
) -> None:
    """The records were read before, the data after it: whole, or killed."""
    logs, others = [some_logs(tmp_path / "logs", hosts=2, rows=10)], [some_logs(tmp_path / "others", hosts=2, rows=10, seed=2)]
    first, second = ways_of(change)
    readings = [*readings_of(logs, [first], tmp_path), *readings_of(others, [second], tmp_path)]
    question = QUESTIONS[0 if name == "rollup_windows" else 3]
    place = QUESTIONS.index(question)

    def killed(turn: int, at: int) -> None:
        if turn == at:
            raise KilledError

    def replaced(url: str, at: int) -> None:
        with suppress(KilledError), between_writes(lambda turn: killed(turn, at)):
            loaded(url, others, replace=True, **second)

    with grounds("double", tmp_path) as ground:
        for at in (1, 3, 6, 9, 1000):
            loaded(ground.url, logs, replace=True, **first)
            with pytest.MonkeyPatch.context() as patched:
                once(ElasticHoldings, name, lambda at=at: replaced(ground.url, at), patched)
                rows, lacks = asked(ground.url, question)
            spans = question.step == "all"
            assert any(fits(rows, lacks, one[place][0], spans=spans) for one in readings), (at, lacks, rows)
        assert (rows, lacks) == readings[1][place]


@pytest.mark.slow
def test_r1_a_watch_after_a_replacement_that_was_killed_answers_from_no_rollup_of_before(tmp_path: Path) -> None:
    """What the killed load had deleted is two hours earlier; the watch answers final windows from rollups."""
    folder, question, at, ended = (
        tmp_path / "logs",
        Question(by=("host", "op"), step=10 * SECOND, where={"kind": "service"}),
        0,
        False,
    )
    folder.mkdir()
    lines = "".join(log_lines(random.Random(3), 12, width=1.0))
    earlier, now = HEAD + lines, HEAD.replace(str(EPOCH), str(EPOCH + 7200)) + lines

    def killed(turn: int) -> None:
        if turn == at:
            raise KilledError

    while not ended:
        at += 1
        with grounds("double", tmp_path) as ground:
            (folder / "x.hlog").write_text(earlier)
            loaded(ground.url, [folder], step_ns=SECOND)
            (folder / "x.hlog").write_text(now)
            with suppress(KilledError), between_writes(killed):
                loaded(ground.url, [folder], step_ns=SECOND, replace=True)
                ended = True
            clock = Clock()
            with open_store(ground.url, write=True) as store:
                watch = begun(folder, store, clock)
                clock.seconds += 1
                watch.cycle()
                rows, _ = asked(ground.url, question)
                assert not rows or min(start for start, *_ in rows) >= (EPOCH + 7200) // 10 * 10 * SECOND, f"killed at {at}"
