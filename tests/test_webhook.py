"""The webhook: one delivery an episode, sent again while that can help, and no secret in a sentence."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ingest.core.errors import DeliveryError, UsageError
from ingest.objectives.webhook import payload, webhook
from ingest.query.episodes import Episode
from tests.doubles.receiver import receiver

SECOND = 1_000_000_000
START = 1_795_208_434 * SECOND


def episode(number: int = 0, **words) -> Episode:
    given = {
        "objective": "read p99",
        "run": "nightly-42",
        "labels": (("host", "ceph-b"),),
        "kind": "completion",
        "percentile": "99",
        "threshold_ns": 50_000_000,
        "window_ns": SECOND,
        "start_ns": START + number * 60 * SECOND,
        "end_ns": START + number * 60 * SECOND + 4 * SECOND,
        "peak_ns": 4_009_754_624,
        "peak_open": False,
        "samples": 79,
        "windows": 4,
        "silent": 1,
        "thin": 2,
        "worst_host": "ceph-b",
        "state": "ended",
        **words,
    }
    return Episode(**given)


@pytest.fixture(autouse=True)
def impatient(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TAILBOARD_WEBHOOK_PATIENCE", "60")
    monkeypatch.setenv("TAILBOARD_WEBHOOK_TIMEOUT", "60")
    monkeypatch.setenv("HOME", str(tmp_path))  # no netrc but the test's own
    for name in ("TOKEN", "CA_FILE"):
        monkeypatch.delenv(f"TAILBOARD_WEBHOOK_{name}", raising=False)


def test_each_episode_is_one_delivery_with_an_id_of_its_own() -> None:
    with receiver() as there:
        assert webhook(there.url).tell([episode(0), episode(1)]) == 2
    first, second = there.taken
    assert first["id"] == episode(0).id != second["id"]
    assert first == {
        "id": episode(0).id,
        "state": "ended",
        "text": "read p99 (host ceph-b) of nightly-42 was violated from 2026-11-20T21:00:34.000Z to 2026-11-20T21:00:38.000Z: "
        "p99, peak 4.01s, worst host ceph-b",
        "objective": "read p99",
        "percentile": "99",
        "threshold_ns": 50_000_000,
        "window_ns": SECOND,
        "run": "nightly-42",
        "kind": "completion",
        "labels": {"host": "ceph-b"},
        "start": "2026-11-20T21:00:34.000Z",
        "end": "2026-11-20T21:00:38.000Z",
        "start_ns": START,
        "end_ns": START + 4 * SECOND,
        "peak_ns": 4_009_754_624,
        "peak_open": False,
        "samples": 79,
        "windows": 4,
        "silent": 1,
        "thin": 2,
        "worst_host": "ceph-b",
    }  # fmt: skip
    path, headers = there.requests[0]
    assert path == "/hooks/a-secret-path"
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers


def test_the_id_stays_while_an_episode_grows_and_is_another_for_each_group() -> None:
    assert episode(end_ns=START + 9 * SECOND, state="open", samples=1).id == episode().id
    others = [episode(labels=(("host", "ceph-c"),)), episode(run="x"), episode(objective="y"), episode(1), episode(labels=())]
    assert len({episode().id, *(one.id for one in others)}) == 6


def test_times_of_a_run_without_a_clock_are_none() -> None:
    told = payload(episode(peak_ns=None, worst_host=""), relative=True)
    assert (told["start"], told["end"], told["peak_ns"]) == (None, None, None)
    assert told["text"] == "read p99 (host ceph-b) of nightly-42 was violated for 4s: p99, nothing completed"


@pytest.mark.parametrize("answers", [(503,), (429, 502), (500, 504)])
def test_what_passes_is_sent_again(answers: tuple[int, ...], monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_WEBHOOK_PATIENCE", "300")
    monkeypatch.setenv("TAILBOARD_WEBHOOK_TIMEOUT", "300")
    with receiver(*answers) as there:
        assert webhook(there.url).tell([episode()]) == 1
    assert len(there.requests) == len(answers) + 1
    assert len(there.taken) == 1


def test_a_receiver_is_left_in_peace_for_as_long_as_it_asks(monkeypatch) -> None:
    import time

    monkeypatch.setenv("TAILBOARD_WEBHOOK_PATIENCE", "300")
    monkeypatch.setenv("TAILBOARD_WEBHOOK_TIMEOUT", "300")
    with receiver(429) as there:
        there.headers["retry-after"] = "1"
        began = time.monotonic()
        webhook(there.url).tell([episode()])
    assert time.monotonic() - began >= 1 and len(there.taken) == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (400, "it answers 400"),
        (404, "it answers 404"),
        (401, "Login failed (401). Set TAILBOARD_WEBHOOK_TOKEN, or TAILBOARD_WEBHOOK_USER and TAILBOARD_WEBHOOK_PASSWORD"),
        (307, "it answers 307, a redirect: give the address that it leads to"),
    ],
)
def test_what_is_refused_is_not_sent_again_and_keeps_no_other_back(status: int, told: str) -> None:
    with receiver(status) as there, pytest.raises(DeliveryError) as error:
        webhook(there.url).tell([episode(0), episode(1)])
    assert len(there.requests) == 2
    assert [one["id"] for one in there.taken] == [episode(1).id]
    assert f"refuses 1 of 2 messages: {told}" in str(error.value)
    assert "secret" not in str(error.value)
    assert error.value.exit_status == 4


def test_a_receiver_that_stays_away_is_told_of_once(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_WEBHOOK_PATIENCE", "0.5")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/hooks/secret"
    with pytest.raises(DeliveryError, match="received 0 of 2 messages, 2 were not delivered: connection refused") as error:
        webhook(url).tell([episode(0), episode(1)])
    assert "secret" not in str(error.value)


def test_a_receiver_that_says_nothing_is_given_up(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_WEBHOOK_TIMEOUT", "0.2")
    monkeypatch.setenv("TAILBOARD_WEBHOOK_PATIENCE", "0.5")
    with receiver() as there:
        there.silent = True
        with pytest.raises(DeliveryError, match=r"no answer within 0\.2 s"):
            webhook(there.url).tell([episode()])
    assert len(there.requests) >= 2


def test_secrets_come_from_the_environment_or_netrc(monkeypatch, tmp_path: Path) -> None:
    with receiver() as there:
        monkeypatch.setenv("TAILBOARD_WEBHOOK_TOKEN", "s3cret")
        webhook(there.url).tell([episode()])
        monkeypatch.delenv("TAILBOARD_WEBHOOK_TOKEN")
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ann password pass\n")
        (tmp_path / ".netrc").chmod(0o600)
        webhook(there.url).tell([episode()])
        monkeypatch.setenv("HOOK", there.url)
        hook = webhook("env:HOOK")
        assert hook.client.url + hook.target == there.url
    assert [headers["authorization"] for _, headers in there.requests] == ["Bearer s3cret", "Basic YW5uOnBhc3M="]
    assert repr(hook) == f"Webhook(host='{hook.host}')"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ftp://host/x", r"takes http\(s\)://HOST/PATH"),
        ("nonsense", r"takes http\(s\)://HOST/PATH"),
        ("http://ann:pass@host/", "no user or password in a URL"),
        ("http://host:99999/", "--webhook: the address: the port is not a number from 1 to 65535"),
        ("env:NOT_THERE", "the environment has no NOT_THERE"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_repeating_it(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        webhook(text)
    assert "pass@" not in str(error.value)


def test_a_token_with_a_line_break_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_WEBHOOK_TOKEN", "a\nb")
    with pytest.raises(UsageError, match="TAILBOARD_WEBHOOK_TOKEN holds a space, a line break or a character that no key has"):
        webhook("http://host/")
