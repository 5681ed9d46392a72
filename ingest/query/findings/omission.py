"""Omission: the load generator was behind its schedule, as the warning on coordinated omission says of what was read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ingest.query.findings.model import OMISSION, Claim, Ground
from ingest.read.schedule import OMISSION as WARNING


def omissions(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim where the warnings of the answer say so; it explains no window's excess."""
    said = [text for text in ground.warnings if WARNING in text]
    if not said:
        return []
    return [
        Claim(
            kind=OMISSION,
            who=(),
            start_ns=int(ground.start_ns[0]),
            end_ns=int(ground.start_ns[-1]) + ground.step_ns,
            cells=np.zeros(ground.shape, np.bool_),
            samples=int(ground.samples.sum()),
            details={"said": tuple(re.sub(f"^.*?{WARNING}", "", text) for text in said)},
        )
    ]
