"""What the environment says of patience: seconds."""

from __future__ import annotations

import os

from ingest.core.errors import UsageError


def seconds(name: str, default: float) -> float:
    """Return the seconds that a variable of the environment says; UsageError if it holds something else."""
    text = os.environ.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 1e6:
        raise UsageError(f"{name} is a number of seconds, not {text!r}")
    return number
