"""Keeps a DeadlineJob for each labelled job: made from its label and annotations, and kept in step with them.

Beside it: looks up jobs that DeadlineJobs refer to and the owners above labelled ones, and tells users what
is wrong with their labels and annotations. It is level-based like the rest: whatever it wrote or failed to
write, it looks again at what the API shows. Names are derived from the Job, so that a lost reply or a second
operator meets the DeadlineJob that is there already.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from lstqueue.api import annotations as asked
from lstqueue.api import names, times
from lstqueue.jobs import existing, kinds, owners
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import events, guard, ledger, units
from lstqueue.operator import settings as all_settings

Object = dict[str, Any]

_AT_ONCE = 8
"""Jobs that are looked after at the same time."""
_REFUSED = 5 * 60_000
"""Ms after which what the API server would not have is tried again."""
LONGEST_NAME = 63
LEFT_RUNNING = (
    "runs outside of any queue, and its pods, whose template keeps the scheduling gate of an earlier run, "
    "are let go where they will; suspend it to have it queued again where a queue takes it"
)
"""What is told of a Job that is left alone."""
ENDED = (
    "was ended by lstqueue ({}) and is not queued again, though its DeadlineJob is gone; remove its "
    "annotation lstqueue.dev/ended, or resume it, to have it queued anew"
)
"""What is told of a Job that was suspended for good."""
KEPT_BY = (
    "is being deleted, and its finalizer {} keeps it: nothing stops its pods, and lstqueue counts on their "
    "room only when they have ended; have whoever set the finalizer remove it"
)
"""What is told of a Job that is deleted and stays."""
KEPT = 7 * 86_400
"""Seconds for which the DeadlineJob of a Job that has ended is kept."""

_RESOURCES = {
    one.kind: one for one in (port.CRON_JOBS, *(adapter.RESOURCE for adapter in kinds.ADAPTERS.values()))
}
"""What is read by its name, by kind: jobs that are referred to, and owners of jobs."""

_LOG = logging.getLogger(__name__)


class Keeper:
    """Works in a task of its own; its writes wait for nobody's and nobody's wait for them."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        told: events.Recorder,
        *,
        now: Callable[[], int],
        settings: all_settings.Settings,
    ) -> None:
        self._api = api
        self.guard = cache.guard
        self._cache = cache
        self._units = cache.units
        self._told = told
        self._now = now
        self._settings = settings
        self._name_failures: dict[units.Name, tuple[int, int]] = {}
        self._cron_jobs_told: set[str] = set()

    async def run(self) -> None:
        """Look after Jobs until cancelled."""
        while True:
            wait = await self._round()
            try:
                async with asyncio.timeout(wait):
                    await self._units.touches.wait()
            except TimeoutError:
                continue

    async def _round(self) -> float | None:
        """Look at what was touched; return the seconds until something is due again, None for never."""
        self._units.touches.clear()
        now, later = self._now(), []
        sought = sorted(self._units.unseen)
        for gone in self._name_failures.keys() - self._units.unseen:
            del self._name_failures[gone]
        for start in range(0, len(sought), _AT_ONCE):
            looked_up = (self._look_up(name, now) for name in sought[start : start + _AT_ONCE])
            later += [at for at in await asyncio.gather(*looked_up) if at]
        due = []
        for uid in sorted(self._units.touched):
            entry = self._units.entries.get(uid)
            if entry is not None and entry.retry_at > now:
                later.append(entry.retry_at)
                continue
            self._units.touched.discard(uid)
            if entry is not None:
                due.append(entry)
        for start in range(0, len(due), _AT_ONCE):
            found = await asyncio.gather(*(self._keep(entry) for entry in due[start : start + _AT_ONCE]))
            later += [at for at in found if at]
        return (min(later) - now) / 1000 if later else None

    async def _look_up(self, name: units.Name, now: int) -> int:
        """Look up a Job that a DeadlineJob refers to: its watch may have shown it before that came.

        Returns when (ms) it has to be tried again, 0 for not.
        """
        failures, retry_at = self._name_failures.get(name, (0, 0))
        if now < retry_at <= now + _REFUSED:
            return retry_at
        kind, namespace, called = name
        try:
            raw = await self._api.get(_RESOURCES[kind], namespace, called)
        except port.NotFoundError:
            self._name_failures.pop(name, None)
            self._units.missing(name)
            return 0
        except port.ApiError as error:
            at = now + self._pause(failures, error)
            self._name_failures[name] = (failures + 1, at)
            return at
        self._name_failures.pop(name, None)
        self._cache.apply_unit(kind, raw)
        # A child of ours is nobody's to refer to.
        self._units.missing(name)
        return 0

    async def _keep(self, entry: units.Entry) -> int:
        """Look after one Job; return when (ms) it has to be tried again, 0 for not."""
        try:
            await self._cache.guard.calls(entry.view.kind, entry.view.key, lambda: self._attend(entry))
        except port.ApiError as error:
            if isinstance(error, guard.DefectError):
                self._tell(entry, guard.CODE, guard.words(error.message))
            _LOG.warning("looking after %s did not go through: %s", entry.view.named, error)
            entry.retry_at = self._now() + self._pause(entry.failures, error)
            entry.failures += 1
            self._units.touched.add(entry.view.uid)
            return entry.retry_at
        entry.failures = 0
        return 0

    def _pause(self, failures: int, error: port.ApiError) -> int:
        if isinstance(error, port.InvalidError):
            # Somebody has to change something: the Job, which is noticed at once, or a policy, which is not.
            return _REFUSED
        wait = self._settings.retry_first * 2 ** min(failures, 16)
        return int(1000 * min(max(wait, error.retry_after or 0.0), self._settings.retry_most))

    # One Job

    async def _attend(self, entry: units.Entry) -> None:
        """Do what a labelled Job needs: its place, its DeadlineJob, and the words its user needs."""
        self._tell_stops(entry)
        if entry.view.stays and not (entry.view.suspended or entry.view.over):
            self._tell(entry, "KeptByFinalizer", KEPT_BY.format(entry.view.kept_by))
        if entry.let_go:
            self._tell(entry, units.LEFT_RUNNING, LEFT_RUNNING)
        if not entry.labelled or entry.view.over or entry.view.deleting:
            return
        found = entry.place
        if found is None:
            found = await self._walk(entry)
        if found.ours:
            return
        kept = self._units.ledgers_of(entry)
        if entry.view.manager:
            self._tell(entry, "OtherManager", self._other_manager(entry.view))
            return
        reason, words = self._units.misplaced(entry)
        if reason and not (reason == "SharedOwner" and kept):
            self._tell(entry, reason, words)
        if reason in ("UnsupportedOwner", "LabelIgnored"):
            return
        labels = {names.LABEL_QUEUE: entry.view.queue or ""}
        reading = asked.read(labels, dict(entry.view.annotations))
        self._tell_problems(entry, reading)
        if entry.view.queue and "queue" not in reading.spec:
            return
        await self._provide(entry, kept, reading)

    async def _provide(self, entry: units.Entry, kept: list[ledger.Ledger], reading: asked.Reading) -> None:
        """Have a DeadlineJob speak for a Job, as its annotations say; where it was ended there is none."""
        view = entry.view
        ended = view.annotation("ended")
        if ended and not kept and view.suspended:
            self._tell(entry, "Ended", ENDED.format(ended[: asked.LONGEST]))
            return
        ours = next((job for job in kept if job.unit_uid == view.uid), None)
        if ours is not None:
            await self._follow(entry, ours, reading)
        elif not any(not job.final or job.status.unit == view.uid for job in kept):
            await self._create(entry, reading)

    def _other_manager(self, view: existing.UnitView) -> str:
        return (
            f"has the label {names.LABEL_QUEUE} and is managed by {view.manager}; lstqueue leaves it alone. "
            "Keep one of the two"
        )

    async def _walk(self, entry: units.Entry) -> owners.Found:
        """Read the owners above a Job until it is clear which unit it belongs to."""
        while True:
            found = owners.walk(entry.view.owner, self._units.known_owners)
            if found.ask is None:
                self._units.place(entry, found)
                return found
            owner = found.ask
            raw: Object | None
            try:
                raw = await self._api.get(_RESOURCES[owner.kind], entry.view.namespace, owner.name)
            except port.NotFoundError:
                raw = None
            self._units.learn_owner(owner.uid, owners.read(owner, raw))

    async def _create(self, entry: units.Entry, reading: asked.Reading) -> None:
        view = entry.view
        for name in names_for(view):
            try:
                body = manifest(view, reading, name=name)
                raw = await self._api.create(port.DEADLINE_JOBS, view.namespace, body)
            except port.ConflictError:
                raw = await self._api.get(port.DEADLINE_JOBS, view.namespace, name)
            except (port.InvalidError, port.ForbiddenError) as error:
                self._tell(entry, "NotQueued", error.message)
                raise
            if (raw["metadata"].get("labels") or {}).get(names.LABEL_UNIT_UID) == view.uid:
                self._cache.apply_ledger("ADDED", raw)
                return
        words = f"DeadlineJob {name} exists and is not for this {view.kind}; delete it, and that is queued"
        self._tell(entry, "NameTaken", words)
        raise port.ConflictError(409, "NameTaken", words)

    async def _follow(self, entry: units.Entry, job: ledger.Ledger, reading: asked.Reading) -> None:
        """Let edits of the annotations follow into the spec of a DeadlineJob that is not over.

        Some may only be made while it holds no room; those follow when it has given that back.
        """
        if job.final or job.deleting:
            return
        body = difference(job, reading)
        if not body:
            return
        try:
            raw = await self._api.patch(port.DEADLINE_JOBS, job.namespace, job.name, body)
        except port.InvalidError as error:
            self._tell(entry, "EditRefused", error.message)
            raise
        entry.told.pop("EditRefused", None)
        self._cache.apply_ledger("MODIFIED", raw)

    # What users are told

    def _tell_stops(self, entry: units.Entry) -> None:
        """Tell that a Job was suspended though nobody asked for it, unless we have given that up."""
        if not entry.disputed and entry.stops and entry.stops[-1] > entry.told_until:
            entry.told_until = entry.stops[-1]
            reason = "SuspendedOnSight"
            words = "ran without an admission and was suspended; it is resumed when its turn comes"
            kept = self._units.ledgers_of(entry)
            if kept and all(job.final for job in kept):
                reason, words = "Ended", f"is over for its DeadlineJob {kept[0].name}, and stays suspended"
            self._told.tell(events.Note(_subject(entry.view), reason, words, warning=True))

    def _tell_problems(self, entry: units.Entry, reading: asked.Reading) -> None:
        for reason, problems in (("BadAnnotations", reading.problems), ("UnknownAnnotation", reading.unread)):
            if problems:
                self._tell(entry, reason, ". ".join(str(problem) for problem in problems))
            else:
                entry.told.pop(reason, None)

    def _tell(self, entry: units.Entry, reason: str, words: str) -> None:
        """Warn the user of a Job, once for as long as it reads the same, by whatever process."""
        if entry.told.get(reason) == words:
            return
        entry.told[reason] = words
        self._told.tell(events.Note(_subject(entry.view), reason, words, warning=True, once=True))

    @guard.one("CronJob")
    def saw_cron_job(self, event: str, raw: Mapping[str, Any]) -> None:
        """Tell the user of a CronJob, once, that the label belongs into the template of its Jobs."""
        meta = raw["metadata"]
        inner = ((raw.get("spec") or {}).get("jobTemplate") or {}).get("metadata") or {}
        labelled = event != "DELETED" and names.LABEL_QUEUE in (meta.get("labels") or {})
        if not labelled or names.LABEL_QUEUE in (inner.get("labels") or {}):
            self._cron_jobs_told.discard(meta["uid"])
            return
        if meta["uid"] in self._cron_jobs_told:
            return
        self._cron_jobs_told.add(meta["uid"])
        subject = events.Subject("batch/v1", "CronJob", meta["namespace"], meta["name"], meta["uid"])
        words = (
            f"the label {names.LABEL_QUEUE} on a CronJob does nothing; put it, and the annotations, into "
            "spec.jobTemplate.metadata, and set spec.jobTemplate.spec.suspend to true"
        )
        self._told.tell(events.Note(subject, "LabelMisplaced", words, warning=True, once=True))


def _subject(view: existing.UnitView) -> events.Subject:
    return events.Subject(view.api_version, view.kind, view.namespace, view.name, view.uid)


def names_for(view: existing.UnitView) -> tuple[str, ...]:
    """Return the names that the DeadlineJob of a labelled job may have, to be tried in this order.

    The second is for Jobs whose name is long, and for where somebody else has the first.
    """
    name = f"{view.kind.lower()}-{view.name}-{view.uid[:6]}"
    digest = hashlib.sha256(f"{view.name}/{view.uid}".encode()).hexdigest()[:10]
    hashed = f"{name[: LONGEST_NAME - 11].rstrip('-.')}-{digest}"
    return (name, hashed) if len(name) <= LONGEST_NAME else (hashed,)


def manifest(view: existing.UnitView, reading: asked.Reading, *, name: str) -> Object:
    """Return the DeadlineJob for a labelled Job. It has no owner: it outlives its Job, to tell its end."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "DeadlineJob",
        "metadata": {
            "name": name,
            "namespace": view.namespace,
            "labels": {names.LABEL_LEDGER: "true", names.LABEL_UNIT_UID: view.uid},
            "annotations": {
                names.ANNOTATION_UNIT_CREATED: times.format(view.created),
                names.ANNOTATION_FIELDS: ",".join(sorted(reading.spec)),
            },
        },
        "spec": {
            **reading.spec,
            "ttlSecondsAfterFinished": KEPT,
            "jobRef": {"apiVersion": view.api_version, "kind": view.kind, "name": view.name},
        },
    }


def difference(job: ledger.Ledger, reading: asked.Reading) -> Object:
    """Return the conditional patch that makes a DeadlineJob say what the Job's annotations say, or {}.

    Only what came from annotations is taken back with them: the rest of its spec is its user's. While it
    holds room its queue may not change; that follows when it has given the room back, and holds up nothing.
    """
    held = job.status.admission is not None or job.status.claim is not None
    frozen = {"queue"} if held else set()
    asked_for = {key: value for key, value in reading.spec.items() if key not in frozen}
    had = set(job.from_annotations)
    fields = asked_for.keys() | (had & frozen)
    changed: Object = {key: None for key in sorted(had - fields) if key in job.written}
    for key, value in asked_for.items():
        before = job.written.get(key)
        if before == value:
            continue
        changed[key] = value
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            changed[key] = {**dict.fromkeys(before.keys() - value.keys()), **value}
    if not changed and had == fields:
        return {}
    return {
        "metadata": {
            "resourceVersion": str(job.version),
            "annotations": {names.ANNOTATION_FIELDS: ",".join(sorted(fields))},
        },
        "spec": changed,
    }
