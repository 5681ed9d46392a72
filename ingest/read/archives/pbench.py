"""pbench archives: `pbench-fio` gathers the logs of each client into a folder of its own.

    fio_config_2026.11.21T10.00.00/1-randread-4KiB/sample1/fio-result.txt              one JSON of fio --client for all hosts
    .../1-randread-4KiB/sample1/clients/perf36/fio_clat_hist.1.log                     the logs of one host
    .../1-randread-4KiB/sample1/tools-default/perf36/...                               monitoring

Each sample is a run. The hosts are the folders below `clients`; fio's JSON names them in `hostname`.
Source: pbench's bench-scripts/pbench-fio; folder names as in its published results.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ingest.read.sources import Evidence, Place

CLIENTS = "clients"
ITERATION = re.compile(r"^\d+-(?P<mode>[a-z]+)-(?P<size>\d+[KMG]i?B)")
SAMPLE = re.compile(r"^sample\d+$")
TOOLS = "tools-"


def place_of(folder: Path) -> Place | None:
    """Return the place of the files in a folder of a pbench archive, None where it is no such folder."""
    parts = folder.parts
    if CLIENTS in parts[:-1]:
        at = len(parts) - 2 - parts[-2::-1].index(CLIENTS)
        host = parts[at + 1]
        return _sample(Path(*parts[:at]), host, (Evidence("host", host, f"folder {CLIENTS}/{host}"),))
    sample = next((Path(*parts[: at + 1]) for at, part in enumerate(parts) if SAMPLE.match(part)), None)
    if sample is None and _has_clients(folder):
        sample = folder
    if sample is None or not _has_clients(sample):
        return None
    below = folder.relative_to(sample).parts
    unread = f"pbench's monitoring ({below[0]}): not latencies" if below and below[0].startswith(TOOLS) else ""
    place = _sample(sample, "", ())
    return Place(place.archive, place.run, labels=place.labels, evidence=place.evidence, unread=unread)


def _has_clients(folder: Path) -> bool:
    return os.path.isdir(folder / CLIENTS)  # noqa: PTH112  # a closed folder, or one of too long a path, is an answer, no error


def _sample(sample: Path, host: str, evidence: tuple[Evidence, ...]) -> Place:
    """Return the place of a host in a sample: of an archive of many, its run is the path of the sample."""
    match = ITERATION.match(sample.parent.name)
    if not SAMPLE.match(sample.name) or not match:
        return Place(sample, host=host, evidence=evidence)
    labels = {"rw": match["mode"], "bs": match["size"]}
    archive, run = sample.parent.parent, f"{sample.parent.name}/{sample.name}"
    return Place(archive, run, host=host, labels=labels, evidence=(*evidence, Evidence("run", run, "folders of pbench")))
