"""The report: one HTML file with all its data, scripts and styles, which opens offline and asks the network for nothing.

The page is report.html; its `{{names}}` are filled in one pass, so that nothing which was put in is looked at again. Text
from labels is escaped, the data are packed (JSON, deflated, base64), and the page's policy runs no script but the two
whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np
import orjson

from ingest import __version__
from ingest.errors import UsageError
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import MULTIPLES, Answer, widened
from ingest.ranks import parse_percentiles
from ingest.timing import format_duration
from ingest.view import vega
from ingest.view.terminal import latency

MOST_WINDOWS = 720
RUNS_NAMED = 4
LONG_FACT = 60
LONG_SECONDS = 120
SECOND = 1_000_000_000
WHOLE_RANGE = 1 << 62
PERCENTILE = 99
SUMMARY = parse_percentiles("50,90,95,99,99.9,99.99")
NEVER_MERGED = ("run", "kind")
SPECS = ("percentiles", "heatmap")
CLOCK = """<fieldset><legend>Time</legend>
<label><input type="radio" autocomplete="off" name="clock" value="utc" checked> UTC</label>
<label><input type="radio" autocomplete="off" name="clock" value="elapsed"> elapsed</label>
</fieldset>"""


def report(answer: Answer, facts: Sequence[tuple[str, str]] = (), marks: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the page: percentiles over time, the heat map, and the facts that the answer tells, followed by `facts`.

    `marks` (run, at_ns, text) are drawn as notes on the time axis. An answer of more than 720 windows is widened, and the
    page says so. UsageError where vl-convert-python is not installed.
    """
    runtime, script = _runtime(), _part("report.js")
    shown = fitted(answer)
    told = [*facts_of(shown), *facts]
    filling = {
        "policy": _policy(runtime, script),
        "version": __version__,
        "runs": text(_runs(shown)),
        "lead": text(f"{shown.kind} latency, {shown.samples:,} samples in {_duration(shown)}"),
        "facts": _facts(told),
        "notes": _notes(shown.warnings),
        "summary": _summary(shown),
        "percentile": str(PERCENTILE),
        "clock": "" if shown.relative else CLOCK,
        "series": _series_choice(shown),
        "data": packed(shown, marks),
        "runtime": runtime,
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda name: filling[name[1]], _part("report.html"))


def fitted(answer: Answer) -> Answer:
    """Return the answer in at most 720 windows, with a warning where its windows had to be widened."""
    low, high = _range(answer)
    step = answer.step_ns
    if not step or high - low <= MOST_WINDOWS * step:
        return answer
    multiples = (*MULTIPLES, -(-(high - low) // ((MOST_WINDOWS - 2) * step)))
    wider = next(n * step for n in multiples if -(-high // (n * step)) - low // (n * step) <= MOST_WINDOWS)
    note = f"windows widened from {format_duration(step)} to {format_duration(wider)}: a report holds {MOST_WINDOWS} at most"
    return replace(answer, parts=tuple(widened(answer.parts, wider)), step_ns=wider, warnings=(*answer.warnings, note))


def packed(answer: Answer, marks: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return all that the page's script needs, as base64 of deflated JSON: specs, tables, groups, first state of the controls."""
    groups = list(vega.group_names(answer).values())
    state = {
        "percentile": PERCENTILE,
        "clock": "elapsed" if answer.relative else "utc",
        "origin": answer.start_of / vega.MS,
        "shading": "rank",
        "series": "" if _mergeable(answer) else groups[0],
    }
    content = {
        "specs": {name: _page_spec(name) for name in SPECS},
        "tables": vega.tables(answer, marks),
        "groups": groups,
        "state": state,
    }
    return base64.b64encode(zlib.compress(orjson.dumps(content), 9)).decode("ascii")


def _page_spec(name: str) -> dict[str, Any]:
    """Return a spec without what the page does itself: its own inputs, and the version that vega-embed would warn of."""
    spec = vega.spec(name)
    signals = [{key: value for key, value in signal.items() if key != "bind"} for signal in spec["signals"]]
    return {**{key: value for key, value in spec.items() if key != "$schema"}, "signals": signals}


def _mergeable(answer: Answer) -> bool:
    """Return whether the groups may be shown added up: runs and kinds are never merged unasked."""
    return not set(answer.by) & set(NEVER_MERGED)


def facts_of(answer: Answer) -> list[tuple[str, str]]:
    """Return (name, value) pairs that the answer itself tells."""
    low, high = _range(answer)
    bound = max(float(part.layout.error) for part in answer.parts)
    return [
        ("Runs", _runs(answer)),
        ("Latency", answer.kind),
        ("Samples", f"{answer.samples:,}"),
        ("Time", "elapsed only: no time zero is known" if answer.relative else _between(low, high)),
        ("Duration", _duration(answer)),
        ("Step", _spaced(format_duration(answer.step_ns)) if answer.step_ns else "the whole range"),
        ("Error bound", f"± {100 * bound:.2g} % of a latency; counts are exact"),
        ("Merged from", f"{answer.series:,} series ({answer.answered_from})"),
    ]


def _range(answer: Answer) -> tuple[int, int]:
    return min(int(part.start_ns.min()) for part in answer.parts), max(int(part.end_ns.max()) for part in answer.parts)


def _runs(answer: Answer) -> str:
    more = len(answer.runs) - RUNS_NAMED
    return ", ".join(answer.runs[:RUNS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _stamp(stamp_ns: int) -> str:
    return str(np.datetime64(stamp_ns // vega.MS, "ms")).replace("T", " ").removesuffix(".000")


def _between(low: int, high: int) -> str:
    begin, end = _stamp(low), _stamp(high)
    day = begin.split(" ")[0] + " "
    return f"{begin} to {end.removeprefix(day)} UTC"


def _duration(answer: Answer) -> str:
    low, high = _range(answer)
    seconds = (high - low) / SECOND
    return f"{seconds:.6g} s" if seconds < LONG_SECONDS else str(timedelta(seconds=round(seconds)))


def text(value: str) -> str:
    """Return text as HTML that shows it and does nothing else; what is no Unicode is shown by its number."""
    return escape(vega.printable(value))


def _facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the entries of the list of facts: values of one name together, names with long values last."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    short: list[str] = []
    long: list[str] = []
    for name, found in values.items():
        wide = len(found) > 1 or len(found[0]) > LONG_FACT
        entry = f"<dt>{text(name)}</dt>" + "".join(f"<dd>{text(value)}</dd>" for value in found)
        (long if wide else short).append(f'<div class="wide">{entry}</div>' if wide else f"<div>{entry}</div>")
    return "\n".join([*short, *long])


def _notes(warnings: Sequence[str]) -> str:
    items = "".join(f"<li>{text(warning)}</li>" for warning in warnings)
    return f'<div class="notes" role="note"><strong>Note</strong><ul>{items}</ul></div>' if warnings else ""


def _summary(answer: Answer) -> str:
    """Return the table of the whole range, one row per group."""
    whole = percentiles(replace(answer, parts=tuple(widened(answer.parts, WHOLE_RANGE)), step_ns=0), Wanted(SUMMARY))
    names = vega.group_names(answer)
    titles = ["", "samples", *(percentile.name for percentile in SUMMARY), "max"]
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = []
    for row in range(len(whole)):
        name = names[tuple(whole.columns[label][row] for label in answer.by)]
        cells = [f"{int(whole.columns['count'][row]):,}"]
        for percentile in SUMMARY:
            least = "≥ " if whole.columns[f"{percentile.name}_censored"][row] else ""
            cells.append(least + (_latency(whole.columns[percentile.name][row]) or "&ndash;"))
        cells.append(_latency(whole.columns["max"][row]))
        body.append(f'<tr><th scope="row">{text(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<caption>The whole range</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"


def _latency(value_ns: float) -> str:
    return _spaced(latency(float(value_ns))).replace("us", "µs")


def _spaced(quantity: str) -> str:
    return re.sub(r"(?<=\d)(?=[a-z])", " ", quantity)


def _series_choice(answer: Answer) -> str:
    """Return the control that chooses what the heat map shows, nothing where there is one group alone."""
    names = list(vega.group_names(answer).values())
    if len(names) == 1:
        return ""
    merged = '<option value="">all together</option>' if _mergeable(answer) else ""
    options = "".join(f'<option value="{text(name)}">{text(name)}</option>' for name in names)
    return f'<label class="choice"><b>Show</b> <select name="series" autocomplete="off">{merged}{options}</select></label>'


def _part(name: str) -> str:
    return resources.files("ingest.view").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """Return the content security policy: these scripts, styles of the page, and nothing from anywhere."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


@lru_cache(maxsize=1)
def _runtime() -> str:
    """Return the script that sets `vegaEmbed`: Vega with its expression interpreter, and tooltips."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError("the report needs vl-convert-python: pip install 'tailboard[report]'") from None
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return re.sub(r"<(?=/script|!--)", r"<\\", bundle, flags=re.IGNORECASE)
