"""`tailboard store setup` on a server that was set up: what differs is a value, never the way in which the server writes it."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.cli import run as command
from ingest.store.elastic.templates import Site, differences, templates
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import send
from tests.store.grounds import SERVER

pytestmark = pytest.mark.contract
Json = Any
SITES = [[], ["--shards", "3"], ["--compact"], ["--period", "week", "--index-prefix", "perf"], ["--compact", "--shards", "2"]]


@pytest.fixture
def double():
    with ElasticsearchDouble(SERVER) as found:
        yield found
        assert found.refusals == []


def setup(double: ElasticsearchDouble, *words: str) -> int:
    return command(["setup", "--elasticsearch", double.url, *words])


def writes(double: ElasticsearchDouble) -> int:
    return sum(one.method == "PUT" for one in double.requests)


@pytest.mark.parametrize("words", SITES, ids=" ".join)
def test_f3_setup_twice_is_nothing_to_change(double, capsys, words: list[str]) -> None:
    assert setup(double, *words) == 0
    before = writes(double)
    capsys.readouterr()
    for again in ([], ["--dry-run"], ["--overwrite"]):
        assert setup(double, *words, *again) == 0
        told = capsys.readouterr().err
        assert "nothing to change" in told
        assert "->" not in told
    assert writes(double) == before


@pytest.mark.parametrize(("words", "others"), [([], SITES[1]), (SITES[1], [])], ids=str)
def test_f3_another_site_is_told_changed_on_request_and_then_it_is_so(
    double, capsys, words: list[str], others: list[str]
) -> None:
    assert setup(double, *words) == 0
    capsys.readouterr()
    assert setup(double, *others) == 4
    told = capsys.readouterr().err
    assert "template.settings.index.number_of_shards: " in told
    assert "templates differ from what was asked and were left unchanged: --overwrite changes them" in told
    assert setup(double, *others, "--overwrite") == 0
    assert setup(double, *others) == 0
    assert "nothing to change" in capsys.readouterr().err


def test_f3_what_a_user_changed_is_told_leaf_by_leaf(double, capsys) -> None:
    assert setup(double) == 0
    path = "/_component_template/tailboard-runs-mappings"
    body = send(double, "GET", path).body["component_templates"][0]["component_template"]
    body = {name: body[name] for name in ("template", "version", "_meta")}
    body["template"]["mappings"]["dynamic_templates"][0]["labels"]["mapping"]["ignore_above"] = 77
    body["template"]["mappings"]["properties"]["mine"] = {"type": "keyword"}
    assert send(double, "PUT", path, body).status == 200
    capsys.readouterr()
    assert setup(double) == 4
    told = capsys.readouterr().err
    assert [line.removeprefix("tailboard:").strip() for line in told.splitlines() if "->" in line] == [
        "template.mappings.dynamic_templates[0].labels.mapping.ignore_above: 77 -> 1024",
        'template.mappings.properties.mine: {"type": "keyword"} -> nothing',
    ]
    assert "1 template differs from what was asked and was left unchanged: --overwrite changes it" in told
    assert setup(double, "--overwrite") == 0
    assert setup(double) == 0
    assert "nothing to change" in capsys.readouterr().err


bodies = st.sampled_from([body for site in (Site("t"), Site("t", "day", 7, True)) for body in templates(site).values()])


def rewritten(value: Json, chance: random.Random, *, text: bool = False) -> Json:
    """Return JSON as a server may give it back: keys in any order, in settings names nested and values as text, nothing empty."""
    if isinstance(value, dict):
        inner = {name: rewritten(one, chance, text=text or name == "settings") for name, one in value.items()}
        names = chance.sample([*inner], len(inner))
        return nested({name: inner[name] for name in names}) if text else {name: inner[name] for name in names}
    if isinstance(value, list):
        return [rewritten(one, chance, text=text) for one in value]
    if text and not isinstance(value, str) and value is not None:
        return json.dumps(value)
    return value


def nested(settings: Json) -> Json:
    found: Json = {}
    for name, value in settings.items():
        *above, last = name.split(".")
        place = found
        for part in above:
            place = place.setdefault(part, {})
        if isinstance(value, dict):
            place.setdefault(last, {}).update(value)
        else:
            place[last] = value
    return found


def leaves(value: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for name, one in inner for leaf in leaves(one, (*path, name))]
    return found or ([path] if not isinstance(value, dict | list) else [])


@pytest.mark.slow
@given(bodies, st.randoms(use_true_random=False))
def test_f3_only_values_differ(body: Json, chance: random.Random) -> None:
    stored = rewritten(body, chance)
    assert list(differences(body, stored)) == []
    places = leaves(stored)
    if places:
        *above, last = chance.choice(places)
        changed = copy.deepcopy(stored)
        place = changed
        for name in above:
            place = place[name]
        place[last] = "something else"
        assert [line.partition(": ")[2].partition(" -> ")[0] for line in differences(body, changed)] == ['"something else"']
        del place[last]
        assert len(list(differences(body, changed))) == 1
