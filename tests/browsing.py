"""Chromium, and pages opened in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.view.page import settle

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SIZE = {"width": 1200, "height": 900}
ZONE = "Asia/Kolkata"
HANGS = 300_000  # ms: for as long only that a test which hangs ends
# As if the page had been made with all of its panels open.
UNFOLDED = """() => { const names = [...document.querySelectorAll(".panels > .panel[aria-labelledby]")].map((panel) => panel.getAttribute("aria-labelledby").slice(2));
  if (!tailboard?.content?.state) return;
  tailboard.content.state.open = names.join(",");
  dispatchEvent(new PopStateEvent("popstate")); }"""
idle: dict[tuple[Any, ...], Any] = {}


def missing(what: str) -> None:
    """Skip, or fail where CI is to have everything."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not here, and CI is to test the page")
    pytest.skip(f"{what} is not here")


@contextmanager
def launched() -> Iterator[Any]:
    """Give a Chromium."""
    try:
        import vl_convert  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        missing(str(error.name))
    if not CHROMIUM.is_file():
        missing(str(CHROMIUM))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        idle.clear()
        chromium.close()


@contextmanager
def blank_page(
    browser: Any, *, zone: str = ZONE, size: dict[str, int] = SIZE, scheme: str = "light", script: str = ""
) -> Iterator[Any]:
    """Give an empty page, in which `script` runs before any other, and take it back.

    It is the one before where that can be, as its process has compiled our scripts already; after a test that failed a new one.
    """
    kind = (browser, zone, script)
    page = idle.pop(kind, None)
    if page is None:
        window = browser.new_context(timezone_id=zone)
        window.set_default_timeout(HANGS)
        window.add_init_script(script)
        page = window.new_page()
    page.set_viewport_size(size)
    page.emulate_media(media="null", color_scheme=scheme)
    try:
        yield page
        page.goto("about:blank")
    except BaseException:
        page.context.close()
        raise
    if kind in idle:
        page.context.close()
    else:
        idle[kind] = page


@contextmanager
def heard(page: Any) -> Iterator[tuple[list[str], list[str]]]:
    """Give what a page says in its console, errors among it, and the addresses that it asks for."""
    said: list[str] = []
    asked: list[str] = []
    listeners = {
        "console": lambda message: said.append(f"{message.type}: {message.text}"),
        "pageerror": lambda error: said.append(str(error)),
        "request": lambda request: asked.append(request.url),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield said, asked
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


@contextmanager
def shown(browser: Any, path: Path, fragment: str = "", *, folded: bool = False, **words: Any) -> Iterator[Any]:
    """Open a page, and in the end find no error and no request; `words` are those of an empty page.

    All panels are open from the start, unless those below the first screen are to stay `folded`.
    """
    with blank_page(browser, **words) as page, heard(page) as (said, asked):
        page.goto(path.as_uri() + fragment)
        settle(page)
        if not folded:
            page.evaluate(UNFOLDED)
            settle(page)
        yield page
        settle(page)
        assert page.locator("#failed").is_hidden(), page.locator("#failed").inner_text()
        assert said == []
        assert set(asked) == {path.as_uri()}
