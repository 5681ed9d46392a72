"""The Lens panels of the dashboards: what the server answers to their requests is what the query layer says of the same run in SQLite.

Two runs: the example (one kind, three hosts), and operation logs of two hosts with three kinds, of which each counts every
operation. And what the words of a panel may not say.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.core.schema import indices
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from tests.view.kibana.conftest import EXAMPLE, loaded
from tests.view.kibana.lens_rows import asked_rows
from tools.kibana.asked import Shown, chosen
from tools.kibana.asked_lens import lens_interval, lens_request
from tools.kibana.compile import compiled
from tools.kibana.config import Grid, Panel
from tools.kibana.lens_panels import lens_object

SLA = Path(__file__).parents[3] / "examples" / "SLA.yml"
SECOND, MS = 1_000_000_000, 1_000_000
STEP = 10 * SECOND
NAMES = "50,90,99,99.9,99.99"
START = 1_795_183_200  # 2026-11-20T14:00:00Z


KEPT = """objectives:
  - {name: read median, percentile: 50, threshold: 9s, window: 10s, where: {op: read}}
  - {name: few fail, failures: '< 1 %', window: 10s}
"""


def operations(path: Path, seed: int) -> Path:
    """Six minutes of operations, of which some wait: a server that stalls, and none at all for half a minute."""
    chance = random.Random(seed)
    lines = ["start_us,end_us,due_us,op"]
    for number in range(7200):
        due = (START + number // 20) * 1_000_000 + number % 20 * 50_000
        if 60 <= number // 20 < 90:
            continue
        began = due + chance.randrange(5000)
        took = chance.choice([200, 300, 450, 9000 if number % 97 else 700_000])
        lines.append(f"{began},{began + took},{due},{chance.choice(['read', 'write'])}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def site(server, tmp_path_factory):
    """The example and the operation logs in one store of each kind."""
    folder = tmp_path_factory.mktemp("lens")
    logs = [str(operations(folder / f"h{seed}.csv", seed)) for seed in (1, 2)]
    loads = {"nightly": (str(EXAMPLE),)}
    found = loaded(server, folder, "lens", loads)
    for host, log in zip(("h1", "h2"), logs):
        for store in (found.url, found.sqlite):
            words = ["load", log, "--run", "late", "--host", host, "--intended-start-column", "due_us", "--store", store]
            assert command(words) == 0
    for store in (found.url, found.sqlite):
        assert command(["mark", "--run", "late", "--at", "2026-11-20T14:01:00Z", "disk 3 pulled", "--store", store]) == 0
        assert command(["mark", "--run", "late", "--at", "2026-11-20T14:01:10Z", "disk 3 pulled", "--store", store]) == 0
        assert command(["check", str(SLA), store, "--run", "nightly", "--record", "--format", "csv"]) == 1
        (folder / "kept.yml").write_text(KEPT)
        assert command(["check", str(folder / "kept.yml"), store, "--run", "nightly", "--record", "--format", "csv"]) == 0
    return found


@pytest.fixture(scope="session")
def panels():
    """All Lens panels of the dashboards by dashboard and id."""
    return {saved.id.removeprefix("lens-"): saved for saved in compiled("lens") if saved.type == "lens"}


def record_of(site, run: str):
    """The run that begins with a name."""
    with open_store(site.sqlite) as store:
        [record] = [one for one in store.runs() if one.run.startswith(run)]
    return record


def shown_of(site, run: str, *filters) -> Shown:
    """The time range of one run, which then is chosen."""
    record = record_of(site, run)
    with open_store(site.sqlite) as store:
        table = percentiles(store.answer(Question(runs=(record.run,), step=STEP)), Wanted(()))
    begin, end = min(table.columns["start_ns"]), max(table.columns["end_ns"])
    return Shown(int(begin) // MS, int(end) // MS, (chosen("run.id", [record.run]), *filters))


def table_of(site, run: str, step=STEP, by=("op",), **where) -> list[dict]:
    """The query layer's rows: percentiles, count, rate, max of a run; empty cells as None."""
    with open_store(site.sqlite) as store:
        table = percentiles(
            store.answer(Question(runs=(f"{run}*",), step=step, by=by, where=where)), Wanted(parse_percentiles(NAMES))
        )
    names = [*table.columns]
    columns = [table.columns[name] if isinstance(table.columns[name], list) else table.columns[name].tolist() for name in names]
    return [dict(zip(names, (None if value != value else value for value in row))) for row in zip(*columns)]


def worst(rows: list[dict], name: str):
    return max((row[name] for row in rows if row[name] is not None), default=None)


RUNS = {"nightly": ("completion", "ceph-b"), "late": ("response", "h2")}
TILES = {"p99": "p99", "p99-9": "p99.9"}


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("tile", TILES)
def test_tiles_show_the_worst_window_of_the_default_kind(site, panels, run: str, tile: str) -> None:
    saved, (kind, host) = panels[f"cluster-latency-{tile}"], RUNS[run]
    [row] = asked_rows(site, saved, shown_of(site, run))
    cluster, hosts = table_of(site, run), table_of(site, run, by=("host", "op"))
    assert row == {
        "run": record_of(site, run).run,
        "kind": kind,
        "cluster": worst(cluster, TILES[tile]),
        "worst host": worst(hosts, TILES[tile]),
    }
    [row] = asked_rows(site, saved, shown_of(site, run, chosen("host.name", [host])))
    assert row == {
        "run": record_of(site, run).run,
        "kind": kind,
        "cluster": None,
        "worst host": worst([one for one in hosts if one["host"] == host], TILES[tile]),
    }
    [row] = asked_rows(site, saved, shown_of(site, run, chosen("operation", ["write"])))
    assert row["cluster"] == worst([one for one in cluster if one["op"] == "write"], TILES[tile])


@pytest.mark.slow
@pytest.mark.parametrize("tile", TILES)
def test_k3_without_a_choice_a_tile_is_of_the_run_that_began_last(site, panels, tile: str) -> None:
    early, last = sorted(RUNS, key=lambda run: record_of(site, run).start_ns)
    both = Shown(shown_of(site, early).begin_ms, shown_of(site, last).end_ms)
    [row] = asked_rows(site, panels[f"cluster-latency-{tile}"], both)
    assert [row] == asked_rows(site, panels[f"cluster-latency-{tile}"], shown_of(site, last))
    assert [row] != asked_rows(site, panels[f"cluster-latency-{tile}"], shown_of(site, early))
    assert row["run"] == record_of(site, last).run


@pytest.mark.slow
@pytest.mark.parametrize("table", ["cluster-latency-hosts", "hosts-and-threads-host-table"])
def test_k3_without_a_choice_a_table_is_of_the_run_that_began_last(site, panels, table: str) -> None:
    early, last = sorted(RUNS, key=lambda run: record_of(site, run).start_ns)
    both = Shown(shown_of(site, early).begin_ms, shown_of(site, last).end_ms)
    rows = asked_rows(site, panels[table], both)
    assert rows == asked_rows(site, panels[table], shown_of(site, last))
    assert {row["run"] for row in rows} == {record_of(site, last).run}


@pytest.mark.slow
def test_tiles_show_another_kind_when_it_is_chosen(site, panels) -> None:
    [row] = asked_rows(site, panels["cluster-latency-p99"], shown_of(site, "late", chosen("kind", ["service"])))
    assert row["kind"] == "service"
    assert row["cluster"] == worst(table_of(site, "late", kind="service"), "p99")
    assert row["cluster"] != worst(table_of(site, "late"), "p99")


def of_whole_window(row) -> float:
    """Return the rate as Lens has it: windows that the run covers in part are whole ones to it."""
    return row["count"] * SECOND / (row["end_ns"] - row["start_ns"])


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("host", [False, True])
def test_rate_is_that_of_the_windows_for_any_number_of_hosts_and_kinds(site, panels, run: str, host: bool) -> None:
    name = RUNS[run][1]
    rows = asked_rows(site, panels["cluster-latency-rate"], shown_of(site, run, *([chosen("host.name", [name])] if host else [])))
    expected = table_of(site, run, by=("op",), **({"host": name} if host else {}))
    found = {(row["@timestamp"] * MS, row["operation"]): row["I/Os a second"] for row in rows}
    told = {key: value for key, value in found.items() if value is not None}
    assert told == pytest.approx({(row["start_ns"], row["op"]): of_whole_window(row) for row in expected}, rel=1e-12)
    stalled = [(START + seconds) * SECOND for seconds in (60, 70, 80)]
    assert run == "nightly" or [found[at, op] for at in stalled for op in ("read", "write")] == [None] * 6, "gaps, never zeros"


@pytest.mark.slow
def test_a_rate_does_not_depend_on_how_far_one_zooms_in(site, panels) -> None:
    """Buckets of 5 s over windows of 10 s: the same rates, half of the buckets empty."""
    whole = shown_of(site, "nightly")
    zoomed = replace(whole, end_ms=whole.begin_ms + 240_000)
    request = lens_request(panels["hosts-and-threads-host-rate"], zoomed)
    of_host = request.body["aggs"]["0"]["aggs"]["1"]["aggs"]["2"]  # of a run, of its kind
    assert of_host["aggs"]["3"]["date_histogram"]["fixed_interval"] == "5000ms"
    rows = asked_rows(site, panels["hosts-and-threads-host-rate"], zoomed)
    told = {(row["@timestamp"] * MS, row["host.name"]): row["I/Os a second"] for row in rows if row["I/Os a second"] is not None}
    assert told == pytest.approx(
        {(row["start_ns"], row["host"]): of_whole_window(row) for row in table_of(site, "nightly", by=("host",))}
    )
    assert len(told) < len(rows)


@pytest.mark.slow
def test_whole_runs_side_by_side(site, panels) -> None:
    late, nightly = shown_of(site, "late"), shown_of(site, "nightly")
    both = Shown(min(late.begin_ms, nightly.begin_ms) - 60_000, max(late.end_ms, nightly.end_ms))
    rows = asked_rows(site, panels["compare-runs-whole-runs"], both)
    expected = {}
    for run, kinds in (("nightly", ["completion"]), ("late", ["response", "service", "wait"])):
        for kind in kinds:
            for row in table_of(site, run, step="all", by=("run", "op"), kind=kind):
                told = {name: row[name] for name in (*(f"p{name}" for name in NAMES.split(",")), "max")}
                expected[kind, row["op"], row["run"]] = {**told, "I/Os": row["count"]}
    assert len(rows) == len(expected) == 8
    for row in rows:
        assert {name: row[name] for name in expected[row["kind"], row["operation"], row["run"]]} == expected[
            row["kind"], row["operation"], row["run"]
        ]


@pytest.mark.slow
def test_runs_and_their_states(site, panels) -> None:
    """Whatever time range and host are chosen."""
    rows = asked_rows(site, panels["compare-runs-states"], Shown(0, 1000, (chosen("host.name", ["ceph-a"]),)))
    with open_store(site.sqlite) as store:
        expected = {
            record.run: (record.start_ns // MS, record.step_ns, len(store.sources(record.run))) for record in store.runs()
        }
    assert {row["run"]: (row["start"], row["stored step"], row["sources complete"]) for row in rows} == expected
    assert {(row["sources loading"], row["documents refused"]) for row in rows} == {(None, None)}


def lines(page, site, picture: str, shown: Shown, **words) -> list[dict]:
    """The lines of a panel of lines, in their order."""
    page.draw(site.answered(site.spec(picture, **words), shown), width=900, height=900)
    return sorted(page.table("told"), key=lambda row: row["place"])


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("run", [*RUNS, None])
def test_k3_what_happened_is_told_of_the_run_that_is_shown(page, site, run: str | None) -> None:
    """For any host that is chosen; without a choice of the run that began last."""
    early, last = sorted(RUNS, key=lambda run: record_of(site, run).start_ns)
    both = Shown(shown_of(site, early).begin_ms - 60_000, shown_of(site, last).end_ms + 60_000)
    own = (chosen("run.id", [record_of(site, run).run]),) if run else ()
    shown = replace(both, filters=(*own, chosen("host.name", [RUNS[run or last][1]])))
    told = lines(page, site, "story", shown, scope="host", level="overview")
    name = record_of(site, run or last).run
    with open_store(site.sqlite) as store:
        findings = sorted((one.rank, one) for one in store.findings_of([name]) if one.text)
        episodes, marks = store.episodes([name]), store.marks_of([name])
    said = [(row["says"], row["t"], row["t2"]) for row in told if row["t"]]
    expected = [(one.text, one.start_ns // MS, one.end_ns // MS) for _, one in findings]
    assert said[: len(expected)] == expected != []
    assert [(t, t2) for says, t, t2 in said if says.startswith("broken: ")] == [
        (one.start_ns // MS, one.end_ns // MS) for one in sorted(episodes, key=lambda one: one.start_ns)
    ]
    assert len(said) == len(expected) + len(episodes) + len(marks)
    [first] = [mark for mark in page.marks("targets") if mark == min(page.marks("targets"), key=lambda mark: mark["y1"])]
    place = page.page.locator("#place canvas").bounding_box()
    page.page.mouse.click(place["x"] + 300, place["y"] + (first["y1"] + first["y2"]) / 2)
    [(called, begin, end)] = page.called()
    assert called == "kibanaSetTimeFilter" and begin % 10_000 == 0 and (end + 1) % 10_000 == 0
    assert begin <= said[0][1] <= said[0][2] <= end


@pytest.mark.slow
def test_k6_objectives_are_drawn_at_their_percentile_wherever_one_zooms(page, site) -> None:
    """Broken ones and kept ones; a share of failures is no latency; a number that is typed comes first."""
    whole = shown_of(site, "nightly")
    with open_store(site.sqlite) as store:
        last = max(one.start_ns // MS for one in store.episodes([record_of(site, "nightly").run]))
    end = replace(whole, begin_ms=last + 10_000)
    assert end.begin_ms < end.end_ms - 10_000, "a part without the start of any episode"
    for shown in (whole, end):
        page.draw(site.answered(site.spec("percentiles"), shown))
        drawn = {percent: (page.choose(percentile=percent), page.signal("sla"))[1] for percent in (50, 90, 95, 99)}
        assert drawn == {50: 9 * SECOND, 90: 45 * MS, 95: 0, 99: 50 * MS}
    page.choose(percentile=99, sla_ms=7)
    assert page.signal("sla") == 7_000_000 and len(page.marks("sla_line")) == 1
    for picture in ("runs", "load"):
        page.draw(site.answered(site.spec(picture, scope="host", level="run" if picture == "load" else "overview"), whole))
        assert page.signal("sla") == 50 * MS, picture
    for picture in ("distribution", "curves", "maps"):
        page.draw(site.answered(site.spec(picture), whole))
        told = {(row["percentile"], row["threshold"]) for row in page.table("promises")}
        assert told == {(50, 9 * SECOND), (90, 45 * MS), (99, 50 * MS), (100, SECOND)}, picture
        assert {"p90 45 ms", "p99 50 ms"} <= {mark["text"] for mark in page.marks("promise_texts")}, picture
    spec = site.answered(site.spec("distribution"), whole)
    [told] = [one["values"]["hits"]["hits"] for one in spec["data"] if one["name"] == "answer"]
    assert {hit["_source"]["kind"] for hit in told} == {"completion"}
    for hit in told:
        hit["_source"]["kind"] = "response"
    page.draw(spec)
    assert page.table("promises") == [], "of a kind that is not shown"


@pytest.mark.slow
def test_k6_all_runs_are_listed_whatever_is_chosen(page, site) -> None:
    told = lines(page, site, "all-runs", Shown(0, 1000, (chosen("host.name", ["ceph-a"]),)), scope="cluster", level="run")
    with open_store(site.sqlite) as store:
        records = [one for one in store.runs() if one.run in {row["run"] for row in told}]
        samples = {one.run: store.answer(Question(runs=(one.run,), step="all")).samples for one in records}
    assert {record_of(site, run).run for run in RUNS} <= samples.keys()
    assert {row["run"]: row["n"] for row in told} == samples
    starts = [next(one.start_ns for one in records if one.run == row["run"]) for row in told]
    assert starts == sorted(starts, reverse=True)


@pytest.fixture(scope="session")
def bare(server, tmp_path_factory):
    """A run without kind, host and operation: an untagged HdrHistogram log of a program that is not known."""
    log = Path(__file__).parents[3] / "tests" / "data" / "hdr" / "2.2.2-3-digits.hlog"
    return loaded(server, tmp_path_factory.mktemp("bare"), "lens", {"bare": (str(log), "--recorded-unit", "ns")})


@pytest.mark.slow
def test_k2_what_has_no_label_is_a_row_a_line_or_a_tile(bare, panels) -> None:
    with open_store(bare.sqlite) as store:
        table = percentiles(store.answer(Question(runs=("bare",), step=STEP)), Wanted(parse_percentiles(NAMES)))
    counts, p99, starts = ([*table.columns[name]] for name in ("count", "p99", "start_ns"))
    shown = Shown(int(starts[0]) // MS, int(starts[-1] + STEP) // MS, (chosen("run.id", ["bare"]),))
    found = {name: asked_rows(bare, panels[name], shown) for name in PANELS_OF_ROLLUPS}
    for name, rows in found.items():
        labels = {row[label] for row in rows for label in ("kind", "host", "operation", "host.name") if label in row}
        assert rows and labels <= {"-"}, name
    highest = max(value for value in p99 if value == value)
    assert [row["cluster"] for row in found["cluster-latency-p99"]] == [highest]
    assert [row["I/Os"] for row in found["cluster-latency-max"]] == [sum(counts)]
    assert [(row["p99"], row["I/Os"]) for row in found["cluster-latency-hosts"]] == [(highest, sum(counts))]
    rates = [row["I/Os a second"] for row in found["cluster-latency-rate"] if row["I/Os a second"] is not None]
    assert rates == pytest.approx([count / 10 for count in counts])


PANELS_OF_ROLLUPS = (
    *(f"cluster-latency-{name}" for name in ("p99", "p99-9", "max", "hosts", "rate", "incomplete")),
    *(f"hosts-and-threads-{name}" for name in ("host-table", "host-rate", "worst-hosts")),
)


@pytest.mark.slow
def test_k3_each_panel_is_of_one_run(site, panels) -> None:
    """Without a choice that which began last, for all that are not a list of runs."""
    early, last = sorted(RUNS, key=lambda run: record_of(site, run).start_ns)
    both = Shown(shown_of(site, early).begin_ms, shown_of(site, last).end_ms)
    for name, saved in panels.items():
        if name.startswith(("compare-runs-", "snabb-timeline-")) or name.endswith("-failed"):
            continue  # lists of runs; no Snabb timeline and no failed operation is here
        rows = asked_rows(site, saved, both)
        assert {row["run"] for row in rows} == {record_of(site, last).run}, name


def test_intervals_are_what_kibana_makes_of_a_range() -> None:
    """Read off Kibana's calc_auto_interval: 50 bars, the next wider step; a written width is widened beyond 1,000 bars."""
    minute, hour, day = 60_000, 3_600_000, 86_400_000
    auto = {15 * minute: 30_000, 4 * minute: 5000, hour: 5 * minute, day: 30 * minute, 7 * day: 12 * hour, 40_000: 1000, 2000: 40}
    assert {span: lens_interval(span, "auto") for span in auto} == auto
    written = {15 * minute: 10_000, 8 * hour: 10_000, 9 * hour: 30_000, day: minute}
    assert {span: lens_interval(span, "10s") for span in written} == written


@pytest.mark.slow
def test_every_panel_compiles_to_plain_json_and_is_answered(site, panels) -> None:
    assert len(panels) >= 12
    for saved in panels.values():
        assert json.loads(json.dumps(saved.attributes)) == saved.attributes
        if saved.references[0].id.endswith("-points") or saved.id.endswith(("-failed", "-events")):
            continue  # test_vega_breaths.py, test_vega_behaviour.py: this site has no Snabb timelines, and nothing failed
        assert asked_rows(site, saved, replace(site.shown, begin_ms=START * 1000)), saved.id


TILE = {"view": "rollups", "level": "overview", "value": {"max": "latency.p99", "label": "p99", "scope": "host"}}
LINES = {"view": "rollups", "level": "overview", "scope": "host", "values": [{"rate": "latency.count", "label": "rate"}]}
TABLE = {
    "view": "marks",
    "rows": [{"terms": "run.id", "size": 5, "label": "run"}],
    "columns": [{"max": "@timestamp", "label": "at"}],
    "sort": "at",
}
WRONG = {
    "unknown key 'colour'": ("metric", {**TILE, "colour": "red"}),
    "'value' is missing": ("metric", {"view": "rollups", "level": "overview"}),
    "there is no chart 'pie': metric, lines, area, columns, table": ("pie", TILE),
    f"`view` is {', '.join(indices())}, not histograms": ("metric", {**TILE, "view": "histograms"}),
    "`level` (overview, stored, run) is for rollups, and needed there": ("metric", {"view": "rollups", "value": TILE["value"]}),
    "`level` is overview, stored, run, not minute": ("metric", {**TILE, "level": "minute"}),
    "rollups need `scope` (cluster, host), of the panel or of each value": (
        "metric",
        {**TILE, "secondary": {"max": "latency.p50", "label": "p50"}},
    ),
    "`scope` is of the panel or of each value, not of both": ("metric", {**TILE, "scope": "host"}),
    "`scope` is cluster, host, not thread": ("lines", {**LINES, "scope": "thread"}),
    "a tile shows one kind": ("metric", {**TILE, "kind": "each"}),
    "`kind` is preferred, each, lag, not all": ("metric", {**TILE, "kind": "all"}),
    "there are no kinds in marks": ("table", {**TABLE, "kind": "each"}),
    "rollups have all that can be chosen: they are always filtered": ("metric", {**TILE, "unfiltered": "so"}),
    "a value is one of max, min, sum, unique, rate: {'percentile': 'latency.p99'}": (
        "metric",
        {**TILE, "value": {"percentile": "latency.p99"}},
    ),
    "rollups have no field latency.p98": ("metric", {**TILE, "value": {**TILE["value"], "max": "latency.p98"}}),
    "rollups have no field osd": ("metric", {**TILE, "value": {**TILE["value"], "where": {"osd": 3}}}),
    "kind is no number: it has no max": ("metric", {**TILE, "value": {**TILE["value"], "max": "kind"}}),
    "latency.p99 is no count: only counts can be added up": (
        "metric",
        {**TILE, "value": {"sum": "latency.p99", "label": "p99", "scope": "host"}},
    ),
    "different values of latency.histogram cannot be counted": (
        "metric",
        {**TILE, "value": {"unique": "latency.histogram", "label": "p99", "scope": "host"}},
    ),
    "a rate is of latency.count, of windows of rollups": ("lines", {**LINES, "level": "run"}),
    "kinds would be mixed: lines need `by: kind`": ("lines", {**LINES, "values": [{"max": "latency.p99", "label": "p99"}]}),
    "a value is listed twice": ("lines", {**LINES, "values": LINES["values"] * 2}),
    "expected a list of values, not 5": ("lines", {**LINES, "values": 5}),
    "`every` is a width such as 10s, or auto: often": ("lines", {**LINES, "every": "often"}),
    "`size` is a number from 1 to 1000": ("lines", {**LINES, "by": "operation", "size": 0}),
    "`order` is value, name, latest, began, not worst": ("table", {**TABLE, "rows": [{**TABLE["rows"][0], "order": "worst"}]}),
    "rows by run.loaded are not possible: it is of type text": (
        "table",
        {**TABLE, "view": "runs", "rows": [{"terms": "run.loaded", "size": 5, "label": "when"}]},
    ),
    "two columns have one label": ("table", {**TABLE, "columns": [{"max": "@timestamp", "label": "run"}]}),
    "`sort` is the label of a column: run, at": ("table", {**TABLE, "sort": "p99"}),
    "`page` is 10, 20, 30, 50, 100": ("table", {**TABLE, "page": 7}),
}


@pytest.mark.parametrize("reason", WRONG)
def test_what_cannot_be_meant_is_refused_with_a_sentence(reason: str) -> None:
    picture, words = WRONG[reason]
    with pytest.raises(UsageError) as raised:
        lens_object(Panel("one", "One", Grid(0, 0, 12, 8), "lens", picture, words), "x-one", "x")
    assert str(raised.value) == f"panel one: {reason}"
