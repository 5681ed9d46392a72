"""Results as columns: what queries return and renderers print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length, in the order of the command contract; `labels` names the group columns."""

    columns: Mapping[str, Any]
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: Any) -> Table:
        """Return the given rows in the given order."""
        return Table({name: column[rows] for name, column in self.columns.items()}, self.labels)


def concatenated(tables: Sequence[Table], order: Sequence[str] = ("start_ns",)) -> Table:
    """Return the rows of all tables ordered by `order`, then labels, else as they come; columns as in the first."""
    first = tables[0]
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in first.columns}
    ranks = [np.unique(columns[name], return_inverse=True)[1] for name in (*order, *first.labels)]
    table = Table(columns, first.labels)
    return table.take(np.lexsort(ranks[::-1])) if ranks else table
