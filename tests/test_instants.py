"""Every instant is bounded where it is parsed, by one rule: 2262 wrapped to 1677, 9999 and 0001 were internal errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import tailboard
from ingest.core.errors import InputError, UsageError
from ingest.core.units import MOST_NS, Instant, is_instant, parse_instant
from ingest.read.context import TimeZero
from oracles import hdr, logs

FAR = ["2116-03-01", "2262-04-12", "2300-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "1677-09-21"]
FAR_NUMBERS = ["9223372036.9", "99999999999999999999", "9223372036854"]
NEAR = {"1824-01-01": -4_607_366_400, "2115-12-31T23:59:59Z": 4_607_279_999, "1970-01-01": 0}


@pytest.mark.parametrize("text", FAR + FAR_NUMBERS)
def test_b8_a_time_outside_of_the_years_that_can_be_counted_with(text: str) -> None:
    with pytest.raises(UsageError, match="outside of the years 1824 to 2115"):
        parse_instant(text)


@pytest.mark.parametrize("text", NEAR)
def test_the_years_that_are_named_are_within(text: str) -> None:
    assert parse_instant(text) == Instant(NEAR[text] * 10**9)


@given(st.datetimes())
def test_b8_every_date_is_taken_or_refused_with_a_sentence(stamp) -> None:
    if 1824 <= stamp.year <= 2115:
        assert is_instant(parse_instant(stamp.isoformat()).ns)
    elif not 1823 <= stamp.year <= 2116:
        with pytest.raises(UsageError, match="outside of the years"):
            parse_instant(stamp.isoformat())


def test_times_since_the_start_of_a_run_end_where_all_times_end() -> None:
    late = Instant(MOST_NS - 1, relative=True)
    assert is_instant(late.epoch_ns(MOST_NS - 1)) and is_instant(late.epoch_ns(-MOST_NS + 1))


@pytest.mark.parametrize("stamp", [MOST_NS, -MOST_NS, 2**63, 10**30])
def test_b8_a_start_that_cannot_be_counted_with_is_no_start(stamp: int) -> None:
    with pytest.raises(InputError, match="its start .* is a time outside of the years"):
        TimeZero(stamp, "fio JSON job_start")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "x_clat_hist.1.log"
    path.write_text(logs.text([(1000, 0, {5: 9}), (2000, 0, {6: 9})], 1856))
    return path


@pytest.mark.parametrize("option", ["--t0", "--from", "--to"])
@pytest.mark.parametrize("text", FAR[2:5])
def test_b8_of_options(log: Path, option: str, text: str) -> None:
    words = ("--t0", "2026-01-01", option, text)
    done = tailboard("percentiles", log, *words, "--step", "all")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "outside of the years 1824 to 2115" in done.stderr


def test_b8_of_file_times_marks_and_stores(log: Path, tmp_path: Path) -> None:
    store = ("--store", f"sqlite:{tmp_path}/s.db")
    assert tailboard("load", log, "--run", "r", "--t0", "2026-01-01", *store).returncode == 0
    for text in FAR[2:5]:
        for words in (
            ("mark", *store, "--run", "r", "--at", text, "x"),
            ("percentiles", f"sqlite:{tmp_path}/s.db", "--to", text),
        ):
            done = tailboard(*words)
            assert done.returncode == 2 and "outside of the years" in done.stderr, done.stderr
    os.utime(log, ns=(10**19, 10**19))
    done = tailboard("percentiles", log, "--t0", "mtime")
    assert done.returncode == 3 and "its start (file time (--t0 mtime)) is a time outside of the years" in done.stderr
    done = tailboard("percentiles", log, "--t0", "2026-01-01", "--host-offset", "x=1e300")
    assert done.returncode == 2 and "--host-offset takes HOST=MS" in done.stderr


def test_b8_a_stamp_and_its_start_are_in_range_but_not_their_sum(tmp_path: Path) -> None:
    raw = tmp_path / "z_lat.1.log"
    raw.write_text("1000, 5, 0, 4096, 0\n4600000000000, 5, 0, 4096, 0\n")
    done = tailboard("percentiles", raw, "--fio-version", "3.33", "--t0", "2115-01-01")
    assert done.returncode == 3 and f"{raw}: not read: holds a time outside of the years 1824 to 2115" in done.stderr


def test_b8_of_stamps_in_fio_logs_and_hdr_logs(tmp_path: Path) -> None:
    old = tmp_path / "y_clat_hist.1.log"
    old.write_text(logs.text([(1_795_208_430_000 + at, 0, {5: 9}) for at in (0, 1000)] + [(4_700_000_000_000, 0, {5: 1})], 1856))
    done = tailboard("inspect", old)
    assert "time stamp past the year 2115" in done.stdout + done.stderr
    odd = tmp_path / "a.hlog"
    odd.write_text(hdr.log([hdr.line(at, "1.000", {5: 9}) for at in ("0.000", "1.000", "4290000000.000")]))
    done = tailboard("percentiles", odd, "--step", "all", "-p", "50", "--format", "csv")
    assert done.returncode == 0 and ",18," in done.stdout and "the time stamp is out of range" in done.stderr


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_b8_of_described_files(tmp_path: Path, form: str) -> None:
    """One such date in a block of lines took the whole block with it."""
    pytest.importorskip("pyarrow")
    (tmp_path / "e.yml").write_text("start: t\nlatency: l\nunit: {start: iso, latency: us}\n")
    dates = ["2026-05-01", "2262-05-01", "9999-05-01", "0001-05-01", "2200-01-01", "2026-02-30", "2026-05-02"]
    stamps = [f"{date}T00:00:00Z" for date in dates]
    text = "".join(json.dumps({"t": stamp, "l": 100}) + "\n" for stamp in stamps)
    if form == "csv":
        text = "t,l\n" + "".join(f"{stamp},100\n" for stamp in stamps)
    (tmp_path / f"d.{form}").write_text(text)
    done = tailboard(
        "percentiles",
        tmp_path / f"d.{form}",
        "--input-format",
        tmp_path / "e.yml",
        "--step",
        "all",
        "-p",
        "50",
        "--format",
        "csv",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("2026-05-01T00:00:00.000Z,2026-05-02T00:00:00.000Z,2,")
    assert "5 rows rejected" in done.stderr


@given(st.integers(0, 2**40), st.times(), st.times())
def test_a_time_of_day_is_the_first_one_from_an_hour_before_the_start_of_the_run(start_s: int, one, other) -> None:
    """The oracle goes through days one by one, by the calendar."""
    from datetime import UTC, datetime, timedelta

    from ingest.query.question import edges_of

    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=start_s % (100 * 365 * 86_400))
    start_ns = round((start - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) * 1000

    def first(time, earliest: datetime) -> datetime:
        day = earliest.date() - timedelta(days=1)
        while (at := datetime.combine(day, time, UTC)) < earliest:
            day += timedelta(days=1)
        return at

    begin = first(one, start - timedelta(hours=1))
    end = first(other, start - timedelta(hours=1))
    if end <= begin:
        end = first(other, begin + timedelta(microseconds=1))
    expected = [round((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) * 1000 for at in (begin, end)]
    assert list(edges_of(parse_instant(one.isoformat()), parse_instant(other.isoformat()), start_ns)) == expected


@pytest.mark.parametrize("text", ["24:00", "21:60", "21", "21:00:61", "1:2", "２１:００"])
def test_what_looks_like_a_time_of_day_and_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_instant(text)
