"""The compiled dashboards: the committed files, what Kibana would take, and what they promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run
from ingest.core.errors import InputError
from ingest.store import open_store
from ingest.view.kibana.importing import shipped
from tests.doubles.elasticsearch.hdr import Range, cover, sketch
from tests.doubles.elasticsearch.proofs.comparing import recorded
from tests.doubles.kibana.schemas import problems
from tools.kibana.asked import Shown, autointerval, vega_requests
from tools.kibana.compile import compiled, kibana_files
from tools.kibana.config import CONTROLS, dashboard, dashboards
from tools.kibana.lint.objects import read_files
from tools.kibana.lint.trees import nodes
from tools.kibana.objects import Reference, line, ndjson, object_of
from tools.kibana.requests import edges, latency_rows

ROOT = Path(__file__).parents[3]
KIBANA = ROOT / "kibana"
OBJECTS = compiled()
VEGA = [saved for saved in OBJECTS if saved.type == "visualization"]
DASHBOARDS = [saved for saved in OBJECTS if saved.type == "dashboard"]


def test_the_import_file_is_what_the_object_files_say() -> None:
    """A line an object, in any order the same objects; texts of JSON in the lines are JSON in the files."""
    lines = [json.loads(one) for one in (KIBANA / "tailboard.ndjson").read_text().splitlines()]
    files = {path: json.loads(path.read_text()) for path in (KIBANA / "saved_objects").rglob("*.json")}
    assert {(one["type"], one["id"]) for one in lines} == {(path.parent.name, path.stem) for path in files}
    for one in lines:
        found = files[KIBANA / "saved_objects" / one["type"] / f"{one['id']}.json"]
        assert decoded(one["attributes"]) == decoded(found["attributes"])
        assert one["references"] == found["references"]


def decoded(value):
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return decoded(json.loads(value))
        except ValueError:
            return value
    if isinstance(value, dict):
        return {key: decoded(one) for key, one in value.items()}
    return [decoded(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("saved", OBJECTS, ids=lambda saved: saved.id)
def test_objects_fit_the_schemas_of_the_facts_sheet(saved) -> None:
    assert problems(json.loads(json.dumps(line(saved)))) == []


@pytest.mark.slow
def test_the_same_words_give_the_same_bytes() -> None:
    assert ndjson(compiled()) == ndjson(compiled())
    assert kibana_files() == kibana_files()
    assert len({(saved.type, saved.id) for saved in OBJECTS}) == len(OBJECTS)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["tailboard", "p", "perf.lab_2-x", "q" * 100])
def test_setup_sends_what_would_be_compiled_for_a_prefix(prefix: str) -> None:
    """`setup` reads the committed file and puts another prefix into it: ids, indices, titles and the lines of specs."""
    assert tuple(object_of(json.loads(saved.text)) for saved in shipped(prefix)) == compiled(prefix)
    assert [(saved.type, saved.id, saved.title) for saved in shipped(prefix)] == [
        (saved.type, saved.id, saved.title) for saved in compiled(prefix)
    ]


def test_another_prefix_is_another_set_of_objects_on_other_indices() -> None:
    """Two sites in one Kibana: nothing of the one names the other."""
    text = ndjson(compiled("perf")).decode()
    assert "tailboard-" not in text
    assert {saved.id.removeprefix("perf") for saved in compiled("perf")} == {
        saved.id.removeprefix("tailboard") for saved in OBJECTS
    }


def test_dashboards_refresh_restore_their_time_and_link_to_one_another() -> None:
    assert [one.id for one in dashboards()] == [
        "cluster-latency",
        "hosts-and-threads",
        "heat-maps",
        "compare-runs",
        "layers",
        "coordinated-omission",
        "subsecond-offsets",
        "snabb-timeline",
    ]
    for saved in DASHBOARDS:
        told = saved.attributes
        assert told["timeRestore"]
        assert told["refreshInterval"] == {"pause": False, "value": 10_000}
        controls = told["controlGroupInput"]["panelsJSON"]
        last = [] if "snabb" in saved.id else ["process"] if "offsets" in saved.id else ["kind"]
        wanted = ["run", "host", "op", *last]
        assert [one["explicitInput"]["fieldName"] for one in controls.values()] == [CONTROLS[name] for name in wanted]
        [links] = [panel for panel in told["panelsJSON"] if panel["panelIndex"] == "links"]
        assert links["type"] == "links" and Reference("links", "tailboard-links", "links:panel_links") in saved.references


def test_e4_links_take_along_the_time_range_and_what_is_chosen() -> None:
    [saved] = [saved for saved in OBJECTS if saved.type == "links"]
    targets = {reference.name: reference.id for reference in saved.references}
    assert [targets[link["destinationRefName"]] for link in saved.attributes["links"]] == [one.id for one in DASHBOARDS]
    assert all(
        link["options"]["useCurrentDateRange"] and link["options"]["useCurrentFilters"] for link in saved.attributes["links"]
    )


def test_e9_specs_are_read_in_kibanas_editor() -> None:
    for saved in VEGA:
        text = json.loads(line(saved)["attributes"]["visState"])["params"]["spec"]
        assert json.loads(text) == json.loads(json.dumps(saved.attributes["visState"]["params"]["spec"]))
        assert len(text.splitlines()) > 100
        assert sum(len(row) > 400 for row in text.splitlines()) <= 6, saved.id


def test_e6_inputs_have_names_that_fit_their_place() -> None:
    """Kibana gives a name 104 px: 16 letters of its font. A percentile is chosen by its name."""
    for saved in VEGA:
        for signal in saved.attributes["visState"]["params"]["spec"]["signals"]:
            assert len(signal["bind"]["name"].strip()) <= 12, (saved.id, signal["bind"]["name"])
            if signal["name"] == "percentile":
                assert "p99" in signal["bind"]["labels"] and "p99.9" in signal["bind"]["labels"]


def test_a_panel_of_percentiles_says_how_they_are_taken() -> None:
    for saved in VEGA:
        told = json.dumps(saved.attributes["visState"], ensure_ascii=False)
        if '"percentiles": {"field"' in told:
            assert "exact" not in told.lower()
        assert ('"percentiles": {"field"' in told) == ("at the nearest rank" in told), saved.id


@pytest.mark.slow
def test_f8_panels_ask_for_aggregations_that_real_servers_answered() -> None:
    """Of both versions, but for `filter` and the order of terms, which 8.19 has had since long before."""
    nine = asked_and_answered("conversation-9.5.3") | asked_and_answered("single-9.5.3") | asked_and_answered("product-9.5.3")
    objects = read_files({name: text for name, text in kibana_files().items() if name.endswith(".json")})
    kinds = {node.kind for read in objects.reads() for node in nodes(read.body.get("aggs", {}), {})}
    assert kinds <= nine and "multi_terms" not in nine
    assert kinds - asked_and_answered("conversation-8.19.21") == {"filter"}


def asked_and_answered(recording: str) -> set[str]:
    """Return the types of aggregations of the requests that were answered."""
    found = set()
    for step in recorded(recording):
        asked = step.get("body", step.get("request"))
        if step["status"] == 200 and asked and '"aggs"' in str(asked).replace("'", '"'):
            body = json.loads(asked) if isinstance(asked, str) else asked
            found |= {node.kind for node in nodes(body["aggs"], {})}
    return found


def test_panels_ask_with_the_filters_of_the_dashboard_and_no_other_server() -> None:
    shown = Shown(0, 3_600_000, [{"term": {"operation": "read"}}])
    for saved in VEGA:
        for one in vega_requests(saved.attributes["visState"]["params"]["spec"], shown):
            query = one.body["query"]
            if saved.id.endswith("-all-runs"):  # whatever is chosen
                assert query == {"bool": {"filter": [{"term": {"rollup.scope": "cluster"}}, {"term": {"rollup.step_ms": 0}}]}}
                continue
            if "should" in query["bool"] and query["bool"]["should"]:
                query, noted = query["bool"]["should"]
                # told of the run that is shown, where it overlaps the time range, whatever is chosen, and marks that last
                those, overlapping = noted["bool"]["filter"]
                assert one.body["post_filter"] == those and "latency.count" not in str(those)
                until, since = overlapping["bool"]["filter"]
                assert until["range"]["@timestamp"]["lte"] == shown.end_ms
                edges = [edge["range"] for edge in since["bool"]["should"] if "range" in edge]
                assert {span["gte"] for edge in edges for span in edge.values()} == {shown.begin_ms}
            [time] = [clause for clause in (*query["bool"]["must"], *query["bool"]["filter"]) if "range" in clause]
            assert time["range"]["@timestamp"]["gte"] == "1970-01-01T00:00:00.000Z"
            assert shown.filters[0] in query["bool"]["filter"]


DAYS = 86_400_000
WIDTHS = {"100ms": 100, "1s": 1000, "5s": 5000, "10s": 10_000, "30s": 30_000, "1m": 60_000, "5m": 300_000, "10m": 600_000}
WIDTHS |= {"30m": 1_800_000, "1h": 3_600_000, "3h": 10_800_000, "12h": DAYS // 2, "24h": DAYS, "1w": 7 * DAYS, "30d": 30 * DAYS}


def test_kibana_makes_at_most_seven_times_the_windows_asked_for() -> None:
    for target in (17, 24, 42, 71):
        for seconds in (5, 70, 140, 900, 3600, 40_000, 86_400, 700_000, 3_000_000, 60_000_000):
            [every] = autointerval(seconds * 1000, target).values()
            assert seconds * 1000 / WIDTHS[every] <= 7 * target + 1


def test_e10_intervals_of_a_calendar_are_asked_for_as_kibana_does() -> None:
    assert autointerval(35 * 60_000, 35) == {"calendar_interval": "1m"}
    assert autointerval(35 * 3_600_000, 35) == {"calendar_interval": "1h"}
    assert autointerval(35 * 86_400_000, 35) == {"fixed_interval": "12h"}
    assert [autointerval(days * 86_400_000, 1) for days in (8, 22, 42)] == [
        {"calendar_interval": "1w"},
        {"fixed_interval": "30d"},
        {"calendar_interval": "1y"},
    ]


def test_edges_are_edges_of_fios_bins_and_of_heat_map_rows() -> None:
    from ingest.core.layout import fio_layout

    fine = fio_layout(29, 1)
    assert set(edges(64)[:-1]) - set(fine.edges.tolist()) == {edge for edge in edges(64)[:-1] if edge > fine.edges[-1]}
    rows = fine.coarser(8).edges.tolist()
    assert [edge for edge in edges(8) if edge <= fine.edges[-2]] == [edge for edge in rows[:-1] if edge >= 1024]


@pytest.mark.parametrize("an_octave", [8, 64])
@given(values=st.lists(st.integers(1, 2**38), min_size=1, max_size=60), near=st.lists(st.integers(0, 200), max_size=20))
@settings(max_examples=15)
def test_what_lies_below_an_edge_is_counted_exactly(an_octave, values, near) -> None:
    """hdr's answer to what is asked, as measured on servers, against counting."""
    bounds = edges(an_octave)
    values = np.array([*values, *(bounds[place] + off for place in near for off in (-1, 0))], dtype=float)
    covered = Range(2)
    cover(covered, values)
    asked = latency_rows(an_octave)["percentile_ranks"]["values"]
    hdr = sketch(values, np.ones(len(values), dtype=np.int64), covered)
    found = [round(hdr.rank(value) * len(values) / 100) for value in asked]
    assert found == np.searchsorted(np.sort(values), bounds, side="left").tolist()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"id": "x", "title": "X"}, "'controls' is missing in x"),
        (
            {"id": "y", "title": "X", "description": "", "order": 1, "controls": [], "panels": []},
            "the id is 'y': a dashboard's file bears its id",
        ),
        (
            {"id": "x", "title": "X", "description": "", "order": 1, "controls": ["disk"], "panels": []},
            "there is no control 'disk': run, host, op, kind, process",
        ),
        (
            {"id": "x", "title": "X", "description": "", "order": 1, "controls": [], "panels": [], "colour": 1},
            "unknown key 'colour' in x",
        ),
        (
            {"id": "x", "title": "X", "description": "", "order": 1, "controls": [], "panels": [{"id": "a"}]},
            "a panel is either vega or lens: {'id': 'a'}",
        ),
    ],
)
def test_a_wrong_word_is_a_sentence(content, sentence) -> None:
    with pytest.raises(InputError, match="x.yml: ") as caught:
        dashboard(content, Path("x.yml"))
    assert caught.value.reason == sentence


COMMANDS = sorted({panel.command for one in dashboards() for panel in one.panels})


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=pytest.mark.slow if " report " in one or place % 3 else ()) for place, one in enumerate(COMMANDS)],
)
def test_the_command_of_a_panel_is_one(command, example_store, tmp_path, capfd) -> None:
    """It answers with the names of a store and a run in place of STORE, RUN and OTHER."""
    store, run_name = example_store
    names = {"STORE": store, "RUN": run_name, "OTHER": run_name, "SLA.yml": str(ROOT / "examples" / "SLA.yml")}
    names["report.html"] = str(tmp_path / "report.html")
    first, *words = [names.get(word, word) for word in command.split()]
    assert first == "tailboard"
    status, said = run(words), capfd.readouterr().err
    assert status in (0, 1, 5) or "no offsets were stored" in said, said


@pytest.fixture(scope="module")
def example_store(tmp_path_factory) -> tuple[str, str]:
    """A store with the example, and the name of its run."""
    store = f"sqlite:{tmp_path_factory.mktemp('commands') / 'runs.db'}"
    assert run(["load", str(ROOT / "examples" / "cbt-archive"), "--run", "nightly", "--store", store]) == 0
    with open_store(store) as origin:
        [record] = origin.runs()
    return store, record.run


ROW_PX, ABOVE_PX, SCREEN_PX = 28, 180, 800  # a row of Kibana's grid; its head, query bar and controls


def test_k6_the_first_screen_has_tiles_story_and_heat_map() -> None:
    """At 1,280 x 800: the worst windows, what happened, the shape of it."""
    [cluster] = [one for one in dashboards() if one.id == "cluster-latency"]
    below = sorted(cluster.panels, key=lambda panel: (panel.at.y, panel.at.x))
    first = ["p99", "p99-9", "max", "story", "heatmap"]
    assert [panel.id for panel in below][: len(first)] == first
    [board] = [saved for saved in DASHBOARDS if saved.id.endswith("cluster-latency")]
    ends = {panel["panelIndex"]: panel["gridData"]["y"] + panel["gridData"]["h"] for panel in board.attributes["panelsJSON"]}
    assert max(ends[name] for name in first) * ROW_PX <= SCREEN_PX - ABOVE_PX
    assert all(saved.attributes["description"].endswith(f"The numbers: {panel.command}") for saved, panel in described())


def described():
    """Yield saved objects of panels, with what was written of them."""
    for one in dashboards():
        for panel in one.panels:
            [saved] = [saved for saved in OBJECTS if saved.id == f"tailboard-{one.id}-{panel.id}"]
            yield saved, panel
