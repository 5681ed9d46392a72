"""The door for Python: `ingest.read("archive")` gives the measurements of files or a store, which answer as the commands do.

    run = ingest.read("archive")
    run.percentiles(step="10s", by="host", p=[50, 99, 99.9])
    run.compare(ingest.read("other"))

Words are those of the command line: `--step 10s` is `step="10s"`, `--from +30s` is `from_="+30s"`, `--where op=read` is
`where="op=read"` or `where={"op": "read"}`; errors are its sentences.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ingest.api import words
from ingest.api.answers import Change, Check, Explanation, HeatMap, Loaded, Percentiles, Shown
from ingest.api.output import replacing, write_whole
from ingest.api.sides import EMPTY, asks_of, chosen_sides, labels_of, named, opened_each, side_by_side
from ingest.api.words import Reading, Selecting, Texts, answering, in_columns, in_range, split_sources
from ingest.core.errors import InputError, StoreError, UsageError, choices, counted
from ingest.core.labels import LABELS, run_matches
from ingest.core.units import parse_duration
from ingest.core.values import one_of, several
from ingest.query.files import Files

if TYPE_CHECKING:
    from ingest.query.origin import Origin, Run
    from ingest.query.question import Question

COMMON = (50, 95, 99, Decimal("99.9"))
Numbers = str | float | Decimal | Iterable[str | float | Decimal]


def read(*sources: str | Path, run: Texts = (), jobs: int | None = None, **reading: Unpack[Reading]) -> Measurements:
    """Return the measurements under some sources: log files and folders, of which all is one whole, or one store.

    A store is named by its URL (`sqlite:x.db`, `http://host:9200`) or its file (`x.db`); without a source it is the default one.
    `run` selects runs, by names or globs. `jobs` is how many processes read, None as many as there are cores. All other words are
    the options of reading of every command (`host`, `t0="mtime"`, `recorded_unit="us"` ...).

    Files are looked for now, and read when something is asked; what a store holds is looked at with each question. InputError
    where there is nothing to read, UsageError for words that cannot be, StoreError where a store cannot be opened.
    """
    if strange := [source for source in sources if not isinstance(source, str | Path)]:
        raise UsageError(f"read takes paths and stores, as in read('archive') or read('a', 'b'), not {strange[0]!r}")
    _known(reading, Reading)
    store, paths = split_sources(sources)
    runs = several(run, str, "run", "'nightly-42', or ['nightly-41', 'nightly-42*']")
    return Measurements(store, tuple(paths), runs, reading, jobs)


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Shown):
    """What files or a store hold, as `read` has found it. It is asked with words of the command line, and shows its runs.

    Each question takes the words of `Selecting`: `run`, `where`, `by`, `step`, `from_`, `to`, `failures`, `merge_runs`, `force`,
    `attribution`. InputError where nothing matches, UsageError for words that cannot be.
    """

    store: str
    paths: tuple[Path, ...]
    selected: tuple[str, ...]
    reading: Reading
    jobs: int | None

    def __post_init__(self) -> None:
        """Look for the files, or open the store: StoreError, InputError."""
        with answering(self._source):
            pass

    @cached_property
    def _source(self) -> str | Files:
        return self.store or Files(self.paths, words.read_options(**self.reading), self.jobs)

    @property
    def runs(self) -> Sequence[Run]:
        """Return the runs that are selected: each has `run` (its name), `labels` and `start_ns`."""
        with answering(self._source) as origin:
            return [one for one in origin.runs() if run_matches(one.run, self.selected)]

    def percentiles(
        self, *, p: Numbers = COMMON, below: Texts = (), bounds: bool = False, **asked: Unpack[Selecting]
    ) -> Percentiles:
        """Return percentiles over time: a row for each window and group.

        `p` are percentiles from 0 to 100. `below` adds the share of samples below latencies such as "5ms", `bounds` between which
        values a percentile lies whatever samples are missing. Columns are start, end, those of `by`, count, rate, min, mean, max,
        exact, complete, failed, then p50 ...: latencies in ns, NaN where there are too few samples.
        """
        from ingest.query.percentiles import Wanted, table_of

        limits = [parse_duration(text) for text in several(below, str, "below", "'5ms', or ('1ms', '5ms')")]
        question = self._question(asked)
        with answering(self._source) as origin:
            table, answer = table_of(origin, question, Wanted(p, limits, possible=bounds))  # type: ignore[arg-type]
        return Percentiles(table, in_range(answer, question))

    def heatmap(self, **asked: Unpack[Selecting]) -> HeatMap:
        """Return how many samples have which latency when: as rows, and as the arrays `times`, `edges` and `counts`."""
        from ingest.query.lags import answered

        question = self._question(asked)
        with answering(self._source) as origin:
            return HeatMap(in_range(answered(origin, question), question))

    def explain(self, **asked: Unpack[Selecting]) -> Explanation:
        """Return what happened in each run: findings in sentences, those that account for most of the excess latency first."""
        from ingest.query.story.story import stories

        with answering(self._source) as origin:
            return Explanation(stories(origin, self._question(asked), self._typed))

    def compare(
        self,
        other: Measurements,
        *,
        p: Numbers = COMMON,
        same_within: str = "5%",
        unlike_kinds: bool = False,
        **asked: Unpack[Selecting],
    ) -> Change:
        """Return how `other` differs from these measurements, the baseline: percentiles, their ratio and its bounds.

        Each side is one run, or several of which each is alike one of the other side. Percentiles whose ratio is certainly within
        `same_within` are the same; `unlike_kinds` compares even where the sides have timed other things.
        """
        from ingest.query.compare import compare
        from ingest.query.percentiles import Wanted
        from ingest.view.page.compare import compared

        if not isinstance(other, Measurements):
            raise UsageError(f"compare takes what read(...) gives, not {other!r}")
        within = words.share(same_within)
        if not 0 <= within <= 100:
            raise UsageError(f"same_within takes a share such as '5%', not {same_within!r}")
        wanted = Wanted(p).percentiles  # type: ignore[arg-type]
        merge = asked.pop("merge_runs", False)
        question = replace(in_columns(words.asked(**{**_known(asked, Selecting), "step": "all"})), runs=())
        both, names = (self, other), dict(named([*self.paths, *other.paths]))
        with ExitStack() as stack:
            origins: dict[str, Origin] = {}
            matched: list[list[str]] = []
            for side in both:
                paths = [(path, names[path]) for path in side.paths]
                held = stack.enter_context(opened_each(side.store, paths, words.read_options(**side.reading), side.jobs))
                matched.append([run for run in held if run_matches(run, side.selected)])
                origins |= held
            if empty := next((side for side, runs in zip(both, matched, strict=True) if not runs), None):
                raise InputError(f"no run matches {' '.join(empty.selected)}: {choices(empty.selected[0], origins)}")
            sides = chosen_sides((matched[0], matched[1]), labels_of(origins), (self._typed, other._typed), merge=merge)
            beside = side_by_side(asks_of(origins), sides, question, unlike=unlike_kinds, same_within=1 + within)
        content = compared(beside.pair, beside.answers, beside.windows, wanted, unlike=unlike_kinds)
        return Change(compare(beside.pair, wanted), beside.pair, content.opening(beside.pair))

    def check(self, *objectives: str | Path, window: str = "10s", **asked: Unpack[Selecting]) -> Check:
        """Return how objectives were kept: texts such as "p99<5ms" and "rate>=5000/s", or one file of them (a path to SLA.yml).

        `window` is the width of the windows of those that are texts.
        """
        from ingest.objectives.check import check_in
        from ingest.objectives.objectives import objective_of

        objectives = several(objectives, (str, Path), "check", "objectives, as in check('p99<5ms')")
        files = [Path(one) for one in objectives if isinstance(one, Path) or one.endswith((".yml", ".yaml"))]
        said = [
            objective_of(one, parse_duration(window)) for one in objectives if isinstance(one, str) and Path(one) not in files
        ]
        if len(files) > 1 or not objectives:
            raise UsageError("check takes objectives, as in check('p99<5ms'), or one file of them")
        with answering(self._source) as origin:
            if not origin.runs():
                raise StoreError(EMPTY)
            return Check(check_in(origin, files[0] if files else None, self._question(asked), said=said))

    def load(
        self,
        store: str,
        *,
        run: str | None = None,
        step: str | None = None,
        labels: words.Pairs = (),
        replace: bool = False,
        offsets: bool = True,
        force: bool = False,
    ) -> Loaded:
        """Load the files into a store, each sample exactly once, and return the account of it.

        `run` is their name there, by default that of their folder. StoreError where the store refuses, InputError for files that
        contradict what it holds.
        """
        from ingest.load.load import load
        from ingest.query.origin import store_url
        from ingest.read.discovery import root_of
        from ingest.store import open_store

        if self.store:
            raise UsageError(f"{self.store} is a store, and load takes files and folders")
        name = re.sub(r"[*?\[\n]", "_", root_of(self.paths).name) or "run" if run is None else run
        own: Reading = {
            **self.reading,
            "labels": words.pairs(self.reading.get("labels", ()), "--label") | words.pairs(labels, "--label"),
        }
        options = words.load_options(name, own, step=step, force=force, replace=replace, offsets=offsets, jobs=self.jobs)
        url, began = store_url(one_of(str, store, "load", "a store such as 'sqlite:x.db'")), time.monotonic()
        with open_store(url, write=True) as opened:
            account = load(self.paths, opened, options)
            refused, sentence = opened.refusals()
        account.seconds = time.monotonic() - began
        if refused:
            raise StoreError(sentence)
        return Loaded(account, url)

    def report(self, output: str | Path, *, sla: str = "", full: bool = False, **asked: Unpack[Selecting]) -> Path:
        """Write one HTML file, which opens offline, that shows when the tail was bad, on which host, and why; return its path.

        `sla` draws a line at a latency such as "5ms"; `full` includes all windows and hosts, however large the page gets.
        """
        from ingest.view.page.report import report_of

        one_of((str, Path), output, "report", "a file such as 'x.html'")
        with answering(self._source) as origin:
            page = report_of(origin, self._question(asked), sla=sla, full=full, named=self._typed)
        write_whole(str(output), page)
        return Path(output)

    def export(self, output: str | Path, **asked: Unpack[Selecting]) -> Path:
        """Write all data at the stored step as Parquet, and return its path: a row for each series, window and occupied bin.

        Columns are start, end, all labels, lower, upper (ns), count. The words are `run`, `where`, `from_` and `to`.
        """
        from ingest.query.plan import settled
        from ingest.view.arrow import write_parquet

        if not str(output).endswith(".parquet"):
            raise UsageError(f"export writes Parquet, as into x.parquet, not {output}; tailboard export has other forms")
        with answering(self._source) as origin, replacing(str(output)) as unfinished:
            write_parquet(origin, settled(origin, self._question({**asked, "by": LABELS})), str(unfinished))
        return Path(output)

    def _question(self, asked: Selecting) -> Question:
        """Return the question that words ask, about the runs that were selected unless they say others."""
        return in_columns(words.asked(**{"run": self.selected, **_known(asked, Selecting)}))

    @property
    def _typed(self) -> str:
        """Return the sources as they are typed in a shell."""
        return shlex.join([self.store] if self.store else map(str, self.paths))

    def _print(self) -> None:
        from ingest.view.terminal.tables import people, say

        runs = self.runs
        say(people(), [f"{counted(len(runs), 'run')} in {self._typed}", *(run.run for run in runs)])


def _known(given: Any, known: type) -> Any:
    """Return words; UsageError where one of them is none of those that are known, with what is meant."""
    if strange := given.keys() - known.__annotations__.keys():
        word = min(strange)
        raise UsageError(f"no word {word!r} here: {choices(word, known.__annotations__, most=99)}")
    return given
