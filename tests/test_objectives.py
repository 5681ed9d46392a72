"""SLA.yml: every word read as it is written, every mistake named with its line and what to do."""

from __future__ import annotations

import re
import shutil
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, UsageError
from ingest.core.objective import Budget, Latency, Objective, Rate, parse_promise, promise_from
from ingest.core.quantiles import parse_percentiles
from ingest.objectives.objectives import PHASES, WORDS, read_objectives
from tests.mutations import mutated, mutations

EXAMPLE = Path(__file__).parents[1] / "examples" / "SLA.yml"
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
SECOND = 1_000_000_000
LINE = "{name: a, percentile: 99, threshold: 5ms, window: 10s"


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str, **words) -> tuple[Objective, ...]:
        path = tmp_path / "SLA.yml"
        path.write_text(text)
        return read_objectives(path, **words)

    return read


def test_the_example_of_the_design_is_read_whole(read) -> None:
    (example,) = re.findall(r"^      (objectives:\n +- \{.*\})$", DESIGN.read_text(), re.MULTILINE)
    (one,) = read(example)
    assert set(re.findall(r"(\w+): ", example.split("{", 1)[1])) - {"op"} == set(WORDS) - set(PHASES) - {
        "good",
        "rate",
        "failures",
    }
    assert all(f"`{word}`" in DESIGN.read_text() for word in PHASES)
    assert one == Objective(
        name="read p99",
        promise=Latency(parse_percentiles("99")[0], 5_000_000),
        window_ns=10 * SECOND,
        for_ns=30 * SECOND,
        hold_ns=10 * SECOND,
        no_data="violate",
        where={"op": "read"},
        by=("host",),
        budget=Budget(Fraction(1, 100)),
        line=2,
    )


def test_what_is_left_out_has_its_default(read) -> None:
    (one,) = read(f"objectives:\n  - {LINE}}}\n")
    assert (one.for_ns, one.hold_ns, one.no_data, one.where, one.by) == (0, 10 * SECOND, "hold", {}, ())


@pytest.mark.parametrize(
    ("text", "ns"),
    [("5ms", 5_000_000), ("1.5us", 1500), ("250us", 250_000), ("2s", 2 * SECOND), ("1m", 60 * SECOND), ("'1 h'", 3600 * SECOND)],
)
def test_durations_bear_their_unit(read, text: str, ns: int) -> None:
    (one,) = read(f"objectives:\n  - {{name: a, percentile: 99, threshold: {text}, window: 10s, for: {text}}}\n")
    assert (one.promise.threshold_ns, one.for_ns) == (ns, ns)


@pytest.mark.parametrize("text", ["0", "0s", "0.0ms"])
def test_for_and_hold_may_be_nothing(read, text: str) -> None:
    (one,) = read(f"objectives:\n  - {LINE}, for: {text}, hold: {text}}}\n")
    assert (one.for_ns, one.hold_ns) == (0, 0)


@pytest.mark.parametrize("text", ["50", "99.9", "99.90", "99.99", "0.1%", "100", "99.999999999999"])
def test_percentiles_are_the_decimals_that_were_written(read, text: str) -> None:
    (one,) = read(f"objectives:\n  - {{name: a, percentile: {text}, threshold: 5ms, window: 10s}}\n")
    percentile = one.promise.percentile
    assert Decimal(percentile.top) / percentile.bottom == Decimal(text.removesuffix("%"))
    assert percentile.text == text.removesuffix("%")
    assert promise_from(**one.promise.to_dict()) == one.promise


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("1%", "1/100"),
        ("0.1 %", "1/1000"),
        ("0%", "0"),
        ("'12.5%'", "1/8"),
        ("99.999999999%", "99999999999/100000000000"),
        ("1% of windows", "1/100"),
    ],
)
def test_a_budget_is_an_exact_share(read, text: str, share: str) -> None:
    (one,) = read(f"objectives:\n  - {LINE}, budget: {text}}}\n")
    assert one.budget == Budget(Fraction(share))
    (of_requests,) = read(f"objectives:\n  - {LINE}, budget: {text.strip(chr(39)).removesuffix(' of windows')} of requests}}\n")
    assert of_requests.budget == Budget(Fraction(share), of_requests=True)
    (without,) = read(f"objectives:\n  - {LINE}}}\n")
    assert without.budget is None


@pytest.mark.parametrize("text", ["99.9% within 20ms", "99.9 % of requests under 20 ms", "99.9%<20ms"])
def test_a_share_of_good_requests_is_that_percentile(read, text: str) -> None:
    (one,) = read(f"objectives:\n  - {{name: a, good: {text}, window: 10s}}\n")
    assert (one.promise, one.no_data) == (Latency(parse_percentiles("99.9")[0], 20_000_000), "hold")


@pytest.mark.parametrize(
    ("text", "least"),
    [("'>= 5000/s'", "5000"), ("'>5000'", "5000"), ("'>= 0.5 / s'", "1/2"), ("'rate >= 33.333/s'", "33333/1000")],
)
def test_a_rate_is_what_is_completed_at_least(read, text: str, least: str) -> None:
    (one,) = read(f"objectives:\n  - {{name: a, rate: {text}, window: 300ms}}\n")
    assert (one.promise, one.no_data) == (Rate(Fraction(least)), "violate")
    assert one.promise.needed(one.window_ns) == -(-Fraction(least) * 3 // 10)
    assert promise_from(**one.promise.to_dict()) == one.promise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p99<5ms", "p99 at most 5.00ms"),
        (" p99.9 <= 1.5 s", "p99.9 at most 1.50s"),
        ("max<250µs", "p100 at most 250µs"),
        ("rate>=5000/s", "rate at least 5,000/s"),
        (">12.5", "rate at least 12.5/s"),
    ],
)
def test_a_promise_is_said_in_a_word(text: str, expected: str) -> None:
    assert str(parse_promise(text)) == expected


@pytest.mark.parametrize(
    "text", ["", "p99", "p99>5ms", "99<5ms", "p101<5ms", "p0.99<5ms", "p99<5", "rate<5", "rate>=0", "p0<5ms"]
)
def test_what_is_no_promise_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_promise(text)


def test_several_objectives_keep_their_order_and_lines(read) -> None:
    found = read(
        """
# what we promise
objectives:
  - name: reads of one run
    percentile: 99.9
    threshold: 20ms
    window: 1m
    where:
      run: nightly-*
      iodepth: 4
      kind: completion
  - {name: writes, percentile: 50, threshold: 1ms, window: 10s, by: [host, volume, iodepth], no_data: ok}
""",
        run_labels={"iodepth"},
    )
    assert [(one.name, one.line) for one in found] == [("reads of one run", 4), ("writes", 12)]
    assert found[0].where == {"run": "nightly-*", "iodepth": "4", "kind": "completion"}
    assert found[1].by == ("host", "volume", "iodepth")


def test_names_of_labels_pass_where_the_runs_are_not_known(read) -> None:
    (one,) = read(f"objectives:\n  - {LINE}, by: [anything], where: {{kernel: '6.9'}}}}\n", run_labels=None)
    assert (one.by, one.where) == (("anything",), {"kernel": "6.9"})


def one(more: str) -> str:
    """Return a file whose objective, in line 3, says something more."""
    return f"# a comment\nobjectives:\n  - {LINE}{more}}}\n"


def changed(**words: str) -> str:
    """Return a file with other words in its objective, in line 2; empty ones are left out."""
    given = {"name": "a", "percentile": "99", "threshold": "5ms", "window": "10s", **words}
    return "objectives:\n  - {" + ", ".join(f"{name}: {text}" for name, text in given.items() if text) + "}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (one(", treshold: 5ms"), 3, "there is no key 'treshold' in an objective: do you mean threshold?"),
        (one(", colour: red"), 3, "there is no key 'colour' in an objective: there are name, percentile"),
        (one(", by: [hosts]"), 3, "there is no label 'hosts': do you mean host?"),
        (one(", by: [qqq]"), 3, "there is no label 'qqq': there are run, host"),
        (one(", where: {iodepth: 4}"), 3, "there is no label 'iodepth': there are run, host"),
        (one(", where: {op: [read, write]}"), 3, "op takes one value, not a list and not a mapping"),
        (one(", where: {op: }"), 3, "op is empty: give a value or leave the key out"),
        (one(", where: [op]"), 3, "where must be keys with values, as in {op: read}"),
        (one(", where: {op: read, op: write}"), 3, "'op' appears twice in where"),
        (one(", by: host"), 3, "by takes a list, as in by: [host]"),
        (one(", by: [host, host]"), 3, "by names 'host' twice"),
        (one(", by: [[host]]"), 3, "by takes one value, not a list and not a mapping"),
        (one(", window: 20s"), 3, "'window' appears twice in an objective"),
        (one(", budget: 1"), 3, "'1' is not a budget: give a percentage of windows from 0% to below 100%, as in 1%"),
        (one(", budget: 100%"), 3, "'100%' is not a budget"),
        (one(", budget: -1%"), 3, "'-1%' is not a budget"),
        (one(", budget: 1e-3%"), 3, "'1e-3%' is not a budget"),
        (one(", budget: "), 3, "budget is empty"),
        (one(", budget: [1%]"), 3, "budget takes one value"),
        (one(", no_data: maybe"), 3, "no_data is violate, hold or ok, not 'maybe'"),
        (one(", for: -5s"), 3, "for: '-5s' is not a duration"),
        (one(", hold: 5 parsecs"), 3, "hold: '5 parsecs' is not a duration: give a number with ns, us, ms, s, m, h or d, as in 10s"),
        (changed(threshold="5"), 2, "threshold: '5' is not a duration: give a number with"),
        (changed(threshold="0ms"), 2, "threshold: '0ms' is not a duration that can be used here"),
        (changed(window="0s"), 2, "window: '0s' is not a duration that can be used here"),
        (changed(threshold="5 MB"), 2, "threshold: '5 MB' is not a duration"),
        (changed(percentile="101"), 2, "'101' is not a percentile: give one number above 0 and at most 100, as in 99.9"),
        (changed(percentile="0"), 2, "'0' is not a percentile"),
        (changed(percentile="-1"), 2, "'-1' is not a percentile"),
        (changed(percentile="'50,99'"), 2, "'50,99' is not a percentile"),
        (changed(percentile="most"), 2, "'most' is not a percentile"),
        (changed(percentile=".inf"), 2, "'.inf' is not a percentile"),
        (changed(percentile="[99]"), 2, "percentile takes one value, not a list and not a mapping"),
        (changed(name=""), 2, "the objective has no name: add it, as in name: read p99"),
        (changed(percentile=""), 2, "the objective has no percentile: add it, as in percentile: 99"),
        (changed(threshold=""), 2, "the objective has no threshold: add it, as in threshold: 5ms"),
        (changed(window=""), 2, "the objective has no window: add it, as in window: 10s"),
        (changed(name="'  '"), 2, "name is empty"),
        (changed(name="null"), 2, "name is empty"),
        (changed(name='"two\\nlines"'), 2, "a name is one line of at most 200 characters"),
        (changed(name="x" * 201), 2, "a name is one line of at most 200 characters"),
        (changed() + changed().split("\n", 1)[1], 3, "two objectives are called 'a' (the other in line 2): give each its own name"),
        ("objectives:\n  - just text\n", 2, "an objective must be keys with values"),
        ("objectives: 5\n", 1, "objectives takes a list, as in - {name: read p99, ...}"),
        ("objectives: []\n", 1, "the list of objectives is empty"),
        ("objectives:\n", 1, "objectives takes a list"),
        ("objective:\n  - {}\n", 1, "there is no key 'objective' here: the file has one, objectives:"),
        (changed() + "alerts: []\n", 3, "there is no key 'alerts' here"),
        ("- 1\n", 1, "the file must be keys with values"),
        ("", None, "it has no objectives: begin with a line `objectives:`"),
        ("objectives: [\n", 2, "it is not YAML"),
        ("objectives:\n  - {name: a\n  - b\n", 4, "it is not YAML"),
        ("objectives: *nothing\n", 1, "it is not YAML (found undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, "it is not YAML"),
        ("objectives:\n\t- x\n", 2, "it is not YAML"),
        ("[" * 3000, None, "it is nested too deeply"),
        ("objectives:\n  - <<: {name: b}\n", 2, "there is no key '<<' in an objective"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_line(read, tmp_path: Path, text: str, line: int | None, told: str) -> None:
    with pytest.raises(InputError) as error:
        read(text)
    assert told in error.value.reason
    assert error.value.line == line
    assert str(error.value).startswith(f"{tmp_path / 'SLA.yml'}:{line}: " if line else f"{tmp_path / 'SLA.yml'}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"objectives: \xff\xfe\n", "it is not text in UTF-8"),
        (b"objectives: \x00\n", "it is not YAML"),
        (None, "there is no such file"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "SLA.yml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_objectives(path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_objectives(tmp_path)


def refusal(path: Path) -> str | None:
    """Return why a file is refused, None where it is read."""
    try:
        read_objectives(path, None)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.slow
@given(
    mutations(
        ("flip", "delete", "insert", "truncate", "duplicate", "swap", "drop", "number", "crlf"),
        600,
        40,
        st.sampled_from([b"", b"\n", b"  - {", b"'", b"\xff", b": ", b"[", b"99%"]),
    )
)
@settings(max_examples=200)
def test_a_damaged_file_is_read_or_refused_with_a_sentence(steps) -> None:
    path = Path(tempfile.mkdtemp()) / "SLA.yml"
    try:
        path.write_bytes(mutated(EXAMPLE.read_bytes(), steps))
        told = refusal(path)
        assert told is None or (told.startswith(str(path)) and "\n" not in told)
    finally:
        shutil.rmtree(path.parent)
