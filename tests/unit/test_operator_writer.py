"""One write at a time for a job, the urgent ones first, and every one accounted for."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.embedded import clock
from lstqueue.kube import port
from lstqueue.operator import writer

Urgency = writer.Urgency


class Desk:
    """A writer and a diary of what its writes did."""

    def __init__(self, *, workers):
        self.writer = writer.Writer(workers=workers)
        self.diary = []
        self.under_way = set()
        self.most = 0

    def submit(self, uid, name="", *, urgency=Urgency.COMMIT, seconds=1.0, error=None, after=None):
        name = name or uid

        async def run():
            assert uid not in self.under_way
            assert self.writer.busy(uid)
            self.under_way.add(uid)
            self.most = max(self.most, len(self.under_way))
            await asyncio.sleep(seconds)
            self.under_way.discard(uid)
            if error is not None:
                raise error

        def told(what):
            assert not self.writer.busy(uid) or what == "dropped"
            self.diary.append((round(asyncio.get_running_loop().time(), 3), name, what))
            if after is not None and what != "dropped":
                after()

        self.writer.submit(
            urgency,
            uid,
            run,
            done=lambda: told("done"),
            failed=lambda failure: told(failure.reason),
            dropped=lambda: told("dropped"),
        )

    def order(self):
        return [name for _, name, what in self.diary if what == "done"]


def at_work(scene, *, workers=2, seconds=100.0):
    """Play a scene with a writer at work, for some time."""

    async def main():
        desk = Desk(workers=workers)
        task = asyncio.create_task(desk.writer.work())
        await scene(desk)
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return desk

    return clock.run(main(), horizon=10_000)


def test_urgent_writes_go_first_and_equal_ones_in_their_order():
    async def scene(desk):
        for name, urgency in (("a", 2), ("b", 1), ("c", 0), ("d", 1)):
            desk.submit(name, urgency=Urgency(urgency))

    assert at_work(scene, workers=1).order() == ["c", "b", "d", "a"]


def test_writes_of_different_jobs_go_side_by_side_as_far_as_there_are_workers():
    async def scene(desk):
        for name in "abcde":
            desk.submit(name)

    desk = at_work(scene)
    assert desk.most == 2
    assert desk.diary[-1] == (3, "e", "done")


def test_a_job_has_one_write_under_way_and_others_do_not_wait_for_it():
    async def scene(desk):
        desk.submit("a", "a1", seconds=10)
        await asyncio.sleep(1)
        desk.submit("a", "a2", urgency=Urgency.STEP)
        desk.submit("b")
        assert desk.writer.pending("a") is Urgency.STEP
        assert desk.writer.backlog == 2

    assert at_work(scene).diary == [(2, "b", "done"), (10, "a1", "done"), (11, "a2", "done")]


def test_a_newer_write_takes_the_place_of_one_that_has_not_begun_and_its_author_is_told():
    async def scene(desk):
        desk.submit("a", "old")
        desk.submit("a", "new", urgency=Urgency.REPORT)
        assert desk.writer.backlog == 1
        assert desk.writer.pending("a") is Urgency.REPORT

    assert at_work(scene).diary == [(0, "old", "dropped"), (1, "new", "done")]


class Counting(writer.Writer):
    """A writer that counts how often a worker woke to look for something to do."""

    wakes = 0

    def _next(self):
        self.wakes += 1
        return super()._next()


@pytest.mark.parametrize("replaced", [0, 1, 100, 5000])
def test_what_was_replaced_wakes_nobody_later(replaced):
    async def scene(desk):
        desk.writer = Counting(workers=2)
        desk.submit("busy", seconds=5)
        task = asyncio.create_task(desk.writer.work())
        await asyncio.sleep(1)
        for number in range(replaced + 1):
            desk.submit("a", str(number), urgency=Urgency.REPORT)
            desk.submit("busy", f"next-{number}")
        await asyncio.sleep(30)
        desk.writer.wakes = 0
        for number in range(20):
            desk.submit(f"lone-{number}")
            await asyncio.sleep(3)
        assert desk.writer.wakes == 20
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    desk = at_work(scene)
    assert desk.order()[-20:] == [f"lone-{number}" for number in range(20)]
    assert desk.order()[:3] == [str(replaced), "busy", f"next-{replaced}"]


def test_a_failure_is_told_and_harms_no_other_write():
    async def scene(desk):
        desk.submit("a", error=port.ConflictError(409, "Conflict", "somebody else wrote"))
        desk.submit("b", seconds=2)

    assert at_work(scene, workers=1).diary == [(1, "a", "Conflict"), (3, "b", "done")]


def test_whoever_is_told_may_submit_the_next_write_at_once():
    async def scene(desk):
        desk.submit("a", "first", after=lambda: desk.submit("a", "second"))

    assert at_work(scene).order() == ["first", "second"]


def test_a_bug_in_the_write_of_one_job_is_told_and_harms_no_other(caplog):
    async def scene(desk):
        desk.submit("a", error=RuntimeError("a bug"))
        desk.submit("b")

    assert at_work(scene).diary == [(1, "a", "Defect"), (1, "b", "done")]
    assert "a bug" in caplog.text


def test_a_fence_ends_the_writer():
    async def main():
        desk = Desk(workers=2)
        desk.submit("a", error=port.FencedError("no more"))
        with pytest.raises(ExceptionGroup) as raised:
            await desk.writer.work()
        assert raised.group_contains(port.FencedError)

    clock.run(main(), horizon=10)


def test_idle_workers_take_no_time():
    async def scene(desk):
        await asyncio.sleep(1000)
        desk.submit("a")

    assert at_work(scene).diary == [(1001, "a", "done")]


SUBMISSIONS = st.tuples(
    st.sampled_from("abc"), st.sampled_from(Urgency), st.integers(0, 3), st.integers(0, 2), st.booleans()
)


@given(st.lists(SUBMISSIONS, max_size=25), st.integers(1, 4))
def test_every_write_is_done_failed_or_dropped_exactly_once(submissions, workers):
    async def scene(desk):
        for number, (uid, urgency, seconds, pause, fails) in enumerate(submissions):
            error = port.UnavailableError(503, "Down", "") if fails else None
            desk.submit(uid, str(number), urgency=urgency, seconds=seconds, error=error)
            await asyncio.sleep(pause)

    desk = at_work(scene, workers=workers)
    assert sorted(int(name) for _, name, _ in desk.diary) == list(range(len(submissions)))
    assert desk.writer.backlog == 0
    assert desk.most <= workers
