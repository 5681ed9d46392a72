"""Averaged fio logs and plain fio JSON, held against plain loops over their lines and against what fio itself counted."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.errors import InputError
from ingest.core.intervals import NO_SUM
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.means import OWN
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import read
from ingest.read.fio.averaged_log import fitted, segments
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

DATA = Path(__file__).parent.parent / "data"
FIO = DATA / "fio"
CBT = DATA / "cbt" / "averaged" / "results" / "00000000" / "id-cc7c4612"
MS = 1_000_000
SECOND = 1000 * MS
OPS = ("read", "write", "trim")
NAMES = {"clat": "completion", "lat": "total", "slat": "submission"}


def fio_json(path: Path) -> Any:
    text = path.read_text()
    return json.loads(text[text.index("{") :])


def lines_of(path: Path) -> list[list[int]]:
    return [[int(cell, 0) for cell in line.split(",")] for line in path.read_text().splitlines()]


def sources_of(*paths: Path, **options: Any) -> dict[str, Any]:
    found = discover(paths, ReadOptions(**options))
    return {source.path.name: source for source in found.sources}


def rows_of(source: Any) -> dict[str, list[tuple[int, int, int, int]]]:
    """Return (end ns, count, sum, maximum) of all rows by op, in their order."""
    found = defaultdict(list)
    for part in read(source):
        for row in range(len(part)):
            exact = part.exact
            values = (int(part.end_ns[row]), int(part.samples[row]), int(exact.sum_ns[row]), int(exact.max_ns[row]))
            found[part.table[part.series[row]].op].append(values)
    return found


def table_of(question: Question, *paths: Path, wanted: str = "50", **options: Any) -> dict[str, list[Any]]:
    table = percentiles(Files(paths, ReadOptions(**options)).answer(question), Wanted(parse_percentiles(wanted)))
    return {name: column.tolist() for name, column in table.columns.items()}


RECORDED = [
    ("means-100", "a_clat.1.log", 0),
    ("means-100", "a_lat.2.log", 1),
    ("means-500", "a_clat.1.log", 0),
    ("means-sparse", "a_clat.1.log", 0),
    ("means-epoch", "a_clat.1.log", 0),
    ("means-last-job", "a_clat.2.log", 1),
]


@pytest.mark.parametrize(("folder", "log", "job"), RECORDED)
def test_a18_means_are_those_of_the_log_and_counts_add_up_to_fios_own(folder: str, log: str, job: int) -> None:
    source = sources_of(FIO / folder / log)[log]
    kind = log.split("_")[1].split(".", maxsplit=1)[0]
    assert source.context.series.kind == f"{NAMES[kind]}.mean"
    found = rows_of(source)
    summary = fio_json(FIO / folder / "a.json")["jobs"][job]
    zero = 0 if folder == "means-epoch" else source.context.zero.epoch_ns
    for code, op in enumerate(OPS):
        lines = [cells for cells in lines_of(FIO / folder / log) if cells[2] == code]
        assert [end for end, *_ in found[op]] == [zero + cells[0] * MS for cells in lines]
        assert [total for _, _, total, _ in found[op]] == [
            count * cells[1] for (_, count, *_), cells in zip(found[op], lines, strict=True)
        ]
        assert all(count >= 1 for _, count, *_ in found[op])
        if lines:
            assert sum(count for _, count, *_ in found[op]) == summary[op][f"{kind}_ns"]["N"]


def test_a18_counts_follow_the_log_of_iops() -> None:
    """100 reads and 50 writes in 500 ms, 60 and 30 in the 300 ms that the log of IOPS does not hold."""
    found = rows_of(sources_of(FIO / "means-500" / "a_clat.1.log")["a_clat.1.log"])
    for op, expected in (("read", 100), ("write", 50)):
        counts = [count for _, count, *_ in found[op]]
        assert counts == pytest.approx([expected] * 8 + [expected * 0.6], abs=5)


def test_a18_windows_agree_with_the_histogram_of_the_same_run() -> None:
    """Running counts and running sums of latencies are those of the histogram rows, but for edges some ms apart and its bins."""
    truth = rows_of_histogram(sources_of(FIO / "means-500")["h_clat_hist.1.log"])
    found = rows_of(sources_of(FIO / "means-500" / "a_clat.1.log")["a_clat.1.log"])
    for op, a_window in (("read", 100), ("write", 50)):
        counts = np.cumsum([count for _, count, *_ in found[op]])[:8]
        sums = np.cumsum([total for _, _, total, _ in found[op]])[:8]
        assert counts.tolist() == pytest.approx(np.cumsum([one[0] for one in truth[op]]).tolist(), abs=a_window // 5)
        assert sums.tolist() == pytest.approx(np.cumsum([one[1] for one in truth[op]]).tolist(), rel=0.15)


def rows_of_histogram(source: Any) -> dict[str, list[tuple[int, float]]]:
    """Return (count, sum of reported values) of all rows by op."""
    found = defaultdict(list)
    for part in read(source):
        sums = np.add.reduceat(part.counts * part.layout.values[part.bins], part.indptr[:-1])
        for row in range(len(part)):
            found[part.table[part.series[row]].op].append((int(part.samples[row]), float(sums[row])))
    return found


def test_a18_whole_run_is_fios_own() -> None:
    jobs = fio_json(FIO / "means-100" / "a.json")["jobs"]
    table = table_of(Question(step="all", by=("job", "op"), where={"kind": "completion.mean"}), FIO / "means-100")
    expected = [job[op]["clat_ns"] for job in jobs for op in ("read", "write")]
    assert table["count"] == [one["N"] for one in expected]
    assert table["mean"] == pytest.approx([one["mean"] for one in expected], abs=1e-3)
    assert table["min"] == [one["min"] for one in expected]
    assert table["max"] == [one["max"] for one in expected]
    assert all(np.isnan(table["p50"]))
    together = table_of(Question(step="all", where={"kind": "completion.mean"}), FIO / "means-100")
    assert together["count"] == [sum(one["N"] for one in expected)]
    assert together["mean"] == pytest.approx([sum(one["N"] * one["mean"] for one in expected) / together["count"][0]], abs=1e-3)


def test_a18_windows_add_up_near_fios_own_mean() -> None:
    where = {"kind": "completion.mean", "op": "read"}
    windows = table_of(Question(step=100 * MS, where=where), FIO / "means-100")
    whole = table_of(Question(step="all", where=where), FIO / "means-100")
    weighted = sum(count * mean for count, mean in zip(windows["count"], windows["mean"], strict=True))
    assert sum(windows["count"]) == whole["count"][0]
    assert weighted / sum(windows["count"]) == pytest.approx(whole["mean"][0], rel=0.1)


def test_a18_total_is_the_default_kind_and_the_answer_says_what_it_is() -> None:
    answer = Files([FIO / "means-100"]).answer(Question(step="all"))
    assert answer.kind == "total.mean"
    assert answer.warnings[0].startswith("means over 100ms, without a histogram: no percentiles can be made of them")
    assert "tailboard record fio" in answer.warnings[0]


def test_a18_fios_own_percentiles_are_told_by_job() -> None:
    files = Files([FIO / "means-100"])
    facts = [value for name, value in files.facts(files.answer(Question())) if name == OWN]
    printed = fio_json(FIO / "means-100" / "a.json")["jobs"][1]["write"]["clat_ns"]
    [mine] = [fact for fact in facts if fact.startswith("job 2 a write completion: ")]
    assert f"N {printed['N']:,}, " in mine
    assert f"p99 {printed['percentile']['99.000000'] / 1e6:.4g} ms" in mine


def test_a18_grouped_jobs_count_what_their_sum_counts() -> None:
    [job] = fio_json(FIO / "means-grouped" / "a.json")["jobs"]
    for op in ("read", "write"):
        where = {"kind": "completion.mean", "op": op}
        assert sum(table_of(Question(step=500 * MS, where=where), FIO / "means-grouped")["count"]) == job[op]["clat_ns"]["N"]
        whole = table_of(Question(step="all", where=where), FIO / "means-grouped")
        assert whole["mean"] == pytest.approx([job[op]["clat_ns"]["mean"]], abs=1e-3)
        shares = table_of(Question(step="all", by=("job",), where=where), FIO / "means-grouped")["count"]
        assert shares == pytest.approx([job[op]["clat_ns"]["N"] / 3] * 3, rel=0.05)


def test_a18_jobs_of_one_log_are_added_up() -> None:
    jobs = fio_json(FIO / "means-shared" / "a.json")["jobs"]
    for op in ("read", "write"):
        table = table_of(Question(step="all", where={"kind": "completion.mean", "op": op}), FIO / "means-shared")
        assert table["count"] == [sum(job[op]["clat_ns"]["N"] for job in jobs)]
        assert table["end_ns"][0] - table["start_ns"][0] < 2500 * MS


def test_a18_jobs_without_a_log_are_one_mean_each() -> None:
    """CBT's procs_per_volume: 2 gives logs to the last job alone; fio's JSON has both."""
    jobs = fio_json(FIO / "means-last-job" / "a.json")["jobs"]
    table = table_of(Question(step="all", by=("job", "op"), where={"kind": "completion.mean"}), FIO / "means-last-job")
    assert table["job"] == ["1", "1", "2", "2"]
    expected = [job[op]["clat_ns"] for job in jobs for op in ("read", "write")]
    assert table["count"] == [one["N"] for one in expected]
    assert table["mean"] == pytest.approx([one["mean"] for one in expected], abs=1e-3)


def test_a18_plain_json_alone_is_one_mean_a_job() -> None:
    jobs = fio_json(FIO / "plain-json" / "a.json")["jobs"]
    files = Files([FIO / "plain-json" / "a.json"])
    table = percentiles(files.answer(Question(step="all", by=("job", "op", "kind"))), Wanted(parse_percentiles("99,100")))
    kinds = [key for key in zip(*(table.columns[name].tolist() for name in ("job", "op", "kind")), strict=True)]
    expected = {
        (str(number + 1), op, f"{kind}.mean"): job[op][f"{name}_ns"]
        for number, job in enumerate(jobs)
        for op in ("read", "write")
        for name, kind in NAMES.items()
        if job[op][f"{name}_ns"]["N"]
    }
    assert kinds == sorted(expected)
    assert table.columns["count"].tolist() == [expected[key]["N"] for key in kinds]
    assert table.columns["p100"].tolist() == [expected[key]["max"] for key in kinds]
    assert np.isnan(table.columns["p99"]).all()
    assert table.columns["exact"].all()
    assert "means of whole runs" in files.answer(Question()).warnings[0]


def test_a18_without_a_log_of_iops_the_log_of_bandwidth_tells_shares(tmp_path: Path) -> None:
    for name in ("a.json", "a_clat.1.log", "a_bw.1.log"):
        shutil.copy(FIO / "means-500" / name, tmp_path)
    source = sources_of(tmp_path)["a_clat.1.log"]
    found = rows_of(source)
    assert sum(count for _, count, *_ in found["read"]) == fio_json(tmp_path / "a.json")["jobs"][0]["read"]["clat_ns"]["N"]
    assert source.context.account.notes == [
        "means: no log of IOPS beside it fits: fio's own count is spread as its bandwidth was"
    ]


def test_a18_without_any_other_log_fios_count_is_spread_evenly(tmp_path: Path) -> None:
    for name in ("a.json", "a_clat.1.log"):
        shutil.copy(FIO / "means-500" / name, tmp_path)
    source = sources_of(tmp_path)["a_clat.1.log"]
    found = rows_of(source)
    assert sum(count for _, count, *_ in found["read"]) == fio_json(tmp_path / "a.json")["jobs"][0]["read"]["clat_ns"]["N"]
    assert any("spread evenly over time" in note for note in source.context.account.notes)


def test_a18_without_json_the_log_of_iops_counts(tmp_path: Path) -> None:
    for name in ("a_clat.1.log", "a_iops.1.log"):
        shutil.copy(FIO / "means-500" / name, tmp_path)
    source = sources_of(tmp_path, fio_version=(3, 33))["a_clat.1.log"]
    counted = fio_json(FIO / "means-500" / "a.json")["jobs"][0]["read"]["clat_ns"]["N"]
    assert sum(count for _, count, *_ in rows_of(source)["read"]) == pytest.approx(counted, abs=3)
    assert any("which rounds" in note for note in source.context.account.notes)


def test_a18_means_that_nothing_counts_are_refused(tmp_path: Path) -> None:
    shutil.copy(FIO / "means-500" / "a_clat.1.log", tmp_path)
    with pytest.raises(InputError, match="how many I/Os each mean stands for cannot be determined"):
        list(read(sources_of(tmp_path, fio_version=(3, 33))["a_clat.1.log"]))


def edited(tmp_path: Path, edit: Any) -> Path:
    """Return a folder with an averaged log whose lines were edited, its log of IOPS and its JSON."""
    for name in ("a.json", "a_clat.1.log", "a_iops.1.log"):
        shutil.copy(FIO / "means-500" / name, tmp_path)
    log = tmp_path / "a_clat.1.log"
    log.write_text("".join(edit(log.read_text().splitlines(keepends=True))))
    return tmp_path


def test_a18_maximum_of_a_window_is_taken_where_it_is_logged(tmp_path: Path) -> None:
    def with_maximum(lines: list[str]) -> list[str]:
        return [line.replace(", ", f", {1000 + place}, ", 1) for place, line in enumerate(lines)]

    def swapped(lines: list[str]) -> list[str]:  # time, mean, maximum, direction
        cells = [line.split(", ") for line in with_maximum(lines)]
        return [", ".join([one[0], one[2], one[1], *one[3:]]) for one in cells]

    folder = edited(tmp_path, swapped)
    text = (folder / "a.json").read_text()
    (folder / "a.json").write_text(text.replace('"log_avg_msec"', '"log_window_value" : "both", "log_avg_msec"', 1))
    found = rows_of(sources_of(folder)["a_clat.1.log"])
    lines = lines_of(FIO / "means-500" / "a_clat.1.log")
    assert [most for *_, most in found["read"]] == [1000 + place for place, cells in enumerate(lines) if cells[2] == 0]
    table = table_of(Question(step=SECOND, by=("op",)), folder, wanted="100")
    assert not np.isnan(table["max"]).any()


def maxima(folder: Path) -> Path:
    """Return a folder made with the recording of log_window_value=max by fio 3.42, and its JSON without the bins of json+."""
    folder.mkdir()
    shutil.copy(FIO / "fio-3.42" / "winmax" / "x_clat.1.log", folder)
    told = fio_json(FIO / "fio-3.42" / "winmax" / "out.json")
    for op in OPS:
        for kind in ("slat_ns", "clat_ns", "lat_ns"):
            told["jobs"][0][op].get(kind, {}).pop("bins", None)
    (folder / "out.json").write_text(json.dumps(told, indent=2))
    return folder


def test_a18_log_of_maxima_has_maxima_and_no_means(tmp_path: Path) -> None:
    """Counts as ever; the mean of a window is unknown, that of the whole run is fio's own."""
    folder = edited(tmp_path, lambda lines: lines)
    text = (folder / "a.json").read_text()
    (folder / "a.json").write_text(text.replace('"log_avg_msec"', '"log_window_value" : "max", "log_avg_msec"', 1))
    source = sources_of(folder)["a_clat.1.log"]
    found = rows_of(source)
    job = fio_json(folder / "a.json")["jobs"][0]
    for code, op in enumerate(("read", "write")):
        lines = [cells for cells in lines_of(folder / "a_clat.1.log") if cells[2] == code]
        assert [most for *_, most in found[op]] == [cells[1] for cells in lines]
        assert {total for _, _, total, _ in found[op]} == {NO_SUM}
        assert sum(count for _, count, *_ in found[op]) == job[op]["clat_ns"]["N"]
    assert any("each row is the largest latency of a window, and no mean" in note for note in source.context.account.notes)
    where = {"kind": "completion.mean"}
    windows = table_of(Question(step=SECOND, by=("op",), where=where), folder, wanted="100")
    assert np.isnan(windows["mean"]).all() and not np.isnan(windows["max"]).any()
    assert windows["p100"] == windows["max"]
    whole = table_of(Question(step="all", by=("op",), where=where), folder)
    assert whole["mean"] == pytest.approx([job[op]["clat_ns"]["mean"] for op in ("read", "write")], abs=1e-3)


def test_a18_damaged_lines_are_counted_and_the_others_make_up_for_nothing(tmp_path: Path) -> None:
    folder = edited(tmp_path, lambda lines: [*lines[:4], "500, 12\n", "5, 77, 9, 0, 0\n", *lines[4:], "4000, 55"])
    source = sources_of(folder)["a_clat.1.log"]
    found = rows_of(source)
    account = source.context.account
    assert dict(account.rejected) == {
        "not a row of plain integers": 1,
        "direction is not 0, 1 or 2": 1,
        "last line breaks off without a newline": 1,
    }
    assert account.rejected_lines == [5, 6, len(lines_of(FIO / "means-500" / "a_clat.1.log")) + 3]
    assert sum(count for _, count, *_ in found["read"]) == fio_json(folder / "a.json")["jobs"][0]["read"]["clat_ns"]["N"]


def test_a18_summary_that_counts_otherwise_is_told(tmp_path: Path) -> None:
    folder = edited(tmp_path, lambda lines: lines)
    text = (folder / "a_iops.1.log").read_text()
    (folder / "a_iops.1.log").write_text(re.sub(r", (\d\d+), ", lambda found: f", {2 * int(found[1])}, ", text))
    source = sources_of(folder)["a_clat.1.log"]
    found = rows_of(source)
    assert any("its summary" in note and "were scaled" in note for note in source.context.account.notes)
    assert sum(count for _, count, *_ in found["read"]) == fio_json(folder / "a.json")["jobs"][0]["read"]["clat_ns"]["N"]


def test_a18_log_of_iops_that_breaks_off_is_told(tmp_path: Path) -> None:
    folder = edited(tmp_path, lambda lines: lines)
    text = (folder / "a_iops.1.log").read_text().splitlines(keepends=True)
    (folder / "a_iops.1.log").write_text("".join(text[: len(text) // 2]))
    source = sources_of(folder)["a_clat.1.log"]
    rows_of(source)
    assert any("the log of IOPS ends 2,291 ms before that of latencies" in note for note in source.context.account.notes)


def test_a18_compressed_logs_find_each_other(tmp_path: Path) -> None:
    import gzip

    folder = edited(tmp_path, lambda lines: lines)
    plain = rows_of(sources_of(folder)["a_clat.1.log"])
    for name in ("a_clat.1.log", "a_iops.1.log"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    assert rows_of(sources_of(folder)["a_clat.1.log.gz"]) == plain


def test_a18_histogram_log_of_the_same_job_is_taken_alone() -> None:
    found = discover([FIO / "averaged"], ReadOptions())
    assert {source.format for source in found.sources} == {"fio-hist"}
    reasons = {entry.path.name: entry.reason for entry in found.skipped if entry.action == "shadowed"}
    assert reasons["a_clat.1.log"] == "means over time: the histogram log of the same job holds more"


def test_a18_json_with_bins_is_a_source_beside_the_means(tmp_path: Path) -> None:
    for name in ("a.json", "a_clat.1.log"):
        shutil.copy(FIO / "averaged" / name, tmp_path)
    answer = Files([tmp_path]).answer(Question(step="all"))
    assert answer.kind == "completion"
    assert not any("means" in text for text in answer.warnings)
    both = Files([tmp_path]).answer(Question(step="all", by=("kind", "op")))
    counts = percentiles(both, Wanted(parse_percentiles("50")))
    assert counts.columns["kind"].tolist() == ["completion", "completion", "completion.mean", "completion.mean"]
    assert counts.columns["count"].tolist()[:2] == counts.columns["count"].tolist()[2:]
    assert np.isnan(counts.columns["p50"].astype(float)).tolist() == [False, False, True, True]


def test_a18_hosts_with_means_alone_are_named_beside_the_others(tmp_path: Path) -> None:
    shutil.copytree(FIO / "coarse-3", tmp_path / "clients" / "h1")
    shutil.copytree(FIO / "means-500", tmp_path / "clients" / "h2", ignore=lambda *_: ["h_clat_hist.1.log"])
    answer = Files([tmp_path]).answer(Question(step="all", by=("host",)))
    assert answer.kind == "total"
    assert any(text.startswith("h2: means alone") for text in answer.warnings)


@pytest.mark.parametrize("host", ["client1.lab.test", "client2.lab.test"])
@pytest.mark.parametrize("volume", [0, 1])
def test_a18_cbt_archive_without_histograms_shows_what_fio_counted(host: str, volume: int) -> None:
    [summary] = CBT.glob(f"16k7030.{host}/**/json_output.{volume}")
    job = fio_json(summary)["jobs"][0]
    for op in ("read", "write"):
        where = {"kind": "completion.mean", "op": op}
        whole = table_of(Question(step="all", where=where), summary.parent, host=host)
        windows = table_of(Question(step=100 * MS, where=where), summary.parent, host=host)
        assert whole["count"] == [job[op]["clat_ns"]["N"]] == [sum(windows["count"])]
        assert whole["mean"] == pytest.approx([job[op]["clat_ns"]["mean"]], abs=1e-3)
        weighted = sum(count * mean for count, mean in zip(windows["count"], windows["mean"], strict=True))
        assert weighted / sum(windows["count"]) == pytest.approx(whole["mean"][0], rel=0.1)


def test_a18_counts_are_whole_and_at_least_one() -> None:
    assert fitted(np.array([0.2, 15.0, 14.9]), 31).tolist() == [1, 15, 15]
    assert fitted(np.array([0.0, 0.0, 3.0]), 3).tolist() == [1, 1, 1]
    assert fitted(np.array([1.0, 1.0, 2.0, 2.0]), 2).sum() == 2
    for total in (7, 100, 12_345_678_901):
        assert int(fitted(np.array([0.5, 3, 9, 0.1]), total).sum()) == total


def test_a18_segments_begin_where_time_runs_back() -> None:
    assert segments(np.array([1, 2, 2, 1, 5, 0])) == [slice(0, 3), slice(3, 5), slice(5, 6)]
    assert segments(np.empty(0, np.int64)) == []
