"""What every page of tailboard is made of: one HTML file with its data, scripts and styles, and how pages put things.

A part of a page, such as service beside response time in a report of runs that have both: what it adds to the page.

    {{at_top}}, {{in_controls}}, {{after_hosts}}, {{after_percentiles}}, {{after_heatmap}}, {{after_distribution}}

is where report.html takes sections, by their `place`; {{panels}} where pages of finished pictures do (finished/page.py).

The script of a section of the report pushes one function to `tailboard.sections`. panels.js calls that once with what it offers
(what is chosen, tables, words) and takes `panels` and `feeds` of what it returns; see there. Its data lie in
`content.sections[name]`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, lru_cache
from html import escape
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest import __version__
from ingest.core.errors import UsageError
from ingest.core.grid import MS, SECOND
from ingest.core.units import format_duration, latency, number, spaced
from ingest.query.question import Answer
from ingest.view import vega

# The script that draws: Vega with its expression interpreter, as vl-convert-python makes it, and kept for the next page.
#
# Making it takes over a second of each command that writes a page, and it is the same for each version of vl-convert-python. It
# is kept in the user's cache folder, `$XDG_CACHE_HOME/tailboard` or `~/.cache/tailboard`, which may be deleted at any time. A
# file there is believed only if it is the user's own, nobody else may write it, and it is whole.


SNIPPET = "window.vegaEmbed = vegaEmbed;"
OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
PRIVATE = 0o700


@lru_cache(maxsize=1)
def runtime() -> str:
    """Return the script that sets `vegaEmbed`: Vega with its expression interpreter, and tooltips.

    UsageError where vl-convert-python is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise UsageError("a page needs vl-convert-python: pip install vl-convert-python") from None
    path = _place(f"vega-{version('vl-convert-python')}-{hashlib.sha256(SNIPPET.encode()).hexdigest()[:8]}.js")
    kept = _kept(path) if path else ""
    bundle: str = kept or vl_convert.javascript_bundle(SNIPPET)
    if path and not kept:
        _keep(path, bundle)
    return re.sub(r"<(?=/script|!--)", r"<\\", bundle, flags=re.IGNORECASE)


def _place(name: str) -> Path | None:
    """Return where a file is kept; None for a user without a home."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):
        return (Path(folder) if folder.startswith(os.sep) else Path.home() / ".cache") / "tailboard" / name
    return None


def _kept(path: Path) -> str:
    """Return the script of a file that may be believed; empty text otherwise."""
    try:
        with path.open("rb") as file:
            for about in (os.fstat(file.fileno()), path.parent.stat()):
                if about.st_uid != os.geteuid() or about.st_mode & OF_OTHERS:
                    return ""
            digest, _, script = file.read().partition(b"\n")
    except OSError:
        return ""
    return script.decode() if digest == _first_line(script) else ""


def _keep(path: Path, script: str) -> None:
    """Write the file whole or not at all; a folder that takes none is no fault of the command's."""
    content = script.encode()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(_first_line(content) + b"\n" + content)
            unfinished.chmod(stat.S_IRUSR | stat.S_IWUSR)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def _first_line(script: bytes) -> bytes:
    return b"// sha256 " + hashlib.sha256(script).hexdigest().encode()


# How the pages put things: escaped text, quantities, lengths and ranges of time for people.


LONG_SECONDS = 120


def text(value: str) -> str:
    """Return text as HTML that shows it and does nothing else; what is no Unicode is shown by its number."""
    return escape(vega.printable(value))


def shown_latency(value_ns: float) -> str:
    """Return a latency for the page: 4.23 ms, empty if it is not a number."""
    return "" if np.isinf(value_ns) else spaced(latency(float(value_ns)))


def step_text(answer: Answer) -> str:
    """Return how wide the windows of an answer are: 10 s, or the whole range."""
    return spaced(format_duration(answer.step_ns)) if answer.step_ns else "the whole range"


def time_text(low_ns: int, high_ns: int, *, relative: bool) -> str:
    """Return when a run took place (see `between`); of one without a clock, that this is not known."""
    return "elapsed only: the start of the run is not known" if relative else between(low_ns, high_ns)


def between(low_ns: int, high_ns: int) -> str:
    """Return a range of time for people: 2026-11-20 21:00:04 to 21:01:20 UTC."""
    begin, end = (str(np.datetime64(stamp // MS, "ms")).replace("T", " ").removesuffix(".000") for stamp in (low_ns, high_ns))
    day = begin.split(" ")[0] + " "
    return f"{begin} to {end.removeprefix(day)} UTC"


def duration(span_ns: int) -> str:
    """Return a length of time for people: 76 s, or 0:12:30 from two minutes on."""
    seconds = span_ns / SECOND
    return f"{seconds:.6g} s" if seconds < LONG_SECONDS else str(timedelta(seconds=round(seconds)))


def exact(value: float, shown: str) -> str:
    """Return a cell that shows a number for people and holds it as csv has it."""
    return f'<td><data value="{number(float(value))}">{shown}</data></td>' if shown else "<td></td>"


AT_TOP, PANELS = "at_top", "panels"
IN_CONTROLS = "in_controls"
AFTER_HOSTS = "after_hosts"
AFTER_PERCENTILES, AFTER_HEATMAP, AFTER_DISTRIBUTION = AFTER = ("after_percentiles", "after_heatmap", "after_distribution")
PLACES = (AT_TOP, PANELS, IN_CONTROLS, AFTER_HOSTS, *AFTER)


@dataclass(frozen=True, slots=True)
class Section:
    """Scripts by the names of files in ingest/view/page, specs by the ids of their charts, JSON content, and controls.

    `html` is another file there, panels/NAME.html where nothing is said. `state` holds what controls are set to at first, by
    their names; `notes` go to the notes at the head of the page. Text in `html_filling` replaces `{{names}}` of the HTML and
    is escaped by who makes it; each is all that stands in the element of the id `{section}-{name}`, where a live page puts it
    anew.
    """

    name: str
    place: str
    scripts: Sequence[str] = ()
    content: Any = None
    specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    html_filling: Mapping[str, str] = field(default_factory=dict)
    html: str = ""


# How every page of tailboard is put together: one HTML file with all its data, scripts and styles, which opens offline.
#
# A page is page.html around a template of its own, and sections (section.py) at the places that this has. `{{names}}` are
# filled in one pass, so that nothing which was put in is looked at again. The policy of a page runs no script but those whose
# digests it names, the Vega runtime and the page's own, and lets it ask the network for nothing but the server that feeds it.


LONG_FACT = 60
OFFLINE = "This file holds all its data and makes no network requests."
LIVE = "This page requests data only from the server that it came from."


@dataclass(frozen=True, slots=True)
class Parts:
    """What a page is made of: HTML by the names that stand in its template, and the files of its own script, in their order.

    `swapped` is what fills sections, by the ids of the elements that it stands in: `{name of the section}-{name in its HTML}`;
    `sections` are their names.
    """

    template: str
    filling: Mapping[str, str]
    scripts: Sequence[str]
    swapped: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[str] = ()


def assembled(
    template: str, sections: Sequence[Section], filling: Mapping[str, str], first: Sequence[str] = (), last: Sequence[str] = ()
) -> Parts:
    """Return the parts of a page of sections: their HTML at the places of the template, their scripts between `first` and `last`.

    `filling` is HTML for the other names of the template: at least `title`, and the `data` of the page as text.
    """
    html = [(each.place, filled(each.html or f"panels/{each.name}.html", each.html_filling)) for each in sections]
    places = {place: "\n".join(part for at, part in html if at == place) for place in PLACES}
    scripts = dict.fromkeys(name for section in sections for name in section.scripts)
    swapped = {f"{section.name}-{name}": part for section in sections for name, part in section.html_filling.items()}
    names = [section.name for section in sections]
    return Parts(template, {"version": __version__, **places, **filling}, (*first, *scripts, *last), swapped, names)


def page_of(parts: Parts, attributes: Mapping[str, str] | None = None) -> str:
    """Return the page of its parts: one that opens offline, or one with the `attributes` of the server that feeds it.

    UsageError where vl-convert-python is not installed.
    """
    script, live = script_of(parts), attributes is not None
    own = {
        **parts.filling,
        "attributes": "".join(f' data-{name}="{text(value)}"' for name, value in (attributes or {}).items()),
        "promise": LIVE if live else OFFLINE,
        "main": filled(parts.template, parts.filling),
    }
    return page_around(own, script, runtime(), connect=live)


def page_around(filling: Mapping[str, str], script: str, runtime: str = "", *, connect: bool) -> str:
    """Return page.html around what it is filled with, and the scripts that its policy allows."""
    around = {"policy": policy(runtime, script, connect=connect), "style": page_file("html/page.css"), "version": __version__}
    return filled("html/page.html", {**around, "runtime": runtime, "script": script, **filling})


def script_of(parts: Parts) -> str:
    """Return the page's own script."""
    return "\n".join(map(page_file, parts.scripts))


@cache  # a server goes on with the files that it began with
def page_file(name: str) -> str:
    """Return the text of a file of ingest/view/page, its panels and choices written out; of radios the first is chosen.

    <panel id="rate" title="I/O rate" aloud="what a screen reader says, where that is other words">hint</panel>
    <chart id="kinds" title="what a screen reader says">
    <choose name="axis" title="Axis">log, linear: of lengths</choose>
    <choose name="also" title="Also" several>50, 90</choose>
    <listing id="marks" title="Marks" columns="words*, numbers, {{more}}" says="sentence below">hint</listing>
    """
    content = resources.files("ingest.view.page").joinpath(name).read_text(encoding="utf-8")
    content = re.sub(r'<panel id="([\w{}]+)" title="([^"]*)"(?: aloud="([^"]*)")?>(.*?)</panel>', _panel, content)
    content = re.sub(
        r'<listing id="(\w+)" title="([^"]*)" columns="([^"]*)"(?: says="([^"]*)")?>(.*?)</listing>', _listing, content
    )
    content = re.sub(r'<chart id="(\w+)" title="([^"]*)">', lambda found: chart_html(*found.groups()), content)
    return re.sub(r'<choose name="(\w+)" title="([^"]*)"( several)?>(.*?)</choose>', _choices, content)


def _panel(found: re.Match[str]) -> str:
    name, title, aloud, hint = found.groups()
    around = {"controls": "", "hint": hint, "charts": chart_html(name, aloud or title), "table": ""}
    return filled("html/panel.html", {"id": f"panel-{name}", "name": name, "title": title, **around})


def _listing(found: re.Match[str]) -> str:
    name, title, columns, says, hint = found.groups()
    sides = [(column.removesuffix("*"), ' class="left"' if column.endswith("*") else "") for column in columns.split(", ")]
    head = "".join(each if each.startswith("{{") else f'<th scope="col"{side}>{each}</th>' for each, side in sides)
    inner = f'<thead><tr>{head}</tr></thead><tbody id="{name}-rows">{{{{rows}}}}</tbody>'
    said = f'<p class="says" id="{name}-says" aria-live="polite">{says}</p>' if says else ""
    around = {
        "controls": "",
        "hint": hint,
        "charts": "",
        "table": f'<div class="table"><table class="rows">{inner}</table></div>{said}',
    }
    return filled("html/panel.html", {"id": name, "name": name, "title": title, **around})


def _choices(found: re.Match[str]) -> str:
    name, title, several, listed = found.groups()
    choices = [tuple(each.split(": ")) for each in listed.split(", ")]
    pairs = [(choice[0], choice[-1]) for choice in choices]
    return choices_html(name, title, pairs, "" if several else pairs[0][0], "checkbox" if several else "radio")


def chart_html(name: str, title: str, says: str = "") -> str:
    """Return a picture by its id and what is said of it; what is given is HTML."""
    chart = f'<div class="chart" id="{name}" role="img" tabindex="0" data-title="{title}"></div>'
    return f'{chart}\n<p class="says" id="{name}-says">{says}</p>'


def choices_html(name: str, title: str, choices: Iterable[tuple[str, str]], chosen: str, kind: str = "radio") -> str:
    """Return buttons of which one is chosen, or boxes; (value, text) pairs, all of it HTML."""
    buttons = "".join(
        f'<label><input type="{kind}" autocomplete="off" name="{name}" value="{value}"'
        f"{' checked' if value == chosen else ''}> {shown}</label>"
        for value, shown in choices
    )
    return f"<fieldset><legend>{title}</legend>{buttons}</fieldset>"


def filled(name: str, filling: Mapping[str, str]) -> str:
    """Return a file of ingest/view/page with its `{{names}}` filled in; KeyError for a name that nothing is said of."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filling[match[1]], page_file(name))


def policy(*scripts: str, connect: bool = False) -> str:
    """Return the content security policy: these scripts, styles of the page, nothing from anywhere; `connect` adds its server."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}" + ("; connect-src 'self'" if connect else "")


def deflated(content: Mapping[str, Any]) -> str:
    """Return JSON as base64 of deflated bytes, which no markup can end."""
    return base64.b64encode(zlib.compress(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), 6)).decode("ascii")


def bundled(content: Mapping[str, Any], streams: Iterable[bytes] = ()) -> str:
    """Return JSON and the streams that it names (see packing.py) as the text that a page unpacks."""
    header = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    body = b"".join([len(header).to_bytes(4, "little"), header, *streams])
    return base64.b64encode(zlib.compress(body, 6)).decode("ascii")


def fact_list(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the entries of a list of facts: values of one name together, names with long values last."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    shown: list[tuple[bool, str]] = []
    for name, entries in values.items():
        wide = len(entries) > 1 or len(entries[0]) > LONG_FACT
        entry = f"<dt>{text(name)}</dt>" + "".join(f"<dd>{text(value)}</dd>" for value in entries)
        shown.append((wide, f'<div class="wide">{entry}</div>' if wide else f"<div>{entry}</div>"))
    return "\n".join(entry for _, entry in sorted(shown, key=lambda pair: pair[0]))


def note_list(notes: Sequence[str]) -> str:
    """Return what a reader must see first, as HTML; empty without any."""
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    return f'<div class="notes" role="note"><strong>Note</strong><ul>{items}</ul></div>' if notes else ""
