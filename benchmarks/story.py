"""How often what `explain` says happened in a run is right: runs with known causes, and quiet ones, through their log files.

    python benchmarks/story.py [--runs 60] [--quiet 40] [--seed N] [--jobs 2] [--only clear | outage,ar,10]
    python benchmarks/story.py --show cause/17 --seed N      what was put into one run, and what is said of it
    python benchmarks/story.py --recorded                    the recordings of tests/data whose truth was found by hand
    python benchmarks/story.py --real 3                      real fio on this machine, some of it stopped (SIGSTOP) for a while

story_runs.py makes the runs. Each is written as logs (fio's histogram logs filed as CBT does, HdrHistogram logs, operation
logs), and `tailboard explain FOLDER --json` is asked. A seed is drawn and printed unless one is given: figures are of seeds
used once.

The rules, written before any result was seen (but for the window at either side of what is true in part, which is younger):

- **Found**: a finding names the place of a cause and its time. Kinds are not judged: what happened is who, when and how bad.
- **Place**: labels that have one value in the run tell nothing and are left out. A finding names the place where its host,
  volume and job are those of the cause (none, where the cause is on all hosts), and its operation (a tag of HdrHistogram
  logs), where the cause is on one operation alone. It may say more of the operation ("host-3 read" of a host whose reads and
  writes are slow is true), not of the place ("host-3" of an outage of all hosts blames one for all).
- **Time**: what both share is at least two thirds of what both cover. Of a cause that comes or goes slowly (drift, warm-up)
  either its whole time or the part that holds 90 % of its excess will do: where it ends is no one's to see. Of a cause
  shorter than four windows each edge of the finding may first move towards it by one window: logs tell no more, and times
  rounded outward by a window at each end share L / (L + 2) of both, two thirds from L = 4 on.
- **In part**: a finding that is true but not all of it: two thirds of its time lie within the cause and a window at either
  side (where what an outage held back completes), but it is too short; or it names the host of a volume or a job, or no
  operation where one alone is slow. It is no find, and not false. So is one that covers several causes of one place, and has
  two thirds in common with all of them together: causes that share a member are at least 10 % of the run and five windows
  apart, so that one sentence for two of them is less than what happened.
- **False**: every other finding, in runs with causes, too: another place, another time, all hosts for one, one for all.
- A run that ends with an error finds nothing, and counts as false.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from measure import print_table
from story_recorded import RECORDED, Recording, record
from story_runs import HOSTS, NOISES, PLACES, SHAPES, WINDOW, Cause, Scene, made, scene_of, write

Finding = Mapping[str, Any]  # as `explain --json` has them: who, from_s, to_s, kind, text
LABELS = ("host", "volume", "job", "op")
COMMON = 2 / 3
SHORT = 4 * WINDOW
EXACT, PARTLY, WRONG = "exact", "in part", "wrong"


def told(folder: Path, options: Sequence[str] = ()) -> tuple[list[Finding], str]:
    """Return what `explain` finds in a folder, and what it said where it failed."""
    from ingest.cli import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(["explain", str(folder), "--json", "--jobs", "1", *options])
    if status:
        return [], err.getvalue().strip() or f"exit status {status}"
    return [finding for story in json.loads(out.getvalue()) for finding in story["findings"]], ""


def place_of(finding: Finding, who: Mapping[str, str], varied: set[str]) -> str:
    """Return how a finding names the place of a cause."""
    said = {"op" if label == "tag" else label: str(value) for label, value in finding["who"].items()}
    named = {label: value for label, value in said.items() if label in varied}
    wanted = {label: value for label, value in who.items() if label in varied}
    if any(named[label] != wanted[label] for label in named.keys() & wanted.keys()):
        return WRONG
    if named.keys() - wanted.keys() - {"op"}:
        return WRONG
    missing = wanted.keys() - named.keys()
    if not missing:
        return EXACT
    return PARTLY if missing == {"op"} or (missing <= {"volume", "job", "op"} and "host" in named) else WRONG


def time_of(finding: Finding, cause: Cause) -> str:
    """Return how a finding names the time of a cause."""
    low, high = float(finding["from_s"]), float(finding["to_s"])
    for from_s, to_s in ((cause.from_s, cause.to_s), cause.core):
        begin, end = low, high
        if to_s - from_s < SHORT:
            begin, end = _towards(low, from_s), _towards(high, to_s)
        if _common(begin, end, from_s, to_s) >= COMMON * (max(end, to_s) - min(begin, from_s)):
            return EXACT
    within = _common(low, high, cause.from_s - WINDOW, cause.to_s + WINDOW)
    return PARTLY if high > low and within >= COMMON * (high - low) else WRONG


def _towards(edge: float, other: float) -> float:
    return edge + min(max(other - edge, -WINDOW), WINDOW)


def _common(low: float, high: float, from_s: float, to_s: float) -> float:
    return max(0.0, min(high, to_s) - max(low, from_s))


@dataclass
class Judged:
    """What was said of a run, held against what was put in: `found` of each cause; findings that are true in part, or false."""

    scene: Scene
    said: list[Finding]
    found: list[bool]
    partly: list[Finding]
    false: list[Finding]
    error: str
    seconds: float

    @property
    def wrong(self) -> bool:
        """Return whether anything false was said."""
        return bool(self.false or self.error)

    def as_dict(self) -> dict[str, Any]:
        """Return it for a file."""
        return {**asdict(self), "name": self.scene.name}


Verdict = tuple[list[bool], list[Finding], list[Finding]]


def judge(findings: Sequence[Finding], causes: Sequence[Cause], varied: set[str]) -> Verdict:
    """Return of each cause whether it was found, the findings that are true in part, and those that are false."""
    found = [False] * len(causes)
    partly, false = [], []
    for finding in findings:
        verdicts = [(place_of(finding, cause.who, varied), time_of(finding, cause)) for cause in causes]
        exact = [verdict == (EXACT, EXACT) for verdict in verdicts]
        found = [before or now for before, now in zip(found, exact, strict=True)]
        if any(exact):
            continue
        named = [cause for cause, (place, _) in zip(causes, verdicts, strict=True) if place != WRONG]
        if any(WRONG not in verdict for verdict in verdicts) or (len(named) > 1 and _covers(finding, named)):
            partly.append(finding)
        else:
            false.append(finding)
    return found, partly, false


def _covers(finding: Finding, causes: Sequence[Cause]) -> bool:
    """Return whether two thirds of what a finding and several causes cover is common to both."""
    low, high = float(finding["from_s"]), float(finding["to_s"])
    lasting = sum(cause.to_s - cause.from_s for cause in causes)
    common = sum(_common(low, high, cause.from_s, cause.to_s) for cause in causes)
    return common >= COMMON * (high - low + lasting - common)


def judged(name: str, seed: int, keep: Path | None = None) -> Judged:
    """Return what is said of the run of a name; its logs stay in a folder below `keep` unless all was right."""
    kind, _, number = name.partition("/")
    scene = scene_of(seed, int(number), quiet=kind == "quiet")
    run = made(scene)
    with tempfile.TemporaryDirectory() as scratch:
        folder = write(run, Path(scratch) / "run")
        began = time.process_time()
        findings, error = told(folder)
        seconds = time.process_time() - began
        result = Judged(scene, findings, *judge(findings, scene.causes, scene.varied()), error, seconds)
        if keep and (result.wrong or not all(result.found)):
            kept = keep / f"{kind}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept / "run")
            (kept / "truth.json").write_text(json.dumps(result.as_dict(), indent=1))
    return result


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    if not of:
        return 0.0, 1.0
    z = 1.959964
    middle, scale = (right + z * z / 2) / (of + z * z), z / (of + z * z)
    half = scale * math.sqrt(right * (of - right) / of + z * z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(right: int, of: int) -> str:
    """Return a share with its interval."""
    low, high = wilson(right, of)
    return f"{right} of {of} ({100 * right / of:.0f} %; {100 * low:.0f} to {100 * high:.0f})" if of else "-"


Pair = tuple[Judged, Cause, bool]
FOUND_HEADINGS = ("", "causes found", "runs with a false sentence", "false sentences a run", "runs with one true in part")


def pairs_of(results: Iterable[Judged]) -> list[Pair]:
    """Return every cause with its run and whether it was found."""
    return [(result, *each) for result in results for each in zip(result.scene.causes, result.found, strict=True)]


def row_of(name: str, pairs: Sequence[Pair]) -> list[str]:
    """Return a row of the table of causes."""
    runs = list({pair[0].scene.name: pair[0] for pair in pairs}.values())
    false = sum(len(run.false) for run in runs) / max(len(runs), 1)
    return [
        name,
        share(sum(found for _, _, found in pairs), len(pairs)),
        share(sum(run.wrong for run in runs), len(runs)),
        f"{false:.2f}",
        share(sum(bool(run.partly) for run in runs), len(runs)),
    ]


def _between(value: float, edges: Sequence[float]) -> int:
    return sum(value >= edge for edge in edges)


def marginals(pairs: Sequence[Pair]) -> list[tuple[str, list[list[str]]]]:
    """Return the tables of causes by each property, with a row for each value that is there."""

    def length(pair: Pair) -> int:
        return _between((pair[1].to_s - pair[1].from_s) / pair[0].scene.length, (0.03, 0.1, 0.2, 0.4))

    splits: list[tuple[str, Callable[[Pair], Any], Sequence[Any], Sequence[str]]] = [
        ("shape", lambda pair: pair[1].shape, SHAPES, SHAPES),
        (
            "length, share of the run",
            length,
            range(5),
            ("below 3 %", "3 to 10 %", "10 to 20 %", "20 to 40 %", "40 % and more"),
        ),
        (
            "factor (plateaus and few)",
            lambda pair: _between(pair[1].factor, (2, 3, 8)) if pair[1].shape in ("plateau", "few") else None,
            range(4),
            ("1.5 to 2", "2 to 3", "3 to 8", "8 to 50"),
        ),
        ("place", lambda pair: pair[1].place, PLACES, ()),
        ("hosts", lambda pair: pair[0].scene.hosts, (1, *HOSTS), ()),
        (
            "operations a second",
            lambda pair: _between(pair[0].scene.rate, (20, 60, 150)),
            range(4),
            ("8 to 20", "20 to 60", "60 to 150", "150 to 400"),
        ),
        ("noise", lambda pair: pair[0].scene.noise, list(NOISES), ()),
        ("loop", lambda pair: "closed" if pair[0].scene.closed else "open", ("closed", "open"), ()),
        ("format", lambda pair: pair[0].scene.form, ("fio", "hdr", "csv"), ()),
        ("causes in the run", lambda pair: len(pair[0].scene.causes), (1, 2, 3), ()),
        (
            "z, told place and time",
            lambda pair: _between(pair[1].z, (4.5, 6, 10)),
            range(4),
            ("below 4.5", "4.5 to 6", "6 to 10", "above 10"),
        ),
    ]
    tables = [("all", [row_of("all", pairs)] if pairs else [])]
    for title, value_of, values, names in splits:
        rows = []
        for value, name in zip(values, names or map(str, values), strict=True):
            mine = [pair for pair in pairs if value_of(pair) == value]
            rows += [row_of(name, mine)] if mine else []
        tables.append((title, rows))
    return tables


PLAIN = "5 % of the run, 60 operations a second or more"


def plain(scene: Scene, cause: Cause) -> bool:
    """Return whether a cause lasts long enough, and its members do enough, that targets of finding it hold."""
    return cause.to_s - cause.from_s >= 0.05 * scene.length and scene.rate >= 60


def clear(scene: Scene, cause: Cause) -> bool:
    """Return whether a cause is one of the first target."""
    strong = (cause.shape == "plateau" and cause.factor >= 1.5) or (cause.shape == "rate" and cause.rate <= 0.5)
    return strong and plain(scene, cause) and scene.noise in ("white", "heavy")


def tripled(scene: Scene, cause: Cause) -> bool:
    """Return whether a cause is one of the target on AR(1)."""
    return cause.shape == "plateau" and cause.factor >= 3 and plain(scene, cause) and scene.noise == "ar .7"


def targets(results: Sequence[Judged]) -> list[list[str]]:
    """Return what is aimed at beside what is so: met or missed where the whole interval is, open where more runs must tell."""
    pairs = pairs_of(results)
    rows = []
    for name, chosen, aim in (
        (f"plateau x1.5, rate x0.5 or more, white or heavy; {PLAIN}", lambda pair: clear(pair[0].scene, pair[1]), 0.95),
        (f"plateau x3 or more, ar .7; {PLAIN}", lambda pair: tripled(pair[0].scene, pair[1]), 0.9),
        ("z above 6", lambda pair: pair[1].z > 6, 0.95),
    ):
        mine = [pair[2] for pair in pairs if chosen(pair)]
        rows.append([f"found: {name}", share(sum(mine), len(mine)), f"{100 * aim:.0f} %", met(sum(mine), len(mine), aim, 1)])
    kinds = {"runs with causes": [run for run in results if run.scene.causes]}
    kinds["quiet runs"] = [run for run in results if not run.scene.causes]
    for (kind, runs), hosts, (noise, aim) in product(kinds.items(), (None, *HOSTS), (("white, heavy", 0.01), ("ar .7", 0.03))):
        some = [run.wrong for run in runs if hosts in (None, run.scene.hosts) and run.scene.noise in noise.split(", ")]
        name = f"false: {kind}, {noise}, {hosts or 'all'} hosts"
        verdict = met(sum(some), len(some), aim, -1)
        rows.append([name, share(sum(some), len(some)), f"at most {100 * aim:.0f} %", verdict])
    return rows


def met(right: int, of: int, aim: float, sign: int) -> str:
    """Return the verdict on a share that is to be at least (or at most, with a sign of -1) what is aimed at."""
    worst, best = wilson(right, of)[::sign]
    return "met" if sign * (worst - aim) >= 0 else "MISSED" if sign * (best - aim) < 0 else "open"


def amounts(results: Sequence[Judged]) -> list[list[str]]:
    """Return of causes that were found how much excess, and how many missing completions, were said for each that was there."""
    rows = []
    for shape in SHAPES:
        said: dict[str, list[float]] = {"excess_ns": [], "missing": []}
        for result, cause, found in pairs_of(results):
            if found and cause.shape == shape:
                mine = [finding for finding in result.said if judge([finding], [cause], result.scene.varied())[0][0]]
                for key, there in (("excess_ns", cause.excess_s * 1e9), ("missing", cause.missing)):
                    if there >= 30:  # less is chance
                        said[key].append(sum(finding.get(key, 0) for finding in mine) / there)
        if any(said.values()):
            rows.append([shape, *map(_spread, said.values())])
    return rows


def _spread(ratios: Sequence[float]) -> str:
    low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9)) if ratios else (0, 0, 0)
    return f"{middle:.2f} ({low:.2f} to {high:.2f}; {len(ratios)})" if ratios else "-"


def quiet_rows(results: Sequence[Judged]) -> list[list[str]]:
    """Return of quiet runs the share with any sentence, by noise and hosts."""
    rows = []
    for noise in (None, *NOISES):
        mine = [result for result in results if noise in (None, result.scene.noise)]
        cells = [[result.wrong for result in mine if hosts in (None, result.scene.hosts)] for hosts in (None, *HOSTS)]
        if mine:
            rows.append([noise or "all", *(share(sum(cell), len(cell)) for cell in cells)])
    return rows


def show(what: Mapping[str, Any], causes: Sequence[Cause], findings: Sequence[Finding], varied: set[str], other: str) -> None:
    """Print what was put into a run, and what was said of it; `other` is the word for what was not put in."""
    print(*(f"{key} {value}" for key, value in what.items()), sep=", ")
    for cause, found in zip(causes, judge(findings, causes, varied)[0], strict=True):
        drawn = f", factor {cause.factor:.2f}, of {100 * cause.share:.1f} %, rate {cause.rate:.2f}, period {cause.period_s:.1f} s"
        drawn += f"; excess {cause.excess_s:.3g} s, missing {cause.missing}, z {cause.z:.1f}"
        print(
            "found:" if found else "NOT FOUND:",
            cause.shape,
            _where(cause.who, cause.from_s, cause.to_s) + drawn * bool(cause.place),
        )
    for finding in findings:
        right, partly, _ = judge([finding], causes, varied)
        verdict = "true" if any(right) else "in part" if partly else other
        print(f"{verdict}:", finding["kind"], _where(finding["who"], finding["from_s"], finding["to_s"]), finding["text"])
    print(f"{len(findings)} sentences")


def _where(who: Mapping[str, str], low: float, high: float) -> str:
    return f"{' '.join(map(str, who.values())) or 'all'} {low:.1f} to {high:.1f} s"


def show_recording(recording: Recording) -> None:
    """Print what happened in a recording, and what is said of it."""
    findings, error = told(recording.folder, recording.options)
    show({"folder": recording.folder, "error": error}, recording.causes, findings, set(recording.varied), "other")


def names_of(seed: int, count: int, words: Sequence[str], *, quiet: bool) -> list[str]:
    """Return the names of the first runs that are of all words.

    Words are shapes, places, noises, formats, hosts, open or closed, weak; `clear` and `tripled`: with a cause of that target.
    """
    names: list[str] = []
    number = 0
    while len(names) < count:
        scene = scene_of(seed, number, quiet=quiet)
        there = {each.__name__ for each in (clear, tripled) for cause in scene.causes if each(scene, cause)}
        if set(words) <= scene.words | there:
            names.append(scene.name)
        number += 1
        if number > 1000 * (len(names) + 1):
            raise SystemExit(f"--only {','.join(words)}: no such run among {number:,}")
    return names


def _job(job: tuple[str, int, Path | None]) -> Judged:
    return judged(*job)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="with causes")
    parser.add_argument("--quiet", type=int, default=40, help="quiet ones")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="words that a run is of, by commas: outage, host, 'ar .7', fio, 10, open, weak, clear, tripled"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the logs of runs of which not all was right")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a line of each run")
    parser.add_argument("--recorded", action="store_true", help="the recordings of the repository")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="N recordings of real fio, 25 s each")
    parser.add_argument("--show", metavar="NAME", help="one run: cause/17, quiet/3")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    if options.show:
        result = judged(options.show, options.seed, options.keep)
        drawn = {key: value for key, value in asdict(result.scene).items() if key not in ("causes", "seed")}
        show({**drawn, "error": result.error}, result.scene.causes, result.said, result.scene.varied(), "FALSE")
        return
    if options.recorded or options.real:
        for recording in RECORDED if options.recorded else ():
            show_recording(recording)
        for number in range(options.real):
            with tempfile.TemporaryDirectory() as scratch:
                show_recording(record(Path(scratch) / "run", np.random.default_rng([options.seed, number])))
        return
    words = [word for word in options.only.split(",") if word]
    names = names_of(options.seed, options.runs, words, quiet=False) + names_of(options.seed, options.quiet, words, quiet=True)
    results = []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool, (options.json or Path("/dev/null")).open("w") as out:
        for result in pool.imap(_job, [(name, options.seed, options.keep) for name in names]):
            results.append(result)
            print(json.dumps(result.as_dict()), file=out, flush=True)
            print(f"\r{len(results)} of {len(names)} runs".ljust(30), end="\r", file=sys.stderr, flush=True)
    report(results)


def report(results: Sequence[Judged]) -> None:
    """Print the tables of results."""
    quiet = [result for result in results if not result.scene.causes]
    of_amounts = "said of each second of excess and each missing completion of causes found: median (10 to 90 %; causes)"
    tables: list[tuple[str, Sequence[str], list[list[str]]]] = [
        *((title, FOUND_HEADINGS, rows) for title, rows in marginals(pairs_of(results))),
        ("quiet runs with any sentence", ("noise", "all", *(f"{hosts} hosts" for hosts in HOSTS)), quiet_rows(quiet)),
        (of_amounts, ("", "excess", "missing"), amounts(results)),
        ("targets", ("", "so", "aimed at", ""), [row for row in targets(results) if row[1] != "-"]),
    ]
    for title, headings, rows in tables:
        if rows:
            print_table(title, headings, rows)
    seconds = sorted(result.seconds for result in results)
    print(f"\n{len(results)} runs, {sum(seconds) / len(seconds):.2f} CPU s each for explain, {seconds[-1]:.1f} at most")


if __name__ == "__main__":
    main()
