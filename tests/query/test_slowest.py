"""The slowest single operations: those of a plain reading of raw logs, with offset and size, whatever selects them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.core.errors import UsageError
from ingest.core.units import Instant
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.slowest import MOST, slowest_operations
from ingest.read.sources import ReadOptions
from ingest.store import open_store

OPS = ("read", "write", "trim")
MS, ZERO = 1_000_000, 1_789_999_200 * 10**9


def written(folder: Path, hosts: int = 3, rows: int = 400) -> dict[str, list[tuple[int, ...]]]:
    """Write raw logs of fio with offsets, and return the rows of each host: time (ms), latency (ns), direction, size, offset."""
    noise, held = random.Random(7), {}
    for host in range(1, hosts + 1):
        lines = [
            (at, noise.choice((90_000, noise.randrange(10**5, 10**8))), at % 2, 4096 << at % 3, 512 * noise.randrange(10**6))
            for at in range(1000, 1000 + rows)
        ]
        held[f"h{host}"] = lines
        text = "".join(f"{at}, {value}, {op}, {size}, {offset}, 0\n" for at, value, op, size, offset in lines)
        (folder / f"output_clat.1.log.h{host}").write_text(text)
    return held


@pytest.mark.parametrize("where", [{}, {"host": "h2"}, {"op": "write"}])
def test_the_slowest_are_those_of_a_plain_reading(tmp_path: Path, where: dict[str, str]) -> None:
    held = written(tmp_path)
    files = Files([tmp_path], ReadOptions(t0=ZERO, fio_version=(3, 33)), jobs=2)
    (run,) = files.run_names
    found = slowest_operations(files, {run: run}, Question(where=where))[run]
    rows = [
        (value, host, at, OPS[op], size, offset)
        for host, lines in held.items()
        for at, value, op, size, offset in lines
        if where.get("host", host) == host and where.get("op", OPS[op]) == OPS[op]
    ]
    rows.sort(key=lambda row: (-row[0], row[2]))
    assert len(found) == MOST
    assert [
        (one.latency_ns, one.series.host, (one.end_ns - ZERO) // MS, one.series.op, one.size, one.offset) for one in found
    ] == rows[:MOST]
    assert all(one.start_ns == one.end_ns - one.latency_ns for one in found)


def test_a_range_selects_and_what_has_no_single_operations_has_none(tmp_path: Path) -> None:
    held = written(tmp_path, hosts=1)
    files = Files([tmp_path], ReadOptions(t0=ZERO, fio_version=(3, 33)))
    (run,) = files.run_names
    begin, end = (Instant(ZERO + at * MS) for at in (1100, 1200))
    found = slowest_operations(files, {run: run}, Question(begin=begin, end=end))[run]
    inside = sorted((value for at, value, *_ in held["h1"] if 1100 <= at < 1200), reverse=True)
    assert [one.latency_ns for one in found] == inside[:MOST]
    with pytest.raises(UsageError):
        slowest_operations(files, {run: run}, Question(where={"nonsense": "x"}))
    with open_store(f"sqlite:{tmp_path / 'a.db'}", write=True) as store:
        assert slowest_operations(store, {run: run}, Question()) == {}
