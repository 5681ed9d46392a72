"""Reports opened in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ingest.view.page.report import parts_of
from ingest.view.page.template import page_of
from tests.browsing import shown


@pytest.fixture
def opened(browser, tmp_path):
    """Return the context manager that opens the report of overviews, and in the end finds no error and no request."""

    @contextmanager
    def page(runs, facts=(), marks=(), by=("op",), sla=0, fragment="", **words) -> Iterator:
        path = tmp_path / "report.html"
        path.write_text(page_of(parts_of(runs, facts, marks, by, sla)), encoding="utf-8")
        with shown(browser, path, fragment, **words) as found:
            yield found

    return page
