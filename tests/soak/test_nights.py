"""Nights of a site: archives come in at once, whatever may be cut off is cut off, old runs are coarsened and deleted.

After every night each run must answer as in a store of its own that nothing disturbed. Two nights in `make test`, many in
`make soak`.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingest.query.question import Question
from ingest.store import open_store
from tests.databases import rows_in
from tests.store.grounds import SqliteGround, grounds, loaded, logs_by_host
from tests.store.test_contract import SECOND, answered

ZERO, DAY = 1_780_000_000, 86_400
KEPT = 3
STEPS = {0: SECOND, 1: 10 * SECOND}


def tailboard(*words: str) -> list[str]:
    return [sys.executable, "-m", "ingest", *words]


class Site:
    """A store, what is in it, and what it must answer."""

    def __init__(self, ground, folder: Path, seed: int, hosts: int, turns: int) -> None:
        self.ground, self.folder, self.chance = ground, folder, random.Random(seed)
        self.hosts = logs_by_host(folder, hosts, turns=turns)
        self.night, self.cut = 0, 0
        self.expected: dict[str, dict[int, list[str]]] = {}

    def run(self, night: int) -> str:
        return f"night-{night}"

    def load(self, url: str, night: int, host: Path) -> list[str]:
        stamp = str(ZERO + night * DAY)
        return tailboard("load", str(host), "--run", self.run(night), "--host", host.name, "--t0", stamp, "--store", url)

    def disturbed(self, commands: list[list[str]]) -> None:
        """Run commands at once, some killed, some out of room; then all of them in peace."""
        started = []
        for words in commands:
            limit = self.chance.choice([None, None, 40_000, 200_000]) if isinstance(self.ground, SqliteGround) else None
            full = (lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
            started.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=full))
        time.sleep(self.chance.uniform(0.2, 1.5))
        for process in started:
            if process.poll() is None and self.chance.random() < 0.6:
                os.killpg(process.pid, signal.SIGKILL)
        for process in started:
            told = process.communicate(timeout=600)[1]
            self.cut += process.returncode != 0
            assert process.returncode in (0, 4, -signal.SIGKILL) and "Traceback" not in told and "internal" not in told, told
        for words in commands:
            done = subprocess.run(words, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 0, done.stderr

    def pass_a_night(self) -> None:
        url, night = self.ground.url, self.night
        self.expected[self.run(night)] = self.undisturbed(night)
        self.disturbed([self.load(url, night, host) for host in self.hosts])
        if night > 0:
            self.disturbed([tailboard("runs", "coarsen", self.run(night - 1), "--step", "10s", "--store", url)])
        if night >= KEPT:
            gone = self.run(night - KEPT)
            del self.expected[gone]
            doomed = tailboard("runs", "delete", gone, "--yes", "--store", url)
            process = subprocess.Popen(doomed, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(self.chance.uniform(0.2, 0.8))
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
            process.wait()
            assert subprocess.run(doomed, stderr=subprocess.DEVNULL).returncode in (0, 3)
        self.night += 1
        self.hold()

    def undisturbed(self, night: int) -> dict[int, list[str]]:
        clean = SqliteGround(self.folder)
        for host in self.hosts:
            reading = {"t0": (ZERO + night * DAY) * SECOND, "host": host.name}
            loaded(clean.url, [host], run=self.run(night), reading=reading)
        return {step: answered(clean.url, Question(by=("host", "op"), step=step)) for step in STEPS.values()}

    def hold(self) -> None:
        with open_store(self.ground.url) as store:
            records = {record.run: record for record in store.runs()}
        assert set(records) == set(self.expected)
        assert {one["run"] for one in self.ground.documents()} == set(self.expected), "nothing of a deleted run is left"
        for run, answers in self.expected.items():
            newest = run == self.run(self.night - 1)
            assert (records[run].state, records[run].step_ns) == ("complete", STEPS[0 if newest else 1])
            for step in STEPS.values() if newest else [STEPS[1]]:
                assert answered(self.ground.url, Question(runs=(run,), by=("host", "op"), step=step)) == answers[step]
        if isinstance(self.ground, SqliteGround):
            assert rows_in(self.ground.path, "PRAGMA integrity_check")[0] == ("ok",)


def nights(kind: str, folder: Path, seed: int, number: int, hosts: int = 3, turns: int = 12) -> int:
    with grounds(kind, folder) as ground:
        site = Site(ground, folder, seed, hosts, turns)
        for _ in range(number):
            site.pass_a_night()
        again = subprocess.run(site.load(ground.url, site.night - 1, site.hosts[0]), stderr=subprocess.PIPE, text=True)
        assert again.returncode == 0 and "nothing new: 0 documents" in again.stderr
        return site.cut


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("double", marks=pytest.mark.soak)])
def test_two_nights(kind: str, tmp_path: Path) -> None:
    nights(kind, tmp_path, 1, 2, hosts=2, turns=2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_many_nights(kind: str, seed: int, tmp_path: Path) -> None:
    assert nights(kind, tmp_path, seed, 12) >= 10, "something was cut off"
