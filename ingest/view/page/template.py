"""How every page of tailboard is put together: one HTML file with all its data, scripts and styles, which opens offline.

A page is page.html around a template of its own, and sections (section.py) at the places that this has. `{{names}}` are filled
in one pass, so that nothing which was put in is looked at again. The policy of a page runs no script but those whose digests it
names, the Vega runtime and the page's own, and lets it ask the network for nothing but the server that feeds it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import orjson

from ingest import __version__
from ingest.view.page.report.section import PLACES, Section
from ingest.view.page.runtime import runtime
from ingest.view.page.wording import text

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
    html = [(section.place, filled(section.html, section.html_filling)) for section in sections]
    places = {place: "\n".join(part for at, part in html if at == place) for place in PLACES}
    scripts = dict.fromkeys(name for section in sections for name in section.scripts)
    swapped = {f"{section.name}-{name}": part for section in sections for name, part in section.html_filling.items()}
    names = [section.name for section in sections]
    return Parts(template, {"version": __version__, **places, **filling}, (*first, *scripts, *last), swapped, names)


def page_of(parts: Parts, attributes: Mapping[str, str] | None = None) -> str:
    """Return the page of its parts: one that opens offline, or one with the `attributes` of the server that feeds it.

    UsageError where vl-convert-python is not installed.
    """
    script = script_of(parts)
    own = {
        **parts.filling,
        "attributes": "".join(f' data-{name}="{text(value)}"' for name, value in (attributes or {}).items()),
        "promise": OFFLINE if attributes is None else LIVE,
    }
    around = {
        "policy": policy(runtime(), script, connect=attributes is not None),
        "style": page_file("html/page.css"),
        "main": filled(parts.template, own),
        "runtime": runtime(),
        "script": script,
    }
    return filled("html/page.html", {**parts.filling, **around})


def script_of(parts: Parts) -> str:
    """Return the page's own script."""
    return "\n".join(map(page_file, parts.scripts))


@cache  # a server goes on with the files that it began with
def page_file(name: str) -> str:
    """Return the text of a file of ingest/view/page."""
    return resources.files("ingest.view.page").joinpath(name).read_text(encoding="utf-8")


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
    short: list[str] = []
    long: list[str] = []
    for name, entries in values.items():
        wide = len(entries) > 1 or len(entries[0]) > LONG_FACT
        entry = f"<dt>{text(name)}</dt>" + "".join(f"<dd>{text(value)}</dd>" for value in entries)
        (long if wide else short).append(f'<div class="wide">{entry}</div>' if wide else f"<div>{entry}</div>")
    return "\n".join([*short, *long])


def note_list(notes: Sequence[str]) -> str:
    """Return what a reader must see first, as HTML; empty without any."""
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    return f'<div class="notes" role="note"><strong>Note</strong><ul>{items}</ul></div>' if notes else ""
