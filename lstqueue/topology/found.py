"""What a reader makes of a source: who is cabled to whom, or who is said to be in which domain.

A source of cables (`graph`) says nothing of domains, and one of domains (`Said`) nothing of cables; some say
both. What becomes of either is `contract`'s. Nothing here is of one format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lstqueue.topology.domains import LeftOut, Merged

if TYPE_CHECKING:
    from lstqueue.topology.graph import Graph

MOST_NODES = 200_000
"""Nodes of a source, far above any cluster: more are a mistake, such as a range with a digit too many."""
MOST_LEVELS = 16
"""Levels of a source, as many as Kueue allows."""
UNKNOWN = frozenset(
    {"", "-", "<none>", "empty", "missing", "n/a", "na", "nil"}
    | {"no-imds-data", "none", "null", "undefined", "unknown"}
)
"""What people and agents write where they do not know; read literally, it would be one giant domain."""


class TopologyError(ValueError):
    """A source that says nothing usable.

    The message begins with where in it (`line 7`, `spec.levels[0].nodeLabel`) and ends with what to do.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)


@dataclass(frozen=True, slots=True)
class Said:
    """One level as a source says it: by node, the name of its domain, which need not be unique.

    `accelerator` levels are of NVLink, whose names are unique in the whole fabric. `uplinks` is MB/s one way
    by domain, where known and names are unique.
    """

    level: str
    domain: Mapping[str, str]
    accelerator: bool = False
    uplinks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """All that a reader found; `said` from outer to inner, as far as the source has an order.

    `graph` is None for a source that knows of no cables.
    """

    nodes: tuple[str, ...]
    graph: Graph | None = None
    said: tuple[Said, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    merged: tuple[Merged, ...] = ()
    notes: tuple[str, ...] = ()

    def facts(self) -> tuple[object, ...]:
        """All of it as values that compare, which a graph does not."""
        graph = self.graph
        cables = () if graph is None else (dict(graph.nodes(data=True)), dict(graph.adjacency()))
        return self.nodes, cables, self.said, self.left_out, self.merged, self.notes


@dataclass(slots=True)
class Cabled:
    """What cables say: levels, outer first, and MB/s of hosts to their switches and into NVLink domains."""

    said: list[Said] = field(default_factory=list)
    links: dict[str, int] = field(default_factory=dict)
    nvlinks: dict[str, int] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    merged: list[Merged] = field(default_factory=list)


def known(value: object) -> str | None:
    """Return a name, or None where it says that nobody knows."""
    text = value.strip() if isinstance(value, str) else ""
    return None if text.lower() in UNKNOWN else text


def within(names: Collection[str]) -> None:
    """Refuse a source of more nodes than there can be.

    Raises:
        TopologyError: It has.
    """
    if len(names) > MOST_NODES:
        raise TopologyError("", f"has more than {MOST_NODES:,} nodes; check its ranges")
