"""A real node of Elasticsearch: exactly once whatever fails or is killed, and the answers of SQLite, over several shards and months."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError, TailboardError
from ingest.query.question import Question
from ingest.store import open_store
from tests.doubles.fault_proxy import FaultProxy
from tests.effort import figure
from tests.real.node import running
from tests.store.grounds import ElasticGround, SqliteGround, loaded, logs_by_host, many_logs
from tests.store.test_contract import EXAMPLE, csv
from tests.view.kibana.lens_rows import rows
from tools.kibana.asked import Shown
from tools.kibana.asked_lens import lens_request
from tools.kibana.compile import compiled

pytestmark = pytest.mark.contract
SERVER = os.environ["ELASTICSEARCH_URL"]
JSON = {"accept": "application/json", "content-type": "application/json"}
SECOND = 1_000_000_000
MONTH_END = 1_769_904_000  # 2026-02-01T00:00:00Z


@pytest.fixture
def ground() -> Iterator[ElasticGround]:
    found = ElasticGround(SERVER)
    yield found
    found.drop()


def held(ground: ElasticGround | SqliteGround) -> list[dict]:
    """Return the documents of a store, which are the same in all."""
    return ground.documents()


def of_files(folder: Path, paths: list[Path], **reading: object) -> list[dict]:
    """Return the documents that SQLite has of the same files."""
    ground = SqliteGround(folder)
    loaded(ground.url, paths, reading=reading)
    return held(ground)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 34))])
def test_faults_at_two_entrances_lose_and_double_nothing(ground, tmp_path: Path, monkeypatch, seed: int) -> None:
    monkeypatch.setenv("TAILBOARD_ES_TIMEOUT", "4")
    monkeypatch.setattr("ingest.store.elastic.bulk.BODY_BYTES", 1 << 16)
    entrances = [FaultProxy(SERVER, seed=2 * seed + n, share=0.3, only=lambda method, path: path != "/") for n in (0, 1)]
    with entrances[0] as one, entrances[1] as two:
        hosts = f"{one.url},{two.url.removeprefix('http://')}"
        account = loaded(f"{hosts}?index_prefix={ground.prefix}", [EXAMPLE])
        assert sum(one.injected.values()) + sum(two.injected.values()) >= 3 and one.calls and two.calls
    delivered = account.delivered
    assert delivered["sent"] == sum(delivered[name] for name in ("created", "updated", "deleted", "superseded", "rejected"))
    assert held(ground) == of_files(tmp_path, [EXAMPLE])


def load_command(logs: Path, url: str) -> list[str]:
    return [sys.executable, "-m", "ingest", "load", str(logs), "--run", "r", "--store", url, "--t0", str(MONTH_END - 20)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 12))])
def test_loads_that_are_killed_lose_and_double_nothing(ground, tmp_path: Path, seed: int) -> None:
    """Three kills at any moment, then one that comes to its end: over a month's end, so in two indices."""
    chance, logs = random.Random(seed), many_logs(tmp_path / "logs", 4, turns=15)
    for _ in range(3):
        process = subprocess.Popen(load_command(logs, ground.url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.6, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(load_command(logs, ground.url), check=True, capture_output=True)
    assert len(ground.client.indices.get(index=f"{ground.prefix}-intervals-*")) == 2
    assert held(ground) == of_files(tmp_path, [logs], t0=(MONTH_END - 20) * SECOND)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 12))])
def test_a_node_that_is_killed_during_a_load_loses_and_doubles_nothing(tmp_path: Path, seed: int) -> None:
    chance, logs = random.Random(seed), many_logs(tmp_path / "logs", 4, turns=15)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(tmp_path / "node", port) as (url, node):
        ground = ElasticGround(url)
        process = subprocess.Popen(load_command(logs, ground.url), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(chance.uniform(0.8, 2.5))
        node.send_signal(signal.SIGKILL)
        node.wait()
    with running(tmp_path / "node", port):
        told = process.communicate(timeout=300)[1]
        if process.returncode:  # killed before the load had spoken to it once: that is given up soon, and the user begins again
            assert process.returncode == 4 and "connection refused" in told, told
            subprocess.run(load_command(logs, ground.url), check=True, capture_output=True)
        assert held(ground) == of_files(tmp_path, [logs], t0=(MONTH_END - 20) * SECOND)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(24))
def test_one_of_two_nodes_that_is_killed_during_a_load_loses_and_doubles_nothing(tmp_path: Path, monkeypatch, seed: int) -> None:
    """At any moment, the node that the URL names first. Of every other seed it comes back while the load goes on, and that waits.

    Of the others it stays away: the load goes on with the other node, unless an index had no copy there yet. Then the server has
    no shard to write to or to ask, which the load says in the end; once the node is back the same load brings what is missing.
    """
    monkeypatch.setenv("TAILBOARD_ES_PATIENCE", "90" if seed % 2 else "15")
    monkeypatch.setenv("TAILBOARD_ES_TIMEOUT", "10")
    chance, logs = random.Random(seed), many_logs(tmp_path / "logs", 4, turns=15)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seed_hosts = f"discovery.seed_hosts=127.0.0.1:{port}"
    first = running(tmp_path / "a", 0, "node.name=a", "cluster.initial_master_nodes=a", f"transport.port={port}", seed_hosts)
    second = ("node.name=b", "node.roles=data,ingest", seed_hosts)
    with first as (url, _), ExitStack() as stack:
        with running(tmp_path / "b", 0, *second) as (other, node):
            ground = ElasticGround(url)
            hosts = f"{other},{url.removeprefix('http://')}?index_prefix={ground.prefix}"
            process = subprocess.Popen(load_command(logs, hosts), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(chance.uniform(0.8, 3.5))
            node.send_signal(signal.SIGKILL)
            node.wait()
        if seed % 2:
            stack.enter_context(running(tmp_path / "b", urlsplit(other).port or 0, *second))
        told = process.communicate(timeout=300)[1]
        if process.returncode:
            assert not seed % 2 and process.returncode == 4 and "no copy" in told, told
            stack.enter_context(running(tmp_path / "b", urlsplit(other).port or 0, *second))
            subprocess.run(load_command(logs, hosts), check=True, capture_output=True)
        assert held(ground) == of_files(tmp_path, [logs], t0=(MONTH_END - 20) * SECOND)


def question(chance: random.Random) -> Question:
    """Return any question about runs of several hosts, jobs and operations."""
    labels = ["host", "job", "op", "volume", "run", "kind"]
    where = {"host": "h1", "job": "1*", "op": "read"}
    return Question(
        by=tuple(chance.sample(labels, chance.randrange(4))),
        step=chance.choice(["auto", "all", SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND]),
        where=dict(chance.sample(sorted(where.items()), chance.randrange(2))),
        merge_runs=chance.random() < 0.2,
    )


def answered(url: str, asked: Question) -> list[str]:
    """Return the lines of an answer, or why there is none."""
    with open_store(url) as store:
        try:
            return csv(store.answer(asked))
        except StoreError:
            raise
        except TailboardError as error:
            return [str(error)]


@pytest.mark.parametrize("shards", [1, 3])
def test_any_question_has_the_answer_of_sqlite(tmp_path: Path, shards: int) -> None:
    """Two runs in monthly indices, the first over a month's end."""
    ground, file = ElasticGround(SERVER), SqliteGround(tmp_path)
    try:
        words = ["--index-prefix", ground.prefix, "--shards", str(shards), "--overwrite"]
        assert command(["setup", "--elasticsearch", SERVER, *words]) == 0
        hosts = logs_by_host(tmp_path, 3, turns=4)
        for url in (ground.url, file.url):
            for run, start in (("b", MONTH_END - 9), ("a", MONTH_END + 40 * 86_400)):
                loaded(url, hosts, run=run, reading={"t0": start * SECOND})
        chance = random.Random(shards)
        for number in range(figure(20, 150)):
            asked = question(chance)
            assert answered(ground.url, asked) == answered(file.url, asked), (number, asked)
    finally:
        ground.drop()


def slow_hosts(folder: Path, seconds: int, slow: int) -> Path:
    """Write 60 fio logs of 50 I/Os a second: h01 to h20 are slow at first, the others a little slow, at the end or throughout."""
    for host in range(1, 61):
        path = folder / f"h{host:02}" / "out_clat_hist.1.log"
        path.parent.mkdir(parents=True)
        with path.open("w") as out:
            for second in range(seconds):
                bins = [0] * 1856
                early = 800 if host > 20 and seconds == 40 else 1100
                bins[(1300 + host if second < slow else 800) if host <= 20 else (early if second < slow else 1100)] = 50
                out.write(f"{(second + 1) * 1000}, 0, 4096, {', '.join(map(str, bins))}\n")
    return folder


@pytest.mark.parametrize(("shards", "start", "seconds", "slow"), [(1, MONTH_END - 20, 40, 20), (3, MONTH_END, 120, 10)])
def test_l1_the_hosts_of_a_panel_have_all_their_operations(
    tmp_path: Path, shards: int, start: int, seconds: int, slow: int
) -> None:
    """Each shard has other worst hosts: that of the new month those which are no slower than others in the old one."""
    ground = ElasticGround(SERVER)
    try:
        words = ["--index-prefix", ground.prefix, "--shards", str(shards), "--overwrite"]
        assert command(["setup", "--elasticsearch", SERVER, *words]) == 0
        loaded(ground.url, [slow_hosts(tmp_path / "logs", seconds, slow)], reading={"t0": start * SECOND})
        panel = next(one for one in compiled(ground.prefix) if one.id == f"{ground.prefix}-cluster-latency-hosts")
        request = lens_request(panel, Shown((start - 100) * 1000, (start + 200) * 1000))
        ground.client.indices.refresh(index=request.index)
        answer = ground.client.perform_request("POST", f"/{request.index}/_search", headers=JSON, body=request.body).body
        assert answer["_shards"]["total"] > 1
        shown = [(row["host"], row["I/Os"]) for row in rows(panel, answer["aggregations"])]
        assert sorted(shown) == [(f"h{host:02}", 50 * seconds) for host in range(1, 21)]
    finally:
        ground.drop()


def steady(folder: Path, seconds: int) -> Path:
    """Write a fio log of 40 I/Os a second."""
    folder.mkdir(parents=True)
    row = ", ".join("40" if place == 900 else "0" for place in range(1856))
    path = folder / "out_clat_hist.1.log"
    path.write_text("".join(f"{(second + 1) * 1000}, 0, 4096, {row}\n" for second in range(seconds)))
    return path


@pytest.mark.parametrize("shards", [1, 3])
def test_l1_without_a_choice_a_panel_is_of_the_run_that_began_last(tmp_path: Path, shards: int) -> None:
    """A run that lasts over the month's end has its first window of the new month's shard there: that is no start."""
    ground = ElasticGround(SERVER)
    try:
        words = ["--index-prefix", ground.prefix, "--shards", str(shards), "--overwrite"]
        assert command(["setup", "--elasticsearch", SERVER, *words]) == 0
        runs = {"soak": (-240, 400), **{f"nightly{night}": (-200 + 20 * night, 60) for night in range(1, 6)}}
        for run, (start, seconds) in runs.items():
            path = steady(tmp_path / run / "h1", seconds)
            loaded(ground.url, [path], run=run, reading={"t0": (MONTH_END + start) * SECOND, "host": "h1"})
        panel = next(one for one in compiled(ground.prefix) if one.id == f"{ground.prefix}-cluster-latency-hosts")
        request = lens_request(panel, Shown((MONTH_END - 300) * 1000, (MONTH_END + 300) * 1000))
        ground.client.indices.refresh(index=request.index)
        answer = ground.client.perform_request("POST", f"/{request.index}/_search", headers=JSON, body=request.body).body
        assert answer["_shards"]["total"] > 1
        [row] = rows(panel, answer["aggregations"])
        assert (row["run"], row["host"], row["I/Os"]) == ("nightly5", "h1", 40 * 60)
    finally:
        ground.drop()
