"""What users are told on their own objects: once, counted, and never at the cost of anything else."""

import asyncio
import contextlib

from lstqueue.embedded import clock, faults, memory, world
from lstqueue.kube import port
from lstqueue.operator import events

JOB = events.Subject("batch/v1", "Job", "default", "sweep", "uid-sweep")
WAITS = events.Note(JOB, "Queued", "waits in queue research")


def telling(scene):
    """Play a scene with a recorder on an embedded API, in virtual time."""

    async def main():
        async with world.World(serve=False) as made:
            told = events.Recorder(memory.MemoryApi(made.server.backend), now=made.now)
            task = asyncio.create_task(told.run())
            await scene(made, told)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    clock.run(main(), horizon=1e6)


def seen(made):
    return [(item["reason"], item["message"], item["count"]) for item in made.store.list(port.EVENTS)]


def test_a_note_becomes_an_event_on_the_object():
    async def scene(made, told):
        told.tell(WAITS)
        await asyncio.sleep(1)
        [event] = made.store.list(port.EVENTS)
        assert event["involvedObject"]["uid"] == "uid-sweep"
        assert event["metadata"]["namespace"] == "default"
        assert (event["type"], event["reason"], event["count"]) == ("Normal", "Queued", 1)

    telling(scene)


def test_the_same_within_ten_minutes_is_counted_and_later_told_anew():
    async def scene(made, told):
        for words in ("first", "second", "third"):
            told.tell(events.Note(JOB, "Queued", words))
            await asyncio.sleep(60)
        assert seen(made) == [("Queued", "third", 3)]
        await asyncio.sleep(601)
        told.tell(WAITS)
        await asyncio.sleep(1)
        assert len(seen(made)) == 2

    telling(scene)


def test_a_burst_costs_one_write():
    async def scene(made, told):
        for number in range(50):
            told.tell(events.Note(JOB, "Queued", f"word {number}"))
        await asyncio.sleep(1)
        assert seen(made) == [("Queued", "word 49", 50)]

    telling(scene)


def test_an_event_that_expired_is_written_again():
    async def scene(made, told):
        told.tell(WAITS)
        await asyncio.sleep(1)
        [event] = made.store.list(port.EVENTS)
        made.store.delete(port.EVENTS, "default", event["metadata"]["name"])
        told.tell(WAITS)
        await asyncio.sleep(1)
        assert seen(made) == [("Queued", WAITS.message, 1)]

    telling(scene)


def test_a_lost_reply_tells_nothing_twice():
    async def scene(made, told):
        made.server.faults.lose_response(when=faults.calls(resource=port.EVENTS))
        told.tell(WAITS)
        await asyncio.sleep(30)
        assert [count for _, _, count in seen(made)] == [1]

    telling(scene)


def test_what_cannot_be_told_is_counted_and_holds_up_nothing_else():
    async def scene(made, told):
        told.tell(events.Note(events.Subject("batch/v1", "Job", "gone", "x", "uid-x"), "Queued", "?"))
        told.tell(WAITS)
        await asyncio.sleep(1)
        assert (told.failed, told.sent) == (1, 1)

    telling(scene)


def test_a_server_that_is_away_for_long_costs_only_the_words():
    async def scene(made, told):
        about_events = faults.calls(resource=port.EVENTS)
        made.server.faults.fail(503, "ServiceUnavailable", when=about_events, times=None)
        told.tell(WAITS)
        await asyncio.sleep(120)
        assert (told.failed, told.sent) == (1, 0)
        made.server.faults.clear()
        told.tell(WAITS)
        await asyncio.sleep(1)
        assert seen(made) == [("Queued", WAITS.message, 1)]

    telling(scene)


def test_the_queue_is_bounded():
    async def scene(made, told):
        for number in range(events.WAITING + 7):
            subject = events.Subject("batch/v1", "Job", "default", f"j{number}", f"uid-{number}")
            told.tell(events.Note(subject, "Queued", "waits"))
        assert told.dropped == 7

    telling(scene)


def test_a_state_is_told_once_whoever_tells_it_and_its_changes_are_told_too():
    async def scene(made, told):
        again = events.Recorder(memory.MemoryApi(made.server.backend), now=made.now)
        task = asyncio.create_task(again.run())
        for words in ("bad", "worse"):
            for teller in (told, again, told):
                teller.tell(events.Note(JOB, "BadAnnotations", words, warning=True, once=True))
                await asyncio.sleep(30)
        assert sorted(seen(made)) == [("BadAnnotations", "bad", 1), ("BadAnnotations", "worse", 1)]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    telling(scene)
