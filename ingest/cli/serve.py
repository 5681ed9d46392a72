"""serve: the report as a page that keeps up with its store."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.cli.marks import read_all
from ingest.cli.origins import READING
from ingest.cli.queries import asked, parse_step
from ingest.cli.saying import say
from ingest.errors import InputError, UsageError

if TYPE_CHECKING:
    from ingest.query.question import Question

SHORTEST_NS, LONGEST_NS = 500_000_000, 3600 * 1_000_000_000
INTERRUPTED = 130


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--port", type=click.IntRange(0, 65535), default=8350, show_default=True, help="Port; 0 takes any that is free.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen at: any but this computer's own opens it to others."
)
@click.option("--refresh", default="10s", show_default=True, metavar="D", help="How often an open page asks for news.")
@options.marks_option
@click.option("--sla", metavar="LATENCY", help="Draw a line at this latency, as in 5ms.")
@click.option("--step", default="auto", show_default=True, metavar="S|auto|all", help="Window: 10s, 1m, about 150, or all.")
@options.selecting_options
@options.reading_without_host
def serve(sources: tuple[str, ...], **words: Any) -> int:
    """The report as a page that refreshes by itself, on 127.0.0.1.

    \b
    Examples:
      tailboard serve
      tailboard serve sqlite:nightly.db --run 'nightly-42*' --refresh 5s
      tailboard serve http://127.0.0.1:9200 --port 0 --from now-15m
      tailboard serve /var/log/bench --refresh 2s

    SOURCE is a store, which others may write meanwhile, or log files and folders, which are watched while they are served: in a
    store of their own, gone when the page is. The page draws what is new and keeps what was chosen in it; without
    --run it shows the run that began last. Runs, range and step are chosen in the page and stand in its address. Neither
    store nor logs are ever written to. Ctrl-C ends it.
    """
    from ingest.live.serve.app import application
    from ingest.live.serve.page import Subject
    from ingest.timing import parse_duration
    from ingest.view.page.parts import runtime

    try:
        from ingest.live.serve.server import is_local, listening, names_of, served
    except ImportError:
        raise UsageError("serve needs waitress: pip install 'tailboard[serve]'") from None

    refresh = parse_duration(words["refresh"])
    if not SHORTEST_NS <= refresh <= LONGEST_NS:
        raise UsageError(f"--refresh takes 500ms to 1h, not {words['refresh']}")
    stores, paths = options.split_sources(sources)
    marks = tuple(read_all(words["marks"]))
    runtime()  # says what is missing
    host, question = words["host"], asked(words, parse_step(words["step"]))
    with _store_of(stores, paths, words, question) as url:
        subject = Subject(url, question, refresh, parse_duration(words["sla"]) if words["sla"] else 0, marks)
        server = listening(application(subject, names_of(host), anywhere=not is_local(host)), host, words["port"])
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
def _store_of(stores: Sequence[str], paths: Sequence[Path], words: dict[str, Any], question: Question) -> Iterator[str]:
    """Give the store to show: the one that is named, or one that is kept up with logs."""
    if stores:
        _reachable(stores[0])
        yield stores[0]
        return
    from ingest.grid import SECOND, STEPS
    from ingest.live.serve.logs import as_store
    from ingest.load_plan import LoadOptions
    from ingest.read.folders import check_is_file, root_of

    for path in paths:
        if not path.exists():
            raise InputError("no such file or folder", path)
        check_is_file(path)
    run = re.sub(r"[*?\[\n]", "_", root_of(paths).name) or "run"
    fine = question.step if question.step in STEPS and int(question.step) < SECOND else None
    chosen = LoadOptions(
        read=options.read_options(run, **{name: words[name] for name in READING if name != "host"}, host=None),
        step_ns=None if fine is None else int(fine),
        attribution=words["attribution"],
        jobs=words["jobs"],
    )
    with as_store(paths, chosen, _say) as url:
        yield url


def _say(text: str) -> None:
    say(text)


def _reachable(url: str) -> None:
    """Raise StoreError where there is no store now: that is told at the start, what fails later is told in the page."""
    from ingest.store import open_store

    with open_store(url):
        pass
