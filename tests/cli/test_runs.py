"""runs delete and runs coarsen as commands: what they choose by age, what they say, and that nothing of a run is left."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.schema import fields, in_store, indices
from ingest.store import open_store
from ingest.store.answers import lacked_by
from tests.commands import tailboard
from tests.databases import database
from tests.store.grounds import FIO, ElasticGround, grounds, loaded

DAY = 86_400
NOW = int(time.time())
AGES = {"old/1": 100, "old/2": 40, "new": 3, "tomorrow": -1}


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        for name, days in AGES.items():
            reading = {"t0": (NOW - days * DAY) * 1_000_000_000, "host": "h"}
            loaded(found.url, [FIO / "coarse-3" / "a_clat_hist.1.log"], run=name, reading=reading)
        yield found


def names(ground) -> list[str]:
    with open_store(ground.url) as store:
        return [record.run for record in store.runs()]


def test_runs_are_deleted_by_name_and_by_age(ground, capsys) -> None:
    delete = ["runs", "delete", "--store", ground.url]
    assert command([*delete, "--older-than", "30d", "--dry-run"]) == 0
    assert "would delete old/1, old/2" in capsys.readouterr().err
    assert len(names(ground)) == 4
    assert command([*delete, "--older-than", "30d"]) == 2
    assert "needs --yes" in capsys.readouterr().err
    assert command([*delete, "old", "--older-than", "50d", "--yes"]) == 0
    assert "deleted old/1: " in capsys.readouterr().err
    assert names(ground) == ["new", "old/2", "tomorrow"]
    assert command([*delete, "--older-than", "50d", "--yes"]) == 0
    assert "no run is older than 50d: nothing to delete" in capsys.readouterr().err
    assert command([*delete, "n*", "--yes"]) == 0
    assert command([*delete, "--older-than", "1s", "--yes"]) == 0
    assert names(ground) == ["tomorrow"], "a run whose clock is ahead is not old"
    assert command([*delete]) == 2
    assert "give a run, a glob, or --older-than" in capsys.readouterr().err
    assert command([*delete, "nothing"]) == 3
    assert command([*delete, "--older-than", "yesterday"]) == 2


def test_a_run_without_time_zero_is_as_old_as_its_load(tmp_path: Path, capsys) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    alone = shutil.copy(FIO / "coarse-3" / "a_clat_hist.1.log", tmp_path)  # its JSON beside it would tell the time zero
    loaded(url, [Path(alone)], run="relative")
    assert command(["runs", "delete", "--older-than", "1d", "--yes", "--store", url]) == 0
    assert "nothing to delete" in capsys.readouterr().err
    with open_store(url, write=True) as store:
        store.db.execute("UPDATE runs SET loaded = '2020-01-01T00:00:00Z by tailboard 0'")
    assert command(["runs", "delete", "--older-than", "1d", "--yes", "--store", url]) == 0
    assert "deleted relative" in capsys.readouterr().err


def test_runs_are_coarsened_by_age_and_again_without_effect(ground, capsys) -> None:
    coarsen = ["runs", "coarsen", "--step", "10s", "--older-than", "30d", "--store", ground.url]
    assert command([*coarsen, "--dry-run"]) == 0
    assert capsys.readouterr().err.count("would coarsen old/") == 2
    before = ground.documents()
    assert command(coarsen) == 0
    told = capsys.readouterr().err
    assert "coarsened old/1 from 1s to 10s: " in told and "coarsened old/2" in told and "new" not in told
    after = ground.documents()
    assert [one for one in after if one["run"] in ("new", "tomorrow")] == [
        one for one in before if one["run"] in ("new", "tomorrow")
    ]
    assert {one["step"] for one in after if one["run"].startswith("old")} == {10_000_000_000}
    assert command(coarsen) == 0
    assert capsys.readouterr().err.count("is stored at 10s already") == 2
    assert ground.documents() == after
    assert command(["runs", "coarsen", "new", "--step", "7s", "--store", ground.url]) == 2
    assert "7s cannot be a stored step" in capsys.readouterr().err
    assert command(["runs", "coarsen", "--step", "1m", "--older-than", "900d", "--store", ground.url]) == 0
    assert "nothing to coarsen" in capsys.readouterr().err


def test_one_run_that_cannot_be_coarsened_does_not_hold_up_the_others(ground, capsys) -> None:
    with open_store(ground.url, write=True) as store:
        (record,) = (one for one in store.runs() if one.run == "new")
        store.begin(record, store.sources("new"))
    assert command(["runs", "coarsen", "*", "--step", "1m", "--store", ground.url]) == 4
    told = capsys.readouterr().err
    assert "new is not complete" in told and told.count("coarsened ") == 3


def filled(path: Path, run: str) -> list[str]:
    """Put a row of a run into every table that knows runs; the names of all tables."""
    names = []
    with database(path) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'intervals'").fetchall():
            columns = [
                (name, kind) for name, kind in db.execute("SELECT name, type FROM pragma_table_info(?)", (table,)) if name != "id"
            ]
            row = [run if name == "run" else "{}" if kind == "TEXT" else 1 for name, kind in columns]
            db.execute(f"INSERT INTO {table} ({','.join(name for name, _ in columns)}) VALUES ({','.join('?' * len(row))})", row)
            names.append(table)
    return names


def test_deleting_leaves_nothing_of_a_run_in_any_table(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(f"sqlite:{path}", write=True):
        pass
    tables = filled(path, "mine")
    assert filled(path, "other") == tables and {"series", "rollups", "runs", "sources", "marks"} < set(tables)
    assert command(["runs", "delete", "mine", "--yes", "--force", "--store", f"sqlite:{path}"]) == 0
    with database(path) as db:
        for table in tables:
            assert db.execute(f"SELECT DISTINCT run FROM {table}").fetchall() == [("other",)], table


def test_every_document_of_a_run_can_be_found_by_it() -> None:
    for name, document in fields()["documents"].items():
        for store in ("sqlite", "elasticsearch"):
            joined = fields()["documents"][document["joins"]] if store == "elasticsearch" and "joins" in document else document
            own = [field["name"] for field in in_store(joined, store)]
            assert "run.id" in own or name == "intervals", f"{name} in {store}"


def test_deleting_leaves_nothing_of_a_run_in_any_index(tmp_path: Path) -> None:
    with grounds("double", tmp_path) as ground:
        assert isinstance(ground, ElasticGround)
        loaded(ground.url, [FIO / "coarse-3" / "a_clat_hist.1.log"], run="mine", reading={"t0": NOW * 1_000_000_000})
        for index in indices():
            for run in ("mine", "other"):
                name = f"{ground.prefix}-{index}" + ("-2026.11" if index in ("intervals", "rollups", "points") else "")
                ground.client.index(index=name, id=f"by-hand-{run}", document={"run": {"id": run}})
        assert command(["runs", "delete", "mine", "--yes", "--store", ground.url]) == 0
        for index in indices():
            left = [hit["_source"] for hit in ground.hits(f"{index}*")]
            assert {one["run"]["id"] for one in left if one.get("record") != "tombstone"} == {"other"}, index


def test_r10_runs_list_json_is_the_rows_as_one_array(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    assert tailboard("load", FIO / "randrw", "--run", "r", "--store", url).returncode == 0
    listed = json.loads(tailboard("runs", "list", "--json", "--store", url).stdout)
    lines = tailboard("runs", "list", "--format", "ndjson", "--store", url).stdout
    assert listed == [json.loads(line) for line in lines.splitlines()] and listed[0]["run"] == "r"


@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_runs_list_says_what_tools_counted_and_what_a_reload_adds(kind: str, tmp_path: Path, capsys) -> None:
    """What the records of older versions lack is what loading anew adds; nothing of a run that this version has loaded."""
    with grounds(kind, tmp_path) as ground:
        loaded(ground.url, [FIO / "group-reporting"], run="r")
        assert command(["runs", "list", "--json", "--store", ground.url]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["kind"], listed["reload_adds"]) == ("completion", [])
        assert {(row["op"], row["tool"], row["stored"]) for row in listed["counted"]} == {("read", 921, 921), ("write", 460, 460)}
        assert listed["start"] < listed["end"]
        assert command(["runs", "list", "--store", ground.url]) == 0
        assert "older" not in capsys.readouterr().err
        with open_store(ground.url, write=True) as store:
            catalogue = store.catalogue()
        plain = [{name: value for name, value in account.items() if name != "widths"} for account in catalogue.accounts["r"]]
        before = replace(catalogue, accounts={"r": plain}, series=[replace(one, last_ns=None) for one in catalogue.series])
        assert lacked_by(before, before.records[0]) == [
            "how wide its rows are (a step that is too fine is refused)",
            "when it ended",
        ]


def test_runs_list_says_that_a_run_is_of_an_older_version(tmp_path: Path, capsys) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    loaded(url, [FIO / "coarse-3"], run="now")
    loaded(url, [FIO / "coarse-3"], run="then")
    with database(tmp_path / "s.db") as db:
        for source, text in db.execute("SELECT source, account FROM sources WHERE run = 'then'").fetchall():
            account = {name: value for name, value in json.loads(text).items() if name != "stored"}
            db.execute("UPDATE sources SET account = ? WHERE run = 'then' AND source = ?", (json.dumps(account), source))
    assert command(["runs", "list", "--store", url]) == 0
    assert (
        "then: loaded by an older version; loading again with --replace adds how many samples of each kind were stored (runs check)"
    ) in capsys.readouterr().err
