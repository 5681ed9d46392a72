"""compare and trend as their users run them: every format, files as stores, exit status, and a sentence for each mistake."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from ingest.query.compare import Pair, grouped
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.view import vega
from ingest.view.terminal import comparison
from tests.browsing import missing
from tests.cli.test_commands import EXAMPLE, FIO, ROOT, refused, rows, tailboard
from tests.query.nights import drawn, written
from tests.store.grounds import grounds, loaded
from tests.vega.drawn import DARK, EACH_MAJOR, LIGHT, drawing, installed

COMPARED = "percentile,baseline,run,ratio,lo,hi,count_baseline,count_run,verdict,failed_baseline,failed_run,failed_lo,failed_hi,failed_verdict"
TRENDED = "run,start,percentile,value,lo,hi,count,level,change,measure"
EXAMPLE_COUNT = 59015
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Path:
    """Eleven nights, from the eighth on a third slower; and a bad one, in which the writes of h2 have a tail 30 % longer."""
    folder = tmp_path_factory.mktemp("nights")
    for number in range(11):
        written(folder / f"nightly-{number + 1}", drawn(number, 600, by=1.35 if number >= 6 else 1.0), number)
    written(folder / "good", drawn(101), 20)
    written(folder / "bad", drawn(102, slow=("h2", "write")), 21)
    return folder


@pytest.fixture(scope="module", params=["sqlite", *(pytest.param(one, marks=pytest.mark.slow) for one in ("files", "double"))])
def sources(request, nights: Path, tmp_path_factory):
    """The same runs as folders, in SQLite, in Elasticsearch: words for the command line, and its environment."""
    names = [path.name for path in sorted(nights.iterdir())]
    if request.param == "files":
        yield [nights / name for name in names]
        return
    with grounds(request.param, tmp_path_factory.mktemp("store")) as ground:
        for name in names:
            loaded(ground.url, [nights / name], run=name)
        yield [ground.url]


def of_nights(nights: Path, first: int = 1, last: int = 11) -> list[Path]:
    return [nights / f"nightly-{number}" for number in range(first, last + 1)]


def pair(nights: Path, *words: object, baseline: str = "good", run: str = "bad", **kwargs):
    return tailboard("compare", nights / baseline, nights / run, "--baseline", baseline, "--run", run, *words, **kwargs)


# ---- compare ---------------------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.slow
def test_files_sqlite_and_elasticsearch_compare_alike(sources, nights: Path) -> None:
    words = ("--baseline", "good", "--run", "bad", "--by", "host,op", "--format", "csv")
    found = tailboard("compare", *sources, *words)
    assert found.stdout == pair(nights, "--by", "host,op", "--format", "csv").stdout
    table = rows(found)
    assert found.stdout.splitlines()[0] == f"host,op,{COMPARED}"
    assert len(table) == 24
    assert {(row["host"], row["op"], row["percentile"]) for row in table[:2]} == {("h2", "write", "95"), ("h2", "write", "99")}
    assert all(float(row["lo"]) > 1.1 for row in table[:2])
    assert {(row["count_baseline"], row["count_run"]) for row in table} == {("4000", "4000")}


@pytest.mark.slow
def test_the_example_compared_with_itself_has_every_count_and_percentile(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "again")
    found = rows(
        tailboard("compare", EXAMPLE, tmp_path / "again", "--baseline", "cbt-archive", "--run", "again", "--format", "csv")
    )
    assert [float(row["ratio"]) for row in found] == [1.0] * 4
    assert [(row["count_baseline"], row["count_run"]) for row in found] == [(str(EXAMPLE_COUNT),) * 2] * 4
    by_host = tailboard(
        "compare",
        EXAMPLE,
        tmp_path / "again",
        "--baseline",
        "cbt-archive",
        "--run",
        "again",
        "--by",
        "host,op",
        "--format",
        "csv",
        "--from",
        "+10s",
    )
    whole = rows(
        tailboard("percentiles", EXAMPLE, "--step", "all", "--by", "host,op", "--from", "+10s", "--format", "csv", "-p", "99")
    )
    expected = {(row["host"], row["op"]): (row["count"], row["p99"]) for row in whole}
    told = {(row["host"], row["op"]): (row["count_run"], row["run"]) for row in rows(by_host) if row["percentile"] == "99"}
    assert told == expected


@pytest.mark.slow
def test_ndjson_has_the_values_of_the_csv_and_units_are_of_latencies_alone(nights: Path) -> None:
    plain = rows(pair(nights, "--by", "op", "--format", "csv", "-p", "50,99.99"))
    lines = [json.loads(line) for line in pair(nights, "--by", "op", "--format", "ndjson", "-p", "50,99.99").stdout.splitlines()]
    micro = rows(pair(nights, "--by", "op", "--format", "csv", "-p", "50,99.99", "--unit", "us"))
    assert [list(line) for line in lines] == [list(plain[0])] * len(plain)
    for line, row, scaled in zip(lines, plain, micro, strict=True):
        for name, cell in row.items():
            assert line[name] == (cell if name in ("op", "verdict", "failed_verdict") else float(cell) if cell else None)
        assert {name: row[name] for name in ("ratio", "lo", "hi", "percentile", "count_run")} == {
            name: scaled[name] for name in ("ratio", "lo", "hi", "percentile", "count_run")
        }
        assert float(scaled["run"]) == pytest.approx(float(row["run"]) / 1000)


def test_the_table_says_what_may_be_said(nights: Path) -> None:
    shown = pair(nights, "--by", "host,op", "-p", "50,99,99.9,99.99").stdout
    assert (
        "bad against the baseline good: completion latency, 24,000 and 24,000 samples, error bound of the bins ± 0.78 %" in shown
    )
    assert "95 % for all rows together, by whole windows in batches" in shown
    lines = [line.strip() for line in shown.splitlines() if re.match(r"\s*h\d", line)]
    drawn_lines, lines = lines[:6], lines[6:]
    assert re.match(r"h2 write p99 +\| .*-o-.* 1\.296 times, slower$", drawn_lines[0])
    assert re.match(r"h2 +write +p50 .* cannot tell$", lines[0])  # 0.945 to 1.048: further than 5 % from 1
    assert re.match(
        r"all +p50 .* the same within \d", re.sub(r"^ *p50", "all p50", pair(nights, "-p", "50").stdout.splitlines()[-2])
    )
    assert re.match(r"h2 +write +p99 .* 1\.\d{3} +1\.\d{3} to 1\.\d{3} .* slower$", lines[1])
    assert re.match(r"h2 +write +p99\.9 ", lines[2])
    assert re.match(r"h2 +write +p99\.99 .* too few samples: 10,000 at least$", lines[3])
    assert "note: p99.99 needs 10,000 samples: 6 of 6 rows have fewer" in shown
    assert sum("cannot tell" in line for line in lines) >= 3


def test_groups_that_only_one_run_has_are_listed(nights: Path, tmp_path: Path) -> None:
    shutil.copytree(nights / "good", tmp_path / "less")
    shutil.rmtree(tmp_path / "less" / "clients" / "h3")
    words = ("--baseline", "good", "--run", "less", "--by", "host", "-p", "99")
    done = tailboard("compare", nights / "good", tmp_path / "less", *words, "--format", "csv")
    assert "only in good: h3" in done.stderr
    last = rows(done)[-1]
    assert (last["host"], last["run"], last["ratio"], last["count_baseline"], last["count_run"]) == ("h3", "", "", "8000", "0")
    assert "only in the baseline" in tailboard("compare", nights / "good", tmp_path / "less", *words).stdout


@pytest.mark.parametrize(
    ("limit", "words", "status"), [("1.1", (), 1), ("1.35", (), 0), ("1.1", ("-p", "50"), 0), ("1.1", ("--where", "host=h1"), 0)]
)
def test_fail_above_judges_by_the_lower_bound(nights: Path, limit: str, words: tuple[str, ...], status: int) -> None:
    done = pair(nights, "--by", "host,op", "--format", "csv", "--fail-above", limit, *words)
    assert done.returncode == status, done.stderr
    assert len(done.stdout.splitlines()) > 2
    assert ("above 1.1: h2 write p9" in done.stderr) == bool(status)
    above = [row for row in csv.DictReader(io.StringIO(done.stdout)) if row["lo"] and float(row["lo"]) > float(limit)]
    assert bool(above) == bool(status)


@pytest.mark.slow
def test_fail_above_takes_no_estimate_for_a_certainty(nights: Path) -> None:
    found = rows(pair(nights, "--format", "csv", "--by", "host,op"))
    certain = max(float(row["lo"]) for row in found if row["lo"])
    assert any(float(row["ratio"]) > certain + 0.01 for row in found if row["ratio"])
    for limit, status in ((certain + 0.001, 0), (certain - 0.001, 1)):
        assert pair(nights, "--format", "csv", "--by", "host,op", "--fail-above", limit).returncode == status


def test_fail_above_says_where_nothing_can_be_judged(nights: Path) -> None:
    done = pair(nights, "-p", "99.999", "--fail-above", "1.2")
    assert done.returncode == 0
    assert "cannot tell: no ratio here has a lower bound, so nothing was judged" in done.stderr


@pytest.mark.slow
def test_several_runs_of_a_side_are_added_up_when_asked(nights: Path, tmp_path: Path) -> None:
    words = ("compare", *of_nights(nights), "--baseline", "nightly-[1-6]", "--run", "nightly-[789]", "--format", "csv")
    two = [*words[:-3], "nightly-[78]", "--format", "csv"]
    refused(tailboard(*two), 2, "--run nightly-[78] matches 2 runs", "3 or more for the spread between them", "add --merge-runs")
    between = rows(tailboard(*words))
    assert {row["verdict"] for row in between if row["percentile"] in ("50", "95")} == {"slower"}
    found = rows(tailboard(*words, "--merge-runs"))
    assert [(row["count_baseline"], row["count_run"]) for row in found] == [(str(6 * 3600), str(3 * 3600))] * 4
    assert all(1.25 < float(row["ratio"]) < 1.45 for row in found if row["percentile"] in ("50", "95"))


def test_shifts_double_one_over_one_minus_q(nights: Path) -> None:
    found = rows(pair(nights, "--shifts", "--where", "host=h2", "--where", "op=write", "--format", "csv"))
    shares = sorted(float(row["percentile"]) for row in found)
    assert [round(1 / (1 - share / 100)) for share in shares] == [2**power for power in range(1, 12)]
    lower = {float(row["percentile"]): float(row["lo"]) for row in found if row["lo"]}
    assert lower[50] <= 1 and lower[96.875] > 1.1


def test_logs_of_other_tools_and_unlike_kinds(tmp_path: Path) -> None:
    log = ROOT / "tests" / "data" / "hdr" / "tagged.hlog"
    for name in ("one", "two"):
        shutil.copy(log, tmp_path / f"{name}.hlog")
    words = (
        "compare",
        tmp_path / "one.hlog",
        tmp_path / "two.hlog",
        "--baseline",
        "one",
        "--run",
        "two",
        "--recorded-unit",
        "ns",
    )
    found = rows(tailboard(*words, "--by", "op", "--where", "kind=*", "--format", "csv", "-p", "50"))
    assert [list(row)[:3] for row in found] == [["kind", "op", "percentile"]] * len(found)
    assert {row["kind"] for row in found} >= {"response", "service", "wait"}
    assert {row["ratio"] for row in found} == {"1"}
    (tmp_path / "hist").mkdir()
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", tmp_path / "hist")
    mixed = ("compare", tmp_path / "hist", tmp_path / "two.hlog", "--baseline", "hist", "--run", "two", "--recorded-unit", "ns")
    refused(tailboard(*mixed), 2, "hist holds completion latency, two", "unlike kinds are not compared", "--unlike-kinds")
    asked = tailboard(*mixed, "--unlike-kinds", "--format", "csv")
    assert len(rows(asked)) == 4
    assert "unlike bins are compared as they are" in asked.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<svg")])
def test_pictures(nights: Path, form: str, start: bytes) -> None:
    pytest.importorskip("vl_convert")
    for words in (
        ("compare", nights / "good", nights / "bad", "--baseline", "good", "--run", "bad"),
        ("trend", *of_nights(nights), "--by", "op"),
    ):
        done = tailboard(*words, "--format", form, text=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(start)
        assert len(done.stdout) > 10_000


# ---- trend -----------------------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.slow
def test_files_sqlite_and_elasticsearch_have_one_trend(sources, nights: Path) -> None:
    words = ("--run", "nightly-*", "--by", "op", "-p", "50,99", "--format", "csv")
    found = tailboard("trend", *sources, *words)
    assert found.stdout == tailboard("trend", *of_nights(nights), *words).stdout
    table = rows(found)
    assert found.stdout.splitlines()[0] == f"op,{TRENDED}"
    assert [row["run"] for row in table[:11]] == [f"nightly-{number}" for number in range(1, 12)]
    assert {(row["op"], row["percentile"], row["run"]) for row in table if row["change"]} == {
        (op, p, "nightly-7") for op in ("read", "write") for p in ("50", "99")
    }
    assert all(1.25 < float(row["change"]) < 1.45 for row in table if row["change"])
    starts = [row["start"] for row in table[:11]]
    assert starts == sorted(starts) and len(set(starts)) == 11
    assert all(row["count"] == "1800" for row in table)


@pytest.mark.slow
def test_trend_as_ndjson_and_table(nights: Path) -> None:
    words = ("trend", *of_nights(nights), "-p", "99")
    plain = rows(tailboard(*words, "--format", "csv"))
    lines = [json.loads(line) for line in tailboard(*words, "--format", "ndjson").stdout.splitlines()]
    for line, row in zip(lines, plain, strict=True):
        assert [line[name] for name in ("run", "start", "value", "count")] == [
            row["run"],
            row["start"],
            float(row["value"]),
            float(row["count"]),
        ]
    shown = tailboard(*words).stdout
    assert "trend of 11 runs, nightly-1 to nightly-11: completion latency, 39,600 samples" in shown
    charts = re.findall(
        r"p99  nightly-(\d+) .*?  +(1\.\d{3} times)? +(-*o-*)$", re.sub(r" +$", "", shown, flags=re.MULTILINE), re.MULTILINE
    )
    assert [number for number, *_ in charts] == [str(number) for number in range(1, 12)]
    assert [bool(change) for _, change, _ in charts] == [number == 7 for number in range(1, 12)]


@pytest.mark.parametrize(
    ("last", "words", "status", "told"),
    [
        (7, ("--fail-above", "1.2"), 1, "above 1.2: nightly-7: p50 is 1.3"),
        pytest.param(7, ("--fail-above", "1.4"), 0, "", marks=pytest.mark.slow),
        (6, ("--fail-above", "1.2"), 0, ""),
        pytest.param(9, ("--fail-above", "1.2", "--last", "2"), 0, "", marks=pytest.mark.slow),
        (9, ("--fail-above", "1.2", "--last", "8"), 1, "above 1.2: nightly-9: p50 is 1.3"),
        pytest.param(
            1,
            ("--fail-above", "1.2"),
            0,
            "nothing of nightly-1 has a run before it, so nothing was judged",
            marks=pytest.mark.slow,
        ),
        (3, ("--fail-above", "1.2", "-p", "99.99"), 0, "cannot tell"),
    ],
)
def test_the_newest_run_is_named_where_it_is_a_regression(
    nights: Path, last: int, words: tuple[str, ...], status: int, told: str
) -> None:
    chosen = () if "-p" in words else ("-p", "50")
    done = tailboard("trend", *of_nights(nights, 1, last), *chosen, "--format", "csv", *words)
    assert done.returncode == status, done.stderr
    assert told in done.stderr
    assert ("above" in done.stderr) == bool(status)


@pytest.mark.cases(1)
@pytest.mark.slow
def test_several_measures_are_alike_of_files_sqlite_and_elasticsearch(sources, nights: Path) -> None:
    words = ("--run", "nightly-*", "--by", "op", "-p", "50,99", "--throughput", "--above", "300us,5ms", "--format", "csv")
    found = tailboard("trend", *sources, *words)
    assert found.stdout == tailboard("trend", *of_nights(nights), *words).stdout
    table = rows(found)
    measures = ("p50", "p99", "throughput", "above 300us", "above 5ms")
    assert [row["measure"] for row in table[::11]] == [*measures, *measures]
    whole = rows(
        tailboard("percentiles", nights / "nightly-8", "--step", "all", "--by", "op", "--below", "300us", "--format", "csv")
    )
    for row in whole:
        mine = {each["measure"]: each for each in table if (each["op"], each["run"]) == (row["op"], "nightly-8")}
        assert mine["throughput"]["value"] == row["rate"]
        assert float(mine["above 300us"]["value"]) == pytest.approx(1 - float(row["below_300us"]))
        assert {mine[name]["percentile"] for name in measures} == {"50", "99", ""}
        assert {mine[name]["count"] for name in measures} == {row["count"]}
    assert {row["run"] for row in table if row["change"] and row["measure"] == "above 300us"} == {"nightly-7"}
    assert not [row for row in table if row["change"] and row["measure"] in ("throughput", "above 5ms")]


def test_units_are_of_percentiles_alone_and_ndjson_has_the_measure(nights: Path) -> None:
    words = ("-p", "99", "--throughput", "--above", "5ms", "--format", "csv")
    table = rows(tailboard("trend", *of_nights(nights, 1, 2), *words))
    micro = rows(tailboard("trend", *of_nights(nights, 1, 2), *words, "--unit", "us"))
    for row, scaled in zip(table, micro, strict=True):
        scale = 1000 if row["percentile"] else 1
        assert float(row["value"]) == pytest.approx(scale * float(scaled["value"]))
    line = json.loads(tailboard("trend", *of_nights(nights, 1, 2), *words[:-1], "ndjson").stdout.splitlines()[-1])
    assert (line["measure"], line["percentile"], line["change"]) == ("above 5ms", None, None)


@pytest.mark.slow
def test_a_fall_of_throughput_fails(tmp_path: Path) -> None:
    for number in range(12):
        written(tmp_path / f"n{number}", drawn(number, 400 - number if number < 9 else 200), number, seconds=10)
    words = ("trend", *(tmp_path / f"n{number}" for number in range(12)), "-p", "50", "--format", "csv", "--fail-above", "1.2")
    assert tailboard(*words).returncode == 0
    done = tailboard(*words, "--throughput")
    assert done.returncode == 1
    assert re.search(
        r"above 1\.2: throughput has been 0\.5\d* times the level before since n9, at most 0\.\d+, not accepted .*; n11 itself is 0\.5",
        done.stderr,
    )


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "sqlite", "double"])
def test_c4_a_change_fails_until_it_is_accepted(kind: str, nights: Path, tmp_path: Path) -> None:
    """Five slow nights, of which --last 3 sees nothing any more."""
    words = ("--run", "nightly-*", "-p", "50", "--format", "csv", "--fail-above", "1.2")
    if kind == "files":
        started: tuple = ("trend", *of_nights(nights))
        done = tailboard(*started, *words)
        assert done.returncode == 1 and "if that is the new normal: --accept nightly-7" in done.stderr
        assert tailboard(*started, *words, "--last", "3").returncode == 0
        done = tailboard(*started, *words, "--accept", "nightly-7")
        assert done.returncode == 0 and "above" not in done.stderr and "cannot tell" not in done.stderr
        refused(tailboard(*started, *words, "--accept", "x"), 2, "--accept x: no run of that name is in this trend")
        return
    with grounds(kind, tmp_path) as ground:
        for number in range(1, 12):
            labels = {"commit": "3fa" if number < 7 else "2b1", "rack": "4"}
            loaded(ground.url, [nights / f"nightly-{number}"], run=f"nightly-{number}", labels=labels)
        done = tailboard("trend", ground.url, *words)
        assert done.returncode == 1
        assert "times the level before since nightly-7 (commit 3fa to 2b1), at least 1.3" in done.stderr
        assert "if that is the new normal: tailboard runs mark --accept --run nightly-7" in done.stderr
        shown = tailboard("trend", ground.url, *words[:4]).stdout
        first = r"nightly-11 is slower than before: p50 has been 1\.3\d* times .* since nightly-7 \(commit 3fa to 2b1\), .*; nightly-11"
        assert re.match(first, shown)
        refused(tailboard("mark", "--accept", "--run", "nightly-*", "--store", ground.url), 2, "name the one run")
        refused(tailboard("mark", "--accept", "--run", "nightly-7", "--at", "+1s", "--store", ground.url), 2, "leave out")
        marked = tailboard("mark", "--accept", "--run", "nightly-7", "checksums are on", "--store", ground.url)
        assert marked.returncode == 0 and "the level of nightly-7 is accepted" in marked.stderr
        done = tailboard("trend", ground.url, *words)
        assert done.returncode == 0 and "above" not in done.stderr and "cannot tell" not in done.stderr
        show = json.loads(tailboard("runs", "show", "nightly-7", "--store", ground.url).stdout)
        assert [mark["text"] for mark in show["marks"]] == ["new level accepted: checksums are on"]


def test_runs_without_a_clock_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        (tmp_path / f"n{number}").mkdir()
        shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", tmp_path / f"n{number}")
    done = tailboard("trend", *(tmp_path / f"n{number}" for number in (10, 9, 1)), "--format", "csv")
    assert [(row["run"], row["start"]) for row in rows(done)] == [("n1", ""), ("n9", ""), ("n10", "")]
    assert "no start time: the runs are in the order of their names" in done.stderr
    assert "3 runs are too few to detect a change of level: it takes 10" in done.stderr


# ---- the spec --------------------------------------------------------------------------------------------------------


def trend_rows(cases: list[tuple[str, str, float, float, float, float]]) -> list[dict]:
    return [
        {
            "i": place,
            "run": run,
            "t": 1_795_208_404_000 + place,
            "label": label,
            "v": v,
            "lo": lo,
            "hi": hi,
            "n": 100,
            "open": 0,
            "level": v,
            "change": change,
        }
        for place, (run, label, v, lo, hi, change) in enumerate(cases)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("major", EACH_MAJOR)
@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_the_trend_is_drawn_without_a_warning_in_both_versions_of_vega(browser, major: int, colors: dict) -> None:  # noqa: F811
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    cases = {
        "usual": [("a", "p99", 5e5, 4e5, 6e5, 0), ("b", "p99", 7e5, 6e5, 8e5, 1.4), ("</script><b>", "p50", 1e5, 9e4, 2e5, 0)],
        "one": [("a", "p99", 5e5, 5e5, 5e5, 0)],
        "zero": [("a", "p99", 0, 0, 0, 0)],
        "none": [],
    }
    with drawing(browser, major, colors) as page:
        for told in cases.values():
            spec = vega.with_values(
                vega.spec("trend"),
                {"points": {name: [row[name] for row in trend_rows(told)] for name in trend_rows(cases["usual"])[0]}},
            )
            page.draw(spec)
            drawn_rows = [case for case in told if case[3] > 0]
            assert len(page.marks("dots")) == len(page.marks("bounds")) == len(drawn_rows)
            assert [mark["text"] for mark in page.marks("steps")] == ["▲ 1.40 times" for case in told if case[5]]
            middles = {case[0]: (mark["y1"] + mark["y2"]) / 2 for case, mark in zip(drawn_rows, page.marks("dots"), strict=True)}
            order = sorted(middles, key=middles.get)
            assert order == sorted(middles, key=lambda run: -dict((case[0], case[2]) for case in drawn_rows)[run])


def pair_of(nights: Path, run: str = "bad", by: tuple[str, ...] = ()) -> tuple[Pair, Pair]:
    """The distributions of good and another night, and both over time."""
    files = [Files([nights / name]) for name in ("good", run)]
    whole, windows = (
        [one.answer(Question(by=by if step == "all" else (), step=step)) for one in files] for step in ("all", SECOND)
    )
    return grouped(*whole, by), Pair(*windows)


def test_the_picture_of_a_comparison_holds_both_runs(nights: Path) -> None:
    pair, windows = pair_of(nights, by=("op",))
    curve = vega.curve(comparison.both(pair))
    assert set(curve["label"]) == {f"{op}, {side}" for op in ("read", "write") for side in ("baseline", "run")}
    for place, seed in (("baseline", 101), ("run", 102)):
        samples = drawn(seed, slow=("h2", "write") if seed == 102 else None)
        last = [n for n, label in zip(curve["n"], curve["label"], strict=True) if label == f"write, {place}"][-1]
        assert last == sum(len(values) for (_, op), values in samples.items() if op == "write")
    cells = comparison.cells(windows)
    for side in ("baseline", "run"):
        mine = [at for at, run in enumerate(cells["run"]) if run == side]
        assert sum(cells["c"][at] for at in mine) == 24_000
        assert sorted({cells["t"][at] for at in mine}) == [1000 * second for second in range(20)]
        assert {cells["name"][at] for at in mine} == {"baseline: good" if side == "baseline" else "run: bad"}


@pytest.mark.slow
@pytest.mark.parametrize("major", EACH_MAJOR)
def test_a_comparison_is_drawn_without_a_warning_in_both_versions_of_vega(browser, nights: Path, major: int) -> None:  # noqa: F811
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    pair, windows = pair_of(nights)
    cells = comparison.cells(windows)
    with drawing(browser, major) as page:
        page.draw(comparison.comparison_picture(pair, windows))
        assert len(page.marks("curves")) > 100
        heat = page.marks("heat")
        assert len(heat) == len(cells["c"])
        shades: dict[float, set[str]] = {}
        for cell, mark in zip(
            sorted(zip(cells["run"], cells["t"], cells["lower"], cells["c"], strict=True)),
            sorted(heat, key=lambda one: (one["x1"], -one["y1"])),
            strict=True,
        ):
            shades.setdefault(cell[3], set()).add(mark["fill"])
        assert all(len(colors) == 1 for colors in shades.values())
        assert len(shades) > 20
        page.draw(comparison.comparison_picture(pair))
        assert not page.marks("heat")


@pytest.mark.slow
def test_runs_that_are_added_up_have_no_one_heat_map(nights: Path) -> None:
    pytest.importorskip("vl_convert")
    words = ("compare", *of_nights(nights), "--baseline", "nightly-[1-6]", "--merge-runs", "--format", "svg")
    assert "s elapsed" not in tailboard(*words, "--run", "nightly-[789]").stdout
    assert "s elapsed" in pair(nights, "--format", "svg").stdout


# ---- what goes wrong -------------------------------------------------------------------------------------------------

PAIR = ("compare", FIO / "randrw", FIO / "coarse-1", "--baseline", "randrw", "--run", "coarse-1")
TREND = ("trend", FIO / "randrw", FIO / "coarse-1")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("compare", FIO / "randrw"), 2, "--baseline"),
        (("compare", FIO / "randrw", "--baseline", "randrw"), 2, "--run"),
        ((*PAIR[:5], "--run", "nowhere"), 3, "--run nowhere matches no run: there are"),
        ((*PAIR[:5], "--run", "randrw"), 2, "--baseline and --run both take randrw"),
        ((*PAIR[:3], "--baseline", "*", "--run", "randrw"), 2, "--baseline * matches 2 runs (coarse-1, randrw)"),
        ((*PAIR, "--by", "colour"), 2, "no label 'colour' here: there are"),
        ((*PAIR, "--by", "run"), 2, "--by run: run is a column of the answer already"),
        ((*PAIR, "--where", "run=x"), 2, "runs are chosen with --run"),
        ((*PAIR, "--where", "op=trim"), 3, "no op matches trim: there are read, write"),
        ((*PAIR, "-p", "x"), 2, "'x' is not a percentile"),
        ((*PAIR, "--fail-above", "much"), 2, "--fail-above takes a ratio such as 1.2, not 'much'"),
        ((*PAIR, "--fail-above", "nan"), 2, "--fail-above takes a ratio"),
        ((*PAIR, "--fail-above", "-1"), 2, "--fail-above takes a ratio"),
        ((*PAIR, "--attribution", "in-flight"), 2, "leave out --attribution"),
        ((*PAIR, "--from", "soon"), 2, "is not a time"),
        ((*PAIR, "--format", "xml"), 2, "there is no 'xml': there are table, csv"),
        (("compare", "nowhere", "--baseline", "a", "--run", "b"), 3, "no such file or folder"),
        (("compare", "sqlite:none.db", "--baseline", "a", "--run", "b"), 4, "there is no store at sqlite:none.db"),
        (("compare", FIO / "randrw", FIO / "randrw", "--baseline", "a", "--run", "b"), 2, "two sources hold a run"),
        ((*TREND, "--run", "nowhere"), 3, "no run matches nowhere: there are"),
        ((*TREND, "--fail-above", "x"), 2, "--fail-above takes a ratio"),
        ((*TREND, "--least-change", "much"), 2, "--least-change takes a share such as 10%, not 'much'"),
        ((*TREND, "--last", "0"), 2, "--last"),
        ((*TREND, "--last", "3", "--accept", "randrw"), 2, "leave out --accept or --last"),
        ((*TREND, "--above", "5"), 2, "'5' is not a duration"),
        ((*TREND, "--by", "measure"), 2, "--by measure: measure is a column of the answer already"),
        ((*TREND, "--by", "level"), 2, "--by level: level is a column of the answer already"),
        ((*TREND, "--attribution", "in-flight"), 2, "leave out --attribution"),
    ],
    ids=lambda value: (
        " ".join(str(word).rsplit("/", maxsplit=1)[-1] for word in value)[:60] if isinstance(value, tuple) else None
    ),
)
def test_each_mistake_gives_a_sentence_and_its_status(words: tuple[object, ...], status: int, told: str, tmp_path: Path) -> None:
    refused(tailboard(*words, cwd=tmp_path), status, told)


def test_r11_compare_by_layer_has_a_row_for_each_layer_though_their_bins_are_of_unlike_kinds(tmp_path: Path) -> None:
    """Operations of a client beside bpftrace's histogram of a disk: sorting log-linear bins and edges ended in a TypeError."""
    for name, slower in (("a", 1), ("b", 2)):
        folder = tmp_path / name / "h1"
        folder.mkdir(parents=True)
        ends = [
            f"{1_790_000_000_000_000 + 20_000 * at},{1_790_000_000_000_000 + 20_000 * at + slower * (900 + at % 7)},read"
            for at in range(500)
        ]
        (folder / "ops.csv").write_text("\n".join(["start_us,end_us,op", *ends]) + "\n")
        prints = [f"{1_790_000_000 + second}\n@usecs[sdb]:\n[512, 1K) {50 * second:8d} |@@@@|\n\n" for second in range(1, 11)]
        (folder / "biolatency.txt").write_text("".join(prints))
    done = tailboard(
        "compare", "a", "b", "--baseline", "a", "--run", "b", "--by", "layer", "-p", "50", "--format", "csv", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = {row["layer"]: row["ratio"] for row in csv.DictReader(io.StringIO(done.stdout))}
    assert found.keys() == {"client", "device"} and float(found["client"]) > 1.9 and float(found["device"]) == 1
