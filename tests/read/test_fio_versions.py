"""Which fio wrote a log: what lies beside it tells; and recordings of versions other than 3.33 read as their JSON counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.errors import InputError
from ingest.core.layout import fio_layout
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.fio import histogram_log, latency_log
from ingest.read.fio.names import version_of_text
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import logs, per_io

FIVE = "1000, 5000, 0, 4096, 0\n" * 3
FOUR = "1000, 5000, 0, 4096\n" * 3


def document(folder: Path) -> dict:
    text = (folder / "out.json").read_text()
    return dict(per_io.json.loads(text[text.index("{") :]))


def test_a16_zeros_alone_are_priorities_and_that_is_said(log: Any, taken: Any) -> None:
    read = taken(log(FIVE, "x_clat.1.log"))
    [row] = read.rows
    assert row.exact is not None and row.exact[0] == 5000
    [note] = read.account.notes
    assert note.endswith(latency_log.ZEROS)


@pytest.mark.parametrize("text", [FIVE, FOUR])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a16_a_histogram_log_of_ns_beside_it_tells_the_unit(tmp_path: Path, taken: Any, text: str, ending: str) -> None:
    (tmp_path / "x_lat.1.log").write_text(text)
    rows = logs.text([(1000, 0, {10: 3})], 1856).encode()
    (tmp_path / f"x_clat_hist.1.log{ending}").write_bytes(per_io.gzip.compress(rows) if ending else rows)
    read = taken(tmp_path)
    [row] = read.of("read", kind="total")
    assert row.exact is not None and row.exact[0] == 5000 and read.account.notes == []


def test_a16_a_histogram_log_of_us_does_not(tmp_path: Path) -> None:
    (tmp_path / "x_lat.1.log").write_text(FOUR)
    (tmp_path / "x_clat_hist.1.log").write_text(logs.text([(1000, 0, {10: 3})], 1216))
    refused = [entry.reason for entry in Files([tmp_path]).found.skipped if entry.action == "refused"]
    assert len(refused) == 1 and refused[0].startswith("4 columns: fio up to 2.21 wrote us")


def test_a16_offsets_that_show_later_are_refused(log: Any, taken: Any) -> None:
    path = log("1000, 5000, 0, 4096, 0\n" * 200 + "1000, 5000, 0, 4096, 8192\n", "x_clat.1.log")
    with pytest.raises(InputError, match=r":201: the fifth column is 0 in the first rows and an offset here") as error:
        taken(path)
    assert error.value.reason == latency_log.OFFSETS
    assert sum(taken(path, options=ReadOptions(fio_version=(3, 16))).total("read").values()) == 201


def test_a16_one_row_of_zero_is_still_refused(log: Any) -> None:
    with pytest.raises(InputError, match="the fifth column is 0 in the only row"):
        discover([log("1000, 5000, 0, 4096, 0\n", "x_clat.1.log")], ReadOptions())


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b"j: (g=0): rw=randread, bs=(R) 4096B-4096B\nfio-3.33\nStarting 1 process\n{\n", (3, 33)),
        (b"fio-2.1.11\n", (2, 1, 11)),
        (b"fio-3.42-135-gf5344\r\n", (3, 42)),
        (b"fio-3.7-dirty\nStarting", (3, 7)),
        (b'{\n  "fio version" : "fio-3.33",\n', None),
        (b"write_hist_log=fio-3.33\n", None),
        (b"", None),
    ],
)
def test_a16_the_version_that_normal_output_begins_with(text: bytes, version: tuple[int, ...] | None) -> None:
    assert version_of_text(text) == version


def test_a16_layouts_tell_the_earliest_version() -> None:
    assert histogram_log.since_of_layout(fio_layout(29, 1, 3)) == (2, 99)
    assert histogram_log.since_of_layout(fio_layout(19, 1000)) is None


# Recordings of other versions --------------------------------------------------------------------------------

WHOLE = ["fio-3.42/plain", "fio-3.42/epoch", "fio-3.42/issue", "fio-3.42/prio", "fio-3.42/gr", "fio-3.16/off", "fio-3.16/gr"]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("prefer", ["hist", "raw"])
def test_other_versions_hold_what_their_json_counts(fio: Path, taken: Any, name: str, prefer: str) -> None:
    read = taken(fio / name, options=ReadOptions(prefer=prefer))
    for op in ("read", "write"):
        counted = sum(job[op]["total_ios"] for job in document(fio / name)["jobs"])
        assert sum(read.total(op, kind="completion").values()) == counted
    assert read.account.notes == [] and not read.account.rejected


@pytest.mark.parametrize("name", ["fio-3.42/plain", "fio-3.42/gr", "fio-3.42/epoch"])
def test_other_versions_have_the_last_interval_of_their_raw_logs(fio: Path, taken: Any, name: str) -> None:
    """Bin by bin, the histogram logs and what json+ adds are the I/Os that the raw logs hold."""
    read = taken(fio / name)
    raws = [per_io.samples(file) for file in sorted((fio / name).glob("x_clat.*.log"))]
    for op in ("read", "write"):
        assert read.total(op) == per_io.binned([value for one in raws for _, value in one[op]], 1856, 0)
    assert any(row.series.op == "read" and not row.series.job for row in read.rows) == (name == "fio-3.42/gr")


@pytest.mark.parametrize("name", ["plain", "gr", "stone", "sdelay", "issue", "prio"])
def test_job_start_is_the_time_zero_since_3_36(fio: Path, name: str) -> None:
    starts = [job["job_start"] for job in document(fio / "fio-3.42" / name)["jobs"]]
    for source in Files([fio / "fio-3.42" / name]).found.sources:
        number = 0 if len(starts) == 1 else int(source.context.series.job) - 1
        assert source.context.zero.epoch_ns == starts[number] * 10**6
        assert source.context.zero.origin == "fio JSON job_start"


def test_job_start_is_where_real_stamps_begin(fio: Path) -> None:
    folder = fio / "fio-3.42" / "epoch"
    first = min(stamp for rows in per_io.samples(folder / "x_clat.1.log").values() for stamp, _ in rows)
    assert 0 <= first - document(folder)["jobs"][0]["job_start"] < 100


def test_averages_of_later_versions_are_means_or_maxima_alone(fio: Path) -> None:
    found = Files([fio / "fio-3.42" / "winboth"]).found
    assert {source.context.series.kind for source in found.sources if source.format == "fio-averaged"} >= {"completion.mean"}
    where = {"kind": "completion.mean"}
    told = document(fio / "fio-3.42" / "winmax")["jobs"][0]
    table = percentiles(
        Files([fio / "fio-3.42" / "winmax"]).answer(Question(by=("op",), step=5 * 10**9, where=where)), Wanted(())
    ).columns
    assert np.isnan(table["mean"]).all()
    for op in ("read", "write"):
        assert table["max"][table["op"] == op].max() == told[op]["clat_ns"]["max"]
        assert table["count"][table["op"] == op].sum() == told[op]["clat_ns"]["N"]


def printed(version: str) -> str:
    return f"job: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32\nfio-{version}\nStarting 1 process\n"


def test_a16_text_beside_the_folder_of_logs_tells_the_version(tmp_path: Path, taken: Any) -> None:
    """`fio job.fio --output=randread.out` with logs in randread/: named alone, or with the folder that holds both."""
    for name, version in (("randread", "2.16"), ("write", "3.1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x_clat.log").write_text(FOUR)
        (tmp_path / f"{name}.out").write_text(printed(version))
    for call in ([tmp_path], [tmp_path / "randread", tmp_path / "write"]):
        found = {source.path.parent.name: source.context.version for source in discover(call, ReadOptions()).sources}
        assert found == {"randread": (2, 16), "write": (3, 1)}
    [row] = taken(tmp_path / "randread").rows
    assert row.exact is not None and row.exact[0] == 5_000_000


def test_a16_text_one_folder_up_tells_the_version_where_all_of_it_agrees(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "x_clat.log").write_text(FOUR)
    (tmp_path / "result.out").write_text(printed("2.16"))
    [source] = discover([tmp_path], ReadOptions()).sources
    assert source.context.version == (2, 16)
    (tmp_path / "other.out").write_text(printed("3.1"))
    with pytest.raises(InputError, match="give --fio-version"):
        discover([tmp_path], ReadOptions())


def test_a16_what_keeps_a_log_from_being_read_is_named_before_a_job_file(tmp_path: Path) -> None:
    (tmp_path / "a.fio").write_text("[global]\nrw=read\n[job]\n")
    (tmp_path / "x_clat.log").write_text(FOUR)
    with pytest.raises(InputError, match=r"x_clat\.log:1: 4 columns: .* give --fio-version"):
        discover([tmp_path], ReadOptions())
