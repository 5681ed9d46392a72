"""Two checkouts are asked the same random questions, and every byte of their answers is compared.

    git worktree add /tmp/before 27f8b0ef
    python benchmarks/same_answers.py /tmp/before . [--questions 5000] [--seed N] [--only REGEX] [--scene N ...]
                                      [--refused] [--keep FOLDER]

For changes that must change no answer: moved, merged or renamed modules, less code for the same work. Nothing of a checkout
is imported by name but `ingest.cli` (its `main`); what is compared is what users have: standard output, standard
error, exit status, and the files that commands write. A difference is printed with its command line and the first line that
differs; the last lines count what was asked, answered with exit status 0 (of BEFORE) and differs, by command. Exit status 1:
something differs.

Questions come in scenes (`random_questions.py`), each in an empty folder: single logs of every format in tests/data,
the example archive, folders loaded in parts, pipes, descriptions in YAML, damaged files, stores in SQLite and in the
test double of Elasticsearch that are filled, replaced, coarsened, deleted from and asked, series of runs, pages,
pictures, the live page, watches, `build`, help, and words that are wrong; and logs that are made from the seed.
Options are drawn at random, mostly such as can be answered: BEFORE is asked first what a log holds. A seed and the
number of a scene give the same questions again: `--scene 67`.
`--approx` is not asked.

Each checkout is copied, so that it may change meanwhile, and asked by a worker that has imported what its commands import (found
out by running some) and forks for each question, which takes 15 ms of CPU. One question in 66 is a process of its own
(`python -m ingest`), which finds what such a start hides: a module that imports less than it uses. Both sides have test
doubles from BEFORE, new ones for each scene that needs them, inputs from BEFORE, folders of equal names, and the same
environment.

What differs from one process to the next is made equal on both sides, and nothing else:

| what | why |
|---|---|
| the folder of a side, the port of a double or of `serve` | each side has its own |
| names in its folder of temporary files | drawn at random |
| times of the last hour, as ISO 8601 or epoch s, ms, us, ns | when a run was loaded, a poll made; no input is so young |
| `seconds` of a load, `in 1.2 s`, `took` of a poll | how long something took |
| when runs were loaded, as a list in a report | runs that were loaded in one second are one entry |
| the room on a disk (`doctor`) | others write meanwhile |
| the size of a SQLite file (`doctor`) | several readers (`--jobs`) give documents as they come, and pages fill in that order |
| the stamp of stored findings | a digest of a record that holds when it was loaded |
| the version, where the checkouts have two | it is said by runs, pages and templates |
| `--approx` in help | goes away in 2026 |
| SQLite files: rows as text, in order, without numbers of series | several processes (`--each`) number them as they come |
| the data of a page: unpacked | so that the above holds in it, too |
| docs/reference/formats.md of `build`: its generated table alone | the rest is written by people |

All processes are told of one core, so that logs are read by one process unless `--jobs` says otherwise: the keys of a
report's data and the notes of a load come in the order in which readers end. `--jobs` is not asked of these for that reason.

About four of five questions are answered with exit status 0. On two cores that are free 300 take a minute, 5,000 about 18.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import os
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve()
STARTED: list[subprocess.Popen[bytes]] = []  # kept, as one that is let go is waited for before `ended` asks how it ended
SIDES = ("before", "after.")  # of one length, so that no table gets wider by it
LONGEST_SECONDS = 180
AHEAD = 4  # scenes that are sent before the first of them is compared
WINDOW_BITS = 36  # of the number of a document in SQLite: the rest is the number of its series
CHECKOUT = ("ingest", "mappings", "kibana", "examples", "docs/reference", "pyproject.toml")
LOG, ARCHIVE, STORE = "{in}/made/nights/n00", "{in}/cbt-archive", "sqlite:warm.db"
WARM = (  # what is run once, so that forks find imported what they use
    ("percentiles", LOG, "--by", "host"), ("percentiles", "{in}/data/raw/offset", "--format", "csv"), ("heatmap", LOG),
    ("distribution", LOG), ("explain", ARCHIVE), ("report", ARCHIVE, "-o", "warm.html"), ("inspect", "{in}/data/hdr/ends"),
    ("inspect", "{in}/data/histograms"), ("inspect", "{in}/data/traces"), ("offsets", "{in}/data/raw/offset"),
    ("load", LOG, "--run", "w", "--store", STORE), ("percentiles", STORE), ("runs", "check", "--store", STORE),
    ("runs", "list", "--store", STORE), ("doctor", STORE), ("mark", "--run", "w", "--at", "+1s", "x", "--store", STORE),
    ("events", "{in}/data/snabb/real.timeline.xz", "--limit", "2"), ("check", "{in}/words/sla0.yml", STORE),
    ("compare", LOG, "{in}/made/nights/n01", "--baseline", "n00", "--run", "n01", "-o", "c.html"),
    ("trend", LOG, "{in}/made/nights/n01", "-o", "t.html"), ("capacity", LOG, "{in}/made/nights/n01", "--sla", "p99<1ms"),
    *(("export", LOG, "--format", form) for form in ("csv", "hlog", "hgrm", "otlp")),
    ("setup", "--elasticsearch", "{elasticsearch}", "--kibana", "{kibana}"), ("percentiles", "{elasticsearch}"),
    ("load", LOG, "--run", "w", "--store", "{elasticsearch}"),
)  # fmt: skip


# ---- a worker: one checkout, its commands imported once, each question a fork


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker is: its own folder, with its copy of the checkout, and the inputs beside it."""

    root: Path

    @property
    def tree(self) -> Path:
        """Return the copy of the checkout."""
        return self.root / "tree"

    @property
    def inputs(self) -> Path:
        """Return the folder of inputs."""
        return self.root.parent / "inputs"

    def environment(self, more: Sequence[Sequence[str]]) -> dict[str, str]:
        """Return the whole environment of a command."""
        base = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(self.tree), "PYTHONHASHSEED": "0",
            "HOME": str(self.root / "home"), "XDG_CACHE_HOME": str(self.root / "cache"), "TMPDIR": str(self.root / "tmp"),
            "TZ": "UTC", "COLUMNS": "100", "LINES": "40",
            "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb", "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        return base | {name: value.replace("{tree}", str(self.root / "build")) for name, value in more}


class Judge:
    """The doubles of Elasticsearch and Kibana that a worker asks, in a process of their own; new ones for each scene."""

    def __init__(self, place: Place) -> None:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(place.root.parent / "judge"), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), "--judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def told(self, word: str) -> Any:
        """Return what the judge answers to `new` (its addresses) or `all` (what it holds)."""
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        into.write(word + "\n")
        into.flush()
        return json.loads(out.readline())


def judge() -> None:
    """Serve new doubles for each line `new`, and print all that they hold for each line `all`."""
    elastic = import_module("tests.doubles.elasticsearch").ElasticsearchDouble
    kibana = import_module("tests.doubles.kibana").KibanaDouble
    running: list[Any] = []
    for line in sys.stdin:
        if line.strip() == "new":
            for one in running:
                one.__exit__(None, None, None)
            running = [elastic().__enter__(), kibana().__enter__()]
            answer: Any = [one.url for one in running]
        else:
            indices = {name: running[0].documents(name) for name in running[0].index_names()}
            objects = {str(key): value for key, value in running[1].objects().items()}
            refused = [*running[0].refusals, *running[1].refusals]
            answer = {"indices": indices, "objects": objects, "rules": running[1].rules(), "refusals": refused}
        print(json.dumps(answer, sort_keys=True, default=str), flush=True)


class Worker:
    """Asks one checkout."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        self.judge: Judge | None = None
        self.addresses = {"{elasticsearch}": "", "{kibana}": ""}

    def serve(self) -> None:
        """Import what the commands use, then play each scene that comes, and say how each of its questions ended."""
        import gc

        import ingest.cli

        if not Path(ingest.cli.__file__).is_relative_to(self.place.tree):
            raise SystemExit(f"{ingest.cli.__file__} was imported, which is not the checkout {self.place.tree}")
        for folder in ("home", "cache", "tmp", "warm", "out", "scenes"):
            (self.place.root / folder).mkdir()
        self.judge = Judge(self.place)
        self.addresses = dict(zip(self.addresses, self.judge.told("new"), strict=True))
        for words in WARM[: None if self.place.root.name in SIDES else 2]:
            for name in self._imported_by(words):
                try:
                    import_module(name)
                except Exception:  # what one command alone imports in some way of its own
                    continue
        os.sched_getaffinity = lambda _: {0}  # one core: what several readers give at once has no order of its own
        gc.freeze()
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            print(json.dumps(self.scene(json.loads(line))), flush=True)

    def _imported_by(self, words: Sequence[str]) -> list[str]:
        """Return the modules that a command imports, found out by a fork that runs it."""
        there, ours = os.pipe()
        environment = self.place.environment(())
        child = os.fork()
        if not child:
            before, leave = set(sys.modules), os._exit

            def tell(_: int) -> None:
                os.write(ours, "\n".join(name for name in list(sys.modules) if name not in before).encode())
                leave(0)

            os._exit = tell  # type: ignore[assignment]  # by which `main` ends
            try:
                nowhere = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(nowhere, stream)
                os.environ.clear()
                os.environ.update(environment)
                os.chdir(self.place.root / "warm")
                import ingest.cli

                ingest.cli.main([self._addressed(word).replace("{in}", str(self.place.inputs)) for word in words])
            finally:
                leave(1)
        os.close(ours)
        with os.fdopen(there) as told:
            names = told.read().split("\n")
        os.waitpid(child, 0)
        return [name for name in names if name and not name.startswith("__")]

    def scene(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        """Do the steps of a scene in a new folder, and return the status and seconds of each question."""
        name = f"{told['number']:05d}"
        folder, out = self.place.root / "scenes" / name, self.place.root / "out" / name
        folder.mkdir()
        out.mkdir()
        served = any("{" in word for step in told["steps"] for word in step["words"])
        if served and self.judge is not None:
            self.addresses = dict(zip(self.addresses, self.judge.told("new"), strict=True))
        ends: list[dict[str, Any]] = []
        for step in told["steps"]:
            if step["does"] == "ask":
                ends.append(self.ask(step, folder, out / f"{len(ends):02d}"))
            else:
                self.prepare(step, folder)
        if served and self.judge is not None:
            held = self.judge.told("all")
            (folder / "held.json").write_text(json.dumps(held, indent=1, sort_keys=True), encoding="utf-8")
        return ends

    def prepare(self, step: dict[str, Any], folder: Path) -> None:
        """Change files before the next question."""
        target, source = folder / step["target"], self.place.inputs / step["source"]
        build = self.place.root / "build"
        target.parent.mkdir(parents=True, exist_ok=True)
        match step["does"]:
            case "copy":
                shutil.copy2(source, target)
            case "write":
                target.write_bytes(base64.b64decode(step["content"]))
                os.utime(target, (1_790_000_000,) * 2)
            case "folder":
                target.mkdir(exist_ok=True)
            case "restore" if source.suffix == ".gz":
                target.write_bytes(gzip.decompress(source.read_bytes()))
            case "restore":
                with sqlite3.connect(target) as db:
                    db.executescript(source.read_text(encoding="utf-8"))
                db.close()
            case "tree":
                shutil.rmtree(build, ignore_errors=True)
                shutil.copytree(self.place.tree, build)
                shutil.rmtree(build / "kibana" / "saved_objects")
                for path in (
                    "mappings/sqlite.sql",
                    "kibana/tailboard.ndjson",
                    "docs/reference/fields.md",
                    "docs/reference/commands.md",
                ):
                    (build / path).unlink()
            case "built":
                for path in ("mappings", "kibana", "docs/reference"):
                    shutil.copytree(build / path, target / path)
                page = target / "docs" / "reference" / "formats.md"
                table = page.read_text(encoding="utf-8").partition("<!-- formats:")[2].partition("<!-- end of formats")[0]
                page.write_text(table, encoding="utf-8")  # the rest of the page is written by people

    def ask(self, step: dict[str, Any], folder: Path, kept: Path) -> dict[str, Any]:
        """Ask one question, its output in `kept`.out and `kept`.err, and return how it ended."""
        words = [self._addressed(word) for word in step["words"]]
        environment = self.place.environment(step["environment"])
        began = time.monotonic()
        with Path(f"{kept}.out").open("wb") as out, Path(f"{kept}.err").open("wb") as err:
            streams = [self._input(step), out.fileno(), err.fileno()]
            child = (
                self._cold(words, environment, folder, streams)
                if step["cold"]
                else self._forked(words, environment, folder, streams)
            )
            os.close(streams[0])
            if step["words"][:1] == ["serve"]:
                visited(child, Path(f"{kept}.err"), folder)
            status = ended(child)
        return {"status": status, "seconds": time.monotonic() - began}

    def _addressed(self, word: str) -> str:
        for name, address in self.addresses.items():
            word = word.replace(name, address)
        return word

    def _input(self, step: dict[str, Any]) -> int:
        """Return standard input: nothing, a file, or a pipe into which a fork writes files one after another."""
        paths = [Path(os.path.normpath(self.place.root / "scenes" / "x" / path)) for path in step["stdin"]]
        if not paths:
            return os.open(os.devnull, os.O_RDONLY)
        if not step["piped"]:
            return os.open(paths[0], os.O_RDONLY)
        there, ours = os.pipe()
        if not os.fork():
            os.close(there)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            with os.fdopen(ours, "wb") as into:
                for path in paths:
                    into.write(path.read_bytes())
            os._exit(0)
        os.close(ours)
        return there

    def _forked(self, words: list[str], environment: dict[str, str], folder: Path, streams: Sequence[int]) -> int:
        """Run a command in a copy of this process, which has imported it."""
        child = os.fork()
        if not child:
            try:
                os.setsid()
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                os.environ.clear()
                os.environ.update(environment)
                time.tzset()
                os.chdir(folder)
                sys.argv = ["tailboard", *words]
                import ingest.cli

                ingest.cli.main()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(99)  # main ends the process itself
        return child

    def _cold(self, words: list[str], environment: dict[str, str], folder: Path, streams: Sequence[int]) -> int:
        """Run a command as a process that imports what it uses itself."""
        given, out, err = streams
        command = [sys.executable, "-m", "ingest", *words]
        where: dict[str, Any] = {"stdin": given, "stdout": out, "stderr": err, "cwd": folder, "env": environment}
        started = subprocess.Popen(command, **where, start_new_session=True, preexec_fn=on_one_core)  # noqa: PLW1509  # no threads
        STARTED.append(started)
        return started.pid


def visited(child: int, said: Path, folder: Path) -> None:
    """Keep what a server answers, as files of the scene, and interrupt it; `said` is where it says its address."""
    end = time.monotonic() + LONGEST_SECONDS / 2
    while not (address := re.search(rb"http://127\.0\.0\.1:\d+/", said.read_bytes())):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) or time.monotonic() > end:
            return
        time.sleep(0.02)
    for number, path in enumerate(("", "data", "nothing")):
        try:
            with urllib.request.urlopen(address[0].decode() + path, timeout=60) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            content = f"{error.code} ".encode() + error.read()
        (folder / f"served{number}").write_bytes(content)
    os.kill(child, signal.SIGINT)


def on_one_core() -> None:
    """Let a process that is not forked from this one see one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def ended(child: int) -> int | str:
    """Return the exit status of a process, "timeout" if it had to be killed."""
    handle = os.pidfd_open(child)
    found, _, _ = select.select([handle], [], [], LONGEST_SECONDS)
    os.close(handle)
    if not found:
        os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    while True:  # those that wrote into pipes
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                break
        except ChildProcessError:
            break
    return status if found else "timeout"


# ---- the two sides


class Side:
    """A worker as the comparing process sees it."""

    def __init__(self, root: Path, checkout: Path) -> None:
        self.root = root
        root.mkdir()
        for name in CHECKOUT:
            copied(checkout / name, root / "tree" / name)
        environment = Place(root).environment(())
        command = [sys.executable, str(HERE), "--worker", str(root)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        return into, out

    def send(self, scene: str) -> None:
        """Give a scene to the worker."""
        into, _ = self._pipes
        into.write(scene + "\n")
        into.flush()

    def answer(self) -> Any:
        """Return what the worker says next."""
        line = self._pipes[1].readline()
        if not line:
            raise SystemExit(f"the worker of {self.root} ended")
        return json.loads(line)

    def close(self) -> None:
        """End the worker."""
        self._pipes[0].close()
        self._process.wait()


def copied(source: Path, target: Path) -> None:
    """Copy a file or folder of a checkout, without byte code."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


# ---- what is compared


class Plain:
    """Replaces in an answer what differs from one process to the next; the table at the top of this file says which and why."""

    def __init__(self, root: Path, versions: Sequence[str]) -> None:
        self._began = time.time()
        self._roots = [str(root / side).encode() for side in SIDES]
        self._versions = [version.encode() for version in dict.fromkeys(versions)] if len(set(versions)) > 1 else []

    def __call__(self, text: bytes) -> bytes:
        """Return an answer without what differs."""
        text = re.sub(rb'(?<=id="data">)[A-Za-z0-9+/=]+', unpacked, text)
        for root in self._roots:
            text = text.replace(root, b"/side")
        text = re.sub(rb"(?<=127\.0\.0\.1:)\d{4,5}", b"PORT", text)
        for version in self._versions:
            text = text.replace(version, b"VERSION")
        text = re.sub(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", self._moment, text)
        text = re.sub(rb"(?<![\d.])1\d{9}(\d{3}|\d{6}|\d{9})?(\.\d+)?(?![\d])", self._number, text)
        text = re.sub(rb'<div(?: class="wide")?><dt>Loaded</dt>.*?</div>\n?', b"", text)
        text = re.sub(rb'("seconds": ?)[\d.]+', rb"\1SECONDS", text)
        text = re.sub(rb'("took": ?)[\d.]+', rb"\1SECONDS", text)
        text = re.sub(rb"""(findings \('[^']*', \d+, '|"stamp": ?")[0-9a-f]{64}""", rb"\1STAMP", text)
        text = re.sub(rb" in [\d.]+ m?s;", b" in SECONDS;", text)
        text = re.sub(rb"[\d.,]+ [kMGT]?B are free", b"ROOM are free", text)
        text = re.sub(rb"(\.db, )[\d.,]+ [kMGT]?B", rb"\1SIZE", text)
        text = re.sub(rb"(/side/tmp/(?:\w+-)*)[a-z0-9_]{8}\b", rb"\1TEMPORARY", text)
        return re.sub(rb"^  --approx .*\n(?: {20,}.*\n)*", b"", text, flags=re.MULTILINE)

    def _moment(self, found: re.Match[bytes]) -> bytes:
        moment = datetime.fromisoformat(found[0].decode())
        stamp = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return b"NOW" if self._is_now(stamp) else found[0]

    def _number(self, found: re.Match[bytes]) -> bytes:
        digits = found[0].split(b".")[0]
        return b"NOW" if self._is_now(int(digits[:10])) else found[0]

    def _is_now(self, stamp: float) -> bool:
        return self._began - 3600 <= stamp <= time.time() + 60


def unpacked(found: re.Match[bytes]) -> bytes:
    """Return the data of a page as it was before it was packed."""
    try:
        return zlib.decompress(base64.b64decode(found[0]))
    except (ValueError, zlib.error):
        return found[0]


def dumped(path: Path) -> bytes:
    """Return all that a SQLite file holds as text: its schema, and the rows of each table in order."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    series: dict[int, Any] = {}
    lines = [f"version {db.execute('PRAGMA user_version').fetchone()[0]}"]
    try:
        tables = db.execute("SELECT name, sql FROM sqlite_master ORDER BY type, name DESC").fetchall()
        lines += [f"{name}: {sql}" for name, sql in tables]
        for name, sql in tables:
            if sql and sql.startswith("CREATE TABLE"):
                rows = db.execute(f"SELECT * FROM {name}").fetchall()
                if name == "series":
                    series = {row[0]: row[1:] for row in rows}
                    rows = list(series.values())
                if name == "intervals":
                    rows = [(series.get(row[0] >> WINDOW_BITS), row[0] % (1 << WINDOW_BITS), *row[1:]) for row in rows]
                lines += sorted(f"{name} {row!r}" for row in rows)
    except sqlite3.DatabaseError as error:
        lines.append(f"not readable: {error}")
    finally:
        db.close()
    return "\n".join(lines).encode()


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what each file of a scene holds; a SQLite file as text."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(("-wal", "-shm")):
            is_store = path.suffix == ".db" and path.read_bytes()[:15] == b"SQLite format 3"
            found[path.relative_to(folder).as_posix()] = dumped(path) if is_store else path.read_bytes()
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: in which question, in what, and the first lines that do."""

    scene: int
    question: int
    what: str
    before: str
    after: str


def first_lines(before: bytes, after: bytes) -> tuple[str, str]:
    """Return the first line of each that differs, around the first character that does."""
    ours, theirs = before.split(b"\n"), after.split(b"\n")
    for number, (one, other) in enumerate(zip([*ours, None], [*theirs, None], strict=False), 1):
        if one != other:
            texts = [("<no such line>" if line is None else line.decode("utf-8", "replace")) for line in (one, other)]
            same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
            begin = max(same - 60, 0)
            left, right = (f"line {number}: {'...' if begin else ''}{text[begin : begin + 160]}" for text in texts)
            return left, right
    return "", ""


class Comparison:
    """Holds the answers of two sides beside one another, and counts."""

    def __init__(self, root: Path, plain: Plain, keep: Path | None, *, refused: bool) -> None:
        self.refused = refused
        self.root, self.plain, self.keep = root, plain, keep
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.differing: set[tuple[int, int]] = set()
        self.kinds: Counter[tuple[str, str]] = Counter()

    def scene(self, scene: Any, ends: Sequence[list[dict[str, Any]]]) -> None:
        """Compare one scene, print what differs, and drop its folders."""
        name, asked = f"{scene.number:05d}", scene.asked
        found = list(self._questions(scene.number, name, ends))
        found += self._files(scene, name)
        for number, step in enumerate(asked):
            command = command_of(step.words)
            self.asked[command] += 1
            self.statuses[str(ends[0][number]["status"])] += 1
            self.answered[command] += ends[0][number]["status"] == 0
            self.seconds[command] += ends[0][number]["seconds"]
            if self.refused and ends[0][number]["status"] != 0:
                reason = (self.root / SIDES[0] / "out" / name / f"{number:02d}.err").read_text(encoding="utf-8", errors="replace")
                print(f"REFUSED {ends[0][number]['status']} {line_of(step)}\n    {reason[-200:].strip()}")
        for one in found:
            step = asked[one.question]
            self.differing.add((one.scene, one.question))
            self.kinds[command_of(step.words), one.what.split(" ")[0]] += 1
            print(f"DIFFERS (scene {one.scene}, question {one.question + 1}) {line_of(step)}\n  {one.what}")
            print(f"    before {one.before}\n    after  {one.after}", flush=True)
        for side in SIDES:
            for part in ("scenes", "out"):
                folder = self.root / side / part / name
                if found and self.keep is not None:
                    shutil.copytree(folder, self.keep / f"scene-{name}" / side.strip(".") / part, dirs_exist_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
        if found and self.keep is not None:
            lines = [line_of(step) for step in scene.steps]
            (self.keep / f"scene-{name}" / "questions.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _questions(self, number: int, name: str, ends: Sequence[list[dict[str, Any]]]) -> Iterator[Difference]:
        for question, (before, after) in enumerate(zip(*ends, strict=True)):
            if before["status"] != after["status"]:
                yield Difference(number, question, "status", str(before["status"]), str(after["status"]))
            for stream, ending in (("stdout", "out"), ("stderr", "err")):
                texts = [(self.root / side / "out" / name / f"{question:02d}.{ending}").read_bytes() for side in SIDES]
                yield from self._texts(number, question, stream, texts)

    def _files(self, scene: Any, name: str) -> Iterator[Difference]:
        files = [files_of(self.root / side / "scenes" / name) for side in SIDES]
        last = len(scene.asked) - 1
        for path in sorted(files[0].keys() | files[1].keys()):
            question = next((at for at in range(last, -1, -1) if any(path in word for word in scene.asked[at].words)), last)
            if path not in files[0] or path not in files[1]:
                there = ["there" if path in side else "not there" for side in files]
                yield Difference(scene.number, question, f"file {path}", *there)
            else:
                yield from self._texts(scene.number, question, f"file {path}", [side[path] for side in files])

    def _texts(self, number: int, question: int, what: str, texts: Sequence[bytes]) -> Iterator[Difference]:
        if texts[0] != texts[1]:
            before, after = map(self.plain, texts)
            if before != after:
                yield Difference(number, question, what, *first_lines(before, after))


def version_of(checkout: Path) -> str:
    """Return the version that a checkout says it is."""
    found = re.search(r'^__version__ = "(.+)"', (checkout / "ingest" / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def command_of(words: Sequence[str]) -> str:
    """Return the name of the command."""
    return " ".join(words[:2]) if words[:1] == ("runs",) else words[0] if words else ""


def line_of(step: Any) -> str:
    """Return a step as a user would type it."""
    if step.does != "ask":
        return f"[{step.does} {step.source} {step.target}]"
    settings = "".join(f"{name}={value} " for name, value in step.environment)
    given = f"cat {' '.join(step.stdin)} | " if step.piped else ""
    read = f" < {step.stdin[0]}" if step.stdin and not step.piped else ""
    words = " ".join(word if re.fullmatch(r"[\w./:,=+%@{}-]+", word) else f"'{word}'" for word in step.words)
    return f"{given}{settings}{'python -m ingest' if step.cold else 'tailboard'} {words}{read}"


def told(scene: Any) -> str:
    """Return a scene as one line for a worker."""
    steps = [{**asdict(step), "content": base64.b64encode(step.content).decode()} for step in scene.steps]
    return json.dumps({"number": scene.number, "steps": steps})


def compare(words: argparse.Namespace, root: Path) -> bool:
    """Ask both sides; return whether anything differs."""
    from random_questions import Guide, made, scene

    before, after = words.before.resolve(), words.after.resolve()
    inputs = made(root / "inputs", before, words.seed)
    shutil.copytree(before / "tests" / "doubles", root / "judge" / "tests" / "doubles")
    sides = [Side(root / name, checkout) for name, checkout in zip(SIDES, (before, after), strict=True)]
    asking = Side(root / "asking", before)
    for side in (asking, *sides):
        side.answer()
    asked = 0

    def ask(line: Sequence[str]) -> tuple[int, str]:
        nonlocal asked
        asked += 1
        step = {"does": "ask", "words": line, "stdin": [], "piped": False, "cold": False, "environment": []}
        asking.send(json.dumps({"number": asked, "steps": [step]}))
        status = asking.answer()[0]["status"]
        folder = asking.root / "out" / f"{asked:05d}"
        text = (folder / "00.out").read_text(encoding="utf-8", errors="replace")
        return status, text

    guide = Guide(ask)
    comparison = Comparison(root, Plain(root, [version_of(before), version_of(after)]), words.keep, refused=words.refused)
    began, waiting, number = time.monotonic(), deque[Any](), 0
    try:
        drawn = iter(words.scene) if words.scene else iter(range(10**9))
        total, printed = 0, began
        for number in drawn:
            if total >= words.questions:
                break
            one = scene(inputs, guide, words.seed, number)
            total += len(one.asked)
            if one.asked and (not words.only or any(re.search(words.only, line_of(step)) for step in one.asked)):
                waiting.append(one)
                for side in sides:
                    side.send(told(one))
            while len(waiting) > AHEAD:
                comparison.scene(waiting.popleft(), [side.answer() for side in sides])
            if time.monotonic() > printed + 30:
                printed = time.monotonic()
                far = f"  {total:,} questions drawn in {printed - began:.0f} s, {len(comparison.differing)} differ"
                print(far, file=sys.stderr, flush=True)
        while waiting:
            comparison.scene(waiting.popleft(), [side.answer() for side in sides])
    finally:
        for side in (asking, *sides):
            side.close()
    summary(comparison, time.monotonic() - began)
    return bool(comparison.differing)


def summary(comparison: Comparison, seconds: float) -> None:
    """Print how many questions were asked, answered and differ, by command."""
    asked, answered = comparison.asked.total(), comparison.answered.total()
    print(f"\n{'command':14} {'asked':>7} {'status 0':>9} {'s each':>7}  what differs")
    for command, count in comparison.asked.most_common():
        kinds = ", ".join(f"{what} {times}" for (name, what), times in sorted(comparison.kinds.items()) if name == command)
        share = comparison.answered[command] / count
        print(f"{command:14} {count:7,} {share:9.0%} {comparison.seconds[command] / count:7.3f}  {kinds}")
    statuses = ", ".join(f"{status}: {count:,}" for status, count in comparison.statuses.most_common())
    print(f"exit status of BEFORE: {statuses}")
    print(f"answered with status 0: {answered / max(asked, 1):.1%}; {seconds:.0f} s")
    print(f"{asked:,} questions, {len(comparison.differing):,} differ")


def main() -> None:
    """Compare two checkouts; exit status 1 when anything differs."""
    if sys.argv[1:2] == ["--worker"]:
        Worker(Path(sys.argv[2])).serve()
        return
    if sys.argv[1:2] == ["--judge"]:
        judge()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="BEFORE_DIR")
    parser.add_argument("after", type=Path, metavar="AFTER_DIR")
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="ask only scenes with a command line that this regular expression finds")
    parser.add_argument("--scene", type=int, nargs="+", help="ask only these scenes")
    parser.add_argument("--refused", action="store_true", help="also print what was not answered with exit status 0, and why")
    parser.add_argument("--keep", type=Path, help="keep the outputs and files of scenes that differ here")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its folders go with it
    with tempfile.TemporaryDirectory(prefix="same-answers-") as root:
        raise SystemExit(compare(words, Path(root)))


if __name__ == "__main__":
    main()
