"""distribution: how latencies are distributed over the whole range."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingest.api.words import in_columns
from ingest.cli.answers import PICTURES, answered, asked, warn, write, write_picture
from ingest.cli.options import EVERY, TICKS, UNIT, Asking, Showing, command, formats, option
from ingest.core.errors import UsageError
from ingest.core.units import UNITS_NS

TABLE_ROWS = 30


class Options(Asking, Showing):
    """What a call of distribution says."""

    unit: str = UNIT
    ticks: int = TICKS
    curves: bool = option("--curves", help="Percentile curves in place of bins.")
    hgrm: tuple[str, ...] = option(
        "--hgrm", metavar="FILE:UNIT", help="Also draw the curve of an hgrm file; UNIT is ns, us, ms or s."
    )
    sla: tuple[str, ...] = option(
        "--sla", metavar="FILE:UNIT", help="Also draw the steps of an SLA file: one `x value [label]` per line."
    )
    format: str = formats(
        *("table", "csv", "ndjson", "hgrm", "png", "svg"), help="hgrm: the text that HdrHistogram prints; png, svg: picture."
    )
    every: bool = EVERY


@command(Options)
def distribution(options: Options) -> None:
    """Show how latencies are distributed over the whole time range.

    \b
    Examples:
      tailboard show distribution ./cbt-archive --by host --format csv
      tailboard show distribution --run nightly-42 --where op=write --unit us
      tailboard show distribution stress.hdr --by op,kind --curves --sla sla.txt:ms --format csv

    A table has 20 to 30 ranges of latency, near 1, 2, 5, 10, ..., of whole bins, so that counts are exact (--all: every bin).
    csv and ndjson have one row per group and occupied bin: the --by labels, lower,upper (in --unit), count, cumulative. With
    --curves they have one row per percentile level: curve, percentile, x = 1/(1-q), value (in --unit), count.
    """
    from ingest.query.heatmap import distribution as rows_of

    others = _curve_files(options.hgrm, options.sla)
    answer = answered(options, in_columns(asked(options, "all"), options.format))
    if options.format in PICTURES:
        from ingest.view.pictures import distribution_picture

        write_picture(distribution_picture(answer, others), answer, options)
        return
    if options.format == "hgrm":
        from ingest.query.lags import whole_counts
        from ingest.view.hlog import texts

        warn(answer)
        sys.stdout.writelines(texts(replace(answer, parts=whole_counts(answer)), UNITS_NS[options.unit], options.ticks))
        return
    if options.curves or others:
        from ingest.query.curves import curves

        write(curves(answer, others, options.ticks), answer, options, "percentile curves")
        return
    if options.format == "table" and not options.every:
        from ingest.query.heatmap import ranges

        write(ranges(answer, TABLE_ROWS), answer, options, "distribution")
        return
    write(rows_of(answer), answer, options, "distribution")


def _curve_files(hgrm: tuple[str, ...], sla: tuple[str, ...]) -> list[Any]:
    """Return the curves of files named as FILE:UNIT; UsageError where the unit is not said."""
    from ingest.read.curves import read_hgrm, read_sla

    curves = []
    for texts, name_of_option, reader in ((hgrm, "--hgrm", read_hgrm), (sla, "--sla", read_sla)):
        for text in texts:
            name, _, unit = text.rpartition(":")
            if unit not in ("ns", "us", "ms", "s") or not name:
                raise UsageError(f"{name_of_option} {text}: the file does not say its unit: {text}:ms, for example")
            curves.append(reader(Path(name), UNITS_NS[unit]))
    return curves
