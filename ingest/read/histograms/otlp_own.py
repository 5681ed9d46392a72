"""The OpenTelemetry metrics that `export --format otlp` writes: their words, and what they are when they are read again."""

from __future__ import annotations

from collections.abc import Mapping

from ingest.core.edges import Exponential
from ingest.core.series import LABELS, Series, in_layer

SCOPE = "tailboard"
PREFIX, SUFFIX = "tailboard.", ".duration"
HOST, RUN, KIND = "host.name", "tailboard.run", "tailboard.kind"
ERROR, BELOW_PPM, BELOW_NS = "tailboard.error", "tailboard.below_ppm", "tailboard.below_ns"
TAKEN = frozenset(LABELS) - {"run", "kind", "host"}


def own_series(base: Series, metric: str, metadata: Mapping[str, str], attributes: Mapping[str, str]) -> Series:
    """Return the series of a point of ours: `tailboard.device.completion.duration` is of kind device:completion."""
    layer, _, kind = metric.removeprefix(PREFIX).removesuffix(SUFFIX).partition(".")
    labels = {name: attributes.get(name, "") for name in TAKEN}
    host = base.host or attributes.get(HOST, "")
    return base.replaced(**{**labels, "host": host, "kind": metadata.get(KIND) or in_layer(kind, layer)})


def with_error(layout: Exponential, metadata: Mapping[str, str]) -> Exponential:
    """Return the layout with what the export says of samples below their buckets; ValueError where it is no number."""
    below = [int(metadata.get(name, "0")) for name in (BELOW_PPM, BELOW_NS)]
    return Exponential(layout.scale, layout.unit_ns, *below)
