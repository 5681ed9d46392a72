"""Pictures of percentiles of several groups: one colour a group and one dash a percentile, or a small picture for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

from ingest.core.dataclass import dataclass
from ingest.core.errors import counted
from ingest.core.ranks import Percentile
from ingest.core.series import Group
from ingest.query.question import Answer
from ingest.view import vega
from ingest.view.specs import derived

MOST_COLOURS = 8  # more cannot be told from one another
MOST_FACETS = 60
LONGEST_LABEL = 18
LONGEST_TITLE = 44
BREAKS = "/.:, "
LEAST_COMMON = 3
HUNDREDTH = 100  # x of p99 in curves
GREY = "#c4c4c4"
COLOURS = ("#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#eeca3b", "#b279a2", "#ff9da6")  # Vega's tableau10


@dataclass(frozen=True, slots=True)
class Lines:
    """The spec and the tables of a picture of several groups, and what its subtitle has to say of them."""

    spec: Mapping[str, Any]
    tables: Mapping[str, vega.Columns]
    notes: tuple[str, ...]
    faceted: bool = False


def lines_of(answer: Answer, whole: Answer, wanted: Sequence[Percentile]) -> Lines:
    """Return the picture of the percentiles of several groups: `lines`, `points`, `thin` and `whole` bear group and level.

    More than MOST_FACETS groups are those with the highest value of the last percentile, which the notes say.
    """
    names = vega.group_names(answer)
    faceted = len(names) > MOST_COLOURS
    labels, by, notes = _labels_of(answer, names, LONGEST_TITLE if faceted else LONGEST_LABEL)
    tables = {name: _by_level(answer, wanted, labels, make) for name, make in (("points", vega.points), ("thin", vega.thin))}
    tables["whole"] = _by_level(whole, wanted, labels, vega.points)
    if len(names) > MOST_FACETS:
        tables, kept = _worst(tables, wanted[-1])
        notes.append(f"{kept} of {counted(len(names), 'group')}, those with the highest p{wanted[-1].text}")
    if tables["thin"]["v"]:
        notes.append("circles: the maximum, where there are too few samples")
    order = {text: place for place, text in enumerate(labels.values())}
    tables["lines"] = joined(tables["points"], order)
    levels = [f"p{percentile.text}" for percentile in wanted]
    if faceted:
        own = vega.spec("percentiles")["axes"]
        axes = [{key: value for key, value in {**axis, "labelOverlap": True}.items() if key != "title"} for axis in own]
        return Lines(derived("percentiles-facets", levels=levels, axes=axes), tables, tuple(notes), faceted=True)
    return Lines(derived("percentiles-groups", levels=levels, by=by), tables, tuple(notes))


def curves_of(answer: Answer) -> Lines:
    """Return the picture of the distributions of several groups: beyond MOST_COLOURS the others of the highest p99 are grey."""
    labels, _, notes = _labels_of(answer, vega.group_names(answer), LONGEST_LABEL)
    points = vega.curve(answer)
    points["label"] = [labels[name] for name in points["label"]]
    tail: dict[str, float] = {}  # the value at p99, else the highest
    for label, x, value in zip(points["label"], points["x"], points["v"], strict=True):
        tail[label] = value if x <= HUNDREDTH or label not in tail else tail[label]
    ranked = sorted(labels.values(), key=lambda label: -tail[label])
    coloured = set(ranked if len(ranked) <= MOST_COLOURS else ranked[: MOST_COLOURS - 1])
    tones = [label for label in labels.values() if label in coloured]
    others = f"{len(labels) - len(tones)} others"
    tone = [label if label in coloured else others for label in points["label"]]
    last = sorted(range(len(tone)), key=lambda row: tone[row] != others)  # grey lies below
    tables = {"points": {name: [column[row] for row in last] for name, column in {**points, "tone": tone}.items()}}
    grey = len(tones) < len(labels)
    spec = derived("distribution-groups", tones=[*tones, *[others][:grey]], colours=[*COLOURS[: len(tones)], *[GREY][:grey]])
    return Lines(spec, tables, (*notes, *["coloured: those with the highest p99"][:grey]))


def _labels_of(answer: Answer, names: Mapping[Group, str], longest: int) -> tuple[dict[str, str], str, list[str]]:
    """Return a short text by the name of each group, what they are grouped by, and the labels that all have alike."""
    short, constant = short_labels(list(names), longest)
    labels = {names[key]: text for key, text in zip(names, short, strict=True)}
    varying = [name for place, name in enumerate(answer.by) if place not in constant]
    return labels, ", ".join(varying or answer.by), [f"{answer.by[place]} {value or '-'}" for place, value in constant.items()]


def _by_level(answer: Answer, wanted: Sequence[Percentile], labels: Mapping[str, str], make: Any) -> vega.Columns:
    """Return the rows of a table of each percentile by itself, with the group and the percentile in columns of their own."""
    tables: vega.Columns = {}
    for percentile in wanted:
        columns = make(answer, [percentile])
        columns = {**columns, "group": [labels[name] for name in columns["label"]]}
        columns["level"] = [f"p{percentile.text}"] * len(columns["label"])
        for name, column in columns.items():
            tables.setdefault(name, []).extend(column)
    return tables


def _worst(tables: Mapping[str, vega.Columns], last: Percentile) -> tuple[dict[str, vega.Columns], int]:
    """Return the rows of the groups whose windows reach highest, and how many groups these are."""
    highest: dict[str, float] = {}
    for name in ("points", "thin"):
        rows = zip(tables[name]["group"], tables[name]["level"], tables[name]["v"], strict=True)
        for group, level, value in rows:
            if level == f"p{last.text}":
                highest[group] = max(value, highest.get(group, 0.0))
    kept = set(sorted(highest, key=lambda group: -highest[group])[:MOST_FACETS])
    cut: dict[str, vega.Columns] = {}
    for name, columns in tables.items():
        stay = [group in kept for group in columns["group"]]
        cut[name] = {key: list(compress(column, stay)) for key, column in columns.items()}
    return cut, len(kept)


def joined(points: vega.Columns, order: Mapping[str, int]) -> vega.Columns:
    """Return the windows of each group and percentile as a line of steps: it ends where windows are missing (v null)."""
    named = zip(*(points[name] for name in ("group", "level", "t", "t2", "v")), strict=True)
    rows = sorted(named, key=lambda row: row[:3])
    lines: vega.Columns = {name: [] for name in ("group", "level", "t", "v", "order")}

    def add(group: str, level: str, at: float, value: float | None) -> None:
        for name, entry in zip(lines, (group, level, at, value, order[group]), strict=True):
            lines[name].append(entry)

    for number, (group, level, begin, end, value) in enumerate(rows):
        add(group, level, begin, value)
        after = rows[number + 1] if number + 1 < len(rows) else None
        if after is None or after[:3] != (group, level, end):
            add(group, level, end, value)
            add(group, level, end, None)
    return lines


def short_labels(keys: Sequence[Group], longest: int) -> tuple[list[str], dict[int, str]]:
    """Return a text for each group that distinguishes it, and the labels that all groups have alike by their place.

    Labels that are the same everywhere are left out; so are folders and domains that all texts have in common where a text is
    longer than `longest`. What is still longer is cut in the middle. Unlike groups have unlike texts.
    """
    width = len(keys[0]) if keys else 0
    places = range(width if len(keys) > 1 else 0)
    constant = {place: keys[0][place] for place in places if len({key[place] for key in keys}) == 1}
    texts = [vega.printable(", ".join(label or "-" for place, label in enumerate(key) if place not in constant)) for key in keys]
    if any(len(text) > longest for text in texts):
        texts = _without_common(texts)
    shown: list[str] = []
    for text in [cut_in_the_middle(text, longest) for text in texts]:
        number, unlike = 1, text
        while unlike in shown:
            number += 1
            unlike = cut_in_the_middle(text, longest - len(f" {number}")) + f" {number}"
        shown.append(unlike)
    return shown, constant


def _without_common(texts: Sequence[str]) -> list[str]:
    """Return texts without what all begin and end with, at whole folders, domains and words."""
    before = _common(texts)
    rest = [text[before:] for text in texts]
    after = _common([text[::-1] for text in rest])
    return [text[: len(text) - after] for text in rest]


def _common(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with, up to and with a mark between words; never all of one."""
    alike = [len(set(letters)) == 1 for letters in zip(*texts, strict=False)]
    common = alike.index(False) if False in alike else len(alike)
    at = max((place + 1 for place, letter in enumerate(texts[0][:common]) if letter in BREAKS), default=0)
    return at if at >= LEAST_COMMON else 0


def cut_in_the_middle(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters: names differ at their ends, so the middle goes."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) * 3 // 5
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"
