"""Traces on the command line: inspect, load, standard input, and what is said of idle CPUs and of moments."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from oracles.traces import chrome_operations, is_idle, perf_samples
from tests.commands import tailboard

ROOT = Path(__file__).parent.parent.parent
TRACES = ROOT / "tests" / "data" / "traces"
PERF, NODE = TRACES / "cpu.txt.xz", TRACES / "node.json.xz"
SAMPLES = perf_samples(lzma.open(PERF).read().decode())
IDLE = sum(map(is_idle, SAMPLES))


def test_inspect_tells_what_traces_are() -> None:
    done = tailboard("inspect", TRACES, "--format", "ndjson")
    entries = {Path(entry["path"]).name: entry for entry in map(json.loads, done.stdout.splitlines())}
    assert {name: entry["format"] for name, entry in entries.items() if name.endswith(".xz")} == {
        name: "chrome-trace" if ".json" in name else "perf-script" for name in entries if name.endswith(".xz")
    }
    entry = entries["cpu.txt.xz"]
    assert (entry["job"], entry["rows"]) == ("cpu", len(SAMPLES))
    assert f"{IDLE} samples of idle CPUs (--keep-idle keeps them), left out" in json.dumps(entry)


def test_a_load_counts_idle_samples_as_skipped(tmp_path: Path) -> None:
    for option, idle in ((), IDLE), (("--keep-idle",), 0):
        store = f"sqlite:{tmp_path}/{len(option)}.db"
        done = tailboard("load", PERF, "--run", "p", "--store", store, "--json", *option)
        told = json.loads(done.stdout)
        assert (done.returncode, told["rows"], told["accepted"]) == (0, len(SAMPLES), len(SAMPLES) - idle)
        reason = "samples of idle CPUs (--keep-idle keeps them)"
        assert told["skipped_rows"] == ({reason: idle} if idle else {})
        assert (f"0 rejected, {idle} skipped)" in done.stderr) == bool(idle)
        again = tailboard("load", PERF, "--run", "p", "--store", store, "--json", *option)
        assert json.loads(again.stdout)["rows"] == 0
    other = tailboard("load", PERF, "--run", "p", "--store", store, "--json")
    assert json.loads(other.stdout)["accepted"] == len(SAMPLES) - IDLE  # read again, because less is wanted now
    assert offsets(store) == len(SAMPLES) - IDLE


def offsets(*words: object) -> int:
    """Return how many events a map of offsets holds."""
    done = tailboard("offsets", *words, "--format", "csv")
    return sum(int(line.rsplit(",", 1)[1]) for line in done.stdout.splitlines()[1:])


def test_recordings_of_one_host_stay_apart(tmp_path: Path) -> None:
    store, paths = f"sqlite:{tmp_path}/s.db", [TRACES / f"{name}.txt.xz" for name in ("flat", "few", "issues")]
    assert tailboard("load", *paths, "--run", "p", "--store", store).returncode == 0
    assert offsets(store) == offsets(*paths) == sum(offsets(path) for path in paths) > 2 * (len(SAMPLES) - IDLE)


def test_latencies_asked_of_moments_say_what_they_are() -> None:
    done = tailboard("percentiles", PERF, "--step", "all")
    assert done.returncode == 3 and not done.stdout
    sentence = (
        f"nothing here has a latency: {PERF}: {len(SAMPLES) - IDLE} samples are moments (when something was seen), not latencies"
    )
    assert sentence in done.stderr and "Traceback" not in done.stderr


def test_a_trace_may_be_piped_in() -> None:
    done = tailboard("percentiles", "-", "--step", "all", "--format", "ndjson", piped=lzma.open(NODE).read())
    assert json.loads(done.stdout)["count"] == len(chrome_operations(lzma.open(NODE).read().decode())[0])
    done = tailboard("offsets", "-", "--format", "csv", "--keep-idle", piped=lzma.open(PERF).read())
    assert sum(int(line.rsplit(",", 1)[1]) for line in done.stdout.splitlines()[1:]) == len(SAMPLES)
