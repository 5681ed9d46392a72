"""The double against two recorded conversations, step by step, over a socket: status, headers, the whole answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.comparing import differences, recorded
from tests.doubles.elasticsearch.proofs.replaying import Replay

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
CONVERSATIONS = {"9.5.3": recorded("conversation-9.5.3"), "8.19.21": recorded("conversation-8.19.21")}
STEPS = [
    pytest.param(version, step, id=f"{version}-{step['step']:03d}-{step['name'].replace(' ', '_')}")
    for version, steps in CONVERSATIONS.items()
    for step in steps
]


@pytest.fixture(scope="module")
def replays() -> Iterator[dict[str, Replay]]:
    """Return a double for each recorded version, at the start of its conversation."""
    with ElasticsearchDouble("9.5.3") as nine, ElasticsearchDouble("8.19.21") as eight:
        yield {"9.5.3": Replay(nine, CONVERSATIONS["9.5.3"]), "8.19.21": Replay(eight, CONVERSATIONS["8.19.21"])}


@pytest.mark.parametrize(("version", "step"), STEPS)
def test_step(replays: dict[str, Replay], version: str, step: Json) -> None:
    replay = replays[version]
    answer = replay.upto(step["step"])
    want, have = step["response"], answer.body
    if step["path"].startswith("/_cat/"):  # in no order that can be told
        want, have = sorted(want, key=str), sorted(have, key=str)
    assert (answer.status, differences(want, have)) == (step["status"], [])
    for name, value in step["response_headers"].items():
        assert answer.headers.get(name) == value, name
    assert replay.server.refusals == []
