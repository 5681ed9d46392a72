"""Servers that benchmarks load into, each in a process of its own, so that neither its CPU nor its memory is counted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
DOUBLE = """
import sys
from tests.doubles.elasticsearch import ElasticsearchDouble
with ElasticsearchDouble() as double:
    print(double.url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def sink(record: Path | None = None) -> Iterator[str]:
    """Start the sink, which keeps no documents, and yield its URL; with `record` it appends all bulk bodies to that file."""
    with _started([str(HERE / "sink.py"), *(["--record", str(record)] if record else [])]) as port:
        yield f"http://127.0.0.1:{int(port)}"


@contextmanager
def double() -> Iterator[str]:
    """Start the double of the tests, which keeps and answers what a node does, and yield its URL."""
    with _started(["-c", DOUBLE]) as url:
        yield url


@contextmanager
def _started(words: Sequence[str]) -> Iterator[str]:
    """Start a Python program and yield its first line; it ends when its standard input does."""
    command = [sys.executable, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE.parent, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
