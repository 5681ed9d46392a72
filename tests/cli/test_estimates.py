"""`percentiles --estimate`: columns of csv and ndjson, the table for people, refusals, and files and a store that agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.test_commands import EXAMPLE, ROOT, rows, tailboard

CBT = ROOT / "tests" / "data" / "estimates" / "cbt"
AVERAGES = "mean-of-percentiles,mean-of-means"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    url = f"sqlite:{tmp_path_factory.mktemp('store') / 's.db'}"
    assert tailboard("load", EXAMPLE, "--run", "x", "--store", url).returncode == 0
    return url


def test_csv_has_the_estimates_behind_the_exact_columns() -> None:
    words = ("percentiles", CBT, "-p", "50,99", "--step", "5s", "--by", "host", "--format", "csv")
    plain, wide = tailboard(*words), tailboard(*words, "--estimate", f"cbt,{AVERAGES}")
    header = wide.stdout.splitlines()[0].split(",")
    assert header == (
        "start,end,host,count,rate,min,mean,max,exact,complete,failed,p50,p99,"
        "mean_cbt,mean_cbt_error,p50_cbt,p50_cbt_error,p99_cbt,p99_cbt_error,"
        "p50_mean_of_percentiles,p50_mean_of_percentiles_error,p99_mean_of_percentiles,p99_mean_of_percentiles_error,"
        "mean_mean_of_means,mean_mean_of_means_error,p50_mean_of_means,p50_mean_of_means_error,p99_mean_of_means,p99_mean_of_means_error"
    ).split(",")
    exact = len(plain.stdout.splitlines()[0].split(","))
    assert [line.split(",")[:exact] for line in wide.stdout.splitlines()] == [
        line.split(",") for line in plain.stdout.splitlines()
    ]
    for row in rows(wide):
        assert float(row["p99_cbt_error"]) == pytest.approx(float(row["p99_cbt"]) / float(row["p99"]) - 1)
        assert row["host"] != "client2" or float(row["p99_cbt_error"]) < -0.7
    assert "tailboard: mean-of-means: percentiles of" in wide.stderr


def test_units_change_latencies_and_not_errors() -> None:
    words = ("percentiles", CBT, "-p", "99", "--step", "all", "--format", "csv", "--estimate", "cbt")
    (plain,), (us,) = rows(tailboard(*words)), rows(tailboard(*words, "--unit", "us"))
    assert float(us["p99_cbt"]) == pytest.approx(float(plain["p99_cbt"]) / 1000)
    assert us["p99_cbt_error"] == plain["p99_cbt_error"]


def test_ndjson_has_null_where_nothing_can_be_computed() -> None:
    done = tailboard("percentiles", CBT, "-p", "99", "--step", "all", "--format", "ndjson", "--estimate", "histogram")
    (line,) = done.stdout.splitlines()
    told = json.loads(line)
    assert told["p99_samples"] is told["p99_histogram"] is told["p99_histogram_error"] is None and told["p99"] > 0
    assert "histogram: cannot be computed here" in done.stderr


def test_the_table_shows_exact_above_wrong_with_the_error() -> None:
    done = tailboard("percentiles", CBT, "-p", "50,99", "--step", "all", "--estimate", "cbt,mean-of-percentiles")
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "percentiles and what averaging would say of cbt: completion latency" in text
    assert "note: cbt: hosts are not combined" in text
    exact, cbt, mean = (line.split() for line in text.splitlines() if re.search(r" (exact|cbt|mean-of-percentiles)  ", line))
    assert exact[1:] == ["6,003", "exact", "1.75ms", "1.00ms", "27.9ms"]
    assert cbt == ["cbt", "28.2ms", "x16", "2.32ms", "+131", "%", "7.62ms", "-73", "%"]
    assert mean[0] == "mean-of-percentiles" and mean[-1] == "%"


def test_the_table_of_groups_names_them_once(tmp_path: Path) -> None:
    done = tailboard("percentiles", CBT, "-p", "99", "--step", "all", "--by", "host", "--estimate", "mean-of-means")
    lines = [line for line in done.stdout.splitlines() if "exact" in line or "mean-of-means  " in line]
    assert [line.split()[1] for line in lines if "exact" in line and "by" not in line] == ["client1", "client2"]
    assert len([line for line in lines if line.split()[0] == "mean-of-means"]) == 2


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["--step", "10s"], ["--step", "all", "--by", "host"], ["--by", "op", "--where", "host=ceph-[ab]"]]
)
def test_a_store_averages_to_the_same_as_files(store, words) -> None:
    asked = ("-p", "50,99", *words, "--estimate", AVERAGES, "--format", "csv")
    ours, theirs = tailboard("percentiles", store, *asked), tailboard("percentiles", EXAMPLE, *asked)
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == theirs.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--estimate", "cbt"], "--estimate cbt reads the logs themselves: name their files or folder, not a store"),
        (["--estimate", "histogram"], "--estimate histogram reads the logs themselves"),
        (
            ["--estimate", "average"],
            "no estimator 'average': --estimate takes cbt, mean-of-means, mean-of-percentiles, weighted-mean, histogram",
        ),
        (["--estimate", "mean-of-means", "--format", "png"], "--estimate goes with --format table, csv, ndjson, not png"),
        (["--estimate", "mean-of-means", "--format", "fiologparser"], "not fiologparser"),
    ],
)
def test_what_cannot_be_estimated_is_refused_in_a_sentence(store, words, said) -> None:
    done = tailboard("percentiles", store, *words)
    assert done.returncode == 2 and said in done.stderr and not done.stdout


def test_accuracy_widens_the_windows_of_estimates_too() -> None:
    done = tailboard(
        "percentiles", CBT, "-p", "99", "--step", "1s", "--accuracy", "30%", "--format", "csv", "--estimate", AVERAGES
    )
    found = rows(done)
    assert 0 < len(found) < 11 and all(row["p99_mean_of_percentiles"] and row["p99_lo"] is not None for row in found)
