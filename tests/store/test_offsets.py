"""Offsets in every store: the same map as from the files, stored whatever the step, and never seen by another question."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from event_files import description, event_file, reading
from ingest.cli import run as command
from ingest.core.errors import InputError, StoreError, UsageError
from ingest.core.offsets import Periods
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import parse_instant
from ingest.load.load import LoadAccount, load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.offsets import OffsetMap, WantedOffsets, from_files, offsets
from ingest.query.percentiles import Wanted as Columns
from ingest.query.percentiles import percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.elastic.holdings import ElasticHoldings
from ingest.store.offsets import from_store
from ingest.view.text import csv_lines
from oracles import offsets as oracle
from tests.store.grounds import grounds, loaded

MS, SECOND = oracle.MS, oracle.SECOND
ZERO = 1_789_999_200 * SECOND
KINDS = ["sqlite", "double", *(["server"] if os.environ.get("ELASTICSEARCH_URL") else [])]
FIO = Path(__file__).parents[1] / "data" / "fio"
QUESTIONS = {
    "seconds": WantedOffsets(),
    "hosts": WantedOffsets(Question(by=("host",))),
    "ops of processes": WantedOffsets(Question(by=("op", "process")), Periods(rows=100)),
    "one process": WantedOffsets(Question(by=("host",)), isolate={"process": "p3"}),
    "two hosts but a process": WantedOffsets(isolate={"host": "a\nb", "process": "!p[0-4]"}),
    "minutes": WantedOffsets(Question(by=("op",)), Periods(60 * SECOND, 60)),
    "hours": WantedOffsets(periods=Periods(3600 * SECOND)),
    "5 s": WantedOffsets(Question(by=("host",)), Periods(5 * SECOND)),
    "100 ms": WantedOffsets(periods=Periods(100 * MS)),
    "one process in a stretch": WantedOffsets(
        Question(begin=parse_instant(f"{ZERO // MS + 3250}"), end=parse_instant(f"{ZERO // MS + 19_750}")),
        isolate={"process": "p5", "host": "a"},
    ),
    "one process within a second": WantedOffsets(
        Question(begin=parse_instant(f"{ZERO // MS + 3100}"), end=parse_instant(f"{ZERO // MS + 3990}")), isolate={"host": "!a"}
    ),
    "one process in minutes": WantedOffsets(periods=Periods(60 * SECOND), isolate={"process": "p5"}),
    "one process in 100 ms": WantedOffsets(periods=Periods(100 * MS), isolate={"process": "p5"}),
    "kinds": WantedOffsets(Question(by=("kind", "op"))),
    "the kind of all events": WantedOffsets(isolate={"kind": "off*\n!service"}),
    "a stretch": WantedOffsets(Question(begin=parse_instant(f"{ZERO // MS + 2500}"), end=parse_instant(f"{ZERO // MS + 9123}"))),
}


def made(seed: int = 5, seconds: int = 40, late: bool = True) -> list[tuple]:
    dice = random.Random(seed)
    rows = []
    for _ in range(4_000):
        second = dice.choice([at for at in range(seconds) if at % 11 != 6])
        end = ZERO + second * SECOND + dice.randrange(SECOND)
        place = (f"{dice.choice('abc')}", f"p{dice.randrange(8)}", dice.choice(["read", "write"]), dice.randrange(1, 4))
        rows.append((end, dice.randrange(1, 200 * MS), *place))
    rows.sort()
    return rows[100:] + rows[:100] if late else rows


def store_of(url: str, folder: Path, rows, run: str = "r", **words) -> LoadAccount:
    path = event_file(folder, rows)
    with open_store(url, write=True) as store:
        return load([path], store, LoadOptions(read=replace(reading(folder), run=run), jobs=1, **words))


def asked(url: str, wanted: WantedOffsets) -> OffsetMap:
    with open_store(url) as store:
        return from_store(store, wanted)


def told(answer: OffsetMap) -> tuple:
    marks = (answer.late_ns.tolist(), answer.late.tolist(), answer.missing_ns.tolist(), answer.first_ns, answer.end_ns)
    return list(csv_lines(offsets(answer))), marks, answer.by, answer.runs, answer.samples, answer.warnings


@pytest.fixture(scope="module", params=KINDS)
def example(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("offsets")
    with grounds(request.param, folder) as found:
        store_of(found.url, folder / "logs", made(), step_ns=10 * SECOND)
        yield found, folder / "logs"


@pytest.fixture(scope="module")
def plain(example, tmp_path_factory):
    """The same logs, loaded without their offsets."""
    with grounds("sqlite", tmp_path_factory.mktemp("plain")) as found:
        store_of(found.url, example[1], made(), step_ns=10 * SECOND, offsets=False)
        yield found


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


@pytest.mark.cases(7)
@pytest.mark.parametrize("name", QUESTIONS)
def test_stores_and_files_give_the_same_map(example, name: str) -> None:
    ground, folder = example
    files = from_files(Files([folder / "events.csv"], reading(folder), jobs=1), QUESTIONS[name])
    assert files.samples > 30 and len(files.cells) > 0
    assert told(asked(ground.url, QUESTIONS[name])) == told(files)


@pytest.mark.parametrize(
    "wanted",
    [
        WantedOffsets(isolate={"kind": "service"}),
        WantedOffsets(isolate={"kind": "total", "host": "a"}),
        WantedOffsets(isolate={"kind": "!offset"}),
        WantedOffsets(lit={"kind": "serv*"}),
    ],
)
def test_b4_events_are_of_the_kind_offset_in_files_and_stores(example, wanted: WantedOffsets) -> None:
    """What was timed beside the moment is no label of it: a store does not keep it, so files do not answer by it either."""
    ground, folder = example
    with pytest.raises(InputError, match="no event matches --") as stored:
        asked(ground.url, wanted)
    with pytest.raises(InputError) as read:
        from_files(Files([folder / "events.csv"], reading(folder), jobs=1), wanted)
    assert str(read.value) == str(stored.value)


def test_only_what_is_asked_for_is_read(example, monkeypatch) -> None:
    """Of other series no bins are read but those of the seconds that the range cuts through."""
    read: Counter = Counter()
    begin, end = ZERO + 4_000 * MS, ZERO + 9_500 * MS
    with open_store(example[0].url) as store:
        windows = type(store).offset_windows

        def counting(self, *words):
            for part in windows(self, *words):
                read.update((part.table[code].host, start) for code, start in zip(part.series.tolist(), part.start_ns.tolist()))
                yield part

        monkeypatch.setattr(type(store), "offset_windows", counting)
        question = Question(begin=parse_instant(f"{begin // MS}"), end=parse_instant(f"{end // MS}"))
        from_store(store, WantedOffsets(question, isolate={"host": "b"}))
    of_others = {start for host, start in read if host != "b"}
    assert of_others == {ZERO + 9 * SECOND}
    assert {start for host, start in read if host == "b"} == {ZERO + at * SECOND for at in (4, 5, 7, 8, 9)}


def test_the_map_marks_what_came_late_and_what_is_missing(example) -> None:
    answer = asked(example[0].url, WantedOffsets())
    assert answer.late_ns.tolist() == [ZERO] and answer.late.sum() == sum(row[5] for row in made()[-100:])
    assert ((answer.missing_ns - ZERO) // SECOND).T.tolist() == [[6, 7], [17, 18], [28, 29]]


def test_documents_are_bins_of_1_ms_in_seconds_whatever_the_step(example) -> None:
    expected: dict[tuple, Counter] = {}
    flags = oracle.late([("/".join(row[2:5]), row[0] - row[1], row[0]) for row in made()])
    for (end, _, host, process, op, many), behind in zip(made(), flags):
        key = ("r", host, "", "", op, "offset", "", process, int(behind), end // SECOND * SECOND)
        expected.setdefault(key, Counter())[end % SECOND // MS] += many
    assert example[0].offsets() == expected


def test_rows_of_no_whole_milliseconds_are_resampled_and_said(example) -> None:
    rows = [(f"{host}", end, many) for end, _, host, _, _, many in made()]
    answer = asked(example[0].url, WantedOffsets(Question(by=("host",)), Periods(rows=49)))
    table = offsets(answer).columns
    places = {low: row for row, (low, _) in enumerate(oracle.edges(SECOND, 49))}
    keys = zip(table["host"], table["start_ns"].tolist(), (places[low] for low in table["offset_lower"].tolist()))
    assert dict(zip(keys, table["count"].tolist())) == oracle.resampled(rows, SECOND, 49)
    assert "49 rows are not whole milliseconds" in answer.warnings[0]
    with pytest.raises(UsageError, match="finer than the 1 ms that a store keeps"):
        asked(example[0].url, WantedOffsets(periods=Periods(100 * MS, 101)))


@pytest.mark.parametrize(
    "question",
    [
        Question(step=10 * SECOND, by=("host", "op")),
        Question(step="all", by=("kind",)),
        Question(step=20 * SECOND, by=("process",), where={"process": "p[0-3]"}),
        Question(by=("kind", "process"), where={"kind": "*"}),
        Question(step="auto"),
    ],
)
def test_no_other_question_sees_offsets(example, plain, question: Question) -> None:
    """Everything is as in a store that was loaded without them."""
    ground, _ = example
    assert not plain.offsets()
    assert seen(ground.url, question) == seen(plain.url, question)
    assert ground.rollups() == plain.rollups() and ground.documents() == plain.documents()
    with pytest.raises(InputError, match="nothing matches"), open_store(ground.url) as store:
        store.answer(Question(where={"kind": "offset"}))


def seen(url: str, question: Question) -> tuple:
    with open_store(url) as store:
        answer = store.answer(question)
        exported = sum(int(part.counts.sum()) for part in store.windows(question))
        table = percentiles(answer, Columns(parse_percentiles("50,99,100")))
        return list(csv_lines(table)), answer.kind, answer.series, answer.warnings, exported, store.facts(answer)[:-1]


@pytest.mark.slow
def test_a_source_that_grew_leaves_nothing_of_its_older_offsets(ground, tmp_path: Path) -> None:
    rows = made(late=False)
    store_of(ground.url, tmp_path / "logs", rows[:3_000])
    store_of(ground.url, tmp_path / "logs", rows)
    account = store_of(ground.url, tmp_path / "logs", rows)
    assert account.offset_documents == 0 and account.duplicate == {"already loaded": 1}
    with grounds("sqlite", tmp_path) as clean:
        store_of(clean.url, tmp_path / "logs", rows)
        assert ground.offsets() == clean.offsets()
        assert {row[:7] for row in ground.rollups()} == {row[:7] for row in clean.rollups()}


@pytest.mark.slow
def test_a_correction_that_takes_events_away_replaces(ground, tmp_path: Path) -> None:
    rows = made(late=False)
    store_of(ground.url, tmp_path / "logs", rows)
    store_of(ground.url, tmp_path / "logs", rows[:2_000], replace=True)
    expected = oracle.cells([("", row[0], row[5]) for row in rows[:2_000]], SECOND, 50)
    table = offsets(asked(ground.url, WantedOffsets())).columns
    places = {low: row for row, (low, _) in enumerate(oracle.edges(SECOND, 50))}
    found = zip(table["start_ns"].tolist(), table["offset_lower"].tolist(), table["count"].tolist())
    assert {("", start, places[low]): count for start, low, count in found} == expected
    assert {row[2] for row in ground.rollups()} == {"service"}


@pytest.mark.slow
def test_a_load_can_leave_them_out_and_must_then_go_on_so(ground, tmp_path: Path) -> None:
    account = store_of(ground.url, tmp_path / "logs", made(), offsets=False)
    assert account.documents > 0 and account.offset_documents == 0 and not ground.offsets()
    with pytest.raises(InputError, match="r: no offsets were stored; only single events have them"):
        asked(ground.url, WantedOffsets())
    with pytest.raises(StoreError, match="loaded with another reading options"):
        store_of(ground.url, tmp_path / "logs", made())
    store_of(ground.url, tmp_path / "logs", made(), replace=True)
    assert ground.offsets()


def test_offsets_are_the_same_where_latencies_are_stored_in_flight(ground, tmp_path: Path) -> None:
    store_of(ground.url, tmp_path / "logs", made(), attribution="in-flight")
    with grounds("sqlite", tmp_path) as plain:
        store_of(plain.url, tmp_path / "logs", made())
        assert ground.offsets() == plain.offsets()
    assert {row[2] for row in ground.rollups()} == {"service.in-flight"}


@pytest.mark.slow
def test_runs_are_named_or_merged_and_those_without_offsets_are_said(ground, tmp_path: Path) -> None:
    rows = made()
    store_of(ground.url, tmp_path / "one", rows, run="one")
    store_of(ground.url, tmp_path / "two", rows[:1_000], run="two")
    log = tmp_path / "a_clat_hist.1.log"
    log.write_bytes((FIO / "randrw" / "a_clat_hist.1.log").read_bytes())
    loaded(ground.url, [log], run="three", reading={"t0": ZERO // SECOND * SECOND})
    named, added = asked(ground.url, WantedOffsets()), asked(ground.url, WantedOffsets(Question(merge_runs=True)))
    assert named.by == ("run",) and named.runs == ("one", "two") and added.by == ()
    assert named.warnings[0] == "three: no offsets are stored, or none in this time: left out of the map"
    expected = oracle.cells(
        [(run, row[0], row[5]) for run, some in (("one", rows), ("two", rows[:1_000])) for row in some], SECOND, 50
    )
    columns = offsets(named).columns
    cells = zip(columns["run"], columns["start_ns"].tolist(), (columns["offset_lower"] // (20 * MS)).tolist())
    assert dict(zip(cells, columns["count"].tolist())) == expected
    assert added.samples == named.samples == sum(expected.values())
    with pytest.raises(InputError, match="no event matches --from/--to"):
        asked(ground.url, WantedOffsets(Question(begin=parse_instant("2030-01-01"))))
    assert asked(ground.url, WantedOffsets(Question(runs=("t*",)))).runs == ("two",)


def test_rejected_rows_are_said_as_for_the_files(ground, tmp_path: Path) -> None:
    rows = [*made(), ("x",), (ZERO, -5)]
    store_of(ground.url, tmp_path, rows)
    files = from_files(Files([tmp_path / "events.csv"], reading(tmp_path), jobs=1), WantedOffsets())
    rejected = [text for text in files.warnings if " rejected: " in text]
    assert len(rejected) == 2
    assert [text for text in asked(ground.url, WantedOffsets()).warnings if " rejected: " in text] == rejected


def test_histogram_logs_have_no_offsets(ground, tmp_path: Path) -> None:
    log = tmp_path / "a_clat_hist.1.log"
    log.write_bytes((FIO / "randrw" / "a_clat_hist.1.log").read_bytes())
    assert loaded(ground.url, [log], reading={"t0": ZERO}).offset_documents == 0
    with pytest.raises(InputError, match="no offsets were stored"):
        asked(ground.url, WantedOffsets())


def test_a_deleted_run_leaves_no_offsets(ground, tmp_path: Path) -> None:
    store_of(ground.url, tmp_path / "logs", made())
    with open_store(ground.url, write=True) as store:
        store.delete_run("r")
    assert not ground.offsets() and not ground.documents()


@pytest.mark.slow
@pytest.mark.parametrize("ground", KINDS[1:], indirect=True)
def test_refused_offsets_are_replayed_and_make_no_rollups(ground, tmp_path: Path, monkeypatch) -> None:
    from ingest.store.elastic import documents

    real = documents.labels_document
    spoil = {"kind": "offset", "host": "b"}

    def spoiled(series):
        wrong = all(getattr(series, name) == value for name, value in spoil.items())
        return {**real(series), **({"spoiled": 1} if wrong else {})}

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(documents, "labels_document", spoiled)
        store_of(ground.url, tmp_path / "logs", made())
    letters = tmp_path / "tailboard-dead-letters.ndjson"
    lines = [json.loads(line) for line in letters.read_text().splitlines()]
    assert len(lines) > 100 and {one["document"].pop("spoiled") for one in lines} == {1}
    assert any("was cut off" in warning for warning in asked(ground.url, WantedOffsets()).warnings)
    letters.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert command(["replay", str(letters), "--store", ground.url]) == 0
    with grounds("sqlite", tmp_path) as clean:
        store_of(clean.url, tmp_path / "logs", made())
        assert ground.offsets() == clean.offsets() and ground.rollups() == clean.rollups()
        assert told(asked(ground.url, WantedOffsets())) == told(asked(clean.url, WantedOffsets()))
    assert {hit["_source"]["kind"] for hit in ground.hits("rollups-*")} == {"service"}


@pytest.mark.slow
def test_the_commands_load_and_ask(ground, tmp_path: Path, capsys) -> None:
    path, columns = str(event_file(tmp_path, made())), str(description(tmp_path))
    load_words = ["load", path, "--input-format", columns, "--run", "r", "--store", ground.url, "--jobs", "1"]
    assert command([*load_words, "--no-offsets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["offset_documents"] == 0
    assert command(["offsets", ground.url]) == 3
    assert "no offsets were stored" in capsys.readouterr().err
    assert command([*load_words, "--replace", "--json"]) == 0
    done = capsys.readouterr()
    assert json.loads(done.out)["offset_documents"] == len(ground.offsets()) > 1_000
    assert f"{len(ground.offsets())} documents of offsets beside them" in done.err
    shown = [
        "--highlight",
        "process=p[23]",
        "--by",
        "host",
        "--where",
        "process!=p1",
        "--where",
        "op=read",
        "--format",
        "ndjson",
        "--rows",
        "20",
    ]
    assert command(["offsets", ground.url, *shown]) == 0
    stored_rows = capsys.readouterr().out
    assert command(["offsets", path, "--input-format", columns, "--jobs", "1", *shown]) == 0
    assert stored_rows == capsys.readouterr().out
    first = json.loads(stored_rows.splitlines()[0])
    assert list(first) == ["start", "host", "offset_lower", "offset_upper", "count", "highlighted"]
    total = sum(json.loads(line)["count"] for line in stored_rows.splitlines())
    assert total == sum(row[5] for row in made() if row[3] != "p1" and row[4] == "read")


def test_more_than_is_held_at_once_is_stored_alike(tmp_path: Path, monkeypatch) -> None:
    from ingest.core import offsets as core

    with grounds("sqlite", tmp_path) as whole, grounds("sqlite", tmp_path) as little:
        store_of(whole.url, tmp_path / "logs", made(late=False))
        monkeypatch.setattr(core.Stored.__init__, "__defaults__", (100,))
        store_of(little.url, tmp_path / "logs", made(late=False))
        assert whole.offsets() == little.offsets()


@pytest.mark.parametrize("asked", ["seconds", "one process"])
def test_a_run_that_is_loaded_anew_while_its_offsets_are_read_is_no_answer(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the events of one reading and half of another would be a picture of neither."""
    rows, turns = made(seconds=10), []
    read = ElasticHoldings.offset_windows

    def meanwhile(self, *words):
        for windows in read(self, *words):
            yield windows
            if not turns:
                turns.append(True)
                store_of(ground.url, tmp_path / "logs", rows, replace=True)

    with grounds("double", tmp_path) as ground:
        store_of(ground.url, tmp_path / "logs", rows)
        monkeypatch.setattr(ElasticHoldings, "offset_windows", meanwhile)
        with open_store(ground.url) as store:
            with pytest.raises(StoreError, match="loaded anew or coarsened while it was read: ask again"):
                from_store(store, QUESTIONS[asked])
            assert from_store(store, QUESTIONS[asked]).samples
