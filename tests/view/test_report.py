"""The report without a browser: tables add up, the embedded data hold every count, labels do nothing, nothing points outside."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.cli import run as command
from ingest.core.errors import InputError, UsageError
from ingest.core.intervals import merged
from ingest.core.labels import NOT, fits, run_matches
from ingest.core.layout import LogLinear, fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.heatmap import EVENLY
from ingest.query.overview import MOST_HOSTS, overviews, worst_windows
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question, literal
from ingest.view import vega
from ingest.view.page import packing, report
from ingest.view.page.template import page_of, runtime
from strategies import counts as drawn_counts
from strategies import layouts, made
from tests.doubles.origin import NS, SECOND, ZERO, Made, random_rows, series

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<img src=x onerror=alert(2)>",
    "\u2028'\"&{{data}}",
    "\udcff.log",
    "\u202eevil",
    "x" * 1000,
)
PANELS, OF_RUNS = {"percentiles", "tails", "heatmap", "rate", "surface", "distribution"}, {"runs", "maps", "load"}
SPECS = sorted(path.stem for path in (Path(vega.__file__).parents[2] / "kibana" / "vega").glob("*.json"))


def answer_of(rows, groups=(("read",), ("write",)), layout=NS, **words) -> Answer:
    """Return an answer of (group, window, {bin: count}) rows, in windows of a second."""
    part = made(layout, [(code, ZERO + at * SECOND, ZERO + (at + 1) * SECOND, bins) for code, at, bins in rows])
    known = {"by": ("op",), "step_ns": SECOND, "kind": "completion", "runs": ("r",), "run_start_ns": {"r": ZERO}}
    known |= {"relative": False, "series": 2}
    return Answer((merged([replace(part, table=groups)]),), **(known | words))


@pytest.fixture(scope="module")
def files(archive) -> Files:
    return Files([archive])


@pytest.fixture(scope="module")
def example(files) -> Answer:
    return files.answer(Question(by=("op",), step="auto"))


@pytest.fixture(scope="module")
def runs(files) -> list:
    return overviews(files, files.run_names, Question())


@pytest.fixture(scope="module")
def hostile() -> list:
    rows = [(series(label, label, label), at, {900 + code: 500}) for code, label in enumerate(HOSTILE) for at in range(3)]
    return Made([(replace(one, run=HOSTILE[0]), at, bins) for one, at, bins in rows], warnings=HOSTILE).overviews()


def unpacked(page: str) -> dict:
    """Return the JSON that the page's script unpacks."""
    return content_of(re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)[1])[0]


def content_of(text: str) -> tuple[dict, bytes]:
    """Return the JSON and the streams of packed text."""
    body = zlib.decompress(base64.b64decode(text))
    size = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + size]), body[4 + size :]


class Streams:
    """Reads streams one number after the other: what numbers.js does in its own way."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def take(self, count: int) -> list[int]:
        planes = self.body[self.at]
        self.at += 1
        parts = [self.body[self.at + place * count : self.at + (place + 1) * count] for place in range(planes)]
        self.at += planes * count
        return [sum(part[number] << 8 * place for place, part in enumerate(parts)) for number in range(count)]


def level_of(level: dict, streams: Streams) -> Counter:
    """Return the counts of a level by (op, kind, host, thread, start in ms, bin)."""
    rows = sum(level["rows"])
    windows, widths = streams.take(rows), streams.take(rows)
    bins, counts = streams.take(level["entries"]), streams.take(level["entries"])
    for name, present in (("maxima", "exact"), ("minima", "exact"), ("done", "weighted")):
        if level[present]:
            assert len(streams.take(rows)) == rows, name
    found: Counter = Counter()
    row = at = 0
    for key, size in zip(level["keys"], level["rows"], strict=True):
        window = 0
        for _ in range(size):
            window += windows[row]
            place = 0
            for _ in range(widths[row]):
                place += bins[at]
                start = level["origin"] + window * level["step"]
                found[key["op"], key["kind"], key["host"], key.get("thread", ""), start, place] += counts[at]
                at += 1
            row += 1
    return found


def counts_of(answer: Answer, *names: str) -> Counter:
    """Return the counts of an answer by the named labels, start in ms and bin."""
    found: Counter = Counter()
    for part in answer.parts:
        for row, code in enumerate(part.series.tolist()):
            labels = dict(zip(answer.by, part.table[code], strict=True))
            for entry in range(int(part.indptr[row]), int(part.indptr[row + 1])):
                key = (*(labels.get(name, "") for name in names), int(part.start_ns[row]) / 1e6, int(part.bins[entry]))
                found[key] += int(part.counts[entry])
    return found


@pytest.mark.slow
def test_packed_levels_hold_every_count(runs, files):
    (run,) = runs
    content, body = content_of(packing.packed({}, runs)[0])
    streams = Streams(body)
    levels = content["runs"][0]["levels"]
    cluster, hosts, threads = (level_of(levels[name], streams) for name in ("cluster", "hosts", "threads"))
    assert streams.at == len(body)
    step = run.cluster.step_ns
    for found, by in ((cluster, ("op", "kind")), (hosts, ("op", "kind", "host"))):
        asked = files.answer(Question(by=by, step=step))
        names = ("op", "kind", "host")
        assert {(*key[:3], *key[4:]): count for key, count in found.items()} == counts_of(asked, *names)
    assert sum(threads.values()) == sum(cluster.values()) == run.cluster.samples
    assert {key[3] for key in threads} == {
        f"ceph-{host} vol {volume} job {job}" for host in "abc" for volume in (0, 1) for job in (1, 2)
    }


@given(st.lists(st.integers(0, 2**63 - 1), max_size=40))
def test_planes_are_read_back(numbers):
    assert Streams(packing.planes(np.array(numbers, np.int64))).take(len(numbers)) == numbers


@pytest.mark.slow
def test_threads_that_are_too_many_have_tails():
    rows = [
        (series("read" if at % 2 else "write", f"h{job % 20}", str(job)), at, {900 + job: 150, 1200: 1})
        for job in range(40)
        for at in range(100)
    ]
    origin = Made(rows)
    (run,) = origin.overviews()
    content, body = content_of(packing.packed({}, [run])[0])
    told, streams = content["runs"][0], Streams(body)
    assert "threads" not in told["levels"]
    level_of(told["levels"]["cluster"], streams)
    hosts = level_of(told["levels"]["hosts"], streams)
    assert len({key[2] for key in hosts}) == MOST_HOSTS
    assert any("20 hosts" in note for note in run.notes)
    for step in told["tails"]["threads"]["steps"]:
        size = sum(step["rows"])
        windows, counts, p50, p99, highest, lowest = (streams.take(size) for _ in range(6))
        asked = origin.answer(Question(by=("host", "job", "op"), step=round(step["step"] * 1e6)))
        table = percentiles(asked, Wanted(parse_percentiles("50,99")))
        row = 0
        layout = content["layouts"][step["layouts"][0]]
        seen = 0
        for key, rows_of_key in zip(step["keys"], step["rows"], strict=True):
            window = 0
            for _ in range(rows_of_key):
                window += windows[row]
                start = round((step["origin"] + window * step["step"]) * 1e6)
                host, job = key["thread"].split(" job ")
                match = (table.columns["start_ns"] == start) & (table.columns["host"] == host) & (table.columns["job"] == job)
                if key["op"] != "*":
                    (at,) = np.flatnonzero(match & (table.columns["op"] == key["op"]))
                    assert counts[row] == table.columns["count"][at]
                    assert (lowest[row], highest[row]) == (table.columns["min"][at], table.columns["max"][at])
                    for bins, name in ((p50, "p50"), (p99, "p99")):
                        value = table.columns[name][at]
                        assert bins[row] == 0 if np.isnan(value) else layout["values"][bins[row] - 1] == value
                    seen += 1
                else:
                    assert counts[row] == table.columns["count"][match].sum()
                row += 1
        assert seen == len(table)
        assert {key["op"] for key in step["keys"]} == {"*", "read", "write"}


def test_full_lifts_every_limit():
    rows = [(series("read", f"h{job}", str(job)), at, {900: 150}) for job in range(20) for at in range(800)]
    (run,) = Made(rows).overviews(full=True)
    assert run.cluster.step_ns == run.hosts.step_ns == run.threads.step_ns == SECOND
    assert run.tails is None
    assert run.notes == ()
    (run,) = Made(rows).overviews()
    assert run.cluster.step_ns == 2 * SECOND
    assert run.hosts.step_ns == 4 * SECOND


@pytest.mark.slow
def test_the_page_is_coarsened_to_its_budget(monkeypatch):
    origin = Made(random_rows(5, windows=300))
    runs = origin.overviews()
    whole, notes = packing.packed({}, runs)
    assert notes == []
    monkeypatch.setattr(packing, "MOST_CHARACTERS", len(whole) * 9 // 10)
    text, notes = packing.packed({}, runs)
    assert len(text) <= len(whole) * 9 // 10
    assert re.match(r"bins by host are kept in windows of \d+ s, for the size of the page \(--full lifts that\)$", notes[0])
    content, body = content_of(text)
    streams = Streams(body)
    for name in ("cluster", "hosts", "threads"):
        assert sum(level_of(content["runs"][0]["levels"][name], streams).values()) == runs[0].cluster.samples


def test_runs_are_apart_and_share_the_windows():
    rows = [(series(run=run), at, {900: 100 + at}) for run in ("n/qd1", "n/qd8", "n/qd8/x", "n/[1]") for at in range(10)]
    runs = Made(rows).overviews()
    assert [run.run for run in runs] == ["n/[1]", "n/qd1", "n/qd8", "n/qd8/x"]
    assert all(run.cluster.samples == sum(range(100, 110)) for run in runs)
    assert all(run.reach == (ZERO, ZERO + 10 * SECOND) for run in runs)
    assert packing.short_names([run.run for run in runs]) == ["[1]", "qd1", "qd8", "qd8/x"]
    (together,) = Made(rows).overviews(merge_runs=True)
    assert together.cluster.samples == 4 * sum(range(100, 110))
    assert [run.run for run in Made(rows).overviews(runs=("n/qd*",))] == ["n/qd1", "n/qd8", "n/qd8/x"]
    with pytest.raises(InputError, match="no run matches z"):
        Made(rows).overviews(runs=("z",))


def test_a_literal_glob_matches_itself_alone():
    from fnmatch import fnmatchcase

    for name in ("a*b", "a[1]?", "plain", "[!x]"):
        assert fnmatchcase(name, literal(name))
    assert not fnmatchcase("axb", literal("a*b"))
    for name, others in {"!a": ("a", "b", "[!]a"), "!!": ("!", "b"), "!a*[": ("!ab[", "a*[")}.items():  # where ! alone leaves out
        assert fits(name, literal(name)) and run_matches(name, [literal(name)])
        assert not any(fits(other, literal(name)) or run_matches(other, [literal(name)]) for other in others)
        assert not fits(name, NOT + literal(name)) and fits("b", NOT + literal(name))


@pytest.mark.slow
def test_d9_worst_windows_are_those_of_a_slow_count():
    """Ranked by what every single sample lies above the percentile of all samples, added up one by one."""
    rows = random_rows(11)
    answer = Made(rows).answer(Question(by=("host", "op"), step=2 * SECOND))
    for text in ("50", "99", "99.9"):
        (wanted,) = parse_percentiles(text)
        windows: dict[int, list[tuple[int, str]]] = {}
        for one, at, bins in rows:
            start = (ZERO + at * SECOND) // (2 * SECOND) * 2 * SECOND
            samples = [(int(NS.values[place]), one.host) for place, count in bins.items() for _ in range(count)]
            windows.setdefault(start, []).extend(samples)
        every = sorted(value for found in windows.values() for value, _ in found)
        usual = every[-(-round(float(text) * 10) * len(every) // 1000) - 1]
        expected = []
        for start, found in windows.items():
            makers: Counter = Counter()
            for value, host in found:
                makers[host] += max(0, value - usual)
            ranked = sorted(value for value, _ in found)
            carried = float(text) <= 50 or len(found) * (1000 - round(float(text) * 10)) >= 1000
            own = ranked[-(-round(float(text) * 10) * len(found) // 1000) - 1] if carried else None
            shares = sorted(((host, above) for host, above in makers.items() if above), key=lambda pair: (-pair[1], pair[0]))
            if shares:
                expected.append((-sum(makers.values()), start, len(found), own, shares))
        told = [
            (-w.excess_ns, w.start_ns, w.samples, w.value_ns, list(w.makers)) for w in worst_windows(answer, "host", wanted, 7)
        ]
        assert told == sorted(expected)[:7]


def per_window(columns: dict) -> Counter:
    """Return the samples of each (t, group)."""
    found: Counter = Counter()
    for t, group, count in zip(columns["t"], columns["group"], columns["c"], strict=True):
        found[t, group] += count
    return found


def test_cells_hold_every_sample_once(example, fio):
    for answer in (example, Files([fio / "randrw"]).answer(Question(by=("op",)))):
        columns = vega.cells(answer)
        assert sum(columns["c"]) == answer.samples > 0
        wanted = Counter()
        for part in answer.parts:
            for row, samples in enumerate(part.samples):
                wanted[int(part.start_ns[row]) // vega.MS, part.table[part.series[row]][0]] += int(samples)
        assert per_window(columns) == wanted
        assert all(type(t) is int for t in columns["t"])


def test_cells_are_the_bins_between_their_edges(example):
    (part,) = example.parts
    edges = set(part.layout.edges.tolist())
    inside = {}
    for (op, start, place), count in counts_of(example, "op").items():
        inside.setdefault((start, op), []).append((int(part.layout.values[place]), count))
    cells = vega.cells(example)
    for t, group, lower, upper, count in zip(*(cells[name] for name in ("t", "group", "lower", "upper", "c")), strict=True):
        assert {lower, upper} <= edges
        assert count == sum(found for value, found in inside[t, group] if lower <= value < upper)


@given(layouts, st.integers(1, 1855))
def test_rows_nest_in_the_bins(layout, bins):
    for bounded in (layout, replace(layout, fine=min(bins, layout.fine))):
        rows = bounded.coarser(8)
        assert bounded.nests_in(rows)
        assert rows.open_ended == bounded.open_ended
        assert rows.index(bounded.edges[-2:-1])[0] == rows.bins - 1


def test_rows_are_8_an_octave():
    for layout in (NS, fio_layout(19, 1000), LogLinear(1024, 1024 * 25, 1000, reports="highest")):
        edges = layout.coarser(8).edges
        upper = edges[edges >= 1 << 20]
        assert (upper[8:] == 2 * upper[:-8]).all()


def test_last_bin_is_marked_open():
    answer = answer_of([(0, 0, {5: 1, 1855: 2, 1854: 4})])
    assert vega.cells(answer)["open"] == [0, 1]
    assert vega.cells(answer)["c"] == [1, 6]
    assert vega.points(answer, parse_percentiles("50,100"))["open"] == [0, 1]
    assert vega.curve(answer)["open"] == [0, 0, 0, 1]


def test_unlike_layouts_share_the_rows():
    slow = answer_of([(0, 0, {700: 3})], (("read",),)).parts[0]
    other = answer_of([(0, 0, {300: 4})], (("write",),), fio_layout(19, 1000, 2)).parts[0]
    answer = replace(answer_of([(0, 0, {1: 1})]), parts=(slow, other))
    cells = vega.cells(answer)
    assert sum(cells["c"]) == pytest.approx(7)  # spread evenly within their bins
    assert set(cells["group"]) == {"read", "write"}
    rows = EVENLY.coarser(8)
    assert {*cells["lower"], *cells["upper"]} <= set(rows.edges.tolist())


def test_points_are_what_the_query_answers(example):
    wanted = parse_percentiles("50,99.9")
    table = percentiles(example, Wanted(wanted))
    points = vega.points(example, wanted)
    expected = {
        (int(t) // vega.MS, f"{op} {name}"): value
        for name in ("p50", "p99.9")
        for t, op, value in zip(table.columns["start_ns"], table.columns["op"], table.columns[name], strict=True)
        if not np.isnan(value)
    }
    assert dict(zip(zip(points["t"], points["label"], strict=True), points["v"], strict=True)) == expected


def test_the_curve_is_a_step_at_every_bin():
    answer = answer_of([(0, 0, {10: 90, 20: 9, 40: 1}), (1, 0, {30: 2})])
    curve = vega.curve(answer)
    assert curve["label"] == ["read"] * 4 + ["write"] * 2
    assert [round(x, 9) for x in curve["x"]] == [1, 10, 100, 100, 1, 2]
    assert curve["v"] == [10, 10, 20, 40, 30, 30]
    assert curve["cum"] == [0, 90, 99, 100, 0, 2]


def test_gaps_are_windows_of_no_group():
    answer = answer_of([(0, 0, {9: 1}), (1, 1, {9: 1}), (0, 4, {9: 1})])
    assert vega.gaps(answer) == {
        "t": [ZERO // vega.MS + 2000, ZERO // vega.MS + 3000],
        "t2": [ZERO // vega.MS + 3000, ZERO // vega.MS + 4000],
    }


def test_groups_never_share_a_name():
    answer = answer_of([(0, 0, {1: 1}), (1, 0, {1: 1})], (("a, b", "c"), ("a", "b, c")), by=("op", "host"))
    names = vega.group_names(answer)
    assert len(set(names.values())) == 2
    assert set(vega.cells(answer)["group"]) == set(names.values())


@given(st.dictionaries(st.integers(0, 1855), drawn_counts, min_size=1, max_size=8))
def test_cells_add_up_whatever_the_bins(bins):
    assert sum(vega.cells(answer_of([(0, 0, bins)]))["c"]) == sum(bins.values())


@pytest.mark.parametrize("name", SPECS)
def test_specs_hold_no_data(name):
    spec = vega.spec(name)
    holes = [entry["name"] for entry in spec["data"] if entry.keys() == {"name"}]
    assert holes
    assert set(holes) <= {
        "points",
        "cells",
        "gaps",
        "whole",
        "rows",
        "thin",
        "late",
        "marks",
        "facets",
        "lines",
        "capacities",
        "told",
    }
    assert not any(entry.get("values") or "url" in entry for entry in spec["data"])
    for entry in spec["data"]:
        empty = entry.get("values") == []  # filled by Kibana alone
        assert empty or entry["name"] in holes or "source" in entry or entry["transform"][0]["type"] == "sequence"
    assert spec["$schema"] == "https://vega.github.io/schema/vega/v5.json"


def test_a_missing_table_is_an_error():
    with pytest.raises(KeyError):
        vega.with_values(vega.spec("heatmap"), {"points": {}})


def test_page_holds_the_facts(runs):
    pytest.importorskip("vl_convert")
    facts = [("Hosts", "ceph-a, ceph-b"), ("Checked", "one"), ("Checked", "two")]
    marks = [{"run": "r", "at_ns": ZERO, "text": "osd.3 down"}]
    page = page_of(report.parts_of(runs, facts, marks, ("op",), 5_000_000))
    content = unpacked(page)
    assert content["marks"] == [{"run": "r", "t": ZERO / 1e6, "text": "osd.3 down"}]
    assert content["state"]["sla"] == "5"
    assert content["state"]["by"] == "op"
    assert set(content["specs"]) == PANELS
    assert f"<dd>{runs[0].cluster.samples:,}</dd>" in page
    assert "<dt>Hosts</dt><dd>ceph-a, ceph-b</dd>" in page
    assert "<dt>Checked</dt><dd>one</dd><dd>two</dd>" in page
    assert "2026-11-20 21:00:04 to 21:01:20 UTC" in page
    assert "all 12 threads report in 73 of 76 windows of 1 s; the fewest are 8, 30.5 s after the start" in page
    assert "64 an octave, 1,856 in all" in page
    assert "p99.99 of write rests on 1 sample beyond it" in page
    assert "{{" not in re.sub(r"(?s)<script.*?</script>", "", page)
    assert page == page_of(report.parts_of(runs, facts, marks, ("op",), 5_000_000))


def test_files_that_are_read_twice_are_counted_once(runs, files):
    facts = dict(files.facts(replace(runs[0].cluster)))
    assert facts["Sources"] == "12 files, 1,777 rows"


def test_lines_are_by_host_where_there_are_a_few(runs):
    assert report.first_state(runs, (), 0)["by"] == "host"
    assert report.first_state(runs, ("op",), 0)["by"] == "op"
    assert report.first_state(Made(random_rows(1, 4, hosts=1)).overviews(), (), 0)["by"] == "op"
    (run,) = Made(random_rows(1, 4)).overviews("job")
    assert report.first_state([run], ("job",), 0)["by"] == "extra"
    assert run.extra == ("job",)


def test_coverage_tells_where_threads_are_missing():
    rows = [
        (series(job=str(job)), at, {900: 10}) for job in range(4) for at in range(10) if not (job == 2 and at == 7) and at != 5
    ]
    told = dict(report.facts_of(Made(rows).overviews()))["Coverage"]
    assert told == "all 4 threads report in 8 of 10 windows of 1 s; 1 have none"
    rows = [row for row in rows if row[1] != 5] + [(series(job=str(job)), 5, {900: 1}) for job in range(4)]
    told = dict(report.facts_of(Made(rows).overviews()))["Coverage"]
    assert told == "all 4 threads report in 9 of 10 windows of 1 s; the fewest are 3, 7.0 s after the start"


def test_summary_is_that_of_the_whole_range(runs, files):
    pytest.importorskip("vl_convert")
    page = page_of(report.parts_of(runs))
    whole = percentiles(files.answer(Question(by=("op",), step="all")), Wanted(parse_percentiles("99")))
    for op, count, value in zip(whole.columns["op"], whole.columns["count"], whole.columns["p99"], strict=True):
        row = re.search(rf'<th scope="row">{op}</th>(.*?)</tr>', page)[1]
        assert f"<td>{count:,}</td>" in row
        assert f"<td>{value / 1e6:.1f} ms</td>" in row


def test_labels_do_nothing(hostile):
    pytest.importorskip("vl_convert")
    page = page_of(report.parts_of(hostile, [(HOSTILE[0], HOSTILE[1])], [{"at_ns": ZERO, "text": HOSTILE[0]}], ("op", "host")))
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script", page)) == 3
    assert "<!--" not in page
    assert "<img" not in re.sub(r"(?s)<script>.*?</script>", "", page)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert "{{data}}" in page
    assert "\\xff.log" in page
    assert page.encode("utf-8")
    keys = unpacked(page)["runs"][0]["levels"]["hosts"]["keys"]
    assert {key["host"] for key in keys} == {vega.printable(label) for label in HOSTILE}


def test_page_points_nowhere(runs):
    pytest.importorskip("vl_convert")
    page = page_of(report.parts_of(runs))
    outside = re.sub(r"(?s)<script>.*?</script>", "", page)
    assert not re.findall(r"https?://", outside)
    assert not re.findall(r"\b(?:src|href|action|srcset|poster)\s*=", outside)
    assert not re.findall(r"url\(|@import", outside)
    assert "$schema" not in json.dumps(unpacked(page)["specs"])


def test_policy_names_both_scripts_and_no_eval(runs):
    pytest.importorskip("vl_convert")
    page = page_of(report.parts_of(runs))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"(?s)<script>(.*?)</script>", page)
    assert len(scripts) == 2
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
        assert "\r" not in script


def test_relative_times_have_no_clock():
    pytest.importorskip("vl_convert")
    page = page_of(report.parts_of(Made(random_rows(2, 5), relative=True, zero=0).overviews()))
    assert 'name="clock"' not in page
    assert unpacked(page)["state"]["clock"] == "elapsed"
    assert "the start of the run is not known" in page


def test_several_runs_have_a_load_curve():
    pytest.importorskip("vl_convert")
    rows = [(series(run=run), at, {900: 100}) for run in ("a", "b") for at in range(5)]
    page = page_of(report.parts_of(Made(rows).overviews()))
    assert set(unpacked(page)["specs"]) == PANELS | OF_RUNS
    assert 'id="load"' in page
    assert [run["seconds"] for run in unpacked(page)["runs"]] == [5, 5]
    assert 'id="load"' not in page_of(report.parts_of(Made(rows[:5]).overviews()))


def test_one_window_of_the_whole_range(files):
    pytest.importorskip("vl_convert")
    page = page_of(report.parts_of(overviews(files, files.run_names, Question(step="all"))))
    assert "the whole range" in page
    level = unpacked(page)["runs"][0]["levels"]["cluster"]
    assert level["windows"] == 1


def test_without_the_runtime_it_says_what_to_install(runs, monkeypatch):
    runtime.cache_clear()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"pip install vl-convert-python"):
        page_of(report.parts_of(runs))


def test_the_lead_counts_operations_once(tmp_path: Path) -> None:
    """fio logs completion and total latency of each I/O: 1,380 samples was twice as many as there were I/Os."""
    pytest.importorskip("vl_convert")
    logs = Path(__file__).parents[1] / "data" / "fio" / "coarse-3"
    assert command(["report", str(logs), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "completion, total latency, 690 samples each in 3 s" in page
    assert "<dd>completion 690, total 690</dd>" in page


@pytest.mark.parametrize(
    ("number", "listed"),
    [("1 row rejected: odd (a.log:2)", True), ("2,000 rows repaired: odd", True), ("the rows rejected: none", False)],
)
def test_the_page_lists_one_row_that_was_rejected_as_it_does_many(files: Files, number: str, listed: bool) -> None:
    runs = overviews(files, files.run_names, Question())
    told = [replace(run, cluster=replace(run.cluster, warnings=(number, "all is well"))) for run in runs]
    assert dict(report.facts_of(told))["Repairs and rejects"] == (number if listed else "none")
