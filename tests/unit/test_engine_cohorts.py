"""Queues of a cohort lend each other quota; who contradicts an older queue stands outside."""

from __future__ import annotations

import dataclasses

from cases import rivals, teams
from cases.teams import GPU, HOUR, team
from lstqueue.engine import cohorts, model, order
from lstqueue.topology.model import Node, resources

A, B = team("a"), team("b")
KEPT = model.Config(shedding=False, reclaims=False)


def waits(uid: str, queue: str = "a", **more: object) -> model.Job:
    return rivals.waits(uid, slack=20 * HOUR, queue=queue, **more)


def runs(uid: str, queue: str = "a", node: str = "n0", **more: object) -> model.Job:
    return rivals.runs(uid, node, queue=queue, **more)


def test_what_a_team_does_not_use_another_may() -> None:
    one, two = waits("one"), waits("two")
    alone = tuple(dataclasses.replace(queue, cohort="") for queue in (A, B))
    plan = teams.passed(teams.world(one, two, queues=alone))
    assert teams.admitted(plan) == {"one"}
    plan = teams.passed(teams.world(one, two, queues=(A, B)))
    assert teams.admitted(plan) == {"one", "two"}


def test_all_of_a_cohort_hold_no_more_than_they_have_together() -> None:
    snapshot = teams.world(*[waits(f"w{i}") for i in range(3)], queues=(A, B), nodes=4)
    plan = teams.passed(snapshot)
    assert teams.admitted(plan) == {"w0", "w1"}
    assert teams.code(plan, "w2") is model.Code.QUOTA_EXCEEDED
    assert teams.words(plan, "w2").startswith(
        'It needs 8 nvidia.com/gpu, and 0 of the 16 of pool "p" in cohort "ml" are free'
    )


def test_a_borrowing_limit_bounds_what_is_taken_beyond_the_nominal_quota() -> None:
    careful = team("a", limit=4)
    snapshot = teams.world(waits("one"), waits("two"), queues=(careful, B))
    plan = teams.passed(snapshot)
    assert teams.admitted(plan) == {"one"}
    assert '4 of the 12 of pool "p" in queue "a" (4 of them borrowed) are free' in teams.words(plan, "two")
    wide = waits("wide", count=2)
    plan = teams.passed(teams.world(wide, queues=(careful, B)))
    assert teams.code(plan, "wide") is model.Code.QUOTA_TOO_SMALL
    assert 'more than the 12 of pool "p" in queue "a" (4 of them borrowed)' in teams.words(plan, "wide")
    half = waits("half", gpus=4)
    assert teams.admitted(teams.passed(teams.world(waits("one"), half, queues=(careful, B)))) == {
        "one",
        "half",
    }
    none = team("a", limit=0)
    assert teams.admitted(teams.passed(teams.world(waits("one"), half, queues=(none, B)))) == {"one"}


def test_a_team_with_nothing_of_its_own_lives_on_what_others_lend() -> None:
    plan = teams.passed(teams.world(waits("guest", "z"), queues=(A, team("z", 0))))
    assert teams.admitted(plan) == {"guest"}


def test_a_lender_waits_for_its_quota_once_it_is_lent() -> None:
    borrowed = runs("v", "b", "n1"), runs("w", "b")
    plan = teams.passed(teams.world(waits("mine"), *borrowed, queues=(A, B)), config=KEPT)
    assert teams.code(plan, "mine") is model.Code.QUOTA_EXCEEDED


def test_pods_that_still_leave_keep_the_quota_of_all() -> None:
    ending = runs("v", "b", state=model.State.ENDING, since=0)
    plan = teams.passed(teams.world(waits("one"), waits("two"), ending, queues=(A, B), nodes=3))
    assert teams.admitted(plan) == {"one"}


def test_a_pool_name_means_the_same_nodes_in_all_of_a_cohort() -> None:
    other = dataclasses.replace(B.pools[0], selector=(("zone", "b"),))
    odd = dataclasses.replace(B, pools=(other,))
    plan = teams.passed(teams.world(waits("one"), waits("two"), waits("x", "b"), queues=(A, odd)))
    assert teams.admitted(plan) == {"one"}
    assert teams.code(plan, "x") is model.Code.QUEUE_CONFLICT
    assert 'pool "p" selects other nodes than in the older queue "a"' in teams.words(plan, "x")


def test_a_cohort_shares_its_nodes_with_nobody_outside() -> None:
    for name, cohort in (("z", "other"), ("z", "")):
        young = team(name, cohort=cohort)
        plan = teams.passed(teams.world(waits("one", "z"), waits("two"), queues=(A, B, young)))
        assert teams.code(plan, "one") is model.Code.QUEUE_CONFLICT
        assert "shares node n0 with the older queue" in teams.words(plan, "one")
        assert teams.admitted(plan) == {"two"}
    apart = dataclasses.replace(young, pools=(model.Pool("q", (("zone", "c"),), nominal=((GPU, 8),)),))
    plan = teams.passed(teams.world(waits("two"), queues=(A, B, apart)))
    assert teams.admitted(plan) == {"two"}


def test_the_older_of_two_stays_whatever_it_is_called() -> None:
    old, young = team("z", created=1, cohort="first"), team("a", created=2, cohort="second")
    node = Node("n0", resources({GPU: 8}))
    settled = cohorts.settle({"a": young, "z": old}, [node])
    assert settled["z"].conflict == ""
    assert 'older queue "z" of cohort "first"' in settled["a"].conflict
    assert cohorts.settle({"a": young, "z": old}, []) == {"a": young, "z": old}
    blocked = team("b", created=3, cohort="third")
    settled = cohorts.settle({"a": young, "z": old, "b": blocked}, [node])
    assert settled["b"].conflict != ""


def test_the_order_of_the_oldest_queue_holds_for_all() -> None:
    old, young = team("z", created=1, order=model.Order.EDF), team("a", created=2)
    settled = cohorts.settle({"a": young, "z": old}, [])
    assert order.policy(settled["a"], model.Config()) is model.Order.EDF
    assert settled["z"] is old


def test_without_cohorts_nothing_is_looked_at() -> None:
    queues = {"q": rivals.QUEUE, "r": dataclasses.replace(rivals.QUEUE, name="r")}
    assert cohorts.settle(queues, [Node("n0", resources({GPU: 8}))]) is queues


def test_in_an_overload_nobody_is_given_up_for_what_another_team_asks() -> None:
    greedy = [rivals.waits(f"w{i:02}", mid=2 * HOUR, slack=4 * HOUR, queue="a") for i in range(12)]
    modest = rivals.waits("x", mid=4 * HOUR, slack=2 * HOUR, queue="b")  # the largest of all
    alone = model.Config(reclaims=False)

    def given_up(*queues: model.Queue) -> set[str]:
        plan = teams.passed(teams.world(modest, *greedy, queues=queues), config=alone)
        return {update.uid for update in plan.updates if update.band is model.Band.SHED}

    assert "x" not in given_up(A, B)
    assert len(given_up(A, B)) > 6
    # One who asks for what it does not have is given up like everybody else.
    assert "x" in given_up(team("a", 16), team("b", 0))
