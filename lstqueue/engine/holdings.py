"""What jobs hold on nodes, in sums to which one job is added, or from which it is taken, at a time.

Integers, so that adding and taking away in any order gives what a count of everything would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lstqueue.engine import model
from lstqueue.topology import table
from lstqueue.topology.table import Ints


class Holdings:
    """Per resource and node: `held` by members that are expected there, `bound` by pods that are there.

    Bound pods are part of what their nodes use; `bound` says how much of that is ours, cut to `table.LIMIT`.
    """

    def __init__(self, resources: Sequence[str], nodes: table.NodeTable) -> None:
        self._rows = {name: row for row, name in enumerate(resources)}
        self._index = nodes.index
        self._sums = [[0] * len(nodes) for _ in resources]
        self.held: Ints = np.zeros((len(resources), len(nodes)), dtype=np.int64)
        self.bound: Ints = np.zeros((len(resources), len(nodes)), dtype=np.int64)

    def add(self, job: model.Job) -> None:
        """Count a job."""
        self._move(job, 1)

    def remove(self, job: model.Job) -> None:
        """Take back `add` of an equal job."""
        self._move(job, -1)

    def _move(self, job: model.Job, sign: int) -> None:
        for part in job.assigned:
            column = self._index.get(part.node)
            if column is None:
                continue
            for name, amount in job.groups[part.group].shape.requests:
                row = self._rows.get(name)
                if row is None:
                    continue
                if part.held > 0:
                    self.held[row, column] += sign * min(amount * part.held, table.LIMIT)
                if part.bound:
                    total = self._sums[row][column] = self._sums[row][column] + sign * amount * part.bound
                    self.bound[row, column] = min(total, table.LIMIT)
