"""What a pass writes is a fixpoint: written down, and looked at a second later, it is not written anew."""

from __future__ import annotations

import dataclasses

from hypothesis import event, given, settings
from hypothesis import strategies as st

from cases import effort, moments, rivals
from cases.moments import HOUR, MINUTE, NOW
from lstqueue.engine import decide, memory, model

SECOND = 1000
PASSES = 16
ACTING = 8
"""So many of the passes may write more than words: a claim is written, its victims go, others move up."""

GRACES = st.sampled_from([0, 30 * SECOND, 12 * MINUTE, 12 * MINUTE, HOUR])
STATES = st.sampled_from([model.State.RUNNING, model.State.ENDING, model.State.ENDING, model.State.ADMITTED])


def settles(snapshot: model.Snapshot, config: model.Config) -> None:
    """Carry out pass after pass, a second apart, in a world in which nothing else happens."""
    kept = memory.Memory()
    acted: list[model.Plan] = []
    reserved = False
    for number in range(PASSES):
        plan = decide.decide(snapshot, NOW + number * SECOND, config, kept)
        reserved = reserved or bool(plan.reserve)
        if moments.acts(plan):
            acted.append(plan)
        snapshot = moments.apply(snapshot, plan)
    event(f"reserved: {reserved}")
    assert len(acted) <= ACTING, acted[-1]


@st.composite
def queued(draw: st.DrawFn) -> model.Snapshot:
    """Nodes of two pools and two queues, on each of which somebody runs or leaves, and gangs that wait."""
    names = [("a", "q"), ("a", "q"), ("a", "q"), ("b", "z")]
    base = rivals.world(nodes=4)
    nodes = tuple(
        dataclasses.replace(node, labels=(("pool", pool),))
        for node, (pool, _) in zip(base.nodes, names, strict=True)
    )
    queues = tuple(
        model.Queue(queue, pools=(dataclasses.replace(rivals.POOL, selector=(("pool", pool),)),))
        for pool, queue in (("a", "q"), ("b", "z"))
    )
    jobs: list[model.Job] = []
    for number, (_, queue) in enumerate(names):
        held = rivals.runs(
            f"v{number}",
            f"n{number}",
            queue=queue,
            mid=draw(st.integers(1, 400)) * MINUTE,
            gpus=draw(st.sampled_from([5, 8, 8])),
            grace=draw(GRACES),
        )
        state = draw(STATES)
        since = 0 if state is model.State.ADMITTED else held.since
        jobs.append(dataclasses.replace(held, state=state, since=since))
    for number in range(draw(st.integers(1, 4))):
        gang = rivals.waits(
            f"w{number}",
            queue=draw(st.sampled_from(["q", "q", "z"])),
            count=draw(st.sampled_from([1, 1, 2])),
            gpus=draw(st.sampled_from([4, 8])),
            mid=draw(st.integers(5, 300)) * MINUTE,
            slack=draw(st.sampled_from([30 * MINUTE, 20 * HOUR, 40 * HOUR, 60 * HOUR])),
        )
        jobs.append(gang)
    return model.Snapshot(nodes, queues, tuple(jobs))


@settings(max_examples=effort.examples(12), deadline=None)
@given(queued(), st.booleans())
def test_room_kept_while_others_leave_is_written_once(snapshot: model.Snapshot, promising: bool) -> None:
    settles(snapshot, model.Config(promising=promising))


@settings(max_examples=effort.examples(6), deadline=None)
@given(moments.snapshots(), GRACES, st.booleans())
def test_what_is_written_is_not_written_anew_a_second_later(
    snapshot: model.Snapshot, grace: int, promising: bool
) -> None:
    jobs = tuple(dataclasses.replace(job, grace=grace) for job in snapshot.jobs)
    settles(dataclasses.replace(snapshot, jobs=jobs), model.Config(promising=promising))
