"""Means without a histogram in a store: the same answers as from files, and no histogram that nobody recorded."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.files import Files
from ingest.query.heatmap import cells
from ingest.query.means import OWN
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.any.test_origins import OF_MEANS as QUESTIONS
from tests.databases import database, rows_in
from tests.read.test_averaged import maxima
from tests.store.grounds import ElasticGround, grounds, loaded

FIO = Path(__file__).parents[1] / "data" / "fio"
MS = 1_000_000
SECOND = 1000 * MS
KINDS = ["sqlite", "double", *(["server"] if os.environ.get("ELASTICSEARCH_URL") else [])]
ALL = Wanted(parse_percentiles("0,50,99,100"), below_ns=(1000,))


@pytest.fixture(params=KINDS, scope="module")
def ground(request, tmp_path_factory):
    with grounds(request.param, tmp_path_factory.mktemp("means")) as found:
        loaded(found.url, [FIO / "means-100"], run="means-100")
        yield found


def csv(answer) -> list[str]:
    return list(csv_lines(percentiles(answer, ALL)))


def test_a18_a_stretch_on_the_stored_grid_is_the_same(ground) -> None:
    files = Files([FIO / "means-100"])
    first = files.answer(Question()).start_of // SECOND * SECOND + SECOND
    question = Question(by=("op",), begin=Instant(first), end=Instant(first + SECOND))
    with open_store(ground.url) as store:
        for step in (100 * MS, SECOND, "all"):
            asked = replace(question, step=step)
            tables = [percentiles(one, ALL) for one in (store.answer(replace(asked, runs=("means-100",))), files.answer(asked))]
            for name in ("start_ns", "op", "count", "mean"):
                assert tables[0].columns[name].tolist() == tables[1].columns[name].tolist(), (step, name)


def test_a18_a_store_tells_fios_own_percentiles(ground) -> None:
    files = Files([FIO / "means-100"])
    expected = [pair for pair in files.facts(files.answer(Question())) if pair[0] == OWN]
    with open_store(ground.url) as store:
        assert [pair for pair in store.facts(store.answer(Question(runs=("means-100",)))) if pair[0] == OWN] == expected
    assert len(expected) == 8


def test_a18_documents_on_a_server_have_no_histogram(tmp_path: Path) -> None:
    """One bin without a meaning would be counted by everybody's own aggregations."""
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [FIO / "means-100"], run="r")
        for index in ("intervals-*", "rollups-*"):
            hits = [hit["_source"] for hit in ground.hits(index)]
            assert hits
            for one in hits:
                assert one["kind"].endswith(".mean")
                assert one["latency"]["layout"] == "nobins"
                assert set(one["latency"]) <= {"layout", "count", "sum", "mean", "exact", "bytes"}
                assert one["latency"]["bytes"] > 0
                assert one["kind_preference"] in (-7, -9, -10)


def test_a18_rows_in_a_file_leave_open_what_nobody_told(tmp_path: Path) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [FIO / "means-100"], run="r")
        loaded(ground.url, [FIO / "plain-json"], run="whole")
        with database(ground.path) as db:
            query = "SELECT DISTINCT layout, min, max, i.sum IS NULL FROM intervals i JOIN series s ON s.id = i.id >> 36 WHERE run = ?"
            assert db.execute(query, ("r",)).fetchall() == [("nobins", None, None, 0)]
            assert all(low is not None and high for _, low, high, _ in db.execute(query, ("whole",)))
            rollups = "SELECT DISTINCT layout, min, max, exact, p99 FROM rollups WHERE run = ?"
            assert db.execute(rollups, ("r",)).fetchall() == [("nobins", -1, -1, 0, None)]


def test_a18_means_are_exported_as_counts_and_as_documents(tmp_path: Path, capsys) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [FIO / "means-100"], run="r")
        assert command(["export", ground.url]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert all(line.split(",")[-3:-1] == ["", ""] for line in lines[1:])
        with open_store(ground.url) as store:
            kinds = percentiles(store.answer(Question(by=("kind",), step="all")), ALL).columns["count"].sum()
        assert sum(int(line.rsplit(",", 1)[1]) for line in lines[1:]) == kinds
        assert command(["export", ground.url, "--format", "documents"]) == 0
        assert '"histogram"' not in capsys.readouterr().out
        for form in ("hgrm", "hlog"):
            assert command(["export", ground.url, "--format", form]) == 3
            assert "record fio" in capsys.readouterr().err


def test_a18_what_needs_a_histogram_is_refused_with_a_sentence(ground) -> None:
    with open_store(ground.url) as store:
        answer = store.answer(Question(runs=("means-100",)))
    with pytest.raises(
        InputError, match="means-100: total.mean latency was recorded as means alone, and heat maps cannot be made of means"
    ):
        cells(answer)


def test_a18_means_can_be_coarsened(tmp_path: Path) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [FIO / "means-100"], run="r")
        question = Question(by=("op", "kind"), step=5 * SECOND)
        with open_store(ground.url, write=True) as store:
            before = csv(store.answer(question))
            store.coarsen("r", 5 * SECOND)
            assert csv(store.answer(question)) == before


def test_a18_a_log_of_iops_that_came_later_is_read(tmp_path: Path) -> None:
    """What counts the means is part of what a source is: with it the same log is read again."""
    folder = tmp_path / "logs"
    shutil.copytree(FIO / "means-500", folder, ignore=lambda *_: ["h_clat_hist.1.log", "a_iops.1.log"])
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [folder], run="r")
        shutil.copy(FIO / "means-500" / "a_iops.1.log", folder)
        loaded(ground.url, [folder], run="r")
        with open_store(ground.url) as store:
            notes = [note for source in store.sources("r") for note in source.account["notes"]]
            assert not any("no log of IOPS" in note for note in notes)
            assert csv(store.answer(Question(by=("op",), step=SECOND))) == csv(
                Files([folder]).answer(Question(by=("op",), step=SECOND))
            )


def moved_in(ground) -> dict[tuple[str, str, str], int]:
    """Return the sum of the bytes of all documents by job, op and kind."""
    found: dict[tuple[str, str, str], int] = {}
    if hasattr(ground, "path"):
        query = "SELECT job, op, kind, bytes FROM intervals i JOIN series s ON s.id = i.id >> 36"
        rows = rows_in(ground.path, query)
    else:
        hits = [hit["_source"] for hit in ground.hits("intervals-*")]
        rows = [(one["job"]["id"], one["operation"], one["kind"], one["latency"].get("bytes")) for one in hits]
    for *key, moved in rows:
        found[tuple(key)] = found.get(tuple(key), 0) + moved
    return found


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_a18_bytes_of_all_documents_are_fios_own_before_and_after_coarsening(store: str, tmp_path: Path) -> None:
    jobs = json.loads((FIO / "means-100" / "a.json").read_text())["jobs"]
    expected = {
        (str(number), op, kind): job[op]["io_bytes"]
        for number, job in enumerate(jobs, 1)
        for op in ("read", "write")
        for kind in ("completion.mean", "total.mean")
    }
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [FIO / "means-100"], run="r")
        question = Question(by=("op", "kind"), step=SECOND)
        with open_store(ground.url, write=True) as opened:
            assert {key: moved for key, moved in moved_in(ground).items() if key in expected} == expected
            before = csv(opened.answer(question))
            opened.coarsen("r", SECOND)
            assert {key: moved for key, moved in moved_in(ground).items() if key in expected} == expected
            assert csv(opened.answer(question)) == before


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_a18_bytes_that_one_job_does_not_tell_stay_open_in_a_store(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "half"
    shutil.copytree(FIO / "means-100", folder, ignore=lambda *_: ["a_bw.2.log"])
    files = Files([folder])
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder], run="half")
        with open_store(ground.url) as opened:
            for name in ("jobs", "whole run"):
                assert csv(opened.answer(QUESTIONS[name])) == csv(files.answer(QUESTIONS[name]))
    windows = percentiles(files.answer(QUESTIONS["jobs"]), ALL).columns
    assert [value == value for value in windows["mib_s"].tolist()] == [job == "1" for job in windows["job"].tolist()]
    whole = percentiles(files.answer(QUESTIONS["whole run"]), ALL).columns
    assert (whole["mib_s"] > 0).all(), "fio's JSON has the bytes of both jobs"


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_a18_maxima_alone_are_in_a_store_what_they_are_in_files(store: str, tmp_path: Path) -> None:
    """A log of log_window_value=max: no mean of a window, not even one of -1, which columns that cannot be empty hold."""
    folder = maxima(tmp_path / "winmax")
    where = {"kind": "completion.mean"}
    windows, whole = Question(by=("op",), step=SECOND, where=where), Question(by=("op",), step="all", where=where)
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder], run="winmax")
        with open_store(ground.url, write=True) as opened:
            for question in (windows, whole, replace(windows, by=())):
                assert csv(opened.answer(question)) == csv(Files([folder]).answer(question))
            told = percentiles(opened.answer(windows), ALL).columns
            assert not (told["mean"] == told["mean"]).any() and (told["max"] > 0).all()
            opened.coarsen("winmax", 5 * SECOND)
            assert csv(opened.answer(whole)) == csv(Files([folder]).answer(whole))
        assert command(["runs", "check", "--store", ground.url]) == 0


def test_a18_a_store_of_version_4_has_means_without_bytes_and_gets_them_when_it_is_loaded_anew(tmp_path: Path) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [FIO / "means-100"], run="r")
        older = tmp_path / "older.db"
        with database(older) as db:
            db.executescript((FIO.parent / "store" / "version-4.sql").read_text())
            db.execute("ATTACH ? AS new", (str(ground.path),))
            for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
                columns = ",".join(name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}', 'main')"))
                db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
        db.close()
        question, url = Question(by=("op",), step=SECOND), f"sqlite:{older}"
        content = older.read_bytes()
        place = csv(Files([FIO / "means-100"]).answer(question))[0].split(",").index("mib_s")

        def without(lines: list[str]) -> list[str]:
            return [",".join(cell for at, cell in enumerate(line.split(",")) if at != place) for line in lines]

        with open_store(url) as store:
            told = csv(store.answer(question))
        assert {line.split(",")[place] for line in told[1:]} == {""}
        with open_store(ground.url) as store:
            expected = csv(store.answer(question))
        assert without(told) == without(expected)
        assert older.read_bytes() == content
        assert command(["runs", "check", "--store", url]) == 0
        assert command(["runs", "delete", "r", "--yes", "--store", url]) == 0
        loaded(url, [FIO / "means-100"], run="r")
        with open_store(url) as store:
            assert csv(store.answer(question)) == expected


def test_a18_a_server_of_version_4_takes_means_without_bytes_until_it_is_set_up_again(tmp_path: Path) -> None:
    with grounds("double", tmp_path) as ground:
        for index in ("intervals", "rollups"):
            name = f"{ground.prefix}-{index}"
            component = ground.client.cluster.get_component_template(name=f"{name}-mappings")["component_templates"][0]
            body = dict(component["component_template"])
            del body["template"]["mappings"]["properties"]["latency"]["properties"]["bytes"]
            ground.client.cluster.put_component_template(name=f"{name}-mappings", template=body["template"], version=4)
            told = ground.client.indices.get_index_template(name=name)["index_templates"][0]["index_template"]
            names = {"index_patterns": told["index_patterns"], "composed_of": told["composed_of"], "priority": told["priority"]}
            ground.client.indices.put_index_template(name=name, template=told["template"], version=4, meta=told["_meta"], **names)
        question = Question(by=("op",), step=SECOND)
        loaded(ground.url, [FIO / "means-100"], run="before")
        with open_store(ground.url) as store:
            table = percentiles(store.answer(replace(question, runs=("before",))), ALL).columns
        assert table["count"].sum() > 0 and not (table["mib_s"] == table["mib_s"]).any()
        setup = ["setup", "--elasticsearch", ground.server, "--index-prefix", ground.prefix]
        assert command([*setup, "--overwrite"]) == 0
        loaded(ground.url, [FIO / "means-100"], run="after")
        with open_store(ground.url) as store:
            assert csv(store.answer(replace(question, runs=("after",)))) == csv(Files([FIO / "means-100"]).answer(question))


@pytest.mark.slow
def test_a18_cbt_archive_counts_what_fio_counted(ground) -> None:
    """N, mean and maximum by host, volume and op, of an archive that holds means alone."""
    archive = FIO.parent / "cbt" / "averaged" / "results" / "00000000" / "id-cc7c4612"
    expected = {}
    for host in ("client1.lab.test", "client2.lab.test"):
        for summary in sorted(archive.glob(f"16k7030.{host}/**/json_output.*")):
            loaded(ground.url, [summary.parent], run=f"cbt-{summary.name[-1]}", reading={"host": host})
            for op in ("read", "write"):
                told = json.loads(summary.read_text())["jobs"][0][op]["clat_ns"]
                expected[host, summary.name[-1], op] = told["N"], told["mean"], told["max"]
    found = {}
    with open_store(ground.url) as store:
        for run in ("cbt-0", "cbt-1"):
            question = Question(
                runs=(run, f"{run}/*"), by=("host", "volume", "op"), where={"kind": "completion.mean"}, step="all"
            )
            table = percentiles(store.answer(question), ALL).columns
            keys = zip(*(table[name].tolist() for name in ("host", "volume", "op")), strict=True)
            values = zip(*(table[name].tolist() for name in ("count", "mean", "max")), strict=True)
            found |= dict(zip(keys, values, strict=True))
            windows = store.answer(replace(question, step=100 * MS))
            assert windows.samples == table["count"].sum()
    assert found.keys() == expected.keys()
    for key, (count, mean, most) in expected.items():
        assert found[key] == (count, pytest.approx(mean, abs=1e-3), most)


def test_a18_list_of_runs_says_which_hold_means_alone(tmp_path: Path, capsys) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [FIO / "means-500" / "a.json"], run="whole")
        loaded(ground.url, [FIO / "means-100"], run="means")
        loaded(ground.url, [FIO / "coarse-3"], run="bins")
        capsys.readouterr()
        assert command(["runs", "list", "--store", ground.url, "--format", "ndjson"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {row["run"]: row["means_alone"] for row in rows} == {"whole": True, "means": True, "bins": False}
        assert command(["runs", "list", "--store", ground.url]) == 0
        assert "complete, means alone" in capsys.readouterr().out


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_hosts_with_means_alone_are_missing_from_what_has_histograms(store: str, tmp_path: Path) -> None:
    """Percentiles of the others were said to be complete; the means themselves lack nothing."""
    logs = tmp_path / "logs"
    shutil.copytree(FIO / "coarse-3", logs / "clients" / "h1")
    shutil.copytree(FIO / "means-500", logs / "clients" / "h2", ignore=lambda *_: ["h_clat_hist.1.log"])
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [logs], run="logs")
        with open_store(ground.url) as kept:
            for question, whole in (
                (Question(step="all"), False),
                (Question(by=("host",), step=SECOND, where={"kind": "completion"}), False),
                (Question(step="all", where={"kind": "total"}), False),
                (Question(step="all", where={"host": "h1"}), True),
                (Question(step="all", where={"kind": "completion.mean"}), True),
            ):
                files, stored = Files([logs]).answer(question), kept.answer(question)
                assert csv(files) == csv(stored)
                told = [lack.entry.caveat for answer in (files, stored) for lack in answer.missing]
                assert {(caveat.code, caveat.subject) for caveat in told} == (set() if whole else {("means-alone", "h2")}), (
                    question
                )
                flags = percentiles(stored, ALL).columns["complete"].tolist()
                assert all(flags) == (whole or "host" in question.by), question  # the rows of h1 lack nothing
        assert command(["runs", "check", "--store", ground.url]) == 0


def test_a_job_whose_histograms_are_beside_its_means_lacks_nothing(tmp_path: Path) -> None:
    shutil.copytree(FIO / "coarse-3", tmp_path / "clients" / "h1")
    shutil.copytree(FIO / "means-500", tmp_path / "clients" / "h2")
    answer = Files([tmp_path]).answer(Question(step="all", where={"kind": "completion"}))
    assert not {lack.entry.caveat.code for lack in answer.missing} & {"means-alone", "other-kind"}


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_hosts_that_did_not_log_the_kind_of_an_answer_are_missing_from_it(store: str, tmp_path: Path) -> None:
    """One host logs total latency, the other histograms of completions alone: the answer was about one host, and said complete."""
    logs = tmp_path / "logs"
    shutil.copytree(FIO / "coarse-3", logs / "clients" / "h1")
    shutil.copytree(FIO / "means-500", logs / "clients" / "h2")
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [logs], run="logs")
        with open_store(ground.url) as kept:
            for question, lacking in (
                (Question(step="all"), True),
                (Question(step=SECOND, by=("op",), where={"kind": "total"}), True),
                (Question(step="all", where={"kind": "completion"}), False),
                (Question(step="all", where={"host": "h1"}), False),
            ):
                files, stored = Files([logs]).answer(question), kept.answer(question)
                assert csv(files) == csv(stored)
                for answer in (files, stored):
                    told = [lack.entry.caveat for lack in answer.missing if lack.entry.caveat.code == "other-kind"]
                    assert {caveat.subject for caveat in told} == ({"h2"} if lacking else set()), question


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_a_log_that_is_loaded_later_is_no_longer_missing(store: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(FIO / "coarse-3", logs / "clients" / "h1")
    shutil.copytree(FIO / "coarse-3", logs / "clients" / "h2", ignore=lambda *_: ["a_lat.1.log"])
    with grounds(store, tmp_path) as ground:
        for lacking in ({"other-kind"}, set()):
            loaded(ground.url, [logs], run="logs")
            with open_store(ground.url) as kept:
                answer = kept.answer(Question(step="all"))
                assert answer.kind == "total"
                assert {lack.entry.caveat.code for lack in answer.missing} - {
                    "in-two-files"
                } == lacking  # a recording is both hosts
                assert csv(answer) == csv(Files([logs]).answer(Question(step="all")))
            assert command(["runs", "check", "--store", ground.url]) == 0
            shutil.copy(FIO / "coarse-3" / "a_lat.1.log", logs / "clients" / "h2")


def one_by_one() -> Iterator[Any]:
    """Every store with every order, with jobs added up or not; one of each store is quick, each with what the other has not."""
    quick = (("sqlite", ("h3", "h2", "h1"), ("job",)), ("double", ("h2", "h1", "h3"), ()))
    for one in itertools.product(("sqlite", "double"), (("h1", "h2", "h3"), *(order for _, order, _ in quick)), ((), ("job",))):
        yield pytest.param(*one, marks=() if one in quick else pytest.mark.slow)


@pytest.mark.cases(4)
@pytest.mark.parametrize(("store", "order", "added_up"), list(one_by_one()))
def test_what_clients_lack_of_each_other_is_known_whatever_load_they_came_with(
    store: str, order: tuple[str, ...], added_up: tuple[str, ...], tmp_path: Path
) -> None:
    """One host logs total latency, too, one completions alone, one means: loaded one by one, answers were about h1 and complete."""
    logs = tmp_path / "logs"
    shutil.copytree(FIO / "coarse-3", logs / "clients" / "h1")
    shutil.copytree(FIO / "coarse-3", logs / "clients" / "h2", ignore=lambda *_: ["a_lat.1.log"])
    shutil.copytree(FIO / "means-500", logs / "clients" / "h3", ignore=lambda *_: ["h_clat_hist.1.log"])
    questions = [
        Question(step="all"),
        Question(step=SECOND, by=("op",), where={"kind": "total"}),
        Question(step=SECOND, by=("host",), where={"kind": "completion"}),
        Question(step="all", where={"host": "h1"}),
        Question(step="all", where={"host": "h2"}),
    ]
    with grounds(store, tmp_path) as ground:
        for number, host in enumerate(order, 1):
            loaded(ground.url, [logs / "clients" / host], run="logs", add_up=added_up, reading={"host": host})
            there = [logs / "clients" / host for host in order[:number]]
            with open_store(ground.url) as kept:
                for question in questions:
                    told = []
                    for origin in (Files(there, ReadOptions(run="logs")), kept):
                        try:
                            answer = origin.answer(question)
                        except InputError as error:
                            told.append(([str(error).partition("(")[0]], set()))
                            continue
                        told.append((csv(answer), {str(lack.entry.caveat) for lack in answer.missing}))
                    assert told[0] == told[1], (number, question)
            assert command(["runs", "check", "--store", ground.url]) == 0
            if isinstance(ground, ElasticGround):
                at_once = ElasticGround(ground.server)
                loaded(at_once.url, there, run="logs", add_up=added_up)
                assert complete_rollups(ground) == complete_rollups(at_once)
                at_once.drop()


def complete_rollups(ground: ElasticGround) -> dict[tuple[str, ...], bool]:
    """Return of each rollup whether dashboards call it complete."""
    return {
        tuple(
            str(value)
            for value in (
                hit["_source"]["rollup"]["scope"],
                hit["_source"]["rollup"]["step_ms"],
                hit["_source"].get("host"),
                hit["_source"]["operation"],
                hit["_source"]["kind"],
                hit["_source"]["@timestamp"],
            )
        ): hit["_source"]["rollup"]["complete"]
        for hit in ground.hits("rollups-*")
    }


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("order", [("h2", "h3", "h1"), ("h1", "h2", "h3"), ("h2", "h1", "h3")])
def test_dashboards_know_of_a_later_load_what_all_windows_lack(order: tuple[str, ...], tmp_path: Path) -> None:
    """h2 has no rows where h1 and h3 have theirs, and may be missing there all the same."""
    logs, reading = tmp_path / "logs" / "clients", {"t0": 1_793_491_200_000_000_000}
    for host in order:
        (logs / host).mkdir(parents=True)
    hour = 3_600_000

    def rows(name: str, after_ms: int) -> list[str]:
        split = (row.split(",", 1) for row in (FIO / "coarse-3" / name).read_text().splitlines(keepends=True))
        return [f"{int(stamp) + after_ms},{rest}" for stamp, rest in split]

    for name in ("a_lat.1.log", "a_clat.1.log"):
        for host in ("h1", "h3"):
            (logs / host / name).write_text("".join(rows(name, 2 * hour + int(host[1]))))  # not the same operations
    (logs / "h2" / "a_clat.1.log").write_text("".join(rows("a_clat.1.log", 0) + rows("a_clat.1.log", 5 * hour)))
    with grounds("double", tmp_path) as ground:
        for number, host in enumerate((*order, "h2"), 1):
            if number > len(order):
                shutil.copy(FIO / "coarse-3" / "a_lat.1.log", logs / "h2")
            loaded(ground.url, [logs / host], run="logs", reading={**reading, "host": host})
            at_once = ElasticGround(ground.server)
            loaded(at_once.url, [logs / there for there in order[:number]], run="logs", reading=reading)
            flags = complete_rollups(ground)
            assert flags == complete_rollups(at_once), number
            of_cluster = [flag for key, flag in flags.items() if (key[0], key[4]) == ("cluster", "total")]
            lacking = "h2" in order[:number] and 1 < number <= len(order)
            assert (False in of_cluster) is lacking, number
            at_once.drop()
