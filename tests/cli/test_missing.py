"""Commands on data of which samples are missing: exit statuses, tables, csv, junit."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.commands import tailboard

MASKED = Path(__file__).parents[1] / "data" / "fio" / "cases" / "fio37-masked"
SLA = "objectives:\n  - {name: read p99, percentile: 99, threshold: 5ms, window: 1s, where: {op: read}}\n"


@pytest.fixture
def sla(tmp_path: Path) -> Path:
    path = tmp_path / "sla.yml"
    path.write_text(SLA)
    return path


def test_a5_check_says_cannot_tell_of_the_damaged_log_and_violated_of_the_raw_log(masked: Path, sla: Path) -> None:
    done = tailboard("check", sla, masked)
    assert done.returncode == 5 and done.stdout.startswith("CANNOT TELL  read p99:")
    assert "cannot tell: samples are missing in 4 windows" in done.stdout
    assert tailboard("check", sla, masked, "--allow-unknown").returncode == 0
    done = tailboard("check", sla, MASKED)
    assert done.returncode == 1 and done.stdout.startswith("VIOLATED")
    (masked / "out.json").unlink()
    assert tailboard("check", sla, masked).returncode == 5


def test_a5_junit_skips_what_cannot_be_told(masked: Path, sla: Path) -> None:
    done = tailboard("check", sla, masked, "--format", "junit")
    suite = ET.fromstring(done.stdout)[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "1")
    (skipped,) = suite.iter("skipped")
    assert (skipped.get("message") or "").startswith("cannot tell: samples are missing")


def mean_of(printed: str, op: str) -> str:
    """Return the mean of an op as a table shows it."""
    titles, line = (next(line for line in printed.splitlines() if word in line.split()) for word in ("mean", op))
    end = titles.index("mean") + len("mean")
    return line[:end].rpartition("  ")[2].strip()


def test_a5_percentiles_are_ranges_in_tables_and_columns_with_bounds(masked: Path) -> None:
    words = ("percentiles", masked, "--step", "all", "--by", "op", "-p", "50,99")
    assert "786µs - 104ms" in tailboard(*words).stdout
    rows = list(csv.DictReader(io.StringIO(tailboard(*words, "--format", "csv", "--bounds").stdout)))
    assert [(row["complete"], row["p99"], row["p99_lo"], row["p99_hi"]) for row in rows][0] == (
        "false", "786432", "786432", "103743443",
    )  # fmt: skip
    assert "73.000 % - 100.000 %" in tailboard(*words, "--below", "5ms").stdout
    assert mean_of(tailboard(*words).stdout, "read") == "342µs - 28.1ms"  # (876 of 178us + 324 of 786us or 104ms) / 1200
    (masked / "out.json").unlink()
    assert ">= " in tailboard(*words).stdout
    assert mean_of(tailboard(*words).stdout, "read") == "180µs"  # what is missing may lie on either side, as of percentiles
    first = [
        line
        for line in tailboard("percentiles", masked, "--step", "1s", "--below", "5ms").stdout.splitlines()
        if "5ms" not in line
    ]
    assert any("<= 100.000 %" in line for line in first)
    rows = list(csv.DictReader(io.StringIO(tailboard(*words, "--format", "csv", "--bounds").stdout)))
    assert all((row["complete"], row["p99_hi"]) == ("false", "") for row in rows)


def test_bounds_of_missing_samples_and_of_chance_are_not_mixed(masked: Path) -> None:
    done = tailboard("percentiles", masked, "--accuracy", "10%", "--bounds")
    assert done.returncode == 2 and "leave one out" in done.stderr


@pytest.mark.slow
def test_the_page_and_the_picture_mark_where_samples_are_missing(masked: Path, tmp_path: Path) -> None:
    assert "samples are missing" in tailboard("heatmap", masked, "--format", "svg").stdout
    assert tailboard("report", masked, "-o", tmp_path / "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text()
    assert "786 µs to 104 ms" in page
