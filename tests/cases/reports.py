"""Small replays with their record, as a report gets them, and pages taken apart."""

from __future__ import annotations

import html.parser
import re
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from cases import replays
from lstqueue.engine import decide, model
from lstqueue.evaluate import (
    digest,
    estimates,
    figures,
    interconnects,
    lives,
    mishaps,
    output,
    replay,
    workload,
    world,
)
from lstqueue.evaluate.report import record, series


def recorded(
    works: Iterable[workload.Work],
    *,
    nodes: int = 1,
    costs: lives.Costs = replays.FREE,
    queue: model.Queue | None = None,
    wear: mishaps.Wear | None = None,
    topology: str | None = None,
    wishes: interconnects.Wishes | None = None,
) -> series.Recorded:
    """Replay works on nodes of eight GPUs with exact estimates, and take down what a report needs."""
    recorder = record.Recorder()
    asked = queue or model.Queue("q")
    shape = world.Shape(nodes, 8)
    machines, wanted = [(one.name, one.gpus) for one in shape.machines], wishes or interconnects.Wishes()
    linked = None if topology is None else interconnects.read(topology, machines, wanted, named=False)
    place = world.World(
        shape, costs, asked, log=digest.Log(), witnesses=[recorder], wear=wear, interconnect=linked
    )
    load = workload.Workload("made up", workload.ordered(works))
    again = replay.Replay(load, place, estimates.Exact(), config=model.Config(promising=False))
    outcome = again.run(decided=recorder.planned, decider=decide.decide)
    recorder.finish(outcome.ended)
    return series.Recorded(outcome, recorder)


def found(seen: series.Recorded, *, nodes: int = 1, bound: float | None = None) -> dict[str, Any]:
    """The figures of a replay as a script gets them."""
    return output.as_json(
        output.Result(
            options=output.Asked("lst", "swf:made-up", 1),
            seen=figures.of(seen.outcome, world.Shape(nodes, 8)),
            dropped={}, latency_s=figures.spread([0.001]), passes=seen.outcome.passes, checks=0, broken=0,
            wall_s=1.0, cpu_s=1.0, virtual_s=seen.length, peak_rss_mib=40.0, digest="0" * 64,
            stuck=seen.outcome.stuck, bound=bound,
        )
    )  # fmt: skip


class Page(html.parser.HTMLParser):
    """A page as a browser reads it: `elements` (tag, attributes), `ids`, texts by the element they are in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.source = page
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "link", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def values(self) -> dict[str, str]:
        """The figures by key, each as JSON."""
        return {
            attributes["data-key"]: attributes["data-value"]
            for _, attributes in self.elements
            if "data-key" in attributes
        }

    @property
    def drawings(self) -> list[ElementTree.Element]:
        """The drawings, read as XML."""
        return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", self.source, re.DOTALL)]

    def text(self, tag: str) -> str:
        return "".join(data for inside, data in self.texts if inside == tag)
