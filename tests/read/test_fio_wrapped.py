"""fio's JSON as others hand it on: in an array, inside another document, behind text, and line by line through a log."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.core.errors import InputError
from ingest.read.fio import json_output
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import per_io

OPS = ("read", "write")
POD = "[pod/fio-7 main] "


def recorded(fio: Path, name: str) -> str:
    return (fio / name / "a.json").read_text()


def runs(fio: Path) -> list[dict]:
    """Return two runs that have nothing in common."""
    return [json.loads(recorded(fio, name)) for name in ("randrw", "bssplit")]


def written(folder: Path, content: str) -> Path:
    path = folder / "b.out"
    path.write_text(content)
    return path


def bins_of(documents: list[dict], op: str) -> Counter[int]:
    return sum((Counter(per_io.json_bins(job[op], 1856, 0)) for run in documents for job in run["jobs"]), Counter())


def stamped(text: str) -> str:
    """Return a text with the time in front of each line, as `kubectl logs --timestamps` prints it."""
    lines = text.splitlines()
    return "".join(f"2026-11-25T22:13:{n // 1000:02}.{n % 1000:03}000000Z {line}\n" for n, line in enumerate(lines))


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda some: some,
        lambda some: {"results": [{"fio": run, "ok": True} for run in some], "of": "me"},
        lambda some: {"host": {"a": {"out": some[0]}}, "last": some[1]},
        lambda some: [{"name": "x", "fio": run} for run in some],
    ],
    ids=["array", "results", "nested", "array of objects"],
)
def test_documents_inside_others_are_read(fio: Path, tmp_path: Path, taken: Any, wrap: Any, indent: Any) -> None:
    both = runs(fio)
    read = taken(written(tmp_path, json.dumps(wrap(both), indent=indent)))
    for op in OPS:
        assert read.total(op) == bins_of(both, op)
    assert (read.account.accepted, read.account.rejected) == (2, {})


@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: f"[\n{a},\n{b}]\n",
        lambda a, b: f"[{a.rstrip()}, {b.rstrip()}]\n",
        lambda a, b: f"$ fio a.fio >{a.rstrip()}root@h:~# {b.rstrip()}root@h:~# exit\n",
        lambda a, b: f"{a.rstrip()}{b}",
        lambda a, b: json.dumps(json.loads(a)) + json.dumps(json.loads(b)),
        lambda a, b: json.dumps(json.loads(a)) + "\n" + json.dumps(json.loads(b)) + " done\n",
        lambda a, b: "INFO " + json.dumps(json.loads(a)) + "\nINFO " + json.dumps(json.loads(b)) + "\n",
        lambda a, b: "".join(POD + line + "\n" for line in ("fio-3.33", *a.splitlines(), "", *b.splitlines(), "bye")),
        lambda a, b: stamped(f"fio-3.33\n{a}\n{b}\nRun status group 0 (all jobs):\n"),
        lambda a, b: stamped(json.dumps([json.loads(a), {"x": json.loads(b)}], indent=4)),
        lambda a, b: stamped(json.dumps(json.loads(a)) + "\n" + json.dumps(json.loads(b))),
        lambda a, b: "As follows:\n\n" + textwrap.indent(a, "    ") + "and\n\n" + textwrap.indent(b, "    "),
        lambda a, b: 'if (x) {\n  no JSON\n}\nvoid {\n  "text"\n}\n' + a + "x: {\n" + b,
    ],
    ids=[
        "array made by a shell",
        "array on the lines of the braces",
        "prompts of a shell",
        "no newline between",
        "compact, no newline between",
        "compact, text behind",
        "compact, text before",
        "prefix",
        "time stamps",
        "array behind time stamps",
        "compact behind time stamps",
        "indented",
        "other braces",
    ],
)
def test_what_stands_on_the_lines_of_a_document_is_passed_over(fio: Path, tmp_path: Path, taken: Any, join: Any) -> None:
    text = join(recorded(fio, "randrw"), recorded(fio, "bssplit"))
    read = taken(written(tmp_path, text))
    for op in OPS:
        assert read.total(op) == bins_of(runs(fio), op)
    assert (read.account.accepted, read.account.rejected) == (2, {})


def test_what_only_mentions_fio_is_no_document(tmp_path: Path) -> None:
    path = written(tmp_path, 'version = data["fio version"]\nfor name in ["fio version", "jobs"]:\n    print(data[name])\n')
    with pytest.raises(InputError, match="b.out:1: no JSON document in it"):
        discover([path], ReadOptions())


@pytest.mark.parametrize("mark", ["//\t", "# ", " * "])
def test_an_example_in_a_program_is_no_document(fio: Path, tmp_path: Path, mark: str) -> None:
    path = written(tmp_path, "package fio\n" + "".join(mark + line + "\n" for line in recorded(fio, "randrw").splitlines()))
    with pytest.raises(InputError, match="b.out"):
        discover([path], ReadOptions())


def test_places_are_those_of_the_documents(fio: Path, tmp_path: Path, taken: Any) -> None:
    text = json.dumps([runs(fio)[0], {"fio version": "fio-3.33", "jobs": {"a": 1}}], indent=1)
    read = taken(written(tmp_path, text))
    line = text[: text.rindex('"fio version"')].count("\n") + 1
    assert read.findings("rejected") == [(line, "unlike fio's JSON")]


def test_a_document_behind_a_prefix_that_breaks_off_is_said(fio: Path, tmp_path: Path, taken: Any) -> None:
    text = recorded(fio, "randrw") + recorded(fio, "bssplit")[:3000]
    read = taken(written(tmp_path, "".join(POD + line + "\n" for line in text.splitlines())))
    line = recorded(fio, "randrw").count("\n") + 1
    assert read.findings("rejected") == [(line, json_output.CUT_OFF)]


@pytest.mark.parametrize(("widths", "line"), [((0, 1, 2), 2), ((1, 1, 1, 1, 1, 2), 1)])
def test_a_prefix_of_changing_width_is_said(fio: Path, tmp_path: Path, taken: Any, widths: tuple[int, ...], line: int) -> None:
    lines = recorded(fio, "randrw").splitlines()
    text = "".join(f"{'x' * widths[number % len(widths)]}: {line}\n" for number, line in enumerate(lines))
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=rf"b.out:{line}: {re.escape(json_output.BEHIND)}"):
        taken(path)


def test_one_line_may_be_longer_than_a_block(fio: Path, tmp_path: Path, taken: Any) -> None:
    documents = runs(fio)
    padded = [{**documents[0], "note": "x" * 3_000_000}, documents[1]]
    read = taken(written(tmp_path, json.dumps(padded)))
    for op in OPS:
        assert read.total(op) == bins_of(documents, op)


@pytest.mark.parametrize("opening", ['{"results": [\n', "[\n  {\n"])
def test_what_is_too_large_to_be_held_is_refused_with_what_to_do(
    tmp_path: Path, taken: Any, monkeypatch: pytest.MonkeyPatch, opening: str
) -> None:
    monkeypatch.setattr(json_output, "LARGEST_DOCUMENT", 100_000)
    path = written(tmp_path, opening + '    "fio version" : "fio-3.33",\n' * 10_000)
    with pytest.raises(InputError, match=r"b.out:1: a JSON document of more than 256 MB.* jq -c "):
        taken(path)
