"""compare and trend open with the verdict in a plain sentence, then one picture: alike on the terminal and on the first screen."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run
from ingest.core.quantiles import parse_percentiles
from ingest.query.compare import Pair, compare
from ingest.query.question import AUTO, Question
from ingest.view.terminal.comparison import opening, picture, whisker
from tests.browsing import shown
from tests.doubles.origin import Made, series
from tests.query.nights import drawn, written
from tests.view.page import rows_of

FIRST_SCREEN = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Path:
    """Seven nights, from the fifth on a third slower; the last of them is the bad one: the writes of h2 have a tail as well."""
    folder = tmp_path_factory.mktemp("nights")
    for number in range(7):
        slow = ("h2", "write") if number == 6 else None
        written(folder / f"n{number}", drawn(number, 600, by=1.35 if number >= 4 else 1.0, slow=slow), number, seconds=12)
    return folder


def printed(*words: object) -> list[str]:
    """Return the sentences that a command opens with: what stands above its picture or heading."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert run([str(word) for word in words]) == 0
    lines = out.getvalue().splitlines()
    return lines[: next(at for at, line in enumerate(lines) if not line or line.startswith("trend of "))]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("by", ["host,op", ""])
@pytest.mark.parametrize("command", ["compare", "trend"])
def test_the_first_screen_has_the_verdict_of_the_terminal_and_one_picture(browser, nights: Path, command: str, by: str, tmp_path):
    pytest.importorskip("vl_convert")
    words = {
        "compare": (nights / "n0", nights / "n6", "--baseline", "n0", "--run", "n6"),
        "trend": (*(nights / f"n{number}" for number in range(7)), "-p", "50,99"),
    }
    asked = (command, *words[command], *(("--by", by) if by else ()))
    verdict = printed(*asked)
    slower = {"compare": "n6 is slower than n0: p", "trend": "n6 is slower than before: "}[command]
    assert verdict[0].startswith(slower if by or command == "trend" else "Cannot tell whether n6 is slower or faster than n0: ")
    path = tmp_path / "page.html"
    assert run([str(word) for word in (*asked, "-o", path)]) == 0
    with shown(browser, path, size=FIRST_SCREEN) as page:
        assert page.locator(".verdict p").all_inner_texts() == verdict
        ends = [page.locator(place).first.bounding_box() for place in (".verdict", "main .chart canvas")]
        assert all(box["y"] + box["height"] <= FIRST_SCREEN["height"] for box in ends), ends
        assert page.evaluate("document.documentElement.scrollWidth") <= FIRST_SCREEN["width"]
        drawn_first = page.locator("main .chart").first.get_attribute("id")
        assert drawn_first == {"compare": "movers-host-op" if by else "ratios", "trend": "trend-0"}[command]
        if command == "compare":  # the first bar is what the verdict names
            ratios = [row["ratio"] for row in rows_of(page, drawn_first)][: 1 if by else None]
            assert any(f", {ratio:.3f} times (" in verdict[0] for ratio in ratios)
        elif by:
            assert page.locator("#h-trend-0").inner_text().removeprefix("Percentile by run: ").replace(",", "") in verdict[0]


def test_without_labels_the_verdict_names_the_host_and_operation_that_changed_most(nights: Path, tmp_path: Path) -> None:
    slow = written(tmp_path / "bad", drawn(31, 2000, slow=("h2", "write"), factor=2.0), 9, seconds=20)
    calm = written(tmp_path / "good", drawn(30, 2000), 8, seconds=20)
    verdict = printed("compare", calm, slow, "--baseline", "good", "--run", "bad")
    changed = next(line for line in verdict if line.startswith("What changed most: "))
    assert " of write went from " in changed and " of h2 went from " in changed
    assert "h2" not in printed("compare", calm, slow, "--baseline", "good", "--run", "bad", "--where", "host=h1")[-1]


def pair_of(baseline: Made, late: Made) -> Pair:
    sides = [made.answer(Question(step="all")) for made in (baseline, late)]
    return Pair(*sides, windows=tuple((made.answer(Question(step=AUTO)),) for made in (baseline, late)))


def noisy(run_name: str, seed: int, shift: int = 0, windows: int = 40, count: int = 4000) -> Made:
    noise = np.random.default_rng([seed, 21])
    rows = []
    for at in range(windows):
        bins, counts = np.unique(noise.normal(900 + shift, 8, count).astype(int), return_counts=True)
        rows.append((series(run=run_name), at, dict(zip(bins.tolist(), counts.tolist(), strict=True))))
    return Made(rows)


@pytest.mark.parametrize(
    ("late", "first"),
    [
        (noisy("b", 2, -30), "b is faster than a: p"),
        (noisy("b", 2), "b is as fast as a: no percentile differs by more than "),
        (
            noisy("b", 2, 8, windows=2),
            "Cannot tell whether b is slower or faster than a: there is too little data for bounds. The largest difference: p",
        ),
        (
            Made([*noisy("b", 2).rows, (series(run="b"), 40, {1100: 4000})]),
            "Cannot tell whether b is slower or faster than a: no change is within the bounds. The largest difference: p",
        ),
        (noisy("b", 2, windows=1, count=1), "Cannot tell how b compares with a: no percentile has enough samples in both."),
    ],
)
def test_a_verdict_says_faster_alike_and_that_it_cannot_tell(late: Made, first: str) -> None:
    pair = pair_of(noisy("a", 1), late)
    table = compare(pair, parse_percentiles("95,99"))
    said = opening(pair, table)
    assert said[0].startswith(first)
    kinds = [str(word) for word in table.columns["verdict"]]
    assert ("1 faster" in said[-1] or "2 faster" in said[-1]) == ("faster" in kinds)


def test_slower_in_part_and_faster_in_part_is_said() -> None:
    noise = np.random.default_rng(5)
    rows = []
    for at in range(40):
        bins = np.concatenate([noise.normal(860, 8, 3600), noise.normal(1100, 8, 400)]).astype(int)
        places, counts = np.unique(bins, return_counts=True)
        rows.append((series(run="b"), at, dict(zip(places.tolist(), counts.tolist(), strict=True))))
    pair = pair_of(noisy("a", 1), Made(rows))
    said = opening(pair, compare(pair, parse_percentiles("50,99")))
    assert said[0].startswith("b is slower than a in part, faster in part: p99 went from ")


@pytest.mark.soak
def test_a_trend_that_got_better_and_one_that_is_too_short_say_so(tmp_path: Path) -> None:
    folders = [
        written(tmp_path / f"n{number}", drawn(number, 300, by=0.7 if number >= 6 else 1.0), number, seconds=12)
        for number in range(12)
    ]
    verdict = printed("trend", *folders, "-p", "50")
    assert verdict[0] == "Nothing of n11 is certain to be slower than before."
    assert verdict[1].startswith("It got better: p50 has been 0.69") and verdict[1].endswith(" times the level before since n6.")
    assert printed("trend", *folders[:2], "-p", "50")[0].startswith("Cannot tell whether n1 is slower than before: ")
    assert printed("trend", folders[0], "-p", "50")[0].startswith("Cannot tell whether n0 is slower than before: ")


def test_a_whisker_has_its_value_bounds_and_the_place_of_no_change() -> None:
    assert whisker([1.0, 0.5, 1.5], 0.0, 31.0 / 8, nothing=0.0) == "|   ----o----"
    assert whisker([0.0, float("nan"), float("nan")], 0.0, 1.0, nothing=0.0) == "o"
    pair = pair_of(noisy("a", 1), noisy("b", 2, 30))
    lines = picture(compare(pair, parse_percentiles("50,99")))
    assert len(lines) == 3 and all("|" in line and "o" in line and line.endswith(" times, slower") for line in lines[1:])
    assert all(line.index("|") < line.index("o") for line in lines[1:])
