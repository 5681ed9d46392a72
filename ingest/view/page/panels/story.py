"""The story of a run at the head of the report: what happened, each sentence a link to its place; story.js makes the links.

A story is `Story` of the query layer as JSON: `findings`, ranked, each with `text`, `tail` (the end of that, about its share),
`who`, `from_s` and `to_s` in seconds since the start of the run; `unexplained`, the share of the excess latency that no finding
accounts for; `nothing`, the sentence where nothing stands out; `reference`, what is typical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest.view.page.template import AT_TOP, Section, text

SENTENCES = 3


def sections(stories: Sequence[Mapping[str, Any] | None]) -> list[Section]:
    """Return the section where a run has a story; the file itself tells that of the first run, for those without a script."""
    if not any(stories):
        return []
    first = stories[0] or {}
    findings = first.get("findings", [])
    told = [finding["text"] for finding in findings[:SENTENCES]] or [first.get("nothing", "")]
    filling = {
        "sentences": "".join(f"<li>{text(sentence)}</li>" for sentence in told if sentence),
        "rest": "",
        "reasons": "".join(map(_reasons, findings)) + f"<div><dd>{text(first.get('reference', ''))}</dd></div>",
    }
    return [Section("story", AT_TOP, ("panels/story.js",), html_filling=filling)]


def _reasons(finding: Mapping[str, Any]) -> str:
    """Return what stands behind a finding, as entries of a list."""
    lines = [each["text"] for each in finding.get("below", ())]
    named = {"consistent with": finding.get("consistent"), "against": finding.get("against")}
    lines += [f"{name}: {line}" for name, line in named.items() if line]
    said = "".join(f"<dd>{text(line)}</dd>" for line in lines)
    command = f"<dd>see: <code>{text(finding['command'])}</code></dd>" if finding.get("command") else ""
    return f"<div><dt>{text(finding['text'])}</dt>{said}{command}</div>"
