"""Files of any tool, described by a few lines of YAML: `--input-format events.yml`.

    time: done_ms                       # column of the completion; or start: and end:, or start: and latency:
    latency: took
    unit: {time: ms, latency: us}       # or one for all; by default the ending of a column's name (_ns, _us, _ms, _s)
    labels: {op: type, host: node}      # labels of the series and their columns; "=read" is the text itself
    weight: count                       # how many operations a line stands for

Columns are named as in the file's first line (or as NDJSON's keys), or by number from 1. `unit: {time: iso}` is for ISO 8601.
Further lines: `kind` (service), `delimiter` (a comma; `whitespace` for any run of blanks and tabs), `blanks` (with it: the
column whose text may hold blanks), `header: false` for a first line that is data already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from ingest.core.dataclass import dataclass
from ingest.core.errors import UsageError
from ingest.core.series import CLIENT, LABELS, LAYER, LAYERS, in_layer
from ingest.core.timing import UNITS_NS
from ingest.read.delimited.blank_columns import WHITESPACE
from ingest.read.folders import check_is_file

TIMES = ("time", "start", "end", "latency")
KEYS = (*TIMES, "unit", "labels", "weight", "kind", "delimiter", "blanks", "header")
UNITS = ("ns", "us", "ms", "s")
ISO = "iso"
LARGEST = 1 << 16
DESCRIBABLE = tuple(name for name in LABELS if name not in ("run", "kind"))
ENDINGS = (".yml", ".yaml")
Described = TypeVar("Described")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one file: all names in order (none for NDJSON), and by role the column and its unit in ns (0: ISO 8601).

    `blanks` is the place of the column whose text may hold blanks, in tables that blanks part.
    """

    names: tuple[str, ...]
    skipped: int
    roles: Mapping[str, str]
    units: Mapping[str, int]
    labels: Mapping[str, str]
    sample: Mapping[str, str]
    blanks: int | None = None

    @property
    def is_json(self) -> bool:
        """Return whether lines are JSON objects."""
        return not self.names


@dataclass(frozen=True, slots=True)
class Description:
    """Which columns of a file hold what. `units` are ns by role, 0 for ISO 8601 text; without one the name's ending decides.

    `columns` name the column of each role (time or end, start, latency, weight); `labels` that of each label, `fixed` its text.
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

    @property
    def text(self) -> str:
        """Return all that numbers depend on, as text that is the same for the same description."""
        parts = (self.columns, self.units, self.labels, self.fixed)
        pairs = [sorted(part.items()) for part in parts]
        more = (self.blanks,) if self.blanks else ()
        return repr((*pairs, self.kind, self.delimiter, self.header, *more))


def is_description(text: str) -> bool:
    """Return whether the value of --input-format is a file that describes a format."""
    return text.endswith(ENDINGS)


def parse_description(path: Path) -> Description:
    """Return the description of columns in a file; UsageError names its fault."""
    return described(path, yaml_in(path), column_description)


def described(path: Path, entries: Any, parsed: Callable[[str, Any], Described]) -> Described:
    """Return what `parsed` makes of a file's lines; UsageError names the file and the fault."""
    try:
        return parsed(str(path), entries)
    except ValueError as error:
        raise UsageError(f"--input-format {path}: {error}") from None


def yaml_in(path: Path) -> Any:
    """Return what the YAML of a file says; UsageError where it is none."""
    import yaml

    check_is_file(path)
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
    unknown = [str(name) for name in entries if name not in KEYS]
    if unknown:
        raise ValueError(f"no line {unknown[0]!r}: there are {', '.join(KEYS)}")
    columns = {name: column_name(name, entries[name]) for name in (*TIMES, "weight") if name in entries}
    _check_roles(columns)
    if "time" in columns:
        columns["end"] = columns.pop("time")
    labels, fixed = labels_in(entries.get("labels", {}))
    delimiter = entries.get("delimiter", ",")
    if delimiter != WHITESPACE and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\n\r\\'):
        raise ValueError("delimiter is one character, such as ; or \\t in double quotes, or the word whitespace")
    blanks = column_name("blanks", entries["blanks"]) if "blanks" in entries else ""
    check(not blanks or delimiter == WHITESPACE, "blanks is for tables: it needs delimiter: whitespace")
    header, kind = entries.get("header", True), kind_in(entries, entries.get("labels", {}))
    check(isinstance(header, bool), "header is true or false")
    units = _units(entries.get("unit"), columns)
    return Description(path, columns, units, labels, fixed, kind, delimiter, header, blanks)


def check(good: bool, wrong: str) -> None:  # noqa: FBT001
    """Raise ValueError with the sentence `wrong` unless `good`."""
    if not good:
        raise ValueError(wrong)


def column_name(role: str, value: Any) -> str:
    """Return the name or number of a column or key; ValueError where it is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise ValueError(f"{role} takes the name or number of a column")
    return str(value).strip()


def _check_roles(columns: Mapping[str, str]) -> None:
    """Raise ValueError unless start and end of an operation follow from the columns, in one way only."""
    times = {name for name in columns if name in TIMES}
    if {"time", "end"} <= times:
        raise ValueError("time and end are the same: the completion; give one of them")
    if {"start", "latency"} <= times and times & {"time", "end"}:
        raise ValueError("start, end and latency: give two of them")
    if len(times) < 2 or not (times & {"time", "end"} or "start" in times):
        raise ValueError("give the columns of two of these: time (or end), start, latency")


def _units(setting: Any, columns: Mapping[str, str]) -> dict[str, int]:
    """Return the unit of each role in ns, 0 for ISO 8601; roles without one are left out."""
    by_role = dict.fromkeys(columns, setting) if isinstance(setting, str) else setting if isinstance(setting, dict) else None
    if setting is not None and by_role is None:
        raise ValueError("unit is one of ns, us, ms, s, or one for each of time, start, end and latency")
    units = {}
    for role, unit in (by_role or {}).items():
        name = "end" if role == "time" else role
        if name not in columns or name == "weight":
            if isinstance(setting, dict):
                raise ValueError(f"unit of {role}: there is no such line")
            continue
        iso = name != "latency" and isinstance(setting, dict) and unit == ISO
        if unit not in UNITS and not iso:
            raise ValueError(f"unit {unit!r}: there are ns, us, ms, s, and iso for times")
        units[name] = 0 if iso else UNITS_NS[unit]
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
        if name not in DESCRIBABLE:
            raise ValueError(f"no label {name!r}: there are {', '.join((*DESCRIBABLE, LAYER))}")
        text = column_name(f"label {name}", value)
        if text.startswith("="):
            fixed[name] = text[1:]
        else:
            columns[name] = text
    return columns, fixed
