"""The truth beneath a histogram: fio's log of every single I/O (`write_lat_log`), and fio's own totals in json+."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

from oracles.brute import MS, OPS, Row, bins_in, geometry, index_of, rows_of, settled, width_of

Sample = tuple[int, int]


def text_of(path: Path) -> str:
    """Return the text of a log, plain or .gz."""
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def samples(path: Path) -> dict[str, list[Sample]]:
    """Return (completion in ms, latency in ns) of each I/O by direction, in file order.

    0, 12969, 0, 4096, 0          time ms, latency ns, direction, size, priority
    """
    found: dict[str, list[Sample]] = {}
    for line in text_of(path).splitlines():
        stamp, value, direction = (int(cell) for cell in line.split(",")[:3])
        found.setdefault(OPS[direction], []).append((stamp, value))
    return found


def within(all_samples: list[Sample], after_ms: int, until_ms: int) -> list[int]:
    """Return the latencies of the I/Os that completed in (after, until]."""
    return [value for stamp, value in all_samples if after_ms < stamp <= until_ms]


def binned(values: list[int], bins: int, coarseness: int) -> Counter[int]:
    """Return how many values lie in each of fio's ns bins at a coarseness."""
    return Counter(index_of(value, (bins << coarseness) - 1) >> coarseness for value in values)


def nearest_rank(values: list[int], percent: str) -> int:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    share = Fraction(percent)
    return sorted(values)[max(-(-len(values) * share.numerator // (share.denominator * 100)), 1) - 1]


def json_of(path: Path) -> dict:
    """Return fio's JSON document."""
    return json.loads(path.read_text())


def zero_ms(document: dict, job: int = 0) -> int:
    """Return the epoch ms at which a job began: the end of the run less the longest runtime of its group."""
    group = document["jobs"][job]["groupid"]
    runtimes = [entry[op]["runtime"] for entry in document["jobs"] if entry["groupid"] == group for op in OPS]
    return document["timestamp_ms"] - max(runtimes)


def json_bins(direction: dict, bins: int, coarseness: int, kind: str = "clat_ns") -> Counter[int]:
    """Return fio's own total histogram of a job and direction, folded to a coarseness."""
    found: Counter[int] = Counter()
    for midpoint, count in direction[kind].get("bins", {}).items():
        found[index_of(int(midpoint), (bins << coarseness) - 1) >> coarseness] += count
    return found


def chains(log: Path, document: dict | None = None, job: int = 0, unix_width_ms: int = 0) -> dict[str, list[Row]]:
    """Return the rows of each direction of a log without their gaps, and what json+ holds beyond them as a last row up to the job's end.

    Stamps since 1970 (`unix_width_ms` set) say where rows end; the job began as wide as a row is meant to be before the first,
    or before that where the JSON says so.
    """
    text = text_of(log)
    zero = zero_ms(document, job) * MS if document else 0
    found = rows_of(text, 0 if unix_width_ms else zero)
    if unix_width_ms:
        began = min(rows[0][1] for rows in found.values()) - unix_width_ms * MS
        zero = min(zero, began) if document else began
        for rows in found.values():
            rows[0] = (zero, *rows[0][1:])
    bins = bins_in(text)
    options = {} if document is None else {**document.get("global options", {}), **document["jobs"][job]["job options"]}
    width_ms = int(options.get("log_hist_msec", 0)) or width_of(found)
    found = {op: settled(rows, width_ms, bins, stated="log_hist_msec" in options) for op, rows in found.items()}
    if document is None:
        return found
    entry = document["jobs"][job]
    for op in OPS:
        left = json_bins(entry[op], bins, geometry(bins)[2])
        rows = found.setdefault(op, [])
        for _, _, counts in rows:
            left.subtract(counts)
        assert all(count >= 0 for count in left.values()), "the recording itself is at odds with its JSON"
        end = zero + max(entry[other]["runtime"] for other in OPS) * MS
        start = rows[-1][1] if rows else zero
        if +left:
            rows.append((start, max(end, start), dict(+left)))
    return {op: rows for op, rows in found.items() if rows}


def histogram_files(folder: Path) -> list[Path]:
    """Return the histogram logs of a recording and its JSON, without the raw logs beside them."""
    return [path for path in sorted(folder.rglob("*")) if "_clat_hist" in path.name or path.suffix == ".json"]
