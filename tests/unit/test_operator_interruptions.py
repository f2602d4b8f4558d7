"""What stops a gang besides its own end, one moment at a time."""

import pytest

from cases import raw
from cases.lives import Life, Phase
from lstqueue.engine import model
from lstqueue.operator import ledger, lifecycle, starts

GANG = {"leader": 1, "worker": 2}


@pytest.mark.parametrize("phase", [Phase.ADMITTED, Phase.RUNNING])
def test_a_paused_gang_stops_and_gives_its_room_back(phase):
    life = Life(GANG, active=False).running()
    life.set(phase=phase)
    status = life.outcome()
    assert (status.phase, status.suspension, status.admission) == (Phase.SUSPENDING, ledger.INACTIVE, None)
    assert status.back_off == ledger.NO_BACK_OFF


def test_a_paused_gang_of_which_nobody_was_let_go_is_queued_at_once():
    life = Life(GANG, active=False).admitted()
    life.make()
    life.pods = [life.gated(rank) for rank in range(3)]
    assert life.outcome().phase is Phase.PENDING
    life.ungated_at = raw.NOW
    assert life.outcome().phase is Phase.SUSPENDING


def test_a_job_suspended_by_hand_asks_for_a_pause_before_its_pods_count_as_failed():
    life = Life(GANG, backoffLimit=0).running()
    life.children["worker", 0] = raw.suspended(life.children["worker", 0])
    life.replace_pod(1, raw.leaving(life.let_go(1, phase="Failed")))
    step = life.step()
    assert step.pause
    assert step.status is None
    assert "group worker was suspended" in step.why


def test_a_job_that_was_never_resumed_in_this_attempt_was_not_suspended_by_hand():
    life = Life(GANG).admitted()
    life.make(suspend=True)
    assert [child.group for child in life.step().resume] == ["leader", "worker"]


@pytest.mark.parametrize("phase", [Phase.ADMITTED, Phase.RUNNING])
def test_a_lost_node_stops_the_gang_before_its_pods_are_evicted(phase):
    life = Life(GANG, backoffLimit=0).running()
    life.set(phase=phase)
    life.lost = {"gpu-1": "is not ready"}
    step = life.step()
    status = step.status
    assert (status.phase, status.suspension, status.admission) == (Phase.SUSPENDING, ledger.NODE_LOST, None)
    assert step.why == "node gpu-1 of pod train-worker-0-0-aaaaa is not ready"
    assert (status.back_off.count, status.back_off.avoid) == (0, ("gpu-1",))
    assert status.back_off.until <= raw.NOW


def test_the_node_of_a_member_that_is_through_may_be_lost():
    life = Life(GANG).running()
    life.replace_pod(1, life.let_go(1, phase="Succeeded"))
    life.lost = {"gpu-1": "is gone"}
    assert life.step().idle


def test_pods_on_a_dead_node_do_not_block_and_the_next_run_gets_new_jobs():
    life = Life(GANG).suspending(ledger.NODE_LOST, admission=None)
    life.pods = [raw.leaving(life.let_go(0)), raw.leaving(life.let_go(1))]
    life.stale = {"gpu-1"}
    assert life.step().idle
    del life.pods[0]
    status = life.outcome()
    assert (status.phase, status.restarts, status.disruptions) == (Phase.PENDING, 1, 1)


def test_what_is_stuck_on_a_dead_node_does_not_keep_the_next_run_from_starting():
    life = Life().running()
    left = raw.leaving(life.pods[1])
    life.admitted(attempt=2, restarts=1)
    life.make(restart=1)
    life.pods = [left, life.gated(0), life.gated(1)]
    old = life.children.pop(("worker", 0))
    life.children["worker", 0] = raw.touched(old, status=raw.ended("Failed"))
    assert life.step().idle
    life.stale = {"gpu-1"}
    assert len(life.step().ungate) == 2


@pytest.mark.parametrize("reason", [ledger.PREEMPTED, ledger.INACTIVE, "QueueDrained"])
def test_a_suspended_gang_keeps_its_jobs_unless_a_member_is_through(reason):
    life = Life(GANG).suspending(reason, admission=None, suspended_for="uid-j")
    life.pods = []
    status = life.outcome()
    assert (status.phase, status.restarts, status.suspension) == (Phase.PENDING, 0, "")
    assert status.suspended_for == ""
    done = raw.touched(life.children["worker", 0], status={"completedIndexes": "0"})
    life.children["worker", 0] = done
    status = life.outcome()
    assert (status.restarts, status.disruptions) == (1, 1)


def test_nodes_that_were_lost_are_forgiven_after_a_few_minutes():
    life = Life()
    avoided = starts.avoiding(life.status, ["gpu-1"], raw.NOW)
    life.set(back_off=avoided.back_off)
    until = starts.avoided_until(life.status.back_off)
    assert until == raw.NOW + starts.SHORTLY
    assert life.step().wake == until
    assert life.outcome(until).back_off == ledger.NO_BACK_OFF


def test_a_gang_that_stays_incomplete_is_queued_and_avoids_the_node():
    life = Life(GANG).running()
    life.replace_pod(1, life.let_go(1, ready=False))
    life.unready_since = raw.NOW
    due = raw.NOW + 10 * raw.MINUTE
    assert life.step().wake == due
    step = life.step(due)
    assert (step.status.suspension, step.status.back_off.avoid) == (ledger.NOT_READY, ("gpu-1",))
    assert "has not been ready for 10 min" in step.why


def test_a_run_has_a_limit():
    life = Life(GANG, maxRunTime="2h").running()
    due = raw.NOW + 2 * raw.HOUR
    assert life.step().wake == due
    assert life.step(due - 1).idle
    step = life.step(due)
    assert (step.status.phase, step.why) == (Phase.FAILED, "MaxRunTimeExceeded")
    life.end("leader", "Complete")
    life.end("worker", "Complete")
    assert life.outcome(due).phase is Phase.SUCCEEDED


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.CLAIMING, Phase.ADMITTED, Phase.RUNNING])
def test_a_missed_deadline_cancels_only_once_it_has_passed(phase):
    life = Life(deadlineIn="20m", onMissed="Cancel")
    if phase is Phase.CLAIMING:
        life.claiming()
    elif phase is not Phase.PENDING:
        life.started(ready=phase is Phase.RUNNING)
        life.ungated_at = raw.NOW
        life.set(phase=phase, started=raw.NOW)
    due = raw.NOW + 20 * raw.MINUTE
    assert life.step(due).why == "DeadlineMissed"
    assert life.outcome(due).phase is phase
    status = life.outcome(due + 1)
    assert (status.phase, status.claim, status.admission) == (Phase.FAILED, None, None)
    life.set(best_effort=True)
    assert life.outcome(due + 1).phase is not Phase.FAILED


def impossible(policy, **more):
    life = Life(deadlineIn="1h", onInfeasible=policy)
    verdict = model.Verdict(model.Level.IMPOSSIBLE, "It needs 9h.")
    life.set(published=model.Published(verdict=verdict), **{"observed": 1, **more})
    return life


def test_an_impossible_deadline_is_what_its_user_makes_of_it():
    assert impossible("Queue").step().idle
    step = impossible("Reject").step()
    assert (step.status.phase, step.why, step.words) == (Phase.REJECTED, "Infeasible", "It needs 9h.")
    assert impossible("Reject", attempt=1).step().idle
    assert impossible("BestEffort").outcome().best_effort
    assert impossible("BestEffort", best_effort=True).step().idle
    assert impossible("Reject", observed=0).step().idle


def test_a_claim_ends_with_the_will_to_run():
    life = Life().claiming()
    assert life.step().idle
    paused = Life(active=False).claiming()
    assert (paused.outcome().phase, paused.outcome().claim) == (Phase.PENDING, None)


def test_it_is_removed_when_it_has_been_over_for_long_enough():
    life = Life(ttlSecondsAfterFinished=60)
    life.set(phase=Phase.SUCCEEDED, completed=raw.NOW)
    assert life.step().wake == raw.NOW + raw.MINUTE
    assert life.step(raw.NOW + raw.MINUTE).remove
    life.make()
    assert not life.step(raw.NOW + raw.MINUTE).remove
    kept = Life()
    kept.set(phase=Phase.SUCCEEDED, completed=raw.NOW)
    assert kept.step(raw.NOW + raw.HOUR) == lifecycle.IDLE
