"""Gangs that return to the queue: the write that says so waits for the pass that says what became of them.

Their room has gone back with their pods, so nothing hangs on that write but that they wait again; to the
pass that follows at once they wait already. What it finds out goes into the same write. Decides nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from lstqueue.engine import model
from lstqueue.operator import cache as caches
from lstqueue.operator import commits, lifecycle, members, steps, writer

Attempt = Callable[[caches.Record, Callable[[], None]], None]
"""Does something for one job, so that an error of ours in it keeps nobody else from anything."""


class Returns:
    """Those who return between two passes, with the step that says so."""

    def __init__(self, cache: caches.Cache, commit: commits.Commits, write: writer.Writer) -> None:
        self._cache = cache
        self._commit = commit
        self._writer = write
        self._steps: dict[str, tuple[int, steps.Step]] = {}

    def note(self, record: caches.Record, gang: members.Gang, step: steps.Step) -> bool:
        """Note whether a gang returns to the queue, and have the next pass take it for one that waits."""
        uid = record.ledger.uid
        returning = step.status if lifecycle.requeues(record.ledger, step) else None
        if returning != record.returning:
            record.returning, record.engine_job = returning, None
        self._steps.pop(uid, None)
        if returning is None:
            return False
        self._steps[uid] = record.ledger.version, step
        again = replace(gang, ledger=replace(record.ledger, status=returning))
        record.hindered = lifecycle.kind_of(record.ledger).hindrance(again)
        return True

    def write(self, plan: model.Plan, updates: dict[str, model.Update], attempt: Attempt) -> frozenset[str]:
        """Write of each that it waits again, with what the pass says of it; return who they were.

        Whom the pass would admit at once, or give a claim, the next one decides on: one write after another.
        What was said is taken out of `updates`.
        """
        chosen = {one.uid for one in plan.admit} | {one.uid for one in plan.claim}
        returned, self._steps = self._steps, {}
        for uid, (version, step) in returned.items():
            record = self._cache.records.get(uid)
            if record is None:
                continue
            record.returning = None
            update = updates.pop(uid, None)
            # What the step was found for may have been written to since, and the job not been looked at.
            stale = record.ledger.version != version
            if stale or record.doubtful or self._writer.busy(uid):
                record.engine_job = None
                self._cache.touch(uid)
                continue
            said = None if uid in chosen else update
            record.told_at = plan.now if said is not None else record.told_at
            attempt(record, functools.partial(self._commit.step, record, step, said))
        return frozenset(returned)
