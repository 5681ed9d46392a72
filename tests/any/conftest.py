"""Answers are what is compared here. What happened in a run has its own comparison of files and stores: tests/store/test_findings.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_findings() -> Iterator[None]:
    """Loads do not work out what happened: hundreds of them would take twice their time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ingest.load.load", "ingest.live.watch.end"):
            patch.setattr(f"{module}.write_findings", lambda *_: [])
        yield
