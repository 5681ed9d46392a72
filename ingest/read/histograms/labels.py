"""Which labels of ours the attributes of a metric are: those that people use for hosts, operations and volumes, by name."""

from __future__ import annotations

from collections.abc import Mapping

from ingest.core.series import CLIENT, LAYER, LAYERS, Series, in_layer

KNOWN = {
    "host": ("host", "host.name", "hostname", "node"),
    "job": ("job", "service.name"),
    "process": ("process", "service.instance.id", "pid", "instance"),
    "volume": ("volume", "pool", "device", "disk"),
    "op": ("op", "operation", "method", "http.request.method", "rpc.method", "db.operation.name", "db.operation", "command"),
}
OF_THE_SDK = "telemetry.sdk."


def series_of(base: Series, metric: str, attributes: Mapping[str, str]) -> Series:
    """Return the series of a metric's attributes; what has no label of ours stays in the tag, behind the metric's name.

    A Prometheus `instance` is host and port: the host is taken from it where nothing else says it.
    """
    rest = {name: value for name, value in attributes.items() if not name.startswith(OF_THE_SDK)}
    layer = rest.pop(LAYER) if rest.get(LAYER) in LAYERS else CLIENT
    labels = {}
    for label, names in KNOWN.items():
        name = next((name for name in names if rest.get(name)), None)
        if name is not None:
            labels[label] = rest.pop(name)
    instance = attributes.get("instance", "")
    if instance and "host" not in labels:
        labels["host"] = instance.rsplit(":", 1)[0]
    more = ",".join(f"{name}={rest[name]}" for name in sorted(rest))
    labels["tag"] = f"{metric}{{{more}}}" if more else metric
    labels.setdefault("op", metric)
    labels["kind"] = in_layer("service", layer)
    host = base.host or labels.get("host", "")
    return base.replaced(**{**labels, "host": host})
