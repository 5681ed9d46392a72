"""Answers that show themselves in a notebook, and that other libraries take as one Arrow stream.

    rows = run.percentiles(by="host")
    rows                            in a notebook a table, in a terminal its text
    rows["p99"]                     a column, in NumPy
    polars.DataFrame(rows)          pyarrow.table(rows), duckdb.sql("FROM rows"), pandas.DataFrame.from_arrow(rows)

What is shown is what the command prints; columns have its names, too, and latencies are in ns. `start` and `end` are times (UTC),
of a run without a clock times since its start.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ingest.api.words import one_axis
from ingest.core.errors import UsageError, listed
from ingest.core.units import elapsed, utc
from ingest.query.heatmap import cells, heatmap
from ingest.query.precision import precision_from
from ingest.query.question import named, stamps_beside
from ingest.view.arrow import arrow_table, library, times
from ingest.view.terminal.tables import WIDE, HtmlConsole, heading, print_table, written_on
from ingest.view.text import header_of, shown_columns
from ingest.view.vega import EIGHTHS, group_names

if TYPE_CHECKING:
    import pyarrow as pa

    from ingest.core.units import Stamp
    from ingest.load.load import LoadAccount
    from ingest.objectives.check import Checked
    from ingest.query.compare import Pair
    from ingest.query.question import Answer
    from ingest.query.story.ground import Story
    from ingest.query.table import Table


class Shown:
    """What shows itself: as text where it is printed, in a notebook as HTML."""

    def _print(self) -> None:
        """Print it for people, as the command does."""
        raise NotImplementedError

    def _printed(self, make: Callable[[io.StringIO], Console]) -> str:
        text = io.StringIO()
        with written_on(make(text)):
            self._print()
        return text.getvalue()

    def __repr__(self) -> str:
        return self._printed(lambda file: Console(file=file, width=WIDE))

    def _repr_html_(self) -> str:
        """Return it as HTML, which notebooks ask for."""
        return self._printed(HtmlConsole)


class Frame(Shown):
    """Rows with named columns, of which all have the same length."""

    def __init__(self, table: Table, answer: Answer | None = None) -> None:
        self.table, self._answer = table, answer

    @cached_property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns by name, as csv has them: times, text and numbers, NaN where there is none."""
        return {header_of(name): self._column(name) for name in shown_columns(self.table)}

    def _column(self, name: str) -> NDArray[Any]:
        values, answer = np.asarray(self.table.columns[name]), self._answer
        if answer is None or name not in ("start_ns", "end_ns"):
            return values
        return times_of(values, answer)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.columns:
            raise UsageError(f"no column {name!r}: there are {', '.join(self.columns)}")
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield each row as a mapping from the names of columns."""
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True))

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table of pyarrow; UsageError where that is not installed."""
        return arrow_table(self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream (the PyCapsule interface), which pandas, polars, pyarrow and duckdb take."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the rows as a DataFrame; UsageError where pandas is not installed."""
        library("pandas", "a DataFrame")
        return self.to_arrow().to_pandas()


class Answered(Frame):
    """Rows of an answer; `answer` has what was merged, `notes` what a reader of the numbers must know."""

    what = ""

    def __init__(self, table: Table, answer: Answer) -> None:
        super().__init__(table, answer)
        self.answer = answer

    @property
    def notes(self) -> Sequence[str]:
        """Return sentences about what is missing or guessed."""
        return self.answer.warnings

    def _print(self) -> None:
        print_table(self.table, self._heading(), stamp_of(self.answer), short=True)

    def _heading(self) -> list[str]:
        bound = precision_from(self.answer.parts) if self.table.precision is None else self.table.precision
        return heading(self.answer, self.what, bound)


class Percentiles(Answered):
    """Percentiles: a row for each window and group."""

    what = "percentiles"


class HeatMap(Answered):
    """A heat map. Its rows are exact bins: how many samples of a window lie in [lower, upper) ns.

    `times` (windows + 1), `edges` (rows + 1, ns) and `counts` (rows by windows) are the map as it is drawn, in rows of whole
    bins, eight to each doubling: `axes.pcolormesh(m.times, m.edges, m.counts)`. Operations that failed are in no row of it.
    """

    what = "heat map"

    def __init__(self, answer: Answer) -> None:
        super().__init__(heatmap(answer), answer)

    @cached_property
    def _map(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if len(names := group_names(self.answer)) > 1:
            raise UsageError(f"a map shows one group, here are {listed(names.values())}: choose with where, or leave out by")
        drawn = cells(self.answer, EIGHTHS)
        timed = np.flatnonzero(~drawn.failed)
        times = np.append(drawn.starts, drawn.end_ns.max())
        counts = np.zeros((len(drawn.edges) - 1, len(drawn.starts)), drawn.count.dtype)
        row, column = np.searchsorted(drawn.edges, drawn.lower[timed]), np.searchsorted(drawn.starts, drawn.start_ns[timed])
        counts[row, column] = drawn.count[timed]
        return times, drawn.edges, counts

    @property
    def times(self) -> NDArray[Any]:
        """Return where windows begin, and where the last one ends; times as in the column `start`."""
        return times_of(self._map[0], self.answer)

    @property
    def edges(self) -> NDArray[Any]:
        """Return the edges of rows in ns."""
        return self._map[1]

    @property
    def counts(self) -> NDArray[Any]:
        """Return how many samples each row (latency) and column (time) has."""
        return self._map[2]

    def _print(self) -> None:
        from ingest.view.terminal.heatmap import print_heatmap

        print_heatmap(self.answer, self._heading(), stamp_of(self.answer))

    def _repr_html_(self) -> str:
        """Return the picture; of several groups the maps in letters, one below the other."""
        if len(group_names(self.answer)) > 1:
            return f"<pre>{html.escape(repr(self))}</pre>"
        from ingest.view.pictures import drawn, heatmap_picture

        one_axis(self.answer)
        return drawn(heatmap_picture(self.answer, "elapsed" if self.answer.relative else "utc"), "svg").decode()


class Explanation(Frame):
    """What happened: the story of each run. Its rows are the findings, those that account for most first."""

    def __init__(self, stories: Sequence[Story]) -> None:
        from ingest.query.table import of_rows

        self.stories = stories
        kinds = {
            **dict.fromkeys(("run", "kind", "who"), object),
            **dict.fromkeys(("from_s", "to_s", "share", "missing"), float),
            **dict.fromkeys(("text", "consistent", "against", "command"), object),
        }
        findings = [finding.as_dict(story.zero_ns) for story in stories for finding in story.findings]
        rows = [
            [
                ", ".join(f"{label}={value}" for label, value in one["who"].items()) if name == "who" else one[name]
                for name in kinds
            ]
            for one in findings
        ]
        super().__init__(of_rows(rows, kinds, ()))

    def _print(self) -> None:
        from ingest.view.terminal.story import print_story

        for story in self.stories:
            print_story(story)


class Change(Frame):
    """How a run differs from a baseline: a row for each percentile and group, the largest effect first.

    `verdict` is the sentences that the command opens with.
    """

    def __init__(self, table: Table, pair: Pair, verdict: Sequence[str]) -> None:
        super().__init__(table)
        self.pair, self.verdict = pair, verdict

    def _print(self) -> None:
        from ingest.view.terminal.comparison import print_comparison

        print_comparison(self.pair, self.table, self.verdict)


class Check(Frame):
    """Objectives held against runs. Its rows are the episodes in which they were violated."""

    def __init__(self, checked: Checked) -> None:
        from ingest.view.terminal.episodes import episode_rows

        self.checked = checked
        self._relative = bool(checked.verdicts) and all(verdict.relative for verdict in checked.verdicts)
        super().__init__(episode_rows(checked.verdicts, self._base))

    @property
    def _base(self) -> str:
        return "elapsed" if self._relative else "utc"

    def _column(self, name: str) -> NDArray[Any]:
        values = super()._column(name)
        return times(values, 0 if self._relative else None) if name in ("start_ns", "end_ns") else values

    @property
    def verdict(self) -> str:
        """Return `met`, `violated`, or `cannot tell` where missing samples or wide bounds leave it open."""
        return "violated" if self.checked.violated else "met" if self.checked.met else "cannot tell"

    def _print(self) -> None:
        from ingest.view.terminal.episodes import print_checked

        print_checked(self.checked, self._base)


class Loaded(Shown):
    """What a load did: `account` has the files, rows and documents, `runs` the names under which they can be asked."""

    def __init__(self, account: LoadAccount, url: str) -> None:
        self.account, self.url = account, url

    @property
    def runs(self) -> Sequence[str]:
        """Return the runs that were loaded."""
        return self.account.runs

    def _print(self) -> None:
        from ingest.load.load import sentences_of
        from ingest.view.terminal.tables import people, say

        say(people(), sentences_of(self.account, self.url))


def times_of(stamps_ns: NDArray[Any], answer: Answer) -> NDArray[Any]:
    """Return times of an answer; UsageError where some of its runs have no clock."""
    one_axis(answer)
    return times(stamps_ns, answer.start_of if answer.relative else None)


def stamp_of(answer: Answer) -> Stamp:
    """Return the function that writes the times of an answer: UTC, elapsed where no run has a clock."""
    return named(elapsed(answer.start_of) if answer.relative else utc, stamps_beside(answer))
