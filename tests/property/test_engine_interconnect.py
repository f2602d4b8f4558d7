"""Gangs on an interconnect: what they require is never broken, and what could be kept is found."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest

from cases import effort, interconnects, moments
from cases.interconnects import GPU, MINUTE, NOW
from lstqueue.engine import decide, invariants, justice, memory, model, proximity

CONFIG = model.Config(forecast_depth=0)


def drawn(rng: random.Random) -> model.Snapshot:
    """A cluster of 12 to 18 nodes, some of them in use, some unready, and a dozen gangs that wait."""
    found = interconnects.fabric(2, rng.choice([2, 3]), 3, ragged=rng.random() < 0.5)
    names = (*found.nodes, "stranger")
    busy = [name for name in names if rng.random() < 0.4]
    nodes = [
        dataclasses.replace(
            interconnects.node(name, used=8 if name in busy else rng.choice([0, 0, 0, 8, 4])),
            ready=rng.random() < 0.95,
        )
        for name in names
    ]
    run = [interconnects.running(rng, 100 + place, name) for place, name in enumerate(busy)]
    wait = [_drawn(rng, number) for number in range(12)]
    return interconnects.snapshot(found, [*run, *wait], nodes)


def _drawn(rng: random.Random, number: int) -> model.Job:
    runs = rng.randint(1, 600) * MINUTE
    return interconnects.job(
        number,
        pods=2 * rng.randint(1, 3),
        gpus=rng.choice([2, 4, 8]),
        leader=rng.random() < 0.3,
        estimate=model.Estimate(runs, runs, runs),
        deadline=rng.choice([None, NOW + runs + rng.randint(0, 900) * MINUTE]),
        overhead=rng.choice([0, 2 * MINUTE]),
        locality=interconnects.locality(rng),
    )


@pytest.mark.parametrize("seed", range(effort.examples(8)))
def test_no_plan_breaks_what_a_gang_requires(seed: int) -> None:
    seen = drawn(random.Random(seed))
    plan = decide.decide(seen, NOW, CONFIG)
    assert invariants.of_plan(seen, plan) == ()


@pytest.mark.parametrize("seed", range(effort.examples(8)))
def test_one_group_is_placed_wherever_a_domain_holds_it(seed: int) -> None:
    rng = random.Random(seed)
    seen = drawn(rng)
    asked = dataclasses.replace(interconnects.locality(rng), min_bandwidth=0)
    asked = dataclasses.replace(asked, preferred="")
    one = interconnects.job(0, 2 * rng.randint(1, 6), gpus=rng.choice([4, 8]), locality=asked)
    plan = decide.decide(dataclasses.replace(seen, jobs=(one,)), NOW, CONFIG)
    assert bool(plan.admit) == _fits(seen, one)


def _fits(seen: model.Snapshot, one: model.Job) -> bool:
    """Count pods by domain, the slow way."""
    asked, group = one.locality, one.groups[0]
    level = asked.slice_level or "leafgroup"
    need = dict(group.shape.requests)[GPU]
    elements: Counter[tuple[str | None, str | None]] = Counter()
    unit = asked.slice_size
    if unit > 1 and asked.required == "leafgroup":
        level = "leafgroup"
    for node in seen.nodes:
        room = (dict(node.allocatable)[GPU] - dict(node.used).get(GPU, 0)) // need
        outer = proximity.domain(seen.domains, asked.required, node.name) if asked.required else "all"
        inner = proximity.domain(seen.domains, level, node.name) if unit > 1 else "any"
        if node.ready and outer is not None and inner is not None:
            elements[outer, inner] += room
    totals: Counter[str | None] = Counter()
    for (outer, _), room in elements.items():
        totals[outer] += room // unit * unit
    return max(totals.values(), default=0) >= group.count


@pytest.mark.parametrize("seed", range(effort.examples(4)))
def test_a_pass_before_wake_at_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    config = rng.choice([model.Config(promising=False), model.Config(promise_area=1.0)])
    seen, now = drawn(rng), NOW
    for _ in range(5):
        for _ in range(8):
            plan = decide.decide(seen, now, config)
            assert invariants.of_plan(seen, plan) == ()
            assert justice.of_plan(seen, plan, config) == ()
            if not (moments.acts(plan) or plan.updates or plan.forecast):
                break
            seen = moments.apply(seen, plan)
        else:
            raise AssertionError("still changing")
        if plan.wake_at is None:
            return
        for moment in (plan.wake_at - 1, rng.randint(now, plan.wake_at - 1)):
            again = decide.decide(seen, moment, config)
            assert not moments.acts(again)
            assert again.updates == ()
            assert not again.forecast
        now = plan.wake_at


@pytest.mark.parametrize("seed", range(effort.examples(3)))
def test_a_memory_changes_nothing(seed: int) -> None:
    rng, kept = random.Random(seed), memory.Memory()
    seen = drawn(rng)
    for _ in range(8):
        if rng.random() < 0.2:
            seen = dataclasses.replace(
                seen, domains=rng.choice([interconnects.fabric(2, 2, 3), None, seen.domains])
            )
        nodes = list(seen.nodes)
        at = rng.randrange(len(nodes))
        nodes[at] = interconnects.node(nodes[at].name, used=rng.choice([0, 4, 8]))
        jobs = list(seen.jobs)
        jobs[rng.randrange(len(jobs))] = dataclasses.replace(
            rng.choice(jobs), uid=f"u{rng.randrange(900)}", locality=interconnects.locality(rng)
        )
        seen = dataclasses.replace(seen, nodes=tuple(nodes), jobs=tuple({j.uid: j for j in jobs}.values()))
        config = rng.choice([CONFIG, model.Config()])
        assert decide.decide(seen, NOW, config, kept) == decide.decide(seen, NOW, config)
