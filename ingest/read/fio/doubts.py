"""What may be wrong with the numbers of fio's logs as a whole: logs without fio's JSON, and I/Os that may be counted twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ingest.core.caveats import Caveat
from ingest.core.errors import listed
from ingest.read.fio.joining import Beside, Documents, Joined, log_name_of
from ingest.read.fio.names import LogName
from ingest.read.fio.readers import kind_of_log
from ingest.read.format_names import HIST, JSON, RAW
from ingest.read.sources import COMPLETION, Source

BESIDE = "keep fio's JSON (json+) in the folder of its logs"


class _Log(NamedTuple):
    """A log of completion latencies, the parts of its name, and the JSON that it was joined to."""

    source: Source
    name: LogName
    found: Joined | None

    @property
    def path(self) -> Path:
        """Return the path of the log."""
        return self.source.path


def doubts(sources: Sequence[Source], documents: Documents) -> Iterator[Caveat]:
    """Yield what only fio's JSON would show where it is not there, and what by all that can be seen is counted more than once."""
    of_logs = (entry for entry in sources if entry.format in (HIST, RAW) and entry.context.series.kind == COMPLETION)
    logs = [_log(entry, documents) for entry in of_logs]
    alone = [log for log in logs if log.found is None]
    yield from _without_summary([log.path for log in alone if log.source.format == HIST and log.path not in documents.unmatched])
    yield from _of_one_job(logs)
    yield from _perhaps_of_one_job(alone)
    read = {source.path for source in sources}
    for source in sources:
        if source.format == JSON:
            yield from _apart(source, alone, documents, read)


def _log(source: Source, documents: Documents) -> _Log:
    name = log_name_of(source.path, kind_of_log(source.path, source.format))
    return _Log(source, name, documents.joined(source.path, name, source.context.series.host))


def _without_summary(paths: Sequence[Path]) -> Iterator[Caveat]:
    """Yield one caveat about all histogram logs that no JSON of fio is found for."""
    if paths:
        single, some = ("a fio histogram log", "its last row"), (f"{len(paths)} fio histogram logs", "their last rows")
        which, rows = single if len(paths) == 1 else some
        sentence = f"{which} without fio's JSON: I/Os that completed after {rows} are missing"
        yield Caveat("no-summary", _names(paths), sentence, BESIDE)


def _of_one_job(logs: Sequence[_Log]) -> Iterator[Caveat]:
    """Yield the logs that are read beside others of the same job of a JSON.

    A histogram log and a raw log of the same labels are not looked at: that they share no op is known (see `counted_once`).
    """
    of_job: dict[tuple[Path, int], list[Path]] = defaultdict(list)
    labels = {(log.source.context.series.run, log.source.identity) for log in logs}
    for log in logs:
        judged = log.source.format == RAW and any((log.source.context.series.run, twin) in labels for twin in log.source.twins)
        if log.found is not None and not judged:
            for number in log.found.own:
                of_job[log.found.beside.path, id(log.found.jobs[number])].append(log.path)
    for summary, *paths in dict.fromkeys((summary, *paths) for (summary, _), paths in of_job.items() if len(paths) > 1):
        sentence = f"logs of one job in {summary.name}: its I/Os are counted {len(paths)} times"
        yield Caveat("counted-twice", _names(paths), sentence, "leave all but one out")


def _perhaps_of_one_job(alone: Sequence[_Log]) -> Iterator[Caveat]:
    """Yield logs of histograms and of single I/Os that only fio's JSON could show to be of one job: their prefixes differ."""
    beside: dict[tuple[Path, str, str], dict[str, list[Path]]] = defaultdict(lambda: {HIST: [], RAW: []})
    for log in alone if any(log.source.format == RAW for log in alone) else ():
        if not log.name.cbt:
            beside[log.path.parent, log.source.context.series.host, log.name.job][log.source.format].append(log.path)
    both = [by_format for by_format in beside.values() if by_format[HIST] and by_format[RAW]]
    pairs = [path for by_format in both for path in (*by_format[HIST], *by_format[RAW])]
    if pairs:
        sentence = "perhaps logs of one job under two prefixes, whose I/Os are then counted twice: only fio's JSON shows it"
        yield Caveat("perhaps-twice", _names(pairs), sentence, BESIDE)


def _apart(summary: Source, alone: Iterable[_Log], documents: Documents, read: Collection[Path]) -> Iterator[Caveat]:
    """Yield a JSON that is read for itself where logs, or a copy of it, may hold the same I/Os."""
    runs = [entry for entry in documents.of_file(summary.path) if entry.key in documents.read]
    copy = next((copy for beside in runs if (copy := documents.same_as(beside)) is not None), None)
    # Two files of the same bytes that are both read have their caveat already (see `once_by_content`).
    if copy is not None and (copy.path not in read or copy.path.stat().st_size != summary.path.stat().st_size):
        sentence = f"holds the same as {copy.path}: is one a copy of the other?"
        yield Caveat("same-content", str(summary.path), sentence, "each is counted under its own labels")
    run = summary.context.series.run
    logs = [
        log.path
        for log in alone
        if log.source.context.series.run == run and any(_may_be_of(beside, log, documents) for beside in runs)
    ]
    if logs:
        sentence = f"is read for itself, and may count the same I/Os as {_names(logs)}: no link between them was found"
        yield Caveat("json-apart", str(summary.path), sentence, f"{BESIDE}, under the names that fio or CBT gave them")


def _may_be_of(beside: Beside, log: _Log, documents: Documents) -> bool:
    if log.name.cbt and beside.name is not None:
        mine, theirs = log.source.context.series.host, beside.name.host
        return beside.name.volume == log.name.volume and (not mine or not theirs or mine == theirs)
    return bool(documents.named_by(beside.document.jobs, log.name, beside.path))


def _names(paths: Iterable[Path]) -> str:
    return listed(sorted(map(str, paths)))
