"""How many requests commands send to a server, each named: a round trip costs more than what it carries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.grid import SECOND
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.elastic import documents
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


def test_f4_a_load_of_a_few_documents_takes_twelve_requests(double, ground, tmp_path: Path) -> None:
    """133 for the example before, 87 for one log. For findings nothing is read back: they are told from memory."""
    requests = Counted(double, ground)
    assert loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO).documents == 10
    assert requests.words() == [*WRITTEN, *KEPT]
    assert len(requests.words()) == 12


@pytest.mark.slow
def test_f4_a_load_of_many_logs_takes_as_many(double, ground) -> None:
    requests = Counted(double, ground)
    assert loaded(ground.url, [EXAMPLE]).documents > 1000
    assert requests.words() == [*WRITTEN, *KEPT]


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


KNOWN, UNCHANGED = "POST _msearch", "POST runs _search"  # the records of runs and their sources; whether a run is another now
DOCUMENTS, ROLLUPS = "POST intervals-* _search", "POST rollups-* _search"


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[ElasticsearchDouble, ElasticGround]]:
    with ElasticsearchDouble(version=SERVER) as running:
        filled = ElasticGround(running.url)
        for run in ("r", "other"):
            loaded(filled.url, [EXAMPLE], run=run)
        yield running, filled
        assert not running.refusals, running.refusals


def asked(filled, question: Question) -> list[str]:
    double, ground = filled
    requests = Counted(double, ground)
    with open_store(ground.url) as store:
        assert csv(store.answer(question))
    return requests.words()


@pytest.mark.parametrize("by", [("job", "op"), ("host", "volume", "job", "op")])
@pytest.mark.parametrize("where", [{}, pytest.param({"host": "ceph-b"}, marks=pytest.mark.slow)], ids=["all", "a host"])
def test_f5_jobs_and_threads_take_five_requests(filled, by: tuple[str, ...], where: dict[str, str]) -> None:
    survey = [DOCUMENTS]  # whether it is less to let the server add up
    assert asked(filled, Question(runs=R, by=by, where=where, step=10 * SECOND)) == ["GET", KNOWN, *survey, DOCUMENTS, UNCHANGED]


def test_f5_more_than_a_page_of_documents_takes_eight_requests(filled, monkeypatch) -> None:
    """33 for 19,264 documents of 236 bins before: two pages of 10,000, here of 1,000, and no page smaller than an answer may be."""
    monkeypatch.setattr(documents, "MOST_HITS", 1000)
    pages = ["POST intervals-* _pit", "POST _search", "POST _search", "DELETE _pit"]
    assert asked(filled, Question(runs=R, by=("job", "op"), step=10 * SECOND)) == ["GET", KNOWN, DOCUMENTS, *pages, UNCHANGED]


def test_f5_pages_grow_to_what_an_answer_may_be(filled, monkeypatch) -> None:
    """Of documents as they are stored nobody knows the size beforehand: the first page shows it."""
    sizes = []
    real = documents._search_columns

    def seen(connection, index, body):
        page = real(connection, index, body)
        sizes.append((body["size"], page.hits, page.size))
        return page

    monkeypatch.setattr(documents, "_search_columns", seen)
    monkeypatch.setattr(documents, "PAGE_BYTES", 300_000)
    asked(filled, Question(runs=R, by=("host", "volume", "job", "op"), step=SECOND))
    assert sum(hits for _, hits, _ in sizes) > 1000
    assert sizes[0][0] < 20 and all(300 < size < 700 for size, _, _ in sizes[1:]), sizes
    assert all(size < 400_000 for _, _, size in sizes)


def test_f5_a_question_about_the_cluster_takes_four_requests(filled) -> None:
    assert asked(filled, Question(runs=R, by=("op",), step=10 * SECOND)) == ["GET", KNOWN, ROLLUPS, UNCHANGED]


R = ("r",)
COMMANDS = [  # of two runs; before: 6, 6, 10, 10, 19, 20, 18, 24, 109
    ("heatmap --format csv", 5),
    ("distribution --format csv", 5),
    ("runs list", 2),
    ("explain", 4),
    ("explain --from +1s", 16),
    ("compare --baseline r/* --run other/*", 10),
    ("trend --run * -p 99", 11),
    ("check {slo}", 8),
    ("explain --box +20s..+30s,1ms..", 19),
    pytest.param("report -o {page}", 70, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("words", "most"), COMMANDS)
def test_f5_a_command_reads_what_runs_are_once(filled, tmp_path: Path, words: str, most: int) -> None:
    """Each question of a command asks for its data, and whether a run was replaced meanwhile."""
    double, ground = filled
    objectives = tmp_path / "slo.yml"
    objectives.write_text("objectives: [{name: p99, percentile: 99, threshold: 5ms, window: 10s, by: [host]}]")
    name, *rest = words.format(slo=objectives, page=tmp_path / "page.html").split()
    requests = Counted(double, ground)
    where = {"check": [*rest[:1], ground.url], "runs": ["list", "--store", ground.url]}.get(name, [ground.url])
    assert command([name, *where, *rest[name in ("check", "runs") :]]) in (0, 1)
    assert len(requests.words()) <= most and requests.words().count(KNOWN) == 1, requests.words()
