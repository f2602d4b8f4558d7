"""Existing Jobs that are gone: what was known of each at its end, and whether its CronJob has replaced it.

Who asks is the lifecycle of the DeadlineJob that spoke for a Job. A CronJob that replaces a Job deletes it
and makes the next at once; one that makes none was not the one that deleted it. Nothing here outlives the
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lstqueue.jobs import existing, owners


@dataclass(frozen=True, slots=True)
class Last:
    """What was known of a Job when it went: whether it was `complete`, or was seen to be deleted before that.

    `cron_job` is the one that made it, at `created` (ms), and `replaced` that it has made another since the
    Job was deleted. `noted` (ms) is when anybody first asked for this.
    """

    complete: bool = False
    cut_short: bool = False
    cron_job: owners.Owner | None = None
    created: int = 0
    replaced: bool = False
    noted: int = 0

    @property
    def replaceable(self) -> bool:
        """Whether its CronJob deleted it if it makes another now."""
        return self.cut_short and self.cron_job is not None and not self.replaced


NEVER_SEEN = Last()


class Gone:
    """What is known by the UID of each DeadlineJob; `touch` is called with those that were replaced."""

    def __init__(self, touch: Callable[[str], None]) -> None:
        self._touch = touch
        self._last: dict[str, Last] = {}
        self._left: dict[str, set[str]] = {}

    def went(
        self,
        view: existing.UnitView,
        jobs: Iterable[str],
        *,
        last: existing.UnitView | None,
        since: int,
        others: Iterable[existing.UnitView],
    ) -> None:
        """Note that a Job is gone.

        Args:
            view: the Job as it was known.
            jobs: UIDs of the DeadlineJobs that spoke for it.
            last: as what it was deleted, None where only its absence was seen.
            since: when it was marked as deleted (ms), 0 where it went at once.
            others: the Jobs that are there.
        """
        complete = view.complete or (last is not None and last.complete)
        known = Last(complete, last is not None and not complete, view.cron_job, view.created)
        if since and known.replaceable:
            after = max(since, view.created + 1)
            made = any(one.created >= after for one in others if one.cron_job == view.cron_job)
            known = replace(known, replaced=made)
        for job in jobs:
            self._last[job] = known
            if known.cron_job is not None and known.replaceable:
                self._left.setdefault(known.cron_job.uid, set()).add(job)

    def came(self, view: existing.UnitView) -> None:
        """Note a Job that is there: it replaces those of its CronJob that are gone."""
        left = self._left.get(view.cron_job.uid, set()) if view.cron_job is not None else set()
        for job in [uid for uid in left if self._last[uid].created < view.created]:
            self._release(job)
            self._last[job] = replace(self._last[job], replaced=True)
            self._touch(job)

    def last(self, job: str, now: int) -> Last:
        """Return what was known of the Job of a DeadlineJob, asked at `now` (ms)."""
        known = self._last.get(job, NEVER_SEEN)
        if known.replaceable and not known.noted:
            known = self._last[job] = replace(known, noted=now)
        return known

    def forget(self, job: str) -> None:
        """Note that a DeadlineJob is gone."""
        self._release(job)
        self._last.pop(job, None)

    def _release(self, job: str) -> None:
        above = self._last.get(job, NEVER_SEEN).cron_job
        left = self._left.get(above.uid) if above is not None else None
        if above is not None and left is not None:
            left.discard(job)
            if not left:
                del self._left[above.uid]
