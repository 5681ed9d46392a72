"""R9: a row of a histogram log that counts nothing spoils its own direction alone, and the next row begins at its stamp."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.table import groups_in
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.oracles import logs

SECOND = 10**9
OPS = ("read", "write", "trim")


def rows_of(folder: Path, **more) -> dict[tuple[str, int], tuple[int, bool]]:
    """Return samples and whether all are there, by op and second."""
    files = Files([folder], ReadOptions(t0=0), jobs=1)
    table = percentiles(files.answer(Question(by=("op",), step=SECOND, **more)), Wanted(()))
    keys = zip(groups_in(table), table.columns["start_ns"].tolist(), strict=True)
    numbers = zip(table.columns["count"].tolist(), table.columns["complete"].tolist(), strict=True)
    return {(op, start // SECOND): row for ((op,), start), row in zip(keys, numbers, strict=True)}


def test_r9_a_row_of_zeros_spoils_its_own_op_alone_and_is_an_edge(tmp_path: Path) -> None:
    lines = [(1000 * second + op, op, {} if (second, op) == (4, 0) else {8: 100}) for second in range(1, 9) for op in (0, 1)]
    (tmp_path / "a_clat_hist.1.log").write_text(logs.text(lines, 29))
    found = rows_of(tmp_path)
    reads = {second: row for (op, second), row in found.items() if op == "read"}
    writes = [row for (op, second), row in found.items() if op == "write"]
    assert reads == {second: (100, True) for second in (0, 1, 2, 4, 5, 6, 7)}, "nothing of the lost row is made up"
    assert sum(count for count, _ in writes) == 800 and all(whole for _, whole in writes[:-1])


def test_r9_a_row_of_one_sample_is_at_its_stamp_after_a_row_of_zeros_of_another_op(tmp_path: Path) -> None:
    lines = [(300, 1, {3: 900}), (301, 0, {3: 900}), (302, 0, {}), (1001, 1, {0: 1})]
    (tmp_path / "a_clat_hist.1.log").write_text(logs.text(lines, 29))
    assert {key: count for key, (count, _) in rows_of(tmp_path).items()} == {("read", 0): 900, ("write", 0): 900, ("write", 1): 1}


@pytest.mark.parametrize("seed", range(figure(20, 40, 1000)))
def test_r9_rows_of_zeros_anywhere_leave_all_others_where_they_were(tmp_path: Path, seed: int) -> None:
    """The same log without these rows' counts: all other windows of all ops hold what they held, whole as before.

    Rows of one sample aside: that completed at the stamp, unless the row may have begun late.
    """
    chance = random.Random(seed)
    rows, ops = chance.randrange(6, 30), chance.choice((2, 3))
    there = [
        (1000 * second + op, op, {chance.randrange(29): chance.randrange(2, 50) for _ in range(chance.randrange(1, 4))})
        for second in range(1, rows)
        for op in range(ops)
    ]
    lost = set(chance.sample(range(1, len(there)), chance.randrange(1, 1 + len(there) // 4)))
    spoiled = [(stamp, op, {} if place in lost else counts) for place, (stamp, op, counts) in enumerate(there)]
    found = []
    for name, lines in (("whole", there), ("spoiled", spoiled)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a_clat_hist.1.log").write_text(logs.text(lines, 29))
        found.append(rows_of(tmp_path / name))
    whole, now = found
    spans = [(OPS[op], stamp) for place, (stamp, op, _) in enumerate(there) if place in lost]
    gone = {(op, at // 1000) for op, stamp in spans for at in (stamp - 1000, stamp - 1)}
    for key, row in whole.items():
        if key in gone:
            assert key not in now or not now[key][1], (key, now[key])
        else:
            assert now[key] == row, (key, row, now.get(key))
    assert now.keys() <= whole.keys()


@pytest.mark.parametrize(
    "damage",
    [
        lambda row: row[: row.rindex(",")] + "\n",
        lambda row: row[:-5] + "x" + row[-4:],
        lambda row: row[:-9] + "\0" + row[-8:],
        lambda row: row.rstrip("\n") + ", 7\n",
    ],
)
def test_r9_a_row_with_a_cell_that_cannot_be_read_spoils_its_own_op_alone(tmp_path: Path, damage) -> None:
    lines = logs.text([(1000 * second + op, op, {8: 100}) for second in range(1, 9) for op in (0, 1)], 29).splitlines(
        keepends=True
    )
    lines[6] = damage(lines[6])
    (tmp_path / "a_clat_hist.1.log").write_text("".join(lines))
    found = rows_of(tmp_path)
    assert {second: row for (op, second), row in found.items() if op == "read"} == dict.fromkeys(
        (0, 1, 2, 4, 5, 6, 7), (100, True)
    )
    assert sum(row[0] for (op, _), row in found.items() if op == "write") == 800
    assert all(row[1] for (op, second), row in found.items() if op == "write" and second < 8)


@pytest.mark.parametrize("lead", ["9000, 0, 4096", "000, 0, 4096", "4000, 3, 4096", "4000, 0, 496", "00, 4096, 0"])
def test_r9_a_row_whose_leading_cells_fit_nothing_spoils_all(tmp_path: Path, lead: str) -> None:
    lines = logs.text([(1000 * second + op, op, {8: 100}) for second in range(1, 9) for op in (0, 1)], 29).splitlines(
        keepends=True
    )
    lines[6] = f"{lead}, 0, 0\n"
    (tmp_path / "a_clat_hist.1.log").write_text("".join(lines))
    found = rows_of(tmp_path)
    assert not found["read", 3][1] and not found["write", 3][1]
