"""Writes of a DeadlineJob's status: the commit of an admission, the steps of its life, what the user is told.

The body of a write is built when its turn comes, from the ledger entry as it is then; a guard drops what no
longer applies, and whatever was dropped is decided anew. Replies go into the cache at once, so that the next
pass does not wait for the watch. Until the fate of a write is known, the cache counts it as done: the room of
an admission on its way is nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lstqueue.engine import model
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger, outbox, statuses

Urgency = outbox.Urgency
Phase = ledger.Phase
Make = Callable[[ledger.Ledger], "Said | None"]


@dataclass(frozen=True, slots=True)
class Said:
    """A status to write and the words that go with it."""

    status: ledger.Status
    why: str
    message: str = ""
    words: statuses.Words | None = None


class Commits:
    """Submits status writes; `wrote` is called with the ledger entry (before, after) each."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        out: outbox.Outbox,
        *,
        now: Callable[[], int],
        wrote: Callable[[ledger.Ledger, ledger.Ledger], None],
    ) -> None:
        self._api = api
        self._cache = cache
        self._out = out
        self._now = now
        self._wrote = wrote

    def admit(self, record: caches.Record, admission: model.Admission, update: model.Update | None) -> None:
        """Commit an admission: one conditional status write, before anything else happens for the gang."""
        job = record.ledger
        assert job.spec is not None
        placed = place(job, admission, at=self._now())
        shape, groups, words = job.spec.shape, record.shapes or (), self._words(record, update)
        record.ungated_at = 0

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.deleting or seen.spec is None or seen.spec.shape != shape:
                return None
            if seen.status.phase is not Phase.PENDING or seen.spec.queue != placed.queue:
                return None
            published = published_by(update) if update else seen.status.published
            status = replace(
                seen.status,
                phase=Phase.ADMITTED,
                admission=placed,
                attempt=seen.status.attempt + 1,
                gang=statuses.gang_text(groups),
                published=replace(published, code=None),
                held="",
            )
            return Said(status, "Admitted", words=words)

        said = published_by(update) if update else job.status.published
        self._submit(record, make, Urgency.COMMIT, said=said, assumed=placed)

    def step(self, record: caches.Record, status: ledger.Status, why: str) -> None:
        """Write what the lifecycle asks for, if nothing has changed since it did."""
        version = record.ledger.version

        def make(job: ledger.Ledger) -> Said | None:
            if job.version != version:
                return None
            shown = replace(status, published=job.status.published)
            if shown.phase is not Phase.PENDING:
                shown = replace(shown, published=replace(shown.published, code=None), held="")
            return Said(shown, why, message=why if " " in why else "")

        # A gang that starts again under its hold claims all of it from now on, whatever its old Jobs count.
        again = status.phase is Phase.ADMITTED and record.ledger.status.phase is Phase.SUSPENDING
        assumed = status.admission if again else None
        self._submit(record, make, Urgency.STEP, said=status.published, assumed=assumed)

    def report(self, record: caches.Record, update: model.Update) -> None:
        """Tell the user what the pass found out about a job."""
        groups, held, words = record.shapes or (), record.held_code, self._words(record, update)

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.final or seen.deleting:
                return None
            status = replace(
                seen.status,
                published=published_by(update),
                held=held if update.code is model.Code.HELD_BACK else "",
                gang=statuses.gang_text(groups) or seen.status.gang,
            )
            why = statuses.code(status) or seen.status.phase.value
            return Said(status, why, message=update.message, words=words)

        self._submit(record, make, Urgency.REPORT, said=published_by(update))

    def reject(self, record: caches.Record, *, reason: str, message: str) -> None:
        """End a job that only a new object could mend."""

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.final or seen.status.admission is not None:
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
            record.assumed, record.said, record.doubtful = None, None, False
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
    ) -> None:
        """Queue a status write. `make` gets the ledger entry when its turn comes and may return None."""
        uid, wrote = record.ledger.uid, False
        record.said, record.engine_job = said, None
        if assumed is not None:
            record.assumed = assumed

        def settle() -> None:
            # Another write may have been submitted meanwhile; what that one assumes is its own.
            if record.said is said:
                record.said = None
            if assumed is not None and record.assumed is assumed:
                record.assumed = None
            record.engine_job = None

        async def run() -> None:
            nonlocal wrote
            job = record.ledger
            asked = make(job)
            body = self._body(job, asked) if asked is not None else {}
            if body:
                try:
                    raw = await self._api.patch_status(port.DEADLINE_JOBS, job.namespace, job.name, body)
                except (port.ForbiddenError, port.InvalidError):
                    settle()
                    raise
                wrote = True
                self._cache.apply_ledger("MODIFIED", raw)
                self._wrote(job, record.ledger)
            settle()

        def done() -> None:
            # Nothing waits for a report that had nothing to say, and saying so again would never end.
            if wrote or urgency is not Urgency.REPORT:
                self._out.went_through(uid)

        self._out.submit(urgency, uid, run, done=done, dropped=settle)

    def _body(self, job: ledger.Ledger, said: Said) -> dict[str, Any]:
        now = self._now()
        # Only what a pass found out about this very spec counts as having observed it.
        judged = said.words is not None or not job.status.observed
        status = replace(said.status, observed=job.generation if judged else job.status.observed)
        # A condition's reason is one word; a sentence goes into its message.
        word = said.why if said.why.isalnum() else status.suspension or "Other"
        if status.phase is not job.status.phase:
            status = statuses.with_run(job.status, status, end=status.completed or now, reason=word)
        status = statuses.with_conditions(job, status, now=now, why=word, message=said.message)
        return statuses.patch(job, status, words=said.words)

    def _words(self, record: caches.Record, update: model.Update | None) -> statuses.Words:
        estimate = record.engine_job.estimate if record.engine_job else None
        user = record.ledger.spec is not None and record.ledger.spec.estimate is not None
        return statuses.Words(
            pending=update.message if update else "",
            estimate=estimate,
            source="User" if user else "QueueDefault",
        )


def published_by(update: model.Update) -> model.Published:
    """Return what a status will publish once an update is written."""
    return model.Published(band=update.band, code=update.code, verdict=update.verdict, slack=update.slack)


def place(job: ledger.Ledger, admission: model.Admission, *, at: int) -> ledger.Admission:
    """Give every rank its node: ranks ascend along the nodes in the order the placement has them."""
    assert job.spec is not None
    groups, rank = [], 0
    for (name, _), placement in zip(job.spec.groups, admission.groups, strict=True):
        nodes = []
        for node, count in placement.nodes:
            nodes.append((node, tuple(range(rank, rank + count))))
            rank += count
        groups.append(ledger.GroupAdmission(name, placement.pool, tuple(nodes)))
    return ledger.Admission(at=at, queue=admission.queue, shape=job.spec.shape, groups=tuple(groups))
