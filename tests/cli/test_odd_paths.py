"""Paths that are no files: nested past recursion, pipes that nobody writes, sockets, devices, circles of links, closed folders."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest.cli import run as command
from tests.effort import figure

LOG = Path(__file__).parents[1] / "data" / "fio" / "randrw" / "a_clat_hist.1.log"
T0 = ("--t0", "2026-11-20T21:00:00Z")
SLA = "objectives:\n  - {name: quick, percentile: 99, threshold: 1us, window: 1s}\n"
ODD = "a named pipe, a socket or a device"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def wire(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as found:
        found.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail where what is done inside waits for ever."""

    def late(*_: object) -> None:
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("made", [pipe, wire, device, circle])
def test_g6_what_is_no_file_is_told_by_every_command_that_takes_paths(
    made: Callable[[Path], None], tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    made(Path("x"))
    made(Path("x.yml"))
    store = ("--store", "sqlite:s.db")
    assert command(["load", str(LOG), "--run", "r", *store, *T0]) == 0
    for status, words in (
        (3, ("percentiles", "x")),
        (3, ("inspect", "x")),
        (3, ("heatmap", "x")),
        (3, ("export", "x")),
        (3, ("load", "x", "--run", "q", *store)),
        (3, ("watch", "x", "--run", "q", "--until-idle", "50ms", "--interval", "10ms", *store)),
        (3, ("watch", LOG, "--run", "q", "--until-idle", "50ms", "--objectives", "x", *store)),
        (3, ("serve", "x", "--port", "0")),
        (3, ("check", "x", "sqlite:s.db")),
        (3, ("report", "sqlite:s.db", "--objectives", "x", "-o", "o.html")),
        (3, ("report", "sqlite:s.db", "--marks", "x", "-o", "o.html")),
        (3, ("mark", "--run", "r", "--marks", "x", *store)),
        (3, ("setup", "--kibana", "http://127.0.0.1:9", "--rules", "x")),
        (3, ("replay", "x", "--store", "http://127.0.0.1:9")),
        (3, ("events", "x")),
        (4, ("percentiles", "sqlite:x")),
        (4, ("load", LOG, "--run", "r", "--store", "sqlite:x")),
        (None, ("percentiles", LOG, "--input-format", "x.yml")),
    ):
        with within(60):
            found = command(list(map(str, words)))
        told = capsys.readouterr().err
        assert found == status or (status is None and found in (2, 3)), (words, told)
        assert "x" in told and "Error" not in told and "Traceback" not in told, (words, told)


def test_g6_a_pipe_that_the_caller_has_opened_is_read(tmp_path: Path) -> None:
    """`check <(sla) ...`: the shell names /dev/fd/63, which is a pipe, too."""
    take, give = os.pipe()
    threading.Thread(target=lambda: (os.write(give, SLA.encode()), os.close(give))).start()
    try:
        assert command(["check", f"/dev/fd/{take}", str(LOG), *T0]) == 1
    finally:
        os.close(take)


def test_g6_output_takes_the_place_of_a_circle_of_links(tmp_path: Path, capsys) -> None:
    from ingest.cli.output import write_whole

    circle(tmp_path / "x")
    write_whole(str(tmp_path / "x"), "page")
    assert (tmp_path / "x").read_text() == "page"


def nested(folder: Path, depth: int, name: str) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    log = os.open("a_clat_hist.1.log", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(log, LOG.read_bytes())
    os.close(log)
    os.close(here)


@pytest.mark.slow
def test_g6_folders_nested_1500_deep_are_read(tmp_path: Path, capsys) -> None:
    logs, url = tmp_path / "logs", f"sqlite:{tmp_path / 's.db'}"
    logs.mkdir()
    nested(logs, 1_500, "d")
    try:
        pace = ("--until-idle", "60ms", "--interval", "20ms")
        calls = [("percentiles",), ("load", "--run", "r", "--store", url), ("watch", "--run", "w", "--store", url, *pace)]
        for name, *words in calls[: figure(1, 3)]:
            assert command([name, str(logs), *words, *T0]) == 0, capsys.readouterr().err
    finally:
        subprocess.run(["rm", "-rf", logs], check=True)  # shutil.rmtree does not go so deep
    said = capsys.readouterr()
    assert "RecursionError" not in said.err


def test_g6_folders_nested_past_the_longest_path_are_named(tmp_path: Path, capsys) -> None:
    """What cannot be listed is missing, and that is said: silence would be a number that lacks a part."""
    shutil.copy(LOG, tmp_path)
    nested(tmp_path, 40, "d" * 200)
    try:
        assert command(["percentiles", str(tmp_path), "--step", "all", *T0]) == 0
        assert command(["inspect", str(tmp_path), *T0]) == 0
        assert "its path is too long for this system, so its files are missing" in (said := capsys.readouterr()).out + said.err
        assert command(["load", str(tmp_path), "--run", "r", "--store", f"sqlite:{tmp_path / 's.db'}", *T0]) == 0
        assert "its path is too long for this system" in capsys.readouterr().err
    finally:
        subprocess.run(["rm", "-rf", tmp_path / ("d" * 200)], check=True)


def test_g6_a_folder_that_links_to_itself_is_read_once(tmp_path: Path, capsys) -> None:
    logs = tmp_path / "logs"
    (logs / "sub").mkdir(parents=True)
    shutil.copy(LOG, logs)
    assert command(["export", str(logs), *T0]) == 0
    there = capsys.readouterr().out
    (logs / "up").symlink_to(logs)
    (logs / "sub" / "over").symlink_to("../sub")
    assert command(["export", str(logs), *T0]) == 0
    assert there.count("\n") > 100 and there == capsys.readouterr().out


EMPTY = "is a variable of the shell not set?"


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (
            ("percentiles", ""),
            2,
            f"an empty word stands behind the name of the command: {EMPTY}",
        ),  # as a path it was the folder here
        (("load", LOG.parent, "", "--run", "r"), 2, f"an empty word stands behind {LOG.parent}: {EMPTY}"),
        (("percentiles", LOG, "--from", ""), 2, f"an empty word stands behind --from: {EMPTY}"),  # it was the whole range
        (("percentiles", LOG, "--to="), 2, f"an empty word stands behind --to=: {EMPTY}"),
        (("runs", "list", "--store", ""), 2, f"an empty word stands behind --store: {EMPTY}"),  # it was the default store
        (("percentiles", LOG, "--host", ""), 2, f"an empty word stands behind --host: {EMPTY}"),
        (("inspect", "x" * 300), 3, "x: File name too long"),
        (("events", "x" * 300), 3, "x: File name too long"),
        (("replay", "x" * 300, "--store", "sqlite:x.db"), 3, "x: File name too long"),
        (("watch", "x" * 300, "--run", "r", "--store", "sqlite:x.db"), 3, "x: File name too long"),
        (
            ("load", LOG, "--run", "r", "--store", "sqlite::memory:"),
            2,
            "sqlite: needs the path of a file, as in sqlite:tailboard.db",
        ),
        (
            ("inspect", "sqlite:x y.db"),
            2,
            "inspect takes files and folders; tailboard runs list 'sqlite:x y.db' shows what it holds",
        ),
        (
            ("load", "http://x:9200", "--run", "r"),
            2,
            "http://x:9200 is a store, and load takes files and folders; --store http://x:9200 has load write to it",
        ),
        (
            ("watch", "sqlite:x.db", "--run", "r"),
            2,
            "sqlite:x.db is a store, and watch takes files and folders; --store sqlite:x.db has watch write to it",
        ),
        (("load", "-", "--run", "r"), 2, "load takes files and folders, not standard input: write it into a file"),
    ],
)
def test_words_that_name_no_file_are_refused_in_words(
    words: tuple[str, ...],
    status: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copy(LOG, tmp_path)  # what an empty path would have meant
    monkeypatch.chdir(tmp_path)
    assert command([str(word) for word in words]) == status
    out, said = capsys.readouterr()
    assert sentence in " ".join(said.split()) and out == ""
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".db"] == [LOG.name]


def test_an_empty_name_of_the_store_in_the_environment_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was the folder that one stands in, whose logs were read."""
    shutil.copy(LOG, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAILBOARD_STORE", "")
    assert command(["percentiles"]) == 4
    assert "there is no store at sqlite:tailboard.db" in capsys.readouterr().err
