"""The colours of a report can be told from what they are on, in light and in dark."""

import importlib.resources
import re

import pytest

TEXTS = ("ink", "quiet", "met")
SHAPES = ("met", "missed", "none", "bound", "stopped", "late", "tight", "near", "far", "free", "h4", "h5")
CSS = importlib.resources.files("lstqueue.evaluate.report").joinpath("report.css").read_text(encoding="utf-8")


def _colours(theme: str) -> dict[str, str]:
    light, dark, paper = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    return dict(re.findall(r"--(\w+): (#\w{6})", {"light": light, "dark": dark, "paper": paper}[theme]))


def _luminance(colour: str) -> float:
    """Relative luminance as in WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_texts_and_shapes_stand_out(theme: str) -> None:
    colours = _colours(theme)
    for back in ("page", "soft"):
        for name in TEXTS:
            assert _contrast(colours[name], colours[back]) >= 4.5, name
        for name in SHAPES:
            assert _contrast(colours[name], colours[back]) >= 3, name
    for heat, on in (("h1", "ink"), ("h2", "ink"), ("h3", "ink"), ("h4", "page"), ("h5", "page")):
        assert _contrast(colours[heat], colours[on]) >= 4.5, heat
    # What meets and what misses a deadline differs in lightness as well, for who cannot tell the hues.
    assert _contrast(colours["met"], colours["missed"]) >= 1.6


def test_every_class_of_a_drawing_has_a_style() -> None:
    for name in (
        *SHAPES[:10],
        "grid",
        "tick",
        "empty",
        "whisker",
        "interval",
        "zero",
        "last",
        "bar",
        "heat5",
        "onheat",
    ):
        assert re.search(rf"svg \.{name}\b", CSS), name
