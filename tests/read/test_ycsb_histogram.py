"""YCSB's histograms: the counts by whole ms that it prints, over the run that ended when the file was written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as tailboard
from ingest.core.errors import InputError, TailboardError
from tests.effort import figure
from tests.mutations import CHANGES, mutated, mutations
from tests.read.test_histograms import rows
from tests.read.test_printed_histograms import WRITTEN, written

MS = 1_000_000


def printed(values: dict[str, list[int]], buckets: int = 1000, runtime: str = "80.0") -> str:
    """What OneMeasurementHistogram.java prints of latencies in us, by op: `latency / 1000 >= buckets` is above all."""
    lines = [f"YCSB Client 0.1\nCommand line: -t\n[OVERALL], RunTime(ms), {runtime}\n[OVERALL], Throughput(ops/sec), 12500.0"]
    for op, latencies in values.items():
        counts = Counter(min(latency // 1000, buckets) for latency in latencies)
        lines.append(f"[{op}], Operations, {len(latencies)}\n[{op}], AverageLatency(us), 65.97\n[{op}], MinLatency(us), 42")
        lines.append(f"[{op}], 95thPercentileLatency(ms), 0\n[{op}], Return=0, {len(latencies)}")
        lines += [f"[{op}], {low}, {counts[low]}" for low in range(buckets)]
        lines.append(f"[{op}], >{buckets}, {counts[buckets]}")
    return "\n".join(lines) + "\n"


LATENCIES = st.lists(st.integers(0, 60_000) | st.sampled_from([999, 1000, 39_999, 40_000]), min_size=1, max_size=30)


def kind_of(op: str) -> str:
    return {"Intended-READ": "response", "READ-FAILED": "service.failed"}.get(op, "service")


@settings(max_examples=figure(20, 60, 500), deadline=None)
@given(st.dictionaries(st.sampled_from(["READ", "UPDATE", "Intended-READ", "READ-FAILED"]), LATENCIES, min_size=1))
def test_counts_are_those_of_whole_milliseconds(tmp_path_factory: pytest.TempPathFactory, values: dict[str, list[int]]) -> None:
    path = tmp_path_factory.mktemp("y") / "run.dat"
    found, account = rows(written(path, printed(values, buckets=40)))
    told = {(series.op, series.kind): (start, end, bins) for series, start, end, bins, _ in found}
    assert told == {
        (op.lower().removeprefix("intended-").removesuffix("-failed"), kind_of(op)): (
            WRITTEN - 80 * MS,
            WRITTEN,
            dict(Counter(min((latency // 1000 + 1) * MS - 1, 40 * MS) for latency in latencies)),
        )
        for op, latencies in values.items()
    }
    assert account.rows_rejected == 0 and account.samples == sum(map(len, values.values()))


def test_the_answer_says_its_bound_and_that_the_time_is_that_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "run.dat", printed({"READ": [66] * 300 + [19_500]}))
    assert tailboard(["percentiles", str(path), "--step", "all"]) == 0
    said = capsys.readouterr()
    text = said.out + said.err
    assert "below 1.00ms by up to 1.00ms" in text and "the time of the file is taken" in text and "20.0ms" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("[READ], 0, 2", "[READ], 0, 3"), "do not add up"),
        (lambda text: text[: text.index("[READ], >")], "breaks off"),
        (lambda text: text + text, "several runs"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_reason(tmp_path: Path, change, said: str) -> None:
    path = written(tmp_path / "run.dat", change(printed({"READ": [66, 70, 2000]})))
    with pytest.raises(InputError, match=said):
        rows(path)


def test_a_damaged_op_is_missing_and_the_others_stay(tmp_path: Path) -> None:
    text = printed({"READ": [66, 70], "UPDATE": [1500]})
    found, account = rows(written(tmp_path / "run.dat", text.replace("[READ], 0, 2", "[READ], 0, 5")))
    assert [series.op for series, *_ in found] == ["update"]
    assert [(entry.labels["op"], entry.count) for entry in account.missing] == [("read", None)]


def test_operations_that_failed_are_told(tmp_path: Path) -> None:
    _, account = rows(written(tmp_path / "run.dat", printed({"READ": [66, 70]}).replace("Return=0, 2", "Return=-1, 2")))
    assert account.notes == ["READ: YCSB says of 2 operations that they failed; they may be among these"]


def test_mutated_files_never_end_in_a_traceback(tmp_path_factory: pytest.TempPathFactory) -> None:
    content = printed({"READ": [66, 70, 5000], "UPDATE": [3]}, buckets=8).encode()
    folder = tmp_path_factory.mktemp("f")

    @settings(max_examples=figure(30, 100, 1000), deadline=None)
    @given(mutations(sorted(CHANGES), 400, 20, st.sampled_from([b"9", b"-1", b"]", b"\n", b">", b"1e999"])))
    def held(steps) -> None:
        path = folder / "run.dat"
        path.write_bytes(mutated(content, steps))
        try:
            found, account = rows(path)
            assert account.samples == sum(sum(bins.values()) for *_, bins, _ in found)
        except TailboardError:
            pass

    held()
