"""Archives: what the folders of a tool mean. One module a layout, each a grammar: folder names -> run, host, settings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ingest.core.coverage import Caveat
from ingest.read.archives import cbt, pbench
from ingest.read.sources import Place


class Archives:
    """The places of folders. Each folder is looked at once; folders of no known archive have none."""

    def __init__(self) -> None:
        self._cbt = cbt.Settings()
        self.place_of = cache(self._place_of)

    def unreadable(self) -> Iterator[Caveat]:
        """Yield the settings of archives that could not be read: hosts and labels of their runs rest on names alone."""
        for file, reason in sorted(self._cbt.unreadable.items()):
            yield Caveat("settings-unread", str(file), f"{reason}: hosts and labels come only from the names of folders")

    def _place_of(self, folder: Path) -> Place | None:
        """Return where the files of an absolute folder belong, None where no archive's grammar fits."""
        return cbt.place_of(folder, self._cbt) or pbench.place_of(folder)


__all__ = ["Archives"]
