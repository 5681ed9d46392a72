"""Episodes in the report, in a real Chromium: bands where the episodes are, a table of those in view, names that do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.store import open_store
from tests.browsing import shown
from tests.store.grounds import SqliteGround, loaded
from tests.view.page import HOSTILE, choose, items_of, rows_of, settle

ROOT = Path(__file__).parents[2]
EXAMPLE, SLA = ROOT / "examples" / "cbt-archive", ROOT / "examples" / "SLA.yml"
MS = 1_000_000


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The example in a store that keeps its episodes, and its report."""
    folder = tmp_path_factory.mktemp("episodes")
    ground = SqliteGround(folder)
    loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
    assert command(["check", str(SLA), ground.url, "--record", "--format", "csv"]) == 1
    assert command(["report", ground.url, "-o", str(folder / "report.html")]) == 0
    with open_store(ground.url) as store:
        return folder / "report.html", store.episodes([record.run for record in store.runs()])


def table_of(page) -> list[list[str]]:
    return page.eval_on_selector_all("#episodes-rows tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")


@pytest.mark.slow
def test_bands_lie_where_the_episodes_are(browser, kept) -> None:
    path, episodes = kept
    with shown(browser, path) as page:
        rows = rows_of(page, "percentiles", "episodes")
        assert [(row["objective"], row["t"], row["t2"]) for row in rows] == [
            (one.objective, one.start_ns // MS, one.end_ns // MS) for one in episodes
        ]
        bands = items_of(page, "percentiles", "violated")
        first, last = episodes[1], episodes[-1]
        edges = [first.start_ns // MS, last.end_ns // MS]
        low, high = page.evaluate("times => times.map(tailboard.views.percentiles.scale('x'))", edges)
        slope = (high - low) / (edges[1] - edges[0])
        assert slope > 0
        for band in bands:
            t, t2 = band["datum"]["t"], band["datum"]["t2"]
            assert band["x"] == pytest.approx(low + slope * (t - edges[0]), abs=0.01)
            assert band["width"] == pytest.approx(slope * (t2 - t), abs=0.01)
        lanes = {(row["lane"], row["t"]) for row in rows}
        assert len(lanes) == len(rows)


@pytest.mark.slow
def test_the_table_follows_filters_zoom_and_clock(browser, kept) -> None:
    path, episodes = kept
    with shown(browser, path) as page:
        assert [row[0] for row in table_of(page)] == [one.objective for one in episodes]
        (stall,) = [row for row in table_of(page) if row[0] == "no stall"]
        assert stall == [
            "no stall",
            "host ceph-b",
            "p100 at most 1.00s in 1s",
            "21:00:35 – 21:00:39 UTC",
            "4s",
            "4.01s",
            "213",
            "ceph-b",
            "ended",
        ]
        choose(page, "host", "ceph-b")
        assert {row[1] for row in table_of(page)} == {"host ceph-b", "all"}
        choose(page, "clock", "elapsed")
        (stall,) = [row for row in table_of(page) if row[0] == "no stall"]
        assert stall[3].endswith("s elapsed")
        choose(page, "from", "40")
        assert "no stall" not in {row[0] for row in table_of(page)}
        assert {row["objective"] for row in rows_of(page, "percentiles", "episodes")} == {row[0] for row in table_of(page)}


@pytest.mark.slow
def test_files_are_judged_for_the_page_and_the_table_needs_no_script(tmp_path: Path, browser, kept) -> None:
    _, episodes = kept
    path = tmp_path / "report.html"
    assert command(["report", str(EXAMPLE), "--objectives", str(SLA), "-o", str(path)]) == 0
    window = browser.new_context(java_script_enabled=False)
    page = window.new_page()
    page.goto(path.as_uri())
    cells = page.locator("#episodes-rows tr").all_inner_texts()
    window.close()
    assert len(cells) == len(episodes)
    assert any("no stall" in text and "21:00:35 to 21:00:39 UTC" in text and "4.01s" in text for text in cells)


@pytest.mark.slow
def test_names_do_nothing_but_stand_there(tmp_path: Path, browser) -> None:
    path, sla = tmp_path / "report.html", tmp_path / "SLA.yml"
    names = [name[:150] for name in HOSTILE if name.isprintable()]
    quoted = ["'" + name.replace("'", "''") + "'" for name in names]
    lines = [f"  - {{name: {name}, percentile: 99, threshold: 1us, window: 10s, by: [host]}}" for name in quoted]
    sla.write_text("\n".join(["objectives:", *lines, ""]))
    assert command(["report", str(EXAMPLE), "--objectives", str(sla), "-o", str(path)]) == 0
    with shown(browser, path) as page:
        settle(page)
        assert {row[0] for row in table_of(page)} == set(names)
        assert page.evaluate("() => typeof hacked") == "undefined"


@pytest.mark.slow
def test_a_report_without_episodes_has_no_section(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert command(["report", str(EXAMPLE), "-o", str(path)]) == 0
    assert 'id="episodes"' not in path.read_text()
