"""A DeadlineJob as the operator reads it, whatever its user wrote."""

import pytest

from cases import objects, raw
from lstqueue.api import times
from lstqueue.engine import model
from lstqueue.operator import ledger


def test_what_a_user_asks_for_is_read_in_milliseconds():
    job = ledger.read(
        raw.deadline_job(
            groups={"leader": 1, "worker": 7},
            deadlineIn="3h",
            estimatedDuration="90m",
            importance=-2,
            successPolicy="Leader",
            backoffLimit=0,
        )
    )
    assert job.problem == ""
    assert job.spec.groups == (("leader", 1), ("worker", 7))
    assert (job.spec.deadline, job.spec.estimate) == (raw.NOW + 3 * raw.HOUR, 90 * raw.MINUTE)
    assert (job.spec.importance, job.spec.leader_decides, job.spec.backoff_limit) == (-2, True, 0)
    assert (job.key, job.gang().size, job.final, job.deleting) == ("default/train", 8, False, False)


def test_what_a_user_says_of_suspensions_and_ends_is_read():
    spec = ledger.read(
        raw.deadline_job(
            queue=objects.ABSENT,
            value=7,
            checkpoint={"interval": "30m", "onSuspend": True, "restartOverhead": "2m"},
            preemptible=False,
            minRunTime="0s",
            maxRunTime="2h",
            active=False,
            onMissed="Cancel",
            onInfeasible="Reject",
            ttlSecondsAfterFinished=60,
        )
    ).spec
    assert (spec.queue, spec.value, spec.preemptible, spec.active) == ("", 7, False, False)
    assert (spec.checkpoint, spec.restart_overhead) == (30 * raw.MINUTE, 2 * raw.MINUTE)
    assert spec.saves_on_suspend
    assert (spec.min_run, spec.max_run, spec.ttl) == (0, 2 * raw.HOUR, raw.MINUTE)
    assert (spec.on_missed, spec.on_infeasible) == ("Cancel", "Reject")


def test_what_a_user_does_not_say_is_none_or_the_usual():
    job = ledger.read(raw.deadline_job())
    assert job.spec == ledger.Spec("research", (("worker", 2),), job.spec.shape)


def referring(**spec):
    made = raw.deadline_job(**spec)
    del made["spec"]["groups"]
    made["spec"]["jobRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": "theirs"}
    return made


def test_a_job_that_refers_to_another_gets_its_groups_when_that_was_seen():
    job = ledger.read(referring())
    assert job.spec.ref == ledger.JobRef("batch/v1", "Job", "theirs")
    assert (job.spec.groups, job.spec.shape) == ((), "")
    seen = job.with_unit((("pods", 3),), "0a1b")
    assert (seen.spec.groups, seen.spec.shape, seen.gang().size) == ((("pods", 3),), "0a1b", 3)
    assert job.spec.groups == ()


def test_only_a_job_that_refers_to_another_takes_its_groups():
    for made in (raw.deadline_job(), raw.deadline_job(queue="")):
        with pytest.raises(ValueError, match="default/train refers to no object"):
            ledger.read(made).with_unit((("pods", 3),), "0a1b")


def test_a_time_of_day_comes_after_the_creation_and_its_words_are_kept():
    made = raw.deadline_job(deadlineAt={"time": "02:30", "zone": "Europe/Berlin"})
    made["metadata"]["creationTimestamp"] = "2026-03-28T12:00:00Z"
    spec = ledger.read(made).spec
    assert times.format(spec.deadline) == "2026-03-29T01:00:00Z"
    assert "does not exist on 2026-03-29" in spec.deadline_note


@pytest.mark.parametrize(
    ("annotation", "deadline"),
    [
        ("2026-03-01T17:00:00Z", "2026-03-01T20:00:00Z"),
        ("2026-03-01T19:00:00Z", "2026-03-01T21:00:00Z"),
        ("9999-12-31T23:59:59Z", "2026-03-01T21:00:00Z"),
        ("1000-01-01T00:00:00Z", "2026-03-01T21:00:00Z"),
        ("a while ago", "2026-03-01T21:00:00Z"),
        ("", "2026-03-01T21:00:00Z"),
    ],
)
def test_deadlines_count_from_the_creation_of_the_job_that_was_labelled(annotation, deadline):
    made = referring(deadlineIn="3h")
    made["metadata"]["annotations"] = {"lstqueue.dev/unit-created": annotation}
    assert times.format(ledger.read(made).spec.deadline) == deadline


def test_a_new_object_has_no_status_and_waits():
    assert ledger.read(raw.deadline_job()).status == ledger.Status()


@pytest.mark.parametrize(
    "spec",
    [
        {"queue": ""},
        {"deadlineAt": {"time": "06:00", "zone": "Europe/Atlantis"}},
        {"jobRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}},
        {"deadline": "tomorrow"},
        {"deadline": "2026-03-01T18:00:00Z", "deadlineIn": "1h"},
        {"backoffLimit": "3"},
        {"importance": 11},
        {"estimatedDuration": "0s"},
    ],
)
def test_a_spec_that_cannot_be_used_is_kept_with_its_problem(spec):
    job = ledger.read(raw.deadline_job(**spec))
    assert job.spec is None
    assert job.problem.startswith("spec")
    with pytest.raises(ValueError, match="default/train"):
        job.gang()


def test_a_name_that_is_no_name_of_a_service_is_a_problem_too():
    assert "metadata.name" in ledger.read(raw.deadline_job("2fast")).problem


def test_a_full_status_is_read():
    status = ledger.read(raw.deadline_job(status=objects.FULL)).status
    assert (status.phase, status.attempt, status.restarts) == (ledger.Phase.RUNNING, 1, 1)
    assert status.admission.groups == (ledger.GroupAdmission("worker", "a100", (("gpu-1", (0, 1, 2, 3)),)),)
    assert status.back_off.avoid == ("gpu-2",)
    assert status.published.code is model.Code.NO_ROOM
    assert status.published.band is model.Band.SHED
    assert status.published.verdict.level is model.Level.AT_RISK
    assert status.claim == model.Claim(
        groups=(model.GroupPlacement("a100", (("gpu-1", 4),)),),
        victims=(model.Victim("uid-other", 1),),
        expires=raw.NOW + 10 * raw.MINUTE,
    )
    assert (status.suspended_for, status.displaced_by) == ("uid-urgent", ("uid-first", "uid-urgent"))
    assert (status.saved, status.wasted, status.best_effort) == (90 * raw.MINUTE + 500, 1, True)
    assert (status.unit, status.admission.job_uid) == ("uid-unit", "uid-unit")


def test_a_code_that_is_not_the_engines_holds_the_job_back():
    seen = ledger.read(raw.deadline_job(status={"pending": {"code": "InvalidTemplate"}})).status
    assert (seen.published.code, seen.held) == (model.Code.HELD_BACK, "InvalidTemplate")
    plain = ledger.read(raw.deadline_job(status={"pending": {"code": "HeldBack"}})).status
    assert (plain.published.code, plain.held) == (model.Code.HELD_BACK, "")


def test_an_admission_knows_where_each_rank_goes():
    job = ledger.read(raw.deadline_job(groups={"leader": 1, "worker": 3}))
    placed = raw.admission(job.gang(), job.spec.shape, {"b": 2, "a": 2})
    assert placed.places() == {0: ("a100", "b"), 1: ("a100", "b"), 2: ("a100", "a"), 3: ("a100", "a")}
    assert placed.nodes == ("a", "b")
    assert placed.names("a")
    assert not placed.names("c")
