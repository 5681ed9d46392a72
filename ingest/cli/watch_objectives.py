"""What `watch` reports of objectives while a run grows: each episode when it has begun, and when it has ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.cli.shared.say import say
from ingest.core.errors import DeliveryError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ingest.core.marks import Mark
    from ingest.objectives.check import Checked
    from ingest.objectives.webhook import Webhook
    from ingest.query.verdicts import Episode
    from ingest.store import Store

SHARE, QUICK_SECONDS = 10, 0.2  # judging all of a long run may take a tenth of the time


class Telling:
    """Called by a watch after each cycle: judges, keeps, and reports on stderr and to a webhook; `end` judges once more.

    What could not be sent to a webhook is sent with the next change. InputError for a file of objectives that is wrong.
    """

    def __init__(self, sla: Path, hook: Webhook | None = None, marks: Sequence[Mark] = ()) -> None:
        from ingest.objectives.check import after
        from ingest.objectives.objectives import read_objectives

        self._judge: Callable[[Store, str], Checked | None] = after(read_objectives(sla, None), self._report, sla, marks)
        self._hook = hook
        self._waiting: list[Episode] = []
        self._complained = False
        self._next: dict[str, float] = {}

    def __call__(self, store: Store, run: str) -> None:
        """Judge a run, unless that would take more than its share of the time."""
        began = time.monotonic()
        if began < self._next.get(run, 0.0):
            return
        self._judge(store, run)
        self._deliver()
        ended = time.monotonic()
        if ended - began > QUICK_SECONDS:
            self._next[run] = ended + SHARE * (ended - began)

    def end(self, store: Store, runs: list[str]) -> None:
        """Judge runs that have settled, say which phases never came; DeliveryError where the webhook did not get everything."""
        for run in runs:
            checked = self._judge(store, run)
            for entry in (entry for entry in checked.unjudged if entry.objective.phases) if checked else ():
                say(f"{entry.objective.name}: not judged in {run}: {entry.reason}")
        if self._hook is not None and self._waiting:
            self._hook.tell(self._waiting)

    def _report(self, episode: Episode) -> None:
        from ingest.objectives.webhook import sentence

        say(f"{sentence(episode)}")
        self._waiting.append(episode)

    def _deliver(self) -> None:
        """Tell the webhook what waits; what it refuses is dropped and said, whom it does not find is said once."""
        if self._hook is None:
            self._waiting.clear()
            return
        while self._waiting:
            try:
                self._hook.tell(self._waiting[:1])
            except RefusedError as error:
                say(error)
            except DeliveryError as error:
                if not self._complained:
                    say(f"{error}; it is tried again")
                self._complained = True
                return
            self._waiting.pop(0)
            self._complained = False
