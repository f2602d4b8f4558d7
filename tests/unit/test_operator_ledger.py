"""A DeadlineJob as the operator reads it, whatever its user wrote."""

import pytest

from cases import objects, raw
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


def test_a_new_object_has_no_status_and_waits():
    assert ledger.read(raw.deadline_job()).status == ledger.Status()


@pytest.mark.parametrize(
    "spec",
    [
        {"queue": objects.ABSENT},
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
    assert status.published.band is model.Band.DEADLINE
    assert status.published.verdict.level is model.Level.AT_RISK


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
