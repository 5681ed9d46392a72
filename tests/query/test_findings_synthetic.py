"""Runs with a known cause: that they are what docs/explanation/findings.md says, and that the story finds the cause.

The runs and the judgement are those of benchmarks/findings.py, whose figures the docs show; a few of each kind are told here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ingest.core.grid import SECOND
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.story.ground import Finding, Story
from ingest.read.sources import ReadOptions
from ingest.view.text import csv_lines
from tests.effort import figure

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, no package

from causes import CAUSES, QUIETS, made, names_of
from findings import failure, judged, rows_of
from made_runs import LENGTH, RUN

SEED = 4711  # none that anything was tuned on
KINDS = tuple(CAUSES)


def raw(run, kind: str = "") -> dict[tuple[str, int], tuple[int, float]]:
    """Return (samples, median in ns) by host and window of a second, by adding up all bins one by one."""
    rows = run.rows
    host = np.array([run.hosts.index(series.host) for series in rows.table])[rows.series]
    wanted = np.array([kind in ("", series.kind) for series in rows.table])[rows.series]
    second = np.maximum((rows.start_ns - run.start_ns) // SECOND, -1) + 1
    held = np.zeros((len(run.hosts), LENGTH + 2, rows.bins.max() + 1), np.int64)
    np.add.at(held, (host[rows.row], second[rows.row], rows.bins), rows.counts * wanted[rows.row])
    below = held.cumsum(axis=2)
    middle = (2 * below >= below[:, :, -1:]).argmax(axis=2)
    values = rows.layout.edges[middle].astype(float)
    filled = zip(*(places.tolist() for places in np.nonzero(below[:, :, -1])))
    return {(run.hosts[host], second - 1): (int(below[host, second, -1]), float(values[host, second])) for host, second in filled}


def level(rows, host: str, low: float, high: float) -> tuple[float, float]:
    """Return the mean samples a second and the median of medians of a host's whole windows between two times."""
    chosen = [rows.get((host, second), (0, np.nan)) for second in range(int(low) + 2, int(high) - 2)]
    return float(np.mean([count for count, _ in chosen])), float(np.nanmedian([middle for _, middle in chosen]))


def alone(kind: str, number: int = 0):
    run = made(f"{kind}/{number}", SEED)
    (cause,) = run.causes
    return run, cause, raw(run), next(host for host in run.hosts if host != cause.host)


def test_a_run_is_made_again_from_its_name() -> None:
    first, second, other = made("step/3", 1), made("step/3", 1), made("step/4", 1)
    assert first.causes == second.causes
    assert first.rows.counts.tolist() == second.rows.counts.tolist()
    assert first.causes != other.causes


@pytest.mark.slow
def test_stall() -> None:
    lengths = [cause.to_s - cause.from_s for number in range(3) for cause in made(f"stall/{number}", SEED).causes]
    assert all(2 <= length <= 6 for length in lengths)
    run, cause, rows, _ = alone("stall", int(np.argmax(lengths)))
    silent = range(int(np.ceil(cause.from_s)), int(cause.to_s) - 1)
    assert silent and all((cause.host, second) not in rows for second in silent)
    assert sum(rows[other, second][0] > 150 for other in run.hosts if other != cause.host for second in silent) == 3 * len(silent)
    top = run.rows.layout.edges[run.rows.bins.max()] / SECOND
    assert cause.to_s - cause.from_s - 0.1 <= top <= cause.to_s - cause.from_s + 0.1


@pytest.mark.parametrize(("kind", "rate", "slower"), [("slow member", 1, 1.5), ("throttled", 0.6, 1 / 0.6), ("imbalance", 2, 1)])
def test_throughout(kind: str, rate: float, slower: float) -> None:
    _, cause, rows, other = alone(kind)
    (count, middle), (usual, typical) = (level(rows, host, 0, LENGTH) for host in (cause.host, other))
    assert count / usual == pytest.approx(rate, rel=0.02)
    assert middle / typical == pytest.approx(slower, rel=0.06)


@pytest.mark.parametrize("number", range(2))
def test_episode_and_step(number: int) -> None:
    _, cause, rows, _ = alone("episode", number)
    host = cause.host or "host-01"
    assert level(rows, host, cause.from_s, cause.to_s)[1] / level(rows, host, 0, cause.from_s)[1] == pytest.approx(3, rel=0.2)
    _, cause, rows, _ = alone("step", number)
    host = cause.host or "host-01"
    before, after = level(rows, host, 0, cause.from_s)[1], level(rows, host, cause.from_s, LENGTH)[1]
    assert 0.3 * LENGTH <= cause.from_s <= 0.7 * LENGTH
    assert after / before == pytest.approx(1.3, rel=0.06)


@pytest.mark.slow
def test_drift_rhythm_modes_omission() -> None:
    _, cause, rows, _ = alone("drift")
    host = cause.host or "host-01"
    assert level(rows, host, 540, 600)[1] / level(rows, host, 0, 60)[1] == pytest.approx(1.36 / 1.03, rel=0.12)
    run, cause, rows, _ = alone("rhythm")
    assert 15 <= LENGTH / cause.period_s <= 40
    run, cause, _, _ = alone("modes")
    values = run.rows.layout.edges[run.rows.bins]
    second = run.rows.counts * (values > 1e6 * 8**0.5)
    late = run.rows.start_ns >= run.start_ns + (cause.from_s + 1) * SECOND
    shares = [second[chosen[run.rows.row]].sum() / run.rows.counts[chosen[run.rows.row]].sum() for chosen in (~late, late)]
    assert abs(shares[1] - shares[0]) == pytest.approx(0.2, abs=0.03)
    run, _, _, _ = alone("omission")
    response, service = (level(raw(run, kind), "host-02", 0, LENGTH)[1] for kind in ("response", "service"))
    assert response / service == pytest.approx(3, rel=0.03)
    assert any("coordinated omission:" in warning for warning in run.answer(Question()).warnings)


def small_quiet_run():
    run = made("quiet/20", SEED)
    assert len(run.hosts) <= 3
    return run


def test_quiet_runs_are_dependent_and_no_more() -> None:
    run = small_quiet_run()
    rows = raw(run)
    for host in run.hosts:
        logs = np.log([rows[host, second][1] for second in range(1, LENGTH - 1)])
        counts = [rows[host, second][0] for second in range(1, LENGTH - 1)]
        assert np.std(logs) < 0.2
        assert np.corrcoef(logs[1:], logs[:-1])[0, 1] > 0.05
        assert np.std(counts) / np.mean(counts) == pytest.approx(0.03, abs=0.01)


def told_as(run, *findings) -> Story:
    said = [
        Finding(kind, RUN, who, run.start_ns + round(low * SECOND), run.start_ns + round(high * SECOND), text, "", None, *REST)
        for kind, who, low, high, text in findings
    ]
    return Story(RUN, said, 0.0, 0.0, "", "", run.start_ns, SECOND, relative=False)


REST = (0, 0.0, 0.0, 0.0, 0.0, None, "", "", "")


@pytest.mark.parametrize(
    ("moved", "host", "kind", "counted"),
    [
        (0.0, "", "", (1, 0, 0, 0)),
        (1.9, "", "", (1, 0, 0, 0)),
        (2.1, "", "", (0, 0, 1, 0)),
        (0.0, "host-99", "", (0, 1, 0, 0)),
        (0.0, "", "episode", (0, 0, 0, 1)),
        (0.0, "", "edge", (0, 0, 0, 0)),
    ],
)
def test_judgement_of_a_stall(monkeypatch, moved: float, host: str, kind: str, counted: tuple[int, ...]) -> None:
    run = made("stall/0", SEED)
    (cause,) = run.causes
    who = (("host", host or cause.host), ("op", "read"))
    said = told_as(run, (kind or "stall", who, cause.from_s + moved, cause.to_s, ""))
    monkeypatch.setattr("findings.told", lambda _origin: said)
    result = judged(run)
    assert (sum(result.found), *map(len, (result.other_host, result.other_time, result.further))) == counted
    assert result.fails == (counted != (1, 0, 0, 0))


@pytest.mark.parametrize(("text", "found"), [("every {:.1f} s", True), ("every {:.0f} ms", False), ("often", False)])
def test_judgement_of_a_rhythm_asks_for_its_period(monkeypatch, text: str, found: bool) -> None:
    run = made("rhythm/0", SEED)
    (cause,) = run.causes
    who = (("host", cause.host),) if cause.host else ()
    said = told_as(run, ("rhythm", who, 3, 590, text.format(cause.period_s)))
    monkeypatch.setattr("findings.told", lambda _origin: said)
    assert judged(run).found == (found,)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["omission+stall/1"])
def test_in_memory_it_answers_as_its_logs_do(name: str, tmp_path: Path) -> None:
    run = made(name, SEED)
    files = Files([run.written(tmp_path)], ReadOptions(run=RUN), jobs=1)
    wanted = Wanted(parse_percentiles("50,99,100"))
    for step in (SECOND, "auto", "all"):
        question = Question(by=("host", "op"), step=step)
        answers = run.answer(question), files.answer(question)
        lines = [list(csv_lines(percentiles(answer, wanted))) for answer in answers]
        assert lines[0] == lines[1]
        assert answers[0].run_start_ns == answers[1].run_start_ns
        assert answers[0].covered == answers[1].covered


QUICK = ("throttled+stall/0", "omission+episode/0", "rhythm/0", "imbalance/0")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_known_cause_is_told(name: str) -> None:
    result = judged(made(name, SEED))
    assert not result.fails, failure(result, SEED, "")


def test_nothing_is_told_of_a_quiet_run() -> None:
    result = judged(small_quiet_run())
    assert not result.further, failure(result, SEED, "")


def test_a_host_with_a_rhythm_of_its_own_is_no_slow_member() -> None:
    result = judged(made("rhythm/0", 2146590318))
    assert not result.fails and not result.further


@pytest.mark.parametrize("kind", ["slow member", "throttled"])
def test_in_a_closed_loop_a_slow_member_is_not_taken_for_throttled(kind: str) -> None:
    """Its rate falls with its latency, and is as noisy as that of its peers."""
    result = judged(made(f"{kind}/0", SEED, closed=True))
    assert not result.fails, failure(result, SEED, " --closed")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quiet/2", "quiet/6"])
def test_a_percentile_that_goes_to_the_next_of_wide_bins_is_nothing(name: str) -> None:
    """Bins a factor of 2 wide: p99 of a host went to the next one for 10 s, which was said to be an episode."""
    result = judged(made(name, 20_261_122, coarse=6))
    assert not result.further, failure(result, 20_261_122, " --coarse 6")


@pytest.mark.soak
@pytest.mark.parametrize("kind", [*CAUSES, *QUIETS])
def test_more_runs_of_a_kind(kind: str) -> None:
    results = [judged(made(f"{kind}/{number}", SEED)) for number in range(figure(1, 3, 6))]
    assert not any(result.fails for result in results), [failure(result, SEED, "") for result in results if result.fails]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stall+drift/0", "omission/0"])
def test_logs_tell_the_same_story(name: str) -> None:
    run = made(name, SEED)
    stories = [judged(run, files=files).story.as_dict() for files in (False, True)]
    kept = [[{**finding, "command": ""} for finding in story["findings"]] for story in stories]
    assert kept[0] == kept[1]
    assert stories[0]["unexplained"] == stories[1]["unexplained"]


@pytest.mark.soak
def test_figures_of_the_docs() -> None:
    """At least 95 % of each kind, another host or time never, at most 5 of 100 quiet runs with anything."""
    results = [judged(made(name, SEED)) for some in names_of([*CAUSES, "quiet"], 20).values() for name in some]
    table = "\n".join(" | ".join(row) for row in rows_of(results, KINDS))
    for kind in KINDS:
        found = [
            named for result in results for cause, named in zip(result.causes, result.found, strict=True) if cause.kind == kind
        ]
        assert sum(found) >= 0.95 * len(found), f"{kind}\n{table}"
    assert not any(result.other_host or result.other_time for result in results), table
    quiet = [result for result in results if not result.causes]
    assert sum(bool(result.further) for result in quiet) <= 0.05 * len(quiet), table
