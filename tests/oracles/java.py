"""The Java library itself, where it is at hand: tests/java compiled against HdrHistogram, and run.

Debian's packages default-jdk-headless and libhdrhistogram-java have all that is needed; TAILBOARD_HDR_JAR names another jar.
Without them tests are skipped, visibly; where CI is set, they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

SOURCES = Path(__file__).parent.parent / "java"
DEBIAN = Path("/usr/share/java/hdrhistogram.jar")
MISSING = "no Java or no HdrHistogram: apt-get install default-jdk-headless libhdrhistogram-java, or set TAILBOARD_HDR_JAR"


def jar() -> Path | None:
    """Return the HdrHistogram library, if there is one."""
    named = os.environ.get("TAILBOARD_HDR_JAR")
    path = Path(named) if named else DEBIAN
    return path if path.is_file() else None


@lru_cache(maxsize=1)
def _classes() -> str:
    """Return the class path of the compiled oracle."""
    library = jar()
    if library is None or not shutil.which("javac") or not shutil.which("java"):
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    folder = mkdtemp(prefix="tailboard-java-")
    sources = [str(path) for path in SOURCES.glob("*.java")]
    subprocess.run(
        ["javac", "-nowarn", "-proc:none", "-cp", str(library), "-d", folder, *sources], check=True, capture_output=True
    )
    return f"{library}:{folder}"


def run(*words: object) -> str:
    """Return what a class of tests/java prints; skips the test where there is no Java, and fails it in CI."""
    done = subprocess.run(["java", "-cp", _classes(), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bins(path: Path) -> list[list[str]]:
    """Return what Java decodes of a log: a list of words an interval, see Oracle.java."""
    return [line.split() for line in run("Oracle", "bins", path).splitlines()]
