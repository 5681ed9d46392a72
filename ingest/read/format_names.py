"""The names of formats, as `--input-format` takes them and stores keep them; the table of formats says what each is."""

HIST, RAW, JSON, HDR, OPERATIONS = "fio-hist", "fio-raw", "fio-json", "hdr-log", "operations"
AVERAGED, PLAIN_JSON = "fio-averaged", "fio-plain-json"
SMALLFILE, YCSB, PERF, CHROME, SNABB, DESCRIBED = "smallfile", "ycsb-raw", "perf-script", "chrome-trace", "snabb", "described"
OTLP, PROMETHEUS, PGBENCH, DESCRIBED_HISTOGRAMS = "otlp", "prometheus", "pgbench", "described-histograms"
SPANS = "otlp-spans"
CEPH, HDR_SNAPSHOTS, SAMPLES, MEMTIER = "ceph-histograms", "hdr-snapshots", "samples", "memtier"
BPFTRACE, BCC, ASBENCH, YCSB_HISTOGRAM = "bpftrace", "bcc", "asbench", "ycsb-histogram"

OF_FIO = (HIST, RAW, AVERAGED, JSON, PLAIN_JSON)  # what clients under CBT and pbench leave
SERVERS = (BCC, BPFTRACE, CEPH, OTLP, PROMETHEUS, SAMPLES)  # what servers counted, while benchmarks came and went
