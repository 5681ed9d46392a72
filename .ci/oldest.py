"""The oldest libraries that pyproject.toml allows, as requirements of pip: what it says it needs is then run.

    python .ci/oldest.py pyproject.toml > requirements.txt

Of the packages that only tests need the newest are taken; where one is also needed by users, the users' minimum counts.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

FOR_USERS = ("fast",)
NAME = re.compile(r"[A-Za-z0-9._-]+")
LOWEST = re.compile(r">=([\d.]+)")


def oldest(pyproject: Path) -> list[str]:
    """Return one requirement for each package; KeyError where a section is missing."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    pinned = {
        _name(wanted): f"{_name(wanted)}=={lowest[1]}"
        for wanted in (*project["dependencies"], *(one for extra in FOR_USERS for one in extras[extra]))
        if (lowest := LOWEST.search(wanted))
    }
    return [*pinned.values(), *(wanted for wanted in extras["dev"] if _name(wanted) not in pinned)]


def _name(requirement: str) -> str:
    return NAME.match(requirement)[0]  # type: ignore[index]  # every requirement begins with a name


if __name__ == "__main__":
    print("\n".join(oldest(Path(sys.argv[1]))))
