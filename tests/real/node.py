"""A real node of Elasticsearch on this machine, for as long as a command runs: its artefacts are those of Maven Central.

    .venv/bin/python -m tests.real.node .venv/bin/python -m pytest tests/store/test_contract.py -k server

`ELASTICSEARCH_URL` names it. It has no aggregations of histograms (they are in a part that Maven Central does not have): a test that
needs them is skipped, and says so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "real-node"
START_SECONDS, LEAST_FREE = 120, 4 << 30
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
    """Return the version of the server that pom.xml names."""
    return ET.parse(HERE / "pom.xml").getroot().findtext(".//{*}dependency/{*}version") or ""


def built() -> Path:
    """Return the home of a node, fetched and compiled unless that is done."""
    home, jars = BUILD / version(), BUILD / version() / "lib"
    if (home / "ready").exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    (home / "config").mkdir(parents=True)
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    subprocess.run(command, check=True)
    path = f"{jars}/*"
    subprocess.run(["javac", "-cp", path, "-d", str(home / "node"), str(HERE / "RealNode.java")], check=True)
    subprocess.run(["javac", "-cp", path, "-d", str(home / "plugin"), str(HERE / "RealPlugin.java")], check=True)
    subprocess.run(["jar", "cf", str(jars / "real-plugin.jar"), "-C", str(home / "plugin"), "."], check=True)
    for name, (classname, patterns) in PLUGINS.items():
        folder = home / "modules" / name
        folder.mkdir(parents=True)
        for pattern in patterns:  # what a plug-in brings must not be beside the server as well
            for jar in jars.glob(pattern):
                jar.rename(folder / jar.name)
        (folder / "plugin-descriptor.properties").write_text(DESCRIPTOR.format(version=version(), name=name, classname=classname))
    (home / "ready").touch()
    return home


@contextmanager
def running(data: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the URL and the process of a node that keeps its data in a folder."""
    home = built()
    if not port:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
    words = ["java", "-Xms1g", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/lib/*:{home}/node"]
    log = data.parent / f"{data.name}.log"
    with log.open("w") as out:
        node = subprocess.Popen([*words, "RealNode", str(home), str(data), str(port)], stdout=out, stderr=out, text=True)
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
            command, env={**os.environ, "ELASTICSEARCH_URL": url, "TAILBOARD_TEST_SERVER": "8"}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
