"""What a clock that is set back leaves behind: nothing waits for times, or counts them, that it has named."""

import pytest

from cases import batch_jobs, raw
from cases.lives import Life
from lstqueue.engine import model
from lstqueue.operator import ledger, records, setbacks, units

AHEAD = raw.NOW + 24 * model.HOUR


def referred():
    """Return Units that know a Job that runs, and the DeadlineJob that speaks for it."""
    made = raw.deadline_job("mine")
    del made["spec"]["groups"]
    made["spec"]["jobRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep"}
    index, seen = units.Units(lambda _: None, lambda _: None), ledger.read(made)
    index.apply("ADDED", batch_jobs.job(suspend=False))
    index.refer(seen)
    return index, seen


def test_suspensions_that_were_undone_in_hours_to_come_make_no_dispute():
    index, seen = referred()
    (uid,) = index.entries
    index.was_suspended(uid, AHEAD)
    index.entries[uid].told_until = AHEAD
    index.clock_moved()
    index.was_suspended(uid, raw.NOW)
    assert not index.facts(seen, raw.NOW).disputed
    assert index.entries[uid].told_until < index.entries[uid].stops[-1]


@pytest.mark.parametrize("behind", [0, 30_000])
def test_the_time_to_bind_begins_when_the_clock_was_found_wrong_and_gates_stay_lifted(behind):
    life = Life().started(ready=False, at=raw.NOW + behind)
    record = records.Record(life.seen, ungated_at=AHEAD)
    setbacks.lifted_by_now(record, raw.NOW)
    assert record.ungated_at == raw.NOW + behind


def test_gates_stay_lifted_until_the_time_of_their_admission_is_put_right():
    record = records.Record(Life().started(at=AHEAD).seen, ungated_at=AHEAD + 1)
    setbacks.lifted_by_now(record, raw.NOW)
    assert record.ungated_at == AHEAD + 1


def test_what_was_lifted_at_its_time_is_left_alone():
    for at in (0, raw.NOW - model.HOUR, raw.NOW + 1000):
        record = records.Record(Life().started().seen, ungated_at=at)
        setbacks.lifted_by_now(record, raw.NOW)
        assert record.ungated_at == at
