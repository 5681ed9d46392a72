"""Options that several commands share, each with the type of what a call says of it.

A command has a class `Options` of its own, made of the classes here and of its own fields; `@typed(Options)` hands it over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")


def typed(kind: type[Any]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Return a decorator that hands the options of a call to a command as one value of `kind`, called `options`."""
    names = {one.name for one in fields(kind)}

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        @wraps(command)
        def called(**given: Any) -> Result:
            own = {name: given.pop(name) for name in names.intersection(given)}
            return command(options=kind(**own), **given)

        return called

    return decorate


def stacked(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for several options, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class FormatOption(click.Option):
    """--input-format, whose help lists the table of formats; the table is imported when help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        from ingest.read.formats import names

        self.help = f"What all files are: {', '.join(names())}, or a .yml file that names columns."
        return super().get_help_record(ctx)


input_format = click.option(
    "--input-format",
    metavar="F",
    cls=FormatOption,
)
host_of_all = click.option("--host", metavar="H", help="Host of all logs, whatever names and folders say.")
reading_rest = stacked(
    click.option("--host-alias", "host_alias", metavar="A=B", multiple=True, help="Call host A by the name B."),
    click.option("--t0", metavar="T|mtime", help="Time zero of relative stamps; mtime takes it from file times."),
    click.option("--host-offset", "host_offset", metavar="H=MS", multiple=True, help="Add MS to the stamps of host H."),
    click.option("--recorded-unit", type=click.Choice(["ns", "us", "ms"]), help="Unit the tool recorded, if it does not say."),
    click.option("--fio-version", metavar="V", help="Version of fio that wrote the logs, where no JSON of it tells: 3.16."),
    click.option("--digits", type=click.IntRange(1, 5), help="Bin single events to so many digits [default: 1/128]."),
    click.option(
        "--prefer",
        type=click.Choice(["hist", "raw"]),
        default="hist",
        show_default=True,
        help="Which log to take where a histogram log and a raw log hold the same I/Os.",
    ),
    click.option("--keep-idle", is_flag=True, help="Take perf samples of idle CPUs, too, which are left out otherwise."),
    click.option("--tsc-hz", metavar="N", help="Frequency of a Snabb timeline's counter, if its own clock does not tell: 2.6e9."),
    click.option("--rate", metavar="N", help="Requests a second that were due (each log): gives response and wait time."),
    click.option("--intended-start-column", metavar="C", help="Column of an operation log with the time each was due."),
    click.option("--expected-interval", metavar="I", help="Add corrected data: requests were due every I, as in 10ms."),
    click.option(
        "--attribution",
        type=click.Choice(["completion", "in-flight"]),
        default="completion",
        show_default=True,
        help="Count an I/O where it completed, or by share in each window it was in flight.",
    ),
    click.option("--jobs", type=click.IntRange(1, 256), default=None, help="Processes that read logs [default: cores]."),
)

reading_options = stacked(input_format, host_of_all, reading_rest)
reading_without_host = stacked(input_format, reading_rest)  # where --host is an address


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How log files are read."""

    input_format: str | None
    host: str | None = None
    host_alias: tuple[str, ...]
    t0: str | None
    host_offset: tuple[str, ...]
    recorded_unit: str | None
    fio_version: str | None
    digits: int | None
    prefer: str
    keep_idle: bool
    tsc_hz: str | None
    rate: str | None
    intended_start_column: str | None
    expected_interval: str | None
    attribution: str
    jobs: int | None


loading_options = stacked(
    click.option(
        "--run", "run", required=True, metavar="ID", help="Name of the load; in an archive each permutation adds its path."
    ),
    click.option("--store", metavar="URL", help="Where to [default: $TAILBOARD_STORE, else sqlite:tailboard.db]."),
    click.option("--step", metavar="S", help="Stored step: 100ms, 1s, 5s, 10s, ... 1h [default: as the rows are wide]."),
    click.option("--force", is_flag=True, help="Allow a step finer than the rows (flagged)."),
    click.option("--label", "labels", metavar="K=V", multiple=True, help="A label of the run, to group and select by."),
    reading_options,
    click.option(
        "--offsets/--no-offsets", default=True, show_default=True, help="Store single events by offset in their second, too."
    ),
)


@dataclass(frozen=True, kw_only=True)
class Loading(Reading):
    """What is loaded into which store, and how."""

    run: str
    store: str | None
    step: str | None
    force: bool
    labels: tuple[str, ...]
    offsets: bool
    replace: bool = False


selecting_options = stacked(
    click.option("--run", "runs", metavar="GLOB", multiple=True, help="Runs to take, by id or name of the load."),
    click.option("--by", metavar="LABELS", default="", help="Group by host,op,job,kind,run,volume,... or a setting."),
    click.option("--where", metavar="K=GLOB", multiple=True, help="Only series whose label K matches."),
    click.option("--from", "begin", metavar="T", help="From: ISO 8601, epoch s or ms, +90s (from the start), now-15m."),
    click.option("--to", "end", metavar="T", help="Up to, likewise."),
    click.option("--merge-runs", is_flag=True, help="Add up different runs; otherwise each is a group of its own."),
)


@dataclass(frozen=True, kw_only=True)
class Selecting:
    """Which series of which runs, in which range, and how they are grouped."""

    runs: tuple[str, ...] = ()
    by: str
    where: tuple[str, ...]
    begin: str | None
    end: str | None
    merge_runs: bool = False


@dataclass(frozen=True, kw_only=True)
class Asking(Reading, Selecting):
    """A question to files or a store."""


step_options = stacked(
    click.option("--step", default="auto", show_default=True, metavar="S|auto|all", help="Window: 10s, 1m, about 150, or all."),
    click.option("--force", is_flag=True, help="Allow a step finer than the rows (flagged)."),
)

marks_option = click.option(
    "--marks",
    "marks",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Marks to draw: lines of time,text or time,end,text, or a JVM's GC log (-Xlog:gc*); may be repeated.",
)

time_option = click.option(
    "--time",
    "time_base",
    type=click.Choice(["utc", "local", "elapsed"]),
    default=None,
    help="Times as UTC, local time, or seconds from the run's start [default: utc].",
)


@dataclass(frozen=True, kw_only=True)
class Showing:
    """How an answer is written."""

    format: str
    unit: str = "ns"
    time_base: str | None = None


PERCENTILES = "50,95,99,99.9"
percentiles_option = click.option(
    "-p", "wanted", default=PERCENTILES, show_default=True, metavar="LIST", help="Percentiles, 0 to 100."
)
unit_option = click.option(
    "--unit", type=click.Choice(["ns", "us", "ms", "s"]), default="ns", show_default=True, help="Unit of latencies (csv, ndjson)."
)


def map_options(shading: str, highlight: str, *, shades: Sequence[str], hues: str) -> Callable[[Command], Command]:
    """Return the options of what draws a map: the option called `shading` among `shades`, --highlight, --time and --format.

    `highlight` and `hues` are the helps of --highlight and of the shading.
    """
    return stacked(
        click.option("--highlight", metavar="K=GLOB", multiple=True, help=highlight),
        click.option(shading, type=click.Choice(shades), default="rank", show_default=True, help=hues),
        time_option,
        click.option(
            "--format",
            type=click.Choice(["table", "csv", "ndjson", "png", "svg"]),
            default="table",
            show_default=True,
            help="table draws on the terminal; png and svg are pictures.",
        ),
    )


hgrm_options = stacked(
    unit_option,
    click.option("--ticks", type=click.IntRange(1, 1000), default=5, show_default=True, help="Rows a half distance (hgrm)."),
)

curve_options = stacked(
    click.option("--curves", is_flag=True, help="Percentile curves instead of bins."),
    click.option("--hgrm", metavar="FILE:UNIT", multiple=True, help="Another curve, from an hgrm file (UNIT ns, us, ms or s)."),
    click.option("--sla", metavar="FILE:UNIT", multiple=True, help="The steps of an SLA file, `x value [label]` a line."),
)
