"""How the jobs of the trace are asked for: what kind of object each is, until when, and what it saves.

The trace knows widths and run times only; the rest is drawn here, for each job from its number and the seed
alone, so that a part of the trace is asked for like the whole. All that is drawn is told to the operator and
to the embedded kubelets alike.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Iterable
from dataclasses import dataclass

from lstqueue.api import durations, zones
from lstqueue.demo import trace
from lstqueue.embedded import clock

BEST_EFFORT = 0.2
"""Share of jobs without a deadline, among those that are no nightly bags."""
OWN_JOBS = 1 / 3
"""Share of users' own Jobs, bags included."""
BAGS = 0.25
"""Share of nightly bags among the jobs that could be one."""
SAVING = 0.5
"""Share of gangs that save their work, among those that run for an hour or more."""

EPOCH = clock.DEFAULT_EPOCH_MS + durations.MINUTE
"""When the trace starts, ms since the Unix epoch: the operator is up by then."""

MORNING, ZONE = "06:00", "Europe/Berlin"
NIGHT = 12 * durations.HOUR
"""How long before the morning a bag is submitted at most."""
ROUNDS = 3
"""How many pods each slot of a bag serves."""

INTERVAL = 30 * durations.MINUTE
RESTORE = 2 * durations.MINUTE


class Kind(enum.Enum):
    """What a user submits."""

    INLINE = "DeadlineJob"  # with the gang in it
    JOB = "Job"  # the user's own, labelled, all of its pods at once
    BAG = "bag"  # the user's own, labelled, more pods than run at once, due in the morning


@dataclass(frozen=True, slots=True)
class Saves:
    """A checkpoint every `INTERVAL`; with `on_suspend` one more when it is told to leave."""

    on_suspend: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """A job of the trace as submitted; `deadline` is in ms since the Unix epoch, None for best effort."""

    job: trace.TraceJob
    kind: Kind
    deadline: int | None
    saves: Saves | None

    @property
    def name(self) -> str:
        """The name of the object that its user creates."""
        return f"trace-{self.job.number:03}"


def ask(jobs: Iterable[trace.TraceJob], *, seed: int) -> list[Ask]:
    """Say how each job is asked for."""
    return [_ask(job, random.Random(f"{seed}/{job.number}")) for job in jobs]  # noqa: S311 - it draws a demo, no secret


def _ask(job: trace.TraceJob, draw: random.Random) -> Ask:
    kind, best_effort, bag, saving, on_suspend = (draw.random() for _ in range(5))
    submit = EPOCH + job.submit
    morning = zones.following(MORNING, ZONE, submit).at
    if bag < BAGS and morning - NIGHT <= submit <= morning - trace.TIGHTEST * job.duration:
        return Ask(job, Kind.BAG, morning, None)
    saves = Saves(on_suspend < SAVING) if saving < SAVING and job.duration >= durations.HOUR else None
    deadline = None if best_effort < BEST_EFFORT else EPOCH + job.deadline
    return Ask(job, Kind.JOB if kind < OWN_JOBS else Kind.INLINE, deadline, saves)
