"""Sums of groups of jobs (group_reporting): which logs a sum in fio's JSON is of, and which of them carries what no row holds.

    [a] numjobs=2 group_reporting        jobs[0] "a": 1,200 reads      a_clat_hist.1.log: 540    a_clat_hist.2.log: 545

fio's JSON has one entry for a group, and logs for each job. The 115 reads of the example completed after the last row of either
log: they belong to the group, not to a log. One log that is read, whichever that is, carries the entry and has the others as its
siblings; what none of them holds is its last interval, under no job.

Which logs an entry is of is known by numbers: an entry stands for `numjobs` logs each. Where a section has several entries
this is unknown, and all entries are one sum. fio (up to 3.42 at least, issue 2132) also makes one entry of several sections of a
group, under the name of the first and with the options of the last: then there are more logs than jobs, and their rows fit into
the entries bin by bin. Rows of a log that an older run has left do not fit. A number that no log has between those of others is
that of an absent log; whether one of higher numbers is absent, only more completions after the last rows than before suggest.
Logs that the jobs of a section share have no number: they are of one entry where its jobs ran for longer than those told of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ingest.core.labels import MIXED
from ingest.core.layout import parse_layout
from ingest.read.account import Account
from ingest.read.fio import histogram_log
from ingest.read.fio.clock import MS
from ingest.read.fio.join import Documents, Joined, log_name_of, log_numbers, logging_jobs, spans_of
from ingest.read.fio.json_output import NANOSECONDS
from ingest.read.fio.names import LogName, parse_log_name
from ingest.read.fio.reader import kind_of_log
from ingest.read.fio.repairs import bins_of
from ingest.read.format_names import AVERAGED, HIST, RAW

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.read.fio.json_output import Job
    from ingest.read.sources import Source


class Member(NamedTuple):
    """A log of a job, or of a section whose jobs share it, the parts of its name, and the JSON that it was joined to."""

    source: Source
    name: LogName
    joined: Joined

    @property
    def number(self) -> int:
        """Return the number of its job, 0 of a shared log."""
        return int(self.name.job or 0)


def with_sums(sources: Sequence[Source], documents: Documents, empty: Collection[Path]) -> list[Source]:
    """Return the sources so that one of the logs of each sum carries it; `empty` are logs that hold no line.

    Histograms of some jobs and single I/Os of others are of one sum, and the carrier is one of histograms if there is any. Jobs
    that no log is there of are the `absent` ones of its context.
    """
    processes: dict[tuple[object, ...], list[Member]] = {}
    for source in sources:
        if source.format in (HIST, RAW, AVERAGED) and (member := _member(source, documents)) is not None:
            series = source.context.series
            beside, shared = member.joined.beside, not member.name.job
            one = series.run, series.host, series.kind, shared, beside.key, *map(id, member.joined.jobs)
            processes.setdefault(one, []).append(member)
    carried: dict[int, Source] = {}
    without_rows: list[Source] = []
    for members in processes.values():
        if not members[0].name.job and all(member.joined.own for member in members):
            continue  # an entry has the shared log of its section alone
        beside = members[0].joined.beside
        claimed, place_of = documents.claimed[beside.key], {id(job): place for place, job in enumerate(beside.document.jobs)}
        summed: set[int] = set()
        for own, entries in _sums(members):
            carried.update((id(member.source), made) for member, made in _with_carrier(own, entries, empty))
            summed.update(map(id, entries))
            for job in entries:
                claimed[place_of[id(job)]].update(member.source.path for member in own)
        for member in members:
            if not member.joined.own and id(member.source) not in carried:
                context = replace(member.source.context, grouped=0, of_no_entry=True)
                if member.source.format == AVERAGED:  # no single operations, which the gate could count
                    context.account.note(f"job {member.number} is none of fio's JSON beside it: a log of an older run?")
                carried[id(member.source)] = replace(member.source, context=context)
        for job, source in _without_rows(members, summed, empty) if summed else ():
            claimed[place_of[id(job)]].add(source.path)
            without_rows.append(source)
    return [*(carried.get(id(source), source) for source in sources), *without_rows]


def _member(source: Source, documents: Documents) -> Member | None:
    """Return a log of completions that fio's JSON is there for, None of any other."""
    name = log_name_of(source.path, kind_of_log(source.path, source.format))
    joined = documents.joined(source.path, name, source.context.series.host)
    return Member(source, name, joined) if joined is not None else None


def _sums(members: Sequence[Member]) -> Iterator[tuple[list[Member], tuple[Job, ...]]]:
    """Yield the logs that share a sum, or several that cannot be told apart, with the entries of these."""
    jobs = members[0].joined.jobs
    owners = [bool(member.joined.own) for member in members]
    extra = not all(owners) and all(member.source.format != AVERAGED for member in members)
    if extra and (members[0].name.job or any(owners)) and _fit(members, jobs):
        yield list(members), jobs
        return
    sums: list[tuple[set[int], list[Member]]] = []
    for member in members:
        if not member.joined.grouped or not (places := set(member.joined.own)):
            continue
        others = [entry for entry in sums if entry[0] & places]
        sums = [entry for entry in sums if not entry[0] & places]
        sums.append((places.union(*(entry[0] for entry in others)), [*(one for entry in others for one in entry[1]), member]))
    for places, own in sums:
        yield own, tuple(jobs[place] for place in sorted(places))


def _fit(members: Sequence[Member], jobs: Sequence[Job]) -> bool:
    """Return whether all rows of logs fit into the entries of a document, bin by bin; of entries without bins by number.

    A job that has logs of both kinds is looked at in its histograms: both hold the same I/Os.
    """
    context = members[0].source.context
    of_jobs = {member.number or member.name.prefix: member.source for member in sorted(members, key=_coarsest)}.values()
    layouts = [histogram_log.peek(source.path, context).layout for source in of_jobs if source.format == HIST]
    layout = min(layouts, key=lambda own: own.bins, default=NANOSECONDS)
    logged = histogram_log.sums_of([source.path for source in of_jobs], layout, context)
    for op, held in logged.items():
        asked = {(name, context.series.kind) for name in (op, MIXED)}
        entries = [told for job in jobs for name, told in job.summaries.items() if name in asked]
        bins = bins_of(entries, layout)
        if sum(told.count for told in entries) < held.total or (bins is not None and (bins < held.counts).any()):
            return False
    return bool(logged)


def _with_carrier(members: Sequence[Member], entries: Sequence[Job], empty: Collection[Path]) -> Iterator[tuple[Member, Source]]:
    """Yield the logs of a sum as sources: one of them carries it."""
    carrier = max(members, key=_coarsest)
    summaries = tuple(job.summaries for job in entries)
    jobs, name = carrier.joined.jobs, carrier.name
    holding = {member.number for member in members}
    without_rows = _empty_of(members, empty)
    numbers = log_numbers(jobs) or ()
    summed = set(map(id, entries))
    here = {number for job, own in zip(jobs, numbers, strict=False) if id(job) in summed for number in own}
    told = max((number for own in numbers for number in own), default=0)
    hidden = set(range(1, max(holding))) if 0 < told < max(holding) else set()  # of sections that the entries do not tell of
    absent = sorted(((logging_jobs(jobs, name) & here) | hidden) - holding - set(without_rows)) if name.job else []
    siblings = [member.source.path for member in members if member is not carrier]
    siblings += [path for number, path in without_rows.items() if number in here - holding]
    ran = sum(round(job.all_ran_ms / job.runtime_ms) for job in entries if job.runtime_ms)
    grouped = told if hidden else max(carrier.joined.grouped or len(members), 0 if name.job else ran)
    for member in members:
        context = replace(member.source.context, jobs=(), group=summaries, grouped=grouped)
        if member is carrier:
            runtime = max(job.runtime_ms for job in entries) * MS
            context = replace(context, jobs=summaries, siblings=tuple(siblings), absent=tuple(absent), runtime_ns=runtime)
            if len({each.source.context.series.process for each in members}) > 1:
                context = replace(context, summed_over=("job", "process"))
        yield member, replace(member.source, context=context)


def _without_rows(members: Sequence[Member], summed: Collection[int], empty: Collection[Path]) -> Iterator[tuple[Job, Source]]:
    """Yield each entry of which all logs are empty, with one of them: all that their jobs did is its last interval."""
    like = members[0]
    paths = _empty_of(members, empty)
    for job, numbers in zip(like.joined.jobs, log_numbers(like.joined.jobs) or (), strict=False):
        own = sorted(paths.keys() & set(numbers))
        if id(job) in summed or not own or like.name.type != "clat_hist":
            continue
        context = like.source.context
        zero = context.zero if context.zero.origin.startswith("--t0") else like.joined.beside.document.zero_of((job,))
        context = replace(
            context,
            series=context.series.replaced(job=str(own[-1])),
            zero=zero,
            jobs=(job.summaries,),
            group=(job.summaries,),
            runtime_ns=job.runtime_ms * MS,
            spans=spans_of([job.summaries]),
            siblings=tuple(paths[number] for number in own[:-1]),
            absent=(),
            account=Account(path=str(paths[own[-1]])),
        )
        yield job, replace(like.source, path=paths[own[-1]], format=HIST, context=context, evidence=())


def _coarsest(member: Member) -> tuple[bool, int, int, Path]:
    """Return what a carrier has most of: histograms, the widest bins, which the rows of all fit into, the highest number."""
    source = member.source
    bins = parse_layout(source.layout).bins if source.layout and source.format == HIST else 0
    return source.format == HIST, -bins, member.number, source.path


def _empty_of(members: Sequence[Member], empty: Collection[Path]) -> dict[int, Path]:
    """Return the empty logs beside some logs that are named as these are, by the number of their job."""
    alike = {(member.source.path.parent, member.name._replace(job="")) for member in members}
    found = {}
    for path in empty:
        name = parse_log_name(path)
        if name is not None and name.job and (path.parent, name._replace(job="")) in alike:
            found[int(name.job)] = path
    return found
