"""Turns steps and plans into writes, each conditional on the very state it was decided for.

The bodies of status writes are built when their turn comes, from the ledger entry as it is then; a guard
drops what no longer applies, and whatever was dropped is decided anew. Replies go into the cache at once, so
that the next pass does not wait for the watch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from lstqueue.engine import model
from lstqueue.jobs import inline
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import intake, ledger, lifecycle, statuses, writer

Urgency = writer.Urgency
Phase = ledger.Phase
Make = Callable[[ledger.Ledger], "Said | None"]


class Said:
    """A status to write and the words that go with it."""

    __slots__ = ("message", "status", "why", "words")

    def __init__(
        self, status: ledger.Status, why: str, message: str = "", words: statuses.Words | None = None
    ) -> None:
        self.status = status
        self.why = why
        self.message = message
        self.words = words


class Actions:
    """Submits writes. `retry` is called with (uid, error) when one failed, `wrote` with (before, after)."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        write: writer.Writer,
        *,
        now: Callable[[], int],
        retry: Callable[[str, port.ApiError], None],
        wrote: Callable[[ledger.Ledger, ledger.Ledger], None],
    ) -> None:
        self._api = api
        self._cache = cache
        self._writer = write
        self._now = now
        self._retry = retry
        self._wrote = wrote

    # Status

    def status(self, record: caches.Record, make: Make, urgency: Urgency) -> None:
        """Write a status; `make` gets the ledger entry when its turn comes and may return None."""
        uid = record.ledger.uid

        async def run() -> None:
            job = record.ledger
            said = make(job)
            body = self._body(job, said) if said is not None else {}
            if not body:
                record.assumed, record.said = None, None
                record.engine_job = None
                return
            raw = await self._api.patch_status(port.DEADLINE_JOBS, job.namespace, job.name, body)
            self._cache.apply_ledger("MODIFIED", raw)
            record.assumed, record.said = None, None
            record.engine_job = None
            self._wrote(job, record.ledger)

        self._submit(urgency, uid, run)

    def _body(self, job: ledger.Ledger, said: Said) -> dict[str, Any]:
        now = self._now()
        status = replace(said.status, observed=job.generation)
        word = _word(said.why)
        if status.phase is not job.status.phase:
            status = statuses.with_run(job.status, status, end=status.completed or now, reason=word)
        status = statuses.with_conditions(job, status, now=now, why=word, message=said.message)
        return statuses.patch(job, status, words=said.words)

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
            record.assumed, record.said = None, None
            record.engine_job = None

        self._submit(Urgency.COMMIT, job.uid, run)

    # Steps of the lifecycle

    def step(self, record: caches.Record, step: lifecycle.Step) -> None:
        """Carry out what the lifecycle asks for."""
        if step.status is not None:
            self._step_status(record, step.status, step.why)
        elif step.create:
            self._create(record, step.create)
        elif step.ungate:
            self._ungate(record, step)
        elif step.discard:
            self._discard(record, step)
        else:
            self._switch(record, step)

    def _step_status(self, record: caches.Record, status: ledger.Status, why: str) -> None:
        version = record.ledger.version
        record.said = status.published

        def make(job: ledger.Ledger) -> Said | None:
            if job.version != version:
                return None
            shown = replace(status, published=job.status.published)
            if shown.phase is not Phase.PENDING:
                shown = replace(shown, published=replace(shown.published, code=None), held="")
            return Said(shown, why, message=why if " " in why else "")

        self.status(record, make, Urgency.RELEASE)

    def _create(self, record: caches.Record, wanted: tuple[tuple[str, int], ...]) -> None:
        job, gang, templates = record.ledger, record.ledger.gang(), record.templates

        async def run() -> None:
            if gang.service:
                await self._create_owned(port.SERVICES, job, inline.service(gang))
            for group, restart in wanted:
                body = inline.job(gang, group, restart, templates[group])
                raw = await self._create_owned(port.JOBS, job, body)
                self._cache.apply_child("ADDED", raw)

        self._submit(Urgency.COMMIT, job.uid, run)

    async def _create_owned(
        self, resource: port.Resource, job: ledger.Ledger, body: port.Object
    ) -> port.Object:
        """Create a child, or find that an earlier try of ours had; raises ForbiddenError for a taken name."""
        name = body["metadata"]["name"]
        try:
            return await self._api.create(resource, job.namespace, body)
        except port.ConflictError:
            raw = await self._api.get(resource, job.namespace, name)
        if inline.owned_by(raw, job.uid):
            return raw
        raise port.ForbiddenError(
            403,
            "NameTaken",
            f"{resource.kind} {job.namespace}/{name} exists and is not of this DeadlineJob; "
            "rename or delete it",
        )

    def _ungate(self, record: caches.Record, step: lifecycle.Step) -> None:
        job, admission = record.ledger, record.ledger.status.admission
        assert admission is not None
        queue = self._cache.queues.get(admission.queue)

        async def run() -> None:
            for pod, pool, node, rank in step.ungate:
                body = inline.ungate(
                    pod,
                    node=node,
                    rank=rank,
                    attempt=job.status.attempt,
                    charge=f"{admission.queue}/{pool}",
                    tolerations=queue.pool_tolerations(pool) if queue else (),
                )
                raw = await self._api.patch(port.PODS, pod.namespace, pod.name, body)
                self._cache.apply_pod("MODIFIED", raw)
            record.ungated_at = self._now()

        self._submit(Urgency.RELEASE, job.uid, run)

    def _switch(self, record: caches.Record, step: lifecycle.Step) -> None:
        async def run() -> None:
            for child in (*step.suspend, *step.resume):
                body = inline.suspend(child, value=child in step.suspend)
                raw = await self._api.patch(port.JOBS, child.namespace, child.name, body)
                self._cache.apply_child("MODIFIED", raw)

        self._submit(Urgency.RELEASE, record.ledger.uid, run)

    def _discard(self, record: caches.Record, step: lifecycle.Step) -> None:
        async def run() -> None:
            for child in step.discard:
                try:
                    await self._api.delete(port.JOBS, child.namespace, child.name, uid=child.uid)
                except port.NotFoundError:
                    continue

        self._submit(Urgency.COMMIT, record.ledger.uid, run)

    def ask(
        self,
        record: caches.Record,
        asked: intake.Intake,
        answered: Callable[[caches.Record, intake.Answer], None],
    ) -> None:
        """Have the API server say what it makes of a gang's pods."""
        job, templates = record.ledger, record.templates
        assert job.spec is not None
        shape = job.spec.shape

        async def run() -> None:
            answered(record, await asked.ask(job.gang(), shape, templates))

        self._submit(Urgency.COMMIT, job.uid, run)

    # Decisions of a pass

    def admit(self, record: caches.Record, admission: model.Admission, update: model.Update | None) -> None:
        """Commit an admission: one conditional status write, before anything else happens for the gang."""
        job = record.ledger
        assert job.spec is not None
        placed = place(job, admission, at=self._now())
        shape, groups, words = job.spec.shape, record.shapes or (), self._words(record, update)
        record.assumed = placed
        record.engine_job = None
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

        record.said = published_by(update) if update else record.said
        self.status(record, make, Urgency.COMMIT)

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

        record.said = published_by(update)
        self.status(record, make, Urgency.REPORT)

    def reject(self, record: caches.Record, *, reason: str, message: str) -> None:
        """End a job that only a new object could mend."""

        def make(seen: ledger.Ledger) -> Said | None:
            if seen.final or seen.status.admission is not None:
                return None
            status = replace(seen.status, phase=Phase.REJECTED, completed=self._now())
            return Said(status, reason, message=message)

        self.status(record, make, Urgency.COMMIT)

    def _words(self, record: caches.Record, update: model.Update | None) -> statuses.Words:
        estimate = record.engine_job.estimate if record.engine_job else None
        user = record.ledger.spec is not None and record.ledger.spec.estimate is not None
        return statuses.Words(
            pending=update.message if update else "",
            estimate=estimate,
            source="User" if user else "QueueDefault",
        )

    def _submit(self, urgency: Urgency, uid: str, run: Callable[[], Awaitable[None]]) -> None:
        self._writer.submit(
            urgency,
            uid,
            run,
            done=lambda: self._cache.touch(uid),
            failed=lambda error: self._retry(uid, error),
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


def _word(why: str) -> str:
    """Return a condition's reason, which must be one word: the first where `why` is a sentence."""
    return why if why.isalnum() else "MemberFailed"
