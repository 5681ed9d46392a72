"""Standard streams that are closed, full, or left by their reader: no traceback, and never a status that means something else."""

from __future__ import annotations

import errno
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from ingest.cli import output, run, sources
from tests.commands import ended

ROOT = Path(__file__).parents[2]
FIO = Path(__file__).parents[1] / "data" / "fio" / "randrw"
T0 = ("--t0", "2026-11-20T21:00:00Z")
SLA = "objectives:\n  - {name: quick, percentile: 99, threshold: 1us, window: 1s}\n"
CLOSED = "tailboard: the output cannot be written: standard output is closed"
FULL = "tailboard: the output cannot be written: No space left on device"


class Place:
    """A folder with a store and objectives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"TAILBOARD_STORE": f"sqlite:{folder}/x.db"}

    def ended(self, words: tuple[str, ...], streams: tuple[str, str, str]) -> tuple[int, str, str]:
        """Return status, output and errors of a call with its three streams."""
        return ended(*words, streams=streams, cwd=self.folder, env=self.environment)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    made = Place(tmp_path_factory.mktemp("streams"))
    (made.folder / "sla.yml").write_text(SLA)
    status, _, errors = made.ended(("load", str(FIO), "--run", "r", *T0), ("kept", "kept", "kept"))
    assert status == 0, errors
    return made


CALLS = [
    ("--version",),
    ("--help",),
    ("percentiles", "--help"),
    ("percentiles",),
    ("percentiles", "--format", "csv"),
    ("heatmap",),
    ("distribution", "--format", "ndjson"),
    ("inspect", str(FIO)),
    ("runs", "list"),
    ("runs", "show", "r"),
    ("export",),
    ("export", "--format", "hgrm"),
    ("load", str(FIO), "--run", "r", "--json", *T0),
    ("trend", "--format", "csv"),
    ("wrap-fio",),
]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["closed", "full"])
def test_g4_output_that_cannot_be_written_is_told_in_one_sentence(place: Place, state: str) -> None:
    for words in CALLS:
        status, _, errors = place.ended(words, ("kept", state, "kept"))
        assert (status, errors.splitlines()[-1:]) == (3, [CLOSED if state == "closed" else FULL]), (words, status, errors)
        assert errors.count("cannot be written") == 1 and "Traceback" not in errors, errors


def test_g4_a_reader_that_has_gone_ends_a_command_quietly(place: Place) -> None:
    for words in CALLS:
        status, _, errors = place.ended(words, ("kept", "left", "kept"))
        assert status == 0 and "cannot be written" not in errors and "Error" not in errors, (words, status, errors)


@pytest.mark.slow
def test_g4_a_verdict_is_the_status_whether_or_not_it_is_read(place: Place) -> None:
    """`tailboard check ... | head -1` in a script with pipefail: violated is not met because somebody read one line."""
    for form in ((), ("--format", "csv"), ("--format", "junit")):
        for out in ("kept", "left"):
            for errors in ("kept", "left"):
                status, _, told = place.ended(("check", "sla.yml", *form), ("kept", out, errors))
                assert status == 1, (form, out, errors, told)


@pytest.mark.slow
def test_g4_messages_that_cannot_be_written_change_nothing(place: Place) -> None:
    for words, wanted in (
        (("percentiles",), 0),
        (("load", str(FIO), "--run", "r", *T0), 0),
        (("inspect", str(FIO)), 0),
        (("percentiles", "nosuch"), 3),
        (("percentiles", "--nosuch"), 2),
        (("percentiles", "sqlite:none.db"), 4),
    ):
        status, output, errors = place.ended(words, ("kept", "kept", "kept"))
        assert status == wanted and bool(errors) == (words[0] == "load" or wanted > 0), errors
        for state in ("closed", "full", "left"):
            assert place.ended(words, ("kept", "kept", state)) == (status, output, ""), (state, words)


def test_g4_nothing_is_printed_into_files_that_the_command_opens(place: Place) -> None:
    """With all three streams closed, the first file that is opened would be standard input, the second output."""
    url = f"sqlite:{place.folder}/closed.db"
    closed, kept = ("closed",) * 3, ("kept",) * 3
    assert place.ended(("load", str(FIO), "--run", "r", "--store", url, *T0), closed)[0] == 0
    assert place.ended(("percentiles", url), closed)[0] == 3
    assert "p99" in place.ended(("percentiles", url), kept)[1]
    assert place.ended(("percentiles", "-"), ("closed", "kept", "kept")) == (3, "", "tailboard: standard input is empty\n")


def test_g4_characters_that_a_stream_does_not_have_are_written_as_numbers() -> None:
    line = [sys.executable, "-m", "ingest", "percentiles", str(FIO), *T0]
    done = subprocess.run(line, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii:strict"}, timeout=120)
    assert done.returncode == 0 and done.stdout.isascii() and b"p99" in done.stdout, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_r6_a_signal_takes_the_copy_of_standard_input_away(tmp_path: Path, number: int) -> None:
    """At any moment: while it is copied, where a reader waits for more of it, the whole copy lay in TMPDIR."""
    there, ours = os.pipe()
    command = [sys.executable, "-m", "ingest", "percentiles", "-"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    heeded = partial(signal.signal, number, signal.SIG_DFL)  # below nohup a command leaves SIGHUP alone
    with subprocess.Popen(command, stdin=there, env=env, cwd=ROOT, preexec_fn=heeded) as process:
        os.close(there)
        for _ in range(64):  # more than the pipe holds: it has begun to copy once this is written
            os.write(ours, bytes(1 << 16))
        assert list(tmp_path.iterdir())
        process.send_signal(number)
        try:
            assert process.wait(timeout=60) == -number
        finally:
            process.kill()
            os.close(ours)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "sentence"), [(None, "is longer than 0 GiB: write it"), (errno.ENOSPC, "set TMPDIR to a folder with room")]
)
def test_r6_standard_input_that_is_too_long_or_finds_no_room_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, error: int | None, sentence: str
) -> None:
    def read(size: int) -> bytes:
        if error is not None:
            raise OSError(error, os.strerror(error))
        return bytes(size)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sources, "LARGEST_INPUT", 1 << 20)
    monkeypatch.setattr(sources, "_taken_away_by_signals", lambda folder: None)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False, buffer=SimpleNamespace(read=read)))
    assert run(["percentiles", "-"]) == 3
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("goes_to", ["terminal", "pipe"])
def test_a_command_that_prints_nothing_for_a_second_says_that_it_works(goes_to: str) -> None:
    """Until it prints: then the line is gone. Here it waits for its input."""
    main, end = pty.openpty()
    words = [sys.executable, "-m", "ingest", "percentiles", "-", "--step", "all", "--t0", "0", "--recorded-unit", "ns"]
    stdout = end if goes_to == "terminal" else subprocess.PIPE
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=stdout, stderr=end) as process:
        os.close(end)
        seen = b""
        while not re.search(rb"tailboard percentiles: \d+ s", seen):
            assert select.select([main], [], [], 60)[0], seen
            seen += os.read(main, 1 << 16)
        process.stdin.write((FIO / "a_clat_hist.1.log").read_bytes())
        process.stdin.close()
        printed = b"" if goes_to == "terminal" else process.stdout.read()
        with suppress(OSError):  # the terminal has gone with the command
            while more := os.read(main, 1 << 16):
                seen += more
    assert process.returncode == 0, seen
    line, _, rest = (seen + printed).rpartition(b"tailboard percentiles: ")
    assert line.endswith(b"\r\x1b[K") and rest.partition(b" s")[2].startswith(b"\r\x1b[K")
    assert b"percentiles of" in rest


def test_a_command_without_a_terminal_says_nothing_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    before = signal.getsignal(signal.SIGALRM)
    output.WAITING.begin("tailboard load")
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (0, 0)
