"""What holds percentiles only is refused by the tool's name, with the reason and what to ask it for; nothing else is.

The texts follow the forms that the tools print; wrk 4.1, redis-benchmark 7.0, Locust, k6's JSON, elbencho's text and pgbench 15 are recordings.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.core.errors import TailboardError
from ingest.read.placement import discover
from ingest.read.refused import tools
from ingest.read.sources import ReadOptions
from tests.read.test_histograms import DATA

WRK = "Running 30s test @ http://127.0.0.1:8080/x\n  12 threads and 400 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   635.91us    0.89ms  12.92ms   93.69%\nRequests/sec: 748868.53\n"
SYSBENCH = (
    "{}[ 10s ] thds: 4 tps: 93.38 qps: 1875.13 (r/w/o: 1312.87/375.10/187.15) lat (ms,95%): 58.92 err/s: 0.00 reconn/s: 0.00\n"
)
SYSBENCH_END = "sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nGeneral statistics:\n    total number of events:  957\n\nLatency (ms):\n         min:   1.04\n         95th percentile:   1.12\n"
MEMTIER = "ALL STATS\n=========\nType         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency\n------\nSets        13604.50          ---\n"
NODETOOL = "ks/t histograms\nPercentile  Read Latency     Write Latency          SSTables    Partition Size        Cell Count\n                (micros)          (micros)\n50%              158.49            120.00              1.00\n"
CFHISTOGRAMS = "Percentile  SSTables     Write Latency      Read Latency    Partition Size        Cell Count\n                              (micros)          (micros)\n50%             2.00              0.00\n"
PROXY = "proxy histograms\nPercentile       Read Latency      Write Latency      Range Latency\n                     (micros)           (micros)\n50%                   1502.50            375.00\n"
ROCKSDB = "2022/11/24-15:58:09.512106 32851 [/db_impl/db_impl.cc:761] STATISTICS:\n rocksdb.block.cache.miss COUNT : 61\nrocksdb.db.get.micros P50 : 8.4 P95 : 21.8 P99 : 33.9 P100 : 92.0 COUNT : 7 SUM : 88\n"
AB = "This is ApacheBench, Version 2.3 <$Revision: 1 $>\n\nConnection Times (ms)\n              min  mean[+/-sd] median   max\nTotal:          3    6   1.3      6      28\n\nPercentage of the requests served within a certain time (ms)\n  50%      6\n 100%     28 (longest request)\n"
VEGETA = "Requests      [total, rate, throughput]         1200, 120.00, 65.87\nLatencies     [min, mean, 50, 90, 95, 99, max]  1ms, 2ms, 2ms, 3ms, 3ms, 4ms, 9ms\n"
HEY = "\nSummary:\n  Total:\t1.8 secs\n\nLatency distribution:\n  10% in 0.0012 secs\n  25% in 0.0014 secs\n"
OHA = "Summary:\n  Success rate:\t100.00%\n\nResponse time distribution:\n  10.00% in 0.0012 secs\n"
K6 = "     http_req_blocked...............: avg=1.1ms  min=1us\n     http_req_duration..............: avg=117.55ms min=102ms med=104ms max=801ms p(90)=130.2ms p(95)=178.8ms\n"
K6_NOW = "     http_req_duration...............: count=325 min=0s     avg=9.52ms  p(90)=11.77ms p(95)=54.97ms\n"
FORTIO = "Fortio 1.75.2 running at 100 queries per second\nAggregated Function Time : count 300 avg 0.0158 +/- 0.023 min 0.0013 max 0.173\n"
VLLM = "============ Serving Benchmark Result ============\nSuccessful requests:                     189\n"
VLLM_RESULT = (
    '{"date": "20261130-051012", "endpoint_type": "openai", "model_id": "stub", "tokenizer_id": "stub", "p99_ttft_ms": 120.4}'
)
YCSB = "[OVERALL], RunTime(ms), 10110\n[READ], Operations, 9000\n[READ], 95thPercentileLatency(us), 1101\n[READ], 99thPercentileLatency(us), 2101\n"
STRESS = "Results:\nOp rate                   :    6,784 op/s  [WRITE: 6,784 op/s]\nLatency median            :    0.5 ms [WRITE: 0.5 ms]\nLatency 95th percentile   :    1.2 ms [WRITE: 1.2 ms]\n"
SYSBENCH_04 = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nTest execution summary:\n    total number of events:              712\n    per-request statistics:\n         min:                                  4.05ms\n         avg:                                 84.55ms\n         max:                                311.89ms\n         approx.  95 percentile:             224.40ms\n"
SYSBENCH_05 = "sysbench 0.5:  multi-threaded system evaluation benchmark\n\nGeneral statistics:\n    total number of events:              712\n    response time:\n         min:                                  4.05ms\n         avg:                                 84.55ms\n         max:                                311.89ms\n         approx.  95 percentile:             224.40ms\n"
FIO_RESULT = "a: (groupid=0, jobs=1): err= 0: pid=3021: Wed Nov 25 12:00:00 2026\n  read: IOPS=6736, BW=26.3MiB/s (27.6MB/s)(1024KiB/38msec)\n    clat (usec): min=71, max=8170, avg=141.94, stdev=531.05\n    clat percentiles (usec):\n     |  1.00th=[   73],  5.00th=[   75], 10.00th=[   77], 20.00th=[   81],\n"
FIO = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\nStarting 1 process\n\n"
TERSE = "3;fio-3.33;a;0;0;1024;26947;6736;38;0;0;0.000000;0.000000;71;8170;141.939371;531.045336;1.000000%=73;5.000000%=75\n"
TEXTS = {
    "wrk": [(DATA / "wrk41_latency.txt").read_text(), WRK],
    "sysbench --report-interval": [
        SYSBENCH.format(""),
        SYSBENCH.format("WARNING: --max-time is deprecated\nsysbench 1.0.20\n\nThreads started!\n\n"),
    ],
    "sysbench": [SYSBENCH_END],
    "sysbench before 1.0": [SYSBENCH_04, SYSBENCH_05],
    "fio's text output": [FIO_RESULT, FIO + FIO_RESULT],
    "fio's terse output": [TERSE, TERSE.replace("3;fio-3.33", "2"), TERSE.replace("3;", "5;", 1), f"fio: a warning\n{TERSE}"],
    "redis-benchmark --csv": [(DATA / "redis70_benchmark.csv").read_text()],
    "memtier_benchmark": [MEMTIER],
    "Locust history": [(DATA / "locust_stats_history.csv").read_text()],
    "nodetool tablehistograms or proxyhistograms": [NODETOOL, CFHISTOGRAMS, PROXY],
    "RocksDB statistics": [ROCKSDB],
    "ab": [AB],
    "ab -e": ["Percentage served,Time in ms\n0,1.234\n1,1.300\n"],
    "vegeta report": [VEGETA],
    "hey or oha": [HEY, OHA, '{\n  "summary": {\n    "successRate": 1.0,\n    "total": 2.504119758,\n'],
    "elbencho": [
        (DATA.parent / "generators" / "elbencho-r1.total.txt").read_text(),
        "ISO date,label,path type,paths,hosts,threads,dirs\n",
        '{"phase_type":"READ","phase_id":"1184e976","last_done":{"latency":{"IO":{"min_us":"2","avg_us":"2","max_us":"35"}}}}\n',
    ],
    "vLLM's bench": [VLLM, VLLM_RESULT],
    "k6's summary": [K6, K6_NOW, (DATA.parent / "generators" / "k6-r1.total.json").read_text()],
    "YCSB's summary": [YCSB, YCSB.replace("(us)", "(ms)")],
    "asbench --latency": [
        "2026-11-24 19:12:01 INFO read(tps=900)\nhdr: read  2026-11-24T19:12:01Z 1, 901, 60, 21000, 410, 700, 900\n"
    ],
    "cassandra-stress": [STRESS],
}
REASON = "percentiles only, which cannot be added up or put on one time axis"


def test_every_refusal_has_its_text() -> None:
    assert set(TEXTS) == {entry.tool for entry in tools() if entry.tool}


@pytest.mark.parametrize("tool", TEXTS)
def test_percentiles_only_are_refused_by_name_with_what_to_ask(tmp_path: Path, tool: str) -> None:
    [sentence] = [entry.sentence for entry in tools() if entry.tool == tool]
    assert sentence.startswith(f"{tool}: {REASON}; ")
    for number, text in enumerate(TEXTS[tool]):
        path = tmp_path / f"out{number}.txt"
        path.write_text(text)
        with pytest.raises(TailboardError, match=re.escape(sentence)):
            discover([path], ReadOptions(run="r"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "YCSB Client 0.9.0\nCommand line: -threads 16\nLoading workload...\n",
            "what YCSB prints, without latencies where it begins",
        ),
        ("java -cp x\nDBWrapper: report latency for each error is false\n", "give --input-format ycsb-raw or ycsb-histogram"),
        (FORTIO, "fortio's own histogram, with failed calls among the others: run it with -access-log-file FILE"),
        ('{\n  "RunType": "HTTP",\n  "Labels": "x",\n', "run it with -access-log-file FILE"),
        ("# Workload A\nrecordcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\n", "a workload of YCSB: run it"),
    ],
)
def test_what_a_tool_writes_beside_its_measurements_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.dat").write_text(text)
    with pytest.raises(TailboardError, match=re.escape(said)):
        discover([tmp_path / "x.dat"], ReadOptions(run="r"))


def test_fio_json_without_a_count_says_that_the_count_is_missing(tmp_path: Path) -> None:
    """As fio 2.1.4 wrote it: recorded by fio 3.33, without what came later. A job without any latency is something else."""
    recorded = re.sub(r'"(total_ios|N)" :', '"other" :', (DATA.parent / "fio" / "plain-json" / "a.json").read_text())
    (tmp_path / "a.json").write_text(recorded)
    with pytest.raises(TailboardError, match="nothing says of how many I/Os \\(total_ios"):
        discover([tmp_path / "a.json"], ReadOptions(run="r"))
    (tmp_path / "a.json").write_text(re.sub(r'"mean" : [\d.]+', '"mean" : 0.0', recorded))
    with pytest.raises(TailboardError, match="without a latency"):
        discover([tmp_path / "a.json"], ReadOptions(run="r"))


def test_a_folder_with_one_is_read_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What lies beside logs does not stop them."""
    (tmp_path / "nodetool.txt").write_text(NODETOOL)
    (tmp_path / "pgbench_log.7").write_text((DATA / "pgbench15_plain.log").read_text())
    assert tailboard(["inspect", str(tmp_path)]) == 0
    assert "nodetool tablehistograms" in capsys.readouterr().out


def test_samples_of_real_formats_are_not_taken_for_percentiles() -> None:
    """Of all recordings, only those that hold percentiles alone match."""
    mine = {"wrk41_latency.txt", "redis70_benchmark.csv", "locust_stats_history.csv"}
    for path in DATA.iterdir():
        start = path.read_bytes()[:8192]
        matching = [entry.tool for entry in tools() if entry.tool and re.search(entry.head, start)]
        assert bool(matching) == (path.name in mine), (path, matching)
