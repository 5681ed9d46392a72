"""Recordings whose truth is known: those of the repository, and real fio on this machine that is stopped for a while.

`RECORDED` are those of the repository: what happened by their raw rows (docs/explanation/findings.md). `record` runs three
hosts of real fio, one or all of which get SIGSTOP for 0.5 to 6 s; what else a shared machine did meanwhile is not known.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from story_runs import Cause

ROOT = Path(__file__).parents[1]
RUNTIME_S, THINK_US, SIZE = 25, 4000, "16m"


@dataclass(frozen=True)
class Recording:
    """A folder with logs, the labels that vary in it, and what happened."""

    folder: Path
    varied: frozenset[str]
    causes: Sequence[Cause]
    options: Sequence[str] = ()


def _known(path: str, varied: str, *causes: Cause, options: Sequence[str] = ()) -> Recording:
    return Recording(ROOT / path, frozenset(varied.split()), causes, options)


def _at(low: float, high: float, late: float | None = None, **who: str) -> Cause:
    """Return what happened to whom between two times; where it wore off, `late` is when that was over."""
    return Cause("recorded", "", who, low, high, core=(low, high if late is None else late))


RECORDED = (
    _known("examples/cbt-archive", "host volume job op", _at(29.8, 33.8, host="ceph-b"), _at(0, 75.1, host="ceph-c")),
    _known("tests/data/estimates/cbt", "host op", _at(0, 10.1, host="client2")),
    # The server stood still from 4.4 to 6.7 s, answers were late until 9.7 s; the generator was behind throughout.
    _known("tests/data/hdr/throttle.hdr", "", _at(4.4, 6.7, 9.7), _at(0, 15)),
    _known("tests/data/hdr/2.1.12-2-digits.hlog", "", _at(5, 6), _at(22, 23), options=("--recorded-unit", "ns")),
    _known("tests/data/fio/stall", "", _at(1.496, 4.496)),
    _known("tests/data/fio/cases/pbench-two-hosts", "host", _at(0, 6, host="127.0.0.2")),
    _known("tests/data/fio/cases/group-raw-333", "job"),
    _known("tests/data/fio/cases/two-prefixes", "host volume job op"),
)


def record(folder: Path, random: np.random.Generator) -> Recording:
    """Run three hosts of fio side by side and stop one of them, or all; FileNotFoundError where there is no fio.

    What happened is read from fio's logs of single I/Os, which are not left in the folder: no completion of a host that was
    stopped lies between two stamps around the signals.
    """
    hosts = [f"host-{number}" for number in (1, 2, 3)]
    hit = hosts if random.random() < 0.3 else [str(random.choice(hosts))]
    lasting = float(np.exp(random.uniform(np.log(0.5), np.log(6))))
    begin = float(random.uniform(2, RUNTIME_S - lasting - 2))
    place = folder / "results" / "00000000" / "id-0ec0ded0"
    place.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="tailboard-fio-") as scratch:
        started = {host: _started(Path(scratch) / host) for host in hosts}
        for delay, sign in ((begin, signal.SIGSTOP), (lasting, signal.SIGCONT)):
            time.sleep(delay)
            for host in hit:
                for number in _tree(started[host].pid):
                    os.kill(number, sign)
        gaps, zeros = {}, {}
        for host, process in started.items():
            if process.wait():
                raise OSError(f"fio of {host} ended with {process.returncode}")
            logs = Path(scratch) / host
            text = json.loads((logs / "json").read_text())
            zeros[host] = (text["timestamp_ms"] - max(job["job_runtime"] for job in text["jobs"])) / 1000
            stamps = np.sort([int(line.split(",")[0]) for log in logs.glob("*_clat.*") for line in log.read_text().splitlines()])
            widest = int(np.argmax(np.diff(stamps)))
            gaps[host] = stamps[widest] / 1000, stamps[widest + 1] / 1000
            (logs / "json").rename(place / f"json_output.0.{host}")
            for log in logs.glob("*_clat_hist.*"):
                log.rename(place / f"{log.name}.{host}")
    zero = min(zeros.values())
    low = float(np.median([gaps[host][0] + zeros[host] - zero for host in hit]))
    high = float(np.median([gaps[host][1] + zeros[host] - zero for host in hit]))
    who = {} if len(hit) > 1 else {"host": hit[0]}
    return Recording(folder, frozenset({"host", "job", "op"}), [Cause("outage", "", who, low, high, core=(low, high))])


def _tree(root: int) -> list[int]:
    """Return the process number of fio and those of its jobs."""
    return [root, *map(int, Path(f"/proc/{root}/task/{root}/children").read_text().split())]


def _started(folder: Path) -> subprocess.Popen[bytes]:
    """Start fio in a folder that is made; a pause after each I/O sets its pace."""
    folder.mkdir()
    options = f"""--ioengine=psync --filename=volume --size={SIZE} --rw=randrw --rwmixread=70 --bs=4k --numjobs=2
        --thinktime={THINK_US} --runtime={RUNTIME_S} --time_based --randrepeat=0 --norandommap --write_hist_log=output.0
        --write_lat_log=output.0 --log_hist_msec=1000 --output-format=json --output=json --name=story"""
    return subprocess.Popen(["fio", *options.split()], cwd=folder, stdout=subprocess.DEVNULL)
