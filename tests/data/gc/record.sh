#!/bin/sh
# Record the GC logs of this folder anew: tests/data/gc/record.sh FOLDER. Needs a JDK of version 17; takes some seconds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac -d "$classes" "$here/Churn.java"

churn() { # name, ms, options...
    name=$1 ms=$2
    shift 2
    java -Xmx64m -cp "$classes" "$@" Churn "$ms"
    test -s "$name"
}
churn g1.log 400 -XX:+UseG1GC -Xlog:gc*,safepoint:file=g1.log:time,uptime,level,tags
churn g1-safepoint.log 1500 -XX:+UseG1GC -Xlog:gc,safepoint:file=g1-safepoint.log:time
TZ=Asia/Kolkata churn parallel.log 1500 -XX:+UseParallelGC -Xlog:gc:file=parallel.log:time,pid,tid,level,tags
churn serial.log 800 -XX:+UseSerialGC '-Xlog:gc*:file=serial.log:timemillis,uptimemillis,level,tags'
churn shenandoah.log 500 -XX:+UseShenandoahGC -Xlog:gc*:file=shenandoah.log:utctime,tags
churn z.log 600 -XX:+UseZGC -Xlog:gc*,safepoint:file=z.log:time,uptimenanos,tid,tags
churn uptime.log 300 -XX:+UseG1GC -Xlog:gc:file=uptime.log
churn monotonic.log 300 -XX:+UseG1GC -Xlog:gc:file=monotonic.log:uptimemillis,timenanos
churn none.log 300 -XX:+UseG1GC -Xlog:gc:file=none.log:none
