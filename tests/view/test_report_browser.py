"""The report in a real Chromium: what it draws is what the queries answer, exactly; every control is used; nothing is asked
of the network, nothing is printed to the console."""

from __future__ import annotations

import shutil
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.errors import shown as as_shown
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.files import Files
from ingest.query.overview import CLUSTER_WINDOWS, overviews, worst_windows
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from oracles.shades import by_rank
from tests.browsing import shown
from tests.doubles.origin import NS, SECOND, ZERO, Made, random_rows, series
from tests.view.page import (
    HOSTILE,
    answered,
    cells_of,
    choose,
    drag,
    drawn,
    drawn_cells,
    hovered,
    items_of,
    keyed,
    levels_of,
    place,
    rows_of,
    settle,
)

DATA = Path(__file__).parents[1] / "data"

PANELS = ("percentiles", "hosts", "heatmap", "threads", "rate", "surface", "distribution")


@pytest.fixture(scope="module")
def files(archive) -> Files:
    return Files([archive])


@pytest.fixture(scope="module")
def example(files) -> list:
    return overviews(files, files.run_names, Question())


@pytest.mark.slow
def test_lines_are_what_the_query_answers(opened, example, files):
    answers = {by: files.answer(Question(by=(by,) if by else (), step=SECOND)) for by in ("op", "host", "")}
    together = files.answer(Question(step=SECOND))
    with opened(example) as page:
        for by, answer in answers.items():
            choose(page, "by", by)
            for percentile in ("99", "50", "99.9", "98.37"):
                choose(page, "p", percentile)
                assert drawn(page) == answered(answer, percentile), (by, percentile)
                assert drawn(page, "heatmap") == answered(together, percentile), (by, percentile)
        choose(page, "by", "host")
        whole = {label: v for label, v in ((row["label"], row["v"]) for row in rows_of(page, "percentiles", "whole"))}
        asked = percentiles(files.answer(Question(by=("host",), step="all")), Wanted(parse_percentiles("98.37")))
        assert whole == {host: int(v) for host, v in zip(asked.columns["host"], asked.columns["p98.37"], strict=True)}
        for button, percentile in (("50", "50"), ("99.99", "99.99"), ("max", "100")):
            page.get_by_role("button", name=button, exact=True).click()
            settle(page)
            assert drawn(page) == answered(answers["host"], percentile)
        choose(page, "also", "50")
        choose(page, "also", "95")
        same = answers["host"]
        assert drawn(page) == answered(same, "100", " ") | answered(same, "50", " ") | answered(same, "95", " ")
        choose(page, "also", "50")
        assert {label.split()[1] for _, label in drawn(page)} == {"p100", "p95"}


@pytest.mark.slow
def test_threads_are_what_the_query_answers(opened, example, files):
    with opened(example) as page:
        choose(page, "by", "thread")
        choose(page, "p", "90")
        answer = files.answer(Question(by=("host", "volume", "job"), step=SECOND))
        expected = {(t, "{} vol {} job {}".format(*label.split("|"))): v for (t, label), v in answered(answer, "90").items()}
        assert drawn(page) == expected


@pytest.mark.slow
def test_every_mark_is_where_its_number_is(opened, example):
    with opened(example, by=("host",)) as page:
        begin, end, (low, high) = page.evaluate("['begin', 'end', 'yd'].map((name) => tailboard.views.percentiles.signal(name))")
        main, height = page.evaluate("[tailboard.views.percentiles.signal('main'), tailboard.views.percentiles.signal('height')]")
        steps, rows = levels_of(page, "percentiles"), rows_of(page, "percentiles")
        assert len(steps) == len(rows) > 200
        for item, row in zip(steps, rows, strict=True):
            assert item["label"] == row["label"]
            assert item["x"] == pytest.approx((row["t"] - begin) / (end - begin) * main, abs=0.01)
            assert item["x2"] == pytest.approx((row["t2"] - begin) / (end - begin) * main, abs=0.01)
            assert item["y"] == pytest.approx(height * (1 - np.log(row["v"] / low) / np.log(high / low)), abs=0.01)
        assert len({item["stroke"] for item in steps}) == 3
        cells = items_of(page, "hosts", "heat")
        (span,) = {item["datum"]["t2"] - item["datum"]["t"] for item in cells}
        assert span == 1000
        by_value = sorted((item["datum"]["v"], item["fill"]) for item in cells)
        assert len({fill for _, fill in by_value}) > 40
        heat = drawn_cells(page)
        assert sum(item["datum"]["c"] for item in heat) == example[0].cluster.samples
        height = page.evaluate("tailboard.views.heatmap.signal('height')")
        low, high = page.evaluate("tailboard.views.heatmap.signal('yd')")
        for item in heat[::7]:
            row = item["datum"]
            for place_, edge in ((item["y"], row["upper"]), (item["y2"], max(row["lower"], low))):
                assert place_ == pytest.approx(height * (1 - np.log(edge / low) / np.log(high / low)), abs=1)


@pytest.mark.slow
def test_ranks_are_exact_whatever_the_counts(opened):
    random = np.random.default_rng(20_261_120)
    sizes = [1, 2, 3, 10, 99, 100, 101, 999, 1000, 1001, 9999, 10_000, 10_001, 123_457, 9_999_999_937]
    rows = []
    for at, size in enumerate(sizes):
        for op in ("read", "write"):
            cuts = np.unique(random.integers(0, size + 1, 40))
            counts = np.diff([0, *cuts, size])
            places = 600 + np.sort(random.choice(900, len(counts), replace=False))
            rows.append((series(op), at * 2, {int(p): int(c) for p, c in zip(places, counts, strict=True) if c}))
    origin = Made(rows)
    answer = origin.answer(Question(by=("op",), step=SECOND))
    with opened(origin.overviews()) as page:
        for percentile in ("50", "90", "99", "99.9", "99.99", "50.01", "66.67", "58.07", "99.29", "97.49", "99.01", "83.33"):
            choose(page, "p", percentile)
            assert drawn(page) == answered(answer, percentile), percentile


@pytest.mark.slow
def test_weights_are_ranked_like_counts(opened):
    rows = [(series(op), at, {1000: 60, 1300: 30 + at, 1500: 11, 1640: 3}) for at in range(4) for op in ("read", "write")]
    origin = Made(rows)
    answer = origin.answer(Question(by=("op",), step=SECOND, attribution="in-flight"))
    with opened(origin.overviews(attribution="in-flight")) as page:
        for percentile in ("50", "90", "95.5", "99", "99.9"):
            choose(page, "p", percentile)
            assert drawn(page) == answered(answer, percentile), percentile
        assert sum(row["n"] for row in rows_of(page, "rate")) == sum(sum(bins.values()) for _, _, bins in rows)


@pytest.mark.slow
def test_filters_act_on_all_panels(opened, example, files):
    [(first, last)] = files.answer(Question(step=SECOND)).covered.values()
    with opened(example, by=("host",)) as page:
        for name, value in (("op", "write"), ("host", "ceph-b"), ("op", "")):
            choose(page, name, value)
            where = {label: page.locator(f"select[name={label}]").input_value() for label in ("op", "host")}
            where = {label: found for label, found in where.items() if found}
            answer = files.answer(Question(by=("host",), where=where, step=SECOND))
            assert drawn(page) == answered(answer, "99")
            assert sum(row["c"] for row in cells_of(page)) == answer.samples
            assert sum(row["n"] for row in rows_of(page, "rate")) == answer.samples
            assert {row["row"] for row in rows_of(page, "hosts", "rows")} == {
                key[0] for part in answer.parts for key in part.table
            }
            found = percentiles(answer, Wanted(())).columns
            rows = zip(found["start_ns"].tolist(), found["end_ns"].tolist(), found["host"], found["count"].tolist(), strict=True)
            expected = {
                (round(max(t, first) / 1e6), host): n * SECOND / (min(end, last) - max(t, first)) for t, end, host, n in rows
            }
            assert keyed(rows_of(page, "rate"), "t", "label") == pytest.approx(expected)


@pytest.mark.slow
def test_a_dragged_range_zooms_all_panels_and_stands_in_the_address(opened, example, files):
    begin = ZERO / 1e6
    with opened(example, by=("host",)) as page:
        drag(page, "hosts", begin + 27_600, begin + 40_200)
        low, high = page.evaluate("tailboard.views.hosts.signal('range')")
        assert abs(low - begin - 27_000) <= 1000 and abs(high - begin - 41_000) <= 1000
        asked = Question(by=("host",), step=SECOND, begin=Instant(int(low) * 1_000_000), end=Instant(int(high) * 1_000_000))
        answer = files.answer(asked)
        assert drawn(page) == {
            key: v
            for key, v in answered(files.answer(replace(asked, begin=None, end=None)), "99").items()
            if low <= key[0] < high
        }
        for view in PANELS[:-1]:
            assert page.evaluate(f"tailboard.views.{view}.signal('range')") == [low, high], view
        inside = [row for row in cells_of(page)]
        assert {row["t"] for row in inside} == set(np.arange(low, high, 1000))
        finer = {round(row["upper"] / row["lower"], 3) for row in inside}
        address = page.evaluate("location.hash")
        assert "from=" in address and "to=" in address
        state = page.evaluate("tailboard.state")
        assert answer.samples > 0
    with opened(example, by=("host",), fragment=address) as page:
        assert page.evaluate("tailboard.state") == state
        assert page.evaluate("tailboard.views.heatmap.signal('range')") == [low, high]
        page.get_by_role("button", name="Whole range").click()
        settle(page)
        assert page.evaluate("location.hash") == ""
        assert len({row["t"] for row in cells_of(page)}) == 76
        coarser = {round(row["upper"] / row["lower"], 3) for row in cells_of(page)}
        assert min(finer) <= min(coarser)
        choose(page, "from", "10")
        choose(page, "to", "20")
        low, high = page.evaluate("tailboard.views.rate.signal('range')")
        assert (low, high) == (begin + 10_000, begin + 21_000)
        page.keyboard.press("Escape")
        settle(page)
        assert page.evaluate("tailboard.state.from") == ""
        page.evaluate("location.hash = '#p=75&by=op&tail=50'")
        page.wait_for_function("tailboard.state.p === '75'")
        settle(page)
        assert drawn(page) == answered(files.answer(Question(by=("op",), step=SECOND)), "75")
        assert page.locator('[name=tail][value="50"]').is_checked()


@pytest.mark.slow
def test_zoom_makes_bins_anew_from_finer_windows(opened):
    origin = Made(random_rows(21, windows=700, hosts=2, threads=2, ops=("read",)))
    with opened(origin.overviews()) as page:
        whole = {row["t2"] - row["t"] for row in cells_of(page)}
        choose(page, "from", "100")
        choose(page, "to", "160")
        assert whole == {1000}  # as many windows as the page holds
        assert {row["t2"] - row["t"] for row in cells_of(page)} == {1000}
        expected = Counter()
        for _, at, bins in origin.rows:
            if 100 <= at < 160:
                expected[ZERO / 1e6 + at * 1000] += sum(bins.values())
        found = Counter()
        for row in cells_of(page):
            found[row["t"]] += row["c"]
        assert found == expected
        assert max(len(rows_of(page, view)) for view in PANELS) <= 20_000


@pytest.mark.slow
def test_heat_map_holds_every_sample(opened, fio):
    origin = Files([fio / "randrw"])
    runs = overviews(origin, origin.run_names, Question())
    with opened(runs) as page:
        assert sum(row["c"] for row in cells_of(page)) == origin.answer(Question()).samples
        for op in ("read", "write"):
            choose(page, "op", op)
            asked = origin.answer(Question(where={"op": op}, step=runs[0].cluster.step_ns))
            assert sum(row["c"] for row in cells_of(page)) == asked.samples


@pytest.mark.slow
def test_shading_is_rank_proportion_or_root(opened):
    origin = Made([(series(), 0, {720: 1, 784: 2, 848: 4, 912: 8})])
    with opened(origin.overviews()) as page:
        shades, fills = {}, {}
        for shading in ("rank", "linear", "exponent", "column"):
            choose(page, "shading", shading)
            shades[shading] = sorted((row["c"], row["shade"]) for row in cells_of(page))
            fills[shading] = {item["datum"]["c"]: item["fill"] for item in drawn_cells(page)}
        near = {"abs": 0.5 / 254}
        assert shades["rank"] == [(1, 0), (2, pytest.approx(1 / 3, **near)), (4, pytest.approx(2 / 3, **near)), (8, 1)]
        assert [shade for _, shade in shades["linear"]] == pytest.approx([0.125, 0.25, 0.5, 1], **near)
        assert [shade for _, shade in shades["exponent"]] == pytest.approx([0.125**0.5, 0.5, 0.5**0.5, 1], **near)
        assert [shade for _, shade in shades["column"]] == pytest.approx([0.125, 0.25, 0.5, 1], **near)
        assert len({shown[8] for shown in fills.values()}) == 1
        assert len({shown[1] for shown in fills.values()}) == 3
        choose(page, "palette", "false")
        assert {item["datum"]["c"]: item["fill"] for item in drawn_cells(page)}[8] == "rgb(61, 10, 82)"


@pytest.mark.slow
def test_outliers_go_to_a_row_of_their_own_and_are_counted(opened):
    rows = [(series(), at, {900: 980, 1000: 19, 1500: 1}) for at in range(10)]
    with opened(Made(rows).overviews()) as page:
        assert drawn_cells(page, over=True) == []
        choose(page, "drop", "1")
        above = drawn_cells(page, over=True)
        assert sum(item["datum"]["c"] for item in above) == 10
        assert {(item["y"], item["y2"]) for item in above} == {(-14, -4)}
        assert "10 samples lie above the map" in page.locator("#heatmap-says").inner_text()
        assert page.evaluate("tailboard.views.heatmap.signal('high')") < NS.edges[1500]
        choose(page, "drop", "auto")
        choose(page, "axis", "linear")
        cells = cells_of(page)
        assert sum(row["c"] for row in cells) == 10_000
        low, high = page.evaluate("tailboard.views.heatmap.signal('yd')")
        height = page.evaluate("tailboard.views.heatmap.signal('height')")
        for item in drawn_cells(page):
            assert item["y"] == pytest.approx(height * (1 - item["datum"]["upper"] / high), abs=1)


@pytest.mark.slow
def test_a_cell_tells_what_it_holds_and_its_hosts(opened):
    rows = [(series(host="a"), 0, {954: 3, 956: 1, 700: 6}), (series(host="b"), 0, {954: 12, 1500: 78})]
    with opened(Made(rows).overviews()) as page:
        cells = drawn_cells(page)
        (cell,) = [item for item in cells if item["datum"]["lower"] <= NS.edges[954] < item["datum"]["upper"]]
        assert (cell["datum"]["lower"], cell["datum"]["upper"], cell["datum"]["c"]) == (983_040, 1_048_576, 16)
        x, y = place(page, "heatmap", ZERO / 1e6 + 500, 0)
        page.mouse.click(x, y + (cell["y"] + cell["y2"]) / 2)
        settle(page)
        told = page.locator("#cell").inner_text()
        assert told.startswith(
            "21:00:04 – 21:00:05 UTC, 983 µs – 1.049 ms: 16 samples, 16 % of the window, 22 % up to here. By host: b 12 (75 %), a 4 (25 %)."
        )
        page.locator("#heatmap").focus()
        page.keyboard.press("ArrowUp")
        assert "By host: b 78 (100 %)" in page.locator("#cell").inner_text()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert "By host: a 6 (100 %)" in page.locator("#cell").inner_text()
        settle(page)
        page.mouse.move(x, y + (cell["y"] + cell["y2"]) / 2)
        tip = page.locator("#vg-tooltip-element.visible").inner_text()
        assert "UTC" in tip and "16" in tip


@pytest.mark.slow
def test_arrows_go_from_window_to_window(opened):
    with opened(Made([(series(), at, {900: 10 + at}) for at in range(3)]).overviews()) as page:
        page.locator("#heatmap").focus()
        texts = []
        for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
            texts.append(page.locator("#cell").inner_text().split(" samples")[0].split(": ")[1])
        assert texts == ["10", "11", "12", "11"]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["host", pytest.param("thread", marks=pytest.mark.soak)])
def test_tail_maps_are_what_the_query_answers(opened, example, files, scope):
    view = f"{scope}s"
    by = ("host",) if scope == "host" else ("host", "volume", "job")
    with opened(example) as page:
        for tail, name in (("99", "99"), ("50", "50"), ("100", "100")):
            choose(page, "tail", tail)
            if page.evaluate(f"tailboard.views.{view}.signal('what')") == "max":
                few = tail != "100"
                assert few == ("Most windows have too few samples" in page.locator(f"#{view}-says").inner_text())
                name = "100"
            cells = rows_of(page, view)
            (width,) = {row["t2"] - row["t"] for row in cells}
            answer = files.answer(Question(by=by, step=int(width) * 1_000_000))
            form = "{}" if scope == "host" else "{} vol {} job {}"
            expected = {(t, form.format(*label.split("|"))): v for (t, label), v in answered(answer, name).items()}
            assert keyed(cells, "t", "row") == expected
            thin = {(row["t"], row["row"]): row["v"] for row in rows_of(page, view, "thin")}
            highest = {(t, form.format(*label.split("|"))): v for (t, label), v in answered(answer, "100").items()}
            assert thin == {key: v for key, v in highest.items() if key not in expected}
            values = sorted((expected or thin).values())
            typical, above = values[len(values) // 2], dict.fromkeys((row for _, row in [*expected, *thin]), 0)
            for row in [*cells, *rows_of(page, view, "thin")]:
                above[row["row"]] += row["n"] * max(0, row["v"] - typical)
            assert [above[row["row"]] for row in rows_of(page, view, "rows")] == sorted(above.values(), reverse=True)


@pytest.mark.slow
def test_a_stall_is_grey_or_framed_in_the_row_of_its_host(opened, example):
    with opened(example, by=("host",)) as page:
        assert "Highest: 4.01 s, ceph-b, 21:00:38 – 21:00:39 UTC" in page.locator("#hosts-says").inner_text()
        assert "Highest: 4.01 s, ceph-b, 21:00:38 – 21:00:39 UTC" in page.locator("#percentiles-says").inner_text()
        assert [row["row"] for row in rows_of(page, "hosts", "rows")] == ["ceph-c", "ceph-b", "ceph-a"]


@pytest.mark.slow
def test_worst_windows_are_those_of_the_query_layer(opened, example, files):
    answer = files.answer(Question(by=("host",), step=SECOND))
    with opened(example, by=("host",)) as page:
        for percentile in ("99", "95"):
            choose(page, "p", percentile)
            choose(page, "clock", "elapsed")
            shown = [[cell.inner_text() for cell in line.locator("td").all()] for line in page.locator("#worst-rows tr").all()]
            wanted = worst_windows(answer, "host", parse_percentiles(percentile)[0], 8)
            for cells, one in zip(shown, wanted, strict=True):
                begin = (one.start_ns - answer.start_of) / 1e9
                assert cells[0] == f"{begin:.1f} – {begin + 1:.1f} s elapsed"
                assert cells[3] == f"{one.samples:,}"
                total = sum(above for _, above in one.makers)
                assert cells[5].split(", ")[0].rsplit(" ", 2)[0] == one.makers[0][0]
                assert abs(float(cells[5].split(", ")[0].split(" ")[-2]) - 100 * one.makers[0][1] / total) <= 0.5
                assert "vol" in cells[6]


@pytest.mark.slow
def test_surface_and_distribution_are_what_the_query_answers(opened, example, files):
    with opened(example, by=("host",)) as page:
        found = rows_of(page, "surface")
        (width,) = {row["t2"] - row["t"] for row in found}
        answer = files.answer(Question(step=int(width) * 1_000_000))
        for text in ("50", "95", "99", "99.5"):
            assert {(row["t"], row["row"]): row["v"] for row in found if row["row"] == f"p{text}"} == answered(answer, text)
        whole = files.answer(Question(by=("host",), step="all"))
        (part,) = whole.parts
        curve = rows_of(page, "distribution")
        for row, code in enumerate(part.series.tolist()):
            key = part.table[code]
            entries = slice(part.indptr[row], part.indptr[row + 1])
            cumulative = np.cumsum(part.counts[entries]).tolist()
            steps = dict(zip(cumulative, part.layout.values[part.bins[entries]].tolist(), strict=True))
            mine = [one for one in curve if one["label"] == key[0]]
            assert mine[0]["x"] == 1 and mine[-1]["cum"] == cumulative[-1]
            for one in mine[1:]:
                assert steps[one["cum"]] == one["v"]
                assert one["x"] == pytest.approx(cumulative[-1] / max(1, cumulative[-1] - one["cum"]))


@pytest.mark.slow
def test_windows_without_completions_or_with_few_samples(opened):
    rows = [(series(op), at, {900: 400}) for op in ("read", "write") for at in (0, 1, 4, 5)]
    with opened(Made(rows).overviews()) as page:
        for view in ("percentiles", "heatmap", "rate", "surface"):
            assert [(row["t"], row["t2"]) for row in rows_of(page, view, "gaps")] == [(ZERO / 1e6 + 2000, ZERO / 1e6 + 4000)]
            assert len(items_of(page, view, "no_completions")) == 1
    rows = [(series(), 0, {900: 999}), (series(), 1, {900: 1000}), (series(), 2, {900: 1})]
    with opened(Made(rows).overviews()) as page:
        for percentile, windows in (("50", 3), ("99", 2), ("99.9", 1), ("99.91", 0), ("99.99", 0)):
            choose(page, "p", percentile)
            assert len(drawn(page)) == windows
            assert len(items_of(page, "percentiles", "few")) == 3 - windows
        assert "too few samples" in page.locator("#readout").inner_text()
        assert "3 of 3 have too few samples" in page.locator("#percentiles-says").inner_text()


@pytest.mark.slow
def test_labels_are_text(opened):
    rows = [
        (series(label, label, label, HOSTILE[0]), at, {900 + 60 * code: 500})
        for code, label in enumerate(HOSTILE)
        for at in range(4)
    ]
    marks = [{"run": HOSTILE[0], "at_ns": ZERO + SECOND, "text": HOSTILE[1]}]
    labels = [as_shown(label) for label in HOSTILE]
    with opened(Made(rows, warnings=HOSTILE).overviews(), [(HOSTILE[1], HOSTILE[0])], marks, ("host",)) as page:
        assert page.evaluate("() => typeof hacked") == "undefined"
        assert page.evaluate("() => document.images.length + document.querySelectorAll('main b b').length") == 0
        assert HOSTILE[0] in page.locator("h1").inner_text()
        for label in (*labels[:3], labels[4], labels[5]):
            assert label in page.locator("#readout").text_content()
            assert label in page.locator("select[name=host]").text_content()
        assert HOSTILE[5] in page.locator("#worst").text_content()
        assert {row["row"] for row in rows_of(page, "hosts", "rows")} == set(labels)
        for view, mark in (("percentiles", "steps"), ("hosts", "heat"), ("heatmap", "heat"), ("rate", "targets")):
            hovered(page, view, mark)
            assert page.evaluate("() => document.querySelectorAll('#vg-tooltip-element :is(img, script, b)').length") == 0
        choose(page, "host", HOSTILE[1])
        assert {row["row"] for row in rows_of(page, "hosts", "rows")} == {HOSTILE[1]}
        address = page.evaluate("location.hash")
    with opened(Made(rows).overviews(), fragment=address) as page:
        assert page.evaluate("tailboard.state.host") == HOSTILE[1]


@pytest.mark.slow
def test_nonsense_in_the_address_is_ignored(opened, example):
    with opened(
        example, fragment="#p=abc&host=nobody&by=nothing&from=x&to=&clock=mars&axis=spiral&__proto__=1&drop=-5&run=none&tail=7"
    ) as page:
        assert len(rows_of(page, "percentiles")) > 0
        assert len(cells_of(page)) > 0


@pytest.mark.slow
def test_keyboard_reaches_the_controls(opened, example, files):
    answer = files.answer(Question(by=("op",), step=SECOND))
    with opened(example) as page:
        slider = page.get_by_role("slider", name="Percentile")
        slider.focus()
        page.keyboard.press("ArrowLeft")
        settle(page)
        assert slider.input_value() == "98.99"
        assert drawn(page) == answered(answer, "98.99")
        assert "p98.99" in page.locator("#readout").inner_text()
        assert "p98.99" in slider.get_attribute("aria-valuetext")
        page.keyboard.press("Home")
        settle(page)
        assert drawn(page) == answered(answer, "50")
        page.get_by_label("Percentile as a number").fill("99.5")
        page.keyboard.press("Enter")
        settle(page)
        assert slider.input_value() == "99.5"
        assert drawn(page) == answered(answer, "99.5")
        unnamed = page.evaluate(
            "() => [...document.querySelectorAll('input, select, button')].filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim())).length"
        )
        assert unnamed == 0
        for view in PANELS:
            assert page.locator(f"#{view}").get_attribute("role") == "img"
            assert len(page.locator(f"#{view}").get_attribute("aria-label")) > 20
            assert page.locator(f"#{view}").get_attribute("tabindex") == "0"


@pytest.mark.slow
def test_times_are_utc_local_or_elapsed(opened, example):
    with opened(example, by=("host",)) as page:
        for clock, words in (
            ("utc", "21:00:38 – 21:00:39 UTC"),
            ("local", "02:30:38 – 02:30:39 Asia/"),
            ("elapsed", "33.5 – 34.5 s elapsed"),
        ):
            choose(page, "clock", clock)
            assert words in page.locator("#percentiles-says").inner_text()
            assert words.split(" ")[-1] in hovered(page, "percentiles", "steps")
        assert page.evaluate("tailboard.views.rate.signal('zero')") == example[0].cluster.start_of // 1_000_000


@pytest.mark.slow
def test_lines_and_marks_are_drawn(opened, example):
    marks = [{"run": example[0].run, "at_ns": ZERO + 20 * SECOND, "text": "osd.3 down"}]
    with opened(example, (), marks, ("host",), 5_000_000) as page:
        for view in ("percentiles", "heatmap"):
            (line,) = items_of(page, view, "sla_line")
            low, high = page.evaluate(f"tailboard.views.{view}.signal('yd')")
            height = page.evaluate(f"tailboard.views.{view}.signal('height')")
            assert line["y"] == pytest.approx(height * (1 - np.log(5e6 / low) / np.log(high / low)), abs=1)
        for view in PANELS[:-1]:
            assert [item["datum"]["text"] for item in items_of(page, view, "annotations")] == ["osd.3 down"]
        choose(page, "sla", "250")
        assert page.evaluate("tailboard.views.distribution.signal('sla')") == 250e6
        choose(page, "sla", "")
        assert page.evaluate("tailboard.views.heatmap.signal('sla')") == 0


@pytest.mark.slow
def test_dark_narrow_relative_and_printed(opened):
    origin = Made(random_rows(3, 20), relative=True)
    with opened(origin.overviews(), scheme="dark") as page:
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_timeout(200)
        settle(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") == 390
        assert page.locator("[name=clock]").count() == 0
        assert "s elapsed" in page.locator("#percentiles-says").inner_text()
        page.emulate_media(color_scheme="light")
        settle(page)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        assert page.pdf().startswith(b"%PDF")
        settle(page)
        assert drawn(page) == answered(origin.answer(Question(by=("op",), step=SECOND)), "99")


@pytest.mark.slow
def test_one_window(opened, files):
    runs = overviews(files, files.run_names, Question(step="all"))
    with opened(runs) as page:
        assert drawn(page) == answered(files.answer(Question(by=("op",), step="all")), "99")


@pytest.mark.slow
def test_most_windows(opened):
    origin = Made([(series(), at, {1000 + at % 40: 100 + at, 1200: 3}) for at in range(2 * CLUSTER_WINDOWS)])
    with opened(origin.overviews()) as page:
        assert {row["t2"] - row["t"] for row in rows_of(page, "percentiles")} == {8000}
        assert CLUSTER_WINDOWS // 4 <= len(drawn(page)) <= CLUSTER_WINDOWS // 4 + 1
        choose(page, "to", "600")
        assert {row["t2"] - row["t"] for row in rows_of(page, "percentiles")} == {4000}
        assert len(drawn(page)) == 150


@pytest.mark.soak
def test_many_threads_have_their_tails(opened):
    rows = [
        (series(op, f"h{job % 4}", str(job)), at, {900 + job: 150, 1200: 1 + (job == 33)})
        for job in range(50)
        for at in range(100)
        for op in ("read", "write")
    ]
    origin = Made(rows)
    with opened(origin.overviews()) as page:
        assert len(rows_of(page, "threads", "rows")) == 30
        assert "The 30 worst of 50" in page.locator("#threads-says").inner_text()
        for op, tail in (("", "99"), ("read", "99"), ("read", "50"), ("", "100")):
            choose(page, "op", op)
            choose(page, "tail", tail)
            cells = rows_of(page, "threads")
            (width,) = {row["t2"] - row["t"] for row in cells}
            answer = origin.answer(Question(by=("host", "job"), where={"op": op or "*"}, step=int(width) * 1_000_000))
            if tail == "100":
                table = percentiles(answer, Wanted(()))
                keys = zip(
                    table.columns["start_ns"] // 1_000_000,
                    table.columns["host"],
                    table.columns["job"],
                    table.columns["max"],
                    strict=True,
                )
                expected = {(int(t), f"{host} job {job}"): int(v) for t, host, job, v in keys}
            else:
                expected = {(t, label.replace("|", " job ")): v for (t, label), v in answered(answer, tail).items()}
            shown = keyed(cells, "t", "row")
            assert shown == {key: expected[key] for key in shown}
            assert len(shown) == 30 * 100
        choose(page, "by", "thread")
        assert len({label for _, label in drawn(page)}) == 8
        assert "Of 50 threads the page holds p50, p99 and max" in page.locator("#percentiles-says").inner_text()
        choose(page, "from", "20")
        choose(page, "to", "40")
        assert {row["t2"] - row["t"] for row in rows_of(page, "threads")} == {1000}


@pytest.mark.slow
def test_small_pictures_of_runs_have_a_scale_and_do_not_lie_on_one_another(opened):
    """Values between 13 and 40 ms hold no power of ten: such pictures had no number at all, and titles lay on titles of axes."""
    rows = [
        (series(run=f"sweep/qd{depth}"), at, {1250 + 10 * ((at + depth) % 5): 400}) for depth in (1, 2, 4, 8) for at in range(20)
    ]
    origin = Made(rows, starts={f"sweep/qd{depth}": ZERO + 400_000_000 for depth in (1, 2, 4, 8)})
    with opened(origin.overviews(), by=()) as page:
        for panel in ("runs", "maps"):
            pictures = page.evaluate(
                """(panel) => tailboard.views[panel].scenegraph().root.items[0].items.find((one) => one.name === "pictures").items
                .map((item) => {
                  const axis = item.items.filter((one) => one.role === "axis").map((one) => one.items[0]);
                  const labels = axis.find((one) => one.orient === "left").items.find((one) => one.role === "axis-label");
                  return {box: ["x1", "x2", "y1", "y2"].map((side) => item.bounds[side]), labels: labels.items.map((one) => one.text)};
                })""",
                panel,
            )
            assert len(pictures) == 4
            assert all(len([text for text in picture["labels"] if text]) >= 2 for picture in pictures), panel
            boxes = [picture["box"] for picture in pictures]
            for at, (left, right, top, bottom) in enumerate(boxes):
                for other_left, other_right, other_top, other_bottom in boxes[:at]:
                    beside = right <= other_left or other_right <= left
                    assert beside or bottom <= other_top or other_bottom <= top, (panel, boxes)
        steps = page.evaluate(
            """() => tailboard.views.runs.scenegraph().root.items[0].items.find((one) => one.name === "pictures").items
            .flatMap((item) => item.items.find((one) => one.name === "steps").items.map((one) => one.x))"""
        )
        assert len(steps) == 80
        assert min(steps) >= 0


@pytest.mark.slow
def test_several_runs_have_small_multiples_and_a_load_curve(opened):
    rows = [
        (series(run=f"sweep/qd{depth}"), at, {900 + 30 * number: 100 * depth, 1300: depth})
        for number, depth in enumerate((1, 4, 16))
        for at in range(30)
    ]
    origin = Made(rows, starts={f"sweep/qd{depth}": ZERO for depth in (1, 4, 16)})
    with opened(origin.overviews(), by=()) as page:
        points = {row["name"]: (row["x"], row["v"]) for row in rows_of(page, "load")}
        for depth in (1, 4, 16):
            answer = origin.answer(Question(where={"run": f"sweep/qd{depth}"}, step="all"))
            table = percentiles(answer, Wanted(parse_percentiles("99")))
            assert points[f"qd{depth}"] == (pytest.approx(table.columns["rate"][0]), int(table.columns["p99"][0]))
        assert len(items_of(page, "load", "dots")) == 3
        small = rows_of(page, "runs")
        assert {row["name"] for row in small} == {"qd1", "qd4", "qd16"}
        answer = origin.answer(Question(by=("run",), step=SECOND))
        expected = {(t - ZERO // 1_000_000, run): v for (t, run), v in answered(answer, "99").items()}
        assert {(row["t"], row["run"]): row["v"] for row in small} == expected
        assert len(items_of(page, "runs", "pictures")) == 3
        assert len(set(page.evaluate("[tailboard.views.runs.signal('yd')].map(String)"))) == 1
        choose(page, "run", "sweep/qd16")
        assert drawn(page) == {
            (t, label): v
            for (t, label), v in answered(
                origin.answer(Question(by=("op",), where={"run": "sweep/qd16"}, step=SECOND)), "99"
            ).items()
        }
        choose(page, "by", "run")
        assert {row["label"] for row in rows_of(page, "distribution")} == {"qd1", "qd4", "qd16"}
        choose(page, "p", "50")
        assert {row["v"] for row in rows_of(page, "load")} == {int(NS.values[900 + 30 * number]) for number in range(3)}


@pytest.mark.slow
def test_runs_of_too_few_samples_for_the_percentile_are_named(opened):
    """A page of 70 short runs had an empty panel and not a word why: no window of them had 100 samples for p99."""
    rows = [
        (series(run=f"n/{run}"), at, {900: count})
        for run, count in (("few", 20), ("fewer", 10), ("many", 400), ("more", 400))
        for at in range(30)
    ]
    origin = Made(rows, starts={f"n/{run}": ZERO for run in ("few", "fewer", "many", "more")})
    with opened(origin.overviews(), by=()) as page:
        said = page.locator("#runs-says").inner_text
        assert {row["run"] for row in rows_of(page, "runs")} == {"n/many", "n/more"}
        assert said() == "4 runs on the same scales. 2 runs have no line: no window of theirs has enough samples for p99."
        assert "too few samples" not in page.locator("#load-says").inner_text(), "600 and 300 in the whole run are enough for p99"
        choose(page, "p", "99.9")
        assert said() == "No window has enough samples for p99.9. Choose a lower percentile." and not rows_of(page, "runs")
        assert page.locator("#load-says").inner_text().endswith("2 of 4 runs have too few samples for p99.9")
        choose(page, "p", "50")
        assert said() == "4 runs on the same scales."


@pytest.mark.slow
def test_a_load_curve_of_many_runs_names_those_that_have_room_and_tells_the_ends(opened):
    names = [f"night-{number:02d}" for number in range(40)]
    rows = [
        (series(run=name), at, {900 + number: 400 + 2 * (number * 7 % 40)})
        for number, name in enumerate(names)
        for at in range(3)
    ]
    origin = Made(rows, starts=dict.fromkeys(names, ZERO))
    with opened(origin.overviews(), by=()) as page:
        assert len(rows_of(page, "load")) == 40
        there = "tailboard.views.load.scenegraph().root.items[0].items.find((one) => one.name === 'names').items.map((one) => one.opacity)"
        assert 2 < sum(page.evaluate(there)) < 40
        parts = page.locator("#load-says").inner_text().split("; ")
        assert parts[0] == "40 points" and len(parts) == 5
        assert parts[1].startswith("lowest rate: night-00: 400 a second, ")
        assert parts[2].startswith("highest rate: night-17: 478 a second, ")
        assert parts[3].startswith("lowest p99: night-00: ") and parts[4].startswith("highest p99: night-39: ")


@pytest.mark.slow
def test_the_load_curve_of_a_sweep_is_over_its_depths(browser, tmp_path):
    with tarfile.open(DATA / "cbt" / "B.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    assert command(["report", str(tmp_path / "B"), "-o", str(tmp_path / "b.html")]) == 0
    answer = Files([tmp_path / "B"]).answer(Question(by=("workload", "total_iodepth"), step="all"))
    columns = percentiles(answer, Wanted(parse_percentiles("99"))).columns
    cells = zip(*(columns[name] for name in ("workload", "total_iodepth", "rate", "p99")), strict=True)
    expected = {(label, int(depth)): (pytest.approx(rate), value) for label, depth, rate, value in cells}
    with shown(browser, tmp_path / "b.html") as page:
        assert {(row["label"], row["x"]): (row["rate"], row["v"]) for row in rows_of(page, "load")} == expected
        assert page.locator("#h-load").inner_text() == "Load curve: percentile against queue depth of all jobs (total_iodepth)"
        assert page.evaluate("tailboard.views.load.signal('across')") == "queue depth of all jobs (total_iodepth)"
        assert page.locator("#title").inner_text().startswith("B/00000000/id-2b63de81: 16k7030/numjobs-001/total_iodepth-3, ")


@pytest.mark.slow
def test_each_run_has_a_heat_map_on_the_scales_of_all(opened):
    """Every cell holds what the query layer counts between its edges; latency, time and shade mean the same in all pictures."""
    names = [f"sweep/qd{depth}" for depth in (1, 4, 16)]
    rows = [
        (replace(one, run=name), at, bins)
        for number, name in enumerate(names)
        for one, at, bins in random_rows(40 + number, windows=10 * (number + 1), hosts=2, threads=1)
    ]
    origin = Made(rows, starts=dict.fromkeys(names, ZERO))
    with opened(origin.overviews(), by=()) as page:
        cells = rows_of(page, "maps", "cells")
        assert {(cell["run"], cell["name"]) for cell in cells} == {(name, name.split("/")[1]) for name in names}
        (width,) = {cell["t2"] - cell["t"] for cell in cells}
        for name in names:
            expected: Counter = Counter()
            for part in origin.answer(Question(where={"run": name}, step=int(width) * 1_000_000)).parts:
                for row in range(len(part)):
                    for entry in range(int(part.indptr[row]), int(part.indptr[row + 1])):
                        expected[int(part.start_ns[row] - ZERO) // 1_000_000, int(part.layout.edges[part.bins[entry]])] += int(
                            part.counts[entry]
                        )
            held: Counter = Counter()
            for cell in (cell for cell in cells if cell["run"] == name):
                inside = sum(c for (t, edge), c in expected.items() if t == cell["t"] and cell["lower"] <= edge < cell["upper"])
                assert cell["c"] == inside > 0
                assert cell["n"] == sum(c for (t, _), c in expected.items() if t == cell["t"])
                held[name] += cell["c"]
            assert held[name] == sum(expected.values())
        ranked = by_rank(cell["c"] for cell in cells)
        assert all(cell["shade"] == pytest.approx(ranked[cell["c"]]) for cell in rows_of(page, "maps", "shown"))
        pictures = page.evaluate(
            """() => tailboard.views.maps.scenegraph().root.items[0].items.find((one) => one.name === "pictures").items.map((group) =>
            ({ run: group.datum.run, items: group.items.find((one) => one.name === "heat").items
              .map(({ x, width, y, height, fill, datum: { run, t, lower, upper, c } }) => ({ x, width, y, height, fill, run, t, lower, upper, c })) }))"""
        )
        assert [picture["run"] for picture in pictures] == sorted(names)
        drawn_items = [item for picture in pictures for item in picture["items"]]
        assert all(item["run"] == picture["run"] for picture in pictures for item in picture["items"])
        assert len(drawn_items) == len(cells)
        for edges, told in ((("t",), ("x", "width")), (("lower", "upper"), ("y", "height")), (("c",), ("fill",))):
            seen: dict = {}
            for item in drawn_items:
                assert seen.setdefault(tuple(item[name] for name in edges), found := [item[name] for name in told]) == found
        main, tall = page.evaluate("['main', 'tall'].map((name) => tailboard.views.maps.signal(name))")
        span, low, high = (
            max(cell["t2"] for cell in cells),
            min(cell["lower"] for cell in cells) / 1.05,
            max(cell["upper"] for cell in cells) * 1.05,
        )
        for item in drawn_items:
            assert item["x"] == pytest.approx(main * item["t"] / span, abs=1)
            assert item["y"] == pytest.approx(tall * (1 - np.log(item["upper"] / low) / np.log(high / low)), abs=1)
        before = {item["fill"] for item in drawn_items}
        choose(page, "palette", "false")
        choose(page, "shading", "linear")
        shades = {cell["c"]: cell["shade"] for cell in rows_of(page, "maps", "shown")}
        assert shades == {c: pytest.approx(c / max(ranked)) for c in ranked}
        after = page.evaluate(
            "tailboard.views.maps.scenegraph().root.items[0].items.find((one) => one.name === 'pictures').items[0].items.find((one) => one.name === 'heat').items.map((one) => one.fill)"
        )
        assert not before & set(after)
        choose(page, "op", "read")
        reads = sum(sum(bins.values()) for one, _, bins in rows if one.op == "read")
        assert sum(cell["c"] for cell in rows_of(page, "maps", "cells")) == reads


@pytest.mark.slow
def test_the_heat_map_is_drawn_in_one_go_and_whole(opened):
    """A filter change draws the map in one frame; in the end it is the same as when the page opens with that filter."""
    origin = Made(random_rows(31, windows=170, hosts=1))
    with opened(origin.overviews()) as page:
        page.evaluate("() => { tailboard.frames.length = 0; }")
        choose(page, "op", "write")
        assert page.evaluate("tailboard.frames.filter((one) => one.name === 'heatmap').length") == 1
        changed = drawn_cells(page)
        choose(page, "op", "")
        page.evaluate(
            "(name) => { const control = document.querySelector('select[name=op]'); for (const op of ['read', '', 'write']) { control.value = op; control.dispatchEvent(new Event('change', { bubbles: true })); } }",
            "op",
        )
        settle(page)
        hurried = drawn_cells(page)
    with opened(origin.overviews(), fragment="#op=write") as page:
        at_once = drawn_cells(page)
    assert len(at_once) > 1000
    where = lambda item: (item["datum"]["t"], item["datum"]["lower"])  # noqa: E731
    kept = ("x", "x2", "y", "y2", "fill")
    for found in (changed, hurried):
        assert [[one[name] for name in kept] for one in sorted(found, key=where)] == [
            [one[name] for name in kept] for one in sorted(at_once, key=where)
        ]


@pytest.mark.slow
def test_kinds_are_never_merged(opened):
    rows = [
        (series(kind=kind), at, {place: 200}) for kind, place in (("completion", 900), ("submission", 500)) for at in range(5)
    ]
    origin = Made(rows)
    with opened(origin.overviews()) as page:
        for kind in ("completion", "submission"):
            if kind != "completion":
                choose(page, "kind", kind)
            assert sum(row["c"] for row in cells_of(page)) == 1000
            assert {row["v"] for row in rows_of(page, "percentiles")} == {int(NS.values[900 if kind == "completion" else 500])}


@pytest.mark.slow
def test_labels_asked_with_by_tell_lines_apart(opened, example, files):
    runs = overviews(files, files.run_names, Question(by=("volume",)))
    with opened(runs, by=("volume",)) as page:
        assert drawn(page) == answered(files.answer(Question(by=("volume",), step=SECOND)), "99")
        choose(page, "host", "ceph-b")
        assert drawn(page) == answered(files.answer(Question(by=("volume",), where={"host": "ceph-b"}, step=SECOND)), "99")


@pytest.mark.slow
def test_d8_the_legend_of_a_map_of_one_host_ends_above_its_axis(opened) -> None:
    origin = Made(
        [(series("read", host, job), at, {900 + at: 150, 1200: 1}) for at in range(8) for host in ("h1", "h2") for job in "12"]
    )
    ends = """name => {
        const view = tailboard.views[name], all = view.scenegraph().root.items[0].items;
        const legend = all.find(({ role }) => role === "legend");
        return [Math.max(...legend.items.map(({ bounds }) => bounds.y2)), view.height()];
    }"""
    with opened(origin.overviews(), fragment="#host=h1") as page:
        assert len(rows_of(page, "hosts", "rows")) == 1
        for name in ("hosts", "threads"):
            bottom, height = page.evaluate(ends, name)
            assert bottom <= height


@pytest.mark.slow
def test_a5_the_readout_says_that_samples_are_missing_where_the_table_has_a_range(browser, fio, tmp_path: Path) -> None:
    said = {}
    for name in ("cases/fio37-masked", "randrw"):
        (tmp_path / name).mkdir(parents=True)
        for file in (*(fio / name).glob("*.json"), *(fio / name).glob("*_clat_hist*")):
            shutil.copy(file, tmp_path / name)
        path = tmp_path / f"{Path(name).name}.html"
        assert command(["report", str(tmp_path / name), "-o", str(path)]) == 0
        with shown(browser, path, "") as page:
            said[name] = (
                "samples are missing" in page.locator("#readout").inner_text(),
                " to " in page.locator("#summary").text_content(),
            )
    assert said == {"cases/fio37-masked": (True, True), "randrw": (False, False)}
