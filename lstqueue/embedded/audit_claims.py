"""The auditor's sums for claims: what a job owns while those that were suspended for it leave.

A claim is reserved, per node and in the quota of its queue, only beyond what its own victims still have
there, be it by pods or by an admission that they have not lost yet. So the room that a victim frees is
reserved for the claimer from the same moment on, and whoever else takes it over-commits the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from lstqueue.embedded import audit_accounts, audit_facts
from lstqueue.embedded.controllers import pods

Quota = audit_accounts.Quota
Sums = dict[str | Quota, Counter[str]]


class Claims:
    """Keeps the reservations of all claims in step with what their victims still have.

    `pod_of` returns what a pod of a user's own Job asks for, by namespace and name.
    """

    def __init__(
        self,
        accounts: audit_accounts.Accounts,
        gangs: Mapping[str, audit_facts.Gang],
        pods_of: Callable[[audit_facts.Gang], Mapping[str, pods.Amounts]],
    ) -> None:
        self._accounts = accounts
        self._gangs = gangs
        self._pods_of = pods_of
        self._reserved: dict[str, Sums] = {}
        self._claimers: dict[str, set[str]] = {}

    def settle(self, gang: audit_facts.Gang) -> None:
        """Take in the claim of a gang, its end included."""
        claim = gang.now.claim
        if claim is None and gang.uid not in self._reserved:
            return
        for claimers in self._claimers.values():
            claimers.discard(gang.uid)
        for uid, _ in claim.victims if claim is not None else ():
            self._claimers.setdefault(uid, set()).add(gang.uid)
        self._reserve(gang)

    def changed(self, victim: str) -> None:
        """Reckon anew what is claimed from a gang that has more or less than before."""
        for uid in tuple(self._claimers.get(victim, ())):
            gang = self._gangs.get(uid)
            if gang is not None and gang.now.claim is not None:
                self._reserve(gang)

    def _reserve(self, gang: audit_facts.Gang) -> None:
        claim = gang.now.claim
        wanted = self._wanted(gang, claim) if claim is not None else {}
        for sums, times in ((self._reserved.pop(gang.uid, {}), -1), (wanted, 1)):
            for place, amounts in sums.items():
                if isinstance(place, str):
                    self._accounts.node(place).reserve(amounts, times)
                else:
                    self._accounts.quota(*place).reserve(amounts, times)
        if claim is not None:
            self._reserved[gang.uid] = wanted

    def _wanted(self, gang: audit_facts.Gang, claim: audit_facts.Claim) -> Sums:
        needs: Sums = {}
        requests = self._pods_of(gang) if gang.referenced else dict(gang.members)
        for group, node, pool, count in claim.places:
            places: tuple[str | Quota, ...] = (node, *self._accounts.charged(gang.queue, pool))
            for place in places:
                need = needs.setdefault(place, Counter())
                for name, amount in requests.get(group, {}).items():
                    need[name] += count * amount
        for uid, _ in claim.victims:
            for held, amounts in self._has(self._gangs.get(uid)):
                for place in held:
                    if place in needs:
                        needs[place].subtract(amounts)
        return {place: +need for place, need in needs.items()}

    def _has(self, gang: audit_facts.Gang | None) -> Iterator[tuple[Iterable[str | Quota], pods.Amounts]]:
        """Yield what a victim still has: (node and quotas, amounts)."""
        if gang is None:
            return
        for pod in gang.present():
            if pod.holds:
                charged = self._accounts.charged(*pod.charge) if pod.charge and pod.charged else ()
                yield (pod.node, *charged), pod.requests
        for rank, (node, pool, queue) in gang.held.items():
            yield (node, *self._accounts.charged(queue, pool)), gang.members[rank][1]
