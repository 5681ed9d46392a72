"""JSON documents: one a line, spread over lines, after one another, in an array: histograms are the same; damage costs one document."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.read.account import Account
from ingest.read.polls import NO_JSON, documents_of
from ingest.read.text import CUT_OFF
from tests.read.test_histograms import DATA, rows
from tests.read.test_printed_histograms import BASE, hist_json, memtier, written
from tests.read.test_prometheus import api

Layout = Callable[[list[Any]], str]
LAYOUTS: dict[str, Layout] = {
    "a line each": lambda listed: "".join(json.dumps(one) + "\n" for one in listed),
    "spread": lambda listed: "".join(json.dumps(one, indent=2) + "\n" for one in listed),
    "spread by tabs, no last newline": lambda listed: "\n".join(json.dumps(one, indent="\t") for one in listed),
    "spread without a newline between": lambda listed: "".join(json.dumps(one, indent=4) for one in listed),
    "spread without indentation": lambda listed: "\n\n".join(json.dumps(one, indent=0) for one in listed),
    "carriage returns": lambda listed: "".join(json.dumps(one, indent=1) + "\n" for one in listed).replace("\n", "\r\n"),
    "array": lambda listed: json.dumps(listed),
    "array spread": lambda listed: json.dumps(listed, indent=2) + "\n",
    "array of lines": lambda listed: "[\n" + ",\n".join(map(json.dumps, listed)) + "\n]\n",
    "array that begins in its first line": lambda listed: "[" + ",\n ".join(map(json.dumps, listed)) + "]\n",
    "array as prettier writes it": lambda listed: "[" + ", ".join(json.dumps(one, indent=4) for one in listed) + "]",
    "array left open": lambda listed: json.dumps(listed, indent=2).rstrip("]"),
}


def _lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


DOCUMENTS = {
    "otlp": _lines("otlp_delta.jsonl"),
    "ceph": _lines("ceph_perf_histogram_synthetic.ndjson"),
    "cockroach": _lines("hdr_snapshot_ticks.ndjson"),
    "prometheus": [json.loads(api([[[1.7e9 + at, str(at)]], [[1.7e9 + at, str(2 * at)]]])) for at in range(0, 60, 15)],
    "bpftrace": [
        one
        for second in range(3)
        for one in ({"type": "time", "data": f"12:00:0{second}\n"}, json.loads(hist_json("@usecs", {3: second + 1})))
    ],
    "memtier": [{**BASE, **memtier({"Gets": (7, {100: 7})}, start=1_700_000_000_000 + at)} for at in (0, 10_000)],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tool", DOCUMENTS)
def test_every_layout_gives_the_same_histograms(tmp_path: Path, tool: str, layout: str) -> None:
    listed = DOCUMENTS[tool]
    for chosen in (listed, *([listed[:1]] if tool in ("otlp", "cockroach", "memtier") else [])):  # others count since a start
        truth, _ = rows(written(tmp_path / "x.json", LAYOUTS["a line each"](chosen)))
        found, account = rows(written(tmp_path / "x.json", LAYOUTS[layout](chosen)))
        assert found == truth != []
        assert not account.rejected


def test_what_a_sampled_command_says_may_be_spread(tmp_path: Path) -> None:
    listed, found = DOCUMENTS["otlp"][:3], []
    for layout in (LAYOUTS["a line each"], LAYOUTS["spread"], LAYOUTS["array spread"]):
        poll = {"sampled_at": 1.8e9, "record": "poll", "host": "h", "command": "c", "took": 0.1, "status": 0}
        text = json.dumps({**poll, "said": layout(listed)}, separators=(",", ":"))
        found.append(rows(written(tmp_path / "s.ndjson", text + "\n"))[0])
    assert found[0] and found[0] == found[1] == found[2]


def taken(text: str) -> tuple[list[tuple[int, Any]], dict[str, int], list[int]]:
    """Return the documents of a text with their lines, reasons of rejected ones, and the lines of these."""
    account, lines = Account(), text.encode().split(b"\n")
    ends = [True] * (len(lines) - 1) + [False]
    documents = list(documents_of(zip(range(1, len(lines) + 1), lines, ends, strict=True), account))
    return documents, dict(account.rejected), account.rejected_lines


SPREAD = json.dumps({"a": {"b": [1, 2]}}, indent=1)


@pytest.mark.parametrize(
    ("text", "kept", "reason", "lines"),
    [
        ('{"a": 1}\n{"a": {\n{"a": 2}\n', [(1, 1), (3, 2)], NO_JSON, [2]),  # a line that lost its end
        ('{"a": {\n{"a": [\n{"a": 2}\n', [(3, 2)], NO_JSON, [1, 2]),
        ('{"a": 1}}\n{"a": 2}\n', [(2, 2)], NO_JSON, [1]),
        ('{"a": "1}\n{"a": 2}\n', [(2, 2)], NO_JSON, [1]),
        ('{"a": 1} and more\n{"a": 2}\n', [(2, 2)], NO_JSON, [1]),
        ('garbage\n{"a": 2}\n7\n[1]\n', [(2, 2)], NO_JSON, [1, 3, 4]),
        ('{"a": 2}\n{"a": [1, ', [(1, 2)], CUT_OFF, [2]),
        ('{"a": 2}\n{"a": [1, \n', [(1, 2)], NO_JSON, [2]),
        (f'{{"a": 2}}\n{SPREAD[:-2]}', [(1, 2)], CUT_OFF, [2]),
        (f'{SPREAD[:12]}\n{{"a": 2}}\n', [(4, 2)], NO_JSON, [1]),
        (f"{SPREAD[:12]}\n{json.dumps({'a': 2}, indent=2)}\n", [(4, 2)], NO_JSON, [1]),
        ('{\n "a": "1\n}\n{"a": 2}\n', [(4, 2)], NO_JSON, [1, 3]),
        ('{\n "a": 1,,\n}\n{"a": 2}\n', [(4, 2)], NO_JSON, [1]),
    ],
)
def test_damage_costs_the_document_that_it_is_in(text: str, kept: list[tuple[int, int]], reason: str, lines: list[int]) -> None:
    found, rejected, where = taken(text)
    assert [(line, document["a"]) for line, document in found] == kept
    assert (rejected, where) == ({reason: len(lines)}, lines)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\{}[]:, \n', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"{}[]', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    st.lists(st.dictionaries(st.text("k{}[]", max_size=3), JSON_VALUES, min_size=1, max_size=3), max_size=4),
    st.sampled_from(sorted(LAYOUTS)),
)
def test_any_documents_in_any_layout(listed: list[Any], layout: str) -> None:
    found, rejected, _ = taken(LAYOUTS[layout](listed))
    assert [document for _, document in found] == listed and not rejected


def test_a_spread_document_that_breaks_off_is_refused_with_that(tmp_path: Path) -> None:
    text = json.dumps(DOCUMENTS["otlp"][0], indent=2)
    path = tmp_path / "a.json"
    for _ in range(10):
        path.write_text(text[: random.Random(5).randrange(500, len(text) - 1)])
        with pytest.raises(InputError, match="breaks off"):
            rows(path)
