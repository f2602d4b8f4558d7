"""Turns steps of the lifecycle into writes, each conditional on the very state it was decided for.

Statuses are handed to `commits`; here are the writes to child Jobs, Services and pods, and the question to
the API server that comes before all of them. What a write answers is taken in like that of a commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from lstqueue.api import names
from lstqueue.jobs import existing, inline, kinds
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import commits, intake, ledger, outbox, skew, steps, units

Urgency = outbox.Urgency
Cleared = Callable[[ledger.Ledger, existing.UnitView], None]
"""Called when a Job was deleted that its CronJob would have waited for."""
_REMOVAL = 60_000
"""Ms after which a DeadlineJob that was deleted and is still there is deleted again."""


class Actions:
    """Submits the writes of steps."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        out: outbox.Outbox,
        commit: commits.Commits,
        *,
        now: Callable[[], int],
        clock: skew.Skew,
        cleared: Cleared,
    ) -> None:
        self._api = api
        self._cache = cache
        self._out = out
        self._commit = commit
        self._now = now
        self._clock = clock
        self._cleared = cleared

    def step(self, record: caches.Record, step: steps.Step) -> None:
        """Carry out what the lifecycle asks for."""
        if step.status is not None:
            self._commit.step(record, step)
        elif step.create:
            self._create(record, step.create)
        elif step.ungate:
            self._ungate(record, step)
        elif step.discard:
            self._discard(record, step)
        elif step.patches:
            self._patch(record, step)
        elif step.clear is not None:
            self._clear(record, step.clear)
        elif step.pause:
            self._pause(record)
        elif step.remove:
            self._remove(record)
        else:
            self._switch(record, step)

    def ask(
        self,
        record: caches.Record,
        asked: intake.Intake,
        answered: Callable[[caches.Record, intake.Answer], None],
    ) -> None:
        """Have the API server say what it makes of a gang's pods."""
        job, templates = record.ledger, record.templates
        assert job.spec is not None
        shape, ref = job.spec.shape, job.spec.ref
        adapter = None if ref is None else kinds.named(ref.api_version, ref.kind)

        async def run() -> None:
            answer = await asked.ask(job.gang(), shape, templates, adapter=adapter)
            spec = record.ledger.spec
            # The template of an existing Job may be edited while it is suspended: then it is asked anew.
            if spec is not None and spec.shape == shape:
                answered(record, answer)

        self._out.submit(Urgency.COMMIT, job.uid, run, done=lambda: self._cache.touch(job.uid))

    def _create(self, record: caches.Record, wanted: tuple[tuple[str, int], ...]) -> None:
        job, gang, templates = record.ledger, record.ledger.gang(), record.templates

        async def run() -> None:
            if gang.service:
                await self._create_owned(port.SERVICES, job, inline.service(gang))
            for group, restart in wanted:
                body = inline.job(gang, group, restart, templates[group])
                raw = await self._create_owned(port.JOBS, job, body)
                self._cache.apply_child("ADDED", raw)

        self._out.submit(Urgency.COMMIT, job.uid, run, start=True)

    def look_for_lost(self, record: caches.Record) -> None:
        """Look by name for children that left the watch: one that only lost our label still runs."""
        job, lost = record.ledger, tuple(record.lost.values())

        async def run() -> None:
            for child in lost:
                try:
                    raw = await self._api.get(port.JOBS, child.namespace, child.name)
                except port.NotFoundError:
                    record.lost.pop(child.uid, None)
                    continue
                if raw["metadata"]["uid"] == child.uid and inline.owning_job(raw) == job.uid:
                    labels = {
                        names.LABEL_JOB: job.uid,
                        names.LABEL_GROUP: child.group,
                        names.LABEL_RESTART: str(child.restart),
                    }
                    raw = await self._relabelled(port.JOBS, raw, {"metadata": {"labels": labels}})
                    self._cache.found_child(raw)
                record.lost.pop(child.uid, None)

        self._out.submit(Urgency.COMMIT, job.uid, run, done=lambda: self._cache.touch(job.uid))

    async def _create_owned(
        self, resource: port.Resource, job: ledger.Ledger, body: port.Object
    ) -> port.Object:
        """Create a child, or find that an earlier try of ours had.

        Raises:
            ForbiddenError: the name is taken, for good as far as anybody can tell.
            ConflictError: what has the name is about to go.
        """
        name = body["metadata"]["name"]
        try:
            return await self._api.create(resource, job.namespace, body)
        except port.ConflictError:
            raw = await self._api.get(resource, job.namespace, name)
        leaving = "deletionTimestamp" in raw["metadata"]
        owner = inline.owning_job(raw)
        if owner == job.uid and not leaving:
            return await self._relabelled(resource, raw, body)
        taken = f"{resource.kind} {job.namespace}/{name} exists and is not of this DeadlineJob"
        # A DeadlineJob of the same name may have been deleted a moment ago.
        if leaving or (owner and owner not in self._cache.records):
            raise port.ConflictError(409, "NameLeaving", f"{taken}; it is about to go")
        raise port.ForbiddenError(403, "NameTaken", f"{taken}; rename or delete it")

    async def _relabelled(self, resource: port.Resource, raw: port.Object, body: port.Object) -> port.Object:
        """Give a child of ours back the labels by which it is found, if somebody took them."""
        labels, found = body["metadata"]["labels"], raw["metadata"].get("labels") or {}
        lost = {key: value for key, value in labels.items() if found.get(key) != value}
        if not lost:
            return raw
        metadata = {"resourceVersion": raw["metadata"]["resourceVersion"], "labels": lost}
        name, namespace = raw["metadata"]["name"], raw["metadata"]["namespace"]
        return await self._api.patch(resource, namespace, name, {"metadata": metadata})

    def _ungate(self, record: caches.Record, step: steps.Step) -> None:
        job, admission = record.ledger, record.ledger.status.admission
        assert admission is not None
        queue = self._cache.queues.get(admission.queue)

        async def run() -> None:
            failed: port.ApiError | None = None
            # Before the first patch: should its reply be lost, a pod may be on its way all the same.
            record.ungated_at = self._now()
            for pod, pool, node, rank in step.ungate:
                body = inline.ungate(
                    pod,
                    node=node,
                    rank=rank,
                    attempt=job.status.attempt,
                    charge=f"{admission.queue}/{pool}",
                    tolerations=queue.pool_tolerations(pool) if queue else (),
                )
                try:
                    raw = await self._api.patch(port.PODS, pod.namespace, pod.name, body)
                except port.ConflictError as error:
                    seen = record.pods.get(pod.uid)
                    if seen is None or seen.deleting:
                        raise  # the gang is not whole any more
                    failed = error
                    continue
                self._cache.apply_pod("MODIFIED", raw)
            record.ungated_at = self._now()
            # One pod that somebody else wrote to must not keep the others of its gang waiting.
            if failed is not None:
                raise failed

        self._out.submit(Urgency.STEP, job.uid, run, start=True)

    def _switch(self, record: caches.Record, step: steps.Step) -> None:
        async def run() -> None:
            for child in (*step.suspend, *step.resume):
                body = inline.suspend(child, value=child in step.suspend)
                raw = await self._api.patch(port.JOBS, child.namespace, child.name, body)
                self._cache.apply_child("MODIFIED", raw)

        self._out.submit(Urgency.STEP, record.ledger.uid, run, start=bool(step.resume))

    def _pause(self, record: caches.Record) -> None:
        """Take a suspension by hand for its user's own pause, where it can be seen and undone."""
        job = record.ledger
        body = {"metadata": {"resourceVersion": str(job.version)}, "spec": {"active": False}}

        async def run() -> None:
            raw = await self._api.patch(port.DEADLINE_JOBS, job.namespace, job.name, body)
            self._cache.apply_ledger("MODIFIED", raw)

        self._out.submit(Urgency.STEP, job.uid, run)

    def _remove(self, record: caches.Record) -> None:
        job = record.ledger

        async def run() -> None:
            await self._clock.check(job.namespace)
            with contextlib.suppress(port.NotFoundError):
                await self._api.delete(
                    port.DEADLINE_JOBS,
                    job.namespace,
                    job.name,
                    uid=job.uid,
                    resource_version=str(job.version),
                )
            # It leaves with its next event: a finalizer may keep it.
            record.retry_at = self._now() + _REMOVAL

        self._out.submit(Urgency.REPORT, job.uid, run)

    def _patch(self, record: caches.Record, step: steps.Step) -> None:
        """Write to an existing job and its pods, one after the other, as long as nobody else does."""

        async def run() -> None:
            for patch in step.patches:
                write = self._api.patch_status if patch.subresource else self._api.patch
                raw = await write(patch.resource, patch.namespace, patch.name, patch.body)
                if (patch.resource.api_version, patch.resource.kind) in kinds.ADAPTERS:
                    self._cache.apply_unit(patch.resource.kind, raw)
                    if step.sudden:
                        self._cache.units.was_suspended(raw["metadata"]["uid"], self._now())
                elif patch.resource == port.PODS:
                    self._cache.apply_pod("MODIFIED", raw)
                    if step.why == units.LEFT_RUNNING and record.unit is not None:
                        self._cache.units.was_let_go(record.unit.uid)
                else:
                    self._cache.apply_ledger("MODIFIED", raw)

        self._out.submit(Urgency.STEP, record.ledger.uid, run, start=step.start)

    def _clear(self, record: caches.Record, view: existing.UnitView) -> None:
        """Delete an existing Job, with all that it made, as it was when that was decided."""
        name = (view.namespace, view.name)

        async def run() -> None:
            try:
                await self._api.delete(port.JOBS, *name, uid=view.uid, resource_version=view.version)
            except port.NotFoundError:
                pass
            except port.ConflictError:
                # Its user may have taken it out of the queue: it is judged anew as it is now.
                with contextlib.suppress(port.NotFoundError):
                    self._cache.apply_job("MODIFIED", await self._api.get(port.JOBS, *name))
                raise
            else:
                self._cleared(record.ledger, view)
            # Should a finalizer keep it, its next event brings it back.
            self._cache.units.was_deleted(view)

        self._out.submit(Urgency.STEP, record.ledger.uid, run)

    def _discard(self, record: caches.Record, step: steps.Step) -> None:
        async def run() -> None:
            for child in step.discard:
                with contextlib.suppress(port.NotFoundError):
                    await self._api.delete(port.JOBS, child.namespace, child.name, uid=child.uid)
                # Should a finalizer keep it, its next event brings it back.
                meta = {"uid": child.uid, "resourceVersion": child.version}
                self._cache.apply_child("DELETED", {"metadata": meta, "spec": {}})

        self._out.submit(Urgency.COMMIT, record.ledger.uid, run)
