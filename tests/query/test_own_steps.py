"""Whether a step is too fine is a matter of each source: no order and no split of loads changes an answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.core.errors import TailboardError, UsageError
from ingest.core.grid import stored_step
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.compare import Pair, compare
from ingest.query.files import Files
from ingest.query.heatmap import distribution, heatmap
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.table import Table
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.lifecycle import CoarserBins
from ingest.view.text import csv_lines
from tests.effort import figure
from tests.oracles import hdr, logs
from tests.store.grounds import grounds

SECOND = 1_000_000_000
ZERO = 1_700_000_000 * SECOND
OPTIONS = ReadOptions(run="r", t0=ZERO)
WANTED = Wanted(parse_percentiles("50,99"))


def fio(folder: Path, host: str, width_ms: int, rows: int, rng: random.Random | None = None) -> Path:
    """Write a histogram log of fio whose rows are so wide: with `rng` about so wide, of any counts."""
    lines, at = [], 0
    for _ in range(rows):
        at += width_ms if rng is None else int(width_ms * rng.uniform(0.97, 1.04))
        bins = {40: 100} if rng is None else {rng.randrange(200): rng.randint(1, 9) for _ in range(rng.randint(1, 4))}
        lines.append((at, 0, bins))
    folder.mkdir(exist_ok=True)
    path = folder / f"x_clat_hist.1.log.{host}"
    path.write_text(logs.text(lines, 232))
    return path


def hlog(folder: Path, process: str, width_ms: int, rows: int, rng: random.Random) -> Path:
    """Write a log of HdrHistogram whose rows are about so wide."""
    lines, at = [], 0
    for _ in range(rows):
        wide = int(width_ms * rng.uniform(0.97, 1.04))
        counts = {rng.randrange(2000): rng.randint(1, 9) for _ in range(rng.randint(1, 4))}
        lines.append(hdr.line(f"{at / 1000:.3f}", f"{wide / 1000:.3f}", counts))
        at += wide
    folder.mkdir(exist_ok=True)
    path = folder / f"{process}.hlog"
    path.write_text(hdr.log(lines))
    return path


def answered(origin: Any, question: Question) -> list[str] | str:
    """Return what every table of an answer says: percentiles, heat map, distribution, and how it compares with itself by group."""
    try:
        answer = origin.answer(question)
        tables = [percentiles(answer, WANTED), heatmap(answer), distribution(answer), *compared(origin, question)]
        return [line for table in tables for line in csv_lines(table)]
    except TailboardError as error:
        return type(error).__name__


def compared(origin: Any, question: Question) -> Iterator[Table]:
    """Yield how one host, or process, compares with all of them: over the whole range, bounds from the windows of a question."""
    if question.by and not question.where and question.step != "all":
        sides = {label: replace(question, by=(), where=where) for label, where in (("one", {question.by[0]: "h1"}), ("all", {}))}
        whole = {label: origin.answer(replace(side, step="all")) for label, side in sides.items()}
        windows = {label: (origin.answer(side),) for label, side in sides.items()}
        yield compare(Pair(whole["one"], whole["all"], (), (windows["one"], windows["all"])), WANTED.percentiles)


def loaded(url: str, parts: Sequence[Sequence[Path]]) -> None:
    """Load some files after others."""
    for paths in parts:
        with open_store(url, write=True) as store:
            load(paths, store, LoadOptions(read=OPTIONS, jobs=1))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return fio(tmp_path / "logs", "h1", 1000, 30), fio(tmp_path / "logs", "h2", 2500, 12)


ORDERS = {"one by one": ((0,), (1,)), "the wide one first": ((1,), (0,)), "at once": ((0, 1),)}
ASKED = {
    "all": Question(by=("host",), step="all"),
    "auto": Question(by=("host",)),
    "the wide one": Question(where={"host": "h2"}),
    "as wide as all": Question(by=("host",), step=5 * SECOND),
    "a range": Question(
        by=("host",), step="all", begin=Instant(3 * SECOND, relative=True), end=Instant(11 * SECOND, relative=True)
    ),
    "merged": Question(step=10 * SECOND),
}


@pytest.mark.parametrize("asked", ASKED)
def test_no_order_of_loads_changes_an_answer(pair: tuple[Path, Path], tmp_path: Path, asked: str) -> None:
    wanted = answered(Files(pair, OPTIONS, jobs=1), ASKED[asked])
    assert not isinstance(wanted, str)
    for name, order in ORDERS.items():
        url = f"sqlite:{tmp_path / name}.db"
        loaded(url, [[pair[number] for number in part] for part in order])
        with open_store(url) as store:
            assert answered(store, ASKED[asked]) == wanted, name


def test_a_step_finer_than_the_rows_of_one_source_names_it(pair: tuple[Path, Path], tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    loaded(url, [[pair[0]], [pair[1]]])
    fine = Question(by=("host",), step=SECOND)
    with open_store(url) as store:
        for origin in (store, Files(pair, OPTIONS, jobs=1)):
            with pytest.raises(
                UsageError, match=r"a step of 1s is finer than the rows of .*x_clat_hist.1.log.h2 \(2500ms\).*--force"
            ):
                origin.answer(fine)
            origin.answer(Question(step=SECOND, where={"host": "h1"}))
            with pytest.raises(UsageError, match=r"finer than the rows \(2500ms\)"):
                origin.answer(Question(step=SECOND, where={"host": "h2"}))


def test_rows_that_are_spread_are_not_complete_and_those_of_others_are(pair: tuple[Path, Path], tmp_path: Path) -> None:
    told = []
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        load(pair, store, LoadOptions(read=OPTIONS, step_ns=SECOND, force=True, jobs=1))
        for origin in (store, Files(pair, OPTIONS, jobs=1)):
            answer = origin.answer(Question(by=("host",), step=SECOND, force=True))
            table = percentiles(answer, WANTED)
            told.append(list(csv_lines(table)))
            hosts, complete = table.columns["host"], table.columns["complete"]
            assert not complete[hosts == "h2"].any()
            assert complete[hosts == "h1"][:-1].all()  # nobody knows what came after its last row
            assert sum("2500ms wide" in text and "h2" in text for text in answer.warnings) == 1
            wide = origin.answer(Question(by=("host",), step=5 * SECOND))
            assert percentiles(wide, WANTED).columns["complete"][:-2].all()
            assert not any("wide" in text for text in wide.warnings)
    assert told[0] == told[1]


@pytest.mark.parametrize("ground", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", ORDERS)
def test_r2_a_forced_step_is_refused_whichever_load_was_the_first(tmp_path: Path, ground: str, order: str) -> None:
    """A store that the wide log came first to has nothing finer of it. One that the fine log came first to answers no more."""
    pair = fio(tmp_path / "logs", "h1", 1000, 30), fio(tmp_path / "logs", "h2", 10_000, 3)
    with grounds(ground, tmp_path) as there:
        loaded(there.url, [[pair[number] for number in part] for part in ORDERS[order]])
        with open_store(there.url) as store:
            for step, where in ((SECOND, {}), (5 * SECOND, {}), (SECOND, {"host": "h2"})):
                with pytest.raises(
                    UsageError, match=r"finer than the rows.*\(10s\).*; --force allows it of files, and load --step"
                ):
                    store.answer(Question(by=("host",), step=step, where=where, force=True))
            finer = Question(by=("host",), step=SECOND, where={"host": "h1"}, force=True)
            assert answered(store, finer) == answered(Files(pair, OPTIONS, jobs=1), finer)


def test_a_load_that_is_told_a_step_names_the_source_that_is_too_wide(pair: tuple[Path, Path], tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    with open_store(url, write=True) as store:
        with pytest.raises(UsageError, match=r"finer than the rows of .*h2 \(2500ms\)"):
            load(pair, store, LoadOptions(read=OPTIONS, step_ns=SECOND, jobs=1))
        load(pair, store, LoadOptions(read=OPTIONS, step_ns=SECOND, force=True, jobs=1))
    with open_store(url) as store:  # it was told so, and says so
        table = percentiles(store.answer(Question(by=("host",), step=SECOND)), WANTED)
    assert not table.columns["complete"][table.columns["host"] == "h2"].any()


@pytest.mark.parametrize("ground", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["alone", "added up", "coarsened", "read again", "wider bins", "watched"])
def test_r2_a_log_keeps_its_own_windows_in_a_run_of_wider_ones(tmp_path: Path, ground: str, how: str) -> None:
    """The first log of the run was wide. What is asked of a finer one is answered as from files, and `runs check` finds nothing."""
    wide = fio(tmp_path / "wide", "h2", 10_000, 3)
    fine, more = (fio(tmp_path / "logs", host, 1000, 30) for host in ("h1", "h3"))
    options = LoadOptions(read=OPTIONS, jobs=1, add_up=("job",) if how == "added up" else ())
    asked = [Question(step=step, where={"host": "h[13]"}, by=by) for step in (SECOND, 5 * SECOND) for by in ((), ("host",))]
    with grounds(ground, tmp_path) as there:
        for paths in ([wide], [fine, more])[: 1 if how == "watched" else 2]:
            with open_store(there.url, write=True) as store:
                load(paths, store, options)
        if how == "watched":
            words = ("--run", "r", "--t0", "2023-11-14T22:13:20Z", "--interval", "50ms", "--until-idle", "200ms")
            assert command(["watch", str(fine.parent), *words, "--store", there.url]) == 0
        with open_store(there.url, write=True) as store:
            if how == "coarsened":
                store.coarsen("r", 30 * SECOND)
                asked = [replace(question, step=30 * SECOND) for question in asked]
            if how == "wider bins":
                store.widen("r", CoarserBins(coarseness=1))
            if how == "read again":
                fine.write_text(fine.read_text() + logs.text([(31_000, 0, {40: 7})], 232))
                load([fine], store, options)
        files = Files([wide, fine, more], OPTIONS, jobs=1)
        with open_store(there.url) as store:
            for question in asked:
                told = answered(store, question)
                assert told == answered(files, question) if how != "wider bins" else not isinstance(told, str)
            assert answered(store, Question(by=("host",), step=30 * SECOND)) == answered(
                files, Question(by=("host",), step=30 * SECOND)
            )
            assert not store.verify(lambda _: True).faults


WIDTHS = (100, 1000, 1000, 2500, 10_000)


def made(folder: Path, rng: random.Random) -> tuple[list[Path], str, dict[str, int]]:
    """Write two to four logs of one tool that last about as long; return the label that tells them apart, rows' ms by its values."""
    maker, label = rng.choice(((fio, "host"), (hlog, "process")))
    widths = {f"h{number}": rng.choice(WIDTHS) for number in range(rng.randint(2, 4))}
    return [maker(folder, name, ms, rng.randint(20_000, 40_000) // ms + 2, rng) for name, ms in widths.items()], label, widths


def parts_of(rng: random.Random, paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield all the paths, in any order and in any parts."""
    left = rng.sample(paths, len(paths))
    while left:
        many = rng.randint(1, len(left))
        yield left[:many]
        left = left[many:]


def questions(rng: random.Random, label: str) -> Iterator[Question]:
    for _ in range(8):
        begin, end = (Instant(rng.randrange(25_000) * 10**6, relative=True) if rng.random() < 0.4 else None for _ in range(2))
        step = rng.choice(("all", "auto", *(seconds * SECOND for seconds in (1, 2, 5, 10, 20, 30))))
        where = rng.choice(({}, {}, {label: "h0"}, {label: "h[12]"}))
        by, force = rng.choice(((), (label,))), rng.random() < 0.5
        yield Question(by=by, where=where, step=step, begin=begin, end=end, force=force)


def kept_ns(widths: Mapping[str, int], question: Question) -> int:
    """Return what a step of a store must be a multiple of: the step that the widest rows suggest that are asked for."""
    [asked] = question.where.values() or ["h*"]
    return max(stored_step(ms * 10**6) for name, ms in widths.items() if fnmatch(name, asked))


@pytest.mark.slow
def test_files_and_stores_give_the_same_rows_however_they_were_loaded(tmp_path: Path) -> None:
    """A run is stored at the step that its first load suggests, and no answer shows which that was, nor does a refusal."""
    found, asked, turns = [], 0, figure(2, 3, 400)
    with grounds("sqlite", tmp_path) as sqlite, grounds("double", tmp_path) as double:
        for seed in range(turns):
            rng = random.Random(seed)
            paths, label, widths = made(tmp_path / f"logs {seed}", rng)
            files = Files(paths, OPTIONS, jobs=1)
            for url in (sqlite.url, double.url):
                loaded(url, list(parts_of(rng, paths)))
                with open_store(url) as store:
                    for question in questions(rng, label):
                        if isinstance(question.step, int) and question.step % kept_ns(widths, question):
                            assert answered(store, question) == "UsageError"
                            continue
                        if answered(store, question) != answered(files, question):
                            found.append((seed, url, question))
                        asked += 1
                with open_store(url, write=True) as store:
                    store.delete_run("r")
    assert not found
    assert asked > 8 * turns
