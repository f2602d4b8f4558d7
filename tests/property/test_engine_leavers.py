"""Who ends when is known after any changes as if it had been read afresh, with what each leaves."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, rivals
from cases.rivals import CONFIG, HOUR, MINUTE, NOW
from lstqueue.engine import kept, leavers, memory, model

MANY = leavers.MANY + 3
"""More than are put in one by one."""
GONE = 4
CHANGES = st.lists(st.tuples(st.integers(0, MANY), st.integers(1, GONE)), max_size=3)
"""(which job, how many hours it is to run from now on, if not for ever)."""


def running(which: int, hours: int) -> model.Job:
    one = rivals.runs(f"v{which}", f"n{which % 6}", gpus=1, mid=hours * HOUR, ago=which % 2 * MINUTE)
    parts = (*one.assigned, model.Assigned(0, "p", "n0", 0, 1))
    return one if which % 3 else dataclasses.replace(one, assigned=parts)


def told(kept_one: memory.Memory, jobs: dict[str, model.Job], now: int) -> list[object]:
    """When each leaves, and the room after each number of them; of all, and without some."""
    waiting = rivals.waits("w", count=2)
    snapshot = rivals.world(*jobs.values(), waiting, nodes=6)
    known = kept.survey(snapshot, kept_one.recall(snapshot, CONFIG), now)
    seen: list[object] = []
    world, some = known.world, ("v1", "v3", "nobody")
    more = [(now, "v1", world.release(jobs["v2"]))] if "v2" in jobs else []
    for ends in (
        world.leavers.read(known.lasting),
        world.leavers.read(known.lasting, some),
        world.expected.read_with(known.lasting, some, more),
    ):
        seen.append(list(ends.times))
        for count in range(len(ends.times) + 1):
            there = known.free.copy()
            ends.leave(there, 0, count)
            seen.append((there.ledger.free.tolist(), there.ledger.total.tolist(), there.quota.free))
    return seen


@settings(max_examples=effort.examples(15), deadline=None)
@given(st.lists(CHANGES, max_size=5), st.sampled_from([2, MANY]))
def test_what_is_kept_of_who_ends_is_what_is_read_afresh(
    rounds: list[list[tuple[int, int]]], first: int
) -> None:
    jobs = {f"v{i}": running(i, 1 + i % 3) for i in range(first)}
    known = memory.Memory()
    for number, changes in enumerate([[], *rounds]):
        for which, hours in changes:
            jobs.pop(f"v{which}", None)
            if hours < GONE:
                jobs[f"v{which}"] = running(which, hours)
        now = NOW + number * 40 * MINUTE  # who outruns its estimate ends later
        assert told(known, jobs, now) == told(memory.Memory(), jobs, now)
