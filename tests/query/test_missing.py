"""What answers lack: entries cut at windows, ranges of percentiles, verdicts; held against brute force and raw logs."""

from __future__ import annotations

import gc
import itertools
import json
import math
import shutil
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.coverage import Caveat, Missing, MissingRows
from ingest.core.intervals import Intervals
from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant, parse_instant
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.objectives.check import check
from ingest.objectives.objectives import read_objectives
from ingest.query import percentiles as percentiles_of
from ingest.query.compare import compare, grouped
from ingest.query.coverage import Rows, bands, missing_from
from ingest.query.episodes import CANNOT_TELL, MET, VIOLATED
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.query.table import Table
from ingest.query.windows import regrouped
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import hdr, per_io
from tests.effort import figure
from tests.store.grounds import grounds, loaded

MASKED = "cases/fio37-masked"
SECOND = 1_000_000_000
EXAMPLE = Path(__file__).parents[2] / "examples" / "cbt-archive"
WRITES = {"op": "write", "kind": "completion"}
SAY = Caveat("test", "x", "is missing")


def nearest_rank(values: Sequence[int], text: str) -> int:
    """Return the percentile by the definition."""
    return sorted(values)[max(1, math.ceil(len(values) * Fraction(text) / 100)) - 1]


def table_of(answer: Answer, percents: str = "50") -> Table:
    """Return percentiles with what is possible."""
    return percentiles(answer, Wanted(parse_percentiles(percents), below_ns=(40, 5_000_000), possible=True))


def cells(table: Table, *names: str) -> list[tuple]:
    """Return rows of some columns."""
    return list(zip(*(table.columns[name].tolist() for name in names), strict=True))


# ---- brute force -----------------------------------------------------------------------------------------------------

EVENTS = st.tuples(st.sampled_from("ab"), st.sampled_from(["read", "write"]), st.integers(1, 40), st.integers(0, 120))
RANGES = st.tuples(st.integers(0, 120), st.integers(0, 120)).map(sorted)


@st.composite
def losses(draw: st.DrawFn) -> tuple[list, list, list[Missing]]:
    """Events (host, op, time, latency) that are there, those that are missing, and the entries that declare them."""
    there = draw(st.lists(EVENTS, min_size=1, max_size=30))
    lost, entries = [], []
    for _ in range(draw(st.integers(0, 3))):
        begin, end = sorted((draw(st.integers(0, 40)), draw(st.integers(0, 40))))
        low, high = draw(RANGES)
        labels = {"run": "r", "host": draw(st.sampled_from("ab")), "op": draw(st.sampled_from(["read", "write"]))}
        labels |= {"volume": "", "job": "1", "kind": "completion", "tag": "", "process": ""}
        mine = draw(st.lists(st.tuples(st.integers(begin + 1, end), st.integers(low, high)), max_size=4)) if begin < end else []
        lost += [(labels["host"], labels["op"], when, value) for when, value in mine]
        told = {name: value for name, value in labels.items() if name == "run" or draw(st.booleans())}
        if mine:
            entries.append(Missing(told, begin, end, len(mine), low, draw(st.sampled_from([high, None])), SAY))
    return there, lost, entries


def answer_of(events: list, entries: list[Missing], step: int, question: Question) -> Answer:
    """Return windows of events by host and op, as an answer that lacks the entries."""
    found: dict[tuple[str, str, int], dict[int, int]] = {}
    for host, op, when, value in events:
        start = (when - 1) // step * step if step else 0
        bins = found.setdefault((host, op, start), {})
        bins[value] = bins.get(value, 0) + 1
    table = sorted({(host, op) for host, op, _ in found})
    keys = sorted(found, key=lambda key: (table.index(key[:2]), key[2]))
    flat = [sorted(found[key].items()) for key in keys]
    rows = Intervals(
        fio_layout(29, 1),
        tuple(table),
        np.array([table.index(key[:2]) for key in keys]),
        np.array([key[2] for key in keys]),
        np.array([key[2] + (step or 40) for key in keys]),
        np.cumsum([0, *map(len, flat)]),
        np.array([bin_ for one in flat for bin_, _ in one], np.int64),
        np.array([count for one in flat for _, count in one], np.int64),
    )
    bounds = tuple(None if edge is None else edge.epoch_ns(0) for edge in (question.begin, question.end))
    missing = missing_from(entries, question, {}, {"r": bounds})
    facts = {"relative": True, "series": 1, "missing": missing}
    return Answer((rows,), ("host", "op"), step, "completion", ("r",), {"r": 0}, **facts)


@settings(max_examples=figure(60, 150, 4000))
@given(losses(), st.sampled_from([0, 5, 10, 20]), st.sampled_from([("host", "op"), ("op",), ("host",), ()]))
def test_the_true_percentile_is_always_possible(world: tuple[list, list, list[Missing]], step: int, by: tuple[str, ...]) -> None:
    there, lost, entries = world
    answer = regrouped(answer_of(there, entries, step, Question()), by)
    table = table_of(answer, "0,33,50,100")
    for row in range(len(table)):
        labels = tuple(table.columns[name][row] for name in by)
        start, end = int(table.columns["start_ns"][row]), int(table.columns["end_ns"][row])

        def mine(one: tuple, labels: tuple = labels, start: int = start, end: int = end) -> bool:
            told = tuple({"host": one[0], "op": one[1]}[name] for name in by)
            return told == labels and (not step or start < one[2] <= end)

        gone = [one for one in lost if mine(one)]
        values = [one[3] for one in (*there, *lost) if mine(one)]
        for text in ("0", "33", "50", "100"):
            low, high = (float(table.columns[f"p{text}{end_}"][row]) for end_ in ("_lo", "_hi"))
            assert low <= nearest_rank(values, text) <= high
            assert table.columns[f"p{text}"][row] == low
        least, most = (float(table.columns[f"below_40ns{end_}"][row]) for end_ in ("_lo", "_hi"))
        assert least - 1e-12 <= sum(value < 40 for value in values) / len(values) <= most + 1e-12
        assert table.columns["below_40ns"][row] == least
        lowest, highest = (float(table.columns[f"mean_{end_}"][row]) for end_ in ("least", "most"))
        assert lowest - 1e-9 <= sum(values) / len(values) <= highest + 1e-9
        assert not gone or not table.columns["complete"][row]
        if table.columns["complete"][row]:
            assert low == high and least == most and lowest == highest


@settings(max_examples=figure(60, 150, 4000))
@given(st.lists(st.integers(0, 90), min_size=1, max_size=6), st.lists(st.tuples(RANGES, RANGES), min_size=1, max_size=4))
def test_a5_the_bounds_of_a_mean_are_those_that_can_be_reached(there: list[int], entries: list) -> None:
    """Of each entry from least to most samples between two latencies: every choice of numbers, by brute force."""
    numbers = [(least % 4, least % 4 + most % 3) for (least, most), _ in entries]
    columns = zip(*((0, *number, *values) for number, (_, values) in zip(numbers, entries, strict=True)), strict=True)
    lacking = MissingRows(*(np.array(column, np.int64) for column in columns))
    low, high = lacking.means(np.array([sum(there) / len(there)]), np.array([len(there)]))
    choices = list(itertools.product(*(range(least, most + 1) for least, most in numbers)))
    for bound, end, best in ((low, 0, min), (high, 1, max)):
        sums = [
            (sum(there) + sum(n * values[end] for n, (_, values) in zip(chosen, entries, strict=True)))
            / (len(there) + sum(chosen))
            for chosen in choices
        ]
        assert bound[0] == pytest.approx(best(sums), abs=1e-9)


@pytest.mark.parametrize(
    ("begin", "end", "least", "most"), [(10, 20, 2, 2), (5, 20, 0, 2), (10, 21, 0, 2), (20, 30, 0, 0), (0, 10, 0, 0)]
)
def test_an_entry_counts_whole_inside_a_window_and_perhaps_where_it_overlaps(begin: int, end: int, least: int, most: int) -> None:
    there = [("a", "read", when, 50) for when in (11, 12, 13)]
    entry = Missing({"run": "r", "host": "a", "op": "read"}, begin, end, 2, 100, 110, SAY)
    (row,) = cells(table_of(answer_of(there, [entry], 10, Question()), "100"), "complete", "p100_lo", "p100_hi")
    assert row == (not most, 100 if least else 50, 110 if most else 50)


def test_rows_that_lack_samples_are_freed_at_once(monkeypatch) -> None:
    """They referred to themselves: of 20,000 logs all pieces of an answer were held, 880 MB, until Python looked for circles."""
    held = []

    class Noted(Rows):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            held.append(weakref.ref(self))

    monkeypatch.setattr(percentiles_of, "Rows", Noted)
    entry = Missing({"run": "r", "host": "a", "op": "read"}, 10, 20, 2, 100, 110, SAY)
    answer = answer_of([("a", "read", 11, 50)], [entry], 10, Question())
    gc.disable()
    try:
        assert not table_of(answer).columns["complete"].all()
        assert [rows() for rows in held] == [None]
    finally:
        gc.enable()


def test_an_entry_counts_once_in_the_total() -> None:
    there = [("a", "read", when, 50) for when in (5, 15, 25)]
    entry = Missing({"run": "r", "host": "a", "op": "read"}, 0, 30, 3, 100, 110, SAY)
    whole = answer_of(there, [entry], 0, Question())
    assert cells(table_of(whole, "50,51"), "p50_lo", "p50_hi") == [(50, 50)]  # rank 3 of 6
    assert cells(table_of(whole, "34"), "p34_lo") == [(50,)]
    windows = table_of(answer_of(there, [entry], 10, Question()), "50")
    assert cells(windows, "p50_lo", "p50_hi") == [(50, 110)] * 3  # each may hold all three


def test_a_range_that_is_asked_for_cuts_entries() -> None:
    there = [("a", "read", when, 50) for when in (11, 12, 13)]
    entry = Missing({"run": "r", "host": "a", "op": "read"}, 0, 20, 2, 100, 110, SAY)
    asked = Question(begin=parse_instant("+0.00000001s"))
    (row,) = cells(table_of(answer_of(there, [entry], 0, asked), "100"), "complete", "p100_lo", "p100_hi")
    assert row == (False, 50, 110)  # perhaps all were before
    asked = Question(begin=parse_instant("+0.00000002s"))
    assert cells(table_of(answer_of(there, [entry], 0, asked), "100"), "complete") == [(True,)]


def test_a_label_that_is_asked_for_leaves_entries_of_others_out() -> None:
    there = [("a", "read", 11, 50)]
    entry = Missing({"run": "r", "host": "b"}, None, None, None, 0, None, SAY)
    for where, complete in (({"host": "a"}, True), ({"host": "[ab]"}, True), ({"op": "read"}, True)):
        answer = answer_of(there, [entry], 10, Question(where=where))
        assert cells(table_of(answer), "complete") == [(complete,)]  # the row is of host a
    assert cells(table_of(regrouped(answer, ("op",))), "complete", "p50", "p50_lo") == [
        (False, 50, pytest.approx(math.nan, nan_ok=True))
    ]


# ---- the case of A5 --------------------------------------------------------------------------------------------------


@pytest.fixture
def masked(fio: Path, tmp_path: Path) -> Path:
    """The damaged histogram log with fio's JSON, without the raw log."""
    for name in ("out.json", "x_clat_hist.1.log"):
        shutil.copy(fio / MASKED / name, tmp_path)
    return tmp_path


def test_a5_what_damaged_bins_held_makes_percentiles_ranges_that_hold_the_truth(masked: Path, fio: Path) -> None:
    raw = per_io.samples(fio / MASKED / "x_clat.1.log")
    texts = ("10", "50", "73", "74", "90", "99")
    table = table_of(Files([masked], jobs=1).answer(Question(step="all", by=("op",))), ",".join(texts))
    assert table.columns["complete"].tolist() == [False, False]
    for row, op in enumerate(("read", "write")):
        values = [value for _, value in raw[op]]
        for text in texts:
            low, high = (float(table.columns[f"p{text}{end}"][row]) for end in ("_lo", "_hi"))
            assert low * (1 - 1 / 64) <= nearest_rank(values, text) <= high * (1 + 1 / 64)
    read = {text: (table.columns[f"p{text}_lo"][0], table.columns[f"p{text}_hi"][0]) for text in texts}
    assert all(low == high for text, (low, high) in read.items() if float(text) <= 73)
    assert read["74"] == (786_432, max(value for _, value in raw["read"]))


@pytest.mark.parametrize("where", [{}, {"kind": "completion.in-flight"}, {"op": "read", "kind": "completion*"}])
def test_a5_shares_in_flight_lack_what_their_completions_lack(where: dict[str, str], masked: Path, tmp_path: Path) -> None:
    asked = Question(step=SECOND, by=("op", "kind"), where=where)
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        load([masked], store, LoadOptions(ReadOptions(run="r"), attribution="in-flight", jobs=1))
        stored = store.answer(asked)
    read = Files([masked], ReadOptions(run="r"), jobs=1).answer(replace(asked, attribution="in-flight"))
    tables = [table_of(one, "50,99") for one in (read, stored)]
    assert all(not table.columns["complete"].any() for table in tables)
    ops = {"read"} if "op" in where else {"read", "write"}
    assert [{one.entry.labels["op"] for one in answer.missing} for answer in (read, stored)] == [ops, ops]
    assert {one.code for one in read.caveats} == {one.code for one in stored.caveats} == {"damaged-bins"}


def test_a5_corrected_data_lack_what_they_were_made_of(masked: Path) -> None:
    options = ReadOptions(expected_interval_ns=1_000_000)
    answer = Files([masked], options, jobs=1).answer(Question(step=SECOND, by=("kind",), where={"kind": "*"}))
    table = table_of(answer)
    assert set(table.columns["kind"]) == {"completion", "completion.corrected"} and not table.columns["complete"].any()
    numbers = {one.entry.labels["kind"]: one.entry.count is None for one in answer.missing}
    assert numbers == {"completion": False, "completion.corrected": True}


def test_a5_a_share_below_a_latency_is_a_range_that_holds_the_truth(masked: Path, fio: Path) -> None:
    raw = per_io.samples(fio / MASKED / "x_clat.1.log")
    table = table_of(Files([masked], jobs=1).answer(Question(step="all", by=("op",))))
    shares = cells(table, "below_5ms", "below_5ms_lo", "below_5ms_hi", "below_40ns_hi")
    assert shares == [(876 / 1200, 876 / 1200, 1, 0), (1197 / 1201, 1197 / 1201, 1, 0)]  # 324 and 4 lie in damaged bins
    for row, op in enumerate(("read", "write")):
        values = [value for _, value in raw[op]]
        assert shares[row][0] <= sum(value < 5_000_000 for value in values) / len(values) <= 1


def test_a5_a_share_is_that_of_what_is_there_where_nobody_knows_how_much_is_missing(masked: Path) -> None:
    (masked / "out.json").unlink()
    table = table_of(Files([masked], jobs=1).answer(Question(step=SECOND)))
    assert not table.columns["complete"].any() and (table.columns["below_5ms"] == 1).all()
    assert np.isnan(table.columns["below_5ms_lo"]).all() and (table.columns["below_5ms_hi"] == 1).all()
    quick = Question(step="all", where={"op": "read"})
    table = percentiles(
        Files([masked], jobs=1).answer(quick), Wanted(parse_percentiles("50"), below_ns=(500_000,), possible=True)
    )
    assert 0.9 < table.columns["below_500us"][0] < 1
    assert np.isnan(table.columns["below_500us_hi"][0])  # of what completed after the last row nothing is known


def test_a5_without_a_json_every_percentile_is_at_least_what_is_there(masked: Path) -> None:
    (masked / "out.json").unlink()
    answer = Files([masked], jobs=1).answer(Question(step=SECOND, by=("op",)))
    table = table_of(answer, "50,99")
    last = max(table.columns["start_ns"].tolist())
    rows = cells(table, "start_ns", "complete", "p50", "p50_lo", "p50_hi")
    assert all(
        (complete, value, low, high) == (False, value, value, math.inf)
        for start, complete, value, low, high in rows
        if start < last
    )
    assert {one.code for one in answer.caveats} == {"damaged-bins", "no-summary"}
    assert set(map(str, answer.caveats)) <= set(answer.warnings)


def outcome(folder: Path, tmp_path: Path, threshold: str, **more: object) -> list[str]:
    """Return what p99 of reads makes of a threshold."""
    sla = tmp_path / "sla.yml"
    one = {"name": "x", "percentile": 99, "threshold": threshold, "window": "1s", "where": {"op": "read"}, **more}
    sla.write_text(json.dumps({"objectives": [one]}))
    files = Files([folder], jobs=1)
    labels = {run: dict(files.found.labels.get(run, {})) for run in files.run_names}
    return [one.outcome for one in check(files.answer, labels, read_objectives(sla, None), Question(), sla).verdicts]


def test_a5_a_verdict_is_open_only_where_missing_samples_could_change_it(masked: Path, fio: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert outcome(masked, other, "5ms") == [CANNOT_TELL]
    assert outcome(fio / MASKED, other, "5ms") == [VIOLATED]
    assert outcome(masked, other, "200ms") == [MET]  # above the job's exact maximum
    assert outcome(masked, other, "600us") == [VIOLATED]  # what is there is above it, and what is missing is higher
    assert outcome(masked, other, "5ms", budget="99%") == [CANNOT_TELL]
    assert outcome(masked, other, "5ms", **{"for": "10s"}) == [MET]  # no four windows of 1 s can last so long


# ---- other readers ---------------------------------------------------------------------------------------------------


def test_sound_recordings_lack_nothing(fio: Path) -> None:
    for folder in ("randrw", "two-sections", "per-job-logs-0", "compressed", "client-server", "group-reporting", "fio-3.42"):
        answer = Files([fio / folder], jobs=1).answer(Question(step="all", by=("op",)))
        assert (answer.missing, answer.caveats) == ((), tuple(one for one in answer.caveats if one.code == "folders-apart"))
        assert percentiles(answer, Wanted(parse_percentiles("50"))).columns["complete"].all()


def copied(source: Path, target: Path) -> None:
    """Copy the histogram logs of a recording and its JSON, no others."""
    target.mkdir(parents=True)
    for file in (*source.glob("*.json"), *source.glob("*_clat_hist*")):
        shutil.copy(file, target)


def origin_of(store: str, folder: Path, within: ExitStack) -> Any:
    """Return the files of the folder `x` in a folder, or a store that holds them."""
    if store == "files":
        return Files([folder / "x"], ReadOptions(run="r"), jobs=1)
    ground = within.enter_context(grounds(store, folder))
    loaded(ground.url, [folder / "x"], run="r", step_ns=SECOND)
    return within.enter_context(open_store(ground.url))


def without_bins(path: Path) -> None:
    """Make plain json of json+."""
    document = json.loads(path.read_text())
    for job in document["jobs"]:
        for op in ("read", "write", "trim"):
            for kind in ("clat_ns", "lat_ns", "slat_ns"):
                job.get(op, {}).get(kind, {}).pop("bins", None)
    path.write_text(json.dumps(document, indent=1))


def test_what_was_never_written_is_counted_by_plain_json_and_windows_before_it_are_complete(fio: Path, tmp_path: Path) -> None:
    copied(fio / "bssplit", tmp_path / "x")
    (summary,) = (path for path in (tmp_path / "x").iterdir() if path.suffix == ".json")
    whole = Files([tmp_path / "x"], jobs=1).answer(Question(step="all", by=("op",)))
    without_bins(summary)
    answer = Files([tmp_path / "x"], jobs=1).answer(Question(step="all", by=("op",)))
    held = {one.entry.labels["op"]: one.entry.count for one in answer.missing}
    counts = [dict(cells(table_of(one), "op", "count")) for one in (whole, answer)]
    assert {op: counts[0][op] - counts[1][op] for op in held} == held
    assert {one.caveat.code for one in answer.missing} == {"last-interval"}
    truth, table = table_of(whole, "10,50"), table_of(answer, "10,50")
    for name in ("p10", "p50"):
        for value, low, high in zip(truth.columns[name], table.columns[f"{name}_lo"], table.columns[f"{name}_hi"], strict=True):
            assert low <= value <= high
    windows = table_of(Files([tmp_path / "x"], jobs=1).answer(Question(step=SECOND)))
    begin = min(one.entry.from_ns for one in answer.missing)
    assert cells(windows, "complete") == [(end <= begin,) for end in windows.columns["end_ns"].tolist()]


def test_a_job_without_a_log_is_missing_in_its_time(fio: Path, tmp_path: Path) -> None:
    copied(fio / "two-sections", tmp_path / "x")
    whole = table_of(Files([tmp_path / "x"], jobs=1).answer(Question(step="all")), "50,99")
    next((tmp_path / "x").glob("*_clat_hist.2.log")).unlink()
    answer = Files([tmp_path / "x"], jobs=1).answer(Question(step="all"))
    table = table_of(answer, "50,99")
    (entry,) = (one.entry for one in answer.missing)
    assert entry.count == whole.columns["count"][0] - table.columns["count"][0]
    assert {one.code for one in answer.caveats} == {"jobs-without-log"}
    for name in ("p50", "p99"):
        assert table.columns[f"{name}_lo"][0] <= whole.columns[name][0] <= table.columns[f"{name}_hi"][0]


def test_a10_what_a_log_of_a_group_held_that_is_not_there_is_missing_and_no_last_interval(fio: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(fio / "group-reporting", tmp_path / "g")
    whole = table_of(Files([folder], jobs=1).answer(Question(step=SECOND, by=("op",))))
    (folder / "a_clat_hist.2.log").unlink()
    answer = Files([folder], jobs=1).answer(Question(step=SECOND, by=("op",)))
    table = table_of(answer)
    assert whole.columns["complete"].all() and not table.columns["complete"].any()
    pairs = zip(table.columns["count"].tolist(), whole.columns["count"].tolist(), strict=True)
    assert all(there < of_both for there, of_both in pairs)
    held = {op: sum(row[1] for row in cells(table, "op", "count") if row[0] == op) for op in ("read", "write")}
    lost = {one.entry.labels["op"]: one.entry.count for one in answer.missing}
    assert lost == {"read": 921 - held["read"], "write": 460 - held["write"]} and min(lost.values()) > 0
    assert {one.code for one in answer.caveats} == {"short-log"}


def test_a10_a_raw_log_of_a_group_that_is_not_there_is_missing(fio: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(fio / "cases" / "group-raw-333", tmp_path / "g")
    question = Question(step="all", where={"kind": "total"})
    assert table_of(Files([folder], jobs=1).answer(question)).columns["complete"].all()
    (folder / "x_lat.2.log").unlink()
    answer = Files([folder], jobs=1).answer(question)
    lost = {one.entry.labels["op"]: one.entry for one in answer.missing}
    assert {op: (one.count, one.labels["kind"], "job" in one.labels) for op, one in lost.items()} == {
        "read": (1600, "total", False),
        "write": (1600, "total", False),
    }
    assert table_of(answer).columns["count"].tolist() == [6400]


def test_a_raw_log_that_holds_more_than_its_json_counts_is_of_another_run(fio: Path, tmp_path: Path) -> None:
    shutil.copy(fio / "randrw" / "a_clat.1.log", tmp_path)
    document = json.loads((fio / "randrw" / "a.json").read_text())
    document["jobs"][0]["read"]["clat_ns"]["N"] = 800
    for op in ("read", "write"):
        del document["jobs"][0][op]["clat_ns"]["bins"]
    (tmp_path / "a.json").write_text(json.dumps(document))
    answer = Files([tmp_path], jobs=1).answer(Question(step="all"))
    assert any(
        "fio counts 800 reads, and the log holds 900: counted twice, or not of one run" in text for text in answer.warnings
    )
    assert not any("write" in text for text in answer.warnings)
    assert not table_of(answer).columns["complete"].any()


@pytest.mark.parametrize("gone", [slice(1000, None), slice(100, 300), slice(0, 1300)])
def test_a_raw_log_that_lost_lines_says_how_many_and_its_ranges_hold_the_truth(gone: slice, fio: Path, tmp_path: Path) -> None:
    lines = (fio / "randrw" / "a_clat.1.log").read_text().splitlines(keepends=True)
    truth = {op: [value for _, value in raw] for op, raw in per_io.samples(fio / "randrw" / "a_clat.1.log").items()}
    shutil.copy(fio / "randrw" / "a.json", tmp_path)
    log = tmp_path / "a_clat.1.log"
    log.write_text("".join(lines))
    assert not Files([tmp_path], jobs=1).answer(Question(step="all")).missing
    lost = lines[gone]
    del lines[gone]
    log.write_text("".join(lines))
    answer = Files([tmp_path], jobs=1).answer(Question(step="all", by=("op",)))
    assert {one.code for one in answer.caveats} == {"short-log"}
    numbers = {one.entry.labels["op"]: one.entry.count for one in answer.missing}
    assert sum(numbers.values()) == len(lost) and set(numbers) == {"read", "write"}
    table = table_of(answer, "50,90")
    for row, op in enumerate(table.columns["op"]):
        for text in ("50", "90"):
            low, high = (float(table.columns[f"p{text}{end}"][row]) for end in ("_lo", "_hi"))
            assert low * (1 - 1 / 64) <= nearest_rank(truth[op], text) <= high * (1 + 1 / 64)
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        load([tmp_path], store, LoadOptions(ReadOptions(run=tmp_path.name), jobs=1))
        stored = store.answer(Question(step="all", by=("op",)))
        assert cells(table_of(stored, "50"), "op", "count", "p50", "p50_hi") == cells(table, "op", "count", "p50", "p50_hi")


def test_a_damaged_row_leaves_only_its_own_windows_incomplete(fio: Path, tmp_path: Path) -> None:
    copied(fio / "bssplit", tmp_path / "x")
    (log,) = (tmp_path / "x").glob("*_clat_hist.1.log")
    lines = log.read_text().splitlines(keepends=True)
    lost = len(lines) // 2
    stamp = int(lines[lost].split(",")[0])
    lines[lost] = lines[lost][:40] + "\n"
    log.write_text("".join(lines))
    answer = Files([tmp_path / "x"], jobs=1).answer(Question(step=SECOND))
    table = table_of(answer)
    incomplete = [start for start, complete in cells(table, "start_ns", "complete") if not complete]
    zero = answer.start_of + stamp * 1_000_000
    last = max(table.columns["start_ns"].tolist())
    assert any(start < zero <= start + SECOND for start in incomplete)
    assert all(abs(start - zero) <= 3 * SECOND or start >= last - SECOND for start in incomplete)
    assert len(incomplete) < len(table)


@pytest.mark.parametrize("read_at_once", [True, False])
@pytest.mark.parametrize(
    ("folder", "gone", "sound_ms", "code"),
    [
        ("bssplit", 1, 535, "lost-rows"),
        ("means-500", 3, 1509, "last-interval"),  # of plain JSON the number is known
        ("randrw", 1, 1005, "lost-rows"),
        ("stall", 1, 1005, "lost-rows"),  # a row of those that follow a stall
    ],
)
def test_a5_deleted_rows_leave_their_place_and_the_end_incomplete(
    folder: str,
    gone: int,
    sound_ms: int,
    code: str,
    read_at_once: bool,
    fio: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the rows held is in fio's JSON: it was put into the last interval, and every window was called complete."""
    copied(fio / folder, tmp_path / "x")
    (log,) = (tmp_path / "x").glob("*_clat_hist.1.log")
    lines = log.read_text().splitlines(keepends=True)
    read = [number for number, line in enumerate(lines) if line.split(",")[1].strip() == "0"]
    lost = read[-2 - gone : -2]
    log.write_text("".join(line for number, line in enumerate(lines) if number not in lost))
    if not read_at_once:
        monkeypatch.setattr("ingest.read.formats.SMALL", 0)
        monkeypatch.setattr("ingest.read.fio.histogram_log.CHUNK_ROWS", 1)
    files = Files([tmp_path / "x"], jobs=1)
    answer = files.answer(Question(step=SECOND, where={"op": "read"}))
    table = table_of(answer)
    stamps = [answer.start_of + int(lines[number].split(",")[0]) * 1_000_000 for number in lost]
    windows = cells(table, "start_ns", "end_ns", "complete")
    for stamp in stamps:
        assert [complete for start, end, complete in windows if start < stamp <= end] == [False]
    before = answer.start_of + sound_ms * 1_000_000
    assert not windows[-1][-1] and all(complete for _, end, complete in windows if end <= before)
    assert {entry.entry.caveat.code for entry in answer.missing} == {code}
    (note,) = [note for note in files.account.notes if "missing between the stamps" in note]
    assert f"read: {gone} row{'s' if gone > 1 else ''} of" in note


def test_a_damaged_line_of_an_interval_log_leaves_only_its_own_windows_incomplete(tmp_path: Path) -> None:
    head = "#[StartTime: 1700000000.000 (seconds since epoch), x]\n"
    lines = [hdr.line(f"{number}.000", "1.000", {100: 5}, digits=2) for number in range(10)]
    lines[4] = lines[4][:-9] + "\n"
    (tmp_path / "x.hlog").write_text(head + "".join(lines))
    answer = Files([tmp_path / "x.hlog"], ReadOptions(recorded_unit_ns=1), jobs=1).answer(Question(step=SECOND))
    incomplete = [
        (start // SECOND - 1_700_000_000) for start, complete in cells(table_of(answer), "start_ns", "complete") if not complete
    ]
    assert incomplete == [3, 5]
    assert [(one["at_ns"] // SECOND, one["end_ns"] // SECOND) for one in bands(answer)] == [(1_700_000_003, 1_700_000_006)]


def test_a_refused_log_of_a_host_is_missing_from_that_host_alone(fio: Path, tmp_path: Path) -> None:
    for host in ("a", "b"):
        copied(fio / "bssplit", tmp_path / "x" / host)
    (log,) = (tmp_path / "x" / "b").glob("*_clat_hist.1.log")
    log.write_text("1, 2, 3, 4\n" * 5)
    (tmp_path / "x" / "b" / "a.json").unlink()
    answer = Files([tmp_path / "x"], ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("host",)))
    assert cells(table_of(answer), "host", "complete") == [("a", True)]
    together = regrouped(answer, ())
    assert cells(table_of(together), "complete") == [(False,)]
    assert [one.code for one in answer.caveats] == ["refused"]


def test_a_comparison_with_missing_samples_has_bounds_that_hold_them(masked: Path, fio: Path) -> None:
    origins = [Files([path], jobs=1) for path in (fio / MASKED, masked)]
    sides = [origin.answer(Question(step="all", where={"op": "read"})) for origin in origins]
    windows = tuple((origin.answer(Question(step="auto", where={"op": "read"})),) for origin in origins)
    table = compare(grouped(*sides, by=(), windows=windows), parse_percentiles("50,99"))
    by_name = {float(one): row for row, one in enumerate(table.columns["percentile"].tolist())}
    low, high = (float(table.columns[name][by_name[99.0]]) for name in ("lo", "hi"))
    assert not low > 1 and not high < 1


def test_a_rejected_line_of_single_operations_is_one_operation(tmp_path: Path) -> None:
    path = tmp_path / "a_clat.1.log"
    lines = [f"{10 * number}, {1000 + number}, 0, 4096, 0, 0\n" for number in range(1, 101)]
    lines[50] = "garbage\n"
    path.write_text("".join(lines))
    answer = Files([path], ReadOptions(fio_version=(3, 36)), jobs=1).answer(Question(step="all"))
    ((count,),) = {(one.entry.count,) for one in answer.missing}
    assert count == 1
    (row,) = cells(table_of(answer, "50,99"), "complete", "p50_lo", "p50_hi", "p99_hi")
    low, high = (
        nearest_rank([0, *(1000 + n for n in range(1, 101) if n != 51)], "50"),
        nearest_rank([*(1000 + n for n in range(1, 101) if n != 51), 10**9], "50"),
    )
    assert row[0] is False and row[1] == pytest.approx(low, rel=1 / 64) and row[2] == pytest.approx(high, rel=1 / 64)


def test_a_file_that_breaks_off_lacks_what_came_after(fio: Path, tmp_path: Path) -> None:
    import gzip

    log = (fio / "two-sections" / "a_clat_hist.1.log").read_bytes() * 40
    packed = gzip.compress(log, mtime=0)
    (tmp_path / "a_clat_hist.1.log.gz").write_bytes(packed[: len(packed) * 3 // 4])
    answer = Files([tmp_path], jobs=1).answer(Question(step="all"))
    assert "cut-short" in {one.code for one in answer.caveats}
    assert percentiles(answer, Wanted(parse_percentiles("50"))).columns["complete"].tolist() == [False]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "packed"),
    [(30, True), (148, False), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((2, False), (75, False), (146, True)))],
)
def test_a_log_that_ends_early_beside_fios_json_says_which_windows_are_a_guess(rows: int, packed: bool, tmp_path: Path) -> None:
    """json+ has the counts of all of it, and no row says when they completed: said from two rows' time on."""
    import gzip

    logs = next((EXAMPLE / "results").rglob("benchmark_config.yaml")).parent
    (folder := tmp_path / "logs").mkdir()
    for path in logs.glob("*.ceph-a*"):
        if "clat_hist" in path.name or "json" in path.name:
            (folder / path.name).write_bytes(path.read_bytes())
    whole = count_and_complete(Files([folder], jobs=1))
    log = folder / "output.0_clat_hist.1.log.ceph-a.gz"
    lines = gzip.decompress(log.read_bytes()).splitlines(keepends=True)
    text = b"".join(lines[:rows])
    if packed:
        log.write_bytes(gzip.compress(text))
    else:
        log.unlink()
        log.with_suffix("").write_bytes(text)
    assert len(lines) == 148
    found = count_and_complete(Files([folder], jobs=1))
    assert sum(count for count, _ in found) == sum(count for count, _ in whole) == 24_030
    last_ms = int(text.splitlines()[-1].split(b",")[0])
    for window, (_, complete) in enumerate(found):
        assert complete or (rows < 148 and 10_000 * (window + 1) + 6000 > last_ms), window
        assert not complete or rows == 148 or 10_000 * (window + 1) - 6000 < last_ms, window
    assert all(complete for _, complete in found) is (rows == 148)
    for kind in ("sqlite", "double"):
        with grounds(kind, tmp_path) as ground:
            loaded(ground.url, [folder], run="r")
            with open_store(ground.url) as store:
                assert count_and_complete(store) == found


def count_and_complete(origin) -> list[tuple[int, bool]]:
    table = percentiles(origin.answer(Question(step=10 * SECOND)), Wanted(parse_percentiles("50"))).columns
    return list(zip(table["count"].tolist(), table["complete"].tolist(), strict=True))


@pytest.mark.parametrize("store", ["files", "sqlite", "double"])
def test_n5b_what_a_row_held_is_in_the_whole_where_fio_counts_it_and_no_window_is_trusted(
    fio: Path, tmp_path: Path, store: str
) -> None:
    copied(fio / "bssplit", tmp_path / "x")
    (log,) = (tmp_path / "x").glob("*_clat_hist.1.log")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:4], "garbage\n", *lines[6:]]))
    with ExitStack() as within:
        origin = origin_of(store, tmp_path, within)
        whole = origin.answer(Question(step="all"))
        assert cells(table_of(whole), "complete") == [(True,)] and not whole.caveats
        assert whole.samples == Files([fio / "bssplit"], ReadOptions(run="r"), jobs=1).answer(Question(step="all")).samples
        windows = origin.answer(Question(step=SECOND))
        assert (False,) in cells(table_of(windows), "complete") and (True,) in cells(table_of(windows), "complete")
        assert windows.samples == whole.samples
        cut = next(start for start, complete in cells(table_of(windows), "start_ns", "complete") if not complete) + SECOND
        assert cells(table_of(origin.answer(Question(step="all", end=Instant(cut)))), "complete") == [(False,)]


@pytest.mark.parametrize("ops", [("0", "1"), ("1",)])
@pytest.mark.parametrize("store", ["files", "sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_n5_what_completed_before_a_reset_of_latency_target_is_said_to_be_missing(
    fio: Path, tmp_path: Path, store: str, ops: tuple[str, ...]
) -> None:
    """The raw log holds 49 writes between the last row and the reset, which fio's own JSON does not count either."""
    shutil.copytree(fio / "latency-target", tmp_path / "x")
    (log,) = (tmp_path / "x").glob("*_clat_hist.1.log")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if line.split(", ")[1] in ops))
    with ExitStack() as within:
        origin = origin_of(store, tmp_path, within)
        writes = origin.answer(Question(step="all", where=WRITES))
        raw = Files([tmp_path / "x"], ReadOptions(run="r", prefer="raw"), jobs=1).answer(Question(step="all", where=WRITES))
        assert raw.samples - writes.samples == 49 and not raw.caveats
        assert cells(table_of(writes), "complete") == [(False,)]
        (caveat,) = writes.caveats
        assert caveat.code == "statistics-reset" and log.name in caveat.subject
        windows = cells(table_of(origin.answer(Question(step=SECOND, where=WRITES))), "complete")
        assert windows[0] == (True,) and windows.count((False,)) in (1, 2)


def test_n5b_a_rejected_row_is_named_beside_repaired_ones(fio: Path, tmp_path: Path) -> None:
    shutil.copytree(fio / "latency-target", tmp_path / "x")
    (log,) = (tmp_path / "x").glob("*_clat_hist.1.log")
    log.write_text(log.read_text() + "5000, 0, 4096, 1")
    warnings = Files([tmp_path / "x"], ReadOptions(run="r"), jobs=1).answer(Question(step="all", where=WRITES)).warnings
    assert [text for text in warnings if text.startswith("1 row rejected: ") and f"({log}:" in text]


def test_n5b_logs_that_jobs_share_lack_a_kind_by_their_prefix(fio: Path, tmp_path: Path) -> None:
    recorded = fio / "gr-sections-of-two"
    for name, source in (("a_clat_hist", "a_clat_hist"), ("a_lat", "a_clat"), ("b_clat_hist", "a_clat_hist")):
        shutil.copy(recorded / f"{source}.log", tmp_path / f"{name}.log")
    caveats = Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("kind",))).caveats
    assert [caveat.subject for caveat in caveats if "total latency is not logged" in caveat.sentence] == ["b"]
