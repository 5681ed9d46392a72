"""The first screen of the report in a real Chromium, and what its panels have in common: story, crosshair, history, menus, legends."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import pairwise

import pytest

from ingest.cli import run as command
from ingest.query.files import Files
from ingest.query.overview import overviews
from ingest.query.question import Question
from ingest.view.page.report import opening, parts_of
from tests.browsing import shown
from tests.doubles.origin import SECOND, ZERO, Made, random_rows, series
from tests.view.page import choose, drawn, items_of, levels_of, place, rows_of, settle

SCREEN = {"width": 1280, "height": 800}
TIMED = ("percentiles", "hosts", "heatmap", "threads", "rate", "surface")
STALL = {
    "kind": "stall",
    "text": "ceph-b stalled from 21:00:34.5 to 21:00:38.5: what waited took up to 4.01 s. It accounts for 61 % of all excess latency.",
    "tail": " It accounts for 61 % of all excess latency.",
    "who": {"host": "ceph-b"},
    "from_s": 30.0,
    "to_s": 34.0,
    "latency_ns": [1e9, 4.01e9],
    "value": "4.01 s",
    "times": 1600.0,
    "samples": 12,
    "share": 0.61,
    "missing_share": 0.4,
    "consistent": "A device that stopped.",
    "against": "",
    "command": "tailboard percentiles x --host ceph-b",
}
SLOW = {
    **STALL,
    "kind": "throttled",
    "text": "ceph-c is throttled throughout.",
    "tail": "",
    "who": {"host": "ceph-c"},
    "from_s": 0.0,
    "to_s": 76.0,
    "value": "",
    "share": 0.0004,
}
STORY = {"findings": [STALL, SLOW], "unexplained": 0.07, "nothing": "", "reference": "Typical is a p99 of 1.3 ms."}


@pytest.fixture(scope="module")
def example(archive) -> list:
    files = Files([archive])
    return overviews(files, files.run_names, Question())


@pytest.fixture(scope="module")
def told(example) -> list:
    return [replace(run, story=STORY) for run in example]


def box(page, selector: str) -> dict:
    return page.locator(selector).first.bounding_box()


def inked(page, name: str) -> float:
    """Return the share of the pixels of a chart's canvas that are drawn upon."""
    return page.evaluate(
        """(name) => { const canvas = document.querySelector(`#${name} canvas`), { width, height } = canvas;
        const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
        let drawn = 0; for (let at = 3; at < data.length; at += 4) drawn += data[at] > 0; return drawn / (width * height); }""",
        name,
    )


@pytest.mark.slow
def test_d9_the_story_and_the_drawn_map_and_the_hosts_are_on_the_first_screen(opened, told):
    with opened(told, by=("host",), size=SCREEN) as page:
        assert page.evaluate("[scrollY, document.documentElement.scrollWidth]") == [0, 1280]
        links = page.locator("#story-sentences a")
        assert [link.inner_text() for link in links.all()] == [STALL["text"].removesuffix(STALL["tail"]), SLOW["text"]]
        assert [bar.inner_text() for bar in page.locator("#story-sentences .share").all()] == ["61 %", "< 1 %"]
        shown_first = ("#story", "#percentiles canvas", "#heatmap canvas", "#hosts canvas")
        bottoms = [box(page, name)["y"] + box(page, name)["height"] for name in shown_first]
        assert bottoms == sorted(bottoms) and bottoms[-1] <= 800
        assert inked(page, "heatmap") > 0.2 and inked(page, "hosts") > 0.2
        assert [len(items_of(page, name, "heat")) > 0 for name in ("heatmap", "hosts")] == [True, True]
        assert box(page, "#worst-rows")["y"] > bottoms[-1]


@pytest.mark.slow
def test_what_the_first_screen_has_no_room_for_is_a_line_each_until_it_is_opened(opened, example):
    with opened(example, folded=True, size=SCREEN) as page:
        assert set(page.evaluate("Object.keys(tailboard.views)")) == {"percentiles", "heatmap", "hosts"}
        assert not page.locator("#threads").is_visible()  # each host has one
        said = page.locator("#rate-says").inner_text()
        assert "I/Os in view; lowest" in said
        assert all(box(page, f".panel:has(#{name})")["height"] < 40 for name in ("rate", "surface", "distribution"))
        assert "Most above p99 of the range: 21:00:3" in page.locator("#worst-says").inner_text()
        assert page.locator("#worst-says").inner_text().endswith("UTC, by ceph-b 99 %, ceph-c 1 %.")
        button = page.get_by_role("button", name="I/O rate", exact=True)
        assert button.get_attribute("aria-expanded") == "false"
        button.focus()
        page.keyboard.press("Enter")
        settle(page)
        assert button.get_attribute("aria-expanded") == "true" and len(rows_of(page, "rate")) > 60
        assert page.locator("#rate-says").inner_text() == said
        page.locator("#h-worst").click()
        settle(page)
        assert page.locator("#worst-rows tr").count() == 8
        address = page.evaluate("location.hash")
        page.locator("#h-rate").click()
        settle(page)
        assert "rate" not in page.evaluate("Object.keys(tailboard.views)")
    with opened(example, folded=True, fragment=address) as page:
        assert "rate" in page.evaluate("Object.keys(tailboard.views)") and page.locator("#worst-rows tr").count() == 8


# Labels of one axis or legend that are drawn less than 4 px from one another: they read as one.
TOUCHING = """() => Object.entries(tailboard.views).flatMap(([name, view]) => {
  const shown = ({ text, opacity }) => text && opacity !== 0, far = (a, b) => Math.max(a.x1 - b.x2, b.x1 - a.x2, 2 * (a.y1 - b.y2), 2 * (b.y1 - a.y2));
  const of = (item) => (item.items ?? []).flatMap((mark) => (/^(axis|legend)-label$/.test(mark.role) ? [mark.items.filter(shown)] : (mark.items ?? []).flatMap(of)));
  return of(view.scenegraph().root.items[0]).flatMap((labels) => labels.slice(1).map((label, at) => [labels[at], label])
    .filter(([a, b]) => far(a.bounds, b.bounds) < 4).map((pair) => [name, ...pair.map(({ text }) => text)])); })"""


def test_what_is_as_usual_lies_flat_and_no_label_touches_another(opened):
    rows = [(series("read"), at, {900 + at % 7: 100 + 29 * at, **({1200: 1} if at % 9 == 4 else {})}) for at in range(28)]
    with opened(Made(rows).overviews(), folded=True, size=SCREEN) as page:
        assert page.evaluate(TOUCHING) == []
        (low, high), tall = page.evaluate("[tailboard.views.percentiles.signal('yd'), tailboard.views.percentiles.height()]")
        assert high / low >= 10 - 1e-9
        marks = [item["y"] for item in levels_of(page, "percentiles")]
        assert len(marks) == 28 and max(marks) - min(marks) < tall / 10
        labels = page.evaluate(
            "tailboard.views.percentiles.data('ladder').map(({ v }) => tailboard.views.percentiles.scale('y')(v))"
        )
        assert min(b - a for a, b in pairwise(sorted(labels))) > 12  # as high as their text
        page.set_viewport_size({"width": 390, "height": 844})
        page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        )  # charts see that they are narrower
        settle(page)
        assert page.evaluate("tailboard.views.heatmap.width()") < 320
        assert page.evaluate(TOUCHING) == []


@pytest.mark.slow
def test_a_percentile_of_two_decimals_is_seen_whole(opened, told):
    with opened(told, by=("host",), size=SCREEN) as page:
        for text in ("99.05", "99.99"):
            page.fill("#exact", text)
            assert (
                page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#exact'))")
                <= 0
            )
            page.hover("#exact")  # the arrows of a number are drawn over its end
            assert (
                page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#exact'))")
                <= 0
            )


@pytest.mark.slow
def test_d9_without_a_story_the_page_is_whole(opened, example):
    with opened(example, by=("host",), size=SCREEN) as page:
        assert page.locator("#story").count() == 0 and page.locator(".over .event").count() == 0
        assert box(page, "#hosts canvas")["y"] + box(page, "#hosts canvas")["height"] <= 800


@pytest.mark.slow
def test_d9_the_largest_event_is_the_strongest_mark_of_the_first_screen(opened, told):
    with opened(told, by=("host",), size=SCREEN) as page:
        marks = page.locator(".plot:has(#heatmap) .event")
        assert [mark.inner_text() for mark in marks.all()] == ["4.01 s"]
        assert page.evaluate("getComputedStyle(document.querySelector('.event.rank1')).borderTopWidth") == "3px"
        low, high = page.evaluate("[1e9, 4.01e9].map((v) => tailboard.views.heatmap.scale('y')(v))")
        drawn_box, plot = marks.first.bounding_box(), box(page, ".plot:has(#heatmap) .over")
        assert drawn_box["y"] - plot["y"] <= high and drawn_box["y"] + drawn_box["height"] - plot["y"] >= low
        rows = page.locator(".plot:has(#hosts) .event")
        assert rows.count() == 2


@pytest.mark.slow
def test_d9_each_sentence_leads_to_its_place_and_back(opened, told):
    with opened(told, by=("host",), size=SCREEN) as page:
        links = page.locator("#story-sentences a")
        links.first.focus()
        page.keyboard.press("Enter")
        settle(page)
        state = page.evaluate("({ ...tailboard.state })")
        assert float(state["from"]) <= 30 and float(state["to"]) >= 34 and float(state["to"]) - float(state["from"]) < 20
        assert state["highlight"] == "host=ceph-b"
        low, high = page.evaluate("tailboard.views.heatmap.signal('range')")
        assert low <= ZERO / 1e6 + 30_000 and high >= ZERO / 1e6 + 34_000
        assert links.first.get_attribute("aria-current") == "true"
        links.nth(1).click()
        settle(page)
        assert page.evaluate("[tailboard.state.from, tailboard.state.highlight]") == ["", "host=ceph-c"]
        page.evaluate("history.back()")
        page.wait_for_function("tailboard.state.highlight === 'host=ceph-b'")
        settle(page)
        assert page.evaluate("tailboard.views.heatmap.signal('range')") == [low, high]


@pytest.mark.slow
def test_d9_the_worst_list_begins_with_findings_that_the_story_leaves_out_and_its_rows_are_links(opened, example):
    many = [replace(run, story={**STORY, "findings": [SLOW, SLOW, SLOW, STALL]}) for run in example]
    with opened(many, by=("host",)) as page:
        first, second = (page.locator("#worst-rows tr").nth(number).inner_text() for number in range(2))
        assert STALL["text"] in first and "ceph-b 9" in second
    with opened(example, by=("host",)) as page:
        first = page.locator("#worst-rows tr").first
        assert "4.01 s" in first.inner_text() and "ceph-b 9" in first.inner_text()
        first.locator("a").click()
        settle(page)
        low, high = page.evaluate("tailboard.views.rate.signal('range')")
        assert low <= ZERO / 1e6 + 30_000 <= high and high - low < 20_000


@pytest.mark.slow
def test_d9_a_quiet_run_says_that_nothing_stands_out(opened):
    rows = [(series("read", host), at, {900: 200, 910: 20}) for host in ("h1", "h2") for at in range(30)]
    quiet = {"findings": [], "unexplained": 0.0, "nothing": "Nothing stands out.", "reference": ""}
    with opened([replace(run, story=quiet) for run in Made(rows).overviews()]) as page:
        assert page.locator("#story-sentences").inner_text() == "Nothing stands out."
        assert page.locator(".event").count() == 0


@pytest.mark.slow
def test_d10_one_line_through_all_panels_and_all_series_read_at_the_nearest_window(opened, example):
    with opened(example, by=("host",)) as page:
        expected = {label: v for (t, label), v in drawn(page).items() if t == ZERO / 1e6 + 12_000}
        assert len(expected) == 3
        hits = 0
        for name in ("rate", "percentiles", "surface"):
            for share in (0.1, 0.5, 0.9):
                page.mouse.move(*place(page, name, ZERO / 1e6 + 12_600, share))
                page.wait_for_function("document.querySelector('#vg-tooltip-element.visible')")
                text = page.locator("#vg-tooltip-element").inner_text()
                hits += all(label in text for label in expected)
                assert "21:00:16 – 21:00:17 UTC" in text, text
                lines = page.evaluate(
                    """() => [...document.querySelectorAll('.over')].map((layer) => { const line = layer.querySelector('.line');
                    const view = tailboard.views[layer.parentElement.querySelector('.chart').id];
                    return [line.style.display, view.scale('x').invert(parseFloat(line.style.left)).valueOf()]; })"""
                )
                assert len(lines) == len(TIMED)
                assert all(shown == "block" and abs(t - ZERO / 1e6 - 12_500) < 2 for shown, t in lines), (name, share, lines)
        assert hits == 9
        page.mouse.move(2, 2)
        page.wait_for_function("!document.querySelector('#vg-tooltip-element.visible')")


@pytest.mark.slow
def test_the_lowest_rate_is_none_where_a_host_did_nothing(opened, archive, example):
    """Windows without a completion of a group are no points of its line, and were passed over."""
    answer = Files([archive]).answer(Question(by=("host",), step=SECOND))
    (part,) = answer.parts
    starts = {key[0]: set(part.start_ns[part.series == code].tolist()) for code, key in enumerate(part.table)}
    silent = {host: [t for t in range(min(mine), max(mine), SECOND) if t not in mine] for host, mine in starts.items()}
    assert [host for host, times in silent.items() if times] == ["ceph-b"]
    with opened(example, by=("host",)) as page:
        assert "lowest 0 a second, ceph-b, " in page.locator("#rate-says").inner_text()
        choose(page, "by", "op")
        assert "lowest 0 a second" not in page.locator("#rate-says").inner_text()


@pytest.mark.slow
def test_d10_arrows_move_the_line_of_the_focused_chart(opened, example):
    with opened(example, by=("host",)) as page:
        page.locator("#rate").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        said = page.locator("#line-says").inner_text()
        assert "21:00:06 – 21:00:07 UTC" in said and "a second" in said
        page.keyboard.press("ArrowLeft")
        assert "21:00:05 – 21:00:06 UTC" in page.locator("#line-says").inner_text()


@pytest.mark.slow
def test_d11_back_and_forward_step_through_choices_and_a_slide_is_one(opened, example):
    with opened(example) as page:
        before = page.evaluate("history.length")
        choose(page, "op", "write")
        choose(page, "host", "ceph-b")
        slider = page.get_by_role("slider", name="Percentile")
        slider.evaluate(
            """(slider) => { for (const p of [95, 90, 85]) { slider.value = p; slider.dispatchEvent(new Event('input', { bubbles: true })); }
            slider.dispatchEvent(new Event('change', { bubbles: true })); }"""
        )
        settle(page)
        assert page.evaluate("history.length") == min(before + 3, 50)  # a browser keeps 50
        states = [page.evaluate("({ ...tailboard.state })")]
        for wanted in ("p === '99'", "host === ''", "op === ''"):
            page.evaluate("history.back()")
            page.wait_for_function(f"tailboard.state.{wanted}")
            settle(page)
            states.append(page.evaluate("({ ...tailboard.state })"))
        assert [(state["op"], state["host"], state["p"]) for state in states] == [
            ("write", "ceph-b", "85"),
            ("write", "ceph-b", "99"),
            ("write", "", "99"),
            ("", "", "99"),
        ]
        page.evaluate("history.forward()")
        page.wait_for_function("tailboard.state.op === 'write'")
        settle(page)
        assert page.locator("select[name=op]").input_value() == "write"


@pytest.mark.slow
def test_d11_each_panel_gives_its_numbers_and_its_picture(opened, example):
    with opened(example, by=("host",)) as page:
        assert page.locator(".tools").count() == len(TIMED) + 3  # the distribution, the worst and the box
        table = page.locator("#worst .tools")
        table.locator("summary").click()
        with page.expect_download() as given:
            table.get_by_role("button", name="csv").click()
        with open(given.value.path(), encoding="utf-8", newline="") as text:
            worst = list(csv.DictReader(io.StringIO(text.read())))
        shown_rows = page.locator("#worst-rows tr").all()
        assert len(worst) == len(shown_rows) and int(worst[0]["max"]) == max(int(row["max"]) for row in worst)
        begin, _, end = worst[0]["when"].partition("/")
        assert (
            begin < end
            and begin.endswith("Z")
            and f"{int(worst[0]['samples']):,}" == shown_rows[0].locator("td").nth(3).inner_text()
        )
        shown = drawn(page)
        menu = page.locator(".panel:has(#percentiles) .tools")
        menu.locator("summary").click()
        with page.expect_download() as given:
            menu.get_by_role("button", name="csv").click()
        with open(given.value.path(), encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(io.StringIO(text.read())))
        held = {
            (int(row["start_ns"]) // 1_000_000, row["series"]): int(row["latency_ns"]) for row in rows if row["too_few"] == "0"
        }
        assert held == shown
        assert given.value.suggested_filename.endswith("-percentiles.csv")
        cells = page.locator(".panel:has(#heatmap) .tools")
        cells.locator("summary").click()
        with page.expect_download() as given:
            cells.get_by_role("button", name="csv").click()
        with open(given.value.path(), encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(io.StringIO(text.read())))
        assert sum(float(row["count"]) for row in rows) == example[0].cluster.samples
        menu.locator("summary").click()
        with page.expect_download() as given:
            menu.get_by_role("button", name="png").click()
        with open(given.value.path(), "rb") as picture:
            data = picture.read()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 5000


@pytest.mark.slow
def test_d11_a_legend_switches_series_off_and_colours_stay(opened, example):
    with opened(example, by=("host",)) as page:
        colors = page.evaluate("tailboard.views.percentiles.scale('color')('ceph-c')")
        page.locator(".plot:has(#percentiles) .legend button", has_text="ceph-a").click()
        settle(page)
        assert {label for _, label in drawn(page)} == {"ceph-b", "ceph-c"}
        assert {row["label"] for row in rows_of(page, "rate")} == {"ceph-b", "ceph-c"}
        assert page.evaluate("tailboard.views.percentiles.scale('color')('ceph-c')") == colors
        assert page.locator(".legend button[aria-pressed=false]").count() == 3
        address = page.evaluate("location.hash")
    with opened(example, by=("host",), fragment=address) as page:
        assert {label for _, label in drawn(page)} == {"ceph-b", "ceph-c"}


@pytest.mark.slow
@pytest.mark.parametrize("fragment", ["", "#from=100&to=400"])
def test_d12_panels_over_time_have_the_same_windows_and_the_page_says_which(opened, fragment):
    origin = Made(random_rows(5, windows=700, hosts=2, threads=2, ops=("read",)))
    with opened(origin.overviews(), by=("host",), fragment=fragment) as page:
        widths = {
            name: {row["t2"] - row["t"] for row in rows_of(page, name)} for name in ("percentiles", "hosts", "surface", "threads")
        }
        (wide,) = set.union(*widths.values())
        rates = [row["t2"] - row["t"] for row in rows_of(page, "rate") if not row["part"]]
        assert set(rates) == {wide}
        assert page.locator("#view-says").inner_text().endswith(f"windows of {wide / 1000:g} s")


@pytest.mark.slow
def test_d5_hosts_threads_and_surface_share_a_scale_that_noise_cannot_fill(opened, example):
    """From what is typical on, where it is not asked to be absolute: there a host as usual is pale, one of 60 times that dark."""
    with opened(example) as page:
        low, high = page.evaluate("tailboard.views.hosts.signal('cd')")
        values = sorted(row["v"] for row in rows_of(page, "hosts"))
        assert low == values[len(values) // 2] and high == 100 * low < max(values)
        assert [row["row"] for row in rows_of(page, "hosts", "rows")] == ["ceph-c", "ceph-b", "ceph-a"]
        choose(page, "colour", "absolute")
        scales = page.evaluate("['hosts', 'threads', 'surface'].map((name) => tailboard.views[name].signal('cd'))")
        assert scales[0] == scales[1] == scales[2]
        assert scales[0][1] == pytest.approx(4.01e9, rel=0.01)
        assert "4.01 s, ceph-b" in page.locator("#threads-says").inner_text()
        assert max(row["v"] for row in rows_of(page, "threads")) > 4e9
    rows = [
        (series("read", host, job), at, {900 + (at + len(host)) % 3: 400})
        for host in ("a", "bb")
        for job in "12"
        for at in range(9)
    ]
    with opened(Made(rows).overviews()) as page:
        low, high = page.evaluate("tailboard.views.hosts.signal('cd')")
        assert high / low >= 9.99
        assert "Nothing stands out" in page.locator("#hosts-says").inner_text()
        fills = {item["fill"] for item in items_of(page, "hosts", "heat")}
        assert len(fills) <= 3


@pytest.mark.slow
def test_d4_a_run_of_two_days_says_dates(opened):
    rows = [(series("read", host), at * 1800, {900: 400, 1500 + at % 5: 8}) for host in ("a", "b") for at in range(2 * 48)]
    with opened(Made(rows).overviews()) as page:
        assert page.locator("#worst-rows tr").first.inner_text().startswith("20")
        times = [row.split("\t")[0] for row in page.locator("#worst-rows").inner_text().splitlines()]
        assert len(set(times)) == len(times)
        assert all(time.count("-") >= 2 for time in times), times
        assert "20" in page.locator("#hosts-says").inner_text().split(", ")[-1]
        ticks = page.evaluate(
            """() => tailboard.views.rate.scenegraph().root.items[0].items.find((one) => one.role === 'axis').items[0].items
            .find((one) => one.role === 'axis-label').items.map((one) => one.text)"""
        )
        assert any(not text[0].isspace() and any(letter.isalpha() for letter in text) for text in ticks), ticks


@pytest.mark.slow
def test_d8_partial_windows_are_marked_and_stay_within_the_axis(opened, example):
    with opened(example) as page:
        for name in ("rate", "hosts"):
            plot = box(page, f".plot:has(#{name}) .over")
            marks = page.locator(f".plot:has(#{name}) .partial").all()
            assert len(marks) == 2
            for mark in marks:
                x, width = mark.bounding_box()["x"], mark.bounding_box()["width"]
                assert plot["x"] - 0.5 <= x and x + width <= plot["x"] + plot["width"] + 0.5


@pytest.mark.slow
def test_the_first_screen_says_which_kind_is_shown_and_which_hosts_have_another(opened):
    """Two of three hosts were in no picture, and only the folded notes said so; the choice of the kind was folded away, too."""
    kinds = {"a": ("completion", "total"), "b": ("completion",), "c": ("completion",)}
    rows = [
        (series("read", host, kind=kind), at, {900 + at: 400, 1500: 8})
        for host, own in kinds.items()
        for kind in own
        for at in range(9)
    ]
    readout = "#readout"
    with opened(Made(rows).overviews(), by=("host",), size=SCREEN) as page:
        assert "latency: completion 11,016, total 3,672 samples in 9 s" in page.locator("header").first.inner_text()
        assert page.locator("[name=kind]").first.is_visible()
        said = page.locator(readout).inner_text()
        assert said.startswith("p99 of total latency of the range:") and "b, c: no total latency, choose another kind" in said
        choose(page, "host", "b")
        assert page.locator(readout).inner_text() == "p99 of total latency of the range: b: no total latency, choose another kind"
        choose(page, "kind", "completion")
        said = page.locator(readout).inner_text()
        assert said.startswith("p99 of completion latency of the range:") and "another kind" not in said
    with opened(Made([row for row in rows if row[0].kind == "completion"]).overviews(), by=("host",), size=SCREEN) as page:
        assert page.locator(readout).inner_text().startswith("p99 of the range:")
        assert not page.locator("[name=kind]").first.is_visible()


@pytest.mark.slow
def test_d13_wide_screens_have_two_columns_and_narrow_ones_a_legend(opened, example):
    with opened(example, by=("host",), size={"width": 1920, "height": 1080}) as page:
        panels = [box(page, f".panel:has(#{name})") for name in ("rate", "surface", "distribution")]
        assert len({panel["x"] for panel in panels}) == 2 and all(panel["width"] < 960 for panel in panels)
        assert box(page, ".panel:has(#heatmap)")["width"] > 1800
    with opened(example, by=("host",), size={"width": 400, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        buttons = page.locator(".plot:has(#percentiles) .legend button")
        assert [button.inner_text() for button in buttons.all()] == ["ceph-a", "ceph-b", "ceph-c"]
        assert all(button.bounding_box()["x"] + button.bounding_box()["width"] <= 400 for button in buttons.all())


@pytest.mark.slow
def test_d13_a_panel_that_says_what_others_do_is_not_there(opened):
    alone = [(series("read", "h1", "1"), at, {900 + at: 150, 1200: 1}) for at in range(8)]
    several = [(series("read", "h1", job), at, {900 + at: 150, 1200: 1}) for at in range(8) for job in "12"]
    for rows, shown_too in ((alone, False), (several, True)):
        with opened(Made(rows).overviews()) as page:
            assert not page.locator("#hosts").is_visible()
            assert page.locator("#threads").is_visible() == shown_too


@pytest.mark.slow
def test_d13_print_cuts_no_column(opened, told):
    with opened(told, by=("host",), size={"width": 720, "height": 1000}) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        settle(page)
        page.locator("#about").evaluate("(about) => { about.open = true; }")
        over = page.evaluate(
            "[...document.querySelectorAll('.table')].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.closest('section').id)"
        )
        assert over == []
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        settle(page)


@pytest.mark.slow
def test_the_mean_is_a_line_beside_percentiles(opened):
    rows = [(series("read", "a"), at, {900: 100, 1500: 1 + at}) for at in range(4)]
    origin = Made(rows)
    with opened(origin.overviews(), by=()) as page:
        choose(page, "also", "mean")
        means = [row["v"] for row in rows_of(page, "percentiles") if row["label"] == "read mean"]
        values = rows_of(page, "heatmap", "points") and page.evaluate(
            "[900, 1500].map((bin) => tailboard.content.layouts[0].values[bin])"
        )
        assert means == [pytest.approx((100 * values[0] + (1 + at) * values[1]) / (101 + at)) for at in range(4)]
        assert all(low < high for low, high in pairwise(means))


@pytest.mark.slow
def test_the_example_opens_with_its_own_story(browser, archive, tmp_path):
    assert command(["report", str(archive), "-o", str(tmp_path / "example.html")]) == 0
    with shown(browser, tmp_path / "example.html", size=SCREEN) as page:
        sentences = [link.inner_text() for link in page.locator("#story-sentences a").all()]
        assert len(sentences) == 2
        assert "ceph-b" in sentences[0] and "stall" in sentences[0] and "ceph-c" in sentences[1] and "throttled" in sentences[1]
        assert box(page, "#hosts canvas")["y"] + box(page, "#hosts canvas")["height"] <= 800
        mark = page.locator(".plot:has(#heatmap) .event.rank1")
        assert mark.inner_text() == "slowest 4.01 s"
        for host, marks in (("ceph-a", 0), ("ceph-b", 1), ("", 1)):  # what happened to one host is not in the map of another
            page.locator("select[name=host]").select_option(host)
            settle(page)
            assert mark.count() == marks
        page.locator("#story-sentences a").first.click()
        settle(page)
        assert page.evaluate("tailboard.state.highlight") == "host=ceph-b"
        low, high = page.evaluate("tailboard.views.hosts.signal('range')")
        assert low <= ZERO / 1e6 + 30_000 and high >= ZERO / 1e6 + 33_000


def of_two(worst: str) -> list:
    """Two runs in the order of their names, of which one has the worse finding; the other's makes more of its own excess."""
    rows = [(series("read", "a", run=run), at, {900: 40}) for run in ("quiet", "zealous") for at in range(20)]
    stories = [
        {
            **STORY,
            "findings": [{**STORY["findings"][0], "text": f"in {run}", "tail": "", "excess_ns": 9e9 if run == worst else 1e9}],
        }
        for run in ("quiet", "zealous")
    ]
    return [replace(run, story=told) for run, told in zip(Made(rows).overviews(), stories, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("worst", ["quiet", "zealous"])
def test_u4_a_report_of_several_runs_opens_on_the_run_of_the_worst_finding_and_stays_where_it_is(opened, worst: str) -> None:
    other = {"quiet": "zealous", "zealous": "quiet"}[worst]
    with opened(of_two(worst)) as page:
        assert page.locator("[name=run]").first.input_value() == worst
        assert page.locator("#story-sentences a").inner_text() == f"in {worst}"
        assert page.evaluate("location.hash") == ""
        renewed = parts_of(of_two(other)).filling["data"]  # as a server sends it, where the other run is the worst by now
        page.evaluate("async (data) => { await controls.renewed(data); }", renewed)
        settle(page)
        assert page.locator("[name=run]").first.input_value() == worst
        choose(page, "run", other)
        assert page.locator("#story-sentences a").inner_text() == f"in {other}"


def test_u4_a_report_of_quiet_runs_opens_on_the_first() -> None:
    quiet = [replace(run, story={**STORY, "findings": []}) for run in of_two("zealous")]
    assert opening(quiet).run == "quiet"
    assert opening([replace(run, story=None) for run in quiet]).run == "quiet"
    assert "in zealous" in parts_of(of_two("zealous")).swapped["story-sentences"]


@pytest.mark.slow
def test_u4_sentences_have_the_clock_of_the_axes_and_why_says_what_speaks_for_and_against_a_finding(opened, told) -> None:
    against = {**STORY, "findings": [{**STALL, "against": "its peers stalled, too"}, SLOW]}
    with opened([replace(run, story=against) for run in told]) as page:
        page.locator("#story-more summary").click()
        lines = page.locator("#story-reasons div").first.locator("dd").all_inner_texts()
        assert lines == [
            "consistent with: A device that stopped.",
            "against: its peers stalled, too",
            "see: tailboard percentiles x --host ceph-b",
        ]
        choose(page, "clock", "elapsed")
        for place in ("#story-sentences a", "#story-reasons dt"):
            assert page.locator(place).first.inner_text().startswith("ceph-b stalled from 30.0 s to 34.0 s: what waited")
    file = parts_of([replace(run, story=against) for run in told]).swapped["story-reasons"]  # for those without a script
    assert "<dd>consistent with: A device that stopped.</dd><dd>against: its peers stalled, too</dd><dd>see: <code>" in file


# Where the frames of a picture lie and how large they are, in shares of its canvas; all in one go, so that nothing is drawn anew.
FRAMED = """(width) => { document.querySelector("main").style.width = width;
  const of = (name) => { const canvas = document.querySelector(`#${name} canvas`).getBoundingClientRect();
    return [...document.querySelectorAll(`.plot:has(#${name}) .event`)].map((event) => { const { left, top, right, bottom } = event.getBoundingClientRect();
      return [left - canvas.left, right - canvas.left, top - canvas.top, bottom - canvas.top].map((px, at) => px / (at < 2 ? canvas.width : canvas.height)); }); };
  const legend = document.querySelector(".plot:has(#percentiles) .legend").getBoundingClientRect();
  const found = [...of("heatmap"), ...of("hosts"), document.querySelector("#heatmap canvas").getBoundingClientRect().width, legend.right - document.querySelector("main").getBoundingClientRect().right];
  document.querySelector("main").style.width = "";
  return found; }"""


@pytest.mark.slow
def test_on_paper_that_is_narrower_frames_stay_where_they_are_in_the_pictures(opened, told):
    with opened(told, by=("host",), size=SCREEN) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        settle(page)
        *wide, drawn_for, _ = page.evaluate(FRAMED, "")
        *narrow, printed, legend = page.evaluate(FRAMED, "700px")
        assert len(wide) == 3 and printed < 0.6 * drawn_for and legend <= 0
        for one, other in zip(wide, narrow, strict=True):
            assert other == pytest.approx(one, abs=0.008)  # borders stay as wide as they are
        assert "Drawing" not in page.locator("main").inner_text()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
