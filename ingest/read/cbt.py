"""CBT archives: which permutation a log belongs to, and the settings it ran with.

    ARCHIVE/results/00000000/id-9b5d006f/benchmark_config.yaml           cluster: {benchmark: librbdfio, mode: randrw, ...}
    ARCHIVE/results/00000000/id-9b5d006f/output.0_clat_hist.1.log.ceph-a
    ARCHIVE/results/00000000/id-9b5d006f/json_output.0.ceph-a

The nearest folder with a benchmark_config.yaml is one run; older archives (before 2019) have none, then the folder of the
log is the run and the path itself holds the settings (`op_size-00004096/iodepth-032/randread`).
"""

from __future__ import annotations

import re
from pathlib import Path

from ingest.read.fio.names import CBT_SUMMARY
from ingest.read.text import plain_name

SETTINGS_FILES = ("benchmark_config.yaml", "cbt_config.yaml")
LARGEST_SETTINGS = 1 << 20
MOST_LABELS = 32
PATH_SETTING = re.compile(r"^([a-z_]+)-(\d+)$")


def is_summary_name(path: Path) -> bool:
    """Return whether CBT names a fio summary so: json_output.0.host or output.0.host."""
    return CBT_SUMMARY.match(plain_name(path)) is not None


def summary_labels(path: Path) -> tuple[str, str]:
    """Return (volume, host) of a summary's file name; empty text where it does not tell."""
    found = CBT_SUMMARY.match(plain_name(path))
    return (found["volume"] or "", found["host"] or "") if found else ("", "")


def _run_folder(path: Path, root: Path) -> Path | None:
    resolved = path.resolve()
    for folder in resolved.parents:
        if (folder / "benchmark_config.yaml").is_file():
            return folder
        if folder == root:
            return None
    return None


def run_of(path: Path, root: Path, base: str, *, cbt_named: bool) -> str:
    """Return the run id of a file: the base name, and in an archive the path of its permutation below the root."""
    folder = _run_folder(path, root)
    if folder is None:
        if not cbt_named:
            return base
        folder = path.resolve().parent
    if folder == root or root not in folder.parents:
        return base
    relative = folder.relative_to(root).as_posix().removeprefix("results/")
    return f"{base}/{relative}"


def settings_of(path: Path, root: Path) -> dict[str, str]:
    """Return the plain settings of a file's permutation, at most 32, as labels; empty where there are none."""
    folder = _run_folder(path, root)
    if folder is None:
        return _settings_in_path(path.resolve().parent, root)
    file = folder / "benchmark_config.yaml"
    if file.stat().st_size > LARGEST_SETTINGS:
        return {}
    import yaml  # a quarter of the start-up time, and most runs need none

    try:
        content = yaml.safe_load(file.read_bytes())
    except (yaml.YAMLError, OSError, ValueError, RecursionError):
        return {}
    settings = content.get("cluster", content) if isinstance(content, dict) else {}
    plain = {
        str(key): str(value)
        for key, value in (settings.items() if isinstance(settings, dict) else ())
        if isinstance(value, (str, int, float, bool))
    }
    return dict(sorted(plain.items())[:MOST_LABELS])


def _settings_in_path(folder: Path, root: Path) -> dict[str, str]:
    parts = folder.relative_to(root).parts if root in folder.parents else ()
    return {found[1]: found[2].lstrip("0") or "0" for part in parts if (found := PATH_SETTING.match(part))}
