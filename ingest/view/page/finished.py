"""Pages of finished pictures: what `compare` and `trend` write with -o. Every picture that a page can show is in it.

A page has panels, which become its sections; a panel has charts, a chart has a view for each value of the control that chooses
it (a percentile, a group), or one for all. Specs are those of kibana/vega/, tables as they name them; finished.js draws what is
chosen. Sentences and tables of the first view stand in the file itself, so they need no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingest.view import vega
from ingest.view.page.template import (
    PANELS,
    Section,
    assembled,
    chart_html,
    choices_html,
    deflated,
    fact_list,
    note_list,
    page_of,
    text,
)
from ingest.view.specs import unversioned

SCRIPTS = ("script/theme.js", "script/charting.js", "script/menus.js", "script/finished.js")
MOST_RADIOS = 8
LEFT = ("verdict",)


@dataclass(frozen=True, slots=True)
class View:
    """The tables of a spec, its caption, signals, and a height in pixels (0: that of the spec)."""

    tables: Mapping[str, vega.Columns]
    says: str
    signals: Mapping[str, Any] = field(default_factory=dict)
    height: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture by its id, what it is called aloud, its spec, and its views by the values of the control `chosen_by`."""

    name: str
    title: str
    spec: str
    views: Mapping[str, View]
    chosen_by: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """What a reader chooses: (value, text) pairs under the name of a state, or of a signal of specs; `chosen` at first."""

    name: str
    title: str
    choices: Sequence[tuple[str, str]]
    chosen: str = ""

    @property
    def first(self) -> str:
        """Return the value that is chosen at first."""
        return self.chosen or self.choices[0][0]


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a page: a heading, a hint, charts, HTML of a table below them, and controls of its own."""

    name: str
    title: str
    hint: str
    charts: Sequence[Chart] = ()
    table: str = ""
    controls: Sequence[Control] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """What stands above the panels: title, lead, facts, notes, a verdict in sentences, and whether that is a bad one."""

    title: str
    lead: str
    facts: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()
    verdict: Sequence[str] = ()
    bad: bool = False


def finished_page(
    head: Head, panels: Sequence[Panel], controls: Sequence[Control] = (), *, labels: str, opened: Sequence[str] = ()
) -> str:
    """Return the page as HTML; `controls` act on all panels, `labels` says what the page is about to a screen reader.

    The first panel is open and those that are `opened`; the others are a line each until they are.

    UsageError where vl-convert-python is not installed.
    """
    every = [*controls, *(control for panel in panels for control in panel.controls)]
    state = {control.name: vega.printable(control.first) for control in every}
    state["open"] = ",".join([*(panel.name for panel in panels[:1]), *opened])
    sections = [_section(panel, state) for panel in panels]
    content = {
        "specs": dict(sorted((name, spec) for section in sections for name, spec in section.specs.items())),
        "charts": [chart for section in sections for chart in section.content],
        "state": state,
    }
    shown = "\n".join(_control(control) for control in controls if len(control.choices) > 1)
    filling = {
        "title": text(head.title),
        "lead": text(head.lead),
        "labels": text(labels),
        "facts": fact_list(head.facts),
        "verdict": _verdict(head),
        "notes": note_list(head.notes),
        "controls": f'<section class="panel controls" aria-label="Controls of all panels">{shown}</section>' if shown else "",
        "data": deflated(content),
    }
    return page_of(assembled("html/finished.html", sections, filling, SCRIPTS))


def table_of(caption: str, titles: Sequence[str], rows: Sequence[str], left: int, *, folded: bool) -> str:
    """Return a table of rows that are HTML, the first `left` columns aligned left; `folded` hides it until it is asked for."""
    sides = [' class="left"' if at < left or title in LEFT else "" for at, title in enumerate(titles)]
    head = "".join(f'<th scope="col"{side}>{text(title)}</th>' for side, title in zip(sides, titles, strict=True))
    inner = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    if folded:
        return f'<details class="table"><summary>{text(caption)}</summary><table class="rows">{inner}</table></details>'
    return f'<div class="table"><table class="rows"><caption>{text(caption)}</caption>{inner}</table></div>'


def _chart(chart: Chart) -> dict[str, Any]:
    """Return a chart as finished.js takes it."""
    views = {}
    for value, view in chart.views.items():
        shown = {"tables": view.tables, "signals": view.signals, "says": vega.printable(view.says), "height": view.height}
        views[vega.printable(value)] = shown
    return {"name": chart.name, "spec": chart.spec, "by": chart.chosen_by, "views": views}


def _section(panel: Panel, state: Mapping[str, str]) -> Section:
    """Return a panel as a section of the page, with what is said of its first views."""
    controls = "".join(_control(control) for control in panel.controls if len(control.choices) > 1)
    charts = []
    for chart in panel.charts:
        first = chart.views.get(state.get(chart.chosen_by, "")) or next(iter(chart.views.values()))
        charts.append(chart_html(chart.name, text(chart.title), text(first.says)))
    filling = {
        "id": f"panel-{panel.name}",
        "name": panel.name,
        "title": text(panel.title),
        "controls": f'<div class="row">{controls}</div>' if controls else "",
        "hint": text(panel.hint),
        "charts": "".join(charts),
        "table": panel.table,
    }
    specs = {chart.spec: unversioned(vega.spec(chart.spec)) for chart in panel.charts}
    content = [_chart(chart) for chart in panel.charts]
    return Section(panel.name, PANELS, (), content, specs, html_filling=filling, html="html/panel.html")


def _control(control: Control) -> str:
    """Return radio buttons, or a list where there are many choices."""
    if len(control.choices) > MOST_RADIOS:
        options = "".join(
            f'<option value="{text(value)}"{" selected" if value == control.first else ""}>{text(shown)}</option>'
            for value, shown in control.choices
        )
        select = f'<select name="{control.name}" autocomplete="off">{options}</select>'
        return f'<label class="choice"><b>{text(control.title)}</b> {select}</label>'
    choices = [(text(value), text(shown)) for value, shown in control.choices]
    return choices_html(control.name, text(control.title), choices, text(control.first))


def _verdict(head: Head) -> str:
    """Return the sentences of the verdict, the first of which is the answer."""
    if not head.verdict:
        return ""
    first, *rest = (f"<p>{text(line)}</p>" for line in head.verdict)
    beside = f'<div class="rest">{"".join(rest)}</div>' if rest else ""
    return f'<section class="panel verdict{" bad" if head.bad else ""}" aria-label="Verdict">{first}{beside}</section>'
