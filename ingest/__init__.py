"""Exact latency percentiles over time from the histograms that storage and cloud benchmarks leave behind.

    import ingest

    run = ingest.read("./cbt-archive")
    print(run.percentiles(step="10s", by="op", p=[50, 99, 99.9]))
    print(run.explain())

`read` takes files, folders or a store; what it gives also has heatmap, compare, check, load, report and export. Answers are text,
HTML in a notebook, and an Arrow stream for other libraries. docs/reference/python.md has a page about them.

The names below are the public interface; they are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what checkers of types see of the table below
    from ingest.api.answers import Change as Change
    from ingest.api.answers import Check as Check
    from ingest.api.answers import Explanation as Explanation
    from ingest.api.answers import Frame as Frame
    from ingest.api.answers import HeatMap as HeatMap
    from ingest.api.answers import Loaded as Loaded
    from ingest.api.answers import Percentiles as Percentiles
    from ingest.api.door import Measurements as Measurements
    from ingest.api.door import read as read
    from ingest.core.errors import InputError as InputError
    from ingest.core.errors import StoreError as StoreError
    from ingest.core.errors import TailboardError as TailboardError
    from ingest.core.errors import UsageError as UsageError

__version__ = "0.9.0"

_HOMES = {
    **dict.fromkeys(("Change", "Check", "Explanation", "Frame", "HeatMap", "Loaded", "Percentiles"), "ingest.api.answers"),
    **dict.fromkeys(("Measurements", "read"), "ingest.api.door"),
    **dict.fromkeys(("InputError", "StoreError", "TailboardError", "UsageError"), "ingest.core.errors"),
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
