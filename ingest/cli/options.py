"""Options of commands: each is declared once, as a field of a class, and comes to the command as a value of that field.

    class Options(Asking, Showing):
        force: bool = option("--force", help="...")

    @command(Options)
    def heatmap(options: Options) -> None:

The field gives its option the name, and by its type the rest: `bool` is a flag, a `tuple` may be repeated, `int` and `Path` are
read as such, what has neither a default nor `| None` is required. A field with a plain value as its default is no option of this
command. In which order --help shows options is said in `help.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import click

from ingest.api import words as of_call
from ingest.cli.completion import file_names, label_names, label_values, run_names
from ingest.cli.help import INSTEAD, Choice, Command, place_of
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.read.sources import ReadOptions

Said = TypeVar("Said", bound="CallOptions")


class Declared:
    """An option or argument as it is declared: what click is told of it beside what the field says."""

    def __init__(self, kind: type[click.Option | click.Argument], names: tuple[str, ...], words: dict[str, Any]) -> None:
        self.kind, self.names, self.words = kind, names, words
        self.printed = words.pop("printed", "")  # of --format: array where json is one of the objects of ndjson

    def parameter(self, name: str, annotation: str) -> click.Option | click.Argument:
        """Return what click reads for a field of this name and type."""
        one, optional = annotation.removesuffix(" | None"), annotation.endswith(" | None")
        repeated, one = one.startswith("tuple["), one.removeprefix("tuple[").removesuffix(", ...]")
        words = {"type": {"Path": click.Path(path_type=Path), "int": int}.get(one), **self.words}
        if words.pop("files", words.get("metavar") == "FILE" and one == "str"):
            words["shell_complete"] = file_names
        if issubclass(self.kind, click.Argument):
            return self.kind([name], **{"nargs": -1 if repeated else 1, "required": not optional, **words})
        if choices := words.pop("choices", None):
            words |= {"type": Choice(choices)} if optional else {"type": Choice(choices), "default": choices[0]}
        default = words.get("default")
        words |= {"is_flag": True} if one == "bool" else {"multiple": repeated}
        words["required"] = self.words.get("required", one != "bool" and default is None and not (optional or repeated))
        return self.kind([*self.names, name], **({"show_default": True} if default else {}) | words)


def option(*names: str, **words: Any) -> Any:
    """Return the declaration of an option, for the default of a field; `words` are those of click.Option, and `choices`.

    `choices` are the words that it takes, the first by default unless the field may be None. Shells complete a metavar FILE.
    """
    return Declared(words.pop("cls", click.Option), names, words)


def formats(*names: str, **words: Any) -> Any:
    """Return the declaration of --format: in which of these forms a command prints, the first by default.

    Beside ndjson there is json, one array of the same objects, unless the command has its own among `names`.
    """
    own = "json" in names
    every = [form for name in names for form in (("json", name) if name == "ndjson" and not own else (name,))]
    return option("--format", choices=every, printed="own" if own else "array", **words)


def argument(metavar: str, **words: Any) -> Any:
    """Return the declaration of an argument, for the default of a field; `files`: shells complete names of files."""
    return Declared(click.Argument, (), {"metavar": metavar, **words})


@dataclass_transform(kw_only_default=True, frozen_default=True)
class CallOptions:
    """Base of classes of options: frozen records of fields, as dataclasses are, which take half a millisecond each to make."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be changed: what a call says stays as it is")

    @classmethod
    def fields(cls) -> dict[str, str]:
        """Return the type of each field as it is written, by name; a field that is declared again stays in its place."""
        return {name: str(of) for kind in reversed(cls.__mro__) for name, of in get_annotations(kind).items()}

    def but(self, **changes: Any) -> Self:
        """Return the same with some fields changed."""
        return type(self)(**{**vars(self), **changes})


def command(
    kind: type[Said], name: str | None = None, *, group: click.Group | None = None, **words: Any
) -> Callable[[Callable[[Said], int | None]], click.Command]:
    """Return a decorator that makes a command of a function of one value, in which a class of options has what a call says.

    The command has the function's name, or `name`, and is one of `group` where it is given. `words` are those of click.Command.
    """

    def decorate(function: Callable[[Said], int | None]) -> click.Command:
        form = next((own for own in kind.fields() if getattr(getattr(kind, own, None), "printed", "")), "")

        @wraps(function)
        def called(**given: Any) -> int | None:
            if "sources" in given and given.get("store"):
                given["sources"] = (*given["sources"], given["store"])
            if not form:
                return function(kind(**given))
            array, pages = getattr(kind, form).printed == "array", getattr(kind, "output", OUTPUT) is not OUTPUT
            with printed_as(given, form, array=array, pages=pages):
                return function(kind(**given))

        make = group.command if group else lambda *about, **more: click.command(*about, cls=Command, **more)
        made: click.Command = make(name or function.__name__.strip("_"), **words)(called)
        declared = ((getattr(kind, own, None), own, of) for own, of in kind.fields().items())
        made.params = [one.parameter(own, of) for one, own, of in declared if isinstance(one, Declared)]
        made.params.sort(key=lambda one: place(made.name or "", one))
        return made

    return decorate


ENDINGS = {
    "txt": "table",
    "md": "markdown",
    "jsonl": "ndjson",
    "xml": "junit",
}  # of files, and formats; others are called as they are


@contextmanager
def printed_as(given: dict[str, Any], form: str, *, array: bool, pages: bool) -> Iterator[None]:
    """Have what a command prints go to the file that -o names, in the format of its ending; an array of JSON be one.

    `given` are the options of the call by their fields, of which `form` says the format: they become what the command is to do.
    With `array` json is an array of what ndjson has; with `pages` a command writes files of other endings by itself.
    """
    from ingest.cli.output import as_array, written_to

    context = click.get_current_context()
    of_format = next(one for one in context.command.params if one.name == form)
    known = list(of_format.type.choices)  # type: ignore[attr-defined]
    output = given.get("output")
    ending = (output or "").rpartition(".")[2].lower() if "." in (output or "") else ""
    ending = ENDINGS.get(ending, ending)
    target = None
    if output and output in known:
        raise UsageError(f"-o names a file: --format {output} prints it, -o out.{output} writes one")
    if output and not (pages and ending not in known):
        if context.get_parameter_source(form) is not click.core.ParameterSource.COMMANDLINE:
            if ending in INSTEAD:
                raise UsageError(f"-o {output}: {INSTEAD[ending]}; here are {', '.join(known)}")
            given[form] = ending if ending in known else given[form]
        target, given["output"] = output, None
    shape: AbstractContextManager[None] = nullcontext()
    if given[form] == "markdown":
        from ingest.view.terminal.tables import MarkdownConsole, written_on

        given[form], shape = "table", written_on(MarkdownConsole())
    elif given[form] == "json" and array:
        given[form], shape = "ndjson", as_array()
    with written_to(target or "-"), shape:
        yield


def place(command_name: str, one: click.Parameter) -> tuple[bool, int]:
    """Return where an option or argument of a command stands: arguments first, the one that takes many last of them."""
    if isinstance(one, click.Argument):
        return False, -one.nargs
    return True, place_of(command_name, one.name or "")


class FormatOption(click.Option):
    """--input-format, whose help lists the table of formats; the table is imported when help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        from ingest.read.described.description import presets
        from ingest.read.formats import names

        known = ", ".join((*names(), *presets()))
        described = "or a .yml file that describes columns or histograms"
        self.help = f"Format of all files: {known}, {described}. [default: found by content]"
        return super().get_help_record(ctx)


SOURCES = argument("[SOURCE]...", required=False, files=True)
PATHS = argument("PATH...", files=True)
OUTPUT = option("-o", "--output", metavar="FILE", help="Write to this file; its ending says the format: .csv, .json, .png ...")
STEP = option(
    "--step",
    default="auto",
    metavar="S|auto|all",
    help="Width of windows, such as 10s; auto: about 150 windows (table of percentiles: 20); all: one.",
)
FORCE = option("--force", help="Allow a step finer than the interval of the logs; counts are then spread evenly, and marked.")
BEGIN_OF_EACH = option(
    "--from",
    metavar="T",
    help="Start of the range: 21:00:30, +90s (after the start of each run), ISO 8601, epoch s or ms, now-15m, or steady.",
)
END = option("--to", metavar="T", help="End of the range, in the same forms.")
WHERE = option(
    "--where",
    metavar="K=GLOB",
    shell_complete=label_values,
    help="Only data whose label K matches GLOB (K!=GLOB: does not); of several of one label any may match.",
)
RUNS = option("--run", metavar="GLOB", shell_complete=run_names, help="Only runs whose name matches GLOB.")
STORE = option("--store", metavar="URL", help="Store to use [default: $TAILBOARD_STORE, else sqlite:tailboard.db].")
PERCENTILES = "50,95,99,99.9"
WANTED = option("-p", default=PERCENTILES, metavar="LIST", help="Percentiles, 0 to 100, such as 99 (not 0.99).")
TIME_BASE = option(
    "--time",
    choices=["utc", "local", "elapsed"],
    help="Show times as UTC, local time, or seconds since the start of the run [default: utc].",
)
UNIT = option("--unit", choices=["ns", "us", "ms", "s"], help="Unit of latencies (csv, ndjson).")
EVERY = option(
    "--all",
    help="table: every row, in windows as fine as those of csv; without it about 20 windows, or 20 to 30 ranges of latency.",
)
TICKS = option("--ticks", type=click.IntRange(1, 1000), default=5, help="Rows for each halving of the distance to 100 % (hgrm).")
MAP_FORMAT = formats("table", "csv", "ndjson", "png", "svg", help="table: drawn on the terminal; png, svg: picture.")


class InStore(CallOptions):
    """The runs of a store that a call is about; the store may be named beside them."""

    named: tuple[str, ...] = argument("[STORE] [RUN]...", required=False, shell_complete=run_names)
    store: str | None = STORE


def marks_for(purpose: str) -> Any:
    """Return the option --marks, which names files of marks, with what they are for as its help."""
    return option("--marks", metavar="FILE", help=purpose)


MARKS = marks_for("File of marks to draw: lines of time,text or time,end,text, or a JVM's GC log (-Xlog:gc*); may be repeated.")


class Reading(CallOptions):
    """How log files are read."""

    input_format: str | None = option("--input-format", metavar="F", cls=FormatOption)
    labels: tuple[str, ...] = option(
        "--label",
        metavar="layer=L",
        help="Where the files timed operations: layer=client, service or device (other labels are those of a load).",
    )
    failed: tuple[str, ...] = option(
        "--failed", metavar="LABEL=GLOB", help="Which operations failed, by a label of them: 'tag=err*', 'op=*-failed'."
    )
    host: str | None = option("--host", metavar="H", help="Host of all logs, in place of what file and folder names say.")
    host_alias: tuple[str, ...] = option("--host-alias", metavar="A=B", help="Rename host A to B.")
    t0: str | None = option(
        "--t0",
        metavar="T|mtime",
        help="Start of the run, for logs with relative times; mtime: from the file's modification time.",
    )
    host_offset: tuple[str, ...] = option(
        "--host-offset", metavar="H=MS", help="Add MS milliseconds to all times of host H (clock correction)."
    )
    recorded_unit: str | None = option(
        "--recorded-unit",
        choices=["ns", "100ns", "us", "ms", "s"],
        help="Unit of the recorded values, for logs that do not state it (100ns: ticks of .NET on Windows).",
    )
    fio_version: str | None = option(
        "--fio-version", metavar="V", help="Version of fio that wrote the logs, such as 3.16, where no fio JSON states it."
    )
    digits: int | None = option(
        "--digits",
        type=click.IntRange(1, 5),
        help="Precision of bins for single operations, in significant digits [default: 1/128].",
    )
    prefer: str = option(
        "--prefer", choices=["hist", "raw"], help="Which log to read where a histogram log and a raw log hold the same I/Os."
    )
    keep_idle: bool = option("--keep-idle", help="Also count perf samples of idle CPUs.")
    tsc_hz: str | None = option(
        "--tsc-hz",
        metavar="N",
        help="Frequency of a Snabb timeline's counter in Hz, such as 2.6e9, if its own clock does not give it.",
    )
    rate: str | None = option(
        "--rate", metavar="N", help="Planned requests per second (of each log): adds response time and wait time."
    )
    intended_start_column: str | None = option(
        "--intended-start-column", metavar="C", help="Column of an operation log that holds the planned start time."
    )
    expected_interval: str | None = option(
        "--expected-interval",
        metavar="I",
        help="Add data corrected for coordinated omission; a request was planned every I, such as 10ms.",
    )
    attribution: str = option(
        "--attribution",
        choices=["completion", "in-flight"],
        help="Count an I/O in the window where it completed, or by its share in each window it was in flight.",
    )
    jobs: int | None = option(
        "--jobs",
        type=click.IntRange(1, 256),
        help="Number of processes that read logs [default: number of cores; 1 for small logs].",
    )


class Asking(Reading):
    """A question to files or a store: which series of which runs, in which range, and how they are grouped."""

    sources: tuple[str, ...] = SOURCES
    store: str | None = option("--store", metavar="URL", help="The same as a store among the sources.")
    runs: tuple[str, ...] = RUNS
    by: str = option(
        "--by",
        metavar="LABELS",
        shell_complete=label_names,
        default="",
        help="One group for each value of these labels: host,op,job,kind,layer,outcome,run,volume,... or a setting.",
    )
    where: tuple[str, ...] = WHERE
    begin: str | None = option(
        "--from",
        metavar="T",
        help="Start of the range: 21:00:30, +90s (after the start of the run), ISO 8601, epoch s or ms, now-15m, or steady.",
    )
    end: str | None = END
    failures: str = option(
        "--failures",
        choices=[*of_call.FAILURES],
        help="Rank failed operations above all others, show them apart (--by outcome), or leave them out.",
    )
    merge_runs: bool = option("--merge-runs", help="Merge the selected runs; without it each run is a group of its own.")


class Showing(CallOptions):
    """How an answer is written; a command declares those of these that it has as options."""

    format: str
    output: str | None = OUTPUT
    unit: str = "ns"
    time_base: str | None = None
    every: bool = False


def read_options(reading: Reading, run: str = "", *, loads: bool = False) -> ReadOptions:
    """Return how files are read, as the options of a call say; UsageError for what cannot be.

    `loads`: labels of the call may be those of the run, which are not for reading.
    """
    return of_call.read_options(run, loads=loads, **reading_of(reading))


def reading_of(reading: Reading) -> of_call.Reading:
    """Return what the options of a call say of how files are read."""
    return {name: getattr(reading, name) for name in of_call.Reading.__annotations__}  # type: ignore[return-value]
