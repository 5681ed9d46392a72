"""What every page of tailboard is made of: one HTML file with all its data, scripts and styles, which opens offline.

`{{names}}` of a template are filled in one pass, so that nothing which was put in is looked at again. The policy of a page runs
no script but those whose digests it names, and lets it ask the network for nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import orjson

from ingest.view.page.wording import text

LONG_FACT = 60


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
