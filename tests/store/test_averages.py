"""What averaging would have said of a store is what it says of the files, whichever store it is."""

from __future__ import annotations

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.estimates import estimated, with_estimates
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.store.grounds import grounds, loaded
from tests.store.test_contract import EXAMPLE, QUESTIONS, SECOND

WANTED = parse_percentiles("50,99,100")
NAMES = ("mean-of-percentiles", "mean-of-means")
ASKED = ["hosts and ops at 10 s", "7 s", "whole run", "one volume", "a setting of the run", "auto"]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def example(request, tmp_path_factory):
    with grounds(request.param, tmp_path_factory.mktemp("example")) as found:
        loaded(found.url, [EXAMPLE], run=EXAMPLE.name)
        yield found


def averaged(origin, question: Question) -> list[str]:
    answer: Answer = origin.answer(question)
    table = percentiles(answer, Wanted(WANTED))
    return list(csv_lines(with_estimates(table, estimated(origin, question, answer, table, WANTED, NAMES))))


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_a_store_says_what_the_files_say(example, name: str) -> None:
    with open_store(example.url) as store:
        rows = averaged(store, QUESTIONS[name])
    assert rows == averaged(Files([EXAMPLE]), QUESTIONS[name])
    assert len(rows) > 1 and rows[0].count("_error") == 7


@pytest.mark.slow
def test_runs_that_are_added_up_are_series_of_their_own(tmp_path) -> None:
    with grounds("sqlite", tmp_path) as ground:
        for run in ("a", "b"):
            loaded(ground.url, [EXAMPLE], run=run)
        with open_store(ground.url) as store:
            one, both = (averaged(store, Question(runs=runs, merge_runs=True, step=60 * SECOND)) for runs in (("a",), ()))
    columns = one[0].split(",")
    for name in ("p99_mean_of_percentiles", "p99_mean_of_means", "mean_mean_of_means", "p99"):
        place = columns.index(name)
        assert [float(row.split(",")[place]) for row in one[1:]] == pytest.approx(
            [float(row.split(",")[place]) for row in both[1:]]
        )
