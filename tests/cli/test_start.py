"""What a start imports: by names, never by time. A dataclass costs half a millisecond of each start, and a module a fifth of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from oracles import logs

SCRIPT = dedent("""
    import atexit, sys
    from ingest.cli import main

    def told():
        made = {id(kind): kind for name, module in list(sys.modules.items()) if name.startswith("ingest.")
                for kind in vars(module).values() if isinstance(kind, type) and "__dataclass_fields__" in vars(kind)}
        compiled = sorted(kind.__name__ for kind in made.values() if "__eq__" in vars(kind))
        print("imported:", len(made), ",".join(compiled), *sorted(sys.modules), file=sys.stderr)

    atexit.register(told)
    main(sys.argv[1:])
""")
NEVER = {
    "asyncio", "concurrent.futures", "difflib", "elastic_transport", "elasticsearch", "http.client", "importlib.metadata", "logging", "multiprocessing", "pyarrow", "secrets",
    "socket", "ssl", "subprocess", "tempfile", "tenacity", "unittest", "urllib3", "yaml",
}  # fmt: skip
FROM_FILES = NEVER | {"hashlib", "json", "orjson", "random", "rich", "selectors", "signal", "sqlite3", "statistics"}
FROM_STORE = NEVER | {"orjson", "selectors", "signal"}


def imported(*words: object) -> tuple[int, list[str], set[str]]:
    """Return how many dataclasses of the library a command has made, those with a `==` of their own, and the modules it imported."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("imported: ")]
    _, number, compiled, *modules = line.split(" ")
    return int(number), compiled.split(","), set(modules)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    below = tmp_path / "logs"
    below.mkdir()
    rows = [(1000 * second, 0, {850: 3, 851 + second: 5}) for second in range(1, 6)]
    (below / "job_clat_hist.1.log.host000").write_text(logs.text(rows, 1856))
    (below / "complete").touch()  # no format is asked about an empty file: a benchmark leaves such a mark, or errors of nothing
    return below


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path / 'a.db'}"
    subprocess.run(
        [sys.executable, "-m", "ingest", "load", folder, "--run", "a", "--store", url], check=True, capture_output=True
    )
    return url


def test_percentiles_of_one_log_import_what_they_need(folder: Path) -> None:
    dataclasses, compiled, modules = imported("percentiles", folder, "--format", "csv")
    assert modules >= {"numpy", "ingest.read.fio.histogram_log", "ingest.query.percentiles"}
    assert not modules & FROM_FILES
    assert not modules & {
        "ingest.core.workers", "ingest.read.totals", "ingest.read.operations", "ingest.read.fio.json_output", "ingest.read.fio.json_intervals",
        "ingest.read.fio.averaged_log", "ingest.read.fio.latency_log", "ingest.query.streaming", "ingest.query.compare",
        "pybase64", "isal",
    }  # fmt: skip
    assert 20 < dataclasses <= 35
    assert compiled == [
        "Account",
        "LogLinear",
        "Series",
    ]  # it changes, and keys of large tables; the others are `Value`s or have no `==`


def test_raw_logs_import_arrow_only_for_lines_that_are_not_plain(tmp_path: Path) -> None:
    log = tmp_path / "a_lat.1.log"
    for text, asked in (("", False), ("12, x, 0, 4096, 0\n", True)):
        log.write_text("".join(f"{number}, {number + 50}, 0, 4096, 0\n" for number in range(1, 99)) + text)
        _, _, modules = imported("percentiles", log, "--fio-version", "3.33", "--format", "csv")
        assert "ingest.read.fio.latency_log" in modules
        assert ("pyarrow" in modules) is asked


def test_a_list_of_runs_imports_no_reader_and_no_findings(store: str) -> None:
    _, _, modules = imported("runs", "list", "--store", store)
    assert modules >= {"numpy", "sqlite3", "ingest.store.sqlite.store"}
    assert not modules & FROM_STORE
    others = ("ingest.read", "ingest.load", "ingest.live", "ingest.objectives", "ingest.query.story", "ingest.query.episodes")
    assert not {name for name in modules if name.startswith((*others, "ingest.store.elastic", "ingest.view.page"))}


def test_a_load_imports_no_page_and_no_server(folder: Path, tmp_path: Path) -> None:
    _, _, modules = imported("load", folder, "--run", "b", "--store", f"sqlite:{tmp_path / 'b.db'}")
    assert modules >= {"numpy", "sqlite3", "ingest.load.load"}
    others = ("ingest.view", "ingest.live", "ingest.objectives", "ingest.store.elastic", "ingest.read.hdr", "ingest.read.plugins")
    assert not modules & FROM_STORE
    assert not {name for name in modules if name.startswith(others)}


def test_a_report_imports_what_its_page_shows(folder: Path, tmp_path: Path) -> None:
    _, _, modules = imported("report", folder, "-o", tmp_path / "r.html")
    assert modules >= {"numpy", "ingest.view.page.report"}
    others = (
        "ingest.store.",
        "ingest.load",
        "ingest.live",
        "ingest.objectives",
        "ingest.read.hdr",
        "ingest.read.plugins",
        "ingest.cli.check",
    )
    assert not modules & {"yaml", "urllib3", "ssl", "sqlite3", "pyarrow", "tenacity", "asyncio", "logging", "subprocess"}
    assert not {name for name in modules if name.startswith((*others, "ingest.query.capacity", "ingest.view.page.compare"))}


def test_the_client_of_a_server_imports_no_arrow() -> None:
    script = (
        "from ingest.store.elastic.client import import_client; import_client(); import sys; assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", f"{script}; import elasticsearch, pyarrow"], check=True)
