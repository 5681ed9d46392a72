"""demo: the example archive, from files to a report."""

from __future__ import annotations

import sys
import tempfile

from ingest.cli.options import PERCENTILES, CallOptions, command, option
from ingest.core.errors import InputError
from ingest.core.schema import assets

EXAMPLES, ARCHIVE = "examples", "cbt-archive"


class Options(CallOptions):
    """What a call of demo says."""

    output: str = option("-o", "--output", default="report.html", metavar="FILE", help="File to write the report to.")


@command(Options)
def demo(options: Options) -> None:
    """Load the example archive, print the cluster's percentiles and write its report.

    \b
    Example:
      tailboard demo
    """
    from ingest.cli import tailboard

    archive = assets(EXAMPLES) / ARCHIVE
    if not archive.is_dir():
        raise InputError("this installation came without the example archive: install it again, or run the demo in a checkout")
    with tempfile.TemporaryDirectory(prefix="tailboard-demo-") as folder:
        store = f"sqlite:{folder}/demo.db"
        for words in (
            ["load", str(archive), "--run", "demo", "--store", store],
            ["percentiles", store, "--step", "5s", "--by", "host", "-p", PERCENTILES, "--time", "elapsed"],
            ["report", store, "-o", options.output],
        ):
            print(f"$ tailboard {' '.join(words)}".replace(store, "sqlite:demo.db"), file=sys.stderr, flush=True)
            tailboard.main(words, prog_name="tailboard", standalone_mode=False)
            sys.stdout.flush()
