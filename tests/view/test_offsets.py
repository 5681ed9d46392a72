"""The offset map as people see it: under both Vega versions, as a picture without a browser, on a terminal. Held by counts."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from event_files import event_file, reading
from ingest.core.errors import UsageError
from ingest.core.offsets import Periods
from ingest.core.units import utc
from ingest.query.files import Files
from ingest.query.offsets import OffsetMap, WantedOffsets, from_files, highlighted, joined
from ingest.query.question import Question
from ingest.view import pictures, vega
from ingest.view.terminal import offsets as offset_terminal
from oracles import offsets as oracle
from oracles.shades import by_rank
from tests.browsing import missing
from tests.vega.drawn import DARK, LIGHT, drawing, installed

MS, SECOND = oracle.MS, oracle.SECOND
ZERO = 1_789_999_200 * SECOND
HOSTILE = "</script><script>alert(1)</script>"


def rows_of(seconds: int = 20) -> list[tuple]:
    """Random events, one line at 250 ms, nothing at all in seconds 9 to 11, second 4 reported at the end."""
    dice = random.Random(3)
    rows = [(ZERO + dice.randrange(seconds * SECOND), 0, "h", "p0") for _ in range(900)]
    rows += [(ZERO + second * SECOND + 250 * MS, 0, "h", "p1", "read", 9) for second in range(seconds)]
    rows = sorted(row for row in rows if not 9 <= (row[0] - ZERO) // SECOND < 12)
    late = [row for row in rows if (row[0] - ZERO) // SECOND == 4]
    return [row for row in rows if row not in late] + late


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("offsets")
    event_file(path, rows_of())
    return path


def mapped(folder: Path, **words) -> OffsetMap:
    question = Question(by=words.pop("by", ()))
    return from_files(Files([folder / "events.csv"], reading(folder), jobs=1), WantedOffsets(question, **words))


@pytest.fixture(scope="module")
def answer(folder: Path) -> OffsetMap:
    return mapped(folder)


def expected(period: int = SECOND, rows: int = 50) -> Counter:
    return oracle.cells([("", row[0], row[5] if len(row) > 5 else 1) for row in rows_of()], period, rows)


def test_tables_hold_every_cell(answer: OffsetMap) -> None:
    cells = pictures.offset_cells(answer)
    assert {("", round(t * MS), low * 50 // SECOND): c for t, low, c in zip(cells["t"], cells["lower"], cells["c"])} == expected()
    of_period = Counter()
    for (_, start, _), count in expected().items():
        of_period[start // MS] += count
    for t, t2, lower, upper, n in zip(*(cells[name] for name in ("t", "t2", "lower", "upper", "n"))):
        assert (t2 - t, upper - lower, n) == (1000, 20 * MS, of_period[t])
    assert pictures.gaps(answer) == {"t": [(ZERO + 9 * SECOND) / MS], "t2": [(ZERO + 12 * SECOND) / MS]}
    late = sum(row[5] if len(row) > 5 else 1 for row in rows_of() if (row[0] - ZERO) // SECOND == 4)
    assert pictures.late(answer) == {"t": [(ZERO + 4 * SECOND) / MS], "t2": [(ZERO + 5 * SECOND) / MS], "n": [late]}


@pytest.fixture
def page(browser, request):
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    major, colors = request.param
    with drawing(browser, major, colors) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param((5, LIGHT), marks=pytest.mark.slow), pytest.param((5, DARK), marks=pytest.mark.slow), (6, LIGHT), (6, DARK)],
    indirect=True,
)
def test_every_cell_is_drawn_where_it_belongs(page, answer: OffsetMap) -> None:
    page.draw(pictures.picture(answer))
    boxes = page.marks("heat")
    cells = pictures.offset_cells(answer)
    assert len(boxes) == len(cells["c"]) == len(expected())
    low, high = min(box["x1"] for box in boxes), max(box["x2"] for box in boxes)
    top, bottom = min(box["y1"] for box in boxes), max(box["y2"] for box in boxes)
    for box, t, lower in zip(boxes, cells["t"], cells["lower"]):
        assert abs(box["x1"] - (low + (t * MS - ZERO) / (20 * SECOND) * (high - low))) <= 1.5
        assert abs(box["y2"] - (bottom - lower / SECOND * (bottom - top))) <= 1.5
    assert boxes[int(np.argmax(cells["c"]))]["fill"] == "rgb(8, 48, 107)"
    [gap], [late] = page.marks("missing"), page.marks("late_columns")
    assert abs(gap["x1"] - (low + 9 / 20 * (high - low))) <= 1.5 and abs(gap["x2"] - (low + 12 / 20 * (high - low))) <= 1.5
    assert abs(late["x1"] - (low + 4 / 20 * (high - low))) <= 1.5 and late["y2"] <= top
    assert not any(gap["x1"] < (box["x1"] + box["x2"]) / 2 < gap["x2"] for box in boxes)


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param((5, LIGHT), marks=pytest.mark.slow), (6, LIGHT)], indirect=True)
def test_rank_or_linear_and_what_is_clicked(page, answer: OffsetMap) -> None:
    page.draw(pictures.picture(answer))
    cells = pictures.offset_cells(answer)
    most, expected = max(cells["c"]), by_rank(cells["c"])
    assert [row["shade"] for row in page.table("shown")] == pytest.approx([expected[count] for count in cells["c"]])
    page.choose(shading="linear")
    assert [row["shade"] for row in page.table("shown")] == pytest.approx([count / most for count in cells["c"]])
    ones = [place for place, count in enumerate(cells["c"]) if count == 1]
    box = page.marks("heat")[ones[7]]
    place = page.page.locator("#place canvas").bounding_box()
    page.page.mouse.click(place["x"] + (box["x1"] + box["x2"]) / 2, place["y"] + (box["y1"] + box["y2"]) / 2)
    picked = page.page.evaluate("() => [view.signal('picked').t, view.signal('picked').lower, view.signal('picked').c]")
    assert picked == [cells["t"][ones[7]], cells["lower"][ones[7]], 1]


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param((5, LIGHT), marks=pytest.mark.slow), (6, LIGHT)], indirect=True)
def test_odd_tables_draw_without_a_warning(page) -> None:
    row = {"t": ZERO / MS, "t2": ZERO / MS + 1000, "lower": 0, "upper": 20 * MS, "c": 1, "n": 1}
    for cells, period in (([], SECOND), ([row], SECOND), ([row], 60 * SECOND), ([row], 3600 * SECOND), ([row], 86_400 * SECOND)):
        tables = {
            "cells": cells,
            "gaps": [],
            "late": [{"t": row["t"], "t2": row["t2"], "n": 3}],
            "marks": [{"t": row["t"], "text": HOSTILE}],
        }
        spec = vega.spec("offsets")
        spec["data"] = [
            {**entry, "values": tables[entry["name"]]} if entry.keys() == {"name"} else entry for entry in spec["data"]
        ]
        spec["signals"] = [{**one, "value": period} if one["name"] == "period" else one for one in spec["signals"]]
        page.draw(spec)
        assert len(page.marks("heat")) == len(cells)


@pytest.mark.slow
def test_a_picture_without_a_browser(answer: OffsetMap) -> None:
    pytest.importorskip("vl_convert")
    svg = pictures.drawn(pictures.picture(answer, "linear"), "svg").decode()
    drawn = re.search(r'<g class="mark-rect role-mark heat"[^>]*>(.*?)</g>', svg, re.DOTALL)[1]
    assert len(re.findall(r"<path ", drawn)) == len(expected())
    assert f"offset within each 1s, 50 rows, {sum(expected().values()):,} events" in svg and "shaded in proportion" in svg


@pytest.mark.slow
def test_a_picture_shows_one_group(folder: Path) -> None:
    with pytest.raises(UsageError, match="shows one group, here are p0, p1: choose with --where"):
        pictures.picture(mapped(folder, by=("process",)))


@pytest.fixture(scope="module")
def lit(folder: Path, answer: OffsetMap) -> OffsetMap:
    return highlighted(answer, mapped(folder, lit={"process": "p1"}))


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param((5, LIGHT), marks=pytest.mark.slow), (6, LIGHT)], indirect=True)
def test_what_is_highlighted_has_a_hue_of_its_own(page, lit: OffsetMap) -> None:
    spec = pictures.picture(lit, highlight="process=p1")
    assert spec["title"]["subtitle"][1] == f"process=p1 in red: 153 of {lit.samples:,} events"
    page.draw(spec)
    cells = pictures.offset_cells(lit)
    boxes = page.marks("heat")
    reds = []
    for box, t, lower, many in zip(boxes, cells["t"], cells["lower"], cells["lit"]):
        red, _, blue = (int(number) for number in re.findall(r"\d+", box["fill"])[:3])
        reds.append(red > blue)
        assert (many > 0) == (lower == 240 * MS) and many in (0, 9)
        assert many == 0 or lower == 240 * MS and round(t * MS) % SECOND == 0
    assert sum(cells["lit"]) == 9 * 17
    whole = [many == count for many, count in zip(cells["lit"], cells["c"])]
    assert all(red for red, full in zip(reds, whole) if full) and not any(
        red for red, many in zip(reds, cells["lit"]) if not many
    )


def test_the_terminal_tells_what_is_highlighted(lit: OffsetMap) -> None:
    lines = shown(lit, 60)
    line = next(one for one in lines if one.lstrip().startswith("240ms "))
    others = [one for one in lines if re.match(r" +[0-9.]+[mn]s ", one) and one != line]
    assert len(others) == 24 and not any(letter.isalpha() for one in others for letter in one[8:])
    assert all(letter.isupper() or letter == "?" for letter in line[8:28])
    assert f"highlighted (letters, capital where they are half of a cell or more): 153 of {lit.samples:,}" in lines[-1]
    wide, _ = joined(lit, 7)
    assert wide.lit is not None and int(wide.lit.counts.sum()) == 153


def test_more_periods_than_there_is_room_for_are_added_up_offset_by_offset(answer: OffsetMap) -> None:
    wide, width = joined(answer, 7)
    found = Counter()
    for (_, start, row), count in expected().items():
        found[(start - ZERO) // (3 * SECOND), row] += count
    part = wide.cells
    rows = zip((part.start_ns[part.row] - ZERO) // (3 * SECOND), part.bins, part.counts)
    assert width == 3 * SECOND and {(int(column), int(row)): int(count) for column, row, count in rows} == found
    assert joined(answer, 20) == (answer, SECOND)


def shown(answer: OffsetMap, width: int, shading: str = "rank") -> list[str]:
    out = io.StringIO()
    lines = offset_terminal.heading(answer)
    offset_terminal.print_offsets(answer, lines, utc, shading, console=Console(file=out, width=width))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("shading", ["rank", "linear"])
def test_the_terminal_shows_every_cell_and_what_is_marked(answer: OffsetMap, shading: str) -> None:
    lines = shown(answer, 60, shading)
    assert lines[0].startswith("offsets of r: ") and "(files) by offset within each 1s, 50 rows of 20.0ms" in lines[0]
    marks = next(number for number, line in enumerate(lines) if line.strip() == "!")
    assert lines[marks].index("!") == 8 + 4
    counts = Counter()
    for (_, start, row), count in expected().items():
        counts[row // 2, (start - ZERO) // SECOND] += count
    drawn = {}
    for row, line in enumerate(reversed(lines[marks + 1 : marks + 26])):
        for column, letter in enumerate(line[8:28].ljust(20)):
            drawn[row, column] = letter
    for cell, letter in drawn.items():
        assert (letter == "?") == (9 <= cell[1] < 12)
        assert (letter in " ?") == (cell not in counts), cell
    assert drawn[max(counts, key=counts.get)] == "@"
    assert (
        "?: nothing recorded; !: reported late" in lines[-1]
        and f"shaded {dict(rank='by rank', linear='in proportion')[shading]}" in lines[-1]
    )


@pytest.mark.slow
def test_the_terminal_has_each_group_and_colours(folder: Path) -> None:
    out = io.StringIO()
    answer = mapped(folder, by=("process",), periods=Periods(rows=10))
    offset_terminal.print_offsets(
        answer, (), utc, console=Console(file=out, width=60, force_terminal=True, color_system="truecolor")
    )
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()
    assert [line for line in plain if line in ("p0", "p1")] == ["p0", "p1"]
    assert "\x1b[48;2;253;231;37m" in out.getvalue()
