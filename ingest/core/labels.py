"""Labels: which stream a measurement belongs to, and how streams are selected and grouped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import translate
from functools import cache
from operator import attrgetter

from ingest.core.errors import as_text

OPS = ("read", "write", "trim")
MIXED = "mixed"  # all ops together, where an option makes fio count them so
IN_FLIGHT = "in-flight"
CORRECTED = "corrected"
ALTERNATIVE = "\n"  # between the globs that one label may match: no label holds one
NOT = "!"  # before a glob that a label may not match
NOT_ITSELF = f"[{NOT}]"  # at the beginning of a glob: the letter
OFFSET = "offset"
LAG = "lag"  # how late something woke up, or what was between two events: no latency of an operation
MEAN = ".mean"
FAILED, OK = OUTCOMES = ("failed", "ok")
OUTCOME = "outcome"  # how an operation ended: a part of the kind, as the layer is, so that no store adds both up
LAYER = "layer"
LAYERS = CLIENT, SERVICE, DEVICE = ("client", "service", "device")  # from the top: whose clock timed an operation


@dataclass(frozen=True, slots=True)
class Series:
    """One stream of measurements. Empty text means that the source does not say.

    `segment` distinguishes streams of one file whose labels are the same (jobs or runs appended to one log).
    """

    run: str = ""
    host: str = ""
    volume: str = ""
    job: str = ""
    op: str = ""
    kind: str = ""
    tag: str = ""
    process: str = ""
    segment: int = 0

    def __lt__(self, other: Series) -> bool:
        return bool(_VALUES(self) < _VALUES(other))

    @property
    def called(self) -> str:
        """Return what it is called in a sentence: its host, else its process, else its job; empty text of one without these."""
        return self.host or self.process or self.job

    def replaced(self, **labels: str | int) -> Series:
        """Return this series with some labels replaced."""
        return Series(**{**dict(zip(_NAMES, _VALUES(self), strict=True)), **labels})


_NAMES = tuple(field.name for field in fields(Series))
_VALUES = attrgetter(*_NAMES)
LABELS = tuple(name for name in _NAMES if name != "segment")

ASKABLE = (*LABELS, LAYER, OUTCOME)  # the labels of a series that questions may name

THREAD = ("host", "volume", "job", "process", "tag")  # what distinguishes the threads of a run, whatever they do

Group = tuple[str, ...]
RunLabels = Mapping[str, Mapping[str, str]]


def label_of(series: Series, name: str, run_labels: RunLabels) -> str:
    """Return the label `name` of a series: one of its own, else one of its run's labels, else empty text."""
    if name in LABELS:
        return str(getattr(series, name))
    if name == LAYER:
        return layer_of(series.kind)
    if name == OUTCOME:
        return outcome_of(series.kind)
    return run_labels.get(series.run, {}).get(name, "")


def group_of(series: Series, by: Iterable[str], run_labels: RunLabels) -> Group:
    """Return the labels of a series that `by` names, in that order: the key of its result row."""
    return tuple(label_of(series, name, run_labels) for name in by)


def run_and_kind(group: Group) -> tuple[str, str]:
    """Return run and kind of a group that begins with both, as groups do until an answer is finished."""
    return group[0], group[1]


def labels_first(group: Group) -> Group:
    """Return a group that begins with run and kind with its labels in front of both: the order of an export."""
    return (*group[2:], *group[:2])


def in_flight_kind(series: Series) -> Series:
    """Return the series of the weights of a series: an I/O counts by share in each window that it was in flight."""
    return series.replaced(kind=f"{series.kind}.{IN_FLIGHT}")


def kinds_made_of(kind: str) -> tuple[str, ...]:
    """Return a kind, and those that are made of its samples: weights in flight, and data corrected for omission."""
    return kind, f"{kind}.{IN_FLIGHT}", f"{kind}.{CORRECTED}", f"{kind}.{CORRECTED}.{IN_FLIGHT}"


def fits(label: str, globs: str) -> bool:
    """Return whether a label matches a glob, or one of several: each is a line of `globs` (`ALTERNATIVE` parts them).

    Of those that begin with `!` (`NOT`) it may match none; where all do, it may be anything else. `[!]` stands for the letter.
    """
    wanted, others = wanted_and_others(globs)
    return bool(not wanted or _any_of(wanted)(label)) and not (others and _any_of(others)(label))


@cache
def wanted_and_others(globs: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the globs of which a label has to match one, and those of which it may match none."""
    each = globs.split(ALTERNATIVE)
    return tuple(glob for glob in each if glob[:1] != NOT), tuple(glob[1:] for glob in each if glob[:1] == NOT)


def _pattern(glob: str) -> str:
    """Return a glob as `fnmatch` takes it."""
    return NOT + glob.removeprefix(NOT_ITSELF) if glob.startswith(NOT_ITSELF) else glob


def is_pattern(globs: str) -> bool:
    """Return whether globs, as `fits` takes them, may match more than one label."""
    return globs[:1] == NOT or any(mark in globs for mark in (*"*?[", ALTERNATIVE))


def as_options(name_of_option: str, where: Mapping[str, str]) -> list[str]:
    """Return globs of labels as options that say them."""
    return [
        f"{name_of_option} {name}{NOT if glob[:1] == NOT else ''}={glob.removeprefix(NOT)}"
        for name, globs in where.items()
        for glob in globs.split(ALTERNATIVE)
    ]


def in_words(globs: str) -> str:
    """Return what globs ask for, for a sentence: `read or write`, `anything but trim`."""
    wanted, others = wanted_and_others(globs)
    return " but ".join(" or ".join(each) for each in (wanted or ("anything",), others) if each)


def run_matches(run: str, globs: Iterable[str]) -> bool:
    """Return whether a run is selected: by a glob on its id, or by the name of the load that it came from."""
    patterns = tuple(globs)
    return not patterns or bool(_any_of(_of_runs(patterns))(run))


@cache
def _of_runs(globs: tuple[str, ...]) -> tuple[str, ...]:
    """Return globs of names of runs, and of what came with the loads of such names: runs are named after folders."""
    return tuple(text for glob in map(as_text, globs) for text in (glob, f"{glob}/*"))


@cache
def _any_of(globs: tuple[str, ...]) -> Callable[[str], object]:
    """Return what says of a label whether a glob matches it: compiled once, as a question asks it of each of many."""
    return re.compile("|".join(translate(_pattern(glob)) for glob in globs)).match


def runs_asked(runs: Iterable[str], globs: Iterable[str], where: Mapping[str, str], run_labels: RunLabels) -> list[str]:
    """Return the runs that a question names: by globs, and of these by what it says of labels of runs where any has them so."""
    patterns = tuple(globs)
    named = list(filter(_any_of(_of_runs(patterns)), runs)) if patterns else list(runs)
    of_runs = {name: glob for name, glob in where.items() if name == "run" or name not in ASKABLE}
    if not of_runs:
        return named

    def is_asked(run: str) -> bool:
        return all(fits(label_of(Series(run=run), name, run_labels), glob) for name, glob in of_runs.items())

    return list(filter(is_asked, named)) or named


def layer_of(kind: str) -> str:
    """Return the layer that a kind was timed at: what stands before its colon, else the client's."""
    layer, colon, _ = kind.partition(":")
    return layer if colon and layer in LAYERS else CLIENT


def in_layer(kind: str, layer: str) -> str:
    """Return a kind as timed at a layer: that of a client is bare, others bear theirs, as in `device:completion`.

    So samples of unlike layers are never added up, as those of unlike kinds are not, in any store.
    """
    return bare_kind(kind) if layer == CLIENT else f"{layer}:{bare_kind(kind)}"


def bare_kind(kind: str) -> str:
    """Return a kind without its layer."""
    return kind if layer_of(kind) == CLIENT else kind.partition(":")[2]


def failed_kind(kind: str) -> str:
    """Return the kind of operations that failed, of those that were timed as `kind`: `service.failed`.

    It is a kind of its own in documents and rollups, as a layer is, so each store keeps both exactly, without a field for it.
    An answer makes of it what is asked for (`finish` in `query/question.py`).
    """
    return f"{kind}.{FAILED}" if kind else FAILED


def succeeded_kind(kind: str) -> str:
    """Return the kind of the operations that did not fail, of this kind or of that of failed ones."""
    return ".".join(part for part in kind.split(".") if part != FAILED) if FAILED in kind else kind


def outcome_of(kind: str) -> str:
    """Return the outcome of the operations of a kind: `failed`, else `ok`, where nobody said that they failed."""
    return FAILED if FAILED in kind and FAILED in kind.split(".") else OK


def mean_kind(kind: str) -> str:
    """Return the kind of means over a time of another kind: counts, means and maxima without a histogram."""
    return f"{kind}{MEAN}"


def is_mean(kind: str) -> bool:
    """Return whether a kind holds means without a histogram."""
    return kind.endswith(MEAN)


PREFERENCES = {"response": 4, "total": 3, "service": 2, "completion": 1}
OF_LAYERS = {SERVICE: -3, DEVICE: -4}
MADE_OF_LAYERS = -5


def kind_preference(kind: str) -> int:
    """Return which kind is taken before others when none is asked for: the highest, and of equals the first by name.

    Corrected and in-flight kinds (-1) are taken only where there is nothing else; offsets (-2) are no latencies. Means without
    a histogram (ten less than the kind that they are of) are below all that has one. What was timed below the client is taken
    only where nothing else was: -3 at a service, -4 at a device, -5 what is made of these. Failed operations (twenty less) are
    taken by themselves where there is nothing else at all.
    """
    if kind == OFFSET:
        return -2
    if outcome_of(kind) == FAILED:
        return kind_preference(succeeded_kind(kind)) - 20
    if is_mean(kind):
        return kind_preference(kind.removesuffix(MEAN)) - 10
    made_of = kind.endswith((IN_FLIGHT, CORRECTED))
    layer = layer_of(kind)
    if layer != CLIENT:
        return MADE_OF_LAYERS if made_of else OF_LAYERS[layer]
    return -1 if made_of else PREFERENCES.get(kind, 0)


def default_kind(kinds: Iterable[str]) -> str:
    """Return the kind that is taken when none is asked for: response, else total, service, completion, else the first."""
    return min(set(kinds), key=lambda kind: (kind == OFFSET, -kind_preference(kind), kind), default="")
