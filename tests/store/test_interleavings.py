"""Load, watch, delete, coarsen, replace, mark and check at once, some killed: when all have ended the store is sound.

Whatever was killed or told to wait is run again in peace; then `runs check` finds nothing, and every run that was not
coarsened holds what a load of its logs into an empty store gives.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.store import open_store
from ingest.store.lifecycle import COARSENED, COARSENING
from ingest.store.records import COMPLETE, DELETING
from tests.crew import Running, started
from tests.effort import figure
from tests.live.feeding import QUESTIONS, Writer, answer
from tests.store.grounds import grounds

HOSTS = ("h1", "h2", "h3")
RUNS = ("a", "b")
SLA = "objectives:\n  - {name: slow, percentile: 90, threshold: 1ns, window: 1s}\n"
KILLED = -9
ALLOWED = (0, 1, 3, 4, KILLED)
SEEDS = 200


class Site:
    """A store and its logs, and what is done to them."""

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        self.url, self.folder, self.chance = url, folder, random.Random(seed)
        self.logs = folder / "logs"
        self.writers = [Writer(self.logs / host / "x.hlog", self.chance, rows=12) for host in HOSTS]
        (folder / "SLA.yml").write_text(SLA)
        self.again: list[list[str]] = []
        for writer in self.writers:
            writer.write(len(writer.text) // 2)

    def load(self, run: str, *words: str) -> list[str]:
        return ["load", str(self.logs), "--run", run, "--step", "1s", "--jobs", "1", *words]

    def one_of(self) -> list[str]:
        """Return a command, chosen at random."""
        run, host = self.chance.choice(RUNS), self.chance.choice(HOSTS)
        choices: dict[str, tuple[int, list[str]]] = {
            "load": (5, self.load(run)),
            "replace": (2, self.load(run, "--replace")),
            "watch": (3, ["watch", *self.load(run)[1:], "--interval", "20ms", "--until-idle", "100ms"]),
            "delete": (3, ["runs", "delete", run, "--yes", "--force"]),
            "delete unforced": (1, ["runs", "delete", run, "--yes"]),
            "coarsen": (1, ["runs", "coarsen", run, "--step", "10s"]),
            "check": (1, ["runs", "check"]),
            "mend": (1, ["runs", "check", "--mend"]),
            "mark": (1, ["mark", "--run", run, "--at", "+3s", f"something on {host}"]),
        }
        weights = [weight for weight, _ in choices.values()]
        return self.chance.choices([words for _, words in choices.values()], weights)[0]

    def start(self, words: list[str]) -> Running:
        return started([*words, "--store", self.url], self.folder)

    def record(self) -> Running:
        return started(["check", "SLA.yml", self.url, "--record"], self.folder)

    def ended(self, running: Running) -> int:
        status = running.wait()
        told = running.printed
        assert status in ALLOWED and "Traceback" not in told and "internal" not in told, (running.words, status, told)
        return status

    def disturbed(self) -> None:
        """Do some things at once, and kill some of them."""
        under_way = [self.start(self.one_of()) for _ in range(self.chance.randint(2, 4))]
        if self.chance.random() < 0.3:
            under_way.append(self.record())
        for writer in self.writers:
            writer.write(1500)
        time.sleep(self.chance.uniform(0.01, 0.5))
        for one in under_way:
            if self.chance.random() < 0.4:
                one.kill()
        for one in under_way:
            if self.ended(one) not in (0, 1):
                self.again.append(one.words)

    def in_peace(self) -> None:
        """Run again what was cut off or refused, then complete what is left."""
        for writer in self.writers:
            writer.rest()
            writer.stream.close()
        for words in self.again:
            self.ended(started(words, self.folder))
        with open_store(self.url) as store:
            records = store.runs()
        for record in records:
            if record.state == DELETING:
                assert self.ended(self.start(["runs", "delete", record.run, "--yes"])) == 0
                continue
            if COARSENING in record.parameters:
                assert self.ended(self.start(["runs", "coarsen", record.run, "--step", "10s"])) == 0
            if record.state != COMPLETE or COARSENED not in record.parameters:
                words = ["watch", *self.load(record.run)[1:], "--interval", "20ms", "--until-idle", "60ms"]
                assert self.ended(self.start(words)) in (0, 4), "of a coarsened run"
                running = self.start(self.load(record.run))
                status = self.ended(running)
                if status:  # begun anew and coarsened in between: only all of it anew can complete it
                    assert "--replace" in running.printed, running.printed
                    assert self.ended(self.start(self.load(record.run, "--replace"))) == 0


def interleaved(kind: str, seed: int, folder: Path) -> None:
    with grounds(kind, folder) as ground:
        (folder / f"{seed}").mkdir()
        site = Site(ground.url, folder / f"{seed}", seed)
        for _ in range(3):
            site.disturbed()
        site.in_peace()
        check = site.start(["runs", "check", "--json"])
        status = check.wait()
        told: dict[str, Any] = json.loads(check.printed)
        assert (status, told["faults"], told["unfinished"]) == (0, [], []), (kind, seed, told)
        with open_store(ground.url) as store:
            plain = [record.run for record in store.runs() if COARSENED not in record.parameters]
        with grounds("sqlite", folder) as clean:
            for run in plain:
                assert site.ended(started([*site.load(run), "--store", clean.url], site.folder)) == 0
                assert answers(ground.url, run) == answers(clean.url, run), (kind, seed, run)


def answers(url: str, run: str) -> list[list[str]]:
    with open_store(url) as store:
        return [answer(store, replace(question, runs=(run,))) for question in QUESTIONS]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("sqlite", marks=pytest.mark.soak), "double"])
def test_when_all_have_ended_nothing_is_found(tmp_path: Path, kind: str) -> None:
    for seed in range(figure(2, 5, 8)):
        interleaved(kind, seed, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_when_all_have_ended_nothing_is_found_two_hundred_times(tmp_path: Path, kind: str) -> None:
    for seed in range(1000, 1000 + SEEDS):
        interleaved(kind, seed, tmp_path)
