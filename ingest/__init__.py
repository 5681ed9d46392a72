"""Exact latency percentiles over time from the histograms that storage and cloud benchmarks leave behind.

    from ingest import Files, Question, Wanted, parse_percentiles, percentiles

    answer = Files(["./cbt-archive"]).answer(Question(by=("op",), step=10_000_000_000))
    table = percentiles(answer, Wanted(parse_percentiles("50,99,99.9")))
    print(table.columns["start_ns"], table.columns["p99"])

`table_of(origin, question, wanted)` gives table and answer at once, from files or a store; of long logs in flat memory.

Everything is in integer nanoseconds. The names below are the public interface; they are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what checkers of types see of the table below
    from ingest.core.errors import TailboardError as TailboardError
    from ingest.core.intervals import Intervals as Intervals
    from ingest.core.labels import Series as Series
    from ingest.core.layout import LogLinear as LogLinear
    from ingest.core.quantiles import Percentile as Percentile
    from ingest.core.quantiles import parse_percentiles as parse_percentiles
    from ingest.core.units import Instant as Instant
    from ingest.core.units import parse_duration as parse_duration
    from ingest.core.units import parse_instant as parse_instant
    from ingest.query.files import Files as Files
    from ingest.query.heatmap import distribution as distribution
    from ingest.query.heatmap import heatmap as heatmap
    from ingest.query.percentiles import Wanted as Wanted
    from ingest.query.percentiles import percentiles as percentiles
    from ingest.query.percentiles import table_of as table_of
    from ingest.query.question import Answer as Answer
    from ingest.query.question import Question as Question
    from ingest.query.table import Table as Table
    from ingest.read.account import Account as Account
    from ingest.read.sources import ReadOptions as ReadOptions
    from ingest.store import open_store as open_store

__version__ = "0.9.0"

_HOMES = {
    "Account": "ingest.read.account",
    "Answer": "ingest.query.question",
    "Files": "ingest.query.files",
    "Instant": "ingest.core.units",
    "Intervals": "ingest.core.intervals",
    "LogLinear": "ingest.core.layout",
    "Percentile": "ingest.core.quantiles",
    "Question": "ingest.query.question",
    "ReadOptions": "ingest.read.sources",
    "Series": "ingest.core.labels",
    "Table": "ingest.query.table",
    "TailboardError": "ingest.core.errors",
    "Wanted": "ingest.query.percentiles",
    "distribution": "ingest.query.heatmap",
    "heatmap": "ingest.query.heatmap",
    "open_store": "ingest.store",
    "parse_duration": "ingest.core.units",
    "parse_instant": "ingest.core.units",
    "parse_percentiles": "ingest.core.quantiles",
    "percentiles": "ingest.query.percentiles",
    "table_of": "ingest.query.percentiles",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  # the names are strings; the table is their one home


def __getattr__(name: str) -> Any:
    """Return a public name from the module it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ingest' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
