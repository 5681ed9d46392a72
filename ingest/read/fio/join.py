"""Which fio JSON belongs to which log: joined by the job's options, its number, its host and the folder, never by position.

A log `h_clat_hist.2.log` belongs to the second job of a document whose options name the prefix (`write_hist_log=h`); a log that
CBT names `output.3_...` to the JSON of the same volume and host. `fio --client` writes one JSON for all hosts: the jobs of a
log are those of its own host, by the suffix of its name or by its folder. Of several documents the nearest folder counts, and
there the newest run. A host that the JSON does not know takes nothing from it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from ingest.core.errors import InputError, listed
from ingest.read.context import COARSEST, Context
from ingest.read.fio.clock import MS
from ingest.read.fio.names import LogName, SummaryName, parse_log_name, parse_summary_name, version_printed_for
from ingest.read.text import plain_name

if TYPE_CHECKING:
    from ingest.read.context import Summary
    from ingest.read.fio.json_output import Document, Job


MORE_JOBS = 1.1  # times as long as the jobs told of: those of a group run within 2 % of as long as the longest (60 recordings)
ALL_ALIKE = 0.03  # of the number of jobs: nearer to a whole number, all of them ran for as long as the longest
PREFIX_OPTIONS = {"clat_hist": "write_hist_log", "bw": "write_bw_log", "iops": "write_iops_log"}


def same_host(name: str, other: str, aliases: Mapping[str, str]) -> bool:
    """Return whether two names are of one host: equal, one the first label of the other, or linked by --host-alias."""
    name, other = aliases.get(name, name), aliases.get(other, other)
    return name == other or _first_label(name, other) or _first_label(other, name)


def _first_label(short: str, long: str) -> bool:
    return bool(short) and not short.replace(".", "").isdigit() and long.startswith(f"{short}.")


class Beside(NamedTuple):
    """The last fio document of a run in a file, and what the file's name says; `inside` is false where the call does not name it.

    `first` and `last` are the numbers of the documents of the run in the file.
    """

    path: Path
    document: Document
    name: SummaryName | None
    inside: bool = True
    width_ns: int = 0
    first: int = 0
    last: int = 0

    @property
    def key(self) -> tuple[Path, int]:
        """Return what tells this run from all others."""
        return self.path, self.first


class Joined(NamedTuple):
    """The document of a log, the jobs of its process in order, and the numbers of those that count its samples (from 0).

    `grouped` is how many jobs stand behind the entries if some are sums (group_reporting), else 0.
    """

    beside: Beside
    jobs: tuple[Job, ...]
    own: tuple[int, ...]
    grouped: int
    origin: str

    @property
    def hides_sections(self) -> bool:
        """Return whether an entry is of sections, too, whose options it does not tell."""
        return any(_ran_longer(self.jobs[number]) for number in self.own)


class Documents:
    """The last fio document of each run in JSON files, by folder, and which logs each describes.

    `of_file` are the runs in a JSON file, `means` the logs of means, `read` the runs whose JSON is read for itself, `overwritten`
    those whose logs a later run has written anew, with the file of that one, `versions` what fio printed as text.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.aliases = aliases
        self.folders: dict[Path, list[Beside]] = defaultdict(list)
        self.told: dict[tuple[Path, int], set[Path]] = defaultdict(set)
        self.claimed: dict[tuple[Path, int], dict[int, set[Path]]] = defaultdict(lambda: defaultdict(set))
        self.overwritten: dict[tuple[Path, int], tuple[Beside, Path]] = {}
        self.prefixes: dict[Path, set[str]] = defaultdict(set)
        self.numbered: dict[tuple[Path, str, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.means: set[Path] = set()
        self.read: set[tuple[Path, int]] = set()
        self.versions: dict[Path, set[tuple[int, ...]]] = defaultdict(set)
        self.unmatched: dict[Path, tuple[Path, str]] = {}
        self.of_file: dict[Path, list[Beside]] = defaultdict(list)
        self._over: dict[tuple[object, object], bool] = {}
        self._prefixes: dict[tuple[int, str], tuple[tuple[Job, ...], set[str]]] = {}
        self._joined: dict[Path, Joined | None] = {}
        self._alike: dict[tuple[object, ...], list[Beside]] = defaultdict(list)

    def add_log(self, path: Path, name: LogName) -> None:
        """Note a log, so that the prefixes of the logs of a folder are known."""
        self.prefixes[path.parent].add(f"{name.type} {name.prefix}")
        if name.job:
            self.numbered[path.parent, name.type, name.host][name.prefix].add(int(name.job))

    def add_summary(self, path: Path, refuse: Callable[[Path, str, int | None], None], *, inside: bool = True) -> None:
        """Read the last documents of the runs in a JSON file; one that cannot be read is refused with the reason."""
        from ingest.read.fio import json_output
        from ingest.read.fio.runs import runs_in

        rejected: list[tuple[str, int]] = []
        try:
            runs = list(runs_in(path, rejected))
            if not runs:
                raise json_output.no_document(path, rejected)
        except InputError as error:
            if inside:
                refuse(path, error.reason, error.line)
            return
        name = parse_summary_name(path)
        found = [Beside(path, run.document, name, inside, run.width_ns, run.first, run.last) for run in runs if run.document.jobs]
        self.folders[path.parent].extend(found)
        self.of_file[path] = found
        if inside and not found:
            refuse(path, "fio JSON without a job", None)

    def all(self) -> Iterator[Beside]:
        """Yield all documents of files that the call names, in order of their paths."""
        documents = chain.from_iterable(self.folders.values())
        yield from sorted((beside for beside in documents if beside.inside), key=lambda beside: beside.path)

    def context_of(self, path: Path, name: LogName, context: Context) -> Context:
        """Return the context of a log with what fio's JSON says of its jobs; unchanged where there is none."""
        joined = self.joined(path, name, context.series.host)
        if joined is None:  # where fio --client names a log of this prefix on other hosts, this one came through it, too
            return replace(context, through_client=True) if path in self.unmatched else context
        document, own = joined.beside.document, tuple(joined.jobs[number] for number in joined.own)
        first = own[0] if own else joined.jobs[0]
        one_of_group = bool(joined.grouped and name.job)
        began = own or (first,)
        summaries = tuple(job.summaries for job in own)
        widths = {job.options.get("log_hist_coarseness", "0") for job in own if not name.job and name.type == "clat_hist"}
        unlike = {COARSEST: max(widths, key=int)} if len(widths) > 1 and all(map(str.isdigit, widths)) else {}
        return replace(
            context,
            zero=document.zero_of(began),
            version=context.version or document.version,
            options={**first.options, **context.options, **unlike},
            through_client=document.through_client,
            jobs=() if one_of_group else summaries,
            group=summaries if one_of_group else (),
            runtime_ns=max((job.runtime_ms for job in own), default=first.runtime_ms) * MS,
            spans=spans_of([job.summaries for job in began]),
            stages=None if name.job else document.stages_ns(began),
            grouped=joined.grouped,
        )

    def process_of(self, path: Path, name: LogName, host: str) -> str:
        """Return the label that distinguishes fio processes of one folder: of a job with two prefixes, that of its histograms.

        So a histogram log `h` and a latency log `l` of one job are known to hold the same I/Os, in one folder or as `hist/h` and
        `raw/l` below that of fio's JSON.
        """
        joined = self.joined(path, name, host)
        if joined is None or name.type == "clat_hist" or not name.process or not (name.job or joined.own):
            return name.process
        # A log of no entry, or of one that tells no prefix, is of a section that another entry stands for.
        entries = (*(joined.jobs[number] for number in joined.own), *joined.jobs)
        options = next((job.options for job in entries if not job.options.keys().isdisjoint(PREFIX_OPTIONS.values())), {})
        written = PurePath(options.get(PREFIX_OPTIONS["clat_hist"], ""))
        folders = path.parent, joined.beside.path.parent / written.parent
        known = any(f"clat_hist {written.name}" in self.prefixes[folder] for folder in folders)
        return written.name if known else name.process

    def version_beside(self, path: Path) -> tuple[int, ...] | None:
        """Return the version of fio that all texts it printed into the folder of a log name, None where there is none, or two.

        Without such a text that one counts which lies beside the folder and has its name, then those one folder up.
        """
        own, above = (self.versions.get(folder, set()) for folder in (path.parent, path.parent.parent))
        if not own and (printed := version_printed_for(path.parent)) is not None:
            return printed
        versions = own or above
        return next(iter(versions)) if len(versions) == 1 else None

    def same_as(self, beside: Beside) -> Beside | None:
        """Return a run in another file of the call that ends in the same document: one that describes logs, else an earlier."""
        from ingest.read.fio.runs import measured

        if not self._alike:
            for candidate in self.all():
                self._alike[measured(candidate.document)].append(candidate)
        others = [other for other in self._alike[measured(beside.document)] if other.path != beside.path]
        describing = (other for other in others if self.told.get(other.key))
        return next(describing, next((other for other in others if other.path < beside.path), None))

    def forget(self, log: Path) -> None:
        """Take back what is held about a log that turned out to be none."""
        for logs in self.told.values():
            logs.discard(log)

    def found_empty(self, log: Path) -> None:
        """Note that a log holds nothing: its jobs have no log, unless there is another one."""
        for logs in (logs for jobs in self.claimed.values() for logs in jobs.values()):
            logs.discard(log)

    def joined(self, path: Path, name: LogName, host: str) -> Joined | None:
        """Return the newest document that describes a log, nearest folder first, with its jobs; None where none does."""
        if not self.folders:
            return None
        if path not in self._joined:
            self._joined[path] = self._join(path, name, host)
        return self._joined[path]

    def _join(self, path: Path, name: LogName, host: str) -> Joined | None:
        for folder in self._folders_around(path):
            matching = []
            for beside in self.folders.get(folder, ()):
                if match := self._jobs_for(beside, path, name, host):
                    # A run of fewer jobs leaves the logs of the others as they were.
                    holds = bool(self._own(path, name, match[0])[0])
                    matching.append((holds, beside.document.timestamp_ms, str(beside.path), beside, *match))
            if not matching:
                continue
            *_, beside, jobs, why = max(matching, key=lambda entry: entry[:3])
            for _, _, _, other, *_ in matching:
                if other is beside or (other.path != beside.path and not self._over_before(other, beside)):
                    self.told[other.key].add(path)
                elif other.path != beside.path:
                    self.overwritten[other.key] = other, beside.path
            own, grouped = self._own(path, name, jobs)
            self.unmatched.pop(path, None)
            if name.type in ("clat_hist", "clat", "lat", "slat"):
                mine = {id(jobs[number]) for number in own}
                for at, job in enumerate(beside.document.jobs):
                    if id(job) in mine:
                        self.claimed[beside.key][at].add(path)
            return Joined(beside, jobs, own, grouped, why)
        return None

    def _over_before(self, beside: Beside, later: Beside) -> bool:
        """Return whether a run was over when another began; worked out once for all logs of both."""
        from ingest.read.fio.runs import over_before

        pair = beside.key, later.key
        if pair not in self._over:
            self._over[pair] = over_before(beside.document, later.document)
        return self._over[pair]

    def _folders_around(self, path: Path) -> Iterator[Path]:
        """Yield the folders that a log lies in, nearest first; those above the folder of the call are known by whole paths."""
        yield from path.parents
        if not path.is_absolute() and any(folder.is_absolute() for folder in self.folders):
            yield from path.resolve().parents

    def _own(self, path: Path, name: LogName, jobs: tuple[Job, ...]) -> tuple[tuple[int, ...], int]:
        """Return the numbers of the jobs that a log holds, and how many jobs stand behind the entries of a group report."""
        grouped = _grouped(jobs)
        numbers = log_numbers(jobs) if name.job else None
        if numbers is None:
            return tuple(number for number, job in enumerate(jobs) if _prefix_of(job, name) in ("", name.prefix)), grouped
        return tuple(place for place, own in enumerate(numbers) if int(name.job) in own), grouped

    def _jobs_for(self, beside: Beside, path: Path, name: LogName, host: str) -> tuple[tuple[Job, ...], str] | None:
        """Return the jobs of a document whose process wrote this log, and why; None if it is another process's."""
        document, summary = beside.document, beside.name
        if name.cbt and summary is not None:
            if beside.path.parent != path.parent or summary.volume != name.volume:
                return None
            one_sided = not summary.host or not name.host
            same = summary.host == name.host or (one_sided and same_host(summary.host or host, name.host or host, self.aliases))
            return (document.jobs, f"{beside.path.name}, same volume and host") if same else None
        jobs, of_host = document.jobs, ""
        if document.through_client:
            hosts = {job.host for job in jobs}
            if host:
                jobs = tuple(job for job in jobs if same_host(job.host, host, self.aliases))
                of_host = f" of {host}"
            elif len(hosts) > 1:
                jobs = ()
            if not jobs and self.named_by(document.jobs, name, beside.path):
                known = f"fio's JSON names the hosts {listed(sorted(hosts))}"
                self.unmatched[path] = (beside.path, f"{known}, and this log is of {host or 'a host that is not named'}")
        named = self.named_by(jobs, name, beside.path)
        number = int(name.job or 0) - 1
        if named and 0 <= number < len(jobs) and not _grouped(jobs) and _prefix_of(jobs[number], name) not in ("", name.prefix):
            return None  # the number is that of a job which wrote another log
        named = named or (self._hidden_numbered if name.job else self._hidden_beside)(jobs, path, name)
        return (jobs, f"{beside.path.name}{of_host}, {named}") if named else None

    def named_by(self, jobs: tuple[Job, ...], name: LogName, file: Path) -> str:
        """Return how a document names a log of this prefix, empty text if it does not."""
        option = _option_of(name)
        key = id(jobs), option
        if key not in self._prefixes:  # `jobs` is held, too, so that no other tuple has its id
            self._prefixes[key] = jobs, {_last_part(job.options.get(option, "")) for job in jobs} - {""}
        _, prefixes = self._prefixes[key]
        if name.prefix in prefixes:
            return f"{_option_of(name)}={name.prefix}"
        if not prefixes and name.prefix in {job.name for job in jobs}:
            return f"job {name.prefix}"
        return f"files called {name.prefix}" if jobs and not prefixes and plain_name(file).startswith(name.prefix) else ""

    def _hidden_numbered(self, jobs: tuple[Job, ...], path: Path, name: LogName) -> str:
        """Return how a log is known to be of a section that the entry of its group does not tell of, empty text if it is not.

        The entry has the options of the last section (fio issue 2132). Its jobs ran for longer together than those of that
        section. Where this is not told: the logs of the last one have higher numbers than the jobs told of, so the numbers
        before them are of sections of other prefixes.
        """
        here = self.numbered[path.parent, name.type, name.host]
        last = set().union(*(here.get(_prefix_of(job, name), set()) for job in jobs))
        numbers = log_numbers(jobs) or ()
        if last and any(_ran_longer(job) for job, own in zip(jobs, numbers, strict=False) if int(name.job) in own):
            return f"number {name.job} among those of sections that it does not tell of"
        told = max((number for own in numbers for number in own), default=0)
        before = last and int(name.job) < min(last) and 0 < told < max(last)
        return f"number {name.job} before those of the section that it tells of" if before else ""

    def _hidden_beside(self, jobs: tuple[Job, ...], path: Path, name: LogName) -> str:
        """Return how a log that jobs share (per_job_logs=0) is known to be of a section that no entry tells of, or empty text.

        All jobs of such an entry ran for longer than those that it tells of can have. Which histograms hold the I/Os of a log of
        another prefix nothing tells: such a log is of no section.
        """
        here = self.prefixes[path.parent]
        shared = [job for job in jobs if job.options.get("per_job_logs") == "0" and "log_avg_msec" not in job.options]
        if name.type == "clat" and f"clat_hist {name.prefix}" not in here:
            shared = [job for job in shared if "write_hist_log" not in job.options]
        beside = [job for job in shared if f"{name.type} {_prefix_of(job, name)}" in here]
        return "shared by jobs of a section that it does not tell of" if any(map(_ran_longer, beside)) else ""


def _option_of(name: LogName) -> str:
    return PREFIX_OPTIONS.get(name.type, "write_lat_log")


def _prefix_of(job: Job, name: LogName) -> str:
    """Return the prefix that a job's options give logs of this type, empty text where they do not say."""
    return _last_part(job.options.get(_option_of(name), ""))


@lru_cache(maxsize=1 << 16)  # each log of a folder is held against each document of it
def _last_part(path: str) -> str:
    return PurePath(path).name


def _numjobs(job: Job) -> int:
    """Return how many jobs the section of an entry has."""
    told = job.options.get("numjobs", "1")
    return int(told) if told.isdigit() else 1


def _ran_longer(job: Job) -> bool:
    """Return whether the jobs of an entry ran for longer than those of its section can have: it is of several sections."""
    return job.all_ran_ms > MORE_JOBS * _numjobs(job) * job.runtime_ms > 0


def _behind(jobs: Sequence[Job]) -> list[int | None]:
    """Return of how many jobs each entry is (group_reporting): of one, or of all of a section, or of several sections.

    fio names the option nowhere in its JSON (3.33); but then a section has fewer entries than its numjobs, and what an entry says
    that its jobs ran together is longer than those of the section can have. None where several entries of a section are sums, or
    not all jobs of several sections ran for as long as the longest: then the number is unknown.
    """
    entries = Counter(job.name for job in jobs)
    behind: list[int | None] = []
    for job in jobs:
        count, many = entries[job.name], _numjobs(job)
        own = many if count == 1 else 1 if count >= many else None
        if own is not None and job.all_ran_ms > MORE_JOBS * own * job.runtime_ms > 0:
            ran = job.all_ran_ms / job.runtime_ms
            own = round(ran) if abs(ran - round(ran)) < ALL_ALIKE * ran else None
        behind.append(own)
    return behind


def _grouped(jobs: tuple[Job, ...]) -> int:
    """Return how many jobs stand behind the entries, at least, if some are sums (group_reporting), else 0."""
    behind = _behind(jobs)
    if all(own == 1 for own in behind):
        return 0
    told = {job.name: _numjobs(job) for job in jobs}
    return max(sum(own or 2 for own in behind), sum(told.values()))


def spans_of(jobs: Sequence[Mapping[tuple[str, str], Summary]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return from when to when of the run each op and kind of jobs that share a log ran, where that is not all of it in each."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for key in dict.fromkeys(key for job in jobs for key in job):
        each = [job[key].span_ns for job in jobs if key in job]
        known = [span for span in each if span is not None]
        if len(known) == len(each):
            spans[key] = min(begin for begin, _ in known), max(end for _, end in known)
    return spans


def log_numbers(jobs: Sequence[Job]) -> list[range] | None:
    """Return the numbers of the logs of each entry; None where they are unknown."""
    numbers: list[range] = []
    first = 1
    for own in _behind(jobs):
        if own is None:
            return None
        numbers.append(range(first, first + own))
        first += own
    return numbers


def logging_jobs(jobs: Sequence[Job], name: LogName) -> set[int]:
    """Return the numbers of the jobs that write logs like this one; none where they cannot be determined."""
    mine = zip(jobs, log_numbers(jobs) or (), strict=False)
    named = ((job, numbers) for job, numbers in mine if _prefix_of(job, name) in ("", name.prefix) or _ran_longer(job))
    return {number for _, numbers in named for number in numbers}


def log_name_of(path: Path, kind: str) -> LogName:
    """Return the parts of a log's name, and of one that is not named as fio does the whole name as its prefix."""
    plain = parse_log_name(path) or LogName(path.stem, "", "", "", "", cbt=False, deflated=False)
    return plain if plain.type == kind else plain._replace(type=kind)
