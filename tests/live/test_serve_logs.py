"""serve of logs: they are watched into a store of its own, which the page shows as any other and takes with it."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.query.question import Question
from tests.live.feeding import OPERATIONS, SECOND, Writer, batch
from tests.live.serving import Command, get, serving


def until(true: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def shown(port: int) -> tuple[str, str]:
    """Return the first sentence and the table of the page; nothing where it has nothing to show yet."""
    answer = get(port, "/data")
    told = json.loads(answer.body)["html"] if answer.status == 200 else {}
    return told.get("lead", ""), told.get("summary", "")


def expected(folder: Path, store: Path, question: Question | None = None) -> tuple[str, str]:
    with serving(batch(folder, store, step_ns=None), question) as port:
        return shown(port)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder with two logs that grow; what is temporary lies beside it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    writers = [
        Writer(tmp_path / "logs" / "x.hlog", random.Random(1), 20),
        Writer(tmp_path / "logs" / "y.csv", random.Random(2), 20, kind=OPERATIONS),
    ]
    yield tmp_path / "logs", writers
    for writer in writers:
        writer.stream.close()


@pytest.mark.slow
def test_a_page_keeps_up_with_logs(logs, tmp_path: Path) -> None:
    folder, writers = logs
    for writer in writers:
        writer.stream.write(writer.text[:6000])
        writer.written = 6000
    with Command(str(folder), "--refresh", "500ms") as server:
        assert server.said.endswith(f"shows {folder}; Ctrl-C ends it\n")
        until(lambda: "samples" in shown(server.port)[0])
        first = shown(server.port)[0]
        for writer in writers:
            writer.rest()
        wanted = expected(folder, tmp_path / "batch.db")
        until(lambda: shown(server.port) == wanted)
        assert first != wanted[0]
        until(lambda: "being watched" not in get(server.port, "/data").text)  # quiet for a while, and settled
        assert shown(server.port) == wanted
        with (folder / "z.csv").open("wb") as stream:
            stream.write(OPERATIONS.text(random.Random(3), 5))
        wanted = expected(folder, tmp_path / "batch.db")
        until(lambda: shown(server.port) == wanted)
        assert len(list((tmp_path / "temporary").iterdir())) == 1
        status, said = server.stop()
    assert status == 130 and "Traceback" not in said and "read live" not in said
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.slow
def test_nothing_is_left_of_a_server_that_was_killed(logs, tmp_path: Path) -> None:
    folder, _ = logs
    with Command(str(folder)) as server:
        assert get(server.port, "/data").status == 404
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
    until(lambda: not list((tmp_path / "temporary").iterdir()))


@pytest.mark.slow
def test_a_selection_of_logs_that_come_later(logs, tmp_path: Path) -> None:
    folder, writers = logs
    words = ("--by", "process", "--where", "process=y", "--step", "10s", "--recorded-unit", "us", "--jobs", "1")
    with Command(str(folder), *words) as server:
        assert "no run here yet" in get(server.port, "/data").text
        for writer in writers:
            writer.rest()
        question = Question(by=("process",), where={"process": "y"}, step=10 * SECOND)
        wanted = expected(folder, tmp_path / "batch.db", question)
        assert "samples" in wanted[0]
        until(lambda: shown(server.port) == wanted)
        assert server.stop(signal.SIGTERM)[0] == 0
    assert list((tmp_path / "temporary").iterdir()) == []
