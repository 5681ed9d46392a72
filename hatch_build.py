"""Builds the compiled loops with the package where that can be done; without a compiler the package is whole, too, and slower.

hatchling calls it for every wheel. `CC` and `CFLAGS` of the environment are heeded; `CC=false` builds none.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE, MODULE = "ingest/core/kernel.c", "ingest/core/_kernel.abi3.so"
SHARED = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)
TAG = "cp311-abi3"  # the stable interface: one build for 3.11 and all later versions


def compiled(source: Path, out: Path) -> str:
    """Compile the loops; return why that could not be done, empty text where it was."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    options = ["-O2", "-std=c11", "-fPIC", *SHARED, *shlex.split(os.environ.get("CFLAGS", ""))]
    words = [*compiler, *options, f"-I{sysconfig.get_path('include')}", str(source), "-o", str(out)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603  # the compiler that was asked for
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else f"{shlex.join(words)} ended with {done.returncode}\n{done.stderr}"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # older versions of hatchling take no parameter
    """Adds the loops to a wheel, or puts them into the checkout where that is installed as it lies (`pip install --editable`)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what the wheel is then for."""
        root = Path(self.root)
        in_place = version == "editable"
        if in_place:
            out = root / MODULE
            out.unlink(missing_ok=True)  # what cannot be built anew is of another version
        else:
            self._place = tempfile.TemporaryDirectory()
            out = Path(self._place.name) / Path(MODULE).name
        if why := compiled(root / SOURCE, out):
            self.app.display_warning(f"tailboard is built without compiled loops, NumPy reads logs instead: {why}")
        elif not in_place:
            build_data["force_include"][str(out)] = MODULE
            build_data["pure_python"] = False
            build_data["tag"] = f"{TAG}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
