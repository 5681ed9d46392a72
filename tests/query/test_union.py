"""Union of many logs: one histogram of all their values, whatever the order, in memory that does not grow."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import CapacityError, InputError, TailboardError
from ingest.core.intervals import Intervals, merged
from ingest.core.layout import hdr_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query import streaming
from ingest.query.curves import curves
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question, samples_by_kind
from ingest.query.streaming import Gathered, streamed, union
from ingest.query.windows import auto_step, sure_step
from ingest.read.curves import read_hgrm, read_sla
from ingest.read.sources import ReadOptions
from ingest.view import hlog
from oracles import hdr
from strategies import per_key

SECOND = 10**9
LAYOUT = hdr_layout(3, 0, 1)
Rows = list[tuple[str, int, dict[int, int]]]


def windows(rows: Rows) -> Intervals:
    """Return rows (group, second, counts) as they are."""
    table = tuple({(group,): None for group, _, _ in rows})
    places = {key: code for code, key in enumerate(table)}
    starts = np.array([second * SECOND for _, second, _ in rows], np.int64)
    bins = [sorted(counts) for _, _, counts in rows]
    return merged(
        [
            Intervals(
                LAYOUT,
                table,
                np.array([places[group,] for group, _, _ in rows], np.int64),
                starts,
                starts + SECOND,
                np.concatenate([[0], np.cumsum([len(one) for one in bins])]).astype(np.int64),
                np.array([index for one in bins for index in one], np.int64),
                np.array([counts[index] for _, _, counts in rows for index in sorted(counts)], np.int64),
            )
        ]
    )


def told(parts: Iterator[Intervals]) -> tuple[dict[tuple[str, int], Counter[int]], int]:
    found: dict[tuple[str, int], Counter[int]] = {}
    rows = 0
    for part in parts:
        for row in range(len(part)):
            entries = slice(part.indptr[row], part.indptr[row + 1])
            key = part.table[part.series[row]][0], int(part.start_ns[row]) // SECOND
            found.setdefault(key, Counter()).update(
                dict(zip(part.bins[entries].tolist(), part.counts[entries].tolist(), strict=True))
            )
            rows += 1
    return found, rows


def test_a_lone_log_is_not_copied_where_its_chunks_share_no_window() -> None:
    chunks = [windows([("a", second, {7: 1, 9: second}) for second in range(begin, begin + 30)]) for begin in (0, 29, 59)]
    parts = list(union([iter(chunks)], most_entries=10, slack_ns=SECOND))
    copied = [part for part in parts if not any(np.shares_memory(part.bins, chunk.bins) for chunk in chunks)]
    assert sum(map(len, parts)) == 89 and sum(map(len, copied)) < 10
    assert told(iter(parts))[0]["a", 29] == Counter({7: 2, 9: 58})


@pytest.mark.parametrize("small", [0, 1 << 15])
def test_what_is_gathered_does_not_depend_on_how_it_came(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SMALL_ENTRIES", small)
    rows: Rows = [("a", second, {second: 3, 900: 1 + second}) for second in range(12)]
    rows += [("b", second, {40: 2}) for second in range(12, 15)]
    wanted = Wanted(parse_percentiles("50,90"))
    whole, apart = Gathered(("host",), SECOND, wanted), Gathered(("host",), SECOND, wanted)
    for collected, parts in ((whole, [windows(rows)]), (apart, [windows([row]) for row in rows])):
        assert collected.take(parts)
    columns = [{name: np.concatenate([table.columns[name] for table in each.tables]) for name in ("start_ns", "p50", "count")}
               for each in (whole, apart)]  # fmt: skip
    assert all(columns[0][name].tolist() == columns[1][name].tolist() for name in columns[0])
    sums = [{key[0]: counts for (key, *_), counts in per_key(merged(each.sums)).items()} for each in (whole, apart)]
    assert sums[0] == sums[1] == {"a": {**dict.fromkeys(range(12), 3), 900: 78}, "b": {40: 6}}


def test_a_sum_past_2_to_the_62_is_an_error_also_where_windows_are_let_go() -> None:
    collected = Gathered(("host",), SECOND, Wanted(()))
    assert collected.take(windows([("a", second, {7: 1 << 61})]) for second in range(3))
    with pytest.raises(CapacityError):
        _ = collected.sums


rows_of = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 9),
        st.dictionaries(st.integers(0, 3000), st.integers(1, 2**40), min_size=1, max_size=4),
    ),
    max_size=8,
)


@given(logs=st.lists(st.lists(rows_of, max_size=3), min_size=1, max_size=4), small=st.booleans())
def test_union_is_the_sum_of_all_whatever_the_order(logs: list[list[Rows]], small: bool) -> None:
    wanted: dict[tuple[str, int], Counter[int]] = {}
    for chunks in logs:
        for rows in chunks:
            for group, second, counts in rows:
                wanted.setdefault((group, second), Counter()).update(counts)
    most = 1 if small else 10**6
    streams = [[windows(rows) for rows in chunks if rows] for chunks in logs]
    for order in (streams, streams[::-1]):
        found, _ = told(union([iter(stream) for stream in order], most))
        assert found == wanted


def test_logs_in_time_order_give_each_window_once_in_order_and_little_is_held() -> None:
    noise = random.Random(2)
    logs = [[[("a", second, {noise.randrange(5000): 1 for _ in range(50)})] for second in range(300)] for _ in range(8)]
    held: list[int] = []
    given_out = 0

    def stream(chunks: list[Rows]) -> Iterator[Intervals]:
        nonlocal given_out
        for rows in chunks:
            part = windows(rows)
            given_out += len(part.bins)
            yield part

    starts = []
    taken = 0
    for part in union([stream(chunks) for chunks in logs], 2000):
        starts += part.start_ns.tolist()
        taken += int(part.counts.sum())
        held.append(given_out - taken)
    assert starts == [second * SECOND for second in range(300)]
    assert taken == sum(sum(counts.values()) for chunks in logs for rows in chunks for _, _, counts in rows)
    assert max(held) < 5000 < given_out


def test_union_of_generators_is_one_histogram_of_all_their_values(tmp_path: Path) -> None:
    noise = random.Random(9)
    total: Counter[int] = Counter()
    for generator in range(5):
        lines = []
        for second in range(20):
            counts = Counter(hdr.index_of(int(noise.lognormvariate(12, 1)), 3) for _ in range(100))
            total.update(counts)
            lines.append(hdr.line(f"{second}.000", "1.000", dict(counts), "read-rt"))
        (tmp_path / f"g{generator}.hlog").write_text(hdr.log(lines))
    answers = []
    for paths in (sorted(tmp_path.glob("*.hlog")), sorted(tmp_path.glob("*.hlog"))[::-1]):
        [part] = Files(paths).answer(Question(step="all")).parts
        answers.append((part.bins.tolist(), part.counts.tolist()))
    assert answers[0] == answers[1] and dict(zip(*answers[0], strict=True)) == total


@given(spans=st.lists(st.integers(1, 10**7), min_size=2, max_size=6), stored=st.sampled_from([1, 7]))
def test_a_sure_step_divides_every_later_auto_step(spans: list[int], stored: int) -> None:
    """Windows may be added up to the sure step of what was seen so far: the auto step in the end is a multiple of it."""
    spans.sort()
    for place, span in enumerate(spans):
        sure = sure_step(0, span * stored, stored)
        assert all(auto_step(0, later * stored, stored) % sure == 0 for later in spans[place:])


# Curves -------------------------------------------------------------------------------------------------------


def test_curves_are_the_levels_of_hgrm_and_files_stand_beside_them(tmp_path: Path) -> None:
    values = list(range(1_000_000, 2_000_000, 1000))
    counts = Counter(hdr.index_of(value, 3) for value in values)
    path = tmp_path / "x.hlog"
    path.write_text(hdr.log([hdr.line("0.000", "1.000", dict(counts))]))
    answer = Files([path]).answer(Question(step="all"))
    text = "".join(hlog.texts(answer, 1000))
    (tmp_path / "x.hgrm").write_text(text)
    (tmp_path / "sla.txt").write_text("# limits\n1 0.5 all\n10 0.5\n10 2 some\n1000 2\n")
    others = [read_hgrm(tmp_path / "x.hgrm", 1000), read_sla(tmp_path / "sla.txt", 10**6)]
    table = curves(answer, others).columns
    own = table["curve"] == "all"
    assert np.allclose(table["value"][own], table["value"][table["curve"] == "x"], rtol=0, atol=0.5)
    assert table["count"][own].tolist() == table["count"][table["curve"] == "x"].tolist()
    assert np.nanmax(table["x"][own]) >= 900 and np.isnan(table["x"][own][-1])
    for share, value in zip(table["percentile"][own].tolist(), table["value"][own].tolist(), strict=True):
        rank = max(1, -(-round(share * 1000 * 2**20) // 2**20))
        assert value == hdr.percentile(dict(counts), 3, 0, min(rank, 1000))
    assert table["value"][table["curve"] == "sla"].tolist() == [500_000, 500_000, 2_000_000, 2_000_000]


@pytest.mark.parametrize(
    "text",
    [
        "Value Percentile TotalCount 1/(1-Percentile)\n\n 1.5 0.0 1 1.0\n 2.5 1.0 2\n#[Mean = 1]\n",
        """  Latency Distribution (HdrHistogram - Recorded Latency)
       Value   Percentile   TotalCount 1/(1-Percentile)

       1.500     0.000000            1         1.00
       2.500     1.000000            2          inf
#[Mean    =        1.500, StdDeviation   =        0.5]
----------------------------------------------------------
  1 requests in 2.00s
""",
        '"Value","Percentile","TotalCount","1/(1-Percentile)"\n1.5,0.0,1,1.00\n2.5,1.0,2,Infinity\n',
    ],
)
def test_hgrm_of_java_c_and_csv(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.hgrm"
    path.write_text(text)
    curve = read_hgrm(path, 1000)
    assert (curve.shares, curve.values_ns, curve.counts, curve.x) == ((0.0, 1.0), (1500.0, 2500.0), (1, 2), (1.0, float("inf")))


@pytest.mark.parametrize(
    ("reader", "text", "reason"),
    [
        (read_hgrm, "nothing\n", "holds no percentile distribution"),
        (
            read_hgrm,
            "Value Percentile TotalCount 1/(1-Percentile)\n2 0.0 1 1\n1 0.5 2 2\n",
            ":3: a percentile, value or count falls",
        ),
        (read_sla, "1 5\nx y\n", ":2: no SLA step"),
        (read_sla, "10 5\n1 5\n", ":2: no SLA step: x begins at 1 and never falls"),
        (read_sla, "# only\n", "holds no SLA step"),
        (read_sla, "1 nan\n", ":1: no SLA step"),
    ],
)
def test_bad_curves_are_refused_with_their_line(tmp_path: Path, reader, text: str, reason: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        reader(path, 1)


def test_a_percentile_curve_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "x.hgrm").write_text("Value Percentile TotalCount 1/(1-Percentile)\n1 0.0 1 1\n")
    with pytest.raises(InputError, match="for display only, see distribution --hgrm"):
        Files([tmp_path / "x.hgrm"], ReadOptions())


# Window by window ---------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32),
    sources=st.integers(1, 3),
    step=st.sampled_from([1, 2, 5]),
    by=st.sampled_from([(), ("op",), ("kind", "op"), ("process",), ("layer",)]),
    layer=st.sampled_from(["", "device"]),
)
@settings(max_examples=25)
def test_streamed_percentiles_are_those_of_the_ordinary_way(
    tmp_path_factory, seed: int, sources: int, step: int, by: tuple[str, ...], layer: str
) -> None:
    """Also for lines out of order, gaps and overlaps: then the ordinary way is taken, or the numbers are the same."""
    noise = random.Random(seed)
    folder = tmp_path_factory.mktemp("streamed")
    for number in range(sources):
        lines, at = [], 0.0
        for _ in range(noise.randrange(1, 30)):
            at += noise.choice([0, 0.5, 1, 1, 1, 1, 7]) if noise.random() < 0.95 else -noise.randrange(5)
            tag = noise.choice(["read-st", "read-rt", "write-st"])
            counts = {noise.randrange(9000): noise.randrange(1, 500) for _ in range(noise.randrange(6))}
            lines.append(hdr.line(f"{max(at, 0):.3f}", f"{noise.choice([0, 0.5, 1, 1, 3]):.3f}", counts, tag))
        (folder / f"{number}.hlog").write_text(hdr.log(lines))
    options = ReadOptions(layer=layer)
    question = Question(step=step * SECOND, by=by, force=True)
    wanted = Wanted(parse_percentiles("50,99"), (10_000,))
    try:
        answer = Files([folder], options, jobs=1).answer(question)
    except TailboardError as error:
        with pytest.raises(TailboardError, match=re.escape(str(error)[:30])):
            streamed(Files([folder], options, jobs=1), question, wanted) or Files([folder], options, jobs=1).answer(question)
        return
    files = Files([folder], options, jobs=1)
    found = streamed(files, question, wanted)
    if found is None:
        assert files.account.rows == 0
        found = percentiles(files.answer(question), wanted), answer
    table, facts = found
    ordinary = percentiles(answer, wanted)
    assert list(table.columns) == list(ordinary.columns)
    for name, column in ordinary.columns.items():
        assert np.array_equal(
            np.asarray(table.columns[name]), np.asarray(column), equal_nan=np.asarray(column).dtype.kind == "f"
        ), name
    assert (facts.by, facts.kind, facts.runs, facts.warnings) == (answer.by, answer.kind, answer.runs, answer.warnings)
    assert facts.samples == answer.samples
    assert samples_by_kind([facts]) == samples_by_kind([answer])
    assert table.precision == ordinary.precision
