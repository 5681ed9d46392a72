"""Logs of fio --client without their JSON: undone where the rows alone show it, said where they leave it open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.context import Context
from ingest.read.fio import histogram_log, repairs
from ingest.read.fio.repairs import Evidence, evidence, falls
from ingest.read.integers import Rows
from ingest.view.text import csv_lines
from oracles import logs, per_io

CASE = "cases/client-no-json/x_clat_hist.1.log.127.0.0.1"


def inverted(text: str, op: int) -> list[list[int]]:
    """Return d(n) = D(n) - D(n-2), by plain numbers."""
    rows = [row[3:] for row in logs.cells(text) if row[1] == op]
    return rows[:2] + [[a - b for a, b in zip(now, then, strict=True)] for now, then in zip(rows[2:], rows, strict=False)]


def test_a4_a_client_log_without_its_json_is_undone(fio: Path, tmp_path: Path, taken: Any) -> None:
    shutil.copy(fio / CASE, tmp_path)
    read = taken(tmp_path)
    for op, name in enumerate(("read", "write")):
        rows = inverted((fio / CASE).read_text(), op)
        assert [row.counts for row in read.of(name)] == [{slot: count for slot, count in enumerate(row) if count} for row in rows]
    assert read.account.samples == 3633  # of 4,000: the last partial interval is in no row
    reason = "taken as compounded from its rows only, without fio's JSON: 738 bins never fall"
    assert any(reason in note for note in read.account.notes)


@pytest.mark.parametrize("name", ["client-server", "client-server-rw"])
def test_a4_small_client_logs_too_by_rows_alone_and_with_their_json(fio: Path, tmp_path: Path, taken: Any, name: str) -> None:
    [file] = (fio / name).glob("*_clat_hist*")
    shutil.copy(file, tmp_path)
    alone, joined = taken(tmp_path), taken(fio / name)
    assert [row.counts for row in alone.rows] == [row.counts for row in joined.rows[: len(alone.rows)]]


def test_a4_a_renamed_log_is_undone_all_the_same(fio: Path, taken: Any, log: Any) -> None:
    assert taken(log((fio / CASE).read_bytes())).account.samples == 3633


@pytest.mark.parametrize(
    ("name", "said"), [("x_clat_hist.1.log.h1", True), ("x_clat_hist.1.log", False), ("output.0_clat_hist.1.log.h1", False)]
)
def test_a4_too_few_rows_to_tell_are_said_where_the_name_has_a_host(log: Any, taken: Any, name: str, said: bool) -> None:
    """Three rows of one bin: taken as they are. CBT's names have a host, too, and CBT runs no --client."""
    path = log(logs.text([(1000, 0, {10: 5}), (2000, 0, {10: 6}), (3000, 0, {10: 9})], 29), name)
    read = taken(path)
    assert read.account.samples == 20
    assert any(note.endswith(repairs.DOUBTFUL) for note in read.account.notes) == said
    windows = percentiles(Files([path], jobs=1).answer(Question(step=1_000_000_000)), Wanted(parse_percentiles("50")))
    assert windows.columns["complete"].tolist() == 3 * [not said]


def test_a4_two_rows_hold_nothing_compounded(log: Any, taken: Any) -> None:
    path = log(logs.text([(1000, 0, {10: 5}), (2000, 0, {10: 6})], 29), "x_clat_hist.1.log.h1")
    assert taken(path).account.notes == []


@pytest.mark.parametrize("name", ["randrw", "coarse-1", "coarse-6", "bssplit", "trim", "stall", "two-sections", "fio-3.42/plain"])
def test_a4_recorded_ordinary_logs_are_left_alone(fio: Path, tmp_path: Path, taken: Any, name: str) -> None:
    for file in (fio / name).glob("*_clat_hist*"):
        path = tmp_path / f"{file.name}.h1"
        shutil.copy(file, path)
        rows = [row[3:] for row in logs.cells(per_io.text_of(file)) if sum(row[3:])]
        read = taken(path)
        assert read.account.samples == sum(map(sum, rows)) and read.account.notes == []


def test_a4_a_standalone_json_rules_it_out(fio: Path, tmp_path: Path, taken: Any) -> None:
    """Rows that grow, beside a JSON that counts as many: ordinary, and nothing to say."""
    for file in (*(fio / "randrw").glob("*_clat_hist*"), fio / "randrw" / "a.json"):
        shutil.copy(file, tmp_path)
    assert taken(tmp_path).account.notes == []


@st.composite
def ordinary(draw: st.DrawFn) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of a load that is steady or grows, over few or many bins."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, bins = draw(st.integers(3, 12)), draw(st.sampled_from([29, 232, 1856]))
    shape = rng.random(bins) ** draw(st.sampled_from([1, 4, 12, 30]))
    rate = 10 ** draw(st.floats(0.5, 5)) * draw(st.sampled_from([1.0, 1.1, 1.5, 2.0, 3.0])) ** np.arange(rows)
    return rng.poisson(np.minimum(rate, 1e6)[:, None] * shape / shape.sum()).astype(np.int64)


@given(ordinary())
def test_a4_no_ordinary_log_is_taken_for_a_compounded_one(counts: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    assert falls(counts) or not evidence([counts]).certain


@given(ordinary())
def test_a4_what_is_undone_is_what_was_counted(counts: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    """Compounded rows never fall, and evidence grows with rows."""
    compounded = counts.copy()
    for row in range(2, len(counts)):
        compounded[row] += compounded[row - 2]
    assert not falls(compounded)
    bits = [evidence([compounded[:rows]]).bits for rows in range(3, len(counts) + 1)]
    assert all(after >= before for before, after in zip(bits, bits[1:], strict=False))


def test_a4_equal_rows_are_no_evidence() -> None:
    """A timer that does the same in every row: nothing ever falls, and nothing grows."""
    assert not evidence([np.tile(np.arange(100), (60, 1))]).possible
    assert not Evidence(bits=100.0, bins=50, pairs=9, growth=0.0).certain


@given(
    st.lists(
        st.tuples(st.sampled_from([5, 5, 5, 5, 5, 0, -1]), st.lists(st.sampled_from([0, 0, 1, 9]), min_size=4, max_size=4)),
        min_size=3,
        max_size=9,
    ),
    st.booleans(),
)
@example(rows=[(5, [1, 0, 9, 1])] * 6, cumulative=True)
@example(rows=[(5, [1, 0, 9, 1]), (5, [1, 9, 0, 0])] * 3, cumulative=False)
def test_the_quick_look_at_widths_decides_as_the_whole_look(rows: list[tuple[int, list[int]]], cumulative: bool) -> None:
    dense = np.array([counts for _, counts in rows], np.uint64)
    dense = np.cumsum(dense, axis=0) if cumulative else dense
    row, bins = np.nonzero(dense)
    lead = np.zeros((len(rows), 3), np.uint64)
    lead[:, 0] = 100 + np.cumsum([step for step, _ in rows])  # now and then time runs back
    log = Rows(lead, np.searchsorted(row, np.arange(len(rows) + 1)), bins, dense[row, bins])
    order, layout = [np.arange(len(rows))], fio_layout(19, 1000, 0)
    quick = repairs.counting(log, order, layout, Context())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repairs, "_surely_falls", lambda rows, picked: False)
        assert repairs.counting(log, order, layout, Context()) == quick


@pytest.mark.parametrize("lines", [14, 17])
def test_r9_what_a_rejected_row_spoils_does_not_depend_on_where_the_log_is_cut_into_chunks(
    lines: int, fio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that was rejected in one chunk made the first row of the next one follow a gap."""
    folder = Path(shutil.copytree(fio / "client-server-rw", tmp_path / "run"))
    [path] = folder.glob("cs_clat_hist*")
    rows = path.read_text().splitlines(keepends=True)
    cells = rows[5].split(", ")
    rows[5] = ", ".join(["24", *cells[1:72], str(1 << 41), *cells[73:]])  # its stamp falls; a bin falls after it
    path.write_text("".join(rows))
    wanted = Wanted(parse_percentiles("50,99,100"))

    def told() -> tuple[list[str], list[str]]:
        answer = Files([folder], jobs=1).answer(Question(by=("op",), step=500_000_000, force=True))
        return list(csv_lines(percentiles(answer, wanted))), answer.warnings

    whole, blocks = told(), histogram_log.whole_blocks

    def chunks(*given: Any) -> Iterator[memoryview]:
        for block in blocks(*given):
            held = bytes(block).splitlines(keepends=True)
            yield from (memoryview(b"".join(held[begin : begin + lines])) for begin in range(0, len(held), lines))

    monkeypatch.setattr(histogram_log, "whole_blocks", chunks)
    monkeypatch.setattr(histogram_log, "CHUNK_ROWS", 0)
    assert told() == whole
