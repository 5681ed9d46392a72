"""The script that stands in for fio on the clients of CBT: what it adds, what it leaves alone, and what comes out of it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingest.cli.wrap_fio import script
from tests import commands

FIO = "/usr/bin/fio"
SHELLS = [
    pytest.param(words, marks=[] if shutil.which(words[0]) else [pytest.mark.skip(reason=f"no {words[0]} here")], id=words[0])
    for words in (["dash"], ["busybox", "sh"], ["bash", "--posix"])
]
# For tables of words: every shell reads the same script, and what shells differ in has tests of its own.
FIRST = [SHELLS[0], *(pytest.param(*one.values, marks=[*one.marks, pytest.mark.slow], id=one.id) for one in SHELLS[1:])]


def tailboard(*words: object, status: int = 0) -> subprocess.CompletedProcess:
    done = commands.tailboard(*words, text=False)
    assert done.returncode == status, done.stderr.decode()
    return done


def executable(path: Path, text: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    path.chmod(0o755)
    return path


def wrapped(fio: object, folder: Path, msec: int = 1000) -> Path:
    return executable(folder / "fio", script(str(fio), msec))


def fake(folder: Path, version: str = "fio-3.33", then: str = "cat /proc/$$/cmdline") -> Path:
    """A program that says its version, and otherwise hands out its own command line as the kernel has it."""
    text = f'#!/bin/sh\nif [ $# = 1 ] && [ "$1" = --version ]; then printf "%s\\n" {shlex.quote(version)}; exit; fi\n{then}\n'
    return executable(folder / "fio", text.encode())


def passed_on(words: list[str], shell: list[str], wrapper: Path, real: Path) -> tuple[list[str], str]:
    """The arguments that reach fio, and what the script says."""
    done = subprocess.run([*shell, wrapper, *words], capture_output=True)
    assert done.returncode == 0
    interpreter, path, *rest = done.stdout.split(b"\0")[:-1]
    assert (interpreter, path) == (b"/bin/sh", os.fsencode(real))
    return [os.fsdecode(word) for word in rest], done.stderr.decode(errors="replace")


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> tuple[Path, Path]:
    """A wrapper with its fake fio."""
    real = fake(tmp_path_factory.mktemp("real"))
    return wrapped(real, tmp_path_factory.mktemp("wrapper")), real


HIST = ["--write_hist_log=d/o.0", "--log_hist_msec=1000"]
CBT = "--rw=randwrite --output-format={} --bs=4096 --name=a --write_iops_log=d/o.0 --write_bw_log=d/o.0 --write_lat_log=d/o.0".split()


def cbt(formats: str) -> list[str]:
    return [word.format(formats) for word in CBT]


@pytest.mark.parametrize("shell", FIRST)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (cbt("json"), [*cbt("json+"), *HIST]),
        (cbt("json,normal"), [*cbt("json+,normal"), *HIST]),
        (cbt("normal,json,terse,json"), [*cbt("normal,json+,terse,json+"), *HIST]),
        (cbt("json+"), [*cbt("json+"), *HIST]),
        (cbt("normal"), [*cbt("normal"), *HIST]),
        (["--write_lat_log=p", "--name=a"], ["--write_lat_log=p", "--write_hist_log=p", "--log_hist_msec=1000", "--name=a"]),
        (["--write_lat_log", "d/o.0", "--name=a"], ["--write_lat_log", "d/o.0", *HIST, "--name=a"]),
        (["-write_lat_log=d/o.0"], ["-write_lat_log=d/o.0", *HIST]),
        (["-write_lat_log", "d/o.0"], ["-write_lat_log", "d/o.0", *HIST]),
        (["--write_lat=d/o.0", "--output-f", "json"], ["--write_lat=d/o.0", *HIST, "--output-f", "json+"]),
        (["--write_lat_log=d/o.0", "-F", "json"], ["--write_lat_log=d/o.0", *HIST, "-F", "json+"]),
        (["--write_lat_log=d/o.0", "-Fjson"], ["--write_lat_log=d/o.0", *HIST, "-Fjson+"]),
        (["--write_lat_log=d/o.0", "--output-format", "json"], ["--write_lat_log=d/o.0", *HIST, "--output-format", "json+"]),
        (["--write_lat_log=a=b"], ["--write_lat_log=a=b", "--write_hist_log=a=b", "--log_hist_msec=1000"]),
        (["--write_lat_log=d/o.0", "--log_hist_msec=50"], ["--write_lat_log=d/o.0", HIST[0], "--log_hist_msec=50"]),
        (["--write_lat_log=d/o.0", "--log_compression=0"], ["--write_lat_log=d/o.0", *HIST, "--log_compression=0"]),
        (["--name=a", "--write_lat_log=d/o.0", "--name=b", "--write_lat_log=q"],
         ["--name=a", "--write_lat_log=d/o.0", *HIST, "--name=b", "--write_lat_log=q", "--write_hist_log=q", "--log_hist_msec=1000"]),
        (["--write_lat_log=d/o.0", "--status-interval=1", "--output-format=json"],
         ["--write_lat_log=d/o.0", *HIST, "--status-interval=1", "--output-format=json+"]),
        # histograms that are asked for already stay as they are, json+ tells their last interval
        (["--write_lat_log=p", "--write_hist_log=q", "--output-format=json"], ["--write_lat_log=p", "--write_hist_log=q", "--output-format=json+"]),
        (["--write_hist=q", "--write_lat_log=p"], ["--write_hist=q", "--write_lat_log=p"]),
        (["--write_hist_log", "q", "--write_lat_log=p"], ["--write_hist_log", "q", "--write_lat_log=p"]),
    ],
)  # fmt: skip
def test_what_is_added(shell, before, after, pair) -> None:
    assert passed_on(before, shell, *pair)[0] == after


@pytest.mark.parametrize("shell", FIRST)
@pytest.mark.parametrize(
    "words",
    [
        [],
        "--ioengine=rbd --rw=write --numjobs=1 --bs=4M --size 65536M --name=a --output-format=json,normal".split(),
        "--rw=write -ioengine=sync --bs=4M --size 1M --name=/dev/vdb --output-format=json".split(),
        ["--write_iops_log=p", "--write_bw_log=p", "--output-format=json"],
        ["--name=a", "--write_lat_log"],
        ["--name=a", "--write_lat_log=", "--output-format=json"],
        ["--output-format"],
        ["--", "--write_lat_log=p", "--output-format=json"],
        ["--server", "--write_lat_log=p", "--output-format=json"],
        ["--server=ip:127.0.0.1,8765", "--daemonize=/run/fio.pid", "--write_lat_log=p"],
        ["--parse-only", "--write_lat_log=p", "--output-format=json"],
        ["--showcmd", "--write_lat_log=p", "--output-format=json"],
        ["--write_lat_log=p", "--output-format=json", "--version"],
        ["--cmdhelp=write_lat_log"],
        ["--enghelp"],
        ["--help"],
        ["-", "/nowhere/job.fio", "."],
        ["", " ", "\n", "*", "?", "[a-z]", "~", "$HOME", "`id`", "$(id)", "'", '"', "\\", "\\n", "%s", "-n", "-e", "--", "-F"],
    ],
    ids=lambda words: " ".join(words)[:30] or "none",
)
def test_what_is_passed_on_as_it_came_and_without_a_word(shell, words, pair) -> None:
    assert passed_on(words, shell, *pair) == (words, "")


WORDS = [b"--name=a", b"--name", b"-", b"--", b"--rw=randrw", b"--filename=/dev/x:/dev/y", b"--write_lat_log=p", b"--write_lat_log",
         b"-write_lat_log=p q", b"--write_lat=*", b"--write_lat_log=", b"--output-format=json", b"--output-format", b"json", b"json,normal",
         b"-Fjson", b"-F", b"--output-format=,json,,json+", b"--output-format=normal", b"--log_avg_msec=100", b"job.fio",
         b"--log_hist_msec=50", b"--log_hist_msec", b"--write_hist_log=q", b"--client=h", b"--log_compression=1m", b"--log_compression", b"0"]  # fmt: skip
ANY = st.one_of(
    st.sampled_from(WORDS),
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"")),
    st.binary(max_size=8).map(lambda raw: b"--write_lat_log=" + raw.replace(b"\0", b"")),
)


NO_VALUE_YET = (
    b"write_lat_log",
    b"write_hist_log",
    b"log_hist_msec",
    b"log_compression",
    b"log_store_compressed",
    b"output-format",
)
UNTOUCHED = (
    b"parse-only",
    b"P",
    b"showcmd",
    b"s",
    b"server",
    b"S",
    b"help",
    b"h",
    b"version",
    b"v",
    b"cmdhelp",
    b"c",
    b"enghelp",
    b"i",
)


def meant(words: list[bytes]) -> list[tuple[bytes, bytes | None]]:
    """What each argument is to fio: (option, value), the value None where the next argument holds it; ("", ...) for none."""
    found: list[tuple[bytes, bytes | None]] = []
    ended = False
    for word in words:
        if found and found[-1][1] is None:
            found.append((found[-1][0], word))
            continue
        ended = ended or word == b"--"
        name, equals, value = word.lstrip(b"-").partition(b"=") if re.match(rb"-[^-]|--.", word, re.DOTALL) else (b"", b"", b"")
        name = name if word[:3].count(b"-") < 3 else b"-" * (len(word) - len(word.lstrip(b"-")) - 2) + name
        if word.startswith(b"-F"):
            name, equals, value = b"output-format", word[2:3], word[2:]
        for start, full in (
            (b"write_l", b"write_lat_log"),
            (b"write_his", b"write_hist_log"),
            (b"log_hist_m", b"log_hist_msec"),
            (b"output-", b"output-format"),
        ):
            name = full if name.startswith(start) and full.startswith(name) else name
        found.append((b"", word) if ended else (name, None if name in NO_VALUE_YET and not equals else value))
    return found


def passed(words: list[bytes]) -> list[bytes]:
    """What fio 3.33 is to get."""
    found = meant(words)
    names = [name for name, _ in found]
    if set(names) & set(UNTOUCHED) or not any(name == b"write_lat_log" and value for name, value in found):
        return words
    told = [value or b"" for name, value in found if name == b"output-format" and value is not None]
    packed = any(name in (b"log_compression", b"log_store_compressed") and value not in (b"0", None) for name, value in found)
    after = []
    for word, (name, value) in zip(words, found, strict=True):
        if name == b"output-format" and value is not None and b"json" in told[-1].split(b","):
            before = word[: len(word) - len(value)]
            after.append(before + b",".join(b"json+" if one == b"json" else one for one in value.split(b",")))
        else:
            after.append(word)
        if name == b"write_lat_log" and value and not packed and not {b"write_hist_log", b"client", b"C"} & set(names):
            after += [b"--write_hist_log=" + value] + (
                [] if any(name == b"log_hist_msec" and value is not None for name, value in found) else [b"--log_hist_msec=1000"]
            )
    return after


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(ANY, max_size=12))
@example(words=[b"--write_lat_log=" + bytes(range(1, 256)), bytes(range(1, 256)), bytes(range(255, 0, -1))])
@example(words=[b"--write_lat_log=a\n", b"--output-format=json\n", b"\n\n", b"a\n"])
@example(words=[b"--write_lat_log=\x81\x88\xff", b"\x81\x82", b"--output-format=\x81,json,\xe9"])
@example(words=[b"---write_lat_log=p", b"--=", b"-=", b"--write_lat_log=p", b"--write_lat_log"])
def test_any_argument_arrives_as_it_was(shell, locale, words, pair) -> None:
    environment = os.environ | {"LC_ALL": locale}
    done = subprocess.run([*shell, pair[0], *words], capture_output=True, cwd=pair[0].parent, env=environment)
    assert done.stdout.split(b"\0")[2:-1] == passed(words)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_hundreds_of_arguments(shell, pair) -> None:
    words = [f"--section-{number}=a b" for number in range(600)]
    before = [*words, "--write_lat_log=d/o.0", *words]
    assert passed_on(before, shell, *pair)[0] == [*words, "--write_lat_log=d/o.0", *HIST, *words]


@pytest.mark.parametrize("shell", FIRST)
@pytest.mark.parametrize(
    ("version", "histogram", "plus", "said"),
    [
        ("fio-3.33", True, True, ""),
        ("fio-3.42-dev", True, True, ""),
        ("fio-3.42-20-gf5344-dirty", True, True, ""),
        ("fio-3.17", True, True, ""),
        ("fio-4.0", True, True, ""),
        ("fio-3.5", True, True, ""),
        ("fio-2.14", True, True, ""),
        ("fio-2.99", True, True, ""),
        ("fio-3.6", False, True, "this is fio 3.6, and fio 3.6 to 3.16 damage them"),
        ("fio-3.10", False, True, "this is fio 3.10"),
        ("fio-3.16-64-gfc22", False, True, "this is fio 3.16"),
        ("fio-2.2.10", False, False, "this is fio 2.2, and they begin with fio 2.14"),
        ("fio-2.1.11", False, False, "this is fio 2.1"),
        ("fio-1.59", False, False, "this is fio 1.59"),
        ("my own build", False, False, "cannot be determined"),
        ("fio-next", False, False, "cannot be determined"),
        ("fio-3", False, False, "cannot be determined"),
        ("fio-3.x", False, False, "cannot be determined"),
        ("fio-3a.33", False, False, "cannot be determined"),
        ("fio-99999999999999999999.1", False, False, "cannot be determined"),
        ("", False, False, "cannot be determined"),
        ("fio-08.09", True, True, ""),
    ],
)
def test_versions(shell, version, histogram, plus, said, tmp_path: Path) -> None:
    real = fake(tmp_path / "real", version)
    words, told = passed_on(cbt("json"), shell, wrapped(real, tmp_path), real)
    assert words == [*cbt("json+" if plus else "json"), *(HIST if histogram else [])]
    assert (said in told) if said else told == ""


@pytest.mark.parametrize("shell", FIRST)
@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--client=h1"], "fio --client"),
        (["--client", "h1"], "fio --client"),
        (["--log_compression=1m"], "destroy histograms (log_compression)"),
        (["--log_compression", "1m"], "destroy histograms (log_compression)"),
        (["--log_store_compressed=1", "--log_compression=1m"], "destroy histograms"),
    ],
)
def test_where_fio_would_damage_them_no_histogram_log_is_added(shell, option, said, pair) -> None:
    words, told = passed_on([*option, *cbt("json")], shell, *pair)
    assert words == [*option, *cbt("json+")]
    assert told.startswith("tailboard: no histogram log is added: ") and said in told


@pytest.mark.parametrize("shell", SHELLS)
def test_output_that_is_text_stays_text(shell, pair) -> None:
    """Whoever reads the text (CBT's kvmrbdfio and rbdfio, scripts) would find JSON in the middle of it."""
    for formats in ("normal", "terse", "normal,terse"):
        words, told = passed_on(cbt(formats), shell, *pair)
        assert words == [*cbt(formats), *HIST]
        assert "fio prints text alone" in told and told.count("\n") == 1
    assert "fio prints text alone" in passed_on(["--write_lat_log=p"], shell, *pair)[1]


@pytest.mark.parametrize("shell", SHELLS)
def test_job_files_are_not_rewritten_but_the_two_lines_are_said(shell, pair, tmp_path: Path) -> None:
    logs = tmp_path / "my job.fio"
    logs.write_text("[global]\nrw=read\n  write_lat_log=x\n[j]\n")
    words, told = passed_on(["--output-format=json", str(logs)], shell, *pair)
    assert words == ["--output-format=json", str(logs)]
    assert f"tailboard: {logs} logs latencies, but no histograms" in told
    assert told.endswith("\n  write_hist_log=P\n  log_hist_msec=1000\n")
    logs.write_text("[global]\nwrite_lat_log=x\nwrite_hist_log=x\nlog_hist_msec=1000\n[j]\n")
    assert passed_on([str(logs)], shell, *pair)[1] == ""
    logs.write_text("[global]\nrw=read\n[j]\n")
    assert passed_on([str(logs)], shell, *pair)[1] == ""
    logs.write_bytes(os.urandom(200_000))
    assert passed_on([str(logs), "--size", str(logs)], shell, *pair)[1] == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_callers_environment_reaches_fio(shell, tmp_path: Path) -> None:
    """fio puts variables into job files; names that a script is likely to use for itself are no exception."""
    real = fake(tmp_path / "real", then="cat /proc/$$/environ")
    wrapper = wrapped(real, tmp_path)
    names = "fio msec n a i option value word name before last text version left FIO IFS PATH LC_ALL".split()
    given_ = {name: f"is {name}\n" for name in names} | {"PATH": "/nonexistent:/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run([shutil.which(shell[0]), *shell[1:], wrapper, *cbt("json")], env=given_, capture_output=True)
    reached = dict(line.split("=", 1) for line in done.stdout.decode().split("\0")[:-1])
    for of_the_shell in ("PWD", "OLDPWD", "SHLVL", "_"):
        reached.pop(of_the_shell, None)
    given_.pop("IFS"), reached.pop("IFS", None)  # a shell of its own takes none
    assert reached == given_


def test_input_status_process_and_signals_are_those_of_fio(tmp_path: Path) -> None:
    real = fake(tmp_path / "cat", then="cat; exit 7")
    real.write_text(real.read_text().replace("printf", "cat >/dev/null; printf", 1))  # asked for its version, it reads its input
    done = subprocess.run([wrapped(real, tmp_path / "a"), *cbt("json")], input=b"from stdin", capture_output=True)
    assert (done.returncode, done.stdout) == (7, b"from stdin")

    command = [wrapped(FIO, tmp_path / "b"), "--name=a", "--ioengine=null", "--size=1g", "--rw=read", "--rate_iops=500", "--time_based",
               "--runtime=60", f"--write_lat_log={tmp_path / 'p'}", "--log_hist_msec=100", "--output-format=json",
               "--status-interval=250ms"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    comm = Path(f"/proc/{process.pid}/comm")
    while not Path(f"/proc/{process.pid}/exe").samefile(FIO):
        assert comm.read_text() in ("fio\n", "python\n", "python3\n"), "killall finds it by its name at any time"
        time.sleep(0.01)
    assert comm.read_text() == "fio\n"
    next(line for line in process.stdout if re.search(r'"total_ios" : [1-9]', line))  # fio says so as soon as there are some
    process.send_signal(signal.SIGINT)
    printed = process.stdout.read()
    process.stdout.close()
    process.wait()
    found = json.loads(printed[printed.rindex("\n{") :])  # the last status is that of the end
    assert found["jobs"][0]["read"]["clat_ns"]["bins"]
    assert (tmp_path / "p_clat_hist.1.log").stat().st_size > 0


def test_the_path_of_fio_is_quoted(tmp_path: Path) -> None:
    for name in ("it's", "a b", "$HOME", "`id`", '"', "\\", "'@MSEC@'", "@FIO@", "new\nline", "*", "caf\udce9"):
        real = fake(tmp_path / name)
        wrapper = wrapped(real, tmp_path / "w")
        assert passed_on(cbt("json"), ["dash"], wrapper, real) == ([*cbt("json+"), *HIST], "")


def test_the_command_prints_the_script_and_the_interval_can_be_chosen(tmp_path: Path) -> None:
    real = fake(tmp_path / "real")
    assert tailboard("wrap-fio", "--fio", real).stdout == script(str(real), 1000)
    wrapper = executable(tmp_path / "fio", tailboard("wrap-fio", "--fio", real, "--log-hist-msec", 250).stdout)
    words, _ = passed_on(["--write_lat_log=p"], ["dash"], wrapper, real)
    assert words == ["--write_lat_log=p", "--write_hist_log=p", "--log_hist_msec=250"]
    tailboard("wrap-fio", "--log-hist-msec", 0, status=2)
    assert tailboard("wrap-fio").stdout == script(FIO, 1000)


def test_what_cannot_be_wrapped_is_refused(tmp_path: Path) -> None:
    for words, sentence in (
        (["--fio", "fio"], "needs an absolute path"),
        (["--fio", "./fio"], "needs an absolute path"),
        (["--fio", tmp_path], "is a folder"),
        (["--fio", "/usr/bin/"], "is a folder"),
        (["--fio", wrapped(FIO, tmp_path)], "is a wrapper of this kind itself"),
    ):
        done = tailboard("wrap-fio", *words, status=2)
        assert done.stdout == b"" and sentence in done.stderr.decode()
    with (tmp_path / "itself").open("wb") as itself:
        command = [sys.executable, "-m", "ingest", "wrap-fio", "--fio", tmp_path / "itself"]
        done = subprocess.run(command, stdout=itself, stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"the output goes to this very file" in done.stderr


def test_a_fio_that_only_the_clients_have_will_do(tmp_path: Path) -> None:
    done = tailboard("wrap-fio", "--fio", "/opt/elsewhere/fio")
    assert (
        done.stdout.startswith(b"#!/bin/sh\n")
        and done.stderr == b"tailboard: /opt/elsewhere/fio is not on this machine; it must be on the clients\n"
    )
    (tmp_path / "plain").touch()
    assert b"cannot be executed on this machine" in tailboard("wrap-fio", "--fio", tmp_path / "plain").stderr
    assert b"CBT ends fio by the name fio" in tailboard("wrap-fio", "--fio", executable(tmp_path / "fio-3.42", b"x")).stderr
    assert tailboard("wrap-fio", "--fio", FIO).stderr == b""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_client_without_that_fio_and_a_wrapper_in_its_place(shell, tmp_path: Path) -> None:
    missing = subprocess.run([*shell, wrapped("/opt/elsewhere/fio", tmp_path), "--name=a"], capture_output=True, text=True)
    assert (missing.returncode, missing.stdout) == (
        127,
        "",
    ) and "there is no program /opt/elsewhere/fio on this machine" in missing.stderr
    itself = subprocess.run(
        [*shell, wrapped(tmp_path / "itself" / "fio", tmp_path / "itself"), "--name=a"],
        capture_output=True,
        text=True,
        timeout=20,
    )
    (tmp_path / "link").symlink_to(tmp_path / "linked" / "fio")
    linked = subprocess.run(
        [*shell, wrapped(tmp_path / "link", tmp_path / "linked"), "--name=a"], capture_output=True, text=True, timeout=20
    )
    assert (linked.returncode, linked.stdout) == (126, "")
    assert (itself.returncode, itself.stdout) == (126, "") and "in the place of the fio that it is to start" in itself.stderr


def test_a_wrapper_of_a_wrapper_adds_nothing_twice(tmp_path: Path) -> None:
    real = fake(tmp_path / "real")
    inner = wrapped(real, tmp_path / "inner")
    outer = executable(tmp_path / "fio", inner.read_bytes().replace(os.fsencode(real), os.fsencode(inner)))
    assert passed_on(cbt("json"), ["dash"], outer, real)[0] == [*cbt("json+"), *HIST]


# CBT's own command lines, as it pastes them: unquoted, behind sudo, which resets the environment. The null engine stands for rbd.

ENGINE = "--ioengine=null --size=1g --direct=1 --bs=4096"
PACE = "--rate_iops=400,200 --time_based --runtime=2"
LOGS = "--write_iops_log={d}/output.{v} --write_bw_log={d}/output.{v} --write_lat_log={d}/output.{v}"
LINES = {
    # librbdfio in flat layouts: options first, so all jobs log
    "flat": f"sudo {{fio}} {ENGINE} --rw=randrw --output-format=json,normal --rwmixread=70 --rwmixwrite=30 {PACE} --ramp_time=1 --numjobs=1"
    f" --iodepth=4 --end_fsync=0 --norandommap {LOGS} --name=cbt-librbdfio-`hostname`-file-0 --name=cbt-librbdfio-`hostname`-file-1"
    " > {d}/output.{v}",
    # librbdfio with workloads: logs behind the last --name
    "workloads": f"sudo {{fio}} {ENGINE} --invalidate=0 --numjobs=2 --iodepth=2 --rw=randwrite --output-format=json --end_fsync=0 {PACE}"
    f" --name=cbt-fio-4k-`hostname`-file-0 {LOGS} > {{d}}/output.{{v}}",
    "averaged": f"sudo {{fio}} {ENGINE} --numjobs=1 --iodepth=2 --rw=randread --output-format=json+ --log_avg_msec=100 {PACE}"
    f" --name=cbt-fio-4k-`hostname`-file-0 {LOGS} > {{d}}/output.{{v}}",
    "procs_per_volume": f"sudo {{fio}} {ENGINE} --numjobs=1 --iodepth=2 --rw=randread --output-format=json,normal {PACE} --name=a --name=b"
    f" {LOGS} > {{d}}/output.{{v}}",
    "rawfio": f"sudo sudo {{fio}} --rw=randread --ioengine=null --runtime=2 --ramp_time=1 --numjobs=1 --direct=1 --bs=4096B --iodepth=4"
    f" --size=64M {LOGS} --output-format=json --time_based --rate_iops=300 --name=/dev/vdb > {{d}}/output.{{v}}",
    "rbdfio": f"sudo {{fio}} --rw=randread --ioengine=null --runtime=2 --numjobs=1 --direct=1 --bs=4096B --iodepth=4 --size=57M {LOGS}"
    " --time_based --rate_iops=300 --name=a --name=b > {d}/output.{v} --log_avg_msec=100",
    "kvmrbdfio": f"sudo {{fio}} --rw=randrw --rwmixread=70 --rwmixwrite=30 --ioengine=null --runtime=2 --ramp_time=1 --rate_iops=300 --numjobs=2"
    f" --direct=1 --bs=4096B --iodepth=4 --size=64M {LOGS} --time_based --name=/dev/vdb > {{d}}/output.{{v}}",
    "env": f"sudo env X=1 {{fio}} {ENGINE} --rw=write --output-format=json {PACE} --name=e {LOGS} > {{d}}/output.{{v}}",
    "per_job_logs": f"sudo {{fio}} {ENGINE} --rw=write --output-format=json {PACE} --numjobs=2 --per_job_logs=0 --name=e {LOGS} > {{d}}/output.{{v}}",
    "no sudo": f"{{fio}} {ENGINE} --rw=randread --output-format=json+,normal {PACE} --name=e {LOGS} > {{d}}/output.{{v}}",
    "prefill": "sudo {fio} --ioengine=null --rw=write --numjobs=1 --bs=4M --size 64M --name=p --output-format=json,normal > {d}/output.{v}",
}  # fmt: skip

TEXT = ("rbdfio", "kvmrbdfio")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> dict[str, Path]:
    """A folder for each line, all run at once; lines of two volumes as two processes."""
    root = tmp_path_factory.mktemp("cbt")
    wrapper = wrapped(FIO, root / "opt", 200)
    executable(root / "bin" / "sudo", f'#!/bin/sh\nexec env -i PATH={root / "bin"}:/usr/bin:/bin "$@"\n'.encode())
    running = []
    for name, line in LINES.items():
        folder = root / re.sub(r"\W", "-", name)
        folder.mkdir()
        for volume in (0, 1) if name in ("flat", "workloads") else (0,):
            command = line.format(fio=wrapper, d=folder, v=volume)
            environment = os.environ | {"PATH": f"{root / 'bin'}:/usr/bin:/bin"}
            running.append((name, subprocess.Popen(["sh", "-c", command], stderr=subprocess.PIPE, text=True, env=environment)))
    for name, process in running:
        told = process.communicate(timeout=120)[1]
        assert process.returncode == 0, (name, told)
        assert ("fio prints text alone" in told) if name in TEXT else told == "", (name, told)
    return {name: root / re.sub(r"\W", "-", name) for name in LINES}


def fios_counts(output: Path) -> dict[str, int]:
    """Completions by operation of the jobs of one fio, from its JSON."""
    text = output.read_text()
    document = json.JSONDecoder().raw_decode(text[re.search(r"^{", text, re.MULTILINE).start() :])[0]
    return {op: sum(job[op]["clat_ns"].get("N", 0) for job in document["jobs"]) for op in ("read", "write")}


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LINES if name not in ("prefill", "procs_per_volume", *TEXT)])
def test_the_counts_of_the_histograms_are_fios(name, recorded) -> None:
    folder = recorded[name]
    outputs = sorted(folder.glob("output.?"))
    expected = {op: sum(fios_counts(output)[op] for output in outputs) for op in ("read", "write")}
    assert sum(expected.values()) > 300
    done = tailboard("percentiles", folder, "--where", "kind=completion", "--step", "all", "--by", "op", "--format", "csv")
    counted = {row["op"]: int(row["count"]) for row in csv.DictReader(io.StringIO(done.stdout.decode()))}
    assert counted == {op: count for op, count in expected.items() if count}
    told = tailboard("inspect", folder).stdout.decode()
    volumes = len(outputs)
    jobs = 2 if name in ("flat", "workloads") else 1
    assert len(list(folder.glob("output.*_clat_hist*.log"))) == volumes * jobs
    for op, count in counted.items():
        said = re.search(rf" {op}: fio says N = {count}, p99 = (\S+) ms.*; tailboard {count}, (\S+) ms", told)
        assert said and said[1] == said[2], told


@pytest.mark.slow
def test_where_the_last_job_alone_logs_it_alone_has_a_histogram(recorded) -> None:
    """CBT's procs_per_volume with workloads: logs stand behind the last --name; the wrapper adds histograms where there are logs."""
    logs = {path.name for path in recorded["procs_per_volume"].iterdir()}
    assert {"output.0_clat.2.log", "output.0_clat_hist.2.log"} <= logs
    assert not {"output.0_clat.1.log", "output.0_clat_hist.1.log"} & logs


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXT)
def test_text_output_keeps_its_shape_and_has_histograms(name, recorded) -> None:
    text = (recorded[name] / "output.0").read_text()
    assert "clat percentiles" in text and "{" not in text
    assert len(list(recorded[name].glob("output.0_clat_hist.?.log"))) == 2


@pytest.mark.slow
def test_of_text_output_the_raw_logs_have_what_histograms_lack(recorded) -> None:
    """Without JSON nothing holds the last interval but CBT's own logs of single I/Os: docs/guides/cbt.md says --prefer raw."""
    question = ["--where", "kind=completion", "--step", "all", "--format", "csv", "--fio-version", "3.33"]
    counted = []
    for prefer in ("hist", "raw"):
        done = tailboard("percentiles", recorded["kvmrbdfio"], *question, "--prefer", prefer)
        counted.append(sum(int(row["count"]) for row in csv.DictReader(io.StringIO(done.stdout.decode()))))
    logged = sum(len(log.read_text().splitlines()) for log in recorded["kvmrbdfio"].glob("output.0_clat.?.log"))
    assert counted[0] < counted[1] == logged


@pytest.mark.slow
def test_prefill_leaves_no_log_and_its_output_is_plain_json(recorded) -> None:
    assert [path.name for path in recorded["prefill"].iterdir()] == ["output.0"]
    assert '"bins"' not in (recorded["prefill"] / "output.0").read_text()


@pytest.mark.slow
def test_averaged_logs_do_not_change_histograms(recorded) -> None:
    """log_avg_msec=100 makes means of the latency logs; histogram rows stay counts."""
    rows = (recorded["averaged"] / "output.0_clat_hist.1.log").read_text().splitlines()
    counts = sum(sum(map(int, row.split(",")[3:])) for row in rows)
    assert 0 < fios_counts(recorded["averaged"] / "output.0")["read"] - counts < 100  # the last interval, which fio never writes
    assert len((recorded["averaged"] / "output.0_clat.1.log").read_text().splitlines()) < 30


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_sound(shell) -> None:
    script = Path(__file__).parents[2] / "ingest" / "wrap" / "fio.sh"
    done = subprocess.run([*shell, "-n", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert script.read_text().count("'@FIO@'") == script.read_text().count("'@MSEC@'") == 1
