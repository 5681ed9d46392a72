"""Specs drawn by the Vega of npm in Chromium, expressions interpreted as in Kibana (no eval)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import blank_page, heard

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
MAJORS = (5, 6)
EACH_MAJOR = (pytest.param(5, marks=pytest.mark.slow), 6)  # what holds with the newer one alone is known quicker
UTIL = "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';"
EXPORT = "export { expression as expressionInterpreter };"
NO_EVAL = "script-src 'unsafe-inline'"  # a page under this policy cannot eval
LIGHT = {"background": "#ffffff", "ink": "#343741", "line": "#d3dae6"}
DARK = {"background": "#1d1e24", "ink": "#dfe5ef", "line": "#4a4d57"}


def installed() -> bool:
    """Return whether `npm ci` was run here."""
    return all((MODULES / f"vega{major}").is_dir() for major in MAJORS)


def scripts(major: int) -> list[str]:
    """Return the scripts of a page: Vega, its interpreter, and how Kibana draws."""
    interpreter = (MODULES / f"interpreter{major}" / "build" / "vega-interpreter.js").read_text(encoding="utf-8")
    if UTIL in interpreter:  # 6 is a module alone: its import and export become what a plain script has
        interpreter = interpreter.replace(UTIL, "const { ascending, isString, DisallowedObjectProperties } = vega;")
        interpreter = "(() => {" + interpreter.replace(EXPORT, "vega.expressionInterpreter = expression;") + "})();"
    return [
        (MODULES / f"vega{major}" / "build" / "vega.min.js").read_text(encoding="utf-8"),
        interpreter,
        (HERE / "drawing.js").read_text(),
    ]


def theme(colors: Mapping[str, str]) -> dict[str, Any]:
    """Return a Vega config in the manner of Kibana's: ink and lines of its light or dark theme."""
    ink, line = colors["ink"], colors["line"]
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": line, "domainColor": line, "tickColor": line}
    return {
        "axis": axis,
        "title": {"color": ink},
        "legend": {"labelColor": ink, "titleColor": ink},
        "style": {"group-title": {"fill": ink}, "guide-label": {"fill": ink}},
    }


class Drawn:
    """A page that draws one spec after another; in the end nothing was asked of the network and nothing went wrong."""

    def __init__(self, page: Any, colors: Mapping[str, str]) -> None:
        self.page = page
        self.colors = colors

    def draw(
        self,
        spec: Mapping[str, Any],
        *,
        width: int = 1000,
        height: int = 400,
        restored: Mapping[str, Any] | None = None,
        late: bool = False,
    ) -> None:
        """Draw a spec; `restored` signals are set before its first run, or `late`. AssertionError for any warning of Vega."""
        options = {"width": width, "height": height, "config": theme(self.colors), "restored": restored, "late": late}
        problems = self.page.evaluate("([spec, options]) => draw(JSON.parse(spec), options)", [json.dumps(spec), options])
        assert not problems, problems

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a data entry, plain values alone."""
        return json.loads(self.page.evaluate("(name) => JSON.stringify(table(name))", name))

    def marks(self, name: str) -> list[dict[str, Any]]:
        """Return the boxes and colours of a named mark, in pixels."""
        return json.loads(self.page.evaluate("(name) => JSON.stringify(marksOf(name))", name))

    def signals(self) -> dict[str, Any]:
        """Return what Kibana would put back after a refresh."""
        return self.page.evaluate("() => signalsOf()")

    def signal(self, name: str) -> Any:
        """Return the value of a signal."""
        return self.page.evaluate("(name) => signalNow(name)", name)

    def choose(self, **values: Any) -> None:
        """Set signals, as their inputs do."""
        self.page.evaluate(
            "async (values) => { for (const [name, value] of Object.entries(values)) view.signal(name, value); await view.runAsync(); }",
            values,
        )

    def resize(self, width: int, height: int) -> None:
        """Give the picture another size, as Kibana does when its panel is resized."""
        self.page.evaluate("async ([width, height]) => { await view.width(width).height(height).runAsync(); }", [width, height])

    def picture(self) -> dict[str, Any]:
        """Return all that a reader sees: width and height of the plot, heading, and every item with its place and colours."""
        return self.page.evaluate("() => picture()")

    def called(self) -> list[list[Any]]:
        """Return the calls of Kibana's functions: name, then numbers."""
        return self.page.evaluate("() => called")


@contextmanager
def drawing(
    browser: Any, major: int, colors: Mapping[str, str] = LIGHT, size: tuple[int, int] = (1040, 620), zone: str = "UTC"
) -> Iterator[Drawn]:
    """Yield a page with the Vega of a major version."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{NO_EVAL}">'
    body = f'<body style="margin:8px;font:13px sans-serif;background:{colors["background"]};color:{colors["ink"]}"><div id="place"></div>'
    with blank_page(browser, zone=zone, size={"width": size[0], "height": size[1]}) as page, heard(page) as (said, asked):
        page.set_content(f"<!doctype html>{policy}{body}")
        for script in scripts(major):
            page.add_script_tag(content=script)
        yield Drawn(page, colors)
        assert not (errors := said + [url for url in asked if not url.startswith("data:")]), errors
