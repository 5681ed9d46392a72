"""Whether a histogram log was written by a fio that damages its upper bins, and whether anything of it is sound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ingest.core.series import OPS
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio.hist import Scanner, layout_of_text, read
from ingest.read.fio.repairs import garbage_from, masked_from
from ingest.read.text import head


def is_masked(path: Path, context: Context) -> bool:
    """Return whether fio damaged the bins of a log from 786 us up (3.6 to 3.16): by its version, else by its first rows.

    A raw log of the same I/Os is whole, so such a log is no reason to leave it out. InputError if it is no histogram log.
    """
    text = head(path)
    columns, leading, layout = layout_of_text(text, context, path)
    if context.version is not None or leading == 1:
        return masked_from(layout, context.version) is not None
    whole = memoryview(text[: text.rfind(b"\n") + 1])
    for rows, _ in Scanner(columns, leading, replace(context, account=Account())).rows(whole):
        stamps, ops = rows.lead[:, 0].astype(np.int64), rows.lead[:, 1].astype(np.int64)
        order = [np.flatnonzero(ops == code) for code in range(len(OPS))]
        if garbage_from(rows, stamps, order, layout, context) is not None:
            return True
    return False


def holds_nothing(path: Path, context: Context) -> bool:
    """Return whether no sound sample can be taken from a histogram log."""
    return not any(part.counts.any() for part in read(path, replace(context, account=Account(path=str(path)))))
