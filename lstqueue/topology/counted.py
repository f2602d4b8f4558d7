"""How many pods of one group each element of a tree takes, and how few inner elements would hold some.

Pods of a slice share a domain, so at the tier of the slice and outside of it an element takes whole slices.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lstqueue.topology import tree
from lstqueue.topology.table import Ints

_Numbers = npt.NDArray[np.int32]
"""How many elements; there are fewer than 2**31."""
COARSE = 128
"""Different counts told apart when elements are counted by what they take; more are rounded down to these."""


class Counted:
    """`nodes` is what each node takes, `caps[t]` each element of tier t, `alike[t]` signatures (`Tree`)."""

    __slots__ = ("_caps", "_columns", "_values", "alike", "fabric", "nodes", "pods", "slice", "slice_tier")

    def __init__(
        self,
        fabric: tree.Tree,
        counts: Ints,
        *,
        pods: int,
        alike: list[tree.Words],
        unit: int = 1,
        slice_tier: int | None = None,
    ) -> None:
        self.fabric = fabric
        self.pods = pods
        self.slice = unit
        self.slice_tier = len(fabric.tiers) - 1 if slice_tier is None else slice_tier
        self.alike = alike
        whole = unit > 1 and self.slice_tier == len(fabric.tiers) - 1
        self.nodes = counts - counts % unit if whole else counts
        self._caps: list[Ints] = []
        self._columns: dict[tuple[int, int], _Numbers] = {}
        self._values: dict[int, Ints] = {}

    @property
    def caps(self) -> list[Ints]:
        """Pods by tier and element, counted when they are first asked for."""
        if not self._caps:
            self._caps = self._sums()
        return self._caps

    def unit(self, tier: int) -> int:
        """Pods that go together into an element of a tier: a slice, or one."""
        return self.slice if tier <= self.slice_tier else 1

    def rounded(self, inner: int) -> bool:
        """Whether `fewest` has rounded what the elements of a tier take."""
        return len(self._values.get(inner, ())) == COARSE

    def fewest(self, sets: Ints, tier: int, inner: int, pods: int) -> Ints:
        """For each row of `sets`, elements of a tier: how many elements of an inner tier hold `pods` pods.

        The largest first is exact: k elements hold as much as any k do when they are the k largest. With
        slices that are wider than the inner tier it is a lower bound, and where counts were rounded an
        upper one. Sets that do not hold the pods get more than any that do.
        """
        columns, values = self._histogram(tier, inner)
        # Added up one by one, and short: a gather of all of them at once takes four times as long.
        numbers = columns.take(sets[:, 0], axis=0)
        for others in sets.T[1:]:
            numbers += columns.take(others, axis=0)
        room = (numbers * values).cumsum(axis=1)
        at = (room < pods).sum(axis=1)
        held = at < len(values)
        at = np.minimum(at, len(values) - 1)
        row = np.arange(len(sets))
        ahead = room[row, at] - numbers[row, at] * values[at]
        count = numbers.cumsum(axis=1, dtype=np.int32)[row, at] - numbers[row, at]
        needed: Ints = np.where(held, count - (ahead - pods) // values[at], self.fabric.size + 1)
        return needed

    def _histogram(self, tier: int, inner: int) -> tuple[_Numbers, Ints]:
        """(number of inner elements by element and value, values from the most to the fewest pods)."""
        found = self._columns.get((tier, inner))
        if found is None:
            if tier == inner - 1:
                found = self._counts_by_value(inner)
            else:
                below, _ = self._histogram(tier + 1, inner)
                found = np.add.reduceat(below, self.fabric.tiers[tier].first[:-1], axis=0)
            self._columns[tier, inner] = found
        return found, self._values[inner]

    def _counts_by_value(self, inner: int) -> _Numbers:
        caps = np.minimum(self.caps[inner], self.pods)
        some = caps.nonzero()[0]
        taken = caps[some]
        values = np.bincount(taken).nonzero()[0] if self.pods < 4096 else np.unique(taken)
        if not len(values):
            values = np.ones(1, dtype=np.int64)
        if len(values) > COARSE:
            values = values[np.linspace(0, len(values) - 1, COARSE).astype(np.int64)]
        self._values[inner] = values[::-1].copy()
        code = len(values) - values.searchsorted(taken, side="right")
        outer = self.fabric.tiers[inner].parents[some]
        size = len(self.fabric.tiers[inner - 1].starts), len(values)
        flat = np.bincount(outer * len(values) + code, minlength=size[0] * size[1])
        return flat.astype(np.int32).reshape(size)

    def _sums(self) -> list[Ints]:
        caps = [self.nodes]
        for number in range(len(self.fabric.tiers) - 2, -1, -1):
            sums: Ints = np.add.reduceat(caps[-1], self.fabric.tiers[number].first[:-1])
            if number == self.slice_tier and self.slice > 1:
                sums -= sums % self.slice
            caps.append(sums)
        caps.reverse()
        return caps
