"""A process beside the tests that has imported what it needs, and the wire on which it is asked."""

from __future__ import annotations

import atexit
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def wire_to(program: str) -> socket.socket:
    """Return the wire to a process that runs a program, with the number of its end as the argument; it ends with the tests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line = [sys.executable, "-c", program, str(theirs.fileno())]
    process = subprocess.Popen(line, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=ROOT)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours
