"""Vega expressions over a stored bin layout: which bin a value lies in, and what that bin reports.

The text `loglinear:64:1856:1ns:c0:midpoint:open` (ingest.core.layout) is read in the panel itself, as only the answer has it.
The arithmetic is that of `LogLinear`, `Exponential` and `Edges`; tests evaluate these expressions in Vega and compare every bin.
"""

from __future__ import annotations

from typing import Any

Transform = dict[str, Any]
PART = "split({layout}, ':')"
LARGEST = 60  # no exponential bin is made that begins above 2^60 ns


def formula(name: str, expression: str) -> Transform:
    """Return the transform that adds a column."""
    return {"type": "formula", "as": name, "expr": expression}


def layout_columns(layout: str) -> list[Transform]:
    """Return transforms that read the layout text in an expression; the columns are 0 where there is none."""
    part = PART.format(layout=layout)
    return [
        formula("half", f"toNumber({part}[1]) || 0"),
        formula("fine", f"toNumber({part}[2]) || 0"),
        formula("unit", f"toNumber(replace({part}[3] || '0', 'ns', ''))"),
        formula("wide", f"pow(2, toNumber(substring({part}[4] || 'c0', 1)))"),
        formula("reports", f"{part}[5] || ''"),
        formula("top", f"{part}[6] == 'open' ? ceil(datum.fine / datum.wide) - 1 : -1"),
        formula("grain", f"toNumber(replace({part}[7] || '0', 'ns', '')) || datum.unit"),
    ]


LAYOUT_COLUMNS = ("half", "fine", "unit", "wide", "reports", "top", "grain")


def edge(number: str) -> str:
    """Return the lower edge in ns of the bin before coarsening that a column or expression names."""
    octave = f"pow(2, floor({number} / datum.half) - 1)"
    return f"({number} < 2 * datum.half ? {number} : (datum.half + {number} % datum.half) * {octave}) * datum.unit"


def bin_of(name: str, value: str) -> list[Transform]:
    """Return transforms that add the bin of a value as a column; -1 where there is no layout."""
    units, octave = f"({value} / datum.unit)", "datum.octave"
    placed = f"floor((datum.half * {octave} + floor({units} / pow(2, {octave}))) / datum.wide)"
    return [
        formula("octave", f"datum.half ? max(0, floor(log({units} / datum.half) / LN2 + 1e-12)) : 0"),
        formula(name, f"datum.half ? min({placed}, ceil(datum.fine / datum.wide) - 1) : -1"),
    ]


def value_of(name: str, number: str) -> list[Transform]:
    """Return transforms that add what the bin in the column `number` reports."""
    at = f"datum.{number}"
    middle = "datum.lower_edge + floor((datum.upper_edge - datum.lower_edge) / datum.unit / 2) * datum.unit"
    reported = (
        f"{at} == datum.top ? datum.lower_edge + (datum.reports == 'upper' ? 1 : 0) : datum.reports == 'midpoint' ? {middle} : "
        "datum.reports == 'highest' ? datum.upper_edge - datum.grain : datum.upper_edge"
    )
    return [*edges_of(number), formula(name, reported)]


def edges_of(number: str) -> list[Transform]:
    """Return transforms that add `lower_edge` and `upper_edge` of the bin in the column `number`."""
    at = f"datum.{number}"
    return [
        formula("first", f"{at} * datum.wide"),
        formula("last", f"min(({at} + 1) * datum.wide, datum.fine)"),
        formula("lower_edge", edge("datum.first")),
        formula("upper_edge", edge("datum.last")),
    ]


def snapped(name: str, value: str) -> list[Transform]:
    """Return transforms that add the reported value of a bin that is nearest to `value`, itself where there is no layout.

    The server's hdr answers lie within 0.8 % of the value that a bin reports: in its bin or in the one beside it.
    """
    last = "ceil(datum.fine / datum.wide) - 1"
    return [
        *bin_of("own", value),
        *value_of("own_value", "own"),
        formula("other", f"max(0, min(datum.own + ({value} > datum.own_value ? 1 : -1), {last}))"),
        *value_of("other_value", "other"),
        formula("nearer", f"abs(datum.other_value - {value}) < abs(datum.own_value - {value})"),
        formula(name, f"!datum.half ? {value} : datum.nearer ? datum.other_value : datum.own_value"),
        formula("open", "datum.half && (datum.nearer ? datum.other : datum.own) == datum.top ? 1 : 0"),
    ]


def family_columns(layout: str) -> list[Transform]:
    """Return transforms that read what `bins_of` needs from the layout text in an expression, beside `layout_columns`.

    `octave_bins` is how many bins an octave has; of listed edges, of which it is not known, and of no layout, it is 0.
    """
    part = PART.format(layout=layout)
    listed, of_octave = "datum.family == 'edges'", "datum.half / datum.wide"
    return [
        formula("family", f"{part}[0] || ''"),
        formula("scale", f"toNumber(substring({part}[1] || '', 1)) || 0"),
        formula("ground", f"toNumber(replace({part}[2] || '0', 'ns', '')) || 1"),
        formula("listed", f"{listed} ? split(substring({part}[1], 1), ',') : []"),
        formula("ended", f"{listed} && {part}[2] == 'open' ? 1 : 0"),
        formula("octave_bins", by_family(edges="0", exponential="pow(2, datum.scale)", loglinear=of_octave)),
    ]


def by_family(*, edges: str, exponential: str, loglinear: str) -> str:
    """Return the expression with a value for each family of layouts, 0 for another."""
    listed = {"edges": edges, "exponential": exponential, "loglinear": loglinear}
    return "(" + "".join(f"datum.family == '{family}' ? {value} : " for family, value in listed.items()) + "0)"


def bins_of() -> list[Transform]:
    """Return transforms that make a row of each bin of a layout: `lower`, `upper` (ns), the `value` it reports, `open` (0, 1)."""
    # An exponential bin ends at ground * 2^(number / 2^scale), that included: its upper edge is one whole ns above.
    before, end = (f"floor(datum.ground * pow(2, (datum.bin - {back}) / pow(2, datum.scale)))" for back in (1, 0))
    first = "floor(-log(datum.ground) / LN2 * pow(2, datum.scale))"
    last = f"ceil(({LARGEST} - log(datum.ground) / LN2) * pow(2, datum.scale))"
    bins = "ceil(datum.fine / datum.wide)"
    numbers = by_family(
        edges="sequence(0, length(datum.listed) - 1)", exponential=f"sequence({first}, {last})", loglinear=f"sequence(0, {bins})"
    )
    lower = by_family(
        edges="toNumber(datum.listed[datum.bin])",
        exponential=f"({before} + 1)",
        loglinear="datum.lower_edge",
    )
    upper = by_family(edges="toNumber(datum.listed[datum.bin + 1])", exponential=f"({end} + 1)", loglinear="datum.upper_edge")
    is_last = by_family(
        edges="datum.ended && datum.bin == length(datum.listed) - 2", exponential="false", loglinear="datum.bin == datum.top"
    )
    highest = "(datum.open ? datum.lower : datum.upper - 1)"
    return [
        formula("numbers", f"{numbers} || []"),
        {"type": "flatten", "fields": ["numbers"], "as": ["bin"]},
        *value_of("reported", "bin"),
        formula("lower", lower),
        formula("upper", upper),
        {"type": "filter", "expr": "datum.upper > max(1, datum.lower)"},
        formula("open", f"{is_last} ? 1 : 0"),
        formula("value", by_family(edges=highest, exponential=highest, loglinear="datum.reported")),
    ]
