"""Rollups of a load that writes what nobody else has written: made from memory, and only what others have is read.

    others  none: this load alone has sources in the run    -> nothing is read
            all complete, and of other hosts                -> their rollups of hosts, for the cluster and the whole run
            any other                                       -> their documents of this load's hosts, then all as `rollups.py`

The first two hold only if nobody joins the run before all is written: whoever calls this finds out afterwards, by writing the
record of the run under the guard of the load's beginning, and has the rest made as `rollups.py` does where somebody has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ingest.core.intervals import Intervals, Sum, merged
from ingest.store.elastic.encoding import MS
from ingest.store.elastic.filters import HOLDS_SAMPLES, LATENCIES, at_step, one_of, rollups_of, slab_filter
from ingest.store.elastic.gathered import FOREVER, Gathered, joined
from ingest.store.elastic.reading import edges
from ingest.store.elastic.rollups import Layouts, RollupWriter, known_layouts
from ingest.store.records import HOST
from ingest.store.rollups import RollupKey, cluster_group, host_group, merged_in, without_time


class OwnRollups:
    """Makes the rollups of one load from the windows that it has gathered; `others` are sources of the run that are not its."""

    def __init__(self, writer: RollupWriter, gathered: Gathered, layouts: Layouts) -> None:
        self._writer = writer
        self._gathered = gathered
        self._layouts = layouts
        self._slabs = writer.touched.slabs(writer.slab_ns)
        self._read = 0

    def write_alone(self, generation: int, *, others: bool) -> None:
        """Write all rollups from memory, with those of hosts that complete `others` have left."""
        writer, whole = self._writer, Sum[RollupKey]()
        low, high = FOREVER, -FOREVER
        hosts: list[Intervals[RollupKey]] = []
        for part in merged_in(self._gathered.parts(), _itself, known_layouts(self._layouts, self._gathered.parts(), _itself)):
            windows = merged([part])
            hosts.append(windows)
            low, high = min(low, int(windows.start_ns.min())), max(high, int(windows.end_ns.max()))
            widest = writer.write_windows(windows, generation)
            self._add_whole(whole, [widest])
        theirs: list[Intervals[RollupKey]] = []
        if others:
            query = [*rollups_of(writer.run.run, HOST, writer.run.step_ns), slab_filter(self._slabs, writer.slab_ns)]
            theirs = [part for parts in self._of_others(query, writer.run.step_ns) for part in parts]
        every = [*hosts, *theirs]
        for part in merged_in(every, cluster_group, known_layouts(self._layouts, every, cluster_group)):
            writer.write_windows(merged([part]), generation)
        if others:
            for parts in self._of_others(rollups_of(writer.run.run, HOST, writer.widest_ns), writer.widest_ns):
                self._add_whole(whole, list(merged_in(parts, _itself, known_layouts(self._layouts, parts, _itself))))
            filled = [*rollups_of(writer.run.run, HOST, writer.run.step_ns), HOLDS_SAMPLES, self._not_mine()]
            if found := edges(writer.connection, writer.names.all("rollups"), {"bool": {"filter": filled}}):
                low, high = min(low, found[0] * MS), max(high, found[1] * MS + writer.run.step_ns)
        writer.write_whole(whole, (low, high), generation)
        if others:
            writer.drop_strays(low)

    def write_hosts(self, generation: int, mine: Sequence[str]) -> None:
        """Write the rollups of hosts from memory and from the documents that other sources than `mine` have of these hosts."""
        writer = self._writer
        query: list[dict[str, Any]] = [
            {"term": {"run.id": writer.run.run}},
            at_step(writer.run.step_ns),
            LATENCIES,
            one_of("host.name", writer.touched.hosts),
            slab_filter(self._slabs, writer.slab_ns),
            {"bool": {"must_not": [{"terms": {"source.id": list(mine)}}]}},
        ]
        theirs = writer.slabs(writer.names.all("intervals"), query, writer.run.step_ns)
        for parts in joined(self._gathered.parts(), theirs, writer.slab_ns):
            for part in merged_in(parts, _itself, known_layouts(self._layouts, parts, _itself)):
                writer.write_windows(merged([part]), generation)

    def _add_whole(self, whole: Sum[RollupKey], windows: Sequence[Intervals[RollupKey]]) -> None:
        for rows in (*windows, *merged_in(windows, cluster_group, known_layouts(self._layouts, windows, cluster_group))):
            whole.add(without_time(rows))

    def _of_others(self, query: Sequence[dict[str, Any]], step_ns: int) -> Iterator[list[Intervals[RollupKey]]]:
        """Yield rollups of hosts that this load has nothing of, slab by slab."""
        for parts in self._writer.slabs(self._writer.names.all("rollups"), [*query, self._not_mine()], step_ns):
            yield [part.relabelled(host_group) for part in parts]

    def _not_mine(self) -> dict[str, Any]:
        """Return the query for rollups of hosts that this load has nothing of."""
        return {"bool": {"must_not": [one_of("host.name", self._writer.touched.hosts)]}}


def _itself(key: RollupKey) -> RollupKey:
    return key
