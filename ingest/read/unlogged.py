"""What no source of a call can hold: jobs of fio without a log, clients that left nothing; and I/Os perhaps counted twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ingest.core.coverage import ABSENT_CLIENT, EMPTY_LOG, OF_LOG, Caveat, Missing, is_same_host
from ingest.core.errors import as_text, counted, listed
from ingest.core.labels import MEAN, MIXED, is_mean, mean_kind
from ingest.read.archives.cbt import ARCHIVE
from ingest.read.fio.clock import MS
from ingest.read.fio.join import Beside, Documents, Joined, log_name_of, log_numbers
from ingest.read.fio.names import LogName, parse_log_name, parse_summary_name
from ingest.read.fio.reader import kind_of_log
from ingest.read.format_names import HIST, JSON, OF_FIO, PLAIN_JSON, RAW
from ingest.read.missing import refused
from ingest.read.sources import COMPLETION, REFUSED, SKIPPED, Around, Place, ReadOptions, Skipped, Source
from ingest.read.text import holds_nothing, size_of

if TYPE_CHECKING:
    from ingest.core.stated import Stated
    from ingest.read.fio.json_output import Job


# What fio's JSON knows beyond the logs: jobs without a log, runs whose logs were overwritten, hosts that it does not name.


def caveats(documents: Documents) -> Iterator[Caveat]:
    """Yield what fio's JSON has beyond the logs, and the logs whose host it does not know."""
    for path, (summary, sentence) in sorted(documents.unmatched.items()):
        remedy = "name the host with --host, or link the names with --host-alias A=B"
        yield Caveat("host-conflict", str(path), f"{sentence}: {summary.name} was not used for it", remedy)
    for key, (beside, later) in sorted(documents.overwritten.items()):
        if key in documents.read and not documents.told.get(key):
            wrote = f"is of an earlier run of fio than {later.name}, which wrote its logs anew"
            sentence = f"{wrote}: one row is left of it, spread over its time"
            remedy = "have each run of fio write its logs under names of their own"
            yield Caveat("several-runs", str(beside.path), sentence, remedy)


def jobs_without_log(documents: Documents) -> Iterator[tuple[Beside, Job]]:
    """Yield jobs that no log and no histogram holds, while others of their run have one."""
    for beside in documents.all():
        if beside.key in documents.overwritten and beside.key in documents.read:
            yield from ((beside, job) for job in beside.document.jobs if _has_means_alone(job))
        if not documents.claimed.get(beside.key) or beside.key in documents.read:
            continue
        claimed = documents.claimed[beside.key]
        completions = {number: {log for log in logs if _is_of_completions(log)} for number, logs in claimed.items()}
        logged = completions if any(completions.values()) else claimed
        for number, job in enumerate(beside.document.jobs):
            if not logged.get(number) and any(kind == COMPLETION for _, kind in job.summaries):
                yield beside, job


def _is_of_completions(log: Path) -> bool:
    name = parse_log_name(log)
    return name is not None and name.type in ("clat_hist", "clat")


def _has_means_alone(job: Job) -> bool:
    """Return whether fio has measured completions of a job, and tells no histogram of them."""
    told = [summary.bins for (_, kind), summary in job.summaries.items() if kind == COMPLETION]
    return bool(told) and all(bins is None for bins in told)


# What no source of a call can hold: files that are refused, jobs of fio that have no log, clients that left nothing.


SUBMISSION = "submission"  # a part of the others: a kind of its own, which no default is
NO_ROWS = "holds no line while logs of other jobs beside it do: its samples are lost, as on a full disk, or its job did nothing"
COPY_LOG = "copy it again, or keep fio's JSON beside it"
COPY_THEM = "copy its folders, or files, into the archive, or find out why it wrote none"


class Call(Protocol):
    """What a call knows of its files."""

    paths: Sequence[Path]
    options: ReadOptions
    formats: dict[Path, str]
    skipped: list[Skipped]
    documents: Documents

    def around(self, path: Path) -> Around:
        """Return the surroundings of a file."""

    def is_log(self, path: Path) -> bool:
        """Return whether a file is taken for one of fio's logs."""

    def place(self, path: Path) -> Place | None:
        """Return the place of a file in an archive, None where its folder is of none."""


def missing_sources(call: Call, sources: Sequence[Source]) -> Iterator[Missing]:
    """Yield the missing samples of runs whose files are refused, whose clients left nothing, or whose logs are empty.

    A refused file that is no log of any format is no source: only a dead fio, or a folder that cannot be listed, may be one.
    """
    for entry in call.skipped:
        if entry.action != REFUSED:
            continue
        known = call.formats.get(entry.path)
        if known is not None and known != JSON:
            around = call.around(entry.path)
            name = log_name_of(entry.path, kind_of_log(entry.path, known)) if call.is_log(entry.path) else None
            series = around.context(entry.path, host=name.host if name else "").series
            joined = around.documents.joined(entry.path, name, series.host) if name else None
            if joined is None or joined.beside.key not in around.documents.read:  # else the JSON is read, which holds the same
                volume, number_of = (series.volume or name.volume, name.job) if name else (series.volume, "")
                labels = {"host": series.host, "volume": volume, "job": number_of}
                yield refused(around.run, {label: value for label, value in labels.items() if value}, entry.path, entry.reason)
        elif known == JSON and any(source.path.parent == entry.path.parent for source in sources):
            continue  # it describes logs, and what they lack without it is in their own accounts
        elif known == JSON or entry.reason.startswith(("fio wrote no result here", "no permission to list")):
            for run in _runs_near(entry.path, sources):
                yield refused(run, {}, entry.path, entry.reason)
    yield from _absent_clients(call, sources)
    yield from _empty_logs(call, sources)


def kinds_by_log(call: Call, sources: Iterable[Source]) -> dict[Path, tuple[str, ...]]:
    """Return the kinds of latency that sources of fio have of their job, by path."""
    chosen = (source for source in sources if source.format in OF_FIO and source.context.series.kind != SUBMISSION)
    return {source.path: tuple(sorted(_kinds_of(call, source))) for source in chosen}


def _kinds_of(call: Call, source: Source) -> set[str]:
    """Return the kinds of latency that a source of fio has; those of means as such where nothing holds their histogram."""
    kind = source.context.series.kind
    if source.format in (JSON, PLAIN_JSON):
        jobs = [job for beside in call.around(source.path).documents.of_file[source.path] for job in beside.document.jobs]
        told = {(own, summary.bins is not None) for job in jobs for (_, own), summary in job.summaries.items()}
        return {own if binned else mean_kind(own) for own, binned in told if own != SUBMISSION}
    if is_mean(kind):
        base = kind.removesuffix(MEAN)
        told_bins = any(own == base and summary.bins for job in source.context.jobs for (_, own), summary in job.items())
        return {base} if told_bins else {kind}
    return {kind}


def _absent_clients(call: Call, sources: Sequence[Source]) -> Iterator[Missing]:
    """Yield the clients of CBT's settings that nothing of a run is from, where all of that run was asked for.

    Each client of CBT runs each benchmark, so what is not here was lost, or not copied. A client may be named otherwise than its
    logs are (an address, another domain): hosts that no client is named like may be any of those that seem to be missing.
    """
    asked = [path.resolve() for path in call.paths if path.is_dir()]
    by_run: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        if source.format in OF_FIO:
            by_run[source.context.series.run].append(source)
    refused_hosts: dict[tuple[Path, str], set[str]] = defaultdict(set)
    for path in (entry.path for entry in call.skipped if entry.action == REFUSED):
        if (where := call.place(path)) is not None and where.together is not None:
            name = parse_log_name(path) or parse_summary_name(path)
            refused_hosts[where.together, where.run].add(where.host or (name.host if name else ""))
    for run, own in sorted(by_run.items()):
        place = call.place(own[0].path)
        together = place.together if place is not None else None
        if place is None or together is None or not any(path in (together, *together.parents) for path in asked):
            continue
        hosts = {source.context.series.host for source in own}
        clients = dict.fromkeys(call.options.host_alias.get(client, client) for client in place.clients)
        known = hosts | refused_hosts[together, place.run]  # what is refused is missing by itself
        absent = [client for client in clients if not any(is_same_host(client, host) for host in known)]
        others = sum(not any(is_same_host(client, host) for client in clients) for host in hosts)
        if len(absent) <= others:
            continue
        sentence = f"{ARCHIVE} names {counted(len(clients), 'client')}, and " + (
            f"of {listed(absent)} logs of {counted(others, 'host')} at most are here: I/Os are missing"
            if others
            else f"nothing of {listed(absent)} is here: {'its' if len(absent) == 1 else 'their'} I/Os are missing"
        )
        caveat = Caveat(ABSENT_CLIENT, str(together), sentence, COPY_THEM)
        for kind in sorted({source.context.series.kind for source in own}):
            for labels in [{}] if others else [{"host": client} for client in absent]:
                yield Missing({"run": run, "kind": kind, **labels}, None, None, None, 0, None, caveat)


def _empty_logs(call: Call, sources: Sequence[Source]) -> Iterator[Missing]:
    """Yield the samples of fio's logs that hold no line while those of other jobs beside them do.

    What such a job did is in fio's JSON, if that is there. A log of submissions is empty where an engine has none.
    """
    empty = [entry.path for entry in call.skipped if entry.action == SKIPPED and call.formats.get(entry.path) in OF_FIO]
    alike: dict[tuple[Path, str, str, str], Source] = {}  # one of a folder, host, fio and type of log
    held = set()
    for source in sources if empty else ():
        if source.format in OF_FIO and source.format not in (JSON, PLAIN_JSON):
            series, folder = source.context.series, source.path.parent
            alike[folder, series.host, series.process, kind_of_log(source.path, source.format)] = source
            held.add((folder, *_log_of(source)))
    for path in empty if alike else ():
        name = log_name_of(path, kind_of_log(path, call.formats[path]))
        if name.type == "slat" or not call.is_log(path) or not holds_nothing(path):
            continue
        around = call.around(path)
        own = around.context(path, host=name.host).series
        like = alike.get((path.parent, own.host, name.process, name.type))
        if like is None or around.documents.joined(path, name, own.host) is not None:
            continue
        *_, process, kind = _log_of(like)
        log = own.host, own.volume or name.volume, name.job, process, kind
        if (path.parent, *log) not in held:
            labels = {"run": around.run, **dict(zip((*OF_LOG, "kind"), log, strict=True))}
            yield Missing(labels, None, None, None, 0, None, Caveat(EMPTY_LOG, as_text(path), NO_ROWS, COPY_LOG))


def _log_of(source: Source) -> tuple[str, ...]:
    """Return the labels and the kind of what a log of fio holds, whatever its form."""
    series = source.context.series
    return (*(str(getattr(series, label)) for label in OF_LOG), series.kind.removesuffix(MEAN))


def _runs_near(path: Path, sources: Sequence[Source]) -> list[str]:
    """Return the runs of the sources in the folder of a file, or in the nearest one around it."""
    for folder in (path, *path.parents):
        runs = {source.context.series.run for source in sources if folder in source.path.parents}
        if runs:
            return sorted(runs)
    return sorted({source.context.series.run for source in sources})


def stated_without_log(call: Call) -> Iterator[Stated]:
    """Yield what fio counts of jobs that no log of this call is of, by op, in the time that the job ran."""
    for beside, job in jobs_without_log(call.documents):
        from ingest.core.stated import Stated  # most calls find the logs of all jobs

        around = call.around(beside.path)
        zero = beside.document.zero_ms(job) if call.options.t0 is None and not call.options.host_offset_ns else None
        labels = {"run": around.run, "kind": COMPLETION}
        if job.host:
            labels["host"] = call.options.host_alias.get(job.host, job.host)
        name = f"{_numbered(beside.document.jobs, job)} ({job.name})" + (f" on {job.host}" if job.host else "")
        begin, end = (None, None) if zero is None else (zero[0] * MS, (zero[0] + job.runtime_ms) * MS)
        for (op, kind), summary in sorted(job.summaries.items()):
            if kind == COMPLETION:
                own = labels if op == MIXED else {**labels, "op": op}
                bounds = summary.min_ns, summary.max_ns
                yield Stated(summary.entry, own, op, summary.count, *bounds, begin, end, as_text(beside.path), name, held=False)


def _numbered(jobs: Sequence[Job], job: Job) -> str:
    """Return a job of a document as its logs are numbered: "job 3", or "jobs 3 to 4" of a sum."""
    process = [other for other in jobs if other.host == job.host]
    place = next(place for place, other in enumerate(process) if other is job)
    first, *others = (log_numbers(process) or [range(number, number + 1) for number in range(1, len(process) + 1)])[place]
    return f"jobs {first} to {others[-1]}" if others else f"job {first}"


# What may be wrong with the numbers of fio's logs as a whole: logs without fio's JSON, and I/Os that may be counted twice.


BESIDE = "keep fio's JSON (json+) in the folder of its logs"


PERHAPS_WRITTEN_OVER = (
    "shared by all jobs of a host of fio --client, which write it over one another (fio issue 1032): without fio's JSON nothing "
    "shows whether it holds all of them"
)


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
    of_clients = (log for log in alone if log.source.format == RAW and log.name.host and not log.name.cbt)
    if over := [log.path for log in of_clients if not log.name.job]:
        yield Caveat("perhaps-written-over", _names(over), PERHAPS_WRITTEN_OVER, BESIDE)
    yield from _perhaps_of_one_job(alone)
    yield from _of_no_entry(alone, documents)
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


def _of_no_entry(alone: Sequence[_Log], documents: Documents) -> Iterator[Caveat]:
    """Yield logs that no JSON describes, in folders where one describes others: perhaps copies of these, or counted with them."""
    unknown: dict[str, list[Path]] = defaultdict(list)
    for log in alone:
        beside = [one for one in documents.folders.get(log.path.parent, ()) if documents.told.get(one.key)]
        if beside and log.path not in documents.unmatched:
            unknown[listed(sorted({one.path.name for one in beside}))].append(log.path)
    for summary, paths in unknown.items():
        sentence = f"{summary} beside it names other logs: of another run, or its I/Os are in those, and count twice"
        yield Caveat("not-in-json", _names(paths), sentence, "leave it out, or keep the JSON of its own run beside it")


def _apart(summary: Source, alone: Iterable[_Log], documents: Documents, read: Collection[Path]) -> Iterator[Caveat]:
    """Yield a JSON that is read for itself where logs, or a copy of it, may hold the same I/Os."""
    runs = [entry for entry in documents.of_file[summary.path] if entry.key in documents.read]
    copy = next((copy for beside in runs if (copy := documents.same_as(beside)) is not None), None)
    # Two files of the same bytes that are both read have their caveat already (see `once_by_content`).
    if copy is not None and (copy.path not in read or size_of(copy.path) != size_of(summary.path)):
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
