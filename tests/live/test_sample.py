"""`tailboard record sample`: polls keep to the clock, and whatever happens to it or to what it asks, the file has whole lines alone."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as tailboard
from ingest.core.errors import InputError
from ingest.live import sample
from ingest.live.sample import Reply, SampleLog, Sampler, Stop, ask, inlined
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from tests.effort import figure

MS, SECOND = 1_000_000, 1_000_000_000


def script(folder: Path, text: str) -> str:
    path = folder / "asked.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def records(path: Path) -> list[dict]:
    """All records; every line has to be whole."""
    text = path.read_text()
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def polls(path: Path) -> list[dict]:
    return [record for record in records(path) if record["record"] == "poll"]


class Turned:
    """A clock that only turns where something takes time."""

    def __init__(self) -> None:
        self.ns = 5 * SECOND

    def now(self) -> int:
        return self.ns

    def wall(self) -> int:
        return 1_700_000_000 * SECOND + self.ns

    def wait(self, duration_ns: int) -> None:
        self.ns += duration_ns


class Kept:
    def __init__(self) -> None:
        self.records: list[dict] = []

    def write(self, line: str, before: str = "") -> str:
        assert line.count("\n") == 1
        self.records.append(json.loads(line, parse_float=Decimal))
        return ""


@settings(max_examples=figure(30, 300), deadline=None)
@given(st.lists(st.integers(0, 4500), min_size=1, max_size=12), st.integers(1, 30))
def test_polls_keep_to_the_clock_and_each_tick_is_asked_or_missed(lasting: list[int], ticks: int) -> None:
    """Brute force: tick by tick, the one that is due while the poll before still runs is missed."""
    clock, kept, left, said = Turned(), Kept(), list(lasting), []
    starts: list[int] = []

    def asked(_command, _timeout, _stop) -> Reply:
        starts.append(clock.ns)
        clock.ns += (left.pop(0) if left else 10) * MS
        return Reply(0, b"{}")

    every, begin = SECOND, clock.ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "ask", asked)
        Sampler(("x",), every, SECOND, "h", kept.write, clock, Stop(), said.append, (ticks - 1) * SECOND).run()
    wanted, missed, free, durations = [], 0, begin, [*lasting, *([10] * ticks)]
    for tick in range(ticks):
        due = begin + tick * every
        if due < free:
            missed += 1
            continue
        wanted.append(due)
        free = due + durations[len(wanted) - 1] * MS
    assert starts == wanted
    gaps = [record for record in kept.records if record["record"] == "missed"]
    assert sum(record["polls"] for record in gaps) == missed and len(said) == len(gaps)
    held = [
        tick for record in gaps for tick in range(int((record["from"] - 1_700_000_005)), int((record["to"] - 1_700_000_005)) + 1)
    ]
    assert sorted([*held, *((start - begin) // SECOND for start in starts)]) == list(range(ticks))


def test_a_machine_that_slept_misses_polls_and_keeps_to_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, kept, said = Turned(), Kept(), []
    asleep = iter([0, 0, 7, 0, 0])
    monkeypatch.setattr(
        clock, "wait", lambda duration: setattr(clock, "ns", clock.ns + duration + next(asleep, 0) * SECOND + 3 * MS)
    )
    monkeypatch.setattr(sample, "ask", lambda *_: Reply(0, b"[]"))
    Sampler(("x",), SECOND, SECOND, "h", kept.write, clock, Stop(), said.append, 12 * SECOND).run()
    [gap] = [record for record in kept.records if record["record"] == "missed"]
    assert (gap["polls"], gap["to"] - gap["from"]) == (7, 6) and "stood still" in gap["why"]
    at = [record["sampled_at"] - 1_700_000_005 for record in kept.records if record["record"] == "poll"]
    assert [round(float(stamp)) for stamp in at] == [0, 1, 9, 10, 11, 12]


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=figure(25, 500), deadline=None)
@given(JSON, st.sampled_from([None, 1, "\t\r "]))
def test_json_is_inlined_as_it_is_and_all_else_is_text(value: object, indent) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
    line = inlined(text)
    assert "\n" not in line
    assert json.loads(line) == (value if isinstance(value, (list, dict)) else text)


def test_numbers_are_kept_as_they_were_written() -> None:
    assert inlined('{"a" : 1.50,\n "b": [12345678901234567890, 1e400]}') == '{"a":1.50,"b":[12345678901234567890,1e400]}'
    assert inlined('{"a": NaN}') == '"{\\"a\\": NaN}"'  # other tools could not read it
    assert inlined("{broken") == '"{broken"'


@pytest.mark.parametrize(
    ("text", "status", "error", "said", "stderr"),
    [
        ("echo '{\"a\": 1}'; echo careful >&2", 0, None, {"a": 1}, "careful\n"),
        ("echo a b", 0, None, "a b\n", None),
        ("printf 'a\\377b'", 0, None, "a\ufffdb", None),
        ("echo part; echo no >&2; exit 7", 7, "exit status 7", "part\n", "no\n"),
        ("kill -9 $$", -9, "ended by SIGKILL", None, None),
        ("true", 0, "it said nothing", None, None),
    ],
)
def test_what_a_command_says_is_kept(tmp_path: Path, text: str, status: int, error, said, stderr) -> None:
    path = tmp_path / "s.ndjson"
    words = ["sample", "--every", "1s", "--for", "1ms", "--host", "h1", "-o", str(path), "--", script(tmp_path, text)]
    assert tailboard(words) == (3 if error else 0)
    [poll] = polls(path)
    assert [poll.get(name) for name in ("status", "error", "said", "stderr", "host")] == [status, error, said, stderr, "h1"]
    assert abs(poll["sampled_at"] - time.time()) < 60 and poll["command"].endswith("asked.sh")
    assert [record["record"] for record in records(path)] == ["begin", "poll", "end"]


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    name = script(tmp_path, f"sleep 77 & echo $! > {tmp_path}/child; wait")
    reply = ask((name,), 200 * MS, Stop())
    assert reply.error == "killed: it took longer than 200ms" and reply.status is None
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    patience = time.monotonic() + 10  # a signal was sent: on a busy machine it has not arrived yet
    while _is_alive(child) and time.monotonic() < patience:
        time.sleep(0.01)
    assert not _is_alive(child)


def _is_alive(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_child_that_holds_the_output_open_is_no_hang(tmp_path: Path) -> None:
    reply = ask((script(tmp_path, "setsid sleep 3 & echo x"),), 150 * MS, Stop())
    assert "still open" in reply.error


def test_a_command_without_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "MOST_SAID", 1 << 18)
    reply = ask(("yes",), 30 * SECOND, Stop())
    assert "said more than" in reply.error and not reply.said
    reply = ask(("sh", "-c", f"head -c {(1 << 18) + 1} /dev/zero"), 30 * SECOND, Stop())  # ends by itself
    assert "said more than" in reply.error and not reply.said


def test_what_is_asked_may_come_back(tmp_path: Path) -> None:
    """Fails at every second call; each failure is a record, the recovery is said."""
    count, kept, said = tmp_path / "n", Kept(), []
    name = script(
        tmp_path,
        f'n=$(cat {count} 2>/dev/null || echo 0); echo $((n+1)) > {count}; [ $((n % 2)) = 0 ] && echo "{{}}" || {{ echo down >&2; exit 1; }}',
    )
    Sampler((name,), SECOND, 60 * SECOND, "h", kept.write, Turned(), Stop(), said.append, 3 * SECOND).run()
    assert ["said" in record for record in kept.records if record["record"] == "poll"] == [True, False, True, False]
    assert said == [down := "no answer: exit status 1: down", "answers again after 1 poll without an answer", down]


def test_a_command_that_is_not_there_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tailboard(["sample", "-o", str(tmp_path / "s"), "--", "no-such-command-here"]) == 2
    assert "no-such-command-here" in capsys.readouterr().err and not (tmp_path / "s").exists()


def test_another_file_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (
        ("a", "my notes\n"),
        ("b", '{"sampled_at":1.5}\nmy notes'),
        ("c", "x"),
        ("e", '{"sampled_at":1.5,"dump":{}}\n'),
    ):
        (tmp_path / name).write_text(text)
        assert tailboard(["sample", "-o", str(tmp_path / name), "--", "true"]) == 3
        assert "is no file that tailboard record sample writes" in capsys.readouterr().err
        assert (tmp_path / name).read_text() == text
    first = SampleLog(tmp_path / "d")
    with pytest.raises(InputError, match="another tailboard record sample"):
        SampleLog(tmp_path / "d")
    first.close()
    SampleLog(tmp_path / "d").close()


@settings(max_examples=figure(25, 300), deadline=None)
@given(st.data())
def test_a_file_that_was_cut_at_any_byte_is_mended(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("s") / "s.ndjson"
    lines = [f'{{"sampled_at":17000000{at:02}.000000001,"record":"poll","said":"{"x" * at * 9000}"}}\n' for at in range(12)]
    whole = "".join(lines).encode()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    log = SampleLog(path)
    kept = whole[:cut].rfind(b"\n") + 1
    assert log.cut == cut - kept and path.read_bytes() == whole[:kept]
    count = whole[:kept].count(b"\n")
    assert log.last_ns == (None if not count else 1_700_000_000 * SECOND + (count - 1) * SECOND + 1)
    log.write("more\n")
    log.close()
    assert path.read_bytes() == whole[:kept] + b"more\n"


def test_a_full_disk_costs_one_poll_and_no_other_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    log = SampleLog(path)
    assert log.write('{"sampled_at":1}\n') == ""
    real = os.write

    def full(number: int, data) -> int:
        if len(data) < 5:
            raise OSError(28, "No space left on device")
        return real(number, data[:5])

    monkeypatch.setattr(os, "write", full)
    assert log.write('{"sampled_at":2, "long": 1}\n') == "No space left on device"
    monkeypatch.undo()
    assert log.write('{"sampled_at":3}\n') == ""
    log.close()
    assert path.read_text() == '{"sampled_at":1}\n{"sampled_at":3}\n'


def test_a_file_that_is_renamed_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "s"
    log = SampleLog(path)
    log.write('{"sampled_at":1}\n')
    path.rename(tmp_path / "s.1")
    log.write('{"sampled_at":2}\n')
    log.close()
    assert [(tmp_path / name).read_text() for name in ("s.1", "s")] == ['{"sampled_at":1}\n', '{"sampled_at":2}\n']


@pytest.mark.parametrize("how", ["rename", "copytruncate"])
def test_a_file_that_follows_another_begins_with_the_last_answer_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how
) -> None:
    """Else what was counted between the two would be in neither file: each alone, both, and both put together hold it once."""
    path, older, clock = tmp_path / "s.ndjson", tmp_path / "s.ndjson.1", Turned()
    counts = iter([5, 9, 20, 24])

    def asked(*_: object) -> Reply:
        if len(polls(path)) == 2 and not older.exists():
            if how == "rename":
                path.rename(older)
            else:
                older.write_bytes(path.read_bytes())
                os.truncate(path, 0)
        return Reply(0, json.dumps({"get": {"calls": (n := next(counts)), "histogram_usec": {"1": 0, "2": n}}}).encode())

    monkeypatch.setattr(sample, "ask", asked)
    Sampler(("x",), SECOND, SECOND, "h", SampleLog(path).write, clock, Stop(), print, 3 * SECOND).run()
    assert [record["record"] for record in records(path)] == ["before", "poll", "poll", "end"]
    assert records(path)[0] == {**records(older)[-1], "record": "before"}
    (tmp_path / "both.ndjson").write_bytes(path.read_bytes() + older.read_bytes())
    for files, count in (([path], 15), ([older], 4), ([older, path], 19), ([tmp_path / "both.ndjson"], 19)):
        answer = Files(files, ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
        assert sum(int(part.samples.sum()) for part in answer.parts) == count


def test_polls_that_could_not_be_written_are_noted_when_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, kept, said = Turned(), Kept(), []
    full = iter([False, False, True, True, False])

    def write(line: str, before: str = "") -> str:
        if next(full, False):
            return "No space left on device"
        kept.records += [json.loads(part) for part in line.splitlines()]
        return ""

    monkeypatch.setattr(kept, "write", write)
    monkeypatch.setattr(sample, "ask", lambda *_: Reply(0, b"{}"))
    run = Sampler(("x",), SECOND, SECOND, "h", kept.write, clock, Stop(), said.append, 4 * SECOND)
    run.run()
    assert [record["record"] for record in kept.records] == ["begin", "poll", "missed", "poll", "poll", "end"]
    gap = kept.records[2]
    assert (gap["polls"], gap["to"] - gap["from"], gap["to"]) == (2, 1, gap["sampled_at"])
    assert (run.answered, run.missed) == (3, 2) and len(said) == 2


def test_a_folder_that_goes_away_costs_polls_until_it_is_back(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    log = SampleLog(tmp_path / "f" / "s")
    assert log.write("1\n") == ""
    (tmp_path / "f").rename(tmp_path / "g")
    assert "No such file" in log.write("2\n") and "No such file" in log.write("3\n")
    (tmp_path / "g").rename(tmp_path / "f")
    (tmp_path / "f" / "s").write_text("")
    assert log.write("4\n") == ""
    log.close()
    assert (tmp_path / "f" / "s").read_text() == "4\n"


def test_a_disk_without_locks_is_no_second_sampler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(InputError, match=r"cannot be locked \(No locks available\)"):
        SampleLog(tmp_path / "s")


def test_the_clock_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: asked.append(clock) or 7)
    assert sample.RealClock(Stop()).now() == 7 and asked == [time.CLOCK_BOOTTIME]


def started(path: Path, command: str, every: str = "20ms", *more: str) -> subprocess.Popen:
    words = [sys.executable, "-m", "ingest", "sample", "--every", every, *more, "-o", str(path), "--", command]

    def as_in_a_terminal() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal)


def await_size(path: Path, least: int, process: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.stat().st_size > least:
            return
        time.sleep(0.01)
    raise AssertionError(f"it did not come: {process.stderr.read() if process.stderr else ''}")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGINT, signal.SIGHUP))]
)
def test_a_signal_ends_it_at_once_with_whole_lines(tmp_path: Path, number: signal.Signals) -> None:
    """The second poll hangs: it is killed, and noted."""
    path = tmp_path / "s"
    process = started(
        path,
        script(tmp_path, f"[ -e {tmp_path}/n ] && {{ touch {tmp_path}/hangs; sleep 99; }}; touch {tmp_path}/n; echo '{{}}'"),
        "400ms",
        "--timeout",
        "1h",
    )
    end = time.monotonic() + 30
    while not (tmp_path / "hangs").exists() and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == (130 if number == signal.SIGINT else 0)
    assert [record["record"] for record in records(path)] == ["begin", "poll", "missed", "end"]
    assert records(path)[-1]["why"] == number.name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(figure(3, 3, 40)))
def test_kills_cost_at_most_the_last_line(tmp_path: Path, seed: int) -> None:
    """Lines of 2 MB, so that kills hit the middle of writes; what was whole before stays, byte for byte."""
    chance, path = random.Random(seed), tmp_path / "s"
    (tmp_path / "big").write_text(json.dumps({"x": "y" * 2_000_000}))
    name = script(tmp_path, f"cat {tmp_path}/big")
    before = b""
    for _ in range(2):
        process = started(path, name)
        await_size(path, len(before) + chance.randrange(10**4, 10**7), process)
        process.kill()
        process.communicate()
        now = path.read_bytes()
        whole = now[: now.rfind(b"\n") + 1]
        assert whole.startswith(before)
        for line in whole.splitlines():
            json.loads(line)
        before = whole
    log = SampleLog(path)
    log.close()
    assert path.read_bytes() == before


def test_a_restart_says_how_long_nothing_was_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s"
    stamp = int(time.time()) - 100
    path.write_text(f'{{"sampled_at":{stamp}.000000000,"record":"poll","host":"h","command":"c","said":{{}}}}\n{{"sampled_at":17')
    assert tailboard(["sample", "--every", "10s", "--for", "1ms", "-o", str(path), "--", "true"]) == 3
    told = capsys.readouterr().err
    assert "took away 16 bytes" in told and "tailboard record sample did not run" in told
    gap = records(path)[2]
    assert gap["record"] == "missed" and gap["polls"] == 10 and gap["from"] == stamp + 10


def test_without_a_file_records_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tailboard(["sample", "--for", "1ms", "--", script(tmp_path, "echo -- $1 --for"), "--for"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["record"] for line in lines] == ["begin", "poll", "end"] and lines[1]["said"] == "-- --for --for\n"


def test_a_signal_at_any_moment_ends_a_wait() -> None:
    """Thousands of them around a wait's beginning and end: watch and sample end with the first, and hang at none."""
    script = """
import random, signal
from ingest.live.sample import Stop
random.seed(1)
for _ in range(4000):
    stop = Stop()
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, random.random() * 1e-4 + 1e-6)
    while not stop.why:
        stop.wait(2e-5)
    stop.wait(3600)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=Path(__file__).parents[2])
