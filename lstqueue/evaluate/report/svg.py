"""Elements of a page and of a drawing, as a tree: what is text stays text, whatever it contains.

No strings are glued into markup anywhere in a report, so nothing has to be remembered to be escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree

from lstqueue.evaluate.report import words

Element = ElementTree.Element
Child = Element | str
SVG = "http://www.w3.org/2000/svg"


def el(tag: str, attributes: Mapping[str, str | float] | None = None, *children: Child) -> Element:
    """Make an element; numbers are written with two decimals at most, text without control characters."""
    made = Element(tag, {name: _written(value) for name, value in (attributes or {}).items()})
    add(made, children)
    return made


def add(parent: Element, children: Iterable[Child]) -> None:
    """Add children, texts among them, at the end."""
    for child in children:
        if isinstance(child, str):
            text = words.clean(child)
            if len(parent):
                parent[-1].tail = (parent[-1].tail or "") + text
            else:
                parent.text = (parent.text or "") + text
        else:
            parent.append(child)


def markup(root: Element) -> str:
    """Write a tree as HTML, in which an `svg` element with all in it is valid XML as well."""
    return ElementTree.tostring(root, encoding="unicode", method="html")


def drawing(width: float, height: float, label: str, *children: Child, least: float = 0) -> Element:
    """A picture of so many units that scales with the page; `label` says what it shows to who cannot see it.

    A page that is narrower than `least` pixels has to scroll it.
    """
    size = {"viewBox": f"0 0 {_written(width)} {_written(height)}", "xmlns": SVG}
    limits = f"max-width:{_written(width * 1.15)}px" + (f";min-width:{_written(least)}px" if least else "")
    return el("svg", {**size, "role": "img", "aria-label": label, "style": limits}, *children)


def text(x: float, y: float, words_: str, *, kind: str = "", anchor: str = "start") -> Element:
    """A line of text, its baseline at `y`."""
    more = {"class": kind} if kind else {}
    return el("text", {"x": x, "y": y, "text-anchor": anchor, **more}, words_)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    """A straight line."""
    return el("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})


def box(x: float, y: float, width: float, height: float, kind: str, tip: str = "") -> Element:
    """A rectangle; `tip` is shown where the pointer rests on it."""
    made = el("rect", {"x": x, "y": y, "width": max(width, 0), "height": max(height, 0), "class": kind})
    if tip:
        made.append(el("title", {}, tip))
    return made


def path(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> Element:
    """A line through points; closed, an area."""
    steps = [f"{_written(x)} {_written(y)}" for x, y in points]
    return el("path", {"d": "M" + "L".join(steps) + ("Z" if closed else ""), "class": kind})


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return words.clean(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
