"""What one refresh of each Kibana dashboard asks of the server: requests, buckets and bytes, over 100,000 documents.

    python benchmarks/kibana.py [--data FOLDER]                                    on the Elasticsearch double: no times are told
    ELASTICSEARCH_URL=http://127.0.0.1:9200 python benchmarks/kibana.py            on a real server, with its own times (took)

Ten hosts, ten threads each, a thousand windows of 1 s, loaded by `tailboard load`. The time range is the run's. `buckets` are
those of the answers, `hdr` the ones of them with an HDR histogram; `python -m tools.build --check` counts the most there can be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import generate
from measure import print_table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.kibana.asked import Request, Shown, vega_requests  # noqa: E402  # the checkout first
from tools.kibana.asked_lens import lens_request  # noqa: E402
from tools.kibana.compile import compiled  # noqa: E402
from tools.kibana.objects import SavedObject  # noqa: E402

PREFIX = "tailboard-bench-kibana"
LOGS = generate.LogSet(files=10, rows=1000)
HOSTS = 10
ZERO = "2026-11-01T00:00:00Z"
HEADINGS = ("dashboard", "requests", "bytes asked", "bytes answered", "buckets", "with hdr", "took (ms)")
JSON = {"accept": "application/json", "content-type": "application/json"}


def main() -> None:
    """Load the documents, ask what each dashboard asks, print a row a dashboard."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data", help="folder for what is generated")
    words = parser.parse_args()
    logs = generate.repeated(generate.logs(words.data, LOGS), words.data / "kibana-logs", HOSTS)
    with server() as (url, real):
        client, shown = loaded(url, logs)
        documents = client.count(index=f"{PREFIX}-intervals-*")["count"]
        objects = {saved.id: saved for saved in compiled(PREFIX)}
        rows = [row(client, saved, objects, shown, real=real) for saved in objects.values() if saved.type == "dashboard"]
        print_table(f"one refresh over {documents:,} documents, {(shown.end_ms - shown.begin_ms) // 1000} s", HEADINGS, rows)


@contextmanager
def server() -> Iterator[tuple[str, bool]]:
    """Yield the address of a server and whether it is a real one."""
    if url := os.environ.get("ELASTICSEARCH_URL"):
        yield url, True
        return
    from tests.doubles.elasticsearch import ElasticsearchDouble

    with ElasticsearchDouble(version="9.5.3") as double:
        yield double.url, False


def loaded(url: str, logs: Path) -> tuple[Any, Shown]:
    """Return a client and the time range of what was loaded."""
    from elasticsearch import Elasticsearch

    store = f"{url}?index_prefix={PREFIX}"
    tailboard = [sys.executable, "-m", "ingest"]
    for words in (
        ["setup", "--elasticsearch", store],
        ["load", str(logs), "--run", "bench", "--t0", ZERO, "--step", "1s", "--replace", "--store", store],
    ):
        subprocess.run([*tailboard, *words], check=True, cwd=ROOT, stderr=subprocess.DEVNULL)
    client = Elasticsearch(url, request_timeout=300)
    ends = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    found = client.search(index=f"{PREFIX}-rollups-*", size=0, aggs=ends)["aggregations"]
    return client, Shown(int(found["first"]["value"]), int(found["last"]["value"]) + 1000)


def row(client: Any, dashboard: SavedObject, objects: dict[str, SavedObject], shown: Shown, *, real: bool) -> list[str]:
    """Return what a dashboard's panels ask and are told."""
    requests = [one for panel in panels(dashboard, objects) for one in asked(panel, shown)]
    path = "_search?ignore_unavailable=true&allow_no_indices=true"
    answers = [client.perform_request("POST", f"/{one.index}/{path}", headers=JSON, body=one.body).body for one in requests]
    size = [sum(len(json.dumps(one)) for one in several) for several in ([one.body for one in requests], answers)]
    counts = [buckets(one.get("aggregations", {})) for one in answers]
    took = f"{sum(one['took'] for one in answers):,}" if real else "-"
    sums = (sum(every for every, _ in counts), sum(hdr for _, hdr in counts))
    return [dashboard.title, str(len(requests)), *(f"{number:,}" for number in (*size, *sums)), took]


def panels(dashboard: SavedObject, objects: dict[str, SavedObject]) -> Iterator[SavedObject]:
    """Yield the panels of a dashboard that ask for something."""
    return (objects[one.id] for one in dashboard.references if one.type in ("visualization", "lens"))


def asked(panel: SavedObject, shown: Shown) -> list[Request]:
    """Return the requests of a panel."""
    if panel.type == "lens":
        return [lens_request(panel, shown)]
    return vega_requests(panel.attributes["visState"]["params"]["spec"], shown)


def buckets(answer: Any) -> tuple[int, int]:
    """Return the number of buckets of an answer and of those with percentiles."""
    every = hdr = 0
    for name, value in answer.items() if isinstance(answer, dict) else enumerate(answer) if isinstance(answer, list) else ():
        inner = buckets(value)
        own = len(value) if name == "buckets" else 0
        hdr += inner[1] + int(isinstance(value, dict) and name != "buckets" and isinstance(value.get("values"), dict))
        every += inner[0] + own
    return every, hdr


if __name__ == "__main__":
    main()
