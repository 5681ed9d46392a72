"""fio histogram logs: what fio does to them, each fault with what becomes of it, its reason and its line."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.core.quantiles import censored, parse_percentiles, percentile_values
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read import text
from ingest.read.fio import histogram_log as fio_hist
from ingest.read.fio import repairs as fio_repairs
from ingest.read.fio.names import parse_log_name
from ingest.read.sources import ReadOptions
from oracles import brute, logs, per_io

MS = 1_000_000
COLUMNS = [(groups * 64 >> c, unit, c) for groups, unit in ((29, 1), (19, 1000)) for c in range(7)]


def hist(fio: Path, name: str, file: str = "a_clat_hist.1.log") -> str:
    return (fio / name / file).read_text()


def plain_rows(taken: Any, path: Path, op: str) -> list[tuple[int, int, dict[int, int]]]:
    """Return (start ms, end ms, counts) of an op, in reading order."""
    return [(row.start_ns // MS, row.end_ns // MS, row.counts) for row in taken(path).of(op)]


def as_brute(text: str, op: str) -> list[tuple[int, int, dict[int, int]]]:
    return [(start // MS, end // MS, counts) for start, end, counts in brute.rows_of(text)[op]]


@pytest.mark.parametrize(("bins", "unit", "coarseness"), COLUMNS, ids=lambda value: str(value))
def test_every_number_of_columns(taken: Any, log: Any, bins: int, unit: int, coarseness: int) -> None:
    text = logs.text([(1000, 0, {0: 2, bins - 2: 1}), (2000, 0, {bins // 2: 5}), (2010, 1, {1: 1})], bins)
    read = taken(log(text))
    [layout] = {row.layout for row in read.rows}
    assert (layout.bins, layout.unit_ns, layout.coarseness) == (bins, unit, coarseness)
    assert plain_rows(taken, log(text), "read") == as_brute(text, "read")
    assert plain_rows(taken, log(text), "write") == as_brute(text, "write")


@pytest.mark.parametrize(
    ("groups", "unit", "expected"),
    [(32, None, 1), (24, 1000, 1000), (24, 1, 1), (20, 1000, 1000)],
)
def test_custom_builds_are_known_by_their_columns(log: Any, taken: Any, groups: int, unit: int | None, expected: int) -> None:
    read = taken(log(logs.text([(1000, 0, {0: 2, 130: 1})], groups * 64)), options=ReadOptions(recorded_unit_ns=unit))
    assert (read.rows[0].layout.bins, read.rows[0].layout.unit_ns) == (groups * 64, expected)


def test_a_custom_build_of_unknown_unit_is_refused(log: Any, taken: Any) -> None:
    with pytest.raises(
        InputError, match=r"1539 columns are not a fio histogram .*24 groups of 64 bins .*--recorded-unit us or ns"
    ):
        taken(log(logs.text([(1000, 0, {0: 2})], 24 * 64)))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "compressed by log_compression",
            "505, 94508288599200, 0, 4096, 0\n" * 4,
            "rows of 5 columns are not histograms: log_compression",
        ),
        ("averaged or raw", "500, 631, 0, 0\n1000, 640, 0, 0\n", "rows of 4 columns are not histograms"),
        ("seven columns", "500, 631, 0, 0, 0, 1, 2\n", "rows of 7 columns are not histograms"),
        ("some csv", "a,b,c\n1,2,3\n", "3 columns are not a fio histogram"),
        ("prose", "It was a dark and stormy night.\n", "1 columns are not a fio histogram"),
        ("empty", "", "holds no line: fio wrote no histogram"),
        ("blank lines", "\n\r\n \n", "holds no line: fio wrote no histogram"),
        ("only NULs", "\0" * 100, "holds no line: fio wrote no histogram"),
    ],
)
def test_what_is_no_histogram_log_is_refused_with_the_reason(log: Any, taken: Any, name: str, content: str, reason: str) -> None:
    path = log(content)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}:(1:)? {re.escape(reason)}"):
        taken(path)


def test_recorded_garbage_of_log_compression_is_refused(fio: Path, taken: Any) -> None:
    path = fio / "compressed" / "a_clat_hist.1.log"
    with pytest.raises(InputError, match="rows of 5 columns are not histograms: log_compression destroys them"):
        taken(path)


def test_recorded_average_logs_are_left_out_and_histograms_kept(fio: Path, taken: Any) -> None:
    folder = fio / "averaged"
    total = taken(folder).total("read")
    assert total == per_io.json_bins(per_io.json_of(folder / "a.json")["jobs"][0]["read"], 232, 3)
    left = {entry.path.name: entry.reason for entry in Files([folder]).found.skipped if entry.action == "shadowed"}
    assert "means over time" in left["a_clat.1.log"] and "means over time" in left["a_lat.1.log"]


def test_rows_without_a_count_are_rejected(fio: Path, taken: Any) -> None:
    read = taken(fio / "zero-rows" / "a_clat_hist.1.log")
    assert read.rows == [] and read.account.rejected == {"all bins zero (clat_percentiles=0?)": read.account.rows}
    with pytest.raises(InputError, match="no row could be taken: all bins zero"):
        Files(per_io.histogram_files(fio / "zero-rows"), jobs=1).answer(Question(step="all"))


def test_an_empty_log_is_skipped_with_the_reason(fio: Path, taken: Any) -> None:
    with pytest.raises(InputError, match="holds no line: fio wrote no histogram|no.* latency histogram"):
        taken(fio / "empty")


# Counting modes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coarse-3", "coarse-6", "randrw"])
def test_cumulative_logs_are_differenced(fio: Path, log: Any, taken: Any, name: str) -> None:
    text = microseconds(longer(hist(fio, name), 3))
    path = log(logs.cumulative(text))
    for op in ("read", "write"):
        assert plain_rows(taken, path, op) == as_brute(text, op)
    account = taken(path).account
    assert (
        account.repaired
        == {"counts cumulative since the start": account.rows}
        == {"counts cumulative since the start": len(text.splitlines())}
    )
    assert account.accepted == 0 and "counts are cumulative since the start: differenced" in account.notes[0]


def test_the_first_fork_wrote_one_leading_cell(fio: Path, log: Any, taken: Any) -> None:
    source = longer(logs.text([(1000 * n, 0, {50: 100, 60 + n: 7}) for n in range(1, 4)], 1216), 3)
    path = log(logs.undirected(logs.cumulative(source)))
    assert path.read_text().count(",") == 1216 * len(source.splitlines())
    assert plain_rows(taken, path, "all") == as_brute(source, "read")


def longer(text: str, times: int) -> str:
    """Return the rows of a log again and again, time going on."""
    rows = logs.cells(text)
    span = max(row[0] for row in rows)
    return logs.joined([row[0] + span * turn, *row[1:]] for turn in range(times) for row in rows)


def microseconds(text: str) -> str:
    """Return a log of 29 groups of bins as one of 19 groups, of us: the lower bins as they are."""
    rows = logs.cells(text)
    bins = (len(rows[0]) - 3) * 19 // 29
    assert not any(any(row[3 + bins :]) for row in rows)
    return logs.joined(row[: 3 + bins] for row in rows)


def beside(path: Path, document: dict) -> Path:
    (path.parent / "x.json").write_text(json.dumps(document))
    return path


def test_a_steadily_rising_log_of_a_known_run_is_left_alone(log: Any, taken: Any) -> None:
    """fio's own count decides where the rows alone could be either."""
    text = logs.text([(1000 * n, 0, {10: 10 * n}) for n in range(1, 7)], 29)
    document = {"fio version": "fio-3.33", "timestamp_ms": 1_700_000_006_000}
    document["jobs"] = [
        {"jobname": "x", "read": {"total_ios": 210, "runtime": 6000, "clat_ns": {"N": 210, "bins": {"786432": 210}, "max": 1}}}
    ]
    path = beside(log(text), document)
    assert [counts for *_, counts in plain_rows(taken, path.parent, "read")] == [{10: 10 * n} for n in range(1, 7)]


def test_a_steadily_rising_log_alone_is_left_alone(log: Any, taken: Any) -> None:
    text = logs.text([(1000 * n, 0, {10: 10 * n}) for n in range(1, 7)], 29)
    assert plain_rows(taken, log(text), "read") == as_brute(text, "read")


@pytest.mark.parametrize("name", ["client-server", "client-server-rw"])
def test_compounded_rows_of_fio_client_are_undone(fio: Path, taken: Any, name: str) -> None:
    read = taken(fio / name)
    [file] = (fio / name).glob("*_clat_hist*")
    document = json.loads((fio / name / "a.json").read_text()[(fio / name / "a.json").read_text().index("{") :])
    rows = len(file.read_text().splitlines())
    assert read.account.repaired == {"counts compounded by fio --client": rows} and read.account.rows == rows
    for op, entry in ((op, document["client_stats"][0][op]) for op in {row.series.op for row in read.rows}):
        logged = [[int(cell) for cell in line.split(",")] for line in file.read_text().splitlines()]
        chain = [row[3:] for row in logged if brute.OPS[row[1]] == op]
        expected = [chain[0], chain[1]] + [
            [a - b for a, b in zip(now, old, strict=True)] for now, old in zip(chain[2:], chain, strict=False)
        ]
        *found, residual = read.of(op)
        assert [row.counts for row in found] == [{slot: n for slot, n in enumerate(row) if n} for row in expected]
        assert read.total(op) == per_io.json_bins(entry, 232, 3)
        assert sum(read.total(op).values()) == entry["clat_ns"]["N"] == entry["total_ios"]
        assert 90 <= sum(sum(row.counts.values()) for row in found[1:2]) <= 110 or op == "write"
        assert residual.series.host == "127.0.0.1"


def test_compounding_is_told_by_fio_s_count_even_without_client_output(fio: Path, log: Any, taken: Any) -> None:
    text = hist(fio, "coarse-3")
    document = per_io.json_of(fio / "coarse-3" / "a.json")
    path = log(logs.compounded(text), "a_clat_hist.1.log.h1")
    (path.parent / "a.json").write_text(json.dumps(document))
    for op in ("read", "write"):
        total = taken(path.parent).total(op)
        assert total == per_io.json_bins(document["jobs"][0][op], 232, 3)


def test_a_host_suffix_alone_is_no_evidence_of_compounding(fio: Path, log: Any, taken: Any) -> None:
    text = hist(fio, "stall")
    read = taken(log(text, "output.0_clat_hist.1.log.ceph-a"))
    assert [row.counts for row in read.of("read")] == [
        counts for *_, counts in brute.settled(brute.rows_of(text)["read"], 500, 1856, stated=False)
    ]
    assert not read.account.repaired and {row.series.host for row in read.rows} == {"ceph-a"}


def test_a_lost_row_of_a_compounded_log_costs_no_more_than_its_pair(log: Any, taken: Any) -> None:
    """D_n holds d_n + d_(n-2) + ...: without row 5 nothing says what was in rows 5 and 7 apart, but rows 6, 8, ... stay right."""
    text = logs.text([(500 * n, 0, {10: 100, 12: n % 3}) for n in range(1, 13)], 29)
    lines = logs.compounded(text).splitlines(keepends=True)
    lines[4] = "garbage\n"
    path = log("".join(lines), "x_clat_hist.1.log.h1")
    document = {
        "fio version": "fio-3.33",
        "client_stats": [{"jobname": "x", "hostname": "h1", "read": {"total_ios": 1216, "clat_ns": {"N": 1216}}}],
    }
    (path.parent / "x.json").write_text(json.dumps(document))
    true = {end: counts for _, end, counts in as_brute(text, "read")}
    found = [(end, counts) for _, end, counts in plain_rows(taken, path.parent, "read")]
    assert len(found) >= 9
    assert all(counts == true[end] for end, counts in found if end != 3500)


def test_a_bad_row_of_a_cumulative_log_is_bridged(log: Any, taken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row past those that a log is judged by."""
    monkeypatch.setattr(fio_repairs, "MOST_JUDGED", 5)
    text = logs.text([(500 * n, 0, {10: 100, 12: n}) for n in range(1, 10)], 1216)
    rows = logs.cells(logs.cumulative(text))
    rows[5][3 + 10] = 7
    read = taken(log(logs.joined(rows)))
    assert read.account.rejected == {"a bin falls although counts are cumulative since the start": 1}
    assert read.total("read") == Counter({10: 900, 12: 45})


# Chains and segments ----------------------------------------------------------------------------------------


def test_each_direction_has_its_own_chain(fio: Path, taken: Any, log: Any) -> None:
    text = hist(fio, "coarse-3")
    path = log(text)
    assert [row[:2] for row in plain_rows(taken, path, "read")] == [row[:2] for row in as_brute(text, "read")]
    assert [row[:2] for row in plain_rows(taken, path, "write")] == [row[:2] for row in as_brute(text, "write")]
    assert plain_rows(taken, path, "read")[0][0] == plain_rows(taken, path, "write")[0][0] == 0


def test_trims_are_an_op_of_their_own(fio: Path, taken: Any) -> None:
    assert {row.series.op for row in taken(fio / "trim").rows} == {"trim"}


def test_unix_stamps_are_real_time(fio: Path, taken: Any, log: Any) -> None:
    text = hist(fio, "unix-epoch")
    stamps = [int(line.split(",")[0]) for line in text.splitlines() if ", 0, " in line[:18]]
    for path in (fio / "unix-epoch", log(text)):
        rows = [row for row in taken(path).of("read")][: len(stamps)]
        assert [row.end_ns for row in rows] == [stamp * MS for stamp in stamps]
        assert 0 < rows[0].end_ns - rows[0].start_ns <= 510 * MS
        assert [row.start_ns for row in rows[1:]] == [stamp * MS for stamp in stamps[:-1]]


def test_jobs_that_share_a_log_are_segments(fio: Path, taken: Any) -> None:
    read = taken(fio / "per-job-logs-0")
    document = per_io.json_of(fio / "per-job-logs-0" / "a.json")
    *rows, residual = read.of("read")
    assert [(row.series.segment, sum(row.counts.values())) for row in rows] == [
        (0, 102),
        (0, 100),
        (0, 100),
        (1, 102),
        (1, 100),
        (1, 100),
    ]
    assert [row.start_ns for row in rows[:3]] == [row.start_ns for row in rows[3:4]] + [rows[0].end_ns, rows[1].end_ns]
    assert sum(residual.counts.values()) == 116
    both = per_io.json_bins(document["jobs"][0]["read"], 232, 3)
    both.update(per_io.json_bins(document["jobs"][1]["read"], 232, 3))
    assert read.total("read") == both
    assert (read.account.rows, read.account.accepted) == (6, 6)


def test_rows_of_an_older_run_are_rejected(fio: Path, taken: Any) -> None:
    read = taken(fio / "appended" / "a_clat_hist.log", fio / "appended" / "b.json")
    document = per_io.json_of(fio / "appended" / "b.json")
    expected = Counter()
    for entry in document["jobs"]:
        expected.update(per_io.json_bins(entry["read"], 232, 3))
    assert read.total("read") == expected
    assert read.account.rejected == {"row of an older run that was appended to": 6}
    assert read.findings("rejected") == [(line, "row of an older run that was appended to") for line in range(1, 6)]
    assert (read.account.rows, read.account.accepted) == (12, 6)


def test_a_latency_target_reset_in_a_shared_log_is_no_older_run(fio: Path, tmp_path: Path, taken: Any) -> None:
    shutil.copy(fio / "latency-target" / "a_clat_hist.1.log", tmp_path / "a_clat_hist.log")
    shutil.copy(fio / "latency-target" / "a.json", tmp_path)
    read = taken(tmp_path)
    whole = taken(*per_io.histogram_files(fio / "latency-target"))
    assert sum(read.total("read").values()) == sum(whole.total("read").values())


def test_group_sums_leave_a_residual_that_adds_up(fio: Path, taken: Any) -> None:
    read = taken(fio / "group-reporting")
    [entry] = per_io.json_of(fio / "group-reporting" / "a.json")["jobs"]
    for op, left in (("read", 115), ("write", 56)):
        assert read.total(op) == per_io.json_bins(entry[op], 232, 3)
        [residual] = [row for row in read.of(op) if not row.series.job]
        assert sum(residual.counts.values()) == left


def test_sections_are_matched_by_thread_number(fio: Path, taken: Any) -> None:
    read = taken(fio / "two-sections")
    for number, entry in enumerate(per_io.json_of(fio / "two-sections" / "a.json")["jobs"], 1):
        for op in ("read", "write"):
            assert read.total(op, job=str(number)) == per_io.json_bins(entry[op], 29, 6)


def test_folders_of_equal_names_are_hosts(fio: Path, taken: Any) -> None:
    assert {row.series.host for row in taken(fio / "host-folders").rows} == {"h1", "h2"}


# Damage -----------------------------------------------------------------------------------------------------

ROWS = "".join(logs.line(505 + 500 * n, 0, {3: 100 - n, 5: n + 1}, 29) + "\n" for n in range(6))


def damaged(number: int, text: str) -> str:
    lines = ROWS.splitlines(keepends=True)
    lines[number - 1] = text
    return "".join(lines)


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("last line cut off", ROWS[:-7], 6, "last line breaks off without a newline"),
        ("last line cut in its stamp", ROWS + "35", 7, "last line breaks off without a newline"),
        ("copy goes on after a hole", damaged(3, "1505, 0, 4096, 1, 2\n"), 3, "fewer columns than the rows of this log (32)"),
        (
            "two rows run together",
            damaged(3, ROWS.splitlines()[2] + ROWS.splitlines()[2] + "\n"),
            3,
            "more columns than the rows of this log (32)",
        ),
        ("NUL bytes", damaged(3, "\0" * 90 + "\n"), 3, "NUL bytes: a hole left by a crash or a partial copy"),
        (
            "NULs within",
            damaged(3, ROWS.splitlines()[2].replace("98", "\0\0") + "\n"),
            3,
            "NUL bytes: a hole left by a crash or a partial copy",
        ),
        ("a negative count", damaged(3, ROWS.splitlines()[2].replace(" 98", " -8") + "\n"), 3, "not a row of plain integers"),
        ("a float", damaged(3, ROWS.splitlines()[2].replace(" 98", " 9.8") + "\n"), 3, "not a row of plain integers"),
        ("a word", damaged(3, ROWS.splitlines()[2].replace(" 98", " nan") + "\n"), 3, "not a row of plain integers"),
        ("an empty cell", damaged(3, ROWS.splitlines()[2].replace(" 98", " ") + "\n"), 3, "not a row of plain integers"),
        ("leading zeros", damaged(3, ROWS.splitlines()[2].replace(" 98", " 098") + "\n"), 3, "not a row of plain integers"),
        ("21 digits", damaged(3, ROWS.splitlines()[2].replace(" 98", " " + "9" * 21) + "\n"), 3, "not a row of plain integers"),
        (
            "past 2^64",
            damaged(3, ROWS.splitlines()[2].replace(" 98", " 18446744073709551616") + "\n"),
            3,
            "not a row of plain integers",
        ),
        (
            "a huge count",
            damaged(3, ROWS.splitlines()[2].replace(" 98", " 4611686018427387904") + "\n"),
            3,
            "implausible counts (above 2^40 in one interval)",
        ),
        ("direction 3", damaged(3, ROWS.splitlines()[2].replace("1505, 0,", "1505, 3,") + "\n"), 3, "direction is not 0, 1 or 2"),
        (
            "a stamp past 2115",
            damaged(3, ROWS.splitlines()[2].replace("1505,", f"{2**43},") + "\n"),
            3,
            "time stamp past the year 2115",
        ),
        ("all bins zero", damaged(3, logs.line(1505, 0, {}, 29) + "\n"), 3, "all bins zero (clat_percentiles=0?)"),
        ("a text line", damaged(3, "fio: terminating on signal 2\n"), 3, "fewer columns than the rows of this log (32)"),
    ],
)
def test_a_bad_row_costs_only_itself(log: Any, taken: Any, name: str, content: str, line: int, reason: str) -> None:
    path = log(content)
    read = taken(path)
    assert read.findings("rejected") == [(line, reason)]
    assert str(read.account.findings[0]) == f"{path}:{line}: rejected: {reason}"
    lines = content.count("\n") + (not content.endswith("\n"))
    assert (read.account.rows, read.account.accepted, read.account.rejected) == (lines, lines - 1, {reason: 1})
    kept = [row for number, row in enumerate(ROWS.splitlines(keepends=True), 1) if number != line]
    assert [row.counts for row in read.rows] == [counts for *_, counts in brute.rows_of("".join(kept))["read"]]


def test_the_row_after_a_bad_one_reaches_back_to_the_last_good_one(log: Any, taken: Any) -> None:
    rows = plain_rows(taken, log(damaged(3, "garbage\n")), "read")
    assert [row[:2] for row in rows] == [(0, 505), (505, 1005), (1005, 2005), (2005, 2505), (2505, 3005)]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("CRLF", lambda text: text.replace("\n", "\r\n")),
        ("blank lines", lambda text: text.replace("\n", "\n\n") + "\n \n"),
        ("CRLF and blank lines", lambda text: text.replace("\n", "\r\n\r\n")),
    ],
)
def test_line_ends_are_nobody_s_fault(log: Any, taken: Any, name: str, change: Any) -> None:
    read = taken(log(change(ROWS)))
    assert [row.counts for row in read.rows] == [counts for *_, counts in brute.rows_of(ROWS)["read"]]
    assert (read.account.rows, read.account.accepted) == (6, 6)


def test_an_accepted_last_line_without_its_newline_is_not_trusted(log: Any, taken: Any) -> None:
    """It may be cut in the middle of its last number: 18 of 180."""
    assert taken(log(ROWS[:-1])).findings("rejected") == [(6, "last line breaks off without a newline")]


def test_a_carriage_return_within_a_line_is_one_fault(log: Any, taken: Any) -> None:
    read = taken(log(damaged(3, ROWS.splitlines()[2].replace("1505, 0", "1505\r, 0") + "\n") + "garbage\n"))
    assert [line for line, _ in read.findings("rejected")] == [3, 7]


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_compressed_logs(fio: Path, log: Any, taken: Any, ending: str) -> None:
    pack = gzip.compress if ending == ".gz" else lzma.compress
    text = hist(fio, "coarse-3")
    path = log(pack(text.encode()), f"x_clat_hist.1.log{ending}")
    assert plain_rows(taken, path, "read") == as_brute(text, "read")


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_truncated_archive_keeps_what_came_before(fio: Path, log: Any, taken: Any, ending: str) -> None:
    pack = gzip.compress if ending == ".gz" else lzma.compress
    packed = pack("".join(longer(hist(fio, "coarse-3"), 8)).encode())
    read = taken(log(packed[: len(packed) * 9 // 10], f"x_clat_hist.1.log{ending}"))
    assert read.account.accepted >= 20
    assert any("damaged or cut off" in entry.caveat.sentence for entry in read.account.missing)


def test_a_damaged_archive_is_refused_as_damaged(log: Any, taken: Any) -> None:
    with pytest.raises(InputError, match="damaged or cut off|not a gzip"):
        taken(log(b"this is not gzip at all\n" * 10, "x_clat_hist.1.log.gz"))


def test_a_line_of_digits_alone_costs_only_itself(log: Any, taken: Any) -> None:
    """The stamp of a row that was cut there, and the copy went on."""
    assert taken(log(damaged(3, "1505\n"))).findings("rejected") == [(3, "fewer columns than the rows of this log (32)")]


@pytest.mark.parametrize(
    "stamp",
    [
        pytest.param(str(2**63), id="past int64"),
        pytest.param(str(2**64 - 1), id="uint64"),
        pytest.param("9" * 30, id="30 digits"),
        pytest.param("9" * 5000, id="5000 digits"),
    ],
)
def test_a_huge_stamp_costs_only_its_row(log: Any, taken: Any, stamp: str) -> None:
    read = taken(log(damaged(3, ROWS.splitlines()[2].replace("1505,", stamp + ",") + "\n")))
    assert (read.account.rows, read.account.accepted) == (6, 5)


@pytest.mark.parametrize(
    ("name", "stamps", "bounds"),
    [
        (
            "forward by a day and more",
            [505, 1005, 200_000_000, 200_000_500],
            [(0, 505), (505, 1005), (199_999_500, 200_000_000), (200_000_000, 200_000_500)],
        ),
        ("back to the start", [505, 1005, 400, 905], [(0, 505), (505, 1005), (0, 400), (400, 905)]),
        (
            "back into the middle",
            [505, 1005, 1505, 9000, 8000, 8500],
            [(0, 505), (505, 1005), (1005, 1505), (1505, 2005), (9000, 9000), (7500, 8000), (8000, 8500)],
        ),
    ],
)
def test_clock_jumps(log: Any, taken: Any, name: str, stamps: list[int], bounds: list[tuple[int, int]]) -> None:
    document = versioned("fio-3.33")
    document["jobs"][0]["job options"] = {"log_hist_msec": "500"}
    document["jobs"][0]["read"] = {}
    path = beside(log(logs.text([(stamp, 0, {5: 10 - n}) for n, stamp in enumerate(stamps)], 29)), document)
    rows = plain_rows(taken, path.parent, "read")
    assert [row[:2] for row in rows] == bounds
    held = [sum(counts.values()) for *_, counts in rows]
    assert held == ([10, 9, 8, 6, 1, 6, 5] if name == "back into the middle" else [10 - n for n in range(len(stamps))])
    narrowed = {"clock jump: the row is taken for as wide as its neighbours": 1}
    assert taken(path.parent).account.repaired == ({} if name == "back to the start" else narrowed)


def test_catch_up_rows_after_a_stall_are_kept(fio: Path, taken: Any) -> None:
    rows = taken(fio / "stall").of("read")
    zero = per_io.zero_ms(per_io.json_of(fio / "stall" / "a.json")) * MS
    widths = [(row.end_ns - row.start_ns) // MS for row in rows[:12]]  # those of the log
    assert [(row.end_ns - zero) // MS for row in rows[:5]] == [505, 1005, 1505, 4496, 4500]
    assert max(widths) == 505 and sum(width == 0 for width in widths) == 7


def test_a_long_stall_does_not_make_rows_wide(fio: Path, log: Any) -> None:
    """500 ms rows with a stall of 3.5 s in 5 s, and no JSON to tell log_hist_msec: windows of 1 s are fine all the same."""
    path = log(hist(fio, "stall"))
    assert Files([path], jobs=1).answer(Question(step=1000 * MS)).samples == 503


def test_folder_and_file_that_hold_nothing(tmp_path: Path, taken: Any) -> None:
    with pytest.raises(InputError, match=f"{tmp_path}: there is no file to read"):
        taken(tmp_path)
    readme = tmp_path / "README.txt"
    readme.write_text("no numbers here\n")
    with pytest.raises(InputError, match=f"{readme}: no latency log of a known format; tailboard reads .*--input-format"):
        taken(readme)
    with pytest.raises(InputError, match="1 file, and it is no latency histogram or log: no latency log of a known format"):
        taken(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        taken(tmp_path / "absent")


def test_deflated_logs_are_refused_with_the_way_out(log: Any, taken: Any) -> None:
    with pytest.raises(InputError, match="log_store_compressed: decode it with fio --inflate-log"):
        taken(log(b"x\x9c\x00", "x_clat_hist.1.log.fz"))


# Counts that fio spoiled ------------------------------------------------------------------------------------


def spoiled(bins: int = 1856) -> str:
    """Return rows as fio 3.6 to 3.16 write them: uninitialised memory from bin 928 on."""
    return logs.text([(1000 * n, 0, {700: 50, 800: n, 928: 10**18 + n, 1200: 7 * 10**17}) for n in range(1, 7)], bins)


def versioned(version: str, bins: dict[str, int] | None = None) -> dict:
    count = sum(bins.values()) if bins else 20
    clat = {"N": count, "max": 9, **({"bins": bins} if bins else {})}
    job = {"jobname": "x", "read": {"total_ios": count, "runtime": 6500, "clat_ns": clat}}
    return {"fio version": version, "timestamp_ms": 1_700_000_006_500, "jobs": [job]}


MASKED = "fio 3.6 to 3.16: bins from 786 us up are uninitialised memory and were masked"


SPOILT = [(1000, 0, {927: 3, 928: 5}), (2000, 0, {700: 9, 1000: 1})]


@pytest.mark.parametrize("version", ["fio-3.6", "fio-3.7", "fio-3.16"])
def test_bins_that_fio_3_6_to_3_16_spoil_are_masked(log: Any, taken: Any, version: str) -> None:
    path = beside(log(logs.text(SPOILT, 1856)), versioned(version, {"782336": 3, "790528": 8, "63744": 10}))
    read = taken(path.parent)
    assert [row.counts for row in read.of("read")] == [{927: 3}, {700: 9}, {700: 1}]
    assert read.account.repaired == {MASKED: 2}
    assert read.findings("repaired") == [(1, MASKED), (2, MASKED)]
    [note] = read.account.notes
    assert note.endswith(
        ": read: 8 of 21 samples, all of 786 us or more, are not in the log (fio 3.6 to 3.16 damages their bins): every percentile is "
        "a lower bound, and those above 61.9 are 786 us or more"
    )


def test_what_masking_lost_is_told_without_json_bins_too(log: Any, taken: Any) -> None:
    path = beside(log(logs.text(SPOILT, 1856)), versioned("fio-3.7"))
    [note] = taken(path.parent).account.notes
    assert note.endswith(
        ": read: fio counts 20, its log holds 12 sound samples: the others lie in damaged bins (786 us or more) or in the last "
        "partial interval, and only json+ shows which; every percentile is a lower bound"
    )


@pytest.mark.parametrize("version", ["fio-3.5", "fio-3.17", "fio-3.33", "fio-2.99"])
def test_other_versions_are_not_masked(log: Any, taken: Any, version: str) -> None:
    path = beside(log(logs.text([(1000, 0, {927: 3, 928: 5})], 1856)), versioned(version, {"782336": 3, "790528": 5}))
    read = taken(path.parent)
    assert read.total("read") == {927: 3, 928: 5} and not read.account.repaired


def test_garbage_is_known_without_a_version(log: Any, taken: Any) -> None:
    read = taken(log(spoiled()))
    assert read.total("read") == {700: 300, 800: 21}
    assert read.account.repaired == {MASKED: 6} and read.account.samples == 321
    assert [note.split(": ", 1)[-1] for note in read.account.notes] == [fio_repairs.LOST_UNKNOWN]


def test_garbage_in_coarse_bins(log: Any, taken: Any) -> None:
    text = logs.text([(1000 * n, 0, {80: 50 - n, 928 >> 3: 10**18}) for n in range(1, 7)], 232)
    assert taken(log(text)).total("read") == {80: 279}


GARBAGE_LATE = [(1000, 0, {700: 50, 928: 3}), (1010, 1, {700: 8, 950: 3}), (2000, 1, {700: 8, 928: 10**18}), (2010, 0, {700: 6})]


def test_garbage_is_masked_in_every_row_of_a_chunk_whatever_came_first(log: Any, taken: Any) -> None:
    read = taken(log(logs.text(GARBAGE_LATE, 1856)))
    assert read.total("read") == {700: 56}
    assert read.total("write") == {700: 16}


def test_garbage_that_shows_only_later_is_said(log: Any, taken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was yielded before cannot be taken back; that it was not masked must be told."""
    monkeypatch.setattr(fio_hist, "CHUNK_ROWS", 1)
    monkeypatch.setattr(text, "BLOCK", 6000)
    path = log(logs.text(GARBAGE_LATE, 1856))
    read = taken(path)
    assert read.total("write") == {700: 16, 950: 3}
    assert read.account.notes == [
        f"{path}: bins from 786 us up are corrupt from line 3 on at the latest; earlier ones look whole",
        f"{path}: {fio_repairs.LOST_UNKNOWN}",
    ]


def test_the_last_bin_is_counted_as_saturated_and_flagged(log: Any, taken: Any) -> None:
    path = log(logs.text([(1000, 0, {900: 98, 1855: 2}), (2000, 0, {900: 97, 1855: 1})], 1856))
    assert taken(path).account.saturated == 3
    answer = Files([path], jobs=1).answer(Question(step="all"))
    [part] = answer.parts
    p99 = parse_percentiles("99")
    assert percentile_values(part, p99[0]).tolist() == [17_045_651_456]
    assert [flags.tolist() for flags in censored(part, parse_percentiles("50,99"))] == [[False], [True]]
    assert "3 samples lie in the last bin: at least its lower edge, true values unknown" in answer.warnings


# Names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prefix", "kind", "job", "host", "volume", "deflated"),
    [
        ("output.0_clat_hist.2.log.gprfc073", "output.0", "clat_hist", "2", "gprfc073", "0", False),
        ("output.12_lat.1.log.node-3.example.com", "output.12", "lat", "1", "node-3.example.com", "12", False),
        ("output_clat.1.log.h1", "output", "clat", "1", "h1", "", False),
        ("fio_clat_hist.1.log", "fio", "clat_hist", "1", "", "", False),
        ("pj_clat_hist.log", "pj", "clat_hist", "", "", "", False),
        ("x_clat.3.log.fz.10.0.0.7", "x", "clat", "3", "10.0.0.7", "", True),
        ("job_with_lat_in_name_clat.1.log", "job_with_lat_in_name", "clat", "1", "", "", False),
        ("cs_clat_hist.1.log.127.0.0.1", "cs", "clat_hist", "1", "127.0.0.1", "", False),
        ("output.0_clat_hist.1.log.ceph-a.gz", "output.0", "clat_hist", "1", "ceph-a", "0", False),
        ("a_clat_hist.1.log.xz", "a", "clat_hist", "1", "", "", False),
    ],
)
def test_file_names(name: str, prefix: str, kind: str, job: str, host: str, volume: str, deflated: bool) -> None:
    found = parse_log_name(Path(name))
    assert found is not None
    assert (found.prefix, found.type, found.job, found.host, found.volume, found.deflated) == (
        prefix,
        kind,
        job,
        host,
        volume,
        deflated,
    )


@pytest.mark.parametrize("name", ["json_output.0.ceph-a", "README.md", "clat_hist.log", "x_clat_hist.1.txt", "x_clat_hist.a.log"])
def test_names_that_are_no_logs(name: str) -> None:
    assert parse_log_name(Path(name)) is None


# Parser -----------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**43 - 1),
            st.integers(0, 2),
            st.dictionaries(st.integers(0, 28), st.one_of(st.integers(0, 99), st.integers(0, 2**64 - 1))),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_the_vector_parser_reads_what_stands_there(rows: list[tuple[int, int, dict[int, int]]]) -> None:
    import numpy as np

    from ingest.read.integers import Parser

    parsed = Parser(32, 3).parse(np.frombuffer(logs.text(rows, 29).encode(), np.uint8))
    assert parsed is not None
    assert parsed.lead.tolist() == [[stamp, direction, 4096] for stamp, direction, _ in rows]
    for number, (*_, counts) in enumerate(rows):
        held = slice(parsed.indptr[number], parsed.indptr[number + 1])
        found = dict(zip(parsed.bins[held].tolist(), parsed.counts[held].tolist(), strict=True))
        assert found == {slot: n for slot, n in sorted(counts.items()) if n}


@given(st.integers(0, 31), st.sampled_from(["", "  ", "-1", "1.5", "007", "00", "1e3", "٣", "x", "1 2", "0,", "+1"]))
def test_the_vector_parser_takes_no_other_cell(column: int, cell: str) -> None:
    import numpy as np

    from ingest.read.integers import Parser

    cells = ["12"] * 32
    cells[column] = cell
    text = ", ".join(["7"] * 32) + "\n" + ", ".join(cells) + "\n"
    assert Parser(32, 3).parse(np.frombuffer(text.encode(), np.uint8)) is None


def test_reasons_named_here_are_those_of_the_reader() -> None:
    assert MASKED == fio_repairs.MASKED
