"""The drawing script is kept for the next page, and a file that may not be believed is not."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ingest.view.page.template import SNIPPET, runtime

vl_convert = pytest.importorskip("vl_convert")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a script is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tailboard"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was bundled anew."""
    calls: list[str] = []

    def bundle(snippet: str) -> str:
        calls.append(snippet)
        return "draw('</script>'); // \u00b5s"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return calls


def again() -> str:
    runtime.cache_clear()
    try:
        return runtime()
    finally:
        runtime.cache_clear()


def test_the_second_page_makes_no_bundle(folder: Path, made: list[str]) -> None:
    assert again() == again() == "draw('<\\/script>'); // \u00b5s"
    assert made == [SNIPPET]
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "writable", "open folder", "a folder", "no text"])
def test_a_file_that_may_not_be_believed_is_made_anew(folder: Path, made: list[str], damage: str) -> None:
    wanted = again()
    (path,) = folder.iterdir()
    content = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    elif damage == "writable":
        path.write_bytes(content.replace(b"draw", b"hack"))
        path.chmod(0o666)
    elif damage == "open folder":
        folder.chmod(0o777)
    else:
        path.write_bytes(
            {"cut": content[:-3], "changed": content.replace(b"draw", b"hack"), "empty": b"", "no text": b"\xff\n\xff"}[damage]
        )
    assert again() == wanted
    assert len(made) == 2
    if damage not in ("a folder", "open folder"):
        assert path.read_bytes() == content
        assert again() == wanted and len(made) == 2


def test_a_file_in_place_of_the_folder_is_no_fault(folder: Path, made: list[str]) -> None:
    folder.write_text("")
    assert again() == again()
    assert len(made) == 2


def test_nothing_is_kept_under_a_relative_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: list[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    again()
    assert [path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*.js")] == [(".cache", "tailboard")]
