"""Take the pictures of Kibana's Vega panels, light and dark: compiled specs, the double's answers, Vega 6 in Chromium.

    npm ci --prefix tests/vega && python docs/img/shoot_kibana.py [FOLDER]

Without a FOLDER those that pages show.

No Kibana draws them: its frame, controls and Lens panels are not in the pictures. The run is the example; the panels of two runs
have two of its hosts, each loaded as a run of its own; those of coordinated omission the simulated stall; those of Snabb
timelines rings that the tests write; of the layers logs that the tests write.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
SHOWN = {name for page in (ROOT / "docs").rglob("*.md") for name in re.findall(r"kibana-[\w-]+\.png", page.read_text())}
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from elasticsearch import Elasticsearch  # noqa: E402  # the checkout first

from ingest.cli import run  # noqa: E402
from tests.breath_rings import PICTURED, rings  # noqa: E402
from tests.doubles.elasticsearch import ElasticsearchDouble  # noqa: E402
from tests.layered import START, layered  # noqa: E402
from tests.vega.drawn import DARK, LIGHT, drawing  # noqa: E402
from tools.kibana.asked import Shown, vega_requests  # noqa: E402
from tools.kibana.compile import compiled  # noqa: E402

EXAMPLE = ROOT / "examples" / "cbt-archive"
LOGS = next((EXAMPLE / "results").rglob("benchmark_config.yaml")).parent
STALL = ROOT / "examples" / "coordinated-omission" / "simulate.py"
SIZES = {
    "density": (1000, 420),
    "breaths": (1000, 420),
    "runs": (1000, 260),
    "maps": (1000, 320),
    "threads": (1000, 420),
    "hosts": (1000, 300),
}
ABOVE = ".vega-bindings { display: flex; gap: 14px; order: -1; margin: 0 0 6px } #place { display: flex; flex-direction: column }"


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        subprocess.run([sys.executable, str(STALL), folder], check=True)  # noqa: S603  # our own example
        hosts = {
            host: [str(path) for path in sorted(LOGS.glob(f"*{host}*")) if "clat_hist" in path.name or "json" in path.name]
            for host in ("ceph-a", "ceph-b")
        }
        later = ["--host-offset", "ceph-b=100000"]
        shot(browser, {"nightly": [str(EXAMPLE)]}, ("cluster-latency", "hosts-and-threads", "heat-maps"), target)
        shot(browser, {"good": hosts["ceph-a"], "bad": [*hosts["ceph-b"], *later]}, ("compare-runs",), target)
        shot(browser, {"snabb": [str(rings(Path(folder) / "rings", **PICTURED))]}, ("snabb-timeline",), target)
        layers = layered(Path(folder), seconds=60, rate=200, slow=range(30, 38))
        disks = [str(layers.parent / "disks" / "disks.ndjson"), "--input-format", str(layers.parent / "disks" / "disks.yml")]
        clients = [str(layers), "--t0", str(START), "--fio-version", "3.33"]
        shot(browser, {"night": clients}, ("layers",), target, (("night", disks),))
        shot(browser, {"stall": [f"{folder}/fixed.csv", "--rate", "1000"]}, ("coordinated-omission",), target)
        browser.close()


def shot(
    browser: Browser,
    loads: dict[str, list[str]],
    dashboards: tuple[str, ...],
    target: Path,
    later: tuple[tuple[str, list[str]], ...] = (),
) -> None:
    """Take the Vega panels of some dashboards after some loads, and `later` ones into runs that are there."""
    with ElasticsearchDouble(version="9.5.3") as double:
        words = [["setup", "--elasticsearch", double.url]]
        words += [["load", *paths, "--run", name, "--store", double.url] for name, paths in (*loads.items(), *later)]
        for one in words:
            if status := run(one):
                sys.exit(status)
        client = Elasticsearch(double.url)
        ends = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
        found = client.search(index="tailboard-rollups-*", size=0, aggs=ends)["aggregations"]
        shown = Shown(int(found["first"]["value"]), int(found["last"]["value"]) + 10_000)
        specs = {
            saved.id.removeprefix("tailboard-"): answered(client, saved.attributes["visState"]["params"]["spec"], shown)
            for saved in compiled()
            if saved.type == "visualization" and saved.id.removeprefix("tailboard-").startswith(dashboards)
        }
    for colors, theme in ((LIGHT, ""), (DARK, "-dark")):
        with drawing(browser, 6, colors, (1060, 520)) as page:
            page.page.add_style_tag(content=ABOVE)
            for name, spec in specs.items():
                picture = f"kibana-{name}{theme}.png"
                if target == HERE and picture not in SHOWN:
                    continue
                width, height = SIZES.get(name.rsplit("-", 1)[-1], (1000, 360))
                page.draw(spec, width=width, height=height)
                page.page.wait_for_timeout(700)
                page.page.locator("#place").screenshot(path=target / picture)


def answered(client: Elasticsearch, spec: dict, shown: Shown) -> dict:
    """Return a spec with the server's answers in the place of its requests."""
    spec = json.loads(json.dumps(spec))
    headers = {"accept": "application/json", "content-type": "application/json"}
    for asked in vega_requests(spec, shown):
        path = f"/{asked.index}/_search?ignore_unavailable=true&allow_no_indices=true"
        [entry] = [one for one in spec["data"] if one["name"] == asked.name]
        del entry["url"]
        entry["values"] = client.perform_request("POST", path, headers=headers, body=asked.body).body
    return spec


main()
