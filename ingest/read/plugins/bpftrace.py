"""Histograms of bpftrace: what a script prints of `hist()` and `lhist()`, as text or with `-f json`.

    06:20:16                                       {"type": "printf", "data": "1795330001000\n"}
    @usecs[259,0]:                                 {"type": "hist", "data": {"@usecs": {"259,0": [{"min": 1024, "max": 2047,
    [1K, 2K)     426 |@@@@@@@@@@@@@@@@@@|            "count": 426}, ...]}}}
    (..., 0)       3 |                  |

In text `1K` is 1024, `[a, b)` whole units below b, `[a]` one unit; `[0, 1]` of old versions holds both. In JSON both edges are in
the bin. bpftrace itself prints no time: one that the script prints alone on a line before (`time("%H:%M:%S\n")`, epoch s, ms, us
or ns) is that of the histograms behind it. The unit is the name's last word (`@usecs`, `@read_ns`), else --recorded-unit.

Source: bpftrace's output.cpp and tools/biolatency_example.txt; bpftrace did not run here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingest.core.labels import Series
from ingest.core.units import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import BPFTRACE
from ingest.read.plugins.prints import DAMAGED, NO_BIN, Print, Script, add, with_labels
from ingest.read.polls import OPEN, FileBin, Lost, Polls, WrongError, count, documents_of, lines_of, polled, whole
from ingest.read.text import CUT_OFF, changed_ns

NOTHING = "holds no histogram of latencies: name its map by the unit, as in @usecs, or give --recorded-unit"
LOST_EVENTS = "bpftrace lost events: {}"
NAME = re.compile(r"^(@\w*)(?:\[(.*)\])?:\s*$")
OPENED = re.compile(r"^(@\w*)\[((?:(?!\]:).)*)$")
CLOSED = re.compile(r"^(.*)\]:\s*(.*)$")
BIN = re.compile(r"^[\[(](\.\.\.|-?[0-9]{1,19}[KMGTPE]?)(?:, (\.\.\.|-?[0-9]{1,19}[KMGTPE]?))?([\])]) +([0-9]{1,19}) \|[@ ]*\|?$")
TIMES = {letter: 1 << 10 * (place + 1) for place, letter in enumerate("KMGTPE")}
WORDS = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "usec", "usecs", "microseconds"), "us"),
    **dict.fromkeys(("ms", "msec", "msecs", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "seconds"), "s"),
}
DEVICE = re.compile(r"[0-9]+,[0-9]+|(sd|vd|xvd|hd)[a-z]+[0-9]*|nvme[0-9]+n[0-9]+(p[0-9]+)?|dm-[0-9]+|md[0-9]+|loop[0-9]+")
DOTS = "..."
JSON = re.compile(rb"\s*(\{|\[\s*(\{|$))")


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`."""
    lines = [(number, line, ended) for number, line, ended in lines_of(path, context) if line.strip()]
    is_json = bool(lines) and JSON.match(lines[0][1]) is not None
    script = Script(re.compile(r"Attach(ing|ed) [0-9]+ probes?"))
    prints = list((_of_json if is_json else _of_text)(lines, context, held, script))
    add(list(_with_beginnings(prints)), script.stamps, changed_ns(path), context, held, total=None)


def _with_beginnings(prints: Sequence[Print]) -> Iterator[Print]:
    """Yield what was printed with when the map was printed before: keys that were not printed then had counted nothing."""
    before: dict[tuple[int, str], tuple[int | None, int | None]] = {}
    for entry in prints:
        since, newest = before.get((entry.script, entry.series.op), (None, None))
        if entry.stamp != newest:
            since, newest = newest, entry.stamp
        before[entry.script, entry.series.op] = since, newest
        yield replace(entry, since=since)


def _of_text(lines: Sequence[tuple[int, bytes, bool]], context: Context, held: Polls, script: Script) -> Iterator[Print]:
    named: tuple[int, str, str] | None = None
    opened: tuple[int, str, list[str]] | None = None
    bins: list[tuple[str, str, str, str]] = []
    for number, line, ended in [*lines, (0, b"", True)]:
        text = line.decode("utf-8", "replace").strip()
        match = BIN.match(text) if ended else None
        if match is not None and named is not None:
            bins.append((match[1], match[2] or "", match[3], match[4]))
            continue
        if named is not None and DAMAGED.search(text) and ended:
            held.reject(NO_BIN, number, Lost(context.series))
        if named is not None and bins:
            yield from _of_map(named[0], named[1], {named[2]: bins}, _text_bins, script, context, held)
        named, bins = None, []
        if not ended:
            context.account.reject(CUT_OFF, [number])
        elif name := NAME.match(text):
            named, opened = (number, name[1], name[2] or ""), None
        elif opening := OPENED.match(text):
            opened = number, opening[1], [opening[2]]
        elif opened is not None:  # a stack as a key, a frame a line
            closing = CLOSED.match(text)
            opened[2].append(text if closing is None else closing[1])
            if closing is not None:
                named = None if closing[2] else (opened[0], opened[1], ";".join(filter(None, opened[2])))
                opened = None
        elif match is not None:
            held.reject(NO_BIN, number, Lost(context.series))
        elif script.takes(text):
            continue
        elif text.startswith("Lost "):
            context.account.note(LOST_EVENTS.format(text))


def _number(text: str) -> int:
    return int(text.rstrip("KMGTPE")) * TIMES.get(text[-1], 1)


def _of_json(lines: Sequence[tuple[int, bytes, bool]], context: Context, held: Polls, script: Script) -> Iterator[Print]:
    for number, entry in documents_of(lines, context.account):
        kind, data = entry.get("type"), entry.get("data")
        if kind in ("printf", "time"):
            script.takes(str(data).strip())
        elif kind == "attached_probes":
            script.takes("Attached 1 probe")  # as text says it
        elif kind == "lost_events":
            context.account.note(LOST_EVENTS.format(str(data)[:80]))
        elif kind in ("hist", "lhist") and isinstance(data, dict):
            for name, body in data.items():
                told = body if isinstance(body, dict) else {"": body}
                yield from _of_map(number, str(name), told, _json_bins, script, context, held)


def _of_map(
    number: int,
    name: str,
    told: Mapping[Any, Any],
    bins: Callable[[Any, int], list[FileBin]],
    script: Script,
    context: Context,
    held: Polls,
) -> Iterator[Print]:
    """Yield the histograms of a map by key, with the `bins` that they have where a unit is so many ns."""
    unit = _unit(name, context)
    if unit is None:
        context.account.skip("not a latency by its name: its unit is no unit of time (--recorded-unit says which it is)", 1)
        return
    for key, rows in told.items():
        series = _series(context.series, name, str(key), script)
        try:
            yield Print(number, series, bins(rows, unit), script.newest, script=script.first)
        except WrongError as error:
            held.reject(str(error), number, Lost(series))


def _text_bins(rows: Sequence[tuple[str, str, str, str]], unit: int) -> list[FileBin]:
    bins = []
    for lower, upper, closing, samples in rows:
        first = None if lower == DOTS else _number(lower)
        end = OPEN if upper == DOTS else _number(upper or lower) + (closing == "]")
        before = None if first is None else first * unit - 1
        bins.append(FileBin(before, None if end is None else end * unit - 1, int(samples)))
    if any(one.count >= 1 << 62 for one in bins):
        raise WrongError("a count out of range")
    return bins


def _json_bins(rows: Any, unit: int) -> list[FileBin]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise WrongError("no list of bins")
    return [_bin(row, unit) for row in rows]


def _bin(row: Mapping[str, Any], unit: int) -> FileBin:
    """Return a bin whose edges are both in it; without a maximum all above, without a minimum all below."""
    low, high = row.get("min"), row.get("max")
    if low is None and high is None:
        raise WrongError("a bin without edges")
    before = None if low is None else whole(low) * unit - 1
    return FileBin(before, OPEN if high is None else (whole(high) + 1) * unit - 1, count(row.get("count")))


def _unit(name: str, context: Context) -> int | None:
    """Return the unit of a map in ns, None where nothing says it."""
    words = [WORDS[word] for word in re.split(r"[^a-z]+", name.lower()) if word in WORDS]
    return UNITS_NS[words[-1]] if words else context.recorded_unit_ns


def _series(base: Series, name: str, key: str, script: Script) -> Series:
    tag = f"{name}[{key}]" if key else name
    return with_labels(
        base, device=script.times_devices, tag=tag, op=name.lstrip("@"), volume=key if DEVICE.fullmatch(key) else base.volume
    )


READER = polled(BPFTRACE, read, NOTHING)
