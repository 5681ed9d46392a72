"""Options that several commands share, and how their texts become values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ingest.errors import InputError, UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_STORE = "sqlite:tailboard.db"


def stacked(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for several options, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


reading_options = stacked(
    click.option("--input-format", metavar="F", help="Take files for this format: fio-hist or fio-json."),
    click.option("--host", metavar="H", help="Host of all logs, whatever names and folders say."),
    click.option("--host-alias", "host_alias", metavar="A=B", multiple=True, help="Call host A by the name B."),
    click.option("--t0", metavar="T|mtime", help="Time zero of relative stamps; mtime takes it from file times."),
    click.option("--host-offset", "host_offset", metavar="H=MS", multiple=True, help="Add MS to the stamps of host H."),
    click.option("--recorded-unit", type=click.Choice(["ns", "us", "ms"]), help="Unit the tool recorded, if it does not say."),
    click.option(
        "--attribution",
        type=click.Choice(["completion", "in-flight"]),
        default="completion",
        show_default=True,
        help="Count an I/O where it completed, or by share in each window it was in flight.",
    ),
    click.option("--jobs", type=click.IntRange(1, 256), default=None, help="Processes that read logs [default: cores]."),
)

selecting_options = stacked(
    click.option("--run", "runs", metavar="GLOB", multiple=True, help="Runs to take, by id or name of the load."),
    click.option("--by", metavar="LABELS", default="", help="Group by host,op,job,kind,run,volume,... or a setting."),
    click.option("--where", metavar="K=GLOB", multiple=True, help="Only series whose label K matches."),
    click.option("--from", "begin", metavar="T", help="From: ISO 8601, epoch s or ms, +90s (from the start), now-15m."),
    click.option("--to", "end", metavar="T", help="Up to, likewise."),
    click.option("--merge-runs", is_flag=True, help="Add up different runs; otherwise each is a group of its own."),
)

step_options = stacked(
    click.option("--step", default="auto", show_default=True, metavar="S|auto|all", help="Window: 10s, 1m, about 150, or all."),
    click.option("--force", is_flag=True, help="Allow a step finer than the rows (flagged)."),
)

time_option = click.option(
    "--time",
    "time_base",
    type=click.Choice(["utc", "local", "elapsed"]),
    default=None,
    help="Times as UTC, local time, or seconds from the run's start [default: utc].",
)
unit_option = click.option(
    "--unit", type=click.Choice(["ns", "us", "ms", "s"]), default="ns", show_default=True, help="Unit of latencies (csv, ndjson)."
)


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return the pairs of repeated K=V options; UsageError if one has no `=`."""
    found = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
        found[name] = value
    return found


def read_options(
    run: str = "",
    *,
    input_format: str | None,
    host: str | None,
    host_alias: tuple[str, ...],
    t0: str | None,
    host_offset: tuple[str, ...],
    recorded_unit: str | None,
) -> Any:
    """Return the ReadOptions that the words of a call stand for."""
    from ingest.read import READERS
    from ingest.read.discover import ReadOptions
    from ingest.timing import UNITS_NS, parse_instant

    if input_format and input_format not in READERS:
        raise UsageError(f"no input format {input_format!r}: there are {', '.join(READERS)}")
    offsets = {}
    for name, text in pairs(host_offset, "--host-offset").items():
        try:
            offsets[name] = round(float(text) * UNITS_NS["ms"])
        except (ValueError, OverflowError):
            raise UsageError(f"--host-offset takes HOST=MS, not {name}={text}") from None
    return ReadOptions(
        run=run,
        input_format=input_format or "",
        host=host or "",
        host_alias=pairs(host_alias, "--host-alias"),
        host_offset_ns=offsets,
        t0=t0 if t0 in (None, "mtime") else parse_instant(str(t0)).ns,
        recorded_unit_ns=UNITS_NS[recorded_unit] if recorded_unit else None,
    )


def cores(jobs: int | None) -> int:
    """Return how many processes are to read: as asked, else as many as there are cores to run on."""
    if jobs:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split_sources(sources: tuple[str, ...]) -> tuple[list[str], list[Path]]:
    """Return the stores and the paths among the sources of a call; without any, the default store."""
    stores, paths = [], []
    for source in sources or (os.environ.get("TAILBOARD_STORE", DEFAULT_STORE),):
        if source.startswith(("sqlite:", "http://", "https://")):
            stores.append(source)
        elif source == "-":
            paths.append(_standard_input())
        else:
            paths.append(Path(source))
    if stores and paths:
        raise UsageError("ask a store or files, not both at once")
    if len(stores) > 1:
        raise UsageError("ask one store at a time")
    return stores, paths


def _standard_input() -> Path:
    """Return a temporary file with what standard input holds; readers look at a file twice, which a pipe cannot give."""
    import shutil
    import tempfile

    if sys.stdin.isatty():
        raise UsageError("- reads standard input, but nothing is piped into it")
    folder = Path(tempfile.mkdtemp(prefix="tailboard-"))
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "stdin_clat_hist.1.log"
    with path.open("wb") as out:
        shutil.copyfileobj(sys.stdin.buffer, out)
    if not path.stat().st_size:
        raise InputError("standard input is empty")
    with path.open("rb") as check:
        start = check.read(1 << 16)
    return path.rename(folder / "stdin.json") if start.lstrip()[:1] == b"{" else path
