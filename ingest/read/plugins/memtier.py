"""memtier_benchmark's JSON (`--json-out-file`): an HdrHistogram of each command over the whole run.

    {"configuration": {...}, "run information": {...}, "ALL STATS": {"Runtime": {"Start time": 1795330000123, "Finish time": ...},
      "Gets": {"Count": 59964, "Percentile Latencies": {..., "Histogram log format": {"Compressed Histogram": "HIST..."}}},
      "Totals": {...}}}

Values are in us, with 3 digits. A command that was given twice stands there twice, under one name. `Totals` are all commands
again, and left out; so is the average that `--run-count` adds, whose best and worst run are read, or all with `--print-all-runs`.
A histogram may hold some more samples than `Count`, which is taken when the time is over: requests on their way are answered
after that. It is the histogram that counts here.

Source: redis/memtier_benchmark, run_stats.cpp (`print_json`); memtier did not run here, histograms of the same library did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ingest.core.coverage import Caveat
from ingest.core.errors import counted
from ingest.core.intervals import Int
from ingest.core.layout import Layout, hdr_layout
from ingest.core.units import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import MEMTIER
from ingest.read.formats import WHOLE
from ingest.read.hdr.payload import PayloadError, counts_of, payload_of
from ingest.read.polls import Lost, Poll, Polls, WrongError, count, documents_of, lines_of, polled, sparse

NOTHING = "holds no histogram: memtier_benchmark writes them from version 1.3 on, unless --hide-histogram is given"
NO_TIME = "nothing says when the run began and ended"
BEST_AND_WORST = "it holds the best and the worst of its runs, and none of the others by itself"
ONE_EACH = "give memtier_benchmark --print-all-runs, or run each by itself"
NO_NUMBER_IN = re.compile(rb":\s*-?(?:nan|inf)\b")
NO_NUMBER = re.compile(rb'("(?:[^"\\]|\\.)*")|-?\b(?:nan|inf)\b')
OF_COMMANDS = {"Count", "Percentile Latencies"}
NOT_COMMANDS = ("Runtime", "Totals", "Per-Key Misses")


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`."""
    for line, document in documents_of(lines_of(path, context), context.account, _loaded):
        sections = {
            str(name): body for name, body in document.items() if isinstance(body, dict) and isinstance(body.get("Runtime"), dict)
        }
        each_run = any(name.startswith("RUN #") for name in sections)
        for name, body in sections.items():
            if name.startswith("AGGREGATED"):
                context.account.skip("the average of several runs, which are read themselves", 1)
            elif each_run and not name.startswith("RUN #"):
                context.account.skip("the best or the worst of the runs, which are read themselves", 1)
            else:
                _take(line, body, context, held)
        if len(sections) > 1 and not each_run:
            context.account.caveats.append(Caveat("runs-left-out", str(path), BEST_AND_WORST, ONE_EACH))


def _take(line: int, body: Mapping[str, Any], context: Context, held: Polls) -> None:
    """Add the commands of one run."""
    try:
        start, end = (count(body["Runtime"].get(name)) * UNITS_NS["ms"] for name in ("Start time", "Finish time"))
        if not 0 < start <= end:
            raise WrongError(NO_TIME)
    except WrongError:
        held.reject(NO_TIME, line, Lost(context.series))
        return
    more = 0
    for command, tag, stats in _commands(body, context):
        series = context.series.replaced(op=command, kind="service", tag=tag)
        samples = None
        try:
            samples = count(stats.get("Count"))
            histogram = _histogram(stats)
            if histogram is None and samples:
                raise WrongError("no histogram of a command that has samples")
            if histogram is not None:
                more += max(int(histogram[2].sum()) - samples, 0)
                held.add(Poll(line, series, start, end, *histogram, total=False))
        except WrongError as error:
            held.reject(str(error), line, Lost(series, start, end, samples))
    if more:
        context.account.note(f"its histograms hold {counted(more, 'sample')} more than it counts: answered after the end")


def _commands(body: Mapping[str, Any], context: Context) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the commands by their names in the singular, lower case, as the server calls them: `Gets` is get.

    With them a tag: two calls of one command, as `--command` may give them, are told by it.
    """
    for name, entry in body.items():
        every = entry if isinstance(entry, _Several) else [entry]
        for place, stats in enumerate(every, 1):
            if name == "Totals":
                context.account.skip("the sum of all commands", 1)
            elif name not in NOT_COMMANDS and (not isinstance(stats, dict) or stats.keys() & OF_COMMANDS):
                tag = f"{{call={place}}}" if len(every) > 1 else ""
                yield str(name).removesuffix("s").lower(), tag, stats if isinstance(stats, dict) else {}


class _Several(list[Any]):
    """The values of a key that an object has more than once."""


def _loaded(text: bytes) -> Any:
    """Return a document; ValueError where it is none. The mean of a command that was never sent stands there as `-nan`."""
    plain = NO_NUMBER.sub(lambda match: match[1] or b"null", text) if NO_NUMBER_IN.search(text) else text
    return json.loads(plain, object_pairs_hook=_all_of)


def _all_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON without losing what stands there twice."""
    entries: dict[str, list[Any]] = {}
    for name, value in pairs:
        entries.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else _Several(values) for name, values in entries.items()}


def _histogram(stats: Mapping[str, Any]) -> tuple[Layout, Int, Int] | None:
    """Return the layout, bins and counts of a command, None where it has no samples."""
    latencies = stats.get("Percentile Latencies")
    log = latencies.get("Histogram log format") if isinstance(latencies, dict) else None
    text = log.get("Compressed Histogram") if isinstance(log, dict) else None
    if not isinstance(text, str) or not text:
        return None
    try:
        payload = payload_of(text.encode("ascii", "replace"))
        geometry = payload.geometry
        layout = hdr_layout(geometry.digits, geometry.unit_magnitude, UNITS_NS["us"])
    except (PayloadError, ValueError, OverflowError) as error:
        raise WrongError(str(error)) from None
    counts = counts_of([payload])
    if counts.faults:
        raise WrongError(counts.faults[0])
    if len(counts.bins) and int(counts.bins[-1]) >= layout.bins:
        raise WrongError("counts past the end of its bins")
    bins, numbers = sparse(counts.bins, counts.counts)
    return (layout, bins, numbers) if len(bins) else None


READER = polled(MEMTIER, read, NOTHING, grows=WHOLE)
