"""Alert rules: which objectives get one, that their questions find the windows that the query layer finds, and that Kibana takes them."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from ingest.core.errors import StoreError
from ingest.core.objective import Budget, Latency, Objective, Rate
from ingest.core.quantiles import STORED, parse_percentiles
from ingest.objectives.check import check, labels_of
from ingest.objectives.objectives import read_objectives
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.records import COARSE_STEPS
from ingest.view.kibana.importing import Connection
from ingest.view.kibana.rules import STEPS_NS, Rule, put_rule, question, reasons_against, rule_id, rules_for, stored_rule
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.kibana import KibanaDouble
from tests.doubles.kibana.proofs.asking import send
from tests.store.grounds import SERVER, ElasticGround, SqliteGround, loaded

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "cbt-archive"
OTHER = ROOT / "tests" / "data" / "fio" / "randrw"
SECOND = 1_000_000_000
TEN, MINUTE = 10 * SECOND, 60 * SECOND
COLUMNS = ("windows", "carried", "worst_ns", "largest_ns", "samples", "earliest", "latest")
PATHS = {"run": "run.id", "host": "host.name", "op": "operation"}


def promised(threshold_ns: int = 5_000_000, p: str = "99", window: int = TEN, **words) -> Objective:
    given = {"name": "a", "where": {"kind": "completion", "op": "read"}, "by": (), "for_ns": 0, "hold_ns": window, **words}
    return Objective(promise=Latency(parse_percentiles(p)[0], threshold_ns), window_ns=window, **given)


# ---- the question, against SQLite ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Iterator[tuple[ElasticGround, SqliteGround]]:
    """The example and a second run of another shape, in the double and in SQLite; in the double also windows that must not count."""
    with ElasticsearchDouble(version=SERVER) as double:
        elastic, sqlite = ElasticGround(double.url), SqliteGround(tmp_path_factory.mktemp("rules"))
        for ground in (elastic, sqlite):
            loaded(ground.url, [EXAMPLE], run="example")
            loaded(ground.url, [OTHER], run="other", reading={"t0": 1_795_208_420 * SECOND})
        _spoil(elastic)
        yield elastic, sqlite
        assert double.refusals == []


def _spoil(ground: ElasticGround) -> None:
    """Add rollups that no rule may see: one that is not final, one of corrected data, one that has lost its samples."""
    hit = next(one for one in ground.hits("rollups-*") if one["_source"]["latency"]["count"])
    source = {**hit["_source"], "run": {"id": "ghost"}}
    hours = {
        "p50": 3.6e12,
        "p75": 3.6e12,
        "p90": 3.6e12,
        "p95": 3.6e12,
        "p99": 3.6e12,
        "p99_9": 3.6e12,
        "p99_99": 3.6e12,
        "max": 3_600 * SECOND,
    }
    slow = {**source["latency"], **hours}
    for scope in ("host", "cluster"):
        for step in (10_000, 60_000):
            words = {
                **source,
                "rollup": {**source["rollup"], "scope": scope, "step_ms": step},
                "operation": "read",
                "kind": "completion",
            }
            for more in (
                {"latency": slow, "final": False},
                {"latency": slow, "kind": "completion.corrected"},
                {"latency": {"count": 0}},
            ):
                ground.client.index(index=hit["_index"], document={**words, **more})
    ground.client.indices.refresh(index="*")


def asked(ground: ElasticGround, objective: Objective, begin_ns: int, end_ns: int) -> dict[tuple[str, ...], tuple]:
    """Return what a rule gets, asked as Kibana asks: a limit behind the text, the time range as a filter."""

    def stamp(ns: int) -> str:
        return datetime.fromtimestamp(ns / SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    bounds = {"gt": stamp(begin_ns), "lte": stamp(end_ns), "format": "strict_date_optional_time"}
    body = {
        "query": f"{question(objective, ground.prefix)} | limit 1000",
        "filter": {"bool": {"filter": [{"range": {"@timestamp": bounds}}]}},
    }
    answer = ground.client.perform_request(
        "POST", "/_query", headers={"accept": "application/json", "content-type": "application/json"}, body=body
    ).body
    names = [column["name"] for column in answer["columns"]]
    groups = ["run.id", *(PATHS[name] for name in ("host", "op") if name in objective.by)]
    assert names == [*COLUMNS, *groups]
    largest = [row[names.index("largest_ns")] for row in answer["values"]]
    assert largest == sorted(largest, reverse=True)
    # A run that does not say its host has no host.name: Kibana leaves a null out of an alert's name.
    return {tuple(label or "" for label in row[len(COLUMNS) :]): tuple(row[: len(COLUMNS)]) for row in answer["values"]}


def windows_of(ground: SqliteGround, objective: Objective) -> list[tuple[tuple[str, ...], int, float, int, int]]:
    """Return what the query layer says of each window of SQLite: labels, start, the percentile (NaN), maximum, samples."""
    labels = ["run", *(name for name in ("host", "op") if name in objective.by)]
    asking = Question(by=tuple(labels), where=dict(objective.where), step=objective.window_ns)
    with open_store(ground.url) as store:
        columns = percentiles(store.answer(asking), Wanted((objective.promise.percentile,))).columns
    keys = zip(*(map(str, columns[name]) for name in labels))
    numbers = (columns[name].tolist() for name in ("start_ns", objective.promise.percentile.name, "max", "count"))
    return list(zip(keys, *numbers))


def judged(number: float, largest: int) -> float:
    return largest if math.isnan(number) else number


def expected(ground: SqliteGround, objective: Objective, begin_ns: int, end_ns: int) -> dict[tuple[str, ...], tuple]:
    """Return what a rule must get, from the query layer."""
    found: dict[tuple[str, ...], list] = {}
    for key, start, number, largest, count in windows_of(ground, objective):
        if begin_ns < start <= end_ns and judged(number, largest) > objective.promise.threshold_ns:
            found.setdefault(key, []).append((start, number, largest, count))
    return {key: _told(rows) for key, rows in found.items()}


def _told(rows: list) -> tuple:
    starts, numbers, largest, counts = zip(*rows)
    carried = [number for number in numbers if not math.isnan(number)]
    edges = [
        datetime.fromtimestamp(at // SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for at in (min(starts), max(starts))
    ]
    return len(rows), len(carried), max(carried, default=None), max(largest), sum(counts), *edges


ALL_TIME = (0, 4_000_000_000 * SECOND)
STRETCH = (1_795_208_420 * SECOND, 1_795_208_450 * SECOND)
HOSTS = {"by": ("host",)}


@pytest.mark.cases(49)
@pytest.mark.slow
@pytest.mark.parametrize("stretch", [ALL_TIME, STRETCH], ids=["always", "30 s of it"])
@pytest.mark.parametrize("share", [0.9, 0, 0.4, 1])
@pytest.mark.parametrize(
    "objective",
    [
        *(promised(p=p, **HOSTS) for p in ("50", "90", "99", "99.9")),
        *(promised(p=p) for p in ("75", "95", "99.99")),
        promised(p="99.90", window=MINUTE),
        promised(p="99.9", window=MINUTE, by=("host", "run")),
        promised(by=("op", "host"), where={"kind": "completion"}),
        promised(by=("op",), where={"kind": "completion"}),
        promised(where={"kind": "completion", "op": "write", "host": "ceph-c"}),
        promised(where={"kind": "completion", "op": "write", "host": "ceph-b"}, by=("host",)),
        promised(where={"kind": "completion", "op": "read", "run": "other"}),
    ],
    ids=lambda one: f"p{one.promise.percentile.text} in {one.window_ns // SECOND} s, {dict(one.where)}, by {one.by}",
)
def test_a_rule_finds_the_windows_that_the_query_layer_finds(
    stores, objective: Objective, share: float, stretch: tuple[int, int]
) -> None:
    assert reasons_against(objective) == ()
    elastic, sqlite = stores
    values = sorted(judged(number, largest) for _, _, number, largest, _ in windows_of(sqlite, objective))
    # The threshold is the value of some window, which does not lie above it.
    latency = replace(objective.promise, threshold_ns=int(values[int(share * (len(values) - 1))]))
    promise = replace(objective, promise=latency)
    rows = expected(sqlite, promise, *stretch)
    assert asked(elastic, promise, *stretch) == rows
    if stretch is ALL_TIME:
        assert sum(told[0] for told in rows.values()) == sum(value > latency.threshold_ns for value in values)
        assert bool(rows) == (values[-1] > latency.threshold_ns)


@pytest.mark.slow
def test_the_stall_and_the_slow_host_of_the_example_are_found(stores) -> None:
    elastic, _ = stores
    slow = asked(elastic, promised(20_000_000, **HOSTS), *ALL_TIME)
    assert {host for run, host in slow if run.startswith("example")} == {"ceph-c"}
    stalled = asked(elastic, promised(1_000_000_000, "99.9", **HOSTS), *ALL_TIME)
    assert {host: row[0] for (run, host), row in stalled.items() if run.startswith("example")} == {"ceph-b": 1}


@pytest.mark.slow
def test_windows_with_too_few_samples_are_judged_by_their_largest(stores) -> None:
    elastic, sqlite = stores
    objective = promised(1_000_000, "99.99", **HOSTS)
    rows = asked(elastic, objective, *ALL_TIME)
    assert rows == expected(sqlite, objective, *ALL_TIME)
    assert any(carried < windows for windows, carried, *_ in rows.values())
    assert all(worst is None for _, carried, worst, *_ in rows.values() if not carried)


@pytest.mark.slow
def test_texts_with_quotes_stay_texts(stores) -> None:
    elastic, _ = stores
    for text in ('a" OR true OR "', "back\\slash", "line\nbreak\tand\rmore", "ünïcode", "| DROP x"):
        objective = promised(0 + 1, where={"kind": "completion", "op": "read", "run": text})
        assert asked(elastic, objective, *ALL_TIME) == {}


@pytest.mark.slow
@pytest.mark.parametrize("by", [(), ("host",), ("host", "op")])
@pytest.mark.parametrize(("p", "threshold"), [("99", 5_000_000), ("50", 220_000), ("99.9", 60_000_000)])
def test_a_rule_finds_the_windows_that_check_finds(stores, by: tuple[str, ...], p: str, threshold: int) -> None:
    elastic, sqlite = stores
    where = {"kind": "completion"} if "op" in by else {"kind": "completion", "op": "read"}
    objective = promised(threshold, p, by=by, where=where, no_data="ok")
    assert reasons_against(objective) == ()
    with open_store(sqlite.url) as store:
        records = store.runs()
        found = check(store.answer, labels_of(records), [objective], Question())
    violated = {(one.run, *(value for _, value in one.labels)): one.violated for one in found.verdicts if one.violated}
    ruled = {key: row[0] for key, row in asked(elastic, objective, 0, 4 * 10**18).items()}
    assert ruled == violated != {}


# ---- which objectives get a rule -------------------------------------------------------------------------------------


def test_steps_and_percentiles_are_those_of_rollups() -> None:
    assert STEPS_NS == COARSE_STEPS
    for percentile in STORED:
        assert reasons_against(promised(p=percentile.text)) == ()


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        (promised(p="99.5"), "rollups hold the percentiles 50, 75, 90, 95, 99, 99.9, 99.99, not 99.5"),
        (promised(p="100"), "rollups hold the percentiles 50, 75, 90, 95, 99, 99.9, 99.99, not 100"),
        (promised(window=30 * SECOND), "rollups have windows of 10s and 1m, not of 30s"),
        (promised(window=SECOND), "rollups have windows of 10s and 1m, not of 1s"),
        (promised(for_ns=TEN + 1), "a rule sees single windows, not whether they last for 10000000001ns"),
        (
            promised(budget=Budget(Fraction(1, 80))),
            "a rule sees single windows, not the share of windows that a budget of 1.25% allows",
        ),
        (replace(promised(), promise=Rate(Fraction(5))), "a rule compares percentiles of rollups, and this is a rate"),
        (promised(no_data="violate"), "no_data is violate, and a window without completions has no rollup"),
        (promised(where={"kind": "completion", "op": "read", "volume": "1"}), "rollups do not distinguish one volume from another (where)"),
        (promised(where={"kind": "completion", "op": "r*"}), "where has the pattern op: r*, and a rule takes only exact texts"),
        (promised(where={"kind": "completion", "op": "[rw]"}), "where has the pattern op: [rw], and a rule takes only exact texts"),
        (promised(by=("volume",)), "rollups do not distinguish one volume from another (by)"),
        (promised(by=("kernel",)), "rollups do not distinguish one kernel from another (by)"),
        (promised(where={"op": "read"}), "which kind is the default one depends on the run: add kind to where, as in kind: completion"),
        (promised(where={"op": "read"}, by=("kind",)), "rollups do not distinguish one kind from another (by)"),
        (promised(where={"kind": "completion"}), "rollups hold each op by itself, never all together: add op to where or by"),
    ],
)  # fmt: skip
def test_every_other_objective_is_left_with_its_reason(objective: Objective, reason: str) -> None:
    assert reason in reasons_against(objective)


def test_all_reasons_are_told_at_once() -> None:
    objective = promised(p="99.5", window=SECOND, for_ns=MINUTE, no_data="violate", where={"host": "*"}, by=("job",))
    assert len(reasons_against(objective)) == 8
    rules, left = rules_for([objective, promised(name="b")], "tailboard", "default", "9.5.3")
    assert [one.name for one in rules] == ["b"]
    assert [(one.name, len(one.reasons)) for one in left] == [("a", 8)]


@pytest.mark.parametrize(
    "words", [{"for_ns": TEN}, {"no_data": "ok"}, {"no_data": "hold"}, {"hold_ns": 5 * MINUTE}, {"by": ("run",)}]
)
def test_what_rollups_can_answer_gets_a_rule(words: dict) -> None:
    assert reasons_against(promised(**words)) == ()


def test_the_objective_of_the_documentation_gets_a_rule(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(objectives:.*?)```", (ROOT / "docs" / "guides" / "kibana.md").read_text(), re.DOTALL)
    path = tmp_path / "SLA.yml"
    path.write_text(example)
    (objective,) = read_objectives(path)
    assert reasons_against(objective) == ()


def test_ids_are_fixed_and_no_two_share_one() -> None:
    assert rule_id("tailboard", "default", "read p99") == "9a8efbdc-3259-5e8a-9265-20d294df2ccb"
    ids = {rule_id(prefix, space, name) for prefix in ("a", "b") for space in ("default", "perf") for name in ("x", "y", "x:y")}
    assert len(ids) == 12
    assert {uuid.UUID(one).version for one in ids} == {5}


# ---- Kibana ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kibana(monkeypatch) -> Iterator[KibanaDouble]:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "5")
    with KibanaDouble(spaces=("default", "perf")) as double:
        yield double
        assert double.refusals == []


def connected(kibana: KibanaDouble, space: str = "default") -> Connection:
    connection = Connection(kibana.url, space)
    connection.open()
    return connection


def rule_for(objective: Objective, connection: Connection) -> Rule:
    ((rule,), _) = rules_for([objective], "tailboard", connection.space, connection.version)
    return rule


@pytest.mark.parametrize(
    ("number", "grouping"), [("9.5.3", "row"), ("9.2.0", "row"), ("9.1.9", "all"), ("8.19.21", "all"), ("10.0.0", "row")]
)
def test_alerts_are_told_by_row_where_kibana_can(number: str, grouping: str) -> None:
    with KibanaDouble(number) as kibana:
        connection = connected(kibana)
        rule = rule_for(promised(), connection)
        put_rule(connection, rule, None)
        stored = kibana.rules()[rule.id]
    assert stored["params"]["groupBy"] == grouping
    assert (stored["name"], stored["consumer"], stored["tags"], stored["actions"]) == (
        "[tailboard] a",
        "stackAlerts",
        ["tailboard"],
        [],
    )
    assert stored["params"]["esqlQuery"]["esql"].startswith("FROM tailboard-rollups-*\n| WHERE ")


def test_a_second_time_changes_the_rule_and_keeps_what_people_added(kibana: KibanaDouble) -> None:
    connection = connected(kibana)
    rule = rule_for(promised(), connection)
    assert stored_rule(connection, rule) is None
    put_rule(connection, rule, None)
    there = stored_rule(connection, rule)
    action = {
        "group": "query matched",
        "id": "log",
        "params": {"message": "!"},
        "frequency": {"summary": False, "notify_when": "onActiveAlert", "throttle": None},
    }
    theirs = {name: there[name] for name in ("name", "tags", "schedule", "params")}
    status, _ = send(
        kibana, "PUT", f"/api/alerting/rule/{rule.id}", {**theirs, "actions": [action], "alert_delay": {"active": 3}}
    )
    assert status == 200
    stricter = rule_for(promised(1_000_000), connection)
    assert stricter.id == rule.id
    put_rule(connection, stricter, stored_rule(connection, stricter))
    ((found),) = kibana.rules().values()
    assert found["params"]["esqlQuery"]["esql"] == stricter.esql != rule.esql
    assert found["actions"] == [{**action, "connector_type_id": ".server-log"}]
    assert found["alert_delay"] == {"active": 3}


def test_each_space_has_rules_of_its_own(kibana: KibanaDouble) -> None:
    for space in ("default", "perf"):
        connection = connected(kibana, space)
        put_rule(connection, rule_for(promised(), connection), None)
    assert len(kibana.rules()) == len(kibana.rules("perf")) == 1
    assert set(kibana.rules()).isdisjoint(kibana.rules("perf"))


@pytest.mark.parametrize("fault", ["503", "reset", "reset_after", "half"])
def test_a_rule_is_there_once_whatever_gets_lost(kibana: KibanaDouble, fault: str) -> None:
    connection = connected(kibana)
    rule = rule_for(promised(), connection)
    for there in (None, rule.body):
        kibana.fail_next(fault)
        put_rule(connection, rule, there)
        assert list(kibana.rules()) == [rule.id]


def test_a_refused_rule_is_named_with_the_reason(kibana: KibanaDouble) -> None:
    connection = connected(kibana)
    rule = rule_for(promised(), connection)
    bad = replace(rule, body={**rule.body, "schedule": {"interval": "often"}})
    with pytest.raises(
        StoreError, match=r"refuses the rule 'a' \(400: \[request body.schedule.interval\]: string is not a valid duration"
    ):
        put_rule(connection, bad, None)
    put_rule(connected(kibana, "perf"), rule, None)
    with pytest.raises(StoreError, match=r"refuses the rule 'a' \(409: Saved object \[alert/.*\] conflict\)"):
        put_rule(connection, rule, None)
