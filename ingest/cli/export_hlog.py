"""export --format hlog: windows as an interval log, added up over all logs on the way."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.cli.shared.answers import asked
from ingest.cli.shared.say import say
from ingest.cli.shared.sources import opened
from ingest.cli.shared.values import parse_step
from ingest.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from ingest.cli.export import Options

DEFAULT_BY = "op,kind,tag"


def export_hlog(sources: tuple[str, ...], options: Options) -> None:
    """Print the log; memory stays flat where files are asked, whatever their number and length."""
    import ingest
    from ingest.query.interval_log import interval_log
    from ingest.view import hlog

    if options.attribution != "completion":
        raise UsageError("hlog holds whole samples: in-flight weights cannot be written")
    step = parse_step(options.step) if options.step else 0
    if step == "auto":
        raise UsageError("--step of an export is a width such as 10s, or all")
    question = asked(replace(options, by=options.by or DEFAULT_BY), step or "auto")
    with opened(sources, options) as origin:
        log = interval_log(origin, question)
        written = False
        for windows in log.windows:
            if not written:
                sys.stdout.write(hlog.head(log.unit_ns, log.start_ns, ingest.__version__))
            written = True
            sys.stdout.writelines(hlog.lines(windows, log.names, log.start_ns or 0, log.unit_ns))
        if not written:
            raise InputError("nothing matches the question: no interval to write")
        for text in log.warnings():
            say(text)
