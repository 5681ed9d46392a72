"""The files under the given paths: which reader reads each, of which run, host and layer it is, and what that rests on.

Samples of servers beside the clients of several runs: of each row of theirs, the run in whose time it lies.

    clients     |--- run 4k/8 ---|      |--- run 16k/8 ---|
    osd.ndjson  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .      a source of each run, with its own part of the rows
                                    ^ of the run it overlaps; of two the one its middle is nearer to; else of none

A server runs on while benchmarks come and go, so one file of it belongs to many runs. Beside one run all of it is that run's.

Logs of unknown start beside logs with a known one: they stand apart, as a run of their own on an elapsed axis.

    nightly: a.log begins 2026-11-22T05:50:16Z, b.log has no date     ->     run nightly: a.log      run nightly/undated: b.log

Put on one axis, a log that begins at 0 and one of today would be half a century apart: steps, rates and the life of the run
would all be wrong. So nothing of a dated run changes when an undated log is added to it.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ingest.core.coverage import ANY_TIME, Caveat
from ingest.core.errors import InputError, UsageError, choices, counted, listed, plural
from ingest.core.intervals import Intervals
from ingest.core.labels import LAYERS, OFFSET, Series, failed_kind, fits, in_layer, succeeded_kind
from ingest.read import refused, unlogged
from ingest.read.account import Account
from ingest.read.archives import Archives
from ingest.read.archives.pbench import CLIENTS
from ingest.read.archives.plain import Plain, short_names
from ingest.read.context import FAILED_LABELS, Part
from ingest.read.copies import decodable, in_finer_bins, in_one_form, once_by_content
from ingest.read.discovery import files_under, leading_out, names_in, root_of, why_closed, why_odd
from ingest.read.fio.join import Beside, Documents, log_name_of
from ingest.read.fio.names import LogName, parse_log_name, parse_summary_name, version_of_text
from ingest.read.fio.reader import counted_once, kind_of_log
from ingest.read.format_names import AVERAGED, DESCRIBED, DESCRIBED_HISTOGRAMS, HIST, JSON, OF_FIO, RAW, SERVERS
from ingest.read.formats import CORE, all_formats, format_of, names, reader_of
from ingest.read.sources import CONTEXT, REFUSED, SKIPPED, Around, Evidence, Found, Place, ReadOptions, Skipped, Source
from ingest.read.text import head, holds_nothing, plain_name
from ingest.read.unlogged import doubts, kinds_by_log, missing_sources, stated_without_log

CODE = "servers-of-runs"
BETWEEN = "each has what was sampled in its time, and what was sampled between and around them is in none"
UNKNOWN = "when these runs began and ended is not known, so its samples are a run of their own"
AT_ONCE = "some of these runs went on at the same time, so its samples are a run of their own"
Span = tuple[int, int]


def among_runs(found: Found) -> Found:
    """Return what was found with sources of servers in the runs of the clients beside them; as it is where there are none.

    Where several runs are there, and it cannot be known which of them a sample belongs to, a caveat says so.
    """
    runs = {source.context.series.run for source in found.sources if source.format in OF_FIO}
    servers = [source for source in found.sources if source.format in SERVERS and source.context.series.run not in runs]
    if not runs or not servers:
        return found
    spans = _spans(found, runs)
    parts: dict[str, Part | None]
    if len(runs) == 1:
        parts, sentence = dict.fromkeys(runs), ""
    elif spans is None:
        parts, sentence = {}, UNKNOWN
    elif (own := _parts(spans)) is None:
        parts, sentence = {}, AT_ONCE
    else:
        parts, sentence = dict(own), BETWEEN
    said = f"sampled beside {counted(len(runs), 'run')}: {sentence}"
    caveats = [Caveat(CODE, str(path), said) for path in sorted({source.path for source in servers}) if sentence]
    if not parts:
        return replace(found, caveats=(*found.caveats, *caveats))
    moved = {id(source) for source in servers}
    sources = [source for source in found.sources if id(source) not in moved]
    sources += [_of_run(source, run, part) for source in servers for run, part in parts.items()]
    ordered = tuple(sorted(sources, key=lambda source: (source.path.parts, source.context.series.run)))
    return replace(found, sources=ordered, caveats=(*found.caveats, *caveats))


def _spans(found: Found, runs: set[str]) -> dict[str, Span] | None:
    """Return when the clients of each run began and ended in ns, by their start and fio's runtime; None if one is unknown."""
    spans: dict[str, Span] = {}
    for source in found.sources:
        context = source.context
        if source.format not in OF_FIO or context.zero.epoch_ns is None or not context.runtime_ns:
            continue
        begin = context.zero.epoch_ns + context.offset_ns
        low, high = spans.get(context.series.run, (begin, begin))
        spans[context.series.run] = min(low, begin), max(high, begin + context.restart_ns + context.runtime_ns)
    return spans if spans.keys() == runs else None


def _parts(spans: dict[str, Span]) -> dict[str, Part] | None:
    """Return the part of each run, None where two of them went on at the same time."""
    ordered = sorted(spans.items(), key=lambda item: item[1])
    gaps = [(end, begin) for (_, (_, end)), (_, (begin, _)) in pairwise(ordered)]
    if any(begin < end for end, begin in gaps):
        return None
    edges = [ANY_TIME[0], *((end + begin) // 2 for end, begin in gaps), ANY_TIME[1]]
    return {run: Part(*span, *edges[at : at + 2]) for at, (run, span) in enumerate(ordered)}


def _of_run(source: Source, run: str, part: Part | None) -> Source:
    """Return a source as one of a run, with an account of its own."""
    context = source.context
    own = replace(context, series=context.series.replaced(run=run), part=part, account=Account(path=context.account.path))
    return replace(source, context=own)


def of_its_part(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a source that lie in its part, all where it has none; its account counts the samples of these alone.

    Once all are read, what the source lacks at other times is taken out of the account.
    """
    part, account = source.context.part, source.context.account
    if part is None:
        yield from rows
        return
    for chunk in rows:
        middle = chunk.start_ns + (chunk.end_ns - chunk.start_ns) // 2
        inside = (middle > part.after_ns) & (middle <= part.before_ns)
        inside &= (chunk.start_ns < part.end_ns) & (chunk.end_ns > part.begin_ns)
        kept = chunk.take(np.flatnonzero(inside))
        account.samples -= int(chunk.counts.sum()) - int(kept.counts.sum())
        if len(kept):
            yield kept
    account.missing = [entry for entry in account.missing if entry.span[0] < part.end_ns and entry.span[1] > part.begin_ns]


UNDATED = "undated"


def apart(discovered: Found, dated: Collection[str] = ()) -> Found:
    """Return the discovered files with undated sources in runs of their own where their run has dated ones.

    `dated` are runs that have dated sources elsewhere: in the store that they are loaded into.
    """
    clocks = {(source.context.series.run, source.context.zero.epoch_ns is not None) for source in discovered.sources}
    real = {*dated, *(run for run, known in clocks if known)}
    moved = {run: undated_name(run, real) for run, known in sorted(clocks) if not known and run in real}
    if not moved:
        return discovered
    labels: Mapping[str, Mapping[str, str]] = {name: discovered.labels.get(run, {}) for run, name in moved.items()}
    return replace(
        discovered,
        sources=tuple(_in_run(source, moved) for source in discovered.sources),
        labels={**labels, **discovered.labels},
    )


def undated_name(run: str, dated: Collection[str] = ()) -> str:
    """Return the name for the undated sources of a run; never that of a dated run."""
    name = f"{run}/{UNDATED}"
    while name in dated:
        name = f"{name}/{UNDATED}"
    return name


def undated_part_of(run: str) -> str:
    """Return the run that an undated one was taken out of, by its name; empty text where it is a run like any other."""
    base, _, last = run.rpartition("/")
    return base if last == UNDATED else ""


def _in_run(source: Source, moved: Mapping[str, str]) -> Source:
    """Return a source, in another run where it has no date and that of its run is moved."""
    series = source.context.series
    if source.context.zero.epoch_ns is not None or series.run not in moved:
        return source
    return replace(source, context=replace(source.context, series=series.replaced(run=moved[series.run])))


# The files under the given paths: which reader reads each, of which run and host it is, and what that rests on.
#
# Nothing is read here beyond the heads of files, the tools' own summaries and their settings. A file is known by the table of
# formats; where it belongs is known by its archive (see `archives`), else by the folders: logs of equal names in sibling
# folders are of one host each, a path that is a whole archive is a run of its own, everything else is one run. What the user
# said comes first, then what a file says itself, then its archive, then its folder; each answer is kept as evidence.


TEXT_OUTPUT = (b"ioengine=", b"Starting ")
PRINTED = refused.RefusedFormat(
    CONTEXT,
    "fio's text output: percentiles only, which cannot be added up or put on one time axis; "
    "run it with --output-format=json+ (beside logs the text shows the version of fio)",
)
LONGEST_TEXT = 8 << 20  # what fio prints of its jobs before its JSON
MOST_NEIGHBOURS = 200
HEAD = 1 << 16
NO_RESULT = "fio wrote no result here: it died or was killed, so its I/Os are missing from every answer"
NAME_IT = "name it to read what it holds"
LINKED = "a link to a folder elsewhere, which is not entered"


def discover(paths: Sequence[Path], options: ReadOptions, *, among: bool = True) -> Found:
    """Return the sources and skipped files under `paths`, in path order, with missing samples and guesses.

    `among` gives samples of servers to the runs of clients beside them (see `among_runs`).

    Raises InputError for a path that does not exist or cannot be listed, or where nothing under them can be read, UsageError for
    a format of another name than there is.
    """
    if options.input_format and options.input_format not in names():
        raise UsageError(f"no input format {options.input_format!r}: {choices(options.input_format, names())}")
    closed: list[Path] = []
    linked: list[Path] = []
    odd: list[Path] = []
    files = list(files_under(paths, closed, linked, odd))
    call = _Call(paths, options)
    for folder in closed:
        call.refuse(folder, why_closed(folder))
    call.skipped += [Skipped(path, REFUSED if path.is_symlink() else SKIPPED, why_odd(path)) for path in odd]
    for link in leading_out(linked, paths):
        call.skipped.append(Skipped(link, SKIPPED, f"{LINKED}: {NAME_IT}"))
        call.caveats.append(Caveat("linked-folder", str(link), LINKED, NAME_IT))
    known = set(files)
    for path in files:
        if path not in call.named and (original := refused.backup_of(path, known)) is not None:
            call.skipped.append(Skipped(path, SKIPPED, f"a backup of {original.name} by its name: {NAME_IT}"))
        else:
            call.recognise(path)
    logs = {path: log_name_of(path, kind_of_log(path, call.formats[path])) for path in call.formats if call.is_log(path)}
    neighbours = _neighbours(logs, known, call)
    for path, log_name in logs.items():
        call.documents.add_log(path, log_name)
    for path, name in call.formats.items():
        if name == JSON:
            call.documents.add_summary(path, call.refuse)
    for path in neighbours:
        call.documents.add_summary(path, call.refuse, inside=False)
    call.decide_runs(logs)
    # A JSON is read for itself only where no log was found that it describes, so logs come first.
    ordered = sorted(call.formats, key=lambda path: (call.formats[path] == JSON, path.parts))
    sources = [source for path in ordered if (source := call.located(path)) is not None]
    call.check_host()
    sources = in_one_form(counted_once(sources, options.prefer, call.skipped), options.prefer, call.skipped)
    sources = in_finer_bins(sources, call.skipped, call.caveats)
    sources = _readable(sources, call)
    sources = once_by_content(sources, call.place, call.skipped, call.caveats)
    if call.documents.folders:
        from ingest.read.fio.groups import with_sums  # most calls name logs alone, and each import takes its time

        sources = with_sums(sources, call.documents, call.empty_logs())
    _check_readable(paths, sources, call.skipped, call.formats)
    of_files = (*call.caveats, *unlogged.caveats(call.documents), *doubts(sources, call.documents))
    caveats = (*call.archives.unreadable(), *of_files)
    taken = {source.path for source in sources}  # an empty log may stand for what fio counts of its jobs
    skipped = tuple(sorted((entry for entry in call.skipped if entry.path not in taken), key=lambda entry: entry.path.parts))
    missing, stated = tuple(missing_sources(call, sources)), tuple(stated_without_log(call))
    ordered_sources = tuple(sorted(sources, key=lambda placed: placed.path.parts))
    kinds = kinds_by_log(call, sources)
    discovered = Found(ordered_sources, skipped, call.labels_of(sources), caveats, missing, stated, kinds)
    return apart(decodable(among_runs(discovered) if among else discovered))


class _Call:
    """What one call has found so far."""

    def __init__(self, paths: Sequence[Path], options: ReadOptions) -> None:
        self.paths, self.options = paths, options
        self.archives = Archives()
        self.documents = Documents(options.host_alias)
        self.formats: dict[Path, str] = {}
        self.skipped: list[Skipped] = []
        self.hosts: dict[str, Path] = {}  # that files or their places name, each with one of them
        self.caveats: list[Caveat] = []
        self.root = root_of(paths)
        self.named = frozenset(path for path in paths if not path.is_dir())
        self.bases: dict[Path, str] = {}
        self.plain: dict[Path, Place] = {}
        self._folders: dict[Path, Path] = {}
        self._places: dict[Path, Place | None] = {}

    def folder(self, path: Path) -> Path:
        """Return the absolute folder of a file."""
        parent = path.parent
        if parent not in self._folders:
            self._folders[parent] = parent.resolve()
        return self._folders[parent]

    def place(self, path: Path) -> Place | None:
        """Return the place of a file in an archive, None where its folder is of none."""
        if path not in self._places:
            self._places[path] = self.archives.place_of(self.folder(path))
        return self._places[path]

    def is_log(self, path: Path) -> bool:
        """Return whether a file is taken for one of fio's logs."""
        return self.formats[path] in (HIST, RAW, AVERAGED)

    def refuse(self, path: Path, reason: str, line: int | None = None) -> None:
        """Keep a file that is refused, with the reason."""
        self.skipped.append(Skipped(path, REFUSED, reason, line))

    def recognise(self, path: Path) -> None:
        """Note the format of a file, or why it is not read."""
        if path not in self.named and refused.is_unfinished(path):
            self.refuse(path, refused.NOT_YET)
            return
        place = self.place(path)
        if place is not None and place.unread and path not in self.named:
            self.skipped.append(Skipped(path, SKIPPED, place.unread))
            return
        try:
            verdict = self._format(path)
            version = version_of_text(head(path)) if verdict is PRINTED else None
        except InputError as error:
            self.refuse(path, error.reason)
            return
        if isinstance(verdict, refused.RefusedFormat):
            if version is not None:
                self.documents.versions[path.parent].add(version)
            self.skipped.append(Skipped(path, verdict.action, verdict.sentence))
        elif verdict:
            self.formats[path] = verdict

    def _format(self, path: Path) -> str | refused.RefusedFormat:
        """Return the format of a file by the options, its name or its beginning; empty text where that is unknown."""
        description, wanted, named = self.options.description, self.options.input_format, path in self.named
        if description is not None:
            from ingest.read.described.description import HistogramDescription

            of_yaml = DESCRIBED_HISTOGRAMS if isinstance(description, HistogramDescription) else DESCRIBED
            return "" if plain_name(path) == Path(description.path).name else of_yaml
        name = f"{path.parent.name}/{plain_name(path)}"
        if not wanted:
            by_name = next((line.name for line in CORE if line.by_name(name)), None) or refused.known_by_name(path)
            if by_name is not None:
                return by_name
        start = head(path)
        printed = parse_summary_name(path) is not None or any(mark in start for mark in TEXT_OUTPUT)
        if printed and (summary := _summary(path, start)):
            return summary
        if wanted:
            return JSON if b'"fio version"' in start and wanted in (HIST, RAW) else wanted
        for line in all_formats() if start else ():  # there is nothing to know an empty file by, and loading them takes 40 ms
            if line.by_head(path, start, named=named) or (line not in CORE and line.by_name(name)):
                return line.name
        return refused.known_by_head(path, start)

    def decide_runs(self, logs: Mapping[Path, LogName]) -> None:
        """Decide the run of each file, and the hosts that plain folders stand for."""
        archives = sorted({place.archive for path in self.formats if (place := self.place(path)) is not None})
        names, run = short_names(archives), self.options.run
        if run:
            names = [run] if len(archives) == 1 else [f"{run}/{name}" for name in names]
        self.bases = dict(zip(archives, names, strict=True))
        others = {path: name for path, name in self.formats.items() if self.place(path) is None}
        self.plain = Plain(others, self.paths, self.root, run, self.folder, logs, self.documents, self.caveats).places()

    def around(self, path: Path) -> Around:
        """Return the surroundings of a file."""
        place, options = self.place(path), self.options
        if (yaml := format_of(self.formats[path]).description if path in self.formats else "") and options.description is None:
            from ingest.read.described.description import description_of

            options = replace(options, description=description_of(yaml))
        if place is None:
            place = self.plain[path]
            return Around(options, self.documents, place.run, place)
        base = self.bases[place.archive]
        return Around(options, self.documents, f"{base}/{place.run}" if place.run else base, place)

    def located(self, path: Path) -> Source | None:
        """Return the source that a file is, None where it is refused or only describes others."""
        name = self.formats[path]
        if name == JSON and not self._is_source(path):
            return None
        around = self.around(path)
        try:
            source = reader_of(name).locate(path, around)
        except InputError as error:
            if empty := holds_nothing(path):
                self.documents.found_empty(path)
            empty = empty or error.reason.startswith("fio JSON without")
            if not empty and (known := refused.compressed_inside(path)) is not None:
                self.refuse(path, known.sentence)
            else:
                self.skipped.append(Skipped(path, SKIPPED if empty else REFUSED, error.reason, error.line))
            return None
        if around.named_host:
            self.hosts.setdefault(around.named_host, path)
        first: list[Evidence] = [Evidence("format", name, "--input-format" if self.options.input_format else "name or beginning")]
        first += around.place.evidence
        return replace(source, evidence=(*first, *around.evidence))

    def check_host(self) -> None:
        """Fail where --host would make several hosts one."""
        if self.options.host and len(self.hosts) > 1:
            raise UsageError(
                f"--host {self.options.host} would call {len(self.hosts)} hosts alike ({listed(sorted(self.hosts))}): "
                f"--where host={min(self.hosts)} selects one of them, --host-alias {min(self.hosts)}=NAME renames one"
            )

    def empty_logs(self) -> list[Path]:
        """Return the logs of fio that hold no line."""
        skipped = (entry.path for entry in self.skipped if entry.action == SKIPPED)
        return [path for path in skipped if path in self.formats and self.is_log(path) and holds_nothing(path)]

    def _is_source(self, path: Path) -> bool:
        """Return whether a fio JSON is read for itself: its logs are not there, and no other file holds the same."""
        runs = self.documents.of_file[path]
        if not runs:
            return False
        own, cut_out = runs[0].name, path.with_name(f"json_{path.name}")
        if own is not None and not own.cut and any(entry.path == cut_out for entry in self.documents.folders[path.parent]):
            self.skipped.append(Skipped(path, SKIPPED, "the same fio summary as the json_output file beside it"))
            return False
        why = {run.key: self._why_not(run) for run in runs}
        self.documents.read.update(key for key, skipped in why.items() if skipped is None)
        left_out = [skipped for skipped in why.values() if skipped is not None]
        if len(left_out) == len(runs):
            self.skipped.append(next((skipped for skipped in left_out if skipped.action == CONTEXT), left_out[-1]))
            return False
        return True

    def _why_not(self, run: Beside) -> Skipped | None:
        """Return why a run in a fio JSON is not read for itself, None where it is."""
        logs = self.documents.told.get(run.key, set())
        copy = None if logs else self.documents.same_as(run)
        if copy is not None and self.around(copy.path).run == self.around(run.path).run:
            return Skipped(run.path, SKIPPED, f"the same fio summary as {copy.path}: counted once")
        if not logs:
            return None
        from ingest.read.fio.json_intervals import left_of  # most calls meet no such JSON, and each import takes its time

        if self.documents.means >= logs and left_of(run.document, tuple(logs)):
            return None
        return Skipped(run.path, CONTEXT, "fio's own totals, start time and options")

    def labels_of(self, sources: Iterable[Source]) -> dict[str, Mapping[str, str]]:
        """Return the settings of each run."""
        labels: dict[str, Mapping[str, str]] = {}
        for source in sources:
            run = source.context.series.run
            if run not in labels:
                place = self.place(source.path)
                settings = dict(place.labels) if place is not None else {}
                labels[run] = settings or ({"target_rate": self.options.rate} if self.options.rate else {})
        return labels


def _summary(path: Path, start: bytes) -> str | refused.RefusedFormat:
    """Return what a file is that fio printed: its JSON, text alone, or nothing, where fio died; empty text if it is neither."""
    name = parse_summary_name(path)
    if name is not None and name.cut and not start:
        beside = path.with_name(path.name.removeprefix("json_"))
        printed = head(beside, LONGEST_TEXT) if beside.is_file() else b""
        if b"Run status group" in printed or b"fio version" in printed:
            return refused.RefusedFormat(SKIPPED, "empty: fio printed text, not JSON (fio_out_format)")
        return refused.RefusedFormat(REFUSED, f"{NO_RESULT}; see the output file beside it, and run this part again")
    whole = start if b'"fio version"' in start or len(start) < HEAD else head(path, LONGEST_TEXT)
    if b'"fio version"' in whole:
        return JSON
    if any(mark in start for mark in TEXT_OUTPUT) and b"fio-" in start:
        return PRINTED
    return ""


def _neighbours(logs: Mapping[Path, LogName], known: set[Path], call: _Call) -> list[Path]:
    """Return the fio JSON files beside logs that the user named one by one: a glob of logs answers as their folder does."""
    folders = {path.parent for path in logs if path in call.named}
    for path in call.paths:
        parts = path.resolve().parts
        if CLIENTS in parts and any(log == path or path in log.parents for log in logs):
            folders.add(Path(*parts[: len(parts) - 1 - parts[::-1].index(CLIENTS)]))
    neighbours: list[Path] = []
    resolved = {path.resolve() for path in known} if folders else set()
    for folder in sorted(folders):
        candidates = [file for file in map(folder.joinpath, names_in(folder)) if parse_log_name(file) is None]
        unknown = [file for file in candidates[:MOST_NEIGHBOURS] if file not in known and file.resolve() not in resolved]
        neighbours.extend(file for file in unknown if _is_json(file))
    return neighbours


def _is_json(file: Path) -> bool:
    try:
        return _summary(file, head(file)) == JSON
    except InputError:
        return False


def _readable(sources: Sequence[Source], call: _Call) -> list[Source]:
    """Return the sources that can be read here; those that need pyarrow are refused where it is missing."""
    needing = [source for source in sources if reader_of(source.format).arrow]
    if not needing or importlib.util.find_spec("pyarrow") is not None:
        return list(sources)
    for source in needing:
        call.documents.forget(source.path)
        from ingest.read.described.table import MISSING

        call.refuse(source.path, MISSING)
    return [source for source in sources if not reader_of(source.format).arrow]


def _check_readable(
    paths: Sequence[Path], sources: Sequence[Source], skipped: Sequence[Skipped], formats: Collection[Path]
) -> None:
    """Raise InputError where nothing can be read: what was there, by reason, and what to do.

    Of refused files one of `formats` is named first: what keeps a log from being read says more than what is no log.
    """
    if sources:
        return
    rejects = [entry for entry in skipped if entry.action == REFUSED]
    if rejects:
        first = next((entry for entry in rejects if entry.path in formats), rejects[0])
        others = len(rejects) - 1
        more = f" (and {others} more {plural(others, 'file')} refused: tailboard inspect lists them)" if others else ""
        raise InputError(first.reason + more, first.path, first.line)
    if len(skipped) == 1 and not paths[0].is_dir():
        raise InputError("".join(refused.without_advice(skipped[0].reason)), skipped[0].path)
    names = ", ".join(str(path) for path in paths)
    if not skipped:
        raise InputError("there is no file to read", names)
    said = [refused.without_advice(entry.reason) for entry in skipped]
    reasons = Counter(reason for reason, _ in said)
    commonest = "; ".join(f"{count} x {reason}" if len(skipped) > 1 else reason for reason, count in reasons.most_common(3))
    several = f"{len(skipped)} files, none of them a latency histogram or log"
    what = several if len(skipped) > 1 else "1 file, and it is no latency histogram or log"
    raise InputError(f"{what}: {commonest}{max(advice for _, advice in said)}", names)


# Which operations a user says failed (`--failed tag=err*`): their rows are of the kind of those, whatever label says so.


def in_their_outcome(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a source, those that failed under the kind of failed operations; offsets have no outcome."""
    told = [line.partition("=")[::2] for line in source.context.options.get(FAILED_LABELS, "").splitlines()]

    def outcome(series: Series) -> Series:
        if series.kind == OFFSET or not any(fits(str(getattr(series, label)), glob) for label, glob in told):
            return series
        return series.replaced(kind=failed_kind(succeeded_kind(series.kind)))

    return (part.relabelled(outcome) for part in rows) if told else rows


# The layer that a user says a source was timed at (`--label layer=device`): its rows, and what it lacks, bear it.


def layer_named(text: str) -> str:
    """Return the layer that a user names; UsageError where there is no such layer."""
    if text not in LAYERS:
        raise UsageError(f"no layer {text!r}: {choices(text, LAYERS, most=len(LAYERS))}")
    return text


def in_their_layer(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a source in the layer that the user said, as they are where he said none; offsets have none.

    Once all are read, what the source lacks is of that layer, too.
    """
    layer, account = source.context.layer, source.context.account
    if not layer:
        yield from rows
        return
    for part in rows:
        yield part.relabelled(
            lambda series: series if series.kind == OFFSET else series.replaced(kind=in_layer(series.kind, layer))
        )
    for place, entry in enumerate(account.missing):
        if kind := entry.labels.get("kind"):
            account.missing[place] = replace(entry, labels={**entry.labels, "kind": in_layer(kind, layer)})
    for stated in (*account.whole_runs, *account.whole_rows):
        if stated.get("kind"):
            stated["kind"] = in_layer(stated["kind"], layer)
