"""The heat map's picture in a real Chromium: its pixels are the counts of the query layer under any zoom, its legend is that of a
fresh load after every control, its shades are ranks among unlike counts; and what the pointer and the keys do on it."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ingest.query.files import Files
from ingest.query.heatmap import heatmap
from ingest.query.overview import overviews
from ingest.query.question import Question
from tests.doubles.origin import NS, ZERO, Made, random_rows, series
from tests.effort import figure
from tests.view.page import cells_of, choose, drawn_cells, highlight, place, settle

# How the legend stands in Vega's own scene graph: the title, and the text of each label with its place.
LEGEND = """() => { const out = [], walk = (item) => { if (item.text !== undefined && item.mark?.role?.startsWith('legend')) out.push(item);
  for (const each of item.items ?? []) walk(each); }; walk(tailboard.views.heatmap.scenegraph().root);
  const place = ({ mark, datum }) => (mark.role === 'legend-title' ? -1 : datum.value); return out.sort((a, b) => place(a) - place(b)).map(({ text }) => String(text)); }"""
# The colour at some places of the plot, read from a copy of what the browser shows, and those of the legend's table of colours.
PIXELS = """(places) => { const view = tailboard.views.heatmap, [left, top] = view.origin(), { left: pad, top: above } = view.padding();
  const canvas = document.querySelector('#heatmap canvas'), copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return places.map(([t, v]) => [...copy.getImageData(pad + left + Math.floor(view.scale('x')(t)), above + top + Math.floor(view.scale('y')(v)), 1, 1).data]); }"""
BARE = "async () => { await tailboard.views.heatmap.data('paths', []).data('averages', []).data('gaps', []).data('marks', []).signal('pointed', null).signal('box', null).signal('sla', 0).runAsync(); }"


@pytest.fixture(scope="module")
def example(archive) -> tuple[Files, list]:
    files = Files([archive])
    return files, overviews(files, files.run_names, Question())


def legend(page) -> list[str]:
    return page.evaluate(LEGEND)


def whole_numbers(texts: list[str]) -> bool:
    return all(text.replace(",", "").isdigit() or text[-1] in "kMG" for text in texts)


@pytest.mark.soak
def test_d1_the_legend_is_that_of_a_fresh_load_after_every_control(opened):
    origin = Made(random_rows(7, windows=30, hosts=3, threads=1, ops=("read", "write")))
    changes = [("op", "read"), ("host", "h1"), ("axis", "linear"), ("shading", "exponent"), ("drop", "1"), ("host", "")]
    changes = changes + [("axis", "log"), ("shading", "linear"), ("from", "10"), ("least", "1"), ("shading", "rank"), ("op", "")]
    with opened(origin.overviews()) as page:
        first, told = legend(page), []
        for name, value in changes:
            choose(page, name, value)
            counts = [cell["c"] for cell in cells_of(page)]
            told.append((page.evaluate("location.hash"), legend(page), min(counts), max(counts)))
    assert len({tuple(texts) for _, texts, *_ in told}) > 6
    assert all(whole_numbers(texts[1:]) for _, texts, *_ in told), told
    for address, texts, *_ in told[:: figure(4, 4, 1)] + told[-1:]:
        with opened(origin.overviews(), fragment=address) as page:
            assert legend(page) == texts, address
    assert first[1] == "1"
    for _, texts, least, most in told:
        if "share of its window" not in texts[0]:
            assert texts[1].replace(",", "") == str(least) and texts[-1].replace(",", "") == str(most)


@pytest.mark.slow
def test_d2_ranks_are_those_of_unlike_counts(opened):
    """Half of the cells alike and more are shaded in proportion, and it says so; less than half by rank, a step each."""
    counts = {720: 1, 784: 2, 848: 4, 912: 60}
    with opened(Made([(series(), at, counts) for at in range(8)]).overviews()) as page:
        fills = {item["datum"]["c"]: item["fill"] for item in drawn_cells(page)}
        assert legend(page)[1:] == ["1", "2", "4", "60"]
        assert "by rank of 4 counts" in legend(page)[0]
        assert len(set(fills.values())) == 4
        assert sorted({round(cell["shade"], 2) for cell in cells_of(page)}) == [0, 0.33, 0.67, 1]
    ties = [(series(), at, {720 + 7 * place: 1 for place in range(9)} | {900: 7 if at == 3 else 1}) for at in range(9)]
    with opened(Made(ties).overviews()) as page:
        title, *texts = legend(page)
        assert "in proportion: at least half of the cells hold 1" in title
        assert (texts[0], texts[-1]) == ("1", "7") and whole_numbers(texts) and len(texts) == len(set(texts)) > 2
        shades = {cell["c"]: cell["shade"] for cell in cells_of(page)}
        assert shades[1] < 0.2 and shades[7] == 1  # no navy slab


@pytest.mark.slow
def test_d7_the_outliers_of_the_linear_axis_come_back_on_the_log_one(opened):
    rows = [(series(), at, {900: 2000, **({1500: 1} if at == 4 else {})}) for at in range(8)]
    with opened(Made(rows).overviews()) as page:
        assert max(cell["upper"] for cell in cells_of(page)) > NS.edges[1500]
        choose(page, "axis", "linear")
        assert page.locator("[name=drop] option:checked").inner_text() == "automatic: 0.1 %"
        assert [cell["c"] for cell in cells_of(page) if cell["over"]] == [1]
        assert "1 samples lie above the map." in page.locator("#heatmap-says").inner_text()
        choose(page, "axis", "log")
        assert page.locator("[name=drop] option:checked").inner_text() == "automatic: none"
        assert page.evaluate("location.hash") == ""
        assert not [cell for cell in cells_of(page) if cell["over"]]
        choose(page, "drop", "0")
        choose(page, "axis", "linear")
        assert not [cell for cell in cells_of(page) if cell["over"]]  # what was chosen stays


def modes(rows: int = 24, samples: int = 40_000) -> list:
    """Windows of four smooth modes: lognormal, at 90 µs, 700 µs, 6 ms and 70 ms."""
    found = np.random.default_rng(3)
    out = []
    for at in range(rows):
        values = np.concatenate([found.lognormal(np.log(middle), 0.3, samples) for middle in (90e3, 700e3, 6e6, 70e6)])
        places, counts = np.unique(np.searchsorted(NS.edges, values, side="right") - 1, return_counts=True)
        out.append((series(), at, dict(zip(places.tolist(), counts.tolist(), strict=True))))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("shading", ["rank", pytest.param("exponent", marks=pytest.mark.slow)])
def test_d3_four_smooth_modes_are_four_ridges(opened, shading):
    """On the pixels: from below, the map darkens and fades four times, without a step at each power of two."""
    with opened(Made(modes()).overviews(), fragment=f"#shading={shading}", size={"width": 1200, "height": 1300}) as page:
        image = page.evaluate(
            """() => { const { image } = tailboard.heat, { data, width, height } = image.getContext('2d').getImageData(0, 0, image.width, image.height);
            return Array.from({ length: height }, (_, y) => { let sum = 0; for (let x = 0; x < width; x++) { const at = 4 * (y * width + x); sum += data[at + 3] ? 255 - (data[at] + data[at + 1] + data[at + 2]) / 3 : 0; }
              return sum / width; }); }"""
        )
        assert page.evaluate("tailboard.heat.map.rows") > 100
    dark = np.array(image)
    ridges, low, high, rising = 0, dark[0], dark[0], True
    for shade in dark:
        low, high = (min(low, shade), max(high, shade))
        if rising and shade < high - 25:
            ridges, low, rising = ridges + 1, shade, False
        elif not rising and shade > low + 25:
            high, rising = shade, True
    assert ridges == 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
def test_pixels_are_the_counts_of_the_query_layer_under_any_zoom(opened, example, seed):
    files, runs = example
    choice = random.Random(seed)
    shadings, palettes = ("rank", "linear", "exponent", "column"), ("single", "false")
    with opened(runs) as page:
        for _ in range(figure(2, 8, 40)):
            begin, wide = choice.uniform(0, 50), choice.uniform(3, 25)
            low, times = 10 ** choice.uniform(-2, 1), 10 ** choice.uniform(0.3, 2.5)
            axis, shading = choice.choice(("log", "linear")), choice.choice(shadings)
            zoom = f"#from={begin:.2f}&to={begin + wide:.2f}&least={low:.4g}&most={low * times:.4g}"
            page.evaluate(
                "(address) => { location.hash = address; }",
                f"{zoom}&axis={axis}&shading={shading}&palette={choice.choice(palettes)}",
            )
            page.wait_for_function("tailboard.state.from !== '' && location.hash.includes(`from=${tailboard.state.from}`)")
            settle(page)
            page.evaluate(BARE)
            compared(page, files, choice)


def compared(page, files, choice) -> None:
    """Hold cells of the drawn picture against bins: those with samples have the colour of their shade, others none."""
    shape = page.evaluate(
        "() => { const { map } = tailboard.heat; return { ...map, counts: [...map.counts], edges: [...map.edges], shade: [...tailboard.heat.shade] }; }"
    )
    step = round(shape["width"] * 1e6)
    table = heatmap(files.answer(Question(step=step))).columns
    windows: dict[int, Counter] = {}
    for start, lower, count in zip(*(table[name].tolist() for name in ("start_ns", "lower", "count")), strict=True):
        windows.setdefault(round((start / 1e6 - shape["begin"]) / shape["width"]), Counter())[lower] += count
    edges, rows = shape["edges"], shape["rows"]
    cells = [(column, row) for column in range(shape["columns"]) for row in range(rows)]
    asked = choice.sample(cells, min(300, len(cells)))
    for column, row in asked:
        wanted = sum(count for lower, count in windows.get(column, {}).items() if edges[row] <= lower < edges[row + 1])
        assert shape["counts"][column * rows + row] == wanted
    low, high = page.evaluate("tailboard.views.heatmap.signal('yd')")
    middles = [
        (shape["begin"] + (column + 0.5) * shape["width"], (max(edges[row], low) * min(edges[row + 1], high)) ** 0.5)
        for column, row in asked
    ]
    inside = page.evaluate("tailboard.views.heatmap.signal('range')")
    table = page.evaluate("[...shades.tableOf(tailboard.views.heatmap.signal('colors'))]")
    for (column, row), (t, v), pixel in zip(asked, middles, page.evaluate(PIXELS, middles), strict=True):
        if not inside[0] < t < inside[1]:
            continue
        shade = shape["shade"][column * (rows + 1) + row]
        assert (shade > 0) == (shape["counts"][column * rows + row] > 0)
        assert (pixel[3] == 255) == (shade > 0) or pixel[3] in (0, 255)
        if shade:
            assert pixel[:3] == table[3 * shade : 3 * shade + 3], (column, row, t, v)


def middle(page, cell: dict) -> tuple[float, float]:
    """Return where on the screen the middle of a cell is."""
    return at(page, (cell["t"] + cell["t2"]) / 2, (cell["lower"] * cell["upper"]) ** 0.5 or cell["upper"] / 2)


def at(page, t: float, v: float) -> tuple[float, float]:
    x, y = place(page, "heatmap", t, 0)
    return x, y + page.evaluate("(v) => tailboard.views.heatmap.scale('y')(v)", v)


def state(page) -> dict[str, str]:
    return page.evaluate("({ ...tailboard.state })")


def steady(page) -> None:
    """Wait until what a hand did is set."""
    page.wait_for_timeout(400)
    settle(page)


@pytest.mark.slow
def test_a_wheel_zooms_to_stored_bins_around_the_pointer_and_escape_shows_all(opened):
    rows = random_rows(11, windows=120, hosts=1)
    origin = Made(rows)
    with opened(origin.overviews()) as page:
        cells = cells_of(page)
        cell = max(cells, key=lambda one: one["c"])
        x, y = middle(page, cell)
        page.mouse.move(x, y)
        t, v = (cell["t"] + cell["t2"]) / 2, (cell["lower"] * cell["upper"]) ** 0.5
        for _ in range(24):
            page.mouse.wheel(0, -200)
        steady(page)
        (begin, end), (low, high) = (page.evaluate(f"tailboard.views.heatmap.signal('{name}')") for name in ("range", "yd"))
        assert begin <= t <= end and end - begin <= 5000
        assert low <= v <= high < 1.5 * low
        assert page.evaluate("tailboard.views.percentiles.signal('range')") == [begin, end]  # all panels follow
        assert f"from={state(page)['from']}" in page.evaluate("location.hash")
        edges = set(NS.edges.tolist())
        zoomed = cells_of(page)
        bins = [(one["lower"], one["upper"]) for one in zoomed]
        assert zoomed and all(NS.edges[np.searchsorted(NS.edges, lower) + 1] == upper and lower in edges for lower, upper in bins)
        page.keyboard.down("Shift")
        page.mouse.wheel(0, 300)
        page.keyboard.up("Shift")
        steady(page)
        wider = page.evaluate("tailboard.views.heatmap.signal('range')")
        assert wider[1] - wider[0] > end - begin
        assert page.evaluate("tailboard.views.heatmap.signal('yd')") == [low, high]
        page.keyboard.press("Escape")
        settle(page)
        assert page.evaluate("location.hash") == ""
        assert cells_of(page) == cells


@pytest.mark.slow
def test_keys_zoom_pan_and_make_a_box(opened):
    rows = [(series(), at, {place: 3 + at for place in range(800, 1200, 8)}) for at in range(40)]
    with opened(Made(rows).overviews()) as page:
        page.locator("#heatmap").focus()
        for key in ("ArrowRight", "ArrowDown", "ArrowDown", "b", "ArrowRight", "ArrowRight", "ArrowDown", "b"):
            page.keyboard.press(key)
        settle(page)
        cells = cells_of(page)
        rows_of_first = sorted({(cell["lower"], cell["upper"]) for cell in cells}, reverse=True)
        begin = page.evaluate("tailboard.content.runs[0].start")
        box = [float(part) for part in state(page)["box"].split(",")]
        first = (cells[0]["t"] - begin) / 1000
        assert box[:2] == [pytest.approx(first), pytest.approx(first + 3)]
        assert box[2:] == [pytest.approx(rows_of_first[3][0] / 1e6, rel=1e-4), pytest.approx(rows_of_first[2][1] / 1e6, rel=1e-4)]
        assert "box=" in page.evaluate("location.hash")
        address = page.evaluate("location.hash")
        for key in ("+", "+"):
            page.keyboard.press(key)
        steady(page)
        inner = page.evaluate("tailboard.views.heatmap.signal('range')")
        assert inner[1] - inner[0] < 40_000
        page.keyboard.press("Shift+ArrowRight")
        steady(page)
        moved = page.evaluate("tailboard.views.heatmap.signal('range')")
        assert moved[1] - moved[0] == inner[1] - inner[0] and moved[0] > inner[0]
        for _ in range(6):
            page.keyboard.press("-")
        steady(page)
        assert page.evaluate("location.hash") == address  # all of it again, and the box is still there
        page.keyboard.press("Escape")
        settle(page)
        assert state(page)["box"] == ""
    with opened(Made(rows).overviews(), fragment=address) as page:
        frame = page.evaluate("tailboard.views.heatmap.signal('box')")
        assert frame["t2"] - frame["t"] == pytest.approx(3000)


@pytest.mark.slow
def test_a_drag_on_the_map_makes_a_box_of_whole_cells_and_a_click_beside_it_clears_it(opened, example):
    _, runs = example
    with opened(runs) as page:
        cells = sorted(cells_of(page), key=lambda cell: (cell["t"], cell["lower"]))
        times = sorted({cell["t"] for cell in cells})
        one, other = (next(cell for cell in cells if cell["t"] == times[place] and cell["lower"] > 1e5) for place in (10, 20))
        one = {**one, "lower": 2e6, "upper": 2.2e6}
        page.mouse.move(*middle(page, one))
        page.mouse.down()
        page.mouse.move(*middle(page, other), steps=4)
        page.mouse.up()
        settle(page)
        begin = page.evaluate("tailboard.content.runs[0].start")
        first, last, low, high = (float(part) for part in state(page)["box"].split(","))
        assert (first, last) == (pytest.approx((times[10] - begin) / 1000), pytest.approx((times[20] - begin) / 1000 + 1))
        assert low == pytest.approx(other["lower"] / 1e6, rel=1e-4) and 2.2 <= high <= 2.7
        assert state(page)["from"] == ""  # it did not zoom
        page.mouse.click(*at(page, times[15] + 500, 1e6))
        assert state(page)["box"] != ""
        page.mouse.click(*at(page, times[30] + 500, 1e6))
        settle(page)
        assert state(page)["box"] == ""
        x, y = at(page, times[10] + 500, 1e5)
        top = place(page, "heatmap", times[30], 0)[1]
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 60, top - 30, steps=3)
        page.mouse.up()
        settle(page)
        assert state(page)["box"].endswith(",")  # open above


@pytest.mark.slow
def test_the_time_axis_of_the_map_zooms_time(opened, example):
    _, runs = example
    with opened(runs) as page:
        begin, end = page.evaluate("tailboard.views.heatmap.signal('range')")
        wide = end - begin
        x, y = place(page, "heatmap", begin + wide / 4, 1)
        page.mouse.move(x, y + 20)
        page.mouse.down()
        far, _ = place(page, "heatmap", begin + wide / 2, 1)
        page.mouse.move(far, y + 20, steps=4)
        page.mouse.up()
        settle(page)
        low, high = page.evaluate("tailboard.views.heatmap.signal('range')")
        assert low == pytest.approx(begin + wide / 4, abs=2000) and high == pytest.approx(begin + wide / 2, abs=2000)
        assert state(page)["box"] == ""


@pytest.mark.slow
def test_the_line_is_dragged_to_the_share_below_the_pointer(opened):
    bins = {720: 600, 848: 250, 976: 100, 1104: 50}
    with opened(Made([(series(), at, bins) for at in range(20)]).overviews()) as page:
        t = ZERO / 1e6 + 8_500
        page.mouse.move(*at(page, t, float(NS.values[1104])))
        page.mouse.down()
        page.mouse.move(*at(page, t, float(NS.values[976])), steps=3)
        page.mouse.move(*at(page, t, float(NS.edges[848] + 1000)), steps=3)
        page.mouse.up()
        steady(page)
        assert state(page)["p"] == "85"
        assert state(page)["box"] == ""
        assert {point["v"] for point in page.evaluate("tailboard.views.heatmap.data('points').map(({ v }) => ({ v }))")} == {
            int(NS.values[848])
        }


@pytest.mark.slow
def test_several_highlights_have_a_hue_each(opened):
    rows = [(series(host=f"h{host}"), at, {800 + 128 * host: 20, 1300: 1}) for host in range(3) for at in range(10)]
    with opened(Made(rows).overviews()) as page:
        for host in ("h0", "h2"):
            highlight(page, f"host={host}")
        assert state(page)["highlight"] == "host=h0,host=h2"
        assert [chip.inner_text() for chip in page.locator(".chip").all()] == ["host h0 ×", "host h2 ×"]
        fills = {}
        for item in drawn_cells(page):
            fills.setdefault(tuple(item["datum"]["lit"]), set()).add(item["fill"])
        assert set(fills) == {(20, 0), (0, 0), (0, 20), (1, 1)}
        assert len({fill for found in fills.values() for fill in found}) == 4
        red, yellow = ([float(part) for part in next(iter(fills[key]))[4:-1].split(",")] for key in ((20, 0), (0, 20)))
        assert red[0] > 1.5 * red[1] and yellow[0] > yellow[1] > 1.5 * yellow[2]  # red, and amber
        says = page.locator("#heatmap-says").inner_text()
        assert "host h0: 210 of 630 samples" in says and "host h2: 210 of 630 samples" in says
        page.locator(".chip").first.click()
        settle(page)
        assert state(page)["highlight"] == "host=h2"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_every_palette_of_the_map_is_monotonic_in_lightness(opened, scheme):
    with opened(Made([(series(host=f"h{host}"), 0, {900: 1}) for host in range(2)]).overviews(), scheme=scheme) as page:
        palettes = page.evaluate(
            "(() => { const { colors } = themeOf(document.documentElement); return [colors.ramp, colors.rainbow, ...colors.hues.map((hue) => shades.rampOf(hue, colors))].map(shades.tableOf).map((table) => [...table].slice(3)); })()"
        )
    for palette in palettes:
        rgb = np.array(palette).reshape(-1, 3) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
        steps = np.diff(linear)
        assert (steps < 2e-3).all() if scheme == "light" else (steps > -2e-3).all()
        assert abs(linear[0] - linear[-1]) > 0.1
