"""Random job files for a real fio, and what its logs hold by an oracle that knows nothing of tailboard's readers.

Each case is recorded with a log of every I/O. Where the case says that its user has none, that log lies apart in `oracle/`, and fio's
JSON does not name it. The oracle is NumPy on these logs and on the bins of json+: counts, means, maxima and nearest-rank percentiles
by op and job, and completions up to each edge of windows. tailboard is asked by its command line alone.

    python -m tests.read.random_fio --runs 100 --variants 100 --gaps 10 --seed 1 --keep /tmp/failing
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.cli import run as tailboard

TAILBOARD = (sys.executable, "-m", "ingest")
ORACLE = "../oracle/r"  # prefix of the logs that the user of a case does not have
OPS = ("read", "write", "trim")
KINDS = {"clat": "completion", "lat": "total"}
LOG = re.compile(r"_(?P<kind>clat_hist|clat|lat)(?:\.(?P<job>\d+))?\.log(?:\.(?P<host>.+))?$")
RANKS = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9}
NEAR_MS = 3  # that the start of a run, or the stamp of an I/O, may differ between two logs of the same
END_MS = 500  # that a run may end after its last I/O
HARMLESS = re.compile(
    "compounded by fio --client(: differenced.*)?$|the start of the run is unknown"
)  # of numbers nothing is lacking
Ints = NDArray[np.int64]


# ---- cases ----


@dataclass(frozen=True, slots=True)
class Case:
    """A job file, and how fio is run with it."""

    seed: int
    job: str
    jobs: int  # of one fio process
    every_ms: int  # log_hist_msec
    coarseness: int  # the coarsest of its logs
    mixed: bool  # of unlike coarseness
    hist: bool
    raw: bool  # the user has the logs of single I/Os
    grouped: bool  # group_reporting of more than one job
    shared_group: bool  # more than one section in one group
    folders: bool  # hist/ and raw/
    servers: int
    unified: bool
    per_job: bool  # a log for each job
    aligned: bool  # times of its logs can be told: epoch stamps, or one start of all jobs
    epoch: bool
    stop: tuple[float, float] | None = None  # fio is stopped after so many s, for so many s


def job_file(shared: dict[str, object], sections: Sequence[dict[str, object]]) -> str:
    """Return a job file; an option that is True has no value."""
    texts = [f"{name}" if value is True else f"{name}={value}" for name, value in shared.items()]
    lines = ["[global]", *texts]
    for name, section in zip("abcd", sections, strict=False):
        lines += [f"[{name}]", *(f"{key}" if value is True else f"{key}={value}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def workload(rng: random.Random, least: int = 40) -> dict[str, object]:
    """Return what a section does."""
    rate = rng.choice([least, 120, 300, 700])
    kind = rng.choice(["randread", "randread", "randwrite", "read", "write", "randrw", "randrw", "rare", "randtrim"])
    if kind == "rare":
        return {"rw": "randrw", "ioengine": "null", "rate_iops": f"{rate},{rng.choice([2, 5, 20])}"}
    engine = {"ioengine": "null"}
    if kind != "randtrim" and rng.random() < 0.4:  # latencies of another order
        engine = {"ioengine": "psync", "filename": "/dev/zero", "bs": rng.choice(["64k", "256k"])}
    return {
        "rw": kind,
        **engine,
        "rate_iops": f"{rate},{max(rate // 2, 1)},{rate}" if kind == "randrw" else f"{rate},{rate},{rate}",
    }


SLOW: dict[str, object] = {"rw": "read", "ioengine": "psync", "filename": "/dev/urandom", "bs": "512k", "rate_iops": 30}


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)

    def likely(share: float) -> bool:
        return rng.random() < share

    sections = [workload(rng) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    jobs = 0
    for section in sections:
        section["numjobs"] = rng.choice([1, 1, 2, 2, 3])
        jobs += int(str(section["numjobs"]))
    every, coarseness = rng.choice([100, 200, 250, 500, 500, 1000]), rng.choice([0, 0, 0, 1, 2, 3, 6])
    shared: dict[str, object] = {"size": "1g", "time_based": True, "runtime": f"{rng.choice([1300, 1800, 2200, 2900])}ms"}
    shared |= {"log_hist_msec": every, "log_hist_coarseness": coarseness}
    hist, raw = likely(0.88), likely(0.4)
    raw = raw or not hist
    layout = rng.choice(["one", "one", "unlike", "unlike", "folders", "sections"])
    of_hist, of_raw = {"one": ("a", "a"), "unlike": ("h", "l"), "folders": ("hist/h", "raw/l"), "sections": ("", "")}[layout]
    for number, section in enumerate(sections):
        if hist:
            section["write_hist_log"] = of_hist or "abc"[number]
        section["write_lat_log"] = (of_raw or f"{'abc'[number]}") if raw else ORACLE
    epoch, unified, per_job = likely(0.5), likely(0.08), not likely(0.15)
    stonewall = len(sections) > 1 and likely(0.35)
    group = rng.choice(["no", "no", "all", "all", "last"])
    new_group = likely(0.2)
    for section in sections[1:]:
        if stonewall:
            section["stonewall"] = True
        if new_group:
            section["new_group"] = True
    if group == "all":
        shared["group_reporting"] = True
    elif group == "last":
        sections[-1]["group_reporting"] = True
    shared |= {"log_unix_epoch": 1} if epoch else {}
    shared |= {"unified_rw_reporting": 1} if unified else {}
    shared |= {} if per_job else {"per_job_logs": 0}
    shared |= {"thread": True} if likely(0.25) else {}
    servers = rng.choice([1, 2]) if likely(0.14) else 0
    shared |= {"log_offset": 1} if likely(0.25) and not servers else {}  # fio --client 3.33 does not survive it
    shared |= {"ramp_time": "600ms"} if likely(0.2) else {}
    if mixed := len(sections) > 1 and likely(0.1):
        sections[0]["log_hist_coarseness"] = other = rng.choice([0, 3])
        coarseness = max(coarseness, other)
    of_last = int(str(sections[-1]["numjobs"]))
    one_group = len(sections) > 1 and not stonewall and not new_group
    return Case(
        seed=seed, job=job_file(shared, sections), jobs=jobs, every_ms=every, coarseness=coarseness, mixed=mixed, hist=hist, raw=raw,
        grouped=(group == "all" and jobs > 1) or (group == "last" and (of_last > 1 or one_group)), shared_group=group != "no" and one_group,
        folders=layout == "folders", servers=servers, unified=unified, per_job=per_job,
        aligned=epoch or (not stonewall and not servers), epoch=epoch,
    )  # fmt: skip


def gap_case(seed: int) -> Case:
    """Return a case in which fio is stopped for a while."""
    rng = random.Random(seed)
    jobs, every, epoch, raw = (
        rng.choice([1, 2, 3]),
        rng.choice([100, 200, 250, 500, 1000]),
        rng.random() < 0.5,
        rng.random() < 0.2,
    )
    at, length = rng.uniform(1.5, 2.5) + every / 1000, rng.uniform(1, 6)
    shared: dict[str, object] = {"size": "1g", "time_based": True, "runtime": f"{round((at + length + 2.5) * 1000)}ms"}
    shared |= {"log_hist_msec": every, "write_hist_log": "h", "write_lat_log": "l" if raw else ORACLE}
    shared |= {"log_unix_epoch": 1} if epoch else {}
    sections = [workload(rng, 80) | {"numjobs": jobs}]
    if rng.random() < 0.5:  # some of it in flight at any moment
        sections, jobs = [*sections, SLOW], jobs + 1
    return Case(
        seed=seed, job=job_file(shared, sections), jobs=jobs, every_ms=every, coarseness=0, mixed=False, hist=True,
        raw=raw, grouped=False, shared_group=False, folders=False, servers=0, unified=False, per_job=True, aligned=True, epoch=epoch,
        stop=(at, length),
    )  # fmt: skip


# ---- recording ----


def family(process: int) -> list[int]:
    """Return a process and its descendants: fio's jobs lead sessions of their own."""
    found = [process]
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [each for child in children.read_text().split() for each in family(int(child))]
    return found


@contextmanager
def started(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a session of its own, which ends with the block."""
    with (folder / "said.txt").open("ab") as out:
        process = subprocess.Popen(["nice", *command], cwd=folder, stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                for each in family(process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
                process.wait()


def listening(host: str, folder: Path, within: ExitStack) -> str:
    """Start a server of fio and return its address."""
    with socket.socket() as free:
        free.bind((host, 0))
        port = free.getsockname()[1]
    folder.mkdir()
    within.enter_context(started(["fio", f"--server=ip:{host},{port}"], folder))
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex((host, port)) == 0:
                return f"ip:{host},{port}"
        time.sleep(0.1)
    raise TimeoutError(f"fio --server does not listen: {folder}")


def record(case: Case, folder: Path) -> Path:
    """Run fio; return the folder that its user has, `run`."""
    run = folder / "run"
    for name in ("run/hist", "run/raw", "oracle"):
        (folder / name).mkdir(parents=True)
    (folder / "job.fio").write_text(case.job)
    with ExitStack() as within:
        files = ["../job.fio"]
        if case.servers:
            hosts = [f"127.0.0.{number + 2}" for number in range(case.servers)]
            files = [word for host in hosts for word in (f"--client={listening(host, folder / host, within)}", "../job.fio")]
        command = ["fio", "--output-format=json+", "--output=out.json", *files]
        fio = within.enter_context(started(command, run))
        if case.stop:
            time.sleep(case.stop[0])
            for told in (signal.SIGSTOP, signal.SIGCONT):
                for process in family(fio.pid):
                    with suppress(ProcessLookupError):
                        os.kill(process, told)
                time.sleep(case.stop[1] if told == signal.SIGSTOP else 0)
        if fio.wait(60):
            raise OSError(f"fio failed: {folder}: {(run / 'said.txt').read_text()[-400:]}")
    (run / "said.txt").rename(folder / "said.txt")
    for name in ("hist", "raw"):
        if not any((run / name).iterdir()):
            (run / name).rmdir()
    out = run / "out.json"
    head, text = out.read_text().split("{", 1)
    document = json.loads("{" + text)
    for options in options_of(document):
        if options.get("write_lat_log") == ORACLE:
            del options["write_lat_log"]
    out.write_text(head + json.dumps(document, indent=1))
    return run


def options_of(document: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield all options in fio's JSON."""
    shared = document.get("global options", {})
    yield from shared if isinstance(shared, list) else [shared]
    for job in document.get("jobs", document.get("client_stats", [])):
        yield job.get("job options", {})


# ---- oracle ----


def bins(values: Ints) -> Ints:
    """Return fio's bins (stat.c: 64 of each power of two)."""
    shift: Ints = np.maximum(np.frexp(values.astype(np.float64))[1] - 7, 0).astype(np.int64)
    numbers: Ints = (shift << 6) + (values >> shift)
    return numbers


def edges(numbers: Ints) -> Ints:
    """Return the lower edges of fio's bins."""
    shift = np.maximum((numbers >> 6) - 1, 0)
    return np.where(numbers < 128, numbers, (64 + (numbers & 63)) << shift).astype(np.int64)


def coarse(value: float, coarseness: int) -> int:
    """Return the bin of a value in a log of some coarseness."""
    return int(bins(np.array([value], dtype=np.int64))[0]) >> coarseness


@dataclass(slots=True)
class Truth:
    """Latencies in ns, ascending, with how often each; the mean and the maximum are exact."""

    values: Ints
    counts: Ints
    mean: float
    highest: int

    @classmethod
    def of(cls, values: Ints) -> Truth:
        """Return that of single I/Os."""
        return cls(np.sort(values), np.ones(len(values), dtype=np.int64), float(values.mean()), int(values.max()))

    def percentile(self, p: float) -> int:
        """Return the nearest rank."""
        total = int(self.counts.sum())
        rank = max(int(np.ceil(round(p * total / 100, 6))), 1)
        return int(self.values[np.searchsorted(np.cumsum(self.counts), rank)])

    def unlike(self, row: dict[str, Any], coarseness: int) -> list[str]:
        """Say in what a row of an answer differs by more than bins do."""
        total = int(self.counts.sum())
        found = [f"count {row['count']} for {total}"] if row["count"] != total else []
        highest = coarse(self.highest, coarseness)  # an answer may give the upper edge
        if row["max"] is None or highest not in {coarse(row["max"], coarseness), coarse(row["max"] - 1, coarseness)}:
            found.append(f"max {row['max']} for {self.highest}")
        first = bins(self.values) >> coarseness << coarseness
        slack = float(((edges(first + (1 << coarseness)) - edges(first)) * self.counts).sum()) / total / 2 + 1
        if row["mean"] is None or abs(row["mean"] - self.mean) > slack * 1.01:
            found.append(f"mean {row['mean']} for {self.mean:.0f}")
        for name, p in RANKS.items():
            if row[name] is not None and coarse(row[name], coarseness) != coarse(self.percentile(p), coarseness):
                found.append(f"{name} {row[name]} for {self.percentile(p)}")
        return found


Truths = dict[tuple[str, ...], Truth]


@dataclass(slots=True)
class Log:
    """A log of single I/Os and the rows of the histogram log beside it, by op: stamps in ms, ascending."""

    stamps: dict[str, Ints] = field(default_factory=dict)
    latencies: dict[str, Ints] = field(default_factory=dict)  # in the order of stamps
    rows: dict[str, Ints] = field(default_factory=dict)


@dataclass(slots=True)
class Oracle:
    """What fio did in a case."""

    op: Truths  # kind, op
    job: Truths  # kind, op, job
    total: Truths  # kind
    logs: list[Log]  # of completions; none where not all of fio's logs of single I/Os are there (fio --client, per_job_logs=0)
    counts: dict[str, int]  # by kind, as fio's JSON says
    garbage: bool  # fio itself wrote counts into histogram logs that nothing can have counted, as some of fio --client are


def table(path: Path, columns: int) -> Ints:
    """Return the first columns of a log."""
    lines = [line.split(b", ", columns)[:columns] for line in path.read_bytes().splitlines()]
    return np.array(lines, dtype=np.int64).reshape(-1, columns)


def totals(document: dict[str, Any], kind: str) -> dict[str, Truth]:
    """Return what fio's JSON says itself by op, where it has bins."""
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for job in document.get("jobs", document.get("client_stats", [])):
        for op in (*OPS, "mixed"):
            said = job.get(op, {}).get(f"{kind}_ns", {})
            if job.get("jobname") != "All clients" and said.get("N"):
                parts[op].append(said)
    found = {}
    for op, entries in parts.items():
        counts = Counter[int]()
        for each in entries:
            counts.update({int(value): count for value, count in each.get("bins", {}).items()})
        values = np.array(sorted(counts), dtype=np.int64)
        number = sum(each["N"] for each in entries)
        mean = sum(each["mean"] * each["N"] for each in entries) / number
        held = np.array([counts[int(value)] for value in values], dtype=np.int64)
        found[op] = Truth(values, held, mean, max(each["max"] for each in entries))
    return found


def counted_by(document: dict[str, Any], kind: str) -> int:
    """Return how many I/Os fio's JSON counts of a kind."""
    jobs = [job for job in document.get("jobs", document.get("client_stats", [])) if job.get("jobname") != "All clients"]
    return sum(job.get(op, {}).get(f"{kind}_ns", {}).get("N", 0) for job in jobs for op in (*OPS, "mixed"))


def oracle(case: Case, folder: Path) -> Oracle:
    """Return what fio did, from its logs of single I/Os and its JSON."""
    logs: dict[tuple[str, str], Log] = defaultdict(Log)
    values: dict[tuple[str, ...], list[Ints]] = defaultdict(list)
    garbage = False
    for path in sorted(folder.rglob("*.log*")):
        named = LOG.search(path.name)
        if named is None or not path.stat().st_size:
            continue
        garbage |= named["kind"] == "clat_hist" and re.search(rb", \d{13}", path.read_bytes()) is not None
        kind, place = named["kind"], (named["job"] or "", named["host"] or "")
        rows = table(path, 2 if kind == "clat_hist" else 3)
        for number, op in enumerate(OPS):
            mine = rows[rows[:, -1] == number] if kind == "clat_hist" else rows[rows[:, 2] == number]
            if not len(mine):
                continue
            log = logs[place]
            if kind == "clat_hist":
                log.rows[op] = np.sort(np.concatenate([log.rows.get(op, mine[:0, 0]), mine[:, 0]]))
                continue
            if kind == "clat":
                stamps = np.concatenate([log.stamps.get(op, mine[:0, 0]), mine[:, 0]])
                order = np.argsort(stamps, kind="stable")
                log.stamps[op] = stamps[order]
                log.latencies[op] = np.concatenate([log.latencies.get(op, mine[:0, 1]), mine[:, 1]])[order]
            for key in ((KINDS[kind],), (KINDS[kind], op), (KINDS[kind], op, place[0])):
                values[key].append(mine[:, 1])
    raw = {key: Truth.of(np.concatenate(each)) for key, each in values.items()}
    text = (folder / "run" / "out.json").read_text()
    document = json.loads(text[text.index("{") :])
    counts = {kind: counted_by(document, name) for name, kind in KINDS.items()}
    whole = all(
        sum(int(each.counts.sum()) for each in (totals(document, "clat")).values()) == int(raw[kind,].counts.sum())
        for kind in KINDS.values() if (kind,) in raw
    )  # fmt: skip
    if whole:
        total, by_op, by_job = ({key: truth for key, truth in raw.items() if len(key) == length} for length in (1, 2, 3))
        return Oracle(by_op, by_job if case.per_job else {}, total, list(logs.values()), counts, garbage)
    said: Truths = {("completion", op): truth for op, truth in totals(document, "clat").items() if op != "mixed"}
    return Oracle(said, {}, {}, [], counts, garbage)


def completed(log: Log, op: str, until_ms: float) -> int:
    """Return how many I/Os of a log had completed by a moment."""
    return int(np.searchsorted(log.stamps.get(op, np.empty(0)), until_ms, side="right"))


def bounds(case: Case, log: Log, op: str, at: float) -> tuple[int, int]:
    """Return how many completions at least and at most an answer may have by a moment (ms).

    I/Os may lie anywhere within their row; but fio writes a row at the first completion after its interval, so that what a longer row
    holds completed within the first interval, or at its stamp. That of the first row begins with the first I/O that completes in a
    later ms than 0 (stat.c): all rows together show by when that was.
    """
    whole = completed(log, op, np.inf)
    if whole and at > log.stamps[op][-1] + END_MS:
        return whole, whole
    if not case.hist:
        return completed(log, op, at - NEAR_MS), completed(log, op, at + NEAR_MS)
    rows = log.rows.get(op, np.empty(0, dtype=np.int64))
    if not case.per_job:  # rows of several jobs in one log: as wide as any
        first = log.stamps[op][0] if op in log.stamps else 0
        width = max(
            int(np.diff(rows, prepend=first if case.epoch else 0, append=log.stamps[op][-1]).max(initial=0)), case.every_ms * 2
        )
        return completed(log, op, at - width - NEAR_MS), completed(log, op, at + width + NEAR_MS)
    row = int(np.searchsorted(rows, at))
    begin = rows[row - 1] if row else log.stamps[op][0] if whole else -np.inf
    end = rows[row] if row < len(rows) else np.inf
    if end - begin > 2 * case.every_ms and np.isfinite(end - begin):  # a gap
        due = begin + case.every_ms if row else int((rows - case.every_ms * np.arange(len(rows))).min())
        first = at <= due + NEAR_MS
        least, most = (begin, end) if first else (at, at + 2 * NEAR_MS)
        most = end + NEAR_MS if at >= end - NEAR_MS else min(most, end) - NEAR_MS  # at its own stamp both sides are right
        return completed(log, op, min(least, end) - NEAR_MS), completed(log, op, most)
    return completed(log, op, begin - NEAR_MS), completed(log, op, end + NEAR_MS)


def highest(case: Case, log: Log, op: str, start: float, end: float) -> int:
    """Return the longest latency that an answer may have in a window (ms): of I/Os in the rows that it touches.

    Which I/O of a late row completed at its stamp is known where one took as long as the gap or the interval; else it may be any.
    """
    rows = log.rows.get(op, np.empty(0, dtype=np.int64))
    reach = [(start, end)]
    if case.hist:
        ends = np.append(rows, np.inf)
        touched = [each for each in zip(np.append(-np.inf, rows), ends, strict=True) if each[0] < end and each[1] > start]
        gaps = [row for row in touched if np.isfinite(row[1] - row[0]) and row[1] - row[0] > 2 * case.every_ms]
        reach = [row for row in touched if row not in gaps]
        for low, high in gaps:
            own = log.latencies[op][slice(*np.searchsorted(log.stamps[op], (low + NEAR_MS, high + 1)))]
            reaches = own.max(initial=0) > min(high - low - case.every_ms, case.every_ms) * 1_000_000
            if start < low + case.every_ms + NEAR_MS:
                reach.append((low, high - 2 * NEAR_MS if reaches else high))
            if high <= end + NEAR_MS:
                reach.append((high if reaches else low, high))
    within = [slice(*np.searchsorted(log.stamps[op], (low - NEAR_MS, high + NEAR_MS + 1))) for low, high in reach]
    return max((int(log.latencies[op][each].max(initial=0)) for each in within), default=0)


# ---- questions ----


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a question.

    right; named: right, with a caveat that names the file that a variant changed; true: right by luck, as fio's files do not tell
    what the caveat doubts (`DOUBTED`); said: wrong, with a caveat or complete=false; refused; caveat: right, with a caveat all the
    same; SILENT: wrong without a word.
    """

    question: str
    verdict: str
    text: str


WORST = ("right", "named", "true", "said", "refused", "caveat", "SILENT")


def question(case: Case, name: str, folder: Path) -> list[str]:
    """Return the command line of a question."""
    by = {"op": "op,kind", "job": "job,op,kind", "all": "kind", "windows": "op,kind"}[name]
    step = f"{max(500, case.every_ms)}ms" if name == "windows" else "all"
    return [
        *(*TAILBOARD, "percentiles", str(folder), "--step", step, "--by", by),
        *("--format", "ndjson", "-p", ",".join(each[1:] for each in RANKS)),
    ]


def ask(command: Sequence[str], *, fails: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows and notes of an answer of the command line (within this process: a start takes longer than an answer).

    Where it ends with another status than 0 there are no rows, unless it `fails` by what it found.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = tailboard(list(command[len(TAILBOARD) :]))
    notes = [line for line in err.getvalue().splitlines() if line.strip() and not HARMLESS.search(line)]
    if status and not (fails and status == 1):
        return [], [f"exit {status}", *notes]
    return [json.loads(line) for line in out.getvalue().splitlines()], notes


def seconds(moment: str | float) -> float:
    """Return a time of an answer as seconds, of the epoch where it is known."""
    if isinstance(moment, str) and moment.endswith("s"):  # +1.5s: there is no clock for all
        return float(moment[:-1])
    return moment if isinstance(moment, int | float) else datetime.fromisoformat(moment).timestamp()


def by_labels(truths: Truths, rows: list[dict[str, Any]], case: Case) -> tuple[list[str], bool]:
    """Return in what rows differ from truths, and whether each that differs says that it is not complete."""
    labels = ("kind", "op", "job")[: len(next(iter(truths), ()))]
    found, said = [], True
    rest = dict(truths)
    known, kinds = {key[0] for key in truths}, {row["kind"] for row in rows}
    for row in rows:
        key = tuple(row[label] for label in labels) if "run" not in row else (row["run"],)
        truth = rest.pop(key, None)
        if truth is None:
            remainder = row.get("job") == "" or row.get("op") == "mixed" or row["kind"] not in known
            unlike = [] if remainder else [f"count {row['count']} of nothing"]
        else:
            unlike = truth.unlike(row, case.coarseness)
        if unlike:
            found.append(f"{' '.join(key)}: {', '.join(unlike)}")
            said &= not row["complete"]
    mixed = (
        {row["kind"] for row in rows if row["op"] == "mixed"} if "op" in labels else set()
    )  # all of it, where there is no more
    for key, truth in rest.items():
        if key[0] in kinds - mixed and (case.raw or key[0] == "completion"):
            found.append(f"{' '.join(key)}: none of {truth.counts.sum()}")
            said &= any(row["kind"] == key[0] and not row["complete"] for row in rows)
    return found, said


def lost(counts: dict[str, int], rows: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Return of which kinds an answer holds fewer I/Os than fio's JSON counts, and whether each of them says so."""
    found, said = [], True
    for kind in sorted({row["kind"] for row in rows} & counts.keys()):
        mine = [row for row in rows if row["kind"] == kind]
        if (held := sum(row["count"] for row in mine)) < counts[kind]:
            found.append(f"{kind}: {held} of {counts[kind]}")
            said &= any(not row["complete"] for row in mine)
    return found, said


def by_windows(case: Case, logs: list[Log], rows: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """The same for completions up to each edge of windows; times of logs without epoch stamps are those of the answer."""
    rows = [row for row in rows if row["kind"] == "completion"]
    if not rows:
        return [], False
    zero = 0.0 if case.epoch else min(seconds(row.get("origin", row["start"])) for row in rows)
    step = max(500, case.every_ms)
    found, said = [], True
    for op in sorted({op for log in logs for op in log.stamps}):
        mine = [row for row in rows if row.get("op") == op]
        ends = np.array([round(seconds(row["start"]) * 1000) // step * step + step for row in mine])
        counts = np.array([row["count"] for row in mine])
        stamps = np.concatenate([log.stamps[op] for log in logs if op in log.stamps]) + zero * 1000
        slack = sum(op in log.stamps for log in logs) + 1
        for edge in range(int(stamps.min()) // step * step, int(stamps.max()) + END_MS + 2 * step, step):
            has = int(counts[ends <= edge].sum())
            limits = [bounds(case, log, op, edge - zero * 1000) for log in logs]
            least, most = sum(low for low, _ in limits), sum(high for _, high in limits)
            if not least - slack <= has <= most + slack:
                found.append(f"{op} by {edge / 1000 - zero:.3f}: {has} for {least} to {most}")
                said &= any(not row["complete"] for row in mine)
        for row, edge in zip(mine if case.per_job else [], ends.tolist(), strict=False):
            most = max(highest(case, log, op, edge - step - zero * 1000, edge - zero * 1000) for log in logs if op in log.stamps)
            if row["count"] and coarse(row["max"] - 1, case.coarseness) > coarse(most, case.coarseness):
                found.append(f"{op} until {edge / 1000 - zero:.3f}: max {row['max']} for {most}")
                said &= not row["complete"]
    return found, said


def begins_late(case: Case, truth: Oracle) -> bool:
    """Return whether the first row of an op is so wide that its log does not tell when in it the op began."""
    zero = min((int(stamps.min()) for log in truth.logs for stamps in log.stamps.values()), default=0) if case.epoch else 0
    return any(rows[0] - zero > 2 * case.every_ms for log in truth.logs for rows in log.rows.values() if len(rows))


def is_mixed(case: Case, truth: Oracle) -> bool:
    """Return whether fio counted I/Os of unlike ops together of which no row tells the op."""
    return case.unified and len({op for log in truth.logs for op in log.stamps}) > 1


# What a caveat may doubt of a right answer, by words of it, and a proof from fio's own logs that nothing but a log of each I/O tells.
DOUBTED: dict[str, Callable[[Case, Oracle], bool]] = {
    "its first row is stamped long after the beginning": begins_late,
    "mixed: fio counts all ops together": is_mixed,
    "implausible counts (above 2^40 in one interval)": lambda _, truth: truth.garbage,
}


def deserved(case: Case, truth: Oracle, notes: Sequence[str]) -> bool:
    """Return whether each of the caveats of a right answer doubts what cannot be known."""
    proofs = [next((proof for words, proof in DOUBTED.items() if words in note), None) for note in notes]
    return bool(notes) and all(proof is not None and proof(case, truth) for proof in proofs)


def compare(case: Case, truth: Oracle, folder: Path, changed: str = "") -> list[Found]:
    """Ask all questions of a folder and judge the answers; `changed` names what a variant changed, if anything."""
    names = ["op"]
    names += ["job"] if truth.job and case.jobs > 1 else []
    names += ["all"] if case.unified and truth.total else []
    names += ["windows"] if truth.logs and case.aligned else []
    found, zero = [], None
    for name in names:
        rows, notes = ask(question(case, name, folder))
        if notes and notes[0].startswith("exit"):
            found.append(Found(name, "refused", " ".join(notes)))
            continue
        if name == "op":
            zero = min((row["start"] for row in rows), default=None, key=seconds)
        if name == "windows":
            unlike, said = by_windows(case, truth.logs, [row | {"origin": zero} for row in rows])
        else:
            unlike, said = by_labels({"op": truth.op, "job": truth.job, "all": truth.total}[name], rows, case)
        missing, told = lost(truth.counts, rows)
        unlike, said = [*unlike, *missing], said and told
        lacking = [] if all(row["complete"] for row in rows) else ["complete=false"]
        if unlike:
            # Percentiles alone are only moved by what is said to be missing, and nothing is.
            all_here = name != "windows" and not missing and not any("count" in each or "none of" in each for each in unlike)
            verdict = "SILENT" if not (said or notes) else "caveat" if all_here else "said"
            found.append(Found(name, verdict, "; ".join([*unlike, *notes])))
        elif notes or lacking:
            named = changed and any(re.search(changed, note) for note in notes)
            verdict = "named" if named else "true" if deserved(case, truth, notes) else "caveat"
            found.append(Found(name, verdict, "; ".join([*notes, *lacking])))
        else:
            found.append(Found(name, "right", ""))
    return found


def worst(found: Sequence[Found]) -> str:
    """Return the worst verdict of a case."""
    return max((each.verdict for each in found), key=WORST.index, default="right")


def faults(case: Case, variant: str, name: str) -> set[str]:
    """Return the ids of the faults (docs of the project's findings) that may be why an answer to a question is wrong."""
    may_be = {
        "N1": case.grouped and case.hist and case.raw,
        "N2": case.grouped and (bool(variant) or case.mixed),
        "N3": case.shared_group,
        "N4": bool(case.servers),
        "N5": case.unified,
        "N5b": case.folders or bool(variant) or (case.grouped and name == "job"),
    }
    return {fault for fault, may in may_be.items() if may}


# ---- variants ----


def packed(path: Path, *, beside: bool = False) -> None:
    """Compress a file."""
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    if not beside:
        path.unlink()


def cut(path: Path, rng: random.Random) -> None:
    """End a file within a line."""
    text = path.read_bytes()
    end = rng.randrange(len(text) // 4, len(text))
    while text[end - 1 : end] == b"\n":
        end -= 1
    path.write_bytes(text[:end])


def moved(path: Path, folder: str) -> None:
    """Move a file into a folder of its own."""
    (path.parent / folder).mkdir(exist_ok=True)
    path.rename(path.parent / folder / path.name)


def renamed(path: Path, rng: random.Random) -> str:
    """Return another name for a copy of a log."""
    number = re.sub(r"\.\d+\.log", ".9.log", path.name)
    names = {f"copy_{path.name}", f"{path.name}.bak", number if number != path.name else f"z{path.name}"}
    return rng.choice(sorted(names))


def vary(run: Path, target: Path, rng: random.Random) -> tuple[str, str]:
    """Copy what a user has to a folder, change one thing in it; return what, and a pattern of what a caveat names it by."""
    shutil.copytree(run, target)
    out = target / "out.json"
    logs = [path for path in sorted(target.rglob("*.log*")) if path.stat().st_size and LOG.search(path.name)]
    changes: dict[str, Callable[[Path], object]] = {
        "gzip beside": lambda path: packed(path, beside=True),
        "gzip": packed,
        "empty": lambda path: path.write_bytes(b""),
        "delete": Path.unlink,
        "cut": lambda path: cut(path, rng),
        "copy": lambda path: shutil.copyfile(path, path.with_name(renamed(path, rng))),
        "move": lambda path: moved(path, "old"),
        "json elsewhere": lambda _: moved(out, "json"),
        "json deleted": lambda _: out.unlink(),
        "json gzip": lambda _: packed(out),
    }
    name, path = rng.choice(list(changes)), rng.choice(logs or [out])
    changes[name](path)
    if name == "json deleted":
        return name, "without fio's JSON|--fio-version"  # which says of which version the columns are
    return (name, out.name) if name.startswith("json") else (f"{name} {path.relative_to(target)}", re.escape(path.name))


# ---- many of them ----


@dataclass(frozen=True, slots=True)
class Judged:
    """A case or a variant with the answers' verdicts."""

    case: Case
    variant: str
    folder: Path
    found: list[Found]

    def wrong(self) -> list[set[str]]:
        """Return the ids of the faults that may be behind each answer that is wrong without a word, or an internal error."""
        wrong = [each for each in self.found if each.verdict == "SILENT" or "internal error" in each.text]
        return [faults(self.case, self.variant, each.question) for each in wrong]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A case that fio ran."""

    case: Case
    folder: Path
    truth: Oracle


def recordings(cases: Sequence[Case], folder: Path, at_once: int = 8) -> list[Recorded]:
    """Run fio for each case, several at once as they hardly need a core."""

    def one(case: Case) -> Recorded | None:
        mine = folder / f"{'gap' if case.stop else 'run'}-{case.seed}"
        try:
            record(case, mine)
        except OSError as error:  # fio itself came to grief
            print(error, file=sys.stderr)
            return None
        return Recorded(case, mine, oracle(case, mine))

    with ThreadPoolExecutor(at_once) as pool:
        return [each for each in pool.map(one, cases) if each]


def judge(each: Recorded, number: int | None, seed: int) -> Judged:
    """Judge a recording, or a variant of it."""
    target, variant, changed = each.folder / "run", "", ""
    if number is not None:
        target = each.folder / f"variant-{number}"
        variant, changed = vary(each.folder / "run", target, random.Random(f"{seed} {number}"))
    return Judged(each.case, variant, target, compare(each.case, each.truth, target, changed))


def judged(recorded: Sequence[Recorded], variants: int, seed: int, at_once: int = 2) -> Iterator[Judged]:
    """Judge each recording (where `variants` is 0), or so many variants of them."""
    numbers = range(variants or len(recorded))
    each = [recorded[number % len(recorded)] for number in numbers]
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("fork"), os.nice, (10,)) as pool:
        yield from pool.map(judge, each, numbers if variants else [None] * len(each), [seed] * len(each))


def shown(each: Judged) -> str:
    """Return what is wrong with a case, and how to see it again."""
    head = f"seed {each.case.seed}{f' ({each.variant})' if each.variant else ''}"
    lines = [f"{worst(each.found)}: {head}: {each.folder}"]
    for found in each.found:
        if found.verdict in {"SILENT", "caveat", "refused"}:
            kinds = "/".join(sorted(faults(each.case, each.variant, found.question))) or "of no known kind"
            lines += [f"  {found.verdict} ({kinds}) {found.question}: {found.text[:600]}"]
            lines += [f"    {shlex.join(question(each.case, found.question, each.folder))}"]
    return "\n".join(lines)


def main() -> None:
    """Try many, and print what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("runs", 20), ("variants", 20), ("gaps", 4), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--keep", type=Path, help="folder that keeps what failed (default: a new one)")
    given = parser.parse_args()
    keep = given.keep or Path(tempfile.mkdtemp(prefix="random-fio-"))
    keep.mkdir(parents=True, exist_ok=True)
    runs = recordings([random_case(given.seed * 10_000 + number) for number in range(given.runs)], keep)
    gaps = recordings([gap_case(given.seed * 10_000 + number) for number in range(given.gaps)], keep)
    parts = {"runs": (runs, 0), "variants": (runs, given.variants), "gaps": (gaps, 0)}
    lines, failing = [], set()
    for name, (recorded, variants) in parts.items():
        verdicts = Counter[str]()
        for each in judged(recorded, variants, given.seed) if recorded and (variants or name != "variants") else ():
            verdict = worst(each.found)
            verdicts[verdict] += 1
            if verdict in {"SILENT", "caveat", "refused"}:
                print(shown(each), flush=True)
                failing.add(each.folder.parent)
            elif each.variant:
                shutil.rmtree(each.folder)
        lines.append(f"{name:10}{verdicts.total():>8}" + "".join(f"{verdicts[each]:>10}" for each in WORST))
    for folder in {one.folder for one in (*runs, *gaps)} - failing:
        shutil.rmtree(folder)
    print(f"\n{'':10}{'cases':>8}" + "".join(f"{each:>10}" for each in WORST))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
