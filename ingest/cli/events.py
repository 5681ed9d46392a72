"""events: the decoded timeline of a Snabb process, event by event or as rows of its breaths and of callbacks of its apps."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ingest.api.words import frequency, time_zero
from ingest.cli.options import END, TIME_BASE, Showing, argument, command, formats, option
from ingest.cli.output import say
from ingest.core.errors import UsageError
from ingest.core.units import parse_instant

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

    from ingest.core.intervals import Bool, Int
    from ingest.read.plugins.snabb.timeline import Lags, Message, Timeline

AT_ONCE, TABLE_ROWS = 10_000, 500
EXACT = 2**53
WIDE, NARROW = 1000, 110
DEEPEST = 9
UNKNOWN = "unknown"
NOT_LOGGED = (
    "no callback of this timeline logs what it moved (Snabb has not logged it since December 2022): "
    "--name 'app.*' shows how long each took"
)
Row = dict[str, Any]


class Options(Showing):
    """What a call of events says."""

    file: Path = argument("FILE")
    level: str | None = option(
        "--level", metavar="N|A-B", help="Only events of this level or range of levels, such as 0-3; 0 is the outermost."
    )
    names: tuple[str, ...] = option("--name", metavar="GLOB", help="Only events whose name, with or without its app, matches.")
    begin: str | None = option(
        "--from", metavar="T", help="Start of the range: 21:00:30, +90s (after the start), ISO 8601, epoch s or ms."
    )
    end: str | None = END
    limit: int | None = option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N, the oldest first.")
    tsc_hz: str | None = option(
        "--tsc-hz",
        metavar="N",
        help="Frequency of the counter in Hz, such as 2.6e9, if the timeline's own clock does not give it.",
    )
    t0: str | None = option(
        "--t0", metavar="T|mtime", help="Time of the first event, if the timeline's clock is not the time of day."
    )
    breaths: bool = option("--breaths", help="One row per breath: cycles, packets, bytes, bits.")
    callbacks: bool = option("--callbacks", help="One row per callback of an app, where its events say what it moved.")
    time_base: str | None = TIME_BASE
    format: str = formats("table", "csv", "ndjson")


@command(Options)
def events(options: Options) -> None:
    """Show the events of a Snabb timeline, oldest first, each with its lag.

    \b
    Examples:
      tailboard show events /var/run/snabb/1234/events.timeline --limit 50
      tailboard show events slow.timeline.xz --name 'app.*' --from +1.5s --to +1.6s
      tailboard show events slow.timeline --level 0-2 --format ndjson | jq .lag_ns
      tailboard show events slow.timeline --breaths --format csv > breaths.csv

    ndjson has time (or elapsed seconds), tsc, core, node, level, rate, event, app, lag_ns, lag_cycles, after, fault, args. The
    lag is the time since `after`, the previous event of the same level or an outer one; `fault` says why a lag is not a latency.
    Events are a sample: those of rate 9 are always stored, those of each lower rate a fifth as often.

    --breaths and --callbacks show when each began (a callback: ended), cycles, ns, packets moved, and the rate of its events.
    """
    from ingest.read.format_names import SNABB
    from ingest.read.placement import discover
    from ingest.read.plugins.snabb.timeline import timeline
    from ingest.read.sources import ReadOptions

    _check(options)
    reading = ReadOptions(input_format=SNABB, t0=time_zero(options.t0), tsc_hz=frequency(options.tsc_hz))
    if options.file.is_dir():
        raise UsageError(f"{options.file} is a folder: name one timeline, such as {options.file}/events.timeline")
    [source] = discover([options.file], reading).sources
    recording = timeline(options.file, reading.tsc_hz)
    zero = source.context.zero.epoch_ns
    start = int(recording.stamp_ns[0]) if recording.clock.real else zero or 0
    shift_ns, stamp = 0 if recording.clock.real else start, _stamp(options.time_base, start, known=zero is not None)
    if options.breaths or options.callbacks:
        of = _breath_rows if options.breaths else _callback_rows
        table = of(recording, stamp, shift_ns, lambda stamps: _inside(stamps, start, options))
        _warn(recording, len(table), "breaths" if options.breaths else "callbacks")
        _print_rows(table[: options.limit], options.format, stamp.name)
        return
    rows = _selected(recording, shift_ns, start, options)
    _warn(recording, len(rows))
    lags, at_once = recording.lags(), AT_ONCE if options.format == "ndjson" else TABLE_ROWS
    chunks = (rows[first : first + at_once] for first in range(0, len(rows), at_once))
    shown = (_event_rows(recording, lags, shift_ns, stamp, chunk) for chunk in chunks)
    if options.format == "ndjson":
        for chunk in shown:
            _print_ndjson(chunk)
    else:
        _print_table(recording, stamp.name, shown)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """How times are shown: under which name, and as what."""

    name: str
    of: Any


def _stamp(base: str | None, start_ns: int, *, known: bool) -> _Stamp:
    """Return how times are shown; UsageError where a time of day is asked for that cannot be determined."""
    from datetime import datetime

    import numpy as np

    if base in ("utc", "local") and not known:
        raise UsageError("the clock of this timeline is not the time of day, so times are elapsed; give --t0 to have a clock")
    if base == "elapsed" or not known:
        return _Stamp("elapsed", lambda stamp: (stamp - start_ns) / 1e9)
    if base == "local":
        return _Stamp(
            "time", lambda stamp: datetime.fromtimestamp(stamp // 1000 / 1e6).astimezone().isoformat(timespec="microseconds")
        )
    return _Stamp("time", lambda stamp: f"{np.datetime64(stamp, 'ns')}Z")


def _selected(recording: Timeline, shift_ns: int, start_ns: int, options: Options) -> Int:
    """Return the indices of the events that are asked for."""
    import numpy as np

    low, high = _levels(options.level)
    of_level = [low <= message.level <= high and _is_named(message, options.names) for message in recording.messages]
    inside = _inside(recording.stamp_ns + shift_ns, start_ns, options)
    return np.flatnonzero(np.array(of_level, np.bool_)[recording.codes] & inside)[: options.limit]


def _inside(stamps: Int, start_ns: int, options: Options) -> Bool:
    """Return which moments lie in the range that is asked for."""
    import numpy as np

    from ingest.query.question import edges_of

    wanted = np.ones(len(stamps), np.bool_)
    first, last = (parse_instant(text) if text else None for text in (options.begin, options.end))
    begin, end = edges_of(first, last, start_ns)
    wanted &= begin is None or stamps >= begin
    wanted &= end is None or stamps <= end
    return wanted


def _levels(text: str | None) -> tuple[int, int]:
    """Return the lowest and highest level that are asked for; -1 for unknown events where all are."""
    if text is None:
        return -1, DEEPEST
    match = re.fullmatch(r"(\d)(?:-(\d))?", text)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if low > high:
        raise UsageError(f"--level takes a level from 0 to 9, or a range such as 0-3, not {text!r}")
    return low, high


def _is_named(message: Message, globs: Sequence[str]) -> bool:
    text = message.text.lower() if message.known else UNKNOWN
    first = text.split(" ")[0]
    names = (text, first, first.rpartition(".")[2])
    return not globs or any(fnmatchcase(name, glob.lower()) for glob in globs for name in names)


def _warn(recording: Timeline, rows: int, what: str = "events") -> None:
    """Print what a reader of the events must know to stderr."""
    for reason, places in recording.ring.rejected.items():
        say(f"{len(places):,} left out: {reason}")
    for note in (*recording.ring.notes, *recording.clock.notes):
        say(note)
    if not rows:
        none = f"none of {len(recording):,} events" if what == "events" else f"none of its {what}"
        say(f"{none} is selected")


def _event_rows(recording: Timeline, lags: Lags, shift_ns: int, stamp: _Stamp, rows: Int) -> list[Row]:
    """Return events as plain values; `shift_ns` is added to their stamps."""
    from ingest.read.plugins.snabb.timeline import REASONS, nanoseconds

    anchor, cycles = lags.anchor[rows], lags.cycles[rows]
    columns = (
        *(recording.codes[rows], recording.stamp_ns[rows] + shift_ns, recording.tsc[rows], recording.core[rows]),
        *(cycles, nanoseconds(cycles, recording.clock.hz), anchor, recording.codes[anchor], lags.fault[rows]),
    )
    listed = zip(*(column.tolist() for column in columns), recording.arguments(rows).tolist(), strict=True)
    return [
        {
            stamp.name: stamp.of(at),
            "tsc": tsc,
            **_place(core),
            **_words(recording.messages[code]),
            "lag_ns": None if before < 0 else lag,
            "lag_cycles": None if before < 0 else lag_cycles,
            "after": None if before < 0 else recording.messages[after].text,
            "fault": REASONS[fault] or None,
            "args": dict(zip(recording.messages[code].arguments, map(_number, values), strict=False)),
        }
        for code, at, tsc, core, lag_cycles, lag, before, after, fault, values in listed
    ]


def _place(core: int) -> Row:
    """Return core and NUMA node of a number that holds both."""
    return {"core": core & 0xFFF, "node": core >> 12}


def _words(message: Message) -> Row:
    """Return what the text of an event says."""
    if not message.known:
        return {"level": None, "rate": None, "event": None, "app": None}
    return {"level": message.level, "rate": message.rate, "event": message.name, "app": message.app or None}


def _number(value: float) -> float | int | None:
    """Return a number as JSON has it: whole ones without a point where doubles are exact, None for NaN and infinities."""
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < EXACT else value


def _print_ndjson(rows: Sequence[Row]) -> None:
    import orjson

    sys.stdout.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows).decode())


def _console() -> Console:
    """Return what tables are printed to: as wide as the terminal, in a file as wide as a line needs."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _print_table(recording: Timeline, stamp: str, chunks: Iterable[Sequence[Row]]) -> None:
    """Print the events as tables of as many rows as are held at once, all with the same columns; one line a row in a file."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ingest.view.terminal.tables import escape

    console = _console()
    known = [message for message in recording.messages if message.known]
    widths = {
        "event": max([len(UNKNOWN), *(len(message.name) for message in known)]),
        "app": max([3, *(len(message.app) for message in known)]),
        "after": max([5, *(len(message.text) for message in known)]),
        "lag": len("(999.99ms)"),
    }
    names = [stamp, "core", "L,R", "event", "app", "lag", "after", "args"]
    names = names if console.width > NARROW else [name for name in names if name != "after"]
    for number, chunk in enumerate(chunks):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_header=not number, show_edge=False)
        for name in names:
            side: JustifyMethod = "right" if name in ("core", "lag", "elapsed") else "left"
            table.add_column(name, justify=side, no_wrap=name != "args", min_width=widths.get(name), overflow="fold")
        for row in chunk:
            cells = _cells(row, stamp)
            table.add_row(*(escape(cells[name]) for name in names))
        console.print(table)


def _cells(row: Row, stamp: str) -> dict[str, str]:
    """Return a row as people read it; a lag that is no latency stands in brackets."""
    from ingest.core.units import latency

    lag = "" if row["lag_ns"] is None else latency(row["lag_ns"])
    return {
        stamp: f"{row[stamp]:.9f}" if stamp == "elapsed" else row[stamp],
        "core": str(row["core"]) if not row["node"] else f"{row['node']}:{row['core']}",
        "L,R": "" if row["level"] is None else f"{row['level']},{row['rate']}",
        "event": row["event"] or UNKNOWN,
        "app": row["app"] or "",
        "lag": f"({lag})" if lag and row["fault"] else lag,
        "after": row["after"] or "",
        "args": " ".join(f"{name}={value}" for name, value in row["args"].items()),
    }


def _check(options: Options) -> None:
    """Raise UsageError for options that are about single events where breaths or callbacks are asked for, or both are."""
    if options.breaths and options.callbacks:
        raise UsageError("--breaths and --callbacks are two tables: ask for one")
    chosen = "--breaths" if options.breaths else "--callbacks" if options.callbacks else ""
    if not chosen and options.format == "csv":
        raise UsageError("--format csv is for --breaths and --callbacks: events have different arguments, ndjson shows them all")
    if chosen and (options.level or options.names):
        raise UsageError(f"{'--level' if options.level else '--name'} chooses events: leave it out with {chosen}")


def _print_rows(rows: Sequence[Row], form: str, stamp: str) -> None:
    """Print rows of equal columns as a table, csv or ndjson; what is not known is empty, null in ndjson.

    Without any row csv has its first column alone, called `stamp`.
    """
    if form == "ndjson":
        for first in range(0, len(rows), AT_ONCE):
            _print_ndjson(rows[first : first + AT_ONCE])
    elif form == "csv":
        import csv

        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(rows[0] if rows else (stamp,))
        out.writerows(["" if value is None else value for value in row.values()] for row in rows)
    elif rows:
        _print_whole_table(rows)


def _print_whole_table(rows: Sequence[Row]) -> None:
    """Print rows of equal columns as one table."""
    from ingest.view.terminal.tables import empty_table, escape

    names = [name.replace("_", " ") for name in rows[0]]
    table = empty_table(names, ("time", "app", "callback"), names)
    table.show_edge = False
    for row in rows:
        table.add_row(*(escape(_cell(name, value)) for name, value in row.items()))
    _console().print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "elapsed":
        return f"{value:.9f}"
    return f"{value:,}" if isinstance(value, int) and name != "breath" else str(value)


def _breath_rows(recording: Timeline, stamp: _Stamp, shift_ns: int, inside: Callable[[Int], Any]) -> list[Row]:
    """Return a row a breath, by when it began; `inside` selects the times that are asked for."""
    import numpy as np

    from ingest.read.plugins.snabb.breaths import breaths

    rows = breaths(recording)
    chosen = np.flatnonzero(inside(rows.start_ns + shift_ns))
    columns = (rows.start_ns + shift_ns, rows.number, rows.core, rows.cycles, rows.lasted_ns)
    whole = zip(*(column[chosen].tolist() for column in columns), strict=True)
    moved = _moved(chosen, rows.packets, rows.bytes, rows.bits)
    rates = rows.rate[chosen].tolist()
    return [
        {
            stamp.name: stamp.of(at),
            "breath": number if number >= 0 else None,
            **_place(core),
            **_cost(cycles, ns, rate, packets=amounts[0], bytes=amounts[1], bits=amounts[2]),
        }
        for (at, number, core, cycles, ns), amounts, rate in zip(whole, moved, rates, strict=True)
    ]


def _callback_rows(recording: Timeline, stamp: _Stamp, shift_ns: int, inside: Callable[[Int], Any]) -> list[Row]:
    """Return a row a callback, by when it ended; `inside` selects the times that are asked for."""
    import numpy as np

    from ingest.read.plugins.snabb.breaths import CALLBACKS, callbacks
    from ingest.read.plugins.snabb.timeline import nanoseconds

    rows = callbacks(recording, recording.lags())
    if not np.isfinite(rows.packets).any():
        say(NOT_LOGGED)
    ended = recording.stamp_ns[rows.end] + shift_ns
    chosen = np.flatnonzero(inside(ended))
    columns = (ended, recording.codes[rows.end], rows.cycles, nanoseconds(rows.cycles, recording.clock.hz), rows.rate)
    whole = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return [
        {
            stamp.name: stamp.of(at),
            "app": recording.messages[code].app,
            "callback": CALLBACKS[recording.messages[code].name.lower()].rpartition(".")[2],
            **_cost(cycles, ns, rate, packets=packets, bytes=volume),
        }
        for (at, code, cycles, ns, rate), (packets, volume) in zip(whole, _moved(chosen, rows.packets, rows.bytes), strict=True)
    ]


def _cost(cycles: int, ns: int, rate: int, **amounts: float | None) -> Row:
    """Return what a breath or a callback took, and what it moved."""
    packets = amounts["packets"]
    each = round(cycles / packets, 3) if packets else None
    return {"cycles": cycles, "ns": ns, **amounts, "cycles_a_packet": each, "rate": rate}


def _moved(chosen: Int, *columns: Any) -> Iterator[tuple[int | float | None, ...]]:
    """Yield what rows moved: whole numbers where they are, None where it was not logged."""
    for amounts in zip(*(column[chosen].tolist() for column in columns), strict=True):
        yield tuple(None if math.isnan(amount) else int(amount) if amount == int(amount) else amount for amount in amounts)
