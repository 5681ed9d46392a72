"""mark: what happened at a time of a run."""

from __future__ import annotations

from pathlib import Path

import click

from ingest.cli.shared.help import Command
from ingest.cli.shared.marks import keep, read_all
from ingest.cli.shared.options import marks_for
from ingest.cli.shared.say import say
from ingest.cli.shared.stores import chosen, opened_store, store_option
from ingest.core.errors import UsageError


@click.command(cls=Command)
@click.argument("text", required=False)
@click.option("--run", "run", required=True, metavar="GLOB", help="Runs in which to note it.")
@click.option("--at", "at", metavar="T", help="Time: ISO 8601, epoch s or ms, +90s (after the start of the run), now-15m.")
@click.option("--end", "until", metavar="T", help="Time of its end, in the same forms.")
@marks_for("Note many marks, in place of TEXT: lines of time,text or time,end,text, or a JVM's GC log (-Xlog:gc*).")
@click.option("--accept", is_flag=True, help="Accept the level of this run as normal from now on (trend); TEXT is the reason.")
@store_option
def mark(
    text: str | None, run: str, at: str | None, until: str | None, marks: tuple[Path, ...], *, accept: bool, store: str | None
) -> None:
    """Note an event at a time of a run, for reports to draw.

    \b
    Examples:
      tailboard mark --run nightly-42 --at +33s "osd.3 down"
      tailboard mark --run nightly-42 --at +33s --end +44s "recovery"
      tailboard mark --run nightly-42 --marks gc.log --marks operations.csv
      tailboard mark --run nightly-42 --accept "checksums are on since this night"

    Marks of a file are noted in the runs whose time they overlap, marks with times such as +90s in every run. The same mark is
    noted once. --accept notes at the start of one run that its level is the new normal: trend --fail-above then compares later
    runs with it.
    """
    if accept:
        if marks or at or until:
            raise UsageError("--accept notes that the level of a run is normal: leave out --marks, --at and --end")
        _accept(run, text or "", store)
        return
    if marks:
        if text is not None or at or until:
            raise UsageError("--marks takes times and texts from files: leave out TEXT, --at and --end")
        _mark_all(run, marks, store)
        return
    if text is None or not at:
        raise UsageError("a mark needs --at T and its text, or --marks FILE")
    from ingest.core.marks import checked
    from ingest.core.timing import parse_instant
    from ingest.core.writing import utc

    new_mark = checked(parse_instant(at), parse_instant(until) if until else None, text)
    with opened_store(store, write=True) as store_:
        for record in chosen(store_, (run,)):
            stamp = new_mark.at.epoch_ns(record.start_ns)
            store_.mark(
                record.run, stamp, new_mark.text, None if new_mark.end is None else new_mark.end.epoch_ns(record.start_ns)
            )
            say(f"marked {record.run} at {utc(stamp)}")


def _mark_all(run: str, paths: tuple[Path, ...], store: str | None) -> None:
    marks = read_all(paths)
    with opened_store(store, write=True) as store_:
        keep(store_, [record.run for record in chosen(store_, (run,))], marks)


def _accept(run: str, reason: str, store: str | None) -> None:
    from ingest.core.errors import listed
    from ingest.core.marks import accepting

    with opened_store(store, write=True) as store_:
        records = chosen(store_, (run,))
        if len(records) > 1:
            names = listed(record.run for record in records)
            raise UsageError(f"{run} matches {names}: name the one run from which on the level is normal")
        store_.mark(records[0].run, records[0].start_ns, accepting(reason))
        say(f"the level of {records[0].run} is accepted: trend compares later runs with it")
