"""Who was not promised a deadline is looked at again: a few in a pass, until everybody was since a change."""

from __future__ import annotations

import dataclasses

from cases import moments, rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import decide, memory, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0, promise_again=3)
POOL = model.Pool("p", nominal=((rivals.GPU, 64),))


def waiting(number: int, *, gpus: int = 1, due: int = 40 * HOUR) -> model.Job:
    return rivals.waits(
        f"j{number:02}", gpus=gpus, deadline=NOW + due, submit=NOW - number, published=model.Published()
    )


class Days:
    """A cluster in which somebody has all of it for thirty hours, and passes are made when they are due."""

    def __init__(self, *jobs: model.Job, quota: int = 64, config: model.Config = CONFIG) -> None:
        self.config, self.now, self.memory = config, NOW, memory.Memory()
        pools = (dataclasses.replace(POOL, nominal=((rivals.GPU, quota),)),)
        queue = dataclasses.replace(rivals.QUEUE, pools=pools)
        holders = [rivals.runs(f"v{i}", f"n{i}", ago=0, mid=30 * HOUR, preemptible=False) for i in range(8)]
        self.seen = rivals.world(*jobs, *holders, nodes=8, queue=queue)
        self.plan = model.Plan(NOW)

    def look(self) -> list[str]:
        """Make a pass, write what it says, and return whom it has promised."""
        self.plan = plan = decide.decide(self.seen, self.now, self.config, self.memory)
        assert plan == decide.decide(self.seen, self.now, self.config)
        assert pledges.of_plan(self.seen, plan, self.config) == ()
        said = {one.uid: model.Published(one.band, one.code, one.verdict, one.slack) for one in plan.updates}
        seen = moments.apply(self.seen, plan)
        jobs = tuple(
            dataclasses.replace(job, published=said.get(job.uid, job.published)) for job in seen.jobs
        )
        self.seen = dataclasses.replace(seen, jobs=jobs)
        return sorted(one.uid for one in plan.promise)

    def change(self, queue: model.Queue | None = None, **jobs: model.Job) -> None:
        """Something moves; a minute later everybody is forecast anew."""
        found = tuple(jobs.get(job.uid, job) for job in self.seen.jobs)
        queues = self.seen.queues if queue is None else (queue,)
        self.seen = dataclasses.replace(self.seen, jobs=found, queues=queues, changed=True)
        self.now += MINUTE


def shorter(days: Days, holder: str, mid: int) -> None:
    [job] = [job for job in days.seen.jobs if job.uid == holder]
    days.change(**{holder: dataclasses.replace(job, estimate=rivals.exact(mid))})


def test_room_that_comes_free_sooner_than_was_thought_brings_a_promise() -> None:
    days = Days(waiting(0, gpus=8, due=20 * HOUR))
    assert days.look() == []
    shorter(days, "v3", 10 * HOUR)
    assert days.look() == ["j00"]
    [told] = [one.verdict for one in days.plan.updates if one.uid == "j00"]
    assert told is not None
    assert told.level is model.Level.FEASIBLE


def test_an_edit_of_the_queue_or_of_the_estimate_brings_a_promise() -> None:
    days = Days(waiting(0, gpus=8), waiting(1, gpus=8, due=31 * HOUR), quota=8)
    assert days.look() == ["j00"]
    days.change(dataclasses.replace(days.seen.queues[0], pools=(POOL,)))
    assert days.look() == []
    [job] = [job for job in days.seen.jobs if job.uid == "j01"]
    days.change(j01=dataclasses.replace(job, estimate=rivals.exact(30 * MINUTE)))
    assert days.look() == ["j01"]


def test_nobody_is_looked_at_again_without_a_change_or_where_that_is_switched_off() -> None:
    for again, changed in ((3, False), (0, True)):
        days = Days(
            waiting(0, gpus=8, due=20 * HOUR), config=dataclasses.replace(CONFIG, promise_again=again)
        )
        days.look()
        shorter(days, "v3", 10 * HOUR)
        days.seen = dataclasses.replace(days.seen, changed=changed)
        assert days.look() == []
        assert days.plan.round is None


def test_those_of_a_flood_that_a_pass_did_not_get_to_have_their_promises_from_later_ones() -> None:
    config = dataclasses.replace(CONFIG, promise_most=2)
    days = Days(*[waiting(number) for number in range(12)], config=config)
    assert days.look() == ["j10", "j11"]  # the eldest first
    days.change()
    made = [days.look()]
    while days.plan.round is not None:
        assert days.plan.wake_at is not None
        assert days.plan.wake_at <= days.now + MINUTE
        days.now = days.plan.wake_at
        made.append(days.look())
    assert [one for one in made if one] == [
        ["j00", "j01", "j02"], ["j03", "j04", "j05"], ["j06", "j07", "j08"], ["j09"]
    ]  # fmt: skip


def test_a_change_in_the_middle_has_a_round_go_on_until_everybody_was_looked_at_since() -> None:
    days = Days(*[waiting(number, gpus=8, due=20 * HOUR) for number in range(7)])
    days.look()
    days.change()
    days.look()
    assert days.plan.round is not None
    assert days.plan.round.after == "j02"
    shorter(days, "v3", 10 * HOUR)  # of this j00 to j02 know nothing yet
    looks, promised = 0, days.look()
    while days.plan.round is not None:
        looks, days.now = looks + 1, days.now + MINUTE
        promised += days.look()
    assert (looks, len(promised)) == (2, 4)


def test_a_round_ends_where_it_began_when_those_at_its_ends_are_gone() -> None:
    days = Days(*[waiting(number, gpus=8, due=20 * HOUR) for number in range(7)])
    days.look()
    standing = model.Round("j045", "j025", NOW - HOUR)
    days.seen = dataclasses.replace(days.seen, changed=False, round=standing)
    days.now += MINUTE
    days.look()
    assert days.plan.round == model.Round("j00", "j025", days.now)
    days.now += MINUTE
    days.look()
    assert days.plan.round is None
