"""Where the order alone says who is suspended, no two jobs change places without either having worked."""

import dataclasses

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import model, order, standing, switches

CONFIG = model.Config(switches=switches.Switches(preempts=switches.Preempts.RANK))
RESTORE = 2 * MINUTE
SHARE = 1000


def waiting(uid, *, mid, due):
    return rivals.job(uid, mid=mid, deadline=due, overhead=RESTORE, restore=RESTORE)


def starting(job, since):
    parts = (model.Assigned(0, "p", "n0", 0, 1),)
    return dataclasses.replace(job, state=model.State.ADMITTED, since=since, assigned=parts)


def waits_at(job, now, by):
    return order.rank(by, standing.refresh(job, now, CONFIG), SHARE, CONFIG)


def starts_at(job, now, by):
    tick = now // switches.STEP * switches.STEP
    return order.rank(by, standing.refresh(job, now, CONFIG), SHARE, CONFIG, running_at=tick)


@pytest.mark.parametrize("by", [model.Order.EDF, model.Order.LST, model.Order.SJF])
@pytest.mark.parametrize("due", [NOW + MINUTE, NOW + 9 * HOUR], ids=["late", "in-time"])
@pytest.mark.parametrize("apart", [0, 1000, MINUTE, RESTORE - 1, RESTORE, RESTORE + MINUTE])
@pytest.mark.parametrize("since", [NOW, NOW + MINUTE // 2])
def test_of_a_pair_only_one_is_ahead_until_somebody_works(by, due, apart, since):
    first, second = waiting("a", mid=HOUR, due=due), waiting("b", mid=HOUR + apart, due=due)
    for now in range(since, since + RESTORE + 1, MINUTE // 2):
        ahead = waits_at(first, now, by) < starts_at(starting(second, since), now, by)
        back = waits_at(second, now, by) < starts_at(starting(first, since), now, by)
        assert (ahead, back) in ((True, False), (False, True)), f"{now - since} ms after the start"
