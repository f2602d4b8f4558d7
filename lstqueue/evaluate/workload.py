"""What a trace asks of a cluster: the gangs, when they come, how long they run, and by when they are due.

Everything that reads, changes or replays a trace agrees on these values. They say what happens to a job
whatever the policy; what a policy makes of it is no part of them.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lstqueue.topology import model as topology

GPU = "nvidia.com/gpu"

EPOCH = 1_704_067_200_000
"""Zero of every trace's own clock in ms since the Unix epoch: 2024-01-01T00:00:00Z, a Monday."""


GPUS_ALONE = "nodes are taken to have enough of what pods ask for beside GPUs"
"""Why requests of a row are left out."""


@dataclass(frozen=True, slots=True)
class Pods:
    """`count` equal pods of a gang; `requests` is what one asks for, its one `pods` included."""

    count: int
    requests: topology.Resources


@dataclass(frozen=True, slots=True)
class Work:
    """One job of a trace, as it would go with the whole cluster to itself.

    Attributes:
        key: Unique in the trace.
        user: Whose it is, or the nearest to it that the trace knows; may be empty.
        submit: ms since the Unix epoch, `EPOCH` or later.
        duration: Run time of the full gang in ms, above 0.
        pods: The gang's groups.
        gpus: GPUs of the whole gang.
        deadline: ms since the Unix epoch; None: best effort.
        requested: Run time in ms that its user said it would need at most; None where the trace has none.
        value: What meeting its deadline is worth beside others', 1 or more.
        importance: Its tier.
        row: Which row of the file it was, from 0, dropped rows counted: draws go by rows, so that a rule that
            drops rows moves nobody else's draw.
        undated: The trace itself says that it has no deadline; rules that set deadlines leave it alone.
    """

    key: str
    user: str
    submit: int
    duration: int
    pods: tuple[Pods, ...]
    gpus: int
    deadline: int | None = None
    requested: int | None = None
    value: int = 1
    importance: int = 0
    row: int = 0
    undated: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """A trace, read: `works` sorted by (submit, row).

    `dropped` and `completed` count, by reason, the rows left out and the rows of which a stated rule filled
    in what was unknown. `rows` is how many the file has: len(works) + all dropped, unless it was cut since.
    """

    name: str
    works: tuple[Work, ...]
    dropped: tuple[tuple[str, int], ...] = ()
    completed: tuple[tuple[str, int], ...] = ()
    rows: int = 0

    def first(self, jobs: int) -> Workload:
        """Return the trace cut after its first `jobs` jobs."""
        return replace(self, works=self.works[:jobs])

    def gpus_alone(self) -> Workload:
        """Return the trace without what its pods ask for beside GPUs, counted as completed."""
        kept = {work.pods: _gpus_alone(work.pods) for work in self.works}
        changed = sum(kept[work.pods] != work.pods for work in self.works)
        if not changed:
            return self
        works = tuple(replace(work, pods=kept[work.pods]) for work in self.works)
        return replace(self, works=works, completed=(*self.completed, (GPUS_ALONE, changed)))

    def shaken(self, by: int, *, seed: int) -> Workload:
        """Return the trace with every submission, and its deadline with it, moved by U(-by, by) ms.

        Draws are one for each row of the file in its order, of their own, and nothing moves before the
        trace's zero. A policy that is better by the accident of one history is not so by that of many.
        """
        if not by:
            return self
        draw = random.Random(f"{seed}/arrivals")  # noqa: S311 - a simulation, no secret
        rows = 1 + max((work.row for work in self.works), default=-1)
        moves = [draw.randint(-by, by) for _ in range(rows)]
        return replace(self, works=ordered(_moved(work, moves[work.row]) for work in self.works))


def _gpus_alone(groups: tuple[Pods, ...]) -> tuple[Pods, ...]:
    return tuple(Pods(group.count, pod(dict(group.requests).get(GPU, 0))) for group in groups)


def _moved(work: Work, by: int) -> Work:
    submit = max(EPOCH, work.submit + by)
    deadline = None if work.deadline is None else work.deadline + submit - work.submit
    return replace(work, submit=submit, deadline=deadline)


def ordered(works: Iterable[Work]) -> tuple[Work, ...]:
    """Sort as a `Workload` has them."""
    return tuple(sorted(works, key=lambda work: (work.submit, work.row)))


def pod(gpus: int) -> topology.Resources:
    """Return the requests of one pod of so many GPUs."""
    return topology.resources({GPU: gpus, topology.PODS: 1})


@functools.cache
def gang(gpus: int, per_node: int) -> tuple[Pods, ...]:
    """Cut `gpus` into pods for nodes of `per_node` GPUs: the whole nodes it fills, and one pod of the rest.

    Equal gangs are one object, of which a trace has a few dozen.

    Args:
        gpus: GPUs of the whole gang, 1 or more.
        per_node: GPUs of a node, 1 or more.
    """
    whole, rest = divmod(gpus, per_node)
    groups = [Pods(whole, pod(per_node))] if whole else []
    if rest:
        groups.append(Pods(1, pod(rest)))
    return tuple(groups)
