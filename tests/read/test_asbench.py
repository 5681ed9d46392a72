"""asbench's histograms: counts against the values that were put in, times by whole seconds, files that are damaged or appended to."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.commands import tailboard
from tests.effort import figure
from tests.live.feeding import answers, batch, watched
from tests.mutations import check_damaged
from tests.read.test_histograms import DATA, rows, samples_of

SAMPLE = DATA / "asbench_histogram.txt"
S, US = 10**9, 1000
BASE = int(datetime(2026, 11, 24, 19, 0, 0, tzinfo=UTC).timestamp())
SUMS = r"(?m)^read_hist (\S+), "


def edge_of(us: int) -> int:
    """The first us past the bucket that a latency is in; 0 where it is above all. By asbench's own words: 100 us up to 4 ms ..."""
    if us < 100:
        return 100
    if us < 4000:
        return us // 100 * 100 + 100
    if us < 64_000:
        return us // 1000 * 1000 + 1000
    return us // 4000 * 4000 + 4000 if us < 128_000 else 0


def line(second: int, counts: dict[int, int], op: str = "read", period: str = "1.0003") -> str:
    stamp = datetime.fromtimestamp(BASE + second, tz=UTC)
    buckets = "".join(f", {low}:{count}" for low, count in counts.items())
    return f"{op}_hist {stamp:%Y-%m-%dT%H:%M:%SZ}, {period}s, {sum(counts.values())}{buckets}\n"


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines))
    return path


def test_each_bucket_holds_the_values_that_were_put_in() -> None:
    """The file was written by asbench's histogram.c; the values are those that it was given."""
    told: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for text in gzip.decompress((DATA / "asbench_histogram.values.gz").read_bytes()).decode().splitlines():
        number, op, us = text.split()
        told[op, int(number)][edge_of(int(us))] += 1
    found, account = rows(SAMPLE)
    held: dict[str, list[Counter[int]]] = defaultdict(list)
    for series, _, _, bins, _ in sorted(found, key=lambda row: row[2]):
        held[series.op].append(Counter({0 if last == 128_000 * US else (last + 1) // US: count for last, count in bins.items()}))
    assert set(held) == {"read", "write"} and not account.rejected
    for op, each in held.items():
        assert each == [told[op, number] for number in range(len(each))] and len(each) == 8
    assert any(counts[0] for counts in told.values()), "some above all buckets"
    assert {series.kind for series, *_ in found} == {"service"}


def test_lines_follow_each_other_within_the_second_of_their_stamps() -> None:
    found, _ = rows(SAMPLE)
    stamps = re.findall(SUMS, SAMPLE.read_text())
    reads = sorted((start, end) for series, start, end, *_ in found if series.op == "read")
    assert len(stamps) == len(reads)
    for (_, end), (start, _) in zip(reads, reads[1:], strict=False):
        assert start == end
    for stamp, (_, end) in zip(stamps, reads, strict=True):
        second = int(datetime.fromisoformat(stamp).timestamp()) * S
        assert second <= end < second + S


@settings(max_examples=figure(40, 150, 2000), deadline=None)
@given(st.lists(st.sampled_from([1.0, 1.0003, 1.02, 1.4, 0.7]), min_size=2, max_size=60), st.floats(0, 0.999))
def test_whatever_the_periods_no_line_is_lost_and_times_are_right_to_a_second(
    tmp_path_factory, periods: list[float], begin: float
) -> None:
    """Oracle: the times at which the lines were printed. Stamps may repeat, and skip a second."""
    at, lines, ends = begin, [], []
    for number, period in enumerate(periods):
        at += period
        ends.append(at)
        lines.append(line(int(at), {100: 1 + number}, period=f"{period:g}"))
    found, account = rows(written(tmp_path_factory.mktemp("a") / "a.txt", *lines))
    assert not account.rejected and [sum(bins.values()) for *_, bins, _ in found] == [
        1 + number for number in range(len(periods))
    ]
    for (_, start, end, *_), true, period in zip(found, ends, periods, strict=True):
        assert abs(end / S - BASE - true) <= 1.0 and abs(start / S - BASE - (true - period)) <= 1.5


def test_a_stop_between_two_runs_of_one_file_is_a_gap(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", line(1, {100: 5}), line(2, {100: 5}), line(100, {100: 7}), line(101, {100: 7}))
    found, _ = rows(path)
    spans = [(round(start / S - BASE), round(end / S - BASE)) for _, start, end, *_ in found]
    assert spans == [(0, 1), (1, 2), (99, 100), (100, 101)]


def test_other_buckets_are_those_of_the_head(tmp_path: Path) -> None:
    head = "read_hist:\n\tTotal num buckets: 2\n\tRange min: 10us\n\tRange max: 30us\n\tBucket range 0:\n"
    head += "\t\tRange min: 10us\n\t\tRange max: 30us\n\t\tBucket width: 10us\n\t\tNum buckets: 2\n"
    found, account = rows(written(tmp_path / "a.txt", head, line(1, {0: 1, 10: 2, 20: 3, 30: 4})))
    assert [bins for *_, bins, _ in found] == [
        {10 * US - 1: 1, 20 * US - 1: 2, 30 * US - 1: 3, 30 * US: 4}
    ] and not account.rejected
    for broken in (
        head.replace("width: 10us", "width: 0us"),
        head.replace("max: 30us", "max: 3us"),
        head.replace("width: 10", "width: 7"),
    ):
        found, _ = rows(written(tmp_path / "b.txt", broken, line(1, {100: 2})))  # those of all versions
        assert [bins for *_, bins, _ in found] == [{200 * US - 1: 2}]


def test_a_file_that_two_versions_appended_to_keeps_the_buckets_of_each(tmp_path: Path) -> None:
    head = "read_hist:\n\tRange min: 50us\n\tRange max: 350us\n\tBucket range 0:\n"
    head += "\t\tRange min: 50us\n\t\tRange max: 350us\n\t\tBucket width: 150us\n"
    found, account = rows(
        written(tmp_path / "a.txt", line(1, {100: 5, 300: 2}), line(2, {200: 1}), head, line(3, {50: 4, 350: 1}))
    )
    told = [{last: count for last, count in bins.items()} for *_, bins, _ in sorted(found, key=lambda row: row[2])]
    assert told == [{200 * US - 1: 5, 400 * US - 1: 2}, {300 * US - 1: 1}, {200 * US - 1: 4, 350 * US: 1}]
    assert not account.rejected


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (line(3, {150: 2}), "a bucket that the head of the file does not name"),
        (line(3, {100: 2}).replace(", 2,", ", 3,"), "its buckets do not add up to its count"),
        ("read_hist 2026-11-24T19:00:03Z, 1s, 5, 100:\n", "no histogram: not `read_hist TIME"),
        ("read_hist 2026-13-24T19:00:03Z, 1s, 5, 100:5\n", "no histogram: not `read_hist TIME"),
        ("read_hist 2026-11-24T19:00:03Z, 1e+99999s, 5, 100:5\n", "no histogram: not `read_hist TIME"),
        ("read_hist 2026-11-24T19:00:03Z, 1s, 2, 100:2", "last line breaks off without a newline"),
    ],
)
def test_a_line_that_cannot_be_taken_is_missing_and_the_rest_kept(tmp_path: Path, broken: str, reason: str) -> None:
    found, account = rows(written(tmp_path / "a.txt", line(1, {100: 5}), line(2, {100: 5}), broken))
    assert len(found) == 2 and [text for text in account.rejected if reason in text]
    assert account.missing or "newline" in reason


def test_mutated_files_never_end_in_a_traceback(tmp_path_factory) -> None:
    folder, text = tmp_path_factory.mktemp("f"), b"".join(SAMPLE.read_bytes().splitlines(keepends=True)[:-8])
    parts = st.sampled_from(
        [b"9", b"-", b"e+99", b"9999-99-99T", b"0001-01-01T", b":", b", ", b"\n", b"99999999999999999", b"us"]
    )

    check_damaged(folder / "a.txt", text, parts, samples_of, place=len(text), examples=figure(40, 150, 3000))


def test_it_is_known_by_its_content_among_what_else_is_printed_there(tmp_path: Path) -> None:
    others = "hosts:                  127.0.0.1\n2026-11-24 19:00:00 INFO write(tps=900 (hit=1 miss=0))\n"
    path = written(tmp_path / "out.log", others, line(1, {100: 5}), others, line(2, {100: 5}, "write"))
    [source] = Files([path], jobs=1).found.sources
    assert source.format == "asbench"
    assert tailboard("percentiles", path, "--step", "all", "--by", "op", "--format", "csv").stdout.count("\n") == 3
    with pytest.raises(InputError, match="asbench writes them with --output-file FILE"):
        Files([written(tmp_path / "none.txt", "read_hist:\n")], jobs=1)


def test_stores_and_a_watch_hold_what_the_file_holds(tmp_path: Path) -> None:
    folder, url = tmp_path / "logs", f"sqlite:{tmp_path / 'watched.db'}"
    lines = SAMPLE.read_text().splitlines(keepends=True)
    watched(folder / "out.txt", ["".join(lines[at : at + 7]) for at in range(0, len(lines), 7)], url, seconds=30)
    assert answers(url) == answers(batch(folder, tmp_path / "batch.db"))
    question = Question(step=S, by=("op",))
    with open_store(f"sqlite:{tmp_path / 'batch.db'}") as store:
        tables = [
            percentiles(origin.answer(question), Wanted(parse_percentiles("50,99")))
            for origin in (Files([folder], jobs=1), store)
        ]
    assert list(csv_lines(tables[0])) == list(csv_lines(tables[1]))
