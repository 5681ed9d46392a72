"""tailboard's commands at the same time, each a process of its own that may be killed at any moment.

One process has imported everything and forks a keeper for each command; the keeper tells the command's number, then how it
ended. See tests/commands.py for commands one after another.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.wires import wire_to

ROOT = Path(__file__).parents[1]

KEEPING = """
import importlib, json, os, pkgutil, signal, socket, sys
import ingest.cli
for module in pkgutil.walk_packages(ingest.__path__, "ingest."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
import urllib3
wire = socket.socket(fileno=int(sys.argv[1]))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    told, pipes, *_ = socket.recv_fds(wire, 1 << 20, 2)
    if not told:
        break
    if os.fork():
        for pipe in pipes:
            os.close(pipe)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wire.close()
    printed, status = pipes
    child = os.fork()
    if not child:
        os.setsid()
        os.close(status)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        asked = json.loads(told)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        sys.argv = ["tailboard", *asked["words"]]
        ingest.cli.main()
    os.write(status, b"%d\\n" % child)
    os.write(status, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)
"""


@functools.cache
def keeping() -> socket.socket:
    """Return the wire to the process that has imported everything."""
    return wire_to(KEEPING)


@dataclass
class Running:
    """A command that is under way."""

    words: list[str]
    number: int
    told: Path
    _status: int = field(repr=False)

    def kill(self) -> None:
        """Kill it with all its processes, if it has not ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit status, of a killed one -9, once it has ended."""
        with open(self._status, "rb") as pipe:
            return int(pipe.read())

    @property
    def printed(self) -> str:
        """Return what it has printed on both streams."""
        return self.told.read_text(errors="replace")


def started(words: list[str], folder: Path) -> Running:
    """Return a command that has been started in a folder."""
    number, name = tempfile.mkstemp(dir=folder, suffix=".told")
    there, ours = os.pipe()
    environment = {key: value for key, value in os.environ.items() if key != "TAILBOARD_STORE"}
    told = json.dumps({"words": words, "folder": str(folder), "environment": environment}).encode()
    socket.send_fds(keeping(), [told], [number, ours])
    os.close(number)
    os.close(ours)
    child = b""
    while not child.endswith(b"\n"):
        child += os.read(there, 1)
    return Running(words, int(child), Path(name), there)
