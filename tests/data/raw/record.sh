#!/usr/bin/env bash
# Records the fixtures of raw logs beside this script; PROVENANCE.md says what each one shows.
#
#   tests/data/raw/record.sh OUTPUT_DIR
#
# Needs fio (recorded with 3.33, Debian), a JDK and Maven (which fetches YCSB from Maven Central), perf and root for its
# tracepoints, and half a minute.
set -euo pipefail

[[ $# -eq 1 ]] || { echo "usage: $0 OUTPUT_DIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs a command in a fresh folder of that name and publishes the folder, without the file that fio worked on.
record() {
    local name=$1
    shift
    echo "recording $name" >&2
    mkdir -p "$work/$name"
    (cd "$work/$name" && "$@" >/dev/null)
    rm -f "$work/$name/data"
    rm -rf "${out:?}/$name"
    cp -r "$work/$name" "$out/$name"
}

null=(--ioengine=null --size=1g --bs=4k --time_based --rw=randrw --rate_iops=200,100)
json=(--output-format=json+ --output=a.json)
raw=(--write_lat_log=a)

# Both kinds of log of one run, on a file, deep enough a queue for a tail.
both() {
    fio --name=j --ioengine=libaio --direct=1 --filename=data --size=64m --bs=4k --time_based --runtime=8s --iodepth=8 \
        --rw=randrw --rate_iops=1500,700 --percentile_list=50:75:90:95:99:99.9 --lat_percentiles=1 --disk_util=0 \
        --write_hist_log=a --log_hist_msec=1000 "${raw[@]}" "${json[@]}"
    xz a_*.log
}
record both both

record offset fio --name=j "${null[@]}" --runtime=1s --log_offset=1 "${raw[@]}" "${json[@]}"
record priority fio --name=j "${null[@]}" --runtime=1s --log_prio=1 "${raw[@]}" "${json[@]}"
record offset-priority fio --name=j "${null[@]}" --runtime=1s --log_offset=1 --log_prio=1 "${raw[@]}" "${json[@]}"
record unix-epoch fio --name=j "${null[@]}" --runtime=1s --log_unix_epoch=1 "${raw[@]}" "${json[@]}"

# One log for two jobs, appended to by a second run.
shared() {
    fio --name=j "${null[@]}" --runtime=1s --numjobs=2 --thread --per_job_logs=0 "${raw[@]}" --output-format=json+ --output="$1"
}
twice() {
    shared a.json
    mkdir first
    cp a_clat.log first/
    mv a.json first/
    shared a.json
    rm -f a_slat.log a_lat.log
}
record appended twice

# Two sections of two jobs each: four logs, one JSON.
record sections fio "${null[@]}" --runtime=1s --numjobs=2 "${raw[@]}" "${json[@]}" \
    --name=first --rw=randread --name=second --rw=randwrite

# YCSB against the database of its own that does nothing but wait.
ycsb() {
    cat >pom.xml <<XML
<project>
  <modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
  <dependencies><dependency><groupId>site.ycsb</groupId><artifactId>core</artifactId><version>0.17.0</version></dependency></dependencies>
</project>
XML
    mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars
    local words=(-t -db site.ycsb.BasicDB -threads 2 -p workload=site.ycsb.workloads.CoreWorkload -p recordcount=1000
        -p operationcount=300 -p readproportion=0.7 -p updateproportion=0.3 -p basicdb.verbose=false -p basicdb.simulatedelay=5
        -p measurementtype=raw -p measurement.interval=both)
    java -cp 'jars/*' site.ycsb.Client "${words[@]}" -p measurement.raw.output_file=raw.csv >summary.txt 2>/dev/null
    java -cp 'jars/*' site.ycsb.Client "${words[@]}" >stdout.txt 2>/dev/null
    rm -rf jars pom.xml
}
record ycsb ycsb

# Block requests and system calls of a run whose raw log says the same, and some with stacks. Needs root.
traced() {
    local events=(-e block:block_rq_issue -e block:block_rq_complete -e 'syscalls:sys_*_pread64' -e 'syscalls:sys_*_pwrite64')
    perf record -q -a "${events[@]}" -o perf.data -- fio --name=j --ioengine=psync --direct=1 --filename=data --size=4m --bs=4k \
        --time_based --runtime=1s --rw=randrw --rate_iops=150,100 "${raw[@]}" "${json[@]}"
    perf script -i perf.data >us.txt
    perf script --ns -F comm,pid,tid,cpu,time,event,trace -i perf.data 2>/dev/null >ns.txt
    perf record -q -a -g -e block:block_rq_issue -e block:block_rq_complete -e 'syscalls:sys_*_write' -e cpu-clock/freq=19/ -o perf.data -- \
        dd if=/dev/zero of=data bs=64k count=8 oflag=direct 2>/dev/null
    perf script -i perf.data >stacks.txt
    rm perf.data*
    xz ns.txt us.txt stacks.txt a_*.log
}
record perf traced
