"""How often `explain` is right about which lower layer a client's excess is seen in (docs/explanation/findings.md).

    python benchmarks/layers.py [--causes disk,quiet] [--runs 20] [--seed N] [--replicas 3] [--poll 10] [--show]

Clusters are those of made_clusters.py. Each is judged by the finding that overlaps its cause the most.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from made_clusters import CAUSES, Cluster, cluster

from ingest.core.grid import SECOND
from ingest.query.question import Question
from ingest.query.story.ground import Below, Story
from ingest.query.story.story import story

SEED = 20_261_123
SERVICE, DEVICE = "service", "device"
NOTHING = "no finding"


@dataclass(frozen=True)
class Said:
    """What was said of a cluster: the verdict on each layer, `right` or `wrong` where somebody is named."""

    name: str
    service: str
    device: str
    wrong: tuple[str, ...]
    story: Story
    seconds: float


def said_of(made: Cluster) -> Said:
    """Return what the story of a cluster says."""
    begun = time.process_time()
    told = story(made, Question())
    took = time.process_time() - begun
    low, high = (made.start_ns + at * SECOND for at in (made.from_s, made.to_s))
    overlap = {
        number: min(each.end_ns, high) - max(each.start_ns, low) for number, each in enumerate(told.findings) if each.below
    }
    best = max(overlap, key=lambda number: overlap[number], default=None)
    main = told.findings[best].below if best is not None and overlap[best] > 0 else ()
    host, osd, disk = made.names[made.culprit]
    truth: dict[str, tuple[str, ...]] = {SERVICE: (host, osd, "", ""), DEVICE: (host, disk, "", "")}
    verdicts = {each.layer: _verdict(each, truth) for each in main}
    named = [each for finding in told.findings for each in finding.below if each.members]
    quiet = made.name.startswith(("quiet", "network", "all", "client"))
    wrong = tuple(each.text for each in named if quiet or set(each.members) - {truth[each.layer]})
    return Said(made.name, verdicts.get(SERVICE, NOTHING), verdicts.get(DEVICE, NOTHING), wrong, told, took)


def _verdict(each: Below, truth: dict[str, tuple[str, ...]]) -> str:
    """Return the verdict on a layer; of what is named whether it is that alone which was slow."""
    if not each.members:
        return each.verdict
    return "named" if each.members == (truth[each.layer],) else "named another"


def main() -> None:
    """Print what is said of each cause."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--causes", default=",".join(CAUSES))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--poll", type=int, default=1, help="seconds between polls of services and devices")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for cause in options.causes.split(","):
        said = [
            said_of(cluster(cause, options.seed + run, replicas=options.replicas, poll=options.poll))
            for run in range(options.runs)
        ]
        for layer in (SERVICE, DEVICE):
            counts = Counter(getattr(each, layer) for each in said)
            print(f"{cause:16} {layer:8} " + ", ".join(f"{verdict} {number}" for verdict, number in counts.most_common()))
        print(
            f"{cause:16} wrong    {sum(bool(each.wrong) for each in said)} of {len(said)}, "
            f"{sum(each.seconds for each in said) / len(said):.2f} s each"
        )
        for each in said if options.show else ():
            print(f"  {each.name}: {each.service}, {each.device}")
            for finding in each.story.findings:
                print(f"    {finding.text}", *(f"      {below.text}" for below in finding.below), sep="\n")


if __name__ == "__main__":
    main()
