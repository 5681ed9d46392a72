"""Which file each format is known by, and the module that reads it.

A `Format` holds the name for `--input-format`, what people call it, the module, and a cheap test of a file's name and its first
bytes; the module is imported when a file passes the test. Everything else of a format stands in its module, as one value
`READER`. Recognition, `--input-format`, refusals, standard input, compressed files, `watch` and the list in
docs/reference/formats.md follow from it.

Only fio, HdrHistogram logs and described files are written down here. All others are entry points of the group
`tailboard.formats`: ours (`ingest/read/plugins/__init__.py`, registered in pyproject.toml) as those of any other distribution.
They are read when a file is none of the core.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.read.context import Context
from ingest.read.format_names import AVERAGED, DESCRIBED, DESCRIBED_HISTOGRAMS, HDR, HIST, JSON, PLAIN_JSON, RAW
from ingest.read.sources import Around, Source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ingest.core.events import Events


WHOLE, AGAIN, PIECES = "whole", "again", "pieces"
ROW_LABELS = ("op", "kind", "job", "tag")
STDIN = "stdin"
SMALL = 1 << 22  # a file of at most so many bytes is read with others of its kind where its reader can ...
SHARES = 4  # ... in at least so many shares for each process
FIRST_LINES, BEGINNING, WHOLE_HEAD = 1 << 11, 1 << 13, 1 << 16


class Reader(NamedTuple):
    """How a format is read; each of its modules has one, called READER.

    `locate` returns the source that a file is, with its labels and time zero, or raises InputError with the reason why it is
    refused. `rows` yields its histograms, or `events` its single operations: a format has one of the two. `accepts` decides
    where the test in the table is only a first look. `row_labels` are those that only its rows hold. `grows` says how `watch`
    reads a file that is still written: in PIECES, AGAIN from its beginning, or once it is WHOLE. `folder_is_host` is false for
    files whose folder never stands for a host. `arrow` is set where pyarrow is needed. `many` yields the histograms of many small
    files in one pass, and the numbers of those that are left to `rows`.

    A rejected line of single operations is a sample that the answer lacks, unless its reason is one of `harmless`: of lines that
    hold no operation which completed in the file. Readers of `rows` say themselves what they lack (`missing.RejectedLines`).
    `timed` formats measure service and response times, so that two of them under the same labels hold the same operations twice;
    it is false where a file is told by more than its labels. `by_second` says that `rows` are single operations which the reader
    adds up by the second.
    """

    locate: Callable[[Path, Around], Source]
    rows: Callable[[Path, Context], Iterator[Intervals[Series]]] | None = None
    events: Callable[[Path, Context], Iterator[Events]] | None = None
    accepts: Callable[[Path, bytes], bool] | None = None
    row_labels: tuple[str, ...] = ROW_LABELS
    grows: str = WHOLE
    folder_is_host: Callable[[Path], bool] | None = None
    arrow: bool = False
    harmless: frozenset[str] = frozenset()
    timed: bool = True
    many: Callable[[Sequence[tuple[Path, Context]], list[int]], Iterator[Intervals[Series]]] | None = None
    by_second: bool = False


class Format(NamedTuple):
    """One line of the table. `names` and `head` are patterns of a file's name and of its first 64 KiB; either is enough.

    `module` is MODULE:NAME of a `Reader`. With `named_only` the first bytes
    count only for a file that the user named, not for one that a folder holds: rows of four numbers may be anything. Only the
    first `reach` bytes are searched: a folder may hold thousands of files of no format. `known_by` and `holds` say it in words,
    for docs/reference/formats.md. The first bytes of a format that is `last` fit files of others, too: all others are asked
    first. `description` is the path of the YAML that a file is read by.
    """

    name: str
    title: str
    module: str
    names: str = ""
    head: bytes = b""
    named_only: bool = False
    reach: int = BEGINNING
    known_by: str = ""
    holds: str = ""
    last: bool = False
    description: str = ""

    def by_name(self, name: str) -> bool:
        """Return whether a file's name, with its folder's and without a compression ending, is one of this format."""
        return bool(self.names) and re.search(self.names, name) is not None

    def by_head(self, path: Path, start: bytes, *, named: bool) -> bool:
        """Return whether the first bytes of a file are those of this format; `named` files were named by the user."""
        if not self.head or (self.named_only and not named) or re.search(self.head, start[: self.reach]) is None:
            return False
        accepts = None if self.description else reader_of(self.name).accepts
        return accepts is None or accepts(path, start)


BY_DESCRIPTION = (DESCRIBED, DESCRIBED_HISTOGRAMS)
INTEGER_ROW = rb"(?m)^[ \t]*\d{1,19}[ \t]*,[ \t]*-?\d{1,20}[ \t]*,"

CORE: list[Format] = [
    Format(
        HIST,
        "fio histogram log",
        "ingest.read.fio.reader:HISTOGRAMS",
        names=r"[^/]_clat_hist(\.\d+)?\.log(\..+)?$",
        head=rb"(?m)^\d{1,13}, ?[012], ?\d+(, ?\d+){19}",
        reach=FIRST_LINES,
        known_by="file name: `PREFIX_clat_hist[.N].log[.HOST]`; or rows of so many bins",
        holds="completion latencies per interval, job and direction",
    ),
    Format(
        RAW,
        "fio latency log",
        "ingest.read.fio.reader:LATENCIES",
        last=True,
        names=r"[^/]_(clat|lat|slat)(\.\d+)?\.log(\..+)?$",
        head=INTEGER_ROW,
        named_only=True,
        known_by="file name: `PREFIX_clat[.N].log[.HOST]`, also `lat`, `slat`; rows of integers in a file that is named itself",
        holds="single I/Os of a job",
    ),
    Format(
        JSON,
        "fio JSON",
        "ingest.read.fio.reader:SUMMARIES",
        head=rb'"fio version"',
        reach=WHOLE_HEAD,
        known_by='content: `"fio version"` (`--output-format=json+`); CBT\'s summary names',
        holds="the whole histogram of a run; with `--status-interval` one per interval",
    ),
    Format(
        AVERAGED,
        "fio latency log of means",
        "ingest.read.fio.reader:AVERAGES",
        known_by="as a fio latency log, with means in its rows (`log_avg_msec`)",
        holds="means over time, without percentiles",
    ),
    Format(
        PLAIN_JSON,
        "fio JSON without bins",
        "ingest.read.fio.reader:TOTALS",
        known_by="fio JSON without bins (`--output-format=json`)",
        holds="count, mean, minimum, maximum of a run, without percentiles",
    ),
    Format(
        HDR,
        "HdrHistogram log",
        "ingest.read.hdr.log:READER",
        head=rb"(?m)^#\[|StartTimestamp|HIST|DHIS",
        reach=FIRST_LINES,
        known_by="content: the format's comments or legend, or a line that ends in a histogram",
        holds="latencies per interval, op and kind",
    ),
    Format(
        DESCRIBED,
        "file described in YAML",
        "ingest.read.described.operations:READER",
        known_by="never by itself: `--input-format FILE.yml`",
        holds="single operations, as the `.yml` says",
    ),
    Format(
        DESCRIBED_HISTOGRAMS,
        "histograms described in YAML",
        "ingest.read.described.histograms:READER",
        known_by="never by itself: `--input-format FILE.yml`, or the name of a preset",
        holds="histograms, as the `.yml` says",
    ),
]


GROUP, DISTRIBUTION = "tailboard.formats", "tailboard"


@cache
def described() -> tuple[Format, ...]:
    """Return the formats that are descriptions which come with tailboard, and say by what a file is known."""
    from ingest.read.described.description import PRESETS, presets

    entries = (_described(name, PRESETS / f"{name}.yml") for name in presets())
    return tuple(entry for entry in entries if entry.head)


def _described(name: str, path: Path) -> Format:
    """Return the format that a description is; UsageError where it is none."""
    from ingest.read.described.description import description_of, yaml_in

    entries = yaml_in(path)
    description_of(str(path))
    module = f"ingest.read.described.{'histograms' if 'histogram' in entries else 'operations'}:READER"
    title, head, known_by, holds = (str(entries.get(key, "")) for key in ("title", "head", "known_by", "holds"))
    return Format(name, title or name, module, head=head.encode(), known_by=known_by, holds=holds, description=str(path))


@cache
def _registered() -> tuple[tuple[EntryPoint, ...], tuple[EntryPoint, ...]]:
    """Return the entry points of tailboard and those of other distributions, each in the order of their names.

    Those of a checkout stand in its pyproject.toml, whether it is installed or not, and whatever was when it was.
    """
    from importlib.metadata import EntryPoint, entry_points

    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    ours = [entry for entry in found if entry.dist is not None and entry.dist.name == DISTRIBUTION]
    others = [entry for entry in found if entry not in ours]
    if (beside := Path(__file__).parents[2] / "pyproject.toml").is_file():
        import tomllib

        project = tomllib.loads(beside.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            ours = [EntryPoint(name, value, GROUP) for name, value in sorted(project["entry-points"][GROUP].items())]
    return tuple(ours), tuple(others)


@cache
def ours() -> tuple[Format, ...]:
    """Return the formats that tailboard itself registers."""
    return _certain_first(map(_format, _registered()[0]))


@cache
def others() -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """Return the formats of other distributions, and a sentence for each that cannot be taken."""
    from ingest.read.described.description import presets

    taken = {line.name for line in (*CORE, *ours())} | set(presets())
    found: dict[str, Format] = {}
    wrong: list[str] = []
    for entry in _registered()[1]:
        try:
            one = _format(entry)
            if entry.name in found or entry.name in taken:
                raise ValueError("there is a format of this name")
            re.compile(one.head), re.compile(one.names)
            found[entry.name] = one
        except Exception as error:  # noqa: BLE001  # whatever the code of others raises, all other formats are read
            dist = entry.dist.name if entry.dist is not None else entry.value
            wrong.append(f"the format {entry.name} of {dist} cannot be used: {error}")
    return _certain_first(found.values()), tuple(wrong)


def _certain_first(some: Iterable[Format]) -> tuple[Format, ...]:
    """Return formats with those first whose pattern holds from the first byte: samples hold answers of any tool."""
    return tuple(sorted(some, key=lambda line: not line.head.startswith(rb"\A")))


def _format(entry: EntryPoint) -> Format:
    """Return the format that an entry point is: a `Format`, or the path of a description."""
    said = entry.load()
    return said._replace(name=entry.name) if isinstance(said, Format) else _described(entry.name, Path(said))


def all_formats() -> Iterator[Format]:
    """Yield all formats in the order in which they are asked whether a file is theirs; the later ones are loaded when asked."""
    yield from (line for line in CORE if not line.last)
    yield from (line for line in ours() if not line.last)
    yield from described()
    yield from others()[0]
    yield from (line for line in (*CORE, *ours()) if line.last)


@cache
def format_of(name: str) -> Format:
    """Return a format by its name; KeyError where there is none of that name."""
    for line in (line for some in (lambda: CORE, ours, described, lambda: others()[0]) for line in some()):
        if line.name == name:
            return line
    raise KeyError(name)


def names() -> list[str]:
    """Return the formats that `--input-format` takes by name, but for descriptions."""
    return [line.name for line in (*CORE, *ours(), *others()[0]) if line.name not in BY_DESCRIPTION]


def titles() -> str:
    """Return what the formats are called, for a sentence."""
    return ", ".join(line.title for line in (*CORE, *ours(), *described(), *others()[0]) if line.name not in BY_DESCRIPTION)


@cache
def reader_of(name: str) -> Reader:
    """Return the reader of a format; its module is imported when it is asked for first."""
    module, _, value = format_of(name).module.partition(":")
    reader: Reader = getattr(import_module(module), value)
    return reader


def is_timed(name: str) -> bool:
    """Return whether a format measures service and response times under its labels; not one that a later version has stored."""
    try:
        return reader_of(name).timed
    except KeyError:
        return False


def single_events(source: Source) -> bool:
    """Return whether a file holds single operations: their moments are known, so any step can be asked."""
    return reader_of(source.format).events is not None


def row_labels(source: Source) -> tuple[str, ...]:
    """Return the labels that only the rows of a file may show: whether they match is not known before it is read."""
    description, host = source.context.description, source.context.series.host
    named = tuple(name for name in reader_of(source.format).row_labels if name != "host" or not host)  # one that is known counts
    described = () if description is None else (*description.labels, *description.fixed)
    return (*named, *described)
