"""wrap-fio: a script that stands in for fio on the clients of a benchmark and has it log histograms."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from ingest.cli.options import CallOptions, command, option
from ingest.cli.output import print_bytes, say
from ingest.core.errors import UsageError

SCRIPT = Path(__file__).parents[1] / "wrap" / "fio.sh"
DEFAULT = "/usr/bin/fio"


class Options(CallOptions):
    """What a call of wrap-fio says."""

    fio: str = option("--fio", default=DEFAULT, metavar="PATH", help="Path of the real fio on the clients.")
    log_hist_msec: int = option(
        "--log-hist-msec", type=click.IntRange(1, 2**31 - 1), default=1000, metavar="MS", help="Interval of the histogram log."
    )


@command(Options, "wrap-fio")
def wrap_fio(options: Options) -> None:
    """Print a shell script that runs fio and adds histogram logs, for CBT, which has no option for them.

    Install the script as a file called fio at the same path on every client, and set that path in CBT's YAML (cmd_path, or
    fio_cmd). It adds --write_hist_log=P --log_hist_msec=MS to a command line with --write_lat_log=P, and replaces json by
    json+. All other arguments, and all other command lines, reach fio unchanged. fio 3.6 to 3.16 gets json+ only, because its
    histogram logs are damaged. The clients need no Python. docs/guides/cbt.md leads from the YAML to the report.

    \b
    Examples:
      tailboard record fio --fio /usr/bin/fio > fio && chmod 755 fio
      tailboard record fio --fio /opt/fio-3.42/bin/fio --log-hist-msec 500 > fio
    """
    note = _note_of(options.fio)
    if note:
        say(note)
    print_bytes(script(options.fio, options.log_hist_msec))


def script(fio: str, log_hist_msec: int) -> bytes:
    """Return the script for a fio at an absolute path, with a row every `ms` milliseconds."""
    text = SCRIPT.read_bytes()
    for placeholder, value in ((b"'@MSEC@'", str(log_hist_msec)), (b"'@FIO@'", shlex.quote(fio))):
        before, _, after = text.partition(placeholder)
        text = before + os.fsencode(value) + after
    return text


def _note_of(fio: str) -> str:
    """Return a sentence on a fio that may do on the clients; UsageError for one that cannot."""
    if not fio.startswith("/"):
        raise UsageError(f"--fio {fio}: needs an absolute path, as sudo looks in other folders than you do: --fio {DEFAULT}")
    if fio.endswith("/") or os.path.isdir(fio):  # noqa: PTH112  # Path drops the slash
        raise UsageError(f"--fio {fio}: is a folder; name the program in it")
    if not os.path.exists(fio):  # noqa: PTH110
        return f"{fio} is not on this machine; it must be on the clients"
    if os.path.samestat(os.stat(fio), os.fstat(sys.stdout.fileno())):  # noqa: PTH116
        raise UsageError(f"--fio {fio}: the output goes to this very file, and a wrapper that starts itself never ends")
    if not Path(fio).is_file():
        raise UsageError(f"--fio {fio}: is a named pipe, a socket or a device; name a program")
    if _is_wrapper(fio):
        raise UsageError(f"--fio {fio}: is a wrapper of this kind itself; name the fio that it starts")
    if not os.access(fio, os.X_OK):
        return f"{fio} cannot be executed on this machine; it must be executable on the clients"
    if Path(fio).name != "fio":
        return f"CBT ends fio by the name fio, and {fio} will run as {Path(fio).name}: give the program that name"
    return ""


def _is_wrapper(fio: str) -> bool:
    """Return whether a file begins as the script does."""
    try:
        with SCRIPT.open("rb") as ours, Path(fio).open("rb") as theirs:
            return [ours.readline() for _ in range(2)] == [theirs.readline(200) for _ in range(2)]
    except OSError:
        return False
