"""serve: the report as a page that keeps up with its store."""

from __future__ import annotations

import sys
from typing import Any

import click

from ingest.cli import options
from ingest.cli.queries import asked, parse_step
from ingest.errors import UsageError

SHORTEST_NS, LONGEST_NS = 500_000_000, 3600 * 1_000_000_000
INTERRUPTED = 130


@click.command()
@click.argument("source", required=False, metavar="[SOURCE]")
@click.option("--port", type=click.IntRange(0, 65535), default=8350, show_default=True, help="Port; 0 takes any that is free.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen at: any but this computer's own opens it to others."
)
@click.option("--refresh", default="10s", show_default=True, metavar="D", help="How often an open page asks for news.")
@click.option("--sla", metavar="LATENCY", help="Draw a line at this latency, as in 5ms.")
@click.option("--step", default="auto", show_default=True, metavar="S|auto|all", help="Window: 10s, 1m, about 150, or all.")
@options.selecting_options
@click.option(
    "--attribution",
    type=click.Choice(["completion", "in-flight"]),
    default="completion",
    show_default=True,
    help="Count an I/O where it completed, or by share in each window it was in flight.",
)
def serve(source: str | None, **words: Any) -> int:
    """The report as a page that refreshes by itself, on 127.0.0.1.

    \b
    Examples:
      tailboard serve
      tailboard serve sqlite:nightly.db --run 'nightly-42*' --refresh 5s
      tailboard serve http://127.0.0.1:9200 --port 0 --from now-15m

    SOURCE is a store, which others may write meanwhile. The page draws what is new and keeps what was chosen in it; without
    --run it shows the run that began last. Runs, range and step are chosen in the page and stand in its address. Nothing is
    ever written. Ctrl-C ends it.
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
    stores, paths = options.split_sources((source,) if source else ())
    if paths:
        raise UsageError(f"serve shows a store: tailboard load or watch {paths[0]} into one first")
    runtime()  # says what is missing
    host = words["host"]
    _reachable(stores[0])
    subject = Subject(
        stores[0], asked(words, parse_step(words["step"])), refresh, parse_duration(words["sla"]) if words["sla"] else 0
    )
    server = listening(application(subject, names_of(host), anywhere=not is_local(host)), host, words["port"])
    shown = f"[{host}]" if ":" in host else host
    print(f"tailboard: http://{shown}:{server.effective_port}/ shows {stores[0]}; Ctrl-C ends it", file=sys.stderr)
    if not is_local(host):
        print(
            "tailboard: whoever can reach this computer can read all of the selected runs there, without a password",
            file=sys.stderr,
        )
    sys.stderr.flush()
    return INTERRUPTED if served(server) else 0


def _reachable(url: str) -> None:
    """Raise StoreError where there is no store now: that is told at the start, what fails later is told in the page."""
    from ingest.store import open_store

    with open_store(url):
        pass
