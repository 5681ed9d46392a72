"""Shared by all tests: where recorded data lies, how a file is read, and reproducible property tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # strategies and oracles, under any import mode
# Whoever asked for no bytecode would have each worker, and each command that a test starts, compile all of it again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from ingest.core.labels import Series  # noqa: E402
from ingest.core.layout import LogLinear  # noqa: E402  # tests/ first
from ingest.read import read  # noqa: E402
from ingest.read.account import Account  # noqa: E402
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from tests.browsing import launched  # noqa: E402
from tests.effort import figure  # noqa: E402

os.environ["XDG_CACHE_HOME"] = str(HERE.parent / "build" / "cache")  # of the commands, too: what they keep is not the user's

settings.register_profile(
    "tailboard", derandomize=True, deadline=None, max_examples=figure(40, 40), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tailboard")


CONTRACT = (
    str(HERE / "store" / "test_contract.py"),
    str(HERE / "any"),
)  # what all origins must say alike: the double, whole tables


def pytest_collection_finish() -> None:
    """Leave all tests, which stay to the end, out of what is looked through for garbage: at the end of each worker, too."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what of a table of cases is for `make soak` alone, and what is `slow`, which `make test` leaves out.

    A table that is marked `cases(n)`, as its cases take long, has n before the soak, spread over it. `make test` takes one of a table,
    which is none for the double if there is another: the one in the middle, as ends are where a table has its simplest and its
    oddest case. The contract of all origins and `make test-real` take all that is left.
    """
    tables: defaultdict[Any, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not any(item.iter_markers("soak")):
            tables[item.parent, item.originalname].append(item)
    for cases in tables.values():
        marked = cases[0].get_closest_marker("cases")
        most = min(marked.args[0], len(cases)) if marked else len(cases)
        kept = [cases[(2 * place + 1) * len(cases) // (2 * most)] for place in range(most)]
        for item in cases:
            if item not in kept:
                item.add_marker(pytest.mark.soak)
        quick = [item for item in kept if not any(item.iter_markers("slow"))]
        plain = [item for item in quick if not _asks_the_double(item)] or quick
        if "TAILBOARD_TEST_SERVER" in os.environ or str(cases[0].path).startswith(CONTRACT):
            continue
        for item in quick:
            if item is not plain[len(plain) // 2]:
                item.add_marker(pytest.mark.slow)


NO_HISTOGRAMS = "Fielddata is not supported on field [latency.histogram] of type [histogram]"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Skip what needs aggregations of histograms from a server without them: the node of `make test-real`."""
    try:
        return (yield)
    except Exception as error:
        if "ELASTICSEARCH_URL" in os.environ and NO_HISTOGRAMS in str(error):
            pytest.skip("this server has no aggregations of histograms")
        raise


def _asks_the_double(item: Any) -> bool:
    """Return whether a case is one for the double of Elasticsearch; `name` is that of a file."""
    params = item.callspec.params.items()
    return any(isinstance(value, str) and value == "double" and name != "name" for name, value in params)


@dataclass(frozen=True, slots=True)
class Row:
    """One interval as a reader gave it."""

    series: Series
    layout: LogLinear
    start_ns: int
    end_ns: int
    counts: dict[int, int]
    exact: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """All that was read of some files: rows in reading order, and the account of all sources."""

    rows: list[Row]
    account: Account

    def of(self, op: str, **labels: str) -> list[Row]:
        """Return the rows of an op."""
        wanted = {"op": op, **labels}
        return [row for row in self.rows if all(getattr(row.series, name) == value for name, value in wanted.items())]

    def total(self, op: str, **labels: str) -> Counter[int]:
        """Return the sum of the rows of an op, bin by bin."""
        found: Counter[int] = Counter()
        for row in self.of(op, **labels):
            found.update(row.counts)
        return found

    def findings(self, action: str) -> list[tuple[int, str]]:
        """Return (line, reason) of what was repaired or rejected."""
        return [(finding.line, finding.reason) for finding in self.account.findings if finding.action == action]


def take(*paths: Path, options: ReadOptions | None = None) -> Taken:
    """Read everything under the paths, as a load does."""
    found = discover(paths, options or ReadOptions())
    rows, account = [], Account()
    for source in found.sources:
        for part in read(source):
            for number, code in enumerate(part.series):
                begin, end = part.indptr[number], part.indptr[number + 1]
                exact = part.exact
                known = exact is not None and bool(exact.known[number])
                rows.append(
                    Row(
                        part.table[code],
                        part.layout,
                        int(part.start_ns[number]),
                        int(part.end_ns[number]),
                        dict(zip(part.bins[begin:end].tolist(), part.counts[begin:end].tolist(), strict=True)),
                        (int(exact.min_ns[number]), int(exact.max_ns[number]), int(exact.sum_ns[number])) if known else None,
                    )
                )
        account.add(source.context.account)
    return Taken(rows, account)


Take = Callable[..., Taken]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium: one for all tests, as it takes a second to start."""
    with launched() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def taken() -> Take:
    """Return the function that reads files: `taken(path, ..., options=ReadOptions(...))`."""
    return take


@pytest.fixture(scope="session")
def fio() -> Path:
    """Return the folder of recorded fio output; see PROVENANCE.md there."""
    return HERE / "data" / "fio"


@pytest.fixture(scope="session")
def archive() -> Path:
    """Return the folder of the recorded CBT archive that holds its logs."""
    return next((HERE.parent / "examples" / "cbt-archive" / "results").rglob("benchmark_config.yaml")).parent


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Return the function that writes a log alone into a folder: no JSON beside it, so time is relative."""

    def write(content: str | bytes, name: str = "x_clat_hist.1.log") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def lines_with_text(content: bytes) -> int:
    """Return how many lines of a text are not blank."""
    return sum(bool(part.strip(b" \t\r")) for part in content.split(b"\n"))


LogWriter = Callable[..., Path]
Paths = Sequence[Path]


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    """Return a folder with a damaged histogram log of fio 3.7 and fio's JSON, without the raw log."""
    folder = tmp_path / "m"
    folder.mkdir()
    for name in ("out.json", "x_clat_hist.1.log"):
        shutil.copy(HERE / "data" / "fio" / "cases" / "fio37-masked" / name, folder)
    return folder
