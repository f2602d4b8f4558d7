"""One job of a replay: what the trace says of it, where it stands, and what became of it.

`Life` is what a DeadlineJob, its Job and its pods are together in a cluster, reduced to what the engine and
the figures look at. It changes by the moves of `world.World` alone; `engine_job` is how the engine sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lstqueue.engine import model
from lstqueue.evaluate import workload
from lstqueue.topology import slowdown

DISPLACED_BY = 16
"""How many of those a job had to give way to are remembered, as in a DeadlineJob's status."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What starting, stopping and knowing cost in the world; all in ms.

    A gang is bound `bind` after its admission and works `launch` later, `restore` instead when it ran before.
    It saves its work every `checkpoint` of run time (0: never), and when told to stop if `saves_on_suspend`.
    Its pods are given `grace` to leave and take `termination`. What happens is known `lag` later.
    """

    launch: int = 30_000
    restore: int = 120_000
    checkpoint: int = 30 * model.MINUTE
    saves_on_suspend: bool = False
    grace: int = 30_000
    termination: int = 5_000
    bind: int = 2_000
    lag: int = 200

    def __post_init__(self) -> None:
        """Refuse times that cannot be.

        Raises:
            ValueError: Names the field and what it must be.
        """
        for name in ("launch", "restore", "checkpoint", "grace", "termination", "bind", "lag"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"costs.{name} is {value} ms; it must be 0 or more")
        if self.termination > self.grace:
            raise ValueError(
                f"costs.termination is {self.termination} ms; it must be at most the grace, {self.grace} ms"
            )


@dataclass(slots=True)
class Life:
    """A job on its way. Times in ms since the epoch, 0 for not yet unless said otherwise.

    `starts_at` and `ends_at` are when the gang of this attempt begins to work and would be through, whether
    anybody knows or not. `since` is what the engine is told. `saved` is run time whose result is kept.
    `first_start` and `completed` are None until then. `lost` sums run time done again, `restoring` the time
    spent on starts after a suspension; `preempted` counts suspensions for others, `struck` runs that a mishap
    of a node ended. `fruitless` is the most suspensions in a row that saved nothing.
    `queue` is "" for the one of a replay without several, `gave_back` how often it had to leave for another
    queue. `first_level` is the verdict at submit, `first_finish` the first forecast of its end. Who is
    `given_up` has no deadline to the engine. `promised` says that it ever had a slot, `broken` why the last
    promise was taken back. `slowdown` (ppm) is what its place makes of its run time, while it has one and
    after its end; `saved` is run time on the best place.
    """

    uid: str
    work: workload.Work
    groups: tuple[model.Group, ...]
    estimate: model.Estimate | None
    state: model.State = model.State.WAITING
    since: int = 0
    assigned: tuple[model.Assigned, ...] = ()
    attempt: int = 0
    published: model.Published = field(default_factory=model.Published)
    claim: model.Claim | None = None
    reservation: model.Reservation | None = None
    slot: model.Slot | None = None
    promised: bool = False
    broken: model.Cause | None = None
    not_before: int = 0
    avoid: tuple[str, ...] = ()
    locality: model.Locality = model.ANYWHERE
    slowdown: int = slowdown.PPM
    home: str = ""
    saved: int = 0
    suspensions: tuple[int, ...] = ()
    wasted: int = 0
    displaced_by: tuple[str, ...] = ()
    starts_at: int = 0
    ends_at: int = 0
    ran: bool = False
    first_start: int | None = None
    completed: int | None = None
    preempted: int = 0
    struck: int = 0
    fruitless: int = 0
    lost: int = 0
    restoring: int = 0
    queue: str = ""
    gave_back: int = 0
    first_level: model.Level | None = None
    first_finish: tuple[int, int] | None = None
    given_up: bool = False
    seen: model.Job | None = None

    def engine_job(self, costs: Costs) -> model.Job:
        """Return the job as the engine sees it; the same object until something changes (`seen` = None)."""
        if self.seen is None:
            work = self.work
            self.seen = model.Job(
                uid=self.uid,
                namespace=work.user or "default",
                name=work.key,
                queue=self.queue or QUEUE,
                groups=self.groups,
                submit=work.submit,
                deadline=None if self.given_up else work.deadline,
                estimate=self.estimate,
                importance=work.importance,
                overhead=costs.restore if self.ran else 0,  # an operator is told no launch cost either
                state=self.state,
                since=self.since,
                assigned=self.assigned,
                not_before=self.not_before,
                avoid=self.avoid,
                published=self.published,
                attempt=self.attempt,
                claim=self.claim,
                reservation=self.reservation,
                slot=self.slot,
                bereft=self.slot is None and self.broken in (model.Cause.CAPACITY, model.Cause.STUCK),
                value=work.value,
                saved=self.saved,
                checkpoint=costs.checkpoint,
                saves_on_suspend=costs.saves_on_suspend,
                restore=costs.restore,
                grace=costs.grace,
                suspensions=self.suspensions,
                wasted=self.wasted,
                displaced_by=self.displaced_by,
                served=self.saved + self.lost,
                locality=self.locality,
                slowdown=self.slowdown,
                home=self.home,
            )
        return self.seen


QUEUE = "all"
"""The one queue of a replay that has no several."""


def gpus_on(life: Life, node: str) -> int:
    """GPUs that a gang holds on a node."""
    there = [part for part in life.assigned if part.node == node]
    shapes = [life.groups[part.group].shape for part in there]
    counts = [part.bound + part.held for part in there]
    pairs = zip(shapes, counts, strict=True)
    return sum([count * dict(shape.requests).get(workload.GPU, 0) for shape, count in pairs])
