"""CBT archives, 2013 to 2026: the run, host, volume and settings that folders and CBT's own YAML files name.

    L0-L1  I/LibrbdFio/osd_ra-00004096/op_size-00004096/concurrent_procs-001/iodepth-032/randread/output.V.HOST
    L2-L3  results/I/id-X/output.V_clat_hist.J.log.HOST             (some benchmarks: the parts of L1 below id-X)
    L4     results/I/id-X/WORKLOAD.HOST/numjobs-001/[total_iodepth-16/]iodepth-000008/output.V_clat_hist.J.log
    L5     results/I/id-X/WORKLOAD.HOST/rbdfio/numjobs-001/...      L6: without workloads, `rbdfio.HOST/numjobs-001/...`

I is the iteration, eight digits; V the volume; J fio's job. Since L4 one id holds all workloads, numbers of jobs and depths:
a run is (id, workload, numjobs, depth) over all hosts and volumes. `total_iodepth-3` over two volumes lies in two folders,
`iodepth-000002` and `iodepth-000001`: one run. rpdcp appends the host to each top-level name that it copies: to files in flat
layouts, to the workload's folder since L4. That folder is split at a host of cbt_config.yaml, else as fio's job name says,
else at its first dot. Monitoring lies beside the logs, also in hidden folders.

Source: CBT's own code (cbt.py, benchmark/*.py, common.py) and archives that it made; docs/reference/compatibility.md lists them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ingest.core.schema import yaml_of
from ingest.read.sources import Evidence, Place

PERMUTATION, ARCHIVE = "benchmark_config.yaml", "cbt_config.yaml"
RESULTS = "results"
LARGEST_SETTINGS, LARGEST_SUMMARY = 1 << 20, 1 << 16
MOST_LABELS = 32

ITERATION = re.compile(r"^\d{8}$")
ID = re.compile(r"^id-?-?(\d+|[0-9a-f]{8})$")
NUMJOBS = re.compile(r"^numjobs-\d+$")
DEPTH = re.compile(r"^iodepth-\d+$")
TOTAL = r"^total_iodepth-\d+$"
SETTING = r"^([a-z_]+)-(\d+)$"
FLAT_SETTING = r"^(osd_ra|client_ra|raw_ra|op_size|concurrent_procs)-\d{3,8}$"
MODES = ("read", "write", "randread", "randwrite", "randrw", "rw", "readwrite", "trim", "randtrim")
JOB_NAME = rb'"jobname"\s*:\s*"cbt-fio-(?P<name>[^"]+?)-file-\d+"'

FIO = ("librbdfio", "rbdfio", "kvmrbdfio", "rawfio", "fio")
OTHERS = ("radosbench", "getput", "cosbench", "hsbench", "elbencho", "cephtestrados", "ceph_test_rados", "s3bench", "nullbench")
CLASSES = frozenset((*FIO, *OTHERS))
MONITORING = re.compile(r"^(collectl|top|perf|blktrace|idle_monitoring|pool_monitoring)(\.(?P<host>.+))?$")
OWN_RESULTS = ("report", "visualisation")
NOTES = re.compile(
    r"^(ceph_settings\.out|historic_ops\.out|pgautoscaler\.log|recovery(_stats|_backfill_stats)?\.log|objecter\.\d+\.log|cbt\.log)(\.|$)"
)
NODES = ("clients", "osds", "mons", "rgws", "mdss", "mgrs", "head")
PRIVATE = r"auth|key|secret|passw|token|cred|user|host|addr|url|clients|osds$|mons|_cmd$|_path$|_dir$|conf_file|head"
FIRST_LABELS = (
    "benchmark", "mode", "op_size", "iodepth", "total_iodepth", "numjobs", "volumes_per_client", "procs_per_volume", "rwmixread",
    "rate_iops", "time", "ramp", "osd_ra", "pool_profile", "vol_size", "log_avg_msec",
)  # fmt: skip


class Settings:
    """CBT's YAML files, each read once. `unreadable` names those that could not be read, with the reason."""

    def __init__(self) -> None:
        self.unreadable: dict[Path, str] = {}
        self.has = cache(os.path.isfile)  # whether a file is there: a closed folder is an answer, no error
        self.of = cache(self._loaded)
        self.workload = cache(self._workload)

    def _loaded(self, file: Path) -> Mapping[str, Any]:
        """Return the values of a YAML file, none where it is not there or cannot be read."""
        if not self.has(file):
            return {}
        import yaml  # a quarter of the start-up time, and most runs need none

        try:
            if file.stat().st_size > LARGEST_SETTINGS:
                self.unreadable[file] = "larger than 1 MiB: not read"
                return {}
            content = yaml_of(file.read_bytes())
        except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:
            self.unreadable[file] = f"cannot be read ({str(error).splitlines()[0]})"
            return {}
        return content if isinstance(content, dict) else {}

    def _workload(self, folder: Path, file: Path) -> tuple[str, str, str]:
        """Return workload, host and their evidence of a folder WORKLOAD.HOST; `file` is the archive's own settings."""
        name = folder.name
        hosts = [host for host in _hosts(self.of(file)) if name.endswith(f".{host}") and len(name) > len(host) + 1]
        if known := max(hosts, key=len, default=""):
            return name[: -len(known) - 1], known, f"folder {name}, host of {ARCHIVE}"
        job_name = _job_name(folder)
        for at in (place for place, letter in enumerate(name) if letter == "."):
            if job_name and job_name == f"{name[:at]}-{name[at + 1 :]}":
                return name[:at], name[at + 1 :], f"folder {name}, job name in fio's JSON"
        workload, _, host = name.partition(".")
        return workload, host, f"folder {name}, split at its first dot"


def is_note(name: str) -> bool:
    """Return whether a file is one that CBT keeps about the cluster beside its results."""
    return NOTES.match(name) is not None


class _Anchor(NamedTuple):
    """What folders are counted from: the archive, the folder of the permutation, and the parts between and below them."""

    archive: Path
    permutation: Path
    above: tuple[str, ...]
    below: tuple[str, ...]


def _anchor(folder: Path, settings: Settings) -> _Anchor | None:
    """Return the permutation that a folder belongs to: the innermost `id-X`, settings file, or class below an iteration."""
    parts = folder.parts
    for at in range(len(parts) - 1, 0, -1):
        iteration = bool(ITERATION.match(parts[at - 1]))
        if (iteration and ID.match(parts[at])) or settings.has(Path(*parts[: at + 1], PERMUTATION)):
            return _anchored(parts, at - 1 if iteration else at, at)
        if iteration and parts[at].lower() in CLASSES:
            return _anchored(parts, at - 1, at - 1)
    return _without_id(parts)


def _anchored(parts: Sequence[str], first: int, last: int) -> _Anchor:
    """Return the anchor whose run begins with part `first`, and whose permutation is part `last`."""
    root = parts[: first - 1] if parts[first - 1] == RESULTS else parts[:first]
    return _Anchor(Path(*root), Path(*parts[: last + 1]), tuple(parts[first : last + 1]), tuple(parts[last + 1 :]))


def _without_id(parts: Sequence[str]) -> _Anchor | None:
    """Return the anchor of folders that were copied out of their archive: of a workload above numjobs-NNN, or of settings."""
    at = next((at for at, part in enumerate(parts) if NUMJOBS.match(part)), 0)
    if at >= 2 and any(DEPTH.match(part) for part in parts[at:]):
        first = at - 2 if parts[at - 1].lower() in CLASSES and "." in parts[at - 2] else at - 1
    else:
        first = next((at for at, part in enumerate(parts) if re.match(FLAT_SETTING, part)), 0)
    return _Anchor(Path(*parts[:first]), Path(*parts[:first]), (), tuple(parts[first:])) if first else None


def place_of(folder: Path, settings: Settings) -> Place | None:
    """Return the place of the files in a folder of a CBT archive, None where it is no such folder."""
    anchor = _anchor(folder, settings)
    if anchor is None:
        return None
    archive, below = anchor.archive, anchor.below
    config = settings.of(anchor.permutation / PERMUTATION)
    cluster = config.get("cluster", config)
    plain = cluster if isinstance(cluster, dict) else {}
    classes = (part.lower() for part in below if part.lower() in CLASSES)
    benchmark = str(plain.get("benchmark", "")).lower() or next(classes, "")
    tools = [match[1] for part in below if (match := MONITORING.match(part))]
    if tools or any(part.startswith(".") for part in below):
        return Place(archive, "/".join(anchor.above), unread=f"CBT's monitoring ({tools[-1] if tools else 'idle'}): not read")
    if any(part in OWN_RESULTS for part in below):
        return Place(archive, "/".join(anchor.above), unread="CBT's own report: not read, as it averages percentiles")
    if benchmark in OTHERS:
        return Place(archive, "/".join(anchor.above), unread=f"CBT's {benchmark}: recognised, not read")
    own = archive / RESULTS / ARCHIVE  # the archive's own settings, in its results folder or beside it
    own = own if own.is_file() else archive / ARCHIVE
    workload = host = why = ""
    at = next((at for at, part in enumerate(below) if NUMJOBS.match(part)), 0)
    if at and "." in below[0]:
        workload, host, why = settings.workload(anchor.permutation / below[0], own)
    rest = list(below)
    evidence: list[Evidence] = []
    if workload:
        rest[0] = workload
        evidence.append(Evidence("host", host, why))
    if any(re.match(TOTAL, part) for part in rest):
        rest = [part for part in rest if not DEPTH.match(part)]
    run = "/".join((*anchor.above, *rest))
    evidence.append(Evidence("run", run, "folders of CBT"))
    cluster_wide = settings.of(own)
    labels = _labels(plain, below, workload, cluster_wide)
    clients = tuple(dict.fromkeys(_hosts(cluster_wide, ("clients",))))
    return Place(archive, run, host, labels=labels, evidence=tuple(evidence), clients=clients, together=anchor.permutation)


def _hosts(config: Mapping[str, Any], roles: Sequence[str] = NODES) -> Iterable[str]:
    """Yield the names of the nodes of some roles, without the users that CBT logs in as."""
    cluster = config.get("cluster", {})
    for role in roles:
        named = cluster.get(role, ()) if isinstance(cluster, dict) else ()
        for host in [named] if isinstance(named, str) else named if isinstance(named, (list, tuple, dict)) else ():
            yield str(host).rpartition("@")[2]


def _job_name(folder: Path) -> str:
    """Return WORKLOAD-HOST as the job name of a fio JSON below a workload's folder has it, empty text where none does."""
    for file in sorted(folder.glob("*/**/json_output*"))[:8]:
        try:
            with file.open("rb") as stream:
                match = re.search(JOB_NAME, stream.read(LARGEST_SUMMARY))
        except OSError:
            continue
        if match:
            return match["name"].decode("utf-8", "replace")
    return ""


def _labels(plain: Mapping[str, Any], below: Sequence[str], workload: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a run as labels, at most 32: the workload's own over the id's, the folders' over both."""
    workloads = plain.get("workloads")
    own = workloads.get(workload, {}) if isinstance(workloads, dict) else {}
    settings = {**plain, **(own if isinstance(own, dict) else {})}
    labels = {str(key): str(value) for key, value in settings.items() if isinstance(value, (str, int, float, bool))}
    cluster = config.get("cluster", {})
    if isinstance(cluster, dict):
        labels.update({key: str(len(cluster[key])) for key in ("clients", "osds") if isinstance(cluster.get(key), list)})
        if isinstance(cluster.get("osds_per_node"), (int, str)):
            labels["osds_per_node"] = str(cluster["osds_per_node"])
    labels = {key: value for key, value in labels.items() if key in ("clients", "osds") or not re.search(PRIVATE, key)}
    if workload:
        labels["workload"] = workload
    for part in below:
        if setting := re.match(SETTING, part):
            labels[setting[1]] = setting[2].lstrip("0") or "0"
        elif part in MODES:
            labels["mode"] = part
    if "total_iodepth" in labels and any(re.match(TOTAL, part) for part in below):
        labels.pop("iodepth", None)  # it is that of one volume
    ranked = sorted(labels, key=lambda name: (name not in ("workload", *FIRST_LABELS), name))
    return {name: labels[name] for name in sorted(ranked[:MOST_LABELS])}
