"""D8: numbers for people: no powers of ten, no unit that overflows, no more digits than are known, in one place."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ingest.core.quantiles import parse_percentiles
from ingest.core.units import figure, fine_latency, latency, up_to, utc
from ingest.query.capacity import load_text
from ingest.query.heatmap import ranges
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import ALL, Question
from ingest.view.terminal.comparison import ratio_text
from ingest.view.terminal.heatmap import print_heatmap
from ingest.view.terminal.tables import bandwidth, count, print_table
from ingest.view.terminal.trend import amount
from tests.doubles.origin import NS, SECOND, Made, series

ROOT = Path(__file__).parents[2]
NS_IN = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "h": 3600e9, "d": 86_400e9}
LATENCY = re.compile(r"^(-?[\d,]+(?:\.\d+)?)(ns|µs|ms|s|h|d)$")
POWER = re.compile(r"\d[eE][+-]?\d")
VALUES = st.floats(0, 4e18) | st.integers(0, 1 << 62).map(float) | st.floats(0, 1e12) | st.floats(0, 1e4)


def back(text: str) -> tuple[float, str, str]:
    """Return the value in ns of a latency as it is shown, its number and its unit."""
    match = LATENCY.match(text)
    assert match, text
    return float(match[1].replace(",", "")) * NS_IN[match[2]], match[1], match[2]


def digits_of(number: str) -> int:
    """Return how many significant digits a number is shown with."""
    plain = number.replace(",", "").lstrip("-")
    return len(plain.replace(".", "").lstrip("0")) if "." in plain else len(plain.lstrip("0").rstrip("0"))


@given(VALUES)
def test_d8_a_latency_has_a_unit_that_fits(value: float) -> None:
    shown, number, unit = back(latency(value))
    assert digits_of(number) <= 4
    assert unit in ("s", "d") or abs(float(number)) < 1000  # 9999ms, 1000µs
    assert unit != "s" or float(number) < 10_000
    assert shown == pytest.approx(value, rel=0.0051, abs=0.5)


@given(VALUES, VALUES)
def test_d8_a_latency_that_is_not_larger_is_not_shown_larger(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert back(latency(low))[0] <= back(latency(high))[0] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (999.6, "1.00µs"),
        (99_960, "100µs"),
        (999_600, "1.00ms"),
        (9_999e6, "10.0s"),
        (4.03e9, "4.03s"),
        (1234e9, "1234s"),
        (25_165_824, "25.2ms"),
        (math.nan, ""),
        (0, "0ns"),
        (1 << 62, "53,380d"),
    ],
)
def test_d8_latencies(value: float, shown: str) -> None:
    assert latency(value) == shown


@given(st.floats(-1e15, 1e15) | st.floats(-1e5, 1e5), st.integers(2, 7))
def test_d8_a_figure_is_never_a_power_of_ten(value: float, digits: int) -> None:
    text = figure(value, digits)
    assert not POWER.search(text) and not text.endswith(".") and text not in ("", "-")
    assert figure(1000.01, 6) == "1,000.01" and figure(12_345.678, 7) == "12,345.68"
    if abs(value) >= 1e-9:
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))
    if "." in text:
        assert digits_of(text) <= digits and not text.endswith("0")


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_d8_a_share_of_less_than_all_is_not_100(part: int, whole: int) -> None:
    part = min(part, whole)
    text = up_to(part / whole)
    number = float(text.removesuffix(" %").replace(",", ""))
    assert not POWER.search(text)
    assert (number == 100) == (part / whole == 1)
    assert number == pytest.approx(100 * part / whole, rel=0.0051, abs=1e-9)


@given(st.floats(1e-9, 1e15))
def test_d8_no_column_has_powers_of_ten_or_nothing_of_thousands(value: float) -> None:
    texts = [
        count(value),
        bandwidth(value),
        ratio_text(value),
        load_text(value),
        fine_latency(value),
        amount("throughput", value),
    ]
    texts += [amount("above 5ms", min(value, 1.0)), amount("p99", value)]
    for text in texts:
        assert text and not POWER.search(text)
        assert not re.search(r"\d *[kMG]\b", text)


ROWS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 3), st.dictionaries(st.integers(0, 1800), st.integers(1, 10**9), min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_d8_no_table_has_a_percentile_above_its_maximum_or_a_power_of_ten(rows: list[tuple[int, int, dict[int, int]]]) -> None:
    made = Made([(series(host=f"h{host}"), at, bins) for host, at, bins in rows])
    wanted = Wanted(parse_percentiles("0.01%,50,99,99.9,100"))
    answer = made.answer(Question(by=("host",), step=SECOND))
    whole = made.answer(Question(by=("host",), step=ALL))
    for table in (
        percentiles(answer, wanted),
        percentiles(whole, Wanted(wanted.percentiles, interpolate=True)),
        ranges(whole, 20),
    ):
        out = io.StringIO()
        print_table(table, ["heading"], utc, console=Console(file=out, width=200))
        text = out.getvalue()
        assert not POWER.search(text), text
        for line in text.splitlines():
            cells = [cell for cell in line.split() if LATENCY.match(cell)]
            if "max" in table.columns and len(cells) > 2:
                *percentile_cells, maximum = cells[1:]
                assert all(back(cell)[0] <= back(maximum)[0] for cell in percentile_cells), line
    out = io.StringIO()
    print_heatmap(answer, ["heading"], utc, console=Console(file=out, width=100))
    assert not POWER.search(out.getvalue())
    assert NS.bins > 1800


EXACT = {  # what is exact, or not for people: csv, names of percentiles, XML, text of other programs
    "core/units.py",
    "core/coverage.py",
    "objectives/junit.py",
    "query/question.py",
    "read/schedule.py",
    "query/story/words.py",
    "query/story/steady.py",  # a time that --from takes
    "view/boxes.py",
    "view/page",
    "view/terminal/comparison.py",
    "view/terminal/trend.py",
}


def test_d8_numbers_are_rounded_for_people_in_one_place() -> None:
    rounding = re.compile(r":,?(\.\d+)?g\}")
    users = {
        str(path.relative_to(ROOT / "ingest"))
        for path in (ROOT / "ingest").rglob("*.py")
        if rounding.search(path.read_text("utf-8"))
    }
    assert {name for name in users if not any(name.startswith(known) for known in EXACT)} == set()
