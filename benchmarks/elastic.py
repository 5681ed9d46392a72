"""What a load into Elasticsearch costs beside the least that any program must do: `orjson.dumps` and sending.

    python benchmarks/run.py elastic-cpu elastic-stages         against a sink that forgets (sink.py), no server
    python benchmarks/run.py elastic-memory                     against the double of the tests, as a load reads what it wrote
    ELASTICSEARCH_URL=http://127.0.0.1:9200 python benchmarks/run.py elastic-speed

`elastic-cpu` counts user and system seconds of the whole `tailboard load` process tree, start, reading and all, against those of
one loop that makes JSON of the very documents which that load sent, and posts them in the same chunks. `elastic-speed` needs a
real server, best one with nothing else to do: it uses an index prefix of its own and deletes what it made.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import generate
from elastic_stages import FINDINGS
from generate import LogSet
from measure import MB, Bench, BenchmarkError, met, peak, print_table
from servers import double, sink

HERE = Path(__file__).parent
LOGS = LogSet(nonzero=(236, 236))
MOST_CPU = 2.5
LEAST_SPEED = 0.5
MOST_MB = 300
COPIES = {"one": 1, "four times": 4}
SENDERS = (1, 2, 4)
ZERO = "2026-11-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Cost:
    """What sending took: CPU seconds, wall seconds, documents, bytes of bodies."""

    cpu: float
    wall: float
    documents: int
    size: int


def stats(url: str) -> dict[str, float]:
    """Return what a sink has counted."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", "/_sink/stats")
    found: dict[str, float] = json.loads(connection.getresponse().read())
    connection.close()
    return found


def measured(bench: Bench, command: Sequence[str]) -> tuple[float, float]:
    """Return CPU seconds (user and system, of all children too) and wall seconds of a command; BenchmarkError if it fails."""
    err = bench.scratch / "stderr"
    began = time.perf_counter()
    with err.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=bench.env)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    ended = time.perf_counter()
    if process.returncode:
        said = err.read_text(errors="replace").strip().splitlines()[-3:]
        raise BenchmarkError(f"{' '.join(command[:4])} ... ended with {process.returncode}: {' / '.join(said) or 'no output'}")
    return used.ru_utime + used.ru_stime, ended - began


def setup(bench: Bench, url: str, prefix: str = "tailboard") -> None:
    """Install the index templates, without which a load stops."""
    measured(bench, [bench.tailboard, "setup", "--elasticsearch", url, "--index-prefix", prefix])


def load_command(bench: Bench, folder: Path, url: str, run: str) -> list[str]:
    """Return the command of a load into Elasticsearch. Generated logs know no time zero, and Elasticsearch takes no others."""
    return [bench.tailboard, "load", str(folder), "--run", run, "--store", url, "--t0", ZERO]


def recorded(path: Path) -> Iterator[bytes]:
    """Yield the bulk bodies that a sink wrote down."""
    with path.open("rb") as file:
        while size := file.readline():
            yield file.read(int(size))


def pairs(body: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the action line of each item of a bulk body, and its document, None for a delete."""
    lines = iter(body.splitlines())
    for action in lines:
        yield action, None if action.startswith(b'{"delete"') else next(lines)


def send(record: Path, url: str) -> Cost:
    """Return what it takes to make JSON of recorded documents and to post them in the chunks in which they came.

    Reading and parsing the record is not counted; the answers are read, not parsed.
    """
    import orjson

    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    cpu, wall, documents, size = 0.0, 0.0, 0, 0
    for body in recorded(record):
        items = [(orjson.loads(action), document and orjson.loads(document)) for action, document in pairs(body)]
        used, began = time.process_time(), time.perf_counter()
        lines = [orjson.dumps(part) for item in items for part in item if part is not None]
        lines.append(b"")
        text = b"\n".join(lines)
        connection.request("POST", "/_bulk", text, {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        answer.read()
        cpu, wall = cpu + time.process_time() - used, wall + time.perf_counter() - began
        if answer.status != http.HTTPStatus.OK:
            raise BenchmarkError(f"the sink answered {answer.status}")
        documents, size = documents + sum(document is not None for _, document in items), size + len(text)
    connection.close()
    return Cost(cpu, wall, documents, size)


def sent_alone(bench: Bench, record: Path, url: str) -> Cost:
    """Return what `send` takes in a fresh process: no garbage of ours is collected at its expense."""
    command = [sys.executable, str(Path(__file__).resolve()), str(record), url]
    done = subprocess.run(command, check=False, capture_output=True, env=bench.env)
    if done.returncode:
        raise BenchmarkError(f"sending alone failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return Cost(**json.loads(done.stdout))


def cpu(bench: Bench) -> None:
    """Print the CPU of a load against a discarding sink, and that of `orjson.dumps` and sending of the same documents."""
    folder = generate.logs(bench.folder, LOGS)
    record = bench.scratch / "bodies"
    with sink(record) as url:
        setup(bench, url)
        measured(bench, load_command(bench, folder, url, "bench"))
        sent = stats(url)
    loads, reads, told, bare, received = [], [], [], [], 0.0
    reading = [str(Path(bench.tailboard).with_name("python")), str(HERE / "discard.py"), str(folder)]
    for number in range(bench.rounds):
        print(f"\relastic-cpu: round {number + 1}".ljust(70), end="", file=sys.stderr, flush=True)
        with sink() as url:
            setup(bench, url)
            before = stats(url)["cpu_seconds"]
            loads.append(Cost(*measured(bench, load_command(bench, folder, url, "bench")), int(sent["documents"]), 0))
            found = stats(url)
            received = found["cpu_seconds"] - before
        if found["documents"] != sent["documents"]:
            raise BenchmarkError(f"one load sent {sent['documents']} documents, the next {found['documents']}")
        reads.append(Cost(*measured(bench, reading), 0, 0))
        with sink() as url:
            setup(bench, url)
            told.append(staged(bench, folder, url, "bench")["stages_cpu"][FINDINGS])
        with sink() as url:
            bare.append(sent_alone(bench, record, url))
    print("\r".ljust(70), end="\r", file=sys.stderr, flush=True)
    rest = [ours.cpu - read.cpu - found for ours, read, found in zip(loads, reads, told, strict=True)]
    rows = [
        ["tailboard load", *_seconds(loads), *_times([ours.cpu / theirs.cpu for ours, theirs in zip(loads, bare, strict=True)])],
        ["the same into a store that keeps nothing", *_seconds(reads), "", "", ""],
        ["findings, beside sending", f"{statistics.median(told):.3f} ({min(told):.3f}-{max(told):.3f})", "", "", "", ""],
        [
            "the rest: encoding and sending",
            f"{statistics.median(rest):.3f}",
            "",
            *_times([own / theirs.cpu for own, theirs in zip(rest, bare, strict=True)]),
        ],
        ["orjson.dumps and http.client", *_seconds(bare), "1", "", ""],
    ]
    each = bare[0].size / max(bare[0].documents, 1)
    print_table(
        f"load against a sink: {bare[0].documents} documents of {each:.0f} bytes; the sink itself took {received:.2f} s",
        ("command", "CPU s", "wall s", "times as much", "at most", "verdict"),
        rows,
    )


def _times(ratios: Sequence[float]) -> list[str]:
    middle = statistics.median(ratios)
    shown = f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    return [shown, f"{MOST_CPU:g}", met(middle, MOST_CPU, at_least=False)]


def _seconds(costs: Sequence[Cost]) -> list[str]:
    used, took = [cost.cpu for cost in costs], [cost.wall for cost in costs]
    return [f"{statistics.median(some):.3f} ({min(some):.3f}-{max(some):.3f})" for some in (used, took)]


def memory(bench: Bench) -> None:
    """Print the peak memory of loads of one set of logs and of four, of all their processes; at most MOST_MB."""
    base = generate.logs(bench.folder, LOGS)
    folder = bench.scratch / "large"
    rows = []
    try:
        for name, copies in COPIES.items():
            generate.repeated(base, folder, copies)
            with double() as url:
                setup(bench, url)
                found = peak(bench, name, [*load_command(bench, folder, url, "bench"), "--json"])
                documents = json.loads((bench.scratch / "stdout").read_text())["documents"]
            most = found.pss / MB
            verdict = [str(MOST_MB), met(most, MOST_MB, at_least=False)]
            rows.append([name, f"{documents}", f"{found.seconds:.1f}", f"{most:.0f}", *verdict])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_table(
        "memory of a load, all its processes, against the double",
        ("logs", "documents", "s", "peak MB", "at most", "verdict"),
        rows,
    )


@dataclass(frozen=True, slots=True)
class Server:
    """A real server: where it is, and how to log in, from the environment as `tailboard` takes it."""

    url: str

    def connection(self) -> http.client.HTTPConnection:
        """Return a new connection."""
        place = urlsplit(self.url)
        if place.scheme != "https":
            return http.client.HTTPConnection(place.hostname or "", place.port or 9200, timeout=120)
        trust = ssl.create_default_context(cafile=os.environ.get("TAILBOARD_ES_CA_FILE"))
        return http.client.HTTPSConnection(place.hostname or "", place.port or 9200, timeout=120, context=trust)

    def headers(self) -> dict[str, str]:
        """Return what every request bears."""
        found = {"Content-Type": "application/x-ndjson"}
        if key := os.environ.get("TAILBOARD_ES_API_KEY"):
            found["Authorization"] = f"ApiKey {key}"
        elif user := os.environ.get("TAILBOARD_ES_USER"):
            secret = f"{user}:{os.environ.get('TAILBOARD_ES_PASSWORD', '')}"
            found["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
        return found

    def ask(self, method: str, path: str) -> Any:
        """Return the answer to a request without a body, None for what is not there; BenchmarkError for any other error."""
        connection = self.connection()
        connection.request(method, path, headers=self.headers())
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status == http.HTTPStatus.NOT_FOUND:
            return None
        if answer.status != http.HTTPStatus.OK:
            raise BenchmarkError(f"the server answered {answer.status} to {method} {path}: {text[:200]!r}")
        return json.loads(text)

    def clean(self, prefix: str) -> None:
        """Delete the indices and templates whose names begin with a prefix, each by its name."""
        indices = self.ask("GET", f"/_resolve/index/{prefix}-*")["indices"]
        paths = [f"/{quote(one['name'])}" for one in indices]
        for kind in ("index_template", "component_template"):
            held = self.ask("GET", f"/_{kind}/{prefix}*") or {f"{kind}s": []}
            names = [one["name"] for one in held[f"{kind}s"]]
            paths += [f"/_{kind}/{quote(name)}" for name in names if name.startswith((f"{prefix}-", f"{prefix}@"))]
        for path in paths:
            self.ask("DELETE", path)

    def post(self, bodies: Sequence[bytes]) -> None:
        """Post bulk bodies one after another over one connection; BenchmarkError at the first that is not taken whole."""
        connection = self.connection()
        for body in bodies:
            connection.request("POST", "/_bulk?filter_path=errors", body, self.headers())
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != http.HTTPStatus.OK or json.loads(text)["errors"]:
                raise BenchmarkError(f"the server answered {answer.status} to a bulk of the bare client: {text[:200]!r}")
        connection.close()


def aimed(record: Path, indices: Mapping[str, str]) -> tuple[list[bytes], int]:
    """Return recorded bulk bodies with the documents of some kinds alone, and how many these are.

    `indices` gives the index at which those of a kind are aimed.
    """
    bodies, documents = [], 0
    for body in recorded(record):
        lines = []
        for action, document in pairs(body):
            ((_, words),) = json.loads(action).items()
            index = next((to for kind, to in indices.items() if f"-{kind}-" in words.get("_index", "")), None)
            if document is not None and index is not None:
                lines += [json.dumps({"index": {"_index": index, "_id": words["_id"]}}).encode(), document]
        if lines:
            bodies.append(b"\n".join(lines) + b"\n")
            documents += len(lines) // 2
    return bodies, documents


def bare_seconds(server: Server, bodies: Sequence[bytes], senders: int, indices: Collection[str]) -> float:
    """Return the seconds that so many senders need for all bodies into new indices, which are deleted again."""
    failures: list[Exception] = []

    def work(part: Sequence[bytes]) -> None:
        try:
            server.post(part)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(bodies[number::senders],)) for number in range(senders)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    for index in indices:
        server.ask("DELETE", f"/{quote(index)}")
    if failures:
        raise BenchmarkError(f"the bare client failed: {failures[0]}")
    return took


def speed(bench: Bench) -> None:
    """Print documents a second of a load into a real server, and those of a bare client that posts bodies made before."""
    url = os.environ.get("ELASTICSEARCH_URL")
    if not url:
        print("\nelastic-speed: not measured, ELASTICSEARCH_URL is not set", file=sys.stderr)
        return
    server = Server(url)
    folder = generate.logs(bench.folder, LOGS)
    record = bench.scratch / "bodies"
    with sink(record) as local:
        setup(bench, local)
        measured(bench, load_command(bench, folder, local, "bench"))
    prefix = f"tailboard-bench-{os.getpid()}"
    setup(bench, url, prefix)
    kinds = {kind: f"{prefix}-{kind}-bare" for kind in ("intervals", "rollups")}
    alone = {"intervals": kinds["intervals"]}
    bodies = {"documents": aimed(record, alone), "documents and rollups": aimed(record, kinds)}
    if not bodies["documents"][1]:
        raise BenchmarkError("the load sent no documents to an index of intervals: nothing to compare with")
    bare: dict[tuple[str, int], list[float]] = {(what, senders): [] for what in bodies for senders in SENDERS}
    loads: list[float] = []
    store = f"{url}?index_prefix={prefix}"
    try:
        for number in range(bench.rounds):
            for (what, senders), seconds in bare.items():
                indices = (alone if what == "documents" else kinds).values()
                seconds.append(bare_seconds(server, bodies[what][0], senders, indices))
            loads.append(measured(bench, load_command(bench, folder, store, f"bench-{number}"))[1])
        where = staged(bench, folder, store, "bench-stages")
    finally:
        server.clean(prefix)
    rows = []
    for what, (_, documents) in bodies.items():
        best = min(statistics.median(bare[what, senders]) for senders in SENDERS)
        rows += [
            [f"bare client, {what}, {senders} at once", *_rates(documents, bare[what, senders], best), "", ""]
            for senders in SENDERS
        ]
        share = best / statistics.median(loads)
        verdict = [f"{LEAST_SPEED:g}", met(share, LEAST_SPEED)]
        rows.append([f"tailboard load, {what} counted", *_rates(documents, loads, best), *verdict])
    headings = ("command", "documents a second", "of the best bare client", "at least", "verdict")
    print_table(f"load into {urlsplit(url).hostname}: {bodies['documents'][1]} documents, aim 0.8", headings, rows)
    print_stages(where)


def _rates(documents: int, seconds: Sequence[float], best: float) -> list[str]:
    middle = statistics.median(seconds)
    shown = f"{documents / middle:,.0f} ({documents / max(seconds):,.0f}-{documents / min(seconds):,.0f})"
    return [shown, f"{best / middle:.2f}"]


def staged(bench: Bench, folder: Path, url: str, run: str) -> dict[str, Any]:
    """Return where the time of one load goes, as `elastic_stages.py` prints it."""
    python = str(Path(bench.tailboard).with_name("python"))
    command = [python, str(HERE / "elastic_stages.py"), str(folder), url, run]
    done = subprocess.run(command, check=False, capture_output=True, env=bench.env)
    if done.returncode:
        raise BenchmarkError(f"a load by stages failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def print_stages(found: dict[str, Any]) -> None:
    """Print the requests of a load by what they are for; senders wait beside reading, so their seconds are no sum."""
    rows = [
        [name, f"{requests:.0f}", f"{sent / MB:.2f}", f"{read / MB:.2f}", f"{seconds:.2f}"]
        for name, (requests, sent, read, seconds) in sorted(found["stages"].items(), key=lambda row: -row[1][3])
    ]
    title = f"where the time goes: {found['seconds']:.2f} s in all, in one process"
    print_table(title, ("requests for", "requests", "MB sent", "MB read", "s waited"), rows)
    stages = [[name, f"{cpu:.2f}", f"{cpu / found['cpu']:.0%}"] for name, cpu in found["stages_cpu"].items()]
    print_table("CPU seconds of the same load", ("stage", "CPU s", "share"), [*stages, ["all", f"{found['cpu']:.2f}", ""]])


def where(bench: Bench) -> None:
    """Print where the time of a load goes, against the sink: what is encoded and sent, no answer that costs a server work."""
    folder = generate.logs(bench.folder, LOGS)
    with sink() as url:
        setup(bench, url)
        print_stages(staged(bench, folder, url, "bench"))


QUESTIONS = {"elastic-cpu": cpu, "elastic-stages": where, "elastic-memory": memory, "elastic-speed": speed}


def main() -> None:
    """Send a record to a sink and print what it took: `elastic.py RECORD URL`."""
    cost = send(Path(sys.argv[1]), sys.argv[2])
    print(json.dumps({name: getattr(cost, name) for name in Cost.__slots__}))


if __name__ == "__main__":
    main()
