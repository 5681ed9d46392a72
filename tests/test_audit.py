"""The audit of dependencies: what is vulnerable fails, what could not be looked up is said and never counts as clean."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
audit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(audit)

CLEAN = {"name": "numpy", "version": "2.4.0", "vulns": []}
BAD = {
    "name": "urllib3",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}
OURS = {"name": "tailboard", "skip_reason": "distribution marked as editable"}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (14)"}


def judged(*dependencies: dict, components: int, strict: bool = False) -> tuple[int, list[str]]:
    return audit.verdict({"dependencies": list(dependencies)}, components, strict=strict)


def test_a_clean_environment_is_clean() -> None:
    status, lines = judged(CLEAN, OURS, components=1, strict=True)
    assert (status, lines) == (0, ["audit: 1 packages looked up, 0 vulnerabilities known"])


def test_a_vulnerability_fails_and_is_named() -> None:
    status, lines = judged(CLEAN, BAD, components=2)
    assert status == 1
    assert (
        "VULNERABLE urllib3 1.0: PYSEC-1 (mended in 1.1)" in lines
        and "VULNERABLE urllib3 1.0: PYSEC-2 (mended in no version yet)" in lines
    )


def test_what_could_not_be_looked_up_is_said_and_fails_where_asked() -> None:
    for dependencies, told in (([CLEAN, UNKNOWN], "1 packages"), ([], "2 packages")):
        status, lines = judged(*dependencies, components=2)
        assert status == 0 and any(line.startswith(f"NOT AUDITED: {told}") for line in lines)
        assert judged(*dependencies, components=2, strict=True)[0] == 1
    assert judged(BAD, UNKNOWN, components=2)[0] == 1


def test_ci_audits_and_the_forge_is_strict() -> None:
    assert "make audit" in (ROOT / ".ci" / "run").read_text()
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert any(step.get("run") == "make audit AUDIT=--strict" for step in jobs["audit"]["steps"])
    pins = [line for line in (ROOT / ".ci" / "audit-requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert [pin.split("==")[0] for pin in pins] == ["cyclonedx-bom", "pip-audit"] and all("==" in pin for pin in pins)
