"""Sampled events in the report: its panels say the numbers of `percentiles`, where events of unlike rates come together and where not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ingest.core.labels import THREAD, Series
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.heatmap import heatmap
from ingest.query.lags import asked_weighed
from ingest.query.overview import overviews, thread_name, worst_windows
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from tests.doubles.origin import NS, SECOND, ZERO, Made
from tests.view.page import answered, cells_of, choose, drawn, drawn_cells, keyed, rows_of

TIMELINE = Path(__file__).parents[1] / "data" / "snabb" / "cut" / "real.timeline.xz"
WEIGHED = "one of rate r counts 5^(9-r) times."
RARE, OFTEN = 5**6, 5**4


def rates_of(answer: Answer) -> dict:
    table = percentiles(answer, Wanted(())).columns
    groups = zip(*(table[name] for name in answer.by), strict=True) if answer.by else [()] * len(table["count"])
    return {
        (int(t) // 1_000_000, "|".join(group) or "all"): rate
        for t, group, rate in zip(table["start_ns"], groups, table["rate"], strict=True)
    }


def lag(op: str, tag: str, host: str = "h") -> Series:
    return Series(run="r", host=host, op=op, kind="lag", tag=tag)


@pytest.fixture(scope="module")
def timeline() -> Files:
    return Files([TIMELINE])


@pytest.mark.slow
def test_a_recorded_timeline_says_what_percentiles_says(opened, timeline: Files):
    runs = overviews(timeline, timeline.run_names, Question())
    step = runs[0].cluster.step_ns
    asked = {by: asked_weighed(timeline.answer, Question(by=(by,) if by else (), step=step)) for by in ("", "op")}
    whole = asked_weighed(timeline.answer, Question(step="all"))
    with opened(runs, by=("op",)) as page:
        for by in ("op", ""):
            choose(page, "by", by)
            for percentile in ("50", "99", "99.9"):
                choose(page, "p", percentile)
                assert drawn(page) == answered(asked[by], percentile), (by, percentile)
            assert keyed(rows_of(page, "rate"), "t", "label") == pytest.approx(rates_of(asked[by]))
            assert f"All events, stored or not: {WEIGHED}" in page.locator("#rate-says").inner_text()
            assert (f"Events of unlike rates: {WEIGHED}" in page.locator("#percentiles-says").inner_text()) == (by == "")
        assert drawn(page, "heatmap") == answered(asked[""], "99.9")
        events = int(heatmap(asked[""]).columns["count"].sum())
        assert sum(cell["c"] for cell in cells_of(page)) == events > 8e8
        assert f"Events of unlike rates: {WEIGHED}" in page.locator("#heatmap-says").inner_text()
        whole_told = percentiles(whole, Wanted(parse_percentiles("99.9"))).columns["p99.9"][0]
        assert [row["v"] for row in rows_of(page, "percentiles", "whole")] == [whole_told]
        choose(page, "op", "packet.packet_freed")
        (stored,) = [
            int(part.counts.sum()) for part in timeline.answer(Question(where={"op": "packet.packet_freed"}, step="all")).parts
        ]
        assert sum(cell["c"] for cell in cells_of(page)) == stored
        assert WEIGHED not in page.locator("#heatmap-says").inner_text()


@pytest.mark.slow
def test_threads_of_a_recorded_timeline_are_what_percentiles_says(opened, timeline: Files):
    runs = overviews(timeline, timeline.run_names, Question())
    assert runs[0].thread_tails is not None, "more threads than the page has bins of"
    with opened(runs, by=("op",)) as page:
        for tail, percentile in (("50", "50"), ("99", "99"), ("100", "100")):
            choose(page, "tail", tail)
            shown = page.evaluate("tailboard.views.threads.signal('what')")
            assert shown == {"50": "p50", "99": "max", "100": "max"}[tail], "most windows are too small for p99"
            percentile = "100" if shown == "max" else percentile
            cells = rows_of(page, "threads")
            (wide,) = {cell["t2"] - cell["t"] for cell in cells}
            answer = asked_weighed(timeline.answer, Question(by=THREAD, step=int(wide * 1_000_000)))
            wanted = {(t, thread_name(tuple(label.split("|")))): v for (t, label), v in answered(answer, percentile).items()}
            assert keyed(cells, "t", "row") == wanted
            assert len(wanted) > 20


def made() -> Made:
    """Two events of unlike rates on two hosts: the rare one is slow."""
    rows = [(lag("rare", "3,3 after x"), at, {1200: 3 + at, 1300: 2}) for at in range(3)]
    rows += [(lag("often", "1,5 after y", host), at, {900: 150 + at, 1000: 20}) for at in range(3) for host in ("h", "other")]
    return Made(rows)


@pytest.mark.slow
def test_each_event_counts_by_its_weight_and_what_was_stored_decides_what_is_carried(opened):
    origin = made()
    with opened(origin.overviews(), by=("op",)) as page:
        choose(page, "by", "")
        for at in range(3):
            events = Counter({1200: RARE * (3 + at), 1300: RARE * 2, 900: 2 * OFTEN * (150 + at), 1000: 2 * OFTEN * 20})
            stored, total = 3 + at + 2 + 2 * (150 + at + 20), sum(events.values())
            for percentile, value in (("50", 50), ("90", 90), ("99", 99)):
                choose(page, "p", percentile)
                rank, passed = -(-total * value // 100), 0
                for place in sorted(events):
                    passed += events[place]
                    if passed >= rank:
                        break
                assert drawn(page)[ZERO // 1_000_000 + 1000 * at, f"p{percentile}"] == NS.values[place]
            (row,) = [row for row in rows_of(page, "percentiles") if row["t"] == ZERO / 1e6 + 1000 * at]
            assert row["n"] == stored
            cells = [cell for cell in cells_of(page) if cell["t"] == ZERO / 1e6 + 1000 * at]
            assert sorted(cell["c"] for cell in cells) == sorted(events.values())
            (rate,) = [row["v"] for row in rows_of(page, "rate") if row["t"] == ZERO / 1e6 + 1000 * at]
            assert rate == total
        choose(page, "p", "99.9")
        assert drawn(page) == {}, "345 were stored, whatever they stand for"
        choose(page, "p", "99")
        wanted = worst_windows(
            asked_weighed(origin.answer, Question(by=("host",), step=SECOND)), "host", parse_percentiles("99")[0], 8
        )
        shown = [[cell.inner_text() for cell in line.locator("td").all()] for line in page.locator("#worst-rows tr").all()]
        assert [cells[3] for cells in shown] == [str(one.samples) for one in wanted]
        assert all(cells[5].startswith("h 9") for cells in shown)
        assert len(wanted) > 0
        choose(page, "op", "often")
        assert sorted({cell["c"] for cell in cells_of(page)}) == [40, 300, 302, 304]


@pytest.mark.slow
def test_hosts_that_are_too_many_for_bins_are_weighed_too(opened):
    rows = [
        (lag(op, tag, f"h{host:02}"), at, {900 + 20 * host: many, 1300: 5})
        for host in range(20)
        for at in range(3)
        for op, tag, many in (("rare", "3,3 after x", 10 + host), ("often", "1,5 after y", 60 + 3 * host))
    ]
    origin = Made(rows)
    answer = asked_weighed(origin.answer, Question(by=("host",), step=SECOND))
    with opened(origin.overviews(), by=("op",)) as page:
        for tail, percentile in (("99", "99"), ("50", "50")):
            choose(page, "tail", tail)
            assert keyed(rows_of(page, "hosts"), "t", "row") == answered(answer, percentile)
        choose(page, "tail", "99")
        wanted = answered(answer, "99")
        assert 0 < len(wanted) < 60, "what was stored decides which windows carry p99"
        thin = {(row["t"], row["row"]) for row in rows_of(page, "hosts", "thin")}
        assert thin == set(answered(answer, "100")) - set(wanted)


def test_makers_of_unlike_rates_are_told_in_events():
    rows = [
        (lag("rare", "3,3 after x", "a"), 0, {1200: 1, 1300: 100}),
        (lag("often", "1,5 after y", "b"), 0, {1300: 300, 1400: 1}),
    ]
    answer = asked_weighed(Made(rows).answer, Question(by=("host", "op"), step=SECOND))
    (window,) = worst_windows(answer, "host", parse_percentiles("50")[0])
    assert window.samples == 402
    assert dict(window.makers) == {"b": OFTEN * int(NS.values[1400] - NS.values[1300])}, "the median is of bin 1300"
    (window,) = worst_windows(answer, "host", parse_percentiles("99.9")[0])
    assert window.value_ns is None, "402 were stored, whatever they stand for"


@pytest.mark.slow
def test_a_run_of_other_kinds_keeps_its_counts():
    rows = [(lag("rare", "3,3 after x"), 0, {1200: 4}), (Series(run="r", op="read", kind="completion"), 0, {900: 7})]
    (run,) = Made(rows).overviews(where={"kind": "*"})
    counts = {
        part.table[code]: int(part.take(np.array([row])).counts.sum())
        for part in run.cluster.parts
        for row, code in enumerate(part.series)
    }
    assert counts == {("rare", "lag"): 4, ("read", "completion"): 7}
    assert run.cluster.weights == {("rare", "lag"): RARE, ("read", "completion"): 1}


@pytest.mark.slow
def test_the_heat_map_says_that_no_window_has_samples_enough_not_that_it_shows_nothing(opened):
    origin = Made([(Series(run="r", op="read", kind="completion"), at, {900: 20, 1000: 5}) for at in range(4)])
    with opened(origin.overviews()) as page:
        says = page.locator("#heatmap-says").inner_text()
        assert says == "No window has enough samples for p99. Windows of 1 s."
        assert len(drawn_cells(page)) == 8
        choose(page, "p", "50")
        assert page.locator("#heatmap-says").inner_text() == "The line is p50; windows of 1 s."


@pytest.mark.slow
def test_threads_that_are_too_many_for_bins_say_so_too(opened):
    rows = [
        (Series(run="r", op="read", kind="completion", job=str(job)), at, {900 + job: 30}) for at in range(3) for job in range(20)
    ]
    with opened(Made(rows).overviews(), by=("op",)) as page:
        choose(page, "by", "thread")
        says = page.locator("#percentiles-says").inner_text()
        assert "Of 20 threads the page holds p50, p99 and max: max of the 8 worst." in says
        choose(page, "tail", "50")
        assert np.isfinite([row["v"] for row in rows_of(page, "percentiles")]).all()
        assert page.locator("#percentiles-says").inner_text().startswith("Highest: ")
