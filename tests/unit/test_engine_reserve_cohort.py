"""Step 6 in a cohort: whom a reservation of one that would borrow does not keep from starting."""

from __future__ import annotations

import dataclasses

from cases import rivals, teams
from cases.teams import HOUR, team
from lstqueue.engine import invariants, model

DAY = 24 * HOUR
A, B = team("a", 12), team("b", 20)


def first(uid: str, node: str, queue: str, mid: int) -> model.Job:
    """A job that runs, before those in line."""
    due = rivals.slack_of(2 * HOUR, ago=HOUR, mid=mid)
    return rivals.runs(uid, node, mid=mid, ago=HOUR, queue=queue, deadline=due)


def held() -> model.Snapshot:
    """Of four nodes one is free and kept, with the next, for a job of queue b, which borrows 12 for it.

    Queue a has 4 of its 12 GPUs left.
    """
    wide = rivals.waits("wide", count=2, slack=DAY, queue="b")
    busy = [first(f"v{i}", f"n{i}", "b", (3 + i) * HOUR) for i in (1, 2)]
    mine = first("v3", "n3", "a", 9 * HOUR)
    snapshot = teams.world(wide, *busy, mine, queues=(A, B), nodes=4)
    plan = teams.passed(snapshot)
    assert [made.uid for made in plan.reserve] == ["wide"]
    return invariants.after(snapshot, plan)


def with_more(snapshot: model.Snapshot, *jobs: model.Job) -> model.Snapshot:
    return dataclasses.replace(snapshot, jobs=(*snapshot.jobs, *jobs))


def later(uid: str, queue: str, gpus: int = 4) -> model.Job:
    """A job behind the owner in line, which would still be there when that starts."""
    return rivals.waits(uid, gpus=gpus, mid=20 * HOUR, slack=3 * DAY, queue=queue)


def test_one_on_nominal_quota_starts_in_what_is_kept_for_a_borrower() -> None:
    plan = teams.passed(with_more(held(), later("j", "a")))
    assert teams.admitted(plan) == {"j"}


def test_of_those_behind_it_only_as_many_do_as_the_nominal_quota_holds() -> None:
    plan = teams.passed(with_more(held(), later("j", "a"), later("k", "a")))
    assert teams.admitted(plan) == {"j"}
    assert teams.code(plan, "k") is model.Code.RESERVED


def test_one_of_the_same_queue_or_that_takes_nothing_back_is_bound() -> None:
    plan = teams.passed(with_more(held(), later("j", "b")))
    assert teams.code(plan, "j") is model.Code.RESERVED
    shy = dataclasses.replace(held(), queues=(dataclasses.replace(A, reclaims=False), B))
    assert teams.code(teams.passed(with_more(shy, later("j", "a"))), "j") is model.Code.RESERVED


def test_a_reservation_on_nominal_quota_binds_the_other_queues() -> None:
    rich = dataclasses.replace(held(), queues=(team("a", 12), team("b", 32)))
    assert teams.code(teams.passed(with_more(rich, later("j", "a"))), "j") is model.Code.RESERVED
