"""Runs that differ by their settings: a sweep of depths, and which runs of two archives are the same thing measured twice.

What a run is below its archive is in its name (CBT: WORKLOAD/numjobs-001/total_iodepth-8) or in its labels. The name of an
archive and CBT's id of a permutation are no part of it: the id is a digest of all settings and changes with any of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ingest.core.labels import RunLabels

DEPTHS = ("total_iodepth", "iodepth", "numjobs")
RATES = ("target_rate", "offered_rate", "rate_iops", "rate", "target")
AT_ONCE = (*DEPTHS, "depth", "clients", "threads", "concurrency")  # how many requests there are at once
FIRST = ("workload", "mode", "op_size", "rwmixread", *DEPTHS)  # the settings that name a run before its others
ID = re.compile(r"id-[0-9a-f]{8}")
ITERATION = re.compile(r"\d{8}")
PERMUTATION = "permutation"  # the label that keeps runs of archives apart in comparisons and trends

Words = tuple[str, ...]


class Sweep(NamedTuple):
    """Runs at several depths: the label that is the depth, and of each run its depth and the line that it is on."""

    label: str
    places: Mapping[str, tuple[float, str]]


def swept(labels: RunLabels) -> Sweep | None:
    """Return the sweep of depths that runs are, None where they are none.

    They are where a label such as `total_iodepth` is a number of every run, each line (runs that are alike in everything else)
    has a depth once, and some line has several.
    """
    return _sweep(labels, DEPTHS, repeated=False)


def loads(labels: RunLabels, names: Sequence[str]) -> Sweep | None:
    """Return the sweep of the first of some labels that runs are, None without one; a line may have a load several times."""
    return _sweep(labels, names, repeated=True)


def _sweep(labels: RunLabels, names: Sequence[str], *, repeated: bool) -> Sweep | None:
    for label in names:
        depths = {run: _number(run_labels.get(label, "")) for run, run_labels in labels.items()}
        if len(set(depths.values())) < 2 or any(math.isnan(depth) for depth in depths.values()):
            continue
        # Labels that have one value for each value of this one are no settings of their own.
        pairs = {name: {(run_labels.get(label), run_labels.get(name)) for run_labels in labels.values()} for name in names}
        with_depth = [name for name, own in pairs.items() if name == label or len(own) == len({first for first, _ in own})]
        settings = {
            run: tuple(f"{name}={value}" for name, value in sorted(run_labels.items()) if name not in with_depth)
            for run, run_labels in labels.items()
        }
        # A sweep in each of several archives is a line each; archives of one depth each are one line.
        for keys in ({run: (*_archive(run), *words) for run, words in settings.items()}, settings):
            lines = _named(keys, labels, with_depth)
            places = {run: (depths[run], lines[run]) for run in labels}
            distinct = len(set(places.values()))
            if (repeated or distinct == len(places)) and distinct > len(set(lines.values())):
                return Sweep(label, places)
    return None


def _named(keys: Mapping[str, Words], labels: RunLabels, left_out: Sequence[str]) -> dict[str, str]:
    """Return a short name of each run's key, unlike for unlike keys: by as few labels as keep them apart, and the archive."""
    names = [name for name in _varying(labels.values()) if name not in left_out]
    chosen: dict[str, Words] = dict.fromkeys(keys, ())
    for name in names:
        more = {run: (*chosen[run], labels[run].get(name, "-")) for run in keys}
        if len(set(more.values())) > len(set(chosen.values())):
            chosen = more
    if len(set(zip(keys.values(), chosen.values(), strict=True))) > len(set(chosen.values())):
        chosen = {run: ("/".join(_archive(run)), *words) for run, words in chosen.items()}
    return {run: ", ".join(chosen[run]) for run in keys}


def _archive(run: str) -> Words:
    """Return what a run's name has in front of CBT's id: its archive and its iteration; nothing without an id."""
    words = run.split("/")
    return next((tuple(words[:at]) for at, word in enumerate(words) if ID.fullmatch(word)), ())


def _varying(labels: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the labels that differ among runs, those first that name what a run is."""
    all_labels = list(labels)
    names = {name for run_labels in all_labels for name in run_labels}
    varying = [name for name in names if len({run_labels.get(name) for run_labels in all_labels}) > 1]
    return sorted(varying, key=_order)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if 0 < number < math.inf else math.nan


class Paired(NamedTuple):
    """Runs of two sides that are the same thing: (what it is, baseline, run) of each, and the runs that have none like them."""

    pairs: tuple[tuple[str, str, str], ...]
    alone: tuple[Words, Words]


def paired_runs(baseline: Sequence[str], run: Sequence[str], labels: RunLabels) -> Paired | None:
    """Return the pairs of runs that are the same but for their archives, or but for what all runs of a side have in common.

    They are known by the words of their paths that differ within a side, without ids, else by their labels. None where
    neither distinguishes all runs of a side, where nothing is on both sides, or where a run is on both.
    """
    if set(baseline) & set(run):
        return None
    sides = (baseline, run)
    paths = [{name: [word for word in name.split("/") if not ID.fullmatch(word)][::-1] for name in side} for side in sides]
    by_path = [{name: "/".join(words[::-1]) for name, words in side.items()} for side in _unlike(paths)]  # archives lie in front
    side_labels = [[labels.get(name, {}) for name in side] for side in sides]
    names = sorted({name for side in side_labels for name in _varying(side)}, key=_order)
    by_label = [{name: _said(labels.get(name, {}), names) for name in side} for side in sides]
    for keys in (by_path, by_label):
        first, second = ({key: name for name, key in side.items()} for side in keys)
        shared = [key for key in first if key in second]
        if shared and (len(first), len(second)) == (len(baseline), len(run)):
            left = tuple(first[key] for key in first if key not in second)
            right = tuple(second[key] for key in second if key not in first)
            return Paired(tuple((key, first[key], second[key]) for key in shared), (left, right))
    return None


def permutations(runs: Sequence[str], labels: RunLabels) -> dict[str, tuple[str, str]] | None:
    """Return the archive of each run (with its iteration, if it has several) and what the run is in it.

    None where runs are of no archive, where all are the same thing, and where neither paths nor labels keep those of an
    archive apart.
    """
    archived = {run: _archive(run) for run in runs}
    if not all(archived.values()):
        return None
    archives: dict[Words, list[str]] = {}
    for run, words in archived.items():
        archives.setdefault(words, []).append(run)
    once = {words[:-1] if ITERATION.fullmatch(words[-1]) else words for words in archives}
    short = len(once) == len(archives) and all(once)
    names = {words: "/".join(words[:-1] if short and ITERATION.fullmatch(words[-1]) else words) for words in archives}
    paths = {run: run.split("/")[len(words) + 1 :] for run, words in archived.items()}
    by_path = {run: "/".join(words) for run, words in _unlike([paths])[0].items()}
    varying = {name for mine in archives.values() for name in _varying(labels.get(run, {}) for run in mine)}
    by_label = {run: _said(labels.get(run, {}), sorted(varying, key=_order)) for run in runs}
    for keys in (by_path, by_label):
        if len(set(keys.values())) > 1 and all(len({keys[run] for run in mine}) == len(mine) for mine in archives.values()):
            return {run: (names[archived[run]], key) for run, key in keys.items()}
    return None


def _unlike(paths: Sequence[Mapping[str, Sequence[str]]]) -> list[dict[str, Words]]:
    """Return the words of paths at those places at which they differ within a set of them, empty where one is shorter."""
    most = max(len(words) for own in paths for words in own.values())
    filled = [{run: (*words, *[""] * (most - len(words))) for run, words in own.items()} for own in paths]
    places = [at for at in range(most) if any(len({words[at] for words in own.values()}) > 1 for own in filled)]
    return [{run: tuple(words[at] for at in places) for run, words in own.items()} for own in filled]


def _said(labels: Mapping[str, str], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {labels[name]}" for name in names if name in labels) or "-"


def _order(name: str) -> tuple[int, str]:
    """Return the place of a label: those first that name what a run is."""
    return FIRST.index(name) if name in FIRST else len(FIRST), name
