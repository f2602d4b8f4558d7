"""What came of a run, as figures: from what the meter saw in the store, and from the audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lstqueue.api import times
from lstqueue.demo import meter as meters
from lstqueue.demo import mix


@dataclass(frozen=True, slots=True)
class Results:
    """What came of the jobs.

    `met` of `with_deadline` jobs succeeded by their deadline; `met_gpu_hours` of `gpu_hours` are their work.
    Waits are means, in seconds, from submission to the first moment at which all of a job ran. `failed` jobs
    ended otherwise than well, `unfinished` ones never did. `lost_gpu_hours` were done again because
    suspensions lost them.
    """

    with_deadline: int
    met: int
    met_gpu_hours: float
    gpu_hours: float
    wait_s: float
    wait_best_effort_s: float
    failed: int
    unfinished: int
    lost_gpu_hours: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """How many jobs were written as a trace, how many never will be, by reason, and how many did not end."""

    written: int
    left_out: Mapping[str, int]
    waiting: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    `gpu_use` is the share of all GPUs that pods held between the first submission and the last. `preemptions`
    are the suspensions for another job, `suspensions_node_lost` those for a lost node. `nodes_lost` and
    `restarts` (of the operator) are the trouble made, of which `story` tells. `requests` are those that the
    operator made to the API.
    """

    order: str
    jobs: int
    results: Results
    suspensions: int
    preemptions: int
    suspensions_node_lost: int
    nodes_lost: int
    restarts: int
    gpu_use: float
    checks: int
    violations: tuple[str, ...]
    requests: Mapping[str, int]
    story: tuple[str, ...]
    wall_s: float
    virtual_s: float
    recorded: Recorded | None = None

    @property
    def sound(self) -> bool:
        """Whether no invariant was broken and every job came to a good end."""
        return not (self.violations or self.results.failed or self.results.unfinished)


def judge(asks: Sequence[mix.Ask], lives: Iterable[meters.Life]) -> Results:
    """Compare what was asked for with what came of it."""
    by_name = {life.name: life for life in lives}
    found = [(ask, by_name.get(ask.name)) for ask in asks]
    dated = [ask for ask in asks if ask.deadline is not None]
    met = [ask for ask, life in found if _met(ask, life)]
    ended = [life for _, life in found if life is not None and life.end is not None]
    return Results(
        with_deadline=len(dated),
        met=len(met),
        met_gpu_hours=_gpu_hours(met),
        gpu_hours=_gpu_hours(dated),
        wait_s=_wait(life for ask, life in found if ask.deadline is not None),
        wait_best_effort_s=_wait(life for ask, life in found if ask.deadline is None),
        failed=sum(life.phase != "Succeeded" for life in ended),
        unfinished=len(asks) - len(ended),
        lost_gpu_hours=sum(ask.job.gpus * life.lost for ask, life in found if life is not None) / 3_600_000,
    )


def _met(ask: mix.Ask, life: meters.Life | None) -> bool:
    if life is None or life.end is None or ask.deadline is None or life.phase != "Succeeded":
        return False
    return times.parse(life.end["completionTime"]) <= ask.deadline


def _gpu_hours(asks: Iterable[mix.Ask]) -> float:
    return sum(ask.job.gpus * ask.job.duration for ask in asks) / 3_600_000


def _wait(lives: Iterable[meters.Life | None]) -> float:
    known = [life.wait for life in lives if life is not None and life.wait is not None]
    return sum(known) / len(known) / 1000 if known else 0.0
