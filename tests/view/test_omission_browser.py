"""Coordinated omission in a real Chromium: the panels of the simulated stall and of made runs hold what the queries answer, and
what is drawn lies where its number is. The specs are drawn by Vega 5 and 6, interpreted, without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ingest.core.errors import shown
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.compare import gap
from ingest.query.files import Files
from ingest.query.overview import overviews
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.view import vega
from tests.browsing import missing
from tests.doubles.origin import SECOND, ZERO, Made, series
from tests.vega.drawn import DARK, EACH_MAJOR, LIGHT, drawing, installed
from tests.view.page import HOSTILE, choose, drag, hovered, items_of, rows_of, settle
from tests.view.test_omission import RATES, SLOW, stalled

SIMULATE = Path(__file__).parents[2] / "examples" / "coordinated-omission" / "simulate.py"
START = 1_700_000_000
MS = 1_000_000


@pytest.fixture(scope="module")
def stall(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stall")
    subprocess.run([sys.executable, SIMULATE, folder], check=True)
    return folder


def files_of(path: Path, **options) -> Files:
    return Files([path], ReadOptions(**options), jobs=1)


def runs_of(files: Files) -> list:
    return overviews(files, files.run_names, Question())


def bands(origin, text: str, step: int, **words) -> dict:
    """Return median, percentile and maximum by (window start in ms, kind), None where the samples are too few."""
    table = percentiles(
        origin.answer(Question(by=("kind",), step=step, **words)),
        Wanted(parse_percentiles(",".join(dict.fromkeys(("50", text, "100"))))),
    ).columns
    rows = zip(table["start_ns"] // MS, table["kind"], table["p50"], table[f"p{text}"], table["p100"], strict=True)
    return {(int(t), kind): (int(low), None if np.isnan(v) else int(v), int(high)) for t, kind, low, v, high in rows}


def shown_bands(page) -> dict:
    rows = rows_of(page, "omission")
    found = {(row["t"], row["label"]): (row["low"], row["v"], row["high"]) for row in rows}
    assert len(found) == len(rows)
    return found


def gaps(origin, text: str, step: int, **words) -> dict:
    """Return the gap by (window start in ms, operation)."""
    table = gap(origin.answer(Question(by=("kind", "op"), step=step, **words)), parse_percentiles(text)[0]).columns
    return {
        (int(t), op): int(v)
        for t, op, v in zip(table["start_ns"] // MS, table["op"], table["gap"], strict=True)
        if not np.isnan(v)
    }


def shown_gaps(page) -> dict:
    return {(row["t"], row["label"]): row["v"] for row in rows_of(page, "gap")}


def says(page, view: str) -> str:
    return page.locator(f"#{view}-says").inner_text()


def visible(page) -> list[str]:
    return [name for name in ("omission", "gap", "kinds") if page.locator(f"#{name}").is_visible()]


@pytest.mark.slow
def test_the_stall_is_shown(opened, stall):
    """Service time stays flat, response time has the ramp of the queue; both as the query layer answers them."""
    files = files_of(stall / "fixed.csv", rate="1000")
    with opened(runs_of(files)) as page:
        assert visible(page) == ["omission", "gap", "kinds"]
        assert shown_bands(page) == bands(files, "99", SECOND)
        assert shown_gaps(page) == gaps(files, "99", SECOND)
        rows = {(row["t"] / 1000 - START, row["label"]): row for row in rows_of(page, "omission")}
        served = [row["v"] for (_, kind), row in rows.items() if kind == "service" and row["v"] is not None]
        assert len(served) == 50 and all(599_000 < v < 601_000 for v in served)
        ramp = [rows[at, "response"]["v"] for at in range(30, 45)]
        assert ramp[0] > 9.9 * SECOND and all(later < earlier for earlier, later in zip(ramp, ramp[1:], strict=False))
        assert all(599_000 < rows[at, "response"]["v"] < 601_000 for at in (*range(20), *range(45, 60)))
        assert [(row["t"] / 1000 - START, row["t2"] / 1000 - START) for row in rows_of(page, "omission", "gaps")] == [(20, 29)]
        assert (
            page.locator("#omission-notes")
            .inner_text()
            .endswith("fixed.csv: schedule: target 1,000/s, achieved 1,000.01/s (100.0 %), largest lag 10.0s")
        )
        assert says(page, "omission").startswith(
            "Highest p99 of a window: response 9.999 s (22:13:50 – 22:13:51 UTC), wait 9.999 s, service 600 µs."
        )
        assert says(page, "gap").startswith(
            "Largest: 9.999 s, read, 22:13:50 – 22:13:51 UTC: service p99 says 600 µs, response p99 9.999 s. In 15 of 50 windows response p99 is more than twice service p99."
        )
        assert (
            says(page, "kinds")
            == "p99 of the range in view: response 9.764 s, service 600.1 µs, wait 9.764 s. 58.3 % of requests did not wait."
        )
        for percentile in ("50", "99.9", "100"):
            choose(page, "p", percentile)
            assert shown_bands(page) == bands(files, percentile, SECOND)
        choose(page, "p", "50")
        assert shown_gaps(page) == gaps(files, "50", SECOND)


@pytest.mark.slow
def test_uncorrected_and_corrected_stand_side_by_side(opened, stall):
    files = files_of(stall / "throughput.csv", expected_interval_ns=MS)
    with opened(runs_of(files)) as page:
        assert visible(page) == ["omission", "kinds"]
        assert shown_bands(page) == bands(files, "99", SECOND)
        assert says(page, "kinds") == "p99 of the range in view: service 600.1 µs, service.corrected 9.412 s."
        answer = files.answer(Question(by=("kind",), step="all"))
        curve = vega.curve(answer)
        expected = set(zip(curve["label"], curve["v"], curve["cum"], strict=True))
        shown = rows_of(page, "kinds")
        assert {(row["label"], row["v"], row["cum"]) for row in shown} <= expected
        assert {row["label"]: row["n"] for row in shown if row["cum"] == row["n"]} == {
            "service": 50_001,
            "service.corrected": 60_007,
        }
        # Of all that was due a sixth fell into the pause: what p99 says is 10 s x (1 - 0.01 x 6).
        corrected = {row["x"]: row["v"] for row in shown if row["label"] == "service.corrected"}
        at_p99 = min((x for x in corrected if x >= 100), default=0)
        assert abs(corrected[at_p99] - 9.4 * SECOND) < 0.01 * 9.4 * SECOND


@pytest.mark.slow
def test_a_generator_that_fell_behind_is_warned_of(opened, stall):
    files = files_of(stall / "throughput.csv", rate="1000", expected_interval_ns=MS)
    with opened(runs_of(files)) as page:
        assert (
            "coordinated omission: judged by the time that requests waited" in page.locator("#omission-notes.notes").inner_text()
        )
        assert "40 % of requests did not wait" in says(page, "kinds")
        assert {row["label"] for row in rows_of(page, "kinds")} == {"response", "service", "wait", "service.corrected"}
    files = files_of(stall / "throughput.csv")
    with opened(runs_of(files)) as page:
        assert page.locator("#omission").count() == 0


@pytest.mark.slow
def test_every_mark_is_where_its_number_is(opened):
    origin = stalled()
    with opened(origin.overviews(), sla=5 * MS) as page:
        begin, end, (low, high) = page.evaluate("['begin', 'end', 'yd'].map((name) => tailboard.views.omission.signal(name))")
        main, height = page.evaluate("['main', 'height'].map((name) => tailboard.views.omission.signal(name))")
        y = lambda v: height if v <= 0 else height * (1 - np.log(v / low) / np.log(high / low))  # noqa: E731
        x = lambda t: (t - begin) / (end - begin) * main  # noqa: E731
        rows = rows_of(page, "omission")
        assert (
            any(row["low"] == 0 for row in rows)
            and min(v for row in rows for v in (row["low"], row["v"], row["high"]) if v) > low
        )
        for mark, fields, number in (
            ("bands", ("high", "low"), len(rows)),
            ("medians", ("low",), len(rows)),
            ("maxima", ("high",), len(rows)),
            ("steps", ("v",), sum(row["v"] is not None for row in rows)),
        ):
            items = items_of(page, "omission", mark)
            assert len(items) == number > 50
            for item in items:
                row = item["datum"]
                assert item["x"] == pytest.approx(x(row["t"]), abs=0.51) and item["x2"] == pytest.approx(x(row["t2"]), abs=0.51)
                for place, field in zip((item["y"], item["y2"]), fields, strict=False):
                    assert place == pytest.approx(y(row[field]), abs=0.51), (mark, row)
        few = items_of(page, "omission", "few")
        assert sorted((item["datum"]["t"], item["datum"]["label"]) for item in few) == sorted(
            (row["t"], row["label"]) for row in rows if row["v"] is None
        )
        assert few and all(item["y"] == pytest.approx(y(item["datum"]["high"]), abs=0.51) for item in few)
        assert f"{len(few)} of {len(rows)} have too few samples: circles at their maximum." in says(page, "omission")
        (line,) = items_of(page, "omission", "sla_line")
        assert line["y"] == pytest.approx(y(5 * MS), abs=0.51)
        order = ["response", "service", "wait"]
        colors = {item["datum"]["label"]: item["stroke"] for item in items_of(page, "omission", "steps")}
        assert [item["datum"]["label"] for item in items_of(page, "omission", "steps")] == sorted(
            (row["label"] for row in rows if row["v"] is not None), key=order.index
        )
        assert colors == {kind: page.evaluate("(kind) => tailboard.views.kinds.scale('color')(kind)", kind) for kind in order}
        assert len(set(colors.values())) == 3
        least, bottom, top = page.evaluate("['least', 'low', 'high'].map((name) => tailboard.views.gap.signal(name))")
        tall = page.evaluate("tailboard.views.gap.signal('height')")
        symlog = lambda v: np.sign(v) * np.log1p(abs(v / least))  # noqa: E731
        for item in items_of(page, "gap", "areas"):
            share = (symlog(item["datum"]["v"]) - symlog(bottom)) / (symlog(top) - symlog(bottom))
            assert item["y"] == pytest.approx(tall * (1 - share), abs=0.01)
            assert item["y2"] == pytest.approx(
                tall * (1 - (symlog(0) - symlog(bottom)) / (symlog(top) - symlog(bottom))), abs=0.01
            )
        assert "0" in page.evaluate("tailboard.views.gap.data('ladder').map(({ v }) => String(v))")


@pytest.mark.slow
def test_filters_and_ranges_act_on_the_panels(opened):
    origin = stalled()
    with opened(origin.overviews()) as page:
        for op in ("read", "insert", ""):
            choose(page, "op", op)
            where = {"op": op} if op else {}
            assert shown_bands(page) == bands(origin, "99", SECOND, where=where)
            answer = gaps(origin, "99", SECOND, where=where)
            (wide,) = {row["t2"] - row["t"] for row in rows_of(page, "gap")}
            assert shown_gaps(page) == gaps(origin, "99", int(wide) * MS, where=where)
            assert len(answer) > 0
        before = shown_bands(page)
        choose(page, "kind", "wait")
        assert shown_bands(page) == before
        choose(page, "host", "g")
        assert shown_bands(page) == bands(origin, "99", SECOND, where={"host": "g"}) != before
        choose(page, "host", "")
        low = ZERO / 1e6
        drag(page, "omission", low + 12_500, low + 20_500)
        begin, end = page.evaluate("tailboard.views.gap.signal('range')")
        assert (begin, end) == (low + 12_000, low + 21_000)
        inside = {key: value for key, value in bands(origin, "99", SECOND).items() if begin <= key[0] < end}
        assert shown_bands(page) == inside and len(inside) < len(before)
        assert page.evaluate("tailboard.views.percentiles.signal('range')") == [begin, end]
        whole = origin.answer(Question(by=("kind",), step="all", begin=Instant(int(begin) * MS), end=Instant(int(end) * MS)))
        assert whole.samples > 0
        page.keyboard.press("Escape")
        settle(page)
        drag(page, "gap", low + 3_500, low + 20_500)
        assert page.evaluate("tailboard.views.omission.signal('range')") == [low + 3_000, low + 21_000]
        choose(page, "clock", "elapsed")
        assert "s elapsed)" in says(page, "omission") and "s elapsed:" in says(page, "gap")
        assert "elapsed" in hovered(page, "omission", "targets") and "elapsed" in hovered(page, "gap", "targets")


@pytest.mark.slow
def test_windows_of_the_gap_carry_the_percentile(opened):
    """Windows are widened until four in five tell of the percentile, and no further than that."""
    rows = [
        (series(kind=kind), at, {place: 30})
        for at in range(60)
        for kind, place in (("service", 900), ("response", 1000 + at), ("wait", 950))
    ]
    origin = Made(rows)
    with opened(origin.overviews()) as page:
        (wide,) = {row["t2"] - row["t"] for row in rows_of(page, "gap")}
        assert wide == 4000 or 30 * wide / 1000 >= 100
        assert shown_gaps(page) == gaps(origin, "99", int(wide) * MS)
        assert f"Windows of {wide / 1000:g} s." in says(page, "gap")
        choose(page, "p", "99.99")
        assert shown_gaps(page) == {} and "No window has enough samples for p99.99 of both." in says(page, "gap")
        assert {row["v"] for row in rows_of(page, "omission")} == {None}
        assert len(items_of(page, "omission", "few")) == len(rows_of(page, "omission"))
        choose(page, "p", "50")
        assert {row["t2"] - row["t"] for row in rows_of(page, "gap")} == {1000}


@pytest.mark.slow
def test_no_gap_and_a_gap_within_the_bins_are_said(opened):
    same = [(series(kind=kind), at, {900: 200}) for kind in ("service", "response") for at in range(4)]
    with opened(Made(same).overviews()) as page:
        assert says(page, "gap") == "No gap: response p99 never exceeds service p99. Windows of 1 s."
        assert {row["v"] for row in rows_of(page, "gap")} == {0}
    near = [(series(kind=kind), at, {place: 200}) for kind, place in (("service", 900), ("response", 901)) for at in range(4)]
    with opened(Made(near).overviews()) as page:
        assert "which is within the error of the bins" in says(page, "gap")
    rows = same + [
        (series("scan", kind=kind), at, {place: 200}) for kind, place in (("service", 900), ("response", 1100)) for at in (1, 2)
    ]
    with opened(Made(rows).overviews()) as page:
        assert says(page, "gap").startswith("Largest: ") and ", scan, 21:00:05 – 21:00:06 UTC: service p99 says" in says(
            page, "gap"
        )
        assert "In 2 of 6 windows of an operation response p99 is more than twice service p99." in says(page, "gap")


@pytest.mark.slow
def test_many_operations_show_the_worst(opened):
    rows = [
        (series(f"op{number:02}", kind=kind), at, {place: 200})
        for number in range(12)
        for at in range(5)
        for kind, place in (("service", 900), ("response", 910 + 20 * number))
    ]
    origin = Made(rows)
    with opened(origin.overviews()) as page:
        assert {row["label"] for row in rows_of(page, "gap")} == {f"op{number:02}" for number in range(4, 12)}
        assert "The 8 worst of 12 operations." in says(page, "gap")
        expected = gaps(origin, "99", SECOND)
        assert all(expected[key] == v for key, v in shown_gaps(page).items())


@pytest.mark.slow
def test_one_kind_that_warns_stands_alone(opened):
    rows = [(series(kind="service"), at, {900: 200}) for at in range(4)]
    with opened(Made(rows, warnings=(RATES, SLOW)).overviews()) as page:
        assert visible(page) == ["omission", "kinds"]
        assert page.locator("#omission-said li").all_inner_texts() == [SLOW, RATES]
        assert {row["label"] for row in rows_of(page, "omission")} == {"service"}


@pytest.mark.slow
def test_each_run_has_its_own_panels(opened):
    plain = [(series(run="b"), at, {900: 200}) for at in range(4)]
    several = [
        (series(kind=kind, run="a"), at, {place: 200})
        for at in range(4)
        for kind, place in (("wait", 800), ("service", 900), ("response", 950))
    ]
    corrected = [
        (series(kind=kind, run="c"), at, {place: 200})
        for at in range(4)
        for kind, place in (("service", 900), ("service.corrected", 1200))
    ]
    origin = Made(plain + several + corrected, starts=dict.fromkeys("abc", ZERO))
    colors = """(view) => Object.fromEntries(tailboard.views[view].scale('color').domain().map((kind) => [kind, tailboard.views[view].scale('color')(kind)]))"""
    with opened(origin.overviews(), by=()) as page:
        assert visible(page) == ["omission", "gap", "kinds"]
        for run, shown, kinds in (
            ("b", [], []),
            ("c", ["omission", "kinds"], ["service", "service.corrected"]),
            ("a", ["omission", "gap", "kinds"], ["response", "service", "wait"]),
            ("c", ["omission", "kinds"], ["service", "service.corrected"]),
        ):
            choose(page, "run", run)
            assert visible(page) == shown
            if shown:
                assert shown_bands(page) == bands(origin, "99", SECOND, where={"run": run})
                told = page.evaluate(colors, "omission")
                assert list(told) == kinds and told == page.evaluate(colors, "kinds")


@pytest.mark.slow
def test_labels_are_text(opened):
    rows = [
        (series(label, label, kind=kind), at, {place: 200})
        for label in HOSTILE
        for at in range(3)
        for kind, place in (("service", 900), ("response", 1000))
    ]
    warnings = tuple(f"{label}: {SLOW}" for label in HOSTILE)
    with opened(Made(rows, warnings=warnings).overviews()) as page:
        assert page.evaluate("() => typeof hacked") == "undefined"
        assert [text for text in page.locator("#omission-said li").all_text_contents() if HOSTILE[0] in text]
        assert page.evaluate("() => document.querySelectorAll('#omission-said :is(img, script, b)').length") == 0
        assert {row["label"] for row in rows_of(page, "gap")} == {shown(label) for label in HOSTILE}
        assert any(label in says(page, "gap") for label in HOSTILE)
        for view in ("omission", "gap"):
            hovered(page, view, "targets")
            assert page.evaluate("() => document.querySelectorAll('#vg-tooltip-element :is(img, script, b)').length") == 0
        choose(page, "op", HOSTILE[0])
        assert {row["label"] for row in rows_of(page, "gap")} == {HOSTILE[0]}


@pytest.mark.soak
def test_marks_are_limited(opened):
    origin = stalled(700)
    with opened(origin.overviews(full=True)) as page:
        count = """(name) => { const count = (item) => (item.items ?? []).reduce((sum, one) => sum + (one.items ? count(one) : 1), 0);
          return count(tailboard.views[name].scenegraph().root); }"""
        for view in ("omission", "gap", "kinds"):
            assert page.evaluate(count, view) < 4000, view
        assert len(rows_of(page, "omission")) <= 300
        (wide,) = {row["t2"] - row["t"] for row in rows_of(page, "omission")}
        assert shown_bands(page) == bands(origin, "99", int(wide) * MS)
        choose(page, "from", "100")
        choose(page, "to", "160")
        assert {row["t2"] - row["t"] for row in rows_of(page, "omission")} == {1000}


@pytest.mark.slow
def test_the_panels_are_described_and_follow_the_theme(opened):
    origin = stalled(12)
    fills = {}
    for scheme in ("light", "dark"):
        with opened(origin.overviews(), scheme=scheme) as page:
            fills[scheme] = {item["fill"] for item in items_of(page, "omission", "bands")}
            for view in ("omission", "gap", "kinds"):
                chart = page.locator(f"#{view}")
                assert chart.get_attribute("role") == "img" and chart.get_attribute("tabindex") == "0"
                assert says(page, view) in chart.get_attribute("aria-label")
            page.set_viewport_size({"width": 390, "height": 800})
            page.wait_for_timeout(200)
            settle(page)
            assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    assert len(fills["light"]) == 3 and not fills["light"] & fills["dark"]


def rows_for(name: str, values: tuple[tuple[int, int | None, int], ...]) -> list[dict]:
    """Return rows of a spec, one window after the other, for each of three labels."""
    out = []
    for at, (low, v, high) in enumerate(values):
        for label in ("response", "service", HOSTILE[0]):
            row = {"t": ZERO / 1e6 + 1000 * at, "t2": ZERO / 1e6 + 1000 * at + 1000, "label": label, "v": v, "n": 9, "open": 0}
            out.append(
                row | ({"low": low, "high": high, "open_high": 1} if name == "omission" else {"service": low, "response": high})
            )
    return out


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("major", EACH_MAJOR)
@pytest.mark.parametrize("name", ["omission", "gap"])
@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_specs_draw_without_a_warning_in_both_versions_of_vega(browser, name, major, colors):
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    cases = {
        "usual": ((10, 20, 30), (0, 2_000_000, 9_000_000_000)),
        "zeros": ((0, 0, 0), (0, 0, 0)),
        "empty": (),
        "one": ((5, 5, 5),),
        "below": ((3, -2_000_000, 5), (3, 2_000_000, 5)),
        "thin": ((3, None, 5), (0, None, 0)) if name == "omission" else ((3, 2, 5),),
    }
    with drawing(browser, major, colors) as page:
        for values in cases.values():
            tables = {"points": rows_for(name, values), "gaps": [], "marks": [{"t": ZERO / 1e6, "text": HOSTILE[0]}]}
            spec = vega.spec(name)
            spec["data"] = [
                {**entry, "values": tables[entry["name"]]} if entry.keys() == {"name"} else entry for entry in spec["data"]
            ]
            page.draw(spec)
            assert len(page.marks("bands" if name == "omission" else "areas")) == 3 * len(values)
