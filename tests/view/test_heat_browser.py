"""The latency heat map in a real Chromium: each cell is what the query layer counts, on both axes, dropped, zoomed and highlighted;
what is clicked tells who made it; nothing is never shaded like one sample."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ingest.cli import run as command
from ingest.core.labels import failed_kind
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.heatmap import heatmap
from ingest.query.overview import overviews
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from tests.browsing import shown
from tests.doubles.origin import NS, SECOND, ZERO, Made, random_rows, series
from tests.oracles.heat import running, spread
from tests.view.page import cells_of, choose, drawn_cells, highlight, hovered, items_of, place, rows_of, settle, until

VIEWS = {
    "log": {},
    "dropped": {"drop": "1"},
    "zoomed": {"least": "2", "most": "20"},
    "zoomed to bins": {"least": "2", "most": "4"},
    "linear": {"axis": "linear"},
    "linear, zoomed": {"axis": "linear", "least": "1", "most": "60"},
    "linear, zoomed to bins": {"axis": "linear", "least": "2", "most": "2.2"},
}
FIRST = ("log", "dropped", "linear, zoomed to bins")
FIRST_VIEWS = [pytest.param(view, marks=() if view in FIRST else pytest.mark.soak) for view in VIEWS]


@pytest.fixture(scope="module")
def files(archive) -> Files:
    return Files([archive])


@pytest.fixture(scope="module")
def example(files) -> list:
    return overviews(files, files.run_names, Question())


def address(words: dict[str, str]) -> str:
    return "#" + "&".join(f"{name}={value}" for name, value in words.items())


def windows_of(answer) -> dict[float, list[tuple[int, int, int]]]:
    """What the query layer counts: (lower, upper, count) of the bins of each window, in ms since 1970."""
    table = heatmap(answer).columns
    out: dict[float, list[tuple[int, int, int]]] = {}
    for start, *cell in zip(*(table[name].tolist() for name in ("start_ns", "lower", "upper", "count")), strict=True):
        out.setdefault(start / 1e6, []).append(tuple(cell))
    return out


def compare(cells: list[dict], answer, field: str = "c") -> float:
    """Hold every cell against the counted bins; return the samples in all of them."""
    windows = {start: (running(bins), sum(count for *_, count in bins)) for start, bins in windows_of(answer).items()}
    nothing = (running([]), 0)
    for cell in cells:
        below, samples = windows.get(cell["t"], nothing)
        top = 1 << 62 if cell["over"] or cell["open"] else cell["upper"]
        assert cell[field] == pytest.approx(float(below(Fraction(top)) - below(Fraction(cell["lower"]))), abs=1e-6)
        if field == "c":
            assert cell["n"] == samples
            assert cell["cum"] == pytest.approx(float(below(Fraction(top))))
    return sum(cell[field] for cell in cells)


def step_of(cells: list[dict]) -> int:
    (width,) = {cell["t2"] - cell["t"] for cell in cells}
    return int(width) * 1_000_000


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("view", FIRST_VIEWS)
def test_every_cell_is_what_the_query_layer_counts(opened, example, files, view):
    with opened(example, fragment=address(VIEWS[view])) as page:
        cells = cells_of(page)
        answer = files.answer(Question(step=step_of(cells)))
        inside = compare(cells, answer)
        told = page.locator("#heatmap-says").inner_text()
        items = drawn_cells(page) + drawn_cells(page, over=True)
        assert len(items) == len(cells) > 40
        low, high = page.evaluate("tailboard.views.heatmap.signal('yd')")
        assert all(low <= cell["upper"] and cell["lower"] <= high for cell in cells if not cell["over"])
        if "zoomed" in view:
            rest = answer.samples - inside
            words = [float(word.replace(",", "")) for word in told.split("Samples not shown: ")[1].split() if word[0].isdigit()]
            assert sum(words) == pytest.approx(rest, abs=0.2)
        else:
            assert inside == pytest.approx(answer.samples)
        if "to bins" in view:
            bins = {(lower, upper) for window in windows_of(answer).values() for lower, upper, _ in window}
            assert {(cell["lower"], cell["upper"]) for cell in cells} <= bins
        if view == "dropped":
            above = sum(cell["c"] for cell in cells if cell["over"])
            assert 0 < above <= answer.samples / 100
            assert f"{above:,} samples lie above the map" in told
            assert page.evaluate("tailboard.views.heatmap.signal('dropped')") == f"{above:,} above"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "chosen"),
    [
        ("linear, zoomed", "host=ceph-b"),
        pytest.param("log", "op=write", marks=pytest.mark.soak),
        *(pytest.param(view, "host=ceph-b", marks=pytest.mark.soak) for view in VIEWS if view != "linear, zoomed"),
    ],
)
def test_what_is_highlighted_is_what_a_filter_counts(opened, example, files, view, chosen):
    name, value = chosen.split("=")
    with opened(example, fragment=address({**VIEWS[view], "highlight": chosen.replace("=", "%3D")})) as page:
        cells = cells_of(page)
        compare(cells, files.answer(Question(step=step_of(cells))))
        lit = compare(cells, files.answer(Question(where={name: value}, step=step_of(cells))), "lit")
        assert f"{name} {value}: {round(lit, 1):,.10g} of " in page.locator("#heatmap-says").inner_text()
        for item in drawn_cells(page):
            (lit,), count = item["datum"]["lit"], item["datum"]["c"]
            red, _, blue = channels(item["fill"])
            assert 0 < lit < count or (red > blue) == (lit == count)


def channels(fill: str) -> list[float]:
    return [float(part) for part in fill[4:-1].split(",")]


@pytest.mark.soak
def test_a_highlighted_thread_in_windows_that_both_levels_have(opened):
    rows = random_rows(5, windows=1000, hosts=2, threads=2)
    origin = Made(rows)
    with opened(origin.overviews(), fragment=address({"highlight": "host%3Dh1"})) as page:
        for setting in ({"from": "100", "to": "163"}, {"from": "", "to": ""}, {"highlight": "thread=h1 job 0"}):
            for name, value in setting.items():
                if name == "highlight":
                    page.locator(".chip").click()
                    highlight(page, value)
                else:
                    choose(page, name, value)
            cells = cells_of(page)
            step = step_of(cells)
            where = {"host": "h1", "job": "0"} if "highlight" in setting else {"host": "h1"}
            compare(cells, origin.answer(Question(step=step)))
            lit = compare(cells, origin.answer(Question(where=where, step=step)), "lit")
            assert lit > 0


@pytest.mark.slow
def test_unlike_layouts_are_highlighted_in_their_common_one(opened):
    from ingest.core.layout import fio_layout

    layouts = {"read": NS, "write": replace(NS, coarseness=3), "trim": fio_layout(29, 1, 1)}
    rows = [
        (series(op), at, {place: 3 + at, place + 9: 2})
        for at in range(6)
        for op, place in (("read", 1100), ("write", 137), ("trim", 550))
    ]
    origin = Made(rows, layout=layouts)
    with opened(origin.overviews(), fragment=address({"highlight": "op%3Dread"})) as page:
        cells = cells_of(page)
        assert sum(cell["c"] for cell in cells) == origin.answer(Question(step=SECOND)).samples
        assert sum(cell["lit"] for cell in cells) == sum(sum(bins.values()) for one, _, bins in rows if one.op == "read")
        assert all(cell["lit"] <= cell["c"] for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_nothing_is_never_shaded_like_one_sample(opened, scheme):
    """On the pixels, at every shading: a cell of one beside one of a million, and the empty one beside both."""
    rows = [(series(), at, {900: 1_000_000, **({1000: 1} if at != 5 else {})}) for at in range(10)]
    with opened(Made(rows).overviews(), scheme=scheme) as page:
        panel = channels(page.evaluate("getComputedStyle(document.querySelector('.panel')).backgroundColor"))
        for shading in ("rank", "linear", "exponent"):
            for palette in ("single", "false"):
                choose(page, "shading", shading)
                choose(page, "palette", palette)
                ones = [item for item in drawn_cells(page) if item["datum"]["c"] == 1]
                assert len(ones) == 9
                one, empty = pixels(page, [ZERO / 1e6 + 4500, ZERO / 1e6 + 5500], (ones[0]["y"] + ones[0]["y2"]) / 2)
                assert empty[3] == 0
                assert one[3] == 255
                assert max(abs(a - b) for a, b in zip(one, panel, strict=False)) > 25


def pixels(page, times: list[float], y: float) -> list[list[int]]:
    """The colours of the map at two times: red, green, blue, opacity. A copy is read, as reading the canvas itself is warned of."""
    return page.evaluate(
        """([times, y]) => { const view = tailboard.views.heatmap, [left, top] = view.origin(), { left: pad, top: above } = view.padding();
        const canvas = document.querySelector('#heatmap canvas'), copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        return times.map((t) => [...copy.getImageData(pad + left + view.scale('x')(t), y + above + top, 1, 1).data]); }""",
        [times, y],
    )


def ordered(page) -> list[dict]:
    return sorted(cells_of(page), key=lambda cell: (cell["t"], cell["lower"]))


@pytest.mark.slow
def test_a_drag_on_the_latency_axis_makes_finer_rows(opened, example, files):
    with opened(example) as page:
        before = ordered(page)
        x, _ = place(page, "heatmap", example[0].span[0] / 1e6)
        low, high = (page.evaluate(f"tailboard.views.heatmap.scale('y')({value})") for value in (2e6, 20e6))
        _, top = place(page, "heatmap", example[0].span[0] / 1e6, 0)
        page.mouse.move(x - 40, top + low)
        page.mouse.down()
        page.mouse.move(x - 40, top + (low + high) / 2, steps=3)
        page.mouse.move(x - 40, top + high)
        page.mouse.up()
        settle(page)
        least, most = (float(page.locator(f"[name={name}]").input_value()) for name in ("least", "most"))
        assert least == pytest.approx(2, rel=0.05)
        assert most == pytest.approx(20, rel=0.05)
        assert f"least={least:g}" in page.evaluate("location.hash")
        cells = cells_of(page)
        compare(cells, files.answer(Question(step=step_of(cells))))
        tall = [min(cell["upper"] / cell["lower"] for cell in found if cell["lower"] > 2.5e6) for found in (before, cells)]
        assert tall[1] < 1.02
        assert tall[0] > 1.05
        page.keyboard.press("Escape")
        settle(page)
        assert ordered(page) == before
        choose(page, "least", "900")
        choose(page, "most", "0.1")
        assert ordered(page) == before


@pytest.mark.slow
def test_a_range_without_samples_says_so(opened, example):
    with opened(example, fragment="#least=900000") as page:
        assert cells_of(page) == []
        assert "Samples not shown: 59,015 below the range of latency" in page.locator("#heatmap-says").inner_text()


def click(page, item) -> list[str]:
    x, y = place(page, "heatmap", (item["datum"]["t"] + item["datum"]["t2"]) / 2, 0)
    page.mouse.click(x, y + (item["y"] + item["y2"]) / 2)
    settle(page)
    return [span.inner_text() for span in page.locator("#cell span").all()]


def parts_of(text: str) -> dict[str, float]:
    """The counts of "By host: a 4 (25 %), b 12 (75 %)."."""
    return {
        part.rsplit(" ", 3)[0]: float(part.rsplit(" ", 3)[1].replace(",", ""))
        for part in text.split(": ", 1)[1].rstrip(". ").split("), ")
    }


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["log", pytest.param("linear", marks=pytest.mark.soak)])
def test_a_clicked_cell_is_split_by_host_thread_and_operation(opened, example, files, axis):
    with opened(example, fragment=f"#axis={axis}") as page:
        items = sorted(drawn_cells(page), key=lambda item: -item["datum"]["c"])
        for item in (items[0], items[len(items) // 3], items[-1]):
            cell = item["datum"]
            told = click(page, item)
            assert [text.split(":")[0] for text in told[1:]] == ["By host", "By thread", "By op"]
            for text, by in zip(told[1:], (("host",), ("host", "volume", "job"), ("op",)), strict=True):
                expected = {}
                for name, windows in by_labels(files, by, step_of([cell])).items():
                    (count,) = spread(windows.get(cell["t"], []), [Fraction(cell["lower"]), Fraction(cell["upper"])])
                    if count:
                        expected[name] = float(count)
                found = parts_of(text.split(" and ")[0])
                assert len(found) == min(6, len(expected))
                assert {name: expected[name] for name in found} == pytest.approx(found, abs=1e-3)  # as it is written
                assert sum(expected.values()) == pytest.approx(cell["c"])


def by_labels(files, by, step) -> dict:
    """The bins of each window, by what a line of the page is called."""
    found = files.answer(Question(by=by, step=step))
    table, out = heatmap(found).columns, {}
    form = "{} vol {} job {}" if len(by) > 1 else "{}"
    for at in range(len(table["count"])):
        name = form.format(*(table[label][at] for label in by))
        out.setdefault(name, {}).setdefault(table["start_ns"][at] / 1e6, []).append(
            tuple(int(table[one][at]) for one in ("lower", "upper", "count"))
        )
    return out


@pytest.mark.slow
def test_a_split_in_wider_windows_than_the_cell_says_so(opened):
    origin = Made(random_rows(6, windows=700, hosts=2, threads=1))
    with opened(origin.overviews(), fragment="#from=100&to=150") as page:
        item = next(item for item in drawn_cells(page) if item["datum"]["c"] > 3)
        assert item["datum"]["t2"] - item["datum"]["t"] == 1000
        told = click(page, item)
        assert "By host, of " in told[1] and "the finest that the page holds: " in told[1]
        cell, start = item["datum"], item["datum"]["t"] // 2000 * 2000
        windows = windows_of(origin.answer(Question(where={"host": "h0"}, step=2 * SECOND)))
        (count,) = spread(windows.get(start, []), [Fraction(cell["lower"]), Fraction(cell["upper"])])
        counts = {
            part.split(" ")[0]: int(part.split(" ")[1].replace(",", "")) for part in told[1].split("holds: ")[1].split("), ")
        }
        assert counts.get("h0", 0) == count


@pytest.mark.slow
def test_hosts_without_bins_are_told_as_the_rest(opened):
    rows = [(series(host=f"h{host:02}"), at, {900 + host: 10, 700: 5}) for host in range(20) for at in range(4)]
    with opened(Made(rows).overviews()) as page:
        item = next(item for item in drawn_cells(page) if item["datum"]["lower"] <= NS.edges[700] < item["datum"]["upper"])
        told = click(page, item)
        assert "those that the page has no bins of 20 (20 %)" in told[1]
        assert "The page holds no bins of threads." in told[-1]
        assert page.locator("#lit-add option").count() == 17
        highlight(page, page.locator("#lit-add option").nth(-1).get_attribute("value"))
        cells = cells_of(page)
        assert sum(cell["c"] for cell in cells) == 20 * 4 * 15
        assert sum(cell["lit"] for cell in cells) == 4 * 15


FAILED_VIEWS = (
    {},
    {"host": "h1"},
    {"host": "h9"},
    {"op": "read"},
    {"host": "h0", "op": "write", "from": "7", "to": "23"},
    {"highlight": "host%3Dh1"},
)


@pytest.mark.slow
def test_a_row_above_the_map_has_the_share_of_failures_that_the_query_layer_counts(opened):
    """One host fails for a while, another one does nothing else, and in the last seconds nothing is done at all."""
    failed = failed_kind("completion")
    rows = [
        *random_rows(7, windows=30, hosts=2),
        *((series("read", "h1", "0", kind=failed), at, {700: 1 + at, 1400: 2}) for at in range(5, 20)),
        *((series("write", "h0", "1", kind=failed), at, {900: 3}) for at in range(9, 40, 3)),
        *((series("read", "h9", "0", kind=failed), at, {900: 4}) for at in range(30, 35)),
    ]
    origin = Made(rows)
    for view in FAILED_VIEWS:
        with opened(origin.overviews(), fragment=address(view)) as page:
            shown = rows_of(page, "heatmap", "failures")
            question = Question(where={name: view[name] for name in ("host", "op") if name in view}, step=step_of(shown))
            table = percentiles(origin.answer(question), Wanted(parse_percentiles("50"))).columns
            counted = zip(*(table[name].tolist() for name in ("start_ns", "failed", "count")), strict=True)
            first, end = (ZERO + int(view.get(name, none)) * SECOND for name, none in (("from", "0"), ("to", "40")))
            expected = {start // 1_000_000: (some, n) for start, some, n in counted if some and first <= start < end}
            assert {row["t"]: (row["failed"], row["n"]) for row in shown} == expected
            some, n = (
                sum(row["failed"] for row in shown),
                sum(n for start, n in zip(table["start_ns"], table["count"], strict=True) if first <= start < end),
            )
            assert (
                f"{some:,} of {n:,} operations failed ({float(f'{100 * some / n:.4g}'):g} %)"
                in page.locator("#heatmap-says").inner_text()
            )
            items = items_of(page, "heatmap", "failed")
            assert all(item["fill"] and -24 == item["y"] < item["y2"] <= -14 for item in items) and len(items) == len(expected)
            assert "operations failed (" in hovered(page, "heatmap", "failed")
            assert [row["t"] for row in page.evaluate("panels.map.rows()") if row["lower"] == "inf"] == [
                row["t"] for row in shown
            ]


@pytest.mark.slow
def test_a_run_without_failures_has_no_row_of_them(opened):
    with opened(Made(random_rows(7, windows=30, hosts=2)).overviews()) as page:
        assert rows_of(page, "heatmap", "failures") == []
        assert "failed" not in page.locator("#heatmap-says").inner_text()


@pytest.mark.slow
def test_of_a_host_without_bins_no_share_is_told(opened):
    rows = [(series(host=f"h{host:02}"), at, {900 + host: 10}) for host in range(20) for at in range(4)]
    rows += [(series(host=f"h{host:02}", kind=failed_kind("completion")), at, {700: 2}) for host in range(20) for at in range(2)]
    with opened(Made(rows).overviews()) as page:
        assert "80 of 880 operations failed (9.091 %)" in page.locator("#heatmap-says").inner_text()
        for host, told in (
            ("h00", "4 of 44 operations failed (9.091 %)"),
            ("h19", "4 operations failed, of how many the page does not hold"),
        ):
            choose(page, "host", host)
            assert told in page.locator("#heatmap-says").inner_text()


@pytest.mark.slow
def test_what_is_under_the_pointer_is_lit_in_the_map_as_long_as_it_is(browser, archive, tmp_path) -> None:
    path = tmp_path / "report.html"
    assert command(["report", str(archive), "-o", str(path)]) == 0
    lit = "tailboard.heat.map.lit.map(({ counts, dropped }) => [...counts, ...dropped].reduce((sum, n) => sum + n, 0))"
    with shown(browser, path, "#box=26,36,1000,", size={"width": 1280, "height": 900}) as page:
        held = {}
        for host in ("ceph-a", "ceph-b", "ceph-c"):
            page.mouse.move(*place(page, "hosts", ZERO / 1e6 + 9_000, row_of(page, host)))
            until(page, "tailboard.heat.map.lit.length === 1")
            (held[host],) = page.evaluate(lit)
            assert f"host {host}: " in page.locator("#heatmap-says").inner_text()
            page.mouse.move(2, 2)
            until(page, "tailboard.heat.map.lit.length === 0")
        levels = page.evaluate("tailboard.content.runs[0].levels.hosts.keys.map(({ host }) => host)")
        assert set(levels) == set(held) and len(set(held.values())) == 3
        assert sum(held.values()) == page.evaluate("tailboard.heat.map.counts.reduce((sum, n) => sum + n, 0)")
        for selector in ("#box tr[data-lit='host=ceph-b'] td", ".plot:has(#percentiles) .legend button[data-series='ceph-b']"):
            page.locator(selector).first.hover()
            until(page, "tailboard.heat.map.lit.length === 1")
            assert page.evaluate(lit) == [held["ceph-b"]]
            page.mouse.move(2, 2)
            until(page, "tailboard.heat.map.lit.length === 0")
        assert page.locator("#lit").is_hidden() and "highlight" not in page.evaluate("location.hash")


def row_of(page, host: str) -> float:
    """Return at which share of the height of the hosts a host's row is."""
    rows = [row["row"] for row in rows_of(page, "hosts", "rows")]
    return (rows.index(host) + 0.5) / len(rows)
