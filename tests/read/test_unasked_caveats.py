"""Recorded data as it is raises no caveat but those listed in tests/data/caveats.txt: a new one is added there deliberately."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from ingest.core.errors import InputError
from ingest.read.copies import conflicts
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
LISTED = DATA / "caveats.txt"


def recorded(folder: Path) -> dict[str, Path]:
    """Return the archives and folders of recorded data by name, with the archives unpacked."""
    for file in (DATA / "cbt").glob("*.tar.xz"):
        with tarfile.open(file) as tar:
            tar.extractall(folder / file.name.partition(".")[0], filter="data")
    found = {f"cbt/{path.name}": path for path in sorted(folder.iterdir())}
    found |= {"cbt/averaged": DATA / "cbt" / "averaged", "examples/cbt-archive": ROOT / "examples" / "cbt-archive"}
    for kind in ("fio", "fio/cases", "raw"):
        found |= {
            f"{kind}/{path.name}": path for path in sorted((DATA / kind).iterdir()) if path.is_dir() and path.name != "cases"
        }
    return found | {kind: DATA / kind for kind in ("hdr", "snabb", "traces")}


def caveats_of(name: str, path: Path) -> set[str]:
    """Return a line for each caveat: the folder, its code, and the names of the files that it is about."""
    try:
        found = discover([path], ReadOptions())
    except InputError as error:
        return {f"{name}  refused  {error.path and Path(error.path).name}"}
    return {
        f"{name}  {one.code}  {', '.join(sorted(Path(part).name for part in one.subject.split(', ')))}"
        for one in (*found.caveats, *conflicts(found))
    }


@pytest.mark.slow
def test_recorded_data_raises_no_caveat_but_those_listed(tmp_path: Path) -> None:
    found = {line for name, path in recorded(tmp_path).items() for line in caveats_of(name, path)}
    listed = {line for line in LISTED.read_text().splitlines() if line and not line.startswith("#")}
    assert sorted(found - listed) == [], "new"
    assert sorted(listed - found) == [], "gone"


def test_every_listed_caveat_stands_below_its_reason() -> None:
    groups = LISTED.read_text().strip().split("\n\n")
    assert all(group.startswith("# ") for group in groups)
    assert sum(not line.startswith("#") for group in groups for line in group.splitlines()) <= 11
