"""The conditions and the history that a status derives from the rest of it."""

import dataclasses

import pytest

from cases import raw
from lstqueue.api import conditions
from lstqueue.engine import model
from lstqueue.operator import ledger, statuses

Phase = ledger.Phase
LATER = raw.NOW + raw.MINUTE


class Written:
    """A job whose status is written step by step, as the operator does."""

    def __init__(self, **spec):
        self.job = ledger.read(raw.deadline_job(**spec))

    def write(self, why, message="", *, now=raw.NOW, **changes):
        status = dataclasses.replace(self.job.status, observed=1, **changes)
        status = statuses.with_conditions(self.job, status, now=now, why=why, message=message)
        self.job = dataclasses.replace(self.job, status=status)
        return self

    def said(self, kind):
        found = conditions.get(self.job.status.conditions, kind)
        return None if found is None else (found.status.value, found.reason, found.message)

    def since(self, kind):
        return conditions.get(self.job.status.conditions, kind).last_transition_time


def waiting(code=model.Code.NO_ROOM, level=None):
    return model.Published(None, code, model.Verdict(level) if level else None)


def test_a_waiting_job_says_why_and_nothing_that_never_applied():
    job = Written().write("NoRoom", "needs 4, has 2", published=waiting())
    assert job.said("Admitted") == ("False", "NoRoom", "needs 4, has 2")
    assert len(job.job.status.conditions) == 1


def test_a_job_that_claims_room_waits_in_another_way():
    job = Written().write("NoRoom", "full", published=waiting())
    job.write("Claiming", "2 jobs leave", phase=Phase.CLAIMING, published=model.Published())
    assert job.said("Admitted") == ("False", "Claiming", "2 jobs leave")
    job.write("NoRoom", "they did not", phase=Phase.PENDING, published=waiting())
    assert job.said("Admitted") == ("False", "NoRoom", "they did not")


def test_a_job_that_was_suspended_is_so_until_it_has_its_room_again():
    job = Written().write("GangReady", phase=Phase.RUNNING, started=raw.NOW)
    job.write("Preempted", "for urgent", phase=Phase.SUSPENDING, suspension="Preempted")
    for phase in (Phase.PENDING, Phase.CLAIMING):
        job.write("NoRoom", "full", phase=phase, suspension="")
        assert job.said("Suspended") == ("True", "Preempted", "for urgent")
    job.write("Admitted", phase=Phase.ADMITTED)
    assert job.said("Suspended") == ("False", "Resumed", "")


def test_a_deadline_that_clocks_moved_says_so():
    made = raw.deadline_job(deadlineAt={"time": "02:30", "zone": "Europe/Berlin"})
    made["metadata"]["creationTimestamp"] = "2026-03-28T12:00:00Z"
    job = Written()
    job.job = ledger.read(made)
    job.write("NoRoom", "full", published=waiting(), now=job.job.created)
    state, reason, message = job.said("DeadlineMissed")
    assert (state, reason) == ("False", "InTime")
    assert message.startswith("02:30 does not exist on 2026-03-29 in Europe/Berlin")
    job.write("Succeeded", phase=Phase.SUCCEEDED, completed=job.job.created)
    assert job.said("DeadlineMissed") == ("False", "InTime", message)


def test_a_gangs_life_as_conditions():
    job = Written().write("NoRoom", "full", published=waiting())
    job.write("Admitted", now=LATER, phase=Phase.ADMITTED, published=model.Published())
    assert job.said("Admitted") == ("True", "Admitted", "")
    assert job.since("Admitted") == LATER
    job.write("GangReady", phase=Phase.RUNNING, started=LATER)
    assert job.said("GangReady") == ("True", "GangReady", "")
    job.write("GangFailed", "pod x failed", phase=Phase.SUSPENDING, suspension="GangFailed")
    assert job.said("Admitted") == ("False", "GangFailed", "pod x failed")
    assert job.said("GangReady") == ("False", "GangFailed", "pod x failed")
    assert job.said("Suspended") == ("True", "GangFailed", "pod x failed")
    job.write("GangRestarted", phase=Phase.ADMITTED, suspension="")
    assert job.said("Suspended") == ("False", "Resumed", "")
    job.write("Succeeded", phase=Phase.SUCCEEDED, completed=LATER)
    assert job.said("Finished") == ("True", "Succeeded", "")


def test_the_time_of_a_change_stays_until_the_next_one():
    job = Written().write("NoRoom", "full", published=waiting())
    job.write("QuotaExceeded", "over", now=LATER, published=waiting(model.Code.QUOTA_EXCEEDED))
    assert job.said("Admitted") == ("False", "QuotaExceeded", "over")
    assert job.since("Admitted") == raw.NOW


def test_what_is_written_on_the_way_does_not_change_why_the_phase_is_what_it_is():
    job = Written(deadlineIn="1m").write("NoRoom", "full", published=waiting())
    job.write("Admitted", phase=Phase.ADMITTED, published=model.Published())
    job.write("GangReady", phase=Phase.RUNNING, started=raw.NOW)
    job.write("GangFailed", "pod x failed", phase=Phase.SUSPENDING, suspension="GangFailed")
    before = {kind: job.said(kind) for kind in ("Admitted", "GangReady", "Suspended")}
    job.write("DeadlineMissed", now=LATER)
    missed = ("True", "DeadlineMissed", "its deadline 2026-03-01T18:01:00Z has passed")
    assert job.said("DeadlineMissed") == missed
    assert {kind: job.said(kind) for kind in before} == before


def test_the_same_facts_twice_change_nothing():
    job = Written(deadlineIn="1h").write("NoRoom", "full", published=waiting(level=model.Level.AT_RISK))
    before = job.job.status
    assert job.write("NoRoom", "full", now=LATER).job.status == before


@pytest.mark.parametrize(
    ("level", "risk"),
    [
        (model.Level.LIKELY, "False"),
        (model.Level.UNKNOWN, "False"),
        (model.Level.AT_RISK, "True"),
        (model.Level.UNLIKELY, "True"),
        (model.Level.IMPOSSIBLE, "True"),
    ],
)
def test_a_verdict_becomes_a_condition(level, risk):
    job = Written(deadlineIn="1h").write("NoRoom", published=waiting(level=level))
    assert job.said("DeadlineAtRisk") == (risk, level.value, "")


def test_a_job_that_is_over_is_at_risk_no_more():
    job = Written(deadlineIn="1h").write("NoRoom", published=waiting(level=model.Level.AT_RISK))
    job.write("Succeeded", phase=Phase.SUCCEEDED, completed=raw.NOW + raw.HOUR)
    assert job.said("DeadlineAtRisk") == ("False", "Finished", "")
    assert job.said("DeadlineMissed") == ("False", "InTime", "")


@pytest.mark.parametrize(
    ("phase", "completed", "missed"),
    [
        (Phase.SUCCEEDED, raw.HOUR, "False"),
        (Phase.SUCCEEDED, raw.HOUR + 1, "True"),
        (Phase.FAILED, 1, "True"),
        (Phase.REJECTED, 1, "False"),
        (Phase.REJECTED, raw.HOUR + 1, "False"),
        (Phase.RUNNING, -raw.NOW, "False"),
    ],
)
def test_a_deadline_is_judged_by_the_end_to_the_millisecond(phase, completed, missed):
    job = Written(deadlineIn="1h").write("Any", phase=phase, completed=raw.NOW + completed)
    assert job.said("DeadlineMissed")[0] == missed


def test_without_a_deadline_any_more_nothing_is_said_about_it():
    job = Written(deadlineIn="1h").write("NoRoom", published=waiting(level=model.Level.AT_RISK))
    spec = dataclasses.replace(job.job.spec, deadline=None)
    job.job = dataclasses.replace(job.job, spec=spec)
    job.write("NoRoom")
    assert [item.type for item in job.job.status.conditions] == ["Admitted"]


@pytest.mark.parametrize("why", ["", "denied by policy", "é", "9lives", "x" * 100, "a-b.c/d"])
def test_a_reason_that_came_from_elsewhere_becomes_one_word(why):
    job = Written().write(why, phase=Phase.REJECTED)
    assert job.said("Finished")[0] == "True"
    held = Written().write("Any", held=why, published=waiting(model.Code.HELD_BACK))
    assert held.said("Admitted")[1] == statuses.code(held.job.status)


def test_runs_are_listed_when_they_end_the_last_ten_of_them():
    status = ledger.Status()
    for number in range(12):
        running = dataclasses.replace(status, phase=Phase.RUNNING, started=raw.NOW + number)
        status = dataclasses.replace(running, phase=Phase.SUSPENDING)
        status = statuses.with_run(running, status, end=LATER, reason="GangFailed")
    assert len(status.runs) == 10
    assert status.runs[-1] == {
        "start": "2026-03-01T18:00:00.011Z",
        "end": "2026-03-01T18:01:00Z",
        "reason": "GangFailed",
        "nodes": 0,
    }


def test_a_start_that_failed_was_no_run():
    admitted = ledger.Status(phase=Phase.ADMITTED, started=raw.NOW)
    assert statuses.with_run(admitted, admitted, end=LATER, reason="x").runs == ()
