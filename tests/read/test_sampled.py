"""Files of `tailboard record sample`: each answer is read as its own format is, resets and missed polls between them are told."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as tailboard
from ingest.core.errors import TailboardError
from ingest.core.units import UNITS_NS
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.mutations import check_damaged
from tests.read.test_histograms import DATA, rows, samples_of

BASE = 1_700_000_000
S = UNITS_NS["s"]


def poll(second: float, said: object, *, host: str = "h1", command: str = "ask it", **more) -> str:
    body = {"sampled_at": BASE + second, "record": "poll", "host": host, "command": command, "took": 0.01, "status": 0}
    return json.dumps({**body, **({} if said is None else {"said": said}), **more}, separators=(",", ":")) + "\n"


def missed(second: float, polls: int, *, host: str = "h1", command: str = "ask it") -> str:
    body = {"sampled_at": BASE + second, "record": "missed", "host": host, "command": command, "polls": polls, "why": "busy"}
    return json.dumps(body, separators=(",", ":")) + "\n"


def failed(second: float, **more) -> str:
    return poll(second, None, error="exit status 7", stderr="connection refused", **more)


def kept(folder: Path, *lines: str) -> Path:
    path = folder / "s.ndjson"
    begin = {"sampled_at": BASE, "record": "begin", "host": "h1", "command": "ask it", "every": "1s"}
    path.write_text(json.dumps(begin, separators=(",", ":")) + "\n" + "".join(lines))
    return path


def redis(**counts: list[int]) -> dict:
    """What redis-cli --json says: counts up to 1, 2, 4 us."""
    return {op: {"calls": upto[-1], "histogram_usec": dict(zip(("1", "2", "4"), upto))} for op, upto in counts.items()}


def exposition(*counts: tuple[int, int, int], started: float | None = None) -> str:
    text = "# TYPE op_seconds histogram\n" + ("" if started is None else f"process_start_time_seconds {started}\n")
    for number, upto in enumerate(counts):
        for edge, count in zip(("0.001", "0.01", "+Inf"), upto):
            text += f'op_seconds_bucket{{op="op{number}",le="{edge}"}} {count}\n'
    return text


def taken(path: Path, **reading) -> tuple[list[tuple], object]:
    """Labels, start and end in seconds, samples."""
    found, account = rows(path, **reading)
    return [
        (series.host, series.op, round(start / S - BASE, 3), round(end / S - BASE, 3), sum(bins.values()))
        for series, start, end, bins, _ in sorted(found, key=lambda row: (row[0].op, row[2]))
    ], account


def test_ceph_is_read_as_from_hand_made_polls(tmp_path: Path) -> None:
    """The daemon is the one that the command names; scalars and pretty printing do not matter."""
    told = [json.loads(line) for line in (DATA / "ceph_perf_histogram_synthetic.ndjson").read_text().splitlines()]
    command = "ceph daemon osd.3 perf histogram dump -f json"
    lines = [poll(entry["sampled_at"] - BASE, entry["dump"], host="ceph1", command=command) for entry in told]
    by_hand, _ = rows(DATA / "ceph_perf_histogram_synthetic.ndjson")
    sampled, account = rows(kept(tmp_path, *lines))
    strip = [(series.host, series.volume, series.op, series.tag, *rest) for series, *rest in by_hand]
    assert [(series.host, series.volume, series.op, series.tag, *rest) for series, *rest in sampled] == strip
    assert not account.missing and not account.caveats and not account.rejected


def test_redis_is_read_as_the_preset_reads_it(tmp_path: Path) -> None:
    told = [json.loads(line) for line in (DATA / "redis70_latency_histogram.ndjson").read_text().splitlines()]
    lines = [poll(entry["t"] - BASE, entry["r"], host=entry["host"]) for entry in told]
    by_hand, _ = rows(DATA / "redis70_latency_histogram.ndjson", description=description_of("redis-latency"))
    sampled, account = rows(kept(tmp_path, *lines))
    counts = [[(series.op, sum(bins.values())) for series, _, _, bins, _ in found if bins] for found in (by_hand, sampled)]
    assert sorted(counts[0]) == sorted(counts[1]) and len(account.missing) == 2
    assert {layout for *_, layout in sampled} == {layout for *_, layout in by_hand}


def test_expositions_without_a_time_have_that_of_their_poll(tmp_path: Path) -> None:
    path = kept(tmp_path, *(poll(at, exposition((n, 2 * n, 3 * n))) for at, n in ((1, 1), (2, 2), (3.5, 4))))
    found, account = taken(path)
    assert found == [("h1", "op0", 1, 2, 3), ("h1", "op0", 2, 3.5, 6)]
    assert not account.missing and not account.rejected


def test_openmetrics_and_queries_are_read_too(tmp_path: Path) -> None:
    """The stamps of the answer of a query are its own: the same sample again adds nothing."""

    def answer(*values: tuple[float, int]) -> dict:
        result = [
            {
                "metric": {"__name__": "x_seconds_bucket", "instance": "h2:1", "le": edge},
                "values": [[BASE + at, str(n)] for at, n in values],
            }
            for edge in ("0.1", "+Inf")
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}

    found, _ = taken(kept(tmp_path, poll(1, answer((0, 3), (0.5, 5))), poll(2, answer((0.5, 5), (1.5, 9)))))
    assert found == [("h2", "x_seconds", 0, 0.5, 2), ("h2", "x_seconds", 0.5, 1.5, 4)]


def test_otlp_in_answers_of_one_or_several_lines(tmp_path: Path) -> None:
    lines = (DATA / "otlp_cumulative.jsonl").read_text().splitlines()
    whole, _ = rows(DATA / "otlp_cumulative.jsonl")
    documents, _ = rows(kept(tmp_path, *(poll(at, json.loads(line)) for at, line in enumerate(lines))))
    text, _ = rows(kept(tmp_path, poll(1, "\n".join(lines) + "\n")))
    for found in (documents, text):
        assert sorted(str(row[1:4]) for row in found) == sorted(str(row[1:4]) for row in whole)


def test_a_restart_of_the_server_between_two_polls_is_a_reset(tmp_path: Path) -> None:
    """Counts are higher than before, so only the start of the process tells."""
    path = kept(
        tmp_path,
        *(poll(at, exposition((n, n, n), started=BASE - begun)) for at, n, begun in ((1, 5, 99), (2, 7, 99), (3, 9, -2.5))),
    )
    found, account = taken(path)
    assert [row[2:] for row in found] == [(1, 2, 2), (2.5, 3, 9)]
    [lost] = account.missing
    assert (lost.from_ns, lost.to_ns, lost.caveat.code) == ((BASE + 2) * S, (BASE + 3) * S, "counter-reset")


def test_a_series_that_comes_later_counts_from_the_answer_before(tmp_path: Path) -> None:
    """Redis and Prometheus name a command or a status only once it was seen: nothing of it is a baseline."""
    path = kept(
        tmp_path, poll(1, redis(get=[1, 2, 3])), poll(2, redis(get=[1, 2, 4])), poll(3, redis(get=[1, 2, 6], set=[4, 5, 9]))
    )
    found, account = taken(path)
    assert found == [("h1", "get", 1, 2, 1), ("h1", "get", 2, 3, 2), ("h1", "set", 2, 3, 9)]
    assert not account.missing
    path = kept(
        tmp_path,
        poll(1, exposition((1, 1, 1), started=BASE - 999)),
        poll(2, exposition((1, 1, 1), (3, 4, 5), started=BASE - 999)),
    )
    assert ("h1", "op1", 1, 2, 5) in taken(path)[0]


def test_a_series_that_went_away_was_set_to_zero(tmp_path: Path) -> None:
    path = kept(tmp_path, poll(1, redis(get=[1, 2, 3])), poll(2, redis()), poll(3, redis(get=[3, 5, 9])))
    found, account = taken(path)
    assert [row[2:] for row in found] == [(1, 2, 0), (2, 3, 9)]
    assert [lost.caveat.code for lost in account.missing] == ["counter-reset"]


@settings(max_examples=figure(40, 120, 2000), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.integers(0, 9), st.integers(0, 9)),
            st.just(("fail",)),
            st.just(("miss",)),
            st.just(("reset",)),
        ),
        min_size=2,
        max_size=14,
    )
)
def test_all_that_was_counted_is_in_a_row_or_missing(tmp_path_factory, steps: list[tuple]) -> None:
    """A model of a server: what it counted between the first and last answer is read, unless a reset hid some of it."""
    lines, total, since, answers, wanted, hidden = [], [0, 0], [0, 0], 0, 0, False
    for second, step in enumerate(steps, 1):
        if step[0] == "ask":
            total = [total[0] + step[1], total[1] + step[2]]
            lines.append(poll(second, redis(get=[0, total[0], total[0] + total[1]])))
            if answers:
                wanted += sum(total) - sum(since)
            since, answers = list(total), answers + 1
        elif step[0] == "reset":
            hidden = hidden or sum(total) > 0 and answers > 0
            total, since = [0, 0], [0, 0]
        else:
            lines.append(failed(second) if step[0] == "fail" else missed(second, 2))
    path = kept(tmp_path_factory.mktemp("s"), *lines)
    if answers < 2:
        return
    found, account = taken(path)
    counted = sum(row[-1] for row in found)
    assert counted == wanted or (hidden and counted < wanted)
    if not hidden:
        assert not [lost for lost in account.missing if lost.caveat.code == "counter-reset"]
    for before, after in pairwise(found):
        assert before[3] <= after[2]


def test_failed_and_missed_polls_widen_an_interval_and_are_told(tmp_path: Path) -> None:
    path = kept(
        tmp_path,
        failed(1),
        poll(2, redis(get=[1, 2, 3])),
        failed(3),
        missed(5, 2),
        poll(6, redis(get=[5, 6, 9])),
        poll(7, redis(get=[5, 6, 9])),
    )
    found, account = taken(path)
    assert [row[2:] for row in found] == [(2, 6, 6), (6, 7, 0)]
    assert not account.missing
    [caveat] = account.caveats
    assert caveat.code == "wide-polls"
    assert (
        caveat.sentence
        == "3 polls without an answer (exit status 7): the next answer holds their counts, in an interval of up to 4 s"
    )


def test_what_was_counted_after_the_last_answer_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kept(tmp_path, poll(1, redis(get=[1, 2, 3])), poll(2, redis(get=[1, 2, 4])), failed(3), failed(4))
    _, account = taken(path)
    [lost] = account.missing
    assert (lost.from_ns, lost.to_ns, lost.count) == ((BASE + 2) * S, (BASE + 4) * S, None)
    assert (lost.labels["host"], lost.labels["run"]) == ("h1", "r") and "op" not in lost.labels
    assert tailboard(["percentiles", str(path), "--format", "csv"]) == 0
    told = capsys.readouterr()
    assert "2 polls in a row without an answer (exit status 7)" in told.err


INTERVALS = "histogram: text\nbin: '^(?P<us>\\d+) us: (?P<n>\\d+)$'\nupper: us\ncount: n\nunit: us\n"


def test_described_text_in_answers_and_polls_that_are_missing_between_intervals(tmp_path: Path) -> None:
    """The tool prints what came since it was last asked: of polls that were not made nothing is known."""
    (tmp_path / "x.yml").write_text(INTERVALS)
    said = [f"some words\n10 us: {n}\n20 us: {2 * n}\n" for n in (1, 2, 3, 4)]
    path = kept(tmp_path, poll(1, said[0]), poll(2, said[1]), failed(3), failed(4), poll(5, said[2]), poll(6, said[3]))
    found, account = taken(path, description=description_of(str(tmp_path / "x.yml")))
    assert [row[:1] + row[2:] for row in found if row[3] in (2, 6)] == [("h1", 1, 2, 6), ("h1", 5, 6, 12)]
    [lost] = account.missing
    assert (lost.caveat.code, lost.from_ns, lost.to_ns) == ("lost-polls", (BASE + 2) * S, (BASE + 5) * S)
    assert "2 polls in a row" in lost.caveat.sentence


@pytest.mark.parametrize("shape", ["json", "ndjson", "csv"])
def test_described_documents_and_tables_in_answers(tmp_path: Path, shape: str) -> None:
    common = "edge: '(]'\nunit: ms\nover_time: total\n"
    text = {
        "json": "histogram: json\neach: latency.{op}\nbins: map\n",
        "ndjson": "histogram: ndjson\neach: said.latency.{op}\nbins: map\ntime: {at: sampled_at, unit: s}\n",
        "csv": "histogram: csv\nupper: le\ncount: n\nlabels: {op: op}\n",
    }[shape]
    (tmp_path / "x.yml").write_text(text + common)
    said = [
        {"latency": {"get": {"1": n, "2": 2 * n}}} if shape != "csv" else f"op,le,n\nget,1,{n}\nget,2,{2 * n}\n"
        for n in (1, 5, 7)
    ]
    path = kept(tmp_path, *(poll(at, body) for at, body in enumerate(said, 1)))
    found, account = taken(path, description=description_of(str(tmp_path / "x.yml")))
    assert found == [("h1", "get", 1, 2, 12), ("h1", "get", 2, 3, 6)] and not account.rejected


@pytest.mark.parametrize("over_time", ["total", "interval"])
def test_files_put_together_in_any_order_say_the_same(tmp_path: Path, over_time: str) -> None:
    """As after `cat s.ndjson s.ndjson.1`, which puts the newest first."""
    (tmp_path / "x.yml").write_text(INTERVALS + f"over_time: {over_time}\n")
    said = [f"10 us: {n}\n" + (f"20 us: {2 * n}\n" if n > 2 else "") for n in range(1, 7)]
    lines = [poll(1, said[0]), poll(2, said[1]), poll(3, said[2]), failed(4), poll(5, said[3]), missed(6, 2), poll(7, said[4])]
    answers = []
    before, begin = poll(3, said[2], record="before"), poll(0, None, record="begin")
    for order in (lines, [before, *lines[4:], begin, *lines[:4]], [*lines[4:], begin, *lines[:4]]):
        found, account = taken(kept(tmp_path, *order), description=description_of(str(tmp_path / "x.yml")))
        answers.append((found, sorted(map(str, account.missing)), account.caveats))
    assert answers[0] == answers[1] == answers[2] and (answers[0][1] or answers[0][2])


def test_an_answer_that_no_reader_knows_is_a_poll_without_an_answer(tmp_path: Path) -> None:
    """Redis says so, with exit status 0, while it loads its data."""
    loading = "LOADING Redis is loading the dataset in memory\n"
    path = kept(tmp_path, poll(1, redis(get=[1, 2, 3])), poll(2, redis(get=[1, 2, 5])), poll(3, loading), poll(4, loading))
    found, account = taken(path)
    assert [row[2:] for row in found] == [(1, 2, 2)] and account.rows_rejected == 2
    [lost] = account.missing
    assert (lost.from_ns, lost.to_ns) == ((BASE + 2) * S, (BASE + 4) * S)


def test_a_described_file_of_others_may_begin_with_sampled_at(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(
        "histogram: ndjson\neach: lat.{op}\nbins: map\nupper: le\nunit: us\ntime: {at: sampled_at, unit: s}\nover_time: total\n"
    )
    lines = (json.dumps({"sampled_at": BASE + at, "lat": {"get": {"1": at}}}, separators=(",", ":")) for at in (1, 2, 3))
    (tmp_path / "f.ndjson").write_text("\n".join(lines) + "\n")
    found, _ = taken(tmp_path / "f.ndjson", description=description_of(str(tmp_path / "x.yml")))
    assert found == [("", "get", 1, 2, 1), ("", "get", 2, 3, 1)]


@pytest.mark.parametrize("falls", [True, False])
def test_a_clock_that_was_set_back_in_a_described_file(tmp_path: Path, falls: bool) -> None:
    """Counts that rise with the lines tell of it; lines in any order, whose counts rise with their times, count all."""
    (tmp_path / "x.yml").write_text(
        "histogram: ndjson\neach: lat.{op}\nbins: map\nupper: le\nunit: us\ntime: {at: t, unit: s}\nover_time: total\n"
    )
    counts = (100, 110, 120, 130, 140, 150) if falls else (105, 115, 125, 100, 110, 120)
    times = (10, 11, 12, 9.5, 10.5, 11.5)
    lines = (json.dumps({"t": BASE + at, "lat": {"get": {"1": count}}}) for at, count in zip(times, counts))
    (tmp_path / "f.ndjson").write_text("\n".join(lines) + "\n")
    found, account = taken(tmp_path / "f.ndjson", description=description_of(str(tmp_path / "x.yml")))
    assert sum(row[-1] for row in found) == (20 if falls else 25) and not account.missing
    assert account.rows_rejected == (3 if falls else 0)


def test_the_answer_before_a_file_is_no_interval_of_it(tmp_path: Path) -> None:
    """What a tool counts between two questions was read in the file before."""
    (tmp_path / "x.yml").write_text(INTERVALS)
    lines = [poll(1, "10 us: 7\n", record="before"), poll(2, "10 us: 5\n"), poll(3, "10 us: 4\n")]
    found, account = taken(kept(tmp_path, *lines), description=description_of(str(tmp_path / "x.yml")))
    assert [row[-1] for row in found] == [5, 4] and not account.missing and not account.rejected


def test_a_clock_that_was_set_back_counts_nothing_twice(tmp_path: Path) -> None:
    """By their stamps the counts would fall time and again, and be taken as those since a reset: 1,020 in place of 60."""
    counts = (100, 110, 120, 130, 140, 150, 160)
    lines = [poll(at, redis(get=[0, 0, count])) for at, count in zip((10, 11, 12, 9.5, 10.5, 11.5, 12.5), counts)]
    found, account = taken(kept(tmp_path, *lines))
    assert [row[2:] for row in found] == [(10, 11, 10), (11, 12, 10), (12, 12.5, 40)]
    assert account.rejected == {"the clock was set back: its time is before that of the one before": 3} and not account.missing
    assert "3 polls without an answer (the clock was set back" in account.caveats[0].sentence
    found, account = taken(kept(tmp_path, *lines[:5]))
    assert sum(row[-1] for row in found) == 20 and [lost.caveat.code for lost in account.missing] == ["lost-polls"]


def test_several_commands_and_hosts_in_one_file(tmp_path: Path) -> None:
    lines = [poll(at, redis(get=[0, 0, at * n]), host=host) for at in (1, 2, 3) for n, host in ((1, "h1"), (10, "h2"))]
    found, account = taken(kept(tmp_path, *lines, failed(4, host="h2")))
    assert [(row[0], row[-1]) for row in found] == [("h1", 1), ("h2", 10), ("h1", 1), ("h2", 10)]
    assert [lost.labels["host"] for lost in account.missing] == ["h2"]


def test_what_no_reader_knows_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for said, sentence in (("load average: 3\n", "describe it"), ({"a": 1}, "describe it"), (None, "every poll failed")):
        with pytest.raises(TailboardError, match=sentence):
            Files([kept(tmp_path, poll(1, said), failed(2))], ReadOptions(run="r"), jobs=1).answer(Question())


def test_mutated_files_never_end_in_a_traceback(tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("f")
    chance = random.Random(4)
    lines = [poll(at, redis(get=[at, at + chance.randrange(9), 99 * at])) for at in range(6)]
    lines += [poll(at, exposition((at, at, at)), command="curl") for at in range(6)] + [failed(7), missed(8, 3)]
    content = kept(folder, *lines).read_bytes()

    parts = st.sampled_from([b"9", b"-1", b'"', b"{", b"]", b"\n", b"1e999", b"null"])
    check_damaged(folder / "m.ndjson", content, parts, samples_of, place=6000, examples=figure(10, 50, 1500))
