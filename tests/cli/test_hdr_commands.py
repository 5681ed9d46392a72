"""HdrHistogram logs through the commands, as their user would run them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
from pathlib import Path

import pytest

from oracles import hdr
from tests import commands

ROOT = Path(__file__).parents[2]
HDR = ROOT / "tests" / "data" / "hdr"
TAGGED = HDR / "tagged.hlog"


def tailboard(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = commands.tailboard(*words, cwd=ROOT)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def rows(*words: object) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tailboard(*words, "--format", "csv").stdout)))


def test_inspect_tells_what_a_log_is_taken_for() -> None:
    done = tailboard("inspect", TAGGED, "--format", "ndjson")
    [row] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["format"], row["rows"], row["samples"], row["ops"]) == ("hdr-log", 60, 18_000, ["", "insert", "read"])
    assert (row["zero"], row["zero_origin"]) == ("2023-11-14T22:13:20.000Z", "StartTime in the log")


def test_response_time_is_the_default_and_kinds_are_never_added_up() -> None:
    [row] = rows("percentiles", TAGGED, "--step", "all")
    assert row["count"] == "3600"
    kinds = rows("percentiles", TAGGED, "--step", "all", "--where", "kind=*", "--where", "op=insert")
    assert [(row["kind"], row["count"]) for row in kinds] == [("response", "3600"), ("service", "3600"), ("wait", "3600")]


@pytest.mark.slow
def test_files_and_a_store_answer_with_the_same_numbers(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    logs = [TAGGED, HDR / "resized.hlog", HDR / "2.0.3-3-digits.hlog"]
    account = json.loads(
        tailboard(
            "load", *logs, "--run", "r", "--store", store, "--recorded-unit", "ns", "--expected-interval", "1ms", "--json"
        ).stdout
    )
    assert account["rows"] == account["accepted"] == 96 and account["rejected"] == {}
    question = ("--by", "process,op,kind,tag", "-p", "50,99,99.9,100")
    for step in ("1s", "5s", "all"):
        stored = rows("percentiles", store, *question, "--step", step)
        asked = rows("percentiles", *logs, *question, "--step", step, "--recorded-unit", "ns", "--expected-interval", "1ms")
        assert stored == asked and len(stored) >= 10
    assert {row["kind"] for row in stored} == {"", "corrected", "response", "service", "service.corrected", "wait"}
    again = json.loads(
        tailboard(
            "load", *logs, "--run", "r", "--store", store, "--recorded-unit", "ns", "--expected-interval", "1ms", "--json"
        ).stdout
    )
    assert again["documents"] == 0 and sum(again["duplicate"].values()) == 3
    exported = tailboard("export", store, "--format", "hlog", "--by", "process,op,kind,tag").stdout
    direct = tailboard(
        "export", *logs, "--recorded-unit", "ns", "--expected-interval", "1ms", "--format", "hlog", "--by", "process,op,kind,tag"
    ).stdout
    assert sorted(exported.splitlines()) == sorted(direct.splitlines())


def test_an_unknown_unit_is_asked_for() -> None:
    log = HDR / "2.2.2-3-digits.hlog"
    assert "give --recorded-unit ns, 100ns, us or ms" in tailboard("percentiles", log, status=3).stderr
    assert rows("percentiles", log, "--recorded-unit", "us", "--step", "all")


def test_summaries_of_old_commands_are_selectors_here(tmp_path: Path) -> None:
    """summarize, split, union, hgrm: by tag, without tags, one tag alone, many logs."""
    by_tag = rows("distribution", TAGGED, "--by", "op,kind,tag", "--where", "kind=*")
    assert {(row["op"], row["kind"], row["tag"]) for row in by_tag} == {
        ("", "", "other"), ("insert", "response", ""), ("insert", "service", ""), ("insert", "wait", ""), ("read", "service", ""),
    }  # fmt: skip
    split = tmp_path / "insert-st.hlog"
    split.write_text(tailboard("export", TAGGED, "--where", "op=insert", "--where", "kind=service", "--format", "hlog").stdout)
    [alone] = rows("percentiles", split, "--step", "all")
    [within] = rows("percentiles", TAGGED, "--step", "all", "--where", "op=insert", "--where", "kind=service")
    assert alone == within
    both = tmp_path / "both.hlog"
    both.write_text(tailboard("export", TAGGED, split, "--format", "hlog").stdout)
    assert sum(int(row["count"]) for row in rows("percentiles", both, "--step", "all", "--where", "kind=service")) == 3600 * 3
    whole = tailboard("export", TAGGED, "--format", "hlog", "--step", "all").stdout
    assert len([line for line in whole.splitlines() if line.startswith("Tag=")]) == 5


def test_distribution_and_export_print_hgrm_as_java_does() -> None:
    told = gzip.open(HDR / "tagged.hgrm.gz", "rt").read().split("tag ")
    wanted = next(part.split("\n", 1)[1] for part in told if part.startswith("insert-wt"))
    for command in ("distribution", "export"):
        done = tailboard(command, TAGGED, "--where", "op=insert", "--where", "kind=wait", "--format", "hgrm", "--unit", "us")
        assert done.stdout == wanted


def test_curves_stand_beside_hgrm_and_sla_files(tmp_path: Path) -> None:
    (tmp_path / "sla.txt").write_text("1 1 all\n1000 1\n")
    curve = tmp_path / "other.hgrm"
    curve.write_text(tailboard("distribution", TAGGED, "--format", "hgrm", "--unit", "ms").stdout)
    found = rows("distribution", TAGGED, "--curves", "--hgrm", f"{curve}:ms", "--sla", f"{tmp_path / 'sla.txt'}:ms")
    assert {row["curve"] for row in found} == {"all", "other", "sla"} and list(found[0]) == [
        "curve",
        "percentile",
        "x",
        "value",
        "count",
    ]
    assert "does not say its unit" in tailboard("distribution", TAGGED, "--hgrm", curve, status=2).stderr


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--rate", "fast"), 2, "--rate takes requests a second"),
        (("--rate", "0"), 2, "--rate takes requests a second"),
        (("--expected-interval", "10"), 2, "'10' is not a duration"),
        (("--input-format", "hlog"), 2, "no input format 'hlog': do you mean hdr-log? There are hdr-log, "),
    ],
)
def test_wrong_words_give_a_sentence(words: tuple[str, ...], status: int, sentence: str) -> None:
    assert sentence in tailboard("percentiles", TAGGED, *words, status=status).stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(("--step", "auto"), "--step of an export is a width"), (("--attribution", "in-flight"), "hlog holds whole samples")],
)
def test_what_cannot_be_exported_is_said(words: tuple[str, ...], sentence: str) -> None:
    assert sentence in tailboard("export", TAGGED, "--format", "hlog", *words, status=2).stderr


@pytest.mark.parametrize("form", ["csv", "hlog", "otlp", "parquet"])
def test_an_export_says_what_a_file_that_breaks_off_lacks(tmp_path: Path, form: str) -> None:
    packed = gzip.compress(TAGGED.read_bytes())
    path, store, output = tmp_path / "a" / "x.hlog.gz", f"sqlite:{tmp_path / 's.db'}", ("-o", tmp_path / f"out.{form}")
    path.parent.mkdir()
    path.write_bytes(packed[: len(packed) * 2 // 3])
    tailboard("load", path, "--run", "r", "--store", store)
    words = output if form in ("csv", "parquet") else ("--format", form)
    of_file, of_store = (tailboard("export", source, *words).stderr for source in (path, store))
    assert "damaged or cut off" in of_file and "everything after that is missing" in of_file
    assert [line for line in of_file.splitlines() if "missing" in line] == [
        line for line in of_store.splitlines() if "missing" in line
    ]


def test_a_target_rate_that_was_missed_is_said() -> None:
    done = tailboard("percentiles", TAGGED, "--rate", "2000", "--where", "kind=service", "--step", "all")
    assert "coordinated omission: judged by the " in done.stdout + done.stderr


def test_logs_in_us_and_ns_can_share_an_export(tmp_path: Path) -> None:
    (tmp_path / "READ.hdr").write_text(
        hdr.log([hdr.line("0.000", "1.000", {700: 3})], "#[Logging for: READ]\n#[StartTime: 1700000000.0 (s)]\n")
    )
    done = tailboard("export", tmp_path / "READ.hdr", "--format", "hlog")
    assert "recorded unit us]" in done.stdout.splitlines()[0]
    both = tailboard("export", tmp_path / "READ.hdr", TAGGED, "--format", "hlog").stdout
    assert "recorded unit ns]" in both.splitlines()[0]
    (tmp_path / "both.hlog").write_text(both)
    counts = {
        row["op"]: row["count"]
        for row in rows("percentiles", tmp_path / "both.hlog", "--by", "op", "--where", "kind=service", "--step", "all")
    }
    assert counts == {"insert": "3600", "read": "3603"}


def test_a_log_that_grew_is_loaded_to_its_new_end(tmp_path: Path) -> None:
    store, log = f"sqlite:{tmp_path / 's.db'}", tmp_path / "x.hlog"
    lines = TAGGED.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:30]) + lines[30][:60])
    first = tailboard("load", log, "--run", "r", "--store", store, "--json")
    assert list(json.loads(first.stdout)["rejected"]) == [
        "the last line is cut off: the file was still being written, or was truncated"
    ]
    log.write_text("".join(lines))
    account = json.loads(tailboard("load", log, "--run", "r", "--store", store, "--json").stdout)
    assert (account["accepted"], account["rejected"]) == (60, {})
    assert rows("percentiles", store, "--step", "1s", "--by", "op,kind") == rows(
        "percentiles", log, "--step", "1s", "--by", "op,kind"
    )


def test_another_schedule_reads_a_loaded_log_again(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    kinds = {}
    for words in ((), ("--expected-interval", "1ms"), ()):
        tailboard("load", TAGGED, "--run", "r", "--store", store, *words)
        kinds[words] = {row["kind"] for row in rows("percentiles", store, "--by", "kind", "--where", "kind=*", "--step", "all")}
    assert kinds["--expected-interval", "1ms"] - kinds[()] == {"corrected", "service.corrected"}


def test_ticks_of_100_ns_are_a_unit(tmp_path: Path) -> None:
    """Percentiles of ticks are a hundred times those of ns: a bin reports the highest tick in it."""
    log = tmp_path / "x.hlog"
    log.write_text(hdr.log([hdr.line(f"{number}.000", "1.000", {1000 + number: 5, 3000: 2}) for number in range(20)]))
    found = {}
    for unit in ("ns", "100ns"):
        words = ("--recorded-unit", unit, "--step", "all", "--format", "ndjson", "-p", "50,90,100", "--unit", "ns")
        found[unit] = json.loads(tailboard("percentiles", log, *words).stdout)
    assert found["ns"]["count"] == found["100ns"]["count"] == 140
    for name in ("p50", "p90", "p100"):
        assert found["100ns"][name] == 100 * found["ns"][name]
