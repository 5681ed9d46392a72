"""D6, D4: a picture of several groups: colour is the group, dash the percentile; beyond eight each has its own; labels that differ."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core import schema
from ingest.core.quantiles import parse_percentiles
from ingest.query.question import Question
from ingest.view import pictures, vega
from ingest.view.pictures import MOST_COLOURS, MOST_FACETS, cut_in_the_middle, joined_groups, short_labels
from tests.doubles.origin import NS, SECOND, ZERO, Made, series

LEVELS = parse_percentiles("50,90,99")
HOUR = 3600


def made(hosts: int, windows: int = 4, samples: int = 200, **labels: str) -> Made:
    return Made(
        [
            (series(host=f"h{number:02}", **labels), at, {900 + 8 * number: samples})
            for number in range(hosts)
            for at in range(windows)
        ]
    )


def svg_of(spec: dict[str, Any]) -> str:
    pytest.importorskip("vl_convert")
    return pictures.drawn(spec, "svg").decode()


def lines_of(svg: str) -> list[tuple[str, str]]:
    """Return colour and dash of each line of percentiles in a picture."""
    marks = re.findall(r'<g class="mark-line role-mark line"[^>]*>(.*?)</g>', svg, re.DOTALL)
    paths = [path for mark in marks for path in re.findall(r"<path[^>]*>", mark)]
    dash = [re.search(r'stroke-dasharray="([^"]*)"', path) for path in paths]
    return [(re.search(r'stroke="([^"]*)"', path)[1], found[1] if found else "") for path, found in zip(paths, dash, strict=True)]


def table_of(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    (values,) = [entry["values"] for entry in spec["data"] if entry["name"] == name]
    return values


@pytest.mark.parametrize("hosts", [2, 3, MOST_COLOURS])
def test_d6_colour_is_the_group_and_dash_the_percentile(hosts: int) -> None:
    spec = pictures.percentiles_picture(made(hosts).answer(Question(by=("host",), step=SECOND)), LEVELS)
    drawn = lines_of(svg_of(spec))
    assert len(drawn) == len(set(drawn)) == 3 * hosts  # no two series look alike
    assert len({colour for colour, _ in drawn}) == hosts
    assert len({dash for _, dash in drawn}) == len(LEVELS)
    of_group = {row["group"] for row in table_of(spec, "points")}
    assert len(of_group) == hosts


def test_d6_beyond_eight_groups_each_has_a_picture_of_its_own() -> None:
    spec = pictures.percentiles_picture(made(MOST_COLOURS + 3).answer(Question(by=("host",), step=SECOND)), LEVELS)
    svg = svg_of(spec)
    drawn = lines_of(svg)
    assert len(drawn) == 3 * (MOST_COLOURS + 3)
    assert len({colour for colour, _ in drawn}) == len(LEVELS)  # here colour is the percentile
    titles = re.findall(r"role-title-text[^>]*>.*?<text[^>]*>([^<]*)</text>", svg, re.DOTALL)
    assert [title for title in titles if re.fullmatch(r"h\d\d", title)] == [f"h{number:02}" for number in range(MOST_COLOURS + 3)]
    assert "UTC, 2026-" in svg


def test_d6_a_picture_of_very_many_groups_has_the_worst_and_says_so() -> None:
    spec = pictures.percentiles_picture(made(MOST_FACETS + 7, 2).answer(Question(by=("host",), step=SECOND)), LEVELS)
    assert {row["group"] for row in table_of(spec, "lines")} == {f"h{number:02}" for number in range(7, MOST_FACETS + 7)}
    assert "60 of 67 groups, those with the highest p99" in str(spec["title"]["subtitle"])


@pytest.mark.parametrize(("hosts", "colours"), [(3, 3), (MOST_COLOURS, MOST_COLOURS), (20, MOST_COLOURS)])
def test_d6_distributions_have_no_colour_twice(hosts: int, colours: int) -> None:
    spec = pictures.distribution_picture(made(hosts, 1).answer(Question(by=("host",), step="all")))
    (scale,) = [scale for scale in spec["scales"] if scale["name"] == "color"]
    assert len(scale["domain"]) == len(scale["range"]) == len(set(scale["range"])) == colours
    svg = svg_of(spec)
    assert len(re.findall(r'<g class="mark-line role-mark curves"', svg)) == hosts
    if hosts > MOST_COLOURS:
        assert scale["domain"][-1] == f"{hosts - MOST_COLOURS + 1} others"
        assert set(scale["domain"][:-1]) == {f"h{number:02}" for number in range(hosts - MOST_COLOURS + 1, hosts)}


def test_d6_constant_labels_are_dropped_and_said() -> None:
    answer = made(3, op="write").answer(Question(by=("host", "op"), step=SECOND))
    spec = pictures.percentiles_picture(answer, LEVELS)
    assert {row["group"] for row in table_of(spec, "points")} == {"h00", "h01", "h02"}
    assert spec["title"]["subtitle"].endswith("; op write")
    assert [legend["title"] for legend in spec["legends"]] == ["host", "percentile"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["ceph-a", "ceph-b"], ["ceph-a", "ceph-b"]),
        (["node-01.rack1.example.com", "node-02.rack1.example.com"], ["node-01", "node-02"]),
        (["nightly/2026/id-1/4k", "nightly/2026/id-2/4k"], ["id-1", "id-2"]),
        (["a-very-long-name-of-a-host-17", "a-very-long-name-of-a-host-18"], ["a-very-l…f-a-host-17", "a-very-l…f-a-host-18"]),
    ],
)
def test_d6_labels_are_cut_where_they_do_not_differ(names: list[str], shown: list[str]) -> None:
    assert short_labels([(name,) for name in names], 20 if "very" in names[0] else 18)[0] == shown


@given(
    st.lists(st.tuples(st.sampled_from(["read", "write"]), st.text("ab./-x", max_size=40)), min_size=1, max_size=12, unique=True)
)
def test_d6_labels_are_short_and_unlike(keys: list[tuple[str, str]]) -> None:
    texts, constant = short_labels(keys, 18)
    assert len(set(texts)) == len(keys)
    assert all(len(text) <= 18 for text in texts)
    for place, value in constant.items():
        assert {key[place] for key in keys} == {value}


@given(st.text(max_size=60), st.integers(3, 30))
def test_d6_what_is_cut_keeps_both_ends(text: str, longest: int) -> None:
    cut = cut_in_the_middle(text, longest)
    assert len(cut) <= longest and (cut == text or (cut[0] == text[0] and cut[-1] == text[-1] and "…" in cut))


@given(st.dictionaries(st.integers(0, 12), st.integers(1, 9), min_size=1, max_size=12))
def test_lines_end_where_windows_are_missing(windows: dict[int, int]) -> None:
    times = sorted(windows)
    points: vega.Columns = {
        "group": ["g"] * len(times),
        "level": ["p99"] * len(times),
        "t": [1000 * at for at in times],
        "t2": [1000 * (at + 1) for at in times],
        "v": [windows[at] for at in times],
    }
    lines = joined_groups(points, {"g": 0})
    drawn = {}
    for (at, value), (after, _) in zip(*(list(zip(lines["t"], lines["v"], strict=True))[part:] for part in (0, 1)), strict=False):
        if value is not None:
            drawn |= {tick: value for tick in range(at // 1000, after // 1000)}
    assert drawn == windows


def test_d6_few_samples_are_said() -> None:
    spec = pictures.percentiles_picture(made(2, samples=3).answer(Question(by=("host",), step=SECOND)), LEVELS)
    assert "circles: the maximum, where there are too few samples" in spec["title"]["subtitle"]
    assert pictures.GREY not in svg_of(spec)


LONG = [(series(), at * HOUR, {900 + at: 200}) for at in range(30)]


@pytest.mark.parametrize("by", [(), ("host",)])
def test_d4_a_picture_of_more_than_a_day_has_dates(by: tuple[str, ...]) -> None:
    rows = [(series(host=host), at, bins) for host in "ab"[: 1 + len(by)] for _, at, bins in LONG]
    answer = Made(rows).answer(Question(by=by, step=HOUR * SECOND))
    svg = svg_of(pictures.percentiles_picture(answer, parse_percentiles("99")))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert [label for label in labels if re.fullmatch(r"\d\d [A-Z][a-z]{2}", label)], labels
    days = re.findall(r"2026-\d\d-\d\d", svg)
    assert len(set(days)) == 2


def test_d4_a_heat_map_of_more_than_a_day_has_dates() -> None:
    svg = svg_of(pictures.heatmap_picture(Made(LONG).answer(Question(step=HOUR * SECOND))))
    assert re.search(r">\d\d [A-Z][a-z]{2}</text>", svg)
    assert ZERO and NS


@pytest.mark.parametrize("samples", [3, 500, 30_961, 7_000_000])
def test_d8_a_heat_map_has_no_power_of_ten(samples: int) -> None:
    rows = [(series(), at, {900: samples + at, 1400: samples // 2 + 1}) for at in range(4)]
    texts = re.findall(r">([^<>]+)</t(?:ext|span)>", svg_of(pictures.heatmap_picture(Made(rows).answer(Question(step=SECOND)))))
    assert any(text.endswith(" a second") for text in texts)
    for text in texts:
        assert not re.search(r"\de[+-]?\d", text) and not re.fullmatch(r"0[kM]|\d{4,} ?ms", text), text


def test_d8_no_spec_may_print_a_power_of_ten_where_it_rounds() -> None:
    rounded = re.compile(r"'[^']*\.([1-9])~?g'")
    found = {path.name: rounded.findall(path.read_text()) for path in (schema.assets("kibana") / "vega").glob("*.json")}
    assert {name: digits for name, digits in found.items() if digits} == {"distribution.json": ["7"]}  # a percentile below 100
