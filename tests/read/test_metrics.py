"""Files of metrics: each value with its time, and what is no value said with its line."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.core.errors import InputError, UsageError
from ingest.core.units import Instant
from ingest.read.metrics import read_metrics
from ingest.view.page.panels.marks import Shown
from ingest.view.page.panels.metrics import _within

SECOND = 1_000_000_000
NIGHT = int(datetime(2026, 11, 20, 21, tzinfo=UTC).timestamp()) * SECOND


def written(folder: Path, text: str) -> Path:
    path = folder / "metrics.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_come_by_name_in_their_order_with_all_forms_of_time(tmp_path: Path) -> None:
    text = 'time,name,value\n# iostat\n1970-01-01T00:00:02Z,sdb %util,98.5\n+3s,"cpu, all",-1e3\n1763672430,sdb %util,0\n'
    found = read_metrics(written(tmp_path, text))
    assert found.values == {
        "sdb %util": [(Instant(2 * SECOND), 98.5), (Instant(1_763_672_430 * SECOND), 0.0)],
        "cpu, all": [(Instant(3 * SECOND, relative=True), -1000.0)],
    }
    assert found.said == []


def test_lines_without_a_value_are_left_out_and_said(tmp_path: Path) -> None:
    lines = [
        "+1s,a,1",
        "+2s,a,nan",
        "+3s,a,1_000",
        "+4s,a",
        "yesterday,a,1",
        "+5s,,1",
        '+6s,"a,1',
        "2026-11-20T21:00:30,a,7",
        "21:00:31,a,8",
    ]
    found = read_metrics(written(tmp_path, "\n".join(lines)))
    assert [value for _, value in found.values["a"]] == [1.0, 7.0, 8.0]
    said = "\n".join(found.said)
    for line, why in (
        (2, "'nan' is not a number"),
        (3, "'1_000' is not a number"),
        (4, "2 columns"),
        (5, "'yesterday' is not a time"),
        (6, "it has no name"),
    ):
        assert f":{line}: " in said and why in said
    assert "1 value: time has no zone: taken as UTC" in said
    assert "1 value: time has no date: taken on the day of the run, as UTC" in said
    day = Shown("r", NIGHT, NIGHT + 60 * SECOND)
    assert _within(day, found.values["a"])["v"] == [1.0, 7.0, 8.0]
    with pytest.raises(UsageError, match="21:00:31 may be several times of r, which lasts 1d: write its date"):
        _within(replace(day, end_ns=NIGHT + 86_400 * SECOND), found.values["a"])


def test_a_file_that_breaks_off_is_said(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv.gz"
    packed = gzip.compress("".join(f"+{at}s,a,{at * at}\n" for at in range(40_000)).encode())
    path.write_bytes(packed[: len(packed) // 2])
    found = read_metrics(path)
    assert 0 < len(found.values["a"]) < 40_000 and "damaged or cut off" in found.said[0]


@pytest.mark.parametrize(
    ("text", "why"), [("", "it holds no metrics"), ("time,name,value\n", "it holds no metrics"), ("a,b,c\n", "no line of it is")]
)
def test_a_file_without_values_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_metrics(written(tmp_path, text))
