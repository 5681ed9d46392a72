"""What a damaged file does to an answer: never another number in silence where the file itself shows it; the page says the truth."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.damage import DAMAGE, FORMATS, NOT_SEEN, SILENT, TOLD, content_of, table, told, trials
from tests.effort import figure

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "damage.md"


SAID = {  # of sound files: what is true of these recordings, or of any file of their tool
    "fio histogram log, with fio's JSON": ("fio's own totals",),
    "fio histogram log alone": ("I/Os that completed after its last row are missing",),
    "fio raw log, with fio's JSON": ("fio's own totals",),
    "fio log of means, with fio's JSON": ("fio iops log", "no percentiles can be made of them"),
    "HdrHistogram log with tags": ("--recorded-unit was used", "schedule: achieved", "hold equal numbers of samples"),
    "operation log": ("it is unknown when requests were due",),
    "YCSB histograms": ("the time of the file is taken",),
    "OpenTelemetry, delta": ("which may count the same operations", "histograms of unlike bins"),
    "OpenTelemetry, cumulative": ("which may count the same operations", "histograms of unlike bins"),
    "Prometheus, native (API)": ("the tool began to count anew",),
    "Redis LATENCY HISTOGRAM": ("the tool began to count anew",),
    "bpftrace": ("the last is taken as the time of the file", "they are taken as those of intervals"),
    "bcc": ("the last is taken as the time of the file",),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_sound_file_is_read_to_the_end_and_nothing_else_is_said_of_it(name: str) -> None:
    found = told(FORMATS[name], content_of(FORMATS[name]))
    said = SAID.get(name, ())
    assert found.samples and len(found.sentences) == len(said)
    assert all(any(words in text for text in found.sentences) for words in said)


@pytest.mark.parametrize("name", FORMATS)
def test_the_rule_of_a_format_is_kept_by_a_sound_file(name: str) -> None:
    assert FORMATS[name].whole or not list(FORMATS[name].rule(content_of(FORMATS[name])))


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", FORMATS)
def test_n13_where_a_file_shows_its_damage_the_number_of_samples_never_changes_in_silence(name: str) -> None:
    """A total, a checksum or a rule of the format shows it: `tests.oracles.rules` knows, not the readers."""
    ends = {kind: trials(name, kind, figure(2, 4, 40)) for kind in DAMAGE}
    assert not [kind for kind, found in ends.items() if found[SILENT] or (FORMATS[name].whole and found[NOT_SEEN])]


@pytest.mark.parametrize("name", FORMATS)
def test_of_an_archive_that_breaks_off_nothing_is_said_twice(name: str) -> None:
    """A note said that its compressed data was damaged, and a caveat said it again."""
    packed = gzip.compress(content_of(FORMATS[name]))
    found = told(FORMATS[name], packed[: len(packed) * 3 // 4], ".gz")
    assert found.samples is None or sum("compressed data is damaged or cut off" in text for text in found.sentences) == 1


def test_bins_of_a_json_that_are_gone_are_missing_samples() -> None:
    recorded = FORMATS["fio json+"]
    content = content_of(recorded)
    assert content.count(b'"1432" : 2,') == 1
    found = told(recorded, content.replace(b'"1432" : 2,', b""))
    assert found.samples == 688 and any("hold fewer I/Os than fio counts (N)" in text for text in found.sentences)
    found = told(recorded, content.replace(b'"1432" : 2,', b'"1432" : 3,'))
    assert found.samples == 691 and any("hold more I/Os than fio counts (N)" in text for text in found.sentences)


@pytest.mark.parametrize(
    ("name", "kind"), [("pgbench log", "a part twice"), ("asbench", "64 bytes of zeros"), ("asbench", "a bit flipped")]
)
def test_rules_of_a_format_show_damage(name: str, kind: str) -> None:
    ends = trials(name, kind, 8)
    assert ends[TOLD] and not ends[NOT_SEEN]


def test_two_runs_of_pgbench_behind_one_another_are_not_taken_for_one_twice() -> None:
    recorded = FORMATS["pgbench log"]
    content = content_of(recorded)
    later = (
        b"\n".join(b" ".join([*c[:4], b"%d" % (int(c[4]) + 60), *c[5:]]) for c in map(bytes.split, content.splitlines())) + b"\n"
    )
    before = told(recorded, content)
    after = told(recorded, content + later)
    assert after.samples == 2 * (before.samples or 0) and after.sentences == before.sentences


@pytest.mark.soak
@pytest.mark.slow
def test_the_page_says_what_comes_out() -> None:
    said = table()
    assert SILENT not in said and said in PAGE.read_text()
