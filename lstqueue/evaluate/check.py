"""What must hold of a replay, checked at every move.

A second set of books, kept from the moves alone and in other terms than the world's and the engine's: free
GPUs per node, who holds what where, how much of each job is done. So a mistake in either does not excuse
itself. Each check costs what the move touches; broken rules are counted and the first ones kept in words.
"""

from __future__ import annotations

from lstqueue.engine import model
from lstqueue.evaluate import lives, workload, world

KEPT = 20
"""Broken rules that are kept in words."""


class Books:
    """A witness of a `world.World`. `checks` counts what was looked at, `broken` what did not hold."""

    def __init__(self, shape: world.Shape, *, checkpoint: int, saves_on_suspend: bool) -> None:
        self.checks = 0
        self.broken = 0
        self.violations: list[str] = []
        self._of_node = {machine.name: machine.gpus for machine in shape.machines}
        self._usable: dict[str, int] = {}  # of nodes that ever were out of service
        self._total = shape.gpus
        self._checkpoint, self._saves = checkpoint, saves_on_suspend
        self._used: dict[str, int] = {}
        self._in_use = 0
        self._holds: dict[str, dict[str, int]] = {}
        self._began: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._owed: dict[tuple[str, int], str] = {}  # victims of claims, and whose

    def planned(self, snapshot: model.Snapshot, plan: model.Plan) -> None:
        """Note for whom a plan may suspend whom: only victims of claims that were written before it."""
        if not plan.suspend:
            return
        self._owed.clear()
        for job in snapshot.jobs:
            if job.claim is not None and job.claim.committed and job.state is model.State.CLAIMING:
                for victim in job.claim.victims:
                    self._owed[victim.uid, victim.attempt] = job.uid

    def arrived(self, life: lives.Life, at: int) -> None:
        """A job is not known before it was submitted, nor twice."""
        self._expect(at >= life.work.submit, life, at, "is known before it was submitted")
        self._expect(life.uid not in self._done, life, at, "arrives twice")
        self._done[life.uid] = 0

    def admitted(self, life: lives.Life, at: int) -> None:
        """A whole gang where there is room, and nobody twice."""
        self._expect(life.uid in self._done, life, at, "is admitted before it arrived")
        self._expect(life.uid not in self._holds, life, at, "is admitted where it holds room already")
        counts = [0] * len(life.groups)
        holds: dict[str, int] = {}
        for part in life.assigned:
            counts[part.group] += part.bound + part.held
            per_pod = dict(life.groups[part.group].shape.requests).get(workload.GPU, 0)
            holds[part.node] = holds.get(part.node, 0) + per_pod * (part.bound + part.held)
        whole = counts == [group.count for group in life.groups] and sum(holds.values()) == life.work.gpus
        self._expect(whole, life, at, f"is admitted in part: {counts}")
        for name, gpus in holds.items():
            used = self._used[name] = self._used.get(name, 0) + gpus
            room = self._usable.get(name, self._of_node.get(name, 0))
            self._expect(used <= room, life, at, f"makes {used} GPUs used on {name} of {room}")
        self._in_use += sum(holds.values())
        self._expect(self._in_use <= self._total, life, at, f"makes the queue use {self._in_use} GPUs")
        self._holds[life.uid] = holds
        self._began[life.uid] = life.starts_at
        self._expect(life.starts_at >= at >= life.work.submit, life, at, "works before it may")

    def suspended(self, life: lives.Life, at: int, order: model.Suspend, kept: int) -> None:
        """Only victims of claims that stand; a run keeps what its checkpoints have."""
        self._expect(life.uid in self._holds, life, at, "is suspended and holds nothing")
        if order.why not in (model.Why.QUEUE_DRAINED, model.Why.PROMISED):
            owner = self._owed.get((order.uid, order.attempt))
            self._expect(owner == order.for_uid != "", life, at, f"is suspended for {order.for_uid!r}")
        self._keeps(life, at, kept, asked=True)

    def struck(self, life: lives.Life, at: int, kept: int) -> None:
        """A run that a mishap ended keeps no more than it would by a suspension."""
        self._expect(life.uid in self._holds, life, at, "is struck and holds nothing")
        self._keeps(life, at, kept, asked=False)

    def resized(self, node: str, gpus: int) -> None:
        """What is used of a node fits what is left of it."""
        self.checks += 1
        self._of_node[node] = gpus
        if self._used.get(node, 0) > gpus:
            self.broken += 1
            if len(self.violations) < KEPT:
                self.violations.append(f"{self._used[node]} GPUs stay used on {node} of {gpus}")

    def serves(self, node: str, gpus: int, at: int) -> None:
        """What may not be used, of a node that failed or is drained, is not taken: `admitted` compares."""
        self._usable[node] = gpus

    def _keeps(self, life: lives.Life, at: int, kept: int, *, asked: bool) -> None:
        """Exactly what the last checkpoint had, or all of it where it was asked and saves; of a drain either.

        A run that nobody has learnt of yet keeps nothing.
        """
        ran = max(0, at - self._began.get(life.uid, at)) if life.state is model.State.RUNNING else 0
        saved = ran // self._checkpoint * self._checkpoint if self._checkpoint else 0
        fine = kept == ran if asked and self._saves else kept == saved or (self._saves and kept == ran)
        self._expect(fine, life, at, f"keeps {kept} ms of a run of {ran} ms")
        self._done[life.uid] += kept

    def released(self, life: lives.Life, at: int) -> None:
        """Room is given back by whoever holds it, once."""
        holds = self._holds.pop(life.uid, None)
        self._expect(holds is not None, life, at, "gives back what it does not hold")
        for name, gpus in (holds or {}).items():
            self._used[name] -= gpus
            self._in_use -= gpus

    def ended(self, life: lives.Life, at: int) -> None:
        """A job has done all of its work, no more and no less."""
        done = self._done.pop(life.uid, 0) + (life.completed or 0) - self._began.get(life.uid, 0)
        self._expect(done == life.work.duration, life, at, f"did {done} ms of {life.work.duration} ms")
        self._expect(life.uid not in self._holds, life, at, "has ended and holds room")

    def _expect(self, fine: bool, life: lives.Life, at: int, words: str) -> None:
        self.checks += 1
        if not fine:
            self.broken += 1
            if len(self.violations) < KEPT:
                self.violations.append(f"{at}: job {life.work.key} {words}")
