"""The formats of other tools that come with tailboard, one module or package each.

Each value here is an entry point of the group `tailboard.formats` in pyproject.toml, as those of other distributions are in
theirs: what a file is known by, and the module that reads it once there is one.
"""

from ingest.read import format_names
from ingest.read.formats import WHOLE_HEAD, Format

BPFTRACE_MAP = (
    rb'(?m)^[ \[]*\{\s*"type":\s*"(attached_probes|hist|lhist|printf|time)"'
    rb"|^(@\w*(\[[^\n]*\])?|[^\n]*\]):\s*\n[\[(](\.\.\.|-?\d)"
)

SNABB = Format(
    format_names.SNABB,
    "Snabb timeline",
    "ingest.read.plugins.snabb.timeline:READER",
    names=r"\.timeline$|^engine/timeline$",
    head=rb"\A\x01\x00\x1d\x44",
    known_by="content: its magic number; or a name that ends in `.timeline`",
    holds="events of one process, each with its lag",
)
SMALLFILE = Format(
    format_names.SMALLFILE,
    "smallfile response times",
    "ingest.read.plugins.smallfile:READER",
    names=r"/rsptimes_[^/]*\.csv$",
    known_by="file name `rsptimes_...csv`",
    holds="single operations of a thread",
)
YCSB = Format(
    format_names.YCSB,
    "YCSB raw measurements",
    "ingest.read.plugins.ycsb:RAW_MEASUREMENTS",
    head=rb" latency raw data: op, timestamp\(ms\), latency\(us\)",
    reach=WHOLE_HEAD,
    known_by="content: `latency raw data: op, timestamp(ms), latency(us)`",
    holds="single operations",
)
YCSB_HISTOGRAM = Format(
    format_names.YCSB_HISTOGRAM,
    "YCSB histograms",
    "ingest.read.plugins.ycsb:HISTOGRAM",
    head=rb"(?m)^\[[A-Za-z][\w-]*\], 0, \d+\r?\n\[[A-Za-z][\w-]*\], 1, \d+\r?$",
    reach=WHOLE_HEAD,
    known_by="content: `[READ], 0, 530` and `[READ], 1, 7` (`measurementtype=histogram`)",
    holds="a histogram of each op over the whole run, in whole ms",
)
SAMPLES = Format(
    format_names.SAMPLES,
    "answers kept by tailboard record sample",
    "ingest.read.plugins.sample:READER",
    head=rb'\A\{"sampled_at":[\d.]+,"record":"',
    known_by='content: `{"sampled_at":..,"record":..` (`tailboard record sample`)',
    holds="histograms of Ceph, Redis, Prometheus, OpenTelemetry, or as a `.yml` says, by poll",
)
OTLP = Format(
    format_names.OTLP,
    "OpenTelemetry metrics",
    "ingest.read.plugins.otlp:READER",
    head=rb'"resourceMetrics"\s*:',
    known_by='content: `{"resourceMetrics":` (file exporter of the Collector, SDKs)',
    holds="histograms per interval or since a start, exponential or with bounds",
)
SPANS = Format(
    format_names.SPANS,
    "OpenTelemetry spans",
    "ingest.read.plugins.otlp:OF_SPANS",
    head=rb'\A\s*\{\s*"resourceSpans"\s*:',
    known_by='content: `{"resourceSpans":` (file exporter of the Collector, SDKs)',
    holds="single operations, and whether they failed",
)
PROMETHEUS = Format(
    format_names.PROMETHEUS,
    "Prometheus histograms",
    "ingest.read.plugins.prometheus:READER",
    head=rb'_bucket\{[^\n]*(le|vmrange)="|"resultType"|\{__name__="',
    reach=WHOLE_HEAD,
    known_by="content: `NAME_bucket{...le=...}` (exposition, `promtool tsdb dump`), or an answer of the query API",
    holds="histograms since the start of a process, with bounds; over HTTP also native ones",
)
PGBENCH = Format(
    format_names.PGBENCH,
    "pgbench transactions",
    "ingest.read.plugins.pgbench:READER",
    names=r"pgbench_log\.\d+(\.\d+)?$",
    head=rb"\A\d+ \d+ (\d+|skipped|failed|serialization|deadlock) \d+ \d{9,10} \d{1,6}\b",
    known_by="content: lines of `pgbench -l`; file name `pgbench_log.PID[.N]`",
    holds="single transactions; with `-R` their response, wait and service time",
)
CEPH = Format(
    format_names.CEPH,
    "Ceph histograms",
    "ingest.read.plugins.ceph:READER",
    head=rb'(?s)"dump"\s*:.*"axes"\s*:',
    reach=WHOLE_HEAD,
    known_by='content: `{"sampled_at": .., "dump": {` and `"axes"`',
    holds="histograms of a daemon since its start, by latency",
)
HDR_SNAPSHOTS = Format(
    format_names.HDR_SNAPSHOTS,
    "HdrHistogram snapshots",
    "ingest.read.plugins.hdr_snapshots:READER",
    head=rb'"SignificantFigures"\s*:',
    known_by='content: `"SignificantFigures":` and `"Counts":` (cockroach workload)',
    holds="histograms per interval and op",
)
MEMTIER = Format(
    format_names.MEMTIER,
    "memtier_benchmark JSON",
    "ingest.read.plugins.memtier:READER",
    head=rb'(?s)\A\s*[\[{].*"(ALL STATS|BEST RUN RESULTS|run information)"\s*:',
    reach=WHOLE_HEAD,
    known_by='content: JSON with `"run information":` or `"ALL STATS":` (`--json-out-file`)',
    holds="a histogram of each command over the whole run",
)
ASBENCH = Format(
    format_names.ASBENCH,
    "asbench histograms",
    "ingest.read.plugins.asbench:READER",
    head=rb"(?m)^(read|write|udf)_hist(:\r?$| \d{4}-\d\d-\d\dT)",
    reach=WHOLE_HEAD,
    known_by="content: `read_hist:` or `write_hist 2026-..` (`asbench --output-file`)",
    holds="histograms per period and op",
)
BPFTRACE = Format(
    format_names.BPFTRACE,
    "bpftrace histograms",
    "ingest.read.plugins.bpftrace:READER",
    head=BPFTRACE_MAP,
    known_by='content: `@NAME:` and lines `[16, 32)  5 |@@ |`; with `-f json` `{"type": "hist"`',
    holds="histograms since the start of the script, or since they were cleared",
)
BCC = Format(
    format_names.BCC,
    "bcc histograms",
    "ingest.read.plugins.bcc:READER",
    head=rb"(?m)^ +[nmu]?secs +: count +distribution",
    known_by="content: a line `usecs : count distribution` (`biolatency -T` and other tools of bcc)",
    holds="histograms of the intervals between two prints",
)
PERF = Format(
    format_names.PERF,
    "perf script",
    "ingest.read.plugins.perf:READER",
    head=rb": ",
    known_by="content: a sample with a time stamp, or its header",
    holds="block requests and system calls; moments of samples",
)
CHROME = Format(
    format_names.CHROME,
    "Chrome trace",
    "ingest.read.plugins.chrome:READER",
    head=rb'"ph"\s*:',
    reach=WHOLE_HEAD,
    known_by='content: an array, or `{"traceEvents": [`, of objects with `"ph"`',
    holds="single operations",
)
OPERATIONS = Format(
    format_names.OPERATIONS,
    "operation log",
    "ingest.read.operation_log:READER",
    last=True,
    head=rb"\A[^\n]*,",
    known_by="content: a first line that names a start and an end or latency",
    holds="single operations; with a schedule their response and wait time",
)
