"""The cluster without gangs: pods are placed one by one, as the default kube-scheduler does.

A gang begins to work once its last pod has a place. Until then those that have one hold it and do nothing,
and two gangs may wait for each other for ever. The engine still says where a pod goes, each pod being a job
of its own to it, so packing is the same for all policies. In front there may be a `Gate` that lets whole jobs
in by a count of GPUs alone, as Kueue does where it is not told of topology: what fits by the count need not
fit on nodes, so who is not complete in time is sent back.

Not emulated: the scheduler's spreading of pods (best fit packs better), pods that preempt others, pods that
give up by themselves, and the moment between two attempts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.engine import model
from lstqueue.evaluate import lives, world
from lstqueue.topology import model as topology

_BACKOFF_LEAST, _BACKOFF_MOST = model.MINUTE, model.HOUR


@dataclass(frozen=True, slots=True)
class Gate:
    """Lets jobs in by importance and time of queueing while GPUs are left by the count.

    Attributes:
        strict: Whether the first that the count does not let in holds up all others.
        ready: How long (ms) a gang may be incomplete before it is sent back, behind the others; it then
            pauses for a minute, twice as long each time, an hour at most. Kueue's defaults as of 0.19.
    """

    strict: bool
    ready: int = 30 * model.MINUTE


@dataclass(frozen=True, slots=True)
class Rules:
    """How pods come to be; without a gate they are there from the submission on."""

    gate: Gate | None = None


@dataclass(slots=True)
class _Pods:
    """The pods of a job that exist. `missing` are those without a place, by uid, with their groups."""

    life: lives.Life
    missing: dict[str, tuple[int, model.Job]]


class PodWorld(world.World):
    """`partial` are the GPUs that pods of incomplete gangs hold."""

    def __init__(self, *arguments: Any, rules: Rules, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._rules = rules
        self._incomplete: dict[str, _Pods] = {}
        self._queued: dict[str, tuple[int, int, str]] = {}  # by uid, the place in front of the gate
        self._inside = 0  # GPUs of those whom the gate has let in
        self._back: dict[str, int] = {}
        self._singles: dict[topology.PodShape, tuple[model.Group, ...]] = {}

    def arrive(self, uid: str, *arguments: Any) -> lives.Life:
        """Submit a job; without a gate its pods are there at once."""
        life = super().arrive(uid, *arguments)
        self._queue(life, life.work.submit)
        return life

    def snapshot(self, *, forecast_at: int, changed: bool) -> model.Snapshot:
        """Return the nodes, and the pods that wait; what the others hold is in use."""
        self._let_in()
        seen = super().snapshot(forecast_at=forecast_at, changed=changed)
        waiting = [job for pods in self._incomplete.values() for _, job in pods.missing.values()]
        return replace(seen, jobs=tuple(waiting))

    def apply(self, plan: model.Plan, now: int) -> bool:
        """Bind the pods that a plan has places for, and let it be known what was said of the others."""
        for update in plan.updates:  # else it would be said again in every pass
            pods = self._incomplete[update.uid.partition("/")[0]]
            self._log.told(now, update, f"{pods.life.work.key}/{update.uid.rpartition('/')[2]}")
            group, job = pods.missing[update.uid]
            said = model.Published(update.band, update.code, update.verdict, update.slack)
            pods.missing[update.uid] = group, replace(job, published=said)
        for admission in plan.admit:
            uid = admission.uid.partition("/")[0]
            ((node, _),) = admission.groups[0].nodes
            self._bind(self._incomplete[uid], admission.uid, node, now)
        return False

    # In front

    def _queue(self, life: lives.Life, at: int) -> None:
        self._queued[life.uid] = (-life.work.importance, at, life.uid)
        if self._rules.gate is None:
            self._create(life)

    def _let_in(self) -> None:
        gate = self._rules.gate
        if gate is None:
            return
        for *_, uid in sorted(self._queued.values()):
            life = self.jobs[uid]
            if life.not_before > self._now:
                continue
            if self._inside + life.work.gpus <= self.gpus:
                self._create(life)
                self._later(self._now + gate.ready, world.What.UNREADY, life)
            elif gate.strict:
                return

    def _create(self, life: lives.Life) -> None:
        del self._queued[life.uid]
        self._inside += life.work.gpus
        life.attempt += 1
        self._incomplete[life.uid] = _Pods(life, dict(self._made(life)))

    def _made(self, life: lives.Life) -> Iterator[tuple[str, tuple[int, model.Job]]]:
        """The pods of a gang as jobs of one pod."""
        rank = 0
        for index, group in enumerate(life.groups):
            single = self._singles.setdefault(group.shape, (replace(group, count=1),))
            for _ in range(group.count):
                uid = f"{life.uid}/{rank:05d}"
                yield uid, (index, self._pod(life, uid, single))
                rank += 1

    def _pod(self, life: lives.Life, uid: str, single: tuple[model.Group, ...]) -> model.Job:
        return model.Job(
            uid=uid,
            namespace=life.work.user or "default",
            name=uid,
            queue=lives.QUEUE,
            groups=single,
            submit=life.work.submit,
            importance=life.work.importance,
        )

    # Places

    def _bind(self, pods: _Pods, uid: str, node: str, now: int) -> None:
        life = pods.life
        group, _ = pods.missing.pop(uid)
        part = model.Assigned(group, world.POOL, node, 1, 0)
        self._log.note(now, "bound", f"{life.work.key}/{uid.rpartition('/')[2]}", [(node, 1)])
        self._hold(life, (*life.assigned, part), 1, (part,))
        if pods.missing:
            return
        del self._incomplete[life.uid]
        self.partial -= life.work.gpus
        self._placed += 1
        self._start(life, now)

    def _hold(
        self,
        life: lives.Life,
        assigned: tuple[model.Assigned, ...],
        sign: int,
        parts: tuple[model.Assigned, ...],
    ) -> None:
        """Charge some pods of an incomplete gang, or take them off."""
        life.assigned = parts
        self._machines.charge(life, sign)
        life.assigned = assigned
        gpus = sign * sum(dict(life.groups[part.group].shape.requests).get(world.GPU, 0) for part in parts)
        self.busy += gpus
        self.partial += gpus

    def _happens(self, life: lives.Life, what: world.What, at: int) -> bool:
        if what is not world.What.UNREADY:
            return super()._happens(life, what, at)
        if life.uid in self._incomplete:
            tries = self._back[life.uid] = self._back.get(life.uid, 0) + 1
            life.not_before = at + min(_BACKOFF_LEAST << (tries - 1), _BACKOFF_MOST)
            self._later(life.not_before, world.What.FORGIVEN, life)
            self._send_back(life, at)
        return True

    def _send_back(self, life: lives.Life, at: int) -> None:
        """Take an incomplete gang's pods away."""
        del self._incomplete[life.uid]
        self._hold(life, (), -1, life.assigned)
        self._inside -= life.work.gpus
        self._log.note(at, "waits", life.work.key)
        self._queue(life, at)

    def _strike(self, life: lives.Life, at: int, *, asked: bool) -> None:
        if life.uid in self._incomplete:
            self._send_back(life, at)  # its pods begin anew, all of them
        else:
            super()._strike(life, at, asked=asked)

    def _ended(self, life: lives.Life, at: int) -> None:
        super()._ended(life, at)
        self._inside -= life.work.gpus

    def _gone(self, life: lives.Life, at: int) -> None:
        super()._gone(life, at)
        self._inside -= life.work.gpus
        self._queue(life, at)
