"""What a fleet costs, loaded and asked by the commands themselves; `docs/guides/scale.md` says what follows from it.

    python benchmarks/scale.py FOLDER [--hosts 10,100,1000] [--windows 360] [--parts 1] [--store URL] [WORK ...]

Each host has two fio histogram logs, of a job that reads and of one that writes: a row every 10 s, about 60 occupied bins each.
They are written to FOLDER (4 GB for 1,000 hosts and an hour) and stay there, as the stores do. With `--parts` so many loads
bring one run, each its share of the hosts. `--store` names a server: its requests and bytes are counted.

A WORK is `load` or one of QUESTIONS [default: all]. CPU is user and system time of a command and its children, memory the most
that all of them held together at one time (PSS: a page that is shared counts once).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from loads import RUN, Relay, environment  # beside this file
from loads import Cost as Counted
from measure import MB, SAMPLE_SECONDS, tree_memory

ROOT = Path(__file__).parent.parent
FINE_BINS, BINS, JOBS = 1856, 60, ("read", "write")
ZERO, START_S = "2026-11-01T00:00:00Z", 1_793_491_200
LOAD, LIVE = "load", "live page"
QUESTIONS = {
    "by op": "percentiles {store} --run {run} --by op --step 10s --format csv",
    "by host, every minute": "percentiles {store} --run {run} --by host --step 1m --format csv",
    "by host, whole run": "percentiles {store} --run {run} --by host,op --step all --format csv",
    "by job, every minute": "percentiles {store} --run {run} --by job --step 1m --format csv",
    "one host": "percentiles {store} --run {run} --where host=h00003 --by op --step 10s --format csv",
    "heat map": "show heatmap {store} --run {run} --format csv",
    "explain": "explain {store} --run {run} --json",
    "check": "check {store} --run {run} --sla p99<200ms --format csv",
    "report": "report {store} --run {run} -o {folder}/report.html",
    LIVE: "report --live {store} --run {run} --port {port}",
    "runs list": "runs list --store {store} --json",
    "runs check": "runs check --store {store} --json",
    "compare": "compare {store} --run {run} --at half --marks {folder}/marks.csv --json",
    "export csv": "export {store} --run {run} --format csv",
    "export hlog": "export {store} --run {run} --format hlog",
    "export hgrm": "export {store} --run {run} --format hgrm",
    "export parquet": "export {store} --run {run} --format parquet -o {folder}/export.parquet",
    "export otlp": "export {store} --run {run} --format otlp",
    "export documents": "export {store} --run {run} --format documents",
}
FINE = {0, 1, 5}  # exit status: objectives may be violated, or samples missing
PORT, PAGE_SECONDS = 18471, 300


def logs(folder: Path, hosts: int, windows: int) -> Path:
    """Return the folder of the logs of so many hosts, made where it lacks."""
    made, target = folder / f"logs-{windows}", folder / f"logs-{windows}-{hosts}"
    made.mkdir(parents=True, exist_ok=True)
    target.mkdir(exist_ok=True)
    for host in range(hosts):
        for place, job in enumerate(JOBS):
            name = f"{job}_clat_hist.{place + 1}.log.h{host:05d}"
            if not (made / name).exists():
                rows = _rows(np.random.default_rng(2 * host + place), place, windows)
                (made / f".{name}").write_bytes(b"".join(rows))
                (made / f".{name}").rename(made / name)
            if not (target / name).exists():
                (target / name).hardlink_to(made / name)
    return target


def _rows(random: np.random.Generator, direction: int, windows: int) -> list[bytes]:
    """Return the rows of a log: occupied bins around a centre that wanders, between cells without a sample."""
    starts = random.integers(700, 800, windows).tolist()
    steps = random.integers(1, 7, (windows, BINS)).tolist()
    counts = np.maximum(1, random.lognormal(1.5, 1.2, (windows, BINS)).astype(np.int64)).tolist()
    rows = []
    for number, (start, gaps, values) in enumerate(zip(starts, steps, counts, strict=True), 1):
        span = b"".join(b"0, " * (gap - 1) + b"%d, " % value for gap, value in zip(gaps, values, strict=True))
        rest = FINE_BINS - start - sum(gaps)
        stamp = (START_S + 10 * number) * 1000 + int(random.integers(0, 3))
        rows.append(b"%d, %d, 4096, %b%b%b0\n" % (stamp, direction, b"0, " * start, span, b"0, " * (rest - 1)))
    return rows


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took: CPU seconds, seconds by the clock, the most memory, the bytes that it said."""

    cpu: float
    wall: float
    peak: int
    said: int


def cost(words: Sequence[str], folder: Path, page: str = "") -> Cost:
    """Return what a command took; one that serves a page is ended once it has given that. SystemExit where it fails."""
    began, peak, ended = time.perf_counter(), 0, 0
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", RUN, *words], env=environment(ROOT), stdout=stdout, stderr=stderr)
    asking = Thread(target=_ask, args=(page, process.pid), daemon=True)
    if page:
        asking.start()
    while not ended:
        peak = max(peak, tree_memory(process.pid))
        time.sleep(SAMPLE_SECONDS)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in FINE and not page:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}: {err.read_text(errors='replace')[-400:]}")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - began, peak, out.stat().st_size)


def _ask(page: str, process: int) -> None:
    """Ask for a page until it is there, then end the process that serves it."""
    deadline = time.monotonic() + PAGE_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(page, timeout=PAGE_SECONDS) as answer:
                answer.read()
                break
        except OSError:
            time.sleep(SAMPLE_SECONDS)
    os.kill(process, signal.SIGINT)


def works(hosts: int, told: argparse.Namespace) -> Iterator[tuple[str, Cost, Counted | None]]:
    """Yield what each work took at so many hosts, and what a server was sent."""
    folder = told.folder / f"{hosts}"
    folder.mkdir(exist_ok=True)
    (folder / "marks.csv").write_text(f"{START_S + 5 * told.windows},half\n")
    relay = Relay(told.store) if told.store else None
    store = relay.url if relay else f"sqlite:{folder / 'fleet.db'}"
    run = f"fleet-{hosts}"
    for work in told.works or [LOAD, *QUESTIONS]:
        if work == LOAD:
            if not relay:
                for stale in folder.glob("fleet.db*"):
                    stale.unlink()
            every = sorted(logs(told.folder, hosts, told.windows).iterdir(), key=lambda path: path.name.rsplit(".", 1)[1])
            for part in range(told.parts):
                share = folder / f"part-{part}"
                shutil.rmtree(share, ignore_errors=True)
                share.mkdir()
                for path in every[part * len(every) // told.parts : (part + 1) * len(every) // told.parts]:
                    (share / path.name).hardlink_to(path)
                words = ["load", str(share), "--run", run, "--store", store]
                yield f"load {part + 1} of {told.parts}", cost(words, folder), _taken(relay)
                shutil.rmtree(share)
            continue
        words = QUESTIONS[work].format(store=store, run=run, folder=folder, port=PORT).split()
        yield work, cost(words, folder, f"http://127.0.0.1:{PORT}/" if work == LIVE else ""), _taken(relay)
    if relay:
        relay.close()


def _taken(relay: Relay | None) -> Counted | None:
    """Return what has gone over a relay since it was asked last."""
    if relay is None:
        return None
    taken, relay.cost = relay.cost, Counted()
    return taken


def main() -> None:
    """Print a row a number of hosts and work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"{', '.join([LOAD, *QUESTIONS])} [default: all]")
    parser.add_argument("--hosts", default="10,100,1000")
    parser.add_argument("--windows", type=int, default=360)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--store", default="")
    told = parser.parse_args()
    if unknown := [work for work in told.works if work not in (LOAD, *QUESTIONS)]:
        parser.error(f"no work {unknown[0]!r}: there are {', '.join([LOAD, *QUESTIONS])}")
    told.folder.mkdir(parents=True, exist_ok=True)
    for hosts in map(int, told.hosts.split(",")):
        logs(told.folder, hosts, told.windows)
    headings = "hosts", "work", "CPU s", "s", "peak MB", "said MB", *(("requests", "sent MB", "read MB") if told.store else ())
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
    for hosts in map(int, told.hosts.split(",")):
        for work, took, sent in works(hosts, told):
            row = [f"{hosts:,}", work, f"{took.cpu:.2f}", f"{took.wall:.1f}", f"{took.peak / MB:.0f}", f"{took.said / MB:.2f}"]
            row += [f"{sent.requests:,}", f"{sent.sent / MB:.1f}", f"{sent.read / MB:.1f}"] if sent else []
            print(f"| {' | '.join(row)} |", flush=True)
        if (store := told.folder / f"{hosts}" / "fleet.db").exists():
            print(f"| {hosts:,} | the file: {store.stat().st_size / MB:,.1f} MB |{' |' * (len(headings) - 2)}", flush=True)


if __name__ == "__main__":
    main()
