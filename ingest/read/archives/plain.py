"""Files of no known archive: which of them are one run, and which folders stand for hosts.

    logs/a.hlog logs/b.hlog                        files side by side are one run
    osd1/x_clat_hist.1.log osd2/x_clat_hist.1.log  folders beside one another with files of equal names are a host each
    report monday tuesday                          paths with a fio JSON and its logs each are a run each
    nights/monday/... nights/tuesday/...           folders that fio ran in one after another are runs, not hosts
    sda/4k/a.json sda/8k/a.json sdb/4k/a.json      the same at any depth: what ran at the same time is one run
    clients osd3.ndjson                            what servers counted is of the run of the one archive that is named with it

A log that CBT named (`output.0_clat_hist.1.log.h1`) is of the run of its folder, also where its archive's folders are gone.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingest.core.coverage import Caveat
from ingest.core.errors import listed
from ingest.read.archives.pbench import CLIENTS
from ingest.read.fio.join import Documents
from ingest.read.fio.names import LogName, parse_log_name, parse_summary_name
from ingest.read.format_names import SERVERS
from ingest.read.formats import reader_of
from ingest.read.sources import Evidence, Place
from ingest.read.text import plain_name

LOADED_AS = "--run"
LATE_STAMP_MS = 1500

Span = tuple[int, int]


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
        self._by_time(runs, hosts)
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
        if len(whole) == 1:
            [(clients, name)] = whole.items()
            outside = [path for path in self.formats if clients not in (own := self.folder_of(path), *own.parents)]
            if outside and all(self.formats[path] in SERVERS for path in outside):
                told = self.said or name, LOADED_AS if self.said else f"path {clients.name}, the clients"
                return dict.fromkeys(self.formats, told)
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
                below = folder.relative_to(self.root).as_posix().removeprefix("results/")
                runs[path] = (f"{base}/{below}", "folder of CBT's logs")
            else:
                runs[path] = (base, why)
        return runs

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
            if self._of_its_folder(path):
                folders[path.parent.parent, plain_name(path), runs[path][0]].add(path.parent)
        hosts: dict[Path, str] = {}
        for (parent, _, _), siblings in folders.items():
            if len(siblings) > 1 or parent.name == CLIENTS:
                hosts.update({folder: folder.name for folder in siblings})
        return hosts

    def _by_time(self, runs: dict[Path, tuple[str, str]], hosts: dict[Path, str]) -> None:
        """Tell runs from hosts among folders that hold files of equal names: hosts of one run work at the same time."""
        for folders in self._alike(runs, hosts):
            below = _parts_below({folder: self.folder_of(folder / "a file") for folder in folders})
            timed = {folder: spans for folder in folders if (spans := self._processes(folder))}
            groups = worked_together(timed)
            if len(groups) > 1:
                self._part(groups, below, runs, hosts)
            elif len({folder.parent for folder in folders}) > 1 and len({len(below[folder]) for folder in folders}) == 1:
                _, names = _shared_and_own([below[folder] for folder in folders])
                if len(timed) == len(folders) or not any("/" in name for name in names):
                    hosts.update(zip(folders, names, strict=True))

    def _alike(self, runs: Mapping[Path, tuple[str, str]], hosts: Mapping[Path, str]) -> list[list[Path]]:
        """Return the folders of each run that hold a file named like one of another of them, or stand for hosts."""
        named: dict[tuple[str, str], set[Path]] = defaultdict(set)
        alike: dict[str, set[Path]] = defaultdict(set)
        for path, (run, _) in runs.items():
            if path.parent in hosts:
                alike[run].add(path.parent)
            if self._of_its_folder(path):
                named[run, plain_name(path)].add(path.parent)
        for (run, _), folders in named.items():
            if len(folders) > 1:
                alike[run] |= folders
        return [sorted(folders) for folders in alike.values() if len(folders) > 1]

    def _of_its_folder(self, path: Path) -> bool:
        """Return whether the host of a file may be its folder's."""
        own = reader_of(self.formats[path]).folder_is_host
        return not (path in self.logs and self.logs[path].host) and (own is None or own(path))

    def _processes(self, folder: Path) -> list[Span]:
        """Return when each fio that left a JSON in a folder ran, in epoch ms."""
        spans = []
        for beside in self.documents.folders.get(folder, ()):
            jobs = beside.document.jobs
            times = [(zero[0], zero[0] + job.runtime_ms) for job in jobs if (zero := beside.document.zero_ms(job)) is not None]
            if times:
                spans.append((min(begin for begin, _ in times), max(end for _, end in times)))
        return spans

    def _part(
        self,
        groups: Sequence[Sequence[Path]],
        below: Mapping[Path, tuple[str, ...]],
        runs: dict[Path, tuple[str, str]],
        hosts: dict[Path, str],
    ) -> None:
        """Make groups of folders runs of their own; several folders of one are its hosts."""
        parted = [_shared_and_own([below[folder] for folder in group]) for group in groups]
        often = Counter(shared for shared, _ in parted)
        names = []
        for group, (shared, _) in zip(groups, parted, strict=True):
            names.append(shared if shared and often[shared] == 1 else "/".join(below[group[0]]) or group[0].name)
        parent = os.path.commonpath([folder for group in groups for folder in group])
        sentence = f"the folders {listed(sorted(names))} hold runs of fio that did not overlap in time: each is a run of its own"
        self.caveats.append(Caveat("folders-apart", parent, sentence, "--merge-runs adds them up"))
        run_of = {folder: name for group, name in zip(groups, names, strict=True) for folder in group}
        for path in runs:
            if (name := run_of.get(path.parent)) is not None:
                runs[path] = (f"{runs[path][0]}/{name}", f"folder {name}: fio ran in it at another time than beside it")
        for group, (_, own) in zip(groups, parted, strict=True):
            if len(group) > 1:
                hosts.update(zip(group, own, strict=True))
            else:
                hosts.pop(group[0], None)


def _parts_below(folders: Mapping[Path, Path]) -> dict[Path, tuple[str, ...]]:
    """Return the parts of the names of folders below the folder that all of them share."""
    shared = Path(os.path.commonpath(folders.values()))
    return {folder: own.relative_to(shared).parts for folder, own in folders.items()}


def _shared_and_own(names: Sequence[tuple[str, ...]]) -> tuple[str, list[str]]:
    """Return what the names of folders share, empty where that is nothing, and what is left of each; one shares all of it."""
    if len(names) == 1:
        return "/".join(names[0]), [""]
    if len({len(parts) for parts in names}) > 1:
        return "", ["/".join(parts) for parts in names]
    same = [len(set(column)) == 1 for column in zip(*names, strict=True)]
    shared = "/".join(part for part, alike in zip(names[0], same, strict=True) if alike)
    return shared, ["/".join(part for part, alike in zip(parts, same, strict=True) if not alike) for parts in names]


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return the names of folders, with as many of their parents as distinguish them."""
    most = max((len(folder.parts) for folder in folders), default=0)
    for depth in range(1, most + 1):
        names = ["/".join(folder.parts[-depth:]).strip("/") or "run" for folder in folders]
        if len(set(names)) == len(folders):
            return names
    return [str(folder).strip("/") for folder in folders]


def worked_together(processes: Mapping[Path, Sequence[Span]]) -> list[list[Path]]:
    """Return folders in groups, earliest first: two are in one if a process of one ran beside a process of the other.

    Two processes that follow one another may seem to overlap: fio's time stamps are late, and of old versions whole seconds.
    """
    group_of = {folder: folder for folder in processes}

    def leader(folder: Path) -> Path:
        while group_of[folder] != folder:
            group_of[folder] = folder = group_of[group_of[folder]]
        return folder

    running: list[tuple[int, int, Path]] = []
    begun = sorted((begin, end, folder) for folder, spans in processes.items() for begin, end in spans)
    for begin, end, folder in begun:
        running = [other for other in running if other[1] > begin]
        for earlier, until, other in running:
            shorter = min(end - begin, until - earlier)
            if min(end, until) - begin > min(LATE_STAMP_MS, shorter // 2):
                group_of[leader(folder)] = leader(other)
        running.append((begin, end, folder))
    groups: dict[Path, list[Path]] = {}
    for _, _, folder in begun:
        members = groups.setdefault(leader(folder), [])
        if folder not in members:
            members.append(folder)
    return list(groups.values())
