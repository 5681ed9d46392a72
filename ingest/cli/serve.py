"""serve: the report as a page that keeps up with its store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.cli.answers import asked
from ingest.cli.options import MARKS, Asking, command, option, read_options
from ingest.cli.output import INTERRUPTED, say
from ingest.cli.sources import marks_of, split_sources
from ingest.core.errors import InputError, UsageError
from ingest.core.units import parse_duration

if TYPE_CHECKING:
    from ingest.query.question import Question

SHORTEST_NS, LONGEST_NS = 500_000_000, 3600 * 1_000_000_000


class Options(Asking):
    """What a call of serve says."""

    port: int = option("--port", type=click.IntRange(0, 65535), default=8350, help="Port; 0 for any free one.")
    address: str = option(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="Address to listen on; any address other than this computer's own lets others read the page.",
    )
    refresh: str = option("--refresh", default="10s", metavar="D", help="How often an open page asks for new data.")
    marks: tuple[Path, ...] = MARKS
    sla: str | None = option("--sla", metavar="LATENCY", help="Draw a line at this latency, such as 5ms.")
    step: str = option(
        "--step",
        default="auto",
        metavar="S|auto|all",
        help="Width of windows, such as 10s; auto: about 150 windows; all: one window.",
    )


@command(Options)
def serve(options: Options) -> int:
    """Serve the report as a page that refreshes itself, on 127.0.0.1.

    \b
    Examples:
      tailboard report --live
      tailboard report --live sqlite:nightly.db --run 'nightly-42*' --refresh 5s
      tailboard report --live http://127.0.0.1:9200 --port 0 --from now-15m
      tailboard report --live /var/log/bench --refresh 2s

    SOURCE is a store, which others may write at the same time, or log files and folders, which are read as they grow (into a
    temporary store). The page adds new data and keeps what you selected in it; without --run it shows the newest run. Runs,
    range and step are selected in the page and are part of its address. Neither store nor logs are changed. Ctrl-C ends it.
    """
    from ingest.core.pool import freed_memory_given_back
    from ingest.live.serve.app import application
    from ingest.live.serve.page import Subject
    from ingest.view.page.template import runtime

    try:
        from ingest.live.serve.server import is_local, listening, names_of, served
    except ImportError:
        raise UsageError("serve needs waitress: pip install waitress") from None

    refresh = parse_duration(options.refresh)
    if not SHORTEST_NS <= refresh <= LONGEST_NS:
        raise UsageError(f"--refresh takes 500ms to 1h, not {options.refresh}")
    store, paths = split_sources(options.sources)
    marks = tuple(marks_of(options.marks))
    runtime()  # says what is missing
    if options.host and (options.host == "localhost" or options.host.replace(".", "").isdecimal()):
        raise UsageError(f"--host names the host of the logs; the address to listen on is --listen {options.host}")
    host, question = options.address, asked(options, options.step)
    with freed_memory_given_back(), _store_of(store, paths, options, question) as url:
        subject = Subject(url, question, refresh, parse_duration(options.sla) if options.sla else 0, marks)
        server = listening(application(subject, names_of(host), anywhere=not is_local(host)), host, options.port)
        shown = f"[{host}]" if ":" in host else host
        what = ", ".join(map(str, paths)) or url
        say(f"http://{shown}:{server.effective_port}/ shows {what}; Ctrl-C ends it")
        if not is_local(host):
            say("whoever can reach this computer can read all of the selected runs there, without a password")
        return INTERRUPTED if served(server) else 0


@contextmanager
def _store_of(store: str, paths: Sequence[Path], options: Options, question: Question) -> Iterator[str]:
    """Give the store to show: the named one, or a new one that is filled from logs."""
    from ingest.store import open_store

    if store:
        with open_store(store):
            pass  # StoreError where there is none now is reported at the start, what fails later is shown in the page
        yield store
        return
    from ingest.core.grid import SECOND, STEPS
    from ingest.live.serve.server import as_store
    from ingest.load.plan import LoadOptions
    from ingest.read.discovery import check_is_file, root_of

    for path in paths:
        if not path.exists():
            raise InputError("no such file or folder", path)
        check_is_file(path)
    run = re.sub(r"[*?\[\n]", "_", root_of(paths).name) or "run"
    fine = question.step if question.step in STEPS and int(question.step) < SECOND else None
    step = None if fine is None else int(fine)
    chosen = LoadOptions(read=read_options(options, run), step_ns=step, attribution=options.attribution, jobs=options.jobs)
    with as_store(paths, chosen, say) as url:
        yield url
