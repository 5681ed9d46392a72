"""Data views: indices as they are named, every field with its unit and description, as the templates have them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ingest.core.schema import elasticsearch_mappings, indices
from ingest.store.elastic.templates import Names
from tools.kibana.data_views import data_views, index_of, pattern, view_fields
from tools.kibana.objects import line

VIEWS = {index_of(view.id): view for view in data_views("perf")}


def leaves(properties: dict, path: str = "") -> dict[str, dict]:
    """The fields of a mapping by their full name."""
    found = {}
    for name, inner in properties.items():
        found |= leaves(inner["properties"], f"{path}{name}.") if "properties" in inner else {f"{path}{name}": inner}
    return found


def test_one_for_each_kind_of_index_under_a_fixed_id() -> None:
    assert set(VIEWS) == set(indices())
    assert [view.id for view in data_views("perf")] == [view.id for view in data_views("perf")]
    assert {view.id for view in VIEWS.values()} == {f"perf-{index}" for index in indices()}


@pytest.mark.parametrize("index", VIEWS)
def test_the_pattern_holds_the_index_that_documents_go_to(index: str) -> None:
    title = VIEWS[index].attributes["title"]
    assert title == pattern("perf", index)
    for period in ("month", "week", "day"):
        names = Names("perf", period)
        home = names.of(index, np.array([1_789_999_200_000_000_000]))[0] if title.endswith("*") else names.one(index)
        assert home.startswith(title.removesuffix("*"))


@pytest.mark.parametrize("index", VIEWS)
def test_fields_are_those_of_the_templates(index: str) -> None:
    mapped = leaves(elasticsearch_mappings(index)["properties"])
    assert view_fields(index).keys() == mapped.keys()
    attributes = VIEWS[index].attributes
    described = {name for name, one in mapped.items() if one["type"] != "object"}
    assert set(attributes["fieldAttrs"]) == described
    assert all(told["customDescription"] for told in attributes["fieldAttrs"].values())


@pytest.mark.parametrize("index", VIEWS)
def test_numbers_in_ns_and_ms_are_durations_and_times_are_not(index: str) -> None:
    mapped = leaves(elasticsearch_mappings(index)["properties"])
    formats = VIEWS[index].attributes["fieldFormatMap"]
    for name, one in mapped.items():
        unit = one.get("meta", {}).get("unit")
        is_time = view_fields(index)[name]["type"] == "date"
        told = formats.get(name, {})
        wanted = {"ns": "nanoseconds", "ms": "milliseconds"}.get(unit) if not is_time else None
        assert (told.get("id") == "duration") == (wanted is not None), name
        if wanted:
            shown = {
                "outputFormat": "humanizePrecise",
                "outputPrecision": 3,
                "useShortSuffix": True,
                "includeSpaceWithSuffix": True,
            }
            assert told["params"] == {"inputFormat": wanted, **shown}


def test_bytes_and_counts() -> None:
    assert VIEWS["runs"].attributes["fieldFormatMap"]["source.size"] == {"id": "bytes", "params": {"pattern": "0,0.[0] b"}}
    assert VIEWS["rollups"].attributes["fieldFormatMap"]["latency.count"] == {"id": "number", "params": {"pattern": "0,0"}}
    assert "mark.at_ns" not in VIEWS["marks"].attributes["fieldFormatMap"]


def test_a_view_has_a_time_field_where_all_documents_have_a_time() -> None:
    """The record of a source has none: a view of runs with a time field would never show it."""
    timed = {index: view.attributes.get("timeFieldName") for index, view in VIEWS.items()}
    assert timed == {
        "intervals": "@timestamp",
        "rollups": "@timestamp",
        "runs": None,
        "marks": "@timestamp",
        "episodes": "@timestamp",
        "findings": "@timestamp",
        "points": "@timestamp",
    }


@pytest.mark.parametrize("index", VIEWS)
def test_kibana_gets_formats_and_descriptions_as_texts_of_json(index: str) -> None:
    sent = line(VIEWS[index])["attributes"]
    assert json.loads(sent["fieldFormatMap"]) == VIEWS[index].attributes["fieldFormatMap"]
    assert json.loads(sent["fieldAttrs"]) == VIEWS[index].attributes["fieldAttrs"]
