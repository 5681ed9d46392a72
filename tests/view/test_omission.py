"""Service, response and wait time in the report, without a browser: which runs show them, and the numbers of omission.js held
against the query layer and a slow count."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.core.layout import LogLinear
from ingest.core.quantiles import parse_percentiles
from ingest.query.compare import gap
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.view.page import packing, report
from ingest.view.page.panels import omission
from ingest.view.page.template import page_of
from tests.doubles.origin import NS, SECOND, Made, series

FOLDER = Path(omission.__file__).parents[1]
NODE = shutil.which("node")
SLOW = "gen1.csv: coordinated omission: only 93.0 % of the requests that were due could be sent in time"
RATES = "gen1.csv: schedule: target 1,000/s, achieved 930/s (93.0 %), largest lag 3.00s"
HDR = LogLinear(1024, 54272, 1, reports="highest", open_ended=False)


def js(code: str, given):
    """Return what the code returns in Node; `t` is numbers.js, `o` is omission.js, `given` the value that is handed over."""
    if NODE is None:
        if os.environ.get("CI"):
            pytest.fail("node is not here, and CI is to test omission.js")
        pytest.skip("node is not here")
    program = f"""
        const t = (globalThis.tailboard = require({json.dumps(str(FOLDER / "script/numbers.js"))}));
        const o = require({json.dumps(str(FOLDER / "panels/omission.js"))});
        let text = ""; process.stdin.on("data", (part) => text += part).on("end", async () => {{
          const given = JSON.parse(text);
          process.stdout.write(JSON.stringify(await (async () => {{ {code} }})()));
        }});"""
    done = subprocess.run([NODE, "-e", program], input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stalled(windows: int = 40, ops: tuple[str, ...] = ("read", "insert")) -> Made:
    """Return service, response and wait time of a few hundred requests a second; reads wait after a third of the time."""
    random = np.random.default_rng(7)
    rows = []
    for number, op in enumerate(ops):
        for at in range(windows):
            if at % 11 == 5:
                continue
            size = 30 if at % 7 == 3 else 400
            service = random.lognormal(13 + number / 2, 0.5, size)
            wait = np.where(random.random(size) < 0.6, 0, random.lognormal(9, 1, size))
            wait += (op == "read" and at >= windows // 3) * 3e9 * np.exp(-at / 9)
            for kind, values in (("service", service), ("wait", wait), ("response", service + wait)):
                bins, counts = np.unique(HDR.index(values.astype(np.int64)), return_counts=True)
                rows.append(
                    (series(op, "g" if number else "h", kind=kind), at, dict(zip(bins.tolist(), counts.tolist(), strict=True)))
                )
    return Made(rows, layout=HDR)


TABLE = """
    const content = await t.unpack(given.text), level = content.runs[0].levels.cluster;
    const tableOf = (kind, by, k) => {
      const names = by ? [...new Set(level.keys.filter((key) => key.kind === kind).map((key) => key[by]))] : [""];
      const pick = level.keys.map((key) => (key.kind === kind ? names.indexOf(by ? key[by] : "") : -1));
      return { names, ...t.merged(level, content.layouts, pick, 0, level.windows, k) };
    };"""


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("text", ["50", "90", "99", "99.9", "100"])
def test_bands_are_what_the_query_layer_answers(text):
    origin = stalled()
    code = (
        TABLE
        + """
        const tables = ["response", "service", "wait"].map((kind) => ({ label: kind, table: tableOf(kind, "", given.k) }));
        return o.bandsOf(tables, t.percentileOf(given.p));"""
    )
    for k in (1, 3):
        told = js(code, {"text": packing.packed({}, origin.overviews())[0], "k": k, "p": text})
        answer = origin.answer(Question(by=("kind",), step=k * SECOND))
        table = percentiles(answer, Wanted(parse_percentiles(",".join(dict.fromkeys(("50", text, "100")))))).columns
        expected = {
            (start / 1e6, kind): (low, None if np.isnan(v) else v, high, n)
            for start, kind, low, v, high, n in zip(
                table["start_ns"], table["kind"], table["p50"], table[f"p{text}"], table["p100"], table["count"], strict=True
            )
        }
        assert {(one["t"], one["label"]): (one["low"], one["v"], one["high"], one["n"]) for one in told} == expected
        assert len(told) == len(expected)
        assert k > 1 or any(one["v"] is None for one in told) == (text in ("99", "99.9"))
        assert all(one["t2"] == one["t"] + k * 1000 for one in told)


@pytest.mark.cases(1)
@pytest.mark.parametrize("text", ["50", "99", "100"])
def test_the_gap_is_what_the_query_layer_answers(text):
    origin = stalled()
    code = (
        TABLE
        + """
        const [service, response] = ["service", "response"].map((kind) => tableOf(kind, "op", given.k));
        return o.gapOf(service, response, t.percentileOf(given.p));"""
    )
    (wanted,) = parse_percentiles(text)
    for k in (1, 4):
        told = js(code, {"text": packing.packed({}, origin.overviews())[0], "k": k, "p": text})
        table = gap(origin.answer(Question(by=("kind", "op"), step=k * SECOND)), wanted).columns
        expected = {
            (start / 1e6, op): (v, service, response)
            for start, op, v, service, response in zip(
                table["start_ns"], table["op"], table["gap"], table["service"], table["response"], strict=True
            )
            if not np.isnan(v)
        }
        assert {(one["t"], one["label"]): (one["v"], one["service"], one["response"]) for one in told} == expected
        assert len(told) == len(expected) > 0
        assert max(v for v, _, _ in expected.values()) > SECOND / 2
        assert (text, k) != ("99", 1) or len(expected) < len(table["gap"])


def test_an_operation_without_the_other_time_has_no_gap():
    rows = [
        (series(op, kind=kind), at, {900: 200})
        for op, kind in (("read", "service"), ("read", "response"), ("scan", "response"))
        for at in range(3)
    ]
    code = TABLE + """return o.gapOf(tableOf("service", "op", 1), tableOf("response", "op", 1), t.percentileOf("50"));"""
    told = js(code, {"text": packing.packed({}, Made(rows).overviews())[0]})
    assert [(one["label"], one["v"]) for one in told] == [("read", 0)] * 3


def test_windows_are_silent_where_no_kind_has_a_sample():
    rows = [
        (series(kind=kind), at, {900: 3}) for kind, windows in (("service", (0, 1, 6)), ("response", (0, 2, 6))) for at in windows
    ]
    code = (
        TABLE
        + """
        const tables = ["service", "response"].map((kind) => tableOf(kind, "", 1));
        return [o.silenceOf(tables).map(({ t, t2 }) => [t - tables[0].begin, t2 - tables[0].begin]), o.silenceOf([])];"""
    )
    assert js(code, {"text": packing.packed({}, Made(rows).overviews())[0]}) == [[[3000, 6000]], []]


def test_curves_begin_where_zeros_end_and_their_share_is_told():
    zero, some = 0, int(NS.index(np.array([5000]))[0])
    rows = [(series(kind="wait"), at, {zero: 30, some: 9, some + 40: 1}) for at in range(5)]
    code = (
        TABLE
        + """
        const table = tableOf("wait", "", 0), curve = t.curveOf(table, ["wait"]);
        return { curve, above: o.aboveZero(curve), none: o.aboveZero(curve.filter(({ v }) => !v)), share: o.zeroShare(table, 0) };"""
    )
    told = js(code, {"text": packing.packed({}, Made(rows).overviews())[0]})
    assert told["share"] == 0.75 and told["none"] == []
    assert [one["v"] for one in told["curve"]][:2] == [0, 0]
    assert [(one["x"], one["v"]) for one in told["above"]] == [
        (4, int(NS.values[some])),
        (40, int(NS.values[some])),
        (200, int(NS.values[some + 40])),
    ]
    plain = js(
        TABLE
        + """const table = tableOf("wait", "", 0), curve = t.curveOf(table, [""]); return [curve, o.aboveZero(curve), o.zeroShare(table, 0)];""",
        {"text": packing.packed({}, Made([(series(kind="wait"), 0, {some: 3})]).overviews())[0]},
    )
    assert plain[0] == plain[1] and plain[2] == 0


@pytest.mark.parametrize(
    ("kinds", "warnings", "shown"),
    [
        ({"completion", "submission"}, (), []),
        ({"service"}, (RATES,), []),
        ({"service"}, (SLOW,), ["service"]),
        ({"wait", "service", "response"}, (), ["response", "service", "wait"]),
        ({"service.corrected", "service"}, (), ["service", "service.corrected"]),
        ({"service.corrected", "wait", "service", "response", "total"}, (), ["response", "service", "wait", "service.corrected"]),
        ({""}, (), []),
        ({""}, (SLOW,), [""]),
        ({"", "corrected"}, (), ["", "corrected"]),
        ({"completion"}, (SLOW,), []),
        (set(), (), []),
    ],
)
def test_kinds_are_compared_where_there_are_two_or_one_that_warns(kinds, warnings, shown):
    assert omission.content_of(kinds, warnings)["kinds"] == shown


def test_what_is_said_of_the_schedule():
    told = omission.content_of(
        {"service"},
        ("3 rows rejected: x", RATES, RATES, SLOW, "a file named coordinated omission", "\udcff: schedule: achieved 3/s"),
    )
    assert told["said"] == [SLOW, RATES, "\\xff: schedule: achieved 3/s"] and told["warned"]
    many = omission.content_of(
        {"service"}, tuple(f"g{number}.csv: schedule: achieved {number}/s" for number in range(9)) + (SLOW,)
    )
    assert many["said"][0] == SLOW and len(many["said"]) == 7 and many["said"][-1] == "4 more sentences like these"
    assert omission.content_of({"service"}, ("schedule: achieved 9/s",)) == {
        "kinds": [],
        "said": ["schedule: achieved 9/s"],
        "warned": False,
    }


@pytest.mark.slow
def test_the_page_has_the_panels_where_a_run_has_the_kinds():
    pytest.importorskip("vl_convert")
    origin = stalled(8)
    hostile = "</script><script>alert(1)</script>: " + SLOW
    page = page_of(report.parts_of(replace(origin, warnings=(hostile,)).overviews()))
    for name in ("omission", "gap", "kinds"):
        assert f'id="{name}"' in page
    assert "</script><script>alert(1)" not in page and "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    for plain in (Made([(series(), 0, {900: 5})]), Made([(series(kind="service"), 0, {900: 5})])):
        page = page_of(report.parts_of(plain.overviews()))
        assert 'id="omission"' not in page and 'id="gap"' not in page and 'id="kinds"' not in page


def test_the_panels_cost_their_specs_alone():
    """The bins of all kinds are in the page anyway: beside them stand two specs and what is said of a run."""
    runs = stalled(8).overviews()
    without, _ = packing.packed({}, runs)
    held, _ = packing.packed(
        {"specs": omission.section([]).specs, "sections": [omission.content_of({"service", "response"}, (SLOW,))]}, runs
    )
    assert len(held) - len(without) < 9_000
