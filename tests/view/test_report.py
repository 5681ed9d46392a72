"""The report without a browser: tables add up, heat-map rows nest, labels do nothing, nothing points at the network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import UsageError
from ingest.grid import in_flight
from ingest.intervals import merged
from ingest.layout import LogLinear, common_layout, fio_layout
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.ranks import parse_percentiles
from ingest.view import report, vega
from strategies import counts as drawn_counts
from strategies import layouts, made

HOSTILE = ("</script><script>alert(1)</script>", "<!--<img src=x onerror=alert(2)>", "\u2028'\"&{{data}}", "\udcff.log")
SECOND = 1_000_000_000
ZERO = 1_795_208_404 * SECOND
NS = fio_layout(29, 1)
SPECS = ("percentiles", "heatmap")


def answer_of(rows, groups=(("read",), ("write",)), layout=NS, **words) -> Answer:
    """Return an answer of (group, window, {bin: count}) rows, in windows of a second."""
    part = made(layout, [(code, ZERO + at * SECOND, ZERO + (at + 1) * SECOND, bins) for code, at, bins in rows])
    known = {"by": ("op",), "step_ns": SECOND, "kind": "completion", "runs": ("r",), "run_start_ns": {"r": ZERO}}
    known |= {"relative": False, "series": 2}
    return Answer((merged([replace(part, table=groups)]),), **(known | words))


@pytest.fixture(scope="module")
def example(archive) -> Answer:
    return Files([archive]).answer(Question(by=("op",), step="auto"))


@pytest.fixture(scope="module")
def hostile() -> Answer:
    groups = tuple((label,) for label in HOSTILE)
    return answer_of(
        [(code, at, {900 + code: 500}) for code in range(4) for at in range(3)], groups, runs=HOSTILE, warnings=HOSTILE
    )


def unpacked(page: str) -> dict:
    """Return what the page's script unpacks."""
    data = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)[1]
    return json.loads(zlib.decompress(base64.b64decode(data)))


def per_window(columns: dict) -> Counter:
    """Return the samples of each (t, group)."""
    found: Counter = Counter()
    for t, group, count in zip(columns["t"], columns["group"], columns["c"], strict=True):
        found[t, group] += count
    return found


@pytest.mark.parametrize("name", ["bins", "cells"])
def test_tables_hold_every_sample_once(example, fio, name):
    for answer in (example, Files([fio / "randrw"]).answer(Question(by=("op",)))):
        columns = vega.tables(answer)[name]
        assert sum(columns["c"]) == answer.samples > 0
        wanted = Counter()
        for part in answer.parts:
            for row, samples in enumerate(part.samples):
                wanted[int(part.start_ns[row]) // vega.MS, part.table[part.series[row]][0]] += int(samples)
        assert per_window(columns) == wanted
        assert all(type(t) is int for t in columns["t"])


def test_tables_are_ordered(example):
    for columns, latency in ((vega.bins(example), "v"), (vega.cells(example), "lower")):
        keys = list(zip(columns["t"], columns["group"], columns[latency], strict=True))
        assert all(one < other for one, other in zip(keys, keys[1:], strict=False))


def test_cells_are_the_bins_between_their_edges(example):
    (part,) = example.parts
    edges = set(part.layout.edges.tolist())
    inside = {}
    for t, group, value, count in zip(*(vega.bins(example)[name] for name in ("t", "group", "v", "c")), strict=True):
        inside.setdefault((t, group), []).append((value, count))
    cells = vega.cells(example)
    for t, group, lower, upper, count in zip(*(cells[name] for name in ("t", "group", "lower", "upper", "c")), strict=True):
        assert {lower, upper} <= edges
        assert count == sum(found for value, found in inside[t, group] if lower <= value < upper)


@given(layouts, st.integers(1, 1855))
def test_rows_nest_in_the_bins(layout, bins):
    for bounded in (layout, replace(layout, fine=min(bins, layout.fine))):
        rows = vega.row_layout(bounded)
        assert bounded.nests_in(rows)
        assert rows.open_ended == bounded.open_ended
        assert rows.index(bounded.edges[-2:-1])[0] == rows.bins - 1


def test_rows_are_8_an_octave():
    for layout in (NS, fio_layout(19, 1000), LogLinear(1024, 1024 * 25, 1000, reports="highest")):
        edges = vega.row_layout(layout).edges
        upper = edges[edges >= 1 << 20]
        assert (upper[8:] == 2 * upper[:-8]).all()


def test_last_bin_is_marked_open():
    answer = answer_of([(0, 0, {5: 1, 1855: 2, 1854: 4})])
    assert vega.bins(answer)["open"] == [0, 0, 1]
    assert vega.bins(answer)["v"][-1] == NS.edges[-2]
    assert vega.cells(answer)["open"] == [0, 1]
    assert vega.cells(answer)["c"] == [1, 6]


def test_unlike_layouts_share_the_rows():
    slow = answer_of([(0, 0, {700: 3})], (("read",),)).parts[0]
    other = answer_of([(0, 0, {300: 4})], (("write",),), fio_layout(19, 1000, 2)).parts[0]
    answer = replace(answer_of([(0, 0, {1: 1})]), parts=(slow, other))
    cells = vega.cells(answer)
    assert sum(cells["c"]) == 7
    assert cells["group"] == ["read", "write"]
    rows = vega.row_layout(common_layout(part.layout for part in answer.parts))
    assert {*cells["lower"], *cells["upper"]} <= set(rows.edges.tolist())


def test_weights_add_up_to_completions(example):
    part = made(NS, [(0, ZERO, ZERO + SECOND, {1400: 7, 900: 13})])
    part = merged([replace(in_flight(part, SECOND), table=(("read",),) * 4)])
    answer = replace(answer_of([(0, 0, {1: 1})]), parts=(part,))
    assert sum(vega.bins(answer)["c"]) == sum(vega.cells(answer)["c"]) == answer.samples == 20


def test_groups_never_share_a_name():
    answer = answer_of([(0, 0, {1: 1}), (1, 0, {1: 1})], (("a, b", "c"), ("a", "b, c")), by=("op", "host"))
    names = vega.group_names(answer)
    assert len(set(names.values())) == 2
    assert set(vega.bins(answer)["group"]) == set(names.values())


@pytest.mark.parametrize("name", SPECS)
def test_specs_hold_no_data(name):
    spec = vega.spec(name)
    holes = [entry["name"] for entry in spec["data"] if entry.keys() == {"name"}]
    assert set(holes) <= {"bins", "cells", "marks"}
    assert all(not entry.keys() & {"values", "url"} for entry in spec["data"])
    for entry in spec["data"]:
        assert entry["name"] in holes or "source" in entry or entry["transform"][0]["type"] == "sequence"


@pytest.mark.parametrize("name", SPECS)
def test_specs_are_drawn_by_any_renderer(name, example, hostile):
    vl_convert = pytest.importorskip("vl_convert")
    svg = vl_convert.vega_to_svg(vega.with_values(vega.spec(name), vega.tables(example)))
    assert svg.count("<path") > 100
    svg = vl_convert.vega_to_svg(vega.with_values(vega.spec(name), vega.tables(hostile, [{"at_ns": ZERO, "text": HOSTILE[0]}])))
    assert "<script" not in svg
    assert "<img" not in svg


def test_a_missing_table_is_an_error():
    with pytest.raises(KeyError):
        vega.with_values(vega.spec("heatmap"), {"bins": {}})


def test_many_windows_are_widened():
    answer = answer_of([(code, at, {500 + at % 90: 1 + at}) for at in range(3001) for code in (0, 1)])
    fitted = report.fitted(answer)
    starts = {t for t in vega.bins(fitted)["t"]}
    assert len(starts) <= report.MOST_WINDOWS
    assert fitted.step_ns == 5 * SECOND
    assert fitted.samples == answer.samples
    assert "widened from 1s to 5s" in fitted.warnings[-1]
    assert report.fitted(fitted) is fitted


def test_windows_far_apart_are_widened():
    fitted = report.fitted(answer_of([(0, 0, {9: 1}), (0, 10**8, {9: 1})]))
    span = max(vega.bins(fitted)["t2"]) - min(vega.bins(fitted)["t"])
    assert span <= report.MOST_WINDOWS * fitted.step_ns // vega.MS
    assert fitted.samples == 2


def test_page_holds_the_tables_and_the_facts(example):
    pytest.importorskip("vl_convert")
    facts = [("Hosts", "ceph-a, ceph-b"), ("Checked", "one"), ("Checked", "two")]
    marks = [{"run": "r", "at_ns": ZERO, "text": "osd.3 down"}]
    page = report.report(example, facts, marks)
    content = unpacked(page)
    assert content["tables"] == vega.tables(example, marks)
    assert content["groups"] == ["read", "write"]
    assert content["specs"].keys() == set(SPECS)
    assert f"{example.samples:,}" in page
    assert "<dt>Hosts</dt><dd>ceph-a, ceph-b</dd>" in page
    assert "<dt>Checked</dt><dd>one</dd><dd>two</dd>" in page
    assert "2026-11-20 21:00:04 to 21:01:20 UTC" in page
    assert "{{" not in re.sub(r"(?s)<script.*?</script>", "", page)
    assert page == report.report(example, facts, marks)


def test_summary_is_that_of_the_whole_range(example, archive):
    pytest.importorskip("vl_convert")
    page = report.report(example)
    whole = percentiles(Files([archive]).answer(Question(by=("op",), step="all")), Wanted(parse_percentiles("99")))
    for op, count, value in zip(whole.columns["op"], whole.columns["count"], whole.columns["p99"], strict=True):
        row = re.search(rf'<th scope="row">{op}</th>(.*?)</tr>', page)[1]
        assert f"<td>{count:,}</td>" in row
        assert f"<td>{value / 1e6:.1f} ms</td>" in row


def test_labels_do_nothing(hostile):
    pytest.importorskip("vl_convert")
    page = report.report(hostile, [(HOSTILE[0], HOSTILE[1])], [{"at_ns": ZERO, "text": HOSTILE[0]}])
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script", page)) == 3
    assert "<!--" not in page
    assert "<img" not in re.sub(r"(?s)<script>.*?</script>", "", page)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert "{{data}}" in page
    assert "\\udcff.log" in page
    assert page.encode("utf-8")
    assert set(unpacked(page)["groups"]) == {vega.printable(label) for label in HOSTILE}


def test_page_points_nowhere(example):
    pytest.importorskip("vl_convert")
    page = report.report(example)
    outside = re.sub(r"(?s)<script>.*?</script>", "", page)
    assert not re.findall(r"https?://", outside)
    assert not re.findall(r"\b(?:src|href|action|srcset|poster)\s*=", outside)
    assert not re.findall(r"url\(|@import", outside)
    assert "$schema" not in json.dumps(unpacked(page)["specs"])


def test_policy_names_both_scripts_and_no_eval(example):
    pytest.importorskip("vl_convert")
    page = report.report(example)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"(?s)<script>(.*?)</script>", page)
    assert len(scripts) == 2
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
        assert "\r" not in script


def test_runs_and_kinds_are_not_added_up_unasked():
    pytest.importorskip("vl_convert")
    rows = [(0, 0, {5: 1}), (1, 0, {5: 1})]
    groups = (("r1", "read"), ("r2", "read"))
    page = report.report(answer_of(rows, groups, by=("run", "op"), runs=("r1", "r2")))
    assert "all together" not in page
    assert unpacked(page)["state"]["series"] == "r1, read"
    page = report.report(answer_of(rows))
    assert "all together" in page
    assert unpacked(page)["state"]["series"] == ""


def test_relative_times_have_no_clock(fio):
    pytest.importorskip("vl_convert")
    answer = replace(answer_of([(0, 0, {5: 1})]), relative=True)
    page = report.report(answer)
    assert 'name="clock"' not in page
    assert unpacked(page)["state"]["clock"] == "elapsed"
    assert "no time zero is known" in page


def test_one_window_of_the_whole_range(archive):
    pytest.importorskip("vl_convert")
    answer = Files([archive]).answer(Question(by=("op",), step="all"))
    page = report.report(answer)
    assert "the whole range" in page
    assert sum(unpacked(page)["tables"]["bins"]["c"]) == answer.samples


def test_without_the_runtime_it_says_what_to_install(example, monkeypatch):
    report._runtime.cache_clear()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"pip install 'tailboard\[report\]'"):
        report.report(example)


def test_specs_are_found_beside_the_package():
    assert (Path(vega.__file__).parents[2] / "kibana" / "vega" / "heatmap.json").is_file()


@given(st.dictionaries(st.integers(0, 1855), drawn_counts, min_size=1, max_size=8))
def test_cells_add_up_whatever_the_bins(bins):
    answer = answer_of([(0, 0, bins)])
    assert sum(vega.cells(answer)["c"]) == sum(vega.bins(answer)["c"]) == sum(bins.values())
