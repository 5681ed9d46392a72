"""Lines of HdrHistogram logs that are taken together give what each gives that is taken by itself."""

from __future__ import annotations

import base64
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
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


def taken(path: Path, room: int, together: int) -> tuple[list[Intervals], Account, bool]:
    """Return what a log holds, read so many lines together or (0) one by one, its account, and whether reading it failed."""
    found: list[Intervals] = []
    [source] = discover([path], ReadOptions(input_format="hdr-log")).sources
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(log, BATCH_BYTES=room, CHUNK_ROWS=5, TOGETHER=together or 1))
        if not together:
            stack.enter_context(patch.object(log, "usual_intervals", return_value=None))
            stack.enter_context(patch.object(log.Rows, "_following", return_value=None))
        try:
            found.extend(read(source))
        except TailboardError:
            return found, source.context.account, True
    return found, source.context.account, False


@settings(max_examples=figure(60, 200, 3_000), deadline=None)
@given(
    head=st.sampled_from(HEADS),
    drawn=lines,
    room=st.sampled_from([1, 300, 1 << 18]),
    together=st.sampled_from([2, 3, 32]),
    cut=st.sampled_from([0, 0, 1, 30]),
)
@example(HEADS[0], [[(1000, hdr.line("{}", "1.000", {100: 3}))] * 40], 1 << 18, 32, 0)
@example(HEADS[0], [[(1000, "{},1.000,0.0," + text + "\n") for text in (CUT, PAST, HUGE)]], 1 << 18, 2, 0)
@example(HEADS[0], [[(1000, f"Tag=a b,{{}},1.000,0.0,{PLAIN}\n")] * 2], 1 << 18, 2, 0)
@example(HEADS[0], [[(1000, hdr.line("{}", "-1.000", {100: 3}))] * 2], 1 << 18, 2, 0)
@example(HEADS[0], [[(1000, hdr.line("{}", "1.500", {100: 3}))] * 9], 300, 2, 0)
@example(HEADS[0], [[(1000, hdr.line("{}", "1.000", {100: 3})), (0, hdr.line("{}", "1.000", {7: 3}, "a"))] * 9], 300, 2, 0)
@example(HEADS[0], [[(1000, hdr.line("4000000000", "4000000000", {100: 3}))] * 2], 1 << 18, 2, 0)
@example(HEADS[1], [[(1000, hdr.line("{}", "1.000", {100: 3}))] * 2], 1 << 18, 2, 0)
@example(HEADS[2], [[(1000, hdr.line("{}", "0.100", {100: 3}, tag)) for tag in ("raw", "raw-read")]], 1 << 18, 2, 0)
def test_lines_taken_together_give_what_each_gives_alone(
    tmp_path_factory: pytest.TempPathFactory, head: str, drawn: list[list[tuple[int, str]]], room: int, together: int, cut: int
) -> None:
    now, text = 1_700_000_000_000, ""
    for step, line in [(1000, hdr.line("{}", "0", {1: 1})), *chain.from_iterable(drawn)]:
        now += step
        text += line.format(f"{now // 1000}.{now % 1000:03d}")
    path = tmp_path_factory.mktemp("together") / "x.hlog"
    content = hdr.log([text], head).encode()
    path.write_bytes(content[: len(content) - cut])
    try:
        mine, alone = taken(path, room, together), taken(path, room, 0)
    except TailboardError:  # no line of its head can be read
        return
    assert mine[1] == alone[1]
    for counted in ("rejected", "skipped"):
        assert list(getattr(mine[1], counted).items()) == list(getattr(alone[1], counted).items())
    assert mine[2] == alone[2] and len(mine[0]) == len(alone[0])
    for one, other in zip(mine[0], alone[0], strict=True):
        assert (one.layout, one.table) == (other.layout, other.table)
        for column in ("series", "start_ns", "end_ns", "indptr", "bins", "counts"):
            assert np.array_equal(getattr(one, column), getattr(other, column)), column


@pytest.mark.parametrize(("tag", "ending"), [("", "\n"), ("op-rt", "\n"), ("", "\r\n")])
def test_lines_of_known_writers_are_taken_together(tmp_path: Path, tag: str, ending: str) -> None:
    path = tmp_path / "x.hlog"
    lines = [hdr.line(f"{second}.000", "1.000", {100: 3}, tag)[:-1] + ending for second in range(100)]
    path.write_text(hdr.log(lines), newline="")
    [source] = discover([path], ReadOptions()).sources
    with (
        patch.object(log.Rows, "_take_line", autospec=True, side_effect=log.Rows._take_line) as by_itself,
        patch.object(log.Rows, "_add_one_by_one", autospec=True, side_effect=log.Rows._add_one_by_one) as placed,
        patch.object(log, "BATCH_BYTES", 1 << 10),
    ):
        assert sum(len(part) for part in read(source)) == 100
    assert by_itself.call_count <= log.TOGETHER  # those beside the comments at the beginning
    assert placed.call_count == 1
