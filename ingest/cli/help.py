"""Commands as they are shown and refused: options of --help in groups, and words that nobody knows with those that are meant."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ingest.cli.completion import TYPED
from ingest.core.errors import shown

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

REST = "Help"  # and what no group names
GROUPS = {  # and the order in which each group shows its options; COMMAND.NAME is where one command has it elsewhere
    "What is asked": (
        "asked slas sla promises window baseline run objectives at mark.accept wanted shifts box against runs"
        " trend.wanted throughput above load level names limit breaths callbacks by where failures merge_runs unlike_kinds"
        " accuracy bounds below interpolate estimate"
    ),
    "Time": (
        "period refresh step force begin end explain.step explain.force export.step age until interval until_idle"
        " until_accuracy time_base sample.every duration timeout"
    ),
    "Picture": (
        "latency most_rows rows axis drop columns highlight shading scale curves hgrm distribution.sla full marks metrics beside"
    ),
    "Verdict": "same_within least_change fail_above accept last record allow_unknown webhook",
    "Output": "points as_json unit ticks printed format heatmap.unit every output form",
    "Store": (
        "mend coarsen.digits coarseness url index_prefix setup.period shards compact dry_run overwrite yes delete.force store"
        " labels offsets each replace add_up strict"
    ),
    "Server": "port address kibana space rules",
    "Reading logs": (
        "fio log_hist_msec input_format failed host host_alias t0 host_offset recorded_unit fio_version digits prefer keep_idle"
        " tsc_hz events.t0 rate intended_start_column expected_interval attribution jobs"
    ),
}
MODES = {  # options that make another command of one: its module, and what it does
    "report": {"--live": ("serve", "The page that refreshes itself"), "--card": ("card", "One picture of a run")},
    "check": {"--capacity": ("capacity", "The highest load that still meets an objective")},
    "compare": {"--trend": ("trend", "All runs in order, with a verdict on the newest")},
    "load": {"--follow": ("watch", "Load files while they grow")},
}
FORMAT = "--format"
MEANT = {  # what people type for commands of other names
    "diff": "compare",
    "graph": "report",
    "plot": "report",
    "html": "report",
    "page": "report",
    "dashboard": "serve",
    "histogram": "distribution",
    "summary": "explain",
    "story": "explain",
    "stats": "percentiles",
    "import": "load",
    "ingest": "load",
    "follow": "watch",
    "list": "runs list",
    "ls": "runs list",
    "delete": "runs delete",
    "init": "setup",
    "sla": "check",
}
INSTEAD = {  # of formats
    "excel": "csv opens in a spreadsheet",
    "xlsx": "csv opens in a spreadsheet",
    "xls": "csv opens in a spreadsheet",
    "pdf": "png and svg are pictures, tailboard report writes a page that prints",
    "html": "tailboard report writes a page, compare and trend write one with -o page.html",
    "text": "table is for people",
}
OPTIONS_MEANT = {  # what people type for options of other names; a sentence where there is none
    **dict.fromkeys(("--p", "--percentile", "--percentiles", "--quantile", "--quantiles"), "-p"),
    **dict.fromkeys(("--group-by", "--groupby", "--group"), "--by"),
    **dict.fromkeys(("--filter", "--op", "--operation", "--only", "--select"), "--where"),
    **dict.fromkeys(("--interval", "--window", "--bucket", "--resolution", "--every"), "--step"),
    **dict.fromkeys(("--since", "--start", "--begin", "--after"), "--from"),
    **dict.fromkeys(("--until", "--end", "--stop"), "--to"),
    **dict.fromkeys(("--name", "--run-id", "--id", "-r"), "--run"),
    **dict.fromkeys(("--db", "--database", "-o", "--output"), "--store"),
    **dict.fromkeys(("--store", "--server", "--url"), "--elasticsearch"),
    **dict.fromkeys(("--out", "--file"), "-o"),
    **dict.fromkeys(("--before", "--old", "--base"), "--baseline"),
    **dict.fromkeys(("--slo", "--objective", "--objectives"), "--sla"),
    **dict.fromkeys(("--threads", "--workers", "-j"), "--jobs"),
    "--limit": "--all",
    "--threshold": "tailboard check --sla 'p99<5ms' judges, percentiles --below 5ms counts",
    "--open": "the page that is written opens in any browser",
    **dict.fromkeys(("--tz", "--timezone"), "times are in UTC; --time local shows those of this machine"),
    **dict.fromkeys(("--verbose", "-v"), "tailboard inspect --why FILE says what an answer rests on"),
    **dict.fromkeys(("--quiet", "-q"), "notes go to stderr, 2>/dev/null leaves them out"),
    "-V": "tailboard --version",
    "--sort": "rows are in the order of time; csv and json can be sorted",
    **{f"--{form}": INSTEAD[form] for form in ("html", "pdf")},
    "--title": "a page is named after its runs: --run NAME",
}
FIRST = {"show": "heatmap", "runs": "list", "store": "doctor"}  # what a path or a store behind these words most likely is for
READING = "Reading logs"
ALL, ALL_OPTIONS, MOST_FIRST = "all", "ingest.cli.all options", 15
ALIKE_OPTIONS = 0.8  # more than of other words: all options begin with --
RARE = (
    "force accuracy bounds below interpolate estimate failures merge_runs unlike_kinds shifts accept same_within least_change"
    " until_accuracy allow_unknown webhook shading scale curves hgrm full columns drop highlight axis most_rows last"
    " above marks time_base"
)
SURPLUS = "Got unexpected extra argument"
LISTS = ("--by", "--add-up")  # of labels, which may be none
PLACES = {name: title for title, names in GROUPS.items() for name in names.split()}
ORDER = {name: place for place, name in enumerate(PLACES)}


def group_of(command: str, option: str) -> str:
    """Return the group under which --help shows an option of a command; `Help` for one that no group names."""
    return PLACES.get(f"{command}.{option}") or PLACES.get(option, REST)


def place_of(command: str, option: str) -> int:
    """Return where an option of a command stands among all options; what no group names comes last."""
    return ORDER.get(f"{command}.{option}") or ORDER.get(option, len(ORDER))


class Choice(click.Choice[str]):
    """A choice among words; a word that is none of them is answered with the one that is meant. Units have other names, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word that is chosen."""
        if value not in self.choices and "ns" in self.choices:
            from ingest.core.units import UNIT_OF  # NumPy

            value = UNIT_OF.get(value, value)
        return super().convert(value, param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what an error says of a word that is no choice."""
        from ingest.core.errors import choices  # for errors alone

        if str(value) in INSTEAD and "csv" in self.choices:
            return f"there is no {str(value)!r}: {INSTEAD[str(value)]}; there are {', '.join(self.choices)}"
        return f"there is no {str(value)!r}: {choices(str(value), self.choices, most=len(self.choices))}"


class Command(click.Command):
    """A command whose --help has its options in groups, the same groups in the same order for every command."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by what they are for: those that are used most, or all of them behind `--help all`."""
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in (*GROUPS, REST)}
        every = self._options(ctx)
        first = every if ctx.meta.get(ALL_OPTIONS) else self._first(every)
        for option in first:
            record = option.get_help_record(ctx)
            if record is not None:
                rows[group_of(self.name or "", option.name or "")].append(record)
        if left := len(every) - len(first):
            rows[REST].append(("--help all", f"Show {left} more options."))
        for flag, (_, does) in MODES.get(self.name or "", {}).items():
            rows[REST].append((flag, f"{does}: {ctx.command_path} {flag} --help."))
        width = max(len(names) for records in rows.values() for names, _ in records)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl([(names.ljust(min(width, 30)), text) for names, text in records])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what a shell offers: options, those too that make another command of this one."""
        from click.shell_completion import CompletionItem

        modes = [CompletionItem(flag, help=does) for flag, (_, does) in MODES.get(self.name or "", {}).items()]
        return [
            *super().shell_complete(ctx, incomplete),
            *(one for one in modes if incomplete and one.value.startswith(incomplete)),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words of a call; UsageError for an empty one of a command, and for an option of no known name."""
        if not ctx.resilient_parsing and not isinstance(self, Group):
            _check_empty(ctx, args)
        typed = ctx.meta[TYPED] = list(args)
        if any([word, ALL] in (args[at : at + 2] for at in range(len(args))) for word in ctx.help_option_names):
            ctx.meta[ALL_OPTIONS] = True
        try:
            return super().parse_args(ctx, self._spelled(ctx, args))
        except click.UsageError as error:
            if said := self._corrected(error, ctx, typed):
                raise click.UsageError(said, error.ctx or ctx) from None
            raise

    def _corrected(self, error: click.UsageError, ctx: click.Context, typed: Sequence[str]) -> str:
        """Return a sentence on words that are wrong, with those that would be right; empty where click's own does."""
        from shlex import quote  # for errors alone

        from ingest.query.origin import store_at

        if isinstance(error, click.NoSuchOption):
            known = [name for option in self._options(ctx) for name in option.opts]
            return f"there is no option {shown(error.option_name)}: {_option_meant(error.option_name, known)}"
        if isinstance(error, click.MissingParameter) and error.param is not None and not isinstance(self, Group):
            lacks = [error.param.opts[0]] if isinstance(error.param, click.Option) else []
            metavar = error.param.make_metavar(ctx)
            right = " ".join(map(quote, [*ctx.command_path.split(), *typed, *lacks, *(["NAME"] if lacks else [])]))
            return f"{self.name} needs {' '.join([*lacks, metavar])}, as in {right}{'' if lacks else f' {metavar}'.rstrip('.')}"
        if error.message.startswith(SURPLUS):
            surplus = shown(error.message.partition("(")[2].rstrip(")"))
            is_of_store = "store" in {one.name for one in self.params} and store_at(surplus)
            near = f"a store is named by --store {quote(surplus)}" if is_of_store else "quotes make one word of several"
            return f"{ctx.command_path} takes no more words, here is {surplus}; {near}"
        return ""

    def _first(self, options: Sequence[click.Option]) -> Sequence[click.Option]:
        """Return the options that the first help shows, at most MOST_FIRST: of a long list without those that are used least."""
        rare = [one for one in options if group_of(self.name or "", one.name or "") == READING or one.name in RARE.split()]
        return options if len(options) <= MOST_FIRST else [one for one in options if one not in rare]

    def _spelled(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the words of a call; a format as an option of its own (--json, --csv) is --format and its name."""
        known = {name: option for option in self._options(ctx) for name in option.opts}
        of_format = known[FORMAT].type if FORMAT in known else None
        if not isinstance(of_format, click.Choice):
            return args
        last = args.index("--") if "--" in args else len(args)
        short = {f"--{form}" for form in of_format.choices} - known.keys()
        spelled = (([FORMAT, word[2:]] if word in short else [word]) for word in args[:last])
        return [*(word for words in spelled for word in words), *args[last:]]

    def _options(self, ctx: click.Context) -> Sequence[click.Option]:
        return [option for option in self.get_params(ctx) if isinstance(option, click.Option)]


class Group(Command, click.Group):
    """A command with commands of its own, which are commands of this module."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by what they are for, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named first; UsageError names the one that is meant where there is none of this name."""
        if not (ctx.resilient_parsing or args[0].startswith("-") or self.get_command(ctx, args[0])):
            above = ctx.parent.command.list_commands(ctx.parent) if ctx.parent and isinstance(ctx.parent.command, Group) else ()
            raise click.UsageError(_no_command(ctx.command_path, args, self.named(ctx), above), ctx)
        return super().resolve_command(ctx, args)

    def named(self, ctx: click.Context) -> Mapping[str, str]:
        """Return what may be meant by a word that is no command, as it is called."""
        return {name: name for name in self.list_commands(ctx)}


def _no_command(before: str, args: list[str], known: Mapping[str, str], above: Sequence[str]) -> str:
    """Return a sentence on a first word that is no command: with the command that is meant, where that is known."""
    from shlex import quote  # for errors alone

    from ingest.core.errors import ALIKE, likeness, suggestions
    from ingest.query.origin import store_at

    word, *others = args
    (near, *_) = suggestions(word, known)
    of_all, group = f"{before} --help lists all", before.rsplit(maxsplit=1)[-1]
    if word in above:
        right = " ".join([before.split(maxsplit=1)[0], *map(quote, args)])
        return f"there is no command {word!r}: do you mean {right}? ({of_all})"
    if group in FIRST and (os.path.lexists(word) or store_at(word)):
        right = " ".join([before, FIRST[group], *map(quote, args)])
        return f"there is no command {word!r}: do you mean {right}? ({of_all})"
    if "inspect" in known and (os.path.lexists(word) or store_at(word)):
        path, shows = quote(word), "percentiles" if store_at(word) else "inspect"
        return (
            f"{word} is no command: {before} {shows} {path} shows what it holds, {before} report {path} writes a page; {of_all}"
        )
    if (meant := MEANT.get(word, word)) != word and meant.split()[0] in known:
        near = meant
    elif likeness(word, near) < ALIKE:
        return f"there is no command {word!r}: {of_all}"
    right = " ".join([before, known.get(near, near), *map(quote, others)])
    return f"there is no command {word!r}: do you mean {right}? ({of_all})"


def _option_meant(word: str, known: Sequence[str]) -> str:
    """Return what to type in place of an option that a command does not have."""
    from ingest.core.errors import likeness, suggestions  # for errors alone

    meant = OPTIONS_MEANT.get(word, "")
    if meant and (meant in known or not meant.startswith("-")):
        return f"do you mean {meant}?" if meant in known else meant
    (near, *_) = suggestions(word, known)
    return f"do you mean {near}?" if likeness(word, near) >= ALIKE_OPTIONS and word[:2] == near[:2] else "--help all shows all"


def _check_empty(ctx: click.Context, args: list[str]) -> None:
    """Raise UsageError for an empty word: as a path it would be the folder that one stands in, as a time the whole range.

    What stands behind -- are the words of another command.
    """
    before = "the name of the command"
    for word in args[: args.index("--")] if "--" in args else args:
        empty = not word or (word.startswith("--") and word.partition("=")[1:] == ("=", ""))
        if empty and (word or before).rstrip("=") not in LISTS:
            said = f"an empty word stands behind {shown(word or before)}: is a variable of the shell not set?"
            raise click.UsageError(said, ctx)
        before = word
