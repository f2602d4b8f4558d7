"""How many pods of a kind could go together: into one domain, or in slices that each share one.

A sum over all nodes says whether pods fit that may be anywhere. Pods of a gang with a required level fit
only where one domain of that level holds them all, and pods in slices only as whole slices. So the sums are
kept by domain, and a node that changes moves one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lstqueue.topology import tree
from lstqueue.topology.table import Ints


@dataclass(frozen=True, slots=True)
class Bound:
    """What binds pods of a row together: by tier of a tree, as in `wanted`.

    All of them share a domain of `required` (0: they need not), and every `unit` of them, in rank order, one
    of `slice_tier`, which is further in.
    """

    required: int = 0
    unit: int = 1
    slice_tier: int = 0

    @property
    def free(self) -> bool:
        """Whether nothing is bound."""
        return not self.required and self.unit == 1


FREE = Bound()
"""Nothing is bound."""


class Sums:
    """Pods of some rows with the same bound, by domain. `rows` are their places in the ledger.

    `caps[i, domain]` are the pods that a domain of the required tier takes, in whole slices of `unit`;
    `inner[i, element]` those that the nodes of an element take, which is what a slice shares, or the whole
    gang without slices. `within` has the element of each node, `outer` the domain of each element.
    """

    __slots__ = ("caps", "inner", "outer", "rows", "unit", "within")

    def __init__(self, fabric: tree.Tree, bound: Bound, rows: list[int]) -> None:
        elements = fabric.tiers[bound.slice_tier if bound.unit > 1 else bound.required]
        around = fabric.tiers[bound.required]
        self.rows = rows
        self.unit = bound.unit
        self.within = elements.within
        self.outer: Ints = around.within[elements.starts]
        self.inner: Ints = np.zeros((len(rows), len(elements.starts)), dtype=np.int64)
        self.caps: Ints = np.zeros((len(rows), len(around.starts)), dtype=np.int64)

    def copy(self) -> Sums:
        """Independent sums in the same state."""
        other = object.__new__(Sums)
        other.rows, other.unit, other.within, other.outer = (
            self.rows,
            self.unit,
            self.within,
            self.outer,
        )
        other.inner, other.caps = self.inner.copy(), self.caps.copy()
        return other

    def count(self, counts: Ints) -> None:
        """Take what each node takes of each row of the ledger."""
        self.inner[:] = 0
        self.caps[:] = 0
        for place, row in enumerate(self.rows):
            self.inner[place] = np.bincount(
                self.within, weights=counts[row], minlength=self.inner.shape[1]
            ).astype(np.int64)
        whole = self.inner - self.inner % self.unit
        np.add.at(self.caps.T, self.outer, whole.T)

    def move(self, node: int, more: Ints) -> None:
        """Have a node take `more[row]` pods more of each row of the ledger."""
        self._move(int(self.within[node]), more[self.rows])

    def move_all(self, nodes: Ints, more: Ints) -> None:
        """The same of several nodes: `more[row, i]` pods more on `nodes[i]`."""
        elements = self.within[nodes]
        mine = more[self.rows]
        if len(elements) and (elements == elements[0]).all():  # as those of most gangs are
            self._move(int(elements[0]), np.add.reduce(mine, axis=1))
            return
        for element, column in zip(elements.tolist(), mine.T, strict=True):
            self._move(element, column)

    def _move(self, element: int, more: Ints) -> None:
        if self.unit == 1:
            self.caps[:, self.outer[element]] += more
            self.inner[:, element] += more
            return
        before = self.inner[:, element]
        after = before + more
        whole = (after - after % self.unit) - (before - before % self.unit)
        self.caps[:, self.outer[element]] += whole
        self.inner[:, element] = after

    def most(self) -> Ints:
        """By row, the most pods that go together."""
        most: Ints = self.caps.max(axis=1)
        return most
