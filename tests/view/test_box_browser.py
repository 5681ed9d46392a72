"""A box explained in the report, in a real Chromium: the page counts as the query layer does, says which box, and by keyboard."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from effort import figure
from event_files import event_file, reading
from ingest.cli import run as command
from ingest.core.units import Instant
from ingest.query.batch_means import MORE
from ingest.query.box import SIDES, Box, box_offsets, explained
from ingest.query.files import Files
from ingest.query.overview import AN_OCTAVE, MOST_CELL_WINDOWS, coarser
from ingest.query.question import Question
from ingest.view.boxes import offsets_sentence, sentences
from ingest.view.page.panels import box as box_section
from ingest.view.page.report import parts_of
from ingest.view.page.template import page_of
from tests.browsing import shown
from tests.doubles.origin import SECOND, ZERO, Made, random_rows, series
from tests.query.test_box import THREE_HOSTS, ticking
from tests.query.test_box import ZERO as TICKING
from tests.strategies import FIO_LAYOUTS, HDR_LAYOUTS
from tests.view.page import HOSTILE, choose, place, settle, until

MS = 1_000_000
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
COUNTED = """async ([text, op, against]) => {
  const { run, content } = { run: tailboard.content.runs[0], content: tailboard.content };
  const data = await boxes.unpack(content.sections.box[run.name]), box = { ...boxes.snapped(data, boxes.parsed(text), run.start), against };
  const what = boxes.explained(data, box, (key) => key.kind === tailboard.state.kind && (!op || key.op === op));
  const rows = what.rows.map(({ label, value, counts, low, high, verdict }) => ({ label, value, counts, low: Number.isNaN(low) ? null : low, high: Number.isNaN(high) ? null : high, verdict }));
  const spread = data.edges.slice(0, -1).map((edge, bin) => [edge, ...["inside", "outside", "during", "other"].map((side) => what.bins[side][bin])]).filter(([, a, b]) => a || b);
  return { spread, used: box.used, inside: what.inside, outside: what.outside, filled: what.filled, rows }; }"""


USED = """async () => { const { run, content, state } = { run: tailboard.content.runs[0], content: tailboard.content, state: tailboard.state };
  const { used } = boxes.snapped(await boxes.unpack(content.sections.box[run.name]), boxes.parsed(state.box), run.start);
  return [used.from, used.to]; }"""


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> Path:
    """The report of the example."""
    path = tmp_path_factory.mktemp("box") / "report.html"
    assert command(["report", str(EXAMPLE), "-o", str(path)]) == 0
    return path


def drawn(noise: random.Random) -> str:
    """Return a random state `box`: from, to, low, high in s and ms, some of them open."""
    begin, end = sorted(noise.uniform(-5, 85) for _ in range(2))
    low, high = sorted(10 ** noise.uniform(-1.5, 3.8) for _ in range(2))
    kept = [noise.random() < 0.8 for _ in range(4)]
    texts = [f"{begin:.3f}", f"{end + 0.01:.3f}", f"{low:.4f}", f"{high + 0.01:.4f}"]
    return ",".join(text if keep else "" for text, keep in zip(texts, kept, strict=True))


def asked(files: Files, used: dict, where: dict[str, str], against: str = ""):
    """Return what the query layer says of the box that the page used."""
    start = files.runs()[0].start_ns
    begin, end = (None if used[name] is None else Instant(round(used[name] * 1e6) * 1000 + start) for name in ("from", "to"))
    return explained(
        files,
        Question(where=where),
        Box(begin, end, int(used["low"] or 0), used["high"] and int(used["high"])),
        against or "rest",
    )


@pytest.mark.slow
def test_random_boxes_on_the_page_equal_the_query_layer(browser, reported: Path) -> None:
    files, noise, filled = Files([EXAMPLE], jobs=1), random.Random(21), 0
    with shown(browser, reported) as page:
        for _ in range(figure(6, 10, 40)):
            text, op, against = drawn(noise), noise.choice(("", "read")), noise.choice(("", "before", "after", "time"))
            if text == ",,,":
                continue
            found = page.evaluate(COUNTED, [text, op, against])
            answer = asked(files, found["used"], {"op": op} if op else {}, against)
            columns = answer.table.columns
            assert (found["inside"], found["outside"], found["filled"]) == (answer.inside, answer.outside, answer.windows)
            counts = zip(columns["inside"].tolist(), columns["outside"].tolist(), strict=True)
            spread = [answer.distribution.columns[name].tolist() for name in ("lower", *SIDES)]
            assert found["spread"] == [list(row) for row in zip(*spread, strict=True)]
            rows = {(row["label"], row["value"]): row for row in found["rows"]}
            assert set(rows) == set(zip(columns["label"], columns["value"], strict=True))
            bounds = zip(columns["lo"].tolist(), columns["hi"].tolist(), columns["verdict"], strict=True)
            for key, sums, (low, high, verdict) in zip(
                zip(columns["label"], columns["value"], strict=True), counts, bounds, strict=True
            ):
                assert rows[key]["counts"] == list(sums)
                assert rows[key]["verdict"] == verdict or not answer.inside
                for own, other in ((rows[key]["low"], low), (rows[key]["high"], high)):
                    assert (own is None) == (other != other)
                    assert own is None or own == pytest.approx(other, rel=1e-4, abs=1e-9)
            filled += answer.inside > 0
    assert filled > 2


@pytest.mark.slow
def test_the_box_holds_what_was_asked_and_no_window_or_bin_more(browser, reported: Path) -> None:
    noise = random.Random(5)
    with shown(browser, reported) as page:
        edges = page.evaluate("tailboard.content.sections.box[tailboard.content.runs[0].name].edges.map(Number)")
        for _ in range(figure(20, 50, 300)):
            text = drawn(noise)
            if text == ",,,":
                continue
            used = page.evaluate(COUNTED, [text, "", ""])["used"]
            begin, end, low, high = (float(part) if part else None for part in text.split(","))
            if begin is not None and 0 < begin < 70:
                assert begin - 1.001 < used["from"] <= begin + 0.001
            if end is not None and 1 < end < 70:
                assert end - 0.001 <= used["to"] < end + 1.001
            if low is not None and low * 1e6 < edges[-1]:
                assert used["low"] == max(edge for edge in edges if edge <= low * 1e6)
            if high is not None and used["high"] is not None:
                assert used["high"] == min(edge for edge in edges if edge >= high * 1e6)


@pytest.mark.slow
def test_the_stall_names_ceph_b_and_the_fields_and_the_address_hold_the_box(browser, reported: Path) -> None:
    with shown(browser, reported) as page:
        assert page.inner_text("#box") == ""
        for name, value in (("from", "26"), ("to", "36"), ("low", "1000")):
            page.locator(f"#box-{name}").fill(value)
            page.keyboard.press("Tab")  # by keyboard alone
        settle(page)
        first = page.locator("#box .verdict").first.inner_text()
        assert first.startswith("host ceph-b made 4 of the 4 samples in the box (100 %, of all others 38.5 %): 2.6 times")
        assert "box=26%2C36%2C1000%2C" in page.evaluate("location.hash")
        assert page.inner_text("#box code").endswith("--run cbt-archive/00000000/id-9b5d006f --box +26s..+36s,1000ms..")
        assert page.locator("#box tbody tr").first.inner_text().split("\t")[:3] == ["host", "ceph-b", "4"]
        choose(page, "op", "write")
        assert "2 of the 2 samples" in page.locator("#box .verdict").first.inner_text()
        assert "--where op=write" in page.inner_text("#box code")
        page.locator("#box-clear").click()
        settle(page)
        assert page.inner_text("#box") == ""
        assert (
            page.evaluate("['from', 'to', 'low', 'high'].map(name => document.getElementById(`box-${name}`).value)") == [""] * 4
        )


@pytest.mark.slow
def test_the_offsets_of_a_box_are_those_of_the_query(browser, tmp_path: Path) -> None:
    path, described = event_file(tmp_path, ticking()), tmp_path / "events.yml"
    files = Files([path], reading(tmp_path), jobs=1)
    words = ["report", str(path), "--input-format", str(described), "-o", str(tmp_path / "report.html")]
    assert command(words) == 0
    start = files.runs()[0].start_ns
    with shown(browser, tmp_path / "report.html") as page:
        for begin, end in ((12, 18), (25, 31), (0, 3.5), (None, 7), (33.2, None)):
            at = ["" if edge is None else (TICKING + edge * SECOND - start) / SECOND for edge in (begin, end)]
            for name, value in zip(("from", "to", "low"), (*at, 1), strict=True):
                page.locator(f"#box-{name}").fill(str(value))
                page.keyboard.press("Tab")
            settle(page)
            used = page.evaluate(USED)
            spans = {"r": tuple(None if edge is None else round((start + edge * SECOND) / MS) * MS for edge in used)}
            offsets = box_offsets(files, Question(), spans)
            found = page.evaluate("tailboard.boxOffsets")
            assert (found["inside"], found["outside"]) == (offsets.inside.tolist(), offsets.outside.tolist())
            captions = page.locator("#box figcaption").all_inner_texts()
            assert captions[-1].startswith(offsets_sentence(offsets))
            assert "of its time above the line" in captions[0]
        assert page.locator("#box figure svg").count() == 2
        page.locator("#box-to").fill("1")  # before its beginning: it is said, and what was typed stays
        page.keyboard.press("Tab")
        assert page.inner_text("#box") == "This box ends before it begins: change one of its ends."
        assert float(page.locator("#box-from").input_value()) > 1 == float(page.locator("#box-to").input_value())


IN_VIEW = """() => { const { top, bottom } = document.getElementById('boxed').getBoundingClientRect();
  return bottom > top && top >= document.querySelector('.controls').getBoundingClientRect().bottom && bottom < innerHeight + 1; }"""


@pytest.mark.slow
def test_a_box_is_answered_where_it_was_drawn_and_who_made_it_leads(browser, tmp_path: Path) -> None:
    shutil.unpack_archive(THREE_HOSTS, tmp_path, filter="data")
    assert command(["report", str(tmp_path / "results"), "-o", str(tmp_path / "report.html")]) == 0
    with shown(browser, tmp_path / "report.html", size={"width": 1200, "height": 600}) as page:
        start = page.evaluate("tailboard.content.runs[0].start")
        corners = [page.evaluate(f"tailboard.views.heatmap.scale('y')({value})") for value in (190e6, 45e6)]
        (left, top), (right, _) = (place(page, "heatmap", start + at * 1000, 0) for at in (17.5, 41.5))
        assert page.inner_text("#boxed") == ""
        page.mouse.move(left, top + corners[0])
        page.mouse.down()
        page.mouse.move((left + right) / 2, top + corners[1], steps=3)
        until(page, "document.querySelector('#boxed .verdict') !== null")  # while the hand still moves
        half = page.inner_text("#boxed .verdict")
        assert half.startswith("host node3 made ") and page.evaluate("location.hash") == ""
        page.mouse.move(right, top + corners[1])
        page.mouse.up()
        settle(page)
        words = page.locator("#box .verdict").all_inner_texts()
        assert words[0].startswith("host node3 made ") and words[2].startswith("operation write made ")
        assert page.inner_text("#boxed .verdict") == words[0] != half
        assert page.evaluate(IN_VIEW)
        card = page.locator("#boxed").bounding_box()
        assert card["x"] + card["width"] < left or card["x"] > right  # beside the box, over the map
        assert top < card["y"] + 20 < top + page.evaluate("tailboard.views.heatmap.height()")
        tip = page.evaluate("document.querySelector('#vg-tooltip-element.visible')?.getBoundingClientRect().toJSON()")
        assert not tip or tip["right"] <= card["x"] or tip["left"] >= card["x"] + card["width"], "it covers the answer"
        page.locator("#boxed select").focus()
        page.locator("#boxed select").select_option("before")
        settle(page)
        assert "of all before it" in page.inner_text("#boxed .verdict") and "against=before" in page.evaluate("location.hash")
        assert "held against" in page.inner_text("#box") and page.inner_text("#box code").endswith("--against before")
        assert page.evaluate("document.activeElement.name") == "against"  # a keyboard goes on from there
        page.locator("#boxed button").click()
        assert page.evaluate("document.getElementById('box-panel').getBoundingClientRect().top") < 300
        page.evaluate("scrollTo(0, 0)")
        page.locator("#box-from").evaluate(
            "field => { field.value = 20; field.dispatchEvent(new Event('change', { bubbles: true })); }"
        )
        settle(page)
        page.keyboard.press("Escape")
        settle(page)
        assert page.inner_text("#boxed") == ""


@pytest.mark.slow
def test_a_box_drawn_by_keys_is_answered_in_view_and_one_of_the_address_moves_nothing(browser, reported: Path) -> None:
    with shown(browser, reported, "#box=26,36,1000,", size={"width": 1200, "height": 420}) as page:
        assert page.inner_text("#boxed").startswith("host ceph-b made 4 of the 4 samples in the box")
        assert page.evaluate("scrollY") == 0
        page.locator("#heatmap").focus()
        for key in ("ArrowRight", "ArrowDown", "b", "ArrowRight", "ArrowRight", "ArrowDown", "b"):
            page.keyboard.press(key)
        settle(page)
        assert not page.inner_text("#boxed").startswith("host ceph-b made 4 of the 4")
        assert page.evaluate(IN_VIEW)


@pytest.mark.slow
def test_a_box_from_the_address_says_what_text_says(browser, reported: Path) -> None:
    with shown(browser, reported, "#box=,,10,20") as page:
        words = page.locator("#box .verdict").all_inner_texts()
    answer = asked(Files([EXAMPLE], jobs=1), {"from": None, "to": None, "low": 9_437_184, "high": 20_971_520}, {})
    assert answer.table.columns["verdict"][0] == MORE
    expected = sentences(answer)
    assert [text.split(" (")[0] for text in words] == [text.split(" (")[0].replace("op ", "operation ") for text in expected]
    assert [text.split(": ")[1] for text in words] == [text.split(": ")[1] for text in expected]


@pytest.mark.slow
def test_what_is_no_box_shows_none(browser, reported: Path) -> None:
    with shown(browser, reported) as page:
        for text in (",,,", "5,2,,", ",,7,7", "a,b,c,d", "1,2,3", "1e999,,,")[:: figure(2, 2, 1)]:
            page.evaluate("text => { location.hash = `box=${text}`; }", ",,10,20")
            page.wait_for_selector("#box .verdict")
            page.evaluate("text => { location.hash = `box=${text}`; }", text)
            page.wait_for_selector("#box .verdict", state="detached")
            settle(page)
            assert page.inner_text("#box") == "", text


@pytest.mark.slow
def test_names_do_nothing_and_what_does_not_fit_is_named(browser, tmp_path, monkeypatch) -> None:
    noise = random.Random(1)
    rows = [
        (series("read", f"h{number % 15}", HOSTILE[number % 5] + str(number)), at, {900 + number: noise.randrange(1, 4000)})
        for number in range(40)
        for at in range(30)
    ]
    path = tmp_path / "report.html"
    overviews = Made(rows).overviews("op")
    smallest = box_section._content(coarser(coarser(overviews[0].boxes)))
    monkeypatch.setattr(box_section, "MOST_CHARACTERS", box_section._size(smallest) - 1)
    path.write_text(page_of(parts_of(overviews)), encoding="utf-8")
    with shown(browser, path, "#box=0,5,,") as page:
        assert page.evaluate("window.hacked") is None
        largest = max(smallest["labels"][1:], key=lambda label: len(label["data"]))
        values = len({key["value"] for key in largest["keys"]})
        assert values > 2 and f"Not counted on this page: {largest['name']} ({values} values)." in page.inner_text("#box")
        assert "windows of 4 s" in page.inner_text("#box")
        assert page.locator("#box tbody tr").count() > 1


@pytest.mark.parametrize("layout", FIO_LAYOUTS + HDR_LAYOUTS, ids=str)
def test_edges_of_the_page_are_edges_of_the_stored_bins(layout) -> None:
    coarse = layout.coarser(AN_OCTAVE)
    assert layout.nests_in(coarse)
    assert coarse.half >> coarse.coarseness <= 8
    assert coarse == coarse.coarser(AN_OCTAVE)
    pairs = zip(coarse.edges[:-2].tolist(), coarse.edges[1:-1].tolist(), strict=True)
    widths = [(high - low) / low for low, high in pairs if low >= 16 * coarse.first_ns]
    assert max(widths) == 1 / min(8, layout.half >> layout.coarseness)


def test_cells_hold_every_sample_of_every_label_once() -> None:
    made = Made(random_rows(3, windows=300, hosts=3, threads=2))
    overview, *_ = made.overviews()
    assert overview.boxes is not None
    step = overview.boxes.step_ns
    assert -(-300 * SECOND // step) <= MOST_CELL_WINDOWS
    expected: dict[tuple[str, str, str], int] = {}
    for one, at, counts in made.rows:
        window = (ZERO + at * SECOND) // step * step
        for name in ("op", "host", "job"):
            key = (name, getattr(one, name), window)
            expected[key] = expected.get(key, 0) + sum(counts.values())
    found: dict[tuple[str, str, str], int] = {}
    assert set(overview.boxes.labels) == {"op", "host", "job"}
    for name, rows in overview.boxes.labels.items():
        for code, start, samples in zip(rows.series.tolist(), rows.start_ns.tolist(), rows.samples.tolist(), strict=True):
            key = (name, rows.table[code][0], start)
            found[key] = found.get(key, 0) + samples
    assert found == expected
