"""Paths and links in the documentation, and paths of pages that code, help and error sentences name: they lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|png|py)\b")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the checkout that git knows, or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({ROOT / name for name in names if name and (ROOT / name).is_file()})


def texts() -> Iterator[tuple[Path, str]]:
    """Yield each tracked file that is text, with its text."""
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content[:8192]:
            yield path, content.decode("utf-8", "replace")


def anchors(text: str) -> set[str]:
    """Return the anchors that a page's headings get: lower case, no punctuation, hyphens for spaces, numbered where they repeat."""
    names: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = 0
        while (numbered := f"{name}-{count}" if count else name) in names:
            count += 1
        names.add(numbered)
    return names


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of a page."""
    broken = []
    for target, anchor in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        place = page.parent / target if target else page
        if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors(place.read_text(encoding="utf-8"))):
            broken.append(f"{page.relative_to(ROOT)}: {target}{'#' if anchor else ''}{anchor}")
    return broken


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_every_page_that_is_named_exists() -> None:
    named = {(match, path) for path, text in texts() for match in PAGE.findall(text)}
    missing = sorted(f"{path.relative_to(ROOT)}: {name}" for name, path in named if not (ROOT / name).is_file())
    assert len(named) > 50
    assert missing == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_every_relative_link_resolves() -> None:
    pages = tracked("*.md")
    assert [line for page in pages for line in broken_links(page, page.read_text(encoding="utf-8"))] == []


def test_a_broken_link_is_seen() -> None:
    page = ROOT / "docs" / "README.md"
    assert broken_links(page, "[a](glossary.md) [b](none.md) [c](glossary.md#glossary) [d](glossary.md#none)") == [
        "docs/README.md: none.md",
        "docs/README.md: glossary.md#none",
    ]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_every_page_can_be_reached_from_the_way_in() -> None:
    seen: set[Path] = set()
    ahead = [ROOT / "docs" / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or not page.is_file() or page.suffix != ".md":
            continue
        seen.add(page)
        links = LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
        ahead += [Path(os.path.normpath(page.parent / target)) for target, _ in links if target and ":" not in target]
    assert [str(page.relative_to(ROOT)) for page in tracked("docs/*.md") if page not in seen] == []
