"""The embedded store: loads once, whole, and completes what was cut off; answers equal those from files."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from ingest.core.errors import InputError, StoreError
from ingest.core.intervals import Sum
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.story.story import story
from ingest.read.sources import ReadOptions
from ingest.store import answers as store_answers
from ingest.store import open_store
from ingest.store.sqlite import documents as sqlite_documents
from ingest.store.sqlite import holdings as sqlite_holdings
from ingest.store.sqlite import rollups as sqlite_rollups
from ingest.store.sqlite import store as sqlite_store
from ingest.view.text import csv_lines
from oracles.per_io import histogram_files
from tests.databases import database
from tests.effort import figure
from tests.store.grounds import loads_at_once, logs_by_host, many_logs
from tests.store.test_contract import QUESTIONS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
FIO = ROOT / "tests" / "data" / "fio"
SECOND = 1_000_000_000
ALL = Wanted(parse_percentiles("0,50,90,99,99.9,100"))


def csv(answer) -> list[str]:
    return list(csv_lines(percentiles(answer, ALL)))


def loaded(paths, store_path: Path, run: str = "r", **options):
    reading = ReadOptions(run=run, **options.pop("reading", {}))
    with open_store(f"sqlite:{store_path}", write=True) as store:
        return load([Path(path) for path in paths], store, LoadOptions(read=reading, **options))


def answered(store_path: Path, question: Question) -> list[str]:
    with open_store(f"sqlite:{store_path}") as store:
        return csv(store.answer(question))


def without_rates(lines: list[str]) -> list[list[str]]:
    place = lines[0].split(",").index("rate")
    return [cells[:place] + cells[place + 1 :] for cells in (line.split(",") for line in lines)]


def everything(store_path: Path) -> list[tuple[object, ...]]:
    """All documents and rollups, free of generations."""
    with database(store_path) as db:
        names = "run, host, volume, job, op, kind, tag, process, segment, layout, first_ns, last_ns"
        documents = db.execute(
            f"SELECT {names}, i.id & ((1 << 36) - 1), count, i.bins FROM intervals i JOIN series s ON s.id = i.id >> 36 ORDER BY {names}, i.id & ((1 << 36) - 1)"
        ).fetchall()
        rollups = db.execute("SELECT * FROM rollups ORDER BY run, scope, kind, step_ns, start_ns, op, host").fetchall()
    return documents + rollups


@pytest.fixture(scope="module")
def example_store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("store") / "example.db"
    loaded([EXAMPLE], path, run=EXAMPLE.name)
    return path


@pytest.mark.cases(8)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_documents_alone_give_the_rows_that_rollups_give(example_store: Path, question: Question) -> None:
    rollups = answered(example_store, question)
    copy = example_store.with_name("documents-only.db")
    shutil.copy(example_store, copy)
    with database(copy) as db:
        db.execute("UPDATE runs SET state = 'loading'")
    if question.step != "auto":  # from when to when a run reaches that is being loaded is not known: its windows count whole
        assert without_rates(answered(copy, question)) == without_rates(rollups)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", ["cluster at the stored step", "hosts", "7 s", "one host", "a stretch", "auto"])
def test_rollups_read_a_few_at_a_time_give_the_same_rows(example_store: Path, monkeypatch, name: str, together: bool) -> None:
    """Also where each group comes by itself, and more of them in a batch than are remembered."""
    rows = answered(example_store, QUESTIONS[name])
    batches = []
    real = sqlite_holdings._parts
    monkeypatch.setattr(sqlite_holdings, "_parts", lambda held, *of: batches.append([row[2] for row in held]) or real(held, *of))
    monkeypatch.setattr(sqlite_holdings, "ROLLUP_BATCH", most := 2 if together else 3)
    monkeypatch.setattr(sqlite_holdings, "MOST_TEXTS", 1)
    if not together:
        monkeypatch.setattr(sqlite_holdings, "most_rows", lambda _: 0)
    assert answered(example_store, QUESTIONS[name]) == rows
    assert len(batches) > 1
    assert all(sum(batch[:-1]) < most for batch in batches)


@pytest.mark.parametrize("begin", [None, "+7s"])
def test_documents_of_the_whole_range_are_added_up_as_they_are_read(example_store: Path, monkeypatch, begin) -> None:
    """Few rows are held: never all documents, however many there are of a group."""
    since = begin and Instant(7 * SECOND, relative=True)
    question = Question(by=("host", "job", "op"), where={"kind": "*"}, step="all", begin=since)
    rows, held = answered(example_store, question), []

    class Noted(Sum):
        def add(self, part) -> None:
            held.append(len(part))
            super().add(part)

    monkeypatch.setattr(sqlite_documents, "BATCH", 40)
    monkeypatch.setattr(store_answers, "Sum", Noted)
    assert answered(example_store, question) == rows
    assert len(held) > len(rows)
    assert max(held) < len(rows)


def test_rollups_hold_the_percentiles_of_the_query_layer(example_store: Path) -> None:
    with database(example_store) as db:
        rows = db.execute(
            "SELECT start_ns, host, count, min, mean, max, p50, p99, p99_9 FROM rollups WHERE scope = 'host' AND step_ns = ? AND op = 'read' ORDER BY start_ns, host",
            (10 * SECOND,),
        ).fetchall()
    with open_store(f"sqlite:{example_store}") as store:
        table = percentiles(
            store.answer(Question(by=("host",), where={"op": "read"}, step=10 * SECOND)), Wanted(parse_percentiles("50,99,99.9"))
        )
    names = ("start_ns", "host", "count", "min", "mean", "max", "p50", "p99", "p99.9")
    expected = [
        tuple(None if value != value else value for value in row) for row in zip(*(table.columns[name] for name in names))
    ]
    assert rows == expected
    assert len(rows) > 20


def test_rollups_of_few_hosts_at_a_time_are_those_of_all_at_once(tmp_path: Path, monkeypatch) -> None:
    """Of 1,000 hosts a slab of all took 540 MB: how many rows are made at once does not grow with the hosts."""
    loaded(logs_by_host(tmp_path, hosts=9, turns=1), tmp_path / "run.db")
    with open_store(f"sqlite:{tmp_path / 'run.db'}") as store:
        (record,) = store.runs()
        at_once = list(sqlite_rollups.rollup_rows(store.db, record))
        monkeypatch.setattr(sqlite_rollups, "SHARE_ROWS", 1)
        by_host = list(sqlite_rollups.rollup_rows(store.db, record))
    assert sorted(row for rows in by_host for row in rows) == sorted(row for rows in at_once for row in rows)
    assert 2 * max(map(len, by_host)) < max(map(len, at_once))


@pytest.mark.parametrize(
    ("order", "of_all"),
    [
        (("verified-group", "randrw", "averaged", "in-two"), [True, False, False, True]),
        (("randrw", "verified-group"), [True, True]),  # whose bins of the cluster become wider
    ],
)
def test_rollups_of_new_hosts_alone_are_those_of_all(tmp_path: Path, monkeypatch, order, of_all) -> None:
    """One load a host into one run: each makes rollups of what it brings, in whichever order; or of all where more has changed."""
    made, write = [], sqlite_rollups.write_rollups
    monkeypatch.setattr(sqlite_store, "write_rollups", lambda *asked: (made.append(asked[3] is None), write(*asked))[1])
    monkeypatch.setattr("ingest.load.load.write_findings", lambda *_: [])
    (tmp_path / "in-two").mkdir()
    shutil.copy(FIO / "verified-mixed" / "a_clat_hist.1.log", tmp_path / "in-two" / "b_clat_hist.1.log")
    for number, name in enumerate(order):
        folder = tmp_path / name if name == "in-two" else FIO / name
        logs = sorted(path for path in folder.iterdir() if path.name.endswith(".log"))
        host = f"h{min(number, 2)}"  # the last is of the host of the one before it
        loaded(logs, tmp_path / "s.db", reading={"t0": 7_000 * SECOND, "host": host})
        with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
            asked = "SELECT * FROM rollups ORDER BY run, scope, kind, step_ns, start_ns, op, host"
            held = store.db.execute(asked).fetchall()
            write(store.db, store.runs()[0])
            assert held == store.db.execute(asked).fetchall(), name
    assert made == of_all


def test_after_a_load_that_was_cut_off_rollups_are_made_of_all(tmp_path: Path, monkeypatch) -> None:
    """What it has completed is in no rollup yet, and the next load brings other hosts."""
    (log,), write, stops = [FIO / "verified-mixed" / "a_clat_hist.1.log"], sqlite_rollups.write_rollups, [False, True, False]
    monkeypatch.setattr("ingest.load.load.write_findings", lambda *_: [])
    monkeypatch.setattr(sqlite_store, "write_rollups", lambda *asked: 1 / 0 if stops.pop(0) else write(*asked))
    for host in ("h0", "h1", "h2"):
        with pytest.raises(ZeroDivisionError) if stops[0] else nullcontext():
            loaded([log], tmp_path / "s.db", reading={"t0": 7_000 * SECOND, "host": host})
    with database(tmp_path / "s.db") as db:
        counts = dict(db.execute("SELECT host, sum(count) FROM rollups WHERE step_ns = 0 GROUP BY host"))
    assert counts["h0"] == counts["h1"] == counts["h2"] == counts[""] // 3


def test_second_load_changes_nothing(tmp_path: Path) -> None:
    first = loaded([EXAMPLE], tmp_path / "s.db")
    before = everything(tmp_path / "s.db")
    second = loaded([EXAMPLE], tmp_path / "s.db")
    assert first.documents > 1000
    assert second.documents == 0
    assert second.duplicate == {"already loaded": 12}
    assert everything(tmp_path / "s.db") == before


def test_same_content_under_another_name_is_skipped(tmp_path: Path) -> None:
    for name in ("a_clat_hist.1.log", "b_clat_hist.1.log"):
        shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", tmp_path / name)
    account = loaded([tmp_path], tmp_path / "s.db", reading={"t0": 0})
    assert account.duplicate == {"same content under another name": 1}
    assert (account.loaded, account.rows.samples) == (1, 1204)


def test_two_hosts_of_one_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for folder, source in (("one", "coarse-3"), ("two", "coarse-4")):
        (tmp_path / folder).mkdir()
        shutil.copy(FIO / source / "a_clat_hist.1.log", tmp_path / folder / "a_clat_hist.1.log.h1")
    with pytest.raises(InputError, match=r"two hosts called h1\? use --host"):
        loaded([tmp_path / "one", tmp_path / "two"], tmp_path / "s.db", reading={"t0": 0})
    loaded([tmp_path / "one"], tmp_path / "s.db", reading={"t0": 0})
    before = everything(tmp_path / "s.db")
    with pytest.raises(InputError, match=r"two hosts called h1\? use --host"):
        loaded([tmp_path / "two"], tmp_path / "s.db", reading={"t0": 0})
    assert everything(tmp_path / "s.db") == before
    account = loaded([tmp_path / "two"], tmp_path / "s.db", reading={"t0": 0, "host": "h2"})
    assert account.loaded == 1


def test_other_parameters_need_replace(tmp_path: Path) -> None:
    loaded([FIO / "randrw"], tmp_path / "s.db")
    with pytest.raises(StoreError, match=r"another step \(1s then, 5s now\): use --replace"):
        loaded([FIO / "randrw"], tmp_path / "s.db", step_ns=5 * SECOND)
    with pytest.raises(StoreError, match="attribution"):
        loaded([FIO / "randrw"], tmp_path / "s.db", attribution="in-flight")
    loaded([FIO / "randrw"], tmp_path / "s.db", step_ns=5 * SECOND, replace=True)
    clean = tmp_path / "clean.db"
    loaded([FIO / "randrw"], clean, step_ns=5 * SECOND)
    assert everything(tmp_path / "s.db") == everything(clean)


def test_replacing_a_part_with_other_parameters_is_refused(tmp_path: Path) -> None:
    loaded([EXAMPLE], tmp_path / "s.db")
    part = tmp_path / "part"
    shutil.copytree(EXAMPLE, part)
    for log in part.rglob("*_clat_hist.*.ceph-a.gz"):
        log.unlink()
    before = everything(tmp_path / "s.db")
    with pytest.raises(StoreError, match="4 sources of the run are not among these files"):
        loaded([part], tmp_path / "s.db", step_ns=5 * SECOND, replace=True)
    assert everything(tmp_path / "s.db") == before


def test_a_source_that_grew_is_read_again(tmp_path: Path) -> None:
    text = (FIO / "randrw" / "a_clat_hist.1.log").read_bytes()
    lines = text.splitlines(keepends=True)
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "a_clat_hist.1.log"
    log.write_bytes(b"".join(lines[:4]))
    loaded([logs], tmp_path / "s.db", reading={"t0": 0})
    log.write_bytes(text)
    loaded([logs], tmp_path / "s.db", reading={"t0": 0})
    loaded([logs], tmp_path / "clean.db", reading={"t0": 0})
    assert everything(tmp_path / "s.db") == everything(tmp_path / "clean.db")


def test_corrected_file_with_lower_counts_replaces(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "a_clat_hist.1.log"
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", log)
    loaded([logs], tmp_path / "s.db", reading={"t0": 0})
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(InputError, match="--replace"):
        loaded([logs], tmp_path / "s.db", reading={"t0": 0})
    loaded([logs], tmp_path / "s.db", reading={"t0": 0}, replace=True)
    loaded([logs], tmp_path / "clean.db", reading={"t0": 0})
    assert everything(tmp_path / "s.db") == everything(tmp_path / "clean.db")


def test_in_flight_run_answers_in_flight_questions(tmp_path: Path) -> None:
    loaded([EXAMPLE], tmp_path / "s.db", run=EXAMPLE.name, attribution="in-flight")
    question = Question(by=("host",), step=SECOND, attribution="in-flight")
    with open_store(f"sqlite:{tmp_path / 's.db'}") as store:
        answer, told = store.answer(question), story(store, Question())
    assert answer.kind == "completion.in-flight"
    assert answer.samples == 59015
    weights = sum(int(part.counts.sum()) for part in answer.parts)
    assert weights == 59015 * 65536
    assert csv(Files([EXAMPLE]).answer(question)) == csv(answer)
    assert not told.findings and told.nothing.startswith("No findings: its counts are weights, shares of operations")
    assert story(Files([EXAMPLE], ReadOptions(run=EXAMPLE.name)), Question(attribution="in-flight")) == told
    rows = [line.split(",") for line in csv(answer)]
    slow = [row[0][17:19] for row in rows[1:] if row[2] == "ceph-b" and float(row[-1]) > 3.9e9]
    assert len(slow) >= 4, "the I/Os of the stall count in each second that they were under way"


def test_marks_and_deletion(example_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(example_store, path)
    with open_store(f"sqlite:{path}", write=True) as store:
        run = store.runs()[0].run
        store.mark(run, 5, "later")
        store.mark(run, 3, "osd.3 down")
        store.mark(run, 3, "osd.3 down")
        assert [(mark["at_ns"], mark["text"]) for mark in store.marks_of([run])] == [(3, "osd.3 down"), (5, "later")]
        assert store.delete_run(run) > 1000
        assert store.runs() == []
    with database(path) as db:
        for table in ("intervals", "series", "rollups", "sources", "marks", "runs"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_readers_work_while_a_writer_writes(example_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(example_store, path)
    with open_store(f"sqlite:{path}", write=True) as writer, writer.transaction() as db:
        db.execute("DELETE FROM rollups")
        assert len(answered(path, Question(step="all"))) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"this is no database, however long it may be" * 100, "not a database"), (b"", "not a tailboard store of this version")],
)
def test_a_file_that_is_no_store_gives_a_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=message):
        open_store(f"sqlite:{path}")


def test_missing_and_unwritable_stores_give_sentences(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store at"):
        open_store(f"sqlite:{tmp_path / 'none.db'}")
    with pytest.raises(StoreError, match="unable to open"):
        open_store(f"sqlite:{tmp_path / 'no' / 'folder.db'}", write=True)


def load_command(logs: Path, store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "ingest", "load", str(logs), "--run", "r", "--store", f"sqlite:{store}", "--t0", "0", *more]


def killed_and_completed(seed: int, ground: tuple[Path, Path, float], tmp_path: Path) -> int:
    """Kill loads at random moments, then complete; return how many kills hit."""
    logs, clean, seconds = ground
    chance = random.Random(seed)
    store = tmp_path / f"{seed}.db"
    hits = 0
    for _ in range(3):
        process = subprocess.Popen(
            load_command(logs, store), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        began = time.monotonic()
        try:
            process.wait(timeout=seconds * chance.uniform(0.2, 0.95))
            seconds = min(seconds, time.monotonic() - began)  # loads are quicker than they were: aim anew
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            hits += 1
        process.wait()
        if store.exists() and store.stat().st_size:
            db = sqlite3.connect(store)
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            if db.execute("SELECT name FROM sqlite_master WHERE name = 'intervals'").fetchone():
                known = {row[13:] for row in clean_documents(clean)}
                assert {row[13:] for row in clean_documents(store)} <= known, "a document in a killed store is not whole"
            db.close()
    subprocess.run(load_command(logs, store), check=True, stderr=subprocess.DEVNULL)
    assert everything(store) == everything(clean)
    return hits


def clean_documents(path: Path) -> list[tuple[object, ...]]:
    return [row for row in everything(path) if len(row) == 15]


@pytest.fixture(scope="module")
def killing_ground(tmp_path_factory) -> tuple[Path, Path, float]:
    folder = tmp_path_factory.mktemp("kill")
    logs = many_logs(folder / "logs", turns=120)
    began = time.monotonic()
    subprocess.run(load_command(logs, folder / "clean.db"), check=True, stderr=subprocess.DEVNULL)
    return logs, folder / "clean.db", time.monotonic() - began


@pytest.mark.slow
def test_killed_at_random_moments_a_load_is_completed_exactly(killing_ground, tmp_path: Path) -> None:
    hits = seed = 0
    while seed < figure(1, 1, 5) or hits < figure(1, 1, 3):  # now and then a load has ended before it is killed
        hits += killed_and_completed(seed, killing_ground, tmp_path)
        seed += 1
        assert seed < 30


@pytest.mark.soak
def test_killed_fifty_times(killing_ground, tmp_path: Path) -> None:
    assert sum(killed_and_completed(seed, killing_ground, tmp_path) for seed in range(100, 150)) >= 50


@pytest.mark.slow
def test_interrupt_in_mid_load_says_what_to_do(killing_ground, tmp_path: Path) -> None:
    logs, clean, _ = killing_ground
    store = tmp_path / "s.db"
    process = subprocess.Popen(load_command(logs, store), stderr=subprocess.PIPE, text=True)
    while not store.exists() and process.poll() is None:  # before it there is nothing to complete
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=600)
    if process.returncode == 130:
        assert "completed by running it again" in told
    assert "Traceback" not in told
    subprocess.run(load_command(logs, store), check=True, stderr=subprocess.DEVNULL)
    assert everything(store) == everything(clean)


@pytest.mark.soak
def test_eight_loads_of_one_run_at_once(tmp_path: Path) -> None:
    hosts, store, clean = logs_by_host(tmp_path, 8, turns=figure(30, 60, 120)), tmp_path / "s.db", tmp_path / "clean.db"
    loads_at_once([load_command(host, store, "--host", host.name) for host in hosts])
    for host in hosts:
        subprocess.run(load_command(host, clean, "--host", host.name), check=True, stderr=subprocess.DEVNULL)
    assert everything(store) == everything(clean)


def test_json_account_adds_up(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for path in histogram_files(FIO / "latency-target"):
        shutil.copy(path, folder)
    command = load_command(folder, tmp_path / "s.db", "--json")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    account = json.loads(done.stdout)
    assert account["rows"] == account["accepted"] + sum(account["repaired"].values()) + sum(account["rejected"].values())
    assert account["samples"] == 1457
    assert account["repaired"] == {"counts wrapped by a latency_target reset": 2}
    for name in ("files", "windows", "documents", "skipped", "shadowed", "duplicate", "seconds"):
        assert name in account
