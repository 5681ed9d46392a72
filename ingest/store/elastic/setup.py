"""Setting a server up: compares templates, reports the difference, changes only what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ingest.core.errors import StoreError
from ingest.store.elastic.client import Connection, Refusal
from ingest.store.elastic.findings import widen_index
from ingest.store.elastic.templates import (
    COMPACT_FROM,
    PERIODIC,
    Site,
    check_not_newer,
    differences,
    path_of,
    stored_template,
    templates,
)


@dataclass(frozen=True, slots=True)
class Change:
    """One template that is missing (`lines` empty), or differs in `lines`."""

    kind: str
    name: str
    lines: tuple[str, ...]

    @property
    def missing(self) -> bool:
        """Return whether the server has no such template."""
        return not self.lines


def changes(connection: Connection, site: Site) -> list[Change]:
    """Return the changes from the server's templates to the site's. StoreError where the server's are of a newer version."""
    differing = []
    for (kind, name), body in templates(site).items():
        there = stored_template(connection, kind, name)
        if there is None:
            differing.append(Change(kind, name, ()))
            continue
        check_not_newer(there, name)
        lines = tuple(differences(body, {part: value for part, value in there.items() if part in body}))
        if lines and not name.endswith("@custom"):
            differing.append(Change(kind, name, lines))
    return differing


def applied(connection: Connection, site: Site, wanted: list[Change]) -> Iterator[Change]:
    """Put the templates of the changes, and yield each once it is there.

    StoreError where the server refuses one, or a changed period would split the data.
    """
    bodies = templates(site)
    for change in wanted:
        if any("_meta.period" in line for line in change.lines):
            _check_empty(connection, site)
        try:
            connection.call("PUT", path_of(change.kind, change.name), bodies[change.kind, change.name])
        except Refusal as error:
            raise StoreError(f"the server refuses the {change.kind} template {change.name}: {error}") from None
        for index in ("marks", "intervals", "rollups"):
            if not change.missing and change.name == f"{site.prefix}-{index}-mappings":
                widen_index(connection, site.names, index)
        yield change


def make_empty(connection: Connection, site: Site, now_ns: int) -> list[str]:
    """Create each kind of index that Kibana's tables and rules ask, empty where there is none; return a sentence if refused."""
    sentences = []
    for index in ("marks", "episodes", "findings", *PERIODIC):
        if index in PERIODIC and connection.call("GET", f"/_resolve/index/{site.names.all(index)}")["indices"]:
            continue
        [name] = site.names.of(index, np.array([now_ns])) if index in PERIODIC else [site.names.one(index)]
        try:
            connection.call("PUT", f"/{name}")
        except Refusal as error:
            if error.kind != "resource_already_exists_exception":
                sentences.append(
                    f"the index {name} was not created ({error.kind}): until something is stored in it Kibana's tables and rules"
                    " show an error"
                )
    return sentences


def fitting(connection: Connection, site: Site) -> tuple[Site, str]:
    """Return the site as the server can keep it, and a sentence where that is not as asked."""
    version = tuple(int(part) for part in connection.version.split(".")[:2])
    if site.compact and version < COMPACT_FROM:
        sentence = f"--compact changes nothing on {connection.version} (measured on 8.19): plain indices are set up"
        return replace(site, compact=False), sentence
    return site, ""


def _check_empty(connection: Connection, site: Site) -> None:
    """Raise StoreError where anything is stored; indices of which nothing was loaded yet do not matter."""
    names = ",".join(site.names.all(index) for index in PERIODIC)
    if connection.call("GET", f"/{names}/_count")["count"]:
        raise StoreError(f"{names} hold data: with another period a load would store documents twice; use another --index-prefix")
