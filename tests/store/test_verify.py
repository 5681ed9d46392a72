"""`runs check`: each fault that is planted is found and mended, and then nothing is found; a sound store has none."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.store.elastic.client import Connection
from ingest.store.rollups import LOWS
from ingest.store.verify import KINDS
from tests.databases import database
from tests.effort import figure
from tests.store.grounds import FIO, ElasticGround, SqliteGround, grounds, loaded
from tests.store.test_contract import ZERO

Ground = SqliteGround | ElasticGround


class Place:
    """One store for all faults of it: each test leaves it as it was; one that failed has it made anew."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.sound = False
        self._open: Any = None

    def fresh(self) -> Ground:
        """Give the store with two runs: one of two hosts, one of one."""
        if not self.sound:
            self.close()
            self._open = grounds(self.kind, self.folder)
            self.ground = self._open.__enter__()
            loaded(self.ground.url, hosts(self.folder), reading=ZERO)
            loaded(self.ground.url, hosts(self.folder)[:1], run="other", reading=ZERO)
            self.clean = self.ground.documents(), self.ground.rollups()
        self.sound = False
        return self.ground

    def close(self) -> None:
        """Let go of it."""
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._open = None


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Place]]:
    found = {kind: Place(kind, tmp_path_factory.mktemp(kind)) for kind in ("sqlite", "double")}
    yield found
    for one in found.values():
        one.close()


def hosts(folder: Path) -> list[Path]:
    for host in ("h1", "h2"):
        (folder / host).mkdir(exist_ok=True)
        shutil.copy(FIO / "coarse-3" / "a_clat_hist.1.log", folder / host)
    return [folder / "h1", folder / "h2"]


def checked(ground: Ground, capsys: Any, *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = command(["runs", "check", "--store", ground.url, "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def kinds(told: dict[str, Any]) -> set[str]:
    return {one["kind"] for one in told["faults"]}


def by_sql(*statements: str) -> Callable[[SqliteGround], None]:
    def plant(ground: SqliteGround) -> None:
        with database(ground.path) as db:
            for statement in statements:
                assert db.execute(statement).rowcount > 0, statement

    return plant


def changed(
    index: str, where: Callable[[dict[str, Any]], bool], change: Callable[[dict[str, Any]], Any], *, all_of_them: bool = False
):
    """Plant a changed document: `change` returns its other id, or nothing to overwrite it; None deletes it."""

    def plant(ground: ElasticGround) -> None:
        hits = [hit for hit in ground.hits(index) if where(hit["_source"])]
        assert hits, "there is something to change"
        for hit in hits if all_of_them else hits[:1]:
            body = json.loads(json.dumps(hit["_source"]))
            other = change(body)
            ground.client.delete(index=hit["_index"], id=hit["_id"], refresh=True)
            if other is not None:
                ground.client.index(index=hit["_index"], id=other or hit["_id"], document=body, refresh=True)

    return plant


def in_r(one: dict[str, Any]) -> bool:
    return one["run"]["id"] == "r"


def put(path: str, value: Any, identity: str = "") -> Callable[[dict[str, Any]], str]:
    def change(one: dict[str, Any]) -> str:
        *above, last = path.split(".")
        for name in above:
            one = one[name]
        one[last] = value(one.get(last)) if callable(value) else value
        return identity

    return change


def gone(_: dict[str, Any]) -> None:
    return None


OF_R = "(SELECT id << 36 FROM series WHERE run = 'r' ORDER BY id LIMIT 1)"
A_DOCUMENT = f"id = (SELECT min(id) FROM intervals WHERE id >= {OF_R})"
HOST_ROLLUP = "run = 'r' AND scope = 'host' AND step_ns = 1000000000 AND start_ns = (SELECT min(start_ns) FROM rollups WHERE run = 'r' AND step_ns > 0)"
SOURCE_OF_R = "run = 'r' AND source = (SELECT min(source) FROM sources WHERE run = 'r')"


def is_record(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda one: in_r(one) and one["record"] == kind


def is_rollup(scope: str, step_ms: int) -> Callable[[dict[str, Any]], bool]:
    return lambda one: in_r(one) and one["rollup"]["scope"] == scope and one["rollup"]["step_ms"] == step_ms


SQLITE = {
    "run gone": ("no run", by_sql("DELETE FROM runs WHERE run = 'r'")),
    "mark without run": ("no run", by_sql("INSERT INTO marks VALUES ('ghost', 5, 'x', NULL)")),
    "episode without run": (
        "no run",
        by_sql("INSERT INTO episodes VALUES ('ghost','o','{}',1,2,'k','99',1,1,1,0,1,1,0,0,'','ended',NULL,NULL)"),
    ),
    "watch without run": ("no run", by_sql("INSERT INTO watches VALUES ('ghost','w',1,1,1)")),
    "breath without run": (
        "no run",
        by_sql("INSERT INTO breaths VALUES ('ghost','','','','',1,1,1,1,1,1,1,1,1,1,1,1,1,x'','s',1)"),
    ),
    "point without run": ("no run", by_sql("INSERT INTO points VALUES ('ghost','','','','',1,1,1,1,1,'s',1)")),
    "source gone": ("no source", by_sql(f"DELETE FROM sources WHERE {SOURCE_OF_R}")),
    "point without source": ("no source", by_sql("INSERT INTO points VALUES ('r','','','','',1,1,1,1,1,'s',1)")),
    "checkpoint without source": ("no source", by_sql("INSERT INTO checkpoints VALUES ('r','s','w','{}')")),
    "series gone": (
        "no series",
        by_sql(
            "INSERT INTO intervals SELECT (99 << 36) + 5, count, sum, min, max, coding, bins, 1, bytes FROM intervals LIMIT 1"
        ),
    ),
    "bins cut off": ("bins", by_sql(f"UPDATE intervals SET bins = substr(bins, 1, length(bins) - 1) WHERE {A_DOCUMENT}")),
    "coding unknown": ("bins", by_sql(f"UPDATE intervals SET coding = 9 WHERE {A_DOCUMENT}")),
    "bins of no layout": ("bins", by_sql(f"UPDATE intervals SET coding = 1, count = 5, bins = x'ffff05' WHERE {A_DOCUMENT}")),
    "count differs from bins": ("bins", by_sql(f"UPDATE intervals SET count = count + 1 WHERE {A_DOCUMENT}")),
    "bins out of order": (
        "bins",
        by_sql(f"UPDATE intervals SET coding = 1, count = 7, bins = x'050003040004' WHERE {A_DOCUMENT}"),
    ),
    "layout unknown": (
        "layouts",
        by_sql("UPDATE series SET layout = 'loglinear:63' WHERE id = (SELECT min(id) FROM series WHERE run = 'r')"),
    ),
    "older reading": (
        "generations",
        by_sql(
            "UPDATE sources SET generation = generation + 1 WHERE run = 'r'",
            "UPDATE intervals SET generation = generation + 1 WHERE id >> 36 IN (SELECT id FROM series WHERE run = 'r')",
            f"UPDATE intervals SET generation = generation - 1 WHERE {A_DOCUMENT}",
        ),
    ),
    "later reading": ("generations", by_sql(f"UPDATE intervals SET generation = generation + 5 WHERE {A_DOCUMENT}")),
    "document gone": ("samples", by_sql(f"DELETE FROM intervals WHERE {A_DOCUMENT}")),
    "breath cells": (
        "bins",
        by_sql("INSERT INTO breaths SELECT 'r','','','','',1,1,1,1,1,1,1,1,1,1,1,1,1,x'01',source,1 FROM sources LIMIT 1"),
    ),
    "rollup of a host gone": ("rollups", by_sql(f"DELETE FROM rollups WHERE {HOST_ROLLUP}")),
    "rollup of the cluster doubled": (
        "rollups",
        by_sql("UPDATE rollups SET count = 2 * count WHERE run = 'r' AND scope = 'cluster' AND step_ns = 10000000000"),
    ),
    "rollup of the run": ("rollups", by_sql("UPDATE rollups SET count = count - 1 WHERE run = 'r' AND step_ns = 0")),
    "rollup with other bins": ("rollups", by_sql(f"UPDATE rollups SET bins = x'050001' WHERE {HOST_ROLLUP}")),
    "rollup of a host that is not there": (
        "rollups",
        by_sql(
            f"INSERT INTO rollups SELECT run, scope, kind, step_ns, start_ns, op, 'h9', end_ns, layout, count, sum, min, mean, max, exact, p50, p75, p90, p95, p99, p99_9, p99_99, final, coding, bins, bytes{', NULL' * len(LOWS)} FROM rollups WHERE {HOST_ROLLUP} LIMIT 1"
        ),
    ),
    "complete with a source that is not": ("states", by_sql(f"UPDATE sources SET state = 'loading' WHERE {SOURCE_OF_R}")),
}
ELASTIC = {
    "run gone": ("no run", changed("runs", is_record("run"), gone)),
    "mark without run": ("no run", lambda ground: of_ghost(ground, "marks", {"text": "x", "mark": {"at_ns": 5}})),
    "episode without run": ("no run", lambda ground: of_ghost(ground, "episodes", {"kind": "completion"})),
    "watch without run": (
        "no run",
        lambda ground: of_ghost(
            ground, "runs", {"record": "watch", "watch": {"id": "w", "final_ns": 1, "largest_ns": 1, "told_ns": 1}}
        ),
    ),
    "point without run": (
        "no run",
        lambda ground: of_ghost(ground, "points-2026.11", {"record": "point", "source": {"id": "s"}}),
    ),
    "source gone": ("no source", changed("runs", is_record("source"), gone)),
    "point without source": (
        "no source",
        lambda ground: of_ghost(ground, "points-2026.11", {"record": "point", "source": {"id": "s"}}, "r"),
    ),
    "checkpoint without source": (
        "no source",
        lambda ground: of_ghost(ground, "runs", {"record": "checkpoint", "source": {"id": "s"}, "watch": {"id": "w"}}, "r"),
    ),
    "document without run": ("no run", changed("intervals-*", in_r, put("run", {}, "other-id"))),
    "count differs from bins": ("bins", changed("intervals-*", in_r, put("latency.count", lambda was: was + 1))),
    "value of no bin": (
        "layouts",
        changed(
            "intervals-*",
            in_r,
            put("latency.histogram.values", lambda was: [was[0] + 3, *was[1:]] if len(was) == 1 else [*was[:-1], was[-1] + 3]),
        ),
    ),
    "layout unknown": ("layouts", changed("intervals-*", in_r, put("latency.layout", "loglinear:63"))),
    "two layouts in a series": (
        "layouts",
        changed("intervals-*", in_r, put("latency.layout", "loglinear:64:1856:1ns:c0:midpoint:open")),
    ),
    "older reading": ("generations", changed("runs", is_record("source"), put("generation", lambda was: was + 1))),
    "later reading": ("generations", changed("intervals-*", in_r, put("generation", lambda was: was + 5))),
    "document gone": ("samples", changed("intervals-*", in_r, gone)),
    "document of another step": ("steps", changed("intervals-*", in_r, put("interval.step_ms", 5000))),
    "rollup of a host gone": ("rollups", changed("rollups-*", is_rollup("host", 1000), gone)),
    "rollup of the cluster doubled": (
        "rollups",
        changed("rollups-*", is_rollup("cluster", 10_000), put("latency.count", lambda was: 2 * was)),
    ),
    "rollup of the run": ("rollups", changed("rollups-*", is_rollup("host", 0), put("latency.count", lambda was: was - 1))),
    "rollup with other bins": (
        "rollups",
        changed("rollups-*", is_rollup("host", 1000), put("latency.histogram.counts", lambda was: [was[0] + 1, *was[1:]])),
    ),
    "rollup of a host that is not there": (
        "rollups",
        changed("rollups-*", is_rollup("host", 1000), put("host.name", "h9", "other-id")),
    ),
    "complete with documents refused": ("states", changed("runs", is_record("source"), put("source.refused", 3))),
}


def of_ghost(ground: ElasticGround, index: str, body: dict[str, Any], run: str = "ghost") -> None:
    body = {"run": {"id": run}, "@timestamp": 1_789_999_200_000, "generation": 1, **body}
    if index in ("marks", "episodes"):
        del body["generation"]
    ground.client.index(index=f"{ground.prefix}-{index}", id="planted", document=body, refresh=True)


HARD_TO_READ = ("bins cut off", "coding unknown", "bins of no layout", "layout unknown", "series gone", "run gone")


def planted() -> Iterator[Any]:
    """Every fault of every store; the first of each kind is quick."""
    for store, faults in (("sqlite", SQLITE), ("double", ELASTIC)):
        seen: set[str] = set()
        for name, (kind, _) in faults.items():
            yield pytest.param(store, name, id=f"{store}-{name}", marks=pytest.mark.slow if kind in seen else ())
            seen.add(kind)


@pytest.mark.cases(8)
@pytest.mark.parametrize(("store", "name"), list(planted()))
def test_a_planted_fault_is_found_and_mended(places: dict[str, Place], store: str, name: str, capsys: Any) -> None:
    place = places[store]
    ground = place.fresh()
    kind, plant = (SQLITE if store == "sqlite" else ELASTIC)[name]
    plant(ground)  # type: ignore[operator]
    before = None if name in HARD_TO_READ else ground.documents()
    status, told = checked(ground, capsys)
    assert status == 4 and kind in kinds(told), told
    assert before is None or ground.documents() == before, "nothing is changed unasked"
    assert checked(ground, capsys, "other")[0] == 0, "only what was asked for is looked at"
    status, told = checked(ground, capsys, "--mend")
    assert all(one["mended"] for one in told["faults"])
    assert status == (4 if told["load_again"] else 0)
    again, left = checked(ground, capsys)
    assert (again, left["faults"]) == (0, []), left
    if told["load_again"] or name in ("run gone", "source gone"):
        assert left["unfinished"] or name in ("run gone", "source gone")
        loaded(ground.url, hosts(place.folder), reading=ZERO)
        status, left = checked(ground, capsys)
    assert left["faults"] == []
    assert (status, left) == (0, {"runs": 2, "documents": len(place.clean[0]), "faults": [], "unfinished": [], "load_again": []})
    assert (ground.documents(), ground.rollups()) == place.clean
    place.sound = True


def test_the_kinds_are_all_planted() -> None:
    """But a damaged file: that has a test of its own."""
    assert {kind for kind, _ in (*SQLITE.values(), *ELASTIC.values())} == set(KINDS) - {"file"}


DATA = Path(__file__).parents[1] / "data"
SOUND = {
    "histogram logs": ("fio/randrw", {}),
    "histogram logs in flight": ("fio/randrw", {"attribution": "in-flight"}),
    "means": ("fio/means-100", {}),
    "means that cannot be in flight": ("fio/means-100", {"attribution": "in-flight"}),
    "single operations": ("raw/ycsb", {}),
    "single operations in flight": ("raw/both", {"attribution": "in-flight"}),
    "unlike layouts": ("fio/fio-3.16", {}),
    "latency_target": ("fio/latency-target", {}),
    "averaged archive": ("cbt/averaged", {}),
    "moments": ("traces/cpu.txt.xz", {}),
    "timeline with breaths": ("snabb/cut/real.timeline.xz", {}),
    "HdrHistogram": ("hdr/2.2.2-3-digits.hlog", {"reading": {"recorded_unit_ns": 1000}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_whatever_was_loaded_is_sound(store: str, tmp_path: Path, capsys: Any) -> None:
    with grounds(store, tmp_path) as ground:
        for name, (path, options) in SOUND.items():
            words = {**options, "reading": {**ZERO, **options.get("reading", {})}}
            assert loaded(ground.url, [DATA / path], run=name, **words).loaded > 0, name
        status, told = checked(ground, capsys)
        assert (status, told["faults"], told["unfinished"]) == (0, [], []), told
        assert told["runs"] >= len(SOUND)


@pytest.mark.slow
def test_a_store_is_sound_after_every_command(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """The commands of README and its table that write."""
    monkeypatch.chdir(tmp_path)
    archive, store = str(DATA.parents[1] / "examples" / "cbt-archive"), f"sqlite:{tmp_path / 's.db'}"
    hlog = str(DATA / "hdr" / "2.2.2-3-digits.hlog")
    (tmp_path / "SLA.yml").write_text("objectives:\n  - {name: slow, percentile: 90, threshold: 1ns, window: 5s}\n")
    for words in (
        ["load", archive, "--run", "nightly-42", "--store", store],
        ["load", archive, "--run", "nightly-42", "--store", store],
        ["load", archive, "--run", "nightly-42", "--store", store, "--replace", "--step", "5s"],
        ["watch", hlog, "--run", "live", "--recorded-unit", "us", "--until-idle", "10ms", "--interval", "5ms", "--store", store],
        ["mark", "--run", "nightly-42", "--at", "+33s", "osd.3 down", "--store", store],
        ["check", "SLA.yml", store, "--run", "nightly-42", "--record"],
        ["runs", "coarsen", "nightly-42", "--step", "10s", "--store", store],
        ["load", archive, "--run", "nightly-43", "--attribution", "in-flight", "--store", store],
        ["runs", "check", "--mend", "--store", store],
        ["runs", "delete", "nightly-42", "--yes", "--store", store],
    ):
        assert command(words) in (0, 1), words
        capsys.readouterr()
        assert command(["runs", "check", "--store", store]) == 0, words
        assert capsys.readouterr().out.startswith("no fault in "), words


def test_a_damaged_file_is_told_and_not_mended(tmp_path: Path, capsys: Any) -> None:
    ground = SqliteGround(tmp_path)
    loaded(ground.url, hosts(tmp_path), reading=ZERO)
    with database(ground.path) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rollups'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    content = bytearray(ground.path.read_bytes())
    content[(root - 1) * size : (root - 1) * size + 16] = b"\xff" * 16
    ground.path.write_bytes(bytes(content))
    for words in ((), ("--mend",)):
        status, told = checked(ground, capsys, *words)
        assert status == 4
        (fault,) = [one for one in told["faults"] if one["kind"] == "file"]
        assert not fault["mended"] and fault["remedy"] == "load the logs into a new store"


def test_what_is_said_to_people(tmp_path: Path, capsys: Any) -> None:
    ground = SqliteGround(tmp_path)
    paths = hosts(tmp_path)
    loaded(ground.url, paths, reading=ZERO)
    check = ["runs", "check", "--store", ground.url]
    assert command(check) == 0
    assert capsys.readouterr().out == "no fault in 1 run, 12 documents\n"
    by_sql(f"DELETE FROM intervals WHERE {A_DOCUMENT}")(ground)
    assert command(check) == 4
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("samples: 1 source holds a different number of samples than its load counted in r; the first: ")
    assert first.endswith("; --mend marks the sources incomplete, so that the next load reads them again")
    assert command([*check, "--mend"]) == 4
    told = capsys.readouterr()
    assert told.out.splitlines()[0].endswith("; mended") and any(f"to be loaded again: {path}" in told.err for path in paths)
    assert command(check) == 0
    assert "r is being loaded, or its load was cut off (the same load completes it)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_server_is_asked_little(tmp_path: Path, monkeypatch: Any) -> None:
    """Requests grow with runs and series by pages, not with documents."""
    with grounds("double", tmp_path) as ground:
        for number in range(4):
            loaded(ground.url, [FIO / "randrw"], run=f"r{number}", reading=ZERO)
        asked: list[str] = []
        real = Connection.once
        monkeypatch.setattr(Connection, "once", lambda *words, **more: (asked.append(words[2]), real(*words, **more))[1])
        assert command(["runs", "check", "--store", ground.url]) == 0
        assert len(ground.documents()) > 50
        assert len(asked) < 40, asked


FORMATS = ("fio", "hdr", "histograms", "raw", "snabb", "traces")
A_LATENCY_GONE = (
    "DELETE FROM intervals WHERE id = (SELECT i.id FROM intervals i JOIN series s ON s.id = i.id >> 36 "
    "WHERE kind <> 'offset' AND i.count > 0 ORDER BY i.id LIMIT 1)"
)
NO_LOGS = {".md", ".sh", ".java", ".yml"}


def operations(folder: Path, *, intended: bool) -> Path:
    """Write 200 operations on time, 1,000 a second; `intended`: each 300 us after its planned start, in a column of its own."""
    path, late = folder / "ops.csv", 300 if intended else 0
    lines = ["intended_us,start_us,end_us,op" if intended else "start_us,end_us,op"]
    for due in range(1_700_000_000_000_000, 1_700_000_000_200_000, 1000):
        lines.append(f"{f'{due},' if intended else ''}{due + late},{due + late + 600},read")
    path.write_text("\n".join(lines) + "\n")
    return path


DERIVED = {
    "rate": (["--rate", "1000"], 600),
    "expected interval": (["--expected-interval", "1ms"], 400),
    "rate and expected interval": (["--rate", "1000", "--expected-interval", "100us"], None),
    "rate, in flight": (["--rate", "1000", "--attribution", "in-flight"], 600),
    "rate, added up": (["--rate", "1000", "--add-up", "job"], 600),
    "of a layer": (["--rate", "1000", "--expected-interval", "1ms", "--label", "layer=service"], None),
    "intended": (["--intended-start-column", "intended_us"], 600),
}


@pytest.mark.cases(8)
@pytest.mark.parametrize("store", ["sqlite", "double"])
@pytest.mark.parametrize("name", DERIVED)
def test_l2_kinds_that_are_derived_are_no_fault(store: str, name: str, tmp_path: Path, capsys: Any) -> None:
    """Response and wait time and corrected data are stored beside what the file holds: a load by a schedule is sound."""
    words, stored = DERIVED[name]
    log = operations(tmp_path, intended=name == "intended")
    with grounds(store, tmp_path) as ground:
        load = ["load", str(log), "--run", "r", "--store", ground.url, *words]
        assert command(load) == 0
        before = ground.documents()
        assert stored in (None, sum(one["count"] for one in before))
        for check in ((), ("--mend",)):
            status, told = checked(ground, capsys, *check)
            assert (status, told["faults"], told["unfinished"]) == (0, [], []), told
        assert ground.documents() == before
        command(["doctor", ground.url])
        assert "wrong     what is stored" not in capsys.readouterr().out
        if store == "sqlite":
            by_sql(A_LATENCY_GONE)(ground)
        else:
            changed("intervals-*", in_r, gone)(ground)
        assert checked(ground, capsys)[0] == 4, "what is really lost is found"
        assert checked(ground, capsys, "--mend")[0] == 4
        assert command(load) == 0
        assert checked(ground, capsys)[0] == 0 and ground.documents() == before


@pytest.mark.parametrize("name", ["rate", "expected interval", "rate and expected interval", "intended"])
def test_l2_accounts_of_older_versions_do_not_say_what_is_derived(name: str, tmp_path: Path, capsys: Any) -> None:
    ground = SqliteGround(tmp_path)
    log = operations(tmp_path, intended=name == "intended")
    assert command(["load", str(log), "--run", "r", "--store", ground.url, *DERIVED[name][0]]) == 0
    by_sql("UPDATE sources SET account = json_remove(account, '$.stored')")(ground)
    assert checked(ground, capsys)[0] == 0
    by_sql(
        "DELETE FROM intervals WHERE id = (SELECT max(i.id) FROM intervals i JOIN series s ON s.id = i.id >> 36 WHERE kind = 'service')"
    )(ground)
    status, told = checked(ground, capsys)
    assert status == 4 and "samples" in kinds(told)


def test_l2_a_load_that_adds_to_a_run_counts_what_is_derived(tmp_path: Path) -> None:
    """How many samples a run holds already: a store that adds up only so many refuses more."""
    from ingest.load.plan import LoadOptions, plans
    from ingest.read.placement import discover
    from ingest.read.sources import ReadOptions
    from ingest.store import open_store

    ground = SqliteGround(tmp_path)
    (tmp_path / "h1").mkdir()
    log = operations(tmp_path / "h1", intended=False)
    assert command(["load", str(log), "--run", "r", "--store", ground.url, "--rate", "1000", "--host", "h1"]) == 0
    options = LoadOptions(ReadOptions(run="r", host="h2", t0=None, rate="1000"))
    with open_store(ground.url, write=True) as store:
        (log.parent / "more.csv").write_text(log.read_text().replace("read", "write"))
        (plan,) = plans(discover([log.parent / "more.csv"], options.read), store, options, Counter())
        assert plan.held == 600


def random_load(rng: random.Random) -> list[str]:
    """Return options of a load, at random: each with its share of the chance."""
    chosen: list[str] = []
    for chance, option, values in (
        (0.4, "--rate", ("1000", "10", "33.3")),
        (0.5, "--expected-interval", ("1ms", "10ms", "1s")),
        (0.3, "--attribution", ("in-flight",)),
        (0.3, "--add-up", ("job", "job,volume,process,tag")),
        (0.2, "--keep-idle", ("",)),
        (0.2, "--no-offsets", ("",)),
        (0.2, "--prefer", ("raw",)),
        (0.2, "--digits", ("1", "2", "3")),
        (0.2, "--label", ("layer=device",)),
        (0.3, "--step", ("1s", "5s", "10s")),
    ):
        if rng.random() < chance:
            chosen += [word for word in (option, rng.choice(values)) if word]
    return [*chosen, *(["--force"] if "--step" in chosen else [])]


def answers(ground: Ground, capsys: Any) -> str:
    """Return all windows of all kinds; nothing where the store holds no latency."""
    capsys.readouterr()
    command(["percentiles", ground.url, "--by", "run,host,volume,job,op,tag,kind", "--where", "kind=*", "--format", "csv"])
    return str(capsys.readouterr().out)


def logs_of(folder: str) -> list[Path]:
    return [
        path for path in sorted((DATA / folder).iterdir()) if path.suffix not in NO_LOGS and not path.name.endswith("bins.gz")
    ]


@pytest.mark.cases(3)
@pytest.mark.parametrize("folder", FORMATS)
def test_l2_whatever_is_loaded_however_is_sound_until_it_is_damaged(folder: str, tmp_path: Path, capsys: Any) -> None:
    """Random options on random logs of every format: nothing is found, and mending changes no answer; a lost document is found."""
    rng, seen = random.Random(folder), 0
    for number in range(figure(3, 5, 60)):
        (tmp_path / str(number)).mkdir()
        ground, path, words = SqliteGround(tmp_path / str(number)), rng.choice(logs_of(folder)), random_load(rng)
        load = ["load", str(path), "--run", "r", "--t0", "2026-09-22T00:00:00Z", "--jobs", "1", "--store", ground.url, *words]
        unit = "ns" if path.stem == "double" else "us"  # as us its I/Os would be in flight for days: 100,000 windows
        if command([*load, "--recorded-unit", unit] if folder == "hdr" else load):
            continue  # refused, or has no row
        before = answers(ground, capsys)
        for check in ((), ("--mend",)):
            status, told = checked(ground, capsys, *check)
            assert (status, told["faults"], told["unfinished"]) == (0, [], []), (path, words, told)
        assert answers(ground, capsys) == before
        if before:
            by_sql(A_LATENCY_GONE)(ground)
            status, told = checked(ground, capsys)
            assert status == 4 and "samples" in kinds(told), (path, words, told)
        seen += 1
    assert seen


def test_weights_that_are_gone_are_a_fault_and_json_is_printed_whatever_is_mended(tmp_path: Path, capsys: Any) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, hosts(tmp_path)[:1], run="r", reading=ZERO, attribution="in-flight")
        by_sql("UPDATE intervals SET bins = x'' WHERE id = (SELECT min(id) FROM intervals)")(ground)
        status, told = checked(ground, capsys)
        assert (status, kinds(told)) == (4, {"bins", "samples"})
        status, told = checked(ground, capsys, "--mend")
        assert kinds(told) == {"bins", "samples"} and told["load_again"]
        loaded(ground.url, hosts(tmp_path)[:1], run="r", reading=ZERO, attribution="in-flight")
        assert checked(ground, capsys)[0] == 0
