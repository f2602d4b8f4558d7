"""What work that cannot be suspended takes off a limit of step 2, against counting it job by job."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from lstqueue.engine import model, standing, stuck
from lstqueue.topology import table
from lstqueue.topology.model import Node, PodShape, resources

HOUR = model.HOUR
Chosen = Callable[[model.Job, model.Assigned], bool]
GPU = "nvidia.com/gpu"
NODES = table.NodeTable([Node(f"n{i}", resources({GPU: 8, "pods": 110})) for i in range(4)])
RESOURCES = (GPU, "pods")
GONE = "n9"

parts = some.builds(
    model.Assigned,
    some.integers(0, 1),
    some.sampled_from(["main", "spot"]),
    some.sampled_from([*NODES.names, GONE]),
    some.integers(0, 2),
    some.integers(0, 2),
)
ends = some.none() | some.sampled_from([HOUR, 2 * HOUR, 3 * HOUR])
runs = some.tuples(some.sampled_from(["a", "b"]), some.lists(parts, max_size=4), ends)


def here(number: int, queue: str, assigned: list[model.Assigned], end: int | None) -> standing.Standing:
    groups = tuple(
        model.Group(name, 4, PodShape(resources({GPU: gpus, "pods": 1})))
        for name, gpus in (("worker", 2), ("leader", 1))
    )
    estimate = None if end is None else model.Estimate(end, end, end)
    job = model.Job(
        f"job-{number}",
        "team",
        f"job-{number}",
        queue,
        groups,
        submit=0,
        state=model.State.RUNNING,
        estimate=estimate,
        preemptible=False,
        assigned=tuple(assigned),
    )
    return standing.refresh(job, 0, model.Config())


def plainly(several: list[standing.Standing], resource: str, chosen: Chosen) -> list[tuple[int | None, int]]:
    """(end, amount) job by job."""
    found: list[tuple[int | None, int]] = []
    for one in several:
        amount = 0
        for part in one.job.assigned:
            if chosen(one.job, part):
                requests = dict(one.job.groups[part.group].shape.requests)
                amount += requests.get(resource, 0) * (part.bound + part.held)
        found.append((None if one.finish is None else one.finish.mid, amount))
    return found


def check(held: stuck.Held, several: list[standing.Standing], chosen: Chosen) -> None:
    for row, resource in enumerate(RESOURCES):
        stays, leaves = held[row]
        plain = plainly(several, resource, chosen)
        assert stays == sum(amount for end, amount in plain if end is None)
        for since in (0, HOUR // 2, 2 * HOUR):
            spans = [0, HOUR // 2, HOUR, 5 * HOUR]
            wanted = [
                sum(min(max(end - since, 0), span) * amount for end, amount in plain if end is not None)
                for span in spans
            ]
            assert [leaves.held(since, since + span) for span in spans] == wanted
            assert leaves.held_for(since, np.array(spans)).tolist() == wanted
        assert leaves.total == sum(amount for end, amount in plain if end is not None)


@given(some.lists(runs, max_size=6), some.lists(some.booleans(), min_size=4, max_size=4))
def test_sums_are_those_of_counting_job_by_job(
    made: list[tuple[str, list[model.Assigned], int | None]], inside: list[bool]
) -> None:
    several = [here(number, *one) for number, one in enumerate(made)]
    columns = stuck.Stuck(NODES, RESOURCES).columns(several)
    if columns.empty:
        assert not any(one.job.assigned for one in several)
        return
    area = {name for name, there in zip(NODES.names, inside, strict=True) if there}
    check(columns.on(np.array(inside)), several, lambda job, part: part.node in area)
    check(columns.within(["a"], ["main"]), several, lambda job, part: (job.queue, part.pool) == ("a", "main"))


def test_what_was_read_is_kept_until_a_job_is_another() -> None:
    known = stuck.Stuck(NODES, RESOURCES)
    one = here(0, "a", [model.Assigned(0, "main", "n0", 1, 0)], HOUR)
    first = known.columns([one])
    assert known.columns([one]) is first
    more = dataclasses.replace(one.job, assigned=(model.Assigned(0, "main", "n0", 2, 0),))
    known.rows.pop(one.job.uid)
    moved = known.columns([standing.refresh(more, 0, model.Config())])
    assert moved.on(np.array([True, False, False, False]))[0][1].total == 4
