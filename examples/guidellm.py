"""Write the requests of a GuideLLM report (`--output kind=json,path=FILE`) as csv that tailboard knows: `guidellm.py FILE > requests.csv`.

What did not end well is failed. The latency is from the start to the end of a request, as GuideLLM's own `request_latency`.
"""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
print("start_s,took_ms,name,ok")
for benchmark in report["benchmarks"]:
    for outcome in ("successful", "errored", "incomplete"):
        for request in benchmark["requests"].get(outcome) or ():
            start, end = request["request_start_time"], request["request_end_time"]
            if start is not None and end is not None:
                print(f"{start!r},{1000 * (end - start)!r},request,{str(outcome == 'successful').lower()}")
