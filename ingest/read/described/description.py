"""Files of any tool, described by a few lines of YAML (`--input-format FILE.yml`): operations and histograms.

Files of any tool, described by a few lines of YAML: `--input-format events.yml`.

    time: done_ms                       # column of the completion; or start: and end:, or start: and latency:
    latency: took
    unit: {time: ms, latency: us}       # or one for all; by default the ending of a column's name (_ns, _us, _ms, _s)
    labels: {op: type, host: node}      # labels of the series and their columns; "=read" is the text itself
    weight: count                       # how many operations a line stands for
    failed: {success: false}            # which operations failed: any of these columns is so
    where: {metric: http_req_duration}  # lines to take: all of these columns are so

Columns are named as in the file's first line, or by number from 1. In JSON, an object a line or one document, `a.b` is a key in
an object, and of `a.*` or `a.*.b` each entry of an array is an operation. `unit: {time: iso}` is for ISO 8601, `{time: epoch}`
for a time since 1970 in s, ms, us or ns, as its digits say, `{latency: text}` for durations with their unit (1.5ms, 1m2s).
What a column is like is a glob, several of them, or `"!2*"` for all that are unlike it; large and small letters are the same.
Further lines: `kind` (service), `delimiter` (a comma; `whitespace` for any run of blanks and tabs), `blanks` (with it: the
column whose text may hold blanks), `header: false` for a first line that is data already, `quotes: false` where a quotation
mark is part of a text.

Histograms of any tool, described by a few lines of YAML: `--input-format redis.yml`.

    histogram: ndjson                # csv (a line is a bin), ndjson, json, python (literals), text (a line is a bin)
    each: r.{op}.histogram_usec      # where one is, or a list; {op} is any key and becomes the label, * any key or entry
    bins: map                        # list of objects, map of edge -> count, or arrays of edges and counts
    upper: le                        # also lower, value (with edges:): keys or columns of edges
    edge: le                         # "[)", "(]", "[]" (whole units, both in the bin), or le: counts of all up to this edge
    edges: {first: 1031, times: 2, add: 1, bins: 21, unit: ns}    # or a list, where empty bins are left out or labels rounded
    count: calls                     # key or column
    samples: calls                 # how many there are by the tool itself, held against the bins: a key; in text a pattern
    unit: us                         # or {from: key, usecs: us, msecs: ms}
    over_time: total                 # since a start, or interval; or {from: key, ...}
    every: 1s                        # how long an interval is, where only its end or start is known; {from: key, unit: ms}
    time: {at: t, unit: s}           # unit: s, ms, us, ns, iso, or a pattern with zone: "+01:00"; is: start; start: a key
    labels: {host: host, op: =get}   # labels and their keys or columns; "=get" is the text itself; layer: =device
    where: {type: hist}              # records to take

`time` may be two columns (`at: [sec, usec]`, `unit: [s, us]`), of the newest record before (`record: {type: printf}`), or that of
the file (`at: file`; in text `length:` is a pattern of the duration in s). Keys with dots lead into objects, `../key` out;
a key that a record does not have is looked for in what holds it. `delimiter` and `header` are as for single operations; `bin` is
the pattern of a line of text, with the groups that `value`, `upper`, `lower` and `count` name; elsewhere it is that of an edge
in a text, with one group. `kind` is service by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, localcontext
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ingest.core.errors import UsageError
from ingest.core.labels import CLIENT, LABELS, LAYER, LAYERS, in_layer
from ingest.core.units import UNITS_NS, parse_duration
from ingest.read.described.table import WHITESPACE
from ingest.read.discovery import check_is_there

TIMES = ("time", "start", "end", "latency")
CONDITIONS = ("failed", "where")
ABOUT = ("title", "head", "known_by", "holds")  # of a description that files are recognised for: see `formats.Format`
OPERATION_KEYS = (*TIMES, "unit", "labels", "weight", *CONDITIONS, "kind", "delimiter", "blanks", "header", "quotes", *ABOUT)
OPERATION_UNITS = ("ns", "us", "ms", "s")
ISO, TEXT_UNIT, EPOCH_UNIT = "iso", "text", "epoch"
BY_DIGITS = -2  # times since 1970 or ISO 8601, as the first of the file is written
LARGEST = 1 << 16
DESCRIBABLE = tuple(name for name in LABELS if name not in ("run", "kind"))
ENDINGS = (".yml", ".yaml")


Globs = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one file: all names in order, and by role the column and its unit in ns (0: ISO 8601, -1: text as 1.5ms).

    There are no names where lines are JSON objects; `start` is the beginning of such a file. `labels` hold the columns of
    conditions, too, by their own names. `blanks` is the place of the column whose text may hold blanks, in tables that blanks
    part.
    """

    names: tuple[str, ...]
    skipped: int
    roles: Mapping[str, str]
    units: Mapping[str, int]
    labels: Mapping[str, str]
    sample: Mapping[str, str]
    blanks: int | None = None
    start: bytes = b""


@dataclass(frozen=True, slots=True)
class Description:
    """Which columns of a file hold what. `units` are ns by role, 0 for ISO 8601 text; without one the name's ending decides.

    `columns` name the column of each role (time or end, start, latency, weight); `labels` that of each label, `fixed` its text.
    `failed` and `where` hold globs by column: which operations failed, and which lines are taken.
    """

    path: str
    columns: Mapping[str, str]
    units: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    kind: str = "service"
    delimiter: str = ","
    header: bool = True
    blanks: str = ""
    quotes: bool = True
    failed: Mapping[str, Globs] = field(default_factory=dict)
    where: Mapping[str, Globs] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return all that numbers depend on, as text that is the same for the same description."""
        parts = (self.columns, self.units, self.labels, self.fixed)
        pairs = [sorted(part.items()) for part in parts]
        told = (self.failed, self.where) if self.failed or self.where else ()
        more = (self.blanks, *told) if self.blanks or told else ()
        return repr((*pairs, self.kind, self.delimiter, self.header, *more, *(() if self.quotes else ("no quotes",))))


def yaml_in(path: Path) -> Any:
    """Return what the YAML of a file says; UsageError where it is none."""
    import yaml

    check_is_there(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--input-format {path}: cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST:
        raise UsageError(f"--input-format {path}: more than 64 KiB are no description of columns")
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).split("\n", 1)[0]
        raise UsageError(f"--input-format {path}: not YAML ({first})") from None


def column_description(path: str, entries: Any) -> Description:
    """Return the description of columns in YAML that was read; ValueError names its fault."""
    check(isinstance(entries, dict), "expected lines such as `time: done_ms` and `latency: took_us`")
    _known(entries, OPERATION_KEYS, "")
    columns = {name: column_name(name, entries[name]) for name in (*TIMES, "weight") if name in entries}
    times = columns.keys() & set(TIMES)  # start and end have to follow from them, in one way only
    check(not {"time", "end"} <= times, "time and end are the same: the completion; give one of them")
    check(len(times) < 3, "start, end and latency: give two of them")
    check(len(times) == 2, "give the columns of two of these: time (or end), start, latency")
    if "time" in columns:
        columns["end"] = columns.pop("time")
    labels, fixed = labels_in(entries.get("labels", {}))
    delimiter = entries.get("delimiter", ",")
    check(
        delimiter == WHITESPACE or (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\n\r\\'),
        "delimiter is one character, such as ; or \\t in double quotes, or the word whitespace",
    )
    blanks = column_name("blanks", entries["blanks"]) if "blanks" in entries else ""
    check(not blanks or delimiter == WHITESPACE, "blanks is for tables: it needs delimiter: whitespace")
    header, kind = entries.get("header", True), kind_in(entries, entries.get("labels", {}))
    quotes = entries.get("quotes", True)
    check(isinstance(header, bool), "header is true or false")
    check(isinstance(quotes, bool), "quotes is true or false")
    units = _units(entries.get("unit"), columns)
    told = (_conditions(name, entries.get(name, {})) for name in CONDITIONS)
    return Description(path, columns, units, labels, fixed, kind, delimiter, header, blanks, quotes, *told)


def _conditions(name: str, pairs: Any) -> dict[str, Globs]:
    """Return the globs of each column that `failed` or `where` names."""
    check(isinstance(pairs, dict), f"{name} takes pairs of columns and what they are like, such as {{success: false}}")
    several = {column: globs if isinstance(globs, list) else [globs] for column, globs in pairs.items()}
    return {column_name(name, column): tuple(str(glob).lower() for glob in globs) for column, globs in several.items()}


def is_like(text: str, globs: Globs) -> bool:
    """Return whether the text of a column is like one of some globs, which are in small letters; `!glob` is what is unlike it."""
    return any(fnmatchcase(text.lower(), glob.removeprefix("!")) != glob.startswith("!") for glob in globs)


def check(good: bool, wrong: str) -> None:  # noqa: FBT001
    """Raise ValueError with the sentence `wrong` unless `good`."""
    if not good:
        raise ValueError(wrong)


def column_name(role: str, value: Any) -> str:
    """Return the name or number of a column or key; ValueError where it is none."""
    named = isinstance(value, (str, int)) and not isinstance(value, bool) and bool(str(value).strip())
    check(named and str(value).split(".").count("*") < 2, f"{role} takes the name or number of a column, or a key with one *")
    return str(value).strip()


def _units(setting: Any, columns: Mapping[str, str]) -> dict[str, int]:
    """Return the unit of each role in ns, 0 for ISO 8601; roles without one are left out."""
    if setting is None:
        return {}
    check(isinstance(setting, (str, dict)), "unit is one of ns, us, ms, s, or one for each of time, start, end and latency")
    timed = [role for role in columns if role != "weight"]
    by_role = setting if isinstance(setting, dict) else dict.fromkeys(timed, setting)
    units = {}
    for role, unit in by_role.items():
        name = "end" if role == "time" else role
        check(name in timed, f"unit of {role}: there is no such line")
        iso = name != "latency" and isinstance(setting, dict) and unit == ISO
        text = name == "latency" and unit == TEXT_UNIT
        epoch = name != "latency" and unit == EPOCH_UNIT
        known = iso or text or epoch or unit in OPERATION_UNITS
        check(known, f"unit {unit!r}: there are ns, us, ms, s, iso and epoch for times, text for 1.5ms")
        units[name] = 0 if iso else -1 if text else BY_DIGITS if epoch else UNITS_NS[unit]
    return units


def kind_in(entries: Mapping[str, Any], pairs: Any) -> str:
    """Return the kind that the lines `kind` and `labels` give: `labels: {layer: =device}` says where all of it was timed."""
    kind = entries.get("kind", "service")
    check(isinstance(kind, str) and bool(kind.strip()), "kind is a word such as service or response")
    layer = str(pairs.get(LAYER, f"={CLIENT}")) if isinstance(pairs, dict) else f"={CLIENT}"
    check(layer[:1] == "=" and layer[1:] in LAYERS, f"label layer takes ={', ='.join(LAYERS)}")
    return in_layer(kind.strip().lower(), layer[1:])


def labels_in(pairs: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns of labels, and those labels whose text is given; the layer is in the kind."""
    check(isinstance(pairs, dict), "labels takes pairs such as {op: type, host: node}")
    columns, fixed = {}, {}
    for name, value in pairs.items():
        if name == LAYER:
            continue
        check(name in DESCRIBABLE, f"no label {name!r}: there are {', '.join((*DESCRIBABLE, LAYER))}")
        text = column_name(f"label {name}", value)
        if text.startswith("="):
            fixed[name] = text[1:]
        else:
            columns[name] = text
    return columns, fixed


SHAPES = CSV, NDJSON, JSON, PYTHON, TEXT = ("csv", "ndjson", "json", "python", "text")
BINS = LIST, MAP, ARRAYS = ("list", "map", "arrays")
EDGES = HALF_OPEN, TO_THE_END, WHOLE_UNITS, UP_TO = ("[)", "(]", "[]", "le")
ARE = UPPER, LOWER, MIDDLES = ("upper", "lower", "middles")
INTERVAL, TOTAL = "interval", "total"
FILE = "file"
UNITS = {"ps": Fraction(1, 1000), **{name: Fraction(UNITS_NS[name]) for name in ("ns", "us", "ms", "s")}}
KEYS = (
    *("histogram", "each", "bins", "bin", "lower", "upper", "value", "edge", "edges", "count", "unit", "over_time", "every"),
    *("time", "labels", "where", "kind", "delimiter", "header", "samples", *ABOUT),
)
TIME_KEYS = ("at", "unit", "zone", "is", "start", "record", "length")
RULE_KEYS = ("first", "times", "add", "bins", "unit", "are", "open", "list", "shown")  # shown: for people, see `names`
MOST_BINS = 1499
DIGITS = 50


@dataclass(frozen=True, slots=True)
class Chosen:
    """A word that is given, or read from a key and translated by a table."""

    word: str = ""
    key: str = ""
    table: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Times:
    """Where the time of a histogram is: keys of `at` and their units, of a start, and how patterns are read."""

    at: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    zone: str = ""
    is_start: bool = False
    start: str = ""
    record: Mapping[str, str] = field(default_factory=dict)
    length: str = ""

    @property
    def of_file(self) -> bool:
        """Return whether the file itself says the time."""
        return not self.at or self.at == (FILE,)


@dataclass(frozen=True, slots=True)
class HistogramDescription:
    """How histograms stand in a file; see the lines above. `rule` are the ends of all bins in ns, `are` what values name."""

    path: str
    shape: str
    count: str
    each: str = ""
    bins: str = LIST
    bin: str = ""
    lower: str = ""
    upper: str = ""
    value: str = ""
    edge: str = HALF_OPEN
    rule: tuple[int, ...] = ()
    names: tuple[int, ...] = ()
    is_open: bool = False
    unit: Chosen = field(default_factory=Chosen)
    over_time: Chosen = field(default_factory=Chosen)
    every_ns: int | tuple[str, Fraction] = 0
    time: Times = field(default_factory=Times)
    labels: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    kind: str = "service"
    delimiter: str = ","
    header: bool = True
    samples: str = ""

    @property
    def text(self) -> str:
        """Return all that numbers depend on, as text that is the same for the same description.

        Stores keep a digest of it: the names of `Chosen` and of its fields are a part of that.
        """
        return "histogram " + repr([getattr(self, name) for name in self.__slots__ if name not in ("path", "samples")])


def histogram_description(path: str, entries: Any) -> HistogramDescription:
    """Return the description in YAML that was read; ValueError names its fault."""
    _known(entries, KEYS, "")
    shape = _one_of("histogram", entries.get("histogram"), SHAPES)
    told: dict[str, Any] = {
        name: column_name(name, entries[name]) for name in ("lower", "upper", "value", "samples") if name in entries
    }
    if "each" in entries:
        each = entries["each"] if isinstance(entries["each"], list) else [entries["each"]]
        check(len(each) == 1 or "samples" not in entries, "samples is for histograms at one place")
        told["each"] = "\n".join(column_name("each", place) for place in each)
    edges = told.keys() & {"lower", "upper", "value"}
    bins = told["bins"] = _one_of("bins", entries.get("bins", LIST), BINS)
    edge = told["edge"] = _one_of("edge", entries.get("edge", HALF_OPEN), EDGES)
    check("count" in entries or bins == MAP, "count is missing: the key or column of the counts")
    check(bins == MAP or bool(edges), "lower, upper or value is missing: the edges of bins")
    if "edges" in entries:
        told["rule"], told["names"], told["is_open"] = _rule(entries["edges"], edge, entries.get("unit"))
    check("value" not in told or "rule" in told, "value needs edges: the list or rule of all bins")
    pattern = told["bin"] = entries.get("bin", "")
    check(shape != TEXT or bool(pattern), "bin is missing: the pattern of a line that is a bin")
    check(not pattern or _is_pattern(pattern), f"bin is no regular expression: {pattern!r}")
    check(shape == TEXT or not pattern or re.compile(pattern).groups == 1, "bin has one group: the edge in a text")
    check(shape != CSV or "samples" not in told, "samples is a key of documents, or a pattern of a line of text")
    check(shape != TEXT or _is_pattern(told.get("samples", "")), "samples is the pattern of a number of samples, in text")
    check("unit" in entries, "unit is missing: ps, ns, us, ms or s")
    told["labels"], told["fixed"] = labels_in(entries.get("labels", {}))
    delimiter, header = told["delimiter"], told["header"] = entries.get("delimiter", ","), entries.get("header", True)
    one = delimiter == WHITESPACE or (isinstance(delimiter, str) and len(delimiter) == 1)
    check(one, "delimiter is one character, or whitespace")
    check(isinstance(header, bool), "header is true or false")
    told["every_ns"] = _every(entries.get("every", ""))
    return HistogramDescription(
        path,
        shape,
        count=column_name("count", entries.get("count", UP_TO)),
        unit=_chosen("unit", entries["unit"], tuple(UNITS)),
        over_time=_chosen("over_time", entries.get("over_time", INTERVAL), (INTERVAL, TOTAL)),
        time=_times(entries.get("time", {}), shape),
        where=_pairs("where", entries.get("where", {})),
        kind=kind_in(entries, entries.get("labels", {})),
        **told,
    )


def _every(every: Any) -> int | tuple[str, Fraction]:
    """Return how long an interval is in ns, or the key that says it and its unit."""
    if isinstance(every, dict):
        _known(every, ("from", "unit"), " in every")
        return column_name("every from", every.get("from")), UNITS[_one_of("every unit", every.get("unit"), tuple(UNITS))]
    try:
        return parse_duration(str(every)) if every else 0
    except UsageError as error:
        raise ValueError(f"every: {error}") from None


def _known(entries: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    unknown = [str(name) for name in entries if name not in keys]
    if unknown:
        raise ValueError(f"no line {unknown[0]!r}{where}: there are {', '.join(keys)}")


def _one_of(name: str, value: Any, words: tuple[str, ...]) -> str:
    check(value in words, f"{name} is one of {', '.join(words)}, not {value!r}")
    return str(value)


def _is_pattern(text: Any) -> bool:
    try:
        re.compile(text)
    except (re.error, TypeError, RecursionError, OverflowError):
        return False
    return True


def _pairs(name: str, pairs: Any) -> dict[str, str]:
    check(isinstance(pairs, dict), f"{name} takes pairs of keys and values")
    return {str(key): (str(value).lower() if isinstance(value, bool) else str(value)) for key, value in pairs.items()}


def _chosen(name: str, value: Any, words: tuple[str, ...]) -> Chosen:
    if not isinstance(value, dict):
        return Chosen(_one_of(name, value, words))
    table = _pairs(name, value)
    key = table.pop("from", "")
    check(bool(key), f"{name} takes one of {', '.join(words)}, or from: and what its values mean")
    for word in table.values():
        _one_of(name, word, words)
    return Chosen(key=key, table=table)


def _times(entries: Any, shape: str) -> Times:
    check(isinstance(entries, dict), "time takes pairs such as {at: t, unit: s}")
    _known(entries, TIME_KEYS, " in time")
    said, units = entries.get("at", FILE), entries.get("unit", "iso")
    at = tuple(column_name("time at", key) for key in (said if isinstance(said, list) else [said]))
    units = tuple(str(unit) for unit in (units if isinstance(units, list) else [units] * len(at)))
    check(len(units) == len(at), "time: as many units as columns")
    for unit in units:
        check(unit in UNITS or unit == "iso" or "%" in unit, f"time unit {unit!r}: there are s, ms, us, ns, iso, or a pattern")
    check(len(at) == 1 or all(unit in UNITS for unit in units), "time of two columns: both are numbers")
    zone = str(entries.get("zone", ""))
    check(not zone or re.fullmatch(r"[-+]\d\d:\d\d|Z", zone) is not None, 'zone is such as "+01:00"')
    length = entries.get("length", "")
    check(not length or (shape == TEXT and _is_pattern(length)), "length is the pattern of a duration in s, in text")
    ends = _one_of("time is", entries.get("is", "end"), ("end", "start"))
    start = column_name("time start", entries["start"]) if "start" in entries else ""
    return Times(at, units, zone, ends == "start", start, _pairs("record", entries.get("record", {})), str(length))


def _rule(entries: Any, edge: str, unit: Any) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Return the last whole ns of each bin, the ns that names it in the file, and whether there is an open bin above."""
    rule = {"list": entries} if isinstance(entries, list) else entries
    check(isinstance(rule, dict), "edges takes a list, or first, times or add, bins")
    _known(rule, RULE_KEYS, " in edges")
    said = rule.get("unit", unit if isinstance(unit, str) else None)
    scale = UNITS[_one_of("edges unit", said, tuple(UNITS))]
    are = _one_of("edges are", rule.get("are", UPPER), ARE)
    named = [_exact(value) * scale for value in rule["list"]] if "list" in rule else _grown(rule, scale)
    check(2 <= len(named) <= MOST_BINS, f"edges are 2 to {MOST_BINS}")
    check(all(a < b for a, b in pairwise(named)) and named[0] >= 0, "edges rise from 0 on")
    bounds, is_open = named, bool(rule.get("open", are == LOWER))
    if are == MIDDLES:  # in the middle of two on a logarithmic scale
        check(named[0] > 0, "middles lie above 0")
        ratios = [Fraction((float(b) / float(a)) ** 0.5) for a, b in pairwise(named)]
        bounds = [middle * ratio for middle, ratio in zip(named, [*ratios, ratios[-1]], strict=True)]
    elif are == LOWER:
        bounds = named[1:]
    ends = tuple(last_of(bound, edge, scale) for bound in bounds)
    check(all(a < b for a, b in pairwise(ends)) and ends[0] >= 0, "edges lie at least 1 ns apart")
    return ends, tuple(int(value) for value in named), is_open


def _grown(rule: Mapping[str, Any], scale: Fraction) -> list[Fraction]:
    number = rule.get("bins")
    check(isinstance(number, int) and 2 <= number <= MOST_BINS, f"edges: bins is a number from 2 to {MOST_BINS}")
    first, times, add = (_exact(rule.get(name, default)) for name, default in (("first", 0), ("times", 1), ("add", 0)))
    values = []
    with localcontext() as context:
        context.prec = DIGITS
        value, factor, more = (Decimal(part.numerator) / part.denominator for part in (first, times, add))
        for _ in range(int(number or 0)):
            values.append(Fraction(value) * scale)
            check(values[-1] < 2**62, "edges reach past 2^62 ns")
            value = value * factor + more
    return values


def _exact(value: Any) -> Fraction:
    try:
        if isinstance(value, bool):
            raise InvalidOperation
        number = Decimal(str(value))
        if abs(number) > 10**20 or (number and abs(number) < Decimal("1e-20")):
            raise InvalidOperation
        return Fraction(number)
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError(f"edges: {value!r} is no number") from None


def last_of(bound: Fraction, edge: str, unit: Fraction) -> int:
    """Return the last whole ns of a bin that ends at a bound in ns: with it, before it, or with the whole unit that it names."""
    if edge == HALF_OPEN:
        return -(-bound.numerator // bound.denominator) - 1
    if edge == WHOLE_UNITS:
        return int((bound + unit) // 1) - 1
    return int(bound // 1)


# What describes a file that no reader knows: a YAML file of the user, or one that comes with tailboard (`presets`), by name.


PRESETS = Path(__file__).parent / "presets"


@cache
def presets() -> tuple[str, ...]:
    """Return the names of the descriptions that come with tailboard."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yml")))


def is_described(text: str) -> bool:
    """Return whether the value of --input-format is a file that describes a format, or the name of a preset."""
    return text.endswith(ENDINGS) or text in presets()


def description_of(text: str) -> Description | HistogramDescription:
    """Return the description in a file, or of a preset; UsageError names its fault."""
    path = PRESETS / f"{text}.yml" if text in presets() else Path(text)
    entries = yaml_in(path)
    try:
        if isinstance(entries, dict) and "histogram" in entries:
            return histogram_description(str(path), entries)
        return column_description(str(path), entries)
    except ValueError as error:
        raise UsageError(f"--input-format {path}: {error}") from None
