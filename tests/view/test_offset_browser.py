"""Subsecond offsets in a real Chromium: pixels are counts, clicks tell what a plain loop counts, labels stay text."""

from __future__ import annotations

import csv
import json
import lzma
import random
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from event_files import description, event_file, reading
from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from oracles import offsets as oracle
from oracles import per_io
from oracles.shades import by_rank
from tests.browsing import UNFOLDED, shown
from tests.view.page import HOSTILE, choose, drag, rows_of, settle

MS, SECOND = oracle.MS, oracle.SECOND
ZERO = 1_789_999_200 * SECOND
TRACES = Path(__file__).parents[1] / "data" / "traces"
COPY = """(image) => {
  const copy = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context;
}"""
PIXELS = """() => {
  const { image, t, t2 } = tailboard.views.offsets.data("picture")[0], { width, height } = image;
  const { data } = COPY(image).getImageData(0, 0, width, height);
  const cells = [];
  for (let at = 0; at < width * height; at++) if (data[4 * at + 3]) cells.push([at % width, height - 1 - Math.floor(at / width), ...data.slice(4 * at, 4 * at + 3)]);
  return { t, t2, width, height, cells };
}"""
PIXELS = PIXELS.replace("COPY", f"({COPY})")
SMALL = f"""(at) => {{
  const image = document.querySelectorAll("#offset-each canvas")[at], {{ data }} = ({COPY})(image).getImageData(0, 0, image.width, image.height);
  return Array.from({{ length: image.width * image.height }}, (_, at) => data[4 * at + 3]);
}}"""
SPOT = """([column, row]) => {
  const view = tailboard.views.offsets, { image, t, t2 } = view.data("picture")[0], wide = (t2 - t) / image.width, rows = image.height;
  const [left, top] = view.origin(), pad = view.padding(), x = view.scale("x")(t + (column + 0.5) * wide), y = view.scale("y")(((row + 0.5) / rows) * view.signal("period"));
  return [pad.left + left + x, pad.top + top + y];
}"""


def made() -> list[tuple]:
    """A line, a rising diagonal, a process that is blocked with its blocker in the gap, arrivals; nothing in 23 to 26, 9 late."""
    dice = random.Random(2)
    rows = [(ZERO + at * SECOND + 250 * MS, 300_000, "a", "cron", "tick") for at in range(40)]
    rows += [(ZERO + lap * 1_060 * MS + at * 6 * MS, 100_000, "b", "collector") for lap in range(37) for at in range(10)]
    for tick in range(40 * 99):
        at = ZERO + tick * SECOND // 99
        rows.append((at, dice.randrange(2 * MS), "b", "zoneadmd" if 12.4 <= (at - ZERO) / SECOND < 14.1 else "riak"))
    rows += [
        (ZERO + dice.randrange(40 * SECOND), dice.randrange(MS), dice.choice("ab"), "sshd", "read", dice.randrange(1, 4))
        for _ in range(700)
    ]
    rows = sorted(row for row in rows if not 23 <= (row[0] - ZERO) // SECOND < 26)
    late = [row for row in rows if (row[0] - ZERO) // SECOND == 9]
    return [row for row in rows if row not in late] + late


def weight(row: tuple) -> int:
    return row[5] if len(row) > 5 else 1


def counted(rows: list[tuple], period: int = SECOND, height: int = 50) -> Counter:
    found = oracle.cells([("", row[0], weight(row)) for row in rows], period, height)
    return Counter({((at - ZERO) // period, row): count for (_, at, row), count in found.items()})


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    path = event_file(folder, made())
    assert (
        command(["report", str(path), "--input-format", str(description(folder)), "--jobs", "1", "-o", str(folder / "page.html")])
        == 0
    )
    return folder / "page.html"


@contextmanager
def opened(browser, path: Path, fragment: str = "", **context):
    with shown(browser, path, fragment, **{"size": {"width": 1400, "height": 2200}, **context}) as page:
        yield page


def pixels(page) -> dict:
    return page.evaluate(PIXELS)


def filled(page) -> set[tuple[int, int]]:
    return {(column, row) for column, row, *_ in pixels(page)["cells"]}


def says(page, name: str = "offsets-says") -> str:
    return " ".join(page.locator(f"#{name}").text_content().split())


def spot(page, column: int, row: int) -> tuple[float, float]:
    page.locator("#offsets").evaluate("chart => chart.scrollIntoView({block: 'center'})")
    box = page.locator("#offsets canvas").bounding_box()
    x, y = page.evaluate(SPOT, [column, row])
    return box["x"] + x, box["y"] + y


def click(page, column: int, row: int) -> str:
    page.mouse.click(*spot(page, column, row))
    settle(page)
    return says(page, "offset-cell")


def shade(colors: list[str], share: float) -> list[float]:
    stops = [[int(color.strip()[at : at + 2], 16) for at in (1, 3, 5)] for color in colors]
    low = min(int(share * (len(stops) - 1)), len(stops) - 2)
    part = share * (len(stops) - 1) - low
    return [one + part * (other - one) for one, other in zip(stops[low], stops[low + 1], strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
def test_every_pixel_is_a_count(browser, written: Path, scheme: str) -> None:
    expected = counted(made())
    with opened(browser, written, scheme=scheme) as page:
        found = pixels(page)
        assert (found["t"] * MS, found["t2"] * MS, found["width"], found["height"]) == (ZERO, ZERO + 40 * SECOND, 40, 50)
        assert {(column, row) for column, row, *_ in found["cells"]} == set(expected)
        ramp = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ramp')").split(",")
        counts, ranked = sorted(expected.values()), by_rank(expected.values())
        for scale in ("rank", "linear"):
            choose(page, "offset_shading", scale)
            for column, row, *color in pixels(page)["cells"]:
                count = expected[column, row]
                share = ranked[count] if scale == "rank" else count / counts[-1]
                assert color == pytest.approx(shade(ramp, share), abs=1), (column, row)  # of 254 shades
        assert [(row["t"] * MS, row["t2"] * MS) for row in rows_of(page, "offsets", "gaps")] == [
            (ZERO + 23 * SECOND, ZERO + 26 * SECOND)
        ]
        behind = sum(weight(row) for row in made() if (row[0] - ZERO) // SECOND == 9)
        assert [(row["t"] * MS, row["n"]) for row in rows_of(page, "offsets", "late")] == [(ZERO + 9 * SECOND, behind)]
        assert f"{sum(counts):,} events in view; fullest cell: {counts[-1]}, " in says(page)
        assert f"3 whole periods without any event of the run: shown in grey. {behind} events reported late: drawn" in says(page)
        column, row = min(expected)
        x, y = page.evaluate(SPOT, [column, row])
        at = f"([x, y]) => [...({COPY})(document.querySelector('#offsets canvas')).getImageData(x, y, 1, 1).data.slice(0, 3)]"
        drawn = next(color for one, other, *color in pixels(page)["cells"] if (one, other) == (column, row))
        assert page.evaluate(at, [x, y]) == pytest.approx(drawn, abs=2)  # what is on the screen is that cell


@pytest.mark.slow
def test_a_click_tells_what_a_loop_counts(browser, written: Path) -> None:
    expected = counted(made())
    with opened(browser, written) as page:
        for column, row in ((12, 12), (13, 40), max(expected, key=expected.get), (25, 3)):
            mine = [one for one in made() if (one[0] - ZERO) // SECOND == column and one[0] % SECOND // (20 * MS) == row]
            all_of = sum(weight(one) for one in made() if (one[0] - ZERO) // SECOND == column)
            text = click(page, column, row)
            count = sum(map(weight, mine))
            assert f", {20 * row} ms – {20 * row + 20} ms: {count} event" in text and (f": {count} events" in text) == (
                count != 1
            )
            assert not all_of or f"of the {all_of} events of its period." in text
            for label, place in (("host", 2), ("process", 3), ("operation", 4)):
                shares = Counter()
                for one in mine:
                    shares[one[place] if len(one) > place else "read"] += weight(one)
                words = ", ".join(
                    f"{name} {n} ({float(f'{100 * n / count:.3g}'):g} %)"
                    for name, n in sorted(shares.items(), key=lambda one: (-one[1], one[0]))
                )
                assert not count or f"By {label}: {words}." in text
            bars = {one["lower"] // (20 * MS): one["c"] for one in rows_of(page, "offset_column")}
            assert {at: n for at, n in bars.items() if n} == {at: n for (where, at), n in expected.items() if where == column}
        click(page, 12, 12)
        page.locator("#offsets").focus()
        for key, place in (("ArrowRight", (13, 12)), ("ArrowUp", (13, 13)), ("ArrowLeft", (12, 13)), ("ArrowDown", (12, 12))):
            page.keyboard.press(key)
            settle(page)
            assert page.evaluate("tailboard.state.offset_cell") == f"{place[0]},{place[1]}"
            assert page.evaluate("(({ t, lower }) => [t, lower])(tailboard.views.offsets.signal('pointed'))") == [
                ZERO // MS + place[0] * 1000,
                place[1] * 20 * MS,
            ]


@pytest.mark.slow
def test_the_cell_under_the_pointer_is_told(browser, written: Path) -> None:
    expected = counted(made())
    with opened(browser, written) as page:
        for column, row in ((12, 12), (30, 44)):
            x, y = spot(page, column, row)
            for step in (-2, -1, 0, 1):
                page.mouse.move(x + step, y)
                settle(page)
            page.locator("#vg-tooltip-element.visible").wait_for()
            words = " ".join(page.locator("#vg-tooltip-element").inner_text().split())
            assert f"offset {20 * row} ms – {20 * row + 20} ms events {expected[column, row]} of its period" in words
            assert page.evaluate("tailboard.state.offset_cell") == ""


@pytest.mark.slow
def test_the_latencies_of_a_column(browser, written: Path, tmp_path: Path) -> None:
    path = event_file(tmp_path, made())
    table = percentiles(
        Files([path], reading(tmp_path), jobs=1).answer(Question(step=SECOND)), Wanted(parse_percentiles("50,100"))
    ).columns
    at = table["start_ns"].tolist().index(ZERO + 30 * SECOND)
    with opened(browser, written) as page:
        click(page, 30, 20)
        text = says(page, "offset_latency-says")
        assert text.startswith(f"Latency (service) of 14:00:30 – 14:00:31 UTC: {table['count'][at]} samples, p50 ")
        value, unit = text.split("max ")[1].rstrip(".").split(" ")
        assert float(value) * {"µs": 1e3, "ms": 1e6}[unit] == pytest.approx(table["p100"][at], rel=1e-3)
        assert rows_of(page, "offset_latency")[-1]["cum"] == table["count"][at]
        click(page, 24, 20)
        assert page.locator("#offset_latency").is_hidden() and "0 events" in says(page, "offset-cell")


def tick(page, act: str, *names: str) -> None:
    for name in names:
        page.locator(f'#offset-list input[value="{name}"]').check()
    page.locator(f"[data-offsets={act}]").click()
    settle(page)


@pytest.mark.slow
def test_the_map_gives_its_cells_as_csv(browser, written: Path) -> None:
    with opened(browser, written) as page:
        with page.expect_download() as given:
            page.locator(".panel:has(#offsets) .tools summary").click()
            page.locator(".panel:has(#offsets) .tools").get_by_role("button", name="csv").click()
        rows = list(csv.DictReader(Path(given.value.path()).read_text(encoding="utf-8").splitlines()))
        expected = Counter(counted(made()).values())
        assert Counter(float(row["count"]) for row in rows) == expected and len(rows) == len(pixels(page)["cells"])
        assert all(int(row["end_ns"]) - int(row["start_ns"]) == SECOND for row in rows)


@pytest.mark.slow
def test_isolate_exclude_highlight(browser, written: Path) -> None:
    by_process = Counter()
    for row in made():
        by_process[row[3]] += weight(row)
    with opened(browser, written) as page:
        told = [" ".join(one.split()) for one in page.locator("#offset-list label").all_text_contents()]
        total = sum(by_process.values())
        assert told == [f"{name} {n:,} ({float(f'{100 * n / total:.3g}'):g} %)" for name, n in by_process.most_common()]
        tick(page, "only", "riak")
        riak = set(counted([row for row in made() if row[3] == "riak"]))
        assert filled(page) == riak and "Only process riak." in says(page)
        gap = {(second, row) for second in (12, 13, 14) for row in range(50)} - riak
        tick(page, "all")
        tick(page, "lit", "zoneadmd")
        expected, lit = counted(made()), counted([row for row in made() if row[3] == "zoneadmd"])
        ranked = by_rank(expected.values())
        assert gap <= set(lit)  # the blocker lies in the gap
        plain, red, gold = page.evaluate(
            """() => { const { colors } = themeOf(document.documentElement);
            return [colors.ramp, ...[0, 1].map((at) => shades.rampOf(colors.hues[at], colors))]; }"""
        )

        def mixed(lit: Counter, other: Counter) -> None:
            for column, row, *color in pixels(page)["cells"]:
                count, parts = expected[column, row], (lit[column, row], other[column, row])
                hue, many = (red, parts[0]) if parts[0] >= parts[1] else (gold, parts[1])
                part = 0 if not many else 1 if many == count else 0.15 + 0.7 * many / count
                ends = [shade(ramp, ranked[count]) for ramp in (plain, hue)]
                assert color == pytest.approx([one * (1 - part) + end * part for one, end in zip(*ends, strict=True)], abs=1.5)

        mixed(lit, Counter())
        assert says(page, "offset-lit") == f"process zoneadmd: {sum(lit.values())} of {total:,} events"
        tick(page, "lit", "zoneadmd", "cron")  # each has a hue of its own, and the legend says which
        other = counted([row for row in made() if row[3] == "cron"])
        mixed(lit, other)
        names = page.locator("#offset-lit span").all_text_contents()
        assert names == [
            f"process {name}: {sum(n.values())} of {total:,} events" for name, n in (("zoneadmd", lit), ("cron", other))
        ]
        dots = page.locator("#offset-lit i").evaluate_all("(dots) => dots.map((dot) => getComputedStyle(dot).backgroundColor)")
        assert len(set(dots)) == 2
        tick(page, "not", "riak", "sshd")
        rest = [row for row in made() if row[3] not in ("riak", "sshd")]
        assert filled(page) == set(counted(rest)) and "Without process riak, sshd." in says(page)
        choose(page, "offset_by", "host")
        tick(page, "only", "a")
        assert filled(page) == set(counted([row for row in rest if row[2] == "a"])) and "Only host a." in says(page)
        page.reload()
        settle(page)
        page.evaluate(UNFOLDED)
        settle(page)
        assert filled(page) == set(counted([row for row in rest if row[2] == "a"]))  # the address holds it
        tick(page, "all")
        choose(page, "host", "b")
        assert filled(page) == set(counted([row for row in made() if row[2] == "b"]))


@pytest.mark.slow
def test_each_by_itself(browser, written: Path) -> None:
    """A small map of each value, on the columns and rows of all."""
    with opened(browser, written, "#offset_by=process&offset_each=each") as page:
        captions = page.locator("#offset-each figcaption").all_text_contents()
        assert sorted(one.split(":")[0] for one in captions) == sorted({row[3] for row in made()})
        for at, caption in enumerate(captions):
            mine = [row for row in made() if row[3] == caption.split(":")[0]]
            assert caption.endswith(f": {sum(map(weight, mine)):,} events")
            alpha = page.evaluate(SMALL, at)
            assert {(at % 40, 49 - at // 40) for at, value in enumerate(alpha) if value} == set(counted(mine))
        choose(page, "offset_by", "host")
        assert page.locator("#offset-each figure").count() == 2
        choose(page, "offset_each", "")
        assert page.locator("#offset-each figure").count() == 0


@pytest.mark.slow
def test_other_periods_and_a_part_of_the_time(browser, written: Path) -> None:
    with opened(browser, written) as page:
        offered = page.locator("[name=offset_rows] option").all_text_contents()
        assert offered == ["10", "20", "24", "25", "49", "50", "60", "99", "100"]
        choose(page, "offset_rows", "25")
        assert filled(page) == set(counted(made(), SECOND, 25))
        choose(page, "offset_rows", "49")
        assert "49 rows do not match the ticks of 1 ms: counts are split by overlap." in says(page)
        choose(page, "offset_rows", "50")
        choose(page, "offset_period", "60000")
        assert filled(page) == set(counted(made(), 60 * SECOND, 50))
        choose(page, "offset_period", "100")
        assert filled(page) == set(counted(made(), 100 * MS, 50))
        choose(page, "offset_period", "1000")
        drag(page, "offsets", ZERO / MS + 10_200, ZERO / MS + 15_100)
        found = pixels(page)
        assert (found["t"] * MS - ZERO) // SECOND == 10 and found["width"] == 6
        assert {(column + 10, row) for column, row, *_ in found["cells"]} == {
            cell for cell in counted(made()) if 10 <= cell[0] < 16
        }
        page.keyboard.press("Escape")
        settle(page)
        assert filled(page) == set(counted(made()))


@pytest.mark.slow
def test_labels_are_text(browser, tmp_path: Path) -> None:
    names = [name.replace("\u2028", " ").replace('"', "''") for name in HOSTILE]
    rows = [(ZERO + at * 10 * MS, 1000, "h", f'"{names[at % len(names)]}"') for at in range(2_000)]
    path = event_file(tmp_path, rows)
    page_file = tmp_path / "page.html"
    assert command(["report", str(path), "--input-format", str(description(tmp_path)), "--jobs", "1", "-o", str(page_file)]) == 0
    with opened(browser, page_file) as page:
        boxes = page.locator("#offset-list input").all()
        assert len(boxes) == len(HOSTILE)
        for box in boxes:
            box.check()
        page.locator("[data-offsets=lit]").click()
        settle(page)
        assert "<img src=x" in click(page, 3, 10) + says(page) and page.evaluate("typeof hacked") == "undefined"
        assert page.locator("#offset-list img, #offset-cell b").count() == 0
        for broken in ("{", '{"process": 7}', '{"nothing": ["x"]}', "[1]", "null"):
            page.evaluate(
                "(text) => (location.hash = text)", f"offset_only={quote(broken)}&offset_cell=x,y&offset_rows=7&offset_period=abc"
            )
            settle(page)
            assert pixels(page)["width"] == 20 and len(filled(page)) == 1000 and page.locator("#offset-details").is_hidden()


@pytest.mark.slow
def test_a_recording_without_latencies_has_a_page_of_its_own(browser, tmp_path: Path) -> None:
    path = tmp_path / "cpu.perf"
    path.write_bytes(lzma.decompress((TRACES / "cpu.txt.xz").read_bytes()))
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", str(path), "--run", "cpu", "--store", store]) == 0
    assert command(["load", str(TRACES / "boot.txt.xz"), "--run", "boot", "--store", store, "--t0", "2026-11-21T15:00:00Z"]) == 0
    for name, words in (("files", [str(path)]), ("store", [store]), ("one", [store, "--run", "cpu"])):
        assert command(["report", *words, "-o", str(tmp_path / f"{name}.html")]) == 0
    logs = event_file(tmp_path, made())
    assert command(["load", str(logs), "--input-format", str(description(tmp_path)), "--run", "timed", "--store", store]) == 0
    assert command(["report", store, "-o", str(tmp_path / "mixed.html")]) == 0
    with opened(browser, tmp_path / "mixed.html") as page:
        assert filled(page) == set(counted(made())) and page.locator("#percentiles").is_visible()
        notes = page.locator("#notes").text_content()
        assert all(f"{run} has no latencies: a report of this run only shows its offsets" in notes for run in ("boot", "cpu"))
    assert command(["report", store, "--where", "kind=nothing", "-o", str(tmp_path / "none.html")]) == 3
    seen = []
    for name in ("files", "one"):
        with opened(browser, tmp_path / f"{name}.html") as page:
            assert "Subsecond offsets of" in page.title() and page.locator("#percentiles, #heatmap").count() == 0
            seen.append(json.dumps(pixels(page)))
            assert (
                name == "one"
                or "20 samples of idle CPUs (--keep-idle keeps them), left out" in page.locator("#notes").text_content()
            )
            assert "27 events in view" in says(page) and page.locator("dd", has_text="only times of events").count() == 1
    assert seen[0] == seen[1]
    with opened(browser, tmp_path / "store.html") as page:
        choose(page, "run", "cpu")
        assert json.dumps(pixels(page)) == seen[0]
        choose(page, "run", "boot")
        assert json.dumps(pixels(page)) != seen[0]


@pytest.mark.slow
def test_histograms_have_no_offsets(browser, tmp_path: Path) -> None:
    logs = [str(path) for path in per_io.histogram_files(TRACES.parent / "fio" / "randrw")]
    assert command(["report", *logs, "-o", str(tmp_path / "page.html")]) == 0
    with opened(browser, tmp_path / "page.html") as page:
        assert page.locator("#offsets").count() == 0 and page.locator("#percentiles").count() == 1
