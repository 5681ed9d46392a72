"""Space against error where bins are coarsened: the example archive (fio) and an HdrHistogram recording of 3 digits, as a table.

    python benchmarks/wider_bins.py

Bins and bytes are those of documents in a SQLite store, bytes sent those of a bulk request of the same documents. The error is
measured: the largest change of p50, p95, p99 and p99.9 among all windows of each op.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np

from ingest.core.quantiles import parse_percentiles
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.precision import precision_of
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.elastic.export import made
from ingest.store.elastic.templates import Names
from ingest.store.lifecycle import CoarserBins
from ingest.store.sqlite.store import SqliteStore

ROOT = Path(__file__).parents[1]
EXAMPLE, RECORDING = ROOT / "examples" / "cbt-archive", ROOT / "tests" / "data" / "hdr" / "2.2.2-3-digits.hlog"
FIO, HDR = [CoarserBins(coarseness=many) for many in range(1, 7)], [CoarserBins(digits=digits) for digits in (2, 1, 0)]
SECOND = 10**9
DATA = {
    "fio, the example archive, 1 s": (EXAMPLE, SECOND, FIO),
    "the same, 1 min": (EXAMPLE, 60 * SECOND, FIO),
    "HdrHistogram, a recording of 3 digits, 1 s": (RECORDING, SECOND, HDR),
}
PERCENTS = "50,95,99,99.9"


def main() -> None:
    """Print the table."""
    print(
        "| data | bins | bins a document | bytes of bins | sent, bytes a document | error bound | largest error of a percentile |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, (path, step_ns, ways) in DATA.items():
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source.db"
            with open_store(f"sqlite:{source}", write=True) as store:
                unit = 1 if path == RECORDING else None
                load([path], store, LoadOptions(ReadOptions(run="r", recorded_unit_ns=unit), step_ns=SECOND, force=True, jobs=1))
                for record in store.runs() if step_ns != SECOND else ():
                    store.coarsen(record.run, step_ns)
            asked = Question(by=("op",), step=step_ns)
            finest = values(source, asked)
            for way in (None, *ways):
                copy = Path(folder) / "copy.db"
                shutil.copy(source, copy)
                if way is not None:
                    with open_store(f"sqlite:{copy}", write=True) as store:
                        for record in store.runs():
                            store.widen(record.run, way)
                change = float(np.nanmax(np.abs(values(copy, asked) / finest - 1)))
                print(f"| {name} | {way or 'as recorded'} | {figures(copy, asked)} | {change:.2%} |")


def values(path: Path, asked: Question) -> np.ndarray:
    """Return the percentiles of all windows, one row a window."""
    with open_store(f"sqlite:{path}") as store:
        table = percentiles(store.answer(asked), Wanted(parse_percentiles(PERCENTS)))
    return np.stack([table.columns[name] for name in ("p50", "p95", "p99", "p99.9")], axis=1).astype(float)


def figures(path: Path, asked: Question) -> str:
    """Return bins and bytes a document, and the bound that an answer states."""
    documents, size = sqlite3.connect(path).execute("SELECT count(*), sum(length(bins)) FROM intervals").fetchone()
    with SqliteStore(str(path)) as store:
        lines = [line for record in store.runs() for line in made(store, record, Names("tailboard"))]
        sent = sum(len(line) for line in lines if b"intervals" in line[:60])
        held = sum(len(windows.bins) for windows in store.windows(Question(by=("host", "job", "volume", "op", "kind", "tag"))))
        bound = precision_of(store.answer(asked).parts, parse_percentiles(PERCENTS))
    stated = f"{bound.share:.2%}" if bound else ""
    return f"{held / documents:.0f} | {size / documents:.0f} | {sent / documents:.0f} | {stated}"


if __name__ == "__main__":
    main()
