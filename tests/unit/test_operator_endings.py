"""How a gang ends or begins again: success, failures, evictions, refusals, and what others do to its Jobs."""

import pytest

from cases import raw
from cases.lives import Life, Phase
from lstqueue.api import conditions, times
from lstqueue.operator import ledger, lifecycle

GANG = {"leader": 1, "worker": 2}
LATER = raw.NOW + raw.HOUR


def test_all_groups_complete_is_success_at_the_time_of_the_last():
    life = Life(GANG).running()
    life.end("leader", "Complete", completionTime="2026-03-01T18:40:00Z")
    assert life.step(LATER).idle
    life.end("worker", "Complete", completionTime="2026-03-01T18:50:00Z")
    status = life.outcome(LATER)
    assert (status.phase, status.admission) == (Phase.SUCCEEDED, None)
    assert times.format(status.completed) == "2026-03-01T18:50:00Z"


def test_where_the_leader_decides_its_success_is_enough_and_the_rest_is_ended():
    life = Life(GANG, successPolicy="Leader").running()
    life.end("leader", "Complete", completionTime="2026-03-01T18:40:00Z")
    assert life.outcome(LATER).phase is Phase.SUCCEEDED
    life.set(phase=Phase.SUCCEEDED, admission=None)
    assert [child.group for child in life.step(LATER).suspend] == ["worker"]


def test_the_success_of_a_worker_group_is_not_that_of_the_leader():
    life = Life(GANG, successPolicy="Leader").running()
    life.end("worker", "Complete")
    assert life.step(LATER).idle


def test_a_gang_may_be_through_before_it_was_ever_seen_ready():
    life = Life().started(ready=False)
    life.end("worker", "Complete", completionTime="2026-03-01T18:00:01Z")
    assert life.outcome().phase is Phase.SUCCEEDED


def test_workers_that_fail_when_their_leader_is_through_do_not_fail_the_gang():
    life = Life(GANG, successPolicy="Leader").running()
    life.replace_pod(0, life.let_go(0, phase="Succeeded"))
    life.replace_pod(1, life.let_go(1, phase="Failed"))
    assert life.step().idle
    life.end("worker", "Failed")
    assert life.step().idle
    life.end("leader", "Complete")
    assert life.outcome().phase is Phase.SUCCEEDED


def test_a_success_that_a_failure_overtook_is_still_one():
    life = Life(GANG, successPolicy="Leader").suspending(ledger.GANG_FAILED)
    life.pods = [life.let_go(0, phase="Succeeded")]
    assert life.step().idle
    life.end("leader", "Complete", completionTime="2026-03-01T18:40:00Z")
    assert life.outcome().phase is Phase.SUCCEEDED


def test_a_leader_that_ends_well_because_it_was_told_to_leave_did_not_succeed():
    life = Life(GANG, successPolicy="Leader").suspending(ledger.GANG_FAILED)
    life.pods = [raw.leaving(life.let_go(0, phase="Succeeded"))]
    assert life.outcome().phase is Phase.ADMITTED


@pytest.mark.parametrize("phase", [Phase.ADMITTED, Phase.RUNNING])
def test_one_failed_member_stops_the_gang_which_keeps_its_hold(phase):
    life = Life(GANG).running()
    life.set(phase=phase)
    life.replace_pod(2, life.let_go(2, phase="Failed", reason="Error", message="exit code 3"))
    step = life.step(LATER)
    assert (step.status.phase, step.status.suspension) == (Phase.SUSPENDING, ledger.GANG_FAILED)
    assert (step.status.since, step.status.admission) == (LATER, life.status.admission)
    assert "failed on node gpu-2: Error: exit code 3" in step.why


def test_a_pod_deleted_by_hand_fails_its_job_and_so_the_gang():
    life = Life(GANG).running()
    life.replace_pod(1, raw.leaving(life.pods[1]))
    assert life.step().idle
    life.end("worker", "FailureTarget", reason="BackoffLimitExceeded")
    assert life.outcome().suspension == ledger.GANG_FAILED


@pytest.mark.parametrize("how", ["gone", "leaving"])
def test_a_job_that_somebody_else_deletes_stops_the_gang(how):
    life = Life(GANG).running()
    key = "worker", 0
    if how == "gone":
        del life.children[key]
    else:
        life.children[key] = raw.leaving(life.children[key])
    step = life.step()
    assert step.status.suspension == ledger.GANG_FAILED
    assert "group worker" in step.why


def test_a_gang_that_has_no_restart_left_gives_up_its_hold_at_once_and_fails_when_its_pods_are_gone():
    life = Life(backoffLimit=2).running(restarts=5, disruptions=3)
    life.replace_pod(0, life.let_go(0, phase="Failed"))
    status = life.outcome()
    assert (status.phase, status.admission) == (Phase.SUSPENDING, None)
    life.set(phase=status.phase, suspension=status.suspension, admission=None)
    life.suspend_all()
    assert life.step().idle
    life.pods.pop()
    status = life.outcome(LATER)
    assert (status.phase, status.completed, status.admission) == (Phase.FAILED, LATER, None)


@pytest.mark.parametrize("unfit", ["node", "success", "lost Job"])
def test_a_hold_that_is_not_whole_any_more_is_given_up(unfit):
    life = Life(GANG).running()
    life.replace_pod(2, life.let_go(2, phase="Failed"))
    if unfit == "node":
        life.unfit = {"gpu-0"}
    elif unfit == "success":
        life.children["worker", 0] = raw.touched(life.children["worker", 0], status={"completedIndexes": "0"})
        del life.pods[1]
    else:
        del life.children["leader", 0]
    status = life.outcome()
    assert (status.phase, status.admission) == (Phase.SUSPENDING, None)
    life.set(phase=status.phase, suspension=status.suspension, admission=None)
    life.pods = []
    life.suspend_all()
    status = life.outcome()
    assert (status.phase, status.restarts, status.attempt) == (Phase.PENDING, 1, 1)


def test_stopping_suspends_what_runs_and_waits_for_the_last_pod():
    life = Life(GANG).suspending(ledger.GANG_FAILED)
    life.end("leader", "Failed")
    life.children["worker", 0] = raw.suspended(life.children["worker", 0], False)
    assert [child.group for child in life.step().suspend] == ["worker"]
    life.children["worker", 0] = raw.suspended(life.children["worker", 0])
    life.pods = [life.let_go(0, phase="Failed"), raw.leaving(life.let_go(1)), life.gated(2)]
    assert life.step().idle
    life.pods.pop()
    assert life.step().idle
    life.pods.pop()
    assert life.outcome().phase is Phase.ADMITTED


def test_a_failed_gang_begins_again_in_its_place_with_new_names():
    life = Life(GANG).suspending(ledger.GANG_FAILED)
    life.pods = [life.let_go(0, phase="Failed")]
    before = life.status
    status = life.outcome(LATER)
    assert (status.phase, status.restarts, status.disruptions) == (Phase.ADMITTED, 1, 0)
    assert (status.attempt, status.suspension, status.since) == (before.attempt, "", 0)
    assert status.admission.at == LATER
    assert status.admission.groups == before.admission.groups


@pytest.mark.parametrize("obstacle", ["unfit", "succeeded meanwhile"])
def test_a_gang_whose_place_is_lost_while_it_stops_waits_for_another(obstacle):
    life = Life(GANG).suspending(ledger.GANG_DISRUPTED)
    life.pods = []
    if obstacle == "unfit":
        life.unfit = {"gpu-1"}
    else:
        life.children["worker", 0] = raw.touched(life.children["worker", 0], status={"completedIndexes": "0"})
        life.suspend_all()
    status = life.outcome()
    assert (status.phase, status.admission) == (Phase.PENDING, None)
    assert (status.restarts, status.disruptions) == (1, 1)


def test_an_eviction_is_not_counted():
    life = Life(GANG, backoffLimit=0).running()
    life.replace_pod(1, raw.evicted(life.pods[1]))
    step = life.step()
    assert step.status.suspension == ledger.GANG_DISRUPTED
    assert "evicted from node gpu-1" in step.why
    stopped = Life(GANG, backoffLimit=0).suspending(ledger.GANG_DISRUPTED)
    stopped.pods = []
    status = stopped.outcome()
    assert (status.phase, status.restarts, status.disruptions) == (Phase.ADMITTED, 1, 1)


def test_a_pod_that_is_only_threatened_with_eviction_still_runs():
    life = Life().running()
    life.pods[0]["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True"})
    assert life.step().idle


def test_a_gang_that_is_evicted_while_it_starts_backs_off_and_avoids_the_node():
    life = Life(GANG).started(ready=False)
    life.replace_pod(1, raw.evicted(life.pods[1]))
    status = life.outcome()
    assert (status.suspension, status.back_off.count) == (ledger.FAILED_START, 1)
    assert (status.back_off.avoid, status.restarts, status.disruptions) == (("gpu-1",), 1, 1)


@pytest.mark.parametrize("phase", [Phase.ADMITTED, Phase.RUNNING])
def test_a_kubelets_refusal_is_a_failed_start_on_that_node(phase):
    life = Life(GANG, backoffLimit=0).running()
    life.set(phase=phase)
    for rank in (0, 1):
        refused = life.let_go(rank, phase="Failed", reason="UnexpectedAdmissionError", message="no device")
        life.replace_pod(rank, refused)
    step = life.step()
    status = step.status
    assert (status.suspension, status.back_off.avoid) == (ledger.FAILED_START, ("gpu-0", "gpu-1"))
    assert (status.restarts, status.disruptions, status.admission) == (1, 1, None)
    assert "refused pod train-leader-0-0-aaaaa: UnexpectedAdmissionError: no device" in step.why


def test_after_a_failed_start_the_job_waits_with_its_children_kept():
    life = Life().suspending(ledger.FAILED_START, admission=None)
    life.pods = []
    status = life.outcome()
    assert (status.phase, status.restarts, status.suspension) == (Phase.PENDING, 0, "")


def test_a_job_that_failed_while_it_was_being_stopped_does_not_spoil_the_next_start():
    life = Life(backoffLimit=0)
    life.make(suspend=True, **raw.ended("Failed"))
    status = life.outcome()
    assert (status.phase, status.restarts, status.disruptions) == (Phase.PENDING, 1, 1)
    life.set(restarts=1, disruptions=1)
    assert life.step() == lifecycle.IDLE


def test_what_an_earlier_admission_left_does_not_end_the_next_one():
    life = Life().started(ready=False)
    life.set(attempt=2)
    for rank in range(2):
        life.replace_pod(rank, life.let_go(rank, ready=True))
    stuck = raw.leaving(raw.ungated(life.gated(0, suffix="older"), attempt=1, node="gpu-9", phase="Failed"))
    life.pods.append(stuck)
    assert life.outcome().phase is Phase.RUNNING


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.SUCCEEDED, Phase.FAILED, Phase.REJECTED])
def test_outside_an_admission_nothing_may_run(phase):
    life = Life(GANG)
    life.make()
    life.set(phase=phase)
    assert [child.group for child in life.step().suspend] == ["leader", "worker"]
    life.suspend_all()
    assert life.step() == lifecycle.IDLE


@pytest.mark.parametrize("phase", list(Phase))
def test_a_deadline_is_missed_once_and_until_then_it_wakes(phase):
    life = Life(deadlineIn="10m")
    life.set(phase=phase)
    if phase in (Phase.ADMITTED, Phase.RUNNING):
        life.started(ready=False)
        life.set(phase=phase, started=raw.NOW)
    due = raw.NOW + 10 * raw.MINUTE
    if phase in ledger.FINAL:
        assert life.step(due) == lifecycle.IDLE
        return
    if phase is Phase.CLAIMING:
        life.claiming()
    if phase is Phase.SUSPENDING:
        life.set(suspension=ledger.FAILED_START)
        life.make(suspend=True)
        life.pods = [life.let_go(0)]
    assert life.step(due - 1).wake == due
    step = life.step(due)
    assert (step.why, step.status) == ("DeadlineMissed", life.status)
    missed = conditions.Condition(
        type="DeadlineMissed", status="True", reason="DeadlineMissed", last_transition_time=due
    )
    life.set(conditions=(missed,))
    assert life.step(due).status is None


def test_a_job_that_is_deleted_and_kept_by_a_finalizer_gives_its_places_back():
    leaving = raw.leaving(raw.deadline_job(status={"phase": "Admitted", "observedGeneration": 1}))
    life = Life()
    life.seen = ledger.read(leaving)
    after = life.step().status
    assert (after.phase, after.suspension, after.admission) == (Phase.SUSPENDING, "Deleted", None)


def test_a_job_that_cannot_be_read_is_left_alone():
    life = Life()
    life.seen = ledger.read(raw.deadline_job(queue="NOT A QUEUE"))
    assert life.seen.problem
    assert life.step() == lifecycle.IDLE
