"""The quota of the engine against a slow and obvious reading of docs/engine.md, Quota in a cohort.

Nodes have room for everybody, so that quota alone decides; then the model says exactly who starts.
"""

from __future__ import annotations

import dataclasses
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from lstqueue.engine import decide, invariants, kept, lending, memory, model
from lstqueue.topology.model import Node, PodShape, resources

GPU, NIC = "nvidia.com/gpu", "rdma/ib"
NOW = 1_800_000_000_000
MINUTE = model.MINUTE
CONFIG = model.Config(shedding=False, sharing=False, reserve_most=0, trigger_least=0, trigger_share=0)
NODES = tuple(
    Node(f"{pool}{i}", resources({GPU: 64, NIC: 64, "pods": 90}), labels=(("pool", pool),))
    for pool in ("x", "y")
    for i in range(3)
)


@st.composite
def queues(draw: st.DrawFn) -> tuple[model.Queue, ...]:
    """Three teams, of which two or three are in one cohort, on the pools that they list."""
    alone = draw(st.booleans())
    made: list[model.Queue] = []
    for age, name in enumerate("abc"):
        outside = name == "c" and alone
        pools: list[model.Pool] = []
        for pool in ("y",) if outside else draw(st.sampled_from([("x",), ("x", "z"), ("z", "x")])):
            has = tuple((one, draw(st.integers(0, 12))) for one in (GPU, NIC))
            limits = tuple((one, draw(st.integers(0, 6))) for one in (GPU, NIC) if draw(st.booleans()))
            label = "y" if outside else "x"
            pools.append(model.Pool(pool, (("pool", label),), nominal=has, limits=() if outside else limits))
        made.append(model.Queue(name, pools=tuple(pools), cohort="" if outside else "ml", created=age))
    return tuple(made)


Key = tuple[str, str]
"""(pool, resource)."""


class Books:
    """Who holds how much of what, in sums that are made anew for every question."""

    def __init__(self, teams: tuple[model.Queue, ...]) -> None:
        self.teams = {team.name: team for team in teams}
        self.held: dict[str, tuple[str, dict[Key, int]]] = {}  # by uid: queue, amounts

    def has(self, queue: str) -> dict[Key, int]:
        return {(pool.name, name): n for pool in self.teams[queue].pools for name, n in pool.nominal}

    def used(self, queue: str, key: Key) -> int:
        return sum(amounts.get(key, 0) for owner, amounts in self.held.values() if owner == queue)

    def fits(self, queue: str, asked: dict[Key, int]) -> bool:
        team, has = self.teams[queue], self.has(queue)
        for key, amount in asked.items():
            if not amount:
                continue
            limit = next((dict(pool.limits).get(key[1]) for pool in team.pools if pool.name == key[0]), None)
            if not team.cohort and self.used(queue, key) + amount > has[key]:
                return False
            if team.cohort and limit is not None and self.used(queue, key) + amount > has[key] + limit:
                return False
            cohort = [one for one in self.teams if team.cohort and self.teams[one].cohort == team.cohort]
            used = sum(self.used(one, key) for one in cohort if key in self.has(one))
            if cohort and used + amount > sum(self.has(one).get(key, 0) for one in cohort):
                return False
        return True

    def borrowed(self, queue: str, order: list[str]) -> set[str]:
        left, found = self.has(queue), set()
        for uid in order:
            asked = self.held[uid][1]
            if all(amount <= left.get(key, 0) for key, amount in asked.items() if amount):
                left |= {key: left[key] - amount for key, amount in asked.items() if amount}
            else:
                found.add(uid)
        return found


def asked(job: model.Job, pool: str) -> dict[Key, int]:
    group = job.groups[0]
    return {(pool, name): n * group.count for name, n in group.shape.requests if name in (GPU, NIC)}


def job(pick: random.Random, number: int) -> model.Job:
    mid = pick.randint(1, 90) * MINUTE
    shape = PodShape(resources({GPU: pick.randint(0, 5), NIC: pick.randint(0, 2), "pods": 1}))
    return model.Job(
        uid=f"u{number:03}",
        namespace="ns",
        name=f"n{number}",
        queue=pick.choice("abc"),
        groups=(model.Group("g", pick.randint(1, 3), shape),),
        submit=NOW,
        deadline=pick.choice([None, NOW + mid + pick.randint(100, 9000) * MINUTE]),
        estimate=model.Estimate(mid, mid, mid),
        importance=pick.choice([0, 0, 1, -1]),
        preemptible=False,
    )


@settings(max_examples=effort.examples(6), deadline=None)
@given(queues(), st.integers(0, 1 << 32))
def test_quota_is_that_of_the_books(teams: tuple[model.Queue, ...], seed: int) -> None:
    pick, remembered, jobs, number = random.Random(seed), memory.Memory(), {}, 0
    for _ in range(12):
        for _ in range(pick.randint(0, 3)):
            number += 1
            new = job(pick, number)
            jobs[new.uid] = new
        running = [uid for uid, one in jobs.items() if one.assigned]
        for uid in pick.sample(running, min(len(running), pick.randint(0, 2))):
            ends = jobs[uid].state is model.State.ENDING
            if ends:
                del jobs[uid]
            else:
                jobs[uid] = dataclasses.replace(jobs[uid], state=model.State.ENDING, since=0)
        if pick.random() < 0.2:  # an administrator lowers and raises; nobody is evicted for that
            teams = tuple(
                dataclasses.replace(team, pools=tuple(_other(pick, pool) for pool in team.pools))
                for team in teams
            )
        snapshot = model.Snapshot(NODES, teams, tuple(jobs.values()), NOW, False)
        plan = decide.decide(snapshot, NOW, CONFIG, remembered)
        assert invariants.of_plan(snapshot, plan) == ()
        assert plan.suspend == plan.claim == ()
        jobs |= agrees(snapshot, plan)


def _other(pick: random.Random, pool: model.Pool) -> model.Pool:
    return dataclasses.replace(pool, nominal=tuple((name, pick.randint(0, 12)) for name, _ in pool.nominal))


def agrees(snapshot: model.Snapshot, plan: model.Plan) -> dict[str, model.Job]:
    """Go down the line of the pass with the books in hand; return who starts as the engine would see it."""
    known, books = plan.kept, Books(snapshot.queues)
    assert isinstance(known, kept.Kept)
    for one in snapshot.jobs:
        sums: dict[Key, int] = {}
        for part in one.assigned:
            for key, amount in asked(one, part.pool).items():
                pods = part.bound + part.held
                sums[key] = sums.get(key, 0) + amount * pods // one.groups[0].count
        if sums:
            books.held[one.uid] = one.queue, sums
    admitted = {admission.uid: admission for admission in plan.admit}
    started: dict[str, model.Job] = {}
    failed: set[tuple[str, tuple[model.Group, ...]]] = set()
    for turn in known.line:
        one = turn.job
        pools = [
            pool.name for pool in books.teams[one.queue].pools if books.fits(one.queue, asked(one, pool.name))
        ]
        assert bool(pools) == (one.uid in admitted), (one.uid, pools)
        assert not (pools and (one.queue, one.groups) in failed)
        if not pools:
            failed.add((one.queue, one.groups))
            continue
        place = admitted[one.uid].groups[0]
        assert place.pool == pools[0]
        books.held[one.uid] = one.queue, asked(one, place.pool)
        parts = tuple(model.Assigned(0, place.pool, name, 0, count) for name, count in place.nodes)
        started[one.uid] = dataclasses.replace(one, state=model.State.ADMITTED, since=NOW, assigned=parts)
    for name, team in books.teams.items():
        if team.cohort:
            lends = lending.of(known, name)
            members = [
                uid for uid, (owner, _) in books.held.items() if owner == name and alive(snapshot, uid)
            ]
            order = sorted(members, key=lambda uid: lends.place(known.standings[uid]))
            assert lends.borrowed(name) == books.borrowed(name, order)
    return started


def alive(snapshot: model.Snapshot, uid: str) -> bool:
    return next(job for job in snapshot.jobs if job.uid == uid).state is not model.State.ENDING
