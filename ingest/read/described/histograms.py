"""Histograms of any tool, read as a description says: lines of bins, documents, Python literals, text."""

from __future__ import annotations

import ast
import csv
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, pairwise, zip_longest
from pathlib import Path
from typing import Any

from ingest.core.coverage import labels_of
from ingest.core.errors import InputError
from ingest.core.labels import Series
from ingest.core.units import MOST_NS, iso_ns
from ingest.read.context import Context
from ingest.read.described.description import (
    CSV,
    JSON,
    LIST,
    MAP,
    NDJSON,
    PYTHON,
    TEXT,
    TOTAL,
    UNITS,
    UP_TO,
    Chosen,
    HistogramDescription,
    last_of,
)
from ingest.read.described.table import LOOKED_AT, WHITESPACE, fields, usual_width
from ingest.read.format_names import DESCRIBED_HISTOGRAMS
from ingest.read.missing import unlike_total
from ingest.read.polls import OPEN, FileBin, FileHistogram, Lost, Polls, WrongError, count, in_bins, lines_of, objects_of, polled
from ingest.read.sample_file import Answer, SampleFile, is_sample_file, seconds
from ingest.read.text import CUT_OFF, changed_ns, decimal_of

# Places in JSON documents, as descriptions name them: `r.{op}.histogram_usec`, `data.*`, `../../unit`.
#
# A step is a key; `*` any key or entry of a list, `{name}` any key, which becomes the label, `..` what holds it. A name that a
# place does not have itself is looked for in what holds it, step by step. Keys with dots in them are found as they are.


MISSING = None
ANY = "*"


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a document, what holds it, and the labels on the way there."""

    value: Any
    above: Place | None = None
    labels: tuple[tuple[str, str], ...] = ()

    def found(self, path: str) -> Any:
        """Return the value that a path names from here, None where there is none."""
        place: Place | None = self
        name = path
        while place is not None and (name == ".." or name.startswith("../")):
            place, name = place.above, name[3:]
        while place is not None:
            value = inner(place.value, name)
            if value is not MISSING or name != path:
                return value
            place = place.above
        return MISSING


def inner(value: Any, path: str) -> Any:
    """Return what a dotted path names inside of a value, None where there is none; the longest key that fits comes first."""
    if not path:
        return value
    mapping = _mapping(value)
    found = None if mapping is None else _longest(mapping, path.split("."))
    return MISSING if found is None else inner(found[0], ".".join(found[1]))


def _longest(mapping: Mapping[str, Any], steps: list[str]) -> tuple[Any, list[str]] | None:
    """Return the value of the longest key that steps begin with, and the steps behind it; None where there is no such key."""
    keys = ((".".join(steps[:size]), steps[size:]) for size in range(len(steps), 0, -1))
    return next(((mapping[key], rest) for key, rest in keys if key in mapping), None)


def _mapping(value: Any) -> Mapping[str, Any] | None:
    """Return the pairs of an object; those of a list of `{"key": .., "value": ..}`, too, as OpenTelemetry writes attributes."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(pair, dict) and "key" in pair for pair in value):
        return {str(pair["key"]): _plain(pair.get("value")) for pair in value}
    return None


def _plain(value: Any) -> Any:
    return next(iter(value.values()), None) if isinstance(value, dict) else value


def places(document: Any, path: str, *, strict: bool = False) -> Iterator[Place]:
    """Yield every place in a document that a path with `*` and `{label}` leads to.

    WrongError, with `strict`, where below a name of the path something stands that holds nothing.
    """
    yield from _below(Place(document), path.split(".") if path else [], strict=strict)


def _below(place: Place, steps: list[str], *, strict: bool) -> Iterator[Place]:
    step, value = steps[0] if steps else "", place.value
    if strict and place.above is not None and not isinstance(value, (dict, list)):
        raise WrongError("a value where the description says that there are histograms")
    if not steps:
        yield place
        return
    named = step[1:-1] if step.startswith("{") and step.endswith("}") else ""
    if step == ANY or named:
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, entry in entries:
            labels = (*place.labels, (named, str(key))) if named else place.labels
            yield from _below(Place(entry, place, labels), steps[1:], strict=strict and place.above is not None)
    elif isinstance(value, dict) and (found := _longest(value, steps)) is not None:
        yield from _below(Place(found[0], place, place.labels), found[1], strict=strict)


# Values in records, as descriptions name them: edges, times and words, exact whatever they are written as.


NO_TIME = "no time where the description says"
WORDS_OPEN = ("+inf", "inf", "infinity", "")


def as_word(value: Any) -> str:
    """Return a value as text, empty text for none."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def decoded(value: Any) -> Any:
    """Return a Python literal with bytes as text and floats as exact decimals of what was written."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, dict):
        return {as_word(decoded(key)): decoded(entry) for key, entry in value.items()}
    return [decoded(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def bound_ns(value: Any, unit: Fraction) -> Fraction | None:
    """Return an edge in ns, None of one that is open; WrongError where it is no number."""
    if value is None or (isinstance(value, str) and value.strip().lower() in WORDS_OPEN):
        return None
    try:
        number = decimal_of(as_word(value))
        if not number.is_finite():
            return None
        if abs(number) > 10**22 or (number and abs(number) < Decimal("1e-30")):
            raise WrongError("an edge or time out of range")
        return Fraction(number) * unit
    except ArithmeticError:
        raise WrongError(f"{as_word(value)[:40]!r} is no number") from None


def stamp_ns(value: Any, unit: str, zone: str) -> int:
    """Return a time in ns since 1970; WrongError where it is none."""
    if value is None:
        raise WrongError(NO_TIME)
    text = as_word(value).strip()
    if unit in UNITS:
        number = bound_ns(text, UNITS[unit])
        stamp = None if number is None or abs(number) > 2**62 else int(number // 1)
    else:
        if unit != "iso":
            try:
                text = datetime.strptime(text, unit).isoformat()  # noqa: DTZ007 - its zone follows
            except ValueError:
                raise WrongError(f"{text[:40]!r} is no time as described") from None
        stamp = iso_ns(text if not zone or re.search(r"(Z|[-+]\d\d:?\d\d)$", text) else text + zone)
    if stamp is None:
        raise WrongError(f"{text[:40]!r} is no time")
    return stamp


# Histograms of any tool, read as a description says (see `description`): lines of bins, documents, Python literals, text.
#
# Counts are exact. Edges are whole ns: those that the file shows, or those of the description, of which the nearest is meant.
# Where a file shows other bins from one histogram to the next because empty ones are left out, all have the bins of the whole
# file.


NO_UNIT = "a unit that the description does not have"
NO_SUM = "its bins do not add up to the number of samples beside them"
EDGE_ROLES = ("lower", "upper", "value")
NO_TEMPORALITY = "nothing says whether it counts an interval or since a start"
MOST_DOCUMENT = 1 << 28


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`; records that cannot be read are rejected with their reason."""
    description = context.description
    if not isinstance(description, HistogramDescription):
        raise InputError("needs a description of its histograms: --input-format FILE.yml", path)
    held.every_ns = description.every_ns if isinstance(description.every_ns, int) else 0
    file = SampleFile(path, context) if is_sample_file(path, context.upto) else None
    if file is None:
        histograms = list(Reading(path, context, description, held).histograms())
    else:
        histograms = [
            histogram for answer in file.answers() for histogram in Reading(path, context, description, held, answer).histograms()
        ]
    in_bins(histograms, description, context, held)
    if file is not None:
        file.finish(held)


@dataclass
class Reading:
    """Takes the records of one file in turn, or of one answer to a poll; `newest` is the newest one that only tells the time."""

    path: Path
    context: Context
    description: HistogramDescription
    held: Polls
    answer: Answer | None = None
    newest: Place | None = None

    def histograms(self) -> Iterator[FileHistogram]:
        """Yield the histograms of the file."""
        shape = self.description.shape
        if shape == CSV:
            yield from self._of_rows(self._table())
            return
        if shape == TEXT:
            found = list(self._of_rows(self._text()))
            self._hold_against_total(found)
            yield from found
            return
        for line, document in self._documents():
            yield from self.of_document(line, document)

    def of_document(self, line: int, document: Any) -> Iterator[FileHistogram]:
        """Yield the histograms of a document."""
        record = self.description.time.record
        try:
            if record and isinstance(document, dict) and _fits(Place(document), record):
                self.newest = Place(document)
                return
            strict = bool(self.description.samples)
            found = [place for each in self.description.each.split("\n") for place in places(document, each, strict=strict)]
            found += self._not_there(document)
        except WrongError as error:
            self.context.account.reject(str(error), [line])
            return
        except RecursionError:
            self.context.account.reject("nested too deeply", [line])
            return
        for place in found:
            if place.value is MISSING or isinstance(place.value, (dict, list)):
                yield from self._kept(line, place, lambda place=place: self._counted(place))

    def _not_there(self, document: Any) -> Iterator[Place]:
        """Yield the places where the tool says how many samples there are, and the histogram itself is not there."""
        above, _, last = self.description.each.rpartition(".")
        if self.description.samples and above and last[0] not in "*{":
            for place in places(document, above):
                if inner(place.value, last) is MISSING and place.found(self.description.samples) is not MISSING:
                    yield Place(MISSING, place, place.labels)

    def _lines(self) -> Iterator[tuple[int, bytes, bool]]:
        """Yield the lines of the file, or of the answer."""
        if self.answer is None:
            yield from lines_of(self.path, self.context)
        else:
            said = self.answer.said
            text = said if isinstance(said, str) else json.dumps(said, default=str)
            yield from ((self.answer.line, line.encode(), True) for line in text.split("\n"))

    def _kept(self, line: int, place: Place, bins: Any) -> Iterator[FileHistogram]:
        """Yield the histogram at a place, unless `where` leaves it out or it cannot be taken."""
        if any(isinstance(place.found(key), (dict, list)) for key in self.description.labels.values()):
            self.context.account.reject("a label that is no word", [line])
            return
        try:
            if not _fits(place, self.description.where):
                self.context.account.skip("a record that `where` leaves out", 1)
                return
            if taken := bins():
                yield self._found(line, place, taken)
        except WrongError as error:
            lost = Lost(self._series(place))
            with suppress(WrongError):  # its time, where that can be read
                start, end = self._times(place)
                lost = lost._replace(start_ns=start, end_ns=end, total=self._is_total(place))
            self.held.reject(str(error), line, lost)

    def _is_total(self, place: Place) -> bool:
        return _said(self.description.over_time, place, NO_TEMPORALITY) == TOTAL

    def _documents(self) -> Iterator[tuple[int, Any]]:
        description, context, answer = self.description, self.context, self.answer
        if answer is not None and description.shape == NDJSON:
            stamp = Decimal(seconds(answer.at_ns))
            yield answer.line, {"sampled_at": stamp, "host": answer.host, "command": answer.command, "said": answer.said}
        elif answer is not None and description.shape == JSON and not answer.text:
            yield answer.line, answer.said
        elif description.shape == JSON:
            text = b"".join(line + b"\n" for _, line, _ in self._lines())
            if len(text) > MOST_DOCUMENT:
                raise InputError("more than 256 MiB are no single document: describe it as ndjson", self.path)
            try:
                yield 1, json.loads(text, parse_float=Decimal)
            except (ValueError, RecursionError):
                context.account.reject(CUT_OFF, [1])
        elif description.shape == PYTHON:
            for number, line, whole in self._lines():
                if not line.strip():
                    continue
                try:
                    yield number, decoded(ast.literal_eval(line.decode("utf-8", "replace").strip()))
                except (ValueError, SyntaxError, MemoryError, RecursionError):
                    context.account.reject("no Python literal" if whole else CUT_OFF, [number])
        else:
            yield from objects_of(self.path, context)

    def _table(self) -> Iterator[tuple[int, Place]]:
        """Yield the rows of a table with their line numbers."""
        description, context = self.description, self.context
        rows = ((number, self._cells(line), whole) for number, line, whole in self._lines() if line.strip())
        beginning = list(islice(rows, 1 if description.header else LOOKED_AT))
        if description.header:
            names = beginning.pop()[1] if beginning else []
        else:
            names = [str(place + 1) for place in range(usual_width(map(len, (cells for _, cells, _ in beginning))))]
        for number, cells, whole in chain(beginning, rows):
            if len(cells) != len(names):
                context.account.reject("another number of columns" if whole else CUT_OFF, [number])
            else:
                yield number, Place(dict(zip(names, (cell.strip() for cell in cells), strict=True)))

    def _cells(self, line: bytes) -> list[str]:
        """Return the cells of a line of a table."""
        if self.description.delimiter == WHITESPACE:
            return fields(line)
        text = line.decode("utf-8", "replace").replace("\0", "").replace("\r", "")
        try:
            return next(csv.reader([text], delimiter=self.description.delimiter), [])
        except csv.Error:
            return []

    def _text(self) -> Iterator[tuple[int, Place]]:
        """Yield the lines of text that are bins, as rows of their groups."""
        pattern = re.compile(self.description.bin)
        for number, line, _ in self._lines():
            match = pattern.search(line.decode("utf-8", "replace"))
            if match is not None:
                yield number, Place({name: value or "" for name, value in match.groupdict().items()})

    def _of_rows(self, rows: Iterable[tuple[int, Place]]) -> Iterator[FileHistogram]:
        """Yield the histograms of rows that are a bin each: those of one time and the same labels are one."""
        held: dict[tuple[Any, ...], tuple[FileHistogram, list[FileBin]]] = {}
        for line, place in rows:
            for found in self._kept(line, place, lambda place=place: [self._bin(place, place.value)]):
                key = (found.series, found.start_ns, found.end_ns, found.total)
                held.setdefault(key, (found, []))[1].extend(found.bins)
        for found, bins in held.values():
            try:
                yield replace(found, bins=self._upwards(bins))
            except WrongError as error:
                self.held.reject(str(error), found.line, Lost(found.series, found.start_ns, found.end_ns, total=found.total))

    def _listed(self, place: Place) -> list[FileBin]:
        """Return the bins at a place."""
        description, value = self.description, place.value
        if description.bins == MAP:
            if not isinstance(value, dict):
                raise WrongError("no map of edges and counts")
            role = (description.lower and "lower") or (description.value and "value") or "upper"
            entries = [{role: edge, "count": number} for edge, number in value.items()]
        elif description.bins == LIST:
            if not isinstance(value, list):
                raise WrongError("no list of bins")
            entries = [entry for entry in value if isinstance(entry, dict)]
        else:
            role = next(name for name in ("upper", "lower", "value") if getattr(description, name))
            numbers, edges = place.found(description.count), place.found(getattr(description, role))
            if not isinstance(numbers, list) or not isinstance(edges, list) or not 0 <= len(numbers) - len(edges) <= 1:
                raise WrongError("no lists of edges and counts that belong together")
            entries = [{role: edge, "count": number} for edge, number in zip_longest(edges, numbers)]
        return self._upwards([self._bin(place, entry, plain=description.bins != LIST) for entry in entries])

    def _counted(self, place: Place) -> list[FileBin]:
        """Return the bins at a place; WrongError where the tool says of another number of samples beside them."""
        bins, samples = self._listed(place), self.description.samples
        said = place.found(samples) if samples else MISSING
        if said is not MISSING and sum(one.count for one in bins) != count(said):
            raise WrongError(NO_SUM)
        return bins

    def _hold_against_total(self, found: Sequence[FileHistogram]) -> None:
        """Keep what the tool says of the samples of a text, and its bins do not hold, or hold beyond it."""
        if not found or not self.description.samples:
            return
        said = (re.search(self.description.samples, line.decode("utf-8", "replace")) for _, line, _ in self._lines())
        numbers = [int(match[1]) for match in said if match is not None]
        held = sum(one.count for entry in found for one in entry.bins)
        if numbers and sum(numbers) != held:
            labels = labels_of(found[0].series)
            self.context.account.lack(unlike_total(labels, self.context.account.path, "the tool itself", sum(numbers), held))

    def _bin(self, place: Place, entry: Mapping[str, Any], *, plain: bool = False) -> FileBin:
        """Return a bin; the keys of `plain` entries are the roles themselves."""
        description = self.description
        key = {name: name if plain else getattr(description, name) for name in ("lower", "upper", "value", "count")}
        if description.bin and description.shape != TEXT:
            edges = {name: re.search(description.bin, as_word(entry.get(key[name]))) for name in EDGE_ROLES if key[name]}
            entry = {**entry, **{key[name]: match[1] for name, match in edges.items() if match is not None}}
        inside = Place(entry)
        said = inside.found(key["count"])
        number = count(said.strip() if isinstance(said, str) else said)
        unit = UNITS[_said(description.unit, place, NO_UNIT)]
        if description.rule:
            role = next(name for name in ("value", "upper", "lower") if key[name] and inside.found(key[name]) is not None)
            return self._of_rule(bound_ns(inside.found(key[role]), unit), unit, number)
        last = before = None
        if key["upper"] and (bound := bound_ns(inside.found(key["upper"]), unit)) is not None:
            last = last_of(bound, description.edge, unit)
        if key["lower"] and (bound := bound_ns(inside.found(key["lower"]), unit)) is not None:
            edge = "[)" if description.edge == "[]" else description.edge
            before = last_of(bound, edge, unit)
        return FileBin(before, last, number)

    def _of_rule(self, bound: Fraction | None, unit: Fraction, number: int) -> FileBin:
        """Return the bin of the description whose name is nearest, at most half way to the next."""
        names, ends = self.description.names, self.description.rule
        if bound is None:
            return FileBin(ends[-1], OPEN, number)
        above = bisect_left(names, bound)
        place = min(range(max(above - 1, 0), min(above + 1, len(names))), key=lambda at: abs(names[at] - bound))
        gap = names[place + 1] - names[place] if place + 1 < len(names) else names[place] - names[place - 1]
        if abs(names[place] - bound) > max(Fraction(gap) / 2, unit):
            raise WrongError("an edge that the description does not have")
        below = ends[place - 1] if place else -1
        return FileBin(below, ends[place] if place < len(ends) else OPEN, number)

    def _upwards(self, bins: list[FileBin]) -> list[FileBin]:
        """Return bins by their edges, counts of each alone; the upper edge of one that has none is the next lower one."""
        description = self.description
        if description.lower and not description.upper and not description.rule:
            ordered = sorted(bins, key=lambda entry: -1 if entry.before is None else entry.before)
            nexts = [entry.before for entry in ordered[1:]]
            bins = [replace(entry, last=last) for entry, last in zip(ordered, [*nexts, OPEN], strict=True)]
        bins = sorted(bins, key=lambda entry: (entry.last is OPEN, entry.last or 0))
        if description.edge == UP_TO:
            counts = [0, *(entry.count for entry in bins)]
            if any(low > high for low, high in pairwise(counts)) or len({entry.last for entry in bins}) < len(bins):
                raise WrongError("counts up to an edge that fall, or two of one edge")
            bins = [replace(entry, count=entry.count - below) for entry, below in zip(bins, counts, strict=False)]
        return bins

    def _series(self, place: Place) -> Series:
        description = self.description
        named = dict(place.labels)
        words = {label: named.get(label) or place.found(key) for label, key in description.labels.items()}
        labels = {**named, **{label: as_word(word) for label, word in words.items() if word is not None}, **description.fixed}
        known = {label: text for label, text in labels.items() if label in Series.__slots__ and label not in ("run", "segment")}
        base = self.context.series
        asked = "" if self.answer is None else self.answer.host
        return base.replaced(kind=description.kind, **{**known, "host": base.host or known.get("host", "") or asked})

    def _found(self, line: int, place: Place, bins: Sequence[FileBin]) -> FileHistogram:
        start, end = self._times(place)
        return FileHistogram(line, self._series(place), start, end, bins, self._is_total(place))

    def _times(self, place: Place) -> tuple[int | None, int]:
        """Return when counting began and ended, by the description."""
        times = self.description.time
        every = self._every(place)
        if times.of_file and self.answer is not None:
            return self.answer.at_ns - every if every else None, self.answer.at_ns
        if times.of_file:
            return self._of_file
        holder = (self.newest if times.record else None) or place
        if times.record and self.newest is None:
            raise WrongError(NO_TIME)
        at = sum(stamp_ns(holder.found(key), unit, times.zone) for key, unit in zip(times.at, times.units, strict=True))
        begun = stamp_ns(place.found(times.start), times.units[0], times.zone) if times.start else None
        if not times.is_start:
            return begun, at
        if not every:
            raise WrongError("a time of the start needs every: how long an interval is")
        return at, at + every

    def _every(self, place: Place) -> int:
        """Return how long the interval of a histogram is; 0 where the description does not say it."""
        every = self.description.every_ns
        if isinstance(every, int):
            return every
        number = bound_ns(place.found(every[0]), every[1])
        if number is None or not 0 <= number < MOST_NS:
            raise WrongError("no duration where the description says")
        return int(number + every[1])  # what a tool counts in whole units may be one longer

    @cached_property
    def _of_file(self) -> tuple[int, int]:
        end = changed_ns(self.path)
        length = self.description.time.length
        if not length:
            every = self.description.every_ns
            if not isinstance(every, int) or not every:
                raise WrongError("a time of the file needs every: or length: how long it took")
            return end - every, end
        for _, line, _ in self._lines():
            match = re.search(length, line.decode("utf-8", "replace"))
            if match is not None:
                number = bound_ns(match[1] if match.groups() else match[0], UNITS["s"])
                if number is not None and number > 0:
                    return end - int(number), end
        raise WrongError("no duration where the description says")


def _said(chosen: Chosen, place: Place, missing: str) -> str:
    if not chosen.key:
        return chosen.word
    word = chosen.table.get(as_word(place.found(chosen.key)))
    if word is None:
        raise WrongError(missing)
    return word


def _fits(place: Place, where: Mapping[str, str]) -> bool:
    return all(as_word(place.found(key)) == value for key, value in where.items())


READER = polled(DESCRIBED_HISTOGRAMS, read, "holds no histogram as its description says")
