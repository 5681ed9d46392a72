"""A real fio, watched from its start to its end: what its status dumps gave is replaced by its histogram logs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.live.watch.cycle import WatchCycle
from ingest.live.watch.state import Watching
from ingest.store import open_store
from tests.live.feeding import answers, batch, options
from tests.store.grounds import grounds

MISSING = "no fio: apt-get install fio"
NULL = ["--ioengine=null", "--size=1g", "--bs=4k", "--rate_iops=300", "--time_based", "--rw=randrw", "--numjobs=2"]


def fio(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Return a running fio; skips the test where there is none, and fails it in CI."""
    program = shutil.which("fio")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    folder.mkdir(exist_ok=True)
    told = ["--status-interval=1", "--output-format=json+", "--output=fio.json"]
    return subprocess.Popen([program, "--name=j", *NULL, *told, *words], cwd=folder, stdout=subprocess.DEVNULL)


def watched(process: subprocess.Popen[bytes], folder: Path, url: str) -> tuple[list[str], int]:
    """Watch while fio runs and settle; return what was said, and the samples that a question found before the end."""
    with open_store(url, write=True) as store:
        watch = WatchCycle(Watching.begun([folder], store, options()))
        said: list[str] = []
        live = 0
        while process.poll() is None:
            said += watch.cycle().said
            if watch.watching.runs:
                live = max(live, sum(tail.account.samples for tail in watch.watching.tails.values()))
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
        for _ in range(4):
            said += watch.cycle().said
        said += watch.cycle(last=True).said
        watch.settle()
        return [*said, *watch.watching.said], live


@pytest.mark.slow
def test_status_dumps_of_a_real_fio(tmp_path: Path) -> None:
    process = fio(tmp_path / "out", "--runtime=4")
    url = f"sqlite:{tmp_path / 'live.db'}"
    said, live = watched(process, tmp_path / "out", url)
    assert live > 1000
    assert not [text for text in said if "read live" in text]
    assert answers(url) == answers(batch(tmp_path / "out", tmp_path / "batch.db"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_histogram_logs_replace_what_the_dumps_gave(tmp_path: Path, kind: str) -> None:
    process = fio(tmp_path / "out", "--runtime=3", "--write_hist_log=h", "--log_hist_msec=500")
    with grounds(kind, tmp_path) as ground:
        said, live = watched(process, tmp_path / "out", ground.url)
        assert live > 600
        assert any("is replaced by the logs beside it" in text for text in said)
        with open_store(ground.url) as store:
            assert {one.source.split("|")[0] for one in store.sources("r")} == {"fio-hist"}
        assert answers(ground.url) == answers(batch(tmp_path / "out", tmp_path / "batch.db"))


@pytest.mark.slow
def test_the_command_watches_fio_to_its_end(tmp_path: Path) -> None:
    process = fio(tmp_path / "out", "--runtime=2", "--write_hist_log=h", "--log_hist_msec=500")
    words = [
        "watch",
        tmp_path / "out",
        "--run",
        "r",
        "--store",
        f"sqlite:{tmp_path / 'live.db'}",
        "--until-idle",
        "2s",
        "--interval",
        "200ms",
        "--step",
        "1s",
    ]
    done = subprocess.run([sys.executable, "-m", "ingest", *map(str, words)], capture_output=True, text=True)
    assert process.wait() == 0
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert answers(f"sqlite:{tmp_path / 'live.db'}") == answers(batch(tmp_path / "out", tmp_path / "batch.db"))
