"""Runs with a known cause: that they are what docs/explanation/findings.md says, and that the story finds the cause.

The runs and the judgement are those of benchmarks/findings.py, whose figures the docs show; a few of each kind are told here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ingest import Files, Question, ReadOptions, Wanted, parse_percentiles, percentiles
from ingest.core.grid import SECOND
from ingest.query.findings.model import Finding, Story
from ingest.view.text import csv_lines

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, no package

from causes import CAUSES, QUIETS, made
from findings import judged
from made_runs import LENGTH, RUN

SEED = 4711  # none that anything was tuned on
KINDS = tuple(CAUSES)


def raw(run, kind: str = "") -> dict[tuple[str, int], tuple[int, float]]:
    """Return (samples, median in ns) by host and window of a second, read off the bins one by one."""
    middles = (run.rows.layout.edges[:-1] + run.rows.layout.edges[1:]) / 2
    by_host: dict[tuple[str, int], list[np.ndarray]] = {}
    for number, code in enumerate(run.rows.series.tolist()):
        series = run.rows.table[code]
        if kind in ("", series.kind):
            begin, end = run.rows.indptr[number : number + 2]
            second = int((run.rows.start_ns[number] - run.start_ns) // SECOND)
            took = np.repeat(middles[run.rows.bins[begin:end]], run.rows.counts[begin:end])
            by_host.setdefault((series.host, max(second, -1)), []).append(took)
    return {key: (sum(map(len, parts)), float(np.median(np.concatenate(parts)))) for key, parts in by_host.items()}


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


def test_quiet_runs_are_dependent_and_no_more() -> None:
    runs = [made(f"quiet/{number}", SEED) for number in range(3)]
    assert len({len(run.hosts) for run in runs}) > 1
    run = min(runs, key=lambda run: len(run.hosts))
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


@pytest.mark.parametrize("name", ["stall+rhythm/0", "omission/1"])
def test_in_memory_it_answers_as_its_logs_do(name: str, tmp_path: Path) -> None:
    run = made(name, SEED)
    files = Files([run.written(tmp_path)], ReadOptions(run=RUN), jobs=1)
    wanted = Wanted(parse_percentiles("50,99,100"))
    for step in (SECOND, 10 * SECOND, "auto", "all"):
        question = Question(by=("host", "op"), step=step)
        answers = run.answer(question), files.answer(question)
        lines = [list(csv_lines(percentiles(answer, wanted))) for answer in answers]
        assert lines[0] == lines[1]
        assert answers[0].run_start_ns == answers[1].run_start_ns
        assert answers[0].covered == answers[1].covered
