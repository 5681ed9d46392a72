"""N8: a second head in a log, as of files that were put together: all that it says holds for what follows it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read import read
from ingest.read.described.description import description_of
from ingest.read.hdr import log as hdr_log
from ingest.read.sources import ReadOptions
from tests.oracles import hdr

START = 1_795_330_000
HEADS = {  # what a head says: op, kind, ns a unit
    "#[Logging for: READ]": ("read", "service", 1000),
    "#[Logging for: UPDATE]": ("update", "service", 1000),
    "#[Logging for: Intended-READ]": ("read", "response", 1000),
    "#[Logged with jHiccup version 2.0.10]": ("", "lag", 1),
    "#Units: microseconds": ("", "", 1000),
    "#Units: nanoseconds": ("", "", 1),
    "#UNITS: StartTimestamp = seconds since StartTime; values in the histogram = nanoseconds": ("", "", 1),
    "#[Logged with Gatling DSE Plugin v1.3.0]": ("", "", 1),
}
Told = Counter[tuple[str, str, int]]  # op, kind, highest ns of a bin


def part(head: str, begin: int, lines: int, value: int) -> str:
    """Return a log of some lines, each 5 samples of one value."""
    front = f"{head}\n#[Histogram log format version 1.2]\n#[StartTime: {START + begin}.000 (seconds since epoch), x]\n"
    legend = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    return front + legend + "".join(hdr.line(f"{START + begin + n}.000", "1.000", {value: 5}) for n in range(lines))


def told(paths: list[Path], **options: object) -> Told:
    """Return the samples of files by op, kind and value."""
    found: Told = Counter()
    for source in Files(paths, ReadOptions(run="r", **options), jobs=1).found.sources:  # type: ignore[arg-type]
        for rows in read(source):
            for at in range(len(rows)):
                inside = slice(rows.indptr[at], rows.indptr[at + 1])
                series = rows.table[rows.series[at]]
                for bin_, count in zip(rows.bins[inside].tolist(), rows.counts[inside].tolist(), strict=True):
                    found[series.op, series.kind, int(rows.layout.values[bin_])] += count
    return found


@pytest.mark.parametrize("pair", list(itertools.permutations(HEADS, 2)))
def test_n8_a_second_head_tells_unit_op_and_kind(pair: tuple[str, str], tmp_path: Path) -> None:
    """Two logs put together hold what both hold alone, also where one lies in the time of the other."""
    for begin in (0, 2, 100):
        parts = [part(pair[0], 0, 4, 300), part(pair[1], begin, 4, 500)]
        paths = [tmp_path / f"{number}.hlog" for number in range(2)]
        for path, text in zip(paths, parts, strict=True):
            path.write_text(text)
        (tmp_path / "all.hlog").write_text("".join(parts))
        alone = told(paths[:1]) + told(paths[1:])
        assert told([tmp_path / "all.hlog"]) == alone
        assert {key[:2] for key in alone} == {HEADS[head][:2] for head in pair}


@pytest.mark.parametrize("seed", range(8))
def test_n8_many_heads_in_any_order_are_the_files_that_they_are_of(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    parts = [
        part(chance.choice(list(HEADS)), chance.randrange(50), chance.randrange(1, 40), chance.randrange(1, 3000))
        for _ in range(9)
    ]
    alone: Told = Counter()
    for number, text in enumerate(parts):
        (tmp_path / f"{number}.hlog").write_text(text)
        alone += told([tmp_path / f"{number}.hlog"])
    (tmp_path / "all.hlog").write_text("".join(parts))
    assert told([tmp_path / "all.hlog"]) == alone


def test_n8_a_unit_that_the_user_says_holds_for_all(tmp_path: Path) -> None:
    (tmp_path / "x.hlog").write_text(part("#Units: nanoseconds", 0, 3, 300) + part("#Units: microseconds", 10, 3, 300))
    assert len(told([tmp_path / "x.hlog"], recorded_unit_ns=1000)) == 1


def test_n8_a_head_of_the_same_tool_changes_nothing(tmp_path: Path) -> None:
    """A tool that was started again and appended to its log: lines of one tag stay one series."""
    text = part("#[Logged with jHiccup version 2.0.10]", 0, 5, 300) + part("#[Logged with jHiccup version 2.0.7]", 5, 5, 300)
    (tmp_path / "x.hlog").write_text(text)
    [source] = Files([tmp_path / "x.hlog"], ReadOptions(run="r"), jobs=1).found.sources
    assert {series for rows in read(source) for series in rows.table} == {source.context.series.replaced(kind="lag", segment=0)}


@pytest.mark.parametrize("at", range(1, 24, 2))
def test_n8_a_log_that_grows_is_told_by_the_head_it_is_in(at: int, tmp_path: Path) -> None:
    text = part("#[Logging for: READ]", 0, 8, 300) + part("#[Logged with jHiccup version 2.0.10]", 20, 8, 500)
    path = tmp_path / "x.hlog"
    path.write_text(text)
    [source] = Files([path], ReadOptions(run="r"), jobs=1).found.sources
    origin, found = hdr_log.origin_of(text.encode()), set()
    lines = text.splitlines(keepends=True)
    first = hdr_log.ResumableRows(source.context, origin, 1000)
    for rows in hdr_log.unpacked(first, ["".join(lines[:at]).encode()]):
        found |= {(series.op, series.kind) for series in rows.table}
    second = hdr_log.ResumableRows(source.context, origin, 1000, first.state())
    for rows in hdr_log.unpacked(second, ["".join(lines[at:]).encode()]):
        found |= {(rows.table[code].op, rows.table[code].kind) for code in rows.series.tolist()}
    assert found == {("read", "service"), ("", "lag")}
    assert source.context.account.samples == 80 and not source.context.account.rejected


def test_n8_a_second_head_of_an_operation_log_names_its_own_columns(tmp_path: Path) -> None:
    ms = START * 1000
    one = "start_ms,latency_us,op\n" + "".join(f"{ms + n},{100 + n},read\n" for n in range(20))
    two = "op,latency_ms,start_us\n" + "".join(f"write,{5 + n},{(ms + n) * 1000}\n" for n in range(20))
    three = "start_ms,end_ms\n" + "".join(f"{ms + n},{ms + n + 50}\n" for n in range(20))
    alone: Told = Counter()
    for number, text in enumerate((one, two, three)):
        (tmp_path / f"{number}.csv").write_text(text)
        alone += told([tmp_path / f"{number}.csv"])
    (tmp_path / "all.csv").write_text(one + two + three)
    assert told([tmp_path / "all.csv"]) == alone
    assert Files([tmp_path / "all.csv"], ReadOptions(run="r"), jobs=1).answer(Question(step="all")).missing == ()


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_n8_the_head_of_a_described_file_that_comes_again_is_no_operation(mark: str, tmp_path: Path) -> None:
    (tmp_path / "d.yml").write_text(f'time: "done (ms)"\nlatency: took\nunit: ms\ndelimiter: "{mark}"\n')
    one = mark.join(("done (ms)", "took")) + "\n" + "".join(f"{START * 1000 + n}{mark}{n}\n" for n in range(20))
    (tmp_path / "x.csv").write_text(one + one)
    options = ReadOptions(run="r", description=description_of(str(tmp_path / "d.yml")))
    answer = Files([tmp_path / "x.csv"], options, jobs=1).answer(Question(step="all"))
    assert answer.missing == () and sum(int(rows.counts.sum()) for rows in answer.parts) == 40
