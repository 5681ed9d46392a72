"""Histograms that other writers of a known format write in their own way: the counts are those of the form that was read before."""

from __future__ import annotations

import json
import random
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode

from ingest.core.errors import InputError
from ingest.core.grid import SECOND
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

DATA = Path("tests/data").resolve()
EDGES = ["0.03", "0.05", "0.1", "0.25", "2.5"]
BEGUN = 1_764_322_680


def answer(path: Path, *by: str, step: int = 60, **options: Any) -> list[tuple[Any, ...]]:
    files = Files([path], ReadOptions(**options), jobs=1)
    table = percentiles(files.answer(Question(step=step * SECOND, by=by)), Wanted(parse_percentiles("50,90"))).columns
    return list(zip(*(np.asarray(table[name]).tolist() for name in ("start_ns", *by, "count", "p50", "p90", "max")), strict=True))


def polls(seed: int, *, top: bool) -> list[list[int]]:
    """Return counts by bucket since a start, of some polls; buckets are filled one after another."""
    dice = random.Random(seed)
    counts, out = [0] * (len(EDGES) + 1), []
    for poll in range(8):
        for bucket in range(min(poll // 2 + 1, len(counts) - (not top))):
            counts[bucket] += dice.randrange(200, 400)
        out.append(list(counts))
    return out


def classic(counted: list[list[int]]) -> str:
    def series(edge: str, place: int) -> dict[str, Any]:
        values = [[BEGUN + 60 * poll, str(list(accumulate(counts))[place])] for poll, counts in enumerate(counted)]
        return {"metric": {"__name__": "op_seconds_bucket", "instance": "h1", "le": edge}, "values": values}

    return json.dumps(
        {
            "status": "success",
            "data": {"resultType": "matrix", "result": [series(edge, place) for place, edge in enumerate([*EDGES, "+Inf"])]},
        }
    )


def custom(counted: list[list[int]]) -> str:
    """Return the same as a native histogram with custom buckets: empty ones are left out, the first begins at -Inf."""
    lower, upper = ["-Inf", *EDGES], [*EDGES, "+Inf"]

    def histogram(counts: list[int]) -> dict[str, Any]:
        buckets = [
            [3 if low == "-Inf" else 0, low, high, str(number)]
            for low, high, number in zip(lower, upper, counts, strict=True)
            if number
        ]
        return {"count": str(sum(counts)), "sum": "1", "buckets": buckets}

    histograms = [[BEGUN + 60 * poll, histogram(counts)] for poll, counts in enumerate(counted)]
    return json.dumps(
        {
            "status": "success",
            "data": {
                "resultType": "matrix",
                "result": [{"metric": {"__name__": "op_seconds", "instance": "h1"}, "histograms": histograms}],
            },
        }
    )


@pytest.mark.parametrize("top", [False, True], ids=["closed", "above the last edge"])
@pytest.mark.parametrize("seed", range(3))
def test_d1_custom_buckets_answer_as_classic_ones(tmp_path: Path, seed: int, top: bool) -> None:
    counted = polls(seed, top=top)
    for name, text in (("classic", classic(counted)), ("custom", custom(counted))):
        (tmp_path / f"{name}.json").write_text(text)
    found = answer(tmp_path / "custom.json", "host")
    assert [row[:4] for row in found] == [row[:4] for row in answer(tmp_path / "classic.json", "host")]
    assert sum(row[2] for row in found) == sum(counted[-1]) - sum(counted[0]) and len(found) == 7


def test_d1_a_bucket_without_a_number_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(custom(polls(1, top=False)).replace('"0.05"', '"NaN"'))
    assert sum(row[1] for row in answer(tmp_path / "a.json")) < sum(polls(1, top=False)[-1])


VM = """\
# TYPE request_duration_seconds histogram
request_duration_seconds_bucket{{path="/a",vmrange="8.799e-03...1.000e-02"}} 50
request_duration_seconds_bucket{{path="/a",vmrange="1.000e-02...1.136e-02"}} 40
request_duration_seconds_bucket{{path="/a",vmrange="1.000e-01...1.136e-01"}} {slow}
request_duration_seconds_bucket{{path="/a",vmrange="1.000e+18...+Inf"}} {above}
request_duration_seconds_sum{{path="/a"}} 2.0
request_duration_seconds_count{{path="/a"}} {count}
process_start_time_seconds 1764322680
"""


@pytest.mark.parametrize("above", [0, 5])
def test_d1_ranges_of_victoriametrics(tmp_path: Path, above: int) -> None:
    (tmp_path / "vm.prom").write_text(VM.format(slow=110, above=above, count=200 + above))
    [(_, count, p50, p90, _)] = answer(tmp_path / "vm.prom", step=10**9)
    assert (count, p50, p90) == (200 + above, 113_600_000, 113_600_000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [((" 40\n", " 41\n"), "are not its count"), (("...1.136e-02", "...x"), "is no edge"), (("8.799e-03...", "-5..."), "")],
)
def test_d1_damaged_ranges_are_refused(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    (tmp_path / "vm.prom").write_text(VM.format(slow=110, above=0, count=200).replace(*change))
    if not reason:  # what lies below zero is none, but a bucket may begin there
        assert answer(tmp_path / "vm.prom", step=10**9)[0][1] == 200
        return
    with pytest.raises(InputError, match=reason):
        discover([tmp_path / "vm.prom"], ReadOptions())


@pytest.mark.parametrize("digits", ["000", "250"])
def test_d1_stamps_of_hdrhistogram_go_in_ms(tmp_path: Path, digits: str) -> None:
    """Start and END in ms since 1970: the log says the same as one with start and length in seconds."""
    text = (DATA / "hdr" / "tagged.hlog").read_text()
    lines = [line for line in text.splitlines() if line.startswith("Tag=")][:20]
    head = "#[Histogram log format version 1.3]\n#[StartTime: 1795330000 (seconds since epoch), 2026-11-22T06:46:40Z]\n"
    plain, in_ms = [], []
    for number, line in enumerate(lines):
        tag, _, _, most, payload = line.split(",")
        plain.append(f"{tag},{1_795_330_000 + number}.{digits},1.000,{most},{payload}")
        in_ms.append(f"{tag},{1_795_330_000 + number}{digits}.000000,{1_795_330_001 + number}{digits}.000000,{most},{payload}")
    for name, rows in (("plain", plain), ("ms", in_ms)):
        (tmp_path / f"{name}.hlog").write_text(head + "\n".join(rows) + "\n")
    one, other = (answer(tmp_path / f"{name}.hlog", step=1, recorded_unit_ns=1) for name in ("ms", "plain"))
    assert one == other and len(one) > 3
    [source] = discover([tmp_path / "ms.hlog"], ReadOptions(recorded_unit_ns=1)).sources
    from ingest.read import read

    list(read(source))
    assert any("hdrhistogram-go 1.0 and 1.1" in note for note in source.context.account.notes)


def test_d1_an_end_before_its_start_in_ms_is_rejected(tmp_path: Path) -> None:
    text = (DATA / "hdr" / "tagged.hlog").read_text()
    payload = next(line for line in text.splitlines() if line.startswith("Tag=")).rsplit(",", 1)[1]
    good, bad = (f"Tag=a,1795330000000.000000,{end}.000000,1.0,{payload}\n" for end in (1_795_330_001_000, 1_795_329_000_000))
    (tmp_path / "a.hlog").write_text(good + bad)
    [source] = discover([tmp_path / "a.hlog"], ReadOptions(recorded_unit_ns=1)).sources
    from ingest.read import read

    assert sum(len(part) for part in read(source)) == 1 and source.context.account.rejected == {
        "the interval's length is negative": 1
    }


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_d1_ranges_of_ceph_as_numbers_or_text(tmp_path: Path, text: bool) -> None:
    from ingest.read import read

    def told(number: int) -> int | str:
        return str(number) if text else number

    ranges = [
        {"max": told(-1)},
        {"min": told(0), "max": told(99_999)},
        {"min": told(100_000), "max": told(199_999)},
        {"min": told(200_000)},
    ]
    lines = []
    for poll in range(3):
        axis = {"name": "Latency (usec)", "min": 0, "quant_size": 100_000, "buckets": 4, "scale_type": "log2", "ranges": ranges}
        dump = {"osd": {"op_w_latency_in_bytes_histogram": {"axes": [axis], "values": [0, 300 * poll, 40 * poll, poll]}}}
        lines.append(json.dumps({"sampled_at": BEGUN + poll, "host": "c1", "daemon": "osd.3", "dump": dump}))
    (tmp_path / "osd.ndjson").write_text("\n".join(lines) + "\n")
    assert [row[1:3] for row in answer(tmp_path / "osd.ndjson", step=1)] == [(341, 99_999)] * 2
    for key, reason in (("dump", "a poll without a dump"), ("axes", "no list of axes"), ("values", "counts that are no table")):
        (tmp_path / "osd.ndjson").write_text("\n".join([*lines[:2], lines[2].replace(f'"{key}"', '"x"')]) + "\n")
        [source] = discover([tmp_path / "osd.ndjson"], ReadOptions()).sources
        list(read(source))
        assert [rejected.startswith(reason) for rejected in source.context.account.rejected] == [True], source.context.account


class Kept(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[Any] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


def traces(folder: Path, *, as_text: bool = True) -> list[tuple[str, str, int, int, bool]]:
    """Write spans as the SDK encodes them, 50 a line; return (op, tag, start, end, failed) of each."""
    kept, dice = Kept(), random.Random(4)
    provider = TracerProvider(resource=Resource.create({"service.name": "shop", "host.name": "h1"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer, held = provider.get_tracer("t"), []
    for number in range(300):
        start = BEGUN * SECOND + number * 10**8
        end = start + round(dice.lognormvariate(15, 1))
        kind, failed = dice.choice([SpanKind.SERVER, SpanKind.CLIENT]), number % 20 == 7
        span = tracer.start_span(f"GET /{number % 3}", kind=kind, start_time=start)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)
        held.append((f"GET /{number % 3}", kind.name.lower(), start, end, failed))
    lines = [
        MessageToDict(encode_spans(kept.spans[first : first + 50]), use_integers_for_enums=not as_text)
        for first in range(0, 300, 50)
    ]
    (folder / "traces.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return held


@pytest.mark.parametrize("as_text", [False, True], ids=["numbers", "names"])
def test_d1_spans_are_operations(tmp_path: Path, as_text: bool) -> None:
    held = traces(tmp_path, as_text=as_text)
    from ingest.read import events_of

    [source] = discover([tmp_path / "traces.json"], ReadOptions()).sources
    found = []
    for chunk in events_of(source):
        for code, end, took in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
            series = chunk.table[code]
            assert (series.host, series.job) == ("h1", "shop")
            found.append((series.op, series.tag, end - took, end, series.kind == "service.failed"))
    assert sorted(found) == sorted(held) and source.context.account.rejected == {}
    assert sum(row[1] for row in answer(tmp_path, step=60)) == 300


def test_d1_spans_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    traces(tmp_path)
    text = (tmp_path / "traces.json").read_text()
    first = text.splitlines()[0]
    entry = json.loads(first)
    some = entry["resourceSpans"][0]["scopeSpans"][0]["spans"]
    del some[3]["endTimeUnixNano"], some[4]["name"]
    some[5]["startTimeUnixNano"], some[5]["endTimeUnixNano"] = some[5]["endTimeUnixNano"], some[5]["startTimeUnixNano"]
    (tmp_path / "traces.json").write_text(text.replace(first, json.dumps(entry)) + text.splitlines()[1][:300] + "\n")
    [source] = discover([tmp_path / "traces.json"], ReadOptions()).sources
    from ingest.read import events_of

    assert sum(len(chunk) for chunk in events_of(source)) == 297
    assert source.context.account.rows_rejected == 4 and source.context.account.rejected["it ended before it began"] == 1
