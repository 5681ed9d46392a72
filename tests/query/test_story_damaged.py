"""What a member lacks is nothing that it did: logs of quiet clusters that begin late, end early, lose rows or are not there."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.story.story import stories

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, no package

from story_runs import made, scene_of, write

LOGS = {"csv": "*/operations.csv", "hdr": "*/latency.hlog", "fio": "**/*_clat_hist*"}
# Rows that are gone from within an operation log, or from an HdrHistogram log, leave no trace: those of fio are counted in its JSON.
DAMAGE = ("late", "early", "each early", "not there")
SEED = 20261129
QUICK = [number for number in range(48) if (one := scene_of(SEED, number, quiet=True)).hosts <= 10 and one.noise != "ar .9"]


def by_host(folder: Path, form: str) -> dict[str, list[Path]]:
    hosts: dict[str, list[Path]] = {}
    for path in sorted(folder.glob(LOGS[form])):
        hosts.setdefault(path.suffix if form == "fio" else path.parent.name, []).append(path)
    return hosts


def cut(path: Path, keep: tuple[float, float], hole: tuple[float, float] = (0, 0)) -> None:
    """Leave of the rows of a log those between two shares of it, without those of a hole."""
    lines = path.read_text().splitlines(keepends=True)
    head = [line for line in lines if line.startswith(("#", '"', "start_us"))]
    rows, count = lines[len(head) :], len(lines) - len(head)
    within = [row for at, row in enumerate(rows) if keep[0] <= at / count < keep[1] and not hole[0] <= at / count < hole[1]]
    path.write_text("".join(head + within))


def damaged(folder: Path, form: str, chance: random.Random) -> str:
    """Damage the logs of one host, or of each; return what was done."""
    hosts = by_host(folder, form)
    what, share, one = (
        chance.choice((*DAMAGE, *(["rows"] * (form == "fio")))),
        chance.choice((0.02, 0.1, 0.3, 0.6)),
        chance.choice(list(hosts)),
    )
    for host, logs in hosts.items():
        own = share * chance.random() if what == "each early" else share
        begin = chance.uniform(0.05, 0.95 - own)
        for path in logs if what == "each early" or host == one else []:
            if what == "not there":
                path.unlink()
            elif what == "rows":
                cut(path, (0, 1), (begin, begin + own))
            else:
                cut(path, (own, 1) if what == "late" else (0, 1 - own))
    return f"{what} {one} {share}"


def told(folder: Path) -> list[str]:
    """Return what is said but rhythms: one of them is by chance in what a log has left (0.6 of it gone), and is about that."""
    found = [finding for story in stories(Files([folder]), Question()) for finding in story.findings]
    return [finding.text for finding in found if finding.kind != "rhythm"]


@pytest.mark.cases(2)
@pytest.mark.parametrize("number", [QUICK[0], *(pytest.param(number, marks=pytest.mark.slow) for number in QUICK[1:])])
def test_what_a_quiet_cluster_lacks_is_told_of_nobody(number: int, tmp_path: Path) -> None:
    scene = scene_of(SEED, number, quiet=True)
    whole = write(made(scene), tmp_path / "whole")
    if told(whole):
        pytest.skip("a false sentence of the whole run")
    chance = random.Random(number)
    for turn in range(4):
        copy = shutil.copytree(whole, tmp_path / str(turn))
        what = damaged(copy, scene.form, chance)
        assert told(copy) == [], (scene.form, scene.hosts, what)
