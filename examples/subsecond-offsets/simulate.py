"""Two hosts for three minutes, as shapes in a map of subsecond offsets: what each process does stands beside it below.

    python examples/subsecond-offsets/simulate.py examples/subsecond-offsets
    cd examples/subsecond-offsets && tailboard report events.csv --input-format events.yml -o offsets.html

Nothing is recorded from 2:20 to 2:24, and the events of 0:45 are reported five seconds late.
"""

import random
import sys
from pathlib import Path

MS = 1_000_000
SECOND = 1_000 * MS
START = 1_700_000_000 * SECOND
LAST = 180 * SECOND
BLOCKED = (70_400 * MS, 72_900 * MS)
SILENT = (140 * SECOND, 144 * SECOND)
LATE = 45
DESCRIPTION = "time: end_ns\nlatency: took_ns\nlabels: {host: host, process: process}\n"


def events():
    """Yield (completion, latency, host, process) of each event in ns since the beginning."""
    dice = random.Random(7)
    for second in range(0, LAST, SECOND):
        yield second + 250 * MS + dice.randrange(9 * MS), 300_000, "a", "timer"  # once a second: a line
        for at in (120, 620):
            yield second + at * MS + dice.randrange(5 * MS), 200_000, "b", "probe"  # twice a second: two lines
        if second % (5 * SECOND) == 0:
            for number in range(12):
                yield second + 860 * MS + number * MS, 900_000, "a", "flush"  # every 5 s: dots
    begin = 0
    while begin < LAST - SECOND:
        for number in range(24):
            yield begin + number * 2 * MS, 100_000, "a", "collector"  # 48 ms of work, then a second of sleep: it rises
        begin += 1_048 * MS
    for tick in range(LAST * 49 // SECOND):
        at = tick * SECOND // 49 + dice.randrange(4 * MS)
        blocked = BLOCKED[0] <= at < BLOCKED[1]
        yield at, dice.randrange(MS // 10, 3 * MS), "b", "backup" if blocked else "database"  # a gap, its blocker in it
    for _ in range(2_000):
        yield dice.randrange(LAST), dice.randrange(MS // 20, MS), dice.choice("ab"), "requests"  # arrivals: noise


def main():
    folder = Path(sys.argv[1])
    kept = sorted(event for event in events() if not SILENT[0] <= event[0] < SILENT[1])
    late = [event for event in kept if event[0] // SECOND == LATE]
    order = [event for event in kept if event[0] // SECOND != LATE]
    place = next(number for number, event in enumerate(order) if event[0] >= (LATE + 5) * SECOND)
    (folder / "events.yml").write_text(DESCRIPTION)
    with (folder / "events.csv").open("w") as out:
        out.write("end_ns,took_ns,host,process\n")
        for end, took, host, process in (*order[:place], *late, *order[place:]):
            out.write(f"{START + end},{took},{host},{process}\n")


if __name__ == "__main__":
    main()
