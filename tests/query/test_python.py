"""What the door is made of: what can have one meaning has it, all else is a sentence, whatever type it is of."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.errors import StoreError, UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import parse_duration, parse_instant
from ingest.query.files import Files
from ingest.query.heatmap import distribution, heatmap
from ingest.query.percentiles import Wanted, percentiles, table_of
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store


def str_of(value: object) -> str:
    return type(value).__name__ if type(value) is object or isinstance(value, list) else repr(value)


LOG = Path(__file__).parents[1] / "data" / "fio" / "randrw" / "a_clat_hist.1.log"
ODD: list[Any] = [2**70, 1.5, b"x", object(), [1], (None,), {"a": 1}, -1, 0, True, np.array([1, 2])]


def test_r3_one_text_is_one_where_several_are_meant() -> None:
    """A text was taken letter by letter: `nightly-42*` asked for all runs, as one of its letters is a star."""
    question = Question(runs="nightly-42*", by="op", where={"op": ("read", "write"), "host": "h1"})
    assert question == Question(runs=("nightly-42*",), by=("op",), where={"op": "read\nwrite", "host": "h1"})
    assert Question(begin="2026-11-20T21:06:32Z", end="+90s") == Question(
        begin=parse_instant("2026-11-20T21:06:32Z"), end=parse_instant("+90s")
    )
    assert Wanted((50, 99.9, "99.99")) == Wanted(parse_percentiles("50,99.9,99.99"))
    assert Wanted(99) == Wanted("99") == Wanted(parse_percentiles("99"))


def test_r3_a_path_is_one() -> None:
    for paths in (str(LOG), LOG, [LOG], (str(LOG),)):
        assert [source.path for source in Files(paths, jobs=1).found.sources] == [LOG]


def test_r3_the_answer_to_such_a_question() -> None:
    table, answer = table_of(Files(str(LOG), jobs=1), Question(step="all", by="op", where={"op": "read"}), Wanted((50, 99)))
    assert answer.by == ("op",) and table.columns["op"].tolist() == ["read"] and {"p50", "p99"} <= table.columns.keys()
    assert Question(step=np.int64(10**9)).step == Question(step="1s").step == 10**9


@pytest.mark.parametrize("value", ["no", 1, None, np.array([1, 2])], ids=str_of)
def test_r3_what_is_true_or_false_is_no_text(value: Any) -> None:
    """merge_runs="no" merged runs, and force="" was taken in silence."""
    for make, name in ((Question, "merge_runs"), (Question, "force"), (lambda **one: Wanted(99, **one), "bounds")):
        with pytest.raises(UsageError, match=f"{name} takes True or False, not "):
            make(**{name: value})
    with pytest.raises(UsageError, match="write takes True or False"):
        open_store("sqlite:x.db", write=value)


def test_r3_a_step_of_1_is_no_second() -> None:
    """1 ns, forced: nine GB and no end."""
    for step in (1, "1us"):
        with pytest.raises(UsageError, match="it would cut a row into more than 10,000 windows"):
            Files(LOG, jobs=1).answer(Question(step=step, force=True))
    assert Files(LOG, jobs=1).answer(Question(step="10ms", force=True)).samples


@pytest.mark.parametrize("name", ["runs", "by", "where", "step", "begin", "end", "windows", "attribution"])
@pytest.mark.parametrize("value", ODD, ids=str_of)
def test_r3_a_question_of_other_types_is_refused_in_words(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name}.* takes .* not "):
        Question(**{name: value})


TAKEN: dict[str, list[Any]] = {  # what of the odd values an option of reading takes
    "host_alias": [],
    "host_offset_ns": [{"a": 1}],
    "t0": [-1, 0],
    "expected_interval_ns": [0],
    "digits": [0],
    "tsc_hz": [0],
    "keep_idle": [True],
    "growing": [True],
}


@pytest.mark.parametrize("name", ReadOptions.__match_args__)
@pytest.mark.parametrize("value", [*ODD, "x", {"h1": "x"}, {1: "x"}, (3, "x")], ids=str_of)
def test_r3_options_of_reading_of_other_types_are_refused_in_words(name: str, value: Any) -> None:
    """A wrong type was a KeyError, a TypeError or an AttributeError from deep inside, or taken in silence."""
    text = isinstance(value, str) and name in ("run", "host", "layer", "intended_column")
    alias = value == {"h1": "x"} if isinstance(value, dict) else False
    if (
        text
        or (alias and name == "host_alias")
        or any(value is one or value == one for one in TAKEN.get(name, ()) if type(one) is type(value))
    ):
        assert getattr(ReadOptions(**{name: value}), name) == value
        return
    with pytest.raises(UsageError, match=rf"{name}.* takes .* not |no input format"):
        Files(LOG, ReadOptions(**{name: value}), jobs=1)


def test_r3_options_of_reading_take_numbers_of_numpy() -> None:
    taken = ReadOptions(t0=np.int64(5), digits=np.uint8(3), recorded_unit_ns=np.int32(1000), fio_version=(np.int64(3), 33))
    assert taken == ReadOptions(t0=5, digits=3, recorded_unit_ns=1000, fio_version=(3, 33))
    assert all(type(one) is int for one in (taken.t0, taken.digits, taken.recorded_unit_ns, *(taken.fio_version or ())))


@pytest.mark.parametrize("value", ODD, ids=str_of)
def test_r3_all_else_of_other_types_is_refused_in_words(value: Any) -> None:
    files = Files(LOG, jobs=1)
    answer, question = files.answer(Question()), Question()
    uses = [
        lambda: parse_duration(value),
        lambda: parse_instant(value),
        lambda: parse_percentiles(value),
        lambda: open_store(value),
        lambda: heatmap(value),
        lambda: distribution(value),
        lambda: percentiles(value, Wanted(99)),
        lambda: percentiles(answer, value),
        lambda: table_of(files, question, value),
        lambda: table_of(files, value, Wanted(99)),
        lambda: files.answer(value),
    ]
    for use in uses:
        with pytest.raises(UsageError, match="takes|is not a"):
            use()


@pytest.mark.parametrize("value", [None, b"99", object(), [object()], 101, "x", -1, float("nan"), [None]], ids=str_of)
def test_r3_percentiles_of_other_types_are_refused_in_words(value: Any) -> None:
    with pytest.raises(UsageError, match=r"takes percentiles such as|is not a percentile"):
        Wanted(value)
    with pytest.raises(UsageError, match="below_ns takes a whole number"):
        Wanted(99, below_ns=value if isinstance(value, int) and value < 0 else "1ms")


@pytest.mark.parametrize("paths", [None, 1, b"x", [1], [None], object()], ids=str_of)
def test_r3_files_of_other_types_are_refused_in_words(paths: Any) -> None:
    with pytest.raises(UsageError, match="Files takes a path, or "):
        Files(paths)
    with pytest.raises(UsageError, match="jobs takes a whole number from 1 on, not 0"):
        Files(LOG, jobs=0)
    with pytest.raises(UsageError, match="progress takes a function"):
        Files(LOG, progress=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Files takes ReadOptions"):
        Files(LOG, {"run": "x"})  # type: ignore[arg-type]


def test_r3_a_store_says_that_it_belongs_to_one_thread(tmp_path: Path) -> None:
    url, said = f"sqlite:{tmp_path / 'x.db'}", []
    with open_store(url, write=True) as store:

        def work() -> None:
            with open_store(url) as own:
                own.runs()
            for use in (store.runs, lambda: store.answer(Question()), lambda: store.sources("r")):
                try:
                    use()
                except StoreError as error:
                    said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert store.runs() == []
    assert said == [f"{url}: an open store belongs to the thread that opened it: open one in each thread"] * 3
