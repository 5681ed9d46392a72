"""A real node of Elasticsearch on this machine, for as long as a command runs: its artefacts are those of Maven Central.

    .venv/bin/python -m tests.real.node .venv/bin/python -m pytest tests/store/test_contract.py -k server

`ELASTICSEARCH_URL` names it. It has no aggregations of histograms (they are in a part that Maven Central does not have): a test that
needs them is skipped, and says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "real-node"
JAVA = {"8": 17, "9": 21}
SINGLE = "discovery.type=single-node"
RELEASE = re.compile(r'JAVA_VERSION="(\d+)')
START_SECONDS, LEAST_FREE = 300, 4 << 30
DESCRIPTOR = """\
description=of tests
version={version}
name={name}
elasticsearch.version={version}
java.version=17
classname={classname}
modulename=
extended.plugins=
has.native.controller=false
"""
PLUGINS = {
    "transport-netty4": ("org.elasticsearch.transport.netty4.Netty4Plugin", ("netty-*.jar", "transport-netty4-*.jar")),
    "real-plugin": ("RealPlugin", ("real-plugin.jar",)),
}


def version() -> str:
    """Return the version of the server: TAILBOARD_REAL_VERSION, or that which pom.xml names."""
    return os.environ.get("TAILBOARD_REAL_VERSION") or ET.parse(HERE / "pom.xml").getroot().findtext(".//{*}elasticsearch") or ""


def java_home() -> Path:
    """Return the home of a Java for this server: JAVA_HOME, or the oldest that is installed and new enough; RuntimeError if none."""
    least = JAVA[version()[0]]
    homes = [Path(os.environ.get("JAVA_HOME") or "/none"), *Path("/usr/lib/jvm").glob("*")]
    majors = {home: int(found[1]) for home in homes if (found := RELEASE.search(_text(home / "release")))}
    fitting = {home: major for home, major in majors.items() if major >= least and (home / "bin" / "javac").exists()}
    if not fitting:
        raise RuntimeError(f"Elasticsearch {version()} needs Java {least} or later; JAVA_HOME may name it")
    return homes[0] if homes[0] in fitting else min(fitting, key=lambda home: (fitting[home], str(home)))


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def built() -> Path:
    """Return the home of a node, fetched and compiled unless that is done of these very sources."""
    home, java = BUILD / version(), java_home() / "bin"
    jars, major = home / "lib", HERE / f"major{version()[0]}" / "Major.java"
    sources = [HERE / "RealNode.java", HERE / "RealPlugin.java", major, HERE / "pom.xml", Path(__file__)]
    state = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if _text(home / "ready") == state:
        return home
    shutil.rmtree(home, ignore_errors=True)
    (home / "config").mkdir(parents=True)
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), f"-Delasticsearch={version()}"]
    subprocess.run([*command, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"], check=True)
    for folder, ours in (("node", sources[:1]), ("plugin", sources[1:3])):
        subprocess.run([java / "javac", "-cp", f"{jars}/*", "-d", home / folder, *ours], check=True)
    subprocess.run([java / "jar", "cf", jars / "real-plugin.jar", "-C", home / "plugin", "."], check=True)
    for name, (classname, patterns) in PLUGINS.items():
        folder = home / "modules" / name
        folder.mkdir(parents=True)
        for pattern in patterns:  # what a plug-in brings must not be beside the server as well
            for jar in jars.glob(pattern):
                jar.rename(folder / jar.name)
        (folder / "plugin-descriptor.properties").write_text(DESCRIPTOR.format(version=version(), name=name, classname=classname))
    (home / "native").mkdir()
    if zstd := find_library(
        "zstd"
    ):  # what `best_compression` of 9 compresses with: Maven Central has no native library of the server
        found = next(path for path in Path("/usr/lib").rglob(zstd))
        (home / "native" / "libzstd.so").symlink_to(found)
    elif version().startswith("9"):
        raise RuntimeError(f"Elasticsearch {version()} needs libzstd (Debian: libzstd1)")
    (home / "ready").write_text(state)
    return home


@contextmanager
def running(data: Path, port: int = 0, *settings: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the URL and the process of a node that keeps its data in a folder, alone unless `settings` (KEY=VALUE) say otherwise."""
    home = built()
    if not port:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
    words = [
        str(java_home() / "bin" / "java"),
        "-Xms1g",
        "-Xmx1g",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Des.nativelibs.path={home}/native",
        "-Dorg.elasticsearch.nativeaccess.enableVectorLibrary=false",  # without its library there is none of the others, either
        "-cp",
        f"{home}/lib/*:{home}/node",
    ]
    log = data.parent / f"{data.name}.log"
    with log.open("w") as out:
        node = subprocess.Popen(
            [*words, "RealNode", str(home), str(data), str(port), *(settings or [SINGLE])], stdout=out, stderr=out, text=True
        )
    try:
        begun = time.monotonic()
        while "started" not in log.read_text():
            if node.poll() is not None or time.monotonic() - begun > START_SECONDS:
                raise RuntimeError(f"the node did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}", node
    finally:
        node.kill()
        node.wait()


def main(command: list[str]) -> int:
    """Return the exit status of a command that ran beside a node."""
    memory = Path("/dev/shm")
    fast = memory if memory.is_dir() and shutil.disk_usage(memory).free > LEAST_FREE else None
    with tempfile.TemporaryDirectory(dir=fast) as folder, running(Path(folder) / "data") as (url, _):
        return subprocess.run(
            command, env={**os.environ, "ELASTICSEARCH_URL": url, "TAILBOARD_TEST_SERVER": version()[0]}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
