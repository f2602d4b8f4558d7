"""From the commit to a running gang: children, gates, timeouts, and what a start that fails costs."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import lives, raw
from cases.lives import Life, Phase
from lstqueue.operator import ledger, lifecycle, starts

GANG = {"leader": 1, "worker": 2}


def test_after_the_commit_all_children_are_made_at_once():
    assert Life(GANG).admitted().step().create == (("leader", 0), ("worker", 0))


def test_a_child_whose_creation_was_lost_is_made_again():
    life = Life(GANG).admitted()
    life.make()
    del life.children["worker", 0]
    assert life.step().create == (("worker", 0),)


def test_no_gate_is_lifted_before_every_pod_exists():
    life = Life(GANG).admitted()
    life.make()
    for rank in range(2):
        life.pods.append(life.gated(rank))
        assert life.step().idle
    life.pods.append(life.gated(2))
    assert [rank for *_, rank in life.step().ungate] == [0, 1, 2]


def test_each_rank_is_let_go_to_the_node_that_was_recorded_for_it():
    life = Life(GANG).admitted()
    life.make()
    life.pods = [life.gated(rank) for rank in (2, 0, 1)]
    ungated = life.step().ungate
    assert [(pod.group, pod.index, pool, node, rank) for pod, pool, node, rank in ungated] == [
        ("leader", 0, "a100", "gpu-0", 0),
        ("worker", 0, "a100", "gpu-1", 1),
        ("worker", 1, "a100", "gpu-2", 2),
    ]


def test_after_a_crash_half_way_only_the_rest_is_let_go():
    life = Life(GANG).admitted()
    life.make()
    life.pods = [life.let_go(0), life.let_go(1, bound=False), life.gated(2)]
    assert [rank for *_, rank in life.step().ungate] == [2]


def test_ranks_that_are_through_are_neither_expected_nor_let_go_again():
    life = Life({"worker": 3}).admitted()
    life.make(completedIndexes="1")
    life.pods = [life.gated(0), life.gated(1), life.gated(2)]
    assert [rank for *_, rank in life.step().ungate] == [0, 2]


def test_nothing_is_let_go_while_a_predecessor_holds_its_place():
    life = Life().admitted()
    life.make()
    old = raw.leaving(life.let_go(1, ready=True))
    life.pods = [life.gated(0), old, life.gated(1, suffix="bbbbb")]
    assert life.step().idle
    life.pods[1] = raw.touched(old, status={"phase": "Failed"})
    life.pods[1]["metadata"]["labels"]["lstqueue.dev/restart"] = "7"
    assert len(life.step().ungate) == 2


def test_a_second_pod_of_a_rank_is_never_let_go_beside_the_first():
    life = Life().started(ready=False)
    life.pods.append(life.gated(1, suffix="bbbbb"))
    assert life.step().idle
    life.pods = [life.gated(0), life.gated(1), life.gated(1, suffix="bbbbb")]
    assert [rank for *_, rank in life.step().ungate] == [0, 1]


@pytest.mark.parametrize("spoil", ["owner", "index", "group", "restart"])
def test_pods_that_only_look_like_members_are_left_alone(spoil):
    life = Life(GANG).admitted()
    life.make()
    odd = life.gated(2)
    labels = odd["metadata"]["labels"]
    if spoil == "owner":
        odd["metadata"]["ownerReferences"][0]["uid"] = "uid-of-an-earlier-job"
    elif spoil == "index":
        labels["batch.kubernetes.io/job-completion-index"] = "2"
    else:
        labels[f"lstqueue.dev/{spoil}"] = "9"
    life.pods = [life.gated(0), life.gated(1), odd]
    assert life.step().idle


def test_the_gang_runs_when_every_member_is_ready_or_through():
    life = Life(GANG).started()
    life.set(back_off=ledger.BackOff(raw.NOW, 2, ("gpu-9",)))
    life.replace_pod(1, life.let_go(1, phase="Succeeded"))
    status = life.outcome(raw.NOW + 5)
    assert (status.phase, status.started, status.back_off) == (Phase.RUNNING, raw.NOW + 5, ledger.NO_BACK_OFF)
    life.replace_pod(2, life.let_go(2))
    assert life.step().idle


def test_a_node_that_became_unfit_costs_nothing_before_a_pod_was_let_go():
    life = Life().admitted()
    life.make()
    life.pods = [life.gated(0), life.gated(1)]
    life.unfit = {"gpu-1"}
    status = life.outcome()
    assert (status.phase, status.admission, status.back_off.count) == (Phase.PENDING, None, 0)
    life.pods[0] = life.let_go(0)
    assert life.step().ungate


@pytest.mark.parametrize("left", ["a pod of a Job deleted since", "a write whose fate is not known"])
def test_nothing_is_rolled_back_while_a_pod_may_have_been_let_go(left):
    life = Life().started()
    life.unfit = {"gpu-1"}
    if left == "a write whose fate is not known":
        life.pods = [life.gated(0), life.gated(1)]
        life.ungated_at = life.status.admission.at
        assert life.step().ungate
    else:
        del life.children["worker", 0]
        assert life.outcome().suspension == ledger.GANG_FAILED


@pytest.mark.parametrize("broken", ["shape", "rank"])
def test_an_admission_that_is_not_of_this_very_gang_is_rolled_back(broken):
    life = Life().admitted()
    placed = life.status.admission
    if broken == "shape":
        life.set(admission=dataclasses.replace(placed, shape="0000"))
    else:
        life.set(admission=dataclasses.replace(placed, groups=(lives_group(placed),)))
    assert life.outcome().phase is Phase.PENDING


def lives_group(placed):
    return dataclasses.replace(placed.groups[0], nodes=placed.groups[0].nodes[:1])


def test_an_admitted_job_without_an_admission_waits_again():
    life = Life().admitted()
    life.set(admission=None)
    assert life.outcome().phase is Phase.PENDING


def test_a_suspended_child_is_resumed_and_an_older_one_that_never_failed_is_thrown_away():
    life = Life().admitted(restarts=1)
    life.make(restart=0, suspend=True)
    life.make(suspend=True)
    (older,) = life.step().discard
    assert older.restart == 0
    life.children["worker", 0] = raw.leaving(life.children["worker", 0])
    assert [child.restart for child in life.step().resume] == [1]
    life.children["worker", 1] = raw.child(life.job, restart=1)
    assert life.step().idle


def test_an_older_child_that_failed_keeps_its_logs():
    life = Life().admitted(restarts=1)
    life.make(restart=0, **raw.ended("Failed"))
    assert life.step().create == (("worker", 1),)


def late(life, by=lives.READY_TIMEOUT):
    return life.outcome(raw.NOW + by)


@pytest.mark.parametrize("stage", ["nothing", "leaving", "suspended", "no pods", "gated", "bound"])
def test_whatever_keeps_a_gang_from_starting_ends_with_the_timeout(stage):
    life = Life().admitted()
    if stage != "nothing":
        life.make(suspend=stage == "suspended")
    if stage == "leaving":
        life.children["worker", 0] = raw.leaving(life.children["worker", 0])
    if stage == "gated":
        life.pods = [life.gated(0)]
    if stage == "bound":
        life.pods = [life.let_go(0, ready=True), life.let_go(1)]
    assert life.step(raw.NOW + lives.READY_TIMEOUT - 1).status is None
    status = late(life)
    assert (status.phase, status.suspension) == (Phase.SUSPENDING, ledger.FAILED_START)
    assert (status.admission, status.back_off.count) == (None, 1)


def test_a_gang_that_is_ready_at_the_last_moment_runs():
    assert late(Life().started()).phase is Phase.RUNNING


def test_a_pod_that_is_not_bound_in_time_fails_the_start_and_only_its_node_is_avoided():
    life = Life(GANG).started(ready=False)
    life.replace_pod(1, life.let_go(1, bound=False))
    life.ungated_at = raw.NOW + raw.MINUTE
    bind_by = life.ungated_at + lives.BIND_TIMEOUT
    assert life.step(bind_by - 1).wake == bind_by
    assert life.outcome(bind_by).back_off.avoid == ("gpu-1",)


def test_gates_lifted_for_an_earlier_restart_are_no_measure_of_this_one():
    life = Life().started(ready=False, at=raw.NOW)
    life.replace_pod(1, life.let_go(1, bound=False))
    life.ungated_at = raw.NOW - raw.HOUR
    assert life.step(raw.NOW + lives.BIND_TIMEOUT - 1).status is None


def test_a_process_that_does_not_know_when_gates_were_lifted_waits_anew_up_to_the_start_timeout():
    life = Life().started(ready=False)
    life.replace_pod(1, life.let_go(1, bound=False))
    assert life.step(raw.NOW + lives.READY_TIMEOUT - 1).wake == raw.NOW + lives.READY_TIMEOUT
    assert late(life).phase is Phase.SUSPENDING


def test_a_gate_of_somebody_else_is_nobodys_nodes_fault():
    life = Life().started(ready=False)
    held = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    life.replace_pod(1, life.let_go(1, bound=False, conditions=[held]))
    assert late(life).back_off.avoid == ()


def test_the_user_is_told_which_member_was_stuck_and_in_whose_words():
    life = Life(GANG).started(ready=False)
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    life.pods = [
        life.let_go(0, ready=True),
        life.let_go(1, containerStatuses=[waiting]),
        life.let_go(2, ready=True),
    ]
    step = life.step(raw.NOW + lives.READY_TIMEOUT)
    assert "rank 1" in step.why
    assert "ImagePullBackOff: no such image" in step.why
    assert step.status.back_off.avoid == ("gpu-1",)
    life.pods = [life.gated(0), life.gated(2)]
    step = life.step(raw.NOW + lives.READY_TIMEOUT)
    assert "rank 1 of default/train has no pod" in step.why
    assert step.status.back_off.avoid == ()


@given(st.integers(1, 10_000), st.none() | st.integers(-(10**12), 10**12))
def test_a_back_off_is_never_a_hot_loop_nor_endless(count, slack):
    wait = starts.back_off(count, slack)
    assert raw.MINUTE // 2 <= wait <= 30 * raw.MINUTE
    assert starts.back_off(count + 1, slack) >= wait
    if slack is not None and slack > 0:
        assert wait <= max(slack // 4, raw.MINUTE // 2)


def test_back_offs_double_from_a_minute():
    assert [starts.back_off(count, None) // raw.MINUTE for count in range(1, 8)] == [
        1,
        2,
        4,
        8,
        16,
        30,
        30,
    ]


def test_failed_starts_in_a_row_add_up():
    life = Life().admitted(back_off=ledger.BackOff(raw.NOW - 1, 2, ("gpu-9",)))
    failed = late(life).back_off
    now = raw.NOW + lives.READY_TIMEOUT
    assert (failed.count, failed.until, failed.avoid) == (3, now + 4 * raw.MINUTE, ("gpu-9",))


def test_a_start_that_the_api_server_refuses_backs_off_and_blames_no_node():
    life = Life().admitted()
    gang = lifecycle.Gang(life.seen, (), (), 0, 1, 1, lambda *_: True)
    step = lifecycle.refused(gang, raw.NOW, "quota exceeded")
    assert step.why == "quota exceeded"
    assert (step.status.phase, step.status.back_off.count) == (Phase.SUSPENDING, 1)
    assert step.status.back_off.avoid == ()


def test_nodes_are_avoided_for_a_while_and_not_for_ever():
    life = Life()
    failed = ledger.BackOff(raw.NOW + raw.MINUTE, 1, ("gpu-0",))
    life.set(back_off=failed)
    until = starts.avoided_until(failed)
    assert until == failed.until + raw.MINUTE
    assert life.step(until - 1).wake == until
    assert life.outcome(until).back_off == dataclasses.replace(failed, avoid=())
    life.set(back_off=life.outcome(until).back_off)
    assert life.step(until + raw.HOUR) == lifecycle.IDLE
