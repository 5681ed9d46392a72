"""Raw fio latency logs held against plain loops over their lines, and against what fio itself counted."""

from __future__ import annotations

import lzma
import math
import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import operations, read
from ingest.read.operations import Windows
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import events as oracle
from oracles import per_io

DATA = Path(__file__).parent.parent / "data"
RAW = DATA / "raw"
SECOND = 1_000_000_000
STEPS = (SECOND, 100_000_000, 700_000_000, 333_333_333)
RECORDED = ("offset", "priority", "offset-priority", "unix-epoch", "both")
NS = ReadOptions(recorded_unit_ns=1)


def text_of(path: Path) -> str:
    return (lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()).decode()


def log_of(name: str, kind: str = "clat") -> Path:
    return next(path for path in (RAW / name).iterdir() if path.name.startswith(f"a_{kind}.1.log"))


def truth(name: str, kind: str = "clat") -> list[oracle.Event]:
    zero = per_io.zero_ms(per_io.json_of(RAW / name / "a.json")) * oracle.MS
    return oracle.fio_events(text_of(log_of(name, kind)), 1, zero, epoch=name == "unix-epoch")


def source_of(*paths: Path, options: ReadOptions | None = None) -> Any:
    [source] = [one for one in discover(paths, options or ReadOptions()).sources if one.format == "fio-raw"]
    return source


def cells(source: Any, windows: Windows) -> dict[tuple[str, int], tuple[Counter[int], Any, int]]:
    """Return (bins, exact values, completions) by op and window of all that a source yields."""
    found: dict[tuple[str, int], tuple[Counter[int], Any, int]] = {}
    for part in read(source, windows):
        for row in range(len(part)):
            op, end = part.table[part.series[row]].op, int(part.end_ns[row])
            key = (op, oracle.window_of(end, windows.step_ns) if windows.step_ns else 0)
            entries = slice(part.indptr[row], part.indptr[row + 1])
            counts = Counter(dict(zip(part.bins[entries].tolist(), part.counts[entries].tolist(), strict=True)))
            exact = part.exact
            values = exact and tuple(int(array[row]) for array in (exact.min_ns, exact.max_ns, exact.sum_ns))
            assert exact is None or exact.known[row]
            assert part.start_ns[row] <= part.end_ns[row]
            assert key not in found, "each window comes once, whole"
            found[key] = (counts, values, int(part.completions[row]) if part.completions is not None else sum(counts.values()))
    return found


def expected(events: list[oracle.Event], step: int, half: int = 64) -> dict[tuple[str, int], tuple[Counter[int], Any, int]]:
    return {
        key: (
            Counter(oracle.index_of(value, half) for value in values),
            (min(values), max(values), sum(values)),
            len(values),
        )
        for key, values in oracle.by_window(events, step).items()
    }


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", RECORDED)
def test_every_cell_of_recorded_logs(name: str, step: int) -> None:
    options = ReadOptions(prefer="raw")
    source = source_of(log_of(name), RAW / name / "a.json", options=options)
    assert cells(source, Windows(step)) == expected(truth(name), step)
    account = source.context.account
    assert account.accepted == account.rows == account.samples == len(truth(name))
    assert not account.rejected and not account.notes


@pytest.mark.parametrize("digits", [1, 2, 3, 5])
def test_digits_make_bins_finer(tmp_path: Path, digits: int) -> None:
    half = {1: 16, 2: 128, 3: 1024, 5: 131072}[digits]
    source = source_of(alone(tmp_path, "both"), options=ReadOptions(recorded_unit_ns=1, digits=digits))
    assert cells(source, Windows(SECOND)) == expected(oracle.fio_events(text_of(log_of("both"))), SECOND, half)
    layout = next(iter(read(source))).layout
    assert layout.half == half and layout.error == pytest.approx(1 / (2 * half))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["both", "unix-epoch"])
def test_attribution_in_flight_is_exact(name: str, step: int) -> None:
    source = source_of(log_of(name), RAW / name / "a.json")
    found = cells(source, Windows(step, in_flight=True))
    weights, completed = oracle.in_flight(truth(name), step)
    assert {key: counts for key, (counts, _, _) in found.items()} == weights
    assert {key: count for key, (_, _, count) in found.items() if count} == dict(completed)
    assert sum(sum(counts.values()) for counts, _, _ in found.values()) == 65536 * len(truth(name))


def test_long_ios_are_spread_over_every_window_they_were_in_flight(log: Any) -> None:
    """A stall of 2.5 s that ends at 3.0 s, one that ends on an edge, one of no time, one of a nanosecond across an edge."""
    rows = ["500, 0, 0, 4096, 0", "1000, 1000000000, 1, 4096, 0", "3000, 2500000000, 0, 4096, 0", "3100, 333333333, 0, 4096, 1"]
    path = log("\n".join(rows) + "\n", "x_clat.1.log")
    events = oracle.fio_events(path.read_text())
    for step in (*STEPS, 1_000_000):
        weights, completed = oracle.in_flight(events, step)
        found = cells(source_of(path), Windows(step, in_flight=True))
        assert {key: counts for key, (counts, _, _) in found.items()} == weights
        assert {key: count for key, (_, _, count) in found.items() if count} == dict(completed)


def alone(tmp_path: Path, name: str) -> Path:
    """Return a copy of a log without the JSON beside it: its stamps are relative."""
    return Path(shutil.copy(log_of(name), tmp_path))


def test_begin_and_end_are_of_completions_to_the_nanosecond(tmp_path: Path) -> None:
    log = alone(tmp_path, "both")
    events = oracle.fio_events(text_of(log_of("both")))
    begin, end = 1_234_000_000, 5_678_000_001
    inside = [event for event in events if begin < event[1] <= end]
    source = source_of(log, options=NS)
    assert cells(source, Windows(SECOND, begin, end)) == expected(inside, SECOND)
    answer = Files([log], NS, jobs=1).answer(Question(step="all", begin=Instant(begin), end=Instant(end)))
    assert answer.samples == len([event for event in events if SECOND < event[1] <= 6 * SECOND]), "whole windows, as of a store"


def test_percentiles_are_those_of_single_values_within_half_a_bin() -> None:
    files = Files([RAW / "both"], ReadOptions(prefer="raw"), jobs=1)
    wanted = Wanted(parse_percentiles("50,90,99,99.9,100"))
    question = Question(step=SECOND, by=("op",), where={"kind": "completion"})
    table = percentiles(files.answer(question), wanted).columns
    truths = oracle.by_window(truth("both"), SECOND)
    assert len(table["op"]) == len(truths)
    for row, (op, start) in enumerate(zip(table["op"].tolist(), table["start_ns"].tolist(), strict=True)):
        values = truths[op, start]
        assert (table["count"][row], table["min"][row], table["max"][row]) == (len(values), min(values), max(values))
        assert table["mean"][row] == pytest.approx(sum(values) / len(values), rel=1e-12)
        for percent in ("50", "90", "99", "99.9"):
            found, exact = table[f"p{percent}"][row], oracle.nearest_rank(values, percent)
            if len(values) * (100 - float(percent)) < 100 and percent != "50":
                assert np.isnan(found)
            else:
                assert found == oracle.midpoint(oracle.index_of(exact))
        assert table["p100"][row] == max(values)


@pytest.mark.parametrize(("kind", "word"), [("clat", "completion"), ("lat", "total"), ("slat", "submission")])
def test_counts_and_percentiles_are_fios_own(kind: str, word: str) -> None:
    """fio's JSON counts what its raw log holds; its percentiles are midpoints of the same bins, by nearest rank.

    Where p * N is a whole rank, fio's floating point may take the next one: 99.9 % of 12,000 is rank 11,988, fio took 11,989.
    """
    files = Files([RAW / "both"], ReadOptions(prefer="raw"), jobs=1)
    answer = files.answer(Question(step="all", by=("op",), where={"kind": word}))
    table = percentiles(answer, Wanted(parse_percentiles("50,75,90,95,99,99.9"))).columns
    for row, op in enumerate(table["op"].tolist()):
        told = per_io.json_of(RAW / "both" / "a.json")["jobs"][0][op][f"{kind}_ns"]
        assert (table["count"][row], table["min"][row], table["max"][row]) == (told["N"], told["min"], told["max"])
        assert table["mean"][row] == pytest.approx(told["mean"], rel=1e-6)
        if "percentile" in told:
            for percent, value in told["percentile"].items():
                found = table[f"p{float(percent):g}"][row]
                values = sorted(latency for label, _, latency in truth("both", kind) if label == op)
                rank = len(values) * Fraction(percent) / 100
                assert found == oracle.midpoint(oracle.index_of(values[math.ceil(rank) - 1]))
                after = oracle.midpoint(oracle.index_of(values[math.ceil(rank)]))
                assert value == found or (rank.denominator == 1 and value == after)
    lines = [text for name, text in files.facts(answer) if name == "Checked"]
    assert lines and all("fio says N" in line for line in lines)


def test_histogram_log_and_raw_log_of_one_run_agree() -> None:
    """Each row of the histogram log holds the I/Os of the raw log since the row before; json+ holds the last ones."""
    for question in (Question(step="all", by=("op",), where={"kind": "completion"}),):
        hist, raw = (Files([RAW / "both"], ReadOptions(prefer=prefer), jobs=1).answer(question) for prefer in ("hist", "raw"))
        for name in ("count", "p50", "p99", "p99.9"):
            wanted = Wanted(parse_percentiles("50,99,99.9"))
            assert percentiles(hist, wanted).columns[name].tolist() == percentiles(raw, wanted).columns[name].tolist()


@pytest.mark.parametrize("op", ["read", "write"])
def test_each_row_of_the_histogram_log_holds_the_ios_since_the_row_before(op: str) -> None:
    """In the order of the raw log: stamps alone cannot tell on which side of a row an I/O of its millisecond is."""
    values = [latency for label, _, latency in oracle.fio_events(text_of(log_of("both"))) if label == op]
    at = 0
    for line in text_of(next(RAW.glob("both/a_clat_hist*"))).splitlines():
        _, direction, _, *cells = map(int, line.split(", "))
        if direction == (0 if op == "read" else 1):
            row = {place: count for place, count in enumerate(cells) if count}
            size = sum(row.values())
            assert Counter(oracle.index_of(value) for value in values[at : at + size]) == row
            at += size
    assert 0.7 * len(values) < at < len(values)


# One source for each I/O ------------------------------------------------------------------------------------


def found_in(folder: Path, **words: Any) -> dict[str, str]:
    """Return what became of each file: its format, or the action and reason."""
    found = discover([folder], ReadOptions(**words))
    return {
        **{source.path.name: source.format for source in found.sources},
        **{entry.path.name: f"{entry.action}: {entry.reason}" for entry in found.skipped},
    }


def test_the_histogram_log_shadows_the_raw_log_and_the_other_way_round() -> None:
    files = found_in(RAW / "both")
    assert files["a_clat_hist.1.log.xz"] == "fio-hist"
    assert files["a_clat.1.log.xz"] == "shadowed: a histogram log holds the same I/Os (--prefer raw reverses this)"
    assert files["a_lat.1.log.xz"] == files["a_slat.1.log.xz"] == "fio-raw"
    assert files["a.json"].startswith("context: ")
    turned = found_in(RAW / "both", prefer="raw")
    assert turned["a_clat.1.log.xz"] == "fio-raw"
    assert turned["a_clat_hist.1.log.xz"] == "shadowed: a raw log holds the same I/Os and is preferred (--prefer raw)"


def test_an_op_that_the_histogram_log_lacks_is_taken_from_the_raw_log(tmp_path: Path) -> None:
    hist = [line for line in text_of(next(RAW.glob("both/a_clat_hist*"))).splitlines() if line.split(", ")[1] == "0"]
    (tmp_path / "a_clat_hist.1.log").write_text("\n".join(hist) + "\n")
    shutil.copy(log_of("both"), tmp_path / "a_clat.1.log.xz")
    files = Files([tmp_path], NS, jobs=1)
    answer = files.answer(Question(step="all", by=("op",)))
    counts = dict(zip(*(percentiles(answer, Wanted([])).columns[name].tolist() for name in ("op", "count")), strict=True))
    events = Counter(op for op, _, _ in oracle.fio_events(text_of(log_of("both"))))
    rows = sum(sum(map(int, line.split(", ")[3:])) for line in hist)
    assert counts == {"read": rows, "write": events["write"]}
    assert files.account.shadowed == events["read"]


def test_a_histogram_log_without_counts_shadows_nothing(fio: Path) -> None:
    assert "fio-raw" in found_in(fio / "zero-rows").values()
    assert found_in(fio / "zero-rows")["a_clat.1.log"] == "fio-raw"


def test_raw_logs_beside_refused_histogram_logs_are_taken(fio: Path, tmp_path: Path) -> None:
    shutil.copy(fio / "compressed" / "a_clat_hist.1.log", tmp_path / "a_clat_hist.1.log")
    shutil.copy(log_of("both"), tmp_path / "a_clat.1.log.xz")
    files = found_in(tmp_path, recorded_unit_ns=1)
    assert files["a_clat_hist.1.log"].startswith("refused") and files["a_clat.1.log.xz"] == "fio-raw"


# Versions ---------------------------------------------------------------------------------------------------

VERSIONS = [
    pytest.param("1000, 5000, 0, 4096", {"fio_version": (2, 21)}, 1000, id="4 columns of us"),
    pytest.param("1000, 5000, 0, 4096", {"fio_version": (2, 99)}, 1, id="4 columns of ns"),
    pytest.param("1000, 5000, 0, 4096", {"recorded_unit_ns": 1000}, 1000, id="4 columns, unit said"),
    pytest.param("1000, 5000, 0, 4096, 8192", {"fio_version": (2, 2, 10)}, 1000, id="offset of us"),
    pytest.param("1000, 5000, 0, 4096, 8192", {"fio_version": (3, 17)}, 1, id="offset of ns"),
    pytest.param("1000, 5000, 0, 4096, 0", {"fio_version": (3, 17)}, 1, id="offset 0 of ns"),
    pytest.param("1000, 5000, 0, 4096, 0", {"fio_version": (2, 21)}, 1000, id="offset 0 of us"),
    pytest.param("1000, 5000, 0, 4096, 1", {}, 1, id="priority 1"),
    pytest.param("1000, 5000, 0, 4096, 0", {"fio_version": (3, 33)}, 1, id="priority 0"),
    pytest.param("1000, 5000, 0, 4096, 0x4001", {}, 1, id="priority in hexadecimal"),
    pytest.param("1000, 5000, 0, 4096, 8192, 0", {}, 1, id="offset and priority"),
    pytest.param("1000, 5000, 0, 4096, 8192, 0x0000", {}, 1, id="offset and priority in hexadecimal"),
    pytest.param("1000, 5000, 0, 4096, 8192, 0, 0", {}, 1, id="issue time 0"),
    pytest.param("1000, 5000, 0, 5000, 4096, 0", {}, 1, id="maximum and priority"),
    pytest.param("1000, 5000, 5000, 0, 4096, 8192, 0", {}, 1, id="maximum, offset and priority"),
    pytest.param("1000, 5000, 5000, 0, 4096, 8192, 0, 0", {}, 1, id="eight columns"),
]


@pytest.mark.parametrize(("row", "told", "unit"), VERSIONS)
def test_columns_and_unit_of_every_version(log: Any, row: str, told: dict[str, Any], unit: int) -> None:
    path = log(f"{row}\n" * 3, "x_clat.1.log")
    found = cells(source_of(path, options=ReadOptions(**told)), Windows(SECOND))
    assert found == {("read", 0): (Counter({oracle.index_of(5000 * unit): 3}), (5000 * unit, 5000 * unit, 15000 * unit), 3)}


def test_issue_times_give_completions_to_the_nanosecond(log: Any) -> None:
    """Stamped 1000 ms, but issued at 999.9 ms and done 0.3 ms later, in the second window; a wrong issue time is left alone."""
    path = log("1000, 300000, 0, 4096, 0, 0, 999900000\n1000, 300000, 0, 4096, 0, 0, 5\n", "x_clat.1.log")
    found = cells(source_of(path), Windows(SECOND))
    assert {key: count for key, (_, _, count) in found.items()} == {("read", SECOND): 1, ("read", 0): 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "1000, 5000, 0, 4096\n",
            "4 columns: fio up to 2.21 wrote us.*5 ms in us, 0.005 ms in ns.*--fio-version or --recorded-unit",
        ),
        ("1000, 5000, 0, 4096, 8192\n", "5 columns: fio up to 2.21 wrote us"),
        (
            "1000, 5000, 0, 4096, 0\n",
            "0 in the only row: the priority that fio 3.18.*or an offset.*give --fio-version, or --recorded-unit",
        ),
        ("hello\n", "no raw latency log: its lines are not time, value"),
        ("1000, 5000, 7, 4096, 0\n", "no column of directions"),
        ("1000, 5000\n", "no raw latency log"),
        ("", "holds no line: fio measured no latency of this kind"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_option(log: Any, text: str, reason: str) -> None:
    path = log(text, "x_clat.1.log")
    with pytest.raises(InputError, match=reason):
        discover([path], ReadOptions())


def test_a_version_that_cannot_have_written_the_log_is_refused(log: Any) -> None:
    with pytest.raises(InputError, match="another fio wrote it, give --fio-version"):
        discover([log("1000, 5000, 0, 4096, 8192\n", "x_clat.1.log")], ReadOptions(fio_version=(3, 33)))


def test_recorded_averages_are_shadowed_by_the_histograms(fio: Path) -> None:
    files = found_in(fio / "averaged")
    assert files["a_clat_hist.1.log"] == "fio-hist"
    assert files["a_clat.1.log"] == "shadowed: means over time: the histogram log of the same job holds more"


def test_units_come_from_the_json_beside_the_log(tmp_path: Path) -> None:
    document = (RAW / "priority" / "a.json").read_text().replace("fio-3.33", "fio-2.20")
    (tmp_path / "a.json").write_text(document)
    (tmp_path / "a_clat.1.log").write_text("1000, 5000, 0, 4096\n")
    [values] = [found[1] for found in cells(source_of(tmp_path), Windows(SECOND)).values()]
    assert values == (5_000_000, 5_000_000, 5_000_000)


# Files that hold more or less than one run -------------------------------------------------------------------


def test_rows_of_an_older_run_are_rejected_by_fios_own_count(tmp_path: Path) -> None:
    folder = RAW / "appended"
    (tmp_path / "a_clat.log").write_bytes((folder / "a_clat.log").read_bytes())
    (tmp_path / "a.json").write_bytes((folder / "a.json").read_bytes())
    older = len(text_of(folder / "first" / "a_clat.log").splitlines())
    source = source_of(tmp_path)
    found = cells(source, Windows(0))
    document = per_io.json_of(folder / "a.json")
    for op in ("read", "write"):
        assert found[op, 0][2] == sum(job[op]["clat_ns"]["N"] for job in document["jobs"])
    assert source.context.account.rejected == {"row of an older run that was appended to": older}
    whole = text_of(folder / "a_clat.log").splitlines()
    assert source.context.account.rows == len(whole)


def test_without_a_json_all_rows_of_a_shared_log_are_taken(tmp_path: Path) -> None:
    shutil.copy(RAW / "appended" / "a_clat.log", tmp_path)
    source = source_of(tmp_path, options=NS)
    assert cells(source, Windows(SECOND)) == expected(oracle.fio_events(text_of(RAW / "appended" / "a_clat.log")), SECOND)


def test_sections_are_matched_by_thread_number(taken: Any) -> None:
    folder = RAW / "sections"
    document = per_io.json_of(folder / "a.json")
    read_all = taken(folder)
    for number, job in enumerate(document["jobs"], 1):
        op = "read" if number < 3 else "write"
        rows = [row for row in read_all.of(op, job=str(number), kind="completion")]
        assert sum(sum(row.counts.values()) for row in rows) == job[op]["clat_ns"]["N"]


def test_a_latency_target_reset_is_moved_behind_what_came_before(fio: Path) -> None:
    """fio's clock begins anew; without the shift the second part would lie over the first."""
    path = fio / "latency-target" / "a_clat.1.log"
    lines = [line.split(", ") for line in path.read_text().splitlines()]
    stamps = [int(line[0]) for line in lines]
    reset = next(place for place in range(1, len(stamps)) if stamps[place] < stamps[place - 1])
    source = source_of(path, path.parent / "a.json")
    zero = source.context.zero.epoch_ns
    ends = [
        max(stamp * oracle.MS, 1) + (max(stamps[:reset]) * oracle.MS if place >= reset else 0)
        for place, stamp in enumerate(stamps)
    ]
    events = [(("read", "write")[int(line[2])], zero + end, int(line[1])) for line, end in zip(lines, ends, strict=True)]
    assert cells(source, Windows(SECOND)) == expected(events, SECOND)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_compressed_logs(tmp_path: Path, ending: str) -> None:
    import gzip

    import pyarrow as pa

    text = text_of(log_of("both"))
    packed = {
        ".gz": lambda data: gzip.compress(data),
        ".xz": lambda data: lzma.compress(data),
        ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    }[ending](text.encode())
    path = tmp_path / f"a_clat.1.log{ending}"
    path.write_bytes(packed)
    assert cells(source_of(path, options=NS), Windows(SECOND)) == expected(oracle.fio_events(text), SECOND)
    path.write_bytes(packed[: len(packed) * 2 // 3])
    source = source_of(path, options=NS)
    kept = sum(count for _, _, count in cells(source, Windows(SECOND)).values())
    assert 0 < kept < text.count("\n")
    assert "damaged or cut off" in source.context.account.cut_short


# Order and memory -------------------------------------------------------------------------------------------


def test_unsorted_logs_count_the_same_also_where_little_can_be_held(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(7)
    count = 120_000
    rows = zip(generator.integers(0, 60_000, count).tolist(), generator.integers(1, 10**8, count).tolist(), strict=True)
    path = log("".join(f"{stamp}, {value}, {stamp % 2}, 4096, 1\n" for stamp, value in rows), "x_clat.1.log")
    events = oracle.fio_events(path.read_text())
    question = Question(step=SECOND, by=("op",))
    wanted = Wanted(parse_percentiles("50,99,100"))
    whole = percentiles(Files([path], jobs=1).answer(question), wanted).columns
    monkeypatch.setattr(operations, "MOST_HELD", 1000)
    source = source_of(path)
    parts = list(read(source, Windows(SECOND)))
    assert {part.table[code].segment for part in parts for code in part.series.tolist()} == {0, 1}
    assert sum(int(part.counts.sum()) for part in parts) == count
    pieces = percentiles(Files([path], jobs=1).answer(question), wanted).columns
    assert {name: column.tolist() for name, column in pieces.items()} == {name: column.tolist() for name, column in whole.items()}
    truths = oracle.by_window(events, SECOND)
    for row, key in enumerate(zip(whole["op"].tolist(), whole["start_ns"].tolist(), strict=True)):
        assert (whole["count"][row], whole["p100"][row]) == (len(truths[key]), max(truths[key]))


def test_hundreds_of_files_are_one_run(tmp_path: Path) -> None:
    lines = text_of(log_of("both")).splitlines(keepends=True)
    for number in range(120):
        (tmp_path / f"output.{number % 6}_clat.{number // 6 + 1}.log.h{number % 4}").write_text("".join(lines[number::120]))
    files = Files([tmp_path], NS, jobs=2)
    answer = files.answer(Question(step=SECOND, by=("op",)))
    table = percentiles(answer, Wanted(parse_percentiles("99"))).columns
    truths = oracle.by_window(oracle.fio_events("".join(lines)), SECOND)
    assert len(files.found.sources) == 120
    for row, key in enumerate(zip(table["op"].tolist(), table["start_ns"].tolist(), strict=True)):
        values = truths.pop(key)
        assert (table["count"][row], table["min"][row], table["max"][row]) == (len(values), min(values), max(values))
        assert table["p99"][row] == oracle.midpoint(oracle.index_of(oracle.nearest_rank(values, "99")))
    assert not truths
