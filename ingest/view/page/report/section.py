"""A part of a page, such as service beside response time in a report of runs that have both: what it adds to the page.

    {{at_top}}, {{in_controls}}, {{after_hosts}}, {{after_percentiles}}, {{after_heatmap}}, {{after_distribution}}

is where report.html takes sections, by their `place`; {{panels}} where pages of finished pictures do (finished/page.py).

The script of a section of the report pushes one function to `tailboard.sections`. panels.js calls that once with what it offers
(what is chosen, tables, words) and takes `panels` and `feeds` of what it returns; see there. Its data lie in
`content.sections[name]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

AT_TOP, PANELS = "at_top", "panels"
IN_CONTROLS = "in_controls"
AFTER_HOSTS = "after_hosts"
AFTER_PERCENTILES, AFTER_HEATMAP, AFTER_DISTRIBUTION = AFTER = ("after_percentiles", "after_heatmap", "after_distribution")
PLACES = (AT_TOP, PANELS, IN_CONTROLS, AFTER_HOSTS, *AFTER)


@dataclass(frozen=True, slots=True)
class Section:
    """HTML and scripts by the names of files in ingest/view/page, specs by the ids of their charts, JSON content, and controls.

    `state` holds what controls are set to at first, by their names; `notes` go to the notes at the head of the page. Text in
    `html_filling` replaces `{{names}}` of the HTML and is escaped by who makes it; each is all that stands in the element
    of the id `{section}-{name}`, where a live page puts it anew.
    """

    name: str
    html: str
    scripts: Sequence[str]
    specs: Mapping[str, Mapping[str, Any]]
    content: Any
    place: str
    state: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    html_filling: Mapping[str, str] = field(default_factory=dict)
