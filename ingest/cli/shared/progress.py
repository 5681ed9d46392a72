"""Progress bars on stderr, on a terminal only."""

from __future__ import annotations

import sys
from typing import Any, Self


class Progress:
    """A bar that moves on for each finished item; nothing at all where stderr is no terminal."""

    def __init__(self, what: str, total: int = 0) -> None:
        """Prepare a bar; it shows once it is entered."""
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(what, total=total or None)

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Show `done` of `total`, with a word on how fast; the bar itself shows the time that is left."""
        if self._bar is not None:
            description = {"description": note} if note else {}
            self._bar.update(self._task, completed=done, total=total, **description)
