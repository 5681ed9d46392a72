"""report.js and heat.js in Node: unpacking, merging, ranks, heat maps, held against the query layer, brute force and published vectors.

The vectors of resampling and scaling are those of the tests of the Cloud Analytics heat-map engine, as facts: the input
ranges there are inclusive integers, so [0, 19] is [0, 20) here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from event_files import event_file, reading
from ingest.core.layout import LogLinear, fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.heatmap import autoscaled, overlaps
from ingest.query.overview import overviews, worst_windows
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.view import vega
from ingest.view.page import packing
from tests.doubles.origin import NS, SECOND, ZERO, Made, random_rows, series

SCRIPT = Path(packing.__file__).parent / "script" / "numbers.js"
NODE = shutil.which("node")


def js(code: str, given=None):
    """Return what the code returns in Node; `t` is numbers.js, `h` is heat.js, `s` is shades.js, `given` the value that is handed over."""
    if NODE is None:
        if os.environ.get("CI"):
            pytest.fail("node is not here, and CI is to test report.js")
        pytest.skip("node is not here")
    program = f"""
        const t = (globalThis.tailboard = require({json.dumps(str(SCRIPT))}));
        const h = (globalThis.heat = require({json.dumps(str(SCRIPT.with_name("heat.js")))}));
        const s = (globalThis.shades = require({json.dumps(str(SCRIPT.with_name("shades.js")))}));
        const x = require({json.dumps(str(SCRIPT.with_name("excess.js")))});
        let text = ""; process.stdin.on("data", (part) => text += part).on("end", async () => {{
          const given = JSON.parse(text);
          const told = await (async () => {{ {code} }})();
          process.stdout.write(JSON.stringify(told));
        }});"""
    done = subprocess.run([NODE, "-e", program], input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ASK = """
    const content = await t.unpack(given.text), out = [];
    for (const { run, scope, by, where, k, ps } of given.asked) {
      const level = content.runs[run].levels[scope];
      const keys = level.keys.map((key) => Object.entries(where).every(([name, value]) => key[name] === value) ? by.map((name) => key[name]).join("|") : null);
      const names = [...new Set(keys.filter((key) => key !== null))];
      const pick = keys.map((key) => key === null ? -1 : names.indexOf(key));
      const table = t.merged(level, content.layouts, pick, 0, level.windows, k);
      out.push(ps.map((p) => t.pointsOf(table, names, [t.percentileOf(p)]).map((one) => [one.t, one.t2, one.row, one.v, one.n, one.open])));
    }
    return out;"""


def asked_of(runs, *asked):
    return js(ASK, {"text": packing.packed({}, runs)[0], "asked": asked})


def expected(answer, text: str) -> list:
    """Return what the query layer answers in the form of the page: [t, t2, labels, v, n, open]."""
    table = percentiles(answer, Wanted(parse_percentiles(text)))
    columns = table.columns
    rows = zip(
        columns["start_ns"] / 1e6,
        columns["end_ns"] / 1e6,
        ["|".join(labels) for labels in zip(*(columns[name] for name in answer.by), strict=True)]
        if answer.by
        else [""] * len(table),
        columns[f"p{text}"],
        columns["count"],
        columns[f"p{text}_censored"],
        strict=True,
    )
    return sorted([t, t2, name, v, int(n), int(o)] for t, t2, name, v, n, o in rows if not np.isnan(v))


PS = ("50", "75", "90", "99", "99.9", "99.99", "100", "50.01", "66.67", "97.49")


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_merging_is_what_the_query_layer_answers(seed):
    origin = Made(random_rows(seed))
    runs = origin.overviews()
    cases = [
        ("cluster", ("op",), {}, 1),
        ("cluster", (), {}, 3),
        ("hosts", ("host", "op"), {}, 2),
        ("hosts", ("host",), {"op": "read"}, 5),
        ("threads", ("host",), {}, 7),
        ("hosts", ("host",), {}, 0),
    ]
    found = asked_of(
        runs, *({"run": 0, "scope": scope, "by": by, "where": where, "k": k, "ps": PS} for scope, by, where, k in cases)
    )
    for (scope, by, where, k), told in zip(cases, found, strict=True):
        answer = origin.answer(Question(by=by, where=where, step=k * SECOND if k else "all"))
        for p, rows in zip(PS, told, strict=True):
            wanted = expected(answer, p)
            if not k:
                rows, wanted = ([row[2:] for row in part] for part in (rows, wanted))
            assert sorted(rows) == wanted, (scope, by, k, p)


@pytest.mark.slow
def test_the_example_is_what_the_query_layer_answers(archive):
    files = Files([archive])
    runs = overviews(files, files.run_names, Question())
    cases = [(("host",), 1), (("op",), 2), (("host", "op"), 10)]
    found = asked_of(runs, *({"run": 0, "scope": "hosts", "by": by, "where": {}, "k": k, "ps": PS} for by, k in cases))
    for (by, k), told in zip(cases, found, strict=True):
        answer = files.answer(Question(by=by, step=k * SECOND))
        for p, rows in zip(PS, told, strict=True):
            assert sorted(rows) == expected(answer, p), (by, k, p)


def test_b7_the_page_keeps_percentiles_within_exact_extremes(tmp_path):
    """Its p99 was above its maximum; windows of few operations, so that most bins reach beyond what was measured."""
    pytest.importorskip("pyarrow")
    random = np.random.default_rng(7)
    rows = [
        (ZERO + at * SECOND + place * 1000, int(random.integers(1_000_000, 1_010_000)), f"h{host}")
        for host in range(2)
        for at in range(8)
        for place in range(1 + 3 * at)
    ]
    files = Files([event_file(tmp_path, rows)], reading(tmp_path))
    runs = overviews(files, files.run_names, Question())
    cases = [((), 1), (("host",), 1), (("host",), 3)]
    found = asked_of(runs, *({"run": 0, "scope": "hosts", "by": by, "where": {}, "k": k, "ps": PS} for by, k in cases))
    beyond = 0
    for (by, k), told in zip(cases, found, strict=True):
        answer = files.answer(Question(by=by, step=k * SECOND))
        for p, shown in zip(PS, told, strict=True):
            assert sorted(shown) == expected(answer, p), (by, k, p)
            beyond += sum(v not in NS.values for _, _, _, v, *_ in shown) if p != "100" else 0  # held back by an extreme
    assert beyond > 20
    curve = vega.curve(files.answer(Question(step="all")))
    text = packing.packed({}, runs)[0]
    drawn = js(
        """
        const content = await t.unpack(given.text), level = content.runs[0].levels.cluster;
        return t.curveOf(t.merged(level, content.layouts, level.keys.map(() => 0), 0, level.windows, 0), [""]).map(({ v }) => v);""",
        {"text": text},
    )
    low, high = min(took for _, took, _ in rows), max(took for _, took, _ in rows)
    assert set(drawn) <= set(curve["v"]) and low <= min(drawn) <= max(drawn) <= high


def test_weights_are_ranked_like_counts():
    origin = Made([(series(op), at, {1000: 60, 1300: 30 + at, 1500: 11, 1640: 3}) for at in range(4) for op in ("read", "write")])
    runs = origin.overviews(attribution="in-flight")
    told = asked_of(runs, {"run": 0, "scope": "cluster", "by": ("op",), "where": {}, "k": 1, "ps": PS[:6]})
    answer = origin.answer(Question(by=("op",), step=SECOND, attribution="in-flight"))
    for p, rows in zip(PS, told[0], strict=False):
        assert sorted(rows) == expected(answer, p), p


def test_unlike_layouts_meet_in_their_common_one():
    layouts = {
        "read": NS,
        "write": fio_layout(19, 1000, 2),
        "trim": LogLinear(128, 128 * 20, 1000, reports="highest", open_ended=False),
    }
    rows = [
        (series(op), at, {place: 3 + at, place + 40: 7})
        for at in range(6)
        for op, place in (("read", 1100), ("write", 120), ("trim", 300))
    ]
    origin = Made(rows, layout=layouts)
    runs = origin.overviews()
    told = asked_of(
        runs,
        {"run": 0, "scope": "cluster", "by": (), "where": {}, "k": 2, "ps": PS},
        {"run": 0, "scope": "cluster", "by": ("op",), "where": {}, "k": 1, "ps": PS},
    )
    for question, found in ((Question(step=2 * SECOND), told[0]), (Question(by=("op",), step=SECOND), told[1])):
        answer = origin.answer(question)
        for p, rows_found in zip(PS, found, strict=True):
            assert sorted(rows_found) == expected(answer, p), p


def test_the_open_bin_is_a_lower_bound():
    origin = Made([(series(), 0, {1000: 3, 1855: 2})])
    (told,) = asked_of(origin.overviews(), {"run": 0, "scope": "cluster", "by": (), "where": {}, "k": 1, "ps": ("50", "100")})
    assert told == [
        [[ZERO / 1e6, ZERO / 1e6 + 1000, "", int(NS.values[1000]), 5, 0]],
        [[ZERO / 1e6, ZERO / 1e6 + 1000, "", int(NS.edges[1855]), 5, 1]],
    ]


def test_ranks_are_exact():
    random = np.random.default_rng(20_261_120)
    sizes = [
        1,
        2,
        3,
        99,
        100,
        101,
        999,
        1000,
        1001,
        9999,
        10_000,
        123_457,
        9_999_999_937,
        2**52 + 1,
        *map(int, random.integers(1, 2**50, 200)),
    ]
    texts = ("50", "90", "99", "99.9", "99.99", "50.01", "66.67", "99.29", "97.49", "100", "0.5")
    told = js(
        "return given.sizes.map((n) => given.texts.map((p) => [t.rankOf(n, t.percentileOf(p)), t.isCarried(n, t.percentileOf(p))]));",
        {"sizes": sizes, "texts": texts},
    )
    for n, row in zip(sizes, told, strict=True):
        for text, (rank, carried) in zip(texts, row, strict=True):
            share = Fraction(text) / 100
            assert rank == max(1, -(-n * share.numerator // share.denominator)), (n, text)
            assert carried == (share <= Fraction(1, 2) or share == 1 or n * (1 - share) >= 1), (n, text)


def spread(*cases):
    """Return each (ranges, low, high, rows) resampled by the query layer."""
    query = []
    for ranges, low, high, rows in cases:
        lower, upper, counts = (np.array(column) for column in zip(*ranges, strict=True))
        which, row, share = overlaps(lower, upper, np.linspace(low, high, rows + 1))
        query.append(np.bincount(row, counts[which] * share, rows).tolist())
    return query


PUBLISHED = [
    (([[0, 20, 10], [20, 30, 20], [30, 100, 60]], 0, 120, 10), [6, 12, 17.142857, *[10.285714] * 5, 3.428571, 0]),
    (([[0, 10, 10], [10, 20, 20], [20, 30, 60]], 0, 35, 7), [5, 5, 10, 10, 30, 30, 0]),
    (([[0, 10, 10], [10, 20, 20], [20, 30, 60]], 15, 25, 2), [10, 30]),
    (([[0, 1, 1], [1, 2, 1], [2, 3, 1]], 0, 3, 3), [1, 1, 1]),
]


def test_resampling_equals_the_published_vectors():
    for told, (_, wanted) in zip(spread(*(case for case, _ in PUBLISHED)), PUBLISHED, strict=True):
        assert told == pytest.approx(wanted, abs=1e-6)


def test_scaling_equals_the_published_vector_and_is_a_round_number():
    mosts = [100, 99, 1, 7, 12, 1234, 99_999, 123_456_789]
    page = js("return given.map(h.autoscaled);", mosts)
    query = [autoscaled(most) for most in mosts]
    assert page[:2] == query[:2] == [120, 100]
    for most, one, other in zip(mosts, page, query, strict=True):
        assert other == -(-one // 1)
        assert most < one < 1.25 * most


def test_resampling_spreads_by_overlap():
    random = np.random.default_rng(4)
    edges = np.sort(random.choice(5000, 60, replace=False)).tolist()
    ranges = [[lower, upper, int(random.integers(1, 1000))] for lower, upper in zip(edges[:-1], edges[1:], strict=True)]
    cases = [(ranges, low, high, rows) for low, high, rows in ((0, 5000, 40), (700, 2100, 7), (0, 9000, 1))]
    found = spread(*cases)
    for number, (_, low, high, rows) in enumerate(cases):
        wanted = [Fraction(0)] * rows
        wide = Fraction(high - low, rows)
        for lower, upper, count in ranges:
            for row in range(rows):
                shared = min(Fraction(upper), low + (row + 1) * wide) - max(Fraction(lower), low + row * wide)
                if shared > 0:
                    wanted[row] += count * shared / (upper - lower)
        assert found[number] == pytest.approx([float(count) for count in wanted])


HEAT = """
    const content = await t.unpack(given.text), level = content.runs[0].levels.cluster;
    const table = t.merged(level, content.layouts, level.keys.map(() => 0), 0, level.windows, given.k);
    return given.halves.map((half) => h.heatOf(table, half).map((one) => [one.t, one.lower, one.upper, one.c]));"""


def brute_grid(rows, k: int, half: int) -> Counter:
    """Return the samples of each (t, lower, upper), counted one bin at a time, edges by the definition of a row."""
    found: Counter = Counter()
    for _, at, bins in rows:
        start = (ZERO // SECOND + at) // k * k * 1000
        for place, count in bins.items():
            value = int(NS.edges[place])
            wide = 1
            while value // wide >= 2 * half:
                wide *= 2
            found[start, value // wide * wide, (value // wide + 1) * wide] += count
    return found


@pytest.mark.slow
def test_the_grid_equals_a_brute_force_grid():
    rows = random_rows(8)
    halves = (1, 2, 4, 8, 16, 32, 64)
    for k in (1, 3):
        told = js(HEAT, {"text": packing.packed({}, Made(rows).overviews())[0], "k": k, "halves": halves})
        for half, cells in zip(halves, told, strict=True):
            found = {(t, lower, upper): count for t, lower, upper, count in cells}
            assert len(found) == len(cells)
            assert found == brute_grid(rows, k, half), half


@pytest.mark.slow
def test_rows_of_an_eighth_octave_are_those_of_the_command(archive):
    files = Files([archive])
    told = js(HEAT, {"text": packing.packed({}, overviews(files, files.run_names, Question()))[0], "k": 1, "halves": [8]})[0]
    cells = vega.cells(files.answer(Question(step=SECOND)))
    names = ("t", "lower", "upper", "c")
    assert sorted(told) == sorted([list(row) for row in zip(*(cells[name] for name in names), strict=True)])


def test_marks_are_limited_and_no_sample_is_lost():
    rows = random_rows(9, windows=170, hosts=1)
    code = """
        const content = await t.unpack(given), level = content.runs[0].levels.cluster;
        const table = t.merged(level, content.layouts, level.keys.map(() => 0), 0, level.windows, 1);
        const maps = [["log", 0], ["log", 1], ["linear", 0], ["linear", 0.1], ["linear", 30]].map(([axis, drop]) => h.cellsOf(h.heatMap(table, axis, drop)));
        return { most: t.MOST.raster.rows, maps: maps.map((cells) => ({ marks: cells.length, all: cells.reduce((sum, one) => sum + one.c, 0),
          over: cells.reduce((sum, one) => sum + one.over * one.c, 0), rows: new Set(cells.filter((one) => !one.over).map((one) => one.lower)).size })) };"""
    told = js(code, packing.packed({}, Made(rows).overviews())[0])
    samples = sum(sum(bins.values()) for _, _, bins in rows)
    for one in told["maps"]:
        assert one["all"] == samples
        assert 40 < one["rows"] <= told["most"]
    assert [told["maps"][number]["over"] > 0 for number in (0, 2, 4)] == [False, False, True]
    for number, share in ((1, 0.01), (3, 0.001), (4, 0.3)):
        assert told["maps"][number]["over"] <= samples * share


def test_dropping_keeps_the_share_that_was_asked():
    rows = [(series(), at, {64 * (octave + 1): count for octave, count in ((3, 900), (5, 90), (8, 9), (12, 1))}) for at in (0, 1)]
    code = """
        const content = await t.unpack(given), level = content.runs[0].levels.cluster;
        const table = t.merged(level, content.layouts, level.keys.map(() => 0), 0, level.windows, 1);
        return [0.05, 0.1, 1, 10].map((drop) => h.cellsOf(h.heatMap(table, "log", drop)).map((one) => [one.c, one.over, one.lower, one.upper, one.cum, one.n]));"""
    told = js(code, packing.packed({}, Made(rows).overviews())[0])
    assert [sum(c for c, over, *_ in cells if over) for cells in told] == [0, 2, 20, 200]
    tops = [max(upper for _, over, _, upper, *_ in cells if not over) for cells in told]
    for cells, top in zip(told, tops, strict=True):
        assert sum(c for c, *_ in cells) == 2000
        assert {(lower, cum, n) for _, over, lower, _, cum, n in cells if over} <= {(top, 1000, 1000)}
        assert {upper for _, over, _, upper, *_ in cells if over} <= {NS.edges[64 * 13 + 1]}
    assert tops == sorted(set(tops), reverse=True)


def test_gaps_are_told_together_and_each():
    rows = [(series(host="a"), at, {900: 1}) for at in (0, 1, 5, 6, 9)] + [
        (series(host="b"), at, {900: 1}) for at in (0, 5, 6, 7)
    ]
    code = """
        const content = await t.unpack(given), level = content.runs[0].levels.hosts, names = level.keys.map((key) => key.host);
        const table = t.merged(level, content.layouts, names.map((_, at) => at), 0, level.windows, 1);
        return [false, true].map((each) => t.gapsOf(table, names, each).map((one) => [one.row, (one.t - table.begin) / 1000, (one.t2 - table.begin) / 1000]));"""
    together, each = js(code, packing.packed({}, Made(rows).overviews())[0])
    assert [gap[1:] for gap in together] == [[2, 5], [8, 9]]
    assert each == [["a", 2, 5], ["a", 7, 9], ["b", 1, 5], ["b", 8, 10]]


def test_the_curve_is_that_of_the_command():
    rows = random_rows(3, windows=10, hosts=2)
    code = """
        const content = await t.unpack(given), level = content.runs[0].levels.hosts, names = ["h0", "h1"];
        const table = t.merged(level, content.layouts, level.keys.map((key) => names.indexOf(key.host)), 0, level.windows, 0);
        return t.curveOf(table, names).map((one) => [one.label, one.x, one.v, one.cum, one.n]);"""
    origin = Made(rows)
    told = js(code, packing.packed({}, origin.overviews())[0])
    curve = vega.curve(origin.answer(Question(by=("host",), step="all")))
    points = [list(row) for row in zip(*(curve[name] for name in ("label", "x", "v", "cum", "n")), strict=True)]
    assert all(
        any(one[0] == other[0] and one[2:] == other[2:] and abs(one[1] - other[1]) < 1e-9 * one[1] for other in points)
        for one in told
    )
    assert [row for row in told if row[3] == row[4]] == [row for row in points if row[3] == row[4]]
    assert len(told) == len(points) < 900
    told = js(code.replace("const content", "t.MOST.curve = 60; const content"), packing.packed({}, origin.overviews())[0])
    assert 20 < len(told) <= 64
    assert [row for row in told if row[3] == row[4]] == [row for row in points if row[3] == row[4]]


def test_worst_windows_are_those_of_the_query_layer():
    rows = random_rows(12)
    origin = Made(rows)
    code = """
        const content = await t.unpack(given), level = content.runs[0].levels.hosts, names = ["h0", "h1", "h2"], p99 = t.percentileOf("99");
        const merged = (pick, from, to, k) => t.merged(level, content.layouts, pick, from, to, k), every = level.keys.map(() => 0);
        const least = t.pointsOf(merged(every, 0, level.windows, 0), [""], [p99])[0].v, hosts = level.keys.map((key) => names.indexOf(key.host));
        const place = (ms) => Math.min(level.windows, Math.max(0, (ms - level.origin) / level.step));
        const makers = ({ t, t2 }) => x.excessBy(merged(hosts, place(t), place(t2), 0), names, least).map(({ name, excess }) => [name, excess]);
        return x.worstOf(merged(every, 0, level.windows, 2), p99, 8, least)
          .map((one) => [one.t, one.value?.v ?? null, one.n, one.highest.v, one.excess, makers(one)]);"""
    told = js(code, packing.packed({}, origin.overviews())[0])
    answer = origin.answer(Question(by=("host", "op"), step=2 * SECOND))
    wanted = worst_windows(answer, "host", parse_percentiles("99")[0], 8)
    assert len(told) == 8
    assert told == [
        [one.start_ns / 1e6, one.value_ns, one.samples, one.max_ns, one.excess_ns, list(map(list, one.makers))] for one in wanted
    ]
