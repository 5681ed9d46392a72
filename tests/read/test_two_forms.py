"""N9: YCSB that measures in two forms at once (hdrhistogram+raw, hdrhistogram+histogram): each operation is counted once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import SHADOWED, ReadOptions
from tests.oracles import hdr

START = 1_795_330_000
NAMES = ("READ", "UPDATE", "Intended-READ", "Intended-UPDATE")
KEYS = {"READ": ("read", "service"), "UPDATE": ("update", "service")}
KEYS |= {"Intended-READ": ("read", "response"), "Intended-UPDATE": ("update", "response")}
COUNTS = {"READ": 30, "UPDATE": 20, "Intended-READ": 30, "Intended-UPDATE": 20}


def logs(folder: Path, names: tuple[str, ...] = NAMES, *, together: bool = False) -> None:
    """Write an HdrHistogram log of each op, as YCSB does; `together` all in one."""
    folder.mkdir(exist_ok=True)
    texts = []
    for name in names:
        texts.append(f"#[Logging for: Hdr{name}]\n#[StartTime: {START}.000 (seconds since epoch), x]\n")
        texts[-1] += hdr.line("0.000", "1.000", {1000: COUNTS[name]})
    for name, text in zip(("all",), ("".join(texts),), strict=True) if together else zip(names, texts, strict=True):
        (folder / f"Hdr{name}.hdr").write_text(text)


def raw(folder: Path, names: tuple[str, ...] = NAMES, prefix: str = "Raw") -> None:
    folder.mkdir(exist_ok=True)
    text = ""
    for name in names:
        text += f"{prefix}{name} latency raw data: op, timestamp(ms), latency(us)\n"
        text += "".join(f"{prefix}{name},{START * 1000 + n},1000\n" for n in range(COUNTS[name]))
    (folder / "raw.csv").write_text(text)


def buckets(folder: Path, names: tuple[str, ...] = NAMES, prefix: str = "Bucket") -> None:
    folder.mkdir(exist_ok=True)
    text = "[OVERALL], RunTime(ms), 1000\n"
    for name in names:
        text += f"[{prefix}{name}], Operations, {COUNTS[name]}\n[{prefix}{name}], 0, 0\n[{prefix}{name}], 1, {COUNTS[name]}\n"
        text += f"[{prefix}{name}], >1000, 0\n"
    (folder / "out.txt").write_text(text)


def counts(folder: Path, **options: object) -> tuple[Counter, Files]:
    """Return the samples by op and kind."""
    files = Files([folder], ReadOptions(run="r", **options), jobs=1)  # type: ignore[arg-type]
    found: Counter = Counter()
    for kind in ("service", "response"):
        for part in files.answer(Question(step="all", by=("op",), where={"kind": kind})).parts:
            for code, samples in zip(part.series.tolist(), part.samples.tolist(), strict=True):
                found[part.table[code][0], kind] += samples
    return found, files


EACH_ONCE = Counter({KEYS[name]: count for name, count in COUNTS.items()})


@pytest.mark.parametrize("prefer", ["hist", "raw"])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("other", [raw, buckets])
def test_n9_each_operation_is_counted_once(other, together: bool, prefer: str, tmp_path: Path) -> None:
    logs(tmp_path / "d", together=together)
    other(tmp_path / "d")
    found, files = counts(tmp_path / "d", prefer=prefer)
    assert found == EACH_ONCE
    shadowed = [entry.path.name for entry in files.found.skipped if entry.action == SHADOWED]
    by_raw = prefer == "raw" and other is raw
    assert shadowed == (
        ["Hdrall.hdr"] if together and by_raw else shadowed if by_raw else ["raw.csv" if other is raw else "out.txt"]
    )
    assert len(shadowed) == (1 if together or not by_raw else 4)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("other", [raw, buckets])
def test_n9_what_only_one_form_holds_is_read(other, together: bool, tmp_path: Path) -> None:
    logs(tmp_path / "d", ("READ", "Intended-READ"), together=together)
    other(tmp_path / "d")
    assert counts(tmp_path / "d")[0] == EACH_ONCE
    logs(tmp_path / "e", together=together)
    raw(tmp_path / "e", ("READ", "Intended-READ"))
    assert counts(tmp_path / "e", prefer="raw")[0] == EACH_ONCE


@pytest.mark.parametrize("other", [raw, buckets, logs])
def test_n9_one_form_alone_has_the_names_of_its_operations(other, tmp_path: Path) -> None:
    other(tmp_path / "d")
    assert counts(tmp_path / "d")[0] == EACH_ONCE


@pytest.mark.parametrize("other", [raw, buckets])
def test_n9_an_operation_that_is_called_so_is_not_taken_apart(other, tmp_path: Path) -> None:
    """Lower case behind the word, as in a workload of one's own, or no such prefix at all."""
    other(tmp_path / "d", ("READ",), "Rawhide")
    answer = Files([tmp_path / "d"], ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("op",)))
    assert [part.table for part in answer.parts] == [(("rawhideread",),)]


def test_n9_two_hosts_in_two_forms_stay_two_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host in ("h1", "h2"):
        logs(tmp_path / "a" / host if (tmp_path / "a").mkdir(exist_ok=True) is None else tmp_path)
        raw(tmp_path / "a" / host)
    assert tailboard(["percentiles", str(tmp_path / "a"), "--step", "all", "--by", "host,kind", "--format", "ndjson"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(row["host"], row["kind"]): row["count"] for row in rows} == {
        (host, kind): 50 for host in ("h1", "h2") for kind in ("service", "response")
    }
