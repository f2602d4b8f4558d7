"""For how long nodes are avoided, whatever starts failed and whatever versions and clocks wrote."""

import dataclasses

import pytest

from cases import raw
from cases.lives import Life, Phase
from lstqueue.api import times
from lstqueue.engine import model
from lstqueue.operator import ledger, starts, statuses

NOW, MINUTE = raw.NOW, raw.MINUTE


def reread(life):
    """Return the status as it is read back from what is written of it."""
    job = {**life.job, "status": statuses.render(life.seen, life.status, None)}
    return ledger.read(job).status


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("length", [MINUTE, 5 * MINUTE, 20 * MINUTE])
def test_nodes_are_avoided_for_as_long_as_was_asked_however_many_starts_failed(count, length):
    life = Life().claiming(observed=1, back_off=ledger.BackOff(NOW - MINUTE, count))
    after = starts.avoiding(life.status, ["gpu-1"], NOW, until=NOW + length)
    assert (after.back_off.avoid, after.back_off.count) == (("gpu-1",), count)
    life.set(phase=Phase.PENDING, claim=None, back_off=after.back_off)
    life.set(back_off=reread(life).back_off)
    assert life.step(NOW + length - 1).wake == NOW + length
    forgiven = life.outcome(NOW + length).back_off
    assert (forgiven.avoid, forgiven.count) == ((), count)


def test_avoiding_a_node_delays_nobody():
    after = starts.avoiding(Life().status, ["gpu-1"], NOW).back_off
    assert after.until <= NOW
    assert starts.avoided_until(after) == NOW + starts.SHORTLY
    waits = ledger.BackOff(NOW + 3 * MINUTE, 2)
    assert starts.avoiding(Life().status, [], NOW).back_off.avoid == ()
    assert starts.avoiding(dataclasses.replace(Life().status, back_off=waits), ["a"], NOW).back_off.until == (
        NOW + 3 * MINUTE
    )


def test_a_node_that_is_avoided_for_long_is_not_forgiven_sooner_because_of_another():
    life = Life()
    long = starts.avoiding(life.status, ["gpu-1"], NOW, until=NOW + raw.HOUR)
    both = starts.avoiding(long, ["gpu-2"], NOW + MINUTE).back_off
    assert (both.avoid, both.avoid_until) == (("gpu-1", "gpu-2"), NOW + raw.HOUR)


def test_nobody_avoids_nodes_for_more_than_a_day():
    far = starts.avoiding(Life().status, ["gpu-1"], NOW, until=NOW + 700 * raw.HOUR)
    assert far.back_off.avoid_until == NOW + 24 * raw.HOUR


@pytest.mark.parametrize(
    ("count", "until", "ends"),
    [(0, NOW - MINUTE, NOW + 4 * MINUTE), (1, NOW + MINUTE, NOW + 2 * MINUTE), (3, NOW, NOW + 4 * MINUTE)],
)
def test_a_status_of_a_version_that_wrote_no_end_still_has_one(count, until, ends):
    life = Life()
    life.job["status"] = {
        "phase": "Pending",
        "observedGeneration": 1,
        "backoff": {"until": times.format(until), "count": count, "avoid": ["gpu-1"]},
    }
    seen = ledger.read(life.job).status.back_off
    assert starts.avoided_until(seen) == ends


@pytest.mark.parametrize("count", [0, 1, 4])
def test_what_a_clock_wrote_that_was_ahead_is_put_right(count):
    life = Life()
    ahead = NOW + 30 * raw.HOUR
    known = ledger.BackOff(ahead, count)
    life.set(
        back_off=starts.avoiding(dataclasses.replace(life.status, back_off=known), ["a"], ahead).back_off
    )
    step = life.step(NOW)
    assert step.why == "ClockMoved"
    assert step.status is not None
    right = step.status.back_off
    assert right.until <= NOW + starts.back_off(count, None)
    assert starts.avoided_until(right) <= NOW + raw.HOUR
    life.set(back_off=right)
    assert life.step(NOW).status is None


def test_a_node_lost_while_the_clock_was_ahead_by_an_hour_harms_nobody():
    life = Life()
    life.set(back_off=starts.avoiding(life.status, ["gpu-1"], NOW + raw.HOUR).back_off)
    right = life.outcome(NOW).back_off
    assert right.until <= NOW
    assert starts.avoided_until(right) == NOW + starts.SHORTLY


def test_the_wait_is_capped_by_the_slack_that_the_engine_reckons_with():
    life = Life().admitted(at=NOW)
    gang = dataclasses.replace(life.gang(), slack=lambda: 6 * MINUTE)
    failed = starts.failed(gang, ["gpu-1"], NOW)
    assert failed.back_off.until == NOW + MINUTE
    gang = dataclasses.replace(gang, slack=lambda: 3 * MINUTE)
    assert starts.failed(gang, ["gpu-1"], NOW).back_off.until == NOW + 45_000
    assert failed.back_off.avoid_until == failed.back_off.until + model.MINUTE


def test_an_edited_job_may_start_at_once_though_not_where_it_failed():
    failed = ledger.BackOff(NOW + 20 * MINUTE, 4, ("gpu-1",), NOW + 40 * MINUTE)
    after = starts.anew(failed, NOW)
    assert (after.until, after.count, after.avoid) == (NOW, 0, ("gpu-1",))
    assert starts.avoided_until(after) == NOW + 40 * MINUTE
    assert starts.anew(dataclasses.replace(failed, avoid=(), avoid_until=0), NOW) == ledger.NO_BACK_OFF


def test_nor_are_nodes_of_an_older_status_forgotten_by_an_edit():
    failed = ledger.BackOff(NOW + MINUTE, 1, ("gpu-1",))
    assert starts.avoided_until(starts.anew(failed, NOW)) == starts.avoided_until(failed)
