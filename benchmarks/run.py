"""All figures that the README promises, each measured against what there was before.

    python benchmarks/run.py [--data FOLDER] [--rounds N] [percentiles dense coarse real load memory stored-query elastic-cpu ...]

Data is made in benchmarks/data (about 900 MB; 4 GB more while `memory` runs) and stays there for the next time.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import Bench, BenchmarkError

HERE = Path(__file__).parent


def questions() -> dict[str, Callable[[Bench], None]]:
    """Return what can be asked, in the order in which it is answered."""
    import elastic
    from questions import explaining, loading, memory, reading, stored

    return {
        "percentiles": reading.percentiles,
        "dense": reading.dense,
        "coarse": reading.coarse,
        "real": reading.real,
        "load": loading.load,
        "memory": memory.memory,
        "stored-query": stored.stored_query,
        "explain": explaining.explain,
        **elastic.QUESTIONS,
    }


def main() -> None:
    """Answer the questions that the words name, or all."""
    known = questions()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(known)} [default: all]")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="folder for what is generated")
    parser.add_argument("--rounds", type=int, default=5, help="how often each command is run")
    parser.add_argument("--fio", type=Path, default=Path("/usr/share/doc/fio"), help="folder with fio's scripts")
    parser.add_argument("--tailboard", default=str(Path(sys.executable).with_name("tailboard")), help="the command to measure")
    words = parser.parse_args()
    for name in words.names:
        if name not in known:
            parser.error(f"no question {name!r}: there are {', '.join(known)}")
    words.data.mkdir(parents=True, exist_ok=True)
    print(f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the start")
    failed = False
    with tempfile.TemporaryDirectory(prefix="bench-", dir=words.data) as scratch:
        bench = Bench(words.data.resolve(), Path(scratch).resolve(), words.tailboard, words.fio, words.rounds)
        for name in words.names or known:
            try:
                known[name](bench)
            except BenchmarkError as error:
                print(f"\n{name}: {error}", file=sys.stderr)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
