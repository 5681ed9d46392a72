"""The command line: the only place that prints or exits. One file a command, named after it and imported when it is called."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

# Before NumPy is imported: nothing here multiplies matrices, and OpenBLAS's idle threads spin on the cores that read logs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Importing makes many objects that stay and hardly any garbage: looking through them all 50 times costs 10 ms of start-up.
gc.set_threshold(100_000, 50, 50)

import click

from ingest import __version__
from ingest.cli.help import MODES, Choice, Group
from ingest.cli.output import (
    INTERRUPTED,
    WAITING,
    ReaderGoneError,
    UnwritableError,
    drop_output,
    hold_streams,
    of_the_system,
    say,
)
from ingest.core.errors import InputError, TailboardError

SUMMARIES = {
    "Look at logs, or at a store": {
        "inspect": "What tailboard makes of each file, and why it skips some",
        "percentiles": "Latency percentiles over time",
        "show": "Heat map, distribution, offsets, events",
        "explain": "What happened in a run: which host, when, how bad",
    },
    "Judge runs": {
        "check": "Were the promised latencies kept; --capacity: up to which load",
        "compare": "Two runs, with a verdict; --trend: all runs in order",
    },
    "Show others": {
        "report": "One offline HTML file; --live: it grows; --card: a picture",
        "export": "All data as csv, or as a log for HdrHistogram's tools",
    },
    "Keep in a store": {
        "record": "Poll a server for its histograms; have CBT's fio write them",
        "load": "Load logs, each sample once; --follow: while they grow",
        "runs": "List, verify, delete, coarsen and mark runs",
        "store": "Prepare Elasticsearch and Kibana; is a store well",
    },
}
PARTS = {  # what is said of the commands of these
    "show": {
        "heatmap": "Latency over time as a picture, or its counts",
        "distribution": "How latencies are distributed over the whole time",
        "offsets": "When within each second (minute, hour) operations happen",
        "events": "The events of a Snabb timeline, each with its lag",
    },
    "record": {
        "sample": "Ask a server for its histograms on a clock, into a file",
        "fio": "Make CBT's fio write histogram logs",
    },
    "store": {
        "setup": "Prepare Elasticsearch and Kibana",
        "doctor": "Is a store well, and what to do where it is not",
        "replay": "Send again what Elasticsearch refused",
    },
}
MODULES = {"fio": "wrap-fio"}  # of parts whose module is called otherwise
COMMANDS = {  # modules of this package, imported when they are called, and as what; their names are commands, too
    **{name: name for commands in SUMMARIES.values() for name in commands if name not in PARTS},
    **{MODULES.get(name, name): f"{group} {name}" for group, parts in PARTS.items() for name in parts},
    **{module: f"{name} {flag}" for name, modes in MODES.items() for flag, (module, _) in modes.items()},
    "mark": "runs mark",
    "demo": "demo",
}
INTERNAL = 70
COMPLETION = "_TAILBOARD_COMPLETE"  # the variable by which shells ask for words


def command_of(module: str) -> click.Command:
    """Return the command of a module."""
    name = module.replace("-", "_")
    made: click.Command = getattr(import_module(f"ingest.cli.{name}"), name)
    return made


class Part(Group):
    """A command with commands that are modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(PARTS[self.name or ""])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one of them, or None if there is none of this name."""
        known = cmd_name in PARTS[self.name or ""]
        return command_of(MODULES.get(cmd_name, cmd_name)) if known else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write them, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(PARTS[self.name or ""].items()))


class Commands(Group):
    """The commands, each imported from its file when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of --help."""
        return [name for commands in SUMMARIES.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if there is none of this name; those that are a part of another have theirs, too."""
        if cmd_name in PARTS:
            summaries = {name: text for commands in SUMMARIES.values() for name, text in commands.items()}
            return Part(cmd_name, help=f"{summaries[cmd_name]}.", context_settings=self.context_settings)
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def named(self, ctx: click.Context) -> Mapping[str, str]:
        """Return all commands, as they are called."""
        return COMMANDS | {name: name for name in PARTS}

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named first, as an option makes it another one.

        `help COMMAND` and `version` are as other programs have them.
        """
        if args[0] == "help":
            args = [*([] if args[1:] == ["all"] else args[1:]), "--help"]
        if args[0] in ("--help", "version"):
            click.echo(ctx.get_help() if args[0] == "--help" else f"tailboard {__version__}")
            ctx.exit()
        words = args[: args.index("--")] if "--" in args else args
        for flag, (module, _) in MODES.get(args[0], {}).items():
            if flag in words:
                at = words.index(flag)
                return f"{args[0]} {flag}", command_of(module), [*args[1:at], *args[at + 1 :]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; memory that it frees is kept for what it reads next."""
        from ingest.core.pool import keep_freed_memory  # ctypes and pickle, which --help does without

        keep_freed_memory()
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for, without importing any."""
        widest = max(map(len, self.list_commands(ctx)))
        for title, commands in SUMMARIES.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), summary) for name, summary in commands.items()])


def _print_completion(ctx: click.Context, _option: click.Parameter, shell: str | None) -> None:
    """Print what a shell reads in to complete the words of a call."""
    if shell is None or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    click.echo(kind(tailboard, {}, "tailboard", COMPLETION).source() if kind else "")
    ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tailboard")
@click.option(
    "--completion",
    type=Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the script that makes a shell complete commands, options and files, and exit.",
)
def tailboard() -> None:
    """Exact latency percentiles over time, from the histograms that benchmarks leave behind.

    \b
    Examples:
      tailboard inspect ./cbt-archive
      tailboard percentiles ./cbt-archive -p 50,95,99,99.9 --step 10s --by op
      tailboard load ./cbt-archive --run nightly-42
      tailboard report --run 'nightly-42*' -o report.html

    A SOURCE is a store (sqlite:x.db, http://host:9200), log files or folders, or - for standard input. Without a SOURCE
    tailboard reads the store in $TAILBOARD_STORE, or sqlite:tailboard.db. Latencies are in ns (--unit changes that),
    times in UTC. Data goes to stdout, everything else to stderr. Exit status: 0 done, 1 objective violated, 2 wrong usage,
    3 input refused, 4 store unavailable, 5 cannot be determined, 70 internal error, 130 interrupted.

    \b
    Completion in bash (zsh, fish alike), for ~/.bashrc:
      eval "$(tailboard --completion bash)"
    """


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with the status of the contract; no traceback reaches the user."""
    hold_streams()
    WAITING.begin(" ".join(["tailboard", *(sys.argv[1:] if arguments is None else arguments)[:1]]))
    status = run(arguments)
    WAITING.over()
    atexit._run_exitfuncs()  # noqa: SLF001  # what was asked to happen at the end happens
    with suppress(ReaderGoneError, UnwritableError):  # a command that failed may have printed before, and said why it failed
        sys.stdout.flush()
    sys.stderr.flush()
    # Taking NumPy's modules apart object by object would take longer than a small query.
    os._exit(status)


def run(arguments: list[str] | None = None) -> int:
    """Return the exit status of a command."""
    try:
        status: Any = tailboard.main(arguments, prog_name="tailboard", complete_var=COMPLETION, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        more = f" ({context.command_path} --help)" if context and "--help" not in error.format_message() else ""
        say(error.format_message().rstrip(".") + more)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted; a load that was cut off is completed by running it again")
        return INTERRUPTED
    except TailboardError as error:
        say(error)
        return error.exit_status
    except ReaderGoneError:
        drop_output()  # that is no error
        return 0
    except MemoryError:
        say("out of memory; ask for fewer groups (--by) or a larger --step")
        return INTERNAL
    except OSError as error:
        if (sentence := of_the_system(error)) and not os.environ.get("TAILBOARD_DEBUG"):
            say(sentence)
            return InputError.exit_status
        return _internal(error)
    except Exception as error:  # noqa: BLE001  # the contract: no traceback reaches a user
        return _internal(error)
    return status if isinstance(status, int) else 0


def _internal(error: Exception) -> int:
    """Print an internal error as a sentence and return its exit status; raises it under TAILBOARD_DEBUG."""
    if os.environ.get("TAILBOARD_DEBUG"):
        raise error
    say(f"internal error ({type(error).__name__}: {error}); TAILBOARD_DEBUG=1 shows where")
    return INTERNAL
