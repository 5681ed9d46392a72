"""What the lines of a part of an HdrHistogram log leave for those of the next."""

from __future__ import annotations

from collections.abc import Mapping

from ingest.core.dataclass import dataclass
from ingest.core.layout import Layout
from ingest.read.hdr.tallies import Key, Tally
from ingest.read.schedule_seen import Seen


@dataclass(frozen=True, slots=True)
class Tail:
    """What the lines of a part of a log leave for those of the next, by tag and layout, and for the log's facts.

    `plain` says that the start was given once, no tag needed a second segment and no limit of the log was met: parts are
    then read alike, together or alone, if each tag begins in a part no earlier than it ended in those before it. `edges` are the
    end of the first good line in ns, and the start of the last.
    """

    plain: bool
    firsts: Mapping[tuple[bytes, Layout], int]
    ends: Mapping[tuple[bytes, Layout], int]
    bins: int
    trimmed: int
    seen: Seen
    tallies: Mapping[Key, Tally]
    edges: tuple[int | None, int | None] = (None, None)
