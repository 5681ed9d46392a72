"""Windows are provisional until every live series has reported past them, then final; several watches of one run agree on it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import Store, open_store
from ingest.store.live import SILENT_NS
from ingest.store.records import COMPLETE, WATCHED
from tests.databases import opened, rows_in
from tests.live.feeding import EPOCH, HEAD, SECOND, Clock, answers, batch, begun
from tests.oracles import hdr
from tests.store.grounds import SqliteGround, grounds

SLOWEST = 2_000_000_000
LARGEST = hdr.lower_edge(hdr.index_of(SLOWEST, 2) + 1, 2)


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


class Host:
    """A log with a row a second, one of which holds the largest latency of all."""

    def __init__(self, folder: Path, name: str) -> None:
        (folder / name).mkdir(parents=True)
        self.path, self.rows = folder / name / "x.hlog", 0
        self.path.write_text(HEAD)

    def write(self, rows: int) -> None:
        with self.path.open("a") as out:
            for number in range(self.rows, self.rows + rows):
                counts = {hdr.index_of(SLOWEST if number == 3 else 1_000_000 + number, 2): 100}
                out.write(hdr.line(f"{number}.000", "1.000", counts, tag="read-st", digits=2))
        self.rows += rows

    @property
    def reported_ns(self) -> int:
        return (EPOCH + self.rows - 1) * SECOND


def cells(table, *names: str) -> list[tuple]:
    return list(zip(*(table.columns[name].tolist() for name in names), strict=True))


def finals(ground) -> dict[tuple[str, str], dict[int, bool]]:
    """Whether the windows of 1 s are final, by scope and host and start, as they lie in the store."""
    found: dict[tuple[str, str], dict[int, bool]] = {}
    if isinstance(ground, SqliteGround):
        rows = rows_in(ground.path, "SELECT scope, host, start_ns, final FROM rollups WHERE step_ns = ?", SECOND)
    else:
        hits = [hit["_source"] for hit in ground.hits("rollups-*")]
        rows = [
            (one["rollup"]["scope"], one.get("host", {}).get("name", ""), one["@timestamp"] * 1_000_000, one["final"])
            for one in hits
            if one["rollup"]["step_ms"] == 1000
        ]
    for scope, host, start, final in rows:
        found.setdefault((scope, host), {})[start] = bool(final)
    return found


def expected(hosts: dict[str, Host]) -> dict[tuple[str, str], dict[int, bool]]:
    """What they must be, from the definition."""
    found = {}
    slowest = min(host.reported_ns for host in hosts.values())
    starts = {name: [(EPOCH + number) * SECOND for number in range(host.rows)] for name, host in hosts.items()}
    for name, host in hosts.items():
        found["host", name] = {start: start + SECOND <= host.reported_ns - LARGEST for start in starts[name]}
    every = {start for own in starts.values() for start in own}
    found["cluster", ""] = {start: start + SECOND <= slowest - LARGEST for start in every}
    return found


@pytest.mark.slow
def test_a_host_that_lags_keeps_the_cluster_provisional(ground, tmp_path: Path) -> None:
    hosts = {name: Host(tmp_path / "logs", name) for name in ("h1", "h2")}
    clock = Clock()
    with open_store(ground.url, write=True) as store:
        watch = begun(tmp_path / "logs", store, clock)
        for rows in ((12, 5), (1, 0), (1, 1), (3, 9), (70, 20), (0, 40)):
            for host, number in zip(hosts.values(), rows, strict=True):
                host.write(number)
            clock.seconds += 1
            watch.cycle()
            assert finals(ground) == expected(hosts)
            provisional = min(host.reported_ns for host in hosts.values()) - LARGEST
            [record] = store.runs()
            assert (record.state, record.final_ns) == (WATCHED, provisional)
            answer = store.answer(Question(step=SECOND))
            assert any("provisional after 2023-11-14T22:1" in text for text in answer.warnings)
            assert not any("cut off" in text for text in answer.warnings)
            assert answer.samples == 100 * sum(host.rows for host in hosts.values())
        assert answer.answered_from == "documents and rollups"
        watch.cycle(last=True)
        watch.settle()
        assert all(final for windows in finals(ground).values() for final in windows.values())
        assert not [text for text in store.answer(Question(step=SECOND)).warnings if "provisional" in text]
        [record] = store.runs()
        assert record.state == COMPLETE


@pytest.mark.slow
def test_a_host_that_is_silent_for_a_minute_holds_nothing_back(tmp_path: Path) -> None:
    hosts = {name: Host(tmp_path / "logs", name) for name in ("h1", "h2")}
    clock = Clock()
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(tmp_path / "logs", store, clock)
        for host in hosts.values():
            host.write(5)
        watch.cycle()
        for _ in range(SILENT_NS // SECOND + 1):
            hosts["h1"].write(1)
            clock.seconds += 1
            watch.cycle()
        assert finals(ground)["cluster", ""] == expected({"h1": hosts["h1"]})["cluster", ""]
        answer = store.answer(Question(step=SECOND, by=("host",)))
        table = percentiles(answer, Wanted(parse_percentiles("50")))
        complete = {(host, when) for host, when, one in cells(table, "host", "start_ns", "complete") if one}
        assert complete == {(host, when) for host, when, _ in cells(table, "host", "start_ns", "complete") if host == "h1"} | {
            ("h2", (EPOCH + number) * SECOND) for number in range(4)
        }  # what h2 has reported is whole, since then it may lack samples
        assert "silent" in {one.code for one in answer.caveats}
        together = percentiles(store.answer(Question(step=SECOND)), Wanted(parse_percentiles("50")))
        assert [one for *_, one in cells(together, "start_ns", "complete")] == [number < 4 for number in range(len(together))]
        hosts["h2"].write(3)  # it was only slow
        watch.cycle()
        assert not store.answer(Question(step=SECOND)).caveats
        batched = batch(tmp_path / "logs", tmp_path / "batch.db")
        assert answers(ground.url) == answers(batched)


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["sqlite", pytest.param("double", marks=pytest.mark.soak)], indirect=True)
def test_several_watches_of_one_run(ground, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    with opened(*(ground.url for _ in names), write=True) as stores:
        several_watches(ground, tmp_path, dict(zip(names, stores, strict=True)))


def several_watches(ground, tmp_path: Path, stores: dict[str, Store]) -> None:
    rng, clock = random.Random(5), Clock()
    names = tuple(stores)
    hosts = {name: Host(tmp_path / "logs", name) for name in names}
    watches = {name: begun(tmp_path / "logs" / name, stores[name], clock, reading={"host": name}) for name in names}
    for name in names:
        hosts[name].write(4)
        watches[name].cycle()
    for _ in range(12):
        name = rng.choice(names)
        hosts[name].write(rng.randint(1, 4))
        clock.seconds += 1
        watches[name].cycle()
        assert answers(ground.url) == answers(batch(tmp_path / "logs", tmp_path / "batch.db"))
        [record] = stores["a"].runs()
        assert record.final_ns == min(host.reported_ns for host in hosts.values()) - LARGEST
    for name in names:
        hosts[name].write(2)
        watches[name].cycle(last=True)
        watches[name].settle()
        assert not watches[name].watching.said
        [record] = stores["a"].runs()
        assert record.state == (COMPLETE if name == names[-1] else WATCHED)
        left = names[names.index(name) + 1 :]
        for other in left:
            hosts[other].write(1)
            watches[other].cycle()
        assert answers(ground.url) == answers(batch(tmp_path / "logs", tmp_path / "batch.db"))
