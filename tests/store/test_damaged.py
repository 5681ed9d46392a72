"""Stores that are damaged, cut, or something else: a sentence and 4 from every command, never a wrong number where it can be seen."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError, TailboardError
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.sqlite.file import database_damage
from tests.databases import database
from tests.effort import figure

FIO = Path(__file__).parents[1] / "data" / "fio" / "randrw"
LOG = str(FIO / "a_clat_hist.1.log")
T0 = ("--t0", "2026-11-20T21:00:00Z")
SLA = "objectives:\n  - {name: quick, percentile: 99, threshold: 1us, window: 1s, by: [op]}\n"
PLAIN = {"-wal", "-shm"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A store with two runs, marks and episodes in one file; beside it objectives."""
    folder = tmp_path_factory.mktemp("sound")
    url, sla = f"sqlite:{folder / 's.db'}", folder / "sla.yml"
    sla.write_text(SLA)
    for run in ("r", "q"):
        assert command(["load", LOG, "--run", run, "--store", url, *T0]) == 0
    assert command(["mark", "--run", "r", "--at", "+1s", "osd.3 down", "--store", url]) == 0
    assert command(["check", str(sla), url, "--record"]) == 1
    with database(folder / "s.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return folder / "s.db"


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    (tmp_path / "sla.yml").write_text(SLA)
    return Path(shutil.copy(sound, tmp_path / "x.db"))


def calls(store: Path, *, writing: bool = True) -> list[list[str]]:
    url, folder = f"sqlite:{store}", store.parent
    found = [
        ["percentiles", url],
        ["percentiles", url, "--by", "process", "--step", "1s", "--format", "csv"],
        ["heatmap", url, "--format", "csv"],
        ["distribution", url],
        ["check", str(folder / "sla.yml"), url],
        ["compare", url, "--baseline", "q", "--run", "r"],
        ["trend", url],
        ["runs", "list", "--store", url],
        ["runs", "show", "r", "--store", url],
        ["export", url],
        ["export", url, "--format", "documents"],
    ]
    written = [
        ["load", LOG, "--run", "r", "--store", url, *T0],
        ["load", LOG, "--run", "r", "--replace", "--store", url, *T0],
        ["mark", "--run", "r", "--at", "+2s", "again", "--store", url],
        ["runs", "coarsen", "r", "--step", "10s", "--store", url],
        ["runs", "delete", "q", "--yes", "--store", url],
        ["watch", LOG, "--run", "w", "--store", url, "--until-idle", "1ms", "--interval", "1ms", *T0],
    ]
    return found + (written if writing else [])


def change(statement: str) -> Callable[[Path], None]:
    def done(store: Path) -> None:
        with database(store) as db:
            db.execute("PRAGMA ignore_check_constraints = 1")
            db.execute(statement)
        db.close()

    return done


def cut(share: float) -> Callable[[Path], None]:
    return lambda store: os.truncate(store, int(store.stat().st_size * share))


def zeroed(first: int, pages: int) -> Callable[[Path], None]:
    def done(store: Path) -> None:
        with store.open("r+b") as out:
            out.seek(first * 4096)
            out.write(bytes(pages * 4096))

    return done


def foreign(version: int) -> Callable[[Path], None]:
    def done(store: Path) -> None:
        store.unlink()
        with database(store) as db:
            db.execute("CREATE TABLE bookmarks (url TEXT, run TEXT)")
            db.execute(f"PRAGMA user_version = {version}")
        db.close()

    return done


def unnamed(store: Path) -> None:
    """Name a table in bytes that are no text, and let its statement be none: SQLite tells the name."""
    with database(store) as db:
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET name = CAST(x'6fafaf' AS TEXT), sql = 'CREATE TABLE' WHERE name = 'marks'")
    db.close()


def folder(store: Path) -> None:
    store.unlink()
    store.mkdir()


def pipe(store: Path) -> None:
    store.unlink()
    os.mkfifo(store)


def text(store: Path) -> None:
    store.write_text("this is a text and no store\n" * 1000)


# Every command fails on these; `some` are those that look at what is damaged.
HOPELESS = {
    "cut in its first page": cut(0.01),
    "its first page is zeros": zeroed(0, 1),
    "a text": text,
    "a folder": folder,
    "a named pipe": pipe,
    "another program's file": foreign(0),
    "another program's file of version 1": foreign(1),
    "another program's file of version 3": foreign(3),
    "a table named by bytes": unnamed,
    "no table of runs": change("DROP TABLE runs"),
    "no documents": change("DROP TABLE intervals"),
    "no column of steps": change("ALTER TABLE runs DROP COLUMN step_ns"),
    "a step of text": change("UPDATE runs SET step_ns = 'long'"),
    "no step": change("UPDATE runs SET step_ns = 0"),
    "a start that is no time": change("UPDATE runs SET start_ns = 9223372036854775807"),
    "parameters that are no JSON": change("UPDATE runs SET parameters = '{'"),
    "parameters that are no object": change("UPDATE runs SET parameters = '[1]'"),
    "labels that are a number": change("UPDATE runs SET labels = 7"),
}
SOME = {
    "cut in half": cut(0.5),
    "pages of zeros": zeroed(8, 8),
    "layouts that are none": change("UPDATE series SET layout = 'loglinear'"),
    "layouts past all memory": change("UPDATE series SET layout = 'loglinear:64:99999999999999:1ns:c0:midpoint:open'"),
    "names of bytes": change("UPDATE series SET process = x'ff00ff'"),
    "names of broken text": change("UPDATE series SET process = CAST(x'ff00ff' AS TEXT)"),
    "segments of text": change("UPDATE series SET segment = 'first'"),
    "bins cut": change("UPDATE intervals SET bins = substr(bins, 1, length(bins) - 1)"),
    "bins cut at a bin": change("UPDATE intervals SET bins = x'' WHERE count > 1"),
    "bins of garbage": change("UPDATE intervals SET bins = randomblob(length(bins))"),
    "bins of text": change("UPDATE intervals SET bins = 'none'"),
    "a coding that is none": change("UPDATE intervals SET coding = 77"),
    "another coding": change("UPDATE intervals SET coding = 2"),
    "counts of text": change("UPDATE intervals SET count = 'many'"),
    "other counts": change("UPDATE intervals SET count = count + 1"),
    "windows far away": change("UPDATE intervals SET id = id + 34000000000"),
    "rollups of garbage": change("UPDATE rollups SET bins = randomblob(length(bins))"),
    "rollups that lack samples": change("UPDATE rollups SET count = count + 1"),
    "rollups at no time": change("UPDATE rollups SET end_ns = 9223372036854775807"),
    "rollups without a layout": change("UPDATE rollups SET layout = ''"),
    "accounts that are no JSON": change("UPDATE sources SET account = 'lost'"),
    "accounts that are no object": change("UPDATE sources SET account = '[]'"),
    "generations of text": change("UPDATE sources SET generation = 'young'"),
    "marks at no time": change("UPDATE marks SET at_ns = 'noon'"),
    "episodes without labels": change("UPDATE episodes SET labels = rowid"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_g5_what_is_no_store_is_told_by_every_command(name: str, store: Path, capfd) -> None:
    HOPELESS[name](store)
    before = store.read_bytes() if store.is_file() else b""
    for words in calls(store):
        status, told = command(words), capfd.readouterr().err
        assert (status, told.count("\n")) == (4, 1), (words, told)
        assert str(store) in told and "Error" not in told and "Traceback" not in told, (words, told)
    if before:
        assert store.read_bytes()[100:] == before[100:], "what is damaged is left as it is"


@pytest.mark.cases(11)
@pytest.mark.parametrize("name", SOME)
def test_g5_what_is_damaged_is_told_by_whoever_reads_it(name: str, sound: Path, tmp_path: Path, capfd) -> None:
    reported = 0
    (tmp_path / "sla.yml").write_text(SLA)
    shutil.copy(sound, damaged := tmp_path / "damaged.db")
    SOME[name](damaged)
    for words in calls(store := tmp_path / "x.db"):
        shutil.copy(damaged, store)
        status, told = command(words), capfd.readouterr().err
        assert status in (0, 4) or (status == 1 and words[0] == "check"), (words, told)
        assert "Error" not in told and "Traceback" not in told, (words, told)
        reported += status == 4
        if status == 4:
            assert str(store) in told.splitlines()[-1], (words, told)
    assert reported, "nobody has seen it"


def asked(url: str) -> Iterator[tuple[str, object]]:
    """Yield what a store answers to each question, by name; StoreError and InputError are answers, too."""
    questions = {
        "rollups": Question(by=("op",), step=1_000_000_000),
        "documents": Question(by=("process", "op"), step=1_000_000_000),
        "whole": Question(step="all"),
    }
    for name, question in questions.items():
        with open_store(url) as store:
            answer = store.answer(question)
            yield name, sorted((part.start_ns.tolist(), part.bins.tolist(), part.counts.tolist()) for part in answer.parts)
    with open_store(url) as store:
        yield "windows", sum(int(part.counts.sum()) for part in store.windows(Question()))
        yield "sources", [store.sources(run.run) for run in store.runs()]
        yield "marks", store.marks_of(["r", "q"])
        yield "episodes", store.episodes(["r", "q"])


def test_g5_damaged_bytes_are_told_or_change_nothing(sound: Path, tmp_path: Path, capfd) -> None:
    """Random damage to bytes, ends and pages: never another error than a sentence, and of what is answered hardly any is wrong."""
    store, whole = tmp_path / "x.db", sound.read_bytes()
    shutil.copy(sound.parent / "sla.yml", tmp_path)
    right = dict(asked(f"sqlite:{sound}"))
    seen = silent = 0
    seeds = figure(40, 200, 20_000)
    for seed in range(seeds):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 3, 20))):
            at = chance.randrange(len(damaged) - 64)
            match chance.randrange(4):
                case 0:
                    damaged[at] ^= 1 << chance.randrange(8)
                case 1:
                    damaged[at : at + chance.randrange(1, 64)] = chance.randbytes(chance.randrange(1, 64))
                case 2:
                    page = at // 4096 * 4096
                    damaged[page : page + 4096] = bytes(4096)
                case 3:
                    damaged = damaged[: max(5_000, at)] + bytes(64)
        store.write_bytes(damaged)
        try:
            silent += dict(asked(f"sqlite:{store}")) != right
        except TailboardError:
            seen += 1
        words = chance.choice(calls(store))
        status, told = command(words), capfd.readouterr().err
        assert status in range(5), (seed, words, told)
        assert "Error" not in told and "Traceback" not in told, (seed, words, told)
    assert seen > seeds // 4
    assert silent <= seeds // 4, f"{silent} of {seeds} stores gave other answers without a word"


def test_g5_a_fault_of_the_program_is_not_called_damage(store: Path) -> None:
    with open_store(f"sqlite:{store}") as found, pytest.raises(ZeroDivisionError), found.transaction():  # type: ignore[attr-defined]
        _ = 1 // 0
    with database(store) as db:
        assert database_damage(db) == ""
    db.close()


def test_g5_a_store_in_a_folder_that_takes_no_writes_is_read_with_its_log(sound: Path, tmp_path: Path) -> None:
    """The write-ahead log holds the newest commits: a copy without it, or where it cannot be read, must not answer without them."""
    if not os.geteuid():
        pytest.skip("root may write everywhere: a folder that takes no writes was not tried")
    place = tmp_path / "readonly"
    place.mkdir()
    shutil.copy(sound, place / "x.db")
    (place / "x.db-wal").write_bytes(b"\x00" * 100)
    place.chmod(0o555)
    try:
        with pytest.raises(StoreError, match="copy both to a folder"):
            open_store(f"sqlite:{place / 'x.db'}")
    finally:
        place.chmod(0o755)
