"""Places in JSON documents, as descriptions name them: `r.{op}.histogram_usec`, `data.*`, `../../unit`.

A step is a key; `*` any key or entry of a list, `{name}` any key, which becomes the label, `..` what holds it. A name that a
place does not have itself is looked for in what holds it, step by step. Keys with dots in them are found as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ingest.core.dataclass import dataclass

MISSING = None
ANY = "*"


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a document, what holds it, and the labels on the way there."""

    value: Any
    above: Place | None = None
    labels: tuple[tuple[str, str], ...] = ()

    def found(self, path: str) -> Any:
        """Return the value that a path names from here, None where there is none."""
        place: Place | None = self
        steps = path.split("/")
        while steps and steps[0] == "..":
            place = None if place is None else place.above
            steps = steps[1:]
        name = "/".join(steps)
        while place is not None:
            value = inner(place.value, name)
            if value is not MISSING or len(steps) < len(path.split("/")):
                return value
            place = place.above
        return MISSING


def inner(value: Any, path: str) -> Any:
    """Return what a dotted path names inside of a value, None where there is none; the longest key that fits comes first."""
    if not path:
        return value
    mapping = _mapping(value)
    if mapping is None:
        return MISSING
    if path in mapping:
        return mapping[path]
    steps = path.split(".")
    for size in range(len(steps) - 1, 0, -1):
        key = ".".join(steps[:size])
        if key in mapping:
            return inner(mapping[key], ".".join(steps[size:]))
    return MISSING


def _mapping(value: Any) -> Mapping[str, Any] | None:
    """Return the pairs of an object; those of a list of `{"key": .., "value": ..}`, too, as OpenTelemetry writes attributes."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(pair, dict) and "key" in pair for pair in value):
        return {str(pair["key"]): _plain(pair.get("value")) for pair in value}
    return None


def _plain(value: Any) -> Any:
    return next(iter(value.values()), None) if isinstance(value, dict) else value


def places(document: Any, path: str) -> Iterator[Place]:
    """Yield every place in a document that a path with `*` and `{label}` leads to."""
    yield from _below(Place(document), path.split(".") if path else [])


def _below(place: Place, steps: list[str]) -> Iterator[Place]:
    if not steps:
        yield place
        return
    step, value = steps[0], place.value
    named = step[1:-1] if step.startswith("{") and step.endswith("}") else ""
    if step == ANY or named:
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, entry in entries:
            labels = (*place.labels, (named, str(key))) if named else place.labels
            yield from _below(Place(entry, place, labels), steps[1:])
    elif isinstance(value, dict):
        for size in range(len(steps), 0, -1):
            key = ".".join(steps[:size])
            if key in value:
                yield from _below(Place(value[key], place, place.labels), steps[size:])
                return
