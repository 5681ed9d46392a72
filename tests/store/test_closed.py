"""A month's index that an operator has closed: nothing is answered, mended or deleted without it, and the sentence says so.

What a server answers was seen of OpenSearch 2.19 (the same code as Elasticsearch 7.10): a pattern leaves closed indices out in
silence, unless `expand_wildcards` holds `closed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError
from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from oracles import logs
from tests.store.grounds import ElasticGround, grounds

SECOND = 1_000_000_000
SAMPLES = 2 * 59 * 8
QUESTIONS = (Question(step=10 * SECOND, by=("host",)), Question(step=SECOND, by=("job",)), Question(step="all"))


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[ElasticGround]:
    """Return a store with a run that lies in two months."""
    rows = [(1000 * second, 0, {850: 3, 851 + second % 9: 5}) for second in range(1, 60)]
    for job in (1, 2):
        (tmp_path / f"job_clat_hist.{job}.log.h1").write_text(logs.text(rows, 1856))
    with grounds("double", tmp_path) as there:
        assert isinstance(there, ElasticGround)
        paths, before_november = sorted(map(str, tmp_path.glob("job_*"))), "2026-10-31T23:59:30Z"
        assert command(["load", *paths, "--run", "r", "--t0", before_november, "--store", there.url]) == 0
        yield there


def indices(ground: ElasticGround, kind: str) -> list[str]:
    return sorted({hit["_index"] for hit in ground.hits(f"{kind}-*")})


def called(ground: ElasticGround, name: str, what: str) -> None:
    with urlopen(Request(f"{ground.server}/{name}/{what}", method="POST")) as answer:  # noqa: S310  # the double
        assert json.load(answer)["acknowledged"]


def samples(ground: ElasticGround, question: Question) -> int | StoreError:
    try:
        with open_store(ground.url) as store:
            return int(percentiles(store.answer(question), Wanted(parse_percentiles("50"))).columns["count"].sum())
    except StoreError as error:
        return error


@pytest.mark.parametrize("kind", ["intervals", "rollups"])
def test_no_answer_leaves_out_what_is_in_a_closed_index(ground: ElasticGround, kind: str) -> None:
    assert [samples(ground, question) for question in QUESTIONS] == [SAMPLES] * 3
    first = indices(ground, kind)[0]
    called(ground, first, "_close")
    found = [samples(ground, question) for question in QUESTIONS]
    sentence = f"{first} is closed, so what it holds cannot be read or changed: open it (POST /{first}/_open)"
    assert set(map(str, found)) <= {str(SAMPLES), f"{sentence}, then run this again"}
    assert any(isinstance(each, StoreError) for each in found)
    called(ground, first, "_open")
    assert samples(ground, QUESTIONS[0]) == SAMPLES


@pytest.mark.parametrize("kind", ["intervals", "rollups"])
def test_checks_mend_nothing_and_nothing_is_deleted_while_an_index_is_closed(
    ground: ElasticGround, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = ground.documents(), ground.rollups()
    first = indices(ground, kind)[0]
    called(ground, first, "_close")
    for words in (["check"], ["check", "--mend"], ["delete", "r", "--yes"]):
        capsys.readouterr()
        assert command(["runs", *words, "--store", ground.url]) != 0
        assert f"{first} is closed" in capsys.readouterr().err
    called(ground, first, "_open")
    assert (ground.documents(), ground.rollups()) == before
    with open_store(ground.url) as store:
        assert not store.verify(lambda _: True).findings


def test_the_doctor_names_it(ground: ElasticGround, capsys: pytest.CaptureFixture[str]) -> None:
    first = indices(ground, "intervals")[0]
    called(ground, first, "_close")
    capsys.readouterr()
    assert command(["doctor", ground.url]) != 0
    told = capsys.readouterr()
    assert f"{first} is closed" in told.out + told.err


def test_a_load_into_a_closed_index_says_so(ground: ElasticGround, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = indices(ground, "intervals")[0]
    called(ground, first, "_close")
    (tmp_path / "other_clat_hist.1.log.h2").write_text((tmp_path / "job_clat_hist.1.log.h1").read_text())
    words = [
        "load",
        str(tmp_path / "other_clat_hist.1.log.h2"),
        "--run",
        "s",
        "--t0",
        "2026-10-31T23:59:30Z",
        "--store",
        ground.url,
    ]
    capsys.readouterr()
    assert command(words) != 0
    assert f"{first} is closed" in capsys.readouterr().err
