"""Breaths in every store: what files hold, by ids that converge, swept and deleted with their source and run."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from breath_rings import BAD, GOOD, Work, ring, rings
from ingest.cli import run as command
from ingest.core.breaths import BreathSample, BreathWindows, StoredBreaths
from ingest.core.errors import StoreError
from ingest.core.units import parse_instant
from ingest.query.breaths import costs, density, fits, from_files, names_of
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.capabilities import breaths_from_store
from tests.databases import database
from tests.store.grounds import grounds, loaded

KINDS = ["sqlite", "double", *(["server"] if os.environ.get("ELASTICSEARCH_URL") else [])]
SAMPLE = Path(__file__).parents[1] / "data" / "snabb" / "cut" / "real.timeline.xz"
ZERO = 1_700_000_000 * 10**9


@pytest.fixture(params=KINDS)
def ground(request, tmp_path):
    with grounds(request.param, tmp_path) as found:
        yield found


def kept_in(url: str, question: Question | None = None) -> StoredBreaths:
    with open_store(url) as store:
        return breaths_from_store(store, question or Question())


def same(one: BreathWindows | BreathSample, other: BreathWindows | BreathSample) -> bool:
    return type(one) is type(other) and all(
        getattr(one, field.name) == getattr(other, field.name)
        if field.name == "table"
        else np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in fields(one)
    )


def alike(one: StoredBreaths, other: StoredBreaths) -> bool:
    return same(one.windows, other.windows) and same(one.sample, other.sample)


def identities(ground) -> Counter:
    """Return how many documents there are by what they are, read by ways of the ground's own."""
    if hasattr(ground, "hits"):
        return Counter((hit["_source"]["record"], hit["_source"]["process"]["name"]) for hit in ground.hits("points-*"))

    with database(ground.path) as db:
        tables = (("breaths", "breaths"), ("points", "point"))
        return Counter((name, process) for table, name in tables for (process,) in db.execute(f"SELECT process FROM {table}"))


@pytest.mark.slow
def test_files_and_stores_hold_the_same(ground, tmp_path) -> None:
    folder = rings(tmp_path / "rings", bad=BAD, good=GOOD, seldom=Work(rate=6, breaths=200, counters=True))
    account = loaded(ground.url, [folder])
    files = Files([folder], ReadOptions(run="r"))
    expected = from_files(files, Question())
    found = kept_in(ground.url)
    assert alike(found, expected)
    assert account.breath_documents == len(found.windows) + len(found.sample) == sum(identities(ground).values())
    name = names_of(found.windows)
    assert fits(found.windows, name) == fits(expected.windows, name)
    assert costs(found.windows, name) == costs(expected.windows, name)
    assert np.array_equal(density(found.windows, name).count, density(expected.windows, name).count)
    for question in (
        Question(where={"process": "good"}),
        Question(begin=parse_instant("+1s"), end=parse_instant("+2.3s")),
        Question(runs=("r",), where={"host": ""}),
    ):
        assert alike(kept_in(ground.url, question), from_files(files, question))


@pytest.mark.slow
def test_the_real_timeline(ground) -> None:
    loaded(ground.url, [SAMPLE], reading={"t0": ZERO})
    assert alike(kept_in(ground.url), from_files(Files([SAMPLE], ReadOptions(run="r", t0=ZERO)), Question()))


def test_loading_again_changes_nothing(ground, tmp_path) -> None:
    folder = rings(tmp_path / "rings", good=Work(breaths=200), bad=Work(breaths=150))
    loaded(ground.url, [folder])
    before, documents = kept_in(ground.url), identities(ground)
    assert loaded(ground.url, [folder]).breath_documents == 0
    assert loaded(ground.url, [folder], replace=True).breath_documents == sum(documents.values())
    assert identities(ground) == documents
    assert alike(kept_in(ground.url), before)


def test_replacing_a_timeline_leaves_nothing_of_the_old_one(ground, tmp_path) -> None:
    folder = rings(tmp_path / "rings", good=Work(breaths=900), other=Work(breaths=100))
    loaded(ground.url, [folder])
    (folder / "good.timeline").write_bytes(ring(Work(breaths=120, slope=50), 99))
    loaded(ground.url, [folder / "good.timeline"], replace=True)
    assert alike(kept_in(ground.url), from_files(Files([folder], ReadOptions(run="r")), Question()))


def test_a_load_that_was_overtaken_changes_nothing(tmp_path) -> None:
    """Two loads of one source: what the older one writes late does not lie over what the newer one has written."""
    folder, url = rings(tmp_path / "rings", good=Work(breaths=150)), f"sqlite:{tmp_path / 's.db'}"
    loaded(url, [folder])
    (folder / "good.timeline").write_bytes(ring(Work(breaths=150, base=9000), 0))
    old = kept_in(url)
    loaded(url, [folder], replace=True)
    new = kept_in(url)
    assert not alike(old, new)
    with open_store(url, write=True) as store:
        [source] = store.sources("r")
        store.write_breaths(replace(source, generation=1), old)
        assert same(breaths_from_store(store, Question()).windows, new.windows)
        store.finish_source(source, {})
    assert alike(kept_in(url), new)


def test_a_deleted_run_takes_its_breaths_along(ground, tmp_path) -> None:
    folder = rings(tmp_path / "rings", good=Work(breaths=150))
    loaded(ground.url, [folder], run="kept")
    loaded(ground.url, [folder], run="gone")
    with open_store(ground.url, write=True) as store:
        store.delete_run("gone")
    found = kept_in(ground.url)
    assert {one.run for one in (*found.windows.table, *found.sample.table)} == {"kept"}
    assert sum(identities(ground).values()) == len(found.windows) + len(found.sample)


@pytest.mark.parametrize("ground", [kind for kind in KINDS if kind != "sqlite"], indirect=True)
def test_a_refused_document_comes_in_by_replay(ground, tmp_path) -> None:
    """What the server refused lies in a file; sent again it is there, and rollups are as they were."""
    folder = rings(tmp_path / "rings", good=Work(breaths=60))
    loaded(ground.url, [folder])
    documents, rollups = identities(ground), ground.hits("rollups-*")
    lost = [next(hit for hit in ground.hits("points-*") if hit["_source"]["record"] == record) for record in ("breaths", "point")]
    letters = tmp_path / "letters.ndjson"
    with letters.open("w") as out:
        for hit in lost:
            ground.client.delete(index=hit["_index"], id=hit["_id"])
            action = {"index": {"_index": hit["_index"], "_id": hit["_id"]}}
            out.write(json.dumps({"status": 400, "reason": "no room", "action": action, "document": hit["_source"]}) + "\n")
    assert sum(identities(ground).values()) == sum(documents.values()) - 2
    assert command(["replay", str(letters), "--store", ground.url]) == 0
    assert identities(ground) == documents and len(ground.hits("rollups-*")) == len(rollups)


@pytest.mark.parametrize("ground", [kind for kind in KINDS if kind != "sqlite"], indirect=True)
def test_a_site_of_an_older_version_is_to_be_set_up_first(ground, tmp_path) -> None:
    """Without its template the server would guess the fields of an index."""
    folder = rings(tmp_path / "rings", good=Work(breaths=40))
    ground.client.indices.delete_index_template(name=f"{ground.prefix}-points")
    with pytest.raises(StoreError, match=f"has no index template {ground.prefix}-points: tailboard store setup --elasticsearch"):
        loaded(ground.url, [folder])
    assert not ground.client.indices.exists(index=f"{ground.prefix}-points-2023.11")
    assert command(["setup", "--elasticsearch", ground.server, "--index-prefix", ground.prefix]) == 0
    loaded(ground.url, [folder])
    assert alike(kept_in(ground.url), from_files(Files([folder], ReadOptions(run="r")), Question()))


def test_runs_without_timelines_have_none(ground) -> None:
    loaded(ground.url, [Path(__file__).parents[1] / "data" / "fio" / "randrw"], reading={"t0": ZERO})
    found = kept_in(ground.url)
    assert not len(found.windows) and not len(found.sample)
