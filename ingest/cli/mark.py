"""mark: what happened at a time of a run."""

from __future__ import annotations

from pathlib import Path

from ingest.cli.completion import run_names
from ingest.cli.options import STORE, CallOptions, argument, command, marks_for, option
from ingest.cli.output import say
from ingest.cli.sources import chosen, keep_marks, marks_of
from ingest.core.errors import UsageError, listed
from ingest.core.marks import accepting, checked
from ingest.core.units import parse_instant
from ingest.query.origin import store_url


class Options(CallOptions):
    """What a call of mark says."""

    text: str | None = argument("[TEXT]")
    run: str = option("--run", metavar="GLOB", shell_complete=run_names, help="Runs in which to note it.")
    at: str | None = option(
        "--at", metavar="T", help="Time: 21:00:30, +90s (after the start of the run), ISO 8601, epoch s or ms, now-15m."
    )
    until: str | None = option("--end", metavar="T", help="Time of its end, in the same forms.")
    marks: tuple[Path, ...] = marks_for(
        "Note many marks, in place of TEXT: lines of time,text or time,end,text, or a JVM's GC log (-Xlog:gc*)."
    )
    accept: bool = option("--accept", help="Accept the level of this run as normal from now on (trend); TEXT is the reason.")
    store: str | None = STORE


@command(Options)
def mark(options: Options) -> None:
    """Note an event at a time of a run, for reports to draw.

    \b
    Examples:
      tailboard runs mark --run nightly-42 --at +33s "osd.3 down"
      tailboard runs mark --run nightly-42 --at +33s --end +44s "recovery"
      tailboard runs mark --run nightly-42 --marks gc.log --marks operations.csv
      tailboard runs mark --run nightly-42 --accept "checksums are on since this night"

    Marks of a file are noted in the runs whose time they overlap, marks with times such as +90s in every run. The same mark is
    noted once. --accept notes at the start of one run that its level is the new normal: trend --fail-above then compares later
    runs with it.
    """
    from ingest.store import open_store

    text, at, until = options.text, options.at, options.until
    if options.accept:
        if options.marks or at or until:
            raise UsageError("--accept notes that the level of a run is normal: leave out --marks, --at and --end")
        with open_store(store_url(options.store), write=True) as store:
            records = chosen(store, (options.run,))
            if len(records) > 1:
                names = listed(record.run for record in records)
                raise UsageError(f"{options.run} matches {names}: name the one run from which on the level is normal")
            store.mark(records[0].run, records[0].start_ns, accepting(text or ""))
            say(f"the level of {records[0].run} is accepted: trend compares later runs with it")
        return
    if options.marks:
        if text is not None or at or until:
            raise UsageError("--marks takes times and texts from files: leave out TEXT, --at and --end")
        marks = marks_of(options.marks)
        with open_store(store_url(options.store), write=True) as store:
            keep_marks(store, [record.run for record in chosen(store, (options.run,))], marks)
        return
    if text is None or not at:
        raise UsageError("a mark needs --at T and its text, or --marks FILE")
    from ingest.core.units import utc
    from ingest.query.question import edges_of

    new_mark = checked(parse_instant(at), parse_instant(until) if until else None, text)
    with open_store(store_url(options.store), write=True) as store:
        for record in chosen(store, (options.run,)):
            stamp = new_mark.at.epoch_ns(record.start_ns)
            store.mark(record.run, stamp, new_mark.text, edges_of(new_mark.at, new_mark.end, record.start_ns)[1])
            say(f"marked {record.run} at {utc(stamp)}")
