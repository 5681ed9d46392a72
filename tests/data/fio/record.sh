#!/usr/bin/env bash
# Records the fio fixtures beside this script; PROVENANCE.md says what each one shows.
#
#   tests/data/fio/record.sh OUTPUT_DIR
#
# Needs fio (recorded with 3.33, Debian), unshare and about two minutes. The null engine with a
# rate limit completes I/O without a disk, so a run costs a few percent of one core.
set -euo pipefail

[[ $# -eq 1 ]] || { echo "usage: $0 OUTPUT_DIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
server=
trap 'if [[ $server ]]; then kill "$server" || true; fi; rm -rf "$work"' EXIT

# Runs a command in a fresh folder of that name and publishes the folder. fio puts the folder it runs
# in into none of its outputs as long as every path it is given is relative.
record() {
    local name=$1
    shift
    echo "recording $name" >&2
    mkdir -p "$work/$name"
    (cd "$work/$name" && "$@" >/dev/null)
    rm -rf "${out:?}/$name"
    cp -r "$work/$name" "$out/$name"
}

null=(--ioengine=null --size=1g --bs=4k --time_based)
json=(--output-format=json+ --output=a.json)
hist=(--write_hist_log=a --log_hist_msec=500)
raw=(--write_lat_log=a)
read=(--rw=randread --rate_iops=200)
mixed=(--rw=randrw --rate_iops=200,100)

record randrw fio --name=j "${null[@]}" "${mixed[@]}" --runtime=4500ms \
    --write_hist_log=a --log_hist_msec=1000 "${raw[@]}" "${json[@]}"

for c in 1 2 3 4 5 6; do
    record "coarse-$c" fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms \
        "${hist[@]}" --log_hist_coarseness="$c" "${raw[@]}" "${json[@]}"
done

record unix-epoch fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --ramp_time=1 --log_unix_epoch=1 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

shared_log() {
    fio --name=j "${null[@]}" "${read[@]}" --runtime=1800ms --numjobs=2 --thread --per_job_logs=0 \
        "${hist[@]}" --log_hist_coarseness=3 --output-format=json+ --output="$1"
}
record per-job-logs-0 shared_log a.json
shared_log_twice() {
    shared_log a.json
    shared_log b.json
}
record appended shared_log_twice

record bssplit fio --name=j "${null[@]}" "${mixed[@]}" --bssplit=4k/50:64k/50 --runtime=2300ms \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

record zero-rows fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --clat_percentiles=0 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

record empty fio --name=j "${null[@]}" "${mixed[@]}" --runtime=1800ms --gtod_reduce=1 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

record trim fio --name=j "${null[@]}" --rw=randtrim --rate_iops=,,200 --runtime=2300ms \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

record group-reporting fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --numjobs=2 --group_reporting \
    "${hist[@]}" --log_hist_coarseness=3 "${json[@]}"

# Unlike rates tell the sections apart in the logs.
record two-sections fio "${null[@]}" --runtime=2300ms --numjobs=2 "${hist[@]}" --log_hist_coarseness=6 "${json[@]}" \
    --name=first --rw=randread --rate_iops=200 \
    --name=second --rw=randwrite --rate_iops=100

record compressed fio --name=j "${null[@]}" "${read[@]}" --runtime=2300ms --log_compression=1k \
    "${hist[@]}" --log_hist_coarseness=3 "${json[@]}"

record averaged fio --name=j "${null[@]}" "${mixed[@]}" --runtime=4500ms --log_avg_msec=500 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

think=(--thinktime=3s --thinktime_blocks=300)
record stall fio --name=j "${null[@]}" "${read[@]}" --runtime=6s "${think[@]}" --rate_ignore_thinktime=1 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

# A rate that counts thinking time is made up for in one burst: rows with one and the same stamp.
record stall-burst fio --name=j "${null[@]}" "${read[@]}" --runtime=6s "${think[@]}" \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

# A queue deeper than one makes the null engine poll: a third of a core for five seconds.
record latency-target fio --name=j "${null[@]}" "${mixed[@]}" --runtime=8s --iodepth=8 \
    --latency_target=1ms --latency_window=1000ms --latency_percentile=90 \
    "${hist[@]}" --log_hist_coarseness=4 "${raw[@]}" "${json[@]}"

# The server prefixes its lines with its host name; a name space gives it one of our own.
# Options after --client go to the server too, which opens an output file of its own where it runs.
mkdir "$work/server"
unshare --map-root-user --uts --wd "$work/server" \
    sh -c 'hostname h1; exec fio --server=ip:127.0.0.1,18765' >/dev/null 2>&1 &
server=$!
until (exec 3<>/dev/tcp/127.0.0.1/18765) 2>/dev/null; do
    kill -0 "$server"
    sleep 0.1
done
remote_job() {
    cat >job.fio <<EOF
[global]
ioengine=null
size=1g
bs=4k
time_based
runtime=4500ms
log_hist_msec=500
log_hist_coarseness=3

[cs]
$(printf '%s\n' "$@")
write_hist_log=cs
EOF
}
# Given before --client, --output stays here and receives the server's lines as well.
remote_prefixed() {
    remote_job "$@"
    fio "${json[@]}" --client=ip:127.0.0.1,18765 job.fio
}
remote_plain() {
    remote_job "$@"
    fio --client=ip:127.0.0.1,18765 "${json[@]}" job.fio
}
record client-server remote_prefixed rw=randread rate_iops=200
record client-server-rw remote_plain rw=randrw rate_iops=200,100
remote_twice() {
    remote_job "$@"
    for _ in 1 2; do fio --client=ip:127.0.0.1,18765 --output-format=json+ job.fio >>a.json; done
    rm -f cs_clat_hist*
}
record loop-client remote_twice rw=randread rate_iops=100 runtime=300ms
kill "$server"
wait "$server" || true
server=

record status-interval fio --name=j "${null[@]}" "${mixed[@]}" --runtime=4500ms --numjobs=2 \
    --status-interval=1 "${json[@]}"

# The null engine completes at once and reports no submission latency; this needs a queue and a file.
submission() {
    fio --name=j --ioengine=libaio --filename=data --size=4m --bs=4k --time_based "${mixed[@]}" --iodepth=4 \
        --runtime=2300ms --lat_percentiles=1 --slat_percentiles=1 --disk_util=0 \
        "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"
    rm data
}
record lat-percentiles submission

two_hosts() {
    local host pids=()
    for host in h1 h2; do
        mkdir -p "clients/$host"
        (cd "clients/$host" && fio --name=fio "${null[@]}" "${mixed[@]}" --runtime=2300ms \
            --write_hist_log=fio --log_hist_msec=500 --log_hist_coarseness=3 "${json[@]}") &
        pids+=($!)
    done
    wait "${pids[0]}"
    wait "${pids[1]}"
}
record host-folders two_hosts

# Jobs of one run that begin at different times. Each I/O's real time shows when its job began; fio 3.33 says it nowhere.
begin=("${null[@]}" --rw=randread --rate_iops=20 --runtime=2 --log_unix_epoch=1 "${raw[@]}" --output-format=json --output=a.json)
record starts-stonewall fio "${begin[@]}" --name=a --name=b --stonewall --runtime=3 --name=c --stonewall
record starts-startdelay fio "${begin[@]}" --name=a --name=b --startdelay=2 --name=c --startdelay=1500ms
record starts-wall-delay fio "${begin[@]}" --name=a --name=b --stonewall --startdelay=1 \
    --name=c --stonewall --runtime=1 --name=d --startdelay=2 --runtime=1
record starts-new-group fio "${begin[@]}" --name=a --name=b --new_group=1 --runtime=3 --name=c --new_group=1
record starts-ramp fio "${begin[@]}" --name=a --ramp_time=1 --name=b --stonewall --ramp_time=2
record starts-wait-for fio "${begin[@]}" --name=a --name=b --wait_for=a --runtime=3 --name=c --wait_for=b
record starts-numjobs fio "${begin[@]}" --name=a --numjobs=3 --name=b --stonewall --numjobs=2 --runtime=3
record starts-group-reporting fio "${begin[@]}" --group_reporting --name=a --numjobs=3 --name=b --stonewall --numjobs=2
record starts-loops fio "${begin[@]}" --time_based=0 --size=80k --loops=2 --name=a --name=b --stonewall
record starts-delay-range fio "${begin[@]}" --name=a --name=b --startdelay=1-3
record starts-uneven fio "${begin[@]}" --name=a --runtime=1 --name=b --runtime=3 --name=c --stonewall --runtime=1 --name=d
record starts-delay-ramp fio "${begin[@]}" --name=a --name=b --startdelay=2 --ramp_time=1 --name=c --stonewall --startdelay=1

record unified fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --unified_rw_reporting=1 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"
record unified-both fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --unified_rw_reporting=both \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"

record other-clock fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms \
    --log_alternate_epoch=1 --log_alternate_epoch_clock_id=1 \
    "${hist[@]}" --log_hist_coarseness=3 "${raw[@]}" "${json[@]}"
plain=(--output-format=json --output=a.json)
means=(--write_lat_log=a --write_iops_log=a --write_bw_log=a)
record means-100 fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --numjobs=2 "${means[@]}" --log_avg_msec=100 "${plain[@]}"
record means-500 fio --name=j "${null[@]}" "${mixed[@]}" --runtime=4300ms "${means[@]}" --log_avg_msec=500 \
    --log_hist_msec=500 --write_hist_log=h --log_hist_coarseness=3 "${plain[@]}"
record means-sparse fio --name=j "${null[@]}" --rw=randrw --rate_iops=7,2 --runtime=2300ms "${means[@]}" --log_avg_msec=100 "${plain[@]}"
record means-sizes fio --name=j --ioengine=null --size=1g --time_based --rw=randrw --rate_iops=200,100 --runtime=3300ms \
    --bssplit=4k/50:64k/50,16k "${means[@]}" --log_avg_msec=500 "${plain[@]}"
record means-pause fio --name=j "${null[@]}" "${mixed[@]}" --runtime=4300ms --thinktime=1500ms --thinktime_blocks=300 \
    --rate_ignore_thinktime=1 "${means[@]}" --log_avg_msec=100 "${plain[@]}"
record means-grouped fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --numjobs=3 --group_reporting "${means[@]}" \
    --log_avg_msec=500 "${plain[@]}"
record means-shared fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --numjobs=2 --thread --per_job_logs=0 "${means[@]}" \
    --log_avg_msec=500 "${plain[@]}"
record means-epoch fio --name=j "${null[@]}" "${mixed[@]}" --runtime=2300ms --ramp_time=1 --log_unix_epoch=1 "${means[@]}" \
    --log_avg_msec=500 "${plain[@]}"
record means-last-job fio "${null[@]}" "${mixed[@]}" --runtime=1300ms "${plain[@]}" --name=a --name=b "${means[@]}" --log_avg_msec=500
record plain-json fio --name=j "${null[@]}" "${mixed[@]}" --runtime=1300ms --numjobs=2 "${plain[@]}"

# What is written is read again and compared: the directions of one job run one after the other. This needs a file.
verified=(--name=j --filename=file --size=16m --bs=16k --rate_iops=600 --verify=sha3-512)
coarse=(--write_hist_log=a --log_hist_msec=200 --log_hist_coarseness=3)
verify() {
    fio "${verified[@]}" "$@"
    rm -f file ./*-verify.state
}
record verified verify --rw=randwrite "${coarse[@]}" "${raw[@]}" "${json[@]}"
record verified-mixed verify --rw=randrw "${coarse[@]}" "${raw[@]}" "${json[@]}"
record verified-loops verify --rw=randwrite --loops=2 "${coarse[@]}" "${raw[@]}" "${json[@]}"
record verified-backlog verify --rw=randwrite --verify_backlog=256 "${coarse[@]}" "${raw[@]}" "${json[@]}"
record verified-short verify --rw=randwrite --size=4m --verify=crc32c "${coarse[@]}" "${raw[@]}" "${json[@]}"
record verified-group verify --rw=randwrite --size=8m --numjobs=2 --group_reporting --thread --offset_increment=8m "${coarse[@]}" "${raw[@]}" "${json[@]}"
record verified-means verify --rw=randwrite "${means[@]}" --log_avg_msec=200 "${plain[@]}"

# Several runs appended to one JSON, as a loop of a shell does it.
short=(--ioengine=null --size=1g --bs=4k --time_based --rw=randread --runtime=300ms)
loop_of_names() {
    for n in 1 4 16; do fio --name="t$n" "${short[@]}" --rate_iops=$((n * 100)) --output-format="$1" >>a.json; done
}
record loop-names loop_of_names json+
record loop-plain loop_of_names json
loop_of_status() {
    for _ in 1 2; do
        fio --name=j "${short[@]}" --runtime=600ms --rate_iops=100 --status-interval=250ms --output-format=json+ >>a.json
    done
}
record loop-status loop_of_status
loop_of_stages() {
    for _ in 1 2; do
        fio "${short[@]}" --rate_iops=100 --output-format=json+ --name=a --name=b --stonewall --runtime=200ms >>a.json
    done
}
record loop-stages loop_of_stages
loop_of_groups() {
    for _ in 1 2; do
        fio --name=j "${short[@]}" --numjobs=3 --group_reporting --rate_iops=100 --output-format=json+ >>a.json
    done
}
record loop-groups loop_of_groups
loop_of_verified() {
    for _ in 1 2; do
        fio "${verified[@]}" --size=1m --rw=randwrite --output-format=json+ >>a.json
        rm -f file ./*-verify.state
    done
}
record loop-verified loop_of_verified
# Logs of the first run, of none, and of two that have the same names: the last one has overwritten them.
loop_of_logs() {
    local log
    for log in h "" g g; do
        fio --name=j "${short[@]}" --rate_iops=200 ${log:+--write_hist_log="$log"} --log_hist_msec=100 --log_hist_coarseness=6 \
            --output-format=json+ >>a.json
    done
}
record loop-logs loop_of_logs
