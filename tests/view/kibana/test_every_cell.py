"""Every number that a panel shows is that of the query layer: each panel as it is imported, for four sets of data.

Many samples; 40 a second of each of three hosts with odd names, timed as service, response and wait; several runs over a month's end, of which each
lies in two indices; and one without host, kind and operation. Where nothing is chosen the run that began last is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view import vega
from ingest.view.page.panels.layers import layer_cells
from tests.breath_rings import Work, rings
from tests.databases import database
from tests.view.kibana.conftest import EXAMPLE, ROOT, Served, loaded
from tests.view.kibana.lens_rows import asked_rows
from tests.view.kibana.test_vega_panels import columns, picked, ranked
from tools.kibana.asked import chosen
from tools.kibana.compile import compiled
from tools.kibana.pictures import LAGS, SURFACE
from tools.kibana.requests import NARROW_ROWS, NUMBERS, PERCENTS, edges

SECOND, MS, STEP = 1_000_000_000, 1_000_000, 10_000_000_000
MIDNIGHT_S = 1_796_083_200  # 2026-12-01T00:00:00Z
DESCRIBED = "start: start_us\nlatency: took_us\nunit: us\nlabels: {op: op}\n"
NAMED = "50,90,99,99.9,99.99"
LOWEST, HIGHEST = edges(8)[0], parse_percentiles("100")
SHOWN_BY = {"p50": "p50", "p90": "p90", "p99": "p99", "p99_9": "p99.9", "max": "max"}


def forty(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    chance, logs = np.random.default_rng(48), []
    for number, host in enumerate(("h 1", "!2", 'größe "3"' + 40 * "x")):
        due = (MIDNIGHT_S + 43_200) * 1_000_000 + np.arange(4800) * 25_000
        began = due + np.exp(chance.normal(4, 2, 4800)).astype(int)
        rows = zip(due, began, began + np.exp(chance.normal(6, 1, 4800)).astype(int) + 1)
        path = folder / f"{number}.csv"
        path.write_text("due_us,start_us,end_us,op\n" + "".join(f"{a},{b},{c},read\n" for a, b, c in rows))
        logs.append((str(path), "--host", host, "--intended-start-column", "due_us"))
    return {"forty": logs}


def over_a_month(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """Three runs; that which began last is not that which ends last. For 20 s all take as long: a bin reports less, then more."""
    chance, loads = np.random.default_rng(5), {}
    (folder / "described.yml").write_text(DESCRIBED)
    for run, (first, last) in {"soak": (-180, 180), "short": (-100, 60), "young": (-60, 100)}.items():
        for host in ("h1", "h2"):
            starts = (MIDNIGHT_S + first) * 1_000_000 + np.arange((last - first) * 40) * 25_000
            took = np.exp(chance.normal(6, 1, len(starts))).astype(int) + 1
            for begin, constant in ((-50, 8_388_608), (-40, 8_500_000)):
                took[(starts >= (MIDNIGHT_S + begin) * 1_000_000) & (starts < (MIDNIGHT_S + begin + 10) * 1_000_000)] = constant
            rows = zip(starts, took, chance.choice(["read", "write"], len(starts)))
            path = folder / f"{run}-{host}.csv"
            path.write_text("start_us,took_us,op\n" + "".join(f"{a},{b},{op}\n" for a, b, op in rows))
            loads.setdefault(run, []).append((str(path), "--host", host, "--input-format", str(folder / "described.yml")))
    return loads


def timeline(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """Of a Snabb process: breaths and lags, whose kind no other panel prefers."""
    rings(folder / "one", counted=Work(counters=True, breaths=200))
    return {"timeline": [(str(folder / "one"), "--host", "h")]}


SETS: dict[str, Callable[[Path], dict[str, list[tuple[str, ...]]]]] = {
    "many": lambda _: {"nightly": [(str(EXAMPLE),)]},
    "forty": forty,
    "month": over_a_month,
    "timeline": timeline,
    "bare": lambda _: {"bare": [(str(ROOT / "tests" / "data" / "hdr" / "2.2.2-3-digits.hlog"), "--recorded-unit", "ns")]},
}


@dataclass(frozen=True, slots=True)
class Case:
    """One set of data in both stores, all its runs by their start, and that which is shown."""

    served: Served
    runs: tuple[str, ...]
    run: str

    def answer(self, **words: Any) -> Any:
        with open_store(self.served.sqlite) as store:
            return store.answer(Question(**{"runs": (self.run,), "step": STEP, **words}))

    def rows(self, **words: Any) -> list[dict[str, Any]]:
        """The rows of the query layer; what has no value is None, what has no label "-"."""
        told = percentiles(self.answer(**words), Wanted(parse_percentiles(NAMED))).columns
        cells = [column if isinstance(column, list) else column.tolist() for column in told.values()]
        rows = [dict(zip(told, (None if value != value else value for value in row))) for row in zip(*cells)]
        return [
            {name: "-" if name in words.get("by", ()) and not value else value for name, value in row.items()} for row in rows
        ]

    def kinds(self) -> list[str]:
        """The kinds of the run; of one without a kind an empty text."""
        with database(self.served.sqlite.removeprefix("sqlite:")) as db:
            kinds = db.execute("SELECT DISTINCT kind FROM series WHERE run = ?", (self.run,)).fetchall()
        return sorted(kind or "" for (kind,) in kinds if kind != "offset")


@pytest.fixture(scope="session")
def sets(server, tmp_path_factory):
    made: dict[str, Served] = {}

    def of(name: str, which: str) -> Case:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            for run, loads in SETS[name](folder).items():
                for words in loads:
                    made[name] = loaded(server, folder, f"cells-{name}", {run: words})
        with open_store(made[name].sqlite) as store:
            runs = [one.run for one in sorted(store.runs(), key=lambda one: one.start_ns)]
        if which == "last":
            return Case(made[name], tuple(runs), runs[-1])
        shown = replace(made[name].shown, filters=(chosen("run.id", [runs[0]]),))
        return Case(replace(made[name], shown=shown), tuple(runs[:1]), runs[0])

    return of


def spec_of(saved) -> dict[str, Any]:
    return json.loads(json.dumps(saved.attributes["visState"]["params"]["spec"]))


def drawn(page, case: Case, saved) -> int:
    """Draw a panel of a run; return the width in ns of its windows."""
    page.draw(case.served.answered(spec_of(saved)))
    told = page.table("chosen")
    assert {row["run"] for row in told} == {case.run}, page.signal("heading")
    assert page.signal("heading").split("run ", 1)[1].startswith(case.run)
    [width] = {row["width"] for row in told}
    return int(width) * MS


def percentiles_over_time(page, case: Case, saved, percents=PERCENTS) -> None:
    found = case.answer(step=drawn(page, case, saved))
    whole = case.answer(step="all")
    for percent in percents:
        page.choose(percentile=percent)
        name, wanted = f"p{percent:g}", parse_percentiles(f"{percent:g}")
        rows = page.table("points")
        expected = vega.points(found, wanted)
        told = [row for row in rows if row["label"] == name]
        assert picked(told, "t", "n", "beyond") == columns(expected, "t", "n", "beyond"), percent
        same(told, found, percent)
        assert {row["t"] for row in page.table("thin")} == {*vega.points(found, HIGHEST)["t"]} - {*expected["t"]}
        same([row for row in page.table("whole") if row["label"] == name], whole, percent)
    tops = [row for row in page.table("points") if row["label"] == "max"]
    assert picked(tops, "t", "v") == columns(vega.points(found, HIGHEST), "t", "v")
    [top] = [row["v"] for row in page.table("whole") if row["label"] == "max"]
    assert [top] == vega.points(whole, HIGHEST)["v"]


def same(rows: list[dict], found, percent: float) -> None:
    """Percentiles of all samples: equal, or within 0.8 % where bins are finer than those of the server (hdr with 2 digits)."""
    values = {t: value for (t, _), value in ranked(found, percent).items()}
    finer = any(float(part.layout.error) < 1 / 256 for part in found.parts)
    for row in rows:
        value = values[row["t"]] if len(values) > 1 else next(iter(values.values()))
        assert row["v"] == value or finer and abs(row["v"] - value) <= 0.008 * value + 1, (percent, row, value)


def surface(page, case: Case, saved) -> None:
    found = case.answer(step=drawn(page, case, saved))
    expected = vega.points(found, parse_percentiles(",".join(f"{percent:g}" for percent in SURFACE)))
    rows = page.table("points")
    assert picked(rows, "t", "row", "n") == columns(expected, "t", "label", "n")
    for percent in SURFACE:
        same([row for row in rows if row["p"] == percent], found, percent)


def heat_map(page, case: Case, saved) -> None:
    found = case.answer(step=drawn(page, case, saved))
    assert counted(page.table("cells")) == counted(vega.rows(vega.cells(found)))
    for percent in (50, 99, 99.9):
        page.choose(percentile=percent)
        rows = page.table("points")
        assert picked(rows, "t", "n") == columns(vega.points(found, parse_percentiles(f"{percent:g}")), "t", "n")
        same(rows, found, percent)


def counted(cells: list[dict], name: str = "c") -> dict[tuple, int]:
    """Samples by window and row; the lowest row of a panel has all below 1 us."""
    found: dict[tuple, int] = {}
    for cell in cells:
        lower, upper = (0, LOWEST) if cell["upper"] <= LOWEST else (cell["lower"], cell["upper"])
        key = (cell["t"], cell.get("t2"), lower, upper)
        found[key] = found.get(key, 0) + cell[name]
    return found


def layers(page, case: Case, saved) -> None:
    width = drawn(page, case, saved)
    report = layer_cells(case.answer(by=("kind",), step=width), case.answer().kind).columns
    assert counted([{**row, "t2": None} for row in page.table("points")], "n") == counted(vega.rows(report), "n")


def hosts(page, case: Case, saved) -> None:
    width = drawn(page, case, saved) // MS
    step = int(page.table("chosen")[0]["step"]) * MS
    rows, highest = case.rows(by=("host", "op"), step=step), dict[tuple, float]()
    top = vega.points(case.answer(by=("host",), step=width * MS), HIGHEST)
    for t, host, value in zip(top["t"], top["label"], top["v"]):
        highest[t // width * width, host or "-"] = value
    for number in NUMBERS:
        page.choose(number=number)
        worst: dict[tuple, float] = {}
        for row in rows:
            key = (row["start_ns"] // MS // width * width, row["host"])
            if row[SHOWN_BY[number]] is not None:
                worst[key] = max(worst.get(key, 0), row[SHOWN_BY[number]])
        assert {(row["t"], row["row"]): row["v"] for row in page.table("points")} == worst, number
        assert {(row["t"], row["row"]): row["v"] for row in page.table("thin")} == {
            key: value for key, value in highest.items() if key not in worst
        }


def threads(page, case: Case, saved) -> None:
    width = drawn(page, case, saved)
    told = vega.points(case.answer(by=("host", "volume", "job", "process", "tag"), step=width), HIGHEST)
    rows = sorted((row["t"], row["v"], row["n"]) for row in page.table("points"))
    assert rows == columns(told, "t", "v", "n")
    assert len(page.table("rows")) == len({*told["label"]})


def distribution(page, case: Case, saved) -> None:
    drawn(page, case, saved)
    for op in {row["op"] for row in case.rows(by=("op",), step="all")}:
        curve(page, op, case.answer(step="all", where={"op": op} if op != "-" else {}))


def curve(page, label: str, found) -> None:
    """The steps of a line: at each how many samples lie below it; in rows of 1/64 octave where the bins are finer."""
    rows = sorted((row for row in page.table("points") if row["label"] == label), key=lambda row: row["cum"])
    report = vega.curve(found)
    assert {row["n"] for row in rows} == {*report["n"]} == {found.samples}
    [part] = found.parts
    values, counts = part.layout.keys[part.bins], part.counts
    narrow = np.array([0, *edges(NARROW_ROWS), 1 << 62])
    in_row = np.bincount(np.searchsorted(narrow, values, side="right") - 1, weights=counts, minlength=len(narrow))
    occupied = np.flatnonzero(in_row)
    assert [row["cum"] for row in rows] == [0, *np.cumsum(in_row)[occupied].astype(int).tolist()]
    if part.layout.octave <= NARROW_ROWS:
        above = [row for row in vega.rows(report) if row["v"] >= LOWEST]
        assert picked([row for row in rows if row["v"] >= LOWEST], "cum", "v", "open") == picked(above, "cum", "v", "open")
    else:
        assert [row["v"] for row in rows[1:]] == np.minimum(narrow[occupied + 1], vega.points(found, HIGHEST)["v"]).tolist()


def worst_windows(page, case: Case, saved) -> None:
    drawn(page, case, saved)
    told, table = page.table("told"), case.rows(by=("op",))
    for op in {row["op"] for row in table}:
        found = sorted((row["p99"] or 0, row["t"], row["max"], row["n"]) for row in told if row["operation"] == op)
        every = [(row["p99"] or 0, row["start_ns"] // MS, row["max"], row["count"]) for row in table if row["op"] == op]
        assert found == sorted(sorted(every, key=lambda row: (-row[0], row[1]))[:20])


def story(page, case: Case, saved) -> None:
    drawn(page, case, saved)
    with open_store(case.served.sqlite) as store:
        found = [one for one in store.findings_of([case.run]) if one.text]
    expected = sorted((one.text, one.start_ns // MS, one.end_ns // MS) for one in found)
    assert sorted((row["says"], row["t"], row["t2"]) for row in page.table("told") if row["t"]) == expected


def all_runs(page, case: Case, saved) -> None:
    page.draw(case.served.answered(spec_of(saved)))
    with open_store(case.served.sqlite) as store:
        expected = {one.run: store.answer(Question(runs=(one.run,), step="all")).samples for one in store.runs()}
    assert {row["run"]: row["n"] for row in page.table("told")} == expected


def two(page, case: Case, saved) -> dict[str, tuple[Any, int]]:
    """Draw a panel of two runs; return of each what the query layer says at its width of windows, and its first window in ms."""
    page.draw(case.served.answered(spec_of(saved)))
    told = {row["run"]: int(row["width"]) * MS for row in page.table("chosen")}
    assert set(told) == set(case.runs[-2:])
    found = {run: case.answer(runs=(run,), step=width or STEP) for run, width in told.items()}
    return {run: (one, min(int(part.start_ns.min()) for part in one.parts) // MS) for run, one in found.items()}


def elapsed(page, case: Case, saved) -> None:
    for run, (found, first) in two(page, case, saved).items():
        for percent in (50, 90, 99, 99.9):
            page.choose(percentile=percent)
            rows = [{**row, "t": row["t"] + first} for row in page.table("points") if row["run"] == run]
            assert picked(rows, "t", "n") == columns(vega.points(found, parse_percentiles(f"{percent:g}")), "t", "n")
            same(rows, found, percent)


def maps(page, case: Case, saved) -> None:
    for run, (found, first) in two(page, case, saved).items():
        rows = [{**row, "t": row["t"] + first} for row in page.table("cells") if row["run"] == run]
        assert counted([{**row, "t2": row["t2"] + first} for row in rows]) == counted(vega.rows(vega.cells(found)))


def run_curves(page, case: Case, saved) -> None:
    for run in two(page, case, saved):
        curve(page, run, case.answer(runs=(run,), step="all"))


def sweep(page, case: Case, saved) -> None:
    page.draw(case.served.answered(spec_of(saved)))
    assert {row["run"] for row in page.table("chosen")} == set(case.runs)
    for percent in (50, 99, 99.9):
        page.choose(percentile=percent)
        rows = page.table("points")
        for run in case.runs:
            found = case.answer(runs=(run,), step="all", by=("op",))
            expected = vega.points(found, parse_percentiles(f"{percent:g}"))
            own = [{**row, "label": row["label"].split()[0].strip("-")} for row in rows if row["run"] == run]
            labels = [label.strip("-") for label in expected["label"]]
            assert picked(own, "label", "n") == sorted(zip(labels, expected["n"]))
            values = dict(zip(labels, expected["v"]))
            for row in own:
                assert row["v"] == values[row["label"]] or abs(row["v"] / values[row["label"]] - 1) < 0.008, (run, percent)


def timed(case: Case) -> list[str]:
    """The kinds of the run that coordinated omission compares."""
    return [kind for kind in case.kinds() if kind in ("service", "response", "wait")]


def kinds(page, case: Case, saved) -> None:
    known = timed(case)
    if not known:
        return nothing(page, case, saved)
    width = drawn(page, case, saved)
    for kind in known:
        found = case.answer(step=width, where={"kind": kind})
        own = [row for row in page.table("points") if row["label"] == kind]
        assert [(row["t"], row["high"]) for row in sorted(own, key=lambda row: row["t"])] == columns(
            vega.points(found, HIGHEST), "t", "v"
        )
        same([{**row, "v": row["low"]} for row in own], found, 50)
        same([row for row in own if row["v"] is not None], found, 99)


def gap(page, case: Case, saved) -> None:
    if not {"service", "response"} <= {*timed(case)}:
        return nothing(page, case, saved, drawn_still="service" in timed(case))
    width = drawn(page, case, saved)
    for percent in (50, 99):
        page.choose(percentile=percent)
        found = {kind: case.answer(step=width, where={"kind": kind}) for kind in ("service", "response")}
        rows = page.table("points")
        assert picked(rows, "t", "n") == columns(vega.points(found["response"], parse_percentiles(f"{percent:g}")), "t", "n")
        for kind, of_kind in found.items():
            same([{**row, "v": row[kind]} for row in rows], of_kind, percent)
        assert all(row["v"] == row["response"] - row["service"] for row in rows)


def kind_curves(page, case: Case, saved) -> None:
    known = timed(case)
    if not known:
        return nothing(page, case, saved)
    drawn(page, case, saved)
    for kind in known:
        curve(page, kind, case.answer(where={"kind": kind}, step="all"))


def lags(page, case: Case, saved) -> None:
    percentiles_over_time(page, case, saved, LAGS) if "lag" in case.kinds() else nothing(page, case, saved)


def lag_curves(page, case: Case, saved) -> None:
    distribution(page, case, saved) if "lag" in case.kinds() else nothing(page, case, saved)


def nothing(page, case: Case, saved, *, drawn_still: bool = False) -> None:
    page.draw(case.served.answered(spec_of(saved)))
    assert page.table("points") == []
    heading = page.signal("heading")
    assert "no window has both service and response" in heading if drawn_still else heading.startswith("no ")


PICTURES = {
    "cluster-latency-story": story,
    "cluster-latency-heatmap": heat_map,
    "cluster-latency-percentiles": percentiles_over_time,
    "cluster-latency-worst-windows": worst_windows,
    "cluster-latency-distribution": distribution,
    "cluster-latency-all-runs": all_runs,
    "hosts-and-threads-hosts": hosts,
    "hosts-and-threads-threads": threads,
    "heat-maps-detail": heat_map,
    "heat-maps-overview": heat_map,
    "heat-maps-surface": surface,
    "compare-runs-runs": elapsed,
    "compare-runs-maps": maps,
    "compare-runs-curves": run_curves,
    "compare-runs-load": sweep,
    "layers-heat": layers,
    "coordinated-omission-kinds": kinds,
    "coordinated-omission-gap": gap,
    "coordinated-omission-curves": kind_curves,
    "snabb-timeline-lags": lambda page, case, saved: lags(page, case, saved),
    "snabb-timeline-distribution": lambda page, case, saved: lag_curves(page, case, saved),
}
ELSEWHERE = {  # of breaths and of single events: test_vega_breaths.py, test_vega_offsets.py
    *(f"snabb-timeline-{name}" for name in ("density", "breaths", "packets", "breath-rate", "processes")),
    "subsecond-offsets-offsets",
}
OF_SETS = [("many", "last"), ("forty", "last"), ("month", "last"), ("month", "first"), ("bare", "last")]
OF_SNABB = [*OF_SETS, ("timeline", "last")]


def cases(panels) -> list[tuple[str, str, str]]:
    return [(panel, *one) for panel in panels for one in (OF_SNABB if panel.startswith("snabb") else OF_SETS)]


@pytest.mark.cases(24)
@pytest.mark.slow
@pytest.mark.parametrize(("picture", "name", "which"), cases(PICTURES))
def test_k1_every_cell_of_a_picture_is_that_of_the_query(page, sets, picture, name, which) -> None:
    case = sets(name, which)
    [saved] = [one for one in compiled(case.served.prefix) if one.id == f"{case.served.prefix}-{picture}"]
    PICTURES[picture](page, case, saved)


def worst(rows: list[dict], name: str) -> float | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)


def shown_in(case: Case, saved) -> list[dict[str, Any]]:
    """The rows of a panel, all of the run that is shown and of its default kind."""
    rows = asked_rows(case.served, saved, case.served.shown)
    assert {row["run"] for row in rows} == {case.run}
    assert {row["kind"] for row in rows if "kind" in row} <= {case.answer().kind or "-"}
    return rows


def tile(number: str):
    def check(case: Case, saved) -> None:
        [row] = shown_in(case, saved)
        assert row["cluster"] == worst(case.rows(by=("op",)), number)
        assert row["worst host"] == worst(case.rows(by=("host", "op")), number)

    return check


def highest_of_all(case: Case, saved) -> None:
    [row] = shown_in(case, saved)
    rows = case.rows(by=("host", "op"))
    assert (row["all hosts"], row["I/Os"]) == (worst(rows, "max"), sum(one["count"] for one in rows))


def table_of(*labels: str, kinds: bool = False):
    """A table with a row for each of these labels: the worst windows of a host or operation, and how many samples it has."""

    def check(case: Case, saved) -> None:
        rows = asked_rows(case.served, saved, case.served.shown) if kinds else shown_in(case, saved)
        assert {row["run"] for row in rows} == {case.run}
        expected: dict[tuple, list[dict]] = {}
        for kind in case.kinds() if kinds else (None,):
            for row in case.rows(by=("host", "op"), where={"kind": kind} if kind else {}):
                key = tuple(row[SHORT.get(label, label)] for label in labels)
                expected.setdefault((*((kind or "-",) if kinds else ()), *key), []).append(row)
        told = {tuple(row[label] for label in ((*("kind",) * kinds, *labels))): row for row in rows}
        assert told.keys() == expected.keys() and len(told) == len(rows)
        for key, row in told.items():
            for name, value in row.items():
                if name in (*SHOWN_BY.values(),):
                    assert value == worst(expected[key], name), (key, name)
            [counted_as] = [name for name in ("I/Os", "operations", "stored") if name in row]
            assert row[counted_as] == sum(one["count"] for one in expected[key]), key

    return check


SHORT = {"operation": "op", "event": "op", "host.name": "host"}


def rates(label: str):
    def check(case: Case, saved) -> None:
        rows = [row for row in shown_in(case, saved) if row["I/Os a second"] is not None]
        expected = {
            (row["start_ns"] // MS, row[SHORT[label]]): row["count"] * SECOND / (row["end_ns"] - row["start_ns"])
            for row in case.rows(by=(SHORT[label],))
        }
        assert {(row["@timestamp"], row[label]): row["I/Os a second"] for row in rows} == pytest.approx(expected, rel=1e-12)

    return check


def completeness(case: Case, saved) -> None:
    expected: dict[tuple, list[dict]] = {}
    for row in case.rows(by=("host", "op")):
        expected.setdefault((row["host"], row["op"], int(row["complete"])), []).append(row)
    told = {(row["host"], row["operation"], row["complete"]): row for row in shown_in(case, saved)}
    assert {key: (row["from"], row["last window"], row["I/Os that are there"]) for key, row in told.items()} == {
        key: (min(row["start_ns"] for row in of) // MS, max(row["start_ns"] for row in of) // MS, sum(row["count"] for row in of))
        for key, of in expected.items()
    }


def worst_of_hosts(case: Case, saved) -> None:
    of_host: dict[tuple, list[dict]] = {}
    for row in case.rows(by=("host", "op")):
        of_host.setdefault((row["op"], row["host"]), []).append(row)
    expected = {
        (*key, row["start_ns"] // MS): (row["p99"], row["max"], row["count"])
        for key, found in of_host.items()
        for row in sorted(found, key=lambda row: (-(row["p99"] or 0), row["end_ns"]))[:3]
    }
    rows = shown_in(case, saved)
    told = {(row["operation"], row["host"], int(row["window"])): (row["p99"], row["max"], row["I/Os"]) for row in rows}
    assert told == expected and len(told) == len(rows)


def coverage(case: Case, saved) -> None:
    """The threads and hosts that the query layer has in each window, of each kind."""
    expected = {}
    for kind in case.kinds():
        threads: dict[int, set] = {}
        for row in case.rows(by=("host", "volume", "job", "process", "tag"), where={"kind": kind} if kind else {}):
            threads.setdefault(row["start_ns"] // MS, set()).add(tuple(row[name] for name in ("host", "volume", "job")))
        for at, of in threads.items():
            expected[at, kind or "-"] = (len(of), len({host for host, *_ in of} - {"-"}) or None)
    rows = asked_rows(case.served, saved, case.served.shown)
    told = {(row["@timestamp"], row["kind"]): (row["logs"], row["hosts"]) for row in rows if row["logs"] is not None}
    assert told == expected


def whole_runs(case: Case, saved) -> None:
    expected = {}
    for run in case.runs:
        for kind in case.kinds():
            for row in case.rows(runs=(run,), step="all", by=("op",), where={"kind": kind} if kind else {}):
                numbers = {name: row[name] for name in (*(f"p{name}" for name in NAMED.split(",")), "max")}
                expected[run, kind or "-", row["op"]] = {**numbers, "I/Os": row["count"]}
    rows = asked_rows(case.served, saved, case.served.shown)
    assert {(row["run"], row["kind"], row["operation"]) for row in rows} == expected.keys() and len(rows) == len(expected)
    for row in rows:
        told = expected[row["run"], row["kind"], row["operation"]]
        assert {name: row[name] for name in told} == told


def states(case: Case, saved) -> None:
    rows = asked_rows(case.served, saved, case.served.shown)
    with open_store(case.served.sqlite) as store:
        expected = {one.run: (one.start_ns // MS, one.step_ns, len(store.sources(one.run))) for one in store.runs()}
    assert {row["run"]: (row["start"], row["stored step"], row["sources complete"]) for row in rows} == expected


def no_row(case: Case, saved) -> None:
    assert asked_rows(case.served, saved, case.served.shown) == []


def lag_table(case: Case, saved) -> None:
    no_row(case, saved) if "lag" not in case.kinds() else table_of("event")(case, saved)


LENS = {
    "cluster-latency-p99": tile("p99"),
    "cluster-latency-p99-9": tile("p99.9"),
    "cluster-latency-max": highest_of_all,
    "cluster-latency-hosts": table_of("operation", "host"),
    "cluster-latency-rate": rates("operation"),
    "cluster-latency-failed": no_row,  # some do in test_vega_behaviour.py
    "cluster-latency-incomplete": completeness,
    "hosts-and-threads-host-table": table_of("operation", "host"),
    "hosts-and-threads-host-rate": rates("host.name"),
    "hosts-and-threads-worst-hosts": worst_of_hosts,
    "hosts-and-threads-coverage": coverage,
    "compare-runs-whole-runs": whole_runs,
    "compare-runs-states": states,
    "layers-kinds": table_of("host", kinds=True),
    "snabb-timeline-events": lag_table,
}


@pytest.mark.cases(22)
@pytest.mark.slow
@pytest.mark.parametrize(("panel", "name", "which"), cases(LENS))
def test_k1_every_cell_of_a_tile_table_or_line_is_that_of_the_query(sets, panel, name, which) -> None:
    case = sets(name, which)
    [saved] = [one for one in compiled(case.served.prefix) if one.id == f"{case.served.prefix}-{panel}"]
    LENS[panel](case, saved)


def test_no_panel_is_left_out() -> None:
    panels = {one.id.removeprefix("tailboard-") for one in compiled() if one.type in ("lens", "visualization")}
    assert panels == {*PICTURES, *LENS, *ELSEWHERE}
    assert not {*PICTURES} & {*LENS}
