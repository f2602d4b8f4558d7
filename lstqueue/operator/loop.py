"""The loop: cache, decide, write, and nothing else decides or writes.

Gangs that something happened to are looked at at once, and their next step is submitted. A pass builds the
snapshot, calls `decide` and submits what the plan says; the bell starts the next, or the time at which time
alone changes something. It is level-based: a write that fails changes nothing but the time at which its
job is looked at next.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from lstqueue.engine import decide, memory, model
from lstqueue.kube import port
from lstqueue.operator import (
    actions,
    alarms,
    bell,
    carrying,
    clocks,
    commits,
    events,
    fitting,
    grounds,
    guard,
    holding,
    intake,
    ledger,
    lifecycle,
    members,
    metrics,
    outbox,
    overbooking,
    overloads,
    reasons,
    replacing,
    reports,
    returns,
    setbacks,
    skew,
    slowness,
    snapshots,
    unit_facts,
    writer,
)
from lstqueue.operator import cache as caches
from lstqueue.operator import settings as all_settings

Phase = ledger.Phase
_RESTATED = 60
"""Passes in one restate interval, at most, that are made for nothing but old words."""

Wrote = Callable[[ledger.Ledger, ledger.Ledger, str], None]
"""Called with a ledger entry before and after a status write, and its queue."""

_LOG = logging.getLogger(__name__)


def _untold(before: ledger.Ledger, after: ledger.Ledger, queue: str) -> None:
    """Nobody needs to be told."""


class Loop:
    """Owns the passes. `now` returns ms since the epoch, the cluster's time."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        ring: bell.Bell,
        *,
        now: Callable[[], int],
        settings: all_settings.Settings,
        figures: metrics.Metrics,
        cleared: actions.Cleared,
        told: Wrote = _untold,
        tell: Callable[[events.Note], None],
    ) -> None:
        self.cache = cache
        self.writer = writer.Writer(workers=settings.in_flight, watched=cache.guard)
        self.plan: model.Plan | None = None
        self.snapshot: model.Snapshot | None = None
        self.passes = 0
        self._bell = ring
        self._now = now
        self._settings = settings
        self._figures = figures
        self._intake = intake.Intake(api, now=now, interval=int(settings.intake_retry * 1000))
        out = outbox.Outbox(cache, self.writer, self._failed)
        self._told = told
        self._tell = tell
        self.skew = skew.Skew(api, now=now)
        window = settings.engine.cap_window
        self._commits = commits.Commits(
            api, cache, out, now=now, clock=self.skew, window=window, wrote=self._wrote
        )
        self._actions = actions.Actions(
            api, cache, out, self._commits, now=now, clock=self.skew, cleared=cleared
        )
        self._memory = memory.Memory()
        self._forecast_at = 0
        self._shed_at: int | None = None
        self._round: model.Round | None = None
        self._changed = True
        self._alarms = alarms.Alarms()
        self._last = 0
        self._due_at: float | None = None
        self._returns = returns.Returns(cache, self._commits, self.writer)
        self._carrier = carrying.Carrier(cache, self.writer, self._commits, self._returns, self._attempt)
        self._passed = asyncio.Event()

    async def steps(self) -> None:
        """Take gangs their next step as soon as something happens to them, until cancelled.

        A step needs no decision, so it need not wait for the bell's quiet, which under load is a second away.
        """
        while True:
            await self.cache.touches.wait()
            self.cache.touches.clear()
            now = self._now()
            self._look_at_clock(now)
            self._advance_all(now)

    async def run(self) -> None:
        """Run passes until cancelled."""
        while True:
            timeout = self._pass()
            at = asyncio.get_running_loop().time()
            self._due_at = at + timeout if timeout is not None else None
            await self._bell.wait(timeout)

    def _wrote(self, before: ledger.Ledger, after: ledger.Ledger, queue: str) -> None:
        self._figures.transition(before, after, queue)
        self._told(before, after, queue)

    def overdue(self, at: float) -> float:
        """Return by how many seconds of the loop's clock a pass is late."""
        return max(0.0, at - self._due_at) if self._due_at is not None else 0.0

    def why(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Explain where a DeadlineJob stood in the last pass, None when that pass did not know it."""
        if self.snapshot is None or self.plan is None:
            return None
        for job in self.snapshot.jobs:
            if (job.namespace, job.name) == (namespace, name) and job.uid in self.cache.records:
                return reasons.tell(self.snapshot, self.plan, job.uid, self.cache.allowances)
        return None

    async def next_pass(self, *, after: int) -> None:
        """Wait until more than `after` passes were made."""
        while self.passes <= after:
            await self._passed.wait()

    def _pass(self) -> float | None:
        """Do one pass; return the seconds until the next one is due without a ring, None for never."""
        began = time.perf_counter()
        now = self._now()
        self._look_at_clock(now)
        self._advance_all(now)
        for record in self.cache.allowances.settle():
            self._intake.forget(record.ledger.namespace)
            record.ask_at = 0
            self.cache.touch(record.ledger.uid)
        self._changed |= self.cache.changed
        self.cache.changed = False
        if self._shed_at is None:
            self._shed_at = overloads.last(self.cache.queues.values(), now)
        self.snapshot = snapshots.build(
            self.cache,
            self._settings,
            now=now,
            forecast_at=self._forecast_at,
            changed=self._changed,
            shed_at=self._shed_at,
            around=self._round,
        )
        plan = decide.decide(self.snapshot, now, self._settings.engine, self._memory)
        self._round = plan.round
        if plan.sheds:
            self._shed_at = now
        if plan.forecast:
            self._forecast_at, self._changed = now, False
        self._carrier.carry_out(plan, self.snapshot)
        self.plan = plan
        self.passes += 1
        self._passed.set()
        self._passed = asyncio.Event()
        self._figures.passed(plan, time.perf_counter() - began, self.writer.backlog)
        return self._seconds(now, plan.wake_at, self._restate_at(now))

    def _look_at_clock(self, now: int) -> None:
        if clocks.beyond(self._last, now):
            self._clock_moved()
        self._last = now

    def _clock_moved(self) -> None:
        """Go on as a new process would after our clock was set back: no time that it has named is to come."""
        _LOG.warning("the clock has gone back; everything is looked at anew")
        self._alarms, self._memory, self._forecast_at = alarms.Alarms(), memory.Memory(), 0
        self._shed_at, self._round = None, None
        self._intake.forget_all()
        self.cache.units.clock_moved()
        for uid, record in self.cache.records.items():
            setbacks.clock_moved(record)
            self.cache.touch(uid)

    def _advance_all(self, now: int) -> None:
        for uid in self._due(now):
            problem = self.cache.guard.attempt(
                "DeadlineJob", self._name(uid), functools.partial(self._advance, uid, now)
            )
            if problem and uid in self.cache.records:
                self._put_off(self.cache.records[uid], problem, now)

    def _due(self, now: int) -> list[str]:
        """Return the gangs to look at: those that changed and those whose alarm went off."""
        return sorted(self._alarms.take(now).union(self.cache.take_touched()))

    def _restate_at(self, now: int) -> int | None:
        """Return when words of a job that waits get old though nothing happens; many jobs share a time."""
        settings = self._settings
        dues = (snapshots.restate_at(record, settings) for record in self.cache.records.values())
        first = min((at for at in dues if at is not None), default=None)
        return None if first is None else max(first, now + settings.restate_interval_ms // _RESTATED)

    def _seconds(self, now: int, *wakes: int | None) -> float | None:
        times = [at for at in (*wakes, self._alarms.first) if at is not None]
        return max(0, min(times) - now) / 1000 if times else None

    def _wake(self, uid: str, at: int) -> None:
        """Have a gang looked at no later than `at`."""
        self._alarms.wake(uid, at, self.cache.records.keys())

    def _name(self, uid: str) -> str:
        record = self.cache.records.get(uid)
        return f"DeadlineJob {record.ledger.key}" if record else uid

    # One gang

    def _advance(self, uid: str, now: int) -> None:
        """Submit the next step of a gang, unless a write for it is under way or has just failed."""
        record = self.cache.records.get(uid)
        if record is None or self.writer.busy(uid):
            return
        if record.retry_at > now:
            self._wake(uid, record.retry_at)
            return
        setbacks.try_again(record)
        self._listen(record, now)
        if record.doubtful:
            self._commits.reread(record)
            return
        if record.unreadable:
            return
        self._take_in(record, now)
        if record.ledger.spec is None:
            return
        if why := holding.forfeited(record, self.cache):
            self._commits.drop(record, model.Drop(uid, why))
            return
        if record.lost and not record.ledger.final:
            self._actions.look_for_lost(record)
            return
        gang = self._gang(record, now)
        if gang.unit.unseen:
            # Whether its Job is there is not known: the keeper asks, and has this looked at again.
            return
        self._go_on(record, gang, now)

    def _listen(self, record: caches.Record, now: int) -> None:
        """Take in what a job says of its progress, and tell what follows once it is much."""
        misread = reports.look(record, self.cache, self._settings.engine, now)
        if misread is not None:
            self._tell(reports.note(misread))
        if record.track.estimate is None or record.doubtful:
            return
        estimate = self._engine_job(record).estimate
        free = self.writer.pending(record.ledger.uid) is None
        if estimate is not None and free and reports.untold(record, estimate, now):
            record.told_at = now
            self._commits.reckon(record, estimate, record.source)

    def _go_on(self, record: caches.Record, gang: members.Gang, now: int) -> None:
        uid, hindered = record.ledger.uid, lifecycle.kind_of(record.ledger).hindrance(gang)
        if hindered != record.hindered:
            record.hindered, record.engine_job, record.told_at = hindered, None, 0
        step = lifecycle.step(gang, now)
        step = slowness.beside(lifecycle.kind_of(record.ledger), gang, step, now)
        if gang.untimely:
            self._wake(uid, record.untimely_until)
        elif step.idle and record.untimely:
            setbacks.timely(record)
        if self._returns.note(record, gang, step):
            # The pass that comes at once says in the same write what became of it.
            self._bell.ring()
        elif not step.idle:
            self._actions.step(record, step)
        elif step.wake is not None and step.wake > now:
            self._wake(uid, step.wake)

    def _take_in(self, record: caches.Record, now: int) -> None:
        """Ask the server about the pods of a new gang; what is admitted goes on without the answer."""
        job = record.ledger
        if job.spec is None:
            record.held_back, record.held_code, record.ask_at = job.problem, "InvalidSpec", 0
            record.shapes = record.engine_job = None
            return
        over = record.unit is not None and record.unit.over
        if record.shapes is not None or job.final or over or not job.spec.groups:
            # Of a Job that is over nobody keeps the template, and nobody needs an answer.
            return
        if record.ask_at > now:
            self._wake(job.uid, record.ask_at)
            return
        answer = self._intake.known(job.namespace, job.spec.shape)
        if answer is not None:
            self._answered(record, answer)
        elif self.writer.pending(job.uid) is None:
            self._actions.ask(record, self._intake, self._answered)

    def _answered(self, record: caches.Record, answer: intake.Answer) -> None:
        record.engine_job = None
        if answer.groups is not None:
            record.shapes, record.held_back, record.held_code = answer.groups, "", ""
            record.charges = answer.charges
            if record.unit is not None:
                record.priority_class = answer.priority_class
                fitting.fit(record, self.cache.units)
            return
        one = record.unit
        words = answer.words(f"{one.kind} {one.name}" if one is not None else "")
        if answer.final and record.assumed is None and record.ledger.status.phase is Phase.PENDING:
            self._commits.reject(record, reason=answer.reason, message=words)
            return
        if answer.reason != record.held_code:
            record.told_at = 0
        record.held_back, record.held_code = words, answer.reason
        record.ask_at = self._now() + int(self._settings.intake_retry * 1000)
        self._wake(record.ledger.uid, record.ask_at)

    def _gang(self, record: caches.Record, now: int) -> members.Gang:
        settings, status = self._settings, record.ledger.status
        fitting.settle(record)
        queue = self.cache.queues.get(status.admission.queue) if status.admission else None
        if not record.ungated_at and any(pod.attempt == status.attempt for pod in record.pods.values()):
            # Lifted by an earlier process: the timeout begins anew, bounded by that of the whole start.
            record.ungated_at = now
        setbacks.lifted_by_now(record, now)
        gang = members.Gang(
            ledger=record.ledger,
            children=tuple(record.children.values()),
            pods=(*record.pods.values(), *record.evicted.values()),
            ungated_at=record.ungated_at,
            bind_timeout=(queue and queue.bind_timeout) or settings.bind_timeout_ms,
            ready_timeout=(queue and queue.ready_timeout) or settings.gang_ready_timeout_ms,
            fit_node=lambda group, node: grounds.fits(self.cache, record, group, node),
            other_node=lambda group, node: replacing.other(
                self.cache, record, group, node, job_of=self._engine_job
            ),
            crowded=lambda: overbooking.crowded(self.cache, record, self._engine_job),
            lost=lambda pod: grounds.lost(self.cache, record, pod),
            slack=lambda: snapshots.waiting_slack(self._engine_job(record), now, self._settings.engine),
            stale=self.cache.stale,
            recovery_timeout=settings.recovery_timeout_ms,
            judged=bool(record.told_at) and record.said is None,
            untimely=setbacks.untimely(record, now),
            spare=record.spare,
            counts=record.counts,
            unit=unit_facts.look(self.cache, record, now),
            books=record.books,
        )
        complete = status.phase is not Phase.RUNNING or lifecycle.kind_of(record.ledger).standing(gang).ready
        # An earlier process may have seen it before: the time begins anew.
        record.unready_since = 0 if complete else record.unready_since or now
        return dataclasses.replace(gang, unready_since=since) if (since := record.unready_since) else gang

    def _engine_job(self, record: caches.Record) -> model.Job:
        if record.engine_job is None:
            record.engine_job = snapshots.engine_job(record, self.cache, self._settings)
        return record.engine_job

    # Failures

    def _failed(self, uid: str, error: port.ApiError, *, start: bool) -> None:
        """A write did not go through: find out what is, and look again, later each time."""
        self._figures.write_failed(error)
        _LOG.warning("a write for %s did not go through: %s", self._name(uid), error)
        record = self.cache.records.get(uid)
        if record is None:
            return
        now = self._now()
        if isinstance(error, skew.UntimelyError):
            setbacks.put_off_time(record, self._settings, now, error.message)
            self.cache.touch(uid)
            return
        setbacks.put_off(record, self._settings, now, at_least=error.retry_after or 0.0)
        words = error.message
        if isinstance(error, guard.DefectError):
            setbacks.leave_aside(record, words)
            words = record.odd
        if start and setbacks.hopeless(error) and record.ledger.status.phase is Phase.ADMITTED:
            self._attempt(record, now, lambda: self._refused(record, now, words))
        elif not setbacks.known_outcome(error):
            # The outcome is unknown, or somebody else wrote: what is assumed holds until the API tells.
            record.doubtful = True
            if record.failures == 1:
                self._commits.reread(record)
        self.cache.touch(uid)

    def _refused(self, record: caches.Record, now: int, words: str) -> None:
        self._actions.step(record, lifecycle.refused(self._gang(record, now), now, words))

    def _attempt(self, record: caches.Record, now: int, do: Callable[[], None]) -> None:
        """Do something for one job; an error of ours puts that off, and keeps nobody else from anything."""
        problem = self.cache.guard.attempt("DeadlineJob", record.ledger.key, do)
        if problem:
            self._put_off(record, problem, now)

    def _put_off(self, record: caches.Record, problem: str, now: int) -> None:
        setbacks.put_off(record, self._settings, now)
        setbacks.leave_aside(record, problem)
        self._wake(record.ledger.uid, record.retry_at)
