"""A bill of materials and known vulnerabilities of an environment; what could not be looked up is said, never passed over.

    python .ci/audit.py ENVIRONMENT OUT.json [--strict]

Ends with 0 where nothing is known against any package, 1 where something is. Where the vulnerability service does not answer
for a package it says NOT AUDITED, and ends with 0, or with 1 where --strict is given: a network that fails is no clean bill.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OURS = "tailboard"
MOST_NAMED = 5
BESIDE = Path(sys.executable).parent


def materials(environment: Path, pyproject: Path, out: Path) -> int:
    """Write the CycloneDX bill of materials of an environment, checked against its schema; return how many components it has."""
    out.parent.mkdir(parents=True, exist_ok=True)
    words = ["--pyproject", str(pyproject), "--output-reproducible", "--validate", "--of", "JSON", "-o", str(out)]
    subprocess.run([BESIDE / "cyclonedx-py", "environment", *words, environment / "bin" / "python"], check=True)
    return len(json.loads(out.read_text(encoding="utf-8"))["components"])


def known(environment: Path) -> Mapping[str, Any]:
    """Return the report of pip-audit about an environment; without any dependency where it cannot be had."""
    (packages,) = environment.glob("lib/python*/site-packages")
    words = ["--path", str(packages), "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([BESIDE / "pip-audit", *words], capture_output=True, text=True, check=False)
    try:
        report: Mapping[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stderr.strip()[-500:])
        return {"dependencies": []}
    return report


def verdict(report: Mapping[str, Any], components: int, *, strict: bool) -> tuple[int, list[str]]:
    """Return the exit status, and the lines to print, for a report about an environment of so many components."""
    packages = [one for one in report["dependencies"] if one["name"] != OURS]
    looked_at = [one for one in packages if "skip_reason" not in one]
    lines = []
    for one in looked_at:
        for found in one["vulns"]:
            mended = ", ".join(found["fix_versions"]) or "no version yet"
            lines.append(f"VULNERABLE {one['name']} {one['version']}: {found['id']} (mended in {mended})")
    status = 1 if lines else 0
    missing = max(components, len(packages)) - len(looked_at)
    if missing > 0:
        names = [one["name"] for one in packages if "skip_reason" in one]
        told = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        lines.append(
            f"NOT AUDITED: {missing} packages, the vulnerability service did not answer for them ({told or 'not at all'})"
        )
        status = status or int(strict)
    lines.append(
        f"audit: {len(looked_at)} packages looked up, {sum(len(one['vulns']) for one in looked_at)} vulnerabilities known"
    )
    return status, lines


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--strict", action="store_true", help="what could not be looked up is an error")
    words = parser.parse_args()
    components = materials(words.environment, Path("pyproject.toml"), words.out)
    print(f"audit: {words.out} lists {components} components (CycloneDX)")
    status, lines = verdict(known(words.environment), components, strict=words.strict)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
