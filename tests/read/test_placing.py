"""Which file is what, whose and when: archives of CBT and pbench, fio's JSON and its logs, plain folders. Ids as in findings A."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from importlib import metadata
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import formats, plugins
from ingest.read.archives import Archives
from ingest.read.archives.plain import short_names
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import logs
from tests.commands import tailboard
from tests.damage import FORMATS, content_of

DATA = Path(__file__).parents[1] / "data"
CASES = DATA / "fio" / "cases"
CBT = DATA / "cbt"
EXAMPLE = Path(__file__).parents[2] / "examples" / "cbt-archive"


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all recorded CBT archives, unpacked."""
    folder = tmp_path_factory.mktemp("cbt")
    for file in CBT.glob("*.tar.xz"):
        with tarfile.open(file) as tar:
            tar.extractall(folder, filter="data")
    return folder


def counts(files: Any, *by: str, **where: str) -> Counter[tuple[str, ...]]:
    """Return the samples of each group over the whole range."""
    table = percentiles(files.answer(Question(step="all", by=by, where=where)), Wanted(parse_percentiles("99"))).columns
    columns = [table[name].tolist() for name in by]
    return Counter(dict(zip(zip(*columns, strict=True), table["count"].tolist(), strict=True)))


def truth_of(archive: str, entry: dict[str, Any]) -> tuple[str, ...]:
    """Return run, host, volume and op of an entry of truth.json."""
    run = entry["run"].removeprefix("results/")
    if entry["workload"]:
        permutation, _, rest = run.removeprefix("00000000/").partition("/")
        depth = f"total_iodepth-{entry['total_iodepth']}"
        assert rest.startswith(f"{entry['workload']}.{entry['host']}/numjobs-001/{depth}/")
        run = f"00000000/{permutation}/{entry['workload']}/numjobs-001/{depth}"
    return f"{archive}/{run}", entry["host"], str(entry["volume"]), entry["op"]


def truth(archive: str) -> Counter[tuple[str, ...]]:
    """Return N by run, host, volume and op as fio's own JSON of an archive has it."""
    found: Counter[tuple[str, ...]] = Counter()
    for entry in json.loads((CBT / "truth.json").read_text())[archive]:
        found[truth_of(archive, entry)] += entry["N"]
    return found


BY = ("run", "host", "volume", "op")


@pytest.mark.slow
def test_an_archive_of_cbt_equals_its_truth(archives: Path) -> None:
    assert counts(Files([archives / "B"], jobs=1), *BY) == truth("B")


@pytest.mark.cases(5)
@pytest.mark.slow
@pytest.mark.parametrize("given", [".", "B", "B/results", "B/results/00000000", "B/results/00000000/id-2b63de81"])
def test_an_archive_is_the_same_whichever_of_its_folders_is_named(archives: Path, tmp_path: Path, given: str) -> None:
    shutil.copytree(archives / "B", tmp_path / "B")
    assert counts(Files([tmp_path / given], jobs=1), *BY) == truth("B")


def test_a_workload_alone_has_the_runs_and_hosts_of_its_archive(archives: Path) -> None:
    folders = sorted((archives / "B" / "results" / "00000000" / "id-2b63de81").glob("16k7030.client*"))
    whole = Counter({key: count for key, count in truth("B").items() if "/16k7030/" in key[0]})
    assert counts(Files(folders, jobs=1), *BY) == whole
    one = Counter({key: count for key, count in whole.items() if key[1] == "client2.lab.test"})
    assert counts(Files([folders[1]], jobs=1), *BY) == one


def test_without_settings_hosts_come_from_job_names_or_the_first_dot(archives: Path, tmp_path: Path) -> None:
    shutil.copytree(archives / "B", tmp_path / "B")
    for file in (tmp_path / "B").rglob("*.yaml"):
        file.unlink()
    assert counts(Files([tmp_path / "B"], jobs=1), *BY) == truth("B")
    dotted = tmp_path / "B" / "results" / "00000000" / "id-2b63de81"
    for folder in dotted.glob("16k7030.*"):
        for summary in folder.rglob("*output.[0-9]"):
            summary.write_text(summary.read_text().replace("cbt-fio-16k7030-", "cbt-fio-16k.7030-"))
        folder.rename(folder.with_name(folder.name.replace("16k7030", "16k.7030")))
    found = counts(Files([tmp_path / "B"], jobs=1), "host", "run")
    assert {host for host, _ in found} == {"client1.lab.test", "client2.lab.test", "client3.lab.test"}
    assert {run.split("/")[3] for _, run in found} == {"16k.7030", "4krandomwrite"}


@pytest.mark.slow
def test_a_store_holds_what_the_files_say_and_takes_it_once(archives: Path, tmp_path: Path) -> None:
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        account = load([archives / "B"], store, LoadOptions(ReadOptions(run="B"), jobs=1))
        assert account.caveats == [] and account.refused == {} or all("averaged" in reason for reason in account.refused.values())
        assert counts(store, *BY) == truth("B")
        again = load([archives / "B" / "results"], store, LoadOptions(ReadOptions(run="B"), jobs=1))
        assert again.loaded == 0 and again.documents == 0


def test_settings_are_labels_and_what_is_secret_is_not(archives: Path) -> None:
    found = discover([archives / "B"], ReadOptions())
    labels = found.labels["B/00000000/id-2b63de81/16k7030/numjobs-001/total_iodepth-3"]
    told = {
        name: labels[name]
        for name in ("benchmark", "workload", "mode", "op_size", "rwmixread", "numjobs", "total_iodepth", "clients", "osds")
    }
    assert told == {
        "benchmark": "librbdfio", "workload": "16k7030", "mode": "randrw", "op_size": "16384", "rwmixread": "70", "numjobs": "1",
        "total_iodepth": "3", "clients": "3", "osds": "1",
    }  # fmt: skip
    assert not {"iodepth", "cmd_path", "user", "conf_file", "head", "ceph_cmd"} & set(labels)


def test_settings_that_cannot_be_read_are_said(archives: Path, tmp_path: Path) -> None:
    shutil.copytree(archives / "B", tmp_path / "B")
    (tmp_path / "B" / "results" / "cbt_config.yaml").write_text("cluster: [unfinished\n")
    files = Files([tmp_path / "B"], jobs=1)
    assert [(caveat.code, Path(caveat.subject).name) for caveat in files.found.caveats] == [
        ("settings-unread", "cbt_config.yaml")
    ]
    assert counts(files, *BY) == truth("B")


def test_monitoring_and_notes_are_no_logs_and_hidden_folders_are_said(archives: Path) -> None:
    found = discover([archives / "B"], ReadOptions())
    reasons = Counter(entry.reason for entry in found.skipped)
    assert reasons["CBT's monitoring (collectl): not read"] == 40
    assert reasons["CBT's notes about the cluster: not latencies"] == 2
    assert not any("client1-2026" in str(source.path) for source in found.sources)


# The layouts, as CBT's code names its folders; the logs in them are recorded ones.

LOG, SUMMARY = DATA / "fio" / "randrw" / "a_clat_hist.1.log", DATA / "fio" / "randrw" / "a.json"
FLAT = "op_size-00004096/concurrent_procs-001/iodepth-032/randread"
LAYOUTS = {
    "L0": (f"00000000/rbdfio/{FLAT}", "output_clat_hist.1.log.h1", f"00000000/rbdfio/{FLAT}", ("h1", "")),
    "L1": (f"00000000/LibrbdFio/osd_ra-00004096/{FLAT}", "output.3_clat_hist.1.log.h1", f"00000000/LibrbdFio/osd_ra-00004096/{FLAT}", ("h1", "3")),
    "L2": ("results/00000000/id-3309284191688069537", "output.0_clat_hist.1.log.h1", "00000000/id-3309284191688069537", ("h1", "0")),
    "L2 negative": ("results/00000001/id--330928419168806953", "output.0_clat_hist.1.log.h1", "00000001/id--330928419168806953", ("h1", "0")),
    "L2 rbdfio": (
        f"results/00000000/id-5/rbdfio/osd_ra-00004096/client_ra-00000128/{FLAT}", "output_clat_hist.1.log.h1",
        f"00000000/id-5/rbdfio/osd_ra-00004096/client_ra-00000128/{FLAT}", ("h1", ""),
    ),
    "L3": ("results/00000000/id-9b5d006f", "output.1_clat_hist.1.log.h1.lab", "00000000/id-9b5d006f", ("h1.lab", "1")),
    "L4": (
        "results/00000000/id-9b5d006f/4k.h1.lab/numjobs-001/total_iodepth-3/iodepth-000002", "output.0_clat_hist.1.log",
        "00000000/id-9b5d006f/4k/numjobs-001/total_iodepth-3", ("h1.lab", "0"),
    ),
    "L4 without total": (
        "results/00000000/id-9b5d006f/4k.h1.lab/numjobs-004/iodepth-000008", "output.0_clat_hist.1.log",
        "00000000/id-9b5d006f/4k/numjobs-004/iodepth-000008", ("h1.lab", "0"),
    ),
    "L5": (
        "results/00000000/id-9b5d006f/4k.h1.lab/rbdfio/numjobs-001/iodepth-000008", "output.0_clat_hist.1.log",
        "00000000/id-9b5d006f/4k/rbdfio/numjobs-001/iodepth-000008", ("h1.lab", "0"),
    ),
    "L6": (
        "results/00000000/id-9b5d006f/libaio_fio.h1.lab/numjobs-001/iodepth-000008", "output.0_clat_hist.1.log",
        "00000000/id-9b5d006f/libaio_fio/numjobs-001/iodepth-000008", ("h1.lab", "0"),
    ),
    "RawFio": (
        f"results/00000000/id-9b5d006f/raw_ra-00004096/{FLAT}", "output.0_clat_hist.1.log.h1",
        f"00000000/id-9b5d006f/raw_ra-00004096/{FLAT}", ("h1", "0"),
    ),
    "RawFio 2026": (
        "results/00000000/id-9b5d006f/raw_ra-00004096/op_size-00004096/concurrent_procs-001/randread/iodepth-016", "output.0_clat_hist.1.log.h1",
        "00000000/id-9b5d006f/raw_ra-00004096/op_size-00004096/concurrent_procs-001/randread/iodepth-016", ("h1", "0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_cbt_names_run_host_and_volume(tmp_path: Path, layout: str) -> None:
    folder, name, run, (host, volume) = LAYOUTS[layout]
    place = tmp_path / "archive" / folder
    place.mkdir(parents=True)
    shutil.copy(LOG, place / name)
    [source] = discover([tmp_path / "archive"], ReadOptions()).sources
    series = source.context.series
    assert (series.run, series.host, series.volume, series.job) == (f"archive/{run}", host, volume, "1")
    [same] = discover([place], ReadOptions()).sources
    assert same.context.series == series
    [named] = discover([place], ReadOptions(run="nightly")).sources
    assert named.context.series.run == f"nightly/{run}"


@pytest.mark.parametrize("benchmark", ["radosbench", "getput", "cosbench", "hsbench", "elbencho"])
def test_other_benchmarks_are_refused_by_name(tmp_path: Path, benchmark: str) -> None:
    place = tmp_path / "archive" / "results" / "00000000" / "id-9b5d006f"
    (place / "write").mkdir(parents=True)
    (place / "benchmark_config.yaml").write_text(f"cluster:\n  benchmark: {benchmark}\n")
    (place / "write" / "output.0.h1").write_text("Maintaining 16 concurrent writes of 4194304 bytes\n")
    with pytest.raises(InputError, match=f"CBT's {benchmark}: recognised, not read"):
        discover([tmp_path / "archive"], ReadOptions())


def test_the_working_folder_beside_results_counts_once(archives: Path, tmp_path: Path) -> None:
    """archive_dir = tmp_dir: the tree that CBT worked in lies beside results, with the logs of this machine."""
    shutil.copytree(archives / "B", tmp_path / "B")
    permutation = tmp_path / "B" / "results" / "00000000" / "id-2b63de81"
    for folder in permutation.glob("*.client1.lab.test"):
        own = tmp_path / "B" / "00000000" / "LibrbdFio" / "osd_ra-00000000" / folder.name.split(".")[0]
        shutil.copytree(folder, own, ignore=shutil.ignore_patterns("json_output*", "collectl"))
    files = Files([tmp_path / "B"], jobs=1)
    assert counts(files, *BY) == truth("B")
    assert any("counted once" in entry.reason for entry in files.found.skipped)


@pytest.mark.parametrize("ending", ["", "removed"])
def test_a_log_without_a_byte_is_missing_as_one_that_is_not_there(tmp_path: Path, ending: str) -> None:
    """As after a full disk: fio's JSON counts the job all the same."""
    folder = tmp_path / "stonewall-333"
    shutil.copytree(CASES / "stonewall-333", folder)
    log = folder / "h_clat_hist.3.log"
    log.unlink() if ending else log.write_bytes(b"")
    answer = Files([folder], jobs=1).answer(Question(step="all"))
    assert {(lack.entry.labels["op"], lack.entry.count) for lack in answer.missing} == {("read", 1200), ("write", 1200)}


def test_logs_of_a_group_that_hold_more_than_fio_counts_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "group-raw-333"
    shutil.copytree(CASES / "group-raw-333", folder)
    log = folder / "x_lat.2.log"
    log.write_bytes(log.read_bytes() * 2)
    said = Files([folder], jobs=1).answer(Question(step="all")).warnings
    for op in ("read", "write"):
        sentence = f"fio counts 4,800 {op}s, and 3 logs hold 6,400: counted twice, or not of one run"
        assert any(sentence in warning for warning in said)


def test_what_servers_counted_is_of_the_run_of_the_archive_beside_it(tmp_path: Path) -> None:
    """As the guide says: `load osd3.ndjson fio-logs/ --run night-42`. Two archives stay two runs, and another log is none of theirs."""
    for name in ("fio-logs", "others"):
        shutil.copytree(CASES / "two-prefixes", tmp_path / name)
    server = tmp_path / "redis.ndjson"
    lines = [
        {
            "sampled_at": 1_795_326_616.5 + at,
            "record": "poll",
            "command": "ask",
            "said": {"get": {"calls": at, "histogram_usec": {"1": at}}},
        }
        for at in range(4)
    ]
    server.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

    def runs(*paths: Path, run: str = "") -> dict[str, str]:
        sources = discover(paths, ReadOptions(run=run)).sources
        return {source.path.relative_to(tmp_path).parts[0]: source.context.series.run for source in sources}

    assert runs(server, tmp_path / "fio-logs", run="night") == {"redis.ndjson": "night", "fio-logs": "night"}
    assert runs(tmp_path / "fio-logs", server) == {"redis.ndjson": "fio-logs", "fio-logs": "fio-logs"}
    three = runs(server, tmp_path / "fio-logs", tmp_path / "others", run="night")
    assert three == {"redis.ndjson": "night", "fio-logs": "night/fio-logs", "others": "night/others"}
    shutil.copy(DATA / "hdr" / "double.hlog", tmp_path)
    assert runs(tmp_path / "fio-logs", tmp_path / "double.hlog", run="night")["double.hlog"] == "night"


PACKED = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True)}


@pytest.mark.parametrize("ending", PACKED)
def test_a_log_beside_its_compressed_copy_counts_once(tmp_path: Path, ending: str) -> None:
    """As after `gzip -k`; a copy that breaks off, or holds other data, is still refused."""
    folder = tmp_path / "two-prefixes"
    shutil.copytree(CASES / "two-prefixes", folder)
    wanted = counts(Files([folder], jobs=1), *BY)
    log = folder / "h_clat_hist.1.log"
    packed = log.with_name(log.name + ending)
    packed.write_bytes(PACKED[ending](log.read_bytes()))
    files = Files([folder], jobs=1)
    assert counts(files, *BY) == wanted
    assert [entry.reason for entry in files.found.skipped if entry.path == packed] == [
        f"the same content as {log}, compressed: counted once"
    ]
    log.write_bytes(log.read_bytes().replace(b"\n", b"\n\n", 1))
    with pytest.raises(InputError, match="holds other data"):
        counts(Files([folder], jobs=1), *BY)


def test_a_folder_that_a_link_leads_to_counts_once(tmp_path: Path) -> None:
    """As with `results/*`, where latest is a link to the newest; a link to a folder that is not named is read as that folder."""
    results = tmp_path / "results"
    shutil.copytree(CASES / "two-prefixes", results / "2026-11-22")
    (results / "latest").symlink_to(results / "2026-11-22")
    wanted = counts(Files([results / "2026-11-22"], jobs=1), "host", "volume", "op")
    for paths in (
        sorted(results.iterdir()),
        sorted(results.iterdir())[::-1],
        [results, results / "latest"],
        [results / "latest"],
    ):
        files = Files(paths, jobs=1)
        assert counts(files, "host", "volume", "op") == wanted and not files.found.caveats


def test_a_fio_that_died_is_said(archives: Path, tmp_path: Path) -> None:
    shutil.copytree(archives / "B", tmp_path / "B")
    [folder] = (tmp_path / "B").rglob("4krandomwrite.client3.lab.test/numjobs-001/total_iodepth-8/iodepth-000004")
    for log in folder.glob("output.1_*"):
        log.unlink()
    (folder / "json_output.1").write_text("")
    (folder / "output.1").write_text(
        "cbt: (g=0): rw=randwrite, bs=4096B, ioengine=rbd, iodepth=4\nfio-3.33\nStarting 1 process\n"
    )
    files = Files([tmp_path / "B"], jobs=1)
    warnings = files.answer(Question(step="all")).warnings
    assert any("fio wrote no result here" in text and "json_output.1" in text for text in warnings)
    gone = ("B/00000000/id-2b63de81/4krandomwrite/numjobs-001/total_iodepth-8", "client3.lab.test", "1", "write")
    assert counts(files, *BY) == Counter({key: count for key, count in truth("B").items() if key != gone})


def test_jobs_of_the_json_that_no_log_holds_are_said(tmp_path: Path) -> None:
    """procs_per_volume: 2 with workloads: only the last job of each process logs."""
    folder = tmp_path / "results" / "00000000" / "id-9b5d006f" / "4k.h1/numjobs-001/iodepth-000008"
    folder.mkdir(parents=True)
    document = json.loads(SUMMARY.read_text())
    first = json.loads(json.dumps(document["jobs"][0]))
    first["jobname"] = "cbt-fio-4k-h1-file-0"
    document["jobs"] = [first, document["jobs"][0]]
    (folder / "json_output.0").write_text(json.dumps(document, indent=1))
    shutil.copy(LOG, folder / "output.0_clat_hist.2.log")
    found = discover([tmp_path], ReadOptions())
    caveat, *others = dict.fromkeys(entry.caveat for entry in found.lacking())
    assert {one.code for one in (caveat, *others)} == {"jobs-without-log"} and not found.caveats
    assert "job 1 (cbt-fio-4k-h1-file-0)" in str(caveat) and "missing" in str(caveat)
    assert counts(Files([tmp_path], jobs=1), "op") == counts(Files([LOG.parent], jobs=1), "op", kind="completion")


def test_two_ids_are_never_merged(tmp_path: Path) -> None:
    for name in ("id-9b5d006f", "id-00000002"):
        place = tmp_path / "results" / "00000000" / name
        place.mkdir(parents=True)
        shutil.copy(LOG, place / "output.0_clat_hist.1.log.h1")
    runs = {source.context.series.run for source in discover([tmp_path], ReadOptions(run="n")).sources}
    assert runs == {"n/00000000/id-9b5d006f", "n/00000000/id-00000002"}


# Findings A1 to A20, where placing is what was wrong.


def test_a1_todays_cbt_archive(archives: Path) -> None:
    files = Files([archives / "cbt-workloads-layout"], jobs=1)
    found = counts(files, "run", "host", "volume", kind="completion")
    said: Counter[tuple[str, ...]] = Counter()
    for summary in (archives / "cbt-workloads-layout").rglob("json_output.*"):
        _, permutation, workload, _, depth, _, _ = summary.relative_to(archives / "cbt-workloads-layout" / "results").parts
        size, _, host = workload.partition(".")
        run = f"cbt-workloads-layout/00000000/{permutation}/{size}/numjobs-001/{depth}"
        text = summary.read_text()
        said[run, host, summary.suffix[1:]] = json.loads(text[text.index("{") :])["jobs"][0]["read"]["clat_ns"]["N"]
    assert found == said and len(said) == 16


def test_a2_pbench_hosts_take_their_own_jobs(tmp_path: Path) -> None:
    files = Files([CASES / "pbench-two-hosts"], jobs=1)
    assert counts(files, "host") == {("127.0.0.1",): 3990, ("127.0.0.2",): 480}
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        load([CASES / "pbench-two-hosts"], store, LoadOptions(ReadOptions(run="p"), jobs=1))
        assert counts(store, "host") == {("127.0.0.1",): 3990, ("127.0.0.2",): 480}


@pytest.mark.parametrize("given", ["clients/127.0.0.2", "clients/127.0.0.2/fio_clat_hist.1.log"])
def test_a2_one_host_alone_finds_the_json_of_its_sample(given: str) -> None:
    assert counts(Files([CASES / "pbench-two-hosts" / given], jobs=1), "host") == {("127.0.0.2",): 480}


@pytest.mark.parametrize(
    ("here", "given"),
    [
        ("..", "pbench-two-hosts/clients"),
        (".", "clients"),
        ("clients", "."),
        ("clients", "127.0.0.2"),
        ("clients/127.0.0.2", "fio_clat_hist.1.log"),
    ],
)
def test_a2_from_any_working_folder_the_json_of_the_sample_is_found(
    here: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES / "pbench-two-hosts" / here)
    found = counts(Files([Path(given)], jobs=1), "host")
    both = {("127.0.0.1",): 3990, ("127.0.0.2",): 480}
    assert found == (both if given.endswith(("clients", ".")) else {("127.0.0.2",): 480})


def test_a2_a_host_that_the_json_does_not_know_takes_nothing_from_it(tmp_path: Path) -> None:
    shutil.copytree(CASES / "pbench-two-hosts", tmp_path / "s")
    (tmp_path / "s" / "clients" / "127.0.0.2").rename(tmp_path / "s" / "clients" / "osd9")
    found = discover([tmp_path / "s"], ReadOptions())
    assert ["host-conflict"] == [caveat.code for caveat in found.caveats if "osd9" in caveat.subject]
    rows = logs.cells((tmp_path / "s" / "clients" / "osd9" / "fio_clat_hist.1.log").read_text())
    compounded = [sum(row[3:]) for row in rows]
    logged = sum(now - then for now, then in zip(compounded, [0, 0, *compounded]))
    alone = Files([tmp_path / "s"], jobs=1)
    assert counts(alone, "host")["osd9",] == logged <= 480 < sum(compounded)
    linked = Files([tmp_path / "s"], ReadOptions(host_alias={"osd9": "127.0.0.2"}), jobs=1)
    assert counts(linked, "host") == {("127.0.0.1",): 3990, ("127.0.0.2",): 480}


def test_a_pbench_archive_has_a_run_a_sample(tmp_path: Path) -> None:
    for sample in ("sample1", "sample2"):
        place = tmp_path / "fio_x_2026" / "1-randread-4KiB" / sample
        shutil.copytree(CASES / "pbench-two-hosts", place)
        (place / "tools-default" / "127.0.0.1").mkdir(parents=True)
        (place / "tools-default" / "127.0.0.1" / "iostat.txt").write_text("Linux 5.14\n")
    found = discover([tmp_path], ReadOptions())
    runs = {source.context.series.run for source in found.sources}
    assert runs == {f"fio_x_2026/1-randread-4KiB/sample{number}" for number in (1, 2)}
    assert found.labels["fio_x_2026/1-randread-4KiB/sample1"] == {"rw": "randread", "bs": "4KiB"}
    assert any("pbench's monitoring (tools-default)" in entry.reason for entry in found.skipped)


@pytest.mark.parametrize("prefer", ["hist", "raw"])
def test_a3_logs_of_one_job_in_folders_that_its_options_name_count_once(prefer: str, tmp_path: Path) -> None:
    text = (CASES / "two-prefixes" / "out.json").read_text()
    (tmp_path / "out.json").write_text(text.replace('log" : "h"', 'log" : "hist/h"').replace('log" : "l"', 'log" : "raw/l"'))
    for name in ("hist/h_clat_hist.1.log", "raw/l_clat.1.log"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(CASES / "two-prefixes" / Path(name).name, tmp_path / name)
    files = Files([tmp_path], ReadOptions(prefer=prefer), jobs=1)
    assert counts(files, "op") == {("read",): 1600, ("write",): 1600}


def test_a3_one_job_under_two_prefixes_counts_once() -> None:
    files = Files([CASES / "two-prefixes"], jobs=1)
    assert counts(files, "op") == {("read",): 1600, ("write",): 1600}
    files = Files([CASES / "two-prefixes"], ReadOptions(prefer="raw"), jobs=1)
    assert counts(files, "op") == {("read",): 1600, ("write",): 1600}


@pytest.mark.cases(1)
@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("fio/randrw/a_clat_hist.1.log", 1204), ("raw/both/a_clat.1.log.xz", 0), ("snabb", 0),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (("fio/randrw/a.json", 1350), ("hdr/tagged.hlog", 0), ("traces", 0))),
    ],
)  # fmt: skip
def test_a14_standard_input_takes_every_format(tmp_path: Path, name: str, count: int, ending: str) -> None:
    file = DATA / name
    if file.is_dir():
        file = min(path for path in file.rglob("*") if path.is_file() and path.suffix in (".xz", ".txt", ".json", ".timeline"))
    data = (
        lzma.open(file).read() if file.suffix == ".xz" else gzip.open(file).read() if file.suffix == ".gz" else file.read_bytes()
    )
    packed = {"": data, ".gz": gzip.compress(data), ".xz": lzma.compress(data, preset=0)}[ending]
    done = subprocess.run(
        [sys.executable, "-m", "ingest", "inspect", "-", "--format", "ndjson", "--tsc-hz", "2.6e9"],
        input=packed,
        capture_output=True,
        timeout=120,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    sources = [row for row in rows if "samples" in row]
    assert len(sources) == 1 and sources[0]["run"] == "stdin", done.stderr
    if count:
        assert sources[0]["samples"] == count


def test_a15_time_from_the_file_and_hosts_from_folders_for_every_format(tmp_path: Path) -> None:
    texts = {
        "ops.csv": "start_us,end_us,op\n1000,2100,read\n5000,9000,read\n",
        "rsptimes_01_h_create_10.csv": "create,  0.000312,  0.001718\ncreate,  0.100312,  0.001718\n",
    }
    for name, text in texts.items():
        for host in ("h1", "h2"):
            place = tmp_path / name / host
            place.mkdir(parents=True)
            (place / name).write_text(text.replace("read", f"read{host}"))
            os.utime(place / name, (1_790_000_000, 1_790_000_000))
        found = discover([tmp_path / name], ReadOptions(t0="mtime"))
        assert {source.context.zero.origin for source in found.sources} == {"file time (--t0 mtime)"}
        hosts = {source.context.series.host for source in found.sources}
        assert hosts == ({"h1", "h2"} if name == "ops.csv" else {"h"})
        last = 9_000_000 if name == "ops.csv" else 102_030_000
        ends = {source.context.zero.epoch_ns for source in found.sources}
        assert all(abs(1_790_000_000 * 10**9 - last - zero) <= 10**9 for zero in ends)


def test_a16_text_output_beside_a_log_tells_its_version(tmp_path: Path) -> None:
    (tmp_path / "x_clat.1.log").write_text("1, 5000, 0, 4096\n2, 6000, 0, 4096\n")
    with pytest.raises(InputError, match="--fio-version"):
        discover([tmp_path], ReadOptions())
    (tmp_path / "out.txt").write_text("x: (g=0): rw=read, bs=4096B, ioengine=null, iodepth=1\nfio-3.33\nStarting 1 process\n")
    [source] = discover([tmp_path], ReadOptions()).sources
    assert source.context.version == (3, 33)
    assert any(one.fact == "fio version" and one.value == "3.33" for one in source.evidence)


def test_a17_paths_that_are_whole_archives_are_a_run_each(tmp_path: Path) -> None:
    for night in ("a", "b", "c"):
        shutil.copytree(LOG.parent, tmp_path / night)
    paths = [tmp_path / night for night in ("a", "b", "c")]
    assert {run for (run,) in counts(Files(paths, jobs=1), "run", kind="completion")} == {"a", "b", "c"}
    named = Files(paths, ReadOptions(run="n"), jobs=1)
    assert {run for (run,) in counts(named, "run", kind="completion")} == {"n/a", "n/b", "n/c"}


def test_a17_folders_that_fio_ran_in_one_after_another_are_runs_and_not_hosts(tmp_path: Path) -> None:
    for night, later in (("monday", 0), ("tuesday", 86_400_000)):
        shutil.copytree(LOG.parent, tmp_path / "nights" / night)
        summary = tmp_path / "nights" / night / "a.json"
        document = json.loads(summary.read_text())
        document["timestamp_ms"] += later
        summary.write_text(json.dumps(document, indent=1))
    found = discover([tmp_path / "nights"], ReadOptions())
    assert {(source.context.series.run, source.context.series.host) for source in found.sources} == {
        ("nights/monday", ""),
        ("nights/tuesday", ""),
    }
    assert [caveat.code for caveat in found.caveats] == ["folders-apart", "same-content"]


def test_a_glob_of_logs_answers_as_its_folder(tmp_path: Path) -> None:
    logs = sorted(LOG.parent.glob("*_clat_hist*.log"))
    for by in (("op",), ("op", "job")):
        assert counts(Files(logs, jobs=1), *by) == counts(Files([LOG.parent], jobs=1), *by, kind="completion")
    hosts = sorted((CASES / "pbench-two-hosts").rglob("*.log"))
    assert counts(Files(hosts, jobs=1), "host") == counts(Files([CASES / "pbench-two-hosts"], jobs=1), "host")


def test_a19_refusals_name_what_a_file_looks_like_and_all_formats(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text("moment;value\n1;2\n")
    with pytest.raises(InputError) as raised:
        discover([tmp_path], ReadOptions())
    text = str(raised.value)
    assert "30 files" in text and "a table with semicolons (moment, value)" in text and "--input-format events.yml" in text
    assert all(line.title in text for line in (*formats.CORE, *formats.ours()) if line.name not in formats.BY_DESCRIPTION)


def test_a_file_that_is_passed_over_beside_logs_is_one_short_sentence(tmp_path: Path) -> None:
    """fio's data file lay in the folder of its logs: a load listed all formats there are."""
    shutil.copy(LOG, tmp_path)
    (tmp_path / "data.0.0").write_bytes(b"\0\x8e" * 700)
    (tmp_path / "notes.csv").write_text("moment,value,more\n1,2,3\n")
    reasons = {entry.path.name: entry.reason for entry in discover([tmp_path], ReadOptions()).skipped}
    assert reasons["data.0.0"] == "a binary file of no known format"
    assert "--input-format events.yml" in reasons["notes.csv"] and "tailboard reads" not in reasons["notes.csv"]


def test_a19_garbage_is_shown_to_nobody_and_advice_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "one.bin").write_bytes(b"\x8e,\x04\xff;\x19" * 70)
    (tmp_path / "two.txt").write_text("no table\n")
    (tmp_path / "three.txt").write_text(f"a,{'b' * 200},c\n")
    with pytest.raises(InputError) as raised:
        discover([tmp_path], ReadOptions())
    text = str(raised.value)
    assert "1 x a binary file of no known format; 1 x " in text and "\ufffd" not in text
    assert text.count("tailboard reads") == text.count("--input-format events.yml") == 1 and f"(a, {'b' * 30}..., c)" in text


def test_a_link_to_a_folder_elsewhere_is_named(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    nights.mkdir()
    (nights / "tue").symlink_to(DATA / "fio" / "randrw")
    with pytest.raises(InputError, match="a link to a folder elsewhere, which is not entered: name it"):
        discover([nights], ReadOptions())
    shutil.copytree(DATA / "fio" / "coarse-1", nights / "mon")
    (nights / "latest").symlink_to("mon")
    found = discover([nights], ReadOptions())
    assert [(one.code, Path(one.subject).name) for one in found.caveats] == [("linked-folder", "tue")]
    assert len(found.sources) == len(discover([nights / "mon"], ReadOptions()).sources)
    assert not discover([nights, nights / "tue"], ReadOptions()).caveats


def test_a_gc_log_is_known_and_says_what_it_is_for(tmp_path: Path) -> None:
    shutil.copy(min((DATA / "gc").rglob("*.log")), tmp_path)
    with pytest.raises(InputError, match="a GC log of a JVM: give it with --marks"):
        discover([tmp_path], ReadOptions())


def test_the_same_labels_twice_are_refused_with_both_names(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "y").mkdir()
    for place, name in ((tmp_path / "x", "randrw"), (tmp_path / "x" / "y", "trim")):
        shutil.copy(next((DATA / "fio" / name).glob("*_clat_hist.1.log")), place / "a_clat_hist.1.log")
    with pytest.raises(InputError, match="holds other data than .*a_clat_hist.1.log under the same labels"):
        Files([tmp_path], jobs=1)


def test_the_same_bytes_under_two_hosts_are_said(tmp_path: Path) -> None:
    for host in ("h1", "h2"):
        shutil.copy(LOG, tmp_path / f"x_clat_hist.1.log.{host}")
    found = discover([tmp_path], ReadOptions())
    assert [caveat.code for caveat in found.caveats] == ["same-content", "no-summary"]
    assert "x_clat_hist.1.log.h2" in str(found.caveats[0])


@pytest.mark.slow
def test_why_says_what_each_fact_rests_on(archives: Path) -> None:
    [log] = (archives / "B").rglob("16k7030.client2.lab.test/**/total_iodepth-8/**/output.1_clat_hist.1.log")
    words = [sys.executable, "-m", "ingest", "inspect", str(archives / "B"), "--why", str(log)]
    text = subprocess.run(words, capture_output=True, timeout=120, check=True, text=True).stdout
    assert "host       client2.lab.test  (folder 16k7030.client2.lab.test, host of cbt_config.yaml)" in text
    assert "output.1 job 1" in text or "json_output.1 job 1" in text
    assert "total_iodepth=8" in text


def test_names_of_archives_are_as_long_as_tells_them_apart() -> None:
    assert short_names([Path("/x/a"), Path("/y/b")]) == ["a", "b"]
    assert short_names([Path("/x/a"), Path("/y/a")]) == ["x/a", "y/a"]
    assert short_names([]) == []
    assert Archives().place_of(Path("/nowhere/of/any/kind")) is None


TOY = '''
"""A toy format: a line `TOY microseconds` an operation."""

from dataclasses import replace

import numpy as np

from ingest.read.context import TimeZero
from ingest.read.operations import events_layout
from ingest.core.events import Events
from ingest.read.formats import Format, Reader
from ingest.read.sources import Source
from ingest.read.text import head, name_without, open_input


def locate(path, around):
    """Return the source of a toy log."""
    context = around.context(path, process=name_without(path, (".toy",)))
    zero = around.zero(path, TimeZero(1_790_000_000 * 10**9, "the toy's own"), lambda: 0)
    return Source(path, "toy", replace(context, zero=zero), layout=str(events_layout(0)))


def events(path, context):
    """Yield the operations of a toy log."""
    with open_input(path) as stream:
        lines = [line for line in stream.read().split(b"\\n") if line]
    bad = [number for number, line in enumerate(lines, 1) if not line.split()[1].isdigit()]
    context.account.reject("no number", bad)
    lines = [line for number, line in enumerate(lines, 1) if number not in bad]
    latency = np.array([int(line.split()[1]) * 1000 for line in lines], np.int64)
    context.account.accept(len(lines))
    end = context.zero.epoch_ns + np.arange(1, len(lines) + 1) * 10**8
    yield Events((context.series.replaced(op="play", kind="service"),), np.zeros(len(lines), np.int64), end, latency)


FORMAT = Format("toy", "toy log", "toy_format:READER", head=rb"^TOY ")
READER = Reader(locate, events=events)
'''
TABLE_OF_TOYS = """\
title: table of toys
head: '\\Atoy_ms,toy_us\\n'
time: toy_ms
latency: toy_us
"""


@pytest.mark.slow
def test_a_format_of_another_distribution_is_one_file_and_one_line(tmp_path: Path) -> None:
    """It works in inspect, percentiles, load, watch, on standard input, compressed, in refusals and in the help."""
    site = tmp_path / "site"
    (site / "toys-1.0.dist-info").mkdir(parents=True)
    (site / "toys-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    names = "toy = toy_format:FORMAT\ntoy-table = toy_format:TABLE\nbroken = no_such_module:FORMAT\nhdr-log = toy_format:FORMAT\n"
    (site / "toys-1.0.dist-info" / "entry_points.txt").write_text(f"[tailboard.formats]\n{names}")
    (site / "toy_format.py").write_text(TOY + 'TABLE = __file__.replace("toy_format.py", "toys.yml")\n')
    (site / "toys.yml").write_text(TABLE_OF_TOYS)
    data = b"".join(b"TOY %d\n" % value for value in range(1, 101))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.toy").write_bytes(data)
    (tmp_path / "logs" / "b.toy.gz").write_bytes(gzip.compress(data.replace(b"TOY 1\n", b"TOY 7\n")))
    (tmp_path / "one.toy").write_bytes(data)
    store = f"sqlite:{tmp_path / 's.db'}"

    def run(*words: str, given: bytes = b"", status: int = 0) -> str:
        words = (sys.executable, "-m", "ingest", *words)
        done = subprocess.run(words, input=given, capture_output=True, timeout=120, env={**os.environ, "PYTHONPATH": f".:{site}"})
        assert done.returncode == status, done.stderr.decode()
        return (done.stdout + done.stderr).decode()

    logs = str(tmp_path / "logs")
    assert "format: toy" in run("inspect", logs)
    assert "200" in run("percentiles", logs, "--step", "all", "--format", "csv").splitlines()[1].split(",")
    assert "100" in run("percentiles", "-", "--step", "all", "--format", "csv", given=gzip.compress(data)).splitlines()[1].split(
        ","
    )
    assert "100" in run("percentiles", str(tmp_path / "one.toy"), "--input-format", "toy", "--step", "all", "--format", "csv")
    assert "200 samples" in run("load", logs, "--run", "t", "--store", store)
    run("watch", logs, "--run", "w", "--store", store, "--until-idle", "50ms", "--interval", "10ms")
    assert "200" in run("percentiles", store, "--run", "w", "--step", "all", "--format", "csv").splitlines()[1].split(",")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "a.toy").write_bytes(data + b"TOY much\n")
    whole = run("percentiles", str(tmp_path / "odd"), "--step", "all", "--format", "csv").splitlines()
    assert dict(zip(whole[0].split(","), whole[1].split(",")))["complete"] == "false"  # the rejected line is an operation
    (tmp_path / "odd" / "a.csv").write_text("start_us,end_us,op\n" + "1700000000000000,1700000000000500,play\n" * 20)
    assert "another format" in run("percentiles", str(tmp_path / "odd"), status=3)
    (tmp_path / "notes.txt").write_text("buy milk\n")
    assert "toy log" in run("percentiles", str(tmp_path / "notes.txt"), status=3)
    assert "toy" in run("percentiles", "--help", "all")
    refusal = run("percentiles", str(tmp_path / "notes.txt"), status=3)
    assert "the format broken of toys cannot be used: No module named 'no_such_module'" in refusal
    assert "the format hdr-log of toys cannot be used: there is a format of this name" in refusal
    (tmp_path / "toys.csv").write_text("toy_ms,toy_us\n" + "".join(f"{1_790_000_000_000 + number},5\n" for number in range(300)))
    assert "format: toy-table" in run("inspect", str(tmp_path / "toys.csv"))
    for words in ([], ["--input-format", "toy-table"]):
        row = run("percentiles", str(tmp_path / "toys.csv"), *words, "--step", "all", "--format", "csv").splitlines()[1]
        assert "300" in row.split(",")


def test_readers_of_ours_are_entry_points_as_those_of_others_are() -> None:
    """But for fio, HdrHistogram logs and what a description reads."""
    registered = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
    written = {name: said for name, said in vars(plugins).items() if isinstance(said, formats.Format)}
    assert registered[formats.GROUP] == {said.name: f"ingest.read.plugins:{name}" for name, said in written.items()}
    assert sorted(line.name for line in formats.ours()) == sorted(registered[formats.GROUP])
    core = {line.module.rpartition(".")[0] for line in formats.CORE}
    assert core == {"ingest.read.fio", "ingest.read.hdr", "ingest.read.described"}
    for line in formats.ours():
        reader = formats.reader_of(line.name)
        assert (reader.rows is None) != (reader.events is None)


@pytest.mark.parametrize("installed", ["not", "an older version", "as a wheel"])
def test_readers_of_ours_are_found_however_tailboard_is_installed(
    installed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A checkout that nobody installed, one whose entry points were other ones then, a wheel without pyproject.toml."""
    theirs = metadata.EntryPoint("toy", "toys:FORMAT", formats.GROUP)
    ours = metadata.EntryPoint("bcc", "ingest.read.plugins:BCC", formats.GROUP)
    found = {"not": [theirs], "an older version": [ours, theirs], "as a wheel": [ours, theirs]}[installed]
    dist = SimpleNamespace(name="tailboard")
    known = [SimpleNamespace(name=one.name, value=one.value, dist=dist if one is ours else None) for one in found]
    monkeypatch.setattr(metadata, "entry_points", lambda group: known)
    if installed == "as a wheel":
        monkeypatch.setattr(formats, "__file__", str(tmp_path / "site" / "ingest" / "read" / "formats.py"))
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "pyproject.toml").write_text('[project]\nname = "something else"\n')  # some leave theirs there
    mine, others = formats._registered.__wrapped__()
    assert [one.name for one in others] == ["toy"]
    assert [one.name for one in mine] == (["bcc"] if installed == "as a wheel" else sorted(line.name for line in formats.ours()))


@pytest.mark.parametrize("name", FORMATS)
def test_no_file_is_of_two_formats(name: str) -> None:
    """So the order of names decides nothing; what holds from the first byte is asked before what may lie anywhere."""
    start = content_of(FORMATS[name])[: formats.WHOLE_HEAD]
    asked = (line for line in formats.all_formats() if not line.last)
    assert len([line.name for line in asked if line.by_head(Path("x/y"), start, named=True)]) <= 1


def imported_for(log: Path) -> set[str]:
    """Return the modules that percentiles of a log import."""
    script = dedent("""
        import atexit, sys
        atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))
        from ingest.cli import main
        main(sys.argv[1:])
    """)
    words = [sys.executable, "-c", script, "percentiles", str(log), "--step", "all", "--format", "csv"]
    return set(subprocess.run(words, capture_output=True, timeout=120, check=True, text=True).stderr.split())


@pytest.mark.slow
def test_one_fio_log_imports_no_other_format() -> None:
    """A format's module is imported when a file of it was found: start-up stays small, whatever else is read."""
    loaded = imported_for(LOG)
    assert {name for name in loaded if name.startswith("ingest.read.fio.")} >= {
        "ingest.read.fio.histogram_log",
        "ingest.read.fio.join",
    }
    others = ("hdr", "plugins", "operation", "described", "marks", "polls", "fio.latency_log", "fio.averaged_log")
    assert not {name for name in loaded if name.startswith(tuple(f"ingest.read.{other}" for other in others))}
    assert not {"pyarrow", "yaml", "urllib3", "rich", "sqlite3", "tenacity", "ssl", "http.client", "asyncio"} & loaded
    assert not {name for name in loaded if name.startswith(("ingest.load", "ingest.store", "ingest.live", "ingest.http"))}
    assert not {name for name in loaded if name.startswith(("ingest.query.story", "ingest.view.page", "ingest.view.terminal"))}
    assert not {name for name in loaded if name.startswith("ingest.read.") and "descri" in name}


@pytest.mark.slow
def test_a_fio_log_alone_imports_nothing_for_what_is_not_there(tmp_path: Path) -> None:
    loaded = imported_for(Path(shutil.copy(LOG, tmp_path)))
    of_json = {
        "json",
        "orjson",
        "ingest.read.fio.json_output",
        "ingest.read.fio.json_intervals",
        "ingest.read.schedule",
        "ingest.read.totals",
    }
    of_single_events = {"ingest.core.events", "ingest.read.operations"}
    assert "ingest.read.fio.histogram_log" in loaded
    assert not (of_json | of_single_events | {"hashlib", "ingest.core.marks"}) & loaded


@pytest.mark.slow
def test_logs_of_unlike_formats_are_never_one_series(tmp_path: Path) -> None:
    """Two logs of one process: files would add them up, and a store would keep what came last."""
    head = "READ latency raw data: op, timestamp(ms), latency(us)\n"
    (tmp_path / "x.raw").write_text(head + "READ,1700000000000,237\n" * 20)
    (tmp_path / "x.csv").write_text("start_us,end_us,op\n" + "1700000000000000,1700000000000500,read\n" * 20)
    for words in (["percentiles", str(tmp_path)], ["load", str(tmp_path), "--run", "r", "--store", f"sqlite:{tmp_path}/a.db"]):
        done = tailboard(*words)
        assert done.returncode == 3 and "another format" in done.stderr, done
    store = ["--run", "r", "--store", f"sqlite:{tmp_path}/b.db"]
    assert tailboard("load", str(tmp_path / "x.raw"), *store).returncode == 0
    before = tailboard("percentiles", store[-1], "--format", "csv").stdout
    later = tailboard("load", str(tmp_path / "x.csv"), *store)
    assert later.returncode == 3 and "x.raw" in later.stderr
    assert tailboard("percentiles", store[-1], "--format", "csv").stdout == before
    assert tailboard("load", str(tmp_path / "x.csv"), *store, "--host", "other").returncode == 0
