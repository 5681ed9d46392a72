#!/bin/sh
# Records the traces of this folder anew: record.sh FOLDER. Needs root, perf (linux-perf), node and chromium; takes half a minute.
set -eu
out=$(realpath "$1")
cd "$(mktemp -d -p /var/cache record.XXXX)"
busy='for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1k count=300000 2>/dev/null; sleep 0.7; done'

# Only the programs started here are printed: what else ran on the machine is nobody's business.
# All CPUs at 99 Hz, busy and idle: without stacks by the clock of the machine; with stacks and the reference to the time of day.
perf record -q -e cpu-clock -F 99 -a -o boot.data -- sh -c "$busy"
perf record -q -k CLOCK_MONOTONIC -e cpu-clock -F 99 -a -g -o cpu.data -- sh -c "$busy"
perf script --comms swapper,dd,sh,sleep --header -i boot.data | xz -9 > "$out/boot.txt.xz"
perf script --comms swapper,dd,sh,sleep --header -i cpu.data | xz -9 > "$out/cpu.txt.xz"

# The same samples in other sets of fields.
perf script --comms swapper,dd,sh,sleep --ns -F comm,pid,tid,cpu,time,period,event,ip,sym,dso -i cpu.data | xz -9 > "$out/ns.txt.xz"
perf script --comms swapper,dd,sh,sleep -G -i cpu.data | xz -9 > "$out/flat.txt.xz"
perf script --comms swapper,dd,sh,sleep -F comm,tid,time,event -G -i cpu.data | xz -9 > "$out/few.txt.xz"
perf record -q -e cpu-clock -F 99 -g -o own.data -- sh -c "$busy"
perf script --comms swapper,dd,sh,sleep -F +misc --show-task-events --show-mmap-events -i own.data | xz -9 > "$out/records.txt.xz"

# A tracepoint of which the other one of its pair was not recorded.
perf record -q -e block:block_rq_issue -a -o issues.data -- dd if=/dev/zero of=file bs=64k count=16 oflag=direct 2> /dev/null
perf script --comms dd -i issues.data | xz -9 > "$out/issues.txt.xz"

cat > script.js << 'END'
const fs = require('fs');
for (let i = 0; i < 3; i++) { fs.readFileSync('script.js'); fs.statSync('.'); }
fs.readFile('script.js', () => { fs.stat('.', () => {}); });
END
node --trace-event-categories node.fs.sync,node.fs.async,node.async_hooks,v8 script.js
xz -9 < node_trace.1.log > "$out/node.json.xz"
HOME=$PWD timeout 60 chromium --headless --no-sandbox --disable-gpu --trace-startup='-*,loading,ipc' --trace-startup-format=json \
    --trace-startup-duration=1 --trace-startup-file="$PWD/chrome.json" --dump-dom about:blank > /dev/null 2>&1
xz -9 < chrome.json > "$out/chrome.json.xz"
