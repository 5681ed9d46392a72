"""Coordinated omission in the report: which kinds of a run stand beside one another, and what is said of its schedule.

The panels are in omission.html; omission.js makes their tables from the bins that the page holds anyway.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from ingest.view.page.template import AFTER_PERCENTILES, Section
from ingest.view.specs import derived
from ingest.view.vega import printable, spec

KINDS = ("response", "service", "wait", "service.corrected")
UNNAMED = ("", "corrected")  # of logs that name no kind
MOST_SAID = 6
SAID = re.compile(r"(?:^|: )(?:coordinated omission|schedule): ")
WARNING = re.compile(r"(?:^|: )coordinated omission: ")


def content_of(kinds: Collection[str], warnings: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows of a run: the kinds to compare in the order of their colours, sentences, and if one warns.

    There are kinds where there are at least two to compare, or one that was measured while requests were not sent in time.
    Sentences that warn come first, at most MOST_SAID.
    """
    said = [printable(text) for text in dict.fromkeys(warnings) if SAID.search(text)]
    said.sort(key=lambda text: WARNING.search(text) is None)
    warned = any(WARNING.search(text) for text in said)
    compared = [kind for kind in KINDS if kind in kinds]
    if UNNAMED[1] in kinds or (warned and not compared):
        compared += [kind for kind in UNNAMED if kind in kinds]
    more = len(said) - MOST_SAID
    rest = [f"{more} more sentences like these"] if more > 0 else []
    return {"kinds": compared if len(compared) > 1 or warned else [], "said": said[:MOST_SAID] + rest, "warned": warned}


def section(contents: Sequence[dict[str, Any]]) -> Section:
    """Return the panels for the report; `contents` is what it shows of each of its runs, in their order."""
    # `kinds` is the distribution, with lines as wide as rows say.
    specs = {"omission": spec("omission"), "gap": spec("gap"), "kinds": derived("distribution-kinds")}
    return Section("omission", AFTER_PERCENTILES, ("panels/omission.js",), contents, specs)
