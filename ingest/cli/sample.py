"""sample: a command is asked on a clock, and what it says is kept."""

from __future__ import annotations

import shutil
import signal
import socket
import sys
from pathlib import Path

import click

from ingest.cli.options import CallOptions, argument, command, option
from ingest.cli.output import INTERRUPTED, say
from ingest.core.errors import InputError, UsageError, counted
from ingest.core.units import parse_duration

PATIENCE = 3  # a command may take so many intervals, unless --timeout says otherwise
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Options(CallOptions):
    """What a call of sample says."""

    command: tuple[str, ...] = argument("-- COMMAND...", type=click.UNPROCESSED, files=True)
    every: str = option("--every", default="10s", metavar="D", help="How often to ask.")
    output: Path | None = option(
        "-o",
        "--output",
        metavar="FILE",
        help="Append to this file; a last line that a kill cut off is taken away first [default: standard output].",
    )
    host: str | None = option("--host", metavar="NAME", help="Whose answers these are [default: the name of this machine].")
    duration: str | None = option("--for", metavar="D", help="End after this long, such as 1h [default: at Ctrl-C or SIGTERM].")
    timeout: str | None = option(
        "--timeout", metavar="D", help="Kill a command that takes longer [default: three times --every]."
    )


@command(Options, context_settings={"allow_interspersed_args": False})
def sample(options: Options) -> int:
    """Ask a command on a clock, and keep what it says: histograms of servers that write no log.

    \b
    Examples:
      tailboard record sample --every 10s -o osd3.ndjson -- ceph daemon osd.3 perf histogram dump -f json
      tailboard record sample --every 10s -o redis.ndjson --for 1h -- redis-cli --json latency histogram
      tailboard record sample --every 15s -o api.ndjson -- curl -sf http://127.0.0.1:9090/metrics
      tailboard percentiles osd3.ndjson --by op

    Each answer is a line of JSON with its time and host. Load, watch or show the file as any other; the guide is
    docs/guides/sample.md. A command that fails, or takes longer than --timeout, is a line with its error, and is asked again.
    Polls that were not made are a line, too, and are said. Run it again after a kill: it goes on in the same file.
    Exit status: 0 done, 2 no such command, 3 no poll had an answer, 130 after Ctrl-C.
    """
    from ingest.live import heeding
    from ingest.live.sample import RealClock, SampleLog, Sampler, Stop

    words = options.command
    if shutil.which(words[0]) is None:
        raise UsageError(f"there is no command {words[0]!r} that can be run")
    every = parse_duration(options.every)
    timeout = parse_duration(options.timeout) if options.timeout else PATIENCE * every
    for_ns = parse_duration(options.duration) if options.duration else None
    log = SampleLog(options.output) if options.output else None
    if log and log.cut:
        say(f"{options.output}: took away {counted(log.cut, 'byte')} of a last line that was cut off")
    stop = Stop()
    host = options.host or socket.gethostname()
    sampler = Sampler(words, every, timeout, host, log.write if log else _printed, RealClock(stop), stop, say, for_ns)
    with heeding(stop, [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]):  # nohup
        sampler.run(log.last_ns if log else None)
    say(f"{counted(sampler.answered, 'answer')}, {sampler.failed} failed, {sampler.missed} missed")
    if stop.signal == signal.SIGINT:
        return INTERRUPTED
    if not sampler.answered:
        raise InputError(f"no poll had an answer: {sampler.error or 'the end came before the first'}")
    return 0


def _printed(line: str, _before: str) -> str:
    """Print a line."""
    sys.stdout.write(line)
    sys.stdout.flush()
    return ""
