"""export --format hlog: windows as an interval log, added up over all logs on the way."""

from __future__ import annotations

import sys
from typing import Any

from ingest.cli.origins import opened
from ingest.cli.queries import asked, parse_step
from ingest.cli.saying import say
from ingest.errors import InputError, UsageError

DEFAULT_BY = "op,kind,tag"


def export_hlog(sources: tuple[str, ...], words: dict[str, Any]) -> None:
    """Print the log; memory stays flat where files are asked, whatever their number and length."""
    import ingest
    from ingest.query.interval_log import interval_log
    from ingest.view import hlog

    if words["attribution"] != "completion":
        raise UsageError("hlog holds whole samples: in-flight weights cannot be written")
    step = parse_step(words["step"]) if words["step"] else 0
    if step == "auto":
        raise UsageError("--step of an export is a width such as 10s, or all")
    question = asked({**words, "by": words["by"] or DEFAULT_BY}, step or "auto")
    with opened(sources, words) as origin:
        found = interval_log(origin, question)
        written = False
        for windows in found.windows:
            if not written:
                sys.stdout.write(hlog.head(found.unit_ns, found.start_ns, ingest.__version__))
            written = True
            sys.stdout.writelines(hlog.lines(windows, found.names, found.start_ns or 0, found.unit_ns))
        if not written:
            raise InputError("nothing matches the question: no interval to write")
        for text in found.warnings():
            say(text)
