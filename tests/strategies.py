"""What property tests draw: layouts, intervals and log text, small enough to check by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.core.layout import LogLinear, fio_layout

MS = 1_000_000
TABLE = tuple(Series(run="r", host=host, op=op, kind="completion") for host in ("a", "b") for op in ("read", "write"))

FIO_LAYOUTS = [fio_layout(groups, unit, c) for groups, unit in ((29, 1), (19, 1000)) for c in range(7)]
HDR_LAYOUTS = [
    LogLinear(128, 128 * 20, reports="highest", open_ended=False),
    LogLinear(1024, 1024 * 25, 1000, reports="highest", open_ended=False),
]
layouts = st.sampled_from(FIO_LAYOUTS + HDR_LAYOUTS)

percents = st.one_of(
    st.sampled_from(["0", "1", "50", "75", "90", "95", "99", "99.9", "99.99", "100"]),
    st.decimals(0, 100, places=3).map(lambda number: f"{number:f}"),
)
counts = st.one_of(st.integers(1, 5), st.integers(1, 1000), st.integers(1, 2**30))
histograms = st.dictionaries(st.integers(0, 28), counts, min_size=1, max_size=6)


def made(layout: LogLinear, rows: list[tuple[int, int, int, dict[int, int]]]) -> Intervals:
    """Return intervals of (series code, start, end, {bin: count}) rows."""
    bins = [sorted(counts) for *_, counts in rows]
    return Intervals(
        layout=layout,
        table=TABLE,
        series=np.array([row[0] for row in rows], np.int64),
        start_ns=np.array([row[1] for row in rows], np.int64),
        end_ns=np.array([row[2] for row in rows], np.int64),
        indptr=np.cumsum([0, *map(len, bins)]).astype(np.int64),
        bins=np.array([slot for row in bins for slot in row], np.int64),
        counts=np.array([row[3][slot] for row, held in zip(rows, bins, strict=True) for slot in held], np.int64),
    )


@st.composite
def intervals(draw: st.DrawFn, layout: LogLinear = FIO_LAYOUTS[6], most: int = 8) -> Intervals:
    """Draw rows of any place and width, zero width included."""
    rows = []
    for _ in range(draw(st.integers(1, most))):
        start = draw(st.integers(0, 20_000))
        width = draw(st.one_of(st.just(0), st.integers(1, 100), st.integers(500, 9000)))
        rows.append((draw(st.integers(0, 3)), start * MS, (start + width) * MS, draw(histograms)))
    return made(layout, rows)


@st.composite
def chains(draw: st.DrawFn, bins: int = 29, most: int = 10) -> list[tuple[int, int, dict[int, int]]]:
    """Draw the rows of a log (stamp in ms, direction, {bin: count}): two directions, stamps that never fall.

    The last row of a direction holds less than the first in one bin: a log in which no bin ever falls counts
    cumulatively, as far as anyone can tell.
    """
    lines = []
    for direction in draw(st.sampled_from([(0,), (1,), (0, 1)])):
        stamp = draw(st.integers(300, 1500))
        held = st.dictionaries(
            st.integers(0, bins - 1), st.one_of(st.integers(1, 40), st.integers(1, 10**6)), min_size=1, max_size=5
        )
        lines.append((stamp, direction, {3: 900, **draw(held)}))
        for _ in range(draw(st.integers(1, most))):
            stamp += draw(st.one_of(st.just(0), st.integers(1, 20), st.integers(400, 1100), st.integers(1100, 7000)))
            lines.append((stamp, direction, {**draw(held), 3: draw(st.integers(0, 1))}))
    lines.sort(key=lambda line: line[0])
    return lines


def check(rows: Intervals) -> None:
    """Assert what must hold of any intervals."""
    assert rows.indptr[0] == 0 and rows.indptr[-1] == len(rows.bins) == len(rows.counts)
    assert (np.diff(rows.indptr) >= 0).all()
    assert (rows.counts > 0).all()
    inner = np.ones(len(rows.bins), bool)
    inner[rows.indptr[:-1][np.diff(rows.indptr) > 0]] = False
    assert (np.diff(rows.bins, prepend=0)[inner] > 0).all()
    assert len(rows) == len(rows.start_ns) == len(rows.end_ns) == len(rows.indptr) - 1


def per_key(rows: Intervals) -> dict[tuple, dict[int, int]]:
    """Return the sum of rows by (key, start, end), bin by bin; empty rows left out."""
    found: dict[tuple, dict[int, int]] = {}
    for number, code in enumerate(rows.series):
        key = (rows.table[code], int(rows.start_ns[number]), int(rows.end_ns[number]))
        for at in range(rows.indptr[number], rows.indptr[number + 1]):
            held = found.setdefault(key, {})
            held[int(rows.bins[at])] = held.get(int(rows.bins[at]), 0) + int(rows.counts[at])
    return found


def totals(rows: Intervals) -> dict[tuple, int]:
    """Return the sum of all rows by (key, bin)."""
    found: dict[tuple, int] = {}
    for (key, _, _), held in per_key(rows).items():
        for slot, count in held.items():
            found[key, slot] = found.get((key, slot), 0) + count
    return {key: count for key, count in found.items() if count}


def written(percent: str) -> str:
    """Return how a percentile is asked for: one below 1 with a percent sign, as it may be a share else."""
    return f"{percent}%" if 0 < float(percent) < 1 else percent
