"""Rows of integers that are kept for things that come, change and go, so that columns are not made anew.

A thing's row stands until it is another, which whoever made it says by giving another object. What the rows
mean is their owners' business (`demand`, `victims`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lstqueue.topology.table import Ints

FIRST = 64
"""Rows there are at first; they double."""


class Register:
    """`known` has what a row was made of, by uid, and where it is; -1: it has none."""

    def __init__(self, width: int) -> None:
        self.known: dict[str, tuple[object, int]] = {}
        self.rows: Ints = np.zeros((FIRST, width), dtype=np.int64)
        self._spare = list(range(FIRST))

    def write(self, uid: str, what: object, values: Sequence[int] | None) -> int:
        """Keep the row of something that is new or another, and say where; None: it has none."""
        self.forget(uid)
        row = -1
        if values is not None:
            row = self._take()
            self.rows[row] = values
        self.known[uid] = what, row
        return row

    def forget(self, uid: str) -> bool:
        """Drop what is another or gone; return whether it had a row."""
        found = self.known.pop(uid, None)
        if found is None or found[1] < 0:
            return False
        self._spare.append(found[1])
        return True

    def _take(self) -> int:
        if not self._spare:
            size = len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self._spare = list(range(size, 2 * size))
        return self._spare.pop()
