"""Mappings: what fields an index has, how they merge, how they are printed, what the server refuses in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT, check_format
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, refuse

Json = Any
WHOLE = {"long": 63, "integer": 31, "short": 15, "byte": 7}
REAL = ("double", "float")
COMMON = {"meta": None}
PARAMETERS: dict[str, dict[str, Any]] = {
    **{kind: {"index": True, "ignore_malformed": False, "coerce": True} for kind in (*WHOLE, *REAL)},
    "keyword": {"index": True, "ignore_above": 2147483647, "fields": None},
    "date": {"index": True, "format": DEFAULT_FORMAT, "ignore_malformed": False},
    "boolean": {"index": True},
    "histogram": {"ignore_malformed": False},
    "flattened": {"ignore_above": 2147483647, "depth_limit": 20},
    "text": {"fields": None, "index": True},
}
REAL_PARAMETERS = {  # the server has them, the double does not
    *"doc_values store null_value copy_to similarity normalizer norms index_options eager_global_ordinals".split(),
    *"split_queries_on_whitespace time_series_dimension time_series_metric script on_script_error locale analyzer".split(),
    *"search_analyzer fielddata boost index_prefixes index_phrases position_increment_gap term_vector".split(),
    *"null_value split_queries_on_whitespace ignore_malformed ignore_above coerce format".split(),
}
NO_PARAMETERS = {"histogram": {"doc_values", "index", "store", "null_value", "coerce", "format", "ignore_above"}}
REAL_TYPES = {  # the server (or its modules) has them, the double does not
    *"ip date_nanos half_float scaled_float unsigned_long binary nested join geo_point geo_shape shape alias version".split(),
    *"constant_keyword wildcard integer_range long_range double_range float_range date_range ip_range completion".split(),
    *"search_as_you_type token_count dense_vector sparse_vector rank_feature rank_features percolator annotated_text".split(),
    *"aggregate_metric_double match_only_text semantic_text murmur3 counted_keyword exponential_histogram tdigest passthrough".split(),
}
ROOT_KEYS = {"dynamic", "properties", "_meta", "date_detection", "_source", "dynamic_templates"}
REAL_ROOT_KEYS = {
    "numeric_detection",
    "dynamic_date_formats",
    "runtime",
    "_routing",
    "_field_names",
    "_data_stream_timestamp",
    "_size",
    "enabled",
    "subobjects",
}


def bad_mapping(reason: str) -> Refusal:
    """Return the refusal of a mapping that the server cannot parse."""
    cause = {"type": "mapper_parsing_exception", "reason": reason}
    body = {
        "root_cause": [cause],
        "type": "mapper_parsing_exception",
        "reason": f"Failed to parse mapping: {reason}",
        "caused_by": cause,
    }
    return Refusal(400, {"error": body, "status": 400})


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a mapping: its full path, type and parameters (defaults filled in)."""

    path: str
    kind: str
    parameters: dict[str, Any]
    given: Json
    parent: Field | None = None  # of `text.keyword`: the text; of `labels.bench`: the flattened field

    def __getitem__(self, name: str) -> Any:
        return self.parameters.get(name)


@dataclass(slots=True)
class Mapping:
    """A parsed mapping: every field by path, every object's `dynamic`, and the tree as it is printed."""

    tree: Json = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    objects: dict[str, str | None] = field(default_factory=lambda: {"": None})
    disabled: set[str] = field(default_factory=set)
    templates: list[Json] = field(default_factory=list)

    def template(self, path: str) -> Json | None:
        """Return the mapping that a dynamic template gives a new field."""
        return next((one["mapping"] for one in self.templates if fnmatchcase(path, one["path_match"])), None)

    def find(self, path: str) -> Field | None:
        """Return the field that a query means: itself, or a key below a flattened one."""
        found = self.fields.get(path)
        if found is not None or "." not in path:
            return found
        above = path
        while "." in above:
            above = above.rpartition(".")[0]
            parent = self.fields.get(above)
            if parent is not None:
                return Field(path, "keyword", {}, None, parent) if parent.kind == "flattened" else None
        return None

    def below(self, path: str) -> list[Field]:
        """Return the fields below an object."""
        return [item for name, item in self.fields.items() if name.startswith(path + ".") and item.parent is None]

    def dynamic(self, path: str) -> str:
        """Return how unknown fields below an object are taken: true, false, strict."""
        while True:
            own = self.objects.get(path)
            if own is not None:
                return own
            if not path:
                return "true"
            path = path.rpartition(".")[0]


def parse(given: Json) -> Mapping:
    """Return the mapping of a JSON object, or refuse it as the server does."""
    found = Mapping()
    if not isinstance(given, dict):
        raise bad_mapping("mapping is not an object")
    for key, value in given.items():
        if key in REAL_ROOT_KEYS:
            raise CannotDo(f"mapping parameter [{key}]")
        if key not in ROOT_KEYS:
            raise bad_mapping(f"Root mapping definition has unsupported parameters:  [{key} : {value}]")
    if (
        not set(given.get("_source", {})) <= {"excludes", "includes", "enabled"}
        or given.get("_source", {}).get("enabled") is False
    ):
        raise CannotDo("mapping parameter [_source] with more than includes and excludes")
    found.tree = {key: given[key] for key in ("_meta", "date_detection", "_source", "dynamic_templates") if key in given}
    found.templates = [_template(one) for one in given.get("dynamic_templates", ())]
    _object(found, "", given, found.tree)
    if len(found.fields) + len(found.objects) > 1000:
        raise CannotDo("a mapping with more than 1000 fields (index.mapping.total_fields.limit)")
    return found


def _template(given: Json) -> Json:
    (one,) = given.values()
    if set(one) != {"path_match", "mapping"} or one["mapping"].get("type") != "keyword":
        raise CannotDo(f"a dynamic template with more than path_match and a mapping to keyword: {given}")
    return one


def _dynamic(value: Any) -> str:
    text = str(value).lower()
    if text in ("runtime", "strict_allow_templates"):
        raise CannotDo(f"dynamic: {text}")
    if text not in ("true", "false", "strict"):
        raise bad_mapping(f"Could not convert [dynamic] to [{text}]")
    return text


def _object(found: Mapping, path: str, given: Json, tree: Json) -> None:
    own = _dynamic(given["dynamic"]) if "dynamic" in given else None
    found.objects[path] = own
    if own is not None:
        tree["dynamic"] = own
    properties = given.get("properties")
    if properties is None:
        return
    if not isinstance(properties, dict):
        raise bad_mapping("Expected map for property [properties]")
    inner: Json = {}
    for name, definition in properties.items():
        if not isinstance(definition, dict):
            raise bad_mapping(f"Expected map for property [fields] on field [{name}] but got a class java.lang.String")
        if "." in name:
            raise CannotDo(f"a dot in the field name [{name}] of a mapping")
        full = f"{path}.{name}" if path else name
        if definition.get("type", "object") == "object":
            inner[name] = _sub_object(found, full, definition)
        else:
            inner[name] = _field(found, full, name, definition)
    if inner:
        tree["properties"] = {name: inner[name] for name in sorted(inner)}


def _sub_object(found: Mapping, full: str, definition: Json) -> Json:
    if "type" not in definition and "properties" not in definition and set(definition) - {"dynamic", "enabled"}:
        raise bad_mapping(f"No type specified for field [{full.rpartition('.')[2]}]")
    for key in definition:
        if key not in ("type", "properties", "dynamic", "enabled"):
            raise CannotDo(f"mapping parameter [{key}] of an object")
    sub: Json = {}
    _object(found, full, definition, sub)
    if str(definition.get("enabled", True)).lower() == "false":
        found.disabled.add(full)
        sub["enabled"] = False
    if "properties" not in sub:
        sub = {"type": "object", **sub}
    return sub


def _field(found: Mapping, full: str, name: str, definition: Json, parent: Field | None = None) -> Json:
    kind = definition["type"]
    if kind not in PARAMETERS:
        if kind in REAL_TYPES:
            raise CannotDo(f"mapper type [{kind}]")
        raise bad_mapping(
            f"The mapper type [{kind}] declared on field [{name}] does not exist. It might have been created within a future "
            "version or requires a plugin to be installed. Check the documentation."
        )
    known = PARAMETERS[kind] | COMMON
    parameters, printed = dict(known), {"type": kind}
    for key, value in definition.items():
        if key == "type":
            continue
        if key not in known:
            if key in REAL_PARAMETERS and key not in NO_PARAMETERS.get(kind, ()):
                raise CannotDo(f"mapping parameter [{key}] of type [{kind}]")
            raise bad_mapping(f"unknown parameter [{key}] on mapper [{name}] of type [{kind}]")
        value = _parameter(key, value, name)
        parameters[key] = value
        if value != known[key]:
            printed[key] = value
    item = Field(full, kind, parameters, printed, parent)
    found.fields[full] = item
    if parameters.get("fields"):
        printed["fields"] = {sub: _field(found, f"{full}.{sub}", sub, inner, item) for sub, inner in parameters["fields"].items()}
    return printed


def _parameter(key: str, value: Any, name: str) -> Any:
    if key == "format":
        return check_format(value)
    if key == "meta" and not (
        isinstance(value, dict)
        and len(value) <= 5
        and all(len(k) <= 20 and isinstance(v, str) and len(v) <= 50 for k, v in value.items())
    ):  # documentation, not recorded: at most 5 entries, keys of 20, string values of 50 characters
        raise bad_mapping(f"[meta] of field [{name}] must be an object of at most 5 short strings")
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    return value


def merged(first: Json, second: Json, *, templates: bool = False) -> Json:
    """Return two mappings as one: objects merge, fields are replaced (templates) or must stay what they are (an index)."""
    result = dict(first)
    for key, value in second.items():
        if key == "properties":
            result[key] = _merged_properties(first.get(key, {}), value, templates=templates)
        elif key == "_meta" and templates and isinstance(first.get(key), dict):
            result[key] = deep(first[key], value)
        else:
            result[key] = value
    return result


def deep(first: Json, second: Json) -> Json:
    """Return two objects as one, the second's values before the first's."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    return {**first, **{key: deep(first[key], value) if key in first else value for key, value in second.items()}}


def _merged_properties(first: Json, second: Json, *, templates: bool) -> Json:
    result = dict(first)
    for name, value in second.items():
        old = first.get(name)
        if old is None:
            result[name] = value
        elif old.get("type", "object") == "object" and value.get("type", "object") == "object":
            result[name] = merged(old, value, templates=templates)
        elif templates:
            result[name] = value
        elif old.get("type", "object") != value.get("type", "object"):
            raise refuse(
                400,
                "illegal_argument_exception",
                f"mapper [{name}] cannot be changed from type [{old.get('type', 'object')}] to [{value.get('type', 'object')}]",
            )
        elif {k: v for k, v in old.items() if k != "meta"} != {k: v for k, v in value.items() if k != "meta"}:
            raise CannotDo(f"changing parameters of the mapped field [{name}]")
        else:
            result[name] = value
    return result


def walk(mapping: Mapping) -> Iterator[Field]:
    """Return all fields that documents have: not the flattened keys."""
    yield from mapping.fields.values()
