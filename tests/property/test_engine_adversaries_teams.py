"""The same adversaries, spread over two queues and with promises: jobs end, promises hold, who leaves is few.

Ada's jobs are in one queue and Bob's in another, each with half of the GPUs: apart, or in a cohort. What
docs/engine.md says of promises ("Why it holds") is for runs within their estimates and launches within their
margin, so adversaries that outrun these may have promises broken, by that or by what it does to others, and
nobody else may. Of a cohort docs/limits.md says that nominal jobs of another queue stay in a slot.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable

import pytest

from cases import attacks, effort, replays
from cases.replays import MINUTE
from lstqueue.engine import model
from lstqueue.evaluate import lives, teams

HALVES = (teams.Team("red", 8, users=("ada",)), teams.Team("blue", 8))
ONE, APART, COHORT = None, teams.Teams(HALVES), teams.Teams(HALVES, "ml")
LENT = teams.Teams((teams.Team("red", 4, limit=8, users=("ada",)), teams.Team("blue", 12)), "ml")
OUTRUN = (attacks.far_too_short, attacks.anyhow, attacks.eager)
"""Some of their jobs run longer than the most that was estimated, or begin slower than a launch may."""

Several = teams.Teams | None
Case = tuple[int, Callable[[random.Random], attacks.Attack], Several]
CASES: list[Case] = [
    (seed, attack, several)
    for seed in range(4)
    for several in (COHORT, APART, LENT, ONE)
    for attack in attacks.ATTACKS
]


def told(case: Case) -> str:
    seed, attack, several = case
    cohort = "one queue" if several is None else (several.cohort and f"of {several.teams[0].gpus}") or "apart"
    return f"{attack.__name__}, {cohort}, {seed}"


def most(several: teams.Teams, queue: str) -> int:
    """How many GPUs a queue may have in use."""
    team = next(team for team in several.teams if team.name == queue)
    if not several.cohort:
        return team.gpus
    return attacks.GPUS if team.limit is None else team.gpus + team.limit


def attacked(case: Case, *, promising: bool) -> tuple[attacks.Attack, replays.Ran]:
    seed, attack, several = case
    made, rng = attack(random.Random(seed)), random.Random(f"{seed}/teams")
    works = [dataclasses.replace(work, user=rng.choice(("ada", "bob"))) for work in made.works]
    if several is not None:
        works = [work for work in works if work.gpus <= most(several, several.of(work))]
    made = dataclasses.replace(made, works=works)
    ran = replays.run(
        works,
        nodes=2,
        costs=made.costs,
        queue=made.queue,
        config=dataclasses.replace(attacks.CONFIG, promising=promising),
        pass_every=MINUTE,
        audit=seed == 3,
        estimator=made.estimator,
        several=several,
    )
    return made, ran


def may_break(life: lives.Life, case: Case) -> set[model.Cause | None]:
    """Why a promise may have been taken back."""
    _, attack, several = case
    found: set[model.Cause | None] = {None}
    if attack in OUTRUN:
        found |= {model.Cause.RAN_PAST_HI, model.Cause.CAPACITY, model.Cause.STUCK}
    if several is not None and several.cohort:
        found.add(model.Cause.STUCK)
    return found


@pytest.mark.parametrize("case", effort.sample(CASES, quick=4), ids=told)
def test_promises_hold_whatever_the_tenants_do(case: Case) -> None:
    _, ran = attacked(case, promising=True)
    assert not ran.outcome.stuck
    for life in ran.outcome.lives:
        assert life.completed is not None, life.work.key
        assert life.broken in may_break(life, case), (life.work.key, life.broken)
        if life.promised and life.broken is None:
            assert life.completed <= (life.work.deadline or 0), life.work.key
        if case[2] is None or not case[2].cohort:
            assert life.gave_back == 0, "nobody lends anything, so nothing is taken back"


@pytest.mark.parametrize("case", effort.sample(CASES, quick=4), ids=told)
def test_suspensions_within_a_queue_stay_bounded_and_each_makes_room(case: Case) -> None:
    made, ran = attacked(case, promising=False)
    assert not ran.outcome.stuck
    days = (ran.outcome.ended - ran.outcome.began) // attacks.DAY + 1
    for life in ran.outcome.lives:
        assert life.completed is not None, life.work.key
        assert life.preempted - life.gave_back <= made.queue.cap * days, life.work.key
        least = min(made.queue.min_run, made.queue.reclaim_grace)
        for first, last in itertools.pairwise(ran.times(life.work.key, "suspended")):
            assert last - first >= least, f"{life.work.key} is suspended again at once"
    suspended = [at for at, what, _ in ran.log if what == "suspended"]
    admitted = [at for at, what, _ in ran.log if what == "admitted"]
    assert len(admitted) == len(made.works) + len(suspended)
    for at in suspended:
        last = at + made.costs.grace + attacks.CONFIG.claim_margin
        assert any(at <= then <= last for then in admitted), at
