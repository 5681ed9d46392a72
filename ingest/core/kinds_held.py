"""What jobs of a run lack of each other: latencies of a kind that some have as histograms, and others do not.

    h1    completion, total        an answer about the run takes one kind, by default total
    h2    completion               so it is about h1 alone: h2 is missing from it

Which jobs there are is known once all files are found; a store learns it load by load. So a source tells the kinds of its job in
its account, and this one rule is asked of all that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ingest.core.caveats import Caveat
from ingest.core.missing import Missing
from ingest.core.series import MEAN, default_kind, is_mean
from ingest.core.values import Value

MEANS_ALONE, NOT_IN_NUMBERS = "means-alone", "means alone without a histogram, not in numbers from histograms"
BY_KIND = "--by kind shows them, too"
OTHER_KIND = "other-kind"
JOB = ("host", "volume", "job")
PLAIN_NAMES = ("name", "from_ns", "to_ns")
KINDS = "kinds"  # of the account of a stored source


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KindsHeld(Value):
    """The kinds of latency that a source has of its job; those of means as such where nothing holds their histogram.

    `name` is what the job is called in a sentence, `labels` are its own, without a kind. It ran in (from, to], None if unknown.
    """

    labels: Mapping[str, str]
    kinds: tuple[str, ...]
    name: str
    from_ns: int | None
    to_ns: int | None

    def told(self) -> dict[str, Any]:
        """Return the entry as plain values, as `of` takes them; the run is left out, as it is that of the source."""
        labels = {name: value for name, value in self.labels.items() if name != "run"}
        return {"labels": labels, "kinds": list(self.kinds), **{name: getattr(self, name) for name in PLAIN_NAMES}}

    @staticmethod
    def of(run: str, stored: Mapping[str, Any]) -> KindsHeld:
        """Return the entry of a run's source that `told` gave."""
        plain = {name: stored.get(name) for name in PLAIN_NAMES}
        return KindsHeld({**stored["labels"], "run": run}, tuple(stored["kinds"]), **plain)  # type: ignore[arg-type]


def without_kind(held: Iterable[KindsHeld]) -> list[Missing]:
    """Return the samples of jobs that have no histogram of the kind which answers about their run take, while others have.

    That kind is the run's default; of means alone, which are no histogram, it is also the kind that they are means of.
    """
    runs: dict[str, dict[tuple[str, ...], list[KindsHeld]]] = {}
    for entry in held:
        job = tuple(entry.labels.get(name, "") for name in JOB)
        runs.setdefault(entry.labels["run"], {}).setdefault(job, []).append(entry)
    missing = []
    for _, jobs in sorted(runs.items()):
        binned = {job: {kind for entry in own for kind in entry.kinds if not is_mean(kind)} for job, own in jobs.items()}
        there = set().union(*binned.values())
        usual = default_kind(there)
        for job, own in sorted(jobs.items()):
            in_any_form = {kind.removesuffix(MEAN) for entry in own for kind in entry.kinds}
            lacking = sorted((in_any_form | {usual}) & there - binned[job])
            missing += [_lacks(own, kind, in_any_form) for kind in lacking]
    return missing


def _lacks(own: Iterable[KindsHeld], kind: str, in_any_form: set[str]) -> Missing:
    """Return the samples of a job that nothing holds as histograms of a kind, by what its sources tell."""
    first, *others = sorted(own, key=lambda entry: (entry.name, sorted(entry.labels.items())))
    caveat = Caveat(MEANS_ALONE, first.name, NOT_IN_NUMBERS, BY_KIND)
    if kind not in in_any_form:
        sentence = f"{kind} latency is not logged, so numbers of {kind} latency leave it out"
        caveat = Caveat(OTHER_KIND, first.name, sentence, f"ask for what it has, as in --where kind={default_kind(in_any_form)}")
    begins, ends = ([getattr(entry, edge) for entry in (first, *others)] for edge in ("from_ns", "to_ns"))
    begin, end = (None, None) if None in (*begins, *ends) else (min(begins), max(ends))
    return Missing({**first.labels, "kind": kind}, begin, end, None, 0, None, caveat)
