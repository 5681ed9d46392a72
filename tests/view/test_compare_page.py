"""The page of `compare` in Chromium: its tables hold what the csv of the command holds, its charts draw it, labels are text."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
import zlib
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run
from ingest.core.layout import LogLinear
from ingest.core.quantiles import parse_percentiles
from ingest.query.compare import METHOD, Pair, grouped, labels_of
from ingest.query.files import Files
from ingest.query.question import AUTO, Question
from ingest.view import vega
from ingest.view.page.compare import compare_page, compared
from ingest.view.terminal import comparison
from oracles.shades import by_rank
from tests.browsing import missing, shown
from tests.doubles.origin import SECOND, Made, series
from tests.query.nights import drawn, written
from tests.store.grounds import grounds, loaded
from tests.vega.drawn import DARK, EACH_MAJOR, LIGHT, drawing, installed
from tests.view.page import HOSTILE, answered, choose, hovered, items_of, rows_of, settle

NASTY = (*HOSTILE, "\udcff{{data}}")
WORDS = ("--baseline", "good", "--run", "bad")
CELLS = "lines => lines.map(line => [...line.cells].map(cell => cell.querySelector('data')?.value ?? (cell.dataset.lo === undefined ? cell.textContent : [cell.dataset.lo, cell.dataset.hi])))"


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Path:
    """Two nights; in the bad one the slowest tenth of the writes of h2 take 30 % longer."""
    folder = tmp_path_factory.mktemp("nights")
    written(folder / "good", drawn(101), 20)
    written(folder / "bad", drawn(102, slow=("h2", "write")), 21)
    return folder


@pytest.fixture(scope="module")
def compare_html(nights: Path) -> Path:
    """The page of both nights by host and op."""
    pytest.importorskip("vl_convert")
    path = nights / "compare.html"
    assert run(["compare", str(nights / "good"), str(nights / "bad"), *WORDS, "--by", "host,op", "-o", str(path)]) == 0
    return path


def until(page, condition: str) -> None:
    """Wait until something is true, and all is drawn."""
    for _ in range(6000):
        settle(page)
        if page.evaluate(condition):
            settle(page)
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never true: {condition}")


def csv_of(nights: Path, *words: str) -> list[dict[str, str]]:
    """Return the rows of the csv of the command."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(["compare", str(nights / "good"), str(nights / "bad"), *WORDS, *words, "--format", "csv"]) == 0
    return list(csv.DictReader(io.StringIO(out.getvalue())))


def table_of(page, panel: str, labels: int) -> list[list[str]]:
    """Return the cells of the table of a panel as csv has them: labels, percentile, then what follows in csv."""
    found = []
    for cells in page.locator(f"#panel-{panel} tbody tr").evaluate_all(CELLS):
        *head, percentile, baseline, late, ratio, (low, high), n_baseline, n_run, _ = cells
        assert len(head) == labels
        found.append([*head, percentile.removeprefix("p"), baseline, late, ratio, low, high, n_baseline, n_run])
    return found


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("panel", "by"),
    [
        pytest.param("ratios", "", marks=pytest.mark.slow),
        pytest.param("movers-op", "op", marks=pytest.mark.slow),
        pytest.param("movers-host", "host", marks=pytest.mark.slow),
        ("movers-host-op", "host,op"),
    ],
)
def test_tables_hold_the_rows_of_the_csv(browser, compare_html: Path, nights: Path, panel: str, by: str):
    rows = csv_of(nights, *(("--by", by) if by else ()))
    with shown(browser, compare_html) as page:
        found = table_of(page, panel, len(by.split(",")) if by else 0)
        assert sorted(found) == sorted(list(row.values())[: list(row).index("verdict")] for row in rows)  # it is in words there
        groups = list(dict.fromkeys(tuple(row[name] for name in by.split(",")) for row in rows)) if by else []
        assert list(dict.fromkeys(tuple(row[: len(groups[0])]) for row in found)) == groups if by else True
        assert len(found) == len(rows) > 3


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("by", ["op", *(pytest.param(by, marks=pytest.mark.slow) for by in ("host", "host,op"))])
def test_bars_are_the_rows_of_the_chosen_percentile_largest_effect_first(browser, compare_html: Path, nights: Path, by: str):
    rows = csv_of(nights, "--by", by)
    view = f"movers-{by.replace(',', '-')}"
    with shown(browser, compare_html) as page:
        for percentile in ("99", "50", "99.9"):
            if percentile != "99":
                choose(page, "p", f"p{percentile}")
            mine = [row for row in rows if row["percentile"] == percentile and row["ratio"]]
            points = sorted(rows_of(page, view), key=lambda row: row["i"])
            assert [point["row"] for point in points] == [", ".join(row[name] for name in by.split(",")) for row in mine]
            for point, row in zip(points, mine, strict=True):
                for name in ("ratio", "lo", "hi", "baseline", "run"):
                    assert point[name] == (pytest.approx(float(row[name]), rel=1e-14) if row[name] else None), (name, row)
                assert (point["n_baseline"], point["n_run"]) == (int(row["count_baseline"]), int(row["count_run"]))
        low, high = page.evaluate(f"tailboard.views['{view}'].signal('xd')")
        main = page.evaluate(f"tailboard.views['{view}'].signal('main')")

        def across(ratio: float) -> float:
            return main * math.log(ratio / low) / math.log(high / low)

        fills = {}
        for bar, bound in zip(items_of(page, view, "bars"), items_of(page, view, "bounds"), strict=True):
            told = bar["datum"]
            ends = sorted((across(1), across(told["ratio"])))
            assert [bar["x"], bar["x"] + bar["width"]] == pytest.approx(ends, abs=1e-6)
            assert (bound["x"], bound["x2"]) == pytest.approx((across(told["first"]), across(told["last"])), abs=1e-6)
            assert told["cut_low"] or told["first"] == told["lo"]
            assert told["cut_high"] or told["last"] == told["hi"]
            fills.setdefault(
                "slower" if told["lo"] and told["lo"] > 1 else "faster" if told["hi"] and told["hi"] < 1 else "", set()
            ).add(bar["fill"])
        assert all(len(found) == 1 for found in fills.values())
        assert len({next(iter(found)) for found in fills.values()}) == len(fills)


@pytest.mark.slow
def test_the_tail_of_one_host_and_op_is_named_first(browser, compare_html: Path):
    with shown(browser, compare_html) as page:
        assert (
            page.locator(".verdict")
            .inner_text()
            .startswith("bad is slower than good: p99 of h2 write went from 553 µs to 717 µs, 1.296 times (95 %: 1.1")
        )
        assert page.locator("#movers-host-op-says").inner_text().startswith("p99. Slower: h2, write 1.296 times")
        assert "h2, write" in hovered(page, "movers-host-op", "targets")
        facts = page.locator("dl").text_content()
        assert METHOD in facts
        assert "20 s and 20 s" in facts
        choose(page, "p", "p50")
        assert "Nothing is certain to have changed. Of 6: " in page.locator("#movers-host-op-says").inner_text()
        address = page.evaluate("location.hash")
    with shown(browser, compare_html, address) as page:
        assert page.evaluate("tailboard.state.p") == "p50"
        page.evaluate("location.hash = '#p=p7&group=%3Cb%3E&shading=linear&__proto__=1'")
        page.wait_for_function("tailboard.state.shading === 'linear'")
        settle(page)
        assert page.evaluate("tailboard.state") == page.evaluate("tailboard.content.state") | {"shading": "linear"}


@pytest.mark.slow
def test_distributions_and_their_ratio_are_those_of_the_query(browser, compare_html: Path, nights: Path):
    chosen = {"all together": {}, "op write": {"op": "write"}, "host h2, op write": {"host": "h2", "op": "write"}}
    with shown(browser, compare_html) as page:
        names = {option.inner_text(): option.get_attribute("value") for option in page.locator("[name=group] option").all()}
        assert len(names) == 1 + 2 + 3 + 6
        for name, where in chosen.items():
            if where:
                choose(page, "group", names[name])
            words = [word for key, value in where.items() for word in ("--where", f"{key}={value}")]
            shifts = {float(row["percentile"]): row for row in csv_of(nights, "--shifts", *words) if row["ratio"]}
            points = rows_of(page, "shifts")
            assert [float(point["row"][1:]) for point in points] == sorted(shifts)[: len(points)]
            assert len(points) >= len(shifts) - 1 > 8
            for point in points:
                row = shifts[float(point["row"][1:])]
                assert point["x"] == pytest.approx(1 / (1 - float(row["percentile"]) / 100))
                assert [point[key] for key in ("ratio", "lo", "hi")] == [
                    pytest.approx(float(row[key])) if row[key] else None for key in ("ratio", "lo", "hi")
                ]
            for side, night in (("baseline", "good"), ("run", "bad")):
                (part,) = Files([nights / night]).answer(Question(where=where, step="all")).parts
                total, steps, passed = int(part.counts.sum()), {}, 0
                for place, count in zip(part.bins.tolist(), part.counts.tolist(), strict=True):
                    passed += count
                    steps[passed] = part.layout.values[place]
                curve = [row for row in rows_of(page, "curves") if row["label"] == side]
                assert {row["cum"]: row["v"] for row in curve[1:]} == steps
                assert all(row["x"] == pytest.approx(total / max(1, total - row["cum"])) for row in curve)
        domain = page.evaluate("['curves', 'shifts'].map((name) => tailboard.views[name].scale('x').domain())")
        assert domain[0] == pytest.approx(domain[1])


@pytest.mark.slow
def test_both_runs_over_elapsed_time_on_one_scale(browser, compare_html: Path, nights: Path):
    answers = {
        side: Files([nights / night]).answer(Question(step=SECOND)) for side, night in (("baseline", "good"), ("run", "bad"))
    }
    with shown(browser, compare_html) as page:
        for percentile in ("99", "50"):
            if percentile != "99":
                choose(page, "p", f"p{percentile}")
            found = {(row["t"], row["label"]): row["v"] for row in rows_of(page, "elapsed")}
            assert found == {
                (t - answer.start_of // 1_000_000, side): v
                for side, answer in answers.items()
                for (t, _), v in answered(answer, percentile).items()
            }
            assert len(found) == 40
        cells = rows_of(page, "maps", "shown")
        for side, answer in answers.items():
            assert sum(cell["c"] for cell in cells if cell["run"] == side) == answer.samples == 24_000
        expected = comparison.cells(Pair(answers["baseline"], answers["run"]))
        keys = ("run", "t", "lower", "c")
        assert [[cell[key] for key in keys] for cell in cells] == [
            list(row) for row in zip(*(expected[key] for key in keys), strict=True)
        ]
        ranked = by_rank(expected["c"])
        assert all(cell["shade"] == pytest.approx(ranked[cell["c"]]) for cell in cells)
        pictures = page.evaluate(
            """() => tailboard.views.maps.scenegraph().root.items[0].items.find((one) => one.name === 'pictures').items.map((group) => ({
            height: group.height, items: group.items.find((one) => one.name === 'heat').items.map(({ y, height, fill, datum }) => ({ y, height, fill, lower: datum.lower, c: datum.c })) }))"""
        )
        assert len(pictures) == 2 and len({one["height"] for one in pictures}) == 1
        fills: dict[int, set[str]] = {}
        places: dict[float, set[float]] = {}
        for item in (item for one in pictures for item in one["items"]):
            fills.setdefault(item["c"], set()).add(item["fill"])
            places.setdefault(item["lower"], set()).add(item["y"])
        assert len(fills) > 20 and all(len(found) == 1 for found in fills.values()), "one colour for one count, in both"
        assert all(len(found) == 1 for found in places.values()), "one place for one latency, in both"
        choose(page, "shading", "linear")
        most = max(cell["c"] for cell in cells)
        assert all(cell["shade"] == pytest.approx(cell["c"] / most) for cell in rows_of(page, "maps", "shown"))


@pytest.mark.slow
def test_the_page_moves_with_the_reader(browser, compare_html: Path):
    with shown(browser, compare_html, scheme="light") as page:
        page.locator("input[name=p]:checked").focus()
        page.keyboard.press("ArrowLeft")
        settle(page)
        assert page.evaluate("tailboard.state.p") == "p95"
        page.locator("#ratios").focus()
        assert "Percentiles side by side. Slower: p99" in page.locator("#ratios").get_attribute("aria-label")
        background = page.evaluate("tailboard.views.shifts.signal('ink')")
        page.emulate_media(color_scheme="dark")
        until(page, f"tailboard.views.shifts.signal('ink') !== '{background}'")
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        settle(page)
        assert page.evaluate("tailboard.views.shifts.signal('ink')") == background
        assert page.evaluate("() => [...document.querySelectorAll('details:not(.tools)')].every((one) => one.open)")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        settle(page)
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 380, "height": 800})
        until(page, "tailboard.views.curves.width() < 300")
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        assert page.locator("[data-of=curves]").inner_text().split() == ["baseline", "run"]
        page.set_viewport_size({"width": 1200, "height": 800})
        until(page, "tailboard.views.curves.width() > 600")
        assert page.locator("[data-of=curves]").count() == 0


@pytest.mark.slow
def test_panels_are_a_line_until_they_are_opened_and_give_their_numbers(browser, compare_html: Path):
    with shown(browser, compare_html, folded=True) as page:
        panels = page.locator(".panels > .panel")
        folded = [panel.evaluate("(panel) => panel.classList.contains('folded')") for panel in panels.all()]
        assert folded.count(False) == 2 and not folded[0] and page.locator("#panel-elapsed.folded").count() == 0
        assert page.evaluate("Object.keys(tailboard.views).length") == 2  # what is folded is not drawn
        line = panels.nth(1)
        assert line.locator(".says").first.is_visible() and line.locator(".chart").is_hidden()
        line.locator(".unfold").focus()
        page.keyboard.press("Enter")
        settle(page)
        assert line.locator(".chart canvas").is_visible() and page.evaluate("Object.keys(tailboard.views).length") == 3
        page.go_back()
        settle(page)
        assert line.locator(".chart").is_hidden()
        menu = panels.first.locator(".tools")
        menu.locator("summary").click()
        assert menu.locator(".hint").is_visible()
        with page.expect_download() as given:
            menu.get_by_role("button", name="csv").click()
        rows = list(csv.DictReader(Path(given.value.path()).read_text(encoding="utf-8").splitlines()))
        held = panels.first.locator("tbody tr td:has(data) >> nth=0").locator("data").get_attribute("value")
        assert len(rows) == panels.first.locator("tbody tr").count() and rows[0]["baseline"] == held


def made_page(tmp_path: Path, baseline: Made, late: Made, by: tuple[str, ...], percentiles: str = "50,99") -> Path:
    """Return the page of two made runs."""
    question = Question(by=labels_of(by), step="all")
    first, second = baseline.answer(question), late.answer(question)
    windows = tuple((made.answer(replace(question, step=AUTO)),) for made in (baseline, late))
    pair = grouped(first, second, by, windows)
    wanted = parse_percentiles(percentiles)
    path = tmp_path / "compare.html"
    path.write_text(
        compare_page(compared(pair, (first, second), windows, wanted, unlike=False), pair, HOSTILE[:1]), encoding="utf-8"
    )
    return path


@pytest.mark.slow
def test_labels_are_text(browser, tmp_path: Path):
    def nasty(run: str, shift: int) -> Made:
        rows = [
            (series(label, label, label, run), at, {900 + 40 * place + shift: 500})
            for place, label in enumerate(NASTY)
            for at in range(4)
        ]
        return Made(rows, warnings=HOSTILE)

    path = made_page(tmp_path, nasty(HOSTILE[0], 0), nasty(HOSTILE[1], 20), ("host", "op", "job"))
    with shown(browser, path) as page:
        assert page.evaluate("() => typeof hacked") == "undefined"
        assert page.evaluate("() => document.images.length + document.querySelectorAll('main b b, main td b').length") == 0
        assert HOSTILE[1] in page.locator("h1").inner_text()
        assert HOSTILE[0] in page.locator(".verdict").inner_text()
        assert {vega.printable(label) for label in NASTY} == {row["row"] for row in rows_of(page, "movers-op")}
        assert HOSTILE[2] in page.locator("#panel-movers-host tbody").text_content()
        choose(page, "group", "g2")
        hovered(page, "movers-op", "targets")
        assert page.evaluate("() => document.querySelectorAll('#vg-tooltip-element :is(img, script, b)').length") == 0


def test_curves_of_many_bins_are_thinned_to_what_can_be_seen():
    fine = LogLinear(1024, 1024 * 20, reports="highest", open_ended=False)
    rows = [(series(), 0, {place: 3 for place in range(1000, 9000)})]
    answer = Made(rows, layout=fine).answer(Question(step="all"))
    every, few = vega.curve(answer), vega.curve(answer, 900)
    assert len(every["x"]) == 8001 and 300 < len(few["x"]) <= 902
    steps = dict(zip(every["cum"], zip(every["x"], every["v"])))
    assert all(steps[cum] == (x, v) for cum, x, v in zip(few["cum"], few["x"], few["v"]))
    assert (few["x"][-1], few["cum"][-1]) == (24_000, 24_000)
    gaps = [b / a for a, b in zip(few["x"], few["x"][1:])]
    widest = {b / a for a, b in zip(every["x"], every["x"][1:])}
    assert all(gap <= 24_000 ** (2 / 900) * 1.0001 or any(abs(gap - one) < 1e-9 for one in widest) for gap in gaps)


@pytest.mark.slow
def test_windows_that_do_not_begin_together_are_each_runs_own(browser, tmp_path: Path):
    zero = 1_795_208_404 * SECOND
    first = Made([(series("read", run="a"), at, {900: 200}) for at in (0, 1, 4, 5, 8)], starts={"a": zero + SECOND // 4})
    second = Made([(series("read", run="b"), at, {900: 200, 950: 9}) for at in (0, 4, 9)], starts={"b": zero + SECOND // 2})
    with shown(browser, made_page(tmp_path, first, second, ())) as page:
        times = {
            side: sorted(row["t"] for row in rows_of(page, "elapsed") if row["label"] == side) for side in ("baseline", "run")
        }
        assert times == {"baseline": [-250, 750, 3750, 4750, 7750], "run": [-500, 3500, 8500]}
        assert page.evaluate("tailboard.views.elapsed.signal('range')") == [-500, 9500]
        assert [(row["t"], row["t2"]) for row in rows_of(page, "elapsed", "gaps")] == [(1750, 3500), (5750, 7750)]
        assert [row["label"] for row in rows_of(page, "elapsed", "whole")] == ["baseline", "run"]


@pytest.mark.slow
def test_a_stall_with_too_few_samples_is_the_highest(browser, tmp_path: Path):
    calm = Made([(series("read", run="a"), at, {900: 200}) for at in range(4)])
    stall = Made([(series("read", run="b"), at, {900: 200} if at != 2 else {1500: 1}) for at in range(4)])
    with shown(browser, made_page(tmp_path, calm, stall, ())) as page:
        says = page.locator("#elapsed-says").inner_text()
        assert "run " in says and "(2.0 to 3.0 s, the maximum: too few samples for p99)" in says
        assert len(items_of(page, "elapsed", "few")) == 1


@pytest.mark.slow
def test_what_cannot_be_told_is_said(browser, tmp_path: Path):
    few = Made([(series("read", run="few"), at, {900: 3, 1000 + at: 2}) for at in range(4)])
    many = Made([(series(op, run="many"), at, {900: 3000, 1000 + at: 2000}) for at in range(4) for op in ("read", "write")])
    with shown(browser, made_page(tmp_path, few, many, ())) as page:
        notes = page.locator(".notes").first.text_content()
        assert "p99 needs 100 samples: 1 of 1 rows have fewer" in notes
        assert "too few samples: 100 at least" in page.locator("#panel-ratios tbody").inner_text()
        assert "only in the run" in page.locator("#panel-movers-op tbody").inner_text()
        assert rows_of(page, "movers-op") == []
        assert "1 with too few samples, 1 only in the run" in page.locator("#movers-op-says").inner_text()


@pytest.mark.slow
def test_more_groups_than_a_page_can_show_are_said_to_be_left_out(browser, tmp_path: Path):
    def run_of(name: str, shift: int) -> Made:
        return Made([(series("read", f"h{host}", run=name), 0, {900 + shift * (host % 7): 400, 1200: 4}) for host in range(150)])

    with shown(browser, made_page(tmp_path, run_of("a", 0), run_of("b", 9), (), "50,90,99")) as page:
        assert "The 14 with the largest effect of 150." in page.locator("#movers-host-says").inner_text()
        assert len(rows_of(page, "movers-host")) == 14
        assert page.locator("#panel-movers-host summary", has_text="the first 400 of 450 (csv has all)").is_visible()
        assert page.locator("[name=group] option").count() == 40


@pytest.mark.slow
@pytest.mark.parametrize("major", EACH_MAJOR)
@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_ratios_are_drawn_without_a_warning_in_both_versions_of_vega(browser, major: int, colors: dict):
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    names = (
        "i",
        "row",
        "x",
        "ratio",
        "lo",
        "hi",
        "baseline",
        "run",
        "open_baseline",
        "open_run",
        "n_baseline",
        "n_run",
        "verdict",
        "first",
        "last",
        "cut_low",
        "cut_high",
    )
    cases = {
        "usual": [
            (0, "a", 2, 1.3, 1.2, 1.4, 1e5, 1.3e5, 0, 0, 100, 100, "slower", 1.2, 1.4, 0, 0),
            (1, "</b>", 4, 0.8, None, 0.9, 1e5, 8e4, 0, 1, 9, 9, "faster", 0.6, 0.9, 1, 0),
        ],
        "one": [(0, "a", 2, 1.0, 1.0, 1.0, 1e5, 1e5, 0, 0, 5, 5, "the same within 1 %", 1.0, 1.0, 0, 0)],
        "none": [],
    }
    with drawing(browser, major, colors) as page:
        for spec in ("movers", "shifts"):
            for rows in cases.values():
                columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
                page.draw(vega.with_values(vega.spec(spec), {"points": columns}))
                assert [len(page.marks(mark)) for mark in ("dots", "bounds", "lows", "highs")] == [len(rows)] * 4


def outside(html: str) -> list[str]:
    """Return what a page could load or run beside its two scripts; its policy must name their digests."""
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)[1]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert len(scripts) == 2
    assert (
        policy
        == f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    plain = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert "{{" not in plain
    return re.findall(r"""(?:src|href|action)=|url\(|@import|https?://""", plain)


@pytest.mark.slow
def test_the_page_is_whole_in_itself(compare_html: Path):
    assert outside(compare_html.read_text(encoding="utf-8")) == []


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "status", "told"),
    [
        ("1.1", 1, "above 1.1: h2 write p99 is 1.3 times the baseline"),
        pytest.param("1.5", 0, "No ratio is certain to be above 1.5", marks=pytest.mark.soak),
    ],
)
def test_the_page_says_what_the_command_judges(nights: Path, tmp_path: Path, capsys, limit: str, status: int, told: str):
    pytest.importorskip("vl_convert")
    words = ["compare", str(nights / "good"), str(nights / "bad"), *WORDS, "--by", "host,op", "--fail-above", limit]
    assert run([*words, "-o", str(tmp_path / "x.html"), "--format", "csv"]) == status
    out, errors = capsys.readouterr()
    assert out.startswith("host,op,percentile,")
    assert f"wrote {tmp_path / 'x.html'}" in errors
    html = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert told in html
    assert f'class="panel verdict{" bad" if status else ""}"' in html
    assert run([*words, "-o", "-"]) == status
    out, errors = capsys.readouterr()
    assert out == html
    assert ("above 1.1: h2 write" in errors) == bool(status)


def test_what_goes_wrong_with_a_page(nights: Path, tmp_path: Path, capsys):
    words = ["compare", str(nights / "good"), str(nights / "bad"), *WORDS]
    assert run([*words, "-o", "-", "--format", "csv"]) == 2
    assert "-o - writes the page to stdout: leave out --format" in capsys.readouterr().err
    assert run([*words, "-o", str(tmp_path / "no" / "x.html")]) == 3
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def charts_of(path: Path) -> dict:
    """Return what is drawn on a page, by chart."""
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', path.read_text(encoding="utf-8"))[1]
    return {chart["name"]: chart["views"] for chart in json.loads(zlib.decompress(base64.b64decode(packed)))["charts"]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_a_store_has_the_page_of_its_files(compare_html: Path, nights: Path, tmp_path: Path, kind: str):
    path = tmp_path / "x.html"
    with grounds(kind, tmp_path) as ground:
        for name in ("good", "bad"):
            loaded(ground.url, [nights / name], run=name)
        assert run(["compare", ground.url, *WORDS, "--by", "host,op", "-o", str(path)]) == 0
    expected = charts_of(compare_html)
    assert list(expected) == ["movers-host-op", "ratios", "movers-op", "movers-host", "curves", "shifts", "elapsed", "maps"]
    assert charts_of(path) == expected
    tables = [re.findall(r"<tbody>.*?</tbody>", one.read_text(encoding="utf-8"), re.DOTALL) for one in (path, compare_html)]
    assert tables[0] == tables[1] and len(tables[0]) == 4


@pytest.mark.slow
def test_runs_that_are_added_up_have_no_time_axis(nights: Path, tmp_path: Path):
    pytest.importorskip("vl_convert")
    written(tmp_path / "other", drawn(103), 22)
    path = tmp_path / "x.html"
    words = [
        str(nights / "good"),
        str(tmp_path / "other"),
        str(nights / "bad"),
        "--baseline",
        "[go]*",
        "--run",
        "bad",
        "--merge-runs",
    ]
    assert run(["compare", *words, "-o", str(path)]) == 0
    html = path.read_text(encoding="utf-8")
    assert 'id="maps"' not in html and 'id="elapsed"' not in html
    assert "several runs or kinds on one side have no common heat map" in html
    assert "<dd>48,000 and 24,000</dd>" in html
