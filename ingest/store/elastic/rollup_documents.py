"""Merged windows -> the bulk lines of rollups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int, Intervals
from ingest.core.series import Series, kind_preference
from ingest.query.missing import Lack
from ingest.store.elastic.encoding import MS, geometry, histogram_texts, labels_document
from ingest.store.elastic.names import Names, digest, window_ids
from ingest.store.elastic.record_documents import searchable
from ingest.store.lacking import complete_rollups
from ingest.store.live import Marks
from ingest.store.records import RunRecord, overview_step
from ingest.store.rollups import RollupKey, rollup_values

VERSION_BITS = 48
EXACT = 1 << VERSION_BITS - 1  # counts below it are distinguished one by one


@dataclass(frozen=True, slots=True)
class RollupDocuments:
    """Makes the documents of one run's rollups; `marks` say which windows are final, `missing` what the run lacks.

    `missing` None is for a server that was set up before rollups said whether they are complete.
    """

    run: RunRecord
    names: Names
    marks: Marks
    missing: tuple[Lack, ...] | None = ()

    def lines(self, windows: Intervals[RollupKey], step_ns: int, generation: int) -> Iterator[bytes]:
        """Yield the bulk lines of merged windows."""
        values = rollup_values(windows)
        names = list(values)
        numbers = zip(*values.values(), strict=True)
        texts = zip(*histogram_texts(windows), strict=True) if windows.layout.has_bins else [None] * len(windows)
        keys = windows.table
        prefixes = [digest([self.run.run, *key, step_ns]) for key in keys]
        ids = window_ids(prefixes, windows.series, windows.start_ns, step_ns)
        counts = (windows.samples if windows.completions is None else windows.completions).tolist()
        versions = versions_of(generation, windows.samples).tolist()
        layout = geometry(windows.layout)
        codes, starts, ends = windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist()
        indices = self.names.of("rollups", windows.start_ns)
        whole = self._complete(windows, step_ns)
        for index, id_, version, code, start, end, count, row, histogram_of, complete in zip(
            indices, ids, versions, codes, starts, ends, counts, numbers, texts, whole, strict=True
        ):
            known = {name: value for name, value in zip(names, row, strict=True) if value is not None}
            latency = {**layout, "count": count, **known, "exact": bool(known["exact"])}
            head = self.head(keys[code], (start, end), step_ns, generation, complete=complete)
            if histogram_of is None:
                yield action(index, id_, version) + orjson.dumps({**head, "latency": latency}) + b"\n"
                continue
            values_of, counts_of = map(orjson.Fragment, histogram_of)
            histogram = {"values": values_of, "counts": counts_of}
            if windows.completions is None:
                body = {**head, "latency": {**latency, "histogram": histogram}}
            else:
                body = {**head, "latency": latency, "in_flight": {"histogram": histogram}}
            yield action(index, id_, version) + orjson.dumps(body) + b"\n"

    def _complete(self, windows: Intervals[RollupKey], step_ns: int) -> list[bool | None]:
        if not self.missing:
            return [None if self.missing is None else True] * len(windows)
        return [bool(flag) for flag in complete_rollups(windows, step_ns, self.missing)]

    def head(
        self, key: RollupKey, span: tuple[int, int], step_ns: int, generation: int, *, complete: bool | None = None
    ) -> dict[str, Any]:
        """Return the fields of a rollup beside its latencies; without `complete` where that is None."""
        start, end = span
        return {
            "@timestamp": start // MS,
            **labels_document(Series(run=self.run.run, host=key.host, op=key.op, kind=key.kind)),
            "kind_preference": kind_preference(key.kind),
            "rollup": {
                "scope": key.scope,
                "step_ms": step_ns // MS,
                "stored": step_ns == self.run.step_ns,
                "overview": step_ns == overview_step(self.run.step_ns),
                **({} if complete is None else {"complete": complete}),
            },
            "interval": {"end_ns": end},
            "final": end <= self.marks.of(key.host),
            "generation": generation,
            **({"labels": searchable(self.run.labels)} if self.run.labels else {}),
        }


def versions_of(generation: int, samples: Int) -> Int:
    """Return the versions of rollups: rising with the generation, and within one with their counts.

    Counts from 2^47 on are distinguished in steps of 2^16: however large, they stay below the next generation.
    """
    return (generation << VERSION_BITS) + np.where(samples < EXACT, samples, EXACT + (samples - EXACT >> 16))


def action(index: str, id_: str, version: int) -> bytes:
    """Return the action line of a rollup: its version must not be below the stored one."""
    line = b'{"index":{"_index":"%b","_id":"%b","version":%d,"version_type":"external_gte"}}\n'
    return line % (index.encode(), id_.encode(), version)
