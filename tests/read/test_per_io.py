"""Against the truth: histogram rows and percentiles held against fio's own log of every single I/O."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.core.quantiles import parse_percentiles, percentile_values
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import read
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import brute, per_io

MS = 1_000_000
SECOND = 1000 * MS
PERCENTS = ("50", "90", "95", "99", "99.9", "100")
BY_STAMP = ("randrw", *(f"coarse-{c}" for c in range(1, 7)), "unix-epoch", "trim", "stall", "bssplit", "lat-percentiles")


def logs_of(folder: Path) -> tuple[Path, Path]:
    return folder / "a_clat_hist.1.log", folder / "a_clat.1.log"


def stamps_of(fio: Path, name: str) -> tuple[Any, dict[str, list[per_io.Sample]], int]:
    """Return the folder's samples, and what to take off row ends (ns) to have the stamps of the log."""
    raw = per_io.samples(logs_of(fio / name)[1])
    document = per_io.json_of(fio / name / "a.json")
    return document, raw, 0 if name == "unix-epoch" else per_io.zero_ms(document)


def as_written(rows: list[Any], logged: list[brute.Row]) -> list[tuple[int, dict[int, int]]]:
    """Return the end and the counts of each row: of one with a gap the interval and the point at its stamp are added up."""
    given = iter(rows)
    found = []
    for *_, counts in logged:
        held: Counter[int] = Counter()
        while sum(held.values()) < sum(counts.values()):
            row = next(given)
            held.update(row.counts)
        found.append((row.end_ns, dict(held)))
    assert next(given, None) is None
    return found


@pytest.mark.parametrize("name", BY_STAMP)
def test_each_row_holds_the_ios_since_the_row_before(fio: Path, taken: Any, name: str) -> None:
    hist, _ = logs_of(fio / name)
    document, raw, zero = stamps_of(fio, name)
    bins = brute.bins_in(per_io.text_of(hist))
    coarseness = brute.geometry(bins)[2]
    read = taken(*per_io.histogram_files(fio / name))
    assert sorted({row.series.op for row in read.rows}) == sorted(raw)
    for op, samples in raw.items():
        *rows, last = read.of(op)
        before = min(stamp for stamp, _ in samples) - 1
        for end, counts in as_written(rows, brute.rows_of(per_io.text_of(hist))[op]):
            until = end // MS - zero
            assert counts == dict(per_io.binned(per_io.within(samples, before, until), bins, coarseness)), (op, until)
            before = until
        after = [value for stamp, value in samples if stamp > before]
        assert last.counts == dict(per_io.binned(after, bins, coarseness)), "the residual is what came after the last row"
        direction = document["jobs"][0][op]
        assert sum(read.total(op).values()) == direction["clat_ns"]["N"] == len(samples)
        assert read.total(op) == per_io.json_bins(direction, bins, coarseness)
    assert read.account.samples == sum(map(len, raw.values()))


def test_rows_of_equal_stamps_hold_the_ios_in_their_order(fio: Path, taken: Any) -> None:
    """stall-burst: six rows at 4495 ms. By stamps they cannot be told apart, by the order of the per-I/O log they can."""
    samples = per_io.samples(logs_of(fio / "stall-burst")[1])["read"]
    read = taken(*per_io.histogram_files(fio / "stall-burst"))
    rows = read.of("read")
    zero = per_io.zero_ms(per_io.json_of(fio / "stall-burst" / "a.json"))
    logged = brute.rows_of(per_io.text_of(logs_of(fio / "stall-burst")[0]))["read"]
    written = as_written(rows[:-1], logged)
    assert [end // MS - zero for end, _ in written] == [505, 1005, 4495, 4495, 4495, 4495, 4495, 4495]
    assert [(row.start_ns // MS - zero, row.end_ns // MS - zero) for row in rows[2:5]] == [
        (1005, 1505),
        (4495, 4495),
        (4495, 4495),
    ]
    at = 0
    for counts in [*(counts for _, counts in written), rows[-1].counts]:
        size = sum(counts.values())
        assert counts == dict(per_io.binned([value for _, value in samples[at : at + size]], 232, 3))
        at += size
    assert at == len(samples) == 600
    assert (read.account.rows, read.account.accepted) == (8, 8)
    assert sum(rows[-1].counts.values()) == 294


@pytest.mark.parametrize("name", [*BY_STAMP, "stall-burst"])
def test_percentiles_of_the_run_are_within_half_a_bin(fio: Path, name: str) -> None:
    hist, _ = logs_of(fio / name)
    _, raw, _ = stamps_of(fio, name)
    coarseness = brute.geometry(brute.bins_in(per_io.text_of(hist)))[2]
    table = percentiles(
        Files(per_io.histogram_files(fio / name), jobs=1).answer(Question(step="all", by=("op",))), wanted()
    ).columns
    assert table["op"].tolist() == sorted(raw)
    for row, op in enumerate(table["op"]):
        values = [value for _, value in raw[op]]
        assert table["count"][row] == len(values)
        compare(table, row, values, coarseness)


@pytest.mark.parametrize("name", [name for name in BY_STAMP if name not in ("bssplit", "unix-epoch")])
def test_percentiles_of_rows_are_within_half_a_bin(fio: Path, name: str) -> None:
    """Each row without a gap by itself, as the reader gives it: whole rows, so nothing is split."""
    hist, _ = logs_of(fio / name)
    _, raw, zero = stamps_of(fio, name)
    coarseness = brute.geometry(brute.bins_in(per_io.text_of(hist)))[2]
    logged = {(op, start, end) for op, rows in brute.rows_of(per_io.text_of(hist)).items() for start, end, _ in rows}
    seen = set()
    for source in discover([hist], ReadOptions()).sources:
        for rows in read(source):
            values = {f"p{percent}": percentile_values(rows, *parse_percentiles(percent)) for percent in PERCENTS}
            for row, code in enumerate(rows.series.tolist()):
                start, end = (int(stamp) - zero * MS for stamp in (rows.start_ns[row], rows.end_ns[row]))
                interval = rows.table[code].op, start, end
                if interval in logged:  # the last one is in fio's JSON alone
                    seen.add(interval)
                    true = per_io.within(raw[interval[0]], start // MS if start else -1, end // MS)
                    assert int(rows.samples[row]) == len(true)
                    compare(values, row, true, coarseness)
    assert len(seen) >= (4 if name == "stall" else 0.8 * len(logged))  # of the stall most rows are points


def wanted() -> Wanted:
    return Wanted(parse_percentiles(",".join(PERCENTS)))


def compare(table: Any, row: int, values: list[int], coarseness: int) -> None:
    """Assert that each percentile is within half a bin of the true one: exact below 128 ns at full resolution."""
    for percent in PERCENTS:
        value = table[f"p{percent}"][row]
        needs = len(values) * (100 - float(percent)) >= 100 - 1e-9 or percent in ("50", "100")
        assert math.isnan(value) != needs, (percent, len(values))
        if needs:
            true = per_io.nearest_rank(values, percent)
            bound = true * (1 << coarseness) / 128 if true >= 128 else ((1 << coarseness) + 1) // 2 if coarseness else 0
            assert abs(value - true) <= bound, (percent, true, value)


@pytest.mark.parametrize("name", ["randrw", "coarse-1", "coarse-5", "trim", "stall", "lat-percentiles"])
@pytest.mark.parametrize("step", [SECOND, 700 * MS])
def test_ranks_are_off_by_no_more_than_the_rows_that_straddle(fio: Path, name: str, step: int) -> None:
    hist, _ = logs_of(fio / name)
    _, raw, zero = stamps_of(fio, name)
    bins = brute.bins_in(per_io.text_of(hist))
    edges = brute.edges(bins)
    document = per_io.json_of(fio / name / "a.json")
    table = percentiles(
        Files(per_io.histogram_files(fio / name), jobs=1).answer(Question(step=step, by=("op",), force=True)), wanted()
    ).columns
    chains = per_io.chains(hist, document)
    checked = 0
    for row, (start, end, op) in enumerate(zip(table["start_ns"], table["end_ns"], table["op"], strict=True)):
        straddling = sum(sum(counts.values()) for low, high, counts in chains[op] if low < end < high or low < start < high)
        values = sorted(per_io.within(raw[op], int(start) // MS - zero, int(end) // MS - zero))
        assert abs(len(values) - table["count"][row]) <= straddling
        for percent in PERCENTS[:3]:
            value = table[f"p{percent}"][row]
            if math.isnan(value):
                continue
            slot = bisect_right(edges, value) - 1
            lowest, highest = bisect_left(values, edges[slot]) + 1, bisect_left(values, edges[slot + 1])
            rank = -(-int(table["count"][row]) * int(percent) // 100)
            # I/Os of the very millisecond of a window's edge may belong to either side.
            on_edge = sum(stamp in (int(start) // MS - zero, int(end) // MS - zero) for stamp, _ in raw[op])
            assert lowest - straddling - on_edge <= rank <= highest + straddling + on_edge
            checked += 1
    assert checked >= 8


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", [*BY_STAMP, "stall-burst"])
@pytest.mark.parametrize("step", [700 * MS, SECOND, 10 * SECOND])
def test_windows_add_up_to_fio_s_own_total(fio: Path, name: str, step: int) -> None:
    document = per_io.json_of(fio / name / "a.json")
    answer = Files(per_io.histogram_files(fio / name), jobs=1).answer(Question(step=step, by=("op",), force=True))
    bins = brute.bins_in(per_io.text_of(logs_of(fio / name)[0]))
    for op in sorted(key[0] for key in answer.parts[0].table):
        found: Counter[int] = Counter()
        [part] = answer.parts
        codes = [code for code, key in enumerate(part.table) if key == (op,)]
        for slot, count, series in zip(part.bins.tolist(), part.counts.tolist(), part.series[part.row], strict=True):
            found[slot] += count if series in codes else 0
        assert +found == per_io.json_bins(document["jobs"][0][op], bins, brute.geometry(bins)[2])


@pytest.mark.slow
@pytest.mark.parametrize("job", [1, 2])
def test_the_archive_s_rows_are_its_single_ios(archive: Path, taken: Any, job: int) -> None:
    """ceph-a, volume 0, where CBT's logs hold every I/O too; both are .gz."""
    raw = per_io.samples(archive / f"output.0_clat.{job}.log.ceph-a.gz")
    hist = archive / f"output.0_clat_hist.{job}.log.ceph-a.gz"
    document = per_io.json_of(archive / "json_output.0.ceph-a")
    bins = brute.bins_in(per_io.text_of(hist))
    coarseness = brute.geometry(bins)[2]
    zero = per_io.zero_ms(document, job - 1)
    read = taken(archive, options=ReadOptions())
    for op, samples in raw.items():
        *rows, _ = read.of(op, host="ceph-a", volume="0", job=str(job))
        assert len(rows) > 50
        before = -1
        for end, counts in as_written(rows, brute.rows_of(per_io.text_of(hist))[op]):
            until = end // MS - zero
            assert counts == dict(per_io.binned(per_io.within(samples, before, until), bins, coarseness)), (op, until)
            before = until
        total = read.total(op, host="ceph-a", volume="0", job=str(job))
        assert sum(total.values()) == len(samples) == document["jobs"][job - 1][op]["clat_ns"]["N"]


def test_the_archive_adds_up_to_fio_s_totals(archive: Path, taken: Any) -> None:
    read = taken(archive)
    for host in ("ceph-a", "ceph-b", "ceph-c"):
        for volume in ("0", "1"):
            document = per_io.json_of(archive / f"json_output.{volume}.{host}")
            for job, entry in enumerate(document["jobs"]):
                for op in ("read", "write"):
                    total = read.total(op, host=host, volume=volume, job=str(job + 1))
                    assert sum(total.values()) == entry[op]["clat_ns"]["N"]
    assert (
        read.account.rows
        == read.account.accepted
        == sum(len(per_io.text_of(path).splitlines()) for path in archive.glob("*_clat_hist.*"))
    )


def test_a_reset_of_latency_target_is_undone_exactly(fio: Path, taken: Any) -> None:
    """Rows before the reset, the wrapped row, and every row after it: each against the single I/Os, in their order."""
    read = taken(*per_io.histogram_files(fio / "latency-target"))
    raw = per_io.samples(logs_of(fio / "latency-target")[1])
    hist = per_io.text_of(logs_of(fio / "latency-target")[0]).splitlines()
    for op, code, whole_until, lost in (("read", "0", 4010, 0), ("write", "1", 3510, 49)):
        first = next(at for at in range(1, len(raw[op])) if raw[op][at][0] < raw[op][at - 1][0])
        before, after = raw[op][:first], raw[op][first:]
        segments = [read.of(op, segment=number) for number in (0, 1)]
        assert read.of(op) == [row for rows in segments for row in rows]
        stamps = [int(line.split(",")[0]) for line in hist if line.split(", ")[1] == code]
        assert len(stamps) + 1 >= len(read.of(op)) >= len(stamps)
        at = -1
        for row, until in zip(segments[0], stamps, strict=False):
            assert row.counts == dict(per_io.binned(per_io.within(before, at, until), 116, 4)), (op, until)
            at = until
        assert at == whole_until
        assert len([stamp for stamp, _ in before if stamp > at]) == lost
        place = 0
        for row in segments[1]:
            size = sum(row.counts.values())
            assert row.counts == dict(per_io.binned([value for _, value in after[place : place + size]], 116, 4)), (op, place)
            place += size
        assert place == len(after) == per_io.json_of(fio / "latency-target" / "a.json")["jobs"][0][op]["clat_ns"]["N"]
    assert read.account.repaired == {"counts wrapped by a latency_target reset": 2}
    wrapped = [number for number, line in enumerate(hist, 1) if ", 1844674407370955" in line]
    assert sorted(line for line, _ in read.findings("repaired")) == wrapped == [16, 17]
    assert read.account.rows == len(hist) == read.account.accepted + 2
