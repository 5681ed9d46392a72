"""What is found under the paths of a call: files in order, nothing else, however deep."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import InputError
from ingest.live.watch.files import scanned
from ingest.read.folders import files_under, listed_files

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
