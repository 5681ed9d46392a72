"""Logs of the C library's `hdr_log_write`: the end of an interval in place of its length, stamps of any clock, the maximum undivided.

Its legend says so, as that of Java's first versions did, which wrote lengths all the same.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import TailboardError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.hdr.clock import WITH_END
from ingest.read.hdr.tools import origin_of
from ingest.read.sources import ReadOptions
from tests.conftest import take
from tests.effort import figure
from tests.live.feeding import answers, batch, watched
from tests.mutations import check_damaged
from tests.oracles import hdr

DATA = Path(__file__).parents[1] / "data" / "hdr"
LEGEND = '"StartTimestamp","EndTimestamp","Interval_Max","Interval_Compressed_Histogram"\n'
BEGUN = 1_700_000_000
SECOND = 10**9
US = 1000
OPTIONS = ReadOptions(recorded_unit_ns=US)


def head(start: float = BEGUN, version: str = "1.2") -> str:
    said = f"#[StartTime: {start:.3f} (seconds since epoch), Tue]\n" if start else ""
    return f"#[a tool]\n#[Histogram log format version {version}]\n{said}{LEGEND}"


def spans(path: Path) -> list[tuple[float, float, int]]:
    """Return start and end of each interval in seconds, and its samples."""
    rows = take(path, options=OPTIONS).rows
    return [(row.start_ns / SECOND, row.end_ns / SECOND, sum(row.counts.values())) for row in rows]


def test_what_the_librarys_own_program_wrote(tmp_path: Path) -> None:
    """`hiccup -i 1`, twice into one file: stamps since the machine was started, StartTime since 1970. Oracle: hdrhistogram."""
    library = pytest.importorskip("hdrh.histogram", reason="hdrhistogram is not here: it is among the dev extras")
    expected = []
    for section in (DATA / "ends" / "hiccup.hlog").read_text().split("#[foobar]\n")[1:]:
        begun_at = float(re.search(r"StartTime: ([\d.]+)", section)[1])
        lines = [line.split(",") for line in section.splitlines() if line[0].isdigit()]
        for start, end, _, payload in lines:
            moved = begun_at - float(lines[0][0])
            count = library.HdrHistogram.decode(payload).get_total_count()
            expected.append((round(float(start) + moved, 3), round(float(end) + moved, 3), count))
    found = spans(DATA / "ends" / "hiccup.hlog")
    assert [(round(start, 3), round(end, 3), count) for start, end, count in found] == expected
    assert len(found) == 11
    notes = take(DATA / "ends" / "hiccup.hlog", options=OPTIONS).account.notes
    assert sorted(note.partition(": ")[2] for note in notes if "stamps" in note or "end" in note) == [
        "its stamps count from a moment that it does not say: its first interval is taken to begin at the time in its head",
        "this tool writes the end of an interval in place of its length: taken as its end",
    ]
    table = percentiles(
        Files([DATA / "ends" / "hiccup.hlog"], ReadOptions(recorded_unit_ns=US), jobs=1).answer(Question(step=SECOND)),
        Wanted(parse_percentiles("50")),
    ).columns
    assert int(table["count"].sum()) == sum(count for *_, count in expected)


@pytest.mark.parametrize("zero", [float(BEGUN), 0.25, 4321.5], ids=["epoch", "relative", "uptime"])
@pytest.mark.parametrize("write", ["ends", "lengths"])
def test_lines_that_follow_each_other_tell_which_it_is(zero: float, write: str, tmp_path: Path) -> None:
    lines = [
        hdr.line(f"{zero + number:.3f}", f"{zero + number + 1 if write == 'ends' else 1:.3f}", {100 + number: 3})
        for number in range(9)
    ]
    (path := tmp_path / "x.hlog").write_text(head() + "".join(lines))
    # Lengths behind stamps of another clock are what Java's reader makes of them: seconds after StartTime.
    first = BEGUN + (0 if zero >= BEGUN or (zero > 1 and write == "ends") else zero)
    assert spans(path) == [(first + number, first + number + 1, 3) for number in range(9)]


@pytest.mark.parametrize(
    ("name", "op", "kind", "start", "length", "samples"),
    [
        ("read_asbench.hdrhist", "read", "service", 1795547052.0, 3.404, 5000),
        ("write_asbench.hdrhist", "write", "service", 1795547052.0, 3.404, 3000),
        ("mpt.hlog", "", "", 1795547052.019, 3.404, 5000),
        ("READ.hdr", "read", "service", 1795547052.0, 3.0, 5000),
    ],
)
def test_one_interval_of_a_whole_run(name: str, op: str, kind: str, start: float, length: float, samples: int) -> None:
    """As asbench, mpt and YCSB-cpp call the library (`ends/write.c`): by the time since the machine was started, and by epoch."""
    [row] = take(DATA / "ends" / name, options=OPTIONS).rows
    assert (row.series.op, row.series.kind) == (op, kind or row.series.kind)
    assert row.start_ns == round(start * 1000) * 10**6 and row.end_ns - row.start_ns == round(length * 1000) * 10**6
    assert sum(row.counts.values()) == samples


def test_asbench_states_its_unit_and_its_operations_are_of_one_run(tmp_path: Path) -> None:
    for op in ("read", "write"):
        shutil.copy(DATA / "ends" / f"{op}_asbench.hdrhist", tmp_path / f"{op}_2026-11-24T19:04:12Z.hdrhist")
    table = percentiles(
        Files([tmp_path], jobs=1).answer(Question(step="all", by=("op",))), Wanted(parse_percentiles("100"))
    ).columns
    assert table["op"].tolist() == ["read", "write"] and table["count"].tolist() == [5000, 3000]
    assert [round(rate) for rate in table["rate"].tolist()] == [1469, 881]  # of the 3.404 s; as a length it were 0.9
    assert table["p100"].tolist() == [20991 * US, 20959 * US]  # what hdr_max of the library says


@pytest.mark.parametrize("name", ["hiccup.hlog", "read_asbench.hdrhist", "mpt.hlog"])
def test_mutated_logs_never_end_in_a_traceback(tmp_path_factory, name: str) -> None:
    folder = tmp_path_factory.mktemp("f")
    text = b"".join(
        line[:120] + b"\n" if line[:1] in b'#"' else line + b"\n" for line in (DATA / "ends" / name).read_bytes().splitlines()[:9]
    )
    parts = st.sampled_from([b"9", b"-", b",", b".", b"2026-99-01T00:00:00Z", b"#[", b"Tag=a,", b"\n", b"99999999999999", b"1.0"])

    def counted(path: Path) -> tuple[int, int]:
        taken = take(path, options=OPTIONS)
        return taken.account.samples, sum(sum(row.counts.values()) for row in taken.rows)

    check_damaged(folder / "x.hlog", text, parts, counted, place=min(len(text), 600), examples=figure(25, 100, 2000))


def test_a_date_in_the_head_of_another_program_says_nothing_of_its_unit(tmp_path: Path) -> None:
    text = (DATA / "ends" / "read_asbench.hdrhist").read_text()
    (path := tmp_path / "x.hlog").write_text(text.replace("#[StartTime: 5500.616", f"#[StartTime: {BEGUN}.000"))
    with pytest.raises(TailboardError, match="give --recorded-unit"):
        take(path)
    path.write_text(text.replace("#[2026-11-24T", "#[2026-13-24T"))
    [row] = take(path, options=OPTIONS).rows
    assert row.start_ns == 0  # no date: relative time


def test_the_librarys_other_function_writes_lengths() -> None:
    assert spans(DATA / "ends" / "entry.hlog") == [(1795547052.25 + number, 1795547053.25 + number, 5000) for number in range(3)]


@pytest.mark.parametrize("days", [0, 64, 200, 1200])
def test_a_machine_may_have_been_up_for_years(days: int, tmp_path: Path) -> None:
    """Its time since the start is no date of 1970 or 1973; asbench writes it as StartTime, `hiccup` beside a date."""
    up = 86_400 * days + 5500
    text = (DATA / "ends" / "read_asbench.hdrhist").read_text()
    text = text.replace("5500.616", f"{up}.616").replace("5504.020", f"{up + 4}.020")
    (path := tmp_path / "read_x.hdrhist").write_text(text)
    [row] = take(path).rows
    assert (row.start_ns, row.end_ns - row.start_ns) == (1795547052 * SECOND, 3_404_000_000)
    lines = "".join(hdr.line(f"{up + number}.000", f"{up + 1 + number}.000", {9: 1}) for number in range(5))
    for start, first in ((BEGUN, BEGUN), (up, 0)):
        (path := tmp_path / "x.hlog").write_text(head(start) + lines)
        assert spans(path) == [(first + number, first + number + 1, 1) for number in range(5)]


def test_a_start_time_that_is_no_date_makes_time_relative(tmp_path: Path) -> None:
    """Programs that give the header what they give the lines, `hdr_gettime`: seconds since the machine was started."""
    lines = "".join(hdr.line(f"{4000 + number}.500", f"{4001 + number}.500", {9: 1}) for number in range(5))
    (path := tmp_path / "x.hlog").write_text(head(4000.5) + lines)
    assert spans(path) == [(number, number + 1, 1) for number in range(5)]
    [row, *_] = take(path, options=ReadOptions(recorded_unit_ns=US, t0=BEGUN * SECOND)).rows
    assert row.start_ns == BEGUN * SECOND


def test_javas_first_logs_have_that_legend_and_lengths(tmp_path: Path) -> None:
    (path := tmp_path / "x.hlog").write_text(
        head(version="1.01") + hdr.line("0.042", "5.004", {1: 2}) + hdr.line("5.046", "5.000", {1: 2})
    )
    assert spans(path) == [(BEGUN + 0.042, BEGUN + 5.046, 2), (BEGUN + 5.046, BEGUN + 10.046, 2)]
    path.write_text(head(version="1.01") + hdr.line("0.500", "1.000", {1: 2}))
    assert spans(path) == [(BEGUN + 0.5, BEGUN + 1.5, 2)]


def test_one_line_is_enough_where_its_length_would_be_years(tmp_path: Path) -> None:
    (path := tmp_path / "x.hlog").write_text(head() + hdr.line(f"{BEGUN}.000", f"{BEGUN + 2}.000", {1: 2}))
    assert spans(path) == [(BEGUN, BEGUN + 2, 2)]


@settings(max_examples=figure(30, 100, 1000), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 7.5, 90_000.0, float(BEGUN)]), st.booleans())
def test_intervals_of_any_length_with_gaps_come_back(seed: int, zero: float, ends: bool) -> None:
    """The rule itself: whatever was written is what is read, if lines are no shorter than half of their number."""
    rolled = random.Random(seed)
    at, lines = zero, []
    for _ in range(30):
        at += rolled.choice((0, 0, 0, 0, rolled.random()))
        length = 0.5 + rolled.random()
        lines.append(hdr.line(f"{at:.3f}", f"{at + length if ends else length:.3f}", {5: 1}))
        at += length
    origin = origin_of((head() + "".join(lines)).encode())
    assert (origin.stamps == WITH_END) == ends


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("lines", [1, 12])
def test_a_log_that_grows_is_read_as_a_whole_one(lines: int, ends: bool, tmp_path: Path) -> None:
    """Its first line alone does not say what its second number is."""
    folder, url, reading = tmp_path / "logs", f"sqlite:{tmp_path / 'watched.db'}", {"recorded_unit_ns": US}
    pieces = [hdr.line(f"{77 + number}.000", f"{78 + number if ends else 1}.000", {200: 4}) for number in range(lines)]
    watched(folder / "x.hlog", [head() + pieces[0], *pieces[1:]], url, reading=reading)
    assert answers(url) == answers(batch(folder, tmp_path / "batch.db", reading=reading))
    begun_at = BEGUN if ends else BEGUN + 77
    assert spans(folder / "x.hlog")[0] == (begun_at, begun_at + 1, 4)


def commas(text: str) -> str:
    return re.sub(r"(?m)^((?:Tag=[^,]*,)?)(\d+)\.(\d+),(\d+)\.(\d+),(\d+)\.(\d+),", r"\1\2,\3,\4,\5,\6,\7,", text)


def undivided(text: str) -> str:
    """As C writes it: the maximum is a whole number, and its `.0` does not come from the locale."""
    return re.sub(r"(?m)^((?:Tag=[^,]*,)?)(\d+)\.(\d+),(\d+)\.(\d+),(\d+)\.(\d+),", r"\1\2,\3,\4,\5,\6.0,", text)


@pytest.mark.parametrize("write", [commas, undivided])
@pytest.mark.parametrize("name", ["2.2.2-3-digits.hlog", "tagged.hlog"])
def test_numbers_with_a_comma_are_those_with_a_point(name: str, write: Callable[[str], str], tmp_path: Path) -> None:
    """.NET and C print numbers after the locale: in half of the world `0,127,1,007,2,769,HISTF...`."""
    text = (DATA / name).read_text()
    changed = re.sub(r"(?m)^(#\[(?:Start|Base)Time: \d+)\.", r"\1,", write(text))
    assert changed != text
    (path := tmp_path / name).write_text(changed)
    assert spans(path) == spans(DATA / name)


def test_start_time_is_the_recorded_one() -> None:
    assert datetime.fromtimestamp(spans(DATA / "ends" / "hiccup.hlog")[0][0]).year == 2026
