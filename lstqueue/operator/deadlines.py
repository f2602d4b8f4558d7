"""What a user is told about a deadline that is past, or that a job did not live to see. Words only."""

from __future__ import annotations

from lstqueue.api import times
from lstqueue.operator import ledger

MISSED = "DeadlineMissed"
"""The deadline passed while the job was not done."""
WITHOUT_SUCCESS = "EndedWithoutSuccess"
"""The job was over before its deadline, and had not succeeded."""
GIVEN_UP = "DeadlineGivenUp"
"""No plan met the deadline, and its user wants the job to run without it then."""


def passed(spec: ledger.Spec) -> str:
    """Say that the deadline of a job is past."""
    if spec.deadline is None:
        return ""
    at = times.format(spec.deadline)
    if spec.expired:
        return f"its deadline {at} was past already when it was submitted; is the year right?"
    return f"its deadline {at} has passed"


def reason(status: ledger.Status, deadline: int) -> str:
    """Return in one word how a deadline was missed."""
    early = status.phase is ledger.Phase.FAILED and status.completed < deadline
    return WITHOUT_SUCCESS if early else MISSED


def words(job: ledger.Ledger, status: ledger.Status, why: str) -> str:
    """Say what the condition DeadlineMissed has for its reason, and how a time of day was taken."""
    spec = job.spec
    if spec is None or spec.deadline is None:
        return ""
    said = ""
    if why == MISSED:
        said = passed(spec)
        if status.phase is ledger.Phase.SUCCEEDED:
            said = f"it succeeded at {times.format(status.completed)}, and {said}"
    elif why == WITHOUT_SUCCESS:
        at = times.format(status.completed)
        said = f"it ended at {at} without success, before its deadline {times.format(spec.deadline)}"
    return "; ".join(part for part in (said, spec.deadline_note) if part)
