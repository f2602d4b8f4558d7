"""Small traces through the evaluator, every pass looked at by the engine's own invariants."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable
from typing import Any

from lstqueue.engine import decide, invariants, justice, model, pledges
from lstqueue.evaluate import (
    check,
    digest,
    estimates,
    interconnects,
    lives,
    mishaps,
    policies,
    replay,
    teams,
    workload,
    world,
)

MINUTE, HOUR = model.MINUTE, model.HOUR
EPOCH = workload.EPOCH
FREE = lives.Costs(launch=0, grace=0, termination=0, bind=0, lag=0)
"""Nothing costs anything but a restart: two minutes, and what is since the last checkpoint."""


def work(key: str, *, gpus: int = 8, at: int = 0, runs: int = HOUR, **more: Any) -> workload.Work:
    """A job submitted `at` ms after the trace's zero that `runs` ms; `due` is ms after its submission."""
    due = more.pop("due", None)
    submit = EPOCH + at
    deadline = None if due is None else submit + due
    return workload.Work(key, "user", submit, runs, workload.gang(gpus, 8), gpus, deadline, **more)


@dataclasses.dataclass
class Ran:
    """What came of a replay. `log` has the events in words, times relative to the trace's zero in ms."""

    outcome: replay.Outcome
    place: world.World
    books: check.Books
    digest: str
    log: list[tuple[int, str, str]]

    def life(self, key: str) -> lives.Life:
        return next(life for life in self.outcome.lives if life.work.key == key)

    def done(self, key: str) -> int | None:
        """When a job completed, in ms after the trace's zero."""
        completed = self.life(key).completed
        return None if completed is None else completed - EPOCH

    def times(self, key: str, event: str) -> list[int]:
        return [at for at, what, whose in self.log if (what, whose) == (event, key)]


def run(
    works: Iterable[workload.Work],
    *,
    nodes: int = 1,
    costs: lives.Costs = FREE,
    queue: model.Queue | None = None,
    config: model.Config | None = None,
    pass_every: int = 1000,
    audit: bool = True,
    wear: mishaps.Wear | None = None,
    policy: policies.Policy | None = None,
    estimator: estimates.Estimator | None = None,
    several: teams.Teams | None = None,
    topology: str | None = None,
    wishes: interconnects.Wishes | None = None,
    **more: Any,
) -> Ran:
    """Replay works on nodes of eight GPUs as a policy has it or as is given, else with exact estimates."""
    policy = policy or policies.named("lst")
    made, queue = policy.configured(config or model.Config()), policy.queued(queue or model.Queue("q"))
    config = made if config is None else dataclasses.replace(made, promising=config.promising)
    shape = world.Shape(nodes, 8)
    lines = io.StringIO()
    log = digest.Log(lines)
    books = check.Books(shape, costs, several=several, config=config)
    machines = [(one.name, one.gpus) for one in shape.machines]
    asked = wishes or interconnects.Wishes()
    linked = None if topology is None else interconnects.read(topology, machines, asked, named=False)
    linked_by = {} if linked is None else {"interconnect": linked}
    place = policy.world(
        shape, costs, queue, log=log, witnesses=(books,), wear=wear, several=several, **linked_by
    )
    load = workload.Workload("made up", workload.ordered(works))

    def decided(snapshot: model.Snapshot, plan: model.Plan) -> None:
        books.planned(snapshot, plan)
        if audit:
            assert invariants.of_snapshot(snapshot) == ()
            assert invariants.of_plan(snapshot, plan) == ()
            assert justice.of_plan(snapshot, plan, config) == ()
            assert pledges.of_plan(snapshot, plan, config) == ()

    estimator = estimator or estimates.Exact()
    again = replay.Replay(load, place, estimator, config=config, pass_every=pass_every, **more)
    outcome = again.run(decided=decided, decider=decide.decide)
    assert books.violations == []
    events = [line.split(" ") for line in lines.getvalue().splitlines()]
    told = [(int(parts[0]) - EPOCH, parts[1], parts[2]) for parts in events]
    return Ran(outcome, place, books, log.digest(), told)
