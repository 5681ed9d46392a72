"""A watch that is killed at any moment, again and again: the next one goes on, and nothing is lost or counted twice."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ingest.cli import run as command
from tests.effort import figure
from tests.live.feeding import HLOG, OPERATIONS, Writer, answers, batch
from tests.store.grounds import grounds

LOGS = (("h1/x.hlog", HLOG), ("h2/x.hlog", HLOG), ("h3/x.hlog", HLOG), ("operations.csv", OPERATIONS))
EVERY_LABEL = "host,volume,job,op,kind,tag,process"


def started(folder: Path, url: str, *words: str, **piped) -> subprocess.Popen:
    told = ["watch", str(folder), "--run", "r", "--store", url, "--step", "1s", "--interval", "20ms", "--jobs", "2", *words]
    piped = piped or {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "ingest", *told], start_new_session=True, **piped)


def csv_of(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert command([*words, "--format", "csv"]) == 0
    return out.getvalue()


def tables(url: str) -> list[str]:
    """Return percentiles and the heat map of a store as users get them, by all labels."""
    return [csv_of(what, url, "--by", EVERY_LABEL, "--step", "1s") for what in ("percentiles", "heatmap")]


def killed_and_completed(seed: int, folder: Path, url: str) -> int:
    """Kill watches while logs grow, let the last one end; return how many were killed in the middle of it."""
    rng = random.Random(seed)
    writers = [Writer(folder / "logs" / name, rng, rows=40, kind=kind) for name, kind in LOGS]
    watch, kills, fatal = started(folder / "logs", url), 0, time.monotonic() + rng.uniform(0.4, 1.3)
    while not all(writer.done for writer in writers):
        for writer in writers:
            writer.write(420)
        time.sleep(0.012)
        if time.monotonic() > fatal:
            kills += watch.poll() is None
            os.killpg(watch.pid, signal.SIGKILL)
            watch.wait()
            watch, fatal = started(folder / "logs", url), time.monotonic() + rng.uniform(0.4, 1.3)
    for writer in writers:
        writer.stream.close()
    if rng.random() < 0.7:  # else the last one sees the end
        time.sleep(rng.uniform(0, 0.6))
        kills += watch.poll() is None
    os.killpg(watch.pid, signal.SIGKILL)
    watch.wait()
    last = started(folder / "logs", url, "--until-idle", "300ms", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    told = last.communicate(timeout=600)[1]
    assert last.returncode == 0, told
    assert "Traceback" not in told and "read live" not in told, told
    expected = batch(folder / "logs", folder / "batch.db")
    assert answers(url) == answers(expected), seed
    assert tables(url) == tables(expected), seed
    return kills


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_watch_ends_as_a_load(tmp_path: Path, kind: str) -> None:
    kills, seed = 0, 0
    while seed < figure(1, 1, 5) or kills < figure(1, 1, 3):  # a quick machine has ended before it is killed now and then
        with grounds(kind, tmp_path) as ground:
            (tmp_path / f"{seed}").mkdir()
            kills += killed_and_completed(seed, tmp_path / f"{seed}", ground.url)
        seed += 1
        assert seed < 30


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_killed_fifty_times(tmp_path: Path, kind: str) -> None:
    kills, seed = 0, 100
    while kills < 50:
        with grounds(kind, tmp_path) as ground:
            (tmp_path / f"{seed}").mkdir()
            kills += killed_and_completed(seed, tmp_path / f"{seed}", ground.url)
        seed += 1


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_settles_the_run(tmp_path: Path, number: int, status: int) -> None:
    writer = Writer(tmp_path / "logs" / "x.hlog", random.Random(1), rows=30)
    writer.rest()
    writer.stream.close()
    url = f"sqlite:{tmp_path / 's.db'}"
    watch = started(tmp_path / "logs", url, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert '"event": "cycle"' in watch.stdout.readline()
    watch.send_signal(number)
    out, told = watch.communicate(timeout=600)
    assert watch.returncode == status, told
    assert out.splitlines()[-1].startswith('{"event": "settled"') and "Traceback" not in told
    assert answers(url) == answers(batch(tmp_path / "logs", tmp_path / "batch.db"))
