"""`tailboard show heatmap`: rows, drops, ranges, highlights, columns of 100 ms from raw logs, against published counts and slow ones."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.cli.test_commands import EXAMPLE, rows, tailboard
from tests.oracles.heat import trace_boxes

# The first second of the example trace that comes with trace2heatmap.pl: us since its first line, and latency in us. The picture
# that comes with it has 1, 12, 22 and 17 of them from 640 us on.
FIRST_SECOND = """
0:15133 810:712 991:850 1089:834 32851:31547 33727:16777 33930:16948 75915:743 76092:884 92655:723 92851:885 101043:729
101216:867 117763:705 117939:847 134487:727 134656:862 151291:751 151623:1120 168075:732 168256:878 184853:768 185258:1283
201436:735 201613:878 218192:728 218558:1128 235114:759 235544:1310 251711:767 252078:1170 268443:770 268829:1193 292247:777
292661:1286 308900:756 309286:1177 333963:756 334348:1176 351001:736 351385:1215 367815:735 368201:1155 384596:734
384964:1134 401363:763 401748:1180 418126:766 418509:1185 434849:763 435235:1185 451545:736 451930:1154 473226:776
473588:1198 489963:709 490328:1122 506657:744 507024:1146 523334:711 523691:1101 540278:777 540742:1429 556782:697
557147:1097 573539:705 573904:1105 590267:715 590656:1137 607101:811 607445:1189 632087:745 632232:854 648811:741 648958:853
673854:707 674207:1095 698910:698 699294:1115 715641:679 716024:1097 732662:787 733098:1449 757676:758 758105:1304 774245:769
774634:1191 791441:772 791903:1465 808043:787 808465:1345 824677:751 825034:1145 849704:764 850066:1158 866528:770
866965:1308 883135:722 883321:873 899887:717 900272:1137 916584:694 916968:1112 933305:695 933670:1094 950273:773 950679:1341
966917:769 967334:1283 992006:759 992413:1279
"""
SHIPPED = {640: 1, 680: 12, 720: 22, 760: 17}
TRACE = [tuple(map(int, pair.split(":"))) for pair in FIRST_SECOND.split()]
DESCRIBED = "time: TIMEus\nlatency: DELTAus\nunit: us\n"


@pytest.fixture
def trace(tmp_path) -> list[str]:
    """A trace of the published second and of two more made of it, and the words that read it."""
    path = tmp_path / "trace.csv"
    events = [(time + second * 1_000_000, latency + 40 * second) for second in range(3) for time, latency in TRACE]
    path.write_text("TIMEus,DELTAus\n" + "".join(f"{1_700_000_000_000_001 + time},{latency}\n" for time, latency in events))
    (tmp_path / "trace.yml").write_text(DESCRIBED)
    return [str(path), "--input-format", str(tmp_path / "trace.yml"), "--digits", "5"]


def test_boxes_are_those_that_are_published_and_those_of_the_script(trace):
    done = tailboard(
        "heatmap",
        *trace,
        "--step",
        "1s",
        "--axis",
        "linear",
        "--latency",
        "..2ms",
        "--rows",
        "50",
        "--unit",
        "us",
        "--format",
        "csv",
    )
    cells = {(row["start"][17:19], int(row["lower"])): float(row["count"]) for row in rows(done)}
    assert {lower: cells["20", lower] for lower in SHIPPED} == SHIPPED
    events = [(time + second * 1_000_000, latency + 40 * second) for second in range(3) for time, latency in TRACE]
    expected = trace_boxes(events, 40, 2000, 1_000_000)
    assert {(f"{20 + column:02}", lower): count for (column, lower), count in expected.items()} == cells
    above = sum(latency >= 2000 for _, latency in events)
    assert f"{above} samples lie above the range of latency that was asked" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("where", ["files", "store"])
def test_columns_of_100_ms_from_a_raw_log(trace, where, tmp_path):
    source = trace
    if where == "store":
        source = [f"sqlite:{tmp_path / 'raw.db'}"]
        done = tailboard("load", *trace, "--run", "r", "--step", "100ms", "--store", source[0])
        assert done.returncode == 0, done.stderr
    found = rows(tailboard("heatmap", *source, "--step", "100ms", "--format", "csv"))
    expected = Counter((time + second * 1_000_000) // 100_000 for second in range(3) for time, _ in TRACE)
    counts: Counter = Counter()
    for row in found:
        assert row["end"][20:23] == f"{(int(row['start'][20:23]) + 100) % 1000:03}"
        counts[(int(row["start"][17:19]) - 20) * 10 + int(row["start"][20:21])] += int(row["count"])
    assert counts == expected
    svg = tailboard("heatmap", *source, "--step", "100ms", "--format", "svg").stdout
    drawn = re.search(r'mark-rect role-mark heat"[^>]*>(.*?)</g>', svg, re.DOTALL)[1]
    assert "windows of 100ms" in svg
    starts = {float(x) for x in re.findall(r'd="M([\d.]+),', drawn)}
    assert len(starts) == len(expected)
    assert "a column is 100ms" in tailboard("heatmap", *source, "--step", "100ms").stdout


@pytest.mark.slow
def test_an_overflow_row_in_every_form():
    found = rows(tailboard("heatmap", EXAMPLE, "--step", "1s", "--drop", "0.1%", "--format", "csv"))
    assert list(found[0]) == ["start", "end", "lower", "upper", "count", "over"]
    above = [row for row in found if row["over"] == "1"]
    count = sum(int(row["count"]) for row in above)
    (limit,) = {int(row["lower"]) for row in above}
    every = rows(tailboard("heatmap", EXAMPLE, "--step", "1s", "--format", "csv"))
    assert sum(int(row["count"]) for row in found) == 59_015
    assert count == sum(int(row["count"]) for row in every if int(row["lower"]) >= limit)
    assert 0 < count <= 59
    highest = max(int(row["lower"]) for row in found if row["over"] == "0")
    assert sum(int(row["count"]) for row in every if int(row["lower"]) >= highest) > 59
    done = tailboard("heatmap", EXAMPLE, "--step", "1s", "--drop", "0.1%", "--rows", "200", "--format", "svg")
    drawn = int(re.search(r">(\d+) above<", done.stdout)[1])
    assert f"{drawn} samples lie above the map, at " in done.stdout
    table = tailboard("heatmap", EXAMPLE, "--step", "1s", "--drop", "0.1%").stdout
    told = int(re.search(r"(\d+) samples lie above the map, at ", table)[1])
    assert 0 < told <= 59
    assert re.search(r"^ *>\d", table, re.MULTILINE)


@pytest.mark.slow
def test_a_range_of_latency_is_binned_anew():
    words = ("heatmap", EXAMPLE, "--step", "1s", "--latency", "2ms..20ms", "--format", "csv")
    fine, coarse = rows(tailboard(*words)), rows(tailboard(*words, "--rows", "15"))
    every = rows(tailboard("heatmap", EXAMPLE, "--step", "1s", "--format", "csv"))
    low, high = min(int(row["lower"]) for row in fine), max(int(row["upper"]) for row in fine)
    assert fine == [row for row in every if low <= int(row["lower"]) < high]
    assert low <= 2_000_000 * 65 / 64 and high >= 20_000_000 * 63 / 64
    assert len({row["lower"] for row in coarse}) <= 15 < len({row["lower"] for row in fine})
    for row in coarse:
        inside = [
            int(one["count"])
            for one in every
            if one["start"] == row["start"] and int(row["lower"]) <= int(one["lower"]) < int(row["upper"])
        ]
        assert int(row["count"]) == sum(inside)


@pytest.mark.slow
def test_a_highlight_counts_what_the_filter_counts():
    found = rows(tailboard("heatmap", EXAMPLE, "--step", "1s", "--by", "op", "--highlight", "host=ceph-b", "--format", "csv"))
    alone = rows(tailboard("heatmap", EXAMPLE, "--step", "1s", "--by", "op", "--where", "host=ceph-b", "--format", "csv"))
    key = lambda row: (row["start"], row["op"], row["lower"])  # noqa: E731
    assert {key(row): row["highlighted"] for row in found if row["highlighted"] != "0"} == {
        key(row): row["count"] for row in alone
    }
    assert list(found[0]) == ["start", "end", "op", "lower", "upper", "count", "highlighted"]
    svg = tailboard("heatmap", EXAMPLE, "--step", "1s", "--highlight", "host=ceph-b", "--format", "svg").stdout
    assert "\u25a0 host=ceph-b" in svg and "\u25a0 all others" in svg
    letters = tailboard("heatmap", EXAMPLE, "--step", "1s", "--highlight", "host=ceph-b").stdout
    assert "host=ceph-b (letters, capital where it has half of a cell or more): 22,749 of 59,015" in letters
    assert (
        tailboard("heatmap", EXAMPLE, "--highlight", "host=ceph-b", "--unit", "ms", "--format", "ndjson").stdout.count(
            '"highlighted":'
        )
        > 100
    )


def test_columns_of_equal_width():
    found = rows(tailboard("heatmap", EXAMPLE, "--columns", "13", "--format", "csv"))
    assert len({row["start"] for row in found}) == 13
    assert sum(float(row["count"]) for row in found) == pytest.approx(59_015)
    assert "a column is 5.85s" in tailboard("heatmap", EXAMPLE, "--columns", "13").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--latency", "20ms..2ms"), "--latency 20ms..2ms: it ends before it begins"),
        (("--latency", "2ms"), "--latency takes a range such as 1ms..20ms, ..5ms or 1s.., not '2ms'"),
        (("--latency", ".."), "--latency takes a range such as"),
        (("--latency", "x..y"), "'x' is not a duration"),
        (("--latency", "100s..200s"), "no samples in the range of --latency: they lie between"),
        (("--drop", "100%"), "--drop takes a share such as 0.1%, not '100%'"),
        (("--drop", "-1"), "--drop takes a share such as 0.1%, not '-1'"),
        (("--drop", "1%", "--latency", "..5ms"), "--drop and the end of --latency both say where the map ends"),
        (("--rows", "2"), "rows are the least on a logarithmic axis here; choose a range with --latency, or --axis linear"),
        (("--columns", "5", "--step", "all"), "with --step all there is one window"),
        (("--columns", "500", "--format", "csv"), "500 columns would be narrower than the windows, and invent detail"),
        (("--columns", "100000"), "this terminal has room for"),
        (("--columns", "1000", "--format", "svg"), "a picture has room for 700"),
        (("--highlight", "host"), "--highlight takes LABEL=VALUE, as in --highlight host=host"),
        (("--highlight", "kind=total"), "kinds are never added up"),
        (("--highlight", "colour=blue"), "no label 'colour' here"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(words, sentence):
    done = tailboard("heatmap", EXAMPLE, *words)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_highlight_that_nothing_matches():
    done = tailboard("heatmap", EXAMPLE, "--highlight", "host=nobody")
    assert done.returncode == 3
    assert "nothing matches --highlight host=nobody: there are ceph-a, ceph-b, ceph-c" in done.stderr


@pytest.mark.slow
def test_the_same_from_a_store(tmp_path):
    store = f"sqlite:{tmp_path / 'x.db'}"
    assert tailboard("load", EXAMPLE, "--run", "r", "--store", store).returncode == 0
    for words in (
        ("--drop", "1%", "--highlight", "host=ceph-c"),
        ("--latency", "1ms..50ms", "--rows", "40"),
        ("--axis", "linear", "--columns", "20"),
    ):
        asked = ("heatmap", "--step", "1s", *words, "--format", "csv")
        assert tailboard(asked[0], store, *asked[1:]).stdout == tailboard(asked[0], EXAMPLE, *asked[1:]).stdout
