"""What the engine is told of claims, suspensions and saved work, and of pods that were lost with nodes."""

import dataclasses

import pytest

from cases import raw
from cases.lives import Life, Phase
from lstqueue.api import times
from lstqueue.engine import estimate, memory, model
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger, runs, settings, snapshots, steps

SETTINGS = settings.Settings()
SHAPE = snapshots.topology.PodShape(((raw.GPU, 8), ("pods", 1)))


def known(life, *nodes, intake=True):
    """Return a cache with a gang, its pods and some nodes (name, ready)."""
    cache = caches.Cache(lambda: None)
    for name, ready in nodes:
        cache.apply_node("ADDED", raw.node(name, ready=ready))
    cache.apply_ledger("ADDED", life.job)
    record = cache.records[raw.UID]
    record.ledger = life.seen
    for child in life.children.values():
        cache.apply_child("ADDED", child)
    for pod in life.pods:
        cache.apply_pod("ADDED", pod)
    if intake:
        record.shapes = tuple(model.Group(name, count, SHAPE) for name, count in life.groups.items())
    return cache


def jobs(cache):
    built = snapshots.build(cache, SETTINGS, now=raw.NOW, forecast_at=0, changed=True)
    memory.Memory().recall(built, SETTINGS.engine)
    return built.jobs


def seen(life, *nodes):
    (job,) = jobs(known(life, *nodes))
    return job


def test_a_claim_is_the_jobs_own_from_the_decision_on_but_justifies_nothing_until_it_is_written():
    life = Life()
    cache = known(life)
    record = cache.records[raw.UID]
    claim = Life().claiming().status.claim
    record.claiming = claim
    (job,) = jobs(cache)
    assert (job.state, job.claim.committed) == (model.State.CLAIMING, False)
    assert job.claim.groups == claim.groups
    written = seen(Life().claiming())
    assert (written.state, written.claim) == (model.State.CLAIMING, claim)


@pytest.mark.parametrize("why", ["paused", "leaving"])
def test_a_claim_that_is_about_to_go_justifies_no_suspension(why):
    life = Life(active=why != "paused").claiming()
    if why == "leaving":
        life.seen = dataclasses.replace(life.seen, deleting=True)
    assert seen(life).claim.committed is False


def test_a_claim_counts_before_the_api_server_has_answered_about_its_pods():
    (job,) = jobs(known(Life().claiming(), intake=False))
    assert job.state is model.State.CLAIMING
    assert dict(job.groups[0].shape.requests) == {raw.GPU: 8, "pods": 1}


def test_an_admission_on_a_claim_takes_its_place_at_once_and_has_the_next_number():
    life = Life().claiming(attempt=1)
    cache = known(life)
    record = cache.records[raw.UID]
    record.assumed = Life().admitted().status.admission
    (job,) = jobs(cache)
    assert (job.state, job.claim, job.attempt) == (model.State.ADMITTED, None, 2)
    assert {part.node: part.held for part in job.assigned} == {"gpu-0": 1, "gpu-1": 1}


def test_what_its_user_says_of_preemption_and_checkpoints_is_passed_on():
    spec = {
        "checkpoint": {"interval": "30m", "onSuspend": True, "restartOverhead": "2m"},
        "preemptible": False,
        "minRunTime": "20m",
        "value": 7,
        "onMissed": "Continue",
    }
    job = seen(Life(**spec))
    assert (job.checkpoint, job.saves_on_suspend, job.restore) == (30 * raw.MINUTE, True, 2 * raw.MINUTE)
    assert (job.preemptible, job.min_run, job.value, job.keeps_band) == (False, 20 * raw.MINUTE, 7, True)


def test_the_history_of_its_runs_tells_overhead_savings_and_suspensions():
    life = Life(checkpoint={"restartOverhead": "2m"})
    assert seen(life).overhead == 0
    ends = [raw.NOW - raw.HOUR, raw.NOW - 2 * raw.HOUR]
    runs = tuple(
        {"start": times.format(end - raw.HOUR), "end": times.format(end), "reason": reason}
        for end, reason in zip(ends, ("Preempted", "GangFailed"), strict=True)
    )
    back_off = ledger.BackOff(count=2)
    life.set(observed=1, runs=runs, saved=5, wasted=1, displaced_by=("uid-j",), attempt=3, back_off=back_off)
    job = seen(life)
    assert (job.overhead, job.saved, job.wasted, job.attempt) == (2 * raw.MINUTE, 5, 1, 3)
    assert (job.suspensions, job.displaced_by, job.failed_starts) == ((ends[0],), ("uid-j",), 2)
    life.set(observed=0)
    assert seen(life).failed_starts == 0


def test_suspensions_that_its_history_forgot_still_count_and_too_many_debts_protect_it():
    life = Life().running()
    life.set(preempted_at=(raw.NOW - 5, raw.NOW - 3), displaced_by=tuple("abc"))
    assert (seen(life).suspensions, seen(life).preemptible) == ((raw.NOW - 5, raw.NOW - 3), True)
    life.set(displaced_by=tuple(f"uid-{number}" for number in range(50)))
    assert not seen(life).preemptible


@pytest.mark.parametrize("counted", [False, True])
def test_a_gang_of_which_a_member_is_through_is_nobodys_victim(counted):
    life = Life().running()
    assert seen(life).preemptible
    life.replace_pod(0, life.let_go(0, phase="Succeeded"))
    if counted:
        life.children["worker", 0] = raw.touched(life.children["worker", 0], status={"completedIndexes": "0"})
        del life.pods[0]
    assert not seen(life).preemptible


def test_the_longest_grace_of_its_pods_counts():
    life = Life({"leader": 1, "worker": 2})
    assert seen(life).grace == 30_000
    life.job["spec"]["groups"][1]["template"]["spec"]["terminationGracePeriodSeconds"] = 120
    assert seen(life).grace == 120_000


def test_a_deadline_that_was_given_up_is_none_until_the_spec_changes():
    life = Life(deadlineIn="1h")
    life.set(best_effort=True, observed=1)
    assert seen(life).deadline is None
    life.seen = dataclasses.replace(life.seen, generation=2)
    assert seen(life).deadline == raw.NOW + raw.HOUR


def test_a_paused_job_is_held_back():
    job = seen(Life(active=False))
    assert job.state is model.State.HELD_BACK
    assert "spec.active" in job.held_back


def lost():
    """A gang that was queued again after it had lost gpu-1, where a pod of it cannot end."""
    life = Life().running()
    left = raw.leaving(life.pods[1])
    life.suspend_all()
    life.set(phase=Phase.PENDING, admission=None, restarts=1, disruptions=1)
    life.pods = [left]
    return life


def test_pods_lost_with_their_node_block_that_node_and_nothing_else():
    waiting, left = jobs(known(lost(), ("gpu-0", True), ("gpu-1", False)))
    assert (waiting.state, waiting.assigned) == (model.State.WAITING, ())
    assert (left.state, left.queue) == (model.State.ENDING, "")
    assert [(part.node, part.bound) for part in left.assigned] == [("gpu-1", 1)]


def test_they_are_waited_for_once_their_node_is_back():
    cache = known(lost(), ("gpu-0", True), ("gpu-1", False))
    jobs(cache)
    cache.apply_node("MODIFIED", raw.node("gpu-1"))
    (job,) = jobs(cache)
    assert job.state is model.State.ENDING
    assert [(part.node, part.bound) for part in job.assigned] == [("gpu-1", 1)]


@pytest.mark.parametrize("again", [False, True])
def test_a_run_ends_when_the_work_is_done_that_a_suspension_would_have_left(again):
    save = {"onSuspend": True, "restartOverhead": "5m"}
    life = Life(checkpoint=save, estimatedDuration="2h").running()
    if again:
        life.set(runs=({"start": "2026-03-01T17:00:00Z"},), saved=20 * raw.MINUTE)
    job, status = seen(life), life.status
    restart = 5 * raw.MINUTE if again else 0
    assert job.since == status.started + restart
    end = estimate.finish(job, status.started, SETTINGS.engine)
    assert end.mid == status.started + restart + 2 * raw.HOUR - status.saved
    # Suspended half an hour into its run, it has as much before it as it would have had to run on.
    now = status.started + 30 * raw.MINUTE
    after = runs.ended(
        status,
        steps.suspended(status, ledger.PREEMPTED, now, for_uid="other"),
        spec=life.seen.spec,
        end=now,
        reason=ledger.PREEMPTED,
        min_run=0,
        window=SETTINGS.engine.cap_window,
    )
    left = estimate.remaining(dataclasses.replace(job, saved=after.saved), SETTINGS.engine)
    assert left.mid == end.mid - now
