"""Options that several commands share, and how their texts become values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ingest.errors import InputError, UsageError
from ingest.plain import as_text

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_STORE = "sqlite:tailboard.db"
SCHEDULE = ("rate", "intended_start_column", "expected_interval")
EVENTS = ("fio_version", "digits", "prefer", "keep_idle", "tsc_hz")
VERSION = re.compile(r"^(fio-)?\d{1,3}\.\d{1,4}(\.\d{1,4})?(-.*)?$")
FREQUENCY = re.compile(r"^(\d{1,12}(?:\.\d{1,9})?(?:e\d{1,2})?) ?(?:([kMG]?)Hz)?$", re.IGNORECASE)
HERTZ, FASTEST_HZ = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}, 9 * 10**9
RATE = re.compile(r"^\d{1,12}(\.\d{1,9})?$")


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
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        default=None,
        help="Processes that read logs [default: cores; 1 for small logs].",
    ),
)

reading_options = stacked(input_format, host_of_all, reading_rest)
reading_without_host = stacked(input_format, reading_rest)  # where --host is an address

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


def curve_files(hgrm: tuple[str, ...], sla: tuple[str, ...]) -> list[Any]:
    """Return the curves of files named as FILE:UNIT; UsageError where the unit is not said."""
    from ingest.read.hgrm import read_hgrm, read_sla
    from ingest.timing import UNITS_NS

    found = []
    for texts, option, reader in ((hgrm, "--hgrm", read_hgrm), (sla, "--sla", read_sla)):
        for text in texts:
            name, _, unit = text.rpartition(":")
            if unit not in ("ns", "us", "ms", "s") or not name:
                raise UsageError(f"{option} {text}: the file does not say its unit: {text}:ms, for example")
            found.append(reader(Path(name), UNITS_NS[unit]))
    return found


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return the pairs of repeated K=V options; UsageError if one has no `=`."""
    found = {}
    for text in map(as_text, texts):
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
    rate: str | None = None,
    intended_start_column: str | None = None,
    expected_interval: str | None = None,
    fio_version: str | None = None,
    digits: int | None = None,
    prefer: str = "hist",
    keep_idle: bool = False,
    tsc_hz: str | None = None,
) -> Any:
    """Return the ReadOptions that the words of a call stand for."""
    from ingest.read.description import is_description, parse_description
    from ingest.read.formats import names as format_names
    from ingest.read.sources import ReadOptions
    from ingest.timing import MOST_NS, UNITS_NS, parse_duration, parse_instant

    described = bool(input_format) and is_description(str(input_format))
    if input_format and not described and input_format not in format_names():
        words = ", ".join(format_names())
        raise UsageError(f"no input format {input_format!r}: there are {words}, or a file that describes one (events.yml)")
    if fio_version and not VERSION.match(fio_version):
        raise UsageError(f"--fio-version takes what fio --version says, such as 3.33, not {fio_version!r}")
    if rate and (not RATE.match(rate) or not float(rate)):
        raise UsageError(f"--rate takes requests a second, such as 1000, not {rate!r}")
    offsets = {}
    for name, text in pairs(host_offset, "--host-offset").items():
        try:
            offsets[name] = round(float(text) * UNITS_NS["ms"])
        except (ValueError, OverflowError):
            offsets[name] = MOST_NS
        if abs(offsets[name]) >= MOST_NS:
            raise UsageError(f"--host-offset takes HOST=MS, not {name}={text}")
    return ReadOptions(
        run=as_text(run),
        input_format="" if described else input_format or "",
        host=as_text(host or ""),
        host_alias=pairs(host_alias, "--host-alias"),
        host_offset_ns=offsets,
        t0=t0 if t0 in (None, "mtime") else parse_instant(str(t0)).ns,
        recorded_unit_ns=UNITS_NS[recorded_unit] if recorded_unit else None,
        expected_interval_ns=parse_duration(expected_interval) if expected_interval else 0,
        rate=rate or "",
        intended_column=intended_start_column or "",
        digits=digits or 0,
        prefer=prefer,
        keep_idle=keep_idle,
        fio_version=tuple(int(part) for part in re.findall(r"\d+", fio_version)[:3]) if fio_version else None,
        description=parse_description(Path(str(input_format))) if described else None,
        tsc_hz=frequency(tsc_hz) if tsc_hz else 0,
    )


def frequency(text: str) -> int:
    """Return a frequency in Hz; UsageError unless it is one of a counter that runs at 1 MHz to 9 GHz."""
    found = FREQUENCY.match(text)
    hz = round(float(found[1]) * HERTZ[(found[2] or "").lower()]) if found else 0
    if not HERTZ["m"] <= hz <= FASTEST_HZ:
        raise UsageError(f"--tsc-hz takes a frequency from 1 MHz to 9 GHz, such as 2.6e9 or 2600MHz, not {text!r}")
    return hz


def store_url(named: str | None) -> str:
    """Return the URL that --store names, else that of the default store."""
    return named or os.environ.get("TAILBOARD_STORE", DEFAULT_STORE)


def split_sources(sources: tuple[str, ...]) -> tuple[list[str], list[Path]]:
    """Return the stores and the paths among the sources of a call; without any, the default store."""
    from ingest.query.origin import is_store

    stores, paths = [], []
    for source in sources or (store_url(None),):
        if is_store(source):
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
    """Return a temporary file with what standard input holds; readers look at a file twice, which a pipe cannot give.

    It and its folder are called stdin, so that runs and processes have the same names each time; compressed data gets its ending.
    """
    import atexit
    import shutil
    import tempfile

    from ingest.read.formats import STDIN
    from ingest.read.text import ending_of

    if sys.stdin.isatty():
        raise UsageError("- reads standard input, but nothing is piped into it")
    folder = Path(tempfile.mkdtemp(prefix="tailboard-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / STDIN / STDIN
    path.parent.mkdir()
    with path.open("wb") as out:
        shutil.copyfileobj(sys.stdin.buffer, out)
    if not path.stat().st_size:
        raise InputError("standard input is empty")
    with path.open("rb") as check:
        ending = ending_of(check.read(8))
    return path.rename(path.with_name(STDIN + ending)) if ending else path
