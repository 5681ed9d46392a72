"""What log files offer beyond the protocol of an origin; the code of each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ingest.query.origin import BREATHS, INTERVAL_LOG, LOGS, OFFSET_TICKS, OFFSETS, PERCENTILES, WEIGHED, WHOLE_RUNS, Offers

if TYPE_CHECKING:
    from ingest.core.breaths import Kept
    from ingest.query.files import Files
    from ingest.query.interval_log import IntervalLog
    from ingest.query.offsets.counts import Wanted
    from ingest.query.offsets.map import OffsetMap
    from ingest.query.offsets.overview import OffsetOverview
    from ingest.query.question import Question


def offers_of(files: Files) -> Offers:
    """Return what log files offer: they can be read again in any other way."""
    logs = _Reading(files)
    offers = Offers().add(LOGS, files).add(WEIGHED, files.weighed).add(PERCENTILES, files.percentiles)
    offers = offers.add(WHOLE_RUNS, files.whole_runs)
    offers = offers.add(INTERVAL_LOG, logs.interval_log).add(OFFSETS, logs.offsets).add(OFFSET_TICKS, logs.offset_ticks)
    return offers.add(BREATHS, logs.breaths)


class _Reading:
    def __init__(self, files: Files) -> None:
        self._files = files

    def interval_log(self, question: Question) -> IntervalLog:
        from ingest.query.interval_log import from_files

        return from_files(self._files, question)

    def offsets(self, wanted: Wanted) -> OffsetMap:
        from ingest.query.offsets.of_files import from_files

        return from_files(self._files, wanted)

    def offset_ticks(self, names: Mapping[str, str], wanted: Wanted, *, full: bool) -> list[OffsetOverview]:
        from ingest.query.offsets.overview import of_files

        return of_files(self._files, names, wanted, full=full)

    def breaths(self, question: Question) -> Kept:
        from ingest.query.breath_sources import from_files

        return from_files(self._files, question)
