"""All nodes as columns, in the natural order of their names, or depth-first in an interconnect.

What pods do not change: names, labels, taints, allocatable amounts. The room that is left is
`capacity.Ledger`. Masks are kept per question, because many shapes ask the same few.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lstqueue.topology import eligibility, model

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

LIMIT = 1 << 52
"""Amounts are cut to this (4 PiB of memory on a node), whatever a manifest says.

Below 2**53 integers are exact as floats, and so is the floor of a quotient: of m·d - r with r >= 1 it lies
further below the integer m than rounding reaches. Dividing floats is twice as fast as dividing integers.
"""


@functools.lru_cache(maxsize=1 << 17)
def natural(name: str) -> tuple[tuple[str | int, ...], str]:
    """Sort key that puts `node-2` before `node-10`; the name itself settles `node-01` against `node-1`."""
    parts: list[str | int] = []
    text, digits = "", ""
    for char in name:
        if "0" <= char <= "9":
            digits += char
            continue
        if digits:
            parts += (text, int(digits))
            text, digits = "", ""
        text += char
    parts.append(text)
    if digits:
        parts.append(int(digits))
    return tuple(parts), name


class NodeTable:
    """Columns over the nodes; index order is also rank order.

    That is `order`, of the same names, where it is given (`domains.among`), else the natural order of names.

    Raises:
        ValueError: Two nodes have the same name, or one is not in `order`.
    """

    def __init__(self, nodes: Iterable[model.Node], order: Sequence[str] | None = None) -> None:
        if order is None:
            self.nodes: tuple[model.Node, ...] = tuple(sorted(nodes, key=lambda node: natural(node.name)))
        else:
            places = {name: place for place, name in enumerate(order)}
            several = list(nodes)
            if strange := sorted({node.name for node in several}.difference(places)):
                raise ValueError(f"nodes: {', '.join(strange)} is not in the order given; name it there")
            self.nodes = tuple(sorted(several, key=lambda node: places[node.name]))
        self.names: tuple[str, ...] = tuple(node.name for node in self.nodes)
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        if len(self.index) != len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise ValueError(f"nodes: {', '.join(twice)} appears twice; give every node once")
        self._labels: list[dict[str, str]] | None = None
        self._columns: dict[str, list[str | None]] = {}
        self._masks: dict[object, Mask] = {}
        self._taints: tuple[list[tuple[model.Taint, ...]], npt.NDArray[np.intp]] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def amounts(self, resources: Sequence[str]) -> tuple[Ints, Ints]:
        """Return (allocatable, used), each with one row per resource and one column per node."""
        rows = {name: row for row, name in enumerate(resources)}
        allocatable: Ints = np.zeros((len(resources), len(self)), dtype=np.int64)
        used: Ints = np.zeros((len(resources), len(self)), dtype=np.int64)
        for column, node in enumerate(self.nodes):
            for name, amount in node.allocatable:
                if (row := rows.get(name)) is not None:
                    allocatable[row, column] = min(amount, LIMIT)
            for name, amount in node.used:
                if (row := rows.get(name)) is not None:
                    used[row, column] = min(amount, LIMIT)
        return allocatable, used

    def write_used(self, used: Ints, resources: Sequence[str], nodes: Iterable[model.Node]) -> None:
        """Write what pods use of some nodes into `used`, as `amounts` returned it."""
        rows = {name: row for row, name in enumerate(resources)}
        for node in nodes:
            column = self.index[node.name]
            used[:, column] = 0
            for name, amount in node.used:
                if (row := rows.get(name)) is not None:
                    used[row, column] = min(amount, LIMIT)

    def cordoned(self) -> Mask:
        """Nodes that take no new pods until somebody says so."""
        return self._kept("cordoned", lambda: self._bools(node.unschedulable for node in self.nodes))

    def closed(self) -> Mask:
        """Nodes that take no new pods now, for they are cordoned or not ready."""
        return self._kept("closed", lambda: ~self._open())

    def suspect(self) -> Mask:
        """Nodes of domains in which nodes failed together."""
        return self._kept("suspect", lambda: self._bools(node.suspect for node in self.nodes))

    def offers_other(self, asked: frozenset[str]) -> Mask:
        """Nodes that offer an extended resource which is not `asked` for."""
        return self._kept(("other", asked), lambda: self._offers_other(asked))

    def mask(
        self,
        shape: model.PodShape,
        *,
        selector: tuple[tuple[str, str], ...] = (),
        tolerations: tuple[model.Toleration, ...] = (),
        lasting: bool = False,
    ) -> Mask:
        """`eligibility.eligible` for every node at once. The result is shared: do not write to it."""
        key = (shape.selector, shape.affinity, shape.tolerations, selector, tolerations, lasting)
        return self._kept(key, lambda: self._mask(shape, selector, shape.tolerations + tolerations, lasting))

    def selected(self, selector: tuple[tuple[str, str], ...]) -> Mask:
        """Nodes that carry every label of `selector`, whatever their state."""
        return self._kept(("selected", selector), lambda: self._selected(selector))

    def _kept(self, key: object, make: Callable[[], Mask]) -> Mask:
        found = self._masks.get(key)
        if found is None:
            found = self._masks[key] = make()
        return found

    def _mask(
        self,
        shape: model.PodShape,
        selector: tuple[tuple[str, str], ...],
        tolerations: tuple[model.Toleration, ...],
        lasting: bool,
    ) -> Mask:
        mask = (
            self._tolerating(tolerations, lasting) & self.selected(selector) & self.selected(shape.selector)
        )
        if not lasting:
            mask &= self._open()
        if shape.affinity:
            terms: Mask = np.zeros(len(self), dtype=np.bool_)
            for term in shape.affinity:
                if term:
                    terms |= np.logical_and.reduce([self._meeting(requirement) for requirement in term])
            mask &= terms
        return mask

    def _open(self) -> Mask:
        return self._kept("open", lambda: self._bools(n.ready and not n.unschedulable for n in self.nodes))

    def _selected(self, selector: tuple[tuple[str, str], ...]) -> Mask:
        mask: Mask = np.ones(len(self), dtype=np.bool_)
        for key, value in selector:
            mask &= self._meeting(model.Requirement(key=key, operator="In", values=(value,)))
        return mask

    def _tolerating(self, tolerations: tuple[model.Toleration, ...], lasting: bool) -> Mask:
        # Clusters know a handful of different taint sets: judge those, then spread the answers.
        if self._taints is None:
            sets: dict[tuple[model.Taint, ...], int] = {}
            codes = [sets.setdefault(node.taints, len(sets)) for node in self.nodes]
            self._taints = list(sets), np.array(codes, dtype=np.intp)
        kinds, codes_of = self._taints
        if not kinds:
            return np.zeros(0, dtype=np.bool_)
        fine = [eligibility.tolerated(taints, tolerations, lasting=lasting) for taints in kinds]
        return np.array(fine, dtype=np.bool_)[codes_of]

    def _meeting(self, requirement: model.Requirement) -> Mask:
        return self._kept(requirement, lambda: self._meet(requirement))

    def _meet(self, requirement: model.Requirement) -> Mask:
        if requirement.field:
            return self._bools(eligibility.requirement_holds(requirement, {}, name) for name in self.names)
        operator, values = requirement.operator, requirement.values
        column = self._column(requirement.key)
        answers = {value: eligibility.value_holds(operator, values, value) for value in set(column)}
        return self._bools(answers[value] for value in column)

    def _column(self, key: str) -> list[str | None]:
        column = self._columns.get(key)
        if column is None:
            if self._labels is None:
                self._labels = [dict(node.labels) for node in self.nodes]
            column = self._columns[key] = [labels.get(key) for labels in self._labels]
        return column

    def _offers_other(self, asked: frozenset[str]) -> Mask:
        return self._bools(_offers(node, asked) for node in self.nodes)

    def _bools(self, answers: Iterable[bool]) -> Mask:
        return np.fromiter(answers, dtype=np.bool_, count=len(self))


def _offers(node: model.Node, asked: frozenset[str]) -> bool:
    for name, amount in node.allocatable:
        if amount > 0 and name not in asked and eligibility.is_extended(name):
            return True
    return False
