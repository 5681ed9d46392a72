"""Several runs of fio that wrote logs of the same names: a log is of the run that wrote it last, and no I/O of another is lost.

The runs of today are recordings; the earlier ones are made of them: the same JSON, moved back in time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.core.grid import SECOND
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.fio import runs
from ingest.store import open_store
from tests.store.grounds import FIO, SqliteGround, loaded

MINUTE = 60_000
Change = Callable[[dict[str, Any]], None]


def before(folder: Path, name: str, source: str, change: Change = lambda _: None, *, ms: int = MINUTE) -> dict[str, Any]:
    """Write the JSON of a run that ended so much earlier; return it."""
    document = json.loads((FIO / source / "a.json").read_text())
    document["timestamp_ms"] -= ms
    document["timestamp"] = document["timestamp_ms"] // 1000
    change(document)
    (folder / name).write_text(json.dumps(document))
    return document


def logs_of(folder: Path, source: str, kind: str = "clat_hist") -> None:
    shutil.copy(FIO / source / "a.json", folder / "new.json")
    for log in (FIO / source).glob(f"*_{kind}.*"):
        shutil.copy(log, folder)


def completions(document: dict[str, Any], *jobs: int) -> int:
    chosen = [document["jobs"][number] for number in jobs] if jobs else document["jobs"]
    return sum(job[op]["clat_ns"]["N"] for job in chosen for op in ("read", "write"))


def without_bins(document: dict[str, Any]) -> None:
    for job in document["jobs"]:
        for op in ("read", "write", "trim"):
            job[op]["clat_ns"].pop("bins", None)


def told(answer: Answer) -> tuple[int, bool, str]:
    """How many samples, whether nothing is missing, and what is said."""
    table = percentiles(answer, Wanted(parse_percentiles("50")))
    return sum(table.columns["count"].tolist()), not answer.missing, " | ".join(map(str, (*answer.warnings, *answer.caveats)))


def asked(folder: Path) -> tuple[int, bool, str]:
    """The same of files and of a store."""
    question = Question(step="all", where={"kind": "completion"})
    files = told(Files([folder]).answer(question))
    ground = SqliteGround(folder.parent)
    loaded(ground.url, [folder], run=folder.name)
    with open_store(ground.url) as store:
        assert told(store.answer(question))[:2] == files[:2]
    return files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "logs"
    found.mkdir()
    return found


def test_an_earlier_run_whose_logs_were_overwritten_is_counted_by_its_own_histogram(folder: Path) -> None:
    """Its I/Os were in no number, and nothing said so."""
    logs_of(folder, "randrw")
    old = before(folder, "old.json", "randrw")
    new = json.loads((folder / "new.json").read_text())
    count, complete, said = asked(folder)
    assert (count, complete) == (completions(old) + completions(new), True)
    assert "old.json: is of an earlier run of fio than new.json, which wrote its logs anew" in said


def test_an_earlier_run_without_a_histogram_is_named(folder: Path) -> None:
    logs_of(folder, "randrw")
    before(folder, "old.json", "randrw", without_bins)
    count, _, said = asked(folder)
    assert count == completions(json.loads((folder / "new.json").read_text()))
    assert "old: means alone without a histogram, not in numbers from histograms" in said and "which wrote its logs anew" in said


def test_a_state_that_was_kept_while_the_run_went_on_is_not_counted(folder: Path) -> None:
    def half(document: dict[str, Any]) -> None:
        for job in document["jobs"]:
            job["job_runtime"] = job.get("job_runtime", 4500) - 2000
            for op in ("read", "write"):
                job[op]["runtime"] -= 2000

    logs_of(folder, "randrw")
    before(folder, "state.json", "randrw", half, ms=2000)
    count, complete, said = asked(folder)
    assert (count, complete) == (completions(json.loads((folder / "new.json").read_text())), True)
    assert "wrote its logs anew" not in said


def test_a_copy_of_the_json_is_not_counted(folder: Path) -> None:
    logs_of(folder, "randrw")
    shutil.copy(folder / "new.json", folder / "copy.json")
    assert asked(folder)[0] == completions(json.loads((folder / "new.json").read_text()))


def test_logs_that_a_run_of_fewer_jobs_has_left_are_of_the_run_before(folder: Path) -> None:
    """They were placed at the start of the later run, which has no such jobs; and what it did overwrite is missing, and said."""

    def two(document: dict[str, Any]) -> None:
        document["jobs"] = document["jobs"][:2]

    logs_of(folder, "two-sections")
    (folder / "new.json").unlink()
    new = before(folder, "new.json", "two-sections", two, ms=0)
    old = before(folder, "old.json", "two-sections")
    answer = Files([folder]).answer(Question(step="all", by=("job",), where={"kind": "completion"}))
    count, complete, said = told(answer)
    assert (count, complete) == (completions(new) + completions(old, 2, 3), False)
    assert "job 1" in said and "that no log here holds: they are missing" in said
    windows = Files([folder]).answer(Question(step=SECOND, by=("job",), where={"kind": "completion"}))
    starts: dict[str, int] = {}
    for part in windows.parts:
        for code, start in zip(part.series.tolist(), part.start_ns.tolist()):
            job = part.table[code][-1]
            starts[job] = min(start, starts.get(job, start))
    apart = [(starts[first] - starts[second]) / 1e6 for first, second in (("1", "3"), ("2", "4"))]
    assert all(abs(ms - MINUTE) < 5000 for ms in apart), apart
    assert asked(folder)[:2] == (count, complete)


def test_which_of_two_runs_was_first_is_worked_out_once_for_all_their_logs(folder: Path, monkeypatch) -> None:
    """For each log it took minutes where runs have some hundred jobs."""
    logs_of(folder, "two-sections")
    before(folder, "old.json", "two-sections")
    asked_for: list[object] = []
    real = runs.over_before
    monkeypatch.setattr(runs, "over_before", lambda *pair: asked_for.append(pair) or real(*pair))
    assert len(Files([folder]).found.sources) == 5
    assert len(asked_for) == 1


def test_a_run_of_which_one_row_is_left_makes_no_window_of_the_others_wider(folder: Path) -> None:
    """Beside one log its row took the step from a second to the length of a run."""
    logs_of(folder, "randrw")
    alone = Files([folder]).stored
    old = before(folder, "old.json", "randrw")
    assert Files([folder]).stored == alone
    answer = Files([folder]).answer(Question(step=SECOND, where={"kind": "completion"}))
    assert told(answer)[0] == completions(old) + completions(json.loads((folder / "new.json").read_text()))
