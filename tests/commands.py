"""tailboard's commands as processes of their own, without the half second in which each would import the same modules.

A process that has imported them waits beside the tests; for each command it is forked, and the copy does what
`python -m ingest` does: with the command's own folder, environment and pipes. How the program starts is held in
tests/test_package.py and tests/test_docs.py, which start it anew.
"""

from __future__ import annotations

import functools
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.wires import wire_to

ROOT = Path(__file__).parents[1]
BY_START = ("PYTHON", "LC_", "LANG", "LD_", "OPENBLAS", "OMP_")  # read when a program starts, or with NumPy

WAITING = """
import json, os, socket, sys, time
import ingest.cli
import tests.imported
wire = socket.socket(fileno=int(sys.argv[1]))
while True:
    told, pipes, *_ = socket.recv_fds(wire, 1 << 20, 3)
    if not told:
        break
    child = os.fork()
    if not child:
        wire.close()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        asked = json.loads(told)
        for number in asked.get("closed", ()):
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        os.environ.clear()
        os.environ.update(asked["environment"])
        time.tzset()
        os.chdir(asked["folder"])
        sys.argv = ["tailboard", *asked["words"]]
        ingest.cli.main()
    for pipe in pipes:
        os.close(pipe)
    wire.send(str(child).encode())
    wire.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
"""


@functools.cache
def waiting() -> socket.socket:
    """Return the wire to the process that has imported everything."""
    return wire_to(WAITING)


def tailboard(
    *words: object,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    stdin: IO[bytes] | int | None = None,
    piped: str | bytes | None = None,
    text: bool = True,
    timeout: float = 600,
) -> subprocess.CompletedProcess:
    """Return what a command printed and its exit status, as subprocess.run; TAILBOARD_STORE is not passed on unless in `env`."""
    environment = {key: value for key, value in os.environ.items() if key != "TAILBOARD_STORE"} | (env or {})
    line = list(map(str, words))
    folder = cwd or Path.cwd()
    if any(name.startswith(BY_START) for name in env or ()):
        command = [sys.executable, "-m", "ingest", *line]
        given = {"input": piped} if piped is not None else {"stdin": stdin}
        return subprocess.run(command, capture_output=True, text=text, cwd=folder, timeout=timeout, env=environment, **given)
    told = json.dumps({"words": line, "folder": str(folder), "environment": environment}).encode()
    wire = waiting()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    with standard_input(stdin, piped) as source:
        socket.send_fds(wire, [told], [source, out_end, err_end])
    os.close(out_end)
    os.close(err_end)
    child = int(wire.recv(100))
    try:
        printed = read(out, err, timeout)
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = int(wire.recv(100))
    decoded = [io.TextIOWrapper(io.BytesIO(part), "utf-8").read() if text else part for part in printed]
    return subprocess.CompletedProcess(["tailboard", *line], status, *decoded)


def ended(*words: object, streams: tuple[str, str, str], cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
    """Return status, output and errors of a command with streams that are kept, closed, full, or left by their reader."""
    environment = {**os.environ, **env}
    closed = [number for number, state in enumerate(streams) if state == "closed"]
    told = {"words": list(map(str, words)), "folder": str(cwd), "environment": environment, "closed": closed}
    kept = [open(cwd / f"stream-{number}", "w+b") for number in range(3)]
    pipes = []
    for state, file in zip(streams, kept, strict=True):
        if state == "left":
            gone, end = os.pipe()
            os.close(gone)
        else:
            end = os.open("/dev/full", os.O_RDWR) if state == "full" else os.dup(file.fileno())
        pipes.append(end)
    socket.send_fds(waiting(), [json.dumps(told).encode()], pipes)
    for end in pipes:
        os.close(end)
    waiting().recv(100)
    status = int(waiting().recv(100))
    printed = []
    for file in kept:
        file.seek(0)
        printed.append(file.read().decode())
        file.close()
    return status, printed[1], printed[2]


@contextmanager
def standard_input(stdin: IO[bytes] | int | None, given: str | bytes | None) -> Iterator[int]:
    """Give what a command reads: a file or pipe of the caller's, a pipe with a text in it, or nothing."""
    if given is not None:
        there, ours = os.pipe()
        threading.Thread(target=written, args=(ours, given.encode() if isinstance(given, str) else given)).start()
    elif stdin is None or stdin == subprocess.DEVNULL:
        there = os.open(os.devnull, os.O_RDONLY)
    else:
        there = os.dup(stdin if isinstance(stdin, int) else stdin.fileno())
    try:
        yield there
    finally:
        os.close(there)


def written(pipe: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(pipe, "wb") as into:
        into.write(data)


def read(out: int, err: int, timeout: float) -> list[bytes]:
    """Return all that comes out of two pipes, and close them."""
    end = time.monotonic() + timeout
    found: dict[int, list[bytes]] = {out: [], err: []}
    with selectors.DefaultSelector() as ready:
        for pipe in found:
            ready.register(pipe, selectors.EVENT_READ)
        while ready.get_map():
            if not (events := ready.select(end - time.monotonic())):
                raise TimeoutError("a command did not end")
            for key, _ in events:
                if part := os.read(key.fd, 1 << 16):
                    found[key.fd].append(part)
                else:
                    ready.unregister(key.fd)
                    os.close(key.fd)
    return [b"".join(parts) for parts in found.values()]
