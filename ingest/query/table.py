"""Results as columns: what queries return and renderers print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.core.labels import Group
from ingest.core.values import Value
from ingest.query.precision import Precision, together


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table(Value):
    """Named columns of equal length, in the order of the command contract; `labels` names the group columns.

    `precision` says how far percentiles in it may be off, None where that is not known of the table alone.
    """

    columns: Mapping[str, Any]
    labels: tuple[str, ...] = ()
    precision: Precision | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: Any) -> Table:
        """Return the given rows in the given order."""
        return Table({name: column[rows] for name, column in self.columns.items()}, self.labels, self.precision)


def label_columns(groups: Sequence[Group], by: Sequence[str], codes: Any = ...) -> dict[str, Any]:
    """Return the columns of labels of groups: a row each, or of those with some codes."""
    columns = {name: np.array([key[place] for key in groups], object) for place, name in enumerate(by)}
    return {name: column[codes] if len(column) else column for name, column in columns.items()}


def groups_in(table: Table) -> list[Group]:
    """Return the labels of each row of a table."""
    names = [map(str, table.columns[name].tolist()) for name in table.labels]
    return list(zip(*names, strict=True)) if names else [()] * len(table)


def of_rows(rows: Sequence[Sequence[Any]], kinds: Mapping[str, Any], labels: Sequence[str]) -> Table:
    """Return a table of rows of cells; `kinds` names the columns, and says what each is kept as."""
    cells = zip(*rows, strict=True) if rows else [()] * len(kinds)
    columns = {name: np.array(column, kind) for (name, kind), column in zip(kinds.items(), cells, strict=True)}
    return Table(columns, tuple(labels))


def concatenated(tables: Sequence[Table], order: Sequence[str] = ("start_ns",)) -> Table:
    """Return the rows of all tables ordered by `order`, then labels, else as they come; columns as in the first."""
    first = tables[0]
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in first.columns}
    ranks: list[Any] = [*(columns[name] for name in order), *(_ranks(columns[name].tolist()) for name in first.labels)]
    table = Table(columns, first.labels, together(table.precision for table in tables))
    return table.take(np.lexsort(ranks[::-1])) if ranks else table


def _ranks(labels: Sequence[str]) -> list[int]:
    """Return the place of each label in the order of all."""
    place = {label: rank for rank, label in enumerate(sorted(set(labels)))}
    return [place[label] for label in labels]
