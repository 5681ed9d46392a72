"""The colours of the pages, for readers who see fewer of them: lines stay apart under three kinds of colour blindness, on each page."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

CSS = Path(__file__).parents[2] / "ingest" / "view" / "page" / "html" / "page.css"
# Machado, Oliveira and Fernandes 2009, severity 1, of linear light.
SEEN = {
    "all": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)
FOUR, EIGHT, FAINT = (
    20,
    12,
    15,
)  # least distances in Lab of the first four lines, of all, and of the faintest shades of highlights


def light(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(linear: np.ndarray) -> np.ndarray:
    x, y, z = (np.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in TO_XYZ @ np.clip(linear, 0, 1) / WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def luminance(colour: str) -> float:
    return float(TO_XYZ[1] @ light(colour))


def palettes() -> list[tuple[str, list[str]]]:
    """Return the colour of panels and those of lines, light then dark."""
    css = CSS.read_text()
    panels = re.findall(r"--panel: (#\w{6});", css)
    lines = [re.findall(r"#\w{6}", found) for found in re.findall(r"--series: ([^;]*);", css)]
    return list(zip(panels, lines, strict=True))


@pytest.mark.parametrize(("panel", "lines"), palettes(), ids=["light", "dark"])
@pytest.mark.parametrize("sight", SEEN)
def test_lines_stay_apart_however_a_reader_sees_colours(panel: str, lines: list[str], sight: str) -> None:
    assert len(lines) == 8
    places = [lab(SEEN[sight] @ light(colour)) for colour in lines]
    for most, least in ((4, FOUR), (8, EIGHT)):
        apart = {pair: float(np.linalg.norm(places[pair[0]] - places[pair[1]])) for pair in combinations(range(most), 2)}
        assert min(apart.values()) >= least, min(apart, key=apart.__getitem__)
    for colour in lines:
        low, high = sorted((luminance(colour), luminance(panel)))
        assert (high + 0.05) / (low + 0.05) >= 3, colour


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("sight", SEEN)
def test_two_highlights_stay_apart_from_one_another_and_from_all_others(*, dark: bool, sight: str) -> None:
    css = CSS.read_text()
    found = {name: re.findall(rf"--{name}: ([^;]*);", css)[dark].split(", ") for name in ("panel", "ink", "ramp", "hues")}
    mix = lambda one, other, part: [(1 - part) * a + part * b for a, b in zip(one, other, strict=True)]
    panel, ink, *hues = (
        [int(colour[at : at + 2], 16) for at in (1, 3, 5)] for name in ("panel", "ink", "hues") for colour in found[name]
    )
    ramps = [[mix(panel, hue, 0.35), mix(panel, hue, 0.7), hue, mix(hue, ink, 0.16), mix(hue, ink, 0.34)] for hue in hues[:2]]
    shown = [found["ramp"][:5], *([f"#{round(r):02x}{round(g):02x}{round(b):02x}" for r, g, b in ramp] for ramp in ramps)]
    for one, other in combinations(shown, 2):  # of one shade each, as cells with the same number of events are
        apart = [
            float(np.linalg.norm(lab(SEEN[sight] @ light(a)) - lab(SEEN[sight] @ light(b))))
            for a, b in zip(one, other, strict=True)
        ]
        assert min(apart) >= FAINT and sorted(apart)[2] >= FOUR, apart
