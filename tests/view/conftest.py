"""Chromium, and reports opened in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest.view.page.report.page import report
from tests.view.page import settle

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def missing(what: str) -> None:
    """Skip, or fail where CI is to have everything."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not here, and CI is to test the page")
    pytest.skip(f"{what} is not here")


@pytest.fixture(scope="module")
def browser():
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
        chromium.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Return the context manager that opens the report of overviews, and in the end finds no error and no request."""

    @contextmanager
    def page_of(runs, facts=(), marks=(), by=("op",), sla=0, fragment="", **context) -> Iterator:
        path = tmp_path / "report.html"
        path.write_text(report(runs, facts, marks, by, sla), encoding="utf-8")
        with shown(browser, path, fragment, **context) as page:
            yield page

    return page_of


@contextmanager
def shown(browser, path: Path, fragment: str = "", **context) -> Iterator:
    """Open a page, and in the end find no error and no request."""
    heard, asked = [], []
    window = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, "timezone_id": "Asia/Kolkata", **context})
    window.set_default_timeout(300_000)  # for as long only that a test which hangs ends
    page = window.new_page()
    page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri() + fragment)
    settle(page)
    yield page
    settle(page)
    assert page.locator("#failed").is_hidden(), page.locator("#failed").inner_text()
    window.close()
    assert heard == []
    assert set(asked) == {path.as_uri()}
