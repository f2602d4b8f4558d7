"""A job of the fray: what really happens to it, and the record that the operator would keep of it."""

from __future__ import annotations

import dataclasses

from lstqueue.engine import model
from lstqueue.operator import ledger, runs, starts, steps


@dataclasses.dataclass
class Part:
    """Pods of a job on one node: how many are bound there, and for how many more it holds room."""

    node: str
    bound: int
    held: int


@dataclasses.dataclass
class Unit:
    """One job with what really happens to it. `status` is its record.

    `suspended` are the times of all its suspensions for others, `shuns` says until when it may not use nodes
    that did not come free for it.
    """

    job: model.Job
    parts: list[Part] = dataclasses.field(default_factory=list)
    returns: bool = True
    status: ledger.Status = dataclasses.field(default_factory=ledger.Status)
    suspended: list[int] = dataclasses.field(default_factory=list)
    shuns: dict[str, int] = dataclasses.field(default_factory=dict)

    def set(self, **fields: object) -> None:
        self.job = dataclasses.replace(self.job, **fields)

    def note(self, status: ledger.Status) -> None:
        """Put on record, and have the next pass read it as the operator does."""
        self.status = status
        self.set(
            saved=status.saved,
            wasted=status.wasted,
            displaced_by=status.displaced_by,
            suspensions=runs.preempted_at(status),
            failed_starts=status.back_off.count,
        )

    def stop(self, why: str, now: int, *, min_run: int, owner: str) -> None:
        """Put on record that it has to leave, for whatever reason, and for whom."""
        running = self.job.state is model.State.RUNNING
        before = dataclasses.replace(
            self.status,
            phase=ledger.Phase.RUNNING if running else ledger.Phase.ADMITTED,
            started=self.job.since if running else 0,
        )
        spec = ledger.Spec(
            self.job.queue,
            (),
            "",
            checkpoint=self.job.checkpoint,
            saves_on_suspend=self.job.saves_on_suspend,
            restart_overhead=self.job.restore,
        )
        after = steps.suspended(before, why, now, for_uid=owner)
        window = model.Config().cap_window
        self.note(runs.ended(before, after, spec=spec, end=now, reason=why, min_run=min_run, window=window))

    def failed_to_start(self, now: int) -> None:
        known = self.status.back_off
        failed = dataclasses.replace(known, until=now, count=known.count + 1)
        self.note(dataclasses.replace(self.status, back_off=failed))

    def started(self) -> None:
        self.note(dataclasses.replace(self.status, back_off=ledger.NO_BACK_OFF))
        self.shuns.clear()

    def avoids(self, drop: model.Drop, now: int) -> None:
        if drop.avoid:
            self.note(starts.avoiding(self.status, drop.avoid, now, until=drop.avoid_until))
            self.shuns |= dict.fromkeys(drop.avoid, drop.avoid_until)

    def seen(self, now: int) -> model.Job:
        parts = tuple(
            model.Assigned(0, "p", part.node, part.bound, part.held)
            for part in self.parts
            if part.bound or part.held
        )
        known = self.status.back_off
        avoid = known.avoid if now < starts.avoided_until(known) else ()
        return dataclasses.replace(self.job, assigned=parts, avoid=avoid)
