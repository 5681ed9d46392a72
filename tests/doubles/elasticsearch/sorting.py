"""The order of hits: sort values, ties, and where a page begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT, NotADate, check_format, millis_of, text_of
from tests.doubles.elasticsearch.errors import CannotDo, ShardFailure, illegal, query_shard, shard_illegal

Json = Any
LONG_MAX = 2**63 - 1


class SortKey:
    """One key of a sort."""

    def __init__(self, given: Json) -> None:
        options: Json = {}
        if isinstance(given, str):
            self.field = given
        else:
            if len(given) != 1:
                raise CannotDo("a sort of several fields in one object")
            ((self.field, options),) = given.items()
            if isinstance(options, str):
                options = {"order": options}
        for key in options:
            if key not in ("order", "missing", "unmapped_type", "format"):
                raise CannotDo(f"[{key}] in a sort")
        self.ascending = str(options.get("order", "desc" if self.field == "_score" else "asc")).lower() == "asc"
        self.first = options.get("missing", "_last") == "_first"
        if options.get("missing", "_last") not in ("_first", "_last"):
            raise CannotDo("a sort with a value for what is missing")
        self.unmapped = options.get("unmapped_type")
        self.pattern = check_format(options["format"]) if "format" in options else None
        self.kind = ""

    def prepare(self, view: View) -> None:
        """Refuse what a shard refuses."""
        if self.field in ("_shard_doc", "_doc", "_score"):
            self.kind = self.field
            return
        if self.field in ("_id", "_index"):
            raise CannotDo(f"a sort by {self.field}")
        kinds = {item.kind for item in view.fields(self.field)}
        if "histogram" in kinds:
            raise shard_illegal("can't sort on the [histogram] field")
        if any(reader.field(self.field) is None for reader in view.readers) and self.unmapped is None:
            raise query_shard(f"No mapping found for [{self.field}] in order to sort on", cause=False)
        families = {
            "date"
            if kind == "date"
            else "whole"
            if kind in ("long", "integer", "short", "byte")
            else "real"
            if kind in ("double", "float")
            else "word"
            if kind in ("keyword", "flattened")
            else kind
            for kind in kinds
        }
        if len(families) > 1 or families & {"text", "boolean"}:
            raise CannotDo(f"a sort by a field of type {sorted(kinds)}")
        self.kind = (
            families.pop()
            if families
            else {"date": "date", "long": "whole", "double": "real", "keyword": "word"}.get(self.unmapped or "", "word")
        )

    def column(self, view: View, places: np.ndarray) -> tuple[np.ndarray, list[Any] | None]:
        """Return for each document the number it is sorted by (ascending), and the words that numbers stand for."""
        size = len(view)
        if self.kind in ("_shard_doc", "_doc"):
            return (places if self.ascending else -places), None
        if self.kind == "word":
            words = view.words(self.field)
            return self._ranked(size, words.documents, words.codes.astype(np.int64), len(words.words)), words.words
        numbers = view.numbers(self.field)
        if self.kind == "real":
            values = np.full(size, np.inf)
            lowest = np.full(size, -np.inf)
        else:
            values = np.full(size, LONG_MAX, dtype=np.int64)
            lowest = np.full(size, -LONG_MAX, dtype=np.int64)
        if len(numbers.documents):
            if self.ascending:
                np.minimum.at(values, numbers.documents, numbers.values)
            else:
                np.maximum.at(lowest, numbers.documents, numbers.values)
                values = -lowest
        if self.first:
            missing = np.ones(size, dtype=bool)
            missing[numbers.documents] = False
            values[missing] = -np.inf if self.kind == "real" else -LONG_MAX
        return values, None

    def _ranked(self, size: int, documents: np.ndarray, codes: np.ndarray, words: int) -> np.ndarray:
        missing = -1 if self.first else words
        values = np.full(size, words, dtype=np.int64)
        ranks = codes if self.ascending else words - 1 - codes
        np.minimum.at(values, documents, ranks)
        present = np.zeros(size, dtype=bool)
        present[documents] = True
        values[~present] = missing
        return values

    def shown(self, value: Any, words: list[str] | None) -> Any:
        """Return a sort value as answers show it."""
        if words is not None:
            if not 0 <= value < len(words):
                return None
            return words[value if self.ascending else len(words) - 1 - value]
        if self.kind == "real":
            number = value if self.ascending else -value
            return "Infinity" if number == np.inf else "-Infinity" if number == -np.inf else number
        number = int(value) if self.ascending else -int(value)
        if number == -LONG_MAX:
            number = -LONG_MAX - 1
        if self.kind == "date" and self.pattern and abs(number) < LONG_MAX:
            return text_of(number, self.pattern)
        return number

    def read(self, value: Any, words: list[str] | None) -> tuple[Any, bool]:
        """Return the number of a value given in `search_after`, and whether it lies between two numbers, after that one."""
        if words is not None:
            if value is None:
                return (-1 if self.first else len(words)), False
            place = int(np.searchsorted(np.array(words, dtype=object), value)) if words else 0
            exact = place < len(words) and words[place] == value
            if self.ascending:
                return (place, False) if exact else (place - 1, True)
            return (len(words) - 1 - place, False) if exact else (len(words) - 1 - place, True)
        if self.kind == "date" and isinstance(value, str):
            try:
                value = millis_of(value, self.pattern or DEFAULT_FORMAT)
            except NotADate as error:
                raise ShardFailure(
                    400, {"type": "parse_exception", "reason": f"failed to parse date field [{value}]"}, repeated=False
                ) from error
        try:
            number = float(value) if self.kind == "real" else int(value)
        except (TypeError, ValueError) as error:
            raise illegal(f"Failed to parse search_after value for field [{self.field}].") from error
        if self.kind != "real" and number <= -LONG_MAX:
            number = -LONG_MAX
        return (number if self.ascending else -number), False


def parse(given: Json, *, point_in_time: bool) -> list[SortKey]:
    """Return the keys of a sort; a point in time adds `_shard_doc` to break ties."""
    keys = [SortKey(one) for one in (given if isinstance(given, list) else [given])] if given is not None else []
    if keys and point_in_time and all(key.field != "_shard_doc" for key in keys):
        keys.append(SortKey("_shard_doc"))
    if not point_in_time and any(key.field == "_shard_doc" for key in keys):
        raise illegal("_shard_doc sort is only supported with a point in time")
    if len(keys) == 1 and keys[0].field == "_score" and not keys[0].ascending:
        return []
    if any(key.field == "_score" for key in keys):
        raise CannotDo("a sort by _score and something else")
    return keys


def shard_order(view: View, keys: list[SortKey]) -> list[int] | None:
    """Return the readers in the order that a sort by a field puts them, by their least value (or greatest, descending).

    Recorded: with a primary sort on a field the server looks at each shard's bounds first, and numbers shards anew.
    """
    if not keys or keys[0].kind not in ("date", "whole", "real"):
        return None
    bounds = []
    for place, reader in enumerate(view.readers):
        values = reader.numbers(keys[0].field, real=keys[0].kind == "real").values if reader.field(keys[0].field) else np.empty(0)
        if not len(values):
            bounds.append((1, 0, place))
        else:
            bounds.append((0, values.min() if keys[0].ascending else -values.max(), place))
    return [place for _, _, place in sorted(bounds)]
