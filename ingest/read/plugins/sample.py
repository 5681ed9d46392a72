"""Answers that `tailboard record sample` kept: histograms of Ceph and Redis, of Prometheus (two ways), of OpenTelemetry.

    tailboard record sample --every 10s -o osd3.ndjson -- ceph daemon osd.3 perf histogram dump -f json

Each answer is read as the format that it is; the line's own time and host stand where the answer says none (`sample_file`). What
nobody knows can be described: `--input-format FILE.yml` then describes one answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from shlex import split
from typing import Any

from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.described import histograms
from ingest.read.described.description import HistogramDescription, description_of
from ingest.read.format_names import SAMPLES
from ingest.read.plugins import ceph, otlp, prometheus
from ingest.read.polls import FileHistogram, Polls, WrongError, documents_of, in_bins, polled
from ingest.read.sample_file import Answer, SampleFile, seconds

UNKNOWN = "an answer that no reader knows: describe it: --input-format FILE.yml (docs/reference/formats.md)"
REDIS = "redis-latency"
DAEMON = re.compile(r"(osd|mon|mds|mgr|client|rgw)\.\S+")
EXPOSITION = re.compile(r'_bucket\{[^\n]*le="')


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of all answers to `held`."""
    file = SampleFile(path, context)
    redis = description_of(REDIS)
    assert isinstance(redis, HistogramDescription)
    by_redis: list[FileHistogram] = []
    for answer in file.answers():
        try:
            for said in _documents(answer):
                by_redis += _taken(replace(answer, said=said), context, held, redis)
        except WrongError as error:
            file.unanswered(answer, str(error))
    in_bins(by_redis, redis, context, held)
    file.finish(held)


def _documents(answer: Answer) -> Iterator[Any]:
    """Yield what was said: a document, several of them, or text."""
    if not answer.text.lstrip().startswith(("{", "[")):
        yield answer.said
        return
    account = Account()
    yield from (
        said for _, said in documents_of(((answer.line, line.encode(), True) for line in answer.text.split("\n")), account)
    )
    if account.rejected:
        raise WrongError(UNKNOWN)


def _taken(answer: Answer, context: Context, held: Polls, redis: HistogramDescription) -> list[FileHistogram]:
    """Add what was said to `held`; returns the histograms of Redis, which all have to be seen before they have their bins."""
    said = answer.said
    if isinstance(said, dict) and "resourceMetrics" in said:
        otlp.take(said, answer.line, context, held)
    elif isinstance(said, dict) and isinstance(said.get("data"), dict) and "resultType" in said["data"]:
        prometheus.take_answers([(answer.line, said)], context, held)
    elif isinstance(said, str) and EXPOSITION.search(said):
        lines = [(answer.line, line.encode(), True) for line in said.split("\n")]
        prometheus.take(lines, context, held, asked_ns=answer.at_ns, dated=True, host=answer.host)
    elif any(ceph.histograms(said)):
        ceph.take(said, answer.line, answer.at_ns, answer.host, _daemon(answer.command), context, held)
    elif isinstance(said, dict) and all(isinstance(entry, dict) and "histogram_usec" in entry for entry in said.values()):
        record = {"t": Decimal(seconds(answer.at_ns)), "host": answer.host, "r": said}
        return list(histograms.Reading(Path(), context, redis, held, answer).of_document(answer.line, record))
    else:
        raise WrongError(UNKNOWN)
    return []


def _daemon(command: str) -> str:
    """Return the daemon that a command of Ceph asks, empty text where it names none."""
    try:
        return next((word for word in split(command) if DAEMON.fullmatch(word)), "")
    except ValueError:
        return ""


READER = polled(SAMPLES, read, "holds no answer with a histogram: every poll failed, or the command prints something else")
