"""Archives that somebody has handled: whatever was renamed, lost, copied or moved, the answer is the same, or it names the file."""

from __future__ import annotations

import functools
import gzip
import lzma
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.commands import tailboard
from tests.effort import figure

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
LOG = re.compile(r"_(clat_hist|clat|lat|slat)(\.\d+)?\.log")
P99 = Wanted(parse_percentiles("99"))
Step = tuple[str, int, int]


@functools.cache
def unpacked() -> Path:
    """Return a folder with the recorded trees, each as small as its layout allows."""
    folder = Path(tempfile.mkdtemp(prefix="trees-"))
    with tarfile.open(DATA / "cbt" / "B.tar.xz") as tar:
        kept = re.compile(
            r"yaml$|(4krandomwrite|16k7030)\.client[12]\.lab\.test/.*total_iodepth-3/.*(output\.\d|_clat_hist\.1\.log)$"
        )
        tar.extractall(folder / "cbt", [one for one in tar if one.isfile() and kept.search(one.name)], filter="data")
    shutil.copytree(
        ROOT / "examples" / "cbt-archive",
        folder / "flat",
        ignore=shutil.ignore_patterns("*ceph-c*", "*_bw*", "*_iops*", "*_clat.*"),
    )
    for config, gone in (("cbt", "  - client3.lab.test\n"), ("flat", ', "ceph-c"')):  # these clients are left out above
        [file] = (folder / config).rglob("cbt_config.yaml")
        text = file.read_text()
        assert gone in text
        file.write_text(text.replace(gone, ""))
    for name, place in {
        "pbench": "cases/pbench-two-hosts", "prefixes": "cases/two-prefixes", "plain": "randrw", "client": "client-server",
        "hosts": "host-folders", "sections": "two-sections", "shared": "per-job-logs-0",
    }.items():  # fmt: skip
        shutil.copytree(
            DATA / "fio" / place, folder / name, ignore=shutil.ignore_patterns("*.md", "*.fio", "*_lat.*", "*_slat.*")
        )
    return folder


TREES = ("cbt", "flat", "pbench", "prefixes", "plain", "client", "hosts", "sections", "shared")


@dataclass
class Tree:
    """A copy of a tree, and the names of all that was touched in it."""

    root: Path
    touched: set[str] = field(default_factory=set)
    lost: bool = False

    def files(self, wanted: Callable[[Path], bool] = lambda _: True) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file() and wanted(path))

    def logs(self) -> list[Path]:
        return self.files(lambda path: LOG.search(path.name) is not None)

    def summaries(self) -> list[Path]:
        return self.files(lambda path: LOG.search(path.name) is None and path.suffix != ".yaml")

    def folders(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_dir())

    def touch(self, *paths: Path) -> None:
        """Note names that a sentence about these may have: theirs, of what lies in their folder and below, and of JSON above."""
        for path in paths:
            self.touched.add(path.name)
            self.touched |= {other.name for other in self.files() if path.parent in other.parents}
            self.touched |= {other.name for other in self.summaries() if other.parent in path.parents}

    def move(self, source: Path, target: Path) -> None:
        if not target.exists() and source != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            self.touch(source, target)
            source.rename(target)


def pick(found: list[Path], number: int) -> Path | None:
    return found[number % len(found)] if found else None


def folder_renamed(tree: Tree, one: int, other: int) -> None:
    """Another name of the same shape, or one of no shape."""
    if folder := pick(tree.folders(), one):
        number = re.sub(r"\d(?=\D*$)", lambda found: str((int(found[0]) + 1) % 10), folder.name)
        names = [
            number,
            f"{folder.name}.bak",
            f"old-{folder.name}",
            "copy",
            "clients",
            "numjobs-004",
            "iodepth-000064",
            "w.h9",
            folder.name.split(".")[0],
        ]
        tree.move(folder, folder.with_name(names[other % len(names)]))


def json_lost(tree: Tree, one: int, other: int) -> None:
    """Gone, cut off or empty; of one file, or of all in its folder."""
    if summary := pick(tree.summaries(), one):
        all_of_it = [path for path in tree.summaries() if path.parent == summary.parent] if other % 2 else [summary]
        for path in all_of_it:
            tree.touch(path)
            data = path.read_bytes()
            if other // 2 % 3:
                path.write_bytes(b"" if other // 2 % 3 == 1 else data[: len(data) // 2])
            else:
                path.unlink()


def json_of_another(tree: Tree, one: int, other: int) -> None:
    """One copied over another, or the two swapped."""
    found = tree.summaries()
    source, target = pick(found, one), pick(found, other // 2)
    if source and target and source != target:
        tree.touch(source, target)
        mine, theirs = source.read_bytes(), target.read_bytes()
        target.write_bytes(mine)
        if other % 2:
            source.write_bytes(theirs)


def log_of_another(tree: Tree, one: int, other: int) -> None:
    """One copied over another, or the two swapped."""
    source = pick(tree.logs(), one)
    if source is None:
        return
    kind = LOG.search(source.name)[1]
    target = pick([path for path in tree.logs() if LOG.search(path.name)[1] == kind], other // 2)
    if target and source != target:
        tree.touch(source, target)
        mine, theirs = source.read_bytes(), target.read_bytes()
        target.write_bytes(mine)
        if other % 2:
            source.write_bytes(theirs)


def log_lost(tree: Tree, one: int, other: int) -> None:
    if log := pick(tree.logs(), one):
        tree.touch(log)
        log.unlink()


def copied_beside(tree: Tree, one: int, other: int) -> None:
    """A file under another name in its folder."""
    if file := pick(tree.files(), one):
        stem, dot, ending = file.name.partition(".")
        names = [f"{file.name}.bak", f"{stem} (1){dot}{ending}", f"copy-of-{file.name}", f"{file.name}.h9"]
        target = file.with_name(names[other % len(names)])
        if not target.exists():
            tree.touch(file, target)
            shutil.copy(file, target)


def folder_copied(tree: Tree, one: int, other: int) -> None:
    if folder := pick(tree.folders(), one):
        number = re.sub(r"\d(?=\D*$)", lambda found: str((int(found[0]) + 1) % 10), folder.name)
        target = folder.with_name([f"{folder.name}-copy", number, "clients"][other % 3])
        if not target.exists():
            tree.touch(folder, target)
            shutil.copytree(folder, target)


def moved(tree: Tree, one: int, other: int) -> None:
    """A file, or all of a folder, a level up or down."""
    file = pick(tree.files(lambda path: path.suffix != ".yaml"), one)
    if file is None:
        return
    together = [path for path in tree.files() if path.parent == file.parent] if other % 4 > 1 else [file]
    place = file.parent / "more" if other % 2 or file.parent == tree.root else file.parent.parent
    for path in together:
        tree.move(path, place / path.name)


def host_in_names(tree: Tree, one: int, other: int) -> None:
    """The host stripped off names, put on, or another one: of logs, of the JSON, or of one file."""
    some = [tree.logs, tree.summaries, tree.files][other % 3]()
    chosen = some if other // 3 % 2 else [path for path in [pick(some, one)] if path]
    for path in chosen:
        bare = re.sub(
            r"(\.log|^(?:json_)?output\.\d+)\.(?!gz|log)[a-z0-9.-]+?(\.gz)?$",
            lambda found: found[1] + (found[2] or ""),
            path.name,
        )
        ending = ".gz" if bare.endswith(".gz") else ""
        cut = bare.removesuffix(".gz")
        tree.move(path, path.with_name([bare, f"{cut}.h9{ending}"][other // 6 % 2]))


def settings_lost(tree: Tree, one: int, other: int) -> None:
    for file in tree.files(lambda path: path.suffix == ".yaml"):
        tree.touch(file)
        file.write_bytes(b"") if other % 2 else file.unlink()


STEPS: dict[str, Callable[[Tree, int, int], None]] = {
    one.__name__: one
    for one in (
        folder_renamed, json_lost, json_of_another, log_of_another, log_lost, copied_beside, folder_copied, moved, host_in_names,
        settings_lost,
    )
}  # fmt: skip

LOST = ("json_lost", "log_lost")


@dataclass(frozen=True)
class Told:
    """What one call answers: samples and p99 by op, the samples of all, and every sentence about it."""

    by_op: dict[str, tuple[int, float]]
    sentences: frozenset[str]
    refused: bool = False
    runs: tuple[str, ...] = ()


def told(root: Path) -> Told:
    question = Question(step="all", by=("op",), where={"kind": "completion"})
    try:
        files = Files([root], jobs=1)
        answer = files.answer(question)
    except InputError as error:
        return Told({}, frozenset({str(error)}), refused=True)
    table = percentiles(answer, P99).columns
    by_op: dict[str, tuple[int, float]] = {}
    for op, count, value in zip(*(table[name].tolist() for name in ("op", "count", "p99")), strict=True):
        before, largest = by_op.get(op, (0, 0.0))
        by_op[op] = before + count, max(largest, value)
    return Told(by_op, frozenset(text.replace(str(root), "") for text in answer.warnings), runs=answer.runs)


def alike(one: Told, other: Told) -> bool:
    """Return whether two answers count the same, and have the same p99 but for the widths of bins: fio's JSON has finer ones."""
    counts = [{op: count for op, (count, _) in each.by_op.items()} for each in (one, other)]
    return counts[0] == counts[1] and all(
        other.by_op[op][1] == pytest.approx(value, rel=0.05)
        for op, (_, value) in one.by_op.items()
        if len(one.runs) == len(other.runs)
    )


@functools.cache
def untouched(name: str) -> Told:
    return told(unpacked() / name)


@contextmanager
def copy_of(name: str) -> Iterator[Tree]:
    with tempfile.TemporaryDirectory(prefix="tree-") as folder:
        shutil.copytree(unpacked() / name, Path(folder) / name)
        yield Tree(Path(folder) / name)


def check(name: str, steps: list[Step]) -> None:
    """Change a tree step by step; fail where the answer is another and no sentence names what was touched."""
    before = untouched(name)
    with copy_of(name) as tree:
        for kind, one, other in steps:
            if not (kind in LOST and tree.lost):  # where a log and its JSON are gone nothing can be said
                STEPS[kind](tree, one, other)
                tree.lost |= kind in LOST
        after = told(tree.root)
    if after.refused or alike(before, after):
        return
    new = after.sentences - before.sentences
    assert any(part in text for part in tree.touched for text in new), (
        f"{name} {steps}: {before.by_op} became {after.by_op}; touched {sorted(tree.touched)}; said {sorted(new)}"
    )


@pytest.mark.parametrize("name", TREES)
def test_an_untouched_tree_is_answered_without_a_word(name: str) -> None:
    assert all("compounded by fio --client" in text for text in untouched(name).sentences), untouched(name).sentences
    assert untouched(name).by_op


one_step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 40), st.integers(0, 40))


@pytest.mark.slow
@settings(max_examples=figure(60, 150, 2000))
@example("cbt", [("folder_copied", 7, 3)])
@example("cbt", [("moved", 6, 9), ("log_lost", 2, 31)])
@example("flat", [("copied_beside", 3, 0)])
@example("flat", [("host_in_names", 10, 2)])
@example("flat", [("json_lost", 0, 1)])
@example("hosts", [("log_of_another", 6, 2), ("host_in_names", 32, 35)])
@example("plain", [("copied_beside", 7, 3)])
@example("prefixes", [("moved", 10, 4)])
@example("prefixes", [("json_lost", 4, 3)])
@example("sections", [("log_of_another", 1, 5)])
@example("shared", [("moved", 2, 0)])
@given(st.sampled_from(TREES), st.lists(one_step, min_size=1, max_size=2))
def test_a_handled_tree_never_changes_a_number_silently(name: str, steps: list[Step]) -> None:
    check(name, steps)


CASES = {
    "json taken away": ("plain", "a.json", None, ("no-summary",)),
    "json of two prefixes taken away": ("prefixes", "out.json", None, ("no-summary", "perhaps-twice")),
    "json moved away from its log": ("shared", "a.json", "more/a.json", ("no-summary", "json-apart")),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_files_load_and_inspect_say_the_same(case: str, tmp_path: Path) -> None:
    name, file, target, codes = CASES[case]
    with copy_of(name) as tree:
        if target is None:
            (tree.root / file).unlink()
        else:
            tree.move(tree.root / file, tree.root / target)
        found = discover([tree.root], ReadOptions())
        assert tuple(caveat.code for caveat in found.caveats) == codes
        sentences = [str(caveat) for caveat in found.caveats]
        assert set(sentences) <= set(Files([tree.root], jobs=1).answer(Question(step="all")).warnings)
        with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
            assert load([tree.root], store, LoadOptions(ReadOptions(), jobs=1)).caveats == sentences
        printed = tailboard("inspect", tree.root).stdout
        assert all(f"caveat: {sentence}" in printed for sentence in sentences)


def test_a_histogram_log_that_is_moved_away_from_where_fio_wrote_it_is_counted_twice_and_said_by_all(tmp_path: Path) -> None:
    with copy_of("prefixes") as tree:
        tree.move(tree.root / "h_clat_hist.1.log", tree.root / "more" / "h_clat_hist.1.log")
        answer = Files([tree.root], jobs=1).answer(Question(step="all"))
        said = {str(lack.caveat) for lack in answer.missing if lack.caveat.code == "more-than-counted"}
        assert len(said) == 2 and said <= set(answer.warnings)  # of reads and of writes
        with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
            assert said == set(map(str, load([tree.root], store, LoadOptions(ReadOptions(), jobs=1)).lacks))
            assert said <= set(store.answer(Question(step="all")).warnings)
        printed = tailboard("inspect", tree.root).stdout
        assert all(f"caveat: {sentence}" in printed for sentence in said)


def test_a_log_copied_over_that_of_another_host_is_said_and_its_json_disagrees() -> None:
    with copy_of("pbench") as tree:
        one, other = tree.logs()
        other.write_bytes(one.read_bytes())
        files = Files([tree.root], jobs=1)
        warnings = files.answer(Question(step="all")).warnings
        assert any("same bytes" in text and str(other) in text for text in warnings)
        assert any("samples that fio's JSON does not" in text and str(other) in text for text in warnings)


def test_a_log_of_another_op_than_its_job_is_said() -> None:
    with copy_of("sections") as tree:
        reads, writes = tree.root / "a_clat_hist.2.log", tree.root / "a_clat_hist.3.log"
        writes.write_bytes(reads.read_bytes())
        warnings = Files([tree.root], jobs=1).answer(Question(step="all")).warnings
        assert any(
            text.startswith(f"{writes}: read: the log holds") and "fio's JSON none of this job" in text for text in warnings
        )


def test_a_copy_of_fios_json_counts_once() -> None:
    with copy_of("flat") as tree:
        summary = tree.summaries()[0]
        shutil.copy(summary, summary.with_name(f"{summary.name}.bak"))
        found = discover([tree.root], ReadOptions())
        assert [entry.reason for entry in found.skipped if entry.path.suffix == ".bak"] == [
            f"a backup of {summary.name} by its name: name it to read what it holds"
        ]
        assert told(tree.root).by_op == untouched("flat").by_op


COPIES = ["{}.bak", "{}~", "{}.orig", "{}.OLD", "{}.bak2", "{}.bak.1", "{}.orig~", "{}.gz.bak", "{} (copy)", "Copy of {}"]
COPIES += ["{stem} (copy){ending}", "{stem} (3rd copy){ending}", "{stem} - Copy{ending}", "{stem} - Copy (3){ending}"]
COPIES += ["{stem} copy 2{ending}"]


@pytest.mark.parametrize("called", COPIES)
def test_a_backup_is_no_host_even_where_it_differs(called: str) -> None:
    with copy_of("plain") as tree:
        log = next(path for path in tree.logs() if "_clat_hist" in path.name)
        backup = log.with_name(called.format(log.name, stem=log.stem, ending=log.suffix))
        lines = log.read_bytes().splitlines(keepends=True)
        backup.write_bytes(b"".join(lines[:-1]))
        found = discover([tree.root], ReadOptions())
        assert backup in {entry.path for entry in found.skipped}
        assert told(tree.root).by_op == untouched("plain").by_op
        assert [source.path for source in discover([backup], ReadOptions()).sources] == [backup]
        log.unlink()  # what is left is all that there is
        assert backup in {source.path for source in discover([tree.root], ReadOptions()).sources}


@pytest.mark.parametrize(
    ("kind", "pack"), [("_clat_hist", gzip.compress), ("_clat.", gzip.compress), ("_clat_hist", lzma.compress)]
)
def test_a_log_that_is_compressed_under_another_name_is_refused_as_such(kind: str, pack: Callable[[bytes], bytes]) -> None:
    with copy_of("plain") as tree:
        log = next((path for path in tree.logs() if kind in path.name), tree.logs()[0])
        log.rename(packed := log.with_name(f"{log.name.replace('_clat_hist', kind.rstrip('.'))}.packed"))
        packed.write_bytes(pack(packed.read_bytes()))
        [refused] = [entry for entry in discover([tree.root], ReadOptions()).skipped if entry.path == packed]
        assert (refused.action, refused.reason) == ("refused", "compressed, but not called .gz, .xz or .zst: rename it")


@pytest.mark.parametrize("damage", [b"\x92\xf5 no gzip", b"\x1f\x8b\x08", b"\x1f\x8b\x08\x00" + bytes(20)])
def test_a_log_whose_compression_is_damaged_costs_no_other(damage: bytes) -> None:
    with copy_of("plain") as tree:
        log = next(path for path in tree.logs() if "_clat_hist" in path.name)
        broken = log.with_name("z_clat_hist.9.log.gz")
        broken.write_bytes(damage)
        found = discover([tree.root], ReadOptions())
        [refused] = [entry for entry in found.skipped if entry.path == broken]
        assert refused.action == "refused" and "damaged or cut off" in refused.reason
        assert told(tree.root).by_op == untouched("plain").by_op


def test_the_same_archive_under_two_names_is_said() -> None:
    with copy_of("flat") as tree:
        shutil.copytree(tree.root / "results" / "00000000", tree.root / "results" / "00000001")
        [caveat] = discover([tree.root], ReadOptions()).caveats
        assert caveat.code == "same-content" and "00000001" in caveat.subject
