"""The interconnect of a replay: which domains its nodes are in, and how much slower a place makes a gang.

It is read from a source of `lstqueue topology`, or made: `clos:NODES:LEAVES[:OVERSUBSCRIPTION]` has NODES
nodes under each leaf switch and LEAVES leaf groups in a block, `clos` alone as many as suit the size of the
cluster. Its nodes have 400 GB/s, and uplinks carry all of that, or one part in OVERSUBSCRIPTION. Gangs on
several nodes communicate for one share of a step, the same for all; with a share of 0 no place makes anybody
slower, which is the null model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import model
from lstqueue.evaluate import workload
from lstqueue.interconnect import sources
from lstqueue.topology import domains, slowdown, tree

MADE = "clos"
_MOST_MADE = 100_000
"""Nodes under a leaf, and leaf groups in a block, of one that is made."""
LINK = 400_000
"""MB/s one way of a node of a made one: eight ports of 400 Gb/s."""


class InterconnectError(ValueError):
    """An interconnect that cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What every gang on several nodes asks for: `communication` in ppm, `max_wait` in ms."""

    communication: int = 0
    preferred: str = ""
    max_wait: int | None = None


class Interconnect:
    """`domains` of the nodes of a replay, by their names there."""

    def __init__(self, found: domains.Domains, gpus: Sequence[int], wishes: Wishes) -> None:
        self.domains = found
        self._tree = tree.Tree(found)
        self._whole = np.array([gpus], dtype=np.int64)
        self._places = {name: place for place, name in enumerate(found.nodes)}
        self._wishes = wishes
        if wishes.preferred:
            try:
                self._tree.level(wishes.preferred)
            except ValueError as error:
                raise InterconnectError(f"--prefer: {error}") from error

    @property
    def mind(self) -> str | None:
        """What to mind about slowdowns where no rate is known, as of sources that have none; else None."""
        told = self.domains.link.any() or any(level.uplink.any() for level in self.domains.levels)
        if told or not self._wishes.communication:
            return None
        return (
            "--topology tells no rates, so that only hops make a gang slower, which is little; rates are in "
            "ibnetdiscover and netq files, in explicit ones, and in clos:..."
        )

    def locality(self, work: workload.Work) -> model.Locality:
        """What a gang asks for; one of a single pod asks nothing."""
        if sum(pods.count for pods in work.pods) == 1:
            return model.ANYWHERE
        asked = self._wishes
        return model.Locality(
            preferred=asked.preferred, max_wait=asked.max_wait, communication=asked.communication
        )

    def slowdown(self, work: workload.Work, groups: Sequence[model.GroupPlacement]) -> int:
        """By how much a place makes a gang slower than the best would, in ppm."""
        share = self.locality(work).communication
        if not share:
            return slowdown.PPM
        parts = []
        for group in groups:
            nodes = np.array([self._places[node] for node, _ in group.nodes], dtype=np.int64)
            parts.append((nodes, np.array([count for _, count in group.nodes], dtype=np.int64)))
        largest = max(dict(pods.requests).get(workload.GPU, 0) for pods in work.pods)
        return slowdown.of(self._tree, self._whole, [largest], parts, share)


def read(text: str, machines: Sequence[tuple[str, int]], wishes: Wishes, *, named: bool) -> Interconnect:
    """Make the interconnect of the nodes (name, GPUs) of a replay.

    Args:
        text: `clos:...` or FORMAT:PATH.
        machines: The nodes.
        wishes: What gangs ask for.
        named: Whether the nodes have names of their own, which the source knows; else they are its first.

    Raises:
        InterconnectError: It cannot be read, or does not suit the nodes.
    """
    names = [name for name, _ in machines]
    if text.partition(":")[0] == MADE:
        found = _made(text, names)
    else:
        try:
            found = sources.read(text).domains
        except sources.SourceError as error:
            raise InterconnectError(f"--topology {error}") from error
        found = _named(found, names) if named else _renamed(found, names)
    gpus = dict(machines)
    return Interconnect(found, [gpus[name] for name in found.nodes], wishes)


def _named(found: domains.Domains, names: Sequence[str]) -> domains.Domains:
    if not set(names) & set(found.nodes):
        raise InterconnectError("--topology names none of the nodes of --inventory; use the same names")
    return domains.among(found, names)


def _renamed(found: domains.Domains, names: Sequence[str]) -> domains.Domains:
    if len(found.nodes) < len(names):
        raise InterconnectError(
            f"--topology has {len(found.nodes)} nodes, and there are {len(names)}; give fewer --nodes"
        )
    some = domains.among(found, found.nodes[: len(names)])
    return domains.Domains(tuple(names), some.levels, some.link)


def _counts(part: str) -> bool:
    # Short ones alone: Python reads no number of thousands of digits.
    return part.isdecimal() and len(part) <= len(str(_MOST_MADE)) and 0 < int(part) <= _MOST_MADE


def _made(text: str, names: Sequence[str]) -> domains.Domains:
    """`clos:NODES:LEAVES[:OVERSUBSCRIPTION]` of these nodes, in their order.

    Without numbers eight nodes to a leaf switch, or a quarter of them where they are few, four leaf groups to
    a block, and uplinks for half of the traffic.
    """
    parts = text.split(":")[1:]
    if text == MADE:
        parts = [str(max(1, min(8, len(names) // 4))), "4", "2"]
    if not 2 <= len(parts) <= 3 or not all(map(_counts, parts)):
        raise InterconnectError(
            f"--topology {text[:60]}: write clos:NODES:LEAVES[:OVERSUBSCRIPTION] in numbers of 1 to "
            f"{_MOST_MADE:,}, as in clos:8:4:2"
        )
    nodes, leaves, over = int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) == 3 else 1
    paths: dict[str, domains.Path] = {}
    for place, name in enumerate(names):
        paths[name] = (f"b{place // (nodes * leaves)}", f"l{place // nodes}")
    out = nodes * LINK // over
    uplinks: dict[domains.Path, int] = dict.fromkeys(paths.values(), out)
    uplinks |= {path[:1]: leaves * out for path in paths.values()}
    return domains.arrange(["block", "leafgroup"], paths, uplinks=uplinks, links=dict.fromkeys(paths, LINK))
