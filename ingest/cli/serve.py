"""serve: the report as a page that keeps up with its store."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import asked
from ingest.cli.shared.help import Command, file_names
from ingest.cli.shared.marks import read_all
from ingest.cli.shared.say import say
from ingest.cli.shared.sources import split_sources
from ingest.cli.shared.values import parse_step, read_options
from ingest.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from ingest.query.question import Question

SHORTEST_NS, LONGEST_NS = 500_000_000, 3600 * 1_000_000_000
INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking):
    """What a call of serve says."""

    port: int
    address: str
    refresh: str
    marks: tuple[Path, ...]
    sla: str | None
    step: str


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@click.option("--port", type=click.IntRange(0, 65535), default=8350, show_default=True, help="Port; 0 for any free one.")
@click.option(
    "--host",
    "address",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any address other than this computer's own lets others read the page.",
)
@click.option("--refresh", default="10s", show_default=True, metavar="D", help="How often an open page asks for new data.")
@shared.marks_option
@click.option("--sla", metavar="LATENCY", help="Draw a line at this latency, such as 5ms.")
@click.option(
    "--step",
    default="auto",
    show_default=True,
    metavar="S|auto|all",
    help="Width of windows, such as 10s; auto: about 150 windows; all: one window.",
)
@shared.selecting_options
@shared.reading_without_host
@shared.typed(Options)
def serve(sources: tuple[str, ...], options: Options) -> int:
    """Serve the report as a page that refreshes itself, on 127.0.0.1.

    \b
    Examples:
      tailboard serve
      tailboard serve sqlite:nightly.db --run 'nightly-42*' --refresh 5s
      tailboard serve http://127.0.0.1:9200 --port 0 --from now-15m
      tailboard serve /var/log/bench --refresh 2s

    SOURCE is a store, which others may write at the same time, or log files and folders, which are read as they grow (into a
    temporary store). The page adds new data and keeps what you selected in it; without --run it shows the newest run. Runs,
    range and step are selected in the page and are part of its address. Neither store nor logs are changed. Ctrl-C ends it.
    """
    from ingest.core.timing import parse_duration
    from ingest.live.serve.app import application
    from ingest.live.serve.page import Subject
    from ingest.view.page.runtime import runtime

    try:
        from ingest.live.serve.server import is_local, listening, names_of, served
    except ImportError:
        raise UsageError("serve needs waitress: pip install 'tailboard[serve]'") from None

    refresh = parse_duration(options.refresh)
    if not SHORTEST_NS <= refresh <= LONGEST_NS:
        raise UsageError(f"--refresh takes 500ms to 1h, not {options.refresh}")
    stores, paths = split_sources(sources)
    marks = tuple(read_all(options.marks))
    runtime()  # says what is missing
    host, question = options.address, asked(options, parse_step(options.step))
    with _store_of(stores, paths, options, question) as url:
        subject = Subject(url, question, refresh, parse_duration(options.sla) if options.sla else 0, marks)
        server = listening(application(subject, names_of(host), anywhere=not is_local(host)), host, options.port)
        shown = f"[{host}]" if ":" in host else host
        what = ", ".join(map(str, paths)) or url
        say(f"http://{shown}:{server.effective_port}/ shows {what}; Ctrl-C ends it")
        if not is_local(host):
            print(
                "tailboard: whoever can reach this computer can read all of the selected runs there, without a password",
                file=sys.stderr,
            )
        sys.stderr.flush()
        return INTERRUPTED if served(server) else 0


@contextmanager
def _store_of(stores: Sequence[str], paths: Sequence[Path], options: Options, question: Question) -> Iterator[str]:
    """Give the store to show: the named one, or a new one that is filled from logs."""
    if stores:
        _reachable(stores[0])
        yield stores[0]
        return
    from ingest.core.grid import SECOND, STEPS
    from ingest.live.serve.logs import as_store
    from ingest.load.plan import LoadOptions
    from ingest.read.folders import check_is_file, root_of

    for path in paths:
        if not path.exists():
            raise InputError("no such file or folder", path)
        check_is_file(path)
    run = re.sub(r"[*?\[\n]", "_", root_of(paths).name) or "run"
    fine = question.step if question.step in STEPS and int(question.step) < SECOND else None
    chosen = LoadOptions(
        read=read_options(options, run),
        step_ns=None if fine is None else int(fine),
        attribution=options.attribution,
        jobs=options.jobs,
    )
    with as_store(paths, chosen, _say) as url:
        yield url


def _say(text: str) -> None:
    say(text)


def _reachable(url: str) -> None:
    """Raise StoreError where there is no store now: that is reported at the start, what fails later is shown in the page."""
    from ingest.store import open_store

    with open_store(url):
        pass
