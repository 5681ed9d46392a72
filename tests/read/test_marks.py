"""Files of marks: lines of time and text, and logs of a JVM's garbage collector, against loops of their own."""

from __future__ import annotations

import gzip
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError, UsageError
from ingest.core.marks import LONGEST_TEXT, Mark, longest, of_run, one_line
from ingest.core.units import Instant
from ingest.read import marks
from ingest.read.marks import clock_of, looks_like_gc_log, read_marks

GC = Path(__file__).parents[1] / "data" / "gc"
SECOND = 10**9
NIGHT = int(datetime(2026, 11, 20, 21, 0, 30, tzinfo=UTC).timestamp()) * SECOND
CLOCKED = ("g1.log", "g1-safepoint.log", "parallel.log", "serial.log", "shenandoah.log", "z.log")
NO_CLOCK = ("uptime.log", "monotonic.log", "none.log")


def written(folder: Path, *lines: str) -> Path:
    path = folder / "my.csv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_lines_with_and_without_heading_and_ends(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "# that night",
        "",
        "2026-11-20T21:00:30Z,osd.3 down, and out",
        '2026-11-20T22:00:30+01:00,2026-11-20T21:00:41Z,"recovery, two pools"',
        "1795208430,,epoch seconds",
        "1795208430500,epoch ms",
        " +90s , from the start ",
        "+90s,+2m,second phase",
    )
    found = read_marks(path)
    assert [(one.at.ns, one.at.relative, None if one.end is None else one.end.ns, one.text) for one in found.marks] == [
        (NIGHT, False, None, "osd.3 down, and out"),
        (NIGHT, False, NIGHT + 11 * SECOND, "recovery, two pools"),
        (NIGHT, False, None, "epoch seconds"),
        (NIGHT + SECOND // 2, False, None, "epoch ms"),
        (90 * SECOND, True, None, "from the start"),
        (90 * SECOND, True, 120 * SECOND, "second phase"),
    ]
    assert found.said == [f"{path}: 6 marks"]


@pytest.mark.parametrize("heading", ["time,text", "Time, Text", "\ufefftime,text", "timestamp,event"])
def test_a_heading_is_no_mark_and_fixes_the_columns(tmp_path: Path, heading: str) -> None:
    """With a heading of two columns a second cell that looks like a time is text."""
    found = read_marks(written(tmp_path, heading, "2026-11-20T21:00:30Z,2,3 nodes down"))
    assert [(one.end, one.text) for one in found.marks] == [(None, "2,3 nodes down")]


def test_a_heading_of_three_columns(tmp_path: Path) -> None:
    found = read_marks(written(tmp_path, "start,end,what", "+1s,,a", "+1s,+3s,b"))
    assert [(one.lasts_ns, one.text) for one in found.marks] == [(0, "a"), (2 * SECOND, "b")]


def test_times_without_a_zone_are_utc_which_is_said(tmp_path: Path) -> None:
    path = written(
        tmp_path, "2026-11-20 21:00:30,osd.3 down", "2026-11-20T21:00:30,2026-11-20T21:00:31Z,up", "2026-11-20,that day"
    )
    found = read_marks(path)
    assert [one.at.ns for one in found.marks[:2]] == [NIGHT] * 2
    assert f"{path}: 3 marks: time has no zone: taken as UTC" in found.said


BAD = {
    "yesterday,x": "'yesterday' is not a time",
    "now-5m,x": "'now-5m' is not a time",
    "2026-11-20T21:00:30Z": "too few columns",
    "21:00:30,2026-11-20T21:00:40Z,text": "its time has no date and its end has one",
    "30s,a time without its sign": "is not a time",
    "30,a number without a unit": "is not a time",
    "2026-11-20T21:00:30Z,": "it has no text",
    "2026-11-20T21:00:30Z,,": "it has no text",
    "2026-11-20T21:00:30Z,2026-11-20T21:00:29Z,x": "it ends before it begins",
    "2026-11-20T21:00:30Z,+5s,x": "count from different starts",
    '2026-11-20T21:00:30Z,"x': "it is not CSV",
    "9999-12-31T23:59:59Z,x": "outside of the years 1824 to 2115",
    "0001-01-01T00:00:00Z,x": "outside of the years 1824 to 2115",
    "1e400,x": "is not a time",
    "1795208430500000000,x": "outside of the years 1824 to 2115",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_refused_with_its_place_and_the_rest_kept(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, "+1s,before", line, "+2s,after")
    found = read_marks(path)
    assert [one.text for one in found.marks] == ["before", "after"]
    assert (found.account.accepted, found.account.rows_rejected) == (2, 1)
    (told,) = [text for text in found.said if "rejected" in text]
    assert told.startswith(f"{path}:2: rejected: ") and BAD[line] in told


def test_a_file_without_any_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"my\.csv:1: no line of it is a mark: 'PNG' is not a time"):
        read_marks(written(tmp_path, "PNG,x", "x"))
    with pytest.raises(InputError, match="it holds no marks"):
        read_marks(written(tmp_path, "# nothing", "time,text"))
    with pytest.raises(InputError, match="there is no such file"):
        read_marks(tmp_path / "none.csv")


def test_a_time_of_day_is_of_the_day_of_the_run_and_refused_where_a_run_has_it_twice(tmp_path: Path) -> None:
    found = read_marks(
        written(tmp_path, "23:59:50,before midnight", "00:00:05,00:00:20,after it", "12:00,+3,lunch", "+5s,12:00,text")
    )
    assert [mark.text for mark in found.marks] == ["before midnight", "after it", "+3,lunch", "12:00,text"]
    assert found.account.repaired == {"time has no date: taken on the day of the run, as UTC": 3}
    assert [mark.lasts_ns for mark in found.marks[:2]] == [0, 15 * 10**9]
    start = 1_795_219_180 * 10**9  # 2026-11-20T23:59:40Z
    noted = of_run(found.marks, "r", start, start + 60 * 10**9)
    assert [(mark["at_ns"] - start) // 10**9 for mark in noted] == [5, 10, 25] and noted[2]["end_ns"] == start + 40 * 10**9
    with pytest.raises(
        UsageError, match=r"23:59:50 may be several times of r, which lasts 2d: write its date, as in 2026-11-20T23"
    ):
        of_run(found.marks, "r", start, start + 2 * 86_400 * 10**9)
    assert not of_run(found.marks[:2], "r", 0, 60 * 10**9, relative=True), "a run without a clock"


def test_texts_are_one_line_without_control_characters_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_bytes(b"+1s,\x1b[31mred\x07 \xff\n+2s," + b"x" * 5000 + b"\n")
    first, second = read_marks(path).marks
    assert first.text == "\\x1b[31mred\\x07 \\xff"
    assert second.text == "x" * (LONGEST_TEXT - 3) + "..." and len(second.text) == LONGEST_TEXT
    assert f"{path}: 1 mark: text is cut after {LONGEST_TEXT} characters" in read_marks(path).said


@pytest.mark.slow
@given(st.text(max_size=400))
def test_a_kept_text_is_printable_and_short(text: str) -> None:
    kept = one_line(text)
    assert kept.isprintable() and len(kept) <= LONGEST_TEXT and one_line(kept) == kept.strip()


def test_too_many_marks_are_said_and_the_longest_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_MARKS", 10)
    lines = [f"+{number}s,+{number + number % 37 + 1}s,{number}" for number in range(200)]
    path = written(tmp_path, "time,end,text", *lines, "+500s,,a note")
    found = read_marks(path)
    lengths = sorted((number % 37 + 1 for number in range(200)), reverse=True)[:9]
    assert sorted((one.lasts_ns // SECOND for one in found.marks if one.end), reverse=True) == lengths
    assert found.marks[-1].text == "a note"
    assert f"{path}: 201 marks are more than are taken of a file: the 10 longest are kept" in found.said


# ---- Logs of a JVM, recorded by tests/data/gc/record.sh with JDK 17.

PAUSED = re.compile(r"GC\((\d+)\) +(Pause .*) ([\d.]+)ms$")
SAFEPOINT = re.compile(r'Safepoint "(\w+)".*Total: (\d+) ns$')


def stamp_of(line: str) -> int:
    """Return the clock of a recorded line in ms, by the first decoration that is one."""
    if found := re.match(r"\[(\d{13})ms\]", line):
        return int(found[1])
    return round(datetime.strptime(line[1:29], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() * 1000)


@pytest.mark.parametrize("name", CLOCKED)
def test_each_pause_of_a_recorded_log_is_an_interval_that_ends_at_its_line(name: str) -> None:
    lines = (GC / name).read_text().splitlines()
    safepoints = [(stamp_of(line), int(found[2])) for line in lines if (found := SAFEPOINT.search(line))]
    pauses = [(stamp_of(line), round(float(found[3]) * 10**6)) for line in lines if (found := PAUSED.search(line))]
    found = read_marks(GC / name)
    told = [(one.end.ns // 10**6, one.lasts_ns) for one in found.marks]
    assert sorted(told) == sorted(safepoints or pauses) and len(told) > 5
    assert len(pauses) > 5
    named = [text for one in found.marks for text in re.findall(r"GC\(\d+\)", one.text)]
    assert len(named) == len(pauses)
    assert all(one.text.endswith(f", {name}") for one in found.marks)


@pytest.mark.parametrize("name", ["g1.log", "serial.log", "shenandoah.log"])
def test_a_jvm_logs_a_pause_at_its_end(name: str) -> None:
    """What the reader rests on, from the recordings: gc,start plus the length is the stamp of the line."""
    begun: dict[tuple[str, str], int] = {}
    seen = 0
    for line in (GC / name).read_text().splitlines():
        if found := PAUSED.search(line):
            what = re.sub(r" \d+M->.*", "", found[2])
            start = begun.pop((found[1], what), None)
            if start is not None:
                assert abs(stamp_of(line) - start - float(found[3])) <= 2
                seen += 1
        elif found := re.search(r"\[gc,start *\] GC\((\d+)\) (Pause .*)$", line):
            begun[found[1], found[2]] = stamp_of(line)
    assert seen > 5


def test_what_a_log_says_beside_its_pauses() -> None:
    found = read_marks(GC / "g1.log")
    assert found.said == [
        f"{GC / 'g1.log'}: {len(found.marks)} marks",
        f"{GC / 'g1.log'}: {len(found.marks)} pauses of the collector lie in safepoints and are shown as these",
        f"{GC / 'g1.log'}: {found.account.rows_skipped} concurrent phases left out: they pause nothing",
    ]
    safepoint = r"Safepoint [\d.]+ ms: G1CollectForAllocation, Pause Young \(Normal\) \(G1 Evacuation Pause\) \d+M->\d+M\(64M\), GC\(0\), g1\.log"
    assert re.fullmatch(safepoint, found.marks[0].text)


@pytest.mark.parametrize("name", NO_CLOCK)
def test_a_log_without_a_clock_is_refused_and_says_which_decoration_to_add(name: str) -> None:
    with pytest.raises(InputError, match=r"its lines have no clock time.*-Xlog:gc\*:file=gc\.log:time,uptime,level,tags"):
        read_marks(GC / name)


def test_a_compressed_log_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "g1.log.gz"
    path.write_bytes(gzip.compress((GC / "g1.log").read_bytes()))
    assert read_marks(path).marks == read_marks(GC / "g1.log").marks


DECORATIONS = {
    "[2024-05-01T10:00:00.123+0000][12.345s][info][gc]": 1714557600123,
    "[12.345s][2024-05-01T12:00:00.123+0200][123][456][host][gc   ]": 1714557600123,
    "[2024-05-01T10:00:00.123Z]": 1714557600123,
    "[2024-05-01T10:00:00,123+0000][0,012s]": 1714557600123,
    "[1714557600123ms][12345ms]": 1714557600123,
    "[12345ms][1714557600123ms]": 1714557600123,
    "[0.123s][info]": None,
    "[123ms][987654321ns]": None,
    "[9999-99-99T10:00:00.123+0000]": None,
    "": None,
}


@pytest.mark.parametrize("words", DECORATIONS)
def test_clocks_of_decorations(words: str) -> None:
    expected = DECORATIONS[words]
    assert clock_of(words) == (None if expected is None else expected * 10**6)


def test_a_line_without_a_clock_among_others_is_rejected_alone(tmp_path: Path) -> None:
    path = tmp_path / "gc.log"
    good = "[2024-05-01T10:00:00.123+0000][gc] GC(1) Pause Remark 2M->2M(8M) 1,500ms"
    path.write_text(f"{good}\n[1.5s][gc] GC(2) Pause Remark 2M->2M(8M) 1.5ms\n[2024-05-01T10:00:01.123+0000][gc] GC(3) Pause Rem")
    found = read_marks(path)
    assert [(one.lasts_ns, one.text) for one in found.marks] == [
        (1_500_000, "GC 1.50 ms: Pause Remark 2M->2M(8M), GC(1), gc.log")
    ]
    assert f"{path}:2: rejected: its decorations hold no clock time" in found.said


def test_safepoints_of_jdk_9_to_12_and_pauses_that_lie_in_none(tmp_path: Path) -> None:
    """From the sources of OpenJDK 11 (safepoint.cpp): no such JVM was at hand."""
    path = tmp_path / "gc.log"
    path.write_text(
        "[2024-05-01T10:00:00.100+0000][gc] GC(1) Pause Young (Normal) 2M->2M(8M) 5.000ms\n"
        "[2024-05-01T10:00:01.100+0000][gc] GC(2) Pause Young (Normal) 2M->2M(8M) 6.000ms\n"
        "[2024-05-01T10:00:01.101+0000][safepoint] Total time for which application threads were stopped: 0.0093000 seconds, "
        "Stopping threads took: 0.0030000 seconds\n"
    )
    assert [(one.lasts_ns, one.text) for one in read_marks(path).marks] == [
        (5_000_000, "GC 5.00 ms: Pause Young (Normal) 2M->2M(8M), GC(1), gc.log"),
        (9_300_000, "Safepoint 9.30 ms: 3.00 ms to reach, Pause Young (Normal) 2M->2M(8M), GC(2), gc.log"),
    ]


@pytest.mark.parametrize("name", [*CLOCKED, *NO_CLOCK])
def test_gc_logs_are_recognised(name: str) -> None:
    content = (GC / name).read_bytes()
    assert looks_like_gc_log(content[:65536])
    middle = content[len(content) // 2 :].split(b"\n", 1)[1]
    assert looks_like_gc_log(middle), "a rotated log begins anywhere"


def test_nothing_else_is_taken_for_a_gc_log() -> None:
    """Every other recording of these tests, and all of the example."""
    root = Path(__file__).parents[2]
    others = [
        path
        for folder in ("tests/data", "examples")
        for path in (root / folder).rglob("*")
        if path.is_file() and GC not in path.parents
    ]
    assert len(others) > 100
    for path in others:
        with path.open("rb") as stream:
            assert not looks_like_gc_log(stream.read(65536)), path


def test_a_log_of_an_older_jvm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gc.log"
    path.write_text("2014-05-01T10:00:00.123+0000: 0.123: [GC (Allocation Failure) 512K->404K(130560K), 0.0012 secs]\n")
    with pytest.raises(InputError, match="a JVM before 9"):
        read_marks(path)


@given(st.data())
def test_a_damaged_log_gives_marks_or_a_sentence(data: st.DataObject) -> None:
    content = bytearray((GC / data.draw(st.sampled_from(["g1.log", "z.log", "serial.log"]))).read_bytes()[:12_000])
    for _ in range(data.draw(st.integers(1, 30))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gc.log"
        path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
        try:
            found = read_marks(path)
        except InputError:
            return
    assert all(one.text.isprintable() and one.lasts_ns >= 0 for one in found.marks)


def test_many_pauses_without_safepoints_are_not_held(tmp_path: Path) -> None:
    path = tmp_path / "gc.log"
    lines = (
        f"[2024-05-01T10:{one // 60:02d}:{one % 60:02d}.100+0000][gc] GC({one}) Pause Remark 2M->2M(8M) {one + 1}.000ms"
        for one in range(3000)
    )
    path.write_text("\n".join(lines))
    assert [one.lasts_ns for one in read_marks(path).marks] == [(one + 1) * 10**6 for one in range(3000)]
    assert marks.MOST_PENDING < 3000


# ---- Whose they are.

INSTANTS = st.integers(0, 200)


@given(
    st.lists(st.tuples(INSTANTS, st.none() | st.integers(0, 50), st.booleans()), max_size=20), INSTANTS, INSTANTS, st.booleans()
)
def test_a_run_takes_what_overlaps_it(told, start: int, lasts: int, unknown: bool) -> None:
    given_marks = [
        Mark(Instant(at, rel), str(number), None if more is None else Instant(at + more, rel))
        for number, (at, more, rel) in enumerate(told)
    ]
    expected = []
    for number, (at, more, rel) in enumerate(told):
        begin = at + start if rel else at
        end = begin + (more or 0)
        if (rel or not unknown) and any(begin <= moment <= end for moment in range(start, start + lasts + 1)):
            expected.append((begin, str(number), None if more is None else end))
    found = of_run(given_marks, "r", start, start + lasts, relative=unknown)
    assert [(one["at_ns"], one["text"], one.get("end_ns")) for one in found] == sorted(expected, key=lambda one: one[:2])
    few = longest(found, 3)
    rest = [one for one in found if one not in few]
    length = lambda one: float("inf") if "end_ns" not in one else one["end_ns"] - one["at_ns"]  # noqa: E731
    assert len(few) == min(3, len(found)) and few == sorted(few, key=lambda one: (one["at_ns"], one["text"]))
    assert all(length(one) >= length(other) for one in few for other in rest)
