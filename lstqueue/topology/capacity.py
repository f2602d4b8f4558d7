"""What is free on every node, and how many pods of each kind that makes: a ledger with undo.

A *row* is one question that gangs ask: these requests on these eligible nodes. The ledger keeps, for every
row, how many such pods each node takes and their sum; a change of some nodes recounts only their columns.
So "does this gang fit" is one comparison, and the many shapes that do not fit cost nothing. Of a row whose
pods go together (`together.Bound`) the most that one domain takes stands for the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lstqueue.topology import eligibility, model, rules, table, together, tree
from lstqueue.topology.table import Ints, Mask

MANY = 1 << 20
"""More pods of one kind than any node takes; stands for "no limit"."""
FEW = 2
"""Nodes counted one by one: more are counted faster together."""
SEVERAL = 16
"""Nodes by whose domains sums are changed one by one; of more all sums are made anew."""
KNOWN = 2048
"""Different nodes whose counts are kept, at some hundred bytes each."""
_MIB = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One question: pods of `requests` on the nodes of `mask`; `lasting` are its nodes in better times."""

    requests: model.Resources
    mask: Mask
    lasting: Mask
    spare: Mask  # nodes with an extended resource these pods do not ask for, and suspects: taken last
    bound: together.Bound = together.FREE


class Rows:
    """The questions of one pass as columns, and what is the same for every copy of the ledger.

    `amounts[resource, row]` are the requests, `scarce[row]` is the resource whose free amount ranks nodes.
    `fabric` is the interconnect of the nodes, None where nothing is known of one; gangs are placed by it but
    where a `rule` says otherwise.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        resources: Sequence[str],
        allocatable: Ints,
        fabric: tree.Tree | None = None,
        *,
        rule: rules.Rule | None = None,
    ) -> None:
        nodes = allocatable.shape[1]
        self.rows = tuple(rows)
        self.resources = tuple(resources)
        self.allocatable = allocatable
        self.fabric, self.rule = fabric, rule
        place = {name: i for i, name in enumerate(resources)}
        self.amounts: Ints = np.zeros((len(resources), len(self.rows)), dtype=np.int64)
        for j, row in enumerate(self.rows):
            for name, amount in row.requests:
                self.amounts[place[name], j] = min(max(amount, 0), table.LIMIT)
        self.divisor = np.maximum(self.amounts, 1).astype(np.float64)[:, :, None]
        # A resource that is not asked for must not limit: it is divided by one, so add "many".
        asked = self.amounts > 0
        self.unasked = None if asked.all() else np.where(asked, 0, 4.0 * table.LIMIT)[:, :, None]
        self.limit = self._limit(lasting=False)
        totals: dict[int, list[int]] = {}
        self.scarce = [self._scarce(row, totals) for row in self.rows]
        self.shift = [_MIB if _in_bytes(self.resources[i]) else 0 for i in self.scarce]
        self.bits = max(nodes, 1).bit_length()
        index: Ints = np.arange(nodes, dtype=np.int64)
        self.base = [index + (row.spare.astype(np.int64) << 61) for row in self.rows]
        self.known: dict[tuple[bytes, object], Ints] = {}  # of `Ledger._recount_one`
        self._alike: list[int] = []

    def only(self, wanted: Sequence[int]) -> Rows:
        """Some of these questions alone, in the order given."""
        other = object.__new__(Rows)
        other.rows = tuple(self.rows[row] for row in wanted)
        other.resources, other.allocatable, other.bits = self.resources, self.allocatable, self.bits
        other.fabric, other.rule = self.fabric, self.rule
        some = list(wanted)
        other.amounts, other.divisor, other.limit = (
            self.amounts[:, some],
            self.divisor[:, some],
            self.limit[some],
        )
        other.unasked = None if self.unasked is None else self.unasked[:, some]
        other.scarce, other.shift = [self.scarce[row] for row in some], [self.shift[row] for row in some]
        other.base, other.known = [self.base[row] for row in some], {}
        other._alike = self.alike()  # who has the same limits in all rows has them in some
        return other

    def sums(self) -> list[together.Sums]:
        """Where pods that go together are to be counted, empty yet."""
        fabric = self.fabric
        several: dict[together.Bound, list[int]] = {}
        if fabric is None:
            return []
        for place, row in enumerate(self.rows):
            if not row.bound.free:
                several.setdefault(row.bound, []).append(place)
        return [together.Sums(fabric, bound, places) for bound, places in several.items()]

    def alike(self) -> list[int]:
        """By node, a number that it shares with nodes of the same limits only."""
        if len(self._alike) < self.limit.shape[1]:
            numbers: dict[bytes, int] = {}
            columns = [column.tobytes() for column in np.ascontiguousarray(self.limit.T)]
            self._alike = [numbers.setdefault(column, len(numbers)) for column in columns]
        return self._alike

    def lasting_limit(self) -> npt.NDArray[np.int64]:
        """`limit` for nodes as they would be in better times."""
        return self._limit(lasting=True)

    def _limit(self, *, lasting: bool) -> Ints:
        masks = [row.lasting if lasting else row.mask for row in self.rows]
        if not masks:
            return np.zeros((0, self.allocatable.shape[1]), dtype=np.int64)
        return np.array(masks, dtype=np.int64) * MANY

    def _scarce(self, row: Row, known: dict[int, list[int]]) -> int:
        # Accelerators are what fragments; among equals the one of which these pods take the larger share.
        totals = known.get(id(row.lasting))
        if totals is None:
            sums = self.allocatable[:, row.lasting].sum(axis=1)
            totals = known[id(row.lasting)] = [int(total) for total in sums]
        best, best_key = 0, (False, False, -1.0)
        requests = dict(row.requests)
        for i, name in enumerate(self.resources):
            amount = requests.get(name, 0)
            if amount <= 0:
                continue
            share = amount / max(totals[i], 1)
            key = (eligibility.is_extended(name), name != model.PODS, share)
            if key > best_key:
                best, best_key = i, key
        return best


class Ledger:
    """Free amounts per node (`free[resource, node]`, negative where something vanished) and pods that fit.

    `counts[row, node]` pods of a row fit on a node, `total[row]` on all, or together where they have to be.
    Changed only by its methods.
    """

    __slots__ = ("_sums", "counts", "free", "limit", "rows", "total")

    def __init__(self, rows: Rows, free: Ints, *, limit: Ints | None = None) -> None:
        self.rows = rows
        self.free = free
        self.limit = rows.limit if limit is None else limit
        self.counts: Ints = np.zeros(self.limit.shape, dtype=np.int64)
        self.total: Ints = np.zeros(len(self.limit), dtype=np.int64)
        self._sums = rows.sums()
        self._count(0)

    @classmethod
    def empty(cls, rows: Rows) -> Ledger:
        """The ledger of the same nodes with nothing on them, all of them in their better times."""
        return cls(rows, rows.allocatable.copy(), limit=rows.lasting_limit())

    def widened(self, rows: Rows, *, lasting: bool = False) -> Ledger:
        """The same state under more questions, those known so far first; `lasting` as for `empty`."""
        other = object.__new__(Ledger)
        other.rows, other.free = rows, self.free
        other.limit = rows.lasting_limit() if lasting else rows.limit
        more = len(rows.rows) - len(self.limit)
        other.counts = np.concatenate([self.counts, np.zeros((more, self.free.shape[1]), dtype=np.int64)])
        other.total = np.concatenate([self.total, np.zeros(more, dtype=np.int64)])
        other._sums = rows.sums()
        other._count(len(self.limit))
        return other

    def only(self, rows: Rows, wanted: Sequence[int]) -> Ledger:
        """An independent ledger in the same state for some questions alone: `rows` is `Rows.only(wanted)`."""
        other = object.__new__(Ledger)
        some = list(wanted)
        other.rows, other.limit, other.free = rows, rows.limit, self.free.copy()
        other.counts, other.total = self.counts[some], self.total[some]
        other._sums = rows.sums()
        other._sum_up()
        return other

    def by_domain(self, row: int) -> Ints:
        """The pods of a row with a bound that each domain of its required level takes together."""
        sums, place = self.sums(row)
        caps: Ints = sums.caps[place]
        return caps

    def sums(self, row: int) -> tuple[together.Sums, int]:
        """Where pods of a row with a bound are counted by domain: (the sums, the row's place in them)."""
        return next((one, one.rows.index(row)) for one in self._sums if row in one.rows)

    def within(self, inside: Mask) -> Ledger:
        """An independent ledger in the same state in which no node outside of a mask takes anything."""
        other = self.copy()
        other.limit = self.limit * inside
        other.counts *= inside
        other.total = other.counts.sum(axis=1)
        other._sum_up()
        return other

    def settle(self, free: Ints) -> None:
        """Make `free` what is free everywhere; nodes where it is so already cost nothing."""
        nodes = (self.free != free).any(axis=0).nonzero()[0]
        if len(nodes):
            self.free[:, nodes] = free[:, nodes]
            self._recount(nodes)

    def copy(self) -> Ledger:
        """An independent ledger in the same state."""
        other = object.__new__(Ledger)
        other.rows, other.limit = self.rows, self.limit
        other.free, other.counts, other.total = self.free.copy(), self.counts.copy(), self.total.copy()
        other._sums = [one.copy() for one in self._sums]
        return other

    def take(self, row: int, nodes: Ints, pods: Ints) -> None:
        """Charge `pods[i]` pods of a row to `nodes[i]`; each node at most once."""
        if len(nodes) == 1:
            node = int(nodes[0])
            self.free[:, node] -= self.rows.amounts[:, row] * pods
            self._recount_one(node)
            return
        self.give(nodes, -self.rows.amounts[:, row, None] * pods)

    def undo(self, row: int, nodes: Ints, pods: Ints) -> None:
        """Take back a `take` with the same arguments."""
        self.give(nodes, self.rows.amounts[:, row, None] * pods)

    def give(self, nodes: Ints, amounts: Ints) -> None:
        """Free `amounts[resource, i]` on `nodes[i]`; each node at most once."""
        if len(nodes) == 1:  # as four in five are; a slice makes no copies
            node = int(nodes[0])
            self.free[:, node] += amounts[:, 0]
            self._recount_one(node)
            return
        self.free[:, nodes] += amounts
        self._recount(nodes)

    def give_all(self, nodes: Ints, amounts: Ints) -> None:
        """Free amounts as `give` does, where nodes may appear more than once."""
        for row, more in zip(self.free, amounts, strict=True):
            np.add.at(row, nodes, more)
        touched: Mask = np.zeros(self.free.shape[1], dtype=np.bool_)
        touched[nodes] = True
        self._recount(touched.nonzero()[0])

    def _count(self, first: int) -> None:
        """Count the rows from `first` on anew on every node."""
        rows = self.rows
        for row in range(first, len(self.limit)):
            fits = self.limit[row]
            for resource in np.flatnonzero(rows.amounts[:, row]):
                fits = np.minimum(fits, self.free[resource] // rows.amounts[resource, row])
            self.counts[row] = np.maximum(fits, 0)
        self.total[first:] = self.counts[first:].sum(axis=1)
        self._sum_up()

    def _sum_up(self) -> None:
        """Count anew what goes together."""
        for one in self._sums:
            one.count(self.counts)
            self.total[one.rows] = one.most()

    def _set(self, node: int, new: Ints) -> None:
        """Note what a node takes now."""
        more = new - self.counts[:, node]
        self.total += more
        self.counts[:, node] = new
        for one in self._sums:
            one.move(node, more)
            self.total[one.rows] = one.most()

    def _recount(self, nodes: Ints) -> None:
        if len(nodes) <= FEW:
            for node in nodes.tolist():
                self._recount_one(node)
            return
        if 2 * len(nodes) > self.free.shape[1]:  # a slice costs a quarter of what so many numbers do
            self.counts = self._counted(slice(None))
            self.total = self.counts.sum(axis=1)
            self._sum_up()
            return
        new = self._counted(nodes)
        more = new - self.counts[:, nodes]
        self.total += np.add.reduce(more, axis=1)
        self.counts[:, nodes] = new
        for one in self._sums:
            if len(nodes) <= SEVERAL:
                one.move_all(nodes, more)
            else:
                one.count(self.counts)
            self.total[one.rows] = one.most()

    def _recount_one(self, node: int) -> None:
        """Count a node anew, unless an equal one was counted before.

        A forecast does so a thousand times a round, and three times out of four the node is empty, or full
        of the same pods, or as it was in the round before: 4 µs instead of 12.
        """
        rows, known = self.rows, self.rows.known
        limit = rows.alike()[node] if self.limit is rows.limit else self.limit[:, node].tobytes()
        key = self.free[:, node].tobytes(), limit
        new = known.get(key)
        if new is None:
            if len(known) >= KNOWN:
                known.clear()
            new = known[key] = self._counted(slice(node, node + 1))[:, 0]
        self._set(node, new)

    def _counted(self, at: Ints | slice) -> Ints:
        """How many pods of each row fit on some nodes."""
        rows = self.rows
        fits = self.free[:, None, at] / rows.divisor
        if rows.unasked is not None:
            fits += rows.unasked
        least = np.minimum.reduce(fits, axis=0)
        np.minimum(least, self.limit[:, at], out=least)
        np.maximum(least, 0, out=least)
        counts: Ints = least.astype(np.int64)  # truncation is the floor of what is not negative
        return counts


def _in_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
