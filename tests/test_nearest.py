"""D15: a word that nobody knows is answered with the known ones, nearest first, in one way everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import choices, likeness, marks_for, meant, suggestions
from tests.commands import tailboard

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "cbt-archive"
NAMES = st.lists(st.text("abc-/", min_size=1, max_size=8), max_size=12)


@given(st.text("abc-/*", max_size=8), NAMES)
def test_every_known_word_is_in_the_order_of_likeness(word: str, known: list[str]) -> None:
    ordered = suggestions(word, known)
    assert sorted(ordered) == sorted(set(known))
    alike = [likeness(word, name) for name in ordered]
    assert alike == sorted(alike, reverse=True)


@given(st.text("abcdefgh-", min_size=1, max_size=10), NAMES)
def test_a_known_word_is_meant_by_itself(word: str, known: list[str]) -> None:
    assert meant(word, [*known, word]).startswith("do you mean ")
    assert likeness(word, word) == 1


def test_sentences() -> None:
    assert choices("hots", ["op", "host"]) == "do you mean host? There are host, op"
    assert choices("hots", ["host"]) == "do you mean host?"
    assert choices("colour", ["op", "kind"]) == "there are op, kind"
    assert choices("cehp-*", [f"ceph-{at}" for at in "abcdefg"]).endswith("and 2 more")
    assert choices("x", []) == "there is none"
    assert meant("NIGHTLY-4", ["other", "loads/nightly-42/00"]) == "do you mean loads/nightly-42/00?"
    assert marks_for("osd3 down", ["other", "osd.3 down"]) == "do you mean osd.3 down? Its marks: 'osd.3 down', 'other'"
    assert marks_for("osd3 down", []) == "its marks: none"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("nearest")
    url = f"sqlite:{folder / 'a.db'}"
    for words in (
        ("load", EXAMPLE, "--run", "nightly-42", "--store", url),
        ("mark", "--store", url, "--run", "nightly-42", "--at", "+10s", "osd.3 down"),
    ):
        done = tailboard(*words)
        assert done.returncode == 0, done.stderr
    return url


@pytest.mark.slow
@pytest.mark.parametrize("source", ["files", "store"])
@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--by", "hots"), 2, "no label 'hots' here: do you mean host? There are host, "),
        (("--where", "host=cehp-b"), 3, "no host matches cehp-b: do you mean ceph-b? There are ceph-b, ceph-a, ceph-c"),
        (("--where", "host=cehp-*"), 3, "no host matches cehp-*: do you mean ceph-a? There are ceph-a, ceph-b, ceph-c"),
        (("--where", "op=raed"), 3, "no op matches raed: do you mean read? There are read, write"),
        (("--where", "host=ceph-a", "--where", "op=reed"), 3, "no op matches reed: do you mean read?"),
        (("--where", "volume=x"), 3, "no volume matches x: "),
        (("--where", "process=x"), 3, "no process matches x: nothing here has a process"),
        (("--where", "iodepth=8"), 3, "no iodepth matches 8: there is 4"),
        (("--step", "all", "--format", "csv", "--where", "host=cehp-b"), 3, "no host matches cehp-b: do you mean ceph-b?"),
    ],
)
def test_d15_a_mistyped_label_or_value_is_answered_with_what_there_is(
    words: tuple[str, ...], status: int, sentence: str, source: str, store: str
) -> None:
    done = tailboard("percentiles", EXAMPLE if source == "files" else store, *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr, done.stderr


RUN = "nightly-42/00000000/id-9b5d006f"
PAIR = ("--baseline", "nightly-42", "--run")


@pytest.mark.parametrize(
    ("command", "words", "sentence"),
    [
        ("percentiles", ("--run", "nihgtly-42"), f"no run matches nihgtly-42: do you mean {RUN}?"),
        ("percentiles", ("--where", "run=nihgtly-42"), f"no run matches nihgtly-42: do you mean {RUN}?"),
        ("heatmap", ("--highlight", "host=cehp-b"), "nothing matches --highlight host=cehp-b: do you mean ceph-b?"),
        ("report", ("--run", "nihgtly", "-o", "never.html"), f"no run matches nihgtly: do you mean {RUN}?"),
        ("trend", ("--run", "nihgtly"), f"no run matches nihgtly: do you mean {RUN}?"),
        ("capacity", ("--run", "nihgtly", "--sla", "p99<5ms"), f"no run matches nihgtly: do you mean {RUN}?"),
        ("compare", (*PAIR, "nihgtly-42"), f"--run nihgtly-42 matches no run: do you mean {RUN}?"),
        ("compare", ("--run", "nightly-42", "--at", "osd3 down"), "do you mean osd.3 down? Its marks: 'osd.3 down'"),
    ],
)
def test_d15_a_mistyped_run_or_mark_is_answered_with_what_there_is(
    command: str, words: tuple[str, ...], sentence: str, store: str
) -> None:
    done = tailboard(command, store, *words)
    assert done.returncode == 3 and sentence in done.stderr, done.stderr


def test_d15_objectives_name_what_is_meant(tmp_path: Path, store: str) -> None:
    (tmp_path / "SLA.yml").write_text("objectives:\n  - {name: a, percentile: 99, treshold: 5ms}\n")
    done = tailboard("check", tmp_path / "SLA.yml", store)
    assert "SLA.yml:2: there is no key 'treshold' in an objective: do you mean threshold? There are " in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("percentils", "x"), "there is no command 'percentils': do you mean tailboard percentiles x?"),
        (("runs", "lst"), "there is no command 'lst': do you mean tailboard runs list?"),
        (("percentiles", "--wher", "x=y"), "there is no option --wher: do you mean --where?"),
        (("percentiles", "--format", "cvs"), "there is no 'cvs': do you mean csv?"),
        (("load", "--recorded-unit", "usek", "x", "--run", "r"), "there is no 'usek': do you mean us?"),
        (("percentiles", EXAMPLE, "--input-format", "fiohist"), "no input format 'fiohist': do you mean fio-hist?"),
    ],
)
def test_d15_a_mistyped_command_option_or_choice_is_answered_with_what_there_is(words: tuple[str, ...], sentence: str) -> None:
    done = tailboard(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr, done.stderr


def test_d15_likeness_is_measured_in_one_place() -> None:
    users = [path.name for path in (ROOT / "ingest").rglob("*.py") if "difflib" in path.read_text("utf-8")]
    assert users == ["errors.py"]
