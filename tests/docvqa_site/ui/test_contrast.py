"""Text of every color is readable on every background: 4.5 to 1, as WCAG 2 AA asks for."""

import re
from pathlib import Path

import pytest

import docvqa_site.ui

CSS = (Path(docvqa_site.ui.__file__).parent / "static" / "ui" / "site.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\n\s*\}", CSS, re.S)
)

GROUNDS = ["ground", "surface", "sunken"]
PAIRS = [
    *((text, ground) for text in ("text", "muted", "accent") for ground in GROUNDS),
    *((tone, f"{tone}-tint") for tone in ("good", "warn", "bad")),
    *(("text", f"{tone}-tint") for tone in ("good", "warn", "bad", "accent")),
    ("accent-strong", "accent-tint"),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("bad", "surface"),
    ("bad", "ground"),
]


def luminance(color: str) -> float:
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_black_on_white_is_21_to_1() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize(("text", "ground"), PAIRS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_contrasts_with_its_background(theme: dict[str, str], text: str, ground: str) -> None:
    assert contrast(theme[text], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_edges_of_controls_stand_out_from_the_surface(theme: dict[str, str]) -> None:
    assert contrast(theme["line-strong"], theme["surface"]) >= 3
