"""The nouns of discovery: how files are to be read, the surroundings of a file, the sources found, and the skipped files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ingest.core.coverage import Caveat, KindsRecorded, Missing, labels_of, without_kind
from ingest.core.errors import InputError, UsageError, listed
from ingest.core.labels import ALTERNATIVE, CLIENT, THREAD, Series, layer_of
from ingest.core.units import MOST_NS
from ingest.core.values import Value, at_least, one_of, true_or_false
from ingest.read.account import Account
from ingest.read.context import EXPECTED, FAILED_LABELS, INTENDED, RATE, SPANS, TSC_HZ, Context, TimeZero
from ingest.read.fio.join import Documents
from ingest.read.format_names import AVERAGED, HIST, RAW
from ingest.read.text import changed_ns, is_plain, last_line_end

if TYPE_CHECKING:
    from ingest.core.stated import Stated
    from ingest.read.described.description import Description, HistogramDescription


COMPLETION = "completion"
PREFER_HIST, PREFER_RAW = "hist", "raw"
RATE_TEXT = r"(?!0+(\.0*)?$)\d{1,12}(\.\d{1,9})?"
ALIAS, OFFSET, FAILED = "{'old name': 'new name'}", "{'h1': -2_000_000}", "{'tag': 'err*'}"
SKIPPED, REFUSED, SHADOWED, CONTEXT = "skipped", "refused", "shadowed", "context"


class Evidence(NamedTuple):
    """What one fact of a source rests on: "host", "client1", "folder 4krandomwrite.client1"."""

    fact: str
    value: str
    origin: str


def _check_texts(of: Any, name: str, example: str) -> None:
    """Raise UsageError unless an option maps texts to texts."""
    for pair in one_of(Mapping, of, name, example).items():
        for text in pair:
            one_of(str, text, name, example)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadOptions(Value):
    """How files are to be read: what the user said of them. `t0` is epoch ns, or "mtime".

    `rate` is the schedule of requests per second as a decimal number, `expected_interval_ns` that of a histogram's samples.
    `digits` 0 bins single events as finely as fio; `prefer` names the log to take where a histogram and a raw log hold the
    same I/Os; `keep_idle` takes samples of idle CPUs, too; `description` gives the columns of files that no reader knows.
    `tsc_hz` is the frequency of a timeline's counter, 0 where its own clock shows it. `growing` logs of single operations are
    still written: they end with their last whole line. `layer` is where all of it was timed, empty as the readers know it.
    `failed` has globs by label: what has such a label is of operations that failed.
    """

    run: str = ""
    input_format: str = ""
    host: str = ""
    host_alias: Mapping[str, str] = field(default_factory=dict)
    host_offset_ns: Mapping[str, int] = field(default_factory=dict)
    t0: int | str | None = None
    recorded_unit_ns: int | None = None
    expected_interval_ns: int = 0
    rate: str = ""
    intended_column: str = ""
    digits: int = 0
    prefer: str = PREFER_HIST
    keep_idle: bool = False
    fio_version: tuple[int, ...] | None = None
    description: Description | HistogramDescription | None = None
    tsc_hz: int = 0
    growing: bool = False
    layer: str = ""
    failed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take whole numbers of NumPy for whole numbers; UsageError for values of other types."""
        for name in ("run", "input_format", "host", "rate", "intended_column", "prefer", "layer"):
            one_of(str, getattr(self, name), name, "a text")
        true_or_false(self, ("keep_idle", "growing"))
        if self.rate and not re.fullmatch(RATE_TEXT, self.rate):
            raise UsageError(f"rate takes requests a second as a text, such as '1000', not {self.rate!r}")
        if self.prefer not in (PREFER_HIST, PREFER_RAW):
            raise UsageError(f"prefer takes {PREFER_HIST!r} or {PREFER_RAW!r}, not {self.prefer!r}")
        least = {"expected_interval_ns": 0, "digits": 0, "tsc_hz": 0}
        taken: dict[str, Any] = {name: at_least(lowest, getattr(self, name), name) for name, lowest in least.items()}
        if self.recorded_unit_ns is not None:
            taken["recorded_unit_ns"] = at_least(1, self.recorded_unit_ns, "recorded_unit_ns")
        if self.t0 is not None and not (isinstance(self.t0, str) and self.t0 == "mtime"):
            taken["t0"] = at_least(1 - MOST_NS, self.t0, "t0 ('mtime', or ns since 1970)")
        _check_texts(self.failed, "failed", FAILED)
        _check_texts(self.host_alias, "host_alias", ALIAS)
        if unknown := set(self.failed) - {*THREAD, "op"}:
            raise UsageError(f"failed takes labels of operations: {', '.join((*THREAD, 'op'))}, not {listed(sorted(unknown))}")
        for host, offset in one_of(Mapping, self.host_offset_ns, "host_offset_ns", OFFSET).items():
            one_of(str, host, "host_offset_ns", OFFSET)
            at_least(1 - MOST_NS, offset, f"host_offset_ns[{host!r}]")
        if self.fio_version is not None:
            version = one_of(tuple, self.fio_version, "fio_version", "(3, 33)")
            taken["fio_version"] = tuple(at_least(0, part, "each part of fio_version") for part in version)
        if self.description is not None:
            from ingest.read.described.description import Description, HistogramDescription

            one_of((Description, HistogramDescription), self.description, "description", "description_of('events.yml')")
        for name, value in taken.items():
            object.__setattr__(self, name, value)  # as a frozen dataclass sets its own

    @property
    def told(self) -> Mapping[str, str]:
        """Return what the user said of how requests were sent, as options of a context."""
        words = {
            EXPECTED: str(self.expected_interval_ns or ""),
            RATE: self.rate,
            INTENDED: self.intended_column,
            TSC_HZ: str(self.tsc_hz or ""),
            FAILED_LABELS: "\n".join(
                f"{label}={glob}" for label, globs in self.failed.items() for glob in globs.split(ALTERNATIVE)
            ),
        }
        return {name: value for name, value in words.items() if value}

    def upto(self, path: Path) -> int | None:
        """Return up to where a log of single operations is read: None for all of it, 0 of one that has gone meanwhile."""
        if not self.growing or not is_plain(path):
            return None
        try:
            return last_line_end(path)
        except (InputError, OSError):
            return 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Place(Value):
    """Where files of one folder belong: the archive, the run within it, the host, the settings of the run.

    `archive` is the folder that runs are named after; `run` the path of the run below it, empty where the archive is one run.
    `unread` is why nothing in the folder is read, empty where files are. `clients` are the hosts that the settings of the archive
    name as those that made the load, and `together` the folder that holds what all of them wrote.
    """

    archive: Path
    run: str = ""
    host: str = ""
    volume: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    unread: str = ""
    clients: tuple[str, ...] = ()
    together: Path | None = None


class Around:
    """What is known of a file beside its content, for the `locate` of its format.

    `run` and `host` are those of its place. `documents` are fio's own summaries, for its logs. Facts that a context was made of
    are kept in `evidence`. `named_host` is the host that the file or its place names, whatever the user said.
    """

    def __init__(self, options: ReadOptions, documents: Documents, run: str, place: Place) -> None:
        self.options, self.documents, self.run, self.place = options, documents, run, place
        self.evidence: list[Evidence] = []
        self.named_host = place.host

    def why(self, fact: str, value: str, origin: str) -> None:
        """Keep what a fact rests on."""
        if value:
            self.evidence.append(Evidence(fact, value, origin))

    def context(self, path: Path, *, host: str = "", origin: str = "file name", **labels: str) -> Context:
        """Return the context of a file. `host` and labels are what the file itself says, by `origin`.

        The host is what the user said, else what the file says, else that of its place.
        """
        options = self.options
        self.named_host = host or self.place.host
        ways = ((options.host, "--host"), (host, origin), (self.place.host, ""))
        host_name, origin_of_host = next(((name, why) for name, why in ways if name), ("", ""))
        if origin_of_host:
            self.why("host", host_name, origin_of_host)
        alias = options.host_alias.get(host_name, host_name)
        if alias != host_name:
            self.why("host", alias, "--host-alias")
        own_volume = labels.pop("volume", "")
        volume = own_volume or self.place.volume
        self.why("volume", volume, origin if own_volume else "names of folders")
        for fact, value in labels.items():
            if fact in ("job", "process"):
                self.why(fact, value, origin)
        return Context(
            series=Series(run=self.run, host=alias, volume=volume).replaced(**labels),
            offset_ns=options.host_offset_ns.get(alias, 0),
            version=options.fio_version,
            recorded_unit_ns=options.recorded_unit_ns,
            host_alias=options.host_alias,
            digits=options.digits,
            description=options.description,
            options=options.told,
            layer=options.layer,
            upto=options.upto(path),
            account=Account(path=str(path)),
        )

    def zero(self, path: Path, own: TimeZero, last_ns: Callable[[], int], *, absolute: bool = False) -> TimeZero:
        """Return the time zero of a file: its own, unless its stamps are relative and the user said another.

        `last_ns` gives its newest stamp in ns, for `--t0 mtime`. `absolute` stamps are real times: nothing moves them.
        """
        asked = self.options.t0
        if absolute or asked is None:
            zero = own
        elif isinstance(asked, int):
            zero = TimeZero(asked, "--t0")
        else:
            zero = TimeZero(changed_ns(path) - last_ns(), "file time (--t0 mtime)")
        self.why("start", str(zero.epoch_ns) if zero.epoch_ns is not None else "unknown", zero.origin)
        return zero


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Source(Value):
    """A file that will be read: its format, its context, and the median width of its first rows (0 if unknown).

    `evidence` says what each of its labels and its time zero rest on.
    """

    path: Path
    format: str
    context: Context
    width_ns: int = 0
    layout: str = ""
    evidence: tuple[Evidence, ...] = ()

    @property
    def identity(self) -> str:
        """Return the identity of the source, whatever its path: its labels and format."""
        kind = f":{self.context.series.kind}" if self.format in (RAW, AVERAGED) else ""  # one job has raw logs of several kinds
        return f"{self.format}{kind}|{self._labels}"

    @property
    def _labels(self) -> str:
        """Return the labels of a source, with the layer that it was timed at where that is not the client."""
        context, series = self.context, self.context.series
        said = context.layer or layer_of(context.description.kind if context.description else "")
        below = "" if said == CLIENT else f" at the {said}"
        return f"{series.host}|{series.volume}|{series.job}|{series.process}{below}"

    @property
    def twins(self) -> tuple[str, ...]:
        """Return the identities of sources that would hold the same I/Os: the other log of a histogram and a raw log."""
        if self.format == RAW and self.context.series.kind == COMPLETION:
            return (f"{HIST}|{self._labels}",)
        return (f"{RAW}:{COMPLETION}|{self._labels}",) if self.format == HIST else ()


class Skipped(NamedTuple):
    """A file that is not read: `action` is skipped, refused, shadowed, or context where its facts are used."""

    path: Path
    action: str
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Found(Value):
    """All sources and all other files under the given paths; `labels` holds the settings of each run.

    `caveats` are what the numbers lack or guess as a whole, `missing` the samples that no source can hold, because their file is
    refused or was never written; those of one source are in its account. `stated` is what tools count of jobs that no log was
    found of. `kinds` are the kinds of latency that files of fio have of their jobs.
    """

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    labels: Mapping[str, Mapping[str, str]]
    caveats: tuple[Caveat, ...] = ()
    missing: tuple[Missing, ...] = ()
    stated: tuple[Stated, ...] = ()
    kinds: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)

    def kinds_held(self) -> Iterator[tuple[Source, KindsRecorded]]:
        """Yield the sources of fio's latencies, each with the kinds that it has of its job."""
        for source in self.sources:
            context, series = source.context, source.context.series
            if source.path in self.kinds:
                name = series.called or source.path.name
                zero, runtime = context.zero.epoch_ns, context.runtime_ns
                begin = None if zero is None or not runtime else zero + context.offset_ns
                end = None if begin is None else begin + runtime
                yield source, KindsRecorded(labels_of(series, unknown=("kind",)), self.kinds[source.path], name, begin, end)

    def lacking(self) -> tuple[Missing, ...]:
        """Return what no source can hold, and what jobs lack of the kinds of others."""
        without_log: list[Missing] = []
        if self.stated:
            from ingest.core.stated import Counted, disagreements  # most calls find the logs of all jobs

            without_log = list(disagreements([Counted({}, self.stated)]))
        if len(set(self.kinds.values())) > 1:  # else all jobs have the same
            without_log += without_kind(held for _, held in self.kinds_held())
        return (*self.missing, *without_log, *self._at_same_times())

    def _at_same_times(self) -> Iterator[Missing]:
        """Yield what files of polls of one run hold at the same times."""
        by_run: dict[str, list[Source]] = {}
        for source in self.sources:
            if SPANS in source.context.options:
                by_run.setdefault(source.context.series.run, []).append(source)
        if any(len(of_run) > 1 for of_run in by_run.values()):
            from ingest.core.stated import at_same_times  # most calls meet no polls
            from ingest.read.polled_series import told_to_others

            for run, of_run in by_run.items():
                yield from at_same_times(run, (told_to_others(source.path, source.context) for source in of_run))

    def of_all(self) -> tuple[Caveat, ...]:
        """Return what the numbers lack or guess as a whole, and what no source can hold, without the refused files, each once."""
        refused = {str(entry.path) for entry in self.skipped if entry.action == REFUSED}
        beyond = (entry.caveat for entry in self.lacking() if entry.caveat.subject not in refused)
        return tuple(dict.fromkeys((*self.caveats, *beyond)))

    def refusals(self) -> list[str]:
        """Return a sentence for each reason why files were refused, with the first of them."""
        by_reason: dict[str, list[str]] = {}
        for entry in self.skipped:
            if entry.action == REFUSED:
                by_reason.setdefault(entry.reason, []).append(str(entry.path))
        return [f"refused {listed(paths)}: {reason}" for reason, paths in by_reason.items()]
