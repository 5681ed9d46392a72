"""The names of fio's files: which job, volume and host they name, and the version that fio printed beside them.

The names of fio's log files: which job, volume and host they name.

    a_clat_hist.1.log                        fio                prefix a, job 1
    a_clat_hist.log                          per_job_logs=0     prefix a, all jobs one after another
    cs_clat_hist.1.log.127.0.0.1             fio --client       host 127.0.0.1
    output.3_clat_hist.2.log.gprfc073        CBT                volume 3, job 2, host gprfc073
    output_clat.1.log.h1                     CBT rbdfio         no volume
    clients/perf36/fio_clat_hist.1.log       pbench             the folder is the host

Any of them may end in .gz or .xz. A host suffix alone says nothing about --client: CBT appends one, too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ingest.read.text import head, plain_name

LOG_NAME = re.compile(
    r"^(?P<prefix>.+)_(?P<type>clat_hist|clat|slat|lat|bw|iops)(?:\.(?P<job>\d+))?\.log(?P<deflated>\.fz)?(?:\.(?P<host>.+))?$"
)
CBT_PREFIX = re.compile(r"^output(?:\.(?P<volume>\d+))?$")
CBT_SUMMARY = re.compile(r"^(?P<cut>json_)?output(?:\.(?P<volume>\d+))?(?:\.(?P<host>.+))?$")
NAMES_KEPT = 1 << 14  # each is asked for several times a file, and hosts log under the same names
ENDINGS = ("json", "txt", "log", "out", "js")
NANOSECONDS_SINCE = (2, 99)  # fio counts in ns; before that in us


class LogName(NamedTuple):
    """The parts of a fio log's file name; empty text for a part that it does not have."""

    prefix: str
    type: str
    job: str
    host: str
    volume: str
    cbt: bool
    deflated: bool

    @property
    def process(self) -> str:
        """Return the label that distinguishes fio processes of one folder: the log prefix, unless CBT's volume does."""
        return "" if self.cbt else self.prefix


def parse_log_name(path: Path) -> LogName | None:
    """Return the parts of a fio log's file name, or None if it is not one."""
    return _parsed_log_name(plain_name(path))


@lru_cache(NAMES_KEPT)
def _parsed_log_name(name: str) -> LogName | None:
    match = LOG_NAME.match(name)
    if not match:
        return None
    cbt = CBT_PREFIX.match(match["prefix"])
    prefix, kind, job, host = (match[part] or "" for part in ("prefix", "type", "job", "host"))
    return LogName(prefix, kind, job, host, (cbt["volume"] or "") if cbt else "", cbt is not None, match["deflated"] is not None)


class SummaryName(NamedTuple):
    """The parts of the name of a fio summary as CBT writes it; `cut` is set for the JSON that CBT cuts out of the output."""

    volume: str
    host: str
    cut: bool


def parse_summary_name(path: Path) -> SummaryName | None:
    """Return the parts of the name of a summary such as json_output.0.h1 or output.0.h1, None if it is not one of CBT's.

    `output.json` is what people call fio's own output: no host is called json.
    """
    match = CBT_SUMMARY.match(plain_name(path))
    if not match or (match["host"] or "").rpartition(".")[2] in ENDINGS:
        return None
    return SummaryName(match["volume"] or "", match["host"] or "", match["cut"] is not None)


# What fio printed as text, without its JSON: the version alone, for logs that lie beside it or below it.


PRINTED_AS = (".out", ".txt", ".log", ".output")
BANNER = rb"(?m)^fio-(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?:-[\w.+-]*)?\r?$"


def version_of_text(text: bytes) -> tuple[int, ...] | None:
    """Return the version that fio's normal output begins with, a line of its own such as `fio-3.33`; None without one."""
    match = re.search(BANNER, text)
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


@lru_cache(256)
def version_printed_for(folder: Path) -> tuple[int, ...] | None:
    """Return the version in fio's text output that lies beside a folder of logs and has its name; None without one."""
    own = folder.resolve()
    for file in (own.with_name(own.name + ending) for ending in PRINTED_AS if own.name):
        if file.is_file() and (version := version_of_text(head(file))) is not None:
            return version
    return None
