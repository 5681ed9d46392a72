"""Everything that commands and their forked readers import when it is needed: imported once, each fork has it for nothing.

Importing pyarrow's functions takes longer than most tests, and each process that read raw logs did it for itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import suppress

import ingest

for module in pkgutil.walk_packages(ingest.__path__, "ingest."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in ("compute", "csv", "json"):
    with suppress(ImportError):  # as where it is not installed
        importlib.import_module(f"pyarrow.{name}")
