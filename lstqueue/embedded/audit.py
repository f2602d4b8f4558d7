"""An independent check of the cluster's invariants, after every write, from raw stored objects alone.

It subscribes to the store beside the controllers and never asks the operator. What it finds is recorded, not
raised, so that a run can be judged as a whole. The invariants:

- no node over-committed by a write of lstqueue: allocatable covers all bound pods that have not ended,
  whoever owns them, and what admissions reserve for members that are neither bound nor done;
- so capacity is free only when pods are gone: an admission that overlaps with pods still there shows here;
- freed capacity belongs to whom it was freed for: claims reserve what their victims leave;
- quota: the same sums per queue and pool stay within nominal, pods on dead nodes left out; what was admitted
  before nominal was lowered may go on;
- nobody is suspended for a job without a written claim that names that very attempt;
- whole gang or nothing: gates are lifted only when every expected pod exists, and only part of a gang is
  bound at most while it starts within its timeouts or while it ends;
- pods are bound where the admission of their attempt says, and no rank twice;
- phases move along allowed edges, one admission at a time;
- no pod of ours outlives its DeadlineJob.

What can only be judged by time (a gang that stays incomplete) is looked at when the time is up; `reaction_s`
is what the operator and the controllers are given beyond the timeouts of the API.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from lstqueue.api import names
from lstqueue.embedded import (
    audit_accounts,
    audit_claims,
    audit_facts,
    audit_rules,
    eventlog,
    pod_types,
)
from lstqueue.embedded.controllers import pods, pytorchpods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

REACTION_S = 60.0


class Invariant(enum.Enum):
    """What was broken."""

    NODE = "node over-committed"
    QUOTA = "quota exceeded"
    WHOLE_GANG = "part of a gang"
    PLACE = "wrong place"
    PHASE = "phase"
    ORPHAN = "orphan"
    UNREADABLE = "unreadable object"


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach: when (ms since the epoch), of what, by which object, in a sentence with numbers."""

    at: int
    invariant: Invariant
    object: str
    message: str

    def __str__(self) -> str:
        return f"{self.at}: {self.invariant.value}: {self.object}: {self.message}"


class Audit:
    """Watches a store from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
        reaction_s: seconds allowed to the operator and the controllers to react.

    Attributes:
        checks: how many rules have been evaluated.
        violations: what lstqueue broke.
        foreign: nodes and quotas exceeded by somebody else's writes.
    """

    def __init__(self, store: Store, errors: list[Exception], *, reaction_s: float = REACTION_S) -> None:
        self._store = store
        self._reaction = round(reaction_s * 1000)
        self._accounts = audit_accounts.Accounts()
        self._gangs: dict[str, audit_facts.Gang] = {}
        self._claims = audit_claims.Claims(self._accounts, self._gangs, self._pods_of)
        self._queues: dict[str, audit_facts.Queue] = {}
        self._pods: dict[str, audit_facts.Pod] = {}
        self._late: work.WorkQueue[str] = work.WorkQueue(self._look_at_gang, errors)
        self._orphans: work.WorkQueue[str] = work.WorkQueue(self._look_at_orphan, errors)
        self._down: set[str] = set()
        self._up_since: dict[str, int] = {}
        self._started = False
        self.checks = 0
        self.violations: list[Violation] = []
        self.foreign: list[Violation] = []
        for resource in (port.NODES, port.GPU_QUEUES, port.DEADLINE_JOBS, port.PODS):
            for obj in store.list(resource):
                self._on_event(eventlog.Event(eventlog.ADDED, resource, obj, None, 0))
        self._started = True
        self._unsubscribe = store.subscribe(self._on_event)

    def taken(self, node: str) -> tuple[pods.Amounts, pods.Amounts]:
        """Return what pods use on a node and what admissions reserve there, without zeros."""
        account = self._accounts.node(node)
        return (
            {name: amount for name, amount in account.used.items() if amount},
            {name: amount for name, amount in account.reserved.items() if amount},
        )

    def close(self) -> None:
        """Stop watching; what was found stays."""
        self._unsubscribe()
        self._late.close()
        self._orphans.close()

    def _on_event(self, event: eventlog.Event) -> None:
        raw = None if event.type == eventlog.DELETED else event.object
        ours = False
        try:
            if event.resource == port.PODS:
                ours = self._pod(event.object, gone=raw is None)
            elif event.resource == port.DEADLINE_JOBS:
                ours = True
                self._gang(event.object, gone=raw is None)
            elif event.resource == port.NODES:
                self._node(event.object["metadata"]["name"], raw)
            elif event.resource == port.GPU_QUEUES:
                self._queue(event.object["metadata"]["name"], raw)
            else:
                return
        except (KeyError, TypeError, ValueError) as error:
            self._report(Invariant.UNREADABLE, _key(event.object), f"{type(error).__name__}: {error}")
        self._check_accounts(_key(event.object), ours=ours)

    def _check_accounts(self, cause: str, *, ours: bool) -> None:
        now = self._store.now_ms()
        count, found = self._accounts.check(now, ours=ours and self._started)
        self.checks += count
        for is_node, excess in found:
            violation = Violation(now, Invariant.NODE if is_node else Invariant.QUOTA, cause, str(excess))
            (self.violations if excess.ours else self.foreign).append(violation)

    def _report(self, invariant: Invariant, where: str, message: str) -> None:
        self.violations.append(Violation(self._store.now_ms(), invariant, where, message))

    def _judge(self, invariant: Invariant, where: str, problems: Iterable[str]) -> None:
        """Record what a rule found. What was there before the audit began is taken as it is."""
        self.checks += 1
        for problem in problems:
            if self._started:
                self._report(invariant, where, problem)

    # Nodes and queues

    def _node(self, name: str, raw: port.Object | None) -> None:
        was_down = name in self._down
        if raw is not None and pods.is_ready(raw):
            self._down.discard(name)
        else:
            self._down.add(name)
        account = self._accounts.node(name)
        if was_down and name not in self._down:
            self._up_since[name] = self._store.now_ms()
        if was_down != (name in self._down):
            for pod in self._pods.values():
                if pod.node == name and pod.holds:
                    self._charge(pod)
        limit = None if raw is None else pods.allocatable(raw)
        account.set_limit(limit, self._store.now_ms())

    def _is_up(self, node: str, *, since: int | None = None) -> bool:
        """Whether a node is up, or has been since a point in time (ms)."""
        up = node not in self._down and node in self._accounts.nodes
        return up and (since is None or self._up_since.get(node, 0) <= since)

    def _queue(self, name: str, raw: port.Object | None) -> None:
        queue = audit_facts.queue(raw) if raw is not None else None
        if queue is None:
            self._queues.pop(name, None)
        else:
            self._queues[name] = queue
        now, before = self._store.now_ms(), self._accounts.cohorts.get(name, "")
        self._accounts.join(name, queue.cohort if queue is not None else "", now)
        limits = {} if queue is None else {(name, pool): most for pool, most in queue.most.items()}
        owners = {name}
        for cohort in {before, "" if queue is None else queue.cohort} - {""}:
            members = [one for one in self._queues.values() if one.cohort == cohort]
            owners.add(f"cohort/{cohort}")
            limits |= audit_facts.lent(cohort, members)
        for owner in sorted(limits.keys() | {one for one in self._accounts.quotas if one[0] in owners}):
            self._accounts.quota(*owner).set_limit(limits.get(owner), now)

    # Pods

    def _pod(self, raw: port.Object, *, gone: bool) -> bool:
        """Take a pod's event; returns whether the pod is ours."""
        uid = raw["metadata"]["uid"]
        pod = self._pods.get(uid)
        if gone:
            if pod is not None:
                self._drop_pod(pod)
            return pod is not None and bool(pod.gang)
        if pod is None:
            pod = self._pods[uid] = audit_facts.pod(raw)
            before_node, before_gated, held_before = "", True, False
            self._adopt(pod)
        else:
            before_node, before_gated, held_before = pod.node, pod.gated, pod.holds
            pod.learn(raw)
            self._rename(pod, raw)
        gang = self._gangs.get(pod.gang)
        if pod.node and not before_node:
            pod.charge = self._charge_of(pod, gang)
            pod.admitted_at = gang.placed_at.get(pod.attempt, 0) if gang is not None else 0
        if pod.holds is not held_before:
            self._use(pod, 1 if pod.holds else -1)
        if gang is not None:
            if before_gated and not pod.gated:
                self._ungated(gang, pod, raw)
            if pod.node and not before_node:
                # A node that comes back when its gang is being let go elsewhere brings its old pods back too.
                known_up = functools.partial(self._is_up, since=gang.begun_at - audit_accounts.STALE_MS)
                self._judge(Invariant.PLACE, pod.key, audit_rules.bound(gang, pod, known_up))
            self._settle(gang, pod)
        return bool(pod.gang)

    def _ungated(self, gang: audit_facts.Gang, pod: audit_facts.Pod, raw: port.Object) -> None:
        problems = audit_rules.ungated(gang, pod, audit_facts.stamped_rank(raw))
        self._judge(Invariant.WHOLE_GANG, gang.key, problems)
        if (pod.attempt, pod.restart) not in gang.released:
            gang.released.add((pod.attempt, pod.restart))
            gang.begun_at = self._store.now_ms()
        gang.ungated_at = self._store.now_ms()

    def _adopt(self, pod: audit_facts.Pod) -> None:
        gang = self._gangs.get(pod.gang)
        if gang is not None:
            pod.rank = gang.rank_of(pod)
            gang.pods.setdefault(pod.rank, {})[pod.uid] = pod
        elif pod.gang:
            self._orphans.add(pod.uid, delay=self._reaction / 1000)

    def _rename(self, pod: audit_facts.Pod, raw: port.Object) -> None:
        """Follow a pod of a user's own Job to the DeadlineJob and the rank it is labelled with now."""
        gang, label = self._gangs.get(pod.gang), audit_facts.gang_of(raw)
        if label == pod.gang and (gang is None or not gang.referenced):
            return
        if gang is not None:
            gang.pods[pod.rank].pop(pod.uid, None)
            gang.staying.discard(pod.uid)
        self._orphans.discard(pod.uid)
        pod.gang = label
        self._adopt(pod)
        gang = self._gangs.get(label)
        stamped = audit_facts.stamped_rank(raw)
        if gang is not None and gang.referenced and stamped.isdigit():
            gang.pods[pod.rank].pop(pod.uid, None)
            pod.rank = int(stamped)
            gang.pods.setdefault(pod.rank, {})[pod.uid] = pod

    def _drop_pod(self, pod: audit_facts.Pod) -> None:
        del self._pods[pod.uid]
        self._orphans.discard(pod.uid)
        if pod.holds:
            self._use(pod, -1)
        gang = self._gangs.get(pod.gang)
        if gang is not None:
            gang.pods[pod.rank].pop(pod.uid, None)
            pod.deleting, pod.node = True, ""
            self._settle(gang, pod)
            self._claims.changed(gang.uid)

    def _charge_of(self, pod: audit_facts.Pod, gang: audit_facts.Gang | None) -> tuple[str, str] | None:
        if gang is None or pod.attempt not in gang.admissions:
            return None
        queue, placement = gang.admissions[pod.attempt]
        place = placement.get(pod.rank)
        return None if place is None else (queue, place[1])

    def _use(self, pod: audit_facts.Pod, times: int) -> None:
        account = self._accounts.node(pod.node)
        account.use(pod.requests, times)
        if not pod.gang and times > 0:
            account.disturbed_at = self._store.now_ms()
        self._charge(pod)
        self._claims.changed(pod.gang)

    def _charge(self, pod: audit_facts.Pod) -> None:
        """Charge a pod to its quota while it uses a node that is up: quota is for what can run."""
        due = pod.holds and pod.uid in self._pods and self._is_up(pod.node)
        if pod.charge is not None and due is not pod.charged:
            pod.charged = due
            for owner in self._accounts.charged(*pod.charge):
                quota = self._accounts.quota(*owner)
                quota.use_admitted(pod.requests, 1 if due else -1, since=pod.admitted_at)

    # Gangs

    def _gang(self, raw: port.Object, *, gone: bool) -> None:
        uid = raw["metadata"]["uid"]
        gang = self._gangs.get(uid)
        if gone:
            if gang is not None:
                self._drop_gang(gang)
            return
        if gang is None:
            gang = self._gangs[uid] = audit_facts.gang(raw)
            for pod in self._pods.values():
                if pod.gang == uid:
                    self._adopt(pod)
        before, gang.now = gang.now, audit_facts.standing(raw)
        if gang.now == before:
            return
        if gang.now.placement is not None:
            gang.admissions[gang.now.attempt] = (gang.now.queue, gang.now.placement)
            gang.placed_at.setdefault(gang.now.attempt, self._store.now_ms())
        if gang.now.phase == "Admitted" and before.phase != "Admitted":
            gang.admitted_at = self._store.now_ms()
            gang.ungated_at = None
        if gang.now.claim is not None:
            gang.claimed, gang.queue = gang.now.claim, self._queue_of(raw)
        elif before.claim is not None:
            gang.unclaimed_at = self._store.now_ms()
        owner, since = self._gangs.get(gang.now.made_for), self._store.now_ms() - audit_accounts.STALE_MS
        self._judge(Invariant.PHASE, gang.key, audit_rules.justified(gang, before, owner, since))
        self._judge(Invariant.PHASE, gang.key, audit_rules.moved(gang, before))
        self._judge(Invariant.PHASE, gang.key, audit_rules.placed(gang, audit_facts.ranks_listed(raw)))
        self._judge(Invariant.WHOLE_GANG, gang.key, audit_rules.left_behind(gang, before, self._is_up))
        for rank in range(gang.size):
            self._settle_rank(gang, rank)
        self._claims.settle(gang)
        self._watch(gang)

    def _pods_of(self, gang: audit_facts.Gang) -> dict[str, pods.Amounts]:
        """Return by group what pods of a user's own job ask for, nothing where that makes no sense."""
        found = self._job_of(gang.namespace, gang.job)
        if found is None:
            return {}
        specs = {"pods": (found["spec"].get("template") or {}).get("spec")}
        if gang.job[0] == port.PYTORCH_JOBS.kind:
            roles = pytorchpods.replicas(found)
            specs = {role.lower(): pytorchpods.build(found, role, 0)["spec"] for role in roles}
        return {
            group: {} if not spec or pod_types.problem(spec) else pods.requests(spec)
            for group, spec in specs.items()
        }

    def _job_of(self, namespace: str, job: tuple[str, str]) -> port.Object | None:
        kind, name = job
        resource = port.PYTORCH_JOBS if kind == port.PYTORCH_JOBS.kind else port.JOBS
        return self._store.find(resource, namespace, name) if name else None

    def _queue_of(self, raw: port.Object) -> str:
        """Return the queue a job names, or its namespace does."""
        named = raw["spec"].get("queue")
        space = None if named else self._store.find(port.NAMESPACES, None, raw["metadata"]["namespace"])
        labels = (space["metadata"].get("labels") or {}) if space is not None else {}
        return str(named or labels.get(names.LABEL_DEFAULT_QUEUE, ""))

    def _drop_gang(self, gang: audit_facts.Gang) -> None:
        gang.now = audit_facts.Standing()
        self._claims.settle(gang)
        for rank in range(gang.size):
            self._settle_rank(gang, rank)
        del self._gangs[gang.uid]
        self._late.discard(gang.uid)
        for pod in gang.present():
            self._orphans.add(pod.uid, delay=self._reaction / 1000)

    def _settle(self, gang: audit_facts.Gang, pod: audit_facts.Pod) -> None:
        """Bring what the audit keeps about a gang into line with a pod that has changed."""
        if pod.phase == "Succeeded":
            gang.done.add((pod.restart, pod.rank))
        (gang.staying.add if pod.holds and not pod.deleting else gang.staying.discard)(pod.uid)
        if pod.rank >= 0:
            self._settle_rank(gang, pod.rank)
        self._watch(gang)

    def _settle_rank(self, gang: audit_facts.Gang, rank: int) -> None:
        """Reserve or release the capacity of a rank, as the admission and its pods are now."""
        if gang.referenced:
            return
        covered = gang.covers(rank)
        (gang.covered.add if covered else gang.covered.discard)(rank)
        wanted: tuple[str, str, str] | None = None
        if not covered and gang.now.owns and gang.now.placement and rank in gang.now.placement:
            wanted = (*gang.now.placement[rank], gang.now.queue)
        held = gang.held.get(rank)
        if wanted == held:
            return
        if held is not None:
            self._reserve(gang.held.pop(rank), gang.members[rank][1], -1)
        if wanted is not None:
            gang.held[rank] = wanted
            self._reserve(wanted, gang.members[rank][1], 1)
        self._claims.changed(gang.uid)

    def _reserve(self, place: tuple[str, str, str], requests: pods.Amounts, times: int) -> None:
        node, pool, queue = place
        self._accounts.node(node).reserve(requests, times)
        for owner in self._accounts.charged(queue, pool):
            self._accounts.quota(*owner).reserve(requests, times)

    # What time alone can break

    def _watch(self, gang: audit_facts.Gang) -> None:
        """Note since when a gang is in a state that may only last so long, and look again in time."""
        now = self._store.now_ms()
        for condition, holds in audit_rules.conditions(gang).items():
            if not holds:
                gang.since.pop(condition, None)
                gang.reported.discard(condition)
            else:
                gang.since.setdefault(condition, now)
        if gang.since.keys() - gang.reported:
            self._look_at_gang(gang.uid)

    def _look_at_gang(self, uid: str) -> None:
        gang, now = self._gangs[uid], self._store.now_ms()
        queue = self._queues.get(gang.now.queue, _DEFAULT_QUEUE)
        for condition, limit, message in audit_rules.overdue(gang, queue, self._reaction):
            if condition in gang.reported:
                continue
            if now < limit:
                self._late.add(uid, delay=(limit - now) / 1000)
                continue
            gang.reported.add(condition)
            self._judge(Invariant.WHOLE_GANG, gang.key, [message])

    def _look_at_orphan(self, uid: str) -> None:
        pod = self._pods[uid]
        job = self._job_of(pod.namespace, pod.job)
        if job is not None and pods.controller_of(job, "DeadlineJob") is None:
            # A user's own job may go on without its DeadlineJob.
            return
        problems = [f"pod {pod.name} is still there without its DeadlineJob {pod.gang}"]
        known = pod.gang in self._gangs or pod.deleting
        self._judge(Invariant.ORPHAN, pod.key, () if known else problems)


_DEFAULT_QUEUE = audit_facts.queue({"spec": {}})


def _key(obj: port.Object) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])
