"""Merged windows -> the bulk lines of rollups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import orjson

from ingest.core.intervals import Int, Intervals
from ingest.core.series import Series, kind_preference
from ingest.query.missing import Lack
from ingest.store.elastic.encoding import MS, geometry, histogram_texts, inner, labels_document
from ingest.store.elastic.names import Names, digest, window_ids
from ingest.store.elastic.record_documents import searchable
from ingest.store.lacking import complete_rollups
from ingest.store.live import Marks
from ingest.store.records import RunRecord, overview_step
from ingest.store.rollups import RollupKey, rollup_values

VERSION_BITS = 48
COMPLETE_TEXTS = {None: b"", True: b',"complete":true', False: b',"complete":false'}
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

    def lines(self, windows: Intervals[RollupKey], step_ns: int, generation: int) -> Iterator[Sequence[bytes]]:
        """Yield the bulk lines of merged windows, each document in pieces."""
        values = rollup_values(windows)
        names = list(values)
        numbers = zip(*values.values(), strict=True)
        texts = histogram_texts(windows) if windows.layout.has_bins else repeat(b"", len(windows))
        keys = windows.table
        prefixes = [digest([self.run.run, *key, step_ns]) for key in keys]
        ids = window_ids(prefixes, windows.series, windows.start_ns, step_ns)
        counts = (windows.samples if windows.completions is None else windows.completions).tolist()
        versions = versions_of(generation, windows.samples).tolist()
        layout = geometry(windows.layout)
        codes, starts, ends = windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist()
        indices = self.names.of("rollups", windows.start_ns)
        whole: list[bool | None] = [None if self.missing is None else True] * len(windows)
        if self.missing:
            whole = [bool(flag) for flag in complete_rollups(windows, step_ns, self.missing)]
        heads = [self._of_key(key, step_ns, generation) for key in keys]
        finals = [self.marks.of(key.host) for key in keys]
        field = b"" if not windows.layout.has_bins else b',"histogram":'
        if windows.completions is not None and field:
            field = b'},"in_flight":{"histogram":'
        for index, id_, version, code, start, end, count, row, histogram, complete in zip(
            indices, ids, versions, codes, starts, ends, counts, numbers, texts, whole, strict=True
        ):
            known = {name: value for name, value in zip(names, row, strict=True) if value is not None}
            latency = orjson.dumps({**layout, "count": count, **known, "exact": bool(known["exact"])})
            of_key, rollup, generations = heads[code]
            head = b'{"@timestamp":%d,%b,"rollup":{%b%b},"interval":{"end_ns":%d},"final":%b,%b,"latency":' % (
                start // MS,
                of_key,
                rollup,
                COMPLETE_TEXTS[complete],
                end,
                b"true" if end <= finals[code] else b"false",
                generations,
            )
            yield action(index, id_, version), head, latency[:-1], field, histogram, b"}}\n"

    def _of_key(self, key: RollupKey, step_ns: int, generation: int) -> tuple[bytes, bytes, bytes]:
        """Return what all rollups of a key and step have alike, as JSON: its labels, what sort of rollup it is, and the rest."""
        head = self.head(key, (0, 0), step_ns, generation)
        own, common = {"@timestamp", "rollup", "interval", "final"}, {"generation", "labels"}
        labels = {name: value for name, value in head.items() if name not in own | common}
        rest = {name: value for name, value in head.items() if name in common}
        return inner(labels), inner(head["rollup"]), inner(rest)

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
