"""events --breaths, --callbacks: what each breath of a Snabb timeline, or each callback of an app, cost and moved."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ingest.cli.shared.say import say
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.cli.events import Options
    from ingest.core.intervals import Int
    from ingest.read.snabb.timeline import Timeline

Row = dict[str, Any]
Stamp = Callable[[int], Any]

AT_ONCE = 10_000
WIDE = 1000
NOT_LOGGED = (
    "no callback of this timeline logs what it moved (Snabb has not logged it since December 2022): "
    "--name 'app.*' shows how long each took"
)


def check(options: Options) -> None:
    """Raise UsageError for options that are about single events where breaths or callbacks are asked for, or both are."""
    chosen = [name for name in ("breaths", "callbacks") if getattr(options, name)]
    if len(chosen) > 1:
        raise UsageError("--breaths and --callbacks are two tables: ask for one")
    if not chosen and options.format == "csv":
        raise UsageError("--format csv is for --breaths and --callbacks: events have different arguments, ndjson shows them all")
    wrong = [option for option, name in (("--level", "level"), ("--name", "names")) if chosen and getattr(options, name)]
    if wrong:
        raise UsageError(f"{wrong[0]} chooses events: leave it out with --{chosen[0]}")


def print_rows(rows: Sequence[Row], form: str, stamp: str) -> None:
    """Print rows of equal columns as a table, csv or ndjson; what is not known is empty, null in ndjson.

    Without any row csv has its first column alone, called `stamp`.
    """
    if form == "ndjson":
        import orjson

        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            sys.stdout.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in part).decode())
    elif form == "csv":
        import csv

        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(rows[0] if rows else (stamp,))
        out.writerows(["" if value is None else value for value in row.values()] for row in rows)
    elif rows:
        _print_table(rows)


def _print_table(rows: Sequence[Row]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from ingest.view.marked import escape

    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if name in ("time", "app", "callback") else "right")
    for row in rows:
        table.add_row(*(escape(_cell(name, value)) for name, value in row.items()))
    console.print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "elapsed":
        return f"{value:.9f}"
    return f"{value:,}" if isinstance(value, int) and name != "breath" else str(value)


def breath_rows(recording: Timeline, stamp: tuple[str, Stamp], shift_ns: int, inside: Callable[[Int], Any]) -> list[Row]:
    """Return a row a breath, by when it began; `inside` selects the times that are asked for."""
    import numpy as np

    from ingest.read.snabb.breaths import breaths

    rows = breaths(recording)
    chosen = np.flatnonzero(inside(rows.start_ns + shift_ns))
    columns = (rows.start_ns + shift_ns, rows.number, rows.core, rows.cycles, rows.lasted_ns)
    whole = zip(*(column[chosen].tolist() for column in columns), strict=True)
    moved = _moved(chosen, rows.packets, rows.bytes, rows.bits)
    rates = rows.rate[chosen].tolist()
    return [
        {
            stamp[0]: stamp[1](at),
            "breath": number if number >= 0 else None,
            "core": core & 0xFFF,
            "node": core >> 12,
            "cycles": cycles,
            "ns": ns,
            **dict(zip(("packets", "bytes", "bits"), amounts, strict=True)),
            "cycles_a_packet": _ratio(cycles, amounts[0]),
            "rate": rate,
        }
        for (at, number, core, cycles, ns), amounts, rate in zip(whole, moved, rates, strict=True)
    ]


def callback_rows(recording: Timeline, stamp: tuple[str, Stamp], shift_ns: int, inside: Callable[[Int], Any]) -> list[Row]:
    """Return a row a callback, by when it ended; `inside` selects the times that are asked for."""
    import numpy as np

    from ingest.read.snabb.callbacks import CALLBACKS, callbacks
    from ingest.read.snabb.clock import nanoseconds

    rows = callbacks(recording, recording.lags())
    if not np.isfinite(rows.packets).any():
        say(NOT_LOGGED)
    ended = recording.stamp_ns[rows.end] + shift_ns
    chosen = np.flatnonzero(inside(ended))
    columns = (ended, recording.codes[rows.end], rows.cycles, nanoseconds(rows.cycles, recording.clock.hz), rows.rate)
    whole = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return [
        {
            stamp[0]: stamp[1](at),
            "app": recording.messages[code].app,
            "callback": CALLBACKS[recording.messages[code].name.lower()].rpartition(".")[2],
            "cycles": cycles,
            "ns": ns,
            "packets": packets,
            "bytes": volume,
            "cycles_a_packet": _ratio(cycles, packets),
            "rate": rate,
        }
        for (at, code, cycles, ns, rate), (packets, volume) in zip(whole, _moved(chosen, rows.packets, rows.bytes), strict=True)
    ]


def _moved(chosen: Int, *columns: Any) -> Iterator[tuple[int | float | None, ...]]:
    """Yield what rows moved: whole numbers where they are, None where it was not logged."""
    for amounts in zip(*(column[chosen].tolist() for column in columns), strict=True):
        yield tuple(None if math.isnan(amount) else int(amount) if amount == int(amount) else amount for amount in amounts)


def _ratio(cycles: int, packets: float | None) -> float | None:
    return round(cycles / packets, 3) if packets else None
