"""Mutated logs: nothing but a TailboardError ever comes out, and every line that was there is accounted for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.coverage import REFUSED_FILE
from ingest.core.errors import TailboardError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.mutations import Mutation, mutated
from tests.mutations import mutations as drawn

DATA = Path(__file__).parent.parent / "data" / "fio"
LOGS = ("coarse-6", "coarse-4", "client-server", "stall-burst", "latency-target", "per-job-logs-0", "unix-epoch")


def content_of(name: str) -> bytes:
    [path] = (DATA / name).glob("*_clat_hist*")
    return b"".join(path.read_bytes().splitlines(keepends=True)[:40])


CONTENTS = {name: content_of(name) for name in LOGS}
HUGE = [b"18446744073709551615", b"18446744073709551616", b"9223372036854775807", b"8796093022208", b"-1", b"1e9", b"", b"000"]
KINDS = ["flip", "delete", "insert", "truncate", "swap", "duplicate", "nul", "number", "crlf", "drop"]
mutations = drawn(KINDS, 2**16, 200, st.one_of(st.sampled_from(HUGE), st.binary(max_size=6)))


def filled_lines(content: bytes) -> int:
    return sum(bool(line.strip(b" \t\r")) for line in content.split(b"\n"))


def ask(paths: list[Path]) -> Files | None:
    """Return the files after a question, None where they were refused whole."""
    try:
        files = Files(paths, jobs=1)
        files.answer(Question(step="all"))
    except TailboardError as error:
        return files if "no row could be taken" in str(error) and files.account.rows else None
    return files


def check(content: bytes, files: Files | None) -> None:
    """Assert that the account of a log that was read holds: accepted + repaired + rejected is what was there."""
    if files is None:
        return
    for source in files.found.sources:
        if source.format != "fio-hist":
            continue
        account = source.context.account
        if any(entry.caveat.code == REFUSED_FILE for entry in account.missing):
            continue
        assert account.rows == account.accepted + account.rows_repaired + account.rows_rejected
        assert account.rows_rejected == sum(account.rejected.values())
        assert account.rows == filled_lines(content)
        assert account.samples == sum(int(held.counts.sum()) for held in account.totals.values())


def run(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.write_bytes(content)
    check(content, ask([path]))


@pytest.mark.slow
@settings(max_examples=figure(120, 400))
@given(st.sampled_from(LOGS), mutations, st.sampled_from(["x_clat_hist.1.log", "x_clat_hist.log", "output.0_clat_hist.1.log.h1"]))
@example("coarse-6", [("truncate", 0, 0, b"")], "x_clat_hist.1.log")
def test_mutated_logs_never_crash_and_every_line_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, source: str, steps: list[Mutation], name: str
) -> None:
    content = mutated(CONTENTS[source], steps)
    run(folder(tmp_path_factory), name, content)


def folder(factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all examples; each overwrites the file of the one before."""
    if not hasattr(folder, "made"):
        folder.made = factory.mktemp("fuzz")
    for path in folder.made.iterdir():
        path.unlink()
    return folder.made


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(CONTENTS["coarse-6"].replace(b"505,", b"18446744073709551615,", 1), id="huge stamp"),
        pytest.param(CONTENTS["coarse-6"].replace(b"\n", b"\n77\n", 1), id="digits alone"),
        pytest.param(CONTENTS["coarse-6"].replace(b", 4096", b"\r, 4096", 1), id="lone carriage return"),
    ],
)
def test_known_faults(tmp_path: Path, content: bytes) -> None:
    run(tmp_path, "x_clat_hist.1.log", content)


@settings(max_examples=figure(30, 80))
@given(st.sampled_from(["coarse-6", "stall-burst", "client-server", "latency-target"]), mutations)
def test_mutated_logs_beside_their_json(tmp_path_factory: pytest.TempPathFactory, source: str, steps: list[Mutation]) -> None:
    """The residual of json+ may come on top; lines are accounted for all the same."""
    content = mutated(CONTENTS[source], steps)
    at = folder(tmp_path_factory)
    [log] = (DATA / source).glob("*_clat_hist*")
    (at / log.name).write_bytes(content)
    (at / "a.json").write_bytes((DATA / source / "a.json").read_bytes())
    check(content, ask([at]))


@pytest.mark.slow
@settings(max_examples=figure(50, 150))
@given(st.sampled_from(["coarse-6", "client-server", "status-interval", "lat-percentiles"]), mutations)
def test_mutated_json_never_crashes(tmp_path_factory: pytest.TempPathFactory, source: str, steps: list[Mutation]) -> None:
    path = folder(tmp_path_factory) / "b.json"
    path.write_bytes(mutated((DATA / source / "a.json").read_bytes(), steps))
    files = ask([path])
    if files is not None:
        account = files.account
        assert account.rows == account.accepted + account.rows_rejected


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3), st.none(), st.lists(st.integers(), max_size=2), st.just({})
)
PLACES = [
    ("timestamp_ms",),
    ("fio version",),
    ("global options",),
    ("jobs",),
    ("jobs", 0),
    ("jobs", 0, "job_runtime"),
    ("jobs", 0, "job_start"),
    ("jobs", 0, "groupid"),
    ("jobs", 0, "job options"),
    *(("jobs", 0, "read", key) for key in ("runtime", "total_ios", "clat_ns")),
    *(("jobs", 0, "read", "clat_ns", key) for key in ("min", "max", "mean", "N", "bins", "percentile")),
    ("jobs", 0, "read", "clat_ns", "bins", "129"),
]


@settings(max_examples=figure(70, 200))
@given(st.sampled_from(PLACES), NUMBERS)
def test_json_with_an_odd_value_never_crashes(tmp_path_factory: pytest.TempPathFactory, place: tuple, value: object) -> None:
    document = json.loads((DATA / "coarse-6" / "a.json").read_text())
    at = document
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    path = folder(tmp_path_factory) / "b.json"
    path.write_text(json.dumps(document))
    ask([path])


OTHERS = {
    "histograms": (
        "asbench_histogram.txt ceph_perf_histogram_synthetic.ndjson hdr_snapshot_ticks.ndjson otlp_cumulative.jsonl otlp_delta.jsonl "
        "pgbench15_plain.log pgbench15_rate.log prom242_native_range_vector.json prom242_tsdb_dump_classic.txt prom_classic.txt "
        "prom_openmetrics.txt redis70_latency_histogram.ndjson sysbench1020_histogram.txt"
    ),
    "raw/ycsb": "raw.csv",
    "tables": "biosnoop.txt ext4slower.txt",
    "hdr": "1.2.1-2-digits.hlog",
}
FILES = [DATA.parent / place / name for place, names in OTHERS.items() for name in names.split()]
LARGEST = 1 << 15


@pytest.mark.slow
@settings(max_examples=figure(60, 90, 1000), deadline=None)
@given(st.sampled_from(FILES), mutations.filter(bool))
def test_mutated_files_of_every_format_beside_a_sound_log_never_crash(
    tmp_path_factory: pytest.TempPathFactory, source: Path, steps: list[Mutation]
) -> None:
    """Whatever a file has become, an answer about its folder holds the sound log beside it to the last sample."""
    at = folder(tmp_path_factory)
    (at / "kept_clat_hist.9.log").write_bytes(CONTENTS["coarse-6"])
    name = "pgbench_log.1" if "pgbench" in source.name else source.name
    (at / name).write_bytes(mutated(source.read_bytes()[:LARGEST], steps))
    files = Files([at], ReadOptions(run="r", recorded_unit_ns=1000), jobs=1)
    files.answer(Question(step="all", force=True))
    [kept] = [entry for entry in files.found.sources if entry.path.name == "kept_clat_hist.9.log"]
    assert kept.context.account.samples == 604
    for entry in files.found.sources:
        account = entry.context.account
        assert account.rows == account.accepted + account.rows_repaired + account.rows_rejected + sum(account.skipped.values())
