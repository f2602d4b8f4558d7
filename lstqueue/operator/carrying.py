"""What a plan asks for, written: who leaves, who claims, who is admitted, whose room is kept, who is told.

It submits writes and decides nothing. What it cannot write now (something more urgent is under way, or the
outcome of an earlier write is in doubt) it leaves: the next pass says it again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection

from lstqueue.engine import model
from lstqueue.operator import cache as caches
from lstqueue.operator import commits, holding, ledger, records, returns, setbacks, snapshots, writer

Phase = ledger.Phase

Attempt = Callable[[caches.Record, int, Callable[[], None]], None]
"""Does something for one job at a time (ms), so that an error of ours keeps nobody else from anything."""


class Carrier:
    """Carries out plans. `attempt` guards each job's part."""

    def __init__(
        self,
        cache: caches.Cache,
        writes: writer.Writer,
        committing: commits.Commits,
        returning: returns.Returns,
        attempt: Attempt,
    ) -> None:
        self._cache = cache
        self._writer = writes
        self._commits = committing
        self._returns = returning
        self._attempt = attempt

    def carry_out(self, plan: model.Plan, snapshot: model.Snapshot) -> None:
        """Write what the plan of this snapshot says."""
        updates = {update.uid: update for update in plan.updates}
        promises = _promises(plan)
        self._confirm(snapshot, plan.now, updates.keys())
        self._make_room(plan)
        returned = self._returns.write(plan, updates, lambda record, do: self._attempt(record, plan.now, do))
        given: list[model.Claiming | model.Admission] = [*plan.claim, *plan.admit]
        for chosen in given:
            if chosen.uid in returned:
                continue
            record = self._cache.records[chosen.uid]
            update = updates.pop(chosen.uid, None)
            if update is not None and _turned_down(record, update):
                updates[chosen.uid] = update
            elif self._may_write(record, plan.now, but=writer.Urgency.STEP):
                promised = promises.pop(chosen.uid, None)
                do = functools.partial(self._grant, record, chosen, update, promised)
                self._attempt(record, plan.now, do)
        self._keep_room(plan, updates, promises, returned)
        for uid, update in updates.items():
            record = self._cache.records[uid]
            # A more urgent write must not be replaced; the next pass says this again.
            if not self._writer.busy(uid) and self._may_write(record, plan.now, but=writer.Urgency.COMMIT):
                record.told_at = plan.now
                promised = promises.pop(uid, None)
                do = functools.partial(self._commits.report, record, update, promised)
                self._attempt(record, plan.now, do)
        for uid, promised in promises.items():
            record = self._cache.records[uid]
            if not self._writer.busy(uid) and self._may_write(record, plan.now, but=writer.Urgency.COMMIT):
                self._attempt(record, plan.now, functools.partial(self._commits.promise, record, promised))

    def _keep_room(
        self,
        plan: model.Plan,
        updates: dict[str, model.Update],
        promises: dict[str, records.Promised],
        returned: Collection[str],
    ) -> None:
        """Write whose room is kept from now on, and whose no more; what is to be told goes with it."""
        wanted: dict[str, tuple[model.Reservation | None, str]] = {
            lost.uid: (None, lost.why) for lost in plan.unreserve
        }
        wanted |= {made.uid: (made.reservation, "") for made in plan.reserve}
        for uid, (kept, why) in wanted.items():
            record = self._cache.records[uid]
            free = not self._writer.busy(uid) and self._may_write(record, plan.now, but=writer.Urgency.COMMIT)
            if uid in returned or not free:
                continue  # the next pass says this again
            update = updates.get(uid)
            if update is not None and _turned_down(record, update):
                continue
            updates.pop(uid, None)
            if update is not None:
                record.told_at = plan.now
            promised = promises.pop(uid, None)
            do = functools.partial(self._commits.reserve, record, kept, update, promised, why=why)
            self._attempt(record, plan.now, do)

    def _grant(
        self,
        record: caches.Record,
        chosen: model.Claiming | model.Admission,
        update: model.Update | None,
        promised: records.Promised | None,
    ) -> None:
        if not self._affords(record):
            return
        if isinstance(chosen, model.Claiming):
            self._commits.claim(record, chosen, update, promised)
        else:
            self._commits.admit(record, chosen, update, promised)

    def _confirm(self, snapshot: model.Snapshot, now: int, updated: Collection[str]) -> None:
        """Note whose old words the pass has found to hold still."""
        if not snapshot.restate:
            return
        for job in snapshot.jobs:
            if job.uid in snapshot.restate and job.uid not in updated:
                self._cache.records[job.uid].told_at = now

    def _make_room(self, plan: model.Plan) -> None:
        """Suspend who has to make room, and give up claims; the next pass says again what was not done."""
        drops = {drop.uid: drop for drop in plan.drop}
        for uid in sorted({suspend.for_uid for suspend in plan.suspend} & self._cache.records.keys()):
            if why := self._forfeited(self._cache.records[uid]):
                drops[uid] = model.Drop(uid, why)
        for suspend in plan.suspend:
            record = self._cache.records[suspend.uid]
            # What is under way may be this very suspension.
            free = suspend.for_uid not in drops and not self._writer.busy(suspend.uid)
            free = free and not snapshots.stays(record)
            if free and self._may_write(record, plan.now, but=writer.Urgency.STEP):
                self._attempt(record, plan.now, functools.partial(self._commits.suspend, record, suspend))
        for drop in drops.values():
            record = self._cache.records[drop.uid]
            if self._may_write(record, plan.now, but=writer.Urgency.STEP):
                self._attempt(record, plan.now, functools.partial(self._commits.drop, record, drop))

    def _forfeited(self, record: caches.Record) -> str:
        """Say why a job may not keep its claim, for which somebody was to be suspended, "" where it may."""
        if record.ledger.status.phase is not Phase.CLAIMING:
            return ""
        return holding.forfeited(record, self._cache) or self._cache.allowances.take(record)

    def _affords(self, record: caches.Record) -> bool:
        """Whether the quotas of its namespace take a gang beside what the same pass has admitted before it.

        One that they do not take is held back from the next pass on; a claim on room is of no use to it.
        """
        short = holding.forfeited(record, self._cache) or self._cache.allowances.take(record)
        if short and record.ledger.status.phase is Phase.CLAIMING:
            self._commits.drop(record, model.Drop(record.ledger.uid, short))
        elif short:
            self._cache.touch(record.ledger.uid)
        return not short

    def _may_write(self, record: caches.Record, now: int, *, but: writer.Urgency) -> bool:
        """Whether a decision may be written now: nothing as urgent as `but` waits, nothing is in doubt."""
        waiting = self._writer.pending(record.ledger.uid)
        words = but is writer.Urgency.COMMIT and setbacks.may_tell(record, now)
        if record.doubtful or (record.retry_at > now and not words):
            return False
        return waiting is None or waiting > but


def _promises(plan: model.Plan) -> dict[str, records.Promised]:
    """What every job is promised from now on, where that is new; written with what else there is to write."""
    lost = {one.uid: records.Promised(None, records.CAUSES[one.cause], one.why) for one in plan.revoke}
    return lost | {made.uid: records.Promised(made.slot) for made in plan.promise}


def _turned_down(record: caches.Record, update: model.Update) -> bool:
    """Whether its user does not want it to run in vain: the verdict is told first, and then acted upon."""
    spec = record.ledger.spec
    if update.verdict is None or spec is None or spec.on_infeasible == "Queue":
        return False
    return update.verdict.level is model.Level.IMPOSSIBLE and not record.ledger.status.attempt
