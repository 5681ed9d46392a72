"""A report that is open in Chromium: its controls, the tables and marks of its panels, and what the query layer answers."""

from __future__ import annotations

import json

import numpy as np

from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer

HOSTILE = (
    "</script><script>hacked = 1</script>",
    "<img src=x onerror='hacked = 1'>",
    "<b>bold</b>",
    "\u2028'\"&",
    "\u202eright to left",
    "x" * 1000,
)
SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"


def settle(page) -> None:
    """Wait until the page has drawn what it was last told."""
    page.evaluate(SETTLED)


def until(page, expression: str) -> None:
    """Wait until an expression holds in the page; its policy lets no text be evaluated there again and again."""
    for _ in range(1000):
        if page.evaluate(expression):
            return settle(page)
        page.wait_for_timeout(20)
    raise AssertionError(expression)


def choose(page, name: str, value: str) -> None:
    """Use a control by what it sets."""
    control = page.locator(f"[name={name}]").first
    control.evaluate(
        "control => { for (let fold = control.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true; }"
    )
    if control.evaluate("control => control.tagName") == "SELECT":
        control.select_option(value)
    elif control.get_attribute("type") in ("radio", "checkbox"):
        page.locator(f'[name={name}][value="{value}"]').click()
    else:
        page.locator(f"[name={name}]").last.fill(value)
        page.keyboard.press("Tab")
    settle(page)


def highlight(page, value: str) -> None:
    """Add a highlight to the latency heat map."""
    page.locator("#heatmap-choices").evaluate("fold => { fold.open = true; }")
    page.locator("#lit-add").select_option(value)
    settle(page)


def taken_out(page, script: str, given: object = None) -> list[dict]:
    """Return what a function in the page answers, as one text: value by value it takes a second for a few thousand rows."""
    as_text = "JSON.stringify(answer, (_, value) => (value === undefined ? null : value))"
    return json.loads(page.evaluate(f"async (given) => {{ const answer = await ({script})(given); return {as_text}; }}", given))


def rows_of(page, view: str, data: str = "points") -> list[dict]:
    """Return the rows of a data set of a view, or of the table that its paths are made of."""
    return taken_out(
        page,
        """([name, data]) => { const view = tailboard.views[name], held = Object.keys(view.getState({ data: (each) => each === data }).data);
        return (held.length ? view.data(data) : drawing.tablesOf(name)[data]).map((row) => ({...row})); }""",
        [view, data],
    )


def levels_of(page, view: str) -> list[dict]:
    """Return the levels that the paths of a view draw, in pixels: of each the label, the colour, x, x2 and y."""
    paths = items_of(page, view, "steps")
    wide, tall = page.evaluate("(name) => ['main', 'height'].map((signal) => tailboard.views[name].signal(signal))", view)
    found = []
    for path in paths:
        for step in path["datum"]["levels"].split("M")[1:]:
            x, y, x2 = map(float, step.replace("H", ",").split(","))
            found.append(
                {"label": path["datum"]["label"], "stroke": path["stroke"], "x": x * wide, "x2": x2 * wide, "y": y * tall}
            )
    return found


def items_of(page, view: str, mark: str) -> list[dict]:
    """Return where the drawn items of a mark are, with the row that each shows."""
    return taken_out(
        page,
        """([view, mark]) => tailboard.views[view].scenegraph().root.items[0].items.find((one) => one.name === mark).items
        .map(({ x, x2, y, y2, width, height, fill, stroke, opacity, datum }) => ({ x, x2, y, y2, width, height, fill, stroke, opacity, datum: {...datum} }))""",
        [view, mark],
    )


def cells_of(page) -> list[dict]:
    """Return the filled cells of the latency heat map, with their shade from 0 to 1; `lit` is of the first highlight."""
    return taken_out(
        page,
        """() => { const { map, shade } = tailboard.heat;
        return heat.cellsOf(map).map((cell) => ({ ...cell, lits: cell.lit, lit: cell.lit[0], shade: (shade[cell.column * (map.rows + 1) + cell.row] - 1) / 254 })); }""",
    )


def drawn_cells(page, over: bool = False) -> list[dict]:
    """Return the cells of the latency heat map as they are drawn: of those on the map (or dropped above it) place and colour."""
    return taken_out(
        page,
        """(over) => { const { map, image, above } = tailboard.heat, view = tailboard.views.heatmap, y = view.scale('y');
        const [inside, outside] = [image, above].map((canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height));
        const colour = ({ data, width }, column, row) => { const at = 4 * (row * width + column); return data[at + 3] ? `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})` : null; };
        return heat.cellsOf(map).filter((cell) => Boolean(cell.over) === over).map((cell) => {
          const [top, bottom] = over ? [-14, -4] : [y(cell.upper), y(cell.lower)], row = Math.floor(((top + bottom) / 2 / view.height()) * image.height);
          return { y: top, y2: bottom, x: view.scale('x')(cell.t), x2: view.scale('x')(cell.t2), datum: cell, fill: over ? colour(outside, cell.column, 0) : colour(inside, cell.column, row) }; }); }""",
        over,
    )


def keyed(rows: list[dict], *names: str) -> dict:
    """Return the drawn values by the named columns."""
    found = {tuple(row[name] for name in names): row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def drawn(page, view: str = "percentiles") -> dict:
    """Return the drawn percentiles by (window start in ms, label)."""
    return keyed(rows_of(page, view), "t", "label")


def answered(answer: Answer, percentile: str, suffix: str = "") -> dict:
    """Return what the query answers by (window start in ms, labels), where it has a value."""
    table = percentiles(answer, Wanted(parse_percentiles(percentile)))
    labels = [table.columns[name] for name in answer.by]
    values = zip(table.columns["start_ns"] // 1_000_000, *labels, table.columns[f"p{percentile}"], strict=True)
    name = f" p{percentile}" if suffix else ""
    return {
        (int(t), ("|".join(group) + name) or f"p{percentile}"): int(value) for t, *group, value in values if not np.isnan(value)
    }


def place(page, view: str, t: float, share: float = 0.5) -> tuple[float, float]:
    """Return where on the screen a time lies in a panel, at a share of its height."""
    page.locator(f"#{view}").evaluate("chart => chart.scrollIntoView({block: 'center'})")
    x, y = page.evaluate(
        """([name, t, share]) => { const view = tailboard.views[name], [left, top] = view.origin(), { left: pad, top: above } = view.padding();
        return [pad + left + view.scale('x')(t), above + top + share * view.signal('height')]; }""",
        [view, t, share],
    )
    box = page.locator(f"#{view} canvas").first.bounding_box()
    return box["x"] + x, box["y"] + y


def drag(page, view: str, begin: float, end: float) -> None:
    """Drag over the time axis of a panel."""
    x, y = place(page, view, begin)
    page.mouse.move(x, y)
    page.mouse.down()
    far, _ = place(page, view, end)
    page.mouse.move((x + far) / 2, y, steps=3)
    page.mouse.move(far, y)
    page.mouse.up()
    settle(page)


def hovered(page, view: str, mark: str) -> str:
    """Return the text of the tooltip of the first drawn item of a mark."""
    page.locator(f"#{view}").evaluate("chart => chart.scrollIntoView({block: 'center'})")
    x, y = page.evaluate(
        """([name, mark]) => { const view = tailboard.views[name], [left, top] = view.origin(), pad = view.padding();
        const box = view.scenegraph().root.items[0].items.find((found) => found.name === mark).items[0].bounds;
        return [pad.left + left + (box.x1 + box.x2) / 2, pad.top + top + (box.y1 + box.y2) / 2]; }""",
        [view, mark],
    )
    box = page.locator(f"#{view} canvas").first.bounding_box()
    for step in (-1, 0, 0.4):
        page.mouse.move(box["x"] + x + step, box["y"] + y)
        settle(page)
    page.locator("#vg-tooltip-element.visible").wait_for()
    return page.locator("#vg-tooltip-element").inner_text()
