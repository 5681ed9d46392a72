"""The nouns of discovery: how files are to be read, the sources that were found, and the files that were not taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ingest.read.context import EXPECTED, INTENDED, RATE, Context

HIST, JSON, HDR, OPERATIONS = "fio-hist", "fio-json", "hdr-log", "operations"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are to be read: what the user said of them. `t0` is epoch ns, or "mtime".

    `rate` is the schedule of requests per second as a decimal number, `expected_interval_ns` that of a histogram's samples.
    """

    run: str = ""
    input_format: str = ""
    host: str = ""
    host_alias: Mapping[str, str] = field(default_factory=dict)
    host_offset_ns: Mapping[str, int] = field(default_factory=dict)
    t0: int | str | None = None
    recorded_unit_ns: int | None = None
    expected_interval_ns: int = 0
    rate: str = ""
    intended_column: str = ""

    @property
    def told(self) -> Mapping[str, str]:
        """Return what the user said of how requests were sent, as options of a context."""
        words = {
            EXPECTED: str(self.expected_interval_ns or ""),
            RATE: self.rate,
            INTENDED: self.intended_column,
        }
        return {name: value for name, value in words.items() if value}


@dataclass(frozen=True, slots=True)
class Source:
    """A file that will be read: its format, its context, and the median width of its first rows (0 if unknown)."""

    path: Path
    format: str
    context: Context
    width_ns: int = 0
    layout: str = ""

    @property
    def identity(self) -> str:
        """Return what the source is, whatever it is called: its labels and format."""
        series = self.context.series
        return f"{self.format}|{series.host}|{series.volume}|{series.job}|{series.process}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not read: `action` is skipped, refused, shadowed, or context where its facts are used."""

    path: Path
    action: str
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """All sources and all other files under the given paths; `labels` holds the settings of each run."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    labels: Mapping[str, Mapping[str, str]]
