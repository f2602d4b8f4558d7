"""One gang, its API and an operator reduced to the lifecycle; it crashes, knows late and loses writes.

What must hold is checked at every write and at every pass; `finish` then plays fair until the gang is over.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection
from typing import Any

from cases import gang_api, raw
from lstqueue.api import schema
from lstqueue.engine import model
from lstqueue.jobs import inline, views
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger, lifecycle, runs, settings, snapshots, statuses, steps

Phase = ledger.Phase
NODES = ["n0", "n1", "n2", "n3"]
SETTINGS = settings.Settings()
BIND_TIMEOUT, READY_TIMEOUT = 2 * raw.MINUTE, 30 * raw.MINUTE

EDGES = {
    Phase.PENDING: {Phase.CLAIMING, Phase.ADMITTED},
    Phase.CLAIMING: {Phase.PENDING, Phase.ADMITTED},
    Phase.ADMITTED: {Phase.RUNNING, Phase.SUSPENDING, Phase.SUCCEEDED, Phase.PENDING},
    Phase.RUNNING: {Phase.SUSPENDING, Phase.SUCCEEDED},
    Phase.SUSPENDING: {Phase.PENDING, Phase.ADMITTED, Phase.SUCCEEDED, Phase.FAILED},
}


class World:
    """`groups` are replicas by name, the leader's first."""

    def __init__(self, groups: dict[str, int], **spec: Any) -> None:
        self.groups = groups
        self.api = gang_api.Api(raw.deadline_job(groups=groups, **spec), NODES)
        self.dipped: set[tuple[int, int]] = set()
        self.crash()

    # The operator

    def crash(self) -> None:
        """Forget everything; begin with what a list shows."""
        self.cache = caches.Cache(lambda: None)
        self.ungated_at = 0
        for events in self.api.events.values():
            events.clear()
        self.cache.apply_ledger("ADDED", self.api.job)
        for job in self.api.jobs.values():
            self.cache.apply_child("ADDED", job)
        for pod in self.api.pods.values():
            self.cache.apply_pod("ADDED", pod)

    @property
    def record(self) -> caches.Record:
        return self.cache.records[raw.UID]

    @property
    def truth(self) -> ledger.Ledger:
        return ledger.read(self.api.job)

    def hear(self, kind: str, count: int = 1_000_000) -> None:
        """Have the operator hear of some more events of a kind."""
        events = self.api.events[kind]
        for _ in range(min(count, len(events))):
            self._apply(kind, *events.popleft())

    def _apply(self, kind: str, event: str, item: raw.Object) -> None:
        if kind == "ledger":
            self.cache.apply_ledger(event, item)
        elif kind == "job":
            self.cache.apply_child(event, item)
        else:
            self.cache.apply_pod(event, item)

    def step(self) -> lifecycle.Step:
        record, status = self.record, self.record.ledger.status
        if not self.ungated_at and any(pod.attempt == status.attempt for pod in record.pods.values()):
            self.ungated_at = self.api.now
        gang = lifecycle.Gang(
            ledger=record.ledger,
            children=tuple(record.children.values()),
            pods=tuple(record.pods.values()),
            ungated_at=self.ungated_at,
            bind_timeout=BIND_TIMEOUT,
            ready_timeout=READY_TIMEOUT,
            fit_node=lambda _, node: self.api.fit[node] and node not in self.api.dead,
            lost=lambda pod: "is not ready" if (pod.node or pod.aim) in self.api.dead else "",
            stale=lambda node: node in self.api.dead,
        )
        return lifecycle.step(gang, self.api.now)

    def look(self, *, lose: str = "") -> lifecycle.Step:
        """Make one pass and carry out the next step; `lose` its "write" or the "reply" to it."""
        step = self.step()
        self.check_charges()
        if lose == "write":
            return step

        def reply(kind: str, item: raw.Object) -> None:
            if lose != "reply":
                self._apply(kind, "MODIFIED", item)

        with contextlib.suppress(gang_api.Conflict):
            self._carry_out(step, reply)
        return step

    def _carry_out(self, step: lifecycle.Step, reply: Callable[[str, raw.Object], None]) -> None:
        job = self.record.ledger
        if step.status is not None:
            reply("ledger", self.write(job, step.status, step.why))
        for group, restart in step.create:
            body = inline.job(job.gang(), group, restart, self.record.templates[group])
            reply("job", self.api.create_job(body))
        for child in (*step.suspend, *step.resume):
            body = inline.suspend(child, value=child in step.suspend)
            reply("job", self.api.patch_job(child.name, body))
        for child in step.discard:
            self.api.delete_job(child.name, child.uid)
        if step.pause:
            reply("ledger", self.api.edit(active=False))
        if step.ungate:
            self.check_whole()
            self.ungated_at = self.api.now
        for pod, pool, node, rank in step.ungate:
            charge = f"research/{pool}"
            body = inline.ungate(pod, node=node, rank=rank, attempt=job.status.attempt, charge=charge)
            reply("pod", self.api.patch_pod(pod.uid, body))
            self.ungated_at = self.api.now

    def write(self, job: ledger.Ledger, status: ledger.Status, why: str) -> raw.Object:
        """Write a status as the operator does, and judge the move."""
        before = self.truth.status
        word = why if why.isalnum() else status.suspension or "Other"
        status = dataclasses.replace(status, observed=job.generation)
        end, spec = status.completed or self.api.now, job.spec
        least, window = 15 * raw.MINUTE, 24 * raw.HOUR
        status = runs.ended(job.status, status, spec=spec, end=end, reason=word, min_run=least, window=window)
        status = statuses.with_conditions(job, status, now=self.api.now, why=word, message=why)
        raw_after = self.api.write_status(statuses.patch(job, status))
        seen = ledger.read(raw_after)
        assert seen.status == status
        assert statuses.patch(seen, status) == {}
        assert schema.validate("DeadlineJob", raw_after) == []
        self.check_move(before, status)
        return raw_after

    def admit(self) -> bool:
        """Do what a pass does for a waiting job that fits: commit an admission."""
        job = snapshots.engine_job(self.record, self.cache, SETTINGS)
        if self.record.shapes is None:
            shape = snapshots.topology.PodShape(((raw.GPU, 1), ("pods", 1)))
            self.record.shapes = tuple(model.Group(name, count, shape) for name, count in self.groups.items())
            self.record.engine_job = None
            return False
        usable = [node for node in NODES if self.api.fit[node] and node not in self.api.dead]
        free = [node for node in usable if node not in job.avoid]
        size = sum(self.groups.values())
        waits = job.state in (model.State.WAITING, model.State.CLAIMING)
        if not waits or job.not_before > self.api.now:
            return False
        if len(free) * gang_api.SLOTS < size:
            return False
        seen = self.record.ledger
        assert seen.spec is not None
        nodes = {node: min(gang_api.SLOTS, size - gang_api.SLOTS * place) for place, node in enumerate(free)}
        nodes = {node: count for node, count in nodes.items() if count > 0}
        placed = raw.admission(seen.gang(), seen.spec.shape, nodes, at=self.api.now)
        status = dataclasses.replace(
            seen.status, phase=Phase.ADMITTED, admission=placed, claim=None, attempt=seen.status.attempt + 1
        )
        self.ungated_at = 0
        with contextlib.suppress(gang_api.Conflict):
            self.cache.apply_ledger("MODIFIED", self.write(seen, status, "Admitted"))
        return True

    def claim(self) -> None:
        """Do what a pass does for a waiting job at its last moment: commit a claim."""
        seen = self.record.ledger
        if seen.status.phase is not Phase.PENDING or not seen.may_claim or self.record.shapes is None:
            return
        groups = tuple(model.GroupPlacement("a100", (("n0", count),)) for count in self.groups.values())
        claim = model.Claim(groups, (model.Victim("uid-victim", 1),), self.api.now + raw.MINUTE)
        status = dataclasses.replace(seen.status, phase=Phase.CLAIMING, claim=claim)
        with contextlib.suppress(gang_api.Conflict):
            self.cache.apply_ledger("MODIFIED", self.write(seen, status, "Claiming"))

    def preempt(self) -> None:
        """Do what a pass does for somebody else: have the gang make room."""
        seen = self.record.ledger
        if seen.status.phase not in (Phase.ADMITTED, Phase.RUNNING):
            return
        status = steps.suspended(seen.status, ledger.PREEMPTED, self.api.now, for_uid="uid-other")
        with contextlib.suppress(gang_api.Conflict):
            self.cache.apply_ledger("MODIFIED", self.write(seen, status, "Preempted"))

    # What must hold

    def check_move(self, before: ledger.Status, after: ledger.Status) -> None:
        spec, size = self.truth.spec, sum(self.groups.values())
        assert spec is not None
        if after.phase is not before.phase:
            assert after.phase in EDGES[before.phase], f"{before.phase} -> {after.phase}"
        assert after.restarts - after.disruptions <= spec.backoff_limit
        if after.phase in (Phase.PENDING, Phase.ADMITTED) and before.phase is not after.phase:
            holding = self.api.holding()
            left = [
                pod["metadata"]["name"] for pod in holding if pod["spec"]["nodeName"] not in self.api.dead
            ]
            assert not left, f"{after.phase} while {left} are there"
        if after.phase is Phase.ADMITTED:
            assert after.admission is not None
            assert len(after.admission.places()) == size
        if (before.phase, after.phase) == (Phase.SUSPENDING, Phase.ADMITTED):
            held = before.attempt, before.restarts
            assert held not in self.dipped, "begins again in a place that was given away"
        if after.phase is Phase.SUCCEEDED:
            deciding = spec.groups[:1] if spec.leader_decides else spec.groups
            for group, _ in deciding:
                child = views.child(self.api.jobs[f"train-{group}-{before.restarts}"])
                assert child.complete, f"succeeded although {group} did not"
        if after.phase is Phase.FAILED:
            assert before.restarts - before.disruptions == spec.backoff_limit

    def check_charges(self) -> None:
        """The engine is told of no more than the admission names, and of nothing outside an admission."""
        status = self.record.ledger.status
        job = snapshots.engine_job(self.record, self.cache, SETTINGS)
        named: dict[str, int] = {}
        for _, node in status.admission.places().values() if status.admission else ():
            named[node] = named.get(node, 0) + 1
        charged = dict.fromkeys(named, 0)
        for part in job.assigned:
            charged[part.node] = charged.get(part.node, 0) + part.bound + part.held
        if self.api.dead or any(pod.restart < status.restarts for pod in self.record.pods.values()):
            return  # what is left on a dead node may come back to life beside its successors
        if status.admission is None:
            aimed = [pod for pod in self.record.pods.values() if pod.aim and not (pod.node or pod.gone)]
            assert sum(part.held for part in job.assigned) == len(aimed)
            return
        assert all(count <= named.get(node, 0) for node, count in charged.items()), (charged, named)
        if charged != named:
            self.dipped.add((status.attempt, status.restarts))

    def check_whole(self) -> None:
        """As far as could be known, every rank that is not through has its pod when the first is let go."""
        status = self.record.ledger.status
        pods = [
            pod for pod in self.record.pods.values() if pod.restart == status.restarts and not pod.deleting
        ]
        for child in self.record.children.values():
            if child.restart == status.restarts:
                there = {pod.index for pod in pods if pod.owner == child.uid}
                assert set(range(self.groups[child.group])) <= there | child.done

    def check_pods(self) -> None:
        """No rank is bound twice, and every bound pod is where its admission says."""
        ranks: dict[int, str] = {}
        for pod in map(views.pod, self.api.holding()):
            if pod.node in self.api.ever_dead:
                continue
            rank = self.truth.gang().offset(pod.group) + pod.index
            assert rank not in ranks, f"{ranks[rank]} and {pod.name} are bound for rank {rank}"
            ranks[rank] = pod.name
            admission = self.truth.status.admission
            if admission is not None and pod.attempt == self.truth.status.attempt:
                assert admission.places()[rank][1] == pod.node

    # Fair play

    def finish(self) -> None:
        """From here on nothing goes wrong any more; the gang must come to an end."""
        self.api.fit = dict.fromkeys(NODES, True)
        for node in list(self.api.dead):
            self.api.revive(node)
        self.api.edit(active=True)
        for _ in range(300):
            if self.truth.final and not self.api.holding():
                return
            running = self.truth.status.phase is Phase.RUNNING
            self.go_on(idle=() if running else ("succeed",))
        raise AssertionError(f"not over: {self.truth.status}, {self.step()}")

    def go_on(self, *, idle: Collection[str] = ()) -> None:
        """Let everybody do what is due, once, except who is idle; time passes when the operator waits."""
        for name in list(self.api.jobs) if "sync" not in idle else ():
            self.api.sync(name)
        for uid in list(self.api.pods):
            for how in ("leave", "bind", "ready", "succeed"):
                if uid in self.api.pods and how not in idle:
                    self.api.run_pod(uid, how)
            self.check_pods()
        for kind in ("ledger", "job", "pod"):
            if kind not in idle:
                self.hear(kind)
        step = self.look()
        if step.idle and not self.admit():
            self.api.now += 1000 if step.wake is None else max(1000, step.wake - self.api.now)
