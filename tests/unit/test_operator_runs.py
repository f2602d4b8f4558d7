"""What the end of a run leaves behind: what was saved and lost, and whom its job may not displace."""

import dataclasses

import pytest

from cases import raw
from cases.lives import Life, Phase
from lstqueue.api import deadlinejob_status
from lstqueue.operator import ledger, runs, steps

HOUR, MINUTE = raw.HOUR, raw.MINUTE
DAY = 24 * HOUR


def ended(life, reason, *, ran=HOUR, for_uid="", min_run=15 * MINUTE, phase=None):
    before = life.status
    now = before.started + ran
    if phase is not None:
        after = steps.over(before, phase, now)
    else:
        after = steps.suspended(before, reason, now, for_uid=for_uid)
    spec = life.seen.spec
    return runs.ended(before, after, spec=spec, end=now, reason=reason, min_run=min_run, window=DAY)


@pytest.mark.parametrize(
    ("checkpoint", "reason", "saved"),
    [
        ({"interval": "25m"}, ledger.PREEMPTED, 50 * MINUTE),
        ({"interval": "25m"}, ledger.GANG_FAILED, 50 * MINUTE),
        ({"interval": "25m"}, ledger.NODE_LOST, 50 * MINUTE),
        ({"interval": "61m"}, ledger.PREEMPTED, 0),
        ({"onSuspend": True}, ledger.PREEMPTED, HOUR),
        ({"onSuspend": True}, ledger.INACTIVE, HOUR),
        ({"onSuspend": True}, ledger.GANG_FAILED, 0),
        ({"onSuspend": True, "interval": "25m"}, ledger.NODE_LOST, 50 * MINUTE),
        ({}, ledger.PREEMPTED, 0),
    ],
)
def test_what_is_saved_is_what_checkpoints_have_or_all_where_it_was_asked_in_time(checkpoint, reason, saved):
    life = Life(**({"checkpoint": checkpoint} if checkpoint else {})).running()
    after = ended(life, reason)
    assert after.saved == saved
    (run,) = after.runs
    assert run["reason"] == reason
    assert run.get("lost") == {0: "1h", 50 * MINUTE: "10m", HOUR: None}[saved]


def test_restoring_is_work_for_nobody_and_savings_add_up():
    life = Life(checkpoint={"interval": "10m", "restartOverhead": "5m"}).running()
    life.set(saved=20 * MINUTE, runs=({"start": "2026-03-01T17:00:00Z"},))
    after = ended(life, ledger.PREEMPTED, ran=34 * MINUTE)
    assert after.saved == 40 * MINUTE
    assert after.runs[-1]["lost"] == "14m"


def test_suspensions_in_a_row_that_saved_nothing_are_counted():
    life = Life(checkpoint={"interval": "30m"}).running(wasted=2)
    assert ended(life, ledger.PREEMPTED, ran=20 * MINUTE).wasted == 3
    assert ended(life, ledger.PREEMPTED, ran=40 * MINUTE).wasted == 0
    assert ended(life, ledger.INACTIVE, ran=20 * MINUTE).wasted == 2


def test_a_job_that_is_through_has_lost_nothing():
    after = ended(Life().running(wasted=1), "Succeeded", phase=Phase.SUCCEEDED)
    assert "lost" not in after.runs[-1]
    assert after.wasted == 0


def test_a_start_that_never_ran_in_full_is_no_run():
    life = Life().started(ready=False)
    after = steps.suspended(life.status, ledger.PREEMPTED, raw.NOW, for_uid="uid-j")
    after = runs.ended(
        life.status, after, spec=life.seen.spec, end=raw.NOW, reason="Preempted", min_run=0, window=DAY
    )
    assert (after.runs, after.saved, after.wasted) == ((), 0, 0)
    assert (after.displaced_by, after.preempted_at) == (("uid-j",), (raw.NOW,))


def test_whom_it_gave_way_to_is_remembered_once_until_it_has_run_in_full():
    life = Life().running(displaced_by=("uid-a", "uid-b"))
    short = ended(life, ledger.PREEMPTED, ran=14 * MINUTE, for_uid="uid-a")
    assert short.displaced_by == ("uid-b", "uid-a")
    full = ended(life, ledger.PREEMPTED, ran=15 * MINUTE, for_uid="uid-c")
    assert full.displaced_by == ("uid-c",)
    assert ended(life, ledger.GANG_FAILED, ran=14 * MINUTE).displaced_by == ("uid-a", "uid-b")


def test_one_that_stops_already_and_loses_its_place_to_another_remembers_that():
    life = Life().suspending(ledger.GANG_FAILED)
    after = dataclasses.replace(life.status, admission=None, suspended_for="uid-j")
    after = runs.ended(
        life.status, after, spec=life.seen.spec, end=raw.NOW, reason="Preempted", min_run=0, window=DAY
    )
    assert (after.displaced_by, after.preempted_at) == (("uid-j",), (raw.NOW,))
    assert after.runs == ()


def lived(reasons, *, status=None, every=16 * MINUTE, min_run=15 * MINUTE, window=DAY):
    """Return the status of a job whose runs end one after the other for these reasons, and the time then."""
    status, now = status or Life().running().status, raw.NOW
    for number, reason in enumerate(reasons):
        status = dataclasses.replace(status, phase=Phase.RUNNING, started=now, suspended_for="")
        now += every
        owner = f"uid-{number}" if reason == ledger.PREEMPTED else ""
        after = steps.suspended(status, reason, now, for_uid=owner)
        status = runs.ended(status, after, spec=None, end=now, reason=reason, min_run=min_run, window=window)
    return status, now


@pytest.mark.parametrize("failures", [0, 7, 10, 40])
def test_suspensions_for_others_count_all_day_however_many_runs_end_otherwise(failures):
    status, now = lived([ledger.PREEMPTED] * 4 + [ledger.GANG_FAILED] * failures)
    assert len([at for at in runs.preempted_at(status) if now - at < 24 * HOUR]) == 4
    assert len(status.runs) == min(4 + failures, 10)


def test_as_many_suspensions_are_remembered_as_a_queue_may_allow():
    status, now = lived([ledger.PREEMPTED] * 60)
    assert len(runs.preempted_at(status)) == deadlinejob_status.SUSPENSIONS
    assert runs.preempted_at(status)[-1] == now


def test_suspensions_are_forgotten_when_they_do_not_count_any_more():
    status, now = lived([ledger.PREEMPTED] * 5, every=10 * HOUR)
    assert status.preempted_at == (now - 20 * HOUR, now - 10 * HOUR, now)
    status, now = lived([ledger.PREEMPTED] * 5, every=10 * HOUR, window=31 * HOUR)
    assert len(status.preempted_at) == 4


def test_what_a_status_without_times_shows_of_its_history_goes_on_to_count():
    old, now = lived([ledger.PREEMPTED, ledger.GANG_FAILED, ledger.PREEMPTED])
    times = old.preempted_at
    old = dataclasses.replace(old, preempted_at=())
    assert runs.preempted_at(old) == times
    before = dataclasses.replace(old, phase=Phase.RUNNING, started=now, suspended_for="")
    after = steps.suspended(before, ledger.PREEMPTED, now + HOUR, for_uid="uid-new")
    after = runs.ended(
        before, after, spec=None, end=now + HOUR, reason=ledger.PREEMPTED, min_run=0, window=DAY
    )
    assert after.preempted_at == (*times, now + HOUR)


def test_who_owes_as_many_as_can_be_remembered_is_suspended_for_nobody_until_it_has_run_in_full():
    most = deadlinejob_status.DISPLACED_BY
    status, _ = lived([ledger.PREEMPTED] * (most - 1), every=MINUTE)
    assert runs.movable(status)
    status, _ = lived([ledger.PREEMPTED] * most, every=MINUTE)
    assert status.displaced_by == tuple(f"uid-{number}" for number in range(most))
    assert not runs.movable(status)
    full, _ = lived([ledger.GANG_FAILED], status=status)
    assert full.displaced_by == ()
    assert runs.movable(full)


def test_a_run_is_full_once_it_has_worked_for_so_long_and_a_restart_is_no_work():
    life = Life(checkpoint={"interval": "10m", "restartOverhead": "5m"}).running(displaced_by=("other",))
    life.set(runs=({"start": "2026-03-01T17:00:00Z"},))
    assert ended(life, ledger.INACTIVE, ran=19 * MINUTE).displaced_by == ("other",)
    assert ended(life, ledger.INACTIVE, ran=20 * MINUTE).displaced_by == ()
