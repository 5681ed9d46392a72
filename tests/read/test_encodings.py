"""Text as other systems write it: behind a byte order mark, in UTF-16, with CR LF. What is read is what the plain file holds.

PowerShell writes UTF-16 behind `>`, `Out-File -Encoding utf8` a mark, HdrHistogram for .NET its logs in UTF-16.
"""

from __future__ import annotations

import codecs
import functools
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.core.errors import TailboardError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from ingest.read.text import blocks, head
from ingest.view.text import csv_lines
from tests.live.feeding import answers as answers_of
from tests.live.feeding import batch, watched

DATA = Path(__file__).parents[1] / "data"
WANTED = Wanted(parse_percentiles("50,99"))
SAMPLES = {
    "fio/randrw": {},
    "fio/plain-json": {},
    "fio/means-100": {},
    "hdr/2.2.2-3-digits.hlog": {"recorded_unit_ns": 1000},
    "histograms/ceph_perf_histogram_synthetic.ndjson": {},
    "histograms/otlp_cumulative.jsonl": {},
    "histograms/pgbench15_plain.log": {},
    "histograms/prom242_native_range_vector.json": {},
    "histograms/prom242_tsdb_dump_classic.txt": {},
    "histograms/pgbench15_aggregate.log": {},
    "histograms/wrk41_latency.txt": {},
}


def windows(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "mark": lambda data: codecs.BOM_UTF8 + data,
    "crlf": windows,
    "powershell": lambda data: codecs.BOM_UTF16_LE + windows(data).decode().encode("utf-16-le"),
    "big-endian": lambda data: codecs.BOM_UTF16_BE + data.decode().encode("utf-16-be"),
    "mark.gz": lambda data: gzip.compress(codecs.BOM_UTF8 + data),
    "powershell.xz": lambda data: lzma.compress(codecs.BOM_UTF16_LE + windows(data).decode().encode("utf-16-le")),
    "powershell.zst": lambda data: _zstd(codecs.BOM_UTF16_LE + windows(data).decode().encode("utf-16-le")),
    "plain.gz": gzip.compress,
}


def _zstd(data: bytes) -> bytes:
    import pyarrow as pa

    compressed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return compressed


def changed(sample: Path, target: Path, change: str) -> Path:
    """Write a sample, or all files of one, as they are after a change; the files keep their times."""
    ending = Path(change).suffix
    files = sorted(path for path in sample.iterdir() if path.is_file()) if sample.is_dir() else [sample]
    place = target / sample.name
    for file in files:
        copy = (place / file.name if sample.is_dir() else place).with_name(file.name + ending)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(CHANGES[change](file.read_bytes()))
        os.utime(copy, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    return place if sample.is_dir() else copy


def told(path: Path, **words: int) -> list[str]:
    """Return the rows of an answer, and how many samples are missing; where nothing can be read, why."""
    try:
        files = Files([path], ReadOptions(run="r", **words), jobs=1)
    except TailboardError as error:
        return [str(error).partition(": ")[2]]
    answer = files.answer(Question(step="all"))
    return [*list(csv_lines(percentiles(answer, WANTED)))[1:], str(len(files.found.missing))]


@functools.cache
def told_of(sample: str) -> list[str]:
    """Return what is told of a sample as it was recorded."""
    return told(DATA / sample, **SAMPLES[sample])


@pytest.mark.cases(53)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sample", list(SAMPLES))
def test_what_is_read_is_what_the_plain_file_holds(sample: str, change: str, tmp_path: Path) -> None:
    assert told(changed(DATA / sample, tmp_path, change), **SAMPLES[sample]) == told_of(sample)


def test_an_empty_log_that_was_compressed_or_marked_is_empty(tmp_path: Path) -> None:
    """fio leaves a log of no line where it measured nothing of a kind: nothing is missing."""
    for change in ("plain.gz", "mark", "powershell"):
        (folder := tmp_path / change).mkdir()
        found = discover([changed(DATA / "fio" / "randrw", folder, change)], ReadOptions())
        [empty] = [entry for entry in found.skipped if entry.path.name.startswith("a_slat")]
        assert empty.action == "skipped" and not found.missing, change


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
def test_text_in_utf_16_comes_whole_however_it_is_cut(size: int, tmp_path: Path) -> None:
    text = "".join(f"{number}, µs and 𝄞\n" for number in range(20_000))
    (tmp_path / "x.txt").write_bytes(text.encode("utf-16"))
    assert b"".join(map(bytes, blocks(tmp_path / "x.txt"))).decode() == text
    assert head(tmp_path / "x.txt", size) == text.encode()[:size]


def test_what_is_no_utf_16_behind_its_mark_is_told_and_no_traceback(tmp_path: Path) -> None:
    for number, data in enumerate(
        (b"\xff\xfe", b"\xff\xfe1", b"\xff\xfe\x00\xd8\x00\xd8\n\x00", b"\xfe\xff" + bytes(range(256)))
    ):
        path = tmp_path / f"{number}_clat_hist.1.log"
        path.write_bytes(data)
        with pytest.raises(TailboardError):
            Files([path], ReadOptions(), jobs=1).answer(Question())


@pytest.mark.parametrize("change", ["mark", "powershell"])
def test_a_watch_reads_them_once_they_are_whole(change: str, tmp_path: Path) -> None:
    folder, url, reading = tmp_path / "logs", f"sqlite:{tmp_path / 'watched.db'}", {"recorded_unit_ns": 1000}
    folder.mkdir()
    path = changed(DATA / "hdr" / "2.2.2-3-digits.hlog", folder, change)
    watched(path, [""] * 5, url, seconds=100, reading=reading)
    assert answers_of(url) == answers_of(batch(folder, tmp_path / "batch.db", reading=reading))
