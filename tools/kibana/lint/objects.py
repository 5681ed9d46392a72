"""Saved objects as their files hold them, and what each of them asks the server for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.kibana.asked_lens import lens_aggs, lens_layer, unknown_operations
from tools.kibana.data_views import index_of
from tools.kibana.kql import query
from tools.kibana.objects import SavedObject, object_of

Json = Mapping[str, Any]
Problem = tuple[str, str]

FOLDER = "saved_objects/"


@dataclass(frozen=True, slots=True)
class Read:
    """A search of a panel: of which kind of index (empty: none of ours), with which body, and what Kibana adds to it."""

    panel: str
    index: str
    body: Json
    timefield: str = ""
    context: bool = False


@dataclass(frozen=True, slots=True)
class Objects:
    """Saved objects by path."""

    files: Mapping[str, SavedObject]

    def of(self, kind: str) -> list[SavedObject]:
        """Return the objects of a type."""
        return [saved for saved in self.files.values() if saved.type == kind]

    def get(self, kind: str, identity: str) -> SavedObject | None:
        """Return an object, or None."""
        return next((saved for saved in self.of(kind) if saved.id == identity), None)

    def index(self, pattern: str) -> str:
        """Return the kinds of index that a pattern names, with commas; empty text if no data view is of one."""
        views = {_plain(view.attributes["title"]): index_of(view.id) for view in self.of("index-pattern")}
        found = [views.get(_plain(one), "") for one in pattern.split(",")]
        return ",".join(found) if all(found) else ""

    def reads(self) -> Iterator[Read]:
        """Yield every search of every panel whose operations are known."""
        for saved in self.of("visualization"):
            yield from self._of_vega(saved)
        for saved in self.of("lens"):
            if not unknown_operations(saved):
                yield _of_lens(saved)

    def _of_vega(self, saved: SavedObject) -> Iterator[Read]:
        for entry in entries(saved):
            url = entry["url"]
            if "index" in url:
                timefield, context = str(url.get("%timefield%", "")), bool(url.get("%context%", False))
                yield Read(saved.id, self.index(url["index"]), url.get("body", {}), timefield, context)


def read_files(files: Mapping[str, str]) -> Objects:
    """Return the saved objects in files, by path."""
    return Objects({path: object_of(json.loads(text)) for path, text in files.items() if path.startswith(FOLDER)})


def spec_of(saved: SavedObject) -> Json:
    """Return the spec of a Vega panel; nothing of another visualization."""
    state = saved.attributes.get("visState", {})
    spec: Json = state["params"]["spec"] if state.get("type") == "vega" else {}
    return spec


def tables_of(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the data entries of a spec and of the groups in it."""
    yield from spec.get("data", ())
    for mark in spec.get("marks", ()):
        yield from tables_of(mark)


def entries(saved: SavedObject) -> Iterator[Json]:
    """Yield the data entries of a Vega panel that ask for something."""
    return (entry for entry in tables_of(spec_of(saved)) if isinstance(entry.get("url"), Mapping))


def _plain(pattern: str) -> str:
    """Return a pattern without the wildcard at its end: an index that may not be there yet is named with one."""
    return pattern.removesuffix("*").removesuffix("-")


def _of_lens(saved: SavedObject) -> Read:
    layer = lens_layer(saved)
    text = saved.attributes["state"]["query"]["query"]
    asked = {"query": query(text)} if text and not layer["ignoreGlobalFilters"] else {}
    body = {"size": 0, **asked, "aggs": lens_aggs(saved, lambda every: {"interval": every})}
    return Read(saved.id, index_of(saved.references[0].id), body, context=not layer["ignoreGlobalFilters"])
