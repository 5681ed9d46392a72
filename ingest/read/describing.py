"""What describes a file that no reader knows: a YAML file of the user, or one that comes with tailboard (`presets`), by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ingest.read.delimited.description import Description, column_description, described, is_description, yaml_in
from ingest.read.histograms.description import HistogramDescription, histogram_description

PRESETS = Path(__file__).parent / "presets"


@cache
def presets() -> tuple[str, ...]:
    """Return the names of the descriptions that come with tailboard."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yml")))


def is_described(text: str) -> bool:
    """Return whether the value of --input-format is a file that describes a format, or the name of a preset."""
    return is_description(text) or text in presets()


def description_of(text: str) -> Description | HistogramDescription:
    """Return the description in a file, or of a preset; UsageError names its fault."""
    path = PRESETS / f"{text}.yml" if text in presets() else Path(text)
    entries = yaml_in(path)
    if isinstance(entries, dict) and "histogram" in entries:
        return described(path, entries, histogram_description)
    return described(path, entries, column_description)
