"""What must hold of a replay, checked at every move.

A second set of books, kept from the moves alone and in other terms than the world's and the engine's: what is
used of each node and of each queue's quota, who holds what where, how much of each job is done. So a mistake
in either does not excuse itself. Each check costs what the move touches; broken rules are counted and the
first ones kept in words.
"""

from __future__ import annotations

from collections.abc import Mapping

from lstqueue.engine import model
from lstqueue.evaluate import lives, teams, workload, world
from lstqueue.topology import slowdown

KEPT = 20
"""Broken rules that are kept in words."""
WHOLE = "all queues"
"""An account of its own, beside those of a queue and of a cohort: nobody has GPUs that are not there."""
Parts = dict[tuple[int, str], int]
"""Pods by group and node."""


class Books:
    """A witness of a `world.World`. `checks` counts what was looked at, `broken` what did not hold."""

    def __init__(
        self,
        shape: world.Shape,
        costs: lives.Costs,
        *,
        several: teams.Teams | None = None,
        config: model.Config | None = None,
    ) -> None:
        self.checks = 0
        self.broken = 0
        self.violations: list[str] = []
        self._has = {machine.name: dict(machine.allocatable(machine.gpus)) for machine in shape.machines}
        self._usable: dict[str, int] = {}  # GPUs of nodes that ever were out of service
        self._costs = costs
        self._notice = (config or model.Config()).slot_grace + costs.grace
        self._used: dict[str, dict[str, int]] = {name: {} for name in self._has}
        self._accounts = _accounts(shape, several)
        self._charged = dict.fromkeys(self._accounts, 0)
        self._cohort = "" if several is None else several.cohort
        self._holds: dict[str, Parts] = {}
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
        parts: Parts = {}
        for part in life.assigned:
            place = part.group, part.node
            parts[place] = parts.get(place, 0) + part.bound + part.held
        counts = [sum([n for (group, _), n in parts.items() if group == i]) for i in range(len(life.groups))]
        whole = counts == [group.count for group in life.groups] and _gpus(life, parts) == life.work.gpus
        self._expect(whole, life, at, f"is admitted in part: {counts}")
        self._holds[life.uid] = parts
        self._charge(life, parts, 1)
        for node in dict.fromkeys([node for _, node in parts]):
            self._fits(life, node, at)
        for account, used, most in self._of(life):
            self._expect(used <= most, life, at, f"makes {used} GPUs used of {most} of {account}")
        self._began[life.uid] = life.starts_at
        self._expect(life.starts_at >= at >= life.work.submit, life, at, "works before it may")

    def suspended(self, life: lives.Life, at: int, order: model.Suspend, kept: int) -> None:
        """Only victims of claims that stand, and who must be in its slot; a run keeps what is saved of it."""
        self._expect(life.uid in self._holds, life, at, "is suspended and holds nothing")
        if order.why is model.Why.PROMISED:
            self._expect(self._due(life, at), life, at, "leaves for a slot that it need not be in yet")
        elif order.why is not model.Why.QUEUE_DRAINED:
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
        self._has[node][workload.GPU] = gpus
        if (used := self._used[node].get(workload.GPU, 0)) > gpus:
            self.broken += 1
            if len(self.violations) < KEPT:
                self.violations.append(f"{used} GPUs stay used on {node} of {gpus}")

    def serves(self, node: str, gpus: int, at: int) -> None:
        """What may not be used, of a node that failed or is drained, is not taken: `admitted` compares."""
        self._usable[node] = gpus

    def _keeps(self, life: lives.Life, at: int, kept: int, *, asked: bool) -> None:
        """Exactly what the last checkpoint had, or all of it where it was asked and saves; of a drain either.

        A run that nobody has learnt of yet keeps nothing.
        """
        ran = max(0, at - self._began.get(life.uid, at)) if life.state is model.State.RUNNING else 0
        every, saves = self._costs.checkpoint, self._costs.saves_on_suspend
        saved = slowdown.shrunk(ran // every * every if every else 0, life.slowdown)
        whole = slowdown.shrunk(ran, life.slowdown)
        fine = kept == whole if asked and saves else kept == saved or (saves and kept == whole)
        self._expect(fine, life, at, f"keeps {kept} ms of a run of {ran} ms")
        self._done[life.uid] += kept

    def released(self, life: lives.Life, at: int) -> None:
        """Room is given back by whoever holds it, once."""
        holds = self._holds.pop(life.uid, None)
        self._expect(holds is not None, life, at, "gives back what it does not hold")
        self._charge(life, holds or {}, -1)

    def ended(self, life: lives.Life, at: int) -> None:
        """A job has done all of its work, no more and no less."""
        ran = (life.completed or 0) - self._began.get(life.uid, 0)
        done = self._done.pop(life.uid, 0) + slowdown.shrunk(ran, life.slowdown)
        self._expect(done == life.work.duration, life, at, f"did {done} ms of {life.work.duration} ms")
        self._expect(life.uid not in self._holds, life, at, "has ended and holds room")

    def _due(self, life: lives.Life, at: int) -> bool:
        """Whether somebody who runs has to leave to be in its slot when that begins, and in time."""
        slot, deadline = life.slot, life.work.deadline
        if slot is None or deadline is None or slot.finish > deadline:
            return False
        places = {
            (index, node): pods for index, group in enumerate(slot.groups) for node, pods in group.nodes
        }
        return at >= slot.start - self._notice and places != self._holds.get(life.uid)

    def _charge(self, life: lives.Life, parts: Mapping[tuple[int, str], int], sign: int) -> None:
        """Add what pods use to their nodes, and their GPUs to who has the quota; or take them off."""
        for (group, node), pods in parts.items():
            used = self._used[node]
            for name, amount in life.groups[group].shape.requests:
                used[name] = used.get(name, 0) + sign * pods * amount
        gpus = sign * _gpus(life, parts)
        for account, _, _ in self._of(life):
            self._charged[account] += gpus

    def _fits(self, life: lives.Life, node: str, at: int) -> None:
        """What is used of a node is there; of GPUs, those that serve."""
        has = self._has[node]
        for name, used in self._used[node].items():
            gpus = name == workload.GPU
            room = self._usable.get(node, has[name]) if gpus else has.get(name, 0)
            self.checks += 1
            if used > room:
                self._break(life, at, f"makes {used} {'GPUs' if gpus else name} used on {node} of {room}")

    def _of(self, life: lives.Life) -> list[tuple[str, int, int]]:
        """(name, GPUs in use, most) of the accounts that a job is charged to."""
        names = [WHOLE, *([f"queue {life.queue}"] if life.queue else [])]
        if self._cohort:
            names.append(f"cohort {self._cohort}")
        return [(name, self._charged[name], self._accounts[name]) for name in names]

    def _expect(self, fine: bool, life: lives.Life, at: int, words: str) -> None:
        self.checks += 1
        if not fine:
            self._break(life, at, words)

    def _break(self, life: lives.Life, at: int, words: str) -> None:
        self.broken += 1
        if len(self.violations) < KEPT:
            self.violations.append(f"{at}: job {life.work.key} {words}")


def _gpus(life: lives.Life, parts: Mapping[tuple[int, str], int]) -> int:
    """GPUs of these pods of a gang."""
    of_group = [dict(group.shape.requests).get(workload.GPU, 0) for group in life.groups]
    return sum([of_group[group] * pods for (group, _), pods in parts.items()])


def _accounts(shape: world.Shape, several: teams.Teams | None) -> dict[str, int]:
    """How many GPUs each queue, and a cohort, may have in use; without a limit as many as there are."""
    made = {WHOLE: shape.gpus}
    if several is None:
        return made
    total = sum([team.gpus for team in several.teams])
    for team in several.teams:
        most = team.gpus
        if several.cohort:
            most = total if team.limit is None else min(total, team.gpus + team.limit)
        made[f"queue {team.name}"] = most
    if several.cohort:
        made[f"cohort {several.cohort}"] = total
    return made
