"""The door for Python: ten tasks that somebody in a notebook would try, written down before the door was built."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import ingest
from ingest.cli import run as command
from oracles import logs
from tools import notebook

ROOT = Path(__file__).parents[1]
LINES = 3  # a task takes no more

TASKS = {
    "p99 over time by host as a frame of pandas": """
run = ingest.read("archive")
frame = run.percentiles(step="10s", by="host", p=[99]).to_pandas()
wide = frame.pivot(index="start", columns="host", values="p99")
""",
    "a heat map for matplotlib": """
m = ingest.read("archive").heatmap(step="1s", where={"op": "read"})
figure, axes = plt.subplots()
axes.pcolormesh(m.times, m.edges, m.counts)
""",
    "compare two runs": """
before, after = ingest.read("archive"), ingest.read("slower")
change = before.compare(after, p=99)
print(change)
""",
    "check an objective": """
kept = ingest.read("archive").check("p99<5ms", where="op=read")
verdict, episodes = kept.verdict, len(kept)
""",
    "merge two hosts exactly": """
run = ingest.read("archive")
both = run.percentiles(step="all", where={"host": ["ceph-a", "ceph-b"]})
p99 = both["p99"]
""",
    "load into a store and ask that": """
run = ingest.read("archive")
loaded = run.load("sqlite:x.db", run="nightly-42")
same = ingest.read("sqlite:x.db").percentiles(step="10s", by="host")
""",
    "a report to send around": """
ingest.read("archive").report("x.html")
""",
    "what happened, as text": """
story = ingest.read("archive").explain()
print(story)
""",
    "the slow minutes of one host": """
rows = ingest.read("archive").percentiles(step="10s", where={"host": "ceph-c"}, p=99)
slow = rows["start"][rows["p99"] > 80e6]
""",
    "several archives": """
runs = ingest.read("archive", "slower")
each = runs.percentiles(step="all", by="run", p=[50, 99])
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the archive of the examples, and another of the same bins, whose operations took much longer."""
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copytree(ROOT / "examples" / "cbt-archive", folder / "archive")
    for name, start_ms in (("slower", 1_795_294_804_000), ("undated", 0)):
        rows = [(start_ms + 1000 * second, 0, {1500 + second % 3: 300, 1600: 5}) for second in range(1, 91)]
        (folder / name).mkdir()
        (folder / name / "output.0_clat_hist.1.log.ceph-a").write_text(logs.text(rows, 1856))
    return folder


class Axes:
    """What matplotlib does with arrays that fit: edges are one more than cells."""

    def pcolormesh(self, x: Any, y: Any, cells: Any) -> None:
        assert cells.shape == (len(y) - 1, len(x) - 1)
        assert (np.diff(y) > 0).all() and (np.diff(x.astype(np.int64)) > 0).all()


def done(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that are bound after a task."""
    monkeypatch.chdir(folder)
    bound: dict[str, Any] = {"ingest": ingest, "plt": SimpleNamespace(subplots=lambda: (None, Axes()))}
    exec(TASKS[name], bound)
    return bound


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command(list(words)) in (0, 1)
    return capsys.readouterr().out


@pytest.mark.parametrize("code", TASKS.values(), ids=TASKS)
def test_a_task_takes_at_most_three_lines(code: str) -> None:
    assert len(code.strip().splitlines()) <= LINES


@pytest.mark.slow
def test_p99_by_host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    wide = done("p99 over time by host as a frame of pandas", folder, monkeypatch)["wide"]
    assert list(wide.columns) == ["ceph-a", "ceph-b", "ceph-c"] and len(wide) == 8 and str(wide.index.tz) == "UTC"


@pytest.mark.slow
def test_a_heat_map_holds_every_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heat_map = done("a heat map for matplotlib", folder, monkeypatch)["m"]
    assert heat_map.counts.sum() == heat_map["count"].sum() == 41_607
    assert heat_map._repr_html_().startswith("<svg")


@pytest.mark.slow
def test_two_runs_are_compared_as_by_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    change = done("compare two runs", folder, monkeypatch)["change"]
    assert capsys.readouterr().out.strip() == printed(capsys, "compare", "archive", "slower", "-p", "99").strip()
    assert change["verdict"].tolist() == ["slower"]
    assert change.verdict[0] in repr(change)


@pytest.mark.slow
def test_an_objective_is_checked_as_by_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    bound = done("check an objective", folder, monkeypatch)
    assert (bound["verdict"], bound["episodes"], bound["kept"]["worst_host"].tolist()) == ("violated", 1, ["ceph-c"])
    assert repr(bound["kept"]).split("\n\n")[0] in printed(capsys, "check", "--sla", "p99<5ms", "archive", "--where", "op=read")


def test_two_hosts_are_merged_exactly(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    bound = done("merge two hosts exactly", folder, monkeypatch)
    hosts = ["--where", "host=ceph-a", "--where", "host=ceph-b"]
    csv = printed(capsys, "percentiles", "archive", "--step", "all", *hosts, "--format", "csv", "-p", "99")
    assert bound["p99"].tolist() == [float(csv.splitlines()[1].split(",")[-1])]
    assert len(bound["both"]) == 1


@pytest.mark.slow
def test_a_store_answers_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = done("load into a store and ask that", folder, monkeypatch)
    assert bound["loaded"].runs == ["nightly-42/00000000/id-9b5d006f"] and "59015 samples" in repr(bound["loaded"])
    of_files = bound["run"].percentiles(step="10s", by="host")
    assert all(np.array_equal(of_files[name], bound["same"][name], equal_nan=name[0] == "p") for name in of_files.columns)
    assert "nightly-42" in ingest.read("x.db")._repr_html_()


@pytest.mark.slow
def test_a_report_is_that_of_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done("a report to send around", folder, monkeypatch)
    assert command(["report", "archive", "-o", "y.html"]) == 0
    pages = [re.sub(r">[^<]{9999,}<", "><", (folder / name).read_text()) for name in ("x.html", "y.html")]  # without packed data
    assert pages[0] == pages[1] and "ceph-b" in pages[0]


@pytest.mark.slow
def test_what_happened_is_what_the_command_says(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    story = done("what happened, as text", folder, monkeypatch)["story"]
    assert capsys.readouterr().out.strip() == printed(capsys, "explain", "archive").strip()
    assert [finding["who"] for finding in story] == ["host=ceph-b", "host=ceph-c"]
    assert "<b>1. ceph-b stalled" in story._repr_html_()


@pytest.mark.slow
def test_the_slow_minutes_of_a_host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = done("the slow minutes of one host", folder, monkeypatch)["slow"]
    assert slow.astype("M8[s]").astype(str).tolist()[:2] == ["2026-11-20T21:00:00", "2026-11-20T21:00:30"]


@pytest.mark.slow
def test_several_archives_are_runs_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = done("several archives", folder, monkeypatch)["each"]
    assert [len(each), each["count"].sum()] == [2, 59_015 + 90 * 305]


@pytest.mark.parametrize("library", ["polars", "duckdb", "pyarrow", "pandas"])
def test_one_arrow_stream_for_all(library: str, folder: Path) -> None:
    """The rows are the same in each library; times are UTC, and a cell without a number is null."""
    module = pytest.importorskip(library)
    rows = ingest.read(folder / "archive").percentiles(step="10s", by="host", p=[50, "99.99"])
    table = {
        "pyarrow": lambda: module.table(rows),
        "polars": lambda: module.DataFrame(rows).to_arrow(),
        "duckdb": lambda rows=rows: module.sql("FROM rows").to_arrow_table(),
        "pandas": lambda: pa.Table.from_pandas(module.DataFrame.from_arrow(rows)),
    }[library]()
    assert table.column("host").to_pylist() == rows["host"].tolist()
    assert table.column("p99.99").null_count == len(rows) and table.column("p50").null_count == 0
    stamps = table.column("start").cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
    assert stamps.to_pylist() == rows["start"].astype(np.int64).tolist()


@pytest.mark.slow
def test_a_run_without_a_clock_has_times_since_its_start(folder: Path) -> None:
    rows = ingest.read(folder / "undated").percentiles(step="10s")
    assert rows["start"][:2].tolist() == [0, 10**10] and rows["start"].dtype == "m8[ns]"
    assert str(pa.table(rows).schema.field("start").type) == "duration[ns]"


WRONG = {
    "read(1)": "read takes paths and stores",
    "read('nowhere')": "nowhere: no such file or folder",
    "read('archive', hots='a')": "no word 'hots' here: do you mean host?",
    "read('archive', 'sqlite:x.db')": "ask a store or files, not both at once",
    "read('archive', run=5)": "run takes 'nightly-42'",
    "read('archive', failed=5)": "--failed takes LABEL=VALUE, not 5",
    "read('archive', host_offset=5)": "--host-offset takes NAME=VALUE, not 5",
    "read('archive', rate=[1])": "--rate takes requests a second",
    "read('archive').percentiles(where=5)": "--where takes LABEL=VALUE, not 5",
    "read('archive').percentiles(p=None)": "p takes percentiles such as 99",
    "read('archive').load(5)": "load takes a store such as",
    "read('archive').report(5)": "report takes a file such as",
    "read('archive').compare(read('slower'), same_within=5)": "same_within takes a share",
    "read('none.db')": "there is no store at sqlite:none.db",
    "read('archive').percentiles(step=10)": "10 is not a duration: give a number with",
    "read('archive').percentiles(step='10')": "10s is 10 seconds",
    "read('archive').percentiles(p=0.99)": "did you mean 99?",
    "read('archive').percentiles(p='fast')": "'fast' is not a percentile",
    "read('archive').percentiles(groupby='host')": "no word 'groupby' here",
    "read('archive').percentiles(by='hots')": "do you mean host?",
    "read('archive').percentiles(by=1)": "by takes 'host', or ('host', 'op'), not 1",
    "read('archive').percentiles(where='read')": "--where takes LABEL=VALUE",
    "read('archive').percentiles(where={'host': 'ceph-x'})": "ceph-a",
    "read('archive').percentiles(run='nightly')": "no run matches nightly: there is archive",
    "read('archive').percentiles(from_=5)": "takes",
    "read('archive').percentiles(below=5)": "below takes",
    "read('archive').percentiles(failures='maybe')": "failures takes",
    "read('archive').percentiles()['p42']": "no column 'p42': there are start, end",
    "read('archive', 'undated').percentiles(by='run', step='all')['start']": "no start time, so no axis with the other runs",
    "read('archive').heatmap(by='host').counts": "a map shows one group",
    "read('archive').explain(step='all')": "findings need windows",
    "read('archive').compare('slower')": "compare takes what read(...) gives, not 'slower'",
    "read('archive').compare(read('archive'))": "both take",
    "read('archive').compare(read('slower'), same_within='much')": "same_within takes a share such as '5%'",
    "read('archive').check()": "check takes objectives",
    "read('archive').check('fast')": "fast",
    "read('archive').check(5)": "check takes objectives",
    "read('archive').load('x.csv')": "is not a store",
    "read('archive').load('sqlite:y.db', run='*')": "--run takes a plain name",
    "read('archive').export('x.csv')": "export writes Parquet, as into x.parquet, not x.csv",
    "read('archive').export('x.parquet', where='host=x')": "no host matches x",
    "read('archive').report('nowhere/x.html')": "nowhere/x.html",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_words_are_answered_in_one_sentence(call: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ingest.TailboardError) as said:
        eval(call, {"read": ingest.read})
    assert WRONG[call] in str(said.value) and "\n" not in str(said.value)


@pytest.mark.parametrize(("library", "use"), [("pyarrow", "to_arrow"), ("pandas", "to_pandas")])
def test_a_library_that_is_missing_is_one_sentence(library: str, use: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ingest.read(folder / "archive").percentiles(step="all")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ingest.UsageError, match=f"needs {library}: pip install {library}"):
        getattr(rows, use)()


@pytest.mark.slow
def test_the_notebook_of_the_docs_answers_what_it_shows() -> None:
    """Run it again: pictures are looked at, everything else is the same to the letter."""

    def shown(cells: list[dict[str, Any]]) -> list[Any]:
        pictures = (re.sub(r"<svg.*</svg>", "<svg>", json.dumps([cell["source"], cell.get("outputs")])) for cell in cells)
        return [re.sub(r'"image/png": "[^"]+"', "png", text) for text in pictures]

    in_file = json.loads(notebook.NOTEBOOK.read_text())["cells"]
    assert shown(notebook.notebook(notebook.kept())["cells"]) == shown(in_file)
    assert sum("<svg" in text or "png" in text for text in shown(in_file)) == 2
    assert not any(output["output_type"] == "error" for cell in in_file for output in cell.get("outputs", ()))


@pytest.mark.slow
def test_parquet_holds_what_csv_has(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(folder)
    words = ["export", "archive", "--where", "host=ceph-b", "--from", "+20s", "--to", "+40s"]
    assert command([*words, "-o", "x.parquet"]) == 0
    ingest.read("archive").export("y.parquet", where="host=ceph-b", from_="+20s", to="+40s")
    capsys.readouterr()
    rows = printed(capsys, *words).splitlines()
    table = parquet.read_table("x.parquet")
    assert table.equals(parquet.read_table("y.parquet")) and ",".join(table.schema.names) == rows[0]
    texts = [
        [format(one, ".0f") if isinstance(one, float) else str(one) for one in column.to_pylist()] for column in table.columns[2:]
    ]
    assert list(map(",".join, zip(*texts, strict=True))) == [row.split(",", 2)[2] for row in rows[1:]]
    with pytest.raises(ingest.UsageError, match="some runs have no start time"):
        ingest.read("archive", "undated").export("z.parquet")
    assert not list(folder.glob("*z.parquet*"))


@pytest.mark.slow
def test_the_page_about_python_is_true(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    blocks = [block for block in blocks if "h1.log" not in block]  # words of reading, of files that are not here
    code = "\n".join(blocks).replace("cbt-archive", "archive")
    monkeypatch.chdir(folder)
    exec(code, {})
    assert len(blocks) == 4 and capsys.readouterr().out.splitlines()[-1] in page
    assert len(page.split()) <= 900
    calls = set(re.findall(r"^\| `run\.(\w+)", page, re.MULTILINE))
    assert calls == {name for name in vars(ingest.Measurements) if not name.startswith("_")} - set(
        ingest.Measurements.__annotations__
    )
