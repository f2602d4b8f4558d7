"""The auditor's sums: what is used and reserved on each node and of each quota, and who took too much.

An account that is exceeded is a violation only if a write of lstqueue made it so. Others may take a node
between a decision and its write, or shrink a node or a quota under what is there already; that is recorded
apart. What others did counts as known to the operator after `STALE_MS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lstqueue.api import quantities
from lstqueue.embedded.controllers import pods

STALE_MS = 2_000
"""How long the operator may not have seen a write of somebody else."""


@dataclass(frozen=True, slots=True)
class Excess:
    """An account with more taken than it has; `ours` tells whose write made it so."""

    account: str
    resource: str
    taken: int
    limit: int
    reserved: int
    ours: bool

    def __str__(self) -> str:
        taken, limit, reserved = (
            quantities.format(self.resource, amount) for amount in (self.taken, self.limit, self.reserved)
        )
        return f"{self.account}: {taken} {self.resource} of {limit} taken ({reserved} of it reserved)"


@dataclass(slots=True)
class Account:
    """Amounts by resource: `limit` (None: not limited now), `used` by pods, `reserved` by admissions.

    `lowered_at` (ms) is when the limit went down last, `excused` that what was taken since the last check was
    granted before that.
    """

    name: str
    limit: Mapping[str, int] | None = None
    used: pods.Amounts = field(default_factory=dict)
    reserved: pods.Amounts = field(default_factory=dict)
    excess: pods.Amounts = field(default_factory=dict)
    disturbed_at: int = -STALE_MS
    lowered_at: int = -STALE_MS
    excused: bool = False

    def set_limit(self, limit: Mapping[str, int] | None, now: int) -> None:
        """Take a new limit, None for none; lowering it (at `now`, ms) is a disturbance."""
        if limit is not None and any(
            limit.get(name, 0) < amount for name, amount in (self.limit or {}).items()
        ):
            self.disturbed_at = self.lowered_at = now
        self.limit = limit

    def use_admitted(self, requests: Mapping[str, int], times: int, *, since: int) -> None:
        """Add or take back what a pod uses whose admission was written at `since` (ms).

        Lowering a limit evicts nobody: what was admitted before may go on, its next pods included, and only
        what is admitted after that has to fit beside it.
        """
        self.use(requests, times)
        self.excused |= times > 0 and since < self.lowered_at + STALE_MS

    def use(self, requests: Mapping[str, int], times: int) -> None:
        """Add (1) or take back (-1) what a bound pod uses."""
        used = self.used
        for name, amount in requests.items():
            used[name] = used.get(name, 0) + times * amount

    def reserve(self, requests: Mapping[str, int], times: int) -> None:
        """Add (1) or take back (-1) what an admission reserves."""
        reserved = self.reserved
        for name, amount in requests.items():
            reserved[name] = reserved.get(name, 0) + times * amount

    def check(self, now: int, *, ours: bool, everything: bool) -> Iterable[Excess]:
        """Return what is exceeded by more than at the last check.

        Args:
            now: in ms.
            ours: whether the write just made is of lstqueue.
            everything: a resource that `limit` does not name is not there at all, rather than free.
        """
        excused, self.excused = self.excused, False
        if self.limit is None:
            return ()
        found: list[Excess] = []
        for name in self.used.keys() | self.reserved.keys() if everything else self.limit:
            reserved = self.reserved.get(name, 0)
            taken = self.used.get(name, 0) + reserved
            over = taken - self.limit.get(name, 0)
            if over > max(0, self.excess.get(name, 0)):
                blamed = ours and not excused and now - self.disturbed_at >= STALE_MS
                found.append(Excess(self.name, name, taken, self.limit.get(name, 0), reserved, blamed))
            self.excess[name] = over
        return found


Quota = tuple[str, str]
"""(queue, pool), or (cohort, pool) where the first is `cohort/` and its name."""


class Accounts:
    """All nodes and all quotas, those of cohorts included; `cohorts` says in which one a queue is."""

    def __init__(self) -> None:
        self.nodes: dict[str, Account] = {}
        self.quotas: dict[Quota, Account] = {}
        self.cohorts: dict[str, str] = {}
        self._touched: dict[int, tuple[Account, bool]] = {}

    def node(self, name: str) -> Account:
        """Return the account of a node, to be checked."""
        account = self.nodes.get(name)
        if account is None:
            account = self.nodes[name] = Account(f"node {name}")
        self._touched[id(account)] = (account, True)
        return account

    def quota(self, queue: str, pool: str) -> Account:
        """Return the account of a pool of a queue, to be checked."""
        account = self.quotas.get((queue, pool))
        if account is None:
            account = self.quotas[queue, pool] = Account(f"queue {queue}, pool {pool}")
        self._touched[id(account)] = (account, False)
        return account

    def charged(self, queue: str, pool: str) -> tuple[Quota, ...]:
        """Return whose quota is used by what runs in a pool of a queue: its own, and that of its cohort."""
        cohort = self.cohorts.get(queue, "")
        return ((queue, pool), (f"cohort/{cohort}", pool)) if cohort else ((queue, pool),)

    def join(self, queue: str, cohort: str, now: int) -> None:
        """Have a queue, and all that it holds, be of a cohort from `now` (ms) on; "" for none."""
        before = self.cohorts.get(queue, "")
        if cohort == before:
            return
        self.cohorts[queue] = cohort
        for (owner, pool), account in list(self.quotas.items()):
            for name, times in ((before, -1), (cohort, 1)):
                if owner == queue and name:
                    shared = self.quota(f"cohort/{name}", pool)
                    shared.use(account.used, times)
                    shared.reserve(account.reserved, times)
                    shared.disturbed_at = now

    def check(self, now: int, *, ours: bool) -> tuple[int, list[tuple[bool, Excess]]]:
        """Check what was touched since the last call; returns how many accounts, and (is a node, excess)."""
        touched, self._touched = self._touched, {}
        found = [
            (is_node, excess)
            for account, is_node in touched.values()
            for excess in account.check(now, ours=ours, everything=is_node)
        ]
        return len(touched), found
