"""What was lent is taken back: from whom, by whom, when, and from whom never."""

from __future__ import annotations

import dataclasses

from cases import rivals, teams
from cases.teams import HOUR, MINUTE, NOW, team
from lstqueue.engine import decide, explain, model

A, B, C = team("a"), team("b"), team("c")


def lender(uid: str = "j", queue: str = "a", **more: object) -> model.Job:
    """A job with time to spare, of a queue that has the quota for it."""
    return rivals.waits(uid, slack=40 * HOUR, queue=queue, **more)


def runs(uid: str, queue: str = "b", node: str = "n0", **more: object) -> model.Job:
    return rivals.runs(uid, node, queue=queue, **more)


def lent(*more: model.Job, nodes: int = 2, **of_j: object) -> model.Snapshot:
    """Queue a has lent its 8 GPUs to b, which uses 16."""
    rest = [job for job in (runs("v"), runs("w", node="n1")) if job.uid not in {one.uid for one in more}]
    return teams.world(lender(**of_j), *rest, *more, queues=(A, B), nodes=nodes)


def taken(plan: model.Plan) -> dict[str, set[str]]:
    return {one.uid: {victim.uid for victim in one.claim.victims} for one in plan.claim}


def written(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """The world once the claims of a plan are written."""
    claims = {one.uid: one for one in plan.claim}
    jobs: list[model.Job] = []
    for job in snapshot.jobs:
        if (made := claims.get(job.uid)) is not None:
            claim = dataclasses.replace(made.claim, committed=True)
            job = dataclasses.replace(job, state=model.State.CLAIMING, claim=claim)
        jobs.append(job)
    last = {one.queue: plan.now for one in plan.claim if one.reclaims}
    return dataclasses.replace(snapshot, jobs=tuple(jobs), reclaimed={**snapshot.reclaimed, **last})


def test_a_lender_has_back_what_it_lent_without_waiting_for_its_last_moment() -> None:
    snapshot = lent()
    plan = teams.passed(snapshot)
    assert taken(plan) == {"j": {"w"}}
    (claiming,) = plan.claim
    assert claiming.reclaims
    then = teams.passed(written(snapshot, plan), now=NOW + 1000)
    assert [(one.uid, one.why, one.for_uid) for one in then.suspend] == [("w", model.Why.RECLAIMED, "j")]


def test_a_job_without_a_deadline_takes_back_as_well() -> None:
    plan = teams.passed(lent(deadline=None, estimate=None))
    assert taken(plan) == {"j": {"w"}}


def test_only_borrowed_jobs_are_taken_and_those_are_the_last_in_the_order_of_their_queue() -> None:
    first = runs("v", deadline=rivals.slack_of(30 * HOUR))
    plan = teams.passed(lent(first))
    assert taken(plan) == {"j": {"w"}}
    # What fits in what its own queue has is nobody's, whoever lacks room.
    plan = teams.passed(teams.world(lender(), runs("v"), queues=(A, B), nodes=1))
    assert plan.claim == ()


def test_those_go_first_whom_it_does_no_harm_then_the_lowest_in_rank() -> None:
    tight = dataclasses.replace(B, pools=team("b", 0).pools)
    hurt = [runs(f"v{i}", node=f"n{i}", deadline=rivals.slack_of((i + 1) * HOUR // 4)) for i in range(2)]
    spared = runs("w", node="n2", deadline=rivals.slack_of(90 * HOUR))
    queues = (A, tight, dataclasses.replace(C, pools=team("c", 16).pools))
    plan = teams.passed(teams.world(lender(), *hurt, spared, queues=queues, nodes=3))
    assert taken(plan) == {"j": {"w"}}
    third = runs("v2", node="n2", deadline=rivals.slack_of(HOUR // 8))
    plan = teams.passed(teams.world(lender(), *hurt, third, queues=queues, nodes=3))
    assert taken(plan) == {"j": {"v1"}}


def test_a_minimum_run_protects_no_longer_than_the_grace() -> None:
    young = [runs("v", ago=10 * MINUTE, min_run=HOUR), runs("w", node="n1", ago=10 * MINUTE, min_run=HOUR)]
    plan = teams.passed(lent(*young))
    assert plan.claim == ()
    assert plan.wake_at == NOW + 5 * MINUTE
    assert taken(teams.passed(lent(*young), now=NOW + 5 * MINUTE)) == {"j": {"w"}}


def test_a_cap_does_not_protect_but_not_being_preemptible_does() -> None:
    often = [dataclasses.replace(runs(uid, node=node), suspensions=(NOW - HOUR,) * 4) for uid, node in PLACES]
    assert taken(teams.passed(lent(*often))) == {"j": {"w"}}
    fixed = [dataclasses.replace(job, preemptible=False) for job in often]
    assert teams.passed(lent(*fixed)).claim == ()


PLACES = (("v", "n0"), ("w", "n1"))


def test_who_ends_before_long_is_waited_for() -> None:
    ends = [runs(uid, node=node, ago=5 * HOUR, mid=5 * HOUR + 10 * MINUTE, saves_on_suspend=False)
            for uid, node in PLACES]  # fmt: skip
    assert teams.passed(lent(*ends)).claim == ()


def test_a_queue_takes_back_on_one_occasion_per_grace() -> None:
    again = dataclasses.replace(lent(), reclaimed={"a": NOW - 10 * MINUTE})
    plan = teams.passed(again)
    assert plan.claim == ()
    assert plan.wake_at is not None
    assert plan.wake_at <= NOW + 5 * MINUTE
    assert taken(teams.passed(again, now=NOW + 5 * MINUTE)) == {"j": {"w"}}


def test_who_took_back_and_is_gone_or_elsewhere_leaves_the_occasion_with_its_queue() -> None:
    """j takes back, ends at once, and k of the same queue, or j of another, wants the next."""
    snapshot = dataclasses.replace(lent(), queues=(team("a"), B, team("c")))
    snapshot = dataclasses.replace(written(snapshot, teams.passed(snapshot)), jobs=lent(uid="k").jobs)
    assert teams.passed(snapshot, now=NOW + 5 * MINUTE).claim == ()
    moved = dataclasses.replace(snapshot, jobs=lent(queue="c").jobs)
    assert taken(teams.passed(moved, now=NOW + 5 * MINUTE)) == {"j": {"w"}}


def test_on_one_occasion_many_jobs_take_back() -> None:
    halves = [lender(uid, gpus=4) for uid in ("j", "k")]
    small = [runs(uid, node=node, gpus=4) for uid, node in (*PLACES, ("x", "n1"), ("a", "n0"))]
    plan = teams.passed(teams.world(*halves, *small, queues=(A, B)))
    assert taken(plan) == {"j": {"w"}, "k": {"x"}}


def test_a_job_beyond_its_nominal_quota_takes_nothing_back() -> None:
    mine = runs("m", "a", "n2", deadline=rivals.slack_of(HOUR))
    big = dataclasses.replace(C, pools=team("c", 8).pools)
    plan = teams.passed(
        teams.world(lender(), mine, runs("v"), runs("w", node="n1"), queues=(A, B, big), nodes=3)
    )
    assert plan.claim == ()


def test_a_queue_that_does_not_reclaim_waits() -> None:
    shy = dataclasses.replace(A, reclaims=False)
    snapshot = dataclasses.replace(lent(), queues=(shy, B))
    assert teams.passed(snapshot).claim == ()


def test_at_its_last_moment_a_borrower_takes_from_others_only_borrowed_work_without_a_deadline() -> None:
    small, whole = team("a", 0), team("c", 16)
    urgent = rivals.waits("j", queue="a")
    loose = [runs("v", deadline=rivals.slack_of(90 * HOUR)), runs("w", node="n1")]
    plan = teams.passed(teams.world(urgent, *loose, queues=(small, team("b", 0), whole)))
    assert taken(plan) == {"j": {"w"}}
    assert not plan.claim[0].reclaims
    due = [
        runs("v", deadline=rivals.slack_of(90 * HOUR)),
        runs("w", node="n1", deadline=rivals.slack_of(91 * HOUR)),
    ]
    assert teams.passed(teams.world(urgent, *due, queues=(small, team("b", 0), whole))).claim == ()
    nominal = (small, team("b", 16))
    assert teams.passed(teams.world(urgent, *loose, queues=nominal)).claim == ()


def test_a_tier_counts_within_its_own_queue_alone() -> None:
    tiers = team("a", 0, preemption=model.Preemption.TIER)
    late = runs("v", deadline=rivals.slack_of(HOUR)), runs("w", node="n1", deadline=rivals.slack_of(HOUR))
    urgent = rivals.waits("j", queue="a", importance=3)
    plan = teams.passed(teams.world(urgent, *late, queues=(tiers, team("b", 0), team("c", 16))))
    assert plan.claim == ()
    own = [dataclasses.replace(job, queue="a") for job in late]
    assert taken(teams.passed(teams.world(urgent, *own, queues=(tiers, team("c", 16))))) == {"j": {"v"}}


def test_lowered_quotas_and_held_queues_evict_nobody() -> None:
    busy = runs("v"), runs("w", node="n1")
    for queue in (team("b", 0), team("b", 0, limit=0), dataclasses.replace(B, held=True)):
        plan = teams.passed(teams.world(*busy, queues=(A, queue)))
        assert (plan.suspend, plan.claim) == ((), ())
    drained = dataclasses.replace(B, held=True, drained=True)
    assert {one.uid for one in teams.passed(teams.world(*busy, queues=(A, drained))).suspend} == {"v", "w"}


def test_a_claim_is_given_up_once_its_victims_are_not_borrowed_any_more() -> None:
    snapshot = lent()
    claimed = written(snapshot, teams.passed(snapshot))
    gone = dataclasses.replace(claimed, jobs=tuple(job for job in claimed.jobs if job.uid != "v"))
    plan = teams.passed(gone, now=NOW + 1000)
    assert plan.admit == ()
    assert [one.uid for one in plan.drop] == ["j"]
    assert "may not be suspended for it any more" in plan.drop[0].why


def test_who_waits_reads_why_nobody_gives_back() -> None:
    def told(snapshot: model.Snapshot) -> str:
        return explain.explain(snapshot, teams.passed(snapshot), "j").preemption

    shy = dataclasses.replace(lent(), queues=(dataclasses.replace(A, reclaims=False), B))
    assert 'Queue "a" takes nothing back that it lent.' in told(shy)
    young = lent(*[runs(uid, node=node, ago=MINUTE) for uid, node in PLACES])
    assert 'Of 1 job in cohort "ml" that run on borrowed quota 0 may be suspended' in told(young)
    poor = dataclasses.replace(lent(), queues=(team("a", 0), team("b", 16)))
    assert 'Queue "a" would have to borrow for it' in told(poor)
    again = dataclasses.replace(lent(), reclaimed={"a": NOW - 10 * MINUTE})
    assert "may take back what it lent in 5m again: it does so once in 15m" in told(again)


def test_guests_leave_for_a_slot_whatever_their_queue_but_not_where_nobody_ever_does() -> None:
    config = dataclasses.replace(rivals.CONFIG, promising=True)
    place = (model.GroupPlacement("p", (("n0", 1),)),)
    ends = NOW + 2 * HOUR + 8 * MINUTE
    owner = lender(deadline=ends, slot=model.Slot(place, NOW, ends, 2 * HOUR))

    def plan(*queues: model.Queue) -> model.Plan:
        snapshot = teams.world(owner, runs("v"), queues=queues, nodes=1)
        return decide.decide(snapshot, NOW, config)

    assert taken(plan(A, B)) == taken(plan(A, team("b", 0))) == {"j": {"v"}}
    assert plan(A, dataclasses.replace(B, preemption=model.Preemption.NEVER)).claim == ()


def test_best_effort_work_in_its_turn_keeps_the_claim_that_its_turn_gave_it() -> None:
    queues = (
        dataclasses.replace(A, pools=team("a", 12).pools),
        dataclasses.replace(B, pools=team("b", 4).pools),
    )
    mine = runs("x", queue="a", deadline=rivals.slack_of(30 * HOUR))
    jobs = (lender(deadline=None), mine, runs("w", node="n1"))
    snapshot = teams.world(*jobs, queues=queues, nodes=2)
    plan = teams.passed(snapshot)
    assert taken(plan) == {"j": {"w"}}
    then = teams.passed(written(snapshot, plan), now=NOW + 1000)
    assert then.drop == ()
    assert [one.uid for one in then.suspend] == ["w"]
