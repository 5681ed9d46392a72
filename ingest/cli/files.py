"""inspect: what each file is taken for."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ingest.cli import options
from ingest.cli.origins import READING

MOST_OPS = 4


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.reading_options
@click.option("--format", type=click.Choice(["table", "ndjson"]), default="table", show_default=True)
def inspect(paths: tuple[str, ...], **words: Any) -> None:
    """What each file is taken for: format, labels, time zero and its source, rows, and why others are skipped.

    \b
    Examples:
      tailboard inspect ./cbt-archive
      tailboard inspect logs/ --host-alias 10.0.0.7=osd7 --format ndjson

    Every log is read to its end, so that repairs and rejects show; nothing is stored.
    """
    from ingest.parallel import fork_map
    from ingest.query.means import own_facts, told_of
    from ingest.read import Source, discover, read
    from ingest.read.reconcile import reconciled, skew

    found = discover([Path(path) for path in paths], options.read_options(**{name: words[name] for name in READING}))

    def work(source: Source) -> Any:
        ops: set[str] = set()
        try:
            for chunk in read(source):
                ops |= {series.op for series in chunk.table if not isinstance(series, tuple)}
        except Exception as error:  # noqa: BLE001  # told as a note of this file, the others go on
            source.context.account.note(str(error))
        yield source.context.account, tuple(sorted(ops))

    ops: dict[int, tuple[str, ...]] = {}
    for number, (account, seen) in fork_map(work, found.sources, options.cores(words["jobs"])):
        found.sources[number].context.account.replace(account)
        ops[number] = seen
    rows = [_source_row(source, ops[number]) for number, source in enumerate(found.sources)]
    others = [{"path": str(entry.path), "format": entry.action, "reason": entry.reason} for entry in found.skipped]
    if words["format"] == "ndjson":
        sys.stdout.writelines(json.dumps(row) + "\n" for row in [*rows, *others])
        return
    _print(rows, others)
    for text in (*reconciled(found.sources), *skew(found.sources)):
        print(text)
    own = own_facts(told_of(found.sources))
    if own:
        print(f"{own[0][0]}:")
    for _, text in own:
        print(f"  {text}")


def _source_row(source: Any, ops: tuple[str, ...]) -> dict[str, Any]:
    from ingest.view.text import utc

    context, account = source.context, source.context.account
    zero = context.zero.epoch_ns
    return {
        "path": str(source.path),
        "format": source.format,
        "run": context.series.run,
        "host": context.series.host,
        "volume": context.series.volume,
        "job": context.series.job,
        "process": context.series.process,
        "ops": ops,
        "kind": context.series.kind,
        "layout": source.layout,
        "zero": None if zero is None else utc(zero),
        "zero_origin": context.zero.origin,
        **account.as_dict(),
    }


def _few(ops: Sequence[str]) -> str:
    """Return the ops of a file as a cell: all of a few, of many how many there are."""
    return ",".join(ops) if len(ops) <= MOST_OPS else f"{len(ops)} ops"


def _print(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from ingest.view.terminal import people

    console = people()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    wide = ("file", "troubles")
    for name in ("file", "host", "vol", "job", "op", "rows", "samples", "time zero", "troubles"):
        right = name in ("rows", "samples")
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=name not in wide)
    for row in rows:
        trouble = [f"{count} {reason}" for what in ("repaired", "rejected") for reason, count in row[what].items()]
        cells = [
            Path(row["path"]).name,
            row["host"] or "-",
            row["volume"] or "-",
            row["job"] or "-",
            _few(row["ops"]),
            f"{row['rows']:,}",
            f"{row['samples']:,}",
            (row["zero"] or "unknown")[11:23] or "unknown",
            "; ".join([*trouble, *row["notes"]]) or "-",
        ]
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    origins = sorted({row["zero_origin"] for row in rows})
    days = sorted({row["zero"][:10] for row in rows if row["zero"]})
    formats = sorted({f"{row['format']} {row['layout']}" for row in rows})
    print(f"format: {', '.join(formats)}")
    print(f"runs: {', '.join(sorted({row['run'] for row in rows}))}")
    print(f"time zero: {', '.join(days) or 'unknown'}, from {', '.join(origins)}")
    counted: dict[tuple[str, str], list[str]] = {}
    for entry in others:
        counted.setdefault((entry["format"], entry["reason"]), []).append(Path(entry["path"]).name)
    for (action, reason), names in sorted(counted.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # a line's worth
        print(f"{action}: {len(names)} file{'s' if len(names) > 1 else ''} ({shown}): {reason}")
