"""Random attacks on every reader and command: odd numbers, other scripts, wrong types, broken containers, things that are no files.

    python -m tests.attacks --seed 1 --trials 300       prints each fault: a traceback, a hang, samples that change in silence

An attack is a recorded file of some format (those of `tests.damage`) with one thing done to it. Several commands read it. Each
ends with an exit status of its own within seconds and says nothing of an internal error; the number of samples changes only
where something is said.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import lzma
import os
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ingest.cli import run
from tests.damage import DATA, FORMATS, NOT_SEEN, SAME, SILENT, Recorded, content_of, outcome, told

SECONDS = 60  # of CPU
AT_ALL = 900  # of waiting, on a computer that does much else
NUMBER = re.compile(rb"\d+(?:\.\d+)?")
ODD_NUMBERS = [
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e400",
    "1e-400",
    "-0",
    "-1",
    "-9223372036854775809",
]
ODD_NUMBERS += ["9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 30, "9" * 400, "1" + "0" * 5000]
ODD_NUMBERS += ["1_000", "0x1f", "1e3", "+5", "1,5", "٣٤", "3", "²", "१२", "½", "1.5.2", "", " ", "--", "\x00", "１２"]
JSON_VALUES = [
    "null",
    "true",
    "[]",
    "{}",
    '""',
    '"\\ud800"',
    "[[[]]]",
    "-1",
    "1e400",
    "NaN",
    '"5"',
    "0.1",
    '{"a":[1]}',
    '"' + "x" * 9000 + '"',
]
ODD_TEXT = [
    "\x1b[31m",
    "\x00",
    "\u2028",
    "\x0b",
    "\x0c",
    "\x85",
    "\u202e",
    "\ufeff",
    "\udcff",
    "x" * 70_000,
    "=1+1",
    "../../..",
    "\r",
    "%s%n",
    "{0}",
]

Attack = Callable[[bytes, random.Random], bytes]


def number(text: bytes, chance: random.Random) -> bytes:
    """A number is another, or none."""
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    one = chance.choice(found)
    return text[: one.start()] + chance.choice(ODD_NUMBERS).encode() + text[one.end() :]


def script(text: bytes, chance: random.Random) -> bytes:
    """A number is written in the digits of another script."""
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    one, zero = chance.choice(found), chance.choice([0x660, 0x6F0, 0x966, 0xFF10, 0x1D7CE])
    digits = "".join(chr(zero + int(digit)) if digit.isdigit() else digit for digit in one[0].decode())
    return text[: one.start()] + digits.encode() + text[one.end() :]


def many_numbers(text: bytes, chance: random.Random) -> bytes:
    """A tenth of all numbers are odd."""
    return NUMBER.sub(lambda one: chance.choice(ODD_NUMBERS).encode() if chance.random() < 0.1 else one[0], text)


def value(text: bytes, chance: random.Random) -> bytes:
    """A value of JSON is of another type; elsewhere a cell is something else."""
    found = list(re.finditer(rb'(?<=[:,\[])\s*("[^"\n]{0,200}"|-?\d[\d.eE+-]*|true|false|null|\[|\{)', text))
    if not found:
        return text
    one = chance.choice(found)
    return text[: one.start(1)] + chance.choice(JSON_VALUES).encode() + text[one.end(1) :]


def odd_text(text: bytes, chance: random.Random) -> bytes:
    """Something that is no text of a log stands in it."""
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(ODD_TEXT).encode("utf-8", "surrogateescape") + text[at:]


def whole_file(text: bytes, chance: random.Random) -> bytes:
    """All of it is encoded, ended or wrapped in another way."""
    plain = text.decode("utf-8", "replace")
    return chance.choice(
        [
            lambda: plain.encode("utf-16"),
            lambda: plain.encode("utf-16-be"),
            lambda: plain.encode("utf-32"),
            lambda: b"\xef\xbb\xbf" + text,
            lambda: b"\xff\xfe" + text,
            lambda: text.replace(b"\n", b"\r"),
            lambda: text.replace(b"\n", b"\n\n"),
            lambda: text.replace(b"\n", b"\x00"),
            lambda: text.replace(b" ", b"\xc2\xa0"),
            lambda: text.replace(b",", b";"),
            lambda: text.replace(b"\n", b" "),
            lambda: b"\x00" * 4096 + text,
            lambda: text + b"\x00" * 4096,
            lambda: b"",
            lambda: b"\n",
            lambda: b"\x00",
            lambda: text[:1],
            lambda: gzip.compress(text),
            lambda: lzma.compress(text),
            lambda: b"[" * 100_000 + text,
            lambda: text + b"{" * 100_000,
            lambda: text + b"A" * (3 << 20),
            lambda: os.urandom(5000),
        ]
    )()


CONTENTS: Mapping[str, Attack] = {
    "number": number,
    "script": script,
    "many numbers": many_numbers,
    "value": value,
    "odd text": odd_text,
    "whole file": whole_file,
}


def container(path: Path, text: bytes, chance: random.Random) -> str:
    """Put the content into a file that is packed in some broken way, or is no file at all; return what was done."""
    packed, other = gzip.compress(text), lzma.compress(text)
    files: dict[str, tuple[str, bytes]] = {
        "gz cut": (".gz", packed[: chance.randrange(1, len(packed))]),
        "gz with garbage": (".gz", packed + b"garbage"),
        "gz with zeros": (".gz", packed + b"\x00" * 512),
        "gz bit": (".gz", flipped(packed, chance)),
        "gz of gz": (".gz", gzip.compress(packed)),
        "two members": (".gz", packed + gzip.compress(text)),
        "bomb": (".gz", gzip.compress(b"1, 2, 3, 4\n" * 3_000_000, 1)),
        "bomb of zeros": (".xz", lzma.compress(bytes(60 << 20), preset=0)),
        "plain called gz": (".gz", text),
        "gz called xz": (".xz", packed),
        "xz cut": (".xz", other[: chance.randrange(1, len(other))]),
        "xz bit": (".xz", flipped(other, chance)),
        "zst of nothing": (".zst", b"\x28\xb5\x2f\xfd"),
        "plain called zst": (".zst", text),
        "plain called bz2": (".bz2", text),
    }
    things: dict[str, Callable[[], object]] = {
        "zip": lambda: zipped(path, text),
        "pipe": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to(path.name),
        "dangling": lambda: path.symlink_to("nowhere"),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "full": lambda: path.symlink_to("/dev/full"),
        "folder": lambda: path.mkdir(),
        "folder loop": lambda: (path.mkdir(), (path / "again").symlink_to("..")),
        "socket": lambda: bound(path),
        "no UTF-8": lambda: Path(os.fsdecode(os.fsencode(path.parent) + b"/\xff\xfe\n" + os.fsencode(path.name))).write_bytes(
            text
        ),
        "a name like a word": lambda: (path.parent / f"--help={path.name}").write_bytes(text),
        "a name with a terminal's words": lambda: (path.parent / f"\x1b[2J{path.name}").write_bytes(text),
    }
    kind = chance.choice([*files, *things])
    if kind in files:
        path.with_name(path.name + files[kind][0]).write_bytes(files[kind][1])
    else:
        things[kind]()
    return kind


def flipped(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def zipped(path: Path, text: bytes) -> None:
    with zipfile.ZipFile(path.with_name(path.name + ".zip"), "w") as out:
        out.writestr(path.name, text)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
        server.bind("s")


def commands(folder: Path, chance: random.Random) -> Iterator[list[str]]:
    """Yield the commands of an attack: what looks at files first, then some of all others."""
    there, out = str(folder / "run"), str(folder / "out")
    files = sorted((folder / "run").iterdir(), key=lambda path: os.fsencode(path.name)) or [folder / "run"]
    yield ["inspect", chance.choice([there, str(files[0])])]
    others = [
        ["percentiles", there, "--step", "all"],
        ["percentiles", there, "-o", f"{out}.csv", "--bounds", "--by", "host,op,kind"],
        ["percentiles", str(files[0])],
        ["load", there, "--store", f"sqlite:{out}.db", "--run", "r"],
        ["watch", there, "--store", f"sqlite:{out}w.db", "--run", "r", "--until-idle", "60ms", "--interval", "20ms"],
        ["report", there, "-o", f"{out}.html"],
        ["explain", there],
        ["check", there, "--sla", "p99<5ms"],
        ["compare", there, there],
        ["heatmap", there],
        ["distribution", there],
        ["export", there, "-o", f"{out}.hlog"],
        ["capacity", there, "--sla", "p99<5ms"],
        ["offsets", there],
        ["events", there],
        ["inspect", "--json", there],
    ]
    yield from chance.sample(others, 3)


class Hung(BaseException):
    """A command took too long."""


def end(*_: object) -> None:
    raise Hung


def done(words: list[str]) -> str | None:
    """Return what is wrong with how a command ends, None if nothing is."""
    out, err = io.StringIO(), io.StringIO()
    for number in (signal.SIGALRM, signal.SIGVTALRM):
        signal.signal(number, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    signal.alarm(AT_ALL)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except Hung:
        return f"took more than {SECONDS} s"
    except Exception:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    text = out.getvalue() + err.getvalue()
    if code == 70 or "internal error" in text or "Traceback" in text:
        return f"exit status {code}: {err.getvalue()[-3000:]}"
    return "words for the terminal are passed on" if "\x1b[2J" in text or "\x1b[31m" in text else None


def attacked(name: str, seed: int) -> list[str]:
    """Return the faults that an attack on a format finds."""
    recorded, chance, faults = FORMATS[name], random.Random(f"{name} {seed}"), []
    content = content_of(recorded)
    kind = chance.choice([*CONTENTS, "container"])
    with tempfile.TemporaryDirectory(prefix="attack-") as place:
        folder = Path(place)
        (folder / "run").mkdir()
        for other in recorded.beside:
            shutil.copy(DATA / other, folder / "run")
        path = folder / "run" / (recorded.name or Path(recorded.path).name.removesuffix(".xz"))
        if kind == "container":
            kind = container(path, content, chance)
        else:
            damaged = CONTENTS[kind](content, chance)
            path.write_bytes(damaged)
            faults += silent(recorded, kind, content, damaged)
        words: list[str] = []
        for words in commands(folder, chance):
            wrong = done(words)
            if wrong:
                faults.append(f"{' '.join(words)}: {wrong}")
    return [f"{name}, {kind}, seed {seed}: {fault}" for fault in faults]


def silent(recorded: Recorded, kind: str, content: bytes, damaged: bytes) -> list[str]:
    """Return what is wrong with the number of samples after an attack on what a file holds."""
    if damaged == content:
        return []
    try:
        before, after = told(recorded, content), told(recorded, damaged)
    except Exception:
        return [traceback.format_exc()]
    way = outcome(recorded.rule, damaged, before, after)
    if way == SILENT or (way == NOT_SEEN and recorded.whole):
        return [f"{before.samples} -> {after.samples} samples in silence"]
    return (
        [f"(look) {way}: {before.samples} -> {after.samples}"]
        if LOOK and (way == NOT_SEEN or (way == SAME and kind == "script"))
        else []
    )


LOOK = False

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--look", action="store_true", help="print what may be a fault, too")
    arguments = parser.parse_args()
    LOOK, chance = arguments.look, random.Random(arguments.seed)
    for trial in range(arguments.trials):
        for fault in attacked(chance.choice([*FORMATS]), arguments.seed * 1_000_000 + trial):
            print(fault, flush=True)
    print(f"{arguments.trials} attacks", file=sys.stderr)
