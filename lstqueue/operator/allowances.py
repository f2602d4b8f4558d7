"""What the ResourceQuotas of namespaces leave to gangs: a gang that they would cut short takes no room.

The API server charges pods one by one, as they are created. What was admitted is charged here from the
decision on, as a whole: what its pods count already, and what those will that are still to come. So two gangs
of one namespace, each of which a quota would take, are not both admitted where it takes one.

`settle` looks at all waiting gangs once a pass, `take` at one that the pass admits. Never calls the API. What
is in use comes by another watch than the pods; when it is late, a gang waits a moment longer, or is stopped
by the time it has to become ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lstqueue.api import errors
from lstqueue.jobs import quotas
from lstqueue.operator import guard, ledger, records

EXCEEDED = "ResourceQuotaExceeded"

Phase = ledger.Phase
Charged = tuple[quotas.Charge, int]
"""An object, and how many of it."""

Left = list[tuple[quotas.Quota, dict[str, int]]]
"""The quotas of a namespace, and by key how much is left of each."""

_HOLDING = frozenset({Phase.CLAIMING, Phase.ADMITTED, Phase.RUNNING, Phase.SUSPENDING})
_JOB = quotas.objects("count/jobs.batch")
_SERVICE = quotas.objects("count/services", "services")
_SHOWN = 100
"""Characters of the name of a quota or of its key that a message repeats."""


class Allowances:
    """The quotas of all namespaces, and what was left of them in the last pass.

    `ring` is called when a quota changed for which a gang waits. `records` are the DeadlineJobs, by UID.
    """

    def __init__(
        self, known: Mapping[str, records.Record], ring: Callable[[], None], watch: guard.Guard
    ) -> None:
        self.guard = watch
        self._records = known
        self._ring = ring
        self._quotas: dict[str, dict[str, quotas.Quota]] = {}
        self._left: dict[str, Left] = {}
        self._settled: dict[str, Left] = {}
        self._waiting: set[str] = set()
        self._known: dict[tuple[str, str, int], str] = {}

    @guard.one("ResourceQuota")
    def apply(self, event: str, raw: Mapping[str, Any]) -> None:
        """Take in a ResourceQuota."""
        meta = raw["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        there = self._quotas.setdefault(namespace, {})
        known = there.get(name)
        if event == "DELETED":
            there.pop(name, None)
        else:
            there[name] = quotas.read(raw)
        if there.get(name) != known and (known is None or namespace in self._waiting):
            self._ring()
        if not there:
            del self._quotas[namespace]

    def settle(self) -> list[records.Record]:
        """Find out which waiting gangs the quotas of their namespaces do not take.

        Returns:
            those that the API server refused for a quota, and would now take.
        """
        if not self._quotas and not self._waiting:
            self._left.clear()
            self._settled.clear()
            return []
        before = self._settled
        self._count()
        # `take` goes on charging what is left: compared with that, who it refused would never be told.
        self._settled = {
            namespace: [(quota, dict(keys)) for quota, keys in left] for namespace, left in self._left.items()
        }
        same = {namespace for namespace, left in self._left.items() if left == before.get(namespace)}
        self._waiting = set()
        relieved = []
        for record in self._records.values():
            namespace = record.ledger.namespace
            if namespace not in self._left and not record.short:
                continue
            if namespace in same and record.engine_job is not None:
                # Neither what was left at the beginning of the last pass nor what it needs has changed.
                self._waiting.update([namespace] if record.short else [])
                continue
            short = self._short_alike(record) if _waits(record) else ""
            if short:
                self._waiting.add(namespace)
            elif record.short and record.shapes is None and record.held_code == EXCEEDED:
                relieved.append(record)
            if short != record.short:
                record.short, record.engine_job, record.told_at = short, None, 0
        return relieved

    def take(self, record: records.Record) -> str:
        """Charge a gang that is to be admitted; return why it may not be, in words, "" when it may."""
        there = self._left.get(record.ledger.namespace, ())
        if _holds(record):
            # It was counted already, and room that is not there is short for it too.
            return next((_words(*found) for found in _overdrawn(record, there)), "")
        short = self._short(record)
        if not short:
            self._charge(record)
        return short

    def in_the_way(self, uid: str) -> tuple[str, list[str], list[str]]:
        """Return (namespace, quotas, jobs): which quotas a waiting gang is too large for, and who uses them.

        The names of those that have room in the namespace, since each of them is charged by each quota that
        counts what they are made of; none where no quota is in the way.
        """
        record = self._records.get(uid)
        if record is None or not (record.short or record.held_code == EXCEEDED):
            return "", [], []
        namespace, short = record.ledger.namespace, []
        for quota, left in self._left.get(namespace, ()):
            needed = _needed(record, quota)
            if any(needed.get(key, 0) > max(left[key], 0) for key, _ in quota.hard):
                short.append(quota.name)
        mates = (one for one in self._records.values() if one.ledger.namespace == namespace and _holds(one))
        return namespace, short, sorted(one.ledger.name for one in mates if one.ledger.uid != uid)

    def _count(self) -> None:
        """Reckon what is left of each quota beside what was admitted."""
        self._left = {
            namespace: [(quota, quota.free()) for _, quota in sorted(there.items())]
            for namespace, there in self._quotas.items()
        }
        self._known.clear()
        for record in self._records.values():
            if record.ledger.namespace in self._left and _holds(record):
                self._charge(record)

    def _charge(self, record: records.Record) -> None:
        for quota, left in self._left.get(record.ledger.namespace, ()):
            for key, amount in _needed(record, quota).items():
                if key in left:
                    left[key] -= amount

    def _short_alike(self, record: records.Record) -> str:
        """Look at one of those gangs that have nothing yet and are of one shape."""
        spec = record.ledger.spec
        if spec is None or record.pods or record.children:
            return self._short(record)
        key = (record.ledger.namespace, spec.shape, id(record.charges))
        if key not in self._known:
            self._known[key] = self._short(record)
        return self._known[key]

    def _short(self, record: records.Record) -> str:
        for quota, left in self._left.get(record.ledger.namespace, ()):
            needed = _needed(record, quota)
            for key, hard in quota.hard:
                if needed.get(key, 0) > max(left[key], 0):
                    return _words(quota, key, needed[key], hard)
        return ""


def _overdrawn(
    record: records.Record, there: Iterable[tuple[quotas.Quota, dict[str, int]]]
) -> Iterator[tuple[quotas.Quota, str, int, int]]:
    for quota, left in there:
        needed = _needed(record, quota)
        for key, hard in quota.hard:
            if needed.get(key, 0) and left[key] < 0:
                yield quota, key, needed[key], hard


def _words(quota: quotas.Quota, key: str, needed: int, hard: int) -> str:
    """Say what is short. What is in use now is left out: it would be told anew with every pod that ends."""
    wanted, allowed = quotas.text(key, needed), quotas.text(key, hard)
    where = f"ResourceQuota {quota.name[:_SHOWN]} of namespace {quota.namespace}"
    if needed > hard:
        return (
            f"its pods need {wanted} of {key[:_SHOWN]} together, and {where} allows {allowed} in all; "
            "ask for less, or have the quota raised"
        )
    return (
        f"its pods need {wanted} of {key[:_SHOWN]} together, and {where}, which allows {allowed}, has less "
        "left; it waits until others in the namespace end, or until the quota is raised"
    )


def _waits(record: records.Record) -> bool:
    job = record.ledger
    asked = record.shapes is not None or record.held_code == EXCEEDED
    return job.status.phase is Phase.PENDING and record.assumed is None and asked and not job.deleting


def _holds(record: records.Record) -> bool:
    """Whether it was admitted, or owns room that it will be admitted to."""
    if record.assumed is not None or record.claiming is not None:
        return True
    status = record.ledger.status
    return status.phase in _HOLDING and (status.admission is not None or status.claim is not None)


def _needed(record: records.Record, quota: quotas.Quota) -> Counter[str]:
    """Return by key what a gang will count that does not count yet."""
    needed: Counter[str] = Counter()
    for charge, count in _to_come(record):
        if quota.counts(charge):
            for key, amount in charge.amounts:
                needed[key] += count * amount
    return needed


def _to_come(record: records.Record) -> Iterator[Charged]:
    """Yield the objects that are not there yet, of a gang whose pods are known."""
    job = record.ledger
    if job.spec is None:
        return
    charges, there = dict(record.charges or _by_template(record)), _there(record)
    for group, replicas in job.spec.groups:
        if group in charges and replicas > there[group]:
            yield charges[group], replicas - there[group]
    if job.spec.ref is None:
        made = {child.group for child in record.children.values() if child.restart == job.status.restarts}
        missing = len([group for group, _ in job.spec.groups if group not in made])
        if missing:
            yield _JOB, missing
        if job.gang().service and not record.children:
            yield _SERVICE, 1


def _there(record: records.Record) -> Counter[str]:
    """Count by group the pods that exist, and the members that need none any more."""
    restarts = record.ledger.status.restarts
    found = Counter(pod.group for pod in record.pods.values() if not pod.gone)
    for child in record.children.values():
        if child.restart == restarts:
            found[child.group] += len(child.done)
    return found


def _by_template(record: records.Record) -> Iterable[tuple[str, quotas.Charge]]:
    """Reckon with templates before the API server has said what it makes of them."""
    for group, template in record.templates.items():
        try:
            yield group, quotas.charge(template["spec"])
        except errors.BadValueError:
            continue
