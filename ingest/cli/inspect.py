"""inspect: what each file is taken for."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.cli.options import OUTPUT, PATHS, Reading, command, formats, option, read_options
from ingest.cli.sources import check_files, split_sources
from ingest.core.errors import InputError, counted, shown

if TYPE_CHECKING:
    from ingest.core.coverage import Caveat
    from ingest.read.sources import Found

MOST_OPS = 4  # of a file are named
MOST_IN_LINE = 3
LAST = ("start", "troubles")
MOST_OF_LAYOUT = 120
RUN_PARTS = 3  # at the end of its path: what distinguishes a run from others of its archive


class Options(Reading):
    """What a call of inspect says."""

    paths: tuple[str, ...] = PATHS
    asked: tuple[str, ...] = option(
        "--why", metavar="PATH", help="Show what each fact about this file, or the files of this folder, is based on."
    )
    format: str = formats("table", "ndjson")
    output: str | None = OUTPUT


@command(Options)
def inspect(options: Options) -> None:
    """Show what tailboard makes of each file: format, run, labels, start of the run, rows, and why files are skipped.

    \b
    Examples:
      tailboard inspect ./cbt-archive
      tailboard inspect ./cbt-archive --why ./cbt-archive/results
      tailboard inspect logs/ --host-alias 10.0.0.7=osd7 --format ndjson

    Every log is read to its end, so that repaired and rejected rows are shown. Nothing is stored.
    """
    from ingest.core.pool import fork_map
    from ingest.query.means import own_facts, whole_runs_of
    from ingest.read import read
    from ingest.read.copies import conflicts
    from ingest.read.discovery import processes
    from ingest.read.placement import discover
    from ingest.read.schedule import sentences
    from ingest.read.sources import Source
    from ingest.read.totals import reconciled, skew

    check_files(options.paths, "inspect", piped=True)
    _, given = split_sources(options.paths)
    discovered = discover(given, read_options(options))
    if options.asked:
        for path in options.asked:
            _print_why(discovered, Path(path))
        return

    def work(source: Source) -> Any:
        ops: set[str] = set()
        try:
            for chunk in read(source):
                ops |= {series.op for series in chunk.table}
        except Exception as error:  # noqa: BLE001  # reported as a note of this file, the others go on
            source.context.account.note(str(error))
        yield source.context.account, tuple(sorted(ops))

    ops: dict[int, tuple[str, ...]] = {}
    jobs = processes(options.jobs, (source.path for source in discovered.sources))
    for number, (account, seen) in fork_map(work, discovered.sources, jobs, joining=True):
        discovered.sources[number].context.account.replace(account)
        ops[number] = seen
    rows = [_source_row(source, ops[number]) for number, source in enumerate(discovered.sources)]
    others = [{"path": str(entry.path), "format": entry.action, "reason": entry.reason} for entry in discovered.skipped]
    of_files = [caveat for source in discovered.sources for caveat in source.context.account.caveats]
    of_all = discovered.of_all()
    lacks = _lacks(discovered, {caveat.code for caveat in of_all})
    caveats = [*of_all, *of_files, *conflicts(discovered), *lacks]
    if options.format == "ndjson":
        said = [{"path": caveat.subject, "format": "caveat", "code": caveat.code, "reason": str(caveat)} for caveat in caveats]
        sys.stdout.writelines(json.dumps(row) + "\n" for row in [*rows, *others, *said])
        return
    _print(rows, others)
    for caveat in caveats:
        print(shown(f"caveat: {caveat}"))
    accounts = [source.context.account for source in discovered.sources]
    schedules = sentences((account.path, digest) for account in accounts for digest in account.schedule)
    for text in (*reconciled(discovered.sources), *skew(discovered.sources), *schedules):
        print(shown(text))
    own = own_facts(whole_runs_of(discovered.sources))
    if own:
        print(f"{own[0][0]}:")
    for _, text in own:
        print(shown(f"  {text}"))


def _lacks(discovered: Found, known: Collection[str]) -> list[Caveat]:
    """Return what the sources lack, without caveats of `known` codes and notes of files, which are shown already."""
    from ingest.query.coverage import folded
    from ingest.read.totals import disagreements_in

    accounts = [source.context.account for source in discovered.sources]
    entries = [entry for account in accounts for entry in account.missing if entry.caveat.sentence not in account.notes]
    entries += disagreements_in(discovered.sources, set(map(id, discovered.sources)))
    return [caveat for caveat in folded(entry.caveat for entry in entries) if caveat.code not in known]


def _print_why(discovered: Found, wanted: Path) -> None:
    """Print what each fact about a file, or about the files of a folder, rests on; InputError where it is not among them."""
    place = wanted.resolve()
    sources = [entry for entry in discovered.sources if entry.path.resolve().is_relative_to(place)]
    others = [entry for entry in discovered.skipped if entry.path.resolve().is_relative_to(place)]
    if not sources and not others:
        raise InputError("is not among the files of this call", wanted)
    for source in sources:
        print(shown(str(source.path)))
        facts = {
            **dict.fromkeys(("format", "run", "host", "volume", "job"), ("-", "unknown")),
            **{evidence.fact: (evidence.value, evidence.origin) for evidence in source.evidence},
        }
        for fact, (value, origin) in facts.items():
            print(shown(f"  {fact:<10} {value}  ({origin})" if origin else f"  {fact:<10} {value}"))
        for name, value in sorted(discovered.labels.get(source.context.series.run, {}).items()):
            print(shown(f"  label      {name}={value}"))
    for entry in others:
        print(f"{shown(str(entry.path))}\n  {entry.action}: {shown(entry.reason)}")


def _format(source: Any) -> str:
    """Return the name of a format; of a file that is read by a description which came with tailboard, that of the description."""
    from ingest.read.formats import BY_DESCRIPTION

    said = next((evidence.value for evidence in source.evidence if evidence.fact == "format"), source.format)
    return str(said) if source.format in BY_DESCRIPTION else source.format


def _source_row(source: Any, ops: tuple[str, ...]) -> dict[str, Any]:
    from ingest.core.units import utc

    context, account = source.context, source.context.account
    zero = context.zero.epoch_ns
    return {
        "path": str(source.path),
        "format": _format(source),
        **{name: getattr(context.series, name) for name in ("run", "host", "volume", "job", "process")},
        "ops": ops,
        "kind": context.series.kind,
        "layout": source.layout,
        "zero": None if zero is None else utc(zero),
        "zero_origin": context.zero.origin,
        **account.as_dict(),
    }


def _print(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    from ingest.view.terminal.tables import empty_table, escape, first_of, people

    several = len({row["run"] for row in rows}) > 1
    left = ("file", *(["run"] if several else []), "host", "vol", "job", "op")
    table = empty_table((*left, "rows", "samples", *LAST), (*left, *LAST), ("file", "troubles"), "fold")
    for row in rows:
        trouble = [f"{count} {reason}" for what in ("repaired", "rejected") for reason, count in row[what].items()]
        cells = [
            Path(row["path"]).name,
            *(["/".join(row["run"].split("/")[-RUN_PARTS:])] if several else []),
            *(row[name] or "-" for name in ("host", "volume", "job")),
            ",".join(op or "-" for op in row["ops"]) if len(row["ops"]) <= MOST_OPS else f"{len(row['ops'])} ops",
            *(f"{row[name]:,}" for name in ("rows", "samples")),
            (row["zero"] or "unknown")[11:23] or "unknown",
            "; ".join([*trouble, *row["notes"]]) or "-",
        ]
        table.add_row(*(escape(cell) for cell in cells))
    people().print(table)
    origins = sorted({row["zero_origin"] for row in rows})
    days = sorted({row["zero"][:10] for row in rows if row["zero"]})
    formats = sorted({f"{row['format']} {_short(row['layout'])}" for row in rows})
    runs = sorted({row["run"] for row in rows})
    print(shown(f"format: {', '.join(formats)}"))
    listing = ["runs:", *(f"  {shown(run)}" for run in runs)]
    print("\n".join(listing) if len(runs) > MOST_IN_LINE else f"runs: {shown(', '.join(runs))}")
    print(shown(f"start: {', '.join(days) or 'unknown'}, from {', '.join(origins)}"))
    alike: dict[tuple[str, str], list[str]] = {}
    for entry in others:
        alike.setdefault((entry["format"], entry["reason"]), []).append(Path(entry["path"]).name)
    for (action, reason), names in sorted(alike.items()):
        print(shown(f"{action}: {counted(len(names), 'file')} ({first_of(names, MOST_IN_LINE)}): {reason}"))


def _short(layout: str) -> str:
    """Return the text of a layout, without most of the edges that one lists."""
    short = f"{layout[: MOST_OF_LAYOUT // 2].rpartition(',')[0]},... ({layout.count(',')} bins)"
    return layout if len(layout) <= MOST_OF_LAYOUT else short
