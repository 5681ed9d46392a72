"""Files of no known archive: which of them are one run, and which folders stand for hosts.

    logs/a.hlog logs/b.hlog                        files side by side are one run
    osd1/x_clat_hist.1.log osd2/x_clat_hist.1.log  folders beside one another with files of equal names are a host each
    report monday tuesday                          paths with a fio JSON and its logs each are a run each
    nights/monday/... nights/tuesday/...           folders that fio ran in one after another are runs, not hosts
    clients osd3.ndjson                            what servers counted is of the run of the one archive that is named with it

A log that CBT named (`output.0_clat_hist.1.log.h1`) is of the run of its folder, also where its archive's folders are gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingest.core.caveats import Caveat
from ingest.core.errors import listed
from ingest.read.archives.pbench import CLIENTS
from ingest.read.fio.joining import Documents
from ingest.read.fio.names import LogName, parse_log_name, parse_summary_name
from ingest.read.format_names import SERVERS
from ingest.read.formats import reader_of
from ingest.read.sources import Evidence, Place
from ingest.read.text import plain_name

LOADED_AS = "--run"


@dataclass(slots=True, eq=False)
class Plain:
    """The plain files of a call, by their format, and what places them: the paths of the call, the folder that they share.

    `folder_of` gives the absolute folder of a file. `caveats` are what was guessed.
    """

    formats: Mapping[Path, str]
    paths: Sequence[Path]
    root: Path
    said: str
    folder_of: Callable[[Path], Path]
    logs: Mapping[Path, LogName]
    documents: Documents
    caveats: list[Caveat] = field(default_factory=list)

    def places(self) -> dict[Path, Place]:
        """Return the place of each file."""
        runs = self._runs()
        hosts = self._hosts(runs)
        self._split_by_time(runs, hosts)
        places = {}
        for path, (run, why) in runs.items():
            host = hosts.get(path.parent, "")
            own = reader_of(self.formats[path]).folder_is_host
            host = "" if own is not None and not own(path) else host
            evidence = [Evidence("run", run, why), *([Evidence("host", host, f"folder {host}")] if host else [])]
            places[path] = Place(self.root, run, host, evidence=tuple(evidence))
        return places

    def _runs(self) -> dict[Path, tuple[str, str]]:
        """Return the run of each file, and its evidence."""
        whole = self._whole_paths()
        base, why = self.said or self.root.name or "run", LOADED_AS if self.said else f"folder {self.root.name}"
        runs = {}
        if len(whole) == 1 and (others := self._outside(*whole)) and all(self.formats[path] in SERVERS for path in others):
            [(clients, name)] = whole.items()
            return dict.fromkeys(
                self.formats, (self.said or name, LOADED_AS if self.said else f"path {clients.name}, the clients")
            )
        for path in self.formats:
            folder = self.folder_of(path)
            unit = next((parent for parent in (folder, *folder.parents) if parent in whole), None) if whole else None
            if unit is not None:
                short = whole[unit]
                runs[path] = (f"{self.said}/{short}" if self.said else short, f"path {unit.name}, a whole archive of its own")
                continue
            log = parse_log_name(path)
            cbt_named = log.cbt if log else parse_summary_name(path) is not None
            if cbt_named and folder != self.root and self.root in folder.parents:
                runs[path] = (
                    f"{base}/{folder.relative_to(self.root).as_posix().removeprefix('results/')}",
                    "folder of CBT's logs",
                )
            else:
                runs[path] = (base, why)
        return runs

    def _outside(self, folder: Path) -> list[Path]:
        """Return the files that do not lie in a folder, nor below it."""
        return [path for path in self.formats if folder not in (own := self.folder_of(path), *own.parents)]

    def _whole_paths(self) -> dict[Path, str]:
        """Return the paths of the call that are archives of their own, with short names: folders with a fio JSON and its logs."""
        folders = [path.resolve() for path in self.paths if path.is_dir()]
        if len(self.paths) < 2 or not folders:  # one path is one run
            return {}
        with_logs = {self.folder_of(path) for path in self.formats if path in self.logs}
        with_json = {document.path.parent.resolve() for document in self.documents.all()}

        def below(folder: Path, others: Iterable[Path]) -> bool:
            return any(other == folder or folder in other.parents for other in others)

        whole = [folder for folder in dict.fromkeys(folders) if below(folder, with_logs) and below(folder, with_json)]
        return dict(zip(whole, short_names(whole), strict=True))

    def _hosts(self, runs: Mapping[Path, tuple[str, str]]) -> dict[Path, str]:
        """Return the host of each folder whose files are named like those of a sibling folder, or that stands in `clients/`."""
        folders: dict[tuple[Path, str, str], set[Path]] = defaultdict(set)
        for path in self.formats:
            own = reader_of(self.formats[path]).folder_is_host
            if not (path in self.logs and self.logs[path].host) and (own is None or own(path)):
                folders[path.parent.parent, plain_name(path), runs[path][0]].add(path.parent)
        hosts: dict[Path, str] = {}
        for (parent, _, _), siblings in folders.items():
            if len(siblings) > 1 or parent.name == CLIENTS:
                hosts.update({folder: folder.name for folder in siblings})
        return hosts

    def _split_by_time(self, runs: dict[Path, tuple[str, str]], hosts: dict[Path, str]) -> None:
        """Make sibling folders that fio ran in one after another runs of their own: hosts of one run work at the same time."""
        spans: dict[Path, tuple[int, int]] = {}
        for folder in hosts:
            times = [
                (zero[0], zero[0] + job.runtime_ms)
                for beside in self.documents.folders.get(folder, ())
                for job in beside.document.jobs
                if (zero := beside.document.zero_ms(job)) is not None
            ]
            if times and any(path.parent == folder for path in self.logs):
                spans[folder] = (min(start for start, _ in times), max(end for _, end in times))
        families: dict[Path, dict[Path, tuple[int, int]]] = defaultdict(dict)
        for folder, span in spans.items():
            families[folder.parent][folder] = span
        for parent, family in families.items():
            together = overlapping(family)
            if len(together) < 2:  # all at the same time: hosts
                continue
            names = listed(sorted(group[0].name for group in together))
            sentence = f"the folders {names} hold runs of fio that did not overlap in time: each is a run of its own"
            self.caveats.append(Caveat("folders-apart", str(parent), sentence, "--merge-runs adds them up"))
            for group in together:
                name = group[0].name
                for path in (path for path in runs if path.parent in group):
                    runs[path] = (f"{runs[path][0]}/{name}", f"folder {name}: fio ran in it at another time than beside it")
                if len(group) == 1:
                    hosts.pop(group[0])


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return the names of folders, with as many of their parents as distinguish them."""
    most = max((len(folder.parts) for folder in folders), default=0)
    for depth in range(1, most + 1):
        names = ["/".join(folder.parts[-depth:]).strip("/") or "run" for folder in folders]
        if len(set(names)) == len(folders):
            return names
    return [str(folder).strip("/") for folder in folders]


def overlapping(spans: Mapping[Path, tuple[int, int]]) -> list[list[Path]]:
    """Return the folders whose times overlap, in groups, earliest first."""
    groups: list[list[Path]] = []
    end = 0
    for folder, (start, until) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        if not groups or start > end:
            groups.append([])
        groups[-1].append(folder)
        end = max(end, until)
    return groups
