"""What loads into Elasticsearch ask of a server and cost their client: of this version and of an older one, by turns.

    git worktree add /tmp/before d8e7fed
    python benchmarks/loads.py --before /tmp/before [--rounds N] [--data FOLDER] [example many eight]

Loads go to the Elasticsearch double of the tests and to the sink, each in a process of its own, through a relay that counts
requests and bytes with their headers. CPU is user and system time of the whole process tree of `load`, or of all eight.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import generate
from generate import LogSet
from measure import MB, print_table
from servers import double, sink

ROOT = Path(__file__).parent.parent
ZERO = "2026-11-01T00:00:00Z"
RUN = "import sys; from ingest.cli import main; sys.exit(main())"
LOADERS = 8
BYTE_CODE = str(Path(tempfile.gettempdir()) / "tailboard-byte-code")  # is not compiled anew by each load
TARGETS = {"double": double, "sink": sink}


@dataclass(slots=True)
class Cost:
    """What loads took: requests, bytes to the server and from it, CPU seconds."""

    requests: int = 0
    sent: int = 0
    read: int = 0
    cpu: float = 0.0


class Relay:
    """Passes connections on to a server, and counts what goes over them."""

    def __init__(self, target: str) -> None:
        place = urlsplit(target)
        self._target = place.hostname or "", place.port or 0
        self.cost = Cost()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            asks = [True]  # whether the next bytes of the client begin a request: the server has answered the last
            threading.Thread(target=self._pass, args=(client, server, asks, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, asks, False), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, asks: list[bool], up: bool) -> None:  # noqa: FBT001  # a thread's
        try:
            while data := source.recv(1 << 18):
                with self._lock:
                    if up:
                        self.cost.requests += asks[0]
                        self.cost.sent += len(data)
                    else:
                        self.cost.read += len(data)
                    asks[0] = not up
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()


def environment(version: Path) -> dict[str, str]:
    """Return the environment in which commands are those of a version."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = {"PYTHONPATH": str(version), "PYTHONPYCACHEPREFIX": BYTE_CODE, "TAILBOARD_DEAD_LETTERS": os.devnull}
    return {**inherited, **own}


def loaded(version: Path, kind: str, commands: Sequence[Sequence[str]]) -> Cost:
    """Return what loads at once cost."""
    with TARGETS[kind]() as url:
        relay = Relay(url)
        run = [sys.executable, "-c", RUN]
        setup = [*run, "setup", "--elasticsearch", url]
        subprocess.run(setup, check=True, cwd=version, env=environment(version), stderr=subprocess.DEVNULL)
        words = ["--store", relay.url, "--run", "bench"]
        loads = [
            subprocess.Popen(
                [*run, "load", *command, *words],
                cwd=version,
                env=environment(version),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for command in commands
        ]
        for load in loads:
            assert load.stderr
            said = load.stderr.read()
            _, status, used = os.wait4(load.pid, 0)
            load.returncode = os.waitstatus_to_exitcode(status)
            if load.returncode:
                raise SystemExit(f"a load of {version} ended with {load.returncode}: {said.decode(errors='replace')[-400:]}")
            relay.cost.cpu += used.ru_utime + used.ru_stime
        relay.close()
        return relay.cost


def cases(data: Path, scratch: Path) -> dict[str, list[list[str]]]:
    """Return the loads of each case."""
    logs = generate.logs(data, LogSet(nonzero=(236, 236)))
    hosts = generate.logs(data, LogSet(files=LOADERS, rows=60))
    eight = []
    for number, log in enumerate(sorted(hosts.glob("*.log")), 1):
        folder = scratch / f"h{number}"
        folder.mkdir(exist_ok=True)
        (folder / "bench_clat_hist.1.log").write_bytes(log.read_bytes())
        eight.append([str(folder), "--t0", ZERO, "--host", f"h{number}"])
    return {
        "example": [[str(ROOT / "examples" / "cbt-archive")]],
        "many": [[str(logs), "--t0", ZERO]],
        "eight": eight,
    }


def main() -> None:
    """Load by turns and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="example, many, eight [default: all]")
    parser.add_argument("--before", type=Path, required=True, help="folder with an older version")
    parser.add_argument(
        "--data",
        type=lambda text: Path(text).resolve(),
        default=Path(__file__).parent / "data",
        help="folder for what is generated",
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--targets", default=",".join(TARGETS))
    words = parser.parse_args()
    words.data.mkdir(parents=True, exist_ok=True)
    versions = {"before": words.before.resolve(), "after": ROOT}
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        every = cases(words.data.resolve(), Path(scratch))
        for place in versions.values():  # for the byte code
            loaded(place, "double", every["example"])
        for name in words.names or every:
            for kind in words.targets.split(","):
                costs: dict[str, list[Cost]] = {version: [] for version in versions}
                for _ in range(words.rounds):
                    for version, place in versions.items():
                        costs[version].append(loaded(place, kind, every[name]))
                rows.append([name, kind, *_shown(costs["before"], costs["after"])])
                print(rows[-1], file=sys.stderr)
    headings = ("loads", "against", "requests", "MB sent", "MB read", "CPU s")
    print_table(f"loads before and after, medians of {words.rounds} pairs", headings, rows)


def _shown(before: Sequence[Cost], after: Sequence[Cost]) -> list[str]:
    def row(name: str, scale: float, digits: int) -> str:
        pair = [statistics.median(getattr(cost, name) for cost in costs) / scale for costs in (before, after)]
        return " -> ".join(f"{value:,.{digits}f}" for value in pair)

    return [row("requests", 1, 0), row("sent", MB, 2), row("read", MB, 2), row("cpu", 1, 2)]


if __name__ == "__main__":
    main()
