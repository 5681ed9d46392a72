"""Lines of HdrHistogram logs that are unpacked together give what each gives that is unpacked by itself."""

from __future__ import annotations

import base64
from itertools import chain, pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import TailboardError
from ingest.core.intervals import Intervals
from ingest.read import read
from ingest.read.account import Account
from ingest.read.hdr import log
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import hdr
from tests.effort import figure

HEADS = (
    "#[Logged with jHiccup]\n#[StartTime: 1700000000.000 (seconds since epoch)]\n",
    "#[Logged with Cql-stress 0.2.2]\n#[StartTime: 1700000000.000 (seconds since epoch)]\n",
    "#Logging op latencies for Cassandra Stress\n#[StartTime: 1700000000.000 (seconds since epoch)]\n",
    "#Logging op latencies for scylla-bench\n#[StartTime: 1700000000.000 (seconds since epoch)]\n",
)
COUNTS = ({100: 3}, {0: 1, 5: 70, 900: 2}, {7: 500, 8: 1, 40_000: 9}, {})
CUT = base64.b64encode(hdr.compressed(hdr.v2({1: 2})[:-1] + b"\x84")).decode()
PAST = base64.b64encode(hdr.compressed(hdr.v2({60_000: 1}, highest=2))).decode()
HUGE = base64.b64encode(hdr.compressed(hdr.v2({3: 1 << 54}))).decode()
PLAIN = base64.b64encode(hdr.v2({12: 5, 13: 1})).decode()

width = st.sampled_from(["1.000", "1.000", "1.004", "0.5", "1e0", "0", "-1.000", "99999999999"])
step_ms = st.sampled_from([1000, 1000, 1000, 999, 990, 1004, 0, -5000, 40_000])
tag = st.sampled_from(["", "", "a", "a", "b", "raw", "raw-read", "op-rt"])
ending = st.sampled_from(["\n", "\n", "\n", "\r\n", " \n"])
usual = st.builds(
    lambda width, counts, tag, digits, ending: hdr.line("{}", width, counts, tag, digits=digits)[:-1] + ending,
    width,
    st.sampled_from(COUNTS),
    tag,
    st.sampled_from([3, 3, 3, 2]),
    ending,
)
odd = st.sampled_from(
    [
        "#a comment\n",
        "#[StartTime: 1700000500.000 (seconds since epoch)]\n",
        "\n",
        "nothing\n",
        "{},1.000,0.0,\n",
        "{} 1.000 0.0 HISTFAAA\n",
        "Tag=a b,{},1.000,0.0," + PLAIN + "\n",
        "{} ,1.000,0.0," + PLAIN + "\n",
        "{},1.000,0.0, " + PLAIN + "\n",
        "{},1.000,0.0,HIST****\n",
        *("{},1.000,0.0," + text + "\n" for text in (CUT, PAST, HUGE, PLAIN)),
    ]
)
follows = st.builds(lambda counts, tag: hdr.line("{}", "1.000", counts, tag), st.sampled_from(COUNTS), st.sampled_from(["", "a"]))
run = st.lists(st.tuples(st.just(1000), follows), min_size=2, max_size=4)
lines = st.lists(st.one_of(run, st.tuples(step_ms, st.one_of(usual, usual, odd)).map(lambda one: [one])), max_size=12)


def taken(path: Path, room: int) -> tuple[list[Intervals], Account, bool]:
    """Return what a log holds, unpacked in batches of so many bytes, its account, and whether reading it failed."""
    found: list[Intervals] = []
    [source] = discover([path], ReadOptions(input_format="hdr-log")).sources
    with patch.multiple(log, BATCH_BYTES=room, CHUNK_ROWS=5):
        try:
            found.extend(read(source))
        except TailboardError:
            return found, source.context.account, True
    return found, source.context.account, False


def rows_in(parts: list[Intervals]) -> list[tuple[object, ...]]:
    """Return the rows of parts in the order of their layouts, series and starts."""
    found = []
    for part in parts:
        for row, (first, last) in enumerate(pairwise(part.indptr.tolist())):
            entries = part.bins[first:last].tolist(), part.counts[first:last].tolist()
            found.append((str(part.layout), part.table[part.series[row]], part.start_ns[row], part.end_ns[row], *entries))
    return sorted(found)


@settings(max_examples=figure(60, 200, 3_000), deadline=None)
@given(
    head=st.sampled_from(HEADS),
    drawn=lines,
    room=st.sampled_from([300, 1 << 18]),
    cut=st.sampled_from([0, 0, 1, 30]),
)
@example(HEADS[0], [[(1000, hdr.line("{}", "1.000", {100: 3}))] * 40], 1 << 18, 0)
@example(HEADS[0], [[(1000, "{},1.000,0.0," + text + "\n") for text in (CUT, PAST, HUGE)]], 1 << 18, 0)
@example(HEADS[0], [[(1000, f"Tag=a b,{{}},1.000,0.0,{PLAIN}\n")] * 2], 1 << 18, 0)
@example(HEADS[0], [[(1000, hdr.line("{}", "-1.000", {100: 3}))] * 2], 1 << 18, 0)
@example(HEADS[0], [[(1000, hdr.line("{}", "1.500", {100: 3}))] * 9], 300, 0)
@example(HEADS[0], [[(1000, hdr.line("{}", "1.000", {100: 3})), (0, hdr.line("{}", "1.000", {7: 3}, "a"))] * 9], 300, 0)
@example(HEADS[0], [[(1000, hdr.line("4000000000", "4000000000", {100: 3}))] * 2], 1 << 18, 0)
@example(HEADS[1], [[(1000, hdr.line("{}", "1.000", {100: 3}))] * 2], 1 << 18, 0)
@example(HEADS[2], [[(1000, hdr.line("{}", "0.100", {100: 3}, tag)) for tag in ("raw", "raw-read")]], 1 << 18, 0)
def test_lines_unpacked_together_give_what_each_gives_alone(
    tmp_path_factory: pytest.TempPathFactory, head: str, drawn: list[list[tuple[int, str]]], room: int, cut: int
) -> None:
    now, text = 1_700_000_000_000, ""
    for step, line in [(1000, hdr.line("{}", "0", {1: 1})), *chain.from_iterable(drawn)]:
        now += step
        text += line.format(f"{now // 1000}.{now % 1000:03d}")
    path = tmp_path_factory.mktemp("together") / "x.hlog"
    content = hdr.log([text], head).encode()
    path.write_bytes(content[: len(content) - cut])
    try:
        mine, alone = taken(path, room), taken(path, 1)
    except TailboardError:  # no line of its head can be read
        return
    assert (mine[1].rejected, mine[1].skipped, mine[1].samples) == (alone[1].rejected, alone[1].skipped, alone[1].samples)
    assert mine[2] == alone[2] and rows_in(mine[0]) == rows_in(alone[0])
