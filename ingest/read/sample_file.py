"""What `tailboard record sample` writes: a line for each time that a command was asked, with what it said.

    {"sampled_at":1795330000.004211903,"record":"begin","host":"ceph1","command":"ceph daemon osd.3 ...","every":"10s"}
    {"sampled_at":1795330000.051337120,"record":"poll","host":"ceph1","command":"...","took":0.047125217,"status":0,"said":{...}}
    {"sampled_at":1795330010.031190027,"record":"poll","host":"ceph1","command":"...","took":0.027,"status":1,"error":"..."}
    {"sampled_at":1795330060.2,"record":"missed","host":"ceph1","command":"...","polls":3,"from":...,"to":...,"why":"..."}

`said` is JSON where the command said JSON, else text; the stamp is that of its end. A file that follows one that was renamed
begins with the last answer there, as record `before`: counts since a start are held against it, those of an interval are not
taken twice. Files of several commands and hosts may be put together, in any order: within each the stamps rise.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.coverage import Caveat, Missing, labels_of
from ingest.core.errors import counted
from ingest.core.units import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import SAMPLES
from ingest.read.formats import ROW_LABELS, format_of
from ingest.read.polls import SET_BACK, Poll, Polls, WrongError, end_ns, objects_of
from ingest.read.text import head

START = '{"sampled_at":'
BEGIN, BEFORE, POLL, MISSED, END = "begin", "before", "poll", "missed", "end"
LOST, WIDE = "lost-polls", "wide-polls"
ERROR_SHOWN = 120
LONGEST_START = 256
NO_BINS = np.empty(0, np.int64)
MORE_OFTEN = "see why with the command itself, or give it more time with --timeout"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said at one time, JSON or text."""

    line: int
    at_ns: int
    host: str
    command: str
    said: Any

    @property
    def text(self) -> str:
        """Return what was said where it is text, else empty text."""
        return self.said if isinstance(self.said, str) else ""


@dataclass(slots=True)
class _Gap:
    """Polls in a row that are not there, since the answer before (None: there was none)."""

    polls: int
    after_ns: int | None
    upto_ns: int
    why: str
    answered: bool = False


@dataclass(slots=True)
class _Stream:
    """What one command on one host said: lines and times of answers; when there was none, of how many polls, and why."""

    host: str
    command: str
    answers: list[tuple[int, int]] = field(default_factory=list)
    missed: list[tuple[int, int, str]] = field(default_factory=list)
    newest_ns: int | None = None  # of the file that is read, where several were put together

    def gaps(self) -> Iterator[_Gap]:
        """Yield where polls are missing, whatever the order of the lines."""
        ends = sorted(at_ns for _, at_ns in self.answers)
        gap: _Gap | None = None
        for at_ns, polls, why in sorted(self.missed, key=itemgetter(0)):
            place = bisect_right(ends, at_ns)
            after = ends[place - 1] if place else None
            if gap is None or gap.after_ns != after:
                if gap is not None:
                    yield gap
                gap = _Gap(0, after, at_ns, why)
            gap.polls += polls
            gap.answered = place < len(ends)
            gap.upto_ns = ends[place] if gap.answered else at_ns
        if gap is not None:
            yield gap


class SampleFile:
    """The answers of a file of samples; what it has no answer of is kept until all were read."""

    def __init__(self, path: Path, context: Context) -> None:
        self._path = path
        self._context = context
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._answers: dict[int, _Stream] = {}
        self._before: set[int] = set()
        self._told: list[int] = []  # lines that are rejected, and whose polls are among those missed

    def answers(self) -> Iterator[Answer]:
        """Yield what commands said; lines that are no record are rejected with their reason."""
        for line, entry in objects_of(self._path, self._context):
            try:
                if "sampled_at" not in entry:
                    raise WrongError("a line without the time of its poll")
                at_ns = end_ns(entry["sampled_at"], UNITS_NS["s"])
                record = entry.get("record")
                if record not in (BEGIN, BEFORE, POLL, MISSED, END):
                    raise WrongError("no record of tailboard record sample")
            except WrongError as error:
                self._context.account.reject(str(error), [line])
                continue
            host, command = str(entry.get("host") or ""), str(entry.get("command") or "")
            stream = self._streams.setdefault((host, command), _Stream(host, command))
            if record in (BEGIN, BEFORE):
                stream.newest_ns = None
            if record in (BEFORE, POLL) and "error" not in entry and "said" in entry:
                if stream.newest_ns is not None and at_ns <= stream.newest_ns:
                    self._context.account.reject(SET_BACK, [line])
                    self._told.append(line)
                    stream.missed.append((stream.newest_ns, 1, SET_BACK))
                    continue
                stream.newest_ns = at_ns
                stream.answers.append((line, at_ns))
                self._answers[line] = stream
                if record == BEFORE:
                    self._before.add(line)
                yield Answer(line, at_ns, host, command, entry["said"])
            elif record in (POLL, MISSED):
                polls = entry.get("polls", 1)
                why = str(entry.get("why") or entry.get("error") or "it said nothing")[:ERROR_SHOWN]
                stream.missed.append((at_ns, polls if isinstance(polls, int) and polls > 0 else 1, why))

    def unanswered(self, answer: Answer, why: str) -> None:
        """Take an answer, the newest, as none: it is rejected, and no series is absent from it."""
        self._context.account.reject(why, [answer.line])
        self._told.append(answer.line)
        stream = self._answers.pop(answer.line)
        stream.answers.pop()
        stream.missed.append((answer.at_ns, 1, why[:ERROR_SHOWN]))

    def finish(self, held: Polls) -> None:
        """Add what answers do not say, once all were read: series that they do not name, and what missed polls mean."""
        held.tell(self._told)
        held.leave_out_intervals(self._before)
        for stream in self._streams.values():
            stream.answers.sort(key=itemgetter(1))
        self._absent(held)
        self._keep_missed(total=held.is_total)

    def _absent(self, held: Polls) -> None:
        """Add empty counts where an answer does not name a series of its command that others name: it had counted nothing.

        So a series that comes later begins at the answer before, and one that went away in between was set to zero.
        """
        rejected = set(self._context.account.rejected_lines)
        for polls in held.by_series():
            stream = self._answers.get(polls[0].line)
            by_line = {poll.line: poll for poll in polls}
            if stream is None or any(not by_line.get(line, polls[0]).total for line, _ in stream.answers):
                continue
            if any(line in by_line and by_line[line].end_ns != at_ns for line, at_ns in stream.answers):
                continue  # the answer has times of its own
            places = [place for place, (line, _) in enumerate(stream.answers) if line in by_line]
            layout = by_line[stream.answers[places[0]][0]].layout
            for place in range(max(places[0] - 1, 0), len(stream.answers)):
                line, at_ns = stream.answers[place]
                if line in by_line:
                    layout = by_line[line].layout
                elif line not in rejected:
                    held.add(Poll(line, polls[0].series, None, at_ns, layout, NO_BINS, NO_BINS, total=True))

    def _keep_missed(self, *, total: bool) -> None:
        """Keep in the account what the missed polls of the answers so far mean.

        Counts since a start (`total`) are all in the next answer, over a longer interval; after the last answer nothing shows
        them. Of counts of intervals those in between are missing.
        """
        account, offset = self._context.account, self._context.offset_ns
        wide: list[_Gap] = []
        for stream, gap in ((asked, gap) for asked in self._streams.values() for gap in asked.gaps()):
            if gap.after_ns is None:
                continue
            if total and gap.answered:
                wide.append(gap)
                continue
            base = self._context.series
            labels = labels_of(base.replaced(host=base.host or stream.host), unknown=ROW_LABELS)
            sentence = f"{counted(gap.polls, 'poll')} in a row without an answer ({gap.why}): what was counted then is missing"
            caveat = Caveat(LOST, account.path, sentence, MORE_OFTEN)
            account.lack(Missing(labels, gap.after_ns + offset, gap.upto_ns + offset, None, 0, None, caveat))
        if wide:
            polls = sum(gap.polls for gap in wide)
            longest = max((gap.upto_ns - (gap.after_ns or 0)) / UNITS_NS["s"] for gap in wide)
            sentence = (
                f"{counted(polls, 'poll')} without an answer ({wide[0].why}): the next answer holds their counts, "
                f"in an interval of up to {math.ceil(longest)} s"
            )
            account.caveats.append(Caveat(WIDE, account.path, sentence, MORE_OFTEN))


def is_sample_file(path: Path, upto: int | None = None) -> bool:
    """Return whether a file is one that `tailboard record sample` writes."""
    return re.match(format_of(SAMPLES).head, head(path, LONGEST_START, upto)) is not None


def seconds(stamp_ns: int) -> str:
    """Return a time or duration in ns as the number of seconds that records hold, exactly."""
    return f"{Decimal(stamp_ns) / UNITS_NS['s']:.9f}"
