"""Index settings: flat and nested forms, what the double knows, what the server refuses."""

from __future__ import annotations

from typing import Any

from tests.doubles.elasticsearch.dates import interval_millis
from tests.doubles.elasticsearch.errors import CannotDo, illegal, refuse
from tests.doubles.elasticsearch.key_order import hash_order

Json = Any
WHOLE = {
    "index.number_of_shards": (1, 1024),
    "index.number_of_replicas": (0, None),
    "index.max_result_window": (1, None),
    "index.mapping.total_fields.limit": (0, None),
}
CODECS = ("default", "best_compression", "legacy_default", "legacy_best_compression")
BLOCKS = ("index.blocks.read_only_allow_delete", "index.blocks.write")
OTHERS = ("index.refresh_interval", "index.codec", "index.mode")
NO_EFFECT_ON_ONE_NODE = ("index.auto_expand_replicas",)  # but for the number of replicas, that of the range's start
MODES = ("standard",)
IN_TEMPLATES = {"index.mode": ("logsdb",), "index.mapping.source.mode": ("stored",)}  # taken there; no index is made of them


def flat(given: Json, above: str = "") -> dict[str, Any]:
    """Return settings by full name, values as text: {"index": {"number_of_shards": 1}} is {"index.number_of_shards": "1"}."""
    found: dict[str, Any] = {}
    for key, value in (given or {}).items():
        name = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            found |= flat(value, name)
        else:
            full = name if name == "index" or name.startswith("index.") else f"index.{name}"
            found[full] = value if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return found


def nested(settings: dict[str, Any]) -> Json:
    """Return flat settings as nested objects, their keys in the order in which a server answers them."""
    found: Json = {}
    for name in sorted(settings):
        *above, last = name.split(".")
        place = found
        for part in above:
            place = place.setdefault(part, {})
        place[last] = settings[name]
    return _ordered(found)


def _ordered(value: Json) -> Json:
    return {name: _ordered(value[name]) for name in hash_order(value, least=2)} if isinstance(value, dict) else value


def checked(settings: dict[str, Any], *, template: bool = False) -> dict[str, Any]:
    """Return the settings, or refuse what the server or the double does not know."""
    for name, value in settings.items():
        if template and value in IN_TEMPLATES.get(name, ()):
            continue
        if name in WHOLE:
            _whole(name, value)
        elif name == "index.refresh_interval":
            if value != "-1":
                interval_millis(value)
        elif name == "index.codec":
            if value not in CODECS:
                raise illegal(
                    f"unknown value for [index.codec] must be one of [default, lz4, best_compression, zlib] but was: {value}"
                )
        elif name in NO_EFFECT_ON_ONE_NODE:
            continue
        elif name in BLOCKS:
            if value not in ("true", "false"):
                raise illegal(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")
        elif name == "index.mode":
            if value not in MODES:
                raise CannotDo(f"index.mode [{value}]")
        else:
            raise CannotDo(f"index setting [{name}]")
    return settings


def _whole(name: str, value: Any) -> None:
    least, most = WHOLE[name]
    try:
        number = int(value)
    except ValueError as error:
        raise refuse(400, "illegal_argument_exception", f"Failed to parse value [{value}] for setting [{name}]") from error
    if number < least or (most is not None and number > most):
        raise illegal(
            f"Failed to parse value [{value}] for setting [{name}] must be >= {least}"
            if number < least
            else f"Failed to parse value [{value}] for setting [{name}] must be <= {most}"
        )
