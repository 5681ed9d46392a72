"""runs, mark, export: what a store holds, what happened, and everything as csv."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.cli.origins import opened
from ingest.cli.queries import asked
from ingest.errors import InputError, UsageError, listed

if TYPE_CHECKING:
    from ingest.intervals import Intervals
    from ingest.store import RunRecord, Store

store_option = click.option("--store", metavar="URL", help="Store [default: $TAILBOARD_STORE, else sqlite:tailboard.db].")


def _opened(url: str | None, *, write: bool = False) -> Store:
    from ingest.store import open_store

    return open_store(url or os.environ.get("TAILBOARD_STORE", options.DEFAULT_STORE), write=write)


def _chosen(store: Store, globs: tuple[str, ...]) -> list[RunRecord]:
    from ingest.series import run_matches

    records = store.runs()
    found = [record for record in records if run_matches(record.run, globs)]
    if globs and not found:
        have = listed(record.run for record in records) or "none"
        raise InputError(f"no run matches {' '.join(globs)}; the store holds {have}")
    return found


@click.group()
def runs() -> None:
    """List, show and delete the runs of a store.

    \b
    Examples:
      tailboard runs list
      tailboard runs show nightly-42
      tailboard runs delete 'nightly-4*' --yes
    """


@runs.command("list")
@store_option
@click.option("--format", type=click.Choice(["table", "ndjson"]), default="table", show_default=True)
def list_(store: str | None, **words: Any) -> None:
    """All runs: state, step, sources, samples, time zero, when loaded."""
    from ingest.timing import format_duration
    from ingest.view.text import utc

    with _opened(store) as store_:
        rows = []
        for record in store_.runs():
            sources = store_.sources(record.run)
            known = record.zero != "unknown"
            rows.append(
                {
                    "run": record.run,
                    "state": record.state,
                    "step": format_duration(record.step_ns),
                    "sources": len(sources),
                    "samples": sum(int(source.account.get("samples", 0)) for source in sources),
                    "start": utc(record.start_ns) if known else None,
                    "loaded": record.loaded,
                }
            )
    if words["format"] == "ndjson":
        sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from ingest.view.terminal import people

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "state", "step", "sources", "samples", "start", "loaded"):
        table.add_column(name, justify="right" if name in ("sources", "samples") else "left", overflow="fold")
    for row in rows:
        shown = {**row, "samples": f"{row['samples']:,}", "start": row["start"] or "unknown"}
        table.add_row(*(escape(str(value)) for value in shown.values()))
    people().print(table)


@runs.command()
@click.argument("run")
@store_option
def show(run: str, store: str | None) -> None:
    """One run as JSON: parameters, labels, time zero, and each source with its account and marks."""
    from dataclasses import asdict

    with _opened(store) as store_:
        found = _chosen(store_, (run,))
        shown = [
            {
                **asdict(record),
                "sources": [asdict(source) for source in store_.sources(record.run)],
                "marks": list(store_.marks_of([record.run])),
            }
            for record in found
        ]
    print(json.dumps(shown if len(shown) > 1 else shown[0], indent=2))


@runs.command()
@click.argument("run")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def delete(run: str, *, yes: bool, store: str | None) -> None:
    """Delete runs with all their documents, rollups and marks."""
    with _opened(store, write=True) as store_:
        found = _chosen(store_, (run,))
        names = ", ".join(record.run for record in found)
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"deleting {names} needs --yes when there is no terminal to ask on")
            click.confirm(f"Delete {names}?", abort=True, err=True)
        for record in found:
            documents = store_.delete_run(record.run)
            print(f"tailboard: deleted {record.run}: {documents} documents", file=sys.stderr)


@click.command()
@click.argument("text")
@click.option("--run", "run", required=True, metavar="GLOB", help="Run that it happened in.")
@click.option("--at", "at", required=True, metavar="T", help="When: ISO 8601, epoch s or ms, +90s (from the start), now-15m.")
@store_option
def mark(text: str, run: str, at: str, store: str | None) -> None:
    """Note what happened at a time of a run; reports draw it.

    \b
    Example:
      tailboard mark --run nightly-42 --at +33s "osd.3 down"
    """
    from ingest.timing import parse_instant
    from ingest.view.text import utc

    when = parse_instant(at)
    with _opened(store, write=True) as store_:
        for record in _chosen(store_, (run,)):
            stamp = when.epoch_ns(record.start_ns)
            store_.mark(record.run, stamp, text)
            print(f"tailboard: marked {record.run} at {utc(stamp)}", file=sys.stderr)


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@options.selecting_options
@click.option("--step", metavar="S|all", help="Width of an interval (hlog) [default: the stored step].")
@options.reading_options
@options.hgrm_options
@click.option("--format", type=click.Choice(["csv", "hlog", "hgrm"]), default="csv", show_default=True)
def export(sources: tuple[str, ...], **words: Any) -> None:
    """Everything that is stored, at the stored step: as csv, or as a log that HdrHistogram's own tools read.

    \b
    Examples:
      tailboard export --run nightly-42 > nightly-42.csv
      tailboard export gen1/ gen2/ --format hlog > union.hlog
      tailboard export stress.hdr --where op=insert --where kind=response --format hlog > insert-rt.hlog
      tailboard export stress.hdr --by op,kind --format hgrm --unit ms > stress.hgrm

    csv: one row per series, window and occupied bin: start,end (UTC), all labels, lower,upper (ns), count.
    hlog: one line per window and tag, added up over all logs; --by op,kind,tag unless it says otherwise.
    hgrm: the percentile distribution of each --by group over the whole range, in --unit (ns).
    """
    if words["format"] == "hlog":
        from ingest.cli.hlog import export_hlog

        export_hlog(sources, words)
        return
    if words["format"] == "hgrm":
        from ingest.cli.queries import answered, warn
        from ingest.view.hgrm import texts
        from ingest.view.text import UNITS

        answer = answered(sources, words, asked(words, "all"))
        warn(answer)
        sys.stdout.writelines(texts(answer, UNITS[words["unit"]], words["ticks"]))
        return
    from ingest.series import LABELS

    sys.stdout.write(",".join(("start", "end", *LABELS, "lower", "upper", "count")) + "\n")
    question = asked({**words, "by": ",".join(LABELS)}, "auto")
    for windows in _exported(sources, words, question):
        sys.stdout.writelines(_csv_rows(windows))


def _exported(sources: tuple[str, ...], words: dict[str, Any], question: Any) -> Iterator[Intervals]:
    """Yield the selected windows at the stored step, in bounded batches."""
    with opened(sources, words) as origin:
        yield from origin.windows(question)


def _csv_rows(windows: Intervals) -> Iterator[str]:
    from ingest.view.text import utc

    edges = windows.layout.edges
    lower, upper = edges[windows.bins].tolist(), edges[windows.bins + 1].tolist()
    counts, pointers = windows.counts.tolist(), windows.indptr.tolist()
    labels = [",".join(_quoted(label) for label in key[2:]) for key in windows.table if isinstance(key, tuple)]
    for row, (code, start, end) in enumerate(
        zip(windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist(), strict=True)
    ):
        front = f"{utc(start)},{utc(end)},{labels[code]}"
        for entry in range(pointers[row], pointers[row + 1]):
            yield f"{front},{lower[entry]},{upper[entry]},{counts[entry]}\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell
