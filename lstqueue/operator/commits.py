"""Writes of a DeadlineJob's status: the commit of an admission, the steps of its life, what the user is told.

The body of a write is built when its turn comes, from the ledger entry as it is then; a guard drops what no
longer applies, and whatever was dropped is decided anew. Replies go into the cache at once, so that the next
pass does not wait for the watch. Until the fate of a write is known, the cache counts it as done: the room of
an admission on its way is nobody else's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.engine import model
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import (
    clocks,
    deadlines,
    histories,
    holding,
    ledger,
    occasions,
    outbox,
    records,
    runs,
    skew,
    starts,
    statuses,
    steps,
)

Urgency = outbox.Urgency
Phase = ledger.Phase
Make = Callable[[ledger.Ledger], "Said | None"]


@dataclass(frozen=True, slots=True)
class Said:
    """A status to write and its words; a `timed` one is for good, and true by our clock only.

    With it goes what is `promised` from now on, if that is new.
    """

    status: ledger.Status
    why: str
    message: str = ""
    words: statuses.Words | None = None
    timed: bool = False
    promised: records.Promised | None = None


_TIMED = frozenset({"MaxRunTimeExceeded", "DeadlineMissed", "Infeasible"})
"""Why a job ends when it does for nothing but the time it is."""


class Commits:
    """Submits status writes; `wrote` is called with the ledger entry (before, after) each, and its queue.

    `window` is how long (ms) suspensions for others count.
    """

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        out: outbox.Outbox,
        *,
        now: Callable[[], int],
        clock: skew.Skew,
        window: int,
        wrote: Callable[[ledger.Ledger, ledger.Ledger, str], None],
    ) -> None:
        self._api = api
        self._cache = cache
        self._out = out
        self._now = now
        self._clock = clock
        self._window = window
        self._wrote = wrote

    def admit(
        self,
        record: caches.Record,
        admission: model.Admission,
        update: model.Update | None,
        promised: records.Promised | None = None,
    ) -> None:
        """Commit an admission: one conditional status write, before anything else happens for the gang.

        What it is `promised` by the same plan is written with it.
        """
        job = record.ledger
        assert job.spec is not None
        placed = steps.placed(job, admission, at=self._now(), unit=record.unit.uid if record.unit else "")
        groups, words = record.shapes or (), self._words(record, update)
        record.ungated_at = 0

        def make(seen: ledger.Ledger) -> Said | None:
            if not self._may_take(seen, job, placed.queue):
                return None
            published = published_by(update) if update else seen.status.published
            status = replace(
                seen.status,
                phase=Phase.ADMITTED,
                admission=placed,
                claim=None,
                reservation=None,
                attempt=seen.status.attempt + 1,
                gang=statuses.gang_text(groups),
                published=replace(published, code=None),
                held="",
            )
            return Said(status, "Admitted", words=words, promised=promised)

        said = published_by(update) if update else job.status.published
        self._submit(record, make, Urgency.COMMIT, said=said, assumed=placed, promised=promised)

    def claim(
        self,
        record: caches.Record,
        claiming: model.Claiming,
        update: model.Update | None,
        promised: records.Promised | None = None,
    ) -> None:
        """Commit a claim: nobody is suspended for it before this is written."""
        job = record.ledger
        assert job.spec is not None
        groups, words = record.shapes or (), self._words(record, update)
        claimed = replace(claiming.claim, committed=True)
        before = self._cache.occasions.begin(claiming.queue, self._now()) if claiming.reclaims else None

        def make(seen: ledger.Ledger) -> Said | None:
            if not self._may_take(seen, job, claiming.queue):
                return None
            published = published_by(update) if update else seen.status.published
            status = replace(
                seen.status,
                phase=Phase.CLAIMING,
                claim=claimed,
                reservation=None,
                claim_queue=claiming.queue,
                gang=statuses.gang_text(groups) or seen.status.gang,
                published=replace(published, code=None),
                held="",
            )
            return Said(status, "Claiming", words=words, promised=promised)

        said = published_by(update) if update else job.status.published
        self._submit(
            record, make, Urgency.COMMIT, said=said, claiming=claimed, promised=promised, before=before
        )

    def drop(self, record: caches.Record, drop: model.Drop) -> None:
        """Give up a claim; its owner waits again, and avoids the nodes that did not come free."""

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.status.phase is not Phase.CLAIMING:
                return None
            status = steps.given_back(seen.status)
            if drop.avoid:
                status = starts.avoiding(status, drop.avoid, self._now(), until=drop.avoid_until)
            return Said(status, "ClaimDropped", message=drop.why)

        self._submit(record, make, Urgency.COMMIT, said=record.ledger.status.published)

    def suspend(self, record: caches.Record, wanted: model.Suspend) -> None:
        """Have a gang make room, if it still is in the attempt that was chosen."""

        def make(seen: ledger.Ledger) -> Said | None:
            status, now = seen.status, self._now()
            if status.attempt != wanted.attempt or seen.final or not self._justified(seen, wanted):
                return None
            if status.phase in (Phase.ADMITTED, Phase.RUNNING):
                after = steps.suspended(status, wanted.why.value, now, for_uid=wanted.for_uid)
            elif status.phase is Phase.SUSPENDING and status.admission is not None:
                # It stops already, to begin again in the same place: that place is another's now.
                after = replace(status, admission=None, suspended_for=wanted.for_uid)
            else:
                return None
            return Said(after, wanted.why.value, message=self._for_whom(wanted))

        self._submit(record, make, Urgency.STEP, said=record.ledger.status.published)

    def _justified(self, seen: ledger.Ledger, wanted: model.Suspend) -> bool:
        """Whether the drain or the claim still stands that it is for: otherwise the victim is spared."""
        if wanted.why is model.Why.PROMISED:
            return seen.status.slot is not None
        if not wanted.for_uid:
            emptied = self._cache.queues.get(self._cache.queue_of(seen))
            return emptied is not None and emptied.engine.drained and not emptied.engine.observed
        owner = self._cache.records.get(wanted.for_uid)
        if owner is None or not owner.ledger.may_claim or holding.hindered(owner, self._cache):
            return False
        queue = self._cache.queues.get(self._cache.queue_of(owner.ledger))
        if queue is None or queue.engine.held or queue.engine.observed:
            return False
        claim = owner.ledger.status.claim
        return claim is not None and model.Victim(wanted.uid, wanted.attempt) in claim.victims

    def _for_whom(self, wanted: model.Suspend) -> str:
        if wanted.why is model.Why.PROMISED:
            return "it goes on in the slot that it was promised, or it would not end by its deadline"
        if not wanted.for_uid:
            return "its queue is drained"
        owner = self._cache.records.get(wanted.for_uid)
        return f"makes room for {owner.ledger.key}" if owner else "makes room for another job"

    def _may_take(self, seen: ledger.Ledger, judged: ledger.Ledger, queue: str) -> bool:
        """Whether a decision to give it room in a queue still is about the job that was judged."""
        waits = seen.status.phase in (Phase.PENDING, Phase.CLAIMING)
        same = seen.generation == judged.generation and _shape(seen) == _shape(judged)
        return same and seen.may_claim and waits and self._cache.queue_of(seen) == queue

    def step(self, record: caches.Record, step: steps.Step, update: model.Update | None = None) -> None:
        """Write what the lifecycle asks for, if nothing has changed since it did.

        `update` is what a pass has found out about a gang that returns to the queue, said in the same write.
        """
        assert step.status is not None
        version, status, why = record.ledger.version, step.status, step.why
        words = self._words(record, update) if update is not None else None
        held = self._held(record, update)

        def make(job: ledger.Ledger) -> Said | None:
            if job.version != version:
                return None
            published = job.status.published if update is None else published_by(update)
            shown = replace(status, published=published, held=status.held if update is None else held)
            if shown.phase is not Phase.PENDING:
                shown = replace(shown, published=replace(shown.published, code=None), held="")
            message = step.words or (why if " " in why else "")
            timed = why == deadlines.GIVEN_UP or (shown.phase in ledger.FINAL and why in _TIMED)
            return Said(shown, why, message=message, words=words, timed=timed)

        # A gang that starts again under its hold claims all of it from now on, whatever its old Jobs count.
        again = status.phase is Phase.ADMITTED and record.ledger.status.phase is Phase.SUSPENDING
        assumed = status.admission if again else None
        said = status.published if update is None else published_by(update)
        self._submit(record, make, Urgency.STEP, said=said, assumed=assumed)

    def report(
        self, record: caches.Record, update: model.Update, promised: records.Promised | None = None
    ) -> None:
        """Tell the user what the pass found out about a job, and promise it what there is to promise."""
        groups, words = record.shapes or (), self._words(record, update)
        held, judged = self._held(record, update), record.ledger.generation

        def make(seen: ledger.Ledger) -> Said | None:
            # What was found out about another spec is said of none: the next pass judges this one.
            if seen.final or seen.deleting or seen.generation != judged:
                return None
            status = replace(
                seen.status,
                published=published_by(update),
                held=held,
                gang=statuses.gang_text(groups) or seen.status.gang,
            )
            why = statuses.code(status) or seen.status.phase.value
            return Said(status, why, message=update.message, words=words, promised=promised)

        self._submit(record, make, Urgency.REPORT, said=published_by(update), promised=promised)

    def promise(self, record: caches.Record, promised: records.Promised) -> None:
        """Move or take back a promise of which there is nothing else to tell."""

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.final or seen.deleting:
                return None
            why = statuses.code(seen.status) or seen.status.phase.value
            return Said(seen.status, why, promised=promised)

        said = record.ledger.status.published
        self._submit(record, make, Urgency.REPORT, said=said, promised=promised)

    def reserve(
        self,
        record: caches.Record,
        kept: model.Reservation | None,
        update: model.Update | None,
        promised: records.Promised | None = None,
        *,
        why: str = "",
    ) -> None:
        """Keep room for a job that waits, or none any more (`why`); with what there is to tell, in one write.

        Nobody relies on it before it is written, and nothing else is written for it: whatever is lost or done
        twice on the way, the next pass finds either this reservation or none.
        """
        groups, words = record.shapes or (), self._words(record, update) if update is not None else None
        held, judged = self._held(record, update), record.ledger.generation

        def make(seen: ledger.Ledger) -> Said | None:
            status, waits = seen.status, seen.status.phase is Phase.PENDING
            if seen.final or seen.deleting or not waits or seen.generation != judged:
                return None
            status = replace(status, reservation=kept)
            if update is not None:
                text = statuses.gang_text(groups) or status.gang
                status = replace(status, published=published_by(update), held=held, gang=text)
            message = why if update is None else update.message
            reason = statuses.code(status) or status.phase.value
            return Said(status, reason, message=message, words=words, promised=promised)

        said = published_by(update) if update is not None else record.ledger.status.published
        self._submit(record, make, Urgency.REPORT, said=said, promised=promised)

    def reckon(self, record: caches.Record, estimate: model.Estimate, source: str) -> None:
        """Tell how long a running job is expected to run now; nothing else is new."""
        words = statuses.Words(estimate=estimate, source=source)

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.status.phase is not Phase.RUNNING or seen.status.observed != seen.generation:
                return None
            return Said(seen.status, Phase.RUNNING.value, words=words)

        self._submit(record, make, Urgency.REPORT, said=record.ledger.status.published)

    def _held(self, record: caches.Record, update: model.Update | None) -> str:
        """Return the code of what holds a job back, "" where that is the engine's, or nothing does."""
        waits = update is not None and update.code is model.Code.HELD_BACK
        return holding.back(record, self._cache)[0] if waits else ""

    def reject(self, record: caches.Record, *, reason: str, message: str) -> None:
        """End a job that only a new object could mend."""
        shape = _shape(record.ledger)

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.final or seen.status.admission is not None or _shape(seen) != shape:
                return None
            status = replace(seen.status, phase=Phase.REJECTED, completed=self._now())
            return Said(status, reason, message=message)

        self._submit(record, make, Urgency.COMMIT, said=record.ledger.status.published)

    def reread(self, record: caches.Record) -> None:
        """Read a DeadlineJob whose last write has an unknown outcome or met somebody else's."""
        job = record.ledger

        async def run() -> None:
            try:
                raw = await self._api.get(port.DEADLINE_JOBS, job.namespace, job.name)
            except port.NotFoundError:
                raw = {}
            if not raw or raw["metadata"]["uid"] != job.uid:
                gone = {"metadata": {"uid": job.uid, "resourceVersion": str(job.version)}}
                self._cache.apply_ledger("DELETED", gone)
                return
            self._cache.apply_ledger("MODIFIED", raw)
            record.assumed, record.claiming, record.said, record.doubtful = None, None, None, False
            record.slotted = None
            record.engine_job = None

        # It ends no row of failures: only a write that goes through shows that writes do.
        self._out.submit(Urgency.COMMIT, job.uid, run, done=lambda: self._cache.touch(job.uid))

    def _submit(
        self,
        record: caches.Record,
        make: Make,
        urgency: Urgency,
        *,
        said: model.Published,
        assumed: ledger.Admission | None = None,
        claiming: model.Claim | None = None,
        promised: records.Promised | None = None,
        before: occasions.Write | None = None,
    ) -> None:
        """Queue a status write. `make` gets the ledger entry when its turn comes and may return None."""
        uid, generation, wrote = record.ledger.uid, record.ledger.generation, False
        promised = records.carried(record, promised)
        asked_at = self._now()
        held = records.Assumed(said, assumed, claiming, promised)
        held.put(record)
        settle = functools.partial(held.take_back, record)

        async def run() -> None:
            nonlocal wrote
            job = record.ledger
            asked = make(job)
            if asked is not None and asked.timed:
                asked = await self._timely(record, make, asked_at=asked_at, unsaid=settle)
                job = record.ledger
            if asked is not None and promised is not None and asked.status.phase not in ledger.FINAL:
                asked = replace(asked, promised=promised)
            body = self._body(job, asked) if asked is not None else {}
            if body:
                try:
                    if before is not None:
                        await before(self._api)
                    raw = await self._api.patch_status(port.DEADLINE_JOBS, job.namespace, job.name, body)
                except (port.ForbiddenError, port.InvalidError):
                    settle()
                    raise
                wrote = True
                self._cache.apply_ledger("MODIFIED", raw)
                self._wrote(job, record.ledger, self._cache.queue_of(record.ledger))
            settle()

        def done() -> None:
            # Nothing waits for a report that had nothing to say, and saying so again would never end.
            self._over(record, generation, waited_for=wrote or urgency is not Urgency.REPORT)

        self._out.submit(urgency, uid, run, done=done, dropped=settle)

    async def _timely(
        self, record: caches.Record, make: Make, *, asked_at: int, unsaid: Callable[[], None]
    ) -> Said | None:
        """Return what to write of what our clock brought about at `asked_at` (ms), None where that is past.

        Raises:
            UntimelyError: our clock is not to be believed, and `unsaid` was called.
        """
        try:
            await self._clock.check(record.ledger.namespace)
        except port.ApiError:
            unsaid()
            raise
        # Our clock may have been set right since.
        return None if clocks.beyond(asked_at, self._now()) else make(record.ledger)

    def _over(self, record: caches.Record, judged: int, *, waited_for: bool) -> None:
        """Have a job looked at for which a write was waited for, or whose spec is another than was judged."""
        if waited_for:
            self._out.went_through(record.ledger.uid)
        elif record.ledger.generation != judged:
            self._cache.touch(record.ledger.uid)

    def _body(self, job: ledger.Ledger, said: Said) -> dict[str, Any]:
        now = self._now()
        # Only what a pass found out about this very spec counts as having observed it.
        judged = said.words is not None or not job.status.observed
        status = replace(said.status, observed=job.generation if judged else job.status.observed)
        if said.promised is not None:
            status = replace(status, slot=said.promised.slot)
        if judged and job.generation > job.status.observed:
            # A spec that has changed is judged anew: its deadline, and whether it can start.
            status = replace(status, best_effort=False, back_off=starts.anew(status.back_off, now))
        # Shown beside what is written in any case: the default of a namespace is a label that may change.
        status = replace(status, queue=self._cache.queue_of(job))
        if not job.status.attempt or status.like:
            # Of one that was admitted by somebody who kept none it is not known how long it ran.
            status = replace(status, like=histories.key_of(job) or status.like)
        if not status.unit:
            status = replace(status, unit=self._cache.units.seen_first(job))
        # A condition's reason is one word; a sentence goes into its message.
        word = said.why if said.why.isalnum() else status.suspension or "Other"
        status = runs.ended(
            job.status,
            status,
            spec=self._cache.spec_of(job),
            end=status.completed or now,
            reason=word,
            min_run=self._cache.min_run(job),
            window=self._window,
            words=said.message,
        )
        pending = said.words.pending if said.words is not None else ""
        status = statuses.with_conditions(
            job, status, now=now, why=word, message=said.message, pending=pending, promised=said.promised
        )
        return statuses.patch(job, status, words=said.words)

    def _words(self, record: caches.Record, update: model.Update | None) -> statuses.Words:
        estimate = record.engine_job.estimate if record.engine_job else None
        return statuses.Words(
            pending=update.message if update else "",
            estimate=estimate,
            source=record.source,
        )


def _shape(job: ledger.Ledger) -> str:
    return job.spec.shape if job.spec is not None else ""


def published_by(update: model.Update) -> model.Published:
    """Return what a status will publish once an update is written."""
    return model.Published(band=update.band, code=update.code, verdict=update.verdict, slack=update.slack)
