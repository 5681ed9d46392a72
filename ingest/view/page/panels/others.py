"""Runs that a page is too small for: each with its row of the whole range, from rollups where it lies in a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ingest.core.errors import InputError
from ingest.core.quantiles import SUMMARY
from ingest.core.units import utc
from ingest.query.origin import Origin, Run
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import ALL, Question
from ingest.query.table import Table
from ingest.view.page.tables import cell
from ingest.view.page.template import AFTER_DISTRIBUTION, Section, text
from ingest.view.vega import printable

MOST_RUNS = 64  # with panels of their own: about 6 MB, and 5 s on two cores
MOST_ROWS = 5000


def newest(records: Sequence[Run], names: Sequence[str], most: int) -> list[str]:
    """Return the `most` runs of `names` that began last, in their order; those without a clock count as older than any."""
    began = {record.run: (not record.relative, record.start_ns) for record in records}
    taken = sorted(names, key=lambda name: (*began[name], name))[-most:]
    return [name for name in names if name in taken]


def sections(source: Origin, question: Question, left: Sequence[str], chosen: int) -> list[Section]:
    """Return the section of the runs that are `left` out of `chosen` ones: by name, with percentiles of their whole range."""
    if not left:
        return []
    note = (
        f"{len(left)} of {chosen} runs are not drawn: the page has panels of the {chosen - len(left)} that began last. "
        "A table below has the others; --run chooses runs, --full draws all"
    )
    began = {record.run: "" if record.relative else utc(record.start_ns)[:19].replace("T", " ") for record in source.runs()}
    rows, why = _rows(source, question, set(left))
    nothing = [f'<td class="left"></td>{"<td></td>" * (len(SUMMARY) + 2)}']
    body = [
        f'<tr><th scope="row">{text(printable(name))}</th><td class="left">{began[name]}</td>{line}</tr>'
        for name in left
        for line in rows.get(name, nothing)
    ]
    more = f"; {len(body) - MOST_ROWS} rows are left out here" if len(body) > MOST_ROWS else ""
    more += f"; that table has no numbers: {why}" if why else ""
    head = "".join(f'<th scope="col">{percentile.name}</th>' for percentile in SUMMARY)
    filling = {"head": head, "rows": "".join(body[:MOST_ROWS])}
    return [Section("others", AFTER_DISTRIBUTION, notes=[note + more], html_filling=filling)]


def _rows(source: Origin, question: Question, left: set[str]) -> tuple[Mapping[str, list[str]], str]:
    """Return the cells of the rows of each run that is left out, by its name; where one question cannot ask them all, why."""
    labels = tuple(name for name in question.by or ("op",) if name != "run")
    asked = replace(question, by=("run", *labels), step=ALL, merge_runs=False)
    try:
        table = percentiles(source.answer(asked), Wanted(SUMMARY))
    except InputError as error:
        return {}, str(error)
    rows: dict[str, list[str]] = {}
    for row, run in enumerate(table.columns["run"].tolist()):
        if run in left:
            rows.setdefault(run, []).append(_row(table, row))
    return rows, ""


def _row(table: Table, row: int) -> str:
    group = ", ".join(printable(str(table.columns[name][row])) or "-" for name in table.labels if name != "run")
    cells = [f"{int(table.columns['count'][row]):,}", *(cell(table, name, row) for name in (*(p.name for p in SUMMARY), "max"))]
    return f'<td class="left">{text(group)}</td>' + "".join(f"<td>{each}</td>" for each in cells)
