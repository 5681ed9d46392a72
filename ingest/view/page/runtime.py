"""The script that draws: Vega with its expression interpreter, as vl-convert-python makes it, and kept for the next page.

Making it takes over a second of each command that writes a page, and it is the same for each version of vl-convert-python. It is
kept in the user's cache folder, `$XDG_CACHE_HOME/tailboard` or `~/.cache/tailboard`, which may be deleted at any time. A file
there is believed only if it is the user's own, nobody else may write it, and it is whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from ingest.core.errors import UsageError

SNIPPET = "window.vegaEmbed = vegaEmbed;"
OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
PRIVATE = 0o700


@lru_cache(maxsize=1)
def runtime() -> str:
    """Return the script that sets `vegaEmbed`: Vega with its expression interpreter, and tooltips.

    UsageError where vl-convert-python is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise UsageError("a page needs vl-convert-python: pip install 'tailboard[report]'") from None
    path = _place(f"vega-{version('vl-convert-python')}-{hashlib.sha256(SNIPPET.encode()).hexdigest()[:8]}.js")
    kept = _kept(path) if path else ""
    bundle: str = kept or vl_convert.javascript_bundle(SNIPPET)
    if path and not kept:
        _keep(path, bundle)
    return re.sub(r"<(?=/script|!--)", r"<\\", bundle, flags=re.IGNORECASE)


def _place(name: str) -> Path | None:
    """Return where a file is kept; None for a user without a home."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):
        return (Path(folder) if folder.startswith(os.sep) else Path.home() / ".cache") / "tailboard" / name
    return None


def _kept(path: Path) -> str:
    """Return the script of a file that may be believed; empty text otherwise."""
    try:
        with path.open("rb") as file:
            for about in (os.fstat(file.fileno()), path.parent.stat()):
                if about.st_uid != os.geteuid() or about.st_mode & OF_OTHERS:
                    return ""
            digest, _, script = file.read().partition(b"\n")
    except OSError:
        return ""
    return script.decode() if digest == _first_line(script) else ""


def _keep(path: Path, script: str) -> None:
    """Write the file whole or not at all; a folder that takes none is no fault of the command's."""
    content = script.encode()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(_first_line(content) + b"\n" + content)
            unfinished.chmod(stat.S_IRUSR | stat.S_IWUSR)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def _first_line(script: bytes) -> bytes:
    return b"// sha256 " + hashlib.sha256(script).hexdigest().encode()
