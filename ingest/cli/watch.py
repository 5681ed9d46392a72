"""watch: runs are loaded while they grow."""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.api.words import paths_of, share
from ingest.cli.load import Loading, kibana_links, load_options
from ingest.cli.options import PERCENTILES, command, option
from ingest.cli.output import INTERRUPTED, say
from ingest.cli.sources import check_files, keep_marks, letters_named, marks_of
from ingest.core.errors import DeliveryError, InputError, RefusedError, StoreError, UsageError, counted, plural
from ingest.core.units import parse_duration
from ingest.query.origin import store_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ingest.core.marks import Mark
    from ingest.live.sample import Stop
    from ingest.live.watch.accuracy import Accuracy
    from ingest.live.watch.cycle import Cycle, WatchCycle
    from ingest.load.load import LoadAccount
    from ingest.objectives.check import Checked
    from ingest.objectives.webhook import News, Webhook
    from ingest.store import Store

NOT_REACHED = 5
SHARE, QUICK_SECONDS = 10, 0.2  # judging all of a long run may take a tenth of the time
LONGEST_LAG_NS = 3600 * 10**9  # older rows are of a benchmark that ran before
CLEARED = "\r\x1b[K"  # the line of a terminal


class Options(Loading):
    """What a call of watch says."""

    interval: str = option("--interval", default="1s", metavar="D", help="How often to check the files.")
    until_idle: str | None = option(
        "--until-idle", metavar="D", help="End when nothing new has come for this long, such as 60s [default: never]."
    )
    until_accuracy: str | None = option(
        "--until-accuracy",
        metavar="N%",
        help="End when every percentile of -p is known this well, such as 5%: 95 % bounds from the windows, by operation.",
    )
    wanted: str | None = option(
        "-p", metavar="LIST", help=f"Percentiles of --until-accuracy, such as 50,99 [default: {PERCENTILES}]."
    )
    objectives: Path | None = option(
        "--objectives",
        metavar="SLA.yml",
        help="Report when these objectives are violated and when they are met again, and save the episodes.",
    )
    webhook: str | None = option(
        "--webhook", metavar="URL", help="Also POST each episode as JSON to URL; env:NAME reads the URL from the environment."
    )
    as_json: bool = option("--json", help="Print a JSON object for each cycle that found new data, and one at the end.")


@command(Options)
def watch(options: Options) -> int:
    """Load log files and folders while they grow, and new files as they appear.

    \b
    Examples:
      tailboard load --follow /var/log/bench --run nightly-42
      tailboard load --follow h1/ h2/ --run test-7 --until-idle 60s
      tailboard load --follow out/ --run test-9 --until-accuracy 5% -p 50,99
      fio job.fio --status-interval=1 --output-format=json+ --output=out/fio.json &
      tailboard load --follow out/ --run test-8 --until-idle 10s

    HdrHistogram logs are read line by line, fio's status dumps document by document; logs of operations are read again when
    they have grown; other files are loaded when they have not changed for a cycle. After a kill, run it again: it continues
    where it stopped. Ctrl-C completes the run and ends; a second Ctrl-C ends at once. Exit status: 5 where it ends before
    percentiles are known as well as --until-accuracy asks for.
    """
    from ingest.live import heeding
    from ingest.live.sample import Stop
    from ingest.live.watch.cycle import WatchCycle
    from ingest.live.watch.files import hold_many_files
    from ingest.live.watch.state import Watching
    from ingest.objectives.webhook import webhook
    from ingest.read.discovery import check_is_file
    from ingest.store import open_store

    check_files(options.paths, "watch")
    paths = paths_of(options.paths)
    for path in paths:
        check_is_file(path)
    chosen, pace = load_options(options, "a watch"), parse_duration(options.interval) / 1e9
    idle = parse_duration(options.until_idle) / 1e9 if options.until_idle else None
    accuracy = _accuracy(options)
    marks = marks_of(options.marks)
    if options.webhook and not options.objectives:
        raise UsageError("--webhook reports objectives: give them with --objectives SLA.yml")
    hook = webhook(options.webhook) if options.webhook else None
    telling = Telling(options.objectives, hook, marks) if options.objectives else None
    hold_many_files()
    url = store_url(options.store)
    stop = Stop()
    with open_store(url, write=True) as store, letters_named(store), heeding(stop):
        shown = _Shown(as_json=options.as_json, accuracy=accuracy)
        running = WatchCycle(Watching.begun(paths, store, chosen), [each for each in (telling, accuracy) if each is not None])
        for link in kibana_links(store, url):
            say(link)
        _cycles(running, shown, pace, idle, stop, accuracy)
        _let_signals_end_it()
        shown.cycle(running.cycle(last=True))
        account = running.settle()
        shown.end(account, url, running.watching.said)
        for link in kibana_links(store, url, account.runs) if account.runs else ():
            say(link)
        keep_marks(store, account.runs, marks)
        if telling is not None:
            telling.end(store, sorted(account.runs))
        if accuracy is not None and not accuracy.reached:
            for run in sorted(account.runs):  # the last rows may have come while it was not their time to be looked at
                accuracy.look(store, run)
        refused, sentence = store.refusals()
    if refused:
        raise StoreError(sentence)
    if stop.signal == signal.SIGINT:
        return INTERRUPTED
    if not account.runs:
        raise InputError(f"nothing came under {', '.join(options.paths)} that could be loaded")
    if accuracy is not None and not accuracy.reached:
        say(accuracy.why_not())
        return NOT_REACHED
    return 0


def _accuracy(options: Options) -> Accuracy | None:
    """Return what looks how well percentiles are known, None where nobody asks; UsageError for what is no percentage."""
    if options.until_accuracy is None:
        if options.wanted is not None:
            raise UsageError("-p names the percentiles of --until-accuracy: give both, or leave out -p")
        return None
    from ingest.core.quantiles import parse_percentiles
    from ingest.live.watch.accuracy import Accuracy

    wanted = share(options.until_accuracy)
    if not 0 < wanted < 1:
        raise UsageError(f"--until-accuracy takes a percentage such as 5%, not {options.until_accuracy!r}")
    return Accuracy(wanted, parse_percentiles(options.wanted or PERCENTILES))


class Telling:
    """Called by a watch after each cycle: judges, keeps, and reports on stderr and to a webhook; `end` judges once more.

    What could not be sent to a webhook is sent with the next change. InputError for a file of objectives that is wrong.
    """

    def __init__(self, sla: Path, hook: Webhook | None = None, marks: Sequence[Mark] = ()) -> None:
        from ingest.objectives.check import alerting
        from ingest.objectives.objectives import read_objectives

        self._sla, self._objectives = sla, read_objectives(sla, None)
        self._judge: Callable[[Store, str], Checked | None] = alerting(self._objectives, self._report, sla, marks)
        self._hook = hook
        self._waiting: list[News] = []
        self._complained = False
        self._next: dict[str, float] = {}

    def __call__(self, store: Store, run: str) -> None:
        """Judge a run, unless that would take more than its share of the time."""
        began = time.monotonic()
        if began < self._next.get(run, 0.0):
            return
        self._judge(store, run)
        self._deliver()
        ended = time.monotonic()
        if ended - began > QUICK_SECONDS:
            self._next[run] = ended + SHARE * (ended - began)

    def end(self, store: Store, runs: list[str]) -> None:
        """Judge runs that have settled, also against baselines, and say which phases never came.

        DeliveryError where the webhook did not get everything.
        """
        from ingest.core.objective import Objective
        from ingest.objectives.check import against_baselines
        from ingest.query.episodes import VIOLATED

        for run in runs:
            checked = self._judge(store, run)
            for entry in checked.unjudged if checked else ():
                if isinstance(entry.objective, Objective) and entry.objective.phases:
                    say(f"{entry.objective.name}: not judged in {run}: {entry.reason}")
            try:
                for comparison in against_baselines(self._objectives, store, run, self._sla):
                    self._report(comparison, send=comparison.outcome == VIOLATED)
            except InputError as error:
                say(error)
        if self._hook is not None and self._waiting:
            self._hook.tell(self._waiting)

    def _report(self, news: News, *, send: bool = True) -> None:
        from ingest.objectives.webhook import sentence

        say(sentence(news))
        if send:
            self._waiting.append(news)

    def _deliver(self) -> None:
        """Tell the webhook what waits; what it refuses is dropped and said, whom it does not find is said once."""
        if self._hook is None:
            self._waiting.clear()
            return
        while self._waiting:
            try:
                self._hook.tell(self._waiting[:1])
            except RefusedError as error:
                say(error)
            except DeliveryError as error:
                if not self._complained:
                    say(f"{error}; it is tried again")
                self._complained = True
                return
            self._waiting.pop(0)
            self._complained = False


def _let_signals_end_it() -> None:
    """Let a signal from now on end the process at once: the next watch or load continues what is cut off."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _cycles(running: WatchCycle, shown: _Shown, pace: float, idle: float | None, stop: Stop, accuracy: Accuracy | None) -> None:
    """Run one cycle after another until nothing has come for long, all is known, or a signal has come.

    The cycle that runs is finished first.
    """
    heard = time.monotonic()
    while not stop.signal:
        began = time.monotonic()
        done = running.cycle()
        shown.cycle(done)
        now = time.monotonic()
        if done.news:
            heard = now
        if (idle is not None and now - heard >= idle) or (accuracy is not None and accuracy.reached):
            return
        if not done.behind:
            stop.wait(max(0.0, pace - (now - began)))


class _Shown:
    """Tells what happens: a line that stays in place on a terminal, JSON for machines, sentences for both."""

    def __init__(self, *, as_json: bool, accuracy: Accuracy | None) -> None:
        self._json, self._accuracy = as_json, accuracy
        self._terminal = sys.stderr.isatty()
        self._totals = {"rows": 0, "samples": 0, "documents": 0, "rejected": 0, "loaded": 0}

    def cycle(self, done: Cycle) -> None:
        """Tell of a cycle."""
        for name in self._totals:
            self._totals[name] += getattr(done, name)
        self._say(done.said)
        if self._json and (done.news or done.said):
            known = {} if self._accuracy is None else {"accuracy": _by_name(self._accuracy.within)}
            _print({"event": "cycle", **{name: value for name, value in asdict(done).items() if name != "news"}, **known})
        if self._terminal:
            print(f"{CLEARED}{self._line(done)}", end="", file=sys.stderr, flush=True)

    def end(self, account: LoadAccount, url: str, said: list[str]) -> None:
        """Tell how it ended."""
        if self._terminal:
            print(CLEARED, end="", file=sys.stderr)
        self._say(said)
        if self._json:
            _print({"event": "settled", **account.as_dict()})
        if self._totals["documents"] and not account.loaded and not account.refused:
            names = ", ".join(account.runs)
            read = f"{self._of('loaded', 'file')} whole, {self._of('rows', 'row')}, {self._of('samples', 'sample')}"
            say(f"{read}, {self._of('documents', 'document')} into {url} while watching {names}; nothing new at the end")
        else:
            from ingest.load.load import sentences_of

            for line in sentences_of(account, url):
                say(line)

    def _of(self, total: str, noun: str) -> str:
        """Return one of the totals with its noun."""
        return f"{self._totals[total]} {plural(self._totals[total], noun)}"

    def _say(self, texts: Iterable[str]) -> None:
        for text in texts:
            say(text, CLEARED if self._terminal else "")

    def _line(self, done: Cycle) -> str:
        from ingest.core.units import utc
        from ingest.store.live import NOTHING_FINAL

        lag = f", {done.lag_ns / 1e9:.1f} s behind" if done.lag_ns is not None and done.lag_ns < LONGEST_LAG_NS else ""
        final = f", final up to {utc(done.final_ns)}" if done.final_ns is not None and done.final_ns > NOTHING_FINAL else ""
        waiting = f", {done.waiting} waiting" if done.waiting else ""
        rejected = f", {self._totals['rejected']} rejected" if self._totals["rejected"] else ""
        known = f", {self._accuracy.said()}" if self._accuracy is not None else ""
        rows = f"{counted(self._totals['rows'], 'row')}{rejected}{lag}{final}{known}"
        return f"watching {counted(done.files, 'file')}{waiting}: {rows}"


def _by_name(within: dict[tuple[str, str, str], float]) -> list[dict[str, Any]]:
    """Return how well percentiles are known as JSON has it: null where that is not known."""
    return [
        {"run": run, "op": operation, "percentile": name, "within": None if known != known else known}  # noqa: PLR0124  # NaN
        for (run, operation, name), known in within.items()
    ]


def _print(facts: dict[str, Any]) -> None:
    import json

    print(json.dumps(facts), flush=True)
