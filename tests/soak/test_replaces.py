"""A run is loaded anew many times, in other ways and killed at any moment, while others ask about it without a pause.

Every answer is of one of these ways, or says what it lacks. Few turns in `make test`, 200 in `make soak`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.store import open_store
from tests.crew import started
from tests.effort import figure
from tests.store.grounds import grounds, loaded
from tests.store.test_replaced import QUESTIONS, T0, asked, check, readings_of, some_logs, ways_of

SECOND = 10**9
STEPS = ("1s", "5s", "10s")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_r1_readers_beside_replacements_of_random_steps_some_killed(tmp_path: Path, kind: str) -> None:
    """Only the number of turns is fixed: how far a load comes before it is killed, and how often it is asked, is chance."""
    logs, chance = some_logs(tmp_path / "logs", hosts=2, rows=30), random.Random(4)
    zeros = (T0, T0 + 100 * SECOND)
    ways = [
        {**ways_of("nothing")[0], "reading": {"t0": zero}, "step_ns": int(step[:-1]) * SECOND} for step in STEPS for zero in zeros
    ]
    readings = readings_of([logs], ways, tmp_path)
    with grounds(kind, tmp_path) as ground:
        loaded(ground.url, [logs], **ways[0])
        for turn in range(figure(4, 6, 200)):
            step, zero = chance.choice(STEPS), chance.choice(zeros)
            words = ["load", str(logs), "--run", "r", "--step", step, "--t0", str(zero // SECOND), "--jobs", "1", "--replace"]
            running = started([*words, "--store", ground.url], tmp_path)
            for _ in range(chance.randrange(1, 6)):
                check(ground.url, readings, f"in turn {turn}, {step} from {zero}")
            if chance.random() < 0.5:
                running.kill()
            status = running.wait()
            assert status in (0, -9), running.printed
            check(ground.url, readings, f"after turn {turn}, which ended with {status}")
            with open_store(ground.url) as store:
                assert not store.verify(lambda _run: True).findings
        loaded(ground.url, [logs], replace=True, **ways[0])
        assert [asked(ground.url, question) for question in QUESTIONS] == readings[0]
