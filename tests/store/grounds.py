"""Stores to hold the contract against: SQLite, the double, and a real server when ELASTICSEARCH_URL is set.

Each ground reads documents and rollups by ways of its own (sqlite3, the plain client), so that a store is never believed
about what it holds.
"""

from __future__ import annotations

import math
import os
import shutil
import struct
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ingest.cli import run as command
from ingest.load.load import LoadAccount, load
from ingest.load.plan import LoadOptions
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.databases import database

FIO = Path(__file__).parents[1] / "data" / "fio"
LABELS = ("run", "host", "volume", "job", "op", "kind", "tag", "process")
CODINGS = {1: "<HB", 2: "<HH", 3: "<HI", 4: "<Iq"}
OFFSETS = "loglinear:512:1000:1000000ns:c0:midpoint:closed"
SERVERS = {"8": "8.19.21", "9": "9.5.3"}
SERVER = SERVERS[os.environ.get("TAILBOARD_TEST_SERVER", "9")]  # make test-real sets 8


class SqliteGround:
    """A file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{uuid.uuid4().hex}.db"
        self.url = f"sqlite:{self.path}"

    def documents(self) -> list[dict[str, Any]]:
        with database(self.path) as db:
            rows = db.execute(
                f"SELECT {','.join(LABELS)}, segment, layout, r.step_ns, i.id, i.coding, i.bins, i.count, i.sum, i.min, i.max "
                "FROM intervals i JOIN series s ON s.id = i.id >> 36 JOIN runs r USING (run) WHERE kind <> 'offset'"
            ).fetchall()
        found = []
        for *labels, segment, layout, step, number, coding, blob, count, total, low, high in rows:
            start = ((number & ((1 << 36) - 1)) - (1 << 35)) * step
            bins = values_by_bin(layout, dict(struct.iter_unpack(CODINGS[coding], blob)))
            found.append(document(dict(zip(LABELS, labels)), segment, layout, step, start, bins, count, (total, low, high)))
        return sorted(found, key=repr)

    def offsets(self) -> dict[tuple[Any, ...], dict[int, int]]:
        """Return the events by ms of each second, by labels, segment and start of the second."""
        with database(self.path) as db:
            rows = db.execute(
                f"SELECT {','.join(LABELS)}, segment, layout, i.id, i.coding, i.bins, i.count "
                "FROM intervals i JOIN series s ON s.id = i.id >> 36 WHERE kind = 'offset'"
            ).fetchall()
        found = {}
        for *labels, segment, layout, number, coding, blob, count in rows:
            assert layout == OFFSETS
            start = ((number & ((1 << 36) - 1)) - (1 << 35)) * 1_000_000_000
            bins = dict(struct.iter_unpack(CODINGS[coding], blob))
            assert sum(bins.values()) == count
            found[*labels, segment, start] = bins
        return found

    def rollups(self) -> list[tuple[Any, ...]]:
        with database(self.path) as db:
            names = "run, scope, kind, step_ns, start_ns, op, host, end_ns, layout, count, sum, min, mean, max, exact, p50, p75, p90, p95, p99, p99_9, p99_99"
            rows = db.execute(f"SELECT {names}, coding, bins FROM rollups").fetchall()
        found = []
        for *told, coding, blob in rows:
            bins = values_by_bin(told[8], dict(struct.iter_unpack(CODINGS[coding], blob)))
            found.append((*told, tuple(bins.items())))
        return sorted(found, key=repr)


class ElasticGround:
    """An index prefix of its own on a server."""

    def __init__(self, server: str, client: Any = None) -> None:
        from elasticsearch import Elasticsearch

        self.server = server
        self.prefix = f"contract-{uuid.uuid4().hex[:12]}"
        self.url = f"{server}?index_prefix={self.prefix}"
        self.client = client or Elasticsearch(server)
        assert command(["setup", "--elasticsearch", server, "--index-prefix", self.prefix]) == 0

    def hits(self, index: str) -> list[dict[str, Any]]:
        self.client.indices.refresh(index=f"{self.prefix}-{index}", ignore_unavailable=True)
        pit = self.client.open_point_in_time(index=f"{self.prefix}-{index}", keep_alive="1m", ignore_unavailable=True)["id"]
        found: list[dict[str, Any]] = []
        while True:
            after = {"search_after": found[-1]["sort"]} if found else {}
            page = self.client.search(pit={"id": pit}, size=2000, sort=["_shard_doc"], **after)["hits"]["hits"]
            found += page
            if len(page) < 2000:
                return found

    def documents(self) -> list[dict[str, Any]]:
        found = []
        for hit in self.hits("intervals-*"):
            one = hit["_source"]
            if one.get("kind") == "offset":
                continue
            histogram = one.get("in_flight", one["latency"])["histogram"]
            bins = dict(zip(histogram["values"], histogram["counts"], strict=True))
            latency = one["latency"]
            exact = (latency.get("sum"), latency.get("min"), latency.get("max"))
            step, start = one["interval"]["step_ms"] * 1_000_000, one["@timestamp"] * 1_000_000
            found.append(document(labels_in(one), one["segment"], latency["layout"], step, start, bins, latency["count"], exact))
        return sorted(found, key=repr)

    def rollups(self) -> list[tuple[Any, ...]]:
        found = []
        for hit in self.hits("rollups-*"):
            one = hit["_source"]
            if "layout" not in one["latency"]:
                continue
            histogram = one.get("in_flight", one["latency"])["histogram"]
            labels, latency, rollup = labels_in(one), one["latency"], one["rollup"]
            names = ("sum", "min", "mean", "max", "exact", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99")
            numbers = [int(latency[name]) if isinstance(latency.get(name), bool) else latency.get(name) for name in names]
            step, start = rollup["step_ms"] * 1_000_000, one["@timestamp"] * 1_000_000
            head = (labels["run"], rollup["scope"], labels["kind"], step, start, labels["op"], labels["host"])
            bins = tuple(zip(histogram["values"], histogram["counts"], strict=True))
            found.append((*head, one["interval"]["end_ns"], latency["layout"], latency["count"], *numbers, bins))
        return sorted(found, key=repr)

    def offsets(self) -> dict[tuple[Any, ...], dict[int, int]]:
        """Return the events by ms of each second, by labels, segment and start of the second."""
        found = {}
        for hit in self.hits("intervals-*"):
            one = hit["_source"]
            if one.get("kind") != "offset":
                continue
            assert "latency" not in one and one["interval"]["step_ms"] == 1000 and one["offset"]["layout"] == OFFSETS
            values, counts = one["offset"]["histogram"]["values"], one["offset"]["histogram"]["counts"]
            assert one["kind_preference"] == -2
            assert sum(counts) == one["offset"]["count"] and all(value % 1_000_000 == 0 for value in values)
            key = (*labels_in(one).values(), one["segment"], one["@timestamp"] * 1_000_000)
            found[key] = {value // 1_000_000: count for value, count in zip(values, counts, strict=True)}
        return found

    def drop(self) -> None:
        self.empty()
        for kind in ("index", "component"):
            answer = getattr(self.client, "indices" if kind == "index" else "cluster")
            listed = getattr(answer, f"get_{kind}_template")(name=f"{self.prefix}*")[f"{kind}_templates"]
            for one in listed:
                getattr(answer, f"delete_{kind}_template")(name=one["name"])

    def empty(self) -> None:
        """Let go of all data, as nothing of tailboard does."""
        path, told = f"/_resolve/index/{self.prefix}-*", {"accept": "application/json"}
        for index in self.client.perform_request("GET", path, headers=told).body["indices"]:
            self.client.indices.delete(index=index["name"])


def labels_in(source: dict[str, Any]) -> dict[str, str]:
    def at(*path: str) -> str:
        found: Any = source
        for step in path:
            found = found.get(step, {}) if isinstance(found, dict) else {}
        return found or ""

    paths = {"run": ("run", "id"), "host": ("host", "name"), "volume": ("volume", "name"), "job": ("job", "id")}
    paths |= {"op": ("operation",), "kind": ("kind",), "tag": ("tag",), "process": ("process", "name")}
    return {label: at(*path) for label, path in paths.items()}


def document(labels, segment, layout, step, start, bins, count, exact) -> dict[str, Any]:
    total, low, high = exact
    return {
        **labels,
        "segment": segment,
        "layout": layout,
        "step": step,
        "start": start,
        "bins": dict(sorted(bins.items())),
        "count": count,
        "sum": total,
        "min": low,
        "max": high,
    }


def values_by_bin(layout: str, bins: dict[int, int]) -> dict[int, int]:
    """What each bin reports: fio's by its own formula (midpoints; of the last bin of an open-ended layout its lower edge), and
    HdrHistogram's by its definition (highest values, or upper edges of bins that were moved)."""
    from tests.oracles import brute, events, hdr

    if layout.startswith("exponential:"):
        _, scale, unit = layout.split(":")
        ends = exponential_ends(int(scale[1:]), int(unit.removesuffix("ns")))
        return {ends[slot]: number for slot, number in bins.items()}
    if layout.startswith("mixed:"):  # of rollups alone: by the numbers of bins
        return bins
    if layout.startswith("edges:"):
        _, bounds, top = layout.split(":")
        edges = [int(edge) for edge in bounds[1:].split(",")]
        last = len(edges) - 2 if top == "open" else -1
        return {edges[slot] if slot == last else edges[slot + 1] - 1: number for slot, number in bins.items()}
    name, half, fine, unit, coarseness, reports, top, *grain = layout.split(":")
    if reports in ("highest", "upper"):
        digits = next(digits for digits in range(6) if hdr.half_of(digits) == int(half))
        width = int(unit.removesuffix("ns"))
        inside = 0 if reports == "upper" else int(grain[0].removesuffix("ns")) if grain else width
        return {hdr.lower_edge(slot + 1, digits) * width - inside: number for slot, number in bins.items()}
    assert (name, half, reports) == ("loglinear", "64", "midpoint")
    if top == "closed":
        assert (unit, coarseness) == ("1ns", "c0")
        return {events.midpoint(slot): number for slot, number in bins.items()}
    count = -(-int(fine) // (1 << int(coarseness[1:])))
    return {brute.value_of(count, slot): number for slot, number in bins.items()}


def loaded(url: str, paths, run: str = "r", **options) -> LoadAccount:
    reading = ReadOptions(run=run, **{"t0": None, **options.pop("reading", {})})
    with open_store(url, write=True) as store:
        return load([Path(path) for path in paths], store, LoadOptions(read=reading, **options))


def many_logs(folder: Path, files: int = 6, *, turns: int) -> Path:
    """Logs large enough for a load to take a moment: real rows with their stamps moved on, and a last row that each has alone."""
    lines = (FIO / "randrw" / "a_clat_hist.1.log").read_text().splitlines()
    folder.mkdir()
    for number in range(1, files + 1):
        with (folder / f"a_clat_hist.{number}.log").open("w") as out:
            for turn in range(turns):
                for line in lines:
                    stamp, rest = line.split(",", 1)
                    out.write(f"{int(stamp) + 4000 * turn + number},{rest}\n")  # no two of them hold the same I/Os
            out.write(lines[0].replace("1005", str(4000 * turns + 1000 * number), 1) + "\n")
    return folder


def logs_by_host(folder: Path, hosts: int, *, turns: int) -> list[Path]:
    """Folders h1, h2, ... each with one of many logs, all under the same name."""
    logs = many_logs(folder / "logs", hosts, turns=turns)
    found = [folder / f"h{number}" for number in range(1, hosts + 1)]
    for number, host in enumerate(found, 1):
        host.mkdir()
        shutil.copy(logs / f"a_clat_hist.{number}.log", host / "a_clat_hist.1.log")
    return found


def loads_at_once(commands: list[list[str]]) -> None:
    loads = [subprocess.Popen(one, stderr=subprocess.PIPE, text=True) for one in commands]
    told = [process.communicate(timeout=600)[1] for process in loads]
    assert [process.returncode for process in loads] == [0] * len(loads), told


@contextmanager
def grounds(kind: str, folder: Path) -> Iterator[SqliteGround | ElasticGround]:
    """Give a fresh ground: sqlite, double, or the real server."""
    if kind == "sqlite":
        yield SqliteGround(folder)
        return
    if kind == "server":
        ground = ElasticGround(os.environ["ELASTICSEARCH_URL"])
        try:
            yield ground
        finally:
            ground.drop()
        return
    from tests.doubles.elasticsearch import ElasticsearchDouble

    with ElasticsearchDouble(version=SERVER) as double:
        yield ElasticGround(double.url)
        assert not double.refusals, double.refusals


def exponential_ends(scale: int, unit: int) -> list[int]:
    """The last ns of each bin: unit * 2^(i / 2^scale) for every whole i, rounded down, each once; the first bin is 0 ns alone.

    By whole roots of whole numbers: the 2^scale-th root of unit^(2^scale) * 2^i (scales 0 to 8).
    """
    found = {0}
    for i in range(-(unit.bit_length() << scale), 64 << scale):
        power = unit ** (1 << scale) << i if i >= 0 else unit ** (1 << scale) >> -i
        for _ in range(scale):
            power = math.isqrt(power)
        if power < 2**63 - 1:
            found.add(power)
    return sorted(found)
