"""demo: the example archive, from files to a report."""

from __future__ import annotations

import shlex
import shutil
import sys

from ingest.cli.options import PERCENTILES, CallOptions, command, option
from ingest.core.errors import InputError
from ingest.core.schema import assets

EXAMPLES, ARCHIVE = "examples", "cbt-archive"
STORE, RUN = "sqlite:demo.db", "demo"
THEN = (
    f"explain {STORE}",
    f"percentiles {STORE} --from 21:00:30 --to 21:00:40 --by host",
    f"check {STORE} --sla 'p99<50ms'",
)
CALLED = f"{sys.executable} -m ingest" if sys.argv[0].endswith(".py") else sys.argv[0]  # as it was called here
PROGRAM = "tailboard" if shutil.which("tailboard") else CALLED


class Options(CallOptions):
    """What a call of demo says."""

    output: str = option("-o", "--output", default="report.html", metavar="FILE", help="File to write the report to.")


@command(Options)
def demo(options: Options) -> None:
    """Load the example archive into demo.db, print the percentiles of its hosts and what happened, write its report.

    \b
    Example:
      tailboard demo
    """
    from ingest.cli import tailboard
    from ingest.query.question import Question
    from ingest.query.story.story import stories
    from ingest.store import open_store

    archive = assets(EXAMPLES) / ARCHIVE
    if not archive.is_dir():
        raise InputError("this installation came without the example archive: install it again, or run the demo in a checkout")
    for words in (
        ["load", str(archive), "--run", RUN, "--store", STORE],
        ["percentiles", STORE, "--step", "all", "--by", "host", "-p", PERCENTILES],
        ["report", STORE, "-o", options.output],
    ):
        print(f"$ {PROGRAM} {shlex.join(words)}", file=sys.stderr, flush=True)
        tailboard.main(words, prog_name="tailboard", standalone_mode=False)
        sys.stdout.flush()
    with open_store(STORE) as store:
        (told,) = stories(store, Question(runs=(RUN,)), STORE)
    print(f"\nWhat happened: {told.findings[0].text if told.findings else told.nothing}\n")
    print(f"Open {options.output} in a browser. Then try")
    for line in THEN:
        print(f"  {PROGRAM} {line}")
