"""Options that several commands share, each with the type of what a call says of it.

A command has a class `Options` of its own, made of the classes here and of its own fields; `@typed(Options)` hands it over.
Those that nothing is made of alone have fields and no methods: making these takes a millisecond a class at each start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from ingest.cli.shared.help import Choice

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")


def typed(kind: type[Any]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Return a decorator that hands the options of a call to a command as one value of `kind`, called `options`."""
    names = {field.name for field in fields(kind)}

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

        known = ", ".join(names())
        described = "or a .yml file that describes columns or histograms, or one that comes with tailboard (redis-latency ...)"
        self.help = f"Format of all files: {known}, {described}. [default: found by content]"
        return super().get_help_record(ctx)


input_format = click.option(
    "--input-format",
    metavar="F",
    cls=FormatOption,
)
host_of_all = click.option("--host", metavar="H", help="Host of all logs, in place of what file and folder names say.")
reading_rest = stacked(
    click.option("--host-alias", "host_alias", metavar="A=B", multiple=True, help="Rename host A to B."),
    click.option(
        "--t0",
        metavar="T|mtime",
        help="Start of the run, for logs with relative times; mtime: from the file's modification time.",
    ),
    click.option(
        "--host-offset",
        "host_offset",
        metavar="H=MS",
        multiple=True,
        help="Add MS milliseconds to all times of host H (clock correction).",
    ),
    click.option(
        "--recorded-unit",
        type=Choice(["ns", "100ns", "us", "ms"]),
        help="Unit of the recorded values, for logs that do not state it (100ns: ticks of .NET on Windows).",
    ),
    click.option(
        "--fio-version",
        metavar="V",
        help="Version of fio that wrote the logs, such as 3.16, where no fio JSON states it.",
    ),
    click.option(
        "--digits",
        type=click.IntRange(1, 5),
        help="Precision of bins for single operations, in significant digits [default: 1/128].",
    ),
    click.option(
        "--prefer",
        type=Choice(["hist", "raw"]),
        default="hist",
        show_default=True,
        help="Which log to read where a histogram log and a raw log hold the same I/Os.",
    ),
    click.option("--keep-idle", is_flag=True, help="Also count perf samples of idle CPUs."),
    click.option(
        "--tsc-hz",
        metavar="N",
        help="Frequency of a Snabb timeline's counter in Hz, such as 2.6e9, if its own clock does not give it.",
    ),
    click.option("--rate", metavar="N", help="Planned requests per second (of each log): adds response time and wait time."),
    click.option("--intended-start-column", metavar="C", help="Column of an operation log that holds the planned start time."),
    click.option(
        "--expected-interval",
        metavar="I",
        help="Add data corrected for coordinated omission; a request was planned every I, such as 10ms.",
    ),
    click.option(
        "--attribution",
        type=Choice(["completion", "in-flight"]),
        default="completion",
        show_default=True,
        help="Count an I/O in the window where it completed, or by its share in each window it was in flight.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        default=None,
        help="Number of processes that read logs [default: number of cores; 1 for small logs].",
    ),
)

layer_label = click.option(
    "--label",
    "labels",
    metavar="layer=L",
    multiple=True,
    help="Where the files timed operations: layer=client, service or device (other labels are those of a load).",
)
run_labels = click.option(
    "--label",
    "labels",
    metavar="K=V",
    multiple=True,
    help="Label of the run, for --by and --where; layer=client, service or device: where these files timed operations.",
)
reading_options = stacked(input_format, layer_label, host_of_all, reading_rest)
reading_without_host = stacked(input_format, layer_label, reading_rest)  # where --host is an address


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Reading:
    """How log files are read."""

    input_format: str | None
    labels: tuple[str, ...]
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
        "--run", "run", required=True, metavar="ID", help="Name of the run; in an archive of several runs each adds its path."
    ),
    click.option("--store", metavar="URL", help="Store to write to [default: $TAILBOARD_STORE, else sqlite:tailboard.db]."),
    click.option(
        "--step",
        metavar="S",
        help="Width of stored windows: 100ms, 1s, 5s, 10s, ... 1h [default: the interval of the logs].",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Allow a step finer than the interval of the logs; counts are then spread evenly, and marked.",
    ),
    run_labels,
    input_format,
    host_of_all,
    reading_rest,
    click.option(
        "--offsets/--no-offsets",
        default=True,
        show_default=True,
        help="Also store when within its second each single operation happened.",
    ),
)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Loading(Reading):
    """What is loaded into which store, and how."""

    run: str
    store: str | None
    step: str | None
    force: bool
    offsets: bool
    replace: bool = False


selecting_options = stacked(
    click.option("--run", "runs", metavar="GLOB", multiple=True, help="Only runs whose name matches GLOB."),
    click.option(
        "--by",
        metavar="LABELS",
        default="",
        help="One group for each value of these labels: host,op,job,kind,layer,run,volume,... or a setting.",
    ),
    click.option("--where", metavar="K=GLOB", multiple=True, help="Only data whose label K matches GLOB."),
    click.option(
        "--from",
        "begin",
        metavar="T",
        help="Start of the range: ISO 8601, epoch s or ms, +90s (after the start of the run), now-15m.",
    ),
    click.option("--to", "end", metavar="T", help="End of the range, in the same forms."),
    click.option("--merge-runs", is_flag=True, help="Merge the selected runs; without it each run is a group of its own."),
)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Selecting:
    """Which series of which runs, in which range, and how they are grouped."""

    runs: tuple[str, ...] = ()
    by: str
    where: tuple[str, ...]
    begin: str | None
    end: str | None
    merge_runs: bool = False


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Asking(Reading, Selecting):
    """A question to files or a store."""


step_options = stacked(
    click.option(
        "--step",
        default="auto",
        show_default=True,
        metavar="S|auto|all",
        help="Width of windows, such as 10s; auto: about 150 windows (table of percentiles: 20); all: one.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Allow a step finer than the interval of the logs; counts are then spread evenly, and marked.",
    ),
)


def marks_for(purpose: str) -> Callable[[Command], Command]:
    """Return the option --marks, which names files of marks, with what they are for as its help."""
    return click.option("--marks", "marks", metavar="FILE", multiple=True, type=click.Path(path_type=Path), help=purpose)


marks_option = marks_for(
    "File of marks to draw: lines of time,text or time,end,text, or a JVM's GC log (-Xlog:gc*); may be repeated."
)

time_option = click.option(
    "--time",
    "time_base",
    type=Choice(["utc", "local", "elapsed"]),
    default=None,
    help="Show times as UTC, local time, or seconds since the start of the run [default: utc].",
)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Showing:
    """How an answer is written."""

    format: str
    unit: str = "ns"
    time_base: str | None = None
    every: bool = False


all_option = click.option(
    "--all",
    "every",
    is_flag=True,
    help="table: every row, in windows as fine as those of csv; without it about 20 windows, or 20 to 30 ranges of latency.",
)

PERCENTILES = "50,95,99,99.9"
percentiles_option = click.option(
    "-p", "wanted", default=PERCENTILES, show_default=True, metavar="LIST", help="Percentiles, 0 to 100."
)
unit_option = click.option(
    "--unit", type=Choice(["ns", "us", "ms", "s"]), default="ns", show_default=True, help="Unit of latencies (csv, ndjson)."
)


def map_options(shading: str, highlight: str, *, shades: Sequence[str], hues: str) -> Callable[[Command], Command]:
    """Return the options of what draws a map: the option called `shading` among `shades`, --highlight, --time and --format.

    `highlight` and `hues` are the helps of --highlight and of the shading.
    """
    return stacked(
        click.option("--highlight", metavar="K=GLOB", multiple=True, help=highlight),
        click.option(shading, type=Choice(shades), default="rank", show_default=True, help=hues),
        time_option,
        click.option(
            "--format",
            type=Choice(["table", "csv", "ndjson", "png", "svg"]),
            default="table",
            show_default=True,
            help="table: drawn on the terminal; png, svg: picture.",
        ),
    )


hgrm_options = stacked(
    unit_option,
    click.option(
        "--ticks",
        type=click.IntRange(1, 1000),
        default=5,
        show_default=True,
        help="Rows for each halving of the distance to 100 % (hgrm).",
    ),
)

curve_options = stacked(
    click.option("--curves", is_flag=True, help="Percentile curves in place of bins."),
    click.option(
        "--hgrm",
        metavar="FILE:UNIT",
        multiple=True,
        help="Also draw the curve of an hgrm file; UNIT is ns, us, ms or s.",
    ),
    click.option(
        "--sla",
        metavar="FILE:UNIT",
        multiple=True,
        help="Also draw the steps of an SLA file: one `x value [label]` per line.",
    ),
)
