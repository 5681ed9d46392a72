"""Histograms that bpftrace and bcc print, and memtier_benchmark's JSON: counts as they stand there, times so far as they are said.

The texts follow the forms of the tools' own documentation; none of the tools ran here.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as tailboard
from ingest.core.errors import TailboardError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.formats import names
from ingest.read.plugins import prints
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.mutations import check_damaged
from tests.read.test_histograms import rows, samples_of

S, MS, US = 10**9, 10**6, 10**3
WRITTEN = 1_700_000_000 * S


def written(path: Path, text: str, at_ns: int = WRITTEN) -> Path:
    path.write_text(text)
    os.utime(path, ns=(at_ns, at_ns))
    return path


def short(number: int) -> str:
    """A power of two as bpftrace prints it."""
    for letter in " KMGT":
        if number < 1024:
            return f"{number}{letter}".strip()
        number >>= 10
    raise AssertionError


def hist_text(name: str, counts: dict[int, int]) -> str:
    """The text of hist(): [0], [1], [2, 4) ...; empty bins between are printed, too."""
    lines = [f"{name}:"]
    for power in range(min(counts), max(counts) + 1):
        edges = f"[{power}]" if power < 2 else f"[{short(1 << power - 1)}, {short(1 << power)})"
        lines.append(f"{edges:<16}{counts.get(power, 0):9d} |{'@' * 3:52}|")
    return "\n".join(lines) + "\n\n"


def hist_json(name: str, counts: dict[int, int], key: str = "") -> str:
    bins = []
    for power in range(min(counts), max(counts) + 1):
        low, high = (power, power) if power < 2 else (1 << power - 1, (1 << power) - 1)
        bins.append({"min": low, "max": high, "count": counts.get(power, 0)})
    return json.dumps({"type": "hist", "data": {name: {key: bins} if key else bins}}) + "\n"


def last_ns(power: int, unit: int) -> int:
    """The last ns of bin [0], [1], [2, 4) ..."""
    return (power + 1 if power < 2 else 1 << power) * unit - 1


COUNTS = st.lists(st.dictionaries(st.integers(0, 40), st.integers(1, 10**6), min_size=1, max_size=8), min_size=2, max_size=5)


@settings(max_examples=figure(15, 60, 1000), deadline=None)
@given(COUNTS, st.booleans())
def test_text_and_json_of_one_map_are_read_alike(tmp_path_factory, windows: list[dict[int, int]], cleared: bool) -> None:
    """Oracle: the counts that were drawn. A map that is never cleared holds their running sum."""
    folder = tmp_path_factory.mktemp("b")
    total: dict[int, int] = {}
    text, lines = (
        "Attaching 3 probes...\nTracing block device I/O... Hit Ctrl-C to end.\n",
        '{"type": "attached_probes", "data": {"probes": 3}}\n',
    )
    for second, window in enumerate(windows):
        total = {power: total.get(power, 0) + window.get(power, 0) for power in total.keys() | window.keys()}
        shown = window if cleared else total
        text += f"06:20:{second:02d}\n" + hist_text("@usecs[259,0]", shown)
        lines += (
            json.dumps({"type": "printf", "data": f"{1_700_000_000 - len(windows) + 1 + second}\n"})
            + "\n"
            + hist_json("@usecs", shown, "259,0")
        )
    falls = sum(any(b.get(power, 0) < count for power, count in a.items()) for a, b in zip(windows, windows[1:]))
    if cleared and 2 * falls < len(windows) - 1:
        return
    wanted = windows if cleared else windows[1:]
    taken = []
    for name, content in (("a.txt", text), ("a.json", lines)):
        found, account = rows(written(folder / name, content))
        assert [bins for *_, bins, _ in found] == [
            {last_ns(power, US): count for power, count in sorted(window.items())} for window in wanted
        ]
        assert {(series.volume, series.op, series.tag) for series, *_ in found} == {("259,0", "usecs", "@usecs[259,0]")}
        assert not account.missing and [end for _, _, end, *_ in found][-1] == WRITTEN
        taken.append([row[1:4] for row in found])
        word = "those of intervals" if cleared else "never fall"
        assert any(word in caveat.sentence for caveat in account.caveats)
    assert taken[0] == taken[1]


def test_a_map_that_falls_once_was_reset(tmp_path: Path) -> None:
    text = "".join(f"06:20:{second:02d}\n" + hist_text("@ns", {10: count}) for second, count in enumerate((5, 9, 12, 3, 7)))
    found, account = rows(written(tmp_path / "a.txt", text))
    assert [sum(bins.values()) for *_, bins, _ in found] == [4, 3, 3, 4]
    assert [lost.caveat.code for lost in account.missing] == ["counter-reset"]


def test_linear_histograms_old_versions_and_what_is_no_latency(tmp_path: Path) -> None:
    text = (
        "06:20:16\n@bytes:\n[512, 1K)   99 |@@|\n\n@ms:\n(..., 0)    2 |@|\n[0, 10)     5 |@@|\n[10, 20)    7 |@@@|\n[20, ...)   1 |@|\n\n"
        "@start[7]: 3\n@old_usecs:\n[0, 1]      4 |@@|\n[2, 4)      6 |@@|\n\nLost 7 events\n"
    )
    found, account = rows(written(tmp_path / "a.txt", text))
    by_op = {series.op: (bins, layout) for series, _, _, bins, layout in found}
    assert by_op["ms"][0] == {10 * MS - 1: 5, 20 * MS - 1: 7, 20 * MS: 1} and by_op["ms"][1].open_ended
    assert by_op["old_usecs"][0] == {2 * US - 1: 4, 4 * US - 1: 6}
    assert sum(account.skipped.values()) == 1 and any("Lost 7 events" in note for note in account.notes)
    assert any("2 values below zero" in note for note in account.notes)


def test_one_histogram_without_a_time_is_a_point_and_says_so(tmp_path: Path) -> None:
    for name, text in (("a.txt", hist_text("@usecs", {3: 5})), ("b.txt", BCC_HEAD + bcc_rows({3: 5}))):
        [(_, start, end, bins, _)], account = rows(written(tmp_path / name, text))
        assert start == end == WRITTEN and sum(bins.values()) == 5
        assert any(caveat.code == "time-of-file" and "nothing in it says when" in caveat.sentence for caveat in account.caveats)


def test_several_without_a_time_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for text in (hist_text("@usecs", {3: 5}) * 2, (BCC_HEAD + bcc_rows({3: 5}) + "\n") * 2):
        with pytest.raises(TailboardError, match="print a time before each"):
            Files([written(tmp_path / "a.txt", text)], ReadOptions(run="r"), jobs=1).answer(Question())


def test_what_a_script_prints_at_its_end_is_of_the_time_of_the_file(tmp_path: Path) -> None:
    text = "".join(f"17000{second}00\n" + hist_text("@ns", {10: count}) for second, count in ((100, 5), (101, 9)))
    found, _ = rows(written(tmp_path / "a.txt", text + hist_text("@ns", {10: 11}), 1_700_010_500 * S))
    assert [(start // S, end // S, sum(bins.values())) for _, start, end, bins, _ in found] == [
        (1_700_010_000, 1_700_010_100, 4),
        (1_700_010_100, 1_700_010_500, 2),
    ]


def spans(found, label: str = "volume") -> list[tuple]:
    return sorted(
        (getattr(series, label), (start - WRITTEN) / S, (end - WRITTEN) / S, sum(bins.values()))
        for series, start, end, bins, _ in found
    )


@pytest.mark.parametrize("cleared", [True, False])
def test_a_script_with_times_of_day_prints_once_more_at_its_end(tmp_path: Path, cleared: bool) -> None:
    """As bpftrace does at Ctrl-C: what it counted after the last time is there, and the one time in between is the usual one."""
    counts = [90, 50, 70, 30, 4] if cleared else [10, 30, 60, 100, 104]
    text = "".join(f"06:20:{second:02d}\n" + hist_text("@usecs", {5: count}) for second, count in zip((0, 10, 20, 30), counts))
    found, account = rows(written(tmp_path / "a.txt", text + hist_text("@usecs", {5: counts[-1]})))
    assert not account.missing and not account.rejected
    wanted = [(-40, -30), (-30, -20), (-20, -10), (-10, 0)]
    between = [b - a for a, b in zip(counts, counts[1:])]
    assert spans(found) == [
        *([("", -50, -40, 90)] if cleared else []),
        *(("", *span, count) for span, count in zip(wanted, counts[1:] if cleared else between)),
    ]


def test_a_key_that_was_not_printed_before_had_counted_nothing(tmp_path: Path) -> None:
    """An idle disk is not printed: what it counts later came after the print before, not over all the time that it was idle."""
    printed = [{"sda": 9, "sdb": 5}, {"sda": 7}, {"sda": 8}, {"sda": 6, "sdb": 4}]
    cleared = "".join(
        f"06:20:{at:02d}\n" + "".join(hist_text(f"@usecs[{disk}]", {5: count}) for disk, count in counts.items())
        for at, counts in enumerate(printed)
    )
    found, _ = rows(written(tmp_path / "a.txt", cleared))
    assert spans(found)[-2:] == [("sdb", -4, -3, 5), ("sdb", -1, 0, 4)]
    grown = "".join(
        f"06:20:{at:02d}\n" + hist_text("@usecs[sda]", {5: 10 + at}) + (hist_text("@usecs[sdb]", {5: 3 * at}) if at > 1 else "")
        for at in range(4)
    )
    found, account = rows(written(tmp_path / "a.txt", grown))
    assert spans(found)[-2:] == [("sdb", -2, -1, 6), ("sdb", -1, 0, 3)] and not account.missing
    assert [caveat.code for caveat in account.caveats] == ["time-of-file", "since-a-start"]


def test_stacks_as_keys_and_bins_without_a_name(tmp_path: Path) -> None:
    """As biostacks.bt prints: a key of several lines."""
    stack = hist_text("@usecs[\n    blk_account_io_start+1\n    submit_bio+115\n]", {17: 560, 18: 2})
    count = "@calls[\n    submit_bio+115\n]: 9\n\n"
    found, account = rows(written(tmp_path / "a.txt", "Attaching 5 probes...\n\n" + count + stack))
    [(series, _, _, bins, _)] = found
    assert (series.tag, sum(bins.values())) == ("@usecs[blk_account_io_start+1;submit_bio+115]", 562)
    nameless = "06:20:01\n" + hist_text("@usecs", {3: 5}) + hist_text("@us\0ecs", {3: 5})
    found, account = rows(written(tmp_path / "b.txt", nameless))
    assert len(found) == 1 and account.rejected == {prints.NO_BIN: 2} and len(account.missing) == 1


def test_a_point_in_time_has_no_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.txt", hist_text("@usecs", {3: 5}))
    assert tailboard(["percentiles", str(path), "--step", "all", "--format", "ndjson"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["count"], row["rate"], row["p50"]) == (5, None, 8 * US - 1)


# ---- bcc.

BCC_HEAD = "     usecs               : count     distribution\n"


def bcc_rows(counts: dict[int, int]) -> str:
    text = ""
    for power in range(max(counts) + 1):
        low, high = (0, 1) if power == 0 else (1 << power, (1 << power + 1) - 1)
        text += f"{low:10d} -> {high:<10d} : {counts.get(power, 0):<8d} |{'*' * 4:40}|\n"
    return text


@settings(max_examples=figure(15, 60, 1000), deadline=None)
@given(COUNTS)
def test_biolatency_holds_the_counts_of_each_second(tmp_path_factory, windows: list[dict[int, int]]) -> None:
    """Oracle: the counts that were drawn; past midnight, by disk."""
    windows = [{power % 28: count for power, count in window.items()} for window in windows]
    text = "Tracing block device I/O... Hit Ctrl-C to end.\n"
    for number, window in enumerate(windows):
        clock = (86_400 - 2 + number) % 86_400
        text += f"\n{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}\n"
        for disk, factor in (("sda", 1), ("nvme0n1", 3)):
            text += f"disk = '{disk}'\n{BCC_HEAD}" + bcc_rows({power: factor * count for power, count in window.items()}) + "\n"
    found, account = rows(written(tmp_path_factory.mktemp("c") / "a.txt", text))
    for disk, factor in (("sda", 1), ("nvme0n1", 3)):
        mine = [(start, end, bins) for series, start, end, bins, _ in found if series.volume == disk]
        ends = [WRITTEN - (len(windows) - 1 - number) * S for number in range(len(windows))]
        assert mine == [
            (end - S, end, {(1 << power + 1) * US - 1: factor * count for power, count in sorted(window.items())})
            for end, window in zip(ends, windows)
        ]
    assert [caveat.code for caveat in account.caveats] == ["time-of-file"] and not account.missing


def test_an_idle_disk_is_not_printed_and_counts_from_the_print_before(tmp_path: Path) -> None:
    """Also where nothing at all was printed behind a time; by a key that is no disk the same."""
    busy = [{"sda", "sdb"}, {"sda"}, set(), {"sda", "sdb"}]
    text = "".join(
        f"06:20:{at:02d}\n\n" + "".join(f"disk = '{disk}'\n{BCC_HEAD}{bcc_rows({3: 7})}\n" for disk in sorted(disks))
        for at, disks in enumerate(busy)
    )
    found, _ = rows(written(tmp_path / "a.txt", text))
    wanted = [(-4, -3), (-3, -2), (-1, 0)], [(-4, -3), (-1, 0)]
    assert spans(found) == [(disk, *span, 7) for disk, of_disk in zip(("sda", "sdb"), wanted) for span in of_disk]
    found, account = rows(written(tmp_path / "b.txt", text.replace("disk = 'sda'", "pid = 7").replace("disk = 'sdb'", "pid = 8")))
    assert [row[1:] for row in spans(found, "tag")] == [(*span, 7) for of_disk in wanted for span in of_disk]
    assert {series.tag for series, *_ in found} == {"{pid=7}", "{pid=8}"}
    assert [caveat.code for caveat in account.caveats] == ["time-of-file"]


def test_averages_that_bcc_prints_are_no_labels(tmp_path: Path) -> None:
    """`biolatency -e` behind a histogram, `tcprtt -e` in a key: other words at each print would be another series each."""
    average = "\navg = 36{} usecs, total: 3687 usecs, count: 7\n\n"
    text = "".join(
        f"06:20:{at:02d}\n{BCC_HEAD}{bcc_rows({3: 7})}{average.format(at)}{BCC_HEAD}{bcc_rows({3: 1})}" for at in range(2)
    )
    found, _ = rows(written(tmp_path / "a.txt", text))
    assert {series.tag for series, *_ in found} == {""}
    text = "".join(f"06:20:{at:02d}\n\nRemote Address = 10.1.2.3 [AVG {at}]\n{BCC_HEAD}{bcc_rows({3: 7})}\n" for at in range(3))
    found, _ = rows(written(tmp_path / "a.txt", text))
    assert spans(found, "tag") == [("{remote address=10.1.2.3}", at - 3, at - 2, 7) for at in range(3)]


def test_a_clock_that_was_set_back_rejects_no_more_than_what_comes_twice(tmp_path: Path) -> None:
    """At the end of summer time: the hour that comes twice is missing, and said."""
    clocks = ("01:59:58", "01:59:59", "01:00:00", "01:00:01")
    found, account = rows(written(tmp_path / "a.txt", "".join(f"{clock}\n{BCC_HEAD}{bcc_rows({3: 7})}\n" for clock in clocks)))
    assert len(found) == 4 and not account.rejected and all(end - start == S for _, start, end, *_ in found)


def test_flags_operations_and_units_of_bcc(tmp_path: Path) -> None:
    text = (
        "06:49:27:\n\noperation = 'read'\n     msecs  : count     distribution\n         0 -> 1          : 7        |**|\n\nflags = Sync-Write\n"
        + BCC_HEAD
        + bcc_rows({3: 4})
    )
    found, _ = rows(written(tmp_path / "a.txt", text))
    assert {series.op: bins for series, _, _, bins, _ in found} == {"read": {2 * MS - 1: 7}, "Sync-Write": {16 * US - 1: 4}}


def layers(found) -> dict[str, int]:
    """Samples by layer and op or disk."""
    told: Counter[str] = Counter()
    for series, *_, bins, _ in found:
        told[f"{series.kind} {series.volume or series.op}".strip()] += sum(bins.values())
    return dict(told)


TRACING = "Tracing block device I/O... Hit Ctrl-C to end.\n"


def test_what_times_block_devices_is_of_their_layer(tmp_path: Path) -> None:
    """With and without disks or flags; other tools are not."""
    one = BCC_HEAD + bcc_rows({3: 5})
    for text, told in (
        (f"{TRACING}\n12:00:00\n{one}\n12:00:01\n{one}", {"device:service": 10}),
        (f"{TRACING}\n12:00:00\ndisk = 'sda'\n{one}\n12:00:01\n{one}", {"device:service sda": 5, "device:service": 5}),
        (f"12:00:00\n\nflags = Read\n{one}\n", {"device:service Read": 5}),
        (f"Tracing run queue latency... Hit Ctrl-C to end.\n12:00:00\n{one}\n", {"service": 5}),
        (f"Attaching 4 probes...\n{TRACING}\n12:00:00\n{hist_text('@usecs', {3: 5})}", {"device:service usecs": 5}),
        (f"Attaching 4 probes...\n\n12:00:00\n{hist_text('@usecs', {3: 5})}", {"service usecs": 5}),
    ):
        found, _ = rows(written(tmp_path / "b.txt", text))
        assert layers(found) == told


def test_histograms_without_a_time_are_not_put_at_the_time_of_another_script(tmp_path: Path) -> None:
    """They are missing from the answer, which says so: whichever of the two comes first."""
    one, two = BCC_HEAD + bcc_rows({3: 5}), BCC_HEAD + bcc_rows({4: 7})
    timed = f"{TRACING}\n12:00:00\n{one}\n12:00:01\n{one}\n"
    for text in (f"{timed}{TRACING}^C\n\ndisk = 'sda'\n{two}", f"{TRACING}^C\n\ndisk = 'sda'\n{two}\n{timed}"):
        found, account = rows(written(tmp_path / "b.txt", text))
        assert layers(found) == {"device:service": 10}
        assert dict(account.rejected) == {prints.UNTIMED: 1}
        assert [entry.labels.get("volume") for entry in account.missing] == ["sda"]


def test_a_second_script_does_not_count_from_the_last_print_of_the_first(tmp_path: Path) -> None:
    """Its first histogram is as wide as others, not from the end of the script before, hours ago."""
    one = BCC_HEAD + bcc_rows({3: 5})
    script = TRACING + "".join(f"\n{{hour}}:00:0{second}\n{one}" for second in range(3))
    found, account = rows(written(tmp_path / "b.txt", script.replace("{hour}", "09") + "\n" + script.replace("{hour}", "12")))
    assert len(found) == 6 and {end - start for _, start, end, *_ in found} == {S}
    assert not account.rejected
    text = "Attaching 2 probes...\n" + "".join(f"{{hour}}:00:0{at}\n{hist_text('@usecs', {3: 5 - at})}" for at in range(3))
    found, _ = rows(written(tmp_path / "b.txt", text.replace("{hour}", "09") + text.replace("{hour}", "12")))
    assert len(found) == 6 and {end - start for _, start, end, *_ in found} == {S}


# ---- memtier_benchmark.


def encoded(counts: dict[int, int], digits: int = 3) -> str:
    """HdrHistogram V2 by its definition: ZigZag LEB128 words, runs of zeros as negative numbers; bins by their index."""
    payload, at = bytearray(), 0
    for index, count in sorted(counts.items()):
        for signed in [at - index] * (index > at) + [count]:
            number = (signed << 1) ^ (signed >> 63)
            while number >= 128:
                payload.append((number & 127) | 128)
                number >>= 7
            payload.append(number)
        at = index + 1
    body = struct.pack(">IIIIqqd", 0x1C849303, len(payload), 0, digits, 1, 60_000_000, 1.0) + bytes(payload)
    inner = zlib.compress(body)
    return base64.b64encode(struct.pack(">II", 0x1C849304, len(inner)) + inner).decode()


def memtier(stats: dict[str, tuple[int, dict[int, int]]], section: str = "ALL STATS", start: int = 1_700_000_000_000) -> dict:
    body: dict = {
        "Runtime": {"Start time": start, "Finish time": start + 5000, "Total duration": 5000, "Time unit": "MILLISECONDS"}
    }
    for name, (count, bins) in stats.items():
        latencies: dict = {"p50.00": 0.4}
        latencies["Histogram log format"] = {"Compressed Histogram": encoded(bins)}
        body[name] = {"Count": count, "Ops/sec": 1.5, "Percentile Latencies": latencies}
    return {section: body}


BASE = {"configuration": {"server": "localhost"}, "run information": {"Threads": 4}}


@pytest.mark.parametrize("none", ["nan", "-nan", "inf", "-inf"])
@pytest.mark.parametrize("indent", [None, 1])
def test_memtier_without_a_number_for_what_was_never_sent(none: str, indent: int | None, tmp_path: Path) -> None:
    """C prints 0/0 as -nan, which is no JSON; a text that holds such a word stays as it is."""
    commands = memtier({"Gets": (7, {100: 7}), "Sets": (0, {})})
    commands["ALL STATS"]["Sets"] |= {
        "Average Latency": "NONE",
        "Min Latency": "NONE",
        "Percentile Latencies": {"p50.00": "NONE"},
    }
    text = json.dumps({"configuration": {"key_prefix": f"a: {none}, "}, **commands}, indent=indent).replace('"NONE"', none)
    found, account = rows(written(tmp_path / "m.json", text))
    assert [(series.op, sum(bins.values())) for series, *_, bins, _ in found] == [("get", 7)]
    assert not account.rejected and not account.notes


def test_memtier_holds_a_histogram_of_each_command(tmp_path: Path) -> None:
    """Bins below 2048 us are 1 us wide; Totals are no further samples."""
    document = {
        **BASE,
        **memtier({"Sets": (9, {300: 4, 1500: 5}), "Gets": (7, {100: 7}), "Waits": (0, {}), "Totals": (16, {100: 7, 300: 9})}),
    }
    found, account = rows(written(tmp_path / "m.json", json.dumps(document, indent=1)))
    assert {series.op: (start, end, sum(bins.values())) for series, start, end, bins, _ in found} == {
        op: (WRITTEN, WRITTEN + 5 * S, count) for op, count in (("set", 9), ("get", 7))
    }
    assert not account.rejected and not account.missing and not account.notes
    answer = Files([tmp_path / "m.json"], ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("op",)))
    assert sum(int(part.samples.sum()) for part in answer.parts) == 16


def test_memtier_more_samples_than_count_and_runs_that_are_left_out(tmp_path: Path) -> None:
    document = {
        **BASE,
        **memtier({"Gets": (5, {100: 7})}, "BEST RUN RESULTS"),
        **memtier({"Gets": (4, {100: 4})}, "WORST RUN RESULTS", 1_700_000_009_000),
        **memtier({"Gets": (12, {100: 14})}, "AGGREGATED AVERAGE RESULTS (3 runs)"),
    }
    found, account = rows(written(tmp_path / "m.json", json.dumps(document)))
    assert [sum(bins.values()) for *_, bins, _ in found] == [7, 4]
    assert [caveat.code for caveat in account.caveats] == ["runs-left-out"]
    assert any("2 samples more than it counts" in note for note in account.notes)


def test_memtier_names_a_command_twice_that_was_given_twice(tmp_path: Path) -> None:
    """As with two `--command "SET ..."`: its JSON has the key twice, and both calls count."""
    text = json.dumps({**BASE, **memtier({"Sets": (9, {300: 9}), "Other": (7, {100: 7}), "Gets": (2, {9: 2})})})
    found, account = rows(written(tmp_path / "m.json", text.replace('"Other"', '"Sets"')))
    assert sorted((series.op, series.tag, sum(bins.values())) for series, _, _, bins, _ in found) == [
        ("get", "", 2),
        ("set", "{call=1}", 9),
        ("set", "{call=2}", 7),
    ]
    assert not account.rejected and not account.missing and not account.caveats


def test_memtier_prints_all_runs_and_two_of_them_again(tmp_path: Path) -> None:
    runs = [memtier({"Gets": (n, {100: n})}, f"RUN #{n} RESULTS", 1_700_000_000_000 + n * 9000) for n in (1, 2, 3)]
    again = {"BEST RUN RESULTS": runs[1]["RUN #2 RESULTS"], "WORST RUN RESULTS": runs[0]["RUN #1 RESULTS"]}
    average = memtier({"Gets": (6, {100: 6})}, "AGGREGATED AVERAGE RESULTS (3 runs)")
    found, account = rows(written(tmp_path / "m.json", json.dumps({**BASE, **runs[0], **runs[1], **runs[2], **again, **average})))
    assert [sum(bins.values()) for *_, bins, _ in found] == [1, 2, 3]
    assert not account.caveats and not account.rejected and account.rows_skipped == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda stats: stats["Gets"].pop("Percentile Latencies"), "no histogram of a command"),
        (
            lambda stats: stats["Gets"]["Percentile Latencies"]["Histogram log format"].update(
                {"Compressed Histogram": "HISTxx"}
            ),
            "base64|cookie|short",
        ),
        (lambda stats: stats["Gets"].update(Count=-1), "below zero"),
    ],
)
def test_what_memtier_lacks_is_missing(tmp_path: Path, change, said: str) -> None:
    document = {**BASE, **memtier({"Sets": (9, {300: 9}), "Gets": (7, {100: 7})})}
    change(document["ALL STATS"])
    found, account = rows(written(tmp_path / "m.json", json.dumps(document)))
    assert [series.op for series, *_ in found] == ["set"]
    [lost] = account.missing
    assert lost.labels["op"] == "get" and (lost.from_ns, lost.to_ns) == (WRITTEN, WRITTEN + 5 * S)
    assert any(__import__("re").search(said, reason) for reason in account.rejected)


def test_memtier_without_histograms_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "m.json", json.dumps({**BASE, "ALL STATS": {"Gets": {"Count": 5}}}))
    with pytest.raises(TailboardError, match="--hide-histogram"):
        Files([path], ReadOptions(run="r"), jobs=1).answer(Question())


@pytest.mark.parametrize("name", ["bpftrace.txt", "bpftrace.json", "bcc.txt", "memtier.json"])
def test_mutated_files_never_end_in_a_traceback(tmp_path_factory, name: str) -> None:
    folder = tmp_path_factory.mktemp("f")
    text = {
        "bpftrace.txt": "".join(f"06:20:0{at}\n" + hist_text("@usecs", {3: at, 9: 2 * at}) for at in range(1, 5)),
        "bpftrace.json": "".join(
            '{"type": "printf", "data": "17000000%02d"}\n' % at + hist_json("@usecs", {3: at}) for at in range(1, 5)
        ),
        "bcc.txt": "".join(f"06:20:0{at}\n{BCC_HEAD}" + bcc_rows({3: at, 5: 7}) + "\n" for at in range(1, 5)),
        "memtier.json": json.dumps({**BASE, **memtier({"Sets": (9, {300: 4, 1500: 5}), "Gets": (7, {100: 7})})}, indent=1),
    }[name]

    parts = st.sampled_from([b"9", b"-1", b'"', b"{", b"]", b"\n", b"1e999", b"null", b"K"])
    check_damaged(folder / name, text.encode(), parts, samples_of, place=3000, examples=figure(5, 40, 1000))


def test_they_can_be_named() -> None:
    assert {"bpftrace", "bcc", "memtier", "samples"} <= set(names())
