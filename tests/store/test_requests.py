"""How many requests commands send to a server, each named: a round trip costs more than what it carries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest import Question, open_store
from ingest.core.grid import SECOND
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.live.feeding import Clock, Writer, begun
from tests.store.grounds import SERVER, ElasticGround, loaded, logs_by_host
from tests.store.test_contract import EXAMPLE, ZERO, a_log, csv
from tests.store.test_gone import grow

pytestmark = pytest.mark.contract
BULK, SHOWN = "POST _bulk", "POST _bulk refresh"


@pytest.fixture
def double() -> Iterator[ElasticsearchDouble]:
    with ElasticsearchDouble(version=SERVER) as running:
        yield running
        assert not running.refusals, running.refusals


@pytest.fixture
def ground(double: ElasticsearchDouble) -> ElasticGround:
    return ElasticGround(double.url)


class Counted:
    """The requests that a double has got since this was made, in few words: method, index, endpoint, refresh."""

    def __init__(self, double: ElasticsearchDouble, ground: ElasticGround) -> None:
        self._double, self._prefix, self._before = double, f"{ground.prefix}-", len(double.requests)

    def words(self) -> list[str]:
        return [self._told(seen.method, seen.path) for seen in list(self._double.requests)[self._before :]]

    def _told(self, method: str, path: str) -> str:
        place, _, query = path.partition("?")
        parts = [part.replace(self._prefix, "") for part in place.split("/") if part]
        parts = parts[:2] if "_doc" in parts else parts
        return " ".join([method, *parts, *(["refresh"] if "refresh=true" in query else [])])


FIRST = ["GET", "GET _index_template *", "POST runs _search"]
WRITTEN = [
    *FIRST,
    SHOWN,  # the run and its sources are begun
    SHOWN,  # documents
    SHOWN,  # rollups
    "POST rollups-* _search",  # do they hold what was sent
    SHOWN,  # what sources hold, and that nobody has joined the run
    SHOWN,  # complete
]
KEPT = ["POST findings _search", SHOWN, "GET runs _doc"]


def test_f4_a_load_of_a_few_documents_takes_fifteen_requests(double, ground, tmp_path: Path) -> None:
    """133 for the example before, 87 for one log."""
    requests = Counted(double, ground)
    assert loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO).documents == 10
    asked = ["POST rollups-* _search"] * 3  # a run of one thread: is it one of several volumes, of several jobs?
    assert requests.words() == [*WRITTEN, *asked, *KEPT]
    assert len(requests.words()) == 15


def test_f4_a_load_of_many_logs_takes_as_many(double, ground) -> None:
    requests = Counted(double, ground)
    assert loaded(ground.url, [EXAMPLE]).documents > 1000
    assert requests.words() == [*WRITTEN, "POST rollups-* _search", *KEPT]


def test_f4_a_load_of_what_is_there_takes_three_requests(double, ground, tmp_path: Path) -> None:
    loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO)
    requests = Counted(double, ground)
    assert loaded(ground.url, [tmp_path / "logs"], reading=ZERO).documents == 0
    assert requests.words() == FIRST


def test_f4_another_host_reads_rollups_of_the_others_and_no_documents(double, ground, tmp_path: Path) -> None:
    first, second = logs_by_host(tmp_path, 2, turns=1)
    loaded(ground.url, [first], reading={**ZERO, "host": "h1"})
    requests = Counted(double, ground)
    loaded(ground.url, [second], reading={**ZERO, "host": "h2"})
    words = requests.words()
    until = words.index("POST findings _search")
    assert "POST intervals-* _search" not in words[:until]
    assert words[:until].count("POST rollups-* _search") <= 6 and len(words) <= 20


def test_f4_a_cycle_of_a_watch_takes_six_requests(double, ground, tmp_path: Path) -> None:
    """29 before."""
    writer, clock = Writer(tmp_path / "logs" / "x.hlog", random.Random(1), rows=20), Clock()
    with open_store(ground.url, write=True) as store:
        watch = begun(tmp_path / "logs", store, clock)
        for _ in range(3):
            grow(writer, 0.15)
            watch.cycle()
            clock.seconds += 1
        grow(writer, 0.15)
        requests = Counted(double, ground)
        assert watch.cycle().documents
    writer.stream.close()
    assert requests.words() == [
        SHOWN,  # documents
        "POST runs _search",  # who else writes to the run
        "POST intervals-* _search",
        SHOWN,  # rollups
        SHOWN,  # sources, checkpoints, what is final
        "GET runs _doc",  # is the run as it was
    ]


@pytest.mark.parametrize("by", [("job", "op"), ("host", "volume", "job", "op")])
def test_f5_jobs_and_threads_take_eight_requests(double, ground, by: tuple[str, ...]) -> None:
    """Of the example; many bins in many windows still come in more pages of buckets."""
    loaded(ground.url, [EXAMPLE])
    requests = Counted(double, ground)
    with open_store(ground.url) as store:
        assert csv(store.answer(Question(by=by, step=10 * SECOND)))
    assert len(requests.words()) <= 8, requests.words()


def test_f5_a_question_about_the_cluster_takes_five_requests(double, ground) -> None:
    loaded(ground.url, [EXAMPLE])
    requests = Counted(double, ground)
    with open_store(ground.url) as store:
        assert csv(store.answer(Question(by=("op",), step=10 * SECOND)))
    rollups = "POST rollups-* _search"
    assert requests.words() == ["GET", "POST _msearch", "POST runs _search", rollups, "POST runs _search"]
