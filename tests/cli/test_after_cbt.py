"""The hook behind a CBT run: several archives at once, several hooks at once, run again without any effect."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tailboard
from tests.store.grounds import grounds, loaded

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
HOOK = ROOT / "examples" / "after-cbt.sh"
NIGHTS = ("night-1", "night-2", "night-3")


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> list[Path]:
    """Three archives: the example, and without the logs of one host or two."""
    folder = tmp_path_factory.mktemp("archives")
    found = [shutil.copytree(EXAMPLE, folder / name) for name in NIGHTS]
    for archive, hosts in zip(found, ("", "a", "ab"), strict=True):
        for log in (path for host in hosts for path in archive.rglob(f"*_clat_hist.*.ceph-{host}.gz")):
            log.unlink()
    return found


@pytest.fixture(params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def hook(url: str, archives: list[Path]) -> subprocess.Popen:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = {"TAILBOARD_STORE": url, "TAILBOARD_RUN": "nightly", "TAILBOARD_JOBS": "2", "PATH": path}
    return subprocess.Popen([HOOK, *archives], env={**os.environ, **words}, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen) -> tuple[int, str]:
    told = process.communicate(timeout=600)[1]
    return process.returncode, told


def expected(tmp_path: Path, kind: str, archives: list[Path]):
    """What single loads leave, one after another."""
    with grounds(kind, tmp_path) as clean:
        for archive in archives:
            loaded(clean.url, [archive], run=f"nightly/{archive.name}")
        return clean.documents(), clean.rollups()


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["double", pytest.param("sqlite", marks=pytest.mark.soak)], indirect=True)
def test_several_archives_in_one_call_and_again(ground, archives, tmp_path: Path) -> None:
    status, told = ended(hook(ground.url, archives))
    assert status == 0, told
    before = ground.documents(), ground.rollups()
    assert before == expected(tmp_path, "sqlite", archives) and len(before[0]) > 2000
    assert {one["run"].split("/00000000/")[0] for one in before[0]} == {f"nightly/{name}" for name in NIGHTS}
    status, told = ended(hook(ground.url, archives))
    assert status == 0
    assert len(re.findall(r"nothing new: 0 documents, all \d+ sources of nightly/night-\d\S* are in", told)) == 3
    assert (ground.documents(), ground.rollups()) == before


@pytest.mark.soak
@pytest.mark.parametrize("ground", ["double", pytest.param("sqlite", marks=pytest.mark.soak)], indirect=True)
def test_several_hooks_at_once(ground, archives, tmp_path: Path) -> None:
    """Two of them even load the same archive."""
    hooks = [hook(ground.url, [archive]) for archive in (*archives, archives[0])]
    for status, told in [ended(one) for one in hooks]:
        assert status == 0, told
    assert (ground.documents(), ground.rollups()) == expected(tmp_path, "sqlite", archives)


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["sqlite"], indirect=True)
def test_an_archive_that_is_refused_does_not_hold_up_the_others(ground, archives, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    status, told = ended(hook(ground.url, [archives[2], empty, archives[1]]))
    assert status == 3
    assert "tailboard: nightly/empty: " in told and "1 of 3 archives are not loaded whole" in told
    assert ground.documents() == expected(tmp_path, "sqlite", archives[1:])[0]


@pytest.mark.slow
def test_archives_of_one_name_are_told_apart_by_the_caller(archives, tmp_path: Path) -> None:
    other = shutil.copytree(archives[2], tmp_path / archives[0].name)
    status, told = ended(hook(f"sqlite:{tmp_path / 's.db'}", [archives[0], other]))
    assert status == 2 and "more than one is called night-1" in told
    assert ended(hook(f"sqlite:{tmp_path / 's.db'}", []))[0] == 2


@pytest.mark.slow
def test_accounts_of_several_loads_are_one_object(archives, tmp_path: Path) -> None:
    words = ["load", *map(str, archives[1:]), "--run", "n", "--each", "--json", "--store", f"sqlite:{tmp_path / 's.db'}"]
    done = tailboard(*words)
    assert done.returncode == 0, done.stderr
    accounts = json.loads(done.stdout)
    assert list(accounts) == ["n/night-2", "n/night-3"]
    assert all(account["documents"] > 300 for account in accounts.values())
