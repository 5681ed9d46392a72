"""What a report's page holds of its runs: sparse bins as streams of small numbers, deflated, as base64 text.

    base64( deflate( length of the JSON (4 bytes, little-endian) | JSON | streams ) )

The JSON says what the streams hold, in their order. A stream is a byte that says how many planes follow: the lowest bytes
of all its numbers, then the next ones. (Measured: a sixth smaller than numbers of base 128, as counts are noise in their low
bits alone.) A level (the cluster, the hosts, the threads of a run) has the streams

    windows   of each row, how many windows after the row before it in its series (the first: after the level's first)
    widths    of each row, how many bins are filled
    bins      of each filled bin, how far after the bin before it in its row (the first: after bin 0)
    counts    of each filled bin
    maxima    of each row, its exact maximum in ns plus one, 0 where it is unknown    (only where `exact`)
    minima    of each row, its exact minimum likewise                                 (only where `exact`)
    done      of each row, the I/Os that completed, the events that were stored       (only where `weighted`)

with its series in the order of `keys`, `rows` of them each. Operations that failed are a level `failed`, in the windows of the
cluster: all are in bin 0, which stands for no latency. Every level begins with the first and ends with the last of these windows.
Hosts and threads that are too many for bins have tails: windows, counts, and the bins of p50 and p99 plus one (0: too few
samples), maximum and minimum in ns.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Intervals, concatenate, distinct, no_exact
from ingest.core.labels import THREAD, Group
from ingest.core.layout import Layout, LogLinear, Mixed, common_layout, outlined
from ingest.core.quantiles import Percentile, Ranked, extremes, parse_percentiles
from ingest.query.lags import mixed_rows
from ingest.query.overview import LEAST_WINDOWS, Overview, Tails, fitted, span_of, thread_name
from ingest.query.question import Answer
from ingest.query.windows import in_own_layouts
from ingest.view.page.template import bundled
from ingest.view.vega import MS, printable, short_names

Int = NDArray[np.int64]

MOST_CHARACTERS = 4_950_000
P50, P99 = parse_percentiles("50,99")
ALL_OPS = "*"
WIDENED = {"hosts": "bins by host", "threads": "threads", "tails": "percentiles by host", "cluster": "bins of the cluster"}


@dataclass(slots=True)
class Streams:
    """The bytes of the streams so far, the layouts that they name, and the bins that they need of each.

    `made` is what is in them of answers, `before` what was made of some for a page that is packed anew.
    """

    before: Mapping[tuple[int, ...], Made] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    layouts: dict[Layout, int] = field(default_factory=dict)
    used: dict[Layout, Int] = field(default_factory=dict)
    made: dict[tuple[int, ...], Made] = field(default_factory=dict)

    def add(self, numbers: Int) -> None:
        """Append numbers, none below zero."""
        self.parts.append(planes(numbers))

    def layout(self, part: Intervals[Group]) -> int:
        """Return the number of a part's layout."""
        return self._number(part.layout, [distinct(piece.bins) for _, piece in part.pieces()])

    def of(self, answers: Sequence[Answer], make: Callable[[Streams], dict[str, Any]]) -> dict[str, Any]:
        """Return what the JSON says of answers, their numbers added; `make` does that where it was not done before."""
        names = tuple(map(id, answers))
        made = self.before.get(names)
        if made is None:
            own = Streams()
            made = Made(answers, own, make(own))
        self.made[names] = made
        self.parts += made.streams.parts
        numbers = [self._number(layout, [used]) for layout, used in made.streams.used.items()]
        return {**made.content, "layouts": [numbers[number] for number in made.content["layouts"]]}

    def _number(self, layout: Layout, bins: Sequence[Int]) -> int:
        self.used[layout] = distinct(np.concatenate([self.used.get(layout, np.zeros(1, np.int64)), *bins]))
        return self.layouts.setdefault(layout, len(self.layouts))


@dataclass(slots=True)
class Made:
    """What was made of answers, which are kept so that no others take their places; how large it is deflated, once asked."""

    answers: Sequence[Answer]
    streams: Streams
    content: dict[str, Any]
    size: int = 0

    def deflated(self) -> int:
        """Return how many bytes its streams take, each deflated by itself."""
        self.size = self.size or sum(len(zlib.compress(part, 6)) for part in self.streams.parts)
        return self.size


def planes(numbers: Int) -> bytes:
    """Return numbers from 0 to 2^63 - 1 as the number of planes and the planes, lowest bytes first."""
    size = max(1, -(-int(numbers.max(initial=0)).bit_length() // 8))
    return b"".join([bytes([size]), *((numbers >> 8 * place & 255).astype(np.uint8).tobytes() for place in range(size))])


def packed(content: Mapping[str, Any], runs: Sequence[Overview]) -> tuple[str, list[str]]:
    """Return the text that the page unpacks, and what was coarsened to keep it under MOST_CHARACTERS.

    `content` is what else the JSON holds. Hosts are widened first, then threads, tails of hosts, the cluster, never below 60
    windows.
    """
    notes: list[str] = []
    shown = list(runs)
    page = _packed(content, shown, {})
    text: str | None = page.text()
    for scope, name in WIDENED.items():
        while text is None or len(text) > MOST_CHARACTERS:
            wider = [_widened(run, scope) for run in shown]
            if all(part is other for part, other in zip(wider, shown, strict=True)):
                break
            shown = wider
            page = _packed(content, shown, page.made)
            text = None if page.surely_large else page.text()
            step = max(_step_of(run, scope) for run in shown) // MS / 1000
            notes = [note for note in notes if not note.startswith(name)]
            notes.append(f"{name} are kept in windows of {step:g} s, for the size of the page (--full lifts that)")
    return page.text() if text is None else text, notes


class _Page(NamedTuple):
    """What a page is packed of."""

    content: Mapping[str, Any]
    parts: Sequence[bytes]
    made: Mapping[tuple[int, ...], Made]

    def text(self) -> str:
        """Return it packed."""
        return bundled(self.content, self.parts)

    @property
    def surely_large(self) -> bool:
        """Return whether its streams alone are too large: deflated together they are hardly smaller than one by one."""
        return sum(made.deflated() for made in self.made.values()) > MOST_CHARACTERS


def _step_of(run: Overview, scope: str) -> int:
    shown = getattr(run, scope)
    step: int = shown.coarse[0].step_ns if isinstance(shown, Tails) else 0 if shown is None else shown.step_ns
    return step


def _widened(run: Overview, scope: str) -> Overview:
    if scope == "threads" and run.thread_tails is not None:
        coarse, fine = run.thread_tails.coarse, run.thread_tails.fine
        return replace(run, threads=coarse[0], thread_tails=Tails(coarse, ())) if fine else run
    if scope == "tails":
        return replace(run, tails=Tails(run.tails.coarse, ())) if run.tails and run.tails.fine else run
    answer: Answer = getattr(run, scope)
    low, high = run.span
    windows = -(-(high - low) // max(answer.step_ns, 1))
    if not answer.step_ns or windows <= LEAST_WINDOWS:
        return run
    wider, _ = fitted(run.fine if scope == "hosts" else answer, max(LEAST_WINDOWS, windows * 3 // 4))
    return replace(run, **{scope: wider})  # type: ignore[arg-type]  # the scopes are answers


def _packed(content: Mapping[str, Any], runs: Sequence[Overview], before: Mapping[tuple[int, ...], Made]) -> _Page:
    streams = Streams(before)
    runs = [without_mixed(run) for run in runs]
    labels = short_names([run.run for run in runs])
    packed_runs = [{"label": label, **_run(run, streams)} for label, run in zip(labels, runs, strict=True)]
    return _Page({**content, "runs": packed_runs, "layouts": _layouts(streams)}, streams.parts, streams.made)


def without_mixed(run: Overview) -> Overview:
    """Return a run without bins that overlap: groups of one layout in that one, the counts of others at their highest latency."""

    def alone(answer: Answer) -> Answer:
        if not any(isinstance(part.layout, Mixed) for part in answer.parts):
            return answer
        parts = [own for part in answer.parts for own in in_own_layouts(part)]
        mixed = [part for part in parts if isinstance(part.layout, Mixed)]
        if mixed:
            layout = common_layout(part.layout for part in mixed)
            target = outlined(layout, np.unique(np.concatenate([part.in_layout(layout).bins for part in mixed])))
            parts = [part.in_layout(target) if isinstance(part.layout, Mixed) else part for part in parts]
        return replace(answer, parts=tuple(parts))

    def every(value: Any) -> Any:
        if isinstance(value, Tails):
            return Tails(tuple(map(alone, value.coarse)), tuple(map(alone, value.fine)))
        return alone(value) if isinstance(value, Answer) else value

    return replace(run, **{each.name: every(getattr(run, each.name)) for each in fields(run)})


def _layouts(streams: Streams) -> list[dict[str, Any]]:
    """Return what the page must know of each layout; the last is the one that all can be moved to."""
    layouts = list(streams.layouts)
    common = common_layout(layouts)
    if isinstance(common, Mixed):
        used = np.concatenate([layout.moved_to(common)[streams.used[layout]] for layout in layouts])
        common = outlined(common, np.unique(used))
    highest = {layout: int(streams.used[layout].max()) for layout in layouts}
    top = max(int(layout.moved_to(common)[bin_]) for layout, bin_ in highest.items())
    return [*(_layout(layout, common, highest[layout]) for layout in layouts), _layout(common, common, top)]


def _layout(layout: Layout, common: Layout, highest: int) -> dict[str, Any]:
    """Return edges, reported values and ways into the common layout of the bins up to `highest`; `last` is the open bin.

    `half` bins an octave are the finest rows; `unit` is 0 where bins are not log-linear, and rows are made of their edges.
    """
    return {
        "edges": layout.edges[: highest + 2],
        "values": layout.values[: highest + 1],
        "last": layout.bins - 1 if layout.open_ended else -1,
        "half": layout.octave,
        "unit": layout.unit_ns << layout.coarseness if isinstance(layout, LogLinear) and not layout.octaves else 0,
        "into": None if layout == common else layout.moved_to(common)[: highest + 1],
    }


def _run(run: Overview, streams: Streams) -> dict[str, Any]:
    answer = run.cluster
    low, high = run.span
    reach = run.reach or run.span
    covered = answer.covered.values()

    def level(shown: Answer, extra: Sequence[str]) -> dict[str, Any]:
        return streams.of([shown], lambda own: _level(shown, run, extra, own))

    content: dict[str, Any] = {
        "name": printable(run.run),
        "start": answer.start_of / MS,
        "relative": answer.relative,
        "begin": low / MS,
        "end": high / MS,
        "seconds": (reach[1] - reach[0]) / 1e9,
        **({"covered": [min(covered)[0] / MS, max(high for _, high in covered) / MS]} if covered else {}),
        "extra": ", ".join(run.extra),
        **({} if run.story is None else {"story": {name: told for name, told in run.story.items() if name != "steady"}}),
        "levels": {scope: level(getattr(run, scope), run.extra) for scope in ("cluster", "hosts")},
        "tails": {},
    }
    if run.failed is not None:
        content["levels"]["failed"] = _level(_counted(run.failed, answer.parts[0].layout), run, run.extra, streams)
    if run.thread_tails is None:
        content["levels"]["threads"] = level(run.threads, ())
    else:
        content["tails"]["threads"] = _tails(run.thread_tails, streams)
    if run.tails is not None:
        content["tails"]["hosts"] = _tails(run.tails, streams)
    return content


def _counted(failed: Answer, layout: Layout) -> Answer:
    """Return how many operations of each row failed, in the first bin of a layout."""
    parts = [
        replace(
            part,
            layout=layout,
            indptr=np.arange(len(part) + 1),
            bins=np.zeros(len(part), np.int64),
            counts=part.failures,
            exact=None,
        )
        for part in failed.parts
    ]
    return replace(failed, parts=tuple(parts))


def _key(labels: Sequence[str], answer: Answer, extra: Sequence[str]) -> dict[str, str]:
    """Return what the page knows of a series: op, kind, host, thread, and the labels that were asked for beside them."""
    known = dict(zip(answer.by, labels, strict=True))
    key = {name: printable(known.get(name, "")) for name in ("op", "kind", "host")}
    if all(name in known for name in THREAD):
        key["thread"] = printable(thread_name(tuple(known[name] for name in THREAD)))
    if extra:
        key["extra"] = printable(", ".join(known.get(name, "") or "-" for name in extra))
    return key


def _in_one_order(answer: Answer) -> list[Intervals[Group]]:
    """Return the rows of an answer by their keys, those of a layout together: the same page, in whatever parts they came."""
    alike: dict[tuple[Layout, bool, bool], list[Intervals[Group]]] = {}
    for part in answer.parts:
        if len(part):
            kind = part.layout, part.completions is None, bool(mixed_rows(answer, part).any())
            alike.setdefault(kind, []).append(part)
    return sorted((concatenate(parts).in_key_order() for parts in alike.values()), key=lambda part: tuple(part.table))


def _level(answer: Answer, run: Overview, extra: Sequence[str], streams: Streams) -> dict[str, Any]:
    """Return what the JSON says of a level, its numbers added to the streams."""
    parts = [part.chosen(np.lexsort((part.start_ns, part.series))) for part in _in_one_order(answer)]
    clock = _clock(answer, run)
    exact = any(part.exact is not None and bool(part.exact.known.any()) for part in parts)
    weighted = any(part.completions is not None for part in parts)
    rows: list[tuple[dict[str, Any], int, int, int, int]] = []
    weights = {} if answer.weights is None else answer.weights
    firsts, mixed = [], []
    for part in parts:
        codes, sizes = np.unique(part.series, return_counts=True)
        firsts.append(np.cumsum(sizes) - sizes)
        mixed.append(bool(mixed_rows(answer, part).any()))
        layout, unit = streams.layout(part), 1 if part.completions is None or mixed[-1] else 1 << WEIGHT_BITS
        rows += [
            (_key(part.table[code], answer, extra), size, layout, unit, 0 if mixed[-1] else weights.get(part.table[code], 1))
            for code, size in zip(codes.tolist(), sizes.tolist(), strict=True)
        ]
    known = [part.exact or no_exact(len(part)) for part in parts]
    # One column is made after another: all of them at once are many times what the rows take that are held narrow.
    windows = ((part.start_ns - clock[0]) // clock[1] for part in parts)
    streams.add(np.concatenate([steps(window, at) for window, at in zip(windows, firsts, strict=True)]))
    streams.add(np.concatenate([np.diff(part.indptr) for part in parts]))
    streams.add(np.concatenate([steps(part.bins, part.indptr[:-1]) for part in parts]))
    counts = (part.counts >> WEIGHT_BITS if each else part.counts for part, each in zip(parts, mixed, strict=True))
    streams.add(np.concatenate([*counts]))
    if exact:
        streams.add(np.concatenate([np.where(each.known_max, each.max_ns + 1, 0) for each in known]))
        streams.add(np.concatenate([np.where(each.known_min, each.min_ns + 1, 0) for each in known]))
    if weighted:
        done = (np.zeros(len(part), np.int64) if part.completions is None else part.completions for part in parts)
        streams.add(np.concatenate([*done]))
    return {
        **_times(answer, run),
        "keys": [key for key, *_ in rows],
        "rows": [row[1] for row in rows],
        "layouts": [row[2] for row in rows],
        "units": [row[3] for row in rows],
        **({} if answer.weights is None else {"weights": [row[4] for row in rows]}),
        "entries": sum(int(part.indptr[-1]) for part in parts),
        "exact": exact,
        "weighted": weighted,
    }


def _clock(answer: Answer, run: Overview | None = None) -> tuple[int, int, int]:
    """Return the start of the first window, the width of all and the end of the last in ns; windows of a run's failures count."""
    beside = run.failed.parts if run and run.failed else ()
    low, high = span_of([part for part in (*answer.parts, *beside) if len(part)])
    step = answer.step_ns or max(high - low, 1)
    return low // step * step if answer.step_ns else low, step, high


def _times(answer: Answer, run: Overview | None = None) -> dict[str, Any]:
    """Return when windows are: the first begins at `origin`, is the `base`-th since 1970, each is `step` ms wide."""
    low, step, high = _clock(answer, run)
    return {
        "origin": low / MS,
        "step": step / MS,
        "base": low // step if answer.step_ns else 0,
        "windows": -(-(high - low) // step),
    }


def steps(values: Int, firsts: Int) -> Int:
    """Return the distance of each value from the one before it, of those at `firsts` from zero."""
    steps = np.diff(values, prepend=0)
    steps[firsts] = values[firsts]
    return steps


def _tails(tails: Tails, streams: Streams) -> dict[str, Any]:
    """Return what the JSON says of series without bins, at one step for a whole view and at their own where that is another."""
    steps = [answers for answers in (tails.coarse, tails.fine) if answers]
    return {"steps": [streams.of(answers, partial(_tail_rows, answers)) for answers in steps]}


def _tail_rows(answers: Iterable[Answer], streams: Streams) -> dict[str, Any]:
    content: dict[str, Any] = {}
    keys, sizes, layouts, columns = [], [], [], []
    for answer in answers:
        content = content or _times(answer)
        low, step, _ = _clock(answer)
        for part in _in_one_order(answer):
            ordered = part.chosen(np.lexsort((part.start_ns, part.series)))
            codes, counts = np.unique(ordered.series, return_counts=True)
            for code in codes.tolist():
                key = _key(part.table[code], answer, ())
                keys.append({**key, "op": key["op"] if "op" in answer.by else ALL_OPS})
            sizes += counts.tolist()
            layouts += [streams.layout(part)] * len(codes)
            shift = (low - content["origin"] * MS) // step
            windows = (ordered.start_ns - low) // step + int(shift)
            mixed = bool(mixed_rows(answer, ordered).any())
            summaries = [_summary(piece, mixed=mixed) for _, piece in ordered.pieces()]
            summary = map(np.concatenate, zip(*summaries, strict=True))
            columns.append([steps(windows, np.cumsum(counts) - counts), *summary])
    for column in zip(*columns, strict=True):
        streams.add(np.concatenate(column))
    return {**content, "keys": keys, "rows": sizes, "layouts": layouts}


def _summary(rows: Intervals[Group], *, mixed: bool) -> tuple[Int, ...]:
    """Return of each row its samples, the bins of p50 and p99 plus one (0 where not carried), maximum and minimum in ns."""
    ranked = Ranked(rows)
    count = rows.samples if rows.completions is None else rows.completions
    carried = count if rows.completions is None or mixed else -(-rows.samples >> WEIGHT_BITS)
    low, high, *_ = extremes(rows)
    return count, _bins(ranked, P50, carried), _bins(ranked, P99, carried), high, low


def _bins(ranked: Ranked, percentile: Percentile, samples: Int) -> Int:
    out = np.zeros(len(samples), np.int64)
    rows = np.flatnonzero(percentile.carried(samples))
    out[rows] = ranked.bins(rows, percentile.ranks(ranked.samples[rows])) + 1
    return out
