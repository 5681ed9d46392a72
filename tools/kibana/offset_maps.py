"""The picture of subsecond offsets: whole seconds on x, the offset within the second on y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.kibana import requests, tables
from tools.kibana.bins import formula
from tools.kibana.filling import TRY, Spec, clicked, filled, shades
from tools.kibana.pictures import answer
from tools.kibana.tables import entry, flatten, keep, only

NONE = f"no single events here (raw logs and traces have them): {TRY}"
CELL = ("t", "t2", "lower", "upper", "c", "n")


def offsets(prefix: str, _: Mapping[str, Any]) -> Spec:
    """Return the map of offsets of one run; columns of several seconds are these seconds added up."""
    asked = requests.body({"kind": "offset"}, requests.offsets(), measured="offset")
    cells = [
        flatten("window.offsets.buckets", "row"),
        formula("c", "datum.row.doc_count"),
        keep("datum.c > 0"),
        formula("lower", "datum.row.from"),
        formula("upper", "datum.row.to"),
        only(*CELL),
    ]
    late = [formula("n", "datum.window.late.n.value"), keep("datum.n > 0"), only("t", "t2", "n")]
    data = [
        answer(prefix, asked, "intervals"),
        *tables.chosen_runs(),
        tables.windows(),
        entry("cells", "windows", cells),
        tables.gaps(),
        entry("late", "windows", late),
        *tables.noted(),
    ]
    return filled("offsets", data, [*shades(), clicked()], "'counts by offset within the second, rows of 20 ms'", nothing=NONE)
