"""A run made from numbers that can be asked as files and stores are, and what was put into it; it can be written as logs, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ingest.core.grid import SECOND
from ingest.core.intervals import Intervals, in_time_order
from ingest.core.labels import Group, Series
from ingest.query.aggregate import Aggregation
from ingest.query.episodes import Episode
from ingest.query.files import LogRun
from ingest.query.interval_log import form_of
from ingest.query.origin import Capabilities
from ingest.query.plan import Merged, Sums, answer_of
from ingest.query.question import ALL, AUTO, Answer, Question, range_in
from ingest.query.windows import auto_span, auto_step, of_runs, widened
from ingest.read.schedule import sentences
from ingest.view import hlog

RUN, ALL_HOSTS = "synthetic", ""
LENGTH = 600  # s
THROUGHOUT = (0.0, float(LENGTH))


@dataclass(frozen=True)
class Cause:
    """What was put in: its kind, on which host ("" for all), from when to when (s); `period_s` of a rhythm.

    Where `change` is set, it is a time at which something changes: `from_s` is that time.
    """

    kind: str
    host: str
    from_s: float
    to_s: float
    change: bool = False
    period_s: float = 0.0

    @property
    def passes(self) -> bool:
        """Return whether it has a time of its own within the run."""
        return (self.from_s, self.to_s) != THROUGHOUT


@dataclass(frozen=True)
class Made:
    """A run that can be asked as files and stores are, and the causes that were put in."""

    name: str
    causes: tuple[Cause, ...]
    rows: Intervals[Series]
    start_ns: int
    schedule: tuple[tuple[str, str], ...] = ()
    indexed: bool = False

    @property
    def hosts(self) -> list[str]:
        """Return the names of all hosts."""
        return sorted({series.host for series in self.rows.table})

    @property
    def offers(self) -> Capabilities:
        """Return that it can do no more than every origin."""
        return Capabilities()

    def runs(self) -> list[LogRun]:
        """Return the run."""
        return [LogRun(RUN, {}, self.start_ns, relative=False)]

    def marks(self, _answer: Answer) -> list[Mapping[str, Any]]:
        """Return no marks."""
        return []

    def episodes(self, _runs: Iterable[str]) -> list[Episode]:
        """Return no episodes."""
        return []

    def facts(self, _answer: Answer) -> list[tuple[str, str]]:
        """Return no facts."""
        return []

    def windows(self, question: Question) -> Iterator[Intervals[Group]]:
        """Yield the selected windows under (run, kind, then the question's labels)."""
        yield from self._added(replace(question, step=SECOND), SECOND).parts

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, as files do."""
        step = SECOND if question.step == AUTO else 0 if question.step == ALL else int(question.step)
        sums = self._added(question, step)
        run = LogRun(RUN, {}, self.start_ns, relative=False, step_ns=1 if step % SECOND else SECOND)
        if question.step == AUTO:
            bounds = {RUN: range_in(question, self.start_ns, SECOND)}
            step = auto_step(*auto_span(of_runs(sums.reach), bounds, SECOND), SECOND, question.windows)
            sums.parts = widened(sums.parts, step)
        notes = sentences(self.schedule)
        merged = Merged(sums=sums, step_ns=step, runs=[run], labels={}, named=[RUN], selected=(), notes=notes)
        return answer_of(merged, question)

    def _added(self, question: Question, step: int) -> Sums:
        adding = Aggregation(question, question.key({}), step, 0 if step % SECOND else SECOND, self.start_ns, RUN)
        adding.add(self.rows, SECOND)
        return adding.summed()

    def written(self, folder: Path) -> Path:
        """Write the run as HdrHistogram logs, one for each host in a folder of its name; return the folder."""
        form = form_of(self.rows.layout)
        for host, part in self.rows.split(lambda series: series.host):
            place = folder / "clients" / host
            place.mkdir(parents=True)
            tagged = part.relabelled(lambda series: (series.op, "response" if series.kind == "response" else "service"))
            texts = hlog.lines(in_time_order(tagged), ("op", "kind"), self.start_ns, form.unit_ns)
            (place / "run.hlog").write_text(hlog.head(form.unit_ns, self.start_ns, "0") + "".join(texts))
        return folder
