"""What a file may cost: JSON of any depth and lines of any length are refused in words, and the files beside them are read."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.cli import run
from ingest.core.errors import InputError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.polls import lines_of
from ingest.read.sources import ReadOptions

DATA = Path(__file__).parents[1] / "data"
KEPT = DATA / "fio" / "coarse-6" / "a_clat_hist.1.log"
OF_JSON = [
    "fio/coarse-5/a.json",
    "fio/plain-json/a.json",
    "fio/status-interval/a.json",
    "histograms/otlp_delta.jsonl",
    "histograms/hdr_snapshot_ticks.ndjson",
    "histograms/ceph_perf_histogram_synthetic.ndjson",
    "histograms/prom242_native_range_vector.json",
    "histograms/redis70_latency_histogram.ndjson",
]
WORDS = {
    "chrome": b'{"traceEvents":[{"ph":"X","name":"read","ts":1,"dur":2,"pid":1,"tid":1}]}',
    "memtier": b'{"run information":{}, "ALL STATS":{"Gets":{"Time-Serie":{}}}}',
    "sampled": b'{"sampled_at":1700000000.0,"record":"otlp","x":1}',
    "bpftrace": b'{"type": "hist", "data": {"@usecs": [{"min": 1, "max": 1, "count": 3}]}}',
    "fio, a line": b'{"fio version":"fio-3.33","jobs":[]}',
}


def beside(folder: Path, name: str, content: bytes) -> Files:
    """Return the files of a folder with a log and this content, after a question."""
    folder.mkdir(exist_ok=True)
    shutil.copy(KEPT, folder / "kept_clat_hist.9.log")
    (folder / name).write_bytes(content)
    files = Files([folder], ReadOptions(run="r"), jobs=1)
    files.answer(Question(step="all"))
    return files


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("name", [*OF_JSON, *WORDS])
def test_r7_json_nested_too_deep_is_refused_and_files_beside_it_are_read(tmp_path: Path, name: str, depth: int) -> None:
    content = WORDS[name] if name in WORDS else (DATA / name).read_bytes()
    for bracket in (b"[", b'{"a":'):
        close = b"]" if bracket == b"[" else b"}"
        at = content.index(b"{") + 1
        deep = content[:at] + b'"deep":' + bracket * depth + b"1" + close * depth + b"," + content[at:]
        files = beside(tmp_path / "f", "deep.json", deep)
        [kept] = [source for source in files.found.sources if source.path.name == "kept_clat_hist.9.log"]
        assert kept.context.account.samples == 604


def long_line(path: Path, content: bytes, megabytes: int) -> Path:
    with path.open("wb") as out:
        for _ in range(megabytes):
            out.write((content * ((1 << 20) // len(content) + 1))[: 1 << 20])
    return path


def test_r8_a_line_without_end_is_refused_in_memory_that_does_not_grow_with_it(tmp_path: Path) -> None:
    """Of 200 MB it took 1.4 GB and two minutes: each block was added to all before it."""
    words = ["inspect", long_line(tmp_path / "long.txt", b"A", 200)]
    # Not ru_maxrss, which a process takes over from the one that started it.
    peak = "re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]"
    script = f"import re, sys; from ingest.cli import run; run(sys.argv[1:]); print({peak})"
    done = subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True)
    assert "no latency log of a known format" in done.stderr
    assert int(done.stdout) < 300 << 10


def test_r8_a_line_is_gone_through_once(tmp_path: Path) -> None:
    path = long_line(tmp_path / "l", b"A", 65)
    with pytest.raises(InputError, match=":1: a line of more than 64 MiB"):
        list(lines_of(path, Context(account=Account(path=str(path)))))
    path.write_bytes(b"a" * (3 << 20) + b"\nb\n" + b"c" * (2 << 20))
    lines = list(lines_of(path, Context(account=Account(path=str(path)))))
    assert [(number, len(line), ended) for number, line, ended in lines] == [
        (1, 3 << 20, True),
        (2, 1, True),
        (3, 2 << 20, False),
    ]


@pytest.mark.parametrize("content", [b"1", b"[", b'{"a": 1, ', b'"', b"x: 1.5: ", b"\t"])
def test_r8_a_long_line_of_anything_is_refused_in_words(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture) -> None:
    assert run(["inspect", str(long_line(tmp_path / "long.txt", content, 2))]) == 3
    assert "internal error" not in capsys.readouterr().err


def test_r10_what_is_no_file_in_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dangling link, one to itself, one to a device, a pipe and a socket were passed over without a word."""
    shutil.copy(KEPT, tmp_path / "kept_clat_hist.9.log")
    (tmp_path / "gone_clat_hist.1.log").symlink_to("nowhere")
    (tmp_path / "loop.log").symlink_to("loop.log")
    (tmp_path / "null").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # the path of a socket is short
        server.bind("socket")
    skipped = {
        entry.path.name: (entry.action, entry.reason.partition(":")[0]) for entry in Files([tmp_path], jobs=1).found.skipped
    }
    assert skipped == {
        "gone_clat_hist.1.log": ("refused", "a link that leads nowhere"),
        "loop.log": ("refused", "a link that cannot be followed (Too many levels of symbolic links)"),
        "null": ("refused", "a link to a named pipe, a socket or a device, which is not read"),
        "pipe": ("skipped", "a named pipe, a socket or a device, which is not read"),
        "socket": ("skipped", "a named pipe, a socket or a device, which is not read"),
    }


def test_r10_a_log_whose_link_leads_nowhere_is_missing_from_the_answer(tmp_path: Path) -> None:
    shutil.copy(KEPT, tmp_path / "kept_clat_hist.9.log")
    (tmp_path / "gone_clat_hist.1.log").symlink_to("nowhere")
    answer = Files([tmp_path], jobs=1).answer(Question(step="all"))
    assert any("leads nowhere" in text for text in answer.warnings)
