"""Percentile curves in files: hgrm texts and SLA steps. For display only: no histogram can be had back from them.

           Value     Percentile TotalCount 1/(1-Percentile)              # share of requests, as 1/(1-q), and limit
                                                                         1      5    all
           9.735 0.000000000000          1           1.00                10     5
          65.023 0.100000000000        360           1.11                10     20   90%
        5197.823 1.000000000000       3600                               100    20
    #[Mean    =      301.706, StdDeviation   =      325.387]

hgrm: 3 or 4 columns, `inf` or `Infinity` in the fourth, spaces or commas, indented and amid other text (wrk2 prints it so);
the unit of its values is nowhere stated. SLA steps: `x value [label]`, each x twice where the limit changes.

Source: HdrHistogram's outputPercentileDistribution, and the SLA files of its gnuplot example.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from ingest.core.errors import InputError
from ingest.read.discovery import check_is_there
from ingest.read.hdr.tools import HGRM
from ingest.read.text import blocks

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
ROW = re.compile(
    rf"^\s*(?P<value>{NUMBER})[\s,]+(?P<share>{NUMBER})[\s,]+(?P<count>[0-9]+)(?:[\s,]+(?:{NUMBER}|inf|Infinity))?\s*$"
)
MOST_ROWS = 1_000_000


class Curve(NamedTuple):
    """A percentile curve: value (in ns) that a share of requests does not exceed; `x` is 1/(1 - share), inf at the end.

    `counts` are cumulative, empty for SLA steps; `labels` are the names of SLA steps, empty text where there is none. `path` is
    that of its file, as it was named.
    """

    name: str
    shares: tuple[float, ...]
    x: tuple[float, ...]
    values_ns: tuple[float, ...]
    counts: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    path: Path = Path()


def named_apart(curves: Sequence[Curve], taken: Collection[str] = ()) -> list[Curve]:
    """Return the curves of files under unlike names, none of which is `taken`.

    A name is that of the file without its ending, else with it and as many folders as tell it from the others. A file that was
    named twice (in two units) is counted.
    """
    named: list[Curve] = []
    for curve in curves:
        others = [other.path for other in curves if other.path != curve.path]
        names = (_name_of(curve.path, depth) for depth in range(len(curve.path.parts) + 1))
        alone = (name for depth, name in enumerate(names) if name not in {*taken, *(_name_of(other, depth) for other in others)})
        name = next(alone, str(curve.path))
        again = sum(before.path == curve.path for before in named)
        named.append(curve._replace(name=f"{name} ({again + 1})" if again else name))
    return named


def _name_of(path: Path, depth: int) -> str:
    return "/".join(path.parts[-depth:]) if depth else path.stem


def _lines(path: Path) -> list[str]:
    check_is_there(path)
    lines: list[str] = []
    for block in blocks(path):
        lines += bytes(block).decode("utf-8", "replace").splitlines()
        if len(lines) > MOST_ROWS:
            raise InputError(f"more than {MOST_ROWS:,} lines: no percentile curve", path)
    return lines


def read_hgrm(path: Path, unit_ns: int) -> Curve:
    """Return the first percentile distribution in a file; values must not fall. InputError if there is none."""
    shares, values, counts = list[float](), list[float](), list[int]()
    begun = False
    for number, line in enumerate(_lines(path), 1):
        if not begun:
            begun = HGRM.search(line) is not None
            continue
        match = ROW.match(line)
        if not match:
            if not line.strip():
                continue
            break
        share, value, count = float(match["share"]), float(match["value"]), int(match["count"])
        if shares and (share < shares[-1] or value * unit_ns < values[-1] or count < counts[-1]):
            raise InputError("a percentile, value or count falls: no percentile distribution", path, number)
        shares.append(share)
        values.append(value * unit_ns)
        counts.append(count)
    if not shares:
        raise InputError("holds no percentile distribution (Value, Percentile, TotalCount)", path)
    x = tuple(1 / (1 - share) if share < 1 else math.inf for share in shares)
    return Curve(path.stem, tuple(shares), x, tuple(values), tuple(counts), path=path)


def read_sla(path: Path, unit_ns: int) -> Curve:
    """Return the steps of an SLA file; InputError names the line that is none."""
    points: list[tuple[float, float, str]] = []
    for number, line in enumerate(_lines(path), 1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        cells = re.split(r"[\s,]+", text, maxsplit=2)
        try:
            x, value = float(cells[0]), float(cells[1])
        except (ValueError, IndexError):
            raise InputError("no SLA step: expected `x value [label]`, x being 1/(1 - share)", path, number) from None
        if not x >= 1 or not 0 <= value < math.inf or (points and x < points[-1][0]):
            raise InputError("no SLA step: x begins at 1 and never falls, the limit is a latency", path, number)
        points.append((x, value * unit_ns, cells[2] if len(cells) > 2 else ""))
    if not points:
        raise InputError("holds no SLA step", path)
    xs, values, labels = zip(*points, strict=True)
    return Curve(path.stem, tuple(1 - 1 / x for x in xs), xs, values, (), labels, path)
