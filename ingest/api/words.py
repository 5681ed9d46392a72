"""The words of a call, as people write them: what becomes files or a store, how logs are read, and the question to them.

    with answering(Files(paths, read_options(host="ceph-a"))) as origin:
        origin.answer(asked(by="host", where="op=read", step="10s", from_="+30s"))

On the command line a word is a text, and an option that may be repeated has several. In Python it may also be what it means: a
mapping for labels, a list for names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ingest.core.errors import InputError, UsageError, as_text, choices, listed
from ingest.core.labels import ALTERNATIVE, LAYER, NOT, OK, OUTCOME
from ingest.core.units import MOST_NS, UNITS_NS, parse_duration, parse_instant
from ingest.core.values import several
from ingest.query.origin import KNOWN_RUNS, Origin, store_at, store_url

if TYPE_CHECKING:
    from ingest.load.plan import LoadOptions
    from ingest.query.files import Files
    from ingest.query.question import Answer, Question
    from ingest.read.described.description import Description, HistogramDescription
    from ingest.read.sources import ReadOptions

VERSION = r"^(fio-)?\d{1,3}\.\d{1,4}(\.\d{1,4})?(-.*)?$"
FREQUENCY = r"(?i)^(\d{1,12}(?:\.\d{1,9})?(?:e\d{1,2})?) ?(?:([kMG]?)Hz)?$"
HERTZ, FASTEST_HZ = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}, 9 * 10**9

FAILURES = ("slowest", "apart", "ignore")

Texts = str | Iterable[str]
Pairs = Mapping[str, Any] | Texts


class Reading(TypedDict, total=False):
    """How log files are read: the options of that name, in Python with `_` for `-`, are in docs/reference/commands.md."""

    input_format: str | None
    labels: Pairs
    failed: Pairs
    host: str | None
    host_alias: Pairs
    t0: str | None
    host_offset: Pairs
    recorded_unit: str | None
    fio_version: str | None
    digits: int | None
    prefer: str
    keep_idle: bool
    tsc_hz: str | None
    rate: str | float | None
    intended_start_column: str | None
    expected_interval: str | None


class Selecting(TypedDict, total=False):
    """What is asked: which series of which runs (`run`, `where`), from when to when, and how they are grouped (`by`).

    `by` is a list of labels, or a text with commas between them. Each selected run is a group of its own unless `merge_runs` adds
    them up. `step` is a width such as 10s, auto (about 150 windows) or all (one).
    `from_` and `to` are times as people write them: `21:00:30`, `+90s` after the start of the run, ISO 8601, `steady`.
    `failures` is slowest, apart or ignore; `attribution` completion or in-flight.
    """

    run: Texts
    where: Pairs
    by: Texts
    step: str
    from_: str | None
    to: str | None
    failures: str
    merge_runs: bool
    force: bool
    attribution: str


# Sources.


def paths_of(words: Iterable[str]) -> list[Path]:
    """Return the files and folders that words name; of a pattern that no shell has replaced, those that it matches."""
    paths: list[Path] = []
    for word in words:
        if any(mark in word for mark in "*?[") and not os.path.lexists(word):
            from glob import glob

            matching = sorted(glob(word))  # noqa: PTH207  # patterns may be absolute
            if not matching:
                raise InputError("no file or folder matches", word)
            paths += map(Path, matching)
        else:
            paths.append(Path(word))
    return paths


def split_sources(sources: Iterable[str | Path]) -> tuple[str, list[Path]]:
    """Return the URL of the store, empty without one, and the paths among sources; without any the default store."""
    stores, paths = [], list[Path]()
    for source in sources or (store_url(None),):
        if isinstance(source, Path):
            paths.append(source)
        elif url := store_at(source):
            stores.append(url)
        elif source.replace(".", "", 1).isdecimal() and not os.path.lexists(source):
            raise UsageError(f"{source}: no such file or folder; a list is one word, as in -p 50,{source}")
        else:
            paths += paths_of((source,))
    if stores and paths:
        first = next((path for path in paths if not os.path.lexists(path)), None)
        if first is not None:
            raise UsageError(f"{first}: no such file or folder; runs of a store are named by --run {first}")
        raise UsageError("ask a store or files, not both at once")
    if len(stores) > 1:
        raise UsageError("ask one store at a time")
    return "".join(stores), paths


@contextmanager
def answering(source: str | Files) -> Iterator[Origin]:
    """Give the store of a URL, or files, to be asked: what matches nothing inside is said with what there is instead."""
    if not isinstance(source, str):
        with saying_why([source]):
            yield source
        return
    from ingest.store import open_store

    with open_store(source) as store, knowing_runs(store), saying_why([store]):
        yield store


def knowing_runs(store: Origin) -> AbstractContextManager[None]:
    """Return the context of a command: what runs are is read once in it, where reading it costs requests."""
    known = store.offers.get(KNOWN_RUNS)
    return nullcontext() if known is None else known()


@contextmanager
def saying_why(origins: Iterable[Origin]) -> Iterator[None]:
    """Where a question inside matches nothing, say which of its words has no data, and what there is instead."""
    from ingest.query.question import NothingMatchesError

    try:
        yield
    except NothingMatchesError as error:
        from ingest.query.question import explained

        raise explained(error, origins) from None


# Pairs and shares.


def share(text: str) -> float:
    """Return the share that a text such as 10% or 0.1 says; NaN, which is in no range, where it says none."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except (AttributeError, ValueError):
        return float("nan")


def pairs(given: Pairs, name_of_option: str) -> dict[str, str]:
    """Return the pairs of K=V texts, or of a mapping; UsageError if one has no `=`, or a name has two values."""
    if isinstance(given, Mapping):
        return {str(name): str(value) for name, value in given.items()}
    values: dict[str, str] = {}
    for text in map(as_text, several(given, str, name_of_option, "NAME=VALUE")):
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise UsageError(f"{name_of_option} takes NAME=VALUE, not {text!r}")
        if values.setdefault(name, value) != value:
            raise UsageError(f"{name_of_option} says two things of {name}, {values[name]} and {value}: leave one out")
    return values


def globs(given: Pairs, name_of_option: str) -> Mapping[str, Any]:
    """Return the globs of K=GLOB and K!=GLOB texts, those of one label together (`fits`), or a mapping as it is."""
    if isinstance(given, Mapping):
        return given
    found: dict[str, list[str]] = {}
    for text in dict.fromkeys(several(given, str, name_of_option, "LABEL=VALUE")):
        if text and ("=" not in text or text.startswith("!=")):
            raise UsageError(f"{name_of_option} takes LABEL=VALUE, as in {name_of_option} host={text.removeprefix('!=')}")
        for name, glob in pairs((text,), name_of_option).items():
            excluded = name.endswith(NOT)
            found.setdefault(name.removesuffix(NOT), []).append(NOT + glob if excluded else glob)
    return {name: ALTERNATIVE.join(several) for name, several in found.items()}


# The question.


def parse_step(text: str) -> int | str:
    """Return the step: ns, or the words auto and all."""
    return text if text in ("auto", "all") else parse_duration(text)


def asked(**said: Unpack[Selecting]) -> Question:
    """Return the question that words ask; UsageError for what cannot be."""
    from ingest.query.question import ATTRIBUTIONS, AUTO, Question, start_of_range

    failures, by, end = said.get("failures", FAILURES[0]), said.get("by", ()), said.get("to")
    if failures not in FAILURES:
        raise UsageError(f"failures takes {listed(FAILURES)}, not {failures!r}")
    if isinstance(by, str):
        by = tuple(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    question = Question(
        runs=said.get("run", ()),  # type: ignore[arg-type]  # one text is taken for one run
        where=globs(said.get("where", ()), "--where"),
        by=by,  # type: ignore[arg-type]  # what it may not be is refused there
        step=parse_step(said.get("step", AUTO)),
        begin=start_of_range(said.get("from_") or None),
        end=parse_instant(end) if end else None,
        merge_runs=said.get("merge_runs", False),
        force=said.get("force", False),
        attribution=said.get("attribution", ATTRIBUTIONS[0]),
    )
    if failures == "apart" and OUTCOME not in question.by:
        return replace(question, by=(*question.by, OUTCOME))
    return replace(question, where={**question.where, OUTCOME: OK}) if failures == "ignore" else question


def in_columns(question: Question, form: str = "csv") -> Question:
    """Return the question for rows whose columns follow from its words: a pattern of kinds is a column of one kind, too.

    So is one of outcomes.

    As it is for other forms than csv and ndjson, which have no columns.
    """
    from ingest.core.labels import is_pattern

    if form not in ("csv", "ndjson"):
        return question
    named = [name for name in ("kind", OUTCOME) if is_pattern(question.where.get(name, "")) and name not in question.by]
    return replace(question, by=(*named, *question.by)) if named else question


def in_range(answer: Answer, question: Question) -> Answer:
    """Return the answer; UsageError where it was asked for by times of the clock, and no run in it has one."""
    from ingest.query.question import ABSOLUTE, is_absolute

    if answer.relative and is_absolute(question):
        raise UsageError(ABSOLUTE)
    return answer


def one_axis(answer: Answer) -> None:
    """Raise UsageError for an answer that has no axis of time: some of its runs have no clock."""
    if answer.undated:
        raise UsageError(f"{listed(sorted(answer.undated))}: no start time, so no axis with the other runs; choose with --run")


# How logs are read.


def read_options(run: str = "", *, loads: bool = False, **said: Unpack[Reading]) -> ReadOptions:
    """Return how files are read, as words say; `run` is the name of what they belong to, empty as they say themselves.

    `loads`: labels of the call may be those of the run, which are not for reading. UsageError for what cannot be.
    """
    from ingest.read.placement import layer_named
    from ingest.read.sources import PREFER_HIST, RATE_TEXT, ReadOptions

    file_format, description = _format(str(name)) if (name := said.get("input_format")) else ("", None)
    version, rate, unit = str(said.get("fio_version") or ""), str(said.get("rate") or ""), said.get("recorded_unit")
    if version and not re.match(VERSION, version):
        raise UsageError(f"--fio-version takes what fio --version says, such as 3.33, not {version!r}")
    if rate and not re.fullmatch(RATE_TEXT, rate):
        raise UsageError(f"--rate takes requests a second, such as 1000, not {rate!r}")
    offsets = {}
    for name, text in pairs(said.get("host_offset", ()), "--host-offset").items():
        try:
            offsets[name] = round(float(text) * UNITS_NS["ms"])
        except (ValueError, OverflowError):
            offsets[name] = MOST_NS
        if abs(offsets[name]) >= MOST_NS:
            raise UsageError(f"--host-offset takes HOST=MS, not {name}={text}")
    labels = pairs(said.get("labels", ()), "--label")
    if not loads and (others := sorted(labels.keys() - {LAYER})):
        raise UsageError(f"--label of files that are not loaded takes layer=..., not {others[0]}: a load keeps labels of runs")
    return ReadOptions(
        run=as_text(run),
        input_format=file_format,
        host=as_text(said.get("host") or ""),
        host_alias=pairs(said.get("host_alias", ()), "--host-alias"),
        host_offset_ns=offsets,
        t0=time_zero(said.get("t0")),
        recorded_unit_ns=(UNITS_NS.get(unit) or parse_duration(unit)) if unit else None,
        expected_interval_ns=parse_duration(interval) if (interval := said.get("expected_interval")) else 0,
        rate=rate,
        intended_column=said.get("intended_start_column") or "",
        digits=said.get("digits") or 0,
        prefer=said.get("prefer", PREFER_HIST),
        keep_idle=said.get("keep_idle", False),
        fio_version=tuple(int(part) for part in re.findall(r"\d+", version)[:3]) if version else None,
        description=description,
        layer=layer_named(labels[LAYER]) if LAYER in labels else "",
        tsc_hz=frequency(said.get("tsc_hz")),
        failed=globs(said.get("failed", ()), "--failed"),
    )


def load_options(
    run: str,
    reading: Reading,
    what: str = "a load",
    *,
    step: str | None = None,
    force: bool = False,
    attribution: str = "completion",
    replace: bool = False,
    offsets: bool = True,
    jobs: int | None = None,
) -> LoadOptions:
    """Return how files are loaded as a run; `what` is called so in errors. The labels of `reading` are also those of the run."""
    from ingest.load.plan import LoadOptions

    if not run.strip() or any(mark in run for mark in "*?[\n"):
        raise UsageError("--run takes a plain name, without * ? [")
    width = parse_step(step) if step else None
    if isinstance(width, str):
        raise UsageError(f"--step of {what} is a width such as 1s")
    labels = pairs(reading.get("labels", ()), "--label")
    labels.pop(LAYER, None)  # of the files, not of the run
    return LoadOptions(
        read=read_options(run, loads=True, **reading),
        step_ns=width,
        force=force,
        attribution=attribution,
        labels=labels,
        replace=replace,
        offsets=offsets,
        jobs=jobs,
    )


A_TABLE = "tables of tools are known by their beginning (leave it out), others by a few lines of YAML (docs/reference/formats.md)"
MEANT = {
    **dict.fromkeys(("csv", "tsv", "json", "jsonl", "ndjson", "text"), A_TABLE),
    "jtl": "do you mean jmeter?",
    "fio": "do you mean fio-hist, fio-raw or fio-json?",
    "k6": "do you mean k6-csv or k6-json?",
    "hdr": "do you mean hdr-log?",
}


def _format(text: str) -> tuple[str, Description | HistogramDescription | None]:
    """Return the format that --input-format names, or what describes one; UsageError where it is neither."""
    from ingest.read.described.description import description_of, is_described, presets
    from ingest.read.formats import format_of, names

    if is_described(text):
        return "", description_of(text)
    if text in names() and (path := format_of(text).description):
        return "", description_of(path)
    if text not in names():
        if text in MEANT:
            raise UsageError(f"no input format {text!r}: {MEANT[text]}")
        known = [*names(), *presets()]
        choice = f"{choices(text, known, most=len(known))}, or a file that describes one (events.yml)"
        raise UsageError(f"no input format {text!r}: {choice}")
    return text, None


def time_zero(text: str | None) -> Any:
    """Return what --t0 says, for `ReadOptions`: ns, the word mtime, or None."""
    return text if text in (None, "mtime") else parse_instant(str(text), early=True).ns


def frequency(text: str | None) -> int:
    """Return a frequency in Hz, 0 without one; UsageError unless it is one of a counter that runs at 1 MHz to 9 GHz."""
    if not text:
        return 0
    match = re.match(FREQUENCY, text)
    hz = round(float(match[1]) * HERTZ[(match[2] or "").lower()]) if match else 0
    if not HERTZ["m"] <= hz <= FASTEST_HZ:
        raise UsageError(f"--tsc-hz takes a frequency from 1 MHz to 9 GHz, such as 2.6e9 or 2600MHz, not {text!r}")
    return hz
