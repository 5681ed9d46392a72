"""Which fio JSON tells about which log: jobs, version, options and time zero for a log's context."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ingest.errors import InputError
from ingest.read import cbt
from ingest.read.context import Context
from ingest.read.fio.names import LogName
from ingest.read.text import plain_name

if TYPE_CHECKING:
    from ingest.read.fio.json_plus import Document, Job

MS = 1_000_000


@dataclass(slots=True)
class FioSummaries:
    """The last fio document of each JSON file, by path, and which logs each told about."""

    documents: dict[Path, Document] = field(default_factory=dict)
    told: dict[Path, set[Path]] = field(default_factory=lambda: defaultdict(set))
    families: dict[tuple[Path, str, str, str], list[tuple[int, Path]]] = field(default_factory=lambda: defaultdict(list))

    @staticmethod
    def of(paths: Iterable[Path], logs: Mapping[Path, LogName], refuse: Callable[[Path, str], None]) -> FioSummaries:
        """Return the summaries of all JSON files; those that cannot be read are refused with the reason."""
        found = FioSummaries()
        for path, name in logs.items():
            found.families[path.parent, name.prefix, name.host, name.type].append((int(name.job or 0), path))
        for path in paths:
            from ingest.read.fio import json_plus as fio_json

            try:
                document = fio_json.last_document(path)
            except InputError as error:
                refuse(path, error.reason)
                continue
            if document.jobs:
                found.documents[path] = document
            else:
                refuse(path, "fio JSON without a job")
        return found

    def context_of(self, path: Path, name: LogName, context: Context) -> Context:
        """Return the context of a log with what fio's JSON says of its jobs; unchanged where there is none."""
        found = self._document(path, name)
        if found is None:
            return context
        document, jobs = found
        grouped = _grouped(jobs)
        family = sorted(self.families[path.parent, name.prefix, name.host, name.type])
        carrier = bool(grouped and name.job) and family[-1][1] == path
        number = int(name.job or 0)
        own: tuple[Job, ...] = ()
        if not name.job or carrier:
            own = jobs
        elif not grouped and 1 <= number <= len(jobs):
            own = (jobs[number - 1],)
        first = own[0] if own else jobs[0]
        began = (member_of(jobs, number),) if grouped and name.job else own or (first,)
        return replace(
            context,
            zero=document.zero_of(began),
            version=context.version or document.version,
            options=first.options,
            through_client=document.through_client,
            jobs=tuple(job.summaries for job in own),
            runtime_ns=max((job.runtime_ms for job in own), default=first.runtime_ms) * MS,
            grouped=grouped,
            siblings=tuple(other for _, other in family[:-1]) if carrier else (),
        )

    def forget(self, log: Path) -> None:
        """Take back what was told about a log that turned out to be none."""
        for logs in self.told.values():
            logs.discard(log)

    def _document(self, path: Path, name: LogName) -> tuple[Document, tuple[Job, ...]] | None:
        """Return the newest document that speaks of a log, nearest folder first, with its jobs on the log's host."""
        for folder in path.parents:
            beside = [(file, document) for file, document in self.documents.items() if file.parent == folder]
            matching = [
                (document.timestamp_ms, str(file), file, document, jobs)
                for file, document in beside
                if (jobs := _jobs_for(file, document, name))
            ]
            if matching:
                _, _, _, document, jobs = max(matching, key=lambda entry: entry[:2])
                for entry in matching:
                    self.told[entry[2]].add(path)
                return document, jobs
        return None


def member_of(jobs: tuple[Job, ...], number: int) -> Job:
    """Return the sum that log `number` is part of (group_reporting): entries stand for `numjobs` logs each, in order."""
    seen = 0
    for job in jobs:
        told = job.options.get("numjobs", "1")
        seen += int(told) if told.isdigit() else 1
        if number <= seen:
            return job
    return jobs[-1]


def _grouped(jobs: tuple[Job, ...]) -> int:
    """Return how many jobs stand behind the entries if some are sums (group_reporting), else 0.

    fio names the option nowhere in its JSON (3.33); but then a section has fewer entries than its numjobs.
    """
    entries = Counter(job.name for job in jobs)
    told = {job.name: int(job.options.get("numjobs", "1")) for job in jobs if job.options.get("numjobs", "1").isdigit()}
    if all(told.get(name, 1) <= count for name, count in entries.items()):
        return 0
    return sum(max(told.get(name, 1), count) for name, count in entries.items())


def _jobs_for(file: Path, document: Document, name: LogName) -> tuple[Job, ...]:
    """Return the jobs of a document that wrote logs of this name, empty if it is another process's."""
    if name.cbt:
        if not cbt.is_summary_name(file):
            return ()
        volume, host = cbt.summary_labels(file)
        return document.jobs if (volume, host) == (name.volume, name.host) else ()
    jobs = document.jobs
    if document.through_client and name.host:
        jobs = tuple(job for job in jobs if job.host == name.host)
    option = "write_hist_log" if name.type == "clat_hist" else "write_lat_log"
    prefixes = {PurePath(job.options.get(option, "")).name for job in jobs} - {""}
    own = prefixes or {job.name for job in jobs}
    return jobs if name.prefix in own or (not prefixes and plain_name(file).startswith(name.prefix)) else ()
