"""Histograms of any tool, described by a few lines of YAML: `--input-format redis.yml`.

    histogram: ndjson                # csv (a line is a bin), ndjson, json, python (literals), text (a line is a bin)
    each: r.{op}.histogram_usec      # where one histogram is; {op} is any key and becomes the label, * any key or entry
    bins: map                        # list of objects, map of edge -> count, or arrays of edges and counts
    upper: le                        # also lower, value (with edges:): keys or columns of edges
    edge: le                         # "[)", "(]", "[]" (whole units, both in the bin), or le: counts of all up to this edge
    edges: {first: 1031, times: 2, add: 1, bins: 21, unit: ns}    # or a list, where empty bins are left out or labels rounded
    count: calls                     # key or column
    unit: us                         # or {from: key, usecs: us, msecs: ms}
    over_time: total                 # since a start, or interval; or {from: key, ...}
    every: 1s                        # how long an interval is, where only its end is known
    time: {at: t, unit: s}           # unit: s, ms, us, ns, iso, or a pattern with zone: "+01:00"; is: start; start: a key
    labels: {host: host, op: =get}   # labels and their keys or columns; "=get" is the text itself; layer: =device
    where: {type: hist}              # records to take

`time` may be two columns (`at: [sec, usec]`, `unit: [s, us]`), of the newest record before (`record: {type: printf}`), or that of
the file (`at: file`; in text `length:` is a pattern of the duration in s). Keys with dots lead into objects, `../key` out;
a key that a record does not have is looked for in what holds it. `delimiter` and `header` are as for single operations; `bin` is
the pattern of a line of text, with the groups that `value`, `upper`, `lower` and `count` name; `kind` is service by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ingest.core.errors import UsageError
from ingest.core.timing import UNITS_NS, parse_duration
from ingest.read.delimited.blank_columns import WHITESPACE
from ingest.read.delimited.description import check, column_name, kind_in, labels_in

SHAPES = CSV, NDJSON, JSON, PYTHON, TEXT = ("csv", "ndjson", "json", "python", "text")
BINS = LIST, MAP, ARRAYS = ("list", "map", "arrays")
EDGES = HALF_OPEN, TO_THE_END, WHOLE_UNITS, UP_TO = ("[)", "(]", "[]", "le")
ARE = UPPER, LOWER, MIDDLES = ("upper", "lower", "middles")
INTERVAL, TOTAL = "interval", "total"
FILE = "file"
UNITS = {"ps": Fraction(1, 1000), **{name: Fraction(UNITS_NS[name]) for name in ("ns", "us", "ms", "s")}}
KEYS = (
    *("histogram", "each", "bins", "bin", "lower", "upper", "value", "edge", "edges", "count", "unit", "over_time", "every"),
    *("time", "labels", "where", "kind", "delimiter", "header"),
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
    every_ns: int = 0
    time: Times = field(default_factory=Times)
    labels: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    kind: str = "service"
    delimiter: str = ","
    header: bool = True

    @property
    def text(self) -> str:
        """Return all that numbers depend on, as text that is the same for the same description."""
        return "histogram " + repr([getattr(self, name) for name in self.__slots__ if name != "path"])


def histogram_description(path: str, entries: Any) -> HistogramDescription:
    """Return the description in YAML that was read; ValueError names its fault."""
    _known(entries, KEYS, "")
    shape = _one_of("histogram", entries.get("histogram"), SHAPES)
    words = {name: column_name(name, entries[name]) for name in ("each", "lower", "upper", "value") if name in entries}
    bins = _one_of("bins", entries.get("bins", LIST), BINS)
    edge = _one_of("edge", entries.get("edge", HALF_OPEN), EDGES)
    if "count" not in entries and not (bins == MAP and edge):
        raise ValueError("count is missing: the key or column of the counts")
    check(bins == MAP or bool(words.keys() & {"lower", "upper", "value"}), "lower, upper or value is missing: the edges of bins")
    rule, names, is_open = _rule(entries["edges"], edge, entries.get("unit")) if "edges" in entries else ((), (), False)
    check("value" not in words or bool(rule), "value needs edges: the list or rule of all bins")
    pattern = entries.get("bin", "")
    check((shape == TEXT) == bool(pattern), "bin is the pattern of a line, for histogram: text")
    check(not pattern or _is_pattern(pattern), f"bin is no regular expression: {pattern!r}")
    check("unit" in entries, "unit is missing: ps, ns, us, ms or s")
    labels, fixed = labels_in(entries.get("labels", {}))
    delimiter, header = entries.get("delimiter", ","), entries.get("header", True)
    check(
        delimiter == WHITESPACE or (isinstance(delimiter, str) and len(delimiter) == 1),
        "delimiter is one character, or whitespace",
    )
    check(isinstance(header, bool), "header is true or false")
    every = entries.get("every", "")
    try:
        every_ns = parse_duration(str(every)) if every else 0
    except UsageError as error:
        raise ValueError(f"every: {error}") from None
    return HistogramDescription(
        path,
        shape,
        count=column_name("count", entries.get("count", UP_TO)),
        bins=bins,
        bin=pattern,
        edge=edge,
        rule=rule,
        names=names,
        is_open=is_open,
        unit=_chosen("unit", entries["unit"], tuple(UNITS)),
        over_time=_chosen("over_time", entries.get("over_time", INTERVAL), (INTERVAL, TOTAL)),
        every_ns=every_ns,
        time=_times(entries.get("time", {}), shape),
        labels=labels,
        fixed=fixed,
        where=_pairs("where", entries.get("where", {})),
        kind=kind_in(entries, entries.get("labels", {})),
        delimiter=delimiter,
        header=header,
        **words,
    )


def _known(entries: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    unknown = [str(name) for name in entries if name not in keys]
    if unknown:
        raise ValueError(f"no line {unknown[0]!r}{where}: there are {', '.join(keys)}")


def _one_of(name: str, value: Any, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ValueError(f"{name} is one of {', '.join(words)}, not {value!r}")
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
