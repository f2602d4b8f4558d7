"""What queues are told of their jobs costs one look at all jobs, however many queues there are."""

import asyncio
import contextlib
import types

from cases import raw, walks
from lstqueue.api import times
from lstqueue.engine import model
from lstqueue.operator import cache as caches
from lstqueue.operator import queue_status, settings

QUEUES = 5


class Server:
    """Takes in the statuses of queues."""

    def __init__(self):
        self.told = {}

    async def patch_status(self, resource, namespace, name, body):
        self.told[name] = body["status"]
        return {**raw.queue(name), "status": body["status"]}


async def report(cache, jobs):
    """Have all queues told once; return what they were told."""
    server, seen = (
        Server(),
        types.SimpleNamespace(passes=1, snapshot=types.SimpleNamespace(jobs=jobs), plan=None),
    )

    async def next_pass(*, after):
        if after >= 1:
            await asyncio.Event().wait()

    seen.next_pass = next_pass
    given = settings.Settings(queue_status_interval=0)
    reporter = queue_status.Reporter(server, cache, seen, given, now=lambda: raw.NOW)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await reporter.run()
    return server.told


def job(uid, queue, state):
    return model.Job(uid, "default", uid, queue, (), submit=0, state=state)


async def test_each_queue_is_told_of_its_own_jobs_at_the_cost_of_one_look_at_all():
    cache = caches.Cache(lambda: None)
    for number in range(QUEUES):
        cache.apply_queue("ADDED", raw.queue(f"queue-{number}"))
    for number in range(QUEUES):
        over = {"phase": "Succeeded", "completionTime": times.format(raw.NOW + raw.MINUTE)}
        ended = raw.deadline_job(f"job-{number}", status=over, queue=f"queue-{number}", deadlineIn="1h")
        cache.apply_ledger("ADDED", ended)
        # Nobody was promised anything who was turned away.
        gone = raw.deadline_job(
            f"rejected-{number}",
            status={"phase": "Rejected"},
            queue=f"queue-{number}",
            deadlineIn="1h",
        )
        cache.apply_ledger("ADDED", gone)
    cache.records = walks.Counted(cache.records)
    jobs = [job(f"job-{number}", f"queue-{number % 2}", model.State.WAITING) for number in range(4)]
    told = await report(cache, jobs)
    assert {name: status["pending"] for name, status in told.items()} == {
        f"queue-{number}": 2 if number < 2 else 0 for number in range(QUEUES)
    }
    assert [status["met"] for status in told.values()] == [1] * QUEUES
    assert [status["missed"] for status in told.values()] == [0] * QUEUES
    assert cache.records.walks == 1
