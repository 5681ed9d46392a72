"""Documents as an index takes them: source text to field values, or the server's reason why not.

`read` is the authority: it goes token by token in the document's order, so the fault reported is the one the server meets first.
`fast.py` takes the plain case in a tenth of the time and hands over whatever it cannot vouch for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.elasticsearch import histogram
from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT
from tests.doubles.elasticsearch.errors import CannotDo
from tests.doubles.elasticsearch.mapping import Field, Mapping
from tests.doubles.elasticsearch.tokens import Broken, Token, Tokens, build, end_of
from tests.doubles.elasticsearch.values import Rejected, converted, guess, unfit

Json = Any


@dataclass(slots=True)
class Parsed:
    """What an index keeps of a document: values by field path, ignored fields, its weight, fields to add to the mapping."""

    fields: dict[str, Any] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    weight: int = 1
    added: Json = field(default_factory=dict)

    def add(self, path: str, value: Any) -> None:
        """Keep one more value of a field."""
        have = self.fields.get(path)
        if have is None:
            self.fields[path] = value
        elif isinstance(have, list):
            have.append(value)
        else:
            self.fields[path] = [have, value]


@dataclass(slots=True)
class Reading:
    """One document on its way through `read`."""

    mapping: Mapping
    identifier: str
    source: Tokens
    tokens: Iterator[Token]
    parsed: Parsed
    objects: set[str] = field(default_factory=set)  # met for the first time in this document
    fields: dict[str, Field] = field(default_factory=dict)  # the same

    def at(self, token: Token | None = None) -> str:
        """Return the position as the server writes it."""
        token = token or self.source.last
        return f"[{token.line}:{token.column}]"


def read(text: str, mapping: Mapping, identifier: str, ignored: tuple[str, ...] = ()) -> Parsed:
    """Return a document's values, or raise `Rejected`."""
    source = Tokens(text)
    reading = Reading(mapping, identifier, source, iter(source), Parsed(ignored=list(ignored)))
    try:
        first = next(reading.tokens)
        if first.kind != "START_OBJECT":
            raise CannotDo("a document that is no JSON object")
        _object(reading, "")
        for _ in reading.tokens:
            pass
    except Broken as error:
        raise Rejected("document_parsing_exception", f"{reading.at()} failed to parse: {error.reason}", error.error) from error
    except _Ignore as skip:
        end = end_of(text, skip.start)
        blank = "null".ljust(end - skip.start)
        return read(text[: skip.start] + blank + text[end:], mapping, identifier, (*ignored, skip.path))
    return reading.parsed


class _Ignore(Exception):
    def __init__(self, path: str, start: int) -> None:
        super().__init__(path)
        self.path = path
        self.start = start


def _object(reading: Reading, path: str) -> None:
    for name in reading.tokens:
        if name.kind == "END_OBJECT":
            return
        if not path and name.value.startswith("_") and _metadata(reading, name):
            continue
        if not name.value.strip("."):
            raise Rejected("document_parsing_exception", f"{reading.at(name)} field name cannot be an empty string")
        full = f"{path}.{name.value}" if path else name.value
        start = _start(reading)
        _value(reading, full, next(reading.tokens), start)


def _start(reading: Reading) -> int:
    return len(reading.source.text) - len(reading.source.text[reading.source.at :].lstrip(": \t\r\n"))


def _metadata(reading: Reading, name: Token) -> bool:
    if name.value == "_doc_count":
        token = next(reading.tokens)
        if token.kind != "VALUE_NUMBER" or not isinstance(token.value, int) or token.value <= 0:
            where = f"{reading.at(token)} failed to parse field [_doc_count] of type [_doc_count] in document with id"
            reason = f"{where} '{reading.identifier}'. Preview of field's value: '{token.text}'"
            cause = {
                "type": "illegal_argument_exception",
                "reason": f"Field [_doc_count] must be a positive integer. Value [{token.text}] is not allowed.",
            }
            raise Rejected("document_parsing_exception", reason, cause)
        reading.parsed.weight = token.value
        return True
    if name.value in ("_id", "_index", "_source", "_seq_no", "_version", "_routing", "_ignored", "_type", "_field_names"):
        raise Rejected(
            "document_parsing_exception",
            f"{reading.at(name)} Field [{name.value}] is a metadata field and cannot be added inside a document. Use the index API request parameters.",
        )
    return False


def _value(reading: Reading, path: str, token: Token, start: int) -> None:
    mapping = reading.mapping
    if path in mapping.disabled:
        build(token, reading.tokens)
        return
    known = mapping.fields.get(path) or reading.fields.get(path)
    if known is not None:
        _mapped(reading, known, token, start)
    elif path in mapping.objects or path in reading.objects:
        _inner(reading, path, token)
    elif "." in path.rpartition(".")[2]:
        raise CannotDo("dots in field names of documents")
    else:
        _unmapped(reading, path, token)


def _inner(reading: Reading, path: str, token: Token) -> None:
    if token.kind == "START_OBJECT":
        _object(reading, path)
    elif token.kind == "START_ARRAY":
        for item in reading.tokens:
            if item.kind == "END_ARRAY":
                return
            _inner(reading, path, item)
    elif token.kind != "VALUE_NULL":
        short = path.rpartition(".")[2]
        raise Rejected(
            "document_parsing_exception",
            f"{reading.at(token)} object mapping for [{path}] tried to parse field [{short}] as object, but found a concrete value",
        )


def _unmapped(reading: Reading, path: str, token: Token) -> None:
    above, _, name = path.rpartition(".")
    while above and above not in reading.mapping.objects:
        above = above.rpartition(".")[0]
    dynamic = reading.mapping.dynamic(above)
    if dynamic == "strict":
        within = path.rpartition(".")[0] or "_doc"
        raise Rejected(
            "strict_dynamic_mapping_exception",
            f"{reading.at(token)} mapping set to strict, dynamic introduction of [{name}] within [{within}] is not allowed",
        )
    if dynamic == "false":
        build(token, reading.tokens)
        return
    if token.kind == "START_OBJECT":
        reading.objects.add(path)
        _add(reading, path, {"type": "object"})
        _object(reading, path)
    elif token.kind == "START_ARRAY":
        for item in reading.tokens:
            if item.kind == "END_ARRAY":
                return
            _value(reading, path, item, 0)
    elif token.kind != "VALUE_NULL":
        template = reading.mapping.template(path)
        if template is not None:
            if token.kind != "VALUE_STRING":
                raise CannotDo("a dynamic template for a value that is no text")
            _add(reading, path, template)
            reading.fields[path] = Field(path, "keyword", {"ignore_above": 2147483647, **template}, template)
            _scalar(reading, reading.fields[path], token)
            return
        kind = guess(token)
        given = {"type": kind, **({"fields": {"keyword": {"type": "keyword", "ignore_above": 256}}} if kind == "text" else {})}
        _add(reading, path, given)
        new = Field(path, kind, {"format": DEFAULT_FORMAT} if kind == "date" else {}, given)
        if kind == "text":
            new.parameters["fields"] = given["fields"]
        reading.fields[path] = new
        _scalar(reading, new, token)


def _add(reading: Reading, path: str, given: Json) -> None:
    tree = reading.parsed.added
    parts = path.split(".")
    for part in parts[:-1]:
        tree = tree.setdefault("properties", {}).setdefault(part, {})
        tree.pop("type", None)
    tree.setdefault("properties", {})[parts[-1]] = given


def _mapped(reading: Reading, known: Field, token: Token, start: int) -> None:
    if known.kind == "histogram":
        _histogram(reading, known, token, start)
    elif known.kind == "flattened":
        _flattened(reading, known, known.path, token)
    elif token.kind == "START_ARRAY":
        for item in reading.tokens:
            if item.kind == "END_ARRAY":
                return
            _mapped(reading, known, item, 0)
    elif token.kind == "START_OBJECT":
        preview = reading.source.text[reading.source.at - 1 :][:50]
        raise unfit(known, token, reading.identifier, f"Cannot parse object as a {known.kind}", preview)
    elif token.kind != "VALUE_NULL":
        _scalar(reading, known, token)


def _histogram(reading: Reading, known: Field, token: Token, start: int) -> None:
    if token.kind == "START_ARRAY":
        for item in reading.tokens:
            if item.kind == "END_ARRAY":
                return
            _histogram(reading, known, item, start)
        return
    if token.kind == "VALUE_NULL":
        return
    found: histogram.Malformed | Broken
    try:
        bins = histogram.parse(known.path, token, reading.tokens, reading.source)
        if known.path in reading.parsed.fields:
            reason = f"Field [{known.path}] of type [histogram] doesn't support indexing multiple values for the same field in the same document"
            raise histogram.Malformed({"type": "illegal_argument_exception", "reason": reason}, reading.source.last)
        reading.parsed.fields[known.path] = bins
        return
    except histogram.Malformed as error:
        found = error
    except Broken as error:
        found = error
        if known["ignore_malformed"] and "Duplicate field" in error.reason:  # recorded: skipping the rest fails on the colon
            raise error.at_colon() from None
    if known["ignore_malformed"]:
        raise _Ignore(known.path, start) from found
    raise Rejected(
        "document_parsing_exception", f"{reading.at()} failed to parse field [{known.path}] of type [histogram]", found.error
    ) from found


def _flattened(reading: Reading, known: Field, path: str, token: Token) -> None:
    if token.kind == "START_OBJECT":
        for name in reading.tokens:
            if name.kind == "END_OBJECT":
                return
            _flattened(reading, known, f"{path}.{name.value}", next(reading.tokens))
    elif token.kind == "START_ARRAY":
        for item in reading.tokens:
            if item.kind == "END_ARRAY":
                return
            _flattened(reading, known, path, item)
    elif token.kind != "VALUE_NULL":
        if path == known.path:
            raise unfit(
                known, token, reading.identifier, "Failed to parse object: expecting token of type [START_OBJECT]", token.text
            )
        text = token.value if isinstance(token.value, str) else token.text
        if len(text) <= known["ignore_above"]:
            reading.parsed.add(known.path, text)
            reading.parsed.add(path, text)


def _scalar(reading: Reading, known: Field, token: Token) -> None:
    try:
        value = converted(known, token, reading.identifier)
    except Rejected:
        if not known["ignore_malformed"]:
            raise
        reading.parsed.ignored.append(known.path)
        return
    if known.kind == "keyword" and known["ignore_above"] is not None and len(value) > known["ignore_above"]:
        reading.parsed.ignored.append(known.path)
        return
    reading.parsed.add(known.path, value)
    for name, given in (known["fields"] or {}).items():
        if given["type"] != "keyword":
            raise CannotDo(f"a sub-field of type [{given['type']}]")
        text = token.value if isinstance(token.value, str) else token.text
        if len(text) <= given.get("ignore_above", 2147483647):
            reading.parsed.add(f"{known.path}.{name}", text)
