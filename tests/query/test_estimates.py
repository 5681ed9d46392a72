"""What averaging would have said: every estimate equals its definition, worked out slowly from the logs; exact columns stay."""

from __future__ import annotations

import gzip
import lzma
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import parse_instant
from ingest.query.estimates import ESTIMATORS, estimated, parse_estimates, with_estimates
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from oracles import brute, estimates, per_io
from tests.doubles.origin import ZERO, Made, series

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
CBT = ROOT / "tests" / "data" / "estimates" / "cbt"
BOTH = ROOT / "tests" / "data" / "raw" / "both"
FIO = ROOT / "tests" / "data" / "fio"
SECOND = 10**9
T0 = 1_767_225_600 * SECOND  # a whole second, so that windows are the seconds that CBT counts
PERCENTS = ("50", "95", "99")
WANTED = parse_percentiles(",".join(PERCENTS))
MEANS, OF_PERCENTILES, WEIGHTED = "mean-of-means", "mean-of-percentiles", "weighted-mean"


def asked(origin, names: Sequence[str], wanted=WANTED, **words):
    """Return (table, estimates by name) of a question."""
    question = Question(**words)
    answer = origin.answer(question)
    table = percentiles(answer, Wanted(wanted))
    return table, {one.name: one for one in estimated(origin, question, answer, table, wanted, names)}


def close(found: float, expected) -> bool:
    return math.isclose(found, float(expected), rel_tol=1e-12)


# ---- CBT ---------------------------------------------------------------------------------------------------------------


def volumes(host: str, step: int = SECOND, zero: int = T0) -> list[Mapping[int, tuple]]:
    logs = {kind: [(CBT / f"output.{v}_{kind}.1.log.{host}").read_text() for v in (0, 1)] for kind in ("clat", "iops")}
    return [estimates.cbt_volume([clat], [iops], zero, step) for clat, iops in zip(logs["clat"], logs["iops"], strict=True)]


@pytest.fixture(scope="module")
def archive() -> Files:
    return Files([CBT], ReadOptions(t0=T0), jobs=1)


@pytest.mark.parametrize("step", [SECOND, 2 * SECOND, SECOND // 2])
def test_cbt_is_its_formula_in_every_window_of_every_host(archive, step) -> None:
    table, found = asked(archive, ["cbt"], by=("host",), step=step, force=True)
    told = {host: volumes(host, step) for host in ("client1", "client2")}
    checked = 0
    for row in range(len(table)):
        start, host = int(table.columns["start_ns"][row]), table.columns["host"][row]
        for percent in (*PERCENTS, "mean"):
            name = percent if percent == "mean" else f"p{percent}"
            scale = Fraction(SECOND, step) if percent == "mean" else 1
            assert close(found["cbt"].columns[name][row], estimates.cbt(told[host], start, percent) * scale), (start, host, name)
            checked += 1
    assert checked == 4 * len(table) >= 40


def test_cbt_says_of_a_slow_client_what_was_worked_out_from_its_own_code(archive) -> None:
    """Seconds 2 to 4 of client2: p50 2.2 to 3.2 ms, p99 5.7 to 7.6 ms, mean 28.8 to 33.6 ms; true are 1.4 to 1.5, 30 to 38, 2.5 to 3.0."""
    table, found = asked(
        archive, ["cbt"], where={"host": "client2"}, step=SECOND, begin=parse_instant("+2s"), end=parse_instant("+5s")
    )
    said = {name: (values.min() / 1e6, values.max() / 1e6) for name, values in found["cbt"].columns.items()}
    assert [f"{low:.1f} {high:.1f}" for low, high in (said["p50"], said["p99"], said["mean"])] == [
        "2.2 3.2",
        "5.7 7.6",
        "28.8 33.6",
    ]
    true = {name: (table.columns[name].min() / 1e6, table.columns[name].max() / 1e6) for name in ("p50", "p99", "mean")}
    assert (
        1.4 <= true["p50"][0] <= true["p50"][1] < 1.56 and 29 < true["p99"][0] <= true["p99"][1] < 38 and true["mean"][1] < 3.05
    )
    assert (found["cbt"].errors(table.columns)["p99"] < -0.75).all()


def test_cbt_shows_the_last_host_in_place_of_all(archive) -> None:
    table, found = asked(archive, ["cbt"], step=2 * SECOND)
    told = volumes("client2", 2 * SECOND)
    for row, start in enumerate(table.columns["start_ns"].tolist()):
        assert close(found["cbt"].columns["p99"][row], estimates.cbt(told, start, "99"))
    assert [note for note in found["cbt"].notes if "last by name" in note]
    _, alone = asked(archive, ["cbt"], step=2 * SECOND, by=("host",))
    assert not [note for note in alone["cbt"].notes if "last by name" in note]


def test_rows_of_one_ms_of_two_jobs_are_added_and_ops_go_by_the_selection(tmp_path) -> None:
    random = np.random.default_rng(5)
    texts = {}
    for job in (1, 2):
        lines = [
            (ms, int(random.integers(1000, 10**7)), int(random.integers(0, 2))) for ms in range(3, 4000, 7 if job == 1 else 14)
        ]
        texts[job] = "".join(f"{ms}, {value}, {op}, 4096, 0\n" for ms, value, op in lines)
        (tmp_path / f"output.0_clat.{job}.log").write_text(texts[job])
    files = Files([tmp_path], ReadOptions(t0=T0, fio_version=(3, 33)), jobs=1)
    for ops in (("read", "write"), ("write",)):
        where = {} if len(ops) > 1 else {"op": "write"}
        table, found = asked(files, ["cbt"], step=SECOND, where=where)
        told = estimates.cbt_volume(list(texts.values()), [], T0, SECOND, ops)
        for row, start in enumerate(table.columns["start_ns"].tolist()):
            for percent in PERCENTS:
                assert close(found["cbt"].columns[f"p{percent}"][row], estimates.quantile(told[start][0], percent))
    assert [note for note in found["cbt"].notes if "no _iops log" in note]


def test_without_a_clat_log_the_rows_are_the_means_of_intervals(tmp_path) -> None:
    for volume in (0, 1):
        name = f"output.{volume}_clat_hist.1.log.client2"
        (tmp_path / name).write_bytes(gzip.decompress((CBT / f"{name}.gz").read_bytes()))
    files = Files([tmp_path], ReadOptions(t0=T0, fio_version=(3, 33)), jobs=1)
    table, found = asked(files, ["cbt"], step="all")
    weighted, counts = Fraction(0), 0
    for volume in (0, 1):
        text = (tmp_path / f"output.{volume}_clat_hist.1.log.client2").read_text()
        bins, rows = brute.bins_in(text), brute.rows_of(text)["write"]
        count = sum(sum(counts.values()) for _, _, counts in rows)
        weighted += (
            estimates.quantile([estimates.mean_of_bins(Counter(counts), bins) for _, _, counts in rows if counts], "95") * count
        )
        counts += count
    assert close(found["cbt"].columns["p95"][0], weighted / counts) and counts == table.columns["count"][0]
    assert sorted(note.split(":")[1][:12] for note in found["cbt"].notes) == [" 2 of 2 jobs", " 2 of 2 jobs"]


def test_a_clat_log_that_is_damaged_is_left_out_and_counted(tmp_path) -> None:
    for path in CBT.glob("*client2*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "output.1_clat.1.log.client2").write_text("1, 2, one, 0\n")
    table, found = asked(Files([tmp_path], ReadOptions(t0=T0), jobs=1), ["cbt"], step=SECOND)
    assert [note for note in found["cbt"].notes if note.startswith("cbt: 1 log left out: not a log of whole numbers")]
    told = volumes("client2")[:1]
    assert close(found["cbt"].columns["p50"][3], estimates.cbt(told, int(table.columns["start_ns"][3]), "50"))


def test_cbt_of_other_formats_is_empty_and_says_so() -> None:
    table, found = asked(Files([FIO / "status-interval"], jobs=1), ["cbt", "histogram"], step="all")
    assert len(table) and all(np.isnan(values).all() for one in found.values() for values in one.columns.values())
    assert [note for note in found["cbt"].notes if "cannot be computed" in note]
    assert [note for note in found["histogram"].notes if "cannot be computed" in note]


# ---- averages of percentiles and of means -------------------------------------------------------------------------------


def example_series() -> tuple[list[tuple[dict[str, str], dict[int, Counter]]], int]:
    found, bins = [], 0
    for path, zero, labels in per_io_sources():
        text = per_io.text_of(path)
        bins = brute.bins_in(text)
        for op, rows in brute.rows_of(text, zero).items():  # log_hist_msec=1000, as its JSON says
            found.append(({**labels, "op": op}, brute.windows(brute.settled(rows, 1000, bins, stated=True), SECOND, SECOND)))
    return found, bins


def per_io_sources():
    for source in Files([EXAMPLE], jobs=1).found.sources:
        one = source.context.series
        yield source.path, source.context.zero.epoch_ns, {"host": one.host, "volume": one.volume, "job": one.job}


def added(windows: Mapping[int, Counter], step: int) -> dict[int, Counter]:
    out: dict[int, Counter] = {}
    for start, counts in windows.items():
        out.setdefault(start // step * step, Counter()).update(counts)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("step", [SECOND, 10 * SECOND])
def test_the_example_by_averages_is_what_a_slow_count_says(step) -> None:
    table, found = asked(Files([EXAMPLE], jobs=1), [MEANS, OF_PERCENTILES], step=step, by=("op",))
    streams, bins = example_series()
    # json+ tells of the last interval: windows from the last rows on hold more than the logs
    last = min(max(windows) for _, windows in streams) // step * step
    checked = 0
    for row, start in enumerate(table.columns["start_ns"].tolist()):
        if start >= last:
            continue
        mine = [windows for labels, windows in streams if labels["op"] == table.columns["op"][row]]
        fine = estimates.means(mine, bins, start, step)
        assert close(found[MEANS].columns["mean"][row], sum(fine) / len(fine))
        for percent in PERCENTS:
            assert close(found[MEANS].columns[f"p{percent}"][row], estimates.nearest(fine, percent))
            expected = estimates.mean_of_percentiles([added(windows, step) for windows in mine], bins, start, percent)
            assert close(found[OF_PERCENTILES].columns[f"p{percent}"][row], expected)
            checked += 1
    assert checked > 30


rows_drawn = st.lists(
    st.tuples(
        st.integers(0, 5), st.integers(0, 7), st.dictionaries(st.integers(0, 1500), st.integers(1, 30), min_size=1, max_size=4)
    ),
    min_size=1,
    max_size=30,
)


class MadeWithWindows(Made):
    """Rows that were made, with the windows that files and stores give."""

    def windows(self, question: Question):
        for part in self._parts(weighted=False):
            yield part.relabelled(question.key({}))


@given(rows_drawn, st.sampled_from([1, 3, "all"]), st.sampled_from([(), ("op",), ("host",), ("host", "job")]))
def test_random_series_by_averages_are_what_a_slow_count_says(drawn, width, by) -> None:
    names = [series(op, host, job) for op in ("read", "write") for host in ("a", "b") for job in ("1", "2")][:6]
    held: dict[tuple[int, int], Counter] = {}
    for code, at, counts in drawn:
        held.setdefault((code, at), Counter()).update(counts)
    origin = MadeWithWindows([(names[code], at, dict(counts)) for (code, at), counts in sorted(held.items())])
    step = width if width == "all" else width * SECOND
    table, found = asked(origin, [MEANS, OF_PERCENTILES, WEIGHTED], step=step, by=by)
    bins = 1856
    for row in range(len(table)):
        start, end = int(table.columns["start_ns"][row]), int(table.columns["end_ns"][row])
        low = (start - ZERO) // SECOND
        wanted = [code for code in range(6) if all(table.columns[name][row] == getattr(names[code], name) for name in by)]
        fine = [counts for (code, at), counts in held.items() if code in wanted and low <= at < (end - ZERO) // SECOND]
        means = [estimates.mean_of_bins(counts, bins) for counts in fine]
        together = [
            sum((counts for (c, at), counts in held.items() if c == code and low <= at < (end - ZERO) // SECOND), Counter())
            for code in wanted
        ]
        assert close(found[MEANS].columns["mean"][row], sum(means) / len(means))
        for percent in PERCENTS:
            told = [estimates.of_bins(counts, bins, percent) for counts in together if counts]
            assert close(found[OF_PERCENTILES].columns[f"p{percent}"][row], Fraction(sum(told), len(told)))
            weights = [sum(counts.values()) for counts in together if counts]
            weighted = Fraction(sum(value * weight for value, weight in zip(told, weights, strict=True)), sum(weights))
            assert close(found[WEIGHTED].columns[f"p{percent}"][row], weighted)
            assert close(found[MEANS].columns[f"p{percent}"][row], estimates.nearest(means, percent))


def test_one_series_averages_to_itself() -> None:
    table, found = asked(Files([EXAMPLE], jobs=1), [OF_PERCENTILES], step=10 * SECOND, by=("host", "volume", "job", "op"))
    for percent in ("50", "95"):
        exact, told = table.columns[f"p{percent}"], found[OF_PERCENTILES].columns[f"p{percent}"]
        known = ~np.isnan(exact)
        assert known.any() and (exact[known] == told[known]).all() and not np.isnan(told).any()


def test_means_of_windows_that_the_stored_step_does_not_divide_are_those_of_the_windows() -> None:
    files = Files([BOTH], ReadOptions(prefer="raw"), jobs=1)
    table, found = asked(files, [MEANS], step=250_000_000, by=("op",), where={"kind": "completion"})
    assert (found[MEANS].columns["p50"] == found[MEANS].columns["mean"]).all() and len(table) > 20
    assert np.allclose(found[MEANS].columns["mean"], table.columns["mean"], rtol=1e-12)
    assert "over 250ms" in found[MEANS].notes[0]


# ---- histogram logs against single I/Os ---------------------------------------------------------------------------------


def test_histogram_logs_are_held_against_each_io_to_the_ns(tmp_path) -> None:
    wanted = parse_percentiles("50,90,99,99.9")
    table, found = asked(Files([BOTH], jobs=1), ["histogram"], wanted, step="all", by=("op",), where={"kind": "completion"})
    one = found["histogram"]
    (tmp_path / "clat.log").write_bytes(lzma.decompress((BOTH / "a_clat.1.log.xz").read_bytes()))
    all_samples = per_io.samples(tmp_path / "clat.log")
    errors = one.errors(table.columns)
    for row, op in enumerate(table.columns["op"].tolist()):
        for percentile in wanted:
            values = [value for _, value in all_samples[op]]
            assert one.truth[percentile.name][row] == per_io.nearest_rank(values, percentile.text)
            assert one.columns[percentile.name][row] == table.columns[percentile.name][row]
            assert abs(errors[percentile.name][row]) < 1 / 128
    assert [f"{one.truth[p.name][0] / 1e3:.1f}" for p in wanted] == [
        "67.5",
        "135.6",
        "1562.4",
        "4543.5",
    ]  # docs/explanation/numbers.md


def test_windows_of_single_ios_are_their_own_and_other_groups_are_empty() -> None:
    files = Files([EXAMPLE], jobs=1)
    table, found = asked(files, ["histogram"], step=10 * SECOND, by=("host", "volume"))
    one = found["histogram"]
    complete = (table.columns["host"] == "ceph-a") & (table.columns["volume"] == "0")
    assert (~np.isnan(one.truth["p50"]) == complete).all() and (~np.isnan(one.columns["p50"]) == complete).all()
    zeros = {str(path.name): zero for path, zero, _ in per_io_sources()}
    ends: dict[int, list[int]] = {}
    for path in sorted(EXAMPLE.rglob("*_clat.*")):
        zero = zeros[path.name.replace("_clat.", "_clat_hist.")]
        for samples in per_io.samples(path).values():
            for stamp, value in samples:
                ends.setdefault(brute.window_of(zero + stamp * 10**6, 10 * SECOND), []).append(value)
    for row in np.flatnonzero(complete):
        values = ends[int(table.columns["start_ns"][row])]
        assert one.truth["p99"][row] == per_io.nearest_rank(values, "99")
    assert [note for note in one.notes if "10 of 12 jobs have one of the two logs only" in note]


def test_the_answer_of_preferred_raw_logs_is_compared_just_so() -> None:
    words = {"step": "all", "by": ("op",), "where": {"kind": "completion"}}
    _, hist = asked(Files([BOTH], jobs=1), ["histogram"], **words)
    table, raw = asked(Files([BOTH], ReadOptions(prefer="raw"), jobs=1), ["histogram"], **words)
    for name in ("p50", "p99"):
        assert (hist["histogram"].columns[name] == raw["histogram"].columns[name]).all()
        assert (hist["histogram"].truth[name] == raw["histogram"].truth[name]).all()


def test_too_many_single_ios_are_refused(monkeypatch) -> None:
    monkeypatch.setattr("ingest.query.estimates.MOST_SAMPLES", 1000)
    with pytest.raises(UsageError, match="at most 1,000 I/Os"):
        asked(Files([BOTH], jobs=1), ["histogram"], step="all", where={"kind": "completion"})


# ---- all of them --------------------------------------------------------------------------------------------------------


def test_exact_columns_are_never_touched() -> None:
    files = Files([EXAMPLE], jobs=1)
    table, found = asked(files, ESTIMATORS, step=10 * SECOND, by=("host", "op"))
    plain = percentiles(files.answer(Question(step=10 * SECOND, by=("host", "op"))), Wanted(WANTED))
    wide = with_estimates(table, list(found.values()))
    assert list(wide.columns)[: len(plain.columns)] == list(plain.columns)
    for name, column in plain.columns.items():
        assert np.array_equal(wide.columns[name], column, equal_nan=column.dtype.kind == "f")


def test_an_estimate_of_nothing_there_is_refused() -> None:
    assert parse_estimates("cbt, mean-of-means,cbt") == ("cbt", "mean-of-means")
    for text, said in (("avg", "no estimator 'avg'"), (" , ", "at least one")):
        with pytest.raises(UsageError, match=said):
            parse_estimates(text)
    with pytest.raises(UsageError, match="in-flight"):
        asked(Files([EXAMPLE], jobs=1), [MEANS], step=10 * SECOND, attribution="in-flight")
    with pytest.raises(UsageError, match="not a store"):
        asked(Made([(series(), 0, {5: 3})]), ["cbt"], step="all")
