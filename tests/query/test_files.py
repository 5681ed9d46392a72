"""Answers from files are exact: every cell equals an oracle that knows the definitions and nothing of the product."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from event_files import event_file, reading
from ingest.core.errors import InputError, UsageError
from ingest.core.grid import stored_step
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant, parse_instant
from ingest.query.files import Files
from ingest.query.heatmap import distribution, heatmap
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import text
from ingest.read.fio import clock
from ingest.read.fio import histogram_log as fio_hist
from ingest.read.sources import ReadOptions
from oracles import brute, logs, per_io
from strategies import chains
from tests.commands import tailboard

PERCENTS = ("50", "95", "99", "99.9")
MS = 1_000_000
SECOND = 1000 * MS
Labelled = tuple[dict[str, str], list[brute.Row]]
Cells = dict[tuple, dict[str, Any]]


def expected(
    streams: Iterable[Labelled],
    bins: int,
    step: int | str,
    by: tuple[str, ...],
    stored: int = SECOND,
    own: Mapping[tuple[str, str], int] | None = None,
) -> Cells:
    """Return the cells (start, *labels) that merged streams must give; rows of 0.1 to 1.1 s are stored at 1 s.

    `own` are the steps of sources by host and job, where these are unlike.
    """
    streams = list(streams)
    steps = own or {}
    merged: dict[tuple, Counter[int]] = {}
    low = min(row[0] for _, rows in streams for row in rows)
    for labels, rows in streams:
        group = tuple(labels[name] for name in by)
        if step == "all":
            for _, _, counts in rows:
                merged.setdefault((low, *group), Counter()).update(counts)
        else:
            for start, counts in brute.windows(rows, int(step), stored, steps.get((labels["host"], labels["job"]), 0)).items():
                merged.setdefault((start, *group), Counter()).update(counts)
    return {key: brute.cell(counts, bins, PERCENTS) for key, counts in sorted(merged.items())}


def answered(paths: list[Path], step: int | str, by: tuple[str, ...], options: ReadOptions | None = None, **words: Any) -> Cells:
    """Return the cells of the product's own table."""
    files = Files(paths, options, jobs=words.pop("jobs", 1))
    answer = files.answer(Question(step=step, by=by, force=True, **words))
    table = percentiles(answer, Wanted(parse_percentiles(",".join(PERCENTS))))
    found: Cells = {}
    for row in range(len(table)):
        cells = {name: column[row] for name, column in table.columns.items()}
        key = (int(cells["start_ns"]), *(cells[name] for name in by))
        found[key] = {name: none_or_int(cells[name]) for name in ("count", "min", "max", *(f"p{p}" for p in PERCENTS))}
        if step != "all":
            assert cells["end_ns"] == cells["start_ns"] + step
    assert list(found) == sorted(found) and len(found) == len(table)
    return found


def none_or_int(value: float) -> int | None:
    return None if math.isnan(value) else int(value)


def labelled(found: dict[str, list[brute.Row]], host: str = "", job: str = "", volume: str = "") -> list[Labelled]:
    return [({"host": host, "job": job, "op": op, "volume": volume}, rows) for op, rows in found.items()]


def recorded(fio: Path) -> dict[str, tuple[list[Path], list[Labelled], int]]:
    """Return recordings that fio's JSON stands beside: paths, streams of the oracle, bins."""
    found = {}
    for name in ("randrw", *(f"coarse-{c}" for c in range(1, 7)), "trim", "stall", "stall-burst", "bssplit", "lat-percentiles"):
        path = fio / name / "a_clat_hist.1.log"
        streams = labelled(per_io.chains(path, per_io.json_of(fio / name / "a.json")), job="1")
        found[name] = (per_io.histogram_files(fio / name), streams, bins_of(path))
    path = fio / "unix-epoch" / "a_clat_hist.1.log"
    streams = labelled(per_io.chains(path, per_io.json_of(path.with_name("a.json")), unix_width_ms=500), job="1")
    found["unix-epoch"] = (per_io.histogram_files(path.parent), streams, bins_of(path))
    sections = fio / "two-sections"
    document = per_io.json_of(sections / "a.json")
    several = sorted(sections.glob("*_clat_hist.*.log"), key=lambda path: int(path.name.split(".")[1]))
    streams = [one for n, path in enumerate(several) for one in labelled(per_io.chains(path, document, n), job=str(n + 1))]
    found["two-sections"] = ([sections], streams, bins_of(several[0]))
    hosts = fio / "host-folders"
    streams = []
    for host in ("h1", "h2"):
        path = hosts / "clients" / host / "fio_clat_hist.1.log"
        streams += labelled(per_io.chains(path, per_io.json_of(path.with_name("a.json"))), host=host, job="1")
    found["host-folders"] = ([hosts], streams, bins_of(path))
    return found


def archived(archive: Path) -> tuple[list[Path], list[Labelled], int]:
    """Return the recorded CBT archive: three hosts, two volumes each, two jobs each."""
    streams: list[Labelled] = []
    for path in sorted(archive.glob("*_clat_hist.*")):
        _, volume, job, _, host, _ = path.name.replace("_clat_hist", "").split(".")
        found = per_io.chains(path, per_io.json_of(archive / f"json_output.{volume}.{host}"), int(job) - 1)
        streams += labelled(found, host=host, job=job, volume=volume)
    return [archive], streams, brute.bins_in(per_io.text_of(path))


def bins_of(path: Path) -> int:
    return brute.bins_in(per_io.text_of(path))


STEPS: list[int | str] = ["all", SECOND, 10 * SECOND, 500 * MS, 333_333_333, 1_700 * MS]


@pytest.mark.cases(4)
@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_cell_of_recorded_runs(fio: Path, step: int | str) -> None:
    for name, (paths, streams, bins) in recorded(fio).items():
        for by in ((), ("op",), ("host", "job", "op")):
            assert answered(paths, step, by) == expected(streams, bins, step, by), (name, by)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "by"),
    [
        ("all", ("host", "op")),
        (SECOND, ("job", "host", "volume")),
        (2_700 * MS, ()),
        pytest.param("all", (), marks=pytest.mark.soak),
        pytest.param(10 * SECOND, ("op",), marks=pytest.mark.soak),
        pytest.param(SECOND, ("host",), marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_every_cell_of_the_archive(archive: Path, step: int | str, by: tuple[str, ...]) -> None:
    paths, streams, bins = archived(archive)
    assert answered(paths, step, by, jobs=2) == expected(streams, bins, step, by)


def late_first(lines: list[tuple[int, int, dict[int, int]]]) -> bool:
    """Return whether a first row comes so late that it is taken to be no wider than a row (tests/read/test_fio_verified.py)."""
    chains_of: dict[int, list[tuple[int, int]]] = {}
    for stamp, op, counts in lines:
        if sum(counts.values()):
            chains_of.setdefault(op, []).append((stamp, sum(counts.values())))
    steps = [after - before for rows in chains_of.values() for (before, _), (after, _) in pairwise(rows)]
    width = clock.typical_width_ms(steps, {}) or clock.DEFAULT_WIDTH_MS
    each = [np.array(rows[:64]).T for rows in chains_of.values()]
    return any(clock.first_row(at[:1], held, clock.dense_width_ms(at, held, width), 0)[1] for at, held in each)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(["h1", "h2"]), st.sampled_from(["1", "2"]), chains()),
        min_size=1,
        max_size=4,
        unique_by=lambda x: x[:2],
    ),
    st.sampled_from([SECOND, 10 * SECOND, 700 * MS, 123_456_789, "all"]),
    st.sampled_from([(), ("op",), ("host",), ("job",), ("op", "host", "job")]),
    st.sampled_from([29, 116, 19]),
    st.sampled_from([None, 1_700_000_000_123_456_789]),
)
def test_every_cell_of_generated_logs(
    tmp_path_factory: pytest.TempPathFactory, made: list, step: int | str, by: tuple[str, ...], bins: int, zero: int | None
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    streams: list[Labelled] = []
    for host, job, lines in made:
        lines = [(stamp, direction, {slot % bins: n for slot, n in counts.items()}) for stamp, direction, counts in lines]
        content = logs.text(lines, bins)
        assume(not late_first(lines))
        (folder / f"x_clat_hist.{job}.log.{host}").write_text(content)
        found = brute.rows_of(content, zero or 0)
        width_ms = brute.width_of(without_empty(found))
        streams += labelled({op: brute.settled(rows, width_ms, bins, stated=False) for op, rows in found.items()}, host, job)
    streams = [(labels, rows) for labels, rows in streams if rows]
    files = Files([folder])
    series = [(source, source.context.series) for source in files.found.sources]
    own = {(of.host, of.job): stored_step(source.width_ns) for source, of in series if source.width_ns}
    [run] = files.stored
    stored = 0 if step == "all" else files.grain(run, int(step), files.widths_asked(Question()))
    assert answered([folder], step, by, ReadOptions(t0=zero)) == expected(streams, bins, step, by, stored, own)


def without_empty(found: dict[str, list[brute.Row]]) -> dict[str, list[brute.Row]]:
    """Return the rows that hold samples: all-zero rows are rejected."""
    return {op: [row for row in rows if row[2]] for op, rows in found.items()}


def cli(*words: str) -> list[dict[str, str]]:
    """Return the csv rows that the command prints."""
    done = tailboard(*words)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def iso_ns(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "by"),
    [("10s", ("op",)), ("all", ()), ("1s", ("host", "op", "job"))],
    ids=str,
)
def test_csv_of_the_command_says_the_same(archive: Path, step: str, by: tuple[str, ...]) -> None:
    paths, streams, bins = archived(archive)
    wanted = expected(streams, bins, step if step == "all" else int(step[:-1]) * SECOND, by)
    rows = cli("percentiles", str(paths[0]), "--step", step, "--by", ",".join(by), "-p", ",".join(PERCENTS), "--format", "csv")
    found = {}
    for row in rows:
        cells = {name: int(row[name]) if row[name] else None for name in ("count", "min", "max", *(f"p{p}" for p in PERCENTS))}
        found[iso_ns(row["start"]), *(row[name] for name in by)] = cells
    assert found == wanted
    assert list(rows[0]) == [
        "start",
        "end",
        *by,
        "count",
        "rate",
        "min",
        "mean",
        "max",
        "exact",
        "complete",
        "failed",
        *(f"p{p}" for p in PERCENTS),
    ]
    assert {row["exact"] for row in rows} == {"false"}


def test_a_run_without_a_clock_counts_from_zero(fio: Path, log: Any) -> None:
    path = log(per_io.text_of(fio / "randrw" / "a_clat_hist.1.log"))
    rows = cli("percentiles", str(path), "--step", "1s", "--by", "op", "--format", "csv", "--unit", "us")
    wanted = expected(labelled(per_io.chains(path)), 1856, SECOND, ("op",))
    assert [(float(row["start"]) * SECOND, row["op"]) for row in rows] == list(wanted)
    found = [round(float(row["p95"]) * 1000) if row["p95"] else None for row in rows]
    assert found == [cells["p95"] for cells in wanted.values()]
    assert None in found, "the last window holds too few I/Os to carry p95"


def test_rates_and_means(fio: Path, log: Any) -> None:
    path = log(per_io.text_of(fio / "coarse-2" / "a_clat_hist.1.log"))
    answer = Files([path], jobs=1).answer(Question(step=SECOND, where={"op": "read"}))
    table = percentiles(answer, Wanted(parse_percentiles("50")))
    rows = per_io.chains(path)["read"]
    windows = brute.windows(rows, SECOND)
    counts = [sum(held.values()) for held in windows.values()]
    sums = [sum(n * brute.value_of(464, slot) for slot, n in held.items()) for held in windows.values()]
    seconds = [(min(start + SECOND, rows[-1][1]) - max(start, rows[0][0])) / 1e9 for start in windows]
    assert seconds[-1] < 0.1  # the log ends within its last window
    assert table.columns["rate"].tolist() == [count / length for count, length in zip(counts, seconds, strict=True)]
    assert np.allclose(table.columns["mean"], [total / count for total, count in zip(sums, counts, strict=True)], rtol=1e-12)


@pytest.mark.slow
def test_heatmap_and_distribution_hold_the_same_counts(archive: Path) -> None:
    paths, streams, bins = archived(archive)
    edges = brute.edges(bins)
    answer = Files(paths, jobs=1).answer(Question(step=10 * SECOND, by=("op",)))
    table = heatmap(answer).columns
    found = Counter()
    for start, op, lower, upper, count in zip(*(table[n] for n in ("start_ns", "op", "lower", "upper", "count")), strict=True):
        assert upper == edges[edges.index(lower) + 1]
        found[int(start), op, int(lower)] += int(count)
    wanted: Counter = Counter()
    for labels, rows in streams:
        for start, counts in brute.windows(rows, 10 * SECOND, SECOND).items():
            wanted.update({(start, labels["op"], edges[slot]): count for slot, count in counts.items()})
    assert found == wanted
    table = distribution(Files(paths, jobs=1).answer(Question(step="all", by=("op",)))).columns
    for op in ("read", "write"):
        picked = [n for n in range(len(table["op"])) if table["op"][n] == op]
        whole = Counter()
        for (_, name, lower), count in wanted.items():
            whole[lower] += count if name == op else 0
        assert {int(table["lower"][n]): int(table["count"][n]) for n in picked} == {k: v for k, v in whole.items() if v}
        assert [int(table["cumulative"][n]) for n in picked] == np.cumsum([table["count"][n] for n in picked]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "end"), [("+1000ms", None), (None, "+2500ms"), ("+1300ms", "+3100ms"), ("+2005ms", "+3005ms"), ("+1ms", "+1h")]
)
def test_from_and_to_take_parts_of_rows_by_time(fio: Path, log: Any, begin: str | None, end: str | None) -> None:
    path = log(per_io.text_of(fio / "randrw" / "a_clat_hist.1.log"))
    low, high = (parse_instant(text).ns if text else None for text in (begin, end))
    found = answered(
        [path], 500 * MS, ("op",), begin=parse_instant(begin) if begin else None, end=parse_instant(end) if end else None
    )
    streams = [(labels, clipped(rows, low, high)) for labels, rows in labelled(per_io.chains(path))]
    assert found == expected(streams, 1856, 500 * MS, ("op",))


def clipped(rows: list[brute.Row], low: int | None, high: int | None) -> list[brute.Row]:
    """Return the parts of rows in (low, high]: cut by the rule of the oracle, at one edge after the other."""
    kept = []
    for start, end, counts in rows:
        if low is not None:
            if end <= low:
                continue
            if start < low:
                counts = cut(start, end, counts, low)[1]
                start = low
        if high is not None and end > high:
            if start >= high:
                continue
            counts = cut(start, end, counts, high)[0]
            end = high
        kept.append((start, end, counts))
    return kept


def cut(start: int, end: int, counts: dict[int, int], edge: int) -> tuple[dict[int, int], dict[int, int]]:
    """Return the parts of a row before and after an edge: shifted and scaled so that the edge is that of a window."""
    step = edge - start
    shifted = (0, end - start, counts)
    head = dict(brute.split(shifted, step)[0][1]) if end - start > step else counts
    return head, {slot: count - head[slot] for slot, count in counts.items()}


def test_order_of_files_and_number_of_processes_change_nothing(archive: Path) -> None:
    files = sorted(archive.iterdir())
    one = answered(files, SECOND, ("host", "op"), jobs=1)
    assert answered(files[::-1], SECOND, ("host", "op"), jobs=1) == one
    assert answered(files, SECOND, ("host", "op"), jobs=3) == one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "rows", "block"),
    [
        (1, 1, 1 << 18),
        (300, 10**9, 5_000),
        pytest.param(10**9, 3, 77, marks=pytest.mark.soak),
        pytest.param(10**9, 10**9, 1, marks=pytest.mark.soak),
    ],
)
def test_chunk_and_block_sizes_change_nothing(
    fio: Path, monkeypatch: pytest.MonkeyPatch, entries: int, rows: int, block: int
) -> None:
    folders = [fio / name for name in ("coarse-3", "stall", "stall-burst", "latency-target", "two-sections", "unix-epoch")]
    plain = [answered([folder], SECOND, ("op", "job")) for folder in folders]
    monkeypatch.setattr(fio_hist, "CHUNK_ENTRIES", entries)
    monkeypatch.setattr(fio_hist, "CHUNK_ROWS", rows)
    monkeypatch.setattr(text, "BLOCK", block)
    assert [answered([folder], SECOND, ("op", "job")) for folder in folders] == plain


@pytest.mark.slow
def test_no_step_changes_the_number_of_samples(archive: Path) -> None:
    steps = ["all", "auto", SECOND, 2_700 * MS, 60 * SECOND, 3600 * SECOND]
    found = {str(step): Files([archive], jobs=1).answer(Question(step=step, force=True)).samples for step in steps}
    _, streams, _ = archived(archive)
    assert set(found.values()) == {sum(sum(counts.values()) for _, rows in streams for *_, counts in rows)}


def test_sources_of_unlike_layouts_are_added_up_in_the_coarser(fio: Path, log: Any) -> None:
    fine = log(per_io.text_of(fio / "randrw" / "a_clat_hist.1.log"), "x_clat_hist.1.log")
    log(per_io.text_of(fio / "coarse-3" / "a_clat_hist.1.log"), "x_clat_hist.2.log")
    streams = labelled(per_io.chains(fine.with_name("x_clat_hist.2.log")))
    for op, rows in per_io.chains(fine).items():
        folded = []
        for start, end, counts in rows:
            held: Counter[int] = Counter()
            for slot, count in counts.items():
                held[slot >> 3] += count
            folded.append((start, end, dict(held)))
        streams.append(({"op": op}, folded))
    assert answered([fine.parent], "all", ("op",)) == expected(streams, 232, "all", ("op",))


def test_a_step_finer_than_the_rows_must_be_forced(fio: Path) -> None:
    files = Files(per_io.histogram_files(fio / "randrw"), jobs=1)
    with pytest.raises(UsageError, match=r"a step of 500ms is finer than the rows \(1s\).*--force"):
        files.answer(Question(step=500 * MS))
    assert any("spread evenly" in text for text in files.answer(Question(step=500 * MS, force=True)).warnings)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"where": {"host": "nobody"}}, "nothing matches --where host=nobody; runs here: "),
        ({"runs": ("other",)}, "nothing matches --run other; runs here: "),
        pytest.param({"where": {"op": "trim"}}, "nothing matches --where op=trim"),
        pytest.param({"begin": Instant(10**15, relative=True)}, "nothing matches --from/--to"),
    ],
)
def test_nothing_selected_is_said(fio: Path, words: dict, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Files(per_io.histogram_files(fio / "randrw"), jobs=1).answer(Question(**words))


def test_unknown_labels_are_a_usage_error(fio: Path) -> None:
    with pytest.raises(UsageError, match="no label 'hots' here: do you mean host\\? There are"):
        Files(per_io.histogram_files(fio / "randrw"), jobs=1).answer(Question(by=("hots",)))


@pytest.mark.parametrize(
    "words", [{"step": SECOND, "begin": "+1500ms"}, {"step": "all", "begin": "+1s"}, {"step": SECOND, "end": "+1s"}], ids=str
)
def test_in_flight_can_be_asked_for_a_part_of_the_run(fio: Path, words: dict) -> None:
    asked = {**words, **{name: parse_instant(words[name]) for name in ("begin", "end") if name in words}}
    answer = Files(per_io.histogram_files(fio / "randrw"), jobs=1).answer(Question(attribution="in-flight", **asked))
    assert 0 < answer.samples < 1350


def test_in_flight_over_all_spans_the_run(fio: Path) -> None:
    files = Files(per_io.histogram_files(fio / "randrw"), jobs=1)
    [part] = files.answer(Question(attribution="in-flight", step="all")).parts
    [plain] = files.answer(Question(step="all")).parts
    assert plain.start_ns[0] - SECOND <= part.start_ns[0] and part.end_ns[0] <= plain.end_ns[0] + SECOND


@pytest.mark.slow
def test_in_flight_windows_hold_every_completion_once(archive: Path) -> None:
    question = Question(attribution="in-flight", step=SECOND, by=("host",))
    answer = Files([archive], jobs=1).answer(question)
    _, streams, _ = archived(archive)
    assert answer.samples == sum(sum(counts.values()) for _, rows in streams for *_, counts in rows)
    assert sum(int(part.counts.sum()) for part in answer.parts) == answer.samples * 65_536


def test_auto_step_answers_for_rows_of_any_width(log: Any) -> None:
    path = log(logs.text([(7_200_000 * n, 0, {5: 90 - n}) for n in range(1, 5)], 29))
    assert Files([path], jobs=1).answer(Question()).samples == 350


@settings(max_examples=30)
@given(st.integers(1, 10**6), st.integers(1, 10**7))
def test_auto_makes_about_150_windows(first: int, span: int) -> None:
    from ingest.query.windows import auto_step

    step = auto_step(first * SECOND, (first + span) * SECOND, SECOND)
    windows = (first + span) * SECOND // step - first * SECOND // step + 1
    assert step % SECOND == 0 and windows <= 152
    assert span <= 150 or windows >= 50


def test_labels_that_only_rows_tell_select_rows(tmp_path: Path) -> None:
    """Hosts and processes of described files stand in their columns, processes of a trace in its lines."""
    rows = [(1_790_000_000 * SECOND + at * MS, 1000 * (at % 7 + 1), f"h{at % 3}", f"p{at % 5}") for at in range(600)]
    files = Files([event_file(tmp_path, rows)], reading(tmp_path), jobs=1)
    for where, chosen in (
        ({"host": "h1"}, lambda row: row[2] == "h1"),
        ({"process": "p[02]", "host": "h[01]"}, lambda row: row[3] in ("p0", "p2") and row[2] != "h2"),
    ):
        answer = files.answer(Question(where=where, by=("host", "process"), step="all"))
        found = Counter({part.table[code]: int(n) for part in answer.parts for code, n in zip(part.series, part.samples)})
        assert found == Counter((row[2], row[3]) for row in rows if chosen(row)) and found
    with pytest.raises(InputError, match="nothing matches --where host=nobody"):
        files.answer(Question(where={"host": "nobody"}))
    trace = Files([Path(__file__).parents[1] / "data" / "traces" / "chrome.json.xz"], jobs=1)
    every = trace.answer(Question(by=("process",), step="all"))
    one = trace.answer(Question(by=("process",), where={"process": "Rend*"}, step="all"))
    counts = {key: int(n) for part in every.parts for key, n in zip((part.table[code] for code in part.series), part.samples)}
    assert {key: int(n) for part in one.parts for key, n in zip((part.table[code] for code in part.series), part.samples)} == {
        ("Renderer",): counts["Renderer",]
    }
