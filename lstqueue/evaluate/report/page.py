"""The page: headline, plots, the table of all figures, and how to get them again.

It holds to what a browser does without any help: one document, its own style sheet, no script, no address of
anything else. The policy in its head has the browser refuse whatever a name from a trace might try.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lstqueue
from lstqueue.evaluate.report import plot, svg, words

WIDE, HALF, NARROW = 1100.0, 540.0, 350.0
"""Widths in pixels that plots are drawn for: a whole row, half of one, and a telephone."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure in large: what it is, its value, and what that means."""

    name: str
    value: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """An option as it was; `given` says that somebody wanted it so."""

    flag: str
    value: str
    given: bool


@dataclass(frozen=True, slots=True)
class Content:
    """What a page says. `figures` are tables of figures by heading; `found` is the JSON they come from."""

    title: str
    headline: str
    lead: str
    tiles: tuple[Tile, ...]
    warnings: tuple[str, ...]
    plots: tuple[plot.Plot, ...]
    tables: tuple[svg.Element, ...]
    found: Mapping[str, Any]
    settings: tuple[Setting, ...]
    command: str


def html(content: Content) -> str:
    """Write the page."""
    page = svg.el("html", {"lang": "en"}, _head(content.title))
    body = svg.el("body", {}, svg.el("a", {"href": "#figures", "class": "skip"}, "Skip to the figures"))
    main = svg.el("main", {}, _header(content))
    main.append(svg.el("div", {"class": "plots"}, *[_figure(shown) for shown in content.plots]))
    figures = svg.el("section", {"id": "figures"}, svg.el("h2", {}, "All figures"), *content.tables)
    main.append(figures)
    main.append(_again(content))
    body.append(main)
    made = f"Made by lstqueue {lstqueue.__version__}. This file needs no network and runs no script."
    body.append(svg.el("footer", {}, made))
    page.append(body)
    return f"<!DOCTYPE html>\n{svg.markup(page)}\n"


def figures(found: Mapping[str, Any]) -> svg.Element:
    """Make the table of all figures of one replay; `data-value` has each as the JSON has it."""
    rows = []
    exact = dict(words.flat(found))
    for figure in words.figures(found):
        kind = "words" if isinstance(exact[figure.key], str) else "number"
        attributes = {"class": kind, "data-key": figure.key, "data-value": json.dumps(exact[figure.key])}
        rows.append(
            svg.el(
                "tr", {}, svg.el("th", {"scope": "row"}, figure.label),
                svg.el("td", attributes, figure.text), svg.el("td", {}, figure.unit),
                svg.el("td", {}, svg.el("code", {}, figure.key)),
            )
        )  # fmt: skip
    return scrolling(
        svg.el("table", {"class": "figures"}, _row(("figure", "value", "unit", "key in the JSON")),
               svg.el("tbody", {}, *rows)),
        "All figures",
    )  # fmt: skip


def table(head: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> svg.Element:
    """Make a table whose first column names its rows."""
    body = svg.el("tbody")
    for row in rows:
        made = svg.el("tr", {}, svg.el("th", {"scope": "row"}, row[0]))
        svg.add(made, [svg.el("td", {"class": "number"}, cell) for cell in row[1:]])
        body.append(made)
    return scrolling(svg.el("table", {}, _row(head), body), label)


def _row(head: Sequence[str]) -> svg.Element:
    cells = [svg.el("th", {"scope": "col"}, name) for name in head]
    return svg.el("thead", {}, svg.el("tr", {}, *cells))


def scrolling(inner: svg.Element, label: str) -> svg.Element:
    """Let what is too wide for the screen be scrolled, by keyboard too."""
    return svg.el("div", {"class": "scroll", "role": "region", "tabindex": "0", "aria-label": label}, inner)


def _head(title: str) -> svg.Element:
    style = importlib.resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    return svg.el(
        "head", {}, svg.el("meta", {"charset": "utf-8"}),
        svg.el("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        svg.el("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        svg.el("meta", {"name": "color-scheme", "content": "light dark"}),
        svg.el("link", {"rel": "icon", "href": "data:,"}),
        svg.el("title", {}, title), _style(style),
    )  # fmt: skip


def _style(text: str) -> svg.Element:
    made = svg.el("style")
    made.text = text  # as it is: its line ends are control characters
    return made


def _header(content: Content) -> svg.Element:
    header = svg.el("header", {}, svg.el("p", {"class": "kicker"}, content.title))
    header.append(svg.el("h1", {}, content.headline))
    header.append(svg.el("p", {"class": "lead"}, content.lead))
    if content.tiles:
        tiles = svg.el("dl", {"class": "tiles"})
        for tile in content.tiles:
            about = [svg.el("dd", {"class": "more"}, tile.more)] if tile.more else []
            tiles.append(
                svg.el(
                    "div",
                    {},
                    svg.el("dt", {}, tile.name),
                    svg.el("dd", {"class": "large"}, tile.value),
                    *about,
                )
            )
        header.append(tiles)
    if content.warnings:
        items = [svg.el("li", {}, warning) for warning in content.warnings]
        header.append(svg.el("ul", {"class": "warnings", "aria-label": "Mind"}, *items))
    return header


def _figure(shown: plot.Plot) -> svg.Element:
    wide = svg.el(
        "div",
        {"class": "scroll wide", "tabindex": "0", "role": "group"},
        shown.draw(WIDE if shown.wide else HALF),
    )
    narrow = svg.el("div", {"class": "scroll narrow", "tabindex": "0", "role": "group"}, shown.draw(NARROW))
    for part in (wide, narrow):
        part.set("aria-label", shown.title)
    caption = svg.el(
        "figcaption", {}, svg.el("p", {}, shown.said), svg.el("p", {"class": "note"}, shown.note)
    )
    numbers = svg.el("details", {}, svg.el("summary", {}, "The same in numbers"))
    numbers.append(table(shown.head, shown.rows, f"{shown.title}, in numbers"))
    kind = "plot row" if shown.wide else "plot"
    heading = svg.el("h2", {"id": shown.key}, shown.title)
    return svg.el(
        "figure", {"class": kind, "aria-labelledby": shown.key}, heading, wide, narrow, caption, numbers
    )


def _again(content: Content) -> svg.Element:
    section = svg.el("section", {}, svg.el("h2", {}, "How to get this again"))
    section.append(
        svg.el("p", {}, "The same options on the same trace give the same events and the same digest.")
    )
    section.append(
        svg.el("pre", {"tabindex": "0", "aria-label": "Command"}, svg.el("code", {}, content.command))
    )
    rows = [(item.flag, item.value, "given" if item.given else "default") for item in content.settings]
    section.append(table(("setting", "value", ""), rows, "Settings"))
    raw = svg.el("pre", {"id": "json", "tabindex": "0", "aria-label": "JSON"})
    raw.text = json.dumps(content.found, indent=2, ensure_ascii=True)
    section.append(svg.el("details", {}, svg.el("summary", {}, "The figures as JSON"), raw))
    return section
