"""The nodes of a replay as they stand: what pods use of each, and what mishaps leave of it.

Nothing here decides or moves anybody: `world` says who is bound where and what is out of service. A node is
another object only when it is another, so that a pass sees at once what has not changed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lstqueue.evaluate import inventory, lives, mishaps
from lstqueue.topology import model as topology

ASKED = (mishaps.Kind.DRAIN, mishaps.Kind.MAINTENANCE)
"""What pods are asked to leave for."""


class Machines:
    """`names` are those of the nodes, in their order; `out` counts the GPUs that are out of service."""

    def __init__(self, listed: tuple[inventory.Machine, ...]) -> None:
        self._listed = listed
        self._nodes = {
            one.name: topology.Node(
                one.name, one.allocatable(one.gpus), labels=(("kubernetes.io/hostname", one.name),)
            )
            for one in listed
        }
        self._used: dict[str, dict[str, int]] = {name: {} for name in self._nodes}
        self._moved: set[str] = set()
        self._lacking: dict[str, int] = {}
        self.names = list(self._nodes)
        self.out = 0

    def seen(self) -> tuple[topology.Node, ...]:
        """Every node as the engine sees it."""
        for name in self._moved:
            used = topology.resources(self._used[name])
            self._nodes[name] = replace(self._nodes[name], used=used)
        self._moved.clear()
        return tuple(self._nodes.values())

    def charge(self, life: lives.Life, sign: int) -> None:
        """Add what bound pods of a gang use to their nodes, or take it off."""
        for part in life.assigned:
            if not part.bound:
                continue
            used = self._used[part.node]
            for name, amount in life.groups[part.group].shape.requests:
                used[name] = used.get(name, 0) + sign * amount * part.bound
            self._moved.add(part.node)

    def lost(self, mishap: mishaps.Mishap) -> int:
        """Which of its GPUs, by number, the node of a mishap loses."""
        return int(mishap.draw * self._listed[mishap.node].gpus)

    def refit(self, index: int, down: Collection[tuple[int, mishaps.Kind]]) -> tuple[int, int]:
        """Give a node the shape that what is `down` leaves of it; return its GPUs, and those that serve."""
        machine = self._listed[index]
        gpus = machine.gpus - ((index, mishaps.Kind.GPU) in down)
        node = self._nodes[machine.name] = replace(
            self._nodes[machine.name],
            ready=(index, mishaps.Kind.FAILURE) not in down,
            unschedulable=any((index, kind) in down for kind in ASKED),
            allocatable=machine.allocatable(gpus),
        )
        usable = gpus if node.ready and not node.unschedulable else 0
        self._lacking[machine.name] = machine.gpus - usable
        self.out = sum(self._lacking.values())
        return gpus, usable
