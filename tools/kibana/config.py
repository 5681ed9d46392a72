"""What people write in kibana/dashboards/*.yml: a dashboard with its controls and panels.

    id: cluster-latency                        the saved object is PREFIX-cluster-latency
    title: Cluster latency
    description: Percentiles of the cluster over time.
    order: 1                                   place among the links
    controls: [run, host, op, kind]
    panels:
      - id: percentiles
        title: Percentiles over time
        at: [0, 10, 48, 16]
        command: tailboard percentiles STORE --run RUN --step 10s        shows the same numbers; RUN is one, STORE the server
        vega: percentiles
        scope: host
        level: overview
      - {id: rate, title: I/Os a second, at: [0, 26, 24, 10], lens: lines, ...}     words of lens panels: lens_panels.py

`view: intervals` has the controls list what intervals hold (processes, offsets) instead of rollups. `at` is x, y, width, height
on Kibana's grid of 48 columns. Unknown words are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest import __version__
from ingest.core.errors import InputError
from ingest.core.schema import assets, yaml_of

CONTROLS = {"run": "run.id", "host": "host.name", "op": "operation", "kind": "kind", "process": "process.name"}
LEVELS: dict[str, dict[str, Any]] = {
    "overview": {"rollup.overview": True},
    "stored": {"rollup.stored": True},
    "run": {"rollup.step_ms": 0},
}
COLUMNS = 48


@dataclass(frozen=True, slots=True)
class Grid:
    """A place on the grid."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: `kind` is vega or lens, `picture` what of it, `words` the rest as written, `command` shows the same numbers."""

    id: str
    title: str
    at: Grid
    kind: str
    picture: str
    words: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""

    def described(self, text: str) -> str:
        """Return what the panel says of itself: `text`, and the command."""
        return f"{text} The numbers: {self.command}".strip() if self.command else text


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard as written; ids are without the prefix."""

    id: str
    title: str
    description: str
    order: int
    controls: tuple[str, ...]
    panels: tuple[Panel, ...]
    view: str = "rollups"


def dashboards(folder: Path | None = None) -> tuple[Dashboard, ...]:
    """Return the dashboards of a folder (kibana/dashboards), in the order of their links; InputError says what is wrong."""
    folder = folder or assets("kibana") / "dashboards"
    texts = {path: path.read_bytes().replace(b"THIS_VERSION", __version__.encode()) for path in sorted(folder.glob("*.yml"))}
    boards = [dashboard(yaml_of(text), path) for path, text in texts.items()]
    return tuple(sorted(boards, key=lambda board: (board.order, board.id)))


def dashboard(content: Any, path: Path) -> Dashboard:
    """Return the dashboard that a file's content says; InputError for an unknown or missing word."""
    words = _words(content, path, {"id", "title", "description", "order", "controls", "panels"}, {"view"})
    if path.stem != words["id"]:
        raise InputError(f"the id is {words['id']!r}: a dashboard's file bears its id", path)
    unknown = [name for name in words["controls"] if name not in CONTROLS]
    if unknown:
        raise InputError(f"there is no control {unknown[0]!r}: {', '.join(CONTROLS)}", path)
    panels = tuple(panel(entry, path) for entry in words["panels"])
    head = (words["id"], words["title"], words["description"], words["order"], tuple(words["controls"]))
    return Dashboard(*head, panels, words.get("view", "rollups"))


def panel(content: Any, path: Path) -> Panel:
    """Return the panel that a mapping says."""
    kinds = [kind for kind in ("vega", "lens") if isinstance(content, dict) and kind in content]
    if len(kinds) != 1:
        raise InputError(f"a panel is either vega or lens: {content}", path)
    words = _words(content, path, {"id", "title", "at", "command", kinds[0]}, None)
    if len(words["at"]) != 4 or not all(isinstance(number, int) for number in words["at"]):
        raise InputError(f"`at` of panel {words['id']} is x, y, width, height", path)
    rest = {name: value for name, value in words.items() if name not in ("id", "title", "at", "command", kinds[0])}
    return Panel(words["id"], words["title"], Grid(*words["at"]), kinds[0], words[kinds[0]], rest, words["command"])


def _words(content: Any, path: Path, needed: set[str], more: set[str] | None) -> dict[str, Any]:
    """Return a mapping that has all needed words, and, where `more` is given, no others than these."""
    if not isinstance(content, dict):
        raise InputError(f"expected keys with values, not {content!r}", path)
    missing = sorted(needed - content.keys())
    unknown = [] if more is None else sorted(content.keys() - needed - more)
    if missing or unknown:
        problem = f"{missing[0]!r} is missing" if missing else f"unknown key {unknown[0]!r}"
        raise InputError(f"{problem} in {content.get('id', 'a mapping')}", path)
    return content
