"""A stall as two load generators see it: 1,000 requests a second are due for a minute, after 20 s the server pauses for 10 s.

    python examples/coordinated-omission/simulate.py examples/coordinated-omission

One connection, 0.6 ms a request. throughput.csv: the next request is sent when the answer is there, whatever was due (a
closed loop that is throttled to 1 ms between requests). fixed.csv: as soon as it is due and the connection is free.
"""

import sys
from pathlib import Path

US = 1_000
SECOND = 1_000_000 * US
START = 1_700_000_000 * SECOND
DUE, SERVICE, PAUSE = SECOND // 1_000, 600 * US, 10 * SECOND
LAST, STALLED = 60 * SECOND, 20 * SECOND


def requests(catch_up):
    """Yield (start, end) of each request in ns since the beginning."""
    free, number, stalled = 0, 0, False
    while True:
        start = max(free, number * DUE) if catch_up else free
        if (number * DUE if catch_up else start) >= LAST:
            return
        stall, stalled = not stalled and start >= STALLED, stalled or start >= STALLED
        end = start + (PAUSE if stall else SERVICE)
        yield start, end
        free = end if catch_up else max(end, start + DUE)
        number += 1


def main():
    folder = Path(sys.argv[1])
    for name, catch_up in (("throughput", False), ("fixed", True)):
        with (folder / f"{name}.csv").open("w") as out:
            out.write("start_us,end_us,op\n")
            for start, end in requests(catch_up):
                out.write(f"{(START + start) // US},{(START + end) // US},read\n")


if __name__ == "__main__":
    main()
