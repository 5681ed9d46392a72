"""The Python interface: what can have one meaning has it, all else is a sentence, whatever type it is of."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest import Files, Question, Wanted, open_store, parse_instant, parse_percentiles, table_of
from ingest.core.errors import StoreError, UsageError


def str_of(value: object) -> str:
    return type(value).__name__ if type(value) is object or isinstance(value, list) else repr(value)


LOG = Path(__file__).parents[1] / "data" / "fio" / "randrw" / "a_clat_hist.1.log"
ODD: list[Any] = [1.5, b"x", object(), [1], (None,), {"a": 1}, -1, 0, True, np.array([1, 2])]


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


@pytest.mark.parametrize("name", ["runs", "by", "where", "step", "begin", "end", "windows", "attribution"])
@pytest.mark.parametrize("value", ODD, ids=str_of)
def test_r3_a_question_of_other_types_is_refused_in_words(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name}.* takes .* not "):
        Question(**{name: value})


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
