"""What is found under the paths of a call: files in order, nothing else, however deep."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import InputError
from ingest.live.watch.files import scanned
from ingest.read.discovery import files_under, listed_files

LOG = Path(__file__).parents[1] / "data" / "fio" / "randrw" / "a_clat_hist.1.log"
DEPTH = 1500


@pytest.fixture
def deep(tmp_path: Path):
    """A log below 1,500 folders; removed step by step, as shutil would call itself too often."""
    parts = [tmp_path / "deep"]
    parts += [parts[0].joinpath(*["d"] * number) for number in range(1, DEPTH)]
    for one in parts:
        one.mkdir()
    shutil.copy(LOG, parts[-1])
    yield parts[0]
    (parts[-1] / LOG.name).unlink()
    for one in reversed(parts):
        one.rmdir()


@pytest.mark.slow
def test_g6_no_folder_is_too_deep(deep: Path, capsys) -> None:
    [file] = files_under([deep])
    assert file.name == LOG.name and list(scanned([deep])) == [file]
    assert command(["percentiles", str(deep), "--step", "all", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_g6_pipes_sockets_and_loops_are_no_files(tmp_path: Path, capsys) -> None:
    shutil.copy(LOG, tmp_path)
    os.mkfifo(tmp_path / "b_clat_hist.1.log")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "c_clat_hist.1.log"))
        (tmp_path / "loop").symlink_to(tmp_path)
        (tmp_path / "itself").symlink_to(tmp_path / "itself")
        (tmp_path / "gone").symlink_to(tmp_path / "nothing")
        (tmp_path / "pipe").symlink_to(tmp_path / "b_clat_hist.1.log")
        assert list(files_under([tmp_path])) == [tmp_path / LOG.name] == list(scanned([tmp_path]))
        assert scanned([tmp_path / "b_clat_hist.1.log"]) == {}
        assert command(["percentiles", str(tmp_path), "--step", "all"]) == 0
        for name in ("b_clat_hist.1.log", "c_clat_hist.1.log", "pipe"):
            assert command(["inspect", str(tmp_path / name)]) == 3
            assert "a named pipe, a socket or a device" in capsys.readouterr().err


def test_files_come_once_and_in_the_order_of_their_parts(tmp_path: Path) -> None:
    for name in ("b/x/z", "b/x.log", "b/x-1/a", ".hidden/a", "a.log", "b/Y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link.log").symlink_to(tmp_path / "a.log")
    expected = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert listed_files(tmp_path) == expected
    assert list(files_under([tmp_path / "b", tmp_path])) == [
        *(path for path in expected if "b" in path.parts),
        *(path for path in expected if "b" not in path.parts),
    ]
    with pytest.raises(InputError, match="no such file or folder"):
        list(files_under([tmp_path / "none"]))


def test_g7_each_of_many_logs_is_opened_three_times_at_most(tmp_path: Path) -> None:
    """For its format, to be compared with others of its size, to be read: what each opening takes is most of a small log's time."""
    width = 1_856
    for number in range(40):
        bins = ", ".join(str(number + 1 if place == 900 else 0) for place in range(width))
        (tmp_path / f"a_clat_hist.{number + 1}.log").write_text(
            "".join(f"{1000 * row}, 0, 4096, {bins}\n" for row in range(3 if number else 4))
        )
    script = (
        "import sys; from ingest.cli import run; opened = []; "
        "sys.addaudithook(lambda event, words: opened.append(str(words[0])) if event == 'open' else None); "
        "run(sys.argv[1:]); print(*(name for name in opened if name.endswith('.log')), sep='\\n', file=sys.stderr)"
    )
    words = [sys.executable, "-c", script, "percentiles", str(tmp_path), "--jobs", "1", "--step", "all", "--format", "csv"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[1].split(",")[2] == str(3 * sum(range(1, 41)) + 1)
    opened = Counter(line for line in done.stderr.splitlines() if line.startswith(str(tmp_path)) and line.endswith(".log"))
    assert len(opened) == 40 and max(opened.values()) <= 3
    assert min(opened.values()) == 2  # a log of a size of its own is compared with none
