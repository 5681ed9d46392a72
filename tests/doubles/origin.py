"""A small origin: measurements made from numbers, asked the same questions as files and stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ingest.core.grid import coarsened, in_flight
from ingest.core.intervals import Intervals, merged
from ingest.core.labels import IN_FLIGHT, Series
from ingest.core.layout import LogLinear, fio_layout
from ingest.query.episodes import Episode
from ingest.query.files import LogRun
from ingest.query.origin import Capabilities
from ingest.query.overview import Overview, overviews
from ingest.query.plan import groups_in
from ingest.query.question import ALL, AUTO, Answer, Question, finish
from ingest.query.windows import auto_step, spanned, spanned_by_run

SECOND = 1_000_000_000
ZERO = 1_795_208_404 * SECOND
NS = fio_layout(29, 1)

Row = tuple[Series, int, dict[int, int]]


def series(op: str = "read", host: str = "", job: str = "1", run: str = "r", kind: str = "completion") -> Series:
    return Series(run=run, host=host, job=job, op=op, kind=kind)


@dataclass(frozen=True)
class Made:
    """Rows of (series, window of a second, {bin: count}); windows count from `zero`."""

    rows: Sequence[Row]
    layout: LogLinear | dict[str, LogLinear] = NS
    zero: int = ZERO
    relative: bool = False
    warnings: tuple[str, ...] = ()
    starts: dict[str, int] = field(default_factory=dict)

    indexed: bool = False

    @property
    def offers(self) -> Capabilities:
        return Capabilities()

    def runs(self) -> list[LogRun]:
        return [LogRun(run, {}, self.starts.get(run, self.zero), self.relative) for run in self.run_names]

    def episodes(self, _runs: Iterable[str]) -> list[Episode]:
        return []

    @property
    def run_names(self) -> list[str]:
        return sorted({one.run for one, _, _ in self.rows})

    def answer(self, question: Question) -> Answer:
        parts = [part.relabelled(question.key({})) for part in self._parts(question.attribution == IN_FLIGHT)]
        step = question.step
        filled = [part for part in parts if len(part)]
        if step == AUTO and filled:
            span = min(int(p.start_ns.min()) for p in filled), max(int(p.end_ns.max()) for p in filled)
            most = question.most_windows(groups_in({one for one, _, _ in self.rows}, question.key({})))
            step = auto_step(*span, SECOND, most)
        whole = spanned if question.adds_up_runs else spanned_by_run
        asked = whole(filled) if step == ALL else [merged([coarsened(part, int(step))]) for part in filled]
        facts = Answer(
            parts=(),
            by=question.by,
            step_ns=0 if step == ALL else int(step),
            kind="",
            runs=tuple(self.run_names),
            run_start_ns={run: self.starts.get(run, self.zero) for run in self.run_names},
            relative=self.relative,
            series=len({one for one, _, _ in self.rows}),
            warnings=self.warnings,
        )
        return finish(asked, question, facts)

    def overviews(self, *by: str, full: bool = False, **words) -> list[Overview]:
        return overviews(self, self.run_names, Question(by=by, **words), full=full)

    def _parts(self, weighted: bool) -> list[Intervals]:
        layouts = {op: layout for op, layout in self.layout.items()} if isinstance(self.layout, dict) else None
        found = []
        for layout in dict.fromkeys(layouts.values()) if layouts else [self.layout]:
            rows = [row for row in self.rows if layouts is None or layouts[row[0].op] == layout]
            if rows:
                found.append(self._part(rows, layout))
        return [_weighted(part) for part in found] if weighted else found

    def _part(self, rows: Sequence[Row], layout: LogLinear) -> Intervals:
        table = list(dict.fromkeys(one for one, _, _ in rows))
        bins = [sorted(counts) for _, _, counts in rows]
        starts = np.array([self.zero + at * SECOND for _, at, _ in rows], np.int64)
        return merged(
            [
                Intervals(
                    layout=layout,
                    table=tuple(table),
                    series=np.array([table.index(one) for one, _, _ in rows], np.int64),
                    start_ns=starts,
                    end_ns=starts + SECOND,
                    indptr=np.cumsum([0, *map(len, bins)]).astype(np.int64),
                    bins=np.array([place for row in bins for place in row], np.int64),
                    counts=np.array([row[2][place] for row, held in zip(rows, bins, strict=True) for place in held], np.int64),
                )
            ]
        )


def _weighted(part: Intervals) -> Intervals:
    return in_flight(part, SECOND)


def random_rows(
    seed: int, windows: int = 40, hosts: int = 3, ops: Sequence[str] = ("read", "write"), threads: int = 2
) -> list[Row]:
    """Return reproducible rows: most windows filled, some empty, counts from one to thousands."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for host in range(hosts):
        for job in range(threads):
            for op in ops:
                for at in range(windows):
                    if random.random() < 0.15:
                        continue
                    places = random.choice(np.arange(700, 1500), int(random.integers(1, 30)), replace=False)
                    counts = random.lognormal(1, 2, len(places)).astype(int) + 1
                    rows.append((series(op, f"h{host}", str(job)), at, dict(zip(places.tolist(), counts.tolist(), strict=True))))
    return rows
